/* Which boundaries of a pipeline cross nodes, where a node has room for few stages. */
#ifndef MAPPER_BOUND_CUTS_H
#define MAPPER_BOUND_CUTS_H

#include <stdbool.h>
#include <stdint.h>

#define CUTS_MAX 400
#define CUTS_STAGES 64 /* as many bits */

/** Sets of boundaries, bit k from stage k to the next, the last bit back to stage 0: however
 *  stages are put on nodes, so that `per_node` at most share one and `beside` at most
 *  stage 0's, itself included, all boundaries of one of the sets at least cross.
 *
 *  @param beside  no more than per_node
 *  @param round    does the boundary back to stage 0 count?  Else no set has it
 *  @return how many; 0 where they are more than CUTS_MAX, or the stages too many */
int bound_cuts (int stages, bool round, int per_node, int beside, uint64_t *sets);

#endif
