/* Medians, spreads and straight lines that a few wild values do not move. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

/** Sort v in place, the smallest first. */
void stats_sort (double *v, int n);

/** The median; v is sorted in place.  NaN when n is 0. */
double stats_median (double *v, int n);

/** The q-quantile, 0 <= q <= 1, linear between neighbours; v must be sorted.  NaN when n
 *  is 0. */
double stats_quantile (const double *v, int n, double q);

/** Of a standard normal distribution, the chance of more than z. */
double stats_normal_above (double z);

/** The z that is exceeded with chance p, 0 < p < 1. */
double stats_normal_quantile (double p);

/** How the samples of one quantity lie. */
struct stats_spread {
    int n;
    double median;
    double mad;        /* median of |sample - median|; multiply by 1.4826 for a sigma */
    double low, high;  /* an interval for the median ... */
    double confidence; /* ... that holds it with this probability */
};

/** Spread of n samples, which are overwritten.  All NaN when n is 0.
 *
 *  The interval is the narrowest pair of order statistics, symmetric in rank, that holds
 *  the true median with probability 0.95 or more, whatever the distribution:
 *  P (v[k] <= median <= v[n-1-k]) = 1 - 2 P (Binomial (n, 1/2) <= k).  With fewer than 6
 *  samples even the extremes reach less, and `confidence` says how much (1 - 2^(1-n)).
 */
struct stats_spread stats_spread_of (double *v, int n);

/** A straight line y = intercept + slope x. */
struct stats_line {
    double intercept, slope;
    double residual; /* largest |y - line| / y over the groups of equal x */
    int groups;      /* different values of x */
};

/** The line through points with repeated x, such as message sizes.
 *
 *  Points of equal x become one point at their median y; the slope is the median of the
 *  slopes between these, each weighted by the distance of its x (Theil 1950, Sen 1968,
 *  weighted as in Birkes and Dodge 1993), so that the widest, least noisy pairs decide.
 *  The intercept is the median of y - slope x, each weighted by 1 / y: what is left at the
 *  small end, where the noise of a time is small too.
 *
 *  @param[in] x, y  [n] in any order; y > 0
 *  @param[in] n     points; at least two different x
 *  @return groups 0 and all NaN when there are fewer than two different x, or no memory, which is
 *          noted as lost
 */
struct stats_line stats_fit_line (const double *x, const double *y, int n);

#endif
