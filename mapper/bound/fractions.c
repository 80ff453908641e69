/* One replica's pipeline in fractions of layers, for the lower bound, and what follows it;
 * recursion.c says what the rows are. */
#include "mapper/bound/bound_private.h"

#include <math.h>

#include "base/extremes.h"

struct stage_times stage_times_of (const struct bound_case *x, int k, int kind)
{
    const struct config_times *times = x->times;
    const struct slot_times *s = &times->slot[kind];
    struct stage_times l = {s->micro_s, s->micro_s, s->fwd_s, s->back_s};

    if (k == 0) {
        l.fwd_s += s->embed_fwd_s;
        l.back_s += s->embed_back_s;
        l.layer_fwd_s += times->first_fwd_s;
        l.layer_back_s += times->first_back_s;
        if (x->spans_here) {
            l.layer_fwd_s += times->span_fwd_s[kind];
            l.layer_back_s += times->span_back_s[kind];
        }
    }
    if (k == times->p - 1) {
        l.fwd_s += s->head_fwd_s;
        l.back_s += s->head_back_s;
    }
    return l;
}

void bound_row_weights (const struct config_times *times, int k, double *fwd,
                        double *back)
{
    int before = times->p - k < times->m ? times->p - k : times->m;

    *fwd = times->gpipe ? times->m - 1 : times->m - before;
    *back = times->m - 1.0;
}

int bound_rounds_left (const struct config_times *times, int k)
{
    int left = times->m - 1 - (times->p - 1 - k);

    return times->gpipe || left < 1 ? 0 : left;
}

/* ---- fractions of layers ---- */

/* The least P of rows (1). */
static double fractions_1 (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    double shares = 0.0, weights = 0.0, least_loss = INFINITY, worst = 0.0;

    for (int k = 0; k < times->p; k++) {
        double wf, wb, fixed[2], per_layer[2];

        bound_row_weights (times, k, &wf, &wb);
        for (int kind = 0; kind < 2; kind++) {
            struct stage_times l = stage_times_of (x, k, kind);

            fixed[kind] = wb * l.back_s + wf * l.fwd_s;
            per_layer[kind] = wb * l.layer_back_s + wf * l.layer_fwd_s;
        }
        /* Every stage holds a layer. */
        worst = larger (worst, x->slow > 0 ? smaller (fixed[0] + per_layer[0],
                                                      fixed[1] + per_layer[1])
                                           : fixed[0] + per_layer[0]);
        if (!(per_layer[0] > 0))
            continue;
        shares += smaller (fixed[0] / per_layer[0], fixed[1] / per_layer[1]);
        weights += 1.0 / per_layer[0];
        least_loss = smaller (least_loss, 1.0 / per_layer[0] - 1.0 / per_layer[1]);
    }
    if (x->slow > 0 && isfinite (least_loss))
        weights -= x->slow * larger (0.0, least_loss);
    return weights > 0 ? larger (worst, (times->layers + shares) / weights) : worst;
}

/* The least P of rows (2): they are added up with the weights y_k >= 0 for which stage i's
 * layers count M_i y_i + (sum of y before i) >= 1/c_i each, c a layer's C; then P times all
 * y is at least the layers and the fixed parts.  Where the slow slots lower the sum of y
 * least is found by trying all (the next sum grows with the last).  0 where some stage has
 * no such row. */
static double fractions_2 (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    double sums[128], shares = 0.0;

    if (times->slot[0].fwd_s + times->slot[0].back_s <= 0 ||
        bound_rounds_left (times, 0) == 0 ||
        x->slow >= (int) (sizeof sums / sizeof *sums))
        return 0.0;
    for (int c = 0; c <= x->slow; c++)
        sums[c] = c == 0 ? 0.0 : -INFINITY;
    for (int k = 0; k < times->p; k++) {
        double inverse[2], share = INFINITY;

        for (int kind = 0; kind < 2; kind++) {
            struct stage_times l = stage_times_of (x, k, kind);

            inverse[kind] = 1.0 / (l.layer_fwd_s + l.layer_back_s);
            share = smaller (share, (l.fwd_s + l.back_s) * inverse[kind]);
        }
        shares += share;
        for (int c = x->slow; c >= 0; c--) {
            double best = -INFINITY;

            for (int kind = 0; kind < 2 && kind <= c; kind++)
                if (isfinite (sums[c - kind]))
                    best =
                        larger (best, sums[c - kind] +
                                          larger (0.0, inverse[kind] - sums[c - kind]) /
                                              bound_rounds_left (times, k));
            sums[c] = best;
        }
    }
    return isfinite (sums[x->slow]) ? (times->layers + shares) / sums[x->slow] : 0.0;
}

double bound_least_rest_s (const struct bound_case *x)
{
    return larger (fractions_1 (x), fractions_2 (x));
}

double bound_least_way_s (const struct bound_case *x)
{
    double sum =
        x->times->dearer_s + bound_slow_run_sends_s (x->times, x->times->p, x->slow);

    for (int k = 0; k < x->times->p; k++) {
        struct stage_times l = stage_times_of (x, k, 0);

        sum += l.fwd_s + l.back_s;
    }
    return sum + x->times->layers * (x->times->slot[0].fwd_s + x->times->slot[0].back_s);
}

/* The least end of stage 0. */
static double fractional_end (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    const struct slot_times *fast = &times->slot[0], *slow = &times->slot[1];
    double more = slow->fwd_s + slow->back_s - fast->fwd_s - fast->back_s;
    double most = bound_least_rest_s (x);
    double base = bound_least_way_s (x), end, per_fast;

    if (x->slow == 0)
        return base + most;
    base += most + 2.0 * x->slow * (slow->micro_s - fast->micro_s);
    per_fast = (times->p - x->slow) /
               ((times->m - 1.0) * fast->back_s +
                (times->m - (times->p < times->m ? times->p : times->m)) * fast->fwd_s);
    if (times->p == x->slow || !isfinite (per_fast))
        return base + more * x->slow;
    /* A larger P may put fewer layers on the slow slots: their number falls in P, so the
     * end is linear in it until every slow stage has its one layer. */
    end = base + more * larger (x->slow, times->layers - most * per_fast);
    return smaller (end, base +
                             larger (0.0, (times->layers - x->slow) / per_fast - most) +
                             more * x->slow);
}

/* ---- what follows ---- */

/* What of stage 0, with `first` layers on that kind of slot, can hide its synchronisation;
 * any of the layers may be of the dearer kind, as the end has them. */
static double under_s (const struct bound_case *x, double first, int kind)
{
    struct stage_times l = stage_times_of (x, 0, kind);

    return l.fwd_s + l.back_s + first * (l.layer_fwd_s + l.layer_back_s) +
           x->times->dearer_s;
}

/* After stage 0's end.  Groups that span nodes hide it too: rings inside nodes do not meet
 * them.  What hides the synchronisation is taken at its least: where it is
 * more by d, that replica ends later by d too, so at least as much later as is hidden.  But
 * the replica with the slow slots may be another one, that ends later than the other need:
 * then `ahead` more may be hidden. */
double first_tail_s (const struct bound_case *x, double first, int kind, double ahead)
{
    const struct config_times *times = x->times;
    double sync =
        times->sync_fixed_s[kind][x->span] + first * times->sync_layer_s[kind][x->span];

    return times->tail_fixed_s[kind] + first * times->tail_layer_s[kind] +
           larger (times->bare * sync,
                   costmodel_exposed_s (times->profile, sync,
                                        times->hides *
                                            larger (under_s (x, first, kind),
                                                    under_s (x, first, 0) + ahead)));
}

/* The end of stage 0 by its row (2) when all are on fast slots: C_0 counts m-p+1 times, that of
 * others twice.  0 where there is no such row. */
static double end_by_first (const struct bound_case *x, int first)
{
    const struct config_times *times = x->times;
    const struct slot_times *s = &times->slot[0];
    double layer_s = s->fwd_s + s->back_s;
    double others = 2.0 * (times->p - 1) * s->micro_s + s->head_fwd_s + s->head_back_s +
                    (times->layers - first) * layer_s +
                    bound_run_sends_s (times, times->p);
    double own = 2.0 * s->micro_s + s->embed_fwd_s + s->embed_back_s + first * layer_s;

    return bound_rounds_left (times, 0) > 0
               ? times->dearer_s + 2.0 * others + (times->m - times->p + 1) * own
               : 0.0;
}

/* How much more than at least may stage 0 take in another replica that does not end later
 * than end_s?  Its end is at least least_s and that by row (2). */
double bound_ahead (const struct bound_case *x, int first, double end_s, double least_s)
{
    double by_row;

    if (x->slow == 0 || x->times->p == 1)
        return 0.0;
    by_row = end_by_first (x, first);
    if (by_row > 0.0)
        return larger (0.0, smaller (end_s - least_s,
                                     (end_s - by_row) / (x->times->m - x->times->p + 1)));
    return larger (0.0, end_s - least_s);
}

double bound_least_end (const struct bound_case *x)
{
    struct bound_case none = *x;

    none.slow = 0;
    return fractional_end (&none);
}

/* The least tail over l_0 from least to most.  It is linear but for what is hidden: the largest
 * of lines, so it is the lower of two convex functions, each with its least at an end, where
 * just all is hidden, or where just what nothing hides is left. */
static double least_tail (const struct bound_case *x, int least, int most, int kind,
                          double ahead)
{
    const struct config_times *times = x->times;
    const struct workload_profile *p = times->profile;
    double tail = smaller (first_tail_s (x, least, kind, ahead),
                           first_tail_s (x, most, kind, ahead));

    for (int i = 0; i <= 2 * kind + 1; i++) {
        int other = i / 2;
        struct stage_times l = stage_times_of (x, 0, other);
        double part = p->time.dp_overlap * times->hides, rest = 1.0;
        double slope, start, at;

        if (i % 2) {
            part *= 1.0 - p->time.overlap_slowdown;
            rest -= times->bare;
        }
        slope = part * (l.layer_fwd_s + l.layer_back_s) -
                rest * times->sync_layer_s[kind][x->span];
        start = rest * times->sync_fixed_s[kind][x->span] -
                part * (under_s (x, 0, other) + (other == 0 ? ahead : 0.0));
        at = start / slope;
        if (slope > 0 && at > least && at < most)
            tail = smaller (tail, first_tail_s (x, at, kind, ahead));
    }
    return tail;
}

double bound_fractions (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    int least = times->p == 1 ? times->layers : 1, most = times->layers - times->p + 1;
    double end = fractional_end (x);
    /* Largest where l_0 is least. */
    double ahead = bound_ahead (x, least, end, bound_least_end (x));

    return end + least_tail (x, least, most, x->slow >= times->p, ahead);
}
