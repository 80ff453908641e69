/* A map from directed pairs of endpoints, 0 or more, to numbers. */
#ifndef BASE_PAIRS_H
#define BASE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

struct pairs;

/** Set the number of i -> j; *map is made when NULL.  @return false: out of memory */
bool pairs_set (struct pairs **map, int i, int j, double x);
/** @return false, and x untouched, when nothing was set; the map may be NULL */
bool pairs_get (const struct pairs *p, int i, int j, double *x);
/** Go through all pairs in no order.  @param[in,out] at  0 at first */
bool pairs_next (const struct pairs *p, size_t *at, int *i, int *j, double *x);
void pairs_free (struct pairs *p);

#endif
