/* Every time of a configuration at its best.
 *
 * Links are the best of each kind that there are (links.c), and each term of compute
 * is the least of any GPU, on a slow slot the least of the slow classes' GPUs.  What a slow
 * slot takes more than any is added layer by layer: times grow linearly with a stage's
 * layers. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <string.h>

#include "base/extremes.h"

/* @param tp_s, exchange_s  one all-reduce, one all-to-all */
static struct layer_times layer_times_of (const struct bounded *b,
                                          const struct costmodel_compute *k, int kind,
                                          double tp_s, double exchange_s)
{
    const struct workload_config *c = b->c;
    const struct workload_model *m = b->pool->problem->model;
    struct workload_stage one = workload_one_layer (m, kind);
    const struct costmodel_layer *l = m->pattern[0] ? &k->kind[kind]
                                      : kind == 1   ? &k->expert
                                                    : &k->dense;
    bool again = c->recompute != RECOMPUTE_NONE && c->recompute_layers == 0;
    double exchanges = one.expert ? 2.0 : 0.0, more;
    struct layer_times x;

    costmodel_tp_operations (m, c, &one, &x.fwd_ops, &x.back_ops);
    /* Recomputing some layers of a stage, it is one of the others. */
    if (!again && c->recompute == RECOMPUTE_FULL)
        x.back_ops = x.fwd_ops;
    x.fwd_s = l->fwd_s + x.fwd_ops * tp_s + exchanges * exchange_s;
    more = (again ? l->recompute_s : 0.0) + x.back_ops * tp_s +
           (workload_repeats_exchange (c) ? 2.0 : 1.0) * exchanges * exchange_s;
    x.back_s = l->back_s + more;
    x.input_s = l->weight_s + more;
    return x;
}

static void put_layers (const struct bounded *b, const struct costmodel_compute *k,
                        double speed, bool first, double tp_s, double exchange_s,
                        struct least_compute *out)
{
    struct costmodel_compute here = *k;

    costmodel_compute_least (k, speed, true, &here);
    for (int kind = 0; kind < WORKLOAD_KINDS; kind++) {
        struct layer_times *least = &out->layer[kind], l;

        if (b->pool->layers_of[kind] == 0)
            continue;
        l = layer_times_of (b, &here, kind, tp_s, exchange_s);
        if (first)
            *least = l;
        least->fwd_s = fmin (least->fwd_s, l.fwd_s);
        least->back_s = fmin (least->back_s, l.back_s);
        least->input_s = fmin (least->input_s, l.input_s);
    }
}

/* What of a layer is not compute, for each of its all-reduces. */
static double longest_operation (const struct bounded *b, const struct least_compute *all,
                                 double exchange_s)
{
    double most = 0.0;

    for (int kind = 0; kind < WORKLOAD_KINDS && b->c->deg.tp > 1; kind++) {
        const struct layer_times *l = &all->layer[kind];
        struct layer_times bare;

        if (b->pool->layers_of[kind] == 0)
            continue;
        bare = layer_times_of (b, &all->k, kind, 0.0, exchange_s);
        if (l->fwd_ops > 0)
            most = fmax (most, (l->fwd_s - bare.fwd_s) / l->fwd_ops);
        if (l->back_ops > 0)
            most = fmax (most, fmax (l->back_s - bare.back_s, l->input_s - bare.input_s) /
                                   l->back_ops);
    }
    return most;
}

/* A slot's slowest GPU is in one of its TP groups: the least over what it may be, of the classes
 * from..end-1.
 * @param exchange_s  one all-to-all; below 0: compute alone */
static struct least_compute least_compute (const struct bounded *b, int from, int end,
                                           double exchange_s)
{
    const struct pool *pool = b->pool;
    struct least_compute out = {0};

    for (int q = from; q < end; q++) {
        struct costmodel_compute k;
        struct link_rates rates = link_rates_of_class (pool, q);
        double tp_s = exchange_s < 0.0 ? 0.0 : bound_tp (b, &rates).least;

        pool_compute (pool, b->c, q, &k);
        /* The least of the rest is not the rest of the least. */
        k.dense.weight_s = k.dense.back_s - k.dense.weight_s;
        k.expert.weight_s = k.expert.back_s - k.expert.weight_s;
        for (int i = 0; i < WORKLOAD_KINDS; i++)
            k.kind[i].weight_s = k.kind[i].back_s - k.kind[i].weight_s;
        k.head_weight_s = k.head_back_s - k.head_weight_s;
        out.attention.fwd_s = fmax (out.attention.fwd_s, k.dense.attention_fwd_s);
        out.attention.back_s = fmax (out.attention.back_s, k.dense.attention_back_s);
        out.speed = fmax (out.speed, pool->best_speed[q]);
        put_layers (b, &k, pool->best_speed[q], q == from, tp_s, fmax (0.0, exchange_s),
                    &out);
        costmodel_compute_least (&k, pool->best_speed[q], q == from, &out.k);
        /* The optimiser runs at memory speed, which a slow GPU's factor leaves alone. */
        out.k.optimizer_s = fmin (out.k.optimizer_s, k.optimizer_s);
        out.k.expert_optimizer_s = fmin (out.k.expert_optimizer_s, k.expert_optimizer_s);
    }
    if (from < end)
        out.tp_s = longest_operation (b, &out, fmax (0.0, exchange_s));
    return out;
}

double bound_disorder_s (const struct pool *pool, const struct workload_config *c)
{
    struct bounded b = bounded_of (pool, c);
    int kind = workload_kind_of (pool->problem->model, pool->problem->model->layers - 1);
    double sum = 0.0, before = 0.0;

    for (int q = 0; q < pool->n_classes; q++) {
        struct link_rates rates = link_rates_of_class (pool, q);
        struct costmodel_compute k, here;
        struct layer_times l;
        double s;

        pool_compute (pool, c, q, &k);
        here = k;
        costmodel_compute_least (&k, pool->best_speed[q], true, &here);
        l = layer_times_of (&b, &here, kind, bound_tp (&b, &rates).least, 0.0);
        s = l.fwd_s + l.back_s;
        sum += s < before ? before - s : 0.0;
        before = s;
    }
    return sum;
}

bool bound_links_order (const struct pool *pool, const struct workload_config *c)
{
    return pool->by_links &&
           bound_disorder_s (pool->by_links, c) < bound_disorder_s (pool, c);
}

double least_work_s (const struct pool *pool, const struct workload_config *c)
{
    struct bounded b = {.pool = pool, .c = c};
    struct least_compute all = least_compute (&b, 0, pool->n_classes, -1.0);
    double sum = 0.0;

    for (int kind = 0; kind < WORKLOAD_KINDS; kind++)
        sum += pool->layers_of[kind] * (all.layer[kind].fwd_s + all.layer[kind].back_s);
    return sum;
}

static struct slot_times ends_of (const struct mapper_problem *p,
                                  const struct least_compute *l, double tp_s)
{
    return (struct slot_times){.micro_s = 0.5 * p->profile->time.microbatch_s / l->speed,
                               .embed_fwd_s = l->k.embed_fwd_s + tp_s,
                               .embed_back_s = l->k.embed_back_s,
                               .head_fwd_s = l->k.head_fwd_s,
                               .head_back_s = l->k.head_back_s + tp_s};
}

/* Any slot: the cheapest kind of layer, and what all layers take beyond it. */
static void fast_slot (struct least_terms *x)
{
    const struct mapper_problem *p = x->b.pool->problem;
    struct config_times *times = &x->times;
    struct slot_times *s = &times->slot[0];

    *s = ends_of (p, &x->all, x->tp.least);
    s->fwd_s = s->back_s = times->fwd_ops = times->back_ops = INFINITY;
    times->tp_s[0] = times->tp_s[1] = x->all.tp_s;
    for (int kind = 0; kind < WORKLOAD_KINDS; kind++) {
        int n = x->b.pool->layers_of[kind];
        struct layer_times l;

        if (n == 0)
            continue;
        l = x->all.layer[kind];
        s->fwd_s = fmin (s->fwd_s, l.fwd_s);
        s->back_s = fmin (s->back_s, l.back_s);
        times->dearer_s += n * (l.fwd_s + l.back_s);
        times->fwd_ops = fmin (times->fwd_ops, l.fwd_ops);
        times->back_ops = fmin (times->back_ops, l.back_ops);
    }
    times->dearer_s -= times->layers * (s->fwd_s + s->back_s);
}

struct line least_first_params (const struct bounded *b)
{
    const struct workload_model *m = b->pool->problem->model;
    const struct workload_degrees *d = &b->c->deg;
    struct workload_stage ends = {
        .embedding = true, .head = d->pp == 1 || workload_schedule_is_v (b->c->schedule)};
    struct line params = {workload_layer_params (m, d->tp),
                          workload_stage_params (m, b->c, &ends).dense};

    if (m->experts > 0)
        params.each = fmin (params.each, workload_expert_layer_params (m, d->tp));
    return params;
}

double least_head_params (const struct bounded *b)
{
    const struct workload_config *c = b->c;
    struct workload_stage head = {.head = true};

    return c->deg.pp == 1 || workload_schedule_is_v (c->schedule)
               ? 0.0
               : workload_stage_params (b->pool->problem->model, c, &head).dense;
}

static void experts_terms (struct least_terms *x)
{
    const struct workload_model *m = x->b.pool->problem->model;
    const struct workload_config *c = x->b.c;
    struct workload_stage one = {.expert = 1};
    int n = workload_all_layers (m).expert;

    if (n == 0)
        return;
    x->exchange_s = bound_exchange_s (&x->b);
    x->spanning_s = bound_exchange_spanning_s (&x->b);
    x->expert_params = workload_stage_params (m, c, &one).expert;
    /* How many of both kinds a stage has is not known here. */
    if (n == m->layers || c->deg.pp == 1)
        x->expert_share = n / (double) m->layers;
    x->told_share = x->expert_share;
    if (!(x->expert_share > 0.0) && !m->pattern[0] && m->expert_every == 1) {
        x->told_share = 1.0;
        x->dense_first = m->dense_layers;
    }
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++)
        x->ways[span] = span == SPAN_NONE || c->deg.tp > 1
                            ? bound_expert_ways (&x->b, span)
                            : x->ways[SPAN_NONE];
    x->span_helps = bound_ways_differ (&x->ways[SPAN_ONE], &x->ways[SPAN_NONE]);
}

struct line least_sync_terms (const struct bounded *b, const struct link_rates *r,
                              enum tp_span span, int taken)
{
    int gpus = b->pool->max_node_gpus / taken, groups = gpus / b->c->deg.tp;
    bool whole = span == SPAN_NONE;
    int n = workload_dense_shards (b->c), tp = b->c->deg.tp;
    int each = whole ? tp : 1; /* GPUs of a node */
    int per_node = whole ? groups : gpus, lanes = span == SPAN_ALL ? gpus : groups;
    int share = whole              ? tp
                : span == SPAN_ONE ? bound_rings_through (gpus, tp, tp, n)
                                   : 1; /* rings that leave it together */

    if (bound_copies (b) > 1)
        return bound_hybrid_sync (b, r, n, each, per_node, lanes, each);
    return bound_sync (b, r, n, each, per_node, lanes, share);
}

struct line least_experts_sync (const struct least_terms *x, double share,
                                const struct expert_way *w)
{
    if (!(share > 0.0))
        return (struct line){0.0, 0.0};
    return (struct line){share * x->expert_params * w->sync.each, w->sync.fixed};
}

struct both_ways least_exchanges_more (const struct least_terms *x, double share,
                                       double takes_s, double least_s)
{
    double fwd_s = 2.0 * share * fmax (0.0, takes_s - least_s);

    return (struct both_ways){fwd_s,
                              (workload_repeats_exchange (x->b.c) ? 2.0 : 1.0) * fwd_s};
}

bool experts_told_apart (const struct least_terms *x, bool tight)
{
    /* A TP group inside a node may hold whole groups of experts, so that there is one way alone,
     * and one that spans nodes may not; or it may fill the node, so that others are elsewhere. */
    bool differ = x->ways[SPAN_NONE].n > 1 || x->ways[SPAN_ALL].n > 1 ||
                  x->ways[SPAN_NONE].way[0].exchange_s > x->exchange_s ||
                  x->ways[SPAN_ALL].way[0].exchange_s > x->exchange_s;

    if (x->few && x->few->exchange_s > x->exchange_s)
        differ = true;
    return x->told_share > 0.0 && differ && (tight || x->b.c->deg.pp == 1);
}

void config_times_put_sync (const struct least_terms *x, struct line sync,
                            struct line first, int kind, enum tp_span span,
                            struct config_times *times)
{
    struct line params = least_first_params (&x->b);
    const struct expert_way *way = &x->ways[span].least;
    struct line experts = least_experts_sync (x, x->expert_share, way);
    struct line told = least_experts_sync (x, x->told_share, way);

    times->expert_sync_s[kind][span] = told.each - experts.each;
    times->other_layer_s[kind][span] = sync.each * params.each + experts.each;
    times->sync_layer_s[kind][span] = first.each * params.each + experts.each;
    times->sync_fixed_s[kind][span] =
        first.each * params.fixed + first.fixed + experts.fixed;
    /* Its ranks leave room for their twins too. */
    times->head_sync_s[kind][span] = first.each * least_head_params (&x->b);
}

void config_times_put_experts (const struct least_terms *x, const struct expert_way *way,
                               enum tp_span span, struct config_times *times)
{
    const double share[] = {x->expert_share, x->told_share};
    struct line more[2];

    for (int i = 0; i < 2; i++) {
        struct line any = least_experts_sync (x, share[i], &x->ways[span].least);
        struct line on = least_experts_sync (x, share[i], way);

        more[i] = (struct line){on.each - any.each, on.fixed - any.fixed};
    }
    times->sync_layer_s[1][span] += more[0].each;
    times->other_layer_s[1][span] += more[0].each;
    times->sync_fixed_s[1][span] += more[0].fixed;
    times->expert_sync_s[1][span] += more[1].each - more[0].each;
}

int first_takes (const struct least_terms *x)
{
    return x->twins == TWINS_TOGETHER ? 2 : 1;
}

/* Stage 0's synchronisation and optimiser on one kind of slot, per layer and fixed. */
static void put_tail (const struct least_terms *x, const struct link_rates *r,
                      const struct costmodel_compute *k, int kind,
                      struct config_times *times)
{
    const struct pool *pool = x->b.pool;
    struct costmodel_volume copies = costmodel_copy_volume (&x->b.volume);
    struct line params = least_first_params (&x->b);

    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        struct line sync = least_sync_terms (&x->b, r, span, 1);
        struct line first = least_sync_terms (&x->b, r, span, first_takes (x));

        if (kind == 0 || isfinite (sync.fixed))
            config_times_put_sync (x, sync, first, kind, span, times);
    }
    times->tail_layer_s[kind] = k->optimizer_s * params.each + x->expert_share *
                                                                   x->expert_params *
                                                                   k->expert_optimizer_s;
    times->expert_tail_s[kind] =
        (x->told_share - x->expert_share) * x->expert_params * k->expert_optimizer_s;
    times->tail_fixed_s[kind] =
        k->optimizer_s * params.fixed + pool->problem->profile->time.step_s;
    times->head_tail_s[kind] = k->optimizer_s * least_head_params (&x->b);
    if (x->b.volume.tied_bytes > 0) {
        double tied = bound_tied_s (pool, x->b.volume.tied_bytes, x->twins);

        times->tail_fixed_s[kind] += tied;
        times->head_tail_s[kind] += tied;
    }
    times->hides = costmodel_sync_window (pool->problem->profile, x->b.c, times->m);
    /* A stage's layers are known where there is one stage; elsewhere it is by chunks. */
    times->bare =
        costmodel_sync_bare (pool->problem->profile, x->b.c, &x->b.volume, times->layers);
    if (copies.dp_phases > 0) /* whose part of the sum is not told */
        times->bare =
            smaller (times->bare, costmodel_sync_bare (pool->problem->profile, x->b.c,
                                                       &copies, times->layers));
}

/* What a layer takes more when its group spans nodes. */
static void put_spans (double across_s, struct config_times *times)
{
    for (int kind = 0; kind < 2; kind++) {
        double more = fmax (0.0, across_s - times->tp_s[kind]);

        times->span_fwd_s[kind] = isfinite (more) ? times->fwd_ops * more : INFINITY;
        times->span_back_s[kind] = isfinite (more) ? times->back_ops * more : INFINITY;
    }
    /* Where slow slots need not span, one that does takes no less than a fast one does. */
    times->span_fwd_s[1] =
        fmax (times->span_fwd_s[1], times->span_fwd_s[0] - times->slow_more.fwd_s);
    times->span_back_s[1] =
        fmax (times->span_back_s[1], times->span_back_s[0] - times->slow_more.back_s);
}

/* Its TP group has links of such rates. */
static void put_rates (const struct least_terms *x, struct link_rates rates,
                       struct slow_slots *s)
{
    double least;

    s->rates = rates;
    least = bound_tp (&x->b, &s->rates).least;
    if (isfinite (least))
        s->tp_s = fmax (s->tp_s, least);
}

void slow_slots_init (const struct least_terms *x, int from, bool spans,
                      struct slow_slots *s)
{
    int classes = x->b.pool->n_classes;

    *s = (struct slow_slots){.from = from,
                             .slower = from < classes,
                             .spans = spans,
                             .k = least_compute (&x->b, from, classes, x->exchange_s),
                             .tp_s = x->tp.least};
    if (s->slower && !spans)
        put_rates (x, link_rates_of (x->b.pool, from), s); /* it touches the slow GPU */
}

void slow_slots_of_class (const struct least_terms *x, int class, struct slow_slots *s)
{
    *s = (struct slow_slots){.from = class,
                             .slower = true,
                             .k = least_compute (&x->b, class, class + 1, x->exchange_s),
                             .tp_s = x->tp.least};
    put_rates (x, link_rates_of_class (x->b.pool, class), s);
}

/* What exchanges of such a layer take more where a TP group spans nodes. */
static struct both_ways exchanges_apart (const struct least_terms *x, int kind)
{
    struct workload_stage one = workload_one_layer (x->b.pool->problem->model, kind);

    return one.expert ? least_exchanges_more (x, 1.0, x->spanning_s, x->exchange_s)
                      : (struct both_ways){0.0, 0.0};
}

struct layer_times slow_slots_more (const struct least_terms *x,
                                    const struct slow_slots *s, int kind)
{
    struct layer_times any = x->all.layer[kind], slow = s->k.layer[kind];
    struct layer_times more = {INFINITY, INFINITY, INFINITY, any.fwd_ops, any.back_ops};
    double across = fmax (0.0, x->tp.across - x->all.tp_s);
    struct both_ways apart = exchanges_apart (x, kind);

    if (s->alike)
        more.fwd_s = more.back_s = more.input_s = 0.0;

    if (s->slower) {
        more.fwd_s = fmax (0.0, slow.fwd_s - any.fwd_s);
        more.back_s = fmax (0.0, slow.back_s - any.back_s);
        more.input_s = fmax (0.0, slow.input_s - any.input_s);
    }
    if (s->spans) {
        more.fwd_s = fmin (more.fwd_s, any.fwd_ops * across + apart.fwd_s);
        more.back_s = fmin (more.back_s, any.back_ops * across + apart.back_s);
        more.input_s = fmin (more.input_s, any.back_ops * across + apart.back_s);
    }
    return more;
}

void least_terms_put_sends (const struct least_terms *x, double inside, int from,
                            struct config_times *times)
{
    times->send = bound_sends (&x->b, inside, x->tp.across);
    bound_pairs (&x->b, from, times->pair_s);
    if (!(x->apart.any_s > 0.0))
        return;
    times->send = x->apart;
    for (int i = 0; i < 4; i++)
        times->pair_s[i / 2][i % 2] = fmax (times->pair_s[i / 2][i % 2], x->apart.any_s);
}

void slow_slots_put (const struct least_terms *x, const struct slow_slots *s,
                     struct config_times *times)
{
    const struct mapper_problem *p = x->b.pool->problem;
    bool by_class = s->slower && !s->spans;
    double fwd = INFINITY, back = INFINITY;

    /* What groups that span may save of crossings is paid already, or less of it. */
    if (s->spans)
        times->send.crossing_s = times->send.per_node = 0.0;
    else if (s->slower)
        least_terms_put_sends (x, fmax (fmax (s->tp_s, s->k.tp_s), x->all.tp_s), s->from,
                               times);
    if (by_class)
        put_tail (x, &s->rates, &s->k.k, 1, times);
    times->tp_s[1] = s->spans   ? x->tp.across
                     : by_class ? fmax (x->all.tp_s, s->k.tp_s)
                                : x->all.tp_s; /* a slow slot may span already */
    for (int kind = 0; kind < WORKLOAD_KINDS; kind++) {
        struct layer_times more;

        if (x->b.pool->layers_of[kind] == 0)
            continue;
        more = slow_slots_more (x, s, kind);
        fwd = fmin (fwd, more.fwd_s);
        back = fmin (back, more.back_s);
        times->slow_more.fwd_s = fmax (times->slow_more.fwd_s, more.fwd_s);
        times->slow_more.back_s = fmax (times->slow_more.back_s, more.back_s);
    }
    put_spans (x->tp.across, times);
    times->slot[1] = by_class ? ends_of (p, &s->k, s->tp_s) : times->slot[0];
    times->slot[1].fwd_s = times->slot[0].fwd_s + fwd;
    times->slot[1].back_s = times->slot[0].back_s + back;
}

void least_terms_init (const struct pool *pool, const struct workload_config *c,
                       enum twins twins, struct least_terms *x)
{
    const struct mapper_problem *p = pool->problem;
    struct link_rates rates = link_rates_of (pool, 0);
    struct config_times *times = &x->times;

    *x = (struct least_terms){
        .b = bounded_of (pool, c), .twins = twins, .most_s = INFINITY};
    x->tp = bound_tp (&x->b, &rates);
    *times = (struct config_times){
        .m = workload_microbatches (p->job, c),
        .p = c->deg.pp,
        .layers = p->model->layers,
        .gpipe = c->schedule == SCHEDULE_GPIPE,
        .total_only = c->schedule != SCHEDULE_GPIPE && c->schedule != SCHEDULE_1F1B,
        .profile = p->profile,
    };
    experts_terms (x);
    x->all = least_compute (&x->b, 0, pool->n_classes, x->exchange_s);
    x->cp = bound_cp (&x->b, x->all.attention);
    fast_slot (x);
    times->slot[0].fwd_s += x->cp.fwd_s;
    times->slot[0].back_s += x->cp.back_s;
    times->slot[1] = times->slot[0];
    put_spans (x->tp.across, times);
    least_terms_put_sends (x, fmax (x->tp.inside, x->all.tp_s), 0, times);
    put_tail (x, &rates, &x->all.k, 0, times);
    memcpy (times->sync_layer_s[1], times->sync_layer_s[0],
            sizeof times->sync_layer_s[0]);
    memcpy (times->sync_fixed_s[1], times->sync_fixed_s[0],
            sizeof times->sync_fixed_s[0]);
    memcpy (times->other_layer_s[1], times->other_layer_s[0],
            sizeof times->other_layer_s[0]);
    memcpy (times->expert_sync_s[1], times->expert_sync_s[0],
            sizeof times->expert_sync_s[0]);
    memcpy (times->head_sync_s[1], times->head_sync_s[0], sizeof times->head_sync_s[0]);
    times->tail_layer_s[1] = times->tail_layer_s[0];
    times->expert_tail_s[1] = times->expert_tail_s[0];
    times->tail_fixed_s[1] = times->tail_fixed_s[0];
    times->head_tail_s[1] = times->head_tail_s[0];
}

void least_terms_keep_inside (struct least_terms *x)
{
    if (x->b.c->deg.tp == 1)
        return;
    x->tp.across = INFINITY;
    put_spans (INFINITY, &x->times);
}

void bound_caps (const struct pool *pool, int pp, int from, bool spans, const int *caps,
                 int *cap)
{
    for (int k = 0; k < pp; k++) {
        cap[k] = cap[pp + k] = 0;
        for (int q = 0; q < pool->n_classes; q++) {
            int here = caps[q * pp + k];

            cap[k] = here > cap[k] ? here : cap[k];
            if ((q >= from || spans) && here > cap[pp + k])
                cap[pp + k] = here;
        }
    }
}
