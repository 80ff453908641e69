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

/* Does some split of the layers fit? */
static bool some_split_fits (const struct mapper_problem *p,
                             const struct workload_config *c, int *layers, int stage,
                             int left)
{
    struct memest_problem memory = mapper_memory_problem (p, c);
    double limit = mapper_memory_limit (p, p->cluster->node[0].type->memory_bytes);
    int least = workload_layers_least (p->model, c);

    if (stage < c->deg.pp) {
        int most = stage == c->deg.pp - 1 ? left : left - (c->deg.pp - 1 - stage) * least;

        for (int n = stage == c->deg.pp - 1 ? left : least; n <= most; n++) {
            layers[stage] = n;
            if (n >= least && some_split_fits (p, c, layers, stage + 1, left - n))
                return true;
        }
        return false;
    }
    for (int i = 0; i < c->deg.pp; i++) {
        struct workload_stage held = mapper_stage (p, c, layers, i);
        struct memest_stage s;

        memest_stage (&memory, i, &held, &s);
        if (!memest_fits (&memory, &s, limit))
            return false;
    }
    return true;
}

/* The first layers have no experts and little memory: stages that could each have some of them
 * cannot all have them.  What is refused is impossible; one chunk a stage, the rest is possible. */
TEST (dense_layers_count_once)
{
    struct setting s = {.cluster = cluster_of ("1x8 h100-sxm5-80g intra:300"),
                        .model = model_of ("deepseek-v3"),
                        .job = {.seq = 4096, .global_batch = 64},
                        .profile = profile_of ("megatron-bridge")};
    long over = 0, shared = 0;

    s.model.layers = 11;
    for (int chunks = 1; chunks <= 2; chunks++)
        for (int dense = 1; dense <= 5; dense++)
            for (double pct = 20; pct < 3000; pct *= 1.04) {
                struct mapper_problem p = search_problem (&s);
                struct workload_config c = config_of (1, 4, 2, 1);
                struct pool pool;
                struct error err;
                int layers[4];
                bool fits, possible;

                s.model.dense_layers = dense;
                c.deg.ep = 2;
                c.deg.vpp = chunks;
                c.schedule = chunks > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
                p.memory_limit_pct = pct;
                ok (pool_init (&pool, &p, &err), &err);
                fits = pool_memory_fits (&pool, &c, NULL);
                possible = some_split_fits (&p, &c, layers, 0, s.model.layers);
                assert_true (fits || !possible);
                assert_true (possible || !fits || chunks > 1);
                over += !fits;
                shared += fits;
                pool_release (&pool);
            }
    assert_true (over > 20 && shared > 20);
    topology_cluster_destroy (s.cluster);
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
