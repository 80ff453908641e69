/* Step times fitted to a handful of runs.
 *
 * Few runs tell how fast a place is as a whole, a little of one or two things more, and never all
 * constants.  So the fit is a scale of all times and of every constant what the runs say of it,
 * linear about the start in logarithms: the posterior mean, each deviation being normal about 0
 * with its spread.  Runs of one model have more in common, which no constant is to answer for: that
 * model's pace has it (struct workload_pace).  How far the runs scatter about that, as Student's t,
 * is not known either: several levels are weighed by how likely they make the runs.  Runs left out
 * one by one then say which part of all this to take, so that the fit is seldom worse than its
 * start on what it has not seen.  What no run shows keeps its value. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 0.03 /* of a constant's logarithm, to see what it moves */
/* Of a constant, since what it moves is linear near the start alone. */
#define SPREAD_MOST 0.3
/* Of what runs of one model and precision err by together, their scale and constants told. */
#define MODEL_SPREAD 0.06
/* A constant of which all runs show less does not take part in the scale of all times. */
#define SHOWN_LEAST 0.005
/* Of how far runs scatter, in logarithms. */
#define SCATTER_SPREAD 1.5
#define STUDENT 2.0 /* degrees of freedom of that scatter */
#define REWEIGHS 8

#define NO_FIT 3.0 /* times as likely as the fit, before any run is looked at */

static const double scatters[] = {0.5 * CALIBRATE_ROW_SPREAD, CALIBRATE_ROW_SPREAD,
                                  2.0 * CALIBRATE_ROW_SPREAD, 4.0 * CALIBRATE_ROW_SPREAD,
                                  8.0 * CALIBRATE_ROW_SPREAD};

/* n logarithms of measured over estimated, and how they move together by what is not known. */
struct few_fit {
    int n;
    const double *error, *noise;  /* [n] */
    int pace[CALIBRATE_FEW_MOST]; /* [n] of its model, in the profile; -1: none */
    /* Their covariance by scale and constants, and by their models; scatter is left out. */
    double together[CALIBRATE_FEW_MOST][CALIBRATE_FEW_MOST];
    double alike[CALIBRATE_FEW_MOST][CALIBRATE_FEW_MOST];
};

/* What makes the errors likely where each run scatters by so much: weights that give back any
 * deviation as its covariance with the runs.
 * @param scatter  [n] squares
 * @param[out] weight  [n], 0 for the run left out  @return the logarithm of the likelihood */
static double solve (const struct few_fit *f, int without, const double *scatter,
                     double *weight)
{
    double a[CALIBRATE_FEW_MOST][CALIBRATE_FEW_MOST + 1], likely = 0.0;
    int n = f->n;

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            a[i][k] =
                i == without || k == without ? 0.0 : f->together[i][k] + f->alike[i][k];
        a[i][i] += scatter[i] + f->noise[i];
        a[i][n] = i == without ? 0.0 : f->error[i];
    }
    /* Gauss; the matrix is positive definite and symmetric, so that its upper half says all. */
    for (int p = 0; p < n; p++) {
        likely -= 0.5 * log (a[p][p]) * (p != without);
        for (int r = p + 1; r < n; r++) {
            double factor = a[p][r] / a[p][p];

            for (int c = r; c <= n; c++)
                a[r][c] -= factor * a[p][c];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int c = i + 1; c < n; c++)
            a[i][n] -= a[i][c] * weight[c];
        weight[i] = a[i][n] / a[i][i];
        likely -= i == without ? 0.0 : 0.5 * weight[i] * f->error[i];
    }
    return likely;
}

/* The same where runs scatter as Student's t, so that one which is far off does not rule: its own
 * scatter is wider, by what the fit leaves of it.  The likelihood is t's, by the normal law that
 * touches it there. */
static double solve_student (const struct few_fit *f, int without, double scatter,
                             double *weight)
{
    double wide[CALIBRATE_FEW_MOST], square[CALIBRATE_FEW_MOST], likely = 0.0;

    for (int round = 0; round < REWEIGHS; round++) {
        for (int i = 0; i < f->n; i++) {
            double left = round > 0 ? square[i] * weight[i] / scatter : 1.0;

            wide[i] = (STUDENT + left * left) / (STUDENT + 1.0);
            square[i] = scatter * scatter * wide[i];
        }
        likely = solve (f, without, square, weight);
    }
    for (int i = 0; i < f->n; i++)
        if (i != without)
            likely += 0.5 * (STUDENT + 1.0 - STUDENT / wide[i] + log (wide[i]) -
                             (STUDENT + 1.0) * log (wide[i] * (STUDENT + 1.0) / STUDENT));
    return likely;
}

/* The same over all scatters, each as likely as it makes the runs. */
static void weigh (const struct few_fit *f, int without, double *weight)
{
    double of[COUNT_OF (scatters)][CALIBRATE_FEW_MOST], likely[COUNT_OF (scatters)];
    double most = -INFINITY, sum = 0.0;

    for (size_t k = 0; k < COUNT_OF (scatters); k++) {
        double far = log (scatters[k] / CALIBRATE_ROW_SPREAD) / SCATTER_SPREAD;

        likely[k] = solve_student (f, without, scatters[k], of[k]) - 0.5 * far * far;
        most = fmax (most, likely[k]);
    }
    for (int i = 0; i < f->n; i++)
        weight[i] = 0.0;
    for (size_t k = 0; k < COUNT_OF (scatters); k++)
        sum += exp (likely[k] - most);
    for (size_t k = 0; k < COUNT_OF (scatters); k++)
        for (int i = 0; i < f->n; i++)
            weight[i] += exp (likely[k] - most) / sum * of[k][i];
}

/* What the fit makes of run i's error. */
static double met (const struct few_fit *f, const double *weight, int i)
{
    double sum = 0.0;

    for (int k = 0; k < f->n; k++)
        sum += weight[k] * (f->together[i][k] + f->alike[i][k]);
    return sum;
}

/* The part of the fit to take, in hundredths: the mean of all and none of it, each as likely as it
 * makes the runs that it did not see.  Their density falls with the roots of their errors, so that
 * one far run does not rule, by no known scale: n are as likely as the sum of these to the power of
 * -2 n.  A run alone tells nothing of others. */
static double part_to_take (const struct few_fit *f)
{
    double without = 0.0, with = 0.0, weight[CALIBRATE_FEW_MOST];

    for (int i = 0; i < f->n; i++) {
        weigh (f, i, weight);
        without += sqrt (fabs (f->error[i]));
        with += sqrt (fabs (f->error[i] - met (f, weight, i)));
    }
    if (f->n < 2 || without <= 0.0)
        return 0.0;
    return round (100.0 / (1.0 + NO_FIT * pow (with / without, 2 * f->n))) / 100.0;
}

/* ---- what constants move ---- */

/* Does a run show what the constant is? */
static bool is_shown (const double *move, int n)
{
    double most = 0.0;

    for (int i = 0; i < n; i++)
        most = fmax (most, fabs (move[i]));
    return most >= SHOWN_LEAST;
}

bool calibrate_is_residual (const struct workload_constant *k)
{
    return strcmp (k->key, "residual") == 0;
}

bool calibrate_may_move (const struct workload_constant *k, struct workload_profile *p)
{
    return !k->memory && k->spread > 0 && !calibrate_is_residual (k) &&
           *workload_constant_of (p, k) > 0;
}

double calibrate_slope (const struct calibrate_run *run,
                        const struct topology_cluster *cluster,
                        const struct workload_profile *p,
                        const struct workload_constant *k)
{
    struct workload_profile up = *p, down = *p;
    double a, b, step; /* to one side alone where the constant is at a bound */

    workload_constant_times (&up, k, exp (STEP));
    workload_constant_times (&down, k, exp (-STEP));
    step = log (*workload_constant_of (&up, k) / *workload_constant_of (&down, k));
    if (calibrate_step (run, cluster, &up, &a, NULL, NULL) != ST_OK ||
        calibrate_step (run, cluster, &down, &b, NULL, NULL) != ST_OK)
        return NAN;
    return log (a / b) / step;
}

/* How the logarithm of every run's time moves with that of a constant; with all times, where
 * there is none. */
static bool moves (const struct calibrate_few *runs, const struct workload_profile *p,
                   const struct workload_constant *k, double *out)
{
    for (int i = 0; i < runs->n; i++) {
        out[i] = k ? calibrate_slope (runs->run[i], runs->cluster[i], p, k) : 1.0;
        if (!isfinite (out[i]))
            return false;
    }
    return true;
}

double calibrate_few_spread (const struct workload_constant *k)
{
    return fmin (SPREAD_MOST, k->spread);
}

static void add_together (struct few_fit *f, const double *move, double spread)
{
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < f->n; k++)
            f->together[i][k] += spread * spread * move[i] * move[k];
}

/* How far what moves the runs so deviates. */
static double deviation (const struct few_fit *f, const double *weight,
                         const double *move, double spread)
{
    double sum = 0.0;

    for (int i = 0; i < f->n; i++)
        sum += weight[i] * move[i];
    return spread * spread * sum;
}

/* What is left scatters; the profile's own residual counts as some runs.  @return over that */
static double residual_over (const struct few_fit *f, const double *weight,
                             const struct workload_profile *p)
{
    double square = CALIBRATE_RESIDUAL_RUNS * p->time.residual * p->time.residual;

    for (int i = 0; i < f->n; i++) {
        double error = f->error[i] - met (f, weight, i);

        square += error * error + f->noise[i];
    }
    return sqrt (square / (CALIBRATE_RESIDUAL_RUNS + f->n)) / p->time.residual;
}

/* Move every constant, and all times that the runs show, by what the weights make of them. */
static void move_all (const struct few_fit *f, const double *weight,
                      double (*move)[CALIBRATE_FEW_MOST], struct workload_profile *p)
{
    int n_all;
    const struct workload_constant *all = workload_constants (&n_all);
    double ones = deviation (f, weight, move[n_all], CALIBRATE_SCALE_SPREAD),
           residual = residual_over (f, weight, p);

    for (int k = 0; k < n_all; k++)
        if (!all[k].memory && calibrate_is_residual (&all[k])) {
            workload_constant_times (p, &all[k], residual);
        } else if (is_shown (move[k], f->n)) {
            workload_constant_times (
                p, &all[k],
                exp (deviation (f, weight, move[k], calibrate_few_spread (&all[k]))));
            workload_constant_pace (p, &all[k], exp (ones));
        }
}

/* A pace of 1 for a model that had none.  @return NULL: no room, or a name that no file can hold */
static struct workload_pace *add_pace (const struct calibrate_run *run,
                                       struct workload_profile *p)
{
    struct workload_pace *pace = &p->pace[p->n_paces];
    const char *name = workload_pace_name (run->model.name);
    json_t *utf8 = json_string (name);

    json_decref (utf8);
    if (!utf8 || p->n_paces == WORKLOAD_PACED_MAX)
        return NULL;
    *pace = (struct workload_pace){.precision = run->job.precision, .factor = 1.0};
    snprintf (pace->model, sizeof pace->model, "%s", name);
    p->n_paces++;
    return pace;
}

/* Which of the profile's paces is a run's model's; -1: none can be. */
static int place_pace (const struct calibrate_run *run, struct workload_profile *p)
{
    struct workload_pace *pace =
        workload_pace_of (p, run->model.name, run->job.precision);

    pace = pace ? pace : add_pace (run, p);
    return pace ? (int) (pace - p->pace) : -1;
}

/* Runs whose model gets no pace have nothing of their own in common: what is decided is what the
 * profile keeps. */
static void compare_models (const struct calibrate_few *runs, struct workload_profile *p,
                            struct few_fit *f)
{
    for (int i = 0; i < f->n; i++)
        f->pace[i] = place_pace (runs->run[i], p);
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < f->n; k++)
            if (f->pace[i] >= 0 && f->pace[i] == f->pace[k])
                f->alike[i][k] = MODEL_SPREAD * MODEL_SPREAD;
}

/* What runs of one model have in common holds for others of it. */
static void pace_models (const struct few_fit *f, const double *weight,
                         struct workload_profile *p)
{
    for (int i = 0; i < f->n; i++)
        if (f->pace[i] >= 0)
            p->pace[f->pace[i]].factor *= exp (weight[i] * f->alike[i][i]);
    for (struct workload_pace *pace = p->pace; pace < p->pace + p->n_paces; pace++)
        pace->factor =
            fmin (fmax (pace->factor, WORKLOAD_PACE_LEAST), WORKLOAD_PACE_MOST);
}

enum status calibrate_few (const struct calibrate_few *runs, struct workload_profile *p,
                           double *taken, struct error *err)
{
    int n_all, had = p->n_paces;
    const struct workload_constant *all = workload_constants (&n_all);
    double (*move)[CALIBRATE_FEW_MOST] = calloc ((size_t) n_all + 1, sizeof *move);
    double weight[CALIBRATE_FEW_MOST];
    struct few_fit f = {.n = runs->n, .error = runs->error, .noise = runs->noise};

    if (!move)
        return err_nomem (err);
    compare_models (runs, p, &f);
    moves (runs, p, NULL, move[n_all]);
    add_together (&f, move[n_all], CALIBRATE_SCALE_SPREAD);
    for (int k = 0; k < n_all; k++)
        if (calibrate_may_move (&all[k], p) && moves (runs, p, &all[k], move[k]))
            add_together (&f, move[k], calibrate_few_spread (&all[k]));
        else
            memset (move[k], 0, sizeof move[k]);
    *taken = part_to_take (&f);
    weigh (&f, -1, weight);
    for (int i = 0; i < f.n; i++)
        weight[i] *= *taken;
    move_all (&f, weight, move, p);
    if (*taken > 0.0)
        pace_models (&f, weight, p);
    else
        p->n_paces = had;
    free (move);
    return ST_OK;
}
