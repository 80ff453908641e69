/* What experts' exchanges take at best, for the lower bound. */
#include "mapper/bound_private.h"

#include <math.h>

/* One all-to-all of a rank with h - 1 of the others on its node: to these over one kind of
 * link, to the rest over the other.  Where tokens go to a node once, most are saved where
 * most of the rest are on one. */
static double exchange_s (const struct pool *pool, const struct workload_config *c,
                          const struct costmodel_volume *v, int h)
{
    const struct workload_profile *p = pool->problem->profile;
    const struct workload_model *m = pool->problem->model;
    struct best_rates r = bound_rates (pool, 0);
    int n = c->deg.ep;
    int there = n - h < pool->max_node_gpus ? n - h : pool->max_node_gpus;
    double mine = (double) m->experts / n;
    double to_near = v->ep_bytes * m->top_k / n, to_far = to_near;
    double near = 0.0, far = 0.0, latency = 0.0;

    if (p->time.deduplicated_dispatch) {
        to_near = (h < n ? 2.0 : 1.0) * v->ep_bytes * costmodel_visit_chance (m, mine);
        to_far =
            h < n ? v->ep_bytes * costmodel_visit_chance (m, there * mine) / there : 0.0;
    }
    if (h > 1) {
        if (r.inside.bytes_per_s <= 0)
            return INFINITY;
        near = (h - 1) * to_near / r.inside.bytes_per_s;
        latency = r.inside.latency_s;
    }
    if (h < n) {
        if (r.between.bytes_per_s <= 0)
            return INFINITY;
        far = fmax ((n - h) * to_far / r.between.bytes_per_s,
                    h * (n - h) * to_far / r.node_bytes_per_s);
        latency = fmax (latency, r.between.latency_s);
    }
    return p->time.collective_s + latency +
           fmax (near, far / p->time.link_out) / p->time.link;
}

double bound_exchange_s (const struct pool *pool, const struct workload_config *c,
                         const struct costmodel_volume *v)
{
    double least = INFINITY;

    if (c->deg.ep == 1)
        return 0.0;
    for (int h = 1; h <= c->deg.ep && h <= pool->max_node_gpus; h++)
        least = fmin (least, exchange_s (pool, c, v, h));
    return isfinite (least) ? least : 0.0; /* no such placement */
}
