/* How many stages have ranks on a node.
 *
 * A synchronisation ring over several nodes has as many lanes between two of them as it has
 * members on both, and ranks exchange with experts on other nodes where few of their group are on
 * their own.  Let no TP group span nodes, and let a node have room for g of them.  For any number
 * s, either some stage has g / (s + 1) TP groups or fewer on some node: its rings have no more
 * lanes there, and its exchanges are those of so few, in all replicas, which wait for them.  Or a
 * node holds ranks of s stages at most, so that a replica's other boundaries cross.  For s = 1 all
 * do, and all ranks of the stage on a node send at once and share what it reaches.
 *
 * A TP group that spans nodes is told beside that (odd_bounds in bound.c).
 *
 * Where one stage alone has so few, the others' nodes hold more than g / 2 groups of theirs, but
 * need not be full: the lone stage may have the rest.
 *
 * Let nodes be of one size.  A node that is not full of its stage's ranks leaves a TP group's room
 * idle.  So where GPUs in use are nearly all, few TP groups are on such nodes, and some replica has
 * no more of them than the mean.  A boundary with a full node at one of its ends shares that
 * node. */
#include "mapper/bound/bound_private.h"

#include <math.h>

#include "base/extremes.h"

/* TP groups that fit a node. */
static int room_of (const struct bounded *b)
{
    return b->pool->max_node_gpus / b->c->deg.tp;
}

bool bound_has_lanes (const struct bounded *b)
{
    /* Groups that shard have rings of their own. */
    return workload_dense_shards (b->c) > 1 && workload_shard_copies (b->c) == 1;
}

/* The first of the ways that a stage's experts can be in with so few TP groups on some node. */
static int ways_of (const struct least_terms *x, int groups)
{
    int i = 0;

    while (i < x->ways[SPAN_NONE].n - 1 &&
           x->ways[SPAN_NONE].way[i].low * x->ways[SPAN_NONE].way[i].unit >
               groups * x->b.c->deg.tp)
        i++;
    return i;
}

/* TP groups of a stage on a node that must all leave it: on those that bound some replica's
 * boundaries.  Which replica that is, slow slots do not tell. */
static int leaving (const struct bounded *b)
{
    const struct pool *pool = b->pool;
    const struct workload_degrees *d = &b->c->deg;
    int room = room_of (b), groups = d->dp * d->cp;
    long idle = (long) pool->n_nodes * room - (long) d->pp * groups;
    long mean = idle * (room - 1) / groups; /* stages on nodes that are not full */
    bool replicas =
        pool->n_classes == 1 && d->cp == 1 && pool->problem->model->experts == 0;
    bool alike = pool->n_gpus == (long) pool->n_nodes * pool->max_node_gpus;

    return alike && (idle == 0 || (replicas && mean < 2)) ? room : room / 2 + 1;
}

/* One way over a boundary, where so many TP groups leave a node at once. */
static double leaving_s (const struct bounded *b, int groups)
{
    const struct pool *pool = b->pool;
    int flows = groups * b->c->deg.tp;

    return bound_flow_s (
        b, smaller (pool->inter_bytes_per_s, pool->node_bytes_per_s / flows),
        pool->inter_latency_s);
}

double bound_beside_few_s (const struct bounded *b)
{
    return leaving_s (b, room_of (b) / 2 + 1);
}

bool bound_shared_sends (const struct bounded *b, int share, bool some,
                         struct boundary_sends *sends)
{
    int room = room_of (b);
    struct boundary_sends any = bound_sends (b, 0.0, INFINITY);

    *sends = any;
    if (share > 1) {
        sends->per_node = share;
        return sends->crossing_s > 0.0;
    }
    *sends = (struct boundary_sends){
        .any_s = 2.0 * leaving_s (b, some ? room / 2 + 1 : leaving (b))};
    /* More than half of a node is all of it where it has room for two alone: elsewhere another
     * stage may have the rest of the node, in one replica or another. */
    if (some && room > 2)
        return false;
    return isfinite (sends->any_s) && sends->any_s > any.any_s;
}

/* What experts' rings take with no more lanes than so many TP groups on some node have, each way by
 * as much more than the least of them as it takes elsewhere. */
static void put_experts (const struct least_terms *x, const struct link_rates *rates,
                         struct few_groups *few)
{
    const struct bounded *b = &x->b;
    const struct expert_ways *ways = &x->ways[SPAN_NONE];
    struct expert_way least = ways->least;
    int n = workload_expert_shards (b->c), ranks = few->groups * b->c->deg.tp;
    struct line sync = {INFINITY, INFINITY};

    for (int i = few->ways_from; i < ways->n; i++) {
        const struct expert_way *w = &ways->way[i];
        int held = w->low * w->unit, lanes = ranks > held ? ranks / held : 1;
        struct line here = larger_line (
            w->sync, bound_sync (b, rates, n, 1, b->pool->max_node_gpus / held, lanes,
                                 n > lanes ? held : 1));

        sync.each = fmin (sync.each, here.each - w->sync.each);
        sync.fixed = fmin (sync.fixed, here.fixed - w->sync.fixed);
    }
    if (!isfinite (sync.each) || !isfinite (sync.fixed))
        return;
    least.sync = add_lines (least.sync, sync);
    config_times_put_experts (x, &least, SPAN_NONE, &few->times);
}

void few_groups_init (const struct least_terms *x, int groups, double known_s,
                      struct few_groups *few)
{
    const struct bounded *b = &x->b;
    struct link_rates rates = link_rates_of (b->pool, 0);
    int n = workload_dense_shards (b->c), tp = b->c->deg.tp;
    struct line sync = bound_sync (b, &rates, n, tp, room_of (b), groups, tp);
    struct line first = least_sync_terms (b, &rates, SPAN_NONE, first_takes (x));

    *few = (struct few_groups){.groups = groups,
                               .known_s = known_s,
                               .ways_from = ways_of (x, groups),
                               .exchange_s = bound_exchange_few_s (b, groups),
                               .times = x->times};
    if (bound_has_lanes (b) && isfinite (sync.fixed))
        config_times_put_sync (x, sync,
                               (struct line){larger (first.each, sync.each),
                                             larger (first.fixed, sync.fixed)},
                               1, SPAN_NONE, &few->times);
    if (bound_has_lanes (b) && x->told_share > 0.0)
        put_experts (x, &rates, few);
}
