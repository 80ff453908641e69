/* A pool's configuration as a struct bound_pipeline, and its bound.
 *
 * Stage 0's TP groups may share a node with each other or with other stages.  The more of
 * them do, the wider is the way of their synchronisation; but the fewer of the other stages
 * have room beside them, and the more sends cross nodes.  The bound is the least over how
 * many there are on each of its nodes at least (by_lanes). */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <string.h>

/* A stage's tail as bound_schedule.c takes it: stage 0's, or (fixed 0) that of one without
 * embedding. */
static struct bound_tail tail_of (const struct pool *pool,
                                  const struct workload_config *c, const struct bests *x,
                                  const struct best *b, int kind, bool first)
{
    struct best_rates rates = bound_rates (pool, 0);
    struct bound_tail t = {.span_fwd_s = b->span_fwd_s[kind],
                           .span_back_s = b->span_back_s[kind],
                           .layer_s = b->tail_layer_s[kind],
                           .fixed_s = first ? b->tail_fixed_s[kind]
                                            : pool->problem->profile->time.step_s};

    for (enum bound_way way = BOUND_WHOLE; way < BOUND_WAYS; way++) {
        double per_param = 0.0, start = 0.0;

        if (!first && (c->zero < 3 || c->deg.pp == 1))
            bests_sync_of (pool, &rates, c, &x->volume, way, &per_param, &start);
        t.sync_layer_s[way] = b->sync_layer_s[kind][way];
        t.sync_fixed_s[way] = first ? b->sync_fixed_s[kind][way] : start;
    }
    return t;
}

/* The ways to place a stage's experts as bound_schedule.c takes them.  @return how many */
static int scheduled_experts (const struct workload_config *c, const struct bests *x,
                              bool tight, struct bound_experts *out)
{
    double all_layer_s, all_fixed_s, layer_s, fixed_s;

    if (!experts_told_apart (c, x, tight))
        return 0;
    bests_experts_sync (c, x, &x->whole.least, &all_layer_s, &all_fixed_s);
    for (int i = 0; i < x->whole.n; i++) {
        bests_experts_sync (c, x, &x->whole.way[i], &layer_s, &fixed_s);
        bests_exchanges_more (c, x, &x->whole.way[i], &out[i].fwd_s, &out[i].back_s);
        out[i].sync_layer_s = layer_s - all_layer_s;
        out[i].sync_fixed_s = fixed_s - all_fixed_s;
    }
    return x->whole.n;
}

/* A kind of slot as bound_schedule.c takes it. */
static struct bound_slot bound_slot_of (const struct pool *pool,
                                        const struct workload_config *c,
                                        const struct bests *x, const struct best *b,
                                        const struct slow_slots *slow)
{
    const struct mapper_problem *p = pool->problem;
    int kind = slow != NULL;
    double tp = fmin (x->inside, x->across);
    bool by_class = slow && slow->slower && !slow->spans;
    const struct costmodel_compute *k = by_class ? &slow->k.k : &x->all.k;
    struct bound_slot s = {.micro_s = b->slot[kind].micro_s,
                           .tp_s = by_class ? slow->tp_s : tp,
                           .embed_fwd_s = k->embed_fwd_s,
                           .embed_back_s = k->embed_back_s,
                           .head_fwd_s = k->head_fwd_s,
                           .head_back_s = k->head_back_s,
                           .head_input_s = k->head_weight_s,
                           .first = tail_of (pool, c, x, b, kind, true),
                           .other = tail_of (pool, c, x, b, kind, false)};

    for (int i = 0; i < 2; i++) {
        bool expert = count_layers (p->model, i) > 0 ? i : !i;
        struct layer_pace l = bests_layer (p, c, &x->all.k, expert, tp, x->exchange_s);
        struct layer_pace more = {0};

        if (slow)
            more = slow_slots_more (pool, c, x, slow, expert);
        s.layer[i] = (struct bound_layer){l.fwd_s + x->cp_fwd_s + more.fwd_s,
                                          l.back_s + x->cp_back_s + more.back_s,
                                          l.input_s + x->cp_back_s + more.input_s};
    }
    return s;
}

struct bound_pipeline bound_pipeline_of (const struct pool *pool,
                                         const struct workload_config *c,
                                         const struct bests *x, const struct best *b,
                                         const struct slow_slots *slots, int slow,
                                         const int *cap)
{
    bool inside = c->deg.tp <= pool->max_node_gpus;
    bool can_span = c->deg.tp > 1 && isfinite (b->span_fwd_s[0]);
    struct bound_pipeline s = {
        .model = pool->problem->model,
        .profile = pool->problem->profile,
        .schedule = c->schedule,
        .m = b->m,
        .p = b->p,
        .v = c->deg.vpp,
        .slow = slow,
        .slot = {bound_slot_of (pool, c, x, b, NULL)},
        .way = {inside, inside && can_span, can_span},
        .first_way = {inside, inside && can_span, can_span},
        .any_s = 0.5 * b->send_s[0],
        .cross_s = 0.5 * (b->send_s[0] + b->send_s[1]),
        .per_node = (int) b->send_s[2],
        .beside = (int) b->send_s[2],
        .hides = b->hides,
        .cap = cap,
    };

    for (int i = 0; i < 4; i++)
        s.pair_s[i / 2][i % 2] = 0.5 * b->pair_s[i / 2][i % 2];
    s.slot[1] = slow > 0 ? bound_slot_of (pool, c, x, b, slots) : s.slot[0];
    if (slow > 0)
        s.slow_sends_s = bound_slow_sends_s (b, b->p, slow);
    return s;
}

/* What fewer lanes than a node has room for add to stage 0's synchronisation. */
static void fewer_lanes (const struct pool *pool, const struct workload_config *c,
                         const struct bests *x, const struct best_rates *rates, int lanes,
                         enum bound_way way, struct bound_tail *t)
{
    bool whole = way == BOUND_WHOLE;
    int per_node = pool->max_node_gpus / (whole ? c->deg.tp : 1);
    int n = workload_dense_shards (&c->deg);
    double layer, fixed, each[2], start[2];

    for (int i = 0; i < 2; i++)
        bound_sync_lanes (pool, rates, n, &x->volume, per_node, i ? lanes : per_node,
                          whole ? c->deg.tp : 1, &each[i], &start[i]);
    if (!isfinite (start[1]) || sync_is_hidden (c))
        return;
    bests_first_params (pool, c, &layer, &fixed);
    t->sync_layer_s[way] += layer * fmax (0.0, each[1] - each[0]);
    t->sync_fixed_s[way] +=
        fixed * fmax (0.0, each[1] - each[0]) + fmax (0.0, start[1] - start[0]);
}

/* The rates of a kind of slot. */
static struct best_rates rates_of (const struct pool *pool,
                                   const struct slow_slots *slots, int kind)
{
    return bound_rates (pool, kind && slots && slots->slower ? slots->from : 0);
}

/* All of stage 0's TP groups span nodes: the lowest over how many nodes, with the lanes
 * that leaves (bound.c, more_lanes). */
static double all_span (const struct pool *pool, const struct workload_config *c,
                        const struct bests *x, const struct slow_slots *slots,
                        const struct best *b, const struct bound_pipeline *all,
                        enum bound_how how)
{
    int gpus = pool->max_node_gpus, tp = c->deg.tp, lanes = gpus / tp;
    struct best_rates rates = bound_rates (pool, 0);
    struct bound_pipeline s = *all;
    double least = INFINITY;

    memset (s.first_way, 0, sizeof s.first_way);
    s.first_way[BOUND_ALL_SPAN] = true;
    for (int nodes = lanes > 0 ? 2 : 1; nodes <= tp; nodes++) {
        int indices = (tp + nodes - 1) / nodes; /* of a node, and so many lanes: */
        struct best across = *b;

        if (indices > gpus || gpus / indices <= lanes)
            continue;
        lanes = gpus / indices;
        if (nodes > 1)
            best_set_spans (bound_tp_across (pool, &rates, c, &x->volume, nodes),
                            &across);
        if (!isfinite (across.span_fwd_s[0]))
            continue;
        for (int kind = 0; kind < 2; kind++) {
            struct best_rates own = rates_of (pool, slots, kind);
            struct bound_tail *t = &s.slot[kind].first;

            *t = all->slot[kind].first;
            t->span_fwd_s = across.span_fwd_s[kind];
            t->span_back_s = across.span_back_s[kind];
            fewer_lanes (pool, c, x, &own, lanes, BOUND_ALL_SPAN, t);
        }
        least = fmin (least, bound_scheduled (&s, how));
    }
    return least;
}

/* The lowest over the lanes of stage 0's synchronisation. */
static double by_lanes (const struct pool *pool, const struct workload_config *c,
                        const struct bests *x, const struct slow_slots *slots,
                        const struct best *b, const struct bound_pipeline *all,
                        enum bound_how how)
{
    int room = pool->max_node_gpus / c->deg.tp, members = workload_dense_shards (&c->deg);
    struct bound_pipeline s = *all;
    double least;
    int crossings = -1;

    s.first_way[BOUND_WHOLE] = s.first_way[BOUND_ALL_SPAN] = false;
    least = fmin (bound_scheduled (&s, how), all_span (pool, c, x, slots, b, all, how));
    memset (s.first_way, 0, sizeof s.first_way);
    s.first_way[BOUND_WHOLE] = true;
    for (int lanes = room < members ? room : members; lanes >= 1; lanes--) {
        int others = s.p - (1 + room - lanes);
        int now = others > 0 ? (others + s.per_node - 1) / s.per_node : 0;

        if (now == crossings)
            continue;
        crossings = now;
        /* As many as cross no less often: fewer lanes are not looked at again. */
        s.beside = now > 0 && s.p - 1 - (now - 1) * s.per_node < room
                       ? s.p - 1 - (now - 1) * s.per_node
                       : room;
        for (int kind = 0; kind < 2; kind++) {
            struct best_rates rates = rates_of (pool, slots, kind);

            s.slot[kind].first = all->slot[kind].first;
            fewer_lanes (pool, c, x, &rates, lanes, BOUND_WHOLE, &s.slot[kind].first);
        }
        least = fmin (least, bound_scheduled (&s, how));
    }
    return least;
}

double bound_by_schedule (const struct pool *pool, const struct workload_config *c,
                          const struct bests *x, const struct best *b,
                          const struct slow_slots *slots, int slow, const int *cap,
                          enum bound_how how)
{
    struct bound_pipeline s = bound_pipeline_of (pool, c, x, b, slots, slow, cap);
    bool tight = how > BOUND_FRACTIONS;

    s.n_experts = scheduled_experts (c, x, tight, s.experts);
    /* Where every stage has a tail of its own, stage 0 is nothing special. */
    if (!tight || s.per_node == 0 || !s.way[BOUND_WHOLE] ||
        workload_schedule_splits_backward (c->schedule))
        return bound_scheduled (&s, how);
    return by_lanes (pool, c, x, slots, b, &s, how);
}
