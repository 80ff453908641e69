/* Playing a pipeline out, operation by operation.
 *
 * Schedules with a fixed order wait for what comes next.  Those whose order follows from the
 * times take what is there: a backward of the activations' gradients first, then a forward
 * while the schedule's memory allows, and weight gradients where a stage would wait. */
#include "costmodel/costmodel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct player {
    const struct costmodel_pipeline *p;
    bool v;
    int virtuals;    /* stages x chunks */
    double *fwd_end; /* [virtuals * microbatches]; NAN until done */
    double *back_end;
    double *way_s, *way_back_s; /* [virtuals] of a forward's input and of a backward's */
    double *clock;              /* [stages] */
    double *end_s;              /* [stages] of the last backward, weights' included */
    const struct costmodel_watch *watch;
};

/* Stage and chunk of virtual stage k, counted along a micro-batch's way forward: chunk
 * after chunk round the stages, every second chunk in reverse where the schedule is a V. */
static void place_of (const struct player *x, int k, int *stage, int *chunk)
{
    int stages = x->p->stages;

    *chunk = k / stages;
    *stage = x->v && *chunk % 2 ? stages - 1 - k % stages : k % stages;
}

/* Its number. */
static int virtual_of (const struct player *x, int stage, int chunk)
{
    int stages = x->p->stages;

    return chunk * stages + (x->v && chunk % 2 ? stages - 1 - stage : stage);
}

static double *done_at (const struct player *x, double *of, int k, int micro)
{
    return &of[(size_t) k * (size_t) x->p->microbatches + (size_t) micro];
}

/* From stage a to stage b; neighbours, or the ends when chunks go round. */
static double hop_s (const struct costmodel_pipeline *p, int a, int b)
{
    int last = p->stages - 1;

    if (a == b)
        return 0.0;
    if (b == a + 1)
        return p->send_s[a];
    if (a == b + 1)
        return p->return_s[b];
    return a == last ? p->send_s[last] : p->return_s[last];
}

/* When can the operation of virtual stage k on a micro-batch start, if its input has been
 * made?  NAN when it has not.  What comes back to a stage has been forward there before. */
static double input_at (const struct player *x, enum workload_operation what, int k,
                        int micro)
{
    if (what == OPERATION_FORWARD)
        return k == 0 ? 0.0 : *done_at (x, x->fwd_end, k - 1, micro) + x->way_s[k];
    return k == x->virtuals - 1
               ? *done_at (x, x->fwd_end, k, micro)
               : *done_at (x, x->back_end, k + 1, micro) + x->way_back_s[k];
}

/* What the inputs of virtual stages take on their way, where nobody waits for what he sends. */
static void find_ways (struct player *x)
{
    for (int k = 0; k < x->virtuals; k++) {
        int before, here, after, chunk;

        place_of (x, k, &here, &chunk);
        place_of (x, k > 0 ? k - 1 : k, &before, &chunk);
        place_of (x, k < x->virtuals - 1 ? k + 1 : k, &after, &chunk);
        x->way_s[k] = x->p->blocking ? 0.0 : hop_s (x->p, before, here);
        x->way_back_s[k] = x->p->blocking ? 0.0 : hop_s (x->p, after, here);
    }
}

/* Blocking: the stage also waits for what it sends. */
static double sending_s (const struct player *x, enum workload_operation what, int k)
{
    int here, there, chunk, next = what == OPERATION_FORWARD ? k + 1 : k - 1;

    if (!x->p->blocking || next < 0 || next >= x->virtuals)
        return 0.0;
    place_of (x, k, &here, &chunk);
    place_of (x, next, &there, &chunk);
    return hop_s (x->p, here, there);
}

/* The stage of virtual stage k where that is another one, or -1. */
static int other_stage (const struct player *x, int k, int here)
{
    int stage, chunk;

    if (k < 0 || k >= x->virtuals)
        return -1;
    place_of (x, k, &stage, &chunk);
    return stage == here ? -1 : stage;
}

static void show (const struct player *x, struct costmodel_event e)
{
    int next = e.what == OPERATION_FORWARD ? 1 : -1;

    e.from = e.to = -1;
    if (e.what != OPERATION_WEIGHTS) {
        e.from = other_stage (x, e.number - next, e.stage);
        e.to = other_stage (x, e.number + next, e.stage);
    }
    e.arrive_s = e.to < 0 ? e.end_s : e.end_s + hop_s (x->p, e.stage, e.to);
    x->watch->see (x->watch->context, &e);
}

static void perform (struct player *x, enum workload_operation what, int stage, int chunk,
                     int micro, double start, double length)
{
    int k = virtual_of (x, stage, chunk);
    double end = start + length;

    if (x->watch)
        show (x, (struct costmodel_event){stage, chunk, micro, what, start, end,
                                          .number = k});
    if (what != OPERATION_WEIGHTS)
        end += sending_s (x, what, k);
    if (what == OPERATION_FORWARD)
        *done_at (x, x->fwd_end, k, micro) = end;
    else if (what == OPERATION_BACKWARD)
        *done_at (x, x->back_end, k, micro) = end;
    x->clock[stage] = end;
    if (what != OPERATION_FORWARD)
        x->end_s[stage] = end;
}

static double length_of (const struct costmodel_pipeline *p, enum workload_schedule s,
                         enum workload_operation what, int cell)
{
    switch (what) {
    case OPERATION_FORWARD:
        return p->fwd_s[cell];
    case OPERATION_BACKWARD:
        return p->back_s[cell] -
               (workload_schedule_splits_backward (s) ? p->weight_s[cell] : 0.0);
    default:
        return p->weight_s[cell];
    }
}

/* ---- fixed orders ---- */

static bool play_orders (struct player *x, enum workload_schedule s)
{
    const struct costmodel_pipeline *p = x->p;
    struct workload_pipeline_size size = {p->stages, p->chunks, p->microbatches};
    int n = workload_schedule_operations (s, size), left = n * p->stages;
    struct workload_op *op = calloc ((size_t) left, sizeof *op);
    int *at = calloc ((size_t) p->stages, sizeof *at);
    bool ok = op && at;

    for (int i = 0; i < p->stages && ok; i++)
        workload_schedule_rules (s)->order (size, i, op + (size_t) i * (size_t) n);
    while (left > 0 && ok) {
        int before = left;

        for (int i = 0; i < p->stages; i++)
            for (; at[i] < n; at[i]++, left--) {
                const struct workload_op *o =
                    &op[(size_t) i * (size_t) n + (size_t) at[i]];
                double ready =
                    o->what == OPERATION_WEIGHTS
                        ? x->clock[i]
                        : input_at (x, o->what, virtual_of (x, i, o->chunk), o->micro);

                if (isnan (ready))
                    break;
                perform (x, o->what, i, o->chunk, o->micro, fmax (x->clock[i], ready),
                         length_of (p, s, o->what, o->chunk * p->stages + i));
            }
        ok = left < before;
    }
    free (op);
    free (at);
    return ok;
}

/* ---- zero-bubble schedules ---- */

/* What a stage has begun and ended, per chunk. */
struct progress {
    int fwd[2], back[2], weight[2];
};

struct greedy {
    struct player *x;
    struct progress *did; /* [stages] */
    int limit;            /* chunks whose activations a stage may hold */
};

/* Chunks in memory: a micro-batch's activations stay until its weights' gradients. */
static int held (const struct progress *d)
{
    return d->fwd[0] + d->fwd[1] - d->weight[0] - d->weight[1];
}

struct choice {
    enum workload_operation what;
    int chunk;
    double start;
};

/* The stage's best next operation: what can start now, backward before forward and later
 * chunks before earlier ones; else weights; else the first to arrive.  start is NAN when
 * nothing can be done yet. */
static struct choice choose (const struct greedy *g, int stage)
{
    const struct player *x = g->x;
    const struct progress *d = &g->did[stage];
    int chunks = x->p->chunks, m = x->p->microbatches;
    double now = x->clock[stage];
    struct choice best = {OPERATION_FORWARD, 0, NAN};

    for (int kind = 0; kind < 2; kind++)
        for (int c = chunks - 1; c >= 0; c--) {
            enum workload_operation what =
                kind == 0 ? OPERATION_BACKWARD : OPERATION_FORWARD;
            int micro = kind == 0 ? d->back[c] : d->fwd[c];
            /* The first chunk leaves room for one more of the others. */
            int most = g->limit - (c == 0 && chunks > 1);
            double ready;

            if (micro >= m || (kind == 1 && held (d) >= most))
                continue;
            ready = input_at (x, what, virtual_of (x, stage, c), micro);
            if (!isnan (ready) && (isnan (best.start) || fmax (now, ready) < best.start))
                best = (struct choice){what, c, fmax (now, ready)};
        }
    for (int c = chunks - 1; c >= 0 && (isnan (best.start) || best.start > now); c--)
        if (d->weight[c] < d->back[c])
            best = (struct choice){OPERATION_WEIGHTS, c, now};
    return best;
}

static void carry_out (struct greedy *g, enum workload_schedule s, int stage,
                       const struct choice *c)
{
    struct progress *d = &g->did[stage];
    int *done = c->what == OPERATION_FORWARD    ? d->fwd
                : c->what == OPERATION_BACKWARD ? d->back
                                                : d->weight;
    int micro = done[c->chunk]++;

    perform (g->x, c->what, stage, c->chunk, micro, c->start,
             length_of (g->x->p, s, c->what, c->chunk * g->x->p->stages + stage));
}

/* The other stage that waits for what was done; -1: none does. */
static int waiting_stage (const struct player *x, int stage, const struct choice *done)
{
    int k = virtual_of (x, stage, done->chunk);

    switch (done->what) {
    case OPERATION_FORWARD:
        return other_stage (x, k + 1, stage);
    case OPERATION_BACKWARD:
        return other_stage (x, k - 1, stage);
    default:
        return -1;
    }
}

/* The stage whose choice starts first; -1: none can start. */
static int first_to_start (const struct choice *next, int stages)
{
    int first = -1;

    for (int i = 0; i < stages; i++)
        if (!isnan (next[i].start) && (first < 0 || next[i].start < next[first].start))
            first = i;
    return first;
}

/* In the order of time, so that a stage chooses among all that has arrived.  What an operation
 * changes is seen by its own stage and by the one that waits for it: the others' choices stand. */
static bool play_greedy (struct player *x, enum workload_schedule s)
{
    const struct costmodel_pipeline *p = x->p;
    size_t stages = (size_t) p->stages;
    struct greedy g = {x, calloc (stages, sizeof (struct progress)),
                       workload_schedule_rules (s)->memory_limit (p->stages)};
    struct choice *next = malloc (stages * sizeof *next);
    int left = 3 * p->chunks * p->microbatches * p->stages;
    bool ok = g.did && next;

    for (int i = 0; i < p->stages && ok; i++)
        next[i] = choose (&g, i);
    while (ok && left > 0) {
        int stage = first_to_start (next, p->stages), other;

        if (stage < 0)
            break;
        other = waiting_stage (x, stage, &next[stage]);
        carry_out (&g, s, stage, &next[stage]);
        next[stage] = choose (&g, stage);
        if (other >= 0)
            next[other] = choose (&g, other);
        left--;
    }
    free (g.did);
    free (next);
    return ok && left == 0;
}

bool costmodel_play (enum workload_schedule s, const struct costmodel_pipeline *p,
                     double *end_s, const struct costmodel_watch *watch)
{
    size_t virtuals = (size_t) p->stages * (size_t) p->chunks;
    size_t cells = virtuals * (size_t) p->microbatches;
    double *memory =
        malloc ((2 * (cells + virtuals) + (size_t) p->stages) * sizeof *memory);
    struct player x = {.p = p,
                       .v = workload_schedule_is_v (s),
                       .virtuals = p->stages * p->chunks,
                       .fwd_end = memory,
                       .back_end = memory + cells,
                       .way_s = memory + 2 * cells,
                       .way_back_s = memory + 2 * cells + virtuals,
                       .clock = memory + 2 * (cells + virtuals),
                       .end_s = end_s,
                       .watch = watch};
    bool ok = memory != NULL;

    for (size_t i = 0; i < 2 * cells && ok; i++)
        memory[i] = NAN;
    if (ok)
        find_ways (&x);
    for (int i = 0; i < p->stages && ok; i++)
        x.clock[i] = end_s[i] = 0.0;
    if (ok)
        ok = workload_schedule_is_greedy (s) ? play_greedy (&x, s) : play_orders (&x, s);
    free (memory);
    return ok;
}
