/* The lowest bound: what the layers' compute alone takes.
 *
 * All layers of one micro-batch take W on the fastest GPUs, forward and backward.  Stage k, with
 * the share f_k of it, has m f_k W to do in every schedule, and so some stage m W / p.
 * Where backward is not split, the first micro-batch comes down to stage k through the first
 * chunks of the stages above, and the last one goes up through these: rows (1) of rows.c,
 *
 *     step >= W (m f_k + (f_0 + ... + f_(k-1)) / v)
 *
 * (where chunks may be uneven, 1 / (2 v - 1) in the place of 1 / v: a first chunk has as much of
 * its stage at least).
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

#include "base/memory.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLACES (1 << 16)

struct kept {
    struct costmodel_compute_key key;
    double s; /* of one GPU */
};

/* Those kept follow each other in memory: a system gives it page by page, and pages of places that
 * are far apart would take longer than what is kept. */
struct bound_works {
    struct kept *kept;
    size_t n;
    uint16_t at[PLACES]; /* by the key's hash: which is kept, from 1 on; 0: none */
};

struct bound_works *bound_works_create (void)
{
    return calloc (1, sizeof (struct bound_works));
}

void bound_works_destroy (struct bound_works *w)
{
    if (w)
        free (w->kept);
    free (w);
}

/* The entry for that key, new if its s is 0; NULL: no room. */
static struct kept *entry (struct bound_works *w, const struct costmodel_compute_key *key)
{
    uint16_t *at = &w->at[costmodel_compute_hash (key) % PLACES];

    if (*at == 0) {
        if (w->n == UINT16_MAX || !array_grow (&w->kept, w->n, sizeof *w->kept))
            return NULL;
        w->n++;
        *at = (uint16_t) w->n;
    } else if (memcmp (&w->kept[*at - 1].key, key, sizeof *key) == 0) {
        return &w->kept[*at - 1];
    }
    w->kept[*at - 1] = (struct kept){*key, 0.0};
    return &w->kept[*at - 1];
}

static double work_of (struct bound_works *w, const struct pool *pool,
                       const struct workload_config *c)
{
    double slowest = costmodel_slowest (pool->problem->profile, &c->deg);
    struct costmodel_compute_key key =
        costmodel_compute_key (pool->problem->job, c, pool->problem->profile);
    struct kept *k = w ? entry (w, &key) : NULL;

    if (!k)
        return least_work_s (pool, c);
    if (!(k->s > 0.0))
        k->s = least_work_s (pool, c) / slowest;
    return k->s * slowest;
}

double bound_work (struct bound_works *w, const struct pool *pool,
                   const struct workload_config *c)
{
    int unit = workload_layers_unit (c, pool->problem->profile);
    double work = work_of (w, pool, c),
           v = workload_first_share (c->schedule, c->deg.vpp, unit);
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
