/* Hugging Face's Trainer and what is built on it: options of a script, YAML or JSON with the names
 * of its TrainingArguments (transformers, training_args.py), of accelerate launch and the file of
 * accelerate config, of torchrun, TRL, PEFT, LLaMA-Factory and Axolotl. */
#include "jobs/jobs_private.h"

#include <stdlib.h>
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
    static const char fsdp[] = "fsdp-config.fsdp-", deepspeed[] = "deepspeed-config.",
                      own[] = "deepspeed.";
    size_t outer = sizeof "fsdp-config." - 1;

    if (strncmp (key, own, sizeof own - 1) == 0) {
        memmove (key, key + sizeof own - 1, strlen (key + sizeof own - 1) + 1);
        return;
    }
    for (char *c = key; *c; c++)
        if (*c == '_')
            *c = '-';
    if (strncmp (key, fsdp, sizeof fsdp - 1) == 0)
        memmove (key, key + outer, strlen (key + outer) + 1);
    else if (strncmp (key, fsdp, outer) == 0)
        memmove (key + 5, key + outer, strlen (key + outer) + 1);
    else if (strncmp (key, deepspeed, sizeof deepspeed - 1) == 0)
        memmove (key, key + sizeof deepspeed - 1,
                 strlen (key + sizeof deepspeed - 1) + 1);
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
static enum status finish_stage (struct jobs_reading *r)
{
    const char *file = jobs_value (r, "deepspeed"), *stage = jobs_value (r, "hf-stage");
    bool path = jobs_chooses (file) && strcasecmp (file, "true") != 0;

    if (jobs_find (r, "zero") || has_deepspeed_file (r))
        return ST_OK;
    if (!stage)
        stage = path ? "3" : "2";
    if (path)
        notes_add (
            r->notes,
            "deepspeed %.80s is not among the files: ZeRO %.8s is assumed, and what "
            "else it says is not known; give that file, too",
            file, stage);
    else if (!jobs_find (r, "hf-stage"))
        notes_add (r->notes,
                   "nothing says DeepSpeed's stage: ZeRO 2, accelerate's default");
    return jobs_default (r, "zero", stage);
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
static enum status finish_hybrid (struct jobs_reading *r)
{
    const char *each = jobs_value (r, "gpus_per_node");

    if (each)
        return jobs_default (r, "shard", each);
    notes_add (r->notes, "hybrid sharding, and nothing says the GPUs of a node "
                         "(nproc_per_node): estimated as if all GPUs shared one copy");
    return ST_OK;
}

/* What is sharded: FSDP's word, or Accelerate's number of it (utils/constants.py). */
static enum status finish_fsdp (struct jobs_reading *r)
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
    if (said && i < COUNT_OF (known) && known[i].word[0] == 'h')
        TRY (finish_hybrid (r));
    if (jobs_true (r, "hf-offload") || (own && strcasestr (own, "offload")))
        TRY (jobs_default (r, "offload", "all"));
    if (jobs_true (r, "hf-fsdp-checkpointing"))
        TRY (jobs_default (r, "recompute", "full"));
    return jobs_default (r, "zero", said && i < COUNT_OF (known) ? known[i].zero : "3");
}

static enum status finish_sharding (struct jobs_reading *r)
{
    const char *type = jobs_value (r, "hf-type");

    if (on_deepspeed (r))
        return finish_stage (r);
    if (runs_on (r, "fsdp", "hf-fsdp", "hf-use-fsdp"))
        return finish_fsdp (r);
    if (type && jobs_chooses (type) && !strcasestr (type, "multi_gpu"))
        notes_add (r->notes,
                   "distributed_type %.40s is not understood: estimated as data "
                   "parallelism without sharding",
                   type);
    return jobs_default (r, "zero", "0");
}

/* Weights are in fp32 under mixed precision, which FSDP makes of 16-bit ones (accelerate,
 * accelerator.py, "Upcasted low precision parameters"); DeepSpeed has states of its own. */
static enum status finish_precision (struct jobs_reading *r)
{
    const char *said = jobs_value (r, "hf-dtype"), *dtype = jobs_dtype_of (said);
    bool bf16 = jobs_true (r, "bf16") || jobs_is (r, "hf-mixed", "bf16"),
         fp16 = jobs_true (r, "fp16") || jobs_is (r, "hf-mixed", "fp16");
    bool sharded = jobs_int (r, "zero", 0) > 0, halves = dtype && strstr (dtype, "16");

    if (on_deepspeed (r) && (jobs_find (r, "ds-bf16") || jobs_find (r, "ds-fp16")))
        return ST_OK; /* its file's word */
    if (jobs_is (r, "hf-mixed", "fp8"))
        return jobs_default (r, "precision", "fp8");
    if (!bf16 && !fp16 && jobs_chooses (said) && !dtype)
        notes_add (r->notes,
                   "dtype %.40s is not known here: estimated as if weights were in fp32",
                   said);
    if (!bf16 && !fp16)
        return jobs_default (r, "precision",
                             halves                     ? dtype
                             : jobs_true (r, "hf-tf32") ? "tf32"
                                                        : "fp32");
    if (on_deepspeed (r) || (halves && !sharded))
        return jobs_default (r, "precision", bf16 ? "bf16" : "fp16");
    return jobs_default (r, "precision", bf16 ? "bf16-mixed" : "fp16-mixed");
}

static enum status finish_kernels (struct jobs_reading *r)
{
    bool eager = !jobs_true (r, "flash-attention") &&
                 (jobs_is (r, "hf-attention", "eager") ||
                  jobs_is (r, "hf-attention", "disabled")); /* LLaMA-Factory's word */

    TRY (jobs_default (r, "attention", eager ? "eager" : "flash"));
    return jobs_default (r, "recompute",
                         jobs_true (r, "hf-checkpointing") ? "full" : "none");
}

/* Who names no optimizer gets fused AdamW from transformers of late 2025 on (training_args.py,
 * default_optim, with PyTorch 2.8), before it AdamW in many kernels. */
static enum status finish_optimizer (struct jobs_reading *r)
{
    bool known = jobs_find (r, "optim") != NULL;

    if (!known && on_deepspeed (r)) /* whose own is one kernel */
        return ST_OK;
    if (!known)
        notes_add (r->notes, "no optim is stated: adamw_torch_fused, as today's "
                             "transformers has it with PyTorch 2.8 and later");
    TRY (jobs_default (r, "optim", "adamw_torch_fused"));
    return jobs_default (r, "optimizer", jobs_value (r, "optim"));
}

/* What adapters leave frozen may be in 4 or 8 bits, in the words of a runs file.  Scales are
 * quantised again by default in Axolotl, whose word is "qlora", and in LLaMA-Factory, whose is
 * quantization_bit, not in TRL. */
static enum status finish_frozen (struct jobs_reading *r)
{
    long bits = jobs_int (r, "hf-bits", 0);
    bool q = jobs_value (r, "hf-adapter") &&
             strcasestr (jobs_value (r, "hf-adapter"), "qlora"),
         twice = jobs_find (r, "hf-double") ? jobs_true (r, "hf-double") : q || bits == 4;

    if (jobs_true (r, "hf-8bit") || bits == 8)
        return jobs_default (r, "frozen-weights", "bnb.int8");
    if (q || jobs_true (r, "hf-4bit") || bits == 4)
        return jobs_default (r, "frozen-weights", twice ? "nf4-dq" : "nf4");
    if (bits > 0)
        notes_add (r->notes, "frozen weights of %ld bits: estimated as if they had 16",
                   bits);
    return ST_OK;
}

static enum status finish_adapters (struct jobs_reading *r)
{
    const char *adapter = jobs_value (r, "hf-adapter");

    TRY (finish_frozen (r));
    if (jobs_true (r, "hf-lora") || (adapter && strcasestr (adapter, "lora")))
        return jobs_default (r, "use-lora", "true");
    jobs_forget (r, "lora-dropout");
    return ST_OK;
}

static enum status finish (struct jobs_reading *r)
{
    const char *model = jobs_value (r, "hf-model");
    long gpus = jobs_int (r, "gpus", 0), nodes = jobs_int (r, "nodes", 0);

    if (model && !r->has_model)
        jobs_preset (r, model);
    if (jobs_find (r, "gpus_per_node")) /* torchrun's and deepspeed's usual */
        TRY (jobs_default (r, "nodes", "1"));
    if (nodes > 0 && gpus >= nodes && gpus % nodes == 0) /* accelerate's processes */
        TRY (jobs_default_int (r, "gpus_per_node", gpus / nodes));
    TRY (finish_sharding (r));
    TRY (finish_precision (r));
    TRY (finish_kernels (r));
    TRY (finish_optimizer (r));
    TRY (finish_adapters (r));
    return jobs_default (r, "framework", on_deepspeed (r) ? "deepspeed" : "transformers");
}

const struct jobs_dialect jobs_trainer = {.name = "Hugging Face Trainer",
                                          .framework = "transformers",
                                          .like = &jobs_deepspeed,
                                          .keys = keys,
                                          .harmless = harmless,
                                          .normalise = normalise,
                                          .finish = finish};
