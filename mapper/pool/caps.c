/* Caps on a stage's layers that hold whichever layers of the model they are.
 *
 * memory_fits counts a stage's layers as they need least memory, since what it refuses must
 * not be possible.  A split should be possible, so here they count with the fewest and with
 * the most experts that they could have, and must fit with both; what a split really takes
 * is looked at once it is there. */
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool caps_alike (const struct pool *pool)
{
    const struct workload_model *m = pool->problem->model;

    return m->experts == 0 || (m->dense_layers == 0 && m->expert_every == 1);
}

/* The most layers up to `cap` that fit. */
static int cap_surely (const struct pool *pool, const struct memest_problem *memory,
                       int class, int stage, int cap)
{
    double limit = pool->class[class].limit_bytes;

    for (; cap > 0; cap--) {
        struct workload_stage fewest, most;
        struct memest_stage few, many;

        workload_stage_range (memory->model, memory->config, stage, cap, &fewest, &most);
        memest_stage (memory, stage, &fewest, &few);
        memest_stage (memory, stage, &most, &many);
        if (fmax (few.peak_bytes, many.peak_bytes) <= limit)
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
