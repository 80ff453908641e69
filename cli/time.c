/* linkwise time and linkwise eval: the price of one placement. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct time_input {
    struct cli_job job;
    const char *cluster, *model, *plan;
    const char *placement;
    const char *trace; /* file, or NULL */
    const char *what_if;
    enum costmodel_kind kind;
    bool json, verbose;
};

#define INPUT struct time_input

#define TRACE                                                                           \
    "trace", 0, "FILE", "write the schedule as Chrome trace JSON, to open in Perfetto", \
        CLI_TEXT (trace), .alone = "--trace"
#define VERBOSE                                                                    \
    "verbose", 'v', NULL,                                                          \
        "also print what the figures come from, and which stage every GPU serves", \
        CLI_FLAG (verbose)

static enum status write_trace (const struct costmodel_problem *p, const int *gpu,
                                const char *file, struct notes *notes, struct error *err)
{
    struct text trace = {0};
    struct costmodel_problem own = *p;
    enum status st;

    if (p->kind != COSTMODEL_CRITICAL_PATH)
        notes_add (notes,
                   "%s has no schedule to trace: the trace shows the critical-path model",
                   cli_model_authors (p->kind));
    own.kind = COSTMODEL_CRITICAL_PATH;
    st = costmodel_trace (&own, gpu, &trace, err);
    THEN (st, file_write (file, text_str (&trace), trace.len, err));
    text_free (&trace);
    return st;
}

/* What changes would do to the plan; its degrees are searched anew too. */
static enum status run_what_if (const struct time_input *in,
                                const struct linkwise_plan *x, const int *gpu,
                                struct report_whatif *w, struct error *err)
{
    struct mapper_problem p = api_plan_problem (x, x->cluster->c);
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_nodes nodes = {0};
    struct report_whatif_plan plan = {.p = &p,
                                      .nodes = &nodes,
                                      .settings = &settings,
                                      .config = &x->plan.config,
                                      .layers = x->plan.layers_per_stage,
                                      .gpu = gpu};

    p.axes = mapper_axes_resumed (&x->plan.config);
    p.cost_model = in->kind;
    settings.tie = MAPPER_USUAL_TIE;
    return cli_whatif_run (&plan, w, err);
}

/* A placement's price, and what is told beside it. */
struct price {
    struct costmodel_estimate e;
    struct costmodel_binding binding;
    bool binds; /* a link does */
    double unshared_s, interval;
};

static json_t *price_json (const struct linkwise_plan *x, const struct price *f,
                           const struct report_whatif *what_if)
{
    const struct topology_cluster *c = x->cluster->c;
    json_t *doc = costmodel_estimate_to_json (&f->e);

    json_object_set_new (doc, "version", json_integer (1));
    json_object_set_new (doc, "binding_link",
                         costmodel_binding_to_json (c, &f->binding, f->binds));
    json_object_set_new (doc, "unshared_step_s", json_real (f->unshared_s));
    json_object_set_new (doc, "nominal_links", topology_nominal (c));
    cli_interval_json (doc, f->e.step_s, f->interval, "step_low_s", "step_high_s");
    json_object_set_new (doc, "parts", cli_parts_json (&x->profile, c->node, c->n_nodes));
    if (what_if)
        json_object_set_new (doc, "what_if", report_whatif_to_json (what_if));
    return doc;
}

static enum status print_price (const struct time_input *in,
                                const struct linkwise_plan *x, const int *gpu,
                                const struct price *f,
                                const struct report_whatif *what_if, struct error *err)
{
    const struct topology_cluster *c = x->cluster->c;
    char step[CLI_STEP_TEXT], config[CLI_CONFIG_TEXT];
    enum status st = ST_OK;

    if (in->model) {
        cli_print_inline ("%s on %s: %s", x->plan.model.name, c->name,
                          cli_config_text (&x->plan.config, config));
        cli_print ("\n");
    }
    if (f->e.kind == COSTMODEL_CRITICAL_PATH) {
        cli_print ("step     %s, %.0f tokens/s, MFU %.1f %%\n",
                   cli_step_text (f->e.step_s, f->interval, step), f->e.tokens_per_s,
                   100.0 * f->e.mfu);
        if (f->e.n_unmeasured > 0)
            cli_print ("links    %d unmeasured links are used, at the lowest measured "
                       "bandwidth of their kind\n",
                       f->e.n_unmeasured);
        cli_print ("\n");
        cli_print_breakdown (&f->e);
    } else {
        cli_print ("step     %s by the cost model of %s\n",
                   cli_seconds (f->e.step_s, step), cli_model_authors (f->e.kind));
    }
    cli_print_binding (c, f->binds ? &f->binding : NULL, f->unshared_s, f->e.step_s);
    cli_print_estimated (&f->e, "this placement");
    if (cli_nominal (c))
        cli_print ("links    nominal %s: not measured\n", cli_nominal (c));
    if (in->verbose) {
        cli_print_parts (&x->profile, c);
        st = cli_print_places (c, &x->plan.config.deg, gpu, err);
    }
    if (what_if)
        cli_whatif_print (what_if);
    return st;
}

/* Price one placement and print it. */
static enum status price (const struct time_input *in, const struct linkwise_plan *x,
                          const int *gpu, const struct report_whatif *what_if,
                          struct notes *notes, struct error *err)
{
    struct costmodel_problem p = api_plan_priced (x, x->cluster->c);
    struct price f = {.binds = false};
    enum status st;

    p.kind = in->kind;
    TRY (costmodel_estimate (&p, gpu, true, &f.e, err));
    f.interval = cli_step_interval (f.e.kind, &x->profile, p.model, p.cluster, gpu,
                                    (int) workload_world (&x->plan.config.deg));
    st = costmodel_find_binding (&p, gpu, f.e.step_s, &f.binding, &f.binds, err);
    THEN (st, costmodel_unshared_step (&p, gpu, &f.unshared_s, err));
    if (st == ST_OK && in->trace)
        st = write_trace (&p, gpu, in->trace, notes, err);
    if (st == ST_OK && in->json)
        st = cli_print_json (price_json (x, &f, what_if), err);
    else if (st == ST_OK && !cli_is_dash (in->trace))
        st = print_price (in, x, gpu, &f, what_if, err);
    free (f.e.unmeasured);
    return st;
}

/* ---- time ---- */

/* Only the ranks of a plan are taken: say so where its degrees are others. */
static void note_degrees (const char *name, const struct workload_plan *plan,
                          const struct workload_degrees *given, struct notes *notes)
{
    const struct workload_degrees *d = &plan->config.deg;

    if (d->tp != given->tp || d->pp != given->pp || d->dp != given->dp ||
        d->cp != given->cp || d->ep != given->ep)
        notes_add (notes,
                   "%s is a plan of tp %d, pp %d, dp %d, cp %d, ep %d; its ranks are "
                   "priced with the degrees given here (`linkwise eval` uses the plan's)",
                   name, d->tp, d->pp, d->dp, d->cp, d->ep);
}

/* The placement of a plan, or Megatron's order over the nodes that are not drained. */
static enum status place (const struct time_input *in, const struct linkwise_plan *x,
                          int *gpu, struct notes *notes, struct error *err)
{
    struct workload_plan plan;
    int world = (int) workload_world (&x->plan.config.deg);
    enum status st;

    if (strcmp (in->placement, "default") == 0) {
        topology_gpus_in_order (x->cluster->c, world, gpu);
        return ST_OK;
    }
    TRY (workload_plan_read (in->placement, &plan, err));
    if (plan.n_ranks != world)
        st = err_set (err, ST_INVALID,
                      "%s: the plan has %d ranks, the degrees multiply to %d",
                      in->placement, plan.n_ranks, world);
    else
        st = costmodel_plan_gpus (&plan, x->cluster->c, gpu, err);
    if (st == ST_OK)
        note_degrees (in->placement, &plan, &x->plan.config.deg, notes);
    workload_plan_release (&plan);
    return st;
}

static enum status read_job (const struct time_input *in, struct linkwise_plan *x,
                             struct notes *notes, struct error *err)
{
    struct workload_plan *plan = &x->plan;
    struct workload_gpus on = {.n = 0};

    TRY (cli_cluster_read (in->cluster, &x->cluster, notes, err));
    costmodel_gpus (x->cluster->c, &on);
    TRY (cli_job_read (&in->job, in->model, &on, x, notes, err));
    TRY (mapper_axes_config_on (x->cluster->c, &in->job.axes, &plan->config, err));
    return cli_job_config (&in->job, x, err);
}

static enum status run_time (void *input, struct notes *notes, struct error *err)
{
    const struct time_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    int *gpu = NULL;
    enum status st = read_job (in, &x, notes, err);

    if (st == ST_OK) {
        gpu = calloc ((size_t) workload_world (&x.plan.config.deg), sizeof *gpu);
        st = gpu ? place (in, &x, gpu, notes, err) : err_nomem (err);
    }
    THEN (st, costmodel_profile_used (&x.profile, x.cluster->c, gpu,
                                      (int) workload_world (&x.plan.config.deg),
                                      &x.plan.model, &x.plan.job, err));
    if (st == ST_OK) {
        costmodel_note_types (x.cluster->c, x.plan.job.precision, notes);
        st = price (in, &x, gpu, NULL, notes, err);
    }
    free (gpu);
    api_plan_release (&x);
    return st;
}

static const struct cli_option time_options[] = {
    {"placement", 0, "default|PLAN",
     "default: Megatron's rank order over the nodes as listed; PLAN: the ranks of a plan "
     "file",
     CLI_TEXT (placement), .usual = "default"},
    {CLI_LAYERS},
    {TRACE},
    {VERBOSE},
    {CLI_COST_MODEL},
    {CLI_JSON},
    {0}};

const struct cli_command cli_time = {
    .arguments = "CLUSTER MODEL",
    .help = "Estimate the time of one optimiser step, in seconds.\v"
            "Example: linkwise time examples/clusters/h100-17.json llama-2-70b --seq "
            "4096 --global-batch 1024 --tp 8 --pp 4 --dp 4",
    .options = {.line = time_options},
    .parts = {{&cli_job_options, offsetof (INPUT, job),
               "The job (degrees default to 1, --dp to the most that the GPUs allow):",
               1}},
    .places =
        {2, 2, "CLUSTER and MODEL",
         "CLUSTER and MODEL are required, as in: linkwise time \"4x8 h100\" llama-3-8b "
         "--tp 8"},
    .at = {CLI_PLACE (cluster), CLI_PLACE (model)},
    CLI_RUN (run_time)};

/* ---- eval ---- */

static enum status run_eval (void *input, struct notes *notes, struct error *err)
{
    const struct time_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    struct report_whatif what_if = {0};
    int *gpu = NULL;
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    THEN (st, api_plan_gpus (&x, x.cluster->c, &gpu, notes, err));
    if (st == ST_OK)
        costmodel_note_types (x.cluster->c, x.plan.job.precision, notes);
    if (st == ST_OK && in->what_if)
        st = report_whatif_read (x.cluster->c, in->what_if, &what_if, err);
    if (st == ST_OK && in->what_if)
        st = run_what_if (in, &x, gpu, &what_if, err);
    THEN (st, price (in, &x, gpu, in->what_if ? &what_if : NULL, notes, err));
    report_whatif_release (&what_if);
    free (gpu);
    api_plan_release (&x);
    return st;
}

static const struct cli_option eval_options[] = {
    {TRACE}, {VERBOSE}, {CLI_COST_MODEL}, {CLI_WHAT_IF}, {CLI_JSON}, {0}};

const struct cli_command cli_eval = {
    .arguments = "PLAN [CLUSTER]",
    .help = "Estimate the step time of a plan, on CLUSTER or on the plan's own cluster.\v"
            "Example: linkwise eval plan.json examples/clusters/h100-17.json\n\n"
            "The plan may be edited by hand: the estimate in the file is ignored.",
    .options = {.line = eval_options},
    .places = {1, 2, "PLAN and CLUSTER",
               "PLAN is required, as in: linkwise eval plan.json"},
    .at = {CLI_PLACE (plan), CLI_PLACE (cluster)},
    CLI_RUN (run_eval)};
