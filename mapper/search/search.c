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
#include <string.h>

#include "base/array.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/threads.h"

#define BATCH 8
#define SHOWN 64          /* configurations bounded between two looks at the progress */
#define PLACED_MAX 4000   /* configurations placed before the search gives up its proof */
#define TRIED_MAX 1500000 /* placements of one configuration in a small pool */
#define TRIED_ALL 12000000    /* of all together */
#define TRIED_LEAST 20000     /* of each when those are used up */
#define CLOSE_ENOUGH 2e-4     /* of the step: a bound that needs no more work */
#define TIGHTENED 8           /* pairs of placed configurations bounded closely at most */
#define ODD_GPUS 128          /* in a pool that gets more */
#define JOINT_ROUNDS 4        /* of moves of layers and places */
#define ODD_CLASSES_GAP 0.005 /* of the best step, to the bound, with several classes */
#define ODD_GAP 0.04          /* with one */
#define ODD_REACH 0.5         /* as OUT_OF_REACH, in an odd pool */
#define FEW_PLACEMENTS 200000 /* of a split, tried whole in an odd pool */
#define POLISHED 12       /* of the best, placed again with more effort, in an odd pool */
#define POLISHED_PLAIN 4  /* in any other */
#define POLISH_SEEDS 2    /* and so many random numbers */
#define POLISH_GROWTH 4   /* times the moves of the round before */
#define POLISH_WORTH 1e-4 /* of the step: a gain that is worth another round */
#define OUT_OF_REACH 0.05 /* of the best step: no effort brings so much */

struct mapper_settings mapper_settings_default (void)
{
    return (struct mapper_settings){
        .granularity = MAPPER_AUTO, .seed = 1, .top = 5, .polish = 16};
}

/* ---- a heap of bounds ---- */

static bool entry_less (const struct entry *a, const struct entry *b)
{
    return a->bound_s != b->bound_s ? a->bound_s < b->bound_s : a->index < b->index;
}

static void heap_push (struct search *x, struct entry e)
{
    long at = x->heap_n++;

    while (at > 0 && entry_less (&e, &x->heap[(at - 1) / 2])) {
        x->heap[at] = x->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    x->heap[at] = e;
}

static struct entry heap_pop (struct search *x)
{
    struct entry top = x->heap[0], last = x->heap[--x->heap_n];
    long at = 0;

    for (;;) {
        long child = 2 * at + 1;

        if (child >= x->heap_n)
            break;
        if (child + 1 < x->heap_n && entry_less (&x->heap[child + 1], &x->heap[child]))
            child++;
        if (!entry_less (&x->heap[child], &last))
            break;
        x->heap[at] = x->heap[child];
        at = child;
    }
    x->heap[at] = last;
    return top;
}

/* ---- stages of the search ---- */

/* What no placement of the configuration beats, in the objective's measure and under the
 * cost model asked for. */
static double bound (const struct search *x, const struct workload_config *c,
                     enum bound_level level)
{
    double s = x->p->cost_model == COSTMODEL_CRITICAL_PATH
                   ? bound_of (&x->pool, c, level)
                   : bound_published (&x->pool, c);

    return s * search_weight (x, c);
}

/* @return as progress() does; outside the first thread of a loop nothing is shown */
static bool show_progress (const struct search *x)
{
    double best = x->best < 0 ? INFINITY : x->placed[x->best].plan.price.step_s, least;

    if (!x->s->progress || threads_self () != 0)
        return false;
    least = search_least_bound (x);
    if (x->best >= 0)
        least /= search_weight (x, &x->config[x->placed[x->best].index]);
    return x->s->progress (x->s->context, x->n - x->heap_n, x->n, best, least);
}

/* Refuse what does not fit in memory and bound the rest. */
static enum status bound_all (struct search *x, struct error *err)
{
    double *bounds = malloc ((size_t) x->n * sizeof *bounds);

    if (!bounds)
        return err_nomem (err);
#pragma omp parallel for schedule(dynamic, 64) num_threads(x->threads)
    for (long i = 0; i < x->n; i++) {
        bounds[i] = pool_memory_fits (&x->pool, &x->config[i], NULL)
                        ? bound (x, &x->config[i], BOUND_FRACTIONS)
                        : -1.0;
        if (i % SHOWN == 0 && x->s->progress && threads_self () == 0)
            x->s->progress (x->s->context, i, x->n, INFINITY, 0.0);
    }
    for (long i = 0; i < x->n; i++) {
        if (bounds[i] < 0)
            x->info->refused_memory++;
        else if (isfinite (bounds[i]))
            x->waiting[x->n_waiting++] = (struct entry){bounds[i], i, BOUND_FRACTIONS};
        else
            x->info->unplaced++;
    }
    free (bounds);
    return ST_OK;
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
            heap_push (x, e);
        } else {
            x->waiting[left++] = e;
            x->waiting_bound_s = fmin (x->waiting_bound_s, e.bound_s);
        }
    }
    x->n_waiting = left;
    return true;
}

static enum status need_groups (struct search *x, int tp, struct error *err)
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

static const struct groups *groups_for (const struct search *x, int tp)
{
    int i = 0;

    while (x->groups[i].tp != tp)
        i++;
    return &x->groups[i];
}

/* The value that a bound must be below to matter.  While the best plan uses more links that
 * nobody measured than must be, every configuration might avoid them. */
static double cut (const struct search *x)
{
    if (x->best < 0 || x->placed[x->best].plan.price.unmeasured > x->needed)
        return INFINITY;
    return search_value (x, x->best).step_s;
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
                                 search_weight (x, &x->config[e->index]));
}

static enum status keep (struct search *x, struct placed *placed, const struct entry *e,
                         struct error *err)
{
    if (!array_grow (&x->placed, x->n_placed, sizeof *x->placed)) {
        placed_release (placed);
        return err_nomem (err);
    }
    x->placed[x->n_placed] =
        (struct kept){*placed, e->index, bound_placed (x, placed, e), false};
    if (x->best < 0 || search_better (x, x->n_placed, x->best))
        x->best = x->n_placed;
    x->n_placed++;
    return ST_OK;
}

/* A configuration was not placed.  Unless it is known that it cannot be, its bound stays
 * part of the whole space's. */
static void put_aside (struct search *x, const struct entry *e, enum refusal refusal,
                       const struct error *why)
{
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

/* How many placements each of n configurations in a small pool may try: the first ones all
 * that there are, mostly, but a search must end. */
static long tries_for (const struct search *x, int n)
{
    long each = (TRIED_ALL - x->tried) / (n > 1 ? n : 1);

    return each > TRIED_MAX ? TRIED_MAX : each < TRIED_LEAST ? TRIED_LEAST : each;
}

/* Tighten or place one batch of entries. */
static enum status work_batch (struct search *x, struct entry *batch, int n,
                               struct error *err)
{
    struct placed placed[BATCH] = {{0}};
    enum status st[BATCH] = {ST_OK};
    struct error why[BATCH];
    bool left[BATCH] = {false}, bounded[BATCH] = {false};
    long tries = tries_for (x, n);

    for (int i = 0; i < n; i++)
        TRY (need_groups (x, x->config[batch[i].index].deg.tp, err));
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads) if (n > 1)
    for (int i = 0; i < n; i++) {
        const struct workload_config *c = &x->config[batch[i].index];

        left[i] = leave (x, &batch[i], i);
        if (left[i])
            continue;
        bounded[i] = batch[i].level < (c->deg.vpp > 1 ? BOUND_PLAYED : BOUND_SPLITS);
        if (bounded[i]) {
            batch[i].level++;
            if (!deadline_passed (&x->deadline))
                batch[i].bound_s = fmax (batch[i].bound_s, bound (x, c, batch[i].level));
        } else {
            struct rng mix = {x->s->seed * 1000003u + (unsigned long) batch[i].index};

            st[i] =
                place_config (&x->pool, groups_for (x, c->deg.tp), c, x->s->granularity,
                              (struct effort){1, 1, 0, 0, cut (x) / search_weight (x, c),
                                              tries, &x->deadline},
                              rng_next (&mix), &placed[i], &why[i]);
        }
        show_progress (x);
    }
    for (int i = 0; i < n; i++)
        x->tried += placed[i].tried;
    for (int i = 0; i < n; i++) {
        if (left[i]) {
            heap_push (x, batch[i]);
        } else if (bounded[i]) {
            if (isfinite (batch[i].bound_s))
                heap_push (x, batch[i]);
            else
                x->info->refused_memory++;
        } else if (st[i] == ST_OK) {
            st[i] = keep (x, &placed[i], &batch[i], err);
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

static bool should_stop (struct search *x)
{
    /* The first plan is awaited: without one there is nothing to stop with. */
    bool late = (show_progress (x) || deadline_passed (&x->deadline)) && x->best >= 0;

    /* Looking for something simpler is no part of the proof. */
    x->info->stopped = x->info->stopped || (late && x->heap[0].bound_s < cut (x));
    return late;
}

/* Bounds below this may matter: to be better than the best, or as good and simpler. */
static double reach (const struct search *x)
{
    return cut (x) * (1.0 + x->s->tie);
}

/* Take the next entry that may be better than the best, or as good and simpler.  Others
 * are dropped: their bounds are above the best, so the whole space's is not theirs.
 * @return false when there is none */
static bool next_entry (struct search *x, struct entry *e)
{
    while (x->heap_n > 0 && x->heap[0].bound_s < reach (x)) {
        *e = heap_pop (x);
        if (e->bound_s < cut (x) ||
            config_simpler (&x->config[e->index],
                            &x->config[x->placed[search_simplest (x)].index]))
            return true;
    }
    return false;
}

static enum status run (struct search *x, struct error *err)
{
    enum status st = ST_OK;

    while (st == ST_OK && x->heap_n > 0 && x->heap[0].bound_s < reach (x)) {
        struct entry batch[BATCH];
        int n = 0;

        if (should_stop (x) || x->n_placed >= PLACED_MAX)
            break;
        while (n < BATCH && next_entry (x, &batch[n]))
            n++;
        st = work_batch (x, batch, n, err);
    }
    return st;
}

/* Bound those of the placed configurations more closely that keep the whole space's bound
 * down, until it is close to the best plan or some have been. */
static void tighten_placed (struct search *x)
{
    double close = search_value (x, x->best).step_s * (1.0 - CLOSE_ENOUGH);

    for (int round = 0; round < TIGHTENED; round++) {
        long pick[2] = {-1, -1}; /* the lowest, one for each of two threads */

        for (long i = 0; i < x->n_placed; i++) {
            if (x->placed[i].tight || !(x->placed[i].bound < close))
                continue;
            for (int k = 0; k < 2; k++)
                if (pick[k] < 0 || x->placed[i].bound < x->placed[pick[k]].bound) {
                    if (k == 0)
                        pick[1] = pick[0];
                    pick[k] = i;
                    break;
                }
        }
        if (pick[0] < 0 || search_least_bound (x) < x->placed[pick[0]].bound ||
            deadline_passed (&x->deadline))
            return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads)
        for (int k = 0; k < 2; k++)
            if (pick[k] >= 0) {
                const struct workload_config *c = &x->config[x->placed[pick[k]].index];

                x->placed[pick[k]].bound =
                    fmax (x->placed[pick[k]].bound, bound (x, c, BOUND_RUNS));
                x->placed[pick[k]].tight = true;
            }
    }
}

/* A small pool of unlike nodes or links whose best plan is far above the bound: layers follow
 * places there, and what looks bad at first may be the best. */
static bool is_odd (const struct search *x)
{
    double gap = x->pool.n_classes > 1 ? ODD_CLASSES_GAP : ODD_GAP;

    return !x->pool.all_alike && x->pool.n_gpus <= ODD_GPUS &&
           search_least_bound (x) < search_value (x, x->best).step_s * (1.0 - gap);
}

/* Those of the best few that more effort may help: nothing is left to find where all
 * placements were tried, where the bound is near, or above the best plan, and where the plan
 * is far from the best.
 * @return how many */
static int pick_best (const struct search *x, long *pick)
{
    int n = 0;
    double best_s = search_value (x, x->best).step_s;
    bool small = place_tries_all (&x->pool);
    int left = 0;

    int most = is_odd (x) ? POLISHED : POLISHED_PLAIN;
    double within = is_odd (x) ? ODD_REACH : OUT_OF_REACH;

    for (; n < most && n < x->n_placed; n++) {
        long next = -1;

        for (long i = 0; i < x->n_placed; i++) {
            bool taken = false;

            for (int k = 0; k < n; k++)
                taken = taken || pick[k] == i;
            if (!taken && (next < 0 || search_better (x, i, next)))
                next = i;
        }
        pick[n] = next;
    }
    for (int i = 0; i < n; i++) {
        double bound_s = x->placed[pick[i]].bound;

        if (!small && bound_s < best_s &&
            search_value (x, pick[i]).step_s > bound_s * (1 + CLOSE_ENOUGH) &&
            search_value (x, pick[i]).step_s < best_s * (1 + within))
            pick[left++] = pick[i];
    }
    return left;
}

/* One of placed[] again. */
static enum status place_again (const struct search *x, long at, int seed,
                                struct effort effort, struct placed *out,
                                struct error *err)
{
    const struct workload_config *c = &x->config[x->placed[at].index];
    struct rng mix = {x->s->seed * 1000003u + (unsigned long) x->placed[at].index +
                      0x5eed + ((uint64_t) seed << 32)};

    return place_config (&x->pool, groups_for (x, c->deg.tp), c, x->s->granularity,
                         effort, rng_next (&mix), out, err);
}

/* Place the best few again with several seeds; the order of the list is kept.
 * @param[out] moved  the most that exactly priced moves gained where the step got less */
static enum status polish_round (struct search *x, const long *pick, int n, int round,
                                 struct effort effort, double *moved, struct error *err)
{
    struct placed again[POLISHED * POLISH_SEEDS] = {{0}};
    enum status st[POLISHED * POLISH_SEEDS] = {ST_OK};
    struct error why;
    bool failed = false;

#pragma omp parallel for schedule(dynamic, 1) \
    num_threads(x->threads) private(why) if (n > 0)
    for (int i = 0; i < n * POLISH_SEEDS; i++) {
        struct effort own = effort;

        if (i % POLISH_SEEDS > 0) /* what is tried whole is so by the first seed */
            own.few = 0;
        st[i] =
            place_again (x, pick[i / POLISH_SEEDS],
                         round * POLISH_SEEDS + i % POLISH_SEEDS, own, &again[i], &why);
        show_progress (x);
    }
    for (int i = 0; i < n * POLISH_SEEDS; i++) {
        struct placed *old = &x->placed[pick[i / POLISH_SEEDS]].plan;

        failed = failed || st[i] == ST_NOMEM;
        if (st[i] == ST_OK && mapper_price_less (&again[i].price, &old->price)) {
            struct placed swap = *old;

            *moved = fmax (*moved, again[i].moved_s / again[i].price.step_s);
            *old = again[i];
            again[i] = swap;
        }
        if (st[i] == ST_OK)
            placed_release (&again[i]);
        if (search_better (x, pick[i / POLISH_SEEDS], x->best))
            x->best = pick[i / POLISH_SEEDS];
    }
    return failed ? err_nomem (err) : ST_OK;
}

/* Place the best few again with more and more effort, as long as that and the moves that get
 * more of it gain something; the fewer there are, the more each may get. */
static enum status polish (struct search *x, struct error *err)
{
    enum status st = ST_OK;
    double gain = INFINITY;
    int most = 1;

    for (int round = 0, exact = 1; st == ST_OK && exact <= most && gain > POLISH_WORTH &&
                                   !deadline_passed (&x->deadline);
         round++, exact *= POLISH_GROWTH) {
        long pick[POLISHED];
        int n = pick_best (x, pick), joint = is_odd (x) ? JOINT_ROUNDS : 0;
        double before = search_value (x, x->best).step_s, moved = 0.0;

        most = x->s->polish * (joint ? 8 : 1) / (n > 1 ? n : 1);
        st = polish_round (x, pick, n, round,
                           (struct effort){most > 1 ? most : 1, exact, joint,
                                           joint && round == 0 ? FEW_PLACEMENTS : 0,
                                           INFINITY, TRIED_LEAST, &x->deadline},
                           &moved, err);
        gain = fmin (moved, 1.0 - search_value (x, x->best).step_s / before);
    }
    return st;
}

static void release (struct search *x)
{
    for (long i = 0; i < x->n_placed; i++)
        placed_release (&x->placed[i].plan);
    for (int i = 0; i < x->groups_n; i++)
        groups_release (&x->groups[i]);
    free (x->groups);
    free (x->placed);
    free (x->config);
    free (x->heap);
    free (x->waiting);
    pool_release (&x->pool);
}

static enum status search_pool (struct search *x, struct mapper_result *r,
                                struct error *err)
{
    struct mapper_info *info = x->info;
    enum status st = ST_OK;

    TRY (pool_configurations (&x->pool, &x->config, &x->n, &info->space, err));
    info->configurations = x->n;
    x->heap = malloc ((size_t) x->n * sizeof *x->heap);
    x->waiting = malloc ((size_t) x->n * sizeof *x->waiting);
    if (!x->heap || !x->waiting)
        return err_nomem (err);
    TRY (bound_all (x, err));
    while (st == ST_OK && x->heap_n == 0 && next_heap (x))
        st = run (x, err);
    info->placed = x->n_placed;
    if (st != ST_OK)
        return st;
    if (x->best >= 0) {
        bool open = x->heap_n > 0 && x->heap[0].bound_s < cut (x);

        info->joined_gpus =
            x->n_waiting > 0 && x->needed == 0 ? x->pool.island_gpus[0] : 0;
        info->proven = !info->stopped && !isfinite (x->unplaced_bound) && !open;
        if (!info->stopped) { /* who stops it wants to go on */
            tighten_placed (x);
            TRY (polish (x, err));
        }
        return search_finish (x, r, err);
    }
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

enum status mapper_search (const struct mapper_problem *p,
                           const struct mapper_settings *s, struct mapper_result *r,
                           struct mapper_info *info, struct error *err)
{
    struct search x = {.p = p,
                       .s = s,
                       .threads = s->threads > 0 ? s->threads : threads_max (),
                       .best = -1,
                       .info = info,
                       .start_s = clock_s (),
                       .unplaced_bound = INFINITY,
                       .waiting_bound_s = INFINITY};

    x.deadline = (struct deadline){
        .until_s = s->time_limit_s > 0 ? x.start_s + s->time_limit_s : INFINITY,
        .stop = s->stop,
        .context = s->context};
    *info = (struct mapper_info){0};

    enum status st = pool_init (&x.pool, p, err);

    if (st == ST_OK)
        st = search_pool (&x, r, err);
    info->seconds = clock_s () - x.start_s;
    release (&x);
    return st;
}
