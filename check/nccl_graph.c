/* One communicator beside the group that the price has: members, rings, trees, connections. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "check/nccl_private.h"

/* ---- which group is it? ---- */

/* The communicator in hand. */
struct known {
    const struct nccl_comm *comm;
    enum check_nccl_kind_name kind;
    int first; /* rank of the group */
    bool whole, ordered;
    int *at; /* [n_ranks] plan's ranks by the communicator's */
};

static const struct nccl_member *member_at (const struct nccl_compare *x,
                                            const struct nccl_comm *comm, int i)
{
    return &x->log->member[x->comms->member[comm->first + i]];
}

static int rank_of (const struct nccl_compare *x, const struct nccl_member *m)
{
    return x->log->seat[m->seat].rank;
}

/* Is it a group of this kind: all known members of one, and where some are not known, each in
 * its planned place? */
static bool is_kind (const struct nccl_compare *x, struct known *k)
{
    int first = -1, place, known = 0;

    if (nccl_kind_group (x->p, k->kind).size != k->comm->n_ranks)
        return false;
    k->ordered = true;
    for (int i = 0; i < k->comm->n; i++) {
        const struct nccl_member *m = member_at (x, k->comm, i);
        int rank = rank_of (x, m), f;

        if (rank < 0)
            continue;
        f = nccl_kind_first (x->p, k->kind, rank, m->rank, &place);
        if (f < 0 || (known++ > 0 && f != first))
            return false;
        first = f;
        k->ordered = k->ordered && place == m->rank;
    }
    k->first = first;
    k->whole = known == k->comm->n_ranks;
    return known > 0 && (k->whole || k->ordered);
}

/* The first kind that it is.  One that is known in part is of a group only where that is the
 * only one. */
static bool identify (const struct nccl_compare *x, struct known *k)
{
    struct known found = {.comm = NULL};

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        struct workload_group g = nccl_kind_group (x->p, i);

        k->kind = i;
        if (!is_kind (x, k))
            continue;
        if (found.comm && (found.first != k->first ||
                           nccl_kind_group (x->p, found.kind).stride != g.stride)) {
            if (!k->whole)
                return false;
            break;
        }
        if (!found.comm)
            found = *k;
    }
    *k = found;
    return found.comm != NULL;
}

/* The plan's ranks in the communicator's order. @return false: no memory, or a rank twice */
static bool list_ranks (const struct nccl_compare *x, struct known *k, bool *twice)
{
    struct workload_group g = nccl_kind_group (x->p, k->kind);
    int n = k->comm->n_ranks;
    bool *seen = calloc ((size_t) n, sizeof *seen);

    *twice = false;
    k->at = malloc ((size_t) n * sizeof *k->at);
    for (int i = 0; i < n && k->at; i++)
        k->at[i] = k->first + i * g.stride;
    for (int i = 0; i < k->comm->n && k->at && seen && k->whole; i++) {
        const struct nccl_member *m = member_at (x, k->comm, i);
        int rank = rank_of (x, m), place = (rank - k->first) / g.stride;

        k->at[m->rank] = rank;
        *twice = *twice || seen[place];
        seen[place] = true;
    }
    free (seen);
    return k->at && seen;
}

/* ---- rings ---- */

struct rings {
    int n, channels; /* ranks; that are numbered */
    int *next;       /* [channels * n] */
    bool whole[NCCL_CHANNELS_MAX];
    int n_whole;
    int *gpu; /* [n_whole * n] in ring order */
};

enum source { EDGES, ORDERS, LINKS, SOURCES };

static void fill_next (struct rings *r, int channel, int a, int b)
{
    if (channel < r->channels && !r->whole[channel] && a >= 0 && a < r->n && b >= 0 &&
        b < r->n)
        r->next[(size_t) channel * (size_t) r->n + (size_t) a] = b;
}

static void fill_member (const struct nccl_compare *x, struct rings *r,
                         const struct nccl_member *m, enum source from)
{
    enum nccl_edge_kind kind = from == EDGES ? NCCL_RING : NCCL_RING_LINK;

    for (int i = m->edge; i >= 0 && from != ORDERS; i = x->log->edge[i].next) {
        const struct nccl_edge *e = &x->log->edge[i];

        if (e->kind == kind)
            fill_next (r, e->channel, e->a, e->b);
    }
    for (int i = m->order; i >= 0 && from == ORDERS; i = x->log->order[i].next) {
        const struct nccl_order *o = &x->log->order[i];
        const int *rank = x->log->rank + o->first;

        for (int k = 0; k < o->n && o->n == r->n; k++)
            fill_next (r, o->channel, rank[k], rank[(k + 1) % o->n]);
    }
}

/* Does the channel's ring go once around all ranks?  Then its GPUs are added. */
static bool take_ring (const struct nccl_compare *x, const struct known *k,
                       struct rings *r, int channel)
{
    const int *next = r->next + (size_t) channel * (size_t) r->n;
    int *gpu = r->gpu + (size_t) r->n_whole * (size_t) r->n, at = 0;

    for (int i = 0; i < r->n; i++) {
        gpu[i] = x->planned[k->at[at]];
        at = next[at];
        if (at < 0 || (at == 0) != (i == r->n - 1))
            return false;
    }
    return true;
}

static int channels_of (const struct nccl_compare *x, const struct nccl_comm *comm)
{
    int channels = comm->channels;

    for (int i = 0; i < comm->n; i++) {
        const struct nccl_member *m = member_at (x, comm, i);

        for (int e = m->edge; e >= 0; e = x->log->edge[e].next)
            if (x->log->edge[e].kind == NCCL_RING && x->log->edge[e].channel >= channels)
                channels = x->log->edge[e].channel + 1;
        for (int o = m->order; o >= 0; o = x->log->order[o].next)
            if (x->log->order[o].channel >= channels)
                channels = x->log->order[o].channel + 1;
    }
    return channels < NCCL_CHANNELS_MAX ? channels : NCCL_CHANNELS_MAX;
}

/* Read the rings: by each rank's neighbours, else as rank 0 prints them, else by the connections
 * that were made before all rings were said to be. */
static bool read_rings (const struct nccl_compare *x, const struct known *k,
                        struct rings *r)
{
    size_t room;

    *r = (struct rings){.n = k->comm->n_ranks, .channels = channels_of (x, k->comm)};
    room = (size_t) (r->channels + 1) * (size_t) r->n;
    r->next = malloc (room * sizeof *r->next);
    r->gpu = malloc (room * sizeof *r->gpu);
    if (!r->next || !r->gpu)
        return false;
    for (int from = EDGES; from < SOURCES && r->n_whole < r->channels; from++) {
        memset (r->next, -1, room * sizeof *r->next);
        for (int i = 0; i < k->comm->n; i++)
            fill_member (x, r, member_at (x, k->comm, i), (enum source) from);
        for (int c = 0; c < r->channels; c++)
            if (!r->whole[c] && take_ring (x, k, r, c)) {
                r->whole[c] = true;
                r->n_whole++;
            }
    }
    return true;
}

/* ---- hops between nodes ---- */

struct hop {
    int a, b, src, dst; /* nodes, GPUs */
};

struct hops {
    struct hop *hop; /* [n] */
    size_t n;
};

static bool add_hop (const struct nccl_compare *x, struct hops *h, int src, int dst)
{
    int a = x->c->node_of_gpu[src], b = x->c->node_of_gpu[dst];

    if (a == b)
        return true;
    if (!array_grow (&h->hop, h->n, sizeof *h->hop))
        return false;
    h->hop[h->n++] = (struct hop){a, b, src, dst};
    return true;
}

/* Sort them, each once. */
static void settle (struct hops *h)
{
    size_t n = 0;

    order_by_ints (h->hop, h->n, sizeof *h->hop, 4);
    for (size_t i = 0; i < h->n; i++)
        if (i == 0 || order_ints (&h->hop[i - 1], &h->hop[i], 4) != 0)
            h->hop[n++] = h->hop[i];
    h->n = n;
}

/* The ring as the price lays it (costmodel/group.c): node by node in the order of first
 * appearance, with as many lanes between two as both have members. */
static bool lay_hops (struct nccl_compare *x, const struct known *k, struct hops *h)
{
    struct workload_group g = nccl_kind_group (x->p, k->kind);
    int nodes = 0, *member = malloc ((size_t) g.size * sizeof *member),
        *start = calloc ((size_t) g.size + 1, sizeof *start),
        *fill = calloc ((size_t) g.size, sizeof *fill);
    bool done = member && start && fill;

    for (int i = 0; i < g.size && done; i++) {
        int *first =
            &x->node_first[x->c->node_of_gpu[x->planned[k->first + i * g.stride]]];

        if (*first < 0)
            *first = nodes++;
        start[*first + 1]++;
    }
    for (int i = 0; i < nodes; i++)
        start[i + 1] += start[i];
    for (int i = 0; i < g.size && done; i++) {
        int gpu = x->planned[k->first + i * g.stride];
        int at = x->node_first[x->c->node_of_gpu[gpu]];

        member[start[at] + fill[at]++] = gpu;
    }
    for (int i = 0; i < nodes; i++) {
        int to = (i + 1) % nodes;

        for (int lane = 0; lane < fill[i] && lane < fill[to] && done; lane++)
            done = add_hop (x, h, member[start[i] + lane], member[start[to] + lane]);
    }
    for (int i = 0; i < g.size && member; i++)
        x->node_first[x->c->node_of_gpu[x->planned[k->first + i * g.stride]]] = -1;
    FREE_ALL (member, start, fill);
    return done;
}

static bool choose_hops (const struct nccl_compare *x, const struct rings *r,
                         struct hops *h)
{
    for (int c = 0; c < r->n_whole; c++) {
        const int *gpu = r->gpu + (size_t) c * (size_t) r->n;

        for (int i = 0; i < r->n; i++)
            if (!add_hop (x, h, gpu[i], gpu[(i + 1) % r->n]))
                return false;
    }
    return true;
}

static void note_slowest (const struct nccl_compare *x, struct check_nccl_link *l,
                          int src, int dst)
{
    double rate = topology_link (x->c, src, dst).bytes_per_s;

    if (l->src_gpu < 0 || rate < l->bytes_per_s)
        *l = (struct check_nccl_link){src, dst, rate};
}

/* Pairs of GPUs of the hop that begins at i. */
static size_t lanes_at (const struct hops *h, size_t i)
{
    size_t n = i;

    while (n < h->n && h->hop[n].a == h->hop[i].a && h->hop[n].b == h->hop[i].b)
        n++;
    return n - i;
}

/* How many GPUs send and receive in it, whichever are fewer. */
static int width_at (struct nccl_compare *x, const struct hops *h, size_t i)
{
    int senders = 0, receivers = 0;

    x->hops_met++;
    for (size_t k = i, end = i + lanes_at (h, i); k < end; k++) {
        int *met = &x->gpu_met[h->hop[k].dst];

        senders += k == i || h->hop[k].src != h->hop[k - 1].src;
        receivers += *met != x->hops_met;
        *met = x->hops_met;
    }
    return senders < receivers ? senders : receivers;
}

static int order_of (const struct hops *p, size_t i, const struct hops *q, size_t j)
{
    if (i == p->n || j == q->n)
        return i == p->n ? 1 : -1;
    return order_ints (&p->hop[i], &q->hop[j], 2); /* nodes */
}

/* Count one side's hop of so many lanes, and remember the least lanes. */
static void count_lanes (int *least, int lanes)
{
    if (*least == 0 || lanes < *least)
        *least = lanes;
}

/* Hop for hop: which have both, which only one? */
static void compare_hops (struct nccl_compare *x, const struct hops *laid,
                          const struct hops *chosen, struct check_nccl_hops *out)
{
    *out = (struct check_nccl_hops){.slowest = {{-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}}};
    for (size_t i = 0, j = 0; i < laid->n || j < chosen->n;) {
        int order = order_of (laid, i, chosen, j), which = order == 0  ? 0
                                                           : order < 0 ? 1
                                                                       : 2;
        const struct hops *h = order <= 0 ? laid : chosen;
        size_t at = order <= 0 ? i : j, lanes = lanes_at (h, at);

        for (size_t k = at; k < at + lanes; k++)
            note_slowest (x, &out->slowest[which], h->hop[k].src, h->hop[k].dst);
        *(which == 0 ? &out->both : which == 1 ? &out->laid : &out->chosen) += 1;
        if (order <= 0) {
            count_lanes (&out->laid_lanes, width_at (x, laid, i));
            i += lanes;
        }
        if (order >= 0) {
            count_lanes (&out->chosen_lanes, width_at (x, chosen, j));
            j += lanes_at (chosen, j);
        }
    }
}

/* ---- trees ---- */

static bool read_trees (const struct nccl_compare *x, const struct known *k,
                        struct check_nccl_group *out)
{
    struct hops h = {0};
    bool done = true;

    out->tree = (struct check_nccl_link){-1, -1, 0};
    for (int i = 0; i < k->comm->n; i++)
        for (int e = member_at (x, k->comm, i)->edge; e >= 0 && done;
             e = x->log->edge[e].next) {
            const struct nccl_edge *edge = &x->log->edge[e];

            if (edge->kind == NCCL_TREE && edge->a >= 0 && edge->a < k->comm->n_ranks &&
                edge->b < k->comm->n_ranks)
                done = add_hop (x, &h, x->planned[k->at[edge->a]],
                                x->planned[k->at[edge->b]]);
        }
    settle (&h);
    for (size_t i = 0; i < h.n; i += lanes_at (&h, i))
        out->tree_hops++;
    for (size_t i = 0; i < h.n; i++) {
        note_slowest (x, &out->tree, h.hop[i].src, h.hop[i].dst);
        note_slowest (x, &out->tree, h.hop[i].dst, h.hop[i].src);
    }
    free (h.hop);
    return done;
}

/* ---- what it costs ---- */

static void price (const struct nccl_compare *x, const struct known *k,
                   const struct rings *r, struct check_nccl_group *out)
{
    static const enum workload_group_kind kind_of[] = {[NCCL_KIND_TP] = GROUP_TP,
                                                       [NCCL_KIND_SYNC] = GROUP_SYNC,
                                                       [NCCL_KIND_EXPERT] =
                                                           GROUP_EXPERT_SYNC};
    enum workload_all_reduce ignored;
    struct costmodel_ring laid, chosen;
    enum workload_group_kind kind;

    out->laid_s = out->chosen_s = NAN;
    out->by = ALL_REDUCE_RING;
    /* With hybrid sharding gradients go around other rings than those of all replicas. */
    if (!nccl_kind_priced (k->kind) ||
        (k->kind != NCCL_KIND_TP && workload_shard_copies (&x->p->config) > 1))
        return;
    kind = kind_of[k->kind];
    laid = costmodel_groups_laid (x->groups, kind, k->first);
    chosen = costmodel_groups_chosen (x->groups, kind, k->first, r->gpu, r->n_whole);
    out->laid_s = costmodel_groups_step_s (x->groups, kind, k->first, &laid, &out->by);
    out->chosen_s =
        costmodel_groups_step_s (x->groups, kind, k->first, &chosen, &ignored);
}

/* Is a the worse of two groups? */
static bool is_worse (const struct check_nccl_group *a, const struct check_nccl_group *b)
{
    double more = a->chosen_s - a->laid_s, before = b->chosen_s - b->laid_s;

    if (more > before || more < before)
        return more > before;
    return a->hops.laid + a->hops.chosen > b->hops.laid + b->hops.chosen;
}

static bool compare_rings (struct nccl_compare *x, const struct known *k)
{
    struct check_nccl_kind *kind = &x->out->kind[k->kind];
    struct check_nccl_group one = {.first = k->first, .n = k->comm->n_ranks};
    struct hops laid = {0}, chosen = {0};
    struct rings r;
    bool done = read_rings (x, k, &r) && read_trees (x, k, &one);

    if (done && r.n_whole > 0 &&
        (done = lay_hops (x, k, &laid) && choose_hops (x, &r, &chosen))) {
        one.channels = r.n_whole;
        one.unread = r.channels - r.n_whole;
        settle (&laid);
        settle (&chosen);
        compare_hops (x, &laid, &chosen, &one.hops);
        price (x, k, &r, &one);
        if (kind->compared++ == 0 || is_worse (&one, &kind->worst))
            kind->worst = one;
        kind->differ += one.hops.laid > 0 || one.hops.chosen > 0 ||
                        one.hops.chosen_lanes < one.hops.laid_lanes;
    }
    FREE_ALL (laid.hop, chosen.hop, r.next, r.gpu);
    return done;
}

/* ---- connections ---- */

/* The node of a rank of the communicator in hand; -1: not known. */
static int node_at (const struct nccl_compare *x, const struct known *k, int rank)
{
    int seat = x->seat_of[rank], plan = k->at ? k->at[rank] : -1;

    if (seat >= 0) {
        const struct nccl_seat *s = &x->log->seat[seat];
        int node = x->node_of_host[s->host];

        if (node >= 0)
            return node;
        plan = plan < 0 ? s->rank : plan;
    }
    return plan >= 0 ? x->c->node_of_gpu[x->planned[plan]] : -1;
}

static bool add_way (struct nccl_compare *x, int a, int b, const struct nccl_edge *e)
{
    struct check_nccl *out = x->out;
    int *at = nccl_index_at (&x->ways, (unsigned) a, (unsigned) b, 0);
    struct check_nccl_way *w;

    if (!at)
        return false;
    if (*at < 0) {
        if (!array_grow (&out->way, (size_t) out->n_ways, sizeof *out->way))
            return false;
        out->way[out->n_ways] = (struct check_nccl_way){.a = a, .b = b};
        *at = out->n_ways++;
    }
    w = &out->way[*at];
    w->times[e->via]++;
    if (e->via == NCCL_NET)
        w->gdr_missing[e->receive] = true;
    return true;
}

static bool add_ways (struct nccl_compare *x, const struct known *k)
{
    const struct nccl_comm *comm = k->comm;
    bool done = true;

    for (int i = 0; i < comm->n; i++)
        x->seat_of[member_at (x, comm, i)->rank] = member_at (x, comm, i)->seat;
    for (int i = 0; i < comm->n; i++)
        for (int e = member_at (x, comm, i)->edge; e >= 0 && done;
             e = x->log->edge[e].next) {
            const struct nccl_edge *edge = &x->log->edge[e];
            int a, b;

            if (edge->kind < NCCL_RING_LINK || edge->a < 0 || edge->b < 0 ||
                edge->a >= comm->n_ranks || edge->b >= comm->n_ranks)
                continue;
            a = node_at (x, k, edge->a);
            b = node_at (x, k, edge->b);
            if (a >= 0 && b >= 0)
                done = add_way (x, a, b, edge);
        }
    for (int i = 0; i < comm->n; i++)
        x->seat_of[member_at (x, comm, i)->rank] = -1;
    return done;
}

bool nccl_compare_one (struct nccl_compare *x, const struct nccl_comm *comm)
{
    struct known k = {.comm = comm};
    bool done = true, twice = false;

    if (comm->ambiguous || comm->n_ranks < 2 || comm->n_ranks > x->p->n_ranks) {
        x->out->other += !comm->ambiguous;
        return true;
    }
    if (!identify (x, &k)) {
        k = (struct known){.comm = comm};
        x->out->other++;
        return add_ways (x, &k);
    }
    done = list_ranks (x, &k, &twice);
    if (done && twice) {
        x->out->ambiguous++;
    } else if (done) {
        x->out->kind[k.kind].found++;
        x->out->kind[k.kind].partly += !k.whole;
        x->out->kind[k.kind].reordered += !k.ordered;
        done = add_ways (x, &k) && (x->out->moved || compare_rings (x, &k));
    }
    free (k.at);
    return done;
}
