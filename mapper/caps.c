/* Caps on a stage's layers that hold whichever layers of the model they are.
 *
 * memory_fits counts as many layers without experts as a stage could have, since what it
 * refuses must not be possible.  A split should be possible, so here they count as the worst
 * that they could be; what a split really takes is looked at once it is there. */
#include "mapper/mapper_private.h"

#include <stdlib.h>
#include <string.h>

/* Most experts among n layers in a row; those of stage 0 start with the model's first. */
static struct workload_stage worst (const struct workload_model *m,
                                    const struct workload_config *c, int stage,
                                    int layers)
{
    struct workload_stage s = workload_stage_guess (m, c, stage, layers);
    int first = stage == 0 ? layers / c->deg.vpp : 0, experts = 0, rest = layers - first;

    for (int i = 0; i < first; i++)
        experts += workload_is_expert_layer (m, i);
    for (int chunk = 0; chunk < c->deg.vpp && rest > 0; chunk++) {
        int n = layers / c->deg.vpp < rest ? layers / c->deg.vpp : rest;

        experts += (n + m->expert_every - 1) / m->expert_every;
        rest -= n;
    }
    s.expert = experts;
    s.dense = layers - experts;
    return s;
}

bool caps_alike (const struct pool *pool)
{
    const struct workload_model *m = pool->problem->model;

    return m->experts == 0 || (m->dense_layers == 0 && m->expert_every == 1);
}

/* The most layers up to `cap` that fit. */
static int cap_surely (const struct pool *pool, const struct memest_problem *memory,
                       int class, int stage, int cap)
{
    for (; cap > 0; cap--) {
        struct workload_stage held = worst (memory->model, memory->config, stage, cap);
        struct memest_stage s;

        memest_stage (memory, stage, &held, &s);
        if (s.peak_bytes <= pool->class[class].limit_bytes)
            break;
    }
    return cap;
}

void caps_surely (const struct pool *pool, const struct workload_config *c, int *caps)
{
    const struct mapper_problem *p = pool->problem;
    struct memest_problem memory = {p->model, p->job, c, p->profile, p->memory_model};
    int pp = c->deg.pp, n = pp * pool->n_classes, room = 0;
    int *sure = caps_alike (pool) ? NULL : malloc ((size_t) n * sizeof (int));

    for (int i = 0; i < pp && sure; i++) {
        int most = 0;

        for (int q = 0; q < pool->n_classes; q++) {
            int *cap = &sure[q * pp + i];

            *cap = cap_surely (pool, &memory, q, i, caps[q * pp + i]);
            most = *cap > most ? *cap : most;
        }
        room += most;
    }
    if (sure && room >= p->model->layers)
        memcpy (caps, sure, (size_t) n * sizeof (int));
    free (sure);
}
