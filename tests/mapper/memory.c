/* The few estimates that tell whether a configuration fits at all say what all of them do. */
#include "mapper/pool/pool.h"
#include "tests/lib/search.h"

struct counts {
    long fit, over;
};

/* Every configuration of a free search. */
static void compare (const struct setting *s, struct counts *n)
{
    struct mapper_problem p = search_problem (s);
    struct workload_config *list;
    struct pool pool;
    struct error err;
    json_t *space;
    int caps[200 * CLASSES_MAX];
    long all;

    p.memory_limit_pct = 94;
    ok (pool_init (&pool, &p, &err), &err);
    ok (pool_configurations (&pool, 1, NULL, &list, &all, &space, &err), &err);
    for (long i = 0; i < all; i++) {
        bool fits = pool_memory_fits (&pool, &list[i], NULL);

        assert_int_equal (fits, pool_memory_fits (&pool, &list[i], caps));
        *(fits ? &n->fit : &n->over) += 1;
    }
    free (list);
    json_decref (space);
    pool_release (&pool);
}

TEST (as_all_estimates)
{
    static const char *const models[] = {"llama-2-13b", "gpt3-175b", "mixtral-8x7b",
                                         "deepseek-v3"};
    static const char *const clusters[] = {"4x8 a100-sxm4-40g intra:250 inter:20",
                                           "3x8 h100-sxm5-80g intra:370 inter:48 + "
                                           "2x8 a100-sxm4-40g intra:250 inter:20"};
    struct counts n = {0};
    int pairs = getenv ("LINKWISE_LONG") ? 8 : 2;

    for (int i = 0; i < pairs; i++) {
        struct setting s = {.cluster = cluster_of (clusters[(i + i / 4) % 2]),
                            .model = model_of (models[i % 4]),
                            .job = {.seq = 4096, .global_batch = 48},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};

        compare (&s, &n);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (n.fit > 100 && n.over > 100);
}
