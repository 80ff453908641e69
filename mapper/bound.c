/* A lower bound of one configuration over every placement and every split of the layers.
 *
 * Every time is taken at its best: the fastest GPU, the best link of a kind.  What is left
 * is a pipeline whose stage k has F_k and B_k linear in its layers l_k, and
 *
 *     end of stage 0 >= S + (m-1) B_k + r_k F_k      for every k,
 *
 * where S is one micro-batch's way down and up (all F, all B, all sends) and r_k the
 * forwards that stage k still has to do after its first backward begins: m - min(m, p-k)
 * in 1F1B, m-1 in GPipe.  The step is at least that plus stage 0's synchronisation and
 * optimiser, which grow with l_0.  The smallest such number over integer splits is the
 * bound; without `tight`, over fractional ones.
 *
 * A TP group may span nodes in a placement by hand, and then its data-parallel groups see
 * other links.  So the bound is the smaller of two cases: (A) stage 0's TP groups all lie
 * inside nodes, so that the tp groups of its synchronisation share a node's way out;
 * (B) one of them spans nodes, and pays for that in every layer of stage 0.
 */
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>

struct best {
    int m, p, layers;
    double fwd_s, back_s; /* per layer, of the cheaper kind */
    double all_s;         /* all layers once, forward and backward */
    double micro_s;       /* half of what every micro-batch costs a stage */
    double embed_fwd_s, embed_back_s, head_fwd_s, head_back_s;
    double sends_s;                 /* all boundaries, both ways, one micro-batch */
    double span_fwd_s, span_back_s; /* added per layer of a stage whose TP group spans */
    double sync_layer_s[2], sync_fixed_s[2]; /* stage 0's, case A and B */
    double tail_layer_s, tail_fixed_s;       /* what nothing hides: optimiser, tied */
    const struct workload_profile *profile;
    double hides; /* times of one micro-batch that can hide the synchronisation */
    bool gpipe;
    bool total_only; /* of this schedule only a stage's total work is known to hold */
};

/* The least of each compute term over the classes. */
static void best_compute (const struct pool *pool, const struct workload_config *c,
                          struct costmodel_compute *out, double *attention_fwd_s,
                          double *attention_back_s, double *speed)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_compute least = {0};

    *attention_fwd_s = *attention_back_s = 0.0;
    *speed = 0.0;
    for (int q = 0; q < pool->n_classes; q++) {
        struct costmodel_compute k;
        double *a = (double *) &least, *b = (double *) &k;

        costmodel_compute (p->model, p->job, c, p->profile, pool->class[q].type, &k);
        *attention_fwd_s = fmax (*attention_fwd_s, k.dense.attention_fwd_s);
        *attention_back_s = fmax (*attention_back_s, k.dense.attention_back_s);
        *speed = fmax (*speed, pool->best_speed[q]);
        for (size_t i = 0; i < sizeof k / sizeof (double); i++) {
            b[i] /= pool->best_speed[q];
            a[i] = q == 0 ? b[i] : fmin (a[i], b[i]);
        }
        /* The optimiser runs at memory speed, which a slow GPU's factor leaves alone. */
        if (pool->best_speed[q] < 1.0)
            least.optimizer_s =
                fmin (least.optimizer_s, k.optimizer_s * pool->best_speed[q]);
    }
    *out = least;
}

/* Rate between nodes with `lanes` lanes, `share` groups or flows at a time. */
static double cross_rate (const struct pool *pool, double lanes, double share)
{
    return fmin (fmax (1.0, lanes) * pool->inter_bytes_per_s,
                 pool->node_bytes_per_s / share);
}

/* The part of it that a ring reaches. */
static double ring_rate (const struct pool *pool, double lanes, double share)
{
    return cross_rate (pool, lanes, share) * pool->problem->profile->time.link_out;
}

/* One TP all-reduce on `nodes` nodes at best. */
static double tp_operation (const struct pool *pool, const struct workload_config *c,
                            const struct costmodel_volume *v, int nodes)
{
    const struct workload_profile *p = pool->problem->profile;
    int n = c->deg.tp;
    double latency = nodes == 1 ? pool->intra_latency_s
                                : fmin (pool->intra_latency_s, pool->inter_latency_s);
    struct costmodel_ring r = {
        .inside_bytes_per_s = n > nodes ? pool->intra_bytes_per_s : INFINITY,
        .between_bytes_per_s =
            nodes > 1 ? ring_rate (pool, n / nodes, 1) : INFINITY, /* its fewest lanes */
        .latency_s = (n - 1) * latency,
        .nodes = nodes,
        .nvls = pool->nvls};

    return c->sequence_parallel
               ? costmodel_tp_exposed_s (
                     p, c, 2.0 * costmodel_half_allreduce_s (p, &r, n, v->tp_bytes),
                     INFINITY)
               : costmodel_allreduce_s (p, &r, n, v->tp_bytes);
}

/* The same inside a node and across nodes; INFINITY where impossible. */
static void best_tp (const struct pool *pool, const struct workload_config *c,
                     const struct costmodel_volume *v, double *inside, double *across)
{
    *inside = *across = c->deg.tp == 1 ? 0.0 : INFINITY;
    if (c->deg.tp == 1)
        return;
    if (c->deg.tp <= pool->max_node_gpus)
        *inside = tp_operation (pool, c, v, 1);
    for (int nodes = 2; nodes <= c->deg.tp && nodes <= pool->n_nodes; nodes++)
        *across = fmin (*across, tp_operation (pool, c, v, nodes));
}

static double flow (const struct pool *pool, double bytes, double rate, double latency_s)
{
    const struct workload_profile *p = pool->problem->profile;

    return rate > 0
               ? p->time.collective_s + latency_s + bytes / (rate * p->time.send_link)
               : INFINITY;
}

/* All stage boundaries of one pipeline, both directions.
 *
 * With TP groups inside nodes a node holds at most per_node stages of a pipeline, so at
 * least ceil(p / per_node) - 1 boundaries cross nodes.  Each group that spans nodes saves
 * at most one crossing and costs 4 all-reduces across nodes in its one layer or more; only
 * if that could pay are crossings left out. */
static double best_sends (const struct pool *pool, const struct workload_config *c,
                          const struct costmodel_volume *v, double inside, double across)
{
    double within =
        flow (pool, v->p2p_bytes, pool->intra_bytes_per_s, pool->intra_latency_s);
    double cross =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, c->deg.tp), pool->inter_latency_s);
    double alone =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, 1), pool->inter_latency_s);
    double any = fmin (within, alone);
    int per_node = pool->max_node_gpus / c->deg.tp, crossings = 0;

    if (c->deg.pp == 1)
        return 0.0;
    if (per_node >= 1 && 4.0 * (across - inside) >= 2.0 * (cross - any))
        crossings = (c->deg.pp + per_node - 1) / per_node - 1;
    if (crossings > 0 && cross > any)
        return 2.0 * (crossings * cross + (c->deg.pp - 1 - crossings) * any);
    return 2.0 * (c->deg.pp - 1) * any;
}

/* A line under what a group of n on these links takes; the least of both so far. */
static void take_least (const struct pool *pool, const struct costmodel_ring *r, int n,
                        const struct costmodel_volume *v, double *per_param,
                        double *fixed)
{
    double start, each;

    if (!(costmodel_ring_rate (r) > 0))
        return;
    costmodel_sync_least (pool->problem->profile, r, n, v, &start, &each);
    *fixed = fmin (*fixed, start);
    *per_param = fmin (*per_param, each);
}

/* The same across nodes, of which the group needs `least`.
 *
 * On more nodes there are fewer lanes, and trees between two have the least to pass on, so
 * that all but a tree's chains inside nodes and its hops are best on the fewest: chains are
 * taken as on the most nodes, hops as on the best number, which is the most or a power of
 * two. */
static void best_across (const struct pool *pool, int n, int per_node, double share,
                         const struct costmodel_volume *v, double *per_param,
                         double *fixed)
{
    int least = (n + per_node - 1) / per_node > 2 ? (n + per_node - 1) / per_node : 2;
    int most = n < pool->n_nodes ? n : pool->n_nodes;
    double within = pool->intra_latency_s, cross = pool->inter_latency_s;
    struct costmodel_ring r = {
        .inside_bytes_per_s = n > most ? pool->intra_bytes_per_s : INFINITY,
        .between_bytes_per_s = ring_rate (pool, fmin (per_node, n / 2), share),
        .latency_s = (least * cross + (n - least) * fmin (within, cross)) * (n - 1.0) / n,
        .nodes = least,
        .nvls = pool->nvls};

    if (least > most)
        return;
    if (n > most && v->dp_all_reduce)
        r.inside_bytes_per_s *= (n - least) / (double) (n - most);
    take_least (pool, &r, n, v, per_param, fixed);
    for (int power = 2; v->dp_all_reduce && power < 2 * most; power *= 2) {
        double slope = INFINITY;

        r.nodes = power < most ? power : most;
        if (r.nodes > least)
            take_least (pool, &r, n, v, &slope, fixed);
    }
}

/* Least seconds of stage 0's synchronisation per parameter, and its fixed part, when a
 * node can hold `per_node` members of a group and `share` groups leave it together. */
static void best_sync (const struct pool *pool, const struct workload_config *c,
                       const struct costmodel_volume *v, int per_node, double share,
                       double *per_param, double *fixed)
{
    int n = c->deg.dp * c->deg.cp;
    struct costmodel_ring one = {.inside_bytes_per_s = pool->intra_bytes_per_s,
                                 .between_bytes_per_s = INFINITY,
                                 .latency_s = (n - 1) * pool->intra_latency_s,
                                 .nodes = 1,
                                 .nvls = pool->nvls};

    *per_param = *fixed = 0.0;
    if (n == 1)
        return;
    *per_param = *fixed = INFINITY;
    per_node = per_node > 1 ? per_node : 1;
    if (n <= per_node)
        take_least (pool, &one, n, v, per_param, fixed);
    if (pool->inter_bytes_per_s > 0)
        best_across (pool, n, per_node, share, v, per_param, fixed);
    if (!isfinite (*fixed))
        *per_param = 0.0;
}

double bound_send_s (const struct pool *pool, const struct workload_config *c)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_volume v;
    double s;

    costmodel_volume (p->model, p->job, c, p->profile, &v);
    s = flow (pool, v.p2p_bytes, cross_rate (pool, 1, c->deg.tp), pool->inter_latency_s);
    return isfinite (s) ? 2.0 * s : 0.0;
}

/* Context parallelism not hidden, at best, per layer. */
static void add_cp (const struct pool *pool, const struct workload_config *c,
                    const struct costmodel_volume *v, double attention_fwd_s,
                    double attention_back_s, struct best *b)
{
    double steps = c->deg.cp - 1.0;
    double rate =
        fmax (pool->intra_bytes_per_s, ring_rate (pool, pool->max_node_gpus, 1));
    double hop = pool->problem->profile->time.collective_s +
                 fmin (pool->intra_latency_s, pool->inter_latency_s);

    if (c->deg.cp == 1 || rate <= 0)
        return;

    double fwd = fmax (0.0, hop + v->cp_bytes / rate - attention_fwd_s / c->deg.cp);
    double back =
        fmax (0.0, hop + 2.0 * v->cp_bytes / rate - attention_back_s / c->deg.cp);

    b->fwd_s += steps * fwd;
    b->back_s += steps * back;
    b->all_s += b->layers * steps * (fwd + back);
}

/* Layers of both kinds: the cheaper one's times, and all together. */
static void best_layers (const struct pool *pool, const struct workload_config *c,
                         const struct costmodel_compute *k, double inside, double across,
                         struct best *b)
{
    const struct workload_model *m = pool->problem->model;
    bool again = c->recompute != RECOMPUTE_NONE && c->recompute_layers == 0;
    double tp = fmin (inside, across);
    int experts = 0;

    for (int i = 0; i < m->layers; i++)
        experts += workload_is_expert_layer (m, i);
    b->fwd_s = b->back_s = b->span_fwd_s = b->span_back_s = INFINITY;
    for (int kind = 0; kind < 2; kind++) {
        struct workload_stage one = {.dense = kind == 0, .expert = kind == 1};
        const struct costmodel_layer *l = kind == 0 ? &k->dense : &k->expert;
        int n = kind == 0 ? m->layers - experts : experts;
        double fwd_ops, back_ops, fwd, back;

        if (n == 0)
            continue;
        costmodel_tp_operations (m, c, &one, &fwd_ops, &back_ops);
        /* Recomputing some layers of a stage, it is one of the others. */
        if (!again && c->recompute == RECOMPUTE_FULL)
            back_ops = fwd_ops;
        fwd = l->fwd_s + fwd_ops * tp;
        back = l->back_s + (again ? l->recompute_s : 0.0) + back_ops * tp;
        b->fwd_s = fmin (b->fwd_s, fwd);
        b->back_s = fmin (b->back_s, back);
        b->all_s += n * (fwd + back);
        b->span_fwd_s = fmin (b->span_fwd_s, fwd_ops * (across - tp));
        b->span_back_s = fmin (b->span_back_s, back_ops * (across - tp));
    }
}

/* Stage 0's synchronisation and optimiser, per layer and fixed. */
static void best_tail (const struct pool *pool, const struct workload_config *c,
                       const struct costmodel_compute *k,
                       const struct costmodel_volume *v, struct best *b)
{
    const struct mapper_problem *p = pool->problem;
    const struct workload_model *m = p->model;
    double layer = workload_layer_params (m, c->deg.tp);
    struct workload_stage ends = {.embedding = true,
                                  .head = c->deg.pp == 1 ||
                                          workload_schedule_is_v (c->schedule)};
    double fixed = workload_stage_params (m, c, &ends).dense;

    if (m->experts > 0) /* what a layer holds beside its routed experts */
        layer = fmin (layer, workload_expert_layer_params (m, c->deg.tp));
    for (int way = 0; way < 2; way++) {
        double per_param, start;
        int per_node = way == 0 ? pool->max_node_gpus / c->deg.tp : pool->max_node_gpus;

        best_sync (pool, c, v, per_node, way == 0 ? c->deg.tp : 1, &per_param, &start);
        b->sync_layer_s[way] = per_param * layer;
        b->sync_fixed_s[way] = per_param * fixed + start;
    }
    b->tail_layer_s = k->optimizer_s * layer;
    b->tail_fixed_s = k->optimizer_s * fixed + p->profile->time.step_s;
    if (v->tied_bytes > 0)
        b->tail_fixed_s += flow (pool, v->tied_bytes,
                                 fmax (pool->intra_bytes_per_s, cross_rate (pool, 1, 1)),
                                 fmin (pool->intra_latency_s, pool->inter_latency_s));
    b->hides = 1.0;
    if (c->zero == 3) { /* hidden under more of a stage's work than every end contains */
        b->hides = b->m;
        if (c->deg.pp > 1)
            b->sync_layer_s[0] = b->sync_layer_s[1] = b->sync_fixed_s[0] =
                b->sync_fixed_s[1] = 0.0;
    }
}

static void best_init (const struct pool *pool, const struct workload_config *c,
                       struct best *b)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_compute k;
    struct costmodel_volume v;
    double inside, across, tp, attention_fwd_s, attention_back_s, speed;

    costmodel_volume (p->model, p->job, c, p->profile, &v);
    best_compute (pool, c, &k, &attention_fwd_s, &attention_back_s, &speed);
    best_tp (pool, c, &v, &inside, &across);
    tp = fmin (inside, across);
    *b = (struct best){
        .m = workload_microbatches (p->job, c),
        .p = c->deg.pp,
        .layers = p->model->layers,
        .micro_s = 0.5 * p->profile->time.microbatch_s / speed,
        .embed_fwd_s = k.embed_fwd_s + tp,
        .embed_back_s = k.embed_back_s,
        .head_fwd_s = k.head_fwd_s,
        .head_back_s = k.head_back_s + tp,
        .sends_s = best_sends (pool, c, &v, inside, across),
        .gpipe = c->schedule == SCHEDULE_GPIPE,
        .total_only = c->schedule != SCHEDULE_GPIPE && c->schedule != SCHEDULE_1F1B,
        .profile = p->profile,
    };
    best_layers (pool, c, &k, inside, across, b);
    add_cp (pool, c, &v, attention_fwd_s, attention_back_s, b);
    best_tail (pool, c, &k, &v, b);
}

double bound_tail_s (const struct pool *pool, const struct workload_config *c)
{
    struct best b;
    double sync;

    best_init (pool, c, &b);
    sync = isfinite (b.sync_layer_s[0] + b.sync_fixed_s[0]) ? b.sync_layer_s[0]
                                                            : b.sync_layer_s[1];
    return b.tail_layer_s +
           fmax (0.0, sync - b.profile->time.dp_overlap * b.hides * (b.fwd_s + b.back_s));
}

/* One case: how stage 0's layers are priced. */
struct pace {
    const struct best *b;
    int way;        /* 0: A, 1: B */
    const int *cap; /* [p] most layers in memory, or NULL */
};

/* S as a function of l_0: what is fixed, and what all layers cost once. */
static double once_through (const struct pace *x, int first)
{
    const struct best *b = x->b;
    double s = b->p * 2.0 * b->micro_s + b->all_s + b->embed_fwd_s + b->embed_back_s +
               b->head_fwd_s + b->head_back_s + b->sends_s;

    if (b->total_only)
        return 0.0;
    return x->way == 1 ? s + first * (b->span_fwd_s + b->span_back_s) : s;
}

/* Forwards left on stage k after its first backward begins. */
static double forwards_left (const struct best *b, int k)
{
    int before = b->p - k < b->m ? b->p - k : b->m;

    return b->gpipe ? b->m - 1 : b->m - before;
}

/* What stage k costs beyond S: fixed part and per layer. */
static void stage_pace (const struct pace *x, int k, double *fixed, double *per_layer)
{
    const struct best *b = x->b;
    double left = b->total_only ? b->m : forwards_left (b, k);
    double again = b->total_only ? b->m : b->m - 1.0;
    double fwd = b->fwd_s, back = b->back_s;
    double fixed_fwd = b->micro_s, fixed_back = b->micro_s;

    if (k == 0) {
        fixed_fwd += b->embed_fwd_s;
        fixed_back += b->embed_back_s;
        if (x->way == 1) {
            fwd += b->span_fwd_s;
            back += b->span_back_s;
        }
    }
    if (k == b->p - 1) {
        fixed_fwd += b->head_fwd_s;
        fixed_back += b->head_back_s;
    }
    *fixed = again * fixed_back + left * fixed_fwd;
    *per_layer = again * back + left * fwd;
}

/* The least end of stage 0 when it holds `first` layers (0: any) and the others share the
 * rest in fractions. */
static double fractional_end (const struct pace *x, int first)
{
    const struct best *b = x->b;
    double s = once_through (x, first > 0 ? first : 1), rest = b->layers - first;
    double shares = 0.0, weights = 0.0, worst = 0.0;

    for (int k = 0; k < b->p; k++) {
        double fixed, per_layer;

        stage_pace (x, k, &fixed, &per_layer);
        /* With l_0 given its time is known; with l_0 free, stage 0 shares. */
        if (k == 0 && first > 0) {
            worst = fixed + first * per_layer;
            continue;
        }
        worst = fmax (worst, fixed + per_layer); /* every stage holds a layer */
        if (per_layer > 0) {
            shares += fixed / per_layer;
            weights += 1.0 / per_layer;
        }
    }
    if (weights > 0)
        worst = fmax (worst, (rest + shares) / weights);
    return s + worst;
}

/* Can the other stages hold the rest when none may cost more than `most` beyond S? */
static bool holds_rest (const struct pace *x, int first, double most)
{
    const struct best *b = x->b;
    double room = 0.0;

    for (int k = 1; k < b->p; k++) {
        double fixed, per_layer, n;

        stage_pace (x, k, &fixed, &per_layer);
        n = per_layer > 0 ? floor ((most - fixed) / per_layer) : b->layers;
        if (x->cap)
            n = fmin (n, x->cap[k]);
        if (n < 1)
            return false;
        room += n;
    }
    return room >= b->layers - first;
}

/* The same with whole layers and memory caps, by bisection from below. */
static double integer_end (const struct pace *x, int first, double give_up)
{
    const struct best *b = x->b;
    double s = once_through (x, first), fixed, per_layer;
    double lo = fractional_end (x, first) - s, hi = give_up - s;

    if (x->cap && first > x->cap[0])
        return INFINITY;
    stage_pace (x, 0, &fixed, &per_layer);
    if (b->p == 1)
        return s + fixed + first * per_layer;
    if (holds_rest (x, first, lo * (1.0 + 1e-12)))
        return s + lo;
    if (!(hi > lo))
        return give_up;
    if (!holds_rest (x, first, hi))
        return give_up;
    for (int i = 0; i < 60 && hi - lo > 1e-9 * lo; i++) {
        double mid = 0.5 * (lo + hi);

        if (holds_rest (x, first, mid))
            hi = mid;
        else
            lo = mid;
    }
    return s + lo;
}

/* What follows stage 0's end.  What hides the synchronisation is taken at its least too:
 * where it is more, the end is later by at least as much. */
static double tail (const struct best *b, int way, int first)
{
    double sync = b->sync_fixed_s[way] + first * b->sync_layer_s[way];
    double under = 2.0 * b->micro_s + first * (b->fwd_s + b->back_s) + b->embed_fwd_s +
                   b->embed_back_s;

    if (b->p == 1)
        under += b->head_fwd_s + b->head_back_s;
    return b->tail_fixed_s + first * b->tail_layer_s +
           costmodel_exposed_s (b->profile, sync, b->hides * under);
}

static double loose_bound (const struct pace *x)
{
    const struct best *b = x->b;
    int least = b->p == 1 ? b->layers : 1, most = b->layers - b->p + 1;

    /* In l_0 the tail rises or falls throughout. */
    return fractional_end (x, b->p == 1 ? b->layers : 0) +
           fmin (tail (b, x->way, least), tail (b, x->way, most));
}

/* The least over l_0 of the end and the tail. */
static double tight_bound (const struct pace *x)
{
    const struct best *b = x->b;
    int most = b->p == 1 ? 1 : b->layers - b->p + 1, even = b->layers / b->p;
    double best = INFINITY;

    for (int step = 0; step < most; step++) {
        /* From the even split on: the first tries leave little to the others. */
        int first = b->p == 1 ? b->layers : 1 + (even - 1 + step) % most;
        double end = fractional_end (x, first), t = tail (b, x->way, first);

        if (end + t >= best)
            continue;

        double bound = integer_end (x, first, isfinite (best) ? best - t : 4.0 * end) + t;

        best = fmin (best, bound);
    }
    return best;
}

double bound_of (const struct pool *pool, const struct workload_config *c, bool tight)
{
    struct best b;
    double least = INFINITY;
    int pp = c->deg.pp, *caps = NULL;

    best_init (pool, c, &b);
    if (tight &&
        (caps = malloc ((size_t) pool->n_classes * (size_t) pp * sizeof (int)))) {
        if (!memory_fits (pool, c, caps)) {
            free (caps);
            return INFINITY;
        }
        /* Any class may serve any stage here. */
        for (int q = 1; q < pool->n_classes; q++)
            for (int k = 0; k < pp; k++)
                if (caps[q * pp + k] > caps[k])
                    caps[k] = caps[q * pp + k];
    }
    for (int way = 0; way < 2; way++) {
        struct pace x = {.b = &b, .way = way, .cap = caps};

        /* Case B is possible only where a TP group can span nodes. */
        if (way == 1 && (c->deg.tp == 1 || !isfinite (b.span_fwd_s)))
            continue;
        if (way == 0 && c->deg.tp > pool->max_node_gpus)
            continue;
        least = fmin (least, tight ? tight_bound (&x) : loose_bound (&x));
    }
    free (caps);
    return least;
}

enum status mapper_lower_bound (const struct mapper_problem *p,
                                const struct workload_config *c, bool tight,
                                double *bound_s, struct error *err)
{
    struct pool pool;
    enum status st = pool_init (&pool, p, err);

    if (st != ST_OK)
        return st;
    *bound_s = bound_of (&pool, c, tight);
    pool_release (&pool);
    return ST_OK;
}
