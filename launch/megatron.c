/* Megatron-LM's arguments for the plan's configuration.
 *
 * The plan's rank order is Megatron's default, tp-cp-ep-dp-pp, so no option speaks of it.
 * One option a line, without blanks or shell characters inside a value, so that
 * $(cat megatron/args) is the argument list.  Names: megatron/training/arguments.py. */
#include "launch/launch_private.h"

#include <string.h>

#define LAYOUT_MAX 4096 /* transformer layers that a layout string spells out */

/* Have all chunks of all stages as many layers? */
static bool chunks_alike (const struct workload_plan *p)
{
    int v = p->config.deg.vpp;

    for (int i = 0; i < p->config.deg.pp * v; i++)
        if (workload_plan_chunk (p, i / v, i % v) != workload_plan_chunk (p, 0, 0))
            return false;
    return true;
}

/* Do only the first and the last of several stages without chunks differ? */
static bool ends_differ (const struct workload_plan *p)
{
    const int *n = p->layers_per_stage, pp = p->config.deg.pp;

    for (int i = 1; i < pp - 1; i++)
        if (n[i] != n[1])
            return false;
    return p->config.deg.vpp == 1;
}

/* Every chunk spelled out ("Ettt|ttt|tttL"; E the embedding, t a layer, L the loss): round
 * after round of all stages. */
static void write_layout (const struct workload_plan *p, struct text *t)
{
    int pp = p->config.deg.pp;

    text_add (t, "--pipeline-model-parallel-layout E");
    for (int i = 0; i < pp * p->config.deg.vpp; i++) {
        text_add (t, "%s", i ? "|" : "");
        for (int k = workload_plan_chunk (p, i % pp, i / pp); k > 0; k--)
            text_add (t, "t");
    }
    text_add (t, "L\n");
}

static void write_layers (const struct workload_plan *p, struct text *t)
{
    const int *n = p->layers_per_stage, pp = p->config.deg.pp, vpp = p->config.deg.vpp;
    int middle = n[pp > 2 ? 1 : pp - 1];

    if (chunks_alike (p)) {
        if (vpp > 1)
            text_add (t, "--num-layers-per-virtual-pipeline-stage %d\n", n[0] / vpp);
    } else if (ends_differ (p)) {
        if (n[0] != middle)
            text_add (t, "--decoder-first-pipeline-num-layers %d\n", n[0]);
        if (n[pp - 1] != middle)
            text_add (t, "--decoder-last-pipeline-num-layers %d\n", n[pp - 1]);
    } else {
        write_layout (p, t);
    }
}

static void write_modules (const struct workload_config *c, struct text *t)
{
    text_add (t, "--recompute-modules");
    for (int i = 0; i < WORKLOAD_MODULES; i++)
        if (c->recompute_modules >> i & 1)
            text_add (t, " %s", workload_module_name ((enum workload_module) i));
    text_add (t, "\n");
    if (workload_recomputes (c, MODULE_MOE_ACT)) /* which it asks for */
        text_add (t, "--moe-grouped-gemm\n");
}

static void write_recompute (const struct workload_config *c, struct text *t)
{
    if (c->recompute == RECOMPUTE_SELECTIVE)
        text_add (t, "--recompute-granularity selective\n");
    if (c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules)
        write_modules (c, t);
    if (c->recompute == RECOMPUTE_FULL && c->recompute_layers == 0)
        text_add (t, "--recompute-granularity full\n--recompute-method uniform\n"
                     "--recompute-num-layers 1\n");
    if (c->recompute == RECOMPUTE_FULL && c->recompute_layers > 0)
        text_add (t,
                  "--recompute-granularity full\n--recompute-method block\n"
                  "--recompute-num-layers %d\n",
                  c->recompute_layers / c->deg.vpp);
}

static void write_sharding (const struct workload_config *c, struct text *t)
{
    if (c->zero >= 1)
        text_add (t, "--use-distributed-optimizer\n");
    if (c->zero >= 2)
        text_add (t,
                  "--use-megatron-fsdp\n--data-parallel-sharding-strategy %s\n"
                  "--no-gradient-accumulation-fusion\n--ckpt-format fsdp_dtensor\n",
                  c->zero == 2 ? "optim_grads" : "optim_grads_params");
}

/* Optimizer states of Megatron-Core's precision-aware optimizer: a 32-bit master weight, of
 * which the half that the bf16 weight has is left out unless told otherwise, and two moments
 * (optimizer_config.py). */
static const struct state {
    int bytes;
    const char *moments;
    bool whole_master;
} states[] = {
    {10, "fp32", false}, {8, "bf16", true}, {6, "bf16", false}, {4, "fp8", false}};

#define USUAL_STATE 12 /* without it */

static const struct state *state_of (int bytes)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].bytes == bytes)
            return &states[i];
    return NULL;
}

static void write_states (const struct workload_config *c, struct text *t)
{
    const struct state *s = state_of (c->optimizer_bytes);

    if (!s)
        return;
    text_add (t,
              "--use-precision-aware-optimizer\n--exp-avg-dtype %s\n"
              "--exp-avg-sq-dtype %s\n%s",
              s->moments, s->moments,
              s->whole_master ? "--no-store-param-remainders\n" : "");
}

static enum status check_states (const struct workload_config *c, struct error *err)
{
    if (c->optimizer_bytes == 0 || c->optimizer_bytes == USUAL_STATE)
        return ST_OK;
    if (!state_of (c->optimizer_bytes))
        return err_set (
            err, ST_NOFIT,
            "Megatron-LM's optimizer keeps 4, 6, 8, 10 or 12 bytes a parameter, "
            "not %d; plan with --optimizer-bytes 12",
            c->optimizer_bytes);
    return c->zero == 0
               ? err_set (
                     err, ST_NOFIT,
                     "Megatron-LM's optimizer of %d bytes a parameter is its distributed "
                     "one; plan with --zero 1",
                     c->optimizer_bytes)
               : ST_OK;
}

/* Delayed scaling, its default in fp8, cannot recompute a layer's norms or activations. */
static bool scales_at_once (const struct workload_config *c)
{
    return workload_recomputes (c, MODULE_LAYERNORM) ||
           workload_recomputes (c, MODULE_MOE_ACT);
}

static void write_precision (enum workload_precision p, const struct workload_config *c,
                             struct text *t)
{
    if (p == PREC_BF16 || workload_quantised_bytes (p) > 0)
        text_add (t, "--bf16\n");
    if (p == PREC_FP16)
        text_add (t, "--fp16\n");
    if (p == PREC_FP8)
        text_add (t, "--fp8-format hybrid\n%s",
                  scales_at_once (c) ? "--fp8-recipe tensorwise\n" : "");
    if (p == PREC_FP4)
        text_add (t, "--fp4-format e2m1\n--fp4-recipe nvfp4\n");
}

/* Megatron-LM recomputes whole layers, equally many in each of a stage's chunks. */
static enum status check_chunks (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    int vpp = c->deg.vpp;

    if (c->recompute == RECOMPUTE_FULL && c->recompute_layers % vpp != 0)
        return err_set (err, ST_NOFIT,
                        "Megatron-LM recomputes equally many layers in each of a stage's "
                        "%d chunks, not %d in all; plan with --recompute full:%d",
                        vpp, c->recompute_layers, (c->recompute_layers / vpp + 1) * vpp);
    return ST_OK;
}

/* What Megatron-LM cannot be told. */
static enum status check_expressible (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    const char *schedule = workload_schedule_name (c->schedule);

    if (strcmp (schedule, "1f1b") != 0 && strcmp (schedule, "interleaved") != 0 &&
        c->deg.pp > 1)
        return err_set (err, ST_NOFIT,
                        "Megatron-LM has no %s schedule; plan with --schedule 1f1b",
                        schedule);
    if (c->zero >= 2 && c->deg.pp > 1)
        return err_set (err, ST_NOFIT,
                        "Megatron-LM shards gradients (zero %d) through FSDP, without a "
                        "pipeline; plan with --zero 1 or --pp 1",
                        c->zero);
    if (p->model.layers > LAYOUT_MAX)
        return err_set (err, ST_NOFIT, "a layout of more than %d layers", LAYOUT_MAX);
    TRY (check_states (c, err));
    return check_chunks (p, err);
}

static enum status write_megatron (const struct launch_input *in, struct launch_files *f,
                                   struct text *readme, struct error *err)
{
    const struct workload_plan *p = in->plan;
    const struct workload_config *c = &p->config;
    const struct workload_degrees *d = &c->deg;
    struct text *t;

    TRY (check_expressible (p, err));
    t = launch_file (f, "megatron/args", 0644);
    text_add (t,
              "--tensor-model-parallel-size %d\n--pipeline-model-parallel-size %d\n"
              "--context-parallel-size %d\n",
              d->tp, d->pp, d->cp);
    if (d->ep > 1)
        text_add (t, "--expert-model-parallel-size %d\n", d->ep);
    if (d->etp != d->tp)
        text_add (t, "--expert-tensor-parallel-size %d\n", d->etp);
    text_add (t, "--micro-batch-size %d\n--global-batch-size %d\n", c->micro_batch,
              p->job.global_batch);
    if (c->sequence_parallel)
        text_add (t, "--sequence-parallel\n");
    write_layers (p, t);
    write_recompute (c, t);
    write_sharding (c, t);
    write_states (c, t);
    write_precision (p->job.precision, c, t);
    text_add (readme,
              "Megatron-LM: add the plan's arguments to those of your model, behind any "
              "launcher\nabove.  Ranks are in its default order: leave "
              "--use-tp-pp-dp-mapping out.\n\n"
              "    LAUNCHER ... ./exec.sh python3 pretrain_gpt.py $(cat megatron/args) "
              "...\n");
    if (p->job.precision == PREC_TF32)
        text_add (readme,
                  "\nThe plan's precision is TF32, which PyTorch takes when told: set\n"
                  "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1.\n");
    return ST_OK;
}

const struct launcher launch_megatron = {
    .target = {"megatron", "Megatron-LM arguments of the plan"},
    .readme = "megatron/README",
    .paths = {"megatron/args"},
    .write = write_megatron,
};
