/* Step times of measured runs: estimated where that is possible, and scored. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* One run's step time; NAN, and the reason counted, when it cannot be estimated. */
static enum status step_or_reason (const struct calibrate_run *run,
                                   const struct workload_profile *p, double *step_s,
                                   double *open, struct calibrate_reason *missing,
                                   int *n_missing, struct error *err)
{
    struct topology_cluster *cluster = NULL;
    struct error why = {""};
    enum status st = calibrate_cluster (run, p, &cluster, &why);

    *step_s = NAN;
    THEN (st, calibrate_step (run, cluster, p, step_s, open, &why));
    topology_cluster_destroy (cluster);
    if (st == ST_NOMEM)
        return err_nomem (err);
    if (st != ST_OK)
        calibrate_count_reason (missing, n_missing, why.text, run->row);
    return ST_OK;
}

enum status calibrate_steps_estimate (const struct calibrate_runs *runs,
                                      const struct workload_profile *profile,
                                      void (*progress) (void *context, int done, int of),
                                      void *context, struct calibrate_steps *out,
                                      struct error *err)
{
    struct calibrate_steps s = {.step_s = calloc ((size_t) runs->n + 1, sizeof *s.step_s),
                                .open = calloc ((size_t) runs->n + 1, sizeof *s.open)};
    enum status st = s.step_s && s.open ? ST_OK : err_nomem (err);

    for (int i = 0; i < runs->n && st == ST_OK; i++) {
        if (progress)
            progress (context, i, runs->n);
        st = step_or_reason (&runs->run[i], &profile[i], &s.step_s[i], &s.open[i],
                             s.missing, &s.n_missing, err);
    }
    if (st == ST_OK)
        *out = s;
    else
        calibrate_steps_release (&s);
    return st;
}

void calibrate_steps_release (struct calibrate_steps *s)
{
    FREE_ALL (s->step_s, s->open);
    *s = (struct calibrate_steps){0};
}

enum status calibrate_score_times (const struct calibrate_runs *runs,
                                   const double *step_s, const bool *use,
                                   struct calibrate_time_scores *out, struct error *err)
{
    size_t size = (size_t) runs->n + 1;
    const struct calibrate_run **run = calloc (size, sizeof *run);
    double *estimate = calloc (2 * size, sizeof *estimate);
    enum status st = run && estimate ? ST_OK : err_nomem (err);
    double *measured = st == ST_OK ? estimate + size : NULL;
    int n = 0;

    for (int i = 0; i < runs->n && st == ST_OK; i++) {
        if ((use && !use[i]) || isnan (step_s[i]) || isnan (runs->run[i].iter_time_s))
            continue;
        run[n] = &runs->run[i];
        estimate[n] = step_s[i];
        measured[n++] = runs->run[i].iter_time_s;
    }
    THEN (st, calibrate_errors (estimate, measured, n, &out->errors, err));
    THEN (st, calibrate_regret (run, estimate, n, &out->regret, err));
    FREE_ALL (run, estimate);
    return st;
}

enum status calibrate_runs_of (const struct calibrate_runs *all, enum calibrate_part part,
                               const struct workload_profile *p,
                               struct calibrate_runs *out, struct error *err)
{
    struct calibrate_runs some = {.run = calloc ((size_t) all->n + 1, sizeof *some.run)};
    enum status st = some.run ? ST_OK : err_nomem (err);

    for (int i = 0; i < all->n && st == ST_OK; i++) {
        const struct calibrate_run *run = &all->run[i];
        double step_s = 0.0;

        if (!calibrate_has_figures (run, part))
            continue;
        if (part == CALIBRATE_TIME)
            st = step_or_reason (run, p, &step_s, NULL, some.skipped, &some.n_skipped,
                                 err);
        if (!isnan (step_s)) {
            some.run[some.n] = *run;
            if (run->doubt_peak)
                some.run[some.n].peak_bytes = NAN;
            some.n++;
        }
    }
    if (st == ST_OK)
        *out = some;
    else
        free (some.run);
    return st;
}
