/* All-reduces: every algorithm's closed form, which one is taken, what machines offer, and
 * figures that were published. */
#include "tests/lib/fixture.h"

#define HOP 10e-6

/* n ranks on `nodes` nodes, at 100 GB/s inside and between. */
static struct costmodel_ring ring_on (int n, int nodes, double nvls)
{
    return (struct costmodel_ring){.inside_bytes_per_s = n > nodes ? 100e9 : INFINITY,
                                   .between_bytes_per_s = nodes > 1 ? 100e9 : INFINITY,
                                   .latency_s = (n - 1) * HOP,
                                   .nodes = nodes,
                                   .nvls = nvls};
}

static double fixed_s (struct workload_profile *p, enum workload_all_reduce by, int n,
                       int nodes, double nvls, double bytes)
{
    struct costmodel_ring r = ring_on (n, nodes, nvls);

    p->time.all_reduce = by;
    assert_int_equal (costmodel_allreduce_by (p, &r, n, bytes), by);
    return costmodel_allreduce_s (p, &r, n, bytes);
}

TEST (closed_forms)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double start = p.time.collective_s, rate = 100e9 * p.time.link, s = 1e8;

    CLOSE (fixed_s (&p, ALL_REDUCE_RING, 16, 16, 0, s),
           start + 2 * (15 * HOP + 15.0 / 16 * s / rate), 1e-12);
    CLOSE (fixed_s (&p, ALL_REDUCE_TREE, 16, 16, 0, s),
           start + 2 * (4 * HOP + s / (.92 * rate)), 1e-12);
    /* Chains of four. */
    CLOSE (fixed_s (&p, ALL_REDUCE_TREE, 16, 4, 0, s),
           start + 2 * (5 * HOP + s / (.92 * rate)), 1e-12);
    CLOSE (fixed_s (&p, ALL_REDUCE_NVLS, 8, 1, .85, s),
           start + 2 * HOP + 9.0 / 8 * s / (.85 * rate), 1e-12);
    CLOSE (fixed_s (&p, ALL_REDUCE_NVLS_TREE, 16, 2, .85, s),
           start + 4 * HOP + 9.0 / 8 * s / (.85 * rate), 1e-12);
    CLOSE (fixed_s (&p, ALL_REDUCE_NVLS_TREE, 32, 4, .85, s),
           start + 6 * HOP + 2 * s / rate, 1e-12);
    CLOSE (fixed_s (&p, ALL_REDUCE_HIERARCHICAL, 16, 4, 0, s),
           3 * start + 2 * (6 * HOP + (3.0 / 4 + 3.0 / 4) * s / rate), 1e-12);
}

/* What a group does not offer is done by ring. */
TEST (not_offered)
{
    static const struct {
        enum workload_all_reduce by;
        int n, nodes;
        double nvls;
    } no[] = {{ALL_REDUCE_TREE, 8, 1, 0},           {ALL_REDUCE_NVLS, 8, 1, 0},
              {ALL_REDUCE_NVLS, 16, 2, .85},        {ALL_REDUCE_NVLS_TREE, 8, 1, .85},
              {ALL_REDUCE_NVLS_TREE, 4, 4, .85},    {ALL_REDUCE_NVLS_TREE, 16, 2, 0},
              {ALL_REDUCE_HIERARCHICAL, 8, 1, .85}, {ALL_REDUCE_HIERARCHICAL, 4, 4, 0}};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);

    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        struct costmodel_ring r = ring_on (no[i].n, no[i].nodes, no[i].nvls);
        double ring_s;

        p.time.all_reduce = ALL_REDUCE_RING;
        ring_s = costmodel_allreduce_s (&p, &r, no[i].n, 1e8);
        p.time.all_reduce = no[i].by;
        assert_int_equal (costmodel_allreduce_by (&p, &r, no[i].n, 1e8), ALL_REDUCE_RING);
        CLOSE (costmodel_allreduce_s (&p, &r, no[i].n, 1e8), ring_s, 0);
    }
}

/* Left to choose, the fastest of what NCCL has, which the hierarchical one is not; the
 * line under it holds for any number of bytes. */
TEST (chosen)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct rng rng = {3};

    for (int i = 0; i < 2000; i++) {
        int nodes = 1 + (int) rng_below (&rng, 9),
            n = nodes * (1 + (int) rng_below (&rng, 8));
        struct costmodel_ring r = ring_on (n, nodes, rng_below (&rng, 2) ? .85 : 0);
        double bytes = exp (20 * rng_unit (&rng)), least = INFINITY, got, start, each;

        if (n == 1)
            continue;
        r.between_bytes_per_s *= 4 * rng_unit (&rng) + .01;
        for (int by = ALL_REDUCE_RING; by <= ALL_REDUCE_NVLS_TREE; by++) {
            p.time.all_reduce = (enum workload_all_reduce) by;
            if (by != ALL_REDUCE_HIERARCHICAL)
                least = fmin (least, costmodel_allreduce_s (&p, &r, n, bytes));
        }
        p.time.all_reduce = ALL_REDUCE_AUTO;
        got = costmodel_allreduce_s (&p, &r, n, bytes);
        CLOSE (got, least, 0);
        assert_int_not_equal (costmodel_allreduce_by (&p, &r, n, bytes),
                              ALL_REDUCE_HIERARCHICAL);
        costmodel_allreduce_least (&p, &r, n, &start, &each);
        assert_true (start + each * bytes <= got * (1 + 1e-12));
    }
}

/* Bus bandwidth on one HGX H100 (NVIDIA/nccl issue 1455): by ring 365 to 370 GB/s on any
 * number of GPUs; by NVLS the same up to four, then 420, 440, 460 and 480. */
TEST (published_h100)
{
    static const double bus[] = {[5] = 420, [6] = 440, [7] = 460, [8] = 480};
    const struct topology_gpu_type *h100 = topology_gpu_type_builtin ("h100-sxm5-80g");
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double bytes = 4e9;

    p.time.link = 1;
    for (int n = 2; n <= 8; n++) {
        struct costmodel_ring r = {.inside_bytes_per_s = 368e9,
                                   .between_bytes_per_s = INFINITY,
                                   .latency_s = (n - 1) * 3e-6,
                                   .nodes = 1,
                                   .nvls = h100->nvls_efficiency};
        double got = 2.0 * (n - 1) / n * bytes / costmodel_allreduce_s (&p, &r, n, bytes);

        CLOSE (got, n < 5 ? 368e9 : bus[n] * 1e9, .025);
        assert_int_equal (costmodel_allreduce_by (&p, &r, n, bytes),
                          n < 4 ? ALL_REDUCE_RING : ALL_REDUCE_NVLS);
    }
}

/* Tensor parallelism inside an NVSwitch node takes NVLS, without one the ring; the file can
 * say that a type has none; gradients across nodes take what pays. */
TEST (of_a_plan)
{
    static const char *const line[] = {"2x8 h100-sxm5-80g intra:370 inter:48 node:390",
                                       "2x8 a100-sxm4-80g intra:230 inter:24 node:190"};
    static const enum workload_all_reduce tp[] = {ALL_REDUCE_NVLS, ALL_REDUCE_RING};
    int gpu[16];

    for (int i = 0; i < 16; i++)
        gpu[i] = i;
    for (int i = 0; i < 3; i++) {
        struct setting s =
            small_job_as (cluster_of (line[i % 2]), 4, 8192, 16, config_of (8, 1, 2, 1));
        struct costmodel_problem p;
        struct costmodel_estimate e;
        struct error err = {""};

        if (i == 2) {
            json_t *doc = topology_cluster_to_json (s.cluster);

            json_object_set_new (
                doc, "gpu_types",
                json_pack ("{s:{s:f}}", "h100-sxm5-80g", "nvls_efficiency", 0.0));
            topology_cluster_destroy (s.cluster);
            ok (topology_cluster_from_json (doc, "no switches", NULL, &s.cluster, NULL,
                                            &err),
                &err);
            json_decref (doc);
        }
        s.config.sequence_parallel = false;
        p = problem_of (&s);
        ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
        assert_int_equal (e.tp_by, i == 2 ? ALL_REDUCE_RING : tp[i]);
        assert_int_equal (e.dp_by, ALL_REDUCE_RING);
        s.config.zero = 0;
        s.config.deg.tp = 1;
        s.config.deg.dp = 16;
        ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
        assert_int_equal (e.dp_by, i == 0 ? ALL_REDUCE_NVLS_TREE : ALL_REDUCE_RING);
        topology_cluster_destroy (s.cluster);
    }
}

/* What one GPU reaches in all is the most that a ring inside its node goes at, links being one
 * number or each their own. */
TEST (gpu_totals)
{
    static const char *const rate[] = {
        "60", "100,\"gpu_gb_per_s\":60",
        ("[[null,100,100,100],[100,null,100,100],[100,100,null,100],[100,100,100,null]],"
         "\"gpu_gb_per_s\":60")};
    static const int gpu[] = {0, 1, 2, 3};
    double first = 0;

    for (int i = 0; i < 3; i++) {
        char text[512];
        struct setting s;
        double step;

        snprintf (text, sizeof text,
                  "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":4,\"gpu_type\":"
                  "\"a100-sxm4-80g\"}],\"links\":{\"intra\":{\"latency_us\":5,"
                  "\"bandwidth_gb_per_s\":%s}}}",
                  rate[i]);
        s = small_job_as (cluster_from (text), 4, 8192, 16, config_of (4, 1, 1, 1));
        step = step_of (&s, gpu, NULL);
        first = i ? first : step;
        CLOSE (step, first, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
}

/* What no link carries has no price, not even of nothing; one rank alone pays none. */
TEST (no_price)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct costmodel_ring r = {.inside_bytes_per_s = INFINITY, .nodes = 2};

    for (int i = 0; i < 4; i++) {
        struct costmodel_volume v = {
            .dp_bytes = 4, .dp_phases = 2, .dp_all_reduce = i & 1};
        double params = i & 2 ? 1e6 : 0;

        assert_true (costmodel_sync_s (&p, &r, 2, &v, params) == INFINITY);
        assert_true (costmodel_sync_s (&p, &r, 1, &v, params) == 0);
    }
}
