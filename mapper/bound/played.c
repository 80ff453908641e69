/* Stages wait for each other in more ways than the rows of rows.c tell: a stage that
 * is slower than the others keeps all of them in its step.  Where the order of operations
 * is given beforehand, the end of every stage grows with each time in it, so that a split
 * played out with all times at their best is a bound of that split.
 *
 * The splits whose rows do not exceed some step are tried one by one, from the last stage
 * to the first, on all choices of slow slots; the least of what they take when played out,
 * and that step, is a bound of all splits.  The step is taken near the rows' at first, and
 * further as long as the splits are not too many, at last as far as is of use. */
#include "mapper/bound/played.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "costmodel/costmodel.h"

#define REACH 0.004   /* of the rows' step, at first */
#define ROUNDS 6      /* each with twice the reach of the one before */
#define WORK 2000000L /* operations played out in a round, about */
#define APART 8 /* parts of it, of which one is enough to play a split for each stage */
#define CLOSEST 20       /* times that at most at the closest level */
#define CLOSE_REACH 0.01 /* and there */
#define WAY_HALVES 4     /* of what is reached for by a split that takes less */
#define HALVES 2         /* rounds there between what was told and what was not */
#define NODE_WORK 20L    /* what choosing one stage's layers takes, in these */
#define TELL_WORK 200L   /* what the most of them take */
#define ROUNDING 1e-9    /* of sums in another order */
#define MOST_CUTS 8      /* of the stages into nodes; more are not told apart */
#define NO_ROOM (LONG_MIN / 2)

/* The splits so far: stages k to p-1 of one. */
struct tree {
    const struct played_replica *r;
    const struct bound_pipeline *x; /* of its first kind */
    struct costmodel_pipeline pipeline;
    double *fwd_s, *back_s, *send_s, *end_s, *work;
    struct both_ways *stage_s; /* [p] a micro-batch's layers */
    struct both_ways *more;    /* [p] what each of them takes more, in the stage's way */
    int *layers, *kind, *most; /* [p]; [p]; [kinds * p] of find_room */
    /* [p][budget + 1] stages 1 to k hold at most so many layers for that price */
    long *room;
    double step_s;  /* the least so far, or what is reached for */
    double known_s; /* a bound that is known: it may stand for any lower one */
    struct rows_times then;
    double least_send_s; /* over any boundary */
    long left, spared;
    long *closer; /* of struct bound_pipeline, once all that is quick is known */
    /* Ways to cut the ring of stages into runs that nodes hold: bit k is set where the boundary
     * after stage k crosses.  None: no crossing is told. */
    unsigned cut[MOST_CUTS];
    int n_cuts;
};

static const struct played_kind *kind_of (const struct tree *t, int k)
{
    return &t->r->kind[t->kind[k]];
}

static const struct bound_slot *slot_of (const struct tree *t, int k)
{
    const struct played_kind *kind = kind_of (t, k);

    return &kind->rows->x->slot[kind->slot];
}

static void add_layers (const struct bound_slot *s, const struct workload_model *m,
                        int from, int n, struct both_ways *sum)
{
    for (int i = from; i < from + n; i++) {
        const struct bound_layer *l = &s->layer[workload_kind_of (m, i)];

        sum->fwd_s += l->fwd_s;
        sum->back_s += l->back_s;
    }
}

/* What every stage's layers take: chunk after chunk round the stages, as the model has them. */
static void put_stages (struct tree *t)
{
    const struct bound_pipeline *x = t->x;

    for (int k = 0; k < x->p; k++)
        t->stage_s[k] = (struct both_ways){0.0, 0.0};
    for (int c = 0, from = 0; c < x->v; c++)
        for (int k = 0; k < x->p; k++) {
            int n = rows_chunk_layers (x, k, t->layers[k], c);

            add_layers (slot_of (t, k), x->model, from, n, &t->stage_s[k]);
            from += n;
        }
}

/* Stage k's chunks of so many layers, of which each takes its share of the stage, whichever it has.
 * @param layer  a micro-batch's mean
 * @param lower  only those that take less than what is put */
static void put_chunks (struct tree *t, int k, const struct bound_slot *s, int layers,
                        struct both_ways layer, bool lower)
{
    const struct bound_pipeline *x = t->x;

    for (int c = 0; c < x->v; c++) {
        int n = rows_chunk_layers (x, k, layers, c), at = c * x->p + k;
        double fwd_s = n * layer.fwd_s, back_s = n * layer.back_s;

        if (at == 0) {
            fwd_s += s->embed_fwd_s;
            back_s += s->embed_back_s;
        }
        if (at == x->p * x->v - 1) {
            fwd_s += s->head_fwd_s;
            back_s += s->head_back_s;
        }
        t->fwd_s[at] = lower ? fmin (t->fwd_s[at], fwd_s) : fwd_s;
        t->back_s[at] = lower ? fmin (t->back_s[at], back_s) : back_s;
    }
}

/* A layer's part of a stage, whose layers take so long, and of what all its chunks share: the
 * all-reduces belong to them alike.
 * @param layers  that the stage's times are of
 * @param most    that may share the rest */
static struct both_ways part_of (const struct tree *t, int k, const struct bound_slot *s,
                                 struct both_ways stage, int layers, int most,
                                 struct both_ways more)
{
    double fwd_s = s->micro_s + (k == 0 ? s->tp_s : 0.0),
           back_s = s->micro_s + (k == t->x->p - 1 ? s->tp_s : 0.0);

    return (struct both_ways){stage.fwd_s / layers + more.fwd_s + fwd_s / most,
                              stage.back_s / layers + more.back_s + back_s / most};
}

/* A boundary after stage k. */
static void put_send (struct tree *t, int k, double least_s, unsigned cut)
{
    double s = fmax (least_s, cut >> k & 1 ? t->x->cross_s : 0.0);

    t->send_s[k] = fmax (s, rows_apart_s (t->x, k));
}

/* Operations of one. */
static long play_work (const struct bound_pipeline *x)
{
    return 2L * x->m * x->p * x->v;
}

/* Play what is put out. */
static void play (struct tree *t)
{
    const struct bound_pipeline *x = t->x;

    costmodel_schedule (x->schedule, &t->pipeline, true, t->end_s, t->work);
    t->left -= play_work (x);
}

/* The step of what was played.  Some of the ways to place a stage let it synchronise as quickly as
 * the least step so far asks for: each of these may take more in every layer.
 * @param[out] grows  do they, so that it must be played again? */
static double step_of_ways (struct tree *t, bool *grows)
{
    const struct bound_pipeline *x = t->x;
    int below = x->model->layers;
    double least = 0.0;

    *grows = false;
    for (int k = 0; k < x->p && least < t->step_s; k++) {
        struct both_ways more;

        below -= t->layers[k];
        least = fmax (least, rows_step_below (kind_of (t, k)->rows, k,
                                              kind_of (t, k)->slot, t->layers[k], below,
                                              t->end_s[k], t->step_s, &more));
        if (k > 0 && (more.fwd_s > t->more[k].fwd_s || more.back_s > t->more[k].back_s)) {
            *grows = true;
            t->more[k] = more;
        }
    }
    return least;
}

/* The split in hand, played out with crossings in those places; or t->step_s or more. */
static double played_cut (struct tree *t, unsigned cut)
{
    const struct bound_pipeline *x = t->x;
    double least;
    bool grows;

    for (int k = 0; k < x->p; k++) {
        put_send (t, k, t->r->send_s[t->kind[k]][t->kind[(k + 1) % x->p]], cut);
        t->more[k] = (struct both_ways){0.0, 0.0};
    }
    t->more[0] = rows_layer_more (kind_of (t, 0)->rows, 0, kind_of (t, 0)->slot,
                                  t->layers[0], kind_of (t, 0)->rows->first);
    do {
        for (int k = 0; k < x->p; k++) {
            int n = t->layers[k];

            put_chunks (t, k, slot_of (t, k), n,
                        part_of (t, k, slot_of (t, k), t->stage_s[k], n, n, t->more[k]),
                        false);
        }
        play (t);
        least = step_of_ways (t, &grows);
    } while (grows && least < t->step_s);
    return least;
}

/* The split in hand, played out. */
static double played (struct tree *t)
{
    double least;

    put_stages (t);
    least = played_cut (t, t->n_cuts > 0 ? t->cut[0] : 0);
    for (int i = 1; i < t->n_cuts; i++)
        least = fmin (least, played_cut (t, t->cut[i]));
    return least;
}

/* The same, for the step that tells most.  Ways that synchronise too slowly for the step that is
 * reached for are left out, so that the split takes that step, or what is played in the other ways.
 * Of a higher step the second is less, of a lower one the first. */
static double played_closely (struct tree *t)
{
    double most = t->step_s, least = played (t), reached = most;

    for (int i = 0; i < WAY_HALVES && least < reached && t->x->n_experts[SPAN_NONE] > 0;
         i++) {
        double step;

        t->step_s = 0.5 * (least + reached);
        step = played (t);
        if (step < t->step_s)
            reached = t->step_s;
        least = fmax (least, fmin (step, t->step_s));
    }
    t->step_s = most;
    return least;
}

/* Cut off the next runs, of `left` stages from stage `at` on, in all ways of which no two runs that
 * follow each other fit one node: else there were a crossing less. */
static void add_cuts (struct tree *t, int at, int left, int first, int before,
                      unsigned cut)
{
    int p = t->x->p, most = t->x->per_node;

    if (left == 0 && before + first > most) {
        if (t->n_cuts < MOST_CUTS)
            t->cut[t->n_cuts] = cut;
        t->n_cuts++;
    }
    for (int n = 1; n <= most && n <= left && t->n_cuts <= MOST_CUTS; n++)
        if (n + before > most)
            add_cuts (t, at + n, left - n, first, n, cut | 1u << (at + n - 1) % p);
}

/* Where TP groups cannot span nodes, a node holds a run of its stages at most: stages that it holds
 * beside these are a run of their own. */
static void find_cuts (struct tree *t)
{
    const struct bound_pipeline *x = t->x;
    bool whole = true;

    for (int i = 0; i < t->r->kinds; i++) {
        const bool *span = t->r->kind[i].rows->x->span;

        whole = whole && !span[SPAN_ONE] && !span[SPAN_ALL];
    }
    if (!whole || x->per_node == 0 || x->per_node >= x->p || x->p > 32)
        return;
    /* Stage 0 is in a run of n, k of them before it. */
    for (int n = 1; n <= x->per_node; n++)
        for (int k = 0; k < n; k++)
            add_cuts (t, n - k, x->p - n, n, n, 1u << (n - k - 1));
    if (t->n_cuts > MOST_CUTS)
        t->n_cuts = 0;
}

/* Stage 0 gets what it was to have. */
static void whole_split (struct tree *t, int below)
{
    const struct played_kind *first = kind_of (t, 0);
    double step;

    if (below + t->layers[0] != t->x->model->layers ||
        rows_end_s (first->rows, 0, first->slot, t->layers[0], below) > t->then.end_s)
        return;
    step = played_closely (t);
    if (step >= t->step_s)
        return;
    t->then.end_s -= t->step_s - step;
    t->then.step_s = t->step_s = step;
    if (step <= t->known_s) { /* nothing is gained */
        t->spared = t->left;
        t->left = 0;
    }
}

static long *room_of (const struct tree *t, int k)
{
    return t->room + (size_t) k * ((size_t) t->r->budget + 1);
}

/* The most layers of stage k on a kind. */
static int most_layers (const struct tree *t, int k, int kind, int below, int near)
{
    const struct played_kind *on = &t->r->kind[kind];

    return rows_most_layers (on->rows, k, on->slot, below, &t->then, near);
}

/* Fill in t->most by t->then. */
static void find_most (struct tree *t)
{
    const struct bound_pipeline *x = t->x;
    int below = 0, near = 0;

    for (int k = x->p - 1; k > 0; k--) {
        int held = 0;

        for (int kind = 0; kind < t->r->kinds; kind++) {
            near = t->most[kind * x->p + k] = most_layers (t, k, kind, below, near);
            held = near > held ? near : held;
        }
        below += held;
    }
}

/* Fill in t->room by t->most. */
static void find_room (struct tree *t)
{
    const struct bound_pipeline *x = t->x;
    int budget = t->r->budget;

    for (int b = 0; b <= budget; b++)
        room_of (t, 0)[b] = b == 0 || !t->r->all_spent ? 0 : NO_ROOM;
    for (int k = 1; k < x->p; k++)
        for (int b = 0; b <= budget; b++) {
            long *room = &room_of (t, k)[b];

            *room = NO_ROOM;
            for (int kind = 0; kind < t->r->kinds; kind++) {
                int most = t->most[kind * x->p + k], left = b - t->r->kind[kind].price;

                if (most > 0 && left >= 0 && rows_may_be (x, k, kind) &&
                    room_of (t, k - 1)[left] + most > *room)
                    *room = room_of (t, k - 1)[left] + most;
            }
        }
}

/* ---- what stages hold when all others hold what is left for them ---- */

/* Stage k's chunks when it holds `least` to `most` layers on a kind, of which each takes `more`. */
static void put_least (struct tree *t, int k, int kind, int least, int most,
                       struct both_ways more, bool lower)
{
    const struct played_kind *on = &t->r->kind[kind];
    const struct bound_slot *s = &on->rows->x->slot[on->slot];
    struct both_ways stage = {rows_layers_s (on->rows, FORWARD, k, on->slot, least),
                              rows_layers_s (on->rows, BACKWARD, k, on->slot, least)};

    put_chunks (t, k, s, least, part_of (t, k, s, stage, least, most, more), lower);
}

/* Stage k on any kind, where all stages can hold so many layers too many. */
static void put_stage (struct tree *t, int k, int slack)
{
    const struct bound_pipeline *x = t->x;
    bool some = false;

    for (int kind = 0; kind < t->r->kinds; kind++) {
        int most = t->most[kind * x->p + k];
        int least = most - slack > x->least ? most - slack : x->least;

        if (most == 0 || !rows_may_be (x, k, kind))
            continue;
        put_least (t, k, kind, least, most, (struct both_ways){0.0, 0.0}, some);
        some = true;
    }
}

/* Does what is put end too late, wherever sends cross?
 * @param n  layers that stage k holds, on the kind that it has */
static bool is_late (struct tree *t, int k, int n)
{
    const struct bound_pipeline *x = t->x;
    const struct played_kind *on = kind_of (t, k);
    int below = x->model->layers - n - t->layers[0] - (k - 1) * x->least;
    bool late = true;

    for (int i = 0; late && (i == 0 || i < t->n_cuts); i++) {
        struct both_ways more;

        for (int at = 0; at < x->p; at++)
            put_send (t, at, t->least_send_s, t->n_cuts > 0 ? t->cut[i] : 0);
        play (t);
        late = t->end_s[0] > t->then.end_s ||
               (k > 0 && rows_step_below (on->rows, k, on->slot, n, below, t->end_s[k],
                                          t->step_s, &more) >= t->step_s);
    }
    return late;
}

/* Layers that all stages can hold beyond the model's. */
static long slack_of (const struct tree *t)
{
    int left = t->r->budget - kind_of (t, 0)->price;

    return t->layers[0] + room_of (t, t->x->p - 1)[left] - t->x->model->layers;
}

/* Fewer layers of stage k on a kind, while the most that it can hold end too late with the fewest
 * on all others, which are put. */
static void lower_most (struct tree *t, int k, int kind)
{
    const struct bound_pipeline *x = t->x;
    int *most = &t->most[kind * x->p + k];

    t->kind[k] = kind;
    while (*most > 0 && t->left > 0) {
        put_least (t, k, kind, *most, *most, (struct both_ways){0.0, 0.0}, false);
        if (!is_late (t, k, *most))
            return;
        *most = *most - x->unit >= x->least ? *most - x->unit : 0;
    }
}

/* Rows know one stage.  All stages can hold some layers more than the model has, so each holds at
 * least the most that it can but for these: with so many on all others some most is too many, which
 * leaves less to spare. */
static void tell_apart (struct tree *t)
{
    const struct bound_pipeline *x = t->x;
    const struct played_kind *on = kind_of (t, 0);
    int first = t->layers[0];
    long before = LONG_MAX;

    put_least (t, 0, t->kind[0], first, first,
               rows_layer_more (on->rows, 0, on->slot, first, on->rows->first), false);
    for (long slack = slack_of (t); slack >= 0 && slack < before && t->left > 0;) {
        before = slack;
        for (int k = 1; k < x->p; k++)
            put_stage (t, k, (int) slack);
        if (is_late (t, 0, first)) {
            memset (t->most, 0, (size_t) t->r->kinds * (size_t) x->p * sizeof *t->most);
            find_room (t);
            return;
        }
        for (int k = 1; k < x->p && slack >= 0; k++) {
            for (int kind = 0; kind < t->r->kinds; kind++)
                if (rows_may_be (x, k, kind))
                    lower_most (t, k, kind);
            find_room (t);
            slack = slack_of (t);
            if (slack >= 0)
                put_stage (t, k, (int) slack);
        }
    }
}

/* All ways to give stages 1 to k layers, with so much left for their slots. */
static void try_stage (struct tree *t, int k, int below, int left)
{
    const struct bound_pipeline *x = t->x;
    int held = x->model->layers - t->layers[0] - below;

    if (k == 0 && (left == 0 || !t->r->all_spent))
        whole_split (t, below);
    for (int kind = 0; kind < t->r->kinds && k > 0; kind++) {
        const struct played_kind *on = &t->r->kind[kind];
        int after = left - on->price;
        long room;

        if (after < 0 || !rows_may_be (x, k, kind))
            continue;
        room = room_of (t, k - 1)[after];
        if (room < 0)
            continue;
        t->kind[k] = kind;
        t->left -= NODE_WORK;
        for (int n = t->most[kind * x->p + k];
             n >= x->least && held - n <= room && t->left > 0; n -= x->unit) {
            if (held - n < (k - 1) * x->least)
                continue;
            t->layers[k] = n;
            try_stage (t, k - 1, below + n, after);
        }
    }
}

/* All splits with so many layers on stage 0. */
static void try_first (struct tree *t, int kind, int layers)
{
    const struct played_kind *on = &t->r->kind[kind];
    double tail = rows_tail_s (on->rows, 0, on->slot, layers, on->rows->first, t->step_s);

    t->kind[0] = kind;
    t->layers[0] = layers;
    t->then = (struct rows_times){t->step_s - tail, t->step_s};
    find_most (t);
    find_room (t);
    if (t->closer)
        t->left -= TELL_WORK * t->x->p * t->r->kinds;
    if (t->x->p * play_work (t->x) < WORK / APART)
        tell_apart (t);
    if (slack_of (t) >= 0)
        try_stage (t, t->x->p - 1, 0, t->r->budget - on->price);
}

static void try_all (struct tree *t)
{
    const struct bound_pipeline *x = t->x;
    int most = (x->model->layers - x->p * x->least) / x->unit + 1;
    int even = (x->model->layers / x->p - x->least) / x->unit;

    for (int kind = 0; kind < t->r->kinds; kind++) {
        const struct played_kind *on = &t->r->kind[kind];
        const int *cap = on->rows->x->cap;

        /* From the even split on, which comes near the least at once. */
        for (int i = 0; i < most && t->left > 0 && on->price <= t->r->budget &&
                        rows_may_be (x, 0, kind);
             i++) {
            int n = x->least + (even + i) % most * x->unit;

            if (!cap || n <= cap[on->slot * x->p])
                try_first (t, kind, n);
        }
    }
}

static bool tree_init (struct tree *t, const struct played_replica *r)
{
    const struct bound_pipeline *x = r->kind[0].rows->x;
    size_t p = (size_t) x->p, chunks = p * (size_t) x->v;

    *t = (struct tree){.r = r,
                       .x = x,
                       .fwd_s = malloc ((2 * chunks + 2 * p +
                                         (size_t) COSTMODEL_SCHEDULE_WORK (x->p, x->v)) *
                                        sizeof (double)),
                       .stage_s = malloc (2 * p * sizeof (struct both_ways)),
                       .layers = malloc ((2 + (size_t) r->kinds) * p * sizeof (int)),
                       .room = malloc (p * ((size_t) r->budget + 1) * sizeof (long))};
    if (!t->fwd_s || !t->stage_s || !t->layers || !t->room)
        return false;
    t->more = t->stage_s + p;
    t->back_s = t->fwd_s + chunks;
    t->send_s = t->back_s + chunks;
    t->end_s = t->send_s + p;
    t->work = t->end_s + p;
    t->kind = t->layers + p;
    t->most = t->kind + p;
    t->pipeline =
        (struct costmodel_pipeline){.stages = x->p,
                                    .microbatches = x->m,
                                    .chunks = x->v,
                                    .fwd_s = t->fwd_s,
                                    .back_s = t->back_s,
                                    .send_s = t->send_s,
                                    .return_s = t->send_s,
                                    .blocking = x->profile->time.blocking_sends};
    t->least_send_s = INFINITY;
    for (int a = 0; a < r->kinds; a++)
        for (int b = 0; b < r->kinds; b++)
            t->least_send_s = fmin (t->least_send_s, r->send_s[a][b]);
    find_cuts (t);
    return true;
}

/* The least step, where that is below `to`.
 * @return false where the splits that may be are too many */
static bool try_by (struct tree *t, double to, double *least)
{
    long *work = t->closer, given = WORK;

    if (work)
        given = *work < CLOSEST * WORK ? *work : CLOSEST * WORK;
    if (given <= 0)
        return false;
    t->step_s = to;
    t->known_s = *least;
    t->left = given;
    t->spared = 0;
    try_all (t);
    if (work)
        *work -= given - t->left - t->spared;
    if (t->left > 0)
        *least = fmax (*least, t->step_s * (1.0 - ROUNDING));
    return t->left > 0 || t->step_s <= t->known_s;
}

/* Further and further from the rows' step, which is quick where there is little to find, and at
 * last all that is of use; then between the last that was told and the first that was not. */
static double from_below (struct tree *t, double rows_s, double reach, double most)
{
    double least = rows_s, to = rows_s, over = INFINITY;
    int halves = t->closer ? HALVES : 0;

    for (int round = 0; round < ROUNDS && halves >= 0; round++, reach *= 2.0) {
        to = isfinite (over)                          ? 0.5 * (least + over)
             : round + 1 == ROUNDS && isfinite (most) ? most
                                                      : fmin (rows_s + reach, most);
        if (!try_by (t, to, &least))
            over = to;
        else if (t->step_s < to || to >= most)
            break;
        halves -= isfinite (over);
    }
    return least;
}

/* All that is of use at once: what tells the splits apart takes about as long however far. */
static double closest (struct tree *t, double rows_s, double most)
{
    double least = rows_s;

    return isfinite (most) && try_by (t, most, &least)
               ? least
               : from_below (t, rows_s, CLOSE_REACH * rows_s, most);
}

double bound_played (const struct played_replica *r, double rows_s)
{
    const struct pipeline_case *pc = r->kind[0].rows;
    double most = pc->x->most_s * (1.0 + 2.0 * ROUNDING), least = rows_s;
    struct tree t = {0};

    if (isfinite (rows_s) && !pc->split && tree_init (&t, r)) {
        least = from_below (&t, rows_s, REACH * rows_s, most);
        t.closer = pc->x->work;
        if (t.closer && least < most)
            least = closest (&t, least, most);
    }
    FREE_ALL (t.fwd_s, t.stage_s, t.layers, t.room);
    return least;
}

/* Sends go over the best links that there are.  A slot that need not be slow may be so too, unless
 * it is known which are. */
double bound_played_slow (const struct pipeline_case *pc, double rows_s)
{
    const struct bound_pipeline *x = pc->x;
    int fast = x->p - x->slow;
    double slow = x->pair_s[1][1], mixed = x->pair_s[0][1];
    struct played_replica r = {
        .kinds = 1 + (x->slow > 0),
        .kind = {{.rows = pc, .slot = 0, .price = x->slow > 0}, {.rows = pc, .slot = 1}},
        .budget = x->slow > 0 ? fast : 0,
        .all_spent = true};

    r.send_s[0][0] = x->any_s;
    r.send_s[0][1] = r.send_s[1][0] = x->run == 0 ? fmin (slow, mixed) : mixed;
    r.send_s[1][1] = slow;
    return bound_played (&r, rows_s);
}
