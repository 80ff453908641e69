/* Sliding windows and chunks of attention: how many layers have one, by what the file says or the
 * family has; the pairs that are left; and a document that reads back the same. */
#include "tests/lib/fields.h"

#define SIX(KIND) \
    "'" KIND "','" KIND "','" KIND "','" KIND "','" KIND "','full_attention'"

static enum status read_model (const char *type, const char *more,
                               struct workload_model *m, struct error *err)
{
    char fields[1024];

    bool experts = text_has_word ("llama4_text gpt_oss", type);

    snprintf (fields, sizeof fields,
              SHAPE ("%s", 256, 12, 4, 4, 512, 1000, ",'head_dim':64%s%s"), type,
              experts ? ",'num_local_experts':8,'num_experts_per_tok':2,"
                        "'intermediate_size_mlp':512"
                      : "",
              more);
    return read_fields (fields, m, NULL, err);
}

TEST (layers)
{
    static const struct {
        const char *type, *more;
        int window, layers;
        bool chunks;
    } known[] = {
        {"llama", "", 0, 0, false},
        {"mistral", "", 0, 0, false},
        {"mistral", ",'sliding_window':null", 0, 0, false},
        {"mistral", ",'sliding_window':4096", 4096, 12, false},
        {"phi3", ",'sliding_window':2047", 2047, 12, false},
        {"qwen2", ",'sliding_window':4096", 0, 0, false},
        {"qwen2", ",'sliding_window':4096,'use_sliding_window':false", 0, 0, false},
        {"qwen2", ",'sliding_window':4096,'use_sliding_window':true", 4096, 12, false},
        {"qwen2",
         ",'sliding_window':4096,'use_sliding_window':true,'max_window_layers':8", 4096,
         4, false},
        {"gemma2", "", 4096, 6, false},
        {"gemma2", ",'sliding_window':null", 0, 0, false},
        {"gemma3_text", ",'sliding_window':1024", 1024, 10, false},
        {"gemma3_text", ",'sliding_window':512,'sliding_window_pattern':4", 512, 9,
         false},
        {"gemma3_text", ",'sliding_window':512,'_sliding_window_pattern':3", 512, 8,
         false},
        {"vaultgemma", "", 4096, 6, false},
        {"granite_swa", "", 128, 9, false},
        {"muse_glimmer_text", "", 2048, 9, false},
        {"gpt_oss", "", 128, 6, false},
        {"gpt_oss", ",'layer_types':[" SIX ("sliding_attention") "]", 128, 5, false},
        {"exaone4", ",'sliding_window_pattern':'LLLG'", 4096, 9, false},
        {"exaone4", ",'sliding_window_pattern':''", 4096, 0, false},
        {"llama4_text", "", 8192, 9, true},
        {"llama4_text", ",'attention_chunk_size':4096", 4096, 9, true},
        {"llama4_text", ",'attention_chunk_size':null", 0, 0, false},
        {"mistral", ",'sliding_window':64,'attention_chunk_size':null", 64, 12, false},
        {"mistral", ",'sliding_window':64.0", 64, 12, false},
        {"mistral", ",'sliding_window':false", 0, 0, false},
        {"llama4_text", ",'layer_types':[" SIX ("chunked_attention") "]", 8192, 5, true},
        {"mistral", ",'sliding_window':64,'windowed_layers':3", 64, 3, false}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_model m, again;
        struct error err = {""};
        json_t *doc;

        ok (read_model (known[i].type, known[i].more, &m, &err), &err);
        if (m.window != known[i].window || m.window_layers != known[i].layers ||
            m.window_chunks != known[i].chunks)
            fail_msg ("%s%s: %d tokens in %d layers", known[i].type, known[i].more,
                      m.window, m.window_layers);
        doc = workload_model_to_json (&m);
        ok (workload_model_from_json (doc, "again", "x", &again, NULL, &err), &err);
        assert_true (again.window == m.window && again.window_layers == m.window_layers &&
                     again.window_chunks == m.window_chunks);
        json_decref (doc);
    }
}

TEST (refused)
{
    static const struct {
        const char *type, *more, *says;
    } bad[] = {
        {"mistral", ",'sliding_window':-1", "sliding_window: expected"},
        {"mistral", ",'sliding_window':4294967296", "sliding_window: expected"},
        {"mistral", ",'sliding_window':'4096'", "sliding_window: expected"},
        {"mistral", ",'sliding_window':true", "sliding_window: expected"},
        {"gemma2", ",'sliding_window_pattern':0", "sliding_window_pattern: "},
        {"gemma2", ",'sliding_window_pattern':2.5", "sliding_window_pattern: "},
        {"qwen2",
         ",'sliding_window':64,'use_sliding_window':true,'max_window_layers':'all'",
         "max_window_layers: expected"},
        {"mistral", ",'sliding_window':64,'windowed_layers':13", "windowed_layers: "},
        {"llama4_text", ",'attention_chunk_size':-5", "attention_chunk_size: "}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct workload_model m;
        struct error err = {""};

        expect (read_model (bad[i].type, bad[i].more, &m, &err), &err, bad[i].says);
    }
}

/* Words for another number of layers are said, and only the model's layers are counted. */
TEST (too_many_words)
{
    struct workload_model m;
    struct notes notes = {0};
    struct error err = {""};

    ok (read_fields (SHAPE ("mistral", 256, 1, 4, 4, 512, 1000,
                            ",'sliding_window':64,'layer_types':['full_attention',"
                            "'sliding_attention']"),
                     &m, &notes, &err),
        &err);
    assert_int_equal (m.window_layers, 0);
    assert_int_equal (notes.n, 1);
    assert_non_null (strstr (notes.line[0],
                             "config.json: layer_types: expected a word for "
                             "each of 1 layers, found 2"));
    notes_free (&notes);
}

/* Token i of s sees min (i, w) others: counted one by one, and i mod w in chunks of w. */
TEST (pairs)
{
    for (int chunks = 0; chunks < 2; chunks++)
        for (int w = 1024; w <= 16384; w *= 2) {
            struct workload_model m = {.window = w, .window_chunks = chunks};
            double seq = 8192, seen = 0;

            for (int i = 0; i < (int) seq; i++)
                seen += chunks ? i % w : i < w ? i : w;
            CLOSE (workload_window_pairs (&m, seq, 0), seen / (seq * seq / 2), 1e-3);
        }
    struct workload_model all = {.window = 0}, wide = {.window = 1000};

    assert_true (workload_window_pairs (&all, 4096, 0) == 1.0);
    CLOSE (workload_window_pairs (&wide, 4000, 1000), .75, 1e-12);
    assert_true (workload_window_pairs (&wide, 900, 0) == 1.0);
}

/* A preset's window is its family's: the same where its file says nothing. */
TEST (presets)
{
    static const char *const keys[] = {"sliding_window", "attention_chunk_size",
                                       "use_sliding_window", "windowed_layers"};
    int n, windows = 0;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++) {
        json_t *doc = workload_model_to_json (&all[i]);
        struct notes notes = {0};
        struct workload_model m;
        struct error err = {""};

        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            json_object_del (doc, keys[k]);
        ok (workload_model_from_json (doc, "config.json", "x", &m, &notes, &err), &err);
        if (strcmp (m.type, "gemma3_text") == 0)
            m.window = all[i].window; /* whose files each state their own */
        if (m.window != all[i].window || m.window_layers != all[i].window_layers ||
            m.window_chunks != all[i].window_chunks)
            fail_msg ("%s: %d of %d layers", all[i].name, m.window, m.window_layers);
        windows += m.window > 0;
        notes_free (&notes);
        json_decref (doc);
    }
    assert_true (windows >= 4);
}
