/* The best sketches, annealed in rounds, fewer and longer each time; between two rounds the places
 * of the best serve all other configurations of their degrees.  At last the best starts anew,
 * often.  In odd pools of common size the near degrees are moved once more, each by itself, until
 * that brings nothing: which of them come through the first rounds is luck. */
#include "mapper/search/looks.h"

#include <math.h>

#include "base/rng.h"

#define ADOPTED 64 /* sketches that try one's places, at once */
#define SIBLINGS 8 /* sketches whose places are tried for others of the same degrees */
#define MOVES_PRICED 40000000L /* GPUs of a stage times moves, in one annealing */
#define FULL_GPUS 24           /* of a pool that gets all moves */
#define HOT_GPUS 32            /* of a pool that is annealed as hot as below */
#define STARTS 8               /* anew, at once */
#define STARTS_GPUS 64         /* of a pool that gets all rounds of them */
#define STARTS_ROUNDS 10
#define STARTS_ROUNDS_LARGE 4 /* in odd pools without generations, as long as they gain */
#define STARTS_IDLE 5         /* rounds in a row without a gain */
#define STARTS_IDLE_ALIKE 2   /* the same in larger pools that are not odd */
#define OTHER_START 2         /* one start in so many is of another configuration */
#define NEAR 0.1              /* of the best: worth a start */
#define NEAR_OWN 0.05         /* the same of its degrees */

static const struct round {
    int most, of_degrees; /* sketches, and of the same degrees */
    int moves;
} rounds[] = {{LOOKS_PICKED_MOST, 16, 250}, {64, 8, 1000}, {16, 4, 4000}, {4, 3, 16000}};
#define GENERATIONS 3         /* at most, until one brings nothing */
#define GENERATION_WORTH 1e-3 /* of the step: a gain that is worth another, as of a tie */
#define GENERATION 64 /* numbers of rounds between two sets of looks that are moved */
#define COPIED 1000   /* sketches of such a set */
#define OF_DEGREES 4  /* degrees moved by themselves; more in the first generation */
#define OF_BOUNDS 2   /* of those, at most, that are not near but have the least bounds */
#define LAST_NEAR 0.03    /* of the best: what the last round may still gain */
#define OF_DEGREES_IDLE 2 /* rounds of starts of theirs without a gain */
#define ROUNDS ((int) (sizeof rounds / sizeof *rounds))
#define FIRST_HOT 0.1 /* of the step; halved from round to round */
/* The hotter, the longer: else the way back is lost. */
static const struct start {
    double hot; /* of the step */
    int moves;
} starts[] = {{0.02, 5000}, {0.05, 5000}, {0.1, 20000}};
#define KINDS_OF_STARTS ((int) (sizeof starts / sizeof *starts))

/* ---- rounds ---- */

/* Fewer where there is little to move, or where a move prices much. */
static int moves_for (const struct search *x, const struct workload_config *c, int moves)
{
    long stage = workload_world (&c->deg) / c->deg.pp, most = MOVES_PRICED / stage;
    int gpus = x->pool.n_gpus < FULL_GPUS ? x->pool.n_gpus : FULL_GPUS;

    moves = moves * x->s->effort / FULL_GPUS * gpus;
    return moves < most ? moves : (int) most;
}

/* The larger the pool, the colder: as many moves, which disturb a share of it, do not find back. */
static double heat_for (const struct search *x, double hot)
{
    double share = fmin (1, (double) HOT_GPUS / x->pool.n_gpus);

    return hot * share * share;
}

static enum status anneal_picked (struct search *x, struct looks *l, const long *pick,
                                  int n, int moves, double hot, int round,
                                  struct error *err)
{
    bool failed = false;

#pragma omp parallel for if (n > 1) schedule(dynamic, 1) num_threads(x->threads) \
    reduction(||                                                                 \
              : failed)
    for (int i = 0; i < n; i++) {
        struct look *k = &l->look[pick[i]];
        const struct workload_config *c = &x->config[k->index];
        struct rng mix = {looks_luck (x, c) + ((uint64_t) round << 40)};
        struct error why;

        if (!deadline_passed (&x->deadline))
            failed = sketch_anneal (&x->pool, &l->walks, c, moves_for (x, c, moves),
                                    heat_for (x, hot), rng_next (&mix), &x->deadline,
                                    &k->sketch, &why) == ST_NOMEM ||
                     failed;
    }
    return failed ? err_nomem (err) : ST_OK;
}

/* Where in the list the configuration is; -1: nowhere. */
static long find_look (const struct looks *l, long index)
{
    for (long i = 0; i < l->n; i++)
        if (l->look[i].index == index)
            return i;
    return -1;
}

/* Keep a configuration's sketch where it has none that is better; takes it over. */
static enum status keep_sketch (struct looks *l, const struct entry *e, struct sketch *k,
                                struct error *err)
{
    long at = find_look (l, e->index);

    if (at < 0)
        return looks_add (l, e->index, e->bound_s, k, err);
    sketch_take_better (k, &l->look[at].sketch);
    return ST_OK;
}

/* Keep what was adopted, in order. */
static enum status keep_adopted (struct looks *l, const struct entry *e, struct sketch *k,
                                 const enum status *st, int n, struct error *err)
{
    enum status all = ST_OK;

    for (int i = 0; i < n; i++) {
        if (st[i] == ST_OK && all == ST_OK)
            all = keep_sketch (l, &e[i], &k[i], err);
        else if (st[i] == ST_OK)
            sketch_release (&k[i]);
        else if (st[i] == ST_NOMEM && all == ST_OK)
            all = err_nomem (err);
    }
    return all;
}

/* The places of one sketch for all others of its degrees. */
static enum status try_siblings (struct search *x, struct looks *l, long index,
                                 const struct sketch *of, struct error *err)
{
    double best = look_energy (x, &l->look[0]);

    for (long at = 0; at < x->heap_n && x->heap[at].bound_s < best;) {
        struct entry e[ADOPTED];
        struct sketch k[ADOPTED];
        enum status st[ADOPTED];
        int n = 0;

        for (; n < ADOPTED && at < x->heap_n && x->heap[at].bound_s < best; at++)
            if (x->heap[at].index != index &&
                look_same_degrees (&x->config[x->heap[at].index], &x->config[index]))
                e[n++] = x->heap[at];
#pragma omp parallel for if (n > 1) schedule(dynamic, 1) num_threads(x->threads)
        for (int i = 0; i < n; i++)
            st[i] = deadline_passed (&x->deadline)
                        ? ST_NOFIT
                        : sketch_adopt (&x->pool, &l->walks, &x->config[e[i].index], of,
                                        &k[i], NULL);
        TRY (keep_adopted (l, e, k, st, n, err));
    }
    return ST_OK;
}

/* The best look of each kind, as far as they are below a value.
 * @param[in]  like   looks of its degrees alone; NULL: of any
 * @param[in]  paces  kinds are degrees and paces; else degrees
 * @param[out] at     [most] where they are in the list, the best first @return how many */
static int best_kinds (const struct search *x, const struct looks *l,
                       const struct workload_config *like, bool paces, double below,
                       int most, long *at)
{
    int n = 0;

    for (long i = 0;
         i < l->n && n < most && (i == 0 || look_value (x, &l->look[i]) < below); i++) {
        const struct workload_config *c = &x->config[l->look[i].index];
        bool had = like && !look_same_degrees (c, like);

        for (int k = 0; k < n && !had; k++) {
            const struct workload_config *other = &x->config[l->look[at[k]].index];

            had = look_same_degrees (c, other) && !(paces && !look_same_pace (c, other));
        }
        if (!had)
            at[n++] = i;
    }
    return n;
}

enum status looks_siblings (struct search *x, struct looks *l, bool midway,
                            struct error *err)
{
    enum status st = ST_OK;
    long of[SIBLINGS];
    /* Others of the same degrees and pace differ in little else than what siblings try. */
    int n = best_kinds (x, l, NULL, true, INFINITY, SIBLINGS, of);

    for (int i = 0; i < n; i++) /* the list may change */
        of[i] = l->look[of[i]].index;
    for (int i = 0; i < n && st == ST_OK; i++) {
        struct sketch own;

        TRY (sketch_copy (&l->look[find_look (l, of[i])].sketch, x->config[of[i]].deg.pp,
                          l->walks.n_gpus, &own, err));
        st = try_siblings (x, l, of[i], &own, err);
        sketch_release (&own);
    }
    return st == ST_OK ? looks_sort (x, l, midway, err) : st;
}

/* The best, and the best of all other degrees that are near; or of other paces in its own.
 * @param[out] near  [LOOKS_DEGREES_MOST + 1] @return how many */
static int near_kinds (const struct search *x, const struct looks *l, bool own,
                       long *near)
{
    double most = look_value (x, &l->look[0]) * (1 + (own ? NEAR_OWN : NEAR));

    return best_kinds (x, l, own ? &x->config[l->look[0].index] : NULL, own, most,
                       LOOKS_DEGREES_MOST + 1, near);
}

/* The best of other degrees that are near, or of another pace in its own degrees: the k-th of them
 * in turns; the best itself where there is none. */
static long other_start (const struct search *x, const struct looks *l, int k)
{
    long near[LOOKS_DEGREES_MOST + 1];
    int others = near_kinds (x, l, k % 2, near) - 1;

    return others > 0 ? near[1 + k / 2 % others] : 0;
}

/* Start from the best STARTS times, each with its own numbers. */
static enum status start_anew (struct search *x, struct looks *l, int round,
                               struct error *err)
{
    struct sketch own[STARTS] = {{0}};
    long from[STARTS];
    bool failed = false;

    for (int i = 0; i < STARTS; i++)
        from[i] = i % OTHER_START == OTHER_START - 1
                      ? other_start (x, l, round * STARTS / OTHER_START + i / OTHER_START)
                      : 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads) \
    reduction(||                                                      \
              : failed)
    for (int i = 0; i < STARTS; i++) {
        const struct look *k = &l->look[from[i]];
        const struct workload_config *c = &x->config[k->index];
        struct rng mix = {looks_luck (x, c) +
                          ((uint64_t) (ROUNDS + round * STARTS + i) << 40)};
        const struct start *how = &starts[(round * STARTS + i) % KINDS_OF_STARTS];
        struct error why;
        enum status st =
            sketch_copy (&k->sketch, c->deg.pp, l->walks.n_gpus, &own[i], &why);

        THEN (st, sketch_anneal (&x->pool, &l->walks, c, moves_for (x, c, how->moves),
                                 heat_for (x, how->hot), rng_next (&mix), &x->deadline,
                                 &own[i], &why));
        failed = failed || st != ST_OK;
    }
    for (int i = 0; i < STARTS; i++)
        if (own[i].gpu)
            sketch_take_better (&own[i], &l->look[from[i]].sketch);
    return failed ? err_nomem (err) : looks_sort (x, l, false, err);
}

/* Rounds of starts: as many, and fewer where a move takes longer. */
static int fewer_of (const struct search *x, int most)
{
    int fewer = most * STARTS_GPUS / x->pool.n_gpus;

    return fewer > most ? most : fewer > 1 ? fewer : 1;
}

enum status looks_start_anew (struct search *x, struct looks *l, int generation,
                              int idle_most, struct error *err)
{
    int most = x->odd && x->pool.n_gpus > LOOKS_GENERATIONS_GPUS
                   ? STARTS_ROUNDS_LARGE
                   : fewer_of (x, STARTS_ROUNDS);

    for (int r = 0, idle = 0;
         r < most && idle < fewer_of (x, idle_most) && !deadline_passed (&x->deadline);
         r++) {
        double before = look_value (x, &l->look[0]);

        TRY (start_anew (x, l, generation * GENERATION + r, err));
        if (look_value (x, &l->look[0]) < before)
            TRY (looks_siblings (x, l, false, err));
        idle = look_value (x, &l->look[0]) < before * (1 - LOOK_WORTH) ? 0 : idle + 1;
        search_show_progress (x);
    }
    return ST_OK;
}

/* All rounds, each generation with its own numbers.
 * @param[in] most  the last round is not for what is above this then */
static enum status anneal_rounds (struct search *x, struct looks *l, int generation,
                                  double most, struct error *err)
{
    long pick[LOOKS_PICKED_MOST];
    struct deadline all = x->deadline;
    enum status st = ST_OK;
    double hot = FIRST_HOT;

    for (int r = 0; r < ROUNDS && st == ST_OK &&
                    (r + 1 < ROUNDS || look_value (x, &l->look[0]) < most);
         r++, hot /= 2) {
        int n = looks_pick (x, l, look_energy (x, &l->look[0]), rounds[r].of_degrees,
                            rounds[r].most, pick);
        bool midway = r + 1 < ROUNDS;

        /* When time is short, later rounds are worth as much of it as this one. */
        x->deadline = deadline_part (&all, 1.0 / (ROUNDS + 1 - r));
        st = anneal_picked (x, l, pick, n, rounds[r].moves, hot,
                            generation * GENERATION + r, err);
        THEN (st, looks_sort (x, l, midway, err));
        THEN (st, looks_siblings (x, l, midway, err));
        x->deadline = all;
        search_show_progress (x);
    }
    return st;
}

/* @param[in]  like  those of its degrees alone; NULL: all
 * @param[out] to    its walks are those of `from`; release its sketches with release_looks */
static enum status copy_looks (const struct search *x, const struct looks *from,
                               const struct workload_config *like, struct looks *to,
                               struct error *err)
{
    *to = (struct looks){.walks = from->walks};
    for (long i = 0; i < from->n && to->n < COPIED; i++) {
        const struct look *k = &from->look[i];
        struct sketch own;

        if (like && !look_same_degrees (&x->config[k->index], like))
            continue;
        TRY (sketch_copy (&k->sketch, x->config[k->index].deg.pp, from->walks.n_gpus,
                          &own, err));
        TRY (looks_add (to, k->index, k->bound, &own, err));
    }
    return ST_OK;
}

static void release_looks (struct looks *l)
{
    l->walks = (struct walks){0};
    looks_release (l);
}

/* Move the sketches of one list into another, where they are better. */
static enum status merge_looks (struct looks *from, struct looks *to, struct error *err)
{
    enum status st = ST_OK;

    for (long i = 0; i < from->n && st == ST_OK; i++) {
        struct look *k = &from->look[i];

        st = keep_sketch (to, &(struct entry){k->bound, k->index, BOUND_FRACTIONS},
                          &k->sketch, err);
        k->sketch = (struct sketch){0};
    }
    return st;
}

/* The looks of some degrees moved by themselves: in all rounds, or in starts from the best. */
static enum status move_degrees (struct search *x, const struct looks *from, bool anew,
                                 const struct workload_config *like, int generation,
                                 struct looks *l, struct error *err)
{
    struct looks own;
    enum status st = copy_looks (x, from, like, &own, err);

    if (st == ST_OK && own.n > 0)
        st = anew ? looks_start_anew (x, &own, generation, OF_DEGREES_IDLE, err)
                  : anneal_rounds (x, &own, generation,
                                   look_value (x, &l->look[0]) * (1 + LAST_NEAR), err);
    THEN (st, merge_looks (&own, l, err));
    THEN (st, looks_sort (x, l, false, err));
    release_looks (&own);
    return st;
}

/* Is it of the degrees of one of these? */
static bool is_among (const struct workload_config *const *like, int n,
                      const struct workload_config *c)
{
    for (int i = 0; i < n; i++)
        if (look_same_degrees (like[i], c))
            return true;
    return false;
}

/* Beside these degrees those of the least bounds, until they are so many.
 * @return how many there are then */
static int add_least_bounds (const struct search *x, const struct looks *l, int most,
                             const struct workload_config **like, int n)
{
    while (n < most) {
        double least = look_value (x, &l->look[0]);
        long best = -1;

        for (long i = 0; i < l->n; i++)
            if (l->look[i].bound < least &&
                !is_among (like, n, &x->config[l->look[i].index])) {
                least = l->look[i].bound;
                best = i;
            }
        if (best < 0)
            break;
        like[n++] = &x->config[l->look[best].index];
    }
    return n;
}

int looks_degrees (const struct search *x, const struct looks *l, int most, int bounds,
                   const struct workload_config *like[LOOKS_DEGREES_MOST])
{
    long near[LOOKS_DEGREES_MOST + 1];
    int n = near_kinds (x, l, false, near);

    n = n < most ? n : most;
    for (int i = 0; i < n; i++)
        like[i] = &x->config[l->look[near[i]].index];
    return add_least_bounds (x, l, n + bounds < most ? n + bounds : most, like, n);
}

/* The best degrees, each moved by itself.
 * @param[in] from  the first sketches, moved in all rounds; NULL: l, in starts
 * @param[in] bounds  as in looks_degrees */
static enum status each_degrees (struct search *x, const struct looks *from, int most,
                                 int bounds, int generation, struct looks *l,
                                 struct error *err)
{
    const struct workload_config *like[LOOKS_DEGREES_MOST];
    int n = looks_degrees (x, l, most, bounds, like);

    for (int i = 0; i < n && !deadline_passed (&x->deadline); i++)
        TRY (move_degrees (x, from ? from : l, !from, like[i], generation + i, l, err));
    return ST_OK;
}

/* A generation: the degrees by themselves in rounds and starts, then the best in starts. */
static enum status next_generation (struct search *x, const struct looks *first,
                                    int generation, struct looks *l, struct error *err)
{
    int number = generation * 2 * (LOOKS_DEGREES_MOST + 1);

    TRY (each_degrees (x, first, generation == 1 ? LOOKS_DEGREES_MOST : OF_DEGREES,
                       generation == 1 ? OF_BOUNDS : 0, number, l, err));
    TRY (each_degrees (x, NULL, OF_DEGREES, 0, number + LOOKS_DEGREES_MOST, l, err));
    return looks_start_anew (x, l, number, STARTS_IDLE, err);
}

enum status looks_anneal (struct search *x, struct looks *l, struct error *err)
{
    struct looks first;
    enum status st;
    double before = INFINITY;

    if (!x->odd || x->pool.n_gpus > LOOKS_GENERATIONS_GPUS) {
        TRY (anneal_rounds (x, l, 0, INFINITY, err));
        return looks_start_anew (
            x, l, 0,
            x->odd || x->pool.n_gpus <= STARTS_GPUS ? STARTS_IDLE : STARTS_IDLE_ALIKE,
            err);
    }
    st = copy_looks (x, l, NULL, &first, err);
    THEN (st, anneal_rounds (x, l, 0, INFINITY, err));
    for (int g = 1; g <= GENERATIONS && st == ST_OK && !deadline_passed (&x->deadline) &&
                    look_value (x, &l->look[0]) < before * (1 - GENERATION_WORTH);
         g++) {
        before = look_value (x, &l->look[0]);
        st = next_generation (x, &first, g, l, err);
    }
    release_looks (&first);
    return st;
}
