#include "bwprobe/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void results_release (struct results *r)
{
    for (size_t i = 0; i < r->n; i++)
        free (r->pair[i].reason);
    free (r->pair);
    pairs_free (r->place);
}

struct results_pair *results_get (struct results *r, int src, int dst)
{
    double at = (double) r->n;

    if (!pairs_get (r->place, src, dst, &at)) {
        if (!array_grow (&r->pair, r->n, sizeof *r->pair) ||
            !pairs_set (&r->place, src, dst, at))
            return NULL;
        r->pair[r->n++] = (struct results_pair){.src = src, .dst = dst};
    }
    return &r->pair[(size_t) at];
}

const struct results_pair *results_find (const struct results *r, int src, int dst)
{
    double at;

    return pairs_get (r->place, src, dst, &at) ? &r->pair[(size_t) at] : NULL;
}

void results_add (struct results_pair *p, enum results_what what, double value)
{
    float *v = p->sample[what];

    if (p->n[what] == RESULTS_SAMPLES) {
        memmove (v, v + 1, (RESULTS_SAMPLES - 1) * sizeof *v);
        p->n[what]--;
    }
    v[p->n[what]++] = (float) value;
}

void results_fail (struct results_pair *p, const char *reason)
{
    free (p->reason);
    p->reason = strdup (reason);
    if (p->failures < UINT8_MAX)
        p->failures++;
}

struct stats_spread results_spread (const struct results_pair *p, enum results_what what)
{
    double v[RESULTS_SAMPLES];

    for (int i = 0; i < p->n[what]; i++)
        v[i] = (double) p->sample[what][i];
    return stats_spread_of (v, p->n[what]);
}

double results_median (const struct results_pair *p, enum results_what what)
{
    return p ? results_spread (p, what).median : NAN;
}

enum results_verdict results_verdict_of (bool source_fine, bool destination_fine)
{
    if (source_fine)
        return destination_fine ? VERDICT_LINK : VERDICT_DESTINATION;
    return destination_fine ? VERDICT_SOURCE : VERDICT_BOTH;
}

const char *results_verdict_text (enum results_verdict v)
{
    static const char *const text[VERDICTS] = {
        NULL,
        "fine when measured again: it was the moment",
        "slow again, both ends fine with others: the link",
        "the source is slow to others too",
        "others are slow to the destination too",
        "both ends are slow with others too"};

    return v < VERDICTS ? text[v] : NULL;
}
