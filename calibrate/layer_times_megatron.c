/* A log of Megatron-LM's with --timing-log-level 2 (megatron/core/timers.py): the arguments as
 * `name ...... value`, and with every report
 *
 *     forward-compute ................................: (12.34, 15.67)
 *
 * the ms that forwards of all micro-batches of a step take on the fastest and the slowest
 * rank.  The fastest has no head where there is a pipeline, and no embedding either where it
 * has three stages.  Tensor parallelism's communication lies inside these timers. */
#include "calibrate/layer_times_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stats.h"

static bool is_megatron (const char *text)
{
    return strstr (text, "forward-compute ") != NULL;
}

/* What follows `name ......` in the log; "" where it is not there. */
static const char *argument (const char *text, const char *name)
{
    size_t n = strlen (name);

    for (const char *s = strstr (text, name); s; s = strstr (s + n, name)) {
        size_t dots = strspn (s + n, " .");

        if ((s == text || strchr (" \t\n:", s[-1])) && memchr (s + n, '.', dots))
            return s + n + dots;
    }
    return "";
}

static enum status whole_argument (const char *path, const char *text, const char *name,
                                   int *x, struct error *err)
{
    const char *s = argument (text, name);
    long value = strtol (s, NULL, 10);

    if (!*s)
        return err_set (err, ST_INVALID,
                        "%s: the argument %s: expected \"%s ...... VALUE\" among the "
                        "arguments that Megatron prints first, found none",
                        path, name, name);
    if (value < 1 || value > 1 << 30)
        return err_set (err, ST_INVALID,
                        "%s: the argument %s: expected a whole number, found \"%.*s\"",
                        path, name, (int) strcspn (s, "\r\n"), s);
    *x = (int) value;
    return ST_OK;
}

/* The median over a log's reports of what the fastest rank took, in s; the first report
 * holds what starts up. */
static enum status timer (const char *path, const char *text, const char *name,
                          double *seconds, struct error *err)
{
    double *v = NULL;
    size_t n = 0;
    enum status st = ST_OK;

    for (const char *s = strstr (text, name); s && st == ST_OK;
         s = strstr (s + 1, name)) {
        const char *at = s + strlen (name);
        double ms;

        if (s > text && !strchr (" \t\n", s[-1]))
            continue;
        at += strspn (at, " .");
        if (*at != ':')
            continue;
        at += 1 + strspn (at + 1, " (");
        ms = strtod (at, NULL);
        if (!isfinite (ms) || ms <= 0)
            st = err_set (err, ST_INVALID,
                          "%s: report %zu of %s: expected ms above 0, found \"%.*s\"",
                          path, n + 1, name, (int) strcspn (at, "\r\n"), at);
        else if (!array_grow (&v, n, sizeof *v))
            st = err_nomem (err);
        else
            v[n++] = ms * 1e-3;
    }
    *seconds = n > 1 ? stats_median (v + 1, (int) n - 1) : n > 0 ? v[0] : NAN;
    free (v);
    return st;
}

/* Timers that hold more than compute. */
static enum status check_plain (const char *path, const char *text, struct error *err)
{
    static const char *const degrees[] = {"tensor_model_parallel_size",
                                          "context_parallel_size"};
    const char *recompute = argument (text, "recompute_granularity");

    for (int i = 0; i < 2; i++) {
        const char *s = argument (text, degrees[i]);

        if (*s && strtol (s, NULL, 10) != 1)
            return err_set (err, ST_INVALID,
                            "%s: the argument %s: expected 1, since its communication "
                            "lies inside the timers, found %ld",
                            path, degrees[i], strtol (s, NULL, 10));
    }
    if (*recompute && strncmp (recompute, "None", 4) != 0)
        return err_set (err, ST_INVALID,
                        "%s: the argument recompute_granularity: expected None, since "
                        "recomputation lies inside the timers, found %.*s",
                        path, (int) strcspn (recompute, "\r\n"), recompute);
    return ST_OK;
}

static enum status read_megatron (const char *path, const char *text,
                                  struct calibrate_layer_times *out, struct error *err)
{
    struct calibrate_layer_time one = {.tp = 1, .place = "timers"};
    int pp, dp, global_batch, microbatches;

    TRY (check_plain (path, text, err));
    TRY (whole_argument (path, text, "num_layers", &one.model_layers, err));
    TRY (whole_argument (path, text, "pipeline_model_parallel_size", &pp, err));
    TRY (whole_argument (path, text, "data_parallel_size", &dp, err));
    TRY (whole_argument (path, text, "micro_batch_size", &one.micro_batch, err));
    TRY (whole_argument (path, text, "global_batch_size", &global_batch, err));
    TRY (whole_argument (path, text, "seq_length", &one.seq, err));
    TRY (timer (path, text, "forward-compute", &one.fwd_s, err));
    TRY (timer (path, text, "backward-compute", &one.back_s, err));
    microbatches = global_batch / dp / one.micro_batch;
    one.layers = one.model_layers / pp;
    if (microbatches < 1 || one.layers * pp != one.model_layers)
        return err_set (err, ST_INVALID,
                        "%s: its batch or its layers do not divide among its ranks",
                        path);
    one.fwd_s /= microbatches;
    one.back_s /= microbatches;
    one.embedding = pp <= 2;
    one.head = pp == 1;
    return layer_times_add (out, &one, err);
}

const struct layer_times_format layer_times_megatron = {"megatron", is_megatron,
                                                        read_megatron};
