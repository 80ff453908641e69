#include "base/progress.h"

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

/* @param share  0: how long it will take is not known */
static void show (struct progress *p, double share, const char *fmt, va_list ap)
{
    double now = clock_s (), left_s;

    if (!p->on || now - p->start_s < 1.0 || now - p->last_s < 0.1)
        return;
    fputs ("\r\033[K", stderr);
    vfprintf (stderr, fmt, ap);
    left_s = share > 0.0 ? (now - p->start_s) * (1.0 / share - 1.0) : 0.0;
    if (share > 0.0 && left_s < 120.0)
        fprintf (stderr, ", %.0f s left", left_s);
    else if (share > 0.0)
        fprintf (stderr, ", %.0f min left", left_s / 60.0);
    fflush (stderr);
    p->shown = true;
    p->last_s = now;
}

void progress_show (struct progress *p, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    show (p, 0.0, fmt, ap);
    va_end (ap);
}

void progress_part (struct progress *p, double share, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    show (p, share, fmt, ap);
    va_end (ap);
}

void progress_end (struct progress *p)
{
    if (p->shown)
        fputs ("\r\033[K", stderr);
    p->shown = false;
}
