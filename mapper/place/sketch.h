/* Sketches: configurations placed cheaply, with layers and GPUs both free to move.
 *
 * place_config splits the layers first, by the kinds of GPUs that there are, and then looks for
 * places.  In an odd pool (unlike GPUs, nodes of several sizes) the best split depends on the
 * places, and which configuration is best depends on both.  A sketch is built the other way
 * round: GPUs are laid out in one of a few orders, layers follow what the places give; then both
 * are annealed together. */
#ifndef MAPPER_PLACE_SKETCH_H
#define MAPPER_PLACE_SKETCH_H

#include "mapper/place/place.h"

struct sketch {
    int *layers; /* [pp] */
    int *gpu;    /* [n] ranks first, then the pool's idle GPUs */
    struct costmodel_price price;
};
void sketch_release (struct sketch *k);
/** Keep the better of two, in `best`; the other one is released. */
void sketch_take_better (struct sketch *k, struct sketch *best);

/** @param[in]  n   GPUs of the pool, idle ones too @param[out] to  release it
 *  @return ST_OK or ST_NOMEM */
enum status sketch_copy (const struct sketch *from, int pp, int n, struct sketch *to,
                         struct error *err);

/** Orders of the pool's nodes, the same for all configurations. */
struct walks {
    int n_gpus; /* of all nodes: n of a sketch */
    int *seq;   /* [WALKS * n_nodes] indices into the pool's nodes */
    int *pair;  /* [cluster's n_gpus] the same, GPUs of a node that its best links join */
    bool all_usual; /* as costmodel_problem's */
};
enum status walks_init (struct walks *w, const struct pool *pool, struct error *err);
void walks_release (struct walks *w);

/** How a sketch is laid out: for what a good placement may take, along one walk with the nodes'
 *  usual links, since single bad ones can be kept out of the way; along all walks, in the ways that
 *  mostly serve best; in all ways. */
enum sketch_ways { SKETCH_USUAL, SKETCH_WALKS, SKETCH_ALL };

/** Lay a configuration out and keep the best.
 *
 *  @param[in]  far_s  of a step that is longer no more need be known; INFINITY
 *  @param[out] out  release it
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT where no way fits in memory or is connected */
enum status sketch_build (const struct pool *pool, const struct walks *w,
                          const struct groups *g, const struct workload_config *c,
                          enum sketch_ways ways, double far_s, struct sketch *out,
                          struct error *err);

/** What was placed, as a sketch.
 *  @param[out] out  release it
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT where sketches divide layers otherwise */
enum status sketch_of (const struct pool *pool, const struct walks *w,
                       const struct workload_config *c, const struct placed *from,
                       struct sketch *out, struct error *err);

/** The places of another configuration's sketch for one with the same degrees; layers as they
 *  are there, or as they follow the places.
 *  @return as sketch_build */
enum status sketch_adopt (const struct pool *pool, const struct walks *w,
                          const struct workload_config *c, const struct sketch *from,
                          struct sketch *out, struct error *err);

/** Anneal layers and places together; the sketch receives what is better.
 *
 *  @param[in] moves  that are priced
 *  @param[in] hot    first temperature, as a share of the step
 *  @return ST_OK or ST_NOMEM */
enum status sketch_anneal (const struct pool *pool, const struct walks *w,
                           const struct workload_config *c, int moves, double hot,
                           unsigned long seed, const struct deadline *deadline,
                           struct sketch *k, struct error *err);

#endif
