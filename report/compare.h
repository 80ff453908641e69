/* What two clusters, or one at two times, mean for training a model. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "mapper/mapper.h"

/** The best plan on one cluster. */
struct report_best {
    bool fits;
    char why[256]; /* where it does not */
    struct mapper_result plan;
    struct mapper_info info;
    double gpu_hours; /* for 1e9 tokens, on the GPUs that the plan uses */
};

/** Search; that nothing fits is an answer too.
 *  @param[out] out  zeros before; release its plan and info */
enum status report_find_best (const struct mapper_problem *p,
                              const struct mapper_settings *settings,
                              struct report_best *out, struct error *err);

/** The same GPUs in another cluster's numbers.
 *  @param[out] out  [n] -1 for one that is not there, or drained
 *  @return how many are not */
long long report_carry (const struct topology_cluster *from,
                        const struct topology_cluster *to, const int *gpu, long long n,
                        int *out);

/** The best plans of one model, and the first plan on the second cluster. */
struct report_compared {
    struct report_best best[2];
    /* Where the second cluster is the first at another time, and both have a plan: */
    bool has_kept;
    double kept_step_s; /* the first one's plan on the second's links; INFINITY when it
                           cannot run there */
    int moved;          /* ranks that the second plan puts elsewhere; -1: other degrees */
};

/** Plan on both clusters.
 *
 *  @param[in]  a, b      the same job on two clusters
 *  @param[in]  snapshots b's cluster is a's at another time
 *  @param[out] out       release with report_compared_release
 *  @return ST_OK, also where nothing fits; what mapper_search returns otherwise
 */
enum status report_compare (const struct mapper_problem *a,
                            const struct mapper_problem *b, bool snapshots,
                            const struct mapper_settings *settings,
                            struct report_compared *out, struct error *err);
void report_compared_release (struct report_compared *r);

#endif
