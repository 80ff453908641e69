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
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <string.h>

/* Numbers of each stage. */
struct rounds {
    int n, m;
    double *fwd, *back;
    double *in;    /* fwd and what its input takes from the stage before */
    double *under; /* back and what its input takes from the stage after */
    double *clock;
    double *back_end; /* [n + 1] of each stage's last backward */
};

/* When a forward ends on stage k whose micro-batch's ended at `before` on the stage before. */
static inline double forward (const struct rounds *r, int k, double before)
{
    return larger (r->clock[k] + r->fwd[k], before + r->in[k]);
}

/* When a backward ends on stage k that can begin at `now`.  Stages go upwards, so that
 * back_end[k+1] still is the round before's. */
static inline double backward (const struct rounds *r, int k, double now)
{
    return larger (now + r->back[k], r->back_end[k + 1] + r->under[k]);
}

static void play_round (const struct rounds *r, int round)
{
    int last = r->n - 1, from = last - round, to = last - round + r->m - 1;
    double at = -INFINITY; /* when forwards end, stage after stage */

    from = from > 0 ? from : 0;
    if (round >= r->m) {
        for (int k = from; k <= to; k++)
            r->clock[k] = r->back_end[k] = backward (r, k, r->clock[k]);
        return;
    }
    for (int k = 0; k < from; k++)
        r->clock[k] = at = forward (r, k, at);
    for (int k = from; k <= last; k++) {
        at = forward (r, k, at);
        r->clock[k] = r->back_end[k] = backward (r, k, at);
    }
}

/* Stages of the slowest cycle: down some stages, up again, in that many rounds
 * (docs/time.md, "The step").  The state repeats after as many, most often. */
static int slowest_cycle (const struct costmodel_pipeline *p)
{
    double slowest = -1.0;
    int stages = 1;

    for (int i = 0; i < p->stages; i++) {
        double sum = 0.0;

        for (int l = i; l < p->stages; l++) {
            sum += p->fwd_s[l] + p->back_s[l];
            if (sum > slowest * (l - i + 1)) {
                slowest = sum / (l - i + 1);
                stages = l - i + 1;
            }
            sum += p->send_s[l] + p->return_s[l];
        }
    }
    return stages;
}

/* Skip whole periods after a round, if the state repeats: after as many rounds as is likely, and
 * every so often after any number.
 * @param[in] history  [n * n] clocks after round t in row t mod n
 * @return rounds that are skipped; -1: it does not repeat */
static int skip_rounds (const struct rounds *r, const double *history, int likely,
                        int round)
{
    bool any = round % r->n == 0;
    int left = r->m - 1 - round, most = any ? r->n : likely;
    double shift;

    for (int q = any ? 1 : likely; q <= most && round - q >= r->n - 1; q++)
        if (shifted (r->clock, history + (round - q) % r->n * r->n, r->n, &shift)) {
            for (int k = 0; k < r->n; k++)
                r->clock[k] = r->back_end[k] = r->clock[k] + left / q * shift;
            return left / q * q;
        }
    return -1;
}

/* @param      work  [n * n + 6 * n + 1] */
static void play_1f1b (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work)
{
    int n = p->stages, m = p->microbatches, skipped = -1;
    int likely = skip && m > n + 1 ? slowest_cycle (p) : 0; /* else it is over before */
    double *history = work + 6 * n + 1;
    struct rounds r = {.n = n,
                       .m = m,
                       .fwd = work,
                       .back = work + n,
                       .in = work + 2 * n,
                       .under = work + 3 * n,
                       .clock = work + 4 * n,
                       .back_end = work + 5 * n};

    for (int k = 0; k < n; k++) {
        r.fwd[k] = p->fwd_s[k];
        r.back[k] = p->back_s[k];
        r.in[k] = k > 0 ? p->fwd_s[k] + p->send_s[k - 1] : 0.0;
        r.under[k] = k < n - 1 ? p->back_s[k] + p->return_s[k] : 0.0;
        r.clock[k] = r.back_end[k] = 0.0;
    }
    r.back_end[n] = 0.0; /* nothing comes after the last stage */
    for (int t = 0; t < m + n - 1; t++) {
        play_round (&r, t);
        /* Rounds n-1 .. m-1 all do one F and one B on every stage. */
        if (!skip || t < n - 1 || t >= m - 1)
            continue;
        if (t >= n)
            skipped = skip_rounds (&r, history, likely, t);
        memcpy (history + t % n * n, r.clock, (size_t) n * sizeof *history);
        if (skipped >= 0) {
            t += skipped;
            skip = false;
        }
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
    bool patterned = workload_schedule_rules (s)->pace > 0 && p->chunks == 2;

    if (s == SCHEDULE_INTERLEAVED && p->chunks > 1 && p->stages > 1 &&
        p->microbatches % p->stages == 0) {
        interleaved_play (p, skip, end_s, work);
        return;
    }
    if (p->chunks > 1 || workload_schedule_splits_backward (s)) {
        if (!(patterned && pattern_play (s, p, skip, end_s, work)) &&
            !costmodel_play (s, p, skip, end_s, NULL))
            for (int k = 0; k < p->stages; k++)
                end_s[k] = INFINITY;
        return;
    }
    if (p->blocking) {
        q = folded (p, work);
        work += 3 * p->stages;
    }
    if (s == SCHEDULE_1F1B)
        play_1f1b (&q, skip, end_s, work);
    else if (s == SCHEDULE_GPIPE)
        play_gpipe (&q, end_s, work);
}
