/* From lines to communicators: which process is which rank of the plan, whose members are one
 * communicator, and which groups of ranks the plan has. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "check/nccl_private.h"

/* ---- the plan's groups ---- */

static const enum workload_group_kind group_kind[] = {
    [NCCL_KIND_TP] = GROUP_TP,     [NCCL_KIND_CP] = GROUP_CP,
    [NCCL_KIND_SYNC] = GROUP_SYNC, [NCCL_KIND_EXPERT] = GROUP_EXPERT_SYNC,
    [NCCL_KIND_EP] = GROUP_EP,     [NCCL_KIND_ETP] = GROUP_ETP,
    [NCCL_KIND_DP] = GROUP_DP,     [NCCL_KIND_PP] = GROUP_PP};

const char *check_nccl_kind_text (enum check_nccl_kind_name kind)
{
    static const char *const name[] = {
        [NCCL_KIND_TP] = "tp",          [NCCL_KIND_CP] = "cp",
        [NCCL_KIND_SYNC] = "dp",        [NCCL_KIND_EXPERT] = "expert dp",
        [NCCL_KIND_EP] = "ep",          [NCCL_KIND_ETP] = "expert tp",
        [NCCL_KIND_DP] = "dp of a cp",  [NCCL_KIND_PP] = "pp",
        [NCCL_KIND_ENDS] = "embedding", [NCCL_KIND_PAIR] = "pp pair",
        [NCCL_KIND_WORLD] = "all ranks"};

    return name[kind];
}

struct workload_group nccl_kind_group (const struct workload_plan *p,
                                       enum check_nccl_kind_name kind)
{
    const struct workload_degrees *d = &p->config.deg;
    int stage = d->tp * d->cp * d->dp;

    switch (kind) {
    case NCCL_KIND_WORLD:
        return (struct workload_group){p->n_ranks, 1};
    case NCCL_KIND_ENDS:
        return (struct workload_group){d->pp > 2 ? 2 : 0, (d->pp - 1) * stage};
    case NCCL_KIND_PAIR:
        return (struct workload_group){d->pp > 2 ? 2 : 0, stage};
    case NCCL_KIND_EXPERT:
    case NCCL_KIND_EP:
    case NCCL_KIND_ETP:
        if (p->model.experts == 0)
            return (struct workload_group){0, 1};
        break;
    case NCCL_KIND_DP:
        if (d->cp == 1)
            return (struct workload_group){0, 1};
        break;
    default:
        break;
    }
    return workload_group_of (d, group_kind[kind]);
}

int nccl_kind_first (const struct workload_plan *p, enum check_nccl_kind_name kind,
                     int rank, int at, int *place)
{
    struct workload_group g = nccl_kind_group (p, kind);
    int first;

    if (g.size < 2)
        return -1;
    *place = kind == NCCL_KIND_PAIR   ? at
             : kind == NCCL_KIND_ENDS ? rank >= g.stride
                                      : rank / g.stride % g.size;
    first = rank - *place * g.stride;
    if (kind != NCCL_KIND_PAIR && kind != NCCL_KIND_ENDS)
        return first;
    return first < 0 || first + g.stride >= p->n_ranks ? -1 : first;
}

/* ---- who is who ---- */

/* Seats take the ranks that they have in communicators of all ranks.  @return how many
 * jobs there are: seats of one rank */
static int rank_by_world (struct nccl_log *log, int world, int *seats)
{
    int jobs = 1;

    for (int i = 0; i < log->n_members; i++) {
        const struct nccl_member *m = &log->member[i];
        struct nccl_seat *s = &log->seat[m->seat];

        if (m->n_ranks != world || s->rank >= 0)
            continue;
        s->rank = m->rank;
        if (++seats[m->rank] > jobs)
            jobs = seats[m->rank];
    }
    return jobs;
}

/* The others by their hosts and the machine's numbers of their GPUs. */
static void rank_by_host (struct nccl_log *log, const struct topology_cluster *c,
                          const int *rank_of_gpu)
{
    for (int i = 0; i < log->n_seats; i++) {
        struct nccl_seat *s = &log->seat[i];
        int node, gpu;

        if (s->rank >= 0 || s->nvml < 0 ||
            (node = topology_node_of_host (c, log->host[s->host])) < 0)
            continue;
        gpu = topology_gpu_find (c, node, s->nvml);
        if (gpu >= 0)
            s->rank = rank_of_gpu[gpu];
    }
}

static enum status find_ranks (struct nccl_log *log, const struct workload_plan *p,
                               const struct topology_cluster *c, int *jobs,
                               struct error *err)
{
    size_t n = (size_t) p->n_ranks, gpus = (size_t) c->n_gpus;
    int *planned = malloc (n * sizeof *planned), *seats = calloc (n, sizeof *seats),
        *rank_of_gpu = malloc (gpus * sizeof *rank_of_gpu);
    enum status st = planned && seats && rank_of_gpu ? ST_OK : err_nomem (err);

    THEN (st, costmodel_plan_gpus (p, c, planned, err));
    if (st == ST_OK) {
        for (size_t i = 0; i < gpus; i++)
            rank_of_gpu[i] = -1;
        for (int r = 0; r < p->n_ranks; r++)
            rank_of_gpu[planned[r]] = r;
        *jobs = rank_by_world (log, p->n_ranks, seats);
        rank_by_host (log, c, rank_of_gpu);
    }
    FREE_ALL (planned, seats, rank_of_gpu);
    return st;
}

/* ---- members of one communicator ---- */

struct sorter {
    const struct nccl_log *log;
    const struct workload_plan *p;
    struct nccl_index comms, times;
    int *comm_of; /* [n_members]; -1: of none that can be told */
    int n;
};

#define LOOKED_BACK 256 /* members of a process that one may be split from */

/* The communicator that a member was split from, or -1. */
static int parent_of (const struct sorter *x, const struct nccl_member *m)
{
    int looked = 0;

    for (int i = m->before; i >= 0 && looked < LOOKED_BACK; looked++) {
        const struct nccl_member *other = &x->log->member[i];

        if (other->comm == m->parent)
            return x->comm_of[i];
        i = other->before;
    }
    return -1;
}

#define LOOKED_AT 64 /* connections of a member that are held against a group */

/* Do its connections agree with such a group: P2P and shared memory inside nodes, the network
 * between them?  Versions before 2.18 do not connect nodes by NVLink. */
static bool agrees (const struct sorter *x, const struct nccl_member *m, int first,
                    int stride)
{
    int looked = 0;

    for (int i = m->edge; i >= 0 && looked < LOOKED_AT; i = x->log->edge[i].next) {
        const struct nccl_edge *e = &x->log->edge[i];
        const struct workload_place *place = x->p->place + first;

        if (e->kind < NCCL_RING_LINK || e->via == NCCL_VIA_OTHER || e->a < 0 ||
            e->b < 0 || e->a >= m->n_ranks || e->b >= m->n_ranks)
            continue;
        looked++;
        if ((strcmp (place[e->a * stride].node, place[e->b * stride].node) == 0) !=
            (e->via == NCCL_P2P || e->via == NCCL_SHM))
            return false;
    }
    return true;
}

/* The only group of the plan that has this rank in this place; where several have, the only
 * one that its connections agree with.  @return 0: none or several */
static uint64_t only_group (const struct sorter *x, const struct nccl_member *m)
{
    int rank = x->log->seat[m->seat].rank, place;
    uint64_t key[CHECK_NCCL_KINDS], agreed = 0;
    int n = 0, n_agreed = 0;

    for (int k = 0; rank >= 0 && k < CHECK_NCCL_KINDS; k++) {
        enum check_nccl_kind_name kind = k;
        struct workload_group g = nccl_kind_group (x->p, kind);
        int first = nccl_kind_first (x->p, kind, rank, m->rank, &place), i = 0;

        if (g.size != m->n_ranks || first < 0 || place != m->rank)
            continue;
        key[n] = (uint64_t) g.stride << 32 | (unsigned) first;
        while (key[i] != key[n])
            i++;
        if (i < n)
            continue; /* the same ranks under another name */
        n++;
        if (agrees (x, m, first, g.stride)) {
            agreed = key[i];
            n_agreed++;
        }
    }
    return n == 1 ? key[0] : n_agreed == 1 ? agreed : 0;
}

/* Which one is it for its seat, of communicators with this name? @return -1: no memory */
static int which_time (struct sorter *x, const struct nccl_member *m, uint64_t name)
{
    int *at = nccl_index_at (&x->times, (unsigned) m->seat, name, (unsigned) m->n_ranks);

    return at ? ++*at : -1;
}

/* What all members of one communicator have in common, and no others. @return false: it
 * cannot be told */
static bool name_of (struct sorter *x, const struct nccl_member *m, uint64_t key[3])
{
    int time;

    key[2] = (unsigned) m->n_ranks;
    if (m->id) {
        key[0] = 1;
        key[1] = m->id;
        return true;
    }
    if (m->parent) {
        int parent = parent_of (x, m);

        key[0] = 16 + (uint64_t) parent;
        key[1] = (uint64_t) (unsigned) m->split << 32 | (unsigned) m->color;
        return parent >= 0;
    }
    key[0] = 2;
    key[1] = only_group (x, m);
    if (!key[1])
        return false;
    time = which_time (x, m, key[1]);
    key[2] |= (uint64_t) (unsigned) time << 32;
    return time >= 0;
}

static bool sort_members (struct sorter *x, struct nccl_comms *out)
{
    for (int i = 0; i < x->log->n_members; i++) {
        const struct nccl_member *m = &x->log->member[i];
        uint64_t key[3];
        int *at;

        x->comm_of[i] = -1;
        out->unfinished += !m->done;
        if (m->n_ranks == 0)
            continue;
        if (!name_of (x, m, key)) {
            out->ambiguous++;
            continue;
        }
        if (!(at = nccl_index_at (&x->comms, key[0], key[1], key[2])))
            return false;
        if (*at < 0)
            *at = x->n++;
        x->comm_of[i] = *at;
    }
    return true;
}

struct place {
    int comm, rank, member;
};

/* Communicators of members that are sorted. */
static void gather (const struct nccl_log *log, const struct place *place, int n,
                    struct nccl_comms *out)
{
    for (int i = 0; i < n; i++) {
        const struct nccl_member *m = &log->member[place[i].member];
        struct nccl_comm *c;

        if (i == 0 || place[i].comm != place[i - 1].comm)
            out->comm[out->n++] = (struct nccl_comm){.first = i, .n_ranks = m->n_ranks};
        c = &out->comm[out->n - 1];
        if (c->n > 0 && place[i].rank == place[i - 1].rank && !c->ambiguous) {
            c->ambiguous = true;
            out->ambiguous++;
        }
        c->n++;
        c->channels = m->channels > c->channels ? m->channels : c->channels;
        out->member[i] = place[i].member;
    }
}

enum status nccl_comms_find (struct nccl_log *log, const struct workload_plan *p,
                             const struct topology_cluster *c, struct nccl_comms *out,
                             struct error *err)
{
    size_t n = (size_t) log->n_members;
    struct sorter x = {.log = log, .p = p, .comm_of = malloc (n * sizeof *x.comm_of)};
    struct place *place = malloc (n * sizeof *place);
    enum status st;
    int placed = 0;

    *out = (struct nccl_comms){.member = malloc (n * sizeof *out->member)};
    st = find_ranks (log, p, c, &out->jobs, err);
    if (st == ST_OK && (!x.comm_of || !place || !out->member || !sort_members (&x, out)))
        st = err_nomem (err);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        if (x.comm_of[i] >= 0)
            place[placed++] = (struct place){x.comm_of[i], log->member[i].rank, (int) i};
    if (st == ST_OK && !(out->comm = calloc ((size_t) x.n + 1, sizeof *out->comm)))
        st = err_nomem (err);
    if (st == ST_OK && placed > 0) {
        order_by_ints (place, (size_t) placed, sizeof *place, 3);
        gather (log, place, placed, out);
    }
    nccl_index_free (&x.comms);
    nccl_index_free (&x.times);
    FREE_ALL (x.comm_of, place);
    return st;
}

void nccl_comms_release (struct nccl_comms *x)
{
    FREE_ALL (x->comm, x->member);
    *x = (struct nccl_comms){0};
}
