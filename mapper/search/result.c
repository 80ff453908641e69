/* Another placement in the place of the one that was found. */
#include "mapper/search/search_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

void mapper_result_release (struct mapper_result *r)
{
    FREE_ALL (r->layers, r->gpu, r->estimate.unmeasured, r->memory, r->gpu_bytes, r->top);
    *r = (struct mapper_result){0};
}

void mapper_info_release (struct mapper_info *info)
{
    json_decref (info->space);
    *info = (struct mapper_info){0};
}

/* The memory of every stage beside its smallest GPU's limit. */
static enum status describe_memory (const struct mapper_problem *p,
                                    struct mapper_result *r, struct error *err)
{
    const struct memest_problem memory = mapper_memory_problem (p, &r->config);

    for (int i = 0; i < r->config.deg.pp; i++) {
        double limit;

        r->gpu_bytes[i] =
            mapper_stage_memory (p, &r->config, r->layers, r->gpu, i, &r->memory[i]);
        limit = mapper_stage_limit (p, &r->memory[i], r->gpu_bytes[i]);
        if (r->memory[i].peak_bytes > limit)
            return err_set (
                err, ST_NOFIT,
                "stage %d with its %d layers needs %.1f GiB, the limit is %.1f "
                "GiB on the GPUs it got",
                i, r->layers[i], r->memory[i].peak_bytes / UNITS_GIB, limit / UNITS_GIB);
        if (!memest_fits_host (&memory, &r->memory[i]))
            return err_set (err, ST_NOFIT,
                            "stage %d with its %d layers needs %.1f GiB of its host's "
                            "memory a GPU, there are %.1f GiB",
                            i, r->layers[i], r->memory[i].host_bytes / UNITS_GIB,
                            memory.host_limit_bytes / UNITS_GIB);
    }
    return ST_OK;
}

int mapper_fullest_host (const struct mapper_problem *p, const struct mapper_result *r,
                         double *bytes)
{
    const struct topology_cluster *c = p->cluster;
    int world = (int) workload_world (&r->config.deg), most = -1;
    double *host = calloc ((size_t) c->n_nodes, sizeof *host);

    *bytes = 0.0;
    for (int k = 0; k < world && host; k++) {
        int node = c->node_of_gpu[r->gpu[k]];

        host[node] += r->memory[k / (world / r->config.deg.pp)].host_bytes;
        if (host[node] > *bytes) {
            *bytes = host[node];
            most = node;
        }
    }
    free (host);
    return most;
}

int mapper_tightest_stage (const struct mapper_problem *p, const struct mapper_result *r)
{
    int worst = 0;

    for (int i = 1; i < r->config.deg.pp; i++)
        if (mapper_stage_full (p, &r->memory[i], r->gpu_bytes[i]) >
            mapper_stage_full (p, &r->memory[worst], r->gpu_bytes[worst]))
            worst = i;
    return worst;
}

double mapper_chance (const struct mapper_problem *p, const struct mapper_result *r)
{
    double most = 0.0;

    for (int i = 0; i < r->config.deg.pp; i++)
        most = memest_larger_chance (most, memest_chance (p->memory_model, p->profile,
                                                          memest_load_of (&r->memory[i]),
                                                          r->gpu_bytes[i]));
    return most;
}

/* Has every GPU of the order the memory for its stage? */
static bool order_fits (const struct mapper_problem *p, const struct mapper_result *r,
                        const int *gpu)
{
    int world = (int) workload_world (&r->config.deg),
        per_stage = world / r->config.deg.pp;

    for (int k = 0; k < world; k++)
        if (mapper_stage_full (p, &r->memory[k / per_stage],
                               topology_gpu_type_of (p->cluster, gpu[k])->memory_bytes) >
            1.0)
            return false;
    return true;
}

/* Megatron's order with these layers, where memory and pinned nodes allow it. */
static enum status describe_default (const struct pool *pool,
                                     const struct costmodel_problem *priced,
                                     struct mapper_result *r, struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_estimate e;
    int *gpu = malloc ((size_t) p->cluster->n_gpus * sizeof (int));
    enum status st = gpu ? pool_default_order (pool, gpu, err) : err_nomem (err);

    r->default_order_step_s = INFINITY;
    r->default_order_unmeasured = 0;
    if (st == ST_OK && order_fits (p, r, gpu) &&
        pool_pins_hold (pool, gpu, (int) workload_world (&r->config.deg)) &&
        costmodel_estimate (priced, gpu, true, &e, NULL) == ST_OK) {
        r->default_order_step_s = e.step_s;
        r->default_order_unmeasured = e.n_unmeasured;
        free (e.unmeasured);
    }
    free (gpu);
    return st;
}

enum status result_put (const struct pool *pool, const struct workload_config *config,
                        const int *layers, const int *gpu, struct mapper_result *r,
                        struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    size_t pp = (size_t) config->deg.pp, world = (size_t) workload_world (&config->deg);
    struct mapper_result x = {.config = *config,
                              .layers = malloc (pp * sizeof (int)),
                              .gpu = malloc (world * sizeof (int)),
                              .lower_bound_s = r->lower_bound_s,
                              .node_step_s = INFINITY,
                              .gpu_step_s = INFINITY,
                              .memory = calloc (pp, sizeof *x.memory),
                              .gpu_bytes = calloc (pp, sizeof *x.gpu_bytes)};
    struct costmodel_problem priced;
    enum status st = ST_OK;

    if (!x.layers || !x.gpu || !x.memory || !x.gpu_bytes)
        st = err_nomem (err);
    if (st == ST_OK) {
        memcpy (x.layers, layers, pp * sizeof (int));
        memcpy (x.gpu, gpu, world * sizeof (int));
        x.granularity =
            pool_is_by_node (pool, gpu, (int) world) ? MAPPER_NODE : MAPPER_GPU;
        priced = mapper_priced (p, &x.config, x.layers);
        st = describe_memory (p, &x, err);
    }
    THEN (st, costmodel_estimate (&priced, gpu, true, &x.estimate, err));
    THEN (st, describe_default (pool, &priced, &x, err));
    if (st != ST_OK) {
        mapper_result_release (&x);
        return st;
    }
    x.lower_bound_s = fmin (x.lower_bound_s, x.estimate.step_s);
    x.top = r->top;
    x.n_top = r->n_top;
    x.model_error = r->model_error;
    x.ties = r->ties;
    x.riskier = r->riskier;
    r->top = NULL;
    mapper_result_release (r);
    *r = x;
    return ST_OK;
}

enum status mapper_result_put (const struct mapper_problem *p,
                               const struct workload_config *config, const int *layers,
                               const int *gpu, struct mapper_result *r, struct error *err)
{
    struct pool pool;
    enum status st;

    TRY (pool_init (&pool, p, err));
    st = result_put (&pool, config, layers, gpu, r, err);
    pool_release (&pool);
    return st;
}

enum status mapper_default_order (const struct mapper_problem *p, int *gpu,
                                  struct error *err)
{
    struct pool pool;
    enum status st;

    TRY (pool_init (&pool, p, err));
    st = pool_default_order (&pool, gpu, err);
    pool_release (&pool);
    return st;
}
