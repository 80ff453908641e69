/* What was not measured, from what was: only where it can be shown to work.
 *
 * Links fall into tiers: inside a node, between GPUs of the same index (the same rail), and
 * between others.  Four models (models.h) predict a link: the median of its tier; what its two
 * ends do with others; a factor times what the first GPUs of its two nodes reach; a factor times
 * what it reached together with others.  A model is used where its links are explained by it,
 * and the one whose low end is nearest is taken.
 *
 * What is written for a link is that low end: the rate that 99 of 100 held-out links reached.  A
 * plan is as fast as the slowest of its links, so a link that may be slow is worth no more
 * than that to a planner; on 17 measured nodes 6 % of the pairs had a third of the
 * median, and nothing about their nodes told which.
 */
#include <math.h>
#include <stdlib.h>

#include "bwprobe/coordinator_private.h"
#include "topology/topology.h"

static const char *const tier_name[ESTIMATE_TIERS] = {"inside nodes", "same GPU index",
                                                      "other GPU index"};
static const char *const model_name[ESTIMATE_MODELS] = {
    "the median of its kind", "what its two ends reach with others",
    "what the first GPUs of its nodes reach", "what it reached together with others"};

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
    case MODEL_ENDS:
        return 1;
    case MODEL_NODES:
        return a == b || (a == src && b == dst)
                   ? NAN
                   : results_median (results_find (&c->results, a, b), RESULTS_ALONE);
    case MODEL_TOGETHER:
        return results_median (results_find (&c->results, src, dst), RESULTS_TOGETHER);
    default:
        return NAN;
    }
}

/* Measured links of one tier that a model can predict. */
static int gather_links (const struct coordinator *c, int tier, int model,
                         struct models_link *link)
{
    int n = 0;

    for (size_t i = 0; i < c->results.n; i++) {
        const struct results_pair *p = &c->results.pair[i];
        double value = results_median (p, RESULTS_ALONE), from;

        if (!(value > 0) || estimate_tier_of (c, p->src, p->dst) != tier)
            continue;
        from = basis (c, model, p->src, p->dst);
        if (from > 0)
            link[n++] = (struct models_link){p->src, p->dst, value, from};
    }
    return n;
}

int estimate_values (const struct coordinator *c, int tier, enum results_what what,
                     double *v)
{
    int n = 0;

    for (size_t i = 0; i < c->results.n; i++) {
        const struct results_pair *p = &c->results.pair[i];
        double x = results_median (p, what);

        if (x > 0 && estimate_tier_of (c, p->src, p->dst) == tier)
            v[n++] = x;
    }
    return n;
}

double estimate_part (const struct coordinator *c, const struct estimate_tier *tier,
                      const struct results_pair *p)
{
    return results_median (p, RESULTS_ALONE) /
           tier[estimate_tier_of (c, p->src, p->dst)].median_bytes_per_s;
}

/* The latency of an estimated link: as with its rate, what it has at worst. */
#define HIGH_QUANTILE 0.99

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
    struct models_link *link = malloc ((c->results.n + 1) * sizeof *link);
    double *work = malloc ((c->results.n + 1) * sizeof *work);
    long all[ESTIMATE_TIERS];
    enum status st = link && work ? ST_OK : err_nomem (err);

    count_pairs (c, all);
    for (int t = 0; t < ESTIMATE_TIERS; t++) {
        int n = work ? estimate_values (c, t, RESULTS_LATENCY, work) : 0;

        stats_sort (work, n);
        tier[t] = (struct estimate_tier){.name = tier_name[t],
                                         .unmeasured = all[t],
                                         .high_latency_s =
                                             stats_quantile (work, n, HIGH_QUANTILE)};
    }
    for (int t = 0; t < ESTIMATE_TIERS && st == ST_OK; t++)
        for (int m = 0; m < ESTIMATE_MODELS && st == ST_OK; m++) {
            struct estimate_model *e = &tier[t].model[m];
            int n = gather_links (c, t, m, link), ends = m == MODEL_ENDS ? c->shape.n : 0;

            e->name = model_name[m];
            st = models_try (link, n, ends, &e->trial, err);
            THEN (st, models_learn (link, n, ends, &e->fit, err));
            if (m == MODEL_MEDIAN) {
                tier[t].measured = n;
                tier[t].unmeasured = all[t] - n;
                tier[t].median_bytes_per_s = e->fit.factor;
            }
        }
    free (link);
    free (work);
    if (st != ST_OK)
        estimate_release (tier);
    return st;
}

void estimate_release (struct estimate_tier tier[ESTIMATE_TIERS])
{
    for (int t = 0; t < ESTIMATE_TIERS; t++)
        for (int m = 0; m < ESTIMATE_MODELS; m++)
            models_release (&tier[t].model[m].fit);
}

double estimate_value (const struct coordinator *c, const struct estimate_tier *tier,
                       int src, int dst, double *error)
{
    const struct estimate_tier *t = &tier[estimate_tier_of (c, src, dst)];
    const struct results_pair *p = results_find (&c->results, src, dst);
    double best = NAN, low = 0;

    /* A link that failed is not estimated away. */
    if (p && p->failures > 0)
        return NAN;
    for (int m = 0; m < ESTIMATE_MODELS; m++) {
        const struct estimate_model *e = &t->model[m];
        struct models_link link = {.src = src, .dst = dst};
        double x;

        if (!e->trial.accepted || e->trial.low <= low)
            continue;
        link.basis = basis (c, m, src, dst);
        x = link.basis > 0 ? models_predict (&e->fit, &link) : NAN;
        if (x > 0) {
            low = e->trial.low;
            best = low * x;
            *error = e->trial.error_p90;
        }
    }
    return best;
}
