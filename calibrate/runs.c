/* Runs files: a row of published measurements into a model, a job and a configuration.
 *
 * Sources state what they state.  What a row leaves out is taken from its model's family
 * (by name, else by its parameter count), from `key=value` pairs in its notes under
 * Megatron's option names, and from the contract's defaults for empty cells. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

/* ---- the configuration ---- */

/* Megatron's list, "[layernorm moe_act]"; a recipe may name modules that its model has not. */
static bool read_modules (char *list, const struct workload_model *m,
                          struct workload_config *c)
{
    size_t n = strlen (list);

    if (n < 2 || list[0] != '[' || list[n - 1] != ']')
        return workload_modules_parse (list, &c->recompute_modules);
    list[n - 1] = '\0';
    if (list[1] && !workload_modules_parse (list + 1, &c->recompute_modules))
        return false;
    c->recompute_modules &= workload_modules_of (m);
    if (c->recompute_modules == 0)
        c->recompute = RECOMPUTE_NONE;
    return true;
}

static bool read_recompute (const struct row *r, const struct workload_model *m,
                            struct workload_config *c)
{
    const char *s = calibrate_cell (r, "recompute");
    int layers = calibrate_note_int (r, "recompute-num-layers", 0);
    char method[64] = "", word[WORKLOAD_RECOMPUTE_TEXT],
         list[WORKLOAD_RECOMPUTE_TEXT] = "";
    size_t n = strcspn (s, "(");

    /* "selective (per op)": what the brackets say is the framework's way. */
    while (n > 0 && s[n - 1] == ' ')
        n--;
    snprintf (word, sizeof word, "%.*s", (int) n, s);
    for (char *letter = word; *letter; letter++)
        *letter = (char) tolower ((unsigned char) *letter);
    if (!workload_recompute_parse (*s ? word : "selective", c))
        return false;
    if (c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules == 0 &&
        calibrate_note (r, "recompute-modules", list, sizeof list) &&
        !read_modules (list, m, c))
        return false;
    /* Megatron's block method recomputes so many layers of a stage, its uniform method all
     * of them in groups. */
    calibrate_note (r, "recompute-method", method, sizeof method);
    if (c->recompute == RECOMPUTE_FULL && strcmp (method, "block") == 0 && layers > 0)
        c->recompute_layers = layers;
    return true;
}

bool calibrate_schedule_noted (const char *notes, struct workload_config *c)
{
    static const struct {
        const char *word;
        enum workload_schedule s;
    } words[] = {{"1f1b-interleaved", SCHEDULE_INTERLEAVED},
                 {"1f1b", SCHEDULE_1F1B},
                 {"gpipe", SCHEDULE_GPIPE},
                 {"zero-bubble", SCHEDULE_ZB1P},
                 {"zbb", SCHEDULE_ZB1P},
                 {"zb1p", SCHEDULE_ZB1P},
                 {"zb2p", SCHEDULE_ZB2P},
                 {"zbv", SCHEDULE_ZBV},
                 {"v-half", SCHEDULE_V_HALF},
                 {"v-min", SCHEDULE_V_MIN}};
    const char *said = strstr (notes, "schedule=");
    size_t i = 0, n = COUNT_OF (words);

    c->schedule = c->deg.pp > 1 && c->deg.vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    while (said && i < n &&
           strncmp (said + 9, words[i].word, strlen (words[i].word)) != 0)
        i++;
    if (i == n)
        return false;
    if (said)
        c->schedule = words[i].s;
    /* The file's vpp is what the tool was given; a chunk more is no other memory. */
    if (c->schedule != SCHEDULE_INTERLEAVED)
        c->deg.vpp = workload_default_vpp (c->schedule);
    return true;
}

/* One is no default where the stated degrees leave room: what they do is pipeline stages; where
 * tensor parallelism is not stated either, that of a node first, but with experts, whose recipes have
 * little of it.
 * @return false where nothing makes up the GPUs */
static bool fill_degrees (struct calibrate_run *run, int dp, long long *rest)
{
    struct workload_degrees *d = &run->config.deg;
    int more = (int) (run->gpus / (*rest * dp)),
        tp = run->tp_said || run->model.experts > 0 ? 1 : more;

    while (tp > 8 || (tp > 1 && more % tp != 0))
        tp--;
    if (*rest * dp * more != run->gpus)
        return false;
    d->tp *= tp;
    d->etp *= tp;
    d->pp *= more / tp;
    *rest *= more;
    return true;
}

static const char *read_degrees (const struct row *r, struct calibrate_run *run)
{
    struct workload_degrees *d = &run->config.deg;
    long long rest;
    int dp;

    run->tp_said = calibrate_cell (r, "tp")[0] != '\0';
    run->pp_said = calibrate_cell (r, "pp")[0] != '\0';
    run->ep_said = calibrate_cell (r, "ep")[0] != '\0';
    d->tp = calibrate_whole (r, "tp", 1);
    d->pp = calibrate_whole (r, "pp", 1);
    d->cp = calibrate_whole (r, "cp", 1);
    d->ep = calibrate_whole (r, "ep", 1);
    d->vpp = calibrate_whole (r, "vpp", 1);
    d->etp = calibrate_note_int (r, "expert-tensor-parallel-size", d->tp);
    if (d->tp < 1 || d->pp < 1 || d->cp < 1 || d->ep < 1 || d->vpp < 1 || d->etp < 1)
        return "a degree is not a whole number";
    rest = (long long) d->tp * d->pp;
    if (rest <= run->gpus)
        rest *= d->cp;
    dp = calibrate_whole (r, "dp", 0);
    if (calibrate_cell (r, "dp")[0] != '\0' && dp < 1)
        return "dp is not a whole number";
    if (!run->pp_said && dp > 0 && rest * dp < run->gpus &&
        (long long) d->ep * rest * dp != run->gpus && !fill_degrees (run, dp, &rest))
        return "pp unknown: the other degrees do not make up gpus";
    /* The GPUs are what is certain: some sources' dp counts cp too, or less. */
    if (run->gpus % rest != 0)
        return "tp x pp x cp does not divide gpus";
    d->dp = (int) (run->gpus / rest);
    /* Megatron's recipes with more expert ranks than dp x cp leave experts whole. */
    if (d->ep > 1 && (long long) d->dp * d->cp % d->ep != 0 &&
        calibrate_note_int (r, "expert-tensor-parallel-size", 0) == 0)
        d->etp = 1;
    return NULL;
}

static const char *read_config (const struct row *r, struct calibrate_run *run)
{
    struct workload_config *c = &run->config;
    const char *why = read_degrees (r, run), *sp = calibrate_cell (r, "sp");

    if (why)
        return why;
    c->micro_batch = calibrate_whole (r, "micro_batch", 1);
    c->zero = calibrate_whole (r, "zero", 0);
    run->zero_said = calibrate_cell (r, "zero")[0] != '\0';
    run->micro_batch_said = calibrate_cell (r, "micro_batch")[0] != '\0';
    if (c->micro_batch < 1)
        return "micro_batch is not a whole number";
    if (c->zero < 0 || c->zero > 3)
        return "zero is not 0 to 3";
    if (sp[0] != '\0' && strcmp (sp, "0") != 0 && strcmp (sp, "1") != 0)
        return calibrate_refuse (r, "sp", "0 or 1; a degree is of cp");
    run->sequence_parallel_said = sp[0] != '\0';
    run->splits_sequences = sp[0] == '1';
    c->sequence_parallel = c->deg.tp > 1 && run->splits_sequences;
    run->recompute_said = calibrate_cell (r, "recompute")[0] != '\0';
    c->optimizer_bytes = calibrate_note_int (r, "optimizer-bytes", 0);
    if (c->optimizer_bytes < 0 || c->optimizer_bytes > WORKLOAD_OPTIMIZER_BYTES_MAX)
        return "optimizer-bytes is out of range";
    if (!read_recompute (r, &run->model, c))
        return calibrate_refuse (r, "recompute", "none, selective, full or modules");
    if (!calibrate_schedule_noted (calibrate_cell (r, "notes"), c))
        return "schedule not understood";
    if (run->model.experts == 0)
        c->deg.etp = c->deg.tp;
    return NULL;
}

/* Once the degrees are known. */
static const char *read_batch (const struct row *r, struct calibrate_run *run)
{
    run->job.global_batch =
        calibrate_whole (r, "global_batch", calibrate_implied_batch (r, run));
    return run->job.global_batch >= 1 ? NULL
           : run->config.deg.pp > 1
               ? "global_batch unknown: it, or iter_time_s and tokens_per_s_per_gpu"
               : "global_batch unknown: it, or micro_batch, or iter_time_s and "
                 "tokens_per_s_per_gpu";
}

/* ---- rows together ---- */

#define DO_NOT_DIVIDE "degrees or batch do not divide"
static bool divides (const struct calibrate_run *run)
{
    return workload_config_check (&run->model, &run->job, &run->config, NULL) == ST_OK;
}

static const char *read_row (const struct row *r, struct calibrate_run *run)
{
    const char *why = r->table->found[r->index] == r->table->columns
                          ? calibrate_unread_cell (r)
                          : "more or fewer cells than the header";

    snprintf (run->source, sizeof run->source, "%.63s", calibrate_cell (r, "source"));
    snprintf (run->framework, sizeof run->framework, "%.63s",
              calibrate_cell (r, "framework"));
    if (!why)
        why = calibrate_read_model (r, run);
    if (!why)
        why = calibrate_read_machines (r, run);
    if (!why)
        why = calibrate_read_job (r, run);
    if (!why)
        why = read_config (r, run);
    if (!why)
        why = read_batch (r, run);
    if (!why && workload_job_check (&run->model, &run->job, NULL) != ST_OK)
        why = "seq does not fit the model";
    /* What the row leaves open may make them divide. */
    if (!why && run->tp_said && run->pp_said && !divides (run))
        why = DO_NOT_DIVIDE;
    if (!why)
        why = calibrate_read_layers (r, run);
    return why ? why : calibrate_read_measured (r, run);
}

void calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                             int row)
{
    char reason[sizeof list->reason];
    int i = 0;

    snprintf (reason, sizeof reason, "%s", why);
    while (i < *n && strcmp (list[i].reason, reason) != 0)
        i++;
    if (i == CALIBRATE_REASONS_MAX)
        i--; /* the last stands for all others */
    if (i == *n) {
        list[i] = (struct calibrate_reason){.first_row = row};
        memcpy (list[i].reason, reason, sizeof reason);
        ++*n;
    }
    list[i].count++;
}

static enum status assume_framework (struct calibrate_runs *runs, struct error *err)
{
    struct calibrate_shelf shelf;
    struct workload_profile p;
    int n = 0;

    TRY (calibrate_shelf_open (&shelf, err));
    for (int i = 0; i < runs->n; i++) {
        struct calibrate_run *run = &runs->run[i];

        calibrate_shelf_find (&shelf, run, &p);
        calibrate_assume (run, &p);
        if (divides (run)) {
            calibrate_doubt (runs, run);
            runs->run[n++] = *run;
            continue;
        }
        free (run->layers);
        calibrate_count_reason (runs->skipped, &runs->n_skipped, DO_NOT_DIVIDE, run->row);
    }
    runs->n = n;
    calibrate_shelf_close (&shelf);
    return ST_OK;
}

/* The rows of a table, which is taken over. */
static enum status read_table (const char *path, struct csv_table *table,
                               struct calibrate_runs *out, struct error *err)
{
    struct calibrate_runs runs = {.table = *table};
    char room[CALIBRATE_REASON];
    struct csv_table usual = {0};
    struct text meant = {0};
    struct row r = {.table = &usual, .why = room};
    enum status st = calibrate_usual_form (&runs.table, &usual, &meant, err);

    snprintf (runs.meant, sizeof runs.meant, "%s", text_str (&meant));
    text_free (&meant);
    if (st == ST_OK)
        st = calibrate_check_columns (path, &usual, &runs, err);
    if (st == ST_OK &&
        !(runs.run = calloc ((size_t) runs.table.rows + 1, sizeof *runs.run)))
        st = err_nomem (err);
    for (r.index = 0; r.index < runs.table.rows && st == ST_OK; r.index++) {
        struct calibrate_run *run = &runs.run[runs.n];
        const char *why;

        memset (run, 0, sizeof *run);
        run->row = r.index;
        why = read_row (&r, run);
        if (!why) {
            runs.n++;
            continue;
        }
        free (run->layers);
        calibrate_count_reason (runs.skipped, &runs.n_skipped, why, r.index);
    }
    csv_table_release (&usual);
    if (st == ST_OK)
        st = assume_framework (&runs, err);
    if (st == ST_OK && runs.n == 0) {
        struct text why = {0};

        for (int i = 0; i < runs.n_skipped; i++)
            text_add (&why, "%s%d %s", i ? ", " : ": ", runs.skipped[i].count,
                      runs.skipped[i].reason);
        st = err_set (err, ST_INVALID, "%s: no row is left of %d%s", file_title (path),
                      runs.table.rows, text_str (&why));
        text_free (&why);
    }
    if (st == ST_OK)
        *out = runs;
    else
        calibrate_runs_release (&runs);
    return st;
}

enum status calibrate_runs_read (const char *path, struct calibrate_runs *out,
                                 struct error *err)
{
    struct csv_table table;

    TRY (csv_table_read (path, &table, err));
    return read_table (path, &table, out, err);
}

enum status calibrate_runs_parse (const char *name, const char *data, size_t len,
                                  struct calibrate_runs *out, struct error *err)
{
    struct csv_table table;

    TRY (csv_table_parse (name, data, len, &table, err));
    return read_table (name, &table, out, err);
}

void calibrate_runs_release (struct calibrate_runs *r)
{
    for (int i = 0; i < r->n; i++)
        free (r->run[i].layers);
    free (r->run);
    csv_table_release (&r->table);
    *r = (struct calibrate_runs){0};
}
