/* What the links between the nodes of a grid cost; see grid_pairs.c. */
#ifndef MAPPER_GRID_PAIRS_H
#define MAPPER_GRID_PAIRS_H

#include "base/extremes.h"
#include "mapper/place/grid.h"

#define NEAR 8 /* best-linked partners of a node that moves bring together */

struct grid_pairs {
    int n;
    float *sends; /* [n * n] seconds of a boundary between two nodes, both ways */
    float *ring;  /* [n * n] of a row's ring, were this its slowest link */
    bool *guess;  /* [n * n] is a link between two nodes an estimate?  NULL: none is */
    int *near;    /* [n * NEAR] every node's best-linked others */
    double mean_send, mean_ring; /* above 0 */
    double slowest_ring;         /* of all pairs: what a row's ring may take */
};

/** @return false when out of memory; release in either case */
bool grid_pairs_init (const struct grid_problem *p, struct grid_pairs *x);
void grid_pairs_release (struct grid_pairs *x);

static inline double grid_send (const struct grid_pairs *x, int a, int b)
{
    return (double) x->sends[(size_t) a * (size_t) x->n + (size_t) b];
}

static inline double grid_ring (const struct grid_pairs *x, int a, int b)
{
    return (double) x->ring[(size_t) a * (size_t) x->n + (size_t) b];
}

static inline bool grid_guess (const struct grid_pairs *x, int a, int b)
{
    return x->guess[(size_t) a * (size_t) x->n + (size_t) b];
}

/** What a row's ring makes the step longer by, with such a slowest link. */
static inline double grid_shown (const struct grid_problem *p, int row, double ring_s)
{
    double s = p->ring_share[row] * ring_s;

    return larger (s - p->hidden_s[row], p->bare * s - p->ahead_s[row]);
}

/** Grow a grid along the fastest links from random nodes, column after column.
 *  @param     ring  must row 0 close?
 *  @param[out] node [n] by cell, then the others; undefined when none was found */
bool grid_pairs_grow (const struct grid_pairs *x, int rows, int columns, bool ring,
                      struct rng *rng, int *node);

/** Take the slowest links out of the rings of a grid, whole columns at a time.
 *  @param node  [rows * columns] by cell
 *  @return did any change? */
bool grid_mend_rings (const struct grid_problem *p, const struct grid_pairs *x,
                      int *node);

#endif
