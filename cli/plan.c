/* linkwise plan: the search, and its answer. */
#include "cli/plan.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/threads.h"

#define INPUT struct plan_input

static const struct cli_option options[] = {
    {"nodes", 0, "N", "use at most N nodes; the search picks them",
     CLI_INT (nodes.nodes, 1, 1 << 30)},
    {"spares", 0, "N", "leave at least N nodes idle", CLI_INT (nodes.spares, 0, 1 << 30)},
    {"only", 0, "HOSTLIST",
     "use only these nodes, as in n[01-16,20]; rack:r[1-2] means all nodes in these "
     "racks or under these switches; @FILE, @- reads names from a file, as sinfo prints "
     "them",
     CLI_TEXT (nodes.only)},
    {"exclude", 0, "HOSTLIST", "do not use these nodes; @FILE, @- too",
     CLI_TEXT (nodes.exclude)},
    {"pin", 0, "HOSTLIST", "these nodes must hold ranks; @FILE, @- too",
     CLI_TEXT (nodes.pin)},
    {"granularity", 0, "auto|node|gpu",
     "node: each node holds consecutive ranks; gpu: a rank may go to any GPU; auto "
     "(default): node, unless gpu gains over 0.5 %",
     CLI_WORD (granularity)},
    {CLI_COST_MODEL},
    {"objective", 0, "step|gpu-hours|goodput",
     "what to minimise: the step time (default), step time x GPUs in use, or step time / "
     "the share of time that a job trains when GPUs fail",
     CLI_WORD (objective)},
    {"tie", 0, "PCT",
     "plans within PCT % of the best count as equal: take the simplest, in the default "
     "rank order if possible (default 0.1; 0: take the best)",
     CLI_FROM_0 (tie_pct, 100)},
    {"effort", 0, "N",
     "N times the search effort where nodes or links differ (default 1)",
     CLI_INT (settings.effort, 1, 1000)},
    {"time-limit", 0, "S", "stop after S seconds with the best plan so far",
     CLI_ABOVE (settings.time_limit_s, 0, 1e9)},
    {"threads", 0, "N", "number of threads (default: all cores)",
     CLI_INT (settings.threads, 1, THREADS_MOST)},
    {"seed", 0, "N", "the same seed gives the same plan (default 1)",
     CLI_INT (seed, 0, 1 << 30), .usual = "1"},
    {"top", 0, "N",
     "list the N best configurations in the plan file, and with -v (default 5)",
     CLI_INT (settings.top, 0, 10000)},
    {CLI_WHAT_IF},
    {"output", 'o', "PLAN", "write the plan file; - is standard output", CLI_TEXT (out)},
    {"json", 'j', NULL,
     "print the plan file, and more of the search, instead of a summary",
     CLI_FLAG (json)},
    {"verbose", 'v', NULL,
     "after the answer also print the cluster, what the search did, where the step goes, "
     "and the best configurations",
     CLI_FLAG (verbose)},
    {0}};

static void init (void *input)
{
    struct plan_input *in = input;

    in->settings = mapper_settings_default ();
    in->tie_pct = 100 * MAPPER_USUAL_TIE;
}

static void check (void *input, struct argp_state *state)
{
    const struct plan_input *in = input;
    const char *from = in->from.file;

    if (!from && (!in->cluster || !in->model))
        usage_error (state,
                     "CLUSTER and MODEL are required, as in: linkwise plan \"4x8 h100\" "
                     "%s",
                     in->cluster && workload_preset_meant (in->cluster) ? in->cluster
                                                                        : "llama-3-8b");
    if (!from && plan_from_asked (&in->from))
        usage_error (state,
                     "--move-cost, --remaining-steps and --degrees need --from PLAN");
    if (from && plan_passes_asked (&in->passes))
        usage_error (state, "--links, --heldout-links and --robust compare with the "
                            "default order, --from with the old plan: leave out one");
    if (in->what_if && (from || plan_passes_asked (&in->passes)))
        usage_error (state, "--what-if is about a plan of its own: leave out %s",
                     from ? "--from" : "--links, --heldout-links and --robust");
    cli_one_stdin (
        cli_is_dash (in->cluster) + cli_is_dash (in->model) + cli_is_dash (from) +
            in->passes.n_stdins + cli_hosts_stdin (in->nodes.only) +
            cli_hosts_stdin (in->nodes.exclude) + cli_hosts_stdin (in->nodes.pin),
        state);
}

/* ---- progress ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt (int sig)
{
    (void) sig;
    interrupted = 1;
}

/* Most configurations are settled by others' bounds, many at once near the end: of a search that is
 * under way only its time limit says how long it takes. */
static bool on_progress (void *context, long done, long total, double best_step_s,
                         double lower_bound_s)
{
    char step[32];

    if (interrupted && !isfinite (best_step_s))
        progress_show (context, "stopping at the first plan; Ctrl-C again ends at once");
    else if (lower_bound_s <= 0)
        progress_part (context, total > 0 ? (double) done / (double) total : 0,
                       "bounding: %ld of %ld configurations", done, total);
    else if (!isfinite (best_step_s))
        progress_show (context, "searching: %ld of %ld settled, no plan yet", done,
                       total);
    else
        progress_show (context, "searching: %ld of %ld settled, best %s, gap %.2f %%",
                       done, total, cli_seconds (best_step_s, step),
                       100.0 * (best_step_s / lower_bound_s - 1.0));
    return interrupted;
}

static bool is_interrupted (void *context)
{
    (void) context;
    return interrupted;
}

/* ---- the answer ---- */

static enum status answer (const struct planning *x, struct error *err)
{
    const struct plan_input *in = x->in;
    bool to_stdout = in->json || cli_is_dash (in->out);
    json_t *doc = NULL;
    enum status st =
        api_result_document (&x->p, &x->r, &x->info, x->work.cluster, &doc, err);

    if (st == ST_OK && in->from.file)
        json_object_set_new (
            doc, "replan",
            mapper_replanned_to_json (&x->p, &in->from.done, in->from.file));
    if (st == ST_OK && in->passes.priced)
        mapper_heldout_to_json (&in->passes.done, doc);
    if (st == ST_OK && in->out && !cli_is_dash (in->out))
        st = json_write (in->out, doc, err);
    if (st == ST_OK && in->json) {
        json_t *memory = json_object_get (doc, "memory");

        cli_interval_json (json_object_get (doc, "estimate"), x->r.estimate.step_s,
                           plan_step_interval (x), "step_low_s", "step_high_s");
        cli_interval_json (memory, json_member_number (memory, "peak_bytes"),
                           plan_peak_interval (x), "peak_low_bytes", "peak_high_bytes");
        json_object_set_new (
            doc, "parts",
            cli_parts_json (x->p.profile, x->p.cluster->node, x->p.cluster->n_nodes));
    }
    if (st == ST_OK && in->json && in->what_if)
        json_object_set_new (doc, "what_if", report_whatif_to_json (&x->what_if));
    if (st == ST_OK && to_stdout)
        st = json_write ("-", doc, err);
    json_decref (doc);
    if (st != ST_OK || to_stdout)
        return st;
    return plan_answer_print (x, err);
}

/* Why nothing fits, and what would. */
static void print_miss (const struct planning *x, const char *why)
{
    struct text words = {0};

    text_add (&words, "linkwise plan: %s: %s on %d GPU%s of %s", why, x->p.model->name,
              x->p.cluster->n_gpus, TEXT_S (x->p.cluster->n_gpus), x->p.cluster->name);
    if (words.s)
        text_clean_line (words.s);
    text_add (&words, "\n");
    mapper_explain_miss (&x->p, &x->info, &words);
    text_clean (&words);
    fputs (text_str (&words), stderr);
    text_free (&words);
}

/* The plan, and the same search on the changed clusters. */
static enum status run_what_if (struct planning *x, struct error *err)
{
    struct mapper_problem asked = x->p; /* without the chance that the search chose */
    struct mapper_settings quiet = x->in->settings;
    struct report_whatif_plan plan = {.p = &asked,
                                      .nodes = &x->in->nodes,
                                      .settings = &quiet,
                                      .config = &x->r.config,
                                      .layers = x->r.layers,
                                      .gpu = x->r.gpu,
                                      .lower_bound_s = x->r.lower_bound_s};

    asked.oom_risk = x->work.plan.oom_risk;
    asked.axes = x->in->job.axes;
    quiet.progress = NULL;
    return cli_whatif_run (&plan, &x->what_if, err);
}

static enum status search (struct planning *x, struct error *err)
{
    struct plan_input *in = x->in;
    struct progress progress;
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, old;
    enum status st;

    cli_progress_start (&progress);
    if (in->settings.time_limit_s > 0)
        progress.until_s = progress.start_s + in->settings.time_limit_s;
    in->settings.progress = on_progress;
    in->settings.stop = is_interrupted;
    in->settings.context = &progress;
    sigaction (SIGINT, &act, &old);
    st = in->from.file
             ? mapper_replan (&x->p, &x->work.plan, &in->settings, &in->from.how, &x->r,
                              &x->info, &in->from.done, err)
             : mapper_search_used (&x->p, &x->work.profile, &in->settings, &x->r,
                                   &x->info, err);
    if (st == ST_OK && in->from.file)
        st = mapper_replanned_use (&x->p, &x->work.profile, &x->work.plan, &in->settings,
                                   &x->r, &x->info, &in->from.done, err);
    else if (st == ST_OK)
        st = plan_passes_price (&in->passes, &x->p, &in->settings, &x->r, err);
    sigaction (SIGINT, &old, NULL);
    progress_end (&progress);
    if (st == ST_OK && in->what_if)
        st = run_what_if (x, err);
    if (st == ST_OK)
        return answer (x, err);
    if (x->info.missed) {
        print_miss (x, err->text);
        err->text[0] = '\0'; /* said */
    }
    return st;
}

/* The problem and how it is to be searched. */
static enum status read_input (struct planning *x, bool **marks, struct notes *notes,
                               struct error *err)
{
    struct plan_input *in = x->in;
    struct workload_gpus on = {.n = 0};

    if (in->from.file) {
        TRY (plan_from_read (&in->from, &in->job, in->cluster, in->model, &x->work, notes,
                             err));
    } else {
        TRY (cli_cluster_read (in->cluster, &x->work.cluster, notes, err));
        costmodel_gpus (x->work.cluster->c, &on);
        TRY (cli_job_read (&in->job, in->model, &on, &x->work, notes, err));
    }
    x->p = api_plan_problem (&x->work, x->work.cluster->c);
    if (in->what_if)
        TRY (report_whatif_read (x->p.cluster, in->what_if, &x->what_if, err));
    TRY (cli_hosts_read (x->p.cluster, "--only", false, &in->nodes.only, &in->only, notes,
                         err));
    TRY (cli_hosts_read (x->p.cluster, "--exclude", true, &in->nodes.exclude,
                         &in->exclude, notes, err));
    TRY (cli_hosts_read (x->p.cluster, "--pin", false, &in->nodes.pin, &in->pin, notes,
                         err));
    TRY (mapper_choose_nodes (&in->nodes, &x->p, marks, err));
    TRY (mapper_profile_allowed (&x->p, &x->work.profile, err));
    api_before_search (&x->p, in->nodes.nodes, notes);
    x->p.axes = in->job.axes;
    x->p.limit_free = mapper_limit_free (in->job.memory_limit_pct, in->job.oom_risk);
    x->p.cost_model = in->kind;
    x->p.objective = (enum mapper_objective) in->objective;
    plan_goodput_read (&in->goodput, &x->p);
    in->settings.granularity = (enum mapper_granularity) in->granularity;
    in->settings.seed = (unsigned long) in->seed;
    in->settings.tie = in->from.how.tie = in->tie_pct / 100;
    return in->from.file ? ST_OK : plan_passes_read (&in->passes, &x->p, notes, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct plan_input *in = input;
    struct planning x = {.in = in};
    bool *marks = NULL;
    enum status st = read_input (&x, &marks, notes, err);

    if (st == ST_OK) {
        cli_warn ("linkwise plan", notes);
        st = search (&x, err);
    }
    free (marks);
    mapper_result_release (&x.r);
    mapper_info_release (&x.info);
    mapper_replanned_release (&in->from.done);
    plan_passes_release (&in->passes);
    report_whatif_release (&x.what_if);
    text_free (&in->only);
    text_free (&in->pin);
    text_free (&in->exclude);
    api_plan_release (&x.work);
    return st;
}

const struct cli_command cli_plan = {
    .arguments = "CLUSTER MODEL\n--from PLAN [CLUSTER]",
    .help =
        "Find how to split a training job over a cluster, and which rank runs on which "
        "GPU.\v"
        "Example: linkwise plan examples/clusters/h100-17.json llama-2-70b --seq 4096 "
        "--global-batch 1024 -o plan.json\n\n"
        "CLUSTER is a cluster file, a cluster on one line (\"4x8 h100\", or with GB/s "
        "\"2x8 h100-sxm5-80g intra:370 inter:48\"), or -.  MODEL is a Hugging Face "
        "config.json, a preset (`linkwise models`), or -.\n\n"
        "The first lines are the answer: degrees, GPUs, step time, memory, optimality "
        "gap and placement.  -q leaves out the placement; -q and -o print nothing.",
    .options = {.line = options, .group = 2, .init = init, .check = check},
    .parts =
        {{&cli_job_options, offsetof (INPUT, job),
          "The job (the search chooses degrees and settings that are not given):", 1},
         {&plan_passes_options, offsetof (INPUT, passes),
          "Several measurements of the links:", 4},
         {&plan_goodput_options, offsetof (INPUT, goodput),
          "GPUs that fail (--objective goodput):", 5},
         {&plan_from_options, offsetof (INPUT, from), "Replanning a running job:", 3}},
    .places = {.most = 2, .expected = "CLUSTER and MODEL"},
    .at = {CLI_PLACE (cluster), CLI_PLACE (model)},
    CLI_RUN (run)};
