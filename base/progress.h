/* One line on a terminal for work that takes over a second. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool on;        /* standard error is a terminal that can clear a line */
    bool shown;     /* something is on the line */
    double start_s; /* monotonic clock */
    double last_s;  /* when the line was last written */
    double until_s; /* when the work ends at the latest; 0: any time */
    double share;   /* what progress_part was last told */
    double part_s;  /* when it last began anew */
    double from;    /* with this share */
};

void progress_start (struct progress *p);
/** Show a line, cut to the terminal's width, at most ten times a second and not in the first
 *  second. */
void progress_show (struct progress *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/** The same with the time left at its end, for work of which so much is done, evenly; a share
 *  below the one before begins another work. */
void progress_part (struct progress *p, double share, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/** Clear the line. */
void progress_end (struct progress *p);

/** Seconds of the monotonic clock. */
double clock_s (void);

#endif
