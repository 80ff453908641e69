/* Cluster files that tests write: by hand, from a matrix of rates, at random. */
#ifndef TESTS_LIB_CLUSTERS_H
#define TESTS_LIB_CLUSTERS_H

#include "tests/lib/fixture.h"
#include "topology/edit/edit.h"

/* ---- the parts of a file ---- */

/* "[1,null,3]": NAN is null. */
static inline void add_list (struct text *t, int n, const double *x)
{
    for (int i = 0; i < n; i++)
        text_add (t, isnan (x[i]) ? "%snull" : "%s%.6g", i ? "," : "[", x[i]);
    text_add (t, "]");
}

/* x is [n*n]. */
static inline void add_matrix (struct text *t, int n, const double *x)
{
    for (int i = 0; i < n; i++) {
        text_add (t, i ? "," : "[");
        add_list (t, n, x + i * n);
    }
    text_add (t, "]");
}

/* Node n<i>; the first one opens the file.  @param[in] speed  [gpus], or NULL */
static inline void add_node (struct text *t, int i, int gpus, const char *type,
                             const double *speed)
{
    text_add (t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\"",
              i ? "," : "{\"version\":1,\"name\":\"test\",\"nodes\":[", i, gpus, type);
    if (speed) {
        text_add (t, ",\"speed\":");
        add_list (t, gpus, speed);
    }
    text_add (t, "}");
}

/* The cluster of a text, which is released. */
static inline struct topology_cluster *cluster_written (struct text *t)
{
    struct topology_cluster *c = cluster_from (text_str (t));

    text_free (t);
    return c;
}

/* The drawn cluster, as from its file. */
static inline struct topology_cluster *
cluster_synthesized (const struct topology_synth *y)
{
    struct topology_document d = {0};
    struct topology_cluster *c;
    struct error err;

    ok (topology_synthesize (y, &d, NULL, &err), &err);
    ok (topology_cluster_from_json (d.doc, y->preset, NULL, &c, NULL, &err), &err);
    topology_document_release (&d);
    return c;
}

/* Equal nodes with these rates in GB/s between them, [nodes*nodes], and 200 inside; or with
 * these between all GPUs, [n*n]. */
static inline struct topology_cluster *
cluster_of_rates (int nodes, int gpus, const char *type, bool of_gpus, const double *rate)
{
    struct text t = {0};

    for (int i = 0; i < nodes; i++)
        add_node (&t, i, gpus, type, NULL);
    text_add (&t, "],\"links\":{");
    if (!of_gpus)
        text_add (&t, "\"intra\":{\"bandwidth_gb_per_s\":200,\"latency_us\":3},");
    text_add (&t, "\"%s\":{\"latency_us\":10,\"bandwidth_gb_per_s\":",
              of_gpus ? "gpu" : "inter");
    add_matrix (&t, of_gpus ? nodes * gpus : nodes, rate);
    text_add (&t, "}}}");
    return cluster_written (&t);
}

/* ---- random clusters ---- */

#define DRAWN_NODES 16
#define DRAWN_GPUS 128

/* What a cluster is drawn from. */
struct cluster_draw {
    int nodes, gpus; /* of each node */
    int most_gpus;   /* not 0: nodes of 1 to `gpus`, in all no more than these */
    int type, types; /* the first of drawn_types, and of how many from there (0: 1) */
    int speeds;      /* not 0: half of the nodes have GPUs of this many of drawn_speeds */
    double inside[2], between[2]; /* GB/s, from and to, log-uniform */
    double unmeasured;            /* part of the links between nodes or GPUs */
    double bad;                   /* not 0: all links of node 0 to others are this part */
    bool by_type;                 /* rates follow the slower end's type */
    bool totals;    /* what all GPUs of a node reach together is known, maybe by pairs */
    bool gpu_links; /* of each two GPUs, not of nodes */
    bool forms;     /* whatever a file may say, each as it comes: a number or a matrix,
                       latencies that differ, totals, rails, links of GPUs; some links inside
                       nodes are not measured either */
};

static const struct {
    const char *name;
    double rate; /* of its links, beside an A100's */
} drawn_types[] = {{"a100-sxm4-80g", 1}, {"h100-sxm5-80g", 2}, {"v100-sxm2-32g", .5},
                   {"a100-sxm4-40g", 1}, {"l40s", .4},         {"t4", .2}};
static const double drawn_speeds[] = {1, 1, .6, 1, .97, .9, .5, 1.2};

struct drawing {
    const struct cluster_draw *d;
    struct rng *r;
    struct text t;
    int size[DRAWN_NODES], type[DRAWN_NODES];
    int node[DRAWN_NODES], node_of_gpu[DRAWN_GPUS], gpus;
};

static inline double drawn (struct rng *r, double lo, double hi)
{
    return lo * pow (hi / lo, rng_unit (r));
}

static inline double drawn_rate (struct drawing *x, int a, int b)
{
    const double *range = a == b ? x->d->inside : x->d->between;
    double of[2] = {drawn_types[x->type[a]].rate, drawn_types[x->type[b]].rate};

    return drawn (x->r, range[0], range[1]) * (x->d->by_type ? fmin (of[0], of[1]) : 1) *
           (x->d->bad > 0 && a != b && (a == 0 || b == 0) ? x->d->bad : 1);
}

/* Rates between n nodes or GPUs, on these nodes, as a matrix or one number. */
static inline void add_rates (struct drawing *x, int n, const int *node,
                              double unmeasured, bool matrix)
{
    double rate[DRAWN_GPUS * DRAWN_GPUS];

    text_add (&x->t, "\"bandwidth_gb_per_s\":");
    if (!matrix) {
        text_add (&x->t, "%.6g", drawn_rate (x, node[0], node[n - 1]));
        return;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            bool none = i != j && unmeasured > 0 && rng_unit (x->r) < unmeasured;

            rate[i * n + j] = none ? NAN : drawn_rate (x, node[i], node[j]);
        }
    add_matrix (&x->t, n, rate);
}

static inline void add_latency (struct drawing *x, int n, int usual)
{
    const int some[] = {0, 3, 10, 300, 5 + rng_below (x->r, 200)};
    double us[DRAWN_GPUS * DRAWN_GPUS];

    text_add (&x->t, "\"latency_us\":");
    if (x->d->forms && x->d->unmeasured <= 0 && rng_below (x->r, 4) == 0) {
        for (int k = 0; k < n * n; k++)
            us[k] = drawn (x->r, 1, 3000);
        add_matrix (&x->t, n, us);
    } else {
        text_add (&x->t, "%d", x->d->forms ? some[rng_below (x->r, 5)] : usual);
    }
    text_add (&x->t, ",");
}

/* Nodes with links inside. */
static inline void add_nodes (struct drawing *x)
{
    const struct cluster_draw *d = x->d;
    int left = d->most_gpus;

    assert_true (d->nodes <= DRAWN_NODES && d->nodes * d->gpus <= DRAWN_GPUS);
    for (int i = 0; i < d->nodes; i++) {
        int most = left - (d->nodes - 1 - i);
        double speed[DRAWN_GPUS];
        bool unlike;

        x->node[i] = i;
        x->size[i] = d->most_gpus ? 1 + rng_below (x->r, most < d->gpus ? most : d->gpus)
                                  : d->gpus;
        left -= x->size[i];
        x->type[i] = d->type + (d->types > 1 ? rng_below (x->r, d->types) : 0);
        unlike = d->speeds > 0 && rng_below (x->r, 2);
        for (int k = 0; k < x->size[i]; k++) {
            x->node_of_gpu[x->gpus++] = i;
            speed[k] = unlike ? drawn_speeds[rng_below (x->r, d->speeds)] : 1;
        }
        add_node (&x->t, i, x->size[i], drawn_types[x->type[i]].name,
                  unlike ? speed : NULL);
    }
    text_add (&x->t, "],\"links\":{");
}

static inline void add_inside (struct drawing *x)
{
    const struct cluster_draw *d = x->d;
    bool matrix = false;

    text_add (&x->t, "\"intra\":[");
    for (int i = 0, gpu = 0; i < d->nodes; gpu += x->size[i++]) {
        if (i == 0 || d->forms)
            matrix = rng_below (x->r, 2);
        text_add (&x->t, i ? ",{" : "{");
        add_latency (x, x->size[i], 3);
        if (d->forms && rng_below (x->r, 6) == 0)
            text_add (&x->t, "\"gpu_gb_per_s\":%.4g,", drawn (x->r, 1, 400));
        add_rates (x, x->size[i], x->node_of_gpu + gpu, d->forms ? d->unmeasured / 2 : 0,
                   matrix);
        text_add (&x->t, "}");
    }
    text_add (&x->t, "]");
}

/* What all GPUs of a node reach together, of some nodes or pairs not known. */
static inline void add_totals (struct drawing *x)
{
    const struct cluster_draw *d = x->d;
    int n = d->nodes, how = d->forms ? rng_below (x->r, 4) : 0;
    double v[DRAWN_NODES * DRAWN_NODES], of_gpu = sqrt (d->between[0] * d->between[1]);

    if (how == 0)
        text_add (&x->t, "\"node_gb_per_s\":%.4g,",
                  d->forms ? drawn (x->r, 2, 400)
                           : of_gpu * (1 + rng_below (x->r, d->gpus)));
    if (how == 1) {
        for (int i = 0; i < n; i++)
            v[i] = rng_below (x->r, 5) ? drawn (x->r, 2, 400) : NAN;
        text_add (&x->t, "\"node_gb_per_s\":");
        add_list (&x->t, n, v);
        text_add (&x->t, ",");
    }
    if (rng_below (x->r, 2)) {
        for (int k = 0; k < n * n; k++)
            v[k] = rng_below (x->r, 10) ? drawn (x->r, d->forms ? 1 : 5, 20.0 * d->gpus)
                                        : NAN;
        text_add (&x->t, "\"node_pair_gb_per_s\":");
        add_matrix (&x->t, n, v);
        text_add (&x->t, ",");
    }
}

/* Links between nodes: of nodes, of rails too, or of single GPUs. */
static inline void add_between (struct drawing *x)
{
    const struct cluster_draw *d = x->d;
    int way = d->forms ? rng_below (x->r, 6) : 2, rails = 1 + rng_below (x->r, 4);
    bool of_gpus = d->gpu_links || way == 0;
    int n = of_gpus ? x->gpus : d->nodes;
    const int *node = of_gpus ? x->node_of_gpu : x->node;

    text_add (&x->t, "\"%s\":{", of_gpus ? "gpu" : "inter");
    add_latency (x, n, 10);
    if (d->totals || d->forms)
        add_totals (x);
    for (int k = 0; k < rails && way == 1; k++) {
        text_add (&x->t, k ? "},{" : "\"rails\":[{");
        add_latency (x, d->nodes, 10);
        add_rates (x, d->nodes, x->node, 0, rng_below (x->r, 2));
        text_add (&x->t, k == rails - 1 ? "}]," : "");
    }
    add_rates (x, n, node, d->unmeasured, !d->forms || rng_below (x->r, 2));
    text_add (&x->t, "}");
}

static inline struct topology_cluster *drawn_cluster (struct rng *r,
                                                      const struct cluster_draw *d)
{
    struct drawing x = {.d = d, .r = r};
    bool inside = d->forms || (!d->gpu_links && d->gpus > 1),
         between = d->nodes > 1 || d->gpu_links;

    add_nodes (&x);
    if (inside)
        add_inside (&x);
    if (inside && between)
        text_add (&x.t, ",");
    if (between)
        add_between (&x);
    text_add (&x.t, "}}");
    return cluster_written (&x.t);
}

/* Equal nodes of A100s with random directed links over a factor `spread`: inside nodes
 * around 200 GB/s, between them around 20. */
static inline struct topology_cluster *random_cluster (struct rng *r, int nodes, int gpus,
                                                       double spread, double unmeasured,
                                                       bool totals, bool gpu_links)
{
    double low = 1 / sqrt (spread), high = sqrt (spread);

    return drawn_cluster (r, &(struct cluster_draw){.nodes = nodes,
                                                    .gpus = gpus,
                                                    .inside = {200 * low, 200 * high},
                                                    .between = {20 * low, 20 * high},
                                                    .unmeasured = unmeasured,
                                                    .totals = totals,
                                                    .gpu_links = gpu_links});
}

#endif
