/* What no step tells: links whose time is hidden.  Of those the plan takes measured ones
 * before estimated ones, and badly linked nodes for the stages whose synchronisation has
 * the most compute to hide under. */
#include "mapper/mapper.h"
#include "mapper/pool/pool.h"
#include "tests/lib/fixture.h"

#define NODES 32

/* Nodes of 8 GPUs that reach about the same, but the first `poor` half of it. */
static struct topology_cluster *cluster_of_nodes (struct rng *r, int poor,
                                                  int estimated_pct)
{
    struct text rate = {0}, error = {0}, t = {0};
    bool guess[NODES][NODES];
    struct topology_cluster *c;

    for (int i = 0; i < NODES; i++)
        for (int j = 0; j <= i; j++)
            guess[i][j] = guess[j][i] = rng_below (r, 100) < estimated_pct;
    for (int i = 0; i < NODES; i++) {
        text_add (&rate, "%s[", i ? "," : "");
        text_add (&error, "%s[", i ? "," : "");
        for (int j = 0; j < NODES; j++) {
            double usual = i < poor || j < poor ? 20.0 : 40.0;

            text_add (&rate, i == j ? "%snull" : "%s%.3f", j ? "," : "",
                      usual * (1 + 0.02 * rng_unit (r)));
            text_add (&error, "%s%s", j ? "," : "",
                      guess[i][j] && i != j ? "0.05" : "null");
        }
        text_add (&rate, "]");
        text_add (&error, "]");
    }
    text_add (&t, "{\"version\":1,\"name\":\"hidden\",\"nodes\":[");
    for (int i = 0; i < NODES; i++)
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":8,\"gpu_type\":\"h100-sxm5-80g\"}",
                  i ? "," : "", i);
    text_add (&t,
              "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":370,\"latency_us\":8},"
              "\"inter\":{\"latency_us\":12,\"bandwidth_gb_per_s\":[%s]",
              text_str (&rate));
    if (estimated_pct > 0)
        text_add (&t, ",\"estimate_error\":[%s]", text_str (&error));
    text_add (&t, "}}}");
    c = cluster_from (text_str (&t));
    text_free (&rate);
    text_free (&error);
    text_free (&t);
    return c;
}

/* Llama-3-70B with four stages of eight nodes. */
static void plan_on (struct topology_cluster *c, struct mapper_result *out)
{
    struct setting s = {.cluster = c,
                        .job = {.seq = 4096, .global_batch = 256},
                        .profile = profile_of ("megatron-core")};
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_info info;
    struct mapper_problem p;
    struct error err = {""};

    ok (workload_model_read ("llama-3-70b", &s.model, NULL, &err), &err);
    p = (struct mapper_problem){.model = &s.model,
                                .job = &s.job,
                                .profile = &s.profile,
                                .cluster = c,
                                .axes = mapper_axes_free (),
                                .memory_limit_pct = 95};
    p.axes.tp = 8;
    p.axes.pp = 4;
    p.axes.dp = 8;
    p.axes.vpp = 1;
    p.axes.micro_batch = 1;
    settings.granularity = MAPPER_NODE;
    settings.tie = 0.0;
    ok (mapper_search (&p, &settings, out, &info, &err), &err);
    mapper_info_release (&info);
}

static void measured_links_come_first (void **state)
{
    struct rng r = {5};
    (void) state;

    for (int round = 0; round < 3; round++) {
        struct topology_cluster *c = cluster_of_nodes (&r, 0, 40);
        struct mapper_result found;

        plan_on (c, &found);
        /* By chance it would be two fifths and more. */
        assert_true (found.estimate.links_used > 50);
        assert_true (found.estimate.links_estimated * 8 < found.estimate.links_used);
        mapper_result_release (&found);
        topology_cluster_destroy (c);
    }
}

static void poor_nodes_hold_the_last_stages (void **state)
{
    struct rng r = {6};
    struct topology_cluster *c = cluster_of_nodes (&r, 3, 0);
    struct mapper_result found;
    int per_stage = NODES * 8 / 4, early = 0;
    (void) state;

    plan_on (c, &found);
    for (int rank = 0; rank < 2 * per_stage; rank++)
        early += c->node_of_gpu[found.gpu[rank]] < 3;
    assert_int_equal (early, 0);
    mapper_result_release (&found);
    topology_cluster_destroy (c);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (measured_links_come_first),
        cmocka_unit_test (poor_nodes_hold_the_last_stages)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
