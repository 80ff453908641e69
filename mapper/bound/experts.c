/* What experts' exchanges and their synchronisation take at best, for the lower bound. */
#include "mapper/bound/bound_private.h"

#include <math.h>

/* One all-to-all of a rank with h - 1 of the others on its node: to these over one kind of
 * link, to the rest over the other.  Where tokens go to a node once, most are saved where
 * most of the rest are on one. */
static double exchange_s (const struct pool *pool, const struct workload_config *c,
                          const struct costmodel_volume *v, int h)
{
    const struct workload_profile *p = pool->problem->profile;
    const struct workload_model *m = pool->problem->model;
    struct link_rates r = link_rates_of (pool, 0);
    int n = c->deg.ep;
    int there = n - h < pool->max_node_gpus ? n - h : pool->max_node_gpus;
    double mine = (double) m->experts / n;
    double to_near = v->ep_bytes * m->top_k / n, to_far = to_near;
    double near = 0.0, far = 0.0, latency = 0.0, hidden;

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
    /* At best as much of it hides as on the last stage, where fewest forwards come first. */
    return costmodel_ep_exposed_s (
        p, c, workload_microbatches (pool->problem->job, c), c->deg.pp - 1,
        costmodel_exchange_s (p, near, far, latency), INFINITY, &hidden);
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

/* ---- exchanges against synchronisation ---- */

/* Seconds of the quickest exchange with `low` to `high` of a group on one rank's node. */
static double quickest_s (const struct pool *pool, const struct workload_config *c,
                          const struct costmodel_volume *v, int low, int high)
{
    double least = c->deg.ep == 1 ? 0.0 : INFINITY;

    for (int h = low; h <= high && c->deg.ep > 1; h++)
        least = fmin (least, exchange_s (pool, c, v, h));
    return least;
}

static void take_least (struct expert_way *a, const struct expert_way *b)
{
    a->exchange_s = fmin (a->exchange_s, b->exchange_s);
    a->per_param = fmin (a->per_param, b->per_param);
    a->start_s = fmin (a->start_s, b->start_s);
}

/* Is a nowhere below b? */
static bool no_better (const struct expert_way *a, const struct expert_way *b)
{
    return a->exchange_s >= b->exchange_s && a->per_param >= b->per_param &&
           a->start_s >= b->start_s;
}

/* Is some way nowhere above w? */
static bool is_covered (const struct expert_ways *ways, const struct expert_way *w)
{
    for (int i = 0; i < ways->n; i++)
        if (no_better (w, &ways->way[i]))
            return true;
    return false;
}

bool bound_ways_differ (const struct expert_ways *a, const struct expert_ways *b)
{
    for (int i = 0; i < a->n; i++)
        if (!is_covered (b, &a->way[i]))
            return true;
    return false;
}

static void add_way (struct expert_ways *out, const struct expert_way *w)
{
    if (is_covered (out, w))
        return;
    if (out->n == EXPERT_WAYS)
        take_least (&out->way[out->n - 1], w);
    else
        out->way[out->n++] = *w;
    if (out->n == 1)
        out->least = *w;
    take_least (&out->least, w);
}

/* Of all ranks of a stage let one have the fewest of its group on its node, h with itself:
 * it exchanges no faster than with h.  All others have h or more, so that the ranks on a
 * node are of at most gpus / h groups, and a ring of synchronisation has one rank of each.
 * Where TP groups lie inside nodes, the expert TP groups within them do, so that each of
 * the h stands for one of those, and a whole TP group may have several of the h. */
void bound_expert_ways (const struct pool *pool, const struct workload_config *c,
                        const struct costmodel_volume *v, bool whole,
                        struct expert_ways *out)
{
    struct link_rates rates = link_rates_of (pool, 0);
    const struct workload_degrees *d = &c->deg;
    int n = workload_expert_shards (d), gpus = pool->max_node_gpus;
    bool within = whole && d->tp % d->etp == 0;
    int unit = within ? d->etp : 1, held = within ? d->tp / d->etp : 1;
    int least = d->ep % held == 0 ? held : held % d->ep == 0 ? d->ep : 1;
    int h = gpus / unit < d->ep ? gpus / unit : d->ep;

    out->n = 0;
    while (h >= least) {
        int per_node = gpus / (h * unit), low = gpus / (unit * (per_node + 1)) + 1;
        struct expert_way w;

        /* A group is no larger than n: then it fits with fewer of each, too. */
        if (per_node >= n || low < least)
            low = least;
        w.exchange_s = quickest_s (pool, c, v, low, h);
        bound_sync (pool, &rates, n, v, per_node, n > per_node ? low * unit : unit,
                    &w.per_param, &w.start_s);
        if (isfinite (w.exchange_s) && isfinite (w.start_s))
            add_way (out, &w);
        h = low - 1;
    }
    if (out->n == 0) { /* no such placement */
        out->least = out->way[0] = (struct expert_way){0};
        out->n = 1;
    }
}
