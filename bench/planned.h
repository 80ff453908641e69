/* A plan that is made on one cluster and priced on another. */
#ifndef BENCH_PLANNED_H
#define BENCH_PLANNED_H

#include <stdlib.h>

#include "mapper/mapper.h"

static inline enum status planned_step (const struct mapper_problem *p,
                                        const struct mapper_settings *settings,
                                        const struct topology_cluster *truth,
                                        double *step_s, struct error *err)
{
    struct mapper_result r;
    struct mapper_info info;
    struct costmodel_problem priced;
    struct costmodel_estimate e;
    enum status st;

    TRY (mapper_search (p, settings, &r, &info, err));
    priced = mapper_priced (p, &r.config, r.layers);
    priced.cluster = truth;
    st = costmodel_estimate (&priced, r.gpu, true, &e, err);
    mapper_result_release (&r);
    mapper_info_release (&info);
    if (st != ST_OK)
        return st;
    free (e.unmeasured);
    *step_s = e.step_s;
    return ST_OK;
}

#endif
