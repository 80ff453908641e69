/* What a row says was measured, and whether it can be. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"

/* Columns that a run which ran out may say so in. */
static const char *const results[] = {"iter_time_s",
                                      "tokens_per_s_per_gpu",
                                      "tokens_per_s",
                                      "samples_per_s",
                                      "samples_per_s_per_gpu",
                                      "steps_per_s",
                                      "tflops_per_gpu",
                                      "mfu",
                                      "hfu",
                                      "peak_mem_gb"};

/* ---- a step's time, from what is said instead ---- */

static double peak_flop_per_s (const struct calibrate_run *run,
                               enum workload_precision precision)
{
    double sum = 0.0;

    for (int i = 0; i < run->n_parts; i++)
        sum += costmodel_matrix_rate (run->part[i].type, precision) *
               (run->n_parts == 1 ? run->gpus
                                  : run->part[i].nodes * (double) run->gpus_per_node);
    return sum;
}

/* A rate of tokens is of all GPUs or of one: of these the one under which the GPUs reach what runs
 * usually do of their peak, from a tenth to two thirds. */
#define MFU_USUAL 0.35
static double tokens_of_all (const struct calibrate_run *run, double tokens_per_s)
{
    double flop = costmodel_model_flop (&run->model, &run->job) /
                  ((double) run->job.seq * run->job.global_batch);
    double all =
        flop * tokens_per_s / peak_flop_per_s (run, run->job.precision) / MFU_USUAL;

    return fabs (log (all * run->gpus)) < fabs (log (all)) &&
                   all * run->gpus * MFU_USUAL < 1.0
               ? tokens_per_s * run->gpus
               : tokens_per_s;
}

/* What is computed, over the model's FLOPs: full recomputation repeats the forward. */
static double repeated (const struct calibrate_run *run)
{
    return run->recompute_said && run->config.recompute == RECOMPUTE_FULL ? 4.0 / 3.0
                                                                          : 1.0;
}

/* FLOPs that a source's TFLOP/s count.  Megatron's logs had the repeated forward of full
 * recomputation in theirs until fp8 came, its forks still have; others count the model's alone
 * (docs/runs.md). */
static double counted_flop (const struct calibrate_run *run)
{
    bool logs = run->framework[0] == '\0' ||
                calibrate_contains (run->framework, "megatron") ||
                calibrate_contains (run->framework, "internevo");
    bool old = logs && costmodel_matrix_rate (run->part[0].type, PREC_FP8) <= 0;

    return costmodel_model_flop (&run->model, &run->job) * (old ? repeated (run) : 1.0);
}

/* A step that computes `times` the model's FLOPs at a share of the peak, or a percentage of it. */
static double step_of_share (const struct calibrate_run *run, double times, double share)
{
    return times * costmodel_model_flop (&run->model, &run->job) /
           (peak_flop_per_s (run, run->job.precision) *
            (share > 1.0 ? share / 100.0 : share));
}

/* @return NAN: the row has no such figure */
static double step_of_rates (const struct row *r, const struct calibrate_run *run)
{
    double tokens = (double) run->job.seq * run->job.global_batch, x;
    const struct topology_gpu_type *t = run->part[0].type;

    if (calibrate_stated (r, "tokens_per_s_per_gpu", 0, &x) && x > 0)
        return tokens / (x * run->gpus);
    if (calibrate_stated (r, "tokens_per_s", 0, &x) && x > 0)
        return tokens / tokens_of_all (run, x);
    if (calibrate_stated (r, "samples_per_s", 0, &x) && x > 0)
        return run->job.global_batch / x;
    if (calibrate_stated (r, "samples_per_s_per_gpu", 0, &x) && x > 0)
        return run->job.global_batch / (x * run->gpus);
    if (calibrate_stated (r, "steps_per_s", 0, &x) && x > 0)
        return 1.0 / x;
    if (calibrate_stated (r, "mfu", 0, &x) && x > 0)
        return step_of_share (run, 1.0, x);
    if (calibrate_stated (r, "hfu", 0, &x) && x > 0)
        return step_of_share (run, repeated (run), x);
    if (calibrate_stated (r, "tflops_per_gpu", 0, &x) && x > 0 && t)
        return counted_flop (run) / (x * 1e12 * run->gpus);
    return NAN;
}

/* Sequences that so many tokens are: of all replicas equally many, where rounding allows. */
#define BATCH_ROUNDED 0.02
static double sequences_of (double tokens, const struct calibrate_run *run)
{
    double unit = (double) run->config.micro_batch * run->config.deg.dp,
           batch = tokens / run->job.seq, whole = unit * round (batch / unit);

    return fabs (whole - batch) <= BATCH_ROUNDED * batch ? whole : batch;
}

int calibrate_accumulation (const struct row *r, const struct calibrate_run *run,
                            int absent)
{
    int steps = calibrate_whole (r, "gradient_accumulation", absent),
        dp = run->config.deg.dp;

    /* nanoGPT's are of all ranks together (train.py divides them by the world). */
    return calibrate_contains_name (run->framework, "nanogpt") && steps > 0 &&
                   steps % dp == 0
               ? steps / dp
               : steps;
}

int calibrate_implied_batch (const struct row *r, const struct calibrate_run *run)
{
    double step_s, rate, tokens, batch = 0.0;
    int again = calibrate_accumulation (r, run, run->config.deg.pp == 1);

    if (calibrate_stated (r, "batch_tokens", 0, &tokens) && tokens > 0)
        batch = sequences_of (tokens, run);
    else if (calibrate_stated (r, "iter_time_s", 0, &step_s) &&
             calibrate_stated (r, "tokens_per_s_per_gpu", 0, &rate))
        batch = sequences_of (step_s * rate * run->gpus, run);
    /* A batch without accumulation, which tokens a second hardly depend on. */
    if (batch <= 0.0 && run->micro_batch_said)
        batch = (double) run->config.micro_batch * run->config.deg.dp * again;
    return batch >= 0.5 && batch < 1 << 30 ? (int) lround (batch) : 0;
}

/* Of times and rates that are of one step. */
#define DISAGREE 3.0

/* Is a result 0, as tables have it of runs that ran out? */
static bool is_nothing (const struct row *r, const struct calibrate_run *run,
                        const char *name)
{
    double x;

    return run->oom == 1 && calibrate_number (calibrate_cell (r, name), &x) && x == 0.0;
}

/* A number of a cell, which may say that the run ran out instead. */
static bool result (const struct row *r, const struct calibrate_run *run,
                    const char *name, double *x)
{
    *x = NAN;
    return calibrate_is_oom (calibrate_cell (r, name)) || is_nothing (r, run, name) ||
           calibrate_stated (r, name, NAN, x);
}

/* No GPU has terabytes: such numbers are of MiB, as PyTorch's memory summary and nvidia-smi have
 * them, and larger ones of bytes. */
static double peak_unit (double peak)
{
    return peak > 1e8 ? 1.0 : peak > 2048.0 ? UNITS_GIB / 1024.0 : UNITS_GIB;
}

const char *calibrate_read_measured (const struct row *r, struct calibrate_run *run)
{
    static const char *const shares[] = {"mfu", "hfu"};
    const char *oom = calibrate_cell (r, "oom");
    char value[64];
    double share, rate, ran_out = -1.0;

    run->static_bytes = NAN;
    if (oom[0] != '\0' &&
        !(calibrate_number (oom, &ran_out) && (ran_out == 0.0 || ran_out == 1.0)))
        return "oom is neither 0 nor 1";
    run->oom = (int) ran_out;
    for (size_t i = 0; i < COUNT_OF (results); i++)
        if (calibrate_is_oom (calibrate_cell (r, results[i])))
            run->oom = 1;
    if (!result (r, run, "iter_time_s", &run->iter_time_s))
        return "iter_time_s is not a positive number";
    if (!result (r, run, "peak_mem_gb", &run->peak_bytes))
        return "peak_mem_gb is not a positive number";
    run->peak_bytes *= peak_unit (run->peak_bytes);
    for (size_t i = 0; i < COUNT_OF (shares); i++)
        if (calibrate_number (calibrate_cell (r, shares[i]), &share) &&
            !(share > 0 && share <= 100) && !is_nothing (r, run, shares[i]))
            return calibrate_refuse (r, shares[i],
                                     "a share, as in 0.45, or a percentage");
    if (isnan (run->iter_time_s) && run->oom != 1)
        run->iter_time_s = step_of_rates (r, run);
    else if (calibrate_stated (r, "tokens_per_s_per_gpu", NAN, &rate) &&
             fabs (log (run->iter_time_s * rate * run->gpus /
                        ((double) run->job.seq * run->job.global_batch))) >
                 log (DISAGREE))
        run->doubt_time = "iter_time_s and tokens_per_s_per_gpu do not agree";
    if (calibrate_note (r, "alloc_bytes", value, sizeof value) &&
        strtod (value, NULL) > 0)
        run->static_bytes = strtod (value, NULL);
    return NULL;
}

/* ---- what cannot be ---- */

#define PEAK_OVER 1.15   /* of a GPU's memory: rounded, and in GB for GiB */
#define WEIGHT_LEAST 1.0 /* bytes of a 16-bit weight that are there at least */
#define UNIT_MISTAKEN 100.0

/* Seconds that the products alone take at the GPUs' peak, without those of attention. */
static double least_s (const struct calibrate_run *run)
{
    const struct workload_model *m = &run->model;
    double tables = (double) m->hidden * (m->positions + (m->tied ? 0.0 : m->vocab)),
           products = (run->job.lora ? 4.0 : 6.0) * (workload_active_params (m) - tables),
           rate = peak_flop_per_s (run, run->job.precision);

    if (m->decoder_layers > 0)
        products /= 2.0; /* of a seq of the encoder's */
    if (!run->precision_said)
        rate = fmax (rate, peak_flop_per_s (run, PREC_FP8));
    return rate > 0 ? products * run->job.seq * run->job.global_batch / rate : 0.0;
}

static double least_bytes (const struct calibrate_run *run)
{
    const struct workload_degrees *d = &run->config.deg;
    double split =
        (double) d->tp * d->pp * d->ep * (run->config.zero == 3 ? d->dp * d->cp : 1);

    return run->config.offload == OFFLOAD_ALL || run->job.frozen_bytes > 0.0
               ? 0.0
               : WEIGHT_LEAST * workload_model_params (&run->model) / split;
}

void calibrate_doubt (struct calibrate_runs *runs, struct calibrate_run *run)
{
    bool one_type = run->n_parts == 1;

    if (run->iter_time_s < least_s (run))
        run->doubt_time = "iter_time_s is shorter than the GPUs' peak allows";
    if (one_type && run->peak_bytes > PEAK_OVER * run->gpu_bytes)
        run->doubt_peak = "peak_mem_gb is more than the GPU's memory";
    if (run->peak_bytes < least_bytes (run))
        run->doubt_peak = "peak_mem_gb is less than the weights alone";
    if (run->doubt_time)
        calibrate_count_reason (runs->doubted, &runs->n_doubted, run->doubt_time,
                                run->row);
    if (run->doubt_peak)
        calibrate_count_reason (runs->doubted, &runs->n_doubted, run->doubt_peak,
                                run->row);
}

void calibrate_doubt_steps (struct calibrate_runs *runs, const double *step_s)
{
    for (int i = 0; i < runs->n; i++) {
        struct calibrate_run *run = &runs->run[i];

        if (run->doubt_time ||
            !(fabs (log (run->iter_time_s / step_s[i])) > log (UNIT_MISTAKEN)))
            continue;
        run->doubt_time = "iter_time_s is a hundred times the estimate, or a hundredth: "
                          "seconds are expected";
        calibrate_count_reason (runs->doubted, &runs->n_doubted, run->doubt_time,
                                run->row);
    }
}
