/* The table of launchers, and writing their files together. */
#include "launch/launch_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct launcher *const launchers[] = {&launch_openmpi, &launch_slurm};

#define N_LAUNCHERS ((int) (sizeof launchers / sizeof *launchers))

const struct launch_target *launch_target_at (int i)
{
    return i < N_LAUNCHERS ? &launchers[i]->target : NULL;
}

struct text *launch_file (struct launch_files *f, const char *path, unsigned mode)
{
    f->file[f->n].path = path;
    f->file[f->n].mode = mode;
    return &f->file[f->n++].text;
}

/* Which targets does the list name? */
static enum status choose (const char *to, bool *chosen, struct error *err)
{
    const char *p = to;

    while (*p) {
        size_t n = strcspn (p, ",");
        bool all = n == 3 && strncmp (p, "all", 3) == 0, known = all;

        for (int i = 0; i < N_LAUNCHERS; i++) {
            const char *name = launchers[i]->target.name;
            bool this = strlen (name) == n && strncmp (name, p, n) == 0;

            chosen[i] = chosen[i] || all || this;
            known = known || this;
        }
        if (!known) {
            struct text list = {0};

            for (int i = 0; i < N_LAUNCHERS; i++)
                text_add (&list, "%s, ", launchers[i]->target.name);
            err_set (err, ST_USAGE, "--to: unknown launcher \"%.*s\" (%sall)", (int) n, p,
                     text_str (&list));
            text_free (&list);
            return ST_USAGE;
        }
        p += n;
        p += *p == ',';
    }
    return *to ? ST_OK : err_set (err, ST_USAGE, "--to: no launcher named");
}

/* Does dir hold the map of another placement? */
static bool holds_other_map (const char *dir, const char *map)
{
    struct text path = {0};
    char *old = NULL;
    size_t len;
    bool differs;

    text_add (&path, "%s/map.txt", dir);
    differs = !path.failed && file_read (text_str (&path), &old, &len, NULL) == ST_OK &&
              strcmp (old, map) != 0;
    text_free (&path);
    free (old);
    return differs;
}

/* Remove one of our files that is not among the new ones. */
static void remove_old (const char *dir, const char *name, const struct launch_files *new)
{
    struct text path = {0};
    bool keep = false;

    for (int i = 0; i < new->n; i++)
        keep = keep || strcmp (new->file[i].path, name) == 0;
    text_add (&path, "%s/%s", dir, name);
    if (!keep && !path.failed)
        unlink (text_str (&path));
    text_free (&path);
}

enum status launch_emit (const struct workload_plan *plan,
                         const struct topology_cluster *c, const int *gpu, const char *to,
                         const char *dir, struct error *err)
{
    int *ranks_on_node = calloc ((size_t) c->n_nodes, sizeof (int));
    struct launch_input in = {plan, c, gpu, ranks_on_node};
    struct launch_files files = {0};
    struct file_item item[LAUNCH_FILES_MAX];
    struct text readme = {0};
    bool chosen[sizeof launchers / sizeof *launchers] = {false};
    enum status st = ranks_on_node ? choose (to, chosen, err) : err_nomem (err);

    for (int r = 0; r < plan->n_ranks && ranks_on_node; r++)
        ranks_on_node[c->node_of_gpu[gpu[r]]]++;
    if (st == ST_OK)
        st = launch_generic (&in, &files, &readme, err);
    for (int i = 0; i < N_LAUNCHERS && st == ST_OK; i++)
        if (chosen[i])
            launchers[i]->write (&in, &files, &readme);
    if (st == ST_OK)
        *launch_file (&files, "README", 0644) = readme;
    else
        text_free (&readme);
    for (int i = 0; i < files.n; i++) {
        item[i] = (struct file_item){files.file[i].path, text_str (&files.file[i].text),
                                     files.file[i].text.len, files.file[i].mode};
        if (st == ST_OK && files.file[i].text.failed)
            st = err_nomem (err);
    }
    if (st == ST_OK) {
        bool other = holds_other_map (dir, item[0].data);

        st = file_write_set (dir, item, files.n, err);
        /* Files of another placement would mislead beside the new ones. */
        if (st == ST_OK && other) {
            remove_old (dir, "gpu-uuid.txt", &files);
            for (int i = 0; i < N_LAUNCHERS; i++)
                for (const char *const *p = launchers[i]->paths; *p; p++)
                    remove_old (dir, *p, &files);
        }
    }
    for (int i = 0; i < files.n; i++)
        text_free (&files.file[i].text);
    free (ranks_on_node);
    return st;
}
