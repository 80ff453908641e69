#include "mapper/deadline.h"

#include <math.h>

#include "base/progress.h"

bool deadline_passed (const struct deadline *d)
{
    return (d->stop && d->stop (d->context)) ||
           (isfinite (d->until_s) && clock_s () > d->until_s);
}
