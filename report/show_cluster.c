/* A cluster's links as the page draws them: all pairs of nodes while there is room, then
 * neighbouring nodes share a cell, which holds their mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/report_private.h"

#define NUMBERS_MAX 128 /* nodes whose pairs are written as numbers */
#define WORST 10        /* links that are marked */

/* Rates between cells of nodes. */
struct grid {
    int n;            /* cells on a side */
    double *gb_per_s; /* [n*n] NaN: nobody measured it */
};

/* Cells on a side so that a matrix takes at most so many characters. */
static int cells_for (int nodes, double most)
{
    int cells = nodes;

    while ((double) cells * cells > most)
        cells = (cells + 1) / 2;
    return cells;
}

/* As many digits as there is room for. */
static json_t *grid_json (const struct grid *g, int nodes, double most)
{
    size_t pairs = (size_t) g->n * (size_t) g->n;
    int digits = nodes <= NUMBERS_MAX ? 0 : 2.0 * (double) pairs <= most ? 2 : 1;
    json_t *doc = report_rates (g->gb_per_s, pairs, digits);

    json_object_set_new (doc, "n", json_integer (g->n));
    return doc;
}

static enum status links_json (const struct topology_cluster *c,
                               double median_bytes_per_s, double most,
                               const struct topology_watch *watch, json_t **out,
                               struct error *err)
{
    struct topology_heat heat;

    TRY (topology_heat_collect (c, cells_for (c->n_nodes, most), median_bytes_per_s,
                                watch, &heat, err));
    for (int k = 0; k < heat.n * heat.n; k++)
        heat.share[k] *= heat.median_bytes_per_s / UNITS_GB;
    *out = heat.n > 0 ? grid_json (&(struct grid){heat.n, heat.share}, c->n_nodes, most)
                      : json_null ();
    topology_heat_release (&heat);
    return ST_OK;
}

/* What all GPUs of a pair reach together. */
static enum status pairs_json (const struct topology_cluster *c, double most,
                               json_t **out, struct error *err)
{
    struct grid g = {.n = c->has_pair_totals ? cells_for (c->n_nodes, most) : 0};
    size_t pairs = (size_t) g.n * (size_t) g.n;
    int *count = calloc (pairs + 1, sizeof *count);

    g.gb_per_s = calloc (pairs + 1, sizeof *g.gb_per_s);
    if (!count || !g.gb_per_s) {
        free (count);
        free (g.gb_per_s);
        return err_nomem (err);
    }
    for (int i = 0; i < c->n_nodes && g.n > 0; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double rate = topology_matrix_at (&c->pair_bytes_per_s, i, j) / UNITS_GB;
            size_t at = (size_t) ((long long) i * g.n / c->n_nodes) * (size_t) g.n +
                        (size_t) ((long long) j * g.n / c->n_nodes);

            if (i != j && !isnan (rate)) {
                g.gb_per_s[at] += rate;
                count[at]++;
            }
        }
    for (size_t k = 0; k < pairs; k++)
        g.gb_per_s[k] = count[k] > 0 ? g.gb_per_s[k] / count[k] : NAN;
    *out = g.n > 0 ? grid_json (&g, c->n_nodes, most) : json_null ();
    free (count);
    free (g.gb_per_s);
    return ST_OK;
}

/* Leave out what the page takes for granted: thousands of nodes are mostly alike. */
static void shorten_nodes (json_t *nodes)
{
    static const char *const rate[] = {"out_gb_per_s", "in_gb_per_s", "lowest_gb_per_s"};
    const char *key;
    json_t *node, *value;
    void *next;
    size_t i;

    json_array_foreach (nodes, i, node)
    {
        json_object_foreach_safe (node, next, key, value)
        {
            const char *text = json_string_value (value);

            if (json_is_null (value) || (text && strcmp (text, "ok") == 0))
                json_object_del (node, key);
        }
        json_object_del (node, "gpus_in_use");
        json_object_del (node, "unmeasured");
        for (size_t k = 0; k < sizeof rate / sizeof *rate; k++)
            if ((value = json_object_get (node, rate[k])))
                json_object_set_new (node, rate[k],
                                     report_rate (json_number_value (value) * UNITS_GB));
    }
}

enum status report_cluster (const struct topology_cluster *c, double most,
                            const struct topology_watch *watch, json_t **out,
                            struct error *err)
{
    /* Links and pairs' totals share the room. */
    double room = c->has_pair_totals ? most / 2 : most;
    struct topology_stats stats;
    json_t *doc, *links = NULL, *pairs = NULL;
    enum status st;

    TRY (topology_stats_collect (c, WORST, watch, &stats, err));
    st = links_json (c, stats.between_median_bytes_per_s, room, watch, &links, err);
    if (st == ST_OK)
        st = pairs_json (c, room, &pairs, err);
    if (st == ST_OK && !(doc = topology_stats_json (c, &stats)))
        st = err_nomem (err);
    if (st == ST_OK) {
        shorten_nodes (json_object_get (doc, "nodes"));
        json_object_set (doc, "links", links);
        json_object_set (doc, "pairs", pairs);
        json_object_set_new (doc, "median_gb_per_s",
                             report_rate (stats.between_median_bytes_per_s));
        json_object_set (doc, "source", json_object_get (c->doc, "source"));
        *out = doc;
    }
    json_decref (links);
    json_decref (pairs);
    topology_stats_release (&stats);
    return st;
}
