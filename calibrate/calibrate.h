/* Measured training runs beside estimates: runs files, scores, fits of profiles. */
#ifndef CALIBRATE_CALIBRATE_H
#define CALIBRATE_CALIBRATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "costmodel/costmodel.h"
#include "memest/memest.h"
#include "topology/topology.h"
#include "workload/workload.h"

/* ---- runs files ---- */

#define CALIBRATE_TYPES_MAX 8
#define CALIBRATE_REASONS_MAX 32

/** One measured run: a row of a runs file that could be understood. */
struct calibrate_run {
    int row; /* of the file, the header not counted */
    char source[64];
    struct workload_model model; /* its name is the row's */
    struct workload_job job;
    struct workload_config config;
    int *layers; /* [pp] */
    struct {
        const struct topology_gpu_type *type;
        int nodes;
    } part[CALIBRATE_TYPES_MAX]; /* GPU types in node order */
    int n_parts;
    int gpus, gpus_per_node;
    double gpu_bytes;         /* of one GPU, as its driver reports it */
    double inter_bytes_per_s; /* of one node; 0: the type's usual */
    /* What was measured; NAN where it was not */
    double iter_time_s;
    double peak_bytes;
    double static_bytes; /* weights, gradients, optimizer, as an allocator saw them */
    int oom;             /* 1 ran out, 0 ran, -1 unknown */
};

/** A runs file's rows. */
struct calibrate_runs {
    struct calibrate_run *run; /* [n] */
    int n;
    struct {
        char reason[96];
        int count, first_row;
    } skipped[CALIBRATE_REASONS_MAX];
    int n_skipped;
    struct csv_table table; /* the file itself, skipped rows too */
};

/** Read a runs file (docs/runs.md; "-" is standard input).
 *
 *  A row is skipped, and counted by reason, when its layers, hidden, heads, ffn, vocab,
 *  seq, gpus or global_batch is unknown, or its architecture or GPU is not supported, or
 *  its numbers contradict each other.
 *
 *  @param[out] r  release with calibrate_runs_release
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID for a missing column, a row with another
 *          number of cells, or when no row is left
 */
enum status calibrate_runs_read (const char *path, struct calibrate_runs *r,
                                 struct error *err);
void calibrate_runs_release (struct calibrate_runs *r);

/** The GPU type that a source's spelling means ("A100-SXM4-80GB", "h100_80gb", "T4
 *  (G4dn.12xlarge)"), or NULL.  @param memory_gb  the row's, to tell variants apart; 0:
 *  unknown */
const struct topology_gpu_type *calibrate_gpu_type (const char *name, double memory_gb);

/** The shipped profile that serves a run: the one that names its source, else its GPU
 *  type's, else the default.  @param[out] p  a copy */
enum status calibrate_profile_for (const struct calibrate_run *run,
                                   struct workload_profile *p, struct error *err);

/* ---- estimates ---- */

/** The peak of the rank that the profile's runs measured, in bytes as they measured it
 *  (with the driver's overheads, or the allocator's). */
double calibrate_peak (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by);

/** What decides whether the run fits: the fullest rank, overheads included. */
double calibrate_need (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by);

/** Weights, gradients and optimizer state of the rank that was measured. */
double calibrate_static (const struct calibrate_run *run,
                         const struct workload_profile *p);

/* ---- scores ---- */

/** How well numbers are met. */
struct calibrate_errors {
    int n;
    double mape, median, bias, worst; /* of |estimate / measured - 1|; bias signed */
    double spearman, kendall;         /* NAN below 3 */
};

/** @param[in] estimate, measured  [n] positive */
enum status calibrate_errors (const double *estimate, const double *measured, int n,
                              struct calibrate_errors *out, struct error *err);

/** How well labels are met by probabilities. */
struct calibrate_labels {
    int n, positive;
    double precision, recall; /* at probability .5 */
    double auc;               /* NAN when there is only one label */
    double brier;
    double precision_at_99; /* where recall first reaches .99 */
};

/** @param[in] score  [n] grows with the chance of a positive; compared with `threshold`
 *  @param[in] probability  [n] for the Brier score; NULL: none
 *  @param[in] label  [n] 0 or 1 */
enum status calibrate_labels (const double *score, double threshold,
                              const double *probability, const int *label, int n,
                              struct calibrate_labels *out, struct error *err);

/* ---- fits ---- */

/** One constant of a fit. */
struct calibrate_fitted {
    const struct workload_constant *constant;
    double before, after; /* in the file's unit */
    bool told;            /* the data can tell it; else it stays where it was */
};

#define CALIBRATE_CONSTANTS_MAX 64

struct calibrate_fit {
    struct calibrate_fitted constant[CALIBRATE_CONSTANTS_MAX];
    int n;
    double before, after; /* objective */
    int used;             /* runs with a memory label or peak */
};

/** Fit the memory constants of a profile to the runs that `use` marks.
 *
 *  Minimises, over the constants with a spread within their bounds,
 *
 *      sum over peaks  (log (estimate / measured) / residual)^2 / 2 + log residual
 *    - sum over labels log P(label)
 *    + sum over constants (log (value / start) / spread)^2 / 2,
 *
 *  P from memest_oom_probability: a maximum a posteriori fit with a log-normal prior.  A
 *  constant that changes the data's part by less than one half when moved by its spread
 *  either way is not told by the data and stays where it was.
 *
 *  @param[in]     use  [runs->n]; NULL: all
 *  @param[in,out] p    start and result
 *  @return ST_OK; ST_INVALID when no run has a peak or a label; ST_NOMEM
 */
enum status calibrate_memory (const struct calibrate_runs *runs, const bool *use,
                              struct workload_profile *p, struct calibrate_fit *fit,
                              struct error *err);

#endif
