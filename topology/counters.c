/* What counters accuse a link of.
 *
 * - Symbol errors and recoveries: 10 is the threshold in the example of ibqueryerrors' manual
 *   page (/etc/infiniband-diags/error_thresholds); bad packets are taken to be alike.
 * - A link that went down once: so it does when its node boots.
 * - NVLink replays and recoveries: DCGM calls one of them a failure; checksum errors matter
 *   from 100 a second (DCGM, DcgmGPUHardwareLimits.h).
 * - Waiting to send and packets discarded by a full queue tell of congestion.
 */
#include "topology/topology_private.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

static const struct topology_counter counters[] = {
    {"symbol_error", "SymbolErrorCounter SymbolErrorCounterExt", 10, 0},
    {"link_recovery", "LinkErrorRecoveryCounter LinkErrorRecoveryCounterExt", 10, 0},
    {"link_downed", "LinkDownedCounter LinkDownedCounterExt", 1, 0},
    {"receive_error", "PortRcvErrors PortRcvErrorsExt", 10, 0},
    {"link_integrity", "LocalLinkIntegrityErrors LocalLinkIntegrityErrorsExt", 10, 0},
    {"buffer_overrun", "ExcessiveBufferOverrunErrors ExcessiveBufferOverrunErrorsExt", 10,
     0},
    {"transmit_wait", "PortXmitWait PortXmitWaitExt", INFINITY, 0},
    {"transmit_discard", "PortXmitDiscards PortXmitDiscardsExt", INFINITY, 0},
    {"nvlink_replay", "NVLINK_REPLAY_ERROR_COUNT_TOTAL", 0, 0},
    {"nvlink_recovery", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 0, 0},
    {"nvlink_crc_flit", "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 100, 1},
    {"nvlink_crc_data", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 100, 1},
    {"nvlink_crc", "", 100, 1}};
enum { COUNTERS = sizeof counters / sizeof *counters };

const struct topology_counter *topology_counter_spelled (const char *spelling)
{
    for (int i = 0; i < COUNTERS; i++)
        if (text_has_word (counters[i].spellings, spelling))
            return &counters[i];
    return topology_counter_named (spelling);
}

const struct topology_counter *topology_counter_named (const char *name)
{
    for (int i = 0; i < COUNTERS; i++)
        if (strcmp (counters[i].name, name) == 0)
            return &counters[i];
    return NULL;
}

double topology_counter_allowed (const struct topology_counter *c, double seconds)
{
    return c->per_second ? c->allowed * seconds : c->allowed;
}
