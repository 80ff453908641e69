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
#include "base/text.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** A link between two nodes taken at another bandwidth, both ways; of GPUs where the
 *  cluster has links of single GPUs between nodes. */
struct costmodel_what_if {
    int src_gpu, dst_gpu;
    double bytes_per_s;
};

/** Step-time models: linkwise's critical path, and two published ones. */
enum costmodel_kind { COSTMODEL_CRITICAL_PATH, COSTMODEL_PIPETTE, COSTMODEL_AMP };
const char *costmodel_kind_name (enum costmodel_kind k);
bool costmodel_kind_parse (const char *s, enum costmodel_kind *k);

/** What is to be priced.  All borrowed; the configuration must have passed
 *  workload_config_check and the layers must sum to the model's. */
struct costmodel_problem {
    const struct workload_model *model;
    const struct workload_job *job;
    const struct workload_config *config;
    const struct workload_profile *profile;
    const struct topology_cluster *cluster;
    const int *layers; /* [pp] layers of each stage */
    /* [pp * vpp] of each of its chunks (workload_stage_of_chunks); NULL: dealt by
     * workload_chunk_layers */
    const int *chunks;
    const struct costmodel_what_if *what_if; /* NULL: links as they are */
    /* [n_nodes] bytes/s of a node's links to others: each between two counts as the lower of
     * theirs, whatever it is itself; NULL: links as they are.  Where nothing logs them. */
    const double *usual;
    /* with these: every link between nodes was measured, with one latency */
    bool all_usual;
    bool unshared; /* concurrent flows share nothing: each goes as fast as alone */
    /** Published models, for comparison on the same placement:
     *
     *  Pipette (Yim et al., DATE 2024): floor(m/p) [p (F+B) + T_PP] + (p-1)(F+B) +
     *  gradients inside nodes + between them, T_PP the slowest pipeline's sends both ways.
     *  AMP (Li et al., NeurIPS 2022): (m-1) max C + sum of C + sends + slowest gradients,
     *  C three forwards.
     *  Forward and backward are costmodel_compute's, communication of tensor parallelism
     *  included; theirs are profiled or learned.  Breakdowns count it as compute. */
    enum costmodel_kind kind;
};

/* ---- what does not depend on the placement ---- */

/** Seconds of one layer for one micro-batch on one GPU type at speed 1, and nothing else
 *  (costmodel_compute_least). */
struct costmodel_layer {
    double fwd_s, back_s; /* back without recomputation */
    double weight_s;      /* of back: the weights' gradients */
    double recompute_s;   /* added to back where the layer is recomputed */
    double attention_fwd_s, attention_back_s; /* of fwd and back */
};

/** Seconds of compute on one GPU type at speed 1, for one micro-batch: seconds alone
 *  (costmodel_compute_least). */
struct costmodel_compute {
    struct costmodel_layer dense, expert; /* in a model with a pattern: what any takes at
                                             least, where its kind is not told */
    struct costmodel_layer kind[WORKLOAD_KINDS]; /* of a model with a pattern */
    double embed_fwd_s, embed_back_s;            /* first stage's extra */
    double head_fwd_s, head_back_s; /* last stage's extra: output matrix and loss */
    double head_weight_s;           /* of head_back_s: its weights' gradients */
    double optimizer_s;             /* one step, per dense parameter on the rank */
    double expert_optimizer_s;      /* the same per expert parameter */
};

/* What ranks send as the published models count it. */

/** One micro-batch's activations over one stage boundary. */
static inline double costmodel_published_message_bytes (const struct workload_model *m,
                                                        const struct workload_job *j,
                                                        const struct workload_config *c)
{
    return 2.0 * c->micro_batch * (double) j->seq * m->hidden;
}

/** Pipette's gradients of the first stage on a rank. */
static inline double costmodel_pipette_gradient_bytes (const struct workload_model *m,
                                                       const struct workload_config *c)
{
    double h = m->hidden;

    return 2.0 * (h * m->vocab + 16.0 * h * h * m->layers / c->deg.pp) / c->deg.tp;
}

/** Of two GPU types, does the first take longer for products in 16 bits? */
bool costmodel_slower (const struct topology_gpu_type *a,
                       const struct topology_gpu_type *b);
/** Add the GPU types of a cluster's nodes, for which its job's profile is chosen.  Drained nodes
 *  have no part in it, unless all are. */
void costmodel_gpus (const struct topology_cluster *c, struct workload_gpus *all);
/** The same of a plan's nodes, as far as the cluster has them. */
void costmodel_gpus_of_plan (const struct topology_cluster *c,
                             const struct workload_plan *p, struct workload_gpus *all);
/** Let the profile of a job be the one that serves on the types of n ranks' GPUs, which are fewer
 *  than those that it was chosen for: idle nodes change no estimate.
 *  @param[in] gpu  [n] cluster-wide */
enum status costmodel_profile_used (struct workload_profile *p,
                                    const struct topology_cluster *c, const int *gpu,
                                    int n, const struct workload_model *m,
                                    const struct workload_job *j, struct error *err);

/** Do products take blocks with a scale each (mxfp8, nvfp4)?  Types whose units do that have fp4,
 *  too. */
bool costmodel_takes_blocks (enum workload_precision precision,
                             const struct topology_gpu_type *t);

/** What CUDA graphs capture of a job on a GPU type: nothing, attention and router of the layers
 *  with experts, or whole steps. */
enum costmodel_capture {
    COSTMODEL_CAPTURE_NOTHING,
    COSTMODEL_CAPTURE_PARTS,
    COSTMODEL_CAPTURE_STEP
};
enum costmodel_capture costmodel_capture (const struct workload_model *m,
                                          const struct workload_job *j,
                                          const struct workload_config *c,
                                          const struct workload_profile *p,
                                          const struct topology_gpu_type *t);

/** FLOP/s of matrix products in this precision: a type without bf16 runs at fp16's rate;
 *  0 where the type cannot run it (fp8, fp4, tf32). */
double costmodel_matrix_rate (const struct topology_gpu_type *t,
                              enum workload_precision precision);

/** Note a type, or all of a cluster's, that run at fp16's rate for want of bf16.
 *  @return does it? */
bool costmodel_note_type (const struct topology_gpu_type *t,
                          enum workload_precision precision, struct notes *notes);
void costmodel_note_types (const struct topology_cluster *c,
                           enum workload_precision precision, struct notes *notes);

/** Tiles and waves of the matrix products, attention, a roofline for the rest, and a
 *  floor of launches (docs/time.md, "Compute").  The type must be able to run the
 *  precision. */
void costmodel_compute (const struct workload_model *m, const struct workload_job *j,
                        const struct workload_config *c, const struct workload_profile *p,
                        const struct topology_gpu_type *t, struct costmodel_compute *out);

/** All of a configuration that decides what its layers, embedding and head take. */
struct costmodel_compute_key {
    int tp, cp, ep, etp, micro_batch, sequence_parallel, recompute, recompute_layers,
        recompute_modules;
    int pipeline; /* of several stages? */
    int zero;     /* over 0? */
    int autocast; /* of whole weights? */
    /* What is offloaded; then the ZeRO stage itself, and of what crosses the host's link. */
    int offload, dense_shards, expert_shards, several; /* several micro-batches? */
};
struct costmodel_compute_key costmodel_compute_key (const struct workload_job *j,
                                                    const struct workload_config *c,
                                                    const struct workload_profile *p);
size_t costmodel_compute_hash (const struct costmodel_compute_key *key);

/** costmodel_compute in two steps: what configurations of one key have in common, and the rest, the
 *  optimizer's steps and the slowest GPU's factor.
 *  @param[in,out] k  as the first step leaves it */
void costmodel_compute_alike (const struct workload_model *m,
                              const struct workload_job *j,
                              const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct topology_gpu_type *t,
                              struct costmodel_compute *k);
void costmodel_compute_rest (const struct workload_model *m, const struct workload_job *j,
                             const struct workload_config *c,
                             const struct workload_profile *p,
                             const struct topology_gpu_type *t,
                             struct costmodel_compute *k);

/** How much longer the slowest of a configuration's GPUs takes than the slowest of eight, where
 *  compute is the GPU type's: GPUs of one type differ, and a step waits for the slowest.  The mean
 *  of the largest of n normal numbers is about sqrt (2 ln n) of their spread above theirs
 *  (docs/formulas.md, T23).  1 in profiles with compute constants of their own; every time of
 *  costmodel_compute has this factor. */
double costmodel_slowest (const struct workload_profile *p,
                          const struct workload_degrees *d);

/** In a model with a pattern, make dense and expert the mean of the layers that they stand for,
 *  for splits that look at numbers of layers alone. */
void costmodel_untold_mean (const struct workload_model *m, struct costmodel_compute *k);

/** Lower every member of `least` to what k takes on a GPU of that speed, where that is less.
 *  @param[in] first  least holds nothing yet: take all */
void costmodel_compute_least (const struct costmodel_compute *k, double speed, bool first,
                              struct costmodel_compute *least);

/** One micro-batch on one stage. */
struct costmodel_stage_time {
    double fwd_s, back_s; /* back with recomputation */
    double weight_s;      /* of back: what zero-bubble schedules put off */
};

/** What a stage takes for one micro-batch on one GPU at speed 1, without communication. */
void costmodel_stage_compute (const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct costmodel_compute *k,
                              const struct workload_stage *held,
                              struct costmodel_stage_time *out);

/** Model FLOPs of one step without recomputation, attention counted in full: 6 per matmul
 *  parameter that a token meets + 12 L s a d per token (Chowdhery et al., arXiv
 *  2204.02311, appendix B), what MFU is measured with. */
double costmodel_model_flop (const struct workload_model *m,
                             const struct workload_job *j);
/** The same of the products that run: with adapters weights are frozen and have no gradients, so
 *  that there are 4 per parameter.  Estimates' MFU is measured with it. */
double costmodel_trained_flop (const struct workload_model *m,
                               const struct workload_job *j);

/* ---- the schedule ---- */

/** Times of one pipeline, of one micro-batch each. */
struct costmodel_pipeline {
    int stages, microbatches;
    int chunks; /* of layers on every stage; 1 unless interleaved or V */
    const double *fwd_s, *back_s; /* [chunks * stages], chunk after chunk */
    const double *weight_s; /* the same: the part of back_s that zero-bubble schedules
                                     put off; may be NULL for others */
    const double *send_s, *return_s; /* [stages] boundary i: i -> i+1, i+1 -> i; the last
                                        one is from the last stage to the first */
    bool blocking;                   /* a stage waits until what it sends has arrived */
};

/** What a stage did and when. */
struct costmodel_event {
    int stage, chunk, micro;
    enum workload_operation what;
    double start_s, end_s;
    int number; /* of the stage's chunk along a micro-batch's way forward, from 0 */
    int from,
        to; /* stages that its input came from and its output is sent to; -1: none */
    double arrive_s; /* when the output is there */
};

/** Sees every event of a pipeline that is played out. */
struct costmodel_watch {
    void (*see) (void *context, const struct costmodel_event *e);
    void *context;
};

/** Play a schedule out, operation by operation.
 *
 *  A forward waits for the stage before, a backward for the stage after, a stage for its
 *  own last operation.
 *
 *  Where the order follows from the times, these are rounded up to multiples of 2^-53 of more than
 *  all operations take one after another, so that no choice hangs on rounding.
 *
 *  @param[in]  skip   whole periods of such orders, without a change in any digit
 *  @param[out] end_s  [stages] when each stage ends its last backward
 *  @param      watch  with it nothing is skipped; may be NULL
 *  @return false when out of memory */
bool costmodel_play (enum workload_schedule s, const struct costmodel_pipeline *p,
                     bool skip, double *end_s, const struct costmodel_watch *watch);

/** When does each stage end its last backward?
 *
 *  1F1B, GPipe, interleaved 1F1B (of a multiple of `stages` micro-batches), v-half and v-min by
 *  their recurrences, all but GPipe with whole periods skipped once the state repeats but for a
 *  shift (equal to playing all out, to rounding); the others by costmodel_play, which skips too.
 *
 *  @param[in]  skip   false plays every micro-batch out
 *  @param[out] end_s  [stages]; INFINITY when out of memory
 *  @param      work   [COSTMODEL_SCHEDULE_WORK (stages, chunks)]
 */
void costmodel_schedule (enum workload_schedule s, const struct costmodel_pipeline *p,
                         bool skip, double *end_s, double *work);

/** Doubles of scratch that it needs. */
#define COSTMODEL_SCHEDULE_WORK(stages, chunks) \
    (2 * ((stages) * (stages) * (1 + (chunks)) + 9 * (stages) + 1))

/* ---- a placed plan ---- */

/** Seconds of one step, along the path of the stage that ends last; the parts sum to
 *  step_s. */
struct costmodel_breakdown {
    double compute_s; /* forward and backward of its micro-batches */
    double tp_s;      /* tensor-parallel communication */
    double cp_s;      /* context-parallel communication not hidden by attention */
    double ep_s;      /* expert-parallel all-to-alls not hidden by compute */
    double bubble_s;  /* waiting that would remain if sends took no time */
    double pp_s;      /* the rest of the waiting */
    double dp_s;      /* gradient and weight synchronisation */
    double optimizer_s;
};

/** Its parts in their order, as files and people call them. */
struct costmodel_part {
    const char *key, *words;
    size_t at; /* where its seconds are in a breakdown */
};
#define COSTMODEL_PARTS 8
extern const struct costmodel_part costmodel_parts[COSTMODEL_PARTS];

/** Seconds of part k. */
static inline double costmodel_part_s (const struct costmodel_breakdown *b, int k)
{
    return *(const double *) (const void *) ((const char *) b + costmodel_parts[k].at);
}
/** b's parts less those of another. */
void costmodel_breakdown_less (struct costmodel_breakdown *b,
                               const struct costmodel_breakdown *of);

/** A link that had to be used though nobody measured it. */
struct costmodel_unmeasured {
    int src_gpu, dst_gpu; /* cluster-wide numbers */
    const char *use;      /* "tp", "cp", "pp", "dp" */
};

struct costmodel_estimate {
    enum costmodel_kind kind;
    double step_s;
    double mfu; /* model FLOPs / (step x the used GPUs' peaks) */
    double tokens_per_s;
    struct costmodel_breakdown part;
    double ep_hidden_s; /* all-to-alls under compute; not in the parts */
    int stage;          /* that ends last */
    int replica;        /* of that stage, the slowest */
    enum workload_all_reduce tp_by, dp_by; /* how its tensor-parallel collectives and its
                                              gradients' go */
    int n_unmeasured; /* links, each counted once per group and direction */
    struct costmodel_unmeasured *unmeasured; /* [n_unmeasured]; release with free */
    /* Where some of the cluster's links are estimates (topology_link_estimate_error), else 0: */
    int links_used;        /* directed, each once; without those inside nodes whose links
                              are all alike */
    int links_estimated;   /* of these */
    double estimate_error; /* the largest held-out error of their estimates */
};

/** Price a placement from scratch, as the problem's kind does.
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

/** The link between nodes that holds the step up most: of the slowest that the placement
 *  uses, the one whose pair at the median would save most. */
struct costmodel_binding {
    int src_gpu, dst_gpu;
    const char *use; /* "tp", "cp", "ep", "pp", "dp" */
    double bytes_per_s, median_bytes_per_s;
    double step_s; /* with that pair at the median */
};

/** What a placement uses that single figures describe. */
enum costmodel_slow {
    COSTMODEL_BETWEEN, /* a link between nodes; its median is that of all of them */
    COSTMODEL_INSIDE,  /* a link inside a node; topology_inside_typical */
    COSTMODEL_TOTALS, /* what all GPUs of two nodes reach together; topology_pair_typical */
};

/** @param[in]  step_s  of costmodel_estimate
 *  @param[out] found   false when no link used is slower than the median by 1 %, or
 *                      bringing it there saves nothing
 *  @return as costmodel_estimate */
enum status costmodel_find_binding (const struct costmodel_problem *p,
                                    const int *gpu_of_rank, double step_s,
                                    struct costmodel_binding *out, bool *found,
                                    struct error *err);

/** The slowest links of one sort that a placement uses, the lowest share of its median first,
 *  there and back counted apart; none in clusters of so many nodes that their median takes long.
 *
 *  @param[out] out  step_s is the step as it is
 *  @return as costmodel_estimate */
#define COSTMODEL_SLOW_LINKS 12
enum status costmodel_slow_links (const struct costmodel_problem *p,
                                  const int *gpu_of_rank, enum costmodel_slow sort,
                                  struct costmodel_binding out[COSTMODEL_SLOW_LINKS],
                                  int *n, struct error *err);

/** The step if flows that go at the same time shared no way out of their nodes: how far it is
 *  from the step is what links cost because they are used together.
 *
 *  @return as costmodel_estimate */
enum status costmodel_unshared_step (const struct costmodel_problem *p,
                                     const int *gpu_of_rank, double *step_s,
                                     struct error *err);

/** The plan file's `estimate.binding_link`; null when there is none.  A new reference. */
json_t *costmodel_binding_to_json (const struct topology_cluster *c,
                                   const struct costmodel_binding *b, bool found);

/** Append the step as Chrome trace events (JSON; opens in Perfetto): a process per replica
 *  with a track per stage and one per link between stages, flows from the operation that sends
 *  over the link to the one that waits, then data-parallel synchronisation and the optimiser.
 *
 *  @return as costmodel_estimate; ST_INVALID for more than 5 million events */
enum status costmodel_trace (const struct costmodel_problem *p, const int *gpu_of_rank,
                             struct text *out, struct error *err);

/** What follows a stage's schedule, in this order. */
struct costmodel_tail {
    double start_s; /* when the slowest replica's stage has ended */
    double sync_s, optimizer_s;
};

/** See every event of one replica's schedule, and what follows it.
 *
 *  @param[in]  replica  from 0
 *  @param[out] tail     [pp]
 *  @return as costmodel_estimate */
enum status costmodel_watch_replica (const struct costmodel_problem *p,
                                     const int *gpu_of_rank, int replica,
                                     const struct costmodel_watch *watch,
                                     struct costmodel_tail *tail, struct error *err);

/** The cluster-wide GPU of each of a plan's ranks.
 *
 *  @param[out] gpu  [n_ranks]
 *  @return ST_OK, ST_NOMEM, or ST_INVALID naming the rank whose node or GPU the cluster
 *          does not have
 */
enum status costmodel_plan_gpus (const struct workload_plan *p,
                                 const struct topology_cluster *c, int *gpu,
                                 struct error *err);

/** A plan's own problem, by the critical path. */
static inline struct costmodel_problem
costmodel_plan_problem (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile)
{
    return (struct costmodel_problem){.model = &p->model,
                                      .job = &p->job,
                                      .config = &p->config,
                                      .profile = profile,
                                      .cluster = c,
                                      .layers = p->layers_per_stage,
                                      .chunks = p->layers_per_chunk};
}

/** A breakdown's seconds by their keys.  A new reference. */
json_t *costmodel_breakdown_to_json (const struct costmodel_breakdown *b);
/** The plan file's `estimate`, without the search's own keys.  A new reference. */
json_t *costmodel_estimate_to_json (const struct costmodel_estimate *e);

#endif
