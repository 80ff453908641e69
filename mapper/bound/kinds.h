/* What kinds.c, share.c and kinds_played.c share. */
#ifndef MAPPER_BOUND_KINDS_H
#define MAPPER_BOUND_KINDS_H

#include "mapper/bound/bound_private.h"
#include "mapper/bound/rows.h"
#include "mapper/bound/stock.h"

#define IMPOSSIBLE (-1e6) /* layers of a stage that cannot be of a kind */

/* What is counted: classes; of stages on one node; classes in the order of their memory. */
enum stock { BY_CLASS, ALONE, BY_MEMORY, STOCKS };

/* A kind of slot: with a GPU of its class or a slower one; or of a stage that is not ALONE. */
struct kind {
    struct config_times times;
    struct bound_pipeline pipeline;
    struct pipeline_case rows;
};

struct kinds {
    const struct least_terms *x;
    bool roams; /* bound_roams: more are on several nodes than leave all others apart */
    int p, classes;    /* stages; the kinds 0..classes-1 are by class */
    bool own_times;    /* has each class its own?  Else those of the fastest from it on */
    bool used[STOCKS]; /* does it tell something? */
    int units[STOCKS][KINDS_MAX]; /* by class, then all others */
    int by_memory[KINDS_MAX];     /* the classes, the one that holds most first */
    struct kind kind[KINDS_MAX + 1 + ALONE]; /* by class, then ALONE's others */
    int *cap;                                /* [2 * p] of each: a class's own */
    double *
        most; /* [STOCKS * p * KINDS_MAX] layers that a stage of a kind holds, by stock */
    int *near;     /* [p] of each kind: the most layers, as they were last */
    int *of;       /* [STOCKS * p] each stage's kind, by stock */
    double *loss;  /* [p] of most_across */
    double *above; /* [p] of each kind, of rows_put_above; NULL: not told */
    /* One replica's: mean slots by class, and what a layer takes there beyond any slot, at least
     * such shares of it forward and backward; layers by stage and class, and what they gain. */
    double slots[KINDS_MAX], more_s[KINDS_MAX], fwd_share, back_share;
    double *own, *gain, *work; /* NULL: not told */
    /* sends from a stage on one node to one on another, in one direction */
    double apart_s;
};

/* Stage 0 as it is tried; 0 layers where it is like all others. */
struct first {
    int layers, class;
    bool across; /* is it on several nodes? */
};

/* ---- kinds_played.c ---- */

/** The bound of some replica's splits, played out.
 *  @param[in] most  a bound beyond that is of no use
 *  @return `known` or more */
double kinds_played (struct kinds *x, double known, double most);

/* ---- share.c ---- */

/** Which slot of its pipeline is a kind's? */
static inline int kinds_slot (const struct kinds *x, int kind)
{
    return kind > 0 || x->own_times;
}

/** Must a stage whose slowest slot is of that class be told?  Where there are no units of it, one
 *  that has it takes a faster one's, and holds no more than that. */
bool kinds_has_units (const struct kinds *x, int class);

/** The most layers of stage k on a kind of slot. */
double kinds_most_layers (const struct kinds *x, int kind, int k, int below,
                          const struct rows_times *then);

/** 1F1B: stage 0's p-th next forward waits for a micro-batch's backward.  Do those that make no
 *  whole round end by then, which take turns on stage 0? */
bool kinds_goes_around (const struct kinds *x, const struct first *first, double end);

/** Let all rows know what the stages above each take at most, if the pipeline ends by then. */
void kinds_put_above (struct kinds *x, double end);

/** What slots of each class there are, and what a layer takes there. */
void kinds_share_init (struct kinds *x);

/** Is the replica in question told by what its slots cost?  See struct bound_pipeline. */
void kinds_put_told (struct kinds *x, bool told);

/** Does a replica that has no more than its share of fast slots end by then?
 *  @param[in] then  for which x->most is known */
bool kinds_share_ends (struct kinds *x, const struct first *first,
                       const struct rows_times *then);

#endif
