/* What a row leaves out.
 *
 * Most of it is as in its source's framework.  The micro-batch, chunks, recomputation and
 * precision move a step's time by half and more, so that where a row states none each usual
 * reading is kept with its weight: the estimate is the weighted mean of their logarithms.  The
 * weights are how people run such frameworks (docs/runs.md), fitted to nothing.  Of a source that
 * a profile names only the micro-batch is open: the profile says the rest. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>

#define MICRO_BATCH_MOST 64 /* that nobody states */
#define FILLED_MEMORY 0.9   /* what people fill by taking more sequences at once */
#define TP_MOST 8
#define EXPERT_RANKS_MOST 64
#define SPREAD_DEGREES 0.2 /* of a step's time, in logarithms */

/* Is fp8 what the GPUs have? */
static bool has_fp8 (const struct calibrate_run *run)
{
    bool has = true;

    for (int i = 0; i < run->n_parts; i++)
        has = has && costmodel_matrix_rate (run->part[i].type, PREC_FP8) > 0;
    return has;
}

/* What a framework recomputes goes by its ZeRO stage; a profile that serves a source only by its
 * GPU type says nothing of it. */
static void take_recompute (struct calibrate_run *run, const struct workload_profile *p)
{
    if (!run->recompute_said && calibrate_serves (p, run))
        run->config.recompute =
            run->config.zero == 3 ? p->recompute_sharded : p->recompute;
}

/* Who offloads without a word of what offloads all under ZeRO 3, else the optimizer's state. */
static void take_offload (struct calibrate_run *run)
{
    if (run->offload_open)
        run->config.offload = run->config.zero == 3 ? OFFLOAD_ALL : OFFLOAD_OPTIMIZER;
}

/* The ZeRO stage, recomputation, precision and attention of the framework; never flash attention on
 * GPUs without bf16, which its kernels do not serve, unless PyTorch chooses among its own, of which
 * the memory-efficient one does: transformers leaves it the choice for Llama and later families. */
static void take_defaults (struct calibrate_run *run, const struct workload_profile *p)
{
    bool flash = true, chosen = p->flash2 && run->model.norm == NORM_RMS;
    bool able = calibrate_serves (p, run);
    int most = workload_zero_most (p, &run->config.deg);

    for (int i = 0; i < run->n_parts; i++) {
        flash = flash && (chosen || run->part[i].type->bf16_flop_per_s > 0);
        able = able && costmodel_matrix_rate (run->part[i].type, p->precision) > 0;
    }
    if (!run->zero_said)
        run->config.zero = workload_dense_shards (&run->config) == 1 ? 0
                           : p->zero > most                          ? most
                                                                     : p->zero;
    if (run->config.zero == 0)
        run->config.shard = 0;
    take_offload (run);
    /* Recipes that hide tensor-parallel communication need it. */
    if (!run->sequence_parallel_said && (p->splits_sequences || p->time.tp_comm_overlap))
        run->config.sequence_parallel = run->config.deg.tp > 1;
    if (!run->precision_said && able)
        run->job.precision = p->precision;
    if (p->without_dropout && !run->dropout_said)
        run->model.dropout = false;
    take_recompute (run, p);
    if (!run->attention_said)
        run->job.attention = flash || !workload_attention_is_flash (p->attention)
                                 ? p->attention
                                 : ATTENTION_FUSED;
}

/* Bytes a parameter: of moments in fp32 and of what weights have over 16 bits; and of all that is
 * kept under mixed precision, and in 16 bits. */
#define WIDE_STATES 10.0
#define MIXED_STATES 16.0
#define PURE_STATES 8.0

/* Optimizers that work on the host keep no 8-bit moments. */
static bool widened_on_host (const struct calibrate_run *run)
{
    enum workload_offload what = run->config.offload;

    return (run->offload_open || what == OFFLOAD_OPTIMIZER || what == OFFLOAD_ALL) &&
           run->moments->wide > 0.0 && run->moments->wide < 4.0;
}

/* Another optimizer's moments in place of AdamW's, beside the framework's weights, gradients and
 * master copies. */
static void take_moments (struct calibrate_run *run, const struct workload_profile *p)
{
    double gradient = p->memory.gradient_bytes, own = p->memory.optimizer_bytes,
           all = 2.0 + gradient + own;

    if (!run->moments || run->state_bytes > 0.0 || widened_on_host (run))
        return;
    if (run->states == STATES_MIXED && all < MIXED_STATES) {
        gradient = run->job.precision == PREC_FP16 ? 2.0 : 4.0;
        own = MIXED_STATES - 2.0 - gradient;
    } else if (run->states == STATES_PURE && all > PURE_STATES) {
        gradient = 2.0;
        own = PURE_STATES - 2.0 - gradient;
    }
    run->state_bytes =
        4.0 + own +
        (own >= WIDE_STATES ? run->moments->wide - 8.0 : run->moments->narrow - 4.0);
    /* Of a parameter's bytes together gradients would be 2. */
    if (gradient > 2.0 && run->facts.half_gradients == CHOICE_PROFILE)
        run->facts.half_gradients = CHOICE_NO;
}

/* Does it fit this part of the memory? */
static bool fits (const struct calibrate_run *run, const struct workload_profile *p,
                  double part)
{
    return calibrate_need (run, p, MEMEST_LINKWISE) <= part * run->gpu_bytes;
}

/* The run with what it recomputes as that stands: leaner ways do not make it fit. */
static struct calibrate_run as_it_stands (const struct calibrate_run *run)
{
    struct calibrate_run one = *run;

    one.recompute_said = true;
    one.layers_open = false;
    return one;
}

/* ---- degrees that nobody states ---- */

/* What it needs of the GPUs' memory, 1 all of it, if layers are recomputed as the framework does by
 * default, or as lean as the row allows; INFINITY: the degrees do not divide it. */
static double filled (const struct calibrate_run *run, const struct workload_profile *p,
                      bool lean)
{
    struct calibrate_run one = *run;

    if (!run->micro_batch_said)
        one.config.micro_batch = 1;
    one.recompute_said = run->recompute_said || !lean;
    return workload_config_check (&one.model, &one.job, &one.config, NULL) == ST_OK
               ? calibrate_need (&one, p, MEMEST_LINKWISE) / run->gpu_bytes
               : INFINITY;
}

/* The largest number of expert ranks, at most so many, that share the experts and are shared by the
 * replicas. */
static int expert_ranks (const struct calibrate_run *run, int most)
{
    int replicas = run->config.deg.dp * run->config.deg.cp, ep = most;

    while (ep > 1 && (run->model.experts % ep != 0 || replicas % ep != 0))
        ep--;
    return ep;
}

/* With other degrees of tensor and pipeline parallelism, the replicas that are left, and expert
 * ranks of an NVLink domain or as many as there can be: taken where that needs less memory than
 * `least`.
 * @return does the GPUs' memory hold it? */
static bool try_degrees (struct calibrate_run *run, const struct workload_profile *p,
                         int tp, int pp, double *least)
{
    struct calibrate_run one = *run;
    struct workload_degrees *d = &one.config.deg;
    int experts[] = {1, calibrate_domain (run), EXPERT_RANKS_MOST};
    long long rest = (long long) tp * pp * d->cp;
    double need = INFINITY;

    if (run->gpus % rest != 0 || one.model.layers < pp)
        return false;
    d->tp = d->etp = tp;
    d->pp = pp;
    d->dp = (int) (run->gpus / rest);
    one.config.sequence_parallel = tp > 1 && run->splits_sequences;
    calibrate_schedule_noted ("", &one.config);
    one.layers = NULL;
    if (!calibrate_spread_layers (&one))
        return false;
    take_defaults (&one, p);
    for (int i = 0; i < 3 && need > 1.0; i++) {
        if (!run->ep_said && run->model.experts > 0)
            d->ep = expert_ranks (&one, experts[i]);
        need = filled (&one, p, i > 0 || run->ep_said || run->model.experts == 0);
    }
    if (need >= *least) {
        free (one.layers);
        return false;
    }
    free (run->layers);
    *run = one;
    *least = need;
    return need <= 1.0;
}

/* Does the framework split a model this way? */
static bool has (const struct workload_profile *p, enum workload_parallel way)
{
    return p->parallelism >> way & 1;
}

/* What no GPU could hold was split: among expert ranks, then in a node by tensor parallelism, then
 * into stages, as little as it needs and as far as its framework does.  What the row states
 * stays. */
static void open_degrees (struct calibrate_run *run, const struct workload_profile *p)
{
    const struct workload_degrees d = run->config.deg;
    bool experts = !run->ep_said && run->model.experts > 0, held;
    double least = filled (run, p, !experts);
    int tp = d.tp, pp = d.pp, node = calibrate_domain (run);

    /* Who shards the weights says what else he splits. */
    if (least <= 1.0 || run->config.zero == 3 ||
        (run->config.zero == 2 && run->zero_said) ||
        (experts && try_degrees (run, p, tp, pp, &least)))
        return; /* open_experts weighs these */
    held = false;
    while (!held && !run->tp_said && has (p, PARALLEL_TP) && 2 * tp <= node &&
           2 * tp <= TP_MOST)
        held = try_degrees (run, p, tp *= 2, pp, &least);
    while (!held && !run->pp_said && has (p, PARALLEL_PP) && pp < run->model.layers)
        held = try_degrees (run, p, tp, ++pp, &least);
    if (run->config.deg.tp != d.tp || run->config.deg.pp != d.pp)
        run->assumed = hypot (run->assumed, SPREAD_DEGREES);
}

/* Adapters on whole weights, where the GPUs hold these; DeepSpeed itself is there to shard. */
static bool adapts_whole (const struct calibrate_run *run,
                          const struct workload_profile *p)
{
    struct calibrate_run one = *run;

    one.config.zero = 0;
    take_offload (&one);
    return run->job.lora && p->whole_adapters && run->config.shard == 0 &&
           !calibrate_contains (run->framework, "deepspeed") &&
           filled (&one, p, true) <= 1.0;
}

/* A ZeRO stage that nobody states is the framework's usual one, or the next that it has with which
 * the GPUs hold what they did hold. */
static void open_zero (struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_run one = *run;
    int *zero = &one.config.zero, most = workload_zero_most (p, &run->config.deg);

    if (run->zero_said || workload_dense_shards (&run->config) == 1)
        return;
    if (adapts_whole (run, p)) {
        run->config.zero = 0;
        take_offload (run);
        take_recompute (run, p);
        return;
    }
    if (filled (&one, p, true) <= 1.0)
        return;
    while (++*zero <= most) {
        take_offload (&one);
        take_recompute (&one, p);
        if (p->zero_stages >> *zero & 1 && filled (&one, p, true) <= 1.0) {
            run->config = one.config;
            return;
        }
    }
}

/* Ways that have been found so far, from here on each in two: `share` of it stays.
 * @return the others, as many, which are to be told apart */
static struct calibrate_way *split (struct calibrate_run *run, double share)
{
    struct calibrate_way *other = &run->way[run->n_ways];

    for (struct calibrate_way *w = run->way; w < other; w++) {
        struct calibrate_way *twin = &run->way[run->n_ways++];

        *twin = *w;
        twin->weight = w->weight * (1.0 - share);
        w->weight *= share;
    }
    return other;
}

/* Where ways that are split end. */
static struct calibrate_way *end_of_ways (struct calibrate_run *run)
{
    return run->way + run->n_ways;
}

/* fp8 by default is not always on: people also compare with bf16. */
static void open_precision (struct calibrate_run *run)
{
    if (run->precision_said || run->job.precision != PREC_FP8)
        return;
    for (struct calibrate_way *w = split (run, 0.7); w < end_of_ways (run); w++)
        w->precision = PREC_BF16;
}

/* Expert ranks of an NVLink domain, or as many as there are. */
static void open_experts (struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_run one = *run;

    if (run->ep_said || run->config.deg.ep == 1)
        return;
    one.config.deg.ep = expert_ranks (run, EXPERT_RANKS_MOST);
    if (one.config.deg.ep != run->config.deg.ep && filled (&one, p, true) <= 1.0)
        split (run, 0.7)->ep = one.config.deg.ep;
}

/* Chunks of two layers where that divides a stage, else of as few as do: NeMo's recipes interleave
 * what they split into stages, which then have embedding and head for a layer each if need be. */
static int usual_chunks (const struct calibrate_run *run)
{
    int pp = run->config.deg.pp, layers = run->model.layers, each = 2,
        own = (layers % pp == 0 ? layers : layers + 2) / pp;

    while (each < own && own % each != 0)
        each++;
    return own > 2 && each == own ? own : own / each;
}

static void open_chunks (struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_way way = run->way[0];
    struct calibrate_run one = *run;

    if (run->vpp_said || run->config.deg.pp == 1 || !p->one_sequence)
        return;
    way.vpp = usual_chunks (run);
    calibrate_set_way (&one, &way);
    if (workload_config_check (&one.model, &one.job, &one.config, NULL) != ST_OK)
        return;
    for (struct calibrate_way *w = split (run, 0.3); w < end_of_ways (run); w++)
        w->vpp = way.vpp;
}

/* As the framework does by default, or the other way: nothing where that is all and it fits, all
 * where it is not and does not.  Before fp8 came, memory was short, and people recomputed more.
 * Recipes that take one sequence say by module what they recompute, which is little. */
static void open_recompute (struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_run one = as_it_stands (run);
    struct calibrate_way way = run->way[0];
    bool full = run->config.recompute == RECOMPUTE_FULL, room;

    if (run->recompute_said || p->one_sequence)
        return;
    way.recompute = RECOMPUTE_NONE;
    calibrate_set_way (&one, full ? &way : &run->way[0]);
    room = fits (&one, p, 1.0);
    if (full && !room)
        return;
    for (struct calibrate_way *w = split (run, full            ? 0.6
                                               : !room         ? 0.1
                                               : has_fp8 (run) ? 0.9
                                                               : 0.7);
         w < end_of_ways (run); w++)
        w->recompute = full ? RECOMPUTE_NONE : RECOMPUTE_FULL;
}

/* The largest that fits and divides the rank's batch. */
static int largest (const struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_run one = *run;
    int own = run->job.global_batch / run->config.deg.dp, *b = &one.config.micro_batch;

    for (*b = own < MICRO_BATCH_MOST ? own : MICRO_BATCH_MOST; *b > 1; --*b)
        if (own % *b == 0 && fits (&one, p, FILLED_MEMORY))
            break;
    return *b;
}

/* As many micro-batches as stages, which TorchTitan made of a rank's batch until 2025
 * (pipelining_utils.py, build_pipeline_schedule); since then they are one sequence each. */
static int of_stages (const struct calibrate_run *run)
{
    const struct workload_degrees *d = &run->config.deg;
    int own = run->job.global_batch / d->dp;

    return own % d->pp == 0 ? own / d->pp : 1;
}

/* With a pipeline few sequences, so that there are many micro-batches; without one people fill the
 * memory, but for recipes that take one sequence. */
static void open_micro_batch (struct calibrate_run *run, const struct workload_profile *p)
{
    bool one = run->config.deg.pp > 1,
         stages = one && p->zero == 3 && p->gathers_by_layer;
    double share = stages            ? 0.3
                   : one             ? 0.5
                   : p->one_sequence ? 0.6
                   : p->zero == 3    ? 0.0
                                     : 0.15;

    if (run->micro_batch_said || (one && p->zero == 3 && !stages))
        return;
    for (struct calibrate_way *w = split (run, share); w < end_of_ways (run); w++) {
        struct calibrate_run as = *run;

        calibrate_set_way (&as, w);
        as.config.micro_batch = stages ? of_stages (&as) : one ? 2 : largest (&as, p);
        if (workload_config_check (&as.model, &as.job, &as.config, NULL) == ST_OK &&
            fits (&as, p, FILLED_MEMORY))
            w->micro_batch = as.config.micro_batch;
    }
}

/* Some layers, nobody says how many: as many as memory asks for, one at least. */
static void open_layers (struct calibrate_run *run, const struct workload_profile *p)
{
    struct calibrate_run one = as_it_stands (run);

    if (!run->layers_open)
        return;
    for (int i = 0; i < run->n_ways; i++) {
        struct calibrate_way *w = &run->way[i];
        int most = (run->model.layers + run->config.deg.pp - 1) / run->config.deg.pp,
            least = 1;

        w->recompute = RECOMPUTE_FULL;
        while (least < most) {
            w->recompute_layers = least + (most - least) / 2;
            calibrate_set_way (&one, w);
            if (fits (&one, p, FILLED_MEMORY))
                most = w->recompute_layers;
            else
                least = w->recompute_layers + 1;
        }
        w->recompute_layers = least;
    }
}

/* Among ways that fit as they stand the likeliest; of memory it alone is told. */
static const struct calibrate_way *likeliest (const struct calibrate_run *run,
                                              const struct workload_profile *p)
{
    const struct calibrate_way *best = NULL, *most = &run->way[0];
    struct calibrate_run one = as_it_stands (run);

    for (const struct calibrate_way *w = run->way; w < run->way + run->n_ways; w++) {
        calibrate_set_way (&one, w);
        most = w->weight > most->weight ? w : most;
        if (w->weight > (best ? best->weight : 0.0) && fits (&one, p, 1.0))
            best = w;
    }
    return best ? best : most;
}

/* Whether gradients of several micro-batches are summed whole (no_sync) is the user's choice: whom
 * that leaves no memory has them reduced after each. */
static void open_sums (struct calibrate_run *run, const struct workload_profile *p)
{
    if (run->facts.whole_gradients == CHOICE_PROFILE && p->whole_gradients &&
        calibrate_need (run, p, MEMEST_LINKWISE) > run->gpu_bytes)
        run->facts.whole_gradients = CHOICE_NO;
}

void calibrate_assume (struct calibrate_run *run, const struct workload_profile *served)
{
    struct workload_profile usual = *served, *p = &usual;
    bool named = calibrate_names_source (p, run->source);

    usual.unknown = false; /* people ran what usually fits */
    take_moments (run, p);
    take_defaults (run, p);
    run->layers_open = run->config.recompute == RECOMPUTE_SELECTIVE &&
                       run->config.recompute_modules == 0 &&
                       p->selective == SELECTIVE_LAYERS;
    if (!named) {
        open_degrees (run, p);
        open_zero (run, p);
        open_sums (run, p);
    }
    run->n_ways = 1;
    run->way[0] = (struct calibrate_way){.micro_batch = run->config.micro_batch,
                                         .ep = run->config.deg.ep,
                                         .vpp = run->config.deg.vpp,
                                         .recompute = run->config.recompute,
                                         .recompute_layers = run->config.recompute_layers,
                                         .precision = run->job.precision,
                                         .weight = 1.0};
    if (!named) {
        open_experts (run, p);
        open_precision (run);
        open_chunks (run, p);
        open_recompute (run, p);
    }
    open_micro_batch (run, p);
    open_layers (run, p);
    calibrate_set_way (run, likeliest (run, p));
    if (run->n_ways == 1)
        run->n_ways = 0;
}
