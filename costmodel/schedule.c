/* Pipeline schedules as event recurrences.
 *
 * 1F1B, round by round: in round t stage k does F(t), then B(t - (P-1-k)), which is the
 * order of Megatron's non-interleaved schedule (Narayanan et al., arXiv 2104.04473,
 * section 2.2).  A forward waits for the stage before, a backward for the stage after, a
 * stage for its own last operation; a sender does not wait.
 *
 * In steady state the recurrence is max-plus linear, so its state becomes periodic: after
 * q <= P rounds every entry has grown by the same amount.  Once that is seen, whole
 * periods are skipped. */
#include "costmodel/costmodel.h"

#include <math.h>
#include <string.h>

/* The state after a round: each stage's clock and the end of its last backward. */
struct rounds {
    const struct costmodel_pipeline *p;
    double *clock, *back_end;
};

static void play_round (struct rounds *r, int round)
{
    const struct costmodel_pipeline *p = r->p;
    double arrived = 0.0, from_next = 0.0;
    int last = p->stages - 1;

    if (round < p->microbatches)
        for (int k = 0; k <= last; k++) {
            r->clock[k] = fmax (r->clock[k], arrived) + p->fwd_s[k];
            if (k < last)
                arrived = r->clock[k] + p->send_s[k];
        }
    /* Upwards, so that back_end[k+1] still is the round before's. */
    for (int k = 0; k <= last; k++) {
        int micro = round - (last - k);

        if (micro < 0 || micro >= p->microbatches)
            continue;
        from_next = k < last ? r->back_end[k + 1] + p->return_s[k] : 0.0;
        r->clock[k] = fmax (r->clock[k], from_next) + p->back_s[k];
        r->back_end[k] = r->clock[k];
    }
}

/* Has every entry of now grown by one amount since then?  If so, that amount. */
static bool shifted (const double *now, const double *then, int n, double *shift)
{
    double d = now[0] - then[0], tol = 1e-13 * fabs (now[0]) + 1e-300;

    for (int i = 1; i < n; i++)
        if (!(fabs (now[i] - then[i] - d) <= tol)) /* also when infinite */
            return false;
    *shift = d;
    return true;
}

static void play_1f1b (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work)
{
    int n = p->stages, width = 2 * n, rounds = p->microbatches + n - 1;
    double *state = work, *history = work + width;
    struct rounds r = {p, state, state + n};
    bool skipped = !skip;

    memset (work, 0, (size_t) width * sizeof *work);
    for (int t = 0; t < rounds; t++) {
        double shift;

        play_round (&r, t);
        /* Rounds n-1 .. microbatches-1 all do one F and one B on every stage. */
        if (!skipped && t >= n && t < p->microbatches - 1)
            for (int q = 1; q <= n && t - q >= n - 1 && !skipped; q++)
                if (shifted (state, history + (t - q) % n * width, width, &shift)) {
                    int periods = (p->microbatches - 1 - t) / q;

                    for (int i = 0; i < width; i++)
                        state[i] += periods * shift;
                    t += periods * q;
                    skipped = true;
                }
        if (!skipped && t >= n - 1)
            memcpy (history + t % n * width, state, (size_t) width * sizeof *state);
    }
    memcpy (end_s, r.back_end, (size_t) n * sizeof *end_s);
}

/* All forwards, then all backwards (Huang et al., arXiv 1811.06965).  Both halves are
 * permutation flow shops, whose first micro-batch runs through and whose slowest stage
 * sets the pace, so only m operations a stage are played. */
static void play_gpipe (const struct costmodel_pipeline *p, double *end_s, double *work)
{
    int n = p->stages;
    double *clock = work;

    memset (clock, 0, (size_t) n * sizeof *clock);
    for (int j = 0; j < p->microbatches; j++) {
        double arrived = 0.0;

        for (int k = 0; k < n; k++) {
            clock[k] = fmax (clock[k], arrived) + p->fwd_s[k];
            if (k < n - 1)
                arrived = clock[k] + p->send_s[k];
        }
    }
    for (int j = 0; j < p->microbatches; j++) {
        double arrived = 0.0;

        for (int k = n - 1; k >= 0; k--) {
            clock[k] = fmax (clock[k], arrived) + p->back_s[k];
            if (k > 0)
                arrived = clock[k] + p->return_s[k - 1];
        }
    }
    memcpy (end_s, clock, (size_t) n * sizeof *end_s);
}

/* Interleaved 1F1B (orders.h) in rounds: in round g stage k does the n-th forward of its
 * order, n = (p-1-k) + (v-1) p + g, then backward number g - (p-1-k).  All that either
 * waits for was done in the round before, or is the forward itself, so the latest ends are
 * the state; lengths repeat every p v rounds.  With p | m, the n-th forward is chunk
 * n mod (p v) / p. */
struct interleaved {
    const struct costmodel_pipeline *p;
    double *fwd_end, *back_end, *clock; /* [stages] */
};

static double chunk_fwd_s (const struct costmodel_pipeline *p, int chunk, int k)
{
    bool sends = p->blocking && (k < p->stages - 1 || chunk < p->chunks - 1);

    return p->fwd_s[chunk * p->stages + k] + (sends ? p->send_s[k] : 0.0);
}

static double chunk_back_s (const struct costmodel_pipeline *p, int chunk, int k)
{
    bool sends = p->blocking && (k > 0 || chunk > 0);

    return p->back_s[chunk * p->stages + k] +
           (sends ? p->return_s[k > 0 ? k - 1 : p->stages - 1] : 0.0);
}

static void interleaved_round (struct interleaved *x, int round)
{
    const struct costmodel_pipeline *p = x->p;
    int n = p->stages, v = p->chunks, all = p->microbatches * v, last = n - 1;
    double wrap = p->blocking ? 0.0 : p->send_s[last];
    double round_end = x->fwd_end[last] + wrap;

    /* Downwards, so that fwd_end[k-1] still is the round before's. */
    for (int k = last; k >= 0; k--) {
        int at = last - k + (v - 1) * n + round, chunk;
        double ready = round_end;

        if (at < 0 || at >= all)
            continue;
        chunk = at % (n * v) / n;
        if (k > 0)
            ready = x->fwd_end[k - 1] + (p->blocking ? 0.0 : p->send_s[k - 1]);
        else if (chunk == 0)
            ready = 0.0;
        x->fwd_end[k] = x->clock[k] =
            fmax (x->clock[k], ready) + chunk_fwd_s (p, chunk, k);
    }
    round_end = x->back_end[0] + (p->blocking ? 0.0 : p->return_s[last]);
    for (int k = 0; k <= last; k++) {
        int at = round - (last - k), chunk;
        double ready = round_end;

        if (at < 0 || at >= all)
            continue;
        chunk = v - 1 - at % (n * v) / n;
        if (k < last)
            ready = x->back_end[k + 1] + (p->blocking ? 0.0 : p->return_s[k]);
        else if (chunk == v - 1)
            ready = 0.0; /* its own forward, done before */
        x->back_end[k] = x->clock[k] =
            fmax (x->clock[k], ready) + chunk_back_s (p, chunk, k);
    }
}

static void play_interleaved (const struct costmodel_pipeline *p, bool skip,
                              double *end_s, double *work)
{
    int n = p->stages, width = 2 * n, period = n * p->chunks, seen = 0;
    int all = p->microbatches * p->chunks, steady = all - period;
    double *history = work + width;
    struct interleaved x = {p, work, work + n, history + n * width};

    memset (work, 0, (size_t) width * sizeof *work);
    memset (x.clock, 0, (size_t) n * sizeof *x.clock);
    for (int g = 1 - period; g < all + n - 1; g++) {
        double shift;

        interleaved_round (&x, g);
        /* Rounds n-1 .. steady all do one forward and one backward on every stage. */
        if (!skip || g < n - 1 || g > steady || (g - n + 1) % period != 0)
            continue;
        for (int q = 1; q <= seen && q <= n; q++)
            if (shifted (work, history + (seen - q) % n * width, width, &shift)) {
                int periods = (steady - g) / (q * period);

                for (int i = 0; i < width; i++)
                    work[i] += periods * shift;
                memcpy (x.clock, x.back_end, (size_t) n * sizeof *x.clock);
                g += periods * q * period;
                skip = false;
                break;
            }
        memcpy (history + seen++ % n * width, work, (size_t) width * sizeof *work);
    }
    memcpy (end_s, x.back_end, (size_t) n * sizeof *end_s);
}

int costmodel_schedule_work (int stages)
{
    return 2 * stages * (stages + 1) + 3 * stages;
}

/* With blocking sends a stage is busy until what it sends has arrived: the sends become
 * part of its operations. */
static struct costmodel_pipeline folded (const struct costmodel_pipeline *p, double *work)
{
    struct costmodel_pipeline q = *p;
    double *fwd = work, *back = work + p->stages, *zero = work + 2 * p->stages;

    for (int i = 0; i < p->stages; i++) {
        fwd[i] = p->fwd_s[i] + (i < p->stages - 1 ? p->send_s[i] : 0.0);
        back[i] = p->back_s[i] + (i > 0 ? p->return_s[i - 1] : 0.0);
        zero[i] = 0.0;
    }
    q.fwd_s = fwd;
    q.back_s = back;
    q.send_s = q.return_s = zero;
    q.blocking = false;
    return q;
}

void costmodel_schedule (enum workload_schedule s, const struct costmodel_pipeline *p,
                         bool skip, double *end_s, double *work)
{
    struct costmodel_pipeline q = *p;

    if (s == SCHEDULE_INTERLEAVED && p->chunks > 1 && p->stages > 1 &&
        p->microbatches % p->stages == 0) {
        play_interleaved (p, skip, end_s, work);
        return;
    }
    if (p->chunks > 1 || s >= SCHEDULE_ZB1P) {
        if (!costmodel_play (s, p, end_s, NULL))
            for (int i = 0; i < p->stages; i++)
                end_s[i] = INFINITY;
        return;
    }
    if (p->blocking) {
        q = folded (p, work);
        work += 3 * p->stages;
    }
    if (s == SCHEDULE_GPIPE)
        play_gpipe (&q, end_s, work);
    else
        play_1f1b (&q, skip, end_s, work);
}
