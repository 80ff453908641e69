/* The search: which degrees, and which GPU for every rank.
 *
 * Problem, settings, result, info: inputs are const, defaults come from
 * mapper_settings_default(), counts and timings go to info.  "Nothing fits" is an outcome
 * (ST_NOFIT with the closest miss in info).  The same seed gives the same plan on any
 * number of threads: work is counted, not timed, unless a time limit is set.
 */
#ifndef MAPPER_MAPPER_H
#define MAPPER_MAPPER_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "costmodel/costmodel.h"
#include "memest/memest.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** Axes that the user fixed; a value of MAPPER_FREE is searched. */
#define MAPPER_FREE (-1)
struct mapper_axes {
    int tp, pp, dp, cp, ep, etp, vpp;
    int micro_batch;
    int zero;
    int sequence_parallel; /* 0 or 1 */
    int recompute;         /* enum workload_recompute */
    int recompute_layers;  /* with recompute full: of each stage; 0: all */
    int schedule;          /* enum workload_schedule */
};
struct mapper_axes mapper_axes_free (void);
/** Every axis as a configuration has it. */
struct mapper_axes mapper_axes_of (const struct workload_config *c);

/** What is to be least. */
enum mapper_objective {
    MAPPER_STEP,     /* seconds of a step */
    MAPPER_GPU_HOURS /* seconds of a step x GPUs in use */
};
const char *mapper_objective_name (enum mapper_objective o);

struct mapper_problem {
    const struct workload_model *model;
    const struct workload_job *job;
    const struct workload_profile *profile;
    const struct topology_cluster *cluster;
    struct mapper_axes axes;
    const bool *node_allowed; /* [n_nodes], or NULL: all that are not drained */
    const bool *node_pinned;  /* [n_nodes] must hold ranks, or NULL: none has to */
    int max_nodes;            /* use at most so many; 0: no limit */
    double memory_limit_pct;  /* of what the driver reports */
    double oom_risk; /* above 0: a chance of running out instead (memest_limit) */
    enum memest_model memory_model;
    enum costmodel_kind cost_model; /* what is minimised, bounded and reported */
    enum mapper_objective objective;
};

enum mapper_granularity {
    MAPPER_AUTO, /* node, unless gpu gains over 0.5 % */
    MAPPER_NODE, /* every node gets consecutive ranks */
    MAPPER_GPU   /* single GPUs anywhere */
};

struct mapper_settings {
    enum mapper_granularity granularity;
    int threads; /* 0: as OpenMP decides */
    unsigned long seed;
    double time_limit_s; /* 0: none; only this reads the clock */
    int top;             /* how many of the next best configurations to list */
    int polish;          /* the best are placed again with so many times the moves */
    double tie; /* plans within this share of the best are as good: the simplest is taken,
                   and the default order where it is one; 0: the best itself */
    /** Called from one thread now and then; NULL: never.  Returning true stops the search
     *  with the best plan so far, as soon as there is one.  `done` of `total` configurations
     *  are settled, or have their first bound while lower_bound_s is 0; best_step_s is
     *  INFINITY before the first plan. */
    bool (*progress) (void *context, long done, long total, double best_step_s,
                      double lower_bound_s);
    /** Has progress() been told to return true?  Asked from any thread, many times a second,
     *  so that what is in hand ends soon; NULL: never. */
    bool (*stop) (void *context);
    void *context;
};
/** Ties that commands reckon with unless told otherwise; the default settings have none. */
#define MAPPER_USUAL_TIE 1e-3
struct mapper_settings mapper_settings_default (void);

/** One configuration that was placed. */
struct mapper_choice {
    struct workload_config config;
    double step_s, lower_bound_s;
    bool tie; /* within the model's error of the best */
};

struct mapper_result {
    struct workload_config config;
    int *layers; /* [pp] */
    int *gpu;    /* [world] cluster-wide GPU of each rank */
    struct costmodel_estimate estimate;
    double lower_bound_s; /* over the whole space asked for; with MAPPER_GPU_HOURS no
                             plan of the space takes fewer seconds x GPUs than this times
                             the plan's GPUs */
    double default_order_step_s; /* same configuration, Megatron's order; INFINITY when
                                    it does not fit in memory or is not connected */
    int default_order_unmeasured;
    enum mapper_granularity granularity; /* node or gpu */
    double node_step_s, gpu_step_s;      /* best found of either; INFINITY: not tried */
    struct memest_stage *memory;         /* [pp] */
    double *gpu_bytes;                   /* [pp] of the smallest GPU on the stage */
    struct mapper_choice *top; /* [n_top], best first, the chosen one included */
    int n_top;
    double
        given_up; /* share of the objective above the best found, for simplicity or memory to spare */
    double model_error; /* of step times: the profile's residual */
    int ties;           /* configurations placed within it of the best, which included */
};

/** GPU hours for 1e9 tokens. */
static inline double mapper_gpu_hours (const struct workload_job *j,
                                       const struct workload_config *c, double step_s)
{
    return step_s / 3600 * (double) workload_world (&c->deg) * 1e9 /
           ((double) j->seq * j->global_batch);
}

/** The configuration that came closest to fitting, when none does. */
struct mapper_miss {
    struct workload_config config;
    int stage, layers;
    struct memest_stage memory;
    double gpu_bytes, limit_bytes;
};

struct mapper_info {
    long configurations; /* that divide and use no more GPUs than there are */
    long refused_memory; /* of these, over the memory limit */
    long placed;         /* of these, placed */
    long unplaced; /* of these, for which no connected and legal placement was found;
                            unless there is none, their bounds are part of the result's */
    double seconds;
    bool proven;     /* every configuration was placed, refused or cut by its bound */
    bool stopped;    /* by the time limit or by progress() */
    int joined_gpus; /* more than so many GPUs, and every plan uses links that nobody
                        measured, so that none was looked at; 0: all were looked at */
    bool missed;     /* nothing fits; miss says what came closest */
    struct mapper_miss miss;
    json_t *space; /* the axes and their values; decref */
};

/** Search.
 *
 *  @param[out] r     release with mapper_result_release; untouched on failure
 *  @param[out] info  always filled as far as the search came; release with
 *                    mapper_info_release
 *  @return ST_OK; ST_INVALID if no configuration divides model, job and cluster, or a GPU
 *          type cannot run the precision; ST_NOFIT if none fits in memory or the GPUs are
 *          not connected; ST_NOMEM
 */
enum status mapper_search (const struct mapper_problem *p,
                           const struct mapper_settings *s, struct mapper_result *r,
                           struct mapper_info *info, struct error *err);
void mapper_result_release (struct mapper_result *r);

/** Put another configuration, split and placement into a result: the estimate, the memory
 *  and the default order's step become theirs; the bound stays.
 *
 *  @param[in] layers  [pp] @param[in] gpu [world]
 *  @return as costmodel_estimate; ST_NOFIT also where a stage does not fit its smallest
 *          GPU, saying by how much; the result is untouched on failure */
enum status mapper_result_put (const struct mapper_problem *p,
                               const struct workload_config *config, const int *layers,
                               const int *gpu, struct mapper_result *r,
                               struct error *err);

/** Megatron's order over the nodes that may be used: node by node in file order.
 *  @param[out] gpu  [cluster's n_gpus] as many as there are are filled
 *  @return ST_OK, ST_NOMEM, or as mapper_search when no node is left */
enum status mapper_default_order (const struct mapper_problem *p, int *gpu,
                                  struct error *err);

/** Does Megatron's order serve better than the placement: fewer links that nobody measured,
 *  or else a shorter step? */
static inline bool mapper_default_is_better (const struct mapper_result *r)
{
    if (!isfinite (r->default_order_step_s))
        return false;
    if (r->default_order_unmeasured != r->estimate.n_unmeasured)
        return r->default_order_unmeasured < r->estimate.n_unmeasured;
    return r->default_order_step_s < r->estimate.step_s;
}

/** costmodel_find_binding and costmodel_unshared_step of a result. */
enum status mapper_explain (const struct mapper_problem *p, const struct mapper_result *r,
                            struct costmodel_binding *out, bool *found,
                            double *unshared_step_s, struct error *err);
void mapper_info_release (struct mapper_info *info);

/** A number that no placement of the configuration, with any split of the layers, beats.
 *
 *  @param[in] tight  also choose the first stage's layers jointly with its gradient
 *                    synchronisation (slower, higher)
 */
enum status mapper_lower_bound (const struct mapper_problem *p,
                                const struct workload_config *c, bool tight,
                                double *bound_s, struct error *err);

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
enum status mapper_tp_groups (const struct topology_cluster *c,
                              const struct workload_profile *p, int node, int tp,
                              double bytes, double layer_s, int *gpu, struct error *err);

/** A configuration that was refused for memory in words: which stage and kind, by how
 *  much, and what would make it fit (other values of fixed axes, more GPUs, or larger
 *  ones).  Several lines. */
void mapper_explain_miss (const struct mapper_problem *p, const struct mapper_info *info,
                          struct text *out);

/** The result as a plan; place names are borrowed from the cluster.  @param[out] plan
 *  release with workload_plan_release */
enum status mapper_result_to_plan (const struct mapper_problem *p,
                                   const struct mapper_result *r,
                                   struct workload_plan *plan, struct error *err);

/** The whole plan file, as DESIGN.md's contract has it.
 *
 *  @param[in] cluster_file  the file that the cluster came from and the SHA-256 of its
 *                           text, written instead of clusters of more than 256 nodes;
 *                           NULL where there is none
 *  @return a new reference, or NULL when out of memory */
json_t *mapper_plan_to_json (const struct mapper_problem *p,
                             const struct mapper_result *r,
                             const struct mapper_info *info, const char *cluster_file,
                             const char *cluster_sha256);

#endif
