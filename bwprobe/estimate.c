/* What was not measured, from what was: only where it can be shown to work.
 *
 * Links fall into tiers: inside a node, between GPUs of the same index (the same rail), and
 * between others.  Three models predict a link: the median of its tier; a factor times what
 * the first GPUs of its two nodes reach; a factor times what it reached together with others.
 * Each predicts the links that were measured, a fifth of them held out at a time, and is used
 * only if nine of ten come within 10 %.
 *
 * Real matrices vary by link more than by node: an additive model of nodes explained nothing
 * on 17 measured nodes.  So there is no model that pretends to.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bwprobe/coordinator_private.h"
#include "topology/topology.h"

enum { FOLDS = 5, TRIED_MIN = 10 };

#define ERROR_MAX 0.10

static const char *const tier_name[ESTIMATE_TIERS] = {"inside nodes", "same GPU index",
                                                      "other GPU index"};
static const char *const model_name[ESTIMATE_MODELS] = {
    "the median of its kind", "what the first GPUs of its nodes reach",
    "what it reached together with others"};

int estimate_tier_of (const struct coordinator *c, int src, int dst)
{
    if (c->end[src].node == c->end[dst].node)
        return TIER_INSIDE;
    return c->end[src].gpu == c->end[dst].gpu ? TIER_RAIL : TIER_CROSS;
}

/* What a model predicts from; NaN where it cannot. */
static double basis (const struct coordinator *c, int model, int src, int dst)
{
    int a = c->shape.first[c->end[src].node], b = c->shape.first[c->end[dst].node];

    switch (model) {
    case MODEL_MEDIAN:
        return 1;
    case MODEL_NODES:
        return a == b || (a == src && b == dst)
                   ? NAN
                   : results_median (results_find (c->results, a, b), RESULTS_ALONE);
    case MODEL_TOGETHER:
        return results_median (results_find (c->results, src, dst), RESULTS_TOGETHER);
    default:
        return NAN;
    }
}

/* Measured links of one tier that a model can predict. */
struct trial {
    double value, basis;
    int fold;
};

static int gather_trials (const struct coordinator *c, int tier, int model,
                          struct trial *trial)
{
    int n = 0;

    for (size_t i = 0; i < results_count (c->results); i++) {
        const struct results_pair *p = results_at (c->results, i);
        double value = results_median (p, RESULTS_ALONE), from;

        if (!(value > 0) || estimate_tier_of (c, p->src, p->dst) != tier)
            continue;
        from = basis (c, model, p->src, p->dst);
        if (from > 0)
            trial[n++] = (struct trial){
                value, from,
                (int) (((uint32_t) p->src * 2654435761u + (uint32_t) p->dst * 40503u) >>
                       8) %
                    FOLDS};
    }
    return n;
}

/* The median factor over all folds but one; fold -1: over all. */
static double factor_without (const struct trial *trial, int n, int fold, double *work)
{
    int k = 0;

    for (int i = 0; i < n; i++)
        if (trial[i].fold != fold)
            work[k++] = trial[i].value / trial[i].basis;
    return stats_median (work, k);
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static void try_model (struct estimate_model *m, const struct trial *trial, int n,
                       double *work, double *error)
{
    m->tried = n;
    m->error_p50 = m->error_p90 = NAN;
    m->factor = factor_without (trial, n, -1, work);
    if (n < TRIED_MIN)
        return;
    for (int fold = 0; fold < FOLDS; fold++) {
        double factor = factor_without (trial, n, fold, work);

        for (int i = 0; i < n; i++)
            if (trial[i].fold == fold)
                error[i] = fabs (factor * trial[i].basis / trial[i].value - 1);
    }
    qsort (error, (size_t) n, sizeof *error, by_value);
    m->error_p50 = stats_quantile (error, n, 0.5);
    m->error_p90 = stats_quantile (error, n, 0.9);
    m->accepted = m->error_p90 <= ERROR_MAX;
}

/* Directed pairs of each tier, counted without walking over all pairs. */
static void count_pairs (const struct coordinator *c, long all[ESTIMATE_TIERS])
{
    long per_gpu[TOPOLOGY_NODE_GPUS_MAX] = {0}, inside = 0, rails = 0, n = c->shape.n;

    for (int k = 0; k < c->shape.nodes; k++) {
        long g = c->shape.first[k + 1] - c->shape.first[k];

        inside += g * (g - 1);
    }
    for (int i = 0; i < c->shape.n; i++)
        per_gpu[c->end[i].gpu]++;
    for (int g = 0; g < TOPOLOGY_NODE_GPUS_MAX; g++)
        rails += per_gpu[g] * (per_gpu[g] - 1);
    all[TIER_INSIDE] = inside;
    all[TIER_RAIL] = rails;
    all[TIER_CROSS] = n * (n - 1) - inside - rails;
}

enum status estimate_try (const struct coordinator *c,
                          struct estimate_tier tier[ESTIMATE_TIERS], struct error *err)
{
    size_t n = results_count (c->results) + 1;
    struct trial *trial = malloc (n * sizeof *trial);
    double *work = malloc (n * sizeof *work), *error = malloc (n * sizeof *error);
    long all[ESTIMATE_TIERS];
    enum status st = trial && work && error ? ST_OK : err_nomem (err);

    count_pairs (c, all);
    for (int t = 0; t < ESTIMATE_TIERS && st == ST_OK; t++) {
        tier[t] = (struct estimate_tier){.name = tier_name[t], .median_bytes_per_s = NAN};
        for (int m = 0; m < ESTIMATE_MODELS; m++) {
            int k = gather_trials (c, t, m, trial);

            tier[t].model[m].name = model_name[m];
            try_model (&tier[t].model[m], trial, k, work, error);
            if (m == MODEL_MEDIAN) {
                tier[t].measured = k;
                tier[t].median_bytes_per_s = tier[t].model[m].factor;
            }
        }
        tier[t].unmeasured = all[t] - tier[t].measured;
    }
    free (trial);
    free (work);
    free (error);
    return st;
}

double estimate_value (const struct coordinator *c, const struct estimate_tier *tier,
                       int src, int dst)
{
    const struct estimate_tier *t = &tier[estimate_tier_of (c, src, dst)];
    const struct results_pair *p = results_find (c->results, src, dst);
    double best = NAN, error = INFINITY;

    /* A link that failed is not estimated away. */
    if (p && p->failures > 0)
        return NAN;
    for (int m = 0; m < ESTIMATE_MODELS; m++) {
        double from;

        if (!t->model[m].accepted || t->model[m].error_p90 >= error)
            continue;
        from = basis (c, m, src, dst);
        if (from > 0) {
            best = t->model[m].factor * from;
            error = t->model[m].error_p90;
        }
    }
    return best;
}
