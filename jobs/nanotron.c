/* nanotron: YAML job files and the log's iteration lines (nanotron/config, logging). */
#include "jobs/jobs_private.h"

#include <string.h>

#define MODEL "model.model_config."
static const char keys[] =
    "parallelism.dp:dp parallelism.tp:tp parallelism.pp:pp "
    "parallelism.context_parallel_size:cp parallelism.expert_parallel_size:ep "
    "parallelism.pp_engine:schedule parallelism.tp_mode parallelism.recompute_layer "
    "tokens.micro_batch_size:micro_batch "
    "tokens.batch_accumulation_per_replica:accumulation tokens.sequence_length:seq "
    "optimizer.zero_stage:zero model.dtype " MODEL "hidden_size:hidden " MODEL
    "intermediate_size:ffn " MODEL "num_attention_heads:heads " MODEL
    "num_hidden_layers:layers " MODEL "num_key_value_heads:kv_heads " MODEL
    "vocab_size:vocab " MODEL "tie_word_embeddings " MODEL
    "moe_config.num_experts:num-experts " MODEL "moe_config.top_k:moe-router-topk " MODEL
    "moe_config.moe_intermediate_size:moe-ffn-hidden-size "
    "optimizer.optimizer_factory.name:optimizer global-batch-size:global_batch";

static const char harmless[] =
    "checkpoints. data_stages. data. general. lighteval logging. profiler tokenizer. "
    "metrics_logging s3_upload optimizer.accumulate_grad_in_fp32 optimizer.clip_grad "
    "optimizer.learning_rate optimizer.optimizer_factory optimizer.weight_decay "
    "model.init_method model.ddp_bucket model.make_vocab parallelism.tp_linear_async "
    "parallelism.tp_recompute_allgather tokens.train_steps tokens.limit "
    "tokens.val_check " MODEL "bos " MODEL "eos " MODEL "pad " MODEL "initializer " MODEL
    "max_position " MODEL "rms_norm_eps " MODEL "rope " MODEL "use_cache " MODEL
    "pretraining_tp " MODEL "sliding_window_size " MODEL "flex " MODEL "z_loss " MODEL
    "no_rope " MODEL "_ " MODEL "is_ " MODEL "attention_bias " MODEL "hidden_act ";

static void finish (struct jobs_reading *r)
{
    const char *dtype = jobs_value (r, "model.dtype");

    if (jobs_is (r, "schedule", "afab"))
        jobs_override (r, "schedule", "gpipe");
    jobs_default_flag (r, "sp",
                       jobs_is (r, "parallelism.tp_mode", "REDUCE_SCATTER") &&
                           jobs_int (r, "tp", 1) > 1);
    jobs_default (r, "precision",
                  dtype && strstr (dtype, "float8")         ? "fp8"
                  : dtype && strstr (dtype, "float32")      ? "fp32"
                  : dtype && strcmp (dtype, "float16") == 0 ? "fp16"
                                                            : "bf16");
    jobs_defaults (r, "parallelism.recompute_layer?recompute=full recompute=none zero=0 "
                      "framework=nanotron");
    if (jobs_find (r, "layers") && !r->has_model) {
        jobs_defaults (r, "swiglu=true normalization=RMSNorm disable-bias-linear=true "
                          "position-embedding-type=rope transformer-impl=nanotron");
        jobs_default_flag (r, "untie-embeddings-and-output-weights",
                           !jobs_true (r, MODEL "tie_word_embeddings"));
    }
}

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double ms;

    if (strstr (line, "Peak reserved") || strstr (line, "Peak allocated")) {
        jobs_peak (line, "Peak reserved", 1048576.0, &run->reserved_bytes);
        jobs_peak (line, "Peak allocated", 1048576.0, &run->allocated_bytes);
        return true;
    }
    if (!jobs_after (line, "elapsed_time_per_iteration_ms", &ms))
        return false;
    if (!(run = jobs_iteration (r, run, line, "iteration:")))
        return true;
    jobs_sample (r, &run->steps_s, ms / 1e3);
    jobs_after (line, "model_tflops_per_gpu", &run->tflops);
    jobs_printed_after (r, line, "global_batch_size", "global-batch-size");
    jobs_peak (line, "cuda_max_memory_reserved", 1, &run->reserved_bytes);
    return true;
}

const struct jobs_dialect jobs_nanotron = {.name = "nanotron",
                                           .framework = "nanotron",
                                           .keys = keys,
                                           .harmless = harmless,
                                           .reserved = true,
                                           .finish = finish,
                                           .log = log_line};
