/* Lower bounds: numbers that no placement of a configuration beats, with any split of its
 * layers, if it fits in memory.  docs/bounds.md explains the words and works an example. */
#ifndef MAPPER_BOUND_BOUND_H
#define MAPPER_BOUND_BOUND_H

#include "mapper/pool/pool.h"

/** How closely?  Each is higher than the one before, and about 100 times as slow. */
enum bound_level {
    BOUND_WORK,      /* the layers' compute alone */
    BOUND_FRACTIONS, /* layers in fractions, memory left aside */
    BOUND_KINDS,     /* within memory, the GPUs of all classes counted at once */
    BOUND_SPLITS,    /* whole layers within memory */
    BOUND_PLAYED,    /* bound_plays: splits played out where they are few */
    BOUND_RUNS /* the sends inside runs of stages; in small pools all splits played out */
};

/** Does BOUND_PLAYED tell more?  Of chunks it does, and of experts, where every stage exchanges in
 *  some way that all others wait for. */
bool bound_plays (const struct workload_config *c);

/** Lower bound of one configuration over every placement and split of layers.
 *  See bound.c. */
double bound_of (const struct pool *pool, const struct workload_config *c,
                 enum bound_level level);

/** A bound in less time, where one beyond `most` is of no use: it may then be as low as that.  Nor
 *  is one below `known`, which may stand for it: that is a bound, or says nothing.  Else it is
 *  bound_of's, or another a little beside it, since bisection begins elsewhere. */
double bound_up_to (const struct pool *pool, const struct workload_config *c,
                    enum bound_level level, double known, double most);

/** bound_of at BOUND_WORK; what compute takes is kept from one configuration to the next.
 *  @param[in,out] w  of one thread and one pool; NULL: nothing is kept */
struct bound_works;
double bound_work (struct bound_works *w, const struct pool *pool,
                   const struct workload_config *c);
struct bound_works *bound_works_create (void); /* NULL when out of memory */
void bound_works_destroy (struct bound_works *w);

/** What any configuration of the whole space takes at least, in seconds times its GPUs: the
 *  least of compute alone. */
double bound_gpu_seconds (const struct pool *pool);

/** bound_of over every placement of one split of the layers, at the closest level but BOUND_RUNS.
 *  @param[in] caps    as pool_memory_fits leaves it
 *  @param[in] layers  [pp]
 *  @return 0 where it is not known */
double bound_of_split (const struct pool *pool, const struct workload_config *c,
                       const int *caps, const int *layers);

/** The same for a published cost model. See published.c. */
double bound_published (const struct pool *pool, const struct workload_config *c);

/* ---- what splitting layers may assume ---- */

/** Seconds of one tensor-parallel collective of a group with a GPU of that class or a slower
 *  one, at best; 0 where no such group can be linked. */
double bound_tp_s (const struct pool *pool, const struct workload_config *c, int class);

/** Seconds of one stage boundary, there and back, when it crosses nodes at best; 0 where
 *  no two nodes are linked. */
double bound_send_s (const struct pool *pool, const struct workload_config *c);

/** Seconds that every layer of stage 0 adds after its last backward at best:
 *  synchronisation and optimiser. */
double bound_tail_s (const struct pool *pool, const struct workload_config *c);

/** The split that the lower bound would take (recursion.c), bettered by moving single
 *  layers under the exact schedule with the best links.  Knows two kinds of slots; how many
 *  GPUs have the memory is for the caller to check.
 *
 *  @param[in] by_class  false: as if all slots ran at the fastest class's speed
 *  @param[in] caps      as pool_memory_fits leaves it
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT when there is none */
enum status bound_split (const struct pool *pool, const struct workload_config *c,
                         bool by_class, const int *caps, int *layers, int *class_of_stage,
                         struct error *err);

#endif
