/* The links at their best, for the lower bound. */
#include "mapper/bound_private.h"

#include <math.h>

/* Rate between nodes with `lanes` lanes, `share` groups or flows at a time. */
static double cross_rate (const struct pool *pool, double lanes, double share)
{
    return fmin (fmax (1.0, lanes) * pool->inter_bytes_per_s,
                 pool->node_bytes_per_s / share);
}

/* The part of it that a ring reaches. */
static double ring_rate (const struct pool *pool, double lanes, double share)
{
    return cross_rate (pool, lanes, share) * pool->problem->profile->time.link_out;
}

static double tp_operation (const struct pool *pool, const struct workload_config *c,
                            const struct costmodel_volume *v, double rate,
                            double latency_s, int nodes)
{
    struct costmodel_ring r = {
        .bytes_per_s = rate, .latency_s = (c->deg.tp - 1) * latency_s, .nodes = nodes};
    const struct workload_profile *p = pool->problem->profile;

    return c->sequence_parallel
               ? 2.0 * costmodel_half_allreduce_s (p, &r, c->deg.tp, v->tp_bytes)
               : costmodel_allreduce_s (p, &r, c->deg.tp, v->tp_bytes);
}

void bound_tp (const struct pool *pool, const struct workload_config *c,
               const struct costmodel_volume *v, double *inside, double *across)
{
    double latency = fmin (pool->intra_latency_s, pool->inter_latency_s);
    int nodes = 1; /* where a tree has fewest hops: a power of two */

    while (2 * nodes <= c->deg.tp)
        nodes *= 2;

    *inside = *across = c->deg.tp == 1 ? 0.0 : INFINITY;
    if (c->deg.tp == 1)
        return;
    if (c->deg.tp <= pool->max_node_gpus)
        *inside =
            tp_operation (pool, c, v, pool->intra_bytes_per_s, pool->intra_latency_s, 1);
    *across =
        tp_operation (pool, c, v, ring_rate (pool, c->deg.tp / 2, 1), latency, nodes);
}

static double flow (const struct pool *pool, double bytes, double rate, double latency_s)
{
    const struct workload_profile *p = pool->problem->profile;

    return rate > 0
               ? p->time.collective_s + latency_s + bytes / (rate * p->time.send_link)
               : INFINITY;
}

/* With TP groups inside nodes a node holds at most per_node stages of a pipeline, so at
 * least ceil(stages / per_node) - 1 boundaries cross nodes.  Each group that spans nodes
 * saves at most one crossing and costs 4 all-reduces across nodes in its one layer or
 * more; where that could pay, crossings are left out. */
void bound_sends (const struct pool *pool, const struct workload_config *c,
                  const struct costmodel_volume *v, double inside, double across,
                  double send_s[3])
{
    double within =
        flow (pool, v->p2p_bytes, pool->intra_bytes_per_s, pool->intra_latency_s);
    double cross =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, c->deg.tp), pool->inter_latency_s);
    double alone =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, 1), pool->inter_latency_s);
    double any = fmin (within, alone);
    int per_node = pool->max_node_gpus / c->deg.tp;

    send_s[0] = send_s[1] = send_s[2] = 0.0;
    if (c->deg.pp == 1)
        return;
    send_s[0] = 2.0 * any;
    if (per_node >= 1 && cross > any && isfinite (cross) &&
        (c->deg.tp == 1 || 4.0 * (across - inside) >= 2.0 * (cross - any))) {
        send_s[1] = 2.0 * (cross - any);
        send_s[2] = per_node;
    }
}

double bound_sends_s (const struct best *b, int stages)
{
    double crossings = b->send_s[2] > 0 ? ceil (stages / b->send_s[2]) - 1.0 : 0.0;

    return stages < 2 ? 0.0
                      : (stages - 1) * b->send_s[0] +
                            (crossings > 0 ? crossings * b->send_s[1] : 0.0);
}

void bound_sync (const struct pool *pool, const struct workload_config *c,
                 const struct costmodel_volume *v, int per_node, double share,
                 double *per_param, double *fixed)
{
    const struct workload_profile *p = pool->problem->profile;
    int n = c->deg.dp * c->deg.cp;
    double within = pool->intra_latency_s, cross = pool->inter_latency_s;
    double rate = 0.0, latency = INFINITY;

    *per_param = *fixed = 0.0;
    if (n == 1)
        return;
    per_node = per_node > 1 ? per_node : 1;
    if (n <= per_node) {
        rate = pool->intra_bytes_per_s;
        latency = n * within;
    }
    if (pool->inter_bytes_per_s > 0) {
        int nodes = (n + per_node - 1) / per_node;
        double most = ring_rate (pool, fmin (per_node, n / 2), share);

        if (nodes < 2)
            nodes = 2;
        if (n > pool->n_nodes)
            most = fmin (most, pool->intra_bytes_per_s); /* two share a node */
        if (per_node > 1 || n <= pool->n_nodes)
            rate = fmax (rate, most);
        latency = fmin (latency, nodes * cross + (n - nodes) * fmin (within, cross));
    }
    if (rate <= 0) {
        *fixed = INFINITY;
        return;
    }

    struct costmodel_ring ring = {.bytes_per_s = rate,
                                  .latency_s = latency * (n - 1.0) / n};

    *fixed = costmodel_sync_s (p, &ring, n, v->dp_phases, 0.0);
    *per_param = costmodel_sync_s (p, &ring, n, 0, v->dp_bytes);
}

double bound_send_s (const struct pool *pool, const struct workload_config *c)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_volume v;
    double s;

    costmodel_volume (p->model, p->job, c, p->profile, &v);
    s = flow (pool, v.p2p_bytes, cross_rate (pool, 1, c->deg.tp), pool->inter_latency_s);
    return isfinite (s) ? 2.0 * s : 0.0;
}

void bound_cp (const struct pool *pool, const struct workload_config *c,
               const struct costmodel_volume *v, double attention_fwd_s,
               double attention_back_s, double *fwd_s, double *back_s)
{
    double steps = c->deg.cp - 1.0;
    double rate =
        fmax (pool->intra_bytes_per_s, ring_rate (pool, pool->max_node_gpus, 1));
    double hop = pool->problem->profile->time.collective_s +
                 fmin (pool->intra_latency_s, pool->inter_latency_s);

    *fwd_s = *back_s = 0.0;
    if (c->deg.cp == 1 || rate <= 0)
        return;
    *fwd_s = steps * fmax (0.0, hop + v->cp_bytes / rate - attention_fwd_s / c->deg.cp);
    *back_s =
        steps * fmax (0.0, hop + 2.0 * v->cp_bytes / rate - attention_back_s / c->deg.cp);
}

double bound_tied_s (const struct pool *pool, double bytes)
{
    return flow (pool, bytes, fmax (pool->intra_bytes_per_s, cross_rate (pool, 1, 1)),
                 fmin (pool->intra_latency_s, pool->inter_latency_s));
}
