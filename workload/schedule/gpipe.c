/* GPipe: all forwards, then all backwards (Huang et al., arXiv 1811.06965). */
#include "workload/schedule/schedule_private.h"

static double in_flight (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return size.microbatches;
}

static int forwards_first (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return size.microbatches * size.chunks;
}

static void order (struct workload_pipeline_size size, int stage, struct workload_op *op)
{
    schedule_take_turns (size, forwards_first (size, stage), op);
}

const struct workload_schedule_rules schedule_gpipe = {.name = "gpipe",
                                                       .chunks = 1,
                                                       .in_flight = in_flight,
                                                       .forwards_first = forwards_first,
                                                       .order = order};
