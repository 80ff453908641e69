/* What a bench does where it cannot go on. */
#ifndef BENCH_DIE_H
#define BENCH_DIE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

static inline void die (const struct error *err)
{
    fprintf (stderr, "%s: %s\n", program_invocation_short_name, err->text);
    exit (1);
}

#endif
