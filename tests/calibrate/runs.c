/* Runs files: what a row means, what is skipped and counted by reason, what is refused. */
#include "tests/lib/runs.h"

#include "base/units.h"

/* Empty cells take the contract's defaults. */
TEST (defaults)
{
    struct calibrate_runs r = ONE ("micro_batch=", "recompute=");
    const struct calibrate_run *run = &r.run[0];

    assert_int_equal (run->config.micro_batch, 1);
    assert_int_equal (run->config.deg.vpp, 1);
    assert_int_equal (run->config.deg.dp, 4); /* what the GPUs leave */
    assert_int_equal (run->config.recompute, RECOMPUTE_SELECTIVE);
    assert_int_equal (run->job.attention, ATTENTION_FLASH);
    assert_int_equal (run->job.precision, PREC_BF16);
    assert_int_equal (run->gpus_per_node, 8);
    assert_true (run->part[0].inter_bytes_per_s == 0 && run->oom == -1);
    assert_true (isnan (run->peak_bytes) && isnan (run->iter_time_s));
    assert_string_equal (run->part[0].type->name, "a100-sxm4-80g");
    assert_true (run->layers[0] == 16 && run->layers[1] == 16);
    assert_true (run->layers[2 * PARTITION_MODULES] == 17);
    calibrate_runs_release (&r);
}

/* Words of precision: tf32 is no fp32, unless something else is said beside it. */
TEST (precisions)
{
    static const struct {
        const char *cell;
        enum workload_precision precision;
    } t[] = {{"precision=bf16-true", PREC_BF16},  {"precision=fp16 amp", PREC_FP16},
             {"precision=fp32", PREC_FP32},       {"precision=tf32", PREC_TF32},
             {"precision=TF32", PREC_TF32},       {"precision=fp32 (TF32)", PREC_TF32},
             {"precision=bf16 (tf32)", PREC_BF16}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].cell);

        assert_int_equal (r.run[0].job.precision, t[i].precision);
        calibrate_runs_release (&r);
    }
}

/* Hybrid sharding: ranks, groups, or a node's ranks, of dp 4 with tp 2. */
TEST (shards)
{
    static const struct {
        const char *notes, *node;
        int zero, shard;
    } t[] = {{"notes=shard=2", "gpus_per_node=8", 1, 2},
             {"notes=num-distributed-optimizer-instances=2", "gpus_per_node=8", 1, 2},
             {"notes=num-distributed-optimizer-instances=1", "gpus_per_node=8", 1, 0},
             {"notes=FSDP as HSDP", "gpus_per_node=4", 3, 2},
             {"notes=FSDP as HSDP", "gpus_per_node=2", 3, 0},
             {"notes=FSDP", "gpus_per_node=4", 3, 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].notes, t[i].node, "tp=2", "pp=2", "gpus=16",
                                       t[i].zero == 1 ? "zero=1" : "zero=3");

        assert_int_equal (r.n, 1);
        assert_int_equal (r.run[0].config.deg.dp, 4);
        assert_int_equal (r.run[0].config.zero, t[i].zero);
        assert_int_equal (r.run[0].config.shard, t[i].shard);
        calibrate_runs_release (&r);
    }
}

TEST (measured)
{
    struct calibrate_runs r =
        ONE ("peak_mem_gb=40.5", "iter_time_s=12.5", "oom=0", "inter_node_gbps=800",
             "notes=x; alloc_bytes=5000000000; y=2");

    CLOSE (r.run[0].peak_bytes, 40.5 * UNITS_GIB, 1e-12);
    CLOSE (r.run[0].iter_time_s, 12.5, 1e-12);
    CLOSE (r.run[0].part[0].inter_bytes_per_s, 1e11, 1e-12);
    CLOSE (r.run[0].static_bytes, 5e9, 1e-12);
    assert_int_equal (r.run[0].oom, 0);
    calibrate_runs_release (&r);
}

/* Notes under Megatron's option names, expert ranks, mixed machines, uneven stages. */
TEST (notes)
{
    struct calibrate_runs r = ONE (
        "model=gpt-moe", "ep=4", "recompute=full", "pp=4",
        "notes=swiglu=true; num-experts=8; moe-router-topk=2; moe-ffn-hidden-size=1024; "
        "recompute-method=block; recompute-num-layers=3; normalization=RMSNorm; "
        "decoder-first-pipeline-num-layers=5; fused-norm=false; fused-mlp=true");
    const struct calibrate_run *run = &r.run[0];

    assert_true (run->model.gated_mlp && run->model.norm == NORM_RMS);
    assert_true (run->model.experts == 8 && run->model.top_k == 2 &&
                 run->model.expert_ffn == 1024);
    assert_int_equal (run->config.recompute_layers, 3);
    assert_true (run->job.fused_norm == CHOICE_NO && run->job.fused_mlp == CHOICE_YES &&
                 run->job.gathered_logits == CHOICE_PROFILE);
    assert_true (run->layers[0] == 5 && run->layers[1] == 9 && run->layers[3] == 9);
    /* dp 2 cannot hold ep 4 unless experts are not split by tp. */
    assert_true (run->config.deg.dp == 2 && run->config.deg.etp == 1);
    calibrate_runs_release (&r);

    r = ONE ("gpu=V100-SXM2-32GB:1+A100-SXM4-40GB:1", "vpp=2", "micro_batch=2", "sp=1",
             "zero=1(8)");
    run = &r.run[0];
    assert_int_equal (run->n_parts, 2);
    assert_string_equal (run->part[0].type->name, "v100-sxm2-32g");
    assert_string_equal (run->part[1].type->name, "a100-sxm4-40g");
    CLOSE (run->gpu_bytes, run->part[0].type->memory_bytes, 1e-12);
    assert_int_equal (run->config.schedule, SCHEDULE_INTERLEAVED);
    assert_true (run->config.sequence_parallel && run->config.zero == 1);
    calibrate_runs_release (&r);
}

/* Modules, in the column or among the notes as Megatron writes them; only those that the model
 * has. */
TEST (modules)
{
    const unsigned mlp = 1u << MODULE_MLP, norm = 1u << MODULE_LAYERNORM;
    static const struct {
        const char *recompute, *notes;
    } rows[] = {
        {"recompute=mlp,layernorm", "notes="},
        {"recompute=layernorm mlp (two)", "notes="},
        {"recompute=selective", "notes=recompute-modules=[layernorm mlp]"},
        {"recompute=selective", "notes=recompute-modules=[layernorm mlp moe_act]"},
        {"recompute=selective", "notes=recompute-modules=mlp,layernorm"}};
    struct calibrate_runs r;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        r = ONE (rows[i].recompute, rows[i].notes);
        assert_int_equal (r.run[0].config.recompute, RECOMPUTE_SELECTIVE);
        assert_int_equal (r.run[0].config.recompute_modules, mlp | norm);
        calibrate_runs_release (&r);
    }
    r = ONE ("recompute=selective", "notes=recompute-modules=[moe_act]");
    assert_int_equal (r.run[0].config.recompute, RECOMPUTE_NONE);
    calibrate_runs_release (&r);
    r = ONE ("recompute=full", "notes=recompute-modules=[core_attn]");
    assert_int_equal (r.run[0].config.recompute, RECOMPUTE_FULL);
    assert_int_equal (r.run[0].config.recompute_modules, 0);
    calibrate_runs_release (&r);
}

/* Where stages begin in a framework's list of modules, as AMP's trials state it: embedding,
 * reshape, the layers, reshape, norm, head, cast.  What is no such cut is prose. */
TEST (cuts)
{
    static const struct {
        const char *notes;
        int layers[4];
    } t[] = {{"notes=cost 1.3; partition 0, 11, 19, 27, 38; list 38", {9, 8, 8, 7}},
             {"notes=partition 0,10,18,26,34", {9, 8, 8, 7}},
             {"notes=partition 0, 9, 17, 25, 32", {9, 8, 8, 7}},
             {"notes=partition gpu; partition 0, 9, 17, 25, 32", {9, 8, 8, 7}},
             {"notes=partition 0, 11, 19, 38", {8, 8, 8, 8}},
             {"notes=partition 0, 11, 19, 27, 33", {8, 8, 8, 8}},
             {"notes=partition 0, 19, 11, 27, 38", {8, 8, 8, 8}},
             {"notes=partition 0, 2, 19, 27, 38", {8, 8, 8, 8}},
             {"notes=partition 0, 11, 19, 27, 38 or so", {8, 8, 8, 8}},
             {"notes=partition 0, 11, 19, 27, 99999999999999999999", {8, 8, 8, 8}},
             {"notes=partition ", {8, 8, 8, 8}}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE ("pp=4", "tp=1", t[i].notes);

        for (int k = 0; k < 4 * WORKLOAD_PARTITIONS; k++)
            if (i < 4 || k / 4 == PARTITION_EVEN)
                assert_int_equal (r.run[0].layers[k], t[i].layers[k % 4]);
        calibrate_runs_release (&r);
    }
}

/* Whether all-to-alls hide is what the run's notes say, else the profile's. */
TEST (exchanges)
{
#define EXPERTS "num-experts=8; moe-router-topk=2; moe-ffn-hidden-size=1024; "
#define NOTE "overlap-moe-expert-parallel-comm="
    static const struct {
        const char *cell[5];
        enum workload_choice overlap;
    } t[] = {{{"notes=" EXPERTS}, CHOICE_PROFILE},
             {{"notes=" EXPERTS NOTE "true"}, CHOICE_YES},
             {{"notes=" EXPERTS NOTE "false"}, CHOICE_NO}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = one (t[i].cell);

        assert_int_equal (r.run[0].facts.exchange_overlap, t[i].overlap);
        calibrate_runs_release (&r);
    }
}

/* A dense model's name with experts is another model, whose parts the row states. */
TEST (experts_of_a_dense_name)
{
    struct calibrate_runs plain = ONE ("model=llama-3-8b", "vocab="),
                          more = ONE ("model=llama-3-8b", "vocab=", "notes=" EXPERTS);

    assert_int_equal (plain.run[0].model.experts, 0);
    assert_int_equal (more.run[0].model.experts, 8);
    assert_int_equal (more.run[0].model.expert_ffn, 1024);
    calibrate_runs_release (&plain);
    calibrate_runs_release (&more);
}

/* And its step and memory are priced so, whatever the profile. */
TEST (exchanges_priced)
{
    static const char *const notes[] = {"notes=" EXPERTS, "notes=" EXPERTS NOTE "true",
                                        "notes=" EXPERTS NOTE "false"};
    double step_s[2][3], peak[2][3];

    for (int k = 0; k < 6; k++) {
        struct calibrate_runs r =
            ONE ("model=gpt-moe", "tp=1", "vpp=2", "ep=4", notes[k % 3]);
        struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);

        p.time.moe_overlap = k / 3;
        step_s[k / 3][k % 3] = runs_step (&r.run[0], &p);
        peak[k / 3][k % 3] = calibrate_peak (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    assert_true (step_s[0][0] == step_s[0][2] && step_s[1][0] == step_s[1][1]);
    assert_true (step_s[0][1] == step_s[1][1] && step_s[0][2] == step_s[1][2]);
    assert_true (step_s[0][1] < step_s[0][2] && peak[0][1] > peak[0][2]);
    assert_true (peak[1][0] == peak[0][1] && peak[0][0] == peak[1][2]);
}

/* Attention, in the words of sources and of Megatron's option. */
TEST (attention)
{
    static const struct {
        const char *cell, *notes;
        enum workload_attention attention;
        bool said;
    } known[] = {
        {"attention=flash_attention2 + RMS kernel", "notes=", ATTENTION_FLASH, true},
        {"attention=flash_attentionv1.0.8", "notes=", ATTENTION_FLASH1, true},
        {"attention=flash/triton", "notes=", ATTENTION_FLASH1, true},
        {"attention=torch", "notes=", ATTENTION_UNFUSED, true},
        {"attention=torch-fused-softmax", "notes=", ATTENTION_FUSED, true},
        {"attention=unfused", "notes=", ATTENTION_UNFUSED, true},
        {"attention=unfused", "notes=attention-backend=unfused", ATTENTION_FUSED, true},
        {"attention=fused", "notes=attention-backend=fused", ATTENTION_FLASH, true},
        {"attention=local", "notes=", ATTENTION_FUSED, true},
        {"attention=", "notes=attention-backend=auto", ATTENTION_FLASH, false},
        {"attention=", "notes=", ATTENTION_FLASH, false}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].cell, known[i].notes);

        assert_int_equal (r.run[0].job.attention, known[i].attention);
        assert_int_equal (r.run[0].attention_said, known[i].said);
        calibrate_runs_release (&r);
    }

    /* Megatron's own has a fused softmax. */
    struct calibrate_runs r = ONE ("attention=torch", "framework=megatron-deepspeed");

    assert_int_equal (r.run[0].job.attention, ATTENTION_FUSED);
    calibrate_runs_release (&r);
}

/* A row that cannot be estimated: its reason, counted, with the first row that has it. */
TEST (skipped)
{
    static const struct {
        const char *cell, *why;
    } bad[] = {
        {"layers=", "layers unknown"},
        {"layers=thirty", "layers \"thirty\": expected a whole number"},
        {"layers=0", "layers unknown"},
        {"layers=32x", "layers \"32x\": expected a whole number"},
        {"layers=1e300", "layers unknown"},
        {"layers=32.5", "layers \"32.5\": expected a whole number"},
        {"layers=1099511627776", "layers unknown"},
        {"layers=20000", "a size is out of range"},
        {"hidden=", "hidden unknown"},
        {"heads=some", "heads \"some\": expected a whole number"},
        {"ffn=wide", "ffn \"wide\": expected a whole number"},
        {"vocab=0", "vocab unknown"},
        {"seq=", "seq unknown"},
        {"seq=nan", "seq unknown"},
        {"gpus=", "gpus unknown"},
        {"global_batch=", "global_batch unknown"},
        {"kv_heads=5", "kv_heads do not divide heads"},
        {"kv_heads=0", "a size is out of range"},
        {"gpu=", "gpu unknown"},
        {"gpu=TPUv4", "gpu \"TPUv4\": expected one of"},
        {"gpu=A100:x+V100:2", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:1+V100:99999999999", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:1x+V100:1", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:1+V100", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:2+", "a mix TYPE:N+TYPE:N"},
        {"gpu=1xA100+V100", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100/V100", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:5+V100:12", "the nodes of its GPU mix do not make up gpus"},
        {"gpu=A100:0+V100:2", "a mix TYPE:N+TYPE:N"},
        {"gpu=A100:1+V100:2", "the nodes of its GPU mix do not make up gpus"},
        {"gpu=A100:1", "the nodes of its GPU mix do not make up gpus"},
        {"gpu_mem_gb=plenty", "gpu_mem_gb \"plenty\": expected GB"},
        {"inter_node_gbps=10/50", "inter_node_gbps is not a positive number"},
        {"inter_node_gbps=fast", "inter_node_gbps \"fast\": expected Gbit/s"},
        {"inter_node_gbps=1e308", "inter_node_gbps is out of range"},
        {"inter_node_gbps=1e-308", "inter_node_gbps is out of range"},
        {"attention=magic", "attention \"magic\": expected flash"},
        {"notes=attention-backend=magic", "attention-backend not understood"},
        {"notes=num-distributed-optimizer-instances=3", "shard does not divide dp"},
        {"notes=shard=-2", "shard is not a whole number"},
        {"notes=fused-norm=maybe", "a note that is true or false is neither"},
        {"notes=PP schedule=random", "schedule not understood"},
        {"sp=8", "sp \"8\": expected 0 or 1"},
        {"notes=decoder-first-pipeline-num-layers=32", "do not fit"},
        {"notes=decoder-first-pipeline-num-layers=8; "
         "decoder-last-pipeline-num-layers=8",
         "do not fit"},
        {"notes=decoder-last-pipeline-num-layers=many", "do not fit"},
        {"notes=num-experts=8e1", "its experts are in an unknown form"},
        {"notes=num-experts=many", "its experts are in an unknown form"},
        {"notes=mtp-num-layers=-3", "mtp-num-layers is out of range"},
        {"notes=mtp-num-layers=65", "mtp-num-layers is out of range"},
        {"notes=mtp-num-layers=many", "mtp-num-layers is out of range"},
        {"notes=multi-latent-attention=true; q-lora-rank=-5",
         "its latent attention is in an unknown form"},
        {"notes=multi-latent-attention=true; kv-lora-rank=0",
         "its latent attention is in an unknown form"},
        {"notes=multi-latent-attention=true; qk-head-dim=0",
         "its latent attention is in an unknown form"},
        {"notes=multi-latent-attention=true; v-head-dim=0",
         "its latent attention is in an unknown form"},
        {"notes=multi-latent-attention=true; qk-head-dim=99999999999",
         "its latent attention is in an unknown form"},
        {"notes=num-experts=8; moe-layer-freq=never", "moe-layer-freq not understood"},
        {"notes=num-experts=8; moe-layer-freq=([0]*1+[1]*1)*99",
         "moe-layer-freq not understood"},
        {"notes=num-experts=8; moe-layer-freq=[0]*1+([1]*1+[0]*1)*99+[1]*1+[0]*0",
         "moe-layer-freq not understood"},
        {"tp=3", "tp x pp x cp does not divide gpus"},
        {"tp=-2", "a degree is not a whole number"},
        {"tp=two", "tp \"two\": expected a whole number"},
        {"tp=99999999999", "a degree is not a whole number"},
        {"dp=0", "dp is not a whole number"},
        {"micro_batch=3", "degrees or batch do not divide"},
        {"micro_batch=0", "micro_batch is not a whole number"},
        {"zero=9", "zero is not 0 to 3"},
        {"precision=int3", "precision \"int3\": expected bf16"},
        {"recompute=sometimes", "recompute \"sometimes\": expected none"},
        {"recompute=mlp,sometimes", "recompute \"mlp,sometimes\": expected none"},
        {"ep=2", "its experts are not stated"},
        {"model=new-21B-A3B", "its experts are not stated"},
        {"model=GPT-MoE", "its experts are not stated"},
        {"model=mamba-hybrid", "architecture not supported"},
        {"model=gpt oss 20b", "architecture not supported"},
        {"notes=num-experts=8; moe-router-topk=9", "its experts are in an unknown form"},
        {"notes=quant=bnb.nf4", "weights in 4 or 8 bits without adapters"},
        {"iter_time_s=-3", "iter_time_s is not a positive number"},
        {"iter_time_s=fast", "iter_time_s \"fast\": expected seconds"},
        {"peak_mem_gb=0", "peak_mem_gb is not a positive number"},
        {"oom=maybe", "oom \"maybe\": expected 0 or 1"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct calibrate_runs r;
        struct text t = {0};

        text_add (&t, "%s\n", RUNS_HEADER);
        runs_row (&t, NULL);
        ROW (&t, bad[i].cell);
        ROW (&t, bad[i].cell);
        r = runs_of (text_str (&t));
        if (r.n != 1 || r.n_skipped != 1 || !strstr (r.skipped[0].reason, bad[i].why))
            fail_msg ("%s: %d rows used, \"%s\", expected \"%s\"", bad[i].cell, r.n,
                      r.n_skipped ? r.skipped[0].reason : "", bad[i].why);
        assert_int_equal (r.skipped[0].count, 2);
        assert_int_equal (r.skipped[0].first_row, 1);
        calibrate_runs_release (&r);
        text_free (&t);
    }
}

TEST (refused)
{
    const struct {
        const char *text, *says;
    } bad[] = {
        {"", "expected a header, found an empty file"},
        {"source,model\nx,y\n", "the header lacks seq, gpu, gpus"},
        {"gpu,gpus,seq\nx,y,z\n", "the header lacks layers, hidden, heads, ffn, vocab: "},
        {RUNS_HEADER ",x,x,tp\n", "the header has tp twice"},
        {RUNS_HEADER "\n", "no row is left of 0"},
        {RUNS_HEADER "\na,b,c\n", "no row is left of 1: 1 more or fewer cells"},
        {RUNS_HEADER "\n\"a", "not valid CSV"}};
    struct calibrate_runs r = {.n = -7};
    struct error err = {""};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal (runs_read (bad[i].text, &r, &err), ST_INVALID);
        if (!strstr (err.text, bad[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
        assert_int_equal (r.n, -7);
    }
    assert_int_equal (calibrate_runs_read ("/no/such/file.csv", &r, &err), ST_IO);
}

/* Columns in another order, and some that are not known. */
TEST (other_columns)
{
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "colour,%s\n", RUNS_HEADER);
    text_add (&t, "\"red, \"\"dark\"\"\",");
    runs_row (&t, NULL);
    r = runs_of (text_str (&t));
    assert_int_equal (r.run[0].model.layers, 32);
    assert_string_equal (r.table.cell[0], "red, \"dark\"");
    calibrate_runs_release (&r);
    text_free (&t);
}

/* As spreadsheets write it: a byte-order mark, and carriage returns. */
TEST (spreadsheet)
{
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "\xEF\xBB\xBF%s\r\n", RUNS_HEADER);
    runs_row (&t, NULL);
    r = runs_of (text_str (&t));
    assert_true (r.n == 1 && csv_table_column (&r.table, "source", 0) == 0);
    calibrate_runs_release (&r);
    text_free (&t);
}

/* Random bytes in any cell: read or skipped, never a crash; estimates stay finite. */
TEST (noise)
{
    static const char *const cells[] = {"",
                                        "0",
                                        "-1",
                                        "1e9",
                                        "nan",
                                        "inf",
                                        "7",
                                        "x:y",
                                        "a=b;",
                                        "+",
                                        "true",
                                        "full:3",
                                        "1(2)",
                                        ":+:",
                                        "T4:1+",
                                        "64",
                                        "16",
                                        "2",
                                        "4096",
                                        "gpt-moe",
                                        "num-experts=8",
                                        "multi-latent-attention=true; kv-channels=64"};
    static const char *const columns[] = {
        "model=",     "layers=",     "hidden=",       "heads=",       "kv_heads=",
        "ffn=",       "vocab=",      "seq=",          "gpu=",         "gpus=",
        "tp=",        "pp=",         "vpp=",          "dp=",          "cp=",
        "ep=",        "sp=",         "zero=",         "micro_batch=", "global_batch=",
        "precision=", "attention=",  "recompute=",    "oom=",         "peak_mem_gb=",
        "notes=",     "gpu_mem_gb=", "gpus_per_node="};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct rng r = {3};
    struct text t = {0};
    struct calibrate_runs runs;
    struct calibrate_steps steps;
    struct workload_profile *profile;
    struct error err = {""};
    int missing = 0;

    text_add (&t, "%s\n", RUNS_HEADER);
    for (int i = 0; i < 5000; i++) {
        char a[96], b[96];

        snprintf (a, sizeof a, "%s%s", columns[rng_below (&r, 28)],
                  cells[rng_below (&r, 22)]);
        snprintf (b, sizeof b, "%s%s", columns[rng_below (&r, 28)],
                  cells[rng_below (&r, 22)]);
        ROW (&t, a, b);
    }
    runs = runs_of (text_str (&t));
    assert_true (runs.n > 100 && runs.n < 5000);
    profile = calloc ((size_t) runs.n, sizeof *profile);
    assert_non_null (profile);
    for (int i = 0; i < runs.n; i++) {
        double peak = calibrate_peak (&runs.run[i], &p);

        assert_true (isfinite (peak) && peak > 0);
        assert_true (calibrate_need (&runs.run[i], &p, MEMEST_FUJII) > 0);
        profile[i] = p;
    }
    ok (calibrate_steps_estimate (&runs, profile, NULL, NULL, &steps, &err), &err);
    for (int i = 0; i < runs.n; i++) {
        assert_true (isnan (steps.step_s[i]) ||
                     (isfinite (steps.step_s[i]) && steps.step_s[i] > 0));
        missing -= isnan (steps.step_s[i]);
    }
    for (int i = 0; i < steps.n_missing; i++)
        missing += steps.missing[i].count;
    assert_int_equal (missing, 0);
    calibrate_steps_release (&steps);
    free (profile);
    calibrate_runs_release (&runs);
    text_free (&t);
}

/* A row takes the shipped profile that names its source, else the default. */
TEST (profiles)
{
    struct calibrate_runs r = ONE ("source=AlephAlpha_WANT23");
    struct workload_profile p;

    p = runs_profile (&r);
    assert_string_equal (p.name, "aleph-alpha");
    calibrate_runs_release (&r);
    r = ONE ("source=nobody");
    p = runs_profile (&r);
    assert_string_equal (p.name, WORKLOAD_PROFILE_DEFAULT);
    calibrate_runs_release (&r);
}

/* What a row leaves out is as in its source's framework: BigScience's scripts set ZeRO 1,
 * and what they read off is the first node's memory, where the first stage is. */
TEST (framework)
{
    struct calibrate_runs r = ONE ("source=BigScience_V100", "gpu=V100-32GB", "zero=");
    struct workload_profile p, all;

    assert_int_equal (r.run[0].config.zero, 1);
    p = runs_profile (&r);
    assert_int_equal (p.measured_rank, MEASURED_FIRST);
    /* The last stage has one micro-batch in flight, and the logits. */
    all = p;
    all.measured_rank = MEASURED_MAX;
    assert_true (calibrate_peak (&r.run[0], &p) <= calibrate_peak (&r.run[0], &all));
    all.measured_rank = MEASURED_LAST;
    assert_true (calibrate_peak (&r.run[0], &p) != calibrate_peak (&r.run[0], &all));
    calibrate_runs_release (&r);
    r = ONE ("source=BigScience_V100", "gpu=V100-32GB", "zero=0");
    assert_int_equal (r.run[0].config.zero, 0);
    calibrate_runs_release (&r);
}

/* Published runs beside the checkout, where they are: none is lost for a new reason. */
TEST (published_files)
{
    static const struct {
        const char *file;
        int used;
    } known[] = {{"aleph_alpha_want23.csv", 659},
                 {"bigscience_bloom_prequel.csv", 47},
                 {"megatron_lm_golden_memory.csv", 403},
                 {"wtacrs.csv", 12},
                 {"vtrain_single_node.csv", 1120}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r;
        struct error err = {""};
        char path[128];

        snprintf (path, sizeof path, "../shared/data/runs/%s", known[i].file);
        SKIP_WITHOUT (path);
        ok (calibrate_runs_read (path, &r, &err), &err);
        assert_int_equal (r.n, known[i].used);
        calibrate_runs_release (&r);
    }
}
