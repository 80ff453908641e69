/* Caps on a stage's layers that hold whichever layers of the model they are.
 *
 * memory_fits counts as many layers without experts as a stage could have, since what it
 * refuses must not be possible.  A split must be possible, so here they count as the worst
 * that they could be. */
#include "mapper/mapper_private.h"

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

bool caps_surely (const struct pool *pool, const struct workload_config *c, int *caps)
{
    const struct mapper_problem *p = pool->problem;
    struct memest_problem memory = {p->model, p->job, c, p->profile, p->memory_model};
    int pp = c->deg.pp, room = 0;

    if (caps_alike (pool))
        return true;
    for (int i = 0; i < pp; i++) {
        int most = 0;

        for (int q = 0; q < pool->n_classes; q++) {
            int *cap = &caps[q * pp + i];

            for (; *cap > 0; --*cap) {
                struct workload_stage held = worst (p->model, c, i, *cap);
                struct memest_stage s;

                memest_stage (&memory, i, &held, &s);
                if (s.peak_bytes <= pool->class[q].limit_bytes)
                    break;
            }
            most = *cap > most ? *cap : most;
        }
        room += most;
    }
    return room >= p->model->layers;
}
