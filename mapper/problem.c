/* Names and defaults of the problem. */
#include "mapper/problem.h"

struct mapper_axes mapper_axes_free (void)
{
    return (struct mapper_axes){.tp = MAPPER_FREE,
                                .pp = MAPPER_FREE,
                                .dp = MAPPER_FREE,
                                .cp = MAPPER_FREE,
                                .ep = MAPPER_FREE,
                                .etp = MAPPER_FREE,
                                .vpp = MAPPER_FREE,
                                .micro_batch = MAPPER_FREE,
                                .zero = MAPPER_FREE,
                                .sequence_parallel = MAPPER_FREE,
                                .recompute = MAPPER_FREE,
                                .schedule = MAPPER_FREE};
}

struct mapper_axes mapper_axes_of (const struct workload_config *c)
{
    return (struct mapper_axes){.tp = c->deg.tp,
                                .pp = c->deg.pp,
                                .dp = c->deg.dp,
                                .cp = c->deg.cp,
                                .ep = c->deg.ep,
                                .etp = c->deg.etp,
                                .vpp = c->deg.vpp,
                                .micro_batch = c->micro_batch,
                                .zero = c->zero,
                                .sequence_parallel = c->sequence_parallel,
                                .recompute = (int) c->recompute,
                                .recompute_layers = c->recompute_layers,
                                .schedule = (int) c->schedule};
}

static bool holds (int fixed, int value)
{
    return fixed == MAPPER_FREE || fixed == value;
}

bool mapper_axes_hold (const struct mapper_axes *fixed, const struct workload_config *c)
{
    struct mapper_axes has = mapper_axes_of (c);

    return holds (fixed->tp, has.tp) && holds (fixed->pp, has.pp) &&
           holds (fixed->dp, has.dp) && holds (fixed->cp, has.cp) &&
           holds (fixed->ep, has.ep) && holds (fixed->etp, has.etp) &&
           holds (fixed->vpp, has.vpp) && holds (fixed->micro_batch, has.micro_batch) &&
           holds (fixed->zero, has.zero) &&
           holds (fixed->sequence_parallel, has.sequence_parallel) &&
           holds (fixed->recompute, has.recompute) &&
           (fixed->recompute == MAPPER_FREE ||
            fixed->recompute_layers == has.recompute_layers) &&
           holds (fixed->schedule, has.schedule);
}

const char *mapper_objective_name (enum mapper_objective o)
{
    return o == MAPPER_GPU_HOURS ? "gpu-hours" : "step";
}
