#include "mapper/deadline.h"

#include <math.h>

#include "base/progress.h"

bool deadline_passed (const struct deadline *d)
{
    return (d->stop && d->stop (d->context)) ||
           (isfinite (d->until_s) && clock_s () > d->until_s);
}

struct deadline deadline_part (const struct deadline *d, double part)
{
    struct deadline sooner = *d;
    double now = clock_s ();

    sooner.until_s = now + part * fmax (0.0, d->until_s - now);
    return sooner;
}
