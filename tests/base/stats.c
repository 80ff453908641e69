/* Medians, their intervals and straight lines: against counting and against wild values. */
#include "tests/lib/test.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/stats.h"

TEST (medians)
{
    double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 2}, sorted[] = {1, 2, 3, 4, 5};

    assert_true (stats_median (odd, 3) == 5);
    assert_true (stats_median (even, 4) == 2.5);
    assert_true (isnan (stats_median (even, 0)));
    assert_true (stats_quantile (sorted, 5, 0.75) == 4);
    assert_true (stats_quantile (sorted, 5, 1) == 5);
    assert_true (stats_quantile (sorted, 2, 0.5) == 1.5);
}

/* The MAD by the book: the median of all distances. */
static double slow_mad (const double *v, int n)
{
    double copy[64], median;

    for (int i = 0; i < n; i++)
        copy[i] = v[i];
    median = stats_median (copy, n);
    for (int i = 0; i < n; i++)
        copy[i] = fabs (v[i] - median);
    return stats_median (copy, n);
}

TEST (spreads)
{
    struct rng r = {7};

    for (int round = 0; round < 2000; round++) {
        double v[64];
        int n = 1 + rng_below (&r, 20);

        for (int i = 0; i < n; i++)
            v[i] = (double) rng_below (&r, 10);

        double mad = slow_mad (v, n);
        struct stats_spread s = stats_spread_of (v, n);

        assert_true (fabs (s.mad - mad) < 1e-12);
        assert_true (s.low <= s.median && s.median <= s.high && s.n == n);
    }

    double one = 3;
    struct stats_spread s = stats_spread_of (&one, 1);

    assert_true (s.low == 3 && s.high == 3 && s.mad == 0 && s.confidence == 0);
    s = stats_spread_of (&one, 0);
    assert_true (s.n == 0 && isnan (s.median) && isnan (s.low));
}

/* The interval holds the true median as often as it says. */
TEST (intervals)
{
    static const int sizes[] = {3, 5, 6, 9, 16, 40};
    struct rng r = {11};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k], held = 0;
        const int rounds = 20000;
        double confidence = 0;

        for (int round = 0; round < rounds; round++) {
            double v[40];

            for (int i = 0; i < n; i++)
                v[i] = -log (1 - rng_unit (&r)); /* skewed; its median is ln 2 */

            struct stats_spread s = stats_spread_of (v, n);

            held += s.low <= M_LN2 && M_LN2 <= s.high;
            confidence = s.confidence;
        }
        assert_true (n < 6 ? confidence == 1 - ldexp (1, 1 - n) : confidence >= 0.95);
        assert_true (fabs ((double) held / rounds - confidence) < 0.01);
    }
}

TEST (lines)
{
    double x[60], y[60];
    int n = 0;

    /* 20 us + bytes / 10 GB/s at six sizes, ten times each; every fourth time is wild. */
    for (int size = 0; size < 6; size++)
        for (int i = 0; i < 10; i++) {
            x[n] = 1e4 * pow (8, size);
            y[n] = 20e-6 + x[n] / 10e9 + (i % 4 == 0 ? 5e-3 : 0);
            n++;
        }

    struct stats_line l = stats_fit_line (x, y, n);

    assert_int_equal (l.groups, 6);
    assert_true (fabs (l.slope * 10e9 - 1) < 1e-9);
    assert_true (fabs (l.intercept - 20e-6) < 1e-12);
    assert_true (l.residual < 1e-9);

    /* One whole size is wild: the line stays, and the residual says it. */
    for (int i = 20; i < 30; i++)
        y[i] += 1e-3;
    l = stats_fit_line (x, y, n);
    assert_true (fabs (l.slope * 10e9 - 1) < 1e-3);
    assert_true (l.residual > 0.5);

    l = stats_fit_line (x, y, 1);
    assert_true (l.groups == 0 && isnan (l.slope));
    l = stats_fit_line (x, y, 0);
    assert_true (l.groups == 0);
}

/* Quantiles of the normal distribution, also far out. */
TEST (normal)
{
    assert_true (fabs (stats_normal_above (1.959963984540054) - 0.025) < 1e-12);
    assert_true (fabs (stats_normal_quantile (0.025) - 1.959963984540054) < 1e-12);
    assert_true (fabs (stats_normal_quantile (0.5)) < 1e-12);
    for (double p = 1e-300; p < 1; p = p < 1e-3 ? p * 1e3 : p + 0.01) {
        double z = stats_normal_quantile (p);

        assert_true (fabs (stats_normal_above (z) / p - 1) < 1e-9);
        assert_true (z < stats_normal_quantile (p / 1.01));
    }
}
