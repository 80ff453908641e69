/* GPUs that are alike: classes by type and speed, and their order. */
#include "mapper/pool/pool.h"

#include <math.h>

/* Rate of matrix products, what makes a class fast. */
static double rate_of (const struct pool *pool, int gpu)
{
    const struct topology_cluster *c = pool->problem->cluster;
    const struct topology_gpu_type *t = topology_gpu_type_of (c, gpu);

    return costmodel_matrix_rate (t, pool->problem->job->precision) * t->gemm_efficiency *
           topology_gpu_speed (c, gpu);
}

/* In which step a speed is. */
static double bucket_of (double speed, double step)
{
    return step > 0 ? floor (log (speed) / log1p (step) + 0.5) : 0.0;
}

/* Sort GPUs into at most `most` classes: by type, and by speed in steps (0: by type
 * alone).  @return false when they are more */
static bool make_classes (struct pool *pool, double step, int most)
{
    const struct mapper_problem *p = pool->problem;
    const struct topology_cluster *c = pool->problem->cluster;

    pool->n_classes = 0;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *node = &c->node[pool->node[i]];

        for (int k = 0; k < node->gpus; k++) {
            double speed = node->speed ? node->speed[k] : 1.0;
            double bucket = bucket_of (speed, step);
            int q = 0;

            while (q < pool->n_classes &&
                   (pool->class[q].type != node->type ||
                    bucket_of (pool->class[q].speed, step) != bucket))
                q++;
            if (q == most)
                return false;
            if (q == pool->n_classes) {
                pool->class[pool->n_classes++] = (struct gpu_class){
                    .type = node->type,
                    .speed = speed,
                    .limit_bytes = mapper_memory_limit (p, node->type->memory_bytes)};
                pool->best_speed[q] = speed;
            }
            pool->best_speed[q] = fmax (pool->best_speed[q], speed);
            pool->class_of_gpu[node->first_gpu + k] = q;
        }
    }
    return true;
}

void pool_classes_sort (struct pool *pool, const double *value)
{
    int order[CLASSES_MAX], rank[CLASSES_MAX];
    struct pool old = *pool;

    for (int q = 0; q < pool->n_classes; q++) {
        int at = q;

        for (; at > 0 && value[order[at - 1]] < value[q]; at--)
            order[at] = order[at - 1];
        order[at] = q;
    }
    for (int q = 0; q < pool->n_classes; q++) {
        rank[order[q]] = q;
        pool->class[q] = old.class[order[q]];
        pool->best_speed[q] = old.best_speed[order[q]];
    }
    for (int g = 0; g < pool->problem->cluster->n_gpus; g++)
        if (pool->class_of_gpu[g] >= 0)
            pool->class_of_gpu[g] = rank[pool->class_of_gpu[g]];
}

/* Fastest first; a class's speed is its slowest member's. */
static void order_classes (struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;
    double rate[CLASSES_MAX];

    for (int q = 0; q < pool->n_classes; q++)
        pool->class[q].speed = INFINITY;
    for (int g = 0; g < c->n_gpus; g++) {
        int q = pool->class_of_gpu[g];

        if (q >= 0 && topology_gpu_speed (c, g) < pool->class[q].speed) {
            pool->class[q].speed = topology_gpu_speed (c, g);
            rate[q] = rate_of (pool, g);
        }
    }
    pool_classes_sort (pool, rate);
}

enum status pool_classes_init (struct pool *pool, struct error *err)
{
    double step = 0.02;

    /* Steps of speed are widened until the classes are few; then types alone count. */
    while (!make_classes (pool, step, CLASSES_FEW) && step < 64)
        step *= 2;
    if (step >= 64 && !make_classes (pool, 0, CLASSES_MAX))
        return err_set (err, ST_INVALID, "more than %d GPU types in one plan",
                        CLASSES_MAX);
    order_classes (pool);
    return ST_OK;
}

bool pool_classes_by_links (const struct pool *pool, double *bytes_per_s)
{
    bool other = false;

    for (int q = 0; q < pool->n_classes; q++) {
        bytes_per_s[q] = pool->own[0][q].bytes_per_s;
        other = other || (q > 0 && bytes_per_s[q] > bytes_per_s[q - 1]);
    }
    return other;
}
