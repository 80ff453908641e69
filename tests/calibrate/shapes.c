/* Runs files: the model that a row's name, sizes and count of parameters mean. */
#include "tests/lib/runs.h"

/* Latent attention without a rank for queries and without positions; the rest is as usual. */
TEST (latent_sizes)
{
    struct calibrate_runs r =
        ONE ("notes=multi-latent-attention=true; q-lora-rank=0; qk-pos-emb-head-dim=0");
    const struct workload_model *m;

    assert_int_equal (r.n, 1);
    m = &r.run[0].model;
    assert_true (m->q_rank == 0 && m->rope_dim == 0);
    assert_true (m->kv_rank == 512 && m->nope_dim == 128 && m->v_dim == 128);
    assert_int_equal (m->head_dim, 128);
    calibrate_runs_release (&r);
}

/* Heads that cannot have run are taken as the nearest that can: BLOOM's 112, not the 96 that
 * its log has beside a hidden size of 14,336. */
TEST (impossible_heads)
{
    static const struct {
        const char *hidden, *heads, *kv_heads;
        int taken, head_dim;
    } t[] = {{"hidden=14336", "heads=96", "kv_heads=", 112, 128},
             {"hidden=14336", "heads=112", "kv_heads=", 112, 128},
             {"hidden=14400", "heads=96", "kv_heads=", 96, 150},
             {"hidden=4100", "heads=32", "kv_heads=", 32, 129},
             {"hidden=14336", "heads=96", "kv_heads=8", 96, 150}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].hidden, t[i].heads, t[i].kv_heads);

        assert_int_equal (r.run[0].model.heads, t[i].taken);
        assert_int_equal (r.run[0].model.head_dim, t[i].head_dim);
        calibrate_runs_release (&r);
    }
}

/* Of a model that its name does not tell, the width tells whether the MLP is gated, or the count of
 * parameters, which tells tied embeddings too: IBM's PowerLM is gated though it is four times as
 * wide as hidden.  A count that says nothing leaves it as it is, and a known family's stays. */
TEST (counted)
{
    static const struct {
        const char *model, *ffn, *params;
        bool gated, tied;
    } known[] = {{"model=PowerLM-3B", "ffn=9216", "params_b=3.512", true, true},
                 {"model=PowerLM-3B", "ffn=9216", "params_b=3.62", true, false},
                 {"model=PowerLM-3B", "ffn=9216", "params_b=2.67", false, true},
                 {"model=PowerLM-3B", "ffn=9216", "params_b=", false, false},
                 {"model=nobody", "ffn=6144", "params_b=2.663", true, true},
                 {"model=nobody", "ffn=6144", "params_b=", true, false},
                 {"model=gpt-3B", "ffn=9216", "params_b=3.512", false, false}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r =
            ONE (known[i].model, known[i].ffn, known[i].params, "layers=40",
                 "hidden=2304", "heads=36", "kv_heads=36", "vocab=49152", "pp=1");

        assert_int_equal (r.run[0].model.gated_mlp, known[i].gated);
        assert_int_equal (r.run[0].model.tied, known[i].tied);
        calibrate_runs_release (&r);
    }
}

/* Sizes that a row leaves open are those of the preset that its name means, if what it states is;
 * else the usual ones, by the family and the count of parameters. */
TEST (left_open)
{
    static const struct {
        const char *model, *hidden, *heads, *kv_heads, *ffn, *params;
        int has_heads, has_kv_heads, has_ffn;
    } t[] = {{"model=llama-3-8b", "hidden=4096",
              "heads=", "kv_heads=", "ffn=", "params_b=", 32, 8, 14336},
             {"model=llama-3-8b", "hidden=4096", "heads=32", "kv_heads=", "ffn=14336",
              "params_b=", 32, 8, 14336},
             {"model=my llama", "hidden=4096",
              "heads=", "kv_heads=", "ffn=", "params_b=", 32, 32, 11008},
             {"model=my llama", "hidden=4096", "heads=", "kv_heads=8",
              "ffn=", "params_b=8.03", 32, 8, 16384},
             {"model=my llama", "hidden=4096", "heads=32", "kv_heads=", "ffn=14336",
              "params_b=7.2", 32, 8, 14336},
             {"model=my gpt", "hidden=1024",
              "heads=", "kv_heads=", "ffn=", "params_b=", 16, 16, 4096},
             {"model=my llama", "hidden=2048", "heads=", "kv_heads=32",
              "ffn=", "params_b=", 32, 32, 5632}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].model, t[i].hidden, t[i].heads, t[i].kv_heads,
                                       t[i].ffn, t[i].params, "layers=32", "vocab=32000");
        const struct workload_model *m = &r.run[0].model;

        assert_int_equal (m->heads, t[i].has_heads);
        assert_int_equal (m->kv_heads, t[i].has_kv_heads);
        assert_int_equal (m->ffn, t[i].has_ffn);
        assert_int_equal (m->vocab, 32000);
        calibrate_runs_release (&r);
    }
}

/* A header without the columns that a row can do without, and rows that are cut off or too
 * long: those alone are skipped. */
TEST (fewer_columns)
{
    static const char header[] =
        "gpu,gpus,layers,hidden,heads,ffn,vocab,seq,global_batch,tp";
    static const char row[] = "A100-80GB,8,32,4096,32,11008,32000,4096,64,8";
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "%s\n%s\nA100-80GB,8\n%s,1\n%s\n", header, row, row, row);
    r = runs_of (text_str (&t));
    assert_int_equal (r.table.rows, 4);
    assert_int_equal (r.n, 2);
    assert_int_equal (r.run[1].row, 3);
    assert_int_equal (r.run[1].config.deg.tp, 8);
    assert_true (r.n_skipped == 1 && r.skipped[0].count == 2 &&
                 r.skipped[0].first_row == 1);
    assert_non_null (strstr (r.skipped[0].reason, "more or fewer cells"));
    assert_non_null (strstr (r.absent, "source, model, params_b, kv_heads"));
    calibrate_runs_release (&r);
    text_free (&t);
}

/* Each row has its own reason, also where degrees that it leaves open cannot divide its batch. */
TEST (reasons_of_rows)
{
    struct calibrate_runs r =
        runs_of ("model,gpu,gpus,seq,global_batch,pp\n"
                 "my-own,H100 SXM 80GB,8,8192,16,1\n"
                 "meta-llama/Llama-3.1-8B,H100 SXM 80GB,64,8192,7,4\n"
                 "meta-llama/Llama-3.1-8B,H100 SXM 80GB,64,8192,64,4\n");

    assert_true (r.n == 1 && r.n_skipped == 2);
    assert_non_null (strstr (r.skipped[r.why[0]].reason, "layers unknown"));
    assert_non_null (strstr (r.skipped[r.why[1]].reason, "does not divide 7 sequences"));
    calibrate_runs_release (&r);
}

/* Rows that state nothing of their shape have the preset's of their name; one that states a size
 * must state all of them. */
TEST (named_shapes)
{
    struct calibrate_runs r;

    r = runs_of ("model,gpu,gpus,seq,global_batch,layers,iter_time_s\n"
                 "meta-llama/Llama-3.1-8B,H100 SXM 80GB,8,8192,16,,2.5\n"
                 "nemotron-3-nano-30b-a3b,H100 SXM 80GB,8,8192,16,,2.5\n"
                 "my-own,H100 SXM 80GB,8,8192,16,,2.5\n"
                 "meta-llama/Llama-3.1-8B,H100 SXM 80GB,8,8192,16,16,2.5\n");
    assert_int_equal (r.n, 2);
    assert_int_equal (r.run[0].model.vocab, 128256);
    assert_string_equal (r.run[0].model.name, "meta-llama/Llama-3.1-8B");
    assert_int_equal (r.run[1].model.experts, 128);
    assert_true (r.n_skipped == 2);
    assert_non_null (strstr (r.skipped[0].reason, "layers unknown: no preset"));
    assert_non_null (strstr (r.skipped[1].reason, "hidden unknown"));
    calibrate_runs_release (&r);
}

/* Known models with experts, however a source spells them; others must state theirs. */
TEST (spelled)
{
    struct calibrate_runs r;

    r = runs_of ("model,gpu,gpus,seq,global_batch,ep,iter_time_s\n"
                 "Qwen/Qwen3 30B_A3B (tokendrop),GB200,64,4096,64,8,2\n"
                 "DeepSeekV3 (w/o MTP),GB200,64,4096,64,8,2\n"
                 "Llama4_Scout-17B,GB200,64,4096,64,8,2\n"
                 "Nemotron 3 Nano,GB200,64,4096,64,8,2\n"
                 "Qwen3-30,GB200,64,4096,64,8,2\n");
    assert_int_equal (r.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal (r.run[i].model.experts, i == 1 ? 256 : i == 2 ? 16 : 128);
    calibrate_runs_release (&r);
}
