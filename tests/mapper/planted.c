/* A placement that is the best by construction is found: all links of its pipelines and
 * rings have one rate, every other link at most three quarters of it. */
#include "tests/lib/planted.h"
#include "tests/lib/search.h"
#include "topology/edit/edit.h"

static void find_planted (const char *preset, int nodes, int stages)
{
    struct topology_synth y = topology_synth_default ();
    struct topology_document d = {0};
    struct mapper_problem p;
    struct found o;
    struct error err = {""};
    struct setting s = {.model = model_of ("llama-2-13b"),
                        .job = {.seq = 4096},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    json_t *planted;
    int *gpu = calloc ((size_t) nodes * 8, sizeof *gpu);

    y.preset = preset;
    y.nodes = nodes;
    y.plant = stages;
    ok (topology_synthesize (&y, &d, NULL, &err), &err);
    ok (topology_cluster_from_json (d.doc, preset, NULL, &s.cluster, NULL, &err), &err);
    planted = json_object_get (d.doc, "planted");
    planted_order (s.cluster, planted, gpu);
    s.config = config_of (8, stages,
                          (int) json_integer_value (json_object_get (planted, "dp")), 1);
    s.job.global_batch = 8 * s.config.deg.dp;
    p = search_degrees (&s, 8, stages, s.config.deg.dp);
    p.axes.micro_batch = p.axes.zero = p.axes.sequence_parallel = 1;
    p.axes.recompute = RECOMPUTE_SELECTIVE;
    o = search (&p, NULL);
    take (&s, &o.r);
    assert_true (o.r.estimate.step_s <= step_of (&s, gpu, NULL) * 1.001);
    free (gpu);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
    topology_document_release (&d);
}

TEST (found)
{
    for (int k = 0; topology_preset_at (k); k++) {
        find_planted (topology_preset_at (k)->name, 12, 4);
        if (getenv ("LINKWISE_LONG")) {
            find_planted (topology_preset_at (k)->name, 16, 4);
            find_planted (topology_preset_at (k)->name, 32, 4);
            find_planted (topology_preset_at (k)->name, 128, 8);
        }
    }
}

/* Hybrid sharding in groups that no node holds: the two copies of a shard side by side, so that
 * all-reduces between copies stay on a node. */
TEST (copies_side_by_side)
{
    struct setting s = {.cluster = cluster_of ("3x8 h100-sxm5-80g intra:300 inter:3"),
                        .model = model_of ("llama-3-8b"),
                        .job = {.seq = 8192, .global_batch = 96},
                        .profile = profile_of ("torchtitan"),
                        .config = config_of (2, 1, 12, 4)};
    struct mapper_problem p;
    struct found o;
    int gpu[24], copies = 2;

    s.config.zero = 2;
    s.config.shard = s.config.deg.dp / copies;
    s.config.recompute = RECOMPUTE_FULL;
    s.config.sequence_parallel = true;
    for (int i = 0; i < 24; i++) {
        int replica = i / 2;

        gpu[i] =
            (replica % s.config.shard * copies + replica / s.config.shard) * 2 + i % 2;
    }
    p = search_config (&s);
    o = search (&p, NULL);
    workload_layers_even (s.model.layers, 1, s.layers);
    assert_true (o.r.estimate.step_s <= step_of (&s, gpu, NULL) * 1.001);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}
