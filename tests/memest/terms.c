/* Every term of a stage's memory, against sums written here from docs/memory.md with constants
 * that all differ: what is doubled, left out or divided by the wrong degree shows. */
#include "tests/lib/memory.h"

/* Norms, residual, queries, keys, values and output of a layer, a token.  Separate operations of a
 * norm keep as many bytes in fp32. */
static double outside_mlp (const struct stage *s, bool fused)
{
    const struct workload_model *m = &s->m;
    double t = s->c.deg.tp, r = s->c.sequence_parallel ? t : 1, h = m->hidden;
    double separate = s->j.precision == PREC_FP32 ? 17 / 2.0 : 17;
    double bytes = (9 + 1.3) * h / r + 1.3 * h / t + (fused ? 0 : separate * h / r) +
                   (m->dropout ? 2.2 * h / r : 0);

    if (m->kv_rank > 0)
        return bytes +
               (4.0 * m->q_rank + 2.0 * (m->kv_rank + m->rope_dim) + 2.0 * m->kv_rank) /
                   r +
               4.0 * m->heads / t * (m->nope_dim + m->rope_dim + m->v_dim);
    return bytes + 4.0 * m->heads * m->head_dim / t +
           4.0 * fmax (1, m->kv_heads / t) * m->head_dim;
}

TEST (dense_layers)
{
    static const struct {
        const char *model;
        int tp;
    } t[] = {{"llama-3-8b", 1}, {"llama-3-8b", 16}, {"gpt2-xl", 5}};

    for (int i = 0; i < 24; i++) {
        bool sp = i & 1, fused = i & 2, wide = i & 4;
        struct stage s = distinct_stage (t[i / 8].model, t[i / 8].tp, sp);
        double tp = s.c.deg.tp, tokens = 1024 * 2 / 2, e = wide ? 2 : 1, inside;

        s.c.deg.cp = 2;
        s.j.precision = wide ? PREC_FP32 : PREC_BF16;
        s.j.fused_norm = s.j.fused_mlp = fused ? CHOICE_YES : CHOICE_NO;
        /* The plain one's is GPT-2's GELU. */
        inside = (s.m.gated_mlp ? 6.1 + (fused ? 0 : 3.3) : 4.4 + (fused ? 0 : 6)) *
                 s.m.ffn / tp;
        CLOSE (memory_of (&s).activations_bytes,
               3 * tokens * (e * (outside_mlp (&s, fused) + inside) + 4 * s.m.heads / tp),
               1e-9);
    }
}

/* Scores of separate kernels are kept, or recomputed, one layer's with their gradients at a time.
 */
TEST (scores)
{
    struct stage s = distinct_stage ("gpt2-xl", 5, false);
    double heads = s.m.heads / 5.0, tokens = 2048,
           flash = memory_of (&s).activations_bytes;

    for (int wide = 0; wide < 2; wide++) {
        s.j.precision = wide ? PREC_FP32 : PREC_BF16;
        s.j.attention = ATTENTION_FLASH;
        flash = memory_of (&s).activations_bytes;
        for (int fused = 0; fused < 2; fused++) {
            /* A softmax in fp32 has no 16-bit copy; a mask stays a byte. */
            double each = !wide ? (fused ? 5.5 : 7.7) : fused ? 2 * 5.5 - 1 : 7.7 - 2;
            double kept = each * heads * 1024;

            s.j.attention = fused ? ATTENTION_FUSED : ATTENTION_UNFUSED;
            CLOSE (memory_of (&s).activations_bytes - flash,
                   3 * tokens * (kept - 4 * heads), 1e-9);
            s.c.recompute = RECOMPUTE_SELECTIVE;
            CLOSE (memory_of (&s).activations_bytes - flash,
                   tokens * (1.4 * kept - 3 * 4 * heads), 1e-9);
            s.c.recompute = RECOMPUTE_NONE;
        }
    }
}

/* Tokens go to top_k experts, split where the ranks of a TP group hold parts of the sequence;
 * the fullest rank has 1.3 times the mean. */
TEST (expert_layers)
{
    for (int i = 0; i < 4; i++) {
        bool sp = i & 1, shared = i & 2;
        int tp = 4, etp = sp ? 2 : 4;
        struct stage s = distinct_stage (shared ? "deepseek-v3" : "mixtral-8x7b", tp, sp);
        double tokens = 2048, pairs = s.m.top_k * 1.3 * (sp ? etp / (double) tp : 1),
               bytes;

        s.held = (struct workload_stage){.expert = 2};
        s.c.deg.ep = 2;
        s.c.deg.etp = etp;
        bytes = outside_mlp (&s, true) +
                pairs * (4.7 * s.m.hidden + 6.1 * s.m.expert_ffn / etp) +
                6.1 * s.m.shared_ffn / tp;
        bytes += 4.0 * s.m.heads / tp + 4.0 * s.m.experts / (sp ? tp : 1);
        CLOSE (memory_of (&s).activations_bytes, 2 * tokens * bytes, 1e-9);
    }
}

/* Layers that are recomputed keep their input, and one of them is whole with its gradients. */
TEST (recomputed_layers)
{
    for (int again = 0; again <= 3; again++) {
        struct stage s = distinct_stage ("llama-3-8b", 4, again & 1);
        double all = memory_of (&s).activations_bytes, tokens = 2048;
        double input = 2 * tokens * s.m.hidden / (again & 1 ? 4 : 1);
        int n = again ? again : 3;

        s.c.recompute = RECOMPUTE_FULL;
        s.c.recompute_layers = again;
        CLOSE (memory_of (&s).activations_bytes,
               n * input + (3 - n) * all / 3 + 1.4 * all / 3, 1e-9);
    }
}

/* PyTorch's selective recomputation keeps a sublayer's input, queries, attention's output, keys or
 * values, the MLP's inside once and the scores' sums. */
TEST (every_second)
{
    for (int i = 0; i < 4; i++) {
        bool sp = i & 1, wide = i & 2;
        struct stage s = distinct_stage ("llama-3-8b", 4, sp);
        double h = s.m.hidden, kept = 2 * h / (sp ? 4 : 1) + 2 * h / 4 + 2 * 128;

        s.j.precision = wide ? PREC_FP32 : PREC_BF16;
        s.p.selective = SELECTIVE_PRODUCTS;
        s.c.recompute = RECOMPUTE_SELECTIVE;
        kept += s.m.ffn / 4.0;
        CLOSE (memory_of (&s).activations_bytes,
               3.0 * 2048 * ((wide ? 4 : 2) * kept + 4 * 32 / 4), 1e-12);
    }
}

/* What a GPU type's framework keeps: a product's input once, in one byte where it is fp8; with
 * adapters their own inputs instead of the frozen ones'. */
TEST (kept_inputs)
{
    struct stage s = distinct_stage ("llama-3-8b", 4, false);
    double tokens = 2048, h = s.m.hidden, q = h / 4, f = s.m.ffn / 4.0, before;

    before = memory_of (&s).activations_bytes;
    s.p.compute_of_type = true;
    CLOSE (memory_of (&s).activations_bytes, before, 1e-12);
    s.j.precision =
        PREC_FP8; /* a byte less of both norms' outputs and of the MLP's inside */
    CLOSE (before - memory_of (&s).activations_bytes, 3 * tokens * (2 * h + f), 1e-9);
    s.j.precision = PREC_FP4; /* of 2 bytes .56 stay */
    CLOSE (before - memory_of (&s).activations_bytes, 1.44 * 3 * tokens * (2 * h + f),
           1e-9);
    s.j.precision = PREC_BF16;
    s.j.lora = true;
    CLOSE (memory_of (&s).activations_bytes - before,
           3 * tokens * (-4 * h + 3 * h + 3 * q - 2 * f), 1e-9);
    s.j.precision = PREC_FP8;
    CLOSE (memory_of (&s).activations_bytes - before,
           3 * tokens * (-4 * h + 3 * h + 3 * q - 4 * f), 1e-9);

    s = distinct_stage ("gpt2-xl", 1, false); /* whose MLP has no gate */
    before = memory_of (&s).activations_bytes;
    s.p.compute_of_type = true;
    s.j.precision = PREC_FP8;
    CLOSE (before - memory_of (&s).activations_bytes,
           3 * tokens * (2 * s.m.hidden + s.m.ffn), 1e-9);
}

/* Layers of frozen weights in fewer bits, embedding and head in 16, and one matrix of a layer that
 * a product has in 16; without adapters nothing is frozen. */
TEST (packed_weights)
{
    struct stage s = distinct_stage ("llama-3-8b", 2, false);
    double n = 3 * workload_layer_params (&s.m, 2), before, root;
    struct memest_stage out;

    s.j.frozen_bytes = .5625;
    CLOSE (memory_of (&s).weights_bytes, 2 * n, 1e-9);
    s.j.lora = true;
    out = memory_of (&s);
    CLOSE (out.weights_bytes, .5625 * n, 1e-9);
    CLOSE (out.buffers_bytes, 2.0 * s.m.hidden * s.m.ffn / 2, 1e-9);
    assert_true (out.gradients_bytes == 0 && out.optimizer_bytes == 0);
    s.held.head = true;
    before = out.weights_bytes;
    root = workload_head_params (&s.m, 2, false);
    CLOSE (memory_of (&s).weights_bytes - before, 2 * root, 1e-9);
    s.held.head = false;
    s.c.zero = 3;
    s.c.deg.dp = 4;
    out = memory_of (&s);
    CLOSE (out.weights_bytes, .5625 * n / 4, 1e-9);
    /* Two layers are gathered as they are. */
    CLOSE (out.buffers_bytes, .5625 * 2 * n / 3 + 2.0 * s.m.hidden * s.m.ffn / 2, 1e-9);
    s.p.frozen_gradients = true; /* which 4 bits cannot have */
    assert_true (memory_of (&s).gradients_bytes == 0);
}

/* WTA-CRS keeps a part of linear layers' inputs with 8-byte row numbers, of four layers. */
TEST (sampled_inputs)
{
    for (int sp = 0; sp < 2; sp++) {
        struct stage s = distinct_stage ("llama-3-8b", 4, sp);
        double whole = memory_of (&s).activations_bytes, h = s.m.hidden, r = sp ? 4 : 1;
        double inputs = 2 * h / r + h / 4 + s.m.ffn / 4.0;

        s.p.memory.wta_input_bytes = 1.1;
        s.p.memory.wta_dropped_bytes = .9;
        s.j.wta_crs = .3;
        CLOSE (whole - memory_of (&s).activations_bytes,
               3 * 2048 * (.7 * 1.1 * inputs + .9 * h / r - 4 * 8 * .3), 1e-9);
    }
}

/* The ends: 8 bytes an input token and a dropout mask, the last norm, logits split over the
 * vocabulary or gathered. */
TEST (ends)
{
    for (int i = 0; i < 8; i++) {
        bool sp = i & 1, gathered = i & 2, alone = i & 4;
        struct stage s = distinct_stage ("gpt2-xl", alone ? 1 : 5, sp && !alone);
        double tp = s.c.deg.tp, h = s.m.hidden, r = s.c.sequence_parallel ? tp : 1;
        double v = workload_padded_vocab (&s.m, s.c.deg.tp), layers, logits;
        struct memest_stage out;

        layers = memory_of (&s).activations_bytes;
        s.j.gathered_logits = gathered ? CHOICE_YES : CHOICE_NO;
        s.held.embedding = true;
        CLOSE (memory_of (&s).activations_bytes - layers,
               2048 * (8 + (s.m.dropout ? h / r : 0)), 1e-9);
        assert_true (memory_of (&s).logits_bytes == 0);
        s.held.embedding = false;
        s.held.head = true;
        out = memory_of (&s);
        logits = 2048 * v * (gathered ? 8.8 + (tp > 1 ? 1.9 + 2 / tp : 0) : 6.6 / tp);
        CLOSE (out.activations_bytes - layers, 4 * 2048 * h / r, 1e-9);
        CLOSE (out.logits_bytes, logits, 1e-9);
    }
}

/* Buffers and communicators, each alone and all together; fragmentation on top of tensors. */
TEST (buffers)
{
    for (int i = 0; i < 32; i++) {
        bool sp = i & 1, pp = i & 2, cp = i & 4, wide = i & 8, dp = i & 16;
        struct stage s = distinct_stage ("llama-3-8b", 4, sp);
        double tokens = 2048 / (cp ? 2.0 : 1), e = wide ? 2 : 1, bytes = 0;
        double tensor = 2 * e * tokens * s.m.hidden, tensors, params;
        struct memest_stage out;

        s.c.deg.pp = pp ? 2 : 1;
        s.c.deg.cp = cp ? 2 : 1;
        s.c.deg.dp = dp ? 2 : 1;
        s.c.zero = dp;
        s.j.precision = wide ? PREC_FP32 : PREC_BF16;
        if (i == 20) /* buckets are no longer than what they carry */
            s.p.memory.bucket_bytes = 1e30;
        params = 3 * workload_layer_params (&s.m, 4);
        bytes += sp ? tensor : 0;
        bytes += pp ? 2 * tensor / (sp ? 4 : 1) : 0;
        bytes +=
            cp ? 2 * 4 * 2 * e * tokens * 2 * 128 : 0; /* of 2 heads: K, V, gradients */
        bytes += dp ? e * (i == 20 ? 6 * params : 5e7) : 0; /* of so many elements */
        out = memory_of (&s);
        CLOSE (out.buffers_bytes, bytes, 1e-9);
        tensors = out.weights_bytes + out.gradients_bytes + out.optimizer_bytes +
                  out.activations_bytes + out.logits_bytes + out.buffers_bytes;
        CLOSE (out.overhead_bytes, 1e9 + 3e8 * (1 + pp + cp + (dp || cp)) + .25 * tensors,
               1e-9);
        CLOSE (out.peak_bytes, tensors + out.overhead_bytes, 1e-12);
    }
}

/* Weights, gradients, optimizer of dense parameters over dp cp ranks and of experts over as many
 * as hold the same ones; .7 more a parameter that is never sharded. */
TEST (states)
{
    for (int zero = 0; zero <= 3; zero++) {
        struct stage s = distinct_stage ("mixtral-8x7b", 2, true);
        struct workload_stage_params n;
        struct memest_stage out;
        double all, shards;

        s.held = (struct workload_stage){.dense = 1, .expert = 2, .head = true};
        s.c.deg = (struct workload_degrees){
            .tp = 2, .pp = 1, .dp = 6, .cp = 2, .ep = 4, .etp = 1, .vpp = 1};
        s.c.zero = zero;
        n = workload_stage_params (&s.m, &s.c, &s.held);
        all = n.dense + n.expert;
        shards = n.dense / 12 + n.expert / 6;
        out = memory_of (&s);
        CLOSE (out.weights_bytes, 2 * (zero >= 3 ? shards : all), 1e-9);
        CLOSE (out.gradients_bytes, 4 * (zero >= 2 ? shards : all), 1e-9);
        CLOSE (out.optimizer_bytes, 12 * (zero >= 1 ? shards : all) + .7 * all, 1e-9);
        s.j.lora = true;
        s.p.memory.wta_lora_bytes = .6;
        out = memory_of (&s);
        CLOSE (out.weights_bytes, 2 * (zero >= 3 ? shards : all), 1e-9);
        assert_true (out.gradients_bytes == 0 && out.optimizer_bytes == 0);
        s.j.wta_crs = .5;
        CLOSE (memory_of (&s).weights_bytes, out.weights_bytes + .6 * all, 1e-9);
    }
}

/* The peak is in the backward pass, or in the optimizer's step, which has its own bytes in place of
 * activations, logits and buffers: of a shard, and in fp16 copies of the gradients at least.
 * Gradients that do not outlive a step never meet the logits of the only micro-batch. */
TEST (two_peaks)
{
    for (int i = 0; i < 48; i++) {
        bool zero = i & 2, half = i & 4, freed = i & 8;
        int alone = i / 16; /* one micro-batch and stage, two stages, two micro-batches */
        struct stage s = distinct_stage ("llama-3-8b", 4, true);
        struct memest_stage apart, met;
        double step, params, backward;

        s.held.head = true;
        s.j.seq = i & 1 ? 64 : 8192;
        s.c.deg.dp = 2;
        s.c.zero = zero;
        s.j.global_batch = alone < 2 ? 4 : 8;
        s.c.deg.pp = alone == 1 ? 2 : 1;
        s.p.memory.bucket_bytes = 0;
        params =
            3 * workload_layer_params (&s.m, 4) + workload_head_params (&s.m, 4, false);
        apart =
            memory_of (&s); /* in bf16 a step has nothing unless the profile says so */
        s.p.gradients_freed = freed;
        s.j.precision = half ? PREC_FP16 : PREC_BF16;
        s.p.memory.step_bytes = half ? 3 : 30;
        step = (half ? 4 : 30) * params / (zero ? 2 : 1);
        met = memory_of (&s);
        backward = apart.activations_bytes + apart.logits_bytes;
        if (freed && alone == 0)
            backward -= met.gradients_bytes;
        backward = fmax (backward, step - apart.buffers_bytes);
        CLOSE (met.buffers_bytes, apart.buffers_bytes, 1e-12);
        CLOSE (met.activations_bytes + met.logits_bytes, fmax (0, backward), 1e-9);
        CLOSE (met.logits_bytes, fmin (apart.logits_bytes, fmax (0, backward)), 1e-9);
        assert_true (met.cached_bytes == 0);
    }
    /* Of experts there are as many shards as ranks that hold the same ones. */
    for (int zero = 0; zero < 2; zero++) {
        struct stage s = distinct_stage ("mixtral-8x7b", 1, false);
        struct workload_stage_params n;

        s.held = (struct workload_stage){.dense = 1, .expert = 2};
        s.j.seq = 1;
        s.c.deg.dp = 6;
        s.c.deg.ep = 2;
        s.c.zero = zero;
        s.p.memory.bucket_bytes = 0;
        s.p.memory.step_bytes = 30;
        n = workload_stage_params (&s.m, &s.c, &s.held);
        CLOSE (memory_of (&s).activations_bytes,
               30 * (zero ? n.dense / 6 + n.expert / 3 : n.dense + n.expert), 1e-9);
    }
}

/* What a stage of so many layers takes at least is no more than with any that it may have, with
 * experts or without, also where the optimizer's step is the peak. */
TEST (least_of_stages)
{
    for (int i = 0; i < 60; i++) {
        struct stage s = distinct_stage ("mixtral-8x7b", 1, false);
        struct memest_problem q = {&s.m, &s.j, &s.c, &s.p, MEMEST_LINKWISE, 0, 0};
        int layers[3] = {1 + i % 5, 1 + i / 5 % 4};
        struct memest_stage least, out;

        s.j.seq = i % 2 ? 1 : 4096;
        s.p.memory.step_bytes = i % 3 ? 40 : 0;
        s.m.layers = 12;
        s.m.dense_layers = i / 20 * 4;
        layers[2] = 12 - layers[0] - layers[1];
        s.c.deg.pp = 3;
        s.c.zero = 1;
        s.c.deg.dp = s.c.deg.ep = 4;
        for (int k = 0; k < 3; k++) {
            struct workload_stage held = workload_stage_of (&s.m, &s.c, layers, k);

            memest_stage (&q, k, &held, &out);
            memest_stage_least (&q, k, layers[k], &least);
            assert_true (least.peak_bytes <= out.peak_bytes * (1 + 1e-12));
            assert_true (least.activations_bytes <= out.activations_bytes * (1 + 1e-12));
        }
    }
}

/* A step's flat buffer lies beside what the allocator keeps of the backward pass. */
TEST (flat_step)
{
    for (int i = 0; i < 2; i++) {
        struct stage s = distinct_stage ("llama-3-8b", 4, true);
        struct memest_stage apart;
        double step, backward;

        s.j.seq = i ? 64 : 8192;
        apart = memory_of (&s);
        backward = apart.activations_bytes + apart.buffers_bytes;
        s.p.flat_step = true;
        s.p.memory.step_bytes = 6;
        step = 6 * 3 * workload_layer_params (&s.m, 4);
        assert_true ((step > backward) == (i == 1));
        CLOSE (memory_of (&s).cached_bytes, fmin (step, backward), 1e-9);
        s.p.memory.step_cached_bytes = 3;
        CLOSE (memory_of (&s).cached_bytes, fmin (step, backward) + step / 2, 1e-9);
        CLOSE (memory_of (&s).peak_bytes - apart.peak_bytes,
               1.25 * fmax (0, step - backward), 1e-6);
        s.c.zero = 3; /* whose step has no buffer of all gradients */
        apart = memory_of (&s);
        s.p.memory.step_cached_bytes = 0;
        CLOSE (apart.cached_bytes, memory_of (&s).cached_bytes, 1e-9);
    }
}

/* The host has the optimizer's state and its step; under ZeRO 3 weights, too, and the gradients of
 * a shard with them, or where the framework sends them on under ZeRO 2 and 3. */
TEST (offload)
{
    for (int i = 0; i < 32; i++) {
        int zero = i & 3;
        bool all = i & 4, sends = i & 8, lora = i & 16;
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        struct memest_stage before, out;
        bool weights = all && zero == 3, gradients = weights || (sends && zero >= 2);
        double n;

        s.c.deg.dp = 4;
        s.c.zero = zero;
        s.j.seq = 64;
        s.j.lora = lora;
        s.p.offloads_gradients = sends;
        before = memory_of (&s);
        s.p.memory.step_bytes = 30;
        s.c.offload = all ? OFFLOAD_ALL : OFFLOAD_OPTIMIZER;
        out = memory_of (&s);
        CLOSE (out.weights_bytes, weights ? 0 : before.weights_bytes, 1e-12);
        CLOSE (out.gradients_bytes, gradients ? 0 : before.gradients_bytes, 1e-12);
        assert_true (out.optimizer_bytes == 0);
        CLOSE (out.buffers_bytes, before.buffers_bytes, 1e-12);
        CLOSE (out.activations_bytes, before.activations_bytes, 1e-12);
        n = 3 * workload_layer_params (&s.m, 1);
        CLOSE (out.host_bytes,
               (weights ? 2 * n / 4 : 0) + (lora ? 0 : (12 + 4) * n / (zero ? 4 : 1)),
               1e-12);
        assert_true (before.host_bytes == 0);
    }
}

/* Inputs of recomputed layers go to the host but for the five that are on their way. */
TEST (checkpoints_away)
{
    for (int layers = 3; layers <= 9; layers += 3) {
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        double before, away = fmax (0, layers - 5) * 2 * 2048 * s.m.hidden;

        s.held.dense = layers;
        s.c.recompute = RECOMPUTE_FULL;
        before = memory_of (&s).activations_bytes;
        s.c.offload = OFFLOAD_CHECKPOINTS;
        CLOSE (before - memory_of (&s).activations_bytes + 1, away + 1, 1e-6);
        CLOSE (memory_of (&s).host_bytes, away, 1e-12);
        assert_true (memory_of (&s).optimizer_bytes > 0);
    }
}

/* Each column-parallel layer has a copy of its input: three of attention and two of a gated MLP,
 * one of a plain one, in place of the norms' outputs.  Without tensor parallelism none has. */
TEST (copied_inputs)
{
    for (int i = 0; i < 8; i++) {
        bool sp = i & 1, gated = i & 2, alone = i & 4;
        int t = alone ? 1 : gated ? 4 : 5;
        struct stage s =
            distinct_stage (gated ? "llama-3-8b" : "gpt2-xl", t, sp && !alone);
        double before = memory_of (&s).activations_bytes,
               copies = alone ? 0 : (gated ? 5 : 4) - 2 / (sp ? t : 1.0);

        s.p.copies_inputs = true;
        CLOSE (memory_of (&s).activations_bytes - before,
               3 * 2048 * 2 * copies * s.m.hidden, 1e-6);
    }
}

/* A scan over layers has all gradients beside what it keeps and the layer that it is at, not beside
 * the logits; of several micro-batches twice.  Kept whole, layers are twice what fused kernels
 * keep, and each weight is there in 16 bits once more. */
TEST (scanned_layers)
{
    for (int i = 0; i < 8; i++) {
        bool full = i & 1, sums = i & 2, longer = i & 4; /* whose logits are more */
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        double layer, kept, gradients, peak, scan;
        struct memest_stage m;

        s.j.global_batch = sums ? 8 : 2;
        s.j.seq = longer ? 65536 : 16;
        layer = memory_of (&s).activations_bytes / 3;
        s.held.head = s.p.gradients_freed = s.p.logits_freed = s.p.scanned_layers = true;
        s.c.recompute = full ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        m = memory_of (&s);
        kept = 4.0 * 2 * s.j.seq * s.m.hidden + /* final norm */
               3 * (full ? 2.0 * 2 * s.j.seq * s.m.hidden
                         : 2 * layer + 2 * workload_layer_params (&s.m, 1));
        scan = kept + (full ? 1.4 * layer : 0);
        gradients = s.p.memory.gradient_bytes * (3 * workload_layer_params (&s.m, 1) +
                                                 workload_head_params (&s.m, 1, false));
        peak = fmax (kept + fmax (6.6 * 2 * s.j.seq * s.m.vocab, full ? 1.4 * layer : 0),
                     gradients + scan);
        peak += sums ? gradients : 0;
        CLOSE (m.gradients_bytes + m.activations_bytes + m.logits_bytes,
               fmax (peak, gradients), 1e-9);
    }
}

/* What a scan keeps of layers that it does not recompute, of some as of all: weights in 16 bits are
 * whole below ZeRO 3, and none where products take what is kept. */
TEST (scanned_copies)
{
    for (int i = 0; i < 36; i++) {
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        int zero = i % 4, again = i / 4 % 3; /* of three layers */
        double e = i / 12 == 1 ? 2 : 1, layer, copy, kept;
        struct memest_stage m;

        s.j.precision = e > 1 ? PREC_FP32 : PREC_BF16;
        s.j.lora = i / 12 == 2;
        layer = memory_of (&s).activations_bytes / 3;
        copy = i < 12 ? 2 * workload_layer_params (&s.m, 1) / (zero == 3 ? 4 : 1) : 0;
        s.c.deg.dp = 4;
        s.c.zero = zero;
        s.p.scanned_layers = true;
        s.c.recompute = again ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        s.c.recompute_layers = again;
        kept = (3 - again) * (2 * layer + copy) + again * e * 2 * 2048 * s.m.hidden +
               (again ? 1.4 * layer : 0);
        m = memory_of (&s);
        CLOSE (m.activations_bytes, kept + m.gradients_bytes, 1e-9);
    }
}

/* A module of multi-token prediction keeps its layer's activations, or its input where all is
 * recomputed, six inputs and .6 of its logits. */
TEST (prediction)
{
    for (int full = 0; full < 2; full++) {
        struct stage s = distinct_stage ("llama-3-8b", 4, true);
        struct memest_stage none, one, more;
        double tensor = 2.0 * 2048 * s.m.hidden / 4, layer;

        s.c.recompute = full ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        none = memory_of (&s);
        s.held.dense++;
        more = memory_of (&s);
        s.held.dense--;
        layer = more.activations_bytes - none.activations_bytes;
        s.m.mtp_layers = 1;
        more = memory_of (&s);
        CLOSE (more.activations_bytes, none.activations_bytes,
               1e-12); /* no head, no module */
        s.held.head = true;
        one = memory_of (&s);
        s.m.mtp_layers = 0;
        none = memory_of (&s);
        CLOSE (one.logits_bytes, 1.6 * none.logits_bytes, 1e-12);
        CLOSE (one.activations_bytes - none.activations_bytes, layer + 6 * tensor, 1e-9);
        assert_true (one.optimizer_bytes > none.optimizer_bytes);
    }
}
