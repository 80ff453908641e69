/* Groups of GPUs: rings as NCCL lays them, and the collectives on them.
 *
 * Inside a node a ring goes from member to member in rank order and is as fast as its
 * slowest link.  Between nodes NCCL opens one lane per NIC: a group with several members
 * on a node has as many lanes to the next node, member to member (rails).  All groups
 * that leave a node at the same time share what the node reaches (node_gb_per_s), and what
 * it reaches to the next node (node_pair_gb_per_s). */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* Note one link; log may be NULL. */
static void use_log_add (struct use_log *log, int src, int dst, const char *use)
{
    if (!log || log->failed)
        return;
    if (array_grow (&log->list, log->n, sizeof *log->list))
        log->list[log->n++] = (struct costmodel_unmeasured){src, dst, use};
    else
        log->failed = true;
}

/* A link as one number: a pair of GPUs, or of nodes where those of all their GPUs are one. */
#define BETWEEN_NODES ((uint64_t) 1 << 63)

static void use_log_note (struct use_log *log, const struct topology_cluster *c, int src,
                          int dst)
{
    int a = c->node_of_gpu[src], b = c->node_of_gpu[dst];
    bool nodes = a != b && !c->has_gpu_links;

    if (!array_grow (&log->used, log->n_used, sizeof *log->used)) {
        log->failed = true;
        return;
    }
    log->used[log->n_used++] = nodes ? BETWEEN_NODES | (uint64_t) a << 32 | (unsigned) b
                                     : (uint64_t) src << 32 | (unsigned) dst;
}

static int by_key (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

void use_log_count (struct use_log *log, const struct topology_cluster *c,
                    struct costmodel_estimate *e)
{
    if (log->n_used > 0)
        qsort (log->used, log->n_used, sizeof *log->used, by_key);
    for (size_t k = 0; k < log->n_used; k++) {
        uint64_t key = log->used[k] & ~BETWEEN_NODES;
        int src = (int) (key >> 32), dst = (int) (key & 0xffffffffu);
        double error;

        if (k > 0 && log->used[k] == log->used[k - 1])
            continue;
        e->links_used++;
        if (log->used[k] & BETWEEN_NODES) {
            src = c->node[src].first_gpu;
            dst = c->node[dst].first_gpu;
        }
        error = topology_link_estimate_error (c, src, dst);
        if (isnan (error))
            continue;
        e->links_estimated++;
        e->estimate_error = larger (e->estimate_error, error);
    }
}

void use_log_release (struct use_log *log)
{
    FREE_ALL (log->list, log->used);
    *log = (struct use_log){0};
}

/* Are two directed GPU pairs one link of the cluster? */
static bool same_way (const struct topology_cluster *c, int a, int b, int x, int y)
{
    const int *node = c->node_of_gpu;

    if (c->has_gpu_links)
        return a == x && b == y;
    return node[a] != node[b] && node[a] == node[x] && node[b] == node[y];
}

/* The same, or each other's way back? */
static bool same_link (const struct topology_cluster *c, int a, int b, int x, int y)
{
    return same_way (c, a, b, x, y) || same_way (c, a, b, y, x);
}

/* Is it one of the sort that is noted?  Then its figure, and what is usual. */
static bool slow_figure (const struct topology_cluster *c, const struct slow_links *s,
                         struct costmodel_binding *b)
{
    int from = c->node_of_gpu[b->src_gpu], to = c->node_of_gpu[b->dst_gpu];

    if ((from == to) != (s->sort == COSTMODEL_INSIDE))
        return false;
    b->median_bytes_per_s = s->median_bytes_per_s;
    if (s->sort == COSTMODEL_INSIDE)
        b->median_bytes_per_s =
            topology_inside_typical (s->inside, b->src_gpu, b->dst_gpu);
    if (s->sort == COSTMODEL_TOTALS)
        b->bytes_per_s = topology_pair_total (c, from, to);
    return b->median_bytes_per_s > 0;
}

/* Are they one of the sort? */
static bool slow_same (const struct topology_cluster *c, const struct slow_links *s,
                       const struct costmodel_binding *x, int src, int dst)
{
    const int *node = c->node_of_gpu;

    if (s->sort == COSTMODEL_TOTALS)
        return node[x->src_gpu] == node[src] && node[x->dst_gpu] == node[dst];
    if (s->sort == COSTMODEL_INSIDE) /* all of a node are one where they are alike */
        return (x->src_gpu == src && x->dst_gpu == dst) ||
               (node[x->src_gpu] == node[src] && topology_inside_alike (c, node[src]));
    return (s->directed ? same_way : same_link) (c, x->src_gpu, x->dst_gpu, src, dst);
}

static void note_slow (const struct topology_cluster *c, struct slow_links *s, int src,
                       int dst, const char *use, double bytes_per_s)
{
    struct costmodel_binding b = {
        .src_gpu = src, .dst_gpu = dst, .use = use, .bytes_per_s = bytes_per_s};
    int at = s->n;

    if (!slow_figure (c, s, &b))
        return;
    for (int i = 0; i < s->n; i++)
        if (slow_same (c, s, &s->link[i], src, dst))
            return;
    while (at > 0 && s->link[at - 1].bytes_per_s / s->link[at - 1].median_bytes_per_s >
                         b.bytes_per_s / b.median_bytes_per_s)
        at--;
    if (at == COSTMODEL_SLOW_LINKS)
        return;
    if (s->n < COSTMODEL_SLOW_LINKS)
        s->n++;
    for (int i = s->n - 1; i > at; i--)
        s->link[i] = s->link[i - 1];
    s->link[at] = b;
}

struct topology_link link_between (const struct terms *t, int src, int dst,
                                   const char *use, int *unmeasured)
{
    const struct topology_cluster *c = t->problem.cluster;
    const struct costmodel_what_if *w = t->problem.what_if;
    int a = t->node_of[src], b = t->node_of[dst];

    if (t->problem.all_usual && a != b)
        return (struct topology_link){smaller (t->problem.usual[a], t->problem.usual[b]),
                                      c->inter.latency_s.number, true};

    struct topology_link l = a != b && !c->has_gpu_links ? topology_node_link (c, a, b)
                                                         : topology_link (c, src, dst);
    double bytes_per_s = l.bytes_per_s;

    if (!l.measured) {
        ++*unmeasured;
        use_log_add (t->log, src, dst, use);
    }
    if (t->log && t->log->all)
        use_log_note (t->log, c, src, dst);
    if (w && same_link (c, w->src_gpu, w->dst_gpu, src, dst))
        bytes_per_s = w->bytes_per_s;
    if (t->problem.usual && a != b)
        bytes_per_s = smaller (t->problem.usual[a], t->problem.usual[b]);
    if (t->slow)
        note_slow (c, t->slow, src, dst, use, bytes_per_s);
    /* Member by member: copied as a whole, it would wait for its parts to be stored. */
    return (struct topology_link){bytes_per_s, l.latency_s, l.measured};
}

/* What a ring has met so far. */
struct walk {
    const struct terms *t;
    struct costmodel_ring ring;
    const char *use;
};

static void meet_inside (struct walk *w, double bytes_per_s, double latency_s)
{
    if (bytes_per_s < w->ring.inside_bytes_per_s)
        w->ring.inside_bytes_per_s = bytes_per_s;
    w->ring.latency_s += latency_s;
}

static struct topology_link take_link (struct walk *w, int src, int dst)
{
    return link_between (w->t, src, dst, w->use, &w->ring.unmeasured);
}

/* The one link that there is from node a to node b; src and dst are on them. */
static inline struct topology_link node_link (struct walk *w, int a, int b, int src,
                                              int dst)
{
    const struct terms *t = w->t;

    if (t->problem.usual)
        return take_link (w, src, dst);

    struct topology_link l = topology_node_link (t->problem.cluster, a, b);

    return l.measured && !t->problem.what_if && !t->slow && !(t->log && t->log->all)
               ? l
               : take_link (w, src, dst);
}

/* Around k > 1 members on a node whose links are all alike. */
static void walk_alike (struct walk *w, const struct topology_links *intra, int k,
                        bool open)
{
    meet_inside (w, intra->bytes_per_s.number, (k - open) * intra->latency_s.number);
    if (intra->gpu_bytes_per_s > 0)
        meet_inside (w, intra->gpu_bytes_per_s, 0.0);
}

/* Around the members on one node; member [k], k > 1.  When the ring goes on to other
 * nodes (`open`), every lane starts at another member, so all links are used, but a lane
 * takes one hop less. */
static void walk_inside (struct walk *w, const int *member, int k, bool open)
{
    const struct topology_cluster *c = w->t->problem.cluster;
    const struct topology_links *intra = c->node[w->t->node_of[member[0]]].intra;

    for (int i = 0; i < k; i++) {
        struct topology_link l = take_link (w, member[i], member[(i + 1) % k]);

        meet_inside (w, l.bytes_per_s, open && i == k - 1 ? 0.0 : l.latency_s);
    }
    if (!c->has_gpu_links && intra->gpu_bytes_per_s > 0)
        meet_inside (w, intra->gpu_bytes_per_s, 0.0);
}

/* From one node's members to the next one's, lane by lane. */
static void walk_between (struct walk *w, const int *from, int n_from, const int *to,
                          int n_to, const int *share)
{
    const struct topology_cluster *c = w->t->problem.cluster;
    int a = w->t->node_of[from[0]], b = w->t->node_of[to[0]];
    int lanes = n_from < n_to ? n_from : n_to;
    double sum = 0.0, latency_s = 0.0;

    if (!c->has_gpu_links) {
        struct topology_link l = node_link (w, a, b, from[0], to[0]);

        sum = lanes * l.bytes_per_s;
        latency_s = l.latency_s;
    } else {
        for (int i = 0; i < lanes; i++) {
            struct topology_link l = take_link (w, from[i], to[i]);

            sum += l.bytes_per_s;
            latency_s = larger (latency_s, l.latency_s);
        }
    }
    if (w->t->limited)
        sum = smaller (sum, topology_share (c, a, b, share[a], share[b]));
    w->ring.between_bytes_per_s =
        smaller (w->ring.between_bytes_per_s, sum * w->t->problem.profile->time.link_out);
    w->ring.latency_s += latency_s;
}

int bucket (const struct terms *t, const struct members *m)
{
    struct scratch *s = t->scratch;
    int nodes = 0;

    for (int i = 0; i < m->n; i++) {
        int a = member_node (t, m, i);

        if (s->first[a] < 0) {
            s->first[a] = nodes;
            s->order[nodes] = a;
            s->lead[nodes] = *member_at (m, i);
            s->count[nodes++] = 0;
        }
        s->count[s->first[a]]++;
    }
    return nodes;
}

void bucketed (const struct terms *t, int nodes)
{
    for (int k = 0; k < nodes; k++)
        t->scratch->first[t->scratch->order[k]] = -1;
}

void list_members (const struct terms *t, const struct members *m, int nodes)
{
    struct scratch *s = t->scratch;

    for (int k = 0, at = 0; k < nodes; at += s->count[k++])
        s->next[k] = at;
    for (int i = 0; i < m->n; i++) {
        int g = *member_at (m, i);

        s->member[s->next[s->first[t->node_of[g]]]++] = g;
    }
}

/* Around a group whose links differ inside nodes, or from GPU to GPU. */
static void walk_members (struct walk *w, int nodes, const int *share)
{
    const struct scratch *s = w->t->scratch;

    for (int k = 0, at = 0; k < nodes; at += s->count[k++]) {
        int to = k + 1 < nodes ? at + s->count[k] : 0;

        if (s->count[k] > 1)
            walk_inside (w, s->member + at, s->count[k], nodes > 1);
        if (nodes > 1)
            walk_between (w, s->member + at, s->count[k], s->member + to,
                          s->count[(k + 1) % nodes], share);
    }
}

/* Around one where each node and each pair of nodes has one kind of link. */
static void walk_nodes (struct walk *w, int nodes, const int *share)
{
    const struct topology_node *node = w->t->problem.cluster->node;
    const struct scratch *s = w->t->scratch;

    for (int k = 0; k < nodes; k++) {
        int to = k + 1 < nodes ? k + 1 : 0;

        if (s->count[k] > 1)
            walk_alike (w, node[s->order[k]].intra, s->count[k], nodes > 1);
        if (nodes > 1)
            walk_between (w, s->lead + k, s->count[k], s->lead + to, s->count[to], share);
    }
}

struct costmodel_ring ring_of (const struct terms *t, const struct members *m,
                               const int *share, const char *use)
{
    struct walk w = {.t = t,
                     .ring = {.inside_bytes_per_s = INFINITY,
                              .between_bytes_per_s = INFINITY,
                              .nvls = INFINITY},
                     .use = use};
    const struct scratch *s = t->scratch;

    if (m->n == 1)
        return w.ring;
    w.ring.nodes = bucket (t, m);
    if (!t->plain)
        list_members (t, m, w.ring.nodes);
    for (int k = 0; k < w.ring.nodes; k++)
        w.ring.nvls =
            smaller (w.ring.nvls, t->type[t->type_of_node[s->order[k]]]->nvls_efficiency);
    bucketed (t, w.ring.nodes);
    (t->plain ? walk_nodes : walk_members) (&w, w.ring.nodes, share);
    w.ring.latency_s *= (m->n - 1.0) / m->n; /* n hops in all */
    return w.ring;
}

struct scratch *scratch_create (int nodes, int world)
{
    size_t n = (size_t) nodes, members = (size_t) world;
    struct scratch *s = malloc (sizeof *s);
    int *room = calloc (8 * n + 3 * members, sizeof *room);

    if (!s || !room) {
        FREE_ALL (s, room);
        return NULL;
    }
    *s = (struct scratch){.share = room,
                          .share_in = room + n,
                          .first = room + 2 * n,
                          .order = room + 3 * n,
                          .count = room + 4 * n,
                          .lead = room + 5 * n,
                          .next = room + 6 * n,
                          .shared = room + 7 * n,
                          .member = room + 8 * n,
                          .group = room + 8 * n + members,
                          .times = room + 8 * n + 2 * members};
    for (size_t i = 0; i < n; i++)
        s->first[i] = -1;
    return s;
}

void scratch_destroy (struct scratch *s)
{
    if (s)
        free (s->share);
    free (s);
}

/* ---- groups beside each other ---- */

bool inside_node (const struct terms *t, const int *gpu, int n)
{
    for (int i = 1; i < n; i++)
        if (t->node_of[gpu[i]] != t->node_of[gpu[0]])
            return false;
    return true;
}

/* Do two groups, at all places whose GPUs are on several nodes? */
static bool same_nodes (const struct terms *t, const struct members *m, const int *loose,
                        int n_loose, int j, int k)
{
    for (int i = 0; i < n_loose; i++) {
        const int *place = member_at (m, loose[i]);

        if (t->node_of[place[j]] != t->node_of[place[k]])
            return false;
    }
    return true;
}

struct kinds kinds_of (const struct terms *t, const struct members *m)
{
    struct kinds k = {0, t->scratch->group, t->scratch->times};
    int *loose = t->scratch->member, n_loose = 0;

    for (int i = 0; i < m->n; i++)
        if (!inside_node (t, member_at (m, i), m->stride))
            loose[n_loose++] = i;
    if (n_loose == 0) {
        k.n = 1;
        k.group[0] = 0;
        k.times[0] = m->stride;
    }
    for (int j = 0; j < m->stride && n_loose > 0; j++) {
        int like = k.n;

        if (k.n > 0 && same_nodes (t, m, loose, n_loose, k.group[0], j))
            like = 0;
        else if (k.n > 1 && same_nodes (t, m, loose, n_loose, k.group[k.n - 1], j))
            like = k.n - 1;
        if (like == k.n) {
            k.group[k.n] = j;
            k.times[k.n++] = 0;
        }
        k.times[like]++;
    }
    return k;
}

void add_shares (const struct terms *t, const struct members *m,
                 const struct kinds *kinds)
{
    struct scratch *s = t->scratch;

    for (int q = 0; q < kinds->n && t->limited; q++) {
        struct members one = members_beside (m, kinds->group[q]);
        int nodes = bucket (t, &one);

        for (int k = 0; k < nodes && nodes > 1; k++) {
            int a = s->order[k];

            if (s->share[a] == 0)
                s->shared[s->n_shared++] = a;
            s->share[a] += kinds->times[q];
        }
        bucketed (t, nodes);
    }
}

void clear_shares (struct scratch *s)
{
    while (s->n_shared > 0)
        s->share[s->shared[--s->n_shared]] = 0;
}

void add_row_shares (const struct terms *t, struct members row, int count)
{
    for (int k = 0; k < count; k++, row = next_row (row)) {
        struct kinds kinds = kinds_of (t, &row);

        add_shares (t, &row, &kinds);
    }
}
