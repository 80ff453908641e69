/* What ranks send, and what it takes on the links of a group: of a placement with the links that it
 * has, of a lower bound with the best that there are. */
#ifndef COSTMODEL_PRICES_H
#define COSTMODEL_PRICES_H

#include "costmodel/costmodel.h"

/** What one rank sends. */
struct costmodel_volume {
    double tp_bytes;  /* payload of one tensor-parallel all-reduce */
    double p2p_bytes; /* over one stage boundary, in one direction */
    /* One step of the context-parallel ring, forward, and backward with the gradients of keys and
     * values; or a layer's all-to-alls together, backward with those that are repeated. */
    double cp_bytes, cp_back_bytes;
    double ep_bytes; /* tokens that one all-to-all sends, each counted once, with what
                         fills experts up to their capacity */
    double dp_bytes; /* per parameter: all reduce-scatters and all-gathers of a step, or
                           the payload of its one all-reduce */
    /* of these, what has no compute beside it: gradients that a stage reduces after its last
     * backward alone, weights that are gathered when the step is done */
    double dp_bare_bytes;
    int dp_phases;      /* how many reduce-scatters and all-gathers, or all-reduces */
    bool dp_all_reduce; /* all-reduces instead */
    /* Of groups that hold the same shards (workload_copy_group), per parameter of a shard: the
     * payload of all all-reduces of a step between them, and how many these are. */
    double copy_bytes, copy_bare_bytes;
    int copy_phases;
    double tied_bytes; /* all-reduce between first and last stage, tied embeddings */
};

void costmodel_volume (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       struct costmodel_volume *out);

/** The all-reduces between groups that hold the same shards, as a volume of their own. */
static inline struct costmodel_volume
costmodel_copy_volume (const struct costmodel_volume *v)
{
    return (struct costmodel_volume){.dp_bytes = v->copy_bytes,
                                     .dp_bare_bytes = v->copy_bare_bytes,
                                     .dp_phases = v->copy_phases,
                                     .dp_all_reduce = true};
}

/** Chance that a token visits at least one of `held` consecutive experts, routing being
 *  even: with top_k of E experts 1 - C(E-held, k) / C(E, k); where experts are in groups of
 *  which a token visits top_groups, the mean over how many of these hold some of them.
 *
 *  @param[in] held  1 to the model's experts */
double costmodel_visit_chance (const struct workload_model *m, double held);

/** Tensor-parallel all-reduces (or reduce-scatter and all-gather pairs) of one
 *  micro-batch on a stage: 2 a layer in each direction (Shoeybi et al., arXiv
 *  1909.08053), 2 more in backward for a recomputed layer, 1 for the embedding forward
 *  and 1 for the head backward.  An expert layer has attention's, its shared experts',
 *  and, under expert tensor parallelism, the token-expert pairs' in parts of one. */
void costmodel_tp_operations (const struct workload_model *m,
                              const struct workload_config *c,
                              const struct workload_stage *held, double *fwd,
                              double *back);

/** What the backward of one micro-batch has beside these where a gated MLP's two first
 *  projections are layers apart: both reduce their inputs' gradients, unless these were
 *  gathered once for both under sequence parallelism. */
double costmodel_gate_operations (const struct workload_model *m,
                                  const struct workload_config *c,
                                  const struct workload_profile *p,
                                  const struct workload_stage *held);

/* ---- groups of GPUs ---- */

/** What links a group's GPUs, as a ring through them goes. */
struct costmodel_ring {
    double inside_bytes_per_s; /* payload rate at the slowest place inside nodes; INFINITY
                                   where no node has two of them */
    double between_bytes_per_s; /* at the slowest place between two nodes, all lanes
                                   together; INFINITY on one node */
    double latency_s;           /* of n-1 of its n hops, on average */
    int unmeasured;             /* links of it that nobody measured */
    int nodes;                  /* that its GPUs are on */
    double nvls; /* part of the links inside that NVLink SHARP reaches; 0: not there */
};

/** Payload rate of a ring: its slowest place; 0: no price. */
static inline double costmodel_ring_rate (const struct costmodel_ring *r)
{
    return fmin (r->inside_bytes_per_s, r->between_bytes_per_s);
}

/** Time of one all-reduce of `bytes` on each of n ranks, by the fastest of the algorithms
 *  that NCCL has for such a group, or as the profile fixes it.  The formulas are at the top
 *  of allreduce.c.  n = 1 costs nothing. */
double costmodel_allreduce_s (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n, double bytes);

/** By which? */
enum workload_all_reduce costmodel_allreduce_by (const struct workload_profile *p,
                                                 const struct costmodel_ring *r, int n,
                                                 double bytes);

/** A linear lower bound for any number of bytes: the least start and the least seconds per
 *  byte over the algorithms that may be chosen. */
void costmodel_allreduce_least (const struct workload_profile *p,
                                const struct costmodel_ring *r, int n, double *start_s,
                                double *s_per_byte);

/** Time of a step's data-parallel collectives over n ranks that hold `params` parameters:
 *  all-reduces, or reduce-scatters and all-gathers by ring, in buckets.
 *  INFINITY where the ring has no price. */
double costmodel_sync_s (const struct workload_profile *p, const struct costmodel_ring *r,
                         int n, const struct costmodel_volume *v, double params);

/** By which algorithm; reduce-scatters and all-gathers go by ring. */
enum workload_all_reduce costmodel_sync_by (const struct workload_profile *p,
                                            const struct costmodel_ring *r, int n,
                                            const struct costmodel_volume *v,
                                            double params);

/** A linear lower bound for any number of parameters. */
void costmodel_sync_least (const struct workload_profile *p,
                           const struct costmodel_ring *r, int n,
                           const struct costmodel_volume *v, double *start_s,
                           double *s_per_param);

/** Time of one message over one link, or over one flow's share of a way:
 *
 *      t = start + latency + bytes / (rate x the profile's send_link); INFINITY at rate 0 */
double costmodel_send_s (const struct workload_profile *p, double bytes,
                         double bytes_per_s, double latency_s);

/** One collective of a tensor-parallel group on such links: an all-reduce, under sequence
 *  parallelism a reduce-scatter and an all-gather. */
double costmodel_tp_operation_s (const struct workload_profile *p,
                                 const struct workload_config *c,
                                 const struct costmodel_ring *r, double bytes);

/** One step of the context-parallel ring; INFINITY at rate 0. */
double costmodel_cp_hop_s (const struct workload_profile *p, double bytes,
                           double bytes_per_s, double latency_s);

/** Exposed time of a layer's cp-1 ring steps: each step hides under its part of the
 *  attention, or, gathered at once, all of them under the first (docs/formulas.md, T11). */
double costmodel_cp_exposed_s (int cp, bool gathered, double hop_s, double attention_s);

/** The same of a layer's backward pass, which carries keys, values and their gradients: together,
 *  or, with `cp_by_pieces`, keys and values as in forward, and gradients once more than there are
 *  steps, the last time bare. */
double costmodel_cp_back_s (const struct workload_profile *p,
                            const struct costmodel_volume *v, int cp, double bytes_per_s,
                            double latency_s, double attention_s);

/** Of a stage's layers the part whose whole forward backward repeats: all, or K of them. */
static inline double costmodel_repeated_part (const struct workload_config *c, int layers)
{
    if (c->recompute != RECOMPUTE_FULL)
        return 0.0;
    return c->recompute_layers > 0 && c->recompute_layers < layers
               ? c->recompute_layers / (double) layers
               : 1.0;
}

/** A layer's all-to-alls of context parallelism in one direction, `bytes` on each of n ranks
 *  together, which nothing hides: queries, keys, values and output, `times` all of it: in
 *  backward for gradients, and for what is recomputed (docs/formulas.md, T11).  A rank sends 1/n
 *  to every other one; what leaves a node goes over its lanes.  INFINITY at rate 0. */
double costmodel_cp_exchange_s (const struct workload_profile *p,
                                const struct costmodel_ring *r, int n, double times,
                                double bytes);

/** One all-to-all whose slowest rank sends for inside_s inside its node and for outside_s out
 *  of it, both at the links' full rates. */
double costmodel_exchange_s (const struct workload_profile *p, double inside_s,
                             double outside_s, double latency_s);

/** Micro-batches whose compute data-parallel traffic may hide under: all of them where each has
 *  its own (ZeRO 3, and 2 that reduces each, without a pipeline); the chunks of an interleaved
 *  pipeline that still run after the first has its gradients, where the framework starts then
 *  (Megatron-Core, schedules.py); else one. */
double costmodel_sync_window (const struct workload_profile *p,
                              const struct workload_config *c, int microbatches);

/** Part of the data-parallel traffic that nothing can hide: of the chunk that reduces last and
 *  is needed first, of the first layer gathered and the last one reduced (ZeRO 3, and 2 that
 *  gathers by layer); else what the volume says to be bare (dp_bare_bytes). */
double costmodel_sync_bare (const struct workload_profile *p,
                            const struct workload_config *c,
                            const struct costmodel_volume *v, int layers);

/** What synchronisation of sync_s costs a stage when the profile's part of under_s of its
 *  compute can hide it: the rest, and the slowdown that the hidden part causes. */
double costmodel_exposed_s (const struct workload_profile *p, double sync_s,
                            double under_s);

/** Time of one reduce-scatter or all-gather, by ring:
 *
 *      t = start + latency + (n-1)/n bytes / (link rate) */
double costmodel_half_allreduce_s (const struct workload_profile *p,
                                   const struct costmodel_ring *r, int n, double bytes);

/** What tensor-parallel collectives of tp_s cost a stage beside under_s of compute: where the job,
 *  or else the framework, runs sequence-parallel ones in pieces between those of the products
 *  (Megatron's --tp-comm-overlap), a part of them hides, at most all of under_s, and costs compute
 *  the profile's slowdown. */
double costmodel_tp_exposed_s (const struct workload_profile *p,
                               const struct workload_job *j,
                               const struct workload_config *c, double tp_s,
                               double under_s);

/** What all-to-alls of ep_s a micro-batch, forward and backward, cost a stage beside under_s
 *  of its compute.
 *
 *  Where the framework overlaps (workload_exchanges_overlap), the profile's part of them
 *  hides, at most all of under_s: a forward's under the backward that it is joined with, and
 *  that one's under the forward.  The forwards before a stage's first backward
 *  (the schedule's forwards_first) and the backwards after its last forward have nothing beside
 *  them; all micro-batches are given the mean.
 *
 *  @param[out] hidden_s  what hides; the cost is the rest, and the slowdown that it causes */
double costmodel_ep_exposed_s (const struct workload_profile *p,
                               const struct workload_config *c, int microbatches,
                               int stage, double ep_s, double under_s, double *hidden_s);

/* ---- rings that were chosen ---- */

/** A placed plan whose groups are priced one by one, in the order that the price lays or in
 *  another.  Hidden, since it keeps the shares of the groups priced last. */
struct costmodel_groups;

/** @param[in]  p            kept; the critical path's terms are meant whatever its kind
 *  @param[in]  gpu_of_rank  [world] distinct cluster-wide GPU numbers; kept
 *  @param[out] out          destroy with costmodel_groups_destroy
 *  @return ST_OK, ST_NOMEM, or ST_INVALID for too many GPU types */
enum status costmodel_groups_create (const struct costmodel_problem *p,
                                     const int *gpu_of_rank,
                                     struct costmodel_groups **out, struct error *err);
void costmodel_groups_destroy (struct costmodel_groups *g);

/** The ring of a group as the price lays it, beside the groups that share its nodes' ways.
 *  @param[in] kind   GROUP_TP, GROUP_SYNC or GROUP_EXPERT_SYNC, of two ranks or more
 *  @param[in] first  the group's first rank */
struct costmodel_ring costmodel_groups_laid (struct costmodel_groups *g,
                                             enum workload_group_kind kind, int first);

/** The ring of the same group in another order.  Each of C channels is a ring of its own that
 *  carries 1/C of the bytes, all at the same time.  A GPU sends what its channels have inside
 *  its node one after another, and what they have for other nodes; so do a node's ways
 *  (docs/formulas.md, T22):
 *
 *      rate = C / max over GPUs and nodes of (sum over their channels of 1 / link rate)
 *
 *  which is the link's rate where all channels take one way, and the lanes' sum where they are
 *  spread evenly.  Latency is that of the longest channel.
 *
 *  @param[in] gpu       [channels * n] the group's GPUs in ring order, channel after channel
 *  @param[in] channels  1 or more */
struct costmodel_ring costmodel_groups_chosen (struct costmodel_groups *g,
                                               enum workload_group_kind kind, int first,
                                               const int *gpu, int channels);

/** Seconds a step of all collectives of such a group over a ring, with nothing hidden: a
 *  tensor-parallel group's of all micro-batches, or one synchronisation; and by which
 *  algorithm its all-reduces go. */
double costmodel_groups_step_s (const struct costmodel_groups *g,
                                enum workload_group_kind kind, int first,
                                const struct costmodel_ring *r,
                                enum workload_all_reduce *by);

#endif
