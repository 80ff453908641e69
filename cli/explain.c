/* linkwise explain: what would make a plan's step shorter, and why others lose. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

#include "report/report.h"

struct explain_input {
    const char *plan, *cluster;
    bool json;
};

#define INPUT struct explain_input
#define SAME 5e-5 /* of a step: what is printed alike */

static const struct cli_option options[] = {{CLI_JSON}, {0}};

static void print_gains (const struct report_explained *x)
{
    struct table *t =
        TABLE_OF ("<what", "<kind", "in place s", "replanned s", "gain %", "<surely");
    int tried[REPORT_KINDS] = {0}, rest = 0;

    for (int k = 0; k < x->n_gains; k++) {
        const struct report_gain *g = &x->gain[k];

        tried[g->kind]++;
        if (!(g->share > REPORT_WORTH)) {
            rest++;
            continue;
        }
        table_cell (t, "%s", g->what);
        table_cell (t, "%s", report_kind_name (g->kind));
        cli_cell (t, "%.4f", g->in_place_s);
        cli_cell (t, "%.4f", g->replanned_s);
        table_cell (t, "%.2f", 100 * g->share);
        table_cell (t, "%s", report_gain_surely (x, g));
    }
    cli_print ("what would gain\n");
    table_end (t, stdout);
    cli_print (
        "looked at the slowest in use: %d links between nodes, %d inside nodes, %d "
        "pairs of nodes;\nat %d nodes, %d GPUs and %d settings; %d of all gain nothing\n",
        tried[REPORT_LINK], tried[REPORT_INSIDE], tried[REPORT_PAIR], tried[REPORT_NODE],
        tried[REPORT_GPU], tried[REPORT_SETTING], rest);
}

/* What gains nothing, and why. */
static void print_losses (const struct report_explained *x)
{
    struct table *t = TABLE_OF ("<setting", "step s", "%", "<why not");

    for (int k = 0; k < x->n_gains; k++) {
        const struct report_gain *g = &x->gain[k];

        if (g->kind != REPORT_SETTING || g->share > REPORT_WORTH)
            continue;
        table_cell (t, "%s", g->what);
        /* Settings have one of both; a change that stays in place has lost nothing. */
        cli_cell (t, "%.4f", isfinite (g->in_place_s) ? g->in_place_s : g->replanned_s);
        cli_cell (t, "%+.2f", 0.0 - 100 * g->share);
        table_cell (t, "%s", isfinite (g->share) ? "" : g->why);
    }
    cli_print ("\nwhat would not\n");
    table_end (t, stdout);
}

/* What a plan has that is no longer than the search's choice but for `given_up`. */
static const char *instead (double step_s, double of_s, double given_up)
{
    double ratio = step_s / of_s;

    return ratio > 1.0 + SAME ? ""
           : ratio * (1.0 + given_up) > 1.0 - SAME
               ? "; the plan is simpler or leaves more memory free"
               : "; shorter than the plan: plan anew";
}

/* @param search  of the plan file; may be NULL */
static void print_rivals (const struct report_explained *x, const json_t *search)
{
    char config[CLI_CONFIG_TEXT], more[REPORT_MORE_TEXT];
    double step_s = x->estimate.step_s,
           given_up = json_member_number (search, "given_up");

    if (x->n_rivals == 0) {
        cli_print ("\nthe plan file lists no other configurations (plan --top N)\n");
        return;
    }
    cli_print ("\nwhy the next-best configurations lose\n");
    for (int k = 0; k < x->n_rivals; k++) {
        const struct report_rival *r = &x->rival[k];

        cli_print ("%s\n", cli_config_text (&r->config, config));
        if (isfinite (r->step_s))
            cli_print ("    %.4f s (%+.2f %%): %s%s\n", r->step_s,
                       100 * (r->step_s / step_s - 1.0),
                       report_more_text (&r->more_s, more),
                       instead (r->step_s, step_s, given_up));
        else
            cli_print ("    no plan: %s\n", r->why);
    }
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct explain_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    struct report_explained found = {0};
    struct progress progress;
    struct mapper_problem p;
    char step[32];
    int *gpu = NULL;
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    THEN (st, api_plan_gpus (&x, x.cluster->c, &gpu, notes, err));
    if (st == ST_OK) {
        costmodel_note_types (x.cluster->c, x.plan.job.precision, notes);
        p = api_plan_problem (&x, x.cluster->c);
        p.step_error = api_step_error;
        cli_progress_start (&progress);
        st = report_explain (&p, &x.plan, gpu, cli_looking, &progress, &found, err);
        progress_end (&progress);
    }
    if (st == ST_OK && in->json)
        st = cli_print_json (report_explained_to_json (&found), err);
    else if (st == ST_OK) {
        cli_print ("step     %s", cli_seconds (found.estimate.step_s, step));
        if (isfinite (found.replanned_s))
            cli_print ("; %s with all but tp, pp, cp and ep searched anew",
                       cli_seconds (found.replanned_s, step));
        cli_print ("\n\n");
        print_gains (&found);
        print_losses (&found);
        print_rivals (&found, json_object_get (x.plan.doc, "search"));
    }
    report_explained_release (&found);
    free (gpu);
    api_plan_release (&x);
    return st;
}

const struct cli_command cli_explain = {
    .arguments = "PLAN [CLUSTER]",
    .help =
        "Rank links, nodes, GPUs and settings by what each would gain, and say why the "
        "next-best configurations lose.\v"
        "Example: linkwise explain plan.json\n\n"
        "It tries slow links between nodes and inside them and slow pairs of nodes at "
        "what is usual, nodes mended or drained, slow GPUs at speed 1, and settings one "
        "step away.  `linkwise plan --what-if` takes changes of links, pairs, nodes and "
        "GPUs as printed.",
    .options = {.line = options},
    .places = {1, 2, "PLAN and CLUSTER",
               "PLAN is required, as in: linkwise explain plan.json"},
    .at = {CLI_PLACE (plan), CLI_PLACE (cluster)},
    CLI_RUN (run)};
