/* Every split of the layers of a small pool, each with every placement.
 *
 * A split is left out where it takes no less than the best plan so far, of this configuration or
 * another: by its work alone, every stage on the fastest GPUs and nothing sent, or by its lower
 * bound, which takes longer but far less than its placements. */
#include "mapper/bound/bound.h"
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SPLITS_MAX 20000 /* of one configuration that are looked at */
#define TRIES_MANY 60000 /* where there are more: no proof, but it may find a plan */
#define STATE_PRICE 20   /* placements that cost as much as making a state */
#define BOUND_PRICE 2000 /* and as much as a split's bound */
#define CHUNKS_EACH \
    256 /* chunks of micro-batches that are played in the time of a price's rest */

struct splits {
    struct placer *x;
    enum mapper_granularity granularity;
    struct candidate *by_node, *any;
    int *layers, *cap, *gpu; /* [pp] in hand, [pp] at most, [n] */
    int *given;              /* [pp] the split that was there before */
    int *caps;               /* pool_memory_fits */
    struct costmodel_compute compute[CLASSES_MAX]; /* by class */
    long looked, priced, placements; /* in the time of a price that plays nothing */
    long each;                       /* of a placement */
    long tries;                      /* at most */
    const struct effort *effort;
    double skipped_s; /* the least that a split left out for that may take */
    bool all;
    bool fewest; /* has no split a placement with fewer links that nobody measured? */
    struct error *err;
};

/* Least work of one micro-batch on a stage. */
static void work_of (const struct splits *s, int stage, double *fwd_s, double *back_s)
{
    const struct pool *pool = s->x->pool;
    const struct mapper_problem *p = pool->problem;
    struct workload_stage held = workload_stage_of (p->model, s->x->c, s->layers, stage);

    *fwd_s = *back_s = INFINITY;
    for (int q = 0; q < pool->n_classes; q++) {
        struct costmodel_stage_time t;

        costmodel_stage_compute (s->x->c, p->profile, &s->compute[q], &held, &t);
        *fwd_s = fmin (*fwd_s, t.fwd_s / pool->best_speed[q]);
        *back_s = fmin (*back_s, t.back_s / pool->best_speed[q]);
    }
}

/* A step that no placement of the split in hand beats: a stage's work, and where backward
 * passes end what they begin, the way down to it and up again. */
static double least_step (const struct splits *s)
{
    const struct workload_config *c = s->x->c;
    const struct mapper_problem *p = s->x->pool->problem;
    int m = workload_microbatches (p->job, c);
    bool ways = c->schedule == SCHEDULE_1F1B || c->schedule == SCHEDULE_GPIPE;
    double before = 0.0, most = 0.0;

    if (p->cost_model != COSTMODEL_CRITICAL_PATH)
        return 0.0;
    for (int k = 0; k < c->deg.pp; k++) {
        double fwd_s, back_s;

        work_of (s, k, &fwd_s, &back_s);
        most = fmax (most, before + m * (fwd_s + back_s));
        before += ways ? fwd_s + back_s : 0.0;
    }
    return most;
}

/* The step that a split has to beat: where only node-wise placement is asked for, no other
 * will do, however short. */
static double rival_s (const struct splits *s)
{
    bool by_node = s->granularity == MAPPER_NODE ||
                   (s->granularity == MAPPER_AUTO && isfinite (s->by_node->price.step_s));
    const struct candidate *k = by_node ? s->by_node : s->any;

    return k->price.unmeasured > 0 && !s->fewest ? INFINITY : k->price.step_s;
}

/* Every placement of the split in hand. */
static void price_all (struct splits *s)
{
    struct placer *x = s->x;
    struct exact_best node = {s->by_node->gpu, &s->by_node->price, false},
                      any = {s->any->gpu, &s->any->price, false};
    size_t bytes = (size_t) x->c->deg.pp * sizeof (int);

    s->placements = s->each * exact_search (x->pool, x->state, x->c, x->allowed, s->gpu,
                                            x->n, &node, &any);
    s->priced += s->placements + STATE_PRICE;
    if (node.better)
        memcpy (s->by_node->layers, x->layers, bytes);
    if (any.better)
        memcpy (s->any->layers, x->layers, bytes);
}

/* Is the split in hand no better than what is known?  What it takes at least is noted where a plan
 * of another configuration tells. */
static bool is_hopeless (struct splits *s, double least_s)
{
    bool here = least_s >= rival_s (s), there = least_s >= s->effort->rival_s;

    if (there && !here)
        s->skipped_s = fmin (s->skipped_s, least_s);
    return here || there;
}

/* Is its bound no better?  Asked for where its placements, as those of the split before, cost
 * more. */
static bool is_bounded_out (struct splits *s)
{
    const struct placer *x = s->x;

    if (x->pool->problem->cost_model != COSTMODEL_CRITICAL_PATH ||
        s->placements < BOUND_PRICE)
        return false;
    s->priced += BOUND_PRICE;
    return is_hopeless (s, bound_of_split (x->pool, x->c, s->caps, s->layers));
}

/* May another split be tried?  If not, not all were. */
static bool may_try (struct splits *s)
{
    s->all = s->all && s->priced + s->placements <= s->tries &&
             !deadline_passed (s->x->deadline);
    return s->all;
}

static enum status try_split (struct splits *s)
{
    const struct placer *x = s->x;

    if (memcmp (s->layers, s->given, (size_t) x->c->deg.pp * sizeof (int)) == 0 ||
        is_hopeless (s, least_step (s)) || !may_try (s) || is_bounded_out (s) ||
        !may_try (s))
        return ST_OK;
    TRY (placer_new_layers (s->x, s->layers, s->err));
    price_all (s);
    return ST_OK;
}

/* Stages from k on share `left` layers: in every way. */
static enum status split_rest (struct splits *s, int k, int left)
{
    const struct mapper_problem *p = s->x->pool->problem;
    int pp = s->x->c->deg.pp, unit = workload_layers_unit (s->x->c, p->profile),
        least = workload_layers_least (p->model, s->x->c);
    enum status st = ST_OK;

    if (k == pp - 1) {
        s->layers[k] = left;
        if (left > s->cap[k])
            return ST_OK;
        s->all = s->all && ++s->looked <= SPLITS_MAX;
        return s->all ? try_split (s) : ST_OK;
    }
    for (int n = least;
         n <= s->cap[k] && n + (pp - 1 - k) * least <= left && s->all && st == ST_OK;
         n += unit) {
        s->layers[k] = n;
        st = split_rest (s, k + 1, left - n);
    }
    return st;
}

/* Are there so few splits that all can be tried?
 * @param ways  [layers + 1] scratch: of the first stages, by the layers that they share */
static bool are_few (const struct splits *s, double *ways)
{
    const struct mapper_problem *p = s->x->pool->problem;
    int all = p->model->layers, unit = workload_layers_unit (s->x->c, p->profile),
        least = workload_layers_least (p->model, s->x->c);

    for (int n = 0; n <= all; n++)
        ways[n] = n == 0;
    for (int k = 0; k < s->x->c->deg.pp; k++)
        for (int n = all; n >= 0; n--) {
            double sum = 0;

            for (int own = least; own <= s->cap[k] && own <= n; own += unit)
                sum += ways[n - own];
            ways[n] = sum;
        }
    return ways[all] <= SPLITS_MAX;
}

/* Most layers of each stage on any GPU. */
static bool find_caps (struct splits *s)
{
    const struct pool *pool = s->x->pool;
    int pp = s->x->c->deg.pp;

    s->caps = malloc ((size_t) pp * (size_t) pool->n_classes * sizeof (int));
    for (int k = 0; k < pp; k++)
        s->cap[k] = 0;
    if (s->caps && pool_memory_fits (pool, s->x->c, s->caps))
        for (int i = 0; i < pp * pool->n_classes; i++)
            s->cap[i % pp] = s->caps[i] > s->cap[i % pp] ? s->caps[i] : s->cap[i % pp];
    return s->caps != NULL;
}

enum status exact_splits (struct placer *x, enum mapper_granularity granularity,
                          const struct effort *effort, struct candidate *by_node,
                          struct candidate *any, struct placed *out, struct error *err)
{
    const struct mapper_problem *p = x->pool->problem;
    size_t pp = (size_t) x->c->deg.pp;
    struct splits s = {.x = x,
                       .granularity = granularity,
                       .by_node = by_node,
                       .any = any,
                       .layers = malloc ((3 * pp + (size_t) x->n) * sizeof (int)),
                       .each = 1 + (long) workload_microbatches (p->job, x->c) *
                                       x->c->deg.pp * x->c->deg.vpp / CHUNKS_EACH,
                       .effort = effort,
                       .skipped_s = INFINITY,
                       .all = true,
                       .err = err};
    double *ways = malloc (((size_t) p->model->layers + 1) * sizeof *ways);
    enum status st = s.layers && ways ? ST_OK : err_nomem (err);

    if (st == ST_OK) {
        s.cap = s.layers + pp;
        s.given = s.cap + pp;
        s.gpu = s.given + pp;
        memcpy (s.given, x->layers, pp * sizeof (int));
        pool_gpus_of (x->pool, x->pool->node, s.gpu);
    }
    if (st == ST_OK && !find_caps (&s))
        st = err_nomem (err);
    for (int q = 0; q < x->pool->n_classes && st == ST_OK; q++)
        pool_compute (x->pool, x->c, q, &s.compute[q]);
    if (st == ST_OK) {
        price_all (&s);
        /* Where memory allows every placement, none with another split uses fewer links that nobody
         * measured: which ones it uses is not a matter of layers. */
        s.fewest = !memchr (x->allowed, false, pp * (size_t) x->pool->n_classes);
        s.tries =
            are_few (&s, ways) || effort->tries < TRIES_MANY ? effort->tries : TRIES_MANY;
        st = split_rest (&s, 0, p->model->layers);
    }
    FREE_ALL (s.layers, s.caps, ways);
    out->exact = s.all;
    out->skipped_s = s.skipped_s;
    out->tried = s.priced;
    return st;
}
