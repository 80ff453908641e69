/* What a plan is in the words of frameworks: every rule of Megatron's arguments, of facts of
 * profiles and of other frameworks' files, on both sides of where it changes. */
#include "tests/lib/targets.h"

#define FULL_BLOCK \
    "--recompute-granularity full\n--recompute-method block\n--recompute-num-layers "
#define STATES(MOMENTS)                                         \
    "--use-precision-aware-optimizer\n--exp-avg-dtype " MOMENTS \
    "\n--exp-avg-sq-dtype " MOMENTS "\n"
#define FSDP(WHAT)                                       \
    "--use-distributed-optimizer\n--use-megatron-fsdp\n" \
    "--data-parallel-sharding-strategy " WHAT "\n--ckpt-format fsdp_dtensor\n"

/* Layers of the stages. */
#define LAYERS(...) \
    {               \
        __VA_ARGS__ \
    }

/* ---- Megatron's arguments ---- */

/* Stages, replicas and chunks of a configuration, and what else it has. */
#define PIPE(PP, DP, VPP, ...)                        \
    {                                                 \
        .deg = {1, PP, DP, 1, 1, 1, VPP}, __VA_ARGS__ \
    }

/* Those between the batch and the precision. */
static const struct arguments {
    struct workload_config config;
    int layers[STAGES_MAX];
    const char *expected;
} arguments[] = {
    {PIPE (1, 1, 1), LAYERS (8), ""},
    {PIPE (4, 1, 1), LAYERS (8, 8, 8, 8), ""},
    {PIPE (4, 1, 1), LAYERS (7, 9, 9, 6),
     "--decoder-first-pipeline-num-layers 7\n--decoder-last-pipeline-num-layers 6\n"},
    {PIPE (4, 1, 1), LAYERS (9, 9, 9, 5), "--decoder-last-pipeline-num-layers 5\n"},
    {PIPE (4, 1, 1), LAYERS (7, 9, 9, 9), "--decoder-first-pipeline-num-layers 7\n"},
    {PIPE (2, 1, 1), LAYERS (3, 2), "--decoder-first-pipeline-num-layers 3\n"},
    {PIPE (4, 1, 1), LAYERS (2, 1, 3, 2),
     "--pipeline-model-parallel-layout Ett|t|ttt|ttL\n"},
    {PIPE (4, 1, 1), LAYERS (2, 1, 2, 2),
     "--pipeline-model-parallel-layout Ett|t|tt|ttL\n"},
    {PIPE (2, 1, 3), LAYERS (6, 6), "--num-layers-per-virtual-pipeline-stage 2\n"},
    {PIPE (2, 1, 2), LAYERS (3, 2), "--pipeline-model-parallel-layout Et|t|tt|tL\n"},
    {PIPE (2, 1, 1, .recompute = RECOMPUTE_FULL, .recompute_layers = 3), LAYERS (8, 8),
     FULL_BLOCK "3\n"},
    {PIPE (2, 1, 2, .recompute = RECOMPUTE_FULL, .recompute_layers = 4), LAYERS (8, 8),
     "--num-layers-per-virtual-pipeline-stage 4\n" FULL_BLOCK "2\n"},
    {PIPE (2, 1, 2, .recompute = RECOMPUTE_FULL, .recompute_layers = 3), LAYERS (8, 8),
     "2 chunks, not 3 in all; plan with --recompute full:4"},
    {PIPE (2, 1, 1, .recompute = RECOMPUTE_FULL), LAYERS (8, 8),
     "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers "
     "1\n"},
    {PIPE (1, 1, 1, .recompute = RECOMPUTE_SELECTIVE), LAYERS (8),
     "--recompute-granularity selective\n"},
    {PIPE (1, 1, 1, .recompute = RECOMPUTE_SELECTIVE,
           .recompute_modules = 1 << MODULE_CORE_ATTN | 1 << MODULE_MOE_ACT),
     LAYERS (8),
     "--recompute-granularity selective\n--recompute-modules core_attn moe_act\n"
     "--moe-grouped-gemm\n"},
    {PIPE (2, 1, 1, .zero = 1), LAYERS (8, 8), "--use-distributed-optimizer\n"},
    {PIPE (1, 2, 1, .zero = 2), LAYERS (8), FSDP ("optim_grads")},
    {PIPE (1, 2, 1, .zero = 3), LAYERS (8), FSDP ("optim_grads_params")},
    {PIPE (2, 1, 1, .zero = 2), LAYERS (8, 8), "plan with --zero 1 or --pp 1"},
    {PIPE (1, 1, 1, .optimizer_bytes = 12), LAYERS (8), ""},
    {PIPE (1, 1, 1, .zero = 1, .optimizer_bytes = 10), LAYERS (8),
     "--use-distributed-optimizer\n" STATES ("fp32")},
    {PIPE (1, 1, 1, .zero = 1, .optimizer_bytes = 8), LAYERS (8),
     "--use-distributed-optimizer\n" STATES ("bf16") "--no-store-param-remainders\n"},
    {PIPE (1, 1, 1, .zero = 1, .optimizer_bytes = 6), LAYERS (8),
     "--use-distributed-optimizer\n" STATES ("bf16")},
    {PIPE (1, 1, 1, .zero = 1, .optimizer_bytes = 4), LAYERS (8),
     "--use-distributed-optimizer\n" STATES ("fp8")},
    {PIPE (1, 1, 1, .optimizer_bytes = 4), LAYERS (8), "plan with --zero 1"},
    {PIPE (1, 1, 1, .optimizer_bytes = 9), LAYERS (8), "a parameter, not 9"},
    {PIPE (2, 1, 1, .schedule = SCHEDULE_GPIPE), LAYERS (8, 8),
     "Megatron-LM has no gpipe schedule; plan with --schedule 1f1b"},
    {PIPE (1, 1, 1, .schedule = SCHEDULE_GPIPE), LAYERS (8), ""},
    {PIPE (2, 1, 2, .schedule = SCHEDULE_INTERLEAVED), LAYERS (8, 8),
     "--num-layers-per-virtual-pipeline-stage 4\n"},
};

TEST (takes_megatron_s_words)
{
    struct made m;

    make (&m, "1x1 h100-sxm5-80g", 1, (const int[]){0});
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        const struct arguments *a = &arguments[i];
        const struct workload_degrees *d = &a->config.deg;
        bool no = a->expected[0] != '\0' && a->expected[0] != '-';
        struct text expected = {0};
        char what[32];

        configure (&m, &a->config, a->layers, PREC_BF16);
        if (!no)
            text_add (&expected,
                      "--tensor-model-parallel-size %d\n--pipeline-model-parallel-size "
                      "%d\n--context-parallel-size %d\n--micro-batch-size 1\n"
                      "--global-batch-size 64\n%s--bf16\n",
                      d->tp, d->pp, d->cp, a->expected);
        snprintf (what, sizeof what, "arguments %zu", i);
        expect_says (&launch_megatron, &m, "megatron/args",
                     no ? a->expected : text_str (&expected), what);
        text_free (&expected);
    }
    topology_cluster_destroy (m.cluster);
}

/* ---- the facts of profiles ---- */

#define TITAN &launch_torchtitan, "torchtitan/job.toml"
#define SPEED &launch_deepspeed_config, "deepspeed-config/ds_config.json"
#define NEMO &launch_nemo, "nemo/overrides.yaml"
#define MEGATRON &launch_megatron, "megatron/args"
#define ABOUT &launch_megatron, "megatron/README"

/* What of a profile's facts is told on a GPU type, and what the README says of them. */
static const struct fact {
    const char *profile, *gpu;
    const struct launcher *l;
    const char *path;
    enum workload_precision precision;
    int experts; /* ep; 0: the model has none */
    const char *expected;
} facts[] = {
    {"megatron-bridge", "h100-sxm5-80g", MEGATRON, PREC_BF16, 8,
     "--moe-token-dispatcher-type flex\n--moe-flex-dispatcher-backend deepep\n"
     "--overlap-grad-reduce\n--overlap-param-gather\n--tp-comm-overlap\n"
     "--overlap-moe-expert-parallel-comm\n--grad-reduce-in-bf16\n"},
    {"megatron-bridge@26.04", "h100-sxm5-80g", MEGATRON, PREC_BF16, 8,
     "--tp-comm-overlap\n--grad-reduce-in-bf16\n"},
    {"megatron-bridge", "b200-192g", MEGATRON, PREC_FP8, 8,
     "--fp8-param-gather\n--reuse-grad-buf-for-mxfp8-param-ag\n"
     "--cuda-graph-impl full_iteration\n--moe-expert-rank-capacity-factor 1.5\n"
     "--moe-paged-stash\n--moe-pad-experts-for-cuda-graph-inference\n"
     "--no-check-for-nan-in-loss-and-grad\n--te-rng-tracker\n"
     "--use-transformer-engine-op-fuser\n"},
    {"megatron-bridge", "b200-192g", MEGATRON, PREC_FP8, 8, "hybridep"},
    {"megatron-bridge", "b200-192g", MEGATRON, PREC_FP8, 8,
     "--fp8-format e4m3\n--fp8-recipe mxfp8\n"},
    {"megatron-bridge", "h100-sxm5-80g", MEGATRON, PREC_FP8, 8, "--fp8-param-gather\n"},
    {"megatron-bridge", "gb200-192g", MEGATRON, PREC_BF16, 8,
     "--cuda-graph-impl transformer_engine\n"
     "--cuda-graph-modules attn moe_router moe_preprocess\n"},
    {"megatron-bridge", "h100-sxm5-80g", ABOUT, PREC_BF16, 8, "install DeepEP.\n"},
    {"nemo", "h100-sxm5-80g", MEGATRON, PREC_BF16, 8,
     "--moe-token-dispatcher-type alltoall\n"},
    {"nanotron", "h100-sxm5-80g", MEGATRON, PREC_BF16, 0,
     "--overlap-param-gather\n--attention-backend flash\n--no-bias-swiglu-fusion\n"
     "--no-gradient-accumulation-fusion\n"},
    {"nanotron", "h100-sxm5-80g", ABOUT, PREC_BF16, 0, "    sends that block a stage\n"},
    {"torchtitan", "h100-sxm5-80g", ABOUT, PREC_BF16, 0,
     "profile torchtitan, which has these; Megatron has not"},
    {"torchtitan", "h100-sxm5-80g", ABOUT, PREC_BF16, 0,
     "optimizer states of 10 bytes a parameter"},
    {"megatron-bridge", "h100-sxm5-80g", NEMO, PREC_BF16, 8,
     "ddp:\n  use_distributed_optimizer: true\n  grad_reduce_in_fp32: false\n"},
    {"megatron-bridge", "h100-sxm5-80g", NEMO, PREC_BF16, 8,
     "CommOverlapConfig\n  overlap_grad_reduce: true\n  overlap_param_gather: true\n"
     "  tp_comm_overlap: true\n  overlap_moe_expert_parallel_comm: true\n"},
    {"megatron-core", "h100-sxm5-80g", NEMO, PREC_BF16, 8, "  tp_comm_overlap: false\n"},
    {"megatron-bridge", "b200-192g", NEMO, PREC_FP8, 8,
     "mixed_precision: bf16_with_mxfp8_mixed\n"},
    {"torchtitan", "h100-sxm5-80g", TITAN, PREC_BF16, 0, "[compile]\nenable = true\n"},
    {"deepspeed", "h100-sxm5-80g", SPEED, PREC_BF16, 0, "\"grad_accum_dtype\": \"bf16\""},
    {"deepspeed", "h100-sxm5-80g", SPEED, PREC_BF16, 0,
     "\"overlap_comm\": true,\n    \"reduce_bucket_size\": 500000000,\n"},
};

TEST (tells_facts)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *x = &facts[i];
        int tp = x->experts ? 2 : 1;
        struct workload_config c = {
            .deg = {tp, 1, 8 / tp, 1, 1, 1, 1}, .zero = 1, .sequence_parallel = tp > 1};
        struct made m;
        char line[64], what[32];

        c.zero = x->l == &launch_torchtitan ? 3 : 1;
        c.deg.ep = x->experts ? x->experts : 1;
        snprintf (line, sizeof line, "1x8 %s intra:370", x->gpu);
        make (&m, line, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
        m.plan.model = model_of (x->experts ? "mixtral-8x7b" : "llama-3-8b");
        m.profile = profile_of (x->profile);
        configure (&m, &c, (const int[STAGES_MAX]){m.plan.model.layers}, x->precision);
        snprintf (what, sizeof what, "fact %zu", i);
        expect_says (x->l, &m, x->path, x->expected, what);
        topology_cluster_destroy (m.cluster);
    }
}

/* ---- other frameworks' files ---- */

#define CONFIG(TP, PP, DP, CP, EP, ETP, ZERO, ...)                     \
    {                                                                  \
        .deg = {TP, PP, DP, CP, EP, ETP, 1}, .zero = ZERO, __VA_ARGS__ \
    }

static const struct configured {
    const struct launcher *l;
    const char *path, *model;
    struct workload_config config;
    enum workload_precision precision;
    int layers[STAGES_MAX];
    const char *expected; /* in the file or the refusal */
} configured[] = {
    {TITAN, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_FP8, LAYERS (32),
     "flavor = \"8B\"\nconverters = [\"quantize.linear.float8\"]"},
    {TITAN, "llama-2-7b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_BF16, LAYERS (32),
     "name = \"llama3\"\nflavor = \"llama-2-7b\""},
    {TITAN, "gpt3-6.7b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_BF16, LAYERS (32),
     "no flavor of this model"},
    {TITAN, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 2), PREC_BF16, LAYERS (32),
     "fsdp_reshard_after_forward = \"never\""},
    {TITAN, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 1), PREC_BF16, LAYERS (32),
     "plan with --zero 2"},
    {TITAN, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 0), PREC_BF16, LAYERS (32),
     "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"},
    {TITAN, "llama-3-8b", CONFIG (2, 1, 4, 1, 1, 2, 0), PREC_BF16, LAYERS (32),
     "replicates weights (zero 0) under data parallelism alone; plan with --zero 3"},
    {TITAN, "llama-3-8b", CONFIG (2, 1, 4, 1, 1, 2, 3), PREC_BF16, LAYERS (32),
     "plan with --sequence-parallel on"},
    {TITAN, "llama-3-8b", CONFIG (1, 4, 2, 1, 1, 1, 3), PREC_BF16, LAYERS (7, 9, 9, 7),
     "layers_per_stage = 9\npipeline_parallel_first_stage_less_layers = 2\n"
     "pipeline_parallel_last_stage_less_layers = 2\n"},
    {TITAN, "llama-3-8b", CONFIG (1, 4, 2, 1, 1, 1, 3), PREC_BF16, LAYERS (8, 10, 8, 6),
     "[\"layers.26\", \"layers.27\", \"layers.28\", \"layers.29\", \"layers.30\", "
     "\"layers.31\", \"norm\", \"output\"],\n]"},
    {TITAN, "llama-3-8b", CONFIG (1, 2, 4, 1, 1, 1, 3, .schedule = SCHEDULE_ZB2P),
     PREC_BF16, LAYERS (16, 16),
     "no zb2p schedule of 1 chunks a stage; plan with --schedule 1f1b"},
    {TITAN, "llama-3-8b",
     CONFIG (1, 1, 8, 1, 1, 1, 3, .recompute = RECOMPUTE_FULL, .recompute_layers = 4),
     PREC_BF16, LAYERS (32), "plan with --recompute full or selective"},
    {TITAN, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_FP16, LAYERS (32),
     "TorchTitan has no fp16; plan with --precision bf16"},
    {TITAN, "mixtral-8x7b", CONFIG (1, 1, 8, 1, 8, 1, 3), PREC_BF16, LAYERS (32),
     "no flavor of this model"},
    {TITAN, "deepseek-v3", CONFIG (1, 1, 4, 2, 1, 1, 3), PREC_BF16, LAYERS (61),
     "flavor = \"671B\""},
    {TITAN, "deepseek-v3", CONFIG (2, 1, 4, 1, 4, 1, 3, .sequence_parallel = true),
     PREC_BF16, LAYERS (61),
     "expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 1\n"},
    {TITAN, "deepseek-v3", CONFIG (4, 1, 2, 1, 2, 1, 3, .sequence_parallel = true),
     PREC_BF16, LAYERS (61), "plan with --ep 4"},
    {SPEED, "llama-3-8b", CONFIG (4, 1, 2, 1, 1, 4, 1), PREC_BF16, LAYERS (32),
     "\"autotp_size\": 4"},
    {SPEED, "llama-3-8b", CONFIG (1, 1, 4, 2, 1, 1, 3), PREC_BF16, LAYERS (32),
     "\"data_parallel_size\": 4,\n  \"sequence_parallel_size\": 2"},
    {SPEED, "llama-3-8b", CONFIG (1, 2, 4, 1, 1, 1, 1), PREC_BF16, LAYERS (16, 16),
     "\"stages\": 2"},
    {SPEED, "llama-3-8b", CONFIG (1, 2, 4, 1, 1, 1, 1), PREC_BF16, LAYERS (20, 12),
     "\"stages\": 2"},
    {&launch_deepspeed_config, "deepspeed-config/pipeline.py", "llama-3-8b",
     CONFIG (1, 2, 4, 1, 1, 1, 1), PREC_BF16, LAYERS (20, 12), "\nSTAGES = [20, 12]  #"},
    {&launch_deepspeed_config, "deepspeed-config/README", "llama-3-8b",
     CONFIG (1, 2, 4, 1, 1, 1, 1), PREC_BF16, LAYERS (20, 12),
     "PlannedPipeline of pipeline.py, with the plan's layers in 2 stages"},
    {SPEED, "llama-3-8b", CONFIG (1, 2, 4, 1, 1, 1, 2), PREC_BF16, LAYERS (16, 16),
     "plan with --zero 1 or --pp 1"},
    {SPEED, "llama-3-8b", CONFIG (2, 2, 2, 1, 1, 2, 0), PREC_BF16, LAYERS (16, 16),
     "plan with --pp 1 or --tp 1"},
    {SPEED, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 0), PREC_FP8, LAYERS (32),
     "DeepSpeed's file has no fp8"},
    {SPEED, "mixtral-8x7b", CONFIG (1, 1, 8, 1, 8, 1, 0), PREC_BF16, LAYERS (32),
     "\"expert_parallel\": {\n    \"enabled\": true,\n    \"autoep_size\": 8\n  }"},
    {SPEED, "mixtral-8x7b", CONFIG (1, 1, 8, 1, 8, 1, 3), PREC_BF16, LAYERS (32),
     "plan with --zero 2"},
    {SPEED, "mixtral-8x7b", CONFIG (2, 1, 4, 1, 4, 2, 2), PREC_BF16, LAYERS (32),
     "plan with --ep 1, or --tp 1"},
    {SPEED, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_BF16, LAYERS (32),
     "\"communication_data_type\": \"fp32\""},
    {SPEED, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 0, .optimizer_bytes = 6), PREC_BF16,
     LAYERS (32), "plan with --optimizer-bytes 12"},
    {NEMO, "llama-3-8b", CONFIG (1, 2, 4, 1, 1, 1, 1), PREC_BF16, LAYERS (15, 17),
     "  num_layers_in_first_pipeline_stage: 15\n"},
    {NEMO, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 3), PREC_FP4, LAYERS (32),
     "  data_parallel_sharding_strategy: optim_grads_params\n"},
    {NEMO, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 1, .optimizer_bytes = 8), PREC_BF16,
     LAYERS (32), "  exp_avg_dtype:\n    _target_: torch.bfloat16\n    _call_: false\n"},
    {NEMO, "mixtral-8x7b", CONFIG (1, 1, 8, 1, 8, 1, 0), PREC_FP16, LAYERS (32),
     "mixed_precision: fp16_mixed\n"},
    {NEMO, "mamba2-2.7b", CONFIG (1, 1, 8, 1, 1, 1, 0), PREC_BF16, LAYERS (64),
     "recipe, which has its shape.\nmodel:\n  seq_length: 4096\n"},
    {NEMO, "llama-3-8b", CONFIG (1, 1, 8, 1, 1, 1, 0), PREC_FP32, LAYERS (32),
     "no recipe for fp32; plan with --precision bf16"},
};

TEST (takes_other_frameworks_words)
{
    struct made m;

    make (&m, "1x1 h100-sxm5-80g", 1, (const int[]){0});
    for (size_t i = 0; i < sizeof configured / sizeof *configured; i++) {
        const struct configured *c = &configured[i];
        char what[32];

        m.plan.model = *workload_preset_find (c->model);
        configure (&m, &c->config, c->layers, c->precision);
        snprintf (what, sizeof what, "file %zu", i);
        expect_says (c->l, &m, c->path, c->expected, what);
    }
    topology_cluster_destroy (m.cluster);
}
