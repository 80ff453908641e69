/* What PyTorch's separate operations keep, as transformers and PEFT call them: norms of queries and
 * keys, adapters in fp32 beside frozen weights, a loss that is gone when layers are recomputed.
 * Written from docs/formulas.md with the constants of the profile; tests/calibrate/transformers.t
 * compares the sums with a GPU. */
#include "tests/lib/memory.h"

#define TOKENS (2 * 1024.0)

static struct stage stage_with (bool norms_fused)
{
    struct stage s = {.m = model_of ("llama-3-8b"),
                      .j = {.seq = 1024, .global_batch = 2, .precision = PREC_BF16},
                      .c = config_of (1, 1, 1, 2),
                      .p = profile_of ("fsdp"),
                      .held = {.dense = 3}};

    s.c.zero = 0;
    s.j.fused_norm = norms_fused ? CHOICE_YES : CHOICE_NO;
    s.p.memory.unfused_norm_bytes = 10;
    return s;
}

/* Gradients are freed: they are more than the activations of so few layers. */
static double activations_of (struct stage *s)
{
    s->p.gradients_freed = false;
    s->p.memory.step_bytes = 0;
    return memory_of (s).activations_bytes;
}

/* Their inputs, in 2 bytes, and half of what two norms keep besides. */
TEST (norms_of_queries_and_keys)
{
    for (int i = 0; i < 4; i++) {
        bool fused = i & 1, wide = i & 2;
        struct stage s = stage_with (fused);
        double heads = (s.m.heads + s.m.kv_heads) * (double) s.m.head_dim;
        double without = activations_of (&s);

        *(wide ? &s.m.wide_qk_norm : &s.m.qk_norm) = true;
        CLOSE (activations_of (&s) - without,
               3 * TOKENS * heads * (2 + (fused ? 0 : 10 / 2.0)), 1e-9);
    }
}

/* GELU by separate operations keeps three tensors more, under autocast twice as many bytes; none
 * where the MLP is one kernel, or gated. */
TEST (separate_gelu)
{
    for (int i = 0; i < 8; i++) {
        bool gated = i & 1, fused = i & 2, mixed = i & 4;
        struct stage s = stage_with (true);
        double without;

        s.m.gated_mlp = gated;
        s.j.fused_mlp = fused ? CHOICE_YES : CHOICE_NO;
        s.p.memory.gradient_bytes = mixed ? 4 : 2;
        without = activations_of (&s);
        s.m.separate_gelu = true;
        CLOSE (activations_of (&s) - without,
               gated || fused ? 0 : 3 * TOKENS * (mixed ? 12 : 6) * s.m.ffn, 1e-9);
    }
}

/* Adapters have a copy of 4 bytes of each input, of queries', keys' and values' too; a norm with
 * frozen weights keeps 2 bytes less, which they would be multiplied with. */
TEST (adapters)
{
    struct stage s = stage_with (false), fused = stage_with (true);
    double h = s.m.hidden, q = s.m.heads * (double) s.m.head_dim, copies;

    s.j.lora = fused.j.lora = true;
    CLOSE (activations_of (&s) - activations_of (&fused), 3 * TOKENS * (10 - 4) * h,
           1e-9);
    assert_true (s.p.fp32_adapters);
    copies = activations_of (&s);
    s.p.fp32_adapters = false;
    CLOSE (copies - activations_of (&s), 3 * TOKENS * (12 * h + 4 * q - 3 * h - 3 * q),
           1e-9);
    s.p.memory.unfused_norm_bytes = 3; /* less than that is nothing */
    CLOSE (activations_of (&s), activations_of (&fused) - 3 * TOKENS * (9 * h + q), 1e-9);
}

/* One layer is recomputed at a time, where the logits were: the larger of the two counts. */
TEST (recomputed_layer_or_logits)
{
    for (int few = 0; few < 2; few++) {
        struct stage s = stage_with (true);
        struct memest_stage beside, instead;
        double layer, less;

        layer = 1.3 * activations_of (&s) / 3;
        s.p.memory.recompute_workspace = .3;
        s.held.head = true;
        s.c.recompute = RECOMPUTE_FULL;
        s.p.memory.logit_bytes = few ? .5 : 12;
        s.p.logits_freed = false;
        beside = (activations_of (&s), memory_of (&s));
        s.p.logits_freed = true;
        instead = memory_of (&s);
        less = fmin (layer, s.p.memory.logit_bytes * TOKENS * s.m.vocab);
        CLOSE (beside.peak_bytes - instead.peak_bytes, less, 1e-9);
        CLOSE (instead.logits_bytes, beside.logits_bytes, 1e-12);
        assert_true ((less < layer) == (bool) few);
    }
}

/* Gradients begin with the only backward pass: at its end all are there but the first layer's,
 * which is in its backward pass, three tenths over what it keeps; of the smaller kind, where kinds
 * differ; and the embedding's, which a tied one has since the head's backward pass. */
TEST (first_layer_last)
{
    for (int i = 0; i < 8; i++) {
        bool mixed = i & 1, ends = i & 2, tied = i & 4;
        struct stage s = stage_with (true);
        double layer, large, small, all, table, kept;
        struct memest_stage got;

        s.m = model_of ("mixtral-8x7b");
        s.m.expert_every = mixed ? 2 : 1;
        s.m.tied = tied;
        s.held = (struct workload_stage){
            .dense = mixed ? 2 : 0, .expert = mixed ? 1 : 3, .embedding = ends};
        s.p.memory.recompute_workspace = .3;
        s.p.memory.step_bytes = 0;
        s.p.memory.bucket_bytes = 0;
        s.c.recompute = RECOMPUTE_FULL;
        s.c.micro_batch = s.j.global_batch = 32;
        s.p.gradients_freed = false;
        got = memory_of (&s);
        large = workload_stage_params (&s.m, &s.c, &(struct workload_stage){.expert = 1})
                    .expert +
                workload_stage_params (&s.m, &s.c, &(struct workload_stage){.expert = 1})
                    .dense;
        small = workload_stage_params (&s.m, &s.c, &(struct workload_stage){.dense = 1})
                    .dense;
        table = ends ? (double) s.m.vocab * s.m.hidden : 0;
        all = table + (mixed ? 2 * small + large : 3 * large);
        kept = 32 * 1024 * (3 * 2.0 * s.m.hidden + (ends ? 8 : 0)); /* and token ids */
        layer = got.activations_bytes - kept;
        s.p.gradients_freed = true;
        got = memory_of (&s);
        CLOSE (got.activations_bytes,
               layer - got.gradients_bytes *
                           ((mixed ? small : large) + (tied ? 0 : table)) / all,
               1e-9);
        assert_true (got.activations_bytes > layer + kept - got.gradients_bytes);
    }
}

/* With fp32 states on one rank: norms' results in fp32, copies for three products, or one of
 * GPT-2's, and two, or one of a plain MLP, and copies of all weights beside the states, but not in
 * the optimizer's step. */
TEST (autocast)
{
    for (int i = 0; i < 64; i++) {
        bool joined = i & 32, plain = i & 1, sharded = i & 2, pure = i & 4, tied = i & 8,
             lora = i & 16;
        struct stage s = stage_with (true);
        struct memest_stage with, without;
        double h = s.m.hidden, params, copies = (joined ? 1 : 3) + (plain ? 1 : 2);

        strcpy (s.m.type, joined ? "gpt2" : "llama");
        s.m.gated_mlp = !plain;
        s.p.gradients_freed = false;
        s.p.memory.step_bytes = 0;
        s.p.memory.gradient_bytes = pure ? 2 : 4;
        s.j.global_batch = 4;
        s.c.deg.dp = 2;
        s.c.zero = sharded ? 2 + plain : 1;
        s.m.tied = tied;
        s.j.lora = lora;
        s.held.embedding = s.held.head = true;
        s.p.memory.bucket_bytes = 0;
        /* The embedding is looked up; where it is the head's too, that reads it. */
        params =
            3 * workload_layer_params (&s.m, 1) + workload_head_params (&s.m, 1, false);
        with = memory_of (&s);
        s.p.autocast_copies = false;
        without = memory_of (&s);
        if (sharded || pure || lora)
            copies = params = 0;
        /* One copy for each of two norms is counted anyway. */
        CLOSE (with.activations_bytes - without.activations_bytes,
               copies > 0 ? 3 * TOKENS * 2 * h * (2 + copies - 2) : 0, 1e-9);
        CLOSE (with.buffers_bytes - without.buffers_bytes, 2 * params, 1e-9);
        s.p.autocast_copies = true;
        s.p.memory.step_bytes = 1000;
        with = memory_of (&s);
        s.p.autocast_copies = false;
        CLOSE (with.peak_bytes, memory_of (&s).peak_bytes, 1e-9);
    }
}
