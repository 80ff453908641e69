/* NeMo and Megatron Bridge: YAML whose entries have Megatron's names in sections, and the progress
 * lines of their logs. */
#include "jobs/jobs_private.h"

#include <string.h>

static const char keys[] =
    "trainer.devices:gpus_per_node trainer.num-nodes:nodes "
    "trainer.precision:nemo-precision mixed-precision:nemo-precision "
    "mixed-precision.bf16:bf16 mixed-precision.fp16:fp16 mixed-precision.fp8:fp8-format "
    "mixed-precision.fp4:fp4-format recipe:nemo-recipe "
    "-target-:nemo-recipe model-name:nemo-recipe "
    "tokenizer.tokenizer-model:tokenizer-model tokenizer.type:tokenizer-type "
    "seq-length:seq dataset.sequence-length:seq dataset.seq-length:seq "
    "activation:nemo-activation "
    "gated-linear-unit:swiglu add-bias-linear bias:add-bias-linear "
    "share-embeddings-and-output-weights "
    "recompute-granularity recompute-method recompute-num-layers "
    "activations-checkpoint-granularity:recompute-granularity "
    "activations-checkpoint-method:recompute-method "
    "activations-checkpoint-num-layers:recompute-num-layers optim.name:nemo-optimizer "
    "use-flash-attention:use-flash-attn num-moe-experts:num-experts "
    "moe-shared-expert-intermediate-size "
    "num-layers-in-first-pipeline-stage:decoder-first-pipeline-num-layers "
    "num-layers-in-last-pipeline-stage:decoder-last-pipeline-num-layers "
    "exp-avg-dtype.-target-:exp-avg-dtype exp-avg-sq-dtype.-target-:exp-avg-sq-dtype "
    "main-grads-dtype.-target-:main-grads-dtype grad-reduce-in-fp32 "
    "mixed-precision.grad-reduce-in-fp32:grad-reduce-in-fp32 "
    "mixed-precision.fp8-param-gather:fp8-param-gather "
    "comm-overlap.overlap-grad-reduce:overlap-grad-reduce "
    "comm-overlap.overlap-param-gather:overlap-param-gather "
    "comm-overlap.tp-comm-overlap:tp-comm-overlap "
    "comm-overlap.overlap-moe-expert-parallel-comm:overlap-moe-expert-parallel-comm "
    "masked-softmax-fusion bias-activation-fusion apply-rope-fusion "
    "gradient-accumulation-fusion use-te-rng-tracker:te-rng-tracker";

static const char harmless[] =
    "*.-target- *.-call- cpu-offloading- cuda-graph-scope exp-manager. trainer. "
    "restore-from data. dataset. tokenizer optim. optimizer. "
    "scheduler. logger. checkpoint. rng. nsys-profile native-amp hysteresis apex- onnx- "
    "megatron-amp grad- gradient- get-attention fp32-residual fp16-lm do-layer-norm "
    "pre-process post-process persist-layer headscale transformer-block "
    "normalize-attention attention-type batch-p2p overlap-p2p resume-from sync-batch "
    "num-micro-batches-with-partial transformer-engine reduce-amax use-emha "
    "seq-len-interpolation use-scaled ffn-dropout ub-tp defer- profiling. dist. ft. "
    "nvrx validation. inprocess straggler rerun comm-overlap. mixed-precision. ddp. "
    "train. run. bos- eos- hf- generation cluster. autocast use-te-rng bf16= results "
    "env-vars srun stages exec init. kv-cache fp8-amax fp8-interval fp8-margin "
    "fp8-wgrad fp8-hybrid fp8-e4m3 fsdp- name= mcore-gpt";

/* "model.config.num_layers" as "num-layers": sections that do not tell options apart go. */
static void normalise (char *key)
{
    static const char *const sections[] = {
        "model.config.", "model.", "train.",           "ddp.",
        "optimizer.",    "dist.",  "trainer.strategy."};

    for (size_t i = 0; i < COUNT_OF (sections); i++)
        if (jobs_strip (key, sections[i]))
            break;
    jobs_dash (key);
}

/* A preset in a recipe's name: "llama3_8b_pretrain_config", "...Llama3ModelProvider8B". */
static void find_model (struct jobs_reading *r)
{
    const char *recipe = jobs_value (r, "nemo-recipe"), *dot;
    char name[128], *at;

    if (!recipe || jobs_find (r, "layers") || r->has_model)
        return;
    dot = strrchr (recipe, '.');
    snprintf (name, sizeof name, "%.120s", dot ? dot + 1 : recipe);
    if ((at = strstr (name, "ModelProvider")))
        memmove (at, at + 13, strlen (at + 13) + 1);
    while (!jobs_preset (r, name) && (at = strrchr (name, '_')))
        *at = '\0';
    if (!r->has_model)
        notes_add (r->notes,
                   "no preset has the name of the recipe %.80s: give its "
                   "config.json beside",
                   recipe);
}

static void finish_precision (struct jobs_reading *r)
{
    const char *said = jobs_value (r, "nemo-precision");
    bool trainer = jobs_find (r, "nodes") || jobs_find (r, "gpus_per_node"),
         stated = jobs_find (r, "bf16") || jobs_find (r, "fp16") ||
                  jobs_find (r, "fp8-format");

    if (said && strstr (said, "fp4"))
        jobs_default (r, "precision", "fp4");
    /* fp8_hybrid alone is a format of what fp8 may ask for. */
    else if (jobs_true (r, "fp8-format") || (said && strstr (said, "fp8")))
        jobs_default (r, "precision", "fp8");
    else if (said && strstr (said, "bf16"))
        jobs_default (r, "precision", "bf16");
    else if (said && (strstr (said, "fp16") || strcmp (said, "16") == 0 ||
                      strncmp (said, "16-", 3) == 0))
        jobs_default (r, "precision", "fp16");
    else if (said && strncmp (said, "32", 2) == 0)
        jobs_default (r, "precision", "fp32");
    else if (!said && !trainer && !stated) {
        notes_add (
            r->notes,
            "the precision is not stated: bf16, as Megatron Bridge's recipes have");
        jobs_default (r, "precision", "bf16");
    }
}

/* Fields that turn off what an argument of Megatron's with another name does. */
static void finish_turned (struct jobs_reading *r)
{
    static const struct {
        const char *field, *argument;
    } turned[] = {{"masked-softmax-fusion", "no-masked-softmax-fusion"},
                  {"bias-activation-fusion", "no-bias-swiglu-fusion"},
                  {"apply-rope-fusion", "no-rope-fusion"},
                  {"gradient-accumulation-fusion", "no-gradient-accumulation-fusion"},
                  {"grad-reduce-in-fp32", "grad-reduce-in-bf16"}};

    for (size_t i = 0; i < COUNT_OF (turned); i++)
        if (jobs_find (r, turned[i].field))
            jobs_default_flag (r, turned[i].argument, !jobs_true (r, turned[i].field));
}

static void finish (struct jobs_reading *r)
{
    const char *activation = jobs_value (r, "nemo-activation"),
               *norm = jobs_value (r, "normalization"),
               *optimizer = jobs_value (r, "nemo-optimizer"),
               *share = jobs_value (r, "share-embeddings-and-output-weights");

    find_model (r);
    if (activation && strstr (activation, "glu"))
        jobs_default (r, "swiglu", "true");
    if (norm)
        jobs_override (r, "normalization",
                       strcasestr (norm, "rms") ? "RMSNorm" : "LayerNorm");
    if (share)
        jobs_default_flag (r, "untie-embeddings-and-output-weights",
                           strcasecmp (share, "false") == 0);
    if (jobs_int (r, "kv_heads", 0) > 0) /* stated is meant */
        jobs_default (r, "group-query-attention", "true");
    if (optimizer && strstr (optimizer, "distributed"))
        jobs_default (r, "use-distributed-optimizer", "true");
    finish_precision (r);
    finish_turned (r);
    jobs_default (r, "framework",
                  jobs_find (r, "nemo-precision") && jobs_find (r, "nodes")
                      ? "nemo"
                      : "megatron-bridge");
    /* What follows from Megatron's options follows here. */
    jobs_megatron.finish (r);
}

/* ---- the log ---- */

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double s;

    if (!jobs_after (line, "train_step_timing in s", &s))
        return false;
    if (!(run = jobs_iteration (r, run, line, "global_step")))
        return true;
    jobs_sample (r, &run->steps_s, s);
    jobs_peak (line, "max_memory_reserved", 1, &run->reserved_bytes);
    jobs_peak (line, "max_memory_allocated", 1, &run->allocated_bytes);
    jobs_after (line, "TFLOPS_per_GPU", &run->tflops);
    jobs_printed_after (r, line, "global_batch_size", "global-batch-size");
    return true;
}

const struct jobs_dialect jobs_nemo = {.name = "NeMo or Megatron Bridge",
                                       .framework = "nemo",
                                       .like = &jobs_megatron,
                                       .keys = keys,
                                       .harmless = harmless,
                                       .normalise = normalise,
                                       .finish = finish,
                                       .log = log_line};
