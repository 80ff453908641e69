/* Frameworks: a row's framework finds its profile, which takes compute from the GPU type; and
 * published runs of frameworks that no source's profile was fitted on. */
#include "tests/lib/runs.h"

#include "base/units.h"

/* The source first, then the framework by the longest word, then the default. */
TEST (profiles)
{
    static const struct {
        const char *source, *framework, *profile;
    } known[] = {{"source=lab", "framework=", "megatron-core"},
                 {"source=lab", "framework=torchtitan", "torchtitan"},
                 {"source=lab", "framework=nemo", "nemo"},
                 {"source=lab", "framework=megatron-bridge", "megatron-bridge"},
                 {"source=lab", "framework=transformers+accelerate (x)", "fsdp"},
                 {"source=lab", "framework=xtuner (deepspeed)", "deepspeed"},
                 {"source=lab", "framework=something else", "megatron-core"},
                 {"source=lab", "framework=my Megatron-LM", "megatron-core"},
                 {"source=lab", "framework=LLM-Foundry 0.2", "llm-foundry"},
                 {"source=lab", "framework=nemo-automodel", "fsdp"},
                 {"source=lab", "framework=NeMo Megatron Bridge", "megatron-bridge"},
                 {"source=lab", "framework=TORCH_TITAN 0.2", "torchtitan"},
                 {"source=lab", "framework=GPT-NeoX", "megatron-deepspeed-composed"},
                 {"source=lab", "framework=Aleph-Alpha", "aleph-alpha-composed"},
                 {"source=lab", "framework=levanter", "xla"},
                 {"source=lab", "framework=Alpa", "xla"},
                 {"source=lab", "framework=Megatron-FSDP", "megatron-core-composed"},
                 {"source=lab", "framework=PyTorch DDP", "fsdp"},
                 {"source=lab", "framework=verl SFT", "fsdp"},
                 {"source=lab", "framework=modelscope/swift", "deepspeed"},
                 {"source=lab", "framework=Megatron-SWIFT", "megatron-core-composed"},
                 {"source=lab", "framework=PyTorch/XLA FSDP", "xla"},
                 {"source=lab", "framework=Stanford Alpaca", "fsdp@25.12"},
                 {"source=lab", "framework=transformers (fms-hf-tuning)", "fsdp@25.12"},
                 {"source=lab", "framework=transformers (alpaca)", "fsdp@25.12"},
                 {"source=lab", "framework=LitGPT", "litgpt"},
                 {"source=lab", "framework=Megatron-LM (TP overlap)", "megatron-core"},
                 {"source=lab", "framework=Megatron-LM (no NeMo)", "megatron-core"},
                 {"source=lab", "framework=FSDP, without DeepSpeed", "fsdp"},
                 {"source=comm_overlap_study", "framework=", "megatron-core"},
                 {"source=lab", "framework=SwiftTransformer", "megatron-core"},
                 {"source=lab", "framework=FSDP2", "fsdp"},
                 {"source=lab", "framework=HF Trainer", "fsdp"},
                 {"source=lab", "framework=GPTNeoX", "megatron-deepspeed-composed"},
                 {"source=lab", "framework=PaxML", "xla"},
                 {"source=TorchTitan_x", "framework=", "torchtitan"},
                 {"source=NeMo_24.07_perf", "framework=torchtitan", "nemo-h100"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].source, known[i].framework);
        struct workload_profile p;

        p = runs_profile (&r);
        assert_string_equal (p.name, known[i].profile);
        calibrate_runs_release (&r);
    }
}

/* A source's profile serves where it was fitted, elsewhere its composed form. */
TEST (source_elsewhere)
{
    static const char *const gpu[] = {"gpu=A100-SXM4-80GB", "gpu=H100-SXM5-80GB"},
                             *const name[] = {"megatron-core", "megatron-core-composed"};

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r = ONE ("source=MegatronLM_functional_golden", gpu[i]);

        assert_string_equal (runs_profile (&r).name, name[i]);
        calibrate_runs_release (&r);
    }
}

/* What no profile names has the default's facts and wider intervals, at a rate that untuned code
 * reaches; early Megatron-LM and forks at the default's. */
TEST (unknown)
{
    static const char *const known[] = {"framework=something else",
                                        "framework=Megatron-LM", "framework=MindSpeed",
                                        "framework=LiBai (OneFlow)"};
    struct workload_profile p, standard;
    struct error err = {""};

    ok (workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &standard, NULL, &err), &err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE ("source=lab", known[i]);

        p = runs_profile (&r);
        CLOSE (p.time.gemm, (i == 0 ? .95 : 1.0) * standard.time.gemm, 1e-12);
        CLOSE (p.time.residual, .2, 1e-12);
        CLOSE (p.memory.residual, i == 0 ? .4 : .3, 1e-12);
        CLOSE (p.memory.states_residual, p.memory.residual, 0);
        calibrate_runs_release (&r);
    }
}

/* A GPU type of which no run is on record, nor of its kin with other memory, has wider intervals,
 * unless it was measured. */
TEST (types_on_record)
{
    static const struct {
        const char *gpu;
        bool seen;
    } known[] = {
        {"h100-sxm5-80g", true}, {"h200-sxm-141g", true},  {"a100-sxm4-40g", true},
        {"rtx-4090", true},      {"rtx-5090", false},      {"h100-pcie-80g", false},
        {"h20-96g", false},      {"a100-pcie-80g", false}, {"mi355x", false}};
    json_t *by = json_object ();

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct topology_gpu_type t = *topology_gpu_type_builtin (known[i].gpu), mine = t;

        CLOSE (calibrate_type_spread (&t), known[i].seen ? 0 : .12, 0);
        snprintf (mine.name, sizeof mine.name, "mine");
        CLOSE (calibrate_type_spread (&mine), .12, 0);
        mine.like = &t;
        CLOSE (calibrate_type_spread (&mine), known[i].seen ? 0 : .12, 0);
        mine.measured = by;
        CLOSE (calibrate_type_spread (&mine), 0, 0);
    }
    json_decref (by);
}

/* A step waits for all of its GPUs: of those that nobody fitted the one that least is known of. */
TEST (types_together)
{
    const struct topology_gpu_type *a = topology_gpu_type_builtin ("a100-sxm4-80g"),
                                   *h = topology_gpu_type_builtin ("h100-sxm5-80g"),
                                   *new = topology_gpu_type_builtin ("rtx-5090");
    struct workload_profile p = profile_of ("megatron-core-composed");
    struct workload_model m = model_of ("llama-3-8b");
    struct calibrate_step_types types = {.n = 0}, one = types;
    double alone = workload_step_spread (&p, &m, false, false),
           mixed = workload_step_spread (&p, &m, false, true);

    calibrate_step_types_add (&types, &p, &m, a);
    calibrate_step_types_add (&types, &p, &m, a);
    CLOSE (calibrate_step_spread (&types, &p, &m), alone, 1e-12);
    calibrate_step_types_add (&types, &p, &m, h);
    CLOSE (calibrate_step_spread (&types, &p, &m), mixed, 1e-12);
    calibrate_step_types_add (&types, &p, &m, new);
    CLOSE (calibrate_step_spread (&types, &p, &m), hypot (mixed, .12), 1e-12);
    calibrate_step_types_add (&one, &p, &m, new);
    CLOSE (calibrate_step_spread (&one, &p, &m), hypot (alone, .12), 1e-12);
}

/* Where no profile names a row's framework its GPU, its ZeRO stage and its model tell what it may
 * have run; Megatron's forks are not its recipes.  Megatron-Core is what plans are for, with their
 * spread. */
TEST (unnamed)
{
    static const struct {
        const char *framework, *gpu, *zero, *notes, *profile;
        double residual;
    } known[] = {
        {"framework=", "gpu=A100-80GB", "zero=1", "notes=", "megatron-core", .2},
        {"framework=", "gpu=A100-80GB", "zero=3", "notes=", "fsdp", .2},
        {"framework=", "gpu=H100-SXM5-80GB", "zero=1", "notes=", "nemo", .2},
        {"framework=", "gpu=H100-SXM5-80GB", "zero=3", "notes=", "fsdp", .2},
        {"framework=mine", "gpu=H100-SXM5-80GB", "zero=1",
         "notes=", "megatron-core-composed", .2},
        {"framework=", "gpu=MI300X", "zero=1", "notes=", "megatron-core-composed", .2},
        {"framework=AMD Primus", "gpu=MI300X", "zero=1",
         "notes=", "megatron-core-composed", .2},
        {"framework=mine", "gpu=A100-80GB", "zero=3", "notes=", "fsdp", .2},
        {"framework=Megatron-LM fork", "gpu=A100-80GB", "zero=1",
         "notes=", "megatron-core", .2},
        {"framework=Megatron-LM fork", "gpu=GH200", "zero=1",
         "notes=", "megatron-core-composed", .14},
        {"framework=Megatron-Core 0.12", "gpu=A100-80GB", "zero=1",
         "notes=", "megatron-core", .12},
        {"framework=mcore", "gpu=V100-SXM2-32GB", "zero=1",
         "notes=", "megatron-core-composed", .14},
        {"framework=", "gpu=GB200", "zero=", "notes=num-experts=16; moe-router-topk=2",
         "megatron-bridge", .2},
        {"framework=", "gpu=A100-80GB", "zero=",
         "notes=num-experts=16; moe-router-topk=2", "megatron-core-composed", .2}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE ("source=lab", known[i].framework, known[i].gpu,
                                       known[i].zero, known[i].notes);
        struct workload_profile p;

        p = runs_profile (&r);
        assert_string_equal (p.name, known[i].profile);
        CLOSE (p.time.residual, known[i].residual, 1e-12);
        calibrate_runs_release (&r);
    }
}

/* What splits no model is PyTorch's, unless its ranks have whole weights and it has another name.
 */
TEST (unsplit)
{
    static const char *const known[][4] = {
        {"framework=mine", "zero=", "gpus=16", "fsdp"},
        {"framework=mine", "zero=3", "gpus=16", "fsdp"},
        {"framework=mine", "zero=1", "gpus=16", "megatron-core"},
        {"framework=mine", "zero=0", "gpus=16", "megatron-core"},
        {"framework=mine", "zero=0", "gpus=1", "fsdp"},
        {"framework=PyTorch 2.4", "zero=0", "gpus=16", "fsdp"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r =
            ONE (known[i][0], "tp=1", "pp=1", known[i][1], known[i][2]);
        struct workload_profile p;

        p = runs_profile (&r);
        assert_string_equal (p.name, known[i][3]);
        calibrate_runs_release (&r);
    }
}

/* Megatron-LM in fp16 on GPUs without fp8, and without flash attention, is that of 2020 to 2022,
 * with its profile's spreads, unless it has what came later. */
TEST (early)
{
    static const struct {
        const char *framework, *gpu, *precision, *attention, *notes, *profile;
    } known[] = {{"framework=Megatron-LM", "gpu=A100-80GB", "precision=fp16",
                  "attention=fused", "notes=", "megatron-lm-composed"},
                 {"framework=megatron-lm v2.5", "gpu=V100-SXM2-32GB", "precision=fp16",
                  "attention=", "notes=", "megatron-lm-composed"},
                 {"framework=Megatron-LM", "gpu=A100-80GB", "precision=fp16",
                  "attention=", "notes=", "megatron-core"},
                 {"framework=Megatron-LM", "gpu=A100-80GB", "precision=bf16",
                  "attention=fused", "notes=", "megatron-core"},
                 {"framework=Megatron-LM", "gpu=A100-80GB", "precision=fp16",
                  "attention=flash", "notes=", "megatron-core"},
                 {"framework=Megatron-LM", "gpu=A100-80GB", "precision=fp16",
                  "attention=fused", "notes=schedule=zb1p", "megatron-core"},
                 {"framework=Megatron-LM", "gpu=H100-SXM5-80GB", "precision=fp16",
                  "attention=fused", "notes=", "megatron-core-composed"},
                 {"framework=Megatron-Core", "gpu=A100-80GB", "precision=fp16",
                  "attention=fused", "notes=", "megatron-core"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r =
            ONE ("source=lab", known[i].framework, known[i].gpu, known[i].precision,
                 known[i].attention, known[i].notes);
        struct workload_profile p, shipped;
        struct error err = {""};

        p = runs_profile (&r);
        assert_string_equal (p.name, known[i].profile);
        if (strcmp (p.name, "megatron-lm-composed") == 0) {
            ok (workload_profile_read (p.name, &shipped, NULL, &err), &err);
            CLOSE (p.memory.residual, shipped.memory.residual, 0);
            CLOSE (p.memory.states_residual, shipped.memory.states_residual, 0);
            CLOSE (p.time.residual, shipped.time.residual, 0);
        }
        calibrate_runs_release (&r);
    }
}

/* A row's release chooses the facts: by its own column, a container's tag, a date, or its notes. */
TEST (releases)
{
    static const struct {
        const char *column, *value, *notes, *profile;
    } known[] = {
        {"other", "", "", "megatron-bridge"},
        {"framework_version", "26.04", "", "megatron-bridge@26.04"},
        {"framework_version", "26.06", "", "megatron-bridge"},
        {"framework_version", "main", "", "megatron-bridge"},
        {"container", "nvcr.io/nvidia/nemo:25.11.01", "", "megatron-bridge@26.04"},
        {"container", "nvcr.io/nvidia/nemo:26.02.nano-v3", "", "megatron-bridge@26.04"},
        {"container", "registry:26/nemo", "", "megatron-bridge"},
        {"framework_version", "0.4.1", "", "megatron-bridge"},
        {"framework_version,container", "0.4.1,nemo:26.04", "", "megatron-bridge@26.04"},
        {"date", "2026-02-27", "", "megatron-bridge@26.04"},
        {"date", "2026-09-01 12:26:00", "", "megatron-bridge"},
        {"date", "2026-02-27T12:00", "", "megatron-bridge@26.04"},
        {"date", "2026-09-01", "", "megatron-bridge"},
        {"date", "20260227", "", "megatron-bridge@26.04"},
        {"date", "20260901 12:26", "", "megatron-bridge"},
        {"other", "", "25.09 NeMo Container; x=1", "megatron-bridge@26.04"},
        {"other", "", "26.06.01 NeMo Container", "megatron-bridge"},
        {"other", "", "a NeMo Container", "megatron-bridge"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct text t = {0}, notes = {0};
        struct calibrate_runs r;
        struct workload_profile p;

        text_add (&notes, "notes=%s", known[i].notes);
        text_add (&t, "%s,%s\n", RUNS_HEADER, known[i].column);
        ROW (&t, "framework=megatron-bridge", text_str (&notes));
        t.len--; /* the row's end */
        text_add (&t, ",%s\n", known[i].value);
        r = runs_of (text_str (&t));
        assert_int_equal (r.n, 1);
        p = runs_profile (&r);
        assert_string_equal (p.name, known[i].profile);
        calibrate_runs_release (&r);
        text_free (&t);
        text_free (&notes);
    }
}

#define LLAMA_8B \
    "layers=32", "hidden=4096", "heads=32", "kv_heads=8", "ffn=14336", "tp=1", "pp=1"
#define SHAPE_70B                                                                  \
    "layers=80", "hidden=8192", "heads=64", "kv_heads=8", "ffn=28672", "seq=8192", \
        "vocab=32000"

/* Peaks in GiB as their sources measured them: pytorch/torchtitan's benchmarks
 * (llama3_h100_202412), fms-acceleration (foundation-model-stack, 876e2ed6), NVIDIA's DGX
 * benchmarks (0efdb23, 741c886), and the Ultra-Scale playbook's experiments (nanotron). */
TEST (peaks)
{
    const struct {
        const char *const *cell;
        double gib, within;
    } known[] = {
#define PEAK(GIB, WITHIN, ...) {(const char *const[]){__VA_ARGS__, NULL}, GIB, WITHIN}
        PEAK (77.0, .03, LLAMA_8B, "framework=torchtitan", "gpu=H100-96GB", "gpus=8",
              "zero=3", "micro_batch=2", "global_batch=16", "seq=8192", "vocab=128256",
              "recompute=selective"),
        PEAK (62.0, .03, LLAMA_8B, "framework=torchtitan", "gpu=H100-96GB", "gpus=128",
              "zero=3", "micro_batch=2", "global_batch=256", "seq=8192", "vocab=128256",
              "recompute=selective"),
        PEAK (67.46, .02, LLAMA_8B, "framework=accelerate", "gpus=1", "zero=0",
              "micro_batch=4", "global_batch=4", "recompute=full",
              "notes=pure bf16 (8 B/parameter)"),
        PEAK (74.8, .12, LLAMA_8B, "framework=accelerate", "gpus=2", "zero=3",
              "micro_batch=4", "global_batch=8", "vocab=128256", "recompute=full",
              "notes=fp32 states (16 B/parameter)"),
        PEAK (65.97, .1, LLAMA_8B, "framework=nemo", "gpu=H100-SXM5-80GB", "gpus=8",
              "zero=1", "cp=2", "global_batch=128", "seq=8192", "vocab=128256",
              "recompute=none"),
        PEAK (36.67, .1, "framework=nanotron", "gpu=H100-SXM5-80GB", "gpus=8", "tp=1",
              "pp=1", "layers=16", "hidden=2048", "heads=32", "ffn=8192", "vocab=131072",
              "global_batch=256", "params_b=1.3422"),
        PEAK (50.18, .1, "framework=nanotron", "gpu=H100-SXM5-80GB", "gpus=8", "tp=1",
              "pp=1", "layers=16", "hidden=2048", "heads=32", "ffn=8192", "vocab=131072",
              "micro_batch=2", "global_batch=256", "params_b=1.3422"),
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = one (known[i].cell);
        struct workload_profile p;
        double peak;

        p = runs_profile (&r);
        peak = calibrate_peak (&r.run[0], &p) / UNITS_GIB;
        if (fabs (peak / known[i].gib - 1) > known[i].within)
            fail_msg ("%zu: %.2f GiB, measured %.2f", i, peak, known[i].gib);
        calibrate_runs_release (&r);
    }
}

/* Runs that ran, on GPUs of 80 GB: MLPerf v5.0's Llama 3.1 405B, v4.0's LoRA (HPE, Dell). */
TEST (fits)
{
    struct calibrate_runs r[] = {
        ONE ("framework=nemo", "gpu=H100-SXM5-80GB", "layers=126", "hidden=16384",
             "heads=128", "kv_heads=8", "ffn=53248", "seq=8192", "vocab=32000",
             "gpus=2048", "tp=8", "pp=8", "vpp=8", "cp=2", "sp=1", "zero=1",
             "global_batch=1152", "precision=fp8"),
        ONE (SHAPE_70B, "framework=nemo", "gpu=H100-SXM5-80GB", "gpus=8", "tp=4", "pp=1",
             "sp=1", "zero=1", "global_batch=8", "precision=fp8", "notes=LoRA rank 16")};

    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        struct workload_profile p;

        p = runs_profile (&r[i]);
        assert_true (calibrate_need (&r[i].run[0], &p, MEMEST_LINKWISE) <
                     r[i].run[0].gpu_bytes);
        calibrate_runs_release (&r[i]);
    }
}

/* Step times in seconds: TorchTitan's benchmarks, MLPerf v3.1 (GPT-3 on 10,752 GPUs) and v4.0
 * (LoRA), IBM's FSDP (fms-fsdp 5a296af), DGX benchmarks, Megatron Bridge 26.04. */
TEST (steps)
{
    const struct {
        const char *const *cell;
        double step_s, within;
    } known[] = {
#define STEP(STEP_S, WITHIN, ...) \
    {(const char *const[]){__VA_ARGS__, NULL}, STEP_S, WITHIN}
        STEP (2.457, .1, LLAMA_8B, "framework=torchtitan", "gpu=H100-96GB", "gpus=8",
              "zero=3", "micro_batch=2", "global_batch=16", "seq=8192", "vocab=128256",
              "recompute=selective", "inter_node_gbps=3200"),
        STEP (0.930, .15, "model=gpt3-175B", "framework=nemo", "gpu=H100-SXM5-80GB",
              "layers=96", "hidden=12288", "heads=96", "ffn=49152", "seq=2048",
              "vocab=51200", "gpus=10752", "tp=4", "pp=8", "vpp=12", "sp=1", "zero=1",
              "global_batch=2688", "precision=fp8", "inter_node_gbps=3200"),
        STEP (9.204, .2, SHAPE_70B, "framework=fsdp", "gpu=H100-SXM5-80GB", "gpus=96",
              "zero=3", "tp=1", "pp=1", "micro_batch=2", "global_batch=192", "seq=4096",
              "recompute=selective", "inter_node_gbps=800"),
        STEP (4.076, .12, SHAPE_70B, "framework=nemo", "gpu=H100-SXM5-80GB", "gpus=8",
              "tp=4", "pp=1", "sp=1", "zero=1", "global_batch=8", "precision=fp8",
              "notes=LoRA rank 16"),
        STEP (12.39, .1, LLAMA_8B, "framework=nemo", "gpu=H100-SXM5-80GB", "gpus=8",
              "cp=2", "zero=1", "global_batch=128", "seq=8192", "vocab=128256",
              "precision=bf16"),
        /* Experts get 10,922.67 tokens each, which kernels pad. */
        STEP (12.2911, .15, "model=Kimi_K2", "framework=megatron-bridge", "gpu=GB300",
              "layers=61", "seq=4096", "gpus=256", "gpus_per_node=4", "tp=1", "pp=4",
              "vpp=4", "ep=64", "zero=1", "micro_batch=2", "global_batch=4096",
              "precision=mxfp8", "notes=26.04 NeMo Container")};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = one (known[i].cell);
        struct workload_profile p;
        double step_s;

        p = runs_profile (&r);
        step_s = runs_step (&r.run[0], &p);
        if (fabs (step_s / known[i].step_s - 1) > known[i].within)
            fail_msg ("%zu: %.3f s, measured %.3f", i, step_s, known[i].step_s);
        calibrate_runs_release (&r);
    }
}
