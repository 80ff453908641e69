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
 * cross nodes as often as per_node forces them to.  Experts that exchange slowly add to the
 * stage's work in every replica.  So does a TP group that spans nodes in its own, which may be
 * another one than that with the slow slots (pipeline_case.calm).
 *
 * Where chunks are uneven, a stage's first chunks may have less than its mean, and so has the last
 * one of the last stage: a way through these takes at least what is left with v - 1 layers fewer on
 * each such stage.  What is left after the first n_k forwards is counted (rest_layers).  In a V the
 * first of both chunks has the mean or more.
 *
 * Of 1F1B more is known for a given end: row (3) tells the most that each stage takes, so what the
 * stages above stage k leave of all work is below it (rows_put_above).
 *
 * Layers of several kinds cost differently: a run of layers takes at least its mean
 * less a slack (rows_slack).  All rows grow with the stage's layers, given how many the
 * stages after it hold at most. */
#include "mapper/bound/rows.h"

#include <math.h>

#include "base/extremes.h"

/* Nodes that the stages from..to are on at least, beyond one; 0 or less where one may do. */
static int crossings (const struct pipeline_case *pc, int from, int to)
{
    int per_node = pc->x->per_node;

    return pc->spans || per_node == 0 ? 0 : (to - from) / per_node;
}

/* Is one of stages a and b on a slow slot, and the other known not to be? */
static bool is_mixed (const struct bound_pipeline *x, int a, int b)
{
    return x->run > 0 && rows_may_be (x, a, 1) != rows_may_be (x, b, 1);
}

/* The boundaries between the stages from..to in one direction.  Mixed ones may be the crossings
 * too. */
static double sends_s (const struct pipeline_case *pc, int from, int to)
{
    const struct bound_pipeline *x = pc->x;
    int cross = crossings (pc, from, to), mixed = 0, rest;
    double apart = 0.0;

    for (int k = from; x->apart_s > 0.0 && k < to; k++)
        apart += larger (x->any_s, rows_apart_s (x, k));
    for (int k = from; x->run > 0 && k < to; k++)
        mixed += is_mixed (x, k, k + 1);
    cross = cross > mixed ? cross - mixed : 0;
    rest = to - from - cross - mixed;
    return larger (apart, (mixed > 0 ? mixed * x->pair_s[0][1] : 0.0) +
                              (cross > 0 ? cross * x->cross_s : 0.0) +
                              (rest > 0 ? rest * x->any_s : 0.0));
}

/* All boundaries once in one direction. */
static double row_sends_s (const struct pipeline_case *pc)
{
    return larger (sends_s (pc, 0, pc->x->p - 1), pc->row_sends_s);
}

/* May the chunks of a stage hold unlike numbers of layers? */
static bool is_uneven (const struct pipeline_case *pc)
{
    return pc->x->unit < pc->x->v;
}

/* Where in the model does chunk c of stage k start at least?  Each chunk before it has a layer,
 * unless last ones may be empty. */
static int start_of (const struct pipeline_case *pc, int k, int c)
{
    int p = pc->x->p;

    if (c == pc->x->v - 1 && pc->x->least < pc->x->v)
        return c * p;
    return c * p + (pc->v_shaped && c % 2 ? p - 1 - k : k);
}

/* So many layers in all chunks of one stage, or of a row of stages whose chunk c starts at
 * start[c] or later. */
static double chunks_s (const struct pipeline_case *pc, const struct layer_cost *l,
                        double layers, int k, bool row)
{
    int v = pc->x->v;
    double sum = 0.0, slack = 0.0;

    if (pc->alike)
        return layers * l->slope;
    for (int c = 0; c < v; c++) {
        int start = row && c > 0 && pc->v_shaped ? c * pc->x->p : start_of (pc, k, c);
        double less = rows_slack (pc, l, start), n = layers / v;

        slack += less;
        sum += larger (n * l->slope - less, n * l->least_slope);
    }
    return is_uneven (pc) ? larger (layers * l->slope - slack, layers * l->least_slope)
                          : sum;
}

double rows_layers_s (const struct pipeline_case *pc, enum part part, int k, int kind,
                      double layers)
{
    return chunks_s (pc, &pc->part[kind][part], layers, k, false);
}

/* One chunk, with one part in `share` of its stage or more, of each of some stages in a row, from
 * stage `from` on, that hold so many layers in all their chunks: a chunk takes its share of its
 * stage, whichever kinds of layers it has itself. */
static double row_s (const struct pipeline_case *pc, enum part part, int from,
                     double layers, int share)
{
    return chunks_s (pc, &pc->part[0][part], layers, from, true) / share;
}

/* A chunk of each of so many stages that hold so many layers, of which those of `fewer` stages may
 * have less than their share. */
static double uneven_s (const struct pipeline_case *pc, enum part part, int stages,
                        int fewer, double layers)
{
    int v = pc->x->v;
    double held =
        larger (stages * (pc->x->least / v), (layers - (double) fewer * (v - 1)) / v);

    return held * pc->part[0][part].least_slope;
}

/* Of so many last stages, those whose last chunks may have less than their share: the last one's,
 * and all where last chunks may have no layer.  In a V all may. */
static int fewer_below (const struct pipeline_case *pc, int stages)
{
    return pc->v_shaped || pc->x->least < pc->x->v ? stages : stages > 0;
}

/* All boundaries that a micro-batch crosses forward. */
static double way_down_s (const struct pipeline_case *pc)
{
    const struct bound_pipeline *x = pc->x;
    double row = row_sends_s (pc);
    bool crosses = crossings (pc, 0, x->p - 1) > 0;

    if (pc->v_shaped || x->v == 1) /* the turns are on one stage */
        return x->v * row;
    /* Going round to the first stage ends on its node: a crossing more in each round. */
    return x->v * row + (x->v - 1) * (is_mixed (x, x->p - 1, 0) ? x->pair_s[0][1]
                                      : crosses                 ? x->cross_s
                                                                : x->any_s);
}

/* What one stage does for a micro-batch beside its layers. */
static struct both_ways ends_of (const struct pipeline_case *pc, int k, int kind)
{
    const struct bound_slot *s = &pc->x->slot[kind];
    struct both_ways e = {s->micro_s, s->micro_s};

    if (k == 0) {
        e.fwd_s += s->embed_fwd_s + s->tp_s;
        e.back_s += s->embed_back_s;
    }
    if (k == (pc->v_shaped ? 0 : pc->x->p - 1)) {
        e.fwd_s += s->head_fwd_s;
        e.back_s += s->head_back_s + s->tp_s;
    }
    return e;
}

/* Down to stage k, or up from it, through the first chunks of the stages above it, but for their
 * layers. */
static double around_above (const struct pipeline_case *pc, enum part part, int k)
{
    const struct bound_slot *s = &pc->x->slot[0];
    double share = rows_first_share (pc->x);

    if (k == 0)
        return 0.0;
    return k * s->micro_s / share + sends_s (pc, 0, k) +
           (part == FORWARD ? s->embed_fwd_s + s->tp_s / share : s->embed_back_s);
}

/* The whole of it; these stages hold `above` layers at least. */
static double through_above (const struct pipeline_case *pc, enum part part, int k,
                             double above)
{
    double layers_s;

    if (k == 0)
        return 0.0;
    layers_s = row_s (pc, part, 0, above, rows_first_share (pc->x));
    if (is_uneven (pc) && !pc->v_shaped)
        layers_s = larger (layers_s, uneven_s (pc, part, k, k, above));
    return layers_s + around_above (pc, part, k);
}

/* Down from stage k's last chunk to the end of all, or back from there to it, where chunks
 * are not in a V: the stages after it hold `below` layers at least. */
static double through_below (const struct pipeline_case *pc, enum part part, int k,
                             double below)
{
    const struct bound_slot *s = &pc->x->slot[0];
    int between = pc->x->p - 1 - k;

    if (between == 0)
        return 0.0;
    if (is_uneven (pc))
        return uneven_s (pc, part, between, fewer_below (pc, between), below) +
               sends_s (pc, k, pc->x->p - 1) +
               (part == FORWARD ? s->head_fwd_s : s->head_back_s);
    return between * s->micro_s / pc->x->v + row_s (pc, part, k + 1, below, pc->x->v) +
           sends_s (pc, k, pc->x->p - 1) +
           (part == FORWARD ? s->head_fwd_s : s->head_back_s + s->tp_s / pc->x->v);
}

/* Back from the last chunk of all to the last chunk of stage k, where weights' gradients
 * are put off. */
static double back_to (const struct pipeline_case *pc, int k, double layers, double above)
{
    const struct bound_pipeline *x = pc->x;
    const struct bound_slot *s = &x->slot[0];
    int between = pc->v_shaped ? k : x->p - 1 - k;
    double held = pc->v_shaped ? above : between, sends;

    if (between == 0)
        return 0.0;
    /* Without a V, the stages after the first hold what it does not. */
    if (!pc->v_shaped && k == 0)
        held = x->model->layers - layers;
    sends = pc->v_shaped ? sends_s (pc, 0, k) : sends_s (pc, k, x->p - 1);
    if (is_uneven (pc))
        return uneven_s (pc, INPUT, between, fewer_below (pc, between), held) + sends +
               s->head_input_s;
    return between * s->micro_s / x->v +
           row_s (pc, INPUT, pc->v_shaped ? 0 : k + 1, held, x->v) + sends +
           s->head_input_s + s->tp_s / x->v;
}

/* Back to stage k and up from it, where both are whole backwards: all other stages', which
 * hold what stage k does not. */
static double back_and_up (const struct pipeline_case *pc, int k, double layers)
{
    const struct bound_pipeline *x = pc->x;
    const struct bound_slot *s = &x->slot[0];
    const struct layer_cost *l = &pc->part[0][BACKWARD];
    double held = (x->model->layers - layers) / x->v, slack = 0.0;

    for (int c = 0; c < x->v && !pc->alike; c++)
        slack += (k > 0 ? rows_slack (pc, l, c * x->p) : 0.0) +
                 (k < x->p - 1 ? rows_slack (pc, l, c * x->p + k + 1) : 0.0);
    return (x->p - 1) * s->micro_s / x->v +
           larger (held * l->slope - slack / x->v, held * l->least_slope) +
           larger (sends_s (pc, 0, k) + sends_s (pc, k, x->p - 1), pc->row_sends_s) +
           (k > 0 ? s->embed_back_s : 0.0) +
           (k < x->p - 1 ? s->head_back_s + s->tp_s / x->v : 0.0);
}

/* The same of uneven chunks: first ones of the stages above, last ones of those after it. */
static double uneven_back_and_up (const struct pipeline_case *pc, int k, double layers)
{
    const struct bound_pipeline *x = pc->x;
    const struct bound_slot *s = &x->slot[0];
    int fewer = (pc->v_shaped ? 0 : k) + fewer_below (pc, x->p - 1 - k);

    return k * s->micro_s / rows_first_share (x) +
           uneven_s (pc, BACKWARD, x->p - 1, fewer, x->model->layers - layers) +
           sends_s (pc, 0, k) + sends_s (pc, k, x->p - 1) +
           (k > 0 ? s->embed_back_s : 0.0) + (k < x->p - 1 ? s->head_back_s : 0.0);
}

/* A stage to be placed on a kind of slot. */
struct held {
    int k, kind, layers;
    double above;         /* layers of the stages above it, at least */
    double fwd_s, back_s; /* one micro-batch's operations */
    double layer_fwd_s;   /* of these, the layers' */
    double layer_back_s;
    double rest; /* m - n_k / v, of uneven chunks at least so many micro-batches */
    double rest_fwd_s, rest_back_s; /* the layers' part of as many */
    bool turns;                     /* do forwards follow its first backward? */
};

/* Layers times micro-batches that stage k's forwards have left after the first n_k, when it
 * holds so many in uneven chunks.  As many backwards come before its last forward: both take
 * the chunks in turns of p micro-batches, forwards from the first and backwards from the last.
 * Such schedules take whole groups of p micro-batches.  Chunks in a V have no such turns: there all
 * may be of the fullest. */
static double rest_layers (const struct bound_pipeline *x, int first, int k, int layers)
{
    int rounds = first / (x->p * x->v), left = first % (x->p * x->v), chunk = left / x->p;
    int whole = 0;

    if (workload_schedule_is_v (x->schedule))
        return larger (0.0, (double) layers * x->m -
                                (double) first * rows_chunk_layers (x, k, layers, 0));
    for (int c = 0; c < chunk; c++)
        whole += rows_chunk_layers (x, k, layers, c);
    return (double) layers * (x->m - rounds * x->p) - (double) x->p * whole -
           (double) (left % x->p) * rows_chunk_layers (x, k, layers, chunk);
}

/* What is left for a stage to do after its first n_k forwards. */
static void put_rest (const struct pipeline_case *pc, struct held *h)
{
    const struct bound_pipeline *x = pc->x;
    int first = workload_forwards_first (x->schedule, x->p, x->v, x->m, h->k);
    double *rest_s[2] = {&h->rest_fwd_s, &h->rest_back_s}, left, share;

    h->rest = x->m - first / (double) x->v;
    h->turns = h->rest > 0.0;
    h->rest_fwd_s = h->rest * h->layer_fwd_s;
    h->rest_back_s = h->rest * h->layer_back_s;
    if (!is_uneven (pc))
        return;
    /* The largest part of its stage that a chunk can be, with v - 1 layers or v + 1. */
    share = larger (1.0 / (x->v - 1), 2.0 / (x->v + 1));
    h->rest = larger (0.0, x->m - first * share);
    left = rest_layers (x, first, h->k, h->layers);
    for (enum part part = FORWARD; part <= BACKWARD; part++) {
        const struct layer_cost *l = &pc->part[h->kind][part];
        double slack = 0.0;

        for (int c = 0; c < x->v && !pc->alike; c++)
            slack += rows_slack (pc, l, start_of (pc, h->k, c));
        *rest_s[part] = larger (left * l->slope - x->m * slack, left * l->least_slope) +
                        h->rest * x->slot[h->kind].micro_s;
    }
}

/* @param[in] more  for each layer, what its placing adds */
static struct held held_of (const struct pipeline_case *pc, int k, int kind, int layers,
                            int below, struct both_ways more)
{
    const struct bound_pipeline *x = pc->x;
    struct both_ways e = ends_of (pc, k, kind);
    double micro = x->slot[kind].micro_s;
    struct held h = {.k = k, .kind = kind, .layers = layers};

    h.above = larger (k * x->least, x->model->layers - layers - below);
    h.layer_fwd_s = micro + rows_layers_s (pc, FORWARD, k, kind, layers);
    h.layer_back_s = micro + rows_layers_s (pc, BACKWARD, k, kind, layers);
    h.fwd_s = e.fwd_s - micro + h.layer_fwd_s;
    h.back_s = e.back_s - micro + h.layer_back_s;
    h.fwd_s += layers * more.fwd_s;
    h.back_s += layers * more.back_s;
    put_rest (pc, &h);
    return h;
}

/* All layers once in one direction, those on slow slots with what they take more. */
static double all_layers_s (const struct pipeline_case *pc, enum part part,
                            const struct held *h)
{
    int others = (pc->x->slow - 1) * pc->x->least, slow = pc->slow_layers;

    if (h->kind == 1 && h->layers + others > slow)
        slow = h->layers + others;
    return pc->all_s[part] + larger (slow * pc->more_s[part], pc->way_more_s[part]);
}

/* A micro-batch's whole way down. */
static double down_s (const struct pipeline_case *pc, const struct held *h)
{
    const struct bound_slot *s = &pc->x->slot[0];

    return pc->x->p * s->micro_s + all_layers_s (pc, FORWARD, h) + s->embed_fwd_s +
           s->tp_s + s->head_fwd_s + way_down_s (pc);
}

/* How many layers do the stages after it hold at least, where chunks are not in a V? */
static double held_below (const struct pipeline_case *pc, const struct held *h)
{
    return h->k == 0 ? pc->x->model->layers - h->layers
                     : (pc->x->p - 1 - h->k) * pc->x->least;
}

/* A micro-batch's whole way up. */
static double up_s (const struct pipeline_case *pc, const struct held *h)
{
    const struct bound_slot *s = &pc->x->slot[0];

    return pc->x->p * s->micro_s + all_layers_s (pc, BACKWARD, h) + s->embed_back_s +
           s->head_back_s + s->tp_s + way_down_s (pc);
}

/* Row (2), to its own end or to stage 0's. */
static double first_backward_row (const struct pipeline_case *pc, const struct held *h,
                                  bool own)
{
    double back;

    if (pc->split)
        back = back_to (pc, h->k, h->layers, h->above);
    else if (own)
        back = through_below (pc, BACKWARD, h->k, held_below (pc, h));
    else if (is_uneven (pc))
        back = uneven_back_and_up (pc, h->k, h->layers);
    else
        back = back_and_up (pc, h->k, h->layers);
    back += h->back_s;
    /* All backwards once, of which one is its own. */
    if (pc->x->v == 1 && !pc->split && !own)
        back = larger (back, up_s (pc, h));
    return down_s (pc, h) + (pc->x->m - 1) * h->back_s + h->rest_fwd_s + back;
}

/* What the head and the embedding cost their stages between the first backward and the
 * last forward.  Their all-reduces belong to all chunks alike.  With whole groups of
 * micro-batches the last chunk's first forward and last backward are outside, and of the
 * first chunk up to 2 p - 1 of each. */
static double ends_between_s (const struct pipeline_case *pc, const struct held *h)
{
    const struct bound_pipeline *x = pc->x;
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

/* All stages' work for one micro-batch, at least. */
static double all_work_s (const struct pipeline_case *pc, const struct held *h)
{
    const struct bound_slot *s = &pc->x->slot[0];

    return 2.0 * (pc->x->p * s->micro_s + s->tp_s) + all_layers_s (pc, FORWARD, h) +
           all_layers_s (pc, BACKWARD, h) + s->embed_fwd_s + s->embed_back_s +
           s->head_fwd_s + s->head_back_s;
}

/* What is left of all stages' work for those after stage k: in the whole, 0 where it is not told.
 * Where stage k takes longer than h says, less is left, but row (3) has its time once or more: but
 * for the embedding, of which ends_between_s has what it can. */
static double work_below_s (const struct pipeline_case *pc, const struct held *h)
{
    const struct bound_slot *s = &pc->x->slot[0];
    double embedding = h->k == 0 ? s->embed_fwd_s + s->embed_back_s + s->tp_s : 0.0;

    if (!pc->above_s || h->k == pc->x->p - 1)
        return 0.0;
    return all_work_s (pc, h) - h->fwd_s - h->back_s - embedding - pc->above_s[h->k] +
           2.0 * sends_s (pc, h->k, pc->x->p - 1);
}

/* Row (3) of each stage, with nothing after it or with what is left there: either holds, whatever
 * the stage takes, so its time is the most that both allow. */
void rows_put_above (struct pipeline_case *pc, double end, double *above)
{
    const struct bound_pipeline *x = pc->x;
    struct held none = {0};
    double all = all_work_s (pc, &none),
           left = end - down_s (pc, &none) - up_s (pc, &none);

    pc->above_s = NULL;
    if (x->schedule != SCHEDULE_1F1B || x->v > 1)
        return;
    above[0] = 0.0;
    for (int k = 0; k < x->p - 1; k++) {
        int rest = x->m - workload_forwards_first (x->schedule, x->p, 1, x->m, k);
        double most = rest > 0 ? left / rest : INFINITY;

        if (rest > 1)
            most =
                smaller (most, (left - all + above[k] - 2.0 * sends_s (pc, k, x->p - 1)) /
                                   (rest - 1));
        above[k + 1] = above[k] + larger (0.0, most);
    }
    pc->above_s = above;
}

/* Row (3); 0 where it tells nothing. */
static double last_forward_row (const struct pipeline_case *pc, const struct held *h)
{
    double below = held_below (pc, h);

    if (pc->split || !h->turns)
        return 0.0;
    return down_s (pc, h) + h->rest_fwd_s + h->rest_back_s + ends_between_s (pc, h) +
           larger (through_below (pc, BACKWARD, h->k, below) +
                       through_below (pc, FORWARD, h->k, below),
                   work_below_s (pc, h)) +
           up_s (pc, h);
}

/* The least end of stage 0 when stage k holds so many layers and the stages after it at most
 * `below`. */
static double end_s (const struct pipeline_case *pc, int k, int kind, int layers,
                     int below, struct stage_placing placing)
{
    struct held h = held_of (pc, k, kind, layers, below,
                             rows_layer_more (pc, k, kind, layers, placing));
    double end = through_above (pc, FORWARD, k, h.above) +
                 pc->x->m * (h.fwd_s + h.back_s) +
                 through_above (pc, BACKWARD, k, h.above);

    end = larger (end, first_backward_row (pc, &h, false));
    return larger (end, last_forward_row (pc, &h));
}

/* Stage k's own end by rows (1) and (2), but for what its placing adds to all its layers' work and
 * to that of its backwards: the same for all placings. */
struct own_end {
    double work_s, back_s;
    bool known;
};

static void find_own_end (const struct pipeline_case *pc, int k, int kind, int layers,
                          int below, struct own_end *own)
{
    struct held h;

    if (own->known)
        return;
    h = held_of (pc, k, kind, layers, below, (struct both_ways){0.0, 0.0});
    own->work_s =
        through_above (pc, FORWARD, k, h.above) + pc->x->m * (h.fwd_s + h.back_s);
    own->back_s = first_backward_row (pc, &h, true);
    own->known = true;
}

/* Is its one group that spans nodes paid for in another replica? */
static bool asks_calm (const struct pipeline_case *pc, struct stage_placing placing)
{
    return pc->calm && placing.span == SPAN_ONE;
}

/* A stage of which is asked what it takes in several ways. */
struct asked {
    const struct pipeline_case *pc;
    int k, kind, layers, below;
    double end_s; /* of stage k, at least */
    bool bare;    /* without the tail */
    /* Here, without and with a group that spans nodes, and in the calm replica. */
    struct own_end own[2], calm;
};

/* How many ways to place it are there? */
static int ways_of (const struct asked *a, const struct stage_placing **way)
{
    bool given = a->k == 0 && !a->pc->split;

    *way = given ? &a->pc->first : a->pc->placing;
    return given ? 1 : a->pc->n_placings;
}

static double step_in (const struct asked *a, const struct pipeline_case *pc,
                       const struct own_end *own, int kind, struct stage_placing placing,
                       double end)
{
    struct both_ways more = rows_layer_more (pc, a->k, kind, a->layers, placing);
    double all = (double) pc->x->m * a->layers;

    end = larger (end, larger (own->work_s + all * (more.fwd_s + more.back_s),
                               own->back_s + all * more.back_s));
    return a->bare ? end : end + rows_tail_s (pc, a->k, kind, a->layers, placing, end);
}

/* Its step in one of them; any number beyond `most` stands for another. */
static double step_asked (struct asked *a, struct stage_placing placing, double most)
{
    const struct pipeline_case *pc = a->pc;
    bool spans = !pc->spans && rows_span (pc->x, placing);
    double step;

    if (!rows_may_span (pc->x, a->k, placing.span))
        return INFINITY;
    if (spans && !a->own[1].known) {
        struct pipeline_case other = *pc;

        other.spans = true;
        find_own_end (&other, a->k, a->kind, a->layers, a->below, &a->own[1]);
    }
    if (!spans)
        find_own_end (pc, a->k, a->kind, a->layers, a->below, &a->own[0]);
    step = step_in (a, pc, &a->own[spans], a->kind, placing, a->end_s);
    /* In either of both replicas: one tail follows. */
    if (asks_calm (pc, placing) && step < most) {
        find_own_end (pc->calm, a->k, 0, a->layers, a->below, &a->calm);
        step = larger (step, step_in (a, pc->calm, &a->calm, 0, placing, 0.0));
    }
    return step;
}

double rows_step_s (const struct pipeline_case *pc, int k, int kind, int layers,
                    int below, bool bare, double enough)
{
    struct asked a = {pc, k, kind, layers, below, .bare = bare};
    const struct stage_placing *way;
    double least = INFINITY;
    int n = ways_of (&a, &way);

    for (int i = 0; i < n && least > enough; i++)
        least = smaller (least, step_asked (&a, way[i], least));
    return least;
}

double rows_step_below (const struct pipeline_case *pc, int k, int kind, int layers,
                        int below, double end, double most, struct both_ways *more)
{
    struct asked a = {pc, k, kind, layers, below, .end_s = end};
    const struct stage_placing *way;
    double least = INFINITY;
    int n = ways_of (&a, &way);

    *more = (struct both_ways){INFINITY, INFINITY};
    for (int i = 0; i < n; i++) {
        struct stage_placing everywhere = way[i];
        double step = step_asked (&a, way[i], most);
        struct both_ways here;

        if (!(step < most))
            continue;
        least = smaller (least, step);
        if (everywhere.span == SPAN_ONE) /* in one replica */
            everywhere.span = SPAN_NONE;
        here = rows_layer_more (pc, k, kind, layers, everywhere);
        more->fwd_s = smaller (more->fwd_s, here.fwd_s);
        more->back_s = smaller (more->back_s, here.back_s);
    }
    return least;
}

double rows_end_s (const struct pipeline_case *pc, int k, int kind, int layers, int below)
{
    struct stage_placing placing = {SPAN_NONE, NULL};

    if (pc->split)
        return rows_step_s (pc, k, kind, layers, below, false, 0.0);
    if (k == 0 && asks_calm (pc, pc->first))
        return larger (end_s (pc, k, kind, layers, below, pc->first),
                       end_s (pc->calm, k, 0, layers, below, pc->first));
    return end_s (pc, k, kind, layers, below, k == 0 ? pc->first : placing);
}

double rows_around_s (const struct pipeline_case *pc)
{
    const struct bound_slot *s = &pc->x->slot[0];

    return 2.0 * (pc->x->p * s->micro_s + s->tp_s + way_down_s (pc)) +
           pc->all_s[FORWARD] + pc->all_s[BACKWARD] + pc->way_more_s[FORWARD] +
           pc->way_more_s[BACKWARD] + s->embed_fwd_s + s->embed_back_s + s->head_fwd_s +
           s->head_back_s;
}

double rows_micro_s (const struct pipeline_case *pc, int k, int kind, double layers)
{
    struct both_ways e = ends_of (pc, k, kind);

    return e.fwd_s + e.back_s + rows_layers_s (pc, FORWARD, k, kind, layers) +
           rows_layers_s (pc, BACKWARD, k, kind, layers);
}

/* The lines' slack is left. */
double rows_fixed_s (const struct pipeline_case *pc, int k)
{
    const struct bound_pipeline *x = pc->x;
    struct both_ways e = ends_of (pc, k, 0);
    double slack = 0.0;

    for (enum part part = FORWARD; part <= BACKWARD; part++) {
        const struct layer_cost *l = &pc->part[0][part];
        double stage = 0.0;

        for (int c = 0; c < x->v; c++)
            stage += rows_slack (pc, l, start_of (pc, k, c));
        slack += x->m * stage;
        for (int c = 0; c < x->v && k > 0 && (part == FORWARD || !pc->split); c++)
            slack += rows_slack (pc, l, c * x->p) / rows_first_share (x);
    }
    return around_above (pc, FORWARD, k) + x->m * (e.fwd_s + e.back_s) +
           (pc->split ? 0.0 : around_above (pc, BACKWARD, k)) - slack;
}
