/* Whose a line is: hosts, devices of processes, and members of communicators, by numbers.
 *
 * The lines of a communicator are those of one thread from `Init START` to `Init COMPLETE`;
 * versions before 2.18 print no START, so that a thread's lines wait for the COMPLETE that names
 * their communicator.  Connections that are made later, at the first collective, are given to the
 * one communicator of the process in which it has the rank that the line says. */
#include "check/nccl_private.h"

#include <string.h>

#include "base/memory.h"

int nccl_host (struct nccl_reader *x, const char *name, size_t len)
{
    struct nccl_log *log = x->log;
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char) name[i]) * 1099511628211u;
    for (uint64_t k = 0;; k++) {
        int *at = nccl_index_at (&x->hosts, hash, len, k);

        if (at && *at >= 0 && strncmp (log->host[*at], name, len) != 0)
            continue; /* another one with the same sum */
        if (at && *at >= 0)
            return *at;
        if (!at || !array_grow (&log->host, (size_t) log->n_hosts, sizeof *log->host) ||
            !(log->host[log->n_hosts] = strndup (name, len))) {
            x->failed = true;
            return -1;
        }
        return *at = log->n_hosts++;
    }
}

/* The number that a table has for something of a process. */
static int *of_process (struct nccl_reader *x, struct nccl_index *table,
                        const struct nccl_origin *o, int what)
{
    uint64_t process = (uint64_t) o->host << 32 | (unsigned) o->pid;
    int *at = nccl_index_at (table, process, (unsigned) what, 0);

    x->failed |= !at;
    return at;
}

int *nccl_thread (struct nccl_reader *x, const struct nccl_origin *o)
{
    return of_process (x, &x->threads, o, o->tid);
}

int *nccl_marked (struct nccl_reader *x, const struct nccl_origin *o)
{
    return of_process (x, &x->marked, o, 0);
}

int nccl_seat_of (struct nccl_reader *x, const struct nccl_origin *o, int dev)
{
    struct nccl_log *log = x->log;
    int *at = of_process (x, &x->seats, o, dev);

    if (at && *at >= 0)
        return *at;
    if (!at || !array_grow (&log->seat, (size_t) log->n_seats, sizeof *log->seat)) {
        x->failed = true;
        return -1;
    }
    log->seat[log->n_seats] = (struct nccl_seat){o->host, o->pid, dev, -1, -1};
    return *at = log->n_seats++;
}

struct nccl_member *nccl_member_open (struct nccl_reader *x, const struct nccl_origin *o)
{
    struct nccl_log *log = x->log;
    int seat = nccl_seat_of (x, o, o->dev), *thread = nccl_thread (x, o);
    int *last = of_process (x, &x->processes, o, 0);

    if (seat < 0 || !thread || !last ||
        !array_grow (&log->member, (size_t) log->n_members, sizeof *log->member)) {
        x->failed = true;
        return NULL;
    }
    log->member[log->n_members] = (struct nccl_member){
        .seat = seat, .rank = -1, .before = *last, .edge = -1, .order = -1};
    *last = *thread = log->n_members;
    return &log->member[log->n_members++];
}

#define LOOKED_BACK 256 /* members of a process that a late line may belong to */

struct nccl_member *nccl_member_late (struct nccl_reader *x, const struct nccl_origin *o,
                                      int rank, int peer)
{
    struct nccl_log *log = x->log;
    int *last = of_process (x, &x->processes, o, 0), looked = 0;
    struct nccl_member *found = NULL;

    for (int i = last ? *last : -1; i >= 0; i = log->member[i].before) {
        struct nccl_member *m = &log->member[i];

        if (++looked > LOOKED_BACK)
            return NULL;
        if (m->rank != rank || peer >= m->n_ranks ||
            (o->dev >= 0 && log->seat[m->seat].dev != o->dev))
            continue;
        if (found)
            return NULL;
        found = m;
    }
    return found;
}

struct nccl_member *nccl_member_of (struct nccl_reader *x, const struct nccl_origin *o,
                                    int rank, int peer)
{
    int *thread = nccl_thread (x, o), *marked = nccl_marked (x, o);

    if (!thread || !marked)
        return NULL;
    if (*thread >= 0)
        return &x->log->member[*thread];
    if (*marked < 0)
        return nccl_member_open (x, o);
    return rank >= 0 ? nccl_member_late (x, o, rank, peer) : NULL;
}

void nccl_reader_release (struct nccl_reader *x)
{
    nccl_index_free (&x->hosts);
    nccl_index_free (&x->seats);
    nccl_index_free (&x->threads);
    nccl_index_free (&x->processes);
    nccl_index_free (&x->marked);
}
