/* Accuracy on measured runs: make accuracy RUNS=DIR, DIR holding runs files.
 *
 * Every figure is printed beside the prior's (nothing fitted on that source) and, for
 * out-of-memory labels, beside Fujii's 80 % rule on the same rows.  Held-out figures
 * leave one model (or configuration) out, fit on the rest, and pool what is predicted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/runs_dir.h"
#include "calibrate/calibrate.h"

static struct table *table;

/* A file of the folder; false, with a row that says so, when it is not there. */
static bool open_runs (const char *dir, const char *file, struct calibrate_runs *r)
{
    char path[4096];
    struct stat sb;
    struct error err;

    snprintf (path, sizeof path, "%s/%s", dir, file);
    if (stat (path, &sb) != 0) {
        table_cell (table, "%s", file);
        table_cell (table, "not there");
        for (int i = 0; i < 3; i++)
            table_cell (table, "-");
        return false;
    }
    if (runs_dir_read (path, r, &err) != ST_OK)
        die (&err);
    return true;
}

static void row (const char *data, const char *figure, const char *target, double prior,
                 double held, const char *format)
{
    table_cell (table, "%s", data);
    table_cell (table, "%s", figure);
    table_number (table, format, prior);
    table_number (table, format, held);
    table_cell (table, "%s", target);
}

/* Predictions of a runs file under one profile per run. */
static struct workload_profile *profiles_of (const struct calibrate_runs *r)
{
    struct workload_profile *p = calloc ((size_t) r->n + 1, sizeof *p);
    struct error err;

    if (calibrate_profiles (r, NULL, p, &err) != ST_OK)
        die (&err);
    return p;
}

/* For every run the profile fitted on all runs of other groups. */
static struct workload_profile *held_out (const struct calibrate_runs *r,
                                          const struct workload_profile *prior,
                                          enum calibrate_grouping by)
{
    struct workload_profile *p = calloc ((size_t) r->n + 1, sizeof *p);
    int *group = calloc ((size_t) r->n + 1, sizeof *group), n;
    struct error err;

    if (calibrate_groups (r, by, group, &n, &err) != ST_OK ||
        calibrate_held_out (r, group, n, CALIBRATE_MEMORY, &prior[0], NULL, NULL, p,
                            &err) != ST_OK)
        die (&err);
    free (group);
    return p;
}

/* ---- out-of-memory labels ---- */

static struct calibrate_labels labels_of (const struct calibrate_runs *r,
                                          const struct workload_profile *p,
                                          enum memest_model by, double threshold)
{
    struct calibrate_labels l;
    struct error err;

    if (calibrate_memory_labels (r, p, by, threshold, &l, &err) != ST_OK)
        die (&err);
    return l;
}

static void oom_labels (const char *dir)
{
    struct calibrate_runs r;
    struct workload_profile *prior, *held;
    struct calibrate_labels a, b, f;
    char data[64];

    if (!open_runs (dir, "aleph_alpha_want23.csv", &r))
        return;
    prior = profiles_of (&r);
    held = held_out (&r, prior, CALIBRATE_BY_MODEL);
    a = labels_of (&r, prior, MEMEST_LINKWISE, 1.0);
    b = labels_of (&r, held, MEMEST_LINKWISE, 1.0);
    f = labels_of (&r, prior, MEMEST_FUJII, 0.8);
    snprintf (data, sizeof data, "Aleph Alpha, %d OOM labels", b.n);
    row (data, "AUC", ">= .997", a.auc, b.auc, "%.4f");
    row ("", "precision at .5", ">= .975", a.precision, b.precision, "%.3f");
    row ("", "recall at .5", ">= .97", a.recall, b.recall, "%.3f");
    row ("", "precision at recall .99", ">= .92", a.precision_at_99, b.precision_at_99,
         "%.3f");
    row ("", "Brier score", "", a.brier, b.brier, "%.4f");
    row ("  Fujii's 80 % rule", "AUC", "", f.auc, NAN, "%.4f");
    row ("", "precision", "", f.precision, NAN, "%.3f");
    row ("", "recall", "", f.recall, NAN, "%.3f");
    FREE_ALL (prior, held);
    calibrate_runs_release (&r);
}

/* ---- peaks ---- */

static struct calibrate_errors peaks_of (const struct calibrate_runs *r,
                                         const struct workload_profile *p,
                                         bool (*keep) (const struct calibrate_run *),
                                         bool states)
{
    bool *use = calloc ((size_t) r->n + 1, sizeof *use);
    struct calibrate_errors e;
    struct error err;

    for (int i = 0; i < r->n; i++)
        use[i] = !keep || keep (&r->run[i]);
    if (calibrate_memory_errors (r, p, states, use, &e, &err) != ST_OK)
        die (&err);
    free (use);
    return e;
}

static bool over_a_gib (const struct calibrate_run *run)
{
    return run->peak_bytes > UNITS_GIB;
}

static bool is_7b (const struct calibrate_run *run)
{
    return strstr (run->model.name, "gpt3_7b") != NULL;
}

static void golden (const char *dir)
{
    struct calibrate_runs r;
    struct workload_profile *p;
    struct calibrate_errors e, seven, states;
    char data[96];
    int skipped = 0;

    if (!open_runs (dir, "megatron_lm_golden_memory.csv", &r))
        return;
    p = profiles_of (&r);
    e = peaks_of (&r, p, over_a_gib, false);
    seven = peaks_of (&r, p, is_7b, false);
    states = peaks_of (&r, p, is_7b, true);
    for (int i = 0; i < r.n_skipped; i++)
        skipped += r.skipped[i].count;
    snprintf (data, sizeof data, "Megatron-LM golden, %d rows over 1 GiB (%d skipped)",
              e.n, skipped);
    row (data, "peak, MAPE %", "<= 8", 100 * e.mape, NAN, "%.1f");
    row ("", "peak, median %", "<= 4", 100 * e.median, NAN, "%.1f");
    snprintf (data, sizeof data, "  its 7B rows, %d", seven.n);
    row (data, "peak, worst %", "<= 3", 100 * seven.worst, NAN, "%.1f");
    row ("", "static, worst %", "<= 0.5", 100 * states.worst, NAN, "%.2f");
    free (p);
    calibrate_runs_release (&r);
}

static void bloom (const char *dir)
{
    struct calibrate_runs r;
    struct workload_profile *prior, *held;
    struct calibrate_errors a, b;
    char data[96];

    if (!open_runs (dir, "bigscience_bloom_prequel.csv", &r))
        return;
    prior = profiles_of (&r);
    held = held_out (&r, prior, CALIBRATE_BY_CONFIG);
    a = peaks_of (&r, prior, NULL, false);
    b = peaks_of (&r, held, NULL, false);
    snprintf (data, sizeof data, "BLOOM, %d peaks", b.n);
    row (data, "MAPE %", "<= 5", 100 * a.mape, 100 * b.mape, "%.1f");
    row ("", "median %", "", 100 * a.median, 100 * b.median, "%.1f");
    row ("", "worst % (a typo, says its note)", "", 100 * a.worst, 100 * b.worst, "%.1f");
    FREE_ALL (prior, held);
    calibrate_runs_release (&r);
}

static void sampling (const char *dir)
{
    struct calibrate_runs r;
    struct workload_profile *p;
    struct calibrate_errors e;
    char data[96];

    if (!open_runs (dir, "wtacrs.csv", &r))
        return;
    p = profiles_of (&r);
    e = peaks_of (&r, p, NULL, false);
    snprintf (data, sizeof data, "WTA-CRS Table 2, %d rows (profile set on them)", e.n);
    row (data, "worst %", "<= 10", NAN, 100 * e.worst, "%.1f");
    free (p);
    calibrate_runs_release (&r);
}

/* ---- frameworks that no profile names ---- */

/* Sources that are not the default profile's, under it as under an unknown framework's. */
static const char *const unknown[] = {"bigscience_bloom_prequel.csv",
                                      "bigscience_v100.csv", "internevo.csv",
                                      "litgpt_finetune_memory.csv", "wtacrs.csv"};

#define N_UNKNOWN ((int) (sizeof unknown / sizeof *unknown))

/* Mean square of log (measured / estimate). */
static double mean_square (const struct calibrate_runs *r,
                           const struct workload_profile *p)
{
    double sum = 0.0;
    int n = 0;

    for (int i = 0; i < r->n; i++) {
        double far = log (r->run[i].peak_bytes / calibrate_peak (&r->run[i], p));

        if (isnan (far))
            continue;
        sum += far * far;
        n++;
    }
    return sum / n;
}

static void unknown_frameworks (const char *dir)
{
    struct calibrate_runs r[N_UNKNOWN];
    struct workload_profile generic;
    double square[N_UNKNOWN], all = 0.0;
    struct error err;
    int n = 0;

    if (workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &generic, NULL, &err) != ST_OK)
        die (&err);
    calibrate_profile_unknown (&generic);
    for (int i = 0; i < N_UNKNOWN; i++)
        if (open_runs (dir, unknown[i], &r[n])) {
            square[n] = mean_square (&r[n], &generic);
            all += square[n++];
        }
    for (int i = 0; i < n; i++) {
        struct workload_profile *p = calloc ((size_t) r[i].n + 1, sizeof *p);
        struct calibrate_errors e;
        double shipped;
        char data[160];

        generic.memory.residual = generic.memory.states_residual =
            CALIBRATE_UNKNOWN_RESIDUAL;
        if (calibrate_profiles (&r[i], &generic, p, &err) != ST_OK)
            die (&err);
        e = peaks_of (&r[i], p, NULL, false);
        shipped = calibrate_memory_coverage (&r[i], p, NULL);
        /* The residual of the others. */
        generic.memory.residual = generic.memory.states_residual =
            n > 1 ? sqrt ((all - square[i]) / (n - 1)) : NAN;
        if (calibrate_profiles (&r[i], &generic, p, &err) != ST_OK)
            die (&err);
        snprintf (data, sizeof data, "%s, framework unknown, %d peaks",
                  r[i].run[0].source, e.n);
        row (data, "MAPE %", "", 100 * e.mape, NAN, "%.1f");
        row ("", "in the 90 % interval, %", "", 100 * shipped,
             100 * calibrate_memory_coverage (&r[i], p, NULL), "%.0f");
        row ("", "residual", "", CALIBRATE_UNKNOWN_RESIDUAL, generic.memory.residual,
             "%.2f");
        free (p);
    }
    for (int i = 0; i < n; i++)
        calibrate_runs_release (&r[i]);
}

/* ---- schedules ---- */

/* AMD's runs state neither sequence nor batch, so the estimator cannot be run on them.
 * What can be checked is how many micro-batches a schedule holds: static memory, memory
 * per micro-batch and the V shapes' extra (embedding, head and logits on one rank) are
 * three numbers per model, fitted to its six or seven schedules by least squares. */
static bool solve3 (double a[3][4])
{
    for (int i = 0; i < 3; i++) {
        int pivot = i;

        for (int k = i + 1; k < 3; k++)
            if (fabs (a[k][i]) > fabs (a[pivot][i]))
                pivot = k;
        if (fabs (a[pivot][i]) < 1e-9)
            return false;
        for (int j = 0; j < 4; j++) {
            double x = a[i][j];

            a[i][j] = a[pivot][j];
            a[pivot][j] = x;
        }
        for (int k = 0; k < 3; k++)
            for (int j = 3; k != i && j >= i; j--)
                a[k][j] -= a[k][i] / a[i][i] * a[i][j];
    }
    return true;
}

struct schedule_row {
    char model[64];
    double flight, v, peak;
    bool base; /* 1F1B */
};

static int read_schedules (const struct csv_table *t, struct schedule_row *out)
{
    int n = 0, model = csv_table_column (t, "model", 0),
        pp = csv_table_column (t, "pp", 0), vpp = csv_table_column (t, "vpp", 0),
        peak = csv_table_column (t, "peak_mem_gb", 0),
        notes = csv_table_column (t, "notes", 0);

    for (int i = 0; i < t->rows && n < 64; i++) {
        char **cell = t->cell + i * t->columns;
        struct workload_config c = {
            .deg = {1, atoi (cell[pp]), 1, 1, 1, 1, atoi (cell[vpp])}};

        if (!strstr (cell[notes], "schedule=") || strtod (cell[peak], NULL) <= 0 ||
            !calibrate_schedule_noted (cell[notes], &c))
            continue;
        snprintf (out[n].model, sizeof out[n].model, "%.63s", cell[model]);
        out[n].flight = workload_in_flight (&c, 1 << 20, 0);
        out[n].v = workload_schedule_is_v (c.schedule);
        out[n].base = c.schedule == SCHEDULE_1F1B;
        out[n++].peak = strtod (cell[peak], NULL);
    }
    return n;
}

static void schedules (const char *dir)
{
    struct calibrate_runs unused;
    struct csv_table t;
    struct schedule_row rows[64];
    char path[4096], data[96];
    struct stat sb;
    struct error err;
    int n;

    snprintf (path, sizeof path, "%s/amd_primus_pp_schedules.csv", dir);
    if (stat (path, &sb) != 0) {
        open_runs (dir, "amd_primus_pp_schedules.csv", &unused);
        return;
    }
    if (csv_table_read (path, &t, &err) != ST_OK)
        die (&err);
    n = read_schedules (&t, rows);
    for (int first = 0; first < n;) {
        int last = first;
        double a[3][4] = {{0}}, measured = NAN, estimated = NAN, worst = 0;

        while (last < n && strcmp (rows[last].model, rows[first].model) == 0)
            last++;
        for (int i = first; i < last; i++) {
            /* Relative least squares: 1, micro-batches held, V shape. */
            double x[4] = {1 / rows[i].peak, rows[i].flight / rows[i].peak,
                           rows[i].v / rows[i].peak, 1};

            for (int j = 0; j < 3; j++)
                for (int k = 0; k < 4; k++)
                    a[j][k] += x[j] * x[k];
        }
        if (solve3 (a)) {
            double s[3];

            for (int j = 0; j < 3; j++)
                s[j] = a[j][3] / a[j][j];
            for (int i = first; i < last; i++)
                if (rows[i].base) {
                    measured = rows[i].peak;
                    estimated = s[0] + s[1] * rows[i].flight;
                }
            for (int i = first; i < last; i++) {
                double e = (s[0] + s[1] * rows[i].flight + s[2] * rows[i].v) / estimated;

                worst = fmax (worst, fabs (e / (rows[i].peak / measured) - 1));
            }
            snprintf (data, sizeof data, "AMD Primus %s, %d schedules (3 numbers fitted)",
                      rows[first].model, last - first);
            row (data, "ratio to 1F1B, worst %", "<= 5", NAN, 100 * worst, "%.1f");
        }
        first = last;
    }
    csv_table_release (&t);
}

int main (int argc, char **argv)
{
    runs_dir_check (argc);
    table = TABLE_OF ("<data", "<figure", "prior", "held out", "<to reach");
    oom_labels (argv[1]);
    golden (argv[1]);
    bloom (argv[1]);
    schedules (argv[1]);
    sampling (argv[1]);
    unknown_frameworks (argv[1]);
    printf ("Memory.  prior: the shipped profile, nothing fitted here; held out: fitted "
            "on the "
            "other\nmodels (Aleph Alpha), configurations (BLOOM) or sources (unknown "
            "frameworks).\n");
    table_end (table, stdout);
    return 0;
}
