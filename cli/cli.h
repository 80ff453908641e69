/* The linkwise program: subcommands, options, exit codes; no arithmetic. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "mapper/mapper.h"
#include "topology/survey/stats.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** A subcommand: argv[0] is its name.  @return the program's exit code */
struct cli_command {
    const char *name;
    const char *what; /* one line for the list of commands */
    int (*run) (int argc, char **argv);
};

/* One file each. */
int cli_plan (int argc, char **argv);
int cli_mem (int argc, char **argv);
int cli_time (int argc, char **argv);
int cli_eval (int argc, char **argv);
int cli_check (int argc, char **argv);
int cli_emit (int argc, char **argv);
int cli_validate (int argc, char **argv);
int cli_calibrate (int argc, char **argv);
int cli_topo (int argc, char **argv);
int cli_cluster (int argc, char **argv);
int cli_compare (int argc, char **argv);
int cli_bind (int argc, char **argv);
int cli_gpus (int argc, char **argv);
int cli_models (int argc, char **argv);

/* ---- options that several commands share ---- */

/** The job and its split; MAPPER_FREE or 0 where not given. */
struct cli_job {
    int seq, global_batch;
    struct mapper_axes axes;
    enum workload_precision precision;
    enum workload_attention attention;
    const char *profile;
    const char *layers; /* comma-separated, as given; NULL */
    enum workload_choice fused_norm, fused_mlp, gathered_logits;
    double wta_crs;
    bool lora;
    enum memest_model memory_model;
    double memory_limit_pct; /* 0: the memory model's usual one */
    double oom_risk;
};

/** The limit in percent: as given, else 80 under Fujii's model and 95 otherwise. */
double cli_memory_limit (const struct cli_job *j);

/** Defaults before parsing. */
struct cli_job cli_job_default (void);

/** An argp child that fills the struct cli_job that is its input. */
extern const struct argp cli_job_argp;

/** Parse a whole number from lo to hi, or a number above lo, up to hi, or end with a usage
 *  error that names the option. */
int cli_int (const char *arg, const char *option, int lo, int hi,
             struct argp_state *state);
double cli_number (const char *arg, const char *option, double lo, double hi,
                   struct argp_state *state);
/** The same from 0, which counts, to hi. */
double cli_number_from_0 (const char *arg, const char *option, double hi,
                          struct argp_state *state);

/** argp_parse with the program's habits: usage errors exit 2, "linkwise NAME" in
 *  messages. */
void cli_parse (const struct argp *argp, int argc, char **argv, void *input);

/* ---- messages ---- */

/** Print "linkwise NAME: text" to standard error and return the status's exit code; 0 and
 *  silence for ST_OK. */
int cli_end (const char *command, enum status st, const struct error *err);
/** Print the notes as warnings, and release them. */
void cli_warn (const char *command, struct notes *notes);

/* ---- inputs ---- */

/** Read the job's profile and check the job against the model. */
enum status cli_job_resolve (const struct cli_job *in, const struct workload_model *m,
                             struct workload_job *job, struct workload_profile *profile,
                             struct notes *notes, struct error *err);

/** The search that the options ask for, on all nodes that are not drained. */
struct mapper_problem cli_problem (const struct cli_job *in,
                                   const struct workload_model *m,
                                   const struct workload_job *job,
                                   const struct workload_profile *profile,
                                   const struct topology_cluster *c);

/** One configuration from the options, axes not given taking their defaults (degrees 1,
 *  ZeRO 1, sequence parallelism on where tp > 1, nothing recomputed, 1F1B). */
struct workload_config cli_job_config (const struct cli_job *in);

/** Layers of each stage: the option's list, or the profile's split.
 *  @param[out] layers [pp] */
enum status cli_job_layers (const struct cli_job *in, const struct workload_model *m,
                            const struct workload_config *c,
                            const struct workload_profile *profile, int *layers,
                            struct error *err);

/** A plan and the cluster that it is for: the argument, or the plan's own. */
enum status cli_plan_read (const char *plan_arg, const char *cluster_arg,
                           struct workload_plan *plan, struct topology_cluster **cluster,
                           struct workload_profile *profile, struct notes *notes,
                           struct error *err);

/** Set allowed[] of the nodes of a host list to value, or with "rack:LIST" of all nodes in
 *  racks or below switches of those names; a drained node is never allowed.
 *  @return ST_OK, ST_NOMEM, or ST_USAGE for a list or name that is not right */
enum status cli_mark_nodes (const struct topology_cluster *c, const char *list,
                            const char *option, bool value, bool *allowed,
                            struct error *err);

/** The file that a cluster of more than 256 nodes is referred to by in a plan, and the
 *  digest of its text.  @param[out] file  arg, or NULL where the cluster is written whole */
enum status cli_cluster_reference (const char *arg, const struct topology_cluster *c,
                                   const char **file, char hex[65], struct error *err);

/** A plan's document as it can be read from any folder: with the cluster that was given
 *  for it, and its file's name made absolute.  @param[out] out  a new reference */
enum status cli_plan_document (const struct workload_plan *plan, const char *cluster_arg,
                               const struct topology_cluster *c, json_t **out,
                               struct error *err);
/** Note the ranks that are on drained nodes. */
void cli_note_drained (const struct topology_cluster *c, const int *gpu, int n,
                       struct notes *notes);

/** Note a type, or all of a cluster's, that run at fp16's rate for want of bf16; true if
 *  it does. */
bool cli_note_type (const struct topology_gpu_type *t, enum workload_precision precision,
                    struct notes *notes);
void cli_note_types (const struct topology_cluster *c, enum workload_precision precision,
                     struct notes *notes);

/** Whether standard output takes colour: "always", "never", or "auto" (a terminal, and
 *  NO_COLOR is empty or not set). */
bool cli_color (const char *when);

/** A watch that shows "looking at links: 40 %" on the progress line. */
struct topology_watch cli_watch (struct progress *p);

/** Print a JSON document to standard output. */
enum status cli_print_json (json_t *doc, struct error *err);

/** "3.42 s", "12.1 ms": three digits. buf of 32 bytes. */
const char *cli_seconds (double s, char buf[32]);

/** A probability in percent, "< 0.001 %" when tiny, words for NAN. buf of 32 bytes. */
const char *cli_chance (double p, char buf[32]);

/** Print where the step goes, one part a line. */
void cli_print_breakdown (const struct costmodel_estimate *e);
/** Add a line on the estimated links that `who` uses, where there are any. */
void cli_say_estimated (const struct costmodel_estimate *e, const char *who,
                        struct text *out);

/** Columns that the file's header lacks, as a warning. */
void cli_note_columns (const struct calibrate_runs *runs, struct notes *notes);

/** Say how many rows of a runs file serve, and why the others do not. */
void cli_print_rows (const char *path, const struct calibrate_runs *runs);
/** The same as "rows", "used" and "skipped" of a document. */
enum status cli_rows_json (json_t *doc, const struct calibrate_runs *runs,
                           struct error *err);

/** Print why step times cannot be estimated, if some cannot. */
void cli_print_missing (const struct calibrate_reason *missing, int n);

/** Scores as objects with the units in their keys; unknown ones are null.  New
 *  references. */
json_t *cli_errors_json (const struct calibrate_errors *e);
json_t *cli_labels_json (const struct calibrate_labels *l);
/** "step", errors, and "regret". */
json_t *cli_times_json (const struct calibrate_time_scores *s);
/** Reasons as a list of "reason", "rows" and "first_row".  A new reference. */
json_t *cli_reasons_json (const struct calibrate_reason *list, int n);

/** A table's next cell: the number, in two digits above 1e6, or "-" when it is not
 *  finite. */
void cli_cell (struct table *t, const char *format, double value)
    __attribute__ ((format (printf, 2, 0)));
/** Cells AUC, precision, recall, precision at recall .99 and Brier score. */
void cli_label_cells (struct table *t, const struct calibrate_labels *l);
/** Cells MAPE, median, bias and worst error in percent. */
void cli_error_cells (struct table *t, const struct calibrate_errors *e);
/** Those, Spearman, Kendall, mean regret in percent, and "3 of 5" groups within 2 %. */
void cli_time_cells (struct table *t, const struct calibrate_time_scores *s);
/** Their headers. */
#define CLI_TIME_HEADERS                                                                \
    "MAPE %", "median %", "bias %", "worst %", "Spearman", "Kendall", "regret, mean %", \
        "groups with regret <= 2 %"

/** The option --cost-model of several commands, in a group of their help. */
enum { CLI_OPT_COST_MODEL = 1024 };
#define CLI_COST_MODEL_OPTION(group)                                               \
    {                                                                              \
        "cost-model", CLI_OPT_COST_MODEL, "critical-path|pipette|amp", 0,          \
            "whose way of putting a step together (default: critical-path)", group \
    }
enum costmodel_kind cli_cost_model (const char *arg, struct argp_state *state);

/** A published model in words. */
const char *cli_model_authors (enum costmodel_kind kind);

/** Print which link binds (NULL: none), and what sharing costs, where either is worth a
 *  hundredth of a percent. */
void cli_print_binding (const struct topology_cluster *c,
                        const struct costmodel_binding *b, double unshared_step_s,
                        double step_s);

/** One line: degrees and the other choices. */
void cli_describe_config (const struct workload_config *c, struct text *out);

#endif
