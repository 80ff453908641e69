/* What all GPUs of pairs of nodes reach together, in a few numbers. */
#include <math.h>

#include "topology/survey/stats.h"

void topology_totals_collect (const struct topology_cluster *c,
                              struct topology_totals *out)
{
    struct topology_totals t = {.lowest_bytes_per_s = INFINITY};

    for (int i = 0; c->has_pair_totals && i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double rate = i == j ? NAN : topology_matrix_at (&c->pair_bytes_per_s, i, j);

            t.pairs += i != j;
            t.unmeasured += i != j && isnan (rate);
            if (rate < t.lowest_bytes_per_s) {
                t.lowest_bytes_per_s = rate;
                t.lowest_from = i;
                t.lowest_to = j;
            }
            t.highest_bytes_per_s = fmax (t.highest_bytes_per_s, rate);
        }
    *out = t;
}
