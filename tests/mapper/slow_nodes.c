/* Nodes with slow links among alike ones: their stage comes to the place that serves best, and
 * shares its expert groups two by two; nodes of groups over several nodes avoid bad links.  With
 * few micro-batches nodes share the groups of all stages. */
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

#define NODES 48

/* Alike nodes of eight H100 but for some whose links are half as fast. */
static struct topology_cluster *cluster_slow (int slow)
{
    static double rate[NODES * NODES];

    for (int i = 0; i < NODES * NODES; i++)
        rate[i] = i / NODES % 5 == 2 && i / NODES < 5 * slow ? 26.0 : 53.0;
    for (int i = 0; i < NODES * NODES; i++)
        rate[i] = fmin (rate[i], rate[i % NODES * NODES + i / NODES]);
    return cluster_of_rates (NODES, 8, "h100-sxm5-80g", false, rate);
}

/* Mixtral in four stages of five chunks each. */
static struct setting setting_slow (int slow)
{
    struct setting s = {.model = model_of ("mixtral-8x7b"),
                        .job = {.seq = 4096, .global_batch = 8 * NODES},
                        .profile = profile_of ("megatron-core-composed"),
                        .cluster = cluster_slow (slow)};

    s.config = config_of (1, 4, 2 * NODES, 1);
    s.config.deg.ep = 8;
    s.config.deg.etp = 1;
    s.config.deg.vpp = 5;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    return s;
}

/* On how many nodes is the expert group of a rank? */
static int nodes_of_group (const struct topology_cluster *c, const int *gpu)
{
    int n = 0;

    for (int i = 0; i < 8; i++) {
        bool seen = false;

        for (int k = 0; k < i; k++)
            seen = seen || c->node_of_gpu[gpu[k]] == c->node_of_gpu[gpu[i]];
        n += !seen;
    }
    return n;
}

static double step_at (const struct mapper_problem *p,
                       enum mapper_granularity granularity)
{
    struct mapper_settings how = mapper_settings_default ();
    struct found f;
    double step;

    how.granularity = granularity;
    f = search (p, &how);
    step = f.r.estimate.step_s;
    found_release (&f);
    return step;
}

/* The stage with slow nodes is the first one, with the fewest layers, and each of its groups is on
 * two nodes; all others are on one. */
TEST (groups_shared)
{
    struct setting s = setting_slow (2);
    struct mapper_problem p = search_config (&s);
    struct found f = search (&p, NULL);
    int per_stage = 2 * NODES;

    assert_true (f.r.estimate.step_s < 1.07 * f.r.lower_bound_s);
    for (int i = 0; i < 4; i++) {
        assert_true (i == 0 || f.r.layers[i] > f.r.layers[0]);
        for (int r = 0; r < per_stage; r += 8)
            assert_int_equal (nodes_of_group (s.cluster, f.r.gpu + i * per_stage + r),
                              i == 0 ? 2 : 1);
    }
    for (int r = per_stage; r < 4 * per_stage; r++)
        assert_int_not_equal (s.cluster->node_of_gpu[f.r.gpu[r]], 2);
    assert_true (f.r.estimate.step_s < .99 * step_at (&p, MAPPER_NODE));
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}

/* Without them the layers are even, and each group is on one node. */
TEST (none_slow)
{
    struct setting s = setting_slow (0);
    struct mapper_problem p = search_config (&s);
    struct found f = search (&p, NULL);

    assert_int_equal (f.r.layers[0], f.r.layers[1]);
    for (int r = 0; r < 8 * NODES; r += 8)
        assert_int_equal (nodes_of_group (s.cluster, f.r.gpu + r), 1);
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}

/* Some links between alike nodes are bad, one in twenty, and the groups of experts are on two nodes
 * each: no group has a bad link inside.  In so large a pool few moves are priced exactly. */
TEST (groups_avoid_bad_links)
{
    enum { MANY = 272 };
    double *rate = malloc (MANY * MANY * sizeof *rate);
    struct setting s = setting_slow (0);
    struct mapper_problem p;
    struct rng r = seeded (23);
    struct found f;

    topology_cluster_destroy (s.cluster);
    for (int i = 0; i < MANY * MANY; i++)
        rate[i] = rng_below (&r, 20) == 0 ? 5.0 : 53.0;
    s.cluster = cluster_of_rates (MANY, 8, "h100-sxm5-80g", false, rate);
    s.model = model_of ("qwen3-30b-a3b");
    s.job.global_batch = 8 * MANY;
    s.config.deg.dp = 2 * MANY;
    s.config.deg.ep = 16;
    s.config.deg.vpp = 3;
    p = search_config (&s);
    f = search (&p, NULL);
    for (int g = 0; g < 8 * MANY; g += 16) {
        int a = s.cluster->node_of_gpu[f.r.gpu[g]],
            b = s.cluster->node_of_gpu[f.r.gpu[g + 15]];

        assert_int_not_equal (a, b);
        assert_true (topology_node_link (s.cluster, a, b).bytes_per_s > 50e9);
        assert_true (topology_node_link (s.cluster, b, a).bytes_per_s > 50e9);
    }
    found_release (&f);
    topology_cluster_destroy (s.cluster);
    free (rate);
}

/* One stage and one micro-batch, all nodes alike: a plan of whole nodes synchronises for as long as
 * it computes, the best one exchanges across nodes instead, and is known to be the best. */
TEST (all_groups_shared)
{
    struct setting s = setting_slow (0);
    struct mapper_problem p;
    struct found f;
    int nodes;

    s.config.deg.pp = s.config.deg.vpp = 1;
    s.config.deg.dp = s.job.global_batch = 8 * NODES;
    s.config.schedule = SCHEDULE_1F1B;
    s.config.zero = 2;
    p = search_config (&s);
    f = search (&p, NULL);
    assert_true (f.r.estimate.step_s < 1.0001 * f.r.lower_bound_s);
    assert_true (f.r.estimate.step_s < .75 * step_at (&p, MAPPER_NODE));
    nodes = nodes_of_group (s.cluster, f.r.gpu);
    assert_true (nodes > 1);
    for (int r = 8; r < 8 * NODES; r += 8)
        assert_int_equal (nodes_of_group (s.cluster, f.r.gpu + r), nodes);
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}

/* Weights that are gathered for every micro-batch: a TP group on as many nodes as it has ranks
 * sends less than rings that leave every node from each of its GPUs. */
TEST (tp_groups_shared)
{
    struct setting s = {.model = model_of ("qwen3-30b-a3b"),
                        .job = {.seq = 4096, .global_batch = 64},
                        .profile = profile_of ("torchtitan"),
                        .cluster = cluster_of ("8x8 b200-192g intra:900 inter:48"),
                        .config = config_of (8, 1, 8, 1)};
    struct mapper_problem p;
    struct found f;

    s.config.deg.ep = 8;
    s.config.deg.etp = 1;
    s.config.zero = 3;
    s.config.recompute = RECOMPUTE_FULL;
    p = search_config (&s);
    f = search (&p, NULL);
    assert_true (f.r.estimate.step_s < .5 * step_at (&p, MAPPER_NODE));
    for (int r = 0; r < 64; r += 8)
        assert_int_equal (nodes_of_group (s.cluster, f.r.gpu + r), 8);
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}

/* Nodes of three GPUs and groups of four share by threes. */
TEST (shared_by_threes)
{
    struct setting s = {.model = model_of ("gpt-oss-20b"),
                        .job = {.seq = 1024, .global_batch = 24},
                        .profile = profile_of ("megatron-core-composed"),
                        .cluster = cluster_of ("8x3 h200-sxm-141g intra:370 inter:4"),
                        .config = config_of (1, 1, 24, 1)};
    struct mapper_problem p;
    struct found f;

    s.config.deg.ep = 4;
    s.config.zero = 1;
    s.config.recompute = RECOMPUTE_FULL;
    p = search_config (&s);
    f = search (&p, NULL);
    assert_true (f.r.estimate.step_s < 1.0001 * f.r.lower_bound_s);
    assert_true (f.r.estimate.step_s < .6 * step_at (&p, MAPPER_NODE));
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}
