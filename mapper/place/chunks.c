/* Layers to stages of several chunks each, by work alone: whole layers of all chunks of a
 * stage together.  It serves where the split of the bound (split.c) does not: schedules
 * that put weights' gradients off, and memory that too few GPUs have.
 *
 * Chunks take turns, so that a stage's pace is its work: the slowest stage's is the least
 * when one layer of each chunk after the other goes to the stage that would then still be
 * the fastest, since work grows with the layers. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>

/* Work of a stage with so many layers, of the kind that most are, at speed 1 on the fastest
 * class. */
static double work_of (const struct pool *pool, const struct workload_config *c,
                       const struct costmodel_compute *k, int stage, int layers)
{
    const struct mapper_problem *p = pool->problem;
    int head = workload_schedule_is_v (c->schedule) ? 0 : c->deg.pp - 1;
    struct workload_stage held = {.embedding = stage == 0, .head = stage == head};
    struct costmodel_stage_time t;

    *(p->model->experts > 0 ? &held.expert : &held.dense) = layers;
    costmodel_stage_compute (c, p->profile, k, &held, &t);
    return t.fwd_s + t.back_s;
}

/* Of two stages with as much to do, which takes a layer more?  The middle ones: the ends
 * also hold embedding and head, and stage 0 synchronises last. */
static bool nearer_middle (int a, int b, int pp)
{
    return abs (2 * a - pp) < abs (2 * b - pp);
}

bool chunks_spread (const struct pool *pool, const struct workload_config *c,
                    const int *cap, int *layers)
{
    const struct mapper_problem *p = pool->problem;
    int pp = c->deg.pp, unit = workload_layers_unit (c, p->profile);
    int first = workload_layers_least (p->model, c), left = p->model->layers - pp * first;
    struct costmodel_compute k;

    pool_compute (pool, c, 0, &k);
    costmodel_untold_mean (p->model, &k);
    if (left < 0 || left % unit != 0)
        return false;
    for (int i = 0; i < pp; i++) {
        if (cap[i] < first)
            return false;
        layers[i] = first;
    }
    for (; left > 0; left -= unit) {
        double least = INFINITY;
        int best = -1;

        for (int i = 0; i < pp; i++) {
            double work;

            if (layers[i] + unit > cap[i])
                continue;
            work = work_of (pool, c, &k, i, layers[i] + unit);
            if (best < 0 || work < least * (1.0 - 1e-12) ||
                (work <= least * (1.0 + 1e-12) && nearer_middle (i, best, pp))) {
                least = work;
                best = i;
            }
        }
        if (best < 0)
            return false;
        layers[best] += unit;
    }
    return true;
}
