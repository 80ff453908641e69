/* Rings of a placed plan's groups, one by one: as the price lays them, and in orders that
 * somebody else chose, by hand. */
#include "tests/lib/clusters.h"

static const int in_order[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static struct setting setting_of (const char *cluster, int tp, int dp)
{
    struct setting s =
        small_job_as (cluster_of (cluster), 4, 1024, 16 * dp, config_of (tp, 1, dp, 1));

    s.profile.time.dp_overlap = s.profile.time.dp_bucket_bytes = 0;
    s.profile.time.link_out = 1;
    return s;
}

static struct costmodel_groups *groups_of (const struct costmodel_problem *p)
{
    struct costmodel_groups *g;
    struct error err = {""};

    ok (costmodel_groups_create (p, in_order, &g, &err), &err);
    return g;
}

static double between (struct costmodel_groups *g, const int *gpu, int channels)
{
    return costmodel_groups_chosen (g, GROUP_SYNC, 0, gpu, channels).between_bytes_per_s;
}

/* The whole synchronisation: a reduce-scatter and an all-gather, 3/4 of the bytes each. */
static double sync_by_hand (const struct setting *s, double latency_s, double rate)
{
    struct workload_stage held = {.dense = 4, .embedding = true, .head = true};
    double params = workload_stage_params (&s->model, &s->config, &held).dense;

    return 2 * (s->profile.time.collective_s + latency_s) +
           (s->profile.memory.gradient_bytes + 2.0) * params * 3 / 4 /
               (rate * s->profile.time.link);
}

/* One dp group on two nodes of two. */
TEST (two_nodes)
{
    struct setting s =
        setting_of ("2x2 a100-sxm4-80g intra:200 inter:20 intra-us:8 inter-us:12", 1, 4);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_groups *g = groups_of (&p);
    static const int lanes[] = {0, 1, 2, 3, 1, 0, 3, 2},
                     twice[] = {0, 1, 2, 3, 0, 1, 2, 3}, crossed[] = {0, 2, 1, 3};
    struct costmodel_ring laid = costmodel_groups_laid (g, GROUP_SYNC, 0), r;
    enum workload_all_reduce by;

    CLOSE (laid.inside_bytes_per_s, 200e9, 1e-12);
    CLOSE (laid.between_bytes_per_s, 2 * 20e9, 1e-12);
    CLOSE (costmodel_groups_step_s (g, GROUP_SYNC, 0, &laid, &by),
           sync_by_hand (&s, (2 * 8e-6 + 2 * 12e-6) * 3 / 4, 40e9), 1e-9);
    assert_int_equal (by, ALL_REDUCE_RING);
    /* Two channels with lanes of their own, one alone, and twice the same. */
    CLOSE (between (g, lanes, 2), 2 * 20e9, 1e-12);
    CLOSE (between (g, lanes, 1), 20e9, 1e-12);
    CLOSE (between (g, twice, 2), 20e9, 1e-12);
    r = costmodel_groups_chosen (g, GROUP_SYNC, 0, twice, 2);
    CLOSE (r.inside_bytes_per_s, 200e9, 1e-12);
    CLOSE (r.latency_s, laid.latency_s, 1e-12);
    assert_int_equal (r.nodes, 2);
    /* Never inside a node: each GPU sends over its lane once, with four long hops. */
    r = costmodel_groups_chosen (g, GROUP_SYNC, 0, crossed, 1);
    assert_true (isinf (r.inside_bytes_per_s));
    CLOSE (costmodel_groups_step_s (g, GROUP_SYNC, 0, &r, &by),
           sync_by_hand (&s, 4 * 12e-6 * 3 / 4, 20e9), 1e-9);
    costmodel_groups_destroy (g);
    topology_cluster_destroy (s.cluster);
}

/* A group on one node: as many hops inside as it has members, of which it waits for all but one;
 * each link is as fast as alone. */
TEST (one_node)
{
    static const char *const clusters[] = {
        "1x4 a100-sxm4-80g intra:200 intra-us:8",
        "1x4 a100-sxm4-80g intra:200 intra-us:8 + 1x2 h100-sxm5-80g intra:300 inter:5"};

    for (int i = 0; i < 2; i++) {
        struct setting s = setting_of (clusters[i], 1, 4);
        struct costmodel_problem p = problem_of (&s);
        struct costmodel_groups *g = groups_of (&p);
        struct costmodel_ring laid = costmodel_groups_laid (g, GROUP_SYNC, 0);
        enum workload_all_reduce by;

        CLOSE (laid.inside_bytes_per_s, 200e9, 1e-12);
        assert_true (isinf (laid.between_bytes_per_s) && laid.nodes == 1);
        CLOSE (laid.latency_s, 4 * 8e-6 * 3 / 4, 1e-12);
        CLOSE (costmodel_groups_step_s (g, GROUP_SYNC, 0, &laid, &by),
               sync_by_hand (&s, 4 * 8e-6 * 3 / 4, 200e9), 1e-9);
        costmodel_groups_destroy (g);
        topology_cluster_destroy (s.cluster);
    }
}

/* The slow node's way in decides; a node's total is shared by what leaves it. */
TEST (uneven_nodes)
{
    struct setting s = setting_of ("1x4 a100-sxm4-80g intra:200 inter:20 + "
                                   "1x2 a100-sxm4-80g intra:200 inter:5 node:8",
                                   1, 6);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_groups *g = groups_of (&p);
    static const int two[] = {0, 1, 2, 3, 4, 5, 2, 3, 0, 1, 5, 4},
                     three[] = {0, 1, 4, 2, 3, 5};

    CLOSE (costmodel_groups_laid (g, GROUP_SYNC, 0).between_bytes_per_s, 8e9, 1e-12);
    CLOSE (between (g, two, 2), 8e9, 1e-12);   /* of 2 x 5 */
    CLOSE (between (g, two, 1), 5e9, 1e-12);   /* one lane */
    CLOSE (between (g, three, 1), 4e9, 1e-12); /* twice over the 8 */
    costmodel_groups_destroy (g);
    topology_cluster_destroy (s.cluster);
}

/* Around three nodes, of one GPU or two with ways of their own, each pair of nodes is passed once
 * where links are known from GPU to GPU: the slowest way of one pair counts, also the last one. */
TEST (around)
{
    for (int i = 0; i < 12; i++) {
        bool onwards = i / 3 % 2; /* or back, which is the way of none */
        int each = 1 + i / 6, n = 3 * each, a = i % 3, b = (a + (onwards ? 1 : 2)) % 3;
        double rate[36];
        struct costmodel_ring r;

        for (int k = 0; k < n * n; k++) {
            bool slow = k / n / each == a && k % n / each == b;

            rate[k] = k / n / each == k % n / each ? 200 : slow ? 5 : 20;
        }
        struct setting s = setting_of ("1x1 a100-sxm4-80g", 1, n);

        topology_cluster_destroy (s.cluster);
        s.cluster = cluster_of_rates (3, each, "a100-sxm4-80g", true, rate);
        struct costmodel_problem p = problem_of (&s);
        struct costmodel_groups *g = groups_of (&p);

        r = costmodel_groups_laid (g, GROUP_SYNC, 0);
        CLOSE (r.between_bytes_per_s, each * (onwards ? 5e9 : 20e9), 1e-12);
        assert_int_equal (r.nodes, 3);
        costmodel_groups_destroy (g);
        topology_cluster_destroy (s.cluster);
    }
}

/* Kinds of groups in turn share their nodes' ways among their own. */
TEST (shares)
{
    struct setting s = setting_of ("2x4 a100-sxm4-80g intra:200 inter:20 node:40", 2, 4);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_groups *g = groups_of (&p);
    enum workload_all_reduce by;

    for (int again = 0; again < 2; again++) {
        struct costmodel_ring tp = costmodel_groups_laid (g, GROUP_TP, 2),
                              dp = costmodel_groups_laid (g, GROUP_SYNC, 1);

        CLOSE (tp.inside_bytes_per_s, 200e9, 1e-12);
        assert_true (isinf (tp.between_bytes_per_s));
        CLOSE (dp.between_bytes_per_s, 20e9, 1e-12); /* half of 40, not 2 x 20 */
        /* 16 micro-batches of 4 layers with two each way, the embedding's and the head's. */
        CLOSE (costmodel_groups_step_s (g, GROUP_TP, 2, &tp, &by),
               16 * 18 *
                   costmodel_tp_operation_s (&s.profile, &s.config, &tp,
                                             2.0 * 1024 * s.model.hidden),
               1e-9);
    }
    costmodel_groups_destroy (g);
    topology_cluster_destroy (s.cluster);
}

/* Without sequence parallelism the two halves of a gated MLP's input gradient are summed one after
 * the other: an all-reduce more of five a layer. */
TEST (separate_gates)
{
    struct setting s = setting_of ("1x4 a100-sxm4-80g intra:200", 4, 1);
    double step_s[2];

    s.model.gated_mlp = true;
    s.config.sequence_parallel = false;
    for (int i = 0; i < 2; i++) {
        struct costmodel_problem p = problem_of (&s);
        struct costmodel_groups *g;
        struct costmodel_ring r;
        enum workload_all_reduce by;

        s.profile.separate_gate = i;
        g = groups_of (&p);
        r = costmodel_groups_laid (g, GROUP_TP, 0);
        step_s[i] = costmodel_groups_step_s (g, GROUP_TP, 0, &r, &by);
        costmodel_groups_destroy (g);
    }
    CLOSE (step_s[1] - step_s[0], step_s[0] * 4 / (2 * 8 + 2), 1e-9);
    topology_cluster_destroy (s.cluster);
}
