/* Transport over NCCL, from GPU memory to GPU memory, on a communicator of two ranks.
 *
 * A communicator of all ranks would bias the pairs: the channels of a pair become fewer the
 * more ranks there are.  So each pair has its own, split from a parent that all ranks joined
 * once (quick), or begun anew with an id that the lead sends over the side connection.
 *
 * All calls are non-blocking and polled, so that a partner that is gone costs a time-out and
 * not the run: then the communicator is aborted.  Messages of one block are queued on the
 * stream together, with a recorded event between them, and timed by the GPU.
 */
#include "bwprobe/cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "bwprobe/cuda.h"
#include "bwprobe/transport.h"

enum { QUEUE = 64, ANSWER = 8 };

/* A communicator that does not end in this time is aborted. */
#define FINISH_S 2.0

struct transport_state {
    const struct cuda_runtime *rt;
    const struct cuda_nccl *nccl;
    unsigned char *out, *in; /* [bytes + ANSWER] on the GPU */
    cudaStream_t stream;
    cudaEvent_t event[QUEUE + 1];
    int events;
    ncclComm_t parent, pair; /* NULL: none */
};

/* ---- waiting ---- */

static enum status failed (const struct transport_state *t, ncclResult_t result,
                           ncclComm_t comm, const char *what, struct error *err)
{
    return err_set (err, ST_IO, "%s: %s (%.120s)", what,
                    t->nccl->ncclGetErrorString (result),
                    t->nccl->ncclGetLastError (comm));
}

/* Look after rank 0 and the partner until a communicator has done what it was asked. */
static enum status settle (struct station *s, ncclResult_t result, ncclComm_t comm,
                           int side, double seconds, const char *what, struct error *err)
{
    const struct transport_state *t = s->state;
    double deadline = clock_s () + seconds;
    ncclResult_t now = result;

    while (comm && (now == ncclSuccess || now == ncclInProgress)) {
        result = t->nccl->ncclCommGetAsyncError (comm, &now);
        if (result != ncclSuccess)
            now = result;
        if (now != ncclInProgress)
            break;
        if (clock_s () > deadline)
            return err_set (err, ST_IO, "%s: no progress within the time-out", what);
        TRY (station_pause (s, side, 0.001, err));
    }
    return now == ncclSuccess ? ST_OK : failed (t, now, comm, what, err);
}

/* What is this late is not a short message, and need not have a processor to itself. */
#define SPIN_S 0.001

/* Wait until the stream has reached an event.  The events' own times are taken on the GPU, so
 * that the host may look at them late. */
static enum status reach (struct station *s, cudaEvent_t event, int side,
                          struct error *err)
{
    const struct transport_state *t = s->state;
    double begun = clock_s (), deadline = begun + s->how.timeout_s;
    cudaError_t result;

    while ((result = t->rt->cudaEventQuery (event)) == cudaErrorNotReady) {
        ncclResult_t now = ncclSuccess;

        TRY (station_pause (s, side, clock_s () - begun < SPIN_S ? 0 : 0.001, err));
        if (t->nccl->ncclCommGetAsyncError (t->pair, &now) != ncclSuccess ||
            (now != ncclSuccess && now != ncclInProgress))
            return failed (t, now, t->pair, "the transfer", err);
        if (clock_s () > deadline)
            return err_set (err, ST_IO, "no progress within the time-out");
    }
    return cuda_check (result, "the GPU", err);
}

static void drop (struct transport_state *t, ncclComm_t *comm)
{
    if (*comm)
        t->nccl->ncclCommAbort (*comm);
    *comm = NULL;
}

/* ---- the device ---- */

static void describe_versions (const struct transport_state *t, struct msg_opened *opened)
{
    const struct cuda_driver *driver = cuda_load_driver (NULL);
    int nccl = 0, runtime = 0, kernel = 0;

    t->nccl->ncclGetVersion (&nccl);
    t->rt->cudaRuntimeGetVersion (&runtime);
    if (driver)
        driver->cuDriverGetVersion (&kernel);
    snprintf (opened->versions, sizeof opened->versions,
              "nccl %d.%d.%d, cuda runtime %d.%d, cuda driver %d.%d", nccl / 10000,
              nccl / 100 % 100, nccl % 100, runtime / 1000, runtime % 1000 / 10,
              kernel / 1000, kernel % 1000 / 10);
}

static void nccl_close (struct station *s)
{
    struct transport_state *t = s->state;

    drop (t, &t->pair);
    drop (t, &t->parent);
    for (int i = 0; i < t->events; i++)
        t->rt->cudaEventDestroy (t->event[i]);
    if (t->stream)
        t->rt->cudaStreamDestroy (t->stream);
    t->rt->cudaFree (t->out);
    t->rt->cudaFree (t->in);
    free (t);
    s->state = NULL;
}

static enum status open_device (struct transport_state *t, int device, size_t bytes,
                                struct error *err)
{
    TRY (cuda_check (t->rt->cudaSetDevice (device), "cudaSetDevice", err));
    TRY (cuda_check (t->rt->cudaMalloc ((void **) &t->out, bytes), "cudaMalloc", err));
    TRY (cuda_check (t->rt->cudaMalloc ((void **) &t->in, bytes), "cudaMalloc", err));
    TRY (cuda_check (t->rt->cudaStreamCreateWithFlags (&t->stream, cudaStreamNonBlocking),
                     "stream", err));
    for (; t->events <= QUEUE; t->events++)
        TRY (cuda_check (t->rt->cudaEventCreate (&t->event[t->events]), "event", err));
    return ST_OK;
}

static enum status nccl_open (struct station *s, struct msg_opened *opened,
                              struct error *err)
{
    struct transport_state *t = calloc (1, sizeof *t);
    int gpus = cuda_gpus (err);
    enum status st;

    if (!t)
        return err_nomem (err);
    t->rt = cuda_load_runtime (err);
    t->nccl = t->rt ? cuda_load_nccl (err) : NULL;
    if (gpus < 1 || !t->nccl) {
        free (t);
        return ST_IO;
    }
    s->state = t;
    st = open_device (t, (int) s->how.local % gpus, s->how.max_bytes + ANSWER, err);
    if (st == ST_OK)
        describe_versions (t, opened);
    else
        nccl_close (s);
    return st;
}

/* ---- communicators ---- */

static ncclConfig_t config_without_blocking (void)
{
    ncclConfig_t c = NCCL_CONFIG_INITIALIZER;

    c.blocking = 0;
    return c;
}

static enum status nccl_make_id (struct station *s, unsigned char id[NCCL_ID],
                                 struct error *err)
{
    const struct transport_state *t = s->state;
    ncclUniqueId made;
    ncclResult_t result = t->nccl->ncclGetUniqueId (&made);

    _Static_assert(sizeof made == NCCL_ID, "NCCL's id has an unexpected size");
    if (result != ncclSuccess)
        return failed (t, result, NULL, "ncclGetUniqueId", err);
    memcpy (id, &made, NCCL_ID);
    return ST_OK;
}

static enum status join (struct station *s, ncclComm_t *comm,
                         const unsigned char id[NCCL_ID], uint32_t size, uint32_t rank,
                         int side, struct error *err)
{
    struct transport_state *t = s->state;
    ncclConfig_t config = config_without_blocking ();
    ncclUniqueId same;
    ncclResult_t result;
    enum status st;

    memcpy (&same, id, NCCL_ID);
    result =
        t->nccl->ncclCommInitRankConfig (comm, (int) size, same, (int) rank, &config);
    st = settle (s, result, *comm, side,
                 (size > 2 ? 2 : 1) * s->how.timeout_s + 0.01 * size,
                 "ncclCommInitRankConfig", err);
    if (st != ST_OK)
        drop (t, comm);
    return st;
}

static enum status nccl_parent (struct station *s, const struct msg_parent *p,
                                struct error *err)
{
    struct transport_state *t = s->state;

    drop (t, &t->parent);
    return join (s, &t->parent, p->id, p->size, p->rank, -1, err);
}

/* Take part in a split; all ranks of the parent do. */
static enum status split (struct station *s, int color, int key, int side,
                          struct error *err)
{
    struct transport_state *t = s->state;
    ncclConfig_t config = config_without_blocking ();
    ncclResult_t result;
    enum status st;

    if (!t->parent) {
        s->collective = true;
        return err_set (err, ST_IO, "there is no communicator to split");
    }
    result = t->nccl->ncclCommSplit (t->parent, color, key, &t->pair, &config);
    st = settle (s, result, t->parent, side, s->how.timeout_s, "ncclCommSplit", err);
    if (st == ST_OK && t->pair)
        st = settle (s, ncclSuccess, t->pair, side, s->how.timeout_s, "ncclCommSplit",
                     err);
    if (st != ST_OK) {
        drop (t, &t->pair);
        drop (t, &t->parent);
        s->collective = true;
    }
    return st;
}

static enum status nccl_sit_out (struct station *s, struct error *err)
{
    return split (s, NCCL_SPLIT_NOCOLOR, 0, -1, err);
}

static enum status nccl_connect (struct station *s, const struct pair *p,
                                 struct error *err)
{
    struct transport_state *t = s->state;
    unsigned char id[NCCL_ID] = {0};

    if (p->run->split)
        return split (s, (int) p->run->color, !p->run->lead, p->side, err);
    if (p->run->lead) {
        TRY (nccl_make_id (s, id, err));
        TRY (station_write (s, p->side, id, sizeof id, err));
    } else {
        TRY (station_read (s, p->side, id, sizeof id, err));
    }
    return join (s, &t->pair, id, 2, !p->run->lead, p->side, err);
}

static void nccl_disconnect (struct station *s, bool broken)
{
    struct transport_state *t = s->state;
    double deadline = clock_s () + FINISH_S;
    ncclResult_t now = ncclInProgress;

    if (!t->pair)
        return;
    if (!broken) {
        ncclResult_t result = t->nccl->ncclCommFinalize (t->pair);

        broken = result != ncclSuccess && result != ncclInProgress;
        while (!broken && now == ncclInProgress && clock_s () < deadline)
            broken = t->nccl->ncclCommGetAsyncError (t->pair, &now) != ncclSuccess ||
                     station_pause (s, -1, 0.001, NULL) != ST_OK;
    }
    if (!broken && now == ncclSuccess)
        t->nccl->ncclCommDestroy (t->pair);
    else
        t->nccl->ncclCommAbort (t->pair);
    t->pair = NULL;
    /* Kernels of an aborted communicator leave the stream by themselves. */
    deadline = clock_s () + FINISH_S;
    while (t->rt->cudaStreamQuery (t->stream) == cudaErrorNotReady &&
           clock_s () < deadline)
        if (station_pause (s, -1, 0.001, NULL) != ST_OK)
            break;
}

/* ---- messages ---- */

/* Queue one message and its answer. */
static enum status queue_one (struct station *s, const struct pair *p, bool send,
                              size_t bytes, struct error *err)
{
    struct transport_state *t = s->state;
    int partner = p->run->lead ? 1 : 0;

    for (int answer = 0; answer < 2; answer++) {
        size_t n = answer ? ANSWER : bytes;
        /* The answer lies behind what is sent, so that it never changes the data. */
        unsigned char *out = answer ? t->out + s->how.max_bytes : t->out,
                      *in = answer ? t->in + s->how.max_bytes : t->in;
        ncclResult_t result =
            send == !answer
                ? t->nccl->ncclSend (out, n, ncclUint8, partner, t->pair, t->stream)
                : t->nccl->ncclRecv (in, n, ncclUint8, partner, t->pair, t->stream);

        TRY (settle (s, result, t->pair, p->side, s->how.timeout_s, "the transfer", err));
    }
    return ST_OK;
}

/* Queue up to QUEUE messages with events between them, and wait for the last. */
static enum status run_queue (struct station *s, const struct pair *p, bool send,
                              size_t bytes, int count, double *seconds, struct error *err)
{
    struct transport_state *t = s->state;

    TRY (cuda_check (t->rt->cudaEventRecord (t->event[0], t->stream), "event", err));
    for (int i = 0; i < count; i++) {
        TRY (queue_one (s, p, send, bytes, err));
        TRY (cuda_check (t->rt->cudaEventRecord (t->event[i + 1], t->stream), "event",
                         err));
    }
    TRY (reach (s, t->event[count], p->side, err));
    for (int i = 0; i < count && seconds; i++) {
        float ms = 0;

        TRY (cuda_check (t->rt->cudaEventElapsedTime (&ms, t->event[i], t->event[i + 1]),
                         "event", err));
        seconds[i] = (double) ms * 1e-3;
    }
    return ST_OK;
}

static enum status nccl_send (struct station *s, const struct pair *p, size_t bytes,
                              int count, double *seconds, struct error *err)
{
    for (int i = 0; i < count; i += QUEUE)
        TRY (run_queue (s, p, true, bytes, count - i < QUEUE ? count - i : QUEUE,
                        seconds + i, err));
    return ST_OK;
}

static enum status nccl_recv (struct station *s, const struct pair *p, size_t bytes,
                              int count, struct error *err)
{
    for (int i = 0; i < count; i += QUEUE)
        TRY (run_queue (s, p, false, bytes, count - i < QUEUE ? count - i : QUEUE, NULL,
                        err));
    return ST_OK;
}

static enum status nccl_load (struct station *s, const void *data, size_t bytes,
                              struct error *err)
{
    const struct transport_state *t = s->state;

    return cuda_check (t->rt->cudaMemcpy (t->out, data, bytes, cudaMemcpyHostToDevice),
                       "copy to the GPU", err);
}

static enum status nccl_unload (struct station *s, void *data, size_t bytes,
                                struct error *err)
{
    const struct transport_state *t = s->state;

    return cuda_check (t->rt->cudaMemcpy (data, t->in, bytes, cudaMemcpyDeviceToHost),
                       "copy from the GPU", err);
}

const struct transport transport_nccl = {.name = "nccl",
                                         .defaults = {.alone_s = 0.02,
                                                      .together_s = 0.04,
                                                      .timeout_s = 10,
                                                      .max_bytes = (uint64_t) 256 << 20,
                                                      .setup_s = 0.2},
                                         .open = nccl_open,
                                         .close = nccl_close,
                                         .make_id = nccl_make_id,
                                         .parent = nccl_parent,
                                         .sit_out = nccl_sit_out,
                                         .connect = nccl_connect,
                                         .send = nccl_send,
                                         .recv = nccl_recv,
                                         .load = nccl_load,
                                         .unload = nccl_unload,
                                         .disconnect = nccl_disconnect};
