/* The price of a placed plan: closed forms on easy clusters, parts that sum, links that
 * matter, names that do not. */
#include "tests/lib/clusters.h"

static const int in_order[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

/* Parameters of the only stage. */
static double held_params (const struct setting *s)
{
    struct workload_stage held = {.dense = 4, .embedding = true, .head = true};

    return workload_stage_params (&s->model, &s->config, &held).dense;
}

/* Two nodes of one GPU, data parallel: the all-gather and reduce-scatter over the one link
 * at (n-1)/n bytes each, with the profile's start, latency and part of the bandwidth. */
TEST (data_parallel_ring)
{
    struct setting s = plain_job ("2x1 a100-sxm4-80g inter:10 inter-us:20", 4, 1, 1, 2);
    struct costmodel_estimate e = estimate_of (&s, in_order);
    double params = held_params (&s);
    double bytes = (s.profile.memory.gradient_bytes + 2.0) * params / 2.0;

    assert_int_equal (e.dp_by, ALL_REDUCE_RING);
    CLOSE (e.part.dp_s,
           2 * (s.profile.time.collective_s + 20e-6) +
               bytes / (10e9 * s.profile.time.link),
           1e-9);
    assert_true (e.part.tp_s == 0 && e.part.pp_s == 0 && e.part.bubble_s < 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* Groups that leave a node together share node_gb_per_s; several members of a group on a
 * node are as many lanes. */
TEST (shared_way_out)
{
    struct setting wide = plain_job ("2x4 a100-sxm4-80g intra:1000 inter:10", 4, 4, 1, 2);
    struct setting shared =
        plain_job ("2x4 a100-sxm4-80g intra:1000 inter:10 node:20", 4, 4, 1, 2);
    struct setting lanes =
        plain_job ("2x4 a100-sxm4-80g intra:1000 inter:10", 4, 1, 1, 8);
    struct costmodel_estimate a = estimate_of (&wide, in_order),
                              b = estimate_of (&shared, in_order),
                              c = estimate_of (&lanes, in_order);
    double start = 2 * (wide.profile.time.collective_s + 12e-6 * 2 * 0.5);
    double n8 = held_params (&lanes);

    /* Four groups of two: 10 GB/s each alone, 20/4 together. */
    CLOSE ((b.part.dp_s - start) / (a.part.dp_s - start), 2.0, 1e-9);
    /* One group of eight, four lanes: 40 GB/s. */
    CLOSE (c.part.dp_s -
               2 * (lanes.profile.time.collective_s + (6 * 8e-6 + 2 * 12e-6) * 7 / 8),
           7.0 / 8 * 6 * n8 / (40e9 * lanes.profile.time.link), 1e-9);
    topology_cluster_destroy (wide.cluster);
    topology_cluster_destroy (shared.cluster);
    topology_cluster_destroy (lanes.cluster);
}

/* Two racks of two nodes: over the trunk between them a pair alone has all that it has inside
 * a rack, but all GPUs of a node only a quarter. */
TEST (shared_trunk)
{
    static const char form[] =
        "{\"version\":1,\"nodes\":["
        "{\"name\":\"a\",\"gpus\":4,\"gpu_type\":\"a100-sxm4-80g\",\"switches\":[\"l0\","
        "\"s\"]},"
        "{\"name\":\"b\",\"gpus\":4,\"gpu_type\":\"a100-sxm4-80g\",\"switches\":[\"l0\","
        "\"s\"]},"
        "{\"name\":\"c\",\"gpus\":4,\"gpu_type\":\"a100-sxm4-80g\",\"switches\":[\"l1\","
        "\"s\"]},"
        "{\"name\":\"d\",\"gpus\":4,\"gpu_type\":\"a100-sxm4-80g\",\"switches\":[\"l1\","
        "\"s\"]}],"
        "\"links\":{\"intra\":{\"latency_us\":8,\"bandwidth_gb_per_s\":1000},\"inter\":{"
        "\"latency_us\":12,\"bandwidth_gb_per_s\":10,\"node_gb_per_s\":40,"
        "\"node_pair_gb_per_s\":%s}}}";
    static const char *const totals[] = {
        "{\"by_hops\":[40,10]}",
        "[[null,40,10,10],[40,null,10,10],[10,10,null,40],[10,null,40,null]]"};
    static const int near[] = {0, 1, 2, 3, 4, 5, 6, 7},
                     far[] = {0, 1, 2, 3, 8, 9, 10, 11}, one[] = {0, 8};

    for (int i = 0; i < 2; i++) {
        char text[2048];
        struct setting s, single;
        struct costmodel_estimate a, b, c;
        double start;

        snprintf (text, sizeof text, form, totals[i]);
        s = plain_job ("1x1 a100-sxm4-80g", 4, 4, 1, 2);
        topology_cluster_destroy (s.cluster);
        s.cluster = cluster_from (text);
        a = estimate_of (&s, near);
        b = estimate_of (&s, far);
        start = 2 * (s.profile.time.collective_s + 12e-6 * 2 * 0.5);
        CLOSE ((b.part.dp_s - start) / (a.part.dp_s - start), 4.0, 1e-9);

        /* One pair alone has its link. */
        single = plain_job ("2x1 a100-sxm4-80g inter:10", 4, 1, 1, 2);
        a = estimate_of (&single, in_order);
        topology_cluster_destroy (single.cluster);
        single.cluster = s.cluster;
        b = estimate_of (&single, one);
        CLOSE (a.step_s, b.step_s, 1e-12);

        /* Sends of four ranks to their peers; both ways are one rate. */
        single.config.deg = (struct workload_degrees){4, 2, 1, 1, 1, 4, 1};
        workload_layers_even (single.model.layers, 2, single.layers);
        a = estimate_of (&single, near);
        c = estimate_of (&single, far);
        assert_true (c.part.pp_s > 2 * a.part.pp_s);
        topology_cluster_destroy (s.cluster);
    }
}

/* One bandwidth for all GPUs and a matrix of that number are the same cluster, also where
 * the latencies differ by pair: the slowest of a stage's groups counts. */
TEST (slow_latency_in_one_group)
{
    static const char *const bandwidth[] = {
        "100", "[[0,100,100,100],[100,0,100,100],[100,100,0,100],[100,100,100,0]]"};
    double dp_s[3];

    for (int i = 0; i < 3; i++) {
        struct setting s = plain_job ("1x4 a100-sxm4-80g intra:100", 4, 2, 1, 2);
        char doc[1024];

        /* Groups of two by tp: the second, GPUs 1 and 3, has 100 ms on its link. */
        snprintf (doc, sizeof doc,
                  "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":4,\"gpu_type\":"
                  "\"a100-sxm4-80g\"}],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":%s,"
                  "\"latency_us\":[[0,5,5,5],[5,0,5,%d],[5,5,0,5],[5,%d,5,0]]}}}",
                  bandwidth[i % 2], i < 2 ? 100000 : 5, i < 2 ? 100000 : 5);
        topology_cluster_destroy (s.cluster);
        s.cluster = cluster_from (doc);
        dp_s[i] = estimate_of (&s, in_order).part.dp_s;
        topology_cluster_destroy (s.cluster);
    }
    CLOSE (dp_s[0], dp_s[1], 1e-12);
    /* Two rings of two: latency twice half, in two phases. */
    CLOSE (dp_s[0] - dp_s[2], 2 * (100e-3 - 5e-6), 1e-9);
}

static double part_sum (const struct costmodel_breakdown *b)
{
    return b->compute_s + b->tp_s + b->cp_s + b->ep_s + b->bubble_s + b->pp_s + b->dp_s +
           b->optimizer_s;
}

/* On random clusters and placements: the parts sum to the step and none is negative;
 * playing everything out agrees; a slower link or GPU never makes the step faster;
 * renaming nodes and renumbering GPUs changes nothing. */
TEST (random_placements)
{
    static const int degrees[][3] = {{1, 1, 8}, {2, 2, 2}, {4, 2, 1}, {1, 4, 2},
                                     {2, 1, 4}, {8, 1, 1}, {1, 8, 1}, {2, 4, 1}};
    struct rng r = {12};

    for (int i = 0; i < 400; i++) {
        const int *d = degrees[rng_below (&r, 8)];
        bool gpu_links = rng_below (&r, 4) == 0, totals = rng_below (&r, 2);
        struct rng copy = r;
        struct setting s =
            small_job_as (random_cluster (&r, 2, 4, 4, 0, totals, gpu_links), 8, 512, 16,
                          config_of (d[0], d[1], d[2], 1));
        struct setting slow = s;
        struct costmodel_problem p;
        struct costmodel_estimate e, all;
        struct error err;
        int gpu[8] = {0, 1, 2, 3, 4, 5, 6, 7};

        shuffle (&r, gpu, 8);
        e = estimate_of (&s, gpu);
        CLOSE (part_sum (&e.part), e.step_s, 1e-9);
        assert_true (e.part.compute_s > 0 && e.part.tp_s >= 0 && e.part.bubble_s >= 0 &&
                     e.part.pp_s >= 0 && e.part.dp_s >= 0 && e.part.optimizer_s > 0);
        assert_true (e.mfu > 0 && e.mfu < 1);
        p = problem_of (&s);
        ok (costmodel_estimate (&p, gpu, false, &all, &err), &err);
        CLOSE (e.step_s, all.step_s, 1e-10);

        /* The same random numbers over a wider spread downwards: every link slower. */
        slow.cluster = random_cluster (&copy, 2, 4, 4, 0, totals, gpu_links);
        json_t *doc = topology_cluster_to_json (slow.cluster);
        json_t *links = json_object_get (doc, "links"),
               *kind = json_object_get (links, gpu_links ? "gpu" : "inter"),
               *row = json_array_get (json_object_get (kind, "bandwidth_gb_per_s"),
                                      (size_t) rng_below (&r, gpu_links ? 8 : 2));

        for (size_t k = 0; k < json_array_size (row); k++)
            json_array_set_new (
                row, k,
                json_real (0.5 * json_number_value (json_array_get (row, k)) + 1e-6));
        topology_cluster_destroy (slow.cluster);
        ok (topology_cluster_from_json (doc, "slow", NULL, &slow.cluster, NULL, &err),
            &err);
        assert_true (step_of (&slow, gpu, NULL) >= e.step_s * (1 - 1e-12));
        json_decref (doc);
        topology_cluster_destroy (slow.cluster);
        topology_cluster_destroy (s.cluster);
    }
}

/* Exchanging two nodes in the file and in the placement is no change. */
TEST (renumbering)
{
    struct rng r = seeded (5);

    for (int i = 0; i < 100; i++) {
        struct setting a =
            small_job_as (random_cluster (&r, 3, 1, 8, 0, false, false), 6, 512, 12,
                          i % 2 ? config_of (1, 3, 1, 1) : config_of (1, 1, 3, 1));
        struct setting b = a;
        json_t *doc = topology_cluster_to_json (a.cluster);
        json_t *inter = json_object_get (json_object_get (doc, "links"), "inter"),
               *old = json_object_get (inter, "bandwidth_gb_per_s"),
               *rows = json_array ();
        const int to[3] = {2, 0, 1}; /* old node k is new node to[k] */
        int from[3], gpu[3] = {0, 1, 2}, moved[3];
        struct error err;

        for (int k = 0; k < 3; k++)
            from[to[k]] = k;
        for (int x = 0; x < 3; x++) {
            json_t *row = json_array ();

            for (int y = 0; y < 3; y++)
                json_array_append (row,
                                   json_array_get (json_array_get (old, (size_t) from[x]),
                                                   (size_t) from[y]));
            json_array_append_new (rows, row);
        }
        json_object_set_new (inter, "bandwidth_gb_per_s", rows);
        ok (topology_cluster_from_json (doc, "b", NULL, &b.cluster, NULL, &err), &err);
        shuffle (&r, gpu, 3);
        for (int k = 0; k < 3; k++)
            moved[k] = to[gpu[k]];
        CLOSE (step_of (&a, gpu, NULL), step_of (&b, moved, NULL), 1e-12);
        json_decref (doc);
        topology_cluster_destroy (a.cluster);
        topology_cluster_destroy (b.cluster);
    }
}

/* A type that cannot run the precision, and ranks without a link, are told as such. */
TEST (refusals)
{
    struct setting s = plain_job ("2x1 a100-sxm4-80g inter:10", 4, 1, 2, 1);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_estimate e;
    struct error err = {""};

    s.job.precision = PREC_FP8;
    assert_int_equal (costmodel_estimate (&p, in_order, true, &e, &err), ST_INVALID);
    assert_string_equal (err.text, "node n0: GPU type a100-sxm4-80g cannot run fp8");
    s.job.precision = PREC_FP4;
    assert_int_equal (costmodel_estimate (&p, in_order, true, &e, &err), ST_INVALID);
    assert_string_equal (err.text, "node n0: GPU type a100-sxm4-80g cannot run fp4");
    topology_cluster_destroy (s.cluster);
    s.cluster = cluster_of ("2x1 v100-sxm2-32g inter:10");
    s.job.precision = PREC_TF32;
    p = problem_of (&s);
    assert_int_equal (costmodel_estimate (&p, in_order, true, &e, &err), ST_INVALID);
    assert_string_equal (err.text, "node n0: GPU type v100-sxm2-32g cannot run tf32");
    s.job.precision = PREC_BF16;
    topology_cluster_destroy (s.cluster);
    s.cluster = cluster_from (
        "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},{"
        "\"name\":"
        "\"b\",\"gpus\":1,\"gpu_type\":\"t4\"}],\"links\":{\"inter\":{\"latency_us\":1,"
        "\"bandwidth_gb_per_s\":[[null,null],[null,null]]}}}");
    p = problem_of (&s);
    assert_int_equal (costmodel_estimate (&p, in_order, true, &e, &err), ST_NOFIT);
    topology_cluster_destroy (s.cluster);
}

/* The step of fp32 or tf32 on a GPU of these rates. */
static double wide_step (enum workload_precision precision, bool composed, int fp32,
                         int tf32, int bf16)
{
    static const char form[] =
        "{\"version\":1,\"gpu_types\":{\"x\":{\"like\":\"h100-sxm5-80g\","
        "\"fp32_tflop_per_s\":%d,\"tf32_tflop_per_s\":%d,"
        "\"bf16_tflop_per_s\":%d}},\"nodes\":[{\"name\":\"a\",\"gpus\":4,\"gpu_type\":"
        "\"x\"}],"
        "\"links\":{\"intra\":{\"bandwidth_gb_per_s\":200,\"latency_us\":1}}}";
    struct setting s = plain_job ("1x4 h100-sxm5-80g intra:200", 4, 2, 2, 1);
    char text[512];
    double step_s;

    topology_cluster_destroy (s.cluster);
    snprintf (text, sizeof text, form, fp32, tf32, bf16);
    s.cluster = cluster_from (text);
    s.job.precision = precision;
    s.profile.compute_of_type = composed;
    step_s = estimate_of (&s, in_order).step_s;
    topology_cluster_destroy (s.cluster);
    return step_s;
}

/* tf32 is fp32 on a GPU whose fp32 rate is the TF32 one.  Products are at the precision's own rate;
 * attention of composed profiles is in TF32 either way, never at the 16-bit rate. */
TEST (tf32_rate)
{
    for (int composed = 0; composed < 2; composed++)
        CLOSE (wide_step (PREC_TF32, composed, 300, 500, 989),
               wide_step (PREC_FP32, composed, 500, 500, 700), 1e-12);
    CLOSE (wide_step (PREC_FP32, false, 60, 500, 989),
           wide_step (PREC_FP32, false, 60, 250, 989), 1e-12);
    assert_true (wide_step (PREC_FP32, true, 60, 500, 989) <
                 wide_step (PREC_FP32, true, 60, 250, 989));
}

/* The step on a B200 with one constant set. */
static double narrow_step (enum workload_precision precision, const char *key,
                           double value)
{
    struct setting s = plain_job ("1x4 b200-192g intra:800", 4, 2, 2, 1);
    char text[512];
    double step_s;

    topology_cluster_destroy (s.cluster);
    snprintf (text, sizeof text,
              "{\"version\":1,\"gpu_types\":{\"x\":{\"like\":\"b200-192g\",\"%s\":%g}},"
              "\"nodes\":[{\"name\":\"a\",\"gpus\":4,\"gpu_type\":\"x\"}],"
              "\"links\":{\"intra\":{\"bandwidth_gb_per_s\":800,\"latency_us\":1}}}",
              key, value);
    s.cluster = cluster_from (text);
    s.profile = profile_of ("megatron-bridge");
    s.profile.time.layer_launch_fwd_s = s.profile.time.layer_launch_back_s = 0;
    s.job.precision = precision;
    s.job.seq = 4096;
    step_s = step_of (&s, in_order, NULL);
    topology_cluster_destroy (s.cluster);
    return step_s;
}

/* fp4 multiplies at its own rate, faster than fp8, and casts cost it more of what that saves:
 * at endless rates of both, fp8 is the faster one. */
TEST (fp4_rate)
{
    double fp4 = narrow_step (PREC_FP4, "host_factor", 1);

    assert_true (fp4 < narrow_step (PREC_FP8, "host_factor", 1));
    assert_true (narrow_step (PREC_FP4, "fp4_gemm_efficiency", .9) < fp4);
    assert_true (narrow_step (PREC_FP4, "fp4_tflop_per_s", 4500) > fp4);
    CLOSE (narrow_step (PREC_FP4, "fp8_gemm_efficiency", .9), fp4, 1e-12);
    assert_true (narrow_step (PREC_FP4, "fp4_tflop_per_s", 1e6) >
                 narrow_step (PREC_FP8, "fp8_tflop_per_s", 1e6));
}

/* A GPU at half speed halves its stage, and with it the pipeline. */
TEST (slow_gpu)
{
    struct setting s = plain_job ("1x2 a100-sxm4-80g intra:1000", 8, 1, 2, 1);
    struct setting half = s;
    double whole, slow;

    half.cluster = cluster_from ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":2,"
                                 "\"gpu_type\":\"a100-sxm4-80g\","
                                 "\"speed\":[1,0.5]}],\"links\":{\"intra\":{\"latency_"
                                 "us\":8,\"bandwidth_gb_per_s\":"
                                 "1000}}}");
    whole = step_of (&s, in_order, NULL);
    slow = step_of (&half, in_order, NULL);
    assert_true (slow > 1.7 * whole && slow < 2.0 * whole);
    topology_cluster_destroy (s.cluster);
    topology_cluster_destroy (half.cluster);
}

/* Sequence-parallel collectives in pieces between the products hide in part, at most all of
 * the compute, and take their links all the same; others do not. */
TEST (tensor_overlap)
{
    struct setting s = plain_job ("2x4 a100-sxm4-80g intra:100 inter:10", 4, 4, 1, 2);
    struct costmodel_estimate bare = estimate_of (&s, in_order), e;

    s.profile.time.tp_overlap = .6;
    e = estimate_of (&s, in_order);
    CLOSE (e.part.tp_s, bare.part.tp_s, 0);
    s.profile.time.tp_comm_overlap = true;
    e = estimate_of (&s, in_order);
    CLOSE (e.part.tp_s, .4 * bare.part.tp_s, 1e-9);
    CLOSE (e.part.compute_s, bare.part.compute_s, 1e-9);
    s.profile.time.overlap_slowdown = .1;
    e = estimate_of (&s, in_order);
    CLOSE (e.part.tp_s, (.4 + .06) * bare.part.tp_s, 1e-9);

    s.profile.time.overlap_slowdown = 0;
    s.profile.time.collective_s = 1;
    s.profile.time.tp_comm_overlap = false;
    bare = estimate_of (&s, in_order);
    s.profile.time.tp_comm_overlap = true;
    e = estimate_of (&s, in_order);
    CLOSE (e.part.tp_s, bare.part.tp_s - bare.part.compute_s, 1e-6);

    s.config.sequence_parallel = false;
    e = estimate_of (&s, in_order);
    s.profile.time.tp_comm_overlap = false;
    bare = estimate_of (&s, in_order);
    CLOSE (e.part.tp_s, bare.part.tp_s, 0);
    topology_cluster_destroy (s.cluster);
}

/* Gradients that are all-reduced whole cross twice and in fp32, then weights are gathered:
 * three collectives of 4, 4 and 2 bytes a parameter. */
TEST (gradients_reduced_whole)
{
    struct setting s = plain_job ("2x1 a100-sxm4-80g inter:10 inter-us:20", 4, 1, 1, 2);
    struct costmodel_estimate e;
    double plain, in_fp32;

    s.profile.memory.gradient_bytes = 2;
    plain = estimate_of (&s, in_order).part.optimizer_s;
    s.profile.time.all_reduced_gradients = true;
    e = estimate_of (&s, in_order);
    in_fp32 = e.part.optimizer_s;
    CLOSE (e.part.dp_s,
           3 * (s.profile.time.collective_s + 20e-6) +
               10 * held_params (&s) / 2 / (10e9 * s.profile.time.link),
           1e-9);
    s.config.zero = 0; /* one all-reduce, by the fastest way */
    s.profile.time.all_reduce = ALL_REDUCE_RING;
    e = estimate_of (&s, in_order);
    CLOSE (e.part.dp_s,
           s.profile.time.collective_s + 2 * 20e-6 +
               8 * held_params (&s) / 2 / (10e9 * s.profile.time.link),
           1e-9);
    /* The copies that this takes: 30 bytes a parameter, 12 without casts; shards have none, as
     * under ZeRO 2 in fp32. */
    s.config.zero = 2;
    CLOSE (estimate_of (&s, in_order).part.optimizer_s, plain, 1e-9);
    s.profile.time.reduced_as_kept = true;
    for (; s.config.zero > 0; s.config.zero--)
        CLOSE (estimate_of (&s, in_order).part.optimizer_s,
               plain + 12 / 30.0 * (in_fp32 - plain), 1e-9);
    s.config.zero = 3;
    CLOSE (estimate_of (&s, in_order).part.optimizer_s, plain, 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* What adding up gradients moves, a parameter and micro-batch: 2 sums fused; 3 of 2 bytes;
 * and a sum of 4 after a cast from 2, 2 + 4 + 3 x 4. */
TEST (gradient_accumulation)
{
    struct setting s = plain_job ("1x1 a100-sxm4-80g", 4, 1, 1, 1);
    static const double sum[] = {2, 4}, fused_alike[] = {3, 9};

    for (int i = 0; i < 2; i++) {
        struct costmodel_estimate e, alike;

        s.profile.fused_accumulation = false;
        s.profile.memory.gradient_bytes = sum[i];
        e = estimate_of (&s, in_order);
        s.profile.fused_accumulation = true;
        s.profile.memory.gradient_bytes = fused_alike[i];
        alike = estimate_of (&s, in_order);
        CLOSE (e.part.compute_s, alike.part.compute_s, 1e-9);
    }
    topology_cluster_destroy (s.cluster);
}

/* Where a gated MLP's first projections are layers apart, both reduce their inputs'
 * gradients: a fifth all-reduce a layer, but not under sequence parallelism. */
TEST (separate_gate)
{
    struct setting s = plain_job ("1x4 a100-sxm4-80g intra:100", 4, 4, 1, 1);
    struct costmodel_estimate bare, e;

    for (int sp = 0; sp < 2; sp++) {
        s.config.sequence_parallel = sp;
        for (int gated = 0; gated < 2; gated++) {
            s.model.gated_mlp = gated;
            s.profile.separate_gate = false;
            bare = estimate_of (&s, in_order);
            s.profile.separate_gate = true;
            e = estimate_of (&s, in_order);
            CLOSE (e.part.tp_s / bare.part.tp_s,
                   gated && !sp ? (5.0 * 4 + 2) / (4.0 * 4 + 2) : 1.0, 1e-9);
        }
    }
    topology_cluster_destroy (s.cluster);
}

/* Rotary embeddings in pieces cost elementwise time; learned positions have none. */
TEST (rotary_in_pieces)
{
    struct setting s = plain_job ("1x1 a100-sxm4-80g", 4, 1, 1, 1);

    for (int learned = 0; learned < 2; learned++) {
        double fused;

        s.model.positions = learned ? s.job.seq : 0;
        s.profile.fused_rotary = true;
        fused = estimate_of (&s, in_order).part.compute_s;
        s.profile.fused_rotary = false;
        if (learned)
            CLOSE (estimate_of (&s, in_order).part.compute_s, fused, 0);
        else
            assert_true (estimate_of (&s, in_order).part.compute_s > 1.0001 * fused);
    }
    topology_cluster_destroy (s.cluster);
}

/* Seconds that backward repeats of a layer. */
static double repeated_s (const struct setting *s, const char *recompute, bool expert)
{
    struct workload_config c = s->config;
    struct costmodel_compute k;

    assert_true (workload_recompute_parse (recompute, &c));
    costmodel_compute (&s->model, &s->job, &c, &s->profile, s->cluster->node[0].type, &k);
    return expert ? k.expert.recompute_s : k.dense.recompute_s;
}

/* Each module costs its own forward again: they sum, the larger ones hold the smaller, and all
 * of them are less than the layer.  Core attention alone is Megatron's selective. */
TEST (modules_again)
{
    static const char *const parts[] = {"core_attn", "layernorm", "mla_up_proj",
                                        "moe_act", "shared_experts"};
    struct setting s = plain_job ("1x8 h100-sxm5-80g intra:400", 8, 2, 1, 4);
    double sum = 0.0;

    s.model = model_of ("deepseek-v3");
    for (int i = 0; i < 5; i++) {
        double part = repeated_s (&s, parts[i], true);

        assert_true (part > 0.0);
        sum += part;
    }
    CLOSE (
        repeated_s (&s, "core_attn,layernorm,mla_up_proj,moe_act,shared_experts", true),
        sum, 1e-12);
    CLOSE (repeated_s (&s, "selective", true), repeated_s (&s, "core_attn", true), 1e-12);
    assert_true (repeated_s (&s, "moe", true) >
                 repeated_s (&s, "moe_act", true) +
                     repeated_s (&s, "shared_experts", true));
    CLOSE (repeated_s (&s, "moe,moe_act,shared_experts", true),
           repeated_s (&s, "moe", true), 1e-12);
    assert_true (repeated_s (&s, "core_attn,layernorm,mla_up_proj,moe", true) <
                 repeated_s (&s, "full", true));
    /* Layers without experts repeat nothing of these, the others nothing of mlp. */
    assert_true (repeated_s (&s, "moe,moe_act,shared_experts", false) == 0.0);
    assert_true (repeated_s (&s, "mlp", true) == 0.0);
    /* Three products of the dense layer, two of them as one. */
    assert_true (repeated_s (&s, "mlp", false) > 0.2 * repeated_s (&s, "full", false));
    topology_cluster_destroy (s.cluster);
}

/* Tensor-parallel operations of what is repeated, and experts' exchanges. */
TEST (modules_communicate)
{
    struct workload_model m = model_of ("deepseek-v3");
    struct workload_config c = config_of (2, 1, 1, 1);
    struct workload_stage held = {.dense = 3, .expert = 5};
    double fwd, back, more;

    costmodel_tp_operations (&m, &c, &held, &fwd, &back);
    CLOSE (back, fwd, 1e-12);
    assert_true (workload_recompute_parse ("mlp", &c));
    costmodel_tp_operations (&m, &c, &held, &fwd, &more);
    CLOSE (more - back, 3.0, 1e-12);
    assert_true (workload_recompute_parse ("shared_experts", &c));
    costmodel_tp_operations (&m, &c, &held, &fwd, &more);
    CLOSE (more - back, 5.0, 1e-12);
    assert_false (workload_repeats_exchange (&c));
    assert_true (workload_recompute_parse ("mlp,moe", &c));
    costmodel_tp_operations (&m, &c, &held, &fwd, &more);
    /* All but attention's, one a layer. */
    CLOSE (more - back, fwd - 8.0, 1e-12);
    assert_true (workload_repeats_exchange (&c));
}

/* The optimizer reads and writes fewer bytes where its states are shorter. */
TEST (shorter_states)
{
    struct setting s = plain_job ("1x8 h100-sxm5-80g intra:400", 8, 1, 1, 8);
    double usual = estimate_of (&s, in_order).part.optimizer_s, gradient, shard;

    gradient = s.profile.memory.gradient_bytes;
    shard = gradient + 2.0 + gradient * 8; /* of a rank, beside 2 x 12 */
    s.config.optimizer_bytes = 6;
    CLOSE (estimate_of (&s, in_order).part.optimizer_s / usual,
           (2 * 6 + shard) / (2 * 12 + shard), 1e-9);
    topology_cluster_destroy (s.cluster);
}
