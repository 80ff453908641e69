/* The lower bound of a pipeline, split by split. */
#ifndef MAPPER_BOUND_PLAYED_H
#define MAPPER_BOUND_PLAYED_H

#include "mapper/bound/rows.h"
#include "mapper/bound/stock.h"

/** A replica: every stage is on a slot of some kind. */
struct played_replica {
    int kinds;
    struct played_kind {
        const struct pipeline_case *rows; /* with stage 0 placed in one way */
        int slot;                         /* of rows->x */
        int price;
    } kind[KINDS_MAX];
    double send_s[KINDS_MAX][KINDS_MAX]; /* a boundary in one direction, by kinds */
    int budget;                          /* for the slots of all stages */
    bool all_spent;                      /* exactly so much */
};

/** The least step over all splits of the layers, each played out with every time at its
 *  best, where there are few enough of them near rows_s.
 *
 *  @param rows_s  what the rows say of the frame
 *  @return rows_s or more: no placement of stage 0 in the frame's way is faster */
double bound_played (const struct played_replica *r, double rows_s);

/** The same of a replica of two kinds of slots, as many stages on slow ones as the pipeline says.
 */
double bound_played_slow (const struct pipeline_case *pc, double rows_s);

#endif
