/* Every time of a configuration at its best.
 *
 * Links are the best of each kind that there are (links.c), and each term of compute
 * is the least of any GPU, on a slow slot the least of the slow classes' GPUs.  What a slow
 * slot takes more than any is added layer by layer: times grow linearly with a stage's
 * layers. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <string.h>

static void least_compute (const struct pool *pool, const struct workload_config *c,
                           int from, int to, struct least_compute *out)
{
    const struct mapper_problem *p = pool->problem;

    *out = (struct least_compute){0};
    for (int q = from; q < to; q++) {
        struct costmodel_compute k;

        costmodel_compute (p->model, p->job, c, p->profile, pool->class[q].type, &k);
        /* The least of the rest is not the rest of the least. */
        k.dense.weight_s = k.dense.back_s - k.dense.weight_s;
        k.expert.weight_s = k.expert.back_s - k.expert.weight_s;
        k.head_weight_s = k.head_back_s - k.head_weight_s;
        out->attention_fwd_s = fmax (out->attention_fwd_s, k.dense.attention_fwd_s);
        out->attention_back_s = fmax (out->attention_back_s, k.dense.attention_back_s);
        out->speed = fmax (out->speed, pool->best_speed[q]);
        costmodel_compute_least (&k, pool->best_speed[q], q == from, &out->k);
        /* The optimiser runs at memory speed, which a slow GPU's factor leaves alone. */
        out->k.optimizer_s = fmin (out->k.optimizer_s, k.optimizer_s);
        out->k.expert_optimizer_s =
            fmin (out->k.expert_optimizer_s, k.expert_optimizer_s);
    }
}

struct layer_times least_layer_times (const struct mapper_problem *p,
                                      const struct workload_config *c,
                                      const struct costmodel_compute *k, bool expert,
                                      double tp_s, double exchange_s)
{
    struct workload_stage one = {.dense = !expert, .expert = expert};
    const struct costmodel_layer *l = expert ? &k->expert : &k->dense;
    bool again = c->recompute != RECOMPUTE_NONE && c->recompute_layers == 0;
    double exchanges = expert ? 2.0 : 0.0, more;
    struct layer_times x;

    costmodel_tp_operations (p->model, c, &one, &x.fwd_ops, &x.back_ops);
    /* Recomputing some layers of a stage, it is one of the others. */
    if (!again && c->recompute == RECOMPUTE_FULL)
        x.back_ops = x.fwd_ops;
    x.fwd_s = l->fwd_s + x.fwd_ops * tp_s + exchanges * exchange_s;
    more = (again ? l->recompute_s : 0.0) + x.back_ops * tp_s +
           (c->recompute == RECOMPUTE_FULL ? 2.0 : 1.0) * exchanges * exchange_s;
    x.back_s = l->back_s + more;
    x.input_s = l->weight_s + more;
    return x;
}

int count_layers (const struct workload_model *m, bool expert)
{
    int n = 0;

    for (int i = 0; i < m->layers; i++)
        n += workload_is_expert_layer (m, i) == expert;
    return n;
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

/* Any slot: the cheaper kind of layer, and what all layers take beyond it. */
static void fast_slot (const struct pool *pool, const struct workload_config *c,
                       const struct least_compute *l, double inside, double across,
                       double exchange_s, struct config_times *times)
{
    const struct mapper_problem *p = pool->problem;
    double tp = fmin (inside, across);
    struct slot_times *s = &times->slot[0];

    *s = ends_of (p, l, tp);
    s->fwd_s = s->back_s = times->fwd_ops = times->back_ops = INFINITY;
    times->tp_s[0] = times->tp_s[1] = tp;
    for (int expert = 0; expert < 2; expert++) {
        int n = count_layers (p->model, expert);
        struct layer_times x = least_layer_times (p, c, &l->k, expert, tp, exchange_s);

        if (n == 0)
            continue;
        s->fwd_s = fmin (s->fwd_s, x.fwd_s);
        s->back_s = fmin (s->back_s, x.back_s);
        times->dearer_s += n * (x.fwd_s + x.back_s);
        times->fwd_ops = fmin (times->fwd_ops, x.fwd_ops);
        times->back_ops = fmin (times->back_ops, x.back_ops);
    }
    times->dearer_s -= times->layers * (s->fwd_s + s->back_s);
}

void least_first_params (const struct pool *pool, const struct workload_config *c,
                         double *layer, double *fixed)
{
    const struct workload_model *m = pool->problem->model;
    struct workload_stage ends = {.embedding = true,
                                  .head = c->deg.pp == 1 ||
                                          workload_schedule_is_v (c->schedule)};

    *fixed = workload_stage_params (m, c, &ends).dense;
    *layer = workload_layer_params (m, c->deg.tp);
    if (m->experts > 0)
        *layer = fmin (*layer, workload_expert_layer_params (m, c->deg.tp));
}

static void experts_terms (const struct pool *pool, const struct workload_config *c,
                           struct least_terms *x)
{
    const struct workload_model *m = pool->problem->model;
    struct workload_stage one = {.expert = 1};
    int n = count_layers (m, true);

    x->whole.least = x->span.least = (struct expert_way){0};
    x->exchange_s = x->expert_params = x->expert_share = 0.0;
    x->whole.n = x->span.n = 0;
    x->span_helps = false;
    if (n == 0)
        return;
    x->exchange_s = bound_exchange_s (pool, c, &x->volume);
    x->expert_params = workload_stage_params (m, c, &one).expert;
    /* How many of both kinds a stage has is not known here. */
    if (n == m->layers || c->deg.pp == 1)
        x->expert_share = n / (double) m->layers;
    bound_expert_ways (pool, c, &x->volume, true, &x->whole);
    x->span = x->whole;
    if (c->deg.tp > 1)
        bound_expert_ways (pool, c, &x->volume, false, &x->span);
    x->span_helps = bound_ways_differ (&x->span, &x->whole);
}

void least_sync_terms (const struct pool *pool, const struct link_rates *r,
                       const struct workload_config *c, const struct costmodel_volume *v,
                       enum tp_span span, double *each, double *start)
{
    int gpus = pool->max_node_gpus, groups = gpus / c->deg.tp;
    bool whole = span == SPAN_NONE;

    bound_sync_lanes (pool, r, workload_dense_shards (&c->deg), v, whole ? groups : gpus,
                      span == SPAN_ALL ? gpus : groups, whole ? c->deg.tp : 1, each,
                      start);
}

bool sync_is_hidden (const struct workload_config *c)
{
    return c->zero == 3 && c->deg.pp > 1;
}

void least_experts_sync (const struct workload_config *c, const struct least_terms *x,
                         const struct expert_way *w, double *layer_s, double *fixed_s)
{
    bool there = x->expert_share > 0.0 && !sync_is_hidden (c);

    *layer_s = there ? x->expert_share * x->expert_params * w->per_param : 0.0;
    *fixed_s = there ? w->start_s : 0.0;
}

void least_exchanges_more (const struct workload_config *c, const struct least_terms *x,
                           const struct expert_way *w, double *fwd_s, double *back_s)
{
    *fwd_s = 2.0 * x->expert_share * fmax (0.0, w->exchange_s - x->exchange_s);
    *back_s = (c->recompute == RECOMPUTE_FULL ? 2.0 : 1.0) * *fwd_s;
}

bool experts_told_apart (const struct workload_config *c, const struct least_terms *x,
                         bool tight)
{
    return x->expert_share > 0.0 && x->whole.n > 1 && (tight || c->deg.pp == 1);
}

void config_times_put_sync (const struct pool *pool, const struct workload_config *c,
                            const struct least_terms *x, double each, double start,
                            int kind, enum tp_span span, struct config_times *times)
{
    double layer, fixed, expert_layer_s, expert_fixed_s;

    least_first_params (pool, c, &layer, &fixed);
    if (sync_is_hidden (c))
        each = start = 0.0;
    least_experts_sync (c, x, span == SPAN_NONE ? &x->whole.least : &x->span.least,
                        &expert_layer_s, &expert_fixed_s);
    times->sync_layer_s[kind][span] = each * layer + expert_layer_s;
    times->sync_fixed_s[kind][span] = each * fixed + start + expert_fixed_s;
}

/* Stage 0's synchronisation and optimiser on one kind of slot, per layer and fixed. */
static void put_tail (const struct pool *pool, const struct link_rates *r,
                      const struct workload_config *c, const struct costmodel_compute *k,
                      const struct least_terms *x, int kind, struct config_times *times)
{
    const struct costmodel_volume *v = &x->volume;
    double layer, fixed;

    least_first_params (pool, c, &layer, &fixed);
    for (enum tp_span span = SPAN_NONE; span < SPANS; span++) {
        double each, start;

        least_sync_terms (pool, r, c, v, span, &each, &start);
        if (kind == 0 || isfinite (start))
            config_times_put_sync (pool, c, x, each, start, kind, span, times);
    }
    times->tail_layer_s[kind] = k->optimizer_s * layer + x->expert_share *
                                                             x->expert_params *
                                                             k->expert_optimizer_s;
    times->tail_fixed_s[kind] =
        k->optimizer_s * fixed + pool->problem->profile->time.step_s;
    if (v->tied_bytes > 0)
        times->tail_fixed_s[kind] += bound_tied_s (pool, v->tied_bytes);
    times->hides = c->zero == 3 ? times->m : 1.0;
}

void config_times_put_spans (double across_s, struct config_times *times)
{
    for (int kind = 0; kind < 2; kind++) {
        double more = fmax (0.0, across_s - times->tp_s[kind]);

        times->span_fwd_s[kind] = isfinite (more) ? times->fwd_ops * more : INFINITY;
        times->span_back_s[kind] = isfinite (more) ? times->back_ops * more : INFINITY;
    }
}

void slow_slots_init (const struct pool *pool, const struct workload_config *c,
                      const struct least_terms *x, int from, bool spans,
                      struct slow_slots *s)
{
    double inside, across;

    *s = (struct slow_slots){.from = from,
                             .slower = from < pool->n_classes,
                             .spans = spans,
                             .tp_s = fmin (x->inside, x->across)};
    least_compute (pool, c, from, pool->n_classes, &s->k);
    if (!s->slower || spans)
        return;
    s->rates = link_rates_of (pool, from); /* its group touches the slow GPU */
    bound_tp (pool, &s->rates, c, &x->volume, &inside, &across);
    if (isfinite (fmin (inside, across)))
        s->tp_s = fmax (s->tp_s, fmin (inside, across));
}

struct layer_times slow_slots_more (const struct pool *pool,
                                    const struct workload_config *c,
                                    const struct least_terms *x,
                                    const struct slow_slots *s, bool expert)
{
    const struct mapper_problem *p = pool->problem;
    double tp = fmin (x->inside, x->across);
    struct layer_times any =
        least_layer_times (p, c, &x->all.k, expert, tp, x->exchange_s);
    struct layer_times slow =
        least_layer_times (p, c, &s->k.k, expert, s->tp_s, x->exchange_s);
    struct layer_times more = {INFINITY, INFINITY, INFINITY, any.fwd_ops, any.back_ops};

    if (s->slower) {
        more.fwd_s = fmax (0.0, slow.fwd_s - any.fwd_s);
        more.back_s = fmax (0.0, slow.back_s - any.back_s);
        more.input_s = fmax (0.0, slow.input_s - any.input_s);
    }
    if (s->spans) {
        more.fwd_s = fmin (more.fwd_s, any.fwd_ops * (x->across - tp));
        more.back_s = fmin (more.back_s, any.back_ops * (x->across - tp));
        more.input_s = fmin (more.input_s, any.back_ops * (x->across - tp));
    }
    return more;
}

void slow_slots_put (const struct pool *pool, const struct workload_config *c,
                     const struct least_terms *x, const struct slow_slots *s,
                     struct config_times *times)
{
    bool by_class = s->slower && !s->spans;
    double fwd = INFINITY, back = INFINITY;

    /* What groups that span may save of crossings is paid already, or less of it. */
    if (s->spans)
        times->send.crossing_s = times->send.per_node = 0.0;
    else if (s->slower)
        bound_sends (pool, c, &x->volume, s->tp_s, x->across, &times->send);
    if (by_class) {
        bound_pairs (pool, c, &x->volume, s->from, times->pair_s);
        put_tail (pool, &s->rates, c, &s->k.k, x, 1, times);
    }
    times->tp_s[1] = s->spans ? x->across : s->tp_s; /* a slow slot may span already */
    config_times_put_spans (x->across, times);
    for (int expert = 0; expert < 2; expert++) {
        struct layer_times more;

        if (count_layers (pool->problem->model, expert) == 0)
            continue;
        more = slow_slots_more (pool, c, x, s, expert);
        fwd = fmin (fwd, more.fwd_s);
        back = fmin (back, more.back_s);
    }
    times->slot[1] = by_class ? ends_of (pool->problem, &s->k, s->tp_s) : times->slot[0];
    times->slot[1].fwd_s = times->slot[0].fwd_s + fwd;
    times->slot[1].back_s = times->slot[0].back_s + back;
}

void least_terms_init (const struct pool *pool, const struct workload_config *c,
                       struct least_terms *x)
{
    const struct mapper_problem *p = pool->problem;
    struct link_rates rates = link_rates_of (pool, 0);
    struct costmodel_volume *v = &x->volume;
    struct config_times *times = &x->times;

    costmodel_volume (p->model, p->job, c, p->profile, v);
    least_compute (pool, c, 0, pool->n_classes, &x->all);
    bound_tp (pool, &rates, c, v, &x->inside, &x->across);
    *times = (struct config_times){
        .m = workload_microbatches (p->job, c),
        .p = c->deg.pp,
        .layers = p->model->layers,
        .gpipe = c->schedule == SCHEDULE_GPIPE,
        .total_only = c->schedule != SCHEDULE_GPIPE && c->schedule != SCHEDULE_1F1B,
        .profile = p->profile,
    };
    experts_terms (pool, c, x);
    fast_slot (pool, c, &x->all, x->inside, x->across, x->exchange_s, times);
    bound_cp (pool, c, v, x->all.attention_fwd_s, x->all.attention_back_s, &x->cp_fwd_s,
              &x->cp_back_s);
    times->slot[0].fwd_s += x->cp_fwd_s;
    times->slot[0].back_s += x->cp_back_s;
    times->slot[1] = times->slot[0];
    config_times_put_spans (x->across, times);
    bound_sends (pool, c, v, x->inside, x->across, &times->send);
    bound_pairs (pool, c, v, 0, times->pair_s);
    put_tail (pool, &rates, c, &x->all.k, x, 0, times);
    memcpy (times->sync_layer_s[1], times->sync_layer_s[0],
            sizeof times->sync_layer_s[0]);
    memcpy (times->sync_fixed_s[1], times->sync_fixed_s[0],
            sizeof times->sync_fixed_s[0]);
    times->tail_layer_s[1] = times->tail_layer_s[0];
    times->tail_fixed_s[1] = times->tail_fixed_s[0];
}
