#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"

void stats_sort (double *v, int n)
{
    if (n > 0)
        qsort (v, (size_t) n, sizeof *v, order_numbers);
}

double stats_median (double *v, int n)
{
    stats_sort (v, n);
    if (n == 0)
        return NAN;
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double stats_quantile (const double *v, int n, double q)
{
    if (n == 0)
        return NAN;

    double at = q * (n - 1);
    int k = (int) at;

    return k + 1 < n ? v[k] + (at - k) * (v[k + 1] - v[k]) : v[n - 1];
}

double stats_normal_above (double z)
{
    return 0.5 * erfc (z / sqrt (2.0));
}

/* Abramowitz and Stegun, 26.2.23, and Newton's steps on the logarithm of the tail, which is nearly
 * a parabola. */
double stats_normal_quantile (double p)
{
    double tail = fmin (p, 1.0 - p), t = sqrt (-2.0 * log (tail));
    double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int i = 0; i < 4; i++) {
        double above = stats_normal_above (z),
               density = exp (-0.5 * z * z) / sqrt (2.0 * acos (-1.0));

        z += log (above / tail) * above / density;
    }
    return p <= 0.5 ? z : -z;
}

struct stats_spread stats_spread_of (double *v, int n)
{
    struct stats_spread s = {.n = n,
                             .median = stats_median (v, n),
                             .mad = NAN,
                             .low = NAN,
                             .high = NAN,
                             .confidence = NAN};

    if (n == 0)
        return s;
    /* Cut k values off either end while the rest still holds the median often enough. */
    double term = ldexp (1.0, -n), below = term;
    int k = 0;

    while (k + 1 < n - 1 - (k + 1)) {
        double next = term * (n - k) / (k + 1);

        if (1 - 2 * (below + next) < 0.95)
            break;
        term = next;
        below += next;
        k++;
    }
    s.low = v[k];
    s.high = v[n - 1 - k];
    s.confidence = n == 1 ? 0 : 1 - 2 * below;
    for (int i = 0; i < n; i++)
        v[i] = fabs (v[i] - s.median);
    s.mad = stats_median (v, n);
    return s;
}

struct point {
    double x, y;
};

static int by_x (const void *a, const void *b)
{
    const struct point *p = a, *q = b;

    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* Points of equal x become one, at their median y. */
static int group (struct point *p, int n)
{
    int groups = 0;

    qsort (p, (size_t) n, sizeof *p, by_x);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && p[end].x == p[i].x; end++)
            ;

        int size = end - i;
        double y = size % 2 ? p[i + size / 2].y
                            : 0.5 * (p[i + size / 2 - 1].y + p[i + size / 2].y);

        p[groups++] = (struct point){p[i].x, y};
    }
    return groups;
}

/* The x at which half the weight, y, is reached. */
static double weighted_median (struct point *p, int n)
{
    double total = 0, sum = 0;

    qsort (p, (size_t) n, sizeof *p, by_x);
    for (int i = 0; i < n; i++)
        total += p[i].y;
    for (int i = 0; i < n; i++) {
        sum += p[i].y;
        if (sum >= 0.5 * total)
            return p[i].x;
    }
    return NAN;
}

struct stats_line stats_fit_line (const double *x, const double *y, int n)
{
    struct stats_line line = {NAN, NAN, NAN, 0};
    struct point *p = malloc (((size_t) n + 1) * sizeof *p), *weighted = NULL;
    int groups = 0, k = 0;

    for (int i = 0; i < n && p; i++)
        p[i] = (struct point){x[i], y[i]};
    if (p)
        groups = group (p, n);
    if (groups >= 2)
        weighted = malloc ((size_t) groups * (size_t) groups * sizeof *weighted);
    if (weighted) {
        for (int i = 0; i < groups; i++)
            for (int j = i + 1; j < groups; j++)
                weighted[k++] = (struct point){(p[j].y - p[i].y) / (p[j].x - p[i].x),
                                               p[j].x - p[i].x};
        line.slope = weighted_median (weighted, k);
        for (int i = 0; i < groups; i++)
            weighted[i] = (struct point){p[i].y - line.slope * p[i].x, 1 / p[i].y};
        line.intercept = weighted_median (weighted, groups);
        line.residual = 0;
        for (int i = 0; i < groups; i++)
            line.residual =
                fmax (line.residual,
                      fabs (p[i].y - line.intercept - line.slope * p[i].x) / p[i].y);
        line.groups = groups;
    }
    if (!p || (groups >= 2 && !weighted))
        memory_lost ();
    FREE_ALL (weighted, p);
    return line;
}
