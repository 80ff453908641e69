/* Runs of one configuration: rows that differ in what was measured alone.
 *
 * Two rows are one configuration where they are of one shape and no estimate tells them apart.
 * Repeats say how far measurements scatter, not more about the model, so that a fit counts a
 * configuration once; where they are further apart than any noise, one of them is wrong. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

bool calibrate_same_shape (const struct calibrate_run *a, const struct calibrate_run *b)
{
    const struct workload_config *c = &a->config, *d = &b->config;
    const struct workload_degrees *x = &c->deg, *y = &d->deg;

    return strcmp (a->model.name, b->model.name) == 0 &&
           a->model.layers == b->model.layers && a->model.hidden == b->model.hidden &&
           a->part[0].type == b->part[0].type && a->gpus == b->gpus &&
           a->job.seq == b->job.seq && a->job.global_batch == b->job.global_batch &&
           a->job.precision == b->job.precision && c->micro_batch == d->micro_batch &&
           c->recompute == d->recompute && x->tp == y->tp && x->pp == y->pp &&
           x->dp == y->dp && x->cp == y->cp && x->ep == y->ep && x->vpp == y->vpp;
}

struct estimated {
    double estimate;
    int index;
};

static int by_estimate (const void *a, const void *b)
{
    const struct estimated *p = a, *q = b;
    int order = order_numbers (p, q);

    return order != 0 ? order : p->index - q->index;
}

enum status calibrate_configurations (const struct calibrate_runs *runs,
                                      const double *estimate, int *first, int *n,
                                      struct error *err)
{
    struct estimated *e = calloc ((size_t) runs->n + 1, sizeof *e);
    int used = 0;

    if (!e)
        return err_nomem (err);
    *n = 0;
    for (int i = 0; i < runs->n; i++) {
        first[i] = -1;
        if (isfinite (estimate[i]))
            e[used++] = (struct estimated){estimate[i], i};
    }
    qsort (e, (size_t) used, sizeof *e, by_estimate);
    for (int i = 0, alike = 0; i < used; i++) {
        int k;

        if (e[i].estimate > e[alike].estimate)
            alike = i;
        for (k = alike;
             !calibrate_same_shape (&runs->run[e[k].index], &runs->run[e[i].index]); k++)
            ;
        first[e[i].index] = e[k].index;
        *n += k == i;
    }
    free (e);
    return ST_OK;
}

/* ---- rows that contradict each other ---- */

static double figure_of (const struct calibrate_run *run, enum calibrate_figure figure)
{
    double label = run->oom < 0 ? NAN : run->oom;

    return figure == CALIBRATE_FIGURE_STEP   ? run->iter_time_s
           : figure == CALIBRATE_FIGURE_PEAK ? run->peak_bytes
                                             : label;
}

/* Estimates of the runs that have the figure, NAN of others. */
static enum status estimate_all (const struct calibrate_runs *runs,
                                 enum calibrate_figure figure,
                                 const struct workload_profile *p, double *estimate,
                                 struct error *err)
{
    for (int i = 0; i < runs->n; i++) {
        const struct calibrate_run *run = &runs->run[i];
        struct topology_cluster *cluster = NULL;
        enum status st = ST_OK;

        estimate[i] = NAN;
        if (isnan (figure_of (run, figure)))
            continue;
        if (figure == CALIBRATE_FIGURE_PEAK)
            estimate[i] = calibrate_peak (run, p);
        else if (figure == CALIBRATE_FIGURE_LABEL)
            estimate[i] = calibrate_need (run, p, MEMEST_LINKWISE) / run->gpu_bytes;
        else if ((st = calibrate_cluster (run, p, &cluster, NULL)) == ST_OK)
            st = calibrate_step (run, cluster, p, &estimate[i], NULL, NULL);
        topology_cluster_destroy (cluster);
        if (st == ST_NOMEM)
            return err_nomem (err);
    }
    return ST_OK;
}

/* The first of a configuration's rows of the same attention kernels: no estimate tells the bytes of
 * two kinds of them apart. */
static int first_of_kernels (const struct calibrate_runs *runs, const int *first, int i)
{
    int k = 0;

    while (first[k] != first[i] ||
           runs->run[k].job.attention != runs->run[i].job.attention)
        k++;
    return k;
}

/* Count a run in the figures of its configuration. */
static void span (struct calibrate_contradiction *c, const struct calibrate_run *run,
                  double figure)
{
    if (c->rows == 0 || figure < c->low) {
        c->low = figure;
        c->low_row = run->row;
    }
    if (c->rows == 0 || figure > c->high) {
        c->high = figure;
        c->high_row = run->row;
    }
    c->rows++;
}

enum status calibrate_contradictions (const struct calibrate_runs *runs,
                                      enum calibrate_figure figure,
                                      const struct workload_profile *p,
                                      struct calibrate_contradiction *out, int *n,
                                      struct error *err)
{
    size_t size = (size_t) runs->n + 1;
    struct calibrate_contradiction *all = calloc (size, sizeof *all);
    double *estimate = calloc (size, sizeof *estimate);
    int *first = calloc (size, sizeof *first), configurations;
    enum status st = all && estimate && first ? ST_OK : err_nomem (err);

    *n = 0;
    THEN (st, estimate_all (runs, figure, p, estimate, err));
    THEN (st, calibrate_configurations (runs, estimate, first, &configurations, err));
    for (int i = 0; i < runs->n && st == ST_OK; i++)
        if (first[i] >= 0)
            span (&all[first_of_kernels (runs, first, i)], &runs->run[i],
                  figure_of (&runs->run[i], figure));
    for (int i = 0; i < runs->n && st == ST_OK && *n < CALIBRATE_CONTRADICTIONS_MAX; i++)
        if (all[i].high > CALIBRATE_NOISE_MOST * all[i].low)
            out[(*n)++] = all[i];
    FREE_ALL (all, estimate, first);
    return st;
}
