/* What a row says of its framework besides: experts, kernels, captured steps, precision, networks,
 * and what is meant where it says nothing. */
#include "tests/lib/runs.h"

#include "base/units.h"

/* NeMo before mid 2023 had no user buffers; a round of MLPerf has its date. */
TEST (rounds)
{
    static const struct {
        const char *source, *profile;
    } known[] = {{"source=MLPerf_Training_v3.0", "nemo@23.06"},
                 {"source=mlperf v2.1, closed", "nemo@23.06"},
                 {"source=MLPerf_Training_v3.1", "nemo"},
                 {"source=MLPerf_Training_v5.0", "nemo"},
                 {"source=lab v3.0", "nemo"}};
    struct workload_profile old = profile_of ("nemo@23.06"), now = profile_of ("nemo");

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].source, "framework=nemo");
        struct workload_profile p;

        p = runs_profile (&r);
        assert_string_equal (p.name, known[i].profile);
        calibrate_runs_release (&r);
    }
    assert_true (now.time.tp_comm_overlap && !old.time.tp_comm_overlap);
    assert_true (old.time.dp_overlap < now.time.dp_overlap);
    assert_true (old.memory.optimizer_bytes == 10);
}

/* What the notes say of norms, activations and rotary embeddings in one kernel; a note of its own
 * overrules it. */
TEST (fused)
{
    static const enum workload_choice P = CHOICE_PROFILE, N = CHOICE_NO, Y = CHOICE_YES;
    const struct {
        const char *notes;
        enum workload_choice norm, mlp, rotary;
    } known[] = {{"notes=", P, P, P},
                 {"notes=Table 1; eager; GiB", N, N, P},
                 {"notes=packed, torch.compile", Y, Y, P},
                 {"notes=compile ; x", Y, Y, P},
                 {"notes=Torch compile; x", Y, Y, P},
                 {"notes=torch.compile=True", Y, Y, P},
                 {"notes=compile state not stated", P, P, P},
                 {"notes=eager;fused-norm=true;fused-mlp=true", Y, Y, P},
                 {"notes=a; fused kernels (foak); b", Y, P, Y},
                 {"notes=fused MLP/bias/LayerNorm/cross-entropy kernels", Y, Y, P},
                 {"notes=no fused kernels", P, P, P},
                 {"notes=Liger kernels", Y, Y, Y},
                 {"framework=unsloth (trl)", Y, Y, Y},
                 {"framework=trl without unsloth", P, P, P}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].notes);

        assert_int_equal (r.run[0].job.fused_norm, known[i].norm);
        assert_int_equal (r.run[0].job.fused_mlp, known[i].mlp);
        assert_int_equal (r.run[0].facts.fused_rotary, known[i].rotary);
        calibrate_runs_release (&r);
    }
}

/* The compiler launches few kernels: a small model takes less time than by fewer kernels alone. */
TEST (compiled)
{
    static const char *const notes[] = {"notes=fused-norm=true;fused-mlp=true",
                                        "notes=torch.compile"};
    struct workload_profile fsdp = profile_of ("fsdp"),
                            old = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double step_s[2];

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r = ONE (notes[i], "framework=fsdp", "hidden=1024",
                                       "heads=16", "ffn=2816", "seq=512", "tp=1", "pp=1");

        step_s[i] = runs_step (&r.run[0], &fsdp);
        CLOSE (calibrate_profile_as_said (&r.run[0], &old).time.layer_launch_fwd_s,
               old.time.layer_launch_fwd_s, 0);
        calibrate_runs_release (&r);
    }
    assert_true (step_s[1] < .7 * step_s[0]);
}

/* Experts with a capacity, by Megatron's option or in a word. */
TEST (dropped)
{
    static const struct {
        const char *cell;
        bool drops;
        double capacity;
    } known[] = {
        {"notes=", false, 0},
        {"model=llama-x (tokendrop)", true, 0},
        {"notes=with token dropping", true, 0},
        {"notes=moe-expert-capacity-factor=1.5", true, 1.5},
        {"notes=moe-expert-capacity-factor=2; moe-pad-expert-input-to-capacity=true",
         true, 2},
        {"notes=moe-expert-capacity-factor=2; moe-pad-expert-input-to-capacity=false",
         false, 2},
        {"notes=moe-expert-capacity-factor=None", false, 0}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE (known[i].cell);

        assert_true (r.run[0].drops_tokens == known[i].drops);
        CLOSE (r.run[0].expert_capacity, known[i].capacity, 1e-12);
        calibrate_runs_release (&r);
    }
}

/* A row's step with these notes, of experts over two nodes. */
static double experts_s (const char *notes)
{
    struct text cell = {0};
    struct calibrate_runs r;
    struct workload_profile p;
    double step_s;

    text_add (&cell, "notes=num-experts=16; moe-router-topk=2; %s", notes);
    r = ONE (text_str (&cell), "ep=16", "tp=1", "pp=1", "framework=megatron-bridge");
    p = runs_profile (&r);
    step_s = runs_step (&r.run[0], &p);
    calibrate_runs_release (&r);
    text_free (&cell);
    return step_s;
}

/* A capacity over the mean takes longer; "flex" sends less than "alltoall". */
TEST (experts_notes)
{
    double one = experts_s ("moe-expert-capacity-factor=1"),
           two = experts_s ("moe-expert-capacity-factor=2"),
           flex = experts_s ("moe-token-dispatcher-type=flex"),
           all = experts_s ("moe-token-dispatcher-type=alltoall");

    assert_true (two > 1.1 * one);
    assert_true (all > 1.01 * flex);
    CLOSE (experts_s (""), flex, 1e-12); /* the framework's */
    CLOSE (experts_s ("moe-layer-freq=([0]*1+[1]*1)*16"), experts_s ("moe-layer-freq=2"),
           1e-9);
    CLOSE (experts_s ("moe-layer-freq=[0]*1+([1]*1+[0]*1)*15+[1]*1+[0]*0"),
           experts_s ("moe-layer-freq=2"), 1e-9);
}

/* Recipes overlap exchanges with precisions of blocks since 26.06; else where these leave the
 * NVLink domain beside an interleaved pipeline. */
TEST (exchanges_overlap)
{
    static const struct {
        const char *gpu, *ep, *vpp, *precision, *notes;
        bool overlaps;
    } known[] = {
        {"gpu=H100-SXM5-80GB", "ep=16", "vpp=2", "precision=bf16", "26.04", true},
        {"gpu=H100-SXM5-80GB", "ep=8", "vpp=2", "precision=bf16", "26.04", false},
        {"gpu=H100-SXM5-80GB", "ep=16", "vpp=1", "precision=bf16", "26.04", false},
        {"gpu=GB200", "ep=16", "vpp=2", "precision=mxfp8", "26.04", false},
        {"gpu=GB200", "ep=16", "vpp=2", "precision=mxfp8", "26.06", true},
        {"gpu=GB200", "ep=16", "vpp=2", "precision=bf16", "26.06", false},
        {"gpu=H100-SXM5-80GB", "ep=16", "vpp=2", "precision=fp8", "26.06", true},
        {"gpu=H100-SXM5-80GB", "ep=16", "vpp=1", "precision=fp8", "26.06", false}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct text notes = {0};
        struct calibrate_runs r;
        struct workload_profile p;

        text_add (&notes, "notes=%s NeMo Container; num-experts=16; moe-router-topk=2",
                  known[i].notes);
        r = ONE ("model=x", known[i].gpu, known[i].ep, known[i].vpp, known[i].precision,
                 "gpus=32", "pp=2", "tp=1", "layers=32", "micro_batch=1",
                 "global_batch=64", "framework=megatron-bridge", text_str (&notes));
        p = runs_profile (&r);
        p = calibrate_profile_as_said (&r.run[0], &p);
        assert_true ((p.time.moe_overlap > 0) == known[i].overlaps);
        calibrate_runs_release (&r);
        text_free (&notes);
    }
}

/* Some models' recipes keep the plain all-to-all: GPT-OSS's where no step is captured, Qwen3 235B's
 * outside racks. */
TEST (recipes_exchange)
{
    static const struct {
        const char *model, *gpu, *precision;
        bool plain;
    } known[] = {{"model=GPT OSS 120B", "gpu=GB200", "precision=bf16", true},
                 {"model=GPT OSS 120B", "gpu=GB200", "precision=mxfp8", false},
                 {"model=Qwen3_235B_a22B", "gpu=GB200", "precision=bf16", false},
                 {"model=Qwen3_235B_a22B", "gpu=B200", "precision=mxfp8", true},
                 {"model=Qwen3_30B_a3B", "gpu=H100-SXM5-80GB", "precision=fp8", false}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int said = 0; said < 2; said++) {
            struct calibrate_runs r =
                ONE (known[i].model, known[i].gpu, known[i].precision, "ep=8", "gpus=64",
                     "pp=1", "tp=1", "dp=64", "layers=", "hidden=", "heads=", "kv_heads=",
                     "ffn=", "vocab=", "micro_batch=1", "global_batch=64",
                     "framework=megatron-bridge",
                     said ? "notes=moe-token-dispatcher-type=flex" : "notes=");
            struct workload_profile p = runs_profile (&r);

            p = calibrate_profile_as_said (&r.run[0], &p);
            assert_true (p.time.deduplicated_dispatch == (said || !known[i].plain));
            calibrate_runs_release (&r);
        }
}

/* A row's fused rotary embeddings take less time. */
TEST (rotary)
{
    struct workload_profile p = profile_of ("fsdp");
    struct calibrate_runs stock = ONE ("notes=fused-norm=true"),
                          fast = ONE ("notes=fused kernels");

    assert_true (runs_step (&fast.run[0], &p) < runs_step (&stock.run[0], &p));
    calibrate_runs_release (&stock);
    calibrate_runs_release (&fast);
}

/* Capture of whole steps or of parts of layers with experts, as a row says it in Megatron's words:
 * a model without experts has no such parts. */
TEST (captures)
{
    static const struct {
        const char *notes;
        enum workload_choice captured;
    } known[] = {{"notes=", CHOICE_PROFILE},
                 {"notes=cuda-graph-impl=full_iteration", CHOICE_YES},
                 {"notes=cuda-graph-impl=none", CHOICE_NO},
                 {"notes=cuda-graph-impl=transformer_engine", CHOICE_PROFILE},
                 {"notes=10 runs; CUDA graphs", CHOICE_YES},
                 {"notes=no CUDA graphs", CHOICE_NO},
                 {"notes=CUDA graph: off", CHOICE_NO},
                 {"notes=FP8 without CUDA graphs", CHOICE_NO},
                 {"notes=without CUDA graphs", CHOICE_NO},
                 {"notes=10 runs; !CUDA graphs", CHOICE_NO},
                 {"notes=!cuda-graphs", CHOICE_NO},
                 {"notes=no FP8; CUDA graphs", CHOICE_YES},
                 {"notes=CUDA graphs as before", CHOICE_PROFILE}};
    struct workload_profile p = profile_of ("nemo");
    double step_s[sizeof known / sizeof *known];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r =
            ONE (known[i].notes, "hidden=512", "heads=8", "ffn=2048");

        assert_int_equal (r.run[0].captured, known[i].captured);
        step_s[i] = runs_step (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    assert_true (step_s[1] < step_s[0]);
    assert_true (step_s[2] == step_s[0] && step_s[3] == step_s[0]);
    assert_true (step_s[4] == step_s[1] && step_s[5] == step_s[0]);
}

/* What notes say is denied by a word before it and by a "!" alike. */
TEST (denied)
{
    static const char *const said[] = {"compile", "activation offloading", "8-bit Adam",
                                       "QLoRA", "chunked cross-entropy"};
    static const char *const before[] = {"", "no ", "10 runs; without ", "!",
                                         "10 runs; !"};

    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
            char notes[64];
            struct calibrate_runs r;
            const struct calibrate_run *run;

            snprintf (notes, sizeof notes, "notes=%s%s", before[k], said[i]);
            r = ONE (notes, "hidden=512", "heads=8", "ffn=2048");
            run = r.run;
            if ((run->compiled || run->config.offload != OFFLOAD_NONE || run->moments ||
                 run->job.lora || run->chunked_loss) != (k == 0))
                fail_msg ("%s", notes);
            calibrate_runs_release (&r);
        }
}

/* Parts are captured where a row says so, else as the profile's recipes do: in racks. */
TEST (captured_parts)
{
    static const struct {
        const char *impl;
        enum workload_captured parts;
    } known[] = {{"", CAPTURED_IN_RACKS},
                 {"; cuda-graph-impl=transformer_engine", CAPTURED_EVERYWHERE},
                 {"; cuda-graph-impl=none", CAPTURED_NOWHERE},
                 {"; with CUDA graphs", CAPTURED_EVERYWHERE},
                 {"; CUDA graphs off", CAPTURED_NOWHERE}};
    struct workload_profile p = profile_of ("megatron-bridge");
    double step_s[5];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char notes[128];

        snprintf (notes, sizeof notes, "notes=num-experts=16; moe-router-topk=2%s",
                  known[i].impl);
        struct calibrate_runs r = ONE (notes, "hidden=512", "heads=8", "ffn=2048");

        assert_int_equal (calibrate_profile_as_said (&r.run[0], &p).captured_parts,
                          known[i].parts);
        step_s[i] = runs_step (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    assert_true (step_s[1] < step_s[0] && step_s[2] == step_s[0]);
    assert_true (step_s[3] == step_s[1]);
}

/* TorchTitan's overlap of tensor parallelism by its name; a note of its own decides. */
TEST (tensor_overlap)
{
    static const struct {
        const char *notes;
        enum workload_choice said;
    } known[] = {{"float8 and asynchronous TP", CHOICE_YES},
                 {"FSDP2, async-TP", CHOICE_YES},
                 {"async tensor parallel", CHOICE_YES},
                 {"no async TP", CHOICE_NO},
                 {"async TP8", CHOICE_YES},
                 {"async tensor parallelism", CHOICE_YES},
                 {"async TPU feed", CHOICE_PROFILE},
                 {"async TP; tp-comm-overlap=false", CHOICE_NO},
                 {"TP 8, asynchronous checkpoints", CHOICE_PROFILE}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char notes[128];

        snprintf (notes, sizeof notes, "notes=%s", known[i].notes);
        struct calibrate_runs r = ONE (notes, "framework=torchtitan");

        assert_int_equal (r.run[0].facts.tensor_overlap, known[i].said);
        calibrate_runs_release (&r);
    }
}

/* Megatron Bridge's recipes are in fp8 unless a row says otherwise or the GPU has none. */
TEST (precision)
{
    struct calibrate_runs silent = ONE ("framework=megatron-bridge", "gpu=H100"),
                          said = ONE ("framework=megatron-bridge", "gpu=H100",
                                      "precision=bf16"),
                          old = ONE ("framework=megatron-bridge", "gpu=A100");

    assert_int_equal (silent.run[0].job.precision, PREC_FP8);
    assert_int_equal (said.run[0].job.precision, PREC_BF16);
    assert_int_equal (old.run[0].job.precision, PREC_BF16);
    calibrate_runs_release (&silent);
    calibrate_runs_release (&said);
    calibrate_runs_release (&old);
}

/* A network that nobody describes does not get slower with the job, but where the profile of
 * a source says so. */
TEST (networks)
{
    static const char *const profile[] = {"nemo", "aleph-alpha"};

    for (int i = 0; i < 2; i++) {
        double rate[2];
        struct workload_profile p;
        struct error err = {""};

        ok (workload_profile_read (profile[i], &p, NULL, &err), &err);
        for (int k = 0; k < 2; k++) {
            struct calibrate_runs r =
                ONE (k == 0 ? "gpus=64" : "gpus=4096", "global_batch=4096");
            struct topology_cluster *c;

            ok (calibrate_cluster (&r.run[0], &p, &c, &err), &err);
            rate[k] = c->node[0].node_bytes_per_s;
            topology_cluster_destroy (c);
            calibrate_runs_release (&r);
        }
        if (i == 0)
            assert_true (rate[0] == rate[1]);
        else
            assert_true (rate[1] < 0.1 * rate[0]);
    }
}

/* Whether a run fits is not denied for recomputation that its row does not state. */
TEST (silent_recompute)
{
    struct calibrate_runs silent = ONE ("recompute=", "micro_batch=8"),
                          none = ONE ("micro_batch=8"),
                          full = ONE ("recompute=full", "micro_batch=8");
    struct workload_profile p;
    struct error err = {""};

    ok (workload_profile_read ("nemo", &p, NULL, &err), &err);
    assert_true (calibrate_need (&silent.run[0], &p, MEMEST_LINKWISE) ==
                 calibrate_need (&full.run[0], &p, MEMEST_LINKWISE));
    assert_true (calibrate_need (&none.run[0], &p, MEMEST_LINKWISE) >
                 calibrate_need (&full.run[0], &p, MEMEST_LINKWISE));
    calibrate_runs_release (&silent);
    calibrate_runs_release (&none);
    calibrate_runs_release (&full);
}

/* Nor is it for what an unknown framework may keep in fewer bytes than usual, but for what the
 * row says of it; its peak is the usual one. */
TEST (silent_facts)
{
    static const struct {
        const char *framework, *notes;
        bool lean;
    } known[] = {{"framework=mine", "notes=", true},
                 {"framework=mine", "notes=grad-reduce-in-bf16=false", true},
                 {"framework=MindSpeed", "notes=", false},
                 {"framework=Megatron-Core", "notes=", false}};
    double need[sizeof known / sizeof *known];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct calibrate_runs r = ONE ("source=lab", known[i].framework, known[i].notes);
        struct workload_profile p, usual;

        p = runs_profile (&r);
        usual = p;
        usual.unknown = false;
        need[i] = calibrate_need (&r.run[0], &p, MEMEST_LINKWISE);
        if (known[i].lean)
            assert_true (need[i] < calibrate_need (&r.run[0], &usual, MEMEST_LINKWISE));
        else
            CLOSE (need[i], calibrate_need (&r.run[0], &usual, MEMEST_LINKWISE), 0);
        CLOSE (calibrate_peak (&r.run[0], &p), calibrate_peak (&r.run[0], &usual), 0);
        calibrate_runs_release (&r);
    }
    assert_true (need[0] < need[1]);
}
