/* The files of one target, or why there are none, on small plans: every rule of Megatron's
 * arguments, of names and of blocks of ranks, on both sides of where it changes. */
#include "launch/launch_private.h"
#include "tests/lib/folder.h"

#define RANKS 8
#define STAGES_MAX 5
#define FULL_BLOCK \
    "--recompute-granularity full\n--recompute-method block\n--recompute-num-layers "
#define STATES(MOMENTS)                                         \
    "--use-precision-aware-optimizer\n--exp-avg-dtype " MOMENTS \
    "\n--exp-avg-sq-dtype " MOMENTS "\n"
#define FSDP(WHAT)                                       \
    "--use-distributed-optimizer\n--use-megatron-fsdp\n" \
    "--data-parallel-sharding-strategy " WHAT "\n--ckpt-format fsdp_dtensor\n"

/* A plan's ranks on GPUs of a cluster. */
struct made {
    struct topology_cluster *cluster;
    struct workload_plan plan;
    struct workload_profile profile; /* the default */
    struct workload_place place[RANKS];
    int on_node[RANKS];
    int layers[STAGES_MAX];
    struct launch_input in;
};

static void make (struct made *m, const char *cluster, int n, const int *gpu)
{
    *m = (struct made){.cluster = cluster_of (cluster),
                       .plan.n_ranks = n,
                       .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    m->in = (struct launch_input){.plan = &m->plan,
                                  .profile = &m->profile,
                                  .cluster = m->cluster,
                                  .gpu = gpu,
                                  .ranks_on_node = m->on_node,
                                  .linkwise = "linkwise"};
    m->plan.place = m->place;
    for (int r = 0; r < n; r++) {
        int node = m->cluster->node_of_gpu[gpu[r]];

        m->place[r].node = m->cluster->node[node].name;
        m->place[r].gpu = gpu[r] - m->cluster->node[node].first_gpu;
        m->in.nodes += m->on_node[node]++ == 0;
        if (m->on_node[node] > m->in.most_ranks)
            m->in.most_ranks = m->on_node[node];
    }
}

static void configure (struct made *m, const struct workload_config *c, const int *layers,
                       enum workload_precision precision)
{
    memcpy (m->layers, layers, sizeof m->layers);
    m->plan.layers_per_stage = m->layers;
    m->plan.config = *c;
    m->plan.config.micro_batch = 1;
    m->plan.job =
        (struct workload_job){.seq = 4096, .global_batch = 64, .precision = precision};
}

/* What a target says: the file at a path, or its refusal. */
static void says (const struct launcher *l, const struct made *m, const char *path,
                  struct text *said)
{
    struct launch_files f = {.generation = "0123456789abcdef"};
    struct text readme = {0};
    struct error err = {""};

    said->len = 0;
    if (l->write (&m->in, &f, &readme, &err) != ST_OK)
        text_add (said, "%s", err.text);
    if (strcmp (path, l->readme) == 0)
        text_add (said, "%s", text_str (&readme));
    for (int i = 0; i < f.n; i++) {
        if (err.text[0] == '\0' && strcmp (f.file[i].path, path) == 0)
            text_add (said, "%s", text_str (&f.file[i].text));
        text_free (&f.file[i].text);
    }
    text_free (&readme);
}

static void expect_says (const struct launcher *l, const struct made *m, const char *path,
                         const char *expected, const char *what)
{
    struct text said = {0};

    says (l, m, path, &said);
    if (!strstr (text_str (&said), expected) ||
        (expected[0] == '\0' && text_str (&said)[0] != '\0'))
        fail_msg ("%s: expected \"%s\", found \"%s\"", what, expected, text_str (&said));
    text_free (&said);
}

/* ---- Megatron's arguments ---- */

/* Those between the batch and the precision. */
static const struct arguments {
    struct workload_config config;
    int layers[STAGES_MAX];
    const char *expected;
} arguments[] = {
    {{.deg = {1, 1, 1, 1, 1, 1, 1}}, {8}, ""},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}}, {8, 8, 8, 8}, ""},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}},
     {7, 9, 9, 6},
     "--decoder-first-pipeline-num-layers 7\n--decoder-last-pipeline-num-layers 6\n"},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}},
     {9, 9, 9, 5},
     "--decoder-last-pipeline-num-layers 5\n"},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}},
     {7, 9, 9, 9},
     "--decoder-first-pipeline-num-layers 7\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}}, {3, 2}, "--decoder-first-pipeline-num-layers 3\n"},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}},
     {2, 1, 3, 2},
     "--pipeline-model-parallel-layout Ett|t|ttt|ttL\n"},
    {{.deg = {1, 4, 1, 1, 1, 1, 1}},
     {2, 1, 2, 2},
     "--pipeline-model-parallel-layout Ett|t|tt|ttL\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 3}},
     {6, 6},
     "--num-layers-per-virtual-pipeline-stage 2\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 2}},
     {3, 2},
     "--pipeline-model-parallel-layout Ett|t|t|tL\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}, .recompute = RECOMPUTE_FULL, .recompute_layers = 3},
     {8, 8},
     FULL_BLOCK "3\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 2}, .recompute = RECOMPUTE_FULL, .recompute_layers = 4},
     {8, 8},
     "--num-layers-per-virtual-pipeline-stage 4\n" FULL_BLOCK "2\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 2}, .recompute = RECOMPUTE_FULL, .recompute_layers = 3},
     {8, 8},
     "2 chunks, not 3 in all; plan with --recompute full:4"},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}, .recompute = RECOMPUTE_FULL},
     {8, 8},
     "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers "
     "1\n"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .recompute = RECOMPUTE_SELECTIVE},
     {8},
     "--recompute-granularity selective\n"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1},
      .recompute = RECOMPUTE_SELECTIVE,
      .recompute_modules = 1 << MODULE_CORE_ATTN | 1 << MODULE_MOE_ACT},
     {8},
     "--recompute-granularity selective\n--recompute-modules core_attn moe_act\n"
     "--moe-grouped-gemm\n"},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}, .zero = 1}, {8, 8}, "--use-distributed-optimizer\n"},
    {{.deg = {1, 1, 2, 1, 1, 1, 1}, .zero = 2}, {8}, FSDP ("optim_grads")},
    {{.deg = {1, 1, 2, 1, 1, 1, 1}, .zero = 3}, {8}, FSDP ("optim_grads_params")},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}, .zero = 2}, {8, 8}, "plan with --zero 1 or --pp 1"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .optimizer_bytes = 12}, {8}, ""},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .zero = 1, .optimizer_bytes = 10},
     {8},
     "--use-distributed-optimizer\n" STATES ("fp32")},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .zero = 1, .optimizer_bytes = 8},
     {8},
     "--use-distributed-optimizer\n" STATES ("bf16") "--no-store-param-remainders\n"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .zero = 1, .optimizer_bytes = 6},
     {8},
     "--use-distributed-optimizer\n" STATES ("bf16")},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .zero = 1, .optimizer_bytes = 4},
     {8},
     "--use-distributed-optimizer\n" STATES ("fp8")},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .optimizer_bytes = 4}, {8}, "plan with --zero 1"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .optimizer_bytes = 9}, {8}, "a parameter, not 9"},
    {{.deg = {1, 2, 1, 1, 1, 1, 1}, .schedule = SCHEDULE_GPIPE},
     {8, 8},
     "Megatron-LM has no gpipe schedule; plan with --schedule 1f1b"},
    {{.deg = {1, 1, 1, 1, 1, 1, 1}, .schedule = SCHEDULE_GPIPE}, {8}, ""},
    {{.deg = {1, 2, 1, 1, 1, 1, 2}, .schedule = SCHEDULE_INTERLEAVED},
     {8, 8},
     "--num-layers-per-virtual-pipeline-stage 4\n"},
};

static void takes_megatron_s_words (void **state)
{
    struct made m;
    (void) state;

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
};

static void tells_facts (void **state)
{
    (void) state;

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

static const struct configured {
    const struct launcher *l;
    const char *path, *model;
    struct workload_config config;
    enum workload_precision precision;
    int layers[STAGES_MAX];
    const char *expected; /* in the file or the refusal */
} configured[] = {
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 3},
     PREC_FP8,
     {32},
     "flavor = \"8B\"\nconverters = [\"quantize.linear.float8\"]"},
    {TITAN,
     "llama-2-7b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {32},
     "name = \"llama3\"\nflavor = \"llama-2-7b\""},
    {TITAN,
     "gpt3-6.7b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {32},
     "no flavor of this model"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 2},
     PREC_BF16,
     {32},
     "fsdp_reshard_after_forward = \"never\""},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 1},
     PREC_BF16,
     {32},
     "plan with --zero 2"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}},
     PREC_BF16,
     {32},
     "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"},
    {TITAN,
     "llama-3-8b",
     {.deg = {2, 1, 4, 1, 1, 2, 1}},
     PREC_BF16,
     {32},
     "replicates weights (zero 0) under data parallelism alone; plan with --zero 3"},
    {TITAN,
     "llama-3-8b",
     {.deg = {2, 1, 4, 1, 1, 2, 1}, .zero = 3},
     PREC_BF16,
     {32},
     "plan with --sequence-parallel on"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 4, 2, 1, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {7, 9, 9, 7},
     "layers_per_stage = 9\npipeline_parallel_first_stage_less_layers = 2\n"
     "pipeline_parallel_last_stage_less_layers = 2\n"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 4, 2, 1, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {8, 10, 8, 6},
     "[\"layers.26\", \"layers.27\", \"layers.28\", \"layers.29\", \"layers.30\", "
     "\"layers.31\", \"norm\", \"output\"],\n]"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 2, 4, 1, 1, 1, 1}, .zero = 3, .schedule = SCHEDULE_ZB2P},
     PREC_BF16,
     {16, 16},
     "no zb2p schedule of 1 chunks a stage; plan with --schedule 1f1b"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1},
      .zero = 3,
      .recompute = RECOMPUTE_FULL,
      .recompute_layers = 4},
     PREC_BF16,
     {32},
     "plan with --recompute full or selective"},
    {TITAN,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 3},
     PREC_FP16,
     {32},
     "TorchTitan has no fp16; plan with --precision bf16"},
    {TITAN,
     "mixtral-8x7b",
     {.deg = {1, 1, 8, 1, 8, 1, 1}, .zero = 3},
     PREC_BF16,
     {32},
     "no flavor of this model"},
    {TITAN,
     "deepseek-v3",
     {.deg = {1, 1, 4, 2, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {61},
     "flavor = \"671B\""},
    {TITAN,
     "deepseek-v3",
     {.deg = {2, 1, 4, 1, 4, 1, 1}, .zero = 3, .sequence_parallel = true},
     PREC_BF16,
     {61},
     "expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 1\n"},
    {TITAN,
     "deepseek-v3",
     {.deg = {4, 1, 2, 1, 2, 1, 1}, .zero = 3, .sequence_parallel = true},
     PREC_BF16,
     {61},
     "plan with --ep 4"},
    {SPEED,
     "llama-3-8b",
     {.deg = {4, 1, 2, 1, 1, 4, 1}, .zero = 1},
     PREC_BF16,
     {32},
     "\"autotp_size\": 4"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 1, 4, 2, 1, 1, 1}, .zero = 3},
     PREC_BF16,
     {32},
     "\"data_parallel_size\": 4,\n  \"sequence_parallel_size\": 2"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 2, 4, 1, 1, 1, 1}, .zero = 1},
     PREC_BF16,
     {16, 16},
     "\"stages\": 2"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 2, 4, 1, 1, 1, 1}, .zero = 1},
     PREC_BF16,
     {20, 12},
     "plan with --profile deepspeed"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 2, 4, 1, 1, 1, 1}, .zero = 2},
     PREC_BF16,
     {16, 16},
     "plan with --zero 1 or --pp 1"},
    {SPEED,
     "llama-3-8b",
     {.deg = {2, 2, 2, 1, 1, 2, 1}},
     PREC_BF16,
     {16, 16},
     "plan with --pp 1 or --tp 1"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}},
     PREC_FP8,
     {32},
     "DeepSpeed's file has no fp8"},
    {SPEED,
     "mixtral-8x7b",
     {.deg = {1, 1, 8, 1, 8, 1, 1}},
     PREC_BF16,
     {32},
     "plan with --ep 1"},
    {SPEED,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .optimizer_bytes = 6},
     PREC_BF16,
     {32},
     "plan with --optimizer-bytes 12"},
    {NEMO,
     "llama-3-8b",
     {.deg = {1, 2, 4, 1, 1, 1, 1}, .zero = 1},
     PREC_BF16,
     {15, 17},
     "  num_layers_in_first_pipeline_stage: 15\n"},
    {NEMO,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 3},
     PREC_FP4,
     {32},
     "  data_parallel_sharding_strategy: optim_grads_params\n"},
    {NEMO,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}, .zero = 1, .optimizer_bytes = 8},
     PREC_BF16,
     {32},
     "  exp_avg_dtype:\n    _target_: torch.bfloat16\n    _call_: false\n"},
    {NEMO,
     "mixtral-8x7b",
     {.deg = {1, 1, 8, 1, 8, 1, 1}},
     PREC_FP16,
     {32},
     "mixed_precision: fp16_mixed\n"},
    {NEMO,
     "mamba2-2.7b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}},
     PREC_BF16,
     {64},
     "recipe, which has its shape.\nmodel:\n  seq_length: 4096\n"},
    {NEMO,
     "llama-3-8b",
     {.deg = {1, 1, 8, 1, 1, 1, 1}},
     PREC_FP32,
     {32},
     "no recipe for fp32; plan with --precision bf16"},
};

static void takes_other_frameworks_words (void **state)
{
    struct made m;
    (void) state;

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

/* ---- names of hosts ---- */

static const struct name {
    const struct launcher *l;
    const char *first, *second, *why; /* "" : taken */
} names[] = {
    {&launch_kubernetes, "node-1.rack", "9", ""},
    {&launch_kubernetes, "Node1", "b", "\"Node1\" is not a valid Kubernetes node name"},
    {&launch_kubernetes, "a", "b_", "\"b_\" is not a valid"},
    {&launch_kubernetes, "a-", "b", "\"a-\" is not a valid"},
    {&launch_kubernetes, "a.", "b", "\"a.\" is not a valid"},
    {&launch_kubernetes, "a..b", "b", "\"a..b\" is not a valid"},
    {&launch_kubernetes, "a.-b", "b", "\"a.-b\" is not a valid"},
    {&launch_kubernetes, "a-.b", "b", "\"a-.b\" is not a valid"},
    {&launch_openmpi, "a.rack", "ab.rack", ""},
    {&launch_openmpi, "10.0.0.1", "10.0.0.2", ""},
    {&launch_openmpi, "7a", "node-7", ""},
    {&launch_openmpi, "a.x", "a.y", "the hosts a.x and a.y are one to it"},
    {&launch_openmpi, "rank", "b", "cannot hold the host name \"rank\""},
    {&launch_openmpi, "a", "slots", "cannot hold the host name \"slots\""},
    {&launch_openmpi, "a", "user_name", "cannot hold the host name \"user_name\""},
    {&launch_openmpi, "007", "b", "cannot hold the host name \"007\""},
    {&launch_openmpi, "1a.b", "b", "cannot hold the host name \"1a.b\""},
};

static void takes_names (void **state)
{
    static const int gpu[] = {0, 1};
    struct made m;
    char *own[2];
    (void) state;

    make (&m, "2x1 h100-sxm5-80g inter:48", 2, gpu);
    for (int i = 0; i < 2; i++)
        own[i] = m.cluster->node[i].name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        m.cluster->node[0].name = (char *) names[i].first;
        m.cluster->node[1].name = (char *) names[i].second;
        expect_says (names[i].l, &m, "", names[i].why, names[i].first);
    }
    for (int i = 0; i < 2; i++)
        m.cluster->node[i].name = own[i];
    topology_cluster_destroy (m.cluster);
}

/* Of three hosts two are one at Open MPI, in whichever order they come. */
static void takes_no_twins (void **state)
{
    static const char *const three[] = {"a.x", "ab", "a.y", "a.x", "ab"};
    static const int gpu[] = {0, 1, 2};
    struct made m;
    char *own[3];
    (void) state;

    make (&m, "3x1 h100-sxm5-80g inter:48", 3, gpu);
    for (int i = 0; i < 3; i++)
        own[i] = m.cluster->node[i].name;
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 3; k++)
            m.cluster->node[k].name = (char *) three[i % 3 + (i < 3 ? k : 2 - k)];
        expect_says (&launch_openmpi, &m, "", "are one to it", "three");
    }
    for (int i = 0; i < 3; i++)
        m.cluster->node[i].name = own[i];
    topology_cluster_destroy (m.cluster);
}

/* ---- blocks of ranks ---- */

/* What every target stands on, as if it were one. */
static const struct launcher generic = {.readme = "README", .write = launch_generic};

#define SAME "2x2 h100-sxm5-80g intra:300 inter:48"
#define UNLIKE "1x2 h100-sxm5-80g intra:300 + 1x1 h100-sxm5-80g inter:48"

/* A job's nodes of one kind. */
#define COMPONENT(TYPE, EACH, NODES, NAMES, RANKS)                       \
    "# " TYPE ", " EACH                                                  \
    " ranks a node\n#SBATCH --job-name=linkwise\n#SBATCH --nodes=" NODES \
    "\n#SBATCH --nodelist=" NAMES "\n#SBATCH --ntasks=" RANKS            \
    "\n#SBATCH --ntasks-per-node=" EACH "\n#SBATCH --exclusive\n#SBATCH --gres=gpu:2\n"

static const struct block {
    const struct launcher *l;
    const char *cluster;
    int n, gpu[4];
    const char *path, *expected;
} blocks[] = {
    {&launch_torchrun, SAME, 4, {2, 3, 0, 1}, "torchrun/agents.txt", "n1 0 2\nn0 1 2\n"},
    {&launch_torchrun,
     SAME,
     4,
     {0, 2, 1, 3},
     "torchrun/agents.txt",
     "n0 0 1\nn1 1 1\nn0 2 1\n"},
    {&launch_torchrun, UNLIKE, 3, {0, 1, 2}, "torchrun/agents.txt", "n0 0 2\nn1 1 1\n"},
    {&launch_torchrun, UNLIKE, 3, {2, 1, 0}, "torchrun/agents.txt", "n1 0 1\nn0 1 2\n"},
    {&launch_torchrun,
     UNLIKE,
     3,
     {0, 2, 1},
     "torchrun/agents.txt",
     "n0 0 1\nn1 1 1\nn0 2 1\n"},
    {&launch_torchrun, UNLIKE, 2, {2, 1}, "torchrun/agents.txt", "n1 0 1\nn0 1 1\n"},
    {&launch_torchrun,
     SAME,
     4,
     {0, 2, 3, 1},
     "torchrun/agents.txt",
     "n0 0 1\nn1 1 2\nn0 2 1\n"},
    {&launch_deepspeed,
     SAME,
     4,
     {2, 3, 0, 1},
     "deepspeed/hostfile",
     "n1 slots=2\nn0 slots=2\n"},
    {&launch_deepspeed, SAME, 4, {2, 3, 0, 1}, "deepspeed/include", ""},
    {&launch_deepspeed, SAME, 4, {0, 1, 2, 3}, "deepspeed/rankfile", ""},
    {&launch_deepspeed, SAME, 2, {3, 1}, "deepspeed/include", "n1:1@n0:1\n"},
    {&launch_deepspeed, UNLIKE, 2, {0, 1}, "deepspeed/rankfile", ""},
    {&launch_deepspeed, UNLIKE, 2, {2, 1}, "deepspeed/include", "n1:0@n0:1\n"},
    {&launch_deepspeed, SAME, 4, {1, 0, 2, 3}, "deepspeed/rankfile", ""},
    {&launch_deepspeed, SAME, 3, {3, 1, 0}, "deepspeed/include", "n1:1@n0:1,0\n"},
    {&launch_deepspeed,
     UNLIKE,
     3,
     {2, 0, 1},
     "deepspeed/hostfile",
     "n1 slots=1\nn0 slots=2\n"},
    {&launch_deepspeed, UNLIKE, 3, {2, 0, 1}, "deepspeed/include", ""},
    {&launch_deepspeed, UNLIKE, 3, {0, 2, 1}, "deepspeed/rankfile", "rank 1=n1 slot=*\n"},
    {&launch_deepspeed,
     SAME,
     4,
     {0, 2, 1, 3},
     "deepspeed/rankfile",
     "rank 1=n1 slot=*\n"},
    {&launch_openmpi, SAME, 3, {3, 1, 0}, "openmpi/hostfile", "n0 slots=2\nn1 slots=1\n"},
    {&launch_openmpi,
     SAME,
     2,
     {3, 1},
     "openmpi5/rankfile",
     "rank 0=n1 slot=0\nrank 1=n0 slot=0\n"},
    {&launch_slurm,
     UNLIKE,
     3,
     {1, 2, 0},
     "slurm/multi-prog",
     "CUDA_VISIBLE_DEVICES=1,0 RANK=2 WORLD_SIZE=3 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
     "NODE_RANK=0 GROUP_RANK=0 GROUP_WORLD_SIZE=2 "},
    {&launch_slurm,
     UNLIKE,
     3,
     {1, 2, 0},
     "slurm/multi-prog",
     "CUDA_VISIBLE_DEVICES=0 RANK=1 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
     "NODE_RANK=1 GROUP_RANK=1 GROUP_WORLD_SIZE=2 "},
    {&launch_mpich, SAME, 2, {3, 1}, "mpich/machinefile", "n1:1\nn0:1\n"},
    {&launch_kubernetes, UNLIKE, 3, {0, 1, 2}, "", "n0 has 2 GPUs and n1 1"},
    {&launch_kubernetes, SAME, 3, {0, 1, 2}, "kubernetes/job.json", "\"completions\": 2"},
    {&launch_kubernetes,
     SAME,
     3,
     {0, 1, 2},
     "kubernetes/job.json",
     "\"nvidia.com/gpu\": \"2\""},
    {&launch_kubernetes,
     SAME,
     3,
     {0, 1, 2},
     "kubernetes/mpijob.json",
     "\"slotsPerWorker\": 2"},
    /* A pod that failed is not started again: the others would wait for its ranks. */
    {&launch_kubernetes, SAME, 2, {0, 2}, "kubernetes/job.json", "\"backoffLimit\": 0"},
    {&launch_kubernetes,
     SAME,
     2,
     {0, 2},
     "kubernetes/mpijob.json",
     "\"backoffLimit\": 0"},
    {&launch_kubernetes, SAME, 2, {0, 2}, "kubernetes/job.json", "\"hostNetwork\": true"},
    {&launch_kubernetes, SAME, 2, {0, 2}, "kubernetes/mpijob.json", "\"replicas\": 1,"},
    {&launch_kubernetes, SAME, 2, {0, 2}, "kubernetes/mpijob.json", "\"replicas\": 2,"},
    {&generic, UNLIKE, 3, {2, 0, 1}, "map.txt", "0 n1 0\n1 n0 0\n2 n0 1\n"},
    {&generic, UNLIKE, 1, {2}, "hosts.txt", "n0 0 1\nn1 0\n"},
    {&generic, UNLIKE, 1, {2}, "README", "1 rank on 1 node,"},
    {&generic, UNLIKE, 1, {2}, "exec.sh", "\ngeneration=0123456789abcdef\n"},
    {&generic, UNLIKE, 1, {2}, "where.sh", "where.py"},
    {&generic, UNLIKE, 1, {2}, "gpu-uuid.txt", ""},
    {&launch_slurm, SAME, 3, {0, 1, 2}, "slurm/job.sbatch", "#SBATCH --gres=gpu:2\n"},
    {&launch_slurm, UNLIKE, 3, {0, 1, 2}, "slurm/job.sbatch", "#SBATCH --gpus=3\n"},
    {&launch_slurm, SAME, 4, {0, 1, 2, 3}, "slurm/het.sbatch", ""},
    {&launch_slurm,
     SAME " + 1x2 a100-sxm4-80g inter:48",
     4,
     {4, 2, 1, 0},
     "slurm/het.sbatch",
     "#!/bin/sh\n" COMPONENT (
         "a100-sxm4-80g", "1", "1", "n2",
         "1") "#SBATCH hetjob\n" COMPONENT ("h100-sxm5-80g", "1", "1", "n1",
                                            "1") "#SBATCH hetjob\n" COMPONENT ("h100-"
                                                                               "sxm5-80g",
                                                                               "2", "1",
                                                                               "n0",
                                                                               "2") "comp"
                                                                                    "onen"
                                                                                    "ts="
                                                                                    "0-"
                                                                                    "2"
                                                                                    "\n"},
    {&launch_slurm,
     SAME " + 1x2 a100-sxm4-80g inter:48",
     3,
     {4, 0, 2},
     "slurm/het.sbatch",
     COMPONENT ("h100-sxm5-80g", "1", "2", "n0,n1", "2") "components=0-1\n"},
};

static void takes_blocks (void **state)
{
    (void) state;

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct block *b = &blocks[i];
        struct made m;
        char what[32];

        make (&m, b->cluster, b->n, b->gpu);
        snprintf (what, sizeof what, "block %zu", i);
        expect_says (b->l, &m, b->path, b->expected, what);
        topology_cluster_destroy (m.cluster);
    }
}

/* A node without ranks is in no list of hosts. */
static void leaves_out_idle_nodes (void **state)
{
    static const struct {
        const struct launcher *l;
        const char *path, *all;
    } t[] = {{&launch_openmpi, "openmpi/hostfile", "n1 slots=2\n"},
             {&launch_deepspeed, "deepspeed/hostfile", "n1 slots=2\n"},
             {&launch_mpich, "mpich/machinefile", "n1:1\nn1:1\n"}};
    struct text said = {0};
    struct made m;
    (void) state;

    make (&m, SAME, 2, (const int[]){2, 3});
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        says (t[i].l, &m, t[i].path, &said);
        assert_string_equal (text_str (&said), t[i].all);
    }
    text_free (&said);
    topology_cluster_destroy (m.cluster);
}

/* Which groups are of several types; GPUs by UUID and their NUMA nodes, where these are known. */
static void tells_types_and_gpus (void **state)
{
    static const int gpu[] = {0, 1, 4, 2, 5, 6, 3, 7};
    static char *uuid[] = {"GPU-0", "GPU-1", "MIG-2", "GPU-3"};
    int numa[] = {0, 1, -1, 1};
    struct made m;
    (void) state;

    make (&m, "1x4 h100-sxm5-80g intra:300 + 1x4 a100-sxm4-80g intra:300 inter:48", 8,
          gpu);
    m.plan.config = config_of (1, 1, 8, 1);
    expect_says (&generic, &m, "README", "Each tp, cp and ep group is of one.", "types");
    m.plan.config = config_of (2, 1, 4, 1);
    m.plan.config.deg.ep = 2;
    expect_says (
        &generic, &m, "README",
        "tp groups of more than one: 2 of 4,\nfirst that of rank 2.  ep groups of "
        "more than one: 2 of 4,\nfirst that of rank 0.\n",
        "types");
    m.cluster->node[0].gpu_uuid = uuid;
    m.cluster->node[0].gpu_numa = numa;
    expect_says (&generic, &m, "gpu-uuid.txt",
                 "n0 0 GPU-0\nn0 1 GPU-1\nn0 2 MIG-2\nn0 3 GPU-3\n", "UUIDs");
    expect_says (&generic, &m, "gpu-numa.txt", "n0 0 0\nn0 1 1\nn0 3 1\n", "NUMA nodes");
    /* With an instance of a GPU among them each process is shown its own alone. */
    expect_says (&launch_slurm, &m, "slurm/multi-prog",
                 "=MIG-2 RANK=3 WORLD_SIZE=8 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 ", "MIG");
    uuid[2] = "GPU-2";
    expect_says (&launch_slurm, &m, "slurm/multi-prog",
                 "=GPU-0,GPU-1,GPU-2,GPU-3 RANK=3 WORLD_SIZE=8 LOCAL_RANK=2 ", "UUIDs");
    for (int i = 0; i < 3; i++) {
        static const size_t letters[] = {127, 128, 0};
        char text[129] = "";

        memset (text, 'a', letters[i]);
        uuid[2] = text;
        expect_says (&generic, &m, "gpu-numa.txt",
                     i == 0 ? "n0 0 0\n" : "node n0: gpu_uuid[2]: expected letters",
                     "UUID");
    }
    uuid[2] = "GPU 2";
    expect_says (&generic, &m, "gpu-numa.txt", "gpu_uuid[2]: expected letters", "UUID");
    m.cluster->node[0].gpu_uuid = NULL;
    m.cluster->node[0].gpu_numa = NULL;
    topology_cluster_destroy (m.cluster);
}

/* ---- one folder ---- */

/* Does dir/NAME hold that text, and is it there at all? */
static bool holds (const char *dir, const char *name, const char *text)
{
    struct text path = {0};
    char *all = NULL;
    size_t len;
    bool found;

    text_add (&path, "%s/%s", dir, name);
    found = file_read (text_str (&path), &all, &len, NULL) == ST_OK && strstr (all, text);
    text_free (&path);
    free (all);
    return found;
}

/* What of a plan on `gpu` goes to dir; another GPU order is another plan. */
static enum status emit (const char *dir, const char *to, const int *gpu,
                         struct error *err)
{
    struct made m;
    int layers[] = {2, 2};
    json_t *doc = json_pack ("{s:{s:s}}", "cluster", "name", "test");
    struct launch_request r = {.gpu = gpu, .doc = doc, .linkwise = "linkwise", .to = to};
    enum status st;

    make (&m, SAME, 4, gpu);
    m.plan.model = small_model (4);
    m.plan.job = (struct workload_job){.seq = 8, .global_batch = 8};
    m.plan.config = config_of (1, 2, 2, 1);
    m.plan.config.schedule = SCHEDULE_GPIPE;
    m.plan.layers_per_stage = layers;
    r.plan = &m.plan;
    r.profile = &m.profile;
    r.cluster = m.cluster;
    st = launch_emit (&r, dir, NULL, err);
    topology_cluster_destroy (m.cluster);
    json_decref (doc);
    return st;
}

static void keeps_what_is_of_the_plan (void **state)
{
    static const int gpu[] = {0, 1, 2, 3}, other[] = {0, 2, 1, 3};
    static const char earlier[] = "For mpich, from an earlier run: mpich/README.";
    char dir[FOLDER_PATH], path[FOLDER_PATH + 32];
    char *text = NULL;
    size_t len;
    struct error err = {""};
    (void) state;

    snprintf (dir, sizeof dir, "%s", in_folder ("launch"));
    ok (emit (dir, "mpich", gpu, &err), &err);
    assert_true (holds (dir, "mpich/machinefile", "n0:1\nn0:1\nn1:1\nn1:1\n"));
    assert_true (holds (dir, "README", "4 ranks on 2 nodes, tp 1 x cp 1 x dp 2 x pp 2"));
    assert_false (holds (dir, "README", "earlier run"));
    /* The seal is sixteen digits and a newline. */
    snprintf (path, sizeof path, "%s/" LAUNCH_SEAL, dir);
    ok (file_read (path, &text, &len, &err), &err);
    assert_int_equal (len, 17);
    assert_int_equal (strspn (text, "0123456789abcdef"), 16);
    free (text);

    ok (emit (dir, "openmpi,env", gpu, &err), &err);
    assert_true (holds (dir, "README", earlier));
    assert_false (holds (dir, "README", "For slurm"));
    assert_true (holds (dir, "mpich/machinefile", "n0"));
    ok (emit (dir, "env", other, &err), &err);
    assert_false (holds (dir, "README", "earlier run"));
    assert_false (holds (dir, "mpich/machinefile", ""));

    assert_int_equal (emit (dir, "env,megatron", gpu, &err), ST_NOFIT);
    assert_non_null (strstr (err.text, "megatron: Megatron-LM has no gpipe"));
    ok (emit (dir, "all", gpu, &err), &err);
    assert_true (holds (dir, "README", "Not for megatron: Megatron-LM has no gpipe"));
    assert_true (holds (dir, "slurm/hostfile", "n1"));
    assert_int_equal (emit (dir, "all,megatron", gpu, &err), ST_NOFIT);
    assert_int_equal (emit (dir, "megatron,all", gpu, &err), ST_NOFIT);
    assert_int_equal (emit (dir, "mpi", gpu, &err), ST_USAGE);
    assert_non_null (strstr (err.text, "\"mpi\" (openmpi, mpich, slurm, torchrun, env, "
                                       "deepspeed, kubernetes, megatron, nemo, "
                                       "torchtitan, deepspeed-config, all)"));
    assert_int_equal (emit (dir, "", gpu, &err), ST_USAGE);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (takes_megatron_s_words),
                                       cmocka_unit_test (tells_facts),
                                       cmocka_unit_test (takes_other_frameworks_words),
                                       cmocka_unit_test (takes_names),
                                       cmocka_unit_test (takes_no_twins),
                                       cmocka_unit_test (takes_blocks),
                                       cmocka_unit_test (leaves_out_idle_nodes),
                                       cmocka_unit_test (tells_types_and_gpus),
                                       cmocka_unit_test (keeps_what_is_of_the_plan)};

    return cmocka_run_group_tests (tests, make_folder, remove_folder);
}
