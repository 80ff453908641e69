/* The memory of stages, as the search asks for it.
 *
 * pool_memory_fits counts a stage's layers as they need least memory, since what it refuses
 * must not be possible.  A split should be possible, so in pool_sure_caps they count with the
 * fewest and with the most experts that they could have, and must fit with both; what a split
 * really takes is looked at once it is there. */
#include "mapper/pool/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DENSE_MOST 8 /* first layers without experts whose stages are told apart */

bool pool_layers_alike (const struct pool *pool)
{
    const struct workload_model *m = pool->problem->model;

    if (m->pattern[0])
        return !m->kinds[1];
    return m->experts == 0 || (m->dense_layers == 0 && m->expert_every == 1);
}

/* Do all layers count alike? */
static bool counts_alike (const struct pool *pool)
{
    return pool_layers_alike (pool) && pool->problem->memory_model == MEMEST_LINKWISE;
}

/* The smallest or the largest limit of any class. */
static double limit_of (const struct pool *pool, bool smallest)
{
    double limit = pool->class[0].limit_bytes;

    for (int q = 1; q < pool->n_classes; q++)
        limit = smallest ? fmin (limit, pool->class[q].limit_bytes)
                         : fmax (limit, pool->class[q].limit_bytes);
    return limit;
}

/* Where an even split's stage begins, as far as layers without experts tell: the first ones of the
 * model have none. */
static int first_of (const struct workload_model *m, const struct workload_config *c,
                     int stage, int even)
{
    int first = stage * workload_chunk_layers (even, c->deg.vpp, 0,
                                               workload_schedule_is_v (c->schedule));

    return stage == 0 || m->pattern[0] || m->expert_every > 1 || first < m->dense_layers
               ? stage
               : m->dense_layers;
}

/* Does a stage with so many layers fit, without head and embedding?  Some stage has as many: the
 * last one, whose chunks are dealt otherwise, or one that takes as much as the one before it. */
static bool last_fits (const struct memest_problem *memory, int stage, int layers,
                       double limit)
{
    struct workload_stage held =
        workload_stage_guess (memory->model, memory->config, stage, layers);
    struct memest_stage s;

    held.embedding = held.head = false;
    memest_stage (memory, stage, &held, &s);
    return memest_fits (memory, &s, limit);
}

/* Do the layers of an even split fit, in as few estimates as will tell?  Where layers are all
 * of one kind, a stage needs no more than one before it but for embedding and head.
 * @return 1, 0, or -1 when that does not tell */
static int even_split_fits (const struct memest_problem *memory, bool alike, double limit)
{
    const struct workload_config *c = memory->config;
    int pp = c->deg.pp, unit = workload_layers_unit (c, memory->profile);
    int even = (memory->model->layers / unit + pp - 1) / pp * unit;
    struct memest_stage s;

    if (alike && !last_fits (memory, pp - 1, even, limit) &&
        (pp == 1 || !last_fits (memory, pp - 2, even, limit)))
        return 0;
    for (int i = 0; i < pp; i++) {
        struct workload_stage held = workload_stage_from (
            memory->model, c, i, first_of (memory->model, c, i, even), even);

        if (alike && i > 0 && !held.head)
            continue;
        memest_stage (memory, i, &held, &s);
        if (!memest_fits (memory, &s, limit))
            return -1;
    }
    return 1;
}

/* The most layers up to `cap` of a stage that begins with so many of the model's layers without
 * experts. */
static int cap_behind (const struct memest_problem *memory, int stage, int dense, int cap,
                       double limit)
{
    const struct workload_model *m = memory->model;
    struct memest_stage s;

    for (; cap > 0; cap -= workload_layers_unit (memory->config, memory->profile)) {
        struct workload_stage held =
            workload_stage_from (m, memory->config, stage, m->dense_layers - dense, cap);

        memest_stage (memory, stage, &held, &s);
        if (memest_fits (memory, &s, limit))
            break;
    }
    return cap > 0 ? cap : 0;
}

/* The most layers of a stage whose first chunk has so many: where chunks may be uneven, others may
 * have one more, but in a V. */
static int most_after (const struct memest_problem *memory, int first)
{
    const struct workload_config *c = memory->config;
    int v = c->deg.vpp, unit = workload_layers_unit (c, memory->profile);

    return first > 0 ? (first - 1) * v + workload_first_share (c->schedule, v, unit) : 0;
}

/* Layers that the first stages hold together at most, of which each had room for cap[i] when it
 * had as many as it can of the model's first layers, without experts: these are so few, and a stage
 * that leaves some to the next has no others in its first chunk. */
static int first_room (const struct memest_problem *memory, int stages, const int *cap,
                       double limit)
{
    int dense = memory->model->dense_layers, room[DENSE_MOST + 1] = {0};

    for (int i = 0; i < stages; i++)
        for (int all = dense; all >= 0; all--) {
            int most = 0;

            for (int own = i == 0 ? all : 0; own <= all; own++) {
                int alone = all < dense ? most_after (memory, own) : cap[i];
                int held =
                    cap_behind (memory, i, own, alone < cap[i] ? alone : cap[i], limit);

                held += room[all - own];
                most = held > most ? held : most;
            }
            room[all] = most;
        }
    return room[dense];
}

/* Stages that may have some of the model's first layers, without experts, where those before them
 * can have these too; 0: that is only the first. */
static int dense_stages (const struct workload_model *m, int pp)
{
    int dense = m->pattern[0] || m->expert_every > 1 ? 0 : m->dense_layers;

    return dense < 2 || dense > DENSE_MOST || pp == 1 || m->experts == 0 ? 0
           : dense < pp                                                  ? dense
                                                                         : pp;
}

bool pool_memory_fits (const struct pool *pool, const struct workload_config *c,
                       int *caps)
{
    const struct mapper_problem *p = pool->problem;
    int pp = c->deg.pp, room = 0, layers = p->model->layers;
    int shared = p->memory_model == MEMEST_LINKWISE ? dense_stages (p->model, pp) : 0,
        cap_of[DENSE_MOST];
    double largest = limit_of (pool, false);
    struct memest_problem memory = mapper_memory_problem (p, c);

    if (!caps) {
        int fits = even_split_fits (&memory, counts_alike (pool), largest);

        if (fits >= 0)
            return fits;
    }
    for (int i = 0; i < pp; i++) {
        int most = 0;

        for (int q = 0; q < (caps ? pool->n_classes : 1); q++) {
            double limit = caps ? pool->class[q].limit_bytes : largest;
            int cap = memest_max_layers (&memory, i, layers, limit);

            if (caps)
                caps[q * pp + i] = cap;
            most = cap > most ? cap : most;
        }
        if (most < workload_layers_least (p->model, c))
            return false;
        room += most;
        if (i < shared)
            cap_of[i] = most;
    }
    if (room < layers || shared == 0)
        return room >= layers;
    for (int i = 0; i < shared; i++)
        room -= cap_of[i];
    return room + first_room (&memory, shared, cap_of, largest) >= layers;
}

/* Layers that all stages hold together at most, when a stage of n layers needs all its GPUs of
 * classes with memory for n: of those with more there are no more stages than they have GPUs
 * for. */
static int shared_room (const struct pool *pool, const struct workload_config *c,
                        const int *caps)
{
    int most[CLASSES_MAX] = {0}, pp = c->deg.pp, room = 0, left = pp;
    long stage = workload_world (&c->deg) / pp, gpus = 0;
    bool taken[CLASSES_MAX] = {false};

    for (int q = 0; q < pool->n_classes; q++)
        for (int i = 0; i < pp; i++)
            most[q] = caps[q * pp + i] > most[q] ? caps[q * pp + i] : most[q];
    for (int n = 0; n < pool->n_classes && left > 0; n++) {
        int q = 0, stages;

        for (int i = 0; i < pool->n_classes; i++)
            if (!taken[i] && (taken[q] || most[i] > most[q]))
                q = i;
        taken[q] = true;
        gpus += pool_groups (pool, q, 1) - (q > 0 ? pool_groups (pool, q - 1, 1) : 0);
        stages = gpus / stage < pp ? (int) (gpus / stage) : pp;
        stages -= pp - left;
        room += stages * most[q];
        left -= stages;
    }
    return room;
}

bool pool_large_gpus_suffice (const struct pool *pool, const struct workload_config *c,
                              const int *caps)
{
    return pool->n_classes == 1 || pool_nodes_limited (pool) ||
           shared_room (pool, c, caps) >= pool->problem->model->layers;
}

bool pool_states_fit (const struct pool *pool, const struct workload_config *c,
                      const struct workload_stage *all)
{
    struct memest_problem memory = mapper_memory_problem (pool->problem, c);

    return memest_states_least (&memory, all) <= limit_of (pool, false);
}

bool pool_even_split_fits (const struct pool *pool, const struct workload_config *c,
                           bool everywhere)
{
    struct memest_problem memory = mapper_memory_problem (pool->problem, c);
    bool alike = counts_alike (pool);
    int fits = even_split_fits (&memory, alike, limit_of (pool, everywhere));

    return fits == 1 || (fits == -1 && alike && !everywhere);
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
        if (memest_fits (memory, &few, limit) && memest_fits (memory, &many, limit))
            break;
    }
    return cap;
}

void pool_sure_caps (const struct pool *pool, const struct workload_config *c, int *caps)
{
    const struct mapper_problem *p = pool->problem;
    struct memest_problem memory = mapper_memory_problem (p, c);
    int pp = c->deg.pp, n = pp * pool->n_classes, room = 0;
    int *sure = pool_layers_alike (pool) ? NULL : malloc ((size_t) n * sizeof (int));

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

void pool_stage_classes (const struct pool *pool, const struct workload_config *c,
                         const int *layers, bool *allowed)
{
    struct memest_problem memory = mapper_memory_problem (pool->problem, c);
    int classes = pool->n_classes;

    for (int i = 0; i < c->deg.pp; i++) {
        struct workload_stage held = mapper_stage (pool->problem, c, layers, i);
        struct memest_stage s;

        memest_stage (&memory, i, &held, &s);
        for (int q = 0; q < classes; q++)
            allowed[i * classes + q] =
                memest_fits (&memory, &s, pool->class[q].limit_bytes);
    }
}
