/* Drawn clusters: each preset has the statistics that it says, and a planted placement is
 * one that no link outside it could improve. */
#include "tests/lib/search.h"

#include "topology/survey/survey.h"
#include "topology/edit/edit.h"

static struct topology_cluster *draw (const char *preset, int nodes, unsigned long epoch,
                                      int plant, json_t **doc)
{
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct topology_cluster *c = NULL;
    struct notes notes = {0};
    struct error err = {""};

    s.preset = preset;
    s.nodes = nodes;
    s.epoch = epoch;
    s.plant = plant;
    s.leaf = 8;
    s.pod = 4;
    ok (topology_synthesize (&s, &d, NULL, &err), &err);
    ok (topology_cluster_from_json (d.doc, preset, NULL, &c, &notes, &err), &err);
    assert_int_equal (notes.n, 0);
    if (doc)
        *doc = json_incref (d.doc);
    topology_document_release (&d);
    return c;
}

/* The share of the links between nodes whose rate over the preset's is in [lo, hi). */
static double between (const struct topology_cluster *c, double lo, double hi)
{
    double n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double x = i == j ? -1 : topology_node_link (c, i, j).bytes_per_s / 48e9;

            n += x >= lo && x < hi;
        }
    return n / c->n_nodes / (c->n_nodes - 1);
}

TEST (calm)
{
    struct topology_cluster *a = draw ("calm", 128, 0, 0, NULL),
                            *b = draw ("calm", 128, 1, 0, NULL);
    struct topology_stats s;
    struct topology_diff d;
    struct error err;

    ok (topology_stats_collect (a, 1, NULL, &s, &err), &err);
    assert_int_equal (s.n_tiers, 4);
    for (int k = 1; k < 4; k++) {
        CLOSE (s.tier[k].quantile_bytes_per_s[QUANTILE_50], 48e9, 0.02);
        assert_true (s.tier[k].cv > 0.03 && s.tier[k].cv < 0.05);
    }
    assert_true (s.asymmetry_mean > 0.03 && s.asymmetry_mean < 0.05);
    assert_true (s.slow == 0);
    topology_stats_release (&s);
    /* Another time: the same cluster, other rates by 2.5 %. */
    assert_true (topology_same_cluster (a, b));
    ok (topology_diff_collect (a, b, 0.025, 0, &d, &err), &err);
    CLOSE (d.median_ratio, 1.0, 0.002);
    CLOSE ((d.slower + d.faster) / (128.0 * 127), 0.317, 0.1); /* beyond one sigma */
    topology_diff_release (&d);
    topology_cluster_destroy (a);
    topology_cluster_destroy (b);
}

TEST (busy)
{
    struct topology_cluster *c = draw ("busy", 128, 0, 0, NULL);

    /* Four pods of 32 nodes: 96 of 127 peers are in another, at 0.83; of those under
     * another leaf, 120 of 127, a tenth has half: 0.5, or 0.415 across pods. */
    CLOSE (between (c, 0.3, 0.6), 0.1 * 120 / 127, 0.1);
    CLOSE (between (c, 0.7, 0.91), 0.9 * 96 / 127, 0.05);
    topology_cluster_destroy (c);
}

TEST (failing)
{
    struct topology_cluster *c = draw ("failing", 256, 0, 0, NULL);
    int half = 0, slow = 0;
    struct topology_stats s;
    struct error err;

    ok (topology_stats_collect (c, 0, NULL, &s, &err), &err);
    for (int i = 0; i < c->n_nodes; i++) {
        half += s.node[i].out_bytes_per_s < 0.6 * 48e9;
        for (int k = 0; c->node[i].speed && k < 8; k++)
            slow += c->node[i].speed[k] < 0.7;
    }
    assert_in_range (half, 2, 18); /* 256 / 32 = 8 */
    assert_in_range (slow, 3, 22); /* 2048 / 200 = 10 */
    /* 1 pair in 200 has 0.3, among nodes that are whole. */
    CLOSE (between (c, 0.25, 0.36), 0.005, 0.35);
    topology_stats_release (&s);
    topology_cluster_destroy (c);
}

TEST (mixed)
{
    struct topology_cluster *c = draw ("mixed", 32, 0, 0, NULL);

    assert_string_equal (c->node[23].type->name, "h100-sxm5-80g");
    assert_string_equal (c->node[24].type->name, "a100-sxm4-80g");
    CLOSE (topology_node_link (c, 0, 31).bytes_per_s, 24e9, 0.25);
    CLOSE (topology_link (c, 31 * 8, 31 * 8 + 1).bytes_per_s, 240e9, 1e-9);
    topology_cluster_destroy (c);
}

/* The links of the planted pipelines and rings have the best rate, all others less; the
 * search finds a placement as good as it. */
TEST (planted)
{
    json_t *doc, *stages;
    struct topology_cluster *c = draw ("calm", 16, 0, 4, &doc);
    struct setting s = {.cluster = c,
                        .model = model_of ("llama-2-13b"),
                        .job = {.seq = 4096, .global_batch = 256},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                        .config = config_of (8, 4, 4, 1)};
    struct mapper_problem p = search_degrees (&s, 8, 4, 4);
    struct found o;
    int node[4][4], gpu[128], best = 0;

    stages = json_object_get (json_object_get (doc, "planted"), "stages");
    for (int k = 0; k < 4; k++)
        for (int d = 0; d < 4; d++) {
            node[k][d] = topology_node_find (
                c, json_string_value (
                       json_array_get (json_array_get (stages, (size_t) k), (size_t) d)));
            for (int t = 0; t < 8; t++)
                gpu[t + 8 * (d + 4 * k)] = 8 * node[k][d] + t;
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            double x = i == j ? 0 : topology_node_link (c, i, j).bytes_per_s / 48e9;

            best += x > 0.999;
            assert_true (x <= 0.7501 || x > 0.999);
        }
    /* 4 rings of 4 nodes and 4 pipelines closed to rings of 4, both ways. */
    assert_int_equal (best, 2 * (4 * 4 + 4 * 4));
    for (int k = 0; k < 4; k++)
        CLOSE (topology_node_link (c, node[k][0], node[k][1]).bytes_per_s, 48e9, 1e-4);

    p.axes.micro_batch = 1;
    p.axes.zero = 1;
    p.axes.sequence_parallel = 1;
    p.axes.recompute = RECOMPUTE_NONE;
    o = search (&p, NULL);
    take (&s, &o.r);
    CLOSE (o.r.estimate.step_s, step_of (&s, gpu, NULL), 1e-3);
    found_release (&o);
    json_decref (doc);
    topology_cluster_destroy (c);
}

TEST (refused)
{
    struct topology_document d = {0};
    struct topology_synth s = topology_synth_default ();
    struct error err;

    s.preset = "mixed";
    s.gpu_type = "t4";
    assert_int_equal (topology_synthesize (&s, &d, NULL, &err), ST_USAGE);
    s.preset = "calm";
    s.gpu_type = "z9";
    assert_int_equal (topology_synthesize (&s, &d, NULL, &err), ST_USAGE);
    s.gpu_type = "h100-sxm5-80g";
    s.plant = 17;
    assert_int_equal (topology_synthesize (&s, &d, NULL, &err), ST_USAGE);
    assert_non_null (strstr (err.text, "--plant 17"));
}
