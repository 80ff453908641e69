/* make fit RUNS=DIR: the constants that sources share, fitted to every runs file of a folder
 * together (bench/joint.c).  Shipped values are what it printed, times its factors, written
 * down by hand where they make no source worse (docs/accuracy.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/joint.h"
#include "bench/runs_dir.h"

/* The rows with a step time, without those whose notes say SLOW. */
static bool *timed (const struct calibrate_runs *r, int *n)
{
    bool *use = calloc ((size_t) r->n + 1, sizeof *use);

    for (int i = 0; use && i < r->n; i++) {
        const struct calibrate_run *run = &r->run[i];

        use[i] = !isnan (run->iter_time_s) && !runs_dir_disturbed (r, run);
        *n += use[i];
    }
    return use;
}

static void print (const struct joint_fit *j, int sources)
{
    const char *header[] = {"<constant", "shipped x", "prior spread",
                            "spread",    "<told",     NULL};
    struct table *t = table_create (header);

    for (int i = 0; i < j->n; i++) {
        const struct joint_constant *c = &j->constant[i];

        table_cell (t, "%s", c->name);
        table_cell (t, "%.3f", c->factor);
        table_cell (t, "%.2f", c->prior_spread);
        table_cell (t, "%.2f", c->spread);
        table_cell (t, "%s", c->told ? "yes" : "no: the runs cannot tell");
    }
    printf ("Constants that %d sources share, over what is shipped; spreads are standard "
            "deviations of their\nlogarithms, before and after.\n",
            sources);
    table_end (t, stdout);
}

int main (int argc, char **argv)
{
    struct calibrate_runs runs[JOINT_SOURCES];
    struct joint_source source[JOINT_SOURCES];
    struct joint_fit fit;
    struct dirent **file;
    struct error err;
    int n_files, n = 0;

    runs_dir_check (argc);
    n_files = runs_dir_files (argv[1], &file);
    for (int i = 0; i < n_files; i++) {
        char path[4096];
        int rows = 0;

        snprintf (path, sizeof path, "%s/%s", argv[1], file[i]->d_name);
        free (file[i]);
        if (n == JOINT_SOURCES || runs_dir_read (path, &runs[n], &err) != ST_OK)
            continue;
        source[n] = (struct joint_source){&runs[n], timed (&runs[n], &rows)};
        n += rows > 0;
    }
    free (file);
    if (joint_fit (source, n, &fit, &err) != ST_OK)
        die (&err);
    print (&fit, n);
    joint_release (&fit);
    return 0;
}
