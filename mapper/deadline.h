/* When work in hand is to end with what there is. */
#ifndef MAPPER_DEADLINE_H
#define MAPPER_DEADLINE_H

#include <stdbool.h>

struct deadline {
    double until_s;               /* clock_s; INFINITY: never */
    bool (*stop) (void *context); /* or when this says so; NULL: never */
    void *context;
};
bool deadline_passed (const struct deadline *d);

/** The same when that part of the time that is left has passed. */
struct deadline deadline_part (const struct deadline *d, double part);

#endif
