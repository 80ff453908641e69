/* Shared by the files of memest/ alone. */
#ifndef MEMEST_MEMEST_PRIVATE_H
#define MEMEST_MEMEST_PRIVATE_H

#include "memest/memest.h"

/** One stage by the published model that p->by names. */
void memest_stage_published (const struct memest_problem *p, int stage,
                             const struct workload_stage *held, struct memest_stage *out);

#endif
