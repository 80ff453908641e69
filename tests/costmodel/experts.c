/* A layer with experts: its products and traffic, launches and waits, one kernel for all experts,
 * biases and capacities (docs/formulas.md, T8, T20, T24). */
#include "tests/lib/layers.h"

/* Latent attention and experts: the first halves of the projections are whole on each rank, the
 * router sees a rank's own tokens, every expert 64s of rows. */
TEST (expert_layers)
{
    for (int i = 0; i < 8; i++) {
        bool fused = i & 1, sp = i & 2, whole = i & 4; /* queries are not compressed */
        int tp = sp ? 4 : 1;
        struct setting s = layer_job ("deepseek-v3", tp, sp, fused);
        const struct workload_model *m = &s.model;
        struct machine g = machine_in (&s);
        struct parts x = {.g = &g};
        double h = m->hidden, a = m->heads / (double) tp, qk = m->nope_dim + m->rope_dim;
        double tokens = 2048, pairs = tokens * m->top_k * (sp ? 2.0 / tp : 1);
        double f = m->expert_ffn / (sp ? 2.0 : 1), shared = m->shared_ffn / (double) tp;
        double mine = m->experts / 8.0, rows = 64 * ceil (pairs / mine / 64),
               per = 6 + (fused ? 0 : 4);
        struct costmodel_compute k;

        s.config.deg.ep = s.config.deg.dp = 8;
        s.config.deg.etp = sp ? 2 : 1;
        s.model.q_rank = whole ? 0 : m->q_rank;
        s.profile.time.deduplicated_dispatch =
            whole; /* else sorted by rank and by expert */
        product (&x, 1, tokens, h, whole ? a * qk : m->q_rank);
        product (&x, 1, tokens, h, m->kv_rank + m->rope_dim);
        product (&x, 1, tokens, a * m->v_dim, h);
        if (!whole)
            product (&x, 1, tokens, m->q_rank, a * qk);
        product (&x, 1, tokens, m->kv_rank, a * (m->nope_dim + m->v_dim));
        product (&x, 1, tokens / (sp ? tp : 1), h, m->experts);
        product (&x, 1, tokens, h, 2 * shared);
        product (&x, 1, tokens, shared, h);
        product (&x, mine, rows, h, 2 * f);
        product (&x, mine, rows, f, h);
        x.traffic = elementwise (&s, fused) + (fused ? 4 : 20) * 2 * a * qk +
                    per * shared + per * f * mine * rows / tokens +
                    (whole ? 8 : 16) * h * pairs / tokens;
        k = compute_of (&s);
        check_layer (&s, &x, tokens, qk + m->v_dim, &k.expert);
        topology_cluster_destroy (s.cluster);
    }
}

/* Where compute is the GPU type's, a layer with experts launches 2.1 times as much, and .15 for
 * each expert of the rank; forward its host waits for the tokens, so that launches add up, unless
 * the step is captured.  Where parts are captured, in racks or everywhere, a tenth of the 2.1 is
 * left, and the host is ahead.  Of experts in a loop of separate operations it is 5 and .35. */
TEST (waits_for_tokens)
{
    struct setting s = layer_job ("qwen3-30b-a3b", 1, false, true);
    struct costmodel_compute bare, k;
    double dense, experts, floor;

    s.profile.compute_of_type = true;
    s.config.deg.dp = 8; /* no slower than the slowest of eight */
    s.profile.time.layer_launch_fwd_s = s.profile.time.layer_launch_back_s = 0;
    bare = compute_of (&s);
    s.profile.time.layer_launch_fwd_s = s.profile.time.layer_launch_back_s = .01;
    dense = .01 * s.cluster->node[0].type->host_factor;
    experts = .15 * s.model.experts / s.config.deg.ep * dense;
    floor = 2.1 * dense + experts;
    s.profile.fused_mlp = true;
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s, bare.expert.fwd_s + floor, 1e-9);
    CLOSE (k.expert.back_s, pow (pow (bare.expert.back_s, 4) + pow (floor, 4), .25),
           1e-9);
    s.job.lora = true; /* attention's adapters alone launch more */
    k = compute_of (&s);
    s.profile.time.layer_launch_fwd_s = 0;
    CLOSE (k.expert.fwd_s, compute_of (&s).expert.fwd_s + floor + 1.5 * dense, 1e-9);
    s.profile.time.layer_launch_fwd_s = .01;
    s.job.lora = false;
    s.profile.captured_parts = CAPTURED_IN_RACKS; /* which this type is not in */
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s, bare.expert.fwd_s + floor, 1e-9);
    s.profile.captured_parts = CAPTURED_EVERYWHERE;
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s,
           pow (pow (bare.expert.fwd_s, 4) + pow (.21 * dense + experts, 4), .25), 1e-9);
    s.profile.captured_parts = CAPTURED_NOWHERE;
    s.job.fused_mlp = CHOICE_YES; /* the same kernels, in the framework's loop */
    s.profile.fused_mlp = false;
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s, bare.expert.fwd_s + 5 * dense + experts * 35 / 15, 1e-9);
    s.profile.fused_mlp = true;
    s.profile.drops_tokens = true; /* nothing to wait for */
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s, pow (pow (bare.expert.fwd_s, 4) + pow (floor, 4), .25), 1e-9);
    s.profile.graphs = GRAPHS_ALL;
    k = compute_of (&s);
    CLOSE (k.expert.fwd_s, pow (pow (bare.expert.fwd_s, 4) + pow (floor / 10, 4), .25),
           1e-9);
    topology_cluster_destroy (s.cluster);
}

/* In fp8 of blocks with scales, fused experts lose their activation's traffic, the casts of its
 * result and of its gradient, and the longer start of their waves; no others do. */
TEST (fused_experts)
{
    static const char *const type[] = {"gb200-192g", "h100-sxm5-80g"};

    for (int i = 0; i < 2; i++) {
        struct setting s = layer_job ("qwen3-30b-a3b", 1, false, true);
        const struct topology_gpu_type *t = topology_gpu_type_builtin (type[i]);
        const struct workload_model *m = &s.model;
        double mine = m->experts / 8.0, f = m->expert_ffn, h = m->hidden;
        double rows = 64 * ceil (2048 * m->top_k / mine / 64);
        double memory = t->hbm_bytes_per_s * s.profile.time.memory_bandwidth;
        struct machine g = {.wave_s = 1e-6,
                            .matrix_rate = .9 * rows / (rows + 200) * t->fp8_flop_per_s *
                                           t->fp8_gemm_efficiency * s.profile.time.gemm,
                            .memory_rate = memory,
                            .multiprocessors = t->multiprocessors,
                            .element_bytes = 1},
                       slow = g;
        struct parts fused = {.g = &g}, plain = {.g = &slow};
        struct costmodel_compute with, without;
        double moved = mine * rows * f * (6 + 4.5) / memory,
               back = mine * rows * f * (2 * 6 + 2 * 4.5) / memory;

        slow.wave_s = 4e-6;
        product (&fused, mine, rows, h, 2 * f);
        product (&fused, mine, rows, f, h);
        product (&plain, mine, rows, h, 2 * f);
        product (&plain, mine, rows, f, h);
        s.job.precision = PREC_FP8;
        s.profile.compute_of_type = s.profile.sums_in_products = true;
        s.config.deg.ep = s.config.deg.dp = 8;
        costmodel_compute (m, &s.job, &s.config, &s.profile, t, &without);
        s.profile.fused_experts = true;
        costmodel_compute (m, &s.job, &s.config, &s.profile, t, &with);
        CLOSE (without.expert.fwd_s - with.expert.fwd_s,
               i == 0 ? moved + plain.fwd - fused.fwd : 0, 1e-9);
        CLOSE (without.expert.back_s - with.expert.back_s,
               i == 0 ? back + plain.inputs + plain.weights - fused.inputs - fused.weights
                      : 0,
               1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* Experts' biases move 68 bytes forward and backward for each token-expert pair and hidden unit,
 * a third of it forward, where no fused product adds them. */
TEST (expert_biases)
{
    for (int fused = 0; fused < 2; fused++) {
        struct setting s = layer_job ("gpt-oss-120b", 1, false, true);
        const struct topology_gpu_type *t = topology_gpu_type_builtin ("gb200-192g");
        double memory = t->hbm_bytes_per_s * s.profile.time.memory_bandwidth;
        double moved = fused ? 0 : 68.0 * 2048 * s.model.top_k * s.model.hidden / memory;
        struct costmodel_compute with, without;

        s.job.precision = PREC_FP8;
        s.profile.fused_experts = fused;
        s.config.deg.ep = s.config.deg.dp = 8;
        assert_true (s.model.mlp_bias);
        costmodel_compute (&s.model, &s.job, &s.config, &s.profile, t, &with);
        s.model.mlp_bias = false;
        costmodel_compute (&s.model, &s.job, &s.config, &s.profile, t, &without);
        CLOSE (1 + with.expert.fwd_s - without.expert.fwd_s, 1 + moved / 3, 1e-12);
        CLOSE (1 + with.expert.back_s - without.expert.back_s, 1 + moved * 2 / 3, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
}

/* Experts with a capacity of c compute c times the rows and sort c times the pairs; one of 1 is no
 * other than none. */
TEST (capacity)
{
    struct setting s = layer_job ("qwen3-30b-a3b", 1, false, true);
    const struct workload_model *m = &s.model;
    double mine = m->experts / 8.0, f = m->expert_ffn, h = m->hidden;
    double pairs = 2048.0 * m->top_k, rows = pairs / mine;
    struct machine g = machine_in (&s);
    struct parts once = {.g = &g}, twice = {.g = &g};
    struct costmodel_compute none, one, two;
    double moved = (6 * f + 16 * h) * pairs / g.memory_rate;

    assert_true (fmod (rows, 64) == 0);
    s.config.deg.ep = s.config.deg.dp = 8;
    product (&once, mine, rows, h, 2 * f);
    product (&once, mine, rows, f, h);
    product (&twice, mine, 2 * rows, h, 2 * f);
    product (&twice, mine, 2 * rows, f, h);
    s.profile.time.expert_capacity = 2; /* of tokens that are not dropped: nothing */
    none = compute_of (&s);
    s.profile.drops_tokens = true;
    two = compute_of (&s);
    s.profile.time.expert_capacity = 1;
    one = compute_of (&s);
    assert_true (one.expert.fwd_s == none.expert.fwd_s);
    assert_true (one.expert.back_s == none.expert.back_s);
    CLOSE (two.expert.fwd_s - one.expert.fwd_s, twice.fwd - once.fwd + moved, 1e-9);
    CLOSE (two.expert.back_s - one.expert.back_s,
           twice.inputs + twice.weights - once.inputs - once.weights + 2 * moved, 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* One kernel for a rank's experts: a wave starts in 1 us, M / (M + 100) of single products' rate,
 * 2.1 times a dense layer's launches whatever the experts, no wait on one rank.  By separate
 * operations tokens and masks move more; where they are fused, 8 bytes as elsewhere. */
TEST (grouped_experts)
{
    struct setting s = layer_job ("qwen3-30b-a3b", 1, false, true);
    const struct topology_gpu_type *t = s.cluster->node[0].type;
    const struct workload_model *m = &s.model;
    double tokens = 2048, rows = 64 * ceil (tokens * m->top_k / m->experts / 64),
           f = m->expert_ffn, h = m->hidden;
    struct machine one = machine_in (&s), all;
    struct parts loop = {.g = &one}, group = {.g = &all};
    struct costmodel_compute apart, grouped, k;
    double floor, moved, ffn;

    s.profile.compute_of_type = true;
    s.config.deg.dp = 8; /* no slower than the slowest of eight */
    s.config.zero = 0;
    one.wave_s = 4e-6;
    all = one;
    all.wave_s = 1e-6;
    one.matrix_rate *= .9 * rows / (rows + 200);
    all.matrix_rate *= rows / (rows + 100);
    product (&loop, m->experts, rows, h, 2 * f);
    product (&loop, m->experts, rows, f, h);
    product (&group, m->experts, rows, h, 2 * f);
    product (&group, m->experts, rows, f, h);
    apart = compute_of (&s);
    s.profile.grouped_experts = true;
    grouped = compute_of (&s);
    CLOSE (apart.expert.fwd_s - grouped.expert.fwd_s, loop.fwd - group.fwd, 1e-9);
    CLOSE (apart.expert.back_s - grouped.expert.back_s,
           loop.inputs + loop.weights - group.inputs - group.weights, 1e-9);

    s.profile.time.layer_launch_fwd_s = .01;
    floor = 2.1 * .01 * t->host_factor;
    CLOSE (compute_of (&s).expert.fwd_s,
           pow (pow (grouped.expert.fwd_s, 4) + pow (floor, 4), .25), 1e-9);
    s.profile.time.layer_launch_fwd_s = 0;

    s.job.fused_mlp = CHOICE_NO;
    k = compute_of (&s);
    ffn = m->expert_ffn * m->experts * rows / tokens; /* of a token, padded */
    moved = (32 - 8) * h * m->top_k + 8 * 2 * f * m->top_k + 4 * ffn;
    CLOSE (k.expert.fwd_s - grouped.expert.fwd_s, moved * tokens / one.memory_rate, 1e-9);
    topology_cluster_destroy (s.cluster);
}
