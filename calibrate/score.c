/* Scores: errors of numbers, agreement of orders, labels met by probabilities. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/stats.h"

struct pair {
    double x, y;
};

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

static int by_y (const void *a, const void *b)
{
    const struct pair *p = a, *q = b;

    return (p->y > q->y) - (p->y < q->y);
}

static int by_x_then_y (const void *a, const void *b)
{
    int order = order_numbers (a, b);

    return order != 0 ? order : by_y (a, b);
}

/* Pairs of equals in a sorted list. */
static double tied_pairs (const struct pair *p, int n,
                          int (*order) (const void *a, const void *b))
{
    double pairs = 0;

    for (int i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && order (&p[i], &p[k]) == 0; k++)
            ;
        pairs += 0.5 * (k - i) * (k - i - 1.0);
    }
    return pairs;
}

/* Sort by y, stably, and count the pairs that stood the other way round.
 * @param work  [n] */
static double sort_counting (struct pair *p, int n, struct pair *work)
{
    int half = n / 2, i = 0, k = half, out = 0;
    double swaps;

    if (n < 2)
        return 0;
    swaps = sort_counting (p, half, work) + sort_counting (p + half, n - half, work);
    while (i < half || k < n) {
        bool left = k == n || (i < half && p[i].y <= p[k].y);

        swaps += left ? 0 : half - i;
        work[out++] = left ? p[i++] : p[k++];
    }
    memcpy (p, work, (size_t) n * sizeof *p);
    return swaps;
}

/* Kendall's tau-b in n log n steps (Knight, JASA 61, 1966): in the order of a, the pairs
 * that b has the other way round are the swaps that sort it.
 * @param p, work  [n] */
static double kendall_of (const double *a, const double *b, int n, struct pair *p,
                          struct pair *work)
{
    double pairs = 0.5 * n * (n - 1.0), ties_a, ties_b, ties, swaps;

    for (int i = 0; i < n; i++)
        p[i] = (struct pair){a[i], b[i]};
    qsort (p, (size_t) n, sizeof *p, by_x_then_y);
    ties_a = tied_pairs (p, n, order_numbers);
    ties = tied_pairs (p, n, by_x_then_y);
    swaps = sort_counting (p, n, work);
    ties_b = tied_pairs (p, n, by_y);
    return pairs > ties_a && pairs > ties_b
               ? (pairs - ties_a - ties_b + ties - 2 * swaps) /
                     sqrt ((pairs - ties_a) * (pairs - ties_b))
               : NAN;
}

enum status calibrate_errors (const double *estimate, const double *measured, int n,
                              struct calibrate_errors *out, struct error *err)
{
    struct calibrate_errors e = {.n = n, .spearman = NAN, .kendall = NAN};
    double *work = calloc (3 * (size_t) n + 1, sizeof *work);
    struct pair *p = calloc (2 * (size_t) n + 1, sizeof *p);

    if (!work || !p) {
        FREE_ALL (work, p);
        return err_nomem (err);
    }
    for (int i = 0; i < n; i++) {
        double relative = estimate[i] / measured[i] - 1.0;

        work[i] = fabs (relative);
        e.mape += work[i] / n;
        e.bias += relative / n;
        e.worst = fmax (e.worst, work[i]);
    }
    if (n > 0)
        e.median = stats_median (work, n);
    if (n >= 3) {
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < n; i++)
                p[i] = (struct pair){way ? measured[i] : estimate[i], i};
            qsort (p, (size_t) n, sizeof *p, order_numbers);
            ranks_of (p, n, work + (way + 1) * n);
        }
        e.spearman = correlation (work + n, work + 2 * n, n);
        e.kendall = kendall_of (estimate, measured, n, p, p + n);
    }
    FREE_ALL (work, p);
    *out = e;
    return ST_OK;
}

enum status calibrate_labels (const double *score, double threshold,
                              const double *probability, const int *label, int n,
                              struct calibrate_labels *out, struct error *err)
{
    struct calibrate_labels l = {.n = n, .auc = NAN, .brier = probability ? 0 : NAN};
    struct pair *p = calloc ((size_t) n + 1, sizeof *p);
    double *rank = calloc ((size_t) n + 1, sizeof *rank), sum = 0;
    int said = 0, right = 0;

    if (!p || !rank) {
        FREE_ALL (p, rank);
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
    qsort (p, (size_t) n, sizeof *p, order_numbers);
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
        /* Equal scores are said together. */
        if (found >= 0.99 * l.positive && (i == 0 || p[i - 1].x < p[i].x)) {
            l.precision_at_99 = (double) found / (n - i);
            break;
        }
    }
    FREE_ALL (p, rank);
    *out = l;
    return ST_OK;
}

/* One run of a regret's group. */
struct choice {
    double estimate;
    int index;
    const struct calibrate_run *run;
};

static int by_group (const struct calibrate_run *a, const struct calibrate_run *b)
{
    const int x[] = {a->gpus, a->job.seq, a->job.global_batch},
              y[] = {b->gpus, b->job.seq, b->job.global_batch};
    int order = strcmp (a->model.name, b->model.name);

    return order != 0 ? order : order_ints (x, y, 3);
}

/* By group, in it by estimate; the file's order settles ties. */
static int by_choice (const void *a, const void *b)
{
    const struct choice *p = a, *q = b;
    int order = by_group (p->run, q->run);

    if (order == 0)
        order = order_numbers (p, q);
    return order != 0 ? order : p->index - q->index;
}

/* What cannot be told apart by estimates takes the mean of its times: those from i on that have one
 * estimate.  @param[out] next  the first with another one */
static double time_of_equals (const struct choice *c, int i, int end, int *next)
{
    double sum = 0.0;

    for (*next = i; *next < end && c[*next].estimate <= c[i].estimate; ++*next)
        sum += c[*next].run->iter_time_s;
    return sum / (*next - i);
}

enum status calibrate_regret (const struct calibrate_run *const *run,
                              const double *estimate, int n, struct calibrate_regret *out,
                              struct error *err)
{
    struct calibrate_regret r = {0};
    struct choice *c = calloc ((size_t) n + 1, sizeof *c);

    if (!c)
        return err_nomem (err);
    for (int i = 0; i < n; i++)
        c[i] = (struct choice){estimate[i], i, run[i]};
    qsort (c, (size_t) n, sizeof *c, by_choice);
    for (int i = 0, end; i < n; i = end) {
        double chosen, best, regret;
        int next;

        for (end = i; end < n && by_group (c[i].run, c[end].run) == 0; end++)
            ;
        best = chosen = time_of_equals (c, i, end, &next);
        if (next == end)
            continue;
        while (next < end)
            best = fmin (best, time_of_equals (c, next, end, &next));
        regret = chosen / best - 1.0;
        r.groups++;
        r.mean += regret;
        r.worst = fmax (r.worst, regret);
        r.small += regret <= 0.02;
    }
    r.mean = r.groups > 0 ? r.mean / r.groups : NAN;
    free (c);
    *out = r;
    return ST_OK;
}
