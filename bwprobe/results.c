#include "bwprobe/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct results {
    struct results_pair *pair;
    size_t n, cap;
    uint32_t *slot; /* [slots] hash table of indices + 1; 0: free */
    size_t slots;   /* a power of two, at least twice n */
};

struct results *results_create (void)
{
    return calloc (1, sizeof (struct results));
}

void results_destroy (struct results *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free (r->pair[i].reason);
    free (r->pair);
    free (r->slot);
    free (r);
}

static size_t hash (int src, int dst)
{
    uint64_t z = ((uint64_t) (uint32_t) src << 32 | (uint32_t) dst) * 0x9e3779b97f4a7c15u;

    return (size_t) (z ^ z >> 29);
}

/* The slot that holds the pair, or the free one where it belongs. */
static size_t find_slot (const struct results *r, int src, int dst)
{
    size_t i = hash (src, dst) & (r->slots - 1);

    while (r->slot[i] &&
           (r->pair[r->slot[i] - 1].src != src || r->pair[r->slot[i] - 1].dst != dst))
        i = (i + 1) & (r->slots - 1);
    return i;
}

static bool grow (struct results *r)
{
    size_t cap = r->cap ? 2 * r->cap : 256, slots = 4 * cap;
    struct results_pair *pair = realloc (r->pair, cap * sizeof *pair);
    uint32_t *slot = pair ? calloc (slots, sizeof *slot) : NULL;

    if (pair)
        r->pair = pair;
    if (!slot)
        return false;
    free (r->slot);
    r->slot = slot;
    r->slots = slots;
    r->cap = cap;
    for (size_t i = 0; i < r->n; i++)
        r->slot[find_slot (r, r->pair[i].src, r->pair[i].dst)] = (uint32_t) i + 1;
    return true;
}

struct results_pair *results_get (struct results *r, int src, int dst)
{
    size_t at;

    if (r->n == r->cap && !grow (r))
        return NULL;
    at = find_slot (r, src, dst);
    if (!r->slot[at]) {
        r->pair[r->n] = (struct results_pair){.src = src, .dst = dst};
        r->slot[at] = (uint32_t) ++r->n;
    }
    return &r->pair[r->slot[at] - 1];
}

const struct results_pair *results_find (const struct results *r, int src, int dst)
{
    uint32_t i = r->n ? r->slot[find_slot (r, src, dst)] : 0;

    return i ? &r->pair[i - 1] : NULL;
}

size_t results_count (const struct results *r)
{
    return r->n;
}

struct results_pair *results_at (struct results *r, size_t i)
{
    return &r->pair[i];
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

const char *results_verdict_text (enum results_verdict v)
{
    static const char *const text[VERDICTS] = {
        NULL,
        "fine when measured again: it was the moment",
        "slow again, and both ends are fine with others: the link",
        "the source is slow to others too",
        "others are slow to the destination too",
        "both ends are slow with others too"};

    return v < VERDICTS ? text[v] : NULL;
}
