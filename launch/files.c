/* What the writers of launchers' files have in common. */
#include "launch/launch_private.h"

#include <assert.h>
#include <string.h>

struct text *launch_file (struct launch_files *f, const char *path, unsigned mode)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp (f->file[i].path, path) == 0)
            return &f->file[i].text;
    assert (f->n < LAUNCH_FILES_MAX);
    f->file[f->n].path = path;
    f->file[f->n].mode = mode;
    return &f->file[f->n++].text;
}

void launch_script_filled (const char *name, const char *phrase, const char *value,
                           struct text *t)
{
    const struct text_shipped *s = launch_shipped_scripts;
    const char *at;

    while (s->name && strcmp (s->name, name) != 0)
        s++;
    assert (s->name);
    at = strstr (s->text, phrase);
    if (at) {
        at += strlen (phrase);
        text_add_mem (t, s->text, (size_t) (at - s->text));
        text_add (t, "%s", value);
    }
    text_add (t, "%s", at ? at : s->text);
}

void launch_script_add (const struct launch_files *f, const char *name, struct text *t)
{
    launch_script_filled (name, "\ngeneration=", f->generation, t);
}

void launch_script (struct launch_files *f, const char *path, const char *name)
{
    struct text *t = launch_file (f, path, 0755);

    if (t->len == 0)
        launch_script_add (f, name, t);
}

const struct topology_node *launch_node_of (const struct launch_input *in, int rank)
{
    return &in->cluster->node[in->cluster->node_of_gpu[in->gpu[rank]]];
}

const char *launch_uuid_of (const struct launch_input *in, int rank)
{
    const struct topology_node *n = launch_node_of (in, rank);

    return n->gpu_uuid ? n->gpu_uuid[in->gpu[rank] - n->first_gpu] : NULL;
}

bool launch_by_node (const struct launch_input *in)
{
    int blocks = 0;

    for (int r = 0; r < in->plan->n_ranks; r++)
        blocks += r == 0 || launch_node_of (in, r) != launch_node_of (in, r - 1);
    return blocks == in->nodes;
}
