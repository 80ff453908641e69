/* Nothing fits: what came closest, and what would make it fit. */
#include "mapper/search/search_private.h"

#include <stdlib.h>

#include "base/units.h"

#define SEQ_LEAST 128 /* shorter ones are another job */

void find_miss (const struct pool *pool, const struct workload_config *list, long n,
                struct mapper_info *info)
{
    const struct mapper_problem *p = pool->problem;
    double least = 0;

    for (long i = 0; i < n; i++) {
        const struct workload_config *c = &list[i];
        int pp = c->deg.pp, layers = (p->model->layers + pp - 1) / pp;
        struct memest_problem memory = mapper_memory_problem (p, c);
        struct mapper_miss miss = {.config = *c, .layers = layers};
        double worst = 0;

        for (int q = 0; q < pool->n_classes; q++)
            if (pool->class[q].limit_bytes > miss.limit_bytes) {
                miss.limit_bytes = pool->class[q].limit_bytes;
                miss.gpu_bytes = pool->class[q].type->memory_bytes;
            }
        for (int k = 0; k < pp && (!info->missed || worst < least); k++) {
            struct workload_stage held = workload_stage_guess (p->model, c, k, layers);
            struct memest_stage s;
            double full;

            memest_stage (&memory, k, &held, &s);
            full = s.peak_bytes / memest_limit_of (&memory, &s, miss.limit_bytes);
            if (full > worst) {
                worst = full;
                miss.stage = k;
                miss.memory = s;
            }
        }
        if (!info->missed || worst < least) {
            least = worst;
            miss.limit_bytes = memest_limit_of (&memory, &miss.memory, miss.limit_bytes);
            info->miss = miss;
            info->missed = true;
        }
    }
}

/* Does any configuration fit when the axes are these and there are n_gpus GPUs? */
static bool fits_with (const struct mapper_problem *p, const struct mapper_axes *axes,
                       int n_gpus)
{
    struct mapper_problem other = *p;
    struct deadline never = {.until_s = INFINITY};
    struct pool_limit limit = {.roomy = true, .deadline = &never};
    struct pool pool;
    struct workload_config *list;
    json_t *space;
    long n;
    bool fits = false;

    other.axes = *axes;
    if (pool_init (&pool, &other, NULL) != ST_OK)
        return false;
    if (n_gpus > 0)
        pool.n_gpus = n_gpus;
    if (pool_configurations (&pool, 1, &limit, &list, &n, &space, NULL) == ST_OK) {
        for (long i = 0; i < n && !fits; i++)
            fits = pool_memory_fits (&pool, &list[i], NULL);
        free (list);
        json_decref (space);
    }
    pool_release (&pool);
    return fits;
}

/* The first fixed axis whose release alone makes something fit. */
static const char *axis_to_free (const struct mapper_problem *p)
{
    static const char *const names[] = {"--tp",          "--pp",   "--dp",
                                        "--micro-batch", "--zero", "--sequence-parallel",
                                        "--recompute"};

    for (int i = 0; i < 7; i++) {
        struct mapper_axes a = p->axes;
        int *axis[] = {&a.tp,          &a.pp,   &a.dp,
                       &a.micro_batch, &a.zero, &a.sequence_parallel,
                       &a.recompute};

        if (*axis[i] == MAPPER_FREE)
            continue;
        *axis[i] = MAPPER_FREE;
        if (fits_with (p, &a, 0))
            return names[i];
    }
    return NULL;
}

/* Are there GPUs with other amounts of memory? */
static bool is_mixed (const struct topology_cluster *c)
{
    for (int i = 1; i < c->n_nodes; i++)
        if (c->node[i].type->memory_bytes != c->node[0].type->memory_bytes)
            return true;
    return false;
}

/* The smallest change of the closest configuration, which was held against the largest
 * GPUs. */
static void add_change (const struct mapper_problem *p, const struct mapper_miss *miss,
                        struct text *out)
{
    struct memest_problem memory = mapper_memory_problem (p, &miss->config);
    struct workload_config changed;
    struct text words = {0};
    int *layers = malloc ((size_t) miss->config.deg.pp * sizeof (int));

    if (layers) {
        workload_layers_split (p->model, p->profile->partition, miss->config.deg.pp,
                               layers);
        if (memest_smallest_change (&memory, layers,
                                    mapper_memory_limit (p, miss->gpu_bytes), &changed,
                                    &words))
            text_add (out, "this one would fit with %s%s\n", text_str (&words),
                      is_mixed (p->cluster) ? ", if all GPUs were its largest" : "");
    }
    free (layers);
    text_free (&words);
}

/* A higher limit, where the GPU itself has the room, or shorter sequences. */
static void add_lighter (const struct mapper_problem *p, const struct mapper_miss *miss,
                         struct text *out)
{
    struct workload_job job = *p->job;
    struct mapper_problem shorter = *p;
    double pct = ceil (100 * miss->memory.peak_bytes / miss->gpu_bytes);

    if (pct <= 100)
        text_add (out, "it would fit with --memory-limit %.0f, and may run out\n", pct);
    shorter.job = &job;
    for (job.seq /= 2; job.seq >= SEQ_LEAST; job.seq /= 2)
        if (fits_with (&shorter, &p->axes, 0)) {
            text_add (out, "it would fit with --seq %d\n", job.seq);
            return;
        }
}

const enum workload_offload mapper_resorts[MAPPER_RESORTS] = {
    OFFLOAD_CHECKPOINTS, OFFLOAD_OPTIMIZER, OFFLOAD_ALL};

/* What may be offloaded against the user's wish, or where hosts have too little memory. */
static void add_offload (const struct mapper_problem *p, const struct mapper_info *info,
                         struct text *out)
{
    struct topology_cluster large = *p->cluster;
    struct mapper_problem on_large = *p;

    large.host_share_bytes = 0; /* no limit */
    on_large.cluster = &large;
    for (int i = 0; i < MAPPER_RESORTS; i++) {
        const char *word = workload_offload_name (mapper_resorts[i]);
        struct mapper_axes a = p->axes;

        a.offload = (int) mapper_resorts[i];
        if (!mapper_can_offload (p, mapper_resorts[i]))
            continue;
        if (fits_with (p, &a, 0)) {
            /* In memory alone, where no search of it has a plan. */
            if (!info->resorted)
                text_add (out, "it would fit with --offload %s\n", word);
            return;
        }
        if (p->cluster->host_share_bytes > 0 && fits_with (&on_large, &a, 0)) {
            text_add (out,
                      "with --offload %s GPUs have room, but hosts have not: %.1f GiB of "
                      "their memory a GPU\n",
                      word, p->cluster->host_share_bytes / UNITS_GIB);
            return;
        }
        a.optimizer_bytes = MAPPER_FREE; /* which keeps states on the GPU */
        if (p->axes.optimizer_bytes != MAPPER_FREE && fits_with (p, &a, 0)) {
            text_add (out, "it would fit with --offload %s, without --optimizer-bytes\n",
                      word);
            return;
        }
    }
}

void mapper_explain_miss (const struct mapper_problem *p, const struct mapper_info *info,
                          struct text *out)
{
    const struct mapper_miss *miss = &info->miss;
    const struct workload_config *c = &miss->config;
    const char *axis = axis_to_free (p);
    char word[WORKLOAD_RECOMPUTE_TEXT];
    double kind_bytes;
    const char *kind = memest_largest_kind (&miss->memory, &kind_bytes);
    double enough = miss->memory.peak_bytes * miss->gpu_bytes / miss->limit_bytes;
    int n_gpus = 0;

    text_add (
        out,
        "closest: tp %d, pp %d, dp %d, cp %d, micro-batch %d, zero %d, sequence "
        "parallelism %s, recompute %s:\n"
        "  stage %d with %d layers needs %.1f GiB (%.1f GiB of it %s), the limit is "
        "%.1f GiB of %.1f GiB\n",
        c->deg.tp, c->deg.pp, c->deg.dp, c->deg.cp, c->micro_batch, c->zero,
        c->sequence_parallel ? "on" : "off", workload_recompute_text (c, word),
        miss->stage, miss->layers, miss->memory.peak_bytes / UNITS_GIB,
        kind_bytes / UNITS_GIB, kind, miss->limit_bytes / UNITS_GIB,
        miss->gpu_bytes / UNITS_GIB);
    add_change (p, miss, out);
    add_offload (p, info, out);
    if (miss->memory.peak_bytes <= miss->limit_bytes && !(miss->memory.host_bytes > 0))
        text_add (out, "  too few GPUs have that much memory, or they are on too many "
                       "nodes\n");
    if (axis) {
        text_add (out, "it would fit without fixing %s\n", axis);
        return;
    }
    if (miss->memory.peak_bytes <= miss->limit_bytes)
        return;
    for (int factor = 2; factor <= 4096 && n_gpus == 0; factor *= 2) {
        int have = 0;

        for (int i = 0; i < p->cluster->n_nodes; i++)
            if (mapper_node_allowed (p, i))
                have += p->cluster->node[i].gpus;
        if ((long long) have * factor < 1 << 20 && fits_with (p, &p->axes, have * factor))
            n_gpus = have * factor;
    }
    add_lighter (p, miss, out);
    if (n_gpus > 0)
        text_add (out, "it would fit on %d such GPUs, or on GPUs with %.0f GB\n", n_gpus,
                  enough / UNITS_GB);
    else if (isfinite (enough))
        text_add (out, "it would fit on GPUs with %.0f GB\n", enough / UNITS_GB);
}
