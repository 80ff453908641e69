/* Statistics of a cluster's links, in two passes: the first finds each tier's
 * percentiles, the second what stands out from them. */
#include "topology/stats.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/stats.h"
#include "topology/topology_private.h"

#define SAMPLE_MAX (1 << 20) /* links of a tier whose values are kept */

const char *topology_end_text (const struct topology_cluster *c, struct topology_end e,
                               char buf[TOPOLOGY_END_TEXT])
{
    if (e.gpu < 0)
        snprintf (buf, TOPOLOGY_END_TEXT, "%s", c->node[e.node].name);
    else
        snprintf (buf, TOPOLOGY_END_TEXT, "%s:%d", c->node[e.node].name,
                  topology_gpu_index (c, e.gpu));
    return buf;
}

/* ---- going through the links ---- */

static void visit_inside (const struct topology_cluster *c, int i, topology_visit_fn *fn,
                          void *context)
{
    const struct topology_node *n = &c->node[i];
    double g = n->gpus;

    if (n->gpus < 2 || (!n->intra && !c->has_gpu_matrix))
        return;
    if (!c->has_gpu_matrix && n->intra->bytes_per_s.n == 0 &&
        n->intra->latency_s.n == 0) {
        fn (context, (struct topology_end){i, -1}, (struct topology_end){i, -1},
            topology_link_given (c, n->first_gpu, n->first_gpu + 1), g * (g - 1));
        return;
    }
    for (int x = n->first_gpu; x < n->first_gpu + n->gpus; x++)
        for (int y = n->first_gpu; y < n->first_gpu + n->gpus; y++)
            if (x != y)
                fn (context, (struct topology_end){i, x}, (struct topology_end){i, y},
                    topology_link_given (c, x, y), 1);
}

static void tell (const struct topology_watch *watch, int done, int all)
{
    if (watch && done % 64 == 0)
        watch->progress (watch->context, (double) done / all);
}

/* All GPUs of two nodes alike. */
static void visit_nodes (const struct topology_cluster *c, topology_visit_fn *fn,
                         void *context, const struct topology_watch *watch)
{
    double n = c->n_nodes;

    if (c->inter.bytes_per_s.n == 0 && c->inter.latency_s.n == 0) {
        fn (context, (struct topology_end){0, -1}, (struct topology_end){1, -1},
            topology_node_link (c, 0, 1), n * (n - 1));
        return;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        tell (watch, i, c->n_nodes);
        for (int j = 0; j < c->n_nodes; j++) {
            struct topology_link l;

            if (i == j)
                continue;
            l = topology_node_link (c, i, j);
            if (!l.measured)
                l.bytes_per_s = 0;
            fn (context, (struct topology_end){i, -1}, (struct topology_end){j, -1}, l,
                1);
        }
    }
}

static int rail_number (const struct topology_cluster *c, int gpu)
{
    return c->n_rails > 0 ? topology_rail_of (c, gpu) : -1;
}

/* The GPUs of two nodes.  Those of different rails see one link where no exception names
 * a GPU, so that one visit is enough for them. */
static void visit_gpus (const struct topology_cluster *c, int i, int j,
                        topology_visit_fn *fn, void *context)
{
    const struct topology_node *a = &c->node[i], *b = &c->node[j];
    bool single = c->has_gpu_matrix || c->except_bytes_per_s || c->except_latency_s;
    int crossing = 0, first_x = -1, first_y = -1;

    for (int x = a->first_gpu; x < a->first_gpu + a->gpus; x++)
        for (int y = b->first_gpu; y < b->first_gpu + b->gpus; y++) {
            if (!single && rail_number (c, x) != rail_number (c, y)) {
                first_x = crossing == 0 ? x : first_x;
                first_y = crossing == 0 ? y : first_y;
                crossing++;
                continue;
            }
            fn (context, (struct topology_end){i, x}, (struct topology_end){j, y},
                topology_link_given (c, x, y), 1);
        }
    if (crossing > 0)
        fn (context, (struct topology_end){i, first_x}, (struct topology_end){j, first_y},
            topology_link_given (c, first_x, first_y), crossing);
}

void topology_links_visit (const struct topology_cluster *c, topology_visit_fn *fn,
                           void *context, const struct topology_watch *watch)
{
    for (int i = 0; i < c->n_nodes; i++)
        visit_inside (c, i, fn, context);
    if (c->n_nodes > 1 && !c->has_gpu_links && c->has_inter)
        visit_nodes (c, fn, context, watch);
    for (int i = 0; c->has_gpu_links && i < c->n_nodes; i++) {
        tell (watch, i, c->n_nodes);
        for (int j = 0; j < c->n_nodes; j++)
            if (i != j)
                visit_gpus (c, i, j, fn, context);
    }
}

/* ---- tiers ---- */

/* A tier while its values are collected. */
struct bucket {
    struct topology_tier tier;
    double *bw, *latency_s; /* [n] */
    size_t n, cap;
    bool one_latency;
    double sum, sum_square, measured;
};

struct collecting {
    const struct topology_cluster *c;
    struct bucket *bucket;
    int n;
    bool tiers; /* tell distances and rails apart */
    bool racks; /* distances come from racks: no node has switches */
    bool failed;
    int stride; /* one link of so many is kept for the percentiles */
    struct rng rng;
    struct topology_stats *out;
    int worst_max;
    double asymmetry_sum;
    const struct topology_watch *watch;
};

static int distance (const struct collecting *w, int a, int b)
{
    const struct topology_cluster *c = w->c;

    if (!w->racks)
        return topology_hops (c, a, b);
    return !c->node[a].rack || !c->node[b].rack             ? -1
           : strcmp (c->node[a].rack, c->node[b].rack) == 0 ? 0
                                                            : 1;
}

static struct bucket *bucket_of (struct collecting *w, struct topology_end from,
                                 struct topology_end to)
{
    enum topology_where where = from.node == to.node ? TOPOLOGY_INSIDE : TOPOLOGY_BETWEEN;
    bool split = w->tiers && where == TOPOLOGY_BETWEEN;
    int hops = split ? distance (w, from.node, to.node) : -1;
    int rail = split && w->c->n_rails > 0 && from.gpu >= 0
                   ? rail_number (w->c, from.gpu) == rail_number (w->c, to.gpu)
                   : -1;

    for (int k = w->n - 1; k >= 0; k--) {
        const struct topology_tier *t = &w->bucket[k].tier;

        if (t->where == where && t->hops == hops && t->rail == rail)
            return &w->bucket[k];
    }

    struct bucket *more = realloc (w->bucket, ((size_t) w->n + 1) * sizeof *more);

    if (!more)
        return NULL;
    w->bucket = more;
    more[w->n] = (struct bucket){.tier = {.where = where, .hops = hops, .rail = rail}};
    return &more[w->n++];
}

static bool keep_value (struct bucket *b, struct topology_link l)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 256;
        double *bw = realloc (b->bw, cap * sizeof *bw);

        if (!bw)
            return false;
        b->bw = bw;

        double *latency_s = realloc (b->latency_s, cap * sizeof *latency_s);

        if (!latency_s)
            return false;
        b->latency_s = latency_s;
        b->cap = cap;
    }
    b->one_latency = b->n == 0 || (b->one_latency && l.latency_s == b->latency_s[0]);
    b->bw[b->n] = l.bytes_per_s;
    b->latency_s[b->n++] = l.latency_s;
    return true;
}

/* One call stands for all pairs of nodes. */
static bool is_general (struct topology_end from, struct topology_end to, double alike)
{
    return from.node != to.node && from.gpu < 0 && alike > 1;
}

/* Sums; finish turns them into means. */
static void note_nodes (struct collecting *w, struct topology_end from,
                        struct topology_end to, struct topology_link l, double alike)
{
    struct topology_node_stats *node = w->out->node, *a = &node[from.node],
                               *b = &node[to.node];

    if (from.node == to.node)
        return;
    if (is_general (from, to, alike)) {
        for (int i = 0; i < w->c->n_nodes; i++)
            node[i] = (struct topology_node_stats){.out_bytes_per_s = l.bytes_per_s,
                                                   .in_bytes_per_s = l.bytes_per_s,
                                                   .lowest_bytes_per_s = l.bytes_per_s,
                                                   .lowest_node = -1,
                                                   .out_links = 1,
                                                   .in_links = 1};
        return;
    }
    if (!l.measured) {
        a->unmeasured += alike;
        return;
    }
    a->out_bytes_per_s += alike * l.bytes_per_s;
    a->out_links += alike;
    b->in_bytes_per_s += alike * l.bytes_per_s;
    b->in_links += alike;
    if (a->lowest_node < 0 || l.bytes_per_s < a->lowest_bytes_per_s) {
        a->lowest_bytes_per_s = l.bytes_per_s;
        a->lowest_node = to.node;
    }
}

static void first_pass (void *context, struct topology_end from, struct topology_end to,
                        struct topology_link l, double alike)
{
    struct collecting *w = context;
    struct bucket *b = bucket_of (w, from, to);

    if (!b) {
        w->failed = true;
        return;
    }
    note_nodes (w, from, to, l, alike);
    b->tier.links += alike;
    if (!l.measured) {
        b->tier.unmeasured += alike;
        return;
    }

    double *q = b->tier.quantile_bytes_per_s;

    if (b->measured == 0 || l.bytes_per_s < q[QUANTILE_MIN])
        q[QUANTILE_MIN] = l.bytes_per_s;
    if (b->measured == 0 || l.bytes_per_s > q[QUANTILE_MAX])
        q[QUANTILE_MAX] = l.bytes_per_s;
    b->measured += alike;
    b->sum += alike * l.bytes_per_s;
    b->sum_square += alike * l.bytes_per_s * l.bytes_per_s;
    if ((w->stride == 1 || b->n == 0 || rng_below (&w->rng, w->stride) == 0) &&
        !keep_value (b, l))
        w->failed = true;
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static void finish_bucket (struct bucket *b)
{
    static const double share[] = {0, .05, .5, .95, 1};
    struct topology_tier *t = &b->tier;

    if (b->n == 0)
        return;
    qsort (b->bw, b->n, sizeof *b->bw, by_value);
    if (!b->one_latency)
        qsort (b->latency_s, b->n, sizeof *b->latency_s, by_value);
    for (int k = QUANTILE_5; k <= QUANTILE_95; k++)
        t->quantile_bytes_per_s[k] = stats_quantile (b->bw, (int) b->n, share[k]);
    t->latency_s = stats_quantile (b->latency_s, (int) b->n, .5);

    double mean = b->sum / b->measured;
    double variance = b->sum_square / b->measured - mean * mean;

    t->cv = variance > 1e-14 * mean * mean ? sqrt (variance) / mean : 0.0;
}

/* ---- what stands out ---- */

/* Keep the list of the lowest shares sorted; it is short. */
static void insert_worst (struct collecting *w, struct topology_outlier x)
{
    struct topology_stats *out = w->out;
    int k = out->n_worst;

    if (k == w->worst_max) {
        if (k == 0 || x.share >= out->worst[k - 1].share)
            return;
        k--;
    } else
        out->n_worst++;
    for (; k > 0 && out->worst[k - 1].share > x.share; k--)
        out->worst[k] = out->worst[k - 1];
    out->worst[k] = x;
}

static double back_of (const struct topology_cluster *c, struct topology_end from,
                       struct topology_end to)
{
    struct topology_link l;

    l = from.gpu < 0 ? topology_node_link (c, to.node, from.node)
                     : topology_link_given (c, to.gpu, from.gpu);
    return l.measured ? l.bytes_per_s : 0;
}

static void second_pass (void *context, struct topology_end from, struct topology_end to,
                         struct topology_link l, double alike)
{
    struct collecting *w = context;
    double median = bucket_of (w, from, to)->tier.quantile_bytes_per_s[QUANTILE_50];

    if (!l.measured || is_general (from, to, alike) ||
        (from.gpu < 0 && from.node == to.node))
        return;

    double back = back_of (w->c, from, to), share = l.bytes_per_s / median;

    if (share < TOPOLOGY_SLOW)
        w->out->slow += alike;
    if (share < 1)
        insert_worst (w, (struct topology_outlier){from, to, l.bytes_per_s, back, share});
    if (back > 0 &&
        (from.node < to.node || (from.node == to.node && from.gpu < to.gpu))) {
        double d = fabs (l.bytes_per_s - back) / fmax (l.bytes_per_s, back);

        w->out->asymmetry_pairs++;
        w->asymmetry_sum += d;
        w->out->asymmetry_max = fmax (w->out->asymmetry_max, d);
    }
}

/* ---- all ---- */

static int by_place (const void *a, const void *b)
{
    const struct topology_tier *x = &((const struct bucket *) a)->tier,
                               *y = &((const struct bucket *) b)->tier;
    /* An unknown distance last, the same rail before others. */
    int hx = x->hops < 0 ? TOPOLOGY_SWITCHES_MAX + 1 : x->hops,
        hy = y->hops < 0 ? TOPOLOGY_SWITCHES_MAX + 1 : y->hops;

    return x->where != y->where ? (int) x->where - (int) y->where
           : hx != hy           ? hx - hy
                                : y->rail - x->rail;
}

static void finish (struct collecting *w)
{
    struct topology_stats *out = w->out;

    for (int k = 0; k < w->n; k++)
        finish_bucket (&w->bucket[k]);
    for (int i = 0; i < w->c->n_nodes; i++) {
        out->node[i].out_bytes_per_s /= fmax (out->node[i].out_links, 1);
        out->node[i].in_bytes_per_s /= fmax (out->node[i].in_links, 1);
    }
    if (w->n > 0)
        qsort (w->bucket, (size_t) w->n, sizeof *w->bucket, by_place);
    if (w->tiers)
        topology_links_visit (w->c, second_pass, w, w->watch);
    if (out->asymmetry_pairs > 0)
        out->asymmetry_mean = w->asymmetry_sum / out->asymmetry_pairs;
    for (int k = 0; k < w->n; k++)
        out->tier[k] = w->bucket[k].tier;
    out->n_tiers = w->n;
    out->sampled = w->stride > 1;
}

static enum status collect (const struct topology_cluster *c, bool tiers, int worst,
                            const struct topology_watch *watch,
                            struct topology_stats *out, struct error *err)
{
    struct topology_stats s = {0};
    struct collecting w = {.c = c,
                           .tiers = tiers,
                           .out = &s,
                           .worst_max = worst,
                           .rng = {1},
                           .watch = watch};
    double ends = c->has_gpu_links ? c->n_gpus : c->n_nodes;

    w.stride =
        ends * ends > SAMPLE_MAX ? (int) fmin (ends * ends / SAMPLE_MAX, 1e9) + 1 : 1;
    w.racks = true;
    for (int i = 0; i < c->n_nodes; i++)
        w.racks = w.racks && c->node[i].levels == 0;
    s.node = calloc ((size_t) c->n_nodes, sizeof *s.node);
    s.worst = calloc ((size_t) worst + 1, sizeof *s.worst);
    if (!s.node || !s.worst)
        w.failed = true;
    for (int i = 0; i < c->n_nodes && !w.failed; i++)
        s.node[i].lowest_node = -1;
    if (!w.failed)
        topology_links_visit (c, first_pass, &w, watch);
    s.tier = calloc ((size_t) w.n + 1, sizeof *s.tier);
    w.failed = w.failed || !s.tier;
    if (!w.failed)
        finish (&w);
    for (int k = 0; k < w.n; k++) {
        free (w.bucket[k].bw);
        free (w.bucket[k].latency_s);
    }
    free (w.bucket);
    if (w.failed) {
        topology_stats_release (&s);
        return err_nomem (err);
    }
    *out = s;
    return ST_OK;
}

enum status topology_stats_collect (const struct topology_cluster *c, int worst,
                                    const struct topology_watch *watch,
                                    struct topology_stats *out, struct error *err)
{
    return collect (c, true, worst, watch, out, err);
}

void topology_stats_release (struct topology_stats *s)
{
    free (s->tier);
    free (s->worst);
    free (s->node);
    *s = (struct topology_stats){0};
}

const char *topology_tier_text (const struct topology_cluster *c,
                                const struct topology_tier *t, char buf[64])
{
    bool racks = true;
    const char *rail = t->rail < 0 ? "" : t->rail ? ", same rail" : ", other rail";

    for (int i = 0; i < c->n_nodes; i++)
        racks = racks && c->node[i].levels == 0;
    if (t->where == TOPOLOGY_INSIDE)
        snprintf (buf, 64, "inside nodes");
    else if (t->hops < 0)
        snprintf (buf, 64, "between nodes%s", rail);
    else if (racks)
        snprintf (buf, 64, "between nodes, %s%s", t->hops ? "other racks" : "same rack",
                  rail);
    else if (t->hops == 0)
        snprintf (buf, 64, "between nodes, same leaf%s", rail);
    else
        snprintf (buf, 64, "between nodes, %d level%s up%s", t->hops,
                  t->hops > 1 ? "s" : "", rail);
    return buf;
}

enum status topology_inter_stats (const struct topology_cluster *c,
                                  struct topology_link_stats *out, struct error *err)
{
    struct topology_stats all;
    enum status st;

    *out = (struct topology_link_stats){0};
    st = collect (c, false, 0, NULL, &all, err);
    if (st != ST_OK)
        return st;
    for (int k = 0; k < all.n_tiers; k++) {
        const struct topology_tier *t = &all.tier[k];

        if (t->where == TOPOLOGY_BETWEEN)
            *out = (struct topology_link_stats){(long) t->links, (long) t->unmeasured,
                                                t->quantile_bytes_per_s[QUANTILE_MIN],
                                                t->quantile_bytes_per_s[QUANTILE_50],
                                                t->quantile_bytes_per_s[QUANTILE_MAX]};
    }
    topology_stats_release (&all);
    return ST_OK;
}
