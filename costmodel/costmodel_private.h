/* Shared by the files of costmodel/ alone: the pieces that both the price from scratch
 * (estimate.c) and the price that follows changes (state.c) are made of. */
#ifndef COSTMODEL_COSTMODEL_PRIVATE_H
#define COSTMODEL_COSTMODEL_PRIVATE_H

#include <stdint.h>

#include "base/extremes.h"
#include "costmodel/costmodel.h"

#define TYPES_MAX 64

/** A slot, or a group's place, whose GPUs are on several nodes. */
#define SPREAD (-1)

/** What one GPU reaches in practice. */
struct machine {
    double matrix_rate; /* FLOP/s of large, aligned products */
    double memory_rate; /* bytes/s of elementwise kernels */
    double multiprocessors;
    double element_bytes; /* of what is multiplied */
};

/** Seconds of `batch` products (m x k) (k x n): the best tile's whole waves, in part
 *  (docs/time.md), but at least the time to move the operands. */
double product_s (const struct machine *g, double batch, double m, double n, double k);

/** Interleaved 1F1B of p stages, 2 or more, and a multiple of p micro-batches.
 *  @param skip  whole periods once the state repeats but for a shift
 *  @param work  [COSTMODEL_SCHEDULE_WORK (stages, chunks)] */
void interleaved_play (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work);

struct use_log;

/** Everything of a problem that does not depend on the placement. */
struct terms {
    struct costmodel_problem problem;
    int tp, cp, dp, pp, microbatches;
    int slot; /* tp * cp: ranks of one stage of one replica */
    int world;
    struct costmodel_volume volume;
    struct workload_stage *held;          /* [pp] */
    struct workload_stage_params *params; /* [pp] */
    struct costmodel_stage_time *stage;   /* [pp * n_types] at speed 1 */
    bool plain;        /* one kind of link inside every node, one between any two */
    bool limited;      /* somewhere flows share what a node reaches */
    int *type_of_node; /* [n_nodes] */
    int n_types;
    const struct topology_gpu_type *type[TYPES_MAX];
    struct costmodel_compute compute[TYPES_MAX]; /* by type; unset when refused[] */
    bool refused[TYPES_MAX];                     /* the type cannot run the precision */
    struct slow_links *slow; /* where links in use are noted, or NULL */
};

/** The slowest links between nodes that a placement uses, slowest first. */
#define SLOW_LINKS 12
struct slow_links {
    struct costmodel_binding link[SLOW_LINKS];
    int n;
};

/** The link from src to dst, as the problem takes it; noted as `use` in log when nobody
 *  measured it, and then counted. */
struct topology_link link_between (const struct terms *t, int src, int dst,
                                   const char *use, struct use_log *log, int *unmeasured);

/** @return ST_OK, ST_NOMEM, or ST_INVALID for more than TYPES_MAX types */
enum status terms_init (struct terms *t, const struct costmodel_problem *p,
                        struct error *err);
void terms_release (struct terms *t);

/** Scratch over nodes and group members. */
struct scratch {
    int *share;    /* [n_nodes] groups or flows that use a node's way out; all 0 between
                          calls */
    int *share_in; /* [n_nodes] the same, way in */
    int *first;    /* [n_nodes] -1 between calls */
    int *order;    /* [n_nodes] nodes of a group in order of first appearance */
    int *count;    /* [n_nodes] */
    int *lead;     /* [n_nodes] their first members */
    int *member;   /* [world] */
    int *next;     /* [n_nodes] */
    int *shared;   /* [n_nodes] nodes with a share */
    int n_shared;
    int *group, *times; /* [world] kinds of groups */
};
enum status scratch_init (struct scratch *s, const struct terms *t, struct error *err);
void scratch_release (struct scratch *s);

/** Unmeasured links that were used, for the plan's list; and all, where it matters which of
 *  them are estimates. */
struct use_log {
    struct costmodel_unmeasured *list;
    int n;
    bool all;       /* note every link */
    uint64_t *used; /* [n_used] keys of links, some of them several times */
    size_t n_used;
    bool failed; /* out of memory */
};

/** Count the links of a log that are estimates. */
void use_log_count (struct use_log *log, const struct topology_cluster *c,
                    struct costmodel_estimate *e);
void use_log_release (struct use_log *log);

/** Note one link; log may be NULL. */
void use_log_add (struct use_log *log, int src, int dst, const char *use);

/** A ring over GPUs gpu[0], gpu[stride], ... gpu[(n-1) stride] as NCCL lays it: node by
 *  node in the order of first appearance, with as many lanes between two nodes as both
 *  have members, and inside a node from member to member.
 *
 *  @param[in] node   [n] the members' nodes, SPREAD where not known; or NULL
 *  @param[in] share  [n_nodes] how many such groups share each node's way out
 *  @param     log    where unmeasured links are listed, as `use`; may be NULL
 */
struct costmodel_ring ring_of (const struct terms *t, const int *gpu, int n, int stride,
                               const int *node, const int *share, struct scratch *s,
                               struct use_log *log, const char *use);

/** Seconds of one all-to-all of an expert-parallel group from gpu[0] on, there or back: one
 *  peer after another over each GPU's own links, under what a node reaches when s->share
 *  groups leave it. */
double alltoall_of (const struct terms *t, const int *gpu, struct workload_group ep,
                    struct scratch *s, struct use_log *log, int *unmeasured);

/** One stage of one replica. */
struct slot_time {
    double fwd_s, back_s;    /* one micro-batch, everything included */
    double weight_s;         /* of back_s: what zero-bubble schedules put off */
    double tp_s, cp_s, ep_s; /* parts of fwd_s and back_s together */
    double ep_hidden_s;      /* all-to-alls under compute, in neither */
    double
        busy_s[2]; /* in fwd_s and back_s, hidden or not: its communication inside nodes,
                         and over its node's way out */
    enum workload_all_reduce tp_by;              /* all-reduces of the slowest group */
    struct costmodel_stage_time embedding, head; /* parts that belong to one chunk */
    int unmeasured;
};

/** Does the group of n GPUs lie inside one node? */
bool inside_node (const struct terms *t, const int *gpu, int n);

/** Add `by` to the share of every node of every TP group that crosses nodes, of `groups`
 *  groups in a row.  @return is there any? */
bool change_tp_shares (const struct terms *t, const int *gpu, int groups, int *share,
                       int by);

/** Price one slot: compute and tensor parallelism.
 *
 *  @param[in] share  [n_nodes] TP groups of the stage that cross nodes */
void slot_price (const struct terms *t, const int *gpu, int stage, int d,
                 const int *share, struct scratch *s, struct use_log *log,
                 struct slot_time *out);

/** Does a stage exchange tokens with experts? */
static inline bool has_experts (const struct terms *t, int stage)
{
    return t->problem.config->deg.ep > 1 && t->held[stage].expert > 0;
}

/** Are a stage's slots priced together, since all of them use the nodes' ways at the same
 *  time? */
static inline bool is_joint (const struct terms *t, int stage)
{
    return t->cp > 1 || has_experts (t, stage);
}

/** Price stage `stage` of every replica.
 *
 *  @param[out] out  [dp], `apart` entries from one replica to the next
 *  @return unmeasured links */
int stage_price (const struct terms *t, const int *gpu, int stage, struct scratch *s,
                 struct use_log *log, struct slot_time *out, int apart);

/** Do activations go from stage i to the next: is it not the last one, or do chunks go
 *  round? */
static inline bool has_boundary (const struct terms *t, int stage)
{
    return stage < t->pp - 1 ||
           (t->pp > 1 && t->problem.config->schedule == SCHEDULE_INTERLEAVED &&
            t->problem.config->deg.vpp > 1);
}

/** Price the sends between stage a and stage b of every replica, all replicas sending at
 *  the same time.
 *
 *  @param[out] ab_s, ba_s  [dp] seconds a -> b and b -> a, stride apart
 *  @return unmeasured links
 */
int boundary_price (const struct terms *t, const int *gpu, int a, int b, double bytes,
                    double *ab_s, double *ba_s, int stride, struct scratch *s,
                    struct use_log *log, const char *use);

/** Are all links between two slots alike, so that one flow stands for all? */
bool uniform_flows (const struct terms *t, const int *src, const int *dst);

/** Add `by` to the flows out of and into each node of one slot's sends to another. */
void change_flow_shares (const struct terms *t, const int *src, const int *dst,
                         int *share, int *share_in, int by);

/** Price the sends between two slots under the flows of all replicas.
 *  @return unmeasured links */
int sends_price (const struct terms *t, const int *src, const int *dst, double bytes,
                 const int *share, const int *share_in, struct use_log *log,
                 const char *use, double *there, double *back);

/** Seconds of a stage's gradient and weight synchronisation over data parallelism.
 *  INFINITY when a link has no price.
 *
 *  @param[in] slot_node  [dp] nodes of the stage's slots, or SPREAD; or NULL */
double sync_price (const struct terms *t, const int *gpu, int stage, const int *slot_node,
                   struct scratch *s, struct use_log *log, int *unmeasured);

/** How the collectives of its dense parameters' first group go. */
enum workload_all_reduce sync_by (const struct terms *t, const int *gpu, int stage,
                                  struct scratch *s);

/** What of its synchronisation a stage waits for, beside its slowest slot: it hides under
 *  what the slowest slot does while no slot takes links of the kind that it needs.
 *  @param slot  as stage_price leaves it */
double exposed_price (const struct terms *t, const int *gpu, int stage, double sync_s,
                      const struct slot_time *slot, int apart);

/** Seconds of the optimiser on a stage: its slowest GPU. */
double optimizer_price (const struct terms *t, const int *gpu, int stage);

/** Play the pipeline of one replica.
 *
 *  @param[in]  slot          [pp] of the replica
 *  @param[in]  send, return  [pp] as in struct costmodel_pipeline
 *  @param[in]  skip          whole periods
 *  @param[in]  watch         with it everything is played out; may be NULL
 *  @param[out] end_s         [pp]
 *  @param      work          [pipeline_work (t)] */
void pipeline_play (const struct terms *t, const struct slot_time *slot,
                    const double *send_s, const double *return_s, bool skip,
                    const struct costmodel_watch *watch, double *end_s, double *work);
int pipeline_work (const struct terms *t);

/** The same for two replicas at once, with whole periods skipped: arrays of two. */
void pipeline_play_two (const struct terms *t, const struct slot_time *const *slot,
                        const double *const *send_s, const double *const *return_s,
                        double *const *end_s, double *work);

/** Number of the first rank of a slot. */
static inline int slot_rank (const struct terms *t, int stage, int d)
{
    return (stage * t->dp + d) * t->slot;
}

/* Everything of one placement, replica-major so that a pipeline's times are adjacent. */
struct priced {
    const struct terms *t;
    struct slot_time *slot;    /* [dp * pp] */
    double *send_s, *return_s; /* [dp * pp] */
    double *end_s;             /* [dp * pp] */
    double *tail_s;            /* [pp] synchronisation, tied embedding */
    double *optimizer_s;       /* [pp] */
    double *work;
};

/* ---- published models (published.c): the problem's kind is one ---- */

/** What a slot's micro-batch takes there. */
double published_compute_s (const struct terms *t, const struct slot_time *slot);

/** One micro-batch's sends from each rank of a slot to its peer.
 *  @param[out] lane_s  [slot] @return unmeasured links */
int published_sends (const struct terms *t, const int *src, const int *dst,
                     struct use_log *log, double *lane_s);

/** Gradients of a stage. */
double published_sync_s (const struct terms *t, const int *gpu, int stage,
                         struct scratch *s, struct use_log *log, int *unmeasured);

/** The step's parts.
 *  @param[in] compute_s  [pp] the slowest slot's
 *  @param[in] sends_s    down the slowest pipeline
 *  @param[in] sync_s     [pp] */
struct costmodel_breakdown published_step (const struct terms *t, const double *compute_s,
                                           double sends_s, const double *sync_s);

/** Their sum. */
static inline double published_sum_s (const struct costmodel_breakdown *b)
{
    return b->compute_s + b->bubble_s + b->pp_s + b->dp_s;
}

/** All of one pricing. */
struct pricing {
    struct terms t;
    struct scratch s;
    struct priced x;
    struct use_log log;
};

/** Price the parts of a placement.
 *  @param slow  where the slowest links in use are noted, or NULL
 *  @param[out] q  release with pricing_release, also after a failure
 *  @return as costmodel_estimate */
enum status pricing_init (struct pricing *q, const struct costmodel_problem *p,
                          const int *gpu_of_rank, struct slow_links *slow,
                          struct error *err);
void pricing_release (struct pricing *q);

/** The estimate by a published model, without its rates.  @return ST_OK or ST_NOMEM */
enum status published_price (struct pricing *q, const int *gpu,
                             struct costmodel_estimate *e, struct error *err);

/** costmodel_estimate that also notes the slowest links in use. */
enum status estimate_noting (const struct costmodel_problem *p, const int *gpu_of_rank,
                             bool skip, struct slow_links *slow,
                             struct costmodel_estimate *out, struct error *err);

#endif
