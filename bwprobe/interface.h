/* One interface for the job's own connections and for NCCL's. */
#ifndef BWPROBE_INTERFACE_H
#define BWPROBE_INTERFACE_H

#include <stdbool.h>

#include "base/error.h"
#include "bwprobe/net.h"

/** True if NCCL would take an interface: NCCL_SOCKET_IFNAME is a list of beginnings of names,
 *  "ib,eth"; "=eth0,eth1" are whole names, "^docker,lo" (and "^=") those not to be taken. */
bool interface_matches (const char *nccl_list, const char *name);

/** Agree with NCCL on an interface, before any thread is started.
 *
 *  What --interface says holds for NCCL's own sockets too: NCCL_SOCKET_IFNAME is set where the user
 *  did not.  Without --interface the user's NCCL_SOCKET_IFNAME holds for the job's connections,
 *  where this machine has such an interface.
 *
 *  @param[in]  asked    --interface, or NULL
 *  @param[out] address  [NET_ADDRESS] what to bind to; "" where nobody said anything
 *  @return ST_OK, or as net_own_address
 */
enum status interface_settle (const char *asked, char *address, struct error *err);

#endif
