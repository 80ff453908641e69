/* Estimates of single links; merge_history.c goes through those of a cluster. */
#include "topology/edit/merge_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.9 /* rates whose ratio is above agree */

const char *history_why_text (enum history_why why)
{
    static const char *const text[HISTORY_WHYS] = {"newest",  "collision", "high",
                                                   "changed", "accused",   "busy"};

    return text[why];
}

static bool agree (double a, double b)
{
    return fmin (a, b) > NEAR * fmax (a, b);
}

static int by_rate (const void *a, const void *b)
{
    const struct history_sample *x = a, *y = b;

    return (x->rate > y->rate) - (x->rate < y->rate);
}

static double weight (const struct history_sample *s, double now_s, double half_life_s)
{
    return exp2 ((s->when_s - now_s) / half_life_s);
}

/* The rate at which half of the weight is reached; one measurement of two is the newer. */
static double weighted_median (const struct history_sample *s, int n, double half_life_s,
                               struct history_sample *work)
{
    double now_s = s[n - 1].when_s, all = 0, sum = 0;
    int k = 0;

    if (n < 3)
        return s[n - 1].rate;
    memcpy (work, s, (size_t) n * sizeof *work);
    qsort (work, (size_t) n, sizeof *work, by_rate);
    for (int i = 0; i < n; i++)
        all += weight (&work[i], now_s, half_life_s);
    while (k < n - 1 && (sum += weight (&work[k], now_s, half_life_s)) < all / 2)
        k++;
    return work[k].rate;
}

/* How many of the first measurements the newest two refute; up to two of them they outweigh
 * without that. */
static int refuted (const struct history_sample *s, int n, double half_life_s,
                    struct history_sample *work)
{
    double before, a, b;

    if (n < 5)
        return 0;
    before = weighted_median (s, n - 2, half_life_s, work);
    a = s[n - 2].rate;
    b = s[n - 1].rate;
    return agree (a, b) && !agree (a, before) && !agree (b, before) &&
                   (a > before) == (b > before)
               ? n - 2
               : 0;
}

/* The estimate of measurements without other traffic, oldest first. */
static struct history_estimate of_idle (const struct history_sample *s, int n,
                                        double half_life_s, double accused_s,
                                        struct history_sample *work)
{
    struct history_estimate e = {.rate = s[n - 1].rate, .samples = n};
    int from = 0;

    if (!isnan (accused_s)) {
        while (from < n - 1 && s[from].when_s <= accused_s)
            from++;
        e.rate = fmin (
            e.rate, n - from > 2 ? weighted_median (s + from, n - from, half_life_s, work)
                                 : s[from].rate);
        e.why = HISTORY_ACCUSED;
    } else if ((from = refuted (s, n, half_life_s, work)) > 0) {
        e.why = HISTORY_CHANGED;
    } else {
        e.rate = weighted_median (s, n, half_life_s, work);
        if (!agree (e.rate, s[n - 1].rate))
            e.why = s[n - 1].rate < e.rate ? HISTORY_COLLISION : HISTORY_HIGH;
    }
    e.samples = n - from;
    return e;
}

/* The highest of the busy ones that are at most a half-life older than the newest. */
static double highest_busy (const struct history_sample *s, int n, double half_life_s)
{
    double best = 0;

    for (int i = 0; i < n; i++)
        if (s[i].busy && s[n - 1].when_s - s[i].when_s <= half_life_s)
            best = fmax (best, s[i].rate);
    return best;
}

struct history_estimate history_estimate (const struct history_sample *s, int n,
                                          double half_life_s, double accused_s,
                                          struct history_sample *work)
{
    struct history_sample *idle = work, *room = work + n;
    struct history_estimate e = {.samples = n, .why = HISTORY_BUSY};
    double bound;
    int k = 0, alone;

    for (int i = 0; i < n; i++)
        if (!s[i].busy)
            idle[k++] = s[i];
    if (k == 0) {
        e.rate = highest_busy (s, n, half_life_s);
        return e;
    }
    e = of_idle (idle, k, half_life_s, accused_s, room);
    e.age_s = s[n - 1].when_s - idle[k - 1].when_s;
    bound = e.rate;
    alone = k;
    k = 0;
    for (int i = 0; i < n; i++)
        if (!s[i].busy || s[i].rate > bound)
            idle[k++] = s[i];
    if (k > alone) {
        struct history_estimate with = of_idle (idle, k, half_life_s, accused_s, room);

        if (with.rate > bound) {
            with.why = HISTORY_BUSY;
            with.age_s = s[n - 1].when_s - idle[k - 1].when_s;
            e = with;
        }
    }
    return e;
}
