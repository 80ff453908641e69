/* What the files of the search share: search.c goes through the space, search_result.c
 * chooses among what was placed. */
#ifndef MAPPER_SEARCH_SEARCH_PRIVATE_H
#define MAPPER_SEARCH_SEARCH_PRIVATE_H

#include <limits.h>
#include <math.h>

#include "mapper/bound/bound.h"
#include "mapper/place/place.h"
#include "mapper/search/search.h"

/* A configuration on its way. */
struct entry {
    double bound_s;         /* times mapper_weight: of the objective */
    long index;             /* in the list: ties go to the earlier */
    enum bound_level level; /* of its bound */
};

/** mapper_search, also of a part of what is searched.  @param[in] part  as in struct search */
typedef enum status search_nodes_fn (const struct mapper_problem *p,
                                     const struct mapper_settings *s, int part,
                                     struct mapper_result *r, struct mapper_info *info,
                                     struct error *err);

struct looks;

/* A configuration that was placed. */
struct kept {
    struct placed plan;
    long index;             /* of the configuration */
    double bound;           /* of the objective, as unplaced_bound */
    enum bound_level level; /* to which closer.c raised it; FRACTIONS before, at least */
};

struct search {
    const struct mapper_problem *p;
    const struct mapper_settings *s;
    struct pool pool;
    struct workload_config *config;
    long n;
    /* Of those that were not, in the objective's measure; INFINITY */
    double unlisted_bound_s;
    int gpus_least; /* of what is listed: fewer take longer than a plan that is known */
    long tried;     /* placements in a small pool so far, in exact_splits' measure */
    long sketched;  /* configurations */
    bool annealed;  /* were the best sketches? */
    bool odd;       /* are GPUs or nodes unlike? */
    int part; /* 0: the whole cluster; 1: a part of it, 2: a part of that (part.c) */
    search_nodes_fn *search_nodes;
    bool sketches_next; /* a first plan comes from them */
    long first_sketch;  /* its configuration, not placed yet; -1: none */
    struct entry *heap; /* bounded, and fit in memory for all that is known */
    long heap_n;
    struct entry *listed; /* a heap too, of BOUND_WORK: nothing else is known of them */
    long listed_n;
    /* Those that need more links that nobody measured wait for those that need fewer. */
    struct entry *waiting;
    long n_waiting;
    double waiting_bound_s; /* the least of theirs; INFINITY */
    bool by_kinds;          /* before sketches: is BOUND_KINDS as close as bounds get? */
    int needed;             /* such links of those in the heap, at least */
    struct looks *probed;   /* what the probe sketched; NULL */
    struct groups *groups;  /* [max tp + 1] by tp, made when first needed */
    int groups_n;
    struct kept *placed; /* [n_placed] */
    long n_placed;
    int *placed_at; /* [n] by configuration: where in placed[], from 1; 0: nowhere */
    long best;      /* of placed; -1: none */
    double unplaced_bound; /* the least of those that could not be placed; INFINITY */
    struct error unplaced; /* why the first of them could not */
    struct mapper_info *info;
    struct deadline deadline;
    double late_s; /* when search_is_over first saw that it was late; INFINITY */
    int threads;
};

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

/* ---- first.c ---- */

/** List the configurations of so many GPUs, each with what its compute takes at least; when it is
 *  late a million or so, and what none of the rest is below.
 *  @return ST_OK, ST_NOMEM, or as pool_configurations */
enum status search_list (struct search *x, struct error *err);

/** Of the listed ones, those below a bound that come before all of the heap: refuse what does not
 *  fit in memory, bound the rest and put them there, so that its top is the lowest of all.  When it
 *  is late only so many as a first plan needs.
 *  @param[in] least  to be in the heap, as far as there are so many below the bound */
void search_fill (struct search *x, double below, long least);
#define SEARCH_FILL_ALL LONG_MAX

/** The lowest bound of those that are neither placed nor given up; INFINITY: none is left. */
static inline double search_lowest_left (const struct search *x)
{
    return fmin (x->heap_n > 0 ? x->heap[0].bound_s : INFINITY,
                 x->listed_n > 0 ? x->listed[0].bound_s : INFINITY);
}

/* ---- batch.c ---- */

/** A heap of n entries, lowest bound first; of equal ones the earlier configuration. */
void heap_push (struct entry *heap, long *n, struct entry e);
struct entry heap_pop (struct entry *heap, long *n);

/** The search's, in which a configuration is once at most: there is no room for more. */
static inline void search_push (struct search *x, struct entry e)
{
    heap_push (x->heap, &x->heap_n, e);
}

/** Which configurations it has: [x->n], to be freed; NULL when out of memory.  One that a sketch
 *  was placed of may be there still. */
bool *search_heap_has (const struct search *x);

/** Is nothing left to do with it but to place it? */
bool search_is_bounded (const struct search *x, const struct entry *e);

/** Were so many placements of a small pool tried as its search may try, and is there a plan? */
bool search_is_tried (const struct search *x);

/** TP groups for configurations of that tp: made where there are none, and those. */
enum status search_need_groups (struct search *x, int tp, struct error *err);
const struct groups *search_groups (const struct search *x, int tp);

#define SEARCH_BATCH 8
#define SEARCH_FEW_CLASSES 2 /* of GPUs: with more, all are counted at once first */

/** Tighten the entries' bounds, or place those whose bounds are as close as they get; what is
 *  not placed returns to the heap.
 *  @param[in] n        up to SEARCH_BATCH
 *  @param[in] waiting  the entries never left the heap
 *  @return ST_OK or ST_NOMEM */
enum status search_batch (struct search *x, struct entry *batch, int n, bool waiting,
                          struct error *err);

/** The level after this one. */
enum bound_level search_next_level (const struct search *x, enum bound_level level);

/** What no placement of the configuration beats, in the objective's measure and under the
 *  cost model asked for.
 *  @param[in] known, enough  as bound_up_to takes them */
double search_bound (const struct search *x, const struct workload_config *c,
                     enum bound_level level, double known, double enough);

/** The entry's bound is also that of the plan that it may have already. */
void search_note_bound (struct search *x, const struct entry *e);

/** Search among the nodes that the best plan needs, and keep what is found.
 *  @return ST_OK, also where nothing is; ST_NOMEM */
enum status search_part (struct search *x, struct error *err);

/** Keep a placed configuration, the better one where it was placed before; takes it over. */
enum status search_keep (struct search *x, struct placed *placed, const struct entry *e,
                         struct error *err);

/** Is it so late that even a first plan is not awaited any more?  Asked by one thread. */
bool search_is_over (struct search *x);

/** How many placements are worth it where `usual` are in a pool of common size: each takes longer
 *  in a larger one. */
long search_fewer (const struct search *x, long usual);

/** @return as progress() does; outside the first thread of a loop nothing is shown */
bool search_show_progress (const struct search *x);

/** The value that a bound must be below to matter.  While the best plan uses more links that
 *  nobody measured than must be, every configuration might avoid them. */
double search_cut (const struct search *x);

/** The value that a bound must be below for a plan that is as good as the best, and simpler. */
static inline double search_reach (const struct search *x)
{
    return search_cut (x) * (1.0 + x->s->tie);
}

/* ---- sketches.c ---- */

#define SEARCH_ANNEALED_GPUS 1024 /* of a pool whose sketches are annealed */

/** Does the search lend itself to sketches: are schedules played out, may single GPUs be
 *  placed? */
bool looks_apply (const struct search *x);

/** Sketch the lowest of the heap, which is sorted then.
 *  They need not be sketched again.
 *  @param[out] e  the best of them, to be placed; its index is -1 where none can be
 *  @return ST_OK or ST_NOMEM */
enum status looks_probe (struct search *x, struct entry *e, struct error *err);
void looks_forget_probe (struct search *x);

/** Sketch so many of the heap, and keep the best: a first plan, while there is time.
 *  @return ST_OK or ST_NOMEM */
enum status search_sketch_some (struct search *x, long most, struct error *err);

/** Sketch what the heap holds, and keep the best.
 *  @param[in] joint  the pool is odd or small: sketches are annealed, and good as they are;
 *                    otherwise they say what is worth to be placed
 *  @return ST_OK or ST_NOMEM */
enum status search_sketches (struct search *x, bool joint, struct error *err);

/* ---- closer.c ---- */

#define SEARCH_CLOSE_ENOUGH 2e-4 /* of the step: a bound that needs no more work */

/** Raise the bounds of placed configurations that keep the whole space's down, as far as the effort
 *  goes.
 *  @param[in] enough  as high as others let the whole space's be
 *  @return the least of theirs and that */
double search_closer_placed (struct search *x, double enough);

/** The same, and then with those of the heap; and these once more, up to the best plan: where none
 *  stays below it, it is proven. */
void search_closer (struct search *x);

/* ---- polish.c ---- */

/** Bound those of the placed configurations more closely that keep the whole space's bound
 *  down, and place the best few again with more effort.  @return ST_OK or ST_NOMEM */
enum status search_polish (struct search *x, struct error *err);

/* ---- refine.c ---- */

/** Try the best plans' places in large pools of unlike nodes or links for others of their degrees.
 *  @return ST_OK or ST_NOMEM */
enum status search_adopt (struct search *x, struct error *err);

/** Move layers and places of the best plans together, in pools of common size.
 *  @return ST_OK or ST_NOMEM */
enum status search_refine (struct search *x, struct error *err);

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
