/* A plan's configuration as DeepSpeed's ds_config.json, and what the program itself must be told:
 * the file holds neither the model nor its sequence, nor where layers are recomputed.  Names:
 * deepspeed/runtime/config.py, docs/_pages/config-json.md. */
#include "jobs/jobs_private.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* ---- what DeepSpeed cannot be told ---- */

/* AutoEP replaces the experts of Hugging Face's models (docs/code-docs/source/moe.rst;
 * module_inject/auto_ep_config.py). */
static enum status check_degrees (const struct workload_plan *p, struct error *err)
{
    const struct workload_degrees *d = &p->config.deg;

    CANNOT (p->model.experts > 0 && d->etp != d->tp,
            "DeepSpeed's automatic tensor parallelism splits experts too; plan with "
            "--etp %d",
            d->tp);
    CANNOT (d->ep > 1 && d->tp * d->cp * d->pp > 1,
            "DeepSpeed's automatic expert parallelism is written beside data "
            "parallelism alone; plan with --ep 1, or --tp 1 --cp 1 --pp 1");
    CANNOT (d->ep > 1 && p->config.zero == 3,
            "DeepSpeed's automatic expert parallelism has no ZeRO 3; plan with --zero 2");
    CANNOT (d->cp > 1 && d->tp * d->pp > 1,
            "DeepSpeed's file knows sequence parallelism beside data parallelism "
            "alone; plan with --cp 1, or --tp 1 --pp 1");
    CANNOT (workload_heads_exchanged (&p->model, d, NULL) != ST_OK,
            "DeepSpeed's sequence parallelism divides heads, which are as wide; not "
            "those of %s by %d; plan with --cp 1",
            p->model.name, d->cp);
    CANNOT (d->pp > 1 && d->tp > 1,
            "DeepSpeed's automatic tensor parallelism has no pipeline; plan with --pp "
            "1 or --tp 1");
    CANNOT (p->config.sequence_parallel && d->tp > 1,
            "DeepSpeed's automatic tensor parallelism does not split the sequence; "
            "plan with --sequence-parallel off");
    return ST_OK;
}

bool jobs_deepspeed_splits (const struct workload_plan *p)
{
    int pp = p->config.deg.pp, *even = malloc ((size_t) pp * sizeof *even);
    bool same;

    if (!even)
        return false;
    same = workload_layers_split (&p->model, PARTITION_PARAMETERS, pp, even) &&
           memcmp (even, p->layers_per_stage, (size_t) pp * sizeof *even) == 0;
    free (even);
    return same;
}

static enum status check_pipeline (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;

    if (c->deg.pp == 1)
        return ST_OK;
    CANNOT (c->schedule != SCHEDULE_1F1B,
            "DeepSpeed has no %s schedule; plan with --schedule 1f1b",
            workload_schedule_name (c->schedule));
    CANNOT (c->zero >= 2,
            "DeepSpeed shards gradients (zero %d) without a pipeline alone; plan with "
            "--zero 1 or --pp 1",
            c->zero);
    return ST_OK;
}

static enum status check (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    enum workload_precision precision = p->job.precision;

    TRY (check_degrees (p, err));
    TRY (check_pipeline (p, err));
    CANNOT (workload_shard_copies (c) > 1,
            "DeepSpeed shards over all data-parallel ranks since it left MiCS out; "
            "plan with --shard 0");
    CANNOT (precision != PREC_BF16 && precision != PREC_FP16 && precision != PREC_FP32,
            "DeepSpeed's file has no %s; plan with --precision bf16",
            workload_precision_name (precision));
    CANNOT (c->offload == OFFLOAD_CHECKPOINTS,
            "DeepSpeed's file offloads no checkpoints of other programs' layers; plan "
            "with --offload optimizer");
    CANNOT (c->optimizer_bytes != 0 && c->optimizer_bytes != 12,
            "DeepSpeed's optimizer keeps 12 bytes a parameter, not %d; plan with "
            "--optimizer-bytes 12",
            c->optimizer_bytes);
    return ST_OK;
}

/* ---- the file ---- */

/* A fact as the member that the reader's table has for it. */
static void say (json_t *root, const char *fact, json_t *value)
{
    char key[JOBS_KEY_MAX], *name = key;
    json_t *at = root;

    jobs_key_of (&jobs_deepspeed, fact, key);
    for (char *dot; (dot = strchr (name, '.')); name = dot + 1) {
        *dot = '\0';
        at = json_object_in (at, name);
    }
    json_object_set_new (at, name, value);
}

static void say_size (json_t *root, const char *fact, double elements)
{
    if (elements > 0.0)
        say (root, fact, json_integer ((json_int_t) llround (elements)));
}

/* How many weights and gradients are there at once: the peak was estimated so. */
static void say_limits (json_t *root, const struct workload_plan *p,
                        const struct workload_profile *profile, bool overlap)
{
    double elements = profile->memory.bucket_bytes / (overlap ? 3.0 : 2.0) / 2.0;

    if (p->config.zero == 3) {
        say_size (root, "ds-live", profile->memory.live_params);
        say_size (root, "ds-bucket", profile->memory.reduced_params);
    } else if (p->config.zero > 0) {
        say_size (root, "ds-bucket", elements);
        say_size (root, "ds-gathered", elements);
    }
}

/* What the profile says that the file has a member for. */
static void say_facts (json_t *root, const struct workload_plan *p,
                       const struct workload_profile *profile)
{
    bool
        late = profile->reduces_late && (p->config.deg.pp > 1 || p->config.zero == 0),
        overlap = profile->time.dp_overlap > 0.0 && !late && !profile->reduces_bare,
        /* The engine sums bf16 gradients in bf16 under ZeRO alone (runtime/engine.py). */
        half = profile->memory.gradient_bytes <= 2.0 && p->config.zero > 0,
        wide = workload_reduced_bytes (&p->job, &p->config, profile) > 2.0;

    say (root, "overlap-comm", json_boolean (overlap));
    say_limits (root, p, profile, overlap);
    if (p->job.precision != PREC_FP32 && (wide || p->config.deg.cp > 1))
        say (root, p->config.deg.cp > 1 ? "ds-sequence-type" : "communication-data-type",
             json_string (wide ? "fp32" : workload_precision_name (p->job.precision)));
    if (p->job.precision == PREC_BF16)
        say (root, "ds-gradients", json_string (half ? "bf16" : "fp32"));
}

static json_t *config_json (const struct workload_plan *p,
                            const struct workload_profile *profile)
{
    const struct workload_config *c = &p->config;
    json_t *root = json_object ();

    say (root, "global_batch", json_integer (p->job.global_batch));
    say (root, "micro_batch", json_integer (c->micro_batch));
    say (root, "accumulation", json_integer (workload_microbatches (&p->job, c)));
    say (root, "zero", json_integer (c->zero));
    if (c->offload != OFFLOAD_NONE)
        say (root, "ds-optimizer-on", json_string ("cpu"));
    if (c->offload == OFFLOAD_ALL)
        say (root, "ds-weights-on", json_string ("cpu"));
    say (root, "ds-bf16", json_boolean (p->job.precision == PREC_BF16));
    say (root, "ds-fp16", json_boolean (p->job.precision == PREC_FP16));
    if (c->deg.tp > 1)
        say (root, "tp", json_integer (c->deg.tp));
    if (c->deg.pp > 1)
        say (root, "pp", json_integer (c->deg.pp));
    if (c->deg.cp > 1) {
        say (root, "dp", json_integer (c->deg.dp));
        say (root, "cp", json_integer (c->deg.cp));
    }
    if (c->deg.ep > 1) {
        say (root, "ds-experts", json_true ());
        say (root, "ep", json_integer (c->deg.ep));
    }
    say_facts (root, p, profile);
    return root;
}

static void write_beside (const struct workload_plan *p, struct text *beside)
{
    const struct workload_config *c = &p->config;
    char recompute[WORKLOAD_RECOMPUTE_TEXT];

    text_add (beside,
              "The file holds neither the model nor these, which the program sets:\n\n"
              "    sequence       %d tokens\n    recomputation  %s\n",
              p->job.seq, workload_recompute_text (c, recompute));
    if (c->deg.tp * c->deg.pp == 1)
        text_add (beside,
                  "    Trainer        Hugging Face's takes the file, too, with "
                  "--deepspeed and\n"
                  "                   --per_device_train_batch_size %d "
                  "--gradient_accumulation_steps %d%s:\n"
                  "                   it stops where these differ\n",
                  c->micro_batch, workload_microbatches (&p->job, c),
                  p->job.precision == PREC_BF16   ? " --bf16"
                  : p->job.precision == PREC_FP16 ? " --fp16"
                                                  : "");
    if (c->deg.pp > 1)
        text_add (beside,
                  jobs_deepspeed_splits (p)
                      ? "    pipeline       PipelineModule (num_stages=%d, "
                        "partition_method=\"parameters\")\n"
                      : "    pipeline       PlannedPipeline of pipeline.py, with the "
                        "plan's layers in %d stages\n",
                  c->deg.pp);
    if (c->deg.ep > 1)
        text_add (beside,
                  "    experts        AutoEP knows Mixtral, Qwen3-MoE, DeepSeek and "
                  "Llama 4; others need\n"
                  "                   its patterns\n");
    if (c->deg.cp > 1)
        text_add (beside,
                  "    sequence parallelism by Ulysses' attention, which divides the "
                  "heads by %d;\n"
                  "                   the Trainer needs accelerate's ParallelismConfig "
                  "(sp_backend=\"deepspeed\",\n"
                  "                   sp_size=%d, dp_shard_size=%d) as its "
                  "parallelism_config\n",
                  c->deg.cp, c->deg.cp, c->deg.dp);
}

enum status jobs_deepspeed_write (const struct workload_plan *p,
                                  const struct jobs_priced *by, struct text *out,
                                  struct text *beside, struct error *err)
{
    json_t *root;
    char *text;

    TRY (check (p, err));
    root = config_json (p, by->profile);
    text = json_dumped (root, JSON_INDENT (2));
    json_decref (root);
    if (!text)
        return err_nomem (err);
    text_add (out, "%s\n", text);
    free (text);
    write_beside (p, beside);
    return ST_OK;
}
