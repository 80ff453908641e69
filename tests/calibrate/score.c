/* Scores on cases worked out by hand. */
#include "tests/lib/fixture.h"

#include "calibrate/calibrate.h"

static struct calibrate_errors errors_of (const double *estimate, const double *measured,
                                          int n)
{
    struct calibrate_errors e;
    struct error err = {""};

    ok (calibrate_errors (estimate, measured, n, &e, &err), &err);
    return e;
}

static struct calibrate_labels labels_of (const double *score, double threshold,
                                          const double *probability, const int *label,
                                          int n)
{
    struct calibrate_labels l;
    struct error err = {""};

    ok (calibrate_labels (score, threshold, probability, label, n, &l, &err), &err);
    return l;
}

TEST (errors)
{
    const double estimate[] = {110, 90, 400, 5}, measured[] = {100, 100, 200, 10};
    struct calibrate_errors e = errors_of (estimate, measured, 4);

    CLOSE (e.mape, (0.1 + 0.1 + 1 + 0.5) / 4, 1e-12);
    CLOSE (e.median, 0.3, 1e-12);
    CLOSE (e.bias, (0.1 - 0.1 + 1 - 0.5) / 4, 1e-12);
    CLOSE (e.worst, 1.0, 1e-12);
    e = errors_of (estimate, measured, 3);
    CLOSE (e.median, 0.1, 1e-9);
    e = errors_of (estimate, measured, 0);
    assert_true (e.n == 0 && isnan (e.spearman));
}

/* 1 2 3 4 5 against 2 1 4 3 5: sum of squared differences of ranks 4, so Spearman
 * 1 - 6 x 4 / (5 x 24) = .8; 8 of 10 pairs agree, Kendall .6. */
TEST (orders)
{
    const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 1, 4, 3, 5}, back[] = {5, 4, 3, 2, 1},
                 same[] = {7, 7, 7, 7, 7};
    struct calibrate_errors e = errors_of (a, b, 5);

    CLOSE (e.spearman, 0.8, 1e-12);
    CLOSE (e.kendall, 0.6, 1e-12);
    e = errors_of (a, back, 5);
    CLOSE (e.spearman, -1.0, 1e-12);
    CLOSE (e.kendall, -1.0, 1e-12);
    e = errors_of (a, same, 5);
    assert_true (isnan (e.spearman) && isnan (e.kendall));
    assert_true (isnan (errors_of (a, b, 2).spearman));
}

/* Kendall's tau-b with ties, counted pair by pair. */
TEST (kendall_counted)
{
    struct rng r = {11};

    for (int round = 0; round < 200; round++) {
        int n = 3 + (int) rng_below (&r, 40), values = 2 + (int) rng_below (&r, 30);
        double a[64], b[64], agree = 0, ties_a = 0, ties_b = 0, pairs = n * (n - 1) / 2.0;
        double tau;

        for (int i = 0; i < n; i++) {
            a[i] = 1 + (double) rng_below (&r, (uint64_t) values);
            b[i] = 1 + (double) rng_below (&r, (uint64_t) values);
        }
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < n; k++) {
                double x = (a[i] - a[k]) * (b[i] - b[k]);

                agree += (x > 0) - (x < 0);
                ties_a += a[i] == a[k];
                ties_b += b[i] == b[k];
            }
        tau = errors_of (a, b, n).kendall;
        if (ties_a < pairs && ties_b < pairs)
            assert_true (fabs (tau - agree / sqrt ((pairs - ties_a) * (pairs - ties_b))) <
                         1e-12);
        else
            assert_true (isnan (tau));
    }
}

/* Of the four pairs of a positive and a negative three are in order: AUC .75. */
TEST (labels)
{
    const double score[] = {0.1, 0.4, 0.35, 0.8}, tied[] = {0.5, 0.5, 0.5, 0.5};
    const int label[] = {0, 0, 1, 1}, none[] = {0, 0, 0, 0}, one[] = {0, 0, 1, 0};
    struct calibrate_labels l = labels_of (score, 0.5, score, label, 4);

    assert_true (l.n == 4 && l.positive == 2);
    CLOSE (l.auc, 0.75, 1e-12);
    CLOSE (l.precision, 1.0, 1e-12);
    CLOSE (l.recall, 0.5, 1e-12);
    CLOSE (l.brier, (0.01 + 0.16 + 0.65 * 0.65 + 0.04) / 4, 1e-12);
    /* Both positives are said from .35 on, and one negative with them. */
    CLOSE (l.precision_at_99, 2.0 / 3, 1e-12);
    /* The threshold itself counts as said. */
    l = labels_of (score, 0.4, NULL, label, 4);
    CLOSE (l.precision, 0.5, 1e-12);
    assert_true (isnan (l.brier));
    /* Equal scores rank alike, and are said together. */
    l = labels_of (tied, 0.5, tied, label, 4);
    CLOSE (l.auc, 0.5, 1e-12);
    CLOSE (l.precision_at_99, 0.5, 1e-12);
    l = labels_of (score, 0.5, score, one, 4);
    CLOSE (l.auc, 1.0 / 3, 1e-12);
    CLOSE (l.precision_at_99, 1.0 / 3, 1e-12);
    l = labels_of (score, 0.9, score, none, 4);
    assert_true (isnan (l.auc) && isnan (l.precision) && isnan (l.recall) &&
                 isnan (l.precision_at_99));
    l = labels_of (score, 0.5, score, label, 0);
    assert_true (l.n == 0 && isnan (l.auc));
}

/* Two groups: of three runs the estimate picks one that is 10 % slower than the best, of
 * two the best; a run alone is no group, one without an estimate or a time is not seen. */
TEST (times)
{
    static const struct {
        const char *model;
        double measured, estimate;
    } want[] = {{"a", 10, 10}, {"a", 11, 9}, {"a", 20, 22},    {"b", 4, 4},
                {"b", 5, 6},   {"c", 1, 2},  {"a", 1e-3, NAN}, {"b", NAN, 1e-3}};
    struct calibrate_run run[8] = {0};
    struct calibrate_runs runs = {.run = run, .n = 8};
    struct calibrate_time_scores s;
    struct error err = {""};
    double estimate[8];
    bool use[8] = {false};

    for (int i = 0; i < 8; i++) {
        snprintf (run[i].model.name, sizeof run[i].model.name, "%s", want[i].model);
        run[i].iter_time_s = want[i].measured;
        estimate[i] = want[i].estimate;
    }
    ok (calibrate_score_times (&runs, estimate, NULL, &s, &err), &err);
    assert_int_equal (s.errors.n, 6);
    CLOSE (s.errors.mape, (0 + 2 / 11.0 + 0.1 + 0 + 0.2 + 1) / 6, 1e-12);
    assert_int_equal (s.regret.groups, 2);
    assert_int_equal (s.regret.small, 1);
    CLOSE (s.regret.mean, 0.05, 1e-12);
    CLOSE (s.regret.worst, 0.1, 1e-12);
    /* Sequence, batch and GPUs divide groups too. */
    run[1].job.global_batch = 64;
    ok (calibrate_score_times (&runs, estimate, NULL, &s, &err), &err);
    assert_true (s.regret.groups == 2 && s.regret.small == 2);
    use[5] = true;
    ok (calibrate_score_times (&runs, estimate, use, &s, &err), &err);
    assert_true (s.errors.n == 1 && s.regret.groups == 0 && isnan (s.regret.mean));
    CLOSE (s.errors.worst, 1.0, 1e-12);
}

/* Equal estimates choose none of theirs: they take the mean of their times.  Alone they are no
 * group, however far their times are apart. */
TEST (repeated)
{
    static const double measured[] = {1, 2, 3, 3, 8}, estimate[] = {5, 5, 5, 6, 6};
    struct calibrate_run run[5] = {0};
    struct calibrate_runs runs = {.run = run, .n = 3};
    struct calibrate_time_scores s;
    struct error err = {""};

    for (int i = 0; i < 5; i++)
        run[i].iter_time_s = measured[i];
    ok (calibrate_score_times (&runs, estimate, NULL, &s, &err), &err);
    assert_true (s.regret.groups == 0 && isnan (s.regret.mean));
    runs.n = 5;
    ok (calibrate_score_times (&runs, estimate, NULL, &s, &err), &err);
    assert_true (s.regret.groups == 1 && s.regret.small == 1 && s.regret.worst == 0);
    run[2].iter_time_s = 18; /* a mean of 7 beside 5.5 */
    ok (calibrate_score_times (&runs, estimate, NULL, &s, &err), &err);
    CLOSE (s.regret.worst, 7 / 5.5 - 1, 1e-12);
}
