/* The links at their best, for the lower bound. */
#include "mapper/bound/bound_private.h"

#include <math.h>

struct link_rates link_rates_of (const struct pool *pool, int from)
{
    struct link_rates r = {.inside = pool->touching[0][from],
                           .between = pool->touching[1][from],
                           .node_bytes_per_s = pool->node_bytes_per_s,
                           .nvls = from == 0 ? pool->nvls : 0.0};

    /* Lanes from GPU to GPU: not all of them touch the slow one. */
    if (pool->problem->cluster->has_gpu_links)
        r.between = pool->touching[1][0];
    for (int q = from; q < pool->n_classes && from > 0; q++)
        r.nvls = fmax (r.nvls, pool->class[q].type->nvls_efficiency);
    return r;
}

struct link_rates link_rates_of_class (const struct pool *pool, int class)
{
    return (struct link_rates){.inside = pool->own[0][class],
                               .between = pool->problem->cluster->has_gpu_links
                                              ? pool->touching[1][0]
                                              : pool->own[1][class],
                               .node_bytes_per_s = pool->node_bytes_per_s,
                               .nvls = pool->class[class].type->nvls_efficiency};
}

/* Rate between nodes with `lanes` lanes, `share` groups or flows at a time. */
static double cross_rate (const struct link_rates *r, double lanes, double share)
{
    return fmin (fmax (1.0, lanes) * r->between.bytes_per_s, r->node_bytes_per_s / share);
}

/* The part of it that a ring reaches. */
static double ring_rate (const struct pool *pool, const struct link_rates *r,
                         double lanes, double share)
{
    return cross_rate (r, lanes, share) * pool->problem->profile->time.link_out;
}

/* The lower latency of those links that there are. */
static double least_latency (const struct link_rates *r)
{
    if (!(r->inside.bytes_per_s > 0))
        return r->between.latency_s;
    return r->between.bytes_per_s > 0 ? fmin (r->inside.latency_s, r->between.latency_s)
                                      : r->inside.latency_s;
}

/* Of n-1 hops of a ring, of which one at least is over the links of x. */
static double ring_latency (const struct pool *pool, const struct link_rates *x, int n,
                            bool inside)
{
    struct link_rates any = link_rates_of (pool, 0);
    double one = inside ? x->inside.latency_s : least_latency (x);
    double others = inside ? any.inside.latency_s : least_latency (&any);

    return (one + (n - 1) * others) * (n - 1) / n;
}

struct bounded bounded_of (const struct pool *pool, const struct workload_config *c)
{
    const struct mapper_problem *p = pool->problem;
    struct bounded b = {.pool = pool, .c = c};

    costmodel_volume (p->model, p->job, c, p->profile, &b.volume);
    return b;
}

/* One TP all-reduce on `nodes` nodes. */
static double tp_operation (const struct bounded *b, const struct link_rates *x,
                            int nodes)
{
    const struct pool *pool = b->pool;
    const struct workload_profile *p = pool->problem->profile;
    int n = b->c->deg.tp;
    struct costmodel_ring r = {.inside_bytes_per_s = nodes == 1  ? x->inside.bytes_per_s
                                                     : n > nodes ? pool->intra_bytes_per_s
                                                                 : INFINITY,
                               .between_bytes_per_s =
                                   nodes > 1 ? ring_rate (pool, x, n / nodes, 1)
                                             : INFINITY, /* its fewest lanes */
                               .latency_s = ring_latency (pool, x, n, nodes == 1),
                               .nodes = nodes,
                               .nvls = x->nvls};
    double least = costmodel_tp_operation_s (p, b->c, &r, b->volume.tp_bytes);

    r.nvls = 0.0;
    if (pool->nvls_or_ring)
        least = fmin (least, costmodel_tp_operation_s (p, b->c, &r, b->volume.tp_bytes));
    return costmodel_tp_exposed_s (p, pool->problem->job, b->c, least, INFINITY);
}

struct tp_times bound_tp (const struct bounded *b, const struct link_rates *r)
{
    int tp = b->c->deg.tp, most = tp < b->pool->n_nodes ? tp : b->pool->n_nodes;
    struct tp_times t = {INFINITY, INFINITY, INFINITY};

    if (tp == 1)
        return (struct tp_times){0.0, 0.0, 0.0};
    if (tp <= b->pool->max_node_gpus)
        t.inside = tp_operation (b, r, 1);
    for (int nodes = 2; nodes <= most; nodes++)
        t.across = fmin (t.across, tp_operation (b, r, nodes));
    t.least = fmin (t.inside, t.across);
    return t;
}

double bound_tp_s (const struct pool *pool, const struct workload_config *c, int class)
{
    struct bounded b = bounded_of (pool, c);
    struct link_rates rates = link_rates_of (pool, class);
    double least = bound_tp (&b, &rates).least;

    return isfinite (least) ? least : 0.0;
}

static double flow (const struct pool *pool, double bytes, double rate, double latency_s)
{
    return costmodel_send_s (pool->problem->profile, bytes, rate, latency_s);
}

/* Forward all-reduces of the kind of layer that has fewest; backward has no fewer. */
static double least_operations (const struct workload_model *m,
                                const struct workload_config *c)
{
    double least = INFINITY, fwd, back;

    for (int kind = 0; kind < 2; kind++) {
        struct workload_stage one = {.dense = kind == 0, .expert = kind == 1};

        costmodel_tp_operations (m, c, &one, &fwd, &back);
        if (kind == 0 || m->experts > 0)
            least = fmin (least, fwd);
    }
    return least;
}

/* With TP groups inside nodes a node holds at most per_node stages of a pipeline, so at
 * least ceil(stages / per_node) - 1 boundaries cross nodes.  A group that spans nodes
 * lets its two boundaries share what one crossing takes, so that it saves at most a whole
 * one; it costs all-reduces across nodes in its one layer or more.  Where that could pay,
 * crossings are left out. */
struct boundary_sends bound_sends (const struct bounded *b, double inside, double across)
{
    const struct pool *pool = b->pool;
    struct link_rates r = link_rates_of (pool, 0);
    int tp = b->c->deg.tp, per_node = pool->max_node_gpus / tp;
    double bytes = b->volume.p2p_bytes, between_s = r.between.latency_s;
    double within = flow (pool, bytes, r.inside.bytes_per_s, r.inside.latency_s);
    double cross = flow (pool, bytes, cross_rate (&r, 1, tp), between_s);
    double any = fmin (within, flow (pool, bytes, cross_rate (&r, 1, 1), between_s));
    struct boundary_sends send = {0.0, 0.0, 0.0};

    if (b->c->deg.pp == 1)
        return send;
    send.any_s = 2.0 * any;
    if (per_node >= 1 && cross > any && isfinite (cross) &&
        (tp == 1 ||
         least_operations (pool->problem->model, b->c) * (across - inside) >= cross)) {
        send.crossing_s = 2.0 * (cross - any);
        send.per_node = per_node;
    }
    return send;
}

/* There and back on the better of the two kinds of links; at least `least` where there is
 * none. */
static double pair_s (const struct bounded *b,
                      const struct best_link links[2][CLASSES_MAX], int class,
                      double least)
{
    const struct best_link *inside = &links[0][class], *between = &links[1][class];
    double bytes = b->volume.p2p_bytes;
    double s = 2.0 * fmin (flow (b->pool, bytes, inside->bytes_per_s, inside->latency_s),
                           flow (b->pool, bytes,
                                 fmin (between->bytes_per_s, b->pool->node_bytes_per_s),
                                 between->latency_s));

    return isfinite (s) ? fmax (s, least) : least;
}

void bound_pairs (const struct bounded *b, int from, double pair[2][2])
{
    double any = b->c->deg.pp > 1 ? pair_s (b, b->pool->touching, 0, 0.0) : 0.0;

    pair[0][0] = pair[0][1] = pair[1][0] = pair[1][1] = any;
    if (from == 0 || b->c->deg.pp == 1)
        return;
    pair[0][1] = pair[1][0] = pair_s (b, b->pool->mixing, from, any);
    pair[1][1] = pair_s (b, b->pool->touching, from, any);
}

double bound_run_sends_s (const struct config_times *times, int stages)
{
    double crossings =
        times->send.per_node > 0 ? ceil (stages / times->send.per_node) - 1.0 : 0.0;

    return stages < 2 ? 0.0
                      : (stages - 1) * times->send.any_s +
                            (crossings > 0 ? crossings * times->send.crossing_s : 0.0);
}

double bound_slow_run_sends_s (const struct config_times *times, int stages, int slow)
{
    double any = times->pair_s[0][0], mixed = times->pair_s[0][1];
    double all_slow = (stages - 1) * times->pair_s[1][1], some = INFINITY;

    if (stages < 2 || slow < 1)
        return bound_run_sends_s (times, stages);
    /* Slow slots touch as many boundaries as they are, one of them with a fast one. */
    if (slow < stages)
        some = (stages - 1 - slow) * any +
               (slow - 1) * fmin (mixed, times->pair_s[1][1]) + mixed;
    return fmax (bound_run_sends_s (times, stages), fmin (some, all_slow));
}

/* A line under what a group of n on these links takes; the least of both so far. */
static void take_least (const struct bounded *b, const struct costmodel_ring *r, int n,
                        struct line *sync)
{
    struct costmodel_ring one = *r;

    if (!(costmodel_ring_rate (r) > 0))
        return;
    for (int without = 0; without <= b->pool->nvls_or_ring; without++) {
        double start, each;

        if (without)
            one.nvls = 0.0;
        costmodel_sync_least (b->pool->problem->profile, &one, n, &b->volume, &start,
                              &each);
        sync->fixed = fmin (sync->fixed, start);
        sync->each = fmin (sync->each, each);
    }
}

/* The same on more than the `least` nodes that the group needs, at most on `most`. */
static void take_across (const struct bounded *b, struct costmodel_ring r, int least,
                         int most, int n, double inside, struct line *sync)
{
    if (r.nodes <= least || r.nodes > most)
        return;
    if (n > most)
        r.inside_bytes_per_s = inside * (n - r.nodes) / (double) (n - most);
    /* Every bucket starts anew, so that hops count in what a parameter takes too. */
    take_least (b, &r, n, sync);
}

/* The same across nodes, of which the group needs `least`.
 *
 * On more nodes there are fewer lanes, and trees between two have the least to pass on, so
 * that all but a tree's chains inside nodes and its hops are best on the fewest: chains are
 * taken as on the most nodes, hops as on the best number, which is the most or a power of
 * two; a hierarchical all-reduce has the fewest on about the root of n. */
static void least_across (const struct bounded *b, const struct link_rates *x, int n,
                          int each, int per_node, int lanes, double share,
                          struct line *sync)
{
    const struct pool *pool = b->pool;
    /* Some node has two members. */
    double inside =
        fmin (pool_ring_inside (pool, n, each), pool_ring_on_one (pool, 2, each));
    double between =
        pool_ring_between (pool, n, each) * pool->problem->profile->time.link_out;
    int least = (n + per_node - 1) / per_node > 2 ? (n + per_node - 1) / per_node : 2;
    int most = n < pool->n_nodes ? n : pool->n_nodes, root = (int) sqrt (n);
    bool levels = pool->problem->profile->time.all_reduce == ALL_REDUCE_HIERARCHICAL;
    double within = pool->intra_latency_s, cross = pool->inter_latency_s;
    struct costmodel_ring r = {
        .inside_bytes_per_s = inside,
        .between_bytes_per_s =
            fmin (ring_rate (pool, x, fmin (lanes, n / 2), share), between),
        .latency_s = (least * cross + (n - least) * fmin (within, cross)) * (n - 1.0) / n,
        .nodes = least,
        .nvls = pool->nvls};

    if (least > most)
        return;
    if (n <= pool->n_nodes)
        take_least (b,
                    &(struct costmodel_ring){.inside_bytes_per_s = INFINITY,
                                             .between_bytes_per_s = fmin (
                                                 ring_rate (pool, x, 1, share), between),
                                             .latency_s = (n - 1) * cross,
                                             .nodes = n},
                    n, sync);
    if (n > most && b->volume.dp_all_reduce)
        r.inside_bytes_per_s *= (n - least) / (double) (n - most);
    take_least (b, &r, n, sync);
    if (!b->volume.dp_all_reduce)
        return;
    for (int power = 2; power < 2 * most; power *= 2) {
        r.nodes = power < most ? power : most;
        take_across (b, r, least, most, n, inside, sync);
    }
    for (r.nodes = root; levels && r.nodes <= root + 1; r.nodes++)
        take_across (b, r, least, most, n, inside, sync);
}

struct line bound_sync (const struct bounded *b, const struct link_rates *x, int n,
                        int each, int per_node, int lanes, double share)
{
    struct costmodel_ring one = {
        .inside_bytes_per_s =
            fmin (x->inside.bytes_per_s, pool_ring_on_one (b->pool, n, each)),
        .between_bytes_per_s = INFINITY,
        .latency_s = (n - 1) * b->pool->intra_latency_s,
        .nodes = 1,
        .nvls = b->pool->nvls};
    struct line sync = {INFINITY, INFINITY};

    if (n == 1)
        return (struct line){0.0, 0.0};
    per_node = per_node > 1 ? per_node : 1;
    if (n <= per_node && n <= lanes)
        take_least (b, &one, n, &sync);
    if (x->between.bytes_per_s > 0)
        least_across (b, x, n, each, per_node, lanes, share, &sync);
    if (!isfinite (sync.fixed))
        sync.each = 0.0;
    return sync;
}

static struct line less_line (struct line a, struct line b)
{
    if (!isfinite (a.fixed) || !isfinite (b.fixed))
        return isfinite (a.fixed) ? a : b;
    return (struct line){fmin (a.each, b.each), fmin (a.fixed, b.fixed)};
}

/* All-reduces between groups of n ranks that hold the same shards, for each parameter before it is
 * sharded; a node has so many of such ranks. */
static struct line copies_sync (const struct bounded *b, const struct link_rates *r,
                                int n, int each, int per_node, int share)
{
    struct bounded between = *b;
    int copies = workload_shard_copies (b->c);
    struct line sync;

    between.volume = costmodel_copy_volume (&b->volume);
    sync = bound_sync (&between, r, copies, each, per_node, per_node,
                       copies > per_node ? share : 1);
    sync.each /= n;
    return sync;
}

/* Let some group be on several nodes, where one has `few` to `many` of its members on a node, the
 * fewest that any group has: its ring has no more lanes, and a node has members of no more groups
 * than it holds so many of. */
static struct line groups_across (const struct bounded *b, const struct link_rates *r,
                                  int n, int each, int per_node, int few, int many,
                                  int share)
{
    int most = per_node < n ? per_node : n - 1;

    return add_lines (bound_sync (b, r, n, each, most, many, share),
                      copies_sync (b, r, n, 1, per_node / few, 1));
}

struct line bound_hybrid_sync (const struct bounded *b, const struct link_rates *r, int n,
                               int each, int per_node, int lanes, int share)
{
    struct line least = {0.0, INFINITY};
    int across = n > per_node ? share : each; /* else one group alone may leave */

    for (int few = 1; few <= n / 2 && few <= per_node; few *= 2) {
        int many = 2 * few - 1 < lanes ? 2 * few - 1 : lanes;

        least =
            less_line (least, groups_across (b, r, n, each, per_node, few, many, across));
    }
    if (n > per_node || n > lanes)
        return least;
    return less_line (
        least, add_lines (bound_sync (b, r, n, each, per_node, lanes, share),
                          copies_sync (b, r, n, each * n, per_node / n, share * n)));
}

int bound_rings_through (int gpus, int tp, int rings, int n)
{
    int members = (tp + rings - 1) / rings; /* of it, in one of them at most */
    int inside = n > members ? (gpus - tp) / (n - members) : rings;

    return rings > inside ? rings - inside : 1;
}

struct line bound_sync_through (const struct bounded *b, const struct link_rates *x,
                                int n, int per_node, double bytes_per_s)
{
    struct link_rates r = *x;

    r.between.bytes_per_s = bytes_per_s;
    r.node_bytes_per_s = INFINITY;
    /* It cannot be on one node. */
    return bound_sync (b, &r, n, 1, per_node < n ? per_node : n - 1, 1, 1);
}

double bound_flow_s (const struct bounded *b, double bytes_per_s, double latency_s)
{
    return flow (b->pool, b->volume.p2p_bytes, bytes_per_s, latency_s);
}

double bound_send_s (const struct pool *pool, const struct workload_config *c)
{
    struct bounded b = bounded_of (pool, c);
    struct link_rates r = link_rates_of (pool, 0);
    double s = flow (pool, b.volume.p2p_bytes, cross_rate (&r, 1, c->deg.tp),
                     r.between.latency_s);

    return isfinite (s) ? 2.0 * s : 0.0;
}

/* All-to-alls at the best links, on as many nodes as take least.  No stage has a smaller part of
 * its layers recomputed than one that has all of them. */
static struct both_ways exchanges (const struct bounded *b, const struct link_rates *r)
{
    const struct workload_profile *p = b->pool->problem->profile;
    int cp = b->c->deg.cp;
    double times = 1.0 + costmodel_repeated_part (b->c, b->pool->problem->model->layers);
    struct costmodel_ring best = {.inside_bytes_per_s = r->inside.bytes_per_s,
                                  .between_bytes_per_s =
                                      ring_rate (b->pool, r, b->pool->max_node_gpus, 1),
                                  .latency_s = least_latency (r) * (cp - 1)};
    struct both_ways least = {INFINITY, INFINITY};

    for (best.nodes = 1; best.nodes <= cp; best.nodes++) {
        least.fwd_s = fmin (
            least.fwd_s, costmodel_cp_exchange_s (p, &best, cp, 1, b->volume.cp_bytes));
        least.back_s =
            fmin (least.back_s,
                  costmodel_cp_exchange_s (p, &best, cp, times, b->volume.cp_back_bytes));
    }
    return least;
}

struct both_ways bound_cp (const struct bounded *b, struct both_ways attention)
{
    struct link_rates r = link_rates_of (b->pool, 0);
    const struct workload_profile *p = b->pool->problem->profile;
    double latency_s = least_latency (&r);
    double rate =
        fmax (r.inside.bytes_per_s, ring_rate (b->pool, &r, b->pool->max_node_gpus, 1));
    double again = costmodel_repeated_part (b->c, b->pool->problem->model->layers), fwd_s;
    int cp = b->c->deg.cp;

    if (cp == 1 || rate <= 0)
        return (struct both_ways){0.0, 0.0};
    if (p->cp_all_to_all)
        return exchanges (b, &r);
    fwd_s = costmodel_cp_exposed_s (
        cp, p->cp_by_pieces, costmodel_cp_hop_s (p, b->volume.cp_bytes, rate, latency_s),
        attention.fwd_s);
    return (struct both_ways){
        fwd_s, again * fwd_s + costmodel_cp_back_s (p, &b->volume, cp, rate, latency_s,
                                                    attention.back_s)};
}

double bound_tied_s (const struct pool *pool, double bytes, enum twins twins)
{
    struct link_rates r = link_rates_of (pool, 0);
    double inside = flow (pool, bytes, r.inside.bytes_per_s, r.inside.latency_s);
    double across = flow (pool, bytes, cross_rate (&r, 1, 1), r.between.latency_s);

    return twins == TWINS_APART      ? across
           : twins == TWINS_TOGETHER ? inside
                                     : fmin (inside, across);
}
