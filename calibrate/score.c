/* Scores: errors of numbers, agreement of orders, labels met by probabilities. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>

struct pair {
    double x, y;
};

static int by_x (const void *a, const void *b)
{
    const struct pair *p = a, *q = b;

    return (p->x > q->x) - (p->x < q->x);
}

/* Ranks from 1, ties sharing their mean. */
static void ranks_of (struct pair *sorted, int n, double *rank)
{
    for (int i = 0; i < n;) {
        int k = i;

        while (k < n && sorted[k].x == sorted[i].x)
            k++;
        for (int j = i; j < k; j++)
            rank[(int) sorted[j].y] = 0.5 * (i + 1 + k);
        i = k;
    }
}

static double correlation (const double *a, const double *b, int n)
{
    double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;

    for (int i = 0; i < n; i++) {
        ma += a[i] / n;
        mb += b[i] / n;
    }
    for (int i = 0; i < n; i++) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return aa > 0 && bb > 0 ? ab / sqrt (aa * bb) : NAN;
}

static double kendall_of (const double *a, const double *b, int n)
{
    double agree = 0, ties_a = 0, ties_b = 0, pairs = 0.5 * n * (n - 1.0);

    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            double x = a[i] - a[k], y = b[i] - b[k];

            agree += (x * y > 0) - (x * y < 0);
            ties_a += x == 0;
            ties_b += y == 0;
        }
    return pairs > ties_a && pairs > ties_b
               ? agree / sqrt ((pairs - ties_a) * (pairs - ties_b))
               : NAN;
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

enum status calibrate_errors (const double *estimate, const double *measured, int n,
                              struct calibrate_errors *out, struct error *err)
{
    struct calibrate_errors e = {.n = n, .spearman = NAN, .kendall = NAN};
    double *work = calloc (3 * (size_t) n + 1, sizeof *work);
    struct pair *p = calloc ((size_t) n + 1, sizeof *p);

    if (!work || !p) {
        free (work);
        free (p);
        return err_nomem (err);
    }
    for (int i = 0; i < n; i++) {
        double relative = estimate[i] / measured[i] - 1.0;

        work[i] = fabs (relative);
        e.mape += work[i] / n;
        e.bias += relative / n;
        e.worst = fmax (e.worst, work[i]);
    }
    qsort (work, (size_t) n, sizeof *work, by_value);
    if (n > 0)
        e.median = n % 2 ? work[n / 2] : 0.5 * (work[n / 2 - 1] + work[n / 2]);
    if (n >= 3) {
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < n; i++)
                p[i] = (struct pair){way ? measured[i] : estimate[i], i};
            qsort (p, (size_t) n, sizeof *p, by_x);
            ranks_of (p, n, work + (way + 1) * n);
        }
        e.spearman = correlation (work + n, work + 2 * n, n);
        e.kendall = kendall_of (estimate, measured, n);
    }
    free (work);
    free (p);
    *out = e;
    return ST_OK;
}

enum status calibrate_labels (const double *score, double threshold,
                              const double *probability, const int *label, int n,
                              struct calibrate_labels *out, struct error *err)
{
    struct calibrate_labels l = {.n = n, .auc = NAN};
    struct pair *p = calloc ((size_t) n + 1, sizeof *p);
    double *rank = calloc ((size_t) n + 1, sizeof *rank), sum = 0;
    int said = 0, right = 0;

    if (!p || !rank) {
        free (p);
        free (rank);
        return err_nomem (err);
    }
    for (int i = 0; i < n; i++) {
        p[i] = (struct pair){score[i], i};
        l.positive += label[i];
        said += score[i] >= threshold;
        right += score[i] >= threshold && label[i];
        if (probability)
            l.brier += (probability[i] - label[i]) * (probability[i] - label[i]) / n;
    }
    qsort (p, (size_t) n, sizeof *p, by_x);
    ranks_of (p, n, rank);
    for (int i = 0; i < n; i++)
        sum += label[i] ? rank[i] : 0;
    /* Mann and Whitney: the chance that a positive scores above a negative. */
    if (l.positive > 0 && l.positive < n)
        l.auc = (sum - 0.5 * l.positive * (l.positive + 1.0)) /
                ((double) l.positive * (n - l.positive));
    l.precision = said ? (double) right / said : NAN;
    l.recall = l.positive ? (double) right / l.positive : NAN;
    /* Lower the threshold until 99 % of the positives are said. */
    l.precision_at_99 = NAN;
    for (int i = n - 1, found = 0; i >= 0 && l.positive > 0; i--) {
        found += label[(int) p[i].y];
        if (found >= 0.99 * l.positive) {
            l.precision_at_99 = (double) found / (n - i);
            break;
        }
    }
    free (p);
    free (rank);
    *out = l;
    return ST_OK;
}
