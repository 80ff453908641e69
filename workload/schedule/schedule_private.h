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

/** Of the pattern of slots with this pace, what the rules' forwards_first and order are, and its
 *  slots. */
int schedule_pattern_first (int pace, struct workload_pipeline_size size, int stage);
void schedule_pattern_order (int pace, struct workload_pipeline_size size, int stage,
                             struct workload_op *op);
void schedule_pattern_slots (int pace, int stages, int *slot);

#endif
