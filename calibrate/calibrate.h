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

#define CALIBRATE_WAYS_MAX 32        /* two for each cell that may be open */
#define CALIBRATE_CAPACITY_MOST 64.0 /* of experts, over their mean of tokens */

/** A way that a run may have been where its row leaves it open. */
struct calibrate_way {
    int micro_batch, ep, vpp;
    enum workload_recompute recompute;
    int recompute_layers; /* of a stage, with RECOMPUTE_FULL; 0: all */
    enum workload_precision precision;
    double weight; /* of a run's ways, 1 in all */
};

/** What a row says that its framework did; each is the profile's where it says nothing. */
struct calibrate_facts {
    enum workload_choice
        data_overlap; /* gradients and parameters travel beside compute */
    enum workload_choice tensor_overlap;    /* tensor-parallel collectives in pieces */
    enum workload_choice exchange_overlap;  /* experts' all-to-alls beside compute, too */
    enum workload_choice half_gradients;    /* summed and reduced in 16 bits */
    enum workload_choice quantised_weights; /* fp8 and fp4 weights have no 16-bit copy */
    enum workload_choice fused_experts;     /* with their activation in one kernel */
    enum workload_choice fused_rotary;      /* rotary embeddings in one kernel */
    enum workload_choice fused_accumulation; /* of gradients, into the products */
    enum workload_choice whole_gradients;    /* of several micro-batches (no_sync) */
    enum workload_choice reduce_overlap; /* gradients' reduction alone beside compute */
    double reduced_bytes;                /* of a gradient on its way; 0: not said */
    /* DeepSpeed's limits and buckets, as in a profile's memory; 0: not said */
    double live_params, reduced_params, bucket_bytes;
};

/** An optimizer's moments, bytes a parameter. */
struct calibrate_moments {
    double narrow, wide; /* where the framework keeps states in 16 bits, and in fp32 */
};

/** One measured run: a row of a runs file that could be understood. */
struct calibrate_run {
    int row; /* of the file, the header not counted */
    char source[64];
    char framework[64];          /* what ran it, as the row spells it; "": not said */
    char release[16];            /* of what ran it, or its date; "": not said */
    struct workload_model model; /* its name is the row's */
    double assumed; /* spread of what is assumed of its shape, of a step's logarithm */
    struct workload_job job;
    struct workload_config config;
    /* Does the row state them?  Else they are those of the source's profile. */
    enum {
        STATES_USUAL,
        STATES_MIXED,
        STATES_PURE
    } states; /* what its precision's words say
                                                                of weights and moments */
    bool precision_said, attention_said, zero_said, recompute_said, micro_batch_said,
        sequence_parallel_said, tp_said, pp_said, ep_said, vpp_said, dropout_said;
    bool layers_open;  /* it says that some layers are recomputed, and not how many */
    bool offload_open; /* it says that it offloads, and not what: as its stage has it */
    bool splits_sequences;             /* with tensor parallelism, as it states */
    struct calibrate_facts facts;      /* of its framework, as the row has them */
    bool drops_tokens;                 /* experts have a capacity */
    double expert_capacity;            /* over their mean of tokens; 0: not said */
    enum workload_choice deduplicated; /* tokens go once to every node and GPU */
    enum workload_choice captured;     /* whole steps, in a CUDA graph */
    bool captured_parts;               /* parts of layers, in graphs of their own */
    bool chunked_loss;    /* logits are cast to fp32 a part at a time (torchtune) */
    bool fused_loss;      /* they exist an eighth at a time (Liger kernels) */
    bool fused_optimizer; /* AdamW in one kernel (adamw_torch_fused) */
    bool compiled;        /* by torch.compile */
    double logit_bytes;   /* of each, of a loss by a fused kernel; 0: not said */
    /* a parameter's weight, gradient and optimizer state; 0: not said */
    double state_bytes;
    const struct calibrate_moments *moments; /* of its optimizer; NULL: AdamW's usual */
    int *layers;       /* [WORKLOAD_PARTITIONS * pp] as the row says, else as each
                                  partition has them; entry p * pp + i is of stage i */
    const int *chunks; /* [pp * vpp] of a row that says them of every chunk, as
                          workload_stage_of_chunks takes them, behind `layers`; else NULL */
    struct {
        const struct topology_gpu_type *type;
        int nodes;
        double inter_bytes_per_s; /* of one node; 0: the type's usual */
    } part[CALIBRATE_TYPES_MAX];  /* GPU types in node order */
    int n_parts;
    /* the job and config have the likeliest */
    struct calibrate_way way[CALIBRATE_WAYS_MAX];
    int n_ways; /* 0: nothing is open */
    int gpus, gpus_per_node;
    double gpu_bytes; /* of one GPU, as its driver reports it; the least of a mix */
    /* What was measured; NAN where it was not */
    double iter_time_s;
    double peak_bytes;
    double static_bytes; /* weights, gradients, optimizer, as an allocator saw them */
    int oom;             /* 1 ran out, 0 ran, -1 unknown */
    const char *doubt_time, *doubt_peak; /* why these cannot be; NULL: they can */
};

/** Why rows are left out, and how many. */
#define CALIBRATE_REASON 160
struct calibrate_reason {
    char reason[CALIBRATE_REASON];
    int count, first_row; /* of the file, the header not counted */
};

/** A runs file's rows. */
struct calibrate_runs {
    struct calibrate_run *run; /* [n] */
    int n;
    struct calibrate_reason skipped[CALIBRATE_REASONS_MAX];
    int n_skipped;
    unsigned char
        *why; /* [table.rows] of a skipped row, its reason's place in `skipped` */
    /* measurements that cannot be: no fit takes them */
    struct calibrate_reason doubted[CALIBRATE_REASONS_MAX];
    int n_doubted;
    char absent[512]; /* columns that the header lacks, with commas; taken as empty */
    char meant[512];  /* those under other names: "num_gpus as gpus", with commas */
    char unread
        [512]; /* those of which it is not clear what they mean, and what they may */
    char ignored[512];      /* those that nothing here reads */
    struct csv_table table; /* the file itself, skipped rows too */
};

/** Read a runs file (docs/runs.md; "-" is standard input).
 *
 *  A row is skipped, and counted by reason, when its layers, hidden, heads, ffn, vocab,
 *  seq, gpus or global_batch is unknown, or its architecture or GPU is not supported, or
 *  its numbers contradict each other, or it has more or fewer cells than the header.
 *
 *  @param[out] r  release with calibrate_runs_release
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID when the header lacks a column that every
 *          row needs, or no row is left
 */
enum status calibrate_runs_read (const char *path, struct calibrate_runs *r,
                                 struct error *err);
/** The same of text.  @param[in] name  for messages */
enum status calibrate_runs_parse (const char *name, const char *data, size_t len,
                                  struct calibrate_runs *r, struct error *err);
void calibrate_runs_release (struct calibrate_runs *r);

/** The schedule among a row's notes ("schedule=zbv"), else the usual one for its chunks.
 *  @param[in,out] c  pp and vpp are those of the row; vpp becomes the schedule's
 *  @return false for a word that is no schedule's */
bool calibrate_schedule_noted (const char *notes, struct workload_config *c);

/** GPUs of one NVLink domain of the run's (first) machines: a node's, or a rack's. */
int calibrate_domain (const struct calibrate_run *run);

/** The machines of a run as a cluster: its nodes and GPU types, its `inter_node_gbps`,
 *  and the usual links of such machines where the row is silent, less in large jobs where
 *  the profile says so of its source's network.
 *  @param[out] out  destroy with topology_cluster_destroy */
enum status calibrate_cluster (const struct calibrate_run *run,
                               const struct workload_profile *p,
                               struct topology_cluster **out, struct error *err);

/** Standard deviation of log (measured / estimate) of memory for a framework that no
 *  profile names: the root mean square over five sources (BLOOM, BigScience's V100 runs,
 *  InternEvo, LitGPT, WTA-CRS) under the default profile, each counted once; leaving one
 *  out gives .37 to .44 (bench/accuracy.c prints it). */
#define CALIBRATE_UNKNOWN_RESIDUAL 0.40

/** The same for forks of Megatron-LM, and for itself on GPUs without fp8 where it is not that of
 *  2020 to 2022, under the default profile: the root mean square over BLOOM, BigScience's V100 runs
 *  and Korthikanti et al. is .24, and three say little of a fourth. */
#define CALIBRATE_FORK_RESIDUAL 0.30

/** The same of step times: the default profile on sources that no profile names and no
 *  framework's profile serves. */
#define CALIBRATE_UNKNOWN_TIME_RESIDUAL 0.2

/** Of the products' rate, what a framework reaches that nobody tuned an estimate to, Megatron's by
 *  any name excepted: the median of fifteen sources, their frameworks and names taken away
 *  (docs/accuracy.md). */
#define CALIBRATE_UNKNOWN_GEMM 0.95

/** Make a profile serve a framework that it does not know: its residual is that of unknown
 *  frameworks, and its runs' memory is the fullest rank's, with the driver's overheads and
 *  what the allocator keeps beside the optimizer's step.  They fit as lean as known ones keep
 *  it. */
void calibrate_profile_unknown (struct workload_profile *p);

/* ---- estimates ---- */

/** Standard deviation of log (measured / estimate) of a run's step time: the profile's, and
 *  more for what its row or its framework leaves open (docs/runs.md).
 *  @param open  calibrate_step's */
double calibrate_time_spread (const struct calibrate_run *run,
                              const struct workload_profile *p, double open);

/** The 90 % interval of the run's peak, a factor either way; wider where its shape is assumed. */
double calibrate_peak_interval (const struct calibrate_run *run,
                                const struct workload_profile *p);

/** Standard deviations that the GPU's memory is above what the run needs. */
double calibrate_deviations (const struct calibrate_run *run,
                             const struct workload_profile *p);

/** The chance that the run runs out of memory. */
double calibrate_chance (const struct calibrate_run *run,
                         const struct workload_profile *p);

/** The peak of the rank that the profile's runs measured, in bytes as they measured it
 *  (with the driver's overheads, or the allocator's). */
double calibrate_peak (const struct calibrate_run *run, const struct workload_profile *p);

/** What decides whether the run fits: the fullest rank, overheads included, as lean as what nobody
 *  states may be.  In a mix, the memory of a rank on larger GPUs is scaled down, so that all
 *  compare with `gpu_bytes`. */
double calibrate_need (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by);

/** Weights, gradients and optimizer state of the rank that was measured. */
double calibrate_static (const struct calibrate_run *run,
                         const struct workload_profile *p);

/** The step time of the run in Megatron's order on its machines: of its ways, the weighted mean of
 *  the logarithms.
 *  @param[in]  cluster  of calibrate_cluster
 *  @param[out] open     NULL, or the spread of these logarithms and of the host's launches
 *  @return ST_OK; ST_INVALID when ranks and GPUs do not agree or the type cannot run the
 *          precision; ST_NOMEM */
enum status calibrate_step (const struct calibrate_run *run,
                            const struct topology_cluster *cluster,
                            const struct workload_profile *p, double *step_s,
                            double *open, struct error *err);

/** Doubt step times that are a hundred times an estimate, or a hundredth: of another unit, mostly.
 *  @param[in] step_s  [runs->n] of calibrate_steps */
void calibrate_doubt_steps (struct calibrate_runs *runs, const double *step_s);

/** Step times of runs, and why some have none. */
struct calibrate_steps {
    double *step_s; /* [runs->n] NAN where it cannot be estimated */
    double *open;   /* [runs->n] calibrate_step's */
    struct calibrate_reason missing[CALIBRATE_REASONS_MAX];
    int n_missing;
};

/** calibrate_step of every run; one that cannot be estimated is counted by reason.
 *  @param[in]  profile  [runs->n] one for each
 *  @param[in]  progress  called before each run; NULL: never
 *  @param[out] out       release with calibrate_steps_release
 *  @return ST_OK; ST_NOMEM */
enum status calibrate_steps_estimate (const struct calibrate_runs *runs,
                                      const struct workload_profile *profile,
                                      void (*progress) (void *context, int done, int of),
                                      void *context, struct calibrate_steps *out,
                                      struct error *err);
void calibrate_steps_release (struct calibrate_steps *s);

/** The profile with what the run says of itself: its optimizer's bytes, how experts get their
 *  tokens, fused kernels and the like.  The estimates below do this on their own. */
struct workload_profile calibrate_profile_as_said (const struct calibrate_run *run,
                                                   const struct workload_profile *p);

/** The profile of every run: `forced` for all, or with NULL the shipped one that names its
 *  source, else its framework's, else its GPU type's (of a mix, the slowest one's), else the
 *  default; these two with the wider residuals of what nobody fitted, and but for Megatron's forks
 *  at a lower rate.  Of one that does not name the source, on GPUs without fp8 no tensor-parallel
 *  communication hides.  @param[out] out  [runs->n] */
enum status calibrate_profiles (const struct calibrate_runs *runs,
                                const struct workload_profile *forced,
                                struct workload_profile *out, struct error *err);

/** The profile that serves most rows by themselves, for a fit to start from; a note where others
 *  serve some.  @param[in] runs  one at least */
enum status calibrate_usual_profile (const struct calibrate_runs *runs,
                                     struct workload_profile *p, struct notes *notes,
                                     struct error *err);

/** What a fitted profile says of itself: its sources; the GPU types that its constants of time
 *  are of, and whether models with experts were among them; and what its framework can do, at
 *  least what these runs did.
 *  @param[in] timed  those of the runs that times were fitted to, perhaps none */
void calibrate_describe (const struct calibrate_runs *runs,
                         const struct calibrate_runs *timed, struct workload_profile *p);

/** The same by a published cost model. */
enum status calibrate_step_by (const struct calibrate_run *run,
                               const struct topology_cluster *cluster,
                               const struct workload_profile *p, enum costmodel_kind kind,
                               double *step_s, struct error *err);

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

/** What choosing by estimates costs: in every group of runs of one model, number of GPUs,
 *  sequence and batch, how much slower the run with the least estimate was than the
 *  fastest.  Runs with one estimate count as one, with the mean of their times. */
struct calibrate_regret {
    int groups;         /* of two estimates or more */
    int small;          /* groups with at most 2 % */
    double mean, worst; /* NAN and 0 without groups */
};

/** @param[in] run, estimate  [n] runs with a step time */
enum status calibrate_regret (const struct calibrate_run *const *run,
                              const double *estimate, int n, struct calibrate_regret *out,
                              struct error *err);

/** How well step times are met, and what choosing by them costs. */
struct calibrate_time_scores {
    struct calibrate_errors errors;
    struct calibrate_regret regret;
};

/** Score the runs that have a measured and an estimated time.
 *  @param[in] step_s  [runs->n] estimates; NAN: none
 *  @param[in] use     [runs->n] which of them; NULL: all */
enum status calibrate_score_times (const struct calibrate_runs *runs,
                                   const double *step_s, const bool *use,
                                   struct calibrate_time_scores *out, struct error *err);

/** How well labels are met by probabilities. */
struct calibrate_labels {
    int n, positive;
    double precision, recall; /* at probability .5 */
    double auc;               /* NAN when there is only one label */
    double brier;
    double precision_at_99; /* where recall first reaches .99 */
};

/** @param[in] score  [n] grows with the chance of a positive; compared with `threshold`
 *  @param[in] probability  [n] for the Brier score; NULL: it is NAN
 *  @param[in] label  [n] 0 or 1 */
enum status calibrate_labels (const double *score, double threshold,
                              const double *probability, const int *label, int n,
                              struct calibrate_labels *out, struct error *err);

/* ---- fits ---- */

/** A fit is of the memory or of the time constants. */
enum calibrate_part { CALIBRATE_MEMORY, CALIBRATE_TIME, CALIBRATE_PARTS };

/** The runs that a part can be fitted to: with a peak or label, or with a step time that
 *  can be estimated under p.
 *  @param[out] out  borrows the rows of `all`, which must outlive it; its `skipped` says
 *                   why measured step times cannot be estimated; free (out->run) */
enum status calibrate_runs_of (const struct calibrate_runs *all, enum calibrate_part part,
                               const struct workload_profile *p,
                               struct calibrate_runs *out, struct error *err);

#define CALIBRATE_CONTRADICTIONS_MAX 16
/** Repeats of one run are not further apart by noise. */
#define CALIBRATE_NOISE_MOST 1.5

/** What repeats of one run are compared by. */
enum calibrate_figure {
    CALIBRATE_FIGURE_PEAK,
    CALIBRATE_FIGURE_STEP,
    CALIBRATE_FIGURE_LABEL, /* of running out: 0 or 1 */
    CALIBRATE_FIGURES
};

/** Rows of one configuration, with figures that no noise explains. */
struct calibrate_contradiction {
    int rows;
    int low_row, high_row; /* of the file, the header not counted */
    double low, high;      /* B, s, or 0 and 1 */
};

/** Find them, among the runs that have the figure and an estimate under p.
 *  @param[out] out  [CALIBRATE_CONTRADICTIONS_MAX] in the file's order
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_contradictions (const struct calibrate_runs *runs,
                                      enum calibrate_figure figure,
                                      const struct workload_profile *p,
                                      struct calibrate_contradiction *out, int *n,
                                      struct error *err);

/** One constant of a fit. */
struct calibrate_fitted {
    const struct workload_constant *constant;
    double before, after; /* in the file's unit */
    bool told; /* the data determine it, and it is taken; else it keeps its value */
};

#define CALIBRATE_CONSTANTS_MAX 64

struct calibrate_fit {
    struct calibrate_fitted constant[CALIBRATE_CONSTANTS_MAX];
    int n;
    double before, after; /* objective */
    int used;             /* runs that have the part's figures */
    int configurations;   /* of them; repeats of one count once */
    bool few;             /* of times, so few that most constants are not told (few.c) */
    double taken; /* the part of what the runs tell, by how well it meets runs left out */
};

/** Fit a profile's constants of memory, or of time, to the runs that `use` marks.
 *
 *  Minimises, over the constants with a spread within their bounds,
 *
 *      sum over peaks  (log (estimate / measured) / residual)^2 / 2 + log residual
 *    - sum over labels log P(label)
 *    + sum over constants (log (value / start) / spread)^2 / 2,
 *
 *  P from memest_oom_probability: a maximum a posteriori fit with a log-normal prior.  A run counts
 *  by one over the runs of its configuration.  The profile's residual counts as
 *  CALIBRATE_RESIDUAL_RUNS configurations that scatter by it.  A
 *  constant that changes the data's part by less than one half when moved by its spread
 *  either way is not determined by the data and keeps its value.
 *
 *  @param[in]     use  [runs->n]; NULL: all
 *  @param[in,out] p    start and result
 *  @return ST_OK; ST_INVALID when no run has a peak or a label, or a step time that can be
 *          estimated; ST_NOMEM
 */
enum status calibrate_fit (const struct calibrate_runs *runs, enum calibrate_part part,
                           const bool *use, struct workload_profile *p,
                           struct calibrate_fit *fit, struct error *err);

/** The run to measure next. */
struct calibrate_next {
    bool found; /* else no run near those given would tell much; where any was tried,
                   the rest is of the best */
    int row;    /* of the run to change, the header not counted */
    const char *what;         /* that is changed */
    int from, to;             /* its values */
    struct calibrate_run run; /* changed; without layers, so that none can estimate it */
    /* that it narrows most; NULL: a scale of all times */
    const struct workload_constant *constant;
    /* Of that one's logarithm, standard deviations: with no run, with the runs given, with
     * the next one too */
    double prior_spread, spread, next_spread;
    /* Of the logarithms of step times near the runs given, by what the constants leave open: root
     * mean squares, with the runs given and with the next one too; 0: none was tried */
    double step_spread, next_step_spread;
};

/** Which run, that differs from one given by a factor of 2 or 4 in a degree, batch, sequence or
 *  GPUs, would tell most about the step times near these; see next.c.
 *  @param[in]  runs  with step times that can be estimated, one at least
 *  @param[in]  p     as fitted to them
 *  @param[in]  few   were they few for that fit?
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_next_run (const struct calibrate_runs *runs,
                                const struct workload_profile *p, bool few,
                                struct calibrate_next *out, struct error *err);

/* ---- estimates scored ---- */

/** Memory peaks (or, with `states`, weights, gradients and optimizer state) beside what
 *  was measured, of the runs that have it.
 *
 *  @param[in] profile  [runs->n] one for each
 *  @param[in] use      [runs->n] which of them; NULL: all */
enum status calibrate_memory_errors (const struct calibrate_runs *runs,
                                     const struct workload_profile *profile, bool states,
                                     const bool *use, struct calibrate_errors *out,
                                     struct error *err);

/** Share of the measured peaks within the 90 % interval about their estimates that the
 *  profiles' residuals give: a factor of exp (1.645 residual) either way.  NAN without
 *  peaks.  @param use  [runs->n]; NULL: all */
double calibrate_memory_coverage (const struct calibrate_runs *runs,
                                  const struct workload_profile *profile,
                                  const bool *use);

/** The same of step times, each with its run's own interval.
 *  @param[in] step_s, open  [runs->n] of calibrate_steps
 *  @param[in] use           [runs->n] which of them; these have both times */
double calibrate_time_coverage (const struct calibrate_runs *runs,
                                const struct workload_profile *profile,
                                const double *step_s, const double *open,
                                const bool *use);

/** The accuracy on record of a shipped profile, whatever its release, on a GPU type: how far
 *  estimates of published runs are off (docs/accuracy.md).  `here` is a list of at most two records
 *  of calibrate/record.json, of runs that the profile was made from and of others; `other_gpus`
 *  sums up this profile on other types, `other_profiles` others on this type.
 *  @return a new reference; NULL: out of memory */
json_t *calibrate_record (const struct workload_profile *p, const char *gpu);

/** What a step's spread grows by on a GPU type, squares added, where its constants are data sheets'
 *  and its kin's alone: no run on record has a step time on it, nor on the same GPU with other
 *  memory, and nothing of it was measured; else 0. */
double calibrate_type_spread (const struct topology_gpu_type *t);

/** The types of GPU that a step waits for, taken in one after the other.  Starts as {.n = 0}. */
enum { CALIBRATE_STEP_TYPES = 8 }; /* that are known again */
struct calibrate_step_types {
    const struct topology_gpu_type *type[CALIBRATE_STEP_TYPES];
    int n; /* types, those beyond them counted again and again */
    bool unfitted;
    double most; /* calibrate_type_spread of those that the profile was not fitted on */
};
void calibrate_step_types_add (struct calibrate_step_types *t,
                               const struct workload_profile *p,
                               const struct workload_model *m,
                               const struct topology_gpu_type *type);

/** Standard deviation of log (measured / estimate) of a step on all of these: workload_step_spread,
 *  and what the type that least is known of adds.  Every interval, and the error within which a
 *  plan counts ties, is of this. */
double calibrate_step_spread (const struct calibrate_step_types *t,
                              const struct workload_profile *p,
                              const struct workload_model *m);

/** Out-of-memory labels beside what `by` says: a run is said to run out when its need
 *  reaches `threshold` times the GPU's memory (1: probability .5; Fujii's rule: .8). */
enum status calibrate_memory_labels (const struct calibrate_runs *runs,
                                     const struct workload_profile *profile,
                                     enum memest_model by, double threshold,
                                     struct calibrate_labels *out, struct error *err);

/* ---- held out ---- */

/** Which runs are left out together: those of one model, of one size cut alike (degrees,
 *  micro-batch and precision), or of one shape, which has their batch, sequence and recomputation
 *  alike, too. */
enum calibrate_grouping { CALIBRATE_BY_MODEL, CALIBRATE_BY_CONFIG, CALIBRATE_BY_SHAPE };

/** Number the runs' groups from 0, in order of first appearance.
 *  @param[out] group  [runs->n]
 *  @param[out] n      how many groups */
enum status calibrate_groups (const struct calibrate_runs *runs,
                              enum calibrate_grouping by, int *group, int *n,
                              struct error *err);
/** The same by model where there are `least` models, else by configuration, or by shape where
 *  there is one of those alone. */
enum status calibrate_groups_of (const struct calibrate_runs *runs, int least,
                                 enum calibrate_grouping *by, int *group, int *n,
                                 struct error *err);

/** For every group, a profile with the part's constants fitted on the other groups' runs.
 *  It is the prior where those, or the group itself, have no such figures.
 *
 *  @param[in]  group     [runs->n] 0 to n_groups - 1; a number may be unused
 *  @param[in]  progress  called before each fit; NULL: never
 *  @param[out] out       [runs->n] the profile that did not see this run */
enum status calibrate_held_out (const struct calibrate_runs *runs, const int *group,
                                int n_groups, enum calibrate_part part,
                                const struct workload_profile *prior,
                                void (*progress) (void *context, int done, int of),
                                void *context, struct workload_profile *out,
                                struct error *err);

#endif
