/* Shared by sketch.c (how a sketch is laid out) and joint.c (how it is annealed). */
#ifndef MAPPER_PLACE_SKETCH_PRIVATE_H
#define MAPPER_PLACE_SKETCH_PRIVATE_H

#include "base/rng.h"
#include "mapper/place/sketch.h"

/* The ways to go through nodes: by the mean class of their GPUs, by the slowest class and then
 * from neighbour to neighbour, by GPU type and size. */
enum { WALK_MEAN, WALK_GROWN, WALK_SIZE, WALKS };

/** A stage as layers are poured into it. */
struct vessel {
    double layer_s, end_s; /* a layer's time; the embedding's and the head's */
    int room;              /* layers that its GPUs hold */
};

/** A configuration whose layers and GPUs are being moved. */
struct drawn {
    const struct pool *pool;
    const struct workload_config *c;
    const int *pair; /* as the walks' */
    int world, n, per_stage, slot;
    int unit;              /* layers that move together: one of every chunk, or one */
    int least;             /* layers of a stage */
    int *cap;              /* [n_classes * pp] most layers of a stage on a class */
    int *layers;           /* [pp] in hand */
    int *gpu;              /* [n] in hand, as the state has them */
    struct vessel *vessel; /* [pp] scratch */
    struct costmodel_state *state;
};

/** @param[in] usual  are links the nodes' usual ones?
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT where memory or chunks forbid it; release it in any
 *          case */
enum status drawn_init (struct drawn *x, const struct pool *pool, const struct walks *w,
                        const struct workload_config *c, bool usual, struct error *err);
void drawn_release (struct drawn *x);

/** May the stage's GPUs hold its layers? */
bool drawn_fits (const struct drawn *x, int stage);

/** Divide the layers of stages first..last, taken in steps of `by`, anew: the next `some`, one of
 *  all chunks or a unit, go to the one that would end first with them, from the times that they
 *  take in hand.
 *  @param[in,out] layers  [pp] @return false when they do not fit in memory */
bool drawn_pour (const struct drawn *x, int first, int last, int by, int some,
                 int *layers);

/** Are links between nodes faster than those inside, and TP groups maybe better off across? */
bool across_pays (const struct pool *pool, const struct workload_config *c);

/** The nodes, from the first of an order on, that hold a configuration: as few as can be, in whole
 *  numbers of TP groups. */
int across_nodes (const struct pool *pool, const struct workload_config *c,
                  const int *order);
/** Lay all GPUs in a line whose TP groups hold one GPU of each of several nodes.
 *  @param[in] nodes  of the order that may be used: the first ones
 *  @param[in,out] order  [n_nodes] indices into the pool's nodes, put in the order of good rings
 *  @param[out] line  [n] GPUs; those of other nodes come last  @param late  [n] scratch
 *  @return how many are not of other nodes */
int across_line (const struct pool *pool, const struct workload_config *c, int nodes,
                 int *order, int *line, int *late);

/** Give the state and the stages other layers. */
void drawn_take_layers (struct drawn *x, const int *layers);

#endif
