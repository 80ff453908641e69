/* Models: published parameter counts, config.json fields, and every contradiction. */
#include "tests/lib/fixture.h"

#include "base/json.h"

/* Parameters as the weights on the Hugging Face hub count them; GPT-3's as its paper
 * rounds them. */
static void published_counts (void **state)
{
    static const struct {
        const char *name;
        double params, tolerance;
    } known[] = {
        {"gpt2-xl", 1557611200, 0},
        {"llama-2-7b", 6738415616, 0},
        {"llama-2-13b", 13015864320, 0},
        {"llama-2-70b", 68976648192, 0},
        {"llama-3-8b", 8030261248, 0},
        {"llama-3-70b", 70553706496, 0},
        {"llama-3-405b", 405853388800, 0},
        {"mistral-7b", 7241732096, 0},
        {"mixtral-8x7b", 46702792704, 0},
        {"mixtral-8x22b", 140620634112, 0},
        {"qwen2.5-7b", 7615616512, 0},
        {"qwen2.5-72b", 72706203648, 0},
        {"qwen3-235b-a22b", 235093634560, 0},
        {"qwen3-30b-a3b", 30532122624, 0},
        {"kimi-k2", 1026408232448, 0},
        {"deepseek-v2", 235741434880, 0},
        {"deepseek-v3", 671026419200, 0},      /* without its multi-token module */
        {"gpt-oss-120b", 116829156672, 0.001}, /* without biases of experts, sinks */
        {"gpt-neox-20b", 20554567680, 0},
        {"bloom-176b", 176247271424, 0},
        {"falcon-40b", 41303293952, 0},
        {"gpt3-6.7b", 6.7e9, 0.01},
        {"gpt3-13b", 13e9, 0.02},
        {"gpt3-175b", 175e9, 0.005}};
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_model m = model_of (known[i].name);
        double n = workload_model_params (&m);

        if (fabs (n - known[i].params) > known[i].tolerance * known[i].params + 0.5)
            fail_msg ("%s: %.0f parameters, published %.0f", known[i].name, n,
                      known[i].params);
    }
}

/* Families that no preset covers, from their published config.json; counts of the weights
 * on the Hugging Face hub. */
static void published_configs (void **state)
{
    static const struct {
        const char *name, *doc;
        double params;
    } known[] = {
#define LLAMA_LIKE(TYPE, H, L, A, K, F, V)                                          \
    "{\"model_type\":\"" TYPE "\",\"hidden_size\":" #H ",\"num_hidden_layers\":" #L \
    ",\"num_attention_heads\":" #A ",\"num_key_value_heads\":" #K                   \
    ",\"intermediate_size\":" #F ",\"vocab_size\":" #V
        {"llama-3.2-1b",
         LLAMA_LIKE ("llama", 2048, 16, 32, 8, 8192,
                     128256) ",\"tie_word_embeddings\":true}",
         1235814400},
        {"gemma-2b",
         LLAMA_LIKE ("gemma", 2048, 18, 8, 1, 16384, 256000) ",\"head_dim\":256}",
         2506172416},
        {"gemma-7b",
         LLAMA_LIKE ("gemma", 3072, 28, 16, 16, 24576, 256000) ",\"head_dim\":256}",
         8537680896},
        {"gemma-2-2b",
         LLAMA_LIKE ("gemma2", 2304, 26, 8, 4, 9216, 256000) ",\"head_dim\":256}",
         2614341888},
        {"gemma-2-9b",
         LLAMA_LIKE ("gemma2", 3584, 42, 16, 8, 14336, 256000) ",\"head_dim\":256}",
         9241705984},
        {"gemma-2-27b",
         LLAMA_LIKE ("gemma2", 4608, 46, 32, 16, 36864, 256000) ",\"head_dim\":128}",
         27227128320},
        {"qwen2-0.5b",
         LLAMA_LIKE ("qwen2", 896, 24, 14, 2, 4864,
                     151936) ",\"tie_word_embeddings\":true}",
         494032768},
        {"qwen3-0.6b",
         LLAMA_LIKE ("qwen3", 1024, 28, 16, 8, 3072,
                     151936) ",\"head_dim\":128,\"tie_word_embeddings\":true}",
         596049920},
        {"qwen3-8b",
         LLAMA_LIKE ("qwen3", 4096, 36, 32, 8, 12288, 151936) ",\"head_dim\":128}",
         8190735360},
        {"qwen3-30b-a3b",
         LLAMA_LIKE (
             "qwen3_moe", 2048, 48, 32, 4, 6144,
             151936) ",\"head_dim\":128,\"num_experts\":128,\"num_experts_per_tok\":8,"
                     "\"moe_intermediate_size\":768,\"decoder_sparse_step\":1,"
                     "\"mlp_only_layers\":[]}",
         30532122624},
        {"qwen1.5-moe-a2.7b",
         LLAMA_LIKE ("qwen2_moe", 2048, 24, 16, 16, 5632,
                     151936) ",\"num_experts\":60,\"num_experts_per_tok\":4,"
                             "\"moe_intermediate_size\":1408,"
                             "\"shared_expert_intermediate_size\":5632}",
         14315784192},
        {"deepseek-v2-lite",
         LLAMA_LIKE (
             "deepseek_v2", 2048, 27, 16, 16, 10944,
             102400) ",\"q_lora_rank\":null,\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,"
                     "\"qk_nope_head_dim\":128,\"v_head_dim\":128,\"n_routed_experts\":"
                     "64,"
                     "\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
                     "\"moe_intermediate_size\":1408,\"first_k_dense_replace\":1,"
                     "\"moe_layer_freq\":1}",
         15706484224},
        {"falcon-7b",
         "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_hidden_layers\":32,"
         "\"num_attention_heads\":71,\"vocab_size\":65024,\"multi_query\":true,"
         "\"parallel_attn\":true,\"new_decoder_architecture\":false,\"bias\":false}",
         6921720704},
        /* The same, and Falcon-40B, as they were published first. */
        {"falcon-7b, old",
         "{\"model_type\":\"RefinedWebModel\",\"hidden_size\":4544,\"n_layer\":32,"
         "\"n_head\":71,\"vocab_size\":65024,\"multi_query\":true,"
         "\"parallel_attn\":true,\"bias\":false}",
         6921720704},
        {"falcon-40b, old",
         "{\"model_type\":\"RefinedWeb\",\"hidden_size\":8192,\"n_layer\":60,"
         "\"n_head\":128,\"n_head_kv\":8,\"vocab_size\":65024,"
         "\"parallel_attn\":true,\"bias\":false}",
         41303293952},
        {"phi-3-mini", LLAMA_LIKE ("phi3", 3072, 32, 32, 32, 8192, 32064) "}",
         3821079552},
        /* A head's width that the file leaves to transformers' default. */
        {"gemma-2-2b, no head_dim",
         LLAMA_LIKE ("gemma2", 2304, 26, 8, 4, 9216, 256000) "}", 2614341888},
        /* The language model of a multimodal one. */
        {"llama in llava",
         "{\"model_type\":\"llava\",\"vision_config\":{},\"text_config\":" LLAMA_LIKE (
             "llama", 2048, 16, 32, 8, 8192, 128256) ",\"tie_word_embeddings\":true}}",
         1235814400},
        {"pythia-70m",
         "{\"model_type\":\"gpt_neox\",\"hidden_size\":512,\"num_hidden_layers\":6,"
         "\"num_attention_heads\":8,\"intermediate_size\":2048,\"vocab_size\":50304}",
         70426624},
        {"gpt2",
         "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,"
         "\"n_positions\":1024,\"vocab_size\":50257}",
         124439808},
        {"gpt2-medium",
         "{\"model_type\":\"gpt2\",\"n_embd\":1024,\"n_layer\":24,\"n_head\":16,"
         "\"n_positions\":1024,\"vocab_size\":50257}",
         354823168},
        {"bloom-560m",
         "{\"model_type\":\"bloom\",\"hidden_size\":1024,\"n_layer\":24,\"n_head\":16,"
         "\"vocab_size\":250880}",
         559214592},
        {"bloom-560m, as on the hub",
         "{\"model_type\":\"bloom\",\"n_embed\":1024,\"n_layer\":24,"
         "\"num_attention_heads\":16,\"n_inner\":null,\"vocab_size\":250880}",
         559214592},
        {"bloom-7b1",
         "{\"model_type\":\"bloom\",\"hidden_size\":4096,\"n_layer\":30,\"n_head\":32,"
         "\"vocab_size\":250880}",
         7069016064},
        {"t5-base",
         "{\"model_type\":\"t5\",\"d_model\":768,\"num_layers\":12,\"num_heads\":12,"
         "\"d_kv\":64,\"d_ff\":3072,\"vocab_size\":32128}",
         222903552},
        {"t5-small",
         "{\"model_type\":\"t5\",\"d_model\":512,\"num_layers\":6,\"num_heads\":8,"
         "\"d_kv\":64,\"d_ff\":2048,\"vocab_size\":32128}",
         60506624},
        {"t5-v1_1-base", /* a gate, and a head of its own */
         "{\"model_type\":\"t5\",\"d_model\":768,\"num_layers\":12,\"num_heads\":12,"
         "\"d_kv\":64,\"d_ff\":2048,\"vocab_size\":32128,"
         "\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false}",
         247577856}};
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        json_t *doc = json_loads (known[i].doc, 0, NULL), *again;
        struct workload_model m, back;
        struct error err = {""};

        assert_non_null (doc);
        ok (workload_model_from_json (doc, known[i].name, known[i].name, &m, NULL, &err),
            &err);
        if (fabs (workload_model_params (&m) - known[i].params) > 0.5)
            fail_msg ("%s: %.0f parameters, published %.0f", known[i].name,
                      workload_model_params (&m), known[i].params);
        /* Written into a plan and read back it is the same model. */
        again = workload_model_to_json (&m);
        ok (workload_model_from_json (again, "f", "m", &back, NULL, &err), &err);
        CLOSE (workload_model_params (&back), workload_model_params (&m), 0);
        CLOSE (workload_layer_params (&back, 1), workload_layer_params (&m, 1), 0);
        json_decref (again);
        json_decref (doc);
    }
}

/* What tp ranks hold sums to the layer, but for what each holds whole. */
static void tensor_parallel_shares (void **state)
{
    struct workload_model m = model_of ("llama-2-70b");
    double whole = workload_layer_params (&m, 1), norms = 2.0 * m.hidden;
    double kv = 2.0 * m.hidden * m.head_dim * m.kv_heads;
    (void) state;

    for (int tp = 2; tp <= 8; tp *= 2)
        CLOSE (tp * (workload_layer_params (&m, tp) - norms), whole - norms, 1e-12);
    /* 16 ranks, 8 key/value heads: every head is held twice. */
    CLOSE (16 * (workload_layer_params (&m, 16) - norms), whole - norms + kv, 1e-12);
    assert_true (workload_padded_vocab (&m, 8) == 32768);
    assert_true (workload_padded_vocab (&m, 1) == 32000);
    /* Tied embeddings: both ends of a pipeline hold the matrix, a single stage holds one. */
    m = model_of ("gpt2-xl");
    assert_true (workload_head_params (&m, 1, true) == 2.0 * m.hidden);
    CLOSE (workload_head_params (&m, 1, false), 2.0 * m.hidden + 50304.0 * m.hidden,
           1e-12);
}

/* DeepSeek-V3's module has 11.5 billion parameters of its own (README_WEIGHTS.md of its
 * repository), on the stage with the head, and a copy of the embedding where that has none. */
static void prediction (void **state)
{
    struct workload_model m = model_of ("deepseek-v3"), with = m,
                          mixed = model_of ("nemotron-nano-9b-v2");
    struct workload_config c = config_of (2, 4, 1, 1);
    struct workload_stage last = {.expert = 15, .head = true},
                          first = {.embedding = true};
    struct workload_stage_params none, one;
    double h = m.hidden;
    (void) state;

    c.deg.ep = 4;
    assert_true (workload_model_predict (&with, 1));
    CLOSE (workload_model_params (&with) - workload_model_params (&m), 11.5e9, 0.01);
    none = workload_stage_params (&m, &c, &last);
    one = workload_stage_params (&with, &c, &last);
    CLOSE (one.expert / none.expert, 16 / 15.0, 1e-12);
    CLOSE (one.dense - none.dense,
           workload_expert_layer_params (&m, 2) + h * h + 3 * h +
               h * workload_padded_vocab (&m, 2) / 2,
           1e-12);
    none = workload_stage_params (&m, &c, &first);
    one = workload_stage_params (&with, &c, &first);
    CLOSE (one.dense, none.dense, 1e-12);
    assert_false (workload_model_predict (&mixed, 1));
    assert_true (mixed.mtp_layers == 0 && workload_model_predict (&mixed, 0));
}

static enum status parse (const char *text, struct workload_model *m, struct error *err)
{
    json_t *doc = json_loads (text, 0, NULL);
    enum status st;

    assert_non_null (doc);
    st = workload_model_from_json (doc, "config.json", "m", m, NULL, err);
    json_decref (doc);
    return st;
}

#define LLAMA                                                              \
    "\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2," \
    "\"intermediate_size\":128,\"vocab_size\":100"

static void config_fields (void **state)
{
    struct workload_model m;
    struct error err = {""};
    (void) state;

    ok (parse ("{" LLAMA ",\"num_attention_heads\":4}", &m, &err), &err);
    assert_int_equal (m.kv_heads, 4);
    assert_int_equal (m.head_dim, 16);
    assert_true (m.gated_mlp && !m.tied && m.norm == NORM_RMS);
    ok (parse ("{" LLAMA
               ",\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":32,"
               "\"tie_word_embeddings\":true}",
               &m, &err),
        &err);
    assert_int_equal (m.kv_heads, 2);
    assert_int_equal (m.head_dim, 32);
    assert_true (m.tied);
    ok (parse ("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":4,"
               "\"n_positions\":128,\"vocab_size\":100,\"n_inner\":null}",
               &m, &err),
        &err);
    assert_int_equal (m.ffn, 256);
    assert_true (m.tied && m.qkv_bias && m.positions == 128 && m.norm == NORM_LAYER);
}

static void bad_configs (void **state)
{
    static const struct {
        const char *doc, *says;
    } bad[] = {
        {"[]", "expected an object"},
        {"{}", "model_type: expected a known family"},
        {"{\"model_type\":\"resnet\"}", "model_type: expected a known family "
                                        "(docs/model.md), or the fields of one, found "
                                        "\"resnet\""},
        {"{" LLAMA "}", "num_attention_heads: expected a whole number from 1 to 1048576, "
                        "found nothing"},
        {"{" LLAMA ",\"num_attention_heads\":5}",
         "5 attention heads do not divide the hidden size 64"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":3}",
         "3 key/value heads do not divide 4 attention heads"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":8}",
         "8 key/value heads do not divide 4"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":"
         "1099511627776,"
         "\"num_attention_heads\":4}",
         "num_hidden_layers: expected a whole number from 1 to 10000, found "
         "1099511627776"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":0}",
         "num_hidden_layers: expected a whole number from 1 to 10000, found 0"},
        {"{" LLAMA
         ",\"num_attention_heads\":4,\"num_key_value_heads\":4,\"head_dim\":2000000}",
         "head_dim: expected a whole number from 1 to 1048576, found 2000000"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":0}",
         "num_key_value_heads: expected a whole number from 1 to 1048576, found 0"},
        {"{\"model_type\":\"mixtral\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":100,\"intermediate_size\":128,"
         "\"num_local_experts\":4,\"num_experts_per_tok\":8}",
         "a token cannot go to 8 of 4 experts"},
        {"{\"model_type\":\"mixtral\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":100,\"intermediate_size\":128}",
         "num_local_experts: expected a whole number from 1 to 65536, found nothing"},
        {"{\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"num_hidden_layers\":4,"
         "\"num_attention_heads\":4,\"vocab_size\":100,\"intermediate_size\":128,"
         "\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64,"
         "\"mlp_only_layers\":[2]}",
         "layers without experts must come first"},
        {"{\"model_type\":\"deepseek_v3\",\"hidden_size\":64,\"num_hidden_layers\":4,"
         "\"num_attention_heads\":4,\"vocab_size\":100,\"intermediate_size\":128}",
         "kv_lora_rank: expected a whole number from 1"},
        {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\"}}",
         "text_config: no sizes of the language model: take its own config.json"},
        {"{\"model_type\":\"llava\",\"text_config\":{}}",
         "text_config.model_type: expected a known family"},
        {"{\"model_type\":\"bloom\",\"n_embed\":-1}",
         "n_embed: expected a whole number from 1 to 1048576, found -1"},
        {"{" LLAMA ",\"num_attention_heads\":1e300}", "num_attention_heads: expected"},
        {"{" LLAMA ",\"num_attention_heads\":-4}", "num_attention_heads: expected"},
        {"{" LLAMA ",\"num_attention_heads\":4.5}", "num_attention_heads: expected"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"tie_word_embeddings\":\"yes\"}",
         "tie_word_embeddings: expected"},
        {"{\"model_type\":\"llama\",\"hidden_size\":\"64\"}",
         "hidden_size: expected a whole number from 1 to 1048576, found \"64\""}};
    (void) state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct workload_model m;
        struct error err = {""};

        assert_int_equal (parse (bad[i].doc, &m, &err), ST_INVALID);
        if (!strstr (err.text, bad[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
    }
}

/* Every preset is written and read back as it is. */
static void round_trip (void **state)
{
    int n;
    const struct workload_model *all = workload_presets (&n);
    (void) state;

    for (int i = 0; i < n; i++) {
        json_t *doc = workload_model_to_json (&all[i]);
        struct workload_model m;
        struct error err = {""};

        ok (workload_model_from_json (doc, "f", "other", &m, NULL, &err), &err);
        assert_string_equal (m.name, all[i].name);
        CLOSE (workload_model_params (&m), workload_model_params (&all[i]), 0);
        assert_int_equal (m.head_dim, all[i].head_dim);
        assert_true (m.dropout == all[i].dropout && m.positions == all[i].positions);
        json_decref (doc);
    }
}

/* Chunks share a stage's layers as evenly as can be, and the first and the last of a stage
 * hold what they are said to. */
static void layers_of_chunks (void **state)
{
    struct workload_model m = {.layers = 46};
    struct workload_config c = {.deg = {1, 2, 1, 1, 1, 1, 12},
                                .schedule = SCHEDULE_INTERLEAVED};
    int layers[2] = {23, 23};
    (void) state;

    for (int n = 1; n < 100; n++)
        for (int v = 1; v <= n; v++) {
            int sum = 0;

            for (int chunk = 0; chunk < v; chunk++) {
                int k = workload_chunk_layers (n, v, chunk);

                assert_true (k == n / v || k == (n + v - 1) / v);
                sum += k;
            }
            assert_int_equal (sum, n);
        }
    for (int i = 0; i < 2; i++) {
        struct workload_stage s = workload_stage_of (&m, &c, layers, i);

        assert_int_equal (s.dense, 23);
        assert_int_equal (s.first.dense, 2);
        assert_int_equal (s.last.dense, 1);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (published_counts),
                                       cmocka_unit_test (published_configs),
                                       cmocka_unit_test (tensor_parallel_shares),
                                       cmocka_unit_test (config_fields),
                                       cmocka_unit_test (bad_configs),
                                       cmocka_unit_test (round_trip),
                                       cmocka_unit_test (layers_of_chunks),
                                       cmocka_unit_test (prediction)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
