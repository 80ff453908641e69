/* One configuration, placed: its layers on stages, its stages and replicas on GPUs. */
#ifndef MAPPER_PLACE_PLACE_H
#define MAPPER_PLACE_PLACE_H

#include "mapper/pool/pool.h"

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

/** TP groups of one node: which GPUs form each group, in ring order.
 *
 *  A set partition solved by GLPK: first the largest cost of a group is minimised, then
 *  the sum; a group's cost is one layer's compute at its slowest GPU and its all-reduces
 *  on its best ring.  Where all links and speeds of the node are alike, index order.
 *
 *  @param[in]  bytes        payload of one all-reduce
 *  @param[in]  layer_s      compute of one layer at speed 1
 *  @param[out] gpu          [gpus of the node] local GPU numbers: floor(gpus/tp) groups of
 *                           tp, then the GPUs left over
 *  @return ST_OK or ST_NOMEM
 */
enum status place_tp_groups (const struct topology_cluster *c,
                             const struct workload_profile *p, int node, int tp,
                             double bytes, double layer_s, int *gpu, struct error *err);

/** A configuration's split of the layers and the best starts with it, which do not depend on
 *  random numbers: who places one several times keeps them.  Zeroed, nothing is known yet. */
struct begun;
struct begun *begun_create (void); /* NULL when out of memory */
void begun_destroy (struct begun *b);

/** How much work a placement is worth. */
struct effort {
    int grid;  /* times the moves on grids of whole nodes, which cost next to nothing */
    int exact; /* times those that are priced exactly */
    /* the best plan's: a start slower by HOPELESS gets none of these, splits that cannot beat it
     * are not tried; INFINITY: there is none */
    double rival_s;
    long tries; /* placements of a small pool that are tried at most */
    const struct deadline *deadline;
    struct begun *begun; /* of this configuration: what is known is taken, what is not is
                                kept; or NULL */
};
/** Of what is not placed: any is better. */
#define NO_PRICE ((struct costmodel_price){.unmeasured = 1 << 30, .step_s = INFINITY})

#define HOPELESS_GRID 1.0 /* the same of a grid's, which cost little */
#define HOPELESS 0.05     /* moves gained 2.5 % at most, but for a few single GPUs */

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

/** Split, place and improve one configuration.
 *
 *  @param[in] seed    of this configuration's own random numbers
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT with out->refusal set
 */
enum status place_config (const struct pool *pool, const struct groups *g,
                          const struct workload_config *c,
                          enum mapper_granularity granularity, struct effort effort,
                          unsigned long seed, struct placed *out, struct error *err);

/** Has the pool so few GPUs that every placement is tried? */
bool place_tries_all (const struct pool *pool);

#endif
