/* Placements that bounds were once above. */
#include "tests/lib/bounds.h"

static void check_even (struct setting *s, const int *gpu)
{
    struct mapper_problem p = unlimited (s);
    double bound[BOUND_RUNS + 1];

    if (s->layers[0] == 0)
        workload_layers_even (s->model.layers, s->config.deg.pp, s->layers);
    bounds_in (&p, &s->config, false, bound);
    above (s, "by hand", gpu, step_of (s, gpu, NULL), BOUND_RUNS + 1, bound);
    topology_cluster_destroy (s->cluster);
}

/* Two stages have two of three GPUs on each of their nodes, the last one the third: so that two
 * GPUs of a node send at once, not three. */
TEST (beside_few_groups)
{
    static const int gpu[] = {15, 0,  10, 16, 9, 2, 13, 7,  6,
                              4,  14, 3,  12, 1, 8, 17, 11, 5};
    struct setting s = {
        .cluster = cluster_of (
            "6x3 a100-sxm4-80g intra:148.2 inter:26.61 node:35.01 inter-us:10"),
        .model = small_model (8),
        .job = {.seq = 2048, .global_batch = 36},
        .profile = profile_of ("megatron-core"),
        .config = config_of (1, 3, 6, 1)};

    s.layers[0] = s.layers[1] = 3;
    s.layers[2] = 2;
    s.model.hidden = 4096;
    s.model.ffn = 4 * 4096;
    s.model.head_dim = 256;
    s.model.vocab = 2000;
    s.config.deg.vpp = 3;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.config.zero = 0;
    s.config.recompute = RECOMPUTE_SELECTIVE;
    s.profile.time.dp_overlap = 1;
    check_even (&s, gpu);
}

/* Stage 0's TP groups are where a GPU's links together are slow: its chunks hide more of its
 * synchronisation there, and end hardly later. */
TEST (hides_behind_slow_gpus)
{
    struct text t = {0};
    struct setting s;
    int gpu[24];

    text_add (&t, "{\"version\":1,\"name\":\"x\",\"nodes\":[");
    for (int i = 0; i < 15; i++)
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":2,\"gpu_type\":\"a100-sxm4-80g\"}",
                  i ? "," : "", i);
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < 15; i++)
        text_add (&t, "%s{\"latency_us\":3,%s\"bandwidth_gb_per_s\":300}", i ? "," : "",
                  i < 3 ? "\"gpu_gb_per_s\":22.7," : "");
    text_add (&t, "],\"inter\":{\"latency_us\":9,\"bandwidth_gb_per_s\":1.467}}}");
    s = small_job_as (cluster_from (text_str (&t)), 12, 2048, 12, config_of (2, 4, 3, 1));
    text_free (&t);
    s.config.deg.vpp = 3;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.profile.time.dp_overlap = 1;
    s.profile.time.dp_chunks = true;
    s.profile.time.overlap_slowdown = 0;
    s.profile.time.layer_launch_fwd_s = s.profile.time.layer_launch_back_s = 0;
    in_file_order (gpu, 24);
    check_even (&s, gpu);
}

/* All TP groups of the only stage span nodes, as some must: what a micro-batch takes longer for
 * that counts once. */
TEST (one_stage_spans)
{
    static const int gpu[] = {3, 7, 1, 6, 0, 10, 5, 11, 2, 9, 4, 8};
    struct setting s = {
        .cluster = cluster_of ("4x3 h100-sxm5-80g intra:200 inter:10 inter-us:10"),
        .model = small_model (5),
        .job = {.seq = 1024, .global_batch = 18},
        .profile = profile_of ("megatron-core-composed"),
        .config = config_of (2, 1, 6, 1)};

    s.model.hidden = 1024;
    s.model.ffn = 4096;
    s.model.experts = 4;
    s.model.top_k = 1;
    s.config.deg.ep = s.config.deg.etp = 2;
    s.config.zero = 0;
    check_even (&s, gpu);
}

/* A plan is sketched and placed before bounds tell of its configuration, which stays among those
 * that are left, in a space of few: it is there once. */
TEST (sketched_first)
{
    struct setting s = {.model = model_of ("olmoe-1b-7b"),
                        .job = {.seq = 1024, .global_batch = 16},
                        .profile = profile_of ("torchtitan"),
                        .cluster = cluster_of ("8x4 h100-sxm5-80g intra:450 inter:6")};
    struct mapper_problem p = search_degrees (&s, 4, 2, MAPPER_FREE);
    struct found f;

    p.axes.zero = 2;
    p.axes.shard = 2;
    p.axes.micro_batch = 2;
    f = search (&p, NULL);
    assert_true (f.info.placed > 0 && f.r.lower_bound_s > 0.5 * f.r.estimate.step_s);
    found_release (&f);
    topology_cluster_destroy (s.cluster);
}
