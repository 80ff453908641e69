/* Tokens to experts: the chance of a visit against drawn routings, and what all-to-alls
 * cost with and without deduplication. */
#include "tests/lib/fixture.h"

/* Draw `k` different numbers below n. */
static void draw (struct rng *r, int n, int k, int *out)
{
    int all[512];

    for (int i = 0; i < n; i++)
        all[i] = i;
    shuffle (r, all, n);
    memcpy (out, all, (size_t) k * sizeof (int));
}

/* Part of the drawn tokens that visit experts [first, first + held). */
static double drawn (struct rng *r, const struct workload_model *m, int first, int held)
{
    int groups = m->expert_groups ? m->expert_groups : 1;
    int top = m->expert_groups ? m->top_groups : 1, size = m->experts / groups;
    int rounds = 20000, hits = 0;

    for (int i = 0; i < rounds; i++) {
        int group[64], pick[64];
        bool hit = false;

        draw (r, groups, top, group);
        draw (r, top * size, m->top_k, pick);
        for (int k = 0; k < m->top_k; k++) {
            int e = group[pick[k] / size] * size + pick[k] % size;

            hit |= e >= first && e < first + held;
        }
        hits += hit;
    }
    return hits / (double) rounds;
}

static void visits (void **state)
{
    static const char *const name[] = {"deepseek-v3", "deepseek-v2", "qwen3-235b-a22b",
                                       "mixtral-8x7b"};
    struct rng r = {8};
    (void) state;

    for (int i = 0; i < 4; i++) {
        struct workload_model m = model_of (name[i]);
        int size = m.expert_groups ? m.experts / m.expert_groups : m.experts;

        /* Parts of a group and whole groups, as ranks and nodes hold them. */
        for (int held = 1; held < m.experts; held *= 2) {
            double found;

            if (size % held != 0 && held % size != 0)
                continue;
            found = drawn (&r, &m, held <= size ? size - held : 0, held);
            assert_true (fabs (costmodel_visit_chance (&m, held) - found) < .015);
        }
        assert_true (fabs (costmodel_visit_chance (&m, m.experts) - 1) < 1e-12);
        CLOSE (costmodel_visit_chance (&m, 1), m.top_k / (double) m.experts, 1e-12);
    }
}

static double ep_s (const char *cluster, const char *model, int ep, bool deduplicated)
{
    struct setting s = {.cluster = cluster_of (cluster),
                        .model = model_of (model),
                        .job = {.seq = 4096, .global_batch = ep},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                        .config = config_of (1, 1, ep, 1)};
    struct costmodel_problem p;
    struct costmodel_estimate e;
    struct error err = {""};
    int gpu[256];

    for (int i = 0; i < ep; i++)
        gpu[i] = i;
    s.config.deg.ep = ep;
    s.profile.time.deduplicated_dispatch = deduplicated;
    s.profile.time.collective_s = 0;
    workload_layers_even (s.model.layers, 1, s.layers);
    p = problem_of (&s);
    ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
    topology_cluster_destroy (s.cluster);
    return e.part.ep_s;
}

/* Eight nodes of eight: DeepSeek-V3's token has 8 experts in 4 of 8 groups, a group a
 * node, and plain goes 7/8 x 8 times out, deduplicated 7 x 1/2 x (chance that a group
 * that was chosen is visited). */
static void between_nodes (void **state)
{
    struct workload_model v3 = model_of ("deepseek-v3");
    const char *slow =
        "8x8 h100-sxm5-80g intra:10000 inter:5 inter-us:0 intra-us:0 node:40";
    double plain = ep_s (slow, "deepseek-v3", 64, false),
           once = ep_s (slow, "deepseek-v3", 64, true);
    double bytes = 2.0 * 4096 * v3.hidden;
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double rate = 5e9 * p.time.link * p.time.link_out, turns = 4.0 * (61 - 3);
    (void) state;

    CLOSE (plain, turns * bytes * 8 * 56 / 64 / rate, 1e-9);
    CLOSE (once, turns * bytes * 7 * costmodel_visit_chance (&v3, 32) / rate, 1e-9);
    assert_true (plain / once > 2.1 && plain / once < 2.4);
}

/* On one node a token goes once to every GPU where it has experts: Mixtral's two experts
 * are always on two GPUs of eight, Qwen's eight of 128 meet now and then. */
static void inside (void **state)
{
    const char *node = "1x8 h100-sxm5-80g intra:300 intra-us:0";
    (void) state;

    CLOSE (ep_s (node, "mixtral-8x7b", 8, true), ep_s (node, "mixtral-8x7b", 8, false),
           1e-9);
    assert_true (ep_s (node, "qwen3-235b-a22b", 8, true) <
                 .72 * ep_s (node, "qwen3-235b-a22b", 8, false));
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (visits),
                                       cmocka_unit_test (between_nodes),
                                       cmocka_unit_test (inside)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
