/* Two snapshots of one cluster: which links changed. */
#ifndef TOPOLOGY_DIFF_H
#define TOPOLOGY_DIFF_H

#include "topology/survey/stats.h"

/** A link whose rate is another one now. */
struct topology_change {
    struct topology_end from, to;            /* in the old cluster's numbers */
    double old_bytes_per_s, new_bytes_per_s; /* 0: unmeasured */
    bool by_interval; /* the intervals of both measurements do not meet */
};

struct topology_diff {
    double compared;           /* links that both have a rate for */
    double with_intervals;     /* of these, both with an interval */
    double slower, faster;     /* of these, changed */
    double appeared, vanished; /* measured in only one of the two */
    double median_ratio;       /* new / old over the compared; 1 where there are none */
    struct topology_change *change; /* [n] the largest changes first, by ratio */
    int n;
    int nodes_gone, nodes_new; /* only in the old, only in the new one */
};

/** True if two clusters are one at two times: they share nodes (by name), and every shared
 *  node has the same type and number of GPUs; one's nodes are among the other's. */
bool topology_same_cluster (const struct topology_cluster *a,
                            const struct topology_cluster *b);

/** Compare the links of two snapshots, of the nodes that both have.
 *
 *  A link changed when the intervals of its two measurements (`measured` in the files) do
 *  not meet; without intervals, when its rate differs by more than a share.
 *
 *  @param[in]  a, b     before and after; topology_same_cluster
 *  @param[in]  share    as in 0.1 for 10 %
 *  @param[in]  most     how many changes to list
 *  @param[out] out      release with topology_diff_release
 *  @return ST_OK or ST_NOMEM
 */
enum status topology_diff_collect (const struct topology_cluster *a,
                                   const struct topology_cluster *b, double share,
                                   int most, struct topology_diff *out,
                                   struct error *err);
void topology_diff_release (struct topology_diff *d);

#endif
