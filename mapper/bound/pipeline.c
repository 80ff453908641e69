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
static struct stage_tail tail_of (const struct pool *pool,
                                  const struct workload_config *c,
                                  const struct least_terms *x,
                                  const struct config_times *times, int kind, bool first)
{
    struct link_rates rates = link_rates_of (pool, 0);
    struct stage_tail t = {.span_fwd_s = times->span_fwd_s[kind],
                           .span_back_s = times->span_back_s[kind],
                           .layer_s = times->tail_layer_s[kind],
                           .fixed_s = first ? times->tail_fixed_s[kind]
                                            : pool->problem->profile->time.step_s};

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        double per_param = 0.0, start = 0.0;

        if (!first && (c->zero < 3 || c->deg.pp == 1))
            least_sync_terms (pool, &rates, c, &x->volume, span, &per_param, &start);
        t.sync_layer_s[span] = times->sync_layer_s[kind][span];
        t.sync_fixed_s[span] = first ? times->sync_fixed_s[kind][span] : start;
    }
    return t;
}

/* The ways to place a stage's experts as by_end.c takes them.  @return how many */
static int scheduled_experts (const struct workload_config *c,
                              const struct least_terms *x, bool tight,
                              struct bound_experts *out)
{
    double all_layer_s, all_fixed_s, layer_s, fixed_s;

    if (!experts_told_apart (c, x, tight))
        return 0;
    least_experts_sync (c, x, &x->whole.least, &all_layer_s, &all_fixed_s);
    for (int i = 0; i < x->whole.n; i++) {
        least_experts_sync (c, x, &x->whole.way[i], &layer_s, &fixed_s);
        least_exchanges_more (c, x, &x->whole.way[i], &out[i].fwd_s, &out[i].back_s);
        out[i].sync_layer_s = layer_s - all_layer_s;
        out[i].sync_fixed_s = fixed_s - all_fixed_s;
    }
    return x->whole.n;
}

/* A kind of slot as by_end.c takes it. */
static struct bound_slot bound_slot_of (const struct pool *pool,
                                        const struct workload_config *c,
                                        const struct least_terms *x,
                                        const struct config_times *times,
                                        const struct slow_slots *slow)
{
    const struct mapper_problem *p = pool->problem;
    int kind = slow != NULL;
    double tp = fmin (x->inside, x->across);
    bool by_class = slow && slow->slower && !slow->spans;
    const struct costmodel_compute *k = by_class ? &slow->k.k : &x->all.k;
    struct bound_slot s = {.micro_s = times->slot[kind].micro_s,
                           .tp_s = by_class ? slow->tp_s : tp,
                           .embed_fwd_s = k->embed_fwd_s,
                           .embed_back_s = k->embed_back_s,
                           .head_fwd_s = k->head_fwd_s,
                           .head_back_s = k->head_back_s,
                           .head_input_s = k->head_weight_s,
                           .first = tail_of (pool, c, x, times, kind, true),
                           .other = tail_of (pool, c, x, times, kind, false)};

    for (int i = 0; i < 2; i++) {
        bool expert = count_layers (p->model, i) > 0 ? i : !i;
        struct layer_times l =
            least_layer_times (p, c, &x->all.k, expert, tp, x->exchange_s);
        struct layer_times more = {0};

        if (slow)
            more = slow_slots_more (pool, c, x, slow, expert);
        s.layer[i] = (struct bound_layer){l.fwd_s + x->cp_fwd_s + more.fwd_s,
                                          l.back_s + x->cp_back_s + more.back_s,
                                          l.input_s + x->cp_back_s + more.input_s};
    }
    return s;
}

struct bound_pipeline
bound_pipeline_of (const struct pool *pool, const struct workload_config *c,
                   const struct least_terms *x, const struct config_times *times,
                   const struct slow_slots *slots, int slow, const int *cap)
{
    bool inside = c->deg.tp <= pool->max_node_gpus;
    bool can_span = c->deg.tp > 1 && isfinite (times->span_fwd_s[0]);
    struct bound_pipeline s = {
        .model = pool->problem->model,
        .profile = pool->problem->profile,
        .schedule = c->schedule,
        .m = times->m,
        .p = times->p,
        .v = c->deg.vpp,
        .slow = slow,
        .slot = {bound_slot_of (pool, c, x, times, NULL)},
        .span = {inside, inside && can_span, can_span},
        .first_span = {inside, inside && can_span, can_span},
        .any_s = 0.5 * times->send.any_s,
        .cross_s = 0.5 * (times->send.any_s + times->send.crossing_s),
        .per_node = (int) times->send.per_node,
        .beside = (int) times->send.per_node,
        .hides = times->hides,
        .cap = cap,
    };

    for (int i = 0; i < 4; i++)
        s.pair_s[i / 2][i % 2] = 0.5 * times->pair_s[i / 2][i % 2];
    s.slot[1] = slow > 0 ? bound_slot_of (pool, c, x, times, slots) : s.slot[0];
    if (slow > 0)
        s.slow_sends_s = bound_slow_run_sends_s (times, times->p, slow);
    return s;
}

/* What fewer lanes than a node has room for add to stage 0's synchronisation. */
static void fewer_lanes (const struct pool *pool, const struct workload_config *c,
                         const struct least_terms *x, const struct link_rates *rates,
                         int lanes, enum tp_span span, struct stage_tail *t)
{
    bool whole = span == SPAN_NONE;
    int per_node = pool->max_node_gpus / (whole ? c->deg.tp : 1);
    int n = workload_dense_shards (&c->deg);
    double layer, fixed, each[2], start[2];

    for (int i = 0; i < 2; i++)
        bound_sync_lanes (pool, rates, n, &x->volume, per_node, i ? lanes : per_node,
                          whole ? c->deg.tp : 1, &each[i], &start[i]);
    if (!isfinite (start[1]) || sync_is_hidden (c))
        return;
    least_first_params (pool, c, &layer, &fixed);
    t->sync_layer_s[span] += layer * fmax (0.0, each[1] - each[0]);
    t->sync_fixed_s[span] +=
        fixed * fmax (0.0, each[1] - each[0]) + fmax (0.0, start[1] - start[0]);
}

/* The rates of a kind of slot. */
static struct link_rates rates_of (const struct pool *pool,
                                   const struct slow_slots *slots, int kind)
{
    return link_rates_of (pool, kind && slots && slots->slower ? slots->from : 0);
}

/* All of stage 0's TP groups span nodes: the lowest over how many nodes, with the lanes
 * that leaves (bound.c, more_lanes). */
static double all_span (const struct pool *pool, const struct workload_config *c,
                        const struct least_terms *x, const struct slow_slots *slots,
                        const struct config_times *times,
                        const struct bound_pipeline *all, enum bound_level level)
{
    int gpus = pool->max_node_gpus, tp = c->deg.tp, lanes = gpus / tp;
    struct link_rates rates = link_rates_of (pool, 0);
    struct bound_pipeline s = *all;
    double least = INFINITY;

    memset (s.first_span, 0, sizeof s.first_span);
    s.first_span[SPAN_ALL] = true;
    for (int nodes = lanes > 0 ? 2 : 1; nodes <= tp; nodes++) {
        int indices = (tp + nodes - 1) / nodes; /* of a node, and so many lanes: */
        struct config_times across = *times;

        if (indices > gpus || gpus / indices <= lanes)
            continue;
        lanes = gpus / indices;
        if (nodes > 1)
            config_times_put_spans (bound_tp_across (pool, &rates, c, &x->volume, nodes),
                                    &across);
        if (!isfinite (across.span_fwd_s[0]))
            continue;
        for (int kind = 0; kind < 2; kind++) {
            struct link_rates own = rates_of (pool, slots, kind);
            struct stage_tail *t = &s.slot[kind].first;

            *t = all->slot[kind].first;
            t->span_fwd_s = across.span_fwd_s[kind];
            t->span_back_s = across.span_back_s[kind];
            fewer_lanes (pool, c, x, &own, lanes, SPAN_ALL, t);
        }
        least = fmin (least, bound_by_end (&s, level));
    }
    return least;
}

/* The lowest over the lanes of stage 0's synchronisation. */
static double by_lanes (const struct pool *pool, const struct workload_config *c,
                        const struct least_terms *x, const struct slow_slots *slots,
                        const struct config_times *times,
                        const struct bound_pipeline *all, enum bound_level level)
{
    int room = pool->max_node_gpus / c->deg.tp, members = workload_dense_shards (&c->deg);
    struct bound_pipeline s = *all;
    double least;
    int crossings = -1;

    s.first_span[SPAN_NONE] = s.first_span[SPAN_ALL] = false;
    least =
        fmin (bound_by_end (&s, level), all_span (pool, c, x, slots, times, all, level));
    memset (s.first_span, 0, sizeof s.first_span);
    s.first_span[SPAN_NONE] = true;
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
            struct link_rates rates = rates_of (pool, slots, kind);

            s.slot[kind].first = all->slot[kind].first;
            fewer_lanes (pool, c, x, &rates, lanes, SPAN_NONE, &s.slot[kind].first);
        }
        least = fmin (least, bound_by_end (&s, level));
    }
    return least;
}

double bound_any_schedule (const struct pool *pool, const struct workload_config *c,
                           const struct least_terms *x, const struct config_times *times,
                           const struct slow_slots *slots, int slow, const int *cap,
                           enum bound_level level)
{
    struct bound_pipeline s = bound_pipeline_of (pool, c, x, times, slots, slow, cap);
    bool tight = level > BOUND_FRACTIONS;

    s.n_experts = scheduled_experts (c, x, tight, s.experts);
    /* Where every stage has a tail of its own, stage 0 is nothing special. */
    if (!tight || s.per_node == 0 || !s.span[SPAN_NONE] ||
        workload_schedule_splits_backward (c->schedule))
        return bound_by_end (&s, level);
    return by_lanes (pool, c, x, slots, times, &s, level);
}
