/* What validate and calibrate print alike: rows, skipped rows, scores. */
#include "cli/cli.h"

#include <math.h>

/* Rows of a table and entries of a list; either may be NULL.  Rows of the file are counted
 * from 1, the header being the first. */
static void add_reasons (const struct calibrate_reason *reason, int n, struct table *t,
                         json_t *list)
{
    for (int i = 0; i < n; i++) {
        table_cell (t, "%d", reason[i].count);
        table_cell (t, "%d", reason[i].first_row + 2);
        table_cell (t, "%s", reason[i].reason);
        json_array_append_new (list, json_pack ("{s:s, s:i, s:i}", "reason",
                                                reason[i].reason, "rows", reason[i].count,
                                                "first_row", reason[i].first_row + 2));
    }
}

static void print_reasons (const char *because, const struct calibrate_reason *reason,
                           int n)
{
    struct table *t;

    if (n == 0)
        return;
    t = TABLE_OF ("rows", "first", because);
    add_reasons (reason, n, t, NULL);
    table_end (t, stdout);
}

void cli_note_columns (const struct calibrate_runs *runs, struct notes *notes)
{
    if (runs->meant[0])
        notes_add (notes, "columns under other names: %s", runs->meant);
    if (runs->unread[0])
        notes_add (notes, "columns that are not read: %s", runs->unread);
    if (runs->ignored[0])
        notes_add (notes, "columns that mean nothing here: %s", runs->ignored);
    if (runs->absent[0])
        notes_add (notes, "the header lacks %s: taken as empty", runs->absent);
}

void cli_note_doubts (const struct calibrate_runs *runs, struct notes *notes)
{
    for (int i = 0; i < runs->n_doubted; i++) {
        const struct calibrate_reason *d = &runs->doubted[i];

        notes_add (notes, "row %d%s: %s; no fit takes it", d->first_row + 2,
                   d->count > 1 ? " and others" : "", d->reason);
    }
}

void cli_print_rows (const char *path, const struct calibrate_runs *runs)
{
    cli_print ("%s: %d row%s, %d used, %d skipped\n", cli_input_name (path),
               runs->table.rows, TEXT_S (runs->table.rows), runs->n,
               runs->table.rows - runs->n);
    print_reasons ("<skipped because", runs->skipped, runs->n_skipped);
    print_reasons ("<cannot be, and no fit takes it", runs->doubted, runs->n_doubted);
}

void cli_print_missing (const struct calibrate_reason *missing, int n)
{
    if (n > 0)
        cli_print ("\nstep times that cannot be estimated:\n");
    print_reasons ("<because", missing, n);
}

json_t *cli_reasons_json (const struct calibrate_reason *reason, int n)
{
    json_t *list = json_array ();

    add_reasons (reason, n, NULL, list);
    return list;
}

json_t *cli_rows_json (const struct calibrate_runs *runs)
{
    return json_pack ("{s:i, s:i, s:o, s:o}", "rows", runs->table.rows, "used", runs->n,
                      "skipped", cli_reasons_json (runs->skipped, runs->n_skipped),
                      "doubted", cli_reasons_json (runs->doubted, runs->n_doubted));
}

enum status cli_score (const struct calibrate_runs *runs,
                       const struct workload_profile *profile, const double *step_s,
                       const bool *use, struct cli_scores *s, struct error *err)
{
    TRY (calibrate_memory_errors (runs, profile, false, use, &s->peaks, err));
    TRY (calibrate_memory_errors (runs, profile, true, use, &s->states, err));
    if (!use) {
        TRY (calibrate_memory_labels (runs, profile, MEMEST_LINKWISE, 1.0, &s->labels,
                                      err));
        TRY (calibrate_memory_labels (runs, profile, MEMEST_FUJII, 0.8, &s->fujii, err));
    }
    s->coverage = calibrate_memory_coverage (runs, profile, use);
    return step_s ? calibrate_score_times (runs, step_s, use, &s->times, err) : ST_OK;
}

json_t *cli_errors_json (const struct calibrate_errors *e)
{
    bool any = e->n > 0;

    return json_pack ("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "runs", e->n, "mape_pct",
                      json_number_or_null (any ? 100 * e->mape : NAN), "median_pct",
                      json_number_or_null (any ? 100 * e->median : NAN), "bias_pct",
                      json_number_or_null (any ? 100 * e->bias : NAN), "worst_pct",
                      json_number_or_null (any ? 100 * e->worst : NAN), "spearman",
                      json_number_or_null (e->spearman), "kendall",
                      json_number_or_null (e->kendall));
}

json_t *cli_labels_json (const struct calibrate_labels *l)
{
    return json_pack ("{s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "runs", l->n,
                      "out_of_memory", l->positive, "auc", json_number_or_null (l->auc),
                      "precision", json_number_or_null (l->precision), "recall",
                      json_number_or_null (l->recall), "precision_at_recall_99",
                      json_number_or_null (l->precision_at_99), "brier",
                      json_number_or_null (l->n > 0 ? l->brier : NAN));
}

json_t *cli_times_json (const struct calibrate_time_scores *s)
{
    const struct calibrate_regret *g = &s->regret;

    return json_pack ("{s:o, s:{s:i, s:i, s:o, s:o}}", "step",
                      cli_errors_json (&s->errors), "regret", "groups", g->groups,
                      "groups_within_2_pct", g->small, "mean_pct",
                      json_number_or_null (100 * g->mean), "worst_pct",
                      json_number_or_null (g->groups > 0 ? 100 * g->worst : NAN));
}

void cli_cell (struct table *t, const char *format, double value)
{
    if (fabs (value) > 1e6)
        format = "%.2g"; /* a typing error must not blow up the table */
    table_number (t, format, value);
}

void cli_label_cells (struct table *t, const struct calibrate_labels *l)
{
    bool any = l->n > 0;

    cli_cell (t, "%.4f", any ? l->auc : NAN);
    cli_cell (t, "%.3f", any ? l->precision : NAN);
    cli_cell (t, "%.3f", any ? l->recall : NAN);
    cli_cell (t, "%.3f", any ? l->precision_at_99 : NAN);
    cli_cell (t, "%.4f", any ? l->brier : NAN);
}

void cli_error_cells (struct table *t, const struct calibrate_errors *e)
{
    bool any = e->n > 0;

    cli_cell (t, "%.1f", any ? 100 * e->mape : NAN);
    cli_cell (t, "%.1f", any ? 100 * e->median : NAN);
    cli_cell (t, "%+.1f", any ? 100 * e->bias : NAN);
    cli_cell (t, "%.1f", any ? 100 * e->worst : NAN);
}

void cli_time_cells (struct table *t, const struct calibrate_time_scores *s)
{
    cli_error_cells (t, &s->errors);
    cli_cell (t, "%.3f", s->errors.spearman);
    cli_cell (t, "%.3f", s->errors.kendall);
    cli_cell (t, "%.1f", 100 * s->regret.mean);
    if (s->regret.groups > 0)
        table_cell (t, "%d of %d", s->regret.small, s->regret.groups);
    else
        table_cell (t, "-");
}
