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
#include "mapper/bound_schedule.h"
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>

struct best {
    const struct workload_model *model;
    int m, p, layers;
    /* A layer without experts, and one with them: on any replica, and on the slowest. */
    struct bound_layer once[2], pace[2];
    double most_s;  /* one layer of the dearer kind, forward and backward */
    double all_s;   /* all layers once, forward and backward */
    double micro_s; /* half of what every micro-batch costs a stage */
    double embed_fwd_s, embed_back_s, head_fwd_s, head_back_s;
    double sends_s;                 /* all boundaries, both ways, one micro-batch */
    double span_fwd_s, span_back_s; /* added per layer of a stage whose TP group spans */
    struct bound_tail tail;         /* stage 0's, case A and B */
    const struct workload_profile *profile;
    double hides; /* times of one micro-batch that can hide the synchronisation */
    bool gpipe;
    bool scheduled; /* bound_schedule.c has the rest: */
    struct bound_pipeline other;
};

/* The least of each compute term over the classes; in place of what zero-bubble schedules
 * put off (weight_s, head_weight_s), the rest of backward. */
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
        /* The least of the rest is not the rest of the least. */
        k.dense.weight_s = k.dense.back_s - k.dense.weight_s;
        k.expert.weight_s = k.expert.back_s - k.expert.weight_s;
        k.head_weight_s = k.head_back_s - k.head_weight_s;
        *attention_fwd_s = fmax (*attention_fwd_s, k.dense.attention_fwd_s);
        *attention_back_s = fmax (*attention_back_s, k.dense.attention_back_s);
        *speed = fmax (*speed, pool->best_speed[q]);
        for (size_t i = 0; i < sizeof k / sizeof (double); i++) {
            b[i] /= pool->best_speed[q];
            a[i] = q == 0 ? b[i] : fmin (a[i], b[i]);
        }
        /* The optimiser runs at memory speed, which a slow GPU's factor leaves alone. */
        if (pool->best_speed[q] < 1.0) {
            least.optimizer_s =
                fmin (least.optimizer_s, k.optimizer_s * pool->best_speed[q]);
            least.expert_optimizer_s = fmin (least.expert_optimizer_s,
                                             k.expert_optimizer_s * pool->best_speed[q]);
        }
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

    return c->sequence_parallel ? 2.0 * costmodel_half_allreduce_s (p, &r, n, v->tp_bytes)
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

/* Forward all-reduces of the kind of layer that has fewest; backward has no fewer. */
static double least_operations (const struct workload_model *m,
                                const struct workload_config *c)
{
    double least = INFINITY, fwd, back;

    for (int kind = 0; kind < 2; kind++) {
        struct workload_stage one = {.dense = kind == 0, .expert = kind == 1};

        costmodel_tp_operations (m, c, &one, &fwd, &back);
        if (kind == 0 || m->experts > 0)
            least = fmin (least, fwd);
    }
    return least;
}

/* One stage boundary in one direction: anywhere, and between nodes.
 *
 * With TP groups inside nodes a node holds at most per_node stages of a pipeline, so that
 * of p - 1 boundaries at least ceil(p / per_node) - 1 cross nodes.  Each group that spans
 * nodes saves at most one crossing and costs all-reduces across nodes in its one layer or
 * more; only if that could pay are crossings left out (per_node 0). */
static void best_boundary (const struct pool *pool, const struct workload_config *c,
                           const struct costmodel_volume *v, double inside, double across,
                           struct bound_pipeline *x)
{
    double within =
        flow (pool, v->p2p_bytes, pool->intra_bytes_per_s, pool->intra_latency_s);
    double alone =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, 1), pool->inter_latency_s);
    double operations = least_operations (pool->problem->model, c);

    x->cross_s =
        flow (pool, v->p2p_bytes, cross_rate (pool, 1, c->deg.tp), pool->inter_latency_s);
    x->any_s = fmin (within, alone);
    x->per_node = pool->max_node_gpus / c->deg.tp;
    if (c->deg.tp > 1 && !(operations * (across - inside) >= x->cross_s - x->any_s))
        x->per_node = 0;
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

/* Least seconds of a stage's synchronisation over n ranks per parameter, and its fixed
 * part, when a node can hold `per_node` members of a group and `share` groups leave it
 * together. */
static void best_sync (const struct pool *pool, const struct costmodel_volume *v, int n,
                       int per_node, double share, double *per_param, double *fixed)
{
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

    b->most_s += steps * (fwd + back);
    b->all_s += b->layers * steps * (fwd + back);
    for (int i = 0; i < 4; i++) {
        struct bound_layer *l = i < 2 ? &b->once[i] : &b->pace[i - 2];

        l->fwd_s += steps * fwd;
        l->back_s += steps * back;
        l->input_s += steps * back;
    }
}

/* One all-to-all of a rank with h - 1 of the others on its node: to these over one kind of
 * link, to the rest over the other, with `together` groups that leave the node at once.
 * Where tokens go to a node once, most are saved where most of the rest are on one. */
static double ep_of (const struct pool *pool, const struct workload_config *c,
                     const struct costmodel_volume *v, int h, int most, int together)
{
    const struct workload_profile *p = pool->problem->profile;
    const struct workload_model *m = pool->problem->model;
    int n = c->deg.ep, there = n - h < most ? n - h : most;
    double mine = (double) m->experts / n;
    double to_near = v->ep_bytes * m->top_k / n, to_far = to_near;
    double near = 0.0, far = 0.0, latency = 0.0;

    if (p->time.deduplicated_dispatch) {
        to_near = (h < n ? 2.0 : 1.0) * v->ep_bytes * costmodel_visit_chance (m, mine);
        to_far =
            h < n ? v->ep_bytes * costmodel_visit_chance (m, there * mine) / there : 0.0;
    }
    if (h > 1) {
        if (pool->intra_bytes_per_s <= 0)
            return INFINITY;
        near = (h - 1) * to_near / pool->intra_bytes_per_s;
        latency = pool->intra_latency_s;
    }
    if (h < n) {
        if (pool->inter_bytes_per_s <= 0)
            return INFINITY;
        far = fmax ((n - h) * to_far / pool->inter_bytes_per_s,
                    h * (n - h) * to_far * together / pool->node_bytes_per_s);
        latency = fmax (latency, pool->inter_latency_s);
    }
    return p->time.collective_s + latency +
           fmax (near, far / p->time.link_out) / p->time.link;
}

/* One all-to-all of experts at best.  Where TP groups lie inside nodes and experts are split
 * as the rest is, a node holds fewer of a group, and tp groups leave it together. */
static double best_ep (const struct pool *pool, const struct workload_config *c,
                       const struct costmodel_volume *v, bool inside)
{
    int together = inside && c->deg.etp == c->deg.tp ? c->deg.tp : 1;
    int most = pool->max_node_gpus / together;
    double least = INFINITY;

    if (c->deg.ep == 1)
        return 0.0;
    for (int h = 1; h <= c->deg.ep && h <= most; h++)
        least = fmin (least, ep_of (pool, c, v, h, most, together));
    return least;
}

/* A layer's all-reduces and all-to-alls in one direction at best.  Where one TP group of
 * its stage spans nodes, the experts' groups lie as they like; where none does, they are
 * bound to whole TP groups. */
struct layer_sends {
    double inside_s, across_s; /* one all-reduce */
    double ep_inside_s, ep_any_s;
};

/* On the slowest replica: what sets the stage's pace. */
static double sends_pace (const struct layer_sends *x, double operations,
                          double exchanges)
{
    if (exchanges <= 0)
        return operations * fmin (x->inside_s, x->across_s);
    return fmin (operations * x->inside_s + exchanges * x->ep_inside_s,
                 operations * x->across_s + exchanges * x->ep_any_s);
}

/* On any replica, whatever holds for the others. */
static double sends_once (const struct layer_sends *x, double operations,
                          double exchanges)
{
    return operations * fmin (x->inside_s, x->across_s) +
           (exchanges > 0 ? exchanges * x->ep_any_s : 0.0);
}

/* More than the pace where a TP group spans nodes. */
static double sends_span (const struct layer_sends *x, double operations,
                          double exchanges)
{
    return operations * x->across_s + (exchanges > 0 ? exchanges * x->ep_any_s : 0.0) -
           sends_pace (x, operations, exchanges);
}

/* Layers of both kinds, the cheaper one's times, and all together. */
static void best_layers (const struct pool *pool, const struct workload_config *c,
                         const struct costmodel_compute *k,
                         const struct costmodel_volume *v, double inside, double across,
                         struct best *b)
{
    const struct workload_model *m = pool->problem->model;
    bool again = c->recompute != RECOMPUTE_NONE && c->recompute_layers == 0;
    struct layer_sends sends = {inside, across, best_ep (pool, c, v, true),
                                best_ep (pool, c, v, false)};
    int experts = 0;

    for (int i = 0; i < m->layers; i++)
        experts += workload_is_expert_layer (m, i);
    b->span_fwd_s = b->span_back_s = INFINITY;
    for (int kind = 0; kind < 2; kind++) {
        struct workload_stage one = {.dense = kind == 0, .expert = kind == 1};
        const struct costmodel_layer *l = kind == 0 ? &k->dense : &k->expert;
        int n = kind == 0 ? m->layers - experts : experts;
        double fwd_ops, back_ops, fwd_ep = kind == 1 && c->deg.ep > 1 ? 2.0 : 0.0;
        double back_ep = fwd_ep * (c->recompute == RECOMPUTE_FULL ? 2.0 : 1.0);
        double recompute_s = again ? l->recompute_s : 0.0, fwd, back;

        if (n == 0)
            continue;
        costmodel_tp_operations (m, c, &one, &fwd_ops, &back_ops);
        /* Recomputing some layers of a stage, it is one of the others. */
        if (!again && c->recompute == RECOMPUTE_FULL)
            back_ops = fwd_ops;
        fwd = l->fwd_s + sends_once (&sends, fwd_ops, fwd_ep);
        back = l->back_s + recompute_s + sends_once (&sends, back_ops, back_ep);
        b->once[kind] = (struct bound_layer){fwd, back,
                                             l->weight_s + recompute_s +
                                                 sends_once (&sends, back_ops, back_ep)};
        b->pace[kind] = (struct bound_layer){
            l->fwd_s + sends_pace (&sends, fwd_ops, fwd_ep),
            l->back_s + recompute_s + sends_pace (&sends, back_ops, back_ep),
            l->weight_s + recompute_s + sends_pace (&sends, back_ops, back_ep)};
        b->most_s = fmax (b->most_s, b->pace[kind].fwd_s + b->pace[kind].back_s);
        b->all_s += n * (fwd + back);
        b->span_fwd_s = fmin (b->span_fwd_s, sends_span (&sends, fwd_ops, fwd_ep));
        b->span_back_s = fmin (b->span_back_s, sends_span (&sends, back_ops, back_ep));
    }
    for (int kind = 0; kind < 2; kind++) /* a model of one kind */
        if (experts == (kind == 0 ? m->layers : 0)) {
            b->once[kind] = b->once[1 - kind];
            b->pace[kind] = b->pace[1 - kind];
        }
}

/* Routed experts of a stage: its layers add at least per_layer n - slack of one such
 * layer's, with the slack of every chunk. */
static void add_expert_tail (const struct pool *pool, const struct workload_config *c,
                             const struct costmodel_compute *k,
                             const struct costmodel_volume *v, int start,
                             struct bound_tail *t)
{
    const struct workload_model *m = pool->problem->model;
    struct workload_stage one = {.expert = 1};
    double params = workload_stage_params (m, c, &one).expert;
    double per_layer = params * bound_run_slope (m, 0.0, 1.0);
    double slack = 0.0, per_param, begin;

    for (int chunk = 0; chunk < c->deg.vpp; chunk++)
        slack +=
            params * bound_run_slack (m, 0.0, 1.0, chunk > 0 ? chunk * c->deg.pp : start);

    t->layer_s += k->expert_optimizer_s * per_layer;
    t->fixed_s -= k->expert_optimizer_s * slack;
    best_sync (pool, v, workload_expert_shards (&c->deg), pool->max_node_gpus, 1,
               &per_param, &begin);
    for (int way = 0; way < 2 && isfinite (begin); way++) {
        t->sync_layer_s[way] += per_param * per_layer;
        t->sync_fixed_s[way] -= per_param * slack;
    }
}

/* A stage's synchronisation and optimiser, per layer and fixed. */
static void best_tail (const struct pool *pool, const struct workload_config *c,
                       const struct costmodel_compute *k,
                       const struct costmodel_volume *v, int stage, struct bound_tail *t)
{
    const struct mapper_problem *p = pool->problem;
    const struct workload_model *m = p->model;
    double layer = workload_layer_params (m, c->deg.tp), fixed = 0.0;

    if (stage == 0) {
        struct workload_stage ends = {.embedding = true,
                                      .head = c->deg.pp == 1 ||
                                              workload_schedule_is_v (c->schedule)};

        fixed = workload_stage_params (m, c, &ends).dense;
    }
    if (m->experts > 0) /* what a layer holds beside its routed experts */
        layer = fmin (layer, workload_expert_layer_params (m, c->deg.tp));
    for (int way = 0; way < 2; way++) {
        double per_param, start;
        int per_node = way == 0 ? pool->max_node_gpus / c->deg.tp : pool->max_node_gpus;

        best_sync (pool, v, workload_dense_shards (&c->deg), per_node,
                   way == 0 ? c->deg.tp : 1, &per_param, &start);
        t->sync_layer_s[way] = per_param * layer;
        t->sync_fixed_s[way] = per_param * fixed + start;
    }
    t->layer_s = k->optimizer_s * layer;
    t->fixed_s = k->optimizer_s * fixed + p->profile->time.step_s;
    if (m->experts > 0)
        add_expert_tail (pool, c, k, v, stage, t);
    if (stage == 0 && v->tied_bytes > 0)
        t->fixed_s += flow (pool, v->tied_bytes,
                            fmax (pool->intra_bytes_per_s, cross_rate (pool, 1, 1)),
                            fmin (pool->intra_latency_s, pool->inter_latency_s));
    if (c->zero == 3 && c->deg.pp > 1)
        /* Hidden under more of a stage's work than every end contains. */
        t->sync_layer_s[0] = t->sync_layer_s[1] = t->sync_fixed_s[0] =
            t->sync_fixed_s[1] = 0.0;
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
        .model = p->model,
        .m = workload_microbatches (p->job, c),
        .p = c->deg.pp,
        .layers = p->model->layers,
        .micro_s = 0.5 * p->profile->time.microbatch_s / speed,
        .embed_fwd_s = k.embed_fwd_s + tp,
        .embed_back_s = k.embed_back_s,
        .head_fwd_s = k.head_fwd_s,
        .head_back_s = k.head_back_s + tp,
        .gpipe = c->schedule == SCHEDULE_GPIPE,
        .profile = p->profile,
        /* Under ZeRO 3 more work than every end contains. */
        .hides = c->zero == 3 ? workload_microbatches (p->job, c) : 1.0,
    };
    best_boundary (pool, c, &v, inside, across, &b->other);
    b->sends_s = 2.0 * bound_sends_s (&b->other, b->p);
    best_layers (pool, c, &k, &v, inside, across, b);
    add_cp (pool, c, &v, attention_fwd_s, attention_back_s, b);
    best_tail (pool, c, &k, &v, 0, &b->tail);
    b->scheduled = c->schedule != SCHEDULE_GPIPE && c->schedule != SCHEDULE_1F1B;
    if (!b->scheduled)
        return;
    best_tail (pool, c, &k, &v, 1, &b->other.other);
    b->other = (struct bound_pipeline){
        .model = p->model,
        .profile = p->profile,
        .schedule = c->schedule,
        .m = b->m,
        .p = b->p,
        .v = c->deg.vpp,
        .once = {b->once[0], b->once[1]},
        .pace = {b->pace[0], b->pace[1]},
        .span_fwd_s = b->span_fwd_s,
        .span_back_s = b->span_back_s,
        .spans = {c->deg.tp <= pool->max_node_gpus,
                  c->deg.tp > 1 && isfinite (b->span_fwd_s)},
        .micro_s = b->micro_s,
        .tp_s = tp,
        .embed_fwd_s = k.embed_fwd_s,
        .embed_back_s = k.embed_back_s,
        .head_fwd_s = k.head_fwd_s,
        .head_back_s = k.head_back_s,
        .head_input_s = k.head_weight_s,
        .any_s = b->other.any_s,
        .cross_s = b->other.cross_s,
        .per_node = b->other.per_node,
        .first = b->tail,
        .other = b->other.other,
        .hides = b->hides,
    };
}

double bound_tail_s (const struct pool *pool, const struct workload_config *c)
{
    struct best b;
    double sync;

    best_init (pool, c, &b);
    sync = isfinite (b.tail.sync_layer_s[0] + b.tail.sync_fixed_s[0])
               ? b.tail.sync_layer_s[0]
               : b.tail.sync_layer_s[1];
    return b.tail.layer_s +
           fmax (0.0, sync - b.profile->time.dp_overlap * b.hides * b.most_s);
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
    const struct workload_model *m = b->model;
    const struct bound_layer *d = &b->pace[0], *e = &b->pace[1];
    double left = forwards_left (b, k), again = b->m - 1.0;
    double fwd = bound_run_slope (m, d->fwd_s, e->fwd_s);
    double back = bound_run_slope (m, d->back_s, e->back_s);
    double fixed_fwd = b->micro_s - bound_run_slack (m, d->fwd_s, e->fwd_s, k);
    double fixed_back = b->micro_s - bound_run_slack (m, d->back_s, e->back_s, k);

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

/* Stage 0's compute for one micro-batch as the bound takes it to be, or more: what hides
 * the synchronisation.  Where it is more still, the end is later by at least as much. */
static double hiding_s (const struct pace *x, double first)
{
    const struct best *b = x->b;
    double under =
        2.0 * b->micro_s + first * b->most_s + b->embed_fwd_s + b->embed_back_s;

    if (x->way == 1)
        under += first * (b->span_fwd_s + b->span_back_s);
    if (b->p == 1)
        under += b->head_fwd_s + b->head_back_s;
    return under;
}

/* What follows stage 0's end. */
static double tail (const struct pace *x, double first)
{
    const struct best *b = x->b;
    double sync = b->tail.sync_fixed_s[x->way] + first * b->tail.sync_layer_s[x->way];

    return b->tail.fixed_s + first * b->tail.layer_s +
           costmodel_exposed_s (b->profile, sync, b->hides * hiding_s (x, first));
}

/* The least tail of so many layers: in the layers it rises or falls throughout, but for
 * where synchronisation begins to be hidden whole. */
static double least_tail (const struct pace *x, int least, int most)
{
    const struct bound_tail *t = &x->b->tail;
    double part = x->b->profile->time.dp_overlap * x->b->hides;
    double at_zero = t->sync_fixed_s[x->way] - part * hiding_s (x, 0);
    double slope = t->sync_layer_s[x->way] - part * (hiding_s (x, 1) - hiding_s (x, 0));
    double turn = -at_zero / slope;
    double end = fmin (tail (x, least), tail (x, most));

    return turn > least && turn < most ? fmin (end, tail (x, turn)) : end;
}

static double loose_bound (const struct pace *x)
{
    const struct best *b = x->b;
    int least = b->p == 1 ? b->layers : 1, most = b->layers - b->p + 1;

    return fractional_end (x, b->p == 1 ? b->layers : 0) + least_tail (x, least, most);
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
        double end = fractional_end (x, first), t = tail (x, first);

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
    if (b.scheduled) {
        b.other.cap = caps;
        least = bound_scheduled (&b.other, tight);
    }
    for (int way = 0; way < 2 && !b.scheduled; way++) {
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
