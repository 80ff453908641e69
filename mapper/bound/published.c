/* Lower bounds of the published cost models (costmodel/published.c), over every placement
 * and split of the layers: the fastest GPU's compute without communication inside TP
 * groups, the best links, and as many of them between nodes as the nodes' sizes force.
 * The slowest stage is at least the mean of all and the one with ceil(layers / p). */
#include "mapper/bound/bound.h"

#include <math.h>

struct ask {
    const struct pool *pool;
    const struct workload_config *c;
    double layer_s, ends_s, micro_s; /* as the model counts a stage's compute */
    bool amp;
    int layers, p;
};

static double ceiling (int a, int b)
{
    return (a + b - 1) / b;
}

/* Seconds as the model counts them. */
static double counted (const struct ask *x, double fwd_s, double back_s)
{
    return x->amp ? 3.0 * fwd_s : fwd_s + back_s;
}

/* The fastest GPU's compute. */
static void find_least (struct ask *x)
{
    const struct mapper_problem *p = x->pool->problem;
    bool again = x->c->recompute == RECOMPUTE_FULL && x->c->recompute_layers == 0;
    double speed = 0.0;

    x->layer_s = x->ends_s = INFINITY;
    for (int q = 0; q < x->pool->n_classes; q++) {
        double best = x->pool->best_speed[q];
        struct costmodel_compute k;

        pool_compute (x->pool, x->c, q, &k);
        for (int kind = 0; kind < 2; kind++) {
            const struct costmodel_layer *l = kind == 0 ? &k.dense : &k.expert;
            double layer =
                counted (x, l->fwd_s, l->back_s + (again ? l->recompute_s : 0));

            if (kind == 0 || p->model->experts > 0)
                x->layer_s = fmin (x->layer_s, layer / best);
        }
        x->ends_s = fmin (x->ends_s, counted (x, k.embed_fwd_s + k.head_fwd_s,
                                              k.embed_back_s + k.head_back_s) /
                                         best);
        speed = fmax (speed, best);
    }
    x->micro_s = counted (x, 0.5, 0.5) * p->profile->time.microbatch_s / speed;
}

/* Seconds of the slowest pipeline's sends. */
static double sends (const struct ask *x)
{
    const struct mapper_problem *p = x->pool->problem;
    double bytes = costmodel_published_message_bytes (p->model, p->job, x->c);
    double inter = x->pool->inter_bytes_per_s,
           any = fmax (inter, x->pool->intra_bytes_per_s);
    double leave = ceiling (x->p, x->pool->max_node_gpus) - 1.0,
           stay = x->p - 1.0 - leave;

    if ((leave > 0 && inter <= 0) || (stay > 0 && any <= 0))
        return INFINITY;
    return (x->amp ? 1.0 : 2.0) * bytes *
           ((leave > 0 ? leave / inter : 0.0) + (stay > 0 ? stay / any : 0.0));
}

/* Seconds of the gradients: the ring has to leave its node when that is too small. */
static double gradients (const struct ask *x)
{
    const struct mapper_problem *p = x->pool->problem;
    const struct workload_model *m = p->model;
    int n = x->c->deg.dp * x->c->deg.cp, tp = x->c->deg.tp;
    double nodes = ceiling (n, x->pool->max_node_gpus), layer, bytes;
    double rate = nodes > 1
                      ? x->pool->inter_bytes_per_s
                      : fmax (x->pool->inter_bytes_per_s, x->pool->intra_bytes_per_s);

    if (n == 1)
        return 0.0;
    if (x->amp) {
        layer = workload_layer_params (m, tp);
        if (m->experts > 0)
            layer = fmin (layer, workload_expert_layer_params (m, tp));
        bytes = 2.0 * (n - 1) / n * 2.0 * ceiling (x->layers, x->p) * layer;
    } else {
        bytes = nodes > 1 ? 2.0 * (nodes - 1) / nodes *
                                costmodel_pipette_gradient_bytes (m, x->c)
                          : 0.0;
    }
    return bytes > 0 ? (rate > 0 ? bytes / rate : INFINITY) : 0.0;
}

double bound_published (const struct pool *pool, const struct workload_config *c)
{
    struct ask x = {.pool = pool,
                    .c = c,
                    .amp = pool->problem->cost_model == COSTMODEL_AMP,
                    .layers = pool->problem->model->layers,
                    .p = c->deg.pp};
    int m = workload_microbatches (pool->problem->job, c), rounds = m / x.p;
    double most;

    find_least (&x);
    most = x.micro_s + fmax (ceiling (x.layers, x.p) * x.layer_s,
                             (x.layers * x.layer_s + x.ends_s) / x.p);
    if (x.amp)
        return (m - 1) * most + x.layers * x.layer_s + x.ends_s + x.p * x.micro_s +
               sends (&x) + gradients (&x);
    if (rounds < 1)
        return (x.p + m - 1) * most + sends (&x) + gradients (&x);
    return (rounds * x.p + x.p - 1) * most + rounds * sends (&x) + gradients (&x);
}
