/* A plan's configuration in Megatron-LM's words: its arguments, one a line, and the same as
 * overrides of a Megatron Bridge recipe, with the model's shape.
 *
 * The plan's rank order is Megatron's default, tp-cp-ep-dp-pp, so no option speaks of it.  No
 * value has blanks or shell characters inside, so that $(cat megatron/args) is the argument
 * list.  Names: megatron/training/arguments.py; megatron/bridge/training/config.py. */
#include "jobs/megatron_write.h"

#include <string.h>

#include "costmodel/costmodel.h"

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

/* ---- one option ---- */

static void say_int (struct writing *w, enum section s, const char *fact, int value)
{
    char text[16];

    snprintf (text, sizeof text, "%d", value);
    jobs_megatron_say (w, s, fact, text);
}

/* ---- the configuration ---- */

/* Every chunk spelled out ("Ettt|ttt|tttmL"; E the embedding, t a layer, m one of multi-token
 * prediction, L the loss): round after round of all stages. */
static void write_layout (const struct workload_plan *p, struct writing *w)
{
    int pp = p->config.deg.pp;
    struct text t = {0};

    text_add (&t, "E");
    for (int i = 0; i < pp * p->config.deg.vpp; i++) {
        text_add (&t, "%s", i ? "|" : "");
        for (int k = workload_plan_chunk (p, i % pp, i / pp); k > 0; k--)
            text_add (&t, "t");
    }
    for (int k = 0; k < p->model.mtp_layers; k++)
        text_add (&t, "m");
    text_add (&t, "L");
    w->part[MODEL].failed |= t.failed;
    jobs_megatron_say (w, MODEL, "pipeline-model-parallel-layout", text_str (&t));
    text_free (&t);
}

/* The layers of a stage where they are not those of the stages between: 0 as there. */
static void say_end (struct writing *w, const char *fact, int layers)
{
    char text[16];

    snprintf (text, sizeof text, "%d", layers);
    jobs_megatron_choose (w, MODEL, fact, layers > 0 ? text : NULL, "null");
}

static void write_layers (const struct workload_plan *p, struct writing *w)
{
    const int *n = p->layers_per_stage, pp = p->config.deg.pp, vpp = p->config.deg.vpp;
    int middle = n[pp > 2 ? 1 : pp - 1];
    bool alike = chunks_alike (p), ends = !alike && ends_differ (p);

    if (w->yaml && vpp > 1)
        say_int (w, MODEL, "vpp", vpp);
    else if (alike && vpp > 1)
        say_int (w, MODEL, "num-layers-per-virtual-pipeline-stage", n[0] / vpp);
    else
        jobs_megatron_choose (w, MODEL, "vpp", NULL, "null");
    say_end (w, "decoder-first-pipeline-num-layers", ends && n[0] != middle ? n[0] : 0);
    say_end (w, "decoder-last-pipeline-num-layers",
             ends && n[pp - 1] != middle ? n[pp - 1] : 0);
    if (!alike && !ends)
        write_layout (p, w);
    else
        jobs_megatron_choose (w, MODEL, "pipeline-model-parallel-layout", NULL, "null");
}

static void write_modules (const struct workload_config *c, struct writing *w)
{
    const char *before = w->yaml ? "[" : "", *between = w->yaml ? ", " : " ";
    struct text t = {0};

    for (int i = 0; i < WORKLOAD_MODULES; i++)
        if (c->recompute_modules >> i & 1)
            text_add (&t, "%s%s", t.len ? between : before,
                      workload_module_name ((enum workload_module) i));
    text_add (&t, w->yaml ? "]" : "");
    w->part[MODEL].failed |= t.failed;
    jobs_megatron_say (w, MODEL, "recompute-modules", text_str (&t));
    text_free (&t);
    if (workload_recomputes (c, MODULE_MOE_ACT)) /* which it asks for */
        jobs_megatron_say (w, MODEL, "moe-grouped-gemm", "true");
}

static void write_recompute (const struct workload_config *c, struct writing *w)
{
    bool full = c->recompute == RECOMPUTE_FULL, block = full && c->recompute_layers > 0;
    char layers[16];

    snprintf (layers, sizeof layers, "%d", block ? c->recompute_layers / c->deg.vpp : 1);
    jobs_megatron_choose (w, MODEL, "recompute-granularity",
                          full                             ? "full"
                          : c->recompute == RECOMPUTE_NONE ? NULL
                                                           : "selective",
                          "null");
    if (c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules)
        write_modules (c, w);
    jobs_megatron_choose (w, MODEL, "recompute-method",
                          block  ? "block"
                          : full ? "uniform"
                                 : NULL,
                          "null");
    jobs_megatron_choose (w, MODEL, "recompute-num-layers", full ? layers : NULL, "null");
}

static void write_sharding (const struct workload_config *c, struct writing *w)
{
    jobs_megatron_say_flag (w, DDP, "use-distributed-optimizer", c->zero >= 1);
    if (w->yaml)
        jobs_megatron_say_flag (w, OPTIMIZER, "use-distributed-optimizer", c->zero >= 1);
    if (workload_shard_copies (c) > 1)
        say_int (w, DDP, "num-distributed-optimizer-instances",
                 workload_shard_copies (c));
    jobs_megatron_say_flag (w, DIST, "use-megatron-fsdp", c->zero >= 2);
    if (c->zero < 2)
        return;
    if (w->yaml)
        jobs_megatron_say (w, DDP, "use-megatron-fsdp", "true");
    jobs_megatron_say (w, DDP, "data-parallel-sharding-strategy",
                       c->zero == 2 ? "optim_grads" : "optim_grads_params");
    if (!w->yaml)
        text_add (&w->part[0], "--ckpt-format fsdp_dtensor\n");
}

/* Optimizer states of Megatron-Core's precision-aware optimizer: a 32-bit master weight, of
 * which the half that the bf16 weight has is left out unless told otherwise, and two moments
 * (optimizer_config.py). */
static const struct state {
    int bytes;
    const char *moments, *type; /* as arguments, as a type of PyTorch's */
    bool whole_master;
} states[] = {{10, "fp32", "torch.float32", false},
              {8, "bf16", "torch.bfloat16", true},
              {6, "bf16", "torch.bfloat16", false},
              {4, "fp8", "torch.uint8", false}};

static const struct state *state_of (int bytes)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].bytes == bytes)
            return &states[i];
    return NULL;
}

static void write_states (const struct workload_config *c, struct writing *w)
{
    const struct state *s = state_of (c->optimizer_bytes);
    bool away = c->offload == OFFLOAD_OPTIMIZER;

    if (s || away)
        jobs_megatron_say (w, OPTIMIZER, "use-precision-aware-optimizer", "true");
    if (away) {
        jobs_megatron_say (w, OPTIMIZER, "optimizer-cpu-offload", "true");
        jobs_megatron_say (w, OPTIMIZER, "overlap-cpu-optimizer-d2h-h2d", "true");
    }
    if (!s)
        return;
    jobs_megatron_say (w, OPTIMIZER, "exp-avg-dtype", w->yaml ? s->type : s->moments);
    jobs_megatron_say (w, OPTIMIZER, "exp-avg-sq-dtype", w->yaml ? s->type : s->moments);
    if (w->yaml)
        jobs_megatron_say_flag (w, OPTIMIZER, "store-param-remainders", !s->whole_master);
    else if (s->whole_master)
        jobs_megatron_say (w, OPTIMIZER, "no-store-param-remainders", "true");
}

static enum status check_states (const struct workload_config *c, struct error *err)
{
    CANNOT (c->offload > OFFLOAD_OPTIMIZER,
            "Megatron-LM's options keep the optimizer alone on the host; plan with "
            "--offload optimizer");
    CANNOT (c->offload == OFFLOAD_OPTIMIZER &&
                (state_of (c->optimizer_bytes) || c->zero == 0),
            "Megatron-LM's optimizer on the host is its distributed one, with fp32 "
            "states; plan with --zero 1, without --optimizer-bytes");
    if (c->optimizer_bytes == 0 || c->optimizer_bytes == JOBS_MEGATRON_STATE)
        return ST_OK;
    CANNOT (!state_of (c->optimizer_bytes),
            "Megatron-LM's optimizer keeps 4, 6, 8, 10 or 12 bytes a parameter, not "
            "%d; plan with --optimizer-bytes 12",
            c->optimizer_bytes);
    CANNOT (c->zero == 0,
            "Megatron-LM's optimizer of %d bytes a parameter is its distributed one; "
            "plan with --zero 1",
            c->optimizer_bytes);
    return ST_OK;
}

/* How fp8 is scaled: in blocks where the GPU multiplies those.  Delayed scaling, the default,
 * cannot recompute a layer's norms or activations. */
enum scaling { SCALE_LATER, SCALE_AT_ONCE, SCALE_BLOCKS };

static enum scaling scaling_of (const struct workload_config *c,
                                const struct jobs_priced *by)
{
    if (costmodel_takes_blocks (PREC_FP8, by->gpu))
        return SCALE_BLOCKS;
    return workload_recomputes (c, MODULE_LAYERNORM) ||
                   workload_recomputes (c, MODULE_MOE_ACT)
               ? SCALE_AT_ONCE
               : SCALE_LATER;
}

static void write_precision (enum workload_precision p, enum scaling scaling,
                             struct writing *w)
{
    static const char *const recipes[] = {
        [SCALE_AT_ONCE] = "tensorwise", [SCALE_BLOCKS] = "mxfp8"};

    if (p == PREC_BF16 || workload_quantised_bytes (p) > 0)
        jobs_megatron_say (w, MODEL, "bf16", "true");
    if (p == PREC_FP16)
        jobs_megatron_say (w, MODEL, "fp16", "true");
    if (p == PREC_FP8)
        jobs_megatron_say (w, MODEL, "fp8-format",
                           scaling == SCALE_BLOCKS ? "e4m3" : "hybrid");
    if (p == PREC_FP8 && scaling != SCALE_LATER)
        jobs_megatron_say (w, MODEL, "fp8-recipe", recipes[scaling]);
    if (p == PREC_FP4) {
        jobs_megatron_say (w, MODEL, "fp4-format", "e2m1");
        jobs_megatron_say (w, MODEL, "fp4-recipe", "nvfp4");
    }
}

/* Megatron Bridge's recipe for it (training/mixed_precision.py); NULL: it has none. */
static const char *bridge_precision (enum workload_precision p, enum scaling scaling)
{
    static const char *const fp8[] = {
        [SCALE_LATER] = "bf16_with_fp8_delayed_scaling_mixed",
        [SCALE_AT_ONCE] = "bf16_with_fp8_current_scaling_mixed",
        [SCALE_BLOCKS] = "bf16_with_mxfp8_mixed"};

    switch (p) {
    case PREC_BF16:
        return "bf16_mixed";
    case PREC_FP16:
        return "fp16_mixed";
    case PREC_FP8:
        return fp8[scaling];
    case PREC_FP4:
        return "bf16_with_nvfp4_mixed";
    default:
        return NULL;
    }
}

/* What Megatron-LM cannot be told. */
static enum status check_expressible (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    const char *schedule = workload_schedule_name (c->schedule);

    CANNOT (strcmp (schedule, "1f1b") != 0 && strcmp (schedule, "interleaved") != 0 &&
                c->deg.pp > 1,
            "Megatron-LM has no %s schedule; plan with --schedule 1f1b", schedule);
    CANNOT (c->zero >= 2 && c->deg.pp > 1,
            "Megatron-LM shards gradients (zero %d) through FSDP, without a pipeline; "
            "plan with --zero 1 or --pp 1",
            c->zero);
    CANNOT (p->model.layers > LAYOUT_MAX, "a layout of more than %d layers", LAYOUT_MAX);
    TRY (check_states (c, err));
    CANNOT (c->recompute == RECOMPUTE_FULL && c->recompute_layers % c->deg.vpp != 0,
            "Megatron-LM recomputes equally many layers in each of a stage's %d "
            "chunks, not %d in all; plan with --recompute full:%d",
            c->deg.vpp, c->recompute_layers,
            (c->recompute_layers / c->deg.vpp + 1) * c->deg.vpp);
    return ST_OK;
}

static void write_config (const struct workload_plan *p, struct writing *w)
{
    const struct workload_config *c = &p->config;
    const struct workload_degrees *d = &c->deg;

    say_int (w, MODEL, "tp", d->tp);
    say_int (w, MODEL, "pp", d->pp);
    say_int (w, MODEL, "cp", d->cp);
    if (d->ep > 1 || w->yaml)
        say_int (w, MODEL, "ep", d->ep);
    if (d->etp != d->tp)
        say_int (w, MODEL, "expert-tensor-parallel-size", d->etp);
    say_int (w, TRAIN, "micro_batch", c->micro_batch);
    say_int (w, TRAIN, "global_batch", p->job.global_batch);
    if (p->model.mtp_layers > 0 && !w->yaml) /* there the model says it */
        say_int (w, MODEL, "mtp-num-layers", p->model.mtp_layers);
    if (p->model.mtp_layers == 0 && p->model.experts > 0)
        jobs_megatron_choose (w, MODEL, "mtp-num-layers", NULL, "null");
    jobs_megatron_say_flag (w, MODEL, "sp", c->sequence_parallel);
    write_layers (p, w);
    write_recompute (c, w);
    write_sharding (c, w);
    write_states (c, w);
}

enum status jobs_megatron_write (const struct workload_plan *p,
                                 const struct jobs_priced *by, struct text *out,
                                 struct text *beside, struct error *err)
{
    struct writing w = {.dialect = &jobs_megatron, .beside = beside};

    TRY (check_expressible (p, err));
    write_config (p, &w);
    write_precision (p->job.precision, scaling_of (&p->config, by), &w);
    if (p->job.precision == PREC_TF32)
        text_add (beside, "TF32: set TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1.\n");
    jobs_megatron_facts (p, by, &w);
    *out = w.part[0];
    return ST_OK;
}

/* ---- the model, for Megatron Bridge ---- */

/* Are attention and MLPs, with experts or without, all that there is? */
static bool says_shape (const struct workload_model *m)
{
    return !m->pattern[0] && m->decoder_layers == 0 && !m->sinks && !m->wide_qk_norm &&
           !m->embedding_norm && m->expert_every <= 1;
}

/* Layers without experts and with: a list, which Megatron Bridge does not evaluate. */
static void write_frequency (const struct workload_model *m, struct writing *w)
{
    struct text t = {0};

    for (int i = 0; i < m->layers; i++)
        text_add (&t, "%s%d", i ? ", " : "[", i >= m->dense_layers);
    text_add (&t, "]");
    w->part[MODEL].failed |= t.failed;
    jobs_megatron_say (w, MODEL, "moe-layer-freq", text_str (&t));
    text_free (&t);
}

/* A fact of the model, as the reader of models states it (model.c). */
static void write_fact (const struct jobs_fact *f, const struct workload_model *m,
                        struct writing *w)
{
    static const struct {
        const char *fact, *opposite;
    } turned[] = {
        {"disable-bias-linear", "add-bias-linear"},
        {"untie-embeddings-and-output-weights", "share-embeddings-and-output-weights"}};

    if (strcmp (f->name, "model") == 0 || strcmp (f->name, "transformer-impl") == 0)
        return;
    for (size_t i = 0; i < COUNT_OF (turned); i++)
        if (strcmp (f->name, turned[i].fact) == 0) {
            jobs_megatron_say_flag (w, MODEL, turned[i].opposite,
                                    strcmp (f->value, "true") != 0);
            return;
        }
    if (strcmp (f->name, "moe-layer-freq") == 0)
        write_frequency (m, w);
    else
        jobs_megatron_say (w, MODEL, f->name, f->value);
}

static enum status write_model (const struct workload_model *m, struct writing *w,
                                struct error *err)
{
    struct jobs_reading r = {.model = *m, .has_model = true, .err = err};

    if (says_shape (m))
        jobs_model_facts (&r);
    for (int i = 0; i < r.n_facts && r.st == ST_OK; i++)
        write_fact (&r.fact[i], m, w);
    jobs_forget_all (&r);
    return r.st;
}

enum status jobs_nemo_write (const struct workload_plan *p, const struct jobs_priced *by,
                             struct text *out, struct text *beside, struct error *err)
{
    const char *precision =
        bridge_precision (p->job.precision, scaling_of (&p->config, by));
    struct writing w = {.dialect = &jobs_nemo, .yaml = true, .beside = beside};
    enum status st;

    TRY (check_expressible (p, err));
    CANNOT (!precision,
            "Megatron Bridge has no recipe for %s; plan with --precision bf16",
            workload_precision_name (p->job.precision));
    st = write_model (&p->model, &w, err);
    say_int (&w, MODEL, "seq", p->job.seq);
    text_add (&w.part[DATASET], "  sequence_length: %d\n", p->job.seq);
    text_add (&w.part[COMM_OVERLAP],
              "  _target_: megatron.bridge.training.comm_overlap.CommOverlapConfig\n");
    write_config (p, &w);
    jobs_megatron_facts (p, by, &w);
    text_add (out, "# Overrides of the model's Megatron Bridge recipe%s.\n",
              says_shape (&p->model) ? "" : ", which has its shape");
    for (int i = 0; i < SECTIONS; i++) {
        text_add (out, "%s:\n%s", jobs_megatron_section[i], text_str (&w.part[i]));
        out->failed |= w.part[i].failed;
        text_free (&w.part[i]);
    }
    text_add (out, "mixed_precision: %s\n", precision);
    return st;
}
