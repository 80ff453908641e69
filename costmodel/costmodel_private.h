/* Shared by the files of costmodel/ alone: the pieces that both the price from scratch
 * (estimate.c) and the price that follows changes (state.c) are made of. */
#ifndef COSTMODEL_COSTMODEL_PRIVATE_H
#define COSTMODEL_COSTMODEL_PRIVATE_H

#include <math.h>
#include <stdint.h>

#include "base/extremes.h"
#include "costmodel/prices.h"
#include "topology/topology.h"

#define TYPES_MAX 64

/** What one GPU reaches in practice. */
struct machine {
    double wave_s;      /* start of one wave of tiles */
    double matrix_rate; /* FLOP/s of large, aligned products */
    double memory_rate; /* bytes/s of elementwise kernels */
    double multiprocessors;
    double element_bytes; /* of what is multiplied */
};

/** Seconds of `batch` products (m x k) (k x n): the best tile's whole waves, in part
 *  (docs/time.md), but at least the time to move the operands. */
double product_s (const struct machine *g, double batch, double m, double n, double k);

/** The same of weights' gradients, where k counts tokens: inputs lie in memory by rows of m
 *  and outputs' gradients by rows of n, so that how many tokens there are aligns nothing. */
double weights_product_s (const struct machine *g, double batch, double m, double n,
                          double k);

/** Has every number of a schedule's state grown by one amount since then?  If so, that amount. */
static inline bool shifted (const double *now, const double *then, int n, double *shift)
{
    double d = now[0] - then[0], tol = 1e-13 * fabs (now[0]) + 1e-300;

    for (int i = 1; i < n; i++)
        if (!(fabs (now[i] - then[i] - d) <= tol)) /* also when infinite */
            return false;
    *shift = d;
    return true;
}

/** Interleaved 1F1B of p stages, 2 or more, and a multiple of p micro-batches.
 *  @param skip  whole periods once the state repeats but for a shift
 *  @param work  [COSTMODEL_SCHEDULE_WORK (stages, chunks)] */
void interleaved_play (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work);

/** A schedule of a pattern of slots.
 *  @param skip  as above
 *  @param work  [COSTMODEL_SCHEDULE_WORK (stages, 2)]
 *  @return false when out of memory, or where two operations of the pattern share a slot */
bool pattern_play (enum workload_schedule s, const struct costmodel_pipeline *p,
                   bool skip, double *end_s, double *work);

struct use_log;

/** Everything of a problem that does not depend on the placement, and room to price one. */
struct terms {
    struct costmodel_problem problem;
    int tp, cp, dp, pp, microbatches;
    int slot; /* tp * cp: ranks of one stage of one replica */
    int world;
    const int *gpu; /* [world] the placement in hand */
    struct costmodel_volume volume;
    struct workload_stage *held;          /* [pp] */
    struct workload_stage_params *params; /* [pp] */
    double *tp_fwd, *tp_back;             /* [pp] operations of tensor parallelism */
    struct costmodel_stage_time *stage;   /* [pp * n_types] at speed 1 */
    bool plain;         /* one kind of link inside every node, one between any two */
    bool limited;       /* somewhere flows share what a node reaches */
    const int *node_of; /* [n_gpus] the cluster's */
    int *type_of_node;  /* [n_nodes] */
    int n_types;
    const struct topology_gpu_type *type[TYPES_MAX];
    struct costmodel_compute compute[TYPES_MAX]; /* by type; unset when refused[] */
    bool refused[TYPES_MAX];                     /* the type cannot run the precision */
    struct scratch *scratch;
    struct use_log *log;     /* where unmeasured links are listed, or NULL */
    struct slow_links *slow; /* where links in use are noted, or NULL */
};

/** The slowest links of one sort that a placement uses, the lowest share of its median first. */
struct slow_links {
    struct costmodel_binding link[COSTMODEL_SLOW_LINKS];
    int n;
    enum costmodel_slow sort;
    double median_bytes_per_s;      /* but for COSTMODEL_INSIDE */
    struct topology_inside *inside; /* for it alone; borrowed */
    bool directed;                  /* there and back are two */
};

/** The link from src to dst, as the problem takes it; listed as `use` when nobody measured
 *  it, and then counted. */
struct topology_link link_between (const struct terms *t, int src, int dst,
                                   const char *use, int *unmeasured);

/** @return ST_OK, ST_NOMEM, or ST_INVALID for more than TYPES_MAX types */
enum status terms_init (struct terms *t, const struct costmodel_problem *p,
                        struct error *err);
void terms_release (struct terms *t);

/** Let a stage hold other layers: its parameters and compute; its slots are not repriced. */
void terms_hold (struct terms *t, int stage, const struct workload_stage *held);

/** All-to-alls of expert groups beside each other: tokens go to their experts and back, in each
 *  direction.  A group spans replicas, so that the slowest one holds up its whole stage. */
struct exchange_row {
    double once_s; /* the slowest, one way */
    int unmeasured;
    bool leaves; /* the row leaves a node */
};

/** Two rows as one. */
struct exchange_row exchange_add (struct exchange_row a, struct exchange_row b);

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
    /* The last row of expert groups that was priced inside a node, and that node's links. */
    struct exchange_row exchange;
    const struct topology_links *exchange_of;
};
/** @return NULL when out of memory */
struct scratch *scratch_create (int nodes, int world);
void scratch_destroy (struct scratch *s);

/** A group's GPUs: gpu[0], gpu[stride], ... gpu[(n-1) stride].  Where the groups beside it
 *  are meant too, they begin at gpu[1] to gpu[stride-1]. */
struct members {
    const int *gpu;
    int n, stride;
};

static inline struct members members_of (const int *gpu, struct workload_group g)
{
    return (struct members){gpu, g.size, g.stride};
}

static inline const int *member_at (const struct members *m, int i)
{
    return m->gpu + (size_t) i * (size_t) m->stride;
}

static inline int member_node (const struct terms *t, const struct members *m, int i)
{
    return t->node_of[*member_at (m, i)];
}

/** The j-th of the groups beside each other. */
static inline struct members members_beside (const struct members *m, int j)
{
    return (struct members){m->gpu + j, m->n, m->stride};
}

/** The row of groups after that one. */
static inline struct members next_row (struct members row)
{
    row.gpu += (size_t) row.n * (size_t) row.stride;
    return row;
}

/** The groups beside each other that run through the same nodes in the same order; a kind may come
 *  out twice. */
struct kinds {
    int n;
    int *group, *times; /* [n] one of each, and how many they are; in scratch */
};
struct kinds kinds_of (const struct terms *t, const struct members *m);

/** Add the groups that leave a node to the shares of the nodes that they touch; those of `count`
 *  rows that send at the same time; and no node is shared any more. */
void add_shares (const struct terms *t, const struct members *m,
                 const struct kinds *kinds);
void add_row_shares (const struct terms *t, struct members row, int count);
void clear_shares (struct scratch *s);

/** Count the members on each node, nodes in order of first appearance: into s->order,
 *  s->lead (their first members), s->count; s->first says where in these, until `bucketed`
 *  has cleared it.  @return nodes */
int bucket (const struct terms *t, const struct members *m);
void bucketed (const struct terms *t, int nodes);

/** Between the two: all members, node by node, into s->member. */
void list_members (const struct terms *t, const struct members *m, int nodes);

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

/** A ring as NCCL lays it: node by node in the order of first appearance, with as many lanes
 *  between two nodes as both have members, and inside a node from member to member.
 *
 *  @param[in] share  [n_nodes] how many such groups share each node's way out
 *  @param[in] use    what unmeasured links are listed as
 */
struct costmodel_ring ring_of (const struct terms *t, const struct members *m,
                               const int *share, const char *use);

/** Seconds of one all-to-all of an expert-parallel group, there or back: one peer after
 *  another over each GPU's own links, under what a node reaches when s->share groups leave
 *  it. */
double alltoall_of (const struct terms *t, const struct members *ep, int *unmeasured);

/** One stage of one replica. */
struct slot_time {
    double fwd_s, back_s;    /* one micro-batch, everything included */
    double weight_s;         /* of back_s: what zero-bubble schedules put off */
    double tp_s, cp_s, ep_s; /* parts of fwd_s and back_s together */
    double ep_hidden_s;      /* all-to-alls under compute, in neither */
    /* in fwd_s and back_s, hidden or not: its communication inside nodes, and over its node's
     * way out */
    double busy_s[2];
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

/** GPUs of a slot; those of a stage's slots follow each other. */
static inline const int *slot_gpus (const struct terms *t, int stage, int d)
{
    return t->gpu + (size_t) (stage * t->dp + d) * (size_t) t->slot;
}

/** A stage's groups of a kind. */
static inline struct members stage_groups (const struct terms *t, int stage,
                                           enum workload_group_kind kind)
{
    return members_of (slot_gpus (t, stage, 0),
                       workload_group_of (&t->problem.config->deg, kind));
}

/** Price one slot: compute and tensor parallelism.
 *
 *  @param[in] share  [n_nodes] TP groups of the stage that cross nodes */
void slot_price (const struct terms *t, int stage, int d, const int *share,
                 struct slot_time *out);

/** A stage's layers with experts, those of multi-token prediction included. */
static inline int stage_experts (const struct terms *t, int stage)
{
    const struct workload_stage *held = &t->held[stage];

    return held->expert + workload_mtp_experts (t->problem.model, held->head);
}

/** Does a stage exchange tokens with experts? */
static inline bool has_experts (const struct terms *t, int stage)
{
    return t->problem.config->deg.ep > 1 && stage_experts (t, stage) > 0;
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
 *  @return unmeasured links of its expert groups, which are in no slot */
int stage_price (const struct terms *t, int stage, struct slot_time *out, int apart);

/** Do activations go from stage i to the next: is it not the last one, or do chunks go
 *  round? */
static inline bool has_boundary (const struct terms *t, int stage)
{
    return stage < t->pp - 1 ||
           (t->pp > 1 && t->problem.config->schedule == SCHEDULE_INTERLEAVED &&
            t->problem.config->deg.vpp > 1);
}

/** Are all links between two slots alike, so that one flow stands for all? */
bool uniform_flows (const struct terms *t, const int *src, const int *dst);

/** Add `by` to the flows out of and into each node of one slot's sends to another. */
void change_flow_shares (const struct terms *t, const int *src, const int *dst,
                         int *share, int *share_in, int by);

/** Price the sends between two slots under the flows of all replicas.
 *  @param[in] tied  tied embeddings' gradients, not activations
 *  @return unmeasured links */
int sends_price (const struct terms *t, const int *src, const int *dst, bool tied,
                 const int *share, const int *share_in, double *there, double *back);

/** What synchronisation takes, and of it what nothing hides. */
struct sync_time {
    double s, bare_s;
};
/** Of a stage's gradients and weights over data parallelism.  INFINITY when a link has no price. */
struct sync_time sync_price (const struct terms *t, int stage, int *unmeasured);

/** How the collectives of its dense parameters' first group go. */
enum workload_all_reduce sync_by (const struct terms *t, int stage);

/** Compute beside which a stage's synchronisation can hide. */
double hiding_s (const struct terms *t, int stage, const struct slot_time *slot,
                 int apart);

/** What of its synchronisation a stage waits for, beside its slowest slot: it hides under
 *  what the slowest slot does while no slot takes links of the kind that it needs.
 *  @param slot  as stage_price leaves it */
double exposed_price (const struct terms *t, int stage, struct sync_time sync,
                      const struct slot_time *slot, int apart);

/** Seconds of the optimiser on a stage: its slowest GPU. */
double optimizer_price (const struct terms *t, int stage);

/** The pipelines of a placement: those of one replica, or of all, replica after replica. */
struct replicas {
    struct slot_time *slot; /* [dp * pp] */
    double *send_s,
        *return_s; /* [dp * pp] as in struct costmodel_pipeline; after those of
                                  all replicas [dp] tied embeddings', last stage to first */
    double *end_s; /* [dp * pp] */
    double *work;  /* scratch */
};
/** @return ST_OK or ST_NOMEM; release it in any case */
enum status replicas_init (struct replicas *r, const struct terms *t, struct error *err);
void replicas_release (struct replicas *r);

/** Those from the d-th on. */
static inline struct replicas replicas_from (const struct replicas *r,
                                             const struct terms *t, int d)
{
    int at = d * t->pp;

    return (struct replicas){r->slot + at, r->send_s + at, r->return_s + at,
                             r->end_s + at, r->work};
}

/** Play the pipeline of the first replica into end_s.
 *
 *  @param[in] skip   whole periods
 *  @param[in] watch  with it everything is played out; may be NULL */
void pipeline_play (const struct terms *t, struct replicas r, bool skip,
                    const struct costmodel_watch *watch);

/** When the first replica's stages end at least, into end_s, in about a micro-batch's work.
 *  @return false where nothing is known of the schedule */
bool pipeline_least (const struct terms *t, struct replicas r);

/* ---- published models (published.c): the problem's kind is one ---- */

/** What a slot's micro-batch takes there. */
double published_compute_s (const struct terms *t, const struct slot_time *slot);

/** One micro-batch's sends from each rank of a slot to its peer.
 *  @param[out] lane_s  [slot] @return unmeasured links */
int published_sends (const struct terms *t, const int *src, const int *dst,
                     double *lane_s);

/** Their slowest sum down a replica, the lanes of each stage `apart` from those of the one before.
 */
double published_pipe_s (const struct terms *t, const double *lane_s, size_t apart);

/** Gradients of a stage. */
double published_sync_s (const struct terms *t, int stage, int *unmeasured);

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

/** Everything of one placement. */
struct pricing {
    struct terms t;
    struct use_log log;
    struct replicas r;
    double *tail_s;                   /* [pp] synchronisation, tied embedding */
    double *optimizer_s;              /* [pp] */
    double *zero_s, *without_sends_s; /* [pp] nothing; a replica's ends with such sends */
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
enum status published_price (struct pricing *q, struct costmodel_estimate *e,
                             struct error *err);

/** costmodel_estimate that also notes the slowest links in use. */
enum status estimate_noting (const struct costmodel_problem *p, const int *gpu_of_rank,
                             bool skip, struct slow_links *slow,
                             struct costmodel_estimate *out, struct error *err);

#endif
