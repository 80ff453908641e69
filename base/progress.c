#include "base/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_MOST 512

double clock_s (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

void progress_start (struct progress *p)
{
    const char *term = getenv ("TERM");

    *p = (struct progress){.on = isatty (STDERR_FILENO) == 1 && term &&
                                 strcmp (term, "dumb") != 0,
                           .start_s = clock_s ()};
}

/* Cut a line to the terminal's width but for some columns: of one that goes on in the next row,
 * only that row is cleared. */
static void fit (char line[LINE_MOST], size_t but)
{
    struct winsize size = {0};
    size_t columns = but, at = 0;

    if (ioctl (STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        size.ws_col = 80;
    for (; line[at]; at++) { /* bytes that go on with a UTF-8 character take no column */
        columns += ((unsigned char) line[at] & 0xc0) != 0x80;
        if (columns >= size.ws_col)
            break;
    }
    line[at] = '\0';
}

/* @param left_s  INFINITY: how long it will take is not known */
static void show (struct progress *p, double now, double left_s, const char *fmt,
                  va_list ap)
{
    char line[LINE_MOST], left[64] = "";

    if (!p->on || now - p->start_s < 1.0 || now - p->last_s < 0.1)
        return;
    if (p->until_s > 0.0)
        left_s = fmax (0.0, fmin (left_s, p->until_s - now));
    if (left_s < 120.0)
        snprintf (left, sizeof left, ", %.0f s left", left_s);
    else if (isfinite (left_s))
        snprintf (left, sizeof left, ", %.0f min left", left_s / 60.0);
    vsnprintf (line, sizeof line, fmt, ap);
    fit (line, strlen (left));
    fprintf (stderr, "\r\033[K%s%s", line, left);
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
