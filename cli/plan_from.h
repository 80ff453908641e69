/* linkwise plan --from: its options, and what it says.  Used by plan.c alone. */
#ifndef CLI_PLAN_FROM_H
#define CLI_PLAN_FROM_H

#include "cli/cli.h"
#include "mapper/replan/replan.h"

struct plan_from {
    const char *file;   /* NULL: a plan of its own */
    double move_cost_s; /* below 0: not given */
    int degrees;        /* a word of the option's; below 0: not given */
    struct mapper_replan_settings how;
    struct cli_work old; /* on the cluster as it is now */
    struct mapper_replanned done;
};

/** What fills it. */
extern const struct cli_options plan_from_options;

/** Was one of its options but --from given? */
bool plan_from_asked (const struct plan_from *x);

/** Read the old plan, and the cluster as it is now.
 *
 *  @param[in]  cluster, model  arguments; NULL where not given: the plan's own
 *  @param[out] p  the problem, on the plan's model and job; the options' limits hold
 *  @return ST_OK; ST_USAGE for a job that is not the plan's; as cli_plan_read */
enum status plan_from_read (struct plan_from *x, const struct cli_job *job,
                            const char *cluster, const char *model,
                            struct mapper_problem *p, struct notes *notes,
                            struct error *err);
void plan_from_release (struct plan_from *x);

/** Say whether to stay or to go, and what each move gains. */
void plan_from_print (const struct plan_from *x, const struct mapper_problem *p,
                      const struct mapper_result *r);

#endif
