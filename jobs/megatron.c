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
    jobs_strip (key, "MODEL_ARGS.--");
    jobs_dash (key);
}

static void finish_model (struct jobs_reading *r)
{
    long h = jobs_int (r, "hidden", 0);
    bool gated = jobs_true (r, "swiglu");

    if (!jobs_find (r, "layers")) /* the model comes from another file, or is not said */
        return;
    if (!jobs_true (r, "group-query-attention"))
        jobs_forget (r, "kv_heads");
    if (jobs_int (r, "num-key-value-heads", 0) > 0) /* as Megatron-DeepSpeed says it */
        jobs_default_int (r, "kv_heads", jobs_int (r, "num-key-value-heads", 0));
    if (h > 0)
        jobs_default_int (r, "ffn", gated ? (long) (h * 8.0 / 3.0 / 64.0) * 64 : 4 * h);
    if (jobs_is (r, "add-bias-linear", "false"))
        jobs_default (r, "disable-bias-linear", "true");
    jobs_defaults (r, "use-rotary-position-embeddings?position-embedding-type=rope "
                      "hidden-dropout=0.1 normalization=LayerNorm "
                      "position-embedding-type=learned_absolute "
                      "untie-embeddings-and-output-weights=false "
                      "transformer-impl=transformer_engine");
}

/* Tokenizers with one vocabulary. */
static void finish_vocabulary (struct jobs_reading *r)
{
    static const struct {
        const char *word;
        int size;
    } known[] = {{"GPT2BPETokenizer", 50257},
                 {"GPTSentencePieceTokenizer", 32000},
                 {"Llama2Tokenizer", 32000}};
    const char *type = jobs_value (r, "tokenizer-type"),
               *named = jobs_value (r, "tokenizer-model");
    const struct workload_model *m = NULL;
    long vocab = jobs_int (r, "padded-vocab-size", 0);

    if (!type && jobs_find (r, "merge-file")) /* as its scripts have it without a type */
        type = known[0].word;

    if (jobs_find (r, "vocab") || !jobs_find (r, "layers"))
        return;
    if (vocab == 0 && named && (m = workload_preset_meant (named))) {
        vocab = m->vocab;
        notes_add (r->notes, "the vocabulary is not stated: %ld, as %s has", vocab,
                   m->name);
    }
    for (size_t i = 0; i < COUNT_OF (known) && vocab == 0 && type; i++)
        if (strcmp (type, known[i].word) == 0) {
            vocab = known[i].size;
            notes_add (r->notes, "the vocabulary is not stated: %ld, as %s usually has",
                       vocab, type);
        }
    if (vocab > 0)
        jobs_default_int (r, "vocab", vocab);
}

static void finish_precision (struct jobs_reading *r)
{
    jobs_defaults (r, "fp4-format?precision=fp4 fp8-format?precision=fp8 "
                      "bf16?precision=bf16 fp16?precision=fp16");
    if (jobs_find (r, "precision") || !(jobs_find (r, "layers") || jobs_find (r, "tp")))
        return;
    notes_add (r->notes,
               "neither bf16 nor fp16 is asked for: fp32, Megatron-LM's default");
    jobs_default (r, "precision", "fp32");
}

/* Modules in brackets, quotes and with commas, with blanks alone; attention alone is what
 * Megatron's selective means. */
static void recompute_modules (struct jobs_reading *r, const char *modules)
{
    char text[512] = "";
    size_t n = 0, len;

    for (const char *c = modules; *c && n < 500; c += len) {
        c += strspn (c, "[]'\", ");
        len = strcspn (c, "[]'\", ");
        n += (size_t) snprintf (text + n, sizeof text - n, "%s%.*s",
                                n > 0 && len > 0 ? " " : "",
                                (int) (len < 500 - n ? len : 500 - n), c);
    }
    jobs_default (r, "recompute", strcmp (text, "core_attn") == 0 ? "selective" : text);
}

static void finish_recompute (struct jobs_reading *r)
{
    const char *modules = jobs_value (r, "recompute-modules");
    long layers = jobs_int (r, "recompute-num-layers", 0), vpp = jobs_int (r, "vpp", 1);
    char text[32] = "none";

    if (jobs_is (r, "recompute-granularity", "full") ||
        jobs_true (r, "checkpoint-activations")) {
        strcpy (text, "full");
        if (jobs_is (r, "recompute-method", "block") && layers >= 1)
            snprintf (text, sizeof text, "full:%ld", layers * (vpp > 0 ? vpp : 1));
    } else if (jobs_is (r, "recompute-granularity", "selective") ||
               jobs_true (r, "recompute-activations")) {
        strcpy (text, "selective");
        if (modules)
            recompute_modules (r, modules);
    }
    jobs_default (r, "recompute", text);
}

static void finish_sharding (struct jobs_reading *r)
{
    const char *strategy = jobs_value (r, "data-parallel-sharding-strategy");
    long stage = jobs_int (r, "zero-stage", 0);

    if (jobs_true (r, "use-megatron-fsdp") && strategy)
        stage = strcmp (strategy, "optim_grads_params") == 0 ? 3
                : strcmp (strategy, "optim_grads") == 0      ? 2
                                                             : 1;
    else if (jobs_true (r, "use-torch-fsdp2"))
        stage = 3;
    else if (stage == 0)
        stage = jobs_true (r, "use-distributed-optimizer");
    jobs_default_int (r, "zero", stage);
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
static void finish_optimizer (struct jobs_reading *r)
{
    int first = moment_bytes (r, "exp-avg-dtype"),
        second = moment_bytes (r, "exp-avg-sq-dtype");
    bool whole = jobs_true (r, "no-store-param-remainders") ||
                 jobs_is (r, "store-param-remainders", "false");

    if (jobs_true (r, "optimizer-cpu-offload")) /* which keeps all of it in fp32 */
        jobs_default (r, "offload", "optimizer");
    else if (jobs_true (r, "use-precision-aware-optimizer") && first > 0 && second > 0)
        jobs_default_int (r, "optimizer-bytes", (whole ? 4 : 2) + first + second);
}

/* ---- layers in chunks ---- */

#define LAYOUT "pipeline-model-parallel-layout"
/* The embedding and the loss where they count as a layer each. */
#define EMBEDDING_COUNTS "account-for-embedding-in-pipeline-split"
#define LOSS_COUNTS "account-for-loss-in-pipeline-split"

#define WHY_MAX 200 /* bytes of why a layout is refused */

/* @param[out] part  [JOBS_CHUNKS_MAX];  why  untouched where it is not refused */
static void take_layout (struct jobs_reading *r, int *part, char why[WHY_MAX])
{
    long vpp = jobs_int (r, "vpp", 0), pp = jobs_int (r, "pp", 1), layers = 0;
    int parts = jobs_layout (jobs_value (r, LAYOUT), part);

    for (int i = 0; i < parts; i++)
        layers += part[i];
    if (parts == 0)
        snprintf (why, WHY_MAX,
                  "expected E, t, m and L with | between chunks, as Et|(tt|)*3tL");
    else if (pp < 1 || parts % pp != 0 || (vpp > 1 && parts != pp * vpp))
        snprintf (why, WHY_MAX,
                  "expected as many chunks as the %ld stages have, found %d", pp, parts);
    else if (layers != jobs_layers (r, layers))
        snprintf (why, WHY_MAX, "expected the model's %ld layers, found %ld",
                  jobs_layers (r, layers), layers);
    else if (!jobs_stages_filled (part, parts, pp))
        snprintf (why, WHY_MAX, "a stage without layers is not estimated");
    else {
        jobs_forget (r, "vpp"); /* where it is 1 or none, too */
        jobs_default_int (r, "vpp", parts / pp);
        jobs_partition (r, part, parts);
    }
}

/* Embedding and loss take a layer's place in the first and in the last chunk
 * (transformer_block.py, get_num_layers_to_build).  The same. */
static void take_counted (struct jobs_reading *r, int *part, char why[WHY_MAX])
{
    bool embedding = jobs_true (r, EMBEDDING_COUNTS), loss = jobs_true (r, LOSS_COUNTS);
    long vpp = jobs_int (r, "vpp", 1), pp = jobs_int (r, "pp", 1),
         layers = jobs_layers (r, 0) + embedding + loss;
    int parts;

    if (pp < 1 || vpp < 1 || pp > JOBS_CHUNKS_MAX || vpp > JOBS_CHUNKS_MAX / pp)
        return; /* which is refused elsewhere */
    parts = (int) (pp * vpp);
    for (int i = 0; i < parts; i++)
        part[i] = (int) (layers / parts);
    part[0] -= embedding;
    part[parts - 1] -= loss;
    if (layers % parts != 0 || part[0] < 0 || part[parts - 1] < 0 ||
        !jobs_stages_filled (part, parts, pp))
        snprintf (
            why, WHY_MAX,
            "expected layers that fill %ld stage%s of %ld chunk%s with it, found %ld", pp,
            TEXT_S (pp), vpp, TEXT_S (vpp), jobs_layers (r, 0));
    else
        jobs_partition (r, part, parts);
}

static void finish_layout (struct jobs_reading *r)
{
    const char *option = jobs_true (r, LAYOUT)             ? LAYOUT
                         : jobs_true (r, EMBEDDING_COUNTS) ? EMBEDDING_COUNTS
                                                           : LOSS_COUNTS;
    bool layout = strcmp (option, LAYOUT) == 0;
    const struct jobs_fact *f = jobs_find (r, option);
    char why[WHY_MAX] = "";
    int *part;

    if (!jobs_true (r, option) || (!layout && jobs_layers (r, 0) < 1))
        return;
    if (!(part = malloc (JOBS_CHUNKS_MAX * sizeof *part))) {
        r->st = err_nomem (r->err);
        return;
    }
    (layout ? take_layout : take_counted) (r, part, why);
    free (part);
    if (why[0])
        r->st = err_set (r->err, ST_INVALID, "%s: line %d: %s %.60s: %s",
                         file_title (r->file[f->file < 0 ? 0 : f->file]), f->line, option,
                         f->value, why);
}

static void finish_chunks (struct jobs_reading *r)
{
    long per = jobs_int (r, "num-layers-per-virtual-pipeline-stage", 0),
         layers = jobs_layers (r, 0), pp = jobs_int (r, "pp", 1);

    if (layers > 0)
        layers += jobs_true (r, EMBEDDING_COUNTS) + jobs_true (r, LOSS_COUNTS);
    if (per > 0 && layers > 0 && pp > 0 && layers % (per * pp) == 0)
        jobs_default_int (r, "vpp", layers / (per * pp));
}

/* As runs files have it: "([0]*2+[1]*2)". */
static void finish_frequency (struct jobs_reading *r)
{
    const char *s = jobs_value (r, "moe-layer-freq");
    long dense = 0, sparse = 0;
    char text[64];

    if (!s || !jobs_frequency (s, &dense, &sparse))
        return; /* a number; else it is refused as it stands */
    snprintf (text, sizeof text, "([0]*%ld+[1]*%ld)", dense, sparse);
    jobs_override (r, "moe-layer-freq", dense > 0 ? text : "1");
}

/* ---- what else follows ---- */

/* Has the model, which may be another file's? */
static bool has_experts (const struct jobs_reading *r)
{
    return jobs_true (r, "num-experts") || (r->has_model && r->model.experts > 0);
}

/* Who sends experts their tokens, by its older names too; and how many they may take, to which
 * DeepSpeed pads. */
static void finish_experts (struct jobs_reading *r)
{
    const char *most = jobs_value (r, "moe-train-capacity-factor");
    bool experts = has_experts (r);

    if (!experts) {
        jobs_forget (r, "num-experts");
        jobs_forget (r, "moe-token-dispatcher-type");
    } else if (jobs_true (r, "moe-enable-deepep"))
        jobs_override (r, "moe-token-dispatcher-type", "flex");
    if (experts && jobs_chooses (most)) {
        jobs_default (r, "moe-expert-capacity-factor", most);
        jobs_default (r, "moe-pad-expert-input-to-capacity", "true");
    }
    if (!experts || !jobs_true (r, "moe-expert-capacity-factor")) {
        jobs_forget (r, "moe-expert-capacity-factor");
        jobs_forget (r, "moe-pad-expert-input-to-capacity");
    } else
        jobs_default (r, "moe-pad-expert-input-to-capacity", "false");
}

/* Multi-token prediction, in the model that another file has, too. */
static void finish_mtp (struct jobs_reading *r)
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
}

/* Whole steps in a CUDA graph, as 2025's releases spell it too. */
static void finish_graphs (struct jobs_reading *r)
{
    const char *modules = jobs_value (r, "cuda-graph-modules");

    jobs_defaults (r, "enable-cuda-graph?cuda-graph-impl=local "
                      "external-cuda-graph?cuda-graph-impl=transformer_engine");
    if (jobs_is (r, "cuda-graph-impl", "local") && modules &&
        strstr (modules, "full_iter"))
        jobs_override (r, "cuda-graph-impl", "full_iteration");
}

/* Kernels that are several where an option says so. */
static void finish_kernels (struct jobs_reading *r)
{
    jobs_defaults (r, "use-flash-attn?attention=flash");
    if (jobs_true (r, "no-masked-softmax-fusion") &&
        jobs_is (r, "attention-backend", "unfused")) {
        jobs_default (r, "attention", "unfused");
        jobs_forget (r, "attention-backend");
    }
    jobs_defaults (r, "no-bias-swiglu-fusion?fused-mlp=false "
                      "no-bias-gelu-fusion?fused-mlp=false "
                      "no-rope-fusion?fused-rotary=false "
                      "no-gradient-accumulation-fusion?fused-accumulation=false");
}

/* What a Megatron-LM job does not do unless an option asks for it; DeepSpeed has its own, and so
 * has a recipe. */
static void finish_off (struct jobs_reading *r)
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
        jobs_default (r, "grad-reduce-in-bf16", "true");
    jobs_defaults (r, "fp4-param-gather?fp8-param-gather=true");
    for (size_t i = 0; i < COUNT_OF (off); i++)
        if (!off[i].matters)
            jobs_forget (r, off[i].fact);
        else if (jobs_is (r, "framework", "megatron-core") ||
                 jobs_is (r, "framework", "megatron-lm"))
            jobs_default (r, off[i].fact,
                          strcmp (off[i].fact, "cuda-graph-impl") == 0 ? "none"
                                                                       : "false");
}

/* Megatron-LM is built on Megatron-Core where one of Core's options is stated. */
static const char *framework (const struct jobs_reading *r)
{
    const char *cores =
        "cp transformer-impl attention-backend overlap-param-gather moe-router-topk "
        "use-precision-aware-optimizer use-megatron-fsdp";
    char name[JOBS_WORD_MAX];
    bool core = false;

    while (jobs_next_word (&cores, name))
        core = core || jobs_find (r, name);
    return jobs_true (r, "deepspeed") ? "megatron-deepspeed"
           : core                     ? "megatron-core"
                                      : jobs_megatron.framework;
}

static void finish (struct jobs_reading *r)
{
    jobs_default (r, "framework", framework (r));
    finish_model (r);
    finish_vocabulary (r);
    finish_precision (r);
    finish_chunks (r);
    finish_layout (r);
    if (r->st != ST_OK) /* a layout that is refused: nothing more is said */
        return;
    finish_recompute (r);
    finish_sharding (r);
    finish_optimizer (r);
    finish_frequency (r);
    finish_experts (r);
    finish_mtp (r);
    finish_graphs (r);
    finish_kernels (r);
    finish_off (r);
}

const struct jobs_dialect jobs_megatron = {.name = "Megatron-LM",
                                           .framework = "megatron-lm",
                                           .keys = keys,
                                           .harmless = harmless,
                                           .normalise = normalise,
                                           .finish = finish,
                                           .log = jobs_megatron_log};
