/* How messages travel between two partners: one .c file each, and one line in
 * transport.c's table.
 *
 * The engine (probe.c) decides what is sent when and does the timing's arithmetic; a
 * transport connects a pair, moves messages and times them at the sender.  One message's
 * time runs from its first byte to the arrival of the receiver's short answer, so that no
 * two clocks need to agree; what the answer takes is a constant that the fit removes.
 *
 * Every call gives up, with a reason, when nothing moves for s->how.timeout_s, when rank 0
 * aborts the order, or when the partner's side connection ends.
 */
#ifndef BWPROBE_TRANSPORT_H
#define BWPROBE_TRANSPORT_H

#include "bwprobe/station.h"

/** A pair that measures. */
struct pair {
    const struct msg_run *run;
    int side; /* connection on which the partners agree what comes next */
};

struct transport_defaults {
    double alone_s, together_s, timeout_s;
    uint64_t max_bytes;
    double setup_s; /* expected time to connect a pair */
};

struct transport {
    const char *name;
    struct transport_defaults defaults;

    /** Get the device and buffers of s->how.max_bytes; say what it is. */
    enum status (*open) (struct station *s, struct msg_opened *opened, struct error *err);
    void (*close) (struct station *s);

    /** NULL where pairs need no parent. */
    enum status (*make_id) (struct station *s, unsigned char id[NCCL_ID],
                            struct error *err);
    enum status (*parent) (struct station *s, const struct msg_parent *p,
                           struct error *err);
    /** Take part in a split without a partner. */
    enum status (*sit_out) (struct station *s, struct error *err);

    enum status (*connect) (struct station *s, const struct pair *p, struct error *err);
    /** Send count messages, one after the other's answer.
     *  @param[out] seconds  [count] */
    enum status (*send) (struct station *s, const struct pair *p, size_t bytes, int count,
                         double *seconds, struct error *err);
    enum status (*recv) (struct station *s, const struct pair *p, size_t bytes, int count,
                         struct error *err);
    /** Put data at the front of what is sent, and get what was received. */
    enum status (*load) (struct station *s, const void *data, size_t bytes,
                         struct error *err);
    enum status (*unload) (struct station *s, void *data, size_t bytes,
                           struct error *err);
    /** Close the pair's connections; after a failure without waiting for the partner. */
    void (*disconnect) (struct station *s, bool failed);
};

extern const struct transport transport_socket, transport_nccl;

/** A transport by its name, or NULL. */
const struct transport *transport_find (const char *name);

#endif
