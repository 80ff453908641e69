/* An independent check of a plan: the planner's claims are computed again from the
 * memory estimator and a full simulation of the schedule, with no code of the search. */
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

#define CHECK_ITEMS_MAX 48
struct check_report {
    struct check_item item[CHECK_ITEMS_MAX];
    int n;
    int failed;
    double step_s; /* simulated in full; 0 when that failed */
};

/** Add what was found. */
void check_say (struct check_report *r, const char *what, enum check_verdict verdict,
                const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

/** Check a plan that workload_plan_read accepted.
 *
 *  Checked: every rank on a GPU of the cluster that is not drained, once; degrees
 *  multiply to the ranks and layers sum to the model's; every stage fits the memory limit
 *  of its smallest GPU; unmeasured links are listed; the step time, with every
 *  micro-batch simulated, is what the file says, and not below its lower bound (beyond 30
 *  million micro-batches over all stages and replicas, whole periods are skipped); the file's
 *  other figures (gap, rates, breakdown, memory) agree with it; the default order is not
 *  faster.  If ranks or configuration were edited after planning, the estimate is stale (it
 *  carries a digest of them): a note, not a failure.
 *
 *  @param[out] r  filled also when something failed
 *  @return ST_OK when the check ran, whatever it found; ST_NOMEM
 */
enum status check_plan (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, struct check_report *r,
                        struct error *err);

/* ---- a running job ---- */

/** Where a rank says that it is: `host gpu`, gpu the UUID or the index on the node of the
 *  program's device LOCAL_RANK, CHECK_NO_GPU where the program sees no such device, or "-". */
#define CHECK_NO_GPU "none"
struct check_place {
    char host[256]; /* "" until the rank has reported */
    char gpu[128];
};

/** Read a table `rank host gpu-uuid`, a rank a line in any order, as where.sh prints it;
 *  empty lines and lines that begin with # are skipped.
 *
 *  @param[in]  name   for messages
 *  @param[out] place  [n_ranks]; a rank that is not in the table keeps an empty host
 *  @return ST_OK, or ST_INVALID with name, line, expected and found: another number of
 *          words, a rank beyond n_ranks or repeated, no host name
 */
enum status check_running_parse (const char *name, const char *text, int n_ranks,
                                 struct check_place *place, struct error *err);

/** One rank that is not where it was planned. */
struct check_difference {
    int rank;
    bool host, gpu; /* which of the two differs; neither: the rank did not report */
};

struct check_running {
    int n_ranks, reported;
    struct check_difference *difference; /* [n_differences] by rank; release with free */
    int n_differences;
    double planned_step_s; /* of the plan, priced now */
    double step_s;         /* as the job runs; NAN when it cannot be priced */
};

/** Compare a running job with its plan.
 *
 *  Hosts are compared by name, a short name standing for a full one; GPUs by UUID where the
 *  cluster has them and by index where the job reports that, and two ranks on one GPU are
 *  found in any case.  A GPU that cannot be identified counts as the planned one; a rank that
 *  sees none is on another GPU than planned.
 *
 *  @param[in,out] r    items are added: ranks, hosts, GPUs and the step as the job runs
 *  @param[out]    out  also when something differs
 *  @return ST_OK when the check ran, whatever it found; ST_INVALID if the plan is not one
 *          of the cluster; ST_NOMEM
 */
enum status check_running (const struct workload_plan *p,
                           const struct topology_cluster *c,
                           const struct workload_profile *profile,
                           const struct check_place *place, struct check_report *r,
                           struct check_running *out, struct error *err);

#endif
