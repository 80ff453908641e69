/* Shared by the files of calibrate/ alone. */
#ifndef CALIBRATE_CALIBRATE_PRIVATE_H
#define CALIBRATE_CALIBRATE_PRIVATE_H

#include "calibrate/calibrate.h"

#define COUNT_OF(ARRAY) (sizeof (ARRAY) / sizeof *(ARRAY))

#define CALIBRATE_SPELLED_MAX 96 /* bytes of a GPU type's spelling */

/** A row of a runs file. */
struct row {
    const struct csv_table *table;
    int index;
};

/** The columns of a model's shape. */
#define CALIBRATE_SIZES "layers hidden heads ffn vocab"

/** The model of a row.  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_model (const struct row *r, struct workload_model *m);

/** Sequence, batch, precision, kernels, adapters and states of the row, and the release that ran
 *  it.  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_job (const struct row *r, struct calibrate_run *run);

/** The GPUs and machines of the row: gpus, gpus_per_node, gpu, gpu_mem_gb,
 *  inter_node_gbps.  A number for each part of a mix has "/" or "+" between them.
 *  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_machines (const struct row *r, struct calibrate_run *run);

/** The layers of the row's stages under every partition: from Megatron's options for a
 *  smaller first or last stage, from a cut of the list of modules ("partition 0, 15, 30")
 *  among the notes, else from the framework's partition.  An even one whose layers do not
 *  divide, but would if embedding and head were one each, counts those as layers
 *  (DeepSpeed's type:transformer|embedding, Megatron's
 *  account-for-embedding-in-pipeline-split).
 *  @param[in,out] run  its model and degrees are read; `layers` is allocated
 *  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_layers (const struct row *r, struct calibrate_run *run);

/** Fill in what the row leaves out, and the ways it may have been run (see assume.c).
 *  @param[in,out] run  read but for that; its way and n_ways are written */
void calibrate_assume (struct calibrate_run *run, const struct workload_profile *p);

/** Is the profile of that source's framework? */
bool calibrate_names_source (const struct workload_profile *p, const char *source);

/** Is the profile the run's by its source or its framework, not by its GPU type alone? */
bool calibrate_serves (const struct workload_profile *p, const struct calibrate_run *run);

/** The shipped profiles, read once for many runs. */
struct calibrate_shelf {
    struct workload_profile *profile; /* [n] */
    int n;
};

enum status calibrate_shelf_open (struct calibrate_shelf *shelf, struct error *err);
void calibrate_shelf_close (struct calibrate_shelf *shelf);

/** As calibrate_profiles; reads `source` and GPU types of the run.  @param[out] out  a
 *  copy */
void calibrate_shelf_find (const struct calibrate_shelf *shelf,
                           const struct calibrate_run *run, struct workload_profile *out);

/** Count a row under a reason; the last of CALIBRATE_REASONS_MAX takes all that is new. */
void calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                             int row);

/** Has the run figures that the part's fit looks at? */
bool calibrate_has_figures (const struct calibrate_run *run, enum calibrate_part part);

/** Find the contract's columns in the table of a runs file; what is absent is noted.
 *  @return ST_OK; ST_INVALID, naming it, for a column that is twice there or that no row can
 *          do without */
enum status calibrate_check_columns (const char *path, struct calibrate_runs *runs,
                                     struct error *err);

/** The text of a cell by the column's name. */
const char *calibrate_cell (const struct row *r, const char *name);
/** A whole number of a cell, 0 to 2^30; absent when empty, -1 when it is none. */
int calibrate_whole (const struct row *r, const char *name, int absent);
/** A positive number of a cell, `absent` when it is empty; false when it is something
 *  else. */
bool calibrate_stated (const struct row *r, const char *name, double absent, double *x);
/** Does s contain part, whatever the case? */
bool calibrate_contains (const char *s, const char *part);

/** The same, whether words are joined by blanks, hyphens, underscores or nothing. */
bool calibrate_contains_name (const char *s, const char *name);
/** The value of `key=value` among the notes (separated by ";"). */
bool calibrate_note (const struct row *r, const char *key, char *value, size_t size);
/** A whole number among the notes, as calibrate_whole. */
int calibrate_note_int (const struct row *r, const char *key, int absent);
/** Is there key=true? */
bool calibrate_note_true (const struct row *r, const char *key);

/** Are model, GPUs, batch, precision, recomputation and degrees alike? */
bool calibrate_same_shape (const struct calibrate_run *a, const struct calibrate_run *b);

/** Runs of one configuration: of one shape, with one estimate.
 *  @param[in]  estimate  [runs->n] NAN: left out
 *  @param[out] first     [runs->n] the first run of its configuration; -1: left out
 *  @param[out] n         configurations
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_configurations (const struct calibrate_runs *runs,
                                      const double *estimate, int *first, int *n,
                                      struct error *err);

#define CALIBRATE_FEW_MOST 12 /* up to so many configurations are few */
/** Configurations that a profile's residual counts as. */
#define CALIBRATE_RESIDUAL_RUNS 5.0

/** Of a place's step times about the model's, root mean square, in logarithms. */
#define CALIBRATE_SCALE_SPREAD 0.12
/** Of its runs about that, where there are too few to say. */
#define CALIBRATE_ROW_SPREAD 0.06

/** May a fit move this constant of time? */
bool calibrate_may_move (const struct workload_constant *k, struct workload_profile *p);

/** How far its logarithm may be off in one place, its scale told, where runs are few. */
double calibrate_few_spread (const struct workload_constant *k);

/** d log (step time) / d log (constant); NAN where the time cannot be estimated. */
double calibrate_slope (const struct calibrate_run *run,
                        const struct topology_cluster *cluster,
                        const struct workload_profile *p,
                        const struct workload_constant *k);

/** Step times of a few configurations. */
struct calibrate_few {
    const struct calibrate_run **run;  /* [n] one of each */
    struct topology_cluster **cluster; /* [n] their machines */
    /* [n] logarithms of measured over estimated by the profile that the fit starts at: the mean
     * of its runs, and their variance about it */
    double *error, *noise;
    int n;
};

/** Fit a profile's time constants to a few configurations; see few.c.
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_few (const struct calibrate_few *runs, struct workload_profile *p,
                           struct error *err);

/** calibrate/record.json. */
extern const struct text_shipped calibrate_shipped_record[];

#endif
