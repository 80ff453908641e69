/* Hugging Face's Trainer and what is built on it: options of a script, YAML or JSON with the names
 * of its TrainingArguments (transformers, training_args.py), of accelerate launch and the file of
 * accelerate config, of torchrun, TRL, PEFT, LLaMA-Factory and Axolotl. */
#include "jobs/jobs_private.h"

#include <string.h>

static const char keys[] =
    "per-device-train-batch-size:micro_batch micro-batch-size:micro_batch "
    "gradient-accumulation-steps:accumulation bf16 fp16 tf32:hf-tf32 "
    "mixed-precision:hf-mixed torch-dtype:hf-dtype dtype:hf-dtype optim "
    "optimizer:optim load-in-4bit:hf-4bit load-in-8bit:hf-8bit quantization-bit:hf-bits "
    "quant-bits:hf-bits bnb-4bit-use-double-quant:hf-double "
    "use-bnb-nested-quant:hf-double double-quantization:hf-double "
    "gradient-checkpointing:hf-checkpointing distributed-type:hf-type "
    "fsdp:hf-fsdp use-fsdp:hf-use-fsdp fsdp-sharding-strategy:hf-strategy "
    "fsdp-reshard-after-forward:hf-reshard fsdp-version:hf-fsdp-version "
    "fsdp-offload-params:hf-offload fsdp-activation-checkpointing:hf-fsdp-checkpointing "
    "deepspeed use-deepspeed:hf-use-deepspeed deepspeed-config:deepspeed "
    "deepspeed-config-file:deepspeed zero-stage:hf-stage "
    "offload-optimizer-device:ds-optimizer-on offload-param-device:ds-weights-on "
    "model-name-or-path:hf-model base-model:hf-model model:hf-model max-seq-length:seq "
    "model-max-length:seq max-length:seq cutoff-len:seq sequence-len:seq block-size:seq "
    "nproc-per-node:gpus_per_node nnodes:nodes num-processes:gpus num-machines:nodes "
    "num-gpus:gpus_per_node attn-implementation:hf-attention flash-attn:hf-attention "
    "flash-attention use-peft:hf-lora "
    "use-lora:hf-lora finetuning-type:hf-adapter adapter:hf-adapter "
    "train-type:hf-adapter tuner-type:hf-adapter lora-dropout";

/* What neither time nor memory depends on, or what every estimate takes for granted. */
static const char harmless[] =
    "output learning- lr- weight-decay adam- max-grad warmup num-train max-steps num-ep "
    "logging log- save- eval- evaluation per-device-eval seed data- dataset dataloader "
    "preprocessing report run-name push- hub- resume overwrite remove-unused do- "
    "do_ label- load-best metric greater ddp- disable-tqdm wandb template stage= "
    "train- val- validation- trust lora- tokenizer use-fast cache- model-revision "
    "main-process machine-rank rdzv master- node-rank local-rank monitor tee "
    "config-file fsdp-state fsdp-auto fsdp-transformer fsdp-backward fsdp-cpu-ram "
    "gradient-checkpointing-kwargs fsdp-use fsdp-sync zero3- deepspeed-multinode "
    "compute-environment main-training "
    "same-network downcast enable-cpu-affinity debug fsdp-min fsdp-xla fsdp-limit "
    "num-cpu dynamo- ENV- prediction- group-by length- "
    "plot- val-set datasets= wandb- sample-pack pad-to lazy- conv-";

/* What is nested is as it is at the top: "fsdp_config.reshard_after_forward", with fsdp_ in front
 * or not, and "deepspeed_config.zero_stage"; below "deepspeed" are DeepSpeed's own words. */
static void normalise (char *key)
{
    bool fsdp;

    if (jobs_strip (key, "deepspeed."))
        return;
    jobs_dash (key);
    fsdp = jobs_strip (key, "fsdp-config.");
    if (fsdp && strncmp (key, "fsdp-", 5) != 0) {
        memmove (key + 5, key, strlen (key) + 1);
        memcpy (key, "fsdp-", 5);
    } else if (!fsdp)
        jobs_strip (key, "deepspeed-config.");
}

/* Is FSDP, or DeepSpeed, what runs?  Its own option or flag says so, then Accelerate's type of job,
 * then any option of its name: one that is not understood is no reason for another way. */
static bool runs_on (const struct jobs_reading *r, const char *name, const char *option,
                     const char *flag)
{
    const char *type = jobs_value (r, "hf-type");

    if (jobs_chooses (jobs_value (r, option)) || jobs_chooses (jobs_value (r, flag)))
        return true;
    if (type)
        return strcasestr (type, name) != NULL;
    for (int i = 0; i < r->n_said && !jobs_find (r, option) && !jobs_find (r, flag); i++)
        if (r->of_file[r->said[i].file] == &jobs_trainer &&
            strncasecmp (r->said[i].key, name, strlen (name)) == 0 &&
            jobs_chooses (r->said[i].value))
            return true;
    return false;
}

static bool has_deepspeed_file (const struct jobs_reading *r)
{
    for (int i = 0; i < r->n_files; i++)
        if (r->of_file[i] == &jobs_deepspeed)
            return true;
    return false;
}

static bool on_deepspeed (const struct jobs_reading *r)
{
    return has_deepspeed_file (r) ||
           runs_on (r, "deepspeed", "deepspeed", "hf-use-deepspeed");
}

/* DeepSpeed's stage is in its file, or among Accelerate's options, whose default is 2
 * (utils/dataclasses.py, DeepSpeedPlugin). */
static void finish_stage (struct jobs_reading *r)
{
    const char *file = jobs_value (r, "deepspeed"), *stage = jobs_value (r, "hf-stage");
    bool path = jobs_chooses (file) && strcasecmp (file, "true") != 0, said = stage;

    if (jobs_find (r, "zero") || has_deepspeed_file (r))
        return;
    if (!said)
        stage = path ? "3" : "2";
    if (path)
        notes_add (
            r->notes,
            "deepspeed %.80s is not among the files: ZeRO %.8s is assumed, and what "
            "else it says is not known; give that file, too",
            file, stage);
    else if (!said)
        notes_add (r->notes,
                   "nothing says DeepSpeed's stage: ZeRO 2, accelerate's default");
    jobs_default (r, "zero", stage);
}

/* The word that says how FSDP shards: of its second version whether weights are gathered again.
 * @return NULL: nothing says */
static const char *sharding_word (const struct jobs_reading *r)
{
    const char *own = jobs_value (r, "hf-fsdp"),
               *strategy = jobs_value (r, "hf-strategy"),
               *reshard = jobs_value (r, "hf-reshard");

    if (reshard && (!strategy || jobs_int (r, "hf-fsdp-version", 1) == 2))
        return reshard;
    return strategy ? strategy : jobs_chooses (own) ? own : NULL;
}

/* Sharding within nodes, whose size nproc_per_node says, or processes and machines. */
static void finish_hybrid (struct jobs_reading *r)
{
    const char *each = jobs_value (r, "gpus_per_node");

    if (each)
        jobs_default (r, "shard", each);
    else
        notes_add (r->notes,
                   "hybrid sharding, and nothing says the GPUs of a node "
                   "(nproc_per_node): estimated as if all GPUs shared one copy");
}

/* What is sharded: FSDP's word, or Accelerate's number of it (utils/constants.py). */
static void finish_fsdp (struct jobs_reading *r)
{
    static const struct {
        const char *word, *number, *zero;
    } known[] = {{"hybrid_shard_zero2", "5", "2"}, {"hybrid_shard", "4", "3"},
                 {"shard_grad_op", "2", "2"},      {"no_shard", "3", "0"},
                 {"full_shard", "1", "3"},         {"true", "true", "3"},
                 {"false", "false", "2"}};
    const char *said = sharding_word (r), *own = jobs_value (r, "hf-fsdp");
    size_t i = 0;

    while (said && i < COUNT_OF (known) && !strcasestr (said, known[i].word) &&
           strcmp (said, known[i].number) != 0)
        i++;
    if (i == COUNT_OF (known))
        notes_add (r->notes,
                   "fsdp %.40s says no way of sharding that is known: estimated as "
                   "full_shard",
                   said);
    else if (said && known[i].word[0] == 'h')
        finish_hybrid (r);
    if (own && strcasestr (own, "offload"))
        jobs_default (r, "offload", "all");
    jobs_defaults (r, "hf-offload?offload=all hf-fsdp-checkpointing?recompute=full");
    jobs_default (r, "zero", said && i < COUNT_OF (known) ? known[i].zero : "3");
}

static void finish_sharding (struct jobs_reading *r)
{
    const char *type = jobs_value (r, "hf-type");

    if (on_deepspeed (r))
        finish_stage (r);
    else if (runs_on (r, "fsdp", "hf-fsdp", "hf-use-fsdp"))
        finish_fsdp (r);
    else {
        if (jobs_chooses (type) && !strcasestr (type, "multi_gpu"))
            notes_add (r->notes,
                       "distributed_type %.40s is not understood: estimated as data "
                       "parallelism without sharding",
                       type);
        jobs_default (r, "zero", "0");
    }
}

/* Weights are in fp32 under mixed precision, which FSDP makes of 16-bit ones (accelerate,
 * accelerator.py, "Upcasted low precision parameters"); DeepSpeed has states of its own. */
static void finish_precision (struct jobs_reading *r)
{
    const char *said = jobs_value (r, "hf-dtype"), *dtype = jobs_dtype_of (said);
    bool bf16 = jobs_true (r, "bf16") || jobs_is (r, "hf-mixed", "bf16"),
         fp16 = jobs_true (r, "fp16") || jobs_is (r, "hf-mixed", "fp16"),
         mixed = bf16 || fp16, halves = dtype && strstr (dtype, "16");

    if (on_deepspeed (r) && (jobs_find (r, "ds-bf16") || jobs_find (r, "ds-fp16")))
        return; /* its file's word */
    if (jobs_is (r, "hf-mixed", "fp8"))
        jobs_default (r, "precision", "fp8");
    else if (mixed && (on_deepspeed (r) || (halves && jobs_int (r, "zero", 0) == 0)))
        jobs_default (r, "precision", bf16 ? "bf16" : "fp16");
    else if (mixed)
        jobs_default (r, "precision", bf16 ? "bf16-mixed" : "fp16-mixed");
    else {
        if (jobs_chooses (said) && !dtype)
            notes_add (
                r->notes,
                "dtype %.40s is not known here: estimated as if weights were in fp32",
                said);
        jobs_default (r, "precision",
                      halves                     ? dtype
                      : jobs_true (r, "hf-tf32") ? "tf32"
                                                 : "fp32");
    }
}

static void finish_kernels (struct jobs_reading *r)
{
    bool eager = !jobs_true (r, "flash-attention") &&
                 (jobs_is (r, "hf-attention", "eager") ||
                  jobs_is (r, "hf-attention", "disabled")); /* LLaMA-Factory's word */

    jobs_default (r, "attention", eager ? "eager" : "flash");
    jobs_defaults (r, "hf-checkpointing?recompute=full recompute=none");
}

/* Who names no optimizer gets fused AdamW from transformers of late 2025 on (training_args.py,
 * default_optim, with PyTorch 2.8), before it AdamW in many kernels; DeepSpeed's own is one
 * kernel. */
static void finish_optimizer (struct jobs_reading *r)
{
    const char *named = jobs_value (r, "optim"), *usual = "adamw_torch_fused";

    if (!named && on_deepspeed (r))
        return;
    if (!named)
        notes_add (r->notes, "no optim is stated: adamw_torch_fused, as today's "
                             "transformers has it with PyTorch 2.8 and later");
    jobs_default (r, "optimizer", named ? named : usual);
    jobs_default (r, "optim", usual);
}

/* What adapters leave frozen may be in 4 or 8 bits, in the words of a runs file.  Scales are
 * quantised again by default in Axolotl, whose word is "qlora", and in LLaMA-Factory, whose is
 * quantization_bit, not in TRL. */
static void finish_frozen (struct jobs_reading *r, const char *adapter)
{
    long bits = jobs_int (r, "hf-bits", 0);
    bool q = adapter && strcasestr (adapter, "qlora"),
         twice = jobs_find (r, "hf-double") ? jobs_true (r, "hf-double") : q || bits == 4;

    if (jobs_true (r, "hf-8bit") || bits == 8)
        jobs_default (r, "frozen-weights", "bnb.int8");
    else if (q || jobs_true (r, "hf-4bit") || bits == 4)
        jobs_default (r, "frozen-weights", twice ? "nf4-dq" : "nf4");
    else if (bits > 0)
        notes_add (r->notes, "frozen weights of %ld bits: estimated as if they had 16",
                   bits);
}

static void finish_adapters (struct jobs_reading *r)
{
    const char *adapter = jobs_value (r, "hf-adapter");

    finish_frozen (r, adapter);
    if (jobs_true (r, "hf-lora") || (adapter && strcasestr (adapter, "lora")))
        jobs_default (r, "use-lora", "true");
    else
        jobs_forget (r, "lora-dropout");
}

static void finish (struct jobs_reading *r)
{
    const char *model = jobs_value (r, "hf-model");
    long gpus = jobs_int (r, "gpus", 0), nodes = jobs_int (r, "nodes", 0);

    if (model && !r->has_model)
        jobs_preset (r, model);
    if (jobs_find (r, "gpus_per_node")) /* torchrun's and deepspeed's usual */
        jobs_default (r, "nodes", "1");
    if (nodes > 0 && gpus >= nodes && gpus % nodes == 0) /* accelerate's processes */
        jobs_default_int (r, "gpus_per_node", gpus / nodes);
    finish_sharding (r);
    finish_precision (r);
    finish_kernels (r);
    finish_optimizer (r);
    finish_adapters (r);
    jobs_default (r, "framework", on_deepspeed (r) ? "deepspeed" : "transformers");
}

const struct jobs_dialect jobs_trainer = {.name = "Hugging Face Trainer",
                                          .framework = "transformers",
                                          .like = &jobs_deepspeed,
                                          .keys = keys,
                                          .harmless = harmless,
                                          .normalise = normalise,
                                          .finish = finish};
