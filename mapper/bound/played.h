/* The lower bound of a pipeline, split by split. */
#ifndef MAPPER_BOUND_PLAYED_H
#define MAPPER_BOUND_PLAYED_H

#include "mapper/bound/rows.h"

/** The least step over all splits of the layers, each played out with every time at its
 *  best, where there are few enough of them near rows_s.
 *
 *  @param rows_s  what the rows say of the frame
 *  @return rows_s or more: no placement of stage 0 in the frame's way is faster */
double bound_played (const struct pipeline_case *pc, double rows_s);

#endif
