/* The linkwise program: subcommands, options, exit codes; no arithmetic. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "mapper/mapper.h"
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

/** Parse a whole number from lo to hi, or end with a usage error that names the option. */
int cli_int (const char *arg, const char *option, int lo, int hi,
             struct argp_state *state);
double cli_number (const char *arg, const char *option, double lo, double hi,
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

/** One configuration from the options, axes not given taking their defaults (degrees 1,
 *  ZeRO 1, sequence parallelism on where tp > 1, nothing recomputed, 1F1B). */
struct workload_config cli_job_config (const struct cli_job *in);

/** Layers of each stage: the option's list, or an even split.  @param[out] layers [pp] */
enum status cli_job_layers (const struct cli_job *in, const struct workload_model *m,
                            const struct workload_config *c, int *layers,
                            struct error *err);

/** A plan and the cluster that it is for: the argument, or the plan's own. */
enum status cli_plan_read (const char *plan_arg, const char *cluster_arg,
                           struct workload_plan *plan, struct topology_cluster **cluster,
                           struct workload_profile *profile, struct notes *notes,
                           struct error *err);

/** Note the ranks that are on drained nodes. */
void cli_note_drained (const struct topology_cluster *c, const int *gpu, int n,
                       struct notes *notes);

/** Note types that run at fp16's rate for want of bf16. */
void cli_note_types (const struct topology_cluster *c, enum workload_precision precision,
                     struct notes *notes);

/** Print a JSON document to standard output. */
enum status cli_print_json (json_t *doc, struct error *err);

/** "3.42 s", "12.1 ms": three digits. buf of 32 bytes. */
const char *cli_seconds (double s, char buf[32]);

/** Print where the step goes, one part a line. */
void cli_print_breakdown (const struct costmodel_estimate *e);

/** One line: degrees and the other choices. */
void cli_describe_config (const struct workload_config *c, struct text *out);

#endif
