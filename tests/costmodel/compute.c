/* Every term of compute, against sums written here from docs/formulas.md: a layer's products
 * (product.c) and elementwise traffic, launches, the head, the optimizer.  attention.c and
 * experts.c have theirs. */
#include "tests/lib/layers.h"

/* ---- T8, T14 to T16: a layer ---- */

/* Grouped heads with rotary positions and a gated MLP; all heads, learned positions, a plain MLP
 * and dropout. */
TEST (dense_layers)
{
    static const char *const models[] = {"llama-3-8b", "gpt2-xl"};

    for (int i = 0; i < 64; i++) {
        bool gated = i % 2 == 0, fused = i & 2, sp = i & 8, qk_norm = i & 16,
             cast = i & 32;
        int tp = i & 4 || sp ? gated ? 4 : 5 : 1;
        struct setting s = layer_job (models[i % 2], tp, sp, fused);
        const struct workload_model *m = &s.model;
        struct machine g = machine_in (&s);
        struct parts x = {.g = &g};
        double h = m->hidden, d = m->head_dim, q = m->heads * d / tp;
        double f = m->ffn / (double) tp, tokens = 1024 * 2 / 2, kv;
        struct costmodel_compute k;

        if (gated && sp) /* fewer than ranks: each has a whole one */
            s.model.kv_heads = 2;
        kv = (m->kv_heads < tp ? 1.0 : m->kv_heads / (double) tp) * d;
        assert_true (m->gated_mlp == gated && (m->positions == 0) == gated);
        s.config.deg.cp = 2;
        s.model.qk_norm = s.model.separate_gelu = qk_norm;
        s.profile.autocast_copies = cast;
        product (&x, 1, tokens, h, q + 2 * kv);
        product (&x, 1, tokens, q, h);
        product (&x, 1, tokens, h, gated ? 2 * f : f);
        product (&x, 1, tokens, f, h);
        x.traffic =
            elementwise (&s, fused) + (gated ? (fused ? 4 : 20) * (q + kv) : 0) +
            (qk_norm ? (fused || !gated ? 4 : 34) * (q + kv) : 0) +
            ((gated ? 6 : 4) + (fused ? 0 : 4) + (qk_norm && !gated && !fused ? 28 : 0)) *
                f;
        if (cast) { /* queries, keys and values, gate and up; GPT-2's two; sums; norms */
            double norm = fused || !gated ? 4 : -6;

            x.traffic += (6 * (gated ? 5 : 2) + 2 * 4 + 2 * norm) * h / (sp ? tp : 1) +
                         (gated && !fused ? 16 : 0) * (q + kv) +
                         (qk_norm ? norm : 0) * (q + kv);
        }
        k = compute_of (&s);
        check_layer (&s, &x, tokens, 2 * d, &k.dense);
        topology_cluster_destroy (s.cluster);
    }
}

/* Each piece of the keys under context parallelism launches .15 of a layer more; all-to-alls of
 * heads leave attention whole. */
TEST (launches_of_pieces)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);
    struct costmodel_compute bare;
    double floor;

    s.config.deg.cp = 4;
    s.profile.time.layer_launch_fwd_s = 0;
    bare = compute_of (&s);
    s.profile.time.layer_launch_fwd_s = floor = bare.dense.fwd_s;
    CLOSE (compute_of (&s).dense.fwd_s, floor * pow (1 + pow (1.6, 4), .25), 1e-9);
    s.profile.cp_all_to_all = true;
    CLOSE (compute_of (&s).dense.fwd_s, floor * pow (2, .25), 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* Launches are a floor: joined by fourth powers, per layer and direction. */
TEST (launches)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);
    struct costmodel_compute bare = compute_of (&s), k;

    s.profile.time.layer_launch_fwd_s = 2 * bare.dense.fwd_s;
    s.profile.time.layer_launch_back_s = 3 * bare.dense.back_s;
    k = compute_of (&s);
    CLOSE (k.dense.fwd_s, bare.dense.fwd_s * pow (17, .25), 1e-9);
    CLOSE (k.dense.back_s, bare.dense.back_s * pow (82, .25), 1e-9);
    CLOSE (k.dense.weight_s, bare.dense.weight_s * pow (82, .25), 1e-9);
    s.profile.graphs = GRAPHS_DENSE; /* a tenth of the floors is left */
    CLOSE (compute_of (&s).dense.fwd_s, bare.dense.fwd_s * pow (1 + pow (.2, 4), .25),
           1e-9);
    CLOSE (compute_of (&s).dense.back_s, bare.dense.back_s * pow (1 + pow (.3, 4), .25),
           1e-9);
    s.profile.graphs = GRAPHS_NONE;
    s.config.recompute = RECOMPUTE_FULL;
    CLOSE (compute_of (&s).dense.recompute_s, k.dense.fwd_s, 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* Recomputing may end before a dense MLP's last product: an expert layer's is needed for the
 * router's gradient. */
TEST (recompute_ends)
{
    static const char *const models[] = {"llama-3-8b", "mixtral-8x7b"};

    for (int moe = 0; moe < 2; moe++) {
        struct setting s = layer_job (models[moe], 1, false, true);
        struct machine g = machine_in (&s);
        struct parts last = {.g = &g};
        struct costmodel_compute k;

        s.profile.recompute_ends_early = true;
        s.config.recompute = RECOMPUTE_FULL;
        product (&last, 1, 1024.0 * s.config.micro_batch, s.model.ffn, s.model.hidden);
        k = compute_of (&s);
        if (moe)
            CLOSE (k.expert.recompute_s, k.expert.fwd_s, 1e-12);
        else
            CLOSE (k.dense.recompute_s, k.dense.fwd_s - last.fwd, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* A dense MLP's last product is repeated if a norm or PyTorch's dropout follows it; and the wait
 * for experts' tokens comes again. */
TEST (recompute_ends_late)
{
    for (int i = 0; i < 4; i++) {
        struct setting s =
            layer_job (i < 3 ? "llama-3-8b" : "mixtral-8x7b", 1, false, true);
        struct costmodel_compute k;

        s.model.norms = i == 0 ? 4 : 2;
        s.model.dropout = i == 1 || i == 2;
        s.profile.recompute_ends_early = true;
        s.profile.scanned_layers = i == 2;
        s.profile.compute_of_type = i == 3;
        s.profile.grouped_experts = false;
        s.profile.time.layer_launch_fwd_s = 1e-3;
        s.config.recompute = RECOMPUTE_FULL;
        k = compute_of (&s);
        if (i == 2)
            assert_true (k.dense.recompute_s < .9 * k.dense.fwd_s);
        else if (i == 3)
            CLOSE (k.expert.recompute_s, k.expert.fwd_s, 1e-12);
        else
            CLOSE (k.dense.recompute_s, k.dense.fwd_s, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
}

/* A scan over layers that recomputes none moves 2.8 times what fused kernels do. */
TEST (scan)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);
    struct costmodel_compute fused = compute_of (&s), slower;
    double traffic;

    slower = (s.profile.scanned_layers = true, compute_of (&s));
    traffic = (slower.dense.fwd_s - fused.dense.fwd_s) / 1.8;
    assert_true (traffic > .05 * fused.dense.fwd_s && traffic < fused.dense.fwd_s);
    CLOSE (slower.dense.back_s - fused.dense.back_s, 2 * 1.8 * traffic, 1e-9);
    s.config.recompute = RECOMPUTE_FULL;
    CLOSE (compute_of (&s).dense.fwd_s, fused.dense.fwd_s, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* All compute waits for the slowest GPU of the configuration, counted from eight: in composed
 * profiles alone. */
TEST (slowest)
{
    struct setting s = layer_job ("llama-2-7b", 1, false, true);
    struct costmodel_compute one, many;
    double grows = 1 + .02 * (sqrt (2 * log (1024)) - sqrt (2 * log (8)));

    for (int composed = 0; composed < 2; composed++) {
        s.profile.compute_of_type = composed;
        s.config.deg.pp = 4;
        s.config.deg.dp = 2;
        s.config.zero = 0;
        one = compute_of (&s);
        CLOSE (costmodel_slowest (&s.profile, &s.config.deg), 1, 1e-12);
        s.config.deg.dp = 256;
        many = compute_of (&s);
        CLOSE (costmodel_slowest (&s.profile, &s.config.deg), composed ? grows : 1,
               1e-12);
        CLOSE (many.dense.fwd_s, one.dense.fwd_s * (composed ? grows : 1), 1e-12);
        CLOSE (many.head_back_s, one.head_back_s * (composed ? grows : 1), 1e-12);
        CLOSE (many.optimizer_s, one.optimizer_s * (composed ? grows : 1), 1e-12);
    }
    topology_cluster_destroy (s.cluster);
}

/* Frozen weights in fewer bits are read and written in 16 before every product, forward and
 * backward. */
TEST (packed_weights)
{
    struct setting s = layer_job ("llama-3-8b", 2, false, true);
    const struct workload_model *m = &s.model;
    double h = m->hidden, q = m->heads * m->head_dim / 2.0,
           kv = m->kv_heads * m->head_dim / 2.0,
           params = h * (2 * q + 2 * kv) + 3 * h * m->ffn / 2.0;
    double unpack = 2.5625 * params / machine_in (&s).memory_rate;
    struct costmodel_compute plain, packed;

    s.job.frozen_bytes = .5625;
    s.profile.time.layer_launch_fwd_s = s.profile.time.layer_launch_back_s = 0;
    plain = compute_of (&s);
    s.job.frozen_bytes = 0;
    packed = compute_of (&s);
    CLOSE (plain.dense.fwd_s, packed.dense.fwd_s, 0); /* all weights are trained */
    s.job.lora = true;
    plain = compute_of (&s);
    s.job.frozen_bytes = .5625;
    packed = compute_of (&s);
    CLOSE (packed.dense.fwd_s - plain.dense.fwd_s, unpack, 1e-9);
    CLOSE (packed.dense.back_s - plain.dense.back_s, unpack, 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* Adapters in fp32 move 48 bytes for each element of the inputs of attention's products and 56 for
 * each of their outputs, forward and backward, a third of it forward. */
TEST (fp32_adapters)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);
    const struct workload_model *m = &s.model;
    double h = m->hidden, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    double memory = machine_in (&s).memory_rate, moved, few = 20 * h * 2048 / memory;
    struct costmodel_compute plain, fp32;

    moved = (48 * (3 * h + q) + 56 * (q + 2 * kv + h)) * 2048 / memory;
    s.job.lora = true;
    plain = compute_of (&s);
    s.profile.fp32_adapters = true;
    fp32 = compute_of (&s);
    CLOSE (fp32.dense.fwd_s - plain.dense.fwd_s, moved / 3 - few, 1e-9);
    CLOSE (fp32.dense.back_s - plain.dense.back_s, moved * 2 / 3 - 2 * few, 1e-9);
    s.job.lora = false;
    assert_true (compute_of (&s).dense.fwd_s < plain.dense.fwd_s);
    topology_cluster_destroy (s.cluster);
}

/* Attention in pieces: 46 bytes forward and 60 backward for each further piece and element of the
 * queries, 12 and 40 once; none without context parallelism. */
TEST (attention_by_pieces)
{
    for (int cp = 1; cp <= 4; cp *= 2) {
        struct setting s = layer_job ("llama-3-8b", 1, false, true);
        double each =
            2048.0 / cp * s.model.heads * s.model.head_dim / machine_in (&s).memory_rate;
        struct costmodel_compute ring, pieces;

        s.config.deg.cp = cp;
        ring = compute_of (&s);
        s.profile.cp_by_pieces = true;
        pieces = compute_of (&s);
        CLOSE (1 + pieces.dense.attention_fwd_s - ring.dense.attention_fwd_s,
               1 + (cp > 1 ? 46 * (cp - 1) + 12 : 0) * each, 1e-12);
        CLOSE (1 + pieces.dense.back_s - ring.dense.back_s,
               1 + (cp > 1 ? 60 * (cp - 1) + 40 : 0) * each, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
}

/* T16: three products over the rank's padded part of the vocabulary, 13 bytes a logit, 6 in place,
 * or 40 and 8 on all of them where they are gathered, and 40 where separate operations make it; a
 * third of it forward. */
TEST (head_and_embedding)
{
    for (int tp = 1; tp <= 4; tp += 3)
        for (int i = 0; i < 4; i++) {
            bool gathered = i == 1, separate = i == 2, in_place = i == 3;
            struct setting s = layer_job ("llama-3-8b", tp, false, true);
            struct machine g = machine_in (&s);
            struct parts x = {.g = &g};
            double h = s.model.hidden, tokens = 2048;
            double v = workload_padded_vocab (&s.model, tp) / tp;
            double bytes = gathered   ? (tp > 1 ? 48 : 40) * v * tp
                           : separate ? 40 * v
                           : in_place ? 6 * v
                                      : 13 * v,
                   loss;
            struct costmodel_compute k;

            s.profile.fused_loss = !separate;
            s.profile.memory.logit_bytes = in_place ? 2 : 6.6;
            s.job.gathered_logits = gathered ? CHOICE_YES : CHOICE_NO;
            k = compute_of (&s);
            product (&x, 1, tokens, h, v);
            loss = tokens * bytes / g.memory_rate;
            CLOSE (k.head_fwd_s, x.fwd + loss / 3, 1e-9);
            CLOSE (k.head_weight_s, x.weights + 8 * h * v / g.memory_rate, 1e-9);
            CLOSE (k.head_back_s, x.inputs + k.head_weight_s + loss * 2 / 3, 1e-9);
            CLOSE (k.embed_fwd_s, 4 * tokens * h / g.memory_rate, 1e-9);
            CLOSE (k.embed_back_s, 6 * tokens * h / g.memory_rate, 1e-9);
            topology_cluster_destroy (s.cluster);
        }
}

/* Two modules of multi-token prediction are two layers, recomputed as others are, two projections
 * and two more passes of the head. */
TEST (prediction)
{
    const struct topology_gpu_type *t = topology_gpu_type_builtin ("h100-sxm5-80g");
    struct setting s = {.model = model_of ("deepseek-v3"),
                        .job = {.seq = 4096, .global_batch = 8},
                        .config = config_of (2, 4, 1, 1),
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct costmodel_compute a, b;

    for (int full = 0; full < 2; full++) {
        double fwd, back, weight, again, h = s.model.hidden;

        s.config.recompute = full ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        s.model.mtp_layers = 0;
        costmodel_compute (&s.model, &s.job, &s.config, &s.profile, t, &a);
        s.model.mtp_layers = 2;
        costmodel_compute (&s.model, &s.job, &s.config, &s.profile, t, &b);
        again = full * a.expert.recompute_s;
        /* What is left is the projection: 2 h to h, of which a rank has half. */
        fwd = b.head_fwd_s / 2 - 1.5 * a.head_fwd_s - a.expert.fwd_s;
        back = b.head_back_s / 2 - 1.5 * a.head_back_s - a.expert.back_s - again;
        weight = b.head_weight_s / 2 - 1.5 * a.head_weight_s - a.expert.weight_s;
        CLOSE (fwd, 2.0 * 4096 * h * h / costmodel_matrix_rate (t, PREC_BF16), 0.8);
        assert_true (fwd > 0 && weight > 0);
        CLOSE (back, 2 * fwd, 0.1);
        CLOSE (weight, fwd, 0.1);
        CLOSE (a.expert.fwd_s, b.expert.fwd_s, 1e-12);
    }
}

/* Attention of separate operations: two products a head, and its scores' traffic. */
TEST (scores)
{
    struct setting s = layer_job ("gpt2-xl", 5, false, true);
    struct machine g = machine_in (&s);
    double a = s.model.heads / 5, d = s.model.head_dim, tokens = 1024, rows = 512;
    struct costmodel_compute k;

    s.config.deg.cp = 2;
    for (int i = 0; i < 4; i++) {
        bool fused = i & 1, dropped = i & 2; /* a read, a write and a mask, both ways */
        double per =
            (fused ? s.profile.time.fused_score_traffic : s.profile.time.score_traffic) +
            (dropped ? 10 : 0);
        double moved = per * tokens * 1024 * a / g.memory_rate;
        double products =
            product_s (&g, 2 * a, rows, 1024, d) + product_s (&g, 2 * a, rows, d, 1024);

        s.job.attention = fused ? ATTENTION_FUSED : ATTENTION_UNFUSED;
        s.model.dropout = dropped;
        k = compute_of (&s);
        CLOSE (k.dense.attention_fwd_s, products + moved / 3, 1e-9);
        CLOSE (k.dense.attention_back_s, 2 * products + moved * 2 / 3, 1e-9);
    }
    topology_cluster_destroy (s.cluster);
}

/* The optimizer reads its 12 bytes and the gradient, writes 12 and the weight's 2, on a rank's
 * shard, and clears all of its gradients; with adapters there is none. */
TEST (optimizer)
{
    struct setting s = layer_job ("mixtral-8x7b", 2, true, true);
    double hbm = machine_in (&s).memory_rate;
    struct costmodel_compute k;

    s.config.deg = (struct workload_degrees){
        .tp = 2, .pp = 1, .dp = 6, .cp = 2, .ep = 4, .etp = 1, .vpp = 1};
    for (int zero = 0; zero < 3; zero++) {
        s.config.zero = zero;
        k = compute_of (&s);
        CLOSE (k.optimizer_s, ((24.0 + 4 + 2) / (zero ? 12 : 1) + 4) / hbm, 1e-9);
        CLOSE (k.expert_optimizer_s, ((24.0 + 4 + 2) / (zero ? 6 : 1) + 4) / hbm, 1e-9);
    }
    /* Where compute is the type's: clipped by a norm that reads and a product that reads and writes
     * the gradients, at .82 of the rate; weights are read beside two moments in 16 bits alone. */
    s.profile.compute_of_type = true;
    for (int two = 0; two < 2; two++) {
        double slowest = costmodel_slowest (&s.profile, &s.config.deg),
               state_bytes = two ? 8 : 24;

        s.profile.memory.optimizer_bytes = state_bytes / 2;
        CLOSE (compute_of (&s).optimizer_s,
               slowest * ((state_bytes + 4 + (two ? 4 : 2) + 3 * 4) / .82 / 12 + 4) / hbm,
               1e-9);
    }
    s.profile.compute_of_type = false;
    /* As separate operations: so many passes over what is as wide as a gradient. */
    s.profile.time.optimizer_passes = 7;
    CLOSE (compute_of (&s).optimizer_s, (7 * 4.0 / 12 + 4) / hbm, 1e-9);
    s.job.lora = true;
    k = compute_of (&s);
    assert_true (k.optimizer_s == 0 && k.expert_optimizer_s == 0 && k.head_weight_s == 0);
    topology_cluster_destroy (s.cluster);
}

/* A wave of a product's tiles starts in 1 us, where compute is the GPU type's in 4; or as the
 * profile says. */
TEST (waves)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);

    for (int composed = 0; composed < 2; composed++) {
        double usual, said;

        s.profile.compute_of_type = composed;
        s.profile.time.wave_s = 0;
        usual = compute_of (&s).dense.fwd_s;
        s.profile.time.wave_s = composed ? 4e-6 : 1e-6;
        CLOSE (compute_of (&s).dense.fwd_s, usual, 1e-12);
        s.profile.time.wave_s *= 2;
        said = compute_of (&s).dense.fwd_s;
        assert_true (said > usual);
    }
    topology_cluster_destroy (s.cluster);
}

/* A stage: its layers, the ends that it holds, half of a micro-batch's host work each way. */
TEST (stages)
{
    struct workload_config c = config_of (1, 1, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct costmodel_compute k = {
        .dense = {.fwd_s = 1, .back_s = 2, .weight_s = .5, .recompute_s = .25},
        .expert = {.fwd_s = 10, .back_s = 20, .weight_s = 5, .recompute_s = 3},
        .embed_fwd_s = 100,
        .embed_back_s = 200,
        .head_fwd_s = 1000,
        .head_back_s = 2000,
        .head_weight_s = 500};
    struct workload_stage held = {.dense = 3, .expert = 2};
    struct costmodel_stage_time t;

    p.time.microbatch_s = .02;
    costmodel_stage_compute (&c, &p, &k, &held, &t);
    CLOSE (t.fwd_s, 23.01, 1e-12);
    CLOSE (t.back_s, 46.01, 1e-12);
    CLOSE (t.weight_s, 11.5, 1e-12);
    held.embedding = held.head = true;
    c.recompute = RECOMPUTE_FULL;
    for (c.recompute_layers = 0; c.recompute_layers <= 6; c.recompute_layers++) {
        double again = c.recompute_layers == 0 || c.recompute_layers > 5
                           ? 1
                           : c.recompute_layers / 5.0;

        costmodel_stage_compute (&c, &p, &k, &held, &t);
        CLOSE (t.fwd_s, 1123.01, 1e-12);
        CLOSE (t.back_s, 2246.01 + again * (3 * .25 + 2 * 3), 1e-12);
        CLOSE (t.weight_s, 511.5, 1e-12);
    }
}
