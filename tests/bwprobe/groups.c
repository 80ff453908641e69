/* A plan's groups, which are those of the rest of the program; and as rounds: the hops that its
 * rings, pipelines and all-to-alls have, each once, disjoint pairs in a round; what the price takes
 * for them; 1,024 GPUs within the usual budget. */
#include "tests/lib/folder.h"

#include "bwprobe/groups.h"

struct shape {
    int nodes, gpus, tp, cp, dp, pp, ep, etp, vpp;
    double node_gb_per_s; /* 0: not given */
};

/* A plan file whose ranks fill the nodes in order. */
static struct groups *plan_of (const struct shape *x, bool inside)
{
    int ranks = x->tp * x->cp * x->dp * x->pp;
    json_t *nodes = json_array (), *list = json_array (),
           *inter =
               json_pack ("{s:f, s:f}", "bandwidth_gb_per_s", 20.0, "latency_us", 12.0);
    struct groups *g = NULL;
    struct error err = {""};
    char name[32];

    for (int i = 0; i < x->nodes; i++) {
        snprintf (name, sizeof name, "n%d", i);
        json_array_append_new (nodes, json_pack ("{s:s, s:i, s:s}", "name", name, "gpus",
                                                 x->gpus, "gpu_type", "h100-sxm5-80g"));
    }
    for (int r = 0; r < ranks; r++) {
        snprintf (name, sizeof name, "n%d", r / x->gpus);
        json_array_append_new (list, json_pack ("{s:i, s:s, s:i}", "rank", r, "node",
                                                name, "gpu", r % x->gpus));
    }
    if (x->node_gb_per_s > 0)
        json_object_set_new (inter, "node_gb_per_s", json_real (x->node_gb_per_s));

    json_t *doc = json_pack (
        "{s:{s:i, s:s, s:o, s:{s:{s:f, s:f}, s:o}}, s:{s:i, s:i, s:i, s:i, s:i, s:i, "
        "s:i}, "
        "s:s, s:i, s:{s:i}, s:{s:i}, s:o}",
        "cluster", "version", 1, "name", "lab", "nodes", nodes, "links", "intra",
        "bandwidth_gb_per_s", 300.0, "latency_us", 8.0, "inter", inter, "degrees", "tp",
        x->tp, "cp", x->cp, "dp", x->dp, "pp", x->pp, "ep", x->ep, "etp", x->etp, "vpp",
        x->vpp, "schedule", x->vpp > 1 ? "interleaved" : "1f1b", "micro_batch", 2, "job",
        "seq", 4096, "model", "hidden_size", 8192, "ranks", list);

    assert_non_null (doc);
    assert_int_equal (json_dump_file (doc, in_folder ("plan"), 0), 0);
    json_decref (doc);
    if (groups_read (in_folder ("plan"), &g, &err) != ST_OK)
        fail_msg ("%s", err.text);
    assert_int_equal (groups_lay (g, inside, NULL), ST_OK);
    return g;
}

/* Pairs of a round are disjoint, and none comes twice. */
static void check_rounds (const struct groups *g, int kind)
{
    const struct groups_part *p = &g->part[kind];
    int *seen = malloc ((size_t) g->ranks * sizeof *seen);

    for (int i = 0; i < g->ranks; i++)
        seen[i] = -1;
    for (int r = 0; r < p->rounds; r++)
        for (int i = p->first[r]; i < p->first[r + 1]; i++) {
            assert_int_not_equal (seen[p->pair[i].a], r);
            seen[p->pair[i].a] = r;
            assert_int_not_equal (seen[p->pair[i].b], r);
            seen[p->pair[i].b] = r;
            for (int k = 0; k < i && p->n < 3000; k++)
                assert_false (
                    (p->pair[k].a == p->pair[i].a && p->pair[k].b == p->pair[i].b) ||
                    (p->pair[k].a == p->pair[i].b && p->pair[k].b == p->pair[i].a));
        }
    assert_int_equal (p->first[p->rounds], p->n);
    free (seen);
}

static bool has (const struct groups_part *p, int a, int b)
{
    for (int i = 0; i < p->n; i++)
        if ((p->pair[i].a == a && p->pair[i].b == b) ||
            (p->pair[i].a == b && p->pair[i].b == a))
            return true;
    return false;
}

TEST (test_rings_and_pipelines)
{
    /* A node a stage of a replica. */
    struct shape x = {.nodes = 12,
                      .gpus = 4,
                      .tp = 4,
                      .cp = 1,
                      .dp = 3,
                      .pp = 4,
                      .ep = 1,
                      .etp = 4,
                      .vpp = 1};
    struct groups *g = plan_of (&x, false);

    /* Three boundaries of 12 pipelines in two rounds; 16 rings of three in three. */
    assert_int_equal (g->part[GROUPS_PP].n, 36);
    assert_int_equal (g->part[GROUPS_PP].rounds, 2);
    assert_int_equal (g->part[GROUPS_DP].n, 48);
    assert_int_equal (g->part[GROUPS_DP].rounds, 3);
    assert_true (has (&g->part[GROUPS_PP], 0, 12) && !has (&g->part[GROUPS_PP], 0, 36));
    assert_true (has (&g->part[GROUPS_DP], 0, 4) && has (&g->part[GROUPS_DP], 0, 8));
    /* All GPUs of a node send in the same round, to their like. */
    for (int i = 1; i < 4; i++)
        assert_true (has (&g->part[GROUPS_DP], i, 4 + i));
    /* Host memory says nothing inside nodes. */
    assert_int_equal (g->part[GROUPS_TP].n, 0);
    for (int k = 0; k < GROUPS_KINDS; k++)
        check_rounds (g, k);
    /* 2 x 4096 tokens of 8192 numbers of 2 bytes. */
    assert_true (fabs (g->part[GROUPS_PP].bytes - (2.0 * 2 * 4096 * 8192)) < 1);
    groups_destroy (g);

    x.vpp = 2;
    g = plan_of (&x, true);
    assert_int_equal (g->part[GROUPS_PP].n, 48);
    assert_true (has (&g->part[GROUPS_PP], 0, 36));
    assert_int_equal (g->part[GROUPS_TP].n, 48);
    assert_int_equal (g->part[GROUPS_TP].rounds, 2);
    for (int k = 0; k < GROUPS_KINDS; k++)
        check_rounds (g, k);
    groups_destroy (g);
}

/* A ring with two members a node: around inside, and each to its like on the next node. */
TEST (test_lanes)
{
    const struct shape x = {.nodes = 3,
                            .gpus = 2,
                            .tp = 1,
                            .cp = 1,
                            .dp = 6,
                            .pp = 1,
                            .ep = 1,
                            .etp = 1,
                            .vpp = 1};
    struct groups *g = plan_of (&x, true);
    const struct groups_part *p = &g->part[GROUPS_DP];

    assert_int_equal (p->n, 6 + 3);
    assert_true (has (p, 0, 2) && has (p, 1, 3) && has (p, 4, 0) && has (p, 0, 1));
    check_rounds (g, GROUPS_DP);
    groups_destroy (g);
}

TEST (test_all_to_all)
{
    struct shape x = {
        .nodes = 8, .gpus = 1, .tp = 1, .cp = 1, .dp = 8, .pp = 1, .etp = 1, .vpp = 1};

    for (x.ep = 1; x.ep <= 8; x.ep *= 2) {
        struct groups *g = plan_of (&x, false);
        const struct groups_part *p = &g->part[GROUPS_EP];

        assert_int_equal (p->n, 8 * (x.ep - 1) / 2);
        assert_int_equal (p->rounds, x.ep - 1);
        assert_int_equal (g->part[GROUPS_EXPERT_DP].n, x.ep == 2 ? 8 : x.ep == 4 ? 4 : 0);
        check_rounds (g, GROUPS_EP);
        groups_destroy (g);
    }
}

TEST (test_expected)
{
    /* Four GPUs of a node send at once: 50 GB/s for all of them is less than 20 each. */
    const struct shape x = {.nodes = 4,
                            .gpus = 4,
                            .tp = 4,
                            .cp = 1,
                            .dp = 4,
                            .pp = 1,
                            .ep = 1,
                            .etp = 4,
                            .vpp = 1,
                            .node_gb_per_s = 50};
    struct groups *g = plan_of (&x, true);
    const struct groups_part *p = &g->part[GROUPS_DP];
    double rate[64];
    int n = p->first[1] - p->first[0];

    assert_int_equal (n, 8);
    for (int d = 0; d < 2; d++) {
        assert_int_equal (groups_expect (g, p->pair, n, d, rate, NULL), ST_OK);
        for (int i = 0; i < n; i++)
            assert_true (fabs (rate[i] - (12.5e9)) < 1);
    }
    assert_true (fabs (groups_expect_alone (g, 0, 4) - (20e9)) < 1);
    p = &g->part[GROUPS_TP];
    assert_int_equal (groups_expect (g, p->pair, p->first[1], 0, rate, NULL), ST_OK);
    assert_true (fabs (rate[0] - (300e9)) < 1);
    groups_destroy (g);
}

/* 1,024 GPUs with every kind of group.  A round over NCCL takes what splitting pairs from the
 * communicator of all and two directions take: 0.35 s. */
TEST (test_thousand)
{
    const struct shape x = {.nodes = 128,
                            .gpus = 8,
                            .tp = 4,
                            .cp = 2,
                            .dp = 32,
                            .pp = 4,
                            .ep = 64,
                            .etp = 1,
                            .vpp = 2};
    struct groups *g = plan_of (&x, true);
    int rounds = 0;

    for (int k = 0; k < GROUPS_KINDS; k++) {
        assert_true (g->part[k].n > 0);
        check_rounds (g, k);
        rounds += g->part[k].rounds;
    }
    assert_int_equal (g->part[GROUPS_EP].rounds, 63);
    assert_true (rounds * 0.35 < 0.75 * 90);
    groups_destroy (g);
}

/* bwprobe, which does not see workload/, works a plan's groups out once more. */
TEST (test_sizes)
{
    static const enum workload_group_kind kind[GROUPS_KINDS] = {
        [GROUPS_PP] = GROUP_PP, [GROUPS_DP] = GROUP_SYNC,
        [GROUPS_CP] = GROUP_CP, [GROUPS_EXPERT_DP] = GROUP_EXPERT_SYNC,
        [GROUPS_TP] = GROUP_TP, [GROUPS_EP] = GROUP_EP};
    struct rng r = seeded (8);

    for (int i = 0; i < 200; i++) {
        struct workload_degrees d = {.tp = 1 + rng_below (&r, 4),
                                     .cp = 1 + rng_below (&r, 3),
                                     .dp = 1 + rng_below (&r, 6),
                                     .pp = 1 + rng_below (&r, 3),
                                     .vpp = 1};
        int dense = d.tp * d.cp * d.dp;
        struct shape x = {.nodes = dense * d.pp,
                          .gpus = 1,
                          .tp = d.tp,
                          .cp = d.cp,
                          .dp = d.dp,
                          .pp = d.pp,
                          .vpp = 1};
        struct groups *g;

        do {
            d.etp = x.etp = 1 + rng_below (&r, d.tp);
            d.ep = x.ep = 1 + rng_below (&r, dense);
        } while (dense % (d.etp * d.ep) != 0);
        g = plan_of (&x, false);
        assert_int_equal (g->ranks, workload_world (&d));
        for (int k = 0; k < GROUPS_KINDS; k++) {
            struct workload_group want = workload_group_of (&d, kind[k]);

            if (k == GROUPS_EXPERT_DP && d.ep == 1)
                want.size = 1; /* a model that may have no experts */
            assert_int_equal (g->part[k].size, want.size);
            assert_int_equal (g->part[k].stride, want.stride);
        }
        groups_destroy (g);
    }
}
