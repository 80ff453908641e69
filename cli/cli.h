/* The linkwise program: subcommands, options, exit codes; no arithmetic. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "api/api.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "cli/arguments.h"
#include "mapper/mapper.h"
#include "report/report.h"
#include "topology/survey/survey.h"
#include "topology/topology.h"
#include "workload/workload.h"

/* The commands. */
extern const struct cli_command cli_plan, cli_mem, cli_time, cli_eval, cli_explain,
    cli_check, cli_emit, cli_compare, cli_report, cli_topo, cli_bind, cli_validate,
    cli_calibrate, cli_import_job, cli_gpus, cli_models, cli_cluster_show,
    cli_cluster_check, cli_cluster_merge, cli_cluster_import, cli_cluster_layers,
    cli_cluster_drain, cli_cluster_synth, cli_cluster_export;

/* ---- options that several commands share ---- */

/* Whole lines of a table of options; INPUT has `bool json`, `enum costmodel_kind kind`. */
#define CLI_JSON "json", 'j', NULL, "print one JSON document", CLI_FLAG (json)
#define CLI_OUTPUT                                                                  \
    "output", 'o', "FILE", "write this file; - is standard output", CLI_TEXT (out), \
        .needed = true
#define CLI_LAYERS                    \
    "layers-per-stage", 0, "N,N,...", \
        "layers of each stage (default: the profile's split)", CLI_TEXT (job.layers)
#define CLI_COST_MODEL                                                                \
    "cost-model", 0, "critical-path|pipette|amp",                                     \
        "step-time model: linkwise's critical-path (default), or a published one to " \
        "compare with",                                                               \
        CLI_PARSED (cli_parse_cost_model, enum costmodel_kind, kind)
bool cli_parse_cost_model (const char *word, void *kind);

/** The job and its split; MAPPER_FREE or 0 where not given. */
struct cli_job {
    struct workload_job job;
    struct mapper_axes axes;
    const char *profile;
    const char *layers; /* comma-separated, as given; NULL */
    int mtp_layers;     /* -1: as the model has */
    enum memest_model memory_model;
    double memory_limit_pct; /* 0: the memory model's usual one */
    double oom_risk;
};
extern const struct cli_options cli_job_options;

/* ---- what-if ---- */

#define CLI_WHAT_IF                                                                  \
    "what-if", 0, "CHANGES",                                                         \
        "estimate the plan's step after changes of the cluster, each alone and all " \
        "together, in place and replanned, as in \"drain n7; link n3->n9 = 25; "     \
        "gpu n2:4 speed 0.7; +2 nodes like n1; nodes 12; type h200-sxm-141g\" "      \
        "(docs/whatif.md)",                                                          \
        CLI_TEXT (what_if)
/** report_whatif_run with a progress line. */
enum status cli_whatif_run (const struct report_whatif_plan *plan,
                            struct report_whatif *w, struct error *err);
void cli_whatif_print (const struct report_whatif *w);

/* ---- inputs ---- */

/** Is it "-", standard input or output?  False for NULL. */
bool cli_is_dash (const char *arg);

enum cli_place { CLI_CLUSTER, CLI_MODEL, CLI_PLAN };
/** Add to an error of reading an argument what to type instead, where that can be told.
 *  @param[in] st  ST_OK: there is no error
 *  @return st */
enum status cli_hint (enum cli_place place, const char *arg, enum status st,
                      struct error *err);
/** api_cluster_read and api_plan_read, their errors with that. */
enum status cli_cluster_read (const char *arg, struct linkwise_cluster **out,
                              struct notes *notes, struct error *err);
enum status cli_plan_read (const char *arg, const char *cluster, struct linkwise_plan *x,
                           struct notes *notes, struct error *err);
/** "-" as messages name it, other arguments as they are. */
const char *cli_input_name (const char *arg);

/** End with a usage error if n > 1 inputs are standard input. */
void cli_one_stdin (int n, struct argp_state *state);

/** A host list that an option was given.  "@FILE", "@-" for standard input, stands for what is in
 *  the file: names that the cluster does not have are noted there, not refused.
 *
 *  @param[in]     empty_ok  false: a file without a node of the cluster is ST_INVALID
 *  @param[in,out] list      as given, or NULL; then kept's text, or NULL where that is empty
 *  @param[in,out] kept      zeros; freed by the caller once the list is done with
 *  @return ST_OK; as file_read and topology_hostlist_known */
enum status cli_hosts_read (const struct topology_cluster *c, const char *option,
                            bool empty_ok, const char **list, struct text *kept,
                            struct notes *notes, struct error *err);
/** Is it standard input that the list is in? */
bool cli_hosts_stdin (const char *list);

/** The options' memory limit into a plan. */
void cli_job_limit (const struct cli_job *in, struct workload_plan *plan);

/** Read the model and the job's profile, and check the job against the model; the plan's
 *  limits are the options'.
 *  @param[in] on  the GPU types that a profile is chosen for */
enum status cli_job_read (const struct cli_job *in, const char *model,
                          const struct workload_gpus *on, struct linkwise_plan *x,
                          struct notes *notes, struct error *err);

/** Complete the plan's configuration by what is usual, check it, and lay its stages' layers: as the
 *  option lists them, or by the profile's split. */
enum status cli_job_config (const struct cli_job *in, struct linkwise_plan *x,
                            struct error *err);

/* ---- messages ---- */

/** Be quiet from now on: no progress line, no warnings.  Told once, before a command begins. */
void cli_be_quiet (void);
bool cli_is_quiet (void);

/** progress_start; the line is not shown where the command is to be quiet. */
void cli_progress_start (struct progress *p);

/** Print the notes as warnings of "linkwise NAME" unless that is quiet, and release them. */
void cli_warn (const char *who, struct notes *notes);

/** A watch that shows "looking at links: 40 %" on the progress line. */
struct topology_watch cli_watch (struct progress *p);

/** For report_explain: the line "looking at WHAT" on the struct progress that is its context. */
void cli_looking (void *context, double share, const char *what);

/** Print a JSON document to standard output. */
enum status cli_print_json (json_t *doc, struct error *err);

/** What figures come from, as the object `parts` of docs/outputs.md.  New references.
 *  @param[in] node  [n] whose GPU types are named, each once */
json_t *cli_parts_json (const struct workload_profile *p,
                        const struct topology_node *node, int n);
/** Its keys about the profile alone; of a GPU type, without its record. */
json_t *cli_framework_json (const struct workload_profile *p);
json_t *cli_gpu_type_json (const struct topology_gpu_type *t);
/** Print which profile serves and why, and where each GPU type's constants come from. */
void cli_print_parts (const struct workload_profile *p, const struct topology_cluster *c);
/** Print the accuracy on record of the profile on each GPU type of the cluster. */
void cli_print_record (const struct workload_profile *p,
                       const struct topology_cluster *c);

/** "3.42 s", "12.1 ms": three digits. buf of 32 bytes. */
const char *cli_seconds (double s, char buf[32]);

/** The 90 % interval of a step on these GPUs, as a factor either way (docs/outputs.md), by
 *  calibrate_step_spread.  NAN where a published model prices: nobody
 *  fitted its error.
 *  @param[in] gpu  [n] cluster-wide: types that no rank is on widen nothing */
double cli_step_interval (enum costmodel_kind by, const struct workload_profile *p,
                          const struct workload_model *m,
                          const struct topology_cluster *c, const int *gpu, int n);
/** A step with its interval: "29.846 s (90 % of runs: 26.2 to 34.0 s)"; without it where the
 *  factor is NAN. */
#define CLI_STEP_TEXT 96
const char *cli_step_text (double step_s, double factor, char buf[CLI_STEP_TEXT]);
/** The same of a stage's peak of memory; its chance of running out is of the same spread. */
double cli_peak_interval (enum memest_model by, const struct workload_profile *p,
                          const struct memest_stage *s);
/** "; 90 % of runs: 47.2 to 55.3 GiB", or nothing where the factor is NAN. */
const char *cli_peak_text (double peak_bytes, double factor, char buf[CLI_STEP_TEXT]);
/** The ends of an interval as keys of a document; null where the factor is NAN. */
void cli_interval_json (json_t *doc, double value, double factor, const char *low,
                        const char *high);

/** A probability in percent, "< 0.001 %" when tiny, words for NAN. buf of 32 bytes. */
const char *cli_chance (double p, char buf[32]);

/** Print where the step goes, one part a line. */
void cli_print_breakdown (const struct costmodel_estimate *e);
/** Which links are nominal, as in "inside and between nodes"; NULL: none. */
const char *cli_nominal (const struct topology_cluster *c);
/** Print a line on the estimated links that `who` uses, where there are any. */
void cli_print_estimated (const struct costmodel_estimate *e, const char *who);

/** The object `diff` of docs/outputs.md.  A new reference. */
json_t *cli_diff_json (const struct topology_cluster *old, const struct topology_diff *d);

/** Columns that the file's header lacks, as a warning. */
void cli_note_columns (const struct calibrate_runs *runs, struct notes *notes);
/** Measurements that cannot be. */
void cli_note_doubts (const struct calibrate_runs *runs, struct notes *notes);

/** Say how many rows of a runs file serve, and why the others do not. */
void cli_print_rows (const char *path, const struct calibrate_runs *runs);
/** The same as "rows", "used" and "skipped".  A new reference. */
json_t *cli_rows_json (const struct calibrate_runs *runs);

/** Print why step times cannot be estimated, if some cannot. */
void cli_print_missing (const struct calibrate_reason *missing, int n);

/** How well estimates meet what was measured. */
struct cli_scores {
    struct calibrate_errors peaks, states;
    double coverage;                       /* part of the peaks in their 90 % intervals */
    struct calibrate_labels labels, fujii; /* by linkwise's memory model and by Fujii's */
    struct calibrate_time_scores times;
};

/** @param[in] profile  [runs->n] that estimate
 *  @param[in] step_s   [runs->n] estimated; NULL: times are not scored
 *  @param[in] use      [runs->n] which count; labels are not scored then; NULL: all */
enum status cli_score (const struct calibrate_runs *runs,
                       const struct workload_profile *profile, const double *step_s,
                       const bool *use, struct cli_scores *s, struct error *err);

/** Scores as objects with the units in their keys; unknown ones are null.  New
 *  references. */
json_t *cli_errors_json (const struct calibrate_errors *e);
json_t *cli_labels_json (const struct calibrate_labels *l);
/** "step", errors, and "regret". */
json_t *cli_times_json (const struct calibrate_time_scores *s);
/** Reasons as a list of "reason", "rows" and "first_row".  A new reference. */
json_t *cli_reasons_json (const struct calibrate_reason *list, int n);

/** printf, with control characters replaced: what files name must not reach a terminal as
 *  it is. */
void cli_print (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
/** The same of a part of a line: newlines are replaced too. */
void cli_print_inline (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/* ---- colour ---- */

/** Words of --color in their order, and what a terminal has. */
enum { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };
enum cli_colors { CLI_COLORS_NONE, CLI_COLORS_256, CLI_COLORS_ALL };

/** None where nobody asked for them and standard output is no terminal that says that it has
 *  them, or NO_COLOR is set. */
enum cli_colors cli_colors (int when);
/** Print a cell's text on its shade; without colours the text alone. */
void cli_paint (enum cli_colors colors, struct topology_shade shade, const char *text);

/** Print which stage every GPU serves: a row a node, at most two dozen lines in the columns of the
 *  terminal (100 where there is none).
 *  @param[in] gpu  [world] cluster-wide GPU of each rank */
enum status cli_print_places (const struct topology_cluster *c,
                              const struct workload_degrees *d, const int *gpu,
                              struct error *err);

/** Print the table or the document, and release both. */
enum status cli_answer (bool json, struct table *t, json_t *doc, struct error *err);

/** Add what a check found to the table and the list of a document.
 *  @param[in] verdict  0: ok, 1: a note, 2: failed, as check and topology have them */
void cli_finding (struct table *t, json_t *list, const char *what, int verdict,
                  const char *found);

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

/** A published model in words. */
const char *cli_model_authors (enum costmodel_kind kind);

/** Print which link binds (NULL: none), and what sharing costs, where either is worth a
 *  hundredth of a percent. */
void cli_print_binding (const struct topology_cluster *c,
                        const struct costmodel_binding *b, double unshared_step_s,
                        double step_s);

/** Degrees and the other choices, as in a sentence. */
#define CLI_CONFIG_TEXT 320
const char *cli_config_text (const struct workload_config *c, char buf[CLI_CONFIG_TEXT]);
/** Those of them that are others than before; "": none. */
const char *cli_config_change (const struct workload_config *c,
                               const struct workload_config *from,
                               char buf[CLI_CONFIG_TEXT]);

#endif
