/* Statements about links: one, what two nodes reach together, and nodes as good as others. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "topology/edit/change_private.h"
#include "topology/topology_private.h"
#include "topology/typical.h"

static enum status except (struct change *x, const char *from, const char *to,
                           json_t *gb_per_s)
{
    json_t *list = json_array_in (json_object_get (x->doc, "links"), "exceptions");

    return json_array_append_new (list, json_pack ("{s:s, s:s, s:o}", "from", from, "to",
                                                   to, "bandwidth_gb_per_s", gb_per_s))
               ? err_nomem (x->err)
               : ST_OK;
}

enum status change_link (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false, broken = strcmp (x->arg[1], "null") == 0;
    double gb_per_s = NAN;

    if (!broken && change_number_of (x, 1, &gb_per_s) != ST_OK)
        return err_set (x->err, ST_USAGE,
                        "expected GB/s from 1e-9 to 1e9, or null, found \"%s\"",
                        x->arg[1]);
    TRY (change_ends_of (x, &from, &to, &both));
    TRY (except (x, from, to, json_number_or_null (gb_per_s)));
    return both ? except (x, to, from, json_number_or_null (gb_per_s)) : ST_OK;
}

/* ---- what all GPUs of two nodes reach together ---- */

/* The rows of node_pair_gb_per_s, made where the file has a number, a rule or another file. */
static json_t *total_rows (struct change *x)
{
    const struct topology_cluster *c = x->c;
    json_t *rows = json_object_get (change_net_of (x->doc), "node_pair_gb_per_s");

    if (json_is_array (rows))
        return rows;
    rows = topology_matrix_json (&c->pair_bytes_per_s, c->n_nodes, UNITS_GB);
    json_object_set_new (change_net_of (x->doc), "node_pair_gb_per_s", rows);
    return rows;
}

static void put_total (struct change *x, int from, int to, double bytes_per_s)
{
    json_array_set_new (json_array_get (total_rows (x), (size_t) from), (size_t) to,
                        json_number_or_null (bytes_per_s / UNITS_GB));
}

static enum status need_totals (const struct change *x)
{
    return x->c->has_pair_totals
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "the cluster %s does not say what the GPUs of two nodes reach "
                          "together (links.inter.node_pair_gb_per_s)",
                          x->c->name);
}

enum status change_total (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false;
    double gb_per_s;
    int a, b;

    TRY (change_number_of (x, 1, &gb_per_s));
    TRY (need_totals (x));
    TRY (change_ends_of (x, &from, &to, &both));
    TRY (change_node_of (x, from, &a));
    TRY (change_node_of (x, to, &b));
    put_total (x, a, b, gb_per_s * UNITS_GB);
    if (both)
        put_total (x, b, a, gb_per_s * UNITS_GB);
    return ST_OK;
}

enum status change_totals (struct change *x)
{
    json_t *row;
    double by;
    size_t i;

    TRY (change_number_of (x, 0, &by));
    TRY (need_totals (x));
    json_array_foreach (total_rows (x), i, row)
    {
        for (size_t j = 0; j < json_array_size (row); j++) {
            const json_t *pair = json_array_get (row, j);

            if (json_is_number (pair))
                json_array_set_new (row, j, json_real (by * json_number_value (pair)));
        }
    }
    return ST_OK;
}

/* ---- as good as others ---- */

/* Raise what is below the median of all links between nodes, to and from one. */
static enum status mend_links (struct change *x, int node)
{
    struct topology_link_stats stats = {0};
    const struct topology_cluster *c = x->c;

    if (c->n_nodes > 1)
        TRY (topology_inter_stats (c, &stats, x->err));
    for (int k = 0; k < 2 * c->n_nodes; k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;
        struct topology_link l;

        if (other == node || c->node[other].drained)
            continue;
        l = topology_link (c, c->node[a].first_gpu, c->node[b].first_gpu);
        if (!l.measured || l.bytes_per_s < stats.median_bytes_per_s)
            TRY (except (x, c->node[a].name, c->node[b].name,
                         json_real (stats.median_bytes_per_s / UNITS_GB)));
    }
    return ST_OK;
}

/* The same of what the GPUs of one and of each other node reach together. */
static enum status mend_totals (struct change *x, int node)
{
    const struct topology_matrix *m = &x->c->pair_bytes_per_s;
    double typical;

    TRY (topology_pair_typical (x->c, &typical, x->err));
    for (int k = 0; k < 2 * x->c->n_nodes && !isnan (typical); k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;

        if (other != node && !(topology_matrix_at (m, a, b) >= typical))
            put_total (x, a, b, typical);
    }
    return ST_OK;
}

/* A link inside a node that is below what is usual. */
static enum status mend_inside_link (struct change *x, struct topology_inside *usual,
                                     int src, int dst)
{
    struct topology_link l = topology_link_given (x->c, src, dst);
    double typical = topology_inside_typical (usual, src, dst);
    const char *name = x->c->node[x->c->node_of_gpu[src]].name;
    char from[TOPOLOGY_PLACE_TEXT], to[TOPOLOGY_PLACE_TEXT];

    if (isnan (typical) || (l.measured && l.bytes_per_s >= typical))
        return ST_OK;
    return except (x, topology_place_text (name, topology_gpu_index (x->c, src), from),
                   topology_place_text (name, topology_gpu_index (x->c, dst), to),
                   json_real (typical / UNITS_GB));
}

static enum status mend_inside (struct change *x, int node)
{
    int first = x->c->node[node].first_gpu, n = x->c->node[node].gpus;
    struct topology_inside *usual;
    enum status st = ST_OK;

    if (n < 2 || (!x->c->node[node].intra && !x->c->has_gpu_matrix))
        return ST_OK;
    TRY (topology_inside_create (x->c, &usual, x->err));
    for (int k = 0; k < n * n && st == ST_OK; k++)
        if (k / n != k % n)
            st = mend_inside_link (x, usual, first + k / n, first + k % n);
    topology_inside_destroy (usual);
    return st;
}

static enum status mend_node (struct change *x, int node)
{
    json_t *at = change_node_at (x, node);

    json_object_del (at, "speed");
    json_object_del (at, "state");
    TRY (mend_links (x, node));
    TRY (mend_totals (x, node));
    return mend_inside (x, node);
}

enum status change_mend (struct change *x)
{
    return change_for_nodes (x, x->n, mend_node);
}
