/* linkwise plan --objective goodput: how often GPUs fail, and what that costs. */
#include "cli/plan.h"

#define INPUT struct plan_goodput

static const struct cli_option options[] = {
    {"gpu-mtbf", 0, "HOURS",
     "mean time between failures of a GPU with its share of host and network (default "
     "50700, Llama 3's 419 interruptions)",
     CLI_ABOVE (mtbf_h, 0, 1e9)},
    {"checkpoint", 0, "S",
     "time that the job stands still to write a checkpoint (default 60)",
     CLI_ABOVE (given.checkpoint_s, 0, 1e7)},
    {"restart", 0, "S", "time from a failure to training again (default 900)",
     CLI_ABOVE (given.restart_s, 0, 1e7)},
    {"repair", 0, "HOURS", "time until a failed node can be used again (default 24)",
     CLI_ABOVE (repair_h, 0, 1e6)},
    {0}};

const struct cli_options plan_goodput_options = {.line = options};

static void take (double given, double *value)
{
    if (given > 0)
        *value = given;
}

void plan_goodput_read (const struct plan_goodput *x, struct mapper_problem *p)
{
    if (p->objective != MAPPER_GOODPUT && !(x->mtbf_h > 0) && !(x->repair_h > 0) &&
        !(x->given.checkpoint_s > 0) && !(x->given.restart_s > 0))
        return;
    p->reliability = MAPPER_RELIABILITY_USUAL;
    take (x->mtbf_h * 3600, &p->reliability.gpu_mtbf_s);
    take (x->given.checkpoint_s, &p->reliability.checkpoint_s);
    take (x->given.restart_s, &p->reliability.restart_s);
    take (x->repair_h * 3600, &p->reliability.repair_s);
}

void plan_goodput_print (const struct mapper_problem *p, const struct mapper_result *r)
{
    struct mapper_goodput g;

    if (!(p->reliability.gpu_mtbf_s > 0))
        return;
    g = mapper_goodput_of (p, workload_world (&r->config.deg));
    cli_print ("goodput  %.2f %% of the time is training, %.0f tokens/s: a failure every "
               "%.1f h, a checkpoint every %.1f min\n",
               100 * g.share,
               g.share * p->job->seq * p->job->global_batch / r->estimate.step_s,
               g.mtbf_s / 3600, g.checkpoint_every_s / 60);
    cli_print ("         %d spare node%s; %.2f %% of the time it waits for repair\n",
               g.spares, TEXT_S (g.spares), 100 * g.waiting);
}
