/* The table of schedules, and what their rules say. */
#include "workload/schedule/schedule_private.h"

#include <string.h>

static const struct workload_schedule_rules *const schedules[SCHEDULES] = {
    [SCHEDULE_1F1B] = &schedule_1f1b,
    [SCHEDULE_GPIPE] = &schedule_gpipe,
    [SCHEDULE_INTERLEAVED] = &schedule_interleaved,
    [SCHEDULE_ZB1P] = &schedule_zb1p,
    [SCHEDULE_ZB2P] = &schedule_zb2p,
    [SCHEDULE_ZBV] = &schedule_zbv,
    [SCHEDULE_V_HALF] = &schedule_v_half,
    [SCHEDULE_V_MIN] = &schedule_v_min,
    [SCHEDULE_DUALPIPEV] = &schedule_dualpipev};

const char *const workload_schedule_words[] = {[SCHEDULE_1F1B] = "1f1b",
                                               [SCHEDULE_GPIPE] = "gpipe",
                                               [SCHEDULE_INTERLEAVED] = "interleaved",
                                               [SCHEDULE_ZB1P] = "zb1p",
                                               [SCHEDULE_ZB2P] = "zb2p",
                                               [SCHEDULE_ZBV] = "zbv",
                                               [SCHEDULE_V_HALF] = "v-half",
                                               [SCHEDULE_V_MIN] = "v-min",
                                               [SCHEDULE_DUALPIPEV] = "dualpipev",
                                               [SCHEDULES] = NULL};

const struct workload_schedule_rules *workload_schedule_rules (enum workload_schedule s)
{
    return schedules[s];
}

bool workload_schedule_parse (const char *s, enum workload_schedule *out)
{
    for (int i = 0; i < SCHEDULES; i++)
        if (strcmp (workload_schedule_words[i], s) == 0) {
            *out = (enum workload_schedule) i;
            return true;
        }
    return false;
}

double workload_schedule_in_flight (enum workload_schedule s,
                                    struct workload_pipeline_size size, int stage)
{
    const struct workload_schedule_rules *rules = schedules[s];

    return rules->held > 0 ? schedule_least (rules->held * size.stages / rules->chunks,
                                             size.microbatches)
                           : rules->in_flight (size, stage);
}

int workload_forwards_first (enum workload_schedule s, int stages, int chunks,
                             int microbatches, int stage)
{
    struct workload_pipeline_size size = {stages, chunks, microbatches};
    const struct workload_schedule_rules *rules = schedules[s];

    if (rules->held > 0)
        return schedule_warm_up (size, rules->held * size.stages);
    return rules->pace > 0 ? schedule_pattern_first (rules->pace, size, stage)
                           : rules->forwards_first (size, stage);
}

void workload_schedule_order (enum workload_schedule s,
                              struct workload_pipeline_size size, int stage,
                              struct workload_op *op)
{
    const struct workload_schedule_rules *rules = schedules[s];

    if (rules->pace > 0)
        schedule_pattern_order (rules->pace, size, stage, op);
    else
        rules->order (size, stage, op);
}

void workload_schedule_slots (enum workload_schedule s, int stages, int *slot)
{
    schedule_pattern_slots (schedules[s]->pace, stages, slot);
}
