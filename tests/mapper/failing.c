/* Experts on 128 nodes, some with bad links and some with a slow GPU: both come to the stage whose
 * layers were split for them, wherever the best start has them and whatever the seed. */
#include "tests/lib/search.h"
#include "topology/edit/edit.h"

/* What the step of one configuration of four stages is above its bound, as a share of that. */
static double beyond_bound (const char *type, const char *profile, uint64_t cluster_seed,
                            int tp, int chunks, uint64_t seed)
{
    struct topology_synth y = topology_synth_default ();
    struct topology_document d = {0};
    struct setting s = {.model = model_of ("mixtral-8x7b"),
                        .job = {.seq = 4096, .global_batch = 1024},
                        .profile = profile_of (profile)};
    struct mapper_settings how = mapper_settings_default ();
    struct mapper_problem p;
    struct found f;
    struct error err;
    double beyond;

    y.preset = "failing";
    y.nodes = 128;
    y.gpu_type = type;
    y.seed = cluster_seed;
    ok (topology_synthesize (&y, &d, NULL, &err), &err);
    ok (topology_cluster_from_json (d.doc, y.preset, NULL, &s.cluster, NULL, &err), &err);
    s.config = config_of (tp, 4, 256 / tp, 1);
    s.config.deg.ep = 8;
    s.config.deg.etp = 1;
    s.config.deg.vpp = chunks;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.config.sequence_parallel = tp > 1;
    p = search_problem (&s);
    p.axes = mapper_axes_of (&s.config);
    how.seed = seed;
    f = search (&p, &how);
    beyond = f.r.estimate.step_s / f.r.lower_bound_s - 1.0;
    found_release (&f);
    topology_cluster_destroy (s.cluster);
    topology_document_release (&d);
    return beyond;
}

/* The node with the slow GPU was left in another stage than that split for it, and compute of the
 * slow stage hides more of its ring than a fast one's would. */
TEST (slow_gpu)
{
    for (uint64_t seed = 1; seed <= 3; seed += 2)
        assert_true (beyond_bound ("h100-sxm5-80g", "megatron-core-composed", 3, 1, 5,
                                   seed) < .05);
}

/* The best start has its stages in the order of classes. */
TEST (stages_by_class)
{
    for (uint64_t cluster = 1; cluster <= 5; cluster += 4)
        assert_true (beyond_bound ("a100-sxm4-80g", "megatron-core", cluster, 2, 3, 1) <
                     .1);
}
