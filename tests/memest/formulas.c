/* Memory: closed forms of a layer, bytes per parameter, kinds. */
#include "tests/lib/memory.h"

/* Korthikanti et al., arXiv 2205.05198: activations of a layer are s b h (34 + 5 a s / h)
 * (eq. 1), over t with tensor and sequence parallelism (eq. 4), 34 s b h / t with
 * selective recomputation, and s b h (10 + 24/t + 5 a s / (h t)) with tensor parallelism
 * alone (eq. 2).  Their softmax is fused.  Read off as what one more layer makes. */
TEST (korthikanti_layer)
{
    struct workload_model m = model_of ("gpt3-175b");
    struct workload_job j = {
        .seq = 2048, .global_batch = 8, .attention = ATTENTION_FUSED};
    double s = 2048, b = 2, h = m.hidden, a = m.heads, t = 8, sbh = s * b * h;
    const struct {
        int tp;
        bool sp;
        enum workload_recompute recompute;
        double bytes;
    } eq[] = {{1, false, RECOMPUTE_NONE, sbh * (34 + 5 * a * s / h)},
              {8, false, RECOMPUTE_NONE, sbh * (10 + 24 / t + 5 * a * s / (h * t))},
              {8, true, RECOMPUTE_NONE, sbh / t * (34 + 5 * a * s / h)},
              {8, true, RECOMPUTE_SELECTIVE, 34 * sbh / t}};

    for (size_t i = 0; i < sizeof eq / sizeof *eq; i++) {
        struct workload_config c = config_of (eq[i].tp, 1, 1, 2);

        c.sequence_parallel = eq[i].sp;
        c.recompute = eq[i].recompute;
        CLOSE (layer_of (&m, &j, &c, 0), eq[i].bytes, 1e-12);
    }

    /* Full recomputation keeps a layer's input alone: 2 s b h. */
    struct workload_config c = config_of (8, 1, 1, 2);

    c.sequence_parallel = false;
    c.recompute = RECOMPUTE_FULL;
    CLOSE (layer_of (&m, &j, &c, 0), 2 * sbh, 1e-12);
    /* Recomputing 2 of 9 layers keeps two inputs and the other layers whole. */
    c.recompute_layers = 2;
    CLOSE (layer_of (&m, &j, &c, 0), eq[1].bytes, 1e-12);
}

/* The last of the layers, of which DeepSeek's first ones have no experts. */
static double freed_of_layer (const struct workload_model *m,
                              const struct workload_job *j, int tp, const char *modules)
{
    struct workload_config c = config_of (tp, 1, 1, 1);
    double whole = layer_of (m, j, &c, 0);

    assert_true (workload_recompute_parse (modules, &c));
    return whole - layer_of (m, j, &c, 0);
}

/* What modules free of a layer (A19), in bytes a token. */
TEST (modules_free)
{
    struct workload_model v3 = model_of ("deepseek-v3"), m70 = model_of ("llama-3-70b");
    struct workload_job j = {.seq = 4096, .global_batch = 256};
    double imbalance = profile_of (WORKLOAD_PROFILE_DEFAULT).memory.expert_imbalance;
    double a = v3.heads, k = v3.top_k * imbalance, h = v3.hidden;
    const struct {
        const struct workload_model *m;
        const char *modules;
        int t;
        double bytes; /* a token */
    } cases[] = {
        {&v3, "mla_up_proj", 1,
         4 * a * (v3.nope_dim + v3.rope_dim) + 2 * a * v3.v_dim}, /* 131 KB */
        {&v3, "layernorm", 1, 2 * 2 * h},
        {&v3, "moe_act", 1, 2 * k * v3.expert_ffn},
        {&v3, "shared_experts", 1, 6.0 * v3.shared_ffn},
        {&v3, "moe", 1, k * (4 * h + 6 * v3.expert_ffn) + 6 * v3.shared_ffn},
        {&v3, "moe,moe_act,shared_experts", 1,
         k * (4 * h + 6 * v3.expert_ffn) + 6 * v3.shared_ffn},
        {&v3, "mlp,core_attn", 1, 0}, /* of layers with experts */
        {&m70, "mlp", 8, (2.0 * m70.hidden + 6.0 * m70.ffn) / 8},
        {&m70, "layernorm", 8, 0}, /* one kernel with the product */
    };

    CLOSE (cases[0].bytes, 131072.0, 1e-12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload_config c = config_of (cases[i].t, 1, 1, 1);
        double whole = layer_of (cases[i].m, &j, &c, 0);

        CLOSE (whole - freed_of_layer (cases[i].m, &j, cases[i].t, cases[i].modules),
               whole - cases[i].bytes * j.seq, 1e-12);
    }
    /* Norms that are kernels of their own are no part of the MLP, and keep more. */
    j.fused_norm = CHOICE_NO;
    CLOSE (freed_of_layer (&m70, &j, 8, "mlp"), 6.0 * m70.ffn / 8 * j.seq, 1e-9);
    CLOSE (freed_of_layer (&m70, &j, 8, "layernorm"),
           2 * (2 + 16 / 2.0) * m70.hidden / 8 * j.seq, 1e-9);
}

/* One layer is rebuilt at a time, where the logits do not need as much before. */
TEST (modules_rebuilt)
{
    struct workload_model m = model_of ("llama-3-70b");
    struct workload_job j = {.seq = 4096, .global_batch = 4};
    struct workload_config c = config_of (8, 4, 1, 1);
    double freed = 4096 * (2.0 * m.hidden + 6.0 * m.ffn) / 8, whole;

    whole = stage_of (&m, &j, &c, 0, 20).activations_bytes;
    assert_true (workload_recompute_parse ("mlp", &c));
    CLOSE (whole - stage_of (&m, &j, &c, 0, 20).activations_bytes, (4 * 20 - 1) * freed,
           1e-9);
}

/* Optimizer states of fewer bytes, sharded as the usual ones. */
TEST (optimizer_states)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 4096, .global_batch = 8};
    struct workload_config c = config_of (1, 1, 8, 1);
    double usual = stage_of (&m, &j, &c, 0, 32).optimizer_bytes;

    c.optimizer_bytes = 6;
    CLOSE (stage_of (&m, &j, &c, 0, 32).optimizer_bytes, usual / 2, 1e-12);
}

/* Bytes per parameter: 18 in bf16, 6 + 12/dp under ZeRO-1, 2 + 16/dp under 2, 18/dp
 * under 3 (Rajbhandari et al., arXiv 1910.02054, with fp32 gradients). */
TEST (model_states)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 128, .global_batch = 64};
    const double per_param[] = {18, 6 + 12 / 8.0, 2 + 16 / 8.0, 18 / 8.0};

    for (int zero = 0; zero <= 3; zero++) {
        struct workload_config c = config_of (1, 1, 8, 1);
        struct memest_stage s;

        c.zero = zero;
        s = stage_of (&m, &j, &c, 0, m.layers);
        CLOSE (s.weights_bytes + s.gradients_bytes + s.optimizer_bytes,
               per_param[zero] * workload_model_params (&m), 1e-12);
    }
}

/* fp16: 2 + 2 + 12, and 4 in the step; fp32 and tf32: 4 + 4 + 8; fp8 keeps bf16 weights and fp8
 * copies, 2 + 2, with fp32 gradients and a 12-byte optimizer (Megatron-Core, distributed
 * optimizer); fp4 copies of .56 bytes where mxfp8 has 1.03. */
TEST (precisions)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_config c = config_of (1, 1, 1, 1);
    const struct {
        enum workload_precision precision;
        double weight, gradient, optimizer;
    } per[] = {{PREC_FP16, 2, 2, 12},
               {PREC_FP32, 4, 4, 8},
               {PREC_TF32, 4, 4, 8},
               {PREC_FP8, 4, 4, 12},
               {PREC_FP4, 4 - 2 * (1.03 - .56), 4, 12}};
    double n = workload_model_params (&m);

    c.zero = 0;
    for (size_t i = 0; i < sizeof per / sizeof *per; i++) {
        struct workload_job j = {.seq = 128, .global_batch = 64};
        struct memest_stage s;

        j.precision = per[i].precision;
        s = stage_of (&m, &j, &c, 0, m.layers);
        CLOSE (s.weights_bytes, per[i].weight * n, 1e-12);
        CLOSE (s.gradients_bytes, per[i].gradient * n, 1e-12);
        CLOSE (s.optimizer_bytes, per[i].optimizer * n, 1e-12);
    }
}

/* Megatron-LM's functional tests, 7B GPT, tp 4 pp 1 dp 2 with the distributed optimizer:
 * 12 bytes per parameter (alloc_bytes of gpt3_7b_tp4_pp1 less 0.07 to 0.1 GiB). */
TEST (distributed_optimizer)
{
    struct workload_model m = model_of ("gpt3-6.7b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (4, 1, 2, 1);
    struct workload_stage held = workload_stage_guess (&m, &c, 0, m.layers);
    struct memest_stage s = stage_of (&m, &j, &c, 0, m.layers);

    CLOSE (s.weights_bytes + s.gradients_bytes + s.optimizer_bytes,
           12 * workload_stage_params (&m, &c, &held).dense, 1e-12);
}

/* Vocabulary-parallel logits fall with tp; gathered ones do not. */
TEST (logits)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 8192, .global_batch = 8};
    struct workload_config one = config_of (1, 1, 1, 1), eight = config_of (8, 1, 1, 1);
    double split, whole;

    split = stage_of (&m, &j, &one, 0, 32).logits_bytes /
            stage_of (&m, &j, &eight, 0, 32).logits_bytes;
    assert_true (split > 7.9 && split < 8.1); /* but for the padding */
    j.gathered_logits = CHOICE_YES;
    whole = stage_of (&m, &j, &one, 0, 32).logits_bytes /
            stage_of (&m, &j, &eight, 0, 32).logits_bytes;
    assert_true (whole <= 1);
}

/* What a fused kernel does not keep, and what recomputing the scores drops. */
TEST (kernels)
{
    struct workload_model llama = model_of ("llama-2-7b"), gpt = model_of ("gpt3-6.7b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (1, 1, 1, 1);
    double base, sbh = 2048.0 * 4096;

    base = layer_of (&llama, &j, &c, 0);
    j.fused_mlp = CHOICE_YES;
    assert_true (layer_of (&llama, &j, &c, 0) <= base);
    j.fused_mlp = CHOICE_NO;
    base = layer_of (&llama, &j, &c, 0);
    j.fused_norm = CHOICE_NO;
    assert_true (layer_of (&llama, &j, &c, 0) >= base);
    j = (struct workload_job){.seq = 2048, .global_batch = 8};
    base = layer_of (&gpt, &j, &c, 0);
    j.attention = ATTENTION_FUSED;
    /* 5 a s^2 b of scores instead of a log-sum-exp per row. */
    CLOSE (layer_of (&gpt, &j, &c, 0) - base, 5 * 32 * 2048.0 * 2048 - 4 * 32 * 2048.0,
           1e-9);
    c.recompute = RECOMPUTE_SELECTIVE;
    CLOSE (layer_of (&gpt, &j, &c, 0), 34 * sbh, 1e-12);
}

/* A framework without fused norms means its RMS norms, 16 s b h more here; PyTorch's
 * LayerNorm is one kernel unless the job says otherwise. */
TEST (norm_kernels)
{
    static const struct {
        const char *model;
        double more[3]; /* of s b h: by the profile, fused, not fused */
    } known[] = {{"llama-2-7b", {16, 0, 16}}, {"gpt3-6.7b", {0, 0, 16}}};
    struct workload_profile p = profile_of ("aleph-alpha");

    for (size_t i = 0; i < 2; i++)
        for (int choice = 0; choice < 3; choice++) {
            static const enum workload_choice choices[] = {CHOICE_PROFILE, CHOICE_YES,
                                                           CHOICE_NO};
            struct workload_model m = model_of (known[i].model);
            struct workload_job j = {
                .seq = 2048, .global_batch = 8, .fused_norm = CHOICE_YES};
            struct workload_config c = config_of (1, 1, 1, 1);
            struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
            struct workload_stage one = {.dense = 1};
            struct memest_stage fused, now;

            memest_stage (&q, 0, &one, &fused);
            j.fused_norm = choices[choice];
            memest_stage (&q, 0, &one, &now);
            CLOSE (now.activations_bytes - fused.activations_bytes,
                   known[i].more[choice] * 2048 * 4096, 1e-9);
        }
}

/* Under sequence parallelism a column-parallel layer's input is gathered: Megatron gathers
 * it again in backward (eq. 4 divides all of a layer by t), plain autograd keeps it whole,
 * 2 s b h for attention and for the MLP, of which 1/t is counted with the norms. */
TEST (kept_gathers)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (4, 1, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    struct workload_stage one = {.dense = 1};
    struct memest_stage again, kept;

    for (int sp = 0; sp < 2; sp++) {
        c.sequence_parallel = sp;
        p.keeps_gathered = false;
        memest_stage (&q, 0, &one, &again);
        p.keeps_gathered = true;
        memest_stage (&q, 0, &one, &kept);
        CLOSE (kept.activations_bytes - again.activations_bytes,
               sp * 4.0 * (1 - 0.25) * 2048 * 4096, 1e-9);
    }
}

/* Grouped keys and values copied to all 32 heads are kept as such: 4 bytes for each of 24 more. */
TEST (repeated_heads)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (1, 1, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    struct workload_stage one = {.dense = 1};
    struct memest_stage grouped, copied;

    memest_stage (&q, 0, &one, &grouped);
    p.repeats_kv = true;
    memest_stage (&q, 0, &one, &copied);
    CLOSE (copied.activations_bytes - grouped.activations_bytes, 4.0 * 24 * 128 * 2048,
           1e-9);
}

/* A chunked loss keeps 2 bytes a logit and an eighth of the rest. */
TEST (chunked_loss)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (1, 1, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    struct workload_stage one = {.dense = 1, .head = 1};
    struct memest_stage whole, chunked;

    memest_stage (&q, 0, &one, &whole);
    p.chunked_loss = true;
    memest_stage (&q, 0, &one, &chunked);
    CLOSE (chunked.logits_bytes, whole.logits_bytes / 8 + 2.0 * 2048 * m.vocab, 1e-9);
}

/* ZeRO 3 gathers two layers at a time, keeps embedding and head gathered (PyTorch FSDP's
 * root), and holds the gradients of the largest of them until they are reduced. */
TEST (gathered_weights)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 64};
    struct workload_config c = config_of (1, 1, 8, 1), sharded = c;
    double layer = workload_layer_params (&m, 1);
    double root = workload_embedding_params (&m, 1) + workload_head_params (&m, 1, true);

    c.zero = 0;
    sharded.zero = 3;
    CLOSE (stage_of (&m, &j, &sharded, 0, 32).buffers_bytes -
               stage_of (&m, &j, &c, 0, 32).buffers_bytes,
           2 * (2 * layer + 2 * root), 1e-9);
    m.vocab = 1024;
    root = workload_embedding_params (&m, 1) + workload_head_params (&m, 1, true);
    CLOSE (stage_of (&m, &j, &sharded, 0, 32).buffers_bytes -
               stage_of (&m, &j, &c, 0, 32).buffers_bytes,
           2 * (3 * layer + root), 1e-9);
    j.lora = true; /* frozen weights have no gradients */
    CLOSE (stage_of (&m, &j, &sharded, 0, 32).buffers_bytes -
               stage_of (&m, &j, &c, 0, 32).buffers_bytes,
           2 * (2 * layer + root), 1e-9);
}

/* DeepSpeed has no more live, and no more gradients unreduced, than its limits and a matrix. */
TEST (live_parameters)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 64};
    struct workload_config c = config_of (1, 1, 8, 1), sharded = c;
    struct workload_profile limited = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double matrix = 4096 * 14336.0, table = 4096 * 128256.0;

    c.zero = 0;
    sharded.zero = 3;
    for (int i = 0; i < 2; i++) {
        double units = stage_of (&m, &j, &sharded, 0, 32).buffers_bytes, most;
        struct memest_problem p = {&m, &j, &sharded, &limited, MEMEST_LINKWISE, 0, 0};
        struct workload_stage all = workload_stage_guess (&m, &sharded, 0, 32);
        struct memest_stage s;

        limited.memory.live_params = 1e8;
        limited.memory.reduced_params = 5e7;
        memest_stage (&p, 0, &all, &s);
        most = i == 0 ? table : matrix;
        CLOSE (s.buffers_bytes - stage_of (&m, &j, &c, 0, 32).buffers_bytes,
               2 * (1.5e8 + 2 * most), 1e-9);
        limited.memory.live_params = limited.memory.reduced_params = 1e12;
        memest_stage (&p, 0, &all, &s);
        CLOSE (s.buffers_bytes, units, 1e-9);
        m.vocab = 1024;
    }
}

/* PEFT's adapters of queries, keys, values and output keep a byte for each input dropped out. */
TEST (dropped_adapters)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 2048, .global_batch = 64, .lora = true}, dropped = j;
    struct workload_config c = config_of (1, 1, 8, 1);
    struct workload_profile fp32 = profile_of ("fsdp"), half = profile_of ("nemo");

    dropped.lora_dropout = true;
    for (int i = 0; i < 2; i++) {
        struct memest_problem p = {&m, &j, &c, i == 0 ? &fp32 : &half, MEMEST_LINKWISE,
                                   0,  0};
        struct memest_problem q = p;
        struct workload_stage held = workload_stage_guess (&m, &c, 0, 32);
        struct memest_stage a, b;

        q.job = &dropped;
        memest_stage (&p, 0, &held, &a);
        memest_stage (&q, 0, &held, &b);
        CLOSE (b.activations_bytes - a.activations_bytes,
               i == 0 ? 32 * 2048 * 4 * 4096.0 : 0, 1e-9);
    }
}

/* Ulysses keeps attention's output twice and copies of keys and values, and has what it sends and
 * receives of one tensor instead of a ring's buffers. */
TEST (exchanged_heads)
{
    struct workload_model m = model_of ("llama-3-8b");
    struct workload_job j = {.seq = 8192, .global_batch = 64};
    struct workload_profile ring = profile_of (WORKLOAD_PROFILE_DEFAULT), all = ring;

    all.cp_all_to_all = true;
    for (int cp = 8; cp <= 16; cp *= 2) {
        struct workload_config c = config_of (1, 1, 2, 1);
        struct memest_problem p = {&m, &j, &c, &ring, MEMEST_LINKWISE, 0, 0}, q = p;
        struct workload_stage held = workload_stage_guess (&m, &c, 0, 32);
        double tokens = 8192.0 / cp;
        struct memest_stage a, b;

        c.deg.cp = cp;
        q.profile = &all;
        memest_stage (&p, 0, &held, &a);
        memest_stage (&q, 0, &held, &b);
        CLOSE (b.activations_bytes - a.activations_bytes,
               32 * tokens * (2 * 4096 + 4 * (cp - 8) * 128), 1e-9);
        CLOSE (b.buffers_bytes - a.buffers_bytes, 2 * tokens * (2 * 4096 - 8 * 8 * 128.0),
               1e-9);
    }
}

/* DeepSeek-V3's latent attention keeps a fraction of what 128 whole heads would. */
TEST (latent_attention)
{
    struct workload_model m = model_of ("deepseek-v3"), whole = m;
    struct workload_job j = {.seq = 4096, .global_batch = 8};
    struct workload_config c = config_of (1, 1, 1, 1);
    double tokens = 4096;

    whole.kv_rank = 0;
    whole.head_dim = 192;
    whole.kv_heads = 128;
    /* 4 q_rank + 2 (kv_rank + rope) + 2 kv_rank + 4 a (nope + rope) + 4 a v bytes a token,
     * against 4 a d of queries and 4 a d of keys and values. */
    CLOSE (layer_of (&whole, &j, &c, 0) - layer_of (&m, &j, &c, 0),
           tokens * (8 * 128 * 192 - (4 * 1536 + 2 * (512 + 64) + 2 * 512 +
                                      4 * 128 * 192 + 4 * 128 * 128)),
           1e-9);
}

/* Experts: parameters and their optimizer are split over ep; tokens are not. */
TEST (experts)
{
    struct workload_model m = model_of ("mixtral-8x7b");
    struct workload_job j = {.seq = 4096, .global_batch = 64};
    struct workload_config c = config_of (1, 1, 8, 1), split = c;
    struct memest_stage whole, part;
    double all = 32.0 * 8 * workload_expert_params (&m);

    split.deg.ep = 8;
    whole = stage_of (&m, &j, &c, 0, 32);
    part = stage_of (&m, &j, &split, 0, 32);
    CLOSE (whole.weights_bytes - part.weights_bytes, 2 * all * 7 / 8, 1e-12);
    /* Over ep 8 an expert is on one of eight ranks: nothing is left to shard it over. */
    CLOSE (whole.optimizer_bytes, part.optimizer_bytes, 1e-12);
    CLOSE (whole.activations_bytes, part.activations_bytes, 1e-12);
}
