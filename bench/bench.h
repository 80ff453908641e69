/* What benches share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

static inline void die (const struct error *err)
{
    fprintf (stderr, "%s: %s\n", program_invocation_short_name, err->text);
    exit (1);
}

/* Processor seconds of this thread: the machine may have other work. */
static inline double cpu_s (void)
{
    struct timespec t;

    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

#endif
