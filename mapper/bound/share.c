/* The GPUs of all classes in one replica.
 *
 * Whatever slots cost, some replica has slots for no more than the mean of all.  In it a stage is
 * on one slot, and all layers are on the slots that it has: so what stages hold, and what a way
 * through all of them takes, is known for all classes together.
 *
 * Slots get any prices by class.  Were every replica dearer than the mean, all would be too.  What
 * a stage holds in that replica is the rows' (rows.c); stages to slots within the price is a small
 * recursion; and the same, with layers worth so much beyond their time, tells what the way takes
 * more than on any slots, by duality.  That makes the rows hold less: a few rounds. */
#include "mapper/bound/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"

#define PRICE 8        /* of the best slot */
#define ROUNDS 8       /* of own_ends: each is a bound */
#define PARTS 4096.0   /* of what a layer is worth */
#define NO_UNIT (-1e9) /* of these: a stage that cannot be so */
#define DEAR 8.0       /* layers that a slot one class faster may cost */
#define THIRDS 8
#define WORTHS 3 /* each twice the one before: large ones tell what slots in price hold */

bool kinds_has_units (const struct kinds *x, int class)
{
    bool some = x->used[BY_MEMORY] || x->own_times;

    for (enum stock i = BY_CLASS; i <= ALONE; i++)
        some = some || x->units[i][class] > 0;
    return some;
}

double kinds_most_layers (const struct kinds *x, int kind, int k, int below,
                          const struct rows_times *then)
{
    int *near = x->near + kind * x->p + k;
    int most = rows_most_layers (&x->kind[kind].rows, k, kinds_slot (x, kind), below,
                                 then, *near);

    *near = most;
    return most > 0 ? most : IMPOSSIBLE;
}

bool kinds_goes_around (const struct kinds *x, const struct first *first, double end)
{
    const struct bound_pipeline *any = &x->kind[0].pipeline;
    int rounds = (any->m - 1) / any->p, rest = rounds > 0 ? (any->m - 1) % any->p : 0;

    return any->schedule != SCHEDULE_1F1B ||
           (1 + rounds) * rows_around_s (&x->kind[0].rows) +
                   rest * rows_micro_s (&x->kind[first->class].rows, 0, first->class > 0,
                                        first->layers) <=
               end;
}

void kinds_put_above (struct kinds *x, double end)
{
    for (int j = 0; x->above && j <= x->classes + ALONE; j++)
        if (x->kind[j].rows.x)
            rows_put_above (&x->kind[j].rows, end, x->above + j * x->p);
}

/* ---- one replica ---- */

void kinds_put_told (struct kinds *x, bool told)
{
    for (int q = 0; q < x->classes; q++)
        x->kind[q].pipeline.told = told;
}

/* What all layers take beyond any slots, into a kind's rows. */
static void put_way (const struct kinds *x, struct pipeline_case *rows, double way_s)
{
    rows->way_more_s[FORWARD] = x->fwd_share * way_s;
    rows->way_more_s[BACKWARD] = x->back_share * way_s;
}

/* May stage 0's slot there be of that class?  A stage whose slowest class has no units is tried as
 * one of a faster class. */
static bool may_be_first (const struct kinds *x, const struct first *first, int class)
{
    while (class > first->class && !kinds_has_units (x, class))
        class --;
    return class <= first->class;
}

/* Stage k's layers on a kind, from so many down, where all ways take what is put into its rows. */
static double own_layers (const struct kinds *x, const struct first *first, int kind,
                          int k, double most, int below, double end)
{
    const struct pipeline_case *rows = &x->kind[kind].rows;
    bool given = k == 0 && first->layers > 0;
    int slot = kinds_slot (x, kind), cap = rows->x->cap[slot * x->p + k];
    int n = given ? first->layers : (int) smaller (most, cap);

    if (given && (n > cap || !may_be_first (x, first, kind)))
        return IMPOSSIBLE;
    while (n >= rows->x->least && rows_end_s (rows, k, slot, n, below) > end)
        n = given ? 0 : n - rows->x->unit;
    return n >= rows->x->least ? n : IMPOSSIBLE;
}

/* What stages hold at most on each kind in that replica, from what find_most left. */
static void find_own (struct kinds *x, const struct first *first,
                      const struct rows_times *then, double way_s)
{
    const double *any = x->most + (size_t) BY_CLASS * (size_t) x->p * KINDS_MAX;
    int below = 0;

    kinds_put_told (x, true);
    for (int q = 0; q < x->classes; q++)
        put_way (x, &x->kind[q].rows, way_s);
    kinds_put_above (x, then->end_s);
    for (int k = x->p - 1; k >= 0; k--) {
        double *own = x->own + k * KINDS_MAX, most = 0.0;

        for (int q = 0; q < x->classes; q++) {
            bool given = k == 0 && first->layers > 0;
            /* Of a class without units find_most does not know. */
            double from = way_s > 0.0 ? own[q]
                          : given || kinds_has_units (x, q)
                              ? any[k * KINDS_MAX + q]
                              : kinds_most_layers (x, q, k, below, then);

            own[q] = own_layers (x, first, q, k, from, below, then->end_s);
            most = larger (most, own[q]);
        }
        below += (int) most;
    }
    kinds_put_told (x, false);
    for (int q = 0; q < x->classes; q++)
        put_way (x, &x->kind[q].rows, 0.0);
    kinds_put_above (x, then->end_s);
}

/* A slot's price by kind, and what some replica has to spend at most.  Any prices hold: these
 * are about what stages hold. */
static int find_prices (const struct kinds *x, int price[KINDS_MAX])
{
    double held[KINDS_MAX] = {0.0}, sum = 0.0, left = x->p;

    for (int k = 0; k < x->p; k++)
        for (int q = 0; q < x->classes; q++)
            held[q] += larger (0.0, x->own[k * KINDS_MAX + q]);
    for (int q = 0; q < x->classes; q++) {
        double slots = q < x->classes - 1 ? smaller (left, x->slots[q]) : left;

        price[q] = held[0] > 0.0 ? (int) lround (PRICE * held[q] / held[0]) : 0;
        if (q > 0 && price[q] > price[q - 1])
            price[q] = price[q - 1];
        sum += slots * price[q];
        left -= slots;
    }
    return (int) floor (sum + 1e-9);
}

/* What all layers take on the slots of that replica beyond any slots, at least, when that is way_s
 * or more; INFINITY where they do not fit.  By duality: were a layer worth so much. */
static double own_way (struct kinds *x, const int price[KINDS_MAX], int most,
                       double way_s)
{
    int layers = x->x->times.layers;
    double more = way_s;

    if (stock_most_gain (x->own, x->p, x->classes, price, most, x->work) < layers)
        return INFINITY;
    for (int q = 1; q < x->classes; q++) {
        double worth = x->more_s[q];

        if (!(worth > x->more_s[q - 1]) || !isfinite (worth))
            continue;
        for (int i = 0; i < x->p * KINDS_MAX; i++) {
            int j = i % KINDS_MAX;

            if (j < x->classes)
                x->gain[i] = x->own[i] < 0.0
                                 ? x->own[i]
                                 : x->own[i] * larger (0.0, worth - x->more_s[j]);
        }
        more = larger (more, worth * layers - stock_most_gain (x->gain, x->p, x->classes,
                                                               price, most, x->work));
    }
    return more;
}

/* ---- that replica, and the units of all stages ----
 *
 * Let each of class q count once for every class after it: some replica's slots count no more than
 * the mean of all, rounded down.  In any replica a stage's slot is no slower than its slowest one,
 * by whose class it takes a unit of BY_CLASS, or a faster class's.  So a plan gives each stage a
 * unit and a slot such that its layers are no more than the slowest slot allows in its own replica
 * (x->most) and the slot in that one (x->own), and both counts hold.  No plan gains more than the
 * most over all such choices.  The slots' count is priced, which only makes that more: what they
 * cost is taken off and the whole budget added.  The units' is kept: an assignment. */

/* The class by which a stage holds its layers whose unit is of class j and slot of class s. */
static int held_by (const struct kinds *x, int j, int s)
{
    while (s > j && !kinds_has_units (x, s))
        s--;
    return s > j ? s : j;
}

static int budget_of (const struct kinds *x)
{
    double slots = 0.0, sum = 0.0;

    for (int q = 0; q < x->classes - 1; q++) {
        slots += x->slots[q];
        sum += smaller (slots, x->p);
    }
    return (int) floor (sum + 1e-9);
}

/* What n layers on a slot of class s gain, less what the slot costs; without worth they count
 * themselves.  A whole number of parts, so that sums are exact. */
static double unit_gain (const struct kinds *x, double n, int s, double worth,
                         double price)
{
    double each = worth > 0.0 ? worth - x->more_s[s] : 1.0,
           gain = (each > 0.0 ? n : x->kind[0].pipeline.least) * each;

    if (!(n > 0.0))
        return NO_UNIT;
    gain = ceil ((gain - price * (x->classes - 1 - s)) * PARTS /
                 (worth > 0.0 ? worth : 1.0));
    return larger (gain, NO_UNIT);
}

/* The most that all stages gain, whatever a slot costs: by duality. */
static double most_of_units (struct kinds *x, const struct first *first, double worth,
                             double price)
{
    const double *any = x->most + (size_t) BY_CLASS * (size_t) x->p * KINDS_MAX;
    struct assignment a = {.kinds = x->classes,
                           .first = x->p,
                           .p = x->p,
                           .most = x->gain,
                           .of = x->of + (size_t) BY_CLASS * (size_t) x->p};
    bool alone = first->layers > 0;
    double mine = alone ? NO_UNIT : 0.0;

    memcpy (a.left, x->units[BY_CLASS], sizeof a.left);
    for (int s = 0; s < x->classes && alone; s++)
        mine = larger (mine, unit_gain (x, x->own[s], s, worth, price));
    if (alone && !assign_unit (&a, first->class))
        return -INFINITY;
    for (int k = x->p - 1; k >= alone; k--) {
        const double *own = x->own + k * KINDS_MAX;

        for (int j = 0; j < x->classes; j++) {
            double *gain = &x->gain[k * KINDS_MAX + j];

            *gain = NO_UNIT;
            for (int s = 0; s < x->classes; s++) {
                double n = smaller (any[k * KINDS_MAX + held_by (x, j, s)], own[s]);

                *gain = larger (*gain, unit_gain (x, n, s, worth, price));
            }
        }
        if (!assign_next (&a))
            return -INFINITY;
    }
    return (mine + a.held) * (worth > 0.0 ? worth : 1.0) / PARTS + price * budget_of (x);
}

/* The least of that over prices, of which it is convex: by thirds. */
static double least_of_units (struct kinds *x, const struct first *first, double worth)
{
    double lo = 0.0, hi = DEAR * worth, least = INFINITY;

    for (int round = 0; round < THIRDS; round++) {
        double third = (hi - lo) / 3.0,
               cheap = most_of_units (x, first, worth, lo + third),
               dear = most_of_units (x, first, worth, hi - third);

        least = smaller (least, smaller (cheap, dear));
        if (cheap < dear)
            hi -= third;
        else
            lo += third;
    }
    return least;
}

/* As own_way, from what it left. */
static double way_by_units (struct kinds *x, const struct first *first, double way_s)
{
    int layers = x->x->times.layers;
    double more = way_s;

    if (most_of_units (x, first, 0.0, 0.0) < layers)
        return INFINITY;
    for (int q = 1; q < x->classes; q++) {
        double worth = x->more_s[q];

        if (!(worth > x->more_s[q - 1]) || !isfinite (worth))
            continue;
        for (int round = 0; round < WORTHS; round++, worth *= 2.0)
            more = larger (more, worth * layers - least_of_units (x, first, worth));
    }
    return more;
}

/* What one replica's way takes more, and whether it ends then: each round knows the way of the
 * same replica from the one before. */
static bool replica_ends (struct kinds *x, const struct first *first,
                          const struct rows_times *then, bool units)
{
    struct pipeline_case *any = &x->kind[0].rows;
    int price[KINDS_MAX], budget = 0;
    double way_s = 0.0, more;
    bool ends = true;

    for (int round = 0; ends && round < ROUNDS; round++, way_s = more) {
        find_own (x, first, then, way_s);
        if (round == 0)
            budget = find_prices (x, price);
        more = units ? way_by_units (x, first, way_s) : own_way (x, price, budget, way_s);
        if (!isfinite (more))
            return false;
        kinds_put_told (x, true);
        put_way (x, any, more);
        ends =
            kinds_goes_around (x, &(struct first){.layers = first->layers}, then->end_s);
        put_way (x, any, 0.0);
        kinds_put_told (x, false);
        if (more <= way_s * (1.0 + 1e-3))
            break;
    }
    return ends;
}

bool kinds_share_ends (struct kinds *x, const struct first *first,
                       const struct rows_times *then)
{
    return !x->own || (replica_ends (x, first, then, false) &&
                       (!x->x->closer || replica_ends (x, first, then, true)));
}

void kinds_share_init (struct kinds *x)
{
    const struct workload_degrees *d = &x->x->b.c->deg;
    size_t stages = (size_t) x->p * KINDS_MAX;
    long before = 0;

    if (x->classes < 2)
        return;
    x->fwd_share = x->back_share = 1.0;
    for (int q = 0; q < x->classes; q++) {
        const struct bound_slot *s = x->kind[q].pipeline.slot;
        long slots = pool_groups (x->x->b.pool, q, 1) / (d->tp * d->cp);

        x->slots[q] = (double) (slots - before) / d->dp;
        before = slots;
        x->more_s[q] = INFINITY;
        for (int i = 0; i < WORKLOAD_KINDS; i++) {
            const struct bound_layer *any = &s[0].layer[i],
                                     *here = &s[kinds_slot (x, q)].layer[i];
            double fwd = here->fwd_s - any->fwd_s, back = here->back_s - any->back_s;

            x->more_s[q] = smaller (x->more_s[q], fwd + back);
            if (fwd + back > 0.0 && isfinite (fwd + back)) { /* not where none can be */
                x->fwd_share = smaller (x->fwd_share, fwd / (fwd + back));
                x->back_share = smaller (x->back_share, back / (fwd + back));
            }
        }
    }
    x->own = malloc ((2 * stages + 2 * ((size_t) x->p * PRICE + 1)) * sizeof (double));
    x->gain = x->own ? x->own + stages : NULL;
    x->work = x->own ? x->gain + stages : NULL;
}
