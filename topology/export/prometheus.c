/* The health of links and nodes as Prometheus reads it: text exposition format 0.0.4, base units,
 * one family after another.  What nobody measured has no bandwidth and no latency, so that no
 * alert is about a number that nobody saw.  Of large clusters only the links between nodes that
 * are slow or unmeasured are written: one server takes a few million series. */
#include <string.h>

#include "topology/export/export_private.h"

#define NODES_ALL 256 /* nodes of which all links are written */

enum { BANDWIDTH, LATENCY, MEASURED, TOTAL, FAMILIES };
static const struct {
    const char *name, *help;
} families[FAMILIES] = {
    {"linkwise_link_bandwidth_bytes_per_second",
     "One-way payload of one GPU pair alone, by the last measurement."},
    {"linkwise_link_latency_seconds", "One-way latency, by the last measurement."},
    {"linkwise_link_measured",
     "1: measured; 0: unmeasured, estimated from other links or a data sheet's."},
    {"linkwise_node_pair_bandwidth_bytes_per_second",
     "What all GPUs of a node send to those of another together."}};

struct writing {
    const struct exporting *x;
    double skip_from; /* bytes/s between nodes; INFINITY: nothing is left out */
    struct text family[FAMILIES]; /* lines of all links, while they are visited once */
};

static void add_head (struct text *t, const char *name, const char *help)
{
    text_add (t, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void add_name (const struct exporting *x, struct text *t, const char *name)
{
    text_add (t, "%s{cluster=\"", name);
    export_add_escaped (t, x->title);
}

static void add_link (struct writing *w, int family, const char *from, const char *to,
                      double value)
{
    add_name (w->x, &w->family[family], families[family].name);
    text_add (&w->family[family], "\",from=\"%s\",to=\"%s\"} %.9g\n", from, to, value);
}

static void see (void *context, const struct topology_visited *v)
{
    struct writing *w = context;
    const struct topology_cluster *c = w->x->c;
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    if (v->from.node != v->to.node && v->link.measured &&
        v->link.bytes_per_s >= w->skip_from)
        return;
    topology_end_text (c, v->from, from);
    topology_end_text (c, v->to, to);
    if (v->link.measured) {
        add_link (w, BANDWIDTH, from, to, v->link.bytes_per_s);
        add_link (w, LATENCY, from, to, v->link.latency_s);
    }
    add_link (w, MEASURED, from, to, strcmp (export_known (c, v), "measured") == 0);
}

static void see_totals (struct writing *w)
{
    const struct topology_cluster *c = w->x->c;

    for (int i = 0; c->has_pair_totals && isinf (w->skip_from) && i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double total = i == j ? NAN : topology_matrix_at (&c->pair_bytes_per_s, i, j);

            if (!isnan (total))
                add_link (w, TOTAL, c->node[i].name, c->node[j].name, total);
        }
}

static int drained (const struct topology_node *n)
{
    return n->drained;
}
static int listed (const struct topology_node *n)
{
    return n->gpus_listed;
}
static int in_use (const struct topology_node *n)
{
    return n->drained ? 0 : n->gpus;
}

static void add_nodes (const struct exporting *x)
{
    static const struct {
        const char *name, *help;
        int (*value) (const struct topology_node *n);
    } gauge[] = {{"linkwise_node_drained", "1: the node is taken out of use.", drained},
                 {"linkwise_node_gpus", "GPUs that the node has.", listed},
                 {"linkwise_node_gpus_in_use", "GPUs that are not drained.", in_use}};

    for (size_t k = 0; k < sizeof gauge / sizeof *gauge; k++) {
        add_head (x->file, gauge[k].name, gauge[k].help);
        for (int i = 0; i < x->c->n_nodes; i++) {
            add_name (x, x->file, gauge[k].name);
            text_add (x->file, "\",node=\"%s\"} %d\n", x->c->node[i].name,
                      gauge[k].value (&x->c->node[i]));
        }
    }
}

static enum status write (struct exporting *x, struct error *err)
{
    struct writing w = {.x = x, .skip_from = INFINITY};
    struct topology_stats stats;

    if (x->c->n_nodes > NODES_ALL) {
        TRY (topology_stats_collect (x->c, 0, x->watch, &stats, err));
        w.skip_from = TOPOLOGY_SLOW * stats.between_median_bytes_per_s;
        topology_stats_release (&stats);
        text_add (x->file,
                  "# Between nodes: the links under %.0f %% of the median, and the "
                  "unmeasured.\n",
                  100 * TOPOLOGY_SLOW);
    }
    export_visit (x, see, &w);
    see_totals (&w);
    for (int k = 0; k < FAMILIES; k++) {
        if (w.family[k].len > 0) {
            add_head (x->file, families[k].name, families[k].help);
            text_add_mem (x->file, text_str (&w.family[k]), w.family[k].len);
        }
        x->file->failed = x->file->failed || w.family[k].failed;
        text_free (&w.family[k]);
    }
    add_nodes (x);
    return ST_OK;
}

const struct export_format export_prometheus = {
    .format = {"prometheus", "link and node health in the text exposition format"},
    .write = write};
