/* Other tools' job descriptions and logs: what a training framework was told and what it printed,
 * as rows of a runs file (docs/import-job.md). */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "topology/topology.h"
#include "workload/workload.h"

#define JOBS_FILES_MAX 64
#define JOBS_COLUMNS 36 /* of a runs file (docs/runs.md) */

/** What the files need not say. */
struct jobs_given {
    int gpus, seq;        /* 0: not given */
    int gpus_per_node;    /* the same */
    const char *gpu;      /* type or spelling; NULL: not given */
    const char *file_gpu; /* the same where neither `gpu` nor a log says */
    int file_gpus;
};

/** An option that no table has: it may matter. */
struct jobs_unknown {
    const char *file; /* borrowed from the arguments */
    int line;
    char *key, *value;
};

/** What Megatron's timers tell of a step, on the slowest rank. */
enum jobs_timer {
    JOBS_TIMER_PASSES, /* forward and backward, pipeline and all */
    JOBS_TIMER_GRADIENTS,
    JOBS_TIMER_OPTIMIZER,
    JOBS_TIMERS
};

/** One run: a row, and what the row cannot hold. */
struct jobs_job {
    char *cell[JOBS_COLUMNS]; /* "" where unknown */
    bool has_model;           /* a preset or config.json: it is the row's shape exactly */
    struct workload_model model;
    int n_steps;                      /* lines with a step time, the first left out */
    double step_low_s, step_high_s;   /* their quartiles; NAN without them */
    double reserved_gb, allocated_gb; /* peaks, GiB; NAN: not printed */
    double timer_s[JOBS_TIMERS];      /* medians; NAN: not printed */
};

struct jobs {
    struct jobs_job *job; /* [n] one for each run of the logs, or one */
    int n;
    struct jobs_unknown *unknown; /* [n_unknown] in the order of files and lines */
    int n_unknown;
    struct text formats; /* "job.sh: Megatron-LM script", with ", " between */
};

/** Read the files of one job.
 *
 *  Scripts are read, not run: assignments, arrays, ${VAR:-default}, $((a * b)), simple `if`s.
 *  Where a log and the other files contradict each other the log holds, with a note; of two
 *  other files the later one.
 *
 *  @param[in]  file   [n] paths, "-" is standard input; they must outlive `out`
 *  @param[out] out    release with jobs_release
 *  @param      notes  what was assumed, what contradicts, what could not be evaluated
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID for a file that is empty or of no known kind, or
 *          where what no row can do without is nowhere (all of it is named)
 */
enum status jobs_read (const char *const *file, int n, const struct jobs_given *given,
                       struct jobs *out, struct notes *notes, struct error *err);
void jobs_release (struct jobs *j);

/** What a plan was priced by.  All borrowed. */
struct jobs_priced {
    const struct workload_profile *profile;
    const struct topology_gpu_type *gpu; /* of several the one that can least */
};

/** Write a framework's configuration file for a plan: its configuration, and the facts of the
 *  profile that the framework has an option for.
 *
 *  @param[out] out     the file; to be freed on failure too
 *  @param[out] beside  what the file cannot hold and the program must be told, as paragraphs for
 *                      a README; the same
 *  @return ST_OK; ST_NOMEM; ST_NOFIT for what the framework cannot be told: the reason, and
 *          what works
 */
typedef enum status jobs_writer (const struct workload_plan *p,
                                 const struct jobs_priced *by, struct text *out,
                                 struct text *beside, struct error *err);
jobs_writer
    jobs_megatron_write;     /* arguments, one a line, but the model's and the sequence */
jobs_writer jobs_nemo_write; /* overrides of a Megatron Bridge recipe, as YAML */
jobs_writer jobs_torchtitan_write; /* TOML */
jobs_writer jobs_deepspeed_write;  /* ds_config.json */

/** Does DeepSpeed's pipeline divide the plan's layers as the plan does, told "parameters"? */
bool jobs_deepspeed_splits (const struct workload_plan *p);

/** A type of numbers as runs files and options spell it, "bf16", "fp16" or "fp32", whatever its
 *  case and with PyTorch's or DeepSpeed's word; NULL: it is none of these. */
const char *jobs_dtype_of (const char *word);

/** The header of a runs file, with its newline. */
void jobs_header_text (struct text *out);
/** The job's row, with its newline. */
enum status jobs_row_text (const struct jobs_job *j, struct text *out, struct error *err);

#endif
