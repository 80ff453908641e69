/* make record RUNS=DIR: the accuracy on record (calibrate/record.json) of every framework profile
 * on every GPU type that runs files have, each run estimated as `linkwise validate` does by itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/runs_dir.h"

/* All runs of the folder, each with what tells its group and its estimate. */
static struct all {
    struct calibrate_runs runs;
    struct workload_profile *p; /* [runs.n] each */
    double *step_s, *open;
    bool *timed; /* has a step time that counts, and an estimate */
    char (*gpu)[256];
} all;

/* Names of the GPU types, in node order. */
static void name_gpus (const struct calibrate_run *run, char name[256])
{
    struct text t = {0};

    for (int i = 0; i < run->n_parts; i++)
        text_add (&t, "%s%s", i > 0 ? " + " : "", run->part[i].type->name);
    snprintf (name, 256, "%s", text_str (&t));
    text_free (&t);
}

static void *more (void *list, size_t size)
{
    void *new = realloc (list, size);

    if (!new)
        die (&(struct error){"out of memory"});
    return new;
}

/* @param[in] r  stays as it is: runs point into it */
static void add_file (const struct calibrate_runs *r)
{
    size_t from = (size_t) all.runs.n, n = from + (size_t) r->n;
    struct calibrate_steps steps;
    struct error err;

    all.runs.run = more (all.runs.run, n * sizeof *all.runs.run);
    all.p = more (all.p, n * sizeof *all.p);
    all.step_s = more (all.step_s, n * sizeof *all.step_s);
    all.open = more (all.open, n * sizeof *all.open);
    all.timed = more (all.timed, n * sizeof *all.timed);
    all.gpu = more (all.gpu, n * sizeof *all.gpu);
    if (calibrate_profiles (r, NULL, &all.p[from], &err) != ST_OK ||
        calibrate_steps_estimate (r, &all.p[from], NULL, NULL, &steps, &err) != ST_OK)
        die (&err);
    for (int i = 0; i < r->n; i++) {
        const struct calibrate_run *run = &r->run[i];
        int to = all.runs.n++;

        all.runs.run[to] = *run;
        all.step_s[to] = steps.step_s[i];
        all.open[to] = steps.open[i];
        all.timed[to] = !isnan (run->iter_time_s) && isfinite (steps.step_s[i]) &&
                        !runs_dir_disturbed (r, run);
        name_gpus (run, all.gpu[to]);
        all.p[to].name[strcspn (all.p[to].name, "@")] = '\0'; /* whatever the release */
    }
    calibrate_steps_release (&steps);
}

static bool fitted (int i)
{
    return runs_dir_fitted (&all.p[i], &all.runs.run[i]);
}

static int by_group (const void *a, const void *b)
{
    int i = *(const int *) a, k = *(const int *) b;
    int order = strcmp (all.p[i].name, all.p[k].name);

    if (order == 0)
        order = strcmp (all.gpu[i], all.gpu[k]);
    return order ? order : fitted (k) - fitted (i);
}

/* Three digits are what such figures are worth. */
static json_t *digits (double x)
{
    char text[32];

    snprintf (text, sizeof text, "%.3g", x);
    return json_number_or_null (strtod (text, NULL));
}

static void add_source (json_t *sources, const char *name)
{
    size_t k;
    json_t *one;

    json_array_foreach (sources, k,
                        one) if (strcmp (json_string_value (one), name) == 0) return;
    json_array_append_new (sources, json_string (name));
}

/* The runs of[0..n).  NULL: nothing of them was measured. */
static json_t *record_of (const int *of, int n)
{
    const struct calibrate_run *run = all.runs.run;
    size_t size = (size_t) all.runs.n;
    bool *timed = calloc (size, sizeof *timed), *peak = calloc (size, sizeof *peak);
    struct calibrate_time_scores steps;
    const struct calibrate_errors *e = &steps.errors;
    struct calibrate_errors peaks;
    json_t *sources = json_array (), *doc = NULL;
    struct error err;

    for (int k = 0; k < n; k++) {
        int i = of[k];

        timed[i] = all.timed[i];
        peak[i] = !isnan (run[i].peak_bytes);
        if (timed[i] || peak[i])
            add_source (sources, run[i].source);
    }
    if (calibrate_score_times (&all.runs, all.step_s, timed, &steps, &err) != ST_OK ||
        calibrate_memory_errors (&all.runs, all.p, false, peak, &peaks, &err) != ST_OK)
        die (&err);
    if (e->n + peaks.n > 0)
        doc = json_pack ("{s:s, s:s, s:b, s:O, s:i, s:o, s:o, s:o, s:i, s:o, s:o}",
                         "profile", all.p[*of].name, "gpu", all.gpu[*of], "fitted",
                         fitted (*of), "sources", sources, "steps", e->n, "step_mape",
                         digits (e->n > 0 ? e->mape : NAN), "step_median",
                         digits (e->n > 0 ? e->median : NAN), "step_in_interval",
                         digits (calibrate_time_coverage (&all.runs, all.p, all.step_s,
                                                          all.open, timed)),
                         "peaks", peaks.n, "peak_mape",
                         digits (peaks.n > 0 ? peaks.mape : NAN), "peak_in_interval",
                         digits (calibrate_memory_coverage (&all.runs, all.p, peak)));
    json_decref (sources);
    FREE_ALL (timed, peak);
    return doc;
}

/* One record a line. */
static void print_records (void)
{
    int *of = calloc ((size_t) all.runs.n + 1, sizeof *of), printed = 0;

    for (int i = 0; i < all.runs.n; i++)
        of[i] = i;
    qsort (of, (size_t) all.runs.n, sizeof *of, by_group);
    printf ("{\"version\": 1, \"records\": [");
    for (int i = 0, end; i < all.runs.n; i = end) {
        json_t *doc;

        for (end = i + 1; end < all.runs.n && by_group (&of[i], &of[end]) == 0;)
            end++;
        if (!(doc = record_of (&of[i], end - i)))
            continue;
        printf ("%s\n", printed++ ? "," : "");
        json_dumpf (doc, stdout, JSON_REAL_PRECISION (3));
        json_decref (doc);
    }
    printf ("\n]}\n");
    free (of);
}

static void release (struct calibrate_runs *read, int n)
{
    for (int i = 0; i < n; i++)
        calibrate_runs_release (&read[i]);
    FREE_ALL (read, all.runs.run, all.p, all.step_s, all.open, all.timed, all.gpu);
}

int main (int argc, char **argv)
{
    struct calibrate_runs *read;
    struct dirent **file;
    int n, n_read = 0;

    runs_dir_check (argc);
    n = runs_dir_files (argv[1], &file);
    read = more (NULL, ((size_t) n + 1) * sizeof *read);
    for (int i = 0; i < n; i++) {
        struct error err;
        char path[4096];

        snprintf (path, sizeof path, "%s/%s", argv[1], file[i]->d_name);
        free (file[i]);
        if (runs_dir_read (path, &read[n_read], &err) == ST_OK)
            add_file (&read[n_read++]);
        else
            fprintf (stderr, "record: left out: %s\n", err.text);
    }
    free (file);
    print_records ();
    release (read, n_read);
    return 0;
}
