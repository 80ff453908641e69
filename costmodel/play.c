/* Playing a pipeline out, operation by operation.
 *
 * Schedules with a fixed order wait for what comes next.  Those whose order follows from the
 * times take what is there: a backward of the activations' gradients first, then a forward
 * while the schedule's memory allows, and weight gradients where a stage would wait.
 *
 * Such choices hang on which of two times is less, often of two that are equal but for rounding.
 * So these schedules are played in whole multiples of a unit, whose sums are exact.  What comes
 * next then depends on how the stages stand to each other and on nothing else: once they stand
 * as they did some micro-batches before, all goes on as it did from there, and whole periods are
 * skipped without a change in any digit. */
#include "costmodel/costmodel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct player {
    const struct costmodel_pipeline *p;
    int virtuals;    /* stages x chunks */
    int *stage_of;   /* [virtuals] */
    int *number;     /* [chunks * stages] of each stage's */
    int micros;      /* that are played; the others are skipped */
    double *fwd_end; /* [microbatches * virtuals]; NAN until done */
    double *back_end;
    double *way_s, *way_back_s; /* [virtuals] of a forward's input and of a backward's */
    double *clock;              /* [stages] */
    double *end_s;              /* [stages] of the last backward, weights' included */
    const struct costmodel_watch *watch;
};

/* Where virtual stages are, counted along a micro-batch's way forward: chunk after chunk round the
 * stages, every second chunk in reverse where the schedule is a V. */
static void find_places (struct player *x, bool v)
{
    int stages = x->p->stages;

    for (int k = 0; k < x->virtuals; k++) {
        int chunk = k / stages, along = k % stages;

        x->stage_of[k] = v && chunk % 2 ? stages - 1 - along : along;
        x->number[chunk * stages + x->stage_of[k]] = k;
    }
}

static int virtual_of (const struct player *x, int stage, int chunk)
{
    return x->number[chunk * x->p->stages + stage];
}

static double *done_at (const struct player *x, double *of, int k, int micro)
{
    return &of[(size_t) micro * (size_t) x->virtuals + (size_t) k];
}

/* Nothing is done with a micro-batch yet. */
static void begin_micro (struct player *x, int micro)
{
    for (int k = 0; k < x->virtuals; k++)
        *done_at (x, x->fwd_end, k, micro) = *done_at (x, x->back_end, k, micro) = NAN;
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
        int here = x->stage_of[k], before = x->stage_of[k > 0 ? k - 1 : k],
            after = x->stage_of[k < x->virtuals - 1 ? k + 1 : k];

        x->way_s[k] = x->p->blocking ? 0.0 : hop_s (x->p, before, here);
        x->way_back_s[k] = x->p->blocking ? 0.0 : hop_s (x->p, after, here);
    }
}

/* Blocking: the stage also waits for what it sends. */
static double sending_s (const struct player *x, enum workload_operation what, int k)
{
    int next = what == OPERATION_FORWARD ? k + 1 : k - 1;

    if (!x->p->blocking || next < 0 || next >= x->virtuals)
        return 0.0;
    return hop_s (x->p, x->stage_of[k], x->stage_of[next]);
}

/* The stage of virtual stage k where that is another one, or -1. */
static int other_stage (const struct player *x, int k, int here)
{
    if (k < 0 || k >= x->virtuals)
        return -1;
    return x->stage_of[k] == here ? -1 : x->stage_of[k];
}

static void show (const struct player *x, struct costmodel_event e, double leaves)
{
    int next = e.what == OPERATION_FORWARD ? 1 : -1;

    e.from = e.to = -1;
    if (e.what != OPERATION_WEIGHTS) {
        e.from = other_stage (x, e.number - next, e.stage);
        e.to = other_stage (x, e.number + next, e.stage);
    }
    e.arrive_s = e.to < 0 ? e.end_s : leaves + hop_s (x->p, e.stage, e.to);
    x->watch->see (x->watch->context, &e);
}

/* One operation whose result leaves at `leaves`.  @return how long the stage waits for it to go */
static double perform (struct player *x, struct workload_op o, int stage, double start,
                       double end, double leaves)
{
    int k = virtual_of (x, stage, o.chunk);
    double sending = o.what == OPERATION_WEIGHTS ? 0.0 : sending_s (x, o.what, k);

    if (x->watch)
        show (x,
              (struct costmodel_event){stage, o.chunk, o.micro, o.what, start, end,
                                       .number = k},
              leaves);
    if (o.what == OPERATION_FORWARD)
        *done_at (x, x->fwd_end, k, o.micro) = leaves + sending;
    else if (o.what == OPERATION_BACKWARD)
        *done_at (x, x->back_end, k, o.micro) = leaves + sending;
    return sending;
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

/* A forward with a backward and its weights. */
#define JOINED_MAX 2

/* An operation with those that it is joined with, from `start` on. */
static void carry_out (struct player *x, enum workload_schedule s, int stage,
                       const struct workload_op *op, double start)
{
    double length[JOINED_MAX + 1], leaves = start, waits = 0.0;

    for (int i = 0; i <= op->joined; i++) {
        length[i] = length_of (x->p, s, op[i].what, op[i].chunk * x->p->stages + stage);
        leaves += length[i];
    }
    for (int i = 0; i <= op->joined; i++) {
        waits += perform (x, op[i], stage, start, start + length[i], leaves);
        start += length[i];
    }
    x->clock[stage] = leaves + waits;
    if (op[op->joined].what != OPERATION_FORWARD)
        x->end_s[stage] = leaves + waits;
}

/* ---- fixed orders ---- */

/* When all that an operation and those joined with it wait for is there; NAN: not yet known. */
static double ready_at (const struct player *x, int stage, const struct workload_op *op)
{
    double ready = x->clock[stage];

    for (int i = 0; i <= op->joined && !isnan (ready); i++)
        if (op[i].what != OPERATION_WEIGHTS) {
            double there =
                input_at (x, op[i].what, virtual_of (x, stage, op[i].chunk), op[i].micro);

            ready = isnan (there) ? there : fmax (ready, there);
        }
    return ready;
}

static bool play_orders (struct player *x, enum workload_schedule s)
{
    const struct costmodel_pipeline *p = x->p;
    struct workload_pipeline_size size = {p->stages, p->chunks, p->microbatches};
    int n = workload_schedule_operations (s, size), left = n * p->stages;
    struct workload_op *op = calloc ((size_t) left, sizeof *op);
    int *at = calloc ((size_t) p->stages, sizeof *at);
    bool ok = op && at;

    for (int j = 0; j < x->micros; j++)
        begin_micro (x, j);
    for (int i = 0; i < p->stages && ok; i++)
        workload_schedule_order (s, size, i, op + (size_t) i * (size_t) n);
    while (left > 0 && ok) {
        int before = left;

        for (int i = 0; i < p->stages; i++) {
            const struct workload_op *o = op + (size_t) i * (size_t) n, *end = o + n;
            double ready;

            o += at[i];
            while (o < end && !isnan (ready = ready_at (x, i, o))) {
                int done = 1 + o->joined;

                carry_out (x, s, i, o, ready);
                o += done;
                left -= done;
                at[i] += done;
            }
        }
        ok = left < before;
    }
    FREE_ALL (op, at);
    return ok;
}

/* ---- zero-bubble schedules ---- */

/* What a stage has begun and ended, per chunk. */
struct progress {
    int fwd[2], back[2], weight[2];
};

/* How the stages stood to each other after a forward of the first one's first chunk. */
struct standing {
    double *value; /* counts less the first stage's micro-batches, times less its clock */
    int n;
    int micros; /* that it had begun */
    double clock_s;
};

struct choice {
    enum workload_operation what;
    int chunk;
    double start;
};

struct greedy {
    struct player *x;
    struct progress *did; /* [stages] */
    struct choice *next;  /* [stages] */
    double *start;        /* [stages] of next; INFINITY where nothing can be done yet */
    int limit;            /* chunks whose activations a stage may hold */
    bool skip;            /* periods are still looked for */
    struct standing now, was; /* was.n is 0 where nothing is kept */
    double skipped_s;
};

/* Chunks in memory: a micro-batch's activations stay until its weights' gradients. */
static int held (const struct progress *d)
{
    return d->fwd[0] + d->fwd[1] - d->weight[0] - d->weight[1];
}

/* The stage's best next operation: what can start now, backward before forward and later
 * chunks before earlier ones; else weights; else the first to arrive.  start is NAN when
 * nothing can be done yet. */
static struct choice choose (const struct greedy *g, int stage)
{
    const struct player *x = g->x;
    const struct progress *d = &g->did[stage];
    int chunks = x->p->chunks, m = x->micros;
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

static void take_choice (struct greedy *g, enum workload_schedule s, int stage,
                         const struct choice *c)
{
    struct progress *d = &g->did[stage];
    int *done = c->what == OPERATION_FORWARD    ? d->fwd
                : c->what == OPERATION_BACKWARD ? d->back
                                                : d->weight;
    struct workload_op op = {
        .what = c->what, .chunk = c->chunk, .micro = done[c->chunk]++};

    carry_out (g->x, s, stage, &op, c->start);
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

static void decide (struct greedy *g, int stage)
{
    g->next[stage] = choose (g, stage);
    g->start[stage] = isnan (g->next[stage].start) ? INFINITY : g->next[stage].start;
}

/* The stage whose choice starts first; -1: none can start. */
static int first_to_start (const double *start, int stages)
{
    double least = INFINITY;
    int first = -1;

    for (int i = 0; i < stages; i++) {
        bool earlier = start[i] < least;

        first = earlier ? i : first;
        least = earlier ? start[i] : least;
    }
    return first;
}

/* Note ends from micro-batch `from` to before `to` of virtual stage k. */
static void note_ends (const struct player *x, struct standing *s, double *of, int k,
                       int from, int to)
{
    for (int j = from; j < to; j++)
        s->value[s->n++] = *done_at (x, of, k, j) - s->clock_s;
}

/* All that the choices to come depend on: clocks, counts, and ends that others still wait for. */
static void note_standing (struct greedy *g)
{
    const struct player *x = g->x;
    struct standing *s = &g->now;

    *s = (struct standing){s->value, 0, g->did[0].fwd[0], x->clock[0]};
    for (int i = 0; i < x->p->stages; i++) {
        const struct progress *d = &g->did[i];

        s->value[s->n++] = x->clock[i] - s->clock_s;
        for (int c = 0; c < x->p->chunks; c++) {
            s->value[s->n++] = d->fwd[c] - s->micros;
            s->value[s->n++] = d->back[c] - s->micros;
            s->value[s->n++] = d->weight[c] - s->micros;
        }
    }
    for (int k = 0; k < x->virtuals; k++) {
        const struct progress *here = &g->did[x->stage_of[k]];
        int chunk = k / x->p->stages, last = k == x->virtuals - 1;

        note_ends (x, s, x->fwd_end, k,
                   last ? here->back[chunk]
                        : g->did[x->stage_of[k + 1]].fwd[(k + 1) / x->p->stages],
                   here->fwd[chunk]);
        if (k > 0)
            note_ends (x, s, x->back_end, k,
                       g->did[x->stage_of[k - 1]].back[(k - 1) / x->p->stages],
                       here->back[chunk]);
    }
}

/* Skip what repeats.  Later micro-batches only wait for their turn, so that fewer of them are
 * as many periods less.
 * @return operations that are skipped */
static int skip_periods (struct greedy *g)
{
    struct player *x = g->x;
    struct standing was = g->was;
    int period, times;

    note_standing (g);
    if (g->now.n != was.n ||
        memcmp (g->now.value, was.value, (size_t) was.n * sizeof *was.value) != 0) {
        /* Kept until the longest period that is likely, and a part of all so far, are over. */
        if (was.n == 0 ||
            g->now.micros - was.micros > 2 * x->p->stages + was.micros / 4) {
            g->was = g->now;
            g->now.value = was.value;
        }
        return 0;
    }
    period = g->now.micros - was.micros;
    times = (x->micros - g->now.micros) / period;
    g->skip = false;
    g->skipped_s = times * (g->now.clock_s - was.clock_s);
    x->micros -= times * period;
    return 3 * x->virtuals * times * period;
}

/* In the order of time, so that a stage chooses among all that has arrived.  What an operation
 * changes is seen by its own stage and by the one that waits for it: the others' choices stand.
 * @return false where nothing can start any more */
static bool play_by_time (struct greedy *g, enum workload_schedule s)
{
    struct player *x = g->x;
    int left = 3 * x->virtuals * x->micros;

    begin_micro (x, 0);
    for (int i = 0; i < x->p->stages; i++)
        decide (g, i);
    while (left > 0) {
        int stage = first_to_start (g->start, x->p->stages), other;
        const struct choice *next;
        bool begins;

        if (stage < 0)
            return false;
        next = &g->next[stage];
        begins = stage == 0 && next->what == OPERATION_FORWARD && next->chunk == 0;
        other = waiting_stage (x, stage, next);
        take_choice (g, s, stage, next);
        left--;
        if (begins && g->did[0].fwd[0] < x->micros)
            begin_micro (x, g->did[0].fwd[0]);
        if (begins && g->skip)
            left -= skip_periods (g);
        decide (g, stage);
        if (other >= 0)
            decide (g, other);
    }
    return true;
}

static bool play_greedy (struct player *x, enum workload_schedule s, bool skip)
{
    size_t stages = (size_t) x->p->stages;
    int limit = workload_schedule_rules (s)->held * x->p->stages;
    /* Ends that are waited for are of chunks that some stage holds. */
    size_t values = stages * (size_t) (1 + 3 * x->p->chunks + 2 * limit);
    double *value = malloc ((2 * values + stages) * sizeof *value);
    struct greedy g = {.x = x,
                       .did = calloc (stages, sizeof *g.did),
                       .next = malloc (stages * sizeof *g.next),
                       .limit = limit,
                       .skip = skip};
    bool ok = g.did && g.next && value;

    if (ok) {
        g.now.value = value;
        g.was.value = value + values;
        g.start = value + 2 * values;
        ok = play_by_time (&g, s);
    }

    for (size_t i = 0; i < stages && ok; i++)
        x->end_s[i] += g.skipped_s;
    FREE_ALL (g.did, g.next, value);
    return ok;
}

/* The least power of two that so many seconds are at most 2^53 times of. */
static double unit_of (double most_s)
{
    int e;

    frexp (most_s, &e);
    return ldexp (1.0, e - 53);
}

/* A pipeline in whole multiples of a unit, none less than it was: of one in which even all its
 * operations one after another are so exact.
 * @param[out] work  [3 * cells + 2 * stages] */
static struct costmodel_pipeline in_units (const struct costmodel_pipeline *p,
                                           double *work)
{
    struct costmodel_pipeline q = *p;
    int cells = p->stages * p->chunks;
    double *fwd = work, *back = work + cells, *weight = work + 2 * cells,
           *there = work + 3 * cells, *again = there + p->stages, sum = 0.0, unit;

    for (int i = 0; i < cells; i++)
        sum += p->fwd_s[i] + p->back_s[i];
    for (int i = 0; i < p->stages; i++)
        sum += p->chunks * (p->send_s[i] + p->return_s[i]);
    unit = unit_of (2.0 * p->microbatches * sum);
    if (!(unit > 0.0) || !isfinite (sum))
        return q;
    for (int i = 0; i < cells; i++) {
        fwd[i] = ceil (p->fwd_s[i] / unit) * unit;
        weight[i] = ceil (p->weight_s[i] / unit) * unit;
        back[i] = ceil ((p->back_s[i] - p->weight_s[i]) / unit) * unit + weight[i];
    }
    for (int i = 0; i < p->stages; i++) {
        there[i] = ceil (p->send_s[i] / unit) * unit;
        again[i] = ceil (p->return_s[i] / unit) * unit;
    }
    q.fwd_s = fwd;
    q.back_s = back;
    q.weight_s = weight;
    q.send_s = there;
    q.return_s = again;
    return q;
}

bool costmodel_play (enum workload_schedule s, const struct costmodel_pipeline *p,
                     bool skip, double *end_s, const struct costmodel_watch *watch)
{
    size_t virtuals = (size_t) p->stages * (size_t) p->chunks;
    size_t stages = (size_t) p->stages, cells = virtuals * (size_t) p->microbatches;
    bool greedy = workload_schedule_is_greedy (s), ok = false;
    double *memory = malloc ((2 * cells + 5 * virtuals + 3 * stages) * sizeof *memory);
    int *places = malloc (2 * virtuals * sizeof *places);

    if (memory && places) {
        struct costmodel_pipeline own = *p;
        struct player x = {.p = &own,
                           .virtuals = (int) virtuals,
                           .stage_of = places,
                           .number = places + virtuals,
                           .micros = p->microbatches,
                           .fwd_end = memory,
                           .back_end = memory + cells,
                           .way_s = memory + 2 * cells,
                           .way_back_s = memory + 2 * cells + virtuals,
                           .clock = memory + 2 * (cells + virtuals),
                           .end_s = end_s,
                           .watch = watch};

        if (greedy)
            own = in_units (p, x.clock + stages);
        find_places (&x, workload_schedule_is_v (s));
        find_ways (&x);
        for (size_t i = 0; i < stages; i++)
            x.clock[i] = end_s[i] = 0.0;
        ok = greedy ? play_greedy (&x, s, skip && !watch) : play_orders (&x, s);
    }
    FREE_ALL (memory, places);
    return ok;
}
