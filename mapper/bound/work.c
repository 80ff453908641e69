/* The lowest bound: what the layers' compute alone takes.
 *
 * All layers of one micro-batch take W on the fastest GPUs, forward and backward.  Stage k, with
 * the share f_k of it, has m f_k W to do in every schedule, and so some stage m W / p.
 * Where backward is not split, the first micro-batch comes down to stage k through the first
 * chunks of the stages above, and the last one goes up through these: rows (1) of rows.c,
 *
 *     step >= W (m f_k + (f_0 + ... + f_(k-1)) / v).
 *
 * All rows are equal where the step is least.  What is left of it for stage k then shrinks
 * by 1 - 1/(m v) from one stage to the next, and as the shares add up to 1,
 *
 *     step >= W / (v (1 - (1 - 1/(m v))^p)).
 *
 * W depends on the pipeline only where steps are captured, on whether there is one.  The space has
 * few different ones: they are kept.
 *
 * Every configuration has tp cp p replicas GPUs, and its replicas share the micro-batches, so that
 * step x GPUs >= batch / micro-batch x tp cp W.  Over the few different W this bounds a space
 * that nobody has listed. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (1 << 16)

struct bound_works {
    struct {
        struct costmodel_compute_key key;
        double s; /* of one GPU; 0: nothing is kept here */
    } at[KEPT];
};

struct bound_works *bound_works_create (void)
{
    return calloc (1, sizeof (struct bound_works));
}

void bound_works_destroy (struct bound_works *w)
{
    free (w);
}

static double work_of (struct bound_works *w, const struct pool *pool,
                       const struct workload_config *c)
{
    double slowest = costmodel_slowest (pool->problem->profile, &c->deg);
    struct costmodel_compute_key key =
        costmodel_compute_key (pool->problem->job, c, pool->problem->profile);
    size_t i = costmodel_compute_hash (&key) % KEPT;

    if (!w)
        return least_work_s (pool, c);
    if (!(w->at[i].s > 0.0) || memcmp (&w->at[i].key, &key, sizeof key) != 0) {
        w->at[i].key = key;
        w->at[i].s = least_work_s (pool, c) / slowest;
    }
    return w->at[i].s * slowest;
}

double bound_work (struct bound_works *w, const struct pool *pool,
                   const struct workload_config *c)
{
    double work = work_of (w, pool, c), v = c->deg.vpp;
    double m = workload_microbatches (pool->problem->job, c), p = c->deg.pp;

    if (workload_schedule_splits_backward (c->schedule))
        return m * work / p;
    return work / (v * -expm1 (p * log1p (-1.0 / (m * v))));
}

/* Does it divide what is split, and is it what the axis fixes? */
static bool is_tried (int axis, int value, int split)
{
    return split % value == 0 && (axis == MAPPER_FREE || axis == value);
}

/* What a sequence takes at least, times the GPUs that work on it, of a configuration that is whole
 * but for its micro-batch. */
static double least_of_batches (const struct pool *pool, struct workload_config c)
{
    const struct mapper_problem *p = pool->problem;
    int batch = p->job->global_batch;
    double least = INFINITY;

    for (int d = 1; d <= batch / d; d++) {
        const int both[] = {d, batch / d};

        for (int i = 0; i < 2; i++)
            if (is_tried (p->axes.micro_batch, both[i], batch)) {
                c.micro_batch = both[i];
                least = fmin (least, least_work_s (pool, &c) / c.micro_batch);
            }
    }
    return least * c.deg.tp * c.deg.cp;
}

/* The same of one that lacks its experts' degrees too. */
static double least_of_experts (const struct pool *pool, struct workload_config c)
{
    const struct mapper_problem *p = pool->problem;
    int experts = p->model->experts;
    double least = INFINITY;

    if (experts == 0) {
        c.deg.ep = 1;
        c.deg.etp = c.deg.tp;
        return least_of_batches (pool, c);
    }
    for (c.deg.ep = 1; c.deg.ep <= experts; c.deg.ep++)
        for (c.deg.etp = 1; c.deg.etp <= c.deg.tp; c.deg.etp++)
            if (is_tried (p->axes.ep, c.deg.ep, experts) &&
                is_tried (p->axes.etp, c.deg.etp, c.deg.tp))
                least = fmin (least, least_of_batches (pool, c));
    return least;
}

double bound_gpu_seconds (const struct pool *pool)
{
    const struct mapper_problem *p = pool->problem;
    struct workload_config c = {.deg = {.pp = 1, .dp = 1, .vpp = 1}};
    int cp_hi = p->axes.cp == MAPPER_FREE ? pool_cp_most (p) : p->axes.cp;
    double least = INFINITY;

    for (int sp = 0; sp <= 1; sp++)
        for (c.deg.tp = 1; c.deg.tp <= p->model->heads; c.deg.tp++)
            for (c.deg.cp = 1; c.deg.cp <= cp_hi; c.deg.cp++) {
                c.sequence_parallel = sp;
                if (is_tried (p->axes.tp, c.deg.tp, p->model->heads) &&
                    is_tried (p->axes.cp, c.deg.cp, p->job->seq))
                    least = fmin (least, least_of_experts (pool, c));
            }
    return least * p->job->global_batch;
}
