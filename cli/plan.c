/* linkwise plan: the search, and its answer. */
#include "cli/plan.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

struct plan_input {
    struct cli_job job;
    struct plan_from from;
    struct plan_passes passes;
    struct mapper_settings settings;
    struct mapper_nodes nodes;
    const char *cluster, *model, *out, *what_if;
    enum costmodel_kind kind;
    int seed;
    int granularity, objective; /* as mapper's enums have them */
    double tie_pct;
    bool json;
};

#define INPUT struct plan_input

/* What was asked for, what it is about, and what was found. */
struct planning {
    struct plan_input *in;
    struct linkwise_plan work; /* the old plan, or what is known before there is one */
    struct mapper_problem p;
    struct mapper_result r;
    struct mapper_info info;
    struct report_whatif what_if;
};

static const struct cli_option options[] = {
    {"nodes", 0, "N", "use at most N nodes; the search picks them",
     CLI_INT (nodes.nodes, 1, 1 << 30)},
    {"spares", 0, "N", "leave at least N nodes idle", CLI_INT (nodes.spares, 0, 1 << 30)},
    {"only", 0, "HOSTLIST",
     "use only these nodes, as in n[01-16,20]; rack:r[1-2] means all nodes in these "
     "racks or under these switches",
     CLI_TEXT (nodes.only)},
    {"exclude", 0, "HOSTLIST", "do not use these nodes", CLI_TEXT (nodes.exclude)},
    {"pin", 0, "HOSTLIST", "these nodes must hold ranks", CLI_TEXT (nodes.pin)},
    {"granularity", 0, "auto|node|gpu",
     "node: each node holds consecutive ranks; gpu: a rank may go to any GPU; auto "
     "(default): node, unless gpu gains over 0.5 %",
     CLI_WORD (granularity)},
    {CLI_COST_MODEL},
    {"objective", 0, "step|gpu-hours",
     "what to minimise: the step time (default), or step time x GPUs in use",
     CLI_WORD (objective)},
    {"tie", 0, "PCT",
     "plans within PCT % of the best count as equal: take the simplest, in the default "
     "rank order if possible (default 0.1; 0: take the best)",
     CLI_FROM_0 (tie_pct, 100)},
    {"effort", 0, "N", "try N times as much where nodes or links are unlike (default 1)",
     CLI_INT (settings.effort, 1, 1000)},
    {"time-limit", 0, "S", "stop after S seconds with the best plan so far",
     CLI_ABOVE (settings.time_limit_s, 0, 1e9)},
    {"threads", 0, "N", "number of threads (default: all cores)",
     CLI_INT (settings.threads, 1, 4096)},
    {"seed", 0, "N", "the same seed gives the same plan (default 1)",
     CLI_INT (seed, 0, 1 << 30), .usual = "1"},
    {"top", 0, "N", "list the N best configurations (default 5)",
     CLI_INT (settings.top, 0, 10000)},
    {CLI_WHAT_IF},
    {"output", 'o', "PLAN", "write the plan file; - is standard output", CLI_TEXT (out)},
    {"json", 'j', NULL,
     "print the plan file, and what is behind it, instead of a summary", CLI_FLAG (json)},
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
        argp_error (state,
                    "CLUSTER and MODEL are required, as in: linkwise plan \"4x8 h100\" "
                    "llama-3-8b");
    if (!from && plan_from_asked (&in->from))
        argp_error (state,
                    "--move-cost, --remaining-steps and --degrees need --from PLAN");
    if (from && plan_passes_asked (&in->passes))
        argp_error (state, "--links, --heldout-links and --robust compare with the "
                           "default order, --from with the old plan: leave out one");
    if (in->what_if && (from || plan_passes_asked (&in->passes)))
        argp_error (state, "--what-if is about a plan of its own: leave out %s",
                    from ? "--from" : "--links, --heldout-links and --robust");
    cli_one_stdin (cli_is_dash (in->cluster) + cli_is_dash (in->model) +
                       cli_is_dash (from) + in->passes.n_stdins,
                   state);
}

/* ---- progress ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt (int sig)
{
    (void) sig;
    interrupted = 1;
}

static bool on_progress (void *context, long done, long total, double best_step_s,
                         double lower_bound_s)
{
    char step[32];

    if (interrupted && !isfinite (best_step_s))
        progress_show (context, "stopping at the first plan; Ctrl-C again ends at once");
    else if (lower_bound_s <= 0)
        progress_show (context, "bounding: %ld of %ld configurations", done, total);
    else if (!isfinite (best_step_s))
        progress_show (context,
                       "searching: %ld of %ld configurations settled, no plan yet", done,
                       total);
    else
        progress_show (
            context, "searching: %ld of %ld configurations settled, best %s, gap %.2f %%",
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

/* ", nominal inside and between nodes: not measured" */
static void print_nominal (const struct topology_cluster *c)
{
    const char *links = cli_nominal (c);

    if (links)
        cli_print ("%snominal %s: not measured", c->n_nodes == 1 ? "network  " : ", ",
                   links);
    if (c->n_nodes > 1 || links)
        cli_print ("\n");
}

static void print_cluster (const struct topology_cluster *c)
{
    struct topology_link_stats s;

    cli_print ("cluster  %s: %d nodes, %d GPUs (", c->name, c->n_nodes, c->n_gpus);
    for (int i = 0; i < c->n_nodes; i++) {
        bool seen = false;

        for (int k = 0; k < i && !seen; k++)
            seen = c->node[k].type == c->node[i].type;
        if (!seen)
            cli_print ("%s%s", i ? ", " : "", c->node[i].type->name);
    }
    cli_print (")\n");
    if (c->n_nodes > 1 && topology_inter_stats (c, &s, NULL) == ST_OK) {
        cli_print ("network  %.2f / %.2f / %.2f GB/s between nodes (min / median / max)",
                   s.min_bytes_per_s / UNITS_GB, s.median_bytes_per_s / UNITS_GB,
                   s.max_bytes_per_s / UNITS_GB);
        if (s.unmeasured > 0)
            cli_print ("; %ld of %ld unmeasured", s.unmeasured, s.pairs);
    }
    print_nominal (c);
}

static void print_nodes_left (const struct planning *x)
{
    const struct topology_cluster *c = x->p.cluster;
    const struct mapper_result *r = &x->r;
    long long world = workload_world (&r->config.deg);
    bool *used = calloc ((size_t) c->n_nodes, sizeof *used);
    int n = 0, shown = 0;

    if (!used)
        return;
    for (long long k = 0; k < world; k++)
        used[c->node_of_gpu[r->gpu[k]]] = true;
    for (int i = 0; i < c->n_nodes; i++)
        n += used[i];
    cli_print ("GPUs     %lld of %d on %d of %d nodes", world, c->n_gpus, n, c->n_nodes);
    for (int i = 0; i < c->n_nodes && shown < 8; i++)
        if (!used[i])
            cli_print ("%s%s", shown++ ? ", " : "; left out: ", c->node[i].name);
    if (c->n_nodes - n > shown)
        cli_print (" and %d more", c->n_nodes - n - shown);
    cli_print ("\n");
    if (x->info.joined_gpus > 0)
        cli_print ("         only %d GPUs are connected by measured links: to use more, "
                   "measure more links or fix higher degrees\n",
                   x->info.joined_gpus);
    free (used);
}

static double step_interval (const struct planning *x)
{
    return cli_step_interval (x->r.estimate.kind, x->p.profile, x->p.model, x->p.cluster);
}

static void print_layers (const struct mapper_result *r)
{
    int pp = r->config.deg.pp;
    bool even = true;

    for (int i = 1; i < pp; i++)
        even = even && r->layers[i] == r->layers[0];
    if (pp == 1)
        return;
    cli_print ("layers  ");
    if (even)
        cli_print (" %d on each of %d stages", r->layers[0], pp);
    for (int i = 0; i < pp && !even; i++)
        cli_print (" %d", r->layers[i]);
    cli_print ("%s\n", even ? "" : " by stage");
}

/* What a larger chance of running out would gain, or that none is as small as it should be. */
static void print_risk (const struct planning *x, double chance)
{
    const struct mapper_riskier *k = &x->r.riskier;
    const struct mapper_problem *p = &x->p;
    char step[32], words[32];
    bool looked =
        p->limit_free && p->oom_risk == 0 && x->in->settings.tie > 0 && !x->in->from.file;

    if (k->step_s > 0)
        cli_print (
            "risky    %s (%.1f %% less%s), chance of running out %s: --oom-risk %.3f "
            "takes it\n",
            cli_seconds (k->step_s, step),
            100 * (1 - mapper_objective_of (p, &k->config, k->step_s) /
                           mapper_objective_of (p, &x->r.config, x->r.estimate.step_s)),
            p->objective == MAPPER_GPU_HOURS ? " GPU hours" : "",
            cli_chance (k->chance, words), ceil (1000 * k->chance) / 1000);
    else if (looked && chance > MAPPER_RISK && x->info.stopped)
        cli_print ("         the search stopped before it looked for a smaller chance\n");
    else if (looked && chance > MAPPER_RISK)
        cli_print (
            "         no plan that was found has a smaller chance: more GPUs or shorter "
            "sequences would\n");
}

static void print_memory (const struct planning *x)
{
    const struct mapper_problem *p = &x->p;
    const struct mapper_result *r = &x->r;
    char words[32], ends[CLI_STEP_TEXT];
    double chance;
    int worst = 0;

    for (int i = 1; i < r->config.deg.pp; i++)
        if (r->memory[i].peak_bytes / r->gpu_bytes[i] >
            r->memory[worst].peak_bytes / r->gpu_bytes[worst])
            worst = i;
    chance = memest_chance (p->memory_model, p->profile, r->memory[worst].peak_bytes,
                            r->gpu_bytes[worst]);
    cli_print (
        "memory   %.1f GiB peak (stage %d%s), limit %.1f GiB; chance of running out "
        "%s\n",
        r->memory[worst].peak_bytes / UNITS_GIB, worst,
        cli_peak_text (r->memory[worst].peak_bytes,
                       cli_peak_interval (p->memory_model, p->profile), ends),
        mapper_memory_limit (p, r->gpu_bytes[worst]) / UNITS_GIB,
        cli_chance (chance, words));
    print_risk (x, chance);
}

/* What else is as good, and what simplicity cost. */
static void print_ties (const struct planning *x)
{
    const struct mapper_result *r = &x->r;

    if (x->p.objective == MAPPER_GPU_HOURS)
        cli_print ("cost     %.1f GPU hours for 1e9 tokens\n",
                   mapper_gpu_hours (x->p.job, &r->config, r->estimate.step_s));
    if (r->ties > 1) {
        cli_print ("ties     %d placed configurations cannot be told apart: "
                   "the model's error is %.1f %%",
                   r->ties, 100 * r->model_error);
        if (r->n_top > 1)
            cli_print (" (first %d below)", r->ties < r->n_top ? r->ties : r->n_top);
        cli_print ("\n");
    }
    if (r->given_up > 1e-6)
        cli_print (
            "         the plan is simpler or leaves more memory free, and is %.2f %% "
            "above the best (--tie)\n",
            100 * r->given_up);
}

static void print_bounds (const struct planning *x)
{
    const struct mapper_result *r = &x->r;
    char bound[32], step[32];
    double gap = r->estimate.step_s / r->lower_bound_s - 1.0;

    cli_print ("gap      %.2f %% at most to the best plan: none in the searched space is "
               "below %s%s\n",
               100.0 * gap, cli_seconds (r->lower_bound_s, bound),
               x->info.proven    ? ""
               : x->info.stopped ? " (not proven: the search stopped early)"
               : x->info.unplaced > 0
                   ? " (not proven: some configurations could not be placed)"
                   : " (searched to the end; the bound may be loose)");
    if (isfinite (r->default_order_step_s))
        cli_print ("default  %s in Megatron's rank order: this plan saves %.2f %%",
                   cli_seconds (r->default_order_step_s, step),
                   100.0 * (1.0 - r->estimate.step_s / r->default_order_step_s));
    else
        cli_print ("default  Megatron's rank order does not fit in memory or is not "
                   "connected");
    if (r->default_order_unmeasured > 0)
        cli_print (" (%d links there are unmeasured)", r->default_order_unmeasured);
    cli_print ("\n");
    if (isfinite (r->gpu_step_s) && isfinite (r->node_step_s) &&
        r->gpu_step_s < r->node_step_s * (1.0 - 1e-6))
        cli_print ("         placing single GPUs instead of whole nodes %s %.2f %%\n",
                   r->granularity == MAPPER_GPU ? "gains" : "would gain only",
                   100.0 * (1.0 - r->gpu_step_s / r->node_step_s));
}

static void print_summary (const struct planning *x)
{
    const struct mapper_problem *p = &x->p;
    const struct mapper_result *r = &x->r;
    const struct mapper_info *info = &x->info;
    struct costmodel_binding binding;
    double unshared_s;
    bool found;
    char step[CLI_STEP_TEXT], config[CLI_CONFIG_TEXT];

    print_cluster (p->cluster);
    cli_print ("model    %s: %.2f billion parameters; %d sequences of %d tokens a step\n",
               p->model->name, workload_model_params (p->model) / 1e9,
               p->job->global_batch, p->job->seq);
    cli_print ("search   %ld configurations: %ld refused for memory, ",
               info->configurations, info->refused_memory);
    if (info->sketched > 0)
        cli_print ("%ld sketched, ", info->sketched);
    cli_print ("%ld placed, ", info->placed);
    if (info->unplaced > 0)
        cli_print ("%ld impossible to place, ", info->unplaced);
    cli_print ("%ld %s; %.2f s\n",
               info->configurations - info->refused_memory - info->placed -
                   info->sketched - info->unplaced,
               info->stopped ? "pruned by bounds or not reached" : "pruned by bounds",
               info->seconds);
    cli_print ("\nplan     %s\n", cli_config_text (&r->config, config));
    print_layers (r);
    print_nodes_left (x);
    cli_print ("step     %s, %.0f tokens/s, MFU %.1f %%",
               cli_step_text (r->estimate.step_s, step_interval (x), step),
               r->estimate.tokens_per_s, 100.0 * r->estimate.mfu);
    if (p->cost_model != COSTMODEL_CRITICAL_PATH)
        cli_print (", by the cost model %s", cli_model_authors (p->cost_model));
    cli_print ("\n");
    print_memory (x);
    print_bounds (x);
    plan_passes_print (&x->in->passes);
    print_ties (x);
    if (r->estimate.n_unmeasured > 0)
        cli_print ("links    %d unmeasured links had to be used\n",
                   r->estimate.n_unmeasured);
    cli_print_estimated (&r->estimate, "this plan");
    cli_print ("\n");
    cli_print_breakdown (&r->estimate);
    if (mapper_explain (p, r, &binding, &found, &unshared_s, NULL) == ST_OK)
        cli_print_binding (p->cluster, found ? &binding : NULL, unshared_s,
                           r->estimate.step_s);
}

static void print_top (const struct planning *x)
{
    bool experts = x->p.model->experts > 0;
    struct table *t =
        experts ? cli_table ("step s", "bound s", "tp", "pp", "dp", "cp", "ep", "etp",
                             "micro-batch", "zero", "SP", "<recompute", "<schedule")
                : cli_table ("step s", "bound s", "tp", "pp", "dp", "cp", "micro-batch",
                             "zero", "SP", "<recompute", "<schedule");

    for (int i = 0; i < x->r.n_top; i++) {
        const struct workload_config *c = &x->r.top[i].config;
        const struct workload_degrees *d = &c->deg;
        const int number[] = {d->tp, d->pp,  d->dp,          d->cp,
                              d->ep, d->etp, c->micro_batch, c->zero};
        char word[WORKLOAD_RECOMPUTE_TEXT];

        table_cell (t, "%.4f", x->r.top[i].step_s);
        table_cell (t, "%.4f", x->r.top[i].lower_bound_s);
        for (int k = 0; k < 8; k++)
            if (experts || k < 4 || k > 5) /* ep and etp */
                table_cell (t, "%d", number[k]);
        table_cell (t, "%s", c->sequence_parallel ? "on" : "off");
        table_cell (t, "%s", workload_recompute_text (c, word));
        table_cell (t, d->vpp > 1 ? "%s, vpp %d" : "%s",
                    workload_schedule_name (c->schedule), d->vpp);
    }
    cli_print ("\nbest configurations after placement:\n");
    cli_table_end (t);
}

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
                           step_interval (x), "step_low_s", "step_high_s");
        cli_interval_json (memory,
                           json_number_value (json_object_get (memory, "peak_bytes")),
                           cli_peak_interval (x->p.memory_model, x->p.profile),
                           "peak_low_bytes", "peak_high_bytes");
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
    print_summary (x);
    if (in->from.file)
        plan_from_print (&in->from, &x->p, &x->r);
    if (x->r.n_top > 1)
        print_top (x);
    if (in->what_if)
        cli_whatif_print (&x->what_if);
    if (in->out)
        cli_print ("\nplan written to %s\n", in->out);
    return ST_OK;
}

/* Why nothing fits, and what would. */
static void print_miss (const struct planning *x, const char *why)
{
    struct text words = {0};

    text_add (&words, "linkwise plan: %s: %s on %d GPUs of %s\n", why, x->p.model->name,
              x->p.cluster->n_gpus, x->p.cluster->name);
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
    quiet.progress = NULL;
    return cli_whatif_run (&plan, &x->what_if, err);
}

static enum status search (struct planning *x, struct error *err)
{
    struct plan_input *in = x->in;
    struct progress progress;
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, old;
    enum status st;

    progress_start (&progress);
    in->settings.progress = on_progress;
    in->settings.stop = is_interrupted;
    in->settings.context = &progress;
    sigaction (SIGINT, &act, &old);
    st = in->from.file
             ? mapper_replan (&x->p, &x->work.plan, &in->settings, &in->from.how, &x->r,
                              &x->info, &in->from.done, err)
             : mapper_search_prudent (&x->p, &in->settings, &x->r, &x->info, err);
    if (st == ST_OK && !in->from.file)
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

    if (in->from.file) {
        TRY (plan_from_read (&in->from, &in->job, in->cluster, in->model, &x->work, notes,
                             err));
    } else {
        TRY (cli_cluster_read (in->cluster, &x->work.cluster, notes, err));
        TRY (cli_job_read (&in->job, in->model, &x->work, notes, err));
    }
    x->p = api_plan_problem (&x->work, x->work.cluster->c);
    if (in->what_if)
        TRY (report_whatif_read (x->p.cluster, in->what_if, &x->what_if, err));
    TRY (mapper_choose_nodes (&in->nodes, &x->p, marks, err));
    api_note_nodes (&x->p, in->nodes.nodes, notes);
    costmodel_note_types (x->p.cluster, x->p.job->precision, notes);
    x->p.axes = in->job.axes;
    x->p.limit_free = cli_job_limit_free (&in->job);
    x->p.cost_model = in->kind;
    x->p.objective = (enum mapper_objective) in->objective;
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
        "config.json, a preset (`linkwise models`), or -.",
    .options = {.line = options, .group = 2, .init = init, .check = check},
    .parts =
        {{&cli_job_options, offsetof (INPUT, job),
          "The job (the search chooses degrees and settings that are not given):", 1},
         {&plan_passes_options, offsetof (INPUT, passes),
          "Several measurements of the links:", 4},
         {&plan_from_options, offsetof (INPUT, from), "Replanning a running job:", 3}},
    .places = {.most = 2, .expected = "CLUSTER and MODEL"},
    .at = {CLI_PLACE (cluster), CLI_PLACE (model)},
    CLI_RUN (run)};
