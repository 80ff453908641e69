#include "bwprobe/models.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats.h"

enum {
    FOLDS = 5,
    TRIED_MIN = 10,
    END_LINKS_MIN = 3,  /* fewer tell nothing about an end */
    LINKS_MAX = 200000, /* learnt from */
};

#define ERROR_MAX 0.10
#define LOW_QUANTILE 0.01
/* An end reaches what it does with the better ones of its partners: some of the others are
 * slower than it is. */
#define END_QUANTILE 0.8

static uint32_t hash (int src, int dst)
{
    uint64_t a = (uint64_t) (src < dst ? src : dst),
             b = (uint64_t) (src < dst ? dst : src),
             z = (a << 32 | b) * 0x9e3779b97f4a7c15u;

    return (uint32_t) ((z ^ z >> 29) * 0xbf58476d1ce4e5b9u >> 33);
}

/* ---- fitting ---- */

/* Links by one of their ends: those of end e are at[first[e]] .. at[first[e + 1] - 1]. */
struct by_end {
    int *first, *at;
};

static int end_of (const struct models_link *l, bool sending)
{
    return sending ? l->src : l->dst;
}

static bool sort_by_end (const struct models_link *link, int n, int n_ends, bool sending,
                         struct by_end *x)
{
    x->first = calloc ((size_t) n_ends + 2, sizeof *x->first);
    x->at = malloc (((size_t) n + 1) * sizeof *x->at);
    if (!x->first || !x->at)
        return false;
    for (int i = 0; i < n; i++)
        x->first[end_of (&link[i], sending) + 2]++;
    for (int e = 0; e < n_ends; e++)
        x->first[e + 2] += x->first[e + 1];
    for (int i = 0; i < n; i++)
        x->at[x->first[end_of (&link[i], sending) + 1]++] = i;
    return true;
}

/* What each end reaches. */
static enum status learn_side (const struct models_link *link, int n, int n_ends,
                               bool sending, double *reach, double *work,
                               struct error *err)
{
    struct by_end x = {0};
    enum status st = sort_by_end (link, n, n_ends, sending, &x) ? ST_OK : err_nomem (err);

    for (int e = 0; e < n_ends && st == ST_OK; e++) {
        int k = 0;

        for (int i = x.first[e]; i < x.first[e + 1]; i++)
            work[k++] = link[x.at[i]].value;
        stats_sort (work, k);
        reach[e] = k >= END_LINKS_MIN ? stats_quantile (work, k, END_QUANTILE) : NAN;
    }
    FREE_ALL (x.first, x.at);
    return st;
}

/* What a model says without its factor; NaN. */
static double shape_of (const struct models_fit *fit, const struct models_link *l)
{
    double out, in;

    if (!fit->out)
        return l->basis;
    out = fit->out[l->src];
    in = fit->in[l->dst];
    return isnan (out) || isnan (in) ? NAN : fmin (out, in);
}

enum status models_learn (const struct models_link *link, int n, int n_ends,
                          struct models_fit *fit, struct error *err)
{
    double *work = malloc (((size_t) n + 1) * sizeof *work);
    int k = 0;
    enum status st = work ? ST_OK : err_nomem (err);

    *fit = (struct models_fit){.factor = NAN};
    if (st == ST_OK && n_ends > 0) {
        fit->out = malloc ((size_t) n_ends * sizeof *fit->out);
        fit->in = malloc ((size_t) n_ends * sizeof *fit->in);
        if (!fit->out || !fit->in)
            st = err_nomem (err);
        THEN (st, learn_side (link, n, n_ends, true, fit->out, work, err));
        THEN (st, learn_side (link, n, n_ends, false, fit->in, work, err));
    }
    for (int i = 0; i < n && st == ST_OK; i++) {
        double x = shape_of (fit, &link[i]);

        if (x > 0)
            work[k++] = link[i].value / x;
    }
    if (st == ST_OK)
        fit->factor = stats_median (work, k);
    else
        models_release (fit);
    free (work);
    return st;
}

double models_predict (const struct models_fit *fit, const struct models_link *link)
{
    return fit->factor * shape_of (fit, link);
}

void models_release (struct models_fit *fit)
{
    FREE_ALL (fit->out, fit->in);
    *fit = (struct models_fit){.factor = NAN};
}

/* ---- trying ---- */

/* Learn without one fold, and add the parts of what is predicted that its links reach. */
static enum status try_fold (const struct models_link *link, int n, int n_ends, int fold,
                             struct models_link *rest, double *part, int *tried,
                             struct error *err)
{
    struct models_fit fit;
    int k = 0;
    enum status st;

    for (int i = 0; i < n; i++)
        if ((int) (hash (link[i].src, link[i].dst) % FOLDS) != fold)
            rest[k++] = link[i];
    if (k == 0)
        return ST_OK;
    st = models_learn (rest, k, n_ends, &fit, err);
    for (int i = 0; i < n && st == ST_OK; i++)
        if ((int) (hash (link[i].src, link[i].dst) % FOLDS) == fold) {
            double x = models_predict (&fit, &link[i]);

            if (x > 0)
                part[(*tried)++] = link[i].value / x;
        }
    if (st == ST_OK)
        models_release (&fit);
    return st;
}

static void summarize (double *part, int n, struct models_trial *t)
{
    *t =
        (struct models_trial){.tried = n, .error_p50 = NAN, .error_p90 = NAN, .low = NAN};
    if (n < TRIED_MIN)
        return;
    stats_sort (part, n);
    t->low = fmin (1, stats_quantile (part, n, LOW_QUANTILE));
    /* |prediction / value - 1|, as somebody who compares the two sees it. */
    for (int i = 0; i < n; i++)
        part[i] = fabs (1 / part[i] - 1);
    stats_sort (part, n);
    t->error_p50 = stats_quantile (part, n, 0.5);
    t->error_p90 = stats_quantile (part, n, 0.9);
    t->accepted = stats_quantile (part, n, 0.75) <= ERROR_MAX;
}

enum status models_try (const struct models_link *link, int n, int n_ends,
                        struct models_trial *trial, struct error *err)
{
    size_t room = (size_t) n + 1;
    struct models_link *some = malloc (room * sizeof *some),
                       *rest = malloc (room * sizeof *rest);
    double *part = malloc (room * sizeof *part);
    uint32_t one_of = (uint32_t) (n / LINKS_MAX + 1);
    int tried = 0, k = 0;
    enum status st = some && rest && part ? ST_OK : err_nomem (err);

    /* A part of the pairs, the same every time. */
    for (int i = 0; i < n && st == ST_OK; i++)
        if (one_of == 1 || hash (link[i].src, link[i].dst) / FOLDS % one_of == 0)
            some[k++] = link[i];
    for (int fold = 0; fold < FOLDS && st == ST_OK; fold++)
        st = try_fold (some, k, n_ends, fold, rest, part, &tried, err);
    if (st == ST_OK)
        summarize (part, tried, trial);
    FREE_ALL (some, rest, part);
    return st;
}
