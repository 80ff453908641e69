/* The table of importers. */
#include "topology/machine/machine.h"

#include <string.h>

#include "base/file.h"
#include "base/xml.h"

static const struct importer *const importers[] = {
    &import_hwloc,          &import_nccl,        &import_smi,
    &import_slurm_topology, &import_slurm_nodes, &import_ibnet};

#define N_IMPORTERS ((int) (sizeof importers / sizeof *importers))

const struct text_choice *topology_format_at (int i)
{
    return i < N_IMPORTERS ? &importers[i]->format : NULL;
}

/* Has the first tag of a text that is XML that name? */
static bool is_xml (const char *data, const char *root)
{
    size_t n = strlen (root);

    for (;;) {
        data += strspn (data, " \t\r\n");
        if (*data != '<')
            return false;
        if (strncmp (data, "<!--", 4) == 0) {
            data = strstr (data, "-->");
            if (!data)
                return false;
            data += 3;
        } else if (data[1] == '?' || data[1] == '!') {
            /* A document type may hold tags of its own; they come before the root. */
            bool subset = false;

            for (; *data && (*data != '>' || subset); data++)
                subset = *data == '[' || (subset && *data != ']');
            if (!*data++)
                return false;
        } else
            return strncmp (data + 1, root, n) == 0 &&
                   strchr (" \t\r\n>/", data[n + 1]) != NULL && data[n + 1] != '\0';
    }
}

static bool is (const struct importer *importer, const char *data)
{
    const char *const *root = importer->root;

    return importer->is ? importer->is (data)
                        : is_xml (data, root[0]) || (root[1] && is_xml (data, root[1]));
}

enum status import_machine (const struct importer *importer, const struct import *in,
                            struct machine *m)
{
    struct xml *root;
    enum status st;

    if (importer->read_machine)
        return importer->read_machine (in, m);
    TRY (xml_parse (in->name, in->data, in->len, &root, in->err));
    st = importer->read_xml (in, root, m);
    xml_free (root);
    return st;
}

const struct text_choice *topology_format_detect (const char *data, size_t len)
{
    for (int i = 0; i < N_IMPORTERS; i++)
        if (!file_not_text (data, len) && is (importers[i], data + file_mark (data, len)))
            return &importers[i]->format;
    return NULL;
}

static const struct importer *choose (const struct import *in, const char *format,
                                      enum status *st)
{
    struct text names = {0}, files = {0};
    const struct importer *found = NULL;

    for (int i = 0; i < N_IMPORTERS && !found; i++)
        if (strcmp (format, "auto") == 0
                ? is (importers[i], in->data)
                : strcmp (format, importers[i]->format.name) == 0)
            found = importers[i];
    for (int i = 0; i < N_IMPORTERS; i++) {
        text_add (&names, "%s%s", i ? ", " : "", importers[i]->format.name);
        text_add (&files, "%s%s", i ? "; " : "", importers[i]->format.what);
    }
    *st = found ? ST_OK
          : strcmp (format, "auto") == 0
              ? err_set (in->err, ST_INVALID, "%s: not in a known format: %s", in->name,
                         text_str (&files))
              : err_set (in->err, ST_USAGE, "--format: expected auto, %s; found \"%s\"",
                         text_str (&names), format);
    text_free (&names);
    text_free (&files);
    return found;
}

/* The first line that is no UTF-8, 0 when all is.  XML names its own encoding. */
static int foreign_line (const char *data, size_t len)
{
    int line = 1;

    if (data[strspn (data, " \t\r\n")] == '<')
        return 0;
    for (const char *p = data; p < data + len; line++) {
        const char *end = memchr (p, '\n', (size_t) (data + len - p));
        size_t n = end ? (size_t) (end - p) : (size_t) (data + len - p);
        json_t *text = json_stringn (p, n);

        if (!text)
            return line;
        json_decref (text);
        p += n + 1;
    }
    return 0;
}

/* A machine is called after its file, unless that names it. */
static enum status read_machine (const struct importer *importer, const struct import *in,
                                 json_t **doc)
{
    const char *base = file_name (in->name), *dot = strrchr (base, '.');
    size_t len = dot && dot > base ? (size_t) (dot - base) : strlen (base);
    struct machine m = {.source = strdup (importer->source), .name = strndup (base, len)};
    enum status st =
        m.source && m.name ? import_machine (importer, in, &m) : err_nomem (in->err);

    THEN (st, machine_to_json (&m, in->name, doc, in->notes, in->err));
    machine_release (&m);
    return st;
}

enum status topology_import (const char *name, const char *data, size_t len,
                             const char *format, json_t **doc, struct notes *notes,
                             struct error *err)
{
    size_t mark = file_mark (data, len);
    struct import in = {name, data + mark, len - mark, notes, err};
    const char *why = file_not_text (data, len);
    enum status st;
    int line;

    if (len == 0)
        return err_set (err, ST_INVALID, "%s: an empty file", name);
    if (why)
        return err_set (err, ST_INVALID, "%s: %s", name, why);
    if ((line = foreign_line (in.data, in.len)) > 0)
        return err_set (err, ST_INVALID, "%s: line %d: not UTF-8", name, line);

    const struct importer *importer = choose (&in, format, &st);

    return !importer        ? st
           : importer->read ? importer->read (&in, doc)
                            : read_machine (importer, &in, doc);
}
