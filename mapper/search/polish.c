/* What is done with the best configurations once the search is through: closer bounds, and more
 * effort for their placements. */
#include "mapper/search/search_private.h"

#include <math.h>

#include "base/rng.h"

#define POLISHED 4              /* of the best, placed again with more effort */
#define POLISH_SEEDS 2          /* and so many random numbers */
#define POLISH_GROWTH 4         /* times the moves of the round before */
#define POLISH_WORTH 1e-4       /* of the step: a gain that is worth another round */
#define OUT_OF_REACH 0.05       /* of the best step: no effort brings so much */
#define OUT_OF_REACH_LARGE 0.005 /* the same in a pool of more nodes than LARGE */
#define LARGE 256               /* nodes */
#define LARGE_FEWER 4 /* so many times fewer moves there, which are as many more */
#define TRIED 20000   /* placements of a small pool */

/* Those of the best few that more effort may help: nothing is left to find where all
 * placements were tried, where the bound is near, or above the best plan, and where the plan
 * is far from the best.
 * @return how many */
static int pick_best (const struct search *x, long *pick)
{
    int n = 0;
    double best_s = search_value (x, x->best).step_s,
           reach = x->pool.n_nodes > LARGE ? OUT_OF_REACH_LARGE : OUT_OF_REACH;
    bool small = place_tries_all (&x->pool);
    int left = 0;

    for (; n < POLISHED && n < x->n_placed; n++) {
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
            search_value (x, pick[i]).step_s > bound_s * (1 + SEARCH_CLOSE_ENOUGH) &&
            search_value (x, pick[i]).step_s < best_s * (1 + reach))
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

    return place_config (&x->pool, search_groups (x, c->deg.tp), c, x->s->granularity,
                         effort, rng_next (&mix), out, err);
}

/* The same with several seeds, which begin alike. */
static void place_seeds (const struct search *x, long at, int round, struct effort effort,
                         struct placed *out, enum status *st)
{
    struct error why;

    effort.begun = begun_create ();
    for (int i = 0; i < POLISH_SEEDS; i++) {
        st[i] = effort.begun
                    ? place_again (x, at, round * POLISH_SEEDS + i, effort, &out[i], &why)
                    : ST_NOMEM;
        search_show_progress (x);
    }
    begun_destroy (effort.begun);
}

/* Place the best few again with several seeds; the order of the list is kept.
 * @param[out] moved  the most that exactly priced moves gained where the step got less */
static enum status polish_round (struct search *x, const long *pick, int n, int round,
                                 struct effort effort, double *moved, struct error *err)
{
    struct placed again[POLISHED * POLISH_SEEDS] = {{0}};
    enum status st[POLISHED * POLISH_SEEDS] = {ST_OK};
    bool failed = false;

#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads) if (n > 0)
    for (int k = 0; k < n; k++)
        place_seeds (x, pick[k], round, effort, &again[k * POLISH_SEEDS],
                     &st[k * POLISH_SEEDS]);
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
static enum status place_best_again (struct search *x, struct error *err)
{
    enum status st = ST_OK;
    double gain = INFINITY;
    int most = 1;

    for (int round = 0, exact = 1; st == ST_OK && exact <= most && gain > POLISH_WORTH &&
                                   !deadline_passed (&x->deadline);
         round++, exact *= POLISH_GROWTH) {
        long pick[POLISHED];
        int n = pick_best (x, pick);
        double before = search_value (x, x->best).step_s, moved = 0.0;

        most = x->s->polish * x->s->effort / (n > 1 ? n : 1);
        if (x->pool.n_nodes > LARGE)
            most /= LARGE_FEWER;
        st = polish_round (x, pick, n, round,
                           (struct effort){most > 1 ? most : 1, exact, INFINITY, TRIED,
                                           &x->deadline, NULL},
                           &moved, err);
        gain = fmin (moved, 1.0 - search_value (x, x->best).step_s / before);
    }
    return st;
}

enum status search_polish (struct search *x, struct error *err)
{
    search_closer_placed (x, search_lowest_left (x));
    TRY (search_adopt (x, err));
    TRY (place_best_again (x, err));
    return x->annealed ? ST_OK : search_refine (x, err);
}
