/* The links of merged files.
 *
 * When one file alone gives the links between nodes, over just the merged nodes, its
 * `links` are taken as they stand.  Otherwise merge_planes.c looks them up one by one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topology/known.h"
#include "topology/links_doc.h"
#include "topology/edit/merge_private.h"

/* ---- what the files give ---- */

/* Whether a file's nodes are the merged ones, in their order and with their GPUs. */
static bool same_nodes (const struct merge *m, const struct merge_source *s)
{
    if (s->c->n_nodes != m->n_nodes)
        return false;
    for (int i = 0; i < m->n_nodes; i++)
        if (merge_place_of (m, s, i) != i ||
            merge_gpus_of (m, i) != s->c->node[i].gpus_listed)
            return false;
    return true;
}

/* ---- all links ---- */

/* Exceptions that say what is drained, of all files; the newest of two on one link. */
static void keep_drained (struct merge *m, json_t *links)
{
    json_t *list, *one;
    size_t i;

    for (int k = 0; k < m->n; k++)
        json_array_foreach (
            json_object_get (json_object_get (m->source[k].doc, "links"), "exceptions"),
            i, one)
        {
            bool known = false;

            if (!json_object_get (one, "state"))
                continue;
            list = json_array_in (links, "exceptions");
            for (size_t j = 0; j < json_array_size (list) && !known; j++)
                known = json_equal (json_array_get (list, j), one);
            if (!known)
                json_array_append (list, one);
        }
}

/* Keys beside intra, inter, gpu and exceptions. */
static void keep_links_keys (struct merge *m, json_t *links)
{
    const char *key;
    json_t *value;

    for (int k = 0; k < m->n; k++)
        json_object_foreach (json_object_get (m->source[k].doc, "links"), key, value)
        {
            if (!text_has_word ("intra inter gpu exceptions", key) &&
                !json_object_get (links, key))
                json_object_set (links, key, value);
        }
}

/* One file's links as they stand, with the links inside nodes that others add. */
static enum status take_whole (struct merge *m, const struct merge_source *s)
{
    json_t *links = json_deep_copy (json_object_get (s->doc, "links"));

    if (!links)
        return err_nomem (m->err);
    json_object_set_new (m->doc, "links", links);
    TRY (topology_document_adopt (m->out, s->c->folder ? s->c->folder : "", m->err));
    if (!s->c->has_gpu_matrix)
        TRY (merge_inside (m, links));
    return ST_OK;
}

enum status merge_links (struct merge *m)
{
    const struct merge_source *giver = NULL;
    int giving = 0;
    json_t *links;

    for (int k = 0; k < m->n; k++)
        if (merge_gives_between (&m->source[k])) {
            giving++;
            giver = &m->source[k];
        }
    if (giving == 1 && same_nodes (m, giver))
        TRY (take_whole (m, giver));
    else {
        links = json_object ();
        json_object_set_new (m->doc, "links", links);
        if (giving > 0)
            TRY (merge_between (m, links));
        if (!json_object_get (links, "gpu"))
            TRY (merge_inside (m, links));
    }
    links = json_object_get (m->doc, "links");
    keep_drained (m, links);
    keep_links_keys (m, links);
    return ST_OK;
}
