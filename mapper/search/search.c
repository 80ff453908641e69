/* Best first over lower bounds.
 *
 * Every configuration gets a loose bound; the lowest is taken, its bound tightened, and if
 * it still is the lowest it is placed.  The search ends when no bound is below the best
 * plan, so the least bound of all holds for the whole space.  Work is done in batches of
 * a fixed size, and batches are merged in order, so the result does not depend on the
 * number of threads. */
#include "mapper/search/search_private.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/threads.h"

/* In struct limit, before anything is sketched: where nodes differ in size, and where not; and
 * after. */
#define CELLS_SOON 100000000L
#define CELLS_WHOLE 1000000000L
#define JOINT_GPUS \
    256 /* of a pool whose layers and places are moved together, odd or not */
#define CHUNK_CELLS 3   /* times the cells: what chunks cost more */
#define KINDS_CELLS 4   /* times the cells of one class without chunks: what kinds cost */
#define NEAR_BOUND 0.01 /* of the step: a plan that needs no sketches */
#define LOST \
    0.15 /* of the step: a plan so far above the lowest bound comes from sketches */
/* Of a time limit of such a pool, what is left then: before the rest is sketched; to bound it. */
#define FIRST_PART 0.1
#define FILL_PART 0.25
#define FIRST 64       /* configurations in the heap, of which a first plan is sketched */
#define FEW 16         /* the same of the plan that tells how few GPUs may do */
#define FEWER_GPUS 256 /* of a pool of which it is told */
#define AWAITED_S 1.0  /* that it may be late */
#define PROBED 8 /* batches bounded before a first plan tells whether they are LOST */
/* Small pools and odd ones: placing takes longest there, and all is gone through in any case. */
#define PROBED_LATE INT_MAX
#define PLACED_SOON 48    /* by bounds alone, before the rest is sketched */
#define PLACED_ODD_SOON 8 /* the same in odd pools */
#define PLACED_MAX 4000   /* configurations placed before the search gives up its proof */

struct mapper_settings mapper_settings_default (void)
{
    return (struct mapper_settings){
        .granularity = MAPPER_AUTO, .seed = 1, .top = 5, .polish = 16, .effort = 1};
}

struct mapper_settings mapper_settings_left (const struct mapper_settings *s,
                                             double spent_s)
{
    struct mapper_settings left = *s;

    if (s->time_limit_s > 0)
        left.time_limit_s = fmax (s->time_limit_s - spent_s, 1e-3);
    return left;
}

/* ---- links that nobody measured ---- */

/* How many the configuration needs at least.  The other cost models leave some out. */
static int needs (const struct search *x, const struct entry *e)
{
    return x->p->cost_model == COSTMODEL_CRITICAL_PATH
               ? pool_unmeasured_at_least (&x->pool,
                                           workload_world (&x->config[e->index].deg))
               : 0;
}

/* The whole heap waits. */
static enum status put_off (struct search *x, struct error *err)
{
    search_fill (x, INFINITY, SEARCH_FILL_ALL);
    x->waiting = x->heap;
    x->n_waiting = x->heap_n;
    x->heap_n = 0;
    x->heap = malloc ((size_t) x->n * sizeof *x->heap);
    return x->heap ? ST_OK : err_nomem (err);
}

/* Those of the waiting ones that need fewest into the heap.
 * @return false when none of them could be better than the best */
static bool next_heap (struct search *x)
{
    int fewest = INT_MAX;
    long left = 0;

    for (long i = 0; i < x->n_waiting; i++) {
        int n = needs (x, &x->waiting[i]);

        fewest = n < fewest ? n : fewest;
    }
    if (x->n_waiting == 0 ||
        (x->best >= 0 && x->placed[x->best].plan.price.unmeasured < fewest))
        return false;
    x->needed = fewest;
    x->waiting_bound_s = INFINITY;
    for (long i = 0; i < x->n_waiting; i++) {
        struct entry e = x->waiting[i];

        if (needs (x, &e) == fewest) {
            search_push (x, e);
        } else {
            x->waiting[left++] = e;
            x->waiting_bound_s = fmin (x->waiting_bound_s, e.bound_s);
        }
    }
    x->n_waiting = left;
    return true;
}

static bool should_stop (struct search *x)
{
    /* The first plan is awaited: without one there is nothing to stop with. */
    bool late = (search_show_progress (x) || deadline_passed (&x->deadline)) &&
                (x->best >= 0 || x->sketches_next || search_is_over (x));

    /* Looking for something simpler is no part of the proof. */
    x->info->stopped = x->info->stopped || (late && x->heap[0].bound_s < search_cut (x));
    return late;
}

/* Is something left that may matter?  It is on top of the heap then. */
static bool is_left (struct search *x)
{
    search_fill (x, search_reach (x), 0);
    return x->heap_n > 0 && x->heap[0].bound_s < search_reach (x);
}

/* Take the next entry that may be better than the best, or as good and simpler.  Others
 * are dropped: their bounds are above the best, so the whole space's is not theirs.
 * @return false when there is none */
static bool next_entry (struct search *x, struct entry *e)
{
    while (is_left (x)) {
        *e = heap_pop (x->heap, &x->heap_n);
        if (e->bound_s < search_cut (x) ||
            config_simpler (&x->config[e->index],
                            &x->config[x->placed[search_simplest (x)].index]))
            return true;
        search_note_bound (x, e);
    }
    return false;
}

/* A configuration that is placed and whose bound is as close as it gets: there is nothing to
 * do with it.  In a small pool it is placed once more, in every way, and so is the first plan of a
 * search with a time limit, which was sketched alone.
 * @return was it one? */
static bool settle (struct search *x, const struct entry *e)
{
    if (e->index == x->first_sketch && search_is_bounded (x, e)) {
        x->first_sketch = -1;
        return false;
    }
    if (x->placed_at[e->index] == 0 || !search_is_bounded (x, e) ||
        place_tries_all (&x->pool))
        return false;
    search_note_bound (x, e);
    return true;
}

/* How much run() may do: after it the best plan is known, and what is left is the proof. */
struct limit {
    long placed; /* configurations placed in all */
    /* A plan that sketches choose is placed after so many batches where bounds brought none, and
     * when it is late; 0: never.  It stays in the heap. */
    int probed;
    bool tells; /* does that plan tell whether bounds are lost? */
    /* share of the step by which the best plan is above the lowest bound; 1: any */
    double lost;
    /* Stages x stages x layers, times stages that may be slow, of those that are bounded closely:
     * what that takes, about. */
    long cells;
};

static long cells_of (const struct search *x, const struct entry *batch, int n)
{
    long sum = 0;

    for (int i = 0; i < n; i++) {
        const struct workload_degrees *d = &x->config[batch[i].index].deg;
        long chunks = d->vpp > 1 ? CHUNK_CELLS : 1,
             slow = x->pool.n_classes > 1 ? d->pp : 1;

        if (x->pool.n_classes > SEARCH_FEW_CLASSES && batch[i].level < BOUND_KINDS)
            sum += KINDS_CELLS * (long) d->pp * d->pp * x->p->model->layers;
        else
            sum += (long) d->pp * d->pp * slow * x->p->model->layers * chunks;
    }
    return sum;
}

/* Is the best plan further above the lowest bound than that?  Then the order of the bounds says
 * little about what is worth to be placed. */
static bool is_lost (const struct search *x, const struct limit *most)
{
    double best = search_cut (x);

    return isfinite (best) && search_lowest_left (x) < best * (1.0 - most->lost);
}

/* Place the best of some sketches, though its bound is not close: a first plan tells whether bounds
 * do, and one that is late is far better so than by the lowest bound. */
static enum status probe (struct search *x, struct error *err)
{
    struct deadline all = x->deadline;
    struct entry e;
    enum status st;

    x->deadline.until_s = fmax (all.until_s, clock_s () + AWAITED_S);
    st = looks_probe (x, &e, err);
    if (st == ST_OK && e.index >= 0)
        st = search_batch (x, &e, 1, true, err);
    x->deadline = all;
    return st;
}

/* Go through the heap until no bound is below the best, or a limit is reached. */
static enum status run (struct search *x, struct limit most, struct error *err)
{
    enum status st = ST_OK;
    bool full = false, probed = most.probed == 0 || x->sketches_next;
    int batches = 0;
    long silent = 0; /* that plan, where it does not tell */

    while (st == ST_OK && !full && most.cells > 0 && is_left (x)) {
        struct entry batch[SEARCH_BATCH];
        int n = 0;

        if (!probed && x->n_placed == 0 &&
            (batches++ == most.probed || deadline_passed (&x->deadline))) {
            probed = true;
            TRY (probe (x, err));
            silent = most.tells ? 0 : x->n_placed;
        }
        if (should_stop (x) || search_is_tried (x) ||
            (x->n_placed > silent && is_lost (x, &most)))
            break;
        while (n < SEARCH_BATCH && !full && next_entry (x, &batch[n])) {
            if (settle (x, &batch[n]))
                continue;
            full = x->n_placed >= most.placed && search_is_bounded (x, &batch[n]);
            if (full)
                search_push (x, batch[n]);
            else
                n++;
        }
        most.cells -= cells_of (x, batch, n);
        st = search_batch (x, batch, n, false, err);
    }
    return st;
}

/* Are there several sizes of nodes, or types of GPUs? */
static bool nodes_differ (const struct pool *pool, bool types)
{
    const struct topology_node *node = pool->problem->cluster->node,
                               *first = &node[pool->node[0]];

    for (int i = 1; i < pool->n_nodes; i++) {
        const struct topology_node *n = &node[pool->node[i]];

        if (n->gpus != first->gpus || (types && n->type != first->type))
            return true;
    }
    return false;
}

/* Is a bound below the best plan left? */
static bool is_open (struct search *x)
{
    search_fill (x, search_cut (x), 0);
    return search_lowest_left (x) < search_cut (x);
}

/* Do bounds tell enough: is none below the best plan, and the plan near them where layers and
 * places are moved together?  There one may be called the best of all that were placed, and many
 * others be better. */
static bool is_settled (struct search *x, bool joint)
{
    if (x->best < 0 || is_open (x))
        return false;
    return !joint || search_least_bound (x) > search_cut (x) * (1.0 - NEAR_BOUND);
}

/* A first plan of few configurations, however many there are: sketches, since bounds say little
 * where layers follow places.  More are looked at only where none of these can be placed. */
static enum status sketch_first (struct search *x, long few, struct error *err)
{
    struct deadline all = x->deadline;
    enum status st = ST_OK;
    long n = 0;

    x->deadline.until_s = fmax (all.until_s, clock_s () + AWAITED_S);
    while (st == ST_OK && x->best < 0 && x->heap_n >= n &&
           !deadline_passed (&x->deadline)) {
        n = x->heap_n + few;
        search_fill (x, INFINITY, n);
        st = search_sketch_some (x, few, err);
    }
    x->first_sketch = x->best >= 0 ? x->placed[x->best].index : -1;
    x->deadline = all;
    return st;
}

/* What bounds alone settle soon.  With a time limit that is a small part of it where the plan may
 * be the annealed sketches'.
 * @param[in] joint  are layers and places moved together? */
static enum status run_first (struct search *x, bool joint, struct limit most,
                              struct error *err)
{
    struct deadline all = x->deadline;
    enum status st;

    x->sketches_next =
        joint && x->pool.n_gpus <= SEARCH_ANNEALED_GPUS && isfinite (all.until_s);
    if (x->sketches_next) {
        TRY (sketch_first (x, FIRST, err));
        x->deadline = deadline_part (&all, FIRST_PART);
    }
    st = run (x, most, err);
    x->deadline = all;
    x->sketches_next = false;
    x->first_sketch = -1;
    x->info->stopped = x->info->stopped && deadline_passed (&all);
    return st;
}

/* Bound all that may be sketched, with a time limit as much as leaves time for that. */
static void fill_rest (struct search *x)
{
    struct deadline all = x->deadline;

    if (x->best >= 0)
        x->deadline = deadline_part (&all, FILL_PART);
    search_fill (x, search_reach (x), SEARCH_FILL_ALL);
    x->deadline = all;
}

/* What was placed is sketched too. */
static enum status push_placed (struct search *x, enum bound_level level,
                                struct error *err)
{
    bool *there = search_heap_has (x);

    if (!there)
        return err_nomem (err);
    for (long i = 0; i < x->n_placed; i++)
        if (!there[x->placed[i].index])
            search_push (x,
                         (struct entry){x->placed[i].bound, x->placed[i].index, level});
    free (there);
    return ST_OK;
}

/* What the heap holds: by bounds alone where that settles it soon, as it does where all is calm;
 * by sketches otherwise. */
static enum status search_heap (struct search *x, struct error *err)
{
    const struct limit all = {PLACED_MAX, 0, false, 1, LONG_MAX};
    /* Layers follow places where nodes differ. */
    bool odd = nodes_differ (&x->pool, true), whole = place_tries_all (&x->pool);
    bool by_kinds = odd && x->pool.n_classes > SEARCH_FEW_CLASSES;
    bool joint = odd || (!whole && x->pool.n_gpus <= JOINT_GPUS);

    x->odd = odd;
    /* Where all is alike, layouts of whole nodes tell more than a sketch that is not moved on. */
    if (!looks_apply (x) || (x->pool.all_alike && x->pool.n_gpus > JOINT_GPUS))
        return run (x, all, err);
    x->by_kinds = by_kinds;
    if (!odd || !whole)
        TRY (run_first (
            x, joint,
            (struct limit){search_fewer (x, odd ? PLACED_ODD_SOON : PLACED_SOON),
                           odd || whole ? PROBED_LATE : PROBED, !joint, odd ? 1 : LOST,
                           nodes_differ (&x->pool, false) ? CELLS_SOON * x->s->effort
                           : joint                        ? CELLS_WHOLE * x->s->effort
                                                          : LONG_MAX},
            err));
    x->by_kinds = false;
    if (is_settled (x, joint) || (x->best >= 0 && deadline_passed (&x->deadline)))
        return ST_OK;
    if (joint)
        TRY (push_placed (x, by_kinds ? BOUND_KINDS : BOUND_PLAYED, err));
    fill_rest (x);
    TRY (search_sketches (x, joint, err));
    TRY (search_part (x, err));
    if (x->part > 0 && x->best >= 0) /* its bounds serve nobody */
        return ST_OK;
    if (whole || x->best < 0)
        return run (x, all, err);
    search_closer (x);
    return ST_OK;
}

static void release (struct search *x)
{
    for (long i = 0; i < x->n_placed; i++)
        placed_release (&x->placed[i].plan);
    for (int i = 0; i < x->groups_n; i++)
        groups_release (&x->groups[i]);
    looks_forget_probe (x);
    FREE_ALL (x->groups, x->placed, x->placed_at, x->config, x->heap, x->listed,
              x->waiting);
    pool_release (&x->pool);
}

static enum status search_pool (struct search *x, struct mapper_result *r,
                                struct error *err)
{
    struct mapper_info *info = x->info;
    enum status st = ST_OK;

    TRY (search_list (x, err));
    if (x->pool.n_islands > 1)
        TRY (put_off (x, err));
    else
        st = search_heap (x, err);
    while (st == ST_OK && x->heap_n == 0 && next_heap (x))
        st = search_heap (x, err);
    info->placed = x->n_placed;
    info->sketched = x->sketched > x->n_placed ? x->sketched - x->n_placed : 0;
    if (st != ST_OK)
        return st;
    if (x->best >= 0) {
        bool open = is_open (x) || x->unlisted_bound_s < search_cut (x);

        info->stopped = info->stopped || (open && deadline_passed (&x->deadline));

        info->joined_gpus =
            x->n_waiting > 0 && x->needed == 0 ? x->pool.island_gpus[0] : 0;
        info->proven = !info->stopped && !isfinite (x->unplaced_bound) && !open;
        for (long i = 0; i < x->heap_n; i++) /* bounds of those that were placed */
            search_note_bound (x, &x->heap[i]);
        if (!info->stopped && x->part == 0) /* who stops it wants to go on */
            TRY (search_polish (x, err));
        return search_finish (x, r, err);
    }
    if (search_is_over (x))
        return err_set (
            err, ST_NOFIT,
            "nothing that fits was found before the search was stopped: %ld of %ld "
            "configurations were refused for memory%s",
            info->refused_memory, x->n,
            isfinite (x->unlisted_bound_s) ? ", and more were not listed" : "");
    if (info->refused_memory == x->n) {
        find_miss (&x->pool, x->config, x->n, info);
        return err_set (err, ST_NOFIT, "nothing fits in memory");
    }
    return err_set (err, ST_NOFIT, "%s",
                    x->unplaced.text[0] ? x->unplaced.text
                                        : "the GPUs that fit are not connected: no link "
                                          "between them was measured; measure some, or "
                                          "ask for what one node holds");
}

/* Configurations of few GPUs are most of a large space, and take longer by their compute alone: how
 * few may be better than a plan of nearly all GPUs, sketched for this, or as good and simpler?
 * @param[in] x  as search_pool takes it; it is the caller's copy */
static enum status gpus_worth (struct search x, int *least, struct error *err)
{
    struct mapper_info info = {0};
    bool large = x.pool.n_gpus >= FEWER_GPUS && x.pool.n_islands == 1;
    enum status st = ST_OK;

    *least = 1;
    if (!large || x.p->objective != MAPPER_STEP || isfinite (x.deadline.until_s) ||
        x.p->cost_model != COSTMODEL_CRITICAL_PATH)
        return ST_OK;
    x.info = &info;
    x.gpus_least = x.pool.n_gpus - x.pool.n_gpus / 16;
    TRY (pool_init (&x.pool, x.p, err));
    st = search_list (&x, err);
    THEN (st, sketch_first (&x, FEW, err));
    if (st == ST_OK && x.best >= 0)
        *least = (int) (bound_gpu_seconds (&x.pool) / search_reach (&x));
    release (&x);
    mapper_info_release (&info);
    return st == ST_NOMEM ? st : ST_OK; /* there may be none of so many */
}

static enum status search_nodes (const struct mapper_problem *p,
                                 const struct mapper_settings *s, int part,
                                 struct mapper_result *r, struct mapper_info *info,
                                 struct error *err)
{
    double start_s = clock_s ();
    struct search x = {.p = p,
                       .s = s,
                       .threads = s->threads > 0 ? s->threads : threads_max (),
                       .best = -1,
                       .first_sketch = -1,
                       .info = info,
                       .part = part,
                       .search_nodes = search_nodes,
                       .late_s = INFINITY,
                       .unlisted_bound_s = INFINITY,
                       .unplaced_bound = INFINITY,
                       .waiting_bound_s = INFINITY};
    enum status st;

    x.deadline = (struct deadline){
        .until_s = s->time_limit_s > 0 ? start_s + s->time_limit_s : INFINITY,
        .stop = s->stop,
        .context = s->context};
    *info = (struct mapper_info){0};
    st = pool_init (&x.pool, p, err);
    THEN (st, gpus_worth (x, &x.gpus_least, err));
    THEN (st, search_pool (&x, r, err));
    info->seconds = clock_s () - start_s;
    release (&x);
    return st;
}

enum status mapper_search (const struct mapper_problem *p,
                           const struct mapper_settings *s, struct mapper_result *r,
                           struct mapper_info *info, struct error *err)
{
    return search_nodes (p, s, 0, r, info, err);
}
