/* 1F1B: p-1-i forwards, then one forward and one backward in turn (Narayanan et al., arXiv
 * 2104.04473, section 2.2). */
#include "workload/schedule/schedule_private.h"

static double in_flight (struct workload_pipeline_size size, int stage)
{
    return schedule_least (size.stages - stage, size.microbatches);
}

static int warm_up (struct workload_pipeline_size size, int stage)
{
    return schedule_warm_up (size, size.stages - 1 - stage);
}

static int forwards_first (struct workload_pipeline_size size, int stage)
{
    return schedule_warm_up (size, warm_up (size, stage) + 1);
}

static void order (struct workload_pipeline_size size, int stage, struct workload_op *op)
{
    schedule_take_turns (size, warm_up (size, stage), op);
}

const struct workload_schedule_rules schedule_1f1b = {.name = "1f1b",
                                                      .chunks = 1,
                                                      .in_flight = in_flight,
                                                      .forwards_first = forwards_first,
                                                      .order = order};
