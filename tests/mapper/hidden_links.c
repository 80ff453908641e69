/* What no step tells: links whose time is hidden.  Of those the plan takes measured ones
 * before estimated ones, and badly linked nodes for the stages whose synchronisation has
 * the most compute to hide under. */
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

#define NODES 32

/* Nodes of 8 GPUs that reach about the same, but the first `poor` half of it. */
static struct topology_cluster *cluster_of_nodes (struct rng *r, int poor,
                                                  int estimated_pct)
{
    double rate[NODES * NODES], error[NODES * NODES];
    struct text t = {0};

    for (int i = 0; i < NODES; i++)
        for (int j = 0; j <= i; j++)
            error[i * NODES + j] = error[j * NODES + i] =
                rng_below (r, 100) < estimated_pct && i != j ? 0.05 : NAN;
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < NODES; j++) {
            double usual = i < poor || j < poor ? 20.0 : 40.0;

            rate[i * NODES + j] = i == j ? NAN : usual * (1 + 0.02 * rng_unit (r));
        }
    for (int i = 0; i < NODES; i++)
        add_node (&t, i, 8, "h100-sxm5-80g", NULL);
    text_add (&t, "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":370,\"latency_us\":8},"
                  "\"inter\":{\"latency_us\":12,\"bandwidth_gb_per_s\":");
    add_matrix (&t, NODES, rate);
    if (estimated_pct > 0) {
        text_add (&t, ",\"estimate_error\":");
        add_matrix (&t, NODES, error);
    }
    text_add (&t, "}}}");
    return cluster_written (&t);
}

/* Llama-3-70B with four stages of eight nodes. */
static struct found plan_on (struct topology_cluster *c)
{
    struct setting s = {.cluster = c,
                        .model = model_of ("llama-3-70b"),
                        .job = {.seq = 4096, .global_batch = 256},
                        .profile = profile_of ("megatron-core")};
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_problem p = search_degrees (&s, 8, 4, 8);

    p.axes.vpp = 1;
    p.axes.micro_batch = 1;
    settings.granularity = MAPPER_NODE;
    settings.tie = 0.0;
    return search (&p, &settings);
}

TEST (measured_links_come_first)
{
    struct rng r = seeded (5);
    int rounds = getenv ("LINKWISE_LONG") ? 3 : 1;

    for (int round = 0; round < rounds; round++) {
        struct topology_cluster *c = cluster_of_nodes (&r, 0, 40);
        struct found o = plan_on (c);

        /* By chance it would be two fifths and more. */
        assert_true (o.r.estimate.links_used > 50);
        assert_true (o.r.estimate.links_estimated * 8 < o.r.estimate.links_used);
        found_release (&o);
        topology_cluster_destroy (c);
    }
}

TEST (poor_nodes_hold_the_last_stages)
{
    struct rng r = seeded (6);
    struct topology_cluster *c = cluster_of_nodes (&r, 3, 0);
    struct found o = plan_on (c);
    int per_stage = NODES * 8 / 4, early = 0;

    for (int rank = 0; rank < 2 * per_stage; rank++)
        early += c->node_of_gpu[o.r.gpu[rank]] < 3;
    assert_int_equal (early, 0);
    found_release (&o);
    topology_cluster_destroy (c);
}
