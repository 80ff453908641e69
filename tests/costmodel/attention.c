/* Flash attention's time: what short sequences, few heads and narrow ones cost, windows, and
 * FlashAttention 1 (docs/formulas.md, T15, T20). */
#include "tests/lib/layers.h"

/* Forward and backward of composed profiles, from the type's constant: 320 and 1,000 tokens that
 * a kernel's start and end are worth, a block of 128 queries that a multiprocessor idles, over
 * what they are in 16,384 tokens of 16 heads; heads of 64 and less wait for their softmax, wider
 * ones are padded to 64s, of FlashAttention 2 to 32s; .93 of it all in training. */
TEST (shapes)
{
    static const struct {
        int seq, micro_batch, tp, width;
        bool second;
        double part;
    } t[] = {{1024, 2, 1, 128, false, 1},        {8192, 1, 4, 128, false, 1},
             {512, 8, 8, 128, true, 1},          {4096, 1, 1, 64, false, .75},
             {4096, 1, 1, 32, false, .375},      {4096, 1, 1, 64, true, .87},
             {2048, 2, 2, 96, false, 96 / 128.}, {2048, 2, 2, 96, true, 1},
             {2048, 2, 2, 80, false, 80 / 128.}, {2048, 2, 2, 80, true, 80 / 96.}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct setting s = layer_job ("llama-3-8b", t[i].tp, false, true);
        const struct topology_gpu_type *type = s.cluster->node[0].type;
        double heads = s.model.heads / (double) t[i].tp, seq = t[i].seq,
               rows = seq * t[i].micro_batch * heads,
               idle = 128.0 * type->multiprocessors;
        double e = t[i].second ? type->flash2_efficiency : type->flash_efficiency;
        double rate =
            type->bf16_flop_per_s * e * t[i].part * .93 * .5; /* the job's part */
        double flop = 2 * rows * seq * t[i].width;
        double here = (1 + idle / rows) / (1 + idle / (16384 * 16)) / (1 + 320 / 16384.0);
        struct costmodel_compute k;

        s.profile.compute_of_type = true;
        s.config.deg.dp = 8 / t[i].tp; /* no slower than the slowest of eight */
        s.profile.flash2 = t[i].second;
        s.job.seq = t[i].seq;
        s.config.micro_batch = t[i].micro_batch;
        s.model.head_dim = t[i].width;
        k = compute_of (&s);
        CLOSE (k.dense.attention_fwd_s, flop / rate * here * (1 + 320 / seq), 1e-9);
        CLOSE (k.dense.attention_back_s, 2.5 * flop / rate * here * (1 + 1000 / seq),
               1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* T15: a windowed layer has the pairs of its window and of a block of 128 keys, as fast as in a
 * sequence of twice as many; a layer's time is the mean over those with and without a window.
 * Model FLOPs count the window alone. */
TEST (windows)
{
    for (int composed = 0; composed < 2; composed++) {
        struct setting s = layer_job ("llama-3-8b", 1, false, true);
        double seq = s.job.seq, x = (256 + 128) / seq, near = 2 * (256 + 128);
        double fwd = composed ? (1 + 320 / near) / (1 + 320 / seq) : 1,
               back = composed ? (1 + 1000 / near) / (1 + 1000 / seq) : 1;
        double pairs = .25 * x * (2 - x), bare = 256 / seq;
        struct costmodel_compute all, k;
        double flop, less;

        s.profile.compute_of_type = composed;
        all = compute_of (&s);
        flop = costmodel_model_flop (&s.model, &s.job);
        s.model.window = 256;
        s.model.window_layers = 8; /* of 32 */
        k = compute_of (&s);
        CLOSE (k.dense.attention_fwd_s, (.75 + pairs * fwd) * all.dense.attention_fwd_s,
               1e-9);
        CLOSE (k.dense.attention_back_s,
               (.75 + pairs * back) * all.dense.attention_back_s, 1e-9);
        less = 12.0 * 8 * s.model.heads * s.model.head_dim * seq * seq *
               s.job.global_batch * (1 - bare * (2 - bare));
        CLOSE (flop - costmodel_model_flop (&s.model, &s.job), less, 1e-9);
        s.model.window_layers = 0;
        CLOSE (compute_of (&s).dense.attention_fwd_s, all.dense.attention_fwd_s, 1e-12);
        s.model.sinks = true;
        CLOSE (compute_of (&s).dense.attention_fwd_s,
               all.dense.attention_fwd_s * (composed ? 2 : 1), 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* FlashAttention 1 in composed profiles: so much of FlashAttention 2's rate, forward and backward,
 * whatever kernel the profile has. */
TEST (flash1)
{
    struct setting s = layer_job ("llama-3-8b", 1, false, true);
    struct costmodel_compute second, first;

    s.profile.compute_of_type = s.profile.flash2 = true;
    second = compute_of (&s);
    s.job.attention = ATTENTION_FLASH1;
    for (int k = 0; k < 2; k++) {
        s.profile.flash2 = k;
        first = compute_of (&s);
        CLOSE (first.dense.attention_fwd_s, second.dense.attention_fwd_s / .6, 1e-9);
        CLOSE (first.dense.attention_back_s, second.dense.attention_back_s / .5, 1e-9);
    }
    topology_cluster_destroy (s.cluster);
}

/* In fp32 and TF32 the memory-efficient kernel has .4 of a third of the TF32 peak, backward .82 of
 * that, in sequences of any length, also where FlashAttention 1 was asked for. */
TEST (wide)
{
    for (int i = 0; i < 4; i++) {
        struct setting s = layer_job ("llama-3-8b", 1, false, true);
        const struct topology_gpu_type *type = s.cluster->node[0].type;
        double seq = i & 1 ? 512 : 16384, flop,
               rate = .4 * type->tf32_flop_per_s / 3 * .5;
        struct costmodel_compute k;

        s.profile.compute_of_type = true;
        s.config.deg.dp = 8; /* no slower than the slowest of eight */
        s.job.precision = PREC_TF32;
        s.job.attention = i & 2 ? ATTENTION_FLASH1 : ATTENTION_FLASH;
        s.job.seq = (int) seq;
        flop = 2 * seq * s.config.micro_batch * seq * s.model.heads * s.model.head_dim;
        k = compute_of (&s);
        CLOSE (k.dense.attention_fwd_s, flop / rate, 1e-9);
        CLOSE (k.dense.attention_back_s, 2.5 * flop / rate / .82, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}
