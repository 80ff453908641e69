/* Words of rows that say how a job was run: ZeRO, recomputation, attention, optimizers, offloading,
 * adapters.  Each means what its framework means by it. */
#include "tests/lib/runs.h"

/* A row with these cells and those of two further columns. */
static enum status read_lab (const char *const *cell, const char *columns, const char *a,
                             const char *b, struct calibrate_runs *r, struct error *err)
{
    struct text row = {0}, t = {0};
    enum status st;

    runs_row (&row, cell);
    text_add (&t, "%s,%s\n\"%s\",\"%s\",%s", columns, RUNS_HEADER, a, b, text_str (&row));
    st = runs_read (text_str (&t), r, err);
    text_free (&t);
    text_free (&row);
    return st;
}

#define LAB(R, ERR, OPTIMIZER, TUNING, ...)                                            \
    read_lab ((const char *const[]){__VA_ARGS__, NULL}, "optimizer,tuning", OPTIMIZER, \
              TUNING, R, ERR)
#define FSDP(R, ERR, CELL, ...)                                                         \
    read_lab ((const char *const[]){__VA_ARGS__, "tp=1", "pp=1", NULL}, "fsdp,x", CELL, \
              "", R, ERR)

/* A framework's name may say the stage; a cell does before it. */
TEST (stages)
{
    static const struct {
        const char *framework, *zero;
        int stage;
    } t[] = {{"framework=DeepSpeed ZeRO-1", "zero=", 1},
             {"framework=deepspeed zero2", "zero=", 2},
             {"framework=deepspeed", "zero=", 3},
             {"framework=PyTorch DDP", "zero=", 0},
             {"framework=HF Trainer (DDP)", "zero=", 0},
             {"framework=PyTorch DDP", "zero=3", 3},
             {"framework=DeepSpeed ZeRO Stage 2", "zero=", 2},
             {"framework=DeepSpeed ZeRO stage-1", "zero=", 1},
             {"framework=DeepSpeed stage 2", "zero=", 2},
             {"framework=DeepSpeed ZeRO-0", "zero=", 0},
             {"framework=DeepSpeed (no ZeRO)", "zero=", 0},
             {"framework=DeepSpeed ZeRO-Offload", "zero=", 2},
             {"framework=PyTorch DDP (no FSDP)", "zero=", 0},
             {"framework=PyTorch FSDP (SHARD_GRAD_OP)", "zero=", 2},
             {"framework=PyTorch FSDP NO_SHARD", "zero=", 0},
             {"framework=FSDP (no DDP)", "zero=", 3},
             {"framework=Megatron-FSDP", "zero=", 3},
             {"framework=Megatron-FSDP", "zero=optim_grads", 2},
             {"framework=colossalai", "zero=gemini", 3},
             {"framework=colossalai", "zero=torch_ddp", 0},
             {"framework=paddlenlp", "zero=p_g_os", 3},
             {"framework=paddlenlp", "zero=sharding stage1", 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].framework, t[i].zero, "tp=1", "pp=1");

        if (r.run[0].config.zero != t[i].stage)
            fail_msg ("%s %s: stage %d", t[i].framework, t[i].zero, r.run[0].config.zero);
        calibrate_runs_release (&r);
    }
}

/* FSDP in a column of its own is a word, a switch, or a degree beside that of its replicas: never
 * stages of a pipeline. */
TEST (fsdp)
{
    static const struct {
        const char *rows[2]; /* dp, fsdp and parallelism; the first is looked at */
        int zero, dp, shard;
    } t[] = {{{"1,16,", "1,1,"}, 3, 16, 16},
             {{"2,8,", "16,1,"}, 3, 16, 8},
             {{"16,1,", "2,8,"}, 0, 16, 0},
             {{"16,1,", ",,"}, 3, 16, 0},
             {{",yes,", ",,"}, 3, 16, 0},
             {{",SHARD_GRAD_OP,", ",,"}, 2, 16, 0},
             {{",no,", ",,"}, 0, 16, 0},
             {{",0,", ",1,"}, 0, 16, 0},
             {{",NO_SHARD,", ",,"}, 0, 16, 0},
             {{",DDP,", ",,"}, 0, 16, 0},
             {{",zero1,", ",,"}, 1, 16, 0},
             {{",hsdp,", ",,"}, 3, 16, 8},
             {{",full_shard auto_wrap,", ",,"}, 3, 16, 0},
             {{",shard_grad_op auto_wrap,", ",,"}, 2, 16, 0},
             {{",,DP2 FSDP8", ",,"}, 3, 16, 8},
             {{",,FSDP2", ",,"}, 3, 16, 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r;
        struct text text = {0};

        text_add (&text,
                  "framework,model,gpu,gpus,seq,global_batch,dp,FSDP,parallelism\n");
        for (int k = 0; k < 2; k++)
            text_add (&text, "maxtext,llama-3.2-1b,H100,16,2048,64,%s\n", t[i].rows[k]);
        r = runs_of (text_str (&text));
        if (r.run[0].config.zero != t[i].zero || r.run[0].config.shard != t[i].shard ||
            r.run[0].config.deg.dp != t[i].dp)
            fail_msg ("%s: stage %d over %d of %d", t[i].rows[0], r.run[0].config.zero,
                      r.run[0].config.shard, r.run[0].config.deg.dp);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* FSDP's column in another framework's row, its zero column empty: what is no word of it is
 * refused, and what it offloads is. */
TEST (fsdp_refused)
{
    static const char *const unread[] = {"maybe", "-1", "1.5", "full_shard no offload",
                                         "auto_wrap"};
    struct calibrate_runs r;
    struct error err = {""};

    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        if (FSDP (&r, &err, unread[i], "framework=deepspeed") != ST_INVALID ||
            !strstr (err.text, "fsdp \""))
            fail_msg ("%s: %s", unread[i], err.text);
    ok (FSDP (&r, &err, "No", "framework=deepspeed", "zero="), &err);
    assert_int_equal (r.run[0].config.zero, 0);
    calibrate_runs_release (&r);
    ok (FSDP (&r, &err, "full_shard auto_wrap offload", "framework=trl"), &err);
    assert_int_equal (r.run[0].config.zero, 3);
    assert_int_equal (r.run[0].config.offload, OFFLOAD_ALL);
    calibrate_runs_release (&r);
}

/* A degree of sequence parallelism is that of the tensor-parallel ranks, or of cp. */
TEST (sequences)
{
    static const struct {
        const char *cell[4];
        int cp;
        bool split;
    } t[] = {{{"tp=1", "cp=", "sp=8"}, 8, false},
             {{"tp=1", "cp=8", "sp=8"}, 8, false},
             {{"tp=2", "cp=", "sp=2"}, 1, true},
             {{"tp=2", "cp=2", "sp=1"}, 2, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE (t[i].cell[0], t[i].cell[1], t[i].cell[2], "pp=1", "framework=xtuner");

        assert_int_equal (r.run[0].config.deg.cp, t[i].cp);
        assert_int_equal (r.run[0].config.sequence_parallel, t[i].split);
        calibrate_runs_release (&r);
    }
}

/* What names two stages, or a degree that may be of two ways, is refused. */
TEST (unclear)
{
    static const struct {
        const char *cell[3], *why;
    } t[] = {
        {{"framework=FSDP + DDP", "sp=", "notes="}, "framework \"FSDP + DDP\""},
        {{"framework=DeepSpeed ZeRO-2 or ZeRO-3", "sp=", "notes="}, "framework"},
        {{"framework=trl", "recompute=Yes (selective)", "notes="}, "recompute \""},
        {{"framework=trl", "recompute=True (only MLP)", "notes="}, "recompute \""},
        {{"framework=trl", "recompute=full (every 2nd layer)", "notes="}, "recompute \""},
        {{"framework=trl", "recompute=checkpointing (every other block)", "notes="},
         "recompute \""},
        {{"framework=trl", "zero=FSDP (ZeRO-2)", "notes="}, "zero \""},
        {{"framework=trl", "zero=DDP (ZeRO-1)", "notes="}, "zero \""},
        {{"framework=xtuner", "sp=2.5", "notes="}, "sp \"2.5\""},
        {{"framework=xtuner", "sp=-1", "notes="}, "sp \"-1\""},
        {{"framework=Megatron-LM", "sp=8", "notes="}, "sp \"8\""}};
    struct calibrate_runs r;
    struct error err = {""};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (LAB (&r, &err, "", "", t[i].cell[0], t[i].cell[1], t[i].cell[2],
                 "tp=", "pp=1") != ST_INVALID ||
            !strstr (err.text, t[i].why))
            fail_msg ("%s %s: %s", t[i].cell[0], t[i].cell[1], err.text);
}

/* A batch beside accumulation, whatever other rows have: the global one with a micro-batch or
 * without several steps, a micro-batch where it can be one of these.  What does not agree is
 * refused. */
TEST (accumulated)
{
    static const struct {
        const char *columns, *cells;
        int global, micro; /* 0: refused; micro 0: open */
    } t[] = {{"micro_batch,batch_size,ga", "1,128,", 128, 1},
             {"micro_batch,batch_size,ga", "1,128,8", 128, 1},
             {"micro_batch,batch_size,ga", "1,512,8", 0, 0},
             {"micro_batch,batch_size,ga,pp", "1,128,4,4", 0, 0},
             {"micro_batch,batch_size,ga", ",2,8", 256, 2},
             {"batch_size,ga", "4,8", 512, 4},
             {"batch_size,ga", "256,4", 256, 4},
             {"batch_size,ga", "250,4", 0, 0},
             {"batch_size,ga", "256,1", 256, 0},
             {"batch_size,ga", "256,", 256, 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r;
        struct error err = {""};
        struct text text = {0};

        text_add (&text, "model,gpu,gpus,seq,%s\nllama-2-7b,A100 80GB,16,4096,%s\n",
                  t[i].columns, t[i].cells);
        if (t[i].global == 0) {
            assert_int_equal (runs_read (text_str (&text), &r, &err), ST_INVALID);
            assert_non_null (strstr (err.text, "batch_size \""));
        } else {
            r = runs_of (text_str (&text));
            if (r.run[0].job.global_batch != t[i].global ||
                r.run[0].micro_batch_said != (t[i].micro > 0) ||
                (t[i].micro > 0 && r.run[0].config.micro_batch != t[i].micro))
                fail_msg ("%s: %d of %d", t[i].cells, r.run[0].job.global_batch,
                          r.run[0].config.micro_batch);
            calibrate_runs_release (&r);
        }
        text_free (&text);
    }
}

/* A batch that others say is named as one that is not read. */
TEST (dropped)
{
    struct calibrate_runs r;

    r = runs_of ("model,gpu,gpus,seq,micro_batch,global_batch,bs\n"
                 "llama-2-7b,A100 80GB,16,4096,1,64,9\n");
    assert_non_null (strstr (r.unread, "bs (global_batch and micro_batch say it)"));
    calibrate_runs_release (&r);
}

/* The compiler is on where an item says that and no more. */
TEST (compiled)
{
    static const struct {
        const char *notes;
        bool is;
    } t[] = {{"notes=torch.compile", true},
             {"notes=x; torch_compile=true", true},
             {"notes=torch compile", true},
             {"notes=torch compile on", true},
             {"notes=torch.compile=false", false},
             {"notes=torch compile disabled", false},
             {"notes=torch compile off: OOM", false},
             {"notes=no torch.compile", false},
             {"notes=compile state not stated", false}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].notes);

        if (r.run[0].compiled != t[i].is)
            fail_msg ("%s: %d", t[i].notes, r.run[0].compiled);
        calibrate_runs_release (&r);
    }
}

/* A row that is "as before" is compiled where the row above it is, of the same source. */
TEST (as_before)
{
    static const char *const rows[][3] = {
        {"notes=packed, torch.compile"},  {"notes=as before, offloaded"},
        {"notes=As before; 8-bit AdamW"}, {"notes=packed"},
        {"notes=torch.compile"},          {"notes=as before, without torch.compile"},
        {"notes=torch.compile"},          {"notes=eager, as before"},
        {"notes=torch.compile"},          {"notes=not as before"},
        {"notes=torch.compile"},          {"notes=as before", "source=other"}};
    static const bool is[] = {true, true,  true, false, true, false,
                              true, false, true, false, true, false};
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    for (int i = 0; i < 12; i++)
        runs_row (&t, rows[i]);
    r = runs_of (text_str (&t));
    assert_int_equal (r.n, 12);
    for (int i = 0; i < 12; i++)
        assert_int_equal (r.run[i].compiled, is[i]);
    calibrate_runs_release (&r);
    text_free (&t);
}

TEST (recomputation)
{
    static const struct {
        const char *cell;
        enum workload_recompute is;
    } t[] = {{"recompute=minimal", RECOMPUTE_SELECTIVE},
             {"recompute=minimal_flash", RECOMPUTE_SELECTIVE},
             {"recompute=dots_with_no_batch_dims_saveable", RECOMPUTE_SELECTIVE},
             {"recompute=save_qkv_proj", RECOMPUTE_FULL},
             {"recompute=nothing_saveable", RECOMPUTE_FULL},
             {"recompute=SAVE_DOT_WITH_NO_BATCH_DIMS", RECOMPUTE_SELECTIVE}, /* Pax */
             {"recompute=SAVE_ITERATION_INPUT", RECOMPUTE_FULL},
             {"recompute=SAVE_EVERYTHING", RECOMPUTE_NONE},
             {"recompute=everything_saveable", RECOMPUTE_NONE},
             {"recompute=remat", RECOMPUTE_FULL},
             {"recompute=Yes (full)", RECOMPUTE_FULL},
             {"recompute=True (use_reentrant=False)", RECOMPUTE_FULL},
             {"recompute=No (fits)", RECOMPUTE_NONE},
             {"recompute=unsloth", RECOMPUTE_FULL},
             {"recompute=selective op", RECOMPUTE_SELECTIVE}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].cell);

        if (r.run[0].config.recompute != t[i].is)
            fail_msg ("%s is %d", t[i].cell, (int) r.run[0].config.recompute);
        calibrate_runs_release (&r);
    }
}

/* "default" says nothing, and how heads are shared is no kernel. */
TEST (attention)
{
    static const struct {
        const char *cell;
        bool said, flash;
    } t[] = {{"attention=dot_product", true, false},
             {"attention=math", true, false},
             {"attention=SDPA (math)", true, false},
             {"attention=sdpa_math", true, false},
             {"attention=no flash", true, false},
             {"attention=flash off", true, false},
             {"attention=without flash attention", true, false},
             {"attention=no flash; cudnn", true, true},
             {"attention=flash (no dropout)", true, true},
             {"attention=splash", true, true},
             {"attention=FA4", true, true},
             {"attention=GQA", false, true},
             {"attention=default", false, true},
             {"attention=autoselected", false, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].cell);

        assert_int_equal (r.run[0].attention_said, t[i].said);
        assert_int_equal (workload_attention_is_flash (r.run[0].job.attention),
                          t[i].flash);
        calibrate_runs_release (&r);
    }
}

/* Bytes a parameter under an optimizer: its moments beside the weights, 2 bytes of gradients and
 * masters of the framework, or of mixed precision.  A lion in "billion" is none. */
TEST (optimizers)
{
    static const struct {
        const char *optimizer, *notes, *precision, *framework;
        double bytes;
    } t[] = {
        {"adamw_torch", "notes=", "precision=bf16", "framework=trl", 0},
        {"adamw_8bit", "notes=", "precision=bf16", "framework=trl", 6},
        {"AdamW (8-bit)", "notes=", "precision=bf16", "framework=trl", 6},
        {"paged_adamw_8bit", "notes=", "precision=bf16", "framework=trl", 6},
        {"adamw_bnb_8bit", "notes=", "precision=bf16-mixed", "framework=trl", 8},
        {"Adafactor", "notes=", "precision=bf16", "framework=trl", 4},
        {"SGD", "notes=", "precision=bf16", "framework=trl", 4},
        {"SGD, momentum 0.9", "notes=", "precision=bf16", "framework=trl", 6},
        {"SGD (no momentum)", "notes=", "precision=bf16", "framework=trl", 4},
        {"Lion", "notes=", "precision=bf16", "framework=trl", 6},
        {"SGD", "notes=", "precision=bf16", "framework=deepspeed", 8},
        {"Lion", "notes=", "precision=bf16", "framework=deepspeed", 12},
        {"AdamW, momentum 0.9", "notes=", "precision=bf16", "framework=trl", 0},
        {"AdamW (8bit Adam OOM)", "notes=", "precision=bf16", "framework=trl", 0},
        {"", "notes=AdamW8bit; packed", "precision=bf16", "framework=trl", 6},
        {"", "notes=optimizer=sgd", "precision=bf16", "framework=trl", 4},
        {"", "notes=a billion tokens", "precision=bf16", "framework=trl", 0},
        {"", "notes=no 8-bit AdamW", "precision=bf16", "framework=trl", 0},
        {"", "notes=not Adafactor", "precision=bf16", "framework=trl", 0},
        {"", "notes=Adafactor was slower", "precision=bf16", "framework=trl", 0},
        {"", "notes=8-bit Adam was not used", "precision=bf16", "framework=trl", 0},
        {"", "notes=AdamW instead of 8-bit Adam", "precision=bf16", "framework=trl", 0},
        {"adamw_8bit", "notes=12 B/parameter", "precision=bf16", "framework=trl", 12}};
    struct error err = {""};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r;

        ok (LAB (&r, &err, t[i].optimizer, "", t[i].notes, t[i].precision, t[i].framework,
                 "tp=1", "pp=1"),
            &err);
        if (fabs (r.run[0].state_bytes - t[i].bytes) > 1e-12)
            fail_msg ("%s %s: %g bytes", t[i].optimizer, t[i].notes,
                      r.run[0].state_bytes);
        calibrate_runs_release (&r);
    }
}

/* Megatron's gradients and masters stay in fp32 under SGD; what other optimizers keep is not known,
 * nor less than AdamW's in fp32. */
TEST (other_optimizers)
{
    static const char *const unknown[] = {"Muon", "Shampoo", "Million", "not adafactor"};
    struct workload_profile p = profile_of ("megatron-lm"), own;
    struct calibrate_runs r;
    struct error err = {""};

    ok (LAB (&r, &err, "SGD", "", "framework=Megatron-LM", "precision=bf16"), &err);
    own = calibrate_profile_as_said (&r.run[0], &p);
    assert_float_equal (own.memory.gradient_bytes, 4.0, 0.0);
    assert_float_equal (own.memory.optimizer_bytes, 4.0, 0.0);
    calibrate_runs_release (&r);
    p = profile_of ("fsdp");
    ok (LAB (&r, &err, "Lion", "", "framework=trl", "precision=bf16-mixed"), &err);
    own = calibrate_profile_as_said (&r.run[0], &p);
    assert_float_equal (own.memory.gradient_bytes, 4.0, 0.0);
    assert_float_equal (own.memory.optimizer_bytes, 6.0, 0.0);
    calibrate_runs_release (&r);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (LAB (&r, &err, unknown[i], "", "framework=trl") != ST_INVALID ||
            !strstr (err.text, "optimizer \""))
            fail_msg ("%s: %s", unknown[i], err.text);
    ok (LAB (&r, &err, "Muon", "", "framework=trl", "notes=6 B/parameter"), &err);
    calibrate_runs_release (&r);
    assert_int_equal (LAB (&r, &err, "SGD", "", "precision=fp32"), ST_INVALID);
    assert_non_null (strstr (err.text, "in fp32 optimizers other than AdamW"));
}

/* What is offloaded goes by the stage, unless it is named; other rows' is not this one's. */
TEST (offloaded)
{
    static const struct {
        const char *zero, *notes;
        enum workload_offload what;
    } t[] = {{"zero=zero3-offload", "notes=", OFFLOAD_ALL},
             {"zero=zero2_cpu", "notes=", OFFLOAD_OPTIMIZER},
             {"zero=ZeRO-Infinity", "notes=", OFFLOAD_ALL},
             {"zero=3", "notes=x; CPU offload", OFFLOAD_ALL},
             {"zero=2", "notes=CPU offloading", OFFLOAD_OPTIMIZER},
             {"zero=3", "notes=offload_optimizer=cpu, packed", OFFLOAD_OPTIMIZER},
             {"zero=3", "notes=offload_optimizer; offload_param", OFFLOAD_ALL},
             {"zero=3", "notes=no offload", OFFLOAD_NONE},
             {"zero=3", "notes=act cpu offload=False", OFFLOAD_NONE},
             {"zero=", "notes=CPU offload", OFFLOAD_ALL},
             {"zero=3", "notes=cpu_offload=true", OFFLOAD_ALL},
             {"zero=3", "notes=enable_cpu_offload=True", OFFLOAD_ALL},
             {"zero=3", "notes=offload_optimizer=none; offload_param=none", OFFLOAD_NONE},
             {"zero=3", "notes=offload_optimizer_device: none", OFFLOAD_NONE},
             {"zero=3", "notes=offload_optimizer=false", OFFLOAD_NONE},
             {"zero=3", "notes=offload_optimizer=none; offload_param=cpu", OFFLOAD_ALL},
             {"zero=3", "notes=CPU offload: no", OFFLOAD_NONE},
             {"zero=3", "notes=CPU offload disabled", OFFLOAD_NONE},
             {"zero=3", "notes=CPU offload (disabled)", OFFLOAD_NONE},
             {"zero=3", "notes=CPU offload was not used", OFFLOAD_NONE},
             {"zero=3", "notes=ZeRO-Offload not used", OFFLOAD_NONE},
             {"zero=3", "notes=Optimizer offload off", OFFLOAD_NONE},
             {"zero=3", "notes=param offload OOMs, so without", OFFLOAD_NONE},
             {"zero=3 (no offload)", "notes=", OFFLOAD_NONE},
             {"zero=3 (offload: none)", "notes=", OFFLOAD_NONE},
             {"zero=3 (offload)", "notes=", OFFLOAD_ALL},
             {"zero=ZeRO-3 (CPU offload)", "notes=", OFFLOAD_ALL},
             {"zero=ZeRO-2 (cpu offload)", "notes=", OFFLOAD_OPTIMIZER},
             {"zero=ZeRO-3 (offload optimizer)", "notes=", OFFLOAD_OPTIMIZER},
             {"zero=ZeRO-3 (no offload)", "notes=", OFFLOAD_NONE}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE ("framework=deepspeed", t[i].zero, t[i].notes, "tp=1", "pp=1");

        if (r.run[0].config.offload != t[i].what)
            fail_msg ("%s %s: %s", t[i].zero, t[i].notes,
                      workload_offload_name (r.run[0].config.offload));
        calibrate_runs_release (&r);
    }
}

/* What is offloaded is updated on the host, whose optimizers keep fp32 moments: 8-bit ones do not
 * count, and what our own option says is refused. */
TEST (short_on_host)
{
    static const struct {
        const char *zero, *notes, *framework;
        double bytes; /* a parameter, 0 as the framework has them; -1: refused */
    } t[] = {{"zero=2", "notes=CPU offload; optimizer=adamw_8bit", "framework=trl", 0},
             {"zero=3", "notes=CPU offload; optimizer=adamw_8bit", "framework=trl", 0},
             {"zero=2", "notes=CPU offload; optimizer=adamw", "framework=trl", 0},
             {"zero=2", "notes=CPU offload; optimizer=lion", "framework=trl", 6},
             {"zero=2", "notes=optimizer=adamw_8bit", "framework=trl", 6},
             {"zero=1", "notes=offload=optimizer; optimizer-bytes=6",
              "framework=megatron-lm", -1},
             {"zero=1", "notes=offload=optimizer; optimizer-bytes=12",
              "framework=megatron-lm", 0},
             {"zero=1", "notes=optimizer-bytes=6", "framework=megatron-lm", 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = {0};
        struct error err = {""};
        enum status st =
            LAB (&r, &err, "", "", t[i].zero, t[i].notes, t[i].framework, "tp=1", "pp=1");
        bool good = t[i].bytes < 0
                        ? st != ST_OK && strstr (err.text, "the host keeps fp32 moments")
                        : st == ST_OK && r.run[0].state_bytes == t[i].bytes;

        if (!good)
            fail_msg ("%s %s: %s", t[i].framework, t[i].notes, err.text);
        calibrate_runs_release (&r);
    }
}

/* A framework's name or the column of all degrees may say that it offloads. */
TEST (offloaded_by_name)
{
    static const struct {
        const char *framework;
        enum workload_offload what;
    } t[] = {{"framework=DeepSpeed ZeRO-3 Offload", OFFLOAD_ALL},
             {"framework=DeepSpeed ZeRO-2 + CPU offload", OFFLOAD_OPTIMIZER},
             {"framework=DeepSpeed ZeRO-Infinity", OFFLOAD_ALL},
             {"framework=DeepSpeed ZeRO-Offload", OFFLOAD_OPTIMIZER},
             {"framework=DeepSpeed ZeRO-3 (no offload)", OFFLOAD_NONE},
             {"framework=DeepSpeed without CPU offload", OFFLOAD_NONE}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].framework, "tp=1", "pp=1", "zero=");

        if (r.run[0].config.offload != t[i].what)
            fail_msg ("%s: %s", t[i].framework,
                      workload_offload_name (r.run[0].config.offload));
        calibrate_runs_release (&r);
    }
}

/* Adapters may stand in a column of their own, or in a framework's name. */
TEST (adapters)
{
    static const struct {
        const char *framework, *tuning;
        bool lora, packed;
    } t[] = {{"framework=trl", "LoRA", true, false},
             {"framework=trl", "qlora", true, true},
             {"framework=trl", "full", false, false},
             {"framework=alpaca-lora", "", true, false},
             {"framework=fsdp_qlora", "", true, true},
             {"framework=trl", "LoRA (r=16)", true, false},
             {"framework=trl", "full (not LoRA)", false, false},
             {"framework=trl", "no LoRA", false, false},
             {"framework=alpaca-lora", "full", false, false},
             {"framework=trl (no LoRA)", "", false, false}};
    static const char *const unread[] = {"True",   "Adapter", "LoRA vs full", "VeRA",
                                         "BitFit", "freeze",  "full; LoRA"},
                             *const others[] = {"prefix-tuning", "DoRA", "QDoRA"},
                             *const denied[] = {
                                 "notes=no LoRA",     "notes=without LoRA",
                                 "notes=NVIDIA 3090", "notes=no prefix-tuning",
                                 "notes=LoRA=false",  "notes=no QLoRA",
                                 "model=x-no-lora"};
    struct calibrate_runs r;
    struct error err = {""};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        ok (LAB (&r, &err, "", t[i].tuning, t[i].framework, "tp=1", "pp=1"), &err);
        assert_int_equal (r.run[0].job.lora, t[i].lora);
        assert_int_equal (r.run[0].job.frozen_bytes > 0, t[i].packed);
        calibrate_runs_release (&r);
    }
    r = ONE ("model=unsloth/llama-3-8b-bnb-4bit", "framework=unsloth", "tp=1", "pp=1");
    assert_true (r.run[0].job.lora && r.run[0].job.frozen_bytes < 1);
    calibrate_runs_release (&r);
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        r = ONE (denied[i]);
        assert_false (r.run[0].job.lora);
        calibrate_runs_release (&r);
    }
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        if (LAB (&r, &err, "", unread[i], "framework=trl") != ST_INVALID ||
            !strstr (err.text, "tuning \""))
            fail_msg ("%s: %s", unread[i], err.text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal (LAB (&r, &err, "", others[i], "framework=trl"), ST_INVALID);
        assert_non_null (strstr (err.text, "adapters other than LoRA"));
    }
}

/* JAX under a policy that saves dots keeps less than all and more than layers' inputs, and takes
 * less than all again; a scan that keeps all is no faster (docs/gpu-check.md). */
TEST (between)
{
    static const char *const ways[] = {"recompute=none", "recompute=minimal",
                                       "recompute=full"};
    struct workload_profile p = profile_of ("xla");
    double peak[3], step[3];

    for (int i = 0; i < 3; i++) {
        struct calibrate_runs r = ONE (ways[i], "framework=maxtext", "tp=1", "pp=1",
                                       "zero=3", "micro_batch=4", "global_batch=64");

        peak[i] = calibrate_peak (&r.run[0], &p);
        step[i] = runs_step (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    assert_true (peak[0] > 1.2 * peak[1] && peak[1] > 1.5 * peak[2]);
    assert_true (step[0] > 0.95 * step[1] && 1.1 * step[1] < step[2]);
}
