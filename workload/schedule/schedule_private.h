/* What the files of the schedules share. */
#ifndef WORKLOAD_SCHEDULE_SCHEDULE_PRIVATE_H
#define WORKLOAD_SCHEDULE_SCHEDULE_PRIVATE_H

#include "workload/schedule/schedule.h"

extern const struct workload_schedule_rules schedule_1f1b, schedule_gpipe,
    schedule_interleaved, schedule_zb1p, schedule_zb2p, schedule_zbv, schedule_v_half,
    schedule_v_min, schedule_dualpipev;

static inline int schedule_least (int a, int b)
{
    return a < b ? a : b;
}

/** Forwards before one forward and one backward take turns: `warm`, or all there are. */
static inline int schedule_warm_up (struct workload_pipeline_size size, int warm)
{
    return schedule_least (warm, size.microbatches * size.chunks);
}

/** `warm` forwards, then one forward and one backward in turn, then the backwards that are
 *  left.  Groups of `stages` micro-batches (the last may be smaller) go through all chunks
 *  before the next group starts.
 *  @param[out] op  [2 * chunks * microbatches] */
void schedule_take_turns (struct workload_pipeline_size size, int warm,
                          struct workload_op *op);

#endif
