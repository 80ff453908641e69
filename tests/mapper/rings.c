/* The slowest links of a grid's rings, mended: no ring gets slower, whole columns move, and what is
 * left is far above the links that a ring in any order has. */
#include "mapper/place/grid_pairs.h"
#include "tests/lib/clusters.h"

#define NODES 24

/* Rates of 40 to 60 GB/s between nodes, each way its own. */
static struct topology_cluster *cluster_drawn (struct rng *r)
{
    double rate[NODES * NODES];

    for (int i = 0; i < NODES * NODES; i++)
        rate[i] = 40.0 + 20.0 * rng_unit (r);
    return cluster_of_rates (NODES, 2, "a100-sxm4-80g", false, rate);
}

static double slowest_rate (const struct topology_cluster *c, const int *node, int rows)
{
    int columns = NODES / rows;
    double least = INFINITY;

    for (int i = 0; i < NODES; i++) {
        int row = i / columns;
        int next = node[row * columns + (i % columns + 1) % columns];

        least = fmin (least, topology_node_link (c, node[i], next).bytes_per_s / 1e9);
    }
    return least;
}

/* The mean of the slowest rates after mending grids of so many rows in file order. */
static double mean_mended (int rows)
{
    static const double none[NODES];
    struct rng r = seeded (17);
    int node[NODES], columns = NODES / rows, rounds = 20;
    double share[NODES], sum = 0.0;

    for (int round = 0; round < rounds; round++) {
        struct topology_cluster *c = cluster_drawn (&r);
        struct grid_problem p = {.cluster = c,
                                 .n = NODES,
                                 .node = node,
                                 .rows = rows,
                                 .columns = columns,
                                 .send_bytes = 1.0,
                                 .flows = 1.0,
                                 .ring = {1e9, 1.0, 1.0},
                                 .ring_share = share,
                                 .hidden_s = none,
                                 .ahead_s = none};
        struct grid_pairs x;
        int order[NODES];
        double before, after;

        for (int i = 0; i < NODES; i++) {
            node[i] = order[i] = i;
            share[i] = 1.0;
        }
        before = slowest_rate (c, order, rows);
        assert_true (grid_pairs_init (&p, &x));
        assert_true (grid_mend_rings (&p, &x, order));
        after = slowest_rate (c, order, rows);
        assert_true (after > before);
        for (int i = 0; i < columns; i++)
            for (int row = 1; row < rows; row++)
                assert_int_equal (order[row * columns + i], order[i] + row * columns);
        sum += after;
        grid_pairs_release (&x);
        topology_cluster_destroy (c);
    }
    return sum / rounds;
}

TEST (slowest_links_go)
{
    assert_true (mean_mended (1) > 52.0); /* one link in 24 is below 40.8 */
    assert_true (mean_mended (2) > 46.0); /* both must be quick at once */
}
