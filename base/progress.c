#include "base/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

double clock_s (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

void progress_start (struct progress *p)
{
    *p = (struct progress){.on = isatty (STDERR_FILENO) == 1, .start_s = clock_s ()};
}

/* @param left_s  INFINITY: how long it will take is not known */
static void show (struct progress *p, double now, double left_s, const char *fmt,
                  va_list ap)
{
    if (!p->on || now - p->start_s < 1.0 || now - p->last_s < 0.1)
        return;
    if (p->until_s > 0.0)
        left_s = fmax (0.0, fmin (left_s, p->until_s - now));
    fputs ("\r\033[K", stderr);
    vfprintf (stderr, fmt, ap);
    if (left_s < 120.0)
        fprintf (stderr, ", %.0f s left", left_s);
    else if (isfinite (left_s))
        fprintf (stderr, ", %.0f min left", left_s / 60.0);
    fflush (stderr);
    p->shown = true;
    p->last_s = now;
}

void progress_show (struct progress *p, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    show (p, clock_s (), INFINITY, fmt, ap);
    va_end (ap);
}

void progress_part (struct progress *p, double share, const char *fmt, ...)
{
    double now = clock_s (), done = share - p->from;
    va_list ap;

    if (p->part_s == 0.0 || share < p->share) {
        p->part_s = p->part_s == 0.0 ? p->start_s : now;
        p->from = p->part_s == p->start_s ? 0.0 : share;
        done = share - p->from;
    }
    p->share = share;
    va_start (ap, fmt);
    show (p, now, done > 0.0 ? (now - p->part_s) * (1.0 - share) / done : INFINITY, fmt,
          ap);
    va_end (ap);
}

void progress_end (struct progress *p)
{
    if (p->shown)
        fputs ("\r\033[K", stderr);
    p->shown = false;
}
