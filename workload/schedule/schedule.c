/* The table of schedules, and the order that several of them have in common. */
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

const struct workload_schedule_rules *workload_schedule_rules (enum workload_schedule s)
{
    return schedules[s];
}

bool workload_schedule_parse (const char *s, enum workload_schedule *out)
{
    for (int i = 0; i < SCHEDULES; i++)
        if (strcmp (schedules[i]->name, s) == 0) {
            *out = (enum workload_schedule) i;
            return true;
        }
    return false;
}
