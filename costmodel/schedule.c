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

/* Two pipelines are played side by side: each waits for its own last sum most of the time,
 * so two take little longer than one. */
#define LANES 2

/* Per stage, a pair of numbers: one of either pipeline. */
struct rounds {
    int n, m;
    double (*fwd)[LANES], (*back)[LANES];
    double (*in)[LANES];    /* fwd and what its input takes from the stage before */
    double (*under)[LANES]; /* back and what its input takes from the stage after */
    double (*clock)[LANES];
    double (*back_end)[LANES]; /* [n + 1] of each stage's last backward */
};

/* When a forward ends on stage k whose micro-batch's ended at `before` on the stage before. */
static inline double forward (const struct rounds *r, int k, int y, double before)
{
    return larger (r->clock[k][y] + r->fwd[k][y], before + r->in[k][y]);
}

/* When a backward ends on stage k that can begin at `now`.  Stages go upwards, so that
 * back_end[k+1] still is the round before's. */
static inline double backward (const struct rounds *r, int k, int y, double now)
{
    return larger (now + r->back[k][y], r->back_end[k + 1][y] + r->under[k][y]);
}

static void play_round (const struct rounds *r, int round)
{
    int last = r->n - 1, from = last - round, to = last - round + r->m - 1;
    double at[LANES], end[LANES]; /* of forwards, stage after stage, and of backwards */

    from = from > 0 ? from : 0;
    if (round >= r->m) {
        for (int k = from; k <= to; k++)
            for (int y = 0; y < LANES; y++)
                r->clock[k][y] = r->back_end[k][y] = backward (r, k, y, r->clock[k][y]);
        return;
    }
    for (int y = 0; y < LANES; y++)
        at[y] = -INFINITY;
    for (int k = 0; k < from; k++)
        for (int y = 0; y < LANES; y++)
            r->clock[k][y] = at[y] = forward (r, k, y, at[y]);
    for (int k = from; k <= last; k++) {
        for (int y = 0; y < LANES; y++)
            at[y] = forward (r, k, y, at[y]);
        for (int y = 0; y < LANES; y++)
            end[y] = backward (r, k, y, at[y]);
        for (int y = 0; y < LANES; y++)
            r->clock[k][y] = r->back_end[k][y] = end[y];
    }
}

/* The same for one of the two, in a round that does a forward and a backward on every
 * stage. */
static void play_lane (const struct rounds *r, int y)
{
    double end = -INFINITY;

    for (int k = 0; k < r->n; k++) {
        end = forward (r, k, y, end);
        r->clock[k][y] = r->back_end[k][y] = backward (r, k, y, end);
    }
}

/* Has every entry of now grown by one amount since then?  If so, that amount. */
static bool shifted (double (*now)[LANES], double (*then)[LANES], int n, int y,
                     double *shift)
{
    double d = now[0][y] - then[0][y], tol = 1e-13 * fabs (now[0][y]) + 1e-300;

    for (int i = 1; i < n; i++)
        if (!(fabs (now[i][y] - then[i][y] - d) <= tol)) /* also when infinite */
            return false;
    *shift = d;
    return true;
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

/* Whole periods of a pipeline, once its state repeats.  Each of the two skips from the round
 * where it was seen to, so that neither depends on which other is played beside it. */
struct skipping {
    double (*history)[LANES]; /* [n * n] clocks after round t in row t mod n */
    double (*ahead)[LANES];   /* [n] clocks after the periods that are skipped */
    int likely[LANES];        /* the period to look for */
    bool known[LANES];
    int rest[LANES]; /* rounds with a forward on every stage that are left then */
};

/* Skip lane y ahead by its periods of q rounds. */
static void skip_ahead (const struct rounds *r, struct skipping *s, int y, int round,
                        int q)
{
    int left = r->m - 1 - round;
    double shift = left / q * (r->clock[0][y] - s->history[(round - q) % r->n * r->n][y]);

    for (int k = 0; k < r->n; k++)
        s->ahead[k][y] = r->clock[k][y] + shift;
    s->rest[y] = left % q;
    s->known[y] = true;
}

/* Look for the periods after a round; every so often for any.  @return all are known */
static bool periods_known (const struct rounds *r, struct skipping *s, int round)
{
    bool all = true;
    double shift;

    for (int y = 0; y < LANES; y++) {
        bool any = round % r->n == 0;

        for (int q = any ? 1 : s->likely[y];
             !s->known[y] && q <= (any ? r->n : s->likely[y]) && round - q >= r->n - 1;
             q++)
            if (shifted (r->clock, s->history + (round - q) % r->n * r->n, r->n, y,
                         &shift))
                skip_ahead (r, s, y, round, q);
        all = all && s->known[y];
    }
    return all;
}

/* Go on from where periods were skipped to; a pipeline without any, from this round.
 * @return the round that is then done */
static int go_ahead (const struct rounds *r, struct skipping *s, int round)
{
    int left = r->m - 1 - round, least = left;

    for (int y = 0; y < LANES; y++) {
        s->rest[y] = s->known[y] ? s->rest[y] : left;
        least = s->rest[y] < least ? s->rest[y] : least;
    }
    for (int y = 0; y < LANES; y++) {
        for (int k = 0; k < r->n && s->known[y]; k++)
            r->clock[k][y] = r->back_end[k][y] = s->ahead[k][y];
        for (int i = least; i < s->rest[y]; i++)
            play_lane (r, y);
    }
    return r->m - 1 - least;
}

/* @param      work  [LANES * (n * n + 7 * n + 1)] */
static void play_1f1b (const struct costmodel_pipeline *p, const int *of, bool skip,
                       double *const *end_s, double *work)
{
    int n = p->stages, rounds = p->microbatches + n - 1;
    double (*row)[LANES] = (double (*)[LANES]) work;
    struct rounds r = {.n = n,
                       .m = p->microbatches,
                       .fwd = row,
                       .back = row + n,
                       .in = row + 2 * n,
                       .under = row + 3 * n,
                       .clock = row + 4 * n,
                       .back_end = row + 5 * n};
    struct skipping s = {.history = row + 7 * n + 1, .ahead = row + 6 * n + 1};
    bool skipped = !skip || p->microbatches <= n + 1;

    for (int y = 0; y < LANES; y++) {
        const struct costmodel_pipeline *q = &p[of[y]];

        s.likely[y] = skipped ? 0 : slowest_cycle (q);
        for (int k = 0; k < n; k++) {
            r.fwd[k][y] = q->fwd_s[k];
            r.back[k][y] = q->back_s[k];
            r.in[k][y] = k > 0 ? q->fwd_s[k] + q->send_s[k - 1] : 0.0;
            r.under[k][y] = k < n - 1 ? q->back_s[k] + q->return_s[k] : 0.0;
            r.clock[k][y] = r.back_end[k][y] = 0.0;
        }
        r.back_end[n][y] = 0.0; /* nothing comes after the last stage */
    }
    for (int t = 0; t < rounds; t++) {
        play_round (&r, t);
        if (skipped || t < n - 1)
            continue;
        /* Rounds n-1 .. microbatches-1 all do one F and one B on every stage. */
        if (t >= n && (periods_known (&r, &s, t) || t >= p->microbatches - 2)) {
            t = go_ahead (&r, &s, t);
            skipped = true;
        } else {
            double (*then)[LANES] = s.history + t % n * n;

            for (int k = 0; k < n; k++)
                for (int y = 0; y < LANES; y++)
                    then[k][y] = r.clock[k][y];
        }
    }
    for (int y = 0; y < LANES; y++)
        for (int k = 0; k < n; k++)
            end_s[y][k] = r.back_end[k][y];
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

/* One or two pipelines. */
static void schedule (enum workload_schedule s, const struct costmodel_pipeline *p, int n,
                      bool skip, double *const *end_s, double *work)
{
    struct costmodel_pipeline q[LANES];
    const int of[LANES] = {0, n - 1};

    for (int i = 0; i < n; i++)
        q[i] = p[i];
    if (s == SCHEDULE_INTERLEAVED && p->chunks > 1 && p->stages > 1 &&
        p->microbatches % p->stages == 0) {
        for (int i = 0; i < n; i++)
            interleaved_play (&q[i], skip, end_s[i], work);
        return;
    }
    if (p->chunks > 1 || workload_schedule_splits_backward (s)) {
        bool patterned = workload_schedule_rules (s)->pace > 0 && p->chunks == 2;

        for (int i = 0; i < n; i++)
            if (!(patterned && pattern_play (s, &q[i], skip, end_s[i], work)) &&
                !costmodel_play (s, &q[i], skip, end_s[i], NULL))
                for (int k = 0; k < p->stages; k++)
                    end_s[i][k] = INFINITY;
        return;
    }
    for (int i = 0; i < n && p->blocking; i++, work += 3 * p->stages)
        q[i] = folded (&p[i], work);
    if (s == SCHEDULE_1F1B) {
        double *const both[LANES] = {end_s[0], end_s[n - 1]};

        play_1f1b (q, of, skip, both, work);
    }
    for (int i = 0; i < n && s == SCHEDULE_GPIPE; i++)
        play_gpipe (&q[i], end_s[i], work);
}

void costmodel_schedule (enum workload_schedule s, const struct costmodel_pipeline *p,
                         bool skip, double *end_s, double *work)
{
    schedule (s, p, 1, skip, &end_s, work);
}

void costmodel_schedule_two (enum workload_schedule s, const struct costmodel_pipeline *p,
                             double *const *end_s, double *work)
{
    schedule (s, p, 2, true, end_s, work);
}
