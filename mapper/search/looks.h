/* Configurations that were sketched, shared by looks.c (the first look at all), rounds.c (the best
 * ones annealed) and sketches.c (what becomes of them). */
#ifndef MAPPER_SEARCH_LOOKS_H
#define MAPPER_SEARCH_LOOKS_H

#include <stdint.h>

#include "mapper/place/sketch.h"
#include "mapper/search/search_private.h"

/** One configuration, sketched. */
struct look {
    long index;   /* of the configuration */
    double bound; /* of the objective */
    struct sketch sketch;
};

struct looks {
    struct walks walks;
    struct look *look; /* [n] the best first, once they are sorted */
    long n;
};

/** One more of them; takes the sketch over.  @return ST_OK or ST_NOMEM */
enum status looks_add (struct looks *l, long index, double bound, struct sketch *k,
                       struct error *err);

/** A gain of the step that is worth as much work again. */
#define LOOK_WORTH 1e-4

/** GPUs of an odd pool that gets generations of rounds; in larger ones there are too few moves to
 *  make up for a first layout that is LOOKS_FAR times the best. */
#define LOOKS_GENERATIONS_GPUS 256
#define LOOKS_FAR 1.5

/** Its step in the objective's measure. */
double look_value (const struct search *x, const struct look *l);
/** The same with what links that nobody measured count as while it is moved. */
double look_energy (const struct search *x, const struct look *l);

bool look_same_degrees (const struct workload_config *a, const struct workload_config *b);
/** Of the same chunks, micro-batch and schedule: what differs else hardly changes what places are
 *  good. */
bool look_same_pace (const struct workload_config *a, const struct workload_config *b);

/** The best first.
 *  @param[in] midway  by energy, since all will be moved on; else those with fewer links that
 *                     nobody measured first
 *  @return ST_OK or ST_NOMEM */
enum status looks_sort (const struct search *x, struct looks *l, bool midway,
                        struct error *err);

/** Those of the sorted ones that may still become the best, few of the same degrees.  Half of these
 *  are of one pace, more only where places are left: near ones fill them all else, and other chunks
 *  never get the moves that find their layers.
 *  @param[in]  below  what their bounds are below
 *  @param[out] pick   [most] @return how many */
#define LOOKS_PICKED_MOST 256
int looks_pick (const struct search *x, const struct looks *l, double below,
                int of_degrees, int most, long *pick);

/** Sketch what the heap holds, which is sorted then.
 *  @param[in]  joint  as in search_sketches
 *  @param[in]  most   sketches, about
 *  @param[out] l      release it in any case
 *  @return ST_OK or ST_NOMEM */
enum status looks_take (struct search *x, bool joint, long most, struct looks *l,
                        struct error *err);
/** The best ones in all ways.  @return ST_OK or ST_NOMEM */
enum status looks_closer (struct search *x, struct looks *l, struct error *err);
void looks_release (struct looks *l);

/** Sort the search's heap by bounds: it is a heap, still. */
void looks_sort_heap (struct search *x);

/* ---- rounds.c ---- */

/** The places of the best of several degrees and paces for all others of the same degrees in the
 *  heap, which is sorted (looks_sort_heap).
 *  @param[in] midway  as in looks_sort
 *  @return ST_OK or ST_NOMEM */
enum status looks_siblings (struct search *x, struct looks *l, bool midway,
                            struct error *err);

/** Start anew from the best ones, until so many rounds in a row bring nothing.
 *  @param[in] generation  each has random numbers of its own
 *  @return ST_OK or ST_NOMEM */
enum status looks_start_anew (struct search *x, struct looks *l, int generation,
                              int idle_most, struct error *err);

/** The degrees that are moved by themselves: those near the best, which come first, and some of
 *  those that are not but whose bounds are the least.  What keeps the gap open may be far only
 *  since nothing was laid out well for it.
 *  @param[in]  most    1..LOOKS_DEGREES_MOST
 *  @param[in]  bounds  those of the least bounds, at most
 *  @param[out] like    a configuration of each @return how many */
#define LOOKS_DEGREES_MOST 16
int looks_degrees (const struct search *x, const struct looks *l, int most, int bounds,
                   const struct workload_config *like[LOOKS_DEGREES_MOST]);

/** Where a configuration's random numbers begin, wherever the list has it: what more memory or
 *  another node lists before it is not to change its luck. */
uint64_t looks_luck (const struct search *x, const struct workload_config *c);

/** Anneal the best ones.  @return ST_OK or ST_NOMEM */
enum status looks_anneal (struct search *x, struct looks *l, struct error *err);

/* ---- sketches.c ---- */

/** Keep a sketch as a placed configuration.  @return ST_OK or ST_NOMEM */
enum status look_keep (struct search *x, const struct look *l, struct error *err);

#endif
