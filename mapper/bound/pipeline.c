/* A pool's configuration as a struct bound_pipeline, and its bound. */
#include "mapper/bound/bound_private.h"

#include <math.h>

#include "base/extremes.h"

#define SPAN_WAYS 3 /* of experts where TP groups span nodes: those that are told apart */

/* A stage's tail as by_end.c takes it: stage 0's, or (fixed 0) that of one without
 * embedding. */
static struct stage_tail tail_of (const struct least_terms *x,
                                  const struct config_times *times, int kind, bool first)
{
    const struct workload_config *c = x->b.c;
    struct link_rates rates = link_rates_of (x->b.pool, 0);
    struct stage_tail t = {.span = {times->span_fwd_s[kind], times->span_back_s[kind]},
                           .layer_s = times->tail_layer_s[kind],
                           .expert_s = times->expert_tail_s[kind],
                           .fixed_s = first ? times->tail_fixed_s[kind]
                                            : times->profile->time.step_s};

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        struct line sync = {0.0, 0.0};

        if (!first && (c->zero < 3 || c->deg.pp == 1))
            sync = least_sync_terms (&x->b, &rates, span, 1);
        t.sync_layer_s[span] =
            first ? times->sync_layer_s[kind][span] : times->other_layer_s[kind][span];
        t.expert_sync_s[span] = times->expert_sync_s[kind][span];
        t.sync_fixed_s[span] = first ? times->sync_fixed_s[kind][span] : sync.fixed;
    }
    return t;
}

/* The last stage's out of another one's. */
static struct stage_tail with_head (struct stage_tail t, const struct config_times *times,
                                    int kind)
{
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        t.sync_fixed_s[span] += times->head_sync_s[kind][span];
    t.fixed_s += times->head_tail_s[kind];
    return t;
}

/* The ways to place a stage's experts as by_end.c takes them, where TP groups lie inside nodes or
 * span them.  @return how many */
static int scheduled_experts (const struct least_terms *x, const struct slow_slots *slots,
                              enum tp_span span, struct bound_experts *out)
{
    const struct expert_ways *any = &x->ways[span];
    const struct expert_ways *ways[SLOT_KINDS] = {any, any, any};
    /* Of slots with a TP group that spans nodes their layers have it (slow_slots_more). */
    double slot_exchange_s = slots && slots->spans ? x->spanning_s : x->exchange_s;

    if (slots && slots->on && slots->on->tells_experts)
        ways[SLOW_SLOT] = &slots->on->experts[span];
    if (x->on && x->on->node.tells_experts)
        ways[ON_NEEDED] = &x->on->node.experts[span];
    for (int i = 0; i < any->n; i++)
        for (enum slot_kind kind = ANY_SLOT; kind < SLOT_KINDS; kind++) {
            struct line all = least_experts_sync (x, x->told_share, &ways[kind]->least);
            struct line sync = least_experts_sync (x, x->told_share, &ways[kind]->way[i]);

            out[i].more[kind] = least_exchanges_more (
                x, x->told_share, ways[kind]->way[i].exchange_s,
                kind == SLOW_SLOT ? slot_exchange_s : x->exchange_s);
            out[i].sync_layer_s[kind] = sync.each - all.each;
            out[i].sync_fixed_s[kind] = sync.fixed - all.fixed;
        }
    for (int i = 0; i < any->n && x->few && span == SPAN_NONE; i++) {
        out[i].many = i < x->few->ways_from;
        out[i].few = least_exchanges_more (
            x, x->told_share, fmax (any->way[i].exchange_s, x->few->exchange_s),
            x->exchange_s);
    }
    return any->n;
}

/* The first ways, and all others as the last of SPAN_WAYS, each figure at its least.
 * @return how many */
static int first_and_rest (struct bound_experts *way, int n)
{
    for (int i = SPAN_WAYS; i < n; i++)
        for (enum slot_kind k = ANY_SLOT; k < SLOT_KINDS; k++) {
            struct bound_experts *a = &way[SPAN_WAYS - 1], *b = &way[i];

            a->more[k].fwd_s = fmin (a->more[k].fwd_s, b->more[k].fwd_s);
            a->more[k].back_s = fmin (a->more[k].back_s, b->more[k].back_s);
            a->sync_layer_s[k] = fmin (a->sync_layer_s[k], b->sync_layer_s[k]);
            a->sync_fixed_s[k] = fmin (a->sync_fixed_s[k], b->sync_fixed_s[k]);
        }
    return n < SPAN_WAYS ? n : SPAN_WAYS;
}

static void put_tails (const struct least_terms *x, const struct config_times *times,
                       int kind, struct bound_slot *s)
{
    s->first = tail_of (x, times, kind, true);
    s->other = tail_of (x, times, kind, false);
    s->last = with_head (s->other, times, kind);
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
                           .head_input_s = k->head_weight_s};

    put_tails (x, times, kind, &s);
    for (int i = 0; i < WORKLOAD_KINDS; i++) {
        int layer = x->b.pool->layers_of[i] > 0 ? i : any;
        struct layer_times l = x->all.layer[layer], more = {0};

        if (slow)
            more = slow_slots_more (x, slow, layer);
        s.layer[i] = (struct bound_layer){l.fwd_s + x->cp.fwd_s + more.fwd_s,
                                          l.back_s + x->cp.back_s + more.back_s,
                                          l.input_s + x->cp.back_s + more.input_s};
    }
    return s;
}

/* May a layer hide more of what follows a stage than the stage ends later by it at least?  That is
 * the time of all backwards but one: in row (2) of rows.c the first one is of another stage's layer
 * if it is not of this one's, and forwards may all come before.  Of a backward that is put off the
 * weights' part is the stage's own. */
static bool hides_more (const struct bound_pipeline *x)
{
    bool split = workload_schedule_splits_backward (x->schedule);
    double later = INFINITY, most = 0.0;

    for (int i = 0; i < WORKLOAD_KINDS; i++) {
        const struct bound_layer *l = &x->slot[0].layer[i];

        later = smaller (later, x->m * l->back_s - (split ? l->input_s : l->back_s));
    }
    for (int q = 0; q < x->n_hiding[SPAN_NONE]; q++)
        most = fmax (most, x->hiding[q].layer_s);
    return x->profile->time.dp_overlap * x->hides * most > later;
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
        .hides = times->hides,
        .bare = times->bare,
        .most_s = INFINITY,
        .dense_first = x->dense_first,
        .cap = cap,
    };

    bound_hiding (&x->b, s.hiding, s.n_hiding);
    s.hides_more = hides_more (&s);
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

double bound_any_schedule (const struct least_terms *x, const struct config_times *times,
                           const struct slow_slots *slots, int slow)
{
    struct bound_pipeline s = bound_pipeline_of (x, times, slots, slow, x->cap);

    s.most_s = x->most_s;
    s.work = x->work;
    if (x->on) {
        s.has_on = true;
        s.on = x->on->stage;
        put_tails (x, &x->on->times, 1, &s.on_slot);
        s.known_s = x->on->known_s;
    }
    if (x->few) {
        s.has_few = true;
        s.few_spans = x->few->spans;
        s.few = x->few->stage;
        s.apart_s = x->few->apart_s;
        if (!s.few_spans)
            put_tails (x, &x->few->times, 1, &s.few_slot);
        s.known_s = x->few->known_s;
    }
    s.known_s = fmax (s.known_s, x->known_s);
    if (experts_told_apart (x, x->level > BOUND_FRACTIONS)) {
        s.n_experts[SPAN_NONE] =
            scheduled_experts (x, slots, SPAN_NONE, s.experts[SPAN_NONE]);
        /* More of both take longer, for the same bounds mostly. */
        for (enum tp_span span = SPAN_ONE;
             span < SPANS && x->level >= (s.v > 1 ? BOUND_PLAYED : BOUND_SPLITS) &&
             x->b.c->deg.tp > 1;
             span++)
            s.n_experts[span] = first_and_rest (
                s.experts[span], scheduled_experts (x, slots, span, s.experts[span]));
    }
    return bound_by_end (&s, x->level);
}
