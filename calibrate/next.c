/* Which run to measure next.
 *
 * The constants' logarithms start independent, each with its spread, and so does a scale of all
 * times.  A run's step time is linear in them about the fit and scatters with variance v, so that
 * each run narrows their covariance C by the Kalman step
 *
 *     C -= (C s) (C s)' / (v + s' C s),    s its sensitivities.
 *
 * Runs near those given are tried: those with one thing changed by a factor of 2 or 4.  The next
 * one is that after which the times of all of these are known best: measuring c takes
 *
 *     sum over q  (q' C c)^2 / (v + c' C c)
 *
 * off the sum of their variances q' C q.  It is told by the constant, or the scale, that it narrows
 * most. */
#include "calibrate/calibrate_private.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define RUNS_MOST 32        /* of those given, every k-th, that teach */
#define BASES_MOST 8        /* of them, that are changed */
#define NARROWED_LEAST 0.02 /* of the spread of step times, to be worth a run */
#define AS_GOOD 0.9 /* of the most that a run tells: then the one on fewest GPUs */
#define ROOM 0.9    /* of the memory, that a run may be said to need */
#define COLUMNS (CALIBRATE_CONSTANTS_MAX + 1)

/* What is changed, and which way the number of replicas goes with it. */
static const struct change {
    const char *what;
    size_t offset; /* an int of struct calibrate_run */
    int replicas;
} changes[] = {
    {"tp", offsetof (struct calibrate_run, config.deg.tp), -1},
    {"pp", offsetof (struct calibrate_run, config.deg.pp), -1},
    {"cp", offsetof (struct calibrate_run, config.deg.cp), -1},
    {"micro_batch", offsetof (struct calibrate_run, config.micro_batch), 0},
    {"seq", offsetof (struct calibrate_run, job.seq), 0},
    {"global_batch", offsetof (struct calibrate_run, job.global_batch), 0},
    {"gpus", offsetof (struct calibrate_run, gpus), 1},
};

/* Powers of 2. */
static const int factors[] = {1, -1, 2, -2};

#define CANDIDATES_MOST (BASES_MOST * (int) COUNT_OF (changes) * (int) COUNT_OF (factors))

struct candidate {
    struct calibrate_next next;
    double slope[COLUMNS];
};

struct learning {
    const struct calibrate_runs *runs;
    const struct workload_profile *p;
    bool few;
    const struct workload_constant *constant[CALIBRATE_CONSTANTS_MAX];
    int n; /* constants; column n is the scale */
    double c[COLUMNS][COLUMNS];
    struct candidate *candidate; /* [CANDIDATES_MOST] */
    int n_candidates;
};

/* ---- what runs tell ---- */

/* @param[out] slope  [n + 1]
 * @return ST_OK; ST_INVALID where its time cannot be estimated; ST_NOMEM */
static enum status slopes (const struct learning *l, const struct calibrate_run *run,
                           double *slope)
{
    struct topology_cluster *cluster = NULL;
    enum status st = calibrate_cluster (run, l->p, &cluster, NULL);

    slope[l->n] = 1.0;
    for (int k = 0; k < l->n && st == ST_OK; k++) {
        slope[k] = calibrate_slope (run, cluster, l->p, l->constant[k]);
        st = isnan (slope[k]) ? ST_INVALID : ST_OK;
    }
    topology_cluster_destroy (cluster);
    return st;
}

/* @param[out] cs  [n + 1] C s  @return s' C s */
static double known_by (const struct learning *l, const double *slope, double *cs)
{
    double sum = 0.0;

    for (int i = 0; i <= l->n; i++) {
        cs[i] = 0.0;
        for (int k = 0; k <= l->n; k++)
            cs[i] += l->c[i][k] * slope[k];
        sum += slope[i] * cs[i];
    }
    return sum;
}

/* The variance of a run's logarithm about the model, as the fit has it. */
static double scatter (const struct learning *l)
{
    double spread = l->few ? CALIBRATE_ROW_SPREAD : l->p->time.residual;

    return spread * spread;
}

/* How far a constant's logarithm may be off before any run, as the fit has it. */
static double spread_before (const struct learning *l, const struct workload_constant *k)
{
    return l->few ? calibrate_few_spread (k) : k->spread;
}

static void start (struct learning *l, struct workload_profile *p)
{
    int n;
    const struct workload_constant *all = workload_constants (&n);

    for (int i = 0; i < n; i++)
        if (calibrate_may_move (&all[i], p)) {
            double spread = spread_before (l, &all[i]);

            l->c[l->n][l->n] = spread * spread;
            l->constant[l->n++] = &all[i];
        }
    l->c[l->n][l->n] = CALIBRATE_SCALE_SPREAD * CALIBRATE_SCALE_SPREAD;
}

static enum status learn (struct learning *l)
{
    int every = (l->runs->n + RUNS_MOST - 1) / RUNS_MOST;
    double slope[COLUMNS], cs[COLUMNS];

    for (int r = 0; r < l->runs->n; r += every) {
        enum status st = slopes (l, &l->runs->run[r], slope);
        double whole;

        if (st == ST_NOMEM)
            return st;
        if (st != ST_OK)
            continue;
        whole = scatter (l) + known_by (l, slope, cs);
        for (int i = 0; i <= l->n; i++)
            for (int k = 0; k <= l->n; k++)
                l->c[i][k] -= cs[i] * cs[k] / whole;
    }
    return ST_OK;
}

/* ---- runs near those given ---- */

static int *value_of (struct calibrate_run *run, const struct change *c)
{
    return (int *) ((char *) run + c->offset);
}

/* x times 2^power.  @return whether it stays whole, and an int */
static bool times (int *x, int power)
{
    bool stays = power > 0 ? *x <= INT_MAX >> power : *x % (1 << -power) == 0;

    if (stays)
        *x = power > 0 ? *x << power : *x >> -power;
    return stays;
}

/* Can it be run: by the framework, on no more GPUs than the runs had, within their memory? */
static bool can_run (const struct learning *l, const struct calibrate_run *run)
{
    int most = 0;

    for (int i = 0; i < l->runs->n; i++) {
        most = l->runs->run[i].gpus > most ? l->runs->run[i].gpus : most;
        if (calibrate_same_shape (run, &l->runs->run[i]))
            return false;
    }
    return run->gpus <= most && run->config.deg.tp <= run->gpus_per_node &&
           run->config.deg.pp <= run->model.layers &&
           workload_job_check (&run->model, &run->job, NULL) == ST_OK &&
           workload_config_check (&run->model, &run->job, &run->config, NULL) == ST_OK &&
           workload_config_offered (&run->model, &run->config, l->p, NULL) == ST_OK;
}

/* Stages of another number have layers as the framework spreads them.
 * @param[out] own  released by the caller */
static enum status spread_layers (struct calibrate_run *run, int **own)
{
    int pp = run->config.deg.pp;

    *own = calloc (WORKLOAD_PARTITIONS * (size_t) pp, sizeof **own);
    if (!*own)
        return ST_NOMEM;
    for (int p = 0; p < WORKLOAD_PARTITIONS; p++)
        workload_layers_split (&run->model, (enum workload_partition) p, pp,
                               *own + p * pp);
    run->layers = *own;
    run->chunks = NULL;
    return ST_OK;
}

/* Add the run with one thing changed, if that can be. */
static enum status try (struct learning *l, const struct calibrate_run *base,
                        const struct change *c, int power)
{
    struct candidate *to = &l->candidate[l->n_candidates];
    struct calibrate_run *run = &to->next.run;
    int *own = NULL;
    enum status st = ST_OK;

    to->next = (struct calibrate_next){.row = base->row, .what = c->what, .run = *base};
    run->n_ways = 0; /* as it is most likely run */
    to->next.from = *value_of (run, c);
    if (base->n_parts > 1 || !times (value_of (run, c), power) ||
        !times (&run->config.deg.dp, power * c->replicas) || !can_run (l, run))
        return ST_OK;
    to->next.to = *value_of (run, c);
    if (run->config.deg.pp != base->config.deg.pp)
        st = spread_layers (run, &own);
    if (st == ST_OK &&
        calibrate_need (run, l->p, MEMEST_LINKWISE) > ROOM * run->gpu_bytes)
        st = ST_NOFIT;
    THEN (st, slopes (l, run, to->slope));
    l->n_candidates += st == ST_OK;
    run->layers = NULL;
    free (own);
    return st == ST_NOMEM ? st : ST_OK;
}

static enum status try_all (struct learning *l)
{
    int every = (l->runs->n + BASES_MOST - 1) / BASES_MOST;

    for (int r = 0; r < l->runs->n; r += every)
        for (size_t i = 0; i < COUNT_OF (changes); i++)
            for (size_t k = 0; k < COUNT_OF (factors); k++)
                TRY (try (l, &l->runs->run[r], &changes[i], factors[k]));
    return ST_OK;
}

/* ---- the choice ---- */

/* What measuring a candidate takes off the sum of all candidates' variances. */
static double gain_of (const struct learning *l, const struct candidate *of)
{
    double cs[COLUMNS], whole = scatter (l) + known_by (l, of->slope, cs), sum = 0.0;

    for (int q = 0; q < l->n_candidates; q++) {
        double both = 0.0;

        for (int i = 0; i <= l->n; i++)
            both += l->candidate[q].slope[i] * cs[i];
        sum += both * both / whole;
    }
    return sum;
}

/* The constant that the run narrows most, or the scale. */
static void name_constant (const struct learning *l, const struct candidate *of,
                           struct calibrate_next *out)
{
    double cs[COLUMNS], whole = scatter (l) + known_by (l, of->slope, cs), least = 1.0;

    for (int k = l->n; k >= 0; k--) {
        double square = l->c[k][k];
        double next = sqrt (fmax (0.0, square - cs[k] * cs[k] / whole));

        if (!(next / sqrt (square) < least))
            continue;
        least = next / sqrt (square);
        out->constant = k < l->n ? l->constant[k] : NULL;
        out->prior_spread =
            k < l->n ? spread_before (l, l->constant[k]) : CALIBRATE_SCALE_SPREAD;
        out->spread = sqrt (square);
        out->next_spread = next;
    }
}

static void choose (const struct learning *l, struct calibrate_next *out)
{
    double gain[CANDIDATES_MOST], sum = 0.0, most = 0.0, cs[COLUMNS];
    int best = -1;

    for (int i = 0; i < l->n_candidates; i++) {
        sum += known_by (l, l->candidate[i].slope, cs);
        gain[i] = gain_of (l, &l->candidate[i]);
        most = fmax (most, gain[i]);
    }
    for (int i = 0; i < l->n_candidates; i++)
        if (gain[i] >= AS_GOOD * most &&
            (best < 0 ||
             l->candidate[i].next.run.gpus < l->candidate[best].next.run.gpus))
            best = i;
    if (best < 0)
        return;
    *out = l->candidate[best].next;
    name_constant (l, &l->candidate[best], out);
    out->step_spread = sqrt (sum / l->n_candidates);
    out->next_step_spread = sqrt (fmax (0.0, sum - gain[best]) / l->n_candidates);
    out->found = out->next_step_spread <= (1.0 - NARROWED_LEAST) * out->step_spread;
}

enum status calibrate_next_run (const struct calibrate_runs *runs,
                                const struct workload_profile *p, bool few,
                                struct calibrate_next *out, struct error *err)
{
    struct workload_profile own = *p;
    struct learning l = {.runs = runs,
                         .p = p,
                         .few = few,
                         .candidate = calloc (CANDIDATES_MOST, sizeof *l.candidate)};
    enum status st = l.candidate ? ST_OK : ST_NOMEM;

    *out = (struct calibrate_next){0};
    start (&l, &own);
    THEN (st, learn (&l));
    THEN (st, try_all (&l));
    if (st == ST_OK)
        choose (&l, out);
    free (l.candidate);
    return st == ST_OK ? ST_OK : err_nomem (err);
}
