/* Runs files: a row of published measurements into a model, a job and a configuration.
 *
 * Sources state what they state.  What a row leaves out is taken from its model's family
 * (by name, else by its parameter count), from `key=value` pairs in its notes under
 * Megatron's option names, and from the contract's defaults for empty cells. */
#include "calibrate/calibrate_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MICRO_BATCH_MOST 64 /* that anybody calls a batch */

/* A batch beside steps of accumulation: with a micro-batch the global one, which these must make;
 * else a micro-batch where there are several steps and it can be, and the global one where it
 * cannot.
 * @return does it agree? */
static bool settle_batch (const struct row *r, struct calibrate_run *run)
{
    int batch = calibrate_whole (r, "batch_size", 0),
        steps = calibrate_accumulation (r, run, 0);
    bool several = calibrate_whole (r, "gradient_accumulation", 0) > 1;
    long long unit = (long long) run->config.deg.dp * (steps > 0 ? steps : 1);

    if (batch == 0)
        return calibrate_cell (r, "batch_size")[0] == '\0';
    if (run->micro_batch_said) {
        run->job.global_batch = batch;
        return steps == 0 || unit * run->config.micro_batch == batch;
    }
    run->micro_batch_said = several;
    if (several && batch <= MICRO_BATCH_MOST) {
        run->config.micro_batch = batch;
        return true;
    }
    run->job.global_batch = batch;
    if (several)
        run->config.micro_batch = (int) (batch / unit);
    return !several || (batch % unit == 0 && batch >= unit);
}

/* Once the degrees are known. */
static const char *read_batch (const struct row *r, struct calibrate_run *run)
{
    if (!settle_batch (r, run))
        return calibrate_refuse (r, "batch_size",
                                 "micro_batch x dp x gradient_accumulation");
    run->job.global_batch =
        calibrate_whole (r, "global_batch",
                         run->job.global_batch > 0 ? run->job.global_batch
                                                   : calibrate_implied_batch (r, run));
    return run->job.global_batch >= 1 ? NULL
           : run->config.deg.pp > 1
               ? "global_batch unknown: it, or iter_time_s and tokens_per_s_per_gpu"
               : "global_batch unknown: it, or micro_batch, or iter_time_s and "
                 "tokens_per_s_per_gpu";
}

/* A rank's whole batch as a micro-batch of a pipeline is TorchTitan's local batch, of which it
 * makes micro-batches: none is said. */
static void take_local_batch (struct calibrate_run *run)
{
    const struct workload_degrees *d = &run->config.deg;

    if (d->pp > 1 &&
        (long long) run->config.micro_batch * d->dp == run->job.global_batch &&
        calibrate_contains_name (run->framework, "torchtitan")) {
        run->micro_batch_said = false;
        run->config.micro_batch = 1;
    }
}

/* ---- rows together ---- */

/* Why the degrees or the batch do not divide, in the room of `why`; NULL: they do. */
static const char *undivided (const struct calibrate_run *run, char *why)
{
    struct error err = {""};

    if (workload_config_check (&run->model, &run->job, &run->config, &err) == ST_OK)
        return NULL;
    snprintf (why, CALIBRATE_REASON, "degrees or batch do not divide: %.120s", err.text);
    return why;
}

/* The framework that the row names, or that its way of data parallelism is of; of a model that is
 * split, or of ZeRO, DDP may be anyone's. */
static void read_framework (const struct row *r, struct calibrate_run *run)
{
    static const struct {
        const char *column, *says, *framework;
    } ways[] = {{"parallelism", "deepspeed", "deepspeed"},
                {"parallelism", "fsdp", "fsdp"},
                {"parallelism", "hsdp", "fsdp"},
                {"parallelism", "ddp", "torch ddp"},
                {"parallelism", "distributed data parallel", "torch ddp"},
                {"fsdp", "yes", "fsdp"},
                {"fsdp", "zero2", "fsdp"},
                {"fsdp", "none", "torch ddp"}};
    bool whole = calibrate_degree (r, "tp", 1, NULL) <= 1 &&
                 calibrate_degree (r, "pp", 1, NULL) <= 1 &&
                 calibrate_whole (r, "zero", 0) == 0;

    snprintf (run->framework, sizeof run->framework, "%.63s",
              calibrate_cell (r, "framework"));
    for (size_t i = 0; i < COUNT_OF (ways) && !run->framework[0]; i++)
        if ((whole || strcmp (ways[i].framework, "torch ddp") != 0) &&
            calibrate_says (calibrate_cell (r, ways[i].column), ways[i].says) == SAID_YES)
            snprintf (run->framework, sizeof run->framework, "%s", ways[i].framework);
    if (!run->framework[0] && calibrate_whole (r, "fsdp", 0) > 1) /* over so many ranks */
        snprintf (run->framework, sizeof run->framework, "fsdp");
    if (!run->framework[0] && r->trainer)
        snprintf (run->framework, sizeof run->framework, "transformers");
}

static const char *read_row (const struct row *r, struct calibrate_run *run)
{
    snprintf (run->source, sizeof run->source, "%.63s", calibrate_cell (r, "source"));
    read_framework (r, run);
    if (r->table->found[r->index] != r->table->columns)
        return "more or fewer cells than the header";
    TRY_ROW (calibrate_unread_cell (r));
    TRY_ROW (calibrate_read_model (r, run));
    TRY_ROW (calibrate_read_machines (r, run));
    TRY_ROW (calibrate_read_job (r, run));
    TRY_ROW (calibrate_read_config (r, run));
    TRY_ROW (read_batch (r, run));
    take_local_batch (run);
    if (workload_job_check (&run->model, &run->job, NULL) != ST_OK)
        return "seq does not fit the model";
    /* What the row leaves open may make them divide. */
    if (run->tp_said && run->pp_said)
        TRY_ROW (undivided (run, r->why));
    TRY_ROW (calibrate_read_layers (r, run));
    return calibrate_read_measured (r, run);
}

/* Options refuse the pair, too (workload/config.c). */
static bool short_on_host (const struct calibrate_run *run,
                           const struct workload_profile *p)
{
    int bytes = run->config.optimizer_bytes;

    return run->config.offload == OFFLOAD_OPTIMIZER && bytes > 0 &&
           bytes != p->memory.optimizer_bytes;
}

static enum status assume_framework (struct calibrate_runs *runs, struct error *err)
{
    struct calibrate_shelf shelf;
    struct workload_profile p;
    char why[CALIBRATE_REASON];
    int n = 0;

    TRY (calibrate_shelf_open (&shelf, err));
    for (int i = 0; i < runs->n; i++) {
        struct calibrate_run *run = &runs->run[i];
        const char *refused;

        calibrate_shelf_find (&shelf, run, &p);
        calibrate_assume (run, &p);
        refused = undivided (run, why);
        if (!refused && short_on_host (run, &p))
            refused = "an optimizer that is offloaded to the host keeps fp32 moments";
        if (!refused) {
            calibrate_doubt (runs, run);
            runs->run[n++] = *run;
            continue;
        }
        free (run->layers);
        runs->why[run->row] = (unsigned char) calibrate_count_reason (
            runs->skipped, &runs->n_skipped, refused, run->row);
    }
    runs->n = n;
    calibrate_shelf_close (&shelf);
    return ST_OK;
}

/* Has the header names that the Trainer of transformers gives? */
static bool of_trainer (const struct csv_table *t)
{
    return csv_table_column (t, "per_device_train_batch_size", 0) >= 0 ||
           csv_table_column (t, "train_samples_per_second", 0) >= 0;
}

/* The rows of a table, which is taken over. */
static enum status read_table (const char *path, struct csv_table *table,
                               struct calibrate_runs *out, struct error *err)
{
    struct calibrate_runs runs = {.table = *table};
    char room[CALIBRATE_REASON];
    struct csv_table usual = {0};
    struct row r = {.table = &usual, .why = room, .trainer = of_trainer (table)};
    enum status st = calibrate_usual_form (&runs, &usual, err);

    THEN (st, calibrate_fill_cells (&usual, err));
    THEN (st, calibrate_check_columns (path, &usual, &runs, err));
    if (st == ST_OK) {
        runs.run = calloc ((size_t) runs.table.rows + 1, sizeof *runs.run);
        runs.why = calloc ((size_t) runs.table.rows + 1, 1);
        st = runs.run && runs.why ? ST_OK : err_nomem (err);
    }
    for (r.index = 0; r.index < runs.table.rows && st == ST_OK; r.index++) {
        struct calibrate_run *run = &runs.run[runs.n];
        const char *why;

        memset (run, 0, sizeof *run);
        run->row = r.index;
        why = read_row (&r, run);
        if (!why) {
            if (runs.n > 0)
                calibrate_take_before (&r, run - 1, run);
            runs.n++;
            continue;
        }
        free (run->layers);
        runs.why[r.index] = (unsigned char) calibrate_count_reason (
            runs.skipped, &runs.n_skipped, why, r.index);
    }
    csv_table_release (&usual);
    THEN (st, assume_framework (&runs, err));
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
    free (r->why);
    csv_table_release (&r->table);
    *r = (struct calibrate_runs){0};
}
