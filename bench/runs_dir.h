/* A folder of runs files, as all that measure by it take it. */
#ifndef BENCH_RUNS_DIR_H
#define BENCH_RUNS_DIR_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate.h"

/* A bench that takes the folder alone; any other call ends it. */
static inline void runs_dir_check (int argc)
{
    if (argc == 2)
        return;
    fprintf (stderr, "usage: %s DIR (a folder of runs files)\n",
             program_invocation_short_name);
    exit (2);
}

static inline int runs_dir_is_csv (const struct dirent *d)
{
    const char *dot = strrchr (d->d_name, '.');

    return dot && strcmp (dot, ".csv") == 0;
}

/* Its runs files in the order of their names; where it cannot be read, that ends the bench.
 * @return how many */
static inline int runs_dir_files (const char *dir, struct dirent ***file)
{
    int n = scandir (dir, file, runs_dir_is_csv, alphasort);

    if (n >= 0)
        return n;
    perror (dir);
    exit (1);
}

/* A file's runs, but those of which shape, vocabulary or degrees are assumed: what is assumed is no
 * estimate's fault. */
static inline enum status runs_dir_read (const char *path, struct calibrate_runs *r,
                                         struct error *err)
{
    enum status st = calibrate_runs_read (path, r, err);
    int vocab = st == ST_OK ? csv_table_column (&r->table, "vocab", 0) : -1, n = 0;

    for (int i = 0; vocab >= 0 && i < r->n; i++) {
        if (r->table.cell[r->run[i].row * r->table.columns + vocab][0] &&
            r->run[i].assumed <= 0)
            r->run[n++] = r->run[i];
        else
            free (r->run[i].layers);
    }
    if (vocab >= 0)
        r->n = n;
    return st;
}

/* Do its notes say SLOW: was the step disturbed? */
static inline bool runs_dir_disturbed (const struct calibrate_runs *r,
                                       const struct calibrate_run *run)
{
    int notes = csv_table_column (&r->table, "notes", 0);

    return notes >= 0 &&
           strstr (r->table.cell[run->row * r->table.columns + notes], "SLOW");
}

/* Were compute constants of the profile fitted to the run's source? */
static inline bool runs_dir_fitted (const struct workload_profile *p,
                                    const struct calibrate_run *run)
{
    for (int i = 0; i < p->n_sources && !p->compute_of_type; i++)
        if (strcmp (p->source[i], run->source) == 0)
            return true;
    return false;
}

#endif
