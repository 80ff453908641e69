/* Fitting a profile's constants: maximum a posteriori, in logarithms, by NLopt's
 * BOBYQA (Powell 2009) within bounds.
 *
 * What the model gets wrong no constant stands for, and a fit may move constants to make up for it
 * in the runs that it sees.  So the runs are left out fold by fold, and what the rest says of them
 * chooses how much of the way from the start to the fitted constants is taken. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define EVALUATIONS_MAX 4000
#define BOUND_SPREADS 4.0 /* how many spreads a constant may move */
/* What a fit of memory leaves at most, to start with: a framework that nobody has fitted has a
 * wider residual, which says nothing of that. */
#define FITTED_RESIDUAL 0.05
#define GAIN_LEAST 1e-2 /* of the objective, for the search to start anew */
/* What the model gets wrong, runs of one source have in common, so that a thousand of them
 * do not tell a thousand times as much as one: n count as n / (1 + n / RUNS_MOST) (the
 * coarsened posterior of Miller and Dunson, JASA 2019, section 2). */
#define RUNS_MOST 300.0
/* Folds are of whole models, or of configurations where there are fewer models than folds. */
#define FOLDS 5
#define QUARTERS 4 /* in which the way from the start to a fit is taken */

struct fitting {
    bool memory; /* else times */
    const struct calibrate_runs *runs;
    struct topology_cluster **cluster; /* [runs->n], for times */
    double *estimate;                  /* [runs->n] as the fit starts; NAN: not used */
    int *first;     /* [runs->n] the first run of its configuration; -1: not used */
    double *weight; /* [runs->n] one over the runs of its configuration; 0: not used */
    int *group;     /* [runs->n] which are left out together */
    int without;    /* the fold that is left out; -1: none */
    /* About a fit of times, for the folds; NULL: none.  The logarithms of estimate over measured
     * there, [runs->n], what each variable moves them by, [runs->n * n_free], and its variables. */
    double *near, *slope;
    const double *at;
    struct workload_profile start;
    struct calibrate_fit fit;
    int free_of[CALIBRATE_CONSTANTS_MAX]; /* variables: index into fit->constant */
    int n_free;
};

static double log_normal_cdf (double z)
{
    /* Far tails by their asymptote, so that the logarithm stays finite. */
    if (z < -30)
        return -0.5 * z * z - log (-z) - 0.919;
    return log (0.5 * erfc (-z / sqrt (2.0)));
}

static bool is_label (const struct fitting *f, int i)
{
    return f->memory && isnan (f->runs->run[i].peak_bytes);
}

/* How far a run's figure is from the estimate, in logarithms; of a label minus the logarithm of its
 * likelihood. */
static double far_off (const struct fitting *f, int i, const struct workload_profile *p)
{
    const struct calibrate_run *run = &f->runs->run[i];
    double step_s, z;

    if (is_label (f, i)) {
        z = calibrate_deviations (run, p);
        return -log_normal_cdf (run->oom ? -z : z);
    }
    if (f->memory)
        return fabs (log (calibrate_peak (run, p) / run->peak_bytes));
    return calibrate_step (run, f->cluster[i], p, &step_s, NULL, NULL) == ST_OK
               ? fabs (log (step_s / run->iter_time_s))
               : 0.0;
}

/* The same with variables x, by what estimates of times move with them about the fit: as good where
 * folds are fitted, and far cheaper than to play steps out. */
static double far_off_near (const struct fitting *f, int i, const double *x)
{
    double far = f->near[i];

    for (int k = 0; k < f->n_free; k++)
        far += f->slope[i * f->n_free + k] * (x[k] - f->at[k]);
    return fabs (far);
}

/* Minus the log likelihood of one run; beyond three deviations of a figure linear: a source's
 * typing error must not rule. */
static double run_part (const struct fitting *f, int i, const double *x,
                        const struct workload_profile *p)
{
    double far = f->near ? far_off_near (f, i, x) : far_off (f, i, p);
    double sigma = p->time.residual, z;

    if (is_label (f, i))
        return far;
    if (f->memory)
        sigma = workload_residual (calibrate_peak_interval (&f->runs->run[i], p));
    z = far / sigma;
    return (z <= 3 ? 0.5 * z * z : 3 * z - 4.5) + log (sigma);
}

static bool is_left_out (const struct fitting *f, int i)
{
    return f->group[i] % FOLDS == f->without;
}

/* Minus the log likelihood of the runs under profile p, of variables x. */
static double data_part (const struct fitting *f, const double *x,
                         const struct workload_profile *p)
{
    double sum = 0.0;

    for (int i = 0; i < f->runs->n; i++)
        if (f->weight[i] > 0.0 && !is_left_out (f, i))
            sum += f->weight[i] * run_part (f, i, x, p);
    return sum / (1.0 + f->fit.configurations / RUNS_MOST);
}

/* The profile part of the way to x. */
static struct workload_profile moved (const struct fitting *f, const double *x,
                                      double part)
{
    struct workload_profile p = f->start;

    for (int i = 0; i < f->n_free; i++) {
        const struct workload_constant *k = f->fit.constant[f->free_of[i]].constant;

        *workload_constant_of (&p, k) *= exp (part * x[i] * k->spread);
    }
    return p;
}

static double objective (unsigned n, const double *x, double *gradient, void *context)
{
    struct fitting *f = context;
    struct workload_profile p = moved (f, x, 1.0);
    double prior = 0.0, sum;

    (void) gradient;
    for (unsigned i = 0; i < n; i++)
        prior += 0.5 * x[i] * x[i];
    sum = data_part (f, x, &p) + prior;
    return isfinite (sum) ? sum : 1e30;
}

/* Which constants can the data tell?  Move each by its spread. */
static void find_free (struct fitting *f)
{
    double here = data_part (f, NULL, &f->start);

    for (int i = 0; i < f->fit.n; i++) {
        const struct workload_constant *k = f->fit.constant[i].constant;
        double most = 0.0;

        for (int way = -1; way <= 1; way += 2) {
            struct workload_profile p = f->start;

            *workload_constant_of (&p, k) *= exp (way * k->spread);
            most = fmax (most, fabs (data_part (f, NULL, &p) - here));
        }
        f->fit.constant[i].told = most >= 0.5;
        if (f->fit.constant[i].told)
            f->free_of[f->n_free++] = i;
    }
}

static void list_constants (struct fitting *f)
{
    int n;
    const struct workload_constant *all = workload_constants (&n);

    for (int i = 0; i < n; i++) {
        double value = *workload_constant_of (&f->start, &all[i]);

        if (all[i].memory != f->memory || all[i].spread <= 0 || value <= 0)
            continue;
        f->fit.constant[f->fit.n++] =
            (struct calibrate_fitted){.constant = &all[i],
                                      .before = value / all[i].unit,
                                      .after = value / all[i].unit};
    }
}

/* @param[in,out] x  where the search starts, and what it finds */
static enum status minimise (struct fitting *f, double *x, struct error *err)
{
    double lower[CALIBRATE_CONSTANTS_MAX], upper[CALIBRATE_CONSTANTS_MAX];
    double least = INFINITY, before;
    nlopt_result rc;
    /* BOBYQA needs two variables. */
    nlopt_opt opt = nlopt_create (f->n_free > 1 ? NLOPT_LN_BOBYQA : NLOPT_LN_SBPLX,
                                  (unsigned) f->n_free);

    if (!opt)
        return err_nomem (err);
    for (int i = 0; i < f->n_free; i++) {
        const struct calibrate_fitted *c = &f->fit.constant[f->free_of[i]];

        lower[i] = -BOUND_SPREADS;
        upper[i] = BOUND_SPREADS;
        /* Never outside what the file may say. */
        if (c->constant->least > 0)
            lower[i] = fmax (lower[i],
                             log (c->constant->least / c->before) / c->constant->spread);
        upper[i] =
            fmin (upper[i], log (c->constant->most / c->before) / c->constant->spread);
    }
    nlopt_set_min_objective (opt, objective, f);
    nlopt_set_lower_bounds (opt, lower);
    nlopt_set_upper_bounds (opt, upper);
    nlopt_set_initial_step1 (opt, 0.5);
    nlopt_set_ftol_abs (opt, 1e-4);
    nlopt_set_maxeval (opt, EVALUATIONS_MAX);

    /* Its picture of the objective may close in on a point that is no optimum: start anew
     * from there until that gains nothing.  Round-off is an end like any other. */
    do {
        before = least;
        rc = nlopt_optimize (opt, x, &least);
    } while (rc > 0 && before - least > GAIN_LEAST);
    nlopt_destroy (opt);
    if (rc < 0 && rc != NLOPT_ROUNDOFF_LIMITED)
        return err_set (err, ST_INVALID, "the fit did not converge (NLopt %d)", (int) rc);
    return ST_OK;
}

/* Every configuration counts once, however often it was run. */
static enum status weigh (struct fitting *f, struct error *err)
{
    TRY (calibrate_configurations (f->runs, f->estimate, f->first, &f->fit.configurations,
                                   err));
    for (int i = 0; i < f->runs->n; i++)
        if (f->first[i] >= 0) {
            f->weight[f->first[i]]++;
            f->fit.used++;
        }
    for (int i = f->runs->n - 1; i >= 0; i--)
        if (f->first[i] >= 0)
            f->weight[i] = 1.0 / f->weight[f->first[i]];
    return f->fit.used > 0
               ? ST_OK
               : err_set (err, ST_INVALID, "no run has %s",
                          f->memory ? "a measured peak or an out-of-memory label"
                                    : "a step time that can be estimated");
}

/* ---- how much of the fit is taken ---- */

/* How estimates of times move about the fit x; the caller frees `near` and `slope`. */
static enum status look_near (struct fitting *f, const double *x, struct error *err)
{
    struct workload_profile p = moved (f, x, 1.0);
    int n = f->n_free;

    f->at = x;
    f->near = calloc ((size_t) f->runs->n, sizeof *f->near);
    f->slope = calloc ((size_t) f->runs->n * (size_t) n, sizeof *f->slope);
    if (!f->near || !f->slope)
        return err_nomem (err);
    for (int i = 0; i < f->runs->n; i++) {
        const struct calibrate_run *run = &f->runs->run[i];
        double step_s;

        if (f->weight[i] <= 0.0 ||
            calibrate_step (run, f->cluster[i], &p, &step_s, NULL, NULL) != ST_OK)
            continue;
        f->near[i] = log (step_s / run->iter_time_s);
        for (int k = 0; k < n; k++) {
            const struct workload_constant *c = f->fit.constant[f->free_of[k]].constant;
            double slope = calibrate_is_residual (c)
                               ? 0.0
                               : calibrate_slope (run, f->cluster[i], &p, c);

            f->slope[i * n + k] = isfinite (slope) ? slope * c->spread : 0.0;
        }
    }
    return ST_OK;
}

/* By how much each group, left out, is missed with every part of the way: the sum of roots, by
 * which one far run does not rule.
 * @param x  of the fit to all runs  @param[out] error  [n], zeros */
static enum status leave_out (struct fitting *f, const double *x, int n,
                              double (*error)[QUARTERS + 1], struct error *err)
{
    for (f->without = 0; f->without < FOLDS && f->without < n; f->without++) {
        double own[CALIBRATE_CONSTANTS_MAX];

        memcpy (own, x, sizeof own);
        TRY (minimise (f, own, err));
        for (int k = 0; k <= QUARTERS; k++) {
            struct workload_profile p = moved (f, own, k / (double) QUARTERS);

            for (int i = 0; i < f->runs->n; i++)
                if (f->weight[i] > 0.0 && is_left_out (f, i))
                    error[f->group[i]][k] += f->weight[i] * sqrt (far_off (f, i, &p));
        }
    }
    f->without = -1;
    return ST_OK;
}

/* The part of the way that misses least, of those with which groups are missed by less than at the
 * start, and not by chance: all together by more than one deviation of such a sum. */
static double best_part (double (*error)[QUARTERS + 1], int n)
{
    double most = 0.0;
    int best = 0;

    for (int k = 1; k <= QUARTERS; k++) {
        double gain = 0.0, squares = 0.0;

        for (int g = 0; g < n; g++) {
            double one = error[g][0] - error[g][k];

            gain += one;
            squares += one * one;
        }
        if (gain > fmax (most, sqrt (squares))) {
            most = gain;
            best = k;
        }
    }
    return best / (double) QUARTERS;
}

/* Go that part of the way, and tell anew how far runs scatter about it. */
static enum status take_part (struct fitting *f, double *x, struct error *err)
{
    struct fitting scatter = *f;
    double left;
    int at = -1;

    for (int i = 0; i < f->n_free; i++)
        if (calibrate_is_residual (f->fit.constant[f->free_of[i]].constant))
            at = i;
        else
            x[i] *= f->fit.taken;
    if (at < 0)
        return ST_OK;
    left = x[at];
    x[at] = 0.0;
    scatter.start = moved (f, x, 1.0);
    scatter.free_of[0] = f->free_of[at];
    scatter.n_free = 1;
    TRY (minimise (&scatter, &left, err));
    x[at] = left;
    return ST_OK;
}

/* Choose how much of the way to x is taken, and go no further. */
static enum status guard (struct fitting *f, double *x, struct error *err)
{
    enum calibrate_grouping by;
    double (*error)[QUARTERS + 1];
    enum status st;
    int n;

    TRY (calibrate_groups_of (f->runs, FOLDS, &by, f->group, &n, err));
    error = calloc ((size_t) n, sizeof *error);
    st = error ? ST_OK : err_nomem (err);
    if (!f->memory)
        THEN (st, look_near (f, x, err));
    THEN (st, leave_out (f, x, n, error, err));
    FREE_ALL (f->near, f->slope);
    f->near = f->slope = NULL;
    if (st == ST_OK)
        f->fit.taken = best_part (error, n);
    free (error);
    return st != ST_OK || f->fit.taken == 1.0 ? st : take_part (f, x, err);
}

/* The residual that the profile gets.  As many configurations as constants were told say nothing of
 * how far others scatter; the profile's own residual counts as some.  Where t of the way is taken,
 * what is left keeps (1 - t)^2 of what the whole fit takes off, so that told constants count as 1
 * less that each.
 * @param told  constants beside this one  @param own  the profile's
 * @param left  what scatters about the fit */
static double pooled (const struct calibrate_fit *fit, int told, double own, double left)
{
    double n = fit->configurations, kept = 1.0 - fit->taken,
           more = fmax (0.0, n - told * (1.0 - kept * kept));

    return sqrt ((CALIBRATE_RESIDUAL_RUNS * own * own + n * left * left) /
                 (CALIBRATE_RESIDUAL_RUNS + more));
}

/* @param own  the profile's  @param told  constants that were fitted, this one too */
static void take_residual (struct calibrate_fit *fit, int told, double own,
                           struct workload_profile *p)
{
    for (int i = 0; i < fit->n; i++) {
        struct calibrate_fitted *c = &fit->constant[i];

        if (!calibrate_is_residual (c->constant))
            continue;
        c->before = own;
        c->after = c->told
                       ? fmin (pooled (fit, told - 1, own, c->after), c->constant->most)
                       : own;
        *workload_constant_of (p, c->constant) = c->after;
    }
}

static enum status fit (struct fitting *f, struct workload_profile *p, struct error *err)
{
    double x[CALIBRATE_CONSTANTS_MAX] = {0};
    struct calibrate_fit *result = &f->fit;
    double own = f->memory ? p->memory.residual : p->time.residual;

    if (f->memory)
        f->start.memory.residual = fmin (f->start.memory.residual, FITTED_RESIDUAL);
    list_constants (f);
    find_free (f);
    result->before = objective (0, x, NULL, f);
    if (f->n_free > 0) {
        TRY (minimise (f, x, err));
        TRY (guard (f, x, err));
    }
    result->after = objective ((unsigned) f->n_free, x, NULL, f);
    for (int i = 0; i < f->n_free; i++) {
        struct calibrate_fitted *c = &result->constant[f->free_of[i]];

        c->after = c->before * exp (x[i] * c->constant->spread);
        *workload_constant_of (p, c->constant) = c->after * c->constant->unit;
        c->told = calibrate_is_residual (c->constant) || c->after != c->before;
    }
    take_residual (result, f->n_free, own, p);
    return ST_OK;
}

/* What the runs of each configuration say together.
 * @param[out] few  with room for CALIBRATE_FEW_MOST */
static void gather (const struct fitting *f, struct calibrate_few *few)
{
    for (int i = 0; i < f->runs->n; i++) {
        double sum = 0.0, squares = 0.0;

        if (f->first[i] != i)
            continue;
        for (int k = i; k < f->runs->n; k++) {
            double error = log (f->runs->run[k].iter_time_s / f->estimate[k]);

            sum += f->first[k] == i ? f->weight[i] * error : 0.0;
            squares += f->first[k] == i ? f->weight[i] * error * error : 0.0;
        }
        few->run[few->n] = &f->runs->run[i];
        few->cluster[few->n] = f->cluster[i];
        few->error[few->n] = sum;
        few->noise[few->n++] = fmax (0.0, squares - sum * sum);
    }
}

/* As fit, where there are so few runs that most constants are not told. */
static enum status fit_few (struct fitting *f, struct workload_profile *p,
                            struct error *err)
{
    const struct calibrate_run *run[CALIBRATE_FEW_MOST];
    struct topology_cluster *cluster[CALIBRATE_FEW_MOST];
    double error[CALIBRATE_FEW_MOST], noise[CALIBRATE_FEW_MOST];
    struct calibrate_few few = {run, cluster, error, noise, 0};
    struct calibrate_fit *result = &f->fit;

    gather (f, &few);
    list_constants (f);
    result->before = objective (0, NULL, NULL, f);
    TRY (calibrate_few (&few, p, &result->taken, err));
    f->start = *p;
    result->after = objective (0, NULL, NULL, f);
    for (int i = 0; i < result->n; i++) {
        struct calibrate_fitted *c = &result->constant[i];

        c->after = *workload_constant_of (p, c->constant) / c->constant->unit;
        c->told = c->after != c->before;
    }
    return ST_OK;
}

/* A run's machines and step time under p; NAN where there is none. */
static enum status estimate_step (struct fitting *f, int i,
                                  const struct workload_profile *p, struct error *err)
{
    const struct calibrate_run *run = &f->runs->run[i];
    enum status st = calibrate_cluster (run, p, &f->cluster[i], err);

    THEN (st, calibrate_step (run, f->cluster[i], p, &f->estimate[i], NULL, err));
    return st == ST_NOMEM ? st : ST_OK;
}

/* What the fit starts at. */
static enum status estimate_all (struct fitting *f, const struct workload_profile *p,
                                 struct error *err)
{
    for (int i = 0; i < f->runs->n; i++) {
        f->estimate[i] = NAN;
        if (f->memory)
            f->estimate[i] = calibrate_need (&f->runs->run[i], p, MEMEST_LINKWISE);
        else
            TRY (estimate_step (f, i, p, err));
    }
    return ST_OK;
}

enum status calibrate_fit (const struct calibrate_runs *all, enum calibrate_part part,
                           const bool *use, struct workload_profile *p,
                           struct calibrate_fit *out, struct error *err)
{
    size_t n = (size_t) all->n + 1;
    struct calibrate_runs runs = {.run = calloc (n, sizeof *runs.run)};
    struct fitting f = {.memory = part == CALIBRATE_MEMORY,
                        .runs = &runs,
                        .cluster = calloc (n, sizeof (struct topology_cluster *)),
                        .estimate = calloc (n, sizeof (double)),
                        .first = calloc (n, sizeof (int)),
                        .weight = calloc (n, sizeof (double)),
                        .group = calloc (n, sizeof (int)),
                        .without = -1,
                        .start = *p};
    enum status st = runs.run && f.cluster && f.estimate && f.first && f.weight && f.group
                         ? ST_OK
                         : err_nomem (err);

    for (int i = 0; i < all->n && st == ST_OK; i++)
        if ((!use || use[i]) && calibrate_has_figures (&all->run[i], part))
            runs.run[runs.n++] = all->run[i];
    THEN (st, estimate_all (&f, p, err));
    THEN (st, weigh (&f, err));
    f.fit.few = !f.memory && f.fit.configurations <= CALIBRATE_FEW_MOST;
    THEN (st, f.fit.few ? fit_few (&f, p, err) : fit (&f, p, err));
    if (st == ST_OK)
        *out = f.fit;
    for (int i = 0; i < runs.n && f.cluster; i++)
        topology_cluster_destroy (f.cluster[i]);
    FREE_ALL (runs.run, f.cluster, f.estimate, f.first, f.weight, f.group);
    return st;
}
