/* The search: which degrees, and which GPU for every rank.
 *
 * Problem, settings, result, info: inputs are const, defaults come from
 * mapper_settings_default(), counts and timings go to info.  "Nothing fits" is an outcome
 * (ST_NOFIT with the closest miss in info).  The same seed gives the same plan on any
 * number of threads: work is counted, not timed, unless a time limit is set.
 */
#ifndef MAPPER_SEARCH_SEARCH_H
#define MAPPER_SEARCH_SEARCH_H

#include <jansson.h>
#include <math.h>

#include "mapper/problem.h"

struct mapper_settings {
    enum mapper_granularity granularity;
    int threads; /* 0: as OpenMP decides */
    unsigned long seed;
    double time_limit_s; /* 0: none; only this reads the clock */
    int top;             /* how many of the next best configurations to list */
    int effort;          /* times the moves and configurations tried; from 1 */
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
/** Those of a further search after so many seconds: with what is left of the time, a little at
 *  least. */
struct mapper_settings mapper_settings_left (const struct mapper_settings *s,
                                             double spent_s);

/** Which nodes to use, in the words of the command line. */
struct mapper_nodes {
    const char *only, *exclude, *pin; /* host lists; NULL: not given */
    int nodes, spares;                /* 0: not given */
};

/** Limit a problem to them: its node_allowed, node_pinned and max_nodes.
 *  @param[out] marks  what these point to; free it, also after a failure
 *  @return ST_OK, ST_NOMEM; ST_USAGE for what contradicts the cluster or itself; ST_NOFIT
 *          when no node is left */
enum status mapper_choose_nodes (const struct mapper_nodes *x, struct mapper_problem *p,
                                 bool **marks, struct error *err);

/** One configuration that was placed. */
struct mapper_choice {
    struct workload_config config;
    double step_s, lower_bound_s;
    bool tie; /* within the model's error of the best */
};

/** A plan that more risk would allow. */
struct mapper_riskier {
    struct workload_config config;
    double step_s; /* 0: there is none that is worth it */
    double chance; /* of running out of memory */
};

struct mapper_result {
    struct workload_config config;
    int *layers; /* [pp] */
    int *gpu;    /* [world] cluster-wide GPU of each rank */
    struct costmodel_estimate estimate;
    double lower_bound_s;        /* over the whole space asked for; with another
                             objective no plan of the space has fewer seconds x
                             mapper_weight than this times the plan's weight */
    double default_order_step_s; /* same configuration, Megatron's order; INFINITY when
                                    it does not fit in memory or is not connected */
    int default_order_unmeasured;
    enum mapper_granularity granularity; /* node or gpu */
    double node_step_s, gpu_step_s;      /* best found of either; INFINITY: not tried */
    struct memest_stage *memory;         /* [pp] */
    double *gpu_bytes;                   /* [pp] of the smallest GPU on the stage */
    struct mapper_choice *top; /* [n_top], best first, the chosen one included */
    int n_top;
    /* share of the objective above the best found, for simplicity or memory to spare */
    double given_up;
    double model_error; /* of step times: mapper_step_error */
    int ties;           /* configurations placed within it of the best, which included */
    struct mapper_riskier riskier; /* of mapper_search_prudent */
};

/** GPU hours for 1e9 tokens. */
static inline double mapper_gpu_hours (const struct workload_job *j,
                                       const struct workload_config *c, double step_s)
{
    return step_s / 3600 * (double) workload_world (&c->deg) * 1e9 /
           ((double) j->seq * j->global_batch);
}

/** What the objective counts. */
static inline double mapper_objective_of (const struct mapper_problem *p,
                                          const struct workload_config *c, double step_s)
{
    return step_s * mapper_weight (p, c);
}

/** The configuration that came closest to fitting, when none does. */
struct mapper_miss {
    struct workload_config config;
    int stage, layers;
    struct memest_stage memory;
    double gpu_bytes, limit_bytes;
};

/** What became of the second search of mapper_search_prudent, for a smaller chance of running out
 *  of memory. */
enum mapper_safer {
    MAPPER_SAFER_NOT_SOUGHT, /* the chance is small, or a limit was named */
    MAPPER_SAFER_STOPPED,    /* the first search was stopped before it */
    MAPPER_SAFER_NONE,       /* no plan has one */
    MAPPER_SAFER_FOUND
};

struct mapper_info {
    long configurations; /* that divide and use no more GPUs than there are */
    long refused_memory; /* of those asked for their memory: over the limit */
    long placed;         /* of these, placed */
    long sketched; /* of the others, laid out cheaply and found not to be worth it */
    long unplaced; /* of these, for which no connected and legal placement was found;
                            unless there is none, their bounds are part of the result's */
    double seconds;
    bool proven;     /* every configuration was placed, refused or cut by its bound */
    bool stopped;    /* by the time limit or by progress() */
    int joined_gpus; /* more than so many GPUs, and every plan uses links that nobody
                        measured, so that none was looked at; 0: all were looked at */
    enum mapper_safer safer;
    bool missed;   /* nothing fits; miss says what came closest */
    bool resorted; /* nor was there a plan with what may be offloaded */
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
/** The chance of running out of memory that a plan may have where nobody names a limit. */
#define MAPPER_RISK 0.01

/** What is offloaded where nothing fits without, in the order in which it is tried: what slows a
 *  step least first. */
#define MAPPER_RESORTS 3
extern const enum workload_offload mapper_resorts[MAPPER_RESORTS];

/** Can the profile's framework keep that in the host's memory, and is its memory known? */
static inline bool mapper_can_offload (const struct mapper_problem *p,
                                       enum workload_offload o)
{
    return p->memory_model == MEMEST_LINKWISE && p->profile->offloads >> o & 1;
}

/** mapper_search; where nothing fits in memory and axes.offload is free, with the first of
 *  mapper_resorts with which something does.  Bound and proof are about that space then.
 *
 *  Where the limit is free (and a tie given: 0 asks for the best) and the plan runs
 *  out of memory with a chance above MAPPER_RISK, among the configurations that do not, if any
 *  does fit.  Bound and proof are about these then, and r->riskier has what the others gain.
 *  @param[in,out] p   its oom_risk becomes MAPPER_RISK then, its axes.offload what is offloaded
 *  @param[out] info   its safer says what became of that */
enum status mapper_search_prudent (struct mapper_problem *p,
                                   const struct mapper_settings *s,
                                   struct mapper_result *r, struct mapper_info *info,
                                   struct error *err);

/** Let a job's profile be the one that serves on all nodes that may be used, where ranks may go.
 *  @param[in,out] profile  not p's, or p's own */
enum status mapper_profile_allowed (const struct mapper_problem *p,
                                    struct workload_profile *profile, struct error *err);
/** Those of the nodes that may be used on which the problem's profile serves.
 *  @param[out] marks  [n_nodes], in place of node_allowed; free it */
enum status mapper_serving_nodes (const struct mapper_problem *p, bool **marks,
                                  struct error *err);
/** Price a result by the profile that serves on the GPU types that it uses, where that is another
 *  one than on all: idle nodes change no estimate.  Its gap stays; a list of others goes.
 *  @param[in,out] p        whose profile is the next parameter then
 *  @param[in,out] profile  as p's; then that on the types in use */
enum status mapper_result_use (struct mapper_problem *p, struct workload_profile *profile,
                               struct mapper_result *r, struct error *err);
/** Search the nodes on which the result's profile serves, and take what is better.  What the search
 *  of all nodes found holds as well: each compares plans by one profile, so that this is its gap.
 *  @param[in]     p     as it was searched
 *  @param[in,out] used  as mapper_result_use left it; then that of what is taken */
enum status mapper_search_serving (const struct mapper_problem *p,
                                   struct mapper_problem *used,
                                   const struct mapper_settings *s,
                                   struct mapper_result *r, struct mapper_info *info,
                                   struct error *err);
/** mapper_search_prudent and mapper_result_use.  Where that takes another profile, its nodes are
 *  searched again by it, unless the time is over, and the better plan is taken.
 *  @param[in,out] p, profile  as above */
enum status mapper_search_used (struct mapper_problem *p,
                                struct workload_profile *profile,
                                const struct mapper_settings *s, struct mapper_result *r,
                                struct mapper_info *info, struct error *err);
void mapper_result_release (struct mapper_result *r);

/** The stage of a result whose memory is nearest to its limit. */
int mapper_tightest_stage (const struct mapper_problem *p, const struct mapper_result *r);

/** The largest chance of a stage of a result of running out of memory; NAN: not known. */
double mapper_chance (const struct mapper_problem *p, const struct mapper_result *r);

/** The node whose ranks keep most in their host's memory, and how much.
 *  @return -1: none keeps any, or memory is short */
int mapper_fullest_host (const struct mapper_problem *p, const struct mapper_result *r,
                         double *bytes);

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

/** The whole plan file, as docs/plan.md has it.
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
