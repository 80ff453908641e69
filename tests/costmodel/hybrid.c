/* Hybrid sharding: over all ranks it is what it was; closed forms of its two collectives; groups
 * inside nodes and across them; memory is that of as many ranks as shard. */
#include "tests/lib/clusters.h"

#include "memest/memest.h"

static const int in_order[] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct memest_stage memory_of (const struct setting *s)
{
    struct memest_problem p = {
        .model = &s->model, .job = &s->job, .config = &s->config, .profile = &s->profile};
    struct workload_stage held = workload_all_layers (&s->model);
    struct memest_stage m;

    held.embedding = held.head = true;
    memest_stage (&p, 0, &held, &m);
    return m;
}

/* Nodes of two GPUs, 8 data-parallel ranks, nothing hidden, nothing in pieces. */
static struct setting setting_of (int zero, int shard)
{
    struct setting s = small_job_as (
        cluster_of ("4x2 a100-sxm4-80g intra:100 inter:10 intra-us:8 inter-us:12"), 4,
        1024, 16, config_of (1, 1, 8, 1));

    s.profile = profile_of ("fsdp");
    s.profile.gathers_by_layer = false;
    s.profile.time.dp_overlap = s.profile.time.dp_bucket_bytes = 0;
    s.profile.time.link_out = s.profile.time.send_link = 1;
    s.profile.time.all_reduce = ALL_REDUCE_RING;
    s.config.zero = zero;
    s.config.shard = shard;
    return s;
}

TEST (over_all_ranks)
{
    for (int zero = 0; zero <= 3; zero++) {
        struct setting all = setting_of (zero, 0), said = setting_of (zero, 8);
        struct memest_stage a = memory_of (&all), b = memory_of (&said);

        assert_true (estimate_of (&all, in_order).step_s ==
                     estimate_of (&said, in_order).step_s);
        assert_true (a.peak_bytes == b.peak_bytes);
        topology_cluster_destroy (all.cluster);
        topology_cluster_destroy (said.cluster);
    }
}

/* Shards in pairs on a node.  Inside: reduce-scatters and all-gathers of two; between: all-reduces
 * of four, of half of the gradients, after each of the two micro-batches or once a step, as do
 * sums of whole gradients. */
TEST (closed_forms)
{
    static const struct {
        int zero;
        bool once, whole;
        double gathers, reduces,
            messages; /* of the weights, of the gradients; a micro-batch */
    } t[] = {{1, false, false, 1, 1, 1}, {2, false, false, 1, 2, 1},
             {2, true, false, 1, 2, 1},  {3, false, false, 4, 2, 4},
             {3, true, false, 4, 2, 4},  {2, false, true, 1, 1, 1},
             {3, false, true, 4, 1, 4}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct setting s = setting_of (t[i].zero, 2);
        double gradient = s.profile.memory.gradient_bytes, link = s.profile.time.link,
               start = s.profile.time.collective_s;
        struct workload_stage held = workload_all_layers (&s.model);
        double params, inside, between, times;

        s.profile.copies_once = t[i].once;
        s.profile.whole_gradients = t[i].whole;
        held.embedding = held.head = true;
        params = workload_stage_params (&s.model, &s.config, &held).dense;
        times = t[i].once ? 1 : t[i].reduces;
        inside =
            (t[i].gathers + t[i].reduces) * (t[i].zero == 3 ? 4 : 1) * (start + 8e-6) +
            (t[i].gathers * 2 + t[i].reduces * gradient) * params / 2 / (100e9 * link);
        between = times * (t[i].messages * (start + 2 * 3 * 12e-6) +
                           2 * 3.0 / 4 * gradient * params / 2 / (10e9 * link));
        CLOSE (estimate_of (&s, in_order).part.dp_s, inside + between, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* All-reduces between shards go by the algorithm that is fastest for what one shard has. */
TEST (algorithms)
{
    const struct costmodel_ring r = {.inside_bytes_per_s = INFINITY,
                                     .between_bytes_per_s = 10e9,
                                     .latency_s = 3 * 2e-3,
                                     .nodes = 4};
    int n[8] = {0};

    for (int vocab = 1000; vocab < 4000000; vocab += vocab / 8) {
        struct setting s = setting_of (2, 2);
        struct workload_stage held = workload_all_layers (&s.model);
        struct costmodel_volume v, between;
        enum workload_all_reduce by;

        s.profile.time.all_reduce = ALL_REDUCE_AUTO;
        topology_cluster_destroy (s.cluster);
        s.cluster = cluster_of ("4x2 a100-sxm4-80g intra:100 inter:10 inter-us:2000");
        s.model.vocab = vocab;
        s.model.hidden = s.model.ffn = 64;
        held.embedding = held.head = true;
        costmodel_volume (&s.model, &s.job, &s.config, &s.profile, &v);
        between = costmodel_copy_volume (&v);
        by = costmodel_sync_by (&s.profile, &r, 4, &between,
                                workload_stage_params (&s.model, &s.config, &held).dense /
                                    2);
        assert_int_equal (estimate_of (&s, in_order).dp_by, by);
        n[by]++;
        topology_cluster_destroy (s.cluster);
    }
    assert_true (n[ALL_REDUCE_TREE] > 0 && n[ALL_REDUCE_RING] > 0);
}

/* Beside a pipeline nothing hides gradients, neither in shards nor between groups with the same
 * ones; gathered weights hide. */
TEST (bare_beside_pipeline)
{
    for (int hides = 0; hides < 2; hides++) {
        struct setting s = setting_of (3, 2);
        double gradient = s.profile.memory.gradient_bytes, link = s.profile.time.link,
               start = s.profile.time.collective_s, params, inside, between;
        struct workload_stage held;

        s.config.deg.dp = 4;
        s.config.deg.pp = 2;
        workload_layers_even (4, 2, s.layers);
        s.profile.time.dp_overlap = hides ? 1e6 : 0;
        s.profile.time.overlap_slowdown = 0;
        held = workload_stage_of (&s.model, &s.config, s.layers, 0);
        params = workload_stage_params (&s.model, &s.config, &held).dense;
        inside = 2 * 2 * (start + 8e-6) + (2 + gradient) * params / 2 / (100e9 * link);
        between = 2 * (start + 2 * 12e-6) + gradient * params / 2 / (10e9 * link);
        CLOSE (estimate_of (&s, in_order).part.dp_s,
               inside * (hides ? gradient / (gradient + 2) : 1) + between, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* Members of a group on two nodes, and those with the same shards on one: what crosses is more. */
TEST (across_nodes)
{
    static const int apart[] = {0, 2, 1, 3, 4, 6, 5, 7};
    struct setting s = setting_of (3, 2);

    assert_true (estimate_of (&s, apart).part.dp_s >
                 1.5 * estimate_of (&s, in_order).part.dp_s);
    topology_cluster_destroy (s.cluster);
}

/* States are as with that many ranks in all; the optimizer's time, too. */
TEST (memory_of_ranks)
{
    struct memest_stage before = {.peak_bytes = INFINITY};

    for (int shard = 2; shard <= 8; shard *= 2) {
        struct setting s = setting_of (3, shard), few = s;
        struct memest_stage m = memory_of (&s), alone;

        few.config.deg.dp = shard;
        few.config.shard = 0;
        few.job.global_batch = 2 * shard;
        alone = memory_of (&few);
        assert_true (m.weights_bytes == alone.weights_bytes &&
                     m.gradients_bytes == alone.gradients_bytes &&
                     m.optimizer_bytes == alone.optimizer_bytes);
        assert_true (m.peak_bytes < before.peak_bytes);
        before = m;
        topology_cluster_destroy (s.cluster);
    }
}
