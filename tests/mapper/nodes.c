/* Which nodes a plan uses: pinned ones always, no more than allowed, the best ones; equal to
 * trying every placement where that can be done. */
#include "tests/lib/fixture.h"

static struct setting a_job (struct topology_cluster *c)
{
    return (struct setting){.cluster = c,
                            .model = small_model (8),
                            .job = {.seq = 2048, .global_batch = 16},
                            .profile = profile_of ("megatron-core")};
}

static struct mapper_problem problem_for (const struct setting *s, int tp, int pp, int dp)
{
    struct mapper_problem p = {.model = &s->model,
                               .job = &s->job,
                               .profile = &s->profile,
                               .cluster = s->cluster,
                               .axes = mapper_axes_free (),
                               .memory_limit_pct = 95};

    p.axes.tp = tp;
    p.axes.pp = pp;
    p.axes.dp = dp;
    p.axes.micro_batch = p.axes.zero = 1;
    return p;
}

static struct mapper_result plan (const struct mapper_problem *p)
{
    struct mapper_settings s = mapper_settings_default ();
    struct mapper_result r;
    struct mapper_info info;
    struct error err = {""};

    ok (mapper_search (p, &s, &r, &info, &err), &err);
    assert_true (r.lower_bound_s <= r.estimate.step_s);
    mapper_info_release (&info);
    return r;
}

static int ranks_on (const struct mapper_problem *p, const struct mapper_result *r,
                     int node)
{
    int n = 0;

    for (int k = 0; k < (int) workload_world (&r->config.deg); k++)
        n += p->cluster->node_of_gpu[r->gpu[k]] == node;
    return n;
}

static int nodes_of (const struct mapper_problem *p, const struct mapper_result *r)
{
    int n = 0;

    for (int i = 0; i < p->cluster->n_nodes; i++)
        n += ranks_on (p, r, i) > 0;
    return n;
}

/* A pinned node that the best plan leaves out is used, and nothing better was there: the best
 * over every choice of the other nodes. */
static void pinned_small (void **state)
{
    struct rng rng = {13};
    (void) state;

    for (int round = 0; round < 6; round++) {
        struct setting s = a_job (random_cluster (&rng, 6, 1, 6, 0, false, false));
        struct mapper_problem p = problem_for (&s, 1, 2, 2);
        struct mapper_result free_one = plan (&p), r;
        bool allowed[6], pinned[6] = {0};
        double least = INFINITY;
        int left_out = 0;

        while (ranks_on (&p, &free_one, left_out) > 0)
            left_out++;
        pinned[left_out] = true;
        p.node_pinned = pinned;
        r = plan (&p);
        assert_int_equal (ranks_on (&p, &r, left_out), 1);
        assert_true (r.estimate.step_s >= free_one.estimate.step_s * (1 - 1e-12));
        mapper_result_release (&free_one);

        p.node_pinned = NULL;
        p.node_allowed = allowed;
        for (int set = 0; set < 64; set++) {
            int n = 0;

            for (int i = 0; i < 6; i++) {
                allowed[i] = set >> i & 1;
                n += allowed[i];
            }
            if (n != 4 || !allowed[left_out])
                continue;
            free_one = plan (&p);
            least = fmin (least, free_one.estimate.step_s);
            mapper_result_release (&free_one);
        }
        CLOSE (r.estimate.step_s, least, 1e-9);
        mapper_result_release (&r);
        topology_cluster_destroy (s.cluster);
    }
}

/* Beyond enumeration: with limits on nodes and without, by nodes and by single GPUs. */
static void pinned_large (void **state)
{
    struct rng rng = {29};
    (void) state;

    for (int round = 0; round < 6; round++) {
        struct setting s = a_job (random_cluster (&rng, 12, 2, 3, 0, false, round % 2));
        struct mapper_problem p = problem_for (&s, 2, 4, 2);
        bool pinned[12] = {0};
        struct mapper_result r;

        pinned[11] = pinned[round] = true;
        p.node_pinned = pinned;
        p.max_nodes = round < 3 ? 8 : 0;
        r = plan (&p);
        assert_true (ranks_on (&p, &r, 11) > 0 && ranks_on (&p, &r, round) > 0);
        assert_true (p.max_nodes == 0 || nodes_of (&p, &r) <= p.max_nodes);
        mapper_result_release (&r);
        topology_cluster_destroy (s.cluster);
    }
}

/* More pinned nodes than ranks cannot be. */
static void too_many_pinned (void **state)
{
    struct setting s = a_job (cluster_of ("6x1 a100-sxm4-80g inter:20"));
    struct mapper_problem p = problem_for (&s, 1, 2, 2);
    const bool pinned[6] = {true, true, true, true, true, false};
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result r;
    struct mapper_info info;
    struct error err = {""};
    (void) state;

    p.node_pinned = pinned;
    assert_int_equal (mapper_search (&p, &settings, &r, &info, &err), ST_INVALID);
    assert_true (strstr (err.text, "5 nodes are pinned") != NULL);
    mapper_info_release (&info);
    topology_cluster_destroy (s.cluster);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (pinned_small),
                                       cmocka_unit_test (pinned_large),
                                       cmocka_unit_test (too_many_pinned)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
