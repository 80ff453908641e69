/* Interleaved 1F1B: 1F1B over chunks, in groups of p micro-batches, with 2 (p-1-i) + (v-1) p
 * forwards of chunks first (Megatron-Core's forward_backward_pipelining_with_interleaving). */
#include "workload/schedule/schedule_private.h"

static int before_turns (struct workload_pipeline_size size, int stage)
{
    int after = size.stages - 1 - stage;

    return size.chunks > 1 ? 2 * after + (size.chunks - 1) * size.stages : after;
}

static double in_flight (struct workload_pipeline_size size, int stage)
{
    int warm = 2 * (size.stages - 1 - stage) + (size.chunks - 1) * size.stages;
    double all = (double) size.microbatches * size.chunks;

    return (warm + 1 < all ? warm + 1 : all) / size.chunks;
}

static int forwards_first (struct workload_pipeline_size size, int stage)
{
    return schedule_warm_up (size, before_turns (size, stage) + 1);
}

static void order (struct workload_pipeline_size size, int stage, struct workload_op *op)
{
    schedule_take_turns (size, schedule_warm_up (size, before_turns (size, stage)), op);
}

const struct workload_schedule_rules schedule_interleaved = {.name = "interleaved",
                                                             .chunks = 2,
                                                             .whole_groups = true,
                                                             .in_flight = in_flight,
                                                             .forwards_first =
                                                                 forwards_first,
                                                             .order = order};
