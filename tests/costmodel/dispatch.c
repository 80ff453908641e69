/* Tokens to experts: the chance of a visit against drawn routings, and what all-to-alls
 * cost with and without deduplication. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel_private.h"

/* Draw `k` different numbers below n. */
static void draw (struct rng *r, int n, int k, int *out)
{
    int all[512];

    for (int i = 0; i < n; i++)
        all[i] = i;
    shuffle (r, all, n);
    memcpy (out, all, (size_t) k * sizeof (int));
}

/* Part of the drawn tokens that visit experts [first, first + held). */
static double drawn (struct rng *r, const struct workload_model *m, int first, int held)
{
    int groups = m->expert_groups ? m->expert_groups : 1;
    int top = m->expert_groups ? m->top_groups : 1, size = m->experts / groups;
    int rounds = 20000, hits = 0;

    for (int i = 0; i < rounds; i++) {
        int group[64], pick[64];
        bool hit = false;

        draw (r, groups, top, group);
        draw (r, top * size, m->top_k, pick);
        for (int k = 0; k < m->top_k; k++) {
            int e = group[pick[k] / size] * size + pick[k] % size;

            hit |= e >= first && e < first + held;
        }
        hits += hit;
    }
    return hits / (double) rounds;
}

TEST (visits)
{
    static const char *const name[] = {"deepseek-v3", "deepseek-v2", "qwen3-235b-a22b",
                                       "mixtral-8x7b"};
    struct rng r = {8};

    for (int i = 0; i < 4; i++) {
        struct workload_model m = model_of (name[i]);
        int size = m.expert_groups ? m.experts / m.expert_groups : m.experts;

        /* Parts of a group and whole groups, as ranks and nodes hold them. */
        for (int held = 1; held < m.experts; held *= 2) {
            double found;

            if (size % held != 0 && held % size != 0)
                continue;
            found = drawn (&r, &m, held <= size ? size - held : 0, held);
            assert_true (fabs (costmodel_visit_chance (&m, held) - found) < .015);
        }
        assert_true (fabs (costmodel_visit_chance (&m, m.experts) - 1) < 1e-12);
        CLOSE (costmodel_visit_chance (&m, 1), m.top_k / (double) m.experts, 1e-12);
    }
}

static void ignore (void *context, const struct costmodel_event *e)
{
    (void) context;
    (void) e;
}

/* @param capacity  0: no tokens are dropped */
static double ep_with_s (const char *cluster, const char *model, int ep,
                         bool deduplicated, double capacity)
{
    struct setting s = {.cluster = *cluster == '{' ? cluster_from (cluster)
                                                   : cluster_of (cluster),
                        .model = model_of (model),
                        .job = {.seq = 4096, .global_batch = ep},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                        .config = config_of (1, 1, ep, 1)};
    struct costmodel_problem p;
    struct costmodel_estimate e;
    struct error err = {""};
    int gpu[256];

    for (int i = 0; i < ep; i++)
        gpu[i] = i;
    s.config.deg.ep = ep;
    s.profile.time.deduplicated_dispatch = deduplicated;
    s.profile.drops_tokens = capacity > 0;
    if (capacity > 0)
        s.profile.time.expert_capacity = capacity;
    s.profile.time.collective_s = 0;
    workload_layers_even (s.model.layers, 1, s.layers);
    p = problem_of (&s);
    ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
    topology_cluster_destroy (s.cluster);
    return e.part.ep_s;
}

/* A stage's dense parameters are synchronised over all its ranks, its experts' over those that hold
 * the same ones, one after the other. */
TEST (synchronised)
{
    struct setting s =
        small_job_as (cluster_of ("8x1 a100-sxm4-80g inter:10 inter-us:12"), 4, 1024, 64,
                      config_of (1, 1, 8, 1));
    struct costmodel_problem p;
    struct costmodel_volume v;
    struct workload_stage held;
    struct workload_stage_params n;
    struct costmodel_tail tail;
    struct costmodel_watch watch = {ignore, NULL};
    struct error err = {""};
    static const int gpu[] = {0, 1, 2, 3, 4, 5, 6, 7};
    double sum = 0;

    s.model.experts = 4;
    s.model.top_k = 2;
    s.model.expert_ffn = 2048;
    s.config.deg.ep = 2;
    s.profile.time.dp_overlap = 0;
    p = problem_of (&s);
    costmodel_volume (&s.model, &s.job, &s.config, &s.profile, &v);
    held = workload_stage_of (&s.model, &s.config, s.layers, 0);
    n = workload_stage_params (&s.model, &s.config, &held);
    for (int ranks = 4; ranks <= 8; ranks += 4) {
        struct costmodel_ring r = {.inside_bytes_per_s = INFINITY,
                                   .between_bytes_per_s = 10e9 * s.profile.time.link_out,
                                   .latency_s = (ranks - 1) * 12e-6,
                                   .nodes = ranks,
                                   .nvls = s.cluster->node[0].type->nvls_efficiency};

        sum +=
            costmodel_sync_s (&s.profile, &r, ranks, &v, ranks == 4 ? n.expert : n.dense);
    }
    ok (costmodel_watch_replica (&p, gpu, 0, &watch, &tail, &err), &err);
    CLOSE (tail.sync_s, sum, 1e-9);
    topology_cluster_destroy (s.cluster);
}

static double ep_s (const char *cluster, const char *model, int ep, bool deduplicated)
{
    return ep_with_s (cluster, model, ep, deduplicated, 0);
}

/* What fills experts up to their capacity is sent too. */
TEST (capacity)
{
    static const char *const on[] = {
        "1x8 h100-sxm5-80g intra:300 intra-us:0",
        "2x4 h100-sxm5-80g intra:300 inter:5 inter-us:0 intra-us:0"};

    for (int i = 0; i < 4; i++) {
        double none = ep_s (on[i / 2], "mixtral-8x7b", 8, i & 1);

        CLOSE (ep_with_s (on[i / 2], "mixtral-8x7b", 8, i & 1, 1), none, 1e-12);
        CLOSE (ep_with_s (on[i / 2], "mixtral-8x7b", 8, i & 1, 1.25), 1.25 * none, 1e-9);
    }
}

/* Eight nodes of eight: DeepSeek-V3's token has 8 experts in 4 of 8 groups, a group a
 * node, and plain goes 7/8 x 8 times out, deduplicated 7 x 1/2 x (chance that a group
 * that was chosen is visited). */
TEST (between_nodes)
{
    struct workload_model v3 = model_of ("deepseek-v3");
    const char *slow =
        "8x8 h100-sxm5-80g intra:10000 inter:5 inter-us:0 intra-us:0 node:40";
    double plain = ep_s (slow, "deepseek-v3", 64, false),
           once = ep_s (slow, "deepseek-v3", 64, true);
    double bytes = 2.0 * 4096 * v3.hidden;
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double rate = 5e9 * p.time.link * p.time.link_out, turns = 4.0 * (61 - 3);

    CLOSE (plain, turns * bytes * 8 * 56 / 64 / rate, 1e-9);
    CLOSE (once, turns * bytes * 7 * costmodel_visit_chance (&v3, 32) / rate, 1e-9);
    assert_true (plain / once > 2.1 && plain / once < 2.4);
}

/* Of groups that exchange beside each other the slowest counts; any may leave its node. */
TEST (beside_each_other)
{
    struct exchange_row far = {1, 3, true}, near = {2, 4, false};

    for (int i = 0; i < 2; i++) {
        struct exchange_row both =
            i ? exchange_add (far, near) : exchange_add (near, far);

        assert_true (both.once_s == 2 && both.unmeasured == 7 && both.leaves);
    }
    assert_false (exchange_add (near, near).leaves);
}

/* What two nodes reach together is shared by all that each GPU sends to the other, and what a node
 * reaches in all by what leaves it. */
TEST (shared_ways)
{
    static const char *const form = "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":"
                                    "2,\"gpu_type\":\"h100-sxm5-80g\"},"
                                    "{\"name\":\"b\",\"gpus\":2,\"gpu_type\":\"h100-sxm5-"
                                    "80g\"}],\"links\":{\"intra\":"
                                    "{\"bandwidth_gb_per_s\":10000,\"latency_us\":0},"
                                    "\"inter\":{\"bandwidth_gb_per_s\":100,"
                                    "\"latency_us\":0,\"node_gb_per_s\":%g,\"node_pair_"
                                    "gb_per_s\":[[null,%g],[%g,null]]}}}";
    static const double node[] = {50, 5}, there[] = {4, 40}, back[] = {8, 40};
    struct workload_model mixtral = model_of ("mixtral-8x7b");
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double far = 2.0 * 4096 * mixtral.hidden * mixtral.top_k / 4 * 2 * 2;

    for (int i = 0; i < 2; i++) {
        double rate = fmin (node[i], fmin (there[i], back[i])) * 1e9 * p.time.link *
                      p.time.link_out;
        char cluster[600];

        snprintf (cluster, sizeof cluster, form, node[i], there[i], back[i]);
        CLOSE (ep_s (cluster, "mixtral-8x7b", 4, false),
               4.0 * mixtral.layers * far / rate, 1e-9);
    }
}

/* On one node a token goes once to every GPU where it has experts: Mixtral's two experts
 * are always on two GPUs of eight, Qwen's eight of 128 meet now and then. */
TEST (inside)
{
    const char *node = "1x8 h100-sxm5-80g intra:300 intra-us:0";

    CLOSE (ep_s (node, "mixtral-8x7b", 8, true), ep_s (node, "mixtral-8x7b", 8, false),
           1e-9);
    assert_true (ep_s (node, "qwen3-235b-a22b", 8, true) <
                 .72 * ep_s (node, "qwen3-235b-a22b", 8, false));
}

/* ---- all-to-alls under another micro-batch's compute ---- */

#define RANKS 8

static struct setting overlap_setting (int pp, int vpp, int global_batch)
{
    struct setting s = small_job_as (cluster_of ("8x1 a100-sxm4-80g inter:5"), 16, 1024,
                                     global_batch, config_of (1, pp, RANKS / pp, 1));

    s.model.experts = 8;
    s.model.top_k = 2;
    s.model.expert_ffn = 4096;
    s.config.deg.ep = 4;
    s.config.deg.vpp = vpp;
    s.config.schedule = vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    return s;
}

static struct costmodel_estimate priced (const struct setting *s)
{
    static const int gpu[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct costmodel_problem p = problem_of (s);
    struct costmodel_estimate e;
    struct error err = {""};

    ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
    free (e.unmeasured);
    return e;
}

/* The profile's part of them hides, but for the forwards before a stage's first backward
 * and as many backwards; with the slowdown that it costs. */
TEST (hide_under_compute)
{
    static const struct {
        int pp, vpp, global_batch;
    } cases[] = {{1, 1, 64}, {1, 1, 16}, {2, 2, 64}, {2, 4, 64}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int pp = cases[i].pp, v = cases[i].vpp;
        struct setting s = overlap_setting (pp, v, cases[i].global_batch);
        struct costmodel_estimate bare, e;
        double chunks = v * workload_microbatches (&s.job, &s.config), beside, all;

        s.profile.time.dp_overlap = 0; /* which the exchanges' links would hold up */
        bare = priced (&s);
        assert_true (bare.part.ep_s > 0 && bare.ep_hidden_s == 0);
        s.profile.time.moe_overlap = .25;
        e = priced (&s);
        beside = 1 - (pp == 1 ? 1 : 2 * (pp - 1 - e.stage) + (v - 1) * pp + 1) / chunks;
        all = bare.part.ep_s;
        CLOSE (e.ep_hidden_s, .25 * beside * all, 1e-9);
        CLOSE (e.part.ep_s, all - e.ep_hidden_s, 1e-9);
        CLOSE (e.part.compute_s, bare.part.compute_s, 1e-9);
        if (pp == 1)
            CLOSE (e.step_s, bare.step_s - e.ep_hidden_s, 1e-9);
        s.profile.time.overlap_slowdown = .2;
        e = priced (&s);
        CLOSE (e.part.ep_s, all - .8 * .25 * beside * all, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* No more than all of the compute beside them. */
TEST (hide_no_more_than_compute)
{
    struct setting s = overlap_setting (1, 1, 64);
    struct costmodel_estimate bare, e;

    s.profile.time.collective_s = 1;
    bare = priced (&s);
    s.profile.time.moe_overlap = 1;
    e = priced (&s);
    CLOSE (e.ep_hidden_s, bare.part.compute_s * 7 / 8, 1e-6);
    CLOSE (e.part.ep_s + e.ep_hidden_s, bare.part.ep_s, 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* A lone micro-batch, a pipeline without chunks and full recomputation have nothing that
 * runs beside them. */
TEST (hide_nowhere)
{
    static const struct {
        int pp, vpp, global_batch;
        enum workload_recompute recompute;
        enum workload_schedule schedule;
    } cases[] = {{1, 1, 8, RECOMPUTE_NONE, SCHEDULE_1F1B},
                 {2, 1, 64, RECOMPUTE_NONE, SCHEDULE_1F1B},
                 {2, 1, 64, RECOMPUTE_NONE, SCHEDULE_ZB1P},
                 {1, 1, 64, RECOMPUTE_NONE, SCHEDULE_GPIPE},
                 {1, 1, 64, RECOMPUTE_FULL, SCHEDULE_1F1B},
                 {2, 2, 64, RECOMPUTE_FULL, SCHEDULE_INTERLEAVED}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setting s =
            overlap_setting (cases[i].pp, cases[i].vpp, cases[i].global_batch);
        struct costmodel_estimate bare, e;

        s.config.recompute = cases[i].recompute;
        s.config.schedule = cases[i].schedule;
        bare = priced (&s);
        s.profile.time.moe_overlap = 1;
        e = priced (&s);
        assert_true (e.ep_hidden_s == 0 && e.step_s == bare.step_s);
        topology_cluster_destroy (s.cluster);
    }
}

/* DualPipeV is made to hide them all under as much compute, but for the forwards that it does not
 * join with a backward: on stage i of p, with m micro-batches, 2 (m - 2p + i + 1) + (p-1-i) of 2m
 * are joined, on the last stage one less. */
TEST (hide_where_joined)
{
    for (int pp = 2; pp <= 4; pp += 2) {
        struct setting s = overlap_setting (pp, 2, 64);
        int m = workload_microbatches (&s.job, &s.config), after;
        double joined, all;
        struct costmodel_estimate e;

        s.config.schedule = SCHEDULE_DUALPIPEV;
        s.config.deg.ep = 2;
        s.profile.time.dp_overlap = s.profile.time.overlap_slowdown = 0;
        e = priced (&s);
        after = pp - 1 - e.stage;
        joined = 2 * (m - 2 * pp + e.stage + 1) + after - (after == 0);
        all = e.part.ep_s + e.ep_hidden_s;
        assert_true (all > 0);
        CLOSE (e.ep_hidden_s, joined / (2 * m) * fmin (all, e.part.compute_s), 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}
