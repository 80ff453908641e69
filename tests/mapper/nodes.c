/* Which nodes a plan uses: pinned ones always, no more than allowed, the best ones; equal to
 * trying every placement where that can be done. */
#include "mapper/pool/pool.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

static struct setting a_job (struct topology_cluster *c)
{
    return small_job (c, 8, 2048, 16);
}

static struct mapper_problem problem_for (const struct setting *s, int tp, int pp, int dp)
{
    struct mapper_problem p = search_degrees (s, tp, pp, dp);

    p.axes.micro_batch = p.axes.zero = 1;
    return p;
}

static int ranks_on (const struct mapper_problem *p, const struct found *o, int node)
{
    int n = 0;

    for (int k = 0; k < (int) workload_world (&o->r.config.deg); k++)
        n += p->cluster->node_of_gpu[o->r.gpu[k]] == node;
    return n;
}

static int nodes_of (const struct mapper_problem *p, const struct found *o)
{
    int n = 0;

    for (int i = 0; i < p->cluster->n_nodes; i++)
        n += ranks_on (p, o, i) > 0;
    return n;
}

/* A pinned node that the best plan leaves out is used, and nothing better was there: the best
 * over every choice of the other nodes. */
TEST (pinned_small)
{
    struct rng rng = seeded (13);

    for (int round = 0; round < 3; round++) {
        struct setting s = a_job (random_cluster (&rng, 6, 1, 6, 0, false, false));
        struct mapper_problem p = problem_for (&s, 1, 2, 2);
        struct found free_one = search (&p, NULL), o;
        bool allowed[6], pinned[6] = {0};
        double least = INFINITY;
        int left_out = 0;

        while (ranks_on (&p, &free_one, left_out) > 0)
            left_out++;
        pinned[left_out] = true;
        p.node_pinned = pinned;
        o = search (&p, NULL);
        assert_int_equal (ranks_on (&p, &o, left_out), 1);
        assert_true (o.r.estimate.step_s >= free_one.r.estimate.step_s * (1 - 1e-12));
        found_release (&free_one);

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
            free_one = search (&p, NULL);
            least = fmin (least, free_one.r.estimate.step_s);
            found_release (&free_one);
        }
        CLOSE (o.r.estimate.step_s, least, 1e-9);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* Beyond enumeration: with limits on nodes and without, by nodes and by single GPUs. */
TEST (pinned_large)
{
    struct rng rng = seeded (29);
    int rounds = getenv ("LINKWISE_LONG") ? 8 : 1;

    for (int round = 0; round < rounds; round++) {
        struct setting s = a_job (random_cluster (&rng, 12, 2, 3, 0, false, round % 2));
        struct mapper_problem p = problem_for (&s, 2, 4, 2);
        bool pinned[12] = {0};
        struct mapper_settings settings = mapper_settings_default ();
        struct found o;

        settings.polish = 0; /* limits hold before it */
        pinned[11] = pinned[round] = true;
        p.node_pinned = pinned;
        p.max_nodes = (round + 1) / 2 % 2 ? 0 : 8;
        o = search (&p, &settings);
        assert_true (ranks_on (&p, &o, 11) > 0 && ranks_on (&p, &o, round) > 0);
        assert_true (p.max_nodes == 0 || nodes_of (&p, &o) <= p.max_nodes);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* More pinned nodes than ranks cannot be. */
TEST (too_many_pinned)
{
    struct setting s = a_job (cluster_of ("6x1 a100-sxm4-80g inter:20"));
    struct mapper_problem p = problem_for (&s, 1, 2, 2);
    const bool pinned[6] = {true, true, true, true, true, false};
    struct found o;
    struct error err = {""};

    p.node_pinned = pinned;
    assert_int_equal (try_search (&p, NULL, &o, &err), ST_INVALID);
    assert_true (strstr (err.text, "5 nodes are pinned") != NULL);
    topology_cluster_destroy (s.cluster);
}

/* Five unlike nodes in that order, with drawn links. */
static struct topology_cluster *ordered (const int *order, const double *rate)
{
    static const struct {
        const char *type;
        int gpus;
    } of[] = {{"a100-sxm4-80g", 4},
              {"l40s", 3},
              {"a100-sxm4-80g", 2},
              {"l40s", 1},
              {"a100-sxm4-80g", 4}};
    struct text t = {0};
    double there[25];

    for (int i = 0; i < 5; i++) {
        add_node (&t, i, of[order[i]].gpus, of[order[i]].type, NULL);
        for (int k = 0; k < 5; k++)
            there[i * 5 + k] = i == k ? NAN : rate[order[i] * 5 + order[k]];
    }
    text_add (&t, "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":200,\"latency_us\":3},"
                  "\"inter\":{\"latency_us\":10,\"bandwidth_gb_per_s\":");
    add_matrix (&t, 5, there);
    text_add (&t, "}}}");
    return cluster_written (&t);
}

/* The search goes through the nodes in the same order, whatever their order in the file; what asks
 * for that of the file gets it. */
TEST (any_order)
{
    struct rng rng = seeded (47);
    int order[5] = {0, 1, 2, 3, 4}, first[5], seq[5];
    double rate[25];

    for (int i = 0; i < 25; i++)
        rate[i] = drawn (&rng, 1, 25);
    for (int round = 0; round < 20; round++) {
        struct setting s = a_job (ordered (order, rate));
        struct mapper_problem p = search_problem (&s);
        struct error err = {""};
        struct pool pool;

        ok (pool_init (&pool, &p, &err), &err);
        pool_sequence (&pool, true, seq);
        for (int i = 0; i < 5; i++) {
            if (round == 0)
                first[i] = pool.node[i];
            assert_int_equal (order[pool.node[i]], first[i]);
            assert_int_equal (seq[i], i);
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
        for (int i = 4; i > 0; i--) {
            int k = rng_below (&rng, i + 1), had = order[i];

            order[i] = order[k];
            order[k] = had;
        }
    }
}
