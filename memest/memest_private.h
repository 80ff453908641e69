/* Shared by the files of memest/ alone. */
#ifndef MEMEST_MEMEST_PRIVATE_H
#define MEMEST_MEMEST_PRIVATE_H

#include "memest/memest.h"

/** One stage by the published model that p->by names. */
void memest_stage_published (const struct memest_problem *p, int stage,
                             const struct workload_stage *held, struct memest_stage *out);

/* ---- one layer, on one rank ---- */

/** A rank's widths, and bytes per element relative to 16 bits. */
struct memest_shape {
    const struct memest_problem *p; /* borrowed */
    double tokens;                  /* of one micro-batch on this rank, s b / c */
    double t, r; /* TP, and what splits norms (t with sequence parallelism, else 1) */
    double h, q, kv, element;
    struct workload_mixer mixer; /* of layers with a linear one */
    /* Of an element that a product reads: 1 in fp8, .56 in fp4, where activations are counted as
     * the framework keeps them. */
    double quantised;
};
struct memest_shape memest_shape_of (const struct memest_problem *p);

/** One micro-batch's activations of a layer of these parts.
 *  @param[in]  shape  a struct memest_shape, as workload_class_sum hands it on */
double memest_layer_bytes (const void *shape, unsigned parts);

/** What is made again for the backward pass of such a layer, in bytes. */
double memest_layer_rebuilt (const void *shape, unsigned parts);

/* ---- buffers, and what is on the host ---- */

/** What a stage holds beside states and activations, in bytes: what is there at the logits' peak,
 *  what goes when the forward pass ends, and gradients that come when the logits are gone. */
struct memest_buffers {
    double bytes, forward, gradients;
};
struct memest_buffers memest_buffers (const struct memest_shape *w,
                                      const struct workload_stage *held);

/** Are the layers' frozen weights in fewer than 16 bits (A25)? */
bool memest_is_packed (const struct memest_problem *p);

/** Do weights that adapters leave frozen have gradients, too? */
bool memest_frozen_have_gradients (const struct memest_problem *p);

/** Are weights gathered layer by layer?  One rank has all of it, and gathers nothing (PyTorch,
 *  NO_SHARD; DeepSpeed, NoGatherHandle), unless the host has it. */
bool memest_gathers (const struct memest_problem *p);

/** What is in the host's memory (A23): weights where they are sharded, and the gradients of a shard
 *  with them, or with the optimizer's state where the framework sends them on as they are reduced.
 */
bool memest_weights_are_away (const struct memest_problem *p);
bool memest_gradients_are_away (const struct memest_problem *p);

#endif
