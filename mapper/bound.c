/* A lower bound of one configuration over every placement and every split of the layers.
 *
 * Every time is taken at its best: links of each kind (bound_links.c), and compute by how
 * many GPUs of each class there are.  Slots (one stage of one replica: TP x CP GPUs) are of
 * two kinds: fast ones, whose TP groups lie inside nodes and have no GPU slower than some
 * class, and slow ones.  When the fast slots are too few, some replica has at least
 *
 *     ceil ((slots needed - fast slots) / replicas)
 *
 * stages on slow slots, and the step is at least that replica's: bound_stages.c has the
 * pipeline.  Every class that can divide fast from slow is tried.
 *
 * The step is at least the end of stage 0 plus its synchronisation and optimiser, which
 * grow with its layers.  A TP group may span nodes in a placement by hand, and then its
 * data-parallel groups see other links.  So the bound is the least of three cases: (A)
 * stage 0's TP groups all lie inside nodes, so that the tp groups of its synchronisation
 * share a node's way out, with as many lanes as TP groups fit a node; (B) one of them
 * spans nodes, and pays for that in every layer of stage 0 in its replica; (C) the rings
 * have more lanes than that.  Then a node has more ranks of one TP index than groups fit
 * it, of every index that it has, so it cannot have all: every TP group of stage 0 spans.
 */
#include "mapper/bound_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The least of each compute term over classes from..to-1; in place of what zero-bubble
 * schedules put off (weight_s, head_weight_s), the rest of backward. */
struct least_compute {
    struct costmodel_compute k;
    double speed;
    double attention_fwd_s, attention_back_s; /* the largest: what hides CP */
};

static void least_compute (const struct pool *pool, const struct workload_config *c,
                           int from, int to, struct least_compute *out)
{
    const struct mapper_problem *p = pool->problem;

    *out = (struct least_compute){0};
    for (int q = from; q < to; q++) {
        struct costmodel_compute k;
        double *a = (double *) &out->k, *b = (double *) &k;
        double optimizer_s, expert_optimizer_s;

        costmodel_compute (p->model, p->job, c, p->profile, pool->class[q].type, &k);
        optimizer_s = k.optimizer_s;
        /* The least of the rest is not the rest of the least. */
        k.dense.weight_s = k.dense.back_s - k.dense.weight_s;
        k.expert.weight_s = k.expert.back_s - k.expert.weight_s;
        k.head_weight_s = k.head_back_s - k.head_weight_s;
        expert_optimizer_s = k.expert_optimizer_s;
        out->attention_fwd_s = fmax (out->attention_fwd_s, k.dense.attention_fwd_s);
        out->attention_back_s = fmax (out->attention_back_s, k.dense.attention_back_s);
        out->speed = fmax (out->speed, pool->best_speed[q]);
        for (size_t i = 0; i < sizeof k / sizeof (double); i++) {
            b[i] /= pool->best_speed[q];
            a[i] = q == from ? b[i] : fmin (a[i], b[i]);
        }
        /* The optimiser runs at memory speed, which a slow GPU's factor leaves alone. */
        out->k.optimizer_s = fmin (out->k.optimizer_s, optimizer_s);
        out->k.expert_optimizer_s = fmin (out->k.expert_optimizer_s, expert_optimizer_s);
    }
}

/* One layer of a kind, with its all-reduces and all-to-alls; input_s: back_s without what
 * zero-bubble schedules put off. */
struct layer_pace {
    double fwd_s, back_s, input_s, fwd_ops, back_ops;
};

static struct layer_pace layer_pace (const struct mapper_problem *p,
                                     const struct workload_config *c,
                                     const struct costmodel_compute *k, bool expert,
                                     double tp_s, double exchange_s)
{
    struct workload_stage one = {.dense = !expert, .expert = expert};
    const struct costmodel_layer *l = expert ? &k->expert : &k->dense;
    bool again = c->recompute != RECOMPUTE_NONE && c->recompute_layers == 0;
    double exchanges = expert ? 2.0 : 0.0, more;
    struct layer_pace x;

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

static int count_layers (const struct workload_model *m, bool expert)
{
    int n = 0;

    for (int i = 0; i < m->layers; i++)
        n += workload_is_expert_layer (m, i) == expert;
    return n;
}

static struct slot_pace ends_of (const struct mapper_problem *p,
                                 const struct least_compute *l, double tp_s)
{
    return (struct slot_pace){.micro_s = 0.5 * p->profile->time.microbatch_s / l->speed,
                              .embed_fwd_s = l->k.embed_fwd_s + tp_s,
                              .embed_back_s = l->k.embed_back_s,
                              .head_fwd_s = l->k.head_fwd_s,
                              .head_back_s = l->k.head_back_s + tp_s};
}

/* Any slot: the cheaper kind of layer, and what all layers take beyond it. */
static void fast_slot (const struct pool *pool, const struct workload_config *c,
                       const struct least_compute *l, double inside, double across,
                       double exchange_s, struct best *b)
{
    const struct mapper_problem *p = pool->problem;
    double tp = fmin (inside, across);
    struct slot_pace *s = &b->slot[0];

    *s = ends_of (p, l, tp);
    s->fwd_s = s->back_s = b->fwd_ops = b->back_ops = INFINITY;
    b->tp_s[0] = b->tp_s[1] = tp;
    for (int expert = 0; expert < 2; expert++) {
        int n = count_layers (p->model, expert);
        struct layer_pace x = layer_pace (p, c, &l->k, expert, tp, exchange_s);

        if (n == 0)
            continue;
        s->fwd_s = fmin (s->fwd_s, x.fwd_s);
        s->back_s = fmin (s->back_s, x.back_s);
        b->more_s += n * (x.fwd_s + x.back_s);
        b->fwd_ops = fmin (b->fwd_ops, x.fwd_ops);
        b->back_ops = fmin (b->back_ops, x.back_ops);
    }
    b->more_s -= b->layers * (s->fwd_s + s->back_s);
}

/* Parameters of stage 0 on a rank, at least: of a layer (of one with experts what it holds
 * beside the routed ones), and fixed. */
static void first_params (const struct pool *pool, const struct workload_config *c,
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

/* A configuration at its best, and what tells its slots apart. */
struct bests {
    struct best b;
    struct least_compute all;
    double inside, across;
    double cp_fwd_s, cp_back_s;
    struct costmodel_volume volume;
    /* Experts. */
    double exchange_s;              /* their all-to-all, wherever they are */
    double expert_params;           /* of a layer's experts on a rank */
    double expert_share;            /* of stage 0's layers that have them, where known */
    struct expert_ways whole, span; /* stage 0's TP groups inside nodes; any */
    bool span_helps;                /* has the second what the first has not? */
};

static void bests_experts (const struct pool *pool, const struct workload_config *c,
                           struct bests *x)
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
    /* What a stage has of both kinds is its own: bound_schedule.c. */
    if (n == m->layers || c->deg.pp == 1)
        x->expert_share = n / (double) m->layers;
    bound_expert_ways (pool, c, &x->volume, true, &x->whole);
    x->span = x->whole;
    if (c->deg.tp > 1)
        bound_expert_ways (pool, c, &x->volume, false, &x->span);
    x->span_helps = bound_ways_differ (&x->span, &x->whole);
}

/* Is synchronisation hidden under more of a stage's work than every end contains? */
static bool is_hidden (const struct workload_config *c)
{
    return c->zero == 3 && c->deg.pp > 1;
}

/* Seconds that experts add to stage 0's synchronisation, as far as its layers with them
 * are known. */
static void experts_sync (const struct workload_config *c, const struct bests *x,
                          const struct expert_way *w, double *layer_s, double *fixed_s)
{
    bool there = x->expert_share > 0.0 && !is_hidden (c);

    *layer_s = there ? x->expert_share * x->expert_params * w->per_param : 0.0;
    *fixed_s = there ? w->start_s : 0.0;
}

/* Synchronisation of stage 0 in case `way` out of its seconds per parameter and its
 * start, the experts' at their least. */
static void sync_of (const struct pool *pool, const struct workload_config *c,
                     const struct bests *x, double each, double start, int kind, int way,
                     struct best *b)
{
    double layer, fixed, expert_layer_s, expert_fixed_s;

    first_params (pool, c, &layer, &fixed);
    if (is_hidden (c))
        each = start = 0.0;
    experts_sync (c, x, way == 0 ? &x->whole.least : &x->span.least, &expert_layer_s,
                  &expert_fixed_s);
    b->sync_layer_s[kind][way] = each * layer + expert_layer_s;
    b->sync_fixed_s[kind][way] = each * fixed + start + expert_fixed_s;
}

/* Synchronisation per parameter, and its start, in case `way`.  Where groups span, a node
 * may hold more of a ring's members than TP groups, though its fewest on a node are not. */
static void sync_in_case (const struct pool *pool, const struct best_rates *r,
                          const struct workload_config *c,
                          const struct costmodel_volume *v, int way, double *each,
                          double *start)
{
    int gpus = pool->max_node_gpus, groups = gpus / c->deg.tp;

    bound_sync_lanes (pool, r, workload_dense_shards (&c->deg), v,
                      way == 0 ? groups : gpus, way < 2 ? groups : gpus,
                      way == 0 ? c->deg.tp : 1, each, start);
}

/* Stage 0's synchronisation and optimiser on one kind of slot, per layer and fixed. */
static void best_tail (const struct pool *pool, const struct best_rates *r,
                       const struct workload_config *c, const struct costmodel_compute *k,
                       const struct bests *x, int kind, struct best *b)
{
    const struct costmodel_volume *v = &x->volume;
    double layer, fixed;

    first_params (pool, c, &layer, &fixed);
    for (int way = 0; way < 3; way++) {
        double each, start;

        sync_in_case (pool, r, c, v, way, &each, &start);
        if (kind == 0 || isfinite (start))
            sync_of (pool, c, x, each, start, kind, way, b);
    }
    b->tail_layer_s[kind] = k->optimizer_s * layer +
                            x->expert_share * x->expert_params * k->expert_optimizer_s;
    b->tail_fixed_s[kind] = k->optimizer_s * fixed + pool->problem->profile->time.step_s;
    if (v->tied_bytes > 0)
        b->tail_fixed_s[kind] += bound_tied_s (pool, v->tied_bytes);
    b->hides = c->zero == 3 ? b->m : 1.0;
}

/* Slow slots: those with a GPU of class `from` or slower, or, with `spans`, those whose
 * groups span nodes too. */
struct slow_slots {
    int from;
    bool slower, spans; /* can a slot be slow for its GPUs, for its links? */
    struct least_compute k;
    double tp_s;
    struct best_rates rates;
};

/* What a layer takes more when its group spans nodes, at across_s an all-reduce. */
static void set_spans (double across_s, struct best *b)
{
    for (int kind = 0; kind < 2; kind++) {
        double more = fmax (0.0, across_s - b->tp_s[kind]);

        b->span_fwd_s[kind] = isfinite (more) ? b->fwd_ops * more : INFINITY;
        b->span_back_s[kind] = isfinite (more) ? b->back_ops * more : INFINITY;
    }
}

static void slow_slots_init (const struct pool *pool, const struct workload_config *c,
                             const struct bests *x, int from, bool spans,
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
    s->rates = bound_rates (pool, from); /* its group touches the slow GPU */
    bound_tp (pool, &s->rates, c, &x->volume, &inside, &across);
    if (isfinite (fmin (inside, across)))
        s->tp_s = fmax (s->tp_s, fmin (inside, across));
}

/* What a layer of a kind takes more on a slow slot than on any. */
static struct layer_pace slow_more (const struct pool *pool,
                                    const struct workload_config *c,
                                    const struct bests *x, const struct slow_slots *s,
                                    bool expert)
{
    const struct mapper_problem *p = pool->problem;
    double tp = fmin (x->inside, x->across);
    struct layer_pace any = layer_pace (p, c, &x->all.k, expert, tp, x->exchange_s);
    struct layer_pace slow = layer_pace (p, c, &s->k.k, expert, s->tp_s, x->exchange_s);
    struct layer_pace more = {INFINITY, INFINITY, INFINITY, any.fwd_ops, any.back_ops};

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

/* Fills in the slow slots: of a layer, the kind where it takes least more. */
static void slow_slot (const struct pool *pool, const struct workload_config *c,
                       const struct bests *x, const struct slow_slots *s, struct best *b)
{
    bool by_class = s->slower && !s->spans;
    double fwd = INFINITY, back = INFINITY;

    if (s->spans) /* what groups that span may save of crossings is paid already */
        b->send_s[1] = b->send_s[2] = 0.0;
    if (by_class) {
        bound_pairs (pool, c, &x->volume, s->from, b->pair_s);
        best_tail (pool, &s->rates, c, &s->k.k, x, 1, b);
    }
    b->tp_s[1] = s->spans ? x->across : s->tp_s; /* a slow slot may span already */
    set_spans (x->across, b);
    for (int expert = 0; expert < 2; expert++) {
        struct layer_pace more;

        if (count_layers (pool->problem->model, expert) == 0)
            continue;
        more = slow_more (pool, c, x, s, expert);
        fwd = fmin (fwd, more.fwd_s);
        back = fmin (back, more.back_s);
    }
    b->slot[1] = by_class ? ends_of (pool->problem, &s->k, s->tp_s) : b->slot[0];
    b->slot[1].fwd_s = b->slot[0].fwd_s + fwd;
    b->slot[1].back_s = b->slot[0].back_s + back;
}

static void bests_init (const struct pool *pool, const struct workload_config *c,
                        struct bests *x)
{
    const struct mapper_problem *p = pool->problem;
    struct best_rates rates = bound_rates (pool, 0);
    struct costmodel_volume *v = &x->volume;
    struct best *b = &x->b;

    costmodel_volume (p->model, p->job, c, p->profile, v);
    least_compute (pool, c, 0, pool->n_classes, &x->all);
    bound_tp (pool, &rates, c, v, &x->inside, &x->across);
    *b = (struct best){
        .m = workload_microbatches (p->job, c),
        .p = c->deg.pp,
        .layers = p->model->layers,
        .gpipe = c->schedule == SCHEDULE_GPIPE,
        .total_only = c->schedule != SCHEDULE_GPIPE && c->schedule != SCHEDULE_1F1B,
        .profile = p->profile,
    };
    bests_experts (pool, c, x);
    fast_slot (pool, c, &x->all, x->inside, x->across, x->exchange_s, b);
    bound_cp (pool, c, v, x->all.attention_fwd_s, x->all.attention_back_s, &x->cp_fwd_s,
              &x->cp_back_s);
    b->slot[0].fwd_s += x->cp_fwd_s;
    b->slot[0].back_s += x->cp_back_s;
    b->slot[1] = b->slot[0];
    set_spans (x->across, b);
    bound_sends (pool, c, v, x->inside, x->across, b->send_s);
    bound_pairs (pool, c, v, 0, b->pair_s);
    best_tail (pool, &rates, c, &x->all.k, x, 0, b);
    memcpy (b->sync_layer_s[1], b->sync_layer_s[0], sizeof b->sync_layer_s[0]);
    memcpy (b->sync_fixed_s[1], b->sync_fixed_s[0], sizeof b->sync_fixed_s[0]);
    b->tail_layer_s[1] = b->tail_layer_s[0];
    b->tail_fixed_s[1] = b->tail_fixed_s[0];
}

double bound_tail_s (const struct pool *pool, const struct workload_config *c)
{
    struct bests x;
    const struct best *b = &x.b;
    double sync;

    bests_init (pool, c, &x);
    sync = b->sync_layer_s[0][isfinite (b->sync_fixed_s[0][0]) ? 0 : 2];
    return b->tail_layer_s[0] +
           fmax (0.0, sync - b->profile->time.dp_overlap * b->hides *
                                 (b->slot[0].fwd_s + b->slot[0].back_s));
}

/* In some replica at least so many stages are on slots that are not fast: that have a GPU
 * of class `from` or slower or, with `spans`, whose groups span nodes. */
static int slow_stages (const struct pool *pool, const struct workload_config *c,
                        int from, bool spans)
{
    const struct workload_degrees *d = &c->deg;
    long groups = spans ? pool_groups (pool, from - 1, d->tp)
                        : pool_groups (pool, from - 1, 1) / d->tp;
    long missing = (long) d->dp * d->pp - groups / d->cp;

    return missing > 0 ? (int) ((missing + d->dp - 1) / d->dp) : 0;
}

/* Case C with rings of `lanes` lanes: a node has GPUs of at most gpus/lanes TP indices, so
 * every group of stage 0 is on `nodes` nodes or more. */
static double more_lanes (const struct pool *pool, const struct workload_config *c,
                          const struct bests *x, int from, struct pace pace, int lanes,
                          int nodes, double (*bound) (const struct pace *))
{
    struct best b = *pace.b;
    struct best_rates all = bound_rates (pool, 0);

    for (int kind = 0; kind < 2; kind++) {
        struct best_rates r = bound_rates (pool, kind == 0 ? 0 : from);
        double each, start;

        bound_sync_lanes (pool, &r, workload_dense_shards (&c->deg), &x->volume,
                          pool->max_node_gpus, lanes, 1, &each, &start);
        if (kind == 0 || isfinite (start))
            sync_of (pool, c, x, each, start, kind, 2, &b);
    }
    if (nodes > 1)
        set_spans (bound_tp_across (pool, &all, c, &x->volume, nodes), &b);
    if (!isfinite (b.span_fwd_s[0]))
        return INFINITY;
    pace.b = &b;
    return bound (&pace);
}

/* What a layer of stage 0 takes more for its exchanges than one anywhere. */
static void exchanges_more (const struct workload_config *c, const struct bests *x,
                            const struct expert_way *w, double *fwd_s, double *back_s)
{
    *fwd_s = 2.0 * x->expert_share * fmax (0.0, w->exchange_s - x->exchange_s);
    *back_s = (c->recompute == RECOMPUTE_FULL ? 2.0 : 1.0) * *fwd_s;
}

/* Does it pay to look at each way to place stage 0's experts? */
static bool told_apart (const struct workload_config *c, const struct bests *x,
                        bool tight)
{
    return x->expert_share > 0.0 && x->whole.n > 1 && (tight || c->deg.pp == 1);
}

/* Case A: the lowest over the ways to place stage 0's experts, or, where these are not to
 * be told apart, with every figure of them at its least. */
static double whole_groups (const struct workload_config *c, const struct bests *x,
                            struct pace pace, enum bound_how how,
                            double (*bound) (const struct pace *))
{
    const struct best *any = pace.b;
    struct best b = *any;
    double least = INFINITY, least_layer_s, least_fixed_s;

    if (!told_apart (c, x, how > BOUND_FRACTIONS))
        return bound (&pace);
    experts_sync (c, x, &x->whole.least, &least_layer_s, &least_fixed_s);
    pace.b = &b;
    for (int i = 0; i < x->whole.n; i++) {
        const struct expert_way *w = &x->whole.way[i];
        double layer_s, fixed_s;

        experts_sync (c, x, w, &layer_s, &fixed_s);
        for (int kind = 0; kind < 2; kind++) {
            b.sync_layer_s[kind][0] =
                any->sync_layer_s[kind][0] + layer_s - least_layer_s;
            b.sync_fixed_s[kind][0] =
                any->sync_fixed_s[kind][0] + fixed_s - least_fixed_s;
        }
        exchanges_more (c, x, w, &b.first_fwd_s, &b.first_back_s);
        least = fmin (least, bound (&pace));
    }
    return least;
}

/* The lowest of cases A, B and C. */
static double any_way (const struct pool *pool, const struct workload_config *c,
                       const struct bests *x, int from, const struct best *b, int slow,
                       const int *cap, enum bound_how how)
{
    double (*bound) (const struct pace *) = how == BOUND_FRACTIONS ? bound_fractions
                                            : how == BOUND_SPLITS  ? bound_splits
                                                                   : bound_runs;
    struct pace pace = {.b = b, .cap = cap, .slow = slow};
    int tp = c->deg.tp, gpus = pool->max_node_gpus, lanes = gpus / tp;
    bool can_span = tp > 1 && isfinite (b->span_fwd_s[0]);
    double least = lanes > 0 ? whole_groups (c, x, pace, how, bound) : INFINITY;
    struct best apart = *b;

    /* A group that spans may save a crossing, and what it costs counts here. */
    apart.send_s[1] = apart.send_s[2] = 0.0;
    /* The group that spans and the slow slots may be in different replicas.  Where groups
     * do not share what a node reaches, B is A and more. */
    if (lanes > 0 && can_span &&
        (x->span_helps || b->sync_fixed_s[0][1] < b->sync_fixed_s[0][0] ||
         b->sync_layer_s[0][1] < b->sync_layer_s[0][0])) {
        pace.way = 1;
        pace.span = slow == 0;
        pace.b = pace.span ? &apart : b;
        least = fmin (least, bound (&pace));
    }
    if (!can_span)
        return least;
    pace.b = &apart;
    pace.way = 2;
    pace.span = true;
    if (how == BOUND_FRACTIONS)
        return fmin (least, bound (&pace));
    for (int nodes = lanes > 0 ? 2 : 1; nodes <= tp; nodes++) {
        int indices = (tp + nodes - 1) / nodes; /* of a node, and so many lanes: */

        if (indices > gpus || gpus / indices <= lanes)
            continue;
        lanes = gpus / indices;
        least = fmin (least, more_lanes (pool, c, x, from, pace, lanes, nodes, bound));
    }
    return least;
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

/* A stage's tail as bound_schedule.c takes it: stage 0's, or (fixed 0) that of one without
 * embedding. */
static struct bound_tail tail_of (const struct pool *pool,
                                  const struct workload_config *c, const struct bests *x,
                                  const struct best *b, int kind, bool first)
{
    struct best_rates rates = bound_rates (pool, 0);
    struct bound_tail t = {.layer_s = b->tail_layer_s[kind],
                           .fixed_s = first ? b->tail_fixed_s[kind]
                                            : pool->problem->profile->time.step_s};

    for (int way = 0; way < BOUND_WAYS; way++) {
        double per_param = 0.0, start = 0.0;

        if (!first && (c->zero < 3 || c->deg.pp == 1))
            sync_in_case (pool, &rates, c, &x->volume, way, &per_param, &start);
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

    if (!told_apart (c, x, tight))
        return 0;
    experts_sync (c, x, &x->whole.least, &all_layer_s, &all_fixed_s);
    for (int i = 0; i < x->whole.n; i++) {
        experts_sync (c, x, &x->whole.way[i], &layer_s, &fixed_s);
        exchanges_more (c, x, &x->whole.way[i], &out[i].fwd_s, &out[i].back_s);
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
    struct bound_slot s = {.span_fwd_s = b->span_fwd_s[kind],
                           .span_back_s = b->span_back_s[kind],
                           .micro_s = b->slot[kind].micro_s,
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
        struct layer_pace l = layer_pace (p, c, &x->all.k, expert, tp, x->exchange_s);
        struct layer_pace more = {0};

        if (slow)
            more = slow_more (pool, c, x, slow, expert);
        s.layer[i] = (struct bound_layer){l.fwd_s + x->cp_fwd_s + more.fwd_s,
                                          l.back_s + x->cp_back_s + more.back_s,
                                          l.input_s + x->cp_back_s + more.input_s};
    }
    return s;
}

/* As bound_schedule.c takes it, with so many stages of a replica on slow slots. */
static struct bound_pipeline pipeline_of (const struct pool *pool,
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

    s.slot[1] = slow > 0 ? bound_slot_of (pool, c, x, b, slots) : s.slot[0];
    if (slow > 0)
        s.slow_sends_s = bound_slow_sends_s (b, b->p, slow);
    return s;
}

/* What fewer lanes than a node has room for add to stage 0's synchronisation. */
static void fewer_lanes (const struct pool *pool, const struct workload_config *c,
                         const struct bests *x, const struct best_rates *rates, int lanes,
                         struct bound_tail *t)
{
    int per_node = pool->max_node_gpus / c->deg.tp, n = workload_dense_shards (&c->deg);
    double layer, fixed, each[2], start[2];

    for (int i = 0; i < 2; i++)
        bound_sync_lanes (pool, rates, n, &x->volume, per_node, i ? lanes : per_node,
                          c->deg.tp, &each[i], &start[i]);
    if (!isfinite (start[1]) || is_hidden (c))
        return;
    first_params (pool, c, &layer, &fixed);
    t->sync_layer_s[BOUND_WHOLE] += layer * fmax (0.0, each[1] - each[0]);
    t->sync_fixed_s[BOUND_WHOLE] +=
        fixed * fmax (0.0, each[1] - each[0]) + fmax (0.0, start[1] - start[0]);
}

/* The lowest over how many of stage 0's TP groups are on each of its nodes at least.  The
 * more, the wider is the way of their synchronisation; but so many fewer of the other
 * stages share these nodes, and more sends cross. */
static double by_lanes (const struct pool *pool, const struct workload_config *c,
                        const struct bests *x, const struct slow_slots *slots,
                        const struct bound_pipeline *all)
{
    int room = pool->max_node_gpus / c->deg.tp, members = workload_dense_shards (&c->deg);
    struct bound_pipeline s = *all;
    double least;
    int crossings = -1;

    s.first_way[BOUND_WHOLE] = false;
    least = bound_scheduled (&s, true);
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
            struct best_rates rates =
                bound_rates (pool, kind && slots && slots->slower ? slots->from : 0);

            s.slot[kind].first = all->slot[kind].first;
            fewer_lanes (pool, c, x, &rates, lanes, &s.slot[kind].first);
        }
        least = fmin (least, bound_scheduled (&s, true));
    }
    return least;
}

static double scheduled_bound (const struct pool *pool, const struct workload_config *c,
                               const struct bests *x, const struct best *b,
                               const struct slow_slots *slots, int slow, const int *cap,
                               enum bound_how how)
{
    struct bound_pipeline s = pipeline_of (pool, c, x, b, slots, slow, cap);
    bool tight = how > BOUND_FRACTIONS;

    s.n_experts = scheduled_experts (c, x, tight, s.experts);
    /* Where every stage has a tail of its own, stage 0 is nothing special. */
    if (!tight || s.per_node == 0 || !s.way[BOUND_WHOLE] ||
        costmodel_schedule_splits_backward (c->schedule))
        return bound_scheduled (&s, tight);
    return by_lanes (pool, c, x, slots, &s);
}

/* Does that bound serve?  It is the only one of most schedules, and it also tells layers
 * with experts from others. */
static bool scheduled (const struct pool *pool, const struct best *b)
{
    return b->total_only || !caps_alike (pool);
}

/* The bound when slots are fast or slow by class `from`; 0 when it tells nothing. */
static double divided_bound (const struct pool *pool, const struct workload_config *c,
                             const struct bests *x, int from, bool spans, const int *caps,
                             int *cap, enum bound_how how)
{
    int slow = slow_stages (pool, c, from, spans);
    struct best b = x->b;
    struct slow_slots slots;
    double bound = 0.0;

    if (slow == 0)
        return 0.0;
    if (slow > c->deg.pp || (!spans && from == pool->n_classes))
        return INFINITY; /* fewer GPUs than ranks */
    slow_slots_init (pool, c, x, from, spans, &slots);
    slow_slot (pool, c, x, &slots, &b);
    if (caps)
        bound_caps (pool, c->deg.pp, from, spans, caps, cap);
    cap = caps ? cap : NULL;
    if (scheduled (pool, &b))
        bound = scheduled_bound (pool, c, x, &b, &slots, slow, cap, how);
    if (!b.total_only)
        bound = fmax (bound, any_way (pool, c, x, spans ? 0 : from, &b, slow, cap, how));
    return bound;
}

static double bound_with (const struct pool *pool, const struct workload_config *c,
                          const int *caps, int *cap, enum bound_how how)
{
    struct bests x;
    double most = 0.0;

    bests_init (pool, c, &x);
    for (int from = 1; from <= pool->n_classes; from++) {
        most = fmax (most, divided_bound (pool, c, &x, from, false, caps, cap, how));
        /* Where groups inside nodes are fewer, some slot is slow or spans. */
        if (x.across > x.inside && c->deg.tp <= pool->max_node_gpus &&
            slow_stages (pool, c, from, true) > slow_stages (pool, c, from, false))
            most = fmax (most, divided_bound (pool, c, &x, from, true, caps, cap, how));
    }
    if (most > 0.0)
        return most;
    if (caps)
        bound_caps (pool, c->deg.pp, 0, true, caps, cap);
    cap = caps ? cap : NULL;
    if (scheduled (pool, &x.b))
        most = scheduled_bound (pool, c, &x, &x.b, NULL, 0, cap, how);
    if (!x.b.total_only)
        most = fmax (most, any_way (pool, c, &x, 0, &x.b, 0, cap, how));
    return most;
}

double bound_of (const struct pool *pool, const struct workload_config *c,
                 enum bound_how how)
{
    size_t pp = (size_t) c->deg.pp;
    int *caps = NULL;
    double bound;

    if (how > BOUND_FRACTIONS)
        caps = malloc (((size_t) pool->n_classes + 2) * pp * sizeof (int));
    if (caps && !memory_fits (pool, c, caps)) {
        free (caps);
        return INFINITY;
    }
    bound = bound_with (pool, c, caps, caps ? caps + (size_t) pool->n_classes * pp : NULL,
                        caps ? how : BOUND_FRACTIONS);
    free (caps);
    return bound;
}

int bound_divided (const struct pool *pool, const struct workload_config *c, int from,
                   const int *cap, struct best *b, struct bound_pipeline *pipeline)
{
    struct bests x;
    struct slow_slots slots;
    int slow = from > 0 ? slow_stages (pool, c, from, false) : 0;

    bests_init (pool, c, &x);
    *b = x.b;
    if (slow > 0) {
        slow_slots_init (pool, c, &x, from, false, &slots);
        slow_slot (pool, c, &x, &slots, b);
    }
    if (pipeline)
        *pipeline = pipeline_of (pool, c, &x, b, &slots, slow, cap);
    return slow;
}

enum status mapper_lower_bound (const struct mapper_problem *p,
                                const struct workload_config *c, bool tight,
                                double *bound_s, struct error *err)
{
    struct pool pool;
    enum status st = pool_init (&pool, p, err);

    if (st != ST_OK)
        return st;
    *bound_s = bound_of (&pool, c, tight ? BOUND_RUNS : BOUND_FRACTIONS);
    pool_release (&pool);
    return ST_OK;
}
