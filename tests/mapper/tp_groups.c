/* TP groups inside a node: GLPK's partition equals brute force, follows the links, and
 * differs from index order where links are uneven. */
#include "mapper/place/place.h"
#include "tests/lib/clusters.h"

#define BYTES 16e6
#define LAYER_S 1e-3

/* The hybrid cube mesh of a DGX-1 with V100s: each GPU has two double NVLinks and two
 * single ones (GB/s one way: 48 and 24; pairs without a link go over PCIe, 10).
 * Source: `nvidia-smi topo -m` of a DGX-1V: 0-3, 1-2, 0-4, ... NV2. */
static void cube_mesh (double bw[8][8], const int twice[][2], const int once[][2])
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            bw[i][j] = 10;
    for (int k = 0; k < 8; k++) {
        bw[twice[k][0]][twice[k][1]] = bw[twice[k][1]][twice[k][0]] = 48;
        bw[once[k][0]][once[k][1]] = bw[once[k][1]][once[k][0]] = 24;
    }
}

static struct topology_cluster *node_of (double bw[8][8], int n, const double *speed)
{
    struct text t = {0};
    double rate[8 * 8];

    for (int k = 0; k < n * n; k++)
        rate[k] = bw[k / n][k % n];
    add_node (&t, 0, n, "v100-sxm2-16g", speed);
    text_add (&t, "],\"links\":{\"intra\":{\"latency_us\":5,\"bandwidth_gb_per_s\":");
    add_matrix (&t, n, rate);
    text_add (&t, "}}}");
    return cluster_written (&t);
}

/* What a layer takes on a group in this ring order: the contract of place_tp_groups. */
static double ring_cost (const struct topology_cluster *c,
                         const struct workload_profile *p, const int *gpu, int tp)
{
    struct costmodel_ring r = {
        .inside_bytes_per_s = INFINITY, .between_bytes_per_s = INFINITY, .nodes = 1};
    double slowest = INFINITY;

    for (int i = 0; i < tp; i++) {
        struct topology_link l = topology_link (c, gpu[i], gpu[(i + 1) % tp]);

        r.inside_bytes_per_s = fmin (r.inside_bytes_per_s, l.bytes_per_s);
        r.latency_s += l.latency_s * (tp - 1.0) / tp;
        slowest = fmin (slowest, topology_gpu_speed (c, gpu[i]));
    }
    return 4 * costmodel_allreduce_s (p, &r, tp, BYTES) + LAYER_S / slowest;
}

/* The best ring over a subset, all orders tried. */
static double best_ring (const struct topology_cluster *c,
                         const struct workload_profile *p, int *gpu, int tp, int at)
{
    double best = INFINITY;

    if (at == tp)
        return ring_cost (c, p, gpu, tp);
    for (int i = at; i < tp; i++) {
        int x = gpu[at];

        gpu[at] = gpu[i];
        gpu[i] = x;
        best = fmin (best, best_ring (c, p, gpu, tp, at + 1));
        x = gpu[at];
        gpu[at] = gpu[i];
        gpu[i] = x;
    }
    return best;
}

struct outcome {
    double largest, sum;
};

static bool better (struct outcome a, struct outcome b)
{
    if (fabs (a.largest - b.largest) > 1e-12 * b.largest)
        return a.largest < b.largest;
    return a.sum < b.sum * (1 - 1e-12);
}

/* Every partition of the GPUs into groups of tp (leftovers idle): the least largest cost,
 * then the least sum. */
static struct outcome brute (const struct topology_cluster *c,
                             const struct workload_profile *p, int tp, int groups,
                             unsigned free_gpus)
{
    struct outcome best = {INFINITY, INFINITY};

    if (groups == 0)
        return (struct outcome){0, 0};
    for (unsigned set = 1; set < 256; set++) {
        int gpu[8], n = 0;
        struct outcome rest;
        double cost;

        if ((set & free_gpus) != set || __builtin_popcount (set) != tp)
            continue;
        for (int i = 0; i < 8; i++)
            if (set >> i & 1)
                gpu[n++] = i;
        cost = best_ring (c, p, gpu, tp, 1);
        /* Groups are unordered: the next ones begin above this one's first GPU. */
        rest = brute (c, p, tp, groups - 1,
                      free_gpus & ~set & ~((1u << __builtin_ctz (set)) - 1));
        rest = (struct outcome){fmax (rest.largest, cost), rest.sum + cost};
        if (better (rest, best))
            best = rest;
    }
    return best;
}

static struct outcome outcome_of (const struct topology_cluster *c,
                                  const struct workload_profile *p, const int *gpu,
                                  int tp)
{
    struct outcome o = {0, 0};

    for (int k = 0; k + tp <= c->n_gpus; k += tp) {
        double cost = ring_cost (c, p, gpu + k, tp);

        o.largest = fmax (o.largest, cost);
        o.sum += cost;
    }
    return o;
}

static void check_optimal (const struct topology_cluster *c,
                           const struct workload_profile *p, int tp, int *gpu)
{
    struct error err = {""};
    struct outcome got, want;
    unsigned seen = 0;

    ok (place_tp_groups (c, p, 0, tp, BYTES, LAYER_S, gpu, &err), &err);
    for (int i = 0; i < c->n_gpus; i++)
        seen |= 1u << gpu[i];
    assert_int_equal (seen, (1u << c->n_gpus) - 1);
    got = outcome_of (c, p, gpu, tp);
    want = brute (c, p, tp, c->n_gpus / tp, (1u << c->n_gpus) - 1);
    CLOSE (got.largest, want.largest, 1e-9);
    CLOSE (got.sum, want.sum, 1e-9);
}

static const int twice[8][2] = {{0, 3}, {0, 4}, {1, 2}, {1, 5},
                                {2, 3}, {4, 7}, {5, 6}, {6, 7}};
static const int once[8][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 6},
                               {3, 7}, {4, 5}, {4, 6}, {5, 7}};

/* On the cube mesh pairs take double links, which index order does not; moving a double
 * link moves the groups. */
TEST (hybrid_cube_mesh)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double bw[8][8];
    struct topology_cluster *c;
    int gpu[8], other[8];

    cube_mesh (bw, twice, once);
    c = node_of (bw, 8, NULL);
    check_optimal (c, &p, 2, gpu);
    for (int k = 0; k < 8; k += 2)
        assert_true (bw[gpu[k]][gpu[k + 1]] == 48);
    assert_true (gpu[1] != 1); /* 0-1 is a single link */
    check_optimal (c, &p, 4, gpu);
    topology_cluster_destroy (c);

    /* 0-1 and 2-3 and so on become the double links. */
    const int swapped[8][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7},
                               {0, 2}, {1, 3}, {4, 6}, {5, 7}};
    const int rest[8][2] = {{0, 3}, {0, 4}, {1, 2}, {1, 5},
                            {2, 6}, {4, 7}, {5, 6}, {3, 7}};

    cube_mesh (bw, swapped, rest);
    c = node_of (bw, 8, NULL);
    check_optimal (c, &p, 2, other);
    for (int k = 0; k < 8; k += 2)
        assert_true (bw[other[k]][other[k + 1]] == 48);
    topology_cluster_destroy (c);
}

/* Random asymmetric links and speeds, also where tp does not divide the node. */
TEST (random_nodes)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct rng r = seeded (9);

    for (int i = 0; i < 60; i++) {
        int n = 3 + rng_below (&r, 6), tp = 2 + rng_below (&r, 3), gpu[8];
        double bw[8][8], speed[8];
        struct topology_cluster *c;

        for (int a = 0; a < 8; a++) {
            speed[a] = rng_below (&r, 3) ? 1.0 : 0.7;
            for (int b = 0; b < 8; b++)
                bw[a][b] = 10 + 90 * rng_unit (&r);
        }
        c = node_of (bw, n, i % 2 ? speed : NULL);
        if (tp <= n)
            check_optimal (c, &p, tp, gpu);
        topology_cluster_destroy (c);
    }
}

/* Where nothing tells GPUs apart, index order. */
TEST (uniform)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct topology_cluster *c = cluster_of ("1x8 h100-sxm5-80g intra:370");
    struct error err;
    int gpu[8];

    ok (place_tp_groups (c, &p, 0, 4, BYTES, LAYER_S, gpu, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_int_equal (gpu[i], i);
    topology_cluster_destroy (c);
}
