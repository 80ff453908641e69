/* Memory of one training rank, by pipeline stage and by kind.
 *
 * Formulas: Korthikanti et al., arXiv 2205.05198, equations 1-5; Megatron-LM's
 * theoretical_memory_usage; FlashAttention and fused-kernel forms as in docs/memory.md,
 * which names the source of every term.
 */
#ifndef MEMEST_MEMEST_H
#define MEMEST_MEMEST_H

#include <jansson.h>

#include "base/error.h"
#include "workload/workload.h"

/** Bytes on one rank of a stage at its worst moment. */
struct memest_stage {
    double weights_bytes;
    double gradients_bytes;
    double optimizer_bytes;
    double activations_bytes; /* of every micro-batch in flight */
    double logits_bytes;      /* last stage: logits, their softmax and gradient */
    double buffers_bytes;     /* gathered tensors, receive buffers, gathered weights */
    double overhead_bytes;    /* driver context, communicators, fragmentation */
    double peak_bytes;        /* the sum */
};

/** Estimate one stage.
 *
 *  Pure arithmetic on checked input (workload_config_check), so it cannot fail.
 *
 *  @param[in]  stage   0 to pp-1
 *  @param[in]  layers  how many the stage holds, 1 or more
 *  @param[out] out     bytes
 */
void memest_stage (const struct workload_model *m, const struct workload_job *j,
                   const struct workload_config *c, const struct workload_profile *p,
                   int stage, int layers, struct memest_stage *out);

/** The most layers that a stage can hold within limit_bytes, at most `layers`; 0 when
 *  not even one fits.  Memory never falls when layers grow. */
int memest_max_layers (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       int stage, int layers, double limit_bytes);

/** One stage as a JSON object with the contract's keys.  A new reference. */
json_t *memest_stage_to_json (const struct memest_stage *s);

#endif
