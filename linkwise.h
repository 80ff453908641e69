/* liblinkwise: how a training job is split over a GPU cluster, and which rank runs on which
 * GPU.
 *
 *     struct linkwise_cluster *cluster = NULL;
 *     struct linkwise_model *model = NULL;
 *     struct linkwise_plan *plan = NULL;
 *     struct linkwise_job job = linkwise_job (4096, 1024);
 *     struct linkwise_error err;
 *
 *     if (linkwise_cluster_read ("cluster.json", &cluster, NULL, &err) == LINKWISE_OK &&
 *         linkwise_model_read ("llama-2-70b", &model, NULL, &err) == LINKWISE_OK &&
 *         linkwise_search (cluster, model, NULL, &job, NULL, NULL, &plan, NULL, &err) ==
 *             LINKWISE_OK)
 *         linkwise_plan_emit (plan, "slurm", "launch", NULL, &err);
 *     else
 *         fprintf (stderr, "%s\n", err.text);
 *     linkwise_plan_destroy (plan);
 *     linkwise_model_destroy (model);
 *     linkwise_cluster_destroy (cluster);
 *
 * Build with `cc ... $(pkg-config --cflags --libs linkwise)`.  The library is distributed
 * under GPL-3.0-or-later as a whole, since it links GLPK.
 *
 * Errors.  A function that can fail returns enum linkwise_status and takes struct
 * linkwise_error last, which may be NULL.  The text says where, what was expected and what
 * was found.  On failure no output is touched.  NULL where an object is required, and a
 * struct of an unknown size, are errors like others.  The library never prints and never
 * ends the process.
 *
 * Objects.  Who creates an object destroys it; destroying NULL does nothing.  A plan keeps a
 * reference to its cluster: either may be destroyed first.  Pointers that a function returns
 * (names, ranks) belong to the object and live as long as it does, unless the function says
 * that the caller frees them (linkwise_free).
 *
 * Structs that callers fill begin with their size, which the functions of the same name set:
 * start from these and change members.  A later version may append members; programs that
 * were built before keep working.
 *
 * Threads.  Functions may be called from several threads at once as long as no two of them
 * use one object at the same time and one of the two is its destroy function.  A search uses
 * threads of its own (OpenMP) and leaves the caller's settings alone.
 *
 * Units.  Seconds, bytes, bytes per second; GB is 1e9 bytes.  A number that nobody measured
 * or that does not exist is NaN or, for a step that cannot run, INFINITY.
 */
#ifndef LINKWISE_H
#define LINKWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#define LINKWISE_API __attribute__ ((visibility ("default")))
#else
#define LINKWISE_API
#endif

enum linkwise_status {
    LINKWISE_OK = 0,
    LINKWISE_INVALID, /* bad content, or a degree or batch that does not fit */
    LINKWISE_IO,      /* a file cannot be read or written */
    LINKWISE_NOMEM,   /* out of memory */
    LINKWISE_USAGE, /* an argument that cannot be: NULL, an unknown word, a wrong size */
    LINKWISE_NOFIT  /* well-formed, but nothing fits or nothing is connected */
};

struct linkwise_error {
    char text[2048]; /* one line; "" when nothing was set */
};

/** "0.1.0": of the library that runs, not of this header. */
LINKWISE_API const char *linkwise_version (void);

/** Release a text that the library handed over; NULL is fine. */
LINKWISE_API void linkwise_free (char *text);

/* ---- warnings ---- */

/** Remarks on inputs that were accepted: unknown keys, assumptions, launchers that cannot
 *  express a plan.  Functions that may have some take such a list, or NULL. */
struct linkwise_notes;
/** @return NULL when out of memory */
LINKWISE_API struct linkwise_notes *linkwise_notes_create (void);
LINKWISE_API void linkwise_notes_destroy (struct linkwise_notes *n);
LINKWISE_API int linkwise_notes_count (const struct linkwise_notes *n);
/** @return the i-th, or NULL */
LINKWISE_API const char *linkwise_notes_at (const struct linkwise_notes *n, int i);

/* ---- clusters ---- */

/** Nodes, GPUs and directed links (docs/cluster.md). */
struct linkwise_cluster;

/** Read a cluster file, a cluster on one line ("2x8 h100-sxm5-80g intra:370 inter:48"), or
 *  "-" for standard input. */
LINKWISE_API enum linkwise_status linkwise_cluster_read (const char *arg,
                                                         struct linkwise_cluster **out,
                                                         struct linkwise_notes *notes,
                                                         struct linkwise_error *err);

/** The same from a cluster file's text.
 *  @param[in] folder  where relative .npy names are looked up; NULL: the current folder */
LINKWISE_API enum linkwise_status linkwise_cluster_parse (const char *json,
                                                          const char *folder,
                                                          struct linkwise_cluster **out,
                                                          struct linkwise_notes *notes,
                                                          struct linkwise_error *err);
LINKWISE_API void linkwise_cluster_destroy (struct linkwise_cluster *c);

/** The cluster file's text, with matrices inline.  @param[out] json  linkwise_free it */
LINKWISE_API enum linkwise_status
linkwise_cluster_to_json (const struct linkwise_cluster *cluster, char **json,
                          struct linkwise_error *err);

/** How many; -1 for NULL.  GPUs are numbered node by node; drained GPUs of a node in use do
 *  not count, a drained node's do. */
LINKWISE_API int linkwise_cluster_nodes (const struct linkwise_cluster *cluster);
LINKWISE_API int linkwise_cluster_gpus (const struct linkwise_cluster *cluster);

struct linkwise_node {
    size_t size;
    const char *name, *gpu_type;
    int gpus;
    int first_gpu; /* its number in the cluster */
    bool drained;
};

/** Describe node i.  @param[in,out] out  its size is set */
LINKWISE_API enum linkwise_status
linkwise_cluster_node (const struct linkwise_cluster *cluster, int i,
                       struct linkwise_node *out, struct linkwise_error *err);

struct linkwise_link {
    size_t size;
    double bytes_per_s; /* what it is priced at; 0: nothing of its kind was measured */
    double latency_s;
    bool measured;
};

/** The directed link between two different GPUs, by their numbers in the cluster. */
LINKWISE_API enum linkwise_status
linkwise_cluster_link (const struct linkwise_cluster *cluster, int from, int to,
                       struct linkwise_link *out, struct linkwise_error *err);

/** The directed links among some GPUs, as matrices: what linkwise_cluster_link says of each.
 *
 *  @param[in]  gpu          [n] their numbers in the cluster
 *  @param[out] bytes_per_s  [n*n] row-major, entry i*n + j is gpu[i] -> gpu[j]; NaN where
 *                           nobody measured it, and for a GPU and itself; NULL: not wanted
 *  @param[out] latency_s    the same; NaN for a GPU and itself alone */
LINKWISE_API enum linkwise_status
linkwise_cluster_links (const struct linkwise_cluster *cluster, const int *gpu, int n,
                        double *bytes_per_s, double *latency_s,
                        struct linkwise_error *err);

/** What became of the links between two measurements of one cluster. */
struct linkwise_difference {
    size_t size;
    bool same_cluster;         /* the same nodes at two times; else the rest is 0 */
    double compared;           /* links that both have a rate for */
    double slower, faster;     /* of these, changed */
    double appeared, vanished; /* measured in only one of the two */
    double median_ratio;       /* new over old; 1 where there are none */
};

/** @param[in] share  how far a rate without intervals may differ, as in 0.1 */
LINKWISE_API enum linkwise_status
linkwise_cluster_compare (const struct linkwise_cluster *before,
                          const struct linkwise_cluster *after, double share,
                          struct linkwise_difference *out, struct linkwise_error *err);

/** Name of the i-th built-in GPU type, or NULL after the last. */
LINKWISE_API const char *linkwise_gpu_type_at (int i);

/* ---- models and framework profiles ---- */

struct linkwise_model;

/** Read a Hugging Face config.json, a preset's name, or "-" for standard input. */
LINKWISE_API enum linkwise_status linkwise_model_read (const char *arg,
                                                       struct linkwise_model **out,
                                                       struct linkwise_notes *notes,
                                                       struct linkwise_error *err);

/** The same from a config.json's text.
 *  @param[in] name  of the model, unless the text has its own "name"; NULL: "model" */
LINKWISE_API enum linkwise_status
linkwise_model_parse (const char *json, const char *name, struct linkwise_model **out,
                      struct linkwise_notes *notes, struct linkwise_error *err);
LINKWISE_API void linkwise_model_destroy (struct linkwise_model *m);
/** NULL for NULL. */
LINKWISE_API const char *linkwise_model_name (const struct linkwise_model *m);
/** Parameters of the whole model; NaN for NULL. */
LINKWISE_API double linkwise_model_parameters (const struct linkwise_model *m);
/** Name of the i-th preset, or NULL after the last. */
LINKWISE_API const char *linkwise_model_preset_at (int i);

/** What a training framework keeps in memory, overlaps and offers (docs/profile.md). */
struct linkwise_profile;

/** Read a profile by its shipped name or its file.  A shipped one that was fitted on other GPU
 *  types than a job has, or on no experts, gives way to what serves there (`elsewhere`), as with
 *  --profile. */
LINKWISE_API enum linkwise_status linkwise_profile_read (const char *arg,
                                                         struct linkwise_profile **out,
                                                         struct linkwise_notes *notes,
                                                         struct linkwise_error *err);
LINKWISE_API void linkwise_profile_destroy (struct linkwise_profile *p);
/** NULL for NULL. */
LINKWISE_API const char *linkwise_profile_name (const struct linkwise_profile *p);

/* ---- jobs and configurations ---- */

/** What is trained, whatever the split.  Words are those of the command line; 0 and NULL
 *  take what is usual for the model, linkwise_memory the batch that fills the pipeline. */
struct linkwise_job {
    size_t size;
    int seq;               /* tokens of one sequence */
    int global_batch;      /* sequences of one optimiser step */
    const char *precision; /* "bf16" (usual), "fp16", "fp8", "fp32", "tf32" */
    const char *attention; /* "flash" (usual), "fused", "unfused" */
    const char *fused_norm, *fused_mlp; /* "on", "off"; usual: the profile's */
    const char *gathered_logits;        /* the same */
    double wta_crs;                     /* budget of WTA-CRS, 0 to 1; 0: not used */
    bool lora;                          /* adapters alone are trained */
    /* "on", "off": sequence-parallel collectives in pieces between those of products; usual: the
     * profile's */
    const char *tp_comm_overlap;
};

static inline struct linkwise_job linkwise_job (int seq, int global_batch)
{
    struct linkwise_job job;

    memset (&job, 0, sizeof job);
    job.size = sizeof job;
    job.seq = seq;
    job.global_batch = global_batch;
    return job;
}

/** Degrees and the other choices.  -1 (NULL for words) is not given: a search looks for it,
 *  an estimate takes degrees of 1, dp what the GPUs leave (no cluster: the least that ep allows),
 *  ZeRO 1, nothing recomputed, 1F1B. */
#define LINKWISE_FREE (-1)
struct linkwise_config {
    size_t size;
    int tp, pp, dp, cp, ep, etp, vpp;
    int micro_batch;       /* sequences */
    int zero;              /* 0 to 3 */
    int sequence_parallel; /* 0 or 1 */
    const char *recompute; /* "none", "selective", "full", "full:K", "layernorm,mlp" */
    const char *schedule;  /* "1f1b", "gpipe", "interleaved", "zb1p", ... */
    const int *layers;     /* [pp] of each stage, or NULL; a search refuses it */
    int optimizer_bytes;   /* of optimizer state per parameter; -1: the profile's */
    const char *offload; /* "none", "optimizer", "all", "checkpoints"; NULL: none, or, in a search,
                            what the profile offers where nothing fits without */
    int shard; /* data-parallel ranks over which ZeRO shards, other such groups holding the same;
                  0: all of dp */
};

static inline struct linkwise_config linkwise_config (void)
{
    struct linkwise_config c;

    memset (&c, 0, sizeof c);
    c.size = sizeof c;
    c.tp = c.pp = c.dp = c.cp = c.ep = c.etp = c.vpp = LINKWISE_FREE;
    c.micro_batch = c.zero = c.sequence_parallel = c.optimizer_bytes = LINKWISE_FREE;
    c.shard = LINKWISE_FREE;
    return c;
}

/* ---- memory of a configuration ---- */

struct linkwise_memory {
    size_t size;
    int stage;         /* which the figures are of */
    double peak_bytes; /* of one GPU */
    double gpu_bytes;  /* that the driver reports */
    double limit_bytes;
    double oom_probability; /* NaN where the model has none */
    double weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes;
    double logits_bytes, buffers_bytes, overhead_bytes;
};

/** Memory of one pipeline stage on GPUs of a type.
 *
 *  @param[in] profile  NULL: megatron-core, off A100 and for experts its composed form
 *  @param[in] config   NULL: no parallelism
 *  @param[in] gpu      a built-in GPU type, also "h100" for short
 *  @param[in] stage    0 to pp-1; -1: the fullest
 *  @param[in,out] out  its size is set */
LINKWISE_API enum linkwise_status
linkwise_memory (const struct linkwise_model *model,
                 const struct linkwise_profile *profile, const struct linkwise_job *job,
                 const struct linkwise_config *config, const char *gpu, int stage,
                 struct linkwise_memory *out, struct linkwise_notes *notes,
                 struct linkwise_error *err);

/* ---- step times ---- */

struct linkwise_estimate {
    size_t size;
    double step_s; /* of one optimiser step */
    double tokens_per_s, mfu;
    /* Along the pipeline stage that ends last; they sum to step_s. */
    double compute_s, tp_s, cp_s, ep_s, bubble_s, pp_s, dp_s, optimizer_s;
    int stage, replica;   /* that end last */
    int unmeasured_links; /* that the placement uses */
    /* Of plans that were searched; NaN elsewhere. */
    double lower_bound_s;        /* no plan of the space asked for is shorter */
    double default_order_step_s; /* the same configuration in Megatron's order */
};

static inline struct linkwise_estimate linkwise_estimate (void)
{
    struct linkwise_estimate e;

    memset (&e, 0, sizeof e);
    e.size = sizeof e;
    return e;
}

/** Step time of one configuration in Megatron's order over the nodes as listed.
 *
 *  @param[in] profile     NULL: megatron-core, off A100 and for experts its composed form
 *  @param[in] config      dp not given: what the GPUs leave; NULL: dp alone
 *  @param[in] cost_model  "critical-path" (NULL), "pipette" or "amp" */
LINKWISE_API enum linkwise_status
linkwise_time (const struct linkwise_cluster *cluster, const struct linkwise_model *model,
               const struct linkwise_profile *profile, const struct linkwise_job *job,
               const struct linkwise_config *config, const char *cost_model,
               struct linkwise_estimate *out, struct linkwise_notes *notes,
               struct linkwise_error *err);

/* ---- the search ---- */

struct linkwise_settings {
    size_t size;
    const char *only,
        *exclude;             /* host lists, "n[01-16,20]" or "rack:r[1-2]"; NULL: none */
    const char *pin;          /* nodes that must hold ranks */
    int nodes;                /* use at most so many; 0: no limit */
    int spares;               /* leave at least so many idle */
    double memory_limit_pct;  /* of what the driver reports; 0: the memory model's */
    double oom_risk;          /* above 0: a chance of running out instead; neither given,
                                 and a tie: 1 % where that is possible */
    const char *memory_model; /* "linkwise" (NULL), "fujii", "korthikanti" */
    const char *granularity;  /* "auto" (NULL), "node", "gpu" */
    const char *objective;    /* "step" (NULL), "gpu-hours" */
    const char *cost_model;   /* "critical-path" (NULL), "pipette", "amp" */
    int threads;              /* 0: all cores */
    unsigned long seed;       /* the same seed gives the same plan */
    double time_limit_s;      /* 0: none; only this reads the clock */
    int effort; /* times the usual work where nodes or links are unlike; 0: 1 */
    int top;    /* configurations to list in the plan file */
    double tie; /* plans within this share of the best count as equal:
                                   the simplest is taken */
    /** Called now and then from one thread; NULL: never.  Returning true ends the search
     *  with the best plan so far.  best_step_s is INFINITY before the first plan,
     *  lower_bound_s 0 before the first bound. */
    bool (*progress) (void *context, long done, long total, double best_step_s,
                      double lower_bound_s);
    void *context;
};

static inline struct linkwise_settings linkwise_settings (void)
{
    struct linkwise_settings s;

    memset (&s, 0, sizeof s);
    s.size = sizeof s;
    s.seed = 1;
    s.top = 5;
    s.tie = 1e-3;
    return s;
}

/** A configuration and a GPU for every rank. */
struct linkwise_plan;

/** Find the degrees and the placement with the shortest step.
 *
 *  @param[in]  profile   NULL: megatron-core, off A100 and for experts its composed form
 *  @param[in]  fixed     given members are fixed, the search chooses the others; NULL: all free
 *  @param[in]  settings  NULL: linkwise_settings ()
 *  @return LINKWISE_OK; LINKWISE_NOFIT when nothing fits in memory or the GPUs are not
 *          connected; LINKWISE_INVALID when nothing divides */
LINKWISE_API enum linkwise_status linkwise_search (
    const struct linkwise_cluster *cluster, const struct linkwise_model *model,
    const struct linkwise_profile *profile, const struct linkwise_job *job,
    const struct linkwise_config *fixed, const struct linkwise_settings *settings,
    struct linkwise_plan **out, struct linkwise_notes *notes, struct linkwise_error *err);

/** Place a plan anew on the nodes that a scheduler gave: the same degrees and layers.
 *
 *  @param[in] cluster  NULL: the plan's own
 *  @param[in] only     host list of the nodes */
LINKWISE_API enum linkwise_status
linkwise_bind (const struct linkwise_plan *plan, const struct linkwise_cluster *cluster,
               const char *only, struct linkwise_plan **out, struct linkwise_notes *notes,
               struct linkwise_error *err);

struct linkwise_replanning {
    size_t size;
    double move_cost_s;     /* stopping, moving and starting again, once */
    double remaining_steps; /* that the job still has; 0: as many as a day holds */
    bool any_degrees; /* search all degrees, not only when the old ones cannot run */
    /* Out. */
    int ranks_moved;
    double stay_step_s; /* the old placement here; INFINITY when it cannot run */
};

static inline struct linkwise_replanning linkwise_replanning (void)
{
    struct linkwise_replanning r;

    memset (&r, 0, sizeof r);
    r.size = sizeof r;
    return r;
}

/** Plan a running job anew, moving as few ranks as pays.
 *
 *  @param[in]     cluster   as it is now; NULL: the plan's own
 *  @param[in]     settings  NULL: linkwise_settings ()
 *  @param[in,out] how       NULL: moving costs nothing */
LINKWISE_API enum linkwise_status
linkwise_replan (const struct linkwise_plan *plan, const struct linkwise_cluster *cluster,
                 const struct linkwise_settings *settings,
                 struct linkwise_replanning *how, struct linkwise_plan **out,
                 struct linkwise_notes *notes, struct linkwise_error *err);

/* ---- plans ---- */

/** Read a plan file (docs/plan.md); "-" is standard input.
 *  @param[in] cluster  instead of the plan's own; NULL: that one */
LINKWISE_API enum linkwise_status
linkwise_plan_read (const char *arg, const struct linkwise_cluster *cluster,
                    struct linkwise_plan **out, struct linkwise_notes *notes,
                    struct linkwise_error *err);

/** The same from a plan file's text. */
LINKWISE_API enum linkwise_status
linkwise_plan_parse (const char *json, const struct linkwise_cluster *cluster,
                     struct linkwise_plan **out, struct linkwise_notes *notes,
                     struct linkwise_error *err);
LINKWISE_API void linkwise_plan_destroy (struct linkwise_plan *p);

/** The plan file's text.  @param[out] json  linkwise_free it */
LINKWISE_API enum linkwise_status linkwise_plan_to_json (const struct linkwise_plan *plan,
                                                         char **json,
                                                         struct linkwise_error *err);

/** Write the plan file, whole or not at all. */
LINKWISE_API enum linkwise_status linkwise_plan_write (const struct linkwise_plan *plan,
                                                       const char *path,
                                                       struct linkwise_error *err);

/** Everything is given in it; words and layers belong to the plan. */
LINKWISE_API enum linkwise_status linkwise_plan_config (const struct linkwise_plan *plan,
                                                        struct linkwise_config *out,
                                                        struct linkwise_error *err);

/** Ranks of the plan; -1 for NULL. */
LINKWISE_API int linkwise_plan_ranks (const struct linkwise_plan *plan);

struct linkwise_rank {
    size_t size;
    const char *node; /* the host's name */
    int gpu;          /* the machine's number of it, as CUDA_VISIBLE_DEVICES takes it */
    int tp, cp, ep, dp, pp; /* its place in each group */
};
LINKWISE_API enum linkwise_status linkwise_plan_rank (const struct linkwise_plan *plan,
                                                      int rank, struct linkwise_rank *out,
                                                      struct linkwise_error *err);

/** Price a plan, also one that was edited by hand.
 *
 *  @param[in] cluster     NULL: the plan's own
 *  @param[in] cost_model  as in linkwise_time */
LINKWISE_API enum linkwise_status
linkwise_plan_estimate (const struct linkwise_plan *plan,
                        const struct linkwise_cluster *cluster, const char *cost_model,
                        struct linkwise_estimate *out, struct linkwise_error *err);

/** The fullest stage of a plan, beside the smallest GPU that it got. */
LINKWISE_API enum linkwise_status linkwise_plan_memory (const struct linkwise_plan *plan,
                                                        struct linkwise_memory *out,
                                                        struct linkwise_error *err);

/* ---- checking and launching ---- */

/** An independent check of a plan, with no code of the search. */
struct linkwise_check;

enum linkwise_verdict { LINKWISE_CHECK_OK, LINKWISE_CHECK_NOTE, LINKWISE_CHECK_FAILED };

struct linkwise_finding {
    size_t size;
    const char *what; /* "GPUs", "layers", "memory", ... */
    enum linkwise_verdict verdict;
    const char *found;
};

/** @param[in] cluster  NULL: the plan's own
 *  @return LINKWISE_OK when the check ran, whatever it found */
LINKWISE_API enum linkwise_status
linkwise_plan_check (const struct linkwise_plan *plan,
                     const struct linkwise_cluster *cluster, struct linkwise_check **out,
                     struct linkwise_error *err);
LINKWISE_API void linkwise_check_destroy (struct linkwise_check *c);
/** Findings, and how many of them failed; -1 for NULL. */
LINKWISE_API int linkwise_check_count (const struct linkwise_check *check);
LINKWISE_API int linkwise_check_failed (const struct linkwise_check *check);
LINKWISE_API enum linkwise_status linkwise_check_at (const struct linkwise_check *check,
                                                     int i, struct linkwise_finding *out,
                                                     struct linkwise_error *err);

/** Write the files that put every rank on its planned GPU into a folder.
 *
 *  @param[in] to     "openmpi,slurm", ... or "all"
 *  @param     notes  with "all": which launchers cannot express the plan, and why */
LINKWISE_API enum linkwise_status linkwise_plan_emit (const struct linkwise_plan *plan,
                                                      const char *to, const char *folder,
                                                      struct linkwise_notes *notes,
                                                      struct linkwise_error *err);

/** Name of the i-th launcher, or NULL after the last. */
LINKWISE_API const char *linkwise_launcher_at (int i);

#ifdef __cplusplus
}
#endif

#endif
