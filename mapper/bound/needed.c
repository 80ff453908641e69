/* A badly linked node that cannot be left out.
 *
 * Let the nodes be sorted by how fast a ring can pass them.  The slowest of them are needed
 * as soon as their GPUs together are more than the configuration leaves idle: then some rank
 * is on one of them, say on node i.  If its TP group spans nodes, some replica has a stage
 * that does (bound.c takes the least of both).  Else a whole TP group of some stage of some
 * replica is on node i, and where node i cannot hold all ranks:
 *
 * - Each of that stage's synchronisation rings has a member on node i, the one with the
 *   fewest no more than TP groups fit it.  Where node i has too few GPUs for the whole stage,
 *   that ring has members elsewhere too, and must enter and leave node i: over no better a
 *   link than the best out and the best in, in as many lanes as it has members there, within
 *   what the node reaches.
 * - Let h of a rank's expert group be on node i, itself included.  Its exchanges with the others
 *   pass node i's links.  The rings of these h, each with experts of its own, share node i's GPUs:
 *   one of them has no more than an h-th as many members there.  With more members than that it
 *   leaves the node; with more than the node has GPUs all of them do.
 * - Where the stage before or after it has no rank on node i, the sends between the two leave
 *   or enter it, there and back.
 *
 * So that stage is on a slow slot: one whose synchronisation and boundaries are slow.  Where it
 * is told which stages of that replica are there (bound.c, least_run_bound), each takes a TP
 * group's room from the others. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/order.h"

#define TELLS 0.9 /* of the best link: a node with more is not worth the time */

/* What links a node at best; as an array, all of the same. */
struct node_links {
    double ring_bytes_per_s[SPANS], send_bytes_per_s;
    double experts_bytes_per_s[SPANS][EXPERT_WAYS], one_way_bytes_per_s;
};

struct one_node {
    double order; /* first, for sorting: the worst links, however many stages are told */
    int gpus;
    struct node_links l;
};

/* What passes a node in each way of the experts of a rank on it, of so many GPUs, by a ring of n
 * members: by each that cannot be there with all of them, else by the one with the fewest.
 * INFINITY: none need leave. */
static void put_experts_rates (const struct expert_ways *ways, int gpus, int n, bool all,
                               double reach, double total, double *out)
{
    for (int i = 0; i < ways->n; i++) {
        int each = ways->way[i].low * ways->way[i].unit;
        int held = each > 0 ? gpus / each : 1;

        held = held > 1 ? held : 1;
        out[i] = n > held ? fmin (held * reach, total / (all && each > 1 ? each : 1))
                          : INFINITY;
    }
}

/* All rings of the stage have members there, so one of them no more than TP groups fit it
 * beside those of the other stages.  With whole TP groups all have as many and leave, sharing what
 * the node reaches; else some may be there with all members. */
static struct one_node node_of (const struct least_terms *x, int i, int stages)
{
    const struct pool *pool = x->b.pool;
    const struct workload_degrees *d = &x->b.c->deg;
    const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];
    double total = n->node_bytes_per_s > 0 ? n->node_bytes_per_s : INFINITY;
    double reach = pool->reach[i];
    int room = n->gpus / d->tp > 1 ? n->gpus / d->tp : 1;
    int groups = room > stages ? room - stages + 1 : 1;
    int shards = workload_expert_shards (x->b.c);
    struct node_links l = {.send_bytes_per_s = fmin (pool->one_way[i], total / d->tp),
                           .one_way_bytes_per_s = pool->one_way[i]};

    l.ring_bytes_per_s[SPAN_NONE] = fmin (groups * reach, total / d->tp);
    l.ring_bytes_per_s[SPAN_ONE] = fmin (groups * reach, total);
    l.ring_bytes_per_s[SPAN_ALL] = l.ring_bytes_per_s[SPAN_ONE];
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        put_experts_rates (
            &x->ways[span], n->gpus - (span == SPAN_NONE ? (stages - 1) * d->tp : 0),
            shards, shards > n->gpus, reach, total, l.experts_bytes_per_s[span]);
    return (struct one_node){fmin (room * reach, total / d->tp), n->gpus, l};
}

/* The best of each figure over the fewest of the worst nodes of which one is needed.
 * @return its GPUs at most */
static int best_needed (const struct one_node *node, int n, long idle,
                        struct node_links *best)
{
    enum { FIGURES = sizeof *best / sizeof (double) };
    double *most = (double *) best;
    int largest = 0;
    long gpus = 0;

    *best = (struct node_links){0};
    for (int i = 0; i < n && gpus <= idle; i++) {
        const double *figure = (const double *) &node[i].l;

        gpus += node[i].gpus;
        largest = node[i].gpus > largest ? node[i].gpus : largest;
        for (int k = 0; k < FIGURES; k++)
            most[k] = larger (most[k], figure[k]);
    }
    return largest;
}

bool bound_needed_node (const struct least_terms *x, int stages, struct needed_node *node)
{
    const struct bounded *b = &x->b;
    const struct pool *pool = b->pool;
    const struct workload_degrees *d = &b->c->deg;
    struct one_node *l;
    struct node_links best;
    long world = workload_world (d), idle = -world;
    int gpus;

    if (pool->n_nodes < 2 || !isfinite (pool->reach[0]))
        return false;
    l = malloc ((size_t) pool->n_nodes * sizeof *l);
    if (!l)
        return false;
    for (int i = 0; i < pool->n_nodes; i++) {
        l[i] = node_of (x, i, stages);
        idle += l[i].gpus;
    }
    qsort (l, (size_t) pool->n_nodes, sizeof *l, order_numbers);
    gpus = best_needed (l, pool->n_nodes, idle, &best);
    free (l);
    if (gpus >= world || !(best.send_bytes_per_s > 0))
        return false;
    for (int s = 0; s < SPANS; s++)
        node->ring_bytes_per_s[s] =
            ((long) workload_dense_shards (b->c) + stages - 1) * d->tp > gpus
                ? best.ring_bytes_per_s[s]
                : INFINITY;
    memcpy (node->experts_bytes_per_s, best.experts_bytes_per_s,
            sizeof node->experts_bytes_per_s);
    node->one_way_bytes_per_s = best.one_way_bytes_per_s;
    node->tells_experts = false;
    node->send_s = 2.0 * bound_flow_s (b, best.send_bytes_per_s, pool->inter_latency_s);
    return best.send_bytes_per_s < TELLS * pool->inter_bytes_per_s;
}

/* The ways of a rank's experts on it. */
static struct expert_ways ways_on (const struct least_terms *x,
                                   const struct expert_ways *any,
                                   const struct needed_node *node,
                                   const double *bytes_per_s)
{
    const struct bounded *b = &x->b;
    struct link_rates rates = link_rates_of (b->pool, 0);
    struct expert_ways out = *any;

    for (int i = 0; i < out.n; i++) {
        struct expert_way *w = &out.way[i];

        w->exchange_s = larger (
            w->exchange_s, bound_exchange_through_s (b, w, node->one_way_bytes_per_s));
        w->sync = any->least.sync;
        if (isfinite (bytes_per_s[i]))
            w->sync = larger_line (
                w->sync, bound_sync_through (b, &rates, workload_expert_shards (b->c),
                                             b->pool->max_node_gpus, bytes_per_s[i]));
        if (i == 0)
            out.least.sync = w->sync;
        out.least.sync.each = smaller (out.least.sync.each, w->sync.each);
        out.least.sync.fixed = smaller (out.least.sync.fixed, w->sync.fixed);
    }
    return out;
}

/* What a stage on it takes more for its experts, in the best of their ways. */
static void put_experts (const struct least_terms *x, struct needed_node *node,
                         struct config_times *times)
{
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        struct expert_ways *here = &node->experts[span];

        *here = ways_on (x, &x->ways[span], node, node->experts_bytes_per_s[span]);
        config_times_put_experts (x, &here->least, span, times);
    }
    node->tells_experts = true;
}

void needed_node_put (const struct least_terms *x, struct needed_node *node,
                      struct config_times *times)
{
    const struct bounded *b = &x->b;
    struct link_rates rates = link_rates_of (b->pool, 0);
    int n = workload_dense_shards (b->c);

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        int per_node = b->pool->max_node_gpus / (span == SPAN_NONE ? b->c->deg.tp : 1);
        struct line any = least_sync_terms (b, &rates, span, 1);
        struct line first = least_sync_terms (b, &rates, span, first_takes (x));
        struct line slow = isfinite (node->ring_bytes_per_s[span])
                               ? bound_sync_through (b, &rates, n, per_node,
                                                     node->ring_bytes_per_s[span])
                               : any;

        if (!isfinite (any.fixed) || !isfinite (slow.fixed))
            continue;
        config_times_put_sync (x, larger_line (any, slow), larger_line (first, slow), 1,
                               span, times);
    }
    if (x->ways[SPAN_NONE].n > 0 && workload_shard_copies (b->c) == 1)
        put_experts (x, node, times);
    if (b->c->deg.pp > 1)
        times->pair_s[0][1] = times->pair_s[1][0] =
            fmax (times->pair_s[0][0], node->send_s);
}
