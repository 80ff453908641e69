/* Clusters whose measured links do not join all nodes: any placement of more ranks than an
 * island holds uses as many unmeasured links as is said, plans stay on an island, and those
 * that must leave it are found without looking at every configuration. */
#include "mapper/pool/pool.h"
#include "mapper/search/looks.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

/* `nodes` in `islands` of the same size; every link inside them was measured one way at
 * least, all others not. */
static struct topology_cluster *with_islands (struct rng *r, int nodes, int islands,
                                              int gpus, bool gpu_links)
{
    int per = gpu_links ? gpus : 1, n = nodes * per;
    double rate[32 * 32];

    assert_true (n <= 32);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            bool known =
                i / per % islands == j / per % islands && (i > j || rng_below (r, 4) > 0);

            rate[i * n + j] = known ? 20 * (1 + 0.2 * rng_unit (r)) : NAN;
        }
    return cluster_of_rates (nodes, gpus, "a100-sxm4-80g", gpu_links, rate);
}

static struct setting a_job (struct topology_cluster *c)
{
    return small_job (c, 8, 2048, 64);
}

/* Random placements of every way to split the job, islands of nodes and of single GPUs. */
TEST (no_placement_uses_fewer)
{
    static const int degrees[][4] = {{1, 1, 8, 1}, {1, 8, 1, 1}, {2, 2, 2, 1},
                                     {4, 1, 2, 1}, {2, 4, 1, 1}, {1, 1, 4, 2},
                                     {1, 2, 2, 2}, {8, 1, 1, 1}, {1, 1, 2, 4},
                                     {2, 1, 3, 1}, {1, 4, 1, 1}, {1, 1, 7, 1}};
    struct rng r = seeded (29);
    long needing = 0, met = 0;

    for (int round = 0; round < 40; round++) {
        int islands = 2 + rng_below (&r, 3);
        struct setting s = a_job (with_islands (&r, 2 * islands, islands, 2, round % 2));
        struct mapper_problem p = search_problem (&s);
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
            in_file_order (gpu, n);
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
TEST (a_plan_stays_on_one)
{
    struct rng r = seeded (7);
    struct setting s = a_job (with_islands (&r, 16, 4, 4, false));
    struct mapper_problem p = search_problem (&s);
    struct found o, alone;
    bool allowed[16];

    for (int i = 0; i < 16; i++)
        allowed[i] = i % 4 == 0;
    o = search (&p, NULL);
    p.node_allowed = allowed;
    alone = search (&p, NULL);
    assert_int_equal (o.r.estimate.n_unmeasured, 0);
    assert_true (o.r.estimate.step_s <= alone.r.estimate.step_s * 1.01);
    assert_true (o.r.lower_bound_s <= alone.r.lower_bound_s);
    assert_int_equal (o.info.joined_gpus, 16);
    assert_int_equal (alone.info.joined_gpus, 0);
    assert_true (o.info.proven);
    assert_true (o.info.placed < 200);
    found_release (&o);
    found_release (&alone);

    p = search_degrees (&s, 4, 1, 8);
    o = search (&p, NULL);
    assert_true (o.r.estimate.n_unmeasured > 0);
    assert_true (o.info.proven);
    assert_int_equal (o.info.joined_gpus, 0);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

/* Eight GPUs, where every placement is tried: in a moment too. */
TEST (small_islands)
{
    struct rng r = seeded (11);

    for (int round = 0; round < 2; round++) {
        struct setting s = a_job (with_islands (&r, 4, 2, 2, round));
        struct mapper_problem p = search_problem (&s);
        struct found o = search (&p, NULL);

        assert_int_equal (o.r.estimate.n_unmeasured, 0);
        assert_true (workload_world (&o.r.config.deg) <= 4);
        assert_true (o.info.placed < 200);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* While more moves follow, a sketch that is far shorter goes before one with fewer links that
 * nobody measured, since moves may lead it round them; at the end fewer come first. */
TEST (fewer_links_come_first_at_last)
{
    struct setting s = a_job (NULL);
    const struct mapper_problem p = search_problem (&s);
    struct workload_config c = config_of (1, 2, 1, 1);
    const struct search x = {.p = &p, .config = &c};
    struct look look[] = {{.sketch.price = {.unmeasured = 1, .step_s = 1.5}},
                          {.sketch.price = {.unmeasured = 0, .step_s = 2.1}},
                          {.sketch.price = {.unmeasured = 1, .step_s = 2.0}}};
    struct looks l = {.look = look, .n = 3};
    struct error err = {""};

    ok (looks_sort (&x, &l, true, &err), &err);
    CLOSE (look[0].sketch.price.step_s, 1.5, 0);
    CLOSE (look[1].sketch.price.step_s, 2.1, 0);
    ok (looks_sort (&x, &l, false, &err), &err);
    CLOSE (look[0].sketch.price.step_s, 2.1, 0);
    CLOSE (look[1].sketch.price.step_s, 1.5, 0);
}
