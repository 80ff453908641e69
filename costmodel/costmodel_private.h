/* Shared by the files of costmodel/ alone: the pieces that both the price from scratch
 * (estimate.c) and the price that follows changes (state.c) are made of. */
#ifndef COSTMODEL_COSTMODEL_PRIVATE_H
#define COSTMODEL_COSTMODEL_PRIVATE_H

#include "costmodel/costmodel.h"

#define TYPES_MAX 64

/** Everything of a problem that does not depend on the placement. */
struct terms {
    struct costmodel_problem problem;
    int tp, cp, dp, pp, microbatches;
    int slot; /* tp * cp: ranks of one stage of one replica */
    int world;
    struct costmodel_volume volume;
    int *type_of_node; /* [n_nodes] */
    int n_types;
    const struct topology_gpu_type *type[TYPES_MAX];
    struct costmodel_compute compute[TYPES_MAX]; /* by type; unset when refused[] */
    bool refused[TYPES_MAX];                     /* the type cannot run the precision */
};

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
    int *member;   /* [world] */
    int *next;     /* [n_nodes] */
};
enum status scratch_init (struct scratch *s, const struct terms *t, struct error *err);
void scratch_release (struct scratch *s);

/** Unmeasured links that were used, for the plan's list. */
struct use_log {
    struct costmodel_unmeasured *list;
    int n, cap;
    bool failed; /* out of memory */
};

/** Note one link; log may be NULL. */
void use_log_add (struct use_log *log, int src, int dst, const char *use);

/** A ring over GPUs gpu[0], gpu[stride], ... gpu[(n-1) stride] as NCCL lays it: node by
 *  node in the order of first appearance, with as many lanes between two nodes as both
 *  have members, and inside a node from member to member.
 *
 *  @param[in] share  [n_nodes] how many such groups share each node's way out
 *  @param     log    where unmeasured links are listed, as `use`; may be NULL
 */
struct costmodel_ring ring_of (const struct terms *t, const int *gpu, int n, int stride,
                               const int *share, struct scratch *s, struct use_log *log,
                               const char *use);

/** One stage of one replica. */
struct slot_time {
    double fwd_s, back_s; /* one micro-batch, everything included */
    double tp_s, cp_s;    /* parts of both together */
    int unmeasured;
};

/** Price stage `stage` of replica `d`.  share counts the stage's TP groups that cross
 *  nodes, as count_tp_shares leaves it. */
void slot_price (const struct terms *t, const int *gpu, int stage, int d,
                 const int *share, struct scratch *s, struct use_log *log,
                 struct slot_time *out);

/** Count, per node, the TP groups of a stage that span several nodes; undo with
 *  clear_tp_shares.  @return true if there are any */
bool count_tp_shares (const struct terms *t, const int *gpu, int stage, int *share);
void clear_tp_shares (const struct terms *t, const int *gpu, int stage, int *share);

/** Price the sends between stage a and stage b of every replica, all replicas sending at
 *  the same time.
 *
 *  @param[out] ab_s, ba_s  [dp] seconds a -> b and b -> a, stride apart
 *  @return unmeasured links
 */
int boundary_price (const struct terms *t, const int *gpu, int a, int b, double bytes,
                    double *ab_s, double *ba_s, int stride, struct scratch *s,
                    struct use_log *log, const char *use);

/** Seconds of a stage's gradient and weight synchronisation over data parallelism.
 *  INFINITY when a link has no price. */
double sync_price (const struct terms *t, const int *gpu, int stage, struct scratch *s,
                   struct use_log *log, int *unmeasured);

/** Seconds of the optimiser on a stage: its slowest GPU. */
double optimizer_price (const struct terms *t, const int *gpu, int stage);

/** Number of the first rank of a slot. */
static inline int slot_rank (const struct terms *t, int stage, int d)
{
    return (stage * t->dp + d) * t->slot;
}

#endif
