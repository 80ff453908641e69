/* What sketches are for: in an odd or small pool the best are kept as they are; in others they say
 * what is worth to be placed. */
#include "mapper/search/looks.h"

#include <math.h>

#define NEAR_BOUND 0.005 /* of the step: more than annealing is worth, with one effort */
#define SINGLE 0.005     /* of the step: what single GPUs gain to be taken */
#define SKETCH_PART 0.35 /* of the time that is left: the rest is to anneal them */
#define KEPT 12          /* of an odd pool's sketches */
#define SKETCHED_GPUS 4000000L /* in all sketches together */
#define PLACED_ODD 4           /* of these, placed in the other way too */
#define ALIKE_ODD 2            /* ... of the same degrees */
#define PLACED_MOST 128        /* of another pool's */
#define ALIKE_MOST 4
#define SIBLINGS 2 /* placed of the best plan, and of the best of other degrees */

bool looks_apply (const struct search *x)
{
    return x->p->cost_model == COSTMODEL_CRITICAL_PATH &&
           x->s->granularity != MAPPER_NODE;
}

/* Is the sketch worth single GPUs?  Where nodes are alike, whole ones serve unless it gains over
 * SINGLE on the best of them. */
static bool is_worth_it (const struct search *x, const struct look *l)
{
    int world = (int) workload_world (&x->config[l->index].deg);
    double least = INFINITY;

    if (x->odd || x->s->granularity == MAPPER_GPU ||
        pool_is_by_node (&x->pool, l->sketch.gpu, world))
        return true;
    for (long i = 0; i < x->n_placed; i++) {
        const struct kept *k = &x->placed[i];

        if (k->plan.price.unmeasured <= l->sketch.price.unmeasured)
            least = fmin (least, k->plan.node_step_s *
                                     mapper_weight (x->p, &x->config[k->index]));
    }
    return look_value (x, l) < least * (1.0 - SINGLE);
}

/* Do the very layers of every stage fit?  Sketches count with caps, which are no promise where
 * layers differ and hardly have room. */
static bool is_in_memory (const struct search *x, const struct look *l)
{
    const struct workload_config *c = &x->config[l->index];
    const struct sketch *k = &l->sketch;

    for (int i = 0; i < c->deg.pp; i++) {
        const struct memest_problem memory = mapper_memory_problem (x->p, c);
        struct memest_stage s;
        double gpu_bytes = mapper_stage_memory (x->p, c, k->layers, k->gpu, i, &s);

        if (!memest_fits (&memory, &s, mapper_memory_limit (x->p, gpu_bytes)))
            return false;
    }
    return true;
}

enum status look_keep (struct search *x, const struct look *l, struct error *err)
{
    const struct workload_config *c = &x->config[l->index];
    struct placed p = {.price = l->sketch.price,
                       .node_step_s = INFINITY,
                       .gpu_step_s = l->sketch.price.step_s,
                       .granularity = MAPPER_GPU};
    struct sketch own;

    if (!is_worth_it (x, l) || !is_in_memory (x, l))
        return ST_OK;
    TRY (sketch_copy (&l->sketch, c->deg.pp, (int) workload_world (&c->deg), &own, err));
    p.layers = own.layers;
    p.gpu = own.gpu;
    if (pool_is_by_node (&x->pool, own.gpu, (int) workload_world (&c->deg))) {
        p.granularity = MAPPER_NODE;
        p.node_step_s = own.price.step_s;
    }
    return search_keep (x, &p, &(struct entry){l->bound, l->index, BOUND_FRACTIONS}, err);
}

/* Place the best in the other way, which knows grids of whole nodes. */
static enum status place_looks (struct search *x, const struct looks *l, bool joint,
                                int most, struct error *err)
{
    long pick[LOOKS_PICKED_MOST];
    double start = search_cut (x);
    int n = looks_pick (x, l, start, joint ? ALIKE_ODD : ALIKE_MOST,
                        most < LOOKS_PICKED_MOST ? most : LOOKS_PICKED_MOST, pick);

    for (int i = 0; i < n && !deadline_passed (&x->deadline);) {
        struct entry batch[SEARCH_BATCH];
        double before = search_cut (x);
        int some = 0;

        for (; some < SEARCH_BATCH && i < n; i++) {
            const struct look *k = &l->look[pick[i]];

            /* What bounds or the probe placed comes out as it did. */
            if (k->bound < before && (joint || x->placed_at[k->index] == 0))
                batch[some++] = (struct entry){k->bound, k->index, BOUND_RUNS};
        }
        TRY (search_batch (x, batch, some, true, err));
    }
    return ST_OK;
}

/* The best plan, or the best of other degrees than that one's; -1: none. */
static long best_of (const struct search *x, bool other)
{
    long best = -1;

    for (long i = 0; i < x->n_placed; i++)
        if (look_same_degrees (&x->config[x->placed[i].index],
                               &x->config[x->placed[x->best].index]) != other &&
            (best < 0 || search_better (x, i, best)))
            best = i;
    return best;
}

/* Does it differ by its chunks alone? */
static bool is_sibling (const struct workload_config *a, const struct workload_config *b)
{
    return look_same_degrees (a, b) && a->deg.vpp != b->deg.vpp && b->deg.vpp > 1 &&
           a->micro_batch == b->micro_batch && a->zero == b->zero &&
           a->recompute == b->recompute && a->recompute_modules == b->recompute_modules &&
           a->sequence_parallel == b->sequence_parallel && a->shard == b->shard &&
           a->offload == b->offload;
}

/* The sibling with the lowest bound that is neither placed nor among n of them, in the heap; -1:
 * none is below the best plan. */
static long lowest_sibling (const struct search *x, long plan, const struct entry *had,
                            int n)
{
    double below = search_cut (x);
    long low = -1;

    for (long i = 0; i < x->heap_n; i++) {
        const struct entry *e = &x->heap[i];
        bool may = e->bound_s < below && x->placed_at[e->index] == 0 &&
                   is_sibling (&x->config[x->placed[plan].index], &x->config[e->index]);

        for (int k = 0; k < n && may; k++)
            may = had[k].index != e->index;
        if (may) {
            below = e->bound_s;
            low = i;
        }
    }
    return low;
}

/* Sketches hardly tell which chunks serve slow nodes: the best plans' siblings are placed too. */
static enum status place_siblings (struct search *x, struct error *err)
{
    struct entry batch[2 * SIBLINGS];
    int n = 0;

    for (int other = 0; other < 2; other++) {
        long plan = best_of (x, other);

        for (int k = 0; k < SIBLINGS && plan >= 0; k++) {
            long low = lowest_sibling (x, plan, batch, n);

            if (low >= 0)
                batch[n++] =
                    (struct entry){x->heap[low].bound_s, x->heap[low].index, BOUND_RUNS};
        }
    }
    return search_batch (x, batch, n, true, err);
}

/* Is the best known so near the bound that annealing has little to gain? */
static bool is_near (const struct search *x, const struct looks *l)
{
    double best = search_cut (x);

    if (l->n > 0 && l->look[0].sketch.price.unmeasured == x->needed)
        best = fmin (best, look_value (x, &l->look[0]));
    return best * (1.0 - NEAR_BOUND / x->s->effort) <= search_least_bound (x);
}

enum status search_sketch_some (struct search *x, long most, struct error *err)
{
    struct looks l;
    enum status st = looks_take (x, true, most, &l, err);

    for (long i = 0; i < l.n && x->best < 0 && st == ST_OK; i++)
        st = look_keep (x, &l.look[i], err);
    looks_release (&l);
    return st;
}

enum status search_sketches (struct search *x, bool joint, struct error *err)
{
    struct deadline all = x->deadline;
    struct looks l;
    enum status st;

    x->deadline = deadline_part (&all, SKETCH_PART);
    st = looks_take (x, joint, SKETCHED_GPUS / x->pool.n_gpus, &l, err);
    if (st == ST_OK && joint)
        st = looks_closer (x, &l, err);
    x->deadline = all;
    x->annealed = st == ST_OK && l.n > 0 && joint &&
                  x->pool.n_gpus <= SEARCH_ANNEALED_GPUS && !is_near (x, &l);
    if (x->annealed)
        st = looks_anneal (x, &l, err);
    for (int i = 0; i < KEPT && i < l.n && joint && st == ST_OK; i++)
        st = look_keep (x, &l.look[i], err);
    THEN (st, place_looks (x, &l, joint,
                           search_fewer (x, joint ? PLACED_ODD : PLACED_MOST), err));
    if (st == ST_OK && !joint && x->best >= 0)
        st = place_siblings (x, err);
    x->sketched += l.n;
    looks_release (&l);
    return st;
}
