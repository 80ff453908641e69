/* A second look.  A slow link, a slow end and a slow moment look alike in one number: measure
 * the link again with a new connection, its source with another destination, and its
 * destination with another source. */
#include <math.h>
#include <stdlib.h>

#include "bwprobe/coordinator_private.h"

enum { SUSPECTS_MAX = 64 };

/* A link is a suspect below this part of its tier's median and this many MADs under it, or
 * when its passes differ by more than that. */
#define SLOW_PART 0.9
#define SLOW_MADS 4.0
#define UNSTEADY_PART 0.2
/* Measured again, it is as it should be from here on. */
#define FINE_PART 0.93

struct suspect {
    int src, dst;
    double badness; /* 1: failed; else how far below */
};

static double alone (const struct coordinator *c, int src, int dst)
{
    return results_median (results_find (&c->results, src, dst), RESULTS_ALONE);
}

static double badness_of (const struct results_pair *p, const struct stats_spread *tier)
{
    struct stats_spread s = results_spread (p, RESULTS_ALONE);

    if (p->failures > 0 && s.n == 0)
        return 1;
    if (p->failures > 0)
        return 0.99;
    if (s.n == 0)
        return 0;
    if (s.median < SLOW_PART * tier->median &&
        s.median < tier->median - SLOW_MADS * 1.4826 * tier->mad)
        return 1 - s.median / tier->median;
    if (s.n > 1 && s.high - s.low > UNSTEADY_PART * s.median)
        return 0.01 * (s.high - s.low) / s.median;
    return 0;
}

static int worst_first (const void *a, const void *b)
{
    const struct suspect *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness > y->badness ? -1 : 1;
    return x->src != y->src ? x->src - y->src : x->dst - y->dst;
}

static int find_suspects (const struct coordinator *c, const struct stats_spread *tier,
                          struct suspect **out)
{
    size_t n = c->results.n;
    struct suspect *s = malloc ((n + 1) * sizeof *s);
    int k = 0;

    for (size_t i = 0; i < n && s; i++) {
        const struct results_pair *p = &c->results.pair[i];
        double bad;

        if (!coordinator_alive (c, p->src) || !coordinator_alive (c, p->dst))
            continue;
        bad = badness_of (p, &tier[estimate_tier_of (c, p->src, p->dst)]);
        if (bad > 0)
            s[k++] = (struct suspect){p->src, p->dst, bad};
    }
    if (k > 0)
        qsort (s, (size_t) k, sizeof *s, worst_first);
    *out = s;
    return k;
}

/* A partner for `end` that stands where `not_it` does (outside or inside its node), with whom
 * it did best; its source when `sends`. */
static int other_partner (const struct coordinator *c, int end, int not_it, bool sends)
{
    int best = -1;
    double most = 0;

    for (int i = 0; i < c->shape.n; i++) {
        double x = sends ? alone (c, end, i) : alone (c, i, end);

        if (i == end || i == not_it || !coordinator_alive (c, i) ||
            estimate_tier_of (c, end, i) != estimate_tier_of (c, end, not_it))
            continue;
        /* Unknown ones are better than none. */
        if (best < 0 || x > most) {
            best = i;
            most = isfinite (x) ? x : 0;
        }
    }
    return best;
}

/* Does an end do well with another?  After a failure any measurement says yes. */
static bool does_well (struct coordinator *c, const struct suspect *s, int src, int dst,
                       double fine)
{
    double x = round_again (c, src, dst);

    return s->badness >= 0.99 ? isfinite (x) : x >= fine;
}

static enum results_verdict judge (struct coordinator *c, const struct suspect *s,
                                   double again, double fine)
{
    int to = other_partner (c, s->src, s->dst, true),
        from = other_partner (c, s->dst, s->src, false);
    bool source_fine, destination_fine;

    if (again >= fine)
        return VERDICT_MOMENT;
    if (to < 0 || from < 0)
        return VERDICT_LINK;
    source_fine = does_well (c, s, s->src, to, fine);
    destination_fine = does_well (c, s, from, s->dst, fine);
    return results_verdict_of (source_fine, destination_fine);
}

/* What failed one way failed the other way too: one look serves both. */
static enum results_verdict from_way_back (const struct coordinator *c,
                                           const struct suspect *s)
{
    const struct results_pair *back = results_find (&c->results, s->dst, s->src);

    if (s->badness < 0.99 || !back || back->failures == 0)
        return VERDICT_NONE;
    switch ((enum results_verdict) back->verdict) {
    case VERDICT_SOURCE:
        return VERDICT_DESTINATION;
    case VERDICT_DESTINATION:
        return VERDICT_SOURCE;
    default:
        return (enum results_verdict) back->verdict;
    }
}

void suspects_run (struct coordinator *c)
{
    struct stats_spread tier[ESTIMATE_TIERS]; /* how its rates lie */
    double *v = malloc ((c->results.n + 1) * sizeof *v);
    struct suspect *s;
    /* Links that failed are looked at in any case: a time-out each is soon over. */
    double until = fmax (c->set.budget_s, coordinator_elapsed (c) + 10);
    int n;

    for (int t = 0; t < ESTIMATE_TIERS; t++)
        tier[t] = stats_spread_of (v, v ? estimate_values (c, t, RESULTS_ALONE, v) : 0);
    free (v);
    n = find_suspects (c, tier, &s);
    for (int i = 0; i < n && i < SUSPECTS_MAX && !c->interrupted; i++) {
        double median = tier[estimate_tier_of (c, s[i].src, s[i].dst)].median,
               fine = FINE_PART * median, again;
        enum results_verdict verdict;
        struct results_pair *p;

        if (coordinator_elapsed (c) > until)
            break;
        if (!coordinator_alive (c, s[i].src) || !coordinator_alive (c, s[i].dst))
            continue;
        snprintf (c->doing, sizeof c->doing, "measuring %d of %d suspect links again",
                  i + 1, n < SUSPECTS_MAX ? n : SUSPECTS_MAX);
        coordinator_show (c);
        verdict = from_way_back (c, &s[i]);
        if (verdict == VERDICT_NONE) {
            again = round_again (c, s[i].src, s[i].dst);
            /* An unsteady link of normal speed, or a failure that does not repeat. */
            if (s[i].badness < 0.1 || (s[i].badness >= 0.99 && isfinite (again)))
                fine = 0.5 * alone (c, s[i].src, s[i].dst);
            verdict = judge (c, &s[i], again, fine);
        }
        if ((p = results_get (&c->results, s[i].src, s[i].dst)))
            p->verdict = (uint8_t) verdict;
    }
    free (s);
}
