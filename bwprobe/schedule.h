/* Which pairs are measured when.
 *
 * Endpoints (one rank each) stand in node order.  The pairs of a round are disjoint, and each
 * measures both of its directions, one after the other.  Rounds come from the circle method:
 * n endpoints meet in n - 1 rounds (n when n is odd), everybody once with everybody.
 */
#ifndef BWPROBE_SCHEDULE_H
#define BWPROBE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/** A round of pairs of nodes that are `shift` apart, i with i + shift.  Such pairs form
 *  cycles; a round takes every second (third) pair of each, from number `colour` on. */
struct schedule_stride {
    int shift, colour;
};

struct schedule_shape {
    int n;     /* endpoints */
    int nodes; /* 1 or more */
    /* [nodes + 1] node i has the endpoints first[i] .. first[i + 1] - 1 */
    const int *first;
    /* [n_strides] rounds between nodes, the most valuable first; NULL: the circle method's */
    const struct schedule_stride *stride;
    int n_strides;
};

/** Rounds between nodes in order of value, for when only some of them can be taken.
 *
 *  Whatever the degrees, a plan sends to next neighbours (rings) and to nodes the n-th part of
 *  all nodes away (pipelines) in some order of the nodes, and the first one it tries is the
 *  order in which they are listed.  So first come the shifts 1, nodes / k, these plus and minus
 *  1, then all others at random: a placement exists all of whose links were measured, and each
 *  of its nodes has others nearby.  A node takes part equally often.
 *
 *  @param[out] stride  [schedule_strides_max (nodes)]
 *  @return how many; every pair of nodes is in one of them; 0 when out of memory */
int schedule_strides (int nodes, uint64_t seed, struct schedule_stride *stride);
static inline int schedule_strides_max (int nodes)
{
    return 3 * (nodes / 2) + 1;
}

struct schedule_pair {
    int a, b; /* endpoints */
};

/** Rounds of the circle method over n. */
int schedule_circle (int n);

/** Whom i meets in one of them; -1: nobody. */
int schedule_partner (int n, int round, int i);

/** What a round is for, the most valuable first. */
enum schedule_kind {
    SCHEDULE_NODES,  /* alone: the first GPU of each node with that of every other */
    SCHEDULE_INSIDE, /* alone: pairs inside nodes, one at a time in each */
    SCHEDULE_RAILS_TOGETHER, /* together: all GPUs of a node with those of one other node */
    SCHEDULE_RAILS,    /* alone: GPU i of each node with GPU i of every other, i > 0 */
    SCHEDULE_TOGETHER, /* together: all endpoints */
    SCHEDULE_REST,     /* alone: GPU i with GPU j of another node, i != j */
    SCHEDULE_KINDS
};

/** True for rounds whose pairs all start at one moment. */
static inline bool schedule_is_together (enum schedule_kind k)
{
    return k == SCHEDULE_RAILS_TOGETHER || k == SCHEDULE_TOGETHER;
}

/** Most pairs that a round may have. */
int schedule_pairs_max (const struct schedule_shape *s);

/** Rounds of a kind.
 *  @param[in] at_once  pairs between nodes that may measure at the same time in rounds that
 *                      are to measure them alone; 0: as many as there are nodes for */
long schedule_rounds (const struct schedule_shape *s, enum schedule_kind kind,
                      int at_once);

/** The pairs of one round.
 *
 *  @param[in]  round  0 .. schedule_rounds () - 1
 *  @param[out] pair   [schedule_pairs_max ()]
 *  @return how many; 0 is possible where nodes have different numbers of GPUs
 */
int schedule_round (const struct schedule_shape *s, enum schedule_kind kind, int at_once,
                    long round, struct schedule_pair *pair);

/** What a round of each sort is expected to take. */
struct schedule_timing {
    double alone_s, together_s;
};

/** How much of each kind is measured. */
struct schedule_part {
    long rounds; /* in one pass of this kind, all of them */
    long taken;  /* of these, in the first pass: all, or a random choice */
    int passes;  /* 0: not measured */
    double seconds;
};

struct schedule_plan {
    int at_once;
    /* measuring together gives the same as alone: only the former is done */
    bool levelled;
    struct schedule_part part[SCHEDULE_KINDS];
    double seconds; /* all of it */
    bool whole;     /* every pair is measured, in every pass asked for */
};

/** Part of the budget that is kept for measuring suspects again. */
#define SCHEDULE_RESERVE 0.1

/** True for kinds that take rounds in the strides' order when not all of them fit. */
static inline bool schedule_is_strided (enum schedule_kind k)
{
    return k == SCHEDULE_NODES || k == SCHEDULE_RAILS_TOGETHER;
}

/** Fit the schedule into the time.
 *
 *  Every kind gets its first pass in order of value, then the second, and so on.  Where a
 *  first pass does not fit, a choice of its rounds takes a part of what is left: by strides
 *  between nodes, at random otherwise.  What is left in the end goes to pairs of nodes.
 */
struct schedule_plan schedule_plan_make (const struct schedule_shape *s,
                                         const struct schedule_timing *t, int at_once,
                                         bool levelled, int passes, double budget_s);

/** True if all pairs can be measured one at a time within half of the budget. */
bool schedule_one_at_a_time (const struct schedule_shape *s,
                             const struct schedule_timing *t, int passes,
                             double budget_s);

#endif
