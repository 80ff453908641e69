/* An independent check of a plan: what the planner claims, worked out again from the
 * memory estimator and the played-out schedule, without a line of the search. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "costmodel/costmodel.h"
#include "topology/topology.h"
#include "workload/workload.h"

enum check_verdict { CHECK_OK, CHECK_NOTE, CHECK_FAILED };

/** One thing that was checked. */
struct check_item {
    const char *what; /* "GPUs", "layers", "memory", ... */
    enum check_verdict verdict;
    char text[256]; /* what was found */
};

#define CHECK_ITEMS_MAX 16
struct check_report {
    struct check_item item[CHECK_ITEMS_MAX];
    int n;
    int failed;
    double step_s; /* played out in full; 0 when it could not be */
};

/** Check a plan that workload_plan_read accepted.
 *
 *  Checked: every rank on a GPU of the cluster that is not drained, once; degrees
 *  multiply to the ranks and layers sum to the model's; every stage fits the memory limit
 *  of its smallest GPU; unmeasured links are listed; the step, every micro-batch played
 *  out, is what the file says, and not below its lower bound (beyond 30 million micro-batches
 *  over all stages and replicas, whole periods are skipped); the file's other figures (gap,
 *  rates, breakdown, memory) follow from that; the default order is not faster.  A file whose ranks or
 *  configuration were edited after planning (its estimate carries a digest of them) has a
 *  stale estimate: a note, not a failure.
 *
 *  @param[out] r  filled also when something failed
 *  @return ST_OK when the check ran, whatever it found; ST_NOMEM
 */
enum status check_plan (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, struct check_report *r,
                        struct error *err);

#endif
