/* linkwise cluster layers: what measured layer times tell of a GPU type. */
#include "cli/cli.h"

#include "base/file.h"
#include "calibrate/layer_times.h"
#include "topology/links_doc.h"

struct layers_input {
    struct cli_job job;
    struct cli_list list;
    const char *gpu, *out;
};

#define INPUT struct layers_input

static const struct cli_option options[] = {
    {"gpu", 'g', "TYPE", "GPU type that ran the layers (`linkwise gpus` lists them)",
     CLI_TEXT (gpu), .needed = true},
    {CLI_OUTPUT},
    {0}};

/* A cluster file without nodes: what `cluster merge` adds to others. */
static json_t *document (const struct layers_input *in,
                         const struct calibrate_layer_times *t,
                         const struct calibrate_layer_fit *fit, const char *profile)
{
    const char *file = file_title (in->list.arg[1]);
    json_t *now = topology_links_now (),
           *source = json_pack ("{s:s, s:s, s:s, s:s, s:i, s:O}", "by", "layer times",
                                "format", t->format, "file", file, "profile", profile,
                                "rows", fit->used, "when", now);

    return json_pack ("{s:i, s:o, s:[], s:{}, s:{s:{s:o, s:{s:o}}}}", "version", 1,
                      "captured", now, "nodes", "links", "gpu_types", in->gpu, fit->key,
                      topology_links_number (fit->efficiency), "measured", fit->key,
                      source);
}

/* How many of the file's times say nothing, and why. */
static void note_left (const char *file, const struct calibrate_layer_times *t,
                       const struct calibrate_layer_fit *fit, struct notes *notes)
{
    static const char *const why[CALIBRATE_LAYER_LEFT] = {
        [LAYER_LEFT_FAST] =
            "are faster than the estimate with products at the GPU's peak",
        [LAYER_LEFT_SLOW] = "are slower than slow products explain",
        [LAYER_LEFT_FLAT] = "are decided by launches or memory, not by products"};

    for (int i = 0; i < CALIBRATE_LAYER_LEFT; i++)
        if (fit->left[i].n > 0)
            notes_add (notes,
                       "%s: %d of %d layer times are left out, which %s (%s first)", file,
                       fit->left[i].n, t->n, why[i], fit->left[i].first);
    if (t->others > 0)
        notes_add (notes, "%s: %d times of further kinds of layers are left out", file,
                   t->others);
}

static enum status fit_times (struct layers_input *in,
                              const struct calibrate_layer_times *t,
                              const struct topology_gpu_type *type,
                              struct linkwise_plan *work, struct notes *notes,
                              struct error *err)
{
    struct workload_job *j = &in->job.job;
    const struct workload_gpus on = {.name = {type->name}, .n = 1};
    struct calibrate_layer_fit fit;
    const char *file = file_title (in->list.arg[1]);
    struct error why;
    json_t *doc;
    enum status st;

    if (j->seq == 0 && (j->seq = t->row[0].seq) == 0)
        return err_set (err, ST_USAGE, "%s does not say the sequence: give --seq", file);
    j->global_batch = t->row[0].micro_batch;
    TRY (cli_job_read (&in->job, in->list.arg[0], &on, work, notes, err));
    if (calibrate_layer_times_fit (t, &work->plan.model, j, &work->profile, type, &fit,
                                   &why) != ST_OK)
        return err_set (err, ST_INVALID, "%s: %.400s", file, why.text);
    note_left (file, t, &fit, notes);
    if (!(doc = document (in, t, &fit, work->profile.name)))
        return err_nomem (err);
    st = json_write (in->out, doc, err);
    json_decref (doc);
    if (st == ST_OK && !cli_is_dash (in->out))
        cli_print (
            "%s: %s %.3f from %d of %d layer times (%s), which it meets within %.1f "
            "%%; written to %s\n",
            in->gpu, fit.key, fit.efficiency, fit.used, t->n, t->format, 100 * fit.spread,
            in->out);
    return st;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct layers_input *in = input;
    const struct topology_gpu_type *type;
    enum workload_precision precision = in->job.job.precision;
    struct calibrate_layer_times t = {0};
    struct linkwise_plan work = {0};
    enum status st;

    TRY (topology_gpu_type_take ("--gpu", in->gpu, &type, notes, err));
    in->gpu = type->name;
    if (!(costmodel_matrix_rate (type, precision) > 0))
        return err_set (err, ST_INVALID, "GPU type %s cannot run %s", type->name,
                        workload_precision_name (precision));
    st = calibrate_layer_times_read (in->list.arg[1], &t, err);
    THEN (st, fit_times (in, &t, type, &work, notes, err));
    calibrate_layer_times_release (&t);
    api_plan_release (&work);
    return st;
}

const struct cli_command cli_cluster_layers = {
    .arguments = "MODEL TIMES",
    .help =
        "Find the efficiency of a GPU type with which the estimates of a model's layers "
        "meet measured times, for `linkwise cluster merge`.\v"
        "Example: linkwise cluster layers llama-2-7b computation_profiling_bf16.json "
        "--gpu a100-sxm4-80g -o layers.json\n\n"
        "TIMES is Galvatron's computation profile, a log of Megatron's with "
        "--timing-log-level 2, or a CSV table with columns micro_batch, tp, forward_ms "
        "and, optional, backward_ms and seq.  Estimates of the same --profile meet the "
        "times.",
    .options = {.line = options},
    .parts = {{&cli_job_options, offsetof (INPUT, job), "The job:", 1}},
    .places = {2, 2, NULL, "--gpu TYPE and -o FILE are required"},
    .list = true,
    .counted = "MODEL and TIMES",
    .at = {CLI_LIST (list)},
    CLI_RUN (run)};
