/* What replicas hold of weights and gradients before these are reduced: gathered layers, sums of
 * several micro-batches, buckets, and which of them are there with the logits. */
#include "tests/lib/memory.h"

/* Beside a pipeline ZeRO 3 keeps a stage's weights once they are gathered, and ZeRO 2 and 3 sum its
 * gradients whole, also of the only micro-batch and on the GPU where its shards are on the host. */
TEST (stays_beside_pipeline)
{
    for (int i = 0; i < 16; i++) {
        bool many = i & 1, by_layer = i & 8;
        int zero = i & 2 ? 3 : 2, pp = i & 4 ? 2 : 1;
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        double n = 3 * workload_layer_params (&s.m, 1), received;
        struct memest_stage out;

        s.c.deg.dp = 4;
        s.c.deg.pp = pp;
        s.c.zero = zero;
        s.j.global_batch = many ? 16 : 8; /* two sequences at once */
        s.p.memory.bucket_bytes = 0;
        s.p.gathers_by_layer = by_layer; /* the shard and a layer's gradients beside it */
        out = memory_of (&s);
        CLOSE (out.weights_bytes, 2 * n / (zero == 3 ? 4 : 1), 1e-9);
        CLOSE (out.gradients_bytes, 4 * n / (pp == 2 ? 1 : 4), 1e-9);
        received = pp == 2 ? 2 * 2.0 * 2 * s.j.seq * s.m.hidden : 0;
        CLOSE (out.buffers_bytes,
               received + 2 * n / 3 *
                              (zero == 3  ? pp == 2 ? 3 + 1 : 2 + 1
                               : by_layer ? 3.0 / 4 + 1
                                          : 0),
               1e-9);
        if (zero == 3) {
            s.c.offload = OFFLOAD_ALL;
            CLOSE (memory_of (&s).gradients_bytes, pp == 2 ? 4 * n : 0, 1e-9);
        }
    }
}

/* One rank gathers nothing. */
TEST (alone)
{
    struct stage s = distinct_stage ("llama-3-8b", 1, false);

    s.p.gathers_by_layer = true;
    s.p.memory.bucket_bytes = 0;
    s.j.global_batch = 8;
    for (s.c.zero = 2; s.c.zero <= 3; s.c.zero++)
        assert_true (memory_of (&s).buffers_bytes == 0);
}

/* FSDP that does not reduce before the last micro-batch holds whole gradients; frozen weights have
 * gradients where they share a flat parameter with adapters, and the gathered unit's as well. */
TEST (whole_gradients)
{
    for (int i = 0; i < 48; i++) {
        bool many = i & 1, lora = i & 2, frozen = i & 4, whole = i & 8;
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        int zero = 1 + i / 16;
        double n = 3 * workload_layer_params (&s.m, 1), each;
        struct memest_stage out;

        s.c.deg.dp = 4;
        s.c.zero = zero;
        s.j.global_batch = many ? 16 : 8; /* two sequences at once */
        s.j.lora = lora;
        s.p.frozen_gradients = frozen;
        s.p.whole_gradients = whole;
        out = memory_of (&s);
        /* Whole ones are as wide as gathered weights, shards' in fp32. */
        each = zero == 1 ? 4 : many && whole ? 2 : 4.0 / 4;
        CLOSE (out.gradients_bytes, lora && !(frozen && zero > 1) ? 0 : each * n, 1e-9);
        if (zero == 3)
            CLOSE (out.buffers_bytes, 2 * n / 3 * (lora && !frozen ? 2 : 3), 1e-9);
    }
    /* Experts are over as many ranks as hold the same ones; a layer has those that its ranks hold.
     */
    for (int i = 0; i < 4; i++) {
        int whole = i & 1, tp = i & 2 ? 2 : 1;
        struct stage s = distinct_stage ("mixtral-8x7b", tp, false);
        struct workload_stage_params n;
        struct memest_stage out;

        s.held = (struct workload_stage){.expert = 2};
        s.c.deg.dp = 6;
        s.c.deg.ep = 2;
        s.c.zero = 3;
        s.p.whole_gradients = whole;
        n = workload_stage_params (&s.m, &s.c, &s.held);
        out = memory_of (&s);
        CLOSE (out.gradients_bytes,
               whole ? 2 * (n.dense + n.expert) : 4 * (n.dense / 6 + n.expert / 3),
               1e-12);
        CLOSE (out.buffers_bytes, 2 * (2 + 1) * (n.dense + n.expert) / 2, 1e-9);
    }
}

/* Replicas' buckets hold DDP's gradients once more; one rank has none. */
TEST (buckets)
{
    for (int i = 0; i < 8; i++) {
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        double n = 3 * workload_layer_params (&s.m, 1);

        s.c.deg.dp = i & 1 ? 4 : 1;
        s.c.zero = i & 2 ? 1 : 0;
        s.j.global_batch = 8;
        s.p.bucket_copies = i & 4;
        CLOSE (memory_of (&s).gradients_bytes, 4 * n * (i == 5 ? 2 : 1), 1e-12);
    }
}

/* One rank has gathered nothing that could make room for ZeRO 2's gradients. */
TEST (alone_under_zero_2)
{
    struct stage s = distinct_stage ("llama-3-8b", 1, false);
    double before;

    s.p.gathers_by_layer = s.p.gradients_freed = true;
    s.p.memory.bucket_bytes = 0;
    s.j.seq = 64;
    s.j.global_batch = s.c.micro_batch;
    before = memory_of (&s).peak_bytes;
    s.c.zero = 2;
    CLOSE (memory_of (&s).peak_bytes, before, 1e-12);
}

/* FSDP's largest unit has gradients when the logits are gone, in whose place they are; ZeRO 2's
 * gradients come when gathered weights go. */
TEST (after_logits)
{
    for (int zero = 2; zero <= 3; zero++) {
        struct stage s = distinct_stage ("llama-3-8b", 1, false);
        struct memest_stage before, out;
        double unit = 2 * workload_layer_params (&s.m, 1);

        s.p.gathers_by_layer = true;
        s.p.memory.bucket_bytes = 0;
        s.p.memory.fragmentation = 1;
        s.c.deg.dp = 4;
        s.c.zero = zero;
        s.j.global_batch = 8;
        before = memory_of (&s);
        s.p.logits_freed = true;
        out = memory_of (&s);
        CLOSE (before.buffers_bytes - out.buffers_bytes, unit, 1e-9);
        CLOSE (out.activations_bytes - before.activations_bytes, unit,
               1e-9); /* no head */
        CLOSE (out.peak_bytes, before.peak_bytes, 1e-12);
        before = out;
        s.p.gradients_freed = true;
        out = memory_of (&s);
        CLOSE (before.peak_bytes - out.peak_bytes,
               zero == 2 ? before.gradients_bytes
                         : fmin (before.gradients_bytes, before.activations_bytes),
               1e-9);
    }
}
