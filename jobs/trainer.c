/* Hugging Face's Trainer and what is built on it: options of a script, YAML or JSON with the names of
 * its TrainingArguments (transformers, training_args.py), of accelerate launch, torchrun, TRL, PEFT,
 * LLaMA-Factory and Axolotl. */
#include "jobs/jobs_private.h"

#include <stdlib.h>
#include <string.h>

static const char keys[] =
    "per-device-train-batch-size:micro_batch micro-batch-size:micro_batch "
    "gradient-accumulation-steps:accumulation bf16 fp16 tf32:hf-tf32 "
    "mixed-precision:hf-mixed torch-dtype:hf-dtype dtype:hf-dtype optim "
    "gradient-checkpointing:hf-checkpointing fsdp:hf-fsdp "
    "fsdp-sharding-strategy:hf-fsdp use-fsdp:hf-sharded deepspeed "
    "model-name-or-path:hf-model base-model:hf-model model:hf-model max-seq-length:seq "
    "model-max-length:seq max-length:seq cutoff-len:seq sequence-len:seq block-size:seq "
    "nproc-per-node:gpus_per_node nnodes:nodes num-processes:gpus num-machines:nodes "
    "num-gpus:gpus_per_node attn-implementation:hf-attention use-peft:hf-lora "
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
    "fsdp-use fsdp-sync fsdp-version num-cpu dynamo- ENV- prediction- group-by length- "
    "plot- val-set datasets= wandb- sample-pack pad-to lazy- conv-";

static void normalise (char *key)
{
    for (; *key; key++)
        if (*key == '_')
            *key = '-';
}

static bool on_deepspeed (const struct jobs_reading *r)
{
    bool on = jobs_find (r, "deepspeed") != NULL;

    for (int i = 0; i < r->n_files; i++)
        on = on || r->of_file[i] == &jobs_deepspeed;
    return on;
}

/* What is sharded: FSDP's word, or Accelerate's number of it (utils/constants.py); hybrid sharding is
 * within nodes. */
static enum status finish_sharding (struct jobs_reading *r)
{
    static const struct {
        const char *word, *number, *zero;
    } known[] = {{"hybrid_shard_zero2", "5", "2"},
                 {"hybrid_shard", "4", "3"},
                 {"shard_grad_op", "2", "2"},
                 {"no_shard", "3", "0"},
                 {"full_shard", "1", "3"}};
    const char *said = jobs_value (r, "hf-fsdp");

    if (!said && jobs_true (r, "hf-sharded"))
        said = "full_shard";
    for (size_t i = 0; i < COUNT_OF (known) && said && *said; i++)
        if (strcasestr (said, known[i].word) || strcmp (said, known[i].number) == 0) {
            TRY (jobs_default (r, "zero", known[i].zero));
            if (known[i].word[0] == 'h' && jobs_find (r, "gpus_per_node"))
                TRY (jobs_default (r, "shard", jobs_value (r, "gpus_per_node")));
        }
    if (said && strcasestr (said, "offload"))
        TRY (jobs_default (r, "offload", "all"));
    if (jobs_true (r, "hf-fsdp")) /* "true" alone, or a word that is none of these */
        TRY (jobs_default (r, "zero", "3"));
    return on_deepspeed (r) ? ST_OK : jobs_default (r, "zero", "0");
}

/* Weights are in fp32 under mixed precision, which FSDP makes of 16-bit ones (accelerate,
 * accelerator.py, "Upcasted low precision parameters"); DeepSpeed has states of its own. */
static enum status finish_precision (struct jobs_reading *r)
{
    const char *dtype = jobs_value (r, "hf-dtype"), *mixed = jobs_value (r, "hf-mixed");
    bool bf16 = jobs_true (r, "bf16") || (mixed && strcmp (mixed, "bf16") == 0),
         fp16 = jobs_true (r, "fp16") || (mixed && strcmp (mixed, "fp16") == 0);
    bool sharded = jobs_int (r, "zero", 0) > 0, halves = dtype && strstr (dtype, "16");

    if (on_deepspeed (r) && (jobs_find (r, "ds-bf16") || jobs_find (r, "ds-fp16")))
        return ST_OK; /* its file's word */
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
    bool eager = jobs_is (r, "hf-attention", "eager");

    TRY (jobs_default (r, "attention", eager ? "eager" : "flash"));
    return jobs_default (r, "recompute",
                         jobs_true (r, "hf-checkpointing") ? "full" : "none");
}

/* Who names no optimizer gets fused AdamW from transformers of late 2025 on (training_args.py,
 * default_optim, with PyTorch 2.8), before it AdamW in many kernels. */
static enum status finish_optimizer (struct jobs_reading *r)
{
    if (on_deepspeed (r)) /* whose own is one kernel */
        return ST_OK;
    if (!jobs_find (r, "optim"))
        notes_add (r->notes, "no optim is stated: adamw_torch_fused, as today's "
                             "transformers has it with PyTorch 2.8 and later");
    TRY (jobs_default (r, "optim", "adamw_torch_fused"));
    return jobs_default (r, "optimizer", jobs_value (r, "optim"));
}

static enum status finish_adapters (struct jobs_reading *r)
{
    const char *adapter = jobs_value (r, "hf-adapter");

    if (jobs_true (r, "hf-lora") || (adapter && strcasestr (adapter, "lora")))
        return jobs_default (r, "use-lora", "true");
    jobs_forget (r, "lora-dropout");
    return ST_OK;
}

static enum status finish (struct jobs_reading *r)
{
    const char *model = jobs_value (r, "hf-model");

    if (model && !r->has_model)
        jobs_preset (r, model);
    if (jobs_find (r, "gpus_per_node")) /* torchrun's and deepspeed's usual */
        TRY (jobs_default (r, "nodes", "1"));
    TRY (finish_sharding (r));
    TRY (finish_precision (r));
    TRY (finish_kernels (r));
    TRY (finish_optimizer (r));
    TRY (finish_adapters (r));
    return jobs_default (r, "framework", on_deepspeed (r) ? "deepspeed" : "transformers");
}

const struct jobs_dialect jobs_trainer = {.name = "Hugging Face Trainer",
                                          .framework = "transformers",
                                          .keys = keys,
                                          .harmless = harmless,
                                          .normalise = normalise,
                                          .finish = finish};
