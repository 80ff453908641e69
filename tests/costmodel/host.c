/* What offloading costs: each part of a step that crosses the link to the host or runs on it, in
 * closed form (docs/formulas.md, T28); nothing offloaded costs nothing, and the least over several
 * types is the least of it. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"

#define GB 1e9
#define LAYERS 4

struct bench {
    struct workload_model m;
    struct workload_job j;
    struct workload_config c;
    struct workload_profile p;
    struct topology_gpu_type t;
};

static struct bench bench_of (const char *profile, int dp, int zero)
{
    struct bench b = {.m = small_model (LAYERS),
                      .j = {.seq = 512, .global_batch = 64},
                      .c = config_of (1, 1, dp, 1),
                      .p = profile_of (profile),
                      .t = *topology_gpu_type_builtin ("rtx-4090")};

    b.c.zero = zero;
    b.p.compute_of_type = false; /* no factor for the slowest of many */
    b.t.host_bytes_per_s = 10 * GB;
    b.t.host_memory_bytes_per_s = 100 * GB;
    return b;
}

static struct costmodel_compute compute (const struct bench *b)
{
    struct costmodel_compute k;

    costmodel_compute (&b->m, &b->j, &b->c, &b->p, &b->t, &k);
    return k;
}

static struct costmodel_compute with (struct bench *b, enum workload_offload o)
{
    b->c.offload = o;
    return compute (b);
}

/* Of each parameter of a shard, in bf16: Adam reads and writes 12 bytes of state, reads a gradient
 * and writes a weight, at .46 of the host's memory bandwidth. */
static double adam_s (const struct bench *b)
{
    return (2 * 12 + b->p.memory.gradient_bytes + 2) /
           (0.46 * b->t.host_memory_bytes_per_s);
}

/* What the GPU does at the step all the same, for each parameter on it. */
static double here_s (const struct bench *b)
{
    struct bench many = *b;

    many.c.offload = OFFLOAD_NONE;
    many.c.deg.dp = 1 << 20;
    return compute (&many).optimizer_s;
}

/* Paged moments come over the link for the step, which reads and writes them here like others. */
TEST (paged_moments)
{
    for (int dp = 1; dp <= 4; dp *= 4) {
        struct bench b = bench_of ("torchtune", dp, 1);
        double here;

        b.p.memory.optimizer_bytes = 2;
        here = compute (&b).optimizer_s;
        b.p.memory.optimizer_bytes = 0;
        b.j.paged_bytes = 2;
        CLOSE (compute (&b).optimizer_s, here + 2 / (10 * GB) / dp, 1e-9);
    }
}

/* Megatron-Core's copies run beside its steps: the slowest of the three is seen. */
TEST (optimizer_of_megatron)
{
    for (int dp = 1; dp <= 8; dp *= 2)
        for (int slow = 0; slow <= 1; slow++) {
            struct bench b = bench_of ("megatron-core", dp, 1);
            double each;

            b.t.host_bytes_per_s = slow ? 1 * GB : 100 * GB;
            each = slow ? 4 / (1 * GB) : adam_s (&b);
            CLOSE (with (&b, OFFLOAD_OPTIMIZER).optimizer_s, each / dp + here_s (&b),
                   1e-4);
            CLOSE (compute (&b).dense.fwd_s, with (&b, OFFLOAD_NONE).dense.fwd_s, 0);
        }
}

/* DeepSpeed steps, then copies; under ZeRO 2 gradients went down beside each backward, which lasts
 * as long at least. */
TEST (optimizer_of_deepspeed)
{
    struct bench one = bench_of ("deepspeed", 4, 1), two = bench_of ("deepspeed", 4, 2);
    double layer = workload_parts_params (&two.m, WORKLOAD_DENSE_PARTS, 1);
    struct costmodel_compute before = compute (&two);

    CLOSE (with (&one, OFFLOAD_OPTIMIZER).optimizer_s,
           (adam_s (&one) + (2 + 2) / (10 * GB)) / 4 + here_s (&one), 1e-4);
    CLOSE (with (&two, OFFLOAD_OPTIMIZER).optimizer_s,
           (adam_s (&two) + 2 / (10 * GB)) / 4 + here_s (&two), 1e-4);
    two.t.host_bytes_per_s = 1e3 * GB; /* hidden */
    CLOSE (compute (&two).dense.back_s, before.dense.back_s, 0);
    two.t.host_bytes_per_s = 0.01 * GB;
    CLOSE (compute (&two).dense.back_s, 2 * layer / 4 / (0.01 * GB), 1e-12);
    CLOSE (compute (&two).dense.fwd_s, before.dense.fwd_s, 0);
}

/* Weights come for forward and for backward, and have nothing to copy at the step. */
TEST (all_of_it)
{
    struct bench b = bench_of ("deepspeed", 4, 3);
    double layer = workload_parts_params (&b.m, WORKLOAD_DENSE_PARTS, 1);
    struct costmodel_compute k;

    b.t.host_bytes_per_s = 0.01 * GB;
    k = with (&b, OFFLOAD_ALL);
    CLOSE (k.dense.fwd_s, 2 * layer / 4 / (0.01 * GB), 1e-12);
    CLOSE (k.dense.back_s, 2 * layer / 4 / (0.01 * GB), 1e-12);
    CLOSE (k.embed_fwd_s, 2 * workload_embedding_params (&b.m, 1) / 4 / (0.01 * GB),
           1e-12);
    CLOSE (k.optimizer_s, adam_s (&b) / 4 + here_s (&b), 1e-4);
    b.j.lora = true; /* no gradients, no step; weights all the same */
    k = compute (&b);
    CLOSE (k.dense.fwd_s, 2 * layer / 4 / (0.01 * GB), 1e-12);
    assert_true (k.optimizer_s == 0.0);
    b.j.frozen_bytes = 0.55; /* weights as they are kept */
    k = compute (&b);
    CLOSE (k.dense.fwd_s, 0.55 * layer / 4 / (0.01 * GB), 1e-12);
}

/* Layers of experts: those of a rank are shared by fewer ranks than the rest is. */
TEST (all_of_experts)
{
    struct bench b = bench_of ("deepspeed", 4, 3);
    double layer, experts;
    struct costmodel_compute k;

    b.m.experts = 8;
    b.m.top_k = 2;
    b.m.expert_ffn = 4 * b.m.hidden;
    b.m.expert_every = 1;
    b.c.deg.ep = 2;
    b.t.host_bytes_per_s = 0.01 * GB;
    layer = workload_parts_params (&b.m, WORKLOAD_EXPERT_PARTS, 1);
    experts = 8 / 2 * (double) workload_expert_params (&b.m);
    k = with (&b, OFFLOAD_ALL);
    CLOSE (k.expert.fwd_s, 2 * (layer / 4 + experts / 2) / (0.01 * GB), 1e-12);
}

/* FSDP's shards come as they are kept, in fp32; PyTorch clips on the host, and an AdamW of many
 * kernels takes four times as long. */
TEST (all_of_fsdp)
{
    struct bench b = bench_of ("torchtitan", 4, 3);
    double layer = workload_parts_params (&b.m, WORKLOAD_DENSE_PARTS, 1);
    double memory = b.t.host_memory_bytes_per_s, clip = 12 / (0.23 * memory), adam;
    struct costmodel_compute k;

    b.t.host_bytes_per_s = 0.01 * GB;
    k = with (&b, OFFLOAD_ALL);
    CLOSE (k.dense.fwd_s, 4 * layer / 4 / (0.01 * GB), 1e-12);
    adam = (2 * 10 + 4 + 4) / (0.46 * memory);
    CLOSE (k.optimizer_s, (adam + clip) / 4 + here_s (&b), 1e-3);
    b.p.time.optimizer_passes = 27;
    CLOSE (compute (&b).optimizer_s, (4 * adam + clip) / 4 + here_s (&b), 1e-3);
    b = bench_of ("fsdp", 4, 3); /* all in 16 bits */
    b.t.host_bytes_per_s = 0.01 * GB;
    CLOSE (with (&b, OFFLOAD_ALL).dense.fwd_s, 2 * layer / 4 / (0.01 * GB), 1e-12);
}

/* Beside a pipeline weights stay once they came, and gradients go down once, after the last
 * micro-batch, also where it is the only one: no pass waits, the step has both ways. */
TEST (beside_pipeline)
{
    struct bench b = bench_of ("torchtitan", 4, 3);
    struct costmodel_compute k, before;
    double trips = (4 + 4) / (0.01 * GB), memory = b.t.host_memory_bytes_per_s;
    double step = (2 * 10 + 4 + 4) / (0.46 * memory) + 12 / (0.23 * memory);

    b.c.deg.pp = 2;
    b.t.host_bytes_per_s = 0.01 * GB;
    before = with (&b, OFFLOAD_NONE);
    k = with (&b, OFFLOAD_ALL);
    assert_true (k.dense.fwd_s == before.dense.fwd_s &&
                 k.dense.back_s == before.dense.back_s &&
                 k.head_back_s == before.head_back_s);
    CLOSE (k.optimizer_s, (step + trips) / 4 + here_s (&b), 1e-3);
    b.j.lora = true;
    CLOSE (compute (&b).optimizer_s, 2 / (0.01 * GB) / 4, 1e-12);
    b.j.lora = false;
    b.j.global_batch = 4;
    CLOSE (compute (&b).optimizer_s, (step + trips) / 4 + here_s (&b), 1e-3);
}

/* A layer's input goes down beside its forward and comes up beside its backward. */
TEST (checkpoints)
{
    struct bench b = bench_of ("torchtune", 4, 3);
    struct workload_stage held = {.dense = LAYERS};
    struct costmodel_stage_time slow, none;
    struct costmodel_compute k;
    double s = 2.0 * 512 * 1024 / (1e-3 * GB);

    b.c.recompute = RECOMPUTE_FULL;
    k = with (&b, OFFLOAD_NONE);
    costmodel_stage_compute (&b.c, &b.p, &k, &held, &none);
    b.t.host_bytes_per_s = 1e3 * GB; /* hidden */
    k = with (&b, OFFLOAD_CHECKPOINTS);
    costmodel_stage_compute (&b.c, &b.p, &k, &held, &slow);
    CLOSE (slow.fwd_s + slow.back_s, none.fwd_s + none.back_s, 0);
    b.t.host_bytes_per_s = 1e-3 * GB;
    k = compute (&b);
    costmodel_stage_compute (&b.c, &b.p, &k, &held, &slow);
    CLOSE (slow.fwd_s + slow.back_s, 2 * LAYERS * s + b.p.time.microbatch_s, 1e-9);
}

/* The host of a type: as the cluster file says, else as the built-in type that it is like. */
TEST (hosts)
{
    static const char text[] =
        "{\"version\": 1, \"name\": \"c\", \"gpu_types\": {\"mine\": {\"like\": "
        "\"h100-sxm5-80g\"}, \"theirs\": {\"like\": \"t4\", \"host_link_gb_per_s\": 7, "
        "\"host_memory_gb_per_s\": 9}}, \"nodes\": [{\"name\": \"a\", \"gpus\": 2, "
        "\"gpu_type\": \"mine\", \"host_memory_gib\": 64}, {\"name\": \"b\", \"gpus\": "
        "4, "
        "\"gpu_type\": \"theirs\", \"host_memory_gib\": 100}, {\"name\": \"c\", "
        "\"gpus\": "
        "4, \"gpu_type\": \"mine\"}], \"links\": {\"intra\": {\"bandwidth_gb_per_s\": "
        "10, "
        "\"latency_us\": 5}, \"inter\": {\"bandwidth_gb_per_s\": 10, \"latency_us\": "
        "5}}}";
    struct topology_cluster *c = cluster_from (text);
    struct topology_host mine = topology_host_of (c->node[0].type),
                         theirs = topology_host_of (c->node[1].type),
                         grace =
                             topology_host_of (topology_gpu_type_builtin ("gh200-96g"));

    assert_true (mine.nominal && !theirs.nominal);
    CLOSE (mine.link_bytes_per_s, 48 * GB, 0);
    CLOSE (theirs.link_bytes_per_s, 7 * GB, 1e-12);
    CLOSE (theirs.memory_bytes_per_s, 9 * GB, 1e-12);
    CLOSE (grace.link_bytes_per_s, 450 * GB, 0);
    CLOSE (c->node[0].host_memory_bytes, 64.0 * (1 << 30), 0);
    CLOSE (c->host_share_bytes, 25.0 * (1 << 30), 0);
    assert_true (c->node[2].host_memory_bytes == 0);
    topology_cluster_destroy (c);
}
