/* Stages on one node or on several: how many GPUs, what room they leave, and what their slots take
 * there. */
#include "mapper/bound/kinds.h"

/* Is a stage on several nodes where no TP group of it spans them? */
bool kinds_has_rings (const struct bounded *b)
{
    return b->c->deg.dp * b->c->deg.cp > 1;
}

bool kinds_fills_node (const struct bounded *b)
{
    const struct workload_degrees *d = &b->c->deg;
    int slot = d->tp * d->cp;

    return b->pool->max_node_gpus - slot * d->dp < slot;
}

/* Is there room for stage 0 on GPUs of classes 0..upto, and for its twins beside them? */
bool kinds_has_room (const struct kinds *x, int upto)
{
    const struct pool *pool = x->x->b.pool;
    int room = 0;

    if (x->x->twins != TWINS_TOGETHER)
        return true;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];
        int fast = 0;

        for (int g = n->first_gpu; g < n->first_gpu + n->gpus; g++)
            fast += pool->class_of_gpu[g] <= upto;
        room += fast < n->gpus / 2 ? fast : n->gpus / 2;
    }
    return room >= kinds_stage_gpus (&x->x->b);
}

bool kinds_can_be_first (const struct kinds *x, int class, bool spans, bool across)
{
    int taken = kinds_stage_gpus (&x->x->b) * first_takes (x->x);
    bool may = !x->used[ALONE] ? !across
               : across        ? spans || kinds_has_rings (&x->x->b)
                               : !spans && taken <= x->x->b.pool->max_node_gpus;

    return may && kinds_has_room (x, class);
}

/* Synchronisation of a stage whose TP groups lie inside nodes, of which it has several, when
 * each of its GPUs takes so many of a node. */
static struct line sync_across (const struct least_terms *t,
                                const struct link_rates *rates, int taken)
{
    int n = workload_dense_shards (t->b.c), tp = t->b.c->deg.tp;
    int room = t->b.pool->max_node_gpus / (tp * taken);

    if (workload_shard_copies (t->b.c) > 1) /* each group may be on one of them */
        return least_sync_terms (&t->b, rates, SPAN_NONE, taken);
    return bound_sync (&t->b, rates, n, tp, room < n ? room : n - 1, room, tp);
}

/* The slots of a kind, and the times with them as the slow ones. */
void kinds_find_slots (const struct least_terms *t, int classes, int kind, bool own_times,
                       struct slow_slots *slots, struct config_times *times)
{
    struct link_rates any = link_rates_of (t->b.pool, 0);
    bool by_class = kind < classes;

    *times = t->times;
    if (by_class) {
        if (own_times)
            slow_slots_of_class (t, kind, slots);
        else
            slow_slots_init (t, kind, false, slots);
    } else {
        *slots = (struct slow_slots){.alike = true, .from = classes, .tp_s = t->tp.least};
        config_times_put_sync (t, sync_across (t, &any, 1),
                               sync_across (t, &any, first_takes (t)), 1, SPAN_NONE,
                               times);
    }
    slow_slots_put (t, slots, times);
}
