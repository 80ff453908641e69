/* DeepSpeed: ds_config.json, the configuration and the throughput that its engine prints, and the
 * lines of Hugging Face's Trainer. */
#include "jobs/jobs_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DEPTH_MAX 32 /* of what is read, inside each other */

static const char keys[] =
    "train_batch_size:global_batch train_micro_batch_size_per_gpu:micro_batch "
    "gradient_accumulation_steps:accumulation zero_optimization.stage:zero "
    "zero_optimization_stage:zero zero_stage:zero bf16.enabled:ds-bf16 "
    "bfloat16.enabled:ds-bf16 bfloat16_enabled:ds-bf16 fp16.enabled:ds-fp16 "
    "fp16_enabled:ds-fp16 world_size:gpus num_gpus:gpus_per_node num_nodes:nodes "
    "pipeline.stages:pp tensor_parallel.autotp_size:tp data_parallel_size:dp "
    "zero_optimization.mics_shard_size:ds-shard mics_shard_size:ds-shard "
    "sequence_parallel_size:cp zero_optimization.overlap_comm:overlap-comm "
    "data_types.grad_accum_dtype:ds-gradients "
    "communication_data_type:communication-data-type "
    "seq_parallel_communication_data_type:ds-sequence-type "
    "optimizer.type:optimizer "
    "zero_optimization.offload_optimizer.device:ds-optimizer-on "
    "zero_optimization.offload_param.device:ds-weights-on "
    "zero_optimization.offload_optimizer.ratio:ds-ratio "
    "zero_optimization.zero_hpz_partition_size:ds-copy "
    "zero_optimization.stage3_max_live_parameters:ds-live "
    "zero_optimization.reduce_bucket_size:ds-bucket "
    "zero_optimization.allgather_bucket_size:ds-gathered "
    "expert_parallel.enabled:ds-experts expert_parallel.autoep_size:ep "
    "expert_parallel.expert_tensor_parallel_size:expert-tensor-parallel-size";

static const char harmless[] =
    "optimizer. scheduler. steps_per_print wall_clock gradient_clipping fp16. bf16. "
    "wandb tensorboard csv_monitor comet monitor flops_prof comms_logger dump_state "
    "prescale memory_breakdown aio. checkpoint "
    "zero_allow_untested zero_force_ds_cpu_optimizer "
    "zero_optimization.contiguous_gradients zero_optimization.allgather "
    "zero_optimization.reduce zero_optimization.sub_group_size "
    "zero_optimization.mics_hierarchical zero_optimization.stage3_ "
    "zero_optimization.round_robin autotuning seed "
    "activation_checkpointing.profile activation_checkpointing.synchronize "
    "activation_checkpointing.contiguous activation_checkpointing.number data_efficiency "
    "curriculum elasticity "
    "zero_optimization.load_from zero_optimization.ignore_unused gradient_pre "
    "expert_parallel.preset expert_parallel.load "
    "zero_optimization.gather_16bit zero_optimization.offload_optimizer.pin "
    "zero_optimization.offload_param.pin";

static enum status say_value (struct jobs_reading *r, const json_t *v, const char *way,
                              int depth);

/* A scalar's text; "auto" is the program's business but for buckets.
 * @return NULL: it says nothing */
static const char *scalar_text (const json_t *v, const char *way, char number[32])
{
    const char *word = json_string_value (v);

    if (word)
        return strcmp (word, "auto") != 0 || strstr (way, "reduce_bucket_size") ? word
                                                                                : NULL;
    if (json_is_boolean (v))
        return json_is_true (v) ? "true" : "false";
    if (!json_is_number (v))
        return NULL;
    snprintf (number, 32, "%.12g", json_number_value (v));
    return number;
}

/* A list of words alone is one value, "[a, b]", as in YAML. */
static enum status say_list (struct jobs_reading *r, const json_t *list, const char *way)
{
    struct text t = {0};
    enum status st = ST_OK;

    for (size_t i = 0; i < json_array_size (list) && t.len < JOBS_VALUE_MAX; i++) {
        char number[32];
        const char *one = scalar_text (json_array_get (list, i), way, number);

        if (one)
            text_add (&t, "%s%s", t.len ? ", " : "[", one);
    }
    if (t.len)
        text_add (&t, "]");
    if (t.failed)
        st = err_nomem (r->err);
    else if (t.len)
        st = jobs_say (r, 0, way, text_str (&t));
    text_free (&t);
    return st;
}

static enum status say_inside (struct jobs_reading *r, const json_t *v, const char *way,
                               const char *name, int depth)
{
    struct text own = {0};
    enum status st;

    text_add (&own, "%s%s%s", way, *way ? "." : "", name);
    st = own.failed ? err_nomem (r->err) : say_value (r, v, text_str (&own), depth);
    text_free (&own);
    return st;
}

/* A value and all inside it.  Lines are not kept by jansson: statements of JSON have none. */
static enum status say_value (struct jobs_reading *r, const json_t *v, const char *way,
                              int depth)
{
    char number[32];
    const char *word = scalar_text (v, way, number), *key;
    json_t *inner;
    size_t i;

    if (word)
        return jobs_say (r, 0, way, word);
    if (json_is_array (v))
        TRY (say_list (r, v, way));
    if (depth > DEPTH_MAX)
        return ST_OK;
    json_object_foreach ((json_t *) v, key, inner)
        TRY (say_inside (r, inner, way, key, depth + 1));
    json_array_foreach (v, i, inner)
    {
        snprintf (number, sizeof number, "%zu", i);
        if (json_is_object (inner) || json_is_array (inner))
            TRY (say_inside (r, inner, way, number, depth + 1));
    }
    return ST_OK;
}

enum status jobs_json_read (struct jobs_reading *r, json_t *doc)
{
    return say_value (r, doc, "", 0);
}

/* Gradients: whether they are reduced beside the backward pass, by default under ZeRO 3 alone
 * (runtime/zero/config.py), in which type they are summed, and in which they travel, by default the
 * weights' (runtime/engine.py, communication_data_type); beside Ulysses another member says so, by
 * default fp32. */
static void finish_gradients (struct jobs_reading *r, const char *precision)
{
    const char *kept = jobs_value (r, "ds-gradients"),
               *said = jobs_value (r, "communication-data-type"),
               *sent = jobs_dtype_of (said), *kept_in = jobs_dtype_of (kept),
               *beside = jobs_value (r, "ds-sequence-type");
    bool whole = precision && strstr (precision, "32"); /* tf32 is kept so, too */

    if (jobs_find (r, "zero"))
        jobs_default_flag (r, "overlap-comm", jobs_int (r, "zero", 0) == 3);
    if (kept_in) /* the fact is of either 16-bit type */
        jobs_default_flag (r, "grad-reduce-in-bf16", strstr (kept_in, "16"));
    else if (kept)
        notes_add (r->notes, "grad_accum_dtype %.20s is not known: taken as not stated",
                   kept);
    if (said && !sent) {
        notes_add (r->notes,
                   "communication_data_type %.20s is not known: taken as not stated",
                   said);
        jobs_forget (r, "communication-data-type");
    } else if (said)
        jobs_override (r, "communication-data-type", sent);
    if (whole && sent && strcmp (sent, "fp32") != 0)
        notes_add (r->notes,
                   "communication_data_type %.20s of a job in fp32: estimated as if its "
                   "gradients travelled in fp32",
                   sent);
    if (jobs_int (r, "cp", 1) > 1 && !whole)
        jobs_override (r, "communication-data-type", beside ? beside : "fp32");
    else if (whole || (precision && strstr (precision, "16")))
        jobs_default (r, "communication-data-type", whole ? "fp32" : precision);
}

/* Elements of a limit, as many as a row can say; "auto" is Hugging Face's word for the square of
 * the hidden size (transformers, integrations/deepspeed.py).
 * @return 0: not said, or not as a number that can be, which is told */
#define ELEMENTS_MAX 1e11
static double limit_of (struct jobs_reading *r, const char *fact, double least)
{
    const char *said = jobs_value (r, fact);
    double hidden = r->has_model ? r->model.hidden : (double) jobs_int (r, "hidden", 0),
           x;
    char key[JOBS_KEY_MAX];

    if (!said)
        return 0.0;
    if (strcmp (said, "auto") == 0)
        return hidden * hidden;
    if (text_number (said, &x) && x >= least)
        return fmin (fmax (x, 1.0), ELEMENTS_MAX);
    jobs_key_of (&jobs_deepspeed, fact, key);
    notes_add (r->notes, "%s %.20s: expected a number from %g: taken as not stated", key,
               said, least);
    return 0.0;
}

static void say_limit (struct jobs_reading *r, const char *name, double value)
{
    char text[32];

    snprintf (text, sizeof text, "%.12g", value);
    if (value > 0.0)
        jobs_default (r, name, text);
}

/* What is there at once: under ZeRO 3 gathered weights and gradients that are not reduced; under 1
 * and 2 buckets, of which overlap_comm has a second one (stage_1_and_2.py, ipg_buckets), 5e8
 * elements each by default. */
#define BUCKET 5e8
static void finish_limits (struct jobs_reading *r)
{
    double live = limit_of (r, "ds-live", 0.0), reduced = limit_of (r, "ds-bucket", 1.0),
           gathered = limit_of (r, "ds-gathered", 1.0);
    bool second = jobs_true (r, "overlap-comm");
    int zero = (int) jobs_int (r, "zero", 0);

    if (zero == 3) {
        say_limit (r, "live-parameters", live);
        say_limit (r, "reduced-parameters", reduced);
    } else if (zero > 0 && (!second || reduced > 0.0 || gathered > 0.0)) {
        reduced = (second ? 2.0 : 1.0) * (reduced > 0.0 ? reduced : BUCKET);
        gathered = gathered > 0.0 ? gathered : BUCKET;
        say_limit (r, "bucket-gb", 2e-9 * (reduced + gathered));
    }
}

/* What is estimated otherwise than it runs: an optimizer's state of which the host has a part
 * (ZeRO-Offload++), and ZeRO++'s second copy of the weights inside nodes. */
static void tell_others (struct jobs_reading *r)
{
    const char *ratio = jobs_value (r, "ds-ratio");
    long ranks = jobs_int (r, "ds-copy", 1);
    bool sharded = jobs_int (r, "zero", 0) == 3; /* which alone has these */

    if (ratio && strtod (ratio, NULL) < 1.0 && jobs_find (r, "offload") && sharded)
        notes_add (r->notes,
                   "offload_optimizer's ratio %.20s: estimated as if the host had all of "
                   "the optimizer's state; the GPU needs more, and the step takes less",
                   ratio);
    if (ranks > 1 && sharded)
        notes_add (
            r->notes,
            "zero_hpz_partition_size %ld: the second copy of the weights is not "
            "estimated; it takes %.2g bytes a parameter, and saves traffic between "
            "nodes",
            ranks, 2.0 / ranks);
}

/* What the host has.  Weights there without the optimizer's state, or a disk, have no estimate. */
static void finish_offload (struct jobs_reading *r)
{
    const char *on[] = {jobs_value (r, "ds-optimizer-on"),
                        jobs_value (r, "ds-weights-on")};
    bool has[2];

    for (int i = 0; i < 2; i++) {
        has[i] = on[i] && strcmp (on[i], "cpu") == 0;
        if (on[i] && strcmp (on[i], "none") != 0 && (!has[i] || (i == 1 && !has[0])))
            notes_add (r->notes, "%s on %.20s%s: not estimated",
                       i == 0 ? "offload_optimizer" : "offload_param", on[i],
                       has[i] ? " without offload_optimizer" : "");
    }
    if (has[0])
        jobs_default (r, "offload", has[1] ? "all" : "optimizer");
}

static void finish (struct jobs_reading *r)
{
    const char *zero = jobs_value (r, "zero");
    /* One that is not said may be "auto". */
    bool neither = jobs_find (r, "ds-bf16") && jobs_find (r, "ds-fp16");
    const char *precision = jobs_true (r, "ds-bf16")   ? "bf16"
                            : jobs_true (r, "ds-fp16") ? "fp16"
                            : neither                  ? "fp32"
                                                       : jobs_value (r, "precision");
    size_t n = zero ? strcspn (zero, "0123") : 0;
    long shard = jobs_int (r, "ds-shard", 0);

    if (jobs_is (r, "framework", "transformers")) /* whose log's lines are here */
        return;
    if (zero && n > 0 && zero[n]) { /* "ZeroStageEnum.weights" is none of these */
        char stage[2] = {zero[n], '\0'};

        jobs_override (r, "zero", stage);
    }
    finish_gradients (r, precision);
    finish_limits (r);
    finish_offload (r);
    tell_others (r);
    if (shard > 0 && jobs_int (r, "zero", 0) == 3) /* MiCS; -1: off */
        jobs_default_int (r, "shard", shard);
    if (precision)
        jobs_default (r, "precision", precision);
    for (int i = 0; i < r->n_files; i++)
        if (r->of_file[i] == &jobs_megatron) /* which runs on DeepSpeed */
            return;
    if (!jobs_find (r, "deepspeed"))
        jobs_default (r, "framework", "deepspeed");
}

/* ---- the log ---- */

static bool take_trainer (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    static const struct {
        const char *phrase, *key;
    } said[] = {{"Total train batch size (w. parallel, distributed & accumulation)",
                 "train_batch_size"},
                {"Instantaneous batch size per device", "train_micro_batch_size_per_gpu"},
                {"Gradient Accumulation steps", "gradient_accumulation_steps"}};
    double x;

    for (size_t i = 0; i < COUNT_OF (said); i++)
        if (jobs_printed_after (r, line, said[i].phrase, said[i].key))
            return true;
    if (!jobs_after (line, "'train_samples_per_second'", &x))
        return false;
    if (run->samples_per_s.n == 0)
        jobs_sample (r, &run->samples_per_s, x);
    return true;
}

static void take_memory (struct jobs_run *run, const char *line)
{
    jobs_peak (line, "MaxMemAllocated", 1073741824.0, &run->allocated_bytes);
    jobs_peak (line, "Max_MA", 1073741824.0, &run->allocated_bytes);
    jobs_peak (line, "Max_CA", 1073741824.0, &run->reserved_bytes);
}

/* "steps: 10 loss: 8.1012 iter time (s): 0.981 samples/sec: 65.2", of the pipeline's engine. */
static bool take_pipeline (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double s, step;

    if (!jobs_after (line, "iter time (s)", &s) || !jobs_after (line, "steps:", &step))
        return false;
    run = jobs_iteration (r, run, line, "steps:");
    if (run)
        jobs_sample (r, &run->steps_s, s);
    return true;
}

static bool log_line (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double rate;

    if (strstr (line, "DeepSpeedEngine configuration") ||
        strstr (line, "***** Running training *****")) {
        jobs_starting (r, run);
        return true;
    }
    if (take_trainer (r, run, line) || take_pipeline (r, run, line))
        return true;
    if (strstr (line, "Max_MA")) {
        take_memory (run, line);
        return true;
    }
    if (!jobs_after (line, "CurrSamplesPerSec", &rate) &&
        !(strstr (line, "timer.py") && jobs_after (line, "SamplesPerSec", &rate)))
        return false;
    if (!(run = jobs_iteration (r, run, line, "global_step")))
        return true;
    take_memory (run, line);
    jobs_sample (r, &run->samples_per_s, rate);
    return true;
}

const struct jobs_dialect jobs_deepspeed = {.name = "DeepSpeed",
                                            .framework = "deepspeed",
                                            .keys = keys,
                                            .harmless = harmless,
                                            .finish = finish,
                                            .log = log_line};
