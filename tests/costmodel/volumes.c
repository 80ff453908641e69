/* What ranks send and when it shows, against sums written here from docs/formulas.md: volumes of
 * tensor parallelism and gradients, model FLOPs, visits, sends between stages. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel_private.h"

/* ---- T9 to T12: what ranks send ---- */

static struct setting job_of (const char *model, int tp, bool sp)
{
    struct setting s = small_job_as (cluster_of ("1x8 h100-sxm5-80g intra:400"), 4, 1024,
                                     64, config_of (tp, 1, 1, 2));

    s.model = model_of (model);
    s.config.sequence_parallel = sp;
    s.profile.memory.gradient_bytes = 4;
    return s;
}

static struct costmodel_volume volume_of (const struct setting *s)
{
    struct costmodel_volume v;

    costmodel_volume (&s->model, &s->job, &s->config, &s->profile, &v);
    return v;
}

TEST (tensors)
{
    static const struct {
        const char *model;
        double kv; /* keys and values of a token, over all ranks of tp 4 */
    } t[] = {{"llama-3-8b", 2 * 8 * 128},
             {"gpt2-xl", 2 * 25 * 64},
             {"deepseek-v3", 128 * (128 + 64 + 128)}};

    for (int i = 0; i < 12; i++) {
        bool sp = i & 1, wide = i & 2;
        int m = i / 4, tp = m == 1 ? 5 : 4;
        struct setting s = job_of (t[m].model, tp, sp);
        double tensor = (wide ? 4.0 : 2.0) * 1024 * 2 / 2 * s.model.hidden;
        struct costmodel_volume v;

        s.job.precision = wide ? PREC_FP32 : PREC_BF16;
        s.config.deg.cp = 2;
        v = volume_of (&s);
        CLOSE (v.tp_bytes, tensor, 1e-12);
        CLOSE (v.p2p_bytes, tensor / (sp ? tp : 1), 1e-12);
        CLOSE (v.cp_bytes, tensor / s.model.hidden * t[m].kv / tp, 1e-12);
        CLOSE (v.cp_back_bytes, 2 * v.cp_bytes, 1e-12);
        CLOSE (v.ep_bytes, m == 2 ? v.p2p_bytes : 0, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
    /* More ranks than keys' heads: each has one. */
    struct setting s = job_of ("llama-3-8b", 16, false);

    CLOSE (volume_of (&s).cp_bytes, 2.0 * 2048 * 2 * 128, 1e-12);
    s.profile.cp_by_pieces = true; /* copied to two queries' heads, gradients in fp32 */
    CLOSE (volume_of (&s).cp_bytes, 2.0 * 2048 * 2 * 2 * 128, 1e-12);
    CLOSE (volume_of (&s).cp_back_bytes, 3 * volume_of (&s).cp_bytes, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* A layer's all-to-alls: of queries, output, keys and values, of which each rank has a head. */
TEST (exchanged)
{
    struct setting s = job_of ("llama-3-8b", 1, false); /* 32 heads, 8 of keys */

    s.profile.cp_all_to_all = true;
    for (int cp = 4; cp <= 16; cp *= 4) {
        double kv = cp > 8 ? cp : 8, token = 2.0 * 128 * (2 * 32 + 2 * kv);

        s.config.deg.cp = cp;
        CLOSE (volume_of (&s).cp_bytes, 1024 * 2 / cp * token, 1e-12);
        CLOSE (volume_of (&s).cp_back_bytes, volume_of (&s).cp_bytes, 1e-12);
    }
    topology_cluster_destroy (s.cluster);
    s = job_of ("deepseek-v3", 1, false); /* 128 heads of 128 + 64, and 128 for values */
    s.profile.cp_all_to_all = true;
    s.config.deg.cp = 2;
    CLOSE (volume_of (&s).cp_bytes, 2048 / 2 * 2.0 * 128 * 2 * (128 + 64 + 128), 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* Bytes for each parameter by ZeRO, m micro-batches of L layers, as T10's table. */
TEST (gradients)
{
    struct setting s = job_of ("llama-3-8b", 1, false); /* 32 layers */
    const struct {
        int zero, pp;
        bool whole;
        double bytes, phases;
    } t[] = {{0, 1, false, 4, 0},         {1, 1, false, 4 + 2, 2},
             {1, 1, true, 8 + 2, 3},      {2, 1, false, 8 * 4 + 2, 9},
             {2, 1, true, 8 * 8 + 2, 17}, {3, 1, false, 8 * (4 + 4), 3 * 8 * 32},
             {2, 5, false, 4 + 2, 2},     {3, 5, false, 4 + 2, 2 * 7}};
    struct costmodel_volume v;

    s.config.micro_batch = 2;
    s.config.deg.dp = 4; /* 64 sequences: 8 micro-batches */
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        s.config.zero = t[i].zero;
        s.config.deg.pp = t[i].pp;
        s.profile.time.all_reduced_gradients = t[i].whole;
        s.profile.time.reduced_as_kept = t[i].zero == 2;
        v = volume_of (&s);
        CLOSE (v.dp_bytes, t[i].bytes, 1e-12);
        assert_true (v.dp_bare_bytes == (t[i].zero >= 2 && t[i].pp > 1 ? 4 : 0));
        assert_int_equal (v.dp_all_reduce, t[i].zero == 0);
        assert_true (v.dp_all_reduce || v.dp_phases == t[i].phases);
        assert_true (v.copy_phases == 0);
    }
    /* Under ZeRO 2 that is the optimizer's of 16-bit gradients alone. */
    s.config.zero = 2;
    s.config.deg.pp = 1;
    s.profile.time.all_reduced_gradients = true;
    s.profile.time.reduced_as_kept = false;
    CLOSE (volume_of (&s).dp_bytes, 8 * 4 + 2, 1e-12);
    s.profile.time.all_reduced_gradients = false;
    /* In fp16 nothing asks for sums in fp32; what fitted constants stand for stays. */
    s.job.precision = PREC_FP16;
    for (int composed = 0; composed < 2; composed++) {
        s.profile.compute_of_type = composed;
        CLOSE (volume_of (&s).dp_bytes, 8 * (composed ? 2 : 4) + 2, 1e-12);
        s.profile.time.all_reduced_gradients = true;
        s.config.zero = 1;
        CLOSE (volume_of (&s).dp_bytes, 2 * (composed ? 2 : 4) + 2, 1e-12);
        s.profile.time.all_reduced_gradients = false;
        s.config.zero = 2;
    }
    s.job.precision = PREC_BF16;
    CLOSE (volume_of (&s).dp_bytes, 8 * 4 + 2, 1e-12);
    s.profile.compute_of_type = false;
    s.config.zero = 2; /* weights at the step, or for every sum of gradients */
    s.config.deg.pp = 1;
    s.profile.gathers_at_step = true;
    assert_true (volume_of (&s).dp_bare_bytes == 2);
    s.profile.reduces_late = true; /* whole, without ZeRO; gradients beside a pipeline */
    assert_true (volume_of (&s).dp_bare_bytes == 2);
    for (s.config.zero = 0; s.config.zero < 2; s.config.zero++)
        for (s.config.deg.pp = 1; s.config.deg.pp <= 5; s.config.deg.pp += 4) {
            double bare = s.config.zero == 0 || s.config.deg.pp > 1 ? 4 : 0;

            assert_true (volume_of (&s).dp_bare_bytes == bare + 2 * s.config.zero);
        }
    s.config.zero = 2;
    s.config.deg.pp = 1;
    s.profile.reduces_late = false;
    s.profile.reduces_bare = true; /* each reduction, and no gather of ZeRO 3 */
    assert_true (volume_of (&s).dp_bare_bytes == 8 * 4 + 2);
    s.config.zero = 3;
    assert_true (volume_of (&s).dp_bare_bytes == 8 * 4);
    v = volume_of (&s);
    CLOSE (costmodel_sync_bare (&s.profile, &s.config, &v, 32), 4 / 8., 1e-12);
    s.profile.compute_of_type = true;
    CLOSE (costmodel_sync_bare (&s.profile, &s.config, &v, 32), 4 / 8., 1e-12);
    CLOSE (costmodel_sync_bare (&s.profile, &s.config, &v, 1), 1, 1e-12);
    s.profile.compute_of_type = s.profile.reduces_bare = false;
    s.config.zero = 2;
    s.profile.gathers_by_layer = true;
    CLOSE (volume_of (&s).dp_bytes, 8 * (4 + 2), 1e-12);
    assert_int_equal (volume_of (&s).dp_phases, 2 * 8 * 32);
    assert_true (volume_of (&s).dp_bare_bytes == 0);
    s.profile.whole_gradients = true;
    CLOSE (volume_of (&s).dp_bytes, 4 + 2, 1e-12);
    assert_int_equal (volume_of (&s).dp_phases, 2 * 32);
    s.config.zero = 3;
    CLOSE (volume_of (&s).dp_bytes, 4 + 8 * 4, 1e-12);
    assert_int_equal (volume_of (&s).dp_phases, (1 + 2 * 8) * 32);
    s.profile.whole_gradients = false;
    s.config.zero = 1;
    s.profile.time.all_reduced_gradients = true;
    s.profile.memory.gradient_bytes = 2;
    CLOSE (volume_of (&s).dp_bytes, 2 * 4 + 2, 1e-12);
    s.profile.time.reduced_as_kept = true;
    CLOSE (volume_of (&s).dp_bytes, 2 * 2 + 2, 1e-12);
    s.profile.time.all_reduced_gradients = false;
    s.profile.memory.gradient_bytes = 4;
    s.config.zero = 3;
    /* Adapters reduce nothing; their frozen weights are gathered. */
    s.job.lora = true;
    s.config.deg.pp = 5;
    CLOSE (volume_of (&s).dp_bytes, 2, 1e-12);
    assert_true (volume_of (&s).dp_bare_bytes == 0);
    s.config.deg.pp = 1;
    CLOSE (volume_of (&s).dp_bytes, 8 * 4, 1e-12);
    s.job.frozen_bytes = .5625; /* as they are */
    CLOSE (volume_of (&s).dp_bytes, 8 * 2 * .5625, 1e-12);
    s.job.frozen_bytes = 0;
    s.config.zero = 1;
    assert_true (volume_of (&s).dp_bytes == 0);
    topology_cluster_destroy (s.cluster);
}

/* What travels is as wide as what is kept, unless the framework casts it; in fp32 all of it is. */
TEST (widths)
{
    static const struct {
        enum workload_precision precision;
        int zero;
        double kept, reduced, bytes, tied;
    } t[] = {{PREC_BF16, 3, 2, 0, 8 * (4 + 2), 2}, {PREC_FP32, 3, 2, 0, 8 * (8 + 4), 4},
             {PREC_TF32, 3, 2, 0, 8 * (8 + 4), 4}, {PREC_FP32, 0, 2, 0, 4, 4},
             {PREC_FP32, 1, 2, 2, 4 + 4, 4},       {PREC_BF16, 3, 4, 2, 8 * (4 + 2), 4},
             {PREC_BF16, 0, 4, 2, 2, 4},           {PREC_BF16, 1, 2, 4, 4 + 2, 2}};
    struct setting s = job_of ("gpt2-xl", 1, false);

    s.config.micro_batch = 2;
    s.config.deg.dp = 4;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double table = (double) s.model.hidden * workload_padded_vocab (&s.model, 1);

        s.job.precision = t[i].precision;
        s.config.zero = t[i].zero;
        s.profile.memory.gradient_bytes = t[i].kept;
        s.profile.time.reduced_bytes = t[i].reduced;
        s.config.deg.pp = 1;
        CLOSE (volume_of (&s).dp_bytes, t[i].bytes, 1e-12);
        s.config.deg.pp = 4;
        CLOSE (volume_of (&s).tied_bytes, t[i].tied * table, 1e-12);
    }
    s.config.deg.pp = 1;
    s.config.zero = 1; /* an all-reduce that would be in fp32 */
    s.profile.time.all_reduced_gradients = true;
    s.profile.time.reduced_bytes = 2;
    CLOSE (volume_of (&s).dp_bytes, 2 * 2 + 2, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* Tensors cast before they are gathered: in fp8, and where they are gathered. */
TEST (cast_tensors)
{
    for (int i = 0; i < 8; i++) {
        bool sp = i & 1, fp8 = i & 2, casts = i & 4;
        struct setting s = job_of ("llama-3-8b", 4, sp);
        double tensor = volume_of (&s).tp_bytes;

        s.job.precision = fp8 ? PREC_FP8 : PREC_BF16;
        s.profile.gathers_fp8 = casts;
        CLOSE (volume_of (&s).tp_bytes, (sp && fp8 && casts ? .75 : 1.0) * tensor, 1e-12);
        topology_cluster_destroy (s.cluster);
    }
}

/* Weights gathered layer by layer: those of products in fp8, embedding and head as they are. */
TEST (cast_weights)
{
    for (int i = 0; i < 8; i++) {
        bool layers = i & 1, fp8 = i & 2, casts = i & 4;
        struct setting s = job_of ("llama-3-8b", 1, false);
        double bytes, tables = 2.0 * 128256 * 4096 / 8030261248.0;

        s.config.deg.dp = 4;
        s.config.zero = layers ? 3 : 1;
        s.profile.gathers_fp8 = casts;
        bytes = volume_of (&s).dp_bytes;
        s.job.precision = fp8 ? PREC_FP8 : PREC_BF16;
        if (layers && fp8 && casts) /* in both passes of each micro-batch */
            bytes -= 2.0 * workload_microbatches (&s.job, &s.config) * (1.0 - tables);
        CLOSE (volume_of (&s).dp_bytes, bytes, 1e-5);
        topology_cluster_destroy (s.cluster);
    }
}

/* DeepSpeed: beside Ulysses gradients travel in fp32 unless told otherwise; without ZeRO those of
 * bf16 are summed in fp32, and travel in bf16. */
TEST (deepspeeds_widths)
{
    struct setting s = job_of ("llama-2-7b", 1, false);

    s.profile = profile_of ("deepspeed");
    s.config.deg.dp = 4;
    for (s.config.deg.cp = 1; s.config.deg.cp <= 2; s.config.deg.cp++) {
        double bytes = s.config.deg.cp > 1 ? 4 : 2;

        s.config.zero = 0;
        CLOSE (volume_of (&s).dp_bytes, bytes, 1e-12);
        s.config.zero = 1; /* all-reduced, and weights gathered */
        CLOSE (volume_of (&s).dp_bytes, 2 * bytes + 2, 1e-12);
        s.profile.time.reduced_bytes = 2;
        CLOSE (volume_of (&s).dp_bytes, 2 * 2 + 2, 1e-12);
        s.profile.time.reduced_bytes = 0;
    }
    CLOSE (workload_gradient_bytes (&s.job, &s.config, &s.profile), 2, 1e-12);
    s.config.zero = 0;
    CLOSE (workload_gradient_bytes (&s.job, &s.config, &s.profile), 4, 1e-12);
    s.job.precision = PREC_FP16;
    CLOSE (workload_gradient_bytes (&s.job, &s.config, &s.profile), 2, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* All-reduces of a TP group: one for a layer's attention, one for its MLP, or for shared experts
 * and for the pairs that expert tensor parallelism gathers; the embedding's forward, the head's
 * backward.  What is recomputed comes again in backward, attention's with the whole layer alone. */
TEST (operations)
{
    static const struct {
        const char *model;
        int etp;
        unsigned modules; /* that are recomputed */
        double expert,
            again[2]; /* of a layer with experts; of one without, of one with */
    } t[] = {{"llama-3-8b", 8, 0, 0, {0, 0}},
             {"llama-3-8b", 8, 1u << MODULE_MLP, 0, {1, 0}},
             {"mixtral-8x7b", 1, 0, 1, {0, 0}},
             {"mixtral-8x7b", 4, 0, 1 + 2 * 4 / 8.0, {0, 0}},
             {"mixtral-8x7b", 4, 1u << MODULE_MOE, 1 + 2 * 4 / 8.0, {0, 2 * 4 / 8.0}},
             {"mixtral-8x7b", 4, 1u << MODULE_SHARED_EXPERTS, 1 + 2 * 4 / 8.0, {0, 0}},
             {"deepseek-v3", 1, 0, 2, {0, 0}},
             {"deepseek-v3", 2, 0, 2 + 8 * 2 / 8.0, {0, 0}},
             {"deepseek-v3", 2, 1u << MODULE_MOE, 2 + 8 * 2 / 8.0, {0, 1 + 8 * 2 / 8.0}},
             {"deepseek-v3", 2, 1u << MODULE_SHARED_EXPERTS, 2 + 8 * 2 / 8.0, {0, 1}},
             {"deepseek-v3", 2, 1u << MODULE_MLP, 2 + 8 * 2 / 8.0, {1, 0}}};

    for (size_t i = 0; i < 2 * sizeof t / sizeof *t; i++) {
        size_t k = i / 2;
        struct workload_model m = model_of (t[k].model);
        struct workload_config c = config_of (8, 1, 1, 1);
        int experts = m.experts > 0 ? 2 : 0;
        struct workload_stage held = {.dense = 3, .expert = experts};
        double once = 3 * 2 + experts * t[k].expert, fwd, back;

        held.embedding = i % 2;
        held.head = i % 2;
        m.mtp_layers = 0;
        c.deg.etp = t[k].etp;
        c.recompute = t[k].modules ? RECOMPUTE_SELECTIVE : RECOMPUTE_NONE;
        c.recompute_modules = t[k].modules;
        costmodel_tp_operations (&m, &c, &held, &fwd, &back);
        CLOSE (fwd, once + held.embedding, 1e-12);
        CLOSE (back, once + 3 * t[k].again[0] + experts * t[k].again[1] + held.head,
               1e-12);
    }
}

/* First and last stage sum the gradients of one matrix; not where they are one rank. */
TEST (tied_embeddings)
{
    struct setting s = job_of ("gpt2-xl", 5, false);
    double all = 4.0 * 1600 * workload_padded_vocab (&s.model, 5) / 5;

    assert_true (s.model.tied);
    for (int i = 0; i < 5; i++) {
        struct setting x = s;

        x.config.deg.pp = i == 1 ? 1 : 4;
        x.config.schedule = i == 2 ? SCHEDULE_ZBV : SCHEDULE_1F1B;
        x.job.lora = i == 3;
        x.model.tied = i != 4;
        CLOSE (volume_of (&x).tied_bytes, i == 0 ? all : 0, 1e-12);
    }
    topology_cluster_destroy (s.cluster);
}

/* T1: 6 for each matrix parameter and 12 L a d s a token. */
TEST (model_flop)
{
    struct workload_job j = {.seq = 1024, .global_batch = 3};
    struct workload_model llama = model_of ("llama-3-8b"), v3 = model_of ("deepseek-v3"),
                          gpt = model_of ("gpt2-xl");
    double tokens = 3 * 1024;

    CLOSE (costmodel_model_flop (&llama, &j),
           tokens * (6 * (workload_active_params (&llama) - 4096.0 * 128256) +
                     12.0 * 32 * 4096 * 1024),
           1e-12);
    CLOSE (costmodel_model_flop (&v3, &j),
           tokens * (6 * (workload_active_params (&v3) - 7168.0 * 129280) +
                     12.0 * 61 * 128 * (128 + 64 + 128) / 2 * 1024),
           1e-12);
    /* The tied table is the output's matrix; positions multiply nothing. */
    CLOSE (costmodel_model_flop (&gpt, &j),
           tokens * (6 * (workload_active_params (&gpt) - 1600.0 * 1024) +
                     12.0 * 48 * 1600 * 1024),
           1e-12);
    /* Multi-token prediction: its parameters, its attention, and a pass of the head's matrix. */
    v3.mtp_layers = 1;
    CLOSE (costmodel_model_flop (&v3, &j),
           tokens * (6.0 * workload_active_params (&v3) +
                     12.0 * 62 * 128 * (128 + 64 + 128) / 2 * 1024),
           1e-12);
    /* Frozen weights have no gradients: two products of three. */
    CLOSE (costmodel_trained_flop (&llama, &j), costmodel_model_flop (&llama, &j), 1e-12);
    j.lora = true;
    CLOSE (costmodel_model_flop (&llama, &j) - costmodel_trained_flop (&llama, &j),
           tokens * 2 * (workload_active_params (&llama) - 4096.0 * 128256), 1e-12);
    gpt.decoder_layers = 5; /* each attends to itself and to the encoder */
    CLOSE (costmodel_model_flop (&gpt, &j) -
               tokens * 6 * (workload_active_params (&gpt) - 1600.0 * 1024),
           tokens * 12.0 * (48 + 10) * 1600 * 1024, 1e-12);
}

/* T12, the chance of a visit, by trying every choice of a token. */
TEST (visits)
{
    for (int groups = 0; groups <= 4; groups += 2)
        for (int top = 0; top <= groups; top++)
            for (int k = 1; k <= 2; k++)
                for (int held = 1; held <= 8; held++) {
                    struct workload_model m = {.experts = 8,
                                               .top_k = k,
                                               .expert_groups = groups,
                                               .top_groups = top};
                    int size = groups ? 8 / groups : 8, all = 0, met = 0,
                        n = groups ? groups : 1;
                    double chance = 0;

                    /* Groups as likely as any; of theirs, experts as likely as any. */
                    for (int g = 0; g < 1 << n; g++) {
                        int of = 0, hit = 0;

                        if (__builtin_popcount (g) != (top ? top : n))
                            continue;
                        for (int e = 0; e < 1 << 8; e++) {
                            bool in = __builtin_popcount (e) == k;

                            for (int i = 0; i < 8; i++)
                                in = in && (!(e >> i & 1) || g >> i / size & 1);
                            of += in;
                            hit += in && e & ((1 << held) - 1);
                        }
                        all++;
                        chance += hit / (double) of;
                        met += hit > 0;
                    }
                    /* Held experts that fill no whole group are spread evenly over theirs. */
                    if (held % size == 0 || held < size || groups == 0)
                        CLOSE (costmodel_visit_chance (&m, held), chance / all, 1e-9);
                    assert_true (costmodel_visit_chance (&m, held) <= 1 + 1e-12 &&
                                 met <= all);
                }
}

/* T8, T9, T11, T12: single sends, and how much of each shows. */
TEST (sends)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct workload_config c = config_of (4, 2, 1, 1);
    struct costmodel_volume v = {0};
    double hidden;

    p.time.collective_s = 3;
    p.time.send_link = .5;
    p.time.link = .8;
    p.time.link_out = .25;
    p.time.overlap_slowdown = .1;
    CLOSE (costmodel_send_s (&p, 100, 10, 2), 3 + 2 + 20, 1e-12);
    CLOSE (costmodel_cp_hop_s (&p, 100, 10, 2), 3 + 2 + 10, 1e-12);
    assert_true (isinf (costmodel_send_s (&p, 1, 0, 0)) &&
                 isinf (costmodel_cp_hop_s (&p, 1, 0, 0)));
    CLOSE (costmodel_cp_exposed_s (4, false, 5, 8), 3 * (5 - 2), 1e-12);
    assert_true (costmodel_cp_exposed_s (4, false, 5, 24) == 0);
    CLOSE (costmodel_cp_exposed_s (4, true, 5, 8), 3 * 5 - 2, 1e-12);
    assert_true (costmodel_cp_exposed_s (4, true, 5, 60) == 0);
    CLOSE (costmodel_cp_exposed_s (2, true, 5, 6),
           costmodel_cp_exposed_s (2, false, 5, 6),
           1e-12); /* one step has one piece to hide under */
    /* Backward, keys and values of 10 B with gradients of 20 in three steps of 3 + 2 s more:
     * together under a fourth of attention each; or gathered under one, and the gradients, the last
     * bare. */
    v.cp_bytes = 10;
    v.cp_back_bytes = 30;
    CLOSE (costmodel_cp_back_s (&p, &v, 4, 10, 2, 8), 3 * (8 - 2), 1e-12);
    p.cp_by_pieces = true;
    CLOSE (costmodel_cp_back_s (&p, &v, 4, 10, 2, 8), 3 * 6 - 2 + 3 * (7 - 2) + 7, 1e-12);
    CLOSE (costmodel_cp_back_s (&p, &v, 4, 10, 2, 800), 7, 1e-12);
    /* All-to-alls of 8 ranks: 7 of 8 parts in a node; of 2 nodes each sends half to the other, for
     * four ranks at a time; with a rank a node all but one part. */
    struct costmodel_ring ring = {.inside_bytes_per_s = 10,
                                  .between_bytes_per_s = INFINITY,
                                  .latency_s = 7,
                                  .nodes = 1};

    CLOSE (costmodel_cp_exchange_s (&p, &ring, 8, 1, 80), 4 * (3 + 1) + 7 / .8, 1e-12);
    ring.nodes = 2;
    ring.between_bytes_per_s = 4;
    CLOSE (costmodel_cp_exchange_s (&p, &ring, 8, 2, 40), 8 * (3 + 1) + 40 / .8, 1e-12);
    ring.between_bytes_per_s = 400;
    CLOSE (costmodel_cp_exchange_s (&p, &ring, 8, 1, 80), 4 * (3 + 1) + 3 / .8, 1e-12);
    ring.nodes = 8;
    ring.inside_bytes_per_s = INFINITY;
    CLOSE (costmodel_cp_exchange_s (&p, &ring, 8, 1, 80), 4 * (3 + 1) + .175 / .8, 1e-12);
    ring.between_bytes_per_s = 0;
    assert_true (isinf (costmodel_cp_exchange_s (&p, &ring, 8, 1, 80)));
    CLOSE (costmodel_exchange_s (&p, 16, 1, 2), 3 + 2 + 16 / .8, 1e-12);
    CLOSE (costmodel_exchange_s (&p, 16, 8, 2), 3 + 2 + 32 / .8, 1e-12);

    p.time.dp_overlap = .5;
    CLOSE (costmodel_exposed_s (&p, 10, 8), 6 + .1 * 4, 1e-12);
    CLOSE (costmodel_exposed_s (&p, 3, 8), .1 * 3, 1e-12);
    p.time.tp_overlap = .5;
    for (int on = 0; on < 4 * (CHOICE_YES + 1);
         on++) { /* the profile's, or what the job says */
        struct workload_job j = {.tp_comm_overlap = (enum workload_choice) (on >> 2)};
        bool pieces = on >> 2 == CHOICE_YES || (on & 1 && on >> 2 != CHOICE_NO);

        p.time.tp_comm_overlap = on & 1;
        c.sequence_parallel = on & 2;
        pieces = pieces && on & 2;
        CLOSE (costmodel_tp_exposed_s (&p, &j, &c, 10, 4), pieces ? 6 + .4 : 10, 1e-12);
        CLOSE (costmodel_tp_exposed_s (&p, &j, &c, 10, 9), pieces ? 5 + .5 : 10, 1e-12);
    }
    c.deg.ep = 2;
    p.time.moe_overlap = 0;
    CLOSE (costmodel_ep_exposed_s (&p, &c, 8, 0, 10, 4, &hidden), 10, 1e-12);
    assert_true (hidden == 0);

    /* Windows and bare parts, T10. */
    c.deg.pp = 4;
    c.deg.vpp = 3;
    p.time.dp_chunks = true;
    c.schedule = SCHEDULE_INTERLEAVED;
    CLOSE (costmodel_sync_window (&p, &c, 8), 2.0 / 3 * 4, 1e-12);
    CLOSE (costmodel_sync_window (&p, &c, 3), 2, 1e-12);
    CLOSE (costmodel_sync_window (&p, &c, 1), 1, 1e-12);
    CLOSE (costmodel_sync_bare (&p, &c, &v, 12), 1.0 / 3, 1e-12);
    c.schedule = SCHEDULE_1F1B;
    CLOSE (costmodel_sync_window (&p, &c, 8), 1, 1e-12);
    assert_true (costmodel_sync_bare (&p, &c, &v, 12) == 0);
    p.compute_of_type = true;
    p.memory.gradient_bytes = 4;
    for (c.zero = 2; c.zero <= 3; c.zero++) { /* beside a pipeline once a step */
        c.deg.pp = 4;
        v = (struct costmodel_volume){.dp_bytes = 6, .dp_bare_bytes = 4};
        CLOSE (costmodel_sync_window (&p, &c, 8), 1, 1e-12);
        CLOSE (costmodel_sync_bare (&p, &c, &v, 12), 4.0 / 6, 1e-12);
        c.deg.pp = 1;
        v.dp_bare_bytes = 0;
        CLOSE (costmodel_sync_window (&p, &c, 8), 8, 1e-12);
        CLOSE (costmodel_sync_bare (&p, &c, &v, 12), c.zero == 3 ? 1.0 / 12 : 0, 1e-12);
    }
    c.zero = 2;
    p.gathers_by_layer = true;
    CLOSE (costmodel_sync_bare (&p, &c, &v, 12), 1.0 / 12, 1e-12);
    p.whole_gradients = true;
    CLOSE (costmodel_sync_window (&p, &c, 8), 1, 1e-12);
}
