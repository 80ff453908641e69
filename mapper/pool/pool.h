/* What one search may use: nodes, classes of GPUs, the best links, the memory that stages
 * have, and every configuration that divides model, job and GPUs. */
#ifndef MAPPER_POOL_POOL_H
#define MAPPER_POOL_POOL_H

#include "mapper/deadline.h"
#include "mapper/problem.h"

#define CLASSES_FEW 4  /* classes by type and speed, where types allow */
#define CLASSES_MAX 64 /* as many types as the cost model prices */

/** GPUs that are alike: one type, speed factors within a few percent. */
struct gpu_class {
    const struct topology_gpu_type *type;
    double speed; /* the slowest of the class */
    double limit_bytes;
};

/** The best of several links. */
struct best_link {
    double bytes_per_s, latency_s; /* 0: there is none */
};

struct pool {
    const struct mapper_problem *problem;
    int n_nodes;
    int *node;    /* [n_nodes] allowed nodes, in the order of pool_order_nodes */
    int *in_file; /* [n_nodes] the same in file order */
    int n_gpus;   /* that may be used: of the max_nodes largest */
    int all_gpus; /* of all these nodes */
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
    struct best_link own[2][CLASSES_MAX]; /* those that touch a GPU of class q itself */
    /* those between a GPU of one class and one of another; of up to so many classes */
    struct best_link pairing[2][CLASSES_FEW][CLASSES_FEW];
    int n_islands;    /* of nodes that measured links join, whichever way they go */
    int *island_gpus; /* [n_islands] most GPUs first */
    double *reach;   /* [n_nodes] bytes/s of a node's best link out or in, the slower one;
                         INFINITY where links between nodes are alike or of GPUs */
    double *one_way; /* [n_nodes] that of the faster one */
    double *usual;   /* [cluster's n_nodes] bytes/s that a node's links usually carry where it is
                        well placed; those that nobody measured what they are priced at */
    double *badness; /* [n_nodes] how slow a node's links are: the sum of the inverse
                        bandwidths to and from the others, unmeasured ones ten times */
    /* [n_nodes] how many times as bad as usual for its class, the median, a node's links are; 1
     * unless most of them are so bad that the node itself, not some pair, must be at fault */
    double *poorness;
    struct pool_ring *rings; /* rings.c */
    double *inside_from; /* [max_node_gpus] by GPUs - 1: the best link inside a node that
                                has so many */
    double node_bytes_per_s; /* largest node_gb_per_s; INFINITY where one has none */
    double nvls;             /* best nvls_efficiency */
    bool nvls_or_ring; /* NVLS alone is allowed, and some nodes have none: rings there */
    bool all_alike;    /* one class, one size, every link like every other of its kind */
    /* The same with the classes that have the best links inside nodes first; NULL where these are
     * in this order, too. */
    struct pool *by_links;
    int layers_of[WORKLOAD_KINDS];  /* of the model, by workload_kind_of */
    struct pool_computes *computes; /* computes.c; by_links has the same */
};

/** @return ST_OK; ST_NOMEM; ST_NOFIT when no node is left; ST_INVALID when no GPU runs the
 *          precision, or for more than CLASSES_MAX types */
enum status pool_init (struct pool *pool, const struct mapper_problem *p,
                       struct error *err);
void pool_release (struct pool *pool);

/** Links that nobody measured which any placement of so many ranks uses at least: what ranks
 *  send joins them all, there and back, so it leaves every island that holds some. */
int pool_unmeasured_at_least (const struct pool *pool, long long world);

/** What a link from node to node costs a sequence: an unmeasured one counts ten times. */
static inline double pool_link_badness (const struct topology_cluster *c, int from,
                                        int to)
{
    struct topology_link l =
        topology_link (c, c->node[from].first_gpu, c->node[to].first_gpu);

    return l.bytes_per_s > 0 ? (l.measured ? 1 : 10) / l.bytes_per_s : 1.0;
}

/** The slowest class of some GPUs, and of a node's. */
int pool_slowest_class (const struct pool *pool, const int *gpu, int n);
int pool_node_class (const struct pool *pool, int node);

/** How many groups of tp GPUs inside nodes there are at most whose classes are 0..upto, on
 *  as many nodes as may be used. */
long pool_groups (const struct pool *pool, int upto, int tp);

/** The best rate of a ring of n members on several nodes, where a member is `each` GPUs of one:
 *  between nodes, in all lanes, without the profile's link_out; and inside them, INFINITY where
 *  no node needs two members.
 *  @param[in] each  GPUs; beyond max_node_gpus nothing is known
 *  @return INFINITY where nothing is known, as where there are not so many */
double pool_ring_between (const struct pool *pool, int n, int each);
double pool_ring_inside (const struct pool *pool, int n, int each);

/** The best link inside a node that holds n such members; INFINITY where none does. */
double pool_ring_on_one (const struct pool *pool, int n, int each);

/** Sort the GPUs into classes, the fastest first. */
enum status pool_classes_init (struct pool *pool, struct error *err);

/** Put the classes with the highest value first, those with equal ones as they are.
 *  @param[in] value  [n_classes] */
void pool_classes_sort (struct pool *pool, const double *value);

/** The best link inside nodes of each class.
 *  @param[out] bytes_per_s  [n_classes]
 *  @return are the classes in another order by it? */
bool pool_classes_by_links (const struct pool *pool, double *bytes_per_s);

/** For pool_init: the tables of both. */
enum status pool_rings_init (struct pool *pool, struct error *err);

/** Must the node hold ranks? */
static inline bool pool_is_pinned (const struct pool *pool, int node)
{
    return pool->n_pinned > 0 && pool->problem->node_pinned[node];
}

/** Is there a limit on nodes that binds? */
static inline bool pool_nodes_limited (const struct pool *pool)
{
    return pool->problem->max_nodes > 0 && pool->problem->max_nodes < pool->n_nodes;
}

/** Does it matter which nodes hold ranks at all? */
static inline bool pool_uses_matter (const struct pool *pool)
{
    return pool_nodes_limited (pool) || pool->n_pinned > 0;
}

/** Has every node consecutive ranks?  No, where memory is short. */
bool pool_is_by_node (const struct pool *pool, const int *gpu, int world);

/** Can two GPUs of one node differ, by speed or links? */
bool pool_gpus_differ (const struct pool *pool);

/** Do the ranks leave none of those nodes idle? */
bool pool_pins_hold (const struct pool *pool, const int *gpu, int world);

/** Are they also on few enough nodes? */
bool pool_nodes_fit (const struct pool *pool, const int *gpu, int world);

/** Put the nodes, which are in file order, in one that does not depend on it; but in large pools.
 *  @param[in] links_alike  between nodes */
void pool_order_nodes (struct pool *pool, bool links_alike);

/** The allowed nodes in order, that of the file or pool's own; pinned ones come first, then, with a
 *  limit on nodes, the largest ones that it leaves. @param[out] seq [n_nodes] */
void pool_sequence (const struct pool *pool, bool in_file, int *seq);

/** The GPUs of the pool's nodes in such an order. @param[out] gpu [all_gpus] */
void pool_gpus_of (const struct pool *pool, const int *seq, int *gpu);

/** Megatron's order: the GPUs of the sequence in file order. @param[out] gpu [n] all of the pool's
 *  GPUs @return ST_OK or ST_NOMEM */
enum status pool_default_order (const struct pool *pool, int *gpu, struct error *err);

/* ---- computes.c ---- */

/** costmodel_compute on the GPUs of a class.  What configurations have in common is kept, for all
 *  threads: matrix products are most of what loose bounds take. */
void pool_compute (const struct pool *pool, const struct workload_config *c, int class,
                   struct costmodel_compute *out);
struct pool_computes *pool_computes_create (void); /* NULL: out of memory */
void pool_computes_destroy (struct pool_computes *k);

/** A listing that may end before it is whole, or leave some out. */
struct pool_limit {
    bool roomy; /* without those whose states alone do not fit */
    int gpus;   /* without those of fewer; 0: none */
    const struct deadline *deadline;
    long least;  /* so many are listed, however late it is */
    long listed; /* so far, for those who are asked whether it is late; 0 at first */
    bool cut;    /* out: it ended early, and configurations are missing; false at first */
};

/** All configurations of the axes that divide model, job and pool, on so many threads.
 *  @param[in,out] limit  NULL: none
 *  @param[out] list   free it
 *  @param[out] space  the axes' values, for the plan; a new reference
 *  @return ST_OK, ST_NOMEM, or ST_INVALID when there is none, saying why */
enum status pool_configurations (const struct pool *pool, int threads,
                                 struct pool_limit *limit, struct workload_config **list,
                                 long *n, json_t **space, struct error *err);

/** The largest cp that is tried where it is not fixed. */
int pool_cp_most (const struct mapper_problem *p);

/* ---- memory.c ---- */

/** Per class: does the configuration fit with some split of the layers, with stage i's
 *  cap caps[class * pp + i] layers?  caps may be NULL. */
bool pool_memory_fits (const struct pool *pool, const struct workload_config *c,
                       int *caps);

/** Are there as many GPUs with that memory as it takes?  A stage needs all its GPUs of classes
 *  that hold its layers.  @param[in] caps  as pool_memory_fits leaves it */
bool pool_large_gpus_suffice (const struct pool *pool, const struct workload_config *c,
                              const int *caps);

/** Is there room for the layers' states alone, whatever else the configuration is?
 *  @param[in] all  workload_all_layers of the model */
bool pool_states_fit (const struct pool *pool, const struct workload_config *c,
                      const struct workload_stage *all);

/** Does the even split fit everywhere, so on the smallest GPUs too?  Or else on the largest, or
 *  nearly: with less on the ends.  Layers with experts go where they are fewest. */
bool pool_even_split_fits (const struct pool *pool, const struct workload_config *c,
                           bool everywhere);

/** Are all layers of the model of one kind, so that pool_memory_fits' caps are exact? */
bool pool_layers_alike (const struct pool *pool);

/** Lower pool_memory_fits' caps to what fits whichever layers of the model these are, where
 *  they differ and all layers still have room. */
void pool_sure_caps (const struct pool *pool, const struct workload_config *c, int *caps);

/** Which classes have the memory for each stage's layers?
 *  @param[in]  layers  [pp]
 *  @param[out] allowed [pp * n_classes] */
void pool_stage_classes (const struct pool *pool, const struct workload_config *c,
                         const int *layers, bool *allowed);

#endif
