/* How far may the best plan be from the best of all?  The bounds that keep the whole space's down
 * are raised, those of placed configurations and of the heap's.
 *
 * The whole space's bound is the lowest of them.  Once one is as close as it gets, it is no higher
 * than that, and of the others need only be known that they are: that is told far sooner than how
 * high they are. */
#include "mapper/search/search_private.h"

#include <math.h>

#define LOOSE 0.03    /* of the step: closer bounds of single plans do not close it ... */
#define SMALL_GPUS 64 /* ... in a pool of more, nor are others bounded closest there */
#define LOWER 40      /* times that the lowest of all may turn out lower yet */

#define BELOW 0.999999 /* what is enough, or hardly less */

#define PAIR 2 /* one for each of two threads, whichever there are */

static void raise_to (const struct search *x, struct entry *e, enum bound_level level,
                      double known, double enough)
{
    double bound = search_bound (x, &x->config[e->index], level, known, enough);

    if (bound > known) /* that was no bound */
        e->bound_s = fmax (e->bound_s, bound);
    if (bound < enough) /* else the level may tell more yet */
        e->level = level;
}

/* As close as its bound gets, or as high as is enough.  Before the last level need only be known
 * whether it is.  In a large pool a bound that is far off is so for other reasons, and the closest
 * level takes seconds on a hundred nodes. */
static void raise_bound (const struct search *x, struct entry *e, double enough)
{
    bool placed = x->placed_at[e->index] > 0, small = x->pool.n_gpus <= SMALL_GPUS;
    double far = search_value (x, x->best).step_s * (1.0 - LOOSE);

    while (e->bound_s < enough && !search_is_bounded (x, e)) {
        enum bound_level level = search_next_level (x, e->level);
        struct entry then = {.index = e->index, .level = level};
        bool last = !small && search_is_bounded (x, &then);

        raise_to (x, e, level, last ? e->bound_s : enough * BELOW, enough);
    }
    if (e->bound_s < enough && e->level < BOUND_RUNS &&
        (small || (placed && e->bound_s >= far)))
        raise_to (x, e, BOUND_RUNS, e->bound_s, enough);
}

/* Raise two or one.  @return what is enough for others */
static double raise_pair (struct search *x, struct entry *pair, int n, double enough,
                          int *lower)
{
    double least = enough;

#pragma omp parallel for schedule(dynamic, 1) num_threads(x->threads) if (n > 1)
    for (int k = 0; k < n; k++) {
        raise_bound (x, &pair[k], enough);
        search_show_progress (x);
    }
    for (int k = 0; k < n; k++)
        least = fmin (least, pair[k].bound_s);
    *lower += least < enough;
    return least;
}

/* The lowest two of the placed ones below that.  @return how many there are */
static int pick_placed (const struct search *x, double enough, struct entry pair[PAIR])
{
    int n = 0;

    for (long i = 0; i < x->n_placed; i++) {
        const struct kept *p = &x->placed[i];
        int at = n;

        if (!(p->bound < enough))
            continue;
        for (; at > 0 && p->bound < pair[at - 1].bound_s; at--)
            if (at < PAIR)
                pair[at] = pair[at - 1];
        if (at < PAIR)
            pair[at] = (struct entry){p->bound, p->index, p->level};
        n = n < PAIR ? n + 1 : PAIR;
    }
    return n;
}

double search_closer_placed (struct search *x, double enough)
{
    double step_s = search_value (x, x->best).step_s, low;
    int most = LOWER * x->s->effort, lower = 0, n;
    struct entry pair[PAIR];

    enough = fmin (fmin (enough, step_s), fmin (x->unplaced_bound, x->waiting_bound_s));
    enough = fmin (enough, x->unlisted_bound_s);
    low = fmin (enough, step_s * (1.0 - SEARCH_CLOSE_ENOUGH));
    while (lower < most && (n = pick_placed (x, low, pair)) > 0 &&
           !deadline_passed (&x->deadline)) {
        enough = raise_pair (x, pair, n, enough, &lower);
        low = fmin (low, enough);
        for (int k = 0; k < n; k++) {
            struct kept *p = &x->placed[x->placed_at[pair[k].index] - 1];

            p->bound = pair[k].bound_s;
            p->level = pair[k].level;
        }
    }
    for (long i = 0; i < x->n_placed; i++)
        enough = fmin (enough, x->placed[i].bound);
    return enough;
}

/* Those of the heap that were not placed, the lowest two below that.  @return how many there are */
static int pop_left (struct search *x, double enough, struct entry pair[PAIR])
{
    int n = 0;

    while (n < PAIR && x->heap_n > 0 && x->heap[0].bound_s < enough) {
        struct entry e = heap_pop (x->heap, &x->heap_n);

        if (x->placed_at[e.index] == 0)
            pair[n++] = e;
        else
            search_note_bound (x, &e);
    }
    return n;
}

/* Raise those of the heap until the lowest turned out lower so often. */
static void raise_left (struct search *x, double enough, int most)
{
    struct entry pair[PAIR];
    int lower = 0, n;

    while (lower < most && !deadline_passed (&x->deadline) &&
           (n = pop_left (x, enough, pair)) > 0) {
        enough = raise_pair (x, pair, n, enough, &lower);
        for (int k = 0; k < n; k++)
            if (isfinite (pair[k].bound_s))
                search_push (x, pair[k]);
            else
                x->info->refused_memory++;
    }
}

/* The second time for the proof alone, which the first one that stays below the best plan ends. */
void search_closer (struct search *x)
{
    raise_left (x, search_closer_placed (x, INFINITY), LOWER * x->s->effort);
    raise_left (x, search_cut (x), 1);
}
