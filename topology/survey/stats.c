/* Statistics of a cluster's links, in two passes: the first finds each tier's
 * percentiles, the second what stands out from them. */
#include "topology/survey/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/stats.h"
#include "topology/topology_private.h"

#define SAMPLE_MAX (1 << 20) /* links of a tier whose values are kept */

/* ---- tiers ---- */

/* A tier while its values are collected. */
struct bucket {
    struct topology_tier tier;
    double *bw, *latency_s; /* [n] */
    size_t n;
    bool one_latency;
    double sum, sum_square, measured;
};

struct collecting {
    const struct topology_cluster *c;
    struct bucket *bucket;
    int n;
    struct bucket all[2]; /* links inside and between nodes, whatever their tier */
    bool racks;           /* distances come from racks: no node has switches */
    bool failed;
    int stride; /* one link of so many is kept for the percentiles */
    struct rng rng, all_rng;
    struct topology_stats *out; /* NULL: tiers are not told apart */
    int worst_max;
    double listed_below; /* share of the links that belong to the worst so far */
    double asymmetry_sum;
    int *run; /* [n_nodes] equal for neighbours in the list that lie below the same */
    int near, far_run, hops; /* the distance that was worked out last */
    const struct topology_watch *watch;
};

static bool same_place (const struct topology_node *a, const struct topology_node *b)
{
    size_t bytes = (size_t) a->levels * sizeof *a->switch_id;

    return a->levels == b->levels &&
           (bytes == 0 || memcmp (a->switch_id, b->switch_id, bytes) == 0) &&
           (a->rack && b->rack ? strcmp (a->rack, b->rack) == 0 : a->rack == b->rack);
}

/* Do racks alone tell how far nodes are? */
static bool only_racks (const struct topology_cluster *c)
{
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i].levels > 0)
            return false;
    return true;
}

static bool find_runs (struct collecting *w)
{
    const struct topology_node *node = w->c->node;

    w->run = calloc ((size_t) w->c->n_nodes, sizeof *w->run);
    for (int i = 1; w->run && i < w->c->n_nodes; i++)
        w->run[i] = w->run[i - 1] + !same_place (&node[i - 1], &node[i]);
    return w->run != NULL;
}

/* Between two nodes.  The far ones come in order, many of them below the same switches. */
static int distance (struct collecting *w, int a, int b)
{
    const struct topology_cluster *c = w->c;

    if (a == w->near && w->run[b] == w->far_run)
        return w->hops;
    w->near = a;
    w->far_run = w->run[b];
    if (!w->racks)
        w->hops = topology_hops (c, a, b);
    else
        w->hops = !c->node[a].rack || !c->node[b].rack             ? -1
                  : strcmp (c->node[a].rack, c->node[b].rack) == 0 ? 0
                                                                   : 1;
    return w->hops;
}

static struct bucket *bucket_of (struct collecting *w, const struct topology_visited *v)
{
    enum topology_where where =
        v->from.node == v->to.node ? TOPOLOGY_INSIDE : TOPOLOGY_BETWEEN;
    bool split = where == TOPOLOGY_BETWEEN;
    int hops = split ? distance (w, v->from.node, v->to.node) : -1;
    int rail =
        split && w->c->n_rails > 0 && v->from.gpu >= 0
            ? topology_rail_of (w->c, v->from.gpu) == topology_rail_of (w->c, v->to.gpu)
            : -1;

    for (int k = w->n - 1; k >= 0; k--) {
        const struct topology_tier *t = &w->bucket[k].tier;

        if (t->where == where && t->hops == hops && t->rail == rail)
            return &w->bucket[k];
    }

    if (!array_grow (&w->bucket, w->n, sizeof *w->bucket))
        return NULL;
    w->bucket[w->n] =
        (struct bucket){.tier = {.where = where, .hops = hops, .rail = rail}};
    return &w->bucket[w->n++];
}

static bool keep_value (struct bucket *b, const struct topology_link *l)
{
    if (!array_grow (&b->bw, b->n, sizeof *b->bw) ||
        !array_grow (&b->latency_s, b->n, sizeof *b->latency_s))
        return false;
    b->one_latency = b->n == 0 || (b->one_latency && l->latency_s == b->latency_s[0]);
    b->bw[b->n] = l->bytes_per_s;
    b->latency_s[b->n++] = l->latency_s;
    return true;
}

/* One call stands for all pairs of nodes. */
static bool is_general (const struct topology_visited *v)
{
    return v->from.node != v->to.node && v->from.gpu < 0 && v->alike > 1;
}

/* Sums; finish turns them into means. */
static void note_nodes (struct collecting *w, const struct topology_visited *v)
{
    struct topology_node_stats *node = w->out->node, *a = &node[v->from.node],
                               *b = &node[v->to.node];
    double rate = v->link.bytes_per_s;

    if (v->from.node == v->to.node)
        return;
    if (is_general (v)) {
        for (int i = 0; i < w->c->n_nodes; i++)
            node[i] = (struct topology_node_stats){.out_bytes_per_s = rate,
                                                   .in_bytes_per_s = rate,
                                                   .lowest_bytes_per_s = rate,
                                                   .lowest_node = -1,
                                                   .out_links = 1,
                                                   .in_links = 1};
        return;
    }
    if (!v->link.measured) {
        a->unmeasured += v->alike;
        return;
    }
    a->out_bytes_per_s += v->alike * rate;
    a->out_links += v->alike;
    b->in_bytes_per_s += v->alike * rate;
    b->in_links += v->alike;
    if (a->lowest_node < 0 || rate < a->lowest_bytes_per_s) {
        a->lowest_bytes_per_s = rate;
        a->lowest_node = v->to.node;
    }
}

/* @return false: no memory */
static bool note_link (struct bucket *b, const struct topology_visited *v,
                       struct rng *rng, int stride)
{
    double rate = v->link.bytes_per_s, *q = b->tier.quantile_bytes_per_s;

    b->tier.links += v->alike;
    if (!v->link.measured) {
        b->tier.unmeasured += v->alike;
        return true;
    }
    if (b->measured == 0 || rate < q[QUANTILE_MIN])
        q[QUANTILE_MIN] = rate;
    if (b->measured == 0 || rate > q[QUANTILE_MAX])
        q[QUANTILE_MAX] = rate;
    b->measured += v->alike;
    b->sum += v->alike * rate;
    b->sum_square += v->alike * rate * rate;
    return (stride > 1 && b->n > 0 && rng_below (rng, stride) > 0) ||
           keep_value (b, &v->link);
}

static void first_pass (void *context, const struct topology_visited *v)
{
    struct collecting *w = context;
    struct bucket *all = &w->all[v->from.node != v->to.node], *b;
    double error;

    w->failed |= !note_link (all, v, &w->all_rng, w->stride);
    if (!w->out)
        return;
    b = bucket_of (w, v);
    w->failed |= !b || !note_link (b, v, &w->rng, w->stride);
    error = topology_visited_error (w->c, v);
    note_nodes (w, v);
    w->out->links += v->alike;
    w->out->estimated += isnan (error) ? 0 : v->alike;
    w->out->estimate_error = fmax (w->out->estimate_error, error);
}

static void finish_bucket (struct bucket *b)
{
    static const double share[] = {0, .05, .5, .95, 1};
    struct topology_tier *t = &b->tier;
    int n = (int) b->n;

    if (n == 0)
        return;
    stats_sort (b->bw, n);
    if (!b->one_latency)
        stats_sort (b->latency_s, n);
    for (int k = QUANTILE_5; k <= QUANTILE_95; k++)
        t->quantile_bytes_per_s[k] = stats_quantile (b->bw, n, share[k]);
    t->latency_s = stats_quantile (b->latency_s, n, .5);

    double mean = b->sum / b->measured;
    double variance = b->sum_square / b->measured - mean * mean;

    t->cv = variance > 1e-14 * mean * mean ? sqrt (variance) / mean : 0.0;
}

/* ---- what stands out ---- */

/* Keep the list of the lowest shares sorted; it is short. */
static void insert_worst (struct collecting *w, struct topology_outlier x)
{
    struct topology_stats *out = w->out;
    int k = out->n_worst < w->worst_max ? out->n_worst++ : w->worst_max - 1;

    for (; k > 0 && out->worst[k - 1].share > x.share; k--)
        out->worst[k] = out->worst[k - 1];
    out->worst[k] = x;
    if (out->n_worst == w->worst_max)
        w->listed_below = out->worst[w->worst_max - 1].share;
}

/* The rate the other way; 0 when unmeasured. */
static double back_of (const struct topology_cluster *c, const struct topology_visited *v)
{
    double back =
        v->from.gpu >= 0
            ? topology_link_given (c, v->to.gpu, v->from.gpu).bytes_per_s
            : topology_matrix_at (&c->inter.bytes_per_s, v->to.node, v->from.node);

    return isnan (back) ? 0 : back;
}

static void second_pass (void *context, const struct topology_visited *v)
{
    struct collecting *w = context;
    double median = bucket_of (w, v)->tier.quantile_bytes_per_s[QUANTILE_50];
    double rate = v->link.bytes_per_s, share = rate / median, back;
    bool inside = v->from.node == v->to.node;

    if (!v->link.measured || is_general (v) || (v->from.gpu < 0 && inside))
        return;
    back = back_of (w->c, v);
    w->out->slow += share < TOPOLOGY_SLOW ? v->alike : 0;
    if (share < w->listed_below)
        insert_worst (w, (struct topology_outlier){v->from, v->to, rate, back, share});
    if (back > 0 && (inside ? v->from.gpu < v->to.gpu : v->from.node < v->to.node)) {
        double d = fabs (rate - back) / fmax (rate, back);

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

static bool finish (struct collecting *w)
{
    struct topology_stats *out = w->out;

    finish_bucket (&w->all[TOPOLOGY_BETWEEN]);
    if (w->failed || !out)
        return !w->failed;
    if (!(out->tier = calloc ((size_t) w->n + 1, sizeof *out->tier)))
        return false;
    out->between_median_bytes_per_s =
        w->all[TOPOLOGY_BETWEEN].tier.quantile_bytes_per_s[QUANTILE_50];
    for (int k = 0; k < w->n; k++)
        finish_bucket (&w->bucket[k]);
    for (int i = 0; i < w->c->n_nodes; i++) {
        out->node[i].out_bytes_per_s /= fmax (out->node[i].out_links, 1);
        out->node[i].in_bytes_per_s /= fmax (out->node[i].in_links, 1);
    }
    if (w->n > 0)
        qsort (w->bucket, (size_t) w->n, sizeof *w->bucket, by_place);
    topology_links_visit (w->c, second_pass, w, w->watch);
    if (out->asymmetry_pairs > 0)
        out->asymmetry_mean = w->asymmetry_sum / out->asymmetry_pairs;
    for (int k = 0; k < w->n; k++)
        out->tier[k] = w->bucket[k].tier;
    out->n_tiers = w->n;
    out->sampled = w->stride > 1;
    return true;
}

/* What is noted of nodes and tiers, to begin with.  @return false: no memory */
static bool begin (struct collecting *w)
{
    const struct topology_cluster *c = w->c;
    struct topology_stats *out = w->out;

    w->listed_below = w->worst_max > 0 ? 1 : -1;
    w->near = -1;
    w->racks = only_racks (c);
    out->node = calloc ((size_t) c->n_nodes, sizeof *out->node);
    out->worst = calloc ((size_t) w->worst_max + 1, sizeof *out->worst);
    for (int i = 0; out->node && i < c->n_nodes; i++)
        out->node[i].lowest_node = -1;
    return out->node && out->worst && find_runs (w);
}

/* Go through the links, and once more for what stands out from their tiers. */
static bool collect (struct collecting *w)
{
    double ends = w->c->has_gpu_links ? w->c->n_gpus : w->c->n_nodes;

    w->rng = w->all_rng = (struct rng){1};
    w->stride =
        ends * ends > SAMPLE_MAX ? (int) fmin (ends * ends / SAMPLE_MAX, 1e9) + 1 : 1;
    if (w->out && !begin (w))
        return false;
    topology_links_visit (w->c, first_pass, w, w->watch);
    return finish (w);
}

static void end (struct collecting *w)
{
    for (int k = 0; k < w->n + 2; k++) {
        struct bucket *b = k < w->n ? &w->bucket[k] : &w->all[k - w->n];

        FREE_ALL (b->bw, b->latency_s);
    }
    FREE_ALL (w->bucket, w->run);
}

enum status topology_stats_collect (const struct topology_cluster *c, int worst,
                                    const struct topology_watch *watch,
                                    struct topology_stats *out, struct error *err)
{
    struct topology_stats s = {0};
    struct collecting w = {.c = c, .out = &s, .worst_max = worst, .watch = watch};
    bool done = collect (&w);

    end (&w);
    if (!done) {
        topology_stats_release (&s);
        return err_nomem (err);
    }
    *out = s;
    return ST_OK;
}

void topology_stats_release (struct topology_stats *s)
{
    FREE_ALL (s->tier, s->worst, s->node);
    *s = (struct topology_stats){0};
}

const char *topology_tier_text (const struct topology_cluster *c,
                                const struct topology_tier *t, char buf[64])
{
    const char *rail = t->rail < 0 ? "" : t->rail ? ", same rail" : ", other rail";

    if (t->where == TOPOLOGY_INSIDE)
        snprintf (buf, 64, "inside nodes");
    else if (t->hops < 0)
        snprintf (buf, 64, "between nodes%s", rail);
    else if (only_racks (c))
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
    struct collecting w = {.c = c};
    const struct topology_tier *t = &w.all[TOPOLOGY_BETWEEN].tier;
    const double *q = t->quantile_bytes_per_s;
    bool done = collect (&w);

    *out = (struct topology_link_stats){0};
    if (done)
        *out = (struct topology_link_stats){(long) t->links, (long) t->unmeasured,
                                            q[QUANTILE_MIN], q[QUANTILE_50],
                                            q[QUANTILE_MAX]};
    end (&w);
    return done ? ST_OK : err_nomem (err);
}
