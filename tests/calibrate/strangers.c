/* Runs files as strangers write them: other names of columns, other forms of cells, rates in place
 * of times.  Each is read as what it says, or its row is refused with what to write. */
#include "tests/lib/runs.h"

#include "base/units.h"

/* Words of precision: of the products, and of what is kept. */
TEST (precisions)
{
    static const struct {
        const char *word;
        enum workload_precision precision;
        int states; /* bytes a parameter under a framework that keeps all in bf16; 0: as it does */
    } t[] = {{"bf16", PREC_BF16, 8},
             {"BF16", PREC_BF16, 8},
             {"bfloat16", PREC_BF16, 8},
             {"torch.bfloat16", PREC_BF16, 8},
             {"bf16-true", PREC_BF16, 8},
             {"pure bf16", PREC_BF16, 8},
             {"bf16 (no fp8)", PREC_BF16, 8},
             {"amp", PREC_BF16, 16},
             {"AMP (bf16)", PREC_BF16, 16},
             {"amp bf16", PREC_BF16, 16},
             {"bf16 amp", PREC_BF16, 16},
             {"BF16 (AMP)", PREC_BF16, 16},
             {"bf16/fp32", PREC_BF16, 16},
             {"bf16-mixed", PREC_BF16, 16},
             {"mixed", PREC_BF16, 16},
             {"mixed precision", PREC_BF16, 16},
             {"torch.autocast", PREC_BF16, 16},
             {"fp16 amp", PREC_FP16, 16},
             {"16-mixed", PREC_FP16, 16},
             {"fp16-mixed", PREC_FP16, 16},
             {"float16", PREC_FP16, 16},
             {"half", PREC_FP16, 16},
             {"torch.float16", PREC_FP16, 16},
             {"16-true", PREC_FP16, 8},
             {"fp32", PREC_FP32, 0},
             {"float32", PREC_FP32, 0},
             {"32-true", PREC_FP32, 0},
             {"tf32", PREC_TF32, 0},
             {"fp32 (TF32)", PREC_TF32, 0},
             {"float8", PREC_FP8, 0},
             {"e4m3", PREC_FP8, 0},
             {"fp8-hybrid", PREC_FP8, 0},
             {"FP8 (blockwise)", PREC_FP8, 0},
             {"fp8_current_scaling", PREC_FP8, 0},
             {"fp8 blockwise", PREC_FP8, 0},
             {"bf16 + fp8", PREC_FP8, 0},
             {"mxfp8", PREC_FP8, 0},
             {"nvfp4", PREC_FP4, 0},
             {"MXFP4", PREC_FP4, 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cell[64];
        struct calibrate_runs r;
        struct workload_profile fsdp = profile_of ("fsdp"), own;

        snprintf (cell, sizeof cell, "precision=%s", t[i].word);
        r = ONE (cell, "gpu=B200", "framework=fsdp");
        own = calibrate_profile_as_said (&r.run[0], &fsdp);
        if (r.run[0].job.precision != t[i].precision)
            fail_msg ("%s is read as %s", t[i].word,
                      workload_precision_name (r.run[0].job.precision));
        if (t[i].states > 0)
            CLOSE (2.0 + own.memory.gradient_bytes + own.memory.optimizer_bytes,
                   t[i].states, 1e-12);
        calibrate_runs_release (&r);
    }
}

/* Which 16 bits "amp" means is what the GPUs have; frameworks that keep more than it keep that. */
TEST (mixed_precision)
{
    struct calibrate_runs old = ONE ("precision=amp", "gpu=V100"),
                          megatron =
                              ONE ("precision=bf16-mixed", "framework=megatron-lm");
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT),
                            own = calibrate_profile_as_said (&megatron.run[0], &p);

    assert_int_equal (old.run[0].job.precision, PREC_FP16);
    CLOSE (own.memory.optimizer_bytes, p.memory.optimizer_bytes, 0);
    calibrate_runs_release (&old);
    calibrate_runs_release (&megatron);
}

/* A step's time where only rates are stated, in the closed forms of docs/runs.md. */
TEST (rates)
{
    static const char head[] = "source,framework,model,gpu,gpus,seq,global_batch,micro_"
                               "batch,recompute,precision,";
    static const char row[] = "lab,%s,llama-2-7b,A100 80GB,16,4096,64,1,%s,bf16,%s\n";
    const double tokens = 64 * 4096.0,
                 flop = tokens *
                        (6 * (6738415616.0 - 32000 * 4096.0) + 12 * 32 * 4096.0 * 4096);
    const struct {
        const char *column, *cell, *framework, *recompute;
        double step_s;
    } t[] = {{"tokens_per_s_per_gpu", "2048", "fsdp", "none", tokens / (2048 * 16)},
             {"tokens/s/GPU", "\"2,048\"", "fsdp", "none", tokens / (2048 * 16)},
             {"tok/s/gpu", "2.048k", "fsdp", "none", tokens / (2048 * 16)},
             {"wps", "2048", "torchtitan", "none", tokens / (2048 * 16)},
             {"tokens_per_s", "32768", "fsdp", "none", tokens / 32768},
             {"tokens_per_sec", "2048", "fsdp", "none", tokens / (2048 * 16)},
             {"samples_per_s", "8", "fsdp", "none", 8},
             {"mfu", "0.5", "fsdp", "none", flop / (16 * 312e12 * .5)},
             {"mfu", "50", "fsdp", "none", flop / (16 * 312e12 * .5)},
             {"mfu", "50%", "fsdp", "full", flop / (16 * 312e12 * .5)},
             {"MFU (%)", "50", "fsdp", "none", flop / (16 * 312e12 * .5)},
             {"mfu_pct", "50", "fsdp", "none", flop / (16 * 312e12 * .5)},
             {"tflops_per_gpu", "156", "fsdp", "full", flop / (16 * 156e12)},
             {"TFLOPS", "156", "megatron-lm", "none", flop / (16 * 156e12)},
             {"TFLOP/s/GPU", "156", "megatron-lm", "full", flop / (16 * 156e12) * 4 / 3},
             {"step time (ms)", "2500", "fsdp", "none", 2.5},
             {"s/it", "2.5", "fsdp", "none", 2.5},
             {"it/s", "0.4", "fsdp", "none", 2.5},
             {"Seq/Sec", "8", "fsdp", "none", 8},
             {"Tokens/s/chip", "2048", "maxtext", "none", tokens / (2048 * 16)},
             {"s/it", "\"0,125\"", "fsdp", "none", 0.125},
             {"s/it", "\"1,125\"", "fsdp", "none", 1125}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r;

        text_add (&text, "%s%s\n", head, t[i].column);
        text_add (&text, row, t[i].framework, t[i].recompute, t[i].cell);
        r = runs_of (text_str (&text));
        assert_int_equal (r.n, 1);
        if (fabs (r.run[0].iter_time_s / t[i].step_s - 1) > 1e-9)
            fail_msg ("%s %s: %g s, expected %g", t[i].column, t[i].cell,
                      r.run[0].iter_time_s, t[i].step_s);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Marks of doubt, kinds of networks beside rates, and words for what is usual. */
TEST (loose_cells)
{
    static const struct {
        const char *cell;
        double gbps;
    } networks[] = {
        {"inter_node_gbps=8x400G NDR", 3200}, {"inter_node_gbps=EFA 3200", 3200},
        {"inter_node_gbps=100GbE", 100},      {"inter_node_gbps=3.2T IB", 3200},
        {"inter_node_gbps=400?", 400},        {"inter_node_gbps=InfiniBand HDR", 0},
        {"inter_node_gbps=RoCE", 0}};
    struct calibrate_runs r =
        ONE ("gpus_per_node=4?", "recompute=full (assumed)", "vpp=0", "attention=FMHA?",
             "zero=yes", "global_batch=64 seqs", "precision=O2", "seq=4096 packed",
             "oom=0 (ran)", "params_b=7B-A2B");
    const struct calibrate_run *run = r.run;

    assert_int_equal (r.n, 1);
    assert_int_equal (run->gpus_per_node, 4);
    assert_int_equal (run->config.recompute, RECOMPUTE_FULL);
    assert_int_equal (run->config.deg.vpp, 1);
    assert_int_equal (run->job.attention, ATTENTION_FLASH);
    assert_false (run->zero_said);
    assert_int_equal (run->job.global_batch, 64);
    assert_int_equal (run->job.precision, PREC_FP16);
    assert_int_equal (run->job.seq, 4096);
    assert_int_equal (run->oom, 0);
    calibrate_runs_release (&r);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        r = ONE (networks[i].cell);
        CLOSE (r.run[0].part[0].inter_bytes_per_s, networks[i].gbps * 1e9 / 8, 1e-12);
        calibrate_runs_release (&r);
    }
}

/* A batch that nobody states: of its tokens, of accumulated micro-batches, or of one of each
 * replica where no pipeline hides how many there are. */
TEST (batches)
{
    static const struct {
        const char *columns, *cells;
        int batch;
    } t[] = {
        {"micro_batch,tokens_per_s_per_gpu", "2,3000", 32},
        {"per_device_train_batch_size,gradient_accumulation_steps,s/it", "2,8,9", 256},
        {"global_batch_tokens,step_time", "4M,9", 1024},
        {"batch_size,step_time", "128,9", 128},
        {"batch_size,grad accum,step_time", "2,8,9", 256},
        {"batch_size,global_batch,step_time", "2,128,9", 128},
        {"mbs,batch_size,step_time", "2,128,9", 128},
        {"micro_batch,pp,tokens_per_s_per_gpu", "2,2,3000", 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r = {0};
        struct error err = {""};

        text_add (&text, "model,gpu,gpus,seq,%s\nllama-2-7b,A100 80GB,16,4096,%s\n",
                  t[i].columns, t[i].cells);
        if (t[i].batch == 0) {
            assert_int_equal (runs_read (text_str (&text), &r, &err), ST_INVALID);
            assert_non_null (
                strstr (err.text, "global_batch unknown: it, or iter_time_s"));
        } else {
            r = runs_of (text_str (&text));
            assert_int_equal (r.run[0].job.global_batch, t[i].batch);
        }
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

static void same_run (const struct calibrate_run *a, const struct calibrate_run *b)
{
    const struct workload_degrees *d = &a->config.deg, *e = &b->config.deg;

    assert_int_equal (a->model.layers, b->model.layers);
    assert_int_equal (a->model.vocab, b->model.vocab);
    assert_int_equal (a->job.seq, b->job.seq);
    assert_int_equal (a->job.global_batch, b->job.global_batch);
    assert_int_equal (a->job.precision, b->job.precision);
    assert_int_equal (a->gpus, b->gpus);
    assert_int_equal (a->gpus_per_node, b->gpus_per_node);
    assert_ptr_equal (a->part[0].type, b->part[0].type);
    assert_true (d->tp == e->tp && d->pp == e->pp && d->dp == e->dp && d->cp == e->cp);
    assert_int_equal (a->config.zero, b->config.zero);
    assert_int_equal (a->config.micro_batch, b->config.micro_batch);
    assert_int_equal (a->config.recompute, b->config.recompute);
    assert_int_equal (a->config.sequence_parallel, b->config.sequence_parallel);
    assert_int_equal (a->oom, b->oom);
    CLOSE (a->part[0].inter_bytes_per_s, b->part[0].inter_bytes_per_s, 1e-12);
    if (!isnan (a->iter_time_s) || !isnan (b->iter_time_s))
        CLOSE (a->iter_time_s, b->iter_time_s, 1e-12);
    if (!isnan (a->peak_bytes) || !isnan (b->peak_bytes))
        CLOSE (a->peak_bytes, b->peak_bytes, 1e-12);
}

/* The same run in other words is the same run. */
TEST (same)
{
    static const char documented[] =
        "source,framework,model,gpu,gpus,gpus_per_node,inter_node_gbps,seq,tp,pp,sp,zero,"
        "micro_batch,global_batch,precision,recompute,iter_time_s,peak_mem_gb,oom\n"
        "lab,megatron-lm,llama-2-7b,A100 "
        "80GB,16,8,800,8192,2,2,1,1,1,1024,bf16,full,10.5,61.5,0\n";
    static const char *const others[] = {
        /* capitals, blanks, units behind names */
        "Source,Framework,Model,GPU,# GPUs,GPUs/node,Network (Gbps),Seq "
        "Len,TP,PP,SP,ZeRO,"
        "Micro Batch Size,Global Batch Size,Precision,Activation Checkpointing,"
        "Step Time (ms),Peak Memory (GiB),OOM\n"
        "lab,megatron-lm,llama-2-7b,A100 80GB,16,8,800,8192,2,2,yes,ZeRO-1,1,1024,BF16,"
        "True,10500,61.5,No\n",
        /* names of other programs, units in cells, thousands */
        "source,library,model_name,gpu_type,num_gpus,gpus_per_node,network_bandwidth,"
        "sequence_"
        "length,"
        "tensor_model_parallel_size,pipeline_model_parallel_size,sequence_parallel,"
        "zero_stage,micro_batch_size,global_batch_size,dtype,recompute_granularity,"
        "iteration_time,max_memory_allocated_gb,is_oom\n"
        "lab,megatron-lm,llama-2-7b,A100 80GB,16,8,800Gbps,8k,2,2,True,stage "
        "1,1,\"1,024\","
        "bfloat16,full,10.5s,61.5 GB,false\n",
        /* a byte-order mark, lines that end as on Windows, bytes for bits */
        "\xef\xbb\xbfsource,framework,model,gpu,gpus,gpus_per_node,internode_bandwidth,"
        "seq,tp,pp,"
        "sp,zero,mbs,gbs,precision,ac,step_time_s,peak_mem_mib,oom\r\n"
        "lab,megatron-lm,llama-2-7b,A100 80GB,16,8,100GB/s,8K,2,2,1,zero1,1,1k,bf16,full,"
        "~10.5,62976,0\r\n",
        /* semicolons and decimal commas */
        "source;framework;model;gpu;gpus;gpus_per_node;inter_node_gbps;seq;tp;pp;sp;zero;"
        "micro_batch;global_batch;precision;recompute;iter_time_s;peak_mem_gb;oom\n"
        "lab;megatron-lm;llama-2-7b;A100 "
        "80GB;16;8;800;8192;2;2;1;1;1;1.024e3;bf16;full;10,5;"
        "61,5;0\n",
        /* comments, of which one has the separator, an empty line; a header may begin like one */
        "# our runs, of May\n#\n\n"
        "source,framework,model,gpu,gpus,gpus_per_node,inter_node_gbps,seq,tp,pp,sp,zero,"
        "micro_batch,global_batch,precision,recompute,iter_time_s,peak_mem_gb,oom\n"
        "lab,megatron-lm,llama-2-7b,A100 "
        "80GB,16,8,800,8192,2,2,1,1,1,1024,bf16,full,10.5,61.5,0\n",
        "# our runs\n"
        "# "
        "source;framework;model;gpu;gpus;gpus_per_node;inter_node_gbps;seq;tp;pp;sp;zero;"
        "micro_batch;global_batch;precision;recompute;iter_time_s;peak_mem_gb;oom\n"
        "lab;megatron-lm;llama-2-7b;\"A100; "
        "80GB\";16;8;800;8192;2;2;1;1;1;1024;bf16;full;10,5;61,5;0\n",
        /* Excel is told of the separator */
        "\xef\xbb\xbfsep=;\r\n"
        "source;framework;model;gpu;gpus;gpus_per_node;inter_node_gbps;seq;tp;pp;sp;zero;"
        "micro_batch;global_batch;precision;recompute;\"iter_time_s\";peak_mem_gb;oom\r\n"
        "lab;megatron-lm;llama-2-7b;A100 "
        "80GB;16;8;800;8192;2;2;1;1;1;1024;bf16;full;10,5;61,5;0\r\n",
        /* tabs; nodes for GPUs */
        "source\tframework\tmodel\tgpu\tnodes\tgpus_per_node\tinter_node_"
        "gbps\tseq\ttp\tpp\tsp\t"
        "zero\tmicro_batch\tglobal_batch\tprecision\trecompute\titer_time_s\tpeak_mem_"
        "gb\toom\n"
        "lab\tmegatron-lm\tllama-2-7b\tA100 "
        "80GB\t2\t8\t800\t8192\t2\t2\t1\t1\t1\t1024\tbf16\t"
        "full\t10.5\t61.5\t0\n"};
    struct calibrate_runs r = runs_of (documented);

    CLOSE (r.run[0].iter_time_s, 10.5, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct calibrate_runs other = runs_of (others[i]);

        assert_int_equal (other.n, 1);
        same_run (&other.run[0], &r.run[0]);
        calibrate_runs_release (&other);
    }
    calibrate_runs_release (&r);
}

/* Bits and bytes of a network, by the case of the unit behind the column's name. */
TEST (networks)
{
    static const struct {
        const char *title;
        double bytes_per_s;
    } t[] = {{"inter_node_gbps", 5e10},
             {"Inter Node Gbps", 5e10},
             {"INTER_NODE_GBPS", 5e10},
             {"inter_node_GBps", 4e11},
             {"Network (GBps)", 4e11},
             {"network_bandwidth_GBps", 4e11},
             {"Network bandwidth (Gbit/s)", 5e10}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r;

        text_add (&text,
                  "model,gpu,gpus,seq,global_batch,%s\nllama-2-7b,H100,16,4096,16,400\n",
                  t[i].title);
        r = runs_of (text_str (&text));
        CLOSE (r.run[0].part[0].inter_bytes_per_s, t[i].bytes_per_s, 1e-12);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* One column for all degrees; a number that is beyond them is none of them. */
TEST (splits)
{
    static const struct {
        const char *cell;
        int tp, pp, dp, zero;
    } t[] = {{"TP8 PP4", 8, 4, 2, 0},
             {"\"tp=8, pp=4, dp=2\"", 8, 4, 2, 0},
             {"DP2-TP4-PP8", 4, 8, 2, 0},
             {"FSDP", 1, 1, 64, 3},
             {"FSDP2+TP8", 8, 1, 8, 3},
             {"\"ZeRO-2, TP-4\"", 4, 1, 16, 2},
             {"TP8PP4DP2 (interleaved)", 8, 4, 2, 0}};
    struct calibrate_runs none;
    struct error err = {""};

    assert_int_equal (runs_read ("model,parallelism,gpu,gpus,seq,global_batch\n"
                                 "llama-2-70b,TP4294967304,H100,64,4096,128\n",
                                 &none, &err),
                      ST_INVALID);
    assert_non_null (strstr (err.text, "tp x pp x cp does not divide gpus"));

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r;
        const struct workload_config *c;

        text_add (&text,
                  "source,model,parallelism,gpu,gpus,seq,micro_batch,global_batch\n"
                  "lab,llama-2-70b,%s,H100,64,4096,1,128\n",
                  t[i].cell);
        r = runs_of (text_str (&text));
        c = &r.run[0].config;
        if (c->deg.tp != t[i].tp || c->deg.pp != t[i].pp || c->deg.dp != t[i].dp ||
            (t[i].zero > 0 && c->zero != t[i].zero))
            fail_msg ("%s: %d %d %d zero %d", t[i].cell, c->deg.tp, c->deg.pp, c->deg.dp,
                      c->zero);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Words of cells. */
TEST (words)
{
    static const struct {
        const char *cell;
        int zero; /* -1: recompute */
        enum workload_recompute recompute;
    } t[] = {{"zero=zero2", 2, 0},
             {"zero=ZeRO-2", 2, 0},
             {"zero=stage 3", 3, 0},
             {"zero=FULL_SHARD", 3, 0},
             {"zero=SHARD_GRAD_OP", 2, 0},
             {"zero=HYBRID_SHARD", 3, 0},
             {"zero=FSDP2", 3, 0},
             {"zero=DDP", 0, 0},
             {"zero=NO_SHARD", 0, 0},
             {"zero=1(8)", 1, 0},
             {"recompute=True", -1, RECOMPUTE_FULL},
             {"recompute=gradient checkpointing", -1, RECOMPUTE_FULL},
             {"recompute=off", -1, RECOMPUTE_NONE},
             {"recompute=None", -1, RECOMPUTE_NONE},
             {"recompute=Full", -1, RECOMPUTE_FULL},
             {"recompute=every layer", -1, RECOMPUTE_FULL},
             {"recompute=uniform", -1, RECOMPUTE_FULL},
             {"recompute=SAC", -1, RECOMPUTE_SELECTIVE}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].cell, "pp=1");

        if (t[i].zero >= 0)
            assert_int_equal (r.run[0].config.zero, t[i].zero);
        else
            assert_int_equal (r.run[0].config.recompute, t[i].recompute);
        calibrate_runs_release (&r);
    }
}

/* So many things of so much each, where a cell is of what all have. */
TEST (products)
{
    static const struct {
        const char *gpus, *network;
        int n;
        double gbps; /* 0: not read */
    } t[] = {{"gpus=16", "inter_node_gbps=800", 16, 800},
             {"gpus=2x8", "inter_node_gbps=8x100", 16, 800},
             {"gpus=4 x 8", "inter_node_gbps=8 * 400G", 32, 3200},
             {"gpus=2*8 GPUs", "inter_node_gbps=4x25 GB/s", 16, 800}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = ONE (t[i].gpus, t[i].network);

        assert_int_equal (r.run[0].gpus, t[i].n);
        CLOSE (r.run[0].part[0].inter_bytes_per_s, t[i].gbps / 8 * 1e9, 1e-12);
        calibrate_runs_release (&r);
    }
    for (int i = 0; i < 2; i++) { /* of nothing further, or of a micro-batch */
        struct calibrate_runs r;
        struct error err = {""};
        struct text text = {0};

        text_add (&text, "%s\n", RUNS_HEADER);
        ROW (&text, i ? "micro_batch=2x2" : "gpus=2x");
        assert_int_equal (runs_read (text_str (&text), &r, &err), ST_INVALID);
        text_free (&text);
    }
}

/* Cells that say nothing are empty; a result may say that there is none. */
TEST (nothing)
{
    static const char *const cell[] = {"N/A", "n/a", "-", "null",   "None",
                                       "NaN", "--",  "?", "unknown"};
    struct calibrate_runs r;

    for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
        char vpp[32], time[32], vocab[32];

        snprintf (vpp, sizeof vpp, "vpp=%s", cell[i]);
        snprintf (time, sizeof time, "iter_time_s=%s", cell[i]);
        snprintf (vocab, sizeof vocab, "kv_heads=%s", cell[i]);
        r = ONE (vpp, time, vocab, "peak_mem_gb=40", "oom=-");
        assert_int_equal (r.run[0].config.deg.vpp, 1);
        assert_true (isnan (r.run[0].iter_time_s) && r.run[0].oom == -1);
        calibrate_runs_release (&r);
    }
    r = ONE ("iter_time_s=OOM", "peak_mem_gb=OOM");
    assert_true (r.run[0].oom == 1 && isnan (r.run[0].iter_time_s) &&
                 isnan (r.run[0].peak_bytes));
    calibrate_runs_release (&r);
    r = ONE ("tokens_per_s_per_gpu=out of memory");
    assert_int_equal (r.run[0].oom, 1);
    calibrate_runs_release (&r);
    r = ONE ("oom=Yes");
    assert_int_equal (r.run[0].oom, 1);
    calibrate_runs_release (&r);
}

/* What is not understood is refused with its place, what stands there and what is expected. */
TEST (refused)
{
    static const struct {
        const char *cell, *why;
    } t[] = {{"iter_time_s=2m30s", "iter_time_s \"2m30s\": expected seconds, as in 10.5"},
             {"seq=long", "seq \"long\": expected a whole number"},
             {"tp=2.5", "tp \"2.5\": expected a whole number"},
             {"sp=8", "sp \"8\": expected 0 or 1; a degree is of cp"},
             {"oom=maybe", "oom \"maybe\": expected 0 or 1"},
             {"zero=ZeRO++", "zero \"ZeRO++\""},
             {"recompute=default (full)", "recompute \"default (full)\""},
             {"precision=not fp8", "precision \"not fp8\""},
             {"zero=deep", "zero \"deep\": expected 0 to 3"},
             {"peak_mem_gb=most", "peak_mem_gb \"most\": expected GiB, as in 61.5"},
             {"precision=int3", "precision \"int3\": expected bf16, fp16"},
             {"recompute=sometimes", "recompute \"sometimes\": expected none, selective"},
             {"mfu=450", "mfu \"450\": expected a share"},
             {"inter_node_gbps=8 HDR", "inter_node_gbps \"8 HDR\""},
             {"inter_node_gbps=900 NVLink", "inter_node_gbps \"900 NVLink\""},
             {"params_b=13B-active", "params_b \"13B-active\""},
             {"attention=clever", "attention \"clever\": expected flash"}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r;

        text_add (&text, "%s\n", RUNS_HEADER);
        ROW (&text, "iter_time_s=9");
        ROW (&text, t[i].cell);
        r = runs_of (text_str (&text));
        assert_int_equal (r.n, 1);
        assert_int_equal (r.skipped[0].first_row, 1);
        if (!strstr (r.skipped[0].reason, t[i].why))
            fail_msg ("%s: %s", t[i].cell, r.skipped[0].reason);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Columns under other names are told; of two that mean one, the documented one is read. */
TEST (told)
{
    struct calibrate_runs r =
        runs_of ("model,gpu,num_gpus,gpus,seq_len,global_batch,"
                 "colour,VRAM\nllama-2-7b,A100,8,16,4096,16,red,62\n");

    assert_int_equal (r.run[0].gpus, 16);
    assert_string_equal (r.meant, "seq_len as seq");
    assert_string_equal (r.unread,
                         "VRAM (gpu_mem_gb is the GPU's, peak_mem_gb what was used)");
    assert_string_equal (r.table.header[4],
                         "seq_len"); /* the file's own, to be written back */
    calibrate_runs_release (&r);
}

/* Models by name alone, by a name and a count, by a count: each with the shape that it has, or one
 * of its size, whose intervals are wider. */
TEST (shapes)
{
    static const struct {
        const char *model, *params, *vocab;
        int layers, hidden, has_vocab;
        bool assumed;
    } t[] = {{"Qwen2.5-0.5B", "", "", 24, 896, 151936, false},
             {"llama-2", "13", "", 40, 5120, 32000, false},
             {"Llama 2", "70B", "", 80, 8192, 32000, false},
             {"llama-2-7b", "", "32768", 32, 4096, 32768, false},
             {"bert-large", "", "", 24, 1024, 30522, false},
             {"my gpt", "6.7", "", 32, 4096, 50257, true},
             {"7B", "", "", 34, 4096, 32000, true},
             {"", "13e9", "", 41, 5120, 32000, true},
             {"our llama", "70", "128k", 72, 8960, 128000, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r;
        struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
        const struct workload_model *m;

        text_add (&text,
                  "model,params_b,vocab,framework,gpu,gpus,seq,global_batch,iter_time_s\n"
                  "%s,%s,%s,fsdp,A100 80GB,8,4096,16,9\n",
                  t[i].model, t[i].params, t[i].vocab);
        r = runs_of (text_str (&text));
        m = &r.run[0].model;
        if (m->layers != t[i].layers || m->hidden != t[i].hidden ||
            m->vocab != t[i].has_vocab)
            fail_msg ("%s %s: %d layers of %d, %d", t[i].model, t[i].params, m->layers,
                      m->hidden, m->vocab);
        assert_true ((r.run[0].assumed > 0) == t[i].assumed);
        assert_true (t[i].assumed == (calibrate_peak_interval (&r.run[0], &p) >
                                      workload_interval (p.memory.residual)));
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Stages share the layers of such a shape, and tensor-parallel ranks its heads. */
TEST (shapes_divide)
{
    struct calibrate_runs r = runs_of (
        "params_b,gpu,gpus,seq,tp,pp,vpp,micro_batch,global_batch,iter_time_s,model\n"
        "70,A100 80GB,96,4096,8,6,2,1,96,9,x\n");

    assert_true (r.run[0].model.layers % 12 == 0 && r.run[0].model.heads % 8 == 0);
    assert_true (fabs (workload_model_params (&r.run[0].model) / 70e9 - 1) < .1);
    calibrate_runs_release (&r);
}

/* Measurements that cannot be: each is named with its first row, and no fit takes it. */
TEST (doubts)
{
    static const struct {
        const char *cells, *why; /* iter_time_s, tokens_per_s_per_gpu, peak_mem_gb */
        bool time, peak;
    } t[] = {{"9,,61", NULL, false, false},
             {"9,1800,61", NULL, false, false},
             {"0.2,,61", "shorter than the GPUs' peak allows", true, false},
             {"9000,,61", "a hundred times the estimate", true, false},
             {"9,18,61", "do not agree", true, false},
             {"9,,160", "more than the GPU's memory", false, true},
             {"9,,0.05", "less than the weights alone", false, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text text = {0};
        struct calibrate_runs r, some;
        struct calibrate_steps steps;
        struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
        struct error err = {""};

        text_add (&text,
                  "model,gpu,gpus,seq,tp,micro_batch,global_batch,precision,iter_time_s,"
                  "tokens_per_s_per_gpu,peak_mem_gb\n"
                  "llama-2-13b,A100 80GB,8,4096,8,1,32,bf16,%s\n",
                  t[i].cells);
        r = runs_of (text_str (&text));
        ok (calibrate_steps_estimate (&r, &p, NULL, NULL, &steps, &err), &err);
        calibrate_doubt_steps (&r, steps.step_s);
        calibrate_doubt_steps (&r, steps.step_s); /* is counted once */
        assert_int_equal (r.n_doubted, t[i].why != NULL);
        if (t[i].why)
            assert_non_null (strstr (r.doubted[0].reason, t[i].why));
        for (enum calibrate_part part = 0; part < CALIBRATE_PARTS; part++) {
            bool doubted = part == CALIBRATE_TIME ? t[i].time : t[i].peak;

            ok (calibrate_runs_of (&r, part, &p, &some, &err), &err);
            assert_int_equal (some.n, !doubted);
            free (some.run);
        }
        calibrate_steps_release (&steps);
        calibrate_runs_release (&r);
        text_free (&text);
    }
}

/* Frozen weights in 4 and 8 bits, by the words of precision, model or notes. */
TEST (frozen)
{
    static const struct {
        const char *cell[4];
        double bytes;
        bool lora;
    } t[] = {{{"notes=LoRA; quant=bnb.nf4"}, .5625, true},
             {{"notes=LoRA; quant=bnb.nf4-dq"}, .51586914, true},
             {{"notes=QLoRA"}, .51586914, true},
             {{"notes=QLoRA (nf4)"}, .5625, true},
             {{"notes=LoRA; load_in_8bit"}, 1, true},
             {{"precision=int8", "notes=LoRA"}, 1, true},
             {{"precision=nf4"}, .5625, true},
             {{"notes=LoRA; 4-bit base weights"}, .5625, true},
             {{"notes=LoRA"}, 0, true},
             {{"notes=lora-rank=16"}, 0, true},
             {{"notes=q-lora-rank=1536; kv-lora-rank=512"}, 0, false},
             {{"notes=q-lora-rank=1536; LoRA of all matrices"}, 0, true},
             {{"notes=8-bit AdamW"}, 0, false},
             {{"model=llama-2-7b-qlora", "layers=", "hidden=", "ffn="}, .51586914, true}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *cell[6] = {t[i].cell[0], t[i].cell[1], t[i].cell[2], t[i].cell[3]};
        struct calibrate_runs r = one (cell);

        CLOSE (r.run[0].job.frozen_bytes + 1, t[i].bytes + 1, 1e-8);
        assert_int_equal (r.run[0].job.lora, t[i].lora);
        assert_int_equal (r.run[0].job.precision, PREC_BF16);
        calibrate_runs_release (&r);
    }
}
