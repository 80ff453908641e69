#include "topology/export/export_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const struct export_format *const formats[] = {&export_slurm, &export_prometheus,
                                                      &export_csv,   &export_npy,
                                                      &export_svg,   &export_graphviz};
#define FORMATS ((int) (sizeof formats / sizeof *formats))

const struct text_choice *topology_export_at (int i)
{
    return i < FORMATS ? &formats[i]->format : NULL;
}

static const struct export_format *find (const char *name, struct error *err)
{
    struct text names = {0};

    for (int i = 0; i < FORMATS; i++)
        if (strcmp (formats[i]->format.name, name) == 0)
            return formats[i];
    for (int i = 0; i < FORMATS; i++)
        text_add (&names, "%s%s", i ? ", " : "", formats[i]->format.name);
    err_set (err, ST_USAGE, "--to: expected %s, found \"%s\"", text_str (&names), name);
    text_free (&names);
    return NULL;
}

static enum status write_both (const struct exporting *x, const char *path,
                               const char *ending, struct error *err)
{
    const char *base = file_name (path), *dot = strrchr (base, '.');
    char *folder = file_folder (path);
    struct text name = {0};
    enum status st = ST_OK;

    text_add (&name, "%.*s%s", (int) (dot ? (size_t) (dot - base) : strlen (base)), base,
              ending);
    if (!folder || name.failed)
        st = err_nomem (err);
    else if (file_is_stream (path))
        st = err_set (err, ST_USAGE, "%s cannot take two matrices: name a file",
                      strcmp (path, "-") == 0 ? "standard output" : path);
    else
        st = file_write_set (
            folder,
            (const struct file_item[]){
                {text_str (&name), text_str (x->second), x->second->len, 0644},
                {base, text_str (x->file), x->file->len, 0644}},
            2, err);
    text_free (&name);
    free (folder);
    return st;
}

enum status topology_export (const struct topology_cluster *c, const char *format,
                             const char *node, const char *path,
                             const struct topology_watch *watch, struct error *err)
{
    const struct export_format *f = find (format, err);
    const char *dot = strrchr (path, '.');
    struct text file = {0}, second = {0};
    char *title = strdup (c->name);
    struct exporting x = {.c = c,
                          .title = title,
                          .node = node,
                          .yaml = dot && strcmp (dot, ".yaml") == 0,
                          .watch = watch,
                          .file = &file,
                          .second = &second};
    enum status st = !f ? ST_USAGE : title ? ST_OK : err_nomem (err);

    if (st == ST_OK && node && !f->of_node)
        st = err_set (err, ST_USAGE, "--node: %s shows all nodes", f->format.name);
    if (st == ST_OK) {
        text_clean_line (title);
        st = f->write (&x, err);
    }
    if (st == ST_OK && (file.failed || second.failed))
        st = err_nomem (err);
    if (st == ST_OK && !f->second)
        text_clean (&file);
    THEN (st, f->second ? write_both (&x, path, f->second, err)
                        : file_write (path, text_str (&file), file.len, err));
    text_free (&file);
    text_free (&second);
    free (title);
    return st;
}
