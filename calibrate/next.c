/* Which run to measure next.
 *
 * The constants' logarithms start independent, each with its spread, and so does a scale of all
 * times.  A run's step time is linear in them about the fit and scatters with variance v, so that
 * each run narrows their covariance C by the Kalman step
 *
 *     C -= (C s) (C s)' / (v + s' C s),    s its sensitivities.
 *
 * Of the runs near those given, the one whose time is the least known by the constants (the
 * largest s' C s, hence the most information) is the next.  It is told by the constant that it
 * narrows most. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stddef.h>

#define RUNS_MOST 32        /* of those given, every k-th */
#define NARROWED_LEAST 0.05 /* of the constant's spread, to be worth a run */
#define ROOM 0.9            /* of the memory, that a run may be said to need */
#define COLUMNS (CALIBRATE_CONSTANTS_MAX + 1)

struct learning {
    const struct calibrate_runs *runs;
    int every; /* run is looked at */
    const struct workload_profile *p;
    const struct workload_constant *constant[CALIBRATE_CONSTANTS_MAX];
    int n; /* constants; column n is the scale */
    double c[COLUMNS][COLUMNS];
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
    double spread =
        l->runs->n <= CALIBRATE_FEW_MOST ? CALIBRATE_ROW_SPREAD : l->p->time.residual;

    return spread * spread;
}

static void start (struct learning *l, struct workload_profile *p)
{
    int n;
    const struct workload_constant *all = workload_constants (&n);

    for (int i = 0; i < n; i++)
        if (calibrate_may_move (&all[i], p)) {
            l->c[l->n][l->n] = all[i].spread * all[i].spread;
            l->constant[l->n++] = &all[i];
        }
    l->c[l->n][l->n] = CALIBRATE_SCALE_SPREAD * CALIBRATE_SCALE_SPREAD;
}

static enum status learn (struct learning *l)
{
    double slope[COLUMNS], cs[COLUMNS];

    for (int r = 0; r < l->runs->n; r += l->every) {
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

/* What is doubled or halved, and which way the number of replicas goes with it. */
static const struct change {
    const char *what;
    size_t offset; /* an int of struct calibrate_run */
    int replicas;
} changes[] = {
    {"tp", offsetof (struct calibrate_run, config.deg.tp), -1},
    {"micro_batch", offsetof (struct calibrate_run, config.micro_batch), 0},
    {"seq", offsetof (struct calibrate_run, job.seq), 0},
    {"gpus", offsetof (struct calibrate_run, gpus), 1},
};

static int *value_of (struct calibrate_run *run, const struct change *c)
{
    return (int *) ((char *) run + c->offset);
}

/* @return whether it stays whole */
static bool twice (int *x, int way)
{
    bool whole = way >= 0 || *x % 2 == 0;

    *x = way > 0 ? *x * 2 : way < 0 ? *x / 2 : *x;
    return whole;
}

/* The run with one thing changed; on no more GPUs than the runs had, within their memory, and
 * none that was measured. */
static bool changed (const struct learning *l, const struct calibrate_run *base,
                     const struct change *c, int way, struct calibrate_run *out)
{
    int most = 0;

    *out = *base;
    out->n_ways = 0; /* as it is most likely run */
    if (base->n_parts > 1 || !twice (value_of (out, c), way) ||
        !twice (&out->config.deg.dp, way * c->replicas))
        return false;
    for (int i = 0; i < l->runs->n; i++) {
        most = l->runs->run[i].gpus > most ? l->runs->run[i].gpus : most;
        if (calibrate_same_shape (out, &l->runs->run[i]))
            return false;
    }
    return out->gpus <= most && out->config.deg.tp <= out->gpus_per_node &&
           workload_job_check (&out->model, &out->job, NULL) == ST_OK &&
           workload_config_check (&out->model, &out->job, &out->config, NULL) == ST_OK &&
           calibrate_need (out, l->p, MEMEST_LINKWISE) <= ROOM * out->gpu_bytes;
}

/* ---- the choice ---- */

/* The constant that the run would narrow most. */
static void name_constant (const struct learning *l, const double *cs, double known,
                           struct calibrate_next *out)
{
    double least = 1.0;

    for (int k = 0; k < l->n; k++) {
        double square = l->c[k][k];
        double next = sqrt (fmax (0.0, square - cs[k] * cs[k] / (scatter (l) + known)));

        if (!(next / sqrt (square) < least))
            continue;
        least = next / sqrt (square);
        out->constant = l->constant[k];
        out->prior_spread = l->constant[k]->spread;
        out->spread = sqrt (square);
        out->next_spread = next;
    }
    out->found = least <= 1.0 - NARROWED_LEAST;
}

/* @param[in,out] most  variance of what the constants say of the next run's time, so far */
static enum status try (const struct learning *l, const struct calibrate_run *base,
                        const struct change *c, int way, double *most,
                        struct calibrate_next *out)
{
    struct calibrate_next next = {.row = base->row, .what = c->what};
    double slope[COLUMNS], cs[COLUMNS], known;
    enum status st;

    if (!changed (l, base, c, way, &next.run))
        return ST_OK;
    st = slopes (l, &next.run, slope);
    if (st != ST_OK)
        return st == ST_NOMEM ? st : ST_OK;
    known = known_by (l, slope, cs);
    if (known <= *most)
        return ST_OK;
    *most = known;
    next.to = *value_of (&next.run, c);
    next.from = way > 0 ? next.to / 2 : next.to * 2;
    name_constant (l, cs, known, &next);
    *out = next;
    return ST_OK;
}

enum status calibrate_next_run (const struct calibrate_runs *runs,
                                const struct workload_profile *p,
                                struct calibrate_next *out, struct error *err)
{
    struct workload_profile own = *p;
    struct learning l = {
        .runs = runs, .p = p, .every = (runs->n + RUNS_MOST - 1) / RUNS_MOST};
    double most = 0.0;
    enum status st;

    *out = (struct calibrate_next){0};
    start (&l, &own);
    st = learn (&l);
    for (int i = 0; i < runs->n && st == ST_OK; i += l.every)
        for (size_t k = 0; k < 2 * COUNT_OF (changes) && st == ST_OK; k++)
            st = try (&l, &runs->run[i], &changes[k / 2], k % 2 ? -1 : 1, &most, out);
    return st == ST_OK ? ST_OK : err_nomem (err);
}
