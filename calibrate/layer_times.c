/* Layer times: their formats, and the efficiency of products that meets them.  A layer's time
 * falls as products get faster, so that for each row there is one efficiency, found by halving;
 * a layer whose time hardly moves with it says nothing. */
#include "calibrate/layer_times.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/stats.h"
#include "calibrate/layer_times_private.h"
#include "costmodel/costmodel.h"

static const struct layer_times_format *const formats[] = {
    &layer_times_galvatron, &layer_times_megatron, &layer_times_csv};

enum status calibrate_layer_times_read (const char *path,
                                        struct calibrate_layer_times *out,
                                        struct error *err)
{
    struct calibrate_layer_times t = {0};
    const struct layer_times_format *f = NULL;
    char *text;
    size_t len;
    enum status st;

    TRY (file_read (path, &text, &len, err));
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !f; i++)
        if (formats[i]->is (text + file_mark (text, len)))
            f = formats[i];
    if (f)
        st = f->read (path, text + file_mark (text, len), &t, err);
    else
        st = err_set (
            err, ST_INVALID,
            "%s: no layer times: expected Galvatron's computation profile, a log "
            "with Megatron's timers, or a table with forward_ms",
            path);
    free (text);
    if (st == ST_OK && t.n == 0)
        st = err_set (err, ST_INVALID, "%s: holds no layer times", path);
    if (st != ST_OK) {
        calibrate_layer_times_release (&t);
        return st;
    }
    t.format = f->name;
    *out = t;
    return ST_OK;
}

void calibrate_layer_times_release (struct calibrate_layer_times *t)
{
    free (t->row);
    *t = (struct calibrate_layer_times){0};
}

/* ---- the efficiency that meets them ---- */

/* The constant of products in a precision. */
static const struct constant {
    enum workload_precision precision;
    const char *key;
    size_t at;
} constants[] = {
    {PREC_FP8, "fp8_gemm_efficiency",
     offsetof (struct topology_gpu_type, fp8_gemm_efficiency)},
    {PREC_FP4, "fp4_gemm_efficiency",
     offsetof (struct topology_gpu_type, fp4_gemm_efficiency)},
    {PREC_TF32, "tf32_gemm_efficiency",
     offsetof (struct topology_gpu_type, tf32_gemm_efficiency)},
    {PREC_FP32, "fp32_gemm_efficiency",
     offsetof (struct topology_gpu_type, fp32_gemm_efficiency)},
    {PREC_BF16, "gemm_efficiency", offsetof (struct topology_gpu_type, gemm_efficiency)},
};

struct fitting {
    const struct workload_model *m;
    struct workload_job job;
    struct workload_config config;
    struct workload_profile profile; /* without the time between micro-batches */
    struct topology_gpu_type type;
    const struct constant *constant;
    const struct calibrate_layer_time *row;
};

/* Fitted profiles have no efficiency of their own for fp8 and fp4. */
static const struct constant *constant_of (const struct workload_profile *p,
                                           enum workload_precision precision)
{
    const struct constant *c = constants;

    while (c->precision != PREC_BF16 &&
           (c->precision != precision ||
            (workload_quantised_bytes (precision) > 0 && !p->compute_of_type)))
        c++;
    return c;
}

/* Of the figures that a row has. */
static double sum_of (const struct calibrate_layer_time *row, double fwd, double back)
{
    return (isnan (row->fwd_s) ? 0.0 : fwd) + (isnan (row->back_s) ? 0.0 : back);
}

/* What the row's figures are estimated at, with an efficiency. */
static double estimate (const struct fitting *f, double efficiency)
{
    const struct workload_stage held = {
        .dense = f->row->layers, .embedding = f->row->embedding, .head = f->row->head};
    struct topology_gpu_type type = f->type;
    struct costmodel_compute k;
    struct costmodel_stage_time t;

    *(double *) (void *) ((char *) &type + f->constant->at) = efficiency;
    costmodel_compute (f->m, &f->job, &f->config, &f->profile, &type, &k);
    costmodel_stage_compute (&f->config, &f->profile, &k, &held, &t);
    return sum_of (f->row, t.fwd_s, t.back_s);
}

static double measured_s (const struct calibrate_layer_time *row)
{
    return sum_of (row, row->fwd_s, row->back_s);
}

#define LEAST 1e-3       /* efficiency */
#define PEAK_MARGIN 1.05 /* clocks may be above the data sheet's */
#define PRODUCTS_DO 1.03 /* what a tenth less must cost, at least */

/* The row's shape, and that no GPU of the type would have to pass its peak. */
static enum status take_row (struct fitting *f, const struct calibrate_layer_time *row,
                             const struct workload_job *j, struct error *err)
{
    double tokens, flop, peak = costmodel_matrix_rate (&f->type, j->precision), least;
    struct error why = {""};

    f->row = row;
    f->job = *j;
    f->job.seq = row->seq > 0 ? row->seq : j->seq;
    f->job.global_batch = row->micro_batch;
    f->config = (struct workload_config){
        .deg =
            {.tp = row->tp, .pp = 1, .dp = 1, .cp = 1, .ep = 1, .etp = row->tp, .vpp = 1},
        .micro_batch = row->micro_batch,
        .sequence_parallel = row->tp > 1};
    if (row->model_layers > 0 && row->model_layers != f->m->layers)
        return err_set (err, ST_INVALID, "%s: of a model with %d layers, not %d",
                        row->place, row->model_layers, f->m->layers);
    if (workload_config_check (f->m, &f->job, &f->config, &why) != ST_OK)
        return err_set (err, ST_INVALID, "%s: %.200s", row->place, why.text);
    tokens = (double) f->job.seq * row->micro_batch;
    flop = 2.0 * tokens * workload_layer_params (f->m, row->tp) * row->layers;
    least = flop * sum_of (row, 1.0, 2.0) / (PEAK_MARGIN * peak);
    if (measured_s (row) < least)
        return err_set (err, ST_INVALID,
                        "%s: %.4g ms is less than the products alone take at 105 %% of "
                        "the peak of a %s, %.4g ms",
                        row->place, measured_s (row) * 1e3, f->type.name, least * 1e3);
    return ST_OK;
}

/* The efficiency that meets a row; NAN where products do not decide its time, and why. */
static double meet (const struct fitting *f, enum calibrate_layer_left *why)
{
    double low = LEAST, high = 1, want = measured_s (f->row);

    *why = estimate (f, high) > want  ? LAYER_LEFT_FAST
           : estimate (f, low) < want ? LAYER_LEFT_SLOW
                                      : LAYER_LEFT_FLAT;
    if (*why != LAYER_LEFT_FLAT)
        return NAN;
    while (high > low * (1 + 1e-9)) {
        double mid = sqrt (low * high);

        if (estimate (f, mid) > want)
            low = mid;
        else
            high = mid;
    }
    return estimate (f, high / 1.1) > PRODUCTS_DO * estimate (f, high) ? high : NAN;
}

/* The largest relative error of the rows that tell something. */
static enum status find_spread (struct fitting *f, const struct calibrate_layer_times *t,
                                const struct workload_job *j,
                                struct calibrate_layer_fit *fit, struct error *err)
{
    for (int i = 0; i < t->n; i++) {
        enum calibrate_layer_left why;

        TRY (take_row (f, &t->row[i], j, err));
        if (!isnan (meet (f, &why)))
            fit->spread = fmax (
                fit->spread,
                fabs (estimate (f, fit->efficiency) / measured_s (&t->row[i]) - 1.0));
    }
    return ST_OK;
}

enum status calibrate_layer_times_fit (const struct calibrate_layer_times *t,
                                       const struct workload_model *m,
                                       const struct workload_job *j,
                                       const struct workload_profile *p,
                                       const struct topology_gpu_type *type,
                                       struct calibrate_layer_fit *out, struct error *err)
{
    struct fitting f = {
        .m = m, .profile = *p, .type = *type, .constant = constant_of (p, j->precision)};
    struct calibrate_layer_fit fit = {.key = f.constant->key};
    double *met;
    enum status st = ST_OK;

    if (m->experts > 0)
        return err_set (err, ST_INVALID,
                        "layer times of a model with experts depend on the tokens that "
                        "each expert gets: expected a dense model");
    f.profile.time.microbatch_s = 0;
    if (!(met = calloc ((size_t) t->n + 1, sizeof *met)))
        return err_nomem (err);
    for (int i = 0; i < t->n && st == ST_OK; i++) {
        enum calibrate_layer_left why;

        if ((st = take_row (&f, &t->row[i], j, err)) != ST_OK)
            break;
        met[fit.used] = meet (&f, &why);
        if (!isnan (met[fit.used]))
            fit.used++;
        else if (fit.left[why].n++ == 0)
            fit.left[why].first = t->row[i].place;
    }
    fit.efficiency = stats_median (met, fit.used);
    free (met);
    if (st == ST_OK && fit.used == 0)
        st = err_set (err, ST_INVALID,
                      "no row tells how fast products are: launches or memory decide "
                      "their times, or they are not of this model");
    THEN (st, find_spread (&f, t, j, &fit, err));
    if (st == ST_OK)
        *out = fit;
    return st;
}
