/* A lower bound of one configuration over every placement and every split of the layers.
 *
 * Every time is taken at its best (bound_best.c), and GPUs of each class are counted.
 * Slots (one stage of one replica: TP x CP GPUs) are of two kinds: fast ones, whose TP
 * groups lie inside nodes and have no GPU slower than some class, and slow ones.  When the
 * fast slots are too few, some replica has at least
 *
 *     ceil ((slots needed - fast slots) / replicas)
 *
 * stages on slow slots, and the step is at least that replica's.  Every class that can
 * divide fast from slow is tried.  bound_fractions.c and bound_stages.c have the pipeline
 * of 1F1B and GPipe, bound_pipeline.c that of all schedules, which also tells layers with
 * experts from others.
 *
 * The step is at least the end of stage 0 plus its synchronisation and optimiser, which
 * grow with its layers.  A TP group may span nodes in a placement by hand, and then its
 * data-parallel groups see other links.  So the bound is the least of three cases (enum
 * bound_way):
 *
 * BOUND_WHOLE: stage 0's TP groups all lie inside nodes, so that the tp groups of its
 * synchronisation share a node's way out, with as many lanes as TP groups fit a node.
 *
 * BOUND_ONE_SPANS: one of them spans nodes, and pays for that in every layer of stage 0 in
 * its replica.
 *
 * BOUND_ALL_SPAN: the rings have more lanes than that.  Then a node has more ranks of one
 * TP index than groups fit it, of every index that it has, so it cannot have all: every TP
 * group of stage 0 spans.
 */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>

double bound_tail_s (const struct pool *pool, const struct workload_config *c)
{
    struct bests x;
    const struct best *b = &x.b;
    double sync;

    bests_init (pool, c, &x);
    sync =
        b->sync_layer_s[0][isfinite (b->sync_fixed_s[0][BOUND_WHOLE]) ? BOUND_WHOLE
                                                                      : BOUND_ALL_SPAN];
    return b->tail_layer_s[0] +
           fmax (0.0, sync - b->profile->time.dp_overlap * b->hides *
                                 (b->slot[0].fwd_s + b->slot[0].back_s));
}

/* In some replica at least so many stages are on slots that are not fast: that have a GPU
 * of class `from` or slower or, with `spans`, whose groups span nodes. */
static int slow_stages (const struct pool *pool, const struct workload_config *c,
                        int from, bool spans)
{
    const struct workload_degrees *d = &c->deg;
    long groups = spans ? pool_groups (pool, from - 1, d->tp)
                        : pool_groups (pool, from - 1, 1) / d->tp;
    long missing = (long) d->dp * d->pp - groups / d->cp;

    return missing > 0 ? (int) ((missing + d->dp - 1) / d->dp) : 0;
}

/* BOUND_ALL_SPAN with rings of `lanes` lanes: a node has GPUs of at most gpus/lanes TP
 * indices, so every group of stage 0 is on `nodes` nodes or more. */
static double more_lanes (const struct pool *pool, const struct workload_config *c,
                          const struct bests *x, int from, struct pace pace, int lanes,
                          int nodes, double (*bound) (const struct pace *))
{
    struct best b = *pace.b;
    struct best_rates all = bound_rates (pool, 0);

    for (int kind = 0; kind < 2; kind++) {
        struct best_rates r = bound_rates (pool, kind == 0 ? 0 : from);
        double each, start;

        bound_sync_lanes (pool, &r, workload_dense_shards (&c->deg), &x->volume,
                          pool->max_node_gpus, lanes, 1, &each, &start);
        if (kind == 0 || isfinite (start))
            bests_sync (pool, c, x, each, start, kind, BOUND_ALL_SPAN, &b);
    }
    if (nodes > 1)
        best_set_spans (bound_tp_across (pool, &all, c, &x->volume, nodes), &b);
    if (!isfinite (b.span_fwd_s[0]))
        return INFINITY;
    pace.b = &b;
    return bound (&pace);
}

/* BOUND_WHOLE: the lowest over the ways to place stage 0's experts, or, where these are not
 * to be told apart, with every figure of them at its least. */
static double whole_groups (const struct workload_config *c, const struct bests *x,
                            struct pace pace, enum bound_how how,
                            double (*bound) (const struct pace *))
{
    const struct best *any = pace.b;
    struct best b = *any;
    double least = INFINITY, least_layer_s, least_fixed_s;

    if (!experts_told_apart (c, x, how > BOUND_FRACTIONS))
        return bound (&pace);
    bests_experts_sync (c, x, &x->whole.least, &least_layer_s, &least_fixed_s);
    pace.b = &b;
    for (int i = 0; i < x->whole.n; i++) {
        const struct expert_way *w = &x->whole.way[i];
        double layer_s, fixed_s;

        bests_experts_sync (c, x, w, &layer_s, &fixed_s);
        for (int kind = 0; kind < 2; kind++) {
            b.sync_layer_s[kind][BOUND_WHOLE] =
                any->sync_layer_s[kind][BOUND_WHOLE] + layer_s - least_layer_s;
            b.sync_fixed_s[kind][BOUND_WHOLE] =
                any->sync_fixed_s[kind][BOUND_WHOLE] + fixed_s - least_fixed_s;
        }
        bests_exchanges_more (c, x, w, &b.first_fwd_s, &b.first_back_s);
        least = fmin (least, bound (&pace));
    }
    return least;
}

/* The lowest of the three cases. */
static double any_way (const struct pool *pool, const struct workload_config *c,
                       const struct bests *x, int from, const struct best *b, int slow,
                       const int *cap, enum bound_how how)
{
    double (*bound) (const struct pace *) = how == BOUND_FRACTIONS ? bound_fractions
                                            : how == BOUND_RUNS    ? bound_runs
                                                                   : bound_splits;
    struct pace pace = {.b = b, .way = BOUND_WHOLE, .cap = cap, .slow = slow};
    int tp = c->deg.tp, gpus = pool->max_node_gpus, lanes = gpus / tp;
    bool can_span = tp > 1 && isfinite (b->span_fwd_s[0]);
    double least = lanes > 0 ? whole_groups (c, x, pace, how, bound) : INFINITY;
    struct best apart = *b;

    /* A group that spans may save crossings, and what it costs counts here. */
    apart.send_s[1] = apart.send_s[2] = 0.0;
    /* The group that spans and the slow slots may be in different replicas.  Where groups
     * do not share what a node reaches, BOUND_ONE_SPANS is BOUND_WHOLE and more. */
    if (lanes > 0 && can_span &&
        (x->span_helps ||
         b->sync_fixed_s[0][BOUND_ONE_SPANS] < b->sync_fixed_s[0][BOUND_WHOLE] ||
         b->sync_layer_s[0][BOUND_ONE_SPANS] < b->sync_layer_s[0][BOUND_WHOLE])) {
        pace.way = BOUND_ONE_SPANS;
        pace.span = slow == 0;
        pace.b = pace.span ? &apart : b;
        least = fmin (least, bound (&pace));
    }
    if (!can_span)
        return least;
    pace.b = &apart;
    pace.way = BOUND_ALL_SPAN;
    pace.span = true;
    if (how == BOUND_FRACTIONS)
        return fmin (least, bound (&pace));
    for (int nodes = lanes > 0 ? 2 : 1; nodes <= tp; nodes++) {
        int indices = (tp + nodes - 1) / nodes; /* of a node, and so many lanes: */

        if (indices > gpus || gpus / indices <= lanes)
            continue;
        lanes = gpus / indices;
        least = fmin (least, more_lanes (pool, c, x, from, pace, lanes, nodes, bound));
    }
    return least;
}

void bound_caps (const struct pool *pool, int pp, int from, bool spans, const int *caps,
                 int *cap)
{
    for (int k = 0; k < pp; k++) {
        cap[k] = cap[pp + k] = 0;
        for (int q = 0; q < pool->n_classes; q++) {
            int here = caps[q * pp + k];

            cap[k] = here > cap[k] ? here : cap[k];
            if ((q >= from || spans) && here > cap[pp + k])
                cap[pp + k] = here;
        }
    }
}

/* Does that bound serve?  It is the only one of most schedules, and it also tells layers
 * with experts from others. */
static bool scheduled (const struct pool *pool, const struct best *b)
{
    return b->total_only || !pool_layers_alike (pool);
}

/* The bound when slots are fast or slow by class `from`; 0 when it tells nothing. */
static double divided_bound (const struct pool *pool, const struct workload_config *c,
                             const struct bests *x, int from, bool spans, const int *caps,
                             int *cap, enum bound_how how)
{
    int slow = slow_stages (pool, c, from, spans);
    struct best b = x->b;
    struct slow_slots slots;
    double bound = 0.0;

    if (slow == 0)
        return 0.0;
    if (slow > c->deg.pp || (!spans && from == pool->n_classes))
        return INFINITY; /* fewer GPUs than ranks */
    slow_slots_init (pool, c, x, from, spans, &slots);
    slow_slots_put (pool, c, x, &slots, &b);
    if (caps)
        bound_caps (pool, c->deg.pp, from, spans, caps, cap);
    cap = caps ? cap : NULL;
    if (scheduled (pool, &b))
        bound = bound_by_schedule (pool, c, x, &b, &slots, slow, cap, how);
    if (!b.total_only)
        bound = fmax (bound, any_way (pool, c, x, spans ? 0 : from, &b, slow, cap, how));
    return bound;
}

static double bound_with (const struct pool *pool, const struct workload_config *c,
                          const int *caps, int *cap, enum bound_how how)
{
    struct bests x;
    double most = 0.0;

    bests_init (pool, c, &x);
    for (int from = 1; from <= pool->n_classes; from++) {
        most = fmax (most, divided_bound (pool, c, &x, from, false, caps, cap, how));
        /* Where groups inside nodes are fewer, some slot is slow or spans. */
        if (x.across > x.inside && c->deg.tp <= pool->max_node_gpus &&
            slow_stages (pool, c, from, true) > slow_stages (pool, c, from, false))
            most = fmax (most, divided_bound (pool, c, &x, from, true, caps, cap, how));
    }
    if (most > 0.0)
        return most;
    if (caps)
        bound_caps (pool, c->deg.pp, 0, true, caps, cap);
    cap = caps ? cap : NULL;
    if (scheduled (pool, &x.b))
        most = bound_by_schedule (pool, c, &x, &x.b, NULL, 0, cap, how);
    if (!x.b.total_only)
        most = fmax (most, any_way (pool, c, &x, 0, &x.b, 0, cap, how));
    return most;
}

double bound_of (const struct pool *pool, const struct workload_config *c,
                 enum bound_how how)
{
    size_t pp = (size_t) c->deg.pp;
    int *caps = NULL;
    double bound;

    if (how > BOUND_FRACTIONS)
        caps = malloc (((size_t) pool->n_classes + 2) * pp * sizeof (int));
    if (caps && !pool_memory_fits (pool, c, caps)) {
        free (caps);
        return INFINITY;
    }
    bound = bound_with (pool, c, caps, caps ? caps + (size_t) pool->n_classes * pp : NULL,
                        caps ? how : BOUND_FRACTIONS);
    free (caps);
    return bound;
}

int bound_divided (const struct pool *pool, const struct workload_config *c, int from,
                   const int *cap, struct best *b, struct bound_pipeline *pipeline)
{
    struct bests x;
    struct slow_slots slots;
    int slow = from > 0 ? slow_stages (pool, c, from, false) : 0;

    bests_init (pool, c, &x);
    *b = x.b;
    if (slow > 0) {
        slow_slots_init (pool, c, &x, from, false, &slots);
        slow_slots_put (pool, c, &x, &slots, b);
    }
    if (pipeline)
        *pipeline = bound_pipeline_of (pool, c, &x, b, &slots, slow, cap);
    return slow;
}

enum status bound_of_problem (const struct mapper_problem *p,
                              const struct workload_config *c, bool tight,
                              double *bound_s, struct error *err)
{
    struct pool pool;
    enum status st = pool_init (&pool, p, err);

    if (st != ST_OK)
        return st;
    *bound_s = bound_of (&pool, c, tight ? BOUND_RUNS : BOUND_FRACTIONS);
    pool_release (&pool);
    return ST_OK;
}
