/* Plans into the files that launchers take.
 *
 * No launcher's own GPU options can express an arbitrary rank-to-GPU map, so every target
 * stands on a table `rank host gpu` and a wrapper that looks its rank up, checks that it
 * runs on the planned host, and shows the program only the planned GPU.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** A kind of launcher. */
struct launch_target {
    const char *name; /* as --to takes it */
    const char *what; /* one line for --help */
};

/** Target number i, or NULL beyond the last. */
const struct launch_target *launch_target_at (int i);

/** Write a plan's files below dir, all or none.
 *
 *  Always: map.txt (`rank host gpu`), exec.sh (the wrapper), README (the commands), and
 *  gpu-uuid.txt where UUIDs are known; then each target's own folder.  Files of targets
 *  that are not asked for are removed when they belong to another map.
 *
 *  @param[in]  gpu  [n_ranks] cluster-wide GPU of each rank
 *  @param[in]  to   comma-separated target names, or "all"
 *  @return ST_OK; ST_USAGE for an unknown target, naming those there are; ST_INVALID for a
 *          field that no launcher file can hold; ST_IO; ST_NOMEM
 */
enum status launch_emit (const struct workload_plan *p, const struct topology_cluster *c,
                         const int *gpu, const char *to, const char *dir,
                         struct error *err);

#endif
