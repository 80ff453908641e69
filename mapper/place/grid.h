/* Whole nodes on a grid of pipelines, annealed on a simple model of the step; see grid.c. */
#ifndef MAPPER_GRID_H
#define MAPPER_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "topology/topology.h"

/** What the model takes of a configuration in a layout in which every node holds one block
 *  of the grid. */
struct grid_problem {
    const struct topology_cluster *cluster;
    int n;           /* nodes that may be used, spares included */
    const int *node; /* [n] */
    const int *kind; /* [n] nodes of one kind may change places */
    int rows, columns;
    double weight;                          /* of the slowest column's sends */
    bool both_ways;                         /* sends count there and back */
    double send_bytes, send_latency, flows; /* a flow's bytes over the rate reached;
                                                   latencies counted; flows of a node */
    struct grid_ring {
        double bytes, groups, lanes; /* as of sends; lanes of a group */
    } ring, expert; /* of the row that has most, one after the other; 0 bytes: none */
    const double *ring_share; /* [rows] of their bytes, a row's */
    const double *hidden_s;   /* [rows] what hides a row's ring; INFINITY: all of it */
    double bare;              /* the part of a ring that nothing hides ... */
    const double *ahead_s;    /* [rows] ... less what a row ends before the last one */
};

struct grid;

/** @return NULL when out of memory; keeps p */
struct grid *grid_create (const struct grid_problem *p, uint64_t seed);
void grid_destroy (struct grid *g);

/** Grow an order along the fastest links alone, column after column, which finds a grid
 *  that stands out; such grids are holes in a plain, which annealing misses.
 *
 *  @param order  [n] in and out; untouched when none was found
 *  @return was one found? */
bool grid_grow (struct grid *g, int *order);

/** Anneal.
 *
 *  @param     order  [n] numbers of nodes by cell, row by row, then spares; in and out
 *  @param[in] anew   from a random order instead
 *  @param[in] moves  to draw */
void grid_improve (struct grid *g, int *order, bool anew, long moves);

#endif
