/* Names and defaults of the problem. */
#include "mapper/problem.h"

#include <math.h>
#include <string.h>

struct mapper_axes mapper_axes_free (void)
{
    return (struct mapper_axes){.tp = MAPPER_FREE,
                                .pp = MAPPER_FREE,
                                .dp = MAPPER_FREE,
                                .cp = MAPPER_FREE,
                                .ep = MAPPER_FREE,
                                .etp = MAPPER_FREE,
                                .vpp = MAPPER_FREE,
                                .micro_batch = MAPPER_FREE,
                                .zero = MAPPER_FREE,
                                .shard = MAPPER_FREE,
                                .sequence_parallel = MAPPER_FREE,
                                .recompute = MAPPER_FREE,
                                .optimizer_bytes = MAPPER_FREE,
                                .offload = MAPPER_FREE,
                                .schedule = MAPPER_FREE};
}

struct mapper_axes mapper_axes_of (const struct workload_config *c)
{
    return (struct mapper_axes){
        .tp = c->deg.tp,
        .pp = c->deg.pp,
        .dp = c->deg.dp,
        .cp = c->deg.cp,
        .ep = c->deg.ep,
        .etp = c->deg.etp,
        .vpp = c->deg.vpp,
        .micro_batch = c->micro_batch,
        .zero = c->zero,
        .shard = workload_shard_copies (c) > 1 ? c->shard : 0,
        .sequence_parallel = c->sequence_parallel,
        .recompute = (int) c->recompute,
        .recompute_layers = c->recompute_layers,
        .recompute_modules = c->recompute_modules,
        .optimizer_bytes = c->optimizer_bytes > 0 ? c->optimizer_bytes : MAPPER_FREE,
        .offload = (int) c->offload,
        .schedule = (int) c->schedule};
}

struct mapper_axes mapper_axes_resumed (const struct workload_config *c)
{
    struct mapper_axes a = mapper_axes_free ();

    a.optimizer_bytes = mapper_axes_of (c).optimizer_bytes;
    a.offload = (int) c->offload;
    return a;
}

static bool holds (int fixed, int value)
{
    return fixed == MAPPER_FREE || fixed == value;
}

bool mapper_axes_hold (const struct mapper_axes *fixed, const struct workload_config *c)
{
    struct mapper_axes has = mapper_axes_of (c);

    return holds (fixed->tp, has.tp) && holds (fixed->pp, has.pp) &&
           holds (fixed->dp, has.dp) && holds (fixed->cp, has.cp) &&
           holds (fixed->ep, has.ep) && holds (fixed->etp, has.etp) &&
           holds (fixed->vpp, has.vpp) && holds (fixed->micro_batch, has.micro_batch) &&
           holds (fixed->zero, has.zero) &&
           holds (fixed->shard == c->deg.dp ? 0 : fixed->shard, has.shard) &&
           holds (fixed->sequence_parallel, has.sequence_parallel) &&
           holds (fixed->recompute, has.recompute) &&
           (fixed->recompute == MAPPER_FREE ||
            (fixed->recompute_layers == has.recompute_layers &&
             fixed->recompute_modules == has.recompute_modules)) &&
           holds (fixed->optimizer_bytes, has.optimizer_bytes) &&
           holds (fixed->offload, has.offload) && holds (fixed->schedule, has.schedule);
}

struct mapper_goodput mapper_goodput_of (const struct mapper_problem *p, long gpus)
{
    long nodes = 0, all = 0;

    for (int i = 0; i < p->cluster->n_nodes; i++)
        if (mapper_node_allowed (p, i)) {
            nodes++;
            all += p->cluster->node[i].gpus;
        }
    return mapper_goodput (&p->reliability, (double) gpus,
                           all > gpus ? (int) ((all - gpus) * nodes / all) : 0);
}

double mapper_weight (const struct mapper_problem *p, const struct workload_config *c)
{
    switch (p->objective) {
    case MAPPER_GPU_HOURS:
        return (double) workload_world (&c->deg);
    case MAPPER_GOODPUT:
        return 1.0 / mapper_goodput_of (p, workload_world (&c->deg)).share;
    case MAPPER_STEP:
        break;
    }
    return 1.0;
}

static const char *const objectives[] = {"step", "gpu-hours", "goodput", NULL};

const char *mapper_objective_name (enum mapper_objective o)
{
    return objectives[o];
}

bool mapper_objective_parse (const char *s, enum mapper_objective *o)
{
    return workload_word_parse (objectives, s, o);
}

bool mapper_granularity_parse (const char *s, enum mapper_granularity *g)
{
    static const char *const names[] = {"auto", "node", "gpu", NULL};

    return workload_word_parse (names, s, g);
}

static int or_usual (int value, int usual)
{
    return value == MAPPER_FREE ? usual : value;
}

/* The least data-parallel degree over whose ranks the experts can be dealt out. */
static int least_dp (const struct workload_degrees *d)
{
    long long ranks = (long long) d->tp * d->cp, need = (long long) d->etp * d->ep;

    need /= mapper_common_divisor (need, ranks);
    return need <= WORKLOAD_RANKS_MAX ? (int) need : 1;
}

struct workload_config mapper_axes_config (const struct mapper_axes *a)
{
    struct workload_config c = {
        .deg = {.tp = or_usual (a->tp, 1),
                .pp = or_usual (a->pp, 1),
                .cp = or_usual (a->cp, 1),
                .ep = or_usual (a->ep, 1)},
        .micro_batch = or_usual (a->micro_batch, 1),
        .zero = or_usual (a->zero, 1),
        .shard = or_usual (a->shard, 0),
        .recompute = (enum workload_recompute) or_usual (
            a->recompute,
            a->offload == OFFLOAD_CHECKPOINTS ? RECOMPUTE_FULL : RECOMPUTE_NONE),
        .recompute_layers = a->recompute_layers,
        .recompute_modules = a->recompute_modules,
        .optimizer_bytes = or_usual (a->optimizer_bytes, 0),
        .offload = (enum workload_offload) or_usual (a->offload, OFFLOAD_NONE),
        .schedule = (enum workload_schedule) or_usual (
            a->schedule, a->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B)};

    c.deg.vpp = or_usual (a->vpp, workload_default_vpp (c.schedule));
    c.deg.etp = or_usual (a->etp, c.deg.tp);
    c.deg.dp = or_usual (a->dp, least_dp (&c.deg));
    c.sequence_parallel = c.deg.tp > 1 && or_usual (a->sequence_parallel, 1);
    return c;
}

void mapper_axes_usual (const struct mapper_axes *a, const struct workload_profile *p,
                        struct workload_config *c)
{
    if (a->sequence_parallel == MAPPER_FREE && !(p->parallelism >> PARALLEL_SP & 1))
        c->sequence_parallel = false;
    if (a->zero != MAPPER_FREE)
        return;
    c->zero = p->zero > 1 ? p->zero : 1;
    if (c->offload == OFFLOAD_ALL) /* no other stage has weights to spare */
        c->zero = 3;
    if (c->zero > workload_zero_most (p, &c->deg))
        c->zero = workload_zero_most (p, &c->deg);
    while (c->zero > 0 && !(p->zero_stages >> c->zero & 1))
        c->zero--;
}

enum status mapper_axes_config_on (const struct topology_cluster *c,
                                   const struct mapper_axes *a,
                                   struct workload_config *out, struct error *err)
{
    struct workload_config config = mapper_axes_config (a);
    struct workload_degrees *d = &config.deg, one = *d;
    long long fixed, have = 0, need;

    one.dp = 1;
    fixed = workload_world (&one);
    for (int i = 0; i < c->n_nodes; i++)
        have += c->node[i].drained ? 0 : c->node[i].gpus;
    if (a->dp == MAPPER_FREE && have / fixed > 0)
        d->dp = (int) (have / fixed);
    need = workload_world (d);
    if (need > have && need <= WORKLOAD_RANKS_MAX)
        return err_set (
            err, ST_INVALID,
            "tp %d x cp %d x pp %d x dp %d needs %lld GPUs, the cluster has %lld", d->tp,
            d->cp, d->pp, d->dp, need, have);
    *out = config;
    return ST_OK;
}

const int *mapper_chunks (const struct mapper_problem *p, const struct workload_config *c,
                          const int *layers)
{
    const struct workload_plan *r = p->running;

    return r && r->layers_per_chunk && r->config.deg.pp == c->deg.pp &&
                   r->config.deg.vpp == c->deg.vpp &&
                   memcmp (r->layers_per_stage, layers,
                           (size_t) c->deg.pp * sizeof *layers) == 0
               ? r->layers_per_chunk
               : NULL;
}

struct workload_stage mapper_stage (const struct mapper_problem *p,
                                    const struct workload_config *c, const int *layers,
                                    int stage)
{
    const int *chunks = mapper_chunks (p, c, layers);

    return chunks ? workload_stage_of_chunks (p->model, c, chunks, stage)
                  : workload_stage_of (p->model, c, layers, stage);
}

double mapper_stage_memory (const struct mapper_problem *p,
                            const struct workload_config *c, const int *layers,
                            const int *gpu, int stage, struct memest_stage *out)
{
    struct memest_problem memory = mapper_memory_problem (p, c);
    struct workload_stage held = mapper_stage (p, c, layers, stage);
    int per_stage = (int) workload_world (&c->deg) / c->deg.pp;
    double least = INFINITY;

    memest_stage (&memory, stage, &held, out);
    for (int k = stage * per_stage; k < (stage + 1) * per_stage; k++)
        least = fmin (least, topology_gpu_type_of (p->cluster, gpu[k])->memory_bytes);
    return least;
}
