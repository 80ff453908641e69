/* Stages wait for each other in more ways than the rows of rows.c tell: a stage that
 * is slower than the others keeps all of them in its step.  Where the order of operations
 * is given beforehand, the end of every stage grows with each time in it, so that a split
 * played out with all times at their best is a bound of that split.
 *
 * The splits whose rows do not exceed some step are tried one by one, from the last stage
 * to the first, on all choices of slow slots; the least of what they take when played out,
 * and that step, is a bound of all splits.  The step is taken near the rows' at first, and
 * further as long as the splits are not too many. */
#include "mapper/bound/played.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "costmodel/costmodel.h"

#define REACH 0.0005   /* of the rows' step, at first */
#define ROUNDS 9       /* each with twice the reach of the one before */
#define WORK 2000000L  /* operations played out in a round, about */
#define NODE_WORK 200L /* what choosing one stage's layers takes, in these */
#define ROUNDING 1e-9  /* of sums in another order */
#define MOST_CUTS 8    /* of the stages into nodes; more are not told apart */
#define NO_ROOM (LONG_MIN / 2)

/* The splits so far: stages k to p-1 of one. */
struct tree {
    const struct pipeline_case *pc;
    struct costmodel_pipeline pipeline;
    double *fwd_s, *back_s, *send_s, *end_s, *work;
    struct both_ways *stage_s; /* [p] a micro-batch's layers */
    struct both_ways *more;    /* [p] what each of them takes more, in the stage's way */
    int *layers, *kind, *most; /* [p]; [p]; [2 * p] of find_room */
    /* [p][slow + 1] stages 1 to k hold at most so many layers with s of them on slow slots */
    long *room;
    double step_s; /* the least so far, or what is reached for */
    struct rows_times then;
    long left;
    /* Ways to cut the ring of stages into runs that nodes hold: bit k is set where the boundary
     * after stage k crosses.  None: no crossing is told. */
    unsigned cut[MOST_CUTS];
    int n_cuts;
};

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
    const struct bound_pipeline *x = t->pc->x;

    for (int k = 0; k < x->p; k++)
        t->stage_s[k] = (struct both_ways){0.0, 0.0};
    for (int c = 0, from = 0; c < x->v; c++)
        for (int k = 0; k < x->p; k++) {
            int n = workload_chunk_layers (t->layers[k], x->v, c);

            add_layers (&x->slot[t->kind[k]], x->model, from, n, &t->stage_s[k]);
            from += n;
        }
}

/* One chunk of stage k, which takes its share of the stage, whichever layers it has. */
static void set_chunk (struct tree *t, int c, int k)
{
    const struct bound_pipeline *x = t->pc->x;
    const struct bound_slot *s = &x->slot[t->kind[k]];
    int at = c * x->p + k;
    double share = (double) workload_chunk_layers (t->layers[k], x->v, c) / t->layers[k];
    struct both_ways *stage = &t->stage_s[k], *more = &t->more[k];
    struct both_ways sum = {
        (stage->fwd_s + t->layers[k] * more->fwd_s + s->micro_s) * share,
        (stage->back_s + t->layers[k] * more->back_s + s->micro_s) * share};

    /* Their all-reduces belong to all chunks alike. */
    if (k == 0)
        sum.fwd_s += s->tp_s * share;
    if (k == x->p - 1)
        sum.back_s += s->tp_s * share;
    if (at == 0) {
        sum.fwd_s += s->embed_fwd_s;
        sum.back_s += s->embed_back_s;
    }
    if (at == x->p * x->v - 1) {
        sum.fwd_s += s->head_fwd_s;
        sum.back_s += s->head_back_s;
    }
    t->fwd_s[at] = sum.fwd_s;
    t->back_s[at] = sum.back_s;
}

/* From stage k to the next one, or from the last to the first, on the best links that there
 * are.  A slot that need not be slow may be so too, unless it is known which are. */
static double send_of (const struct tree *t, int k)
{
    const struct bound_pipeline *x = t->pc->x;
    int slow = t->kind[k] + t->kind[(k + 1) % x->p];
    double mixed = x->pair_s[0][1];

    return slow == 0                                               ? x->any_s
           : slow == 2 || (x->run == 0 && x->pair_s[1][1] < mixed) ? x->pair_s[1][1]
                                                                   : mixed;
}

/* Play the split in hand out, stages in ways that take so much more. */
static void play (struct tree *t)
{
    const struct bound_pipeline *x = t->pc->x;

    for (int k = 0; k < x->p; k++)
        for (int c = 0; c < x->v; c++)
            set_chunk (t, c, k);
    costmodel_schedule (x->schedule, &t->pipeline, true, t->end_s, t->work);
    t->left -= 2L * x->m * x->p * x->v;
}

/* The step of what was played.  Some of the ways to place a stage let it synchronise as quickly as
 * the least step so far asks for: each of these may take more in every layer.
 * @param[out] grows  do they, so that it must be played again? */
static double step_of_ways (struct tree *t, bool *grows)
{
    const struct bound_pipeline *x = t->pc->x;
    int below = x->model->layers;
    double least = 0.0;

    *grows = false;
    for (int k = 0; k < x->p && least < t->step_s; k++) {
        struct both_ways more;

        below -= t->layers[k];
        least = fmax (least, rows_step_below (t->pc, k, t->kind[k], t->layers[k], below,
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
    const struct bound_pipeline *x = t->pc->x;
    double least;
    bool grows;

    for (int k = 0; k < x->p; k++) {
        t->send_s[k] = fmax (send_of (t, k), cut >> k & 1 ? x->cross_s : 0.0);
        t->more[k] = (struct both_ways){0.0, 0.0};
    }
    t->more[0] = rows_layer_more (t->pc, 0, t->kind[0], t->pc->first);
    do {
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

/* Cut off the next runs, of `left` stages from stage `at` on, in all ways of which no two runs that
 * follow each other fit one node: else there were a crossing less. */
static void add_cuts (struct tree *t, int at, int left, int first, int before,
                      unsigned cut)
{
    int p = t->pc->x->p, most = t->pc->x->per_node;

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
    const struct bound_pipeline *x = t->pc->x;
    bool whole = !x->span[SPAN_ONE] && !x->span[SPAN_ALL];

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
    const struct pipeline_case *pc = t->pc;
    double step;

    if (below + t->layers[0] != pc->x->model->layers ||
        rows_end_s (pc, 0, t->kind[0], t->layers[0], below) > t->then.end_s)
        return;
    step = played (t);
    if (step >= t->step_s)
        return;
    t->then.end_s -= t->step_s - step;
    t->then.step_s = t->step_s = step;
}

static long *room_of (const struct tree *t, int k)
{
    return t->room + (size_t) k * ((size_t) t->pc->x->slow + 1);
}

/* Fill in t->room by t->then. */
static void find_room (struct tree *t)
{
    const struct bound_pipeline *x = t->pc->x;
    int below = 0, near = 0, *most = t->most, *slower = most + x->p;

    for (int k = x->p - 1; k > 0; k--) {
        most[k] = rows_most_layers (t->pc, k, 0, below, &t->then, near);
        slower[k] =
            x->slow > 0 ? rows_most_layers (t->pc, k, 1, below, &t->then, most[k]) : 0;
        near = most[k];
        below += most[k];
    }
    for (int s = 0; s <= x->slow; s++)
        room_of (t, 0)[s] = s == 0 ? 0 : NO_ROOM;
    for (int k = 1; k < x->p; k++)
        for (int s = 0; s <= x->slow; s++) {
            long fast = most[k] > 0 && rows_may_be (x, k, 0)
                            ? room_of (t, k - 1)[s] + most[k]
                            : NO_ROOM;
            long slow = s > 0 && slower[k] > 0 && rows_may_be (x, k, 1)
                            ? room_of (t, k - 1)[s - 1] + slower[k]
                            : NO_ROOM;

            room_of (t, k)[s] = fast > slow ? fast : slow;
        }
}

/* All ways to give stages 1 to k layers, `slow` of them on slow slots. */
static void try_stage (struct tree *t, int k, int below, int slow)
{
    const struct bound_pipeline *x = t->pc->x;
    int held = x->model->layers - t->layers[0] - below;

    if (k == 0 && slow == 0)
        whole_split (t, below);
    for (int kind = 0; kind < 2 && k > 0; kind++) {
        long room;

        if (slow < kind || slow - kind > k - 1 || !rows_may_be (x, k, kind))
            continue;
        room = room_of (t, k - 1)[slow - kind];
        t->kind[k] = kind;
        t->left -= NODE_WORK;
        for (int n = rows_most_layers (t->pc, k, kind, below, &t->then,
                                       t->most[kind * x->p + k]);
             n >= x->least && held - n <= room && t->left > 0; n -= x->unit) {
            if (held - n < (k - 1) * x->least)
                continue;
            t->layers[k] = n;
            try_stage (t, k - 1, below + n, slow - kind);
        }
    }
}

/* All splits with so many layers on stage 0. */
static void try_first (struct tree *t, int kind, int layers)
{
    const struct bound_pipeline *x = t->pc->x;
    double tail = rows_tail_s (t->pc, 0, kind, layers, t->pc->first, t->step_s);

    t->kind[0] = kind;
    t->layers[0] = layers;
    t->then = (struct rows_times){t->step_s - tail, t->step_s};
    find_room (t);
    if (layers + room_of (t, x->p - 1)[x->slow - kind] >= x->model->layers)
        try_stage (t, x->p - 1, 0, x->slow - kind);
}

static void try_all (struct tree *t)
{
    const struct bound_pipeline *x = t->pc->x;
    int most = (x->model->layers - x->p * x->least) / x->unit + 1;
    int even = (x->model->layers / x->p - x->least) / x->unit;

    for (int kind = x->slow == x->p; kind < 2 && kind <= x->slow; kind++)
        /* From the even split on, which comes near the least at once. */
        for (int i = 0; i < most && t->left > 0 && rows_may_be (x, 0, kind); i++) {
            int n = x->least + (even + i) % most * x->unit;

            if (!x->cap || n <= x->cap[kind * x->p])
                try_first (t, kind, n);
        }
}

static bool tree_init (struct tree *t, const struct pipeline_case *pc)
{
    const struct bound_pipeline *x = pc->x;
    size_t p = (size_t) x->p, chunks = p * (size_t) x->v;

    *t = (struct tree){.pc = pc,
                       .fwd_s = malloc ((2 * chunks + 2 * p +
                                         (size_t) COSTMODEL_SCHEDULE_WORK (x->p, x->v)) *
                                        sizeof (double)),
                       .stage_s = malloc (2 * p * sizeof (struct both_ways)),
                       .layers = malloc (4 * p * sizeof (int)),
                       .room = malloc (p * ((size_t) x->slow + 1) * sizeof (long))};
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
    find_cuts (t);
    return true;
}

double bound_played (const struct pipeline_case *pc, double rows_s)
{
    double reach = REACH * rows_s, least = rows_s;
    double most = pc->x->most_s * (1.0 + 2.0 * ROUNDING);
    struct tree t = {0};
    bool more = isfinite (rows_s) && !pc->split && tree_init (&t, pc);

    for (int round = 0; more && round < ROUNDS; round++, reach *= 2.0) {
        double to = fmin (rows_s + reach, most);

        t.step_s = to;
        t.left = WORK;
        try_all (&t);
        if (t.left > 0)
            least = fmax (rows_s, t.step_s * (1.0 - ROUNDING));
        more = t.left > 0 && t.step_s >= to && to < most;
    }
    free (t.fwd_s);
    free (t.stage_s);
    free (t.layers);
    free (t.room);
    return least;
}
