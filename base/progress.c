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

void progress_show (struct progress *p, const char *fmt, ...)
{
    double now = clock_s ();
    va_list ap;

    if (!p->on || now - p->start_s < 1.0 || now - p->last_s < 0.1)
        return;
    fputs ("\r\033[K", stderr);
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fflush (stderr);
    p->shown = true;
    p->last_s = now;
}

void progress_end (struct progress *p)
{
    if (p->shown)
        fputs ("\r\033[K", stderr);
    p->shown = false;
}
