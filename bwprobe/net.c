#include "bwprobe/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "bwprobe/wire.h"

enum status net_token_random (struct net_token *t, struct error *err)
{
    if (getrandom (t->byte, sizeof t->byte, 0) != (ssize_t) sizeof t->byte)
        return err_set (err, ST_IO, "no random numbers from the system: %s",
                        strerror (errno));
    return ST_OK;
}

void net_token_of_text (const char *text, struct net_token *t)
{
    char hex[65];

    file_sha256 (text, strlen (text), hex);
    for (int i = 0; i < NET_TOKEN; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        t->byte[i] = (unsigned char) strtol (two, NULL, 16);
    }
}

bool net_token_equal (const struct net_token *a, const struct net_token *b)
{
    unsigned char differ = 0;

    for (int i = 0; i < NET_TOKEN; i++)
        differ |= a->byte[i] ^ b->byte[i];
    return differ == 0;
}

/* ---- addresses ---- */

static bool address_text (const struct sockaddr *sa, char *address)
{
    socklen_t n = sa->sa_family == AF_INET6 ? sizeof (struct sockaddr_in6)
                                            : sizeof (struct sockaddr_in);

    return getnameinfo (sa, n, address, NET_ADDRESS, NULL, 0, NI_NUMERICHOST) == 0;
}

static socklen_t sockaddr_of (const char *address, uint32_t port,
                              struct sockaddr_storage *out)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM},
                    *found;
    char service[16];
    socklen_t n;

    snprintf (service, sizeof service, "%u", port & 0xffff);
    if (getaddrinfo (address, service, &hints, &found) != 0)
        return 0;
    n = found->ai_addrlen;
    memcpy (out, found->ai_addr, n);
    freeaddrinfo (found);
    return n;
}

/* The bytes of an address, for comparing networks. */
static int raw (const struct sockaddr *sa, unsigned char out[16])
{
    if (sa->sa_family == AF_INET) {
        memcpy (out, &((const struct sockaddr_in *) (const void *) sa)->sin_addr, 4);
        return 4;
    }
    memcpy (out, &((const struct sockaddr_in6 *) (const void *) sa)->sin6_addr, 16);
    return 16;
}

/* True if sa lies in "ADDRESS" or "ADDRESS/BITS". */
static bool in_network (const struct sockaddr *sa, const char *network)
{
    char base[NET_ADDRESS];
    const char *slash = strchr (network, '/');
    struct sockaddr_storage ss;
    unsigned char a[16], b[16];
    size_t n = slash ? (size_t) (slash - network) : strlen (network);

    if (n >= sizeof base)
        return false;
    memcpy (base, network, n);
    base[n] = '\0';
    if (sockaddr_of (base, 0, &ss) == 0 || ss.ss_family != sa->sa_family)
        return false;

    int bytes = raw (sa, a);
    long bits = 8 * bytes;

    if (slash && !text_whole (slash + 1, LONG_MIN, LONG_MAX, &bits))
        return false;
    raw ((const struct sockaddr *) &ss, b);
    for (int i = 0; i < 8 * bytes && i < bits; i++)
        if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
            return false;
    return bits >= 0 && bits <= 8 * bytes;
}

/* How well an interface's address fits what was asked: 0 not at all. */
static int fitness (const struct ifaddrs *i, const char *interface)
{
    int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    bool v6 = family == AF_INET6, local = i->ifa_flags & IFF_LOOPBACK;

    if ((family != AF_INET && !v6) || !(i->ifa_flags & IFF_UP))
        return 0;
    if (v6) {
        const struct in6_addr *a =
            &((const struct sockaddr_in6 *) (const void *) i->ifa_addr)->sin6_addr;

        if (IN6_IS_ADDR_LINKLOCAL (a))
            return 0;
    }
    if (interface && strcmp (interface, i->ifa_name) != 0 &&
        !in_network (i->ifa_addr, interface))
        return 0;
    return 1 + !v6 + 2 * !local;
}

enum status net_own_address (const char *interface, char *address, char *name,
                             struct error *err)
{
    struct ifaddrs *all;
    const struct ifaddrs *best = NULL;
    enum status st = ST_OK;

    if (getifaddrs (&all) != 0)
        return err_set (err, ST_IO, "the interfaces cannot be listed: %s",
                        strerror (errno));
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (fitness (i, interface) > (best ? fitness (best, interface) : 0))
            best = i;
    if (!best || !address_text (best->ifa_addr, address))
        st = err_set (err, ST_USAGE, "interface %s: this machine has no such address",
                      interface ? interface : "(any)");
    else if (name)
        snprintf (name, IF_NAMESIZE, "%s", best->ifa_name);
    freeifaddrs (all);
    return st;
}

#define VARIABLE "NCCL_SOCKET_IFNAME"

bool net_nccl_takes (const char *nccl_list, const char *name)
{
    bool unwanted = *nccl_list == '^', whole, found = false;

    nccl_list += unwanted;
    whole = *nccl_list == '=';
    nccl_list += whole;
    while (*nccl_list) {
        size_t n = strcspn (nccl_list, ",");

        if (n > 0 && strncmp (nccl_list, name, n) == 0 && (!whole || name[n] == '\0'))
            found = true;
        nccl_list += n + (nccl_list[n] == ',');
    }
    return found != unwanted;
}

/* The user's interface for NCCL, as an address of this machine. */
static bool from_nccl (const char *list, char *address)
{
    struct if_nameindex *all = if_nameindex ();
    struct error err;
    bool found = false;

    for (const struct if_nameindex *i = all; i && i->if_name && !found; i++)
        found = net_nccl_takes (list, i->if_name) &&
                net_own_address (i->if_name, address, NULL, &err) == ST_OK;
    if (all)
        if_freenameindex (all);
    return found;
}

enum status net_settle (const char *asked, char *address, struct error *err)
{
    const char *list = getenv (VARIABLE);
    char name[IF_NAMESIZE], exactly[IF_NAMESIZE + 1];

    address[0] = '\0';
    if (!asked) {
        if (list && list[0] && !from_nccl (list, address))
            address[0] = '\0';
        return ST_OK;
    }
    TRY (net_own_address (asked, address, name, err));
    if (!(list && list[0])) {
        snprintf (exactly, sizeof exactly, "=%s", name);
        setenv (VARIABLE, exactly, 1);
    }
    return ST_OK;
}

enum status net_address_towards (const struct net_place *other, char *address,
                                 struct error *err)
{
    struct sockaddr_storage ss;
    socklen_t n = sockaddr_of (other->address, other->port ? other->port : 9, &ss);
    int fd = n ? socket (ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    bool ok = fd >= 0 && connect (fd, (struct sockaddr *) &ss, n) == 0;

    n = sizeof ss;
    ok = ok && getsockname (fd, (struct sockaddr *) &ss, &n) == 0 &&
         address_text ((struct sockaddr *) &ss, address);
    if (fd >= 0)
        close (fd);
    return ok ? ST_OK : err_set (err, ST_IO, "no way to %s", other->address);
}

enum status net_resolve (const char *host, char *address, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int why = getaddrinfo (host, NULL, &hints, &found);
    const struct addrinfo *best;
    bool ok;

    if (why != 0)
        return err_set (err, ST_IO, "%s: %s", host, gai_strerror (why));
    best = found;
    for (const struct addrinfo *i = found; i; i = i->ai_next)
        if (best->ai_family != AF_INET && i->ai_family == AF_INET)
            best = i;
    ok = address_text (best->ai_addr, address);
    freeaddrinfo (found);
    return ok ? ST_OK : err_set (err, ST_IO, "%s: no usable address", host);
}

/* ---- sockets ---- */

enum status net_listen (struct net_place *at, int *fd, struct error *err)
{
    struct sockaddr_storage ss;
    socklen_t n = sockaddr_of (at->address, at->port, &ss);
    int one = 1,
        s = n ? socket (ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

    if (s >= 0)
        setsockopt (s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (s < 0 || bind (s, (struct sockaddr *) &ss, n) != 0 || listen (s, 4096) != 0) {
        err_set (err, ST_IO, "cannot listen on %s port %u: %s", at->address, at->port,
                 strerror (errno));
        if (s >= 0)
            close (s);
        return ST_IO;
    }
    n = sizeof ss;
    if (getsockname (s, (struct sockaddr *) &ss, &n) == 0)
        at->port = ntohs (ss.ss_family == AF_INET6
                              ? ((struct sockaddr_in6 *) (void *) &ss)->sin6_port
                              : ((struct sockaddr_in *) (void *) &ss)->sin_port);
    *fd = s;
    return ST_OK;
}

static enum status connect_failed (const struct net_place *to, int s, struct error *err)
{
    err_set (err, ST_IO, "no connection to %s port %u: %s", to->address, to->port,
             strerror (errno));
    if (s >= 0)
        close (s);
    return ST_IO;
}

enum status net_connect (const struct net_place *to, const char *from, int *fd,
                         struct error *err)
{
    struct sockaddr_storage ss, own;
    socklen_t n = sockaddr_of (to->address, to->port, &ss), n_own = 0;
    int one = 1, s;

    if (n == 0)
        return err_set (err, ST_IO, "%s is not an address", to->address);
    s = socket (ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return connect_failed (to, s, err);
    setsockopt (s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (from)
        n_own = sockaddr_of (from, 0, &own);
    if (n_own > 0 && own.ss_family == ss.ss_family) {
        /* Choose the port at connect, not at bind: many connections share an address. */
        setsockopt (s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (bind (s, (struct sockaddr *) &own, n_own) != 0)
            return connect_failed (to, s, err);
    }
    if (connect (s, (struct sockaddr *) &ss, n) != 0 && errno != EINPROGRESS)
        return connect_failed (to, s, err);
    *fd = s;
    return ST_OK;
}

enum status net_connected (int fd, struct error *err)
{
    int why = 0;
    socklen_t n = sizeof why;

    if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &why, &n) != 0)
        why = errno;
    return why ? err_set (err, ST_IO, "no connection: %s", strerror (why)) : ST_OK;
}

void net_keepalive (int fd, double seconds)
{
    int one = 1, idle = (int) fmax (1, seconds / 2),
        interval = (int) fmax (1, seconds / 6), count = 3;
    unsigned int unsent_ms = (unsigned int) (seconds * 1e3);

    setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof unsent_ms);
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void net_peer_address (int fd, char *address)
{
    struct sockaddr_storage ss;
    socklen_t n = sizeof ss;

    if (getpeername (fd, (struct sockaddr *) &ss, &n) != 0 ||
        !address_text ((struct sockaddr *) &ss, address))
        snprintf (address, NET_ADDRESS, "an unknown address");
}

/* ---- greetings ---- */

static const char magic[8] = {'b', 'w', 'p', 'r', 'o', 'b', 'e', '1'};

void net_greeting_write (const struct net_token *t, const struct net_greeting *g,
                         unsigned char out[NET_GREETING])
{
    memcpy (out, magic, sizeof magic);
    memcpy (out + 8, t->byte, NET_TOKEN);
    wire_put (out + 24, g->purpose, 4);
    wire_put (out + 28, g->seq, 4);
    wire_put (out + 32, g->from, 4);
}

bool net_greeting_read (const struct net_token *t, const unsigned char in[NET_GREETING],
                        struct net_greeting *g)
{
    struct net_token got;

    memcpy (got.byte, in + 8, NET_TOKEN);
    if (memcmp (in, magic, sizeof magic) != 0 || !net_token_equal (t, &got))
        return false;
    g->purpose = (uint32_t) wire_get (in + 24, 4);
    g->seq = (uint32_t) wire_get (in + 28, 4);
    g->from = (uint32_t) wire_get (in + 32, 4);
    return true;
}
