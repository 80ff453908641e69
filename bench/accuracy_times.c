/* Step times on measured runs: the second half of make accuracy RUNS=DIR.
 *
 * prior: one set of constants for every framework and GPU, nothing fitted on anything of
 * that source; held out: fitted on the runs of the other groups, predicted, pooled;
 * shipped: the source's profile, which was fitted on all of these runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/runs_dir.h"
#include "calibrate/calibrate.h"

static struct table *table;

/* ---- runs with a time ---- */

/* Runs of several files, those with a step time alone. */
struct timed {
    struct calibrate_runs file[3];
    int n_files;
    struct calibrate_runs all; /* borrows from the files */
};

static bool keep_any (const struct calibrate_run *run)
{
    (void) run;
    return true;
}

/* ZeRO 3 in these tables is DeepSpeed's, another framework. */
static bool keep_megatron (const struct calibrate_run *run)
{
    return run->config.zero < 3;
}

static void read_timed (const char *dir, const char *const *file,
                        bool (*keep) (const struct calibrate_run *), struct timed *t)
{
    struct error err;

    *t = (struct timed){0};
    for (; *file; file++) {
        char path[4096];
        struct stat sb;
        struct calibrate_runs *r = &t->file[t->n_files];

        snprintf (path, sizeof path, "%s/%s", dir, *file);
        if (stat (path, &sb) != 0)
            continue;
        if (runs_dir_read (path, r, &err) != ST_OK)
            die (&err);
        t->n_files++;
        t->all.run =
            realloc (t->all.run, (size_t) (t->all.n + r->n + 1) * sizeof *r->run);
        for (int i = 0; i < r->n; i++)
            if (!isnan (r->run[i].iter_time_s) && keep (&r->run[i]))
                t->all.run[t->all.n++] = r->run[i];
    }
}

static void release_timed (struct timed *t)
{
    for (int i = 0; i < t->n_files; i++)
        calibrate_runs_release (&t->file[i]);
    free (t->all.run);
}

/* ---- folds ---- */

typedef int fold_of (const struct calibrate_runs *r, int i);

static int by_model (const struct calibrate_runs *r, int i)
{
    int k = 0;

    while (strcmp (r->run[k].model.name, r->run[i].model.name) != 0)
        k++;
    return k;
}

static int by_hidden (const struct calibrate_runs *r, int i)
{
    return r->run[i].model.hidden;
}

static int fourfold (const struct calibrate_runs *r, int i)
{
    (void) r;
    return i % 4;
}

/* ---- estimates ---- */

enum { PRIOR, HELD_OUT, SHIPPED, COLUMNS };

/* Step times of all runs, each under its profile. */
static void steps_of (const struct calibrate_runs *r, const struct workload_profile *p,
                      double *estimate)
{
    struct calibrate_steps s;
    struct error err;

    if (calibrate_steps_estimate (r, p, NULL, NULL, &s, &err) != ST_OK)
        die (&err);
    memcpy (estimate, s.step_s, (size_t) r->n * sizeof *estimate);
    calibrate_steps_release (&s);
}

/* For every run the constants fitted on all runs of other folds. */
static void hold_out (const struct calibrate_runs *r, fold_of *fold,
                      const struct workload_profile *prior, double *estimate)
{
    size_t size = (size_t) r->n + 1;
    int *group = calloc (size, sizeof *group);
    struct workload_profile *p = calloc (size, sizeof *p);
    struct error err;

    /* A group has the number of its first run. */
    for (int i = 0; i < r->n; i++)
        while (fold (r, group[i]) != fold (r, i))
            group[i]++;
    if (calibrate_held_out (r, group, r->n, CALIBRATE_TIME, prior, NULL, NULL, p, &err) !=
        ST_OK)
        die (&err);
    steps_of (r, p, estimate);
    FREE_ALL (group, p);
}

/* Give the time constants that fits move what is known before any: one set for all
 * frameworks.  Those of spread 0 are facts of a framework and stay. */
static void set_generic_times (struct workload_profile *p)
{
    int n;
    const struct workload_constant *k = workload_constants (&n);

    for (int i = 0; i < n; i++)
        if (!k[i].memory && k[i].spread > 0)
            *workload_constant_of (p, &k[i]) = k[i].absent * k[i].unit;
}

static void estimate_all (const struct calibrate_runs *r, fold_of *fold,
                          double *estimate[COLUMNS])
{
    struct workload_profile *p = calloc ((size_t) r->n + 1, sizeof *p);
    struct error err;

    if (calibrate_profiles (r, NULL, p, &err) != ST_OK)
        die (&err);
    steps_of (r, p, estimate[SHIPPED]);
    for (int i = 0; i < r->n; i++)
        set_generic_times (&p[i]);
    steps_of (r, p, estimate[PRIOR]);
    if (fold)
        hold_out (r, fold, &p[r->n - 1], estimate[HELD_OUT]);
    free (p);
}

/* ---- the table ---- */

enum figure { MAPE, MEDIAN, SPEARMAN, REGRET, SMALL_GROUPS };

static double figure_of (enum figure f, const struct calibrate_time_scores *s)
{
    switch (f) {
    case MAPE:
        return 100 * s->errors.mape;
    case MEDIAN:
        return 100 * s->errors.median;
    case SPEARMAN:
        return s->errors.spearman;
    case REGRET:
        return 100 * s->regret.mean;
    default:
        return s->regret.small;
    }
}

struct wanted {
    enum figure what;
    const char *label, *target;
};

#define WANTED_MAX 6

/* One source's rows. */
static void print_source (const char *name, const struct calibrate_runs *r,
                          double *estimate[COLUMNS], bool held,
                          const struct wanted wanted[WANTED_MAX])
{
    struct calibrate_time_scores s[COLUMNS];
    struct error err;

    for (int c = 0; c < COLUMNS; c++)
        if (calibrate_score_times (r, estimate[c], NULL, &s[c], &err) != ST_OK)
            die (&err);
    for (int i = 0; i < WANTED_MAX && wanted[i].label; i++) {
        if (i == 0)
            table_cell (table, "%s, %d runs", name, s[SHIPPED].errors.n);
        else
            table_cell (table, "%s", "");
        table_cell (table, "%s", wanted[i].label);
        for (int c = 0; c < COLUMNS; c++)
            if (c == HELD_OUT && !held)
                table_cell (table, "-");
            else if (wanted[i].what == SMALL_GROUPS)
                table_cell (table, "%d of %d", s[c].regret.small, s[c].regret.groups);
            else
                table_cell (table, wanted[i].what == SPEARMAN ? "%.3f" : "%.1f",
                            figure_of (wanted[i].what, &s[c]));
        table_cell (table, "%s", wanted[i].target);
    }
}

struct source {
    const char *file[4]; /* fitted together */
    const char *name[4]; /* one set of rows per file, or name[0] for all */
    bool apart;
    bool pooled; /* counts in the row that several sources have together */
    bool (*keep) (const struct calibrate_run *);
    fold_of *fold;
    struct wanted wanted[2][WANTED_MAX];
};

static const struct source sources[] = {
    {{"aleph_alpha_want23.csv"},
     {"Aleph Alpha, leave one model out"},
     false,
     false,
     keep_any,
     by_model,
     {{{MAPE, "MAPE %", "<= 5"},
       {MEDIAN, "median %", "<= 3"},
       {SPEARMAN, "Spearman", ">= .988"},
       {REGRET, "regret, mean %", "<= 5"},
       {SMALL_GROUPS, "groups with regret <= 2 %", "most"}}}},
    {{"vtrain_multi_node.csv", "vtrain_single_node.csv"},
     {"vTrain, one hidden size out: multi node", "  single node"},
     true,
     false,
     keep_any,
     by_hidden,
     {{{MAPE, "MAPE %", "<= 8"}, {MEDIAN, "median %", "<= 5"}},
      {{MAPE, "MAPE %", "<= 10"}, {MEDIAN, "median %", ""}}}},
    {{"bigscience_bloom_prequel.csv"},
     {"BLOOM, 4-fold"},
     false,
     false,
     keep_any,
     fourfold,
     {{{MAPE, "MAPE %", "<= 4"}, {MEDIAN, "median %", ""}}}},
    {{"megatron_sc21.csv", "korthikanti_2022.csv"},
     {"SC21 (but ZeRO 3) and Korthikanti, 4-fold"},
     false,
     true,
     keep_megatron,
     fourfold,
     {{{MAPE, "MAPE %", ""}, {MEDIAN, "median %", ""}}}},
    {{"mt_nlg.csv"},
     {"MT-NLG (shipped: BLOOM's profile)"},
     false,
     true,
     keep_any,
     NULL,
     {{{MAPE, "MAPE %", ""}}}},
    {{"amp_real_trials.csv"},
     {"AMP's trials, 4-fold"},
     false,
     false,
     keep_any,
     fourfold,
     {{{SPEARMAN, "Spearman (AMP: .935)", ">= .95"},
       {REGRET, "regret, mean % (AMP: 10)", "<= 5"},
       {MAPE, "MAPE %", ""}}}},
    {{"bigscience_v100.csv", "dlperf_megatron_v100.csv"},
     {"BigScience and OneFlow, V100, 4-fold"},
     false,
     false,
     keep_any,
     fourfold,
     {{{MAPE, "MAPE %", ""}, {MEDIAN, "median %", ""}}}},
    {{"mosaicml_llm_foundry.csv"},
     {"llm-foundry, A100 and H100, FSDP, 4-fold"},
     false,
     false,
     keep_any,
     fourfold,
     {{{MAPE, "MAPE %", ""}, {SPEARMAN, "Spearman", ""}}}},
    {{"nemo_perf_2024.csv"},
     {"NeMo, H100, leave one model out"},
     false,
     false,
     keep_any,
     by_model,
     {{{MAPE, "MAPE %", ""}, {SPEARMAN, "Spearman", ""}}}},
    {{"internevo.csv"},
     {"InternEvo, A100 and A800, to 1,024 GPUs"},
     false,
     false,
     keep_any,
     NULL,
     {{{MAPE, "MAPE %", ""}, {MEDIAN, "median %", ""}}}},
    {{"megatron_bridge_perf_archive.csv"},
     {"Megatron Bridge, experts, H100 to GB300"},
     false,
     false,
     keep_any,
     NULL,
     {{{MAPE, "MAPE %", ""}, {MEDIAN, "median %", ""}}}},
};

static double published_step (const struct calibrate_run *run,
                              const struct workload_profile *p, enum costmodel_kind kind)
{
    struct topology_cluster *c;
    struct error err;
    double step_s = NAN;

    if (calibrate_cluster (run, p, &c, &err) != ST_OK)
        die (&err);
    calibrate_step_by (run, c, p, kind, &step_s, &err);
    topology_cluster_destroy (c);
    return step_s;
}

/* Published ways of putting the same compute together, with the shipped constants. */
static void print_published (const struct calibrate_runs *r)
{
    size_t size = (size_t) r->n + 1;
    double *x = calloc (size, sizeof *x), *y = calloc (size, sizeof *y);
    struct workload_profile *shipped = calloc (size, sizeof *shipped);
    struct calibrate_errors e;
    struct error err;

    if (calibrate_profiles (r, NULL, shipped, &err) != ST_OK)
        die (&err);
    for (int kind = COSTMODEL_PIPETTE; kind <= COSTMODEL_AMP; kind++) {
        int n = 0;

        for (int i = 0; i < r->n; i++) {
            x[n] = published_step (&r->run[i], &shipped[i], (enum costmodel_kind) kind);
            y[n] = r->run[i].iter_time_s;
            n += isfinite (x[n]);
        }
        if (calibrate_errors (x, y, n, &e, &err) != ST_OK)
            die (&err);
        table_cell (table, "  by the model of %s",
                    kind == COSTMODEL_PIPETTE ? "Pipette" : "AMP");
        table_cell (table, "MAPE %%, Spearman");
        table_cell (table, "-");
        table_cell (table, "-");
        table_cell (table, "%.1f, %.3f", 100 * e.mape, e.spearman);
        table_cell (table, "%s", "");
    }
    FREE_ALL (shipped, x, y);
}

/* vTrain's two files have one source: those on one node, and those on several. */
static void print_part (const struct source *s, int part, const struct calibrate_runs *r,
                        double *estimate[COLUMNS])
{
    struct calibrate_runs some = {.run = calloc ((size_t) r->n + 1, sizeof *some.run)};
    double *mine[COLUMNS];

    for (int c = 0; c < COLUMNS; c++)
        mine[c] = calloc ((size_t) r->n + 1, sizeof (double));
    for (int i = 0; i < r->n; i++)
        if ((r->run[i].gpus > r->run[i].gpus_per_node) == (part == 0)) {
            for (int c = 0; c < COLUMNS; c++)
                mine[c][some.n] = estimate[c][i];
            some.run[some.n++] = r->run[i];
        }
    print_source (s->name[part], &some, mine, s->fold != NULL, s->wanted[part]);
    for (int c = 0; c < COLUMNS; c++)
        free (mine[c]);
    free (some.run);
}

/* Absolute errors of the sources that are pooled. */
static struct {
    double sum[COLUMNS];
    int n;
} pool;

/* A profile that was fitted on other sources holds these runs out. */
static void add_to_pool (const struct calibrate_runs *r, double *estimate[COLUMNS],
                         bool held)
{
    for (int i = 0; i < r->n; i++) {
        double measured = r->run[i].iter_time_s;

        for (int c = 0; c < COLUMNS; c++)
            pool.sum[c] +=
                fabs (estimate[c == HELD_OUT && !held ? SHIPPED : c][i] / measured - 1.0);
        pool.n++;
    }
}

static void print_pool (void)
{
    table_cell (table, "SC21, Korthikanti and MT-NLG together, %d runs", pool.n);
    table_cell (table, "MAPE %%");
    for (int c = 0; c < COLUMNS; c++)
        table_cell (table, "%.1f", 100 * pool.sum[c] / pool.n);
    table_cell (table, "<= 5");
}

static void print_all (const char *dir, const struct source *s)
{
    struct timed t;
    double *estimate[COLUMNS];

    read_timed (dir, s->file, s->keep, &t);
    for (int c = 0; c < COLUMNS; c++)
        estimate[c] = calloc ((size_t) t.all.n + 1, sizeof (double));
    if (t.all.n > 0) {
        estimate_all (&t.all, s->fold, estimate);
        for (int part = 0; part < 2 && s->apart; part++)
            print_part (s, part, &t.all, estimate);
        if (!s->apart)
            print_source (s->name[0], &t.all, estimate, s->fold != NULL, s->wanted[0]);
        print_published (&t.all);
        if (s->pooled)
            add_to_pool (&t.all, estimate, s->fold != NULL);
    }
    for (int c = 0; c < COLUMNS; c++)
        free (estimate[c]);
    release_timed (&t);
}

int main (int argc, char **argv)
{
    size_t n = sizeof sources / sizeof *sources;

    runs_dir_check (argc);
    table = TABLE_OF ("<data", "<figure", "prior", "held out", "shipped", "<to reach");
    for (size_t i = 0; i < n; i++) {
        print_all (argv[1], &sources[i]);
        if (sources[i].pooled && (i + 1 == n || !sources[i + 1].pooled) && pool.n > 0)
            print_pool ();
    }
    printf (
        "\nStep time.  prior: one set of constants for all frameworks and GPUs; held "
        "out: "
        "fitted on\nthe other folds; shipped: the source's profile, fitted on these runs "
        "where there are folds.\n");
    table_end (table, stdout);
    return 0;
}
