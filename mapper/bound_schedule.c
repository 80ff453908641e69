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
 * (3) Where forwards and backwards take turns, as many backwards follow its last forward,
 *     and that micro-batch still goes down from there and the whole way up:
 *
 *         end >= down and back to k + (m - n_k / v) (F_k + B_k) + down from k and up.
 *
 * `end` is stage 0's where up_k counts, and k's own otherwise, so that its own tail
 * follows: the step is at least either with what follows.  All grow with the stage's layers, given how many the stages above hold at
 * least.  So for a given end every stage has a most number of layers, from the last stage
 * to the first, and the end is a bound while these do not add up to the model's.  Where so
 * many stages are on slow slots, they are those that lose least by it; and the layers that
 * the others cannot hold make a micro-batch's way longer.
 *
 * Layers with and without experts cost differently: bound_run_slope, bound_run_slack. */
#include "mapper/bound_schedule.h"

#include <math.h>
#include <stdlib.h>

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
    struct line part[2][N_PARTS]; /* by kind of slot */
    double all_s[N_PARTS];        /* all layers once, on any slots */
    double more_s[N_PARTS];       /* a layer on a slow slot, beyond any */
    int slow_layers;              /* on slow slots, at least */
    int *work;                    /* [2 * p] */
    bool split, v_shaped;
    struct how first; /* stage 0 */
    bool
        spans; /* a stage's group that spans nodes, and is paid for, may save crossings */
};

/* Nodes that the stages from..to are on at least, beyond one. */
static int crossings (const struct frame *f, int from, int to)
{
    const struct bound_pipeline *x = f->x;
    int first = from == 0 ? x->beside : x->per_node, rest = to - from + 1 - first;

    if (f->spans || x->per_node == 0 || !(x->cross_s > x->any_s) || rest <= 0)
        return 0;
    return (rest + x->per_node - 1) / x->per_node;
}

/* The boundaries between the stages from..to in one direction. */
static double sends_s (const struct frame *f, int from, int to)
{
    int cross = crossings (f, from, to), rest = to - from - cross;

    return (cross > 0 ? cross * f->x->cross_s : 0.0) +
           (rest > 0 ? rest * f->x->any_s : 0.0);
}

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

/* What a layer takes at least more on a slow slot. */
static double least_more (const struct bound_pipeline *x, enum part part)
{
    double least = INFINITY;

    for (int expert = 0; expert < 2; expert++)
        least = fmin (least, of_layer (&x->slot[1].layer[expert], part) -
                                 of_layer (&x->slot[0].layer[expert], part));
    return x->slow > 0 ? fmax (0.0, least) : 0.0;
}

static void frame_init (struct frame *f, const struct bound_pipeline *x, struct how first)
{
    const struct workload_model *m = x->model;

    *f = (struct frame){.x = x,
                        .split = costmodel_schedule_splits_backward (x->schedule),
                        .v_shaped = workload_schedule_is_v (x->schedule),
                        .first = first};
    for (enum part part = 0; part < N_PARTS; part++) {
        for (int i = 0; i < m->layers; i++)
            f->all_s[part] +=
                of_layer (&x->slot[0].layer[workload_is_expert_layer (m, i)], part);
        for (int kind = 0; kind < 2; kind++)
            f->part[kind][part] = line_of (m, x->slot[kind].layer, part);
        f->more_s[part] = least_more (x, part);
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
static double stage_s (const struct frame *f, enum part part, int k, int kind,
                       double layers)
{
    double sum = 0.0;

    for (int c = 0; c < f->x->v; c++)
        sum += run_s (f, &f->part[kind][part], layers / f->x->v, virtual_of (f, k, c));
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
        sum += run_s (f, &f->part[0][part], layers / x->v,
                      c * x->p + (c == 0 || !f->v_shaped ? from : 0));
    return sum / x->v;
}

/* All boundaries that a micro-batch crosses forward. */
static double way_down_s (const struct frame *f)
{
    const struct bound_pipeline *x = f->x;
    double row = sends_s (f, 0, x->p - 1);
    bool crosses = crossings (f, 0, x->p - 1) > 0;

    if (f->v_shaped || x->v == 1) /* the turns are on one stage */
        return x->v * row;
    /* Going round to the first stage ends on its node: a crossing more in each round. */
    return x->v * row + (x->v - 1) * (crosses ? x->cross_s : x->any_s);
}

/* What follows stage k's end.  A micro-batch's compute, which hides the synchronisation, is
 * at most an m-th of the end. */
static double tail_s (const struct frame *f, int k, int kind, double layers,
                      struct how how, double end)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_slot *slot = &x->slot[kind];
    const struct bound_tail *t = k == 0 ? &slot->first : &slot->other;
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

static struct ends ends_of (const struct frame *f, int k, int kind)
{
    const struct bound_slot *s = &f->x->slot[kind];
    struct ends e = {s->micro_s, s->micro_s};

    if (k == 0) {
        e.fwd_s += s->embed_fwd_s + s->tp_s;
        e.back_s += s->embed_back_s;
    }
    if (k == (f->v_shaped ? 0 : f->x->p - 1)) {
        e.fwd_s += s->head_fwd_s;
        e.back_s += s->head_back_s + s->tp_s;
    }
    return e;
}

/* Down to stage k, or up from it, through the first chunks of the stages above it, which
 * hold `above` layers at least. */
static double through_above (const struct frame *f, enum part part, int k, double above)
{
    const struct bound_slot *s = &f->x->slot[0];

    if (k == 0)
        return 0.0;
    return k * s->micro_s / f->x->v + row_s (f, part, 0, above) + sends_s (f, 0, k) +
           (part == FORWARD ? s->embed_fwd_s + s->tp_s / f->x->v : s->embed_back_s);
}

/* Down from stage k's last chunk to the end of all, or back from there to it, where chunks
 * are not in a V: the stages after it hold `below` layers at least. */
static double through_below (const struct frame *f, enum part part, int k, double below)
{
    const struct bound_slot *s = &f->x->slot[0];
    int between = f->x->p - 1 - k;

    if (between == 0)
        return 0.0;
    return between * s->micro_s / f->x->v + row_s (f, part, k + 1, below) +
           sends_s (f, k, f->x->p - 1) +
           (part == FORWARD ? s->head_fwd_s : s->head_back_s + s->tp_s / f->x->v);
}

/* Back from the last chunk of all to the last chunk of stage k, where weights' gradients
 * are put off. */
static double back_to (const struct frame *f, int k, double layers, double above)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_slot *s = &x->slot[0];
    int between = f->v_shaped ? k : x->p - 1 - k;
    double held = f->v_shaped ? above : between;

    if (between == 0)
        return 0.0;
    /* Without a V, the stages after the first hold what it does not. */
    if (!f->v_shaped && k == 0)
        held = x->model->layers - layers;
    return between * s->micro_s / x->v + row_s (f, INPUT, f->v_shaped ? 0 : k + 1, held) +
           (f->v_shaped ? sends_s (f, 0, k) : sends_s (f, k, x->p - 1)) +
           s->head_input_s + s->tp_s / x->v;
}

/* Back to stage k and up from it, where both are whole backwards: all other stages', which
 * hold what stage k does not. */
static double back_and_up (const struct frame *f, int k, double layers)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_slot *s = &x->slot[0];
    const struct line *l = &f->part[0][BACKWARD];
    double held = (x->model->layers - layers) / x->v, slack = 0.0;

    for (int c = 0; c < x->v; c++)
        slack += (k > 0 ? slack_of (f, l, c * x->p) : 0.0) +
                 (k < x->p - 1 ? slack_of (f, l, c * x->p + k + 1) : 0.0);
    return (x->p - 1) * s->micro_s / x->v +
           fmax (held * l->slope - slack / x->v, held * l->least_slope) +
           sends_s (f, 0, k) + sends_s (f, k, x->p - 1) +
           (k > 0 ? s->embed_back_s : 0.0) +
           (k < x->p - 1 ? s->head_back_s + s->tp_s / x->v : 0.0);
}

/* Does a group of this replica span nodes, that may be another one with slow slots? */
static bool span_here (const struct bound_pipeline *x, struct how how)
{
    return how.way == BOUND_ALL_SPAN || (how.way == BOUND_ONE_SPANS && x->slow == 0);
}

/* A stage to be placed on a kind of slot. */
struct held {
    int k, kind, layers;
    double above;         /* layers of the stages above it, at least */
    double fwd_s, back_s; /* one micro-batch's operations */
    double layer_fwd_s;   /* of these, the layers' */
    double layer_back_s;
    double rest; /* m - n_k / v */
};

static struct held held_of (const struct frame *f, int k, int kind, int layers, int below,
                            struct how how)
{
    const struct bound_pipeline *x = f->x;
    struct ends e = ends_of (f, k, kind);
    double micro = x->slot[kind].micro_s;
    struct held h = {.k = k, .kind = kind, .layers = layers};

    h.above = fmax (k * x->v, x->model->layers - layers - below);
    h.layer_fwd_s = micro + stage_s (f, FORWARD, k, kind, layers);
    h.layer_back_s = micro + stage_s (f, BACKWARD, k, kind, layers);
    h.fwd_s = e.fwd_s - micro + h.layer_fwd_s;
    h.back_s = e.back_s - micro + h.layer_back_s;
    /* A group whose exchanges are slow, one that spans nodes and the slow slots may be in
     * different replicas. */
    if (how.experts && x->slow == 0) {
        h.fwd_s += layers * how.experts->fwd_s;
        h.back_s += layers * how.experts->back_s;
    }
    if (span_here (x, how)) {
        h.fwd_s += layers * x->slot[kind].span_fwd_s;
        h.back_s += layers * x->slot[kind].span_back_s;
    }
    h.rest = x->m -
             costmodel_forwards_first (x->schedule, x->p, x->v, x->m, k) / (double) x->v;
    return h;
}

/* All layers once in one direction, those on slow slots with what they take more. */
static double all_layers_s (const struct frame *f, enum part part, const struct held *h)
{
    int others = (f->x->slow - 1) * f->x->v, slow = f->slow_layers;

    if (h->kind == 1 && h->layers + others > slow)
        slow = h->layers + others;
    return f->all_s[part] + slow * f->more_s[part];
}

/* A micro-batch's whole way down. */
static double down_s (const struct frame *f, const struct held *h)
{
    const struct bound_slot *s = &f->x->slot[0];

    return f->x->p * s->micro_s + all_layers_s (f, FORWARD, h) + s->embed_fwd_s +
           s->tp_s + s->head_fwd_s + way_down_s (f);
}

/* How many layers do the stages after it hold at least, where chunks are not in a V? */
static double held_below (const struct frame *f, const struct held *h)
{
    return h->k == 0 ? f->x->model->layers - h->layers : (f->x->p - 1 - h->k) * f->x->v;
}

/* Row (2), to its own end or to stage 0's. */
static double first_backward_row (const struct frame *f, const struct held *h, bool own)
{
    double back;

    if (f->split)
        back = back_to (f, h->k, h->layers, h->above);
    else if (own)
        back = through_below (f, BACKWARD, h->k, held_below (f, h));
    else
        back = back_and_up (f, h->k, h->layers);
    return down_s (f, h) + f->x->m * h->back_s + h->rest * h->layer_fwd_s + back;
}

/* What the head and the embedding cost their stages between the first backward and the
 * last forward.  Their all-reduces belong to all chunks alike.  With whole groups of
 * micro-batches the last chunk's first forward and last backward are outside, and of the
 * first chunk up to 2 p - 1 of each. */
static double ends_between_s (const struct frame *f, const struct held *h)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_slot *s = &x->slot[h->kind];
    bool whole = x->m % x->p == 0;
    double sum = 0.0;

    if (h->k == x->p - 1)
        sum += h->rest * s->tp_s + whole * (x->m - 1) * (s->head_fwd_s + s->head_back_s);
    if (h->k == 0)
        sum += h->rest * s->tp_s;
    if (h->k == 0 && whole && x->m >= 2 * x->p)
        sum += (x->m - 2 * x->p + 1) * (s->embed_fwd_s + s->embed_back_s);
    return sum;
}

/* Row (3); 0 where it tells nothing. */
static double last_forward_row (const struct frame *f, const struct held *h)
{
    const struct bound_pipeline *x = f->x;
    const struct bound_slot *s = &x->slot[0];
    double below = held_below (f, h), up;

    if (f->split || !(h->rest > 0.0))
        return 0.0;
    up = x->p * s->micro_s + all_layers_s (f, BACKWARD, h) + s->embed_back_s +
         s->head_back_s + s->tp_s + way_down_s (f);
    return down_s (f, h) + through_below (f, BACKWARD, h->k, below) +
           h->rest * (h->layer_fwd_s + h->layer_back_s) + ends_between_s (f, h) +
           through_below (f, FORWARD, h->k, below) + up +
           (f->spans
                ? 0.0
                : x->v * fmax (0.0, x->slow_sends_s - 2.0 * sends_s (f, 0, x->p - 1)));
}

/* The least end of stage 0, or of stage k itself (`own`) with what follows it, when stage
 * k holds so many layers and the stages after it at most `below`. */
static double end_s (const struct frame *f, int k, int kind, int layers, int below,
                     struct how how, bool own)
{
    struct held h = held_of (f, k, kind, layers, below, how);
    double up = own ? 0.0 : through_above (f, BACKWARD, k, h.above), end;

    end = through_above (f, FORWARD, k, h.above) + f->x->m * (h.fwd_s + h.back_s) + up;
    end = fmax (end, first_backward_row (f, &h, own));
    if (own)
        return end + tail_s (f, k, kind, layers, how, end);
    return fmax (end, last_forward_row (f, &h));
}

/* Stage k's own end and what follows, placed in the best of all ways. */
static double own_end_s (const struct frame *f, int k, int kind, int layers, int below)
{
    const struct bound_pipeline *x = f->x;
    double least = INFINITY;

    for (int way = BOUND_ONE_SPANS; way < BOUND_WAYS; way++) {
        struct how how = {way, NULL};
        struct frame g = *f;

        g.spans = g.spans || span_here (x, how);
        if (x->way[way])
            least = fmin (least, end_s (&g, k, kind, layers, below, how, true));
    }
    for (int i = 0; x->way[BOUND_WHOLE] && i < (x->n_experts > 0 ? x->n_experts : 1);
         i++) {
        struct how how = {0, x->n_experts > 0 ? &x->experts[i] : NULL};

        least = fmin (least, end_s (f, k, kind, layers, below, how, true));
    }
    return least;
}

/* The end that stage k decides: its own, where weights' gradients are put off, or stage
 * 0's. */
static double stage_end_s (const struct frame *f, int k, int kind, int layers, int below)
{
    struct how how = {0, NULL};

    if (f->split)
        return own_end_s (f, k, kind, layers, below);
    return end_s (f, k, kind, layers, below, k == 0 ? f->first : how, false);
}

/* When are the ends and the step? */
struct times {
    double end_s, step_s;
};

/* Does stage k's part of both hold? */
static bool ends_by (const struct frame *f, int k, int kind, int layers, int below,
                     const struct times *then)
{
    return stage_end_s (f, k, kind, layers, below) <= then->end_s &&
           (f->split || k == 0 || own_end_s (f, k, kind, layers, below) <= then->step_s);
}

/* The most layers of stage k that end by then: whole chunks; 0: none. */
static int most_layers (const struct frame *f, int k, int kind, int below,
                        const struct times *then)
{
    const struct bound_pipeline *x = f->x;
    int most = x->model->layers - (x->p - 1) * x->v, fits = 0, over;

    if (x->cap && x->cap[kind * x->p + k] < most)
        most = x->cap[kind * x->p + k];
    over = most / x->v + 1;
    for (int try = 1; over - fits > 1; try = fits + (over - fits) / 2)
        if (ends_by (f, k, kind, try * x->v, below, then))
            fits = try;
        else
            over = try;
    return fits * x->v;
}

/* Stage 0, where its layers are given. */
struct first_stage {
    int layers, kind; /* 0 layers: any, on any slot */
};

/* The step when stage 0's end is given. */
static struct times times_of (const struct frame *f, const struct first_stage *first,
                              double end)
{
    double tail = first->layers > 0
                      ? tail_s (f, 0, first->kind, first->layers, f->first, end)
                      : 0.0;

    return (struct times){end, end + tail};
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
static long layers_on_slow (const struct frame *f, const struct first_stage *first,
                            double end)
{
    struct times then = times_of (f, first, end);
    const struct bound_pipeline *x = f->x;
    int n = 0, slow = x->slow - first->kind, below = 0, never = x->model->layers + 1;
    int *most = f->work, *loss = f->work + x->p; /* sorted, of the stages so far */
    long held, fast;

    for (int k = x->p - 1; k >= (first->layers > 0 ? 1 : 0); k--, n++) {
        int any = most_layers (f, k, 0, below, &then), less = 0;

        if (any == 0)
            return -1;
        if (slow > 0)
            less = most_layers (f, k, 1, below, &then);
        insert (most, n, any);
        insert (loss, n, less > 0 ? any - less : never);
        below += any;
    }
    held = below + (long) first->layers;
    if (slow > n || held - sum_of (loss, slow) < x->model->layers ||
        (first->layers > 0 &&
         stage_end_s (f, 0, first->kind, first->layers, below) > end))
        return -1;
    fast = sum_of (most + slow, n - slow) + (first->kind == 0 ? first->layers : 0);
    return fast < x->model->layers ? x->model->layers - fast : 0;
}

static bool can_end (struct frame *f, const struct first_stage *first, double then)
{
    f->slow_layers = f->x->slow * f->x->v;
    for (int round = 0; round < 3; round++) {
        long least = layers_on_slow (f, first, then);

        if (least < 0)
            return false;
        if (least <= f->slow_layers)
            return true;
        f->slow_layers = (int) least; /* which makes all ways longer */
    }
    return true;
}

/* The least end by bisection; give_up where it is no lower. */
static double least_end (struct frame *f, const struct first_stage *first, double lo,
                         double give_up)
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

/* What a stage takes in row (1) with no layers anywhere: the lines' slack is left. */
static double fixed_s (const struct frame *f, int k)
{
    const struct bound_pipeline *x = f->x;
    struct ends e = ends_of (f, k, 0);
    double slack = 0.0;

    for (enum part part = FORWARD; part <= BACKWARD; part++) {
        const struct line *l = &f->part[0][part];
        double stage = 0.0;

        for (int c = 0; c < x->v; c++)
            stage += slack_of (f, l, virtual_of (f, k, c));
        slack += x->m * stage;
        for (int c = 0; c < x->v && k > 0 && (part == FORWARD || !f->split); c++)
            slack += slack_of (f, l, c * x->p) / x->v;
    }
    return through_above (f, FORWARD, k, 0) + x->m * (e.fwd_s + e.back_s) +
           (f->split ? 0.0 : through_above (f, BACKWARD, k, 0)) - slack;
}

/* How many layers does stage 0 have at least? */
static int least_first (const struct bound_pipeline *x)
{
    return x->p == 1 ? x->model->layers : x->v;
}

/* The least of (1) over fractions of layers.  With all stages ending at T, the layers up to
 * stage k, Y, follow Y' = Y + (T - fixed_k - carry Y) / pace: linear in T.  A stage on a
 * slow slot adds less to Y, and what it adds less shrinks by 1 - carry / pace with every
 * stage after it. */
static double fractional_end (const struct frame *f)
{
    const struct bound_pipeline *x = f->x;
    double fwd = f->part[0][FORWARD].slope, back = f->part[0][BACKWARD].slope;
    double carry = (fwd + (f->split ? 0.0 : back)) / x->v, pace = x->m * (fwd + back);
    double held = 0.0, times = 0.0, least = 0.0, slower, less;

    for (int k = 0; k < x->p; k++) {
        double fixed = fixed_s (f, k);

        if (k == 0 && f->first.experts && x->slow == 0)
            fixed += x->m * least_first (x) *
                     (f->first.experts->fwd_s + f->first.experts->back_s);

        held = held * (1.0 - carry / pace) - fixed / pace;
        times = times * (1.0 - carry / pace) + 1.0 / pace;
        least = fmax (least, fixed);
    }
    slower = pace + x->m * (f->more_s[FORWARD] + f->more_s[BACKWARD]);
    less = x->slow * (1.0 / pace - 1.0 / slower) * pow (1.0 - carry / pace, x->p - 1);
    return fmax (least, fmax ((x->model->layers - held) / times,
                              (x->model->layers - held -
                               less * (least + carry * x->model->layers)) /
                                  (times - less)));
}

/* The least of the bound over fractions of layers.  Tails grow with the layers. */
static double loose_bound (const struct frame *f)
{
    double end = fractional_end (f), least = INFINITY;

    if (!f->split)
        return end + tail_s (f, 0, 0, least_first (f->x), f->first, end);
    for (int way = 0; way < BOUND_WAYS; way++)
        for (int k = 0; k < 2 && f->x->way[way]; k++)
            least = fmin (least, tail_s (f, k, 0, f->x->v, (struct how){way, NULL}, end));
    return end + least;
}

/* An end that can be, to bisect from. */
static double some_end (struct frame *f, const struct first_stage *first, double lo)
{
    double hi = 1.02 * lo;

    while (!can_end (f, first, hi) && hi < 1e6 * lo)
        hi = lo + 2.0 * (hi - lo);
    return hi;
}

/* The least step with stage 0 on that kind of slot, where it is below `best`. */
static double with_first (struct frame *f, int kind, double lo, double best,
                          struct first_stage *at, double *end_at)
{
    const struct bound_pipeline *x = f->x;
    int most = (x->model->layers - (x->p - 1) * x->v) / x->v;
    int even = x->model->layers / (x->p * x->v);

    for (int step = 0; step < most; step++) {
        /* From the even split on: the first tries leave little to the others.  The later
         * the end, the less is exposed, but the two together grow. */
        struct first_stage first = {(1 + (even - 1 + step) % most) * x->v, kind};
        double end, step_s;

        if ((x->cap && first.layers > x->cap[kind * x->p]) ||
            lo + tail_s (f, 0, kind, first.layers, f->first, lo) >= best)
            continue;
        end = isfinite (best) ? best - tail_s (f, 0, kind, first.layers, f->first, best)
                              : some_end (f, &first, lo);
        end = least_end (f, &first, lo, end);
        step_s = end + tail_s (f, 0, kind, first.layers, f->first, end);
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
static double first_by_first (struct frame *f, struct first_stage *at, double *end_at)
{
    const struct bound_pipeline *x = f->x;
    double lo = fractional_end (f), best = INFINITY;

    if (x->slow < x->p)
        best = with_first (f, 0, lo, best, at, end_at);
    return x->slow > 0 ? with_first (f, 1, lo, best, at, end_at) : best;
}

static double tight_bound (struct frame *f)
{
    struct first_stage first = {0, 0};
    double end = fractional_end (f);

    if (f->split)
        return least_end (f, &first, end, some_end (f, &first, end));
    return first_by_first (f, &first, &end);
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

static double one_bound (const struct bound_pipeline *x, struct how first, int *work)
{
    struct frame f;

    frame_init (&f, x, first);
    f.work = work;
    f.spans = span_here (x, first);
    return work ? tight_bound (&f) : loose_bound (&f);
}

/* The least over stage 0's ways; where every stage's own end counts, each has taken the
 * best of all. */
static double least_bound (const struct bound_pipeline *x, int *work)
{
    int n = x->n_experts > 0 ? x->n_experts : 1;
    double least = INFINITY;

    if (costmodel_schedule_splits_backward (x->schedule))
        return one_bound (x, (struct how){0, NULL}, work);
    for (int way = BOUND_ONE_SPANS; way < BOUND_WAYS; way++)
        if (x->first_way[way])
            least = fmin (least, one_bound (x, (struct how){way, NULL}, work));
    for (int i = 0; x->first_way[BOUND_WHOLE] && i < n; i++) {
        struct how how = {BOUND_WHOLE, x->n_experts > 0 ? &x->experts[i] : NULL};

        least = fmin (least, one_bound (x, how, work));
    }
    return least;
}

double bound_scheduled (const struct bound_pipeline *x, bool tight)
{
    int *work = tight ? malloc (2 * (size_t) x->p * sizeof *work) : NULL;
    double least = has_room (x) ? least_bound (x, work) : INFINITY;

    free (work);
    return least;
}

/* Stages 1 to p-1 with their most layers by then, those on slow slots which lose least. */
static void most_by (const struct frame *f, const struct first_stage *first, double end,
                     int *layers, bool *slow)
{
    struct times then = times_of (f, first, end);
    const struct bound_pipeline *x = f->x;
    int below = 0, *slower = f->work;

    layers[0] = first->layers;
    slow[0] = first->kind == 1;
    for (int k = x->p - 1; k > 0; k--) {
        layers[k] = most_layers (f, k, 0, below, &then);
        slower[k] = x->slow > 0 ? most_layers (f, k, 1, below, &then) : 0;
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

bool bound_scheduled_split (const struct bound_pipeline *x, int *layers, bool *slow)
{
    int *work = malloc (2 * (size_t) x->p * sizeof *work);
    struct first_stage first = {0, 0};
    struct frame f;
    double end = 0.0;
    long more = -(long) x->model->layers;

    frame_init (&f, x,
                (struct how){x->way[BOUND_WHOLE] ? BOUND_WHOLE : BOUND_ALL_SPAN, NULL});
    f.work = work;
    if (work && has_room (x) && isfinite (first_by_first (&f, &first, &end)) &&
        can_end (&f, &first, end * (1.0 + 2e-7))) {
        most_by (&f, &first, end * (1.0 + 2e-7), layers, slow);
        more += sum_of (layers, x->p);
    }
    /* What is too much comes from the stages that would end last. */
    for (; more > 0; more -= x->v) {
        int last = -1;
        double latest = 0.0;

        for (int k = 1; k < x->p; k++) {
            double then = stage_end_s (&f, k, slow[k], layers[k], 0);

            if (layers[k] > x->v && (last < 0 || then > latest)) {
                latest = then;
                last = k;
            }
        }
        if (last < 0)
            break;
        layers[last] -= x->v;
    }
    free (work);
    return more == 0;
}
