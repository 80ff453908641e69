/* Memory of one training rank, by pipeline stage and by kind.
 *
 * Formulas: Korthikanti et al., arXiv 2205.05198, equations 1-5; Megatron-LM's
 * theoretical_memory_usage; FlashAttention and fused-kernel forms as in docs/memory.md,
 * which names the source of every term.
 */
#ifndef MEMEST_MEMEST_H
#define MEMEST_MEMEST_H

#include <jansson.h>
#include <math.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/workload.h"

/** Bytes on one rank of a stage at its worst moment. */
struct memest_stage {
    double weights_bytes;
    double gradients_bytes;
    double optimizer_bytes;
    double activations_bytes; /* of every micro-batch in flight */
    double logits_bytes;   /* stage with the head: logits, their softmax and gradient */
    double buffers_bytes;  /* gathered tensors, receive buffers, gathered weights */
    double overhead_bytes; /* driver context, communicators, fragmentation */
    double peak_bytes;     /* the sum */
    /* On top where there is room: what the allocator keeps of activations, and of the step's first
     * copies, beside a step's buffer that is too long for their blocks.  It gives them back before
     * it runs out. */
    double cached_bytes;
    /* in the host's memory: what is offloaded, and the gradients there */
    double host_bytes;
};

/** The source of the formulas.
 *
 *  MEMEST_FUJII: Fujii, Watanabe, Yokota, arXiv 2411.06465: model states of 6 + 12/dp bytes
 *  per parameter (18 without a distributed optimizer, eq. 4) and s b h (12 + 4 k/a + 8 f/h)
 *  / (tp cp) bytes of activations a layer and micro-batch in flight (eq. 12); no logits, no
 *  overheads; an estimate of at most 80 % of the device never ran out in their 454 runs.
 *  Full recomputation keeps 2 s b h a layer.
 *
 *  MEMEST_KORTHIKANTI: Korthikanti et al., arXiv 2205.05198: 18 bytes for each matmul
 *  parameter of the layers, and eq. 1-4 with the first stage's p micro-batches in flight,
 *  1 + (p-1)/(p v) of them under interleaving. */
enum memest_model { MEMEST_LINKWISE, MEMEST_FUJII, MEMEST_KORTHIKANTI };
const char *memest_model_name (enum memest_model m);
bool memest_model_parse (const char *s, enum memest_model *m);
/** The part of a GPU in percent that an estimate may take unless told otherwise: 80 under
 *  Fujii's rule, 95 else. */
static inline double memest_usual_limit_pct (enum memest_model m)
{
    return m == MEMEST_FUJII ? 80 : 95;
}

/** A peak, and how much of it are weights, gradients and optimizer state: these follow from the
 *  framework and the number of parameters, and are surer than the rest. */
struct memest_load {
    double peak_bytes, states_bytes;
};

static inline struct memest_load memest_load_of (const struct memest_stage *s)
{
    return (struct memest_load){s->peak_bytes, s->weights_bytes + s->gradients_bytes +
                                                   s->optimizer_bytes};
}

/** Everything that an estimate is about; all borrowed.  The configuration must have passed
 *  workload_config_check. */
struct memest_problem {
    const struct workload_model *model;
    const struct workload_job *job;
    const struct workload_config *config;
    const struct workload_profile *profile;
    enum memest_model by;
    double host_limit_bytes; /* of the host's memory, for one GPU; 0: not known */
    double states_less;      /* memest_states_less of a limit by risk; else 0 */
};

/** The peak at which a stage of such proportions reaches a limit: under a limit by risk states take
 *  less of it than the rest. */
static inline double memest_limit_of (const struct memest_problem *p,
                                      const struct memest_stage *s, double limit_bytes)
{
    double counted = s->peak_bytes - p->states_less * memest_load_of (s).states_bytes;

    return counted > 0.0 ? limit_bytes * (s->peak_bytes / counted) : limit_bytes;
}

/** Does a stage fit its share of the host, and its GPU too? */
static inline bool memest_fits_host (const struct memest_problem *p,
                                     const struct memest_stage *s)
{
    return !(p->host_limit_bytes > 0.0) || s->host_bytes <= p->host_limit_bytes;
}
static inline bool memest_fits (const struct memest_problem *p,
                                const struct memest_stage *s, double limit_bytes)
{
    return s->peak_bytes <= memest_limit_of (p, s, limit_bytes) &&
           memest_fits_host (p, s);
}

/** Estimate one stage.
 *
 *  Pure arithmetic on checked input, so it cannot fail.
 *
 *  @param[in]  stage  0 to pp-1
 *  @param[in]  held   what the stage holds (workload_stage_of, workload_stage_guess)
 *  @param[out] out    bytes
 */
void memest_stage (const struct memest_problem *p, int stage,
                   const struct workload_stage *held, struct memest_stage *out);

/** The least memory of a stage with this many layers, whichever they are: the least of each
 *  kind. */
void memest_stage_least (const struct memest_problem *p, int stage, int layers,
                         struct memest_stage *out);

/** What some stage takes of a limit at least, whichever split, schedule, chunks, micro-batch and
 *  recomputation: the mean of the layers' states over the stages.  0 with published formulas.
 *  @param[in] all  workload_all_layers of the model */
double memest_states_least (const struct memest_problem *p,
                            const struct workload_stage *all);

/** The most layers, at most `layers`, that a stage can hold within limit_bytes, whichever
 *  they are, the same number in each chunk; 0 when none fits.  One more layer in every
 *  chunk never lowers memory; one more in some chunks may. */
int memest_max_layers (const struct memest_problem *p, int stage, int layers,
                       double limit_bytes);

/** The peak that is measured z standard deviations above its estimate.
 *
 *      states e^(a z) + (peak - states) e^(r z)
 *
 *  with the profile's residual r, and its states_residual a or r, whichever is less: both parts are
 *  log-normal about their estimates, and err together (docs/memory.md). */
double memest_peak_at (const struct workload_profile *p, struct memest_load load,
                       double z);

/** A 90 % interval goes from peak / factor to peak x factor. */
double memest_interval (const struct workload_profile *p, struct memest_load load);

/** Standard deviations that a measured peak is above its estimate, by memest_peak_at. */
double memest_deviations (const struct workload_profile *p, struct memest_load load,
                          double measured_bytes);

/** Chance that the measured peak is over gpu_bytes. */
double memest_oom_probability (const struct workload_profile *p, struct memest_load load,
                               double gpu_bytes);

/** The same for an estimate by any model: NAN for published ones, since the profile does
 *  not know their errors. */
static inline double memest_chance (enum memest_model by,
                                    const struct workload_profile *p,
                                    struct memest_load load, double gpu_bytes)
{
    return by == MEMEST_LINKWISE ? memest_oom_probability (p, load, gpu_bytes) : NAN;
}

/** The larger of two chances; NAN where one is not known. */
static inline double memest_larger_chance (double a, double b)
{
    return isnan (a) || a > b ? a : b;
}

/** How much of a GPU an estimate may take: pct percent of gpu_bytes, or, with risk > 0,
 *  as much as leaves a chance of at most `risk` (below 1) of running out, if none of it are
 *  states. */
double memest_limit (const struct workload_profile *p, double gpu_bytes, double pct,
                     double risk);

/** What is not counted of states in a limit by risk, as part of them: a stage whose peak is at most
 *  that limit and this part of its states has a chance of at most `risk`.  0 with risk 0. */
double memest_states_less (const struct workload_profile *p, double risk);

/** One stage as a JSON object with the contract's keys.  A new reference. */
json_t *memest_stage_to_json (const struct memest_stage *s);

/* ---- why not ---- */

/** The smallest single change to a configuration that makes every stage fit.
 *
 *  Tried from the cheapest: sequence parallelism, ZeRO 1, selective recomputation,
 *  smaller micro-batches, recomputing some of the layers (the fewest that do), all of
 *  them, ZeRO 2 and 3, then twice, four times, ... the data-, context-, pipeline- or
 *  tensor-parallel degree, whichever takes the fewest GPUs more.  Only what the profile
 *  offers.
 *
 *  @param[in]  layers       [pp] the split now; a changed pp takes the profile's
 *  @param[in]  limit_bytes  of every stage
 *  @param[out] out          the changed configuration
 *  @param[out] words        what changed, for a message: "micro-batch 2 instead of 8"
 *  @return true if there is one */
bool memest_smallest_change (const struct memest_problem *p, const int *layers,
                             double limit_bytes, struct workload_config *out,
                             struct text *words);

/** The kind that takes most of a stage, in words, and its bytes. */
const char *memest_largest_kind (const struct memest_stage *s, double *bytes);

#endif
