/* The estimators of other authors give their papers' figures, and WTA-CRS its table. */
#include "tests/lib/fixture.h"

#include "memest/memest.h"

#define GIB 1073741824.0

/* Korthikanti et al., arXiv 2205.05198, table 3 models at sequence 2048, tp 8, the first
 * stage; GiB as the memory columns of their figures 1 and 7: states, then activations
 * with tensor parallelism alone, and with sequence parallelism and selective
 * recomputation. */
TEST (korthikanti)
{
    static const struct {
        const char *name;
        int layers, hidden, heads, pp, vpp, micro;
        double states, plain, selective;
    } known[] = {
        {"22B", 48, 6144, 64, 1, 1, 4, 45.5625, 59.25, 9.5625},
        {"175B", 96, 12288, 96, 8, 3, 1, 45.5625, 66.84375, 12.3515625},
        {"530B", 105, 20480, 128, 35, 3, 1, 31.640625, 114.0234375, 23.076171875},
        {"1T", 128, 25600, 160, 64, 1, 1, 32.958984375, 131.25, 26.5625}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_model m = model_of ("gpt3-175b");
        struct workload_job j = {
            .seq = 2048, .global_batch = 512, .attention = ATTENTION_FUSED};
        struct workload_config c = config_of (8, known[i].pp, 1, known[i].micro);
        struct workload_profile p = profile_of ("megatron-core");
        struct memest_problem q = {&m, &j, &c, &p, MEMEST_KORTHIKANTI, 0, 0};
        struct workload_stage held = {.dense = known[i].layers / known[i].pp,
                                      .embedding = true,
                                      .head = known[i].pp == 1};
        struct memest_stage e;
        double states;

        m.layers = known[i].layers;
        m.hidden = known[i].hidden;
        m.heads = m.kv_heads = known[i].heads;
        m.head_dim = m.hidden / m.heads;
        m.ffn = 4 * m.hidden;
        c.deg.vpp = known[i].vpp;
        if (c.deg.vpp > 1)
            c.schedule = SCHEDULE_INTERLEAVED;
        c.sequence_parallel = false;
        memest_stage (&q, 0, &held, &e);
        states = e.weights_bytes + e.gradients_bytes + e.optimizer_bytes;
        CLOSE (states / GIB, known[i].states, 1e-9);
        CLOSE (e.activations_bytes / GIB, known[i].plain, 1e-9);
        c.sequence_parallel = true;
        c.recompute = RECOMPUTE_SELECTIVE;
        memest_stage (&q, 0, &held, &e);
        CLOSE (e.activations_bytes / GIB, known[i].selective, 1e-9);
    }
}

static struct memest_stage fujii_stage (const struct workload_model *m,
                                        const struct workload_job *j,
                                        const struct workload_config *c, int stage)
{
    struct workload_profile p = profile_of ("megatron-core");
    struct memest_problem q = {m, j, c, &p, MEMEST_FUJII, 0, 0};
    struct workload_stage held =
        workload_stage_guess (m, c, stage, m->layers / c->deg.pp);
    struct memest_stage e;

    memest_stage (&q, stage, &held, &e);
    return e;
}

/* Fujii, Watanabe, Yokota, arXiv 2411.06465, by hand for Llama-2-7B: eq. 4 gives 18 bytes
 * a parameter, 6 + 12/dp with the distributed optimizer; eq. 12 gives a layer
 * s b h (12 + 4 k/a + 8 f/h) / (t c) bytes, here 4096 x 4096 x (12 + 4 + 21.5). */
TEST (fujii)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 4096, .global_batch = 1024};
    struct workload_config c = config_of (1, 1, 1, 1);
    struct memest_stage e;

    c.zero = 0;
    e = fujii_stage (&m, &j, &c, 0);
    CLOSE (e.weights_bytes + e.gradients_bytes + e.optimizer_bytes, 18.0 * 6738415616,
           1e-12);
    CLOSE (e.activations_bytes, 32 * 629145600.0, 1e-12);
    CLOSE (e.peak_bytes, 18.0 * 6738415616 + 32 * 629145600.0, 1e-12);
    c = config_of (1, 1, 64, 1);
    e = fujii_stage (&m, &j, &c, 0);
    CLOSE (e.weights_bytes + e.gradients_bytes + e.optimizer_bytes,
           (6 + 12 / 64.0) * 6738415616, 1e-12);
    c.zero = 0;
    e = fujii_stage (&m, &j, &c, 0);
    CLOSE (e.optimizer_bytes, 12.0 * 6738415616, 1e-12);

    /* 70B, tp 8, pp 4, micro-batch 2: stage 0 holds 4 micro-batches of 20 layers, each
     * 2 x 4096 x 8192 x (12 + 4/8 + 28) / 8 bytes; stage 3 holds one. */
    m = model_of ("llama-2-70b");
    c = config_of (8, 4, 4, 2);
    e = fujii_stage (&m, &j, &c, 0);
    CLOSE (e.activations_bytes, 4 * 20 * 339738624.0, 1e-12);
    CLOSE (fujii_stage (&m, &j, &c, 3).activations_bytes, 20 * 339738624.0, 1e-12);
    c.deg.cp = 2;
    CLOSE (fujii_stage (&m, &j, &c, 3).activations_bytes, 10 * 339738624.0, 1e-12);
    assert_true (e.logits_bytes == 0 && e.buffers_bytes == 0 && e.overhead_bytes == 0);
    /* Recomputed layers keep their input, whole on every rank; layers with experts count, too. */
    c.recompute = RECOMPUTE_FULL;
    CLOSE (fujii_stage (&m, &j, &c, 3).activations_bytes, 20 * 2.0 * 4096 * 2 * 8192 / 2,
           1e-12);
    m = model_of ("deepseek-v3");
    c = config_of (1, 1, 1, 1);
    e = fujii_stage (&m, &j, &c, 0);
    CLOSE (e.weights_bytes + e.gradients_bytes + e.optimizer_bytes,
           18.0 * workload_model_params (&m), 1e-12);
    CLOSE (e.activations_bytes,
           61 * 4096.0 * m.hidden *
               (12 + 4.0 * m.kv_heads / m.heads + 8.0 * m.ffn / m.hidden),
           1e-12);
}

/* Korthikanti's weights by hand, of grouped heads and a gated MLP: each layer has h (2 q + 2 kv)
 * and 3 h f, over tp; its states are 2, 4 and 12 bytes; full recomputation keeps 2 s b h of it. */
TEST (korthikanti_by_hand)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (4, 1, 1, 2);
    struct workload_profile p = profile_of ("megatron-core");
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_KORTHIKANTI, 0, 0};
    struct workload_stage held = {.dense = 3, .expert = 2};
    double n = 5 * (4096.0 * (2 * 4096 + 2 * 1024) + 3.0 * 4096 * 14336) / 4;
    struct memest_stage e;

    c.recompute = RECOMPUTE_FULL;
    for (int sp = 0; sp < 2; sp++) {
        c.sequence_parallel = sp;
        c.deg.cp = 1 + sp;
        memest_stage (&q, 0, &held, &e);
        CLOSE (e.weights_bytes, 2 * n, 1e-12);
        CLOSE (e.gradients_bytes, 4 * n, 1e-12);
        CLOSE (e.optimizer_bytes, 12 * n, 1e-12);
        CLOSE (e.activations_bytes, 5 * 2.0 * 2048 * 2 * 4096 / (sp ? 4 * 2 : 1), 1e-12);
    }
}

/* Liu et al., arXiv 2305.15265, table 2: GPU memory of T5 fine-tuning in GiB at batch 100
 * and 128 tokens; automatic mixed precision, hence fp32 weights and states.  The constants
 * of the profile were set on these twelve rows. */
TEST (wta_crs)
{
    static const struct {
        bool large, lora;
        double budget, gib;
    } known[] = {
        {false, false, 0, 17.66}, {false, true, 0, 13.84}, {false, false, .3, 8.44},
        {false, false, .1, 7.3},  {false, true, .3, 6.5},  {false, true, .1, 5.44},
        {true, false, 0, 45.85},  {true, true, 0, 36.83},  {true, false, .3, 21.58},
        {true, false, .1, 18.46}, {true, true, .3, 17.44}, {true, true, .1, 14.64}};
    struct workload_profile p = profile_of ("huggingface-amp");
    double full[2] = {0};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bool large = known[i].large;
        struct workload_model m = {.name = "t5",
                                   .type = "t5",
                                   .layers = large ? 24 : 12,
                                   .hidden = large ? 1024 : 768,
                                   .heads = large ? 16 : 12,
                                   .kv_heads = large ? 16 : 12,
                                   .head_dim = 64,
                                   .ffn = large ? 2816 : 2048,
                                   .vocab = 32128,
                                   .gated_mlp = true,
                                   .dropout = true,
                                   .norms = 2,
                                   .expert_every = 1};
        struct workload_job j = {.seq = 128,
                                 .global_batch = 100,
                                 .precision = PREC_FP16,
                                 .lora = known[i].lora,
                                 .wta_crs = known[i].budget};
        struct workload_config c = config_of (1, 1, 1, 100);
        struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
        struct workload_stage held;
        struct memest_stage e;

        m.decoder_layers = m.layers;
        c.zero = 0;
        held = workload_stage_guess (&m, &c, 0, m.layers);
        memest_stage (&q, 0, &held, &e);
        assert_true (e.logits_bytes == 0); /* of targets with a few tokens */
        if (fabs (e.peak_bytes / GIB / known[i].gib - 1) > 0.1)
            fail_msg ("row %zu: %.2f GiB, published %.2f", i, e.peak_bytes / GIB,
                      known[i].gib);
        if (!known[i].lora && known[i].budget == 0)
            full[large] = e.peak_bytes;
        /* The headline: 2.7 times less is LoRA and WTA-CRS together, at a budget of .3. */
        if (known[i].lora && known[i].budget == .3)
            assert_true (full[large] / e.peak_bytes > 2.4 &&
                         full[large] / e.peak_bytes < 3);
    }
}
