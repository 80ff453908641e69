/* Plans into the files that launchers take.
 *
 * No launcher's own GPU options can express an arbitrary rank-to-GPU map, so every target
 * stands on a table `rank host gpu` and a wrapper that looks its rank up, checks that it
 * runs on the planned host, and shows the program the node's planned GPUs in the order of their
 * ranks, so that device LOCAL_RANK is its own.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** Kind of launcher number i, as --to takes it, or NULL beyond the last. */
const struct text_choice *launch_target_at (int i);

/** What is to be emitted.  All borrowed. */
struct launch_request {
    const struct workload_plan *plan;
    const struct workload_profile *profile; /* that the plan was priced by */
    const struct topology_cluster *cluster;
    const int *gpu;       /* [n_ranks] cluster-wide GPU of each rank */
    const json_t *doc;    /* the plan file, its cluster included: written as plan.json, so
                             that the folder can be bound and checked by itself */
    const char *linkwise; /* the program, for scripts that call it */
    const char *to;       /* comma-separated target names, or "all" */
};

/** Write a plan's files below dir, all or none.
 *
 *  Always: map.txt (`rank host gpu`), hosts.txt (`host gpu gpu ...`: all hosts of the
 *  cluster and their GPUs that are not drained), exec.sh (the wrapper), where.sh and
 *  where.py (what `check --running` compares), plan.json, README (the commands), and
 *  gpu-uuid.txt and gpu-numa.txt where the cluster has them; then each target's own folder.
 *  Files of targets that are not asked for are removed when they belong to another plan.
 *
 *  A target that cannot express the plan says no.  When it was named the call fails; "all"
 *  writes the rest.
 *
 *  @param[out] refused  with "all": one note, `target: reason`, for each that said no, but for
 *                       NeMo, TorchTitan and DeepSpeed's configuration: the README has these
 *  @return ST_OK; ST_USAGE for an unknown target, naming those there are; ST_NOFIT when a
 *          named target says no, with the reason and the nearest thing that works;
 *          ST_INVALID for a field that no launcher file can hold; ST_IO; ST_NOMEM
 */
enum status launch_emit (const struct launch_request *r, const char *dir,
                         struct notes *refused, struct error *err);

#endif
