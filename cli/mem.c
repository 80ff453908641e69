/* linkwise mem: memory by stage and by kind, the chance of running out, and why not. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/units.h"
#include "memest/memest.h"

struct mem_input {
    struct cli_job job;
    const char *model, *gpu;
    bool json;
};

#define INPUT struct mem_input

static const struct cli_option options[] = {
    {"gpu", 'g', "TYPE", "GPU type (`linkwise gpus` lists them)", CLI_TEXT (gpu)},
    {CLI_JSON},
    {0}};

static const struct cli_part parts[] = {
    {&cli_job_options, offsetof (INPUT, job), "The job:", 1}, {0}};

static void check (void *input, struct argp_state *state)
{
    const struct mem_input *in = input;

    if (!in->model || !in->gpu || in->job.job.seq == 0)
        argp_error (state, "MODEL, --gpu and --seq are required");
}

/* Everything that one call is about. */
struct estimate {
    struct workload_model model;
    struct workload_profile profile;
    struct workload_config config;
    struct memest_problem problem;
    const struct topology_gpu_type *gpu;
    struct memest_stage *stage; /* [pp] */
    int *layers;                /* [pp] */
    int worst;
    double limit_bytes;
};

static void print_stages (const struct estimate *e)
{
    struct table *t =
        cli_table ("stage", "layers", "weights", "gradients", "optimizer", "activations",
                   "logits", "buffers", "overhead", "peak", "limit");

    for (int i = 0; i < e->config.deg.pp; i++) {
        const struct memest_stage *s = &e->stage[i];
        const double kind[] = {
            s->weights_bytes,     s->gradients_bytes, s->optimizer_bytes,
            s->activations_bytes, s->logits_bytes,    s->buffers_bytes,
            s->overhead_bytes,    s->peak_bytes,      e->limit_bytes};

        table_cell (t, "%d", i);
        table_cell (t, "%d", e->layers[i]);
        for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
            table_cell (t, "%.2f", kind[k] / UNITS_GIB);
    }
    printf ("GiB on one GPU of each stage:\n");
    cli_table_end (t);
}

/* Which kind is too much, by how much, and what would help. */
static void print_why (const struct estimate *e)
{
    const struct memest_stage *s = &e->stage[e->worst];
    struct workload_config changed;
    struct text words = {0};
    double bytes;
    const char *kind = memest_largest_kind (s, &bytes);

    printf ("%.2f GiB too much on stage %d; most of it is %s, %.2f GiB\n",
            (s->peak_bytes - e->limit_bytes) / UNITS_GIB, e->worst, kind,
            bytes / UNITS_GIB);
    if (memest_smallest_change (&e->problem, e->layers, e->limit_bytes, &changed, &words))
        printf ("it would fit with %s\n", text_str (&words));
    else
        printf ("no single change of the configuration makes it fit\n");
    text_free (&words);
}

static void print_estimate (const struct estimate *e)
{
    const struct memest_stage *s = &e->stage[e->worst];
    char chance[32], config[CLI_CONFIG_TEXT];

    printf ("%s, %.2f billion parameters", e->model.name,
            workload_model_params (&e->model) / 1e9);
    if (e->model.experts > 0)
        printf (" (%.2f active)", workload_active_params (&e->model) / 1e9);
    printf (", on %s\n%s\n", e->gpu->name, cli_config_text (&e->config, config));
    print_stages (e);
    printf ("stage %d peaks at %.2f GiB of %.2f GiB: %s; chance of running out %s\n",
            e->worst, s->peak_bytes / UNITS_GIB, e->limit_bytes / UNITS_GIB,
            s->peak_bytes <= e->limit_bytes ? "fits" : "does not fit",
            cli_chance (memest_chance (e->problem.by, &e->profile, s->peak_bytes,
                                       e->gpu->memory_bytes),
                        chance));
    if (s->peak_bytes > e->limit_bytes)
        print_why (e);
}

static json_t *estimate_json (const struct estimate *e)
{
    const struct memest_stage *worst = &e->stage[e->worst];
    struct workload_config changed;
    struct text words = {0};
    json_t *list = json_array (), *doc;

    for (int i = 0; i < e->config.deg.pp; i++) {
        json_t *one = memest_stage_to_json (&e->stage[i]);

        json_object_set_new (one, "layers", json_integer (e->layers[i]));
        json_array_append_new (list, one);
    }
    doc = json_pack (
        "{s:i, s:f, s:f, s:f, s:b, s:o, s:i, s:o}", "version", 1, "peak_bytes",
        worst->peak_bytes, "gpu_bytes", e->gpu->memory_bytes, "limit_bytes",
        e->limit_bytes, "fits", worst->peak_bytes <= e->limit_bytes, "oom_probability",
        json_number_or_null (memest_chance (e->problem.by, &e->profile, worst->peak_bytes,
                                            e->gpu->memory_bytes)),
        "binding_stage", e->worst, "per_stage", list);
    if (doc && worst->peak_bytes > e->limit_bytes)
        json_object_set_new (doc, "would_fit_with",
                             memest_smallest_change (&e->problem, e->layers,
                                                     e->limit_bytes, &changed, &words)
                                 ? json_string (text_str (&words))
                                 : json_null ());
    text_free (&words);
    return doc;
}

/* Without a batch, one that fills the pipeline: as many micro-batches as stages, and twice
 * that where a stage can hold more of them. */
static enum status default_batch (struct cli_job *j, const struct workload_config *c,
                                  struct error *err)
{
    long long batch = (long long) c->deg.dp * c->micro_batch;
    bool holds_more = c->schedule == SCHEDULE_INTERLEAVED || c->schedule == SCHEDULE_ZB2P;

    if (j->job.global_batch > 0)
        return ST_OK;
    if (batch < 1 << 30 && c->deg.pp < 1 << 24)
        batch *= (long long) c->deg.pp * (holds_more ? 2 : 1);
    if (batch > 1 << 30)
        return err_set (err, ST_INVALID, "dp, pp and micro-batch: too large");
    j->job.global_batch = (int) batch;
    return ST_OK;
}

static enum status read_input (struct mem_input *in, struct estimate *e,
                               struct notes *notes, struct error *err)
{
    enum status st;

    e->config = cli_job_config (&in->job);
    e->gpu = topology_gpu_type_builtin (in->gpu);
    if (!e->gpu)
        return err_set (err, ST_USAGE,
                        "--gpu: unknown type \"%s\" (`linkwise gpus` lists them)",
                        in->gpu);
    st = default_batch (&in->job, &e->config, err);
    if (st == ST_OK)
        st = cli_job_read (&in->job, in->model, &e->model, &e->profile, notes, err);
    if (st == ST_OK && in->job.job.precision == PREC_FP8 && e->gpu->fp8_flop_per_s <= 0)
        st = err_set (err, ST_INVALID, "GPU type %s cannot run fp8", e->gpu->name);
    if (st == ST_OK)
        cli_note_type (e->gpu, in->job.job.precision, notes);
    if (st == ST_OK)
        st = workload_config_check (&e->model, &in->job.job, &e->config, err);
    if (st == ST_OK)
        st = workload_config_offered (&e->config, &e->profile, err);
    return st;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct mem_input *in = input;
    struct estimate e = {0};
    enum status st = read_input (in, &e, notes, err);

    if (st == ST_OK) {
        e.stage = calloc ((size_t) e.config.deg.pp, sizeof *e.stage);
        st = e.stage ? cli_job_layers (&in->job, &e.model, &e.config, &e.profile,
                                       &e.layers, err)
                     : err_nomem (err);
    }
    if (st == ST_OK) {
        e.problem = (struct memest_problem){&e.model, &in->job.job, &e.config, &e.profile,
                                            in->job.memory_model};
        e.limit_bytes = memest_limit (&e.profile, e.gpu->memory_bytes,
                                      cli_memory_limit (&in->job), in->job.oom_risk);
        for (int i = 0; i < e.config.deg.pp; i++) {
            struct workload_stage held =
                workload_stage_of (&e.model, &e.config, e.layers, i);

            memest_stage (&e.problem, i, &held, &e.stage[i]);
            if (e.stage[i].peak_bytes > e.stage[e.worst].peak_bytes)
                e.worst = i;
        }
        if (in->json)
            st = cli_print_json (estimate_json (&e), err);
        else
            print_estimate (&e);
    }
    free (e.stage);
    free (e.layers);
    return st;
}

const struct cli_command cli_mem = {
    .arguments = "MODEL",
    .help = "Estimate the memory of one GPU of every stage, by kind, in GiB.\v"
            "Example: linkwise mem llama-2-70b --gpu h100-sxm5-80g --seq 4096 --tp 8 "
            "--pp 4 --dp 4\n\nMODEL is a Hugging Face config.json, a preset (`linkwise "
            "models`), or - for standard input.  Degrees default to 1, the global batch "
            "to one that fills the pipeline.",
    .options = {.line = options, .check = check},
    .parts = parts,
    .places = {.most = 1, .expected = "one MODEL"},
    .at = {CLI_PLACE (model)},
    CLI_RUN (run)};
