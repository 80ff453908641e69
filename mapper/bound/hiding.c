/* What of a micro-batch's work on a stage can hide its synchronisation, at most.
 *
 * That is compute, and communication inside nodes while the rings leave them (costmodel/sync.c).
 * It goes by the stage's slowest GPU in any replica.  A slower one hides more, but its replica does
 * all micro-batches there, so that the stage ends no sooner than they take: which of the classes of
 * GPUs can be on a stage depends on how late it ends. */
#include "mapper/bound/bound_private.h"

#include <math.h>

#include "base/extremes.h"

/* The slowest links inside nodes. */
static struct best_link slowest_inside (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;
    struct best_link slow = {INFINITY, 0.0};

    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[pool->node[i]];
        struct topology_link l;

        if (n->gpus < 2)
            continue;
        l = topology_link (c, n->first_gpu, n->first_gpu + 1);
        slow.bytes_per_s = smaller (slow.bytes_per_s, l.bytes_per_s);
        slow.latency_s = larger (slow.latency_s, l.latency_s);
        if (n->intra && n->intra->gpu_bytes_per_s > 0) /* of a GPU's links together */
            slow.bytes_per_s = smaller (slow.bytes_per_s, n->intra->gpu_bytes_per_s);
    }
    return slow;
}

/* Have all GPUs of a node the same links? */
static bool alike_inside (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i < pool->n_nodes; i++)
        if (!topology_alike_inside (&c->node[pool->node[i]]))
            return false;
    return !c->has_gpu_links;
}

/* One TP operation inside a node at worst. */
static double tp_inside_s (const struct bounded *b, struct best_link slow)
{
    const struct workload_profile *p = b->pool->problem->profile;
    int n = b->c->deg.tp;
    struct costmodel_ring r = {.inside_bytes_per_s = slow.bytes_per_s,
                               .between_bytes_per_s = INFINITY,
                               .latency_s = slow.latency_s * (n - 1),
                               .nodes = 1};
    double most;

    if (n == 1)
        return 0.0;
    most = costmodel_tp_operation_s (p, b->c, &r, b->volume.tp_bytes);
    for (int q = 0; q < b->pool->n_classes; q++) {
        r.nvls = b->pool->class[q].type->nvls_efficiency;
        most = fmax (most, costmodel_tp_operation_s (p, b->c, &r, b->volume.tp_bytes));
    }
    return most;
}

/* One exchange of experts inside a node at worst; 0 where no node holds all of a group. */
static double exchange_inside_s (const struct bounded *b, struct best_link slow)
{
    const struct workload_profile *p = b->pool->problem->profile;
    const struct workload_model *m = b->pool->problem->model;
    int n = b->c->deg.ep;
    double parcel = b->volume.ep_bytes * m->top_k / n;

    if (n == 1 || n > b->pool->max_node_gpus)
        return 0.0;
    if (p->time.deduplicated_dispatch)
        parcel = b->volume.ep_bytes * costmodel_visit_chance (m, (double) m->experts / n);
    return costmodel_exchange_s (p, (n - 1) * parcel / slow.bytes_per_s, 0.0,
                                 slow.latency_s);
}

/* A layer's communication inside nodes at worst. */
static double inside_s (const struct bounded *b, int kind, double tp_s, double exchange_s)
{
    const struct workload_model *m = b->pool->problem->model;
    struct workload_stage one = workload_one_layer (m, kind);
    double fwd, back, ways = workload_repeats_exchange (b->c) ? 3.0 : 2.0;

    costmodel_tp_operations (m, b->c, &one, &fwd, &back);
    if (b->c->recompute_layers > 0) /* one of those that are */
        back += fwd;
    return (fwd + back) * tp_s + (one.expert ? 2.0 * ways * exchange_s : 0.0);
}

/* What a micro-batch's work takes on GPUs of a class: forward and backward. */
struct work {
    struct both_ways layer[WORKLOAD_KINDS], fixed, embedding, head;
};

static void take_most (struct both_ways *most, double fwd_s, double back_s)
{
    most->fwd_s = fmax (most->fwd_s, fwd_s);
    most->back_s = fmax (most->back_s, back_s);
}

/* The most of the classes so far and of one, with a layer's forward pass repeated or not. */
static void add_class (const struct bounded *b, const struct costmodel_compute *k,
                       double speed, bool again, struct work *most)
{
    const struct workload_model *m = b->pool->problem->model;
    double micro = 0.5 * b->pool->problem->profile->time.microbatch_s;

    for (int i = 0; i < WORKLOAD_KINDS; i++) {
        const struct costmodel_layer *l = m->pattern[0] ? &k->kind[i]
                                          : i == 1      ? &k->expert
                                                        : &k->dense;

        if (b->pool->layers_of[i] > 0)
            take_most (&most->layer[i], l->fwd_s / speed,
                       (l->back_s + (again ? l->recompute_s : 0.0)) / speed);
    }
    take_most (&most->fixed, micro / speed, micro / speed);
    take_most (&most->embedding, k->embed_fwd_s / speed, k->embed_back_s / speed);
    take_most (&most->head, k->head_fwd_s / speed, k->head_back_s / speed);
}

static double sum_of (struct both_ways s)
{
    return s.fwd_s + s.back_s;
}

static double least_layer_s (const struct pool *pool, const struct work *w)
{
    double least = INFINITY;

    for (int i = 0; i < WORKLOAD_KINDS; i++)
        if (pool->layers_of[i] > 0)
            least = fmin (least, sum_of (w->layer[i]));
    return least;
}

/* Do rings of synchronisation leave their nodes wherever TP groups do?  Through a node with a whole
 * TP group go rings of all its ranks, which have not all room there. */
static bool rings_leave (const struct bounded *b, enum tp_span span)
{
    const struct workload_degrees *d = &b->c->deg;

    return d->tp == 1 || d->dp * (span == SPAN_ALL ? 1 : d->tp) > b->pool->max_node_gpus;
}

void bound_hiding (const struct bounded *b, struct bound_hiding *out, int n[SPANS])
{
    const struct pool *pool = b->pool;
    const struct workload_model *m = pool->problem->model;
    struct best_link slow = slowest_inside (pool);
    double tp_s = tp_inside_s (b, slow), exchange_s = exchange_inside_s (b, slow);
    bool some = b->c->recompute != RECOMPUTE_NONE;
    struct work most = {0};

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        n[span] = 0;
    if (m->mtp_layers > 0 || b->c->deg.cp > 1 || pool->n_classes > HIDING_CLASSES ||
        !rings_leave (b, SPAN_NONE) ||
        (b->c->deg.tp * b->c->deg.ep > 1 && !alike_inside (pool)))
        return;
    for (int q = 0; q < pool->n_classes; q++) {
        struct work own = {0};
        struct costmodel_compute k;

        pool_compute (pool, b->c, q, &k);
        add_class (b, &k, pool->best_speed[q], some && b->c->recompute_layers == 0, &own);
        add_class (b, &k, pool->class[q].speed, some, &most);
        out[q] = (struct bound_hiding){.least_s = least_layer_s (pool, &own)};
        for (int i = 0; i < WORKLOAD_KINDS; i++)
            if (pool->layers_of[i] > 0)
                out[q].layer_s =
                    fmax (out[q].layer_s,
                          sum_of (most.layer[i]) + inside_s (b, i, tp_s, exchange_s));
        out[q].fixed_s = sum_of (most.fixed);
        out[q].embedding_s = sum_of (most.embedding) + tp_s;
        out[q].head_s = sum_of (most.head) + tp_s;
    }
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        n[span] = rings_leave (b, span) ? pool->n_classes : 0;
}
