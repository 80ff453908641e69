/* Stages to units of a stock, of which there are so many of each kind, so that they hold the most
 * layers together: an assignment, by augmenting paths. */
#ifndef MAPPER_BOUND_STOCK_H
#define MAPPER_BOUND_STOCK_H

#include <stdbool.h>

#define KINDS_MAX 9 /* of units */

struct assignment {
    int kinds, first, p; /* the stages first..p-1 have units */
    int left[KINDS_MAX];
    double held; /* their layers, at most */
    double *most;
    int *of;
};

/** Give the stage before `first` a unit.  @return false when none is left */
bool assign_next (struct assignment *a);

/** Take a unit of a kind away, or of the next better one that is left.  @return false when there is
 *  none */
bool assign_unit (struct assignment *a, int kind);

/** Units at a price: each stage takes one, and all together cost so much at most.
 *  @param[in] gain   [p * KINDS_MAX] of a stage by kind; below 0: it cannot be
 *  @param[in] work   [2 * (most + 1)]
 *  @return the most that they gain together; below 0: nothing is possible */
double stock_most_gain (const double *gain, int p, int kinds, const int *price, int most,
                        double *work);

#endif
