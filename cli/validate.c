/* linkwise validate: estimates beside the measurements of a runs file. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/units.h"

struct validate_input {
    const char *runs, *profile, *per_row;
    bool json;
};

#define INPUT struct validate_input

static const struct cli_option options[] = {
    {"profile", 0, "NAME|FILE",
     "one profile for all rows (default: the shipped one that names a row's source, else "
     "its GPU type's)",
     CLI_TEXT (profile)},
    {"per-row", 0, "FILE.csv",
     "write the same rows with their estimates; - is standard output, alone",
     CLI_TEXT (per_row), .alone = "--per-row"},
    {CLI_JSON},
    {0}};

/* What one call is about. */
struct validation {
    struct calibrate_runs runs;
    struct workload_profile *profile; /* [runs.n] */
    double *need_bytes, *peak_bytes;  /* [runs.n] estimates */
    struct calibrate_steps steps;
};

static void on_run (void *context, int done, int of)
{
    progress_show (context, "estimating step times: %d of %d runs", done, of);
}

static enum status estimate (struct validation *v, struct error *err)
{
    struct progress progress;
    enum status st;

    progress_start (&progress);
    for (int i = 0; i < v->runs.n; i++) {
        const struct calibrate_run *run = &v->runs.run[i];

        v->peak_bytes[i] = calibrate_peak (run, &v->profile[i], MEMEST_LINKWISE);
        v->need_bytes[i] = calibrate_need (run, &v->profile[i], MEMEST_LINKWISE);
        progress_show (&progress, "estimating memory: %d of %d runs", i, v->runs.n);
    }
    st = calibrate_steps_estimate (&v->runs, v->profile, on_run, &progress, &v->steps,
                                   err);
    progress_end (&progress);
    return st;
}

/* ---- every row ---- */

static const char *const added[] = {"est_iter_time_s", "est_peak_mem_gb",
                                    "est_oom_probability", "est_fits"};

static bool is_added (const char *column)
{
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (strcmp (added[i], column) == 0)
            return true;
    return false;
}

/* One line: the file's own cells, then four more; estimates of an earlier call go. */
static void write_line (FILE *out, const struct csv_table *t, char **cell,
                        const char *const *more)
{
    for (int i = 0; i < t->columns; i++)
        if (!is_added (t->header[i])) {
            csv_write_cell (out, cell[i]);
            fputc (',', out);
        }
    for (int i = 0; i < 4; i++)
        fprintf (out, "%s%c", more[i], i < 3 ? ',' : '\n');
}

static void write_row (FILE *out, const struct validation *v, int row, int run)
{
    const struct csv_table *t = &v->runs.table;
    char value[4][32] = {"", "", "", ""};
    const char *more[] = {value[0], value[1], value[2], value[3]};

    if (run >= 0) {
        double p = memest_oom_probability (&v->profile[run], v->need_bytes[run],
                                           v->runs.run[run].gpu_bytes);

        if (isfinite (v->steps.step_s[run]))
            snprintf (value[0], sizeof value[0], "%.6g", v->steps.step_s[run]);
        snprintf (value[1], sizeof value[1], "%.6g", v->peak_bytes[run] / UNITS_GIB);
        snprintf (value[2], sizeof value[2], "%.6g", p);
        snprintf (value[3], sizeof value[3], "%d", p < 0.5);
    }
    write_line (out, t, t->cell + (size_t) row * (size_t) t->columns, more);
}

static enum status write_per_row (const struct validation *v, const char *path,
                                  struct error *err)
{
    char *data = NULL;
    size_t len = 0;
    FILE *out = open_memstream (&data, &len);
    enum status st;

    if (!out)
        return err_nomem (err);
    write_line (out, &v->runs.table, v->runs.table.header, added);
    for (int row = 0, run = 0; row < v->runs.table.rows; row++) {
        bool used = run < v->runs.n && v->runs.run[run].row == row;

        write_row (out, v, row, used ? run : -1);
        run += used;
    }
    st = fclose (out) == 0 ? file_write (path, data, len, err) : err_nomem (err);
    free (data);
    return st;
}

/* ---- scores ---- */

static void mark_source (const struct validation *v, int first, bool *use)
{
    for (int i = 0; i < v->runs.n; i++)
        use[i] = strcmp (v->runs.run[i].source, v->runs.run[first].source) == 0 &&
                 strcmp (v->profile[i].name, v->profile[first].name) == 0;
}

/* Is this the first run of its source and profile? */
static bool is_first (const struct validation *v, int run)
{
    for (int i = 0; i < run; i++)
        if (strcmp (v->runs.run[i].source, v->runs.run[run].source) == 0 &&
            strcmp (v->profile[i].name, v->profile[run].name) == 0)
            return false;
    return true;
}

/* A table has a line for every source and profile, and one for all together. */
typedef enum status add_cells (const struct validation *v, const bool *use,
                               struct table *t, struct error *err);

static enum status peak_cells (const struct validation *v, const bool *use,
                               struct table *t, struct error *err)
{
    struct calibrate_errors e;
    enum status st = calibrate_memory_errors (&v->runs, v->profile, false, use, &e, err);

    if (st != ST_OK)
        return st;
    table_cell (t, "%d", e.n);
    cli_error_cells (t, &e);
    cli_cell (t, "%.0f", 100 * calibrate_memory_coverage (&v->runs, v->profile, use));
    cli_cell (t, "%.3f", e.spearman);
    return ST_OK;
}

static enum status time_cells (const struct validation *v, const bool *use,
                               struct table *t, struct error *err)
{
    struct calibrate_time_scores s;
    enum status st = calibrate_score_times (&v->runs, v->steps.step_s, use, &s, err);

    if (st != ST_OK)
        return st;
    table_cell (t, "%d", s.errors.n);
    cli_time_cells (t, &s);
    return ST_OK;
}

static enum status print_by_source (const struct validation *v, const char *title,
                                    const char *const *header, add_cells *add,
                                    struct error *err)
{
    struct table *t = table_create (header);
    bool *use = calloc ((size_t) v->runs.n + 1, sizeof *use);
    enum status st = use ? ST_OK : err_nomem (err);
    int rows = 0;

    for (int i = 0; i < v->runs.n && st == ST_OK; i++) {
        if (!is_first (v, i))
            continue;
        mark_source (v, i, use);
        table_cell (t, "%s", v->runs.run[i].source);
        table_cell (t, "%s", v->profile[i].name);
        st = add (v, use, t, err);
        rows++;
    }
    if (st == ST_OK && rows > 1) {
        table_cell (t, "all");
        table_cell (t, "%s", "");
        st = add (v, NULL, t, err);
    }
    if (st == ST_OK) {
        printf ("\n%s, estimated against measured:\n", title);
        table_print (t, stdout);
    }
    table_destroy (t);
    free (use);
    return st;
}

static enum status labels_of (const struct validation *v, struct calibrate_labels *own,
                              struct calibrate_labels *fujii, struct error *err)
{
    enum status st =
        calibrate_memory_labels (&v->runs, v->profile, MEMEST_LINKWISE, 1.0, own, err);

    return st == ST_OK ? calibrate_memory_labels (&v->runs, v->profile, MEMEST_FUJII, 0.8,
                                                  fujii, err)
                       : st;
}

static void print_labels (const struct calibrate_labels *own,
                          const struct calibrate_labels *fujii)
{
    struct table *t = cli_table ("<rule", "AUC", "precision", "recall",
                                 "precision at recall .99", "Brier score");

    printf ("\nout of memory, %d of %d labelled runs:\n", own->positive, own->n);
    table_cell (t, "linkwise, probability .5");
    cli_label_cells (t, own);
    table_cell (t, "Fujii's estimate over 80 %%");
    cli_label_cells (t, fujii);
    cli_table_end (t);
}

static enum status print_scores (const struct validation *v, const char *path,
                                 struct error *err)
{
    static const char *const peaks[] = {
        "<source",  "<profile", "peaks",   "MAPE %",
        "median %", "bias %",   "worst %", "in 90 % interval, %",
        "Spearman", NULL};
    static const char *const times[] = {"<source", "<profile", "runs", CLI_TIME_HEADERS,
                                        NULL};
    struct calibrate_labels own, fujii;
    enum status st = labels_of (v, &own, &fujii, err);
    bool any_peak = false, any_time = false;

    if (st != ST_OK)
        return st;
    for (int i = 0; i < v->runs.n; i++) {
        any_peak |= !isnan (v->runs.run[i].peak_bytes);
        any_time |= !isnan (v->runs.run[i].iter_time_s);
    }
    cli_print_rows (path, &v->runs);
    if (any_peak)
        st = print_by_source (v, "memory peaks", peaks, peak_cells, err);
    if (st == ST_OK && own.n > 0)
        print_labels (&own, &fujii);
    if (st == ST_OK && any_time)
        st = print_by_source (v, "step times", times, time_cells, err);
    if (st == ST_OK)
        cli_print_missing (v->steps.missing, v->steps.n_missing);
    if (st == ST_OK && !any_peak && !any_time && own.n == 0)
        printf ("no run has a measured peak, an out-of-memory label or a step time\n");
    return st;
}

static enum status memory_json (const struct validation *v, json_t **out,
                                struct error *err)
{
    struct calibrate_errors peaks, states;
    struct calibrate_labels own, fujii;
    enum status st = labels_of (v, &own, &fujii, err);

    if (st == ST_OK)
        st = calibrate_memory_errors (&v->runs, v->profile, false, NULL, &peaks, err);
    if (st == ST_OK)
        st = calibrate_memory_errors (&v->runs, v->profile, true, NULL, &states, err);
    if (st != ST_OK)
        return st;
    *out = json_pack ("{s:o, s:o, s:o, s:o, s:o}", "peak", cli_errors_json (&peaks),
                      "peak_in_90_pct_interval_pct",
                      json_number_or_null (
                          100 * calibrate_memory_coverage (&v->runs, v->profile, NULL)),
                      "static", cli_errors_json (&states), "oom", cli_labels_json (&own),
                      "oom_fujii", cli_labels_json (&fujii));
    return *out ? ST_OK : err_nomem (err);
}

static enum status time_json (const struct validation *v, json_t **out, struct error *err)
{
    struct calibrate_time_scores s;
    enum status st = calibrate_score_times (&v->runs, v->steps.step_s, NULL, &s, err);

    if (st != ST_OK)
        return st;
    *out = cli_times_json (&s);
    return *out && json_object_set_new (
                       *out, "not_estimated",
                       cli_reasons_json (v->steps.missing, v->steps.n_missing)) == 0
               ? ST_OK
               : err_nomem (err);
}

/* The profiles in use, each once. */
static json_t *profiles_json (const struct validation *v)
{
    json_t *seen = json_object ();

    for (int i = 0; i < v->runs.n; i++) {
        json_t *n = json_object_get (seen, v->profile[i].name);

        json_object_set_new (seen, v->profile[i].name,
                             json_integer (json_integer_value (n) + 1));
    }
    return seen;
}

static enum status print_json (const struct validation *v, struct error *err)
{
    json_t *memory = NULL, *times = NULL, *doc = json_pack ("{s:i}", "version", 1);
    enum status st = cli_rows_json (doc, &v->runs, err);

    if (st == ST_OK)
        st = memory_json (v, &memory, err);
    if (st == ST_OK)
        st = time_json (v, &times, err);
    if (st != ST_OK) {
        json_decref (doc);
        json_decref (memory);
        json_decref (times);
        return st;
    }
    json_object_set_new (doc, "profiles", profiles_json (v));
    json_object_set_new (doc, "memory", memory);
    json_object_set_new (doc, "time", times);
    return cli_print_json (doc, err);
}

/* ---- the command ---- */

static enum status prepare (const struct validate_input *in, struct validation *v,
                            struct notes *notes, struct error *err)
{
    struct workload_profile forced;
    enum status st = ST_OK;
    size_t n;

    if (in->profile)
        st = workload_profile_read (in->profile, &forced, notes, err);
    if (st == ST_OK)
        st = calibrate_runs_read (in->runs, &v->runs, err);
    if (st != ST_OK)
        return st;
    cli_note_columns (&v->runs, notes);
    n = (size_t) v->runs.n;
    v->profile = calloc (n, sizeof *v->profile);
    v->need_bytes = calloc (n, sizeof *v->need_bytes);
    v->peak_bytes = calloc (n, sizeof *v->peak_bytes);
    if (!v->profile || !v->need_bytes || !v->peak_bytes)
        return err_nomem (err);
    return calibrate_profiles (&v->runs, in->profile ? &forced : NULL, v->profile, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct validate_input *in = input;
    struct validation v = {0};
    enum status st = prepare (in, &v, notes, err);

    if (st == ST_OK)
        st = estimate (&v, err);
    if (st == ST_OK && in->per_row)
        st = write_per_row (&v, in->per_row, err);
    if (st == ST_OK && in->json)
        st = print_json (&v, err);
    else if (st == ST_OK && !cli_is_dash (in->per_row))
        st = print_scores (&v, in->runs, err);
    free (v.profile);
    free (v.need_bytes);
    free (v.peak_bytes);
    calibrate_steps_release (&v.steps);
    calibrate_runs_release (&v.runs);
    return st;
}

const struct cli_command cli_validate = {
    .arguments = "RUNS.csv",
    .help = "Estimates beside the measurements of a runs file (docs/runs.md).\v"
            "Example: linkwise validate runs.csv --per-row estimates.csv\n\nRUNS.csv is "
            "a runs file or - for standard input.  Rows that cannot be estimated are "
            "skipped, and counted by reason.",
    .options = {.line = options},
    .places = {1, 1, "one RUNS.csv", "RUNS.csv is required"},
    .at = {CLI_PLACE (runs)},
    CLI_RUN (run)};
