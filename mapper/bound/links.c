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

/* One TP all-reduce on `nodes` nodes. */
static double tp_operation (const struct pool *pool, const struct link_rates *x,
                            const struct workload_config *c,
                            const struct costmodel_volume *v, int nodes)
{
    const struct workload_profile *p = pool->problem->profile;
    int n = c->deg.tp;
    struct costmodel_ring r = {.inside_bytes_per_s = nodes == 1  ? x->inside.bytes_per_s
                                                     : n > nodes ? pool->intra_bytes_per_s
                                                                 : INFINITY,
                               .between_bytes_per_s =
                                   nodes > 1 ? ring_rate (pool, x, n / nodes, 1)
                                             : INFINITY, /* its fewest lanes */
                               .latency_s = ring_latency (pool, x, n, nodes == 1),
                               .nodes = nodes,
                               .nvls = x->nvls};
    double least = costmodel_tp_operation_s (p, c, &r, v->tp_bytes);

    r.nvls = 0.0;
    if (pool->nvls_or_ring)
        least = fmin (least, costmodel_tp_operation_s (p, c, &r, v->tp_bytes));
    return costmodel_tp_exposed_s (p, c, least, INFINITY);
}

double bound_tp_across (const struct pool *pool, const struct link_rates *r,
                        const struct workload_config *c, const struct costmodel_volume *v,
                        int least_nodes)
{
    double least = INFINITY;

    for (int nodes = least_nodes; nodes <= c->deg.tp && nodes <= pool->n_nodes; nodes++)
        least = fmin (least, tp_operation (pool, r, c, v, nodes));
    return least;
}

void bound_tp (const struct pool *pool, const struct link_rates *r,
               const struct workload_config *c, const struct costmodel_volume *v,
               double *inside, double *across)
{
    *inside = *across = c->deg.tp == 1 ? 0.0 : INFINITY;
    if (c->deg.tp == 1)
        return;
    if (c->deg.tp <= pool->max_node_gpus)
        *inside = tp_operation (pool, r, c, v, 1);
    *across = bound_tp_across (pool, r, c, v, 2);
}

double bound_tp_s (const struct pool *pool, const struct workload_config *c, int class)
{
    const struct mapper_problem *p = pool->problem;
    struct link_rates rates = link_rates_of (pool, class);
    struct costmodel_volume v;
    double inside, across;

    costmodel_volume (p->model, p->job, c, p->profile, &v);
    bound_tp (pool, &rates, c, &v, &inside, &across);
    return isfinite (fmin (inside, across)) ? fmin (inside, across) : 0.0;
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
void bound_sends (const struct pool *pool, const struct workload_config *c,
                  const struct costmodel_volume *v, double inside, double across,
                  struct boundary_sends *send)
{
    struct link_rates r = link_rates_of (pool, 0);
    double within = flow (pool, v->p2p_bytes, r.inside.bytes_per_s, r.inside.latency_s);
    double cross =
        flow (pool, v->p2p_bytes, cross_rate (&r, 1, c->deg.tp), r.between.latency_s);
    double alone = flow (pool, v->p2p_bytes, cross_rate (&r, 1, 1), r.between.latency_s);
    double any = fmin (within, alone);
    int per_node = pool->max_node_gpus / c->deg.tp;

    *send = (struct boundary_sends){0.0, 0.0, 0.0};
    if (c->deg.pp == 1)
        return;
    send->any_s = 2.0 * any;
    if (per_node >= 1 && cross > any && isfinite (cross) &&
        (c->deg.tp == 1 ||
         least_operations (pool->problem->model, c) * (across - inside) >= cross)) {
        send->crossing_s = 2.0 * (cross - any);
        send->per_node = per_node;
    }
}

/* There and back on the better of two links; at least `least` where there is none. */
static double pair_s (const struct pool *pool, double bytes,
                      const struct best_link *inside, const struct best_link *between,
                      double least)
{
    double s = 2.0 * fmin (flow (pool, bytes, inside->bytes_per_s, inside->latency_s),
                           flow (pool, bytes,
                                 fmin (between->bytes_per_s, pool->node_bytes_per_s),
                                 between->latency_s));

    return isfinite (s) ? fmax (s, least) : least;
}

void bound_pairs (const struct pool *pool, const struct workload_config *c,
                  const struct costmodel_volume *v, int from, double pair[2][2])
{
    double any =
        pair_s (pool, v->p2p_bytes, &pool->touching[0][0], &pool->touching[1][0], 0.0);

    pair[0][0] = pair[0][1] = pair[1][0] = pair[1][1] = c->deg.pp > 1 ? any : 0.0;
    if (from == 0 || c->deg.pp == 1)
        return;
    pair[0][1] = pair[1][0] =
        pair_s (pool, v->p2p_bytes, &pool->mixing[0][from], &pool->mixing[1][from], any);
    pair[1][1] = pair_s (pool, v->p2p_bytes, &pool->touching[0][from],
                         &pool->touching[1][from], any);
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
static void take_least (const struct pool *pool, const struct costmodel_ring *r, int n,
                        const struct costmodel_volume *v, double *per_param,
                        double *fixed)
{
    struct costmodel_ring one = *r;

    if (!(costmodel_ring_rate (r) > 0))
        return;
    for (int without = 0; without <= pool->nvls_or_ring; without++) {
        double start, each;

        if (without)
            one.nvls = 0.0;
        costmodel_sync_least (pool->problem->profile, &one, n, v, &start, &each);
        *fixed = fmin (*fixed, start);
        *per_param = fmin (*per_param, each);
    }
}

/* The same on more than the `least` nodes that the group needs, at most on `most`. */
static void take_across (const struct pool *pool, struct costmodel_ring r, int least,
                         int most, int n, const struct costmodel_volume *v,
                         double *per_param, double *fixed)
{
    if (r.nodes <= least || r.nodes > most)
        return;
    if (n > most)
        r.inside_bytes_per_s =
            pool->intra_bytes_per_s * (n - r.nodes) / (double) (n - most);
    /* Every bucket starts anew, so that hops count in what a parameter takes too. */
    take_least (pool, &r, n, v, per_param, fixed);
}

/* The same across nodes, of which the group needs `least`.
 *
 * On more nodes there are fewer lanes, and trees between two have the least to pass on, so
 * that all but a tree's chains inside nodes and its hops are best on the fewest: chains are
 * taken as on the most nodes, hops as on the best number, which is the most or a power of
 * two; a hierarchical all-reduce has the fewest on about the root of n. */
static void least_across (const struct pool *pool, const struct link_rates *x, int n,
                          int per_node, int lanes, double share,
                          const struct costmodel_volume *v, double *per_param,
                          double *fixed)
{
    int least = (n + per_node - 1) / per_node > 2 ? (n + per_node - 1) / per_node : 2;
    int most = n < pool->n_nodes ? n : pool->n_nodes, root = (int) sqrt (n);
    bool levels = pool->problem->profile->time.all_reduce == ALL_REDUCE_HIERARCHICAL;
    double within = pool->intra_latency_s, cross = pool->inter_latency_s;
    struct costmodel_ring r = {
        .inside_bytes_per_s = n > most ? pool->intra_bytes_per_s : INFINITY,
        .between_bytes_per_s = ring_rate (pool, x, fmin (lanes, n / 2), share),
        .latency_s = (least * cross + (n - least) * fmin (within, cross)) * (n - 1.0) / n,
        .nodes = least,
        .nvls = pool->nvls};

    if (least > most)
        return;
    if (n > most && v->dp_all_reduce)
        r.inside_bytes_per_s *= (n - least) / (double) (n - most);
    take_least (pool, &r, n, v, per_param, fixed);
    for (int power = 2; v->dp_all_reduce && power < 2 * most; power *= 2) {
        r.nodes = power < most ? power : most;
        take_across (pool, r, least, most, n, v, per_param, fixed);
    }
    for (r.nodes = root; v->dp_all_reduce && levels && r.nodes <= root + 1; r.nodes++)
        take_across (pool, r, least, most, n, v, per_param, fixed);
}

void bound_sync (const struct pool *pool, const struct link_rates *x, int n,
                 const struct costmodel_volume *v, int per_node, double share,
                 double *per_param, double *fixed)
{
    bound_sync_lanes (pool, x, n, v, per_node, per_node, share, per_param, fixed);
}

void bound_sync_lanes (const struct pool *pool, const struct link_rates *x, int n,
                       const struct costmodel_volume *v, int per_node, int lanes,
                       double share, double *per_param, double *fixed)
{
    struct costmodel_ring one = {.inside_bytes_per_s = x->inside.bytes_per_s,
                                 .between_bytes_per_s = INFINITY,
                                 .latency_s = (n - 1) * pool->intra_latency_s,
                                 .nodes = 1,
                                 .nvls = pool->nvls};

    *per_param = *fixed = 0.0;
    if (n == 1)
        return;
    *per_param = *fixed = INFINITY;
    per_node = per_node > 1 ? per_node : 1;
    if (n <= per_node && n <= lanes)
        take_least (pool, &one, n, v, per_param, fixed);
    if (x->between.bytes_per_s > 0)
        least_across (pool, x, n, per_node, lanes, share, v, per_param, fixed);
    if (!isfinite (*fixed))
        *per_param = 0.0;
}

double bound_send_s (const struct pool *pool, const struct workload_config *c)
{
    const struct mapper_problem *p = pool->problem;
    struct link_rates r = link_rates_of (pool, 0);
    struct costmodel_volume v;
    double s;

    costmodel_volume (p->model, p->job, c, p->profile, &v);
    s = flow (pool, v.p2p_bytes, cross_rate (&r, 1, c->deg.tp), r.between.latency_s);
    return isfinite (s) ? 2.0 * s : 0.0;
}

void bound_cp (const struct pool *pool, const struct workload_config *c,
               const struct costmodel_volume *v, double attention_fwd_s,
               double attention_back_s, double *fwd_s, double *back_s)
{
    struct link_rates r = link_rates_of (pool, 0);
    const struct workload_profile *p = pool->problem->profile;
    double latency_s = least_latency (&r);
    double rate =
        fmax (r.inside.bytes_per_s, ring_rate (pool, &r, pool->max_node_gpus, 1));

    *fwd_s = *back_s = 0.0;
    if (c->deg.cp == 1 || rate <= 0)
        return;
    *fwd_s = costmodel_cp_exposed_s (
        c->deg.cp, costmodel_cp_hop_s (p, v->cp_bytes, rate, latency_s), attention_fwd_s);
    *back_s = costmodel_cp_exposed_s (
        c->deg.cp, costmodel_cp_hop_s (p, 2.0 * v->cp_bytes, rate, latency_s),
        attention_back_s);
}

double bound_tied_s (const struct pool *pool, double bytes)
{
    struct link_rates r = link_rates_of (pool, 0);

    return flow (pool, bytes, fmax (r.inside.bytes_per_s, cross_rate (&r, 1, 1)),
                 least_latency (&r));
}
