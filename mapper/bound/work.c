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
 * W does not depend on the pipeline, and the space has few different ones: they are kept. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (1 << 16)

/* All that compute depends on, but for how many GPUs wait for the slowest. */
struct work_key {
    int tp, cp, ep, etp, micro_batch, sequence_parallel, recompute, recompute_layers,
        modules;
};

struct bound_works {
    struct {
        struct work_key key;
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

static struct work_key key_of (const struct workload_config *c)
{
    return (struct work_key){
        c->deg.tp,          c->deg.cp,           c->deg.ep,
        c->deg.etp,         c->micro_batch,      c->sequence_parallel,
        (int) c->recompute, c->recompute_layers, (int) c->recompute_modules};
}

static size_t place_of (const struct work_key *k)
{
    int part[sizeof *k / sizeof (int)];
    uint64_t h = 0;

    memcpy (part, k, sizeof part);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        h = (h ^ (uint64_t) part[i]) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 29) % KEPT;
}

static double work_of (struct bound_works *w, const struct pool *pool,
                       const struct workload_config *c)
{
    double slowest = costmodel_slowest (pool->problem->profile, &c->deg);
    struct work_key key = key_of (c);
    size_t i = place_of (&key);

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
