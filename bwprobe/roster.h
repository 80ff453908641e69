/* Rank 0's side of the control channel: who is there, what they say, who is gone. */
#ifndef BWPROBE_ROSTER_H
#define BWPROBE_ROSTER_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "bwprobe/messages.h"

enum member_state {
    MEMBER_ABSENT, /* has not said hello */
    MEMBER_HERE,
    MEMBER_GONE
};

struct member {
    uint32_t rank;
    enum member_state state;
    struct msg_hello hello;
    struct msg_opened opened;
    char gone[MESSAGES_REASON]; /* why, when MEMBER_GONE */
    int fd;                     /* -1: none */
    unsigned char *in;          /* [ROSTER_IN] bytes received and not yet taken */
    size_t n_in;
    struct text out; /* bytes that the socket did not take yet */
    double pinged;   /* when it was asked whether it is there; 0: not */
    int endpoint;    /* its place among the endpoints; -1: none */
    int work;        /* place in the round in work; -1: none */
};

struct roster;

/** Start to listen.  The token is what ranks must say.
 *  @param[in,out] place  address; the port that was taken
 *  @param[in]     wake   a pipe's end that becomes readable when the run is to end early */
enum status roster_create (struct net_place *place, const struct net_token *token,
                           int size, double silence_s, int wake, struct roster **out,
                           struct error *err);
void roster_destroy (struct roster *r);

int roster_size (const struct roster *r);
struct member *roster_member (struct roster *r, int rank);

enum roster_what {
    ROSTER_NOTHING,
    ROSTER_HELLO,
    ROSTER_MESSAGE,
    ROSTER_GONE,
    ROSTER_WAKE
};

struct roster_event {
    enum roster_what what;
    struct member *member;
    struct wire *frame; /* of ROSTER_MESSAGE; until the next call */
};

/** The next thing that happens, at the latest at the deadline (then ROSTER_NOTHING). */
struct roster_event roster_next (struct roster *r, double deadline);

/** Begin a frame; the caller writes its fields into the result. */
struct wire *roster_begin (struct roster *r, enum message type);
/** Send it; a member that cannot take it is noticed as gone by roster_next. */
void roster_send (struct roster *r, struct member *m);

/** Both, with a message's fields: FIELDS is its function of messages.h. */
#define ROSTER_TELL(r, member, type, FIELDS, m) \
    (FIELDS (roster_begin (r, type), m), roster_send (r, member))

/** Ask a member whether it is there, unless that is asked already. */
void roster_ping (struct roster *r, struct member *m);
/** Close a member's connection: it is gone, for this reason. */
void roster_drop (struct roster *r, struct member *m, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/** Connections without the right token so far. */
long roster_refused (const struct roster *r);

#endif
