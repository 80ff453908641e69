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

/** Do products read 16-bit copies that autocast makes of fp32 weights? */
bool memest_autocasts (const struct memest_problem *p);

/** One micro-batch's activations of a layer of these parts.
 *  @param[in]  shape  a struct memest_shape, as workload_class_sum hands it on */
double memest_layer_bytes (const void *shape, unsigned parts);

/** What is made again for the backward pass of such a layer, in bytes. */
double memest_layer_rebuilt (const void *shape, unsigned parts);

#endif
