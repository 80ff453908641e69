/* What experts' exchanges and their synchronisation take at best, for the lower bound. */
#include "mapper/bound/bound_private.h"

#include <math.h>

/* One all-to-all of a rank with h - 1 of the others on its node: to these over one kind of
 * link, to the rest over the other, of `out` bytes/s at best.  Where tokens go to a node once, most
 * are saved where most of the rest are on one. */
static double exchange_s (const struct bounded *b, int h, double out)
{
    const struct pool *pool = b->pool;
    const struct workload_profile *p = pool->problem->profile;
    const struct workload_model *m = pool->problem->model;
    struct link_rates r = link_rates_of (pool, 0);
    int n = b->c->deg.ep;
    int there = n - h < pool->max_node_gpus ? n - h : pool->max_node_gpus;
    double mine = (double) m->experts / n;
    double to_near = b->volume.ep_bytes * m->top_k / n, to_far = to_near;
    double near = 0.0, far = 0.0, latency = 0.0, hidden;

    if (p->time.deduplicated_dispatch) {
        to_near =
            (h < n ? 2.0 : 1.0) * b->volume.ep_bytes * costmodel_visit_chance (m, mine);
        to_far =
            h < n ? b->volume.ep_bytes * costmodel_visit_chance (m, there * mine) / there
                  : 0.0;
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
        far = fmax ((n - h) * to_far / fmin (r.between.bytes_per_s, out),
                    h * (n - h) * to_far / r.node_bytes_per_s);
        latency = fmax (latency, r.between.latency_s);
    }
    /* At best as much of it hides as on the last stage, where fewest forwards come first. */
    return costmodel_ep_exposed_s (
        p, b->c, workload_microbatches (pool->problem->job, b->c), b->c->deg.pp - 1,
        costmodel_exchange_s (p, near, far, latency), INFINITY, &hidden);
}

/* Seconds of the quickest exchange with `low` to `high` of a group on one rank's node. */
static double quickest_s (const struct bounded *b, int low, int high, double out)
{
    double least = b->c->deg.ep == 1 ? 0.0 : INFINITY;

    for (int h = low; h <= high && b->c->deg.ep > 1; h++)
        least = fmin (least, exchange_s (b, h, out));
    return least;
}

double bound_exchange_s (const struct bounded *b)
{
    int gpus = b->pool->max_node_gpus, ep = b->c->deg.ep;
    double least = quickest_s (b, 1, ep < gpus ? ep : gpus, INFINITY);

    return isfinite (least) ? least : 0.0; /* no such placement */
}

/* Is a TP group that spans nodes of one group of experts, some of which are elsewhere then? */
static bool spans_with_tp (const struct workload_degrees *d)
{
    return d->tp > 1 && d->etp == 1 && d->ep % d->tp == 0;
}

double bound_exchange_spanning_s (const struct bounded *b)
{
    /* On some node half of it are at most. */
    return spans_with_tp (&b->c->deg) ? quickest_s (b, 1, b->c->deg.ep / 2, INFINITY)
                                      : bound_exchange_s (b);
}

double bound_exchange_through_s (const struct bounded *b, const struct expert_way *w,
                                 double bytes_per_s)
{
    return quickest_s (b, w->low, w->high, bytes_per_s);
}

/* Ranks of a group that are on one node or none, where TP groups lie inside nodes: expert TP groups
 * of `unit` ranks, of which a TP group has `least` of one group of experts. */
static void whole_units (const struct workload_degrees *d, int *unit, int *least)
{
    bool within = d->tp % d->etp == 0;
    int held = within ? d->tp / d->etp : 1;

    *unit = within ? d->etp : 1;
    *least = d->ep % held == 0 ? held : held % d->ep == 0 ? d->ep : 1;
}

double bound_exchange_few_s (const struct bounded *b, int groups)
{
    const struct workload_degrees *d = &b->c->deg;
    int unit, least, most;

    whole_units (d, &unit, &least);
    most = groups * d->tp / unit;
    return quickest_s (b, least, most < d->ep ? most : d->ep, INFINITY);
}

/* ---- exchanges against synchronisation ---- */

static void take_range (struct expert_way *a, const struct expert_way *b)
{
    a->low = a->low < b->low ? a->low : b->low;
    a->high = a->high > b->high ? a->high : b->high;
}

static void take_least (struct expert_way *a, const struct expert_way *b)
{
    a->exchange_s = fmin (a->exchange_s, b->exchange_s);
    a->sync.each = fmin (a->sync.each, b->sync.each);
    a->sync.fixed = fmin (a->sync.fixed, b->sync.fixed);
    take_range (a, b);
}

/* Some way that is nowhere above w, or -1. */
static int covering (const struct expert_ways *ways, const struct expert_way *w)
{
    for (int i = 0; i < ways->n; i++) {
        const struct expert_way *a = &ways->way[i];

        if (w->exchange_s >= a->exchange_s && w->sync.each >= a->sync.each &&
            w->sync.fixed >= a->sync.fixed)
            return i;
    }
    return -1;
}

bool bound_ways_differ (const struct expert_ways *a, const struct expert_ways *b)
{
    for (int i = 0; i < a->n; i++)
        if (covering (b, &a->way[i]) < 0)
            return true;
    return false;
}

static void add_way (struct expert_ways *out, const struct expert_way *w)
{
    int by = covering (out, w);

    if (by >= 0) { /* it stands for both then, on any node */
        take_range (&out->way[by], w);
        return;
    }
    if (out->n == EXPERT_WAYS)
        take_least (&out->way[out->n - 1], w);
    else
        out->way[out->n++] = *w;
    if (out->n == 1)
        out->least = *w;
    take_least (&out->least, w);
}

/* Rings of n members through a node on which a whole TP group is. */
static struct line through_group (const struct bounded *b, const struct link_rates *r,
                                  int n)
{
    const struct workload_degrees *d = &b->c->deg;
    int gpus = b->pool->max_node_gpus,
        rings = d->tp < d->etp * d->ep ? d->tp : d->etp * d->ep;
    int share = bound_rings_through (gpus, d->tp, rings, n);

    return share > 1
               ? bound_sync (b, r, n, 1, gpus < n ? gpus : n - 1, gpus / rings, share)
               : (struct line){0.0, 0.0};
}

/* Of all ranks of a stage let one have the fewest of its group on its node, h with itself:
 * it exchanges no faster than with h.  All others have h or more, so that the ranks on a
 * node are of at most gpus / h groups, and a ring of synchronisation has one rank of each.
 * Where TP groups lie inside nodes, the expert TP groups within them do, so that each of
 * the h stands for one of those, and a whole TP group may have several of the h. */
struct expert_ways bound_expert_ways (const struct bounded *b, enum tp_span span)
{
    struct link_rates rates = link_rates_of (b->pool, 0);
    const struct workload_degrees *d = &b->c->deg;
    int n = workload_expert_shards (b->c), gpus = b->pool->max_node_gpus;
    int unit = 1, least = 1, h, top;
    int same = n * bound_copies (b); /* ranks with the same experts */
    struct expert_ways out = {0};

    if (span == SPAN_NONE)
        whole_units (d, &unit, &least);
    h = top = gpus / unit < d->ep ? gpus / unit : d->ep;
    if (span != SPAN_NONE && spans_with_tp (d))
        h = top = top < d->ep / 2 ? top : d->ep / 2;
    while (h >= least) {
        int per_node = gpus / (h * unit), low = gpus / (unit * (per_node + 1)) + 1;
        struct expert_way w;

        /* These are no more: then they fit with fewer of each, too. */
        if (per_node >= same || low < least)
            low = least;
        /* A rank may have an h that not all can have. */
        w.exchange_s = quickest_s (b, low, top, INFINITY);
        w.low = low;
        w.high = top;
        w.unit = unit;
        w.sync = same > n
                     ? bound_hybrid_sync (b, &rates, n, 1, per_node, per_node, low * unit)
                     : bound_sync (b, &rates, n, 1, per_node, per_node,
                                   n > per_node ? low * unit : unit);
        if (span == SPAN_ONE)
            w.sync = larger_line (w.sync, through_group (b, &rates, n));
        if (isfinite (w.exchange_s) && isfinite (w.sync.fixed)) {
            add_way (&out, &w);
            top = low - 1;
        }
        h = low - 1;
    }
    if (out.n == 0) /* no such placement */
        out.n = 1;
    return out;
}
