/* Which of several configurations that are as good is the simplest to run.
 *
 * In this order: fewer axes in use (tensor, pipeline, data, context, expert parallelism,
 * chunks); 1F1B before other schedules; less recomputed; a lower ZeRO stage; its states over all
 * ranks; no sequence parallelism; fewer GPUs; fewer pipeline stages; fewer chunks of a stage; a
 * smaller tensor-parallel degree. */
#include "mapper/search/search_private.h"

#include "base/order.h"

static int axes_in_use (const struct workload_degrees *d)
{
    return (d->tp > 1) + (d->pp > 1) + (d->dp > 1) + (d->cp > 1) + (d->ep > 1) +
           (d->vpp > 1);
}

/* What tells configurations apart, in that order. */
struct marks {
    int of[11];
};

static struct marks marks_of (const struct workload_config *c)
{
    return (struct marks){{axes_in_use (&c->deg), (int) c->schedule, (int) c->recompute,
                           (int) c->recompute_modules, c->zero,
                           workload_shard_copies (c) > 1, c->sequence_parallel,
                           (int) workload_world (&c->deg), c->deg.pp, c->deg.vpp,
                           c->deg.tp}};
}

bool config_simpler (const struct workload_config *a, const struct workload_config *b)
{
    struct marks x = marks_of (a), y = marks_of (b);

    return order_ints (&x, &y, sizeof x / sizeof *x.of) < 0;
}
