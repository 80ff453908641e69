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
