/* Moving ranks from where they are: exchanges that shorten the step, and what each group of
 * moves brings (moves.c, groups.c).  Used by replan.c alone. */
#ifndef MAPPER_MOVES_H
#define MAPPER_MOVES_H

#include "mapper/pool/pool.h"
#include "mapper/replan/replan.h"

/** A placement of one configuration with its old one beside it. */
struct mover {
    const struct pool *pool;
    struct costmodel_problem priced; /* with the old layers */
    int world, per_stage;
    int n;                         /* GPUs of the pool */
    int *home;                     /* [world] old GPU of each rank; -1: gone */
    bool *fits;                    /* [pp * n_classes] has the class the memory? */
    struct costmodel_state *state; /* positions: the ranks, then idle GPUs */
    int *position; /* [cluster's n_gpus] of each GPU; -1: not the pool's */
    int *order;    /* [n] scratch */
};

/** @param[in] home  [world] cluster-wide GPUs, -1 for those that are gone
 *  @return ST_OK; ST_NOFIT, saying why, when the pool has too few GPUs or none with the
 *          memory for some stage's layers; ST_NOMEM
 *
 *  Ranks whose GPU is gone, or has not the memory, stand on idle ones of the pool. */
enum status mover_init (struct mover *x, const struct pool *pool,
                        const struct workload_config *c, const int *layers,
                        const int *home, struct error *err);
void mover_release (struct mover *x);

/** The placement in hand: [n], the ranks first. */
const int *mover_gpus (const struct mover *x);
struct costmodel_price mover_price (const struct mover *x);
/** Take this placement of the ranks in hand. @param[in] gpu [world] */
void mover_put (struct mover *x, const int *gpu);
/** May these ranks stand there, by memory and within the limit on nodes? */
bool mover_legal (const struct mover *x, const int *gpu);

/** Exchange whole nodes, and TP groups where `groups`, as long as the step gets shorter:
 *  always the best exchange first. */
void mover_descend (struct mover *x, bool groups);

/** Take back whole groups of moves (the ranks that can move without the others), as long as the
 *  step stays within `most`.
 *  @return ST_OK or ST_NOMEM */
enum status mover_trim_groups (struct mover *x, const struct costmodel_price *most,
                               struct error *err);
/** Exchange two nodes, and TP groups where `groups`, that bring ranks home, as long as the step
 *  stays within `most`. */
void mover_bring_home (struct mover *x, bool groups, const struct costmodel_price *most);

/** The groups of moves from the old placement to the one in hand, each with its gain.
 *  @param[out] out  [*n] release each one's rank and node, and the list */
enum status mover_list (struct mover *x, struct mapper_move **out, int *n,
                        struct error *err);

#endif
