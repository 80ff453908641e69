#include "bwprobe/roster.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/progress.h"

enum {
    ROSTER_IN = 4096, /* no message to rank 0 is longer */
    EVENTS = 256,
    STRANGERS_EXTRA = 64 /* connections without a hello yet, beyond one a rank */
};

/* A connection that does not say hello within this time is none of ours: a rank says it as soon
 * as it is connected. */
#define HELLO_S 2.0
/* What is not sent to a member for so long will never be. */
#define OUT_MAX (1 << 20)

/* Keys of epoll: members by rank, then these. */
#define KEY_LISTEN UINT64_MAX
#define KEY_WAKE (UINT64_MAX - 1)
#define KEY_STRANGER ((uint64_t) 1 << 40)

struct stranger {
    int fd; /* -1: free */
    double since;
    size_t n_in;
    unsigned char in[2048];
};

struct roster {
    int epoll, listen, size;
    double silence_s;
    struct net_token token;
    struct member *member;
    struct stranger *stranger;
    int n_strangers, strangers; /* places; taken */
    long refused;
    struct epoll_event event[EVENTS];
    int n_events, at_event;
    struct wire out, in;
    struct member *unread; /* it may have more frames in its buffer */
    struct member **lost;  /* [size] gone, and not yet told */
    int n_lost;
};

static void watch (struct roster *r, int fd, uint64_t key, uint32_t events, int op)
{
    struct epoll_event e = {.events = events, .data.u64 = key};

    epoll_ctl (r->epoll, op, fd, &e);
}

enum status roster_create (struct net_place *place, const struct net_token *token,
                           int size, double silence_s, int wake, struct roster **out,
                           struct error *err)
{
    struct roster *r = calloc (1, sizeof *r);
    enum status st;

    if (!r)
        return err_nomem (err);
    *r = (struct roster){.epoll = epoll_create1 (EPOLL_CLOEXEC),
                         .listen = -1,
                         .size = size,
                         .silence_s = silence_s,
                         .token = *token,
                         .n_strangers = size + STRANGERS_EXTRA};
    r->member = calloc ((size_t) size, sizeof *r->member);
    r->lost = calloc ((size_t) size, sizeof (struct member *));
    r->stranger = calloc ((size_t) r->n_strangers, sizeof *r->stranger);
    if (!r->member || !r->stranger || !r->lost || r->epoll < 0) {
        roster_destroy (r);
        return err_nomem (err);
    }
    for (int i = 0; i < size; i++)
        r->member[i] =
            (struct member){.rank = (uint32_t) i, .fd = -1, .endpoint = -1, .work = -1};
    for (int i = 0; i < r->n_strangers; i++)
        r->stranger[i].fd = -1;
    st = net_listen (place, &r->listen, err);
    if (st != ST_OK) {
        roster_destroy (r);
        return st;
    }
    watch (r, r->listen, KEY_LISTEN, EPOLLIN, EPOLL_CTL_ADD);
    if (wake >= 0)
        watch (r, wake, KEY_WAKE, EPOLLIN, EPOLL_CTL_ADD);
    *out = r;
    return ST_OK;
}

void roster_destroy (struct roster *r)
{
    if (!r)
        return;
    for (int i = 0; r->member && i < r->size; i++) {
        if (r->member[i].fd >= 0)
            close (r->member[i].fd);
        free (r->member[i].in);
        text_free (&r->member[i].out);
    }
    for (int i = 0; r->stranger && i < r->n_strangers; i++)
        if (r->stranger[i].fd >= 0)
            close (r->stranger[i].fd);
    if (r->listen >= 0)
        close (r->listen);
    if (r->epoll >= 0)
        close (r->epoll);
    FREE_ALL (r->member, r->lost, r->stranger, r);
}

int roster_size (const struct roster *r)
{
    return r->size;
}

struct member *roster_member (struct roster *r, int rank)
{
    return &r->member[rank];
}

long roster_refused (const struct roster *r)
{
    return r->refused;
}

/* ---- strangers ---- */

/* @return NULL: no member */
static struct member *refuse (struct roster *r, struct stranger *s)
{
    r->refused++;
    close (s->fd);
    s->fd = -1;
    r->strangers--;
    return NULL;
}

/* A free place; where all are taken, that of the stranger who has said nothing for longest.
 * Ranks speak at once, so it is one that a flood of silent connections holds. */
static struct stranger *place_for (struct roster *r)
{
    struct stranger *oldest = &r->stranger[0];

    for (int i = 0; i < r->n_strangers; i++) {
        if (r->stranger[i].fd < 0)
            return &r->stranger[i];
        if (r->stranger[i].since < oldest->since)
            oldest = &r->stranger[i];
    }
    refuse (r, oldest);
    return oldest;
}

/* Accept one connection.  @return NULL when nobody knocks */
static struct stranger *let_in (struct roster *r)
{
    int fd = accept4 (r->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct stranger *s;

    if (fd < 0)
        return NULL;
    net_keepalive (fd, r->silence_s);
    s = place_for (r);
    s->fd = fd;
    s->since = clock_s ();
    s->n_in = 0;
    r->strangers++;
    watch (r, fd, KEY_STRANGER + (uint64_t) (s - r->stranger), EPOLLIN, EPOLL_CTL_ADD);
    return s;
}

/* A stranger becomes a member with a hello that has the token.  @return the member */
static struct member *greet (struct roster *r, struct stranger *s)
{
    struct msg_hello hello;
    struct member *m;
    size_t used = 0;
    ssize_t n = recv (s->fd, s->in + s->n_in, sizeof s->in - s->n_in, 0);

    if (net_not_yet (n) || (n < 0 && errno == EINTR))
        return NULL;
    s->n_in += n > 0 ? (size_t) n : 0;
    if (n <= 0 || !wire_take (&r->in, s->in, s->n_in, &used) ||
        (used == 0 && s->n_in == sizeof s->in))
        return refuse (r, s);
    if (used == 0)
        return NULL;
    messages_hello (&r->in, &hello);
    if (r->in.type != MSG_HELLO || !wire_good (&r->in) ||
        !net_token_equal (&hello.token, &r->token) || used != s->n_in ||
        hello.version != MESSAGES_VERSION || hello.size != (uint32_t) r->size ||
        hello.rank >= (uint32_t) r->size || r->member[hello.rank].state != MEMBER_ABSENT)
        return refuse (r, s);
    m = &r->member[hello.rank];
    m->in = malloc (ROSTER_IN);
    if (!m->in)
        return refuse (r, s);
    m->hello = hello;
    m->fd = s->fd;
    m->state = MEMBER_HERE;
    s->fd = -1;
    r->strangers--;
    watch (r, m->fd, m->rank, EPOLLIN, EPOLL_CTL_MOD);
    return m;
}

static void show_out_the_silent (struct roster *r)
{
    double now = clock_s ();

    for (int i = 0; i < r->n_strangers && r->strangers > 0; i++)
        if (r->stranger[i].fd >= 0 && now - r->stranger[i].since > HELLO_S)
            refuse (r, &r->stranger[i]);
}

/* ---- members ---- */

void roster_drop (struct roster *r, struct member *m, const char *fmt, ...)
{
    va_list ap;

    if (m->state != MEMBER_HERE)
        return;
    va_start (ap, fmt);
    vsnprintf (m->gone, sizeof m->gone, fmt, ap);
    va_end (ap);
    m->state = MEMBER_GONE;
    close (m->fd);
    m->fd = -1;
    text_free (&m->out);
    if (r->unread == m)
        r->unread = NULL;
    r->lost[r->n_lost++] = m;
}

static void flush_member (struct roster *r, struct member *m)
{
    size_t at = 0;

    while (at < m->out.len) {
        ssize_t n = send (m->fd, m->out.s + at, m->out.len - at, MSG_NOSIGNAL);

        if (n > 0)
            at += (size_t) n;
        else if (n < 0 && errno == EINTR)
            continue;
        else if (net_not_yet (n))
            break;
        else {
            roster_drop (r, m, "its connection broke: %s", strerror (errno));
            return;
        }
    }
    if (at > 0) {
        memmove (m->out.s, m->out.s + at, m->out.len - at);
        m->out.len -= at;
    }
    if (m->out.failed || m->out.len > OUT_MAX)
        roster_drop (r, m, "it no longer reads what it is sent");
    else
        watch (r, m->fd, m->rank, m->out.len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN,
               EPOLL_CTL_MOD);
}

struct wire *roster_begin (struct roster *r, enum message type)
{
    wire_begin (&r->out, (uint8_t) type);
    return &r->out;
}

void roster_send (struct roster *r, struct member *m)
{
    size_t at = 0;

    if (m->state != MEMBER_HERE)
        return;
    wire_end (&r->out);
    if (m->out.len == 0) {
        ssize_t n = send (m->fd, r->out.data, r->out.len, MSG_NOSIGNAL);

        at = n > 0 ? (size_t) n : 0;
    }
    if (at < r->out.len) {
        text_add_mem (&m->out, (const char *) r->out.data + at, r->out.len - at);
        flush_member (r, m);
    }
}

void roster_ping (struct roster *r, struct member *m)
{
    if (m->pinged > 0 || m->state != MEMBER_HERE)
        return;
    m->pinged = clock_s ();
    roster_begin (r, MSG_PING);
    roster_send (r, m);
}

/* Receive into a member's buffer.  @return false when it is gone */
static bool receive (struct roster *r, struct member *m)
{
    ssize_t n = recv (m->fd, m->in + m->n_in, ROSTER_IN - m->n_in, 0);

    if (n > 0) {
        m->n_in += (size_t) n;
        return true;
    }
    if (net_not_yet (n) || (n < 0 && errno == EINTR))
        return true;
    if (n == 0)
        roster_drop (r, m, "it ended: its connection was closed");
    else if (errno == ETIMEDOUT)
        roster_drop (r, m, "its host does not answer");
    else
        roster_drop (r, m, "it ended: %s", strerror (errno));
    return false;
}

/* The next frame in a member's buffer.  @return false when there is none */
static bool take_frame (struct roster *r, struct member *m)
{
    size_t used;

    for (;;) {
        if (!wire_take (&r->in, m->in, m->n_in, &used) ||
            (used == 0 && m->n_in == ROSTER_IN)) {
            roster_drop (r, m, "it sent an invalid message");
            return false;
        }
        if (used == 0)
            return false;
        memmove (m->in, m->in + used, m->n_in - used);
        m->n_in -= used;
        m->pinged = 0;
        if (r->in.type == MSG_PING) {
            roster_begin (r, MSG_PONG);
            roster_send (r, m);
            if (m->state != MEMBER_HERE)
                return false;
        } else if (r->in.type != MSG_PONG) {
            return true;
        }
    }
}

/* ---- events ---- */

static struct roster_event event (enum roster_what what, struct member *m, struct wire *w)
{
    return (struct roster_event){what, m, w};
}

/* What one of epoll's events means; ROSTER_NOTHING when it is settled already. */
static struct roster_event handle (struct roster *r, const struct epoll_event *e)
{
    uint64_t key = e->data.u64;
    struct member *m;

    if (key == KEY_LISTEN) {
        struct stranger *s;

        /* Who knocked first is heard first, before others can take his place. */
        for (int n = 0; n < EVENTS && (s = let_in (r)); n++)
            if ((m = greet (r, s)))
                return event (ROSTER_HELLO, m, NULL);
    } else if (key == KEY_WAKE) {
        return event (ROSTER_WAKE, NULL, NULL);
    } else if (key >= KEY_STRANGER) {
        struct stranger *s = &r->stranger[key - KEY_STRANGER];

        if (s->fd >= 0 && (m = greet (r, s)))
            return event (ROSTER_HELLO, m, NULL);
    } else {
        m = &r->member[key];
        if (m->state == MEMBER_HERE && e->events & EPOLLOUT)
            flush_member (r, m);
        if (m->state == MEMBER_HERE && e->events & (EPOLLIN | EPOLLHUP | EPOLLERR) &&
            receive (r, m))
            r->unread = m;
    }
    return event (ROSTER_NOTHING, NULL, NULL);
}

struct roster_event roster_next (struct roster *r, double deadline)
{
    for (;;) {
        if (r->unread) {
            struct member *m = r->unread;

            if (take_frame (r, m))
                return event (ROSTER_MESSAGE, m, &r->in);
            r->unread = NULL;
        }
        if (r->n_lost > 0)
            return event (ROSTER_GONE, r->lost[--r->n_lost], NULL);
        if (r->at_event < r->n_events) {
            struct roster_event e = handle (r, &r->event[r->at_event++]);

            if (e.what != ROSTER_NOTHING)
                return e;
            continue;
        }

        double left = deadline - clock_s ();
        int n = epoll_wait (r->epoll, r->event, EVENTS,
                            left > 0 ? (int) (fmin (left, 0.5) * 1e3) + 1 : 0);

        show_out_the_silent (r);
        r->at_event = 0;
        r->n_events = n > 0 ? n : 0;
        if (r->n_events == 0 && left <= 0)
            return event (ROSTER_NOTHING, NULL, NULL);
    }
}
