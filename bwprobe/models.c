#include "bwprobe/models.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

enum {
    FOLDS = 5,
    TRIED_MIN = 10,
    END_LINKS_MIN = 3,  /* fewer tell nothing about an end */
    SWEEPS = 4,         /* of the alternating medians; they hardly move after two */
    LINKS_MAX = 200000, /* learnt from */
};

#define ERROR_MAX 0.10
#define LOW_QUANTILE 0.01

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

/* Each end's factor: the median of its links over what the other ends explain. */
static void sweep (const struct models_link *link, const struct by_end *x, int n_ends,
                   bool sending, struct models_fit *fit, double *work)
{
    double *own = sending ? fit->out : fit->in;
    const double *other = sending ? fit->in : fit->out;

    for (int e = 0; e < n_ends; e++) {
        int k = 0;

        for (int i = x->first[e]; i < x->first[e + 1]; i++) {
            const struct models_link *l = &link[x->at[i]];
            double part = other[end_of (l, !sending)];

            if (part > 0)
                work[k++] = l->value / (fit->factor * part);
        }
        own[e] = k >= END_LINKS_MIN ? stats_median (work, k) : NAN;
    }
}

static enum status learn_ends (const struct models_link *link, int n, int n_ends,
                               struct models_fit *fit, double *work, struct error *err)
{
    struct by_end from = {0}, to = {0};
    enum status st = ST_OK;

    fit->out = malloc (((size_t) n_ends + 1) * sizeof *fit->out);
    fit->in = malloc (((size_t) n_ends + 1) * sizeof *fit->in);
    if (!fit->out || !fit->in || !sort_by_end (link, n, n_ends, true, &from) ||
        !sort_by_end (link, n, n_ends, false, &to)) {
        st = err_nomem (err);
    } else {
        for (int e = 0; e < n_ends; e++)
            fit->out[e] = fit->in[e] = 1;
        for (int s = 0; s < SWEEPS; s++) {
            sweep (link, &from, n_ends, true, fit, work);
            sweep (link, &to, n_ends, false, fit, work);
        }
    }
    free (from.first);
    free (from.at);
    free (to.first);
    free (to.at);
    return st;
}

enum status models_learn (const struct models_link *link, int n, int n_ends,
                          struct models_fit *fit, struct error *err)
{
    double *work = malloc (((size_t) n + 1) * sizeof *work);
    enum status st = work ? ST_OK : err_nomem (err);

    *fit = (struct models_fit){.factor = NAN};
    for (int i = 0; i < n && work; i++)
        work[i] = link[i].value / (n_ends > 0 ? 1 : link[i].basis);
    if (work)
        fit->factor = stats_median (work, n);
    if (st == ST_OK && n_ends > 0)
        st = learn_ends (link, n, n_ends, fit, work, err);
    if (st != ST_OK)
        models_release (fit);
    free (work);
    return st;
}

double models_predict (const struct models_fit *fit, const struct models_link *link)
{
    return fit->out ? fit->factor * fit->out[link->src] * fit->in[link->dst]
                    : fit->factor * link->basis;
}

void models_release (struct models_fit *fit)
{
    free (fit->out);
    free (fit->in);
    *fit = (struct models_fit){.factor = NAN};
}

/* ---- trying ---- */

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

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
    qsort (part, (size_t) n, sizeof *part, by_value);
    t->low = fmin (1, stats_quantile (part, n, LOW_QUANTILE));
    /* |prediction / value - 1|, as somebody who compares the two sees it. */
    for (int i = 0; i < n; i++)
        part[i] = fabs (1 / part[i] - 1);
    qsort (part, (size_t) n, sizeof *part, by_value);
    t->error_p50 = stats_quantile (part, n, 0.5);
    t->error_p90 = stats_quantile (part, n, 0.9);
    t->accepted = stats_quantile (part, n, 0.75) <= ERROR_MAX;
}

/* A part of the pairs, the same every time.  @return how many links */
static int thin (const struct models_link *link, int n, struct models_link *out)
{
    uint32_t one_of = (uint32_t) (n / LINKS_MAX + 1);
    int k = 0;

    for (int i = 0; i < n; i++)
        if (one_of == 1 || hash (link[i].src, link[i].dst) / FOLDS % one_of == 0)
            out[k++] = link[i];
    return k;
}

enum status models_try (const struct models_link *link, int n, int n_ends,
                        struct models_trial *trial, struct error *err)
{
    size_t room = (size_t) n + 1;
    struct models_link *some = malloc (room * sizeof *some),
                       *rest = malloc (room * sizeof *rest);
    double *part = malloc (room * sizeof *part);
    int tried = 0;
    enum status st = some && rest && part ? ST_OK : err_nomem (err);

    n = st == ST_OK ? thin (link, n, some) : 0;
    for (int fold = 0; fold < FOLDS && st == ST_OK; fold++)
        st = try_fold (some, n, n_ends, fold, rest, part, &tried, err);
    if (st == ST_OK)
        summarize (part, tried, trial);
    free (some);
    free (rest);
    free (part);
    return st;
}
