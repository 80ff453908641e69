/* Shared by the files that place one configuration. */
#ifndef MAPPER_PLACE_PLACE_PRIVATE_H
#define MAPPER_PLACE_PLACE_PRIVATE_H

#include <string.h>

#include "base/rng.h"
#include "mapper/place/place.h"

/* ---- chunks.c, stages.c ---- */

/** Layers of stages that hold several chunks, of as many layers each, so that the most work
 *  of a stage is the least.
 *
 *  @param[in]  cap     [pp] most layers
 *  @param[out] layers  [pp] multiples of workload_layers_unit
 *  @return false when they do not fit the caps */
bool chunks_spread (const struct pool *pool, const struct workload_config *c,
                    const int *cap, int *layers);

/** Split the layers over the stages (GLPK), so that enough GPUs have the memory for every
 *  stage, and say which class each stage's layers were counted for.
 *
 *  @param[in]  slots    [n_classes] how many slots (TP x CP groups) of each class there
 *                       are; NULL: as if all ran at the fastest class's speed
 *  @param[out] layers   [pp]
 *  @param[out] class_of_stage [pp] the slowest class that the split reckons with
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT if no split fits in the memory of the GPUs that
 *          there are */
enum status stages_split (const struct pool *pool, const struct workload_config *c,
                          const int *slots, int *layers, int *class_of_stage,
                          struct error *err);

/* ---- exact.c ---- */

/** The best placement of a kind that is known, in and out. */
struct exact_best {
    int *gpu; /* [n] */
    struct costmodel_price *price;
    bool better; /* set when a better one was found */
};

#define EXACT_GPUS_MAX 8 /* of pools where everything is tried */

/** Are the placements of so many ranks few in a larger pool? */
bool exact_is_few (const struct pool *pool, int world);

/** Try every placement (exact.c) on as many nodes as are allowed; for pools of up to
 *  EXACT_GPUS_MAX GPUs, or where they are few.
 *
 *  @param     state    priced placement over the n GPUs given at its creation
 *  @param[in] allowed  [pp * n_classes] may stage i use class k?
 *  @param[in] gpu      [n] the pool's GPUs, node by node
 *  @param     by_node  the best that gives every node consecutive ranks
 *  @param     any      the best of all
 *  @return how many there were */
long exact_search (const struct pool *pool, struct costmodel_state *state,
                   const struct workload_config *c, const bool *allowed, const int *gpu,
                   int n, struct exact_best *by_node, struct exact_best *any);

/* ---- placing ---- */

/* How a sequence of nodes becomes a placement. */
struct layout {
    int depth;     /* consecutive stages that share a node */
    bool by_class; /* stages whose layers are for slower classes come first */
    /* Replicas that hold the same shards come together, not those that share one copy? */
    bool by_shard;
    int upto;      /* groups of slower classes are used last */
    /* How many nodes share an expert group that one could hold (shared.c)?  Below 2: none do.  Of
     * depth 1, of one stage or of all (below 0). */
    int sharers, shared_stage;
    int *seq; /* [n_nodes] nodes in the order in which they are filled */
};

static inline void layout_copy (struct layout *to, const struct layout *from, int n_nodes)
{
    int *seq = to->seq;

    *to = *from;
    to->seq = seq;
    memcpy (seq, from->seq, (size_t) n_nodes * sizeof *seq);
}

/* A placement, the layout it came from, and its price. */
struct candidate {
    int *gpu;    /* [n] ranks first, then idle GPUs */
    int *layers; /* [pp] */
    struct layout layout;
    struct costmodel_price price;
};

struct placer {
    const struct pool *pool;
    const struct groups *groups;
    const struct workload_config *c;
    const struct deadline *deadline;
    int world, n, per_stage;
    int *layers, *class_of_stage; /* [pp]; the class is what the layers were split for */
    int *stage_at;                /* [pp] scratch: stages in the order of the layout */
    bool *allowed;                /* [pp * n_classes] by memory alone: the law */
    struct costmodel_state *state;
    struct layout layout;       /* of the placement in hand */
    bool *chosen;               /* [cluster's n_nodes] may hold ranks (--nodes) */
    int *block_first, *block_n; /* [n_nodes] by place in the sequence: each node's
                                     block, as indices of position[] */
    int *position; /* [n] the layout: the k-th GPU of the sequence goes to position[k] */
    int *order;    /* [n] scratch */
    int *late;     /* [n] scratch */
    int *uses;     /* [cluster's n_nodes] scratch: ranks on a node */
    bool *mark;    /* [max of n, cluster's n_nodes] scratch */
    struct rng rng;
};

/* ---- placer.c ---- */

/* A split and its best starts. */
struct begun {
    int *layers, *class_of_stage; /* [pp]; NULL: not known */
    struct candidate by_node, any;
};

/** Split the layers and price a first placement; the placer's pool, groups, configuration and
 *  random numbers are set.
 *  @param[in] by_speed  let the layers follow the speed of the classes
 *  @param[in] known     the split, where it is known; or NULL
 *  @return as stages_split; release also after a failure */
enum status placer_init (struct placer *x, bool by_speed, const struct begun *known,
                         struct error *err);
void placer_release (struct placer *x);

/** The stages' classes and the state, anew for other layers. */
enum status placer_new_layers (struct placer *x, const int *layers, struct error *err);

/** Room for a candidate, no placement yet. */
enum status candidate_init (const struct placer *x, struct candidate *k,
                            struct error *err);
void candidate_release (struct candidate *k);

/** The order and the layout in hand, at that price. */
void candidate_take (const struct placer *x, struct costmodel_price price,
                     struct candidate *k);

/** Its layers, placement and price. */
void candidate_copy (const struct placer *x, const struct candidate *from,
                     struct candidate *to);

/* ---- exact_splits.c ---- */

/** Try every placement of every split of the layers in a small pool, as long as that is not
 *  too much; the split in hand always.
 *  @param[in]  effort  splits that cannot beat rival_s are left out; tries
 *  @param[out] out     exact: were all tried, or known to be no better; skipped_s; tried */
enum status exact_splits (struct placer *x, enum mapper_granularity granularity,
                          const struct effort *effort, struct candidate *by_node,
                          struct candidate *any, struct placed *out, struct error *err);

/* ---- starts.c ---- */

static inline bool stage_may_use (const struct placer *x, int position, int gpu)
{
    return position >= x->world ||
           x->allowed[position / x->per_stage * x->pool->n_classes +
                      x->pool->class_of_gpu[gpu]];
}

/** Price an order where it is better than that; it may only say that it is not. */
struct costmodel_price price_order (struct placer *x, const int *gpu,
                                    struct costmodel_price than);

/** Fill x->layout into x->order; what memory forbids is put right where that is possible,
 *  so that the order is legal whenever the nodes of the sequence allow a legal one.
 *  @param[out] straight  the order is the layout filled node by node, nothing put right */
void layout_fill (struct placer *x, bool *straight);

/** The best start with consecutive ranks on every node, and the best in any layout. */
enum status try_starts (struct placer *x, bool free_layouts, struct candidate *by_node,
                        struct candidate *any, struct error *err);

/** Slots (TP x CP groups) that share the pool's largest node. */
int slots_per_node (const struct placer *x);

/* ---- on_grid.c ---- */

/** Anneal the candidate as a grid of whole nodes where it is one; it receives what is
 *  better.  @param[in] runs  times `moves`: from the candidate and, in turns, anew
 *  @return was it one? */
bool improve_on_grid (struct placer *x, int runs, long moves, struct candidate *k);

/** The step of what was priced last, if stages synchronised in no time. */
double latest_end_s (const struct placer *x);

/* ---- close_group.c ---- */

/** The ranks in a row that talk in every layer: TP and CP groups and those that exchange experts;
 *  1: none do, or these groups do not divide each other. */
int close_group (const struct placer *x);

/** Can so many nodes share such groups?  Each stage then has whole blocks of nodes. */
bool can_share (const struct placer *x, int sharers);

/** Are the expert groups of a stage shared in the layout in hand? */
static inline bool is_shared (const struct placer *x, int stage)
{
    return x->layout.sharers > 1 &&
           (x->layout.shared_stage < 0 || x->layout.shared_stage == stage);
}

/** The nodes that share the same groups in the layout in hand, one after the other. */
int shared_nodes (const struct placer *x);

/** The rank of a stage on the r-th GPU of its nodes, where they share groups. */
int shared_rank (const struct placer *x, int r);

/* ---- shared.c ---- */

/** Let nodes share the expert groups of all stages in the candidate's sequence: `any` receives what
 *  is better. */
void try_shared (struct placer *x, const struct candidate *by_node,
                 struct candidate *any);

/* ---- mend.c ---- */

/** Let nodes change places in the sequence in hand, within stages whose experts exchange across
 *  nodes, so that no bad link is in use.  Of depth 1, one stage after the other. */
void mend_layout (struct placer *x);

/* ---- slow_stage.c ---- */

/** The stage with the worst linked node at another place in the pipeline, layers and all, or its
 *  expert groups on two nodes each: what serves best where no link in use is bad is laid out.
 *  @param[in] whole    nodes alone
 *  @param[in] rival_s  the best plan's step: what stays far above it is left alone
 *  @param[in] moves    on the grid
 *  @param     by_node  the candidate that it begins with; it and the placer receive what is better
 *  @param     any      receives what is better of shared groups */
enum status improve_slow_stage (struct placer *x, bool whole, double rival_s, long moves,
                                struct candidate *by_node, struct candidate *any,
                                struct error *err);

/* ---- layers.c ---- */

/** Move single layers between the stages of what is placed, so many tries at most; the candidate
 *  and the placer receive what is better.  Where layers and GPUs are alike the split knows. */
void improve_layers (struct placer *x, int tries, struct candidate *k);

/* ---- anneal.c ---- */

/** Exchange whole nodes of the candidate's layout; it receives what is better. */
void improve_by_node (struct placer *x, int moves, struct candidate *k);

/** Exchange TP groups. */
void improve_by_gpu (struct placer *x, int moves, struct candidate *k);

#endif
