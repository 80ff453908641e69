/* Explain: what would make a plan's step shorter, and why other configurations lose. */
#include "report/report_private.h"

#include <math.h>
#include <stdlib.h>

enum status report_explain (const struct mapper_problem *p,
                            const struct workload_plan *plan, const int *gpu,
                            void (*show) (void *context, double share, const char *what),
                            void *context, struct report_explained *out,
                            struct error *err)
{
    static const struct mapper_nodes all;
    struct report_explained x = {.replanned_s = INFINITY};
    struct report_explaining e = {.settings = mapper_settings_default (),
                                  .problem = *p,
                                  .old = plan,
                                  .x = &x,
                                  .show = show,
                                  .context = context,
                                  .err = err};
    struct costmodel_problem priced =
        mapper_priced (p, &plan->config, plan->layers_per_stage);
    const struct workload_degrees *d = &plan->config.deg;
    struct mapper_axes *axes = &e.problem.axes;
    enum status st;

    *axes = mapper_axes_resumed (&plan->config);
    axes->tp = d->tp;
    axes->pp = d->pp;
    axes->cp = d->cp;
    axes->ep = d->ep;
    axes->etp = d->etp;
    e.plan = (struct report_whatif_plan){.p = &e.problem,
                                         .nodes = &all,
                                         .settings = &e.settings,
                                         .config = &plan->config,
                                         .layers = plan->layers_per_stage,
                                         .gpu = gpu};
    st = costmodel_estimate (&priced, gpu, true, &x.estimate, err);
    if (st == ST_OK) {
        free (x.estimate.unmeasured);
        x.estimate.unmeasured = NULL;
        st = report_explain_cluster (&e);
    }
    THEN (st, report_explain_settings (&e));
    mapper_result_release (&e.base);
    if (st != ST_OK) {
        report_explained_release (&x);
        return st;
    }
    report_explain_rank (&x);
    *out = x;
    return ST_OK;
}
