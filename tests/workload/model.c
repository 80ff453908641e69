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
    } known[] = {{"gpt2-xl", 1557611200, 0},
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
                 {"deepseek-v2", 235741434880, 0},
                 {"deepseek-v3", 671026419200, 0}, /* without its multi-token module */
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
    CLOSE (workload_head_params (&m, 1, false), 2.0 * m.hidden + 50304.0 * m.hidden, 1e-12);
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

#define LLAMA "\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2," \
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
    ok (parse ("{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":32,"
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
        {"{}", "model_type: expected a text, found nothing"},
        {"{\"model_type\":\"resnet\"}",
         "model_type: expected one of \"llama\", \"mistral\", \"mixtral\", "},
        {"{" LLAMA "}", "num_attention_heads: expected a whole number from 1 to 1048576, "
                        "found nothing"},
        {"{" LLAMA ",\"num_attention_heads\":5}",
         "5 attention heads do not divide the hidden size 64"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":3}",
         "3 key/value heads do not divide 4 attention heads"},
        {"{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":8}",
         "8 key/value heads do not divide 4"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":1099511627776,"
         "\"num_attention_heads\":4}",
         "num_hidden_layers: expected a whole number from 1 to 10000, found 1099511627776"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":0}",
         "num_hidden_layers: expected a whole number from 1 to 10000, found 0"},
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (published_counts), cmocka_unit_test (tensor_parallel_shares),
        cmocka_unit_test (config_fields), cmocka_unit_test (bad_configs),
        cmocka_unit_test (round_trip)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
