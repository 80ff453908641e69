/* What was measured, by directed pair of endpoints. */
#ifndef BWPROBE_RESULTS_H
#define BWPROBE_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pairs.h"
#include "base/stats.h"

enum { RESULTS_SAMPLES = 8 };

enum results_what { RESULTS_ALONE, RESULTS_TOGETHER, RESULTS_LATENCY, RESULTS_WHATS };

/** The finding of a suspect's second measurement. */
enum results_verdict {
    VERDICT_NONE,
    VERDICT_MOMENT,      /* fine with a new connection: it was the moment */
    VERDICT_LINK,        /* slow again, and both ends are fine with others */
    VERDICT_SOURCE,      /* the source is slow to others too */
    VERDICT_DESTINATION, /* others are slow to the destination too */
    VERDICT_BOTH,        /* both ends are slow with others */
    VERDICTS
};

struct results_pair {
    int src, dst;
    /* One sample a pass, then those of the second look; bytes/s, bytes/s, seconds. */
    float sample[RESULTS_WHATS][RESULTS_SAMPLES];
    uint8_t n[RESULTS_WHATS];
    uint8_t failures, verdict;
    float residual; /* largest of the fits */
    char *reason;   /* of the last failure, or NULL */
};

/** Zero-initialise; a pair stays where it is until the next is added. */
struct results {
    struct results_pair *pair; /* [n] in the order in which they were added */
    size_t n;
    struct pairs *place; /* of each pair in the list */
};

void results_release (struct results *r);

/** Find a directed pair, or add it.  @return NULL when out of memory */
struct results_pair *results_get (struct results *r, int src, int dst);
/** Find it; NULL when nothing is known of it. */
const struct results_pair *results_find (const struct results *r, int src, int dst);

/** Add a sample; beyond RESULTS_SAMPLES it replaces the oldest. */
void results_add (struct results_pair *p, enum results_what what, double value);
/** Record a failure; the reason is copied. */
void results_fail (struct results_pair *p, const char *reason);

/** Spread of the samples of one quantity. */
struct stats_spread results_spread (const struct results_pair *p, enum results_what what);
/** Their median; NaN where there is none, also for p NULL. */
double results_median (const struct results_pair *p, enum results_what what);

/** That of a link that is slow again, by whether its ends do well with others. */
enum results_verdict results_verdict_of (bool source_fine, bool destination_fine);

/** The verdict in words, NULL for VERDICT_NONE. */
const char *results_verdict_text (enum results_verdict v);

#endif
