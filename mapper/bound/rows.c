/* When does a stage end at the earliest, whatever the placement?
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
 *     then it has done at most n_k forwards of chunks (the schedule's forwards_first):
 *
 *         end >= down and back to k + m B_k + (m - n_k / v) F_k [+ up_k].
 *
 * (3) Where forwards and backwards take turns, as many backwards follow its last forward,
 *     and that micro-batch still goes down from there and the whole way up:
 *
 *         end >= down and back to k + (m - n_k / v) (F_k + B_k) + down from k and up.
 *
 * With up_k, and in (3), `end` is stage 0's, whose tail follows; without it k's own, which
 * its own tail follows, and the step is no less than either sum.  Where weights' gradients
 * are put off only the second is known.
 *
 * Times are those of the stage's slot, of two kinds (bound.c).  A way through all stages
 * takes at least all layers on any slots, and what those on slow slots take more; its sends
 * cross nodes as often as per_node and beside force them to.  A TP group that spans nodes
 * and experts that exchange slowly add to the stage's work, but where there are slow slots
 * these may be in another replica, and only the tail counts them.
 *
 * Layers with and without experts cost differently: a run of layers takes at least its mean
 * less a slack (slack_of).  All rows grow with the stage's layers, given how many the
 * stages after it hold at most. */
#include "mapper/bound/rows.h"

#include <math.h>

#include "base/extremes.h"
#include "costmodel/costmodel.h"

/* n layers in a row of which the first is layer `start` of the model or a later one take at
 * least n mean_s - slack: the first dense_layers have no experts, of the others every
 * expert_every-th has. */
static double mean_s (const struct workload_model *m, double dense, double expert)
{
    return m->experts == 0 ? dense : dense + (expert - dense) / m->expert_every;
}

static double slack_of (const struct frame *f, const struct line *l, int start)
{
    const struct workload_model *m = f->x->model;
    int more = m->dense_layers > start ? m->dense_layers - start : 0;

    if (m->experts == 0)
        return 0.0;
    if (l->expert_s > l->dense_s)
        return (l->expert_s - l->dense_s) * (more + m->expert_every - 1) /
               m->expert_every;
    return (l->dense_s - l->expert_s) * (m->expert_every - 1) / m->expert_every;
}

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

    return (struct line){d, e, mean_s (m, d, e), smaller (d, e)};
}

/* What a layer takes at least more on a slow slot. */
static double least_more (const struct bound_pipeline *x, enum part part)
{
    double least = INFINITY;

    for (int expert = 0; expert < 2; expert++)
        least = smaller (least, of_layer (&x->slot[1].layer[expert], part) -
                                    of_layer (&x->slot[0].layer[expert], part));
    return x->slow > 0 ? larger (0.0, least) : 0.0;
}

int rows_hows (const struct bound_pipeline *x, const bool way[BOUND_WAYS],
               struct how out[HOWS_MAX])
{
    int n = 0;

    for (int i = BOUND_ONE_SPANS; i < BOUND_WAYS; i++)
        if (way[i])
            out[n++] = (struct how){(enum bound_way) i, NULL};
    for (int i = 0; way[BOUND_WHOLE] && i < x->n_experts; i++)
        out[n++] = (struct how){BOUND_WHOLE, &x->experts[i]};
    if (way[BOUND_WHOLE] && x->n_experts == 0)
        out[n++] = (struct how){BOUND_WHOLE, NULL};
    return n;
}

/* Does a group span nodes in this replica?  One alone may be in another than slow slots. */
static bool span_here (const struct bound_pipeline *x, struct how how)
{
    return how.way == BOUND_ALL_SPAN || (how.way == BOUND_ONE_SPANS && x->slow == 0);
}

void rows_init (struct frame *f, const struct bound_pipeline *x, struct how first,
                int *work)
{
    const struct workload_model *m = x->model;

    *f = (struct frame){.x = x,
                        .split = workload_schedule_splits_backward (x->schedule),
                        .v_shaped = workload_schedule_is_v (x->schedule),
                        .first = first,
                        .spans = span_here (x, first),
                        .work = work};
    f->n_hows = rows_hows (x, x->way, f->how);
    for (enum part part = 0; part < N_PARTS; part++) {
        for (int i = 0; i < m->layers; i++)
            f->all_s[part] +=
                of_layer (&x->slot[0].layer[workload_is_expert_layer (m, i)], part);
        for (int kind = 0; kind < 2; kind++)
            f->part[kind][part] = line_of (m, x->slot[kind].layer, part);
        f->more_s[part] = least_more (x, part);
    }
}

/* n layers in a row, of which the first is layer `start` of the model or a later one. */
static double run_s (const struct frame *f, const struct line *l, double n, int start)
{
    return larger (n * l->slope - slack_of (f, l, start), n * l->least_slope);
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
double rows_tail_s (const struct frame *f, int k, int kind, double layers, struct how how,
                    double end)
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
           larger (held * l->slope - slack / x->v, held * l->least_slope) +
           sends_s (f, 0, k) + sends_s (f, k, x->p - 1) +
           (k > 0 ? s->embed_back_s : 0.0) +
           (k < x->p - 1 ? s->head_back_s + s->tp_s / x->v : 0.0);
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

/* A group whose exchanges are slow, one that spans nodes and the slow slots may be in
 * different replicas. */
void rows_layer_more (const struct frame *f, int k, int kind, struct how how,
                      double *fwd_s, double *back_s)
{
    const struct bound_pipeline *x = f->x;

    *fwd_s = *back_s = 0.0;
    if (how.experts && x->slow == 0) {
        *fwd_s = how.experts->fwd_s;
        *back_s = how.experts->back_s;
    }
    if (span_here (x, how)) {
        const struct bound_slot *s = &x->slot[kind];
        const struct bound_tail *t = k == 0 ? &s->first : &s->other;

        *fwd_s += t->span_fwd_s;
        *back_s += t->span_back_s;
    }
}

static struct held held_of (const struct frame *f, int k, int kind, int layers, int below,
                            struct how how)
{
    const struct bound_pipeline *x = f->x;
    struct ends e = ends_of (f, k, kind);
    double micro = x->slot[kind].micro_s;
    struct held h = {.k = k, .kind = kind, .layers = layers};
    double fwd, back;

    h.above = larger (k * x->v, x->model->layers - layers - below);
    h.layer_fwd_s = micro + stage_s (f, FORWARD, k, kind, layers);
    h.layer_back_s = micro + stage_s (f, BACKWARD, k, kind, layers);
    h.fwd_s = e.fwd_s - micro + h.layer_fwd_s;
    h.back_s = e.back_s - micro + h.layer_back_s;
    rows_layer_more (f, k, kind, how, &fwd, &back);
    h.fwd_s += layers * fwd;
    h.back_s += layers * back;
    h.rest =
        x->m - workload_forwards_first (x->schedule, x->p, x->v, x->m, k) / (double) x->v;
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
                : x->v * larger (0.0, x->slow_sends_s - 2.0 * sends_s (f, 0, x->p - 1)));
}

/* The least end of stage 0, or of stage k itself (`own`), when stage k holds so many layers
 * and the stages after it at most `below`. */
static double end_s (const struct frame *f, int k, int kind, int layers, int below,
                     struct how how, bool own)
{
    struct held h = held_of (f, k, kind, layers, below, how);
    double up = own ? 0.0 : through_above (f, BACKWARD, k, h.above), end;

    end = through_above (f, FORWARD, k, h.above) + f->x->m * (h.fwd_s + h.back_s) + up;
    end = larger (end, first_backward_row (f, &h, own));
    return own ? end : larger (end, last_forward_row (f, &h));
}

/* The same with what follows it, in one way. */
static double step_in (const struct frame *f, int k, int kind, int layers, int below,
                       struct how how, double end)
{
    end = larger (end, end_s (f, k, kind, layers, below, how, true));
    return end + rows_tail_s (f, k, kind, layers, how, end);
}

double rows_step_s (const struct frame *f, int k, int kind, int layers, int below,
                    double end)
{
    struct frame spans = *f;
    double least = INFINITY;

    if (k == 0 && !f->split)
        return step_in (f, k, kind, layers, below, f->first, end);
    spans.spans = true;
    for (int i = 0; i < f->n_hows; i++)
        least = smaller (least, step_in (span_here (f->x, f->how[i]) ? &spans : f, k,
                                         kind, layers, below, f->how[i], end));
    return least;
}

double rows_end_s (const struct frame *f, int k, int kind, int layers, int below)
{
    struct how how = {BOUND_WHOLE, NULL};

    if (f->split)
        return rows_step_s (f, k, kind, layers, below, 0.0);
    return end_s (f, k, kind, layers, below, k == 0 ? f->first : how, false);
}

/* Does stage k's part of both hold? */
static bool ends_by (const struct frame *f, int k, int kind, int layers, int below,
                     const struct rows_times *then)
{
    return rows_end_s (f, k, kind, layers, below) <= then->end_s &&
           (f->split || k == 0 ||
            rows_step_s (f, k, kind, layers, below, 0.0) <= then->step_s);
}

int rows_most_layers (const struct frame *f, int k, int kind, int below,
                      const struct rows_times *then)
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

/* The lines' slack is left. */
double rows_fixed_s (const struct frame *f, int k)
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
