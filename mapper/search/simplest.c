/* Which of several configurations that are as good is the simplest to run.
 *
 * In this order: fewer axes in use (tensor, pipeline, data, context, expert parallelism,
 * chunks); 1F1B before other schedules; less recomputed; a lower ZeRO stage; its states over all
 * ranks; no sequence parallelism; fewer GPUs; fewer pipeline stages; fewer chunks of a stage; a
 * smaller tensor-parallel degree. */
#include "mapper/search/search_private.h"

static int axes_in_use (const struct workload_degrees *d)
{
    return (d->tp > 1) + (d->pp > 1) + (d->dp > 1) + (d->cp > 1) + (d->ep > 1) +
           (d->vpp > 1);
}

bool config_simpler (const struct workload_config *a, const struct workload_config *b)
{
    const int x[] = {axes_in_use (&a->deg),
                     (int) a->schedule,
                     (int) a->recompute,
                     (int) a->recompute_modules,
                     a->zero,
                     workload_shard_copies (a) > 1,
                     a->sequence_parallel,
                     (int) workload_world (&a->deg),
                     a->deg.pp,
                     a->deg.vpp,
                     a->deg.tp};
    const int y[] = {axes_in_use (&b->deg),
                     (int) b->schedule,
                     (int) b->recompute,
                     (int) b->recompute_modules,
                     b->zero,
                     workload_shard_copies (b) > 1,
                     b->sequence_parallel,
                     (int) workload_world (&b->deg),
                     b->deg.pp,
                     b->deg.vpp,
                     b->deg.tp};

    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return false;
}
