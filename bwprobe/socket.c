/* Transport over plain TCP, from host memory to host memory, one connection for each
 * direction.  One connection for both would let the answers of one direction queue behind the
 * data of the other. */
#include "bwprobe/transport.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/progress.h"

struct transport_state {
    unsigned char *out, *in; /* [max_bytes] */
    size_t bytes;
    int to, from; /* connections on which this rank sends and receives; -1: none */
};

static enum status socket_open (struct station *s, struct msg_opened *opened,
                                struct error *err)
{
    struct transport_state *t = calloc (1, sizeof *t);
    const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;

    (void) opened;
    if (!t)
        return err_nomem (err);
    t->to = t->from = -1;
    t->bytes = s->how.max_bytes;
    t->out = mmap (NULL, 2 * t->bytes, prot, flags, -1, 0);
    if (t->out == MAP_FAILED) {
        free (t);
        return err_nomem (err);
    }
    t->in = t->out + t->bytes;
    s->state = t;
    return ST_OK;
}

static void socket_disconnect (struct station *s, bool failed)
{
    struct transport_state *t = s->state;
    int *fd[] = {&t->to, &t->from};

    for (int k = 0; k < 2; k++) {
        /* After a failure nothing that is still queued is of use. */
        struct linger now = {.l_onoff = 1, .l_linger = 0};

        if (*fd[k] < 0)
            continue;
        if (failed)
            setsockopt (*fd[k], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close (*fd[k]);
        *fd[k] = -1;
    }
}

static void socket_close (struct station *s)
{
    struct transport_state *t = s->state;

    socket_disconnect (s, true);
    munmap (t->out, 2 * t->bytes);
    free (t);
}

/* Each knocks at the other's door for the direction in which it sends. */
static enum status socket_connect (struct station *s, const struct pair *p,
                                   struct error *err)
{
    struct transport_state *t = s->state;
    double deadline = clock_s () + s->how.timeout_s;
    struct net_greeting from = {
        .purpose = NET_DATA, .seq = p->run->seq, .from = p->run->partner};

    TRY (station_knock (s, &p->run->door, NET_DATA, deadline, &t->to, err));
    return station_admit (s, &from, deadline, &t->from, err);
}

static enum status socket_send (struct station *s, const struct pair *p, size_t bytes,
                                int count, double *seconds, struct error *err)
{
    struct transport_state *t = s->state;
    unsigned char answer;

    (void) p;
    for (int i = 0; i < count; i++) {
        double start = clock_s ();

        TRY (station_write (s, t->to, t->out, bytes, err));
        TRY (station_read (s, t->to, &answer, 1, err));
        seconds[i] = clock_s () - start;
    }
    return ST_OK;
}

static enum status socket_recv (struct station *s, const struct pair *p, size_t bytes,
                                int count, struct error *err)
{
    struct transport_state *t = s->state;

    (void) p;
    for (int i = 0; i < count; i++) {
        TRY (station_read (s, t->from, t->in, bytes, err));
        TRY (station_write (s, t->from, "", 1, err));
    }
    return ST_OK;
}

static enum status socket_load (struct station *s, const void *data, size_t bytes,
                                struct error *err)
{
    (void) err;
    memcpy (s->state->out, data, bytes);
    return ST_OK;
}

static enum status socket_unload (struct station *s, void *data, size_t bytes,
                                  struct error *err)
{
    (void) err;
    memcpy (data, s->state->in, bytes);
    return ST_OK;
}

const struct transport transport_socket = {.name = "socket",
                                           .defaults = {.alone_s = 0.1,
                                                        .together_s = 0.15,
                                                        .timeout_s = 3,
                                                        .max_bytes = (uint64_t) 64 << 20,
                                                        .setup_s = 0.005},
                                           .open = socket_open,
                                           .close = socket_close,
                                           .connect = socket_connect,
                                           .send = socket_send,
                                           .recv = socket_recv,
                                           .load = socket_load,
                                           .unload = socket_unload,
                                           .disconnect = socket_disconnect};
