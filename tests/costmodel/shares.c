/* Links that groups of ranks share, and that what they send takes from what would hide. */
#include "tests/lib/clusters.h"

static const int in_order[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Groups that run through the same nodes share them wherever they stand among others: three of the
 * four data-parallel groups do, the second does not. */
TEST (groups_of_a_kind)
{
    static const int gpu[] = {0, 6, 1, 2, 3, 7, 4, 5};
    static const char *const line[] = {
        "2x3 a100-sxm4-80g inter:9 node:9 + 2x1 a100-sxm4-80g inter:9 node:90",
        "2x3 a100-sxm4-80g inter:3 + 2x1 a100-sxm4-80g inter:9"};
    double dp_s[2];

    for (int i = 0; i < 2; i++) {
        struct setting s = plain_job (line[i], 4, 4, 1, 2);

        dp_s[i] = estimate_of (&s, gpu).part.dp_s;
        topology_cluster_destroy (s.cluster);
    }
    CLOSE (dp_s[0], dp_s[1], 1e-9);
}

/* Tensor-parallel groups of both replicas that leave a node share its way out, however many of
 * their ranks are on it. */
TEST (tensor_groups_share)
{
    static const struct {
        const char *shared, *alone; /* where links are as fast as the shares */
        int tp, gpu[8];
    } t[] = {
        {"1x2 a100-sxm4-80g intra:100 inter:10 node:10 + 1x2 a100-sxm4-80g intra:100 "
         "inter:10 node:90", /* either way out may be the narrow one */
         "2x2 a100-sxm4-80g intra:100 inter:5",
         2,
         {0, 2, 1, 3}},
        {"1x2 a100-sxm4-80g intra:100 inter:10 node:90 + 1x2 a100-sxm4-80g intra:100 "
         "inter:10 node:10",
         "2x2 a100-sxm4-80g intra:100 inter:5",
         2,
         {0, 2, 1, 3}},

        {"2x2 a100-sxm4-80g intra:100 inter:10 node:10",
         "2x2 a100-sxm4-80g intra:100 inter:5",
         2,
         {0, 2, 1, 3}},
        {"2x4 a100-sxm4-80g intra:100 inter:10 node:10",
         "2x4 a100-sxm4-80g intra:100 inter:2.5",
         4,
         {0, 1, 4, 5, 2, 3, 6, 7}},
        {"2x4 a100-sxm4-80g intra:100 inter:10 node:10", /* the other is inside its node */
         "2x4 a100-sxm4-80g intra:100 inter:10",
         2,
         {0, 4, 1, 2}}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double tp_s[2];

        for (int k = 0; k < 2; k++) {
            struct setting s = plain_job (k ? t[i].alone : t[i].shared, 4, t[i].tp, 1, 2);

            tp_s[k] = estimate_of (&s, t[i].gpu).part.tp_s;
            topology_cluster_destroy (s.cluster);
        }
        CLOSE (tp_s[0], tp_s[1], 1e-9);
    }
}

/* Rings of keys and values of all tensor-parallel ranks leave a node together: four share
 * what one has alone. */
TEST (context_rings_share)
{
    static const char *const line[] = {"2x4 a100-sxm4-80g intra:1000 inter:1",
                                       "2x4 a100-sxm4-80g intra:1000 inter:1 node:1"};
    struct costmodel_volume v;
    double cp_s[2];

    for (int i = 0; i < 2; i++) {
        struct setting s = plain_job (line[i], 4, 4, 1, 1);

        s.config.deg.cp = 2;
        cp_s[i] = estimate_of (&s, in_order).part.cp_s;
        costmodel_volume (&s.model, &s.job, &s.config, &s.profile, &v);
        topology_cluster_destroy (s.cluster);
    }
    /* 16 micro-batches, 4 layers, one step forward and twice the bytes back. */
    CLOSE (cp_s[1] - cp_s[0], 16 * 4 * 3 * v.cp_bytes * (4 / 1e9 - 1 / 1e9), 1e-9);
}

/* All-to-alls come again in backward for the layers that are recomputed: none, 2 of 4, all. */
TEST (exchanges_again)
{
    static const char *const how[] = {"none", "full:2", "full"};
    struct setting s = plain_job ("1x8 a100-sxm4-80g intra:50", 4, 4, 1, 1);
    double once;

    s.profile.cp_all_to_all = true;
    s.config.deg.cp = 2;
    once = estimate_of (&s, in_order).part.cp_s / 2;
    for (int i = 0; i < 3; i++) {
        assert_true (workload_recompute_parse (how[i], &s.config));
        CLOSE (estimate_of (&s, in_order).part.cp_s, (2 + .5 * i) * once, 1e-9);
    }
    topology_cluster_destroy (s.cluster);
}

/* So do the steps of a ring, as far as attention does not hide them. */
TEST (rings_again)
{
    static const char *const how[] = {"none", "full:2", "full"};
    struct setting s = plain_job ("2x1 a100-sxm4-80g inter:1 inter-us:20", 4, 1, 1, 1);
    struct costmodel_compute k;
    struct costmodel_volume v;
    double cp_s[3], hop;

    s.config.deg.cp = 2;
    costmodel_volume (&s.model, &s.job, &s.config, &s.profile, &v);
    costmodel_compute (&s.model, &s.job, &s.config, &s.profile, s.cluster->node[0].type,
                       &k);
    hop =
        costmodel_cp_hop_s (&s.profile, v.cp_bytes, 1e9 * s.profile.time.link_out, 20e-6);
    for (int i = 0; i < 3; i++) {
        assert_true (workload_recompute_parse (how[i], &s.config));
        cp_s[i] = estimate_of (&s, in_order).part.cp_s;
    }
    CLOSE (cp_s[2] - cp_s[0], 16 * 4 * (hop - k.dense.attention_fwd_s / 2), 1e-6);
    CLOSE (cp_s[2] - cp_s[0], 2 * (cp_s[1] - cp_s[0]), 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* Nothing hides under steps of the context-parallel ring that go over the same links, not even
 * where these hide under attention.  PyTorch's gradients go once more, by themselves. */
TEST (context_takes_links)
{
    for (int i = 0; i < 4; i++) {
        bool same = i % 2, pieces = i / 2;
        struct setting s = plain_job (same ? "8x1 a100-sxm4-80g inter:50 inter-us:20"
                                           : "2x4 a100-sxm4-80g intra:50 inter:10",
                                      4, 1, 1, 2);
        struct workload_profile *p = &s.profile;
        struct costmodel_estimate bare, e;
        struct costmodel_volume v;
        double busy;

        s.config.deg.cp = 4;
        p->cp_by_pieces = pieces;
        costmodel_volume (&s.model, &s.job, &s.config, p, &v);
        busy = 3 * costmodel_cp_hop_s (p, v.cp_bytes, 50e9, 20e-6);
        busy += pieces ? busy + 4 * costmodel_cp_hop_s (p, v.cp_back_bytes - v.cp_bytes,
                                                        50e9, 20e-6)
                       : 3 * costmodel_cp_hop_s (p, v.cp_back_bytes, 50e9, 20e-6);
        busy *= 4;
        bare = estimate_of (&s, in_order);
        p->time.dp_overlap = .02;
        e = estimate_of (&s, in_order);
        CLOSE (bare.part.dp_s - e.part.dp_s,
               .02 * ((bare.part.compute_s + bare.part.cp_s) / 16 - same * busy), 1e-9);
        assert_true (!same || busy > bare.part.cp_s / 16);
        topology_cluster_destroy (s.cluster);
    }
}

/* Gradients hide under compute, and under tensor parallelism only where that takes other
 * links than they do. */
TEST (hides_under_other_links)
{
    static const struct {
        const char *cluster;
        int gpu[4];
        bool same; /* both between nodes, or both inside one */
    } t[] = {{"2x2 a100-sxm4-80g intra:100 inter:10", {0, 1, 2, 3}, false},
             {"2x2 a100-sxm4-80g intra:100 inter:10", {0, 2, 1, 3}, false},
             {"4x1 a100-sxm4-80g inter:10", {0, 1, 2, 3}, true},
             {"1x4 a100-sxm4-80g intra:100", {0, 1, 2, 3}, true}};

    for (int i = 0; i < 4; i++) {
        struct setting s = plain_job (t[i].cluster, 4, 2, 1, 2);
        struct costmodel_estimate bare = estimate_of (&s, t[i].gpu), e;

        s.profile.time.dp_overlap = .02;
        e = estimate_of (&s, t[i].gpu);
        assert_true (bare.part.tp_s > 0 && e.part.dp_s > 0);
        CLOSE (bare.part.dp_s - e.part.dp_s,
               .02 * (bare.part.compute_s + (t[i].same ? 0 : bare.part.tp_s)) / 16, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}
