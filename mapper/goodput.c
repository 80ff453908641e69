#include "mapper/goodput.h"

#include <math.h>

/* Daly's optimum, equation 37. */
static double best_interval (double checkpoint_s, double mtbf_s)
{
    double x = checkpoint_s / (2.0 * mtbf_s);

    return x >= 1.0
               ? mtbf_s
               : sqrt (2.0 * checkpoint_s * mtbf_s) * (1.0 + sqrt (x) / 3.0 + x / 9.0) -
                     checkpoint_s;
}

/* Erlang's loss formula: the share of time that all servers are busy. */
static double all_busy (int servers, double load)
{
    double b = 1.0;

    for (int i = 1; i <= servers && b > 1e-15; i++)
        b = b / (i / load + b); /* 1 also where the load is beyond numbers */
    return b;
}

struct mapper_goodput mapper_goodput (const struct mapper_reliability *r, double gpus,
                                      int spares)
{
    struct mapper_goodput g = {.mtbf_s = r->gpu_mtbf_s / gpus, .spares = spares};

    g.checkpoint_every_s = best_interval (r->checkpoint_s, g.mtbf_s);
    g.saved = g.checkpoint_every_s /
              (g.mtbf_s * exp (r->restart_s / g.mtbf_s) *
               expm1 ((g.checkpoint_every_s + r->checkpoint_s) / g.mtbf_s));
    g.waiting = all_busy (spares + 1, r->repair_s / g.mtbf_s);
    g.share = fmax (g.saved * (1.0 - g.waiting), MAPPER_GOODPUT_LEAST);
    return g;
}
