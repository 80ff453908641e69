/* What is searched: the job, the cluster, and what is fixed or limited.  The layers of the
 * mapper (pool, bound, place, search, replan) are about one of these. */
#ifndef MAPPER_PROBLEM_H
#define MAPPER_PROBLEM_H

#include <stdbool.h>

#include "costmodel/prices.h"
#include "costmodel/state.h"
#include "mapper/goodput.h"
#include "memest/memest.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** The greatest common divisor. */
static inline long long mapper_common_divisor (long long a, long long b)
{
    while (b > 0) {
        long long rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/** Axes that the user fixed; a value of MAPPER_FREE is searched. */
#define MAPPER_FREE (-1)
struct mapper_axes {
    int tp, pp, dp, cp, ep, etp, vpp;
    int micro_batch;
    int zero;
    int shard;                  /* 0: all of dp */
    int sequence_parallel;      /* 0 or 1 */
    int recompute;              /* enum workload_recompute */
    int recompute_layers;       /* with recompute full: of each stage; 0: all */
    unsigned recompute_modules; /* with recompute selective; 0: the framework's own */
    int optimizer_bytes;        /* per parameter; free: the profile's, never searched */
    int offload;  /* enum workload_offload; free: none (mapper_search_prudent) */
    int schedule; /* enum workload_schedule */
};
struct mapper_axes mapper_axes_free (void);
/** Every axis as a configuration has it. */
struct mapper_axes mapper_axes_of (const struct workload_config *c);
/** Every axis free but those that training which goes on cannot change: it has its states. */
struct mapper_axes mapper_axes_resumed (const struct workload_config *c);
/** Has the configuration what the axes fix? */
bool mapper_axes_hold (const struct mapper_axes *fixed, const struct workload_config *c);

/** One configuration, axes that are free taking their usual values: degrees of 1, dp the least
 *  that the experts' degrees allow, ZeRO 1 over all of dp, sequence parallelism on where
 *  tp > 1, nothing recomputed, 1F1B. */
struct workload_config mapper_axes_config (const struct mapper_axes *a);

/** Axes that are free, as the profile's framework has them: its ZeRO stage where that shards more
 *  than optimizer states, as far as it does so with a pipeline and tensor parallelism; else 1, or 0
 *  where it has no such stage; and no split sequence where it does not split them. */
void mapper_axes_usual (const struct mapper_axes *a, const struct workload_profile *p,
                        struct workload_config *c);

/** The same on a cluster: dp, unless it is fixed, is what the GPUs in use leave.
 *  @return ST_OK, or ST_INVALID when the cluster has too few GPUs */
enum status mapper_axes_config_on (const struct topology_cluster *c,
                                   const struct mapper_axes *a,
                                   struct workload_config *out, struct error *err);

/** What to minimise. */
enum mapper_objective {
    MAPPER_STEP,      /* seconds of a step */
    MAPPER_GPU_HOURS, /* seconds of a step x GPUs in use */
    MAPPER_GOODPUT    /* seconds of a step / the share of time that the job trains */
};
const char *mapper_objective_name (enum mapper_objective o);
bool mapper_objective_parse (const char *s, enum mapper_objective *o);

enum mapper_granularity {
    MAPPER_AUTO, /* node, unless gpu gains over 0.5 % */
    MAPPER_NODE, /* every node gets consecutive ranks */
    MAPPER_GPU   /* single GPUs anywhere */
};
bool mapper_granularity_parse (const char *s, enum mapper_granularity *g);

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
    /* mapper_limit_free: mapper_search_prudent may choose a stricter one */
    bool limit_free;
    /* of log (measured / estimate) of steps on its nodes; NULL, or 0: the profile's residual */
    double (*step_error) (const struct mapper_problem *p);
    enum memest_model memory_model;
    enum costmodel_kind cost_model; /* what is minimised, bounded and reported */
    enum mapper_objective objective;
    /* gpu_mtbf_s of 0: not asked for, and no MAPPER_GOODPUT */
    struct mapper_reliability reliability;
    const struct workload_plan *running; /* that is to be placed anew, or NULL */
};

/** Did nobody name a limit?  @param[in] memory_limit_pct, oom_risk  as asked for; 0: not */
static inline bool mapper_limit_free (double memory_limit_pct, double oom_risk)
{
    return !(memory_limit_pct > 0) && !(oom_risk > 0);
}

/** May the node be used at all? */
static inline bool mapper_node_allowed (const struct mapper_problem *p, int node)
{
    return p->node_allowed ? p->node_allowed[node] : !p->cluster->node[node].drained;
}

/** How far off its estimates are: plans as near to each other cannot be told apart. */
static inline double mapper_step_error (const struct mapper_problem *p)
{
    double own = p->step_error ? p->step_error (p) : 0.0;

    return own > 0.0 ? own : p->profile->time.residual;
}

/** The most bytes that a stage may take on a GPU that reports so many, if none are states
 *  (memest_limit_of). */
static inline double mapper_memory_limit (const struct mapper_problem *p,
                                          double gpu_bytes)
{
    return memest_limit (p->profile, gpu_bytes, p->memory_limit_pct, p->oom_risk);
}

/** What a job on so many GPUs of those that may be used makes of its time.  Nodes' worth of idle
 *  GPUs are spares. */
struct mapper_goodput mapper_goodput_of (const struct mapper_problem *p, long gpus);

/** What the objective multiplies a step's seconds by: of the configuration's GPUs alone. */
double mapper_weight (const struct mapper_problem *p, const struct workload_config *c);

/** The layers of every chunk (struct costmodel_problem), where these are the layers of the
 *  running plan and its chunks hold them otherwise than a search would deal them; else NULL. */
const int *mapper_chunks (const struct mapper_problem *p, const struct workload_config *c,
                          const int *layers);

/** What stage `stage` holds of such layers. */
struct workload_stage mapper_stage (const struct mapper_problem *p,
                                    const struct workload_config *c, const int *layers,
                                    int stage);

/** What memest is asked for one configuration. */
static inline struct memest_problem
mapper_memory_problem (const struct mapper_problem *p, const struct workload_config *c)
{
    return (struct memest_problem){p->model,
                                   p->job,
                                   c,
                                   p->profile,
                                   p->memory_model,
                                   p->cluster ? p->cluster->host_share_bytes : 0.0,
                                   memest_states_less (p->profile, p->oom_risk)};
}

/** The most that this stage may take on a GPU that reports so many bytes. */
static inline double mapper_stage_limit (const struct mapper_problem *p,
                                         const struct memest_stage *s, double gpu_bytes)
{
    struct memest_problem memory = mapper_memory_problem (p, NULL);

    return memest_limit_of (&memory, s, mapper_memory_limit (p, gpu_bytes));
}

/** The part of that limit which it takes: above 1 it does not fit. */
static inline double mapper_stage_full (const struct mapper_problem *p,
                                        const struct memest_stage *s, double gpu_bytes)
{
    return s->peak_bytes / mapper_stage_limit (p, s, gpu_bytes);
}

/** Memory of a stage of a placement.
 *  @param[in] layers  [pp]  @param[in] gpu  [world]
 *  @return bytes of the smallest GPU that the stage got */
double mapper_stage_memory (const struct mapper_problem *p,
                            const struct workload_config *c, const int *layers,
                            const int *gpu, int stage, struct memest_stage *out);

/** Larger clusters are referred to by their file in a plan. */
#define MAPPER_WHOLE_CLUSTER_NODES 256

/** A placement's price, on the problem's cluster. */
static inline struct costmodel_problem mapper_priced (const struct mapper_problem *p,
                                                      const struct workload_config *c,
                                                      const int *layers)
{
    return (struct costmodel_problem){.model = p->model,
                                      .job = p->job,
                                      .config = c,
                                      .profile = p->profile,
                                      .cluster = p->cluster,
                                      .layers = layers,
                                      .chunks = mapper_chunks (p, c, layers),
                                      .kind = p->cost_model};
}

/** Is price a better than b?  Unmeasured links first, then the step. */
static inline bool mapper_price_less (const struct costmodel_price *a,
                                      const struct costmodel_price *b)
{
    if (a->unmeasured != b->unmeasured)
        return a->unmeasured < b->unmeasured;
    return a->step_s < b->step_s;
}

/** What a link that nobody measured counts as while places move, as a share of the step.  Plans
 *  with fewer are better whatever their step, but where many links were not measured, the way to
 *  such a plan leads through others. */
#define MAPPER_UNMEASURED 0.1

/** The order of prices that moves follow: the smooth one sees a way where the step alone is
 *  flat. */
static inline double mapper_height (const struct costmodel_price *p)
{
    return p->smooth_s * (1.0 + MAPPER_UNMEASURED * p->unmeasured);
}

#endif
