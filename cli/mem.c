/* linkwise mem: memory by stage and by kind, the chance of running out, and why not. */
#include "cli/cli.h"

#include <stdlib.h>

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
    {CLI_LAYERS},
    {CLI_JSON},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct mem_input *in = input;

    if (!in->model || !in->gpu)
        usage_error (state, "MODEL and --gpu are required, as in: linkwise mem "
                            "llama-3-8b --gpu h100");
}

/* Everything that one call is about. */
struct estimate {
    struct linkwise_plan work;
    struct memest_problem problem;
    const struct topology_gpu_type *gpu;
    struct memest_stage *stage; /* [pp] */
    int worst;
    double limit_bytes; /* if none of it are states */
    double chance;      /* of running out */
    struct text fix;    /* the smallest change that makes it fit; "": none, or it fits */
};

static double limit_of (const struct estimate *e, int stage)
{
    return memest_limit_of (&e->problem, &e->stage[stage], e->limit_bytes);
}

static bool fits (const struct estimate *e)
{
    return e->stage[e->worst].peak_bytes <= limit_of (e, e->worst);
}

static void print_stages (const struct estimate *e)
{
    struct table *t =
        TABLE_OF ("stage", "layers", "weights", "gradients", "optimizer", "activations",
                  "logits", "buffers", "overhead", "peak", "limit");

    for (int i = 0; i < e->problem.config->deg.pp; i++) {
        const struct memest_stage *s = &e->stage[i];
        const double kind[] = {
            s->weights_bytes,     s->gradients_bytes, s->optimizer_bytes,
            s->activations_bytes, s->logits_bytes,    s->buffers_bytes,
            s->overhead_bytes,    s->peak_bytes,      limit_of (e, i)};

        table_cell (t, "%d", i);
        table_cell (t, "%d", e->work.plan.layers_per_stage[i]);
        for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
            table_cell (t, "%.2f", kind[k] / UNITS_GIB);
    }
    cli_print ("GiB on each GPU of a stage:\n");
    table_end (t, stdout);
}

static double peak_interval (const struct estimate *e)
{
    return cli_peak_interval (e->problem.by, &e->work.profile, &e->stage[e->worst]);
}

/* Which kind is too much, by how much, and what would help. */
static void print_why (const struct estimate *e)
{
    const struct memest_stage *s = &e->stage[e->worst];
    double bytes;
    const char *kind = memest_largest_kind (s, &bytes);

    cli_print ("%.2f GiB too much on stage %d; its largest part is %s, %.2f GiB\n",
               (s->peak_bytes - limit_of (e, e->worst)) / UNITS_GIB, e->worst, kind,
               bytes / UNITS_GIB);
    if (e->fix.len > 0)
        cli_print ("it would fit with %s\n", text_str (&e->fix));
    else
        cli_print ("no single change of the configuration makes it fit\n");
}

static double most_on_host (const struct estimate *e)
{
    double most = 0.0;

    for (int i = 0; i < e->problem.config->deg.pp; i++)
        most = fmax (most, e->stage[i].host_bytes);
    return most;
}

static void print_estimate (const struct estimate *e)
{
    const struct workload_model *m = e->problem.model;
    double peak = e->stage[e->worst].peak_bytes;
    char chance[32], ends[CLI_STEP_TEXT], config[CLI_CONFIG_TEXT];

    cli_print ("%s, %.2f billion parameters", m->name, workload_model_params (m) / 1e9);
    if (m->experts > 0)
        cli_print (" (%.2f active)", workload_active_params (m) / 1e9);
    cli_print (", on %s\n%s\n", e->gpu->name,
               cli_config_text (e->problem.config, config));
    print_stages (e);
    cli_print (
        "stage %d peaks at %.2f GiB%s\nthe limit is %.2f GiB: %s; chance of running out "
        "%s\n",
        e->worst, peak / UNITS_GIB, cli_peak_text (peak, peak_interval (e), ends),
        limit_of (e, e->worst) / UNITS_GIB, fits (e) ? "fits" : "does not fit",
        cli_chance (e->chance, chance));
    if (most_on_host (e) > 0)
        cli_print ("the host holds %.2f GiB for each GPU\n",
                   most_on_host (e) / UNITS_GIB);
    if (!fits (e))
        print_why (e);
}

static json_t *estimate_json (const struct estimate *e)
{
    json_t *list = json_array (), *doc;

    for (int i = 0; i < e->problem.config->deg.pp; i++) {
        json_t *one = memest_stage_to_json (&e->stage[i]);

        json_object_set_new (one, "layers",
                             json_integer (e->work.plan.layers_per_stage[i]));
        json_array_append_new (list, one);
    }
    doc = json_pack ("{s:i, s:f, s:f, s:f, s:f, s:b, s:o, s:i, s:o}", "version", 1,
                     "parameters", workload_model_params (e->problem.model), "peak_bytes",
                     e->stage[e->worst].peak_bytes, "gpu_bytes", e->gpu->memory_bytes,
                     "limit_bytes", limit_of (e, e->worst), "fits", fits (e),
                     "oom_probability", json_number_or_null (e->chance), "binding_stage",
                     e->worst, "per_stage", list);
    cli_interval_json (doc, e->stage[e->worst].peak_bytes, peak_interval (e),
                       "peak_low_bytes", "peak_high_bytes");
    json_object_set_new (
        doc, "parts",
        cli_parts_json (&e->work.profile, &(struct topology_node){.type = e->gpu}, 1));
    if (doc && !fits (e))
        json_object_set_new (doc, "would_fit_with",
                             e->fix.len > 0 ? json_string (text_str (&e->fix))
                                            : json_null ());
    return doc;
}

static enum status read_input (struct mem_input *in, struct estimate *e,
                               struct notes *notes, struct error *err)
{
    struct workload_plan *plan = &e->work.plan;
    const struct workload_job *job = &in->job.job;
    struct workload_gpus on;

    plan->config = mapper_axes_config (&in->job.axes);
    TRY (topology_gpu_type_take ("--gpu", in->gpu, &e->gpu, notes, err));
    TRY (api_filling_batch (&plan->config, &in->job.job.global_batch, err));
    on = (struct workload_gpus){.name = {e->gpu->name}, .n = 1};
    TRY (cli_job_read (&in->job, in->model, &on, &e->work, notes, err));
    if (!(costmodel_matrix_rate (e->gpu, job->precision) > 0))
        return err_set (err, ST_INVALID, "GPU type %s cannot run %s", e->gpu->name,
                        workload_precision_name (job->precision));
    costmodel_note_type (e->gpu, job->precision, notes);
    return cli_job_config (&in->job, &e->work, err);
}

static enum status estimate (struct estimate *e, struct error *err)
{
    const struct mapper_problem p = api_plan_problem (&e->work, NULL);
    const struct workload_plan *plan = &e->work.plan;
    struct workload_config changed;

    e->problem = mapper_memory_problem (&p, &plan->config);
    e->limit_bytes = mapper_memory_limit (&p, e->gpu->memory_bytes);
    if (!(e->stage = calloc ((size_t) plan->config.deg.pp, sizeof *e->stage)))
        return err_nomem (err);
    e->worst = api_stages (&p, &e->work, e->gpu->memory_bytes, e->stage);
    for (int i = 0; i < plan->config.deg.pp; i++)
        e->chance =
            memest_larger_chance (e->chance, memest_chance (p.memory_model, p.profile,
                                                            memest_load_of (&e->stage[i]),
                                                            e->gpu->memory_bytes));
    if (!fits (e))
        memest_smallest_change (&e->problem, plan->layers_per_stage, e->limit_bytes,
                                &changed, &e->fix);
    return ST_OK;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct mem_input *in = input;
    struct estimate e = {.worst = 0};
    enum status st = read_input (in, &e, notes, err);

    THEN (st, estimate (&e, err));
    if (st == ST_OK && in->json)
        st = cli_print_json (estimate_json (&e), err);
    else if (st == ST_OK)
        print_estimate (&e);
    free (e.stage);
    text_free (&e.fix);
    api_plan_release (&e.work);
    return st;
}

const struct cli_command cli_mem = {
    .arguments = "MODEL",
    .help =
        "Estimate the memory of one GPU of every stage, by kind, in GiB.\v"
        "Example: linkwise mem llama-2-70b --gpu h100-sxm5-80g --seq 4096 --tp 8 "
        "--pp 4 --dp 4\n\n"
        "MODEL is a Hugging Face config.json, a preset (`linkwise models`), or - for "
        "standard input.  Degrees default to 1, --dp to the least that --ep allows.  The "
        "default global batch just fills the pipeline.",
    .options = {.line = options, .check = check},
    .parts = {{&cli_job_options, offsetof (INPUT, job), "The job:", 1}},
    .places = {.most = 1, .expected = "one MODEL"},
    .at = {CLI_PLACE (model)},
    CLI_RUN (run)};
