/* linkwise validate: estimates beside the measurements of a runs file. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

struct validate_input {
    const char *runs, *profile, *per_row;
    bool json, verbose;
};

#define INPUT struct validate_input

static const struct cli_option options[] = {
    {"profile", 0, "NAME|FILE",
     "profile for all rows (default: for each row the shipped profile of its source, "
     "else of its GPU type)",
     CLI_TEXT (profile)},
    {"per-row", 0, "FILE.csv",
     "write the rows with their estimates added; - is standard output, without the "
     "tables",
     CLI_TEXT (per_row), .alone = "--per-row"},
    {"verbose", 'v', NULL,
     "also print which profiles and GPU types the estimates are of, and why",
     CLI_FLAG (verbose)},
    {CLI_JSON},
    {0}};

/* What one call is about. */
struct validation {
    struct calibrate_runs runs;
    struct workload_profile *profile; /* [runs.n] */
    struct calibrate_steps steps;
};

static void on_run (void *context, int done, int of)
{
    progress_part (context, (double) done / of, "estimating step times: %d of %d runs",
                   done, of);
}

/* ---- every row ---- */

static const char *const added[] = {"est_iter_time_s",      "est_iter_time_low_s",
                                    "est_iter_time_high_s", "est_peak_mem_gb",
                                    "est_peak_mem_low_gb",  "est_peak_mem_high_gb",
                                    "est_oom_probability",  "est_fits",
                                    "est_read_as"};

static bool is_added (const char *column)
{
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (strcmp (added[i], column) == 0)
            return true;
    return false;
}

/* The file's own cells of one line; estimates of an earlier call go. */
static void write_cells (FILE *out, const struct csv_table *t, char **cell)
{
    for (int i = 0; i < t->columns; i++)
        if (!is_added (t->header[i])) {
            csv_write_cell (out, cell[i]);
            fputc (',', out);
        }
}

/* What a row was read as, where its cells leave it open too. */
static void write_reading (FILE *out, const struct calibrate_run *run,
                           const struct workload_profile *profile)
{
    char config[CLI_CONFIG_TEXT], text[2 * CLI_CONFIG_TEXT];

    snprintf (text, sizeof text, "profile %s%s, %s%s, attention %s, %s", profile->name,
              profile->unknown ? " for an unknown framework" : "",
              workload_precision_name (run->job.precision), run->job.lora ? ", LoRA" : "",
              workload_attention_name (run->job.attention),
              cli_config_text (&run->config, config));
    csv_write_cell (out, text);
    fputc ('\n', out);
}

static void write_skipped (FILE *out, const struct calibrate_runs *runs, int row)
{
    char text[CALIBRATE_REASON + 16];

    snprintf (text, sizeof text, "skipped: %s", runs->skipped[runs->why[row]].reason);
    fputs (",,,,,,,,", out);
    csv_write_cell (out, text);
    fputc ('\n', out);
}

static void write_estimates (FILE *out, const struct validation *v, int i)
{
    const struct calibrate_run *run = &v->runs.run[i];
    const struct workload_profile *profile = &v->profile[i];
    double p = calibrate_chance (run, profile),
           peak = calibrate_peak (run, profile) / UNITS_GIB, step_s = v->steps.step_s[i];

    if (isfinite (step_s)) {
        double factor =
            workload_interval (calibrate_time_spread (run, profile, v->steps.open[i]));

        fprintf (out, "%.6g,%.6g,%.6g", step_s, step_s / factor, step_s * factor);
    } else {
        fputs (",,", out);
    }
    if (isfinite (peak)) {
        double factor = calibrate_peak_interval (run, profile);

        fprintf (out, ",%.6g,%.6g,%.6g,%.6g,%d,", peak, peak / factor, peak * factor, p,
                 p < 0.5);
    } else {
        fputs (",,,,,,", out);
    }
    write_reading (out, run, profile);
}

static enum status write_per_row (const struct validation *v, const char *path,
                                  struct error *err)
{
    const struct csv_table *t = &v->runs.table;
    char *data = NULL;
    size_t len = 0;
    FILE *out = open_memstream (&data, &len);
    enum status st;

    if (!out)
        return err_nomem (err);
    write_cells (out, t, t->header);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        fprintf (out, "%s%s", i ? "," : "", added[i]);
    fputc ('\n', out);
    for (int row = 0, run = 0; row < t->rows; row++) {
        write_cells (out, t, t->cell + (size_t) row * (size_t) t->columns);
        if (run < v->runs.n && v->runs.run[run].row == row)
            write_estimates (out, v, run++);
        else
            write_skipped (out, &v->runs, row);
    }
    st = fclose (out) == 0 ? file_write (path, data, len, err) : err_nomem (err);
    free (data);
    return st;
}

/* ---- scores ---- */

static bool same_source (const struct validation *v, int a, int b)
{
    return strcmp (v->runs.run[a].source, v->runs.run[b].source) == 0 &&
           strcmp (v->profile[a].name, v->profile[b].name) == 0;
}

static void add_row (struct table *t, const char *source, const char *profile, bool times,
                     const struct cli_scores *s)
{
    table_cell (t, "%s", source);
    table_cell (t, "%s", profile);
    table_cell (t, "%d", times ? s->times.errors.n : s->peaks.n);
    if (times) {
        cli_time_cells (t, &s->times);
        return;
    }
    cli_error_cells (t, &s->peaks);
    cli_cell (t, "%.0f", 100 * s->coverage);
    cli_cell (t, "%.3f", s->peaks.spearman);
}

/* Peaks or step times: a line for every source and profile, and one for all together. */
static enum status print_by_source (const struct validation *v, bool times,
                                    const struct cli_scores *all, struct error *err)
{
    struct table *t =
        times ? TABLE_OF ("<source", "<profile", "runs", CLI_TIME_HEADERS)
              : TABLE_OF ("<source", "<profile", "peaks", "MAPE %", "median %", "bias %",
                          "worst %", "in 90 % interval, %", "Spearman");
    bool *use = calloc ((size_t) v->runs.n, sizeof *use);
    enum status st = use ? ST_OK : err_nomem (err);
    int rows = 0;

    for (int i = 0; i < v->runs.n && st == ST_OK; i++) {
        struct cli_scores s;
        int first = 0;

        while (!same_source (v, first, i))
            first++;
        if (first < i)
            continue;
        for (int k = 0; k < v->runs.n; k++)
            use[k] = same_source (v, i, k);
        st = cli_score (&v->runs, v->profile, v->steps.step_s, use, &s, err);
        if (st == ST_OK)
            add_row (t, v->runs.run[i].source, v->profile[i].name, times, &s);
        rows++;
    }
    if (rows > 1)
        add_row (t, "all", "", times, all);
    if (st == ST_OK) {
        cli_print ("\n%s, estimated and measured:\n",
                   times ? "step times" : "memory peaks");
        table_print (t, stdout);
    }
    table_destroy (t);
    free (use);
    return st;
}

static void print_labels (const struct cli_scores *s)
{
    struct table *t = TABLE_OF ("<rule", "AUC", "precision", "recall",
                                "precision at recall .99", "Brier score");

    cli_print ("\nout of memory, %d of %d labelled runs:\n", s->labels.positive,
               s->labels.n);
    table_cell (t, "linkwise, probability .5");
    cli_label_cells (t, &s->labels);
    table_cell (t, "Fujii's estimate over 80 %%");
    cli_label_cells (t, &s->fujii);
    table_end (t, stdout);
}

static enum status print_scores (const struct validation *v, const char *path,
                                 const struct cli_scores *all, struct error *err)
{
    bool any_peak = false, any_time = false;

    for (int i = 0; i < v->runs.n; i++) {
        any_peak |= !isnan (v->runs.run[i].peak_bytes);
        any_time |= !isnan (v->runs.run[i].iter_time_s);
    }
    cli_print_rows (path, &v->runs);
    if (any_peak)
        TRY (print_by_source (v, false, all, err));
    if (all->labels.n > 0)
        print_labels (all);
    if (any_time)
        TRY (print_by_source (v, true, all, err));
    cli_print_missing (v->steps.missing, v->steps.n_missing);
    if (!any_peak && !any_time && all->labels.n == 0)
        cli_print ("no run has a measured peak, an out-of-memory label or a step time\n");
    return ST_OK;
}

/* ---- parts ---- */

/* One more of a word in an object of counts. */
static void count_in (json_t *counts, const char *word)
{
    json_t *n = json_object_get (counts, word);

    json_object_set_new (counts, word, json_integer (json_integer_value (n) + 1));
}

/* The run's machines among those of a part. */
static void add_machines (const struct calibrate_run *run, json_t *part)
{
    json_t *types = json_object_in (part, "gpu_types");

    for (int i = 0; i < run->n_parts; i++) {
        const struct topology_gpu_type *t = run->part[i].type;
        json_t *type = json_object_get (types, t->name);

        if (!type)
            json_object_set_new (types, t->name, type = cli_gpu_type_json (t));
        count_in (type, "rows");
    }
    count_in (json_object_in (part, "networks"),
              run->gpus <= calibrate_domain (run)  ? "one NVLink domain"
              : run->part[0].inter_bytes_per_s > 0 ? "stated"
                                                   : "usual of the GPU type");
}

/* The profiles in use, each once, by name: what they are, why they serve, and the machines of their
 * rows. */
static json_t *parts_by_name (const struct validation *v)
{
    json_t *parts = json_object ();

    for (int i = 0; i < v->runs.n; i++) {
        const struct workload_profile *p = &v->profile[i];
        json_t *part = json_object_get (parts, p->name);

        if (!part) {
            json_object_set_new (parts, p->name, part = cli_framework_json (p));
            json_object_del (part, "framework_why");
        }
        count_in (part, "rows");
        count_in (json_object_in (part, "framework_why"), p->why[0] ? p->why : "named");
        add_machines (&v->runs.run[i], part);
    }
    return parts;
}

/* As a list, and how many rows each serves. */
static json_t *parts_json (const struct validation *v, json_t *rows)
{
    json_t *parts = parts_by_name (v), *list = json_array (), *part, *types, *type;
    const char *name, *key;

    json_object_foreach (parts, name, part)
    {
        json_t *flat = json_array ();

        types = json_object_get (part, "gpu_types");
        json_object_foreach (types, key, type) json_array_append (flat, type);
        json_object_set_new (part, "gpu_types", flat);
        json_object_set (rows, name, json_object_get (part, "rows"));
        json_array_append (list, part);
    }
    json_decref (parts);
    return list;
}

/* "its framework (12), its source (3)" */
static void print_counts (const json_t *counts)
{
    const char *word, *before = "";
    json_t *n;

    json_object_foreach ((json_t *) counts, word, n)
    {
        cli_print ("%s%s (%lld)", before, word, (long long) json_integer_value (n));
        before = ", ";
    }
}

static void print_parts (const struct validation *v)
{
    json_t *rows = json_object (), *list = parts_json (v, rows), *part, *type;
    size_t i, k;

    cli_print ("\nparts, with their rows:\n");
    json_array_foreach (list, i, part)
    {
        cli_print ("profile  %s, %s: ", json_member_text (part, "framework"),
                   json_member_text (part, "framework_kind"));
        print_counts (json_object_get (part, "framework_why"));
        cli_print ("; network: ");
        print_counts (json_object_get (part, "networks"));
        cli_print ("\n");
        json_array_foreach (json_object_get (part, "gpu_types"), k, type)
            cli_print ("compute  %s (%lld): %s\n", json_member_text (type, "name"),
                       (long long) json_member_int (type, "rows"),
                       json_member_text (type, "source"));
    }
    JSON_DECREF_ALL (rows, list);
}

static enum status print_json (const struct validation *v, const struct cli_scores *s,
                               struct error *err)
{
    json_t *doc = json_pack ("{s:i}", "version", 1), *times = cli_times_json (&s->times),
           *rows = json_object ();

    json_object_update_new (doc, cli_rows_json (&v->runs));
    json_object_set_new (doc, "parts", parts_json (v, rows));
    json_object_set_new (doc, "profiles", rows);
    json_object_set_new (
        doc, "memory",
        json_pack ("{s:o, s:o, s:o, s:o, s:o}", "peak", cli_errors_json (&s->peaks),
                   "peak_in_90_pct_interval_pct", json_number_or_null (100 * s->coverage),
                   "static", cli_errors_json (&s->states), "oom",
                   cli_labels_json (&s->labels), "oom_fujii",
                   cli_labels_json (&s->fujii)));
    json_object_set_new (times, "not_estimated",
                         cli_reasons_json (v->steps.missing, v->steps.n_missing));
    json_object_set_new (doc, "time", times);
    return cli_print_json (doc, err);
}

/* ---- the command ---- */

static enum status prepare (const struct validate_input *in, struct validation *v,
                            struct notes *notes, struct error *err)
{
    struct workload_profile forced;

    if (in->profile)
        TRY (workload_profile_read (in->profile, &forced, notes, err));
    TRY (calibrate_runs_read (in->runs, &v->runs, err));
    cli_note_columns (&v->runs, notes);
    if (!(v->profile = calloc ((size_t) v->runs.n, sizeof *v->profile)))
        return err_nomem (err);
    return calibrate_profiles (&v->runs, in->profile ? &forced : NULL, v->profile, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct validate_input *in = input;
    struct validation v = {0};
    struct cli_scores all;
    struct progress progress;
    enum status st = prepare (in, &v, notes, err);

    cli_progress_start (&progress);
    THEN (st, calibrate_steps_estimate (&v.runs, v.profile, on_run, &progress, &v.steps,
                                        err));
    progress_end (&progress);
    if (st == ST_OK) {
        calibrate_doubt_steps (&v.runs, v.steps.step_s);
        cli_note_doubts (&v.runs, notes);
    }
    if (st == ST_OK && in->per_row)
        st = write_per_row (&v, in->per_row, err);
    THEN (st, cli_score (&v.runs, v.profile, v.steps.step_s, NULL, &all, err));
    if (st == ST_OK && in->json)
        st = print_json (&v, &all, err);
    else if (st == ST_OK && !cli_is_dash (in->per_row)) {
        st = print_scores (&v, in->runs, &all, err);
        if (in->verbose)
            print_parts (&v);
    }
    free (v.profile);
    calibrate_steps_release (&v.steps);
    calibrate_runs_release (&v.runs);
    return st;
}

const struct cli_command cli_validate = {
    .arguments = "RUNS.csv",
    .help = "Compare estimates with the measurements of a runs file (docs/runs.md).\v"
            "Example: linkwise validate runs.csv --per-row estimates.csv\n\n"
            "RUNS.csv is a runs file or - for standard input.  Rows that cannot be "
            "estimated are skipped and counted by reason.",
    .options = {.line = options},
    .places = {1, 1, "one RUNS.csv",
               "RUNS.csv is required, as in: linkwise validate examples/runs/bloom.csv"},
    .at = {CLI_PLACE (runs)},
    CLI_RUN (run)};
