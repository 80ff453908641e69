/* Megatron-LM, Megatron-Core and Megatron-DeepSpeed: command lines, and logs with the arguments
 * and a line for every few iterations (megatron/training/arguments.py, training.py). */
#include "jobs/jobs_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct jobs_key keys[] = {{"num-layers", "layers"},
                                       {"hidden-size", "hidden"},
                                       {"num-attention-heads", "heads"},
                                       {"num-query-groups", "kv_heads"},
                                       {"group-query-attention", NULL},
                                       {"ffn-hidden-size", "ffn"},
                                       {"seq-length", "seq"},
                                       {"encoder-seq-length", "seq"},
                                       {"vocab-size", "vocab"},
                                       {"padded-vocab-size", NULL},
                                       {"tokenizer-type", NULL},
                                       {"micro-batch-size", "micro_batch"},
                                       {"global-batch-size", "global_batch"},
                                       {"tensor-model-parallel-size", "tp"},
                                       {"model-parallel-size", "tp"},
                                       {"pipeline-model-parallel-size", "pp"},
                                       {"context-parallel-size", "cp"},
                                       {"expert-model-parallel-size", "ep"},
                                       {"moe-expert-parallel-size", "ep"},
                                       {"expert-tensor-parallel-size", NULL},
                                       {"data-parallel-size", "dp"},
                                       {"world-size", "gpus"},
                                       {"nproc-per-node", "gpus_per_node"},
                                       {"ntasks-per-node", NULL},
                                       {"gpus-per-node", "gpus_per_node"},
                                       {"nnodes", "nodes"},
                                       {"nodes", NULL},
                                       {"sequence-parallel", "sp"},
                                       {"use-distributed-optimizer", NULL},
                                       {"use-megatron-fsdp", NULL},
                                       {"use-custom-fsdp", "use-megatron-fsdp"},
                                       {"data-parallel-sharding-strategy", NULL},
                                       {"use-torch-fsdp2", NULL},
                                       {"zero-stage", NULL},
                                       {"deepspeed", NULL},
                                       {"bf16", NULL},
                                       {"fp16", NULL},
                                       {"fp8-format", NULL},
                                       {"fp8", "fp8-format"},
                                       {"recompute-granularity", NULL},
                                       {"recompute-activations", NULL},
                                       {"checkpoint-activations", NULL},
                                       {"recompute-method", NULL},
                                       {"recompute-num-layers", NULL},
                                       {"recompute-modules", NULL},
                                       {"num-layers-per-virtual-pipeline-stage", NULL},
                                       {"num-virtual-stages-per-pipeline-rank", "vpp"},
                                       {"virtual-pipeline-model-parallel-size", "vpp"},
                                       {"pipeline-model-parallel-layout", NULL},
                                       {"decoder-first-pipeline-num-layers", NULL},
                                       {"decoder-last-pipeline-num-layers", NULL},
                                       {"swiglu", NULL},
                                       {"normalization", NULL},
                                       {"untie-embeddings-and-output-weights", NULL},
                                       {"disable-bias-linear", NULL},
                                       {"add-bias-linear", NULL},
                                       {"hidden-dropout", NULL},
                                       {"position-embedding-type", NULL},
                                       {"use-rotary-position-embeddings", NULL},
                                       {"kv-channels", NULL},
                                       {"num-experts", NULL},
                                       {"moe-router-topk", NULL},
                                       {"moe-ffn-hidden-size", NULL},
                                       {"moe-layer-freq", NULL},
                                       {"moe-shared-expert-intermediate-size", NULL},
                                       {"multi-latent-attention", NULL},
                                       {"q-lora-rank", NULL},
                                       {"kv-lora-rank", NULL},
                                       {"qk-pos-emb-head-dim", NULL},
                                       {"qk-head-dim", NULL},
                                       {"v-head-dim", NULL},
                                       {"attention-backend", NULL},
                                       {"use-flash-attn", NULL},
                                       {"transformer-impl", NULL},
                                       {"overlap-moe-expert-parallel-comm", NULL},
                                       {"use-precision-aware-optimizer", NULL},
                                       {"exp-avg-dtype", NULL},
                                       {"exp-avg-sq-dtype", NULL},
                                       {"no-store-param-remainders", NULL},
                                       {"store-param-remainders", NULL},
                                       {NULL, NULL}};

/* What neither time nor memory depends on, or what every estimate takes for granted. */
static const char harmless[] =
    "train- lr= lr- min-lr weight-decay clip-grad adam- init- seed split save load log- "
    "eval- test- exit- data- *path *-dir *-file tensorboard wandb one-logger tokenizer "
    "vocab- merge- tiktoken distributed- no-load no-save ckpt dist-ckpt async-save "
    "auto-detect use-checkpoint timing profile use-pytorch-profiler nsys record-memory "
    "memory-snapshot master- node-rank rdzv max-restarts tee num-workers "
    "attention-dropout attention-softmax norm-epsilon layernorm-epsilon max-position "
    "rotary- use-rope rope no-rope mock-data dataloader reset- eod- make-vocab "
    "use-mcore use-legacy use-cpu-init no-mmap no-create-attention create-attention "
    "manual-gc check- no-check loss- initial-loss min-loss hysteresis rampup "
    "override-opt use-checkpoint-opt moe-aux moe-z-loss moe-router-load "
    "moe-router-score moe-router-bias moe-router-enable moe-router-pre "
    "moe-router-topk-scaling moe-router-dtype moe-grouped moe-per-layer "
    "moe-input-jitter moe-token-dispatcher moe-permute decoupled deepspeed= no-pipeline "
    "job-name time= partition= account= exclusive= output= error= mem= cpus qos "
    "container nodelist calculate-per-token empty-unused no-masked no-bias bias- "
    "masked-softmax apply-layernorm apply-query-key attention-head accumulate-allreduce "
    "enable-experimental finetune legacy inference consumed iteration rank= local-rank= "
    "params-dtype transformer-pipeline start-weight end-weight optimizer= sgd "
    "use-tp-pp-dp distribute-saved retro biencoder bert ict block-data classes img "
    "image num-channels num-classes patch dino vision mask- short-seq query-in "
    "retriever indexer evidence titles embedding-path use-one-sent qk-clip add-qkv-bias "
    "openai-gelu onnx data= delay- align- overlap- ddp- tp-comm "
    "gradient-accumulation-fusion no-gradient-accumulation grad-reduce cross-entropy "
    "no-persist enable-ft enable-one straggler disable-straggler lazy world= yaml-cfg "
    "variable-seq perform-init barrier skip-train replication non-persistent kitchen "
    "rl- grpo verify error-inj rerun mtp-loss decoder-seq encoder-num decoder-num mock= "
    "module= fp8-amax fp8-interval fp8-margin fp8-wgrad";

static void normalise (char *key)
{
    for (; *key; key++)
        if (*key == '_')
            *key = '-';
}

static bool is (const struct jobs_reading *r, const char *name, const char *word)
{
    const char *v = jobs_value (r, name);

    return v && strcasecmp (v, word) == 0;
}

/* A word that is stated and no Python for nothing. */
static bool stated (const struct jobs_reading *r, const char *name)
{
    return jobs_true (r, name) && !is (r, name, "none");
}

static enum status finish_model (struct jobs_reading *r)
{
    long h = jobs_int (r, "hidden", 0);
    bool gated = jobs_true (r, "swiglu");

    if (!jobs_find (r, "layers")) /* the model comes from another file, or is not said */
        return ST_OK;
    if (!jobs_true (r, "group-query-attention"))
        jobs_forget (r, "kv_heads");
    if (h > 0)
        TRY (jobs_default_int (r, "ffn",
                               gated ? (long) (h * 8.0 / 3.0 / 64.0) * 64 : 4 * h));
    if (is (r, "add-bias-linear", "false"))
        TRY (jobs_default (r, "disable-bias-linear", "true"));
    if (jobs_true (r, "use-rotary-position-embeddings"))
        TRY (jobs_default (r, "position-embedding-type", "rope"));
    TRY (jobs_default (r, "hidden-dropout", "0.1"));
    TRY (jobs_default (r, "normalization", "LayerNorm"));
    TRY (jobs_default (r, "position-embedding-type", "learned_absolute"));
    TRY (jobs_default (r, "untie-embeddings-and-output-weights", "false"));
    return jobs_default (r, "transformer-impl", "transformer_engine");
}

/* Tokenizers with one vocabulary. */
static enum status finish_vocabulary (struct jobs_reading *r)
{
    static const struct {
        const char *word;
        int size;
    } known[] = {{"GPT2BPETokenizer", 50257},
                 {"GPTSentencePieceTokenizer", 32000},
                 {"Llama2Tokenizer", 32000}};
    const char *type = jobs_value (r, "tokenizer-type");

    if (jobs_find (r, "vocab") || !jobs_find (r, "layers"))
        return ST_OK;
    if (jobs_int (r, "padded-vocab-size", 0) > 0)
        return jobs_default_int (r, "vocab", jobs_int (r, "padded-vocab-size", 0));
    for (size_t i = 0; i < COUNT_OF (known); i++)
        if (type && strcmp (type, known[i].word) == 0) {
            notes_add (r->notes, "the vocabulary is not stated: %d, as %s usually has",
                       known[i].size, type);
            return jobs_default_int (r, "vocab", known[i].size);
        }
    return ST_OK;
}

static enum status finish_precision (struct jobs_reading *r)
{
    if (jobs_find (r, "precision"))
        return ST_OK;
    if (stated (r, "fp8-format"))
        return jobs_default (r, "precision", "fp8");
    if (stated (r, "bf16") || stated (r, "fp16"))
        return jobs_default (r, "precision", stated (r, "bf16") ? "bf16" : "fp16");
    if (!jobs_find (r, "layers") && !jobs_find (r, "tp"))
        return ST_OK;
    notes_add (r->notes,
               "neither bf16 nor fp16 is asked for: fp32, Megatron-LM's default");
    return jobs_default (r, "precision", "fp32");
}

static enum status finish_recompute (struct jobs_reading *r)
{
    long layers = jobs_int (r, "recompute-num-layers", 0), vpp = jobs_int (r, "vpp", 1);
    char text[512];

    if (is (r, "recompute-granularity", "full") || stated (r, "checkpoint-activations")) {
        if (!is (r, "recompute-method", "block") || layers < 1)
            return jobs_default (r, "recompute", "full");
        snprintf (text, sizeof text, "full:%ld", layers * (vpp > 0 ? vpp : 1));
        return jobs_default (r, "recompute", text);
    }
    if (!is (r, "recompute-granularity", "selective") &&
        !stated (r, "recompute-activations"))
        return jobs_default (r, "recompute", "none");
    if (!jobs_value (r, "recompute-modules"))
        return jobs_default (r, "recompute", "selective");
    snprintf (text, sizeof text, "%.500s", jobs_value (r, "recompute-modules"));
    for (char *c = text, *to = text;; c++)
        if (!strchr ("[]'\"", *c) || *c == '\0') {
            *to++ = *c == ',' ? ' ' : *c;
            if (*c == '\0')
                break;
        }
    /* Attention alone is what Megatron's selective means. */
    return jobs_default (r, "recompute",
                         strcmp (text, "core_attn") == 0 ? "selective" : text);
}

static enum status finish_sharding (struct jobs_reading *r)
{
    const char *strategy = jobs_value (r, "data-parallel-sharding-strategy");
    long stage = jobs_int (r, "zero-stage", 0);

    if (jobs_find (r, "zero"))
        return ST_OK;
    if (stated (r, "use-megatron-fsdp") && strategy)
        stage = strcmp (strategy, "optim_grads_params") == 0 ? 3
                : strcmp (strategy, "optim_grads") == 0      ? 2
                                                             : 1;
    else if (stated (r, "use-torch-fsdp2"))
        stage = 3;
    else if (stage == 0)
        stage = stated (r, "use-distributed-optimizer");
    return jobs_default_int (r, "zero", stage);
}

/* Bytes of an optimizer's moment; 0: unknown. */
static int moment_bytes (const struct jobs_reading *r, const char *name)
{
    const char *v = jobs_value (r, name);

    return !v || strstr (v, "32")                                              ? 4
           : strstr (v, "bf16") || strstr (v, "fp16") || strstr (v, "float16") ? 2
           : strstr (v, "fp8") || strstr (v, "uint8")                          ? 1
                                                                               : 0;
}

/* The precision-aware optimizer's state: what of the fp32 master weight the bf16 weight has not,
 * or all of it, and two moments (optimizer_config.py). */
static enum status finish_optimizer (struct jobs_reading *r)
{
    int first = moment_bytes (r, "exp-avg-dtype"),
        second = moment_bytes (r, "exp-avg-sq-dtype");
    bool whole = stated (r, "no-store-param-remainders") ||
                 is (r, "store-param-remainders", "false");

    if (!stated (r, "use-precision-aware-optimizer") || first == 0 || second == 0)
        return ST_OK;
    return jobs_default_int (r, "optimizer-bytes", (whole ? 4 : 2) + first + second);
}

/* "Ettt|ttt|tttL" as "0, 3, 6, 9" in the words of a runs file. */
static enum status finish_layout (struct jobs_reading *r)
{
    const char *s = jobs_value (r, "pipeline-model-parallel-layout");
    long vpp = jobs_int (r, "vpp", 1), pp = jobs_int (r, "pp", 1), stages = 1, layers = 0;
    struct text t = {0};
    enum status st = ST_OK;

    if (!s || is (r, "pipeline-model-parallel-layout", "none"))
        return ST_OK;
    text_add (&t, "0");
    for (; *s; s++)
        if (*s == 't' && s[1] == '*') {
            layers += strtol (s + 2, NULL, 10);
        } else if (*s == 't') {
            layers++;
        } else if (*s == '|') {
            text_add (&t, ", %ld", layers);
            stages++;
        } else if (!strchr ("EL*0123456789,", *s)) {
            stages = 0;
            break;
        }
    text_add (&t, ", %ld", layers);
    if (stages > pp && pp > 0 && stages % pp == 0 && vpp <= 1) {
        vpp = stages / pp;
        TRY (jobs_default_int (r, "vpp", vpp));
    }
    if (stages == pp && layers == jobs_int (r, "layers", layers))
        st = jobs_default (r, "partition", text_str (&t));
    else
        notes_add (r->notes, "pipeline-model-parallel-layout: chunks of unlike sizes are "
                             "estimated as even ones");
    text_free (&t);
    return st;
}

static enum status finish_chunks (struct jobs_reading *r)
{
    long per = jobs_int (r, "num-layers-per-virtual-pipeline-stage", 0),
         layers = jobs_int (r, "layers", r->has_model ? r->model.layers : 0),
         pp = jobs_int (r, "pp", 1);

    if (per > 0 && layers > 0 && pp > 0 && layers % (per * pp) == 0)
        return jobs_default_int (r, "vpp", layers / (per * pp));
    return ST_OK;
}

/* "[0, 0, 1, 1]" as "([0]*2+[1]*2)", which runs files have. */
static enum status finish_frequency (struct jobs_reading *r)
{
    const char *s = jobs_value (r, "moe-layer-freq");
    int dense = 0, sparse = 0;
    char text[64];

    if (!s || s[0] != '[' || strchr (s, '*'))
        return ST_OK;
    for (; *s; s++) {
        if (*s == '0' && sparse > 0)
            return ST_OK; /* no dense layers first: as it stands, and refused */
        dense += *s == '0';
        sparse += *s == '1';
    }
    snprintf (text, sizeof text, "([0]*%d+[1]*%d)", dense, sparse);
    return jobs_set (r, "moe-layer-freq", dense > 0 ? text : "1", -1, 0, false);
}

static enum status finish (struct jobs_reading *r)
{
    TRY (finish_model (r));
    TRY (finish_vocabulary (r));
    TRY (finish_precision (r));
    TRY (finish_chunks (r));
    TRY (finish_layout (r));
    TRY (finish_recompute (r));
    TRY (finish_sharding (r));
    TRY (finish_optimizer (r));
    TRY (finish_frequency (r));
    if (!stated (r, "num-experts"))
        jobs_forget (r, "num-experts");
    if (stated (r, "use-flash-attn"))
        TRY (jobs_default (r, "attention", "flash"));
    return jobs_default (r, "framework",
                         stated (r, "deepspeed") ? "megatron-deepspeed" : "megatron-lm");
}

/* ---- the log ---- */

static void take_memory (struct jobs_run *run, const char *line)
{
    double mib;

    if (jobs_after (line, "max reserved", &mib))
        run->reserved_bytes = fmax (run->reserved_bytes, mib * 1048576.0);
    if (jobs_after (line, "max allocated", &mib))
        run->allocated_bytes = fmax (run->allocated_bytes, mib * 1048576.0);
}

static bool take_world (struct jobs_reading *r, struct jobs_run *run, const char *line,
                        int number)
{
    static const struct {
        const char *phrase, *key;
    } sizes[] = {{"world size", "world-size"},
                 {" tensor-model-parallel size", "tensor-model-parallel-size"},
                 {" pipeline-model-parallel size", "pipeline-model-parallel-size"},
                 {" context-parallel size", "context-parallel-size"}};
    double x;

    if (!strstr (line, "using world size"))
        return false;
    for (size_t i = 0; i < COUNT_OF (sizes); i++)
        if (jobs_after (line, sizes[i].phrase, &x))
            jobs_printed (r, run, number, sizes[i].key, x);
    return true;
}

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line,
                      int number)
{
    double ms, iteration, x;

    if (strstr (line, "memory (MB) |") || strstr (line, "| max allocated:")) {
        take_memory (run, line);
        return true;
    }
    if (take_world (r, run, line, number))
        return true;
    if (strstr (line, "padded vocab (size:")) {
        if (jobs_after (line, "padded vocab (size:", &x))
            jobs_printed (r, run, number, "vocab-size", x);
        return true;
    }
    if (!jobs_after (line, "elapsed time per iteration (ms)", &ms))
        return false;
    if (jobs_after (line, "iteration ", &iteration))
        run = jobs_iteration (r, run, (long) iteration);
    if (!run)
        return true;
    if (!jobs_sample (&run->step_s, &run->n_steps, ms / 1e3))
        r->lost = err_nomem (r->err);
    if (jobs_after (line, "throughput per GPU (TFLOP/s/GPU)", &x))
        run->tflops = x;
    if (jobs_after (line, "global batch size", &x))
        jobs_printed (r, run, number, "global-batch-size", x);
    return true;
}

const struct jobs_dialect jobs_megatron = {.name = "Megatron-LM",
                                           .framework = "megatron-lm",
                                           .keys = keys,
                                           .harmless = harmless,
                                           .normalise = normalise,
                                           .finish = finish,
                                           .log = log_line};
