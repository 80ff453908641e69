/* linkwise plan --from: its options, and what it says.  Used by plan.c alone. */
#ifndef CLI_PLAN_FROM_H
#define CLI_PLAN_FROM_H

#include "cli/cli.h"
#include "mapper/replan/replan.h"

struct plan_from {
    const char *file; /* NULL: a plan of its own */
    bool any_option;  /* one of its other options was given */
    struct mapper_replan_settings how;
    struct workload_plan old;
    struct mapper_replanned done;
};

/** An argp child that fills the struct plan_from that is its input. */
extern const struct argp plan_from_argp;

/** Read the old plan, and the cluster as it is now.
 *
 *  @param[in]  cluster, model  arguments; NULL where not given: the plan's own
 *  @param[out] p  the problem, on the plan's model and job; the options' limits hold
 *  @return ST_OK; ST_USAGE for a job that is not the plan's; as cli_plan_read */
enum status plan_from_read (struct plan_from *x, const struct cli_job *job,
                            const char *cluster, const char *model,
                            struct topology_cluster **c, struct workload_profile *profile,
                            struct mapper_problem *p, struct notes *notes,
                            struct error *err);
void plan_from_release (struct plan_from *x);

/** Say whether to stay or to go, and what each move gains. */
void plan_from_print (const struct plan_from *x, const struct mapper_problem *p,
                      const struct mapper_result *r);

#endif
