/* A configuration that is placed again with its splits and starts kept is placed as it is without:
 * they depend on no random number. */
#include "mapper/place/place.h"
#include "tests/lib/search.h"
#include "tests/lib/clusters.h"

#define LAYERS 12
#define SEEDS 3

static void again_is_alike (struct rng *r, const struct pool *pool,
                            const struct groups *groups, const struct workload_config *c)
{
    struct deadline never = {.until_s = INFINITY};
    struct effort effort = {.grid = 2,
                            .exact = 1 + rng_below (r, 3),
                            .rival_s = INFINITY,
                            .tries = 100,
                            .deadline = &never};
    struct begun *begun = begun_create ();
    struct error err = {""};

    assert_non_null (begun);
    for (unsigned long seed = 0; seed < SEEDS; seed++) {
        struct placed once = {0}, again = {0};
        enum status st =
            place_config (pool, groups, c, MAPPER_AUTO, effort, seed, &once, &err);

        effort.begun = begun;
        assert_int_equal (
            st, place_config (pool, groups, c, MAPPER_AUTO, effort, seed, &again, &err));
        effort.begun = NULL;
        if (st != ST_OK)
            break;
        assert_true (again.price.step_s == once.price.step_s);
        assert_memory_equal (again.layers, once.layers,
                             (size_t) c->deg.pp * sizeof (int));
        assert_memory_equal (again.gpu, once.gpu,
                             (size_t) workload_world (&c->deg) * sizeof (int));
        placed_release (&once);
        placed_release (&again);
    }
    begun_destroy (begun);
}

TEST (kept_starts)
{
    static const int degrees[][3] = {{1, 4, 6}, {2, 3, 4}, {2, 2, 5}, {4, 3, 2}};
    struct rng r = seeded (31);

    for (int i = 0; i < 16; i++) {
        const int *d = degrees[i % 4];
        struct setting s = small_job_as (
            drawn_cluster (&r, &(struct cluster_draw){.nodes = 6 + rng_below (&r, 3),
                                                      .gpus = 4,
                                                      .most_gpus = 4 * 8,
                                                      .types = i % 3 + 1,
                                                      .speeds = i % 2 ? 4 : 0,
                                                      .inside = {50, 300},
                                                      .between = {1, 10}}),
            LAYERS, 512, 120, config_of (d[0], d[1], d[2], 1));
        struct mapper_problem p = search_config (&s);
        struct groups groups;
        struct pool pool;
        struct error err = {""};

        ok (pool_init (&pool, &p, &err), &err);
        ok (groups_init (&groups, &pool, &s.config, &err), &err);
        if (workload_world (&s.config.deg) <= pool.n_gpus)
            again_is_alike (&r, &pool, &groups, &s.config);
        groups_release (&groups);
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
}
