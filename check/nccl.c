/* What a job's NCCL logs say about its plan: who was found, which groups ring as they were
 * priced, what the others cost, and by which transports they go. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "check/nccl_private.h"

/* Links of GPUs inside a node that are faster than any memory of the host: PCIe 5 has 63 GB/s. */
#define FASTER_THAN_HOST_BYTES_PER_S 64e9

const char *check_nccl_via_name (enum check_nccl_via via)
{
    static const char *const name[] = {"p2p", "shm", "net_gdr", "net", "socket", "other"};

    return name[via];
}

/* ---- what was read ---- */

static void report_reading (const struct check_nccl *x, struct check_report *r)
{
    const struct check_nccl_lines *l = &x->lines;
    struct text version = {0};

    for (int i = 0; i < l->versions; i++)
        text_add (&version, "%s%s", i ? ", " : "", l->version[i]);
    check_say (r, "nccl log", l->unknown_version ? CHECK_NOTE : CHECK_OK,
               "%lld lines of NCCL %.60s%s in %d files: %d processes, %d communicators",
               l->nccl, l->versions ? text_str (&version) : "(no version named)",
               l->unknown_version ? " (2.4 to 2.28 are known)" : "", l->files,
               x->processes, x->communicators);
    text_free (&version);
    if (l->unread > 0)
        check_say (r, "nccl lines", CHECK_NOTE,
                   "%lld lines were not understood, the first at %.150s:%lld", l->unread,
                   l->place[0].file, l->place[0].line);
    if (l->unplaced + x->ambiguous + x->unfinished > 0)
        check_say (
            r, "nccl gaps", CHECK_NOTE,
            "%d communicators never completed, %d cannot be told apart, %lld lines "
            "are of no communicator or of several",
            x->unfinished, x->ambiguous, l->unplaced);
    if (x->jobs > 1)
        check_say (
            r, "nccl jobs", CHECK_NOTE,
            "the logs hold %d jobs or starts: up to %d processes say to be the same "
            "rank; all are compared",
            x->jobs, x->jobs);
}

/* ---- who is who ---- */

struct seats {
    int known, strangers, moved, others; /* others: on another GPU of their node */
    int first;                           /* of those moved, a seat */
};

static struct seats count_seats (const struct nccl_compare *x)
{
    struct seats n = {.first = -1};
    bool *seen = calloc ((size_t) x->p->n_ranks, sizeof *seen);

    for (int i = 0; i < x->log->n_seats && seen; i++) {
        const struct nccl_seat *s = &x->log->seat[i];
        int node = x->node_of_host[s->host];

        if (s->rank < 0 || s->rank >= x->p->n_ranks)
            continue;
        n.known += !seen[s->rank];
        seen[s->rank] = true;
        if (node < 0) {
            n.strangers++;
        } else if (node != x->c->node_of_gpu[x->planned[s->rank]]) {
            n.first = n.moved++ ? n.first : i;
        } else if (s->nvml >= 0 &&
                   s->nvml != topology_gpu_index (x->c, x->planned[s->rank])) {
            n.others++;
        }
    }
    free (seen);
    return n;
}

static void report_ranks (const struct nccl_compare *x, struct seats n,
                          struct check_report *r)
{
    const struct nccl_seat *first = n.moved ? &x->log->seat[n.first] : NULL;
    int all = x->p->n_ranks;

    if (n.known == 0)
        check_say (
            r, "nccl ranks", CHECK_FAILED,
            "none of %d processes is a rank of the plan: no communicator has its %d "
            "ranks, and no host and GPU are its own (the first host: %.64s)",
            x->out->processes, all, x->log->host[0]);
    else if (first)
        check_say (
            r, "nccl ranks", CHECK_FAILED,
            "%d ranks are on another host than planned, rank %d on %.64s instead of "
            "%.64s: nothing is compared; first see check --running",
            n.moved, first->rank, x->log->host[first->host],
            x->p->place[first->rank].node);
    else if (n.strangers > 0)
        check_say (
            r, "nccl ranks", CHECK_NOTE,
            "%d of %d ranks are known; %d on hosts that the cluster does not have: "
            "they are taken to be where they are planned",
            n.known, all, n.strangers);
    else if (n.others > 0)
        check_say (r, "nccl ranks", CHECK_NOTE,
                   "%d of %d ranks are known; %d have another GPU of their host than "
                   "planned, by NVML's number",
                   n.known, all, n.others);
    else
        check_say (r, "nccl ranks", n.known == all ? CHECK_OK : CHECK_NOTE,
                   "%d of %d ranks are known, on their planned hosts", n.known, all);
}

/* ---- groups ---- */

static int groups_planned (const struct workload_plan *p, enum check_nccl_kind_name kind)
{
    struct workload_group g = nccl_kind_group (p, kind);

    if (g.size < 2)
        return 0;
    /* Of two, from each rank that has another so far behind it. */
    if (kind == NCCL_KIND_PAIR || kind == NCCL_KIND_ENDS)
        return p->n_ranks - g.stride;
    return p->n_ranks / g.size;
}

/* Whole communicators as large as a kind's groups, and as many, none of which is one. */
static int foreign_groups (const struct nccl_compare *x, enum check_nccl_kind_name kind)
{
    int size = nccl_kind_group (x->p, kind).size, n = 0;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++)
        if (x->out->kind[i].found > 0 && nccl_kind_group (x->p, i).size == size)
            return 0;
    for (int i = 0; i < x->comms->n; i++) {
        const struct nccl_comm *c = &x->comms->comm[i];
        bool whole = c->n == c->n_ranks && c->n_ranks == size && !c->ambiguous;

        for (int k = 0; k < c->n && whole; k++)
            whole =
                x->log->seat[x->log->member[x->comms->member[c->first + k]].seat].rank >=
                0;
        n += whole;
    }
    return n;
}

static void report_groups (const struct nccl_compare *x, struct check_report *r)
{
    const struct check_nccl *out = x->out;
    struct text found = {0};
    int reordered = 0, partly = 0, foreign = 0, first = -1;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &out->kind[i];
        int n = i <= NCCL_KIND_EXPERT && k->planned > 1 ? foreign_groups (x, i) : 0;

        if (k->found > 0)
            text_add (&found, "%s%d %s", found.len ? ", " : "", k->found,
                      check_nccl_kind_text (i));
        reordered += k->reordered;
        partly += k->partly;
        if (n >= k->planned && n > 0 && first < 0) {
            foreign = n;
            first = i;
        }
    }
    if (first >= 0)
        check_say (
            r, "nccl groups", CHECK_FAILED,
            "%d communicators have as many ranks as the plan's %s groups, and none "
            "is one: the job groups its ranks otherwise",
            foreign, check_nccl_kind_text (first));
    else
        check_say (
            r, "nccl groups",
            reordered + partly > 0 || !found.len ? CHECK_NOTE : CHECK_OK,
            "communicators: %.100s; %d others; %d known by some ranks only; %d with "
            "ranks in another order than planned",
            found.len ? text_str (&found) : "none of the plan's groups", out->other,
            partly, reordered);
    text_free (&found);
}

/* ---- rings and what they cost ---- */

/* "h1 -> h2, 12.3 GB/s", or what stands for none. */
static const char *link_text (const struct nccl_compare *x,
                              const struct check_nccl_link *l, char buf[192])
{
    if (l->src_gpu < 0)
        return "none";
    snprintf (buf, 192, "%.70s -> %.70s, %.3g GB/s",
              x->c->node[x->c->node_of_gpu[l->src_gpu]].name,
              x->c->node[x->c->node_of_gpu[l->dst_gpu]].name, l->bytes_per_s / 1e9);
    return buf;
}

/* The worst group of a kind whose rings differ. */
static void report_worst (const struct nccl_compare *x, enum check_nccl_kind_name kind,
                          int differ, int compared, int unread, struct check_report *r)
{
    const struct check_nccl_group *g = &x->out->kind[kind].worst;
    const struct check_nccl_hops *h = &g->hops;
    char link[192];

    if (h->laid + h->chosen == 0)
        check_say (
            r, "nccl rings", CHECK_NOTE,
            "%d of %d groups ring otherwise than priced (%d not read); worst %s, from "
            "rank %d: the priced hops, over %d lanes instead of %d",
            differ, compared, unread, check_nccl_kind_text (kind), g->first,
            h->chosen_lanes, h->laid_lanes);
    else
        check_say (
            r, "nccl rings", CHECK_NOTE,
            "%d of %d groups ring otherwise than priced (%d not read); worst %s, from "
            "rank %d: %d hops in both, %d only priced, %d only NCCL's (slowest: "
            "%.90s)",
            differ, compared, unread, check_nccl_kind_text (kind), g->first, h->both,
            h->laid, h->chosen, link_text (x, &h->slowest[h->chosen ? 2 : 1], link));
}

static void report_rings (const struct nccl_compare *x, struct check_report *r)
{
    int compared = 0, differ = 0, unread = 0, worst = -1;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &x->out->kind[i];

        if (!nccl_kind_priced (i))
            continue;
        compared += k->compared;
        differ += k->differ;
        unread += k->found - k->compared;
        if (k->differ > 0 && worst < 0)
            worst = i;
    }
    if (compared == 0)
        check_say (r, "nccl rings", CHECK_NOTE,
                   "no tensor- or data-parallel group's ring could be read: that takes "
                   "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET, and for long ones all ranks' logs");
    else if (worst < 0)
        check_say (r, "nccl rings", unread ? CHECK_NOTE : CHECK_OK,
                   "%d groups ring from node to node as priced; %d could not be read",
                   compared, unread);
    else
        report_worst (x, worst, differ, compared, unread, r);
}

static void report_cost (const struct nccl_compare *x, struct check_report *r)
{
    struct text parts = {0};
    double sum = 0.0;
    int priced = 0;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_group *g = &x->out->kind[i].worst;

        if (x->out->kind[i].compared == 0 || isnan (g->laid_s))
            continue;
        text_add (&parts, "%s%s %+.4g s", priced++ ? ", " : "", check_nccl_kind_text (i),
                  g->chosen_s - g->laid_s);
        sum += fmax (0.0, g->chosen_s - g->laid_s);
    }
    if (priced > 0)
        check_say (r, "nccl cost", sum > 1e-3 * r->step_s ? CHECK_NOTE : CHECK_OK,
                   "at most %.4g s a step (of %.4g s): %.120s, if nothing hides it", sum,
                   r->step_s, text_str (&parts));
    text_free (&parts);
}

static void report_trees (const struct nccl_compare *x, struct check_report *r)
{
    char tree[192], ring[192];

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_group *g = &x->out->kind[i].worst;
        const struct check_nccl_link *slow = &g->hops.slowest[0];
        bool by_tree = g->by == ALL_REDUCE_TREE || g->by == ALL_REDUCE_NVLS_TREE;

        if (x->out->kind[i].compared == 0 || !by_tree || g->tree_hops == 0)
            continue;
        if (slow->src_gpu < 0 || (g->hops.slowest[1].src_gpu >= 0 &&
                                  g->hops.slowest[1].bytes_per_s < slow->bytes_per_s))
            slow = &g->hops.slowest[1];
        check_say (
            r, "nccl trees",
            g->tree.bytes_per_s < 0.999 * slow->bytes_per_s ? CHECK_NOTE : CHECK_OK,
            "%s goes by trees: %d edges between nodes, slowest %.90s (priced: %.90s)",
            check_nccl_kind_text (i), g->tree_hops, link_text (x, &g->tree, tree),
            link_text (x, slow, ring));
        return;
    }
}

static void report_channels (const struct nccl_compare *x, struct check_report *r)
{
    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_group *g = &x->out->kind[i].worst;

        if (x->out->kind[i].compared == 0 || g->hops.laid_lanes == 0 ||
            !nccl_kind_priced (i))
            continue;
        check_say (
            r, "nccl channels",
            g->hops.chosen_lanes < g->hops.laid_lanes ? CHECK_NOTE : CHECK_OK,
            "%s, from rank %d: %d channels%s, at least %d lanes between two nodes; "
            "the price has %d",
            check_nccl_kind_text (i), g->first, g->channels,
            g->unread ? " read, others not" : "", g->hops.chosen_lanes,
            g->hops.laid_lanes);
        return;
    }
}

/* ---- transports ---- */

/* Findings of one sort: how many, and the first few by name. */
struct finding {
    struct text names;
    int n;
};

#define NAMED 3

static void found_way (const struct nccl_compare *x, struct finding *f,
                       const struct check_nccl_way *w)
{
    if (f->n++ < NAMED)
        text_add (&f->names, w->a == w->b ? "%s%.60s" : "%s%.60s to %.60s",
                  f->n > 1 ? ", " : "", x->c->node[w->a].name, x->c->node[w->b].name);
}

static void say_found (struct finding *f, const char *what, const char *words,
                       struct check_report *r)
{
    if (f->n > NAMED)
        text_add (&f->names, " and %d more", f->n - NAMED);
    if (f->n > 0)
        check_say (r, what, CHECK_NOTE, "%s: %.180s", words, text_str (&f->names));
    text_free (&f->names);
}

/* Do the node's GPUs have links that shared memory is slower than? */
static bool has_fast_links (const struct nccl_compare *x, int node)
{
    const struct topology_node *n = &x->c->node[node];

    return n->gpus > 1 &&
           topology_link (x->c, n->first_gpu, n->first_gpu + 1).bytes_per_s >
               FASTER_THAN_HOST_BYTES_PER_S;
}

static void report_ways (const struct nccl_compare *x, struct check_report *r)
{
    struct finding socket = {0}, shared = {0}, network = {0}, direct = {0};
    bool *without = calloc ((size_t) x->c->n_nodes, sizeof *without);
    long long times[CHECK_NCCL_VIAS] = {0};

    for (int i = 0; i < x->out->n_ways; i++) {
        const struct check_nccl_way *w = &x->out->way[i];
        bool inside = w->a == w->b;

        for (int k = 0; k < CHECK_NCCL_VIAS; k++)
            times[k] += w->times[k];
        if (!inside && w->times[NCCL_SOCKET] > 0)
            found_way (x, &socket, w);
        if (inside && w->times[NCCL_SHM] > 0 && has_fast_links (x, w->a))
            found_way (x, &shared, w);
        if (inside &&
            w->times[NCCL_SOCKET] + w->times[NCCL_NET] + w->times[NCCL_NET_GDR] > 0)
            found_way (x, &network, w);
        for (int side = 0; side < 2 && !inside && without; side++) {
            struct check_nccl_way one = {.a = side ? w->b : w->a,
                                         .b = side ? w->b : w->a};

            if (w->gdr_missing[side] && !without[one.a]) {
                without[one.a] = true;
                found_way (x, &direct, &one);
            }
        }
    }
    free (without);
    if (x->out->n_ways > 0)
        check_say (
            r, "nccl transports",
            socket.n + shared.n + network.n + direct.n ? CHECK_NOTE : CHECK_OK,
            "connections: %lld P2P, %lld shared memory, %lld network with GPUDirect, "
            "%lld without, %lld sockets, %lld other",
            times[NCCL_P2P], times[NCCL_SHM], times[NCCL_NET_GDR], times[NCCL_NET],
            times[NCCL_SOCKET], times[NCCL_VIA_OTHER]);
    say_found (&socket, "nccl sockets", "by sockets, not the fast network", r);
    say_found (&shared, "nccl memory", "inside by shared memory, not P2P", r);
    say_found (&network, "nccl network", "inside by the network, not P2P", r);
    say_found (&direct, "nccl GPUDirect", "no GPUDirect on", r);
}

/* ---- the whole ---- */

static enum status compare_all (struct nccl_compare *x, struct check_report *r,
                                struct error *err)
{
    struct check_nccl *out = x->out;
    struct seats seats;

    out->processes = x->log->n_seats;
    out->communicators = x->comms->n;
    out->ambiguous = x->comms->ambiguous;
    out->unfinished = x->comms->unfinished;
    out->jobs = x->comms->jobs;
    for (int i = 0; i < CHECK_NCCL_KINDS; i++)
        out->kind[i].planned = groups_planned (x->p, i);
    out->lines = x->log->lines;
    seats = count_seats (x);
    out->ranks_known = seats.known;
    out->moved = seats.moved > 0;
    for (int i = 0; i < x->comms->n; i++)
        if (!nccl_compare_one (x, &x->comms->comm[i]))
            return err_nomem (err);
    order_by_ints (out->way, (size_t) out->n_ways, sizeof *out->way, 2); /* a, b */
    report_reading (out, r);
    report_ranks (x, seats, r);
    if (out->ranks_known > 0) {
        report_groups (x, r);
        if (!out->moved) {
            report_rings (x, r);
            report_cost (x, r);
            report_trees (x, r);
            report_channels (x, r);
        }
        report_ways (x, r);
    }
    return ST_OK;
}

/* Room, the plan's GPUs and the hosts' nodes, then the comparison. */
static enum status prepare (struct nccl_compare *x,
                            const struct costmodel_problem *problem,
                            struct check_report *r, struct error *err)
{
    size_t n = (size_t) x->p->n_ranks, nodes = (size_t) x->c->n_nodes,
           hosts = (size_t) x->log->n_hosts;
    int *room = malloc ((2 * n + nodes + hosts) * sizeof *room);
    enum status st;

    x->gpu_met = calloc ((size_t) x->c->n_gpus, sizeof *x->gpu_met);
    if (!room || !x->gpu_met) {
        FREE_ALL (room, x->gpu_met);
        return err_nomem (err);
    }
    for (size_t i = 0; i < 2 * n + nodes; i++)
        room[i] = -1;
    for (size_t i = 0; i < hosts; i++) {
        int node = topology_node_of_host (x->c, x->log->host[i]);

        room[2 * n + nodes + i] = node < 0 ? -1 : node;
    }
    x->planned = room;
    x->seat_of = room + n;
    x->node_first = room + 2 * n;
    x->node_of_host = room + 2 * n + nodes;
    st = costmodel_plan_gpus (x->p, x->c, room, err);
    THEN (st, costmodel_groups_create (problem, room, &x->groups, err));
    THEN (st, compare_all (x, r, err));
    costmodel_groups_destroy (x->groups);
    nccl_index_free (&x->ways);
    FREE_ALL (x->gpu_met, room);
    return st;
}

enum status check_nccl (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, const char *const *path,
                        int n, struct check_report *r, struct check_nccl *out,
                        struct error *err)
{
    struct costmodel_problem problem = costmodel_plan_problem (p, c, profile);
    struct nccl_log log;
    struct nccl_comms comms = {0};
    struct nccl_compare x = {.log = &log, .comms = &comms, .p = p, .c = c, .out = out};
    enum status st;

    *out = (struct check_nccl){0};
    st = nccl_log_read (path, n, &log, err);
    THEN (st, nccl_comms_find (&log, p, c, &comms, err));
    THEN (st, prepare (&x, &problem, r, err));
    if (st == ST_OK) { /* the names of files go with what was found */
        out->lines = log.lines;
        log.lines.name = NULL;
        log.lines.names = 0;
    } else {
        free (out->way);
        *out = (struct check_nccl){0};
    }
    nccl_comms_release (&comms);
    nccl_log_release (&log);
    return st;
}

void check_nccl_release (struct check_nccl *x)
{
    memory_free_texts (x->lines.name, x->lines.names);
    free (x->way);
    *x = (struct check_nccl){0};
}
