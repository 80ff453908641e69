/* Shared by the files of mapper/ alone. */
#ifndef MAPPER_MAPPER_PRIVATE_H
#define MAPPER_MAPPER_PRIVATE_H

#include <glpk.h>
#include <stdbool.h>

#include "mapper/bound/schedule.h"
#include "mapper/mapper.h"

#define CLASSES_FEW 4  /* classes by type and speed, where types allow */
#define CLASSES_MAX 64 /* as many types as the cost model prices */

/** GPUs that are alike: one type, speed factors within a few percent. */
struct gpu_class {
    const struct topology_gpu_type *type;
    double speed; /* the slowest of the class */
    double limit_bytes;
};

/* The best of several links. */
struct best_link {
    double bytes_per_s, latency_s; /* 0: there is none */
};

/** What the search may use. */
struct pool {
    const struct mapper_problem *problem;
    int n_nodes;
    int *node;    /* [n_nodes] allowed nodes, in file order */
    int n_gpus;   /* that may be used: of the max_nodes largest */
    int n_pinned; /* nodes that must hold ranks */
    int max_node_gpus;
    int n_classes;
    struct gpu_class class[CLASSES_MAX]; /* fastest first */
    int *class_of_gpu;                   /* [cluster's n_gpus]; -1: not allowed */
    double best_speed[CLASSES_MAX];      /* fastest GPU of the class */
    long *groups;                        /* pool_groups */
    /* The best links among the allowed nodes; 0: none */
    double intra_bytes_per_s, intra_latency_s;
    double inter_bytes_per_s, inter_latency_s;
    /* By class q, inside nodes and between them: the best links that touch a GPU of class q
     * or slower, and those from such a GPU to a faster one or back. */
    struct best_link touching[2][CLASSES_MAX], mixing[2][CLASSES_MAX];
    int n_islands;    /* of nodes that measured links join, whichever way they go */
    int *island_gpus; /* [n_islands] most GPUs first */
    double *badness;  /* [n_nodes] how slow a node's links are: the sum of the inverse
                        bandwidths to and from the others, unmeasured ones ten times */
    double
        *poorness; /* [n_nodes] how many times as bad as usual for its class, the median,
                        a node's links are; 1 unless most of them are so bad that the node
                        itself, not some pair, must be at fault */
    double node_bytes_per_s; /* largest node_gb_per_s; INFINITY where one has none */
    double nvls;             /* best nvls_efficiency */
    bool nvls_or_ring; /* NVLS alone is allowed, and some nodes have none: rings there */
    bool all_alike;    /* one class, one size, every link like every other of its kind */
    double until_s;    /* clock_s at which work in hand is to end; INFINITY: never */
    const struct mapper_settings *settings; /* whose stop() ends it too; may be NULL */
};

/** Is it time to end with what there is? */
bool pool_is_late (const struct pool *pool);

enum status pool_init (struct pool *pool, const struct mapper_problem *p,
                       struct error *err);
void pool_release (struct pool *pool);

/** Links that nobody measured which any placement of so many ranks uses at least: what ranks
 *  send joins them all, there and back, so it leaves every island that holds some. */
int pool_unmeasured_at_least (const struct pool *pool, long long world);

/** What a link from node to node costs a sequence: an unmeasured one counts ten times. */
double link_badness (const struct topology_cluster *c, int from, int to);

/** The slowest class of a node's GPUs. */
int pool_node_class (const struct pool *pool, int node);

/** How many groups of tp GPUs inside nodes there are at most whose classes are 0..upto, on
 *  as many nodes as may be used. */
long pool_groups (const struct pool *pool, int upto, int tp);

/** All configurations of the axes that divide model, job and pool.
 *  @param[out] list   free it
 *  @param[out] space  the axes' values, for the plan; a new reference
 *  @return ST_OK, ST_NOMEM, or ST_INVALID when there is none, saying why */
enum status space_enumerate (const struct pool *pool, struct workload_config **list,
                             long *n, json_t **space, struct error *err);

/** Lower bound of one configuration over every placement and split of layers.
 *  See bound.c. */
double bound_of (const struct pool *pool, const struct workload_config *c,
                 enum bound_how how);

/** The same for a published cost model. See bound_published.c. */
double bound_published (const struct pool *pool, const struct workload_config *c);

/** Seconds of one stage boundary, there and back, when it crosses nodes at best; 0 where
 *  no two nodes are linked.  What splitting layers may assume. */
double bound_send_s (const struct pool *pool, const struct workload_config *c);

/** Seconds that every layer of stage 0 adds after its last backward at best:
 *  synchronisation and optimiser. */
double bound_tail_s (const struct pool *pool, const struct workload_config *c);

/** Per class: does the configuration fit with some split of the layers, with stage i's
 *  cap caps[class * pp + i] layers?  caps may be NULL. */
bool memory_fits (const struct pool *pool, const struct workload_config *c, int *caps);

/** Are all layers of the model of one kind, so that memory_fits' caps are exact? */
bool caps_alike (const struct pool *pool);

/** Lower memory_fits' caps to what fits whichever layers of the model these are, where they
 *  differ and all layers still have room. */
void caps_surely (const struct pool *pool, const struct workload_config *c, int *caps);

/** Layers of stages that hold several chunks, of as many layers each, so that the most work
 *  of a stage is the least.
 *
 *  @param[in]  cap     [pp] most layers
 *  @param[out] layers  [pp] multiples of vpp
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

/** The split that the lower bound would take (bound_stages.c), bettered by moving single
 *  layers under the exact schedule with the best links.  Knows two kinds of slots; how many
 *  GPUs have the memory is for the caller to check.
 *
 *  @param[in] by_class  false: as if all slots ran at the fastest class's speed
 *  @param[in] caps      as memory_fits leaves it
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT when there is none */
enum status split_layers (const struct pool *pool, const struct workload_config *c,
                          bool by_class, const int *caps, int *layers,
                          int *class_of_stage, struct error *err);

/** Solve a MIP quietly, with a limit on branch-and-bound nodes; GLPK's own fatal errors
 *  are caught.
 *  @param      mip     set to NULL when GLPK failed and its memory is gone
 *  @param[out] proven  the optimum, not only the best found
 *  @return ST_OK, ST_NOFIT when infeasible or nothing was found, ST_NOMEM on GLPK's
 *          errors */
enum status milp_solve (glp_prob **mip, int node_limit, bool *proven, struct error *err);

/** Delete the problem (NULL is fine) and this thread's GLPK environment. */
void milp_done (glp_prob *mip);

/** TP groups of all allowed nodes for one tp, as orders of GPUs. */
struct groups {
    int tp;
    int *gpu; /* [n_gpus of the cluster] cluster-wide numbers, node by node in node
                      order, each node's grouped GPUs first */
    int *
        grouped; /* [cluster's n_nodes] how many of a node's GPUs are in whole groups; all
                      of them when tp exceeds every node */
};
enum status groups_init (struct groups *g, const struct pool *pool,
                         const struct workload_config *c, struct error *err);
void groups_release (struct groups *g);

/** Why a configuration was not placed. */
enum refusal {
    REFUSED_MEMORY,      /* no split fits in the memory of the GPUs that there are */
    REFUSED_UNCONNECTED, /* no placement is connected */
    REFUSED_UNKNOWN      /* none was found; its lower bound still counts */
};

/** A placed configuration. */
struct placed {
    int *layers; /* [pp] */
    int *gpu;    /* [world] */
    struct costmodel_price price;
    double node_step_s, gpu_step_s;
    double moved_s; /* of the step: what moves that are priced exactly took off */
    enum mapper_granularity granularity;
    bool exact;           /* every split and placement was tried */
    double skipped_s;     /* but those that take so long at least; INFINITY: all were */
    long tried;           /* placements, in a small pool */
    enum refusal refusal; /* with ST_NOFIT */
};
void placed_release (struct placed *x);

/** How much work a placement is worth. */
struct effort {
    int grid;  /* times the moves on grids of whole nodes, which cost next to nothing */
    int exact; /* times those that are priced exactly */
    double
        rival_s; /* the best plan's: a start slower by HOPELESS gets none of these, splits
                       that cannot beat it are not tried; INFINITY: there is none */
    long tries;  /* placements of a small pool that are tried at most */
};
#define HOPELESS 0.05 /* moves gained 2.5 % at most, but for a few single GPUs */

/** Split, place and improve one configuration.
 *
 *  @param[in] seed    of this configuration's own random numbers
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT with out->refusal set
 */
enum status place_config (const struct pool *pool, const struct groups *g,
                          const struct workload_config *c,
                          const struct mapper_settings *s, struct effort effort,
                          unsigned long seed, struct placed *out, struct error *err);

/** Must the node hold ranks? */
static inline bool is_pinned (const struct pool *pool, int node)
{
    return pool->n_pinned > 0 && pool->problem->node_pinned[node];
}

/** Do the ranks leave none of those nodes idle? */
bool pins_hold (const struct pool *pool, const int *gpu, int world);

/** The allowed nodes in file order; pinned ones come first, then, with a limit on nodes, the
 *  largest ones that it leaves. @param[out] seq [n_nodes] */
void default_sequence (const struct pool *pool, int *seq);

/** Megatron's order: the GPUs of that sequence. @param[out] gpu [n] all of the pool's
 *  GPUs @return ST_OK or ST_NOMEM */
enum status default_order (const struct pool *pool, int *gpu, struct error *err);

/** Has it so few GPUs that every placement is tried? */
bool pool_is_small (const struct pool *pool);

/** mapper_result_put in a pool that is there already. */
enum status result_put (const struct pool *pool, const struct workload_config *config,
                        const int *layers, const int *gpu, struct mapper_result *r,
                        struct error *err);

/** The best placement of a kind that is known, in and out. */
struct exact_best {
    int *gpu; /* [n] */
    struct costmodel_price *price;
    bool better; /* set when a better one was found */
};

/** Try every placement (exact.c) on as many nodes as are allowed; for pools of up to
 *  EXACT_GPUS_MAX GPUs.
 *
 *  @param     state    priced placement over the n GPUs given at its creation
 *  @param[in] allowed  [pp * n_classes] may stage i use class k?
 *  @param[in] gpu      [n] the pool's GPUs, node by node
 *  @param     by_node  the best that gives every node consecutive ranks
 *  @param     any      the best of all
 *  @return how many there were */
#define EXACT_GPUS_MAX 8
long exact_search (const struct pool *pool, struct costmodel_state *state,
                   const struct workload_config *c, const bool *allowed, const int *gpu,
                   int n, struct exact_best *by_node, struct exact_best *any);

/** Fill info->miss with the configuration whose even split comes closest to the limit. */
void find_miss (const struct pool *pool, const struct workload_config *list, long n,
                struct mapper_info *info);

/** Is configuration a simpler to run than b (simplest.c)? */
bool config_simpler (const struct workload_config *a, const struct workload_config *b);

/** A placement's price, on the problem's cluster. */
static inline struct costmodel_problem priced_problem (const struct mapper_problem *p,
                                                       const struct workload_config *c,
                                                       const int *layers)
{
    return (struct costmodel_problem){.model = p->model,
                                      .job = p->job,
                                      .config = c,
                                      .profile = p->profile,
                                      .cluster = p->cluster,
                                      .layers = layers,
                                      .kind = p->cost_model};
}

/** Is price a better than b?  Unmeasured links first, then the step. */
static inline bool price_less (const struct costmodel_price *a,
                               const struct costmodel_price *b)
{
    if (a->unmeasured != b->unmeasured)
        return a->unmeasured < b->unmeasured;
    return a->step_s < b->step_s;
}

#endif
