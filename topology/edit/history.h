/* One rate of a link out of measurements of several days. */
#ifndef TOPOLOGY_HISTORY_H
#define TOPOLOGY_HISTORY_H

#include <stdbool.h>

/** One measurement of a link. */
struct history_sample {
    double when_s; /* since 1970 */
    double rate;   /* any unit; > 0 */
    bool busy;     /* beside other traffic: what the link reached at least */
};

/** Why an estimate is not the newest measurement. */
enum history_why {
    HISTORY_NEWEST,    /* it is, or nearly */
    HISTORY_COLLISION, /* the newest is low and older ones are not: it met other traffic */
    HISTORY_HIGH,      /* the newest is high and older ones are not */
    HISTORY_CHANGED,   /* the newest two agree that the link is another than before */
    HISTORY_ACCUSED,   /* counters accuse it: it is believed to be as low as it seems */
    HISTORY_BUSY       /* it reached more, or is known alone, beside other traffic */
};
#define HISTORY_WHYS 6
const char *history_why_text (enum history_why why);

struct history_estimate {
    double rate;
    enum history_why why;
    int samples;  /* that it rests on */
    double age_s; /* of the newest of these, before the newest of all */
};

/** The estimate.
 *
 *  A measurement of age a weighs 2^(-a / half_life); the estimate is the weighted median, so
 *  that one measurement that met other traffic moves nothing, and of two the newer holds.
 *  Exceptions:
 *  - The newest two agree within 10 %, and both lie over 10 % below or above the weighted
 *    median of those before: the link has changed, and the older ones are forgotten.
 *  - The link is accused: what was measured before its counters grew is forgotten, if it was
 *    measured since; then the lower of the newest and the weighted median holds, of two the
 *    lower.
 *  - A busy measurement is a lower bound: it counts where it is above the estimate of the
 *    others, and where there are no others; of busy ones alone, the highest of the last half-life.
 *
 *  @param[in]  s              [n] oldest first; n >= 1
 *  @param[in]  half_life_s    > 0
 *  @param[in]  accused_s      since when counters accuse the link; NaN: they do not
 *  @param      work           [2 n] room
 */
struct history_estimate history_estimate (const struct history_sample *s, int n,
                                          double half_life_s, double accused_s,
                                          struct history_sample *work);

#endif
