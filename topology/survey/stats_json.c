/* Statistics of links as a document: what `cluster show --json` and `compare --json` print. */
#include "base/units.h"
#include "topology/survey/survey.h"

/* 0 stands for "nothing measured". */
static json_t *rate (double bytes_per_s)
{
    return bytes_per_s > 0 ? json_real (bytes_per_s / UNITS_GB) : json_null ();
}

static json_t *number_from_0 (int x)
{
    return x >= 0 ? json_integer (x) : json_null ();
}

static json_t *tier_json (const struct topology_cluster *c, const struct topology_tier *t)
{
    const double *q = t->quantile_bytes_per_s;
    bool any = q[QUANTILE_MAX] > 0;
    char name[64];

    return json_pack (
        "{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tier",
        topology_tier_text (c, t, name), "hops", number_from_0 (t->hops), "same_rail",
        t->rail < 0 ? json_null () : json_boolean (t->rail), "links",
        (json_int_t) t->links, "unmeasured", (json_int_t) t->unmeasured, "min_gb_per_s",
        rate (q[QUANTILE_MIN]), "p5_gb_per_s", rate (q[QUANTILE_5]), "median_gb_per_s",
        rate (q[QUANTILE_50]), "p95_gb_per_s", rate (q[QUANTILE_95]), "max_gb_per_s",
        rate (q[QUANTILE_MAX]), "latency_us",
        any ? json_real (t->latency_s / UNITS_US) : json_null (), "cv",
        any ? json_real (t->cv) : json_null ());
}

static json_t *outlier_json (const struct topology_cluster *c,
                             const struct topology_outlier *o)
{
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    return json_pack (
        "{s:s, s:s, s:o, s:o, s:f}", "from", topology_end_text (c, o->from, from), "to",
        topology_end_text (c, o->to, to), "gb_per_s", rate (o->bytes_per_s),
        "back_gb_per_s", rate (o->back_bytes_per_s), "share_of_median", o->share);
}

static json_t *node_json (const struct topology_cluster *c, int i,
                          const struct topology_node_stats *s)
{
    const struct topology_node *n = &c->node[i];

    return json_pack (
        "{s:s, s:i, s:i, s:s?, s:s, s:s?, s:o, s:o, s:o, s:s?, s:I}", "name", n->name,
        "gpus", n->gpus_listed, "gpus_in_use", n->drained ? 0 : n->gpus, "gpu_type",
        n->type ? n->type->name : NULL, "state", n->drained ? "drained" : "ok", "rack",
        n->rack, "out_gb_per_s", rate (s->out_bytes_per_s), "in_gb_per_s",
        rate (s->in_bytes_per_s), "lowest_gb_per_s", rate (s->lowest_bytes_per_s),
        "lowest_to", s->lowest_node >= 0 ? c->node[s->lowest_node].name : NULL,
        "unmeasured", (json_int_t) s->unmeasured);
}

json_t *topology_stats_json (const struct topology_cluster *c,
                             const struct topology_stats *s)
{
    json_t *nodes = json_array (), *tiers = json_array (), *worst = json_array ();

    for (int i = 0; i < c->n_nodes; i++)
        json_array_append_new (nodes, node_json (c, i, &s->node[i]));
    for (int k = 0; k < s->n_tiers; k++)
        json_array_append_new (tiers, tier_json (c, &s->tier[k]));
    for (int k = 0; k < s->n_worst; k++)
        json_array_append_new (worst, outlier_json (c, &s->worst[k]));
    return json_pack (
        "{s:s, s:i, s:i, s:o, s:o, s:o, s:{s:I, s:o, s:o}, s:I, s:o, s:b}", "name",
        c->name, "n_nodes", c->n_nodes, "n_gpus", c->n_gpus, "nominal_links",
        topology_nominal (c), "nodes", nodes, "tiers", tiers, "asymmetry", "pairs",
        (json_int_t) s->asymmetry_pairs, "mean",
        s->asymmetry_pairs > 0 ? json_real (s->asymmetry_mean) : json_null (), "max",
        s->asymmetry_pairs > 0 ? json_real (s->asymmetry_max) : json_null (),
        "slow_links", (json_int_t) s->slow, "worst", worst, "sampled", s->sampled);
}
