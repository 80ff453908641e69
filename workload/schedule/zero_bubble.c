/* Zero-bubble schedules whose order follows from the times, within a limit on memory: of p
 * micro-batches in ZB1P and (of two chunks each, in a V) ZBV, of twice as many in ZB2P (Qi et
 * al., arXiv 2401.10241 and 2405.15362). */
#include "workload/schedule/schedule_private.h"

static int once (int stages)
{
    return stages;
}

static int twice (int stages)
{
    return 2 * stages;
}

static double in_flight_once (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_least (size.stages, size.microbatches);
}

static double in_flight_twice (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_least (2 * size.stages, size.microbatches);
}

static int first_once (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_warm_up (size, once (size.stages));
}

static int first_twice (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_warm_up (size, twice (size.stages));
}

const struct workload_schedule_rules schedule_zb1p = {.name = "zb1p",
                                                      .chunks = 1,
                                                      .splits_backward = true,
                                                      .in_flight = in_flight_once,
                                                      .forwards_first = first_once,
                                                      .memory_limit = once};

const struct workload_schedule_rules schedule_zb2p = {.name = "zb2p",
                                                      .chunks = 1,
                                                      .splits_backward = true,
                                                      .in_flight = in_flight_twice,
                                                      .forwards_first = first_twice,
                                                      .memory_limit = twice};

const struct workload_schedule_rules schedule_zbv = {.name = "zbv",
                                                     .chunks = 2,
                                                     .v_shaped = true,
                                                     .splits_backward = true,
                                                     .in_flight = in_flight_once,
                                                     .forwards_first = first_twice,
                                                     .memory_limit = twice};
