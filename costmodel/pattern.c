/* Schedules whose micro-batches all repeat one pattern of slots (v-half and v-min), as an event
 * recurrence.
 *
 * What a stage waits for is in an earlier slot of the stage before, so taking the slots in their
 * order, stage by stage, each operation finds its input done: one addition each, where playing
 * (play.c) looks for what can be done.  Nothing is used later than six slots after it was made,
 * so that the ends of each stage's last passes are all that is kept.
 *
 * Between the first micro-batches and the last the recurrence is max-plus linear, and its state
 * becomes periodic; whole periods are then skipped, as in schedule.c. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS WORKLOAD_PATTERN_SLOTS
#define PASSES 4 /* of them, that others wait for */

/* One operation of a round, in which every stage goes through its slots once. */
struct cell {
    int stage, lag;  /* rounds after the first in which it does its first micro-batch */
    int from, to;    /* of ends: of its input, and its own */
    bool back;       /* no forward */
    double wait_s;   /* from its input's end until that is here */
    double length_s; /* of the operation */
    double send_s;   /* where sends are blocking */
};

struct pattern {
    int n, m;
    struct cell *cell; /* [SLOTS * n] by their slots in a round */
    /* The state, `width` numbers */
    double *ends;     /* [PASSES * n] of the last pass of each kind and stage */
    double *clock;    /* [n] */
    double *back_end; /* [n] of the last operation that is no forward */
    int width;
};

/* Pass k of a stage: which way it goes, its times and where its input comes from. */
static struct cell cell_of (const struct costmodel_pipeline *p, int k, int stage)
{
    bool down = k % 2 == 0;
    int n = p->stages, chunk = k == 1 || k == 2 || k == 4;
    int before = down ? stage - 1 : stage + 1, after = down ? stage + 1 : stage - 1;
    int at = chunk * n + stage;
    struct cell c = {.stage = stage, .from = -1, .to = -1, .back = k > 1};

    if (k >= PASSES) {
        c.length_s = p->weight_s[at];
        return c;
    }
    c.to = k * n + stage;
    c.length_s = c.back ? p->back_s[at] - p->weight_s[at] : p->fwd_s[at];
    if (before >= 0 && before < n) {
        c.from = k * n + before;
        c.wait_s = p->blocking ? 0.0 : down ? p->send_s[before] : p->return_s[stage];
    } else if (k > 0) {
        c.from = (k - 1) * n + stage;
    }
    if (p->blocking && after >= 0 && after < n)
        c.send_s = down ? p->send_s[stage] : p->return_s[after];
    return c;
}

/* @param[in] slot  [SLOTS * n]
 * @return false where slots are shared, so that their order is not the pattern's alone */
static bool fill (const struct costmodel_pipeline *p, const int *slot, struct pattern *x)
{
    int n = p->stages;

    for (int i = 0; i < SLOTS * n; i++)
        x->cell[i].stage = -1;
    for (int i = 0; i < SLOTS * n; i++) {
        struct cell *c = &x->cell[slot[i] % SLOTS * n + i / SLOTS];

        if (c->stage >= 0)
            return false;
        *c = cell_of (p, i % SLOTS, i / SLOTS);
        c->lag = slot[i] / SLOTS;
    }
    return true;
}

static void play_round (struct pattern *x, int round)
{
    for (int i = 0; i < SLOTS * x->n; i++) {
        const struct cell *c = &x->cell[i];
        int micro = round - c->lag;
        double end = x->clock[c->stage];

        if (micro < 0 || micro >= x->m)
            continue;
        if (c->from >= 0)
            end = larger (end, x->ends[c->from] + c->wait_s);
        end = end + c->length_s + c->send_s;
        x->clock[c->stage] = end;
        if (c->to >= 0)
            x->ends[c->to] = end;
        if (c->back)
            x->back_end[c->stage] = end;
    }
}

/* Skip whole periods after a round, if the state repeats; longer periods than one round are
 * looked for every n rounds.  @return rounds that are skipped */
static int skip_periods (struct pattern *x, const double *history, int round, int steady)
{
    int most = round % x->n == 0 ? x->n : 1, left = x->m - 1 - round;
    double shift;

    for (int q = 1; q <= most && round - q >= steady; q++)
        if (shifted (x->ends, history + (round - q) % x->n * x->width, x->width,
                     &shift)) {
            for (int i = 0; i < x->width; i++)
                x->ends[i] += left / q * shift;
            return left / q * q;
        }
    return 0;
}

static void play (struct pattern *x, bool skip, double *history)
{
    int steady = 0, skipped = 0;

    for (int i = 0; i < SLOTS * x->n; i++)
        steady = x->cell[i].lag > steady ? x->cell[i].lag : steady;
    for (int t = 0; t < x->m + steady - skipped; t++) {
        play_round (x, t + skipped);
        if (!skip || skipped > 0 || t < steady || t >= x->m - 1)
            continue;
        skipped = skip_periods (x, history, t, steady);
        memcpy (history + t % x->n * x->width, x->ends,
                (size_t) x->width * sizeof *history);
    }
}

bool pattern_play (enum workload_schedule s, const struct costmodel_pipeline *p,
                   bool skip, double *end_s, double *work)
{
    int n = p->stages, width = (PASSES + 2) * n;
    struct pattern x = {.n = n,
                        .m = p->microbatches,
                        .cell = malloc ((size_t) (SLOTS * n) * sizeof *x.cell),
                        .ends = work,
                        .clock = work + PASSES * n,
                        .back_end = work + (PASSES + 1) * n,
                        .width = width};
    int *slot = malloc ((size_t) (SLOTS * n) * sizeof *slot);
    bool known = false;

    if (x.cell && slot) {
        workload_schedule_slots (s, n, slot);
        known = fill (p, slot, &x);
    }
    if (known) {
        for (int i = 0; i < width; i++)
            work[i] = 0.0;
        play (&x, skip, work + width);
        memcpy (end_s, x.back_end, (size_t) n * sizeof *end_s);
    }
    free (x.cell);
    free (slot);
    return known;
}
