/* Fits: constants that were planted come back, those that the data cannot tell stay, and a
 * held-out profile has not seen its runs. */
#include "tests/lib/runs.h"

/* Twelve runs of each of so many small models, whose overheads are a good part of the peak, over
 * tp, pp and micro-batch: flash attention, nothing recomputed, logits split over tp. */
static struct calibrate_runs runs_of_models (int models)
{
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    for (int model = 0; model < models; model++)
        for (int tp = 1; tp <= 4; tp *= 2)
            for (int pp = 1; pp <= 2; pp++)
                for (int micro = 1; micro <= 2; micro++) {
                    char name[32], a[32], b[32], c[32], layers[32];

                    snprintf (name, sizeof name, "model=llama-%d", model);
                    snprintf (layers, sizeof layers, "layers=%d",
                              model == 1 ? 4 : 8 + 4 * model);
                    snprintf (a, sizeof a, "tp=%d", tp);
                    snprintf (b, sizeof b, "pp=%d", pp);
                    snprintf (c, sizeof c, "micro_batch=%d", micro);
                    ROW (&t, name, layers, a, b, c, "hidden=2048", "ffn=8192");
                }
    r = runs_of (text_str (&t));
    assert_int_equal (r.n, 12 * models);
    text_free (&t);
    return r;
}

static struct calibrate_runs plain_runs (void)
{
    return runs_of_models (2);
}

/* Measurements as a profile would have them, but for a known scatter. */
static void measure (struct calibrate_runs *r, const struct workload_profile *truth,
                     double scatter)
{
    for (int i = 0; i < r->n; i++)
        r->run[i].peak_bytes =
            calibrate_peak (&r->run[i], truth) * exp (i % 2 ? scatter : -scatter);
}

static struct calibrate_fitted constant_of (const struct calibrate_fit *fit,
                                            const char *key)
{
    for (int i = 0; i < fit->n; i++)
        if (strcmp (fit->constant[i].constant->key, key) == 0)
            return fit->constant[i];
    fail_msg ("the fit has no %s", key);
    return (struct calibrate_fitted){0};
}

/* A profile that measures what the driver reports, of the fullest rank. */
static struct workload_profile start_profile (void)
{
    struct workload_profile p = profile_of ("llm-foundry");

    p.zero_with_pipeline = 1;
    return p;
}

TEST (planted)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), truth = start, p = start;
    struct calibrate_fit fit;
    struct error err = {""};

    truth.memory.base_bytes *= 1.5;
    truth.memory.group_bytes *= 0.7;
    truth.memory.logit_bytes *= 1.25;
    measure (&r, &truth, 0.003);
    ok (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err), &err);
    assert_int_equal (fit.used, 24);
    assert_true (fit.after < fit.before);
    CLOSE (p.memory.base_bytes, truth.memory.base_bytes, 0.1);
    CLOSE (p.memory.group_bytes, truth.memory.group_bytes, 0.1);
    CLOSE (p.memory.logit_bytes, truth.memory.logit_bytes, 0.05);
    /* So is the scatter, but the profile's own counts as that of five runs. */
    assert_true (p.memory.residual < 0.6 * start.memory.residual &&
                 p.memory.residual > 0.4 * start.memory.residual);
    CLOSE (constant_of (&fit, "residual").before, start.memory.residual, 0);
    CLOSE (constant_of (&fit, "residual").after, p.memory.residual, 0);
    /* What the fit reports is what the profile has. */
    CLOSE (constant_of (&fit, "logit_bytes").after, p.memory.logit_bytes, 1e-12);
    CLOSE (constant_of (&fit, "logit_bytes").before, start.memory.logit_bytes, 1e-12);
    assert_true (constant_of (&fit, "logit_bytes").told);
    calibrate_runs_release (&r);
}

/* No run gathers logits, recomputes all, or keeps scores: these stay, and are named. */
TEST (not_told)
{
    static const char *const keys[] = {"gathered_logit_bytes", "gather_copy_bytes",
                                       "recompute_workspace",  "score_bytes",
                                       "fused_score_bytes",    "unfused_norm_bytes"};
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), truth = start, p = start;
    struct calibrate_fit fit;
    struct error err = {""};

    truth.memory.base_bytes *= 1.5;
    truth.memory.gathered_logit_bytes *= 3;
    truth.memory.recompute_workspace *= 3;
    measure (&r, &truth, 0.003);
    ok (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err), &err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct calibrate_fitted k = constant_of (&fit, keys[i]);

        assert_false (k.told);
        assert_true (k.after == k.before);
    }
    CLOSE (p.memory.gathered_logit_bytes, start.memory.gathered_logit_bytes, 0);
    CLOSE (p.memory.recompute_workspace, start.memory.recompute_workspace, 0);
    assert_true (constant_of (&fit, "base_gb").told);
    calibrate_runs_release (&r);
}

/* Labels alone tell where the edge is. */
TEST (from_labels)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), truth = start, p = start;
    struct calibrate_fit fit;
    struct error err = {""};
    int wrong_before = 0, wrong_after = 0;

    truth.memory.group_bytes *= 1.8;
    truth.memory.base_bytes *= 1.8;
    for (int i = 0; i < r.n; i++) {
        double need = calibrate_need (&r.run[i], &truth, MEMEST_LINKWISE);

        /* GPUs so large that every second run just does not fit. */
        r.run[i].gpu_bytes = need * (i % 2 ? 0.98 : 1.02);
        r.run[i].oom = i % 2;
        wrong_before += (calibrate_need (&r.run[i], &start, MEMEST_LINKWISE) >
                         r.run[i].gpu_bytes) != (i % 2);
    }
    ok (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err), &err);
    for (int i = 0; i < r.n; i++)
        wrong_after += (calibrate_need (&r.run[i], &p, MEMEST_LINKWISE) >
                        r.run[i].gpu_bytes) != (i % 2);
    assert_true (wrong_before >= 8);
    assert_true (wrong_after <= wrong_before / 2);
    calibrate_runs_release (&r);
}

/* However wild the data, constants stay within what a profile may say. */
TEST (bounded)
{
    struct calibrate_runs r = plain_runs ();

    for (int way = 0; way < 2; way++) {
        struct workload_profile p = start_profile ();
        struct calibrate_fit fit;
        struct error err = {""};

        for (int i = 0; i < r.n; i++)
            r.run[i].peak_bytes = way ? 1e15 : 1.0;
        ok (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err), &err);
        for (int i = 0; i < fit.n; i++) {
            const struct calibrate_fitted *k = &fit.constant[i];

            assert_true (isfinite (k->after) && k->after > 0);
            assert_true (k->after >= k->constant->least * (1 - 1e-9) &&
                         k->after <= k->constant->most * (1 + 1e-9));
        }
    }
    calibrate_runs_release (&r);
}

TEST (nothing_to_fit)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile p = start_profile (), before = p;
    struct calibrate_fit fit;
    struct error err = {""};
    bool none[24] = {false};

    assert_int_equal (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err),
                      ST_INVALID);
    assert_non_null (strstr (err.text, "no run has a measured peak"));
    measure (&r, &before, 0);
    assert_int_equal (calibrate_fit (&r, CALIBRATE_MEMORY, none, &p, &fit, &err),
                      ST_INVALID);
    assert_memory_equal (&p, &before, sizeof p);
    calibrate_runs_release (&r);
}

/* The profile of a left-out model is the fit on the other one alone. */
TEST (held_out)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), truth = start, out[24],
                            alone = start;
    struct calibrate_fit fit;
    struct error err = {""};
    int group[24], n;
    bool first[24];

    truth.memory.base_bytes *= 1.5;
    measure (&r, &truth, 0.003);
    ok (calibrate_groups (&r, CALIBRATE_BY_MODEL, group, &n, &err), &err);
    assert_int_equal (n, 2);
    for (int i = 0; i < 24; i++) {
        assert_int_equal (group[i], i / 12);
        first[i] = i < 12;
    }
    ok (calibrate_held_out (&r, group, n, CALIBRATE_MEMORY, &start, NULL, NULL, out,
                            &err),
        &err);
    ok (calibrate_fit (&r, CALIBRATE_MEMORY, first, &alone, &fit, &err), &err);
    CLOSE (out[12].memory.base_bytes, alone.memory.base_bytes, 1e-12);
    CLOSE (out[23].memory.logit_bytes, alone.memory.logit_bytes, 1e-12);
    assert_true (out[0].memory.base_bytes != out[12].memory.base_bytes);
    ok (calibrate_groups (&r, CALIBRATE_BY_CONFIG, group, &n, &err), &err);
    assert_int_equal (n, 24);
    /* Where the others have nothing measured, the prior stays. */
    for (int i = 0; i < 12; i++)
        r.run[i].peak_bytes = NAN;
    ok (calibrate_groups (&r, CALIBRATE_BY_MODEL, group, &n, &err), &err);
    ok (calibrate_held_out (&r, group, n, CALIBRATE_MEMORY, &start, NULL, NULL, out,
                            &err),
        &err);
    CLOSE (out[12].memory.base_bytes, start.memory.base_bytes, 0);
    calibrate_runs_release (&r);
}

/* ---- times ---- */

/* The runs of a profile with slower kernels and links. */
static struct workload_profile timed (struct calibrate_runs *r,
                                      const struct workload_profile *start)
{
    struct workload_profile truth = *start;

    truth.time.gemm *= 0.75;
    truth.time.link *= 0.8;
    for (int i = 0; i < r->n; i++)
        r->run[i].iter_time_s =
            runs_step (&r->run[i], &truth) * exp (i % 2 ? .002 : -.002);
    return truth;
}

/* Mean absolute error of the logarithm of step times, of the runs with use[i] == of. */
static double error_of (const struct calibrate_runs *r, const bool *use, bool of,
                        const struct workload_profile *p)
{
    double sum = 0.0;
    int n = 0;

    for (int i = 0; i < r->n; i++)
        if (use[i] == of) {
            sum += fabs (log (runs_step (&r->run[i], p) / r->run[i].iter_time_s));
            n++;
        }
    return sum / n;
}

/* Of more runs than a few; constants come back. */
TEST (planted_times)
{
    struct calibrate_runs r = runs_of_models (6);
    struct workload_profile start = start_profile (), truth = timed (&r, &start),
                            p = start;
    struct calibrate_fit fit;
    struct error err = {""};

    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_true (fit.used == 72 && !fit.few);
    assert_true (fit.after < fit.before);
    /* Attention and the start of collectives look a little like these. */
    CLOSE (p.time.gemm, truth.time.gemm, 0.06);
    CLOSE (p.time.link, truth.time.link, 0.06);
    assert_true (p.time.residual < 0.4 * start.time.residual &&
                 p.time.residual > 0.2 * start.time.residual);
    CLOSE (constant_of (&fit, "gemm").after, p.time.gemm, 1e-12);
    assert_true (constant_of (&fit, "gemm").told && constant_of (&fit, "link").told);
    for (int i = 0; i < r.n; i++)
        CLOSE (runs_step (&r.run[i], &p), r.run[i].iter_time_s, 0.01);
    /* All these runs have flash attention: no scores are written.  Memory is not touched. */
    assert_false (constant_of (&fit, "score_traffic").told);
    CLOSE (p.time.score_traffic, start.time.score_traffic, 0);
    assert_memory_equal (&p.memory, &start.memory, sizeof p.memory);
    calibrate_runs_release (&r);
}

/* So of one model that is cut in one way: runs of another batch, sequence or recomputation are left
 * out. */
TEST (one_cut)
{
    static const char *const recompute[] = {"recompute=none", "recompute=selective",
                                            "recompute=full"};
    struct workload_profile start = start_profile (), p = start, truth;
    enum calibrate_grouping by;
    struct calibrate_runs r;
    struct calibrate_fit fit;
    struct error err = {""};
    struct text t = {0};
    int group[72], n;

    text_add (&t, "%s\n", RUNS_HEADER);
    for (int i = 0; i < 72; i++) {
        char seq[32], batch[32];

        snprintf (seq, sizeof seq, "seq=%d", 1024 << i % 4);
        snprintf (batch, sizeof batch, "global_batch=%d", 64 * (1 + i / 12));
        ROW (&t, seq, batch, recompute[i / 4 % 3], "tp=2", "pp=2");
    }
    r = runs_of (text_str (&t));
    text_free (&t);
    truth = timed (&r, &start);
    ok (calibrate_groups_of (&r, 2, &by, group, &n, &err), &err);
    assert_true (n == 72 && by == CALIBRATE_BY_SHAPE);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_true (!fit.few && fit.taken == 1.0);
    CLOSE (p.time.gemm, truth.time.gemm, 0.1);
    calibrate_runs_release (&r);
}

/* Models that are slower and faster by turns, which no constant stands for: what the fit makes of
 * the runs that it sees is not taken where others would be met worse by it; the interval grows. */
TEST (misfit)
{
    static const double factor[] = {1.6, .8, 1.0, 1.7, .75, 1.0};
    struct calibrate_runs r = runs_of_models (12);
    struct workload_profile start = start_profile (), p = start;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[144];

    for (int i = 0; i < r.n; i++) {
        use[i] = i < 72;
        r.run[i].iter_time_s = runs_step (&r.run[i], &start) * factor[i / 12 % 6];
    }
    ok (calibrate_fit (&r, CALIBRATE_TIME, use, &p, &fit, &err), &err);
    assert_true (fit.configurations == 72 && fit.taken < 1.0);
    assert_true (error_of (&r, use, false, &p) <=
                 error_of (&r, use, false, &start) + 1e-12);
    assert_true (p.time.residual > 2.0 * start.time.residual);
    calibrate_runs_release (&r);
}

/* So with few peaks: constants stay, and the residual is of what scatters about these. */
TEST (scattered_peaks)
{
    static const double factor[] = {1.15, .85, .9, 1.2, .8, 1.1};
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), p = start;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[24];

    for (int i = 0; i < r.n; i++) {
        use[i] = i % 4 == 0;
        r.run[i].peak_bytes = calibrate_peak (&r.run[i], &start) * factor[i / 4];
    }
    ok (calibrate_fit (&r, CALIBRATE_MEMORY, use, &p, &fit, &err), &err);
    assert_true (fit.taken == 0.0);
    /* About the fit it would be .143; were constants counted that stay, .183. */
    assert_true (p.memory.residual > .144 && p.memory.residual < .15);
    p.memory.residual = start.memory.residual;
    assert_memory_equal (&p, &start, sizeof p);
    calibrate_runs_release (&r);
}

/* A run whose time cannot be estimated is counted, and teaches nothing. */
TEST (times_not_estimated)
{
    struct calibrate_runs r = plain_runs (), some;
    struct workload_profile start = start_profile (), a, b, profile[24];
    struct calibrate_steps steps;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[24];

    timed (&r, &start);
    r.run[3].job.precision = r.run[5].job.precision = PREC_FP8; /* on A100 */
    r.run[20].gpus = 4;                                         /* of 16 ranks */
    for (int i = 0; i < 24; i++) {
        profile[i] = start;
        use[i] = i != 3 && i != 5 && i != 20;
    }
    ok (calibrate_steps_estimate (&r, profile, NULL, NULL, &steps, &err), &err);
    for (int i = 0; i < 24; i++)
        assert_true (use[i] ? steps.step_s[i] > 0 : isnan (steps.step_s[i]));
    assert_int_equal (steps.n_missing, 2);
    assert_non_null (strstr (steps.missing[0].reason, "cannot run fp8"));
    assert_int_equal (steps.missing[0].count, 2);
    assert_int_equal (steps.missing[0].first_row, 3);
    assert_string_equal (steps.missing[1].reason, "16 ranks on 4 GPUs");
    calibrate_steps_release (&steps);

    a = b = start;
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &a, &fit, &err), &err);
    assert_int_equal (fit.used, 21);
    ok (calibrate_fit (&r, CALIBRATE_TIME, use, &b, &fit, &err), &err);
    assert_memory_equal (&a, &b, sizeof a);

    r.run[7].iter_time_s = NAN;
    ok (calibrate_runs_of (&r, CALIBRATE_TIME, &start, &some, &err), &err);
    assert_int_equal (some.n, 20);
    assert_int_equal (some.run[3].row, 4);
    assert_int_equal (some.n_skipped, 2);
    free (some.run);
    ok (calibrate_runs_of (&r, CALIBRATE_MEMORY, &start, &some, &err), &err);
    assert_true (some.n == 0 && some.n_skipped == 0);
    free (some.run);

    for (int i = 0; i < 24; i++)
        r.run[i].iter_time_s = NAN;
    r.run[3].iter_time_s = 1.0;
    assert_int_equal (calibrate_fit (&r, CALIBRATE_TIME, NULL, &a, &fit, &err),
                      ST_INVALID);
    assert_non_null (strstr (err.text, "no run has a step time"));
    assert_memory_equal (&a, &b, sizeof a);
    calibrate_runs_release (&r);
}

/* Time constants of a left-out model are the fit on the other one; memory's stay. */
TEST (held_out_times)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile start = start_profile (), alone = start, out[24];
    struct calibrate_fit fit;
    struct error err = {""};
    int group[24], n;
    bool first[24];

    timed (&r, &start);
    measure (&r, &start, 0.1);
    for (int i = 0; i < 24; i++)
        first[i] = i < 12;
    ok (calibrate_groups (&r, CALIBRATE_BY_MODEL, group, &n, &err), &err);
    ok (calibrate_held_out (&r, group, n, CALIBRATE_TIME, &start, NULL, NULL, out, &err),
        &err);
    ok (calibrate_fit (&r, CALIBRATE_TIME, first, &alone, &fit, &err), &err);
    assert_memory_equal (&out[12], &alone, sizeof alone);
    assert_true (out[0].time.gemm != out[12].time.gemm);
    /* Of so few runs all times take a part of it. */
    CLOSE (out[0].time.gemm, start.time.gemm * 0.75, 0.15);
    assert_memory_equal (&out[0].memory, &start.memory, sizeof start.memory);
    calibrate_runs_release (&r);
}

/* Every fifth run is to be used, of a place that is slower as a whole, about which runs scatter.
 * The third of them is off by `far`, too. */
static void place_of (struct calibrate_runs *r, const struct workload_profile *start,
                      double slower, double scatter, double far, bool *use)
{
    for (int i = 0; i < r->n; i++) {
        use[i] = i % 5 == 0;
        r->run[i].iter_time_s = runs_step (&r->run[i], start) * slower *
                                (i % 2 ? 1 + scatter : 1 - scatter) * (i == 10 ? far : 1);
    }
}

/* Five runs of a place that is slower as a whole tell how much, and one of them that is far off
 * does not rule; runs that only scatter about the estimate leave it nearly as it is. */
TEST (few)
{
    static const struct {
        double slower, scatter, far;
    } places[] = {{1.3, .04, 1}, {1.25, .02, 2}, {1.25, .02, .5}, {1, .04, 1}};

    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        struct calibrate_runs r = plain_runs ();
        struct workload_profile p = profile_of ("nemo"), start = p;
        struct calibrate_fit fit;
        struct error err = {""};
        bool use[24] = {false}, slower = places[k].slower > 1;

        place_of (&r, &start, places[k].slower, places[k].scatter, places[k].far, use);
        ok (calibrate_fit (&r, CALIBRATE_TIME, use, &p, &fit, &err), &err);
        assert_int_equal (fit.used, 5);
        if (slower)
            assert_true (error_of (&r, use, false, &p) <
                         0.4 * error_of (&r, use, false, &start));
        else
            assert_true (fit.taken < .1 &&
                         fabs (log (p.time.gemm / start.time.gemm)) < .005 &&
                         fabs (log (p.time.link / start.time.link)) < .005 &&
                         p.time.residual < start.time.residual);
        calibrate_runs_release (&r);
    }
}

/* Where runs of one model are slower than those of another by what no constant tells, that model's
 * other runs are met better, and not the other's worse. */
TEST (paced)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile p = profile_of ("nemo"), start = p, plain;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[24] = {false}, slow[24] = {false}, fast[24] = {false};

    for (int i = 0; i < r.n; i++) {
        r.run[i].iter_time_s = runs_step (&r.run[i], &start) * (i < 12 ? 1.25 : 1.1);
        use[i] = i % 4 == 0;
        slow[i] = i < 12 && !use[i];
        fast[i] = i >= 12 && !use[i];
    }
    ok (calibrate_fit (&r, CALIBRATE_TIME, use, &p, &fit, &err), &err);
    assert_int_equal (p.n_paces, 2);
    assert_string_equal (p.pace[0].model, "llama-0");
    assert_string_equal (p.pace[1].model, "llama-1");
    assert_true (p.pace[0].factor > 1.01 && p.pace[1].factor < 0.99);
    plain = p;
    plain.n_paces = 0;
    assert_true (error_of (&r, slow, true, &p) < 0.7 * error_of (&r, slow, true, &plain));
    assert_true (error_of (&r, fast, true, &p) < 0.7 * error_of (&r, fast, true, &plain));
    calibrate_runs_release (&r);
}

/* One run is too few to leave one out: nothing moves. */
TEST (single)
{
    struct calibrate_runs r = plain_runs ();
    struct workload_profile p = profile_of ("nemo"), start = p;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[24] = {true};

    for (int i = 0; i < r.n; i++)
        r.run[i].iter_time_s = 2.0 * runs_step (&r.run[i], &start);
    ok (calibrate_fit (&r, CALIBRATE_TIME, use, &p, &fit, &err), &err);
    assert_true (p.time.gemm == start.time.gemm && p.n_paces == 0);
    assert_true (p.time.residual > start.time.residual);
    calibrate_runs_release (&r);
}

/* Peaks of one configuration, however many, count as one beside five of the profile's: they narrow
 * its interval by little, if they differ from the estimate by less, and widen it if by more; those
 * of others narrow it, as far as those five let them. */
TEST (few_peaks)
{
    static const struct {
        int first, runs, repeats; /* of plain_runs () */
        double over, own; /* measured over estimated; residual of the start, 0: its own */
        double least, most; /* residual over the start's */
    } c[] = {{0, 1, 5, 1.002, 0, 1, 1},      {0, 1, 1, 1.22, 0, 1, 1.2},
             {0, 1, 1, 1.15, .2, .913, .95}, {0, 1, 5, 1.15, .2, .913, .95},
             {0, 2, 1, 1.002, 0, .9, 1},     {0, 24, 1, 1.002, 0, .3, .6}};

    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
        struct calibrate_runs all = plain_runs (), r = all;
        struct calibrate_run run[32];
        struct workload_profile start = profile_of ("nemo"), p = start;
        struct calibrate_fit fit;
        struct error err = {""};

        if (c[k].own > 0)
            p.memory.residual = start.memory.residual = c[k].own;
        r.run = run;
        r.n = 0;
        for (int i = 0; i < c[k].runs; i++)
            for (int m = 0; m < c[k].repeats; m++) {
                run[r.n] = all.run[c[k].first + i];
                run[r.n].peak_bytes = calibrate_peak (&run[r.n], &start) * c[k].over;
                r.n++;
            }
        ok (calibrate_fit (&r, CALIBRATE_MEMORY, NULL, &p, &fit, &err), &err);
        assert_int_equal (fit.used, r.n);
        assert_int_equal (fit.configurations, c[k].runs);
        assert_true (p.memory.residual >= c[k].least * start.memory.residual * 0.9999);
        assert_true (p.memory.residual <= c[k].most * start.memory.residual * 1.0001);
        assert_true (constant_of (&fit, "residual").before == start.memory.residual &&
                     constant_of (&fit, "residual").after == p.memory.residual);
        calibrate_runs_release (&all);
    }
}

/* Repeats of one run teach no more than it, but for their scatter, and make few runs no more; what
 * contradicts is found. */
TEST (repeated)
{
    static const double times[][3] = {{1, 1, 1}, {.98, 1, 1.02}, {.1, 1, 10}};
    double before = 0.0;

    for (int k = 0; k < 3; k++) {
        struct calibrate_runs all = plain_runs (), r = all;
        struct calibrate_run run[66];
        struct workload_profile p = profile_of ("nemo"), start = p;
        struct calibrate_contradiction found[CALIBRATE_CONTRADICTIONS_MAX];
        struct calibrate_fit fit;
        struct error err = {""};
        int n;

        r.run = run;
        r.n = 66;
        for (int i = 0; i < 66; i++) {
            run[i] = all.run[5 * (i / 22)];
            run[i].iter_time_s = 1.3 * times[k][i % 3] * runs_step (&run[i], &start);
            run[i].row = i;
        }
        ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
        assert_true (fit.used == 66 && fit.configurations == 3 && fit.few);
        /* Contradictory means are trusted less. */
        if (k < 2)
            CLOSE (p.time.gemm, start.time.gemm / 1.2, 0.1);
        assert_true (p.time.residual > before && p.time.residual <= 1.0);
        before = p.time.residual;
        ok (calibrate_contradictions (&r, CALIBRATE_FIGURE_STEP, &start, found, &n, &err),
            &err);
        assert_int_equal (n, k == 2 ? 3 : 0);
        if (k == 2) {
            assert_true (found[1].low_row == 24 && found[1].high_row == 23 &&
                         found[1].rows == 22);
            CLOSE (found[1].high, 100 * found[1].low, 1e-9);
        }
        calibrate_runs_release (&all);
    }
}

/* Of one configuration's rows those of the same kernels contradict each other, the first or not. */
TEST (contradictory_labels)
{
    struct calibrate_runs all = plain_runs (), r = all;
    struct calibrate_run run[3];
    struct workload_profile p = profile_of ("nemo");
    struct calibrate_contradiction found[CALIBRATE_CONTRADICTIONS_MAX];
    struct error err = {""};
    int n;

    r.run = run;
    r.n = 3;
    for (int i = 0; i < 3; i++) {
        run[i] = all.run[0];
        run[i].row = i;
        run[i].oom = i == 1;
        run[i].job.attention = i == 0 ? ATTENTION_FLASH : ATTENTION_FLASH1;
    }
    ok (calibrate_contradictions (&r, CALIBRATE_FIGURE_LABEL, &p, found, &n, &err), &err);
    assert_int_equal (n, 1);
    assert_true (found[0].low_row == 2 && found[0].high_row == 1 && found[0].rows == 2);
    run[2].oom = 1;
    ok (calibrate_contradictions (&r, CALIBRATE_FIGURE_LABEL, &p, found, &n, &err), &err);
    assert_int_equal (n, 0);
    calibrate_runs_release (&all);
}

/* Constants of which no run shows anything keep their values, however slow the place is. */
TEST (unseen)
{
    static const char *const keys[] = {"send_link", "attention1", "score_traffic"};
    struct calibrate_runs r = plain_runs ();
    struct workload_profile p = profile_of ("nemo"), start = p;
    struct calibrate_fit fit;
    struct error err = {""};
    bool use[24] = {false};

    for (int i = 0; i < r.n; i++) { /* of one stage, with flash attention */
        use[i] = i % 4 == 0;
        r.run[i].iter_time_s = 1.4 * runs_step (&r.run[i], &start);
    }
    ok (calibrate_fit (&r, CALIBRATE_TIME, use, &p, &fit, &err), &err);
    assert_true (p.time.gemm < 0.9 * start.time.gemm);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_false (constant_of (&fit, keys[i]).told);
        assert_true (constant_of (&fit, keys[i]).after ==
                     constant_of (&fit, keys[i]).before);
    }
    calibrate_runs_release (&r);
}
