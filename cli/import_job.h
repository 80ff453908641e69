/* Shared by the files of linkwise import-job alone. */
#ifndef CLI_IMPORT_JOB_H
#define CLI_IMPORT_JOB_H

#include "cli/cli.h"
#include "jobs/jobs.h"
#include "report/report.h"

struct import_input {
    struct cli_list file;
    struct jobs_given given;
    const char *cluster, *profile, *out, *append;
    bool json, no_plan;
};

/* What one call is about. */
struct import {
    const struct import_input *in;
    struct jobs jobs;
    const struct jobs_job *job; /* the last */
    struct calibrate_runs runs; /* its row, read as any runs file's */
    struct calibrate_run *run;
    struct linkwise_plan work; /* the job as it ran */
    int *gpu;                  /* [world] */
    struct costmodel_estimate estimate;
    double step_s, step_factor; /* estimated, and its 90 % interval */
    double step_error;          /* api_step_error on the job's machines */
    double peak_bytes, peak_factor, chance;
    struct report_explained explained;
    struct report_gain *change; /* the best single one; NULL: none gains */
    struct report_best best;    /* the best plan; fits: false where none was found */
    bool searched;
};

/** Less of a step is not worth a word. */
#define IMPORT_SAVES_LEAST 1e-3

void import_print (const struct import *x);
enum status import_print_json (const struct import *x, struct error *err);

#endif
