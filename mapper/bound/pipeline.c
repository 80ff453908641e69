/* A pool's configuration as a struct bound_pipeline, and its bound.
 *
 * Stage 0's TP groups may share a node with each other or with other stages.  The more of
 * them do, the wider is the way of their synchronisation; but the fewer of the other stages
 * have room beside them, and the more sends cross nodes.  The bound is the least over how
 * many there are on each of its nodes at least (by_lanes). */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <string.h>

/* A stage's tail as by_end.c takes it: stage 0's, or (fixed 0) that of one without
 * embedding. */
static struct stage_tail tail_of (const struct least_terms *x,
                                  const struct config_times *times, int kind, bool first)
{
    const struct workload_config *c = x->b.c;
    struct link_rates rates = link_rates_of (x->b.pool, 0);
    struct stage_tail t = {.span = {times->span_fwd_s[kind], times->span_back_s[kind]},
                           .layer_s = times->tail_layer_s[kind],
                           .fixed_s = first ? times->tail_fixed_s[kind]
                                            : times->profile->time.step_s};

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        struct line sync = {0.0, 0.0};

        if (!first && (c->zero < 3 || c->deg.pp == 1))
            sync = least_sync_terms (&x->b, &rates, span, 1);
        t.sync_layer_s[span] =
            first ? times->sync_layer_s[kind][span] : times->other_layer_s[kind][span];
        t.sync_fixed_s[span] = first ? times->sync_fixed_s[kind][span] : sync.fixed;
    }
    return t;
}

/* The ways to place a stage's experts as by_end.c takes them.  @return how many */
static int scheduled_experts (const struct least_terms *x, bool tight,
                              struct bound_experts *out)
{
    struct line all = least_experts_sync (x, &x->whole.least);

    if (!experts_told_apart (x, tight))
        return 0;
    for (int i = 0; i < x->whole.n; i++) {
        struct line sync = least_experts_sync (x, &x->whole.way[i]);

        out[i] = (struct bound_experts){least_exchanges_more (x, &x->whole.way[i]),
                                        sync.each - all.each, sync.fixed - all.fixed};
    }
    return x->whole.n;
}

/* A kind of slot as by_end.c takes it. */
static struct bound_slot bound_slot_of (const struct least_terms *x,
                                        const struct config_times *times,
                                        const struct slow_slots *slow)
{
    const struct workload_model *m = x->b.pool->problem->model;
    int kind = slow != NULL, any = workload_kind_of (m, m->layers - 1);
    bool by_class = slow && slow->slower && !slow->spans;
    const struct costmodel_compute *k = by_class ? &slow->k.k : &x->all.k;
    struct bound_slot s = {.micro_s = times->slot[kind].micro_s,
                           .tp_s = by_class ? slow->tp_s : x->tp.least,
                           .embed_fwd_s = k->embed_fwd_s,
                           .embed_back_s = k->embed_back_s,
                           .head_fwd_s = k->head_fwd_s,
                           .head_back_s = k->head_back_s,
                           .head_input_s = k->head_weight_s,
                           .first = tail_of (x, times, kind, true),
                           .other = tail_of (x, times, kind, false)};

    for (int i = 0; i < WORKLOAD_KINDS; i++) {
        int layer = count_layers (m, i) > 0 ? i : any;
        struct layer_times l = x->all.layer[layer], more = {0};

        if (slow)
            more = slow_slots_more (x, slow, layer);
        s.layer[i] = (struct bound_layer){l.fwd_s + x->cp.fwd_s + more.fwd_s,
                                          l.back_s + x->cp.back_s + more.back_s,
                                          l.input_s + x->cp.back_s + more.input_s};
    }
    return s;
}

/* Do all GPUs compute alike and all layers take as long, with nothing else in a micro-batch's
 * time?  Where only some layers are recomputed all count as the others. */
static bool is_exact (const struct least_terms *x)
{
    const struct pool *pool = x->b.pool;
    const struct workload_config *c = x->b.c;

    return c->deg.tp * c->deg.cp == 1 && c->recompute_layers == 0 &&
           workload_all_layers (pool->problem->model).expert == 0 &&
           pool_layers_alike (pool) && pool->n_classes == 1 &&
           !(pool->class[0].speed < pool->best_speed[0]);
}

struct bound_pipeline bound_pipeline_of (const struct least_terms *x,
                                         const struct config_times *times,
                                         const struct slow_slots *slots, int slow,
                                         const int *cap)
{
    const struct workload_config *c = x->b.c;
    bool inside = c->deg.tp <= x->b.pool->max_node_gpus;
    bool first_inside = c->deg.tp * first_takes (x) <= x->b.pool->max_node_gpus;
    bool can_span = c->deg.tp > 1 && isfinite (times->span_fwd_s[0]);
    struct bound_pipeline s = {
        .model = x->b.pool->problem->model,
        .profile = times->profile,
        .schedule = c->schedule,
        .m = times->m,
        .p = times->p,
        .v = c->deg.vpp,
        .unit = workload_layers_unit (c, times->profile),
        .least = workload_layers_least (x->b.pool->problem->model, c),
        .slow = slow,
        .slot = {bound_slot_of (x, times, NULL)},
        .span = {inside, inside && can_span, can_span},
        .first_span = {first_inside, first_inside && can_span, can_span},
        .any_s = 0.5 * times->send.any_s,
        .cross_s = 0.5 * (times->send.any_s + times->send.crossing_s),
        .per_node = (int) times->send.per_node,
        .beside = (int) times->send.per_node,
        .hides = times->hides,
        .bare = times->bare,
        .exact = is_exact (x),
        .cap = cap,
    };

    for (int i = 0; i < 4; i++)
        s.pair_s[i / 2][i % 2] = 0.5 * times->pair_s[i / 2][i % 2];
    s.slot[1] = slow > 0 ? bound_slot_of (x, times, slots) : s.slot[0];
    if (slow > 0) {
        s.known_s = slots->known_s;
        s.run_first = slots->run_first;
        s.run = slots->run;
    }
    return s;
}

/* Stage 0's tail as it is, with what fewer lanes than a node has room for add to its
 * synchronisation. */
static void fewer_lanes (const struct least_terms *x, const struct slow_slots *slots,
                         const struct bound_pipeline *all, int lanes,
                         struct bound_pipeline *s)
{
    int n = workload_dense_shards (x->b.c), tp = x->b.c->deg.tp;
    int per_node = x->b.pool->max_node_gpus / tp;
    struct line params = least_first_params (&x->b);

    for (int kind = 0; kind < 2; kind++) {
        struct link_rates rates =
            link_rates_of (x->b.pool, kind && slots && slots->slower ? slots->from : 0);
        struct line wide = bound_sync (&x->b, &rates, n, tp, per_node, per_node, tp);
        struct line few = bound_sync (&x->b, &rates, n, tp, per_node, lanes, tp);
        struct stage_tail *t = &s->slot[kind].first;
        double more = fmax (0.0, few.each - wide.each);

        *t = all->slot[kind].first;
        /* With hybrid sharding, what few lanes cost one group may be saved between groups. */
        if (!isfinite (few.fixed) || workload_shard_copies (x->b.c) > 1)
            continue;
        t->sync_layer_s[SPAN_NONE] += params.each * more;
        t->sync_fixed_s[SPAN_NONE] +=
            params.fixed * more + fmax (0.0, few.fixed - wide.fixed);
    }
}

/* The stages of one replica on a node of stage 0's at most, itself included, when each such node
 * has `lanes` of stage 0's TP groups or more.
 *
 * A node with n of them has room for room - n others.  Those belong to some of n replicas, so in one
 * of these there are (room - n) / n at most.  Where slow slots or slow exchanges are known of one
 * replica, that may be another: then all others may be this one's. */
static int most_beside (const struct bound_pipeline *x, int room, int lanes)
{
    return x->slow > 0 || x->n_experts > 0 ? 1 + room - lanes : room / lanes;
}

/* The lowest over the lanes of stage 0's synchronisation. */
static double by_lanes (const struct least_terms *x, const struct slow_slots *slots,
                        const struct bound_pipeline *all, enum bound_level level)
{
    int room = x->b.pool->max_node_gpus / x->b.c->deg.tp;
    int members = workload_dense_shards (x->b.c), crossings = -1;
    struct bound_pipeline s = *all;
    double least;

    s.first_span[SPAN_NONE] = false;
    least = bound_by_end (&s, level);
    memset (s.first_span, 0, sizeof s.first_span);
    s.first_span[SPAN_NONE] = true;
    for (int lanes = room < members ? room : members; lanes >= 1; lanes--) {
        int others = s.p - most_beside (&s, room, lanes);
        int now = others > 0 ? (others + s.per_node - 1) / s.per_node : 0;

        if (now == crossings)
            continue;
        crossings = now;
        /* As many as cross no less often: fewer lanes are not looked at again. */
        s.beside = now > 0 && s.p - 1 - (now - 1) * s.per_node < room
                       ? s.p - 1 - (now - 1) * s.per_node
                       : room;
        fewer_lanes (x, slots, all, lanes, &s);
        least = fmin (least, bound_by_end (&s, level));
    }
    return least;
}

double bound_any_schedule (const struct least_terms *x, const struct config_times *times,
                           const struct slow_slots *slots, int slow, const int *cap,
                           enum bound_level level)
{
    struct bound_pipeline s = bound_pipeline_of (x, times, slots, slow, cap);
    bool tight = level > BOUND_FRACTIONS;

    s.n_experts = scheduled_experts (x, tight, s.experts);
    /* Where every stage has a tail of its own, stage 0 is nothing special; nor is it where its
     * lanes are few. */
    if (!tight || s.per_node == 0 || !s.span[SPAN_NONE] ||
        (slots && (slots->on || slots->lanes > 0)) || x->twins == TWINS_TOGETHER ||
        workload_schedule_splits_backward (s.schedule))
        return bound_by_end (&s, level);
    return by_lanes (x, slots, &s, level);
}
