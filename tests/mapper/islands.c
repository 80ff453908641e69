/* Clusters whose measured links do not join all nodes: any placement of more ranks than an
 * island holds uses as many unmeasured links as is said, plans stay on an island, and those
 * that must leave it are found without looking at every configuration. */
#include "mapper/mapper.h"
#include "mapper/pool/pool.h"
#include "tests/lib/fixture.h"

/* `nodes` in `islands` of the same size; every link inside them was measured one way at
 * least, all others not. */
static struct topology_cluster *with_islands (struct rng *r, int nodes, int islands,
                                              int gpus, bool gpu_links)
{
    int per = gpu_links ? gpus : 1, n = nodes * per;
    struct text t = {0};
    struct topology_cluster *c;

    text_add (&t, "{\"version\":1,\"name\":\"islands\",\"nodes\":[");
    for (int i = 0; i < nodes; i++)
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"a100-sxm4-80g\"}",
                  i ? "," : "", i, gpus);
    text_add (&t, "],\"links\":{");
    if (!gpu_links)
        text_add (&t, "\"intra\":{\"bandwidth_gb_per_s\":200,\"latency_us\":3},");
    text_add (&t, "\"%s\":{\"latency_us\":10,\"bandwidth_gb_per_s\":[",
              gpu_links ? "gpu" : "inter");
    for (int i = 0; i < n; i++) {
        text_add (&t, "%s[", i ? "," : "");
        for (int j = 0; j < n; j++)
            if (i / per % islands == j / per % islands && (i > j || rng_below (r, 4) > 0))
                text_add (&t, "%s%.2f", j ? "," : "", 20 * (1 + 0.2 * rng_unit (r)));
            else
                text_add (&t, "%snull", j ? "," : "");
        text_add (&t, "]");
    }
    text_add (&t, "]}}}");
    c = cluster_from (text_str (&t));
    text_free (&t);
    return c;
}

static struct setting a_job (struct topology_cluster *c)
{
    return (struct setting){.cluster = c,
                            .model = small_model (8),
                            .job = {.seq = 2048, .global_batch = 64},
                            .profile = profile_of ("megatron-core")};
}

static struct mapper_problem problem_for (const struct setting *s)
{
    return (struct mapper_problem){.model = &s->model,
                                   .job = &s->job,
                                   .profile = &s->profile,
                                   .cluster = s->cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 95};
}

/* Random placements of every way to split the job, islands of nodes and of single GPUs. */
static void no_placement_uses_fewer (void **state)
{
    static const int degrees[][4] = {{1, 1, 8, 1}, {1, 8, 1, 1}, {2, 2, 2, 1},
                                     {4, 1, 2, 1}, {2, 4, 1, 1}, {1, 1, 4, 2},
                                     {1, 2, 2, 2}, {8, 1, 1, 1}, {1, 1, 2, 4},
                                     {2, 1, 3, 1}, {1, 4, 1, 1}, {1, 1, 7, 1}};
    struct rng r = {29};
    long needing = 0, met = 0;
    (void) state;

    for (int round = 0; round < 40; round++) {
        int islands = 2 + rng_below (&r, 3);
        struct setting s = a_job (with_islands (&r, 2 * islands, islands, 2, round % 2));
        struct mapper_problem p = problem_for (&s);
        struct pool pool;
        struct error err = {""};
        int gpu[16], n = s.cluster->n_gpus;

        ok (pool_init (&pool, &p, &err), &err);
        for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
            const int *d = degrees[i];
            int world = d[0] * d[1] * d[2] * d[3];
            int least = pool_unmeasured_at_least (&pool, world);

            s.config = config_of (d[0], d[1], d[2], 1);
            s.config.deg.cp = d[3];
            for (int k = 0; k < d[1]; k++)
                s.layers[k] = 8 / d[1];
            for (int k = 0; k < n; k++)
                gpu[k] = k;
            for (int k = 0; k < 20 && world <= n; k++) {
                int used = 0;
                double step;

                shuffle (&r, gpu, n);
                step = step_of (&s, gpu, &used);
                if (!isfinite (step))
                    continue;
                assert_true (used >= least);
                needing += least > 0;
                met += least > 0 && used == least;
            }
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (needing > 1000 && met > 0);
}

/* Four islands of 16 GPUs: the plan is what one island alone has; degrees that need two of
 * them are planned over as few unmeasured links as can be. */
static void a_plan_stays_on_one (void **state)
{
    struct rng r = {7};
    struct setting s = a_job (with_islands (&r, 16, 4, 4, false));
    struct mapper_problem p = problem_for (&s);
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result found, alone;
    struct mapper_info info, small;
    struct error err = {""};
    bool allowed[16];
    (void) state;

    for (int i = 0; i < 16; i++)
        allowed[i] = i % 4 == 0;
    ok (mapper_search (&p, &settings, &found, &info, &err), &err);
    p.node_allowed = allowed;
    ok (mapper_search (&p, &settings, &alone, &small, &err), &err);
    assert_int_equal (found.estimate.n_unmeasured, 0);
    assert_true (found.estimate.step_s <= alone.estimate.step_s * 1.01);
    assert_true (found.lower_bound_s <= alone.lower_bound_s);
    assert_int_equal (info.joined_gpus, 16);
    assert_int_equal (small.joined_gpus, 0);
    assert_true (info.proven);
    assert_true (info.placed < 200);
    mapper_result_release (&found);
    mapper_result_release (&alone);
    mapper_info_release (&info);
    mapper_info_release (&small);

    p.node_allowed = NULL;
    p.axes.tp = 4;
    p.axes.pp = 1;
    p.axes.dp = 8;
    ok (mapper_search (&p, &settings, &found, &info, &err), &err);
    assert_true (found.estimate.n_unmeasured > 0);
    assert_true (info.proven);
    assert_int_equal (info.joined_gpus, 0);
    mapper_result_release (&found);
    mapper_info_release (&info);
    topology_cluster_destroy (s.cluster);
}

/* Eight GPUs, where every placement is tried: in a moment too. */
static void small_islands (void **state)
{
    struct rng r = {11};
    (void) state;

    for (int round = 0; round < 2; round++) {
        struct setting s = a_job (with_islands (&r, 4, 2, 2, round));
        struct mapper_problem p = problem_for (&s);
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_result found;
        struct mapper_info info;
        struct error err = {""};

        ok (mapper_search (&p, &settings, &found, &info, &err), &err);
        assert_int_equal (found.estimate.n_unmeasured, 0);
        assert_true (workload_world (&found.config.deg) <= 4);
        assert_true (info.placed < 200);
        mapper_result_release (&found);
        mapper_info_release (&info);
        topology_cluster_destroy (s.cluster);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (no_placement_uses_fewer),
                                       cmocka_unit_test (a_plan_stays_on_one),
                                       cmocka_unit_test (small_islands)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
