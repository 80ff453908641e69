/* The links of merged files.
 *
 * When one file alone gives the links between nodes, over just the merged nodes, its
 * `links` are taken as they stand.  Otherwise merge_planes.c looks them up one by one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/known.h"
#include "topology/links_doc.h"
#include "topology/edit/merge_private.h"

/* ---- what the files give ---- */

/* A file about one node: its GPU matrix is the links inside. */
static bool inside_only (const struct merge_source *s)
{
    return s->c->has_gpu_matrix && s->c->n_nodes == 1;
}

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

/* ---- inside nodes ---- */

/* A source's links inside one of its nodes as an `intra` object, or NULL. */
static json_t *intra_of (const struct merge_source *s, int node)
{
    json_t *links = json_object_get (s->doc, "links"),
           *intra = json_object_get (links, "intra");

    if (inside_only (s)) {
        json_t *copy = topology_cluster_to_json (s->c), *gpu;

        gpu = json_incref (json_object_get (json_object_get (copy, "links"), "gpu"));
        json_object_del (gpu, "node_gb_per_s");
        json_decref (copy);
        return gpu;
    }
    if (json_is_array (intra))
        intra = json_array_get (intra, (size_t) node);
    return json_is_object (intra) && s->c->node[node].gpus > 1 ? json_deep_copy (intra)
                                                               : NULL;
}

/* Whether a bandwidth leaves pairs open, or has estimates of some. */
static bool has_gaps (const struct topology_links *l, int gpus)
{
    for (int i = 0; i < gpus; i++)
        for (int j = 0; j < gpus; j++)
            if (i != j && (isnan (topology_matrix_at (&l->bytes_per_s, i, j)) ||
                           !isnan (merge_error_at (l, i, j))))
                return true;
    return false;
}

/* A file's links inside its node of that number with so many GPUs, or NULL. */
static const struct topology_links *inside_links (const struct merge_source *s, int node,
                                                  int gpus)
{
    if (node < 0 || s->c->node[node].gpus != gpus)
        return NULL;
    return inside_only (s) ? &s->c->gpu_links : s->c->node[node].intra;
}

/* Who knows best what a link inside a node gives. */
enum { KNOWN_MEASURED, KNOWN_ESTIMATED, KNOWN_NOMINAL, KNOWN_KINDS };

/* Entry i -> j of the newest file that knows it; measured before estimated before nominal.
 * @param[out] error  of an estimate, NaN else */
static json_t *newest_entry (const struct merge *m, const int *node, int gpus, int i,
                             int j, double *error)
{
    *error = NAN;
    for (int kind = 0; kind < KNOWN_KINDS; kind++)
        for (int k = m->n - 1; k >= 0; k--) {
            const struct topology_links *l = inside_links (&m->source[k], node[k], gpus);
            double x, e;

            if (!l)
                continue;
            x = topology_matrix_at (&l->bytes_per_s, i, j);
            e = merge_error_at (l, i, j);
            if (isnan (x) || kind != (l->nominal  ? KNOWN_NOMINAL
                                      : isnan (e) ? KNOWN_MEASURED
                                                  : KNOWN_ESTIMATED))
                continue;
            *error = e;
            return json_real (x / UNITS_GB);
        }
    return json_null ();
}

/* The gaps of a node's matrix filled by other files. */
static void fill_intra (const struct merge *m, const int *node, int gpus, json_t *intra)
{
    json_t *rows = json_array (), *errors = json_array ();
    bool any = false;

    for (int i = 0; i < gpus; i++) {
        json_t *row = json_array (), *error_row = json_array ();

        for (int j = 0; j < gpus; j++) {
            double error = NAN;

            json_array_append_new (
                row, i == j ? json_null () : newest_entry (m, node, gpus, i, j, &error));
            json_array_append_new (error_row, json_number_or_null (error));
            any = any || !isnan (error);
        }
        json_array_append_new (rows, row);
        json_array_append_new (errors, error_row);
    }
    json_object_set_new (intra, "bandwidth_gb_per_s", rows);
    if (any)
        json_object_set (intra, "estimate_error", errors);
    else
        json_object_del (intra, "estimate_error");
    json_decref (errors);
}

/* One node's `intra`: the newest file's, the gaps of its matrix filled by older ones. */
static json_t *merge_intra (const struct merge *m, int at)
{
    const struct topology_links *l, *best = NULL;
    int gpus = merge_gpus_of (m, at), known = 0, newest = 0;
    int *node = memory_zeros ((size_t) m->n, sizeof *node);
    json_t *intra = NULL;

    for (int k = 0; node && k < m->n; k++) {
        node[k] = topology_node_find (m->source[k].c, merge_name_of (m, at));
        l = inside_links (&m->source[k], node[k], gpus);
        if (!l || gpus < 2)
            continue;
        known++;
        if (!best || !l->nominal || best->nominal) {
            best = l;
            newest = k;
        }
    }
    if (best)
        intra = intra_of (&m->source[newest], node[newest]);
    if (intra && known > 1 && has_gaps (best, gpus))
        fill_intra (m, node, gpus, intra);
    free (node);
    return intra;
}

/* `intra` for all nodes. */
static void merge_all_intra (struct merge *m, json_t *links)
{
    json_t *list = json_array ();
    bool any = false;

    for (int i = 0; i < m->n_nodes; i++) {
        json_t *one = merge_intra (m, i);

        any = any || one;
        json_array_append_new (list, one ? one : json_null ());
    }
    if (any)
        json_object_set_new (links, "intra", topology_intra_short (list));
    else
        json_decref (list);
}

/* ---- all links ---- */

/* Exceptions that say what is drained, of all files; the newest of two on one link. */
static void keep_drained (struct merge *m, json_t *links)
{
    json_t *list = json_object_get (links, "exceptions"), *one;
    size_t i;

    for (int k = 0; k < m->n; k++)
        json_array_foreach (
            json_object_get (json_object_get (m->source[k].doc, "links"), "exceptions"),
            i, one)
        {
            bool known = false;

            if (!json_object_get (one, "state"))
                continue;
            if (!list) {
                list = json_array ();
                json_object_set_new (links, "exceptions", list);
            }
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
        merge_all_intra (m, links);
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
            merge_all_intra (m, links);
    }
    links = json_object_get (m->doc, "links");
    keep_drained (m, links);
    keep_links_keys (m, links);
    return ST_OK;
}
