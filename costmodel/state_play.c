/* The pipelines of a placement whose price follows its changes.
 *
 * Only replicas whose times changed are played, and those that are alike once.  Where a search
 * asks for no price above some limit, what their schedules take at least comes first, and one after
 * the other is played until the limit is passed. */
#include "costmodel/state_private.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-9 /* of sums in another order */

/* Do two replicas take as long everywhere, as they do where links and GPUs are alike? */
static bool same_replicas (const struct costmodel_state *s, int a, int b)
{
    size_t pp = (size_t) s->t.pp, bytes = pp * sizeof (double);
    struct replicas x = replicas_from (&s->r, &s->t, a),
                    y = replicas_from (&s->r, &s->t, b);
    bool same = memcmp (x.send_s, y.send_s, bytes) == 0 &&
                memcmp (x.return_s, y.return_s, bytes) == 0;

    for (size_t i = 0; i < pp && same; i++)
        same = same_times (&x.slot[i], &y.slot[i]);
    return same;
}

double stage_tail_s (const struct costmodel_state *s, int stage)
{
    const struct stage_end *end = &s->stage_end[stage];

    return end->sync_s + end->optimizer_s +
           (stage == 0 || stage == s->t.pp - 1 ? s->tied_s : 0.0);
}

static void sum_up (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    struct costmodel_price price = {.unmeasured = s->unmeasured};
    double others = 0.0;
    int pp = t->pp;

    memset (s->latest_s, 0, (size_t) pp * sizeof *s->latest_s);
    memset (s->sum_s, 0, (size_t) pp * sizeof *s->sum_s);
    for (int d = 0; d < t->dp; d++) {
        const double *end = s->r.end_s + d * pp;

        for (int i = 0; i < pp; i++) {
            s->latest_s[i] = end[i] > s->latest_s[i] ? end[i] : s->latest_s[i];
            s->sum_s[i] += end[i];
        }
    }
    for (int i = 0; i < pp; i++) {
        double tail = stage_tail_s (s, i);

        price.step_s = fmax (price.step_s, s->latest_s[i] + tail);
        others += s->sum_s[i] / t->dp + tail;
    }
    if (!isfinite (price.step_s))
        price.step_s = INFINITY;
    price.smooth_s = price.step_s + SMOOTH_WEIGHT * others / pp;
    s->price = price;
}

/* ---- which pipelines are played ---- */

/* May the price be above what is asked for, so that more need not be known of it? */
static bool is_limited (const struct costmodel_state *s)
{
    return fmin (s->most.step_s, s->most.smooth_s) < INFINITY &&
           s->unmeasured >= s->most.unmeasured;
}

/* Is what is known of the price above it? */
static bool is_beyond (const struct costmodel_state *s)
{
    const struct costmodel_price *most = &s->most, *least = &s->price;

    return least->step_s > most->step_s * (1.0 + ROUNDING) ||
           least->smooth_s > most->smooth_s * (1.0 + ROUNDING);
}

/* What the price is at least, whatever the schedules of the dirty replicas do.
 * @return false where nothing is known of the schedule */
static bool find_least (struct costmodel_state *s)
{
    for (int d = 0; d < s->t.dp; d++)
        if (s->replica_dirty[d] &&
            !pipeline_least (&s->t, replicas_from (&s->r, &s->t, d)))
            return false;
    sum_up (s);
    return true;
}

/* When the step of replica d is over.  @param[out] sum_s  of its stages' ends */
static double over_s (const struct costmodel_state *s, int d, double *sum_s)
{
    const double *end = s->r.end_s + d * s->t.pp;
    double most = 0.0;

    *sum_s = 0.0;
    for (int i = 0; i < s->t.pp; i++) {
        most = larger (most, end[i] + stage_tail_s (s, i));
        *sum_s += end[i];
    }
    return most;
}

/* The dirty replica that is over last, by what is known; -1: none is dirty. */
static int last_dirty (const struct costmodel_state *s)
{
    double most = -INFINITY, sum_s;
    int last = -1;

    for (int d = 0; d < s->t.dp; d++) {
        double over = s->replica_dirty[d] ? over_s (s, d, &sum_s) : -INFINITY;

        if (over > most) {
            most = over;
            last = d;
        }
    }
    return last;
}

/* Play a replica, and add to what is known of the price. */
static void play (struct costmodel_state *s, int replica)
{
    double before_s, sum_s, step_s;

    over_s (s, replica, &before_s);
    s->replica_dirty[replica] = false;
    pipeline_play (&s->t, replicas_from (&s->r, &s->t, replica), true, NULL);
    step_s = larger (s->price.step_s, over_s (s, replica, &sum_s));
    s->price.smooth_s += step_s - s->price.step_s +
                         SMOOTH_WEIGHT * (sum_s - before_s) / (s->t.dp * s->t.pp);
    s->price.step_s = step_s;
}

/* Play the pipelines of the dirty replicas; those that are like the last one end when it does.
 * Where the price is known at least it is that which decides most often, and once the price is
 * beyond what is asked for, the others stay dirty. */
static void play_dirty (struct costmodel_state *s, bool least)
{
    int pp = s->t.pp, like = last_dirty (s);

    if (like >= 0)
        play (s, like);
    for (int d = 0; d < s->t.dp; d++) {
        if (least && is_beyond (s))
            return;
        if (s->replica_dirty[d] && !same_replicas (s, like, d))
            play (s, d);
    }
    for (int d = 0; d < s->t.dp; d++)
        if (s->replica_dirty[d]) {
            memcpy (s->r.end_s + d * pp, s->r.end_s + like * pp,
                    (size_t) pp * sizeof (double));
            s->replica_dirty[d] = false;
        }
    sum_up (s);
}

void play_replicas (struct costmodel_state *s)
{
    bool least;

    for (int d = 0; d < s->t.dp; d++)
        if (s->replica_dirty[d])
            journal_replica (s, d);
    least = is_limited (s) && find_least (s);
    if (!least || !is_beyond (s))
        play_dirty (s, least);
}
