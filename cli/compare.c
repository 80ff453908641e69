/* linkwise compare: two clusters, or one at two times, side by side. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "report/report.h"
#include "topology/survey/survey.h"

struct compare_input {
    struct cli_job job;
    struct cli_list list; /* two clusters, then models */
    int worst;
    double change_pct;
    bool json;
};

#define INPUT struct compare_input

/* All that is compared. */
struct comparison {
    const struct compare_input *in;
    struct topology_cluster *c[2];
    char title[2][40]; /* their names, short enough for a column's head */
    struct topology_stats stats[2];
    bool snapshots;
    struct topology_diff diff;
    struct compared {
        struct linkwise_plan work;
        struct report_compared result;
    } * model; /* [n_models] */
    int n_models;
};

/* ---- links ---- */

/* One row of numbers; NaN is "-". */
static void row (struct table *t, const char *what, const char *format, double a,
                 double b)
{
    table_cell (t, "%s", what);
    table_cell (t, !isnan (a) ? format : "-", a);
    table_cell (t, !isnan (b) ? format : "-", b);
}

static int gpus_of (const struct topology_cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        n += c->node[i].drained ? 0 : c->node[i].gpus;
    return n;
}

/* A tier that a cluster has not. */
static const struct topology_tier none = {.links = NAN, .unmeasured = NAN};

static const struct topology_tier *find_tier (const struct topology_stats *s,
                                              const struct topology_tier *like)
{
    for (int i = 0; i < s->n_tiers; i++) {
        const struct topology_tier *t = &s->tier[i];

        if (t->where == like->where && t->hops == like->hops && t->rail == like->rail)
            return t;
    }
    return &none;
}

/* In GB/s; NaN where nothing was measured. */
static double rate_of (const struct topology_tier *t, int q)
{
    return t->quantile_bytes_per_s[q] > 0 ? t->quantile_bytes_per_s[q] / UNITS_GB : NAN;
}

static void tier_rows (struct table *t, const char *name, const struct topology_tier *a,
                       const struct topology_tier *b)
{
    static const char *const quantile[] = {"  lowest GB/s", "  5 %", "  median", "  95 %",
                                           "  highest"};
    double in_a = isnan (rate_of (a, 0)) ? NAN : 1,
           in_b = isnan (rate_of (b, 0)) ? NAN : 1;

    row (t, name, "%.0f", a->links, b->links);
    row (t, "  failed or unmeasured", "%.0f", a->unmeasured, b->unmeasured);
    for (int q = QUANTILE_MIN; q <= QUANTILE_MAX; q++)
        row (t, quantile[q], "%.4g", rate_of (a, q), rate_of (b, q));
    row (t, "  CV %", "%.1f", in_a * 100 * a->cv, in_b * 100 * b->cv);
    row (t, "  latency us (median)", "%.3g", in_a * a->latency_s / UNITS_US,
         in_b * b->latency_s / UNITS_US);
}

static void print_links (const struct comparison *x)
{
    struct table *t = TABLE_OF ("<", x->title[0], x->title[1]);
    const struct topology_stats *a = &x->stats[0], *b = &x->stats[1];
    double in_a = a->asymmetry_pairs > 0 ? 100 : NAN,
           in_b = b->asymmetry_pairs > 0 ? 100 : NAN;
    char name[64];

    row (t, "nodes", "%.0f", x->c[0]->n_nodes, x->c[1]->n_nodes);
    row (t, "GPUs (not drained)", "%.0f", gpus_of (x->c[0]), gpus_of (x->c[1]));
    for (int i = 0; i < a->n_tiers; i++)
        tier_rows (t, topology_tier_text (x->c[0], &a->tier[i], name), &a->tier[i],
                   find_tier (b, &a->tier[i]));
    for (int i = 0; i < b->n_tiers; i++)
        if (find_tier (a, &b->tier[i]) == &none)
            tier_rows (t, topology_tier_text (x->c[1], &b->tier[i], name), &none,
                       &b->tier[i]);
    if (cli_nominal (x->c[0]) || cli_nominal (x->c[1])) {
        table_cell (t, "nominal: not measured");
        for (int k = 0; k < 2; k++)
            table_cell (t, "%s", cli_nominal (x->c[k]) ? cli_nominal (x->c[k]) : "-");
    }
    row (t, "links under 80 % of their median", "%.0f", a->slow, b->slow);
    row (t, "asymmetry % (mean)", "%.1f", in_a * a->asymmetry_mean,
         in_b * b->asymmetry_mean);
    row (t, "  largest", "%.1f", in_a * a->asymmetry_max, in_b * b->asymmetry_max);
    table_end (t, stdout);
}

static void print_worst (const struct comparison *x)
{
    struct table *t =
        TABLE_OF ("<worst links, GB/s, % of their median", x->title[0], x->title[1]);
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    for (int i = 0; i < x->stats[0].n_worst || i < x->stats[1].n_worst; i++) {
        table_cell (t, "%d", i + 1);
        for (int k = 0; k < 2; k++) {
            const struct topology_outlier *o = &x->stats[k].worst[i];

            if (i >= x->stats[k].n_worst)
                table_cell (t, "-");
            else
                table_cell (t, "%s -> %s  %.4g  %2.0f %%",
                            topology_end_text (x->c[k], o->from, from),
                            topology_end_text (x->c[k], o->to, to),
                            o->bytes_per_s / UNITS_GB, 100 * o->share);
        }
    }
    putchar ('\n');
    table_end (t, stdout);
}

/* The links that changed, as rows of a table and entries of a list; either may be NULL. */
static void add_changes (const struct topology_cluster *old,
                         const struct topology_diff *d, struct table *t, json_t *list)
{
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    for (int k = 0; k < d->n; k++) {
        const struct topology_change *c = &d->change[k];
        double before = c->old_bytes_per_s / UNITS_GB,
               after = c->new_bytes_per_s / UNITS_GB;

        topology_end_text (old, c->from, from);
        topology_end_text (old, c->to, to);
        table_cell (t, "%s", from);
        table_cell (t, "%s", to);
        table_cell (t, "%.4g", before);
        table_cell (t, "%.4g", after);
        table_cell (t, "%+.1f", 100 * (c->new_bytes_per_s / c->old_bytes_per_s - 1));
        json_array_append_new (list,
                               json_pack ("{s:s, s:s, s:f, s:f, s:b}", "from", from, "to",
                                          to, "before_gb_per_s", before, "after_gb_per_s",
                                          after, "by_interval", c->by_interval));
    }
}

static void print_diff (const struct comparison *x)
{
    const struct topology_diff *d = &x->diff;
    double pct = x->in->change_pct; /* the smallest change without intervals */

    cli_print ("\none cluster at two times: ");
    if (d->compared == 0) {
        cli_print ("no link is measured in both\n");
    } else {
        cli_print ("of %.0f links measured in both, %.0f got slower and %.0f faster\n"
                   "by more than ",
                   d->compared, d->slower, d->faster);
        if (d->with_intervals >= d->compared)
            cli_print ("their intervals");
        else if (d->with_intervals > 0)
            cli_print ("their intervals (%.0f links) or %.0f %% (the others)",
                       d->with_intervals, pct);
        else
            cli_print ("%.0f %% (the files have no intervals)", pct);
        cli_print ("; the median link has %.1f %% of its old rate\n",
                   100 * d->median_ratio);
    }
    if (d->appeared > 0 || d->vanished > 0)
        cli_print ("%.0f links are measured only in the second file, %.0f only in the "
                   "first\n",
                   d->appeared, d->vanished);
    if (d->nodes_gone > 0 || d->nodes_new > 0)
        cli_print ("%d nodes are only in the first file, %d only in the second\n",
                   d->nodes_gone, d->nodes_new);
    if (d->n > 0) {
        struct table *t =
            TABLE_OF ("<changed links", "<to", "before GB/s", "after", "change %");

        add_changes (x->c[0], d, t, NULL);
        putchar ('\n');
        table_end (t, stdout);
    }
}

json_t *cli_diff_json (const struct topology_cluster *old, const struct topology_diff *d)
{
    json_t *list = json_array ();

    add_changes (old, d, NULL, list);
    return json_pack ("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:i, s:i, s:o}", "compared",
                      (json_int_t) d->compared, "with_intervals",
                      (json_int_t) d->with_intervals, "slower", (json_int_t) d->slower,
                      "faster", (json_int_t) d->faster, "appeared",
                      (json_int_t) d->appeared, "vanished", (json_int_t) d->vanished,
                      "median_ratio", d->median_ratio, "nodes_gone", d->nodes_gone,
                      "nodes_new", d->nodes_new, "changes", list);
}

/* ---- models ---- */

static void plan_row (struct table *t, const char *cluster, const struct report_best *b)
{
    const struct costmodel_estimate *e = &b->plan.estimate;
    char config[CLI_CONFIG_TEXT];

    table_cell (t, "%s", cluster);
    if (!b->fits) {
        for (int i = 0; i < 5; i++)
            table_cell (t, "-");
        table_cell (t, "%s", b->why);
        return;
    }
    table_cell (t, "%lld", workload_world (&b->plan.config.deg));
    table_cell (t, "%.3f", e->step_s);
    table_cell (t, "%.0f", e->tokens_per_s);
    table_cell (t, "%.1f", b->gpu_hours);
    table_cell (t, "%.2f", 100 * (e->step_s / b->plan.lower_bound_s - 1));
    table_cell (t, "%s", cli_config_text (&b->plan.config, config));
}

/* A new plan under half a percent shorter is not worth moving a job. */
#define PAYS 0.005

static void print_kept (const struct report_compared *r)
{
    double step_s = r->best[1].plan.estimate.step_s, gain = 1 - step_s / r->kept_step_s;

    if (!r->has_kept)
        return;
    if (!isfinite (r->kept_step_s)) {
        cli_print ("the old plan cannot run on the second cluster\n");
        return;
    }
    cli_print (
        "the old plan takes %.3f s on the second cluster; a new plan saves %.2f %%: %s",
        r->kept_step_s, 100 * gain, gain >= PAYS ? "it pays" : "it does not pay");
    if (r->moved >= 0)
        cli_print (" (%d of %lld ranks move)\n", r->moved,
                   workload_world (&r->best[1].plan.config.deg));
    else
        cli_print (" (other degrees: all ranks restart)\n");
}

static void print_model (const struct comparison *x, const struct compared *m)
{
    struct table *t = TABLE_OF ("<best plan on", "GPUs used", "step s", "tokens/s",
                                "GPU h / 1e9 tokens", "gap %", "<split");

    cli_print ("\n%s, %d sequences of %d tokens a step\n", m->work.plan.model.name,
               m->work.plan.job.global_batch, m->work.plan.job.seq);
    for (int k = 0; k < 2; k++)
        plan_row (t, x->title[k], &m->result.best[k]);
    table_end (t, stdout);
    print_kept (&m->result);
}

static json_t *best_json (const struct report_best *b)
{
    const struct workload_degrees *d = &b->plan.config.deg;
    const struct costmodel_estimate *e = &b->plan.estimate;

    if (!b->fits)
        return json_pack ("{s:b, s:s}", "fits", 0, "why", b->why);
    return json_pack ("{s:b, s:I, s:o, s:i, s:f, s:f, s:f, s:f, s:b}", "fits", 1, "gpus",
                      (json_int_t) workload_world (d), "degrees",
                      workload_degrees_to_json (d), "micro_batch",
                      b->plan.config.micro_batch, "step_s", e->step_s, "lower_bound_s",
                      b->plan.lower_bound_s, "tokens_per_s", e->tokens_per_s,
                      "gpu_hours_per_1e9_tokens", b->gpu_hours, "proven", b->info.proven);
}

static json_t *model_json (const struct compared *m)
{
    const struct report_compared *r = &m->result;
    json_t *doc =
        json_pack ("{s:s, s:i, s:i, s:[o, o]}", "model", m->work.plan.model.name, "seq",
                   m->work.plan.job.seq, "global_batch", m->work.plan.job.global_batch,
                   "best", best_json (&r->best[0]), best_json (&r->best[1]));

    if (r->has_kept)
        json_object_set_new (
            doc, "kept",
            json_pack ("{s:o, s:o}", "step_s", json_number_or_null (r->kept_step_s),
                       "moved_ranks",
                       r->moved >= 0 ? json_integer (r->moved) : json_null ()));
    return doc;
}

static bool on_progress (void *context, long done, long total, double best_step_s,
                         double lower_bound_s)
{
    (void) best_step_s;
    if (lower_bound_s <= 0)
        progress_part (context, total > 0 ? (double) done / (double) total : 0,
                       "bounding: %ld of %ld configurations", done, total);
    else
        progress_show (context, "searching: %ld of %ld settled", done, total);
    return false;
}

static enum status compare_model (const struct comparison *x, const char *name,
                                  struct compared *m, struct notes *notes,
                                  struct error *err)
{
    struct workload_gpus on = {.n = 0};
    struct mapper_problem p[2];
    struct mapper_settings settings = mapper_settings_default ();
    struct progress progress;
    enum status st;

    for (int k = 0; k < 2; k++)
        costmodel_gpus (x->c[k], &on);
    TRY (cli_job_read (&x->in->job, name, &on, &m->work, notes, err));
    for (int k = 0; k < 2; k++) {
        p[k] = api_plan_problem (&m->work, x->c[k]);
        p[k].axes = x->in->job.axes;
        p[k].limit_free =
            mapper_limit_free (x->in->job.memory_limit_pct, x->in->job.oom_risk);
        p[k].step_error = api_step_error;
        costmodel_note_types (x->c[k], p[k].job->precision, notes);
    }
    cli_progress_start (&progress);
    settings.tie = MAPPER_USUAL_TIE; /* the plans that `plan` would make */
    settings.progress = on_progress;
    settings.context = &progress;
    st = report_compare (&p[0], &p[1], x->snapshots, &settings, &m->result, err);
    progress_end (&progress);
    return st;
}

/* ---- all ---- */

static enum status collect (struct comparison *x, struct notes *notes, struct error *err)
{
    const struct compare_input *in = x->in;
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    enum status st = ST_OK;

    for (int k = 0; k < 2 && st == ST_OK; k++) {
        /* Plans need whole clusters; links alone can be looked at in any. */
        st = in->list.n > 2
                 ? topology_cluster_read (in->list.arg[k], &x->c[k], notes, err)
                 : topology_cluster_read_partial (in->list.arg[k], &x->c[k], notes, err);
        cli_hint (CLI_CLUSTER, in->list.arg[k], st, err);
        THEN (st, topology_stats_collect (x->c[k], in->worst, &watch, &x->stats[k], err));
    }
    progress_end (&progress);
    TRY (st);
    for (int k = 0; k < 2; k++) {
        const char *name = x->c[k]->name,
                   *slash = strchr (name, ' ') ? NULL : strrchr (name, '/');

        snprintf (x->title[k], sizeof x->title[k], "%s", slash ? slash + 1 : name);
    }
    if (strcmp (x->title[0], x->title[1]) == 0)
        for (int k = 0; k < 2; k++)
            snprintf (x->title[k], sizeof x->title[k], "%s", file_name (in->list.arg[k]));
    x->snapshots = topology_same_cluster (x->c[0], x->c[1]);
    if (x->snapshots)
        TRY (topology_diff_collect (x->c[0], x->c[1], in->change_pct / 100, in->worst,
                                    &x->diff, err));
    if (!(x->model = calloc ((size_t) in->list.n, sizeof *x->model)))
        return err_nomem (err);
    for (; x->n_models + 2 < in->list.n; x->n_models++)
        TRY (compare_model (x, in->list.arg[x->n_models + 2], &x->model[x->n_models],
                            notes, err));
    return ST_OK;
}

static enum status print_json (const struct comparison *x, struct error *err)
{
    json_t *models = json_array ();

    for (int k = 0; k < x->n_models; k++)
        json_array_append_new (models, model_json (&x->model[k]));
    return cli_print_json (
        json_pack ("{s:i, s:[o, o], s:o, s:o}", "version", 1, "clusters",
                   topology_stats_json (x->c[0], &x->stats[0]),
                   topology_stats_json (x->c[1], &x->stats[1]), "diff",
                   x->snapshots ? cli_diff_json (x->c[0], &x->diff) : json_null (),
                   "models", models),
        err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct compare_input *in = input;
    struct comparison x = {.in = in};
    enum status st = collect (&x, notes, err);

    if (st == ST_OK && in->json)
        st = print_json (&x, err);
    else if (st == ST_OK) {
        print_links (&x);
        if (x.stats[0].n_worst + x.stats[1].n_worst > 0)
            print_worst (&x);
        if (x.snapshots)
            print_diff (&x);
        for (int k = 0; k < x.n_models; k++)
            print_model (&x, &x.model[k]);
    }
    for (int k = 0; k < x.n_models; k++)
        report_compared_release (&x.model[k].result);
    free (x.model);
    topology_diff_release (&x.diff);
    for (int k = 0; k < 2; k++) {
        topology_stats_release (&x.stats[k]);
        topology_cluster_destroy (x.c[k]);
    }
    return st;
}

static const struct cli_option options[] = {
    {"worst", 0, "N", "number of worst links to list (default 5)",
     CLI_INT (worst, 0, 100000), .usual = "5"},
    {"change", 0, "PCT",
     "smallest change of a link's rate to report, in percent, if the files give no "
     "intervals (default 10)",
     CLI_ABOVE (change_pct, 0, 1e4), .usual = "10"},
    {CLI_JSON},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct compare_input *in = input;

    cli_one_stdin (cli_is_dash (in->list.arg[0]) + cli_is_dash (in->list.arg[1]), state);
}

const struct cli_command cli_compare = {
    .arguments = "CLUSTER CLUSTER [MODEL...]",
    .help =
        "Compare two clusters: their links, and the best plan of each model on each.\v"
        "Example: linkwise compare examples/clusters/h100-17.json "
        "examples/clusters/h100-10.json llama-2-13b\n\n"
        "Two files with the same nodes are one cluster at two times.  Then the output "
        "also lists changed links and says whether a new plan pays.",
    .options = {.line = options, .group = 2, .check = check},
    .parts = {{&cli_job_options, offsetof (INPUT, job),
               "The job (the search chooses degrees and settings that are not given):",
               1}},
    .places = {.needed = 2,
               .required =
                   "two CLUSTERs are required, as in: linkwise compare old.json new.json "
                   "llama-3-8b"},
    .list = true,
    .at = {CLI_LIST (list)},
    CLI_RUN (run)};
