/* Zero-bubble schedules whose order follows from the times, within a limit on memory: of p
 * micro-batches in ZB1P and (of two chunks each, in a V) ZBV, of twice as many in ZB2P (Qi et
 * al., arXiv 2401.10241 and 2405.15362). */
#include "workload/schedule/schedule_private.h"

const struct workload_schedule_rules schedule_zb1p = {
    .chunks = 1, .splits_backward = true, .held = 1};

const struct workload_schedule_rules schedule_zb2p = {
    .chunks = 1, .splits_backward = true, .held = 2};

const struct workload_schedule_rules schedule_zbv = {
    .chunks = 2, .v_shaped = true, .splits_backward = true, .held = 2};
