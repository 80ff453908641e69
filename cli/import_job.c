/* linkwise import-job: a running job's own files and log, what it is estimated to do, and what
 * would make it faster. */
#include "cli/import_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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
        usage_error (state,
                     "--output writes a runs file anew, --append adds to one: leave "
                     "out one of the two");
}

/* ---- reading ---- */

/* The rows, read back as `validate` reads them: one reader for both. */
static enum status read_row (struct import *x, struct error *err)
{
    struct text t = {0};
    enum status st;

    jobs_header_text (&t);
    st = jobs_row_text (x->job, &t, err);
    THEN (st, calibrate_runs_parse (cli_input_name (x->in->file.arg[0]), text_str (&t),
                                    t.len, &x->runs, err));
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
    if (!run->chunks)
        return ST_OK;
    pp *= (size_t) run->config.deg.vpp; /* chunks */
    if (!(plan->layers_per_chunk = malloc (pp * sizeof *run->chunks)))
        return err_nomem (err);
    memcpy (plan->layers_per_chunk, run->chunks, pp * sizeof *run->chunks);
    return ST_OK;
}

/* ---- estimating ---- */

static enum status estimate (struct import *x, struct notes *notes, struct error *err)
{
    const struct workload_profile plain = x->work.profile, *p = &plain;
    struct costmodel_problem priced;
    double open = 0;

    TRY (calibrate_step (x->run, x->work.cluster->c, p, &x->step_s, &open, err));
    /* Parts, changes and plans are of the job as it is. */
    x->work.profile = calibrate_profile_as_said (x->run, p);
    priced = api_plan_priced (&x->work, x->work.cluster->c);
    TRY (costmodel_estimate (&priced, x->gpu, true, &x->estimate, err));
    x->step_factor = workload_interval (calibrate_time_spread (x->run, p, open));
    x->peak_bytes = calibrate_peak (x->run, p);
    x->peak_factor = calibrate_peak_interval (x->run, p);
    x->chance = calibrate_chance (x->run, p);
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
    THEN (st, report_find_best (&p, &settings, NULL, &x->best, err));
    free (marks);
    x->searched = st == ST_OK;
    return st;
}

static enum status look (struct import *x, struct error *err)
{
    struct mapper_problem p = api_plan_problem (&x->work, x->work.cluster->c);
    struct progress progress;
    enum status st;

    p.step_error = api_step_error;
    x->step_error = api_step_error (&p);
    cli_progress_start (&progress);
    st = report_explain (&p, &x->work.plan, x->gpu, cli_looking, &progress, &x->explained,
                         err);
    /* Settings alone: of nominal links there is nothing to mend. */
    for (int i = 0; st == ST_OK && i < x->explained.n_gains && !x->change; i++) {
        struct report_gain *g = &x->explained.gain[i];

        if (g->kind == REPORT_SETTING && !g->is_change && g->share > IMPORT_SAVES_LEAST)
            x->change = g;
    }
    if (st == ST_OK) {
        progress_show (&progress, "looking for the best plan");
        st = find_plan (x, &p, err);
    }
    progress_end (&progress);
    return st;
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
    THEN (st, t.failed ? err_nomem (err) : file_write (path, text_str (&t), t.len, err));
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

    THEN (st, read_job (&x, notes, err));
    THEN (st, estimate (&x, notes, err));
    if (st == ST_OK && !x.in->no_plan)
        st = look (&x, err);
    THEN (st, write_rows (&x, err));
    if (st == ST_OK && x.in->json)
        st = import_print_json (&x, err);
    else if (st == ST_OK && !cli_is_dash (x.in->out))
        import_print (&x);
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
        "FILE is a command line or script of Megatron-LM or Hugging Face's Trainer, YAML "
        "of NeMo, Megatron Bridge, nanotron, the Trainer or accelerate config, TOML of "
        "TorchTitan, JSON of DeepSpeed or the Trainer, a model's config.json, or a log "
        "of any of them; - is standard input.  Scripts are read, never run.  Where files "
        "and log contradict each other, the log counts.  Without a log nothing is "
        "compared.",
    .options = {.line = options, .check = check},
    .list = true,
    .places = {.needed = 1,
               .most = JOBS_FILES_MAX,
               .required =
                   "FILE is required, as in: linkwise import-job pretrain.sh train.log"},
    .at = {CLI_LIST (file)},
    CLI_RUN (run)};
