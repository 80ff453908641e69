/* TorchTitan: TOML job files and the log's step lines (torchtitan/config,
 * components/metrics.py). */
#include "jobs/jobs_private.h"

#include <stdlib.h>
#include <string.h>

static const char keys[] =
    "model.name:titan-model model.flavor:titan-flavor model.converters:titan-converters "
    "training.local_batch_size:micro_batch training.batch_size:micro_batch "
    "training.global_batch_size:titan-batch training.seq_len:seq "
    "training.mixed_precision_param training.mixed_precision_reduce:titan-reduce "
    "training.enable_cpu_offload:titan-offload "
    "compile.enable:titan-compile training.compile:titan-compile "
    "parallelism.enable_async_tensor_parallel:tp-comm-overlap "
    "experimental.enable_async_tensor_parallel:tp-comm-overlap "
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
    "parallelism.pipeline_parallel_layers_per_stage:titan-part-layers "
    "parallelism.pipeline_parallel_first_stage_less_layers:titan-first-less "
    "parallelism.pipeline_parallel_last_stage_less_layers:titan-last-less "
    "parallelism.module_fqns_per_model_part:titan-parts "
    "parallelism.fsdp_reshard_after_forward:titan-reshard "
    "parallelism.context_parallel_degree:cp experimental.context_parallel_degree:cp "
    "parallelism.expert_parallel_degree:ep "
    "parallelism.expert_tensor_parallel_degree:expert-tensor-parallel-size "
    "activation_checkpoint.mode activation_checkpoint.selective_ac_option "
    "float8.enable_float8_linear:titan-float8 nnodes:nodes nproc_per_node:gpus_per_node "
    "world-size:gpus optimizer.name:optimizer";

static const char harmless[] =
    "job. profiling. metrics. checkpoint. optimizer. lr_scheduler. comm. validation. "
    "float8. memory_estimation. fault_tolerance. experimental.custom model.hf_assets "
    "model.tokenizer model.norm_type model.print training.dataset training.steps "
    "training.max_norm training.seed training.gc_freq training.deterministic "
    "training.warmup compile. debug. activation_checkpoint.per_op "
    "activation_checkpoint.early parallelism.disable_loss_parallel "
    "parallelism.enable_compiled *rotate_method quantize.";

const struct jobs_flavor jobs_titan_flavors[] = {
    {"llama3", "8B", "llama-3-8b"},
    {"llama3", "70B", "llama-3-70b"},
    {"llama3", "405B", "llama-3-405b"},
    {"llama4", "17bx16e", "llama-4-scout"},
    {"qwen3", "8B", "qwen3-8b"},
    {"qwen3", "14B", "qwen3-14b"},
    {"qwen3", "32B", "qwen3-32b"},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
    {"deepseek_v3", "236B", "deepseek-v2"},
    {"deepseek_v3", "671B", "deepseek-v3"},
    {"gpt_oss", "20b", "gpt-oss-20b"},
    {"gpt_oss", "120b", "gpt-oss-120b"},
    {NULL, NULL, NULL}};

/* A known flavor, or one of which the two words or the second alone name a preset. */
static void find_model (struct jobs_reading *r)
{
    const char *name = jobs_value (r, "titan-model"),
               *flavor = jobs_value (r, "titan-flavor");
    char both[128];

    if (!name || !flavor)
        return;
    for (const struct jobs_flavor *f = jobs_titan_flavors; f->preset; f++)
        if (strcasecmp (f->model, name) == 0 && strcasecmp (f->flavor, flavor) == 0) {
            jobs_preset (r, f->preset);
            return;
        }
    snprintf (both, sizeof both, "%.60s-%.60s", name, flavor);
    if (!jobs_preset (r, both) && !jobs_preset (r, flavor))
        notes_add (
            r->notes,
            "model %.40s of flavor %.40s is no preset: give its config.json beside", name,
            flavor);
}

static const struct {
    const char *word, *schedule; /* PyTorch's, a row's */
    enum workload_schedule s;
    bool chunks;
} schedules[] = {{"1F1B", "1f1b", SCHEDULE_1F1B, false},
                 {"GPipe", "gpipe", SCHEDULE_GPIPE, false},
                 {"Interleaved1F1B", "1f1b-interleaved", SCHEDULE_INTERLEAVED, true},
                 {"ZBVZeroBubble", "zbv", SCHEDULE_ZBV, false},
                 {"DualPipeV", "dualpipev", SCHEDULE_DUALPIPEV, false},
                 /* of two chunks and more, which the estimate has with one alone */
                 {"InterleavedZeroBubble", "zb1p", SCHEDULES, false}};

const char *jobs_titan_schedule (enum workload_schedule s)
{
    for (size_t i = 0; i < COUNT_OF (schedules); i++)
        if (schedules[i].s == s)
            return schedules[i].word;
    return NULL;
}

static void finish_schedule (struct jobs_reading *r)
{
    const char *said = jobs_value (r, "titan-schedule");
    size_t i = 0;

    if (!said || jobs_int (r, "pp", 1) <= 1)
        return;
    while (i < COUNT_OF (schedules) && strcasecmp (said, schedules[i].word) != 0)
        i++;
    if (i == COUNT_OF (schedules)) {
        notes_add (r->notes, "the schedule %.60s is not known: 1F1B is taken", said);
        return;
    }
    if (schedules[i].chunks)
        jobs_default (r, "vpp", "2");
    jobs_default (r, "schedule", schedules[i].schedule);
}

/* ---- the stages ---- */

#define PARTS_MAX 1024

/* "tok_embeddings layers.0, layers.1 layers.2": layers of each part.  @return how many parts */
static int parts_by_name (const char *s, int part[PARTS_MAX])
{
    static const char layer[] = "layers.";
    int n = 1;

    part[0] = 0;
    for (; *s; s++)
        if (*s == ',' && n < PARTS_MAX)
            part[n++] = 0;
        else if (strncmp (s, layer, sizeof layer - 1) == 0)
            part[n - 1]++;
    return n;
}

/* As equal as can be, embedding and head counted as layers; earlier ones have one more.
 * @return how many parts; 0: not said, or none such */
static int parts_by_rule (const struct jobs_reading *r, int part[PARTS_MAX])
{
    long layers = jobs_layers (r, 0), each = jobs_int (r, "titan-part-layers", 0),
         first = jobs_int (r, "titan-first-less", 1),
         last = jobs_int (r, "titan-last-less", 1), pp = jobs_int (r, "pp", 1), all, n;

    if (layers < 1 || each < 1 || layers > 1 << 20 || first > layers || last > layers)
        return 0;
    all = layers + first + last;
    n = (all + each - 1) / each;
    n = pp > 0 ? (n + pp - 1) / pp * pp : n; /* as many on every stage */
    if (n < 2 || n > PARTS_MAX || n > all)
        return 0;
    for (long i = 0; i < n; i++)
        part[i] = (int) (all / n + (i < all % n));
    part[0] -= (int) first;
    part[n - 1] -= (int) last;
    return part[0] < 0 || part[n - 1] < 0 ? 0 : (int) n;
}

static void finish_stages (struct jobs_reading *r)
{
    const char *named = jobs_value (r, "titan-parts");
    long pp = jobs_int (r, "pp", 1);
    int part[PARTS_MAX],
        n = named ? parts_by_name (named, part) : parts_by_rule (r, part);

    if (pp < 2 || (n == 0 && !jobs_find (r, "titan-part-layers")))
        return;
    if (n == 0 || n % pp != 0 || !jobs_stages_filled (part, n, pp)) {
        notes_add (r->notes,
                   "the layers of the model's parts make no %ld stages: they are "
                   "estimated as even ones",
                   pp);
        return;
    }
    jobs_partition (r, part, n);
    if (n > pp)
        jobs_default_int (r, "vpp", n / pp);
}

/* Data-parallel degrees, which may be -1: the rest. */
static void finish_sharding (struct jobs_reading *r)
{
    const char *shard = jobs_value (r, "titan-shard"),
               *reshard = jobs_value (r, "titan-reshard");
    long replicate = jobs_int (r, "titan-replicate", 1),
         n = jobs_int (r, "titan-shard", 0);
    bool whole = shard && strcmp (shard, "1") == 0 && jobs_int (r, "cp", 1) <= 1;

    if (replicate > 1 && !whole)
        jobs_default_int (r, "num-distributed-optimizer-instances", replicate);
    if (n > 0 && replicate > 0 && n * replicate < 1 << 24)
        jobs_default_int (r, "dp", n * replicate);
    /* Weights that stay gathered until backward are those of ZeRO 2. */
    jobs_default (r, "zero",
                  whole                                       ? "0"
                  : reshard && strcmp (reshard, "never") == 0 ? "2"
                                                              : "3");
}

/* "selective" is of operations, or of every so many layers, which are recomputed whole. */
static void finish_recompute (struct jobs_reading *r)
{
    const char *mode = jobs_value (r, "activation_checkpoint.mode");
    long every = jobs_int (r, "activation_checkpoint.selective_ac_option", 0),
         layers = jobs_layers (r, 0), pp = jobs_int (r, "pp", 1),
         each = every > 0 && pp > 0 ? layers / pp / every : 0;
    char text[32];

    if (mode && strcasecmp (mode, "selective") == 0 && each >= 1) {
        snprintf (text, sizeof text, "full:%ld", each);
        mode = every == 1 ? "full" : text;
    }
    jobs_default (r, "recompute", mode ? mode : "selective");
}

/* Kernels and communication that are off unless asked for. */
static void finish_facts (struct jobs_reading *r)
{
    const char *reduce = jobs_value (r, "titan-reduce");

    jobs_defaults (r, "titan-offload?offload=all titan-compile?fused-norm=true "
                      "titan-compile?fused-mlp=true fused-norm=false fused-mlp=false "
                      "tp-comm-overlap=false");
    jobs_default_flag (r, "grad-reduce-in-bf16",
                       reduce && strcmp (reduce, "bfloat16") == 0);
}

/* A rank's batch, which is cut for the pipeline; -1 for all ranks: one batch a rank. */
static void finish_batch (struct jobs_reading *r)
{
    long local = jobs_int (r, "micro_batch", 0), all = jobs_int (r, "titan-batch", 0),
         micro = jobs_int (r, "titan-micro-batch", 1);

    if (jobs_int (r, "pp", 1) > 1 && local > 0) {
        jobs_forget (r, "micro_batch");
        jobs_default_int (r, "micro_batch", micro);
        jobs_default_int (r, "accumulation", local / (micro > 0 ? micro : 1));
    }
    if (all > 0)
        jobs_default_int (r, "global_batch", all);
    jobs_default (r, "accumulation", "1");
}

static void finish (struct jobs_reading *r)
{
    const char *converters = jobs_value (r, "titan-converters"),
               *param = jobs_value (r, "training.mixed_precision_param");
    bool fp8 =
        (converters && strstr (converters, "float8")) || jobs_true (r, "titan-float8");

    if (!r->has_model)
        find_model (r);
    finish_stages (r);
    finish_schedule (r);
    finish_sharding (r);
    /* Experts alone are not split by tensor parallelism, unless it is said. */
    if (jobs_int (r, "ep", 1) > 1)
        jobs_default (r, "expert-tensor-parallel-size", "1");
    else
        jobs_forget (r, "expert-tensor-parallel-size");
    finish_batch (r);
    finish_recompute (r);
    finish_facts (r);
    jobs_default_flag (r, "sp", jobs_int (r, "tp", 1) > 1);
    jobs_default (r, "precision",
                  fp8                                  ? "fp8"
                  : param && strstr (param, "float32") ? "fp32"
                                                       : "bf16");
    jobs_default (r, "framework", "torchtitan");
}

/* ---- the log ---- */

/* "device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]": their product is the job's GPUs. */
static void take_mesh (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    static const struct {
        const char *name, *key;
    } known[] = {{"'tp'", "parallelism.tensor_parallel_degree"},
                 {"'pp'", "parallelism.pipeline_parallel_degree"},
                 {"'cp'", "parallelism.context_parallel_degree"}};
    const char *name = strstr (line, "mesh with ["),
               *size = name ? strstr (name, "], [") : NULL;
    double gpus = 1;

    if (!size || !jobs_starting (r, run))
        return;
    for (size += 4, name += 11; *size && *size != ']'; size++) {
        char *end;
        double x = strtod (size, &end);

        if (end == size || !(x >= 1 && x < 1 << 24))
            return;
        gpus *= x;
        for (size_t i = 0; i < COUNT_OF (known); i++)
            if (strncmp (name, known[i].name, strlen (known[i].name)) == 0)
                jobs_printed (r, known[i].key, x);
        name += strcspn (name, ",]");
        name += strspn (name, ", ");
        size = end;
        if (*size == ']')
            break;
    }
    jobs_printed (r, "world-size", gpus);
}

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double tokens, step, x;

    if (strstr (line, "device mesh with [")) {
        take_mesh (r, run, line);
        return true;
    }
    if (strstr (line, "Training starts at step")) {
        jobs_printed_after (r, line, "local batch size", "training.local_batch_size");
        jobs_printed_after (r, line, "global batch size", "training.global_batch_size");
        jobs_printed_after (r, line, "sequence length", "training.seq_len");
        return true;
    }
    if (!jobs_after (line, " tps:", &tokens) || !jobs_after (line, "step:", &step))
        return false;
    if (strstr (line, "validat") || /* forward alone */
        !(run = jobs_iteration (r, run, line, "step:")))
        return true;
    jobs_sample (r, &run->tokens_per_s, tokens);
    jobs_peak (line, "memory:", 1073741824.0, &run->reserved_bytes);
    jobs_after (line, "tflops:", &run->tflops);
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
