/* What the files of the search share: search.c goes through the space, search_result.c
 * chooses among what was placed. */
#ifndef MAPPER_SEARCH_SEARCH_PRIVATE_H
#define MAPPER_SEARCH_SEARCH_PRIVATE_H

#include "mapper/bound/bound.h"
#include "mapper/place/place.h"
#include "mapper/search/search.h"

/* A configuration on its way. */
struct entry {
    double bound_s;         /* times weight(): of the objective */
    long index;             /* in the list: ties go to the earlier */
    enum bound_level level; /* of its bound */
};

/* A configuration that was placed. */
struct kept {
    struct placed plan;
    long index;   /* of the configuration */
    double bound; /* of the objective, as unplaced_bound */
    bool tight;   /* bounded as closely as can be */
};

struct search {
    const struct mapper_problem *p;
    const struct mapper_settings *s;
    struct pool pool;
    struct workload_config *config;
    long n;
    long tried; /* placements in a small pool so far */
    struct entry *heap;
    long heap_n;
    /* Those that need more links that nobody measured wait for those that need fewer. */
    struct entry *waiting;
    long n_waiting;
    double waiting_bound_s; /* the least of theirs; INFINITY */
    int needed;             /* such links of those in the heap, at least */
    struct groups *groups;  /* [max tp + 1] by tp, made when first needed */
    int groups_n;
    struct kept *placed; /* [n_placed] */
    long n_placed;
    long best;             /* of placed; -1: none */
    double unplaced_bound; /* the least of those that could not be placed; INFINITY */
    struct error unplaced; /* why the first of them could not */
    struct mapper_info *info;
    double start_s;
    struct deadline deadline;
    int threads;
};

/** What a configuration's seconds are multiplied by, for the objective. */
double search_weight (const struct search *x, const struct workload_config *c);

/** The price of a placed configuration, its step in the objective's measure. */
struct costmodel_price search_value (const struct search *x, long i);

bool search_better (const struct search *x, long i, long than);

/** Of the placed configurations within the tie of the best, the simplest; of those that
 *  are as simple, the best. */
long search_simplest (const struct search *x);

/** The whole space's bound, in the objective's measure. */
double search_least_bound (const struct search *x);

/** Choose among the placed configurations and describe the choice.
 *  @param[out] out  untouched on failure
 *  @return ST_OK or ST_NOMEM */
enum status search_finish (struct search *x, struct mapper_result *out,
                           struct error *err);

/* ---- result.c, miss.c, simplest.c ---- */

/** mapper_result_put in a pool that is there already. */
enum status result_put (const struct pool *pool, const struct workload_config *config,
                        const int *layers, const int *gpu, struct mapper_result *r,
                        struct error *err);

/** Fill info->miss with the configuration whose even split comes closest to the limit. */
void find_miss (const struct pool *pool, const struct workload_config *list, long n,
                struct mapper_info *info);

/** Is configuration a simpler to run than b (simplest.c)? */
bool config_simpler (const struct workload_config *a, const struct workload_config *b);

#endif
