/* What holds for every schedule, and what a schedule's order adds.
 *
 * For stage k with F_k and B_k per micro-batch:
 *
 * (1) Before its first operation the first micro-batch comes down through the first chunks
 *     of the stages above; it has m (F_k + B_k) to do; and unless weights' gradients are
 *     put off, its last operation is a backward that still goes up through these chunks:
 *
 *         end >= head_k + m (F_k + B_k) [+ up_k].
 *
 * (2) Its first backward waits for a micro-batch's whole way down and back to it, and until
 *     then it has done at most n_k forwards of chunks (costmodel_forwards_first):
 *
 *         end >= down and back to k + m B_k + (m - n_k / v) F_k [+ up_k].
 *
 * `end` is stage 0's where up_k counts, and k's own otherwise, so that its own tail
 * follows: the step is at least either with what follows.  Both grow with the stage's layers, given how many the stages above hold at
 * least.  So for a given end every stage has a most number of layers, from the last stage
 * to the first, and the end is a bound while these do not add up to the model's.
 *
 * Layers with and without experts cost differently: bound_run_slope, bound_run_slack. */
#include "mapper/bound_schedule.h"

#include <math.h>

#include "costmodel/costmodel.h"

double bound_run_slope (const struct workload_model *m, double dense, double expert)
{
    return m->experts == 0 ? dense : dense + (expert - dense) / m->expert_every;
}

double bound_run_slack (const struct workload_model *m, double dense, double expert,
                        int start)
{
    int more = m->dense_layers > start ? m->dense_layers - start : 0;

    if (m->experts == 0)
        return 0.0;
    if (expert > dense)
        return (expert - dense) * (more + m->expert_every - 1) / m->expert_every;
    return (dense - expert) * (m->expert_every - 1) / m->expert_every;
}

/* Boundaries between so many stages in a row, one direction. */
static double sends_s (const struct bound_pipeline *x, int stages)
{
    int crossings = x->per_node > 0 ? (stages + x->per_node - 1) / x->per_node - 1 : 0;

    if (stages < 2)
        return 0.0;
    if (crossings == 0 || !(x->cross_s > x->any_s))
        return (stages - 1) * x->any_s;
    if (crossings == stages - 1)
        return crossings * x->cross_s;
    return crossings * x->cross_s + (stages - 1 - crossings) * x->any_s;
}

enum part { FORWARD, BACKWARD, INPUT, N_PARTS };

/* Least seconds of n layers as a function of n: the larger of n slope - slack, with the
 * slack of where they start, and n least_slope, the cheaper kind alone. */
struct line {
    double dense_s, expert_s;
    double slope, least_slope;
};

/* How a stage is placed: the case, and the way of its experts or NULL. */
struct how {
    int way;
    const struct bound_experts *experts;
};

struct frame {
    const struct bound_pipeline *x;
    struct line part[N_PARTS];
    double all_s; /* all layers' forwards once */
    bool split, v_shaped;
    struct how first; /* stage 0 */
};

static double of_layer (const struct bound_layer *l, enum part part)
{
    return part == FORWARD ? l->fwd_s : part == BACKWARD ? l->back_s : l->input_s;
}

static struct line line_of (const struct workload_model *m,
                            const struct bound_layer kind[2], enum part part)
{
    double d = of_layer (&kind[0], part), e = of_layer (&kind[1], part);

    return (struct line){d, e, bound_run_slope (m, d, e), fmin (d, e)};
}

static void frame_init (struct frame *f, const struct bound_pipeline *x, struct how first)
{
    const struct workload_model *m = x->model;

    *f = (struct frame){.x = x,
                        .split = costmodel_schedule_splits_backward (x->schedule),
                        .v_shaped = workload_schedule_is_v (x->schedule),
                        .first = first};
    for (int i = 0; i < m->layers; i++)
        f->all_s += x->layer[workload_is_expert_layer (m, i)].fwd_s;
    for (int part = 0; part < N_PARTS; part++) {
        f->part[part] = line_of (m, x->layer, (enum part) part);
    }
}

static double slack_of (const struct frame *f, const struct line *l, int start)
{
    return bound_run_slack (f->x->model, l->dense_s, l->expert_s, start);
}

/* n layers in a row, of which the first is layer `start` of the model or a later one. */
static double run_s (const struct frame *f, const struct line *l, double n, int start)
{
    return fmax (n * l->slope - slack_of (f, l, start), n * l->least_slope);
}

/* Which virtual stage is chunk c of stage k? */
static int virtual_of (const struct frame *f, int k, int c)
{
    int p = f->x->p;

    return c * p + (f->v_shaped && c % 2 ? p - 1 - k : k);
}

/* The layers of one stage for one micro-batch. */
static double stage_s (const struct frame *f, enum part part, int k, double layers)
{
    double sum = 0.0;

    for (int c = 0; c < f->x->v; c++)
        sum += run_s (f, &f->part[part], layers / f->x->v, virtual_of (f, k, c));
    return sum;
}

/* One chunk of each of some stages in a row, from stage `from` on, that hold so many layers
 * in all their chunks: a chunk takes its share of its stage, whichever kinds of layers it
 * has itself. */
static double row_s (const struct frame *f, enum part part, int from, double layers)
{
    const struct bound_pipeline *x = f->x;
    double sum = 0.0;

    for (int c = 0; c < x->v; c++)
        sum += run_s (f, &f->part[part], layers / x->v,
                      c * x->p + (c == 0 || !f->v_shaped ? from : 0));
    return sum / x->v;
}

/* All boundaries that a micro-batch crosses forward. */
static double way_down_s (const struct frame *f)
{
    const struct bound_pipeline *x = f->x;
    double row = sends_s (x, x->p);
    bool crosses = x->per_node > 0 && x->p > x->per_node && x->cross_s > x->any_s;

    if (f->v_shaped || x->v == 1) /* the turns are on one stage */
        return x->v * row;
    /* Going round to the first stage ends on its node: a crossing more in each round. */
    return x->v * row + (x->v - 1) * (crosses ? x->cross_s : x->any_s);
}

/* What follows stage k's end.  A micro-batch's compute, which hides the synchronisation, is
 * at most an m-th of the end. */
static double tail_s (const struct frame *f, int k, double layers, struct how how,
                      double end)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_tail *t = k == 0 ? &x->first : &x->other;
    double sync = t->sync_fixed_s[how.way] + layers * t->sync_layer_s[how.way];

    if (how.experts)
        sync += how.experts->sync_fixed_s + layers * how.experts->sync_layer_s;

    return t->fixed_s + layers * t->layer_s +
           costmodel_exposed_s (x->profile, sync, x->hides * end / x->m);
}

/* What one stage does for a micro-batch beside its layers. */
struct ends {
    double fwd_s, back_s;
};

static struct ends ends_of (const struct frame *f, int k)
{
    const struct bound_pipeline *x = f->x;
    struct ends e = {x->micro_s, x->micro_s};

    if (k == 0) {
        e.fwd_s += x->embed_fwd_s + x->tp_s;
        e.back_s += x->embed_back_s;
    }
    if (k == (f->v_shaped ? 0 : x->p - 1)) {
        e.fwd_s += x->head_fwd_s;
        e.back_s += x->head_back_s + x->tp_s;
    }
    return e;
}

/* Down to stage k, or up from it, through the first chunks of the stages above it, which
 * hold `above` layers at least. */
static double through_above (const struct frame *f, enum part part, int k, double above)
{
    const struct bound_pipeline *x = f->x;

    if (k == 0)
        return 0.0;
    return k * x->micro_s / x->v + row_s (f, part, 0, above) + sends_s (x, k + 1) +
           (part == FORWARD ? x->embed_fwd_s + x->tp_s / x->v : x->embed_back_s);
}

/* Back from the last chunk of all to the last chunk of stage k. */
static double back_to (const struct frame *f, int k, double layers, double above)
{
    const struct bound_pipeline *x = f->x;
    int between = f->v_shaped ? k : x->p - 1 - k;
    double held = f->v_shaped ? above : between;
    enum part part = f->split ? INPUT : BACKWARD;

    if (between == 0)
        return 0.0;
    /* Without a V, the stages after the first hold what it does not. */
    if (!f->v_shaped && k == 0)
        held = x->model->layers - layers;
    return between * x->micro_s / x->v + row_s (f, part, f->v_shaped ? 0 : k + 1, held) +
           sends_s (x, between + 1) + (f->split ? x->head_input_s : x->head_back_s) +
           x->tp_s / x->v;
}

/* Back to stage k and up from it, where both are whole backwards: all other stages', which
 * hold what stage k does not. */
static double back_and_up (const struct frame *f, int k, double layers)
{
    const struct bound_pipeline *x = f->x;
    const struct line *l = &f->part[BACKWARD];
    double held = (x->model->layers - layers) / x->v, slack = 0.0;

    for (int c = 0; c < x->v; c++)
        slack += (k > 0 ? slack_of (f, l, c * x->p) : 0.0) +
                 (k < x->p - 1 ? slack_of (f, l, c * x->p + k + 1) : 0.0);
    return (x->p - 1) * x->micro_s / x->v +
           fmax (held * l->slope - slack / x->v, held * l->least_slope) +
           sends_s (f->x, k + 1) + sends_s (f->x, x->p - k) +
           (k > 0 ? x->embed_back_s : 0.0) +
           (k < x->p - 1 ? x->head_back_s + x->tp_s / x->v : 0.0);
}

/* The least end of stage 0, or of stage k itself (`own`) with what follows it, when stage
 * k holds so many layers and the stages after it at most `below`. */
static double end_s (const struct frame *f, int k, int layers, int below, struct how how,
                     bool own)
{
    const struct bound_pipeline *x = f->x;
    struct ends e = ends_of (f, k);
    double forwards = x->micro_s + stage_s (f, FORWARD, k, layers);
    double fwd = e.fwd_s - x->micro_s + forwards;
    double back = e.back_s + stage_s (f, BACKWARD, k, layers);
    double above = fmax (k * x->v, x->model->layers - layers - below);
    double up = own ? 0.0 : through_above (f, BACKWARD, k, above);
    double left = x->m - costmodel_forwards_first (x->schedule, x->p, x->v, x->m, k) /
                             (double) x->v;
    double any, order;

    if (how.way == 1) {
        fwd += layers * x->span_fwd_s;
        back += layers * x->span_back_s;
    }
    if (how.experts) {
        fwd += layers * how.experts->fwd_s;
        back += layers * how.experts->back_s;
    }
    any = through_above (f, FORWARD, k, above) + x->m * (fwd + back) + up;
    order = x->p * x->micro_s + f->all_s + x->embed_fwd_s + x->tp_s + x->head_fwd_s +
            way_down_s (f) + x->m * back + left * forwards +
            (own ? back_to (f, k, layers, above) : back_and_up (f, k, layers));
    any = fmax (any, order);
    return any + (own ? tail_s (f, k, layers, how, any) : 0.0);
}

/* Stage k's own end and what follows, placed in the best of all ways. */
static double own_end_s (const struct frame *f, int k, int layers, int below)
{
    const struct bound_pipeline *x = f->x;
    double least = INFINITY;

    if (x->spans[1])
        least = end_s (f, k, layers, below, (struct how){1, NULL}, true);
    for (int i = 0; x->spans[0] && i < (x->n_experts > 0 ? x->n_experts : 1); i++) {
        struct how how = {0, x->n_experts > 0 ? &x->experts[i] : NULL};

        least = fmin (least, end_s (f, k, layers, below, how, true));
    }
    return least;
}

/* Can stage k hold so many layers if stage 0 ends by then, and the step by `step`? */
static bool ends_by (const struct frame *f, int k, int layers, int below, double then,
                     double step)
{
    const struct how none = {0, NULL};

    if (!f->split && end_s (f, k, layers, below, k == 0 ? f->first : none, false) > then)
        return false;
    return (k == 0 && !f->split) || own_end_s (f, k, layers, below) <= step;
}

/* The most layers of stage k that end by then: whole chunks; 0: none. */
static int most_layers (const struct frame *f, int k, int below, double then, double step)
{
    const struct bound_pipeline *x = f->x;
    int most = x->model->layers - (x->p - 1) * x->v, fits = 0, over;

    if (x->cap && x->cap[k] < most)
        most = x->cap[k];
    over = most / x->v + 1;
    for (int try = 1; over - fits > 1; try = fits + (over - fits) / 2)
        if (ends_by (f, k, try * x->v, below, then, step))
            fits = try;
        else
            over = try;
    return fits * x->v;
}

/* Can the stages hold all layers and end by then, stage 0 with `first` of them (0: any)? */
static bool can_end (const struct frame *f, int first, double then)
{
    const struct bound_pipeline *x = f->x;
    double step = then + (first > 0 ? tail_s (f, 0, first, f->first, then) : 0.0);
    int below = 0;

    for (int k = x->p - 1; k >= (first > 0 ? 1 : 0); k--) {
        int most = most_layers (f, k, below, then, step);

        if (most == 0)
            return false;
        below += most;
    }
    if (first > 0 && !ends_by (f, 0, first, below, then, step))
        return false;
    return below + first >= x->model->layers;
}

/* The least end by bisection; give_up where it is no lower. */
static double least_end (const struct frame *f, int first, double lo, double give_up)
{
    double hi = give_up;

    if (can_end (f, first, lo * (1.0 + 1e-12)))
        return lo;
    if (!(hi > lo) || !can_end (f, first, hi))
        return give_up;
    for (int i = 0; i < 50 && hi - lo > 1e-7 * lo; i++) {
        double mid = 0.5 * (lo + hi);

        if (can_end (f, first, mid))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

/* How many layers does stage 0 have at least? */
static int least_first (const struct bound_pipeline *x)
{
    return x->p == 1 ? x->model->layers : x->v;
}

/* The least of (1) over fractions of layers.  With all stages ending at T, the layers up to
 * stage k, Y, follow Y' = Y + (T - fixed_k - carry Y) / pace: linear in T. */
static double fractional_end (const struct frame *f)
{
    const struct bound_pipeline *x = f->x;
    double per_layer = f->part[FORWARD].slope + (f->split ? 0 : f->part[BACKWARD].slope);
    double carry = per_layer / x->v, held = 0.0, times = 0.0, least = 0.0;
    double pace = x->m * (f->part[FORWARD].slope + f->part[BACKWARD].slope);

    for (int k = 0; k < x->p; k++) {
        struct ends e = ends_of (f, k);
        /* With no layers anywhere the lines' slack is left. */
        double slack = 0.0, fixed;

        for (int part = FORWARD; part <= BACKWARD; part++) {
            double stage = 0.0;

            for (int c = 0; c < x->v; c++)
                stage += slack_of (f, &f->part[part], virtual_of (f, k, c));
            slack += x->m * stage;
            for (int c = 0; c < x->v && k > 0 && (part == FORWARD || !f->split); c++)
                slack += slack_of (f, &f->part[part], c * x->p) / x->v;
        }
        fixed = through_above (f, FORWARD, k, 0) + x->m * (e.fwd_s + e.back_s) +
                (f->split ? 0.0 : through_above (f, BACKWARD, k, 0)) - slack;
        if (k == 0 && f->first.experts)
            fixed += x->m * least_first (x) *
                     (f->first.experts->fwd_s + f->first.experts->back_s);
        held = held * (1.0 - carry / pace) - fixed / pace;
        times = times * (1.0 - carry / pace) + 1.0 / pace;
        least = fmax (least, fixed);
    }
    return fmax (least, (x->model->layers - held) / times);
}

/* The least of the bound over fractions of layers.  Tails grow with the layers. */
static double loose_bound (const struct frame *f)
{
    double end = fractional_end (f), least = INFINITY;

    if (!f->split)
        return end + tail_s (f, 0, least_first (f->x), f->first, end);
    for (int way = 0; way < 2; way++)
        for (int k = 0; k < 2 && f->x->spans[way]; k++)
            least = fmin (least, tail_s (f, k, f->x->v, (struct how){way, NULL}, end));
    return end + least;
}

/* An end that can be, to bisect from. */
static double some_end (const struct frame *f, int first, double lo)
{
    double hi = 1.02 * lo;

    while (!can_end (f, first, hi) && hi < 1e6 * lo)
        hi = lo + 2.0 * (hi - lo);
    return hi;
}

static double tight_bound (const struct frame *f)
{
    const struct bound_pipeline *x = f->x;
    int most = (x->model->layers - (x->p - 1) * x->v) / x->v;
    int even = x->model->layers / (x->p * x->v);
    double lo = fractional_end (f), best = INFINITY;

    if (f->split)
        return least_end (f, 0, lo, some_end (f, 0, lo));
    for (int step = 0; step < most; step++) {
        /* From the even split on: the first tries leave little to the others.  The later
         * the end, the less is exposed, but the two together grow. */
        int first = (1 + (even - 1 + step) % most) * x->v;
        double end;

        if ((x->cap && first > x->cap[0]) ||
            lo + tail_s (f, 0, first, f->first, lo) >= best)
            continue;
        end = least_end (f, first, lo,
                         isfinite (best) ? best - tail_s (f, 0, first, f->first, best)
                                         : some_end (f, first, lo));
        best = fmin (best, end + tail_s (f, 0, first, f->first, end));
    }
    return best;
}

/* Can whole chunks be held at all? */
static bool has_room (const struct bound_pipeline *x)
{
    int room = 0;

    if (x->model->layers % x->v != 0 || x->model->layers < x->p * x->v)
        return false;
    for (int k = 0; x->cap && k < x->p; k++) {
        if (x->cap[k] < x->v)
            return false;
        room += x->cap[k] / x->v;
    }
    return !x->cap || room >= x->model->layers / x->v;
}

static double one_bound (const struct bound_pipeline *x, struct how first, bool tight)
{
    struct frame f;

    frame_init (&f, x, first);
    return tight ? tight_bound (&f) : loose_bound (&f);
}

double bound_scheduled (const struct bound_pipeline *x, bool tight)
{
    double least = INFINITY;

    if (!has_room (x))
        return INFINITY;
    /* Every stage takes its better case. */
    if (costmodel_schedule_splits_backward (x->schedule))
        return x->spans[0] || x->spans[1] ? one_bound (x, (struct how){0, NULL}, tight)
                                          : INFINITY;
    if (x->spans[1])
        least = one_bound (x, (struct how){1, NULL}, tight);
    for (int i = 0; x->spans[0] && i < (x->n_experts > 0 ? x->n_experts : 1); i++) {
        struct how how = {0, x->n_experts > 0 ? &x->experts[i] : NULL};

        least = fmin (least, one_bound (x, how, tight));
    }
    return least;
}
