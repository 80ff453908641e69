/* One fit of the constants that sources share, to all sources together.
 *
 * A constant of a GPU generation is shared by the sources that ran on it, one of a framework by
 * those that it ran; every source has a scale of its own beside them.  Each constant is log-normal
 * about what is shipped.  Rows scatter as Student's t, and a source weighs as four rows at most,
 * so that neither a wild row nor a long table rules.  Every source is estimated as if no profile
 * named it.  Gauss-Newton steps, with central differences over the estimator itself: its maxima
 * make kinks, which smaller differences fall into. */
#include "bench/joint.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stats.h"
#include "calibrate/calibrate_private.h"

#define ROUNDS 4        /* of differences */
#define REWEIGHS 8      /* within one */
#define DIFFERENCE 0.03 /* of a constant's logarithm */
#define STEP_MOST 1.0   /* of a constant's spread, in one round */
#define ROW_SPREAD_LEAST 0.04
#define STUDENT 4.0   /* degrees of freedom */
#define ROWS_MOST 4.0 /* that a source weighs */
#define ROWS_TAKEN 40 /* of a source, every k-th */
#define TOLD_MOST 0.8 /* a constant is told if its spread gets this much less */

/* What a constant moves: fields of GPU types, or keys of profiles. */
struct constant {
    char name[JOINT_NAME];
    /* prefixes of types' names, each with a comma behind; NULL: profiles */
    const char *types;
    size_t field, other_field;   /* of struct topology_gpu_type */
    const char *key, *other_key; /* of profiles */
    char profile[64];            /* "": all */
    double spread;
};

#define V100 "v100-,"
#define A100 "a100-,a800-,"
#define HOPPER "h100-,h200-,h800-,h20-,gh200-,"
#define BLACKWELL "b100-,b200-,b300-,gb200-,gb300-,"
#define CONSUMER "rtx-,titan-,l4,t4,a10,"
#define FIELD(NAME) offsetof (struct topology_gpu_type, NAME)
#define SHARE(WHAT, TYPES, MEMBER, SPREAD)                                 \
    {                                                                      \
        WHAT " " #MEMBER, TYPES, FIELD (MEMBER), 0, NULL, NULL, "", SPREAD \
    }
#define FLASH(WHAT, TYPES)                                         \
    {                                                              \
        WHAT " flash_efficiency", TYPES, FIELD (flash_efficiency), \
            FIELD (flash2_efficiency), NULL, NULL, "", .12         \
    }
#define SHARED(KEY, OTHER, SPREAD)              \
    {                                           \
        KEY, NULL, 0, 0, KEY, OTHER, "", SPREAD \
    }

/* Spreads: what published measurements of the same thing differ by. */
static const struct constant shared[] = {
    SHARE ("V100", V100, gemm_efficiency, .12),
    SHARE ("A100", A100, gemm_efficiency, .07),
    SHARE ("Hopper", HOPPER, gemm_efficiency, .08),
    SHARE ("Blackwell", BLACKWELL, gemm_efficiency, .10),
    SHARE ("consumer", CONSUMER, gemm_efficiency, .12),
    SHARE ("Hopper", HOPPER, fp8_gemm_efficiency, .10),
    SHARE ("Blackwell", BLACKWELL, fp8_gemm_efficiency, .10),
    SHARE ("consumer", CONSUMER, fp8_gemm_efficiency, .10),
    FLASH ("A100", A100),
    FLASH ("Hopper", HOPPER),
    FLASH ("Blackwell", BLACKWELL),
    FLASH ("consumer", CONSUMER),
    SHARED ("memory_bandwidth", NULL, .15),
    SHARED ("score_traffic", "fused_score_traffic", .3),
    SHARED ("link", NULL, .15),
    SHARED ("link_out", NULL, .25),
    SHARED ("collective_us", NULL, .3),
    SHARED ("microbatch_us", NULL, .5),
    SHARED ("step_ms", NULL, .5),
};

#define N_SHARED ((int) COUNT_OF (shared))

struct joint_row {
    struct calibrate_run run;
    struct workload_profile profile;
    struct topology_cluster *cluster;
    struct topology_gpu_type type[CALIBRATE_TYPES_MAX]; /* of the cluster's nodes */
    int source, index;                                  /* of the file, its run */
    double weight;                                      /* of a row, before Student's */
    double spread;                                      /* of the estimate's interval */
    double far;    /* log (measured / estimate) at x */
    double *slope; /* [n] of the estimate's logarithm */
};

struct joint {
    struct constant *constant; /* [n] */
    int n;
    struct joint_row *row; /* [n_rows] */
    int n_rows, n_sources;
    double *x; /* [n] logarithms over the prior's values */
};

/* ---- what a constant moves ---- */

static bool is_of_types (const struct constant *c, const struct topology_gpu_type *t)
{
    for (const char *s = c->types; *s; s = strchr (s, ',') + 1)
        if (strncmp (t->name, s, strcspn (s, ",")) == 0)
            return true;
    return false;
}

static bool concerns (const struct constant *c, const struct joint_row *r)
{
    if (!c->types)
        return !c->profile[0] || strcmp (c->profile, r->profile.name) == 0;
    for (int i = 0; i < r->run.n_parts; i++)
        if (is_of_types (c, r->run.part[i].type))
            return true;
    return false;
}

static void move_profile (struct workload_profile *p, const char *key, double factor)
{
    int n;
    const struct workload_constant *all = workload_constants (&n);

    for (int i = 0; i < n && key; i++)
        if (!all[i].memory && strcmp (all[i].key, key) == 0) {
            double *v = workload_constant_of (p, &all[i]);

            *v = fmin (*v * factor, all[i].most * all[i].unit);
        }
}

static void move_types (struct joint_row *r, const struct constant *c, double factor)
{
    for (int i = 0; i < r->run.n_parts; i++) {
        char *type = (char *) &r->type[i];

        if (!is_of_types (c, &r->type[i]))
            continue;
        *(double *) (type + c->field) *= factor;
        if (c->other_field)
            *(double *) (type + c->other_field) *= factor;
    }
}

/* The logarithm of a row's step, with constant `moved` off by `by`; NAN without one. */
static double log_step (const struct joint *j, struct joint_row *r, int moved, double by)
{
    struct workload_profile p = r->profile;
    double step_s;

    for (int i = 0; i < r->run.n_parts; i++)
        r->type[i] = *r->run.part[i].type;
    for (int k = 0; k < j->n; k++) {
        const struct constant *c = &j->constant[k];
        double factor = exp (j->x[k] + (k == moved ? by : 0.0));

        if (c->types) {
            move_types (r, c, factor);
        } else if (concerns (c, r)) {
            move_profile (&p, c->key, factor);
            move_profile (&p, c->other_key, factor);
        }
    }
    return calibrate_step (&r->run, r->cluster, &p, &step_s, NULL, NULL) == ST_OK
               ? log (step_s)
               : NAN;
}

/* ---- the rows ---- */

static void add_launches (struct joint *j, const char *profile)
{
    struct constant c = {
        .key = "layer_launch_fwd_us", .other_key = "layer_launch_back_us", .spread = .25};

    for (int k = N_SHARED; k < j->n; k++)
        if (strcmp (j->constant[k].profile, profile) == 0)
            return;
    snprintf (c.profile, sizeof c.profile, "%s", profile);
    snprintf (c.name, sizeof c.name, "launches of %s", profile);
    j->constant[j->n++] = c;
}

/* The spread of its interval, with the readings that it leaves open. */
static double spread_of (const struct joint_row *r)
{
    double step_s, open = 0.0;

    if (calibrate_step (&r->run, r->cluster, &r->profile, &step_s, &open, NULL) != ST_OK)
        return NAN;
    return calibrate_time_spread (&r->run, &r->profile, open);
}

/* One row as if no profile named its source.  @return false where it has no step time */
static bool read_run (struct joint *j, const struct calibrate_shelf *shelf,
                      const struct calibrate_run *run, struct joint_row *r)
{
    *r = (struct joint_row){.run = *run};
    if (run->framework[0])
        snprintf (r->run.source, sizeof r->run.source, "-");
    calibrate_shelf_find (shelf, &r->run, &r->profile);
    if (calibrate_cluster (&r->run, &r->profile, &r->cluster, NULL) != ST_OK)
        return false;
    for (int i = 0; i < r->cluster->n_nodes; i++)
        for (int k = 0; k < run->n_parts; k++)
            if (strcmp (r->cluster->node[i].type->name, run->part[k].type->name) == 0)
                r->cluster->node[i].type = &r->type[k];
    if (!isfinite (log_step (j, r, -1, 0.0)))
        return false;
    r->spread = spread_of (r);
    return true;
}

static enum status read_source (struct joint *j, const struct calibrate_shelf *shelf,
                                const struct joint_source *s, int source,
                                struct error *err)
{
    int n = 0, first = j->n_rows, seen = 0;

    for (int i = 0; i < s->runs->n; i++)
        n += s->use[i];
    for (int i = 0; i < s->runs->n; i++) {
        struct joint_row *r = &j->row[j->n_rows];

        if (!s->use[i] || seen++ % ((n + ROWS_TAKEN - 1) / ROWS_TAKEN) != 0)
            continue;
        if (!read_run (j, shelf, &s->runs->run[i], r)) {
            topology_cluster_destroy (r->cluster);
            continue;
        }
        r->source = source;
        r->index = i;
        r->slope = calloc (JOINT_MAX, sizeof *r->slope);
        j->n_rows++;
        if (!r->slope)
            return err_nomem (err);
        add_launches (j, r->profile.name);
    }
    for (int i = first; i < j->n_rows; i++)
        j->row[i].weight = fmin (1.0, ROWS_MOST / (j->n_rows - first));
    return ST_OK;
}

static void differentiate (struct joint *j, struct joint_row *r)
{
    r->far = log (r->run.iter_time_s) - log_step (j, r, -1, 0.0);
    for (int k = 0; k < j->n; k++)
        r->slope[k] =
            !concerns (&j->constant[k], r)
                ? 0.0
                : (log_step (j, r, k, DIFFERENCE) - log_step (j, r, k, -DIFFERENCE)) /
                      (2.0 * DIFFERENCE);
}

/* ---- the linear fit ---- */

/* Solve a symmetric positive definite system in place by Cholesky's factors.
 * @param[in,out] a  [n * n], then its inverse's diagonal is in `inverse` */
static void solve (double *a, double *b, int n, double *inverse)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double sum = a[i * n + k];

            for (int m = 0; m < k; m++)
                sum -= a[i * n + m] * a[k * n + m];
            a[i * n + k] = i == k ? sqrt (sum) : sum / a[k * n + k];
        }
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < i; m++)
            b[i] -= a[i * n + m] * b[m];
        b[i] /= a[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int m = i + 1; m < n; m++)
            b[i] -= a[m * n + i] * b[m];
        b[i] /= a[i * n + i];
    }
    for (int c = 0; c < n && inverse;
         c++) { /* columns of the factor's inverse, squared */
        double column[JOINT_MAX + JOINT_SOURCES] = {0};

        inverse[c] = 0.0;
        for (int i = c; i < n; i++) {
            double sum = i == c;

            for (int m = c; m < i; m++)
                sum -= a[i * n + m] * column[m];
            column[i] = sum / a[i * n + i];
            inverse[c] += column[i] * column[i];
        }
    }
}

/* Scatter of a source's rows about its middle, at y. */
static double scatter (const struct joint *j, int source, const double *y)
{
    double *v = calloc ((size_t) j->n_rows + 1, sizeof *v), spread = 0.0;
    int n = 0;

    for (int i = 0; v && i < j->n_rows; i++) {
        const struct joint_row *r = &j->row[i];

        if (r->source != source)
            continue;
        v[n] = r->far;
        for (int k = 0; k < j->n; k++)
            v[n] -= r->slope[k] * (y[k] - j->x[k]);
        n++;
    }
    if (v && n > 1)
        spread = 1.4826 * stats_spread_of (v, n).mad;
    free (v);
    return fmax (spread, ROW_SPREAD_LEAST);
}

/* A row's part of the normal equations, weighed by how far it is at y.
 * @param[in,out] a, b  [n * n], [n]  n = constants and sources  @param spread  of its source */
static void add_row (const struct joint *j, const struct joint_row *r, const double *y,
                     double spread, double *a, double *b)
{
    int n = j->n + j->n_sources, s = j->n + r->source;
    double left = (r->far - y[s]) / spread, at = r->far, w;

    for (int k = 0; k < j->n; k++) {
        left -= r->slope[k] * (y[k] - j->x[k]) / spread;
        at += r->slope[k] * j->x[k];
    }
    w = r->weight * (STUDENT + 1.0) / (STUDENT + left * left) / (spread * spread);
    for (int k = 0; k < j->n; k++) {
        for (int m = 0; m < j->n; m++)
            a[k * n + m] += w * r->slope[k] * r->slope[m];
        a[k * n + s] += w * r->slope[k];
        a[s * n + k] += w * r->slope[k];
        b[k] += w * r->slope[k] * at;
    }
    a[s * n + s] += w;
    b[s] += w * at;
}

/* One reweighting: the most likely constants and scales of sources, without one source.
 * @param[in,out] y  [n + n_sources]  @param[out] spread  NULL, or as many */
static enum status reweigh (const struct joint *j, int without, double *y, double *spread,
                            struct error *err)
{
    int n = j->n + j->n_sources;
    double *a = calloc ((size_t) n * (size_t) n, sizeof *a),
           *b = calloc ((size_t) n, sizeof *b), of[JOINT_SOURCES];
    enum status st = a && b ? ST_OK : err_nomem (err);

    for (int s = 0; s < j->n_sources; s++)
        of[s] = scatter (j, s, y);
    for (int k = 0; k < n && st == ST_OK; k++) {
        double prior = k < j->n ? j->constant[k].spread : CALIBRATE_SCALE_SPREAD;

        a[k * n + k] = 1.0 / (prior * prior);
    }
    for (int i = 0; i < j->n_rows && st == ST_OK; i++)
        if (j->row[i].source != without)
            add_row (j, &j->row[i], y, of[j->row[i].source], a, b);
    if (st == ST_OK) {
        solve (a, b, n, spread);
        memcpy (y, b, (size_t) n * sizeof *y);
    }
    for (int k = 0; k < n && spread && st == ST_OK; k++)
        spread[k] = sqrt (spread[k]);
    FREE_ALL (a, b);
    return st;
}

static enum status fit_linear (const struct joint *j, int without, double *y,
                               double *spread, struct error *err)
{
    for (int k = 0; k < j->n + j->n_sources; k++)
        y[k] = k < j->n ? j->x[k] : 0.0;
    for (int i = 0; i < REWEIGHS; i++)
        TRY (reweigh (j, without, y, spread, err));
    return ST_OK;
}

/* ---- the fit ---- */

/* What each source's rows would be, fitted on the others. */
static enum status leave_out (const struct joint *j, struct joint_fit *out,
                              struct error *err)
{
    double y[JOINT_MAX + JOINT_SOURCES];

    for (int i = 0, fitted = -1; i < j->n_rows; i++) {
        const struct joint_row *r = &j->row[i];
        double far = r->far;

        if (r->source != fitted)
            TRY (fit_linear (j, r->source, y, NULL, err));
        fitted = r->source;
        for (int k = 0; k < j->n; k++)
            far -= r->slope[k] * (y[k] - j->x[k]);
        out->left_out_s[r->source][r->index] = r->run.iter_time_s / exp (far);
        out->left_out_spread[r->source][r->index] = r->spread;
    }
    return ST_OK;
}

static enum status iterate (struct joint *j, double *spread, struct error *err)
{
    double y[JOINT_MAX + JOINT_SOURCES];

    for (int round = 0; round <= ROUNDS; round++) {
        for (int i = 0; i < j->n_rows; i++)
            differentiate (j, &j->row[i]);
        TRY (fit_linear (j, -1, y, spread, err));
        for (int k = 0; k < j->n && round < ROUNDS; k++) {
            double most = STEP_MOST * j->constant[k].spread;

            j->x[k] += fmin (fmax (y[k] - j->x[k], -most), most);
        }
    }
    return ST_OK;
}

static void report (const struct joint *j, const double *spread, struct joint_fit *out)
{
    out->n = j->n;
    for (int k = 0; k < j->n; k++) {
        struct joint_constant *c = &out->constant[k];

        memcpy (c->name, j->constant[k].name, sizeof c->name);
        c->factor = exp (j->x[k]);
        c->prior_spread = j->constant[k].spread;
        c->spread = spread[k];
        c->told = spread[k] < TOLD_MOST * j->constant[k].spread;
    }
}

static enum status read_sources (struct joint *j, const struct joint_source *source,
                                 int n, struct joint_fit *out, struct error *err)
{
    struct calibrate_shelf shelf;
    enum status st = ST_OK;

    TRY (calibrate_shelf_open (&shelf, err));
    memcpy (j->constant, shared, sizeof shared);
    j->n = N_SHARED;
    for (int s = 0; s < n && st == ST_OK; s++) {
        size_t size = (size_t) source[s].runs->n + 1;

        out->left_out_s[s] = calloc (size, sizeof **out->left_out_s);
        out->left_out_spread[s] = calloc (size, sizeof **out->left_out_spread);
        if (!out->left_out_s[s] || !out->left_out_spread[s])
            st = err_nomem (err);
        for (size_t i = 0; i < size && st == ST_OK; i++)
            out->left_out_s[s][i] = NAN;
        THEN (st, read_source (j, &shelf, &source[s], s, err));
    }
    calibrate_shelf_close (&shelf);
    return st;
}

enum status joint_fit (const struct joint_source *source, int n, struct joint_fit *out,
                       struct error *err)
{
    static const struct joint_fit none;
    double spread[JOINT_MAX + JOINT_SOURCES], x[JOINT_MAX] = {0};
    struct constant constant[JOINT_MAX];
    struct joint j = {.constant = constant, .x = x, .n_sources = n};
    enum status st;

    *out = none;
    if (n < 1 || n > JOINT_SOURCES)
        return err_set (err, ST_INVALID, "1 to %d sources, not %d", JOINT_SOURCES, n);
    out->n_sources = n;
    j.row = calloc ((size_t) n * ROWS_TAKEN + 1, sizeof *j.row);
    st = j.row ? read_sources (&j, source, n, out, err) : err_nomem (err);
    THEN (st, iterate (&j, spread, err));
    THEN (st, leave_out (&j, out, err));
    if (st == ST_OK)
        report (&j, spread, out);
    for (int i = 0; i < j.n_rows; i++) {
        topology_cluster_destroy (j.row[i].cluster);
        free (j.row[i].slope);
    }
    free (j.row);
    if (st != ST_OK)
        joint_release (out);
    return st;
}

void joint_release (struct joint_fit *j)
{
    for (int i = 0; i < j->n_sources; i++)
        FREE_ALL (j->left_out_s[i], j->left_out_spread[i]);
    j->n_sources = 0;
}
