/* Runs that are left out together. */
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate_private.h"

/* Are they of one size, cut alike, in one precision? */
static bool same_cut (const struct calibrate_run *a, const struct calibrate_run *b)
{
    const struct workload_degrees *x = &a->config.deg, *y = &b->config.deg;

    return a->model.layers == b->model.layers && a->model.hidden == b->model.hidden &&
           a->model.heads == b->model.heads && x->tp == y->tp && x->pp == y->pp &&
           x->dp == y->dp && a->config.micro_batch == b->config.micro_batch &&
           a->job.precision == b->job.precision;
}

static bool together (const struct calibrate_run *a, const struct calibrate_run *b,
                      enum calibrate_grouping by)
{
    switch (by) {
    case CALIBRATE_BY_MODEL:
        return strcmp (a->model.name, b->model.name) == 0;
    case CALIBRATE_BY_CONFIG:
        return same_cut (a, b);
    case CALIBRATE_BY_SHAPE:
        break;
    }
    return calibrate_same_shape (a, b);
}

enum status calibrate_groups (const struct calibrate_runs *runs,
                              enum calibrate_grouping by, int *group, int *n,
                              struct error *err)
{
    int *first = calloc ((size_t) runs->n + 1, sizeof *first); /* of each group */

    if (!first)
        return err_nomem (err);
    *n = 0;
    for (int i = 0; i < runs->n; i++) {
        int g = 0;

        while (g < *n && !together (&runs->run[first[g]], &runs->run[i], by))
            g++;
        if (g == *n)
            first[(*n)++] = i;
        group[i] = g;
    }
    free (first);
    return ST_OK;
}

enum status calibrate_groups_of (const struct calibrate_runs *runs, int least,
                                 enum calibrate_grouping *by, int *group, int *n,
                                 struct error *err)
{
    *by = CALIBRATE_BY_MODEL;
    TRY (calibrate_groups (runs, *by, group, n, err));
    if (*n >= least)
        return ST_OK;
    *by = CALIBRATE_BY_CONFIG;
    TRY (calibrate_groups (runs, *by, group, n, err));
    if (*n > 1)
        return ST_OK;
    *by = CALIBRATE_BY_SHAPE;
    return calibrate_groups (runs, *by, group, n, err);
}
