/* The options of a job, and what it is by them. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUT struct cli_job
#define MOST (1 << 30)

static bool parse_on (const char *word, void *value)
{
    enum workload_choice choice = CHOICE_NO;
    bool known = workload_choice_parse (word, &choice);

    *(int *) value = choice == CHOICE_YES;
    return known;
}

#define PARSE(name, of)                              \
    static bool name (const char *word, void *value) \
    {                                                \
        return of (word, value);                     \
    }
PARSE (parse_choice, workload_choice_parse)
PARSE (parse_precision, workload_precision_parse)
PARSE (parse_attention, workload_attention_parse)
PARSE (parse_memory_model, memest_model_parse)

static const struct cli_option options[] = {
    {"seq", 0, "TOKENS", "tokens per sequence (default: as the model is usually trained)",
     CLI_INT (job.seq, 1, MOST)},
    {"global-batch", 0, "N",
     "sequences per optimiser step (default: the model's usual, or 4 million tokens)",
     CLI_INT (job.global_batch, 1, MOST)},
    {"tp", 0, "N", "tensor-parallel degree", CLI_INT (axes.tp, 1, MOST)},
    {"pp", 0, "N", "pipeline-parallel degree: the number of stages",
     CLI_INT (axes.pp, 1, MOST)},
    {"dp", 0, "N", "data-parallel degree, not counting context parallelism",
     CLI_INT (axes.dp, 1, MOST)},
    {"cp", 0, "N", "context-parallel degree", CLI_INT (axes.cp, 1, MOST)},
    {"ep", 0, "N", "expert-parallel degree", CLI_INT (axes.ep, 1, MOST)},
    {"etp", 0, "N", "tensor-parallel degree of experts", CLI_INT (axes.etp, 1, MOST)},
    {"vpp", 0, "N", "model chunks per stage (interleaving)", CLI_INT (axes.vpp, 1, MOST)},
    {"micro-batch", 0, "N", "sequences per micro-batch",
     CLI_INT (axes.micro_batch, 1, MOST)},
    {"zero", 0, "0..3", "ZeRO stage; 1 is Megatron's distributed optimizer",
     CLI_INT (axes.zero, 0, 3)},
    {"shard", 0, "N",
     "data-parallel ranks over which ZeRO shards, where dp / N groups hold the same: "
     "hybrid sharding (HSDP); 0: all of dp",
     CLI_INT (axes.shard, 0, MOST)},
    {"sequence-parallel", 0, "on|off", "split norms over the tensor-parallel group",
     CLI_PARSED (parse_on, int, axes.sequence_parallel)},
    {"recompute", 0, "none|selective|full|full:K|MODULE,...",
     "activation recomputation; full:K recomputes K layers of each stage, modules are "
     "Megatron-Core's: core_attn, layernorm, mlp, moe_act, mla_up_proj, moe, "
     "shared_experts",
     CLI_PARSED (api_parse_recompute, struct mapper_axes, axes)},
    {"optimizer-bytes", 0, "N",
     "bytes of optimizer state per parameter, fewer with 16- or 8-bit moments (default: "
     "the profile's)",
     CLI_INT (axes.optimizer_bytes, 1, WORKLOAD_OPTIMIZER_BYTES_MAX)},
    {"offload", 0, "none|optimizer|all|checkpoints",
     "what lies in the host's memory: the optimizer's state, weights and gradients "
     "besides, or the inputs of recomputed layers (default none; plan and compare: what "
     "the profile offers where nothing fits without)",
     CLI_PARSED (api_parse_offload, int, axes.offload)},
    {"schedule", 0, "1f1b|interleaved|gpipe|zb1p|zb2p|zbv|v-half|v-min|dualpipev",
     "pipeline schedule (default 1f1b, with --vpp above 1 interleaved; plan and compare "
     "try all that the profile supports)",
     CLI_PARSED (api_parse_schedule, int, axes.schedule)},
    {"precision", 0, "bf16|fp16|fp8|fp4|fp32|tf32", "training precision (default bf16)",
     CLI_PARSED (parse_precision, enum workload_precision, job.precision)},
    {"attention", 0, "flash|fused|unfused",
     "attention kernels; fused: one softmax kernel, scores stay in memory (default "
     "flash)",
     CLI_PARSED (parse_attention, enum workload_attention, job.attention)},
    {"fused-norm", 0, "on|off", "run each norm as one kernel (default: the profile's)",
     CLI_PARSED (parse_choice, enum workload_choice, job.fused_norm)},
    {"fused-mlp", 0, "on|off",
     "run the MLP's activation as one kernel (default: the profile's)",
     CLI_PARSED (parse_choice, enum workload_choice, job.fused_mlp)},
    {"gathered-logits", 0, "on|off",
     "each tensor-parallel rank holds all logits, not a part (default: the profile's)",
     CLI_PARSED (parse_choice, enum workload_choice, job.gathered_logits)},
    {"tp-comm-overlap", 0, "on|off",
     "run sequence-parallel collectives in pieces between those of products, as "
     "Megatron's option of this name and TorchTitan's asynchronous tensor parallelism do "
     "(default: the profile's)",
     CLI_PARSED (parse_choice, enum workload_choice, job.tp_comm_overlap)},
    {"wta-crs", 0, "BUDGET",
     "winner-take-all column-row sampling: linear layers keep this fraction of their "
     "inputs (the published 2.7-fold saving needs --lora too)",
     CLI_ABOVE (job.wta_crs, 0, 1)},
    {"mtp-num-layers", 0, "N",
     "modules of multi-token prediction (default: the model's mtp_num_layers, else none)",
     CLI_INT (mtp_layers, 0, WORKLOAD_MTP_MOST)},
    {"lora", 0, NULL, "train LoRA adapters only: no gradients or optimizer state",
     CLI_FLAG (job.lora)},
    {"profile", 0, "NAME|FILE",
     "framework profile, also of a release: megatron-bridge@25.11 "
     "(default " WORKLOAD_PROFILE_DEFAULT ", off A100 and for experts its composed form)",
     CLI_TEXT (profile)},
    {"memory-limit", 0, "PCT",
     "use at most this share of the memory that the driver reports (default 95; 80 with "
     "--memory-model fujii)",
     CLI_ABOVE (memory_limit_pct, 1, 100)},
    {"oom-risk", 0, "P",
     "replaces --memory-limit: accept at most this probability of running out of memory, "
     "0 to 1 (plan and compare without either: 0.01 where possible)",
     CLI_ABOVE (oom_risk, 0, 0.999999)},
    {"memory-model", 0, "linkwise|fujii|korthikanti",
     "memory formulas: linkwise's own (default), or published ones to compare with",
     CLI_PARSED (parse_memory_model, enum memest_model, memory_model)},
    {0}};

static void init (void *input)
{
    *(struct cli_job *) input =
        (struct cli_job){.axes = mapper_axes_free (), .mtp_layers = -1};
}

/* Degrees that exclude each other whatever the model and the cluster. */
static void refuse_contradictions (const struct mapper_axes *a, struct argp_state *state)
{
    bool fixed = a->schedule != MAPPER_FREE;
    enum workload_schedule schedule =
        fixed ? (enum workload_schedule) a->schedule : SCHEDULE_INTERLEAVED;
    const char *name = workload_schedule_name (schedule);
    bool chunks = workload_default_vpp (schedule) > 1;

    if (a->sequence_parallel == 1 && a->tp == 1)
        usage_error (state, "--sequence-parallel on splits over the tensor-parallel "
                            "group, and --tp is 1: leave out one of the two");
    if (a->zero == 0 && a->shard > 0)
        usage_error (
            state, "--zero 0 shards nothing, and --shard is %d: leave out one of the two",
            a->shard);
    if (a->tp != MAPPER_FREE && a->etp > a->tp)
        usage_error (state, "--etp %d is above --tp %d: ask for %d or less", a->etp,
                     a->tp, a->tp);
    if (a->pp == 1 && chunks && (fixed || a->vpp > 1))
        usage_error (state,
                     "%s needs a pipeline, and --pp is 1: leave out one of the two",
                     fixed ? name : "--vpp above 1");
    if (!fixed || a->vpp == MAPPER_FREE)
        return;
    if (!chunks && a->vpp > 1)
        usage_error (
            state,
            "--vpp %d: the %s schedule has one chunk a stage: ask for --schedule "
            "interleaved, or leave out --vpp",
            a->vpp, name);
    if (workload_schedule_is_v (schedule) && a->vpp != 2)
        usage_error (state, "--vpp %d: the %s schedule has two chunks a stage", a->vpp,
                     name);
    if (chunks && a->vpp < 2)
        usage_error (state, "--vpp %d: the %s schedule needs 2 or more", a->vpp, name);
}

static void check (void *input, struct argp_state *state)
{
    const struct cli_job *j = input;
    bool lora = j->job.lora, own = j->memory_model == MEMEST_LINKWISE;
    struct workload_config modules = {.recompute = RECOMPUTE_SELECTIVE,
                                      .recompute_modules = j->axes.recompute_modules};
    char text[WORKLOAD_RECOMPUTE_TEXT];

    if (j->oom_risk > 0 && j->memory_limit_pct > 0)
        usage_error (state, "--memory-limit and --oom-risk contradict each other");
    if (j->oom_risk > 0 && !own)
        usage_error (state, "--oom-risk needs --memory-model linkwise");
    if ((lora || j->job.wta_crs > 0) && !own)
        usage_error (state, "%s needs --memory-model linkwise",
                     lora ? "--lora" : "--wta-crs");
    if (j->axes.recompute_modules && !own)
        usage_error (state, "--recompute %s needs --memory-model linkwise",
                     workload_recompute_text (&modules, text));
    if (j->axes.optimizer_bytes != MAPPER_FREE && !own)
        usage_error (state, "--optimizer-bytes needs --memory-model linkwise");
    if (j->axes.offload > OFFLOAD_NONE && !own)
        usage_error (state, "--offload needs --memory-model linkwise");
    refuse_contradictions (&j->axes, state);
}

const struct cli_options cli_job_options = {
    .line = options, .group = 1, .init = init, .check = check};

void cli_job_limit (const struct cli_job *in, struct workload_plan *plan)
{
    plan->oom_risk = in->oom_risk;
    plan->memory_limit_pct = in->memory_limit_pct > 0
                                 ? in->memory_limit_pct
                                 : memest_usual_limit_pct (in->memory_model);
}

enum status cli_job_read (const struct cli_job *in, const char *model,
                          const struct workload_gpus *on, struct linkwise_plan *x,
                          struct notes *notes, struct error *err)
{
    struct workload_plan *p = &x->plan;
    enum status st;

    p->job = in->job;
    cli_job_limit (in, p);
    snprintf (p->memory_model, sizeof p->memory_model, "%s",
              memest_model_name (in->memory_model));
    if ((st = workload_model_read (model, &p->model, notes, err)) != ST_OK)
        return cli_hint (CLI_MODEL, model, st, err);
    if (in->mtp_layers >= 0 && !workload_model_predict (&p->model, in->mtp_layers))
        return err_set (err, ST_INVALID,
                        "--mtp-num-layers %d: multi-token prediction is not known of "
                        "layers of several kinds, which %s has",
                        in->mtp_layers, p->model.name);
    workload_job_usual (&p->model, &p->job, notes);
    TRY (workload_job_check (&p->model, &p->job, err));
    TRY (in->profile
             ? workload_profile_for (in->profile, &p->model, on, &x->profile, notes, err)
             : workload_profile_default (&p->model, on, &x->profile, err));
    workload_profile_pace (&x->profile, &p->model, p->job.precision);
    return ST_OK;
}

/* Layers of each stage: the option's list, or the profile's split. */
static enum status split_layers (const struct cli_job *in, struct linkwise_plan *x,
                                 struct error *err)
{
    const char *p = in->layers;
    int pp = x->plan.config.deg.pp, all = x->plan.model.layers;
    long sum = 0;

    TRY (api_split_layers (x, err));
    if (!p)
        return ST_OK;
    for (int i = 0; i < pp; i++) {
        char *end;
        long n = strtol (p, &end, 10);

        if (end == p || n < 1 || n > all || *end != (i + 1 < pp ? ',' : '\0'))
            return err_set (
                err, ST_USAGE,
                "--layers-per-stage: expected %d numbers from 1 to %d, found \"%s\"", pp,
                all, in->layers);
        x->plan.layers_per_stage[i] = (int) n;
        sum += n;
        p = end + 1;
    }
    if (sum != all)
        return err_set (err, ST_INVALID,
                        "--layers-per-stage: %s sums to %ld, the model has %d layers",
                        in->layers, sum, all);
    return ST_OK;
}

enum status cli_job_config (const struct cli_job *in, struct linkwise_plan *x,
                            struct error *err)
{
    struct workload_plan *plan = &x->plan;

    mapper_axes_usual (&in->axes, &x->profile, &plan->config);
    TRY (workload_config_check (&plan->model, &plan->job, &plan->config, err));
    TRY (workload_config_offered (&plan->model, &plan->config, &x->profile, err));
    return split_layers (in, x, err);
}
