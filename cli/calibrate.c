/* linkwise calibrate: fit a framework profile to measured runs. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/units.h"

struct calibrate_input {
    const char *runs, *profile, *name, *out;
    bool json;
};

#define INPUT struct calibrate_input

static const struct cli_option options[] = {
    {"profile", 0, "NAME|FILE",
     "profile to start from (default: the shipped profile of most rows)",
     CLI_TEXT (profile)},
    {"name", 0, "NAME", "name of the fitted profile (default: the file name of -o)",
     CLI_TEXT (name)},
    {"output", 'o', "PROFILE",
     "write the fitted profile; - is standard output, without the tables", CLI_TEXT (out),
     .alone = "-o"},
    {CLI_JSON},
    {0}};

/* ---- fits and their scores ---- */

/* The memory or the time constants. */
struct part {
    struct calibrate_runs runs; /* those that have the figures; rows of all runs */
    struct calibrate_fit fit;
    struct cli_scores start, fitted, held_out; /* of the part alone */
    enum calibrate_grouping by;
    int groups; /* left out one at a time; 1: there is nothing to hold out */
};

/* Everything that one call is about. */
struct calibration {
    struct calibrate_runs runs;
    struct workload_profile start, fitted;
    struct part part[CALIBRATE_PARTS];
    struct calibrate_next next;
};

/* @param[in]     p     one profile for all runs, or NULL: those in `each`
 * @param[in,out] each  [runs->n] */
static enum status score (const struct calibrate_runs *runs, enum calibrate_part what,
                          const struct workload_profile *p, struct workload_profile *each,
                          struct cli_scores *s, struct error *err)
{
    struct calibrate_steps steps = {0};
    enum status st = p ? calibrate_profiles (runs, p, each, err) : ST_OK;

    if (st == ST_OK && what == CALIBRATE_TIME)
        st = calibrate_steps_estimate (runs, each, NULL, NULL, &steps, err);
    THEN (st, cli_score (runs, each, steps.step_s, NULL, s, err));
    calibrate_steps_release (&steps);
    return st;
}

static void on_fold (void *context, int done, int of)
{
    progress_part (context, (double) done / of, "fitting: held out %d of %d groups", done,
                   of);
}

/* Repeats of one run that differ by more than noise: the fit takes their mean. */
static enum status note_contradictions (const struct calibrate_runs *runs,
                                        enum calibrate_figure figure,
                                        const struct workload_profile *p,
                                        struct notes *notes, struct error *err)
{
    static const struct {
        const char *name, *unit;
        double of;
    } what[CALIBRATE_FIGURES] = {[CALIBRATE_FIGURE_PEAK] = {"peaks", "GiB", UNITS_GIB},
                                 [CALIBRATE_FIGURE_STEP] = {"step times", "s", 1.0}};
    struct calibrate_contradiction found[CALIBRATE_CONTRADICTIONS_MAX];
    int n;

    TRY (calibrate_contradictions (runs, figure, p, found, &n, err));
    for (int i = 0; i < n; i++) {
        const struct calibrate_contradiction *c = &found[i];
        int low = c->low_row + 2, high = c->high_row + 2;

        if (figure == CALIBRATE_FIGURE_LABEL)
            notes_add (notes,
                       "rows %d and %d contradict each other: the first ran, the second "
                       "ran out of memory, and %d rows of this configuration",
                       low, high, c->rows);
        else
            notes_add (
                notes,
                "rows %d and %d contradict each other: %s of %.3g and %.3g %s, and "
                "%d rows of this configuration; repeats of one run are expected to "
                "be within a factor of %.1f",
                low, high, what[figure].name, c->low / what[figure].of,
                c->high / what[figure].of, what[figure].unit, c->rows,
                CALIBRATE_NOISE_MOST);
    }
    return ST_OK;
}

/* Fit a part to the runs that have its figures, if there are any. */
static enum status fit_part (struct calibration *c, enum calibrate_part what,
                             struct progress *progress, struct notes *notes,
                             struct error *err)
{
    struct part *m = &c->part[what];
    enum status st = calibrate_runs_of (&c->runs, what, &c->start, &m->runs, err);
    size_t n = (size_t) m->runs.n;
    struct workload_profile *work = calloc (n + 1, sizeof *work);
    int *group = calloc (n + 1, sizeof *group);

    if (st == ST_OK && (!work || !group))
        st = err_nomem (err);
    if (st != ST_OK || n == 0)
        goto out;
    for (enum calibrate_figure f = 0; f < CALIBRATE_FIGURES && st == ST_OK; f++)
        if ((f == CALIBRATE_FIGURE_STEP) == (what == CALIBRATE_TIME))
            st = note_contradictions (&m->runs, f, &c->start, notes, err);
    THEN (st, calibrate_fit (&m->runs, what, NULL, &c->fitted, &m->fit, err));
    THEN (st, score (&m->runs, what, &c->start, work, &m->start, err));
    THEN (st, score (&m->runs, what, &c->fitted, work, &m->fitted, err));
    THEN (st, calibrate_groups_of (&m->runs, 2, &m->by, group, &m->groups, err));
    if (st == ST_OK && m->groups > 1) {
        st = calibrate_held_out (&m->runs, group, m->groups, what, &c->start, on_fold,
                                 progress, work, err);
        THEN (st, score (&m->runs, what, NULL, work, &m->held_out, err));
    }
out:
    free (work);
    free (group);
    return st;
}

/* ---- what is printed ---- */

static const char *grouping_name (enum calibrate_grouping by)
{
    return by == CALIBRATE_BY_MODEL ? "model" : "configuration";
}

/* Rows of a table and entries of a list; either may be NULL. */
static void add_constants (const struct calibrate_fit *fit, struct table *t, json_t *list)
{
    for (int i = 0; i < fit->n; i++) {
        const struct calibrate_fitted *k = &fit->constant[i];

        table_cell (t, "%s", k->constant->key);
        table_cell (t, "%.4g", k->before);
        table_cell (t, "%.4g", k->after);
        table_cell (t, "%s",
                    k->told            ? "fitted"
                    : fit->taken > 0.0 ? "not determined by these runs"
                                       : "stays");
        json_array_append_new (list, json_pack ("{s:s, s:f, s:f, s:b}", "constant",
                                                k->constant->key, "before", k->before,
                                                "after", k->after, "told", k->told));
    }
}

static void score_row (struct table *t, enum calibrate_part what, const char *name,
                       const struct cli_scores *s)
{
    bool peaks = s->peaks.n > 0;

    table_cell (t, "%s", name);
    if (what == CALIBRATE_TIME) {
        cli_time_cells (t, &s->times);
        return;
    }
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.mape : NAN);
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.median : NAN);
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.worst : NAN);
    cli_label_cells (t, &s->labels);
}

static void print_paces (const struct workload_profile *p)
{
    for (int i = 0; i < p->n_paces; i++)
        cli_print ("of %s in %s all times are %.3f times what the constants say\n",
                   p->pace[i].model, workload_precision_name (p->pace[i].precision),
                   p->pace[i].factor);
}

/* How much of the fit is taken; nothing where all of it is. */
static void print_taken (const struct part *m)
{
    double taken = m->fit.taken;
    bool alone = m->fit.few ? m->fit.configurations == 1 : m->groups == 1;

    if (taken <= 0.0 && alone)
        cli_print (
            "no run can be left out to see whether others meet it: constants stay\n");
    else if (taken <= 0.0)
        cli_print ("runs left out are not met better by what the others tell: constants "
                   "stay\n");
    else if (taken < 1.0)
        cli_print ("%.0f %% of what the runs tell is taken, by how well what the others "
                   "tell meets runs left out\n",
                   100 * taken);
}

static void print_part (enum calibrate_part what, const struct calibration *c)
{
    const struct part *m = &c->part[what];
    struct table *t = TABLE_OF ("<constant", "before", "after", "<");
    char name[64];

    add_constants (&m->fit, t, NULL);
    cli_print ("\n%s constants (docs/profile.md has their units):\n",
               what == CALIBRATE_TIME ? "time" : "memory");
    table_end (t, stdout);
    print_taken (m);
    if (what == CALIBRATE_TIME) {
        print_paces (&c->fitted);
        cli_print ("\n%d step times:\n", m->start.times.errors.n);
        t = TABLE_OF ("<profile", CLI_TIME_HEADERS);
    } else {
        cli_print ("\n%d peaks and %d out-of-memory labels:\n", m->start.peaks.n,
                   m->start.labels.n);
        t = TABLE_OF ("<profile", "peak MAPE %", "median %", "worst %", "OOM AUC",
                      "precision", "recall", "precision at recall .99", "Brier score");
    }
    score_row (t, what, "before", &m->start);
    score_row (t, what, "fitted, on the same runs", &m->fitted);
    snprintf (name, sizeof name, "fitted, each %s held out", grouping_name (m->by));
    if (m->groups > 1)
        score_row (t, what, name, &m->held_out);
    table_end (t, stdout);
    if (m->groups == 1)
        cli_print ("all runs are of one model and shape: none is held out\n");
}

static json_t *scores_json (enum calibrate_part what, const struct cli_scores *s)
{
    if (what == CALIBRATE_TIME)
        return cli_times_json (&s->times);
    return json_pack ("{s:o, s:o}", "peak", cli_errors_json (&s->peaks), "oom",
                      cli_labels_json (&s->labels));
}

static void print_next (const struct calibrate_next *next)
{
    const struct calibrate_run *run = &next->run;
    const struct workload_degrees *d = &run->config.deg;

    if (!next->found && next->step_spread > 0.0) {
        cli_print (
            "\nnext run: none near these would tell much more about the time "
            "constants: by these step times are known within %.1f %%, with one more "
            "within %.1f %%\n",
            100 * next->step_spread, 100 * next->next_step_spread);
        return;
    }
    if (!next->found) {
        cli_print ("\nnext run: nothing near these can be run on as many GPUs\n");
        return;
    }
    cli_print ("\nnext run: row %d with %s %d instead of %d (gpus %d, tp %d, pp %d, cp "
               "%d, dp %d, micro_batch %d, seq %d) tells most: the spread of %s, %.0f %% "
               "before any run, goes from %.0f to %.0f %%\n",
               next->row + 2, next->what, next->to, next->from, run->gpus, d->tp, d->pp,
               d->cp, d->dp, run->config.micro_batch, run->job.seq,
               next->constant ? next->constant->key : "all times together",
               100 * next->prior_spread, 100 * next->spread, 100 * next->next_spread);
    cli_print (
        "by the constants step times near these are known within %.1f %%, with that "
        "run within %.1f %%\n",
        100 * next->step_spread, 100 * next->next_step_spread);
}

/* null where no run would tell much. */
static json_t *next_json (const struct calibrate_next *next)
{
    const struct calibrate_run *run = &next->run;
    const struct workload_degrees *d = &run->config.deg;

    if (!next->found)
        return json_null ();
    return json_pack ("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, "
                      "s:f, s:f, s:f, s:f, s:f}",
                      "row", next->row + 2, "change", next->what, "from", next->from,
                      "to", next->to, "gpus", run->gpus, "tp", d->tp, "pp", d->pp, "cp",
                      d->cp, "dp", d->dp, "micro_batch", run->config.micro_batch,
                      "global_batch", run->job.global_batch, "seq", run->job.seq,
                      "constant", next->constant ? next->constant->key : "scale",
                      "prior_spread", next->prior_spread, "spread", next->spread,
                      "next_spread", next->next_spread, "step_spread", next->step_spread,
                      "next_step_spread", next->next_step_spread);
}

/* A part that no run has figures of is null. */
static json_t *part_json (const struct calibration *c, enum calibrate_part what)
{
    const struct part *m = &c->part[what];
    json_t *list, *doc;

    if (m->runs.n == 0)
        return json_null ();
    list = json_array ();
    add_constants (&m->fit, NULL, list);
    doc = json_pack ("{s:i, s:o, s:f, s:o, s:o, s:o}", "runs", m->fit.used, "constants",
                     list, "taken", m->fit.taken, "before", scores_json (what, &m->start),
                     "fitted", scores_json (what, &m->fitted), "left_out",
                     m->groups > 1 ? scores_json (what, &m->held_out) : json_null ());
    if (m->groups > 1)
        json_object_set_new (doc, "left_out_by", json_string (grouping_name (m->by)));
    if (what == CALIBRATE_TIME)
        json_object_set_new (doc, "not_estimated",
                             cli_reasons_json (m->runs.skipped, m->runs.n_skipped));
    return doc;
}

/* ---- the profile ---- */

static json_t *profile_json (const struct calibration *c)
{
    char source[128];
    json_t *doc;

    snprintf (source, sizeof source, "fitted by linkwise calibrate, from profile %s",
              c->start.name);
    doc = workload_profile_to_json (&c->fitted, source);
    if (doc)
        json_object_set_new (doc, "fit",
                             json_pack ("{s:s, s:i, s:o, s:o}", "start", c->start.from,
                                        "rows", c->runs.n, "memory",
                                        part_json (c, CALIBRATE_MEMORY), "time",
                                        part_json (c, CALIBRATE_TIME)));
    return doc;
}

static enum status answer (const struct calibrate_input *in, const struct calibration *c,
                           struct error *err)
{
    json_t *profile = profile_json (c), *doc;
    enum status st = profile ? ST_OK : err_nomem (err);

    if (st == ST_OK && in->out)
        st = json_write (in->out, profile, err);
    if (st == ST_OK && in->json) {
        doc = json_pack ("{s:i, s:s, s:o, s:o, s:o, s:O}", "version", 1, "start",
                         c->start.from, "memory", part_json (c, CALIBRATE_MEMORY), "time",
                         part_json (c, CALIBRATE_TIME), "next_run", next_json (&c->next),
                         "profile", profile);
        json_object_update_new (doc, cli_rows_json (&c->runs));
        st = cli_print_json (doc, err);
    } else if (st == ST_OK && !cli_is_dash (in->out)) {
        cli_print_rows (in->runs, &c->runs);
        cli_print ("the fit starts from profile %s\n", c->start.from);
        for (enum calibrate_part i = 0; i < CALIBRATE_PARTS; i++)
            if (c->part[i].runs.n > 0)
                print_part (i, c);
        cli_print_missing (c->part[CALIBRATE_TIME].runs.skipped,
                           c->part[CALIBRATE_TIME].runs.n_skipped);
        if (c->part[CALIBRATE_TIME].runs.n > 0)
            print_next (&c->next);
        else
            cli_print ("\nnext run: none is named, since step times choose it and no run "
                       "has one\n");
        if (in->out)
            cli_print ("\nprofile written to %s\n", in->out);
    }
    json_decref (profile);
    return st;
}

/* ---- the command ---- */

/* What was measured and cannot be, also by the profile that the fit starts from. */
static enum status doubt (struct calibration *c, struct notes *notes, struct error *err)
{
    struct workload_profile *each = calloc ((size_t) c->runs.n, sizeof *each);
    struct calibrate_steps steps = {0};
    enum status st =
        each ? calibrate_profiles (&c->runs, &c->start, each, err) : err_nomem (err);

    THEN (st, calibrate_steps_estimate (&c->runs, each, NULL, NULL, &steps, err));
    if (st == ST_OK) {
        calibrate_doubt_steps (&c->runs, steps.step_s);
        cli_note_doubts (&c->runs, notes);
    }
    calibrate_steps_release (&steps);
    free (each);
    return st;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct calibrate_input *in = input;
    struct calibration c = {0};
    struct progress progress;
    const char *file = in->out ? file_name (in->out) : NULL;
    enum status st = calibrate_runs_read (in->runs, &c.runs, err);

    cli_progress_start (&progress);
    cli_note_columns (&c.runs, notes);
    THEN (st, in->profile ? workload_profile_read (in->profile, &c.start, notes, err)
                          : calibrate_usual_profile (&c.runs, &c.start, notes, err));
    c.fitted = c.start;
    THEN (st, doubt (&c, notes, err));
    for (enum calibrate_part i = 0; i < CALIBRATE_PARTS && st == ST_OK; i++)
        st = fit_part (&c, i, &progress, notes, err);
    if (st == ST_OK && c.part[CALIBRATE_TIME].runs.n > 0)
        st = calibrate_next_run (&c.part[CALIBRATE_TIME].runs, &c.fitted,
                                 c.part[CALIBRATE_TIME].fit.few, &c.next, err);
    progress_end (&progress);
    if (st == ST_OK && c.part[CALIBRATE_MEMORY].runs.n == 0 &&
        c.part[CALIBRATE_TIME].runs.n == 0)
        st = err_set (err, ST_INVALID,
                      "%s: no run has a measured peak, an out-of-memory label or a step "
                      "time that can be estimated",
                      cli_input_name (in->runs));
    if (st == ST_OK) {
        if (in->name)
            snprintf (c.fitted.name, sizeof c.fitted.name, "%.63s", in->name);
        else if (in->out && !cli_is_dash (in->out)) /* "x/mine.json" is mine */
            snprintf (c.fitted.name, sizeof c.fitted.name, "%.*s",
                      file_stem (file) > 63 ? 63 : file_stem (file), file);
        calibrate_describe (&c.runs, &c.part[CALIBRATE_TIME].runs, &c.fitted);
        st = answer (in, &c, err);
    }
    for (int i = 0; i < CALIBRATE_PARTS; i++)
        free (c.part[i].runs.run);
    calibrate_runs_release (&c.runs);
    return st;
}

const struct cli_command cli_calibrate = {
    .arguments = "RUNS.csv",
    .help =
        "Fit the constants of a framework profile to measured runs.\v"
        "Example: linkwise calibrate runs.csv -o mine.json\n\n"
        "A handful of runs is enough.  Each constant starts at the profile's value "
        "and moves only as far as the runs support; a constant that they do not "
        "determine stays and is named.  Peaks and out-of-memory labels fit memory "
        "constants, step times fit time constants.  Trust the error on the held-out "
        "runs.  The last lines say which run would tell most if it were measured next.  "
        "RUNS.csv is a runs file (docs/runs.md) or - for standard input.",
    .options = {.line = options},
    .places = {1, 1, "one RUNS.csv",
               "RUNS.csv is required, as in: linkwise calibrate examples/runs/bloom.csv"},
    .at = {CLI_PLACE (runs)},
    CLI_RUN (run)};
