/* Runs that are left out together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate.h"

static void key_of (const struct calibrate_run *run, enum calibrate_grouping by,
                    char key[256])
{
    if (by == CALIBRATE_BY_MODEL)
        snprintf (key, 256, "%s", run->model.name);
    else
        snprintf (key, 256, "%d %d %d t%d p%d d%d b%d %d", run->model.layers,
                  run->model.hidden, run->model.heads, run->config.deg.tp,
                  run->config.deg.pp, run->config.deg.dp, run->config.micro_batch,
                  (int) run->job.precision);
}

enum status calibrate_groups (const struct calibrate_runs *runs,
                              enum calibrate_grouping by, int *group, int *n,
                              struct error *err)
{
    char (*key)[256] = calloc ((size_t) runs->n + 1, sizeof *key);

    if (!key)
        return err_nomem (err);
    *n = 0;
    for (int i = 0; i < runs->n; i++) {
        int g = 0;

        key_of (&runs->run[i], by, key[*n]);
        while (strcmp (key[g], key[*n]) != 0)
            g++;
        group[i] = g;
        *n += g == *n;
    }
    free (key);
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
    return calibrate_groups (runs, *by, group, n, err);
}
