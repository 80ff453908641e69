/* linkwise import-job: a running job's own files and log, what it is estimated to do, and what
 * would make it faster. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "jobs/jobs.h"
#include "report/explain.h"

struct import_input {
    struct cli_list file;
    struct jobs_given given;
    const char *cluster, *profile, *out, *append;
    bool json, no_plan;
};

#define INPUT struct import_input

static const struct cli_option options[] = {
    {"gpus", 0, "N", "GPUs of the job, where its files do not say",
     CLI_INT (given.gpus, 1, 1 << 24)},
    {"gpus-per-node", 0, "N", "GPUs of a node (default 8)",
     CLI_INT (given.gpus_per_node, 1, 1 << 16)},
    {"gpu", 'g', "TYPE", "GPU type, where no log names it (`linkwise gpus` lists them)",
     CLI_TEXT (given.gpu)},
    {"seq", 0, "TOKENS", "tokens per sequence, where the files do not say",
     CLI_INT (given.seq, 1, 1 << 30)},
    {"cluster", 0, "CLUSTER",
     "the machines, a file or one line (default: nodes with nominal links)",
     CLI_TEXT (cluster)},
    {"profile", 0, "NAME|FILE", "framework profile (default: the framework's)",
     CLI_TEXT (profile)},
    {"no-plan", 0, NULL, "estimate alone: look for no change and no plan",
     CLI_FLAG (no_plan)},
    {"output", 'o', "RUNS.csv",
     "write the job's rows as a runs file; - is standard output", CLI_TEXT (out),
     .alone = "--output"},
    {"append", 0, "RUNS.csv", "add the job's rows to a runs file", CLI_TEXT (append)},
    {CLI_JSON},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct import_input *in = input;
    int stdins = cli_is_dash (in->cluster);

    for (int i = 0; i < in->file.n; i++)
        stdins += cli_is_dash (in->file.arg[i]);
    cli_one_stdin (stdins, state);
    if (in->out && in->append)
        argp_error (state,
                    "--output writes a runs file anew, --append adds to one: leave "
                    "out one of the two");
}

/* What one call is about. */
struct import {
    const struct import_input *in;
    struct jobs jobs;
    const struct jobs_job *job; /* the last */
    struct calibrate_runs runs; /* its row, read as any runs file's */
    struct calibrate_run *run;
    struct linkwise_plan work; /* the job as it ran */
    int *gpu;                  /* [world] */
    struct costmodel_estimate estimate;
    double step_s, step_factor; /* estimated, and its 90 % interval */
    double peak_bytes, peak_factor, chance;
    struct report_explained explained;
    struct report_gain *change; /* the best single one; NULL: none gains */
    struct report_best best;    /* the best plan; fits: false where none was found */
    bool searched;
};

/* ---- reading ---- */

/* The rows, read back as `validate` reads them: one reader for both. */
static enum status read_row (struct import *x, struct error *err)
{
    struct text t = {0};
    enum status st;

    jobs_header_text (&t);
    st = jobs_row_text (x->job, &t, err);
    if (st == ST_OK)
        st = calibrate_runs_parse (cli_input_name (x->in->file.arg[0]), text_str (&t),
                                   t.len, &x->runs, err);
    text_free (&t);
    if (st == ST_OK)
        x->run = &x->runs.run[0];
    return st;
}

/* A preset's or config.json's shape is exact; a row may not have room for all of it. */
static void take_model (struct import *x, struct notes *notes)
{
    double row = workload_model_params (&x->run->model) / 1e9,
           own = workload_model_params (&x->job->model) / 1e9;

    if (!x->job->has_model)
        return;
    if (fabs (row / own - 1) > 0.005)
        notes_add (
            notes,
            "a runs file cannot hold all of %s's shape: its row reads as %.3g billion "
            "parameters, the estimate here is of %.3g",
            x->job->model.name, row, own);
    x->run->model = x->job->model;
}

static enum status read_cluster (struct import *x, struct notes *notes, struct error *err)
{
    struct topology_cluster *c = NULL;

    if (x->work.cluster) {
        if (workload_world (&x->run->config.deg) > x->work.cluster->c->n_gpus)
            return err_set (err, ST_INVALID, "the job has %lld ranks, %s %d GPUs",
                            workload_world (&x->run->config.deg),
                            x->work.cluster->c->name, x->work.cluster->c->n_gpus);
        return ST_OK;
    }
    notes_add (notes,
               "links are nominal: what such machines usually have (--cluster takes "
               "measured ones)");
    TRY (calibrate_cluster (x->run, &x->work.profile, &c, err));
    return api_cluster_of (c, NULL, &x->work.cluster, err);
}

static enum status read_job (struct import *x, struct notes *notes, struct error *err)
{
    const struct import_input *in = x->in;
    struct workload_profile forced;
    struct workload_plan *plan = &x->work.plan;
    const struct calibrate_run *run;
    size_t pp;

    TRY (read_row (x, err));
    run = x->run;
    if (in->profile)
        TRY (workload_profile_read (in->profile, &forced, notes, err));
    TRY (calibrate_profiles (&x->runs, in->profile ? &forced : NULL, &x->work.profile,
                             err));
    take_model (x, notes);
    TRY (read_cluster (x, notes, err));
    plan->model = run->model;
    plan->job = run->job;
    plan->config = run->config;
    plan->memory_limit_pct = memest_usual_limit_pct (MEMEST_LINKWISE);
    snprintf (plan->memory_model, sizeof plan->memory_model, "%s",
              memest_model_name (MEMEST_LINKWISE));
    pp = (size_t) run->config.deg.pp;
    plan->layers_per_stage = malloc (pp * sizeof (int));
    x->gpu = malloc ((size_t) workload_world (&run->config.deg) * sizeof *x->gpu);
    if (!plan->layers_per_stage || !x->gpu)
        return err_nomem (err);
    memcpy (plan->layers_per_stage, run->layers + (size_t) x->work.profile.partition * pp,
            pp * sizeof (int));
    topology_gpus_in_order (x->work.cluster->c, (int) workload_world (&run->config.deg),
                            x->gpu);
    return ST_OK;
}

/* ---- estimating ---- */

static enum status estimate (struct import *x, struct notes *notes, struct error *err)
{
    const struct workload_profile *p = &x->work.profile;
    struct costmodel_problem priced = api_plan_priced (&x->work, x->work.cluster->c);
    double open = 0, need;

    TRY (calibrate_step (x->run, x->work.cluster->c, p, &x->step_s, &open, err));
    TRY (costmodel_estimate (&priced, x->gpu, true, &x->estimate, err));
    x->step_factor = workload_interval (calibrate_time_spread (x->run, p, open));
    x->peak_bytes = calibrate_peak (x->run, p, MEMEST_LINKWISE);
    x->peak_factor = cli_peak_interval (MEMEST_LINKWISE, p);
    need = calibrate_need (x->run, p, MEMEST_LINKWISE);
    x->chance = memest_chance (MEMEST_LINKWISE, p, need, x->run->gpu_bytes);
    costmodel_note_types (x->work.cluster->c, x->work.plan.job.precision, notes);
    if (x->run->n_ways > 0)
        notes_add (
            notes,
            "the files leave open what is recomputed, the micro-batch or the "
            "precision: the step is the mean of %d usual readings, the plan is compared "
            "with the likeliest",
            x->run->n_ways);
    return ST_OK;
}

/* Less of a step is not worth a word. */
#define SAVES_LEAST 1e-3

static void show (void *context, double share, const char *what)
{
    progress_part (context, share, "looking at %.100s", what);
}

/* Settings alone: of nominal links there is nothing to mend. */
static void pick_change (struct import *x)
{
    for (int i = 0; i < x->explained.n_gains && !x->change; i++) {
        struct report_gain *g = &x->explained.gain[i];

        if (g->kind == REPORT_SETTING && !g->is_change && g->share > SAVES_LEAST)
            x->change = g;
    }
}

/* The best plan on as many nodes as the job has. */
static enum status find_plan (struct import *x, const struct mapper_problem *own,
                              struct error *err)
{
    struct mapper_problem p = *own;
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_nodes nodes = {0};
    const struct topology_cluster *c = p.cluster;
    int world = (int) workload_world (&x->work.plan.config.deg), last = x->gpu[world - 1];
    bool *marks = NULL;
    enum status st = ST_OK;

    nodes.nodes = c->node_of_gpu[last] + 1;
    p.axes = mapper_axes_free ();
    p.axes.optimizer_bytes = own->axes.optimizer_bytes;
    p.limit_free = true;
    settings.tie = MAPPER_USUAL_TIE;
    if (nodes.nodes < c->n_nodes)
        st = mapper_choose_nodes (&nodes, &p, &marks, err);
    if (st == ST_OK)
        st = report_find_best (&p, &settings, &x->best, err);
    free (marks);
    x->searched = st == ST_OK;
    return st;
}

static enum status look (struct import *x, struct error *err)
{
    struct mapper_problem p = api_plan_problem (&x->work, x->work.cluster->c);
    struct progress progress;
    enum status st;

    p.running = NULL;
    cli_progress_start (&progress);
    st = report_explain (&p, &x->work.plan, x->gpu, show, &progress, &x->explained, err);
    if (st == ST_OK) {
        pick_change (x);
        progress_show (&progress, "looking for the best plan");
        st = find_plan (x, &p, err);
    }
    progress_end (&progress);
    return st;
}

/* Is a gain more than what estimates of one job may miss? */
static const char *how_sure (const struct import *x, double share)
{
    return share > x->work.profile.time.residual ? "likely: more than the model's error"
                                                 : "unsure: within the model's error";
}

static double plan_share (const struct import *x)
{
    return 1 - x->best.plan.estimate.step_s / x->estimate.step_s;
}

/* Of running out of memory, by the plan's fullest stage. */
static double plan_chance (const struct import *x)
{
    const struct mapper_result *r = &x->best.plan;
    double most = 0;

    for (int i = 0; i < r->config.deg.pp; i++)
        most = fmax (most, memest_chance (MEMEST_LINKWISE, &x->work.profile,
                                          r->memory[i].peak_bytes, r->gpu_bytes[i]));
    return most;
}

/* ---- printing ---- */

static void print_read (const struct import *x)
{
    const struct workload_plan *p = &x->work.plan;
    char config[CLI_CONFIG_TEXT];

    cli_print ("read     %s\n", text_str (&x->jobs.formats));
    cli_print (
        "model    %s: %.2f billion parameters; %d sequences of %d tokens a step, %s\n",
        p->model.name, workload_model_params (&p->model) / 1e9, p->job.global_batch,
        p->job.seq, workload_precision_name (p->job.precision));
    cli_print ("job      %s\n", cli_config_text (&p->config, config));
    cli_print ("on       %d x %s, framework profile %s\n", x->run->gpus,
               x->run->part[0].type->name, x->work.profile.name);
}

/* "12 % above the estimate, outside its interval" */
static void print_verdict (double measured, double estimated, double factor)
{
    double ratio = measured / estimated;

    cli_print ("         %.1f %% %s the estimate, %s its 90 %% interval\n",
               100 * fabs (ratio - 1), ratio > 1 ? "above" : "below",
               ratio > factor || ratio < 1 / factor ? "outside" : "inside");
}

static void print_measured (const struct import *x)
{
    const struct calibrate_run *run = x->run;
    char text[CLI_STEP_TEXT], short_text[32];
    bool timed = !isnan (run->iter_time_s), weighed = !isnan (run->peak_bytes);

    cli_print ("step     estimated %s", cli_step_text (x->step_s, x->step_factor, text));
    if (timed)
        cli_print (
            "\n         measured %s (median of %d lines, half of them %.4g to %.4g s)\n",
            cli_seconds (run->iter_time_s, short_text), x->job->n_steps,
            x->job->step_low_s, x->job->step_high_s);
    else
        cli_print ("; none measured\n");
    if (timed)
        print_verdict (run->iter_time_s, x->step_s, x->step_factor);
    cli_print ("memory   estimated %.1f GiB%s; chance of running out %s\n",
               x->peak_bytes / UNITS_GIB,
               cli_peak_text (x->peak_bytes, x->peak_factor, text),
               cli_chance (x->chance, short_text));
    if (weighed) {
        cli_print ("         measured %.1f GiB", run->peak_bytes / UNITS_GIB);
        if (isfinite (x->job->reserved_gb) && isfinite (x->job->allocated_gb))
            cli_print (" (allocated %.1f, reserved %.1f)", x->job->allocated_gb,
                       x->job->reserved_gb);
        cli_print ("\n");
        print_verdict (run->peak_bytes, x->peak_bytes, x->peak_factor);
    }
    if (run->oom == 1)
        cli_print ("         the job ran out of memory\n");
}

/* A step, and what the measured one would become. */
static void print_gain (const struct import *x, double step_s, double share)
{
    char text[32], then[32];

    cli_print ("         saves %.1f %%: %s estimated", 100 * share,
               cli_seconds (step_s, text));
    if (!isnan (x->run->iter_time_s))
        cli_print (", %s of the %s measured",
                   cli_seconds (x->run->iter_time_s * (1 - share), then),
                   cli_seconds (x->run->iter_time_s, text));
    cli_print ("; %s\n", how_sure (x, share));
}

static void print_change (const struct import *x)
{
    const struct report_gain *g = x->change;

    if (!g) {
        cli_print ("change   no single setting saves 0.1 %% or more\n");
        return;
    }
    cli_print ("change   %s\n", g->what);
    print_gain (x, x->estimate.step_s * (1 - g->share), g->share);
}

static void print_plan (const struct import *x)
{
    const struct report_best *b = &x->best;
    char config[CLI_CONFIG_TEXT], chance[32], step[32];

    if (!b->fits) {
        cli_print ("plan     none: %s\n", b->why);
        return;
    }
    if (plan_share (x) <= SAVES_LEAST) {
        cli_print ("plan     none that was found, with a chance of running out of %s at "
                   "most, is "
                   "faster than what runs: %s is the best, at %s\n",
                   cli_chance (plan_chance (x), chance),
                   cli_config_text (&b->plan.config, config),
                   cli_seconds (b->plan.estimate.step_s, step));
        return;
    }
    cli_print ("plan     %s\n", cli_config_text (&b->plan.config, config));
    print_gain (x, b->plan.estimate.step_s, plan_share (x));
    cli_print ("         gap %.2f %% at most to the best plan\n",
               100 * (b->plan.estimate.step_s / b->plan.lower_bound_s - 1));
}

static void print_unknown (const struct import *x)
{
    const struct jobs *j = &x->jobs;

    if (j->n_unknown == 0)
        return;
    cli_print ("\nnot known, and not in the estimate:\n");
    for (int i = 0; i < j->n_unknown; i++) {
        cli_print ("  %s", file_title (j->unknown[i].file));
        if (j->unknown[i].line > 0)
            cli_print (":%d", j->unknown[i].line);
        cli_print ("  %s = %.60s\n", j->unknown[i].key, j->unknown[i].value);
    }
}

static void print (const struct import *x)
{
    print_read (x);
    cli_print ("\n");
    print_measured (x);
    cli_print ("\n");
    cli_print_breakdown (&x->estimate);
    if (!x->in->no_plan) {
        cli_print ("\n");
        print_change (x);
        print_plan (x);
    }
    print_unknown (x);
    if (x->in->out || x->in->append)
        cli_print ("\n%d %s %s %s\n", x->jobs.n, x->jobs.n == 1 ? "row" : "rows",
                   x->in->out ? "written to" : "added to",
                   x->in->out ? x->in->out : x->in->append);
}

/* ---- JSON ---- */

static json_t *row_json (const struct import *x)
{
    json_t *row = json_object ();
    const struct csv_table *t = &x->runs.table;

    for (int i = 0; i < t->columns; i++)
        json_object_set_new (row, t->header[i], json_string (t->cell[i]));
    return row;
}

static json_t *measured_json (const struct import *x)
{
    return json_pack (
        "{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "step_s",
        json_number_or_null (x->run->iter_time_s), "step_low_s",
        json_number_or_null (x->job->step_low_s), "step_high_s",
        json_number_or_null (x->job->step_high_s), "lines", x->job->n_steps, "peak_bytes",
        json_number_or_null (x->run->peak_bytes), "peak_allocated_bytes",
        json_number_or_null (x->job->allocated_gb * UNITS_GIB), "peak_reserved_bytes",
        json_number_or_null (x->job->reserved_gb * UNITS_GIB), "oom",
        x->run->oom < 0 ? json_null () : json_boolean (x->run->oom));
}

static json_t *gain_json (const struct import *x, json_t *doc, double step_s,
                          double share)
{
    json_object_set_new (doc, "step_s", json_real (step_s));
    json_object_set_new (doc, "gain", json_real (share));
    json_object_set_new (doc, "measured_step_s",
                         json_number_or_null (x->run->iter_time_s * (1 - share)));
    json_object_set_new (doc, "sure",
                         json_boolean (share > x->work.profile.time.residual));
    return doc;
}

static json_t *plan_json (const struct import *x)
{
    const struct report_best *b = &x->best;
    json_t *doc;

    if (!x->searched || !b->fits || plan_share (x) <= SAVES_LEAST)
        return json_null ();
    doc = gain_json (x, report_config_json (&b->plan.config), b->plan.estimate.step_s,
                     plan_share (x));
    json_object_set_new (doc, "lower_bound_s", json_real (b->plan.lower_bound_s));
    return doc;
}

static json_t *unknown_json (const struct jobs *j)
{
    json_t *list = json_array ();

    for (int i = 0; i < j->n_unknown; i++)
        json_array_append_new (
            list, json_pack ("{s:s, s:o, s:s, s:s}", "file",
                             file_title (j->unknown[i].file), "line",
                             j->unknown[i].line > 0 ? json_integer (j->unknown[i].line)
                                                    : json_null (),
                             "option", j->unknown[i].key, "value", j->unknown[i].value));
    return list;
}

static enum status print_json (const struct import *x, struct error *err)
{
    json_t *step = costmodel_estimate_to_json (&x->estimate),
           *memory = json_pack ("{s:f, s:o}", "peak_bytes", x->peak_bytes,
                                "oom_probability", json_number_or_null (x->chance)),
           *doc = json_pack ("{s:i, s:s, s:i}", "version", 1, "read",
                             text_str (&x->jobs.formats), "rows", x->jobs.n);

    cli_interval_json (memory, x->peak_bytes, x->peak_factor, "peak_low_bytes",
                       "peak_high_bytes");
    json_object_set_new (step, "step_s", json_real (x->step_s));
    cli_interval_json (step, x->step_s, x->step_factor, "step_low_s", "step_high_s");
    json_object_set_new (doc, "row", row_json (x));
    json_object_set_new (doc, "model", workload_model_to_json (&x->work.plan.model));
    json_object_set_new (doc, "config", report_config_json (&x->work.plan.config));
    json_object_set_new (doc, "measured", measured_json (x));
    json_object_set_new (doc, "estimate", step);
    json_object_set_new (doc, "memory", memory);
    json_object_set_new (doc, "best_change",
                         !x->change
                             ? json_null ()
                             : gain_json (x, json_pack ("{s:s}", "what", x->change->what),
                                          x->estimate.step_s * (1 - x->change->share),
                                          x->change->share));
    json_object_set_new (doc, "best_plan", plan_json (x));
    json_object_set_new (doc, "unknown", unknown_json (&x->jobs));
    json_object_set_new (doc, "parts",
                         cli_parts_json (&x->work.profile, x->work.cluster->c->node,
                                         x->work.cluster->c->n_nodes));
    return cli_print_json (doc, err);
}

/* ---- the runs file ---- */

/* What the file has already, with its last newline. */
static enum status old_rows (const char *path, struct text *out, struct error *err)
{
    struct text header = {0};
    char *data;
    size_t len;
    enum status st = ST_OK;

    TRY (file_read (path, &data, &len, err));
    jobs_header_text (&header);
    if (len < header.len || memcmp (data, text_str (&header), header.len) != 0)
        st = err_set (err, ST_INVALID,
                      "%s: the header is not that of the rows that would be added: write "
                      "them with -o and join the files by hand",
                      path);
    else
        text_add_mem (out, data, len);
    if (st == ST_OK && data[len - 1] != '\n')
        text_add (out, "\n");
    text_free (&header);
    free (data);
    return st;
}

static enum status write_rows (const struct import *x, struct error *err)
{
    const char *path = x->in->out ? x->in->out : x->in->append;
    struct text t = {0};
    enum status st = ST_OK;

    if (!path)
        return ST_OK;
    if (x->in->append)
        st = old_rows (path, &t, err);
    else
        jobs_header_text (&t);
    for (int i = 0; i < x->jobs.n && st == ST_OK; i++)
        st = jobs_row_text (&x->jobs.job[i], &t, err);
    if (st == ST_OK)
        st = t.failed ? err_nomem (err) : file_write (path, text_str (&t), t.len, err);
    text_free (&t);
    return st;
}

/* ---- the command ---- */

static enum status read_files (struct import *x, struct notes *notes, struct error *err)
{
    const struct import_input *in = x->in;
    struct jobs_given given = in->given;

    if (in->cluster) {
        TRY (cli_cluster_read (in->cluster, &x->work.cluster, notes, err));
        given.file_gpu = x->work.cluster->c->node[0].type->name;
        given.file_gpus = x->work.cluster->c->n_gpus;
    }
    TRY (jobs_read (in->file.arg, in->file.n, &given, &x->jobs, notes, err));
    x->job = &x->jobs.job[x->jobs.n - 1];
    return ST_OK;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct import x = {.in = input};
    enum status st = read_files (&x, notes, err);

    if (st == ST_OK)
        st = read_job (&x, notes, err);
    if (st == ST_OK)
        st = estimate (&x, notes, err);
    if (st == ST_OK && !x.in->no_plan)
        st = look (&x, err);
    if (st == ST_OK)
        st = write_rows (&x, err);
    if (st == ST_OK && x.in->json)
        st = print_json (&x, err);
    else if (st == ST_OK && !cli_is_dash (x.in->out))
        print (&x);
    free (x.estimate.unmeasured);
    free (x.gpu);
    report_explained_release (&x.explained);
    mapper_result_release (&x.best.plan);
    mapper_info_release (&x.best.info);
    calibrate_runs_release (&x.runs);
    api_plan_release (&x.work);
    jobs_release (&x.jobs);
    return st;
}

const struct cli_command cli_import_job = {
    .arguments = "FILE...",
    .help =
        "Read a training job's configuration files and log, and print the estimate "
        "beside the measurement, where the time goes, the best single change, and the "
        "best plan.\v"
        "Example: linkwise import-job pretrain.sh train.log --gpu h100 -o runs.csv\n\n"
        "FILE is a Megatron-LM command line or script, YAML of NeMo, Megatron Bridge or "
        "nanotron, TOML of TorchTitan, JSON of DeepSpeed, a model's config.json, or a "
        "log of any of them; - is standard input.  Scripts are read, never run.  Where "
        "files and log contradict each other, the log counts.  Without a log nothing "
        "is compared.",
    .options = {.line = options, .check = check},
    .list = true,
    .places = {.needed = 1, .most = JOBS_FILES_MAX, .required = "FILE is required"},
    .at = {CLI_LIST (file)},
    CLI_RUN (run)};
