#include "bwprobe/station.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/progress.h"
#include "bwprobe/transport.h"

/* A connection that does not greet within this time is none of ours. */
#define GREETING_S 2.0
/* Nor is one that nobody asks for: orders reach both partners within moments. */
#define UNCLAIMED_S 30.0
/* A rank that rank 0 turns away tries so often, after pauses that grow by this. */
enum { JOIN_TRIES = 8 };
#define JOIN_PAUSE_S 0.05
#define JOIN_AGAIN_S 3.0

/* ---- the door ---- */

enum status station_open_door (struct station *s, const char *address,
                               const struct net_token *token, struct error *err)
{
    struct door *d = &s->door;

    *d = (struct door){.token = *token};
    snprintf (d->place.address, sizeof d->place.address, "%s", address);
    for (int i = 0; i < DOOR_WAITING; i++)
        d->waiting[i].fd = -1;
    return net_listen (&d->place, &d->fd, err);
}

static void refuse (struct door *d, int slot)
{
    d->refused++;
    net_peer_address (d->waiting[slot].fd, d->refused_from);
    close (d->waiting[slot].fd);
    d->waiting[slot].fd = -1;
}

static bool has_greeted (const struct door *d, int slot)
{
    return d->waiting[slot].got == NET_GREETING;
}

/* Where the next newcomer stands: a free place, or that of the one who has waited longest, who
 * is no partner unless all are. */
static int place_for (struct door *d)
{
    int oldest = 0;

    for (int i = 0; i < DOOR_WAITING; i++) {
        bool partner = has_greeted (d, i), other = has_greeted (d, oldest);

        if (d->waiting[i].fd < 0)
            return i;
        if (partner != other ? other : d->waiting[i].since < d->waiting[oldest].since)
            oldest = i;
    }
    refuse (d, oldest);
    return oldest;
}

/* Hear a visitor's greeting as far as it has come, and turn away who has no right to be
 * there. */
static void hear_greeting (struct door *d, int slot)
{
    struct net_greeting g;
    size_t *got = &d->waiting[slot].got;

    if (d->waiting[slot].fd < 0 || has_greeted (d, slot))
        return;
    while (*got < NET_GREETING) {
        ssize_t n = recv (d->waiting[slot].fd, d->waiting[slot].greeting + *got,
                          NET_GREETING - *got, 0);

        if (n > 0) {
            *got += (size_t) n;
        } else if (!(n < 0 && errno == EINTR)) {
            if (!net_not_yet (n))
                refuse (d, slot);
            return;
        }
    }
    if (!net_greeting_read (&d->token, d->waiting[slot].greeting, &g))
        refuse (d, slot);
}

/* Let in who knocks, hear their greetings, and show out who has been there too long. */
static void look_after_door (struct door *d)
{
    double now = clock_s ();

    for (int n = 0; n < DOOR_WAITING; n++) {
        int slot, fd = accept4 (d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            break;
        slot = place_for (d);
        net_keepalive (fd, 60);
        d->waiting[slot].fd = fd;
        d->waiting[slot].got = 0;
        d->waiting[slot].since = now;
        /* Partners greet at once: heard now, none is taken for a stranger. */
        hear_greeting (d, slot);
    }
    for (int i = 0; i < DOOR_WAITING; i++) {
        hear_greeting (d, i);
        if (d->waiting[i].fd >= 0 &&
            now - d->waiting[i].since > (has_greeted (d, i) ? UNCLAIMED_S : GREETING_S))
            refuse (d, i);
    }
}

static int find_waiting (const struct door *d, const struct net_greeting *wanted)
{
    for (int i = 0; i < DOOR_WAITING; i++) {
        struct net_greeting g;

        if (d->waiting[i].fd >= 0 && has_greeted (d, i) &&
            net_greeting_read (&d->token, d->waiting[i].greeting, &g) &&
            g.purpose == wanted->purpose && g.seq == wanted->seq &&
            g.from == wanted->from)
            return i;
    }
    return -1;
}

/* ---- rank 0's words ---- */

static enum status heard (struct station *s, struct wire *w, struct error *err)
{
    struct msg_seq go;
    struct msg_abort abort_order;

    switch (w->type) {
    case MSG_GO:
        messages_seq (w, &go);
        if (wire_good (w) && go.seq == s->seq && go.direction < 2)
            s->gone = go.direction + 1;
        break;
    case MSG_ABORT:
        messages_abort (w, &abort_order);
        if (wire_good (w) && abort_order.seq == s->seq && s->seq != 0) {
            s->aborted = true;
            memcpy (s->abort_reason, abort_order.reason, sizeof s->abort_reason);
        }
        break;
    case MSG_PING:
        station_begin (s, MSG_PONG);
        return station_send (s, err);
    case MSG_PONG:
        break;
    case MSG_BYE:
        messages_bye (w, &s->last_word);
        s->bye = true;
        break;
    case MSG_WELCOME:
    case MSG_RUN:
    case MSG_PARENT:
    case MSG_COMPUTE:
        if (s->has_order)
            return err_set (err, ST_IO,
                            "rank 0 gave a second order before the first was done");
        s->order = *w;
        s->has_order = true;
        return ST_OK;
    default:
        return err_set (err, ST_IO, "rank 0 sent a message of unknown type %u", w->type);
    }
    return wire_good (w)
               ? ST_OK
               : err_set (err, ST_IO, "rank 0 sent a broken message of type %u", w->type);
}

/* Read what has arrived from rank 0. */
static enum status listen_to_rank0 (struct station *s, struct error *err)
{
    struct wire *w = &s->heard;

    for (;;) {
        ssize_t n =
            recv (s->control, s->in + s->n_in, sizeof s->in - s->n_in, MSG_DONTWAIT);

        if (n == 0)
            return err_set (err, ST_IO, "rank 0 is gone");
        if (n < 0 && errno == EINTR)
            continue;
        if (net_not_yet (n))
            return ST_OK;
        if (n < 0)
            return err_set (err, ST_IO, "rank 0 is gone: %s", strerror (errno));
        s->n_in += (size_t) n;
        s->heard_s = clock_s ();
        for (size_t used = 1; used > 0;) {
            if (!wire_take (w, s->in, s->n_in, &used))
                return err_set (err, ST_IO, "rank 0 sent an invalid message");
            if (used > 0) {
                memmove (s->in, s->in + used, s->n_in - used);
                s->n_in -= used;
                TRY (heard (s, w, err));
            }
        }
    }
}

void station_begin (struct station *s, enum message type)
{
    wire_begin (&s->out, (uint8_t) type);
}

enum status station_send (struct station *s, struct error *err)
{
    size_t at = 0;
    double deadline = clock_s () + 10;

    wire_end (&s->out);
    while (at < s->out.len) {
        ssize_t n = send (s->control, s->out.data + at, s->out.len - at,
                          MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd p = {.fd = s->control, .events = POLLOUT};

        if (n > 0)
            at += (size_t) n;
        else if (net_not_yet (n) && clock_s () < deadline)
            poll (&p, 1, 100);
        else if (!(n < 0 && errno == EINTR))
            return err_set (err, ST_IO, "rank 0 is gone: %s", strerror (errno));
    }
    return ST_OK;
}

/* ---- waiting ---- */

/* One look at everything, for at most `seconds`.  @param[out] ready  fd is */
static enum status look (struct station *s, int fd, short events, double seconds,
                         bool *ready, struct error *err)
{
    struct pollfd p[DOOR_WAITING + 3] = {{.fd = s->control, .events = POLLIN},
                                         {.fd = s->door.fd, .events = POLLIN},
                                         {.fd = fd, .events = events}};
    int n = 3, visitors = 0;
    enum status st = ST_OK;

    for (int i = 0; i < DOOR_WAITING; i++) {
        visitors += s->door.waiting[i].fd >= 0;
        if (s->door.waiting[i].fd >= 0 && s->door.waiting[i].got < NET_GREETING)
            p[n++] = (struct pollfd){.fd = s->door.waiting[i].fd, .events = POLLIN};
    }
    /* A visitor who says nothing is shown out in time. */
    if (visitors > 0)
        seconds = fmin (seconds, 0.5);
    poll (p, (nfds_t) n, seconds > 0 ? (int) (fmin (seconds, 60) * 1e3) + 1 : 0);
    if (p[0].revents)
        st = listen_to_rank0 (s, err);
    if (visitors > 0 || p[1].revents)
        look_after_door (&s->door);
    *ready = p[2].revents != 0;
    if (st == ST_OK && (s->bye || s->aborted))
        st = err_set (err, ST_IO, "%s", s->bye ? "the run was ended" : s->abort_reason);
    return st;
}

enum status station_wait (struct station *s, int fd, short events, double deadline,
                          struct error *err)
{
    for (bool ready = false;;) {
        double left = deadline - clock_s ();
        enum status st = look (s, fd, events, left, &ready, err);

        if (st != ST_OK || ready)
            return st;
        if (left <= 0)
            return err_set (err, ST_IO, "no progress within the time-out");
    }
}

enum status station_pause (struct station *s, int partner, double seconds,
                           struct error *err)
{
    bool ended;
    enum status st = look (s, partner, POLLRDHUP, seconds, &ended, err);

    return st == ST_OK && ended ? err_set (err, ST_IO, "the partner gave up or is gone")
                                : st;
}

enum status station_admit (struct station *s, const struct net_greeting *wanted,
                           double deadline, int *fd, struct error *err)
{
    for (;;) {
        int i = find_waiting (&s->door, wanted);
        double left = deadline - clock_s ();
        bool ready;

        if (i >= 0) {
            *fd = s->door.waiting[i].fd;
            s->door.waiting[i].fd = -1;
            return ST_OK;
        }
        if (left <= 0)
            return err_set (err, ST_IO,
                            "the partner did not connect within the time-out");
        TRY (look (s, -1, 0, fmin (left, 0.1), &ready, err));
    }
}

enum status station_knock (struct station *s, const struct net_place *door,
                           enum net_purpose purpose, double deadline, int *fd,
                           struct error *err)
{
    struct net_greeting g = {.purpose = purpose, .seq = s->seq, .from = s->rank};
    unsigned char greeting[NET_GREETING];
    int conn;
    enum status st;

    TRY (net_connect (door, s->door.place.address, &conn, err));
    st = station_wait (s, conn, POLLOUT, deadline, err);
    if (st == ST_OK)
        st = net_connected (conn, err);
    else if (clock_s () >= deadline)
        err_set (err, st, "no connection to %s within the time-out", door->address);
    if (st == ST_OK) {
        net_greeting_write (&s->door.token, &g, greeting);
        st = station_write (s, conn, greeting, sizeof greeting, err);
    }
    if (st != ST_OK) {
        close (conn);
        return st;
    }
    *fd = conn;
    return ST_OK;
}

/* One of out and in is NULL. */
static enum status move (struct station *s, int fd, const unsigned char *out,
                         unsigned char *in, size_t n, struct error *err)
{
    double deadline = clock_s () + s->how.timeout_s;

    for (size_t at = 0; at < n;) {
        ssize_t k = out ? send (fd, out + at, n - at, MSG_NOSIGNAL)
                        : recv (fd, in + at, n - at, 0);

        if (k > 0) {
            at += (size_t) k;
            deadline = clock_s () + s->how.timeout_s;
        } else if (k == 0 && in) {
            return err_set (err, ST_IO, "the partner closed the connection");
        } else if (net_not_yet (k)) {
            TRY (station_wait (s, fd, out ? POLLOUT : POLLIN, deadline, err));
        } else if (!(k < 0 && errno == EINTR)) {
            return err_set (err, ST_IO, "the connection broke: %s", strerror (errno));
        }
    }
    return ST_OK;
}

enum status station_write (struct station *s, int fd, const void *data, size_t n,
                           struct error *err)
{
    return move (s, fd, data, NULL, n, err);
}

enum status station_read (struct station *s, int fd, void *data, size_t n,
                          struct error *err)
{
    return move (s, fd, NULL, data, n, err);
}

/* ---- the beginning ---- */

enum status station_await_order (struct station *s, struct error *err)
{
    double asked_s = 0;
    enum status st = ST_OK;
    bool ready;

    /* What came while this rank was at work is read now. */
    s->heard_s = clock_s ();
    while (st == ST_OK && !s->bye && !s->has_order) {
        double now = clock_s (), silent_s = now - s->heard_s;

        if (silent_s > 2 * s->patience_s)
            return err_set (err, ST_IO, "rank 0 has said nothing for %.0f s", silent_s);
        if (silent_s > s->patience_s && asked_s <= s->heard_s) {
            asked_s = now;
            station_begin (s, MSG_PING);
            TRY (station_send (s, err));
        }
        st = look (s, -1, 0, 0.1 + 0.5 * s->patience_s, &ready, err);
    }
    return s->bye ? ST_OK : st;
}

/* Connect, and wait until the deadline. */
static enum status connect_until (const struct net_place *to, const char *from,
                                  double deadline, int *fd, struct error *err)
{
    for (;;) {
        int s;
        enum status st = net_connect (to, from, &s, err);
        double left = deadline - clock_s ();

        if (st == ST_OK) {
            struct pollfd p = {.fd = s, .events = POLLOUT};
            int ready = poll (&p, 1, left > 0 ? (int) (left * 1e3) + 1 : 0);

            if (ready > 0 && net_connected (s, err) == ST_OK) {
                *fd = s;
                return ST_OK;
            }
            if (ready == 0)
                err_set (err, ST_IO, "no connection: no answer");
            close (s);
        }
        /* Whoever listens may not have begun yet. */
        left = deadline - clock_s ();
        if (left <= 0) {
            err_prefix (err, "%s port %u", to->address, to->port);
            return ST_IO;
        }
        usleep ((useconds_t) (fmin (left, 0.05) * 1e6));
    }
}

static enum status say_hello (struct station *s, const struct net_place *rank0,
                              const char *from, struct msg_hello *hello, double deadline,
                              struct error *err)
{
    TRY (connect_until (rank0, from, deadline, &s->control, err));
    net_keepalive (s->control, 60);
    TRY (STATION_TELL (s, MSG_HELLO, messages_hello, hello, err));
    return station_await_order (s, err);
}

enum status station_join (struct station *s, const struct net_place *rank0,
                          const char *from, struct msg_hello *hello, double deadline,
                          struct error *err)
{
    for (int tries = 1;; tries++) {
        enum status st = say_hello (s, rank0, from, hello, deadline, err);

        /* Who is silent turns nobody away. */
        if (st == ST_OK || s->control < 0 || clock_s () - s->heard_s > s->patience_s)
            return st;
        close (s->control);
        s->control = -1;
        s->n_in = 0;
        if (tries == JOIN_TRIES)
            return err_set (err, ST_IO,
                            "rank 0 at %s port %u refuses this rank: does it belong to "
                            "another job, has it another BWPROBE_TOKEN, or is it too "
                            "late?",
                            rank0->address, rank0->port);
        /* Rank 0 may also be gone: nobody waits for its return. */
        deadline = fmin (deadline, clock_s () + JOIN_AGAIN_S);
        usleep ((useconds_t) (JOIN_PAUSE_S * 1e6 * tries));
    }
}

void station_close (struct station *s)
{
    if (s->transport && s->state)
        s->transport->close (s);
    s->state = NULL;
    for (int i = 0; i < DOOR_WAITING; i++)
        if (s->door.waiting[i].fd >= 0)
            close (s->door.waiting[i].fd);
    if (s->door.fd >= 0)
        close (s->door.fd);
    if (s->control >= 0)
        close (s->control);
    s->control = s->door.fd = -1;
}
