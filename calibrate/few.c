/* Step times fitted to a handful of runs.
 *
 * Few runs tell how fast a place is as a whole, sometimes one or two things more, and never all
 * constants.  So the fit is a scale of all times, then at most FEW_CONSTANTS constants, each
 * shrunk to the profile's value by its spread, in logarithms and linear about the start.  Runs
 * left out one by one decide how far to go: a step that does not meet them clearly better is
 * not taken, so that the fit is not worse than its start on what it has not seen. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_CONSTANTS 2
#define STEP 0.03       /* of a constant's logarithm, to see what it moves */
#define TOLD_LEAST 0.02 /* how much what it moves must differ between runs */
#define SCALE_GAIN 0.2  /* of the error of runs left out */
#define CONSTANT_GAIN 0.15
#define RESIDUAL_RUNS 5.0 /* that the profile's residual counts as */
#define COLUMNS (1 + FEW_CONSTANTS)

/* A linear model of n logarithms of measured over estimated. */
struct line_fit {
    int n, columns;
    const double *error;           /* [n] */
    const double *column[COLUMNS]; /* [n] each */
    double spread[COLUMNS];
};

/* The most likely deviations, of all runs but `without`. */
static void solve (const struct line_fit *f, int without, double *x)
{
    double a[COLUMNS][COLUMNS + 1] = {{0}};
    int n = f->columns;

    for (int r = 0; r < n; r++) {
        for (int i = 0; i < f->n; i++) {
            double w = i == without ? 0.0
                                    : f->column[r][i] /
                                          (CALIBRATE_ROW_SPREAD * CALIBRATE_ROW_SPREAD);

            for (int c = 0; c < n; c++)
                a[r][c] += w * f->column[c][i];
            a[r][n] += w * f->error[i];
        }
        a[r][r] += 1.0 / (f->spread[r] * f->spread[r]);
    }
    /* Gauss and Jordan; the matrix is positive definite. */
    for (int p = 0; p < n; p++)
        for (int r = 0; r < n; r++) {
            double factor = a[r][p] / a[p][p];

            for (int c = p; c <= n && r != p; c++)
                a[r][c] -= factor * a[p][c];
        }
    for (int r = 0; r < n; r++)
        x[r] = a[r][n] / a[r][r];
}

static double left (const struct line_fit *f, const double *x, int i)
{
    double error = f->error[i];

    for (int c = 0; c < f->columns; c++)
        error -= x[c] * f->column[c][i];
    return error;
}

/* Mean absolute error of each run by a fit of the others. */
static double left_out (const struct line_fit *f)
{
    double sum = 0.0, x[COLUMNS] = {0};

    for (int i = 0; i < f->n; i++) {
        solve (f, i, x);
        sum += fabs (left (f, x, i));
    }
    return sum / f->n;
}

/* ---- what constants move ---- */

static void set_constant (struct workload_profile *p, const struct workload_constant *k,
                          double factor)
{
    double *value = workload_constant_of (p, k), next = *value / k->unit * factor;

    *value = fmin (fmax (next, k->least), k->most) * k->unit;
}

/* All times take `factor` times as long: those among the constants, which have units below 1, and
 * what comes of rates. */
static void scale (struct workload_profile *p, double factor)
{
    static const char rates[] = "gemm attention attention_back attention1 "
                                "memory_bandwidth link send_link";
    int n;
    const struct workload_constant *k = workload_constants (&n);

    for (; n-- > 0; k++) {
        bool rate = text_has_word (rates, k->key);

        if (rate || (!k->memory && k->unit < 1.0))
            set_constant (p, k, rate ? 1.0 / factor : factor);
    }
}

bool calibrate_may_move (const struct workload_constant *k, struct workload_profile *p)
{
    return !k->memory && k->spread > 0 && strcmp (k->key, "residual") != 0 &&
           *workload_constant_of (p, k) > 0;
}

double calibrate_slope (const struct calibrate_run *run,
                        const struct topology_cluster *cluster,
                        const struct workload_profile *p,
                        const struct workload_constant *k)
{
    struct workload_profile up = *p, down = *p;
    double a, b;

    set_constant (&up, k, exp (STEP));
    set_constant (&down, k, exp (-STEP));
    if (calibrate_step (run, cluster, &up, &a, NULL, NULL) != ST_OK ||
        calibrate_step (run, cluster, &down, &b, NULL, NULL) != ST_OK)
        return NAN;
    return log (a / b) / (2.0 * STEP);
}

/* How the logarithm of every run's time moves with that of a constant.
 * @return whether it tells runs apart */
static bool sensitivity (const struct calibrate_few *runs,
                         const struct workload_profile *p,
                         const struct workload_constant *k, double *out)
{
    double least = INFINITY, most = -INFINITY;

    for (int i = 0; i < runs->n; i++) {
        out[i] = calibrate_slope (runs->run[i], runs->cluster[i], p, k);
        if (isnan (out[i]))
            return false;
        least = fmin (least, out[i]);
        most = fmax (most, out[i]);
    }
    return isfinite (most - least) && most - least >= TOLD_LEAST;
}

/* Add the constant that meets runs left out best, if clearly better than without it.
 * @return its number; -1: none */
static int add_constant (struct line_fit *f, const double *moves, const bool *told,
                         const struct workload_constant *all, int n_all, double *error)
{
    int best = -1, at = f->columns++;

    for (int k = 0; k < n_all; k++) {
        double now;

        if (!told[k])
            continue;
        f->column[at] = moves + (size_t) k * (size_t) f->n;
        f->spread[at] = all[k].spread;
        now = left_out (f);
        if (now < *error * (1.0 - (best < 0 ? CONSTANT_GAIN : 0.0))) {
            *error = now;
            best = k;
        }
    }
    f->columns = best < 0 ? at : at + 1;
    if (best >= 0) {
        f->column[at] = moves + (size_t) best * (size_t) f->n;
        f->spread[at] = all[best].spread;
    }
    return best;
}

/* What is left scatters; the profile's own residual counts as some runs. */
static void set_residual (const struct line_fit *f, const double *x,
                          struct workload_profile *p)
{
    double square = RESIDUAL_RUNS * p->time.residual * p->time.residual;

    for (int i = 0; i < f->n; i++) {
        double error = left (f, x, i);

        square += error * error;
    }
    p->time.residual = sqrt (square / (RESIDUAL_RUNS + f->n));
}

/* @param[out] moves  [(constants + 1) * runs] room; @param[out] told  [constants] room */
static void choose (const struct calibrate_few *runs, const double *error, double *moves,
                    bool *told, struct workload_profile *p)
{
    int n_all, chosen[FEW_CONSTANTS] = {-1, -1};
    const struct workload_constant *all = workload_constants (&n_all);
    double *ones = moves + (size_t) n_all * (size_t) runs->n, x[COLUMNS] = {0};
    struct line_fit f = {.n = runs->n, .error = error};
    double start = left_out (&f), scaled;

    for (int i = 0; i < runs->n; i++)
        ones[i] = 1.0;
    f.columns = 1;
    f.column[0] = ones;
    f.spread[0] = CALIBRATE_SCALE_SPREAD;
    scaled = left_out (&f);
    if (scaled > start * (1.0 - SCALE_GAIN))
        f.columns = 0;
    for (int k = 0; k < n_all; k++)
        told[k] = f.columns > 0 && calibrate_may_move (&all[k], p) &&
                  sensitivity (runs, p, &all[k], moves + (size_t) k * (size_t) runs->n);
    for (int k = 0; k < FEW_CONSTANTS && f.columns == k + 1; k++)
        chosen[k] = add_constant (&f, moves, told, all, n_all, &scaled);
    solve (&f, -1, x);
    set_residual (&f, x, p);
    scale (p, exp (x[0]));
    for (int k = 0; k < FEW_CONSTANTS && chosen[k] >= 0; k++)
        set_constant (p, &all[chosen[k]], exp (x[1 + k]));
}

enum status calibrate_few (const struct calibrate_few *runs, struct workload_profile *p,
                           struct error *err)
{
    int n_all;
    double *error = calloc ((size_t) runs->n, sizeof *error), *moves;
    bool *told;

    workload_constants (&n_all);
    moves = calloc (((size_t) n_all + 1) * (size_t) runs->n, sizeof *moves);
    told = calloc ((size_t) n_all, sizeof *told);
    if (!error || !moves || !told) {
        free (error);
        free (moves);
        free (told);
        return err_nomem (err);
    }
    for (int i = 0; i < runs->n; i++)
        error[i] = log (runs->run[i]->iter_time_s / runs->step_s[i]);
    choose (runs, error, moves, told, p);
    free (error);
    free (moves);
    free (told);
    return ST_OK;
}
