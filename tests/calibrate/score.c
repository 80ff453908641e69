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

static void errors (void **state)
{
    const double estimate[] = {110, 90, 400, 5}, measured[] = {100, 100, 200, 10};
    struct calibrate_errors e = errors_of (estimate, measured, 4);
    (void) state;

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
static void orders (void **state)
{
    const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 1, 4, 3, 5}, back[] = {5, 4, 3, 2, 1},
                 same[] = {7, 7, 7, 7, 7};
    struct calibrate_errors e = errors_of (a, b, 5);
    (void) state;

    CLOSE (e.spearman, 0.8, 1e-12);
    CLOSE (e.kendall, 0.6, 1e-12);
    e = errors_of (a, back, 5);
    CLOSE (e.spearman, -1.0, 1e-12);
    CLOSE (e.kendall, -1.0, 1e-12);
    e = errors_of (a, same, 5);
    assert_true (isnan (e.spearman) && isnan (e.kendall));
    assert_true (isnan (errors_of (a, b, 2).spearman));
}

/* Of the four pairs of a positive and a negative three are in order: AUC .75. */
static void labels (void **state)
{
    const double score[] = {0.1, 0.4, 0.35, 0.8}, tied[] = {0.5, 0.5, 0.5, 0.5};
    const int label[] = {0, 0, 1, 1}, none[] = {0, 0, 0, 0};
    struct calibrate_labels l = labels_of (score, 0.5, score, label, 4);
    (void) state;

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
    l = labels_of (score, 0.9, score, none, 4);
    assert_true (isnan (l.auc) && isnan (l.precision) && isnan (l.recall) &&
                 isnan (l.precision_at_99));
    l = labels_of (score, 0.5, score, label, 0);
    assert_true (l.n == 0 && isnan (l.auc));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (errors), cmocka_unit_test (orders), cmocka_unit_test (labels)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
