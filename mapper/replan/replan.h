/* An old plan on a cluster that has changed: what stays, what moves, and what that is
 * worth. */
#ifndef MAPPER_REPLAN_H
#define MAPPER_REPLAN_H

#include "mapper/search/search.h"

/** What moving costs, and for how long it can pay. */
struct mapper_replan_settings {
    double move_cost_s;     /* stopping, moving and starting again, once */
    double remaining_steps; /* that the job still has; 0: as many as a day holds */
    double tie;             /* gains up to this share of the step are none */
    bool any_degrees; /* search all that the problem's axes leave free; otherwise only
                               when the old degrees cannot run any more */
};
struct mapper_replan_settings mapper_replan_settings_default (void);

enum mapper_verdict {
    MAPPER_STAY,   /* every rank stays where it is */
    MAPPER_MOVE,   /* the old degrees and layers, some ranks on other GPUs */
    MAPPER_RESTART /* other degrees or layers: every rank starts anew */
};

/** Ranks that can move without the others: they end on GPUs of the same nodes, or on idle
 *  ones. */
struct mapper_move {
    int *rank; /* [n_ranks] */
    int n_ranks;
    int *node; /* [n_nodes] nodes that they leave or reach */
    int n_nodes;
    bool forced;   /* some of their GPUs are gone */
    double gain_s; /* of the step, after all moves listed before it; NAN: the step had no
                      price before it (forced moves) */
};

struct mapper_replanned {
    enum mapper_verdict verdict;
    double stay_step_s;       /* the old placement here; INFINITY when it cannot run */
    int stay_unmeasured;      /* links of it that nobody measured */
    double best_step_s;       /* best found, whether it is taken or not */
    int ranks_gone;           /* whose GPU is gone, drained or excluded */
    int ranks_moved;          /* all with MAPPER_RESTART */
    struct mapper_move *move; /* [n_moves] the largest gain first, forced ones before */
    int n_moves;
    double move_cost_s, remaining_steps; /* as reckoned with */
    /* move_cost / gain a step; INFINITY: never; 0 when it had to */
    double pays_after_steps;
    char old_degrees[256]; /* why the old degrees cannot run; "" when they can */
};
void mapper_replanned_release (struct mapper_replanned *x);

/** Plan anew from an old plan, moving as little as pays.
 *
 *  The old configuration and layers come first: from the old placement, whole nodes (and
 *  single TP groups, where the old plan was not by nodes) are exchanged as long as the step
 *  gets shorter, beside a search that knows nothing of the old placement; the latter's
 *  plan is taken where it is better by more than `tie`.  Moves that gain nothing are taken
 *  back.  The job stays as it is where the gain over the remaining steps is not above the
 *  cost of moving.
 *
 *  @param[in]  p    the job on the cluster as it is now; the axes are what the user fixed
 *  @param[in]  old  read by workload_plan_read
 *  @param[out] r    the plan; its lower bound holds for the old configuration, or for the
 *                   whole space where that was searched; release with mapper_result_release
 *  @param[out] info as of mapper_search; always release
 *  @param[out] out  release with mapper_replanned_release
 *  @return as mapper_search; outputs but info are untouched on failure
 */
enum status mapper_replan (const struct mapper_problem *p,
                           const struct workload_plan *old,
                           const struct mapper_settings *s,
                           const struct mapper_replan_settings *how,
                           struct mapper_result *r, struct mapper_info *info,
                           struct mapper_replanned *out, struct error *err);

/** mapper_result_use of what mapper_replan found; where the job restarts, with a search of the
 *  nodes on which that profile serves.  The times of `x` follow, that of the old placement unless
 *  it is on other GPU types, too.  On failure mapper_replan's outputs are still to be released. */
enum status mapper_replanned_use (struct mapper_problem *p,
                                  struct workload_profile *profile,
                                  const struct workload_plan *old,
                                  const struct mapper_settings *s,
                                  struct mapper_result *r, struct mapper_info *info,
                                  struct mapper_replanned *x, struct error *err);

/** The plan file's `replan`.  @param[in] from the old plan's file.  A new reference. */
json_t *mapper_replanned_to_json (const struct mapper_problem *p,
                                  const struct mapper_replanned *x, const char *from);

/** Place a plan anew on other nodes with its degrees and layers: a plan by nodes stays one
 *  where that is possible.  Quick, since nodes are held while it runs.
 *
 *  @param[in]  p  the plan's problem with every axis fixed, on the nodes that were given
 *  @return as mapper_search, whose outputs it has */
enum status mapper_bind (const struct mapper_problem *p, const struct workload_plan *plan,
                         struct mapper_result *r, struct mapper_info *info,
                         struct error *err);

#endif
