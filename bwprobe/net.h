/* TCP sockets of one job: bound to one interface, opened with a token, never waited for
 * without an end. */
#ifndef BWPROBE_NET_H
#define BWPROBE_NET_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { NET_ADDRESS = 64, NET_TOKEN = 16 };

/** Where something listens: a numeric IPv4 or IPv6 address. */
struct net_place {
    char address[NET_ADDRESS];
    uint32_t port;
};

/** The job's secret; every connection begins with it. */
struct net_token {
    unsigned char byte[NET_TOKEN];
};

/** A token from the system's random numbers. */
enum status net_token_random (struct net_token *t, struct error *err);
/** A token from a text: the first bytes of its SHA-256. */
void net_token_of_text (const char *text, struct net_token *t);

/** The address to bind to.
 *
 *  @param[in]  interface  the name of an interface ("ib0"), an address, a network such as
 *                         "10.0.0.0/8", or NULL: the first interface that is up and no
 *                         loopback, and the loopback where there is no other
 *  @param[out] address    [NET_ADDRESS]
 *  @param[out] name       [IF_NAMESIZE] of the interface that has it; may be NULL
 *  @return ST_OK, or ST_USAGE when the machine has no such address
 */
enum status net_own_address (const char *interface, char *address, char *name,
                             struct error *err);

/** True if NCCL would take an interface: NCCL_SOCKET_IFNAME is a list of beginnings of names,
 *  "ib,eth"; "=eth0,eth1" are whole names, "^docker,lo" (and "^=") those not to be taken. */
bool net_nccl_takes (const char *nccl_list, const char *name);

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
enum status net_settle (const char *asked, char *address, struct error *err);

/** The own address from which another machine is reached.
 *  @param[out] address  [NET_ADDRESS] */
enum status net_address_towards (const struct net_place *other, char *address,
                                 struct error *err);

/** Resolve a host's name or address.  @param[out] address [NET_ADDRESS] */
enum status net_resolve (const char *host, char *address, struct error *err);

/** Listen on an address; port 0 takes a free one, which is written back. */
enum status net_listen (struct net_place *at, int *fd, struct error *err);

/** Begin to connect, without waiting.
 *  @param[in]  from  own address to bind to; NULL: what the system takes
 *  @param[out] fd    becomes writable when connected or failed (net_connected) */
enum status net_connect (const struct net_place *to, const char *from, int *fd,
                         struct error *err);
/** The outcome of a connect whose socket became writable. */
enum status net_connected (int fd, struct error *err);

/** Have the system notice a silent end of a connection within about `seconds`. */
void net_keepalive (int fd, double seconds);

/** The far end's address, for messages.  @param[out] address [NET_ADDRESS] */
void net_peer_address (int fd, char *address);

/** What a call that moves bytes returned, and errno: is there nothing to be moved yet? */
static inline bool net_not_yet (ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* ---- the first bytes of a connection between two ranks ---- */

enum net_purpose { NET_SIDE = 1, NET_DATA = 2 };

/** What a connection is for. */
struct net_greeting {
    uint32_t purpose, seq, from; /* seq: of the order; from: rank */
};

enum { NET_GREETING = 36 }; /* bytes */

void net_greeting_write (const struct net_token *t, const struct net_greeting *g,
                         unsigned char out[NET_GREETING]);
/** @return false unless it is a greeting with this token */
bool net_greeting_read (const struct net_token *t, const unsigned char in[NET_GREETING],
                        struct net_greeting *g);

/** Equal, in a time that does not tell where they differ. */
bool net_token_equal (const struct net_token *a, const struct net_token *b);

#endif
