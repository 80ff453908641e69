/* A rank at work: its line to rank 0, the door at which partners knock, and how it waits.
 *
 * A rank does one thing at a time, and everything that can take long waits here: station_wait
 * answers rank 0 and looks after the door while it waits for something else.
 */
#ifndef BWPROBE_STATION_H
#define BWPROBE_STATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bwprobe/messages.h"

struct transport;
struct transport_state;

enum { DOOR_WAITING = 64 };

/* Bit of an order's number that marks the building of a parent communicator. */
#define STATION_PARENT 0x80000000u

/** Connections that partners opened and nobody has asked for yet. */
struct door {
    int fd; /* listening */
    struct net_place place;
    struct net_token token;
    struct {
        int fd; /* -1: free */
        size_t got;
        double since;
        unsigned char greeting[NET_GREETING];
    } waiting[DOOR_WAITING];
    uint32_t refused; /* turned away and not reported yet */
    char refused_from[NET_ADDRESS];
};

struct station {
    uint32_t rank;
    struct msg_welcome how;
    int control; /* connection to rank 0 */
    /* Rank 0 is asked whether it is there after so long a silence, and given up after twice as
     * long. */
    double patience_s;
    double heard_s; /* when it last said something */
    unsigned char in[WIRE_MAX];
    size_t n_in;
    struct door door;
    const struct transport *transport; /* NULL before WELCOME */
    struct transport_state *state;     /* NULL before, and where it could not be opened */

    /* What rank 0 said while this rank was waiting for something else. */
    uint32_t seq;    /* of the order in work; 0: none */
    bool collective; /* set by a transport whose parent communicator failed */
    bool aborted;    /* that order is to be given up */
    char abort_reason[MESSAGES_REASON];
    int gone; /* directions that may be sent: 0, 1 or 2 */
    bool bye;
    struct msg_bye last_word;
    struct wire order; /* RUN, PARENT or COMPUTE to be carried out next */
    bool has_order;
    struct wire out, heard; /* frames being written and read */
};

/** Open the door on an address. */
enum status station_open_door (struct station *s, const char *address,
                               const struct net_token *token, struct error *err);

/** Connect to rank 0, say hello, and wait for its first order, which orders_work carries out.
 *  Where rank 0 closes the connection instead, as it does with the longest silent ones of a
 *  flood, try again a few times.
 *
 *  @param[in] from      own address to bind to; NULL: what the system takes
 *  @param[in] deadline  for rank 0 to be there
 */
enum status station_join (struct station *s, const struct net_place *rank0,
                          const char *from, struct msg_hello *hello, double deadline,
                          struct error *err);

/** Wait until fd is ready for events, or the deadline; fd -1 only waits.
 *
 *  @param[in] deadline  on the monotonic clock
 *  @return ST_OK; ST_IO with a reason: "no progress ..." at the deadline, what rank 0 said
 *          when it aborted this order, "rank 0 is gone"
 */
enum status station_wait (struct station *s, int fd, short events, double deadline,
                          struct error *err);

/** The same for something that cannot be polled: look after rank 0 and the door for a
 *  moment, at most `seconds`.
 *  @param[in] partner  side connection whose end is a reason to give up, or -1 */
enum status station_pause (struct station *s, int partner, double seconds,
                           struct error *err);

/** The connection that a partner opened for this purpose and order.
 *  @param[out] fd  non-blocking; the caller closes it */
enum status station_admit (struct station *s, const struct net_greeting *wanted,
                           double deadline, int *fd, struct error *err);

/** Connect to a partner's door and greet it. */
enum status station_knock (struct station *s, const struct net_place *door,
                           enum net_purpose purpose, double deadline, int *fd,
                           struct error *err);

/** Move exactly n bytes; the deadline is renewed while bytes move. */
enum status station_write (struct station *s, int fd, const void *data, size_t n,
                           struct error *err);
enum status station_read (struct station *s, int fd, void *data, size_t n,
                          struct error *err);

/** Begin a frame to rank 0: the caller writes its fields into s->out. */
void station_begin (struct station *s, enum message type);
/** Send it. */
enum status station_send (struct station *s, struct error *err);

/** Both, with a message's fields: FIELDS is its function of messages.h. */
#define STATION_TELL(s, type, FIELDS, m, err) \
    (station_begin (s, type), FIELDS (&(s)->out, m), station_send (s, err))

/** Wait for rank 0's next order (has_order) or its goodbye (bye).
 *  @return ST_OK, or ST_IO, also when it says nothing for 2 * patience_s */
enum status station_await_order (struct station *s, struct error *err);

void station_close (struct station *s);

/* ---- orders.c: what rank 0 asks ---- */

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
