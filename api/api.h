/* The objects behind linkwise.h, for the files that carry it out and for the program. */
#ifndef API_API_H
#define API_API_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "linkwise.h"
#include "mapper/mapper.h"
#include "topology/topology.h"
#include "workload/workload.h"

struct linkwise_notes {
    struct notes list;
};

/** Shared by the plans that are for it. */
struct linkwise_cluster {
    atomic_int users;
    struct topology_cluster *c;
    char *file; /* that it was read from; NULL: one line, a text, standard input */
};

struct linkwise_model {
    struct workload_model m;
};

struct linkwise_profile {
    struct workload_profile p;
};

/** Commands and functions that know a part of it alone leave the rest zeros. */
struct linkwise_plan {
    struct workload_plan plan; /* with its document */
    struct workload_profile profile;
    struct linkwise_cluster *cluster;
    bool other_cluster;                         /* another one than in its document */
    double lower_bound_s, default_order_step_s; /* NAN: not from a search */
    char recompute[WORKLOAD_RECOMPUTE_TEXT];    /* linkwise_plan_config's word */
};

/** Take over a cluster.  @param[in] file  copied; NULL: none
 *  @return ST_OK, or ST_NOMEM; the cluster is destroyed then */
enum status api_cluster_of (struct topology_cluster *c, const char *file,
                            struct linkwise_cluster **out, struct error *err);

/** linkwise_cluster_read. */
enum status api_cluster_read (const char *arg, struct linkwise_cluster **out,
                              struct notes *notes, struct error *err);

/** One more that uses it. */
struct linkwise_cluster *api_cluster_use (const struct linkwise_cluster *c);

/** Read a plan and its profile.
 *  @param[in]     cluster  argument of another one than the plan's own, or NULL
 *  @param[in,out] p        zeros, or with the cluster that it is to have; api_plan_release
 *                          it, also after a failure */
enum status api_plan_read (const char *arg, const char *cluster, struct linkwise_plan *p,
                           struct notes *notes, struct error *err);
/** The same from a parsed document.  @param[in] name  for messages */
enum status api_plan_from_json (json_t *doc, const char *name, const char *cluster,
                                struct linkwise_plan *p, struct notes *notes,
                                struct error *err);
/** Release what is in it. */
static inline void api_plan_release (struct linkwise_plan *p)
{
    workload_plan_release (&p->plan);
    linkwise_cluster_destroy (p->cluster);
}

/** linkwise_plan_emit.
 *  @param[in] program  that emitted scripts call
 *  @param     notes    ranks on drained nodes
 *  @param     refused  which launchers cannot express the plan, and why */
enum status api_emit (const struct linkwise_plan *p, const char *to, const char *folder,
                      const char *program, struct notes *notes, struct notes *refused,
                      struct error *err);

/** Cluster-wide GPU of each rank on a cluster.
 *  @param[out] gpu    free it
 *  @param      notes  ranks that are on drained nodes
 *  @return ST_OK, ST_NOMEM, or ST_INVALID naming the rank that has none */
enum status api_plan_gpus (const struct linkwise_plan *p,
                           const struct topology_cluster *c, int **gpu,
                           struct notes *notes, struct error *err);

/** Note where fewer nodes can be used than were asked for (0: nobody asked), and what
 *  costmodel_note_types does; the search's step times are off by api_step_error.
 *  @param[in,out] p  after mapper_choose_nodes */
void api_before_search (struct mapper_problem *p, int asked, struct notes *notes);

/** How far off step times are on the nodes that may be used (calibrate_step_spread).
 *  @param[in] p  after mapper_choose_nodes */
double api_step_error (const struct mapper_problem *p);

/** What the plan's placement is priced with, on a cluster. */
static inline struct costmodel_problem api_plan_priced (const struct linkwise_plan *p,
                                                        const struct topology_cluster *c)
{
    return (struct costmodel_problem){.model = &p->plan.model,
                                      .job = &p->plan.job,
                                      .config = &p->plan.config,
                                      .profile = &p->profile,
                                      .cluster = c,
                                      .layers = p->plan.layers_per_stage,
                                      .chunks = p->plan.layers_per_chunk};
}

/** The search for the plan's job within its limits, every axis fixed, on all nodes of the
 *  cluster that are not drained. */
static inline struct mapper_problem api_plan_problem (const struct linkwise_plan *p,
                                                      const struct topology_cluster *c)
{
    struct mapper_problem problem = {.model = &p->plan.model,
                                     .job = &p->plan.job,
                                     .profile = &p->profile,
                                     .cluster = c,
                                     .axes = mapper_axes_of (&p->plan.config),
                                     .memory_limit_pct = p->plan.memory_limit_pct,
                                     .oom_risk = p->plan.oom_risk,
                                     .running = &p->plan};

    memest_model_parse (p->plan.memory_model, &problem.memory_model);
    return problem;
}

/** A search's result as a plan file.  A cluster of more than 256 nodes that came from a file
 *  is referred to by its name and digest.
 *  @param[out] out  a new reference */
enum status api_result_document (const struct mapper_problem *p,
                                 const struct mapper_result *r,
                                 const struct mapper_info *info,
                                 const struct linkwise_cluster *cluster, json_t **out,
                                 struct error *err);

/** An object for the caller, made of what was read, unless that failed.
 *  @param[out] out  the address of his pointer; free (*out) */
enum linkwise_status api_hand_out (enum status st, const void *object, size_t size,
                                   void *out, struct linkwise_error *err);

/** A document as a text for the caller.  @param[in] doc  stolen; NULL: out of memory */
enum linkwise_status api_text (json_t *doc, char **json, struct linkwise_error *err);

/* ---- arguments ---- */

/** Return with ST_USAGE: "linkwise_search: cluster: expected an object, found NULL". */
#define API_REFUSE(FORMAT, ...)                                                      \
    return (enum linkwise_status) err_set (api_error (err), ST_USAGE, "%s: " FORMAT, \
                                           __func__, __VA_ARGS__)

/** Return unless the argument is there; unless the struct that it points to has its size. */
#define API_NEED(ARGUMENT)                                                \
    do {                                                                  \
        if (!(ARGUMENT))                                                  \
            API_REFUSE ("%s: expected an object, found NULL", #ARGUMENT); \
    } while (0)
#define API_SIZED(ARGUMENT)                                               \
    do {                                                                  \
        API_NEED (ARGUMENT);                                              \
        if ((ARGUMENT)->size != sizeof *(ARGUMENT))                       \
            API_REFUSE ("%s: expected size %zu, found %zu: start from "   \
                        "linkwise_...() and set members",                 \
                        #ARGUMENT, sizeof *(ARGUMENT), (ARGUMENT)->size); \
    } while (0)

_Static_assert(sizeof (struct linkwise_error) == sizeof (struct error),
               "linkwise_error is struct error");
_Static_assert(LINKWISE_NOFIT == (int) ST_NOFIT && LINKWISE_USAGE == (int) ST_USAGE &&
                   LINKWISE_NOMEM == (int) ST_NOMEM && LINKWISE_IO == (int) ST_IO &&
                   LINKWISE_INVALID == (int) ST_INVALID,
               "linkwise_status is enum status");

/** The rooms' error behind the caller's; may be NULL. */
static inline struct error *api_error (struct linkwise_error *err)
{
    return (struct error *) (void *) err;
}

/** The other way. */
#define API_ERROR(ERR) ((struct linkwise_error *) (void *) (ERR))
#define API_NOTES(NOTES) ((struct linkwise_notes *) (void *) (NOTES))

static inline struct notes *api_notes (struct linkwise_notes *n)
{
    return n ? &n->list : NULL;
}

/** Return unless the word, where it is given, is one that PARSE knows: those in WORDS. */
#define API_WORD(IN, WORD, PARSE, OUT, WORDS)                                      \
    do {                                                                           \
        if ((IN)->WORD && !PARSE ((IN)->WORD, OUT))                                \
            return err_set (err, ST_USAGE, "%s: expected %s, found \"%s\"", #WORD, \
                            WORDS, (IN)->WORD);                                    \
    } while (0)
#define API_COST_MODELS "critical-path, pipette or amp"

/** The job in the rooms' terms, checked against the model.  @param notes  what is usual */
enum status api_job (const struct linkwise_job *in, const struct workload_model *m,
                     struct workload_job *out, struct notes *notes, struct error *err);

/** Room for the layers of the plan's stages, split as its profile does. */
enum status api_split_layers (struct linkwise_plan *x, struct error *err);

/** Where no batch is given (0), one that fills the configuration's pipeline: for memory. */
enum status api_filling_batch (const struct workload_config *c, int *global_batch,
                               struct error *err);

/** The axes that a configuration fixes; NULL: none. */
enum status api_axes (const struct linkwise_config *in, struct mapper_axes *out,
                      struct error *err);

/** Words of the axes recompute (into struct mapper_axes), offload and schedule (into their int).
 *  @return false: not a word that it knows */
bool api_parse_recompute (const char *word, void *axes);
bool api_parse_offload (const char *word, void *axis);
bool api_parse_schedule (const char *word, void *axis);

/** A cost model's name; NULL leaves what is there. */
enum status api_cost_model (const char *word, enum costmodel_kind *out,
                            struct error *err);

/** A placement's estimate in the caller's terms. */
enum status api_price (const struct costmodel_problem *p, const int *gpu,
                       struct linkwise_estimate *out, struct error *err);

/** The profile given, or the default one, or what serves in its place on the job's GPU types. */
enum status api_profile (const struct linkwise_profile *given,
                         const struct workload_model *m, const struct workload_gpus *on,
                         struct workload_profile *out, struct error *err);

/** Memory of every stage of a plan, whose ranks need not be known.
 *  @param[in] gpu_bytes  of each GPU  @param[out] stage  [pp]
 *  @return the one that is nearest to its limit */
int api_stages (const struct mapper_problem *p, const struct linkwise_plan *x,
                double gpu_bytes, struct memest_stage *stage);

/** A stage's memory within the problem's limits, in the caller's terms. */
void api_memory (const struct mapper_problem *p, const struct memest_stage *s, int stage,
                 double gpu_bytes, struct linkwise_memory *out);

#endif
