/* Estimates scored, and fits scored on runs that they did not see. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

enum status calibrate_memory_errors (const struct calibrate_runs *runs,
                                     const struct workload_profile *profile, bool states,
                                     const bool *use, struct calibrate_errors *out,
                                     struct error *err)
{
    double *estimate = calloc (2 * (size_t) runs->n + 1, sizeof *estimate);
    double *measured;
    enum status st;
    int n = 0;

    if (!estimate)
        return err_nomem (err);
    measured = estimate + runs->n;
    for (int i = 0; i < runs->n; i++) {
        const struct calibrate_run *run = &runs->run[i];
        double found = states ? run->static_bytes : run->peak_bytes;

        if (isnan (found) || (use && !use[i]))
            continue;
        estimate[n] = states ? calibrate_static (run, &profile[i])
                             : calibrate_peak (run, &profile[i]);
        measured[n++] = found;
    }
    st = calibrate_errors (estimate, measured, n, out, err);
    free (estimate);
    return st;
}

double calibrate_memory_coverage (const struct calibrate_runs *runs,
                                  const struct workload_profile *profile, const bool *use)
{
    int n = 0, within = 0;

    for (int i = 0; i < runs->n; i++) {
        const struct calibrate_run *run = &runs->run[i];
        double far;

        if (isnan (run->peak_bytes) || (use && !use[i]))
            continue;
        far = log (run->peak_bytes / calibrate_peak (run, &profile[i]));
        within += fabs (far) <= log (calibrate_peak_interval (run, &profile[i]));
        n++;
    }
    return n > 0 ? (double) within / n : NAN;
}

double calibrate_time_coverage (const struct calibrate_runs *runs,
                                const struct workload_profile *profile,
                                const double *step_s, const double *open, const bool *use)
{
    int n = 0, within = 0;

    for (int i = 0; i < runs->n; i++) {
        const struct calibrate_run *run = &runs->run[i];
        double spread = calibrate_time_spread (run, &profile[i], open[i]);

        if (!use[i])
            continue;
        within +=
            fabs (log (step_s[i] / run->iter_time_s)) <= log (workload_interval (spread));
        n++;
    }
    return n > 0 ? (double) within / n : NAN;
}

enum status calibrate_memory_labels (const struct calibrate_runs *runs,
                                     const struct workload_profile *profile,
                                     enum memest_model by, double threshold,
                                     struct calibrate_labels *out, struct error *err)
{
    double *score = calloc ((size_t) runs->n + 1, sizeof *score);
    double *chance = calloc ((size_t) runs->n + 1, sizeof *chance);
    int *label = calloc ((size_t) runs->n + 1, sizeof *label), n = 0;
    enum status st = score && chance && label ? ST_OK : err_nomem (err);

    for (int i = 0; i < runs->n && st == ST_OK; i++) {
        const struct calibrate_run *run = &runs->run[i];
        double need;

        if (run->oom < 0)
            continue;
        need = calibrate_need (run, &profile[i], by);
        score[n] = need / run->gpu_bytes;
        chance[n] = calibrate_chance (run, &profile[i]);
        label[n++] = run->oom;
    }
    THEN (st, calibrate_labels (score, threshold, by == MEMEST_LINKWISE ? chance : NULL,
                                label, n, out, err));
    FREE_ALL (score, chance, label);
    return st;
}

enum status calibrate_held_out (const struct calibrate_runs *runs, const int *group,
                                int n_groups, enum calibrate_part part,
                                const struct workload_profile *prior,
                                void (*progress) (void *context, int done, int of),
                                void *context, struct workload_profile *out,
                                struct error *err)
{
    bool *use = calloc ((size_t) runs->n + 1, sizeof *use);
    enum status st = use ? ST_OK : err_nomem (err);

    for (int g = 0; g < n_groups && st == ST_OK; g++) {
        struct workload_profile fitted = *prior;
        struct calibrate_fit fit;
        bool mine = false, others = false;

        for (int i = 0; i < runs->n; i++) {
            use[i] = group[i] != g;
            mine |= !use[i] && calibrate_has_figures (&runs->run[i], part);
            others |= use[i] && calibrate_has_figures (&runs->run[i], part);
        }
        if (mine && others && progress)
            progress (context, g, n_groups);
        if (mine && others)
            st = calibrate_fit (runs, part, use, &fitted, &fit, err);
        for (int i = 0; i < runs->n && st == ST_OK; i++)
            if (!use[i])
                out[i] = fitted;
    }
    free (use);
    return st;
}
