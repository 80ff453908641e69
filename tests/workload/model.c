/* Models: what ranks hold of them, config.json fields, and presets written and read back. */
#include "tests/lib/fields.h"

/* What tp ranks hold sums to the layer, but for what each holds whole. */
TEST (tensor_parallel_shares)
{
    struct workload_model m = model_of ("llama-2-70b");
    double whole = workload_layer_params (&m, 1), norms = 2.0 * m.hidden;
    double kv = 2.0 * m.hidden * m.head_dim * m.kv_heads;

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
TEST (prediction)
{
    struct workload_model m = model_of ("deepseek-v3"), with = m,
                          mixed = model_of ("nemotron-nano-9b-v2");
    struct workload_config c = config_of (2, 4, 1, 1);
    struct workload_stage last = {.expert = 15, .head = true},
                          first = {.embedding = true};
    struct workload_stage_params none, one;
    double h = m.hidden;

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

TEST (config_fields)
{
    json_t *list = json_array ();
    struct workload_model m;
    struct error err = {""};

    ok (read_fields ("'model_type':'llama','hidden_size':64,'num_hidden_layers':2,"
                     "'intermediate_size':128,'vocab_size':100,'num_attention_heads':4",
                     &m, NULL, &err),
        &err);
    assert_int_equal (m.kv_heads, 4);
    assert_int_equal (m.head_dim, 16);
    assert_true (m.gated_mlp && !m.tied && m.norm == NORM_RMS);
    ok (read_fields (SHAPE ("llama", 64, 2, 4, 2, 128, 100, HEADS (32) TIED), &m, NULL,
                     &err),
        &err);
    assert_int_equal (m.kv_heads, 2);
    assert_int_equal (m.head_dim, 32);
    assert_true (m.tied);
    ok (read_fields ("'model_type':'gpt2','n_embd':64,'n_layer':2,'n_head':4,"
                     "'n_positions':128,'vocab_size':100,'n_inner':null",
                     &m, NULL, &err),
        &err);
    assert_int_equal (m.ffn, 256);
    assert_true (m.tied && m.qkv_bias && m.positions == 128 && m.norm == NORM_LAYER);
    expect (workload_model_from_json (list, "f", "m", &m, NULL, &err), &err,
            "f: expected an object, found an array");
    json_decref (list);
}

/* Every preset is written and read back as it is. */
TEST (round_trip)
{
    int n;
    const struct workload_model *all = workload_presets (&n);

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
TEST (layers_of_chunks)
{
    struct workload_model m = {.layers = 46};
    struct workload_config c = {.deg = {1, 2, 1, 1, 1, 1, 12},
                                .schedule = SCHEDULE_INTERLEAVED};
    int layers[2] = {23, 23};

    for (int n = 1; n < 100; n++)
        for (int v = 1; v <= n; v++) {
            int sum = 0;

            for (int chunk = 0; chunk < v; chunk++) {
                int k = workload_chunk_layers (n, v, chunk, false),
                    spared = workload_chunk_layers (n, v, chunk, true);

                assert_true (k == n / v || k == (n + v - 1) / v);
                assert_true (chunk < v - 1 ? spared >= k : spared <= k);
                assert_true (chunk > 0 || (k * (2 * v - 1) >= n && spared >= k));
                sum += k;
            }
            assert_int_equal (sum, n);
        }
    for (int i = 0; i < 2; i++) {
        struct workload_stage s = workload_stage_of (&m, &c, layers, i);

        assert_int_equal (s.dense, 23);
        assert_int_equal (s.first.dense,
                          i == 0 ? 1 : 2); /* the last stage's has the head */
        assert_int_equal (s.last.dense, i == 0 ? 2 : 1);
    }
}
