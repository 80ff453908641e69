/* What linkwise import-job answers: text, or one document. */
#include <math.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/import_job.h"

static double plan_share (const struct import *x)
{
    return 1 - x->best.plan.estimate.step_s / x->estimate.step_s;
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
    cli_print (share > x->step_error ? "; likely: more than the model's error\n"
                                     : "; unsure: within the model's error\n");
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
    const struct mapper_problem p = api_plan_problem (&x->work, x->work.cluster->c);
    char config[CLI_CONFIG_TEXT], chance[32], step[32];

    if (!b->fits) {
        cli_print ("plan     none: %s\n", b->why);
        return;
    }
    if (plan_share (x) <= IMPORT_SAVES_LEAST) {
        cli_print ("plan     none that was found, with a chance of running out of %s at "
                   "most, is faster than what runs: %s is the best, at %s\n",
                   cli_chance (mapper_chance (&p, &b->plan), chance),
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

static void print_timers (const struct import *x)
{
    static const char *const words[JOBS_TIMERS] = {"forward and backward", "gradients",
                                                   "optimizer"};
    const struct costmodel_breakdown *b = &x->estimate.part;
    const double estimated_s[JOBS_TIMERS] = {
        [JOBS_TIMER_PASSES] = x->estimate.step_s - b->dp_s - b->optimizer_s,
        [JOBS_TIMER_GRADIENTS] = b->dp_s,
        [JOBS_TIMER_OPTIMIZER] = b->optimizer_s};
    struct table *t = NULL;

    for (int k = 0; k < JOBS_TIMERS; k++) {
        if (!isfinite (x->job->timer_s[k]))
            continue;
        if (!t)
            t = TABLE_OF ("<Megatron's timers", "measured, s", "estimated, s");
        table_cell (t, "%s", words[k]);
        table_cell (t, "%.4f", x->job->timer_s[k]);
        table_cell (t, "%.4f", estimated_s[k]);
    }
    if (t)
        table_end (t, stdout);
}

void import_print (const struct import *x)
{
    print_read (x);
    cli_print ("\n");
    print_measured (x);
    cli_print ("\n");
    cli_print_breakdown (&x->estimate);
    print_timers (x);
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

static json_t *measured_json (const struct import *x)
{
    const double *timer = x->job->timer_s;

    return json_pack (
        "{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "step_s",
        json_number_or_null (x->run->iter_time_s), "step_low_s",
        json_number_or_null (x->job->step_low_s), "step_high_s",
        json_number_or_null (x->job->step_high_s), "lines", x->job->n_steps, "peak_bytes",
        json_number_or_null (x->run->peak_bytes), "peak_allocated_bytes",
        json_number_or_null (x->job->allocated_gb * UNITS_GIB), "peak_reserved_bytes",
        json_number_or_null (x->job->reserved_gb * UNITS_GIB), "oom",
        x->run->oom < 0 ? json_null () : json_boolean (x->run->oom), "forward_backward_s",
        json_number_or_null (timer[JOBS_TIMER_PASSES]), "gradients_s",
        json_number_or_null (timer[JOBS_TIMER_GRADIENTS]), "optimizer_s",
        json_number_or_null (timer[JOBS_TIMER_OPTIMIZER]));
}

static json_t *gain_json (const struct import *x, json_t *doc, double step_s,
                          double share)
{
    json_object_set_new (doc, "step_s", json_real (step_s));
    json_object_set_new (doc, "gain", json_real (share));
    json_object_set_new (doc, "measured_step_s",
                         json_number_or_null (x->run->iter_time_s * (1 - share)));
    json_object_set_new (doc, "sure", json_boolean (share > x->step_error));
    return doc;
}

static json_t *plan_json (const struct import *x)
{
    const struct report_best *b = &x->best;
    json_t *doc;

    if (!x->searched || !b->fits || plan_share (x) <= IMPORT_SAVES_LEAST)
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

enum status import_print_json (const struct import *x, struct error *err)
{
    const struct csv_table *t = &x->runs.table;
    json_t *row = json_object (), *step = costmodel_estimate_to_json (&x->estimate),
           *memory = json_pack ("{s:f, s:o}", "peak_bytes", x->peak_bytes,
                                "oom_probability", json_number_or_null (x->chance)),
           *doc = json_pack ("{s:i, s:s, s:i}", "version", 1, "read",
                             text_str (&x->jobs.formats), "rows", x->jobs.n);

    cli_interval_json (memory, x->peak_bytes, x->peak_factor, "peak_low_bytes",
                       "peak_high_bytes");
    json_object_set_new (step, "step_s", json_real (x->step_s));
    cli_interval_json (step, x->step_s, x->step_factor, "step_low_s", "step_high_s");
    for (int i = 0; i < t->columns; i++)
        json_object_set_new (row, t->header[i], json_string (t->cell[i]));
    json_object_set_new (doc, "row", row);
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
