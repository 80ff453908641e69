/* A rank carries out what rank 0 asks. */
#ifndef BWPROBE_ORDERS_H
#define BWPROBE_ORDERS_H

#include "bwprobe/station.h"

/** Until rank 0 says goodbye or is gone. */
enum status orders_work (struct station *s, struct error *err);

/* ---- probe.c ---- */

/** One order: measure both directions, one after the other, with the partner that it names.
 *
 *  Each direction: messages whose times are thrown away, short ones back and forth for the
 *  latency, then messages of three sizes in turn for s->how.alone_s (or together_s, begun
 *  when rank 0 says GO), a line through their times over their bytes, and one message whose
 *  content is compared.
 *
 *  @param[out] result  what this rank saw; a failure is in ok[] and reason[]
 */
void probe_run (struct station *s, const struct msg_run *run, struct msg_result *result);

#endif
