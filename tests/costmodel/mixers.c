/* Layers with state-space, linear attention and convolution mixers: what a stage of several kinds
 * takes and holds is the sum of its layers, each by its own formula (docs/formulas.md, A20 and
 * T22), written out here. */
#include "tests/lib/layers.h"

#include "memest/memest.h"

#define SEQ 4096.0

/* A rank without anything beside its layers. */
struct bench {
    struct workload_model m;
    struct workload_job j;
    struct workload_config c;
    struct workload_profile p;
};

static struct bench bench_of (const char *model, int tp)
{
    struct bench b = {.m = model_of (model),
                      .j = {.seq = (int) SEQ, .global_batch = 64},
                      .c = config_of (tp, 1, 1, 1),
                      .p = profile_of (WORKLOAD_PROFILE_DEFAULT)};

    b.p.compute_of_type = b.p.keeps_gathered = b.p.repeats_kv = b.p.gradients_freed =
        false;
    b.p.fused_norm = b.p.fused_mlp = true;
    b.p.memory.norm_bytes = 8;
    b.p.memory.attention_bytes = 2;
    b.p.memory.plain_mlp_bytes = 5;
    b.p.time.layer_launch_fwd_s = b.p.time.layer_launch_back_s = 0.0;
    return b;
}

/* Bytes per token of a stage with these layers. */
static double kept (const struct bench *b, const char *letters)
{
    struct memest_problem q = {&b->m, &b->j, &b->c, &b->p, MEMEST_LINKWISE, 0, 0};
    struct workload_stage held = {.dense = 0}, one;
    struct memest_stage s;

    for (const char *l = letters; *l; l++) {
        one = workload_one_layer (&b->m, (int) (strchr (b->m.kinds, *l) - b->m.kinds));
        held.dense += one.dense;
        held.expert += one.expert;
        for (int k = 0; k < WORKLOAD_KINDS; k++)
            held.of[k] += one.of[k];
    }
    memest_stage (&q, 0, &held, &s);
    return s.activations_bytes / SEQ;
}

/* Mamba-2: the projection's output, the scan's and its gate's; the convolution's output and the
 * chunks' states are there for one layer at a time. */
TEST (state_space_memory)
{
    for (int tp = 1; tp <= 8; tp *= 2) {
        struct bench b = bench_of ("nemotron-nano-9b-v2", tp);
        double t = tp, inner = 128 * 80 / t, keys = 8 * 128 / t, h = 4480, r = t;
        double norm = 4 * h / r;
        double mixer = 2 * (2 * inner + 2 * keys + 128 / t) + 4 * inner;
        double rebuilt = 2 * (inner + 2 * keys) + 8 * inner * 128 / 128;
        double mlp = norm + 5 * 15680 / t;
        double attention = norm + h / r + h / t + 4 * 40 * 128 / t +
                           4 * fmax (1, 8 / t) * 128 + 4 * 40 / t;

        CLOSE (kept (&b, "M"), norm + mixer + rebuilt, 1e-12);
        CLOSE (kept (&b, "MMM"), 3 * (norm + mixer) + rebuilt, 1e-12);
        CLOSE (kept (&b, "-"), mlp, 1e-12);
        CLOSE (kept (&b, "*"), attention, 1e-12);
        CLOSE (kept (&b, "M-M*-"), 2 * (norm + mixer) + 2 * mlp + attention + rebuilt,
               1e-12);
    }
}

/* The others, in a layer that is nothing but the mixer. */
TEST (other_mixers_memory)
{
    static const struct {
        enum workload_linear linear;
        /* beside the norm: 32 heads of 64 on 16 groups of 128, chunks of 64 */
        double kept;
        double rebuilt;
    } of[] = {
        {LINEAR_DELTA,
         2 * (2 * 2048 + 2048) + 2 * (32 * 2 * 128 + 2048) + 32 * (6 + 2 * 64) + 6 * 2048,
         8.0 * 2048 * 128 / 64},
        {LINEAR_LIGHTNING, 8 * 2048 + 4 * 2048, 8.0 * 2048 * 128 / 64},
        {LINEAR_CONV, 6 * 2048 + 6 * 2048, 0},
    };

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct bench b = bench_of ("mamba2-2.7b", 1);

        b.m.linear = of[i].linear;
        b.m.lin_heads = 32;
        b.m.lin_width = 64;
        b.m.lin_groups = 16;
        b.m.lin_state = 128;
        b.m.lin_chunk = of[i].linear == LINEAR_CONV ? 0 : 64;
        CLOSE (kept (&b, "MM"), 2 * (4 * 2560 + of[i].kept) + of[i].rebuilt, 1e-12);
    }
}

static struct costmodel_stage_time time_of (const struct bench *b, const char *letters)
{
    struct topology_gpu_type t = *topology_gpu_type_builtin ("h100-sxm5-80g");
    struct workload_stage held = {.dense = 0};
    struct costmodel_compute k;
    struct costmodel_stage_time s;

    for (const char *l = letters; *l; l++) {
        int kind = (int) (strchr (b->m.kinds, *l) - b->m.kinds);

        held.of[kind]++;
        *(workload_one_layer (&b->m, kind).expert ? &held.expert : &held.dense) += 1;
    }
    costmodel_compute (&b->m, &b->j, &b->c, &b->p, &t, &k);
    costmodel_stage_compute (&b->c, &b->p, &k, &held, &s);
    s.fwd_s -= 0.5 * b->p.time.microbatch_s;
    s.back_s -= 0.5 * b->p.time.microbatch_s;
    return s;
}

/* A stage is the sum of its layers; the mixer's time grows with the tokens, and attention's
 * faster. */
TEST (times)
{
    struct bench b = bench_of ("nemotron-nano-9b-v2", 1), twice = b;
    struct costmodel_stage_time m = time_of (&b, "M"), mlp = time_of (&b, "-"),
                                a = time_of (&b, "*"), all = time_of (&b, "M-M*-");

    assert_true (m.fwd_s > 0 && m.back_s > 2 * m.fwd_s * 0.9);
    CLOSE (all.fwd_s, 2 * m.fwd_s + 2 * mlp.fwd_s + a.fwd_s, 1e-12);
    CLOSE (all.back_s, 2 * m.back_s + 2 * mlp.back_s + a.back_s, 1e-12);
    CLOSE (all.weight_s, 2 * m.weight_s + 2 * mlp.weight_s + a.weight_s, 1e-12);
    twice.j.seq *= 2;
    CLOSE (time_of (&twice, "M").fwd_s, 2 * m.fwd_s, 0.1);
    assert_true (time_of (&twice, "*").fwd_s > 2.1 * a.fwd_s);
}

static struct machine h100_by (const struct workload_profile *p)
{
    return machine_by (topology_gpu_type_builtin ("h100-sxm5-80g"), p);
}

/* A model without attention has heads of no width; its scans go at flash attention's rate all the
 * same where compute is the GPU type's. */
TEST (no_attention)
{
    struct bench b = bench_of ("mamba2-2.7b", 1);
    double none, wide;

    b.p.compute_of_type = true;
    none = time_of (&b, "M").fwd_s;
    assert_true (b.m.head_dim == 0 && isfinite (none));
    b.m.head_dim = 128; /* nothing is padded */
    wide = time_of (&b, "M").fwd_s;
    CLOSE (none, wide, 1e-12);
}

/* A layer that is nothing but a mixer: a norm and a residual, two products, and the scan at five
 * times its products or what it moves, whichever is more; a convolution moves alone. */
TEST (mixer_times)
{
    for (int i = 0; i < 3; i++) {
        struct bench b = bench_of ("mamba2-2.7b", 1);
        bool quick = i == 1, conv = i == 2; /* memory */
        double fwd, again, chunk = conv ? INFINITY : 256, over = conv ? 1 : 5, peak;
        double moved, scan, back, plain, h = 2560, weights;
        struct workload_mixer x;
        struct costmodel_stage_time s;
        struct machine g;

        b.m.linear = conv ? LINEAR_CONV : LINEAR_SSM;
        b.m.lin_chunk = conv ? 0 : 256;
        b.p.sums_in_products = false;
        b.p.fused_accumulation = true;
        b.p.memory.gradient_bytes = 4;
        b.p.time.memory_bandwidth *= quick ? 100 : 1;
        g = h100_by (&b.p);
        x = workload_mixer_of (&b.m, 1);
        workload_scan_flop (&b.m, 1, &fwd, &again);
        peak = g.matrix_rate / b.p.time.gemm * b.p.time.attention;
        moved = 2 * (2 * x.conv + 5 * x.inner + 2 * x.keys + 8 * x.states / chunk) * SEQ /
                g.memory_rate;
        plain = 10 * h * SEQ / g.memory_rate;
        scan = over * fmax (fwd * SEQ / peak, moved);
        back = over * fmax ((2 * fwd + again) * SEQ / peak, 2 * moved);
        assert_true ((scan > over * moved) == quick &&
                     (back > over * 2 * moved) == quick);
        weights = product_s (&g, 1, h, x.in, SEQ) + product_s (&g, 1, x.inner, h, SEQ) +
                  8 * (x.in + x.inner) * h / g.memory_rate;
        s = time_of (&b, "M");
        CLOSE (s.fwd_s,
               product_s (&g, 1, SEQ, x.in, h) + product_s (&g, 1, SEQ, h, x.inner) +
                   scan + plain,
               1e-9);
        CLOSE (s.weight_s, weights, 1e-9);
        CLOSE (s.back_s,
               product_s (&g, 1, SEQ, h, x.in) + product_s (&g, 1, SEQ, x.inner, h) +
                   weights + back + 2 * plain,
               1e-9);
    }
}

/* A gate on attention's output doubles the queries' product, and is multiplied into it. */
TEST (attention_gates)
{
    struct bench b = bench_of ("llama-3-8b", 1);
    const struct topology_gpu_type *t = topology_gpu_type_builtin ("h100-sxm5-80g");
    struct machine g = h100_by (&b.p);
    double kept = 0, fwd = 0, q = 32 * 128, kv = 8 * 128;

    for (int gate = 0; gate < 2; gate++) {
        struct memest_problem p = {&b.m, &b.j, &b.c, &b.p, MEMEST_LINKWISE, 0, 0};
        struct workload_stage held = {.dense = 1};
        struct memest_stage s;
        struct costmodel_compute k;

        b.m.attention_gate = gate;
        memest_stage (&p, 0, &held, &s);
        costmodel_compute (&b.m, &b.j, &b.c, &b.p, t, &k);
        kept = s.activations_bytes - kept;
        fwd = k.dense.fwd_s - fwd;
    }
    CLOSE (kept, 4 * q * SEQ, 1e-9);
    CLOSE (fwd,
           product_s (&g, 1, SEQ, 2 * q + 2 * kv, 4096) -
               product_s (&g, 1, SEQ, q + 2 * kv, 4096) + 6 * q * SEQ / g.memory_rate,
           1e-9);
}

/* Layers whose kind is not told take what any takes at least. */
TEST (untold_layers)
{
    struct bench b = bench_of ("nemotron-3-nano-30b-a3b", 1);
    struct topology_gpu_type t = *topology_gpu_type_builtin ("h100-sxm5-80g");
    struct costmodel_compute k, mean;

    costmodel_compute (&b.m, &b.j, &b.c, &b.p, &t, &k);
    mean = k;
    costmodel_untold_mean (&b.m, &mean);
    CLOSE (k.dense.fwd_s, fmin (k.kind[0].fwd_s, k.kind[2].fwd_s), 0);
    CLOSE (k.expert.fwd_s, k.kind[1].fwd_s, 0);
    CLOSE (mean.dense.fwd_s, (23 * k.kind[0].fwd_s + 6 * k.kind[2].fwd_s) / 29, 1e-12);
    assert_true (workload_layer_params (&b.m, 1) <=
                 workload_parts_params (&b.m, PART_LINEAR, 1));
}

/* The scan of Mamba-2 in chunks of 128, of a gated delta net in chunks of 64, and what model FLOPs
 * count of them, as Megatron-LM's training.py does. */
TEST (flop)
{
    struct workload_model ssm = model_of ("nemotron-nano-9b-v2"),
                          delta = model_of ("qwen3-next-80b-a3b"),
                          plain = model_of ("mamba2-2.7b");
    struct workload_job j = {.seq = (int) SEQ, .global_batch = 2};
    double fwd, again;

    workload_scan_flop (&ssm, 1, &fwd, &again);
    CLOSE (fwd, 2 * 128 * (8 * 128 + 128 * 80) + 4.0 * 128 * 80 * 128, 1e-12);
    CLOSE (again, 2 * 128 * 8 * 128 + 2.0 * 128 * 80 * 128, 1e-12);
    workload_scan_flop (&delta, 2, &fwd, &again);
    CLOSE (fwd, 16 * (64 * 10 * 128 + 6 * 128 * 128 + 2.0 / 3 * 64 * 64), 1e-12);
    CLOSE (workload_recurrence_flop (&delta), 8.0 * 32 * 128 * 128, 1e-12);
    CLOSE (costmodel_model_flop (&plain, &j),
           2 * SEQ * (6 * workload_model_params (&plain) + 3 * 64 * 7.0 * 5120 * 128),
           1e-12);
}

/* One all-reduce for the mixers of a layer, one for its MLP. */
TEST (operations)
{
    struct workload_model m = model_of ("nemotron-nano-9b-v2");
    struct workload_config c = config_of (8, 1, 1, 1);
    struct workload_stage all = workload_all_layers (&m);
    double fwd, back;

    assert_int_equal (all.of[0], 27);
    assert_int_equal (all.of[1], 25);
    assert_int_equal (all.of[2], 4);
    costmodel_tp_operations (&m, &c, &all, &fwd, &back);
    CLOSE (fwd, 56, 0);
    CLOSE (back, 56, 0);
    c.recompute =
        RECOMPUTE_FULL; /* of so many layers in 56 they come again in backward */
    for (c.recompute_layers = 0; c.recompute_layers < 60; c.recompute_layers++) {
        int again = c.recompute_layers;

        costmodel_tp_operations (&m, &c, &all, &fwd, &back);
        CLOSE (fwd, 56, 0);
        CLOSE (back, 56 + (again == 0 || again > 56 ? 56 : again), 1e-12);
    }
}
