/* What other rooms use of the mapper: the problem, the search, replanning, and the gain on
 * measurements that a plan was not made from. */
#ifndef MAPPER_MAPPER_H
#define MAPPER_MAPPER_H

#include "mapper/problem.h"
#include "mapper/replan/heldout.h"
#include "mapper/replan/replan.h"
#include "mapper/search/search.h"

#endif
