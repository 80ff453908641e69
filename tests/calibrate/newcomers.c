/* Tables of users: each is read as who knows such runs would read it, or refused with what to
 * write. */
#include "tests/lib/runs.h"

/* A table of one row: a plain run's columns, then others with their cells. */
static enum status read_one (const char *columns, const char *cells,
                             struct calibrate_runs *r, struct error *err)
{
    struct text t = {0};
    enum status st;

    text_add (&t, "seq,global_batch,%s\n2048,1280,%s\n", columns, cells);
    st = runs_read (text_str (&t), r, err);
    text_free (&t);
    return st;
}

static struct calibrate_runs row_of (const char *columns, const char *cells)
{
    struct calibrate_runs r;
    struct error err = {""};

    ok (read_one (columns, cells, &r, &err), &err);
    assert_int_equal (r.n, 1);
    return r;
}

/* A number beside a GPU's name is how many there are, or its memory, or of something else. */
TEST (counted_gpus)
{
    static const struct {
        const char *gpu, *gpus, *type;
        int n;
    } t[] = {{"V100 x16", "16", "v100-sxm2-32g", 16},
             {"V100 x16", "", "v100-sxm2-32g", 16},
             {"A100 x40", "40", "a100-sxm4-80g", 40},
             {"A100x8", "", "a100-sxm4-80g", 8},
             {"8x V100-16", "", "v100-sxm2-16g", 8},
             {"8 A100", "", "a100-sxm4-80g", 8},
             {"8\xc3\x97"
              "A100",
              "", "a100-sxm4-80g", 8},
             {"8x4090", "", "rtx-4090", 8},
             {"16 V100s", "", "v100-sxm2-32g", 16},
             {"v100s", "8", "v100s-pcie-32g", 8},
             {"V100S", "8", "v100s-pcie-32g", 8},
             {"H100-80 (96 cores)", "8", "h100-sxm5-80g", 8},
             {"H100 (96 cores)", "8", "h100-sxm5-80g", 8},
             {"A100 (40 GPUs)", "40", "a100-sxm4-80g", 40},
             {"A10G (24GB)", "8", "a10g", 8},
             {"H100 PCIe 80GB x4", "", "h100-pcie-80g", 4},
             {"H100 PCIe Gen5 x16", "8", "h100-pcie-80g", 8},
             {"2x DGX A100 80GB", "", "a100-sxm4-80g", 16},
             {"2x p4d.24xlarge", "", "a100-sxm4-40g", 16}};
    static const char *const lanes[] = {"H100 PCIe Gen5 x16", "RTX 4090 PCIe 4.0 x16",
                                        "A100 PCIe x8", "MI300X 192"};
    static const char *const slices[] = {"A100 MIG 1g.10gb", "A100 1g.10gb",
                                         "H100-3g.40gb"};
    struct calibrate_runs r;
    struct error err = {""};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cells[96];

        snprintf (cells, sizeof cells, "gpt2-xl,%s,%s", t[i].gpu, t[i].gpus);
        r = row_of ("model,gpu,gpus", cells);
        if (strcmp (r.run[0].part[0].type->name, t[i].type) != 0 ||
            r.run[0].gpus != t[i].n)
            fail_msg ("%s: %d of %s", t[i].gpu, r.run[0].gpus,
                      r.run[0].part[0].type->name);
        assert_true (r.run[0].gpu_bytes == r.run[0].part[0].type->memory_bytes);
        calibrate_runs_release (&r);
    }
    r = row_of ("model,GPUs", "gpt2-xl,8x H100"); /* both in one */
    assert_int_equal (r.run[0].gpus, 8);
    assert_string_equal (r.run[0].part[0].type->name, "h100-sxm5-80g");
    calibrate_runs_release (&r);
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        char cells[96];

        snprintf (cells, sizeof cells, "gpt2-xl,%s", lanes[i]);
        assert_int_equal (read_one ("model,gpu", cells, &r, &err), ST_INVALID);
        assert_non_null (strstr (err.text, "gpus"));
    }
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        char cells[96];

        snprintf (cells, sizeof cells, "gpt2-xl,%s,8", slices[i]);
        assert_int_equal (read_one ("model,gpu,gpus", cells, &r, &err), ST_INVALID);
        assert_non_null (strstr (err.text, slices[i]));
    }
}

/* Columns of what the documented form has among the notes are read as notes, and told so; others
 * that nothing reads are told, too. */
TEST (columns_of_notes)
{
    struct calibrate_runs r = runs_of (
        "model,gpu,gpus,seq,global_batch,fp16,bf16,lora_r,load_in_4bit,torch_compile,"
        "cpu_offload,use_liger_kernel,notes,learning_rate\n"
        "llama-3-8b,A100,8,2048,32,False,True,16,True,True,False,True,mine,1e-4\n"
        "llama-3-8b,A100,8,2048,32,True,False,0,False,False,True,False,,1e-4\n"
        "llama-3-8b,A100,8,2048,32,,,None,,,,,eager,1e-4\n");
    const struct calibrate_run *run = r.run;

    assert_int_equal (r.n, 3);
    assert_true (run[0].job.lora && run[0].job.frozen_bytes > 0 && run[0].compiled);
    assert_true (run[0].fused_loss && run[0].config.offload == OFFLOAD_NONE);
    assert_int_equal (run[0].job.precision, PREC_BF16);
    assert_true (run[0].precision_said);
    assert_true (!run[1].job.lora && !run[1].compiled && !run[1].fused_loss);
    assert_true (run[1].config.offload != OFFLOAD_NONE);
    assert_int_equal (run[1].job.precision, PREC_FP16);
    assert_true (!run[2].job.lora && !run[2].precision_said &&
                 run[2].job.fused_norm == CHOICE_NO);
    assert_non_null (strstr (r.meant, "lora_r as notes"));
    assert_string_equal (r.ignored, "learning_rate");
    calibrate_runs_release (&r);

    r = runs_of ("model,gpu,gpus,seq,gbs,fp8,compile,schedule\n"
                 "llama-3-8b,H100,8,2048,32,hybrid,1,cosine\n"
                 "llama-3-8b,H100,8,2048,32,0,0,cosine\n");
    assert_true (r.n == 2 && r.run[0].job.precision == PREC_FP8 && r.run[0].compiled);
    assert_true (!r.run[1].compiled && !r.run[1].precision_said);
    calibrate_runs_release (&r);

    /* Words of a column are those of its note, of what is on, or of nothing. */
    r = runs_of ("model,gpu,gpus,seq,global_batch,offload,compile,bf16,fp16,num_experts\n"
                 "llama-3-8b,A100,8,2048,32,optimizer,max-autotune,auto,auto,1\n"
                 "llama-3-8b,A100,8,2048,32,checkpoints,default,True,False,\n"
                 "llama-3-8b,A100,8,2048,32,none,False,True,False,\n");
    assert_int_equal (r.n, 3);
    assert_int_equal (r.run[0].config.offload, OFFLOAD_OPTIMIZER);
    assert_int_equal (r.run[1].config.offload, OFFLOAD_CHECKPOINTS);
    assert_int_equal (r.run[2].config.offload, OFFLOAD_NONE);
    assert_true (r.run[0].compiled && r.run[1].compiled && !r.run[2].compiled);
    assert_true (!r.run[0].precision_said && r.run[0].job.precision == PREC_BF16);
    assert_true (r.run[1].precision_said && r.run[0].model.experts == 0);
    calibrate_runs_release (&r);

    r = row_of (
        "model,layers,hidden,heads,ffn,gpu,gpus,num_experts,top_k,moe_intermediate_size",
        "our moe,24,2048,16,8192,H100,8,16,4,1024");
    assert_true (r.run[0].model.experts == 16 && r.run[0].model.top_k == 4 &&
                 r.run[0].model.expert_ffn == 1024);
    calibrate_runs_release (&r);
}

/* Items of the notes that say what a cell leaves empty, and nothing else, fill it. */
TEST (cells_noted)
{
    static const struct {
        const char *notes;
        int recompute, micro, zero, attention; /* -1: open */
    } t[] = {{"full AC", RECOMPUTE_FULL, -1, -1, -1},
             {"selective AC", RECOMPUTE_FULL, -1, -1, -1}, /* of some of the layers */
             {"with gradient checkpointing", RECOMPUTE_FULL, -1, -1, -1},
             {"no activation checkpointing", RECOMPUTE_NONE, -1, -1, -1},
             {"without recomputation", RECOMPUTE_NONE, -1, -1, -1},
             {"activation checkpointing off", RECOMPUTE_NONE, -1, -1, -1},
             {"no AC", RECOMPUTE_NONE, -1, -1, -1},
             {"AC=none", RECOMPUTE_NONE, -1, -1, -1},
             {"gradient_checkpointing=true", RECOMPUTE_FULL, -1, -1, -1},
             {"no full recomputation", -1, -1, -1, -1},
             {"full AC; no AC", -1, -1, -1, -1},
             {"ZeRO-1; then; ZeRO-3", -1, -1, -1, -1},
             {"ZeRO-2; zero 2", -1, -1, 2, -1},
             {"checkpointing would have helped", -1, -1, -1, -1},
             {"mbs 4", -1, 4, -1, -1},
             {"micro batch size=2", -1, 2, -1, -1},
             {"mbs 4 ran out", -1, -1, -1, -1},
             {"ZeRO-2; mbs 1", -1, 1, 2, -1},
             {"flash attention off", -1, -1, -1, ATTENTION_UNFUSED},
             {"no flash attention", -1, -1, -1, ATTENTION_UNFUSED},
             {"FA2", -1, -1, -1, ATTENTION_FLASH},
             {"flash attention is next", -1, -1, -1, -1}};
    struct calibrate_runs r;

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cells[96];
        const struct calibrate_run *run;

        snprintf (cells, sizeof cells, "gpt3-1.3b,A100,8,axolotl,%s", t[i].notes);
        r = row_of ("model,gpu,gpus,framework,notes", cells);
        run = r.run;
        if (run->recompute_said != (t[i].recompute >= 0) ||
            run->micro_batch_said != (t[i].micro > 0) ||
            run->zero_said != (t[i].zero >= 0) ||
            run->attention_said != (t[i].attention >= 0) ||
            (run->recompute_said && (int) run->config.recompute != t[i].recompute) ||
            (run->micro_batch_said && run->config.micro_batch != t[i].micro) ||
            (run->zero_said && run->config.zero != t[i].zero) ||
            (run->attention_said && (int) run->job.attention != t[i].attention))
            fail_msg ("%s: recompute %d, micro-batch %d, zero %d, attention %d",
                      t[i].notes, run->config.recompute, run->config.micro_batch,
                      run->config.zero, run->job.attention);
        calibrate_runs_release (&r);
    }
    /* what a cell has stays */
    r = row_of ("model,gpu,gpus,framework,ac,precision,notes",
                "gpt3-1.3b,A100,8,fsdp,none,,full AC; fp16; OOM");
    assert_int_equal (r.run[0].config.recompute, RECOMPUTE_NONE);
    assert_int_equal (r.run[0].job.precision, PREC_FP16);
    assert_int_equal (r.run[0].oom, 1);
    calibrate_runs_release (&r);
}

/* Chunks of the interleaved schedule among the notes. */
TEST (chunks_noted)
{
    static const struct {
        const char *notes;
        int vpp; /* 0: open */
    } t[] = {{"VPP=6", 6},
             {"vpp 6", 6},
             {"interleave 3", 3},
             {"interleaved schedule (6 chunks)", 6},
             {"interleaving with 2 chunks", 2},
             {"3 virtual stages", 3},
             {"virtual_pipeline_model_parallel_size=2", 2},
             {"VPP=1", 1},
             {"no VPP", 1},
             {"without interleaving", 1},
             {"interleaved; tp 8", 0},
             {"interleaved with tp 8", 0},
             {"interleaved 1F1B", 0},
             {"VPP=6; VPP=3", 0},
             {"VPP 6 was best", 0},
             {"TP8 PP16 interleaved schedule", 0},
             {"interleaved schedule with 4 microbatches", 0},
             {"no interleaving; vpp 2 slower", 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cells[128];
        struct calibrate_runs r;

        snprintf (cells, sizeof cells, "nemo,gpt3-175b,H100,128,8,16,1,%s", t[i].notes);
        r = row_of ("framework,model,gpu,gpus,tp,pp,mbs,notes", cells);
        if (r.run[0].vpp_said != (t[i].vpp > 0) ||
            (t[i].vpp > 0 && r.run[0].config.deg.vpp != t[i].vpp))
            fail_msg ("%s: vpp %d, said %d", t[i].notes, r.run[0].config.deg.vpp,
                      r.run[0].vpp_said);
        calibrate_runs_release (&r);
    }
}

/* Degrees in a cell for all, or in notes that are nothing else. */
TEST (splits)
{
    static const struct {
        const char *column, *cell;
        int tp, pp, dp, cp; /* 0: refused */
    } t[] = {{"strategy", "TP8xPP4xDP8", 8, 4, 8, 1},
             {"strategy", "tp8_pp4_dp8_cp1", 8, 4, 8, 1},
             {"strategy", "8-way TP + 4-way PP", 8, 4, 8, 1},
             {"strategy", "tensor parallel 8; pipeline parallel 4", 8, 4, 8, 1},
             {"strategy", "8-way tensor and 4-way pipeline parallelism", 8, 4, 8, 1},
             {"strategy", "Ulysses 8 + ZeRO-3", 1, 1, 32, 8},
             {"strategy", "SP=8 ZeRO3", 1, 1, 32, 8},
             {"strategy", "HSDP (32x8)", 1, 1, 256, 1},
             {"strategy", "3D (8x4x8)", 0, 0, 0, 0},
             {"strategy", "TP + FSDP", 0, 0, 0, 0},
             {"strategy", "tensor parallel", 0, 0, 0, 0},
             {"strategy", "no TP; 256-way DP", 1, 1, 256, 1},
             {"strategy", "TP8 and pipeline", 0, 0, 0, 0},
             {"strategy", "TP + DP64", 4, 1, 64, 1},
             {"strategy", "TP + PP + DP64", 0, 0, 0, 0},
             {"strategy", "pipeline + TP4 + DP32", 4, 2, 32, 1},
             {"strategy", "pipeline + DP64", 0, 0, 0, 0},
             {"notes", "tp8 pp4 dp8", 8, 4, 8, 1},
             {"notes", "TP 8; PP 4", 8, 4, 8, 1},
             {"notes", "tensor parallel 8; mine", 8, 1, 32, 1},
             {"notes", "tp 8 was slower", 1, 1, 256, 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char columns[96], cells[96];
        struct calibrate_runs r = {0};
        struct error err = {""};
        const struct workload_degrees *d;

        snprintf (columns, sizeof columns, "model,gpu,gpus,%s", t[i].column);
        snprintf (cells, sizeof cells, "gpt3-6.7b,H100,256,%s", t[i].cell);
        if (t[i].tp == 0) {
            assert_int_equal (read_one (columns, cells, &r, &err), ST_INVALID);
            assert_non_null (strstr (err.text, "degrees by name"));
            continue;
        }
        r = row_of (columns, cells);
        d = &r.run[0].config.deg;
        if (d->tp != t[i].tp || d->pp != t[i].pp || d->dp != t[i].dp || d->cp != t[i].cp)
            fail_msg ("%s: tp %d, pp %d, dp %d, cp %d", t[i].cell, d->tp, d->pp, d->dp,
                      d->cp);
        calibrate_runs_release (&r);
    }
    /* a shape of a count divides among them */
    struct calibrate_runs r =
        row_of ("params_b,model,gpu,gpus,notes", "18.4,ours,A100,256,TP 8");

    assert_int_equal (r.run[0].model.heads % 8, 0);
    calibrate_runs_release (&r);
}

/* Sizes in a model's name are the row's; where the preset of that name has others, it is another
 * model. */
TEST (sizes_named)
{
    static const struct {
        const char *model;
        int layers, hidden; /* 0: refused */
    } t[] = {{"13B (40 layers; 5120 hidden)", 40, 5120},
             {"GPT 13B (hidden size 5120; layers 40; heads 40)", 40, 5120},
             {"llama-3-8b (32 layers)", 32, 4096},
             {"GPT 24-layer 1.3B", 24, 2048},
             {"llama-3-8b (8 layers offloaded)", 32, 4096},
             {"llama-3-8b; 8 layers per stage", 32, 4096},
             {"llama-3-8b (4 x 8 layers)", 32, 4096},
             {"llama-3-8b (head dim 128)", 32, 4096},
             {"llama-3-8b (GQA 8 heads)", 32, 4096},
             {"mamba2-2.7b", 64, 2560}, /* a preset; other hybrids are not read */
             {"mamba-hybrid", 0, 0},
             {"llama-3-8b-multimodal", 0, 0},
             {"llama-3-8b GRPO", 0, 0}, /* what follows a preset's name is not ignored */
             {"mamba2-2.7b-release", 0, 0},
             {"llama-3-8b (16 layers)", 0, 0},
             {"Llama-3.1-8B-4layers", 0, 0},
             {"Mixtral 8x7B (4 layers)", 0, 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cells[128];
        struct calibrate_runs r = {0};
        struct error err = {""};
        bool read;

        snprintf (cells, sizeof cells, "%s,H100,64,fsdp", t[i].model);
        read = read_one ("model,gpu,gpus,framework", cells, &r, &err) == ST_OK;
        if (read != (t[i].layers > 0) || (read && (r.run[0].model.layers != t[i].layers ||
                                                   r.run[0].model.hidden != t[i].hidden)))
            fail_msg ("%s: %s, %d layers", t[i].model, err.text,
                      read ? r.run[0].model.layers : 0);
        calibrate_runs_release (&r);
    }
}

/* Who ran it, where no framework's cell says so. */
TEST (frameworks)
{
    static const struct {
        const char *columns, *cells, *profile;
        int zero;
    } t[] = {{"gpu,strategy", "A100,FSDP", "fsdp", 3},
             {"gpu,strategy", "A100,DDP", "fsdp", 0},
             {"gpu,strategy", "A100,DistributedDataParallel", "fsdp", 0},
             {"gpu,strategy", "A100,DDP + TP4", "megatron-core", 0},
             {"gpu,strategy,tp", "A100,DDP,4", "megatron-core", 0},
             {"gpu,fsdp,tp", "A100,no,4", "megatron-core", 0},
             {"gpu,fsdp,zero", "A100,no,1", "megatron-core", 1},
             {"gpu,strategy", "A100,deepspeed_stage_2", "deepspeed", 2},
             {"gpu,fsdp", "A100,SHARD_GRAD_OP", "fsdp", 2},
             {"gpu,fsdp", "A100,NO_SHARD", "fsdp", 0},
             {"gpu,per_device_train_batch_size", "A100,1", "fsdp", 3},
             {"gpu,framework", "V100,PyTorch", "fsdp", 3},
             {"gpu,framework,tp", "V100,ours,2", "megatron-v100", 1},
             {"gpu,mbs", "V100,1", "megatron-v100", 1},
             {"gpu,mbs", "RTX 4090,1", "fsdp", 3},
             {"gpu,mbs,tp", "RTX 4090,1,2", "megatron-core-composed", 1},
             {"gpu,framework", "H100,verl (Megatron)", "megatron-core-composed", 1},
             {"gpu,framework", "H100,ms-swift (Megatron)", "megatron-core-composed", 1},
             {"gpu,framework", "H100,NeMo (Megatron-Core)", "nemo", 1},
             {"gpu,framework", "A100,Colossal-AI (HybridParallel tp4 pp2)",
              "megatron-core", 0},
             {"gpu,framework", "H100,verl", "fsdp", 3},
             {"gpu,framework,batch_size", "A100,nanoGPT,4", "nanogpt", 0}};
    struct calibrate_runs r;
    struct error err = {""};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char columns[96], cells[96];

        snprintf (columns, sizeof columns, "model,gpus,%s", t[i].columns);
        snprintf (cells, sizeof cells, "gpt3-1.3b,8,%s", t[i].cells);
        r = row_of (columns, cells);
        if (strcmp (runs_profile (&r).name, t[i].profile) != 0 ||
            r.run[0].config.zero != t[i].zero)
            fail_msg ("%s: %s, zero %d", t[i].cells, runs_profile (&r).name,
                      r.run[0].config.zero);
        calibrate_runs_release (&r);
    }
    r = row_of ("model,gpu,gpus,fsdp", "gpt3-1.3b,A100,16,8"); /* a degree, too */
    assert_string_equal (r.run[0].framework, "fsdp");
    assert_int_equal (r.run[0].config.shard, 8);
    calibrate_runs_release (&r);
    assert_int_equal (
        read_one ("model,gpu,gpus,framework", "llama-3-8b,H100,8,FSDP-QDoRA", &r, &err),
        ST_INVALID);
    assert_non_null (strstr (err.text, "adapters other than LoRA"));
    assert_int_equal (
        read_one ("model,gpu,gpus,framework", "llama-3-8b,H100,8,TRL DPO", &r, &err),
        ST_INVALID);
    assert_non_null (strstr (err.text, "DPO"));
}

/* Nothing is split that a framework does not split, nor where the row says how it shards: then it
 * does not fit. */
TEST (not_split)
{
    static const char *const framework[] = {"axolotl", "deepspeed", "megatron-lm"};

    for (int i = 0; i < 3; i++) {
        char cells[96];
        struct calibrate_runs r;
        struct workload_profile p;

        snprintf (cells, sizeof cells, "llama-2-13b,A6000,2,%s,%s", framework[i],
                  i < 2 ? "2" : "");
        r = row_of ("model,gpu,gpus,framework,zero", cells);
        p = runs_profile (&r);
        assert_int_equal (r.run[0].config.deg.tp, i < 2 ? 1 : 2);
        if (i < 2)
            assert_true (calibrate_chance (&r.run[0], &p) > .5);
        calibrate_runs_release (&r);
    }
}

/* Times, rates and peaks with units of their own. */
TEST (units)
{
    static const struct {
        const char *column, *cell;
        double step_s, peak_gib; /* 0: not of this */
    } t[] = {{"time per iteration", "9.5 s/it", 9.5, 0},
             {"step time", "9.5 seconds/step", 9.5, 0},
             {"speed", "950 ms/step", .95, 0},
             {"avg. iteration time (ms)", "9500", 9.5, 0},
             {"train/step_time", "9.5", 9.5, 0},
             {"throughput", "327680 tokens/s", 8, 0},
             {"throughput", "40960 tokens/s/GPU", 8, 0},
             {"Throughput", "160 samples/s", 8, 0},
             {"samples/s/gpu", "20", 8, 0},
             {"throughput", "20 samples/s/GPU", 8, 0},
             {"step_time_minutes", "0.5", 30, 0},
             {"it/s", "0.125 it/s", 8, 0},
             {"step_ms", "9500", 9.5, 0},
             {"peak memory", "59392MiB / 81559MiB", 0, 58},
             {"peak memory", "58 GB / 80 GB", 0, 58},
             {"max_memory_allocated", "59392", 0, 58},
             {"max_memory_allocated", "62277025792", 0, 58}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char columns[96], cells[96];
        struct calibrate_runs r;

        snprintf (columns, sizeof columns, "model,gpu,gpus,framework,%s", t[i].column);
        snprintf (cells, sizeof cells, "llama-2-7b,A100 80GB,8,fsdp,%s", t[i].cell);
        r = row_of (columns, cells);
        if (t[i].step_s > 0 && fabs (r.run[0].iter_time_s / t[i].step_s - 1) > 1e-9)
            fail_msg ("%s: %g s", t[i].cell, r.run[0].iter_time_s);
        if (t[i].peak_gib > 0)
            CLOSE (r.run[0].peak_bytes, t[i].peak_gib * 0x1p30, 1e-9);
        calibrate_runs_release (&r);
    }
}

/* Of columns that may mean one, that of GPUs is no host's, and an average is no peak. */
TEST (columns_apart)
{
    struct calibrate_runs r =
        row_of ("model,machine,GPU model,gpus,avg memory,step_time_min,train_layers,"
                "mean step time",
                "gpt3-1.3b,node017,H100,8,40,8,2,9");

    assert_string_equal (r.run[0].part[0].type->name, "h100-sxm5-80g");
    assert_true (isnan (r.run[0].peak_bytes));
    CLOSE (r.run[0].iter_time_s, 9, 0);
    assert_string_equal (r.ignored, "machine, avg memory, train_layers");
    assert_string_equal (r.unread, "step_time_min (the shortest, or minutes)");
    calibrate_runs_release (&r);
}

/* A rate whose cells have several units is not read; nor a utilisation of hardware as one of the
 * model. */
TEST (rates)
{
    struct calibrate_runs r = runs_of ("model,gpu,gpus,seq,global_batch,throughput\n"
                                       "gpt2-xl,A100,8,1024,64,28000 tokens/s\n"
                                       "gpt2-xl,A100,8,1024,64,3500 tokens/s/GPU\n"),
                          mfu = row_of ("model,gpu,gpus,framework,ac,mfu",
                                        "llama-2-7b,A100,8,fsdp,full,40%"),
                          hfu = row_of ("model,gpu,gpus,framework,ac,hfu",
                                        "llama-2-7b,A100,8,fsdp,full,40%"),
                          none;
    struct error err = {""};

    assert_true (isnan (r.run[0].iter_time_s) && isnan (r.run[1].iter_time_s));
    assert_non_null (strstr (r.unread, "throughput"));
    CLOSE (hfu.run[0].iter_time_s, mfu.run[0].iter_time_s * 4 / 3, 1e-12);
    assert_int_equal (
        read_one ("model,gpu,gpus,hfu", "llama-2-7b,A100,8,450", &none, &err),
        ST_INVALID);
    assert_non_null (strstr (err.text, "hfu \"450\""));
    calibrate_runs_release (&r);
    calibrate_runs_release (&mfu);
    calibrate_runs_release (&hfu);
}

/* A table as it stands in a README, between bars; the rule under its header is no row. */
TEST (between_bars)
{
    struct calibrate_runs r =
        runs_of ("| Model | GPUs | Seq, tokens | GBS | Step time |\n"
                 "|---|:---:|---|---:|---|\n"
                 "| gpt2-xl | 8x A100 | 1,024 | 64 | 1.5 s |\n"
                 "| gpt2-xl | 8x H100 | 1,024 | 64 | - |\n");

    assert_int_equal (r.n, 2);
    assert_int_equal (r.table.rows, 2);
    assert_int_equal (r.run[0].job.seq, 1024);
    assert_int_equal (r.run[1].gpus, 8);
    CLOSE (r.run[0].iter_time_s, 1.5, 0);
    calibrate_runs_release (&r);
}

/* Marks for what the row above has, for yes and no, for what is left. */
TEST (marks)
{
    struct calibrate_runs r = runs_of ("model,gpu,gpus,seq,gbs,framework,tp,ac,oom\n"
                                       "gpt2-xl,A100 80GB,2\xc3\x97"
                                       "8,1024,64,fsdp,-1,\xe2\x9c\x93,\xe2\x9c\x97\n"
                                       "ditto,same,'',\xe3\x80\x83,as above,ditto,'',"
                                       "\xe2\x9d\x8c,\xe2\x9c\x85\n"
                                       "'','','','','','','','',''\n");

    assert_int_equal (r.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal (r.run[i].gpus, 16);
        assert_int_equal (r.run[i].job.seq, 1024);
        assert_string_equal (r.run[i].framework, "fsdp");
        assert_int_equal (r.run[i].config.recompute,
                          i == 0 ? RECOMPUTE_FULL : RECOMPUTE_NONE);
        assert_int_equal (r.run[i].oom, i > 0);
    }
    calibrate_runs_release (&r);
}

/* Who says that a run fits says that it did not run out; other words of failure. */
TEST (ran_out)
{
    static const struct {
        const char *column, *cell;
        int oom;
    } t[] = {
        {"fits", "yes", 0},     {"fits", "no", 1},       {"success", "False", 1},
        {"fits", "", -1},       {"fits", "OOM", 1},      {"status", "", -1},
        {"fits", "barely", -1}, {"success", "0.98", -1}, {"step_ms", "OOM (79.2 GB)", 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char columns[96], cells[96];
        struct calibrate_runs r;

        snprintf (columns, sizeof columns, "model,gpu,gpus,%s", t[i].column);
        snprintf (cells, sizeof cells, "gpt3-1.3b,H100,8,%s", t[i].cell);
        r = row_of (columns, cells);
        if (r.run[0].oom != t[i].oom)
            fail_msg ("%s %s: %d", t[i].column, t[i].cell, r.run[0].oom);
        calibrate_runs_release (&r);
    }
}

/* Results of a run that ran out are empty where tables have 0; of one that ran 0 is none. */
TEST (nothing_measured)
{
    static const char *const results[] = {"iter_time_s", "mfu", "peak_mem_gb"};

    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct calibrate_runs r;
        char text[160];

        snprintf (text, sizeof text,
                  "model,gpu,gpus,seq,micro_batch,%s,oom\n"
                  "gpt3-1.3b,H100,8,2048,1,0,1\ngpt3-1.3b,H100,8,2048,1,0,0\n",
                  results[i]);
        r = runs_of (text);
        assert_int_equal (r.n, 1);
        assert_int_equal (r.run[0].oom, 1);
        assert_true (isnan (r.run[0].iter_time_s) && isnan (r.run[0].peak_bytes));
        calibrate_runs_release (&r);
    }
}

/* nanoGPT's own names; its steps of accumulation are of all ranks together. */
TEST (nanogpt)
{
    struct calibrate_runs r =
        runs_of ("framework,model,gpu,gpus,block_size,batch_size,gradient_accumulation_"
                 "steps,dtype,"
                 "compile,ms/iter\n"
                 "nanoGPT,gpt2,A100 40GB,8,1024,12,40,bfloat16,True,250\n"
                 "nanoGPT,gpt2-xl,A100 80GB,8,1024,4,8,bfloat16,True,900\n");
    struct workload_profile p = profile_of ("nanogpt"), own;

    assert_int_equal (r.run[0].job.global_batch, 480);
    assert_int_equal (r.run[1].job.global_batch, 32);
    for (int i = 0; i < 2; i++) {
        const struct calibrate_run *run = &r.run[i];

        own = calibrate_profile_as_said (run, &p);
        assert_int_equal (run->config.zero, 0);
        assert_int_equal (run->config.recompute, RECOMPUTE_NONE);
        assert_int_equal (run->config.micro_batch, i ? 4 : 12);
        assert_true (run->compiled && isfinite (run->iter_time_s));
        /* fp32 weights with copies of 16 bits, gradients, moments */
        CLOSE (2.0 + own.memory.gradient_bytes + own.memory.optimizer_bytes, 18, 0);
    }
    calibrate_runs_release (&r);
}

/* A window among the notes, or none. */
TEST (windows)
{
    static const struct {
        const char *model, *window, *notes;
        int tokens, layers;
    } t[] = {{"llama-3-8b", "", "sliding window 4096", 4096, 32},
             {"llama-3-8b", "4096", "", 4096, 32},
             {"gemma-2-9b", "-1", "", 0, 0},
             {"gemma-2-9b", "", "no sliding window", 0, 0},
             {"gemma-2-9b", "", "", 4096, 21},
             {"gemma-2-9b", "1024", "", 1024, 21}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cells[96];
        struct calibrate_runs r;

        snprintf (cells, sizeof cells, "%s,H100,8,%s,%s", t[i].model, t[i].window,
                  t[i].notes);
        r = row_of ("model,gpu,gpus,sliding_window,notes", cells);
        assert_int_equal (r.run[0].model.window, t[i].tokens);
        assert_int_equal (r.run[0].model.window_layers, t[i].layers);
        calibrate_runs_release (&r);
    }
}
