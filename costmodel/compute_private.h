/* Shared by the files that price compute: machine.c, attention.c, layer.c, compute.c. */
#ifndef COSTMODEL_COMPUTE_PRIVATE_H
#define COSTMODEL_COMPUTE_PRIVATE_H

#include "costmodel/costmodel_private.h"

/** What a GPU type reaches in products of this precision, and in elementwise kernels. */
struct machine machine_of (const struct topology_gpu_type *t,
                           const struct workload_profile *p,
                           enum workload_precision precision);

/** One configuration's shapes on one rank, on one GPU type. */
struct setting {
    const struct workload_model *m;
    const struct workload_job *j;
    const struct workload_config *c;
    const struct workload_profile *p;
    const struct topology_gpu_type *t;
    struct machine g, plain; /* plain: in 16 bits where the products are in fewer */
    double tokens, h, r;     /* r: sequence parallelism splits elementwise work */
    bool fused; /* an MLP's activation and its casts are part of the products */
};

/** What a wave of tiles costs to start (docs/formulas.md, T13). */
#define COSTMODEL_WAVE_S 1e-6

/** Rate of flash attention's products in this precision, forward: of the GPU type's, or of the
 *  peak, the profile's part. */
double flash_rate (const struct setting *x, double part);

/** Seconds of a layer's attention over all pairs, or half of them where the kernel skips masked
 *  ones. */
void attention_time (const struct setting *x, double *fwd, double *back);

/** Seconds of a layer of these parts.
 *  @param[in,out] out  all 0 before */
void layer_of (const struct setting *x, unsigned parts, struct costmodel_layer *out);

/** Seconds of the head: its members of *k. */
void head_time (const struct setting *x, struct costmodel_compute *k);

/* ---- what is offloaded to the host (host.c) ---- */

/** Raise a layer's times to what its weights, gradients or checkpoint take over the link to the
 *  host, each direction beside forward and beside backward. */
void host_layer (const struct setting *x, unsigned parts, struct costmodel_layer *k);
/** The same of embedding and head. */
void host_ends (const struct setting *x, struct costmodel_compute *k);
/** Seconds of the optimizer's step for each parameter of a shard: gradients down, Adam on the
 *  host, weights up, as far as they were not on their way before. */
double host_step_s (const struct setting *x);
/** Of optimizer state in pages of the host's memory: all comes for the step, and goes meanwhile. */
double host_paged_s (const struct setting *x);
/** Of these weights up, where they come without an optimizer: frozen ones (LoRA) that stay on the
 *  GPU from a pipeline's first micro-batch on; else 0. */
double host_frozen_s (const struct setting *x);

#endif
