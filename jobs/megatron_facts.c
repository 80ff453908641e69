/* What a plan's profile says that Megatron does, as its options: how gradients, tensors and tokens
 * travel, what CUDA graphs capture, which kernels run.  What no option says goes beside, for the
 * README.  Names: megatron/training/arguments.py, transformer_config.py;
 * megatron/bridge/training/comm_overlap.py. */
#include "jobs/megatron_write.h"

#include <stddef.h>
#include <string.h>

#include "costmodel/costmodel.h"

#define FP8_GATHERED_MOST \
    3.0 /* bytes of a weight that is kept in fp8 alone: 2 bf16, 2 fp8 */
/* Room for a rank's tokens where the host must not count them, and what a paged buffer has, over
 * their mean: as Megatron Bridge's recipes have it. */
#define RANK_CAPACITY "1.5"

/* ---- one option: an argument, or a field of Megatron Bridge ---- */

const char *const jobs_megatron_section[SECTIONS] = {
    [MODEL] = "model",    [TRAIN] = "train",         [DIST] = "dist",
    [DDP] = "ddp",        [OPTIMIZER] = "optimizer", [COMM_OVERLAP] = "comm_overlap",
    [DATASET] = "dataset"};

/* The key below its section, whose name may be in front of it. */
static void write_yaml (struct text *t, const char *section, char *key, const char *value)
{
    char *type = strstr (key, ".-target-"), *own = strrchr (key, '.');

    if (type) /* a type of PyTorch's */
        *type = '\0';
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    if (!type && own && strncmp (key, section, strlen (section)) == 0)
        key = own + 1;
    if (type)
        text_add (t, "  %s:\n    _target_: %s\n    _call_: false\n", key, value);
    else
        text_add (t, "  %s: %s\n", key, value);
}

void jobs_megatron_say (struct writing *w, enum section s, const char *fact,
                        const char *value)
{
    char key[JOBS_KEY_MAX];

    jobs_key_of (w->dialect, fact, key);
    if (w->yaml)
        write_yaml (&w->part[s], jobs_megatron_section[s], key, value);
    else if (strcmp (value, "true") == 0)
        text_add (&w->part[0], "--%s\n", key);
    else
        text_add (&w->part[0], "--%s %s\n", key, value);
}

void jobs_megatron_choose (struct writing *w, enum section s, const char *fact,
                           const char *value, const char *unset)
{
    if (value || w->yaml)
        jobs_megatron_say (w, s, fact, value ? value : unset);
}

void jobs_megatron_say_flag (struct writing *w, enum section s, const char *fact, bool on)
{
    jobs_megatron_choose (w, s, fact, on ? "true" : NULL, "false");
}

/* ---- the facts ---- */

static bool in_16_bits (enum workload_precision p)
{
    return p == PREC_BF16 || workload_quantised_bytes (p) > 0;
}

static void write_overlaps (const struct workload_plan *p, const struct jobs_priced *by,
                            struct writing *w)
{
    const struct workload_config *c = &p->config;
    bool data = by->profile->time.dp_overlap > 0.0,
         tensors =
             c->sequence_parallel &&
             workload_choose (p->job.tp_comm_overlap, by->profile->time.tp_comm_overlap),
         tokens = p->model.experts > 0 && workload_exchanges_overlap (by->profile, c);

    jobs_megatron_say_flag (w, COMM_OVERLAP, "overlap-grad-reduce", data);
    jobs_megatron_say_flag (w, COMM_OVERLAP, "overlap-param-gather",
                            data && c->zero >= 1);
    jobs_megatron_say_flag (w, COMM_OVERLAP, "tp-comm-overlap", tensors);
    jobs_megatron_say_flag (w, COMM_OVERLAP, "overlap-moe-expert-parallel-comm", tokens);
    if (tensors)
        text_add (
            w->beside,
            "tp-comm-overlap: Transformer Engine's user buffers start by MPI, or with\n"
            "--tp-comm-bootstrap-backend nccl.\n");
    if (tokens)
        text_add (w->beside,
                  "overlap-moe-expert-parallel-comm: PyTorch 2.6 or later; set\n"
                  "CUDA_DEVICE_MAX_CONNECTIONS=32.\n");
    else if (c->deg.tp * c->deg.cp > 1 && c->zero < 2 && by->gpu->fp4_flop_per_s <= 0.0)
        text_add (w->beside,
                  "tp and cp before Blackwell: set CUDA_DEVICE_MAX_CONNECTIONS=1.\n");
}

/* Megatron-LM keeps and reduces gradients of 16-bit weights in fp32 unless told otherwise; the
 * precision-aware optimizer casts them back. */
static void write_gradients (const struct workload_plan *p, const struct jobs_priced *by,
                             struct writing *w)
{
    bool half = by->profile->memory.gradient_bytes <= 2.0;

    if (!in_16_bits (p->job.precision))
        return;
    if (w->yaml)
        jobs_megatron_say (w, DDP, "grad-reduce-in-fp32", half ? "false" : "true");
    else if (half)
        jobs_megatron_say (w, DDP, "grad-reduce-in-bf16", "true");
    if (w->yaml && half)
        text_add (w->beside,
                  "mixed_precision: its recipe's gradients are in fp32; set\n"
                  "cfg.mixed_precision.grad_reduce_in_fp32 = False in the script.\n");
    if (half && p->config.optimizer_bytes > 0 &&
        p->config.optimizer_bytes != JOBS_MEGATRON_STATE)
        jobs_megatron_say (w, OPTIMIZER, "main-grads-dtype",
                           w->yaml ? "torch.bfloat16" : "bf16");
}

/* Grouped products, and tokens sent to their experts alone, where Megatron-LM gathers all tokens on
 * every rank unless told otherwise. */
static void write_experts (const struct workload_plan *p, const struct jobs_priced *by,
                           bool hybrid, struct writing *w)
{
    const struct workload_profile *profile = by->profile;
    bool drops = profile->drops_tokens,
         flex = profile->time.deduplicated_dispatch && !drops;
    char factor[32];

    snprintf (factor, sizeof factor, "%g", profile->time.expert_capacity);
    if (!workload_recomputes (&p->config, MODULE_MOE_ACT)) /* said there */
        jobs_megatron_say (w, MODEL, "moe-grouped-gemm", "true");
    jobs_megatron_choose (w, MODEL, "moe-expert-capacity-factor", drops ? factor : NULL,
                          "null");
    jobs_megatron_say_flag (w, MODEL, "moe-pad-expert-input-to-capacity", drops);
    if (p->config.deg.ep * p->config.deg.etp == 1)
        return;
    jobs_megatron_say (w, MODEL, "moe-token-dispatcher-type", flex ? "flex" : "alltoall");
    if (!flex)
        return;
    jobs_megatron_say (w, MODEL, "moe-flex-dispatcher-backend",
                       hybrid ? "hybridep" : "deepep");
    text_add (w->beside, "moe-token-dispatcher-type flex: install %s.\n",
              hybrid ? "DeepEP's branch hybrid-ep" : "DeepEP");
}

static void write_graphs (enum costmodel_capture capture, bool experts, struct writing *w)
{
    static const char *const impl[] = {[COSTMODEL_CAPTURE_PARTS] = "transformer_engine",
                                       [COSTMODEL_CAPTURE_STEP] = "full_iteration"};
    bool none = capture == COSTMODEL_CAPTURE_NOTHING;

    jobs_megatron_choose (w, MODEL, "cuda-graph-impl", none ? NULL : impl[capture],
                          "none");
    if (none)
        return;
    if (capture == COSTMODEL_CAPTURE_PARTS)
        jobs_megatron_say (w, MODEL, "cuda-graph-modules",
                           w->yaml ? "[attn, moe_router, moe_preprocess]"
                                   : "attn moe_router moe_preprocess");
    else if (experts) { /* nothing of theirs may depend on how many tokens there are */
        jobs_megatron_say (w, MODEL, "moe-expert-rank-capacity-factor", RANK_CAPACITY);
        jobs_megatron_say (w, MODEL, "moe-paged-stash", "true");
        jobs_megatron_say (w, MODEL, "moe-pad-experts-for-cuda-graph-inference", "true");
    }
    if (capture == COSTMODEL_CAPTURE_STEP && !w->yaml)
        text_add (&w->part[0], "--no-check-for-nan-in-loss-and-grad\n");
    jobs_megatron_say (w, MODEL, "te-rng-tracker", "true");
    text_add (w->beside,
              "cuda-graph-impl: as Megatron-LM of 2026 spells it; before, whole steps "
              "were\n\"local\" with --cuda-graph-scope full_iteration.%s\n",
              w->yaml ? "  Set cfg.rng.te_rng_tracker = True, too, and for whole\n"
                        "steps cfg.rerun_state_machine.check_for_nan_in_loss = False."
                      : "");
}

/* A kernel that is one unless told otherwise: an argument turns it off, Bridge's field has both. */
static void write_fusion (struct writing *w, const char *off, const char *field,
                          bool fused)
{
    if (w->yaml)
        jobs_megatron_say (w, MODEL, field, fused ? "true" : "false");
    else if (!fused)
        jobs_megatron_say (w, MODEL, off, "true");
}

static void write_kernels (const struct workload_plan *p, const struct jobs_priced *by,
                           struct writing *w)
{
    const struct workload_profile *profile = by->profile;
    enum workload_attention attention = p->job.attention;

    jobs_megatron_choose (w, MODEL, "attention-backend",
                          !workload_attention_is_flash (attention) ? "unfused"
                          : profile->flash2                        ? "flash"
                                                                   : NULL,
                          "auto");
    write_fusion (w, "no-masked-softmax-fusion", "masked-softmax-fusion",
                  attention != ATTENTION_UNFUSED);
    write_fusion (w, p->model.gated_mlp ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion",
                  "bias-activation-fusion",
                  workload_choose (p->job.fused_mlp, profile->fused_mlp));
    write_fusion (w, "no-rope-fusion", "apply-rope-fusion", profile->fused_rotary);
    /* Megatron-FSDP has no main gradients for products to add to. */
    write_fusion (w, "no-gradient-accumulation-fusion", "gradient-accumulation-fusion",
                  profile->fused_accumulation && p->config.zero < 2);
}

/* Weights that fp8 and fp4 training keep in that precision alone, and gather so. */
static void write_quantised (const struct workload_plan *p, const struct jobs_priced *by,
                             struct writing *w)
{
    bool fp4 = p->job.precision == PREC_FP4;

    if (workload_quantised_bytes (p->job.precision) == 0 || p->config.zero == 0 ||
        by->profile->memory.fp8_weight_bytes > FP8_GATHERED_MOST || w->yaml)
        return; /* Bridge's recipe of the precision says so itself */
    jobs_megatron_say (w, MODEL, fp4 ? "fp4-param-gather" : "fp8-param-gather", "true");
    if (!fp4 && costmodel_takes_blocks (p->job.precision, by->gpu))
        text_add (&w->part[0], "--reuse-grad-buf-for-mxfp8-param-ag\n");
}

/* ---- what no option says ---- */

#define FACT(FIELD, HAS, WORDS)                               \
    {                                                         \
        offsetof (struct workload_profile, FIELD), HAS, WORDS \
    }

/* Facts that Megatron has not. */
static const struct {
    size_t at; /* a bool of the profile */
    bool has;
    const char *words;
} others[] = {
    FACT (fused_norm, false, "norms in several kernels"),
    FACT (separate_gate, true, "an MLP's two first projections apart"),
    FACT (gathered_logits, true, "logits gathered on every rank"),
    FACT (chunked_loss, true, "a loss in chunks"),
    FACT (repeats_kv, true, "keys and values copied to every query head"),
    FACT (keeps_gathered, true, "gathered inputs kept for backward"),
    FACT (copies_inputs, true, "a copy of the input for every column-parallel layer"),
    FACT (cp_by_pieces, true, "context parallelism that gathers keys and values"),
    FACT (cp_all_to_all, true, "context parallelism that exchanges heads"),
    FACT (gradients_freed, true, "gradients freed after the step"),
    FACT (whole_gradients, true, "gradients summed whole under ZeRO 2 and 3"),
    FACT (time.all_reduced_gradients, true, "gradients all-reduced whole under ZeRO"),
    FACT (time.blocking_sends, true, "sends that block a stage"),
};

static void write_others (const struct workload_plan *p, const struct jobs_priced *by,
                          struct writing *w)
{
    const struct workload_profile *profile = by->profile;
    struct text list = {0};

    for (size_t i = 0; i < COUNT_OF (others); i++)
        if (*(const bool *) ((const char *) profile + others[i].at) == others[i].has)
            text_add (&list, "    %s\n", others[i].words);
    if (p->config.recompute == RECOMPUTE_SELECTIVE && p->config.recompute_modules == 0 &&
        profile->selective != SELECTIVE_ATTENTION)
        text_add (&list, "    its selective recomputation, which is not of attention\n");
    if (in_16_bits (p->job.precision) && profile->memory.gradient_bytes != 2.0 &&
        profile->memory.gradient_bytes != 4.0)
        text_add (&list, "    gradients of %g bytes a parameter\n",
                  profile->memory.gradient_bytes);
    if (p->config.optimizer_bytes == 0 &&
        profile->memory.optimizer_bytes != JOBS_MEGATRON_STATE)
        text_add (&list, "    optimizer states of %g bytes a parameter, in place of %d\n",
                  profile->memory.optimizer_bytes, JOBS_MEGATRON_STATE);
    if (p->job.attention == ATTENTION_FLASH1)
        text_add (&list, "    FlashAttention 1\n");
    if (list.len > 0)
        text_add (w->beside,
                  "Priced by profile %s, which has these; Megatron has not:\n\n%s",
                  profile->name, text_str (&list));
    text_free (&list);
}

void jobs_megatron_facts (const struct workload_plan *p, const struct jobs_priced *by,
                          struct writing *w)
{
    enum costmodel_capture capture =
        costmodel_capture (&p->model, &p->job, &p->config, by->profile, by->gpu);
    bool experts = p->model.experts > 0, whole = capture == COSTMODEL_CAPTURE_STEP;
    bool fused = workload_fuses_experts (
        by->profile, &p->model, costmodel_takes_blocks (p->job.precision, by->gpu));

    if (experts) /* what counts no tokens on the host is HybridEP, which racks have, too */
        write_experts (p, by, whole || topology_usual_rack (by->gpu->name) > 0, w);
    write_overlaps (p, by, w);
    write_gradients (p, by, w);
    write_quantised (p, by, w);
    write_graphs (capture, experts, w);
    jobs_megatron_say_flag (w, MODEL, "use-transformer-engine-op-fuser", fused);
    write_kernels (p, by, w);
    write_others (p, by, w);
}
