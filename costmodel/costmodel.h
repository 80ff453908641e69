/* The time of one optimiser step of a placed plan.
 *
 * The step is played out on the critical path: compute and tensor-parallel communication
 * make a stage's forward and backward times, stages exchange activations over the links
 * they really have, every stage synchronises its gradients when its last backward ends,
 * and the optimiser follows.  docs/time.md has every formula with its source.
 */
#ifndef COSTMODEL_COSTMODEL_H
#define COSTMODEL_COSTMODEL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** What is to be priced.  All borrowed; the configuration must have passed
 *  workload_config_check and the layers must sum to the model's. */
struct costmodel_problem {
    const struct workload_model *model;
    const struct workload_job *job;
    const struct workload_config *config;
    const struct workload_profile *profile;
    const struct topology_cluster *cluster;
    const int *layers; /* [pp] layers of each stage */
};

/* ---- what does not depend on the placement ---- */

/** Seconds of compute on one GPU type at speed 1, for one micro-batch. */
struct costmodel_compute {
    double layer_fwd_s, layer_back_s; /* one layer; back without recomputation */
    double layer_recompute_s;         /* added to back where a layer is recomputed */
    double attention_fwd_s, attention_back_s; /* part of the above */
    double embed_fwd_s, embed_back_s;         /* first stage's extra */
    double head_fwd_s, head_back_s; /* last stage's extra: output matrix and loss */
    double optimizer_s;             /* one step, per parameter on the rank */
};

/** FLOP/s of matrix products in this precision: a type without bf16 runs at fp16's rate;
 *  0 where the type cannot run it (fp8). */
double costmodel_matrix_rate (const struct topology_gpu_type *t,
                              enum workload_precision precision);

/** Roofline with a floor of launches (docs/time.md, "Compute").  The type must be able to
 *  run the precision. */
void costmodel_compute (const struct workload_model *m, const struct workload_job *j,
                        const struct workload_config *c, const struct workload_profile *p,
                        const struct topology_gpu_type *t, struct costmodel_compute *out);

/** A stage's forward and backward of one micro-batch on one GPU at speed 1, without
 *  communication.  @param stage  0 to pp-1; -1: one that is neither first nor last */
void costmodel_stage_compute (const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct costmodel_compute *k, int stage, int layers,
                              double *fwd_s, double *back_s);

/** What one rank sends. */
struct costmodel_volume {
    double tp_bytes;   /* payload of one tensor-parallel all-reduce */
    double p2p_bytes;  /* over one stage boundary, in one direction */
    double cp_bytes;   /* one step of the context-parallel ring, forward */
    double dp_bytes;   /* per parameter: all reduce-scatters and all-gathers of a step */
    int dp_phases;     /* how many of those */
    double tied_bytes; /* all-reduce between first and last stage, tied embeddings */
};

void costmodel_volume (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       struct costmodel_volume *out);

/** Tensor-parallel all-reduces (or reduce-scatter and all-gather pairs) of one
 *  micro-batch on a stage: 2 a layer in each direction (Shoeybi et al., arXiv
 *  1909.08053), 2 more in backward for a recomputed layer, 1 for the embedding forward
 *  and 1 for the head backward. */
void costmodel_tp_operations (const struct workload_config *c, int stage, int layers,
                              int *fwd, int *back);

/** Model FLOPs of one step without recomputation, attention counted in full: 6 per matmul
 *  parameter and token + 12 L s a d per token (Chowdhery et al., arXiv 2204.02311,
 *  appendix B), what MFU is measured with. */
double costmodel_model_flop (const struct workload_model *m,
                             const struct workload_job *j);

/* ---- the schedule ---- */

/** Times of one pipeline. */
struct costmodel_pipeline {
    int stages, microbatches;
    const double *fwd_s, *back_s;    /* [stages] one micro-batch */
    const double *send_s, *return_s; /* [stages-1] boundary i: i -> i+1, i+1 -> i */
};

/** When does each stage end its last backward?
 *
 *  The event recurrence of the schedule with asynchronous sends, played out micro-batch
 *  by micro-batch; once the state repeats but for a shift, whole periods are skipped
 *  (equal to playing all out, to rounding).
 *
 *  @param[in]  skip   false plays every micro-batch out
 *  @param[out] end_s  [stages]
 *  @param      work   [costmodel_schedule_work (stages)] scratch
 */
void costmodel_schedule (enum workload_schedule s, const struct costmodel_pipeline *p,
                         bool skip, double *end_s, double *work);
int costmodel_schedule_work (int stages);

/* ---- a placed plan ---- */

/** Seconds of one step, along the path of the stage that ends last; the parts sum to
 *  step_s. */
struct costmodel_breakdown {
    double compute_s; /* forward and backward of its micro-batches */
    double tp_s;      /* tensor-parallel communication */
    double cp_s;      /* context-parallel communication not hidden by attention */
    double bubble_s;  /* waiting that would remain if sends took no time */
    double pp_s;      /* the rest of the waiting */
    double dp_s;      /* gradient and weight synchronisation */
    double optimizer_s;
};

/** A link that had to be used though nobody measured it. */
struct costmodel_unmeasured {
    int src_gpu, dst_gpu; /* cluster-wide numbers */
    const char *use;      /* "tp", "cp", "pp", "dp" */
};

struct costmodel_estimate {
    double step_s;
    double mfu; /* model FLOPs / (step x the used GPUs' peaks) */
    double tokens_per_s;
    struct costmodel_breakdown part;
    int stage;        /* that ends last */
    int replica;      /* of that stage, the slowest */
    int n_unmeasured; /* links, each counted once per group and direction */
    struct costmodel_unmeasured *unmeasured; /* [n_unmeasured]; release with free */
};

/** Price a placement from scratch.
 *
 *  @param[in]  gpu_of_rank  [world] distinct cluster-wide GPU numbers
 *  @param[in]  skip         false plays the whole schedule out
 *  @return ST_OK; ST_NOFIT if two ranks that must talk have no price for their link,
 *          since nothing of its kind was measured; ST_INVALID if a GPU type cannot run
 *          the precision; ST_NOMEM
 */
enum status costmodel_estimate (const struct costmodel_problem *p, const int *gpu_of_rank,
                                bool skip, struct costmodel_estimate *out,
                                struct error *err);

/** The cluster-wide GPU of each of a plan's ranks.
 *
 *  @param[out] gpu  [n_ranks]
 *  @return ST_OK, ST_NOMEM, or ST_INVALID naming the rank whose node or GPU the cluster
 *          does not have
 */
enum status costmodel_plan_gpus (const struct workload_plan *p,
                                 const struct topology_cluster *c, int *gpu,
                                 struct error *err);

/** The plan file's `estimate`, without the search's own keys.  A new reference. */
json_t *costmodel_estimate_to_json (const struct costmodel_estimate *e);

/* ---- many placements of one configuration ---- */

/** A placement whose price follows its changes.
 *
 *  Positions 0..world-1 are the ranks, the others are idle GPUs.  Hidden, since the price
 *  is kept up to date part by part. */
struct costmodel_state;

/** @param[in] gpu    [n] distinct GPUs, n >= world
 *  @param[out] out   destroy with costmodel_state_destroy
 *  @return ST_OK, ST_NOMEM, or ST_INVALID if a GPU type cannot run the precision */
enum status costmodel_state_create (const struct costmodel_problem *p, const int *gpu,
                                    int n, struct costmodel_state **out,
                                    struct error *err);
void costmodel_state_destroy (struct costmodel_state *s);

/** Place anew: gpu [n] as at creation. */
void costmodel_state_reset (struct costmodel_state *s, const int *gpu);

/** Exchange the GPUs at positions a[k] and b[k] for every k < n, and reprice; no position
 *  may be named twice. */
void costmodel_state_exchange (struct costmodel_state *s, const int *a, const int *b,
                               int n);

/** What the placement costs.  Compare unmeasured first: a link that nobody measured is
 *  used only when nothing else is possible. */
struct costmodel_price {
    int unmeasured;
    double step_s;   /* INFINITY when some link has no price */
    double smooth_s; /* step_s plus a little of every other replica's and stage's end: a
                        guide for searches where step_s alone is flat */
};
struct costmodel_price costmodel_state_price (const struct costmodel_state *s);

/** The placement: [n], owned by the state. */
const int *costmodel_state_gpus (const struct costmodel_state *s);

/* ---- groups of GPUs ---- */

/** What a ring through a group's GPUs can carry. */
struct costmodel_ring {
    double bytes_per_s; /* payload rate at its slowest place; 0: no price */
    double latency_s;   /* of n-1 of its n hops, on average */
    int unmeasured;     /* links of it that nobody measured */
};

/** Time of one all-reduce of `bytes` on each of n ranks:
 *
 *      t = start + 2 (latency + (n-1)/n bytes / (link bw))
 *
 *  with the start and the part of the bandwidth reached from the profile; the bandwidth
 *  term is nccl-tests doc/PERFORMANCE.md, "AllReduce".  n = 1 costs nothing. */
double costmodel_allreduce_s (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n, double bytes);

/** The same for one reduce-scatter or all-gather: half the latency and volume. */
double costmodel_half_allreduce_s (const struct workload_profile *p,
                                   const struct costmodel_ring *r, int n, double bytes);

#endif
