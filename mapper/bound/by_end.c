/* Layers to stages, so that all end by a given time.
 *
 * The rows of a stage (rows.c) grow with its layers, given how many the stages after
 * it hold at most.  So for a given end of stage 0, and the step that it makes with its
 * tail, every stage has a most number of layers, from the last stage to the first, and both
 * are too early while these do not add up to the model's.  Where so many stages are on slow
 * slots, they are those that lose least by it; and the layers that the others cannot hold
 * make a micro-batch's way longer.
 *
 * Stage 0's layers, kind of slot and placement set its tail: each is tried.  Where weights'
 * gradients are put off, the end is the step: every stage's own with its tail. */
#include "mapper/bound/by_end.h"

#include <math.h>
#include <stdlib.h>

#include "base/extremes.h"
#include "costmodel/costmodel.h"
#include "mapper/bound/played.h"

/* Stage 0, where its layers are given. */
struct first_stage {
    int layers, kind; /* 0 layers: any, on any slot */
};

/* The step when stage 0's end is given. */
static struct rows_times times_of (const struct pipeline_case *pc,
                                   const struct first_stage *first, double end)
{
    double tail = first->layers > 0
                      ? rows_tail_s (pc, 0, first->kind, first->layers, pc->first, end)
                      : 0.0;

    return (struct rows_times){end, end + tail};
}

static void insert (int *sorted, int n, int value)
{
    for (; n > 0 && sorted[n - 1] > value; n--)
        sorted[n] = sorted[n - 1];
    sorted[n] = value;
}

static long sum_of (const int *a, int n)
{
    long sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i];
    return sum;
}

/* Can the stages hold all layers and end by then, with as many on slow slots as must be?
 * If so, the layers on slow slots at least; -1 if not. */
static long layers_on_slow (const struct pipeline_case *pc,
                            const struct first_stage *first, double end)
{
    struct rows_times then = times_of (pc, first, end);
    const struct bound_pipeline *x = pc->x;
    int n = 0, slow = x->run > 0 ? 0 : x->slow - first->kind, below = 0;
    int never = x->model->layers + 1;
    int near = 0;
    int *most = pc->work, *loss = pc->work + x->p; /* sorted, of the stages so far */
    long held, fast;

    for (int k = x->p - 1; k >= (first->layers > 0 ? 1 : 0); k--, n++) {
        int any = rows_most_layers (pc, k, !rows_may_be (x, k, 0), below, &then, near);
        int less = 0;

        if (any == 0)
            return -1;
        if (slow > 0)
            less = rows_most_layers (pc, k, 1, below, &then, any);
        near = any;
        insert (most, n, any);
        insert (loss, n, less > 0 ? any - less : never);
        below += any;
    }
    held = below + (long) first->layers;
    if (slow > n || held - sum_of (loss, slow) < x->model->layers ||
        (first->layers > 0 &&
         rows_end_s (pc, 0, first->kind, first->layers, below) > end))
        return -1;
    fast = sum_of (most + slow, n - slow) + (first->kind == 0 ? first->layers : 0);
    return fast < x->model->layers ? x->model->layers - fast : 0;
}

static bool can_end (struct pipeline_case *pc, const struct first_stage *first,
                     double then)
{
    pc->slow_layers = pc->x->slow * pc->x->least;
    for (int round = 0; round < 3; round++) {
        long least = layers_on_slow (pc, first, then);

        if (least < 0)
            return false;
        if (least <= pc->slow_layers)
            return true;
        pc->slow_layers = (int) least; /* which makes all ways longer */
    }
    return true;
}

/* The least end by bisection; give_up where it is no lower. */
static double least_end (struct pipeline_case *pc, const struct first_stage *first,
                         double lo, double give_up)
{
    double hi = give_up;

    if (can_end (pc, first, lo * (1.0 + 1e-12)))
        return lo;
    if (!(hi > lo) || !can_end (pc, first, hi))
        return give_up;
    for (int i = 0; i < 50 && hi - lo > 1e-7 * lo; i++) {
        double mid = 0.5 * (lo + hi);

        if (can_end (pc, first, mid))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

/* How many layers does stage 0 have at least? */
static int least_first (const struct bound_pipeline *x)
{
    return x->p == 1 ? x->model->layers : x->least;
}

/* What they take more in stage 0's way, for a micro-batch.  On a slow slot some of that may count
 * as the slot's. */
static double least_first_more_s (const struct pipeline_case *pc)
{
    int layers = least_first (pc->x);
    struct both_ways more = rows_layer_more (pc, 0, ANY_SLOT, layers, pc->first), slow;

    if (pc->x->slow > 0) {
        slow = rows_layer_more (pc, 0, SLOW_SLOT, layers, pc->first);
        more.fwd_s = fmin (more.fwd_s, slow.fwd_s);
        more.back_s = fmin (more.back_s, slow.back_s);
    }
    return layers * (more.fwd_s + more.back_s);
}

/* The least of (1) over fractions of layers.  With all stages ending at T, the layers up to
 * stage k, Y, follow Y' = Y + (T - fixed_k - carry Y) / pace: linear in T.  A stage on a
 * slow slot adds less to Y, and what it adds less shrinks by 1 - carry / pace with every
 * stage after it. */
static double fractional_end (const struct pipeline_case *pc)
{
    const struct bound_pipeline *x = pc->x;
    double fwd = pc->part[0][FORWARD].slope, back = pc->part[0][BACKWARD].slope;
    double carry = (fwd + (pc->split ? 0.0 : back)) / rows_first_share (x),
           pace = x->m * (fwd + back);
    double held = 0.0, times = 0.0, least = 0.0, slower, less;

    for (int k = 0; k < x->p; k++) {
        double fixed = rows_fixed_s (pc, k);

        if (k == 0 && pc->first.experts)
            fixed += x->m * least_first_more_s (pc);
        held = held * (1.0 - carry / pace) - fixed / pace;
        times = times * (1.0 - carry / pace) + 1.0 / pace;
        least = fmax (least, fixed);
    }
    slower = pace + x->m * (pc->more_s[FORWARD] + pc->more_s[BACKWARD]);
    less = x->slow * (1.0 / pace - 1.0 / slower) * pow (1.0 - carry / pace, x->p - 1);
    return fmax (least, fmax ((x->model->layers - held) / times,
                              (x->model->layers - held -
                               less * (least + carry * x->model->layers)) /
                                  (times - less)));
}

/* The least of the bound over fractions of layers.  Tails grow with the layers. */
static double loose_bound (const struct pipeline_case *pc)
{
    double end = fractional_end (pc), under = end / pc->x->m, least = INFINITY;

    if (!pc->split)
        return end + rows_tail_under_s (pc, 0, 0, least_first (pc->x), pc->first, under);
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        for (int k = 0; k < 2 && pc->x->span[span]; k++)
            least = fmin (least,
                          rows_tail_under_s (pc, k, 0, pc->x->v,
                                             (struct stage_placing){span, NULL}, under));
    return end + least;
}

/* An end that can be, to bisect from; lo may be 0, where layers' slack is all. */
static double some_end (struct pipeline_case *pc, const struct first_stage *first,
                        double lo)
{
    double width = 0.02 * lo + 1e-6;

    while (!can_end (pc, first, lo + width) && width < 1e6 * (lo + 1.0))
        width *= 2.0;
    return lo + width;
}

/* Can the step end by the bound that is known, or a little later? */
static bool is_known (struct pipeline_case *pc, const struct first_stage *first)
{
    double known = pc->x->known_s, tail = 0.0;

    if (known > 0.0 && first->layers > 0)
        tail = rows_tail_s (pc, 0, first->kind, first->layers, pc->first, known);
    return known > 0.0 && can_end (pc, first, known - tail);
}

/* The least step with stage 0 on that kind of slot, where it is below `best`. */
static double with_first (struct pipeline_case *pc, int kind, double lo, double best,
                          struct first_stage *at, double *end_at)
{
    const struct bound_pipeline *x = pc->x;
    int most = (x->model->layers - x->p * x->least) / x->unit + 1;
    int even = (x->model->layers / x->p - x->least) / x->unit;

    for (int step = 0; step < most; step++) {
        /* From the even split on: the first tries leave little to the others.  The later
         * the end, the less is exposed, but the two together grow. */
        struct first_stage first = {x->least + (even + step) % most * x->unit, kind};
        double give_up, end, step_s;

        if ((x->cap && first.layers > x->cap[kind * x->p]) ||
            lo + rows_tail_s (pc, 0, kind, first.layers, pc->first, lo) >= best)
            continue;
        if (is_known (pc, &first))
            return x->known_s;
        give_up = isfinite (best)
                      ? best - rows_tail_s (pc, 0, kind, first.layers, pc->first, best)
                      : some_end (pc, &first, lo);
        end = least_end (pc, &first, lo, give_up);
        if (isfinite (best) && end >= give_up)
            continue;
        step_s = end + rows_tail_s (pc, 0, kind, first.layers, pc->first, end);
        if (step_s < best) {
            best = step_s;
            *at = first;
            *end_at = end;
        }
    }
    return best;
}

/* For schedules that do not put weights' gradients off.
 * @param[out] at, end_at  stage 0 and its end there */
static double first_by_first (struct pipeline_case *pc, struct first_stage *at,
                              double *end_at)
{
    const struct bound_pipeline *x = pc->x;
    double lo = fractional_end (pc), best = x->most_s;

    if (x->slow < x->p && rows_may_be (x, 0, 0))
        best = with_first (pc, 0, lo, best, at, end_at);
    return x->slow > 0 && best > x->known_s && rows_may_be (x, 0, 1)
               ? with_first (pc, 1, lo, best, at, end_at)
               : best;
}

static double tight_bound (struct pipeline_case *pc)
{
    struct first_stage first = {0, 0};
    double end = fractional_end (pc);

    if (pc->split && is_known (pc, &first))
        return pc->x->known_s;
    if (pc->split)
        return least_end (pc, &first, end,
                          isfinite (pc->x->most_s) ? pc->x->most_s
                                                   : some_end (pc, &first, end));
    return first_by_first (pc, &first, &end);
}

/* Can the chunks be held at all? */
static bool has_room (const struct bound_pipeline *x)
{
    int room = 0;

    if (x->model->layers % x->unit != 0 || x->model->layers < x->p * x->least)
        return false;
    for (int k = 0; x->cap && k < x->p; k++) {
        if (x->cap[k] < x->least)
            return false;
        room += x->cap[k] / x->unit;
    }
    return !x->cap || room >= x->model->layers / x->unit;
}

static double one_bound (const struct bound_pipeline *x, struct stage_placing first,
                         enum bound_level level, int *work)
{
    struct pipeline_case pc, calm;
    struct bound_pipeline without;
    double rows_s, known_s;

    rows_init (&pc, x, first, work);
    if (!work)
        return loose_bound (&pc);
    /* The same replica without slow slots, of which a TP group spans nodes.  Without experts it
     * gains next to nothing. */
    if (x->slow > 0 && x->n_experts[SPAN_NONE] > 0 &&
        (x->span[SPAN_ONE] || x->first_span[SPAN_ONE])) {
        without = *x;
        without.slow = without.run = 0;
        rows_init (&calm, &without, first, NULL);
        calm.spans = true;
        pc.calm = &calm;
    }
    rows_s = tight_bound (&pc);
    pc.slow_layers = x->slow * x->least;
    if (level < BOUND_PLAYED || (x->v == 1 && x->n_experts[SPAN_NONE] == 0) ||
        (rows_s <= x->known_s && !x->work && x->run > 0)) /* of which there are many */
        return rows_s;
    /* What is known was played out itself, and says more than rows. */
    known_s = larger (rows_s, x->known_s);
    return known_s < x->most_s ? bound_played_slow (&pc, known_s) : rows_s;
}

/* The least over stage 0's ways; where every stage's own end counts, each has taken the
 * best of all. */
static double least_bound (const struct bound_pipeline *any, enum bound_level level,
                           int *work)
{
    struct bound_pipeline x = *any;
    struct stage_placing first[PLACINGS_MAX];
    double least = INFINITY;
    int n;

    if (workload_schedule_splits_backward (x.schedule))
        return one_bound (&x, (struct stage_placing){SPAN_NONE, NULL}, level, work);
    n = rows_placings (&x, x.first_span, first);
    for (int i = 0; i < n && least > x.known_s; i++) {
        least = fmin (least, one_bound (&x, first[i], level, work));
        x.most_s = fmin (x.most_s, least); /* no more than that counts of the others */
    }
    return least;
}

double bound_by_end (const struct bound_pipeline *x, enum bound_level level)
{
    int *work =
        level > BOUND_FRACTIONS ? malloc (2 * (size_t) x->p * sizeof *work) : NULL;
    double least = has_room (x) ? least_bound (x, level, work) : INFINITY;

    free (work);
    return least;
}

/* Stages 1 to p-1 with their most layers by then, those on slow slots which lose least. */
static void most_by (const struct pipeline_case *pc, const struct first_stage *first,
                     double end, int *layers, bool *slow)
{
    struct rows_times then = times_of (pc, first, end);
    const struct bound_pipeline *x = pc->x;
    int below = 0, *slower = pc->work;

    layers[0] = first->layers;
    slow[0] = first->kind == 1;
    for (int k = x->p - 1; k > 0; k--) {
        layers[k] = rows_most_layers (pc, k, 0, below, &then, 0);
        slower[k] =
            x->slow > 0 ? rows_most_layers (pc, k, 1, below, &then, layers[k]) : 0;
        slow[k] = false;
        below += layers[k];
    }
    for (int n = first->kind; n < x->slow; n++) {
        int best = -1;

        for (int k = 1; k < x->p; k++)
            if (!slow[k] && slower[k] > 0 &&
                (best < 0 || layers[k] - slower[k] < layers[best] - slower[best]))
                best = k;
        if (best < 0)
            return;
        slow[best] = true;
        layers[best] = slower[best];
    }
}

bool bound_by_end_split (const struct bound_pipeline *x, int *layers, bool *slow)
{
    int *work = malloc (2 * (size_t) x->p * sizeof *work);
    struct first_stage first = {0, 0};
    struct pipeline_case pc;
    double end = 0.0;
    long more = -(long) x->model->layers;

    rows_init (&pc, x,
               (struct stage_placing){x->span[SPAN_NONE] ? SPAN_NONE : SPAN_ALL, NULL},
               work);
    if (work && has_room (x) && isfinite (first_by_first (&pc, &first, &end)) &&
        can_end (&pc, &first, end * (1.0 + 2e-7))) {
        most_by (&pc, &first, end * (1.0 + 2e-7), layers, slow);
        more += sum_of (layers, x->p);
    }
    /* What is too much comes from the stages that would end last. */
    for (; more > 0; more -= x->unit) {
        int last = -1;
        double latest = 0.0;

        for (int k = 1; k < x->p; k++) {
            double then = rows_end_s (&pc, k, slow[k], layers[k], 0);

            if (layers[k] - x->unit >= x->least && (last < 0 || then > latest)) {
                latest = then;
                last = k;
            }
        }
        if (last < 0)
            break;
        layers[last] -= x->unit;
    }
    free (work);
    return more == 0;
}
