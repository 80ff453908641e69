/* A cluster's links as the page draws them: all pairs of nodes while there is room, then
 * neighbouring nodes share a cell, which holds their mean. */
#include <string.h>

#include "base/units.h"
#include "report/report_private.h"

#define NUMBERS_MAX 128 /* nodes whose pairs are written as numbers */
#define WORST 10        /* links that are marked */

/* A map as rates, with as many digits as there is room for; null where there is none. */
static json_t *rates_json (struct topology_heat *heat, int nodes, double most)
{
    size_t pairs = (size_t) heat->n * (size_t) heat->n;
    int digits = nodes <= NUMBERS_MAX ? 0 : 2.0 * (double) pairs <= most ? 2 : 1;
    json_t *doc;

    if (heat->n == 0)
        return json_null ();
    for (size_t k = 0; k < pairs; k++)
        heat->share[k] *= heat->of_bytes_per_s / UNITS_GB;
    doc = report_rates (heat->share, pairs, digits);
    json_object_set_new (doc, "n", json_integer (heat->n));
    return doc;
}

/* One pair of GPUs alone, and what all GPUs of a pair of nodes reach together. */
static enum status maps_json (const struct topology_cluster *c, double median_bytes_per_s,
                              double most, const struct topology_watch *watch,
                              json_t **links, json_t **pairs, struct error *err)
{
    int cells = c->n_nodes; /* on a side */
    struct topology_heat heat;

    while ((double) cells * cells > most)
        cells = (cells + 1) / 2;
    TRY (topology_heat_collect (c, cells, median_bytes_per_s, watch, &heat, err));
    *links = rates_json (&heat, c->n_nodes, most);
    topology_heat_release (&heat);
    TRY (topology_heat_totals (c, cells, &heat, err));
    *pairs = rates_json (&heat, c->n_nodes, most);
    topology_heat_release (&heat);
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
    st =
        maps_json (c, stats.between_median_bytes_per_s, room, watch, &links, &pairs, err);
    if (st == ST_OK && !(doc = topology_stats_json (c, &stats)))
        st = err_nomem (err);
    if (st == ST_OK) {
        shorten_nodes (json_object_get (doc, "nodes"));
        json_object_set (doc, "links", links);
        json_object_set (doc, "pairs", pairs);
        json_object_set_new (doc, "median_gb_per_s",
                             report_rate (stats.between_median_bytes_per_s));
        json_object_set_new (doc, "slow_share", json_real (TOPOLOGY_SLOW));
        json_object_set (doc, "source", json_object_get (c->doc, "source"));
        *out = doc;
    }
    JSON_DECREF_ALL (links, pairs);
    topology_stats_release (&stats);
    return st;
}
