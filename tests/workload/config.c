/* Configurations: what fits model and job, what is said when not, ranks' coordinates. */
#include "mapper/problem.h"
#include "tests/lib/fields.h"

TEST (faults)
{
    struct workload_model m = model_of ("llama-2-70b");
    struct workload_job j = {.seq = 4096, .global_batch = 96};
    struct workload_config good = config_of (8, 4, 4, 2);
    const struct {
        size_t offset;
        int value;
        const char *says;
    } bad[] = {
        {offsetof (struct workload_config, deg.tp), 3,
         "tp 3 does not divide 64 attention heads (1, 2, 4, 8, 16, 32, 64 would)"},
        {offsetof (struct workload_config, deg.pp), 81,
         "pp 81: llama-2-70b has 80 layers"},
        {offsetof (struct workload_config, deg.dp), 5,
         "dp 5 does not divide 96 sequences of the global batch"},
        {offsetof (struct workload_config, micro_batch), 5,
         "micro-batch 5 does not divide 24 sequences of a data-parallel replica"},
        {offsetof (struct workload_config, deg.cp), 3, "cannot be split"},
        {offsetof (struct workload_config, deg.ep), 2, "has no experts"},
        {offsetof (struct workload_config, deg.vpp), 2,
         "vpp 2: the 1f1b schedule has one chunk a stage"},
        {offsetof (struct workload_config, zero), 4, "expected 0 to 3"},
        {offsetof (struct workload_config, deg.tp), 0, "tp: expected 1 to"},
        {offsetof (struct workload_config, micro_batch), -1, "micro-batch: expected 1"}};
    struct error err = {""};

    ok (workload_config_check (&m, &j, &good, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct workload_config c = good;

        *(int *) (void *) ((char *) &c + bad[i].offset) = bad[i].value;
        if (bad[i].offset == offsetof (struct workload_config, deg.tp))
            c.deg.etp = c.deg.tp;
        expect (workload_config_check (&m, &j, &c, &err), &err, bad[i].says);
        assert_int_equal (workload_config_check (&m, &j, &c, NULL), ST_INVALID);
    }
}

/* Linear mixers: what splits them and what does not. */
TEST (mixers)
{
    static const struct {
        const char *model;
        int tp, cp;
        const char *says; /* NULL: possible */
    } of[] = {
        {"nemotron-nano-9b-v2", 8, 1, NULL},
        {"nemotron-nano-9b-v2", 5, 1,
         "tp 5 does not divide 8 groups of the state-space layers (1, 2, 4, 8 would)"},
        {"mamba2-2.7b", 1, 1, NULL},
        {"mamba2-2.7b", 2, 1,
         "tp 2 does not divide 1 groups of the state-space layers (1 would)"},
        {"mamba2-2.7b", 1, 2, "cp 2: context parallelism is not modelled"},
        {"qwen3-next-80b-a3b", 2, 1, NULL},
        {"qwen3-next-80b-a3b", 32, 1,
         "tp 32 does not divide 16 key heads of the linear attention"}};
    struct workload_job j = {.seq = 4096, .global_batch = 96}, adapted = {0};
    struct error err = {""};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct workload_model m = model_of (of[i].model);
        struct workload_config c = config_of (of[i].tp, 1, 4, 1);

        c.deg.cp = of[i].cp;
        expect (workload_config_check (&m, &j, &c, &err), &err, of[i].says);
        adapted = j;
        adapted.lora = true;
        expect (workload_job_check (&m, &adapted, &err), &err, "LoRA: not modelled for");
    }
}

/* Degrees that are each possible, together more GPUs than can be counted. */
TEST (too_many_gpus)
{
    struct workload_model m = model_of ("llama-2-70b");
    struct workload_job j = {.seq = 1 << 30, .global_batch = 1 << 30};
    struct workload_config c = config_of (1, 1, 1 << 24, 1);
    struct error err = {""};

    ok (workload_config_check (&m, &j, &c, &err), &err);
    c.deg.cp = 1 << 24;
    expect (workload_config_check (&m, &j, &c, &err), &err,
            "expected at most 16777216 ranks");
}

/* rank = tp_i + tp (cp_i + cp (dp_i + dp pp_i)), and back. */
TEST (coordinates)
{
    struct workload_degrees d = {
        .tp = 2, .pp = 3, .dp = 4, .cp = 2, .ep = 4, .etp = 2, .vpp = 1};

    for (int r = 0; r < workload_world (&d); r++) {
        struct workload_coords k = workload_coords_of (&d, r);

        assert_int_equal (r, k.tp + d.tp * (k.cp + d.cp * (k.dp + d.dp * k.pp)));
        assert_int_equal (k.ep, (k.cp + d.cp * k.dp) % d.ep);
        assert_true (k.tp < d.tp && k.cp < d.cp && k.dp < d.dp && k.pp < d.pp);
    }
}

TEST (even_layers)
{
    for (int n = 1; n < 40; n++)
        for (int pp = 1; pp <= n; pp++) {
            int layers[40], sum = 0, least = n, most = 0;

            workload_layers_even (n, pp, layers);
            for (int i = 0; i < pp; i++) {
                sum += layers[i];
                least = layers[i] < least ? layers[i] : least;
                most = layers[i] > most ? layers[i] : most;
            }
            assert_int_equal (sum, n);
            assert_true (most - least <= 1);
            /* The ends, which hold embedding and head, are never the larger ones unless
             * all but one are. */
            if (pp > 2 && n % pp > 0 && n % pp < pp - 1)
                assert_true (layers[0] == least && layers[pp - 1] == least);
        }
}

/* The public code of Aleph Alpha's framework cuts 43 modules (embedding, 40 layers, final
 * norm, head) into 22 + 21 and 11 + 11 + 11 + 10; DeepSpeed's "parameters" balances what
 * Llama-13B's layers and its matrices of 128,000 x 5,120 hold. */
TEST (partitions)
{
    static const struct {
        enum workload_partition by;
        int layers, pp, out[8];
    } known[] = {{PARTITION_MODULES, 40, 2, {21, 19}},
                 {PARTITION_MODULES, 40, 4, {10, 11, 11, 8}},
                 {PARTITION_MODULES, 60, 2, {31, 29}},
                 {PARTITION_MODULES, 60, 4, {15, 16, 16, 13}},
                 {PARTITION_MODULES, 40, 1, {40}},
                 {PARTITION_MODULES, 4, 4, {1, 1, 1, 1}},
                 {PARTITION_EVEN, 40, 4, {10, 10, 10, 10}},
                 {PARTITION_PARAMETERS, 40, 2, {20, 20}},
                 {PARTITION_PARAMETERS, 40, 4, {9, 11, 11, 9}},
                 {PARTITION_COST, 40, 4, {11, 11, 11, 7}}};
    struct workload_model m = model_of ("llama-2-13b");

    m.vocab = 128000;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int layers[8] = {0};

        m.layers = known[i].layers;
        workload_layers_split (&m, known[i].by, known[i].pp, layers);
        assert_memory_equal (layers, known[i].out, sizeof layers);
    }
    /* What DeepSpeed's partition_balanced returns for the parameters of these. */
    const struct {
        const char *model;
        int pp, out[8];
    } balanced[] = {{"llama-3-70b", 8, {9, 11, 11, 10, 10, 10, 10, 9}},
                    {"llama-2-7b", 6, {5, 6, 6, 5, 5, 5}},
                    {"llama-3-8b", 8, {2, 5, 5, 5, 5, 4, 4, 2}}};

    for (size_t i = 0; i < sizeof balanced / sizeof *balanced; i++) {
        struct workload_model own = model_of (balanced[i].model);
        int layers[8] = {0};

        assert_true (
            workload_layers_split (&own, PARTITION_PARAMETERS, balanced[i].pp, layers));
        assert_memory_equal (layers, balanced[i].out, sizeof layers);
    }
    for (int by = 0; by < WORKLOAD_PARTITIONS; by++)
        for (m.layers = 1; m.layers < 40; m.layers++)
            for (int pp = 1; pp <= m.layers; pp++) {
                int layers[40], sum = 0;

                workload_layers_split (&m, (enum workload_partition) by, pp, layers);
                for (int i = 0; i < pp; i++) {
                    assert_true (layers[i] >= 1);
                    sum += layers[i];
                }
                assert_int_equal (sum, m.layers);
            }
}

TEST (words)
{
    static const char all[] = "core_attn,layernorm,mlp,moe_act,mla_up_proj,moe,"
                              "shared_experts";
    static const char *const whole[] = {"none",   "selective", "full",
                                        "full:3", "mlp",       all};
    static const char *const bad[] = {
        "full:", "full:0",   "full:-2",   "full:99999999999",
        "some",  "mlp,some", "mlp,moe_a", ""};
    struct workload_config c = {0}, before;
    char buf[WORKLOAD_RECOMPUTE_TEXT];

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        assert_true (workload_recompute_parse (whole[i], &c));
        assert_string_equal (workload_recompute_text (&c, buf), whole[i]);
    }
    assert_true (workload_recompute_parse ("full:3", &c));
    assert_true (c.recompute == RECOMPUTE_FULL && c.recompute_layers == 3 &&
                 c.recompute_modules == 0);
    /* In any order, as Megatron writes them too. */
    assert_true (workload_recompute_parse ("moe_act, layernorm", &c));
    assert_string_equal (workload_recompute_text (&c, buf), "layernorm,moe_act");
    assert_int_equal (c.recompute, RECOMPUTE_SELECTIVE);
    assert_int_equal (c.recompute_layers, 0);
    before = c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false (workload_recompute_parse (bad[i], &c));
        assert_memory_equal (&c, &before, sizeof c);
    }
}

/* What the model has not, or the framework cannot do. */
TEST (memory_options)
{
    static const struct {
        const char *model, *profile, *recompute;
        int optimizer_bytes, zero;
        enum workload_precision precision;
        const char *says; /* NULL: it is offered */
    } cases[] = {
        {"llama-2-7b", "megatron-core", "mlp,core_attn", 8, 1, PREC_BF16, NULL},
        {"llama-2-7b", "megatron-core", "mlp,moe_act", 0, 1, PREC_BF16,
         "recompute moe_act: llama-2-7b has no such part"},
        {"mixtral-8x7b", "megatron-core", "mlp,moe", 0, 1, PREC_BF16,
         "recompute mlp: mixtral-8x7b has no such part"},
        {"mixtral-8x7b", "megatron-core", "shared_experts,mla_up_proj", 0, 1, PREC_BF16,
         "recompute mla_up_proj,shared_experts: mixtral-8x7b has no such part"},
        {"deepseek-v3", "megatron-core",
         "layernorm,mlp,moe_act,mla_up_proj,shared_experts", 6, 1, PREC_FP8, NULL},
        {"llama-2-7b", "fsdp", "mlp", 0, 3, PREC_BF16,
         "recompute mlp: profile fsdp does not offer it by itself (modules: none)"},
        {"llama-2-7b", "fsdp", "selective", 0, 3, PREC_BF16, NULL},
        {"llama-2-7b", "megatron-core", "none", 7, 1, PREC_BF16,
         "optimizer bytes 7: profile megatron-core offers 4, 6, 8, 10, 12"},
        {"llama-2-7b", "megatron-core", "none", 8, 0, PREC_BF16,
         "optimizer bytes 8 need zero 1 or more"},
        {"llama-2-7b", "megatron-core", "none", 12, 0, PREC_BF16, NULL},
        {"llama-2-7b", "megatron-core", "none", 8, 1, PREC_FP16,
         "optimizer bytes 8: they can be chosen in bf16, fp8 and fp4, not in fp16"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload_model m = model_of (cases[i].model);
        struct workload_profile p = profile_of (cases[i].profile);
        struct workload_job j = {
            .seq = 4096, .global_batch = 8, .precision = cases[i].precision};
        struct workload_config c = config_of (1, 1, 1, 1);
        struct error err = {""};
        enum status st;

        c.zero = cases[i].zero;
        c.optimizer_bytes = cases[i].optimizer_bytes;
        assert_true (workload_recompute_parse (cases[i].recompute, &c));
        st = workload_config_check (&m, &j, &c, &err);
        if (st == ST_OK)
            st = workload_config_offered (&m, &c, &p, &err);
        expect (st, &err, cases[i].says);
    }
}

/* What a framework keeps in the host's memory, of which configurations. */
TEST (offloads)
{
    static const struct {
        const char *profile, *word;
        int zero;
        enum workload_recompute recompute;
        int optimizer_bytes;
        const char *says;
    } t[] = {
        {"megatron-core", "none", 0, RECOMPUTE_NONE, 0, NULL},
        {"megatron-core", "optimizer", 1, RECOMPUTE_NONE, 0, NULL},
        {"megatron-core", "optimizer", 1, RECOMPUTE_NONE, 12, NULL},
        {"megatron-core", "optimizer", 1, RECOMPUTE_NONE, 6,
         "keeps 12 bytes a parameter, not optimizer bytes 6"},
        {"megatron-core", "all", 1, RECOMPUTE_NONE, 0,
         "offload all: profile megatron-core does not have it"},
        {"deepspeed", "optimizer", 2, RECOMPUTE_NONE, 0, NULL},
        {"deepspeed", "optimizer", 0, RECOMPUTE_NONE, 0, "needs zero 1 or more"},
        {"deepspeed", "all", 3, RECOMPUTE_NONE, 0, NULL},
        {"deepspeed", "all", 2, RECOMPUTE_NONE, 0, "under zero 3 alone, found zero 2"},
        {"fsdp", "optimizer", 3, RECOMPUTE_NONE, 0, "profile fsdp does not have it"},
        {"torchtune", "checkpoints", 3, RECOMPUTE_FULL, 0, NULL},
        {"torchtune", "checkpoints", 3, RECOMPUTE_SELECTIVE, 0,
         "none without recompute full"}};
    struct workload_model m = model_of ("llama-2-7b");
    enum workload_offload o;

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct workload_profile p = profile_of (t[i].profile);
        struct workload_config c = config_of (1, 1, 4, 1);
        struct error err = {""};

        assert_true (workload_offload_parse (t[i].word, &o));
        c.offload = o;
        assert_string_equal (workload_offload_name (o), t[i].word);
        c.zero = t[i].zero;
        c.recompute = t[i].recompute;
        c.optimizer_bytes = t[i].optimizer_bytes;
        expect (workload_config_offered (&m, &c, &p, &err), &err, t[i].says);
    }
    assert_false (workload_offload_parse ("disk", &o));
}

/* A profile's lists of memory options are read, written and read again. */
TEST (profile_options)
{
    struct workload_profile p = profile_of ("megatron-core");
    json_t *doc = workload_profile_to_json (&p, "again"), *bad;

    assert_true (p.recompute_modules == (1u << WORKLOAD_MODULES) - 1);
    assert_true (p.n_searched == 1 &&
                 p.optimizer_choices == (1 << 4 | 1 << 6 | 1 << 8 | 1 << 10));
    assert_int_equal (json_array_size (json_object_get (doc, "recompute_modules")),
                      WORKLOAD_MODULES);
    assert_string_equal (json_string_value (json_array_get (
                             json_object_get (doc, "recompute_searched"), 0)),
                         "mlp,moe_act,mla_up_proj");
    for (int i = 0; i < 5; i++) {
        static const char *const key[] = {"recompute_modules", "recompute_searched",
                                          "optimizer_bytes_offered", "zero_stages",
                                          "offload"};
        static const char *const value[] = {"[\"attention\"]", "[\"mlp\", \"\"]", "[64]",
                                            "[1, 4]", "[\"all\", \"none\"]"};
        static const char *const says[] = {
            "recompute_modules[0]", "recompute_searched[1]", "optimizer_bytes_offered[0]",
            "zero_stages[1]", "offload[1]"};
        struct workload_profile out;
        struct error err = {""};

        bad = json_deep_copy (doc);
        json_object_set_new (bad, key[i], json_loads (value[i], 0, NULL));
        expect (workload_profile_from_json (bad, "x", NULL, &out, NULL, &err), &err,
                says[i]);
        json_decref (bad);
    }
    json_decref (doc);
}

/* The stages that a framework has; an estimate's own is the profile's where that is free. */
TEST (zero_stages)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_profile titan = profile_of ("torchtitan"),
                            megatron = profile_of ("megatron-core");
    struct mapper_axes free_one = mapper_axes_free (), two = mapper_axes_free ();
    struct workload_config c = config_of (1, 1, 8, 1);
    struct error err = {""};

    assert_int_equal (titan.zero_stages, 1 << 0 | 1 << 2 | 1 << 3);
    assert_int_equal (megatron.zero_stages, 15);
    assert_int_equal (profile_of ("litgpt").zero_stages, 1 << 3); /* no 0 */
    for (c.zero = 0; c.zero <= 3; c.zero++)
        assert_int_equal (workload_config_offered (&m, &c, &titan, &err),
                          c.zero == 1 ? ST_INVALID : ST_OK);
    assert_non_null (strstr (err.text, "zero 1: profile torchtitan has no such stage"));
    mapper_axes_usual (&free_one, &titan, &c);
    assert_int_equal (c.zero, 3);
    mapper_axes_usual (&free_one, &megatron, &c);
    assert_int_equal (c.zero, 1);
    titan.zero_with_pipeline = 2;
    c.deg.pp = 2;
    mapper_axes_usual (&free_one, &titan, &c);
    assert_int_equal (c.zero, 2);
    titan.zero_with_pipeline = 1; /* which it has not */
    mapper_axes_usual (&free_one, &titan, &c);
    assert_int_equal (c.zero, 0);
    two.zero = 0;
    c.zero = 0;
    mapper_axes_usual (&two, &titan, &c);
    assert_int_equal (c.zero, 0);
}

/* Groups that shard are whole replicas with whole expert groups, where the framework has them. */
TEST (shards)
{
    static const struct {
        const char *profile;
        int zero, dp, ep, shard;
        const char *says; /* NULL: it may be */
    } t[] = {
        {"torchtitan", 3, 16, 1, 8, NULL},
        {"torchtitan", 2, 16, 1, 4, NULL},
        {"torchtitan", 3, 16, 8, 8, NULL},
        {"torchtitan", 3, 16, 8, 4, "etp 1 x ep 8 does not divide tp x cp x shard"},
        {"torchtitan", 3, 12, 1, 8, "shard 8 does not divide 12 data-parallel ranks"},
        {"torchtitan", 3, 4, 1, 8, "shard 8 does not divide 4 data-parallel ranks"},
        {"torchtitan", 0, 16, 1, 8, "shard 8: zero 0 shards nothing"},
        {"torchtitan", 0, 16, 1, 16, NULL},
        {"torchtitan", 3, 16, 1, 1, "shard 1: one rank keeps all, which is zero 0"},
        {"megatron-core", 1, 16, 1, 8, NULL},
        {"megatron-core", 2, 16, 1, 8, "shard 8 of dp 16: profile megatron-core"},
        {"deepspeed", 3, 16, 1, 8, "shards over all ranks under zero 3"}};
    const struct workload_model *m = workload_preset_find ("mixtral-8x7b");
    struct workload_job job = {.seq = 1024, .global_batch = 48};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct workload_config c = config_of (1, 1, t[i].dp, 1);
        struct workload_profile p = profile_of (t[i].profile);
        struct error err = {""};
        enum status st;

        c.zero = t[i].zero;
        c.deg.ep = t[i].ep;
        c.shard = t[i].shard;
        st = workload_config_check (m, &job, &c, &err);
        if (st == ST_OK)
            st = workload_config_offered (m, &c, &p, &err);
        expect (st, &err, t[i].says);
    }
}

/* What frameworks split, and what a profile that says nothing does. */
TEST (parallelism)
{
    static const struct {
        const char *profile;
        struct workload_degrees deg;
        int zero;
        bool sequence;
        const char *says; /* NULL: offered */
    } t[] = {
        {"megatron-core", {2, 2, 2, 2, 1, 2, 1}, 1, true, NULL},
        {"torchtitan", {2, 2, 2, 2, 1, 2, 1}, 3, true, NULL},
        {"fsdp", {1, 1, 8, 1, 1, 1, 1}, 3, false, NULL},
        {"fsdp", {1, 1, 8, 1, 1, 1, 1}, 0, false, "zero 0: profile fsdp has no such"},
        {"fsdp", {1, 1, 1, 1, 1, 1, 1}, 0, false, NULL}, /* nothing to shard */
        {"fsdp", {4, 1, 8, 1, 1, 4, 1}, 3, false, "tp 4: profile fsdp has no tensor"},
        {"litgpt", {1, 8, 1, 1, 1, 1, 1}, 0, false, "pp 8: profile litgpt has no pipe"},
        {"llm-c", {1, 1, 8, 1, 8, 1, 1}, 1, false, "ep 8: profile llm-c has no expert"},
        {"llm-c", {1, 1, 4, 2, 1, 1, 1}, 1, false, "cp 2: profile llm-c has no context"},
        {"torchtune", {2, 1, 4, 1, 1, 2, 1}, 3, true, NULL},
        {"torchtune", {1, 2, 4, 1, 1, 1, 1}, 0, false, "pp 2: profile torchtune"},
        /* What frameworks of 2022 had not yet. */
        {"megatron-lm", {2, 2, 2, 1, 1, 2, 1}, 1, true, NULL},
        {"megatron-lm",
         {2, 1, 2, 2, 1, 2, 1},
         1,
         true,
         "cp 2: profile megatron-lm has no"},
        {"megatron-v100",
         {1, 1, 8, 1, 1, 1, 1},
         2,
         false,
         "zero 2: profile megatron-v100"},
        {"aleph-alpha", {1, 1, 4, 2, 1, 1, 1}, 1, false, "cp 2: profile aleph-alpha"},
        {"deepspeed-t4", {1, 1, 8, 1, 8, 1, 1}, 1, false, "ep 8: profile deepspeed-t4"},
        {"nanotron", {2, 2, 2, 1, 1, 2, 1}, 1, true, NULL},
        {"nanotron", {1, 1, 8, 1, 1, 1, 1}, 2, false, "zero 2: profile nanotron"},
        {"deepspeed", {4, 1, 2, 1, 1, 4, 1}, 2, false, NULL},
        {"deepspeed", {4, 1, 2, 1, 1, 4, 1}, 3, false, "zero 3 with tp 4: profile"},
        {"deepspeed", {4, 1, 2, 1, 1, 4, 1}, 2, true, "sequence parallelism on: prof"},
        {"deepspeed", {1, 1, 8, 1, 4, 1, 1}, 2, false, NULL},
        {"deepspeed", {1, 1, 8, 1, 4, 1, 1}, 3, false, "zero 3 with ep 4: profile"},
        /* Ulysses: 64 heads, 8 of keys and values, and beside replicas alone */
        {"deepspeed", {1, 1, 2, 4, 1, 1, 1}, 3, false, NULL},
        {"deepspeed", {1, 1, 2, 16, 1, 1, 1}, 3, false, NULL},
        {"deepspeed", {1, 1, 2, 6, 1, 1, 1}, 3, false, "cp 6 does not divide 64"},
        {"deepspeed", {2, 1, 2, 2, 1, 2, 1}, 2, false, "beside tensor parallelism"},
        {"deepspeed", {1, 2, 2, 2, 1, 1, 1}, 1, false, "beside a pipeline"},
        {"deepspeed", {2, 2, 2, 1, 1, 2, 1}, 1, false, "one of them at a time"},
        {"deepspeed", {1, 1, 4, 2, 2, 1, 1}, 1, false, "one of them at a time"},
        {"deepspeed", {2, 1, 4, 1, 2, 2, 1}, 1, false, "one of them at a time"},
        {"deepspeed", {1, 1, 8, 1, 1, 1, 1}, 3, false, NULL}};
    struct workload_model m = model_of ("llama-2-70b");
    struct mapper_axes tp4 = mapper_axes_free ();
    struct workload_profile deepspeed = profile_of ("deepspeed");
    struct workload_config usual;

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct workload_config c = {.deg = t[i].deg,
                                    .micro_batch = 1,
                                    .zero = t[i].zero,
                                    .sequence_parallel = t[i].sequence};
        struct workload_profile p = profile_of (t[i].profile);
        struct error err = {""};

        expect (workload_config_offered (&m, &c, &p, &err), &err, t[i].says);
    }
    /* 60 heads, of keys and values 20: some ranks would have two of these, others one. */
    m.heads = 60;
    m.kv_heads = 20;
    assert_int_equal (
        workload_heads_exchanged (&m, &(struct workload_degrees){.cp = 30}, NULL),
        ST_INVALID);
    assert_int_equal (
        workload_heads_exchanged (&m, &(struct workload_degrees){.cp = 60}, NULL), ST_OK);
    m = model_of ("deepseek-v2-lite"); /* keys of 192, values of 128 */
    assert_int_equal (
        workload_heads_exchanged (&m, &(struct workload_degrees){.cp = 2}, NULL),
        ST_INVALID);
    tp4.tp = 4; /* what is free is as the framework has it */
    usual = mapper_axes_config (&tp4);
    mapper_axes_usual (&tp4, &deepspeed, &usual);
    assert_int_equal (usual.zero, 2);
    assert_false (usual.sequence_parallel);
}
