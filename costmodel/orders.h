/* The order in which each stage of a pipeline works, per schedule. */
#ifndef COSTMODEL_ORDERS_H
#define COSTMODEL_ORDERS_H

#include "costmodel/costmodel.h"

/** One operation: a chunk of a stage on one micro-batch. */
struct order_op {
    enum costmodel_operation what;
    int chunk, micro;
};

/** Stage and chunk of virtual stage k, counted along a micro-batch's way forward: chunk
 *  after chunk round the stages, every second chunk in reverse where the schedule is a
 *  V. */
static inline void order_place (const struct costmodel_pipeline *p, bool v, int k,
                                int *stage, int *chunk)
{
    *chunk = k / p->stages;
    *stage = k % p->stages;
    if (v && *chunk % 2)
        *stage = p->stages - 1 - *stage;
}

/** Its number. */
static inline int order_virtual (const struct costmodel_pipeline *p, bool v, int stage,
                                 int chunk)
{
    return chunk * p->stages + (v && chunk % 2 ? p->stages - 1 - stage : stage);
}

/** Chunks whose activations a stage may hold where the order follows from the times: of p
 *  micro-batches in ZB1P and (of two chunks each) ZBV, of twice as many in ZB2P. */
int order_memory_limit (enum workload_schedule s, int stages);

/** Operations of one stage in all. */
static inline int order_count (enum workload_schedule s,
                               const struct costmodel_pipeline *p)
{
    return (costmodel_schedule_splits_backward (s) ? 3 : 2) * p->chunks * p->microbatches;
}

/** The operations of one stage in order, for the schedules that fix it.
 *
 *  1F1B: p-1-i forwards, then one forward and one backward in turn (Narayanan et al.,
 *  arXiv 2104.04473, section 2.2).  Interleaved: the same over chunks, in groups of p
 *  micro-batches, with 2 (p-1-i) + (v-1) p forwards first (Megatron-Core's
 *  forward_backward_pipelining_with_interleaving).
 *
 *  V-Half and V-Min: every micro-batch repeats one pattern of six slots a stage, in which
 *  each pass goes from stage to stage at its own pace (Qi et al., arXiv 2405.15362,
 *  section 3: 2, 1, 2, 1 and 1, 1, 1, 1 slots a stage for the forwards of both chunks and
 *  their backwards); weights' gradients take the slots that are left.
 *
 *  @param[out] op  [order_count] */
void order_of_stage (enum workload_schedule s, const struct costmodel_pipeline *p,
                     int stage, struct order_op *op);

#endif
