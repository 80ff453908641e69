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
    char *arg; /* the file or line that it was read from; NULL: a text */
};

struct linkwise_model {
    struct workload_model m;
};

struct linkwise_profile {
    struct workload_profile p;
};

struct linkwise_plan {
    struct workload_plan plan; /* with its document */
    struct workload_profile profile;
    struct linkwise_cluster *cluster;
    bool other_cluster;                         /* another one than in its document */
    double lower_bound_s, default_order_step_s; /* NAN: not from a search */
    char recompute[24];                         /* linkwise_plan_config's word */
};

/** Take over a cluster.  @param[in] arg  copied; NULL: none
 *  @return NULL when out of memory; the cluster is destroyed then */
struct linkwise_cluster *api_cluster_of (struct topology_cluster *c, const char *arg);

/** One more that uses it. */
struct linkwise_cluster *api_cluster_use (const struct linkwise_cluster *c);

/** Read a plan; its cluster is the one given or, NULL, its own.
 *  @param[in] cluster_arg  where `cluster` is NULL, the argument of another one, or NULL */
enum status api_plan_read (const char *arg, const char *cluster_arg,
                           const struct linkwise_cluster *cluster,
                           struct linkwise_plan **out, struct notes *notes,
                           struct error *err);

/** linkwise_plan_emit.  @param[in] program  that emitted scripts call */
enum status api_emit (const struct linkwise_plan *p, const char *to, const char *folder,
                      const char *program, struct notes *refused, struct error *err);

/** Cluster-wide GPU of each rank on a cluster.  @param[out] gpu  free it
 *  @return ST_OK, ST_NOMEM, or ST_INVALID naming the rank that has none */
enum status api_plan_gpus (const struct linkwise_plan *p,
                           const struct topology_cluster *c, int **gpu,
                           struct error *err);

/** What the plan's placement is priced with, on a cluster. */
struct costmodel_problem api_plan_priced (const struct linkwise_plan *p,
                                          const struct topology_cluster *c);

/** The plan's problem with every axis fixed, as replanning and binding start from it. */
struct mapper_problem api_plan_problem (const struct linkwise_plan *p,
                                        const struct topology_cluster *c);

/** The file that a cluster of more than 256 nodes is referred to by in a plan, and the
 *  digest of its text.  @param[out] file  NULL where the cluster is written whole */
enum status api_cluster_reference (const struct linkwise_cluster *c, const char **file,
                                   char hex[65], struct error *err);

/** A plan's document as it can be read from any folder: with its cluster, or the cluster's
 *  file by an absolute name.  @param[out] out  a new reference */
enum status api_plan_document (const struct linkwise_plan *p, json_t **out,
                               struct error *err);

/** A document as a text for the caller.  @param[in] doc  stolen; NULL: out of memory */
enum linkwise_status api_text (json_t *doc, char **json, struct linkwise_error *err);

/* ---- arguments ---- */

/** "linkwise_search: cluster: expected an object, found NULL". */
enum linkwise_status api_null (struct linkwise_error *err, const char *function,
                               const char *argument);
enum linkwise_status api_size (struct linkwise_error *err, const char *function,
                               const char *argument, size_t found, size_t expected);

/** Return unless the argument is there; unless the struct that it points to has its size. */
#define API_NEED(ARGUMENT)                              \
    do {                                                \
        if (!(ARGUMENT))                                \
            return api_null (err, __func__, #ARGUMENT); \
    } while (0)
#define API_SIZED(ARGUMENT)                                              \
    do {                                                                 \
        API_NEED (ARGUMENT);                                             \
        if ((ARGUMENT)->size != sizeof *(ARGUMENT))                      \
            return api_size (err, __func__, #ARGUMENT, (ARGUMENT)->size, \
                             sizeof *(ARGUMENT));                        \
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

static inline struct notes *api_notes (struct linkwise_notes *n)
{
    return n ? &n->list : NULL;
}

/** The job in the rooms' terms, checked against the model. */
enum status api_job (const struct linkwise_job *in, const struct workload_model *m,
                     struct workload_job *out, struct error *err);

/** The axes that a configuration fixes; NULL: none. */
enum status api_axes (const struct linkwise_config *in, struct mapper_axes *out,
                      struct error *err);

/** One configuration, what is not given at its usual value, and its layers.
 *
 *  @param[in]  c       dp is what its GPUs leave where it is not given; NULL: 1
 *  @param[out] layers  free it
 *  @return ST_OK, ST_NOMEM, ST_USAGE for words, or ST_INVALID for what does not fit the
 *          model, the job and the cluster */
enum status api_config (const struct linkwise_config *in, const struct workload_model *m,
                        const struct workload_job *job,
                        const struct workload_profile *profile,
                        const struct topology_cluster *c, struct workload_config *out,
                        int **layers, struct error *err);

/** A cost model's name; NULL: the usual one. */
enum status api_cost_model (const char *word, enum costmodel_kind *out,
                            struct error *err);

/** A placement's estimate in the caller's terms. */
enum status api_price (const struct costmodel_problem *p, const int *gpu,
                       struct linkwise_estimate *out, struct error *err);

/** The profile given, or the default one. */
enum status api_profile (const struct linkwise_profile *given,
                         struct workload_profile *out, struct error *err);

/** A stage's memory in the caller's terms. */
void api_memory (const struct memest_stage *s, int stage, double gpu_bytes,
                 double limit_bytes, double chance, struct linkwise_memory *out);

#endif
