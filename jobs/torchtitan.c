/* TorchTitan: TOML job files and the log's step lines (torchtitan/config, components/metrics.py). */
#include "jobs/jobs_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char keys[] =
    "model.name:titan-model model.flavor:titan-flavor model.converters:titan-converters "
    "training.local_batch_size:micro_batch training.batch_size:micro_batch "
    "training.global_batch_size:titan-batch training.seq_len:seq "
    "training.mixed_precision_param "
    "parallelism.data_parallel_replicate_degree:titan-replicate "
    "training.data_parallel_replicate_degree:titan-replicate "
    "parallelism.data_parallel_shard_degree:titan-shard "
    "training.data_parallel_shard_degree:titan-shard "
    "training.data_parallel_degree:titan-shard parallelism.tensor_parallel_degree:tp "
    "training.tensor_parallel_degree:tp parallelism.pipeline_parallel_degree:pp "
    "experimental.pipeline_parallel_degree:pp "
    "parallelism.pipeline_parallel_schedule:titan-schedule "
    "experimental.pipeline_parallel_schedule:titan-schedule "
    "parallelism.pipeline_parallel_microbatch_size:titan-micro-batch "
    "parallelism.pipeline_parallel_layers_per_stage "
    "parallelism.context_parallel_degree:cp experimental.context_parallel_degree:cp "
    "parallelism.expert_parallel_degree:ep "
    "parallelism.expert_tensor_parallel_degree:expert-tensor-parallel-size "
    "activation_checkpoint.mode activation_checkpoint.selective_ac_option "
    "float8.enable_float8_linear:titan-float8 nnodes:nodes nproc_per_node:gpus_per_node "
    "world-size:gpus";

static const char harmless[] =
    "job. profiling. metrics. checkpoint. optimizer. lr_scheduler. comm. validation. "
    "float8. memory_estimation. fault_tolerance. experimental.custom model.hf_assets "
    "model.tokenizer model.norm_type model.print training.dataset training.steps "
    "training.max_norm training.seed training.gc_freq training.deterministic "
    "training.warmup training.mixed_precision_reduce training.compile compile. debug. "
    "activation_checkpoint.per_op activation_checkpoint.early "
    "parallelism.enable_async_tensor_parallel parallelism.disable_loss_parallel "
    "parallelism.fsdp_reshard parallelism.enable_compiled *rotate_method "
    "experimental.enable_async parallelism.module_fqns";

/* "llama3" of flavour "8B" is the preset llama-3-8b. */
static bool find_model (struct jobs_reading *r)
{
    const char *name = jobs_value (r, "titan-model"),
               *flavor = jobs_value (r, "titan-flavor");
    char both[128], *slash;

    if (!name || !flavor)
        return false;
    snprintf (both, sizeof both, "%.60s-%.60s", name, flavor);
    if ((slash = strchr (both, '_'))) /* deepseek_v3 */
        *slash = '-';
    if (jobs_preset (r, both))
        return true;
    notes_add (r->notes,
               "model %.40s of flavor %.40s is no preset: give its config.json beside",
               name, flavor);
    return false;
}

static enum status finish_schedule (struct jobs_reading *r)
{
    static const struct {
        const char *word, *schedule;
        bool chunks;
    } words[] = {{"Interleaved1F1B", "1f1b-interleaved", true},
                 {"InterleavedZeroBubble", "zb1p", false},
                 {"ZBVZeroBubble", "zbv", false},
                 {"1F1B", "1f1b", false},
                 {"GPipe", "gpipe", false}};
    const char *said = jobs_value (r, "titan-schedule");

    if (!said || jobs_int (r, "pp", 1) <= 1)
        return ST_OK;
    for (size_t i = 0; i < COUNT_OF (words); i++)
        if (strcasecmp (said, words[i].word) == 0) {
            if (words[i].chunks)
                TRY (jobs_default (r, "vpp", "2"));
            return jobs_default (r, "schedule", words[i].schedule);
        }
    notes_add (r->notes, "the schedule %.60s is not known: 1F1B is taken", said);
    return ST_OK;
}

/* Data-parallel degrees, which may be -1: the rest. */
static enum status finish_sharding (struct jobs_reading *r)
{
    const char *shard = jobs_value (r, "titan-shard");
    long replicate = jobs_int (r, "titan-replicate", 1),
         n = jobs_int (r, "titan-shard", 0);

    if (replicate > 1)
        notes_add (
            r->notes,
            "weights are sharded inside %ld replicas; the estimate shards them over "
            "all",
            replicate);
    if (n > 0 && replicate > 0 && n * replicate < 1 << 24)
        TRY (jobs_default_int (r, "dp", n * replicate));
    return jobs_default (r, "zero", shard && strcmp (shard, "1") == 0 ? "0" : "3");
}

static enum status finish (struct jobs_reading *r)
{
    const char *mode = jobs_value (r, "activation_checkpoint.mode"),
               *converters = jobs_value (r, "titan-converters"),
               *param = jobs_value (r, "training.mixed_precision_param");
    long pipeline = jobs_int (r, "pp", 1), local = jobs_int (r, "micro_batch", 0);
    bool fp8 =
        (converters && strstr (converters, "float8")) || jobs_true (r, "titan-float8");

    if (!r->has_model)
        find_model (r);
    TRY (finish_schedule (r));
    TRY (finish_sharding (r));
    if (pipeline > 1 && local > 0) { /* a rank's batch is cut for the pipeline */
        jobs_forget (r, "micro_batch");
        TRY (jobs_default_int (r, "micro_batch", jobs_int (r, "titan-micro-batch", 1)));
        TRY (jobs_default_int (r, "accumulation",
                               local / (jobs_int (r, "micro_batch", 1) > 0
                                            ? jobs_int (r, "micro_batch", 1)
                                            : 1)));
    }
    if (jobs_int (r, "titan-batch", 0) > 0) /* -1: one local batch a rank */
        TRY (jobs_default_int (r, "global_batch", jobs_int (r, "titan-batch", 0)));
    TRY (jobs_default (r, "accumulation", "1"));
    TRY (jobs_default (r, "recompute", mode ? mode : "selective"));
    TRY (jobs_default (r, "sp", jobs_int (r, "tp", 1) > 1 ? "true" : "false"));
    TRY (jobs_default (r, "precision",
                       fp8                                  ? "fp8"
                       : param && strstr (param, "float32") ? "fp32"
                                                            : "bf16"));
    return jobs_default (r, "framework", "torchtitan");
}

/* ---- the log ---- */

/* "device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]": their product is the job's GPUs. */
static void take_mesh (struct jobs_reading *r, struct jobs_run *run, const char *line,
                       int number)
{
    static const struct {
        const char *name, *key;
    } known[] = {{"'tp'", "parallelism.tensor_parallel_degree"},
                 {"'pp'", "parallelism.pipeline_parallel_degree"},
                 {"'cp'", "parallelism.context_parallel_degree"}};
    const char *name = strstr (line, "mesh with ["),
               *size = name ? strstr (name, "], [") : NULL;
    double gpus = 1;

    if (!size)
        return;
    for (size += 4, name += 11; *size && *size != ']'; size++) {
        char *end;
        double x = strtod (size, &end);

        if (end == size || !(x >= 1 && x < 1 << 24))
            return;
        gpus *= x;
        for (size_t i = 0; i < COUNT_OF (known); i++)
            if (strncmp (name, known[i].name, strlen (known[i].name)) == 0)
                jobs_printed (r, run, number, known[i].key, x);
        name += strcspn (name, ",]");
        name += strspn (name, ", ");
        size = end;
        if (*size == ']')
            break;
    }
    jobs_printed (r, run, number, "world-size", gpus);
}

static void take_batch (struct jobs_reading *r, struct jobs_run *run, const char *line,
                        int number)
{
    double x;

    if (jobs_after (line, "local batch size", &x))
        jobs_printed (r, run, number, "training.local_batch_size", x);
    if (jobs_after (line, "global batch size", &x))
        jobs_printed (r, run, number, "training.global_batch_size", x);
    if (jobs_after (line, "sequence length", &x))
        jobs_printed (r, run, number, "training.seq_len", x);
}

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line,
                      int number)
{
    double tokens, step, x;

    if (strstr (line, "device mesh with [")) {
        take_mesh (r, run, line, number);
        return true;
    }
    if (strstr (line, "Training starts at step")) {
        take_batch (r, run, line, number);
        return true;
    }
    if (!jobs_after (line, " tps:", &tokens) || !jobs_after (line, "step:", &step))
        return false;
    if (!(run = jobs_iteration (r, run, (long) step)))
        return true;
    if (!jobs_sample (&run->tokens_per_s, &run->n_tokens, tokens))
        r->lost = err_nomem (r->err);
    if (jobs_after (line, "memory:", &x))
        run->reserved_bytes = fmax (run->reserved_bytes, x * 1073741824.0);
    if (jobs_after (line, "tflops:", &x))
        run->tflops = x;
    if (jobs_after (line, "mfu:", &x))
        run->mfu = x / 100;
    return true;
}

const struct jobs_dialect jobs_torchtitan = {.name = "TorchTitan",
                                             .framework = "torchtitan",
                                             .keys = keys,
                                             .harmless = harmless,
                                             .reserved = true,
                                             .finish = finish,
                                             .log = log_line};
