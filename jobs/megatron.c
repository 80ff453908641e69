/* Megatron-LM, Megatron-Core and Megatron-DeepSpeed: command lines (megatron/training/arguments.py)
 * and what follows from their options. */
#include "jobs/jobs_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char keys[] =
    "num-layers:layers hidden-size:hidden num-attention-heads:heads "
    "num-query-groups:kv_heads num-key-value-heads group-query-attention "
    "ffn-hidden-size:ffn seq-length:seq "
    "encoder-seq-length:seq max-length:seq vocab-size:vocab padded-vocab-size "
    "pad-vocab-size-to:padded-vocab-size tokenizer-model tokenizer-type "
    "micro-batch-size:micro_batch global-batch-size:global_batch "
    "tensor-model-parallel-size:tp model-parallel-size:tp "
    "pipeline-model-parallel-size:pp context-parallel-size:cp "
    "expert-model-parallel-size:ep moe-expert-parallel-size:ep "
    "expert-tensor-parallel-size data-parallel-size:dp world-size:gpus gpus "
    "nproc-per-node:gpus_per_node ntasks-per-node gpus-per-node:gpus_per_node "
    "gres:gpus_per_node nnodes:nodes nodes sequence-parallel:sp "
    "use-distributed-optimizer num-distributed-optimizer-instances use-megatron-fsdp "
    "use-custom-fsdp:use-megatron-fsdp data-parallel-sharding-strategy use-torch-fsdp2 "
    "zero-stage deepspeed bf16 fp16 fp8-format fp8:fp8-format recompute-granularity "
    "recompute-activations checkpoint-activations recompute-method recompute-num-layers "
    "recompute-modules num-layers-per-virtual-pipeline-stage "
    "virtual-pipeline-model-parallel-size:vpp num-virtual-stages-per-pipeline-rank:vpp "
    "pipeline-model-parallel-layout decoder-first-pipeline-num-layers "
    "decoder-last-pipeline-num-layers account-for-embedding-in-pipeline-split "
    "account-for-loss-in-pipeline-split swiglu normalization "
    "untie-embeddings-and-output-weights disable-bias-linear add-bias-linear "
    "hidden-dropout position-embedding-type use-rotary-position-embeddings kv-channels "
    "num-experts moe-router-topk moe-ffn-hidden-size moe-layer-freq "
    "moe-shared-expert-intermediate-size multi-latent-attention q-lora-rank kv-lora-rank "
    "qk-pos-emb-head-dim qk-head-dim v-head-dim attention-backend use-flash-attn "
    "transformer-impl overlap-moe-expert-parallel-comm use-precision-aware-optimizer "
    "exp-avg-dtype exp-avg-sq-dtype no-store-param-remainders store-param-remainders "
    "optimizer-cpu-offload overlap-cpu-optimizer-d2h-h2d "
    "fp4-format fp4:fp4-format fp8-recipe fp4-recipe optimizer moe-grouped-gemm "
    "moe-expert-capacity-factor moe-pad-expert-input-to-capacity "
    "moe-token-dispatcher-type "
    "moe-enable-deepep merge-file topk:moe-router-topk expert-interval:moe-layer-freq "
    "moe-train-capacity-factor moe-flex-dispatcher-backend "
    "overlap-grad-reduce overlap-param-gather tp-comm-overlap grad-reduce-in-bf16 "
    "main-grads-dtype mtp-num-layers fp8-param-gather fp4-param-gather "
    "cuda-graph-impl cuda-graph-modules cuda-graph-scope:cuda-graph-modules "
    "enable-cuda-graph external-cuda-graph "
    "te-rng-tracker moe-expert-rank-capacity-factor moe-paged-stash "
    "moe-pad-experts-for-cuda-graph-inference use-transformer-engine-op-fuser "
    "no-masked-softmax-fusion no-bias-swiglu-fusion no-bias-gelu-fusion no-rope-fusion "
    "no-gradient-accumulation-fusion";

/* What neither time nor memory depends on, or what every estimate takes for granted. */
static const char harmless[] =
    "train- lr= lr- min-lr weight-decay clip-grad adam- init- seed split save load log- "
    "eval- test- exit- data- *path *-dir *-file tensorboard wandb one-logger tokenizer "
    "vocab- tiktoken distributed- no-load no-save ckpt dist-ckpt async-save "
    "auto-detect use-checkpoint timing profile use-pytorch-profiler nsys record-memory "
    "memory-snapshot master- node-rank rdzv max-restarts tee num-workers "
    "attention-dropout attention-softmax norm-epsilon layernorm-epsilon max-position "
    "rotary- use-rope rope no-rope mock-data dataloader reset- eod- make-vocab "
    "use-mcore use-legacy use-cpu-init no-mmap no-create-attention create-attention "
    "manual-gc check- no-check loss- initial-loss min-loss hysteresis rampup "
    "override-opt use-checkpoint-opt moe-aux moe-z-loss moe-router-load "
    "moe-router-score moe-router-bias moe-router-enable moe-router-pre "
    "moe-router-topk-scaling moe-router-dtype moe-grouped- moe-per-layer "
    "moe-input-jitter moe-eval-capacity moe-min-capacity moe-loss-coeff moe-token-drop "
    "moe-permute moe-deepep "
    "moe-hybridep mamba- linear-conv linear-key linear-num linear-value decoupled "
    "deepspeed= deepspeed-activation deepspeed-config no-pipeline no-query-key "
    "job-name time= partition= account= exclusive= output= error= mem= cpus ntasks= qos "
    "container nodelist calculate-per-token empty-unused no-masked no-bias bias- "
    "masked-softmax apply-layernorm apply-query-key attention-head accumulate-allreduce "
    "enable-experimental finetune legacy inference consumed iteration rank= local-rank= "
    "params-dtype transformer-pipeline start-weight end-weight sgd "
    "use-tp-pp-dp distribute-saved retro biencoder bert ict block-data classes img "
    "image num-channels num-classes patch dino vision mask- short-seq query-in "
    "retriever indexer evidence titles embedding-path use-one-sent qk-clip add-qkv-bias "
    "openai-gelu onnx data= delay- align- overlap- ddp- tp-comm "
    "gradient-accumulation-fusion cross-entropy reuse-grad-buf moe-paged cuda-graph "
    "no-persist enable-ft enable-one straggler disable-straggler lazy world= yaml-cfg "
    "variable-seq perform-init barrier skip-train replication non-persistent kitchen "
    "ENV- TEST- LAUNCHER METRICS rl- grpo verify error-inj rerun mtp-loss decoder-seq "
    "encoder-num decoder-num mock= "
    "module= fp8-amax fp8-interval fp8-margin fp8-wgrad";

/* Underscores, and "MODEL_ARGS.--bf16", as YAML files of its tests and recipes have it. */
static void normalise (char *key)
{
    static const char section[] = "MODEL_ARGS.--";

    if (strncmp (key, section, sizeof section - 1) == 0)
        memmove (key, key + sizeof section - 1, strlen (key + sizeof section - 1) + 1);
    for (; *key; key++)
        if (*key == '_')
            *key = '-';
}

static enum status finish_model (struct jobs_reading *r)
{
    long h = jobs_int (r, "hidden", 0);
    bool gated = jobs_true (r, "swiglu");

    if (!jobs_find (r, "layers")) /* the model comes from another file, or is not said */
        return ST_OK;
    if (!jobs_true (r, "group-query-attention"))
        jobs_forget (r, "kv_heads");
    if (jobs_int (r, "num-key-value-heads", 0) > 0) /* as Megatron-DeepSpeed says it */
        TRY (jobs_default_int (r, "kv_heads", jobs_int (r, "num-key-value-heads", 0)));
    if (h > 0)
        TRY (jobs_default_int (r, "ffn",
                               gated ? (long) (h * 8.0 / 3.0 / 64.0) * 64 : 4 * h));
    if (jobs_is (r, "add-bias-linear", "false"))
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
    const struct workload_model *m;

    if (!type && jobs_find (r, "merge-file")) /* as its scripts have it without a type */
        type = known[0].word;

    if (jobs_find (r, "vocab") || !jobs_find (r, "layers"))
        return ST_OK;
    if (jobs_int (r, "padded-vocab-size", 0) > 0)
        return jobs_default_int (r, "vocab", jobs_int (r, "padded-vocab-size", 0));
    if (jobs_value (r, "tokenizer-model") &&
        (m = workload_preset_meant (jobs_value (r, "tokenizer-model")))) {
        notes_add (r->notes, "the vocabulary is not stated: %d, as %s has", m->vocab,
                   m->name);
        return jobs_default_int (r, "vocab", m->vocab);
    }
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
    if (jobs_true (r, "fp4-format"))
        return jobs_default (r, "precision", "fp4");
    if (jobs_true (r, "fp8-format"))
        return jobs_default (r, "precision", "fp8");
    if (jobs_true (r, "bf16") || jobs_true (r, "fp16"))
        return jobs_default (r, "precision", jobs_true (r, "bf16") ? "bf16" : "fp16");
    if (!jobs_find (r, "layers") && !jobs_find (r, "tp"))
        return ST_OK;
    notes_add (r->notes,
               "neither bf16 nor fp16 is asked for: fp32, Megatron-LM's default");
    return jobs_default (r, "precision", "fp32");
}

static enum status finish_recompute (struct jobs_reading *r)
{
    long layers = jobs_int (r, "recompute-num-layers", 0), vpp = jobs_int (r, "vpp", 1);
    char text[512] = "";
    size_t n = 0, len;

    if (jobs_is (r, "recompute-granularity", "full") ||
        jobs_true (r, "checkpoint-activations")) {
        if (!jobs_is (r, "recompute-method", "block") || layers < 1)
            return jobs_default (r, "recompute", "full");
        snprintf (text, sizeof text, "full:%ld", layers * (vpp > 0 ? vpp : 1));
        return jobs_default (r, "recompute", text);
    }
    if (!jobs_is (r, "recompute-granularity", "selective") &&
        !jobs_true (r, "recompute-activations"))
        return jobs_default (r, "recompute", "none");
    if (!jobs_value (r, "recompute-modules"))
        return jobs_default (r, "recompute", "selective");
    for (const char *c = jobs_value (r, "recompute-modules"); *c && n < 500; c += len) {
        c += strspn (c, "[]'\", ");
        len = strcspn (c, "[]'\", ");
        n += (size_t) snprintf (text + n, sizeof text - n, "%s%.*s",
                                n > 0 && len > 0 ? " " : "",
                                (int) (len < 500 - n ? len : 500 - n), c);
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
    if (jobs_true (r, "use-megatron-fsdp") && strategy)
        stage = strcmp (strategy, "optim_grads_params") == 0 ? 3
                : strcmp (strategy, "optim_grads") == 0      ? 2
                                                             : 1;
    else if (jobs_true (r, "use-torch-fsdp2"))
        stage = 3;
    else if (stage == 0)
        stage = jobs_true (r, "use-distributed-optimizer");
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
    bool whole = jobs_true (r, "no-store-param-remainders") ||
                 jobs_is (r, "store-param-remainders", "false");

    if (jobs_true (r, "optimizer-cpu-offload")) /* which keeps all of it in fp32 */
        return jobs_default (r, "offload", "optimizer");
    if (!jobs_true (r, "use-precision-aware-optimizer") || first == 0 || second == 0)
        return ST_OK;
    return jobs_default_int (r, "optimizer-bytes", (whole ? 4 : 2) + first + second);
}

/* The embedding and the loss where they count as a layer each. */
static bool counts_embedding (const struct jobs_reading *r)
{
    return jobs_true (r, "account-for-embedding-in-pipeline-split");
}

static bool counts_loss (const struct jobs_reading *r)
{
    return jobs_true (r, "account-for-loss-in-pipeline-split");
}

static enum status refuse (struct jobs_reading *r, const char *option, const char *found)
{
    const struct jobs_fact *f = jobs_find (r, option);

    return err_set (r->err, ST_INVALID, "%s: line %d: %s %.60s: %s",
                    file_title (r->file[f->file < 0 ? 0 : f->file]), f->line, option,
                    f->value, found);
}

static enum status take_layout (struct jobs_reading *r, int *part)
{
    static const char option[] = "pipeline-model-parallel-layout";
    const char *s = jobs_value (r, option);
    long vpp = jobs_int (r, "vpp", 0), pp = jobs_int (r, "pp", 1), layers = 0;
    int parts = jobs_layout (s, part);
    char found[200];

    if (parts == 0)
        return refuse (r, option,
                       "expected E, t, m and L with | between chunks, as Et|(tt|)*3tL");
    for (int i = 0; i < parts; i++)
        layers += part[i];
    if (pp < 1 || parts % pp != 0 || (vpp > 1 && parts != pp * vpp)) {
        snprintf (found, sizeof found,
                  "expected as many chunks as the %ld stages have, found %d", pp, parts);
        return refuse (r, option, found);
    }
    if (layers != jobs_layers (r, layers)) {
        snprintf (found, sizeof found, "expected the model's %ld layers, found %ld",
                  jobs_layers (r, layers), layers);
        return refuse (r, option, found);
    }
    if (!jobs_stages_filled (part, parts, pp))
        return refuse (r, option, "a stage without layers is not estimated");
    snprintf (found, sizeof found, "%ld", parts / pp);
    TRY (jobs_override (r, "vpp", found)); /* where it is 1 or none, too */
    return jobs_partition (r, part, parts);
}

/* Embedding and loss take a layer's place in the first and in the last chunk
 * (transformer_block.py, get_num_layers_to_build). */
static enum status take_counted (struct jobs_reading *r, int *part)
{
    const char *option = counts_embedding (r) ? "account-for-embedding-in-pipeline-split"
                                              : "account-for-loss-in-pipeline-split";
    long vpp = jobs_int (r, "vpp", 1), pp = jobs_int (r, "pp", 1),
         layers = jobs_layers (r, 0) + counts_embedding (r) + counts_loss (r);
    int parts;

    if (pp < 1 || vpp < 1 || pp > JOBS_CHUNKS_MAX || vpp > JOBS_CHUNKS_MAX / pp)
        return ST_OK; /* which is refused elsewhere */
    parts = (int) (pp * vpp);
    for (int i = 0; i < parts; i++)
        part[i] = (int) (layers / parts);
    part[0] -= counts_embedding (r);
    part[parts - 1] -= counts_loss (r);
    if (layers % parts != 0 || part[0] < 0 || part[parts - 1] < 0 ||
        !jobs_stages_filled (part, parts, pp)) {
        char found[120];

        snprintf (
            found, sizeof found,
            "expected layers that fill %ld stage%s of %ld chunk%s with it, found %ld", pp,
            TEXT_S (pp), vpp, TEXT_S (vpp), jobs_layers (r, 0));
        return refuse (r, option, found);
    }
    return jobs_partition (r, part, parts);
}

static enum status finish_layout (struct jobs_reading *r)
{
    bool layout = jobs_true (r, "pipeline-model-parallel-layout");
    int *part;
    enum status st;

    if (!layout && (jobs_layers (r, 0) < 1 || !(counts_embedding (r) || counts_loss (r))))
        return ST_OK;
    if (!(part = malloc (JOBS_CHUNKS_MAX * sizeof *part)))
        return err_nomem (r->err);
    st = layout ? take_layout (r, part) : take_counted (r, part);
    free (part);
    return st;
}

static enum status finish_chunks (struct jobs_reading *r)
{
    long per = jobs_int (r, "num-layers-per-virtual-pipeline-stage", 0),
         layers = jobs_layers (r, 0), pp = jobs_int (r, "pp", 1);

    layers += layers > 0 ? counts_embedding (r) + counts_loss (r) : 0;
    if (per > 0 && layers > 0 && pp > 0 && layers % (per * pp) == 0)
        return jobs_default_int (r, "vpp", layers / (per * pp));
    return ST_OK;
}

/* As runs files have it: "([0]*2+[1]*2)". */
static enum status finish_frequency (struct jobs_reading *r)
{
    const char *s = jobs_value (r, "moe-layer-freq");
    long dense = 0, sparse = 0;
    char text[64];

    if (!s || !jobs_frequency (s, &dense, &sparse))
        return ST_OK; /* a number; else it is refused as it stands */
    snprintf (text, sizeof text, "([0]*%ld+[1]*%ld)", dense, sparse);
    return jobs_override (r, "moe-layer-freq", dense > 0 ? text : "1");
}

/* Has the model, which may be another file's? */
static bool has_experts (const struct jobs_reading *r)
{
    return jobs_true (r, "num-experts") || (r->has_model && r->model.experts > 0);
}

/* Who sends experts their tokens, by its older names too; and how many they may take. */
static enum status finish_experts (struct jobs_reading *r)
{
    bool experts = has_experts (r);

    if (!experts) {
        jobs_forget (r, "num-experts");
        jobs_forget (r, "moe-token-dispatcher-type");
    } else if (jobs_true (r, "moe-enable-deepep"))
        TRY (jobs_override (r, "moe-token-dispatcher-type", "flex"));
    if (experts && jobs_true (r, "moe-train-capacity-factor")) {
        /* DeepSpeed pads to the capacity. */
        TRY (jobs_default (r, "moe-expert-capacity-factor",
                           jobs_value (r, "moe-train-capacity-factor")));
        TRY (jobs_default (r, "moe-pad-expert-input-to-capacity", "true"));
    }
    if (!experts || !jobs_true (r, "moe-expert-capacity-factor")) {
        jobs_forget (r, "moe-expert-capacity-factor");
        jobs_forget (r, "moe-pad-expert-input-to-capacity");
        return ST_OK;
    }
    return jobs_default (r, "moe-pad-expert-input-to-capacity", "false");
}

/* Multi-token prediction, in the model that another file has, too. */
static enum status finish_mtp (struct jobs_reading *r)
{
    long n = jobs_true (r, "mtp-num-layers") ? jobs_int (r, "mtp-num-layers", -1) : 0;

    if (n < 0 || n > WORKLOAD_MTP_MOST) {
        notes_add (r->notes, "mtp-num-layers %.40s: expected 0 to %d; none is counted",
                   jobs_value (r, "mtp-num-layers"), WORKLOAD_MTP_MOST);
        n = 0;
    }
    if (n > 0 && r->has_model && !workload_model_predict (&r->model, (int) n))
        notes_add (r->notes, "mtp-num-layers: not counted in a model with layers of "
                             "several kinds");
    if (n == 0)
        jobs_forget (r, "mtp-num-layers");
    return ST_OK;
}

/* Whole steps in a CUDA graph, as 2025's releases spell it too. */
static enum status finish_graphs (struct jobs_reading *r)
{
    const char *modules = jobs_value (r, "cuda-graph-modules");

    if (jobs_true (r, "enable-cuda-graph") || jobs_true (r, "external-cuda-graph"))
        TRY (jobs_default (r, "cuda-graph-impl",
                           jobs_true (r, "enable-cuda-graph") ? "local"
                                                              : "transformer_engine"));
    if (jobs_is (r, "cuda-graph-impl", "local") && modules &&
        strstr (modules, "full_iter"))
        return jobs_override (r, "cuda-graph-impl", "full_iteration");
    return ST_OK;
}

/* Kernels that are several where an option says so. */
static enum status finish_kernels (struct jobs_reading *r)
{
    if (jobs_true (r, "use-flash-attn"))
        TRY (jobs_default (r, "attention", "flash"));
    if (jobs_true (r, "no-masked-softmax-fusion") &&
        jobs_is (r, "attention-backend", "unfused")) {
        TRY (jobs_default (r, "attention", "unfused"));
        jobs_forget (r, "attention-backend");
    }
    if (jobs_true (r, "no-bias-swiglu-fusion") || jobs_true (r, "no-bias-gelu-fusion"))
        TRY (jobs_default (r, "fused-mlp", "false"));
    if (jobs_true (r, "no-rope-fusion"))
        TRY (jobs_default (r, "fused-rotary", "false"));
    if (jobs_true (r, "no-gradient-accumulation-fusion"))
        TRY (jobs_default (r, "fused-accumulation", "false"));
    return ST_OK;
}

/* What a Megatron-LM job does not do unless an option asks for it; DeepSpeed has its own, and so
 * has a recipe. */
static enum status finish_off (struct jobs_reading *r)
{
    const char *precision = jobs_value (r, "precision");
    bool experts = has_experts (r), quantised = precision && strstr (precision, "fp8");
    const struct {
        const char *fact;
        bool matters;
    } off[] = {
        {"overlap-grad-reduce", true},
        {"tp-comm-overlap", true},
        {"grad-reduce-in-bf16", true},
        {"cuda-graph-impl", true},
        {"fp8-param-gather", quantised || (precision && strstr (precision, "fp4"))},
        {"overlap-moe-expert-parallel-comm", experts},
        {"use-transformer-engine-op-fuser", experts}};

    if (jobs_true (r, "main-grads-dtype") && moment_bytes (r, "main-grads-dtype") == 2)
        TRY (jobs_default (r, "grad-reduce-in-bf16", "true"));
    if (jobs_true (r, "fp4-param-gather"))
        TRY (jobs_default (r, "fp8-param-gather", "true"));
    for (size_t i = 0; i < COUNT_OF (off); i++)
        if (!off[i].matters)
            jobs_forget (r, off[i].fact);
        else if (jobs_is (r, "framework", "megatron-core") ||
                 jobs_is (r, "framework", "megatron-lm"))
            TRY (jobs_default (r, off[i].fact,
                               strcmp (off[i].fact, "cuda-graph-impl") == 0 ? "none"
                                                                            : "false"));
    return ST_OK;
}

/* Megatron-LM is built on Megatron-Core where one of Core's options is stated. */
static const char *framework (const struct jobs_reading *r)
{
    static const char *const cores[] = {"cp",
                                        "transformer-impl",
                                        "attention-backend",
                                        "overlap-param-gather",
                                        "moe-router-topk",
                                        "use-precision-aware-optimizer",
                                        "use-megatron-fsdp"};
    bool core = false;

    for (size_t i = 0; i < COUNT_OF (cores); i++)
        core = core || jobs_find (r, cores[i]);
    return jobs_true (r, "deepspeed") ? "megatron-deepspeed"
           : core                     ? "megatron-core"
                                      : jobs_megatron.framework;
}

static enum status finish (struct jobs_reading *r)
{
    TRY (jobs_default (r, "framework", framework (r)));
    TRY (finish_model (r));
    TRY (finish_vocabulary (r));
    TRY (finish_precision (r));
    TRY (finish_chunks (r));
    TRY (finish_layout (r));
    TRY (finish_recompute (r));
    TRY (finish_sharding (r));
    TRY (finish_optimizer (r));
    TRY (finish_frequency (r));
    TRY (finish_experts (r));
    TRY (finish_mtp (r));
    TRY (finish_graphs (r));
    TRY (finish_kernels (r));
    return finish_off (r);
}

const struct jobs_dialect jobs_megatron = {.name = "Megatron-LM",
                                           .framework = "megatron-lm",
                                           .keys = keys,
                                           .harmless = harmless,
                                           .normalise = normalise,
                                           .finish = finish,
                                           .log = jobs_megatron_log};
