/* What the search does with entries of its heap, a batch at a time: it bounds them more closely, or
 * places and keeps them.  Batches have a fixed size and are merged in order, so that the result
 * does not depend on the number of threads. */
#include "mapper/search/search_private.h"

#include <float.h>
#include <math.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/threads.h"

#define COMMON_GPUS 1024  /* of a pool that is not large */
#define PLACED_LEAST 6    /* however large */
#define TRIED_MAX 1500000 /* placements of one configuration in a small pool */
#define TRIED_ALL 8000000 /* of all together, after which the search ends */
#define TRIED_AFTER 2     /* so many times fewer where annealed sketches gave the plan */
#define TRIED_LEAST 20000 /* of each of the last ones, and in a part of the cluster */

/* ---- a heap of bounds ---- */

static bool entry_less (const struct entry *a, const struct entry *b)
{
    return a->bound_s != b->bound_s ? a->bound_s < b->bound_s : a->index < b->index;
}

void heap_push (struct entry *heap, long *n, struct entry e)
{
    long at = (*n)++;

    while (at > 0 && entry_less (&e, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = e;
}

struct entry heap_pop (struct entry *heap, long *n)
{
    struct entry top = heap[0], last = heap[--*n];
    long at = 0;

    for (;;) {
        long child = 2 * at + 1;

        if (child >= *n)
            break;
        if (child + 1 < *n && entry_less (&heap[child + 1], &heap[child]))
            child++;
        if (!entry_less (&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

bool *search_heap_has (const struct search *x)
{
    bool *has = calloc ((size_t) x->n, sizeof *has);

    for (long i = 0; i < x->heap_n && has; i++)
        has[x->heap[i].index] = true;
    return has;
}

/* ---- bounds and plans ---- */

double search_bound (const struct search *x, const struct workload_config *c,
                     enum bound_level level, double known, double enough)
{
    double weight = mapper_weight (x->p, c), least = known / weight, bound;
    /* Rounded, what is of no use must not come out below that, nor what is not told above
     * `known`. */
    double most = enough / weight * (1 + 2 * DBL_EPSILON);

    if (x->p->cost_model != COSTMODEL_CRITICAL_PATH)
        return weight * bound_published (&x->pool, c);
    bound = bound_up_to (&x->pool, c, level, least, most);
    return bound > least ? weight * bound : known;
}

bool search_show_progress (const struct search *x)
{
    double best = x->best < 0 ? INFINITY : x->placed[x->best].plan.price.step_s, least;

    if (!x->s->progress || threads_self () != 0)
        return false;
    least = search_least_bound (x);
    if (x->best >= 0)
        least /= mapper_weight (x->p, &x->config[x->placed[x->best].index]);
    return x->s->progress (x->s->context, x->n - x->heap_n - x->listed_n, x->n, best,
                           least);
}

enum status search_need_groups (struct search *x, int tp, struct error *err)
{
    for (int i = 0; i < x->groups_n; i++)
        if (x->groups[i].tp == tp)
            return ST_OK;

    struct workload_config c = {.deg = {tp, 1, 1, 1, 1, tp, 1}, .micro_batch = 1};

    if (!array_grow (&x->groups, x->groups_n, sizeof *x->groups))
        return err_nomem (err);

    TRY (groups_init (&x->groups[x->groups_n], &x->pool, &c, err));
    x->groups_n++;
    return ST_OK;
}

const struct groups *search_groups (const struct search *x, int tp)
{
    int i = 0;

    while (x->groups[i].tp != tp)
        i++;
    return &x->groups[i];
}

double search_cut (const struct search *x)
{
    if (x->best < 0 || x->placed[x->best].plan.price.unmeasured > x->needed)
        return INFINITY;
    return search_value (x, x->best).step_s;
}

long search_fewer (const struct search *x, long usual)
{
    long most = usual * x->s->effort, fewer = most * COMMON_GPUS / x->pool.n_gpus;

    fewer = fewer < PLACED_LEAST ? PLACED_LEAST : fewer;
    return fewer < most ? fewer : most;
}

/* Was every link between the pool's GPUs measured? */
static bool all_measured (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i < pool->n_nodes; i++)
        for (int k = 0; k < pool->n_nodes; k++) {
            const struct topology_node *m = &c->node[pool->node[i]],
                                       *n = &c->node[pool->node[k]];

            for (int a = m->first_gpu; a < m->first_gpu + m->gpus; a++)
                for (int b = n->first_gpu; b < n->first_gpu + n->gpus; b++)
                    if (a != b && !topology_link (c, a, b).measured)
                        return false;
        }
    return true;
}

/* The bound of a configuration that was placed: its step, where every split and placement
 * was tried, or what those that were not take at least. */
static double bound_placed (const struct search *x, const struct placed *placed,
                            const struct entry *e)
{
    if (!placed->exact || !all_measured (&x->pool))
        return e->bound_s;
    return fmax (e->bound_s, fmin (placed->skipped_s,
                                   fmin (placed->node_step_s, placed->gpu_step_s)) *
                                 mapper_weight (x->p, &x->config[e->index]));
}

enum status search_keep (struct search *x, struct placed *placed, const struct entry *e,
                         struct error *err)
{
    long at = x->placed_at[e->index] - 1;

    if (at >= 0) {
        struct kept *old = &x->placed[at];

        old->bound = fmax (old->bound, bound_placed (x, placed, e));
        if (mapper_price_less (&placed->price, &old->plan.price)) {
            placed_release (&old->plan);
            old->plan = *placed;
        } else {
            placed_release (placed);
        }
    } else {
        if (!array_grow (&x->placed, x->n_placed, sizeof *x->placed)) {
            placed_release (placed);
            return err_nomem (err);
        }
        at = x->n_placed++;
        x->placed_at[e->index] = x->n_placed;
        x->placed[at] = (struct kept){*placed, e->index, bound_placed (x, placed, e),
                                      BOUND_FRACTIONS};
    }
    if (x->best < 0 || search_better (x, at, x->best))
        x->best = at;
    return ST_OK;
}

void search_note_bound (struct search *x, const struct entry *e)
{
    long at = x->placed_at[e->index] - 1;

    if (at >= 0)
        x->placed[at].bound = fmax (x->placed[at].bound, e->bound_s);
}

/* A configuration was not placed.  Unless it is known that it cannot be, its bound stays
 * part of the whole space's. */
static void put_aside (struct search *x, const struct entry *e, enum refusal refusal,
                       const struct error *why)
{
    if (x->placed_at[e->index] > 0) /* otherwise */
        return;
    if (refusal == REFUSED_MEMORY) {
        x->info->refused_memory++;
        return;
    }
    if (x->unplaced.text[0] == '\0')
        x->unplaced = *why;
    x->info->unplaced++;
    if (refusal == REFUSED_UNKNOWN)
        x->unplaced_bound = fmin (x->unplaced_bound, e->bound_s);
}

/* Was the entry left alone because it is late?  What ends in time is one placement at least:
 * there is nothing to stop with before. */
static bool leave (const struct search *x, const struct entry *e, int i)
{
    return deadline_passed (&x->deadline) &&
           (x->best >= 0 || (e->level > BOUND_FRACTIONS && i > 0));
}

/* How many placements all configurations of a small pool may try: for the plan and its proof, or
 * for the proof. */
static long tries_of_all (const struct search *x)
{
    return TRIED_ALL / (x->annealed ? TRIED_AFTER : 1) * x->s->effort;
}

/* How many each of n of them may try: the first ones all that there are, mostly, but a search must
 * end.  A part of the cluster has nothing to prove. */
static long tries_for (const struct search *x, int n)
{
    long each = (tries_of_all (x) - x->tried) / (n > 1 ? n : 1);

    if (x->part > 0 || each < TRIED_LEAST)
        return TRIED_LEAST;
    return each > TRIED_MAX ? TRIED_MAX : each;
}

bool search_is_tried (const struct search *x)
{
    return x->best >= 0 && x->tried >= tries_of_all (x);
}

bool search_is_bounded (const struct search *x, const struct entry *e)
{
    return e->level >= (x->by_kinds                          ? BOUND_KINDS
                        : bound_plays (&x->config[e->index]) ? BOUND_PLAYED
                                                             : BOUND_SPLITS);
}

/* Two classes are told apart by splits just as well. */
enum bound_level search_next_level (const struct search *x, enum bound_level level)
{
    return level == BOUND_FRACTIONS && x->pool.n_classes <= SEARCH_FEW_CLASSES
               ? BOUND_SPLITS
               : level + 1;
}

enum status search_batch (struct search *x, struct entry *batch, int n, bool waiting,
                          struct error *err)
{
    struct placed placed[SEARCH_BATCH] = {{0}};
    enum status st[SEARCH_BATCH] = {ST_OK};
    struct error why[SEARCH_BATCH];
    bool left[SEARCH_BATCH] = {false}, bounded[SEARCH_BATCH] = {false};
    long tries = tries_for (x, n);

    for (int i = 0; i < n; i++)
        TRY (search_need_groups (x, x->config[batch[i].index].deg.tp, err));
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads) if (n > 1)
    for (int i = 0; i < n; i++) {
        const struct workload_config *c = &x->config[batch[i].index];

        left[i] = leave (x, &batch[i], i);
        if (left[i])
            continue;
        bounded[i] = !search_is_bounded (x, &batch[i]);
        if (bounded[i]) {
            batch[i].level = search_next_level (x, batch[i].level);
            if (!deadline_passed (&x->deadline))
                batch[i].bound_s =
                    fmax (batch[i].bound_s,
                          search_bound (x, c, batch[i].level, 0, search_reach (x)));
        } else {
            struct rng mix = {x->s->seed * 1000003u + (unsigned long) batch[i].index};

            st[i] = place_config (
                &x->pool, search_groups (x, c->deg.tp), c, x->s->granularity,
                (struct effort){1, 1, search_cut (x) / mapper_weight (x->p, c), tries,
                                &x->deadline, NULL},
                rng_next (&mix), &placed[i], &why[i]);
        }
        search_show_progress (x);
    }
    for (int i = 0; i < n; i++)
        x->tried += placed[i].tried;
    for (int i = 0; i < n; i++) {
        if (left[i]) {
            if (!waiting)
                search_push (x, batch[i]);
        } else if (bounded[i]) {
            if (isfinite (batch[i].bound_s))
                search_push (x, batch[i]);
            else
                x->info->refused_memory++;
        } else if (st[i] == ST_OK) {
            st[i] = search_keep (x, &placed[i], &batch[i], err);
        } else if (st[i] == ST_NOFIT) {
            put_aside (x, &batch[i], placed[i].refusal, &why[i]);
            st[i] = ST_OK;
        } else {
            err_set (err, st[i], "%s", why[i].text);
        }
        if (st[i] != ST_OK) {
            for (int k = i + 1; k < n; k++)
                placed_release (&placed[k]);
            return st[i];
        }
    }
    return ST_OK;
}
