/* A plan file's groups, as rounds of pairs that measure at the same time.
 *
 * Rank r of the job is rank r of the plan.  Groups of a kind are `size` ranks that stand
 * `stride` apart, which the plan's degrees tell (the plan file's contract); what they send:
 *
 *     pp         stage to stage, activations there and gradients back
 *     dp         the ring of gradients and weights, over dp and cp
 *     ep         everybody with everybody
 *     expert dp  the ring of the experts' gradients
 *     cp, tp     rings
 *
 * A rank measures with one other at a time, so a ring takes two rounds (three where its length
 * is odd) and an all-to-all of n takes n - 1; in each, all groups of the kind take part.  A ring
 * goes node by node in the order of the ranks, each member to its like on the next node, as the
 * price lays it.
 */
#ifndef BWPROBE_GROUPS_H
#define BWPROBE_GROUPS_H

#include <stdbool.h>

#include "base/error.h"
#include "bwprobe/schedule.h"
#include "topology/topology.h"

enum groups_kind {
    GROUPS_PP,
    GROUPS_DP,
    GROUPS_EXPERT_DP,
    GROUPS_CP,
    GROUPS_TP,
    GROUPS_EP, /* last: it has the most rounds */
    GROUPS_KINDS
};

/** "pp", "dp", ... */
const char *groups_name (int kind);

/** All groups of a kind. */
struct groups_part {
    int size, stride;
    double bytes;               /* of one message between two ranks; 0: not known */
    struct schedule_pair *pair; /* of ranks, round after round */
    int n;
    int rounds;
    int *first; /* [rounds + 1] */
};

struct groups {
    struct topology_cluster *cluster; /* the plan's own */
    int ranks;
    int *gpu;    /* [ranks] cluster-wide */
    bool closed; /* the last stage sends to the first */
    struct groups_part part[GROUPS_KINDS];
};

/** Read a plan file and the cluster in it.
 *
 *  @param[out] out  destroy with groups_destroy; no rounds yet
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID with file and place, also for a plan that only
 *          refers to its cluster
 */
enum status groups_read (const char *path, struct groups **out, struct error *err);
void groups_destroy (struct groups *g);

/** Make the rounds.
 *  @param[in] inside  also pairs inside a node
 *  @return ST_OK or ST_NOMEM */
enum status groups_lay (struct groups *g, bool inside, struct error *err);

/** What the price takes for each pair of a round while all of them send in one direction: the
 *  link, or less where flows share what a node reaches (topology_share).
 *
 *  @param[in]  direction    0: a sends, 1: b does
 *  @param[out] bytes_per_s  [n]; 0: nothing of the kind was measured
 *  @return ST_OK or ST_NOMEM */
enum status groups_expect (const struct groups *g, const struct schedule_pair *pair,
                           int n, int direction, double *bytes_per_s, struct error *err);

/** The same for one pair alone. */
double groups_expect_alone (const struct groups *g, int src, int dst);

/** Node of a rank. */
static inline int groups_node (const struct groups *g, int rank)
{
    return g->cluster->node_of_gpu[g->gpu[rank]];
}

#endif
