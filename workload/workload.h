/* What is trained and how it is split: the model, the job, the configuration, the plan,
 * and the framework profile.
 *
 * These are plain data: anyone may fill them.  The readers here check everything once, at
 * the boundary; workload_config_check says whether a configuration fits model and job.
 */
#ifndef WORKLOAD_WORKLOAD_H
#define WORKLOAD_WORKLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/model.h"
#include "workload/schedule/schedule.h"

/* ---- the job and the configuration ---- */

/** tf32 is fp32 in memory and on links, multiplied at the GPU's TF32 rate; fp4 is NVFP4 or
 *  MXFP4, blocks with a scale each. */
enum workload_precision {
    PREC_BF16,
    PREC_FP16,
    PREC_FP8,
    PREC_FP32,
    PREC_TF32,
    PREC_FP4
};
enum workload_attention {
    ATTENTION_FLASH,
    ATTENTION_FUSED,   /* scores kept, softmax in one kernel */
    ATTENTION_UNFUSED, /* scores kept, PyTorch operations */
    ATTENTION_FLASH1   /* FlashAttention 1: the same memory, slower */
};

/** Bytes of an element outside products: activations, weights, what is sent. */
static inline double workload_element_bytes (enum workload_precision p)
{
    return p == PREC_FP32 || p == PREC_TF32 ? 4.0 : 2.0;
}
/** Bytes of an element that products read where they read fewer bits than the layers hold (fp8;
 *  fp4 with its blocks' scales); 0: as the layers hold them. */
static inline double workload_quantised_bytes (enum workload_precision p)
{
    return p == PREC_FP8 ? 1.0 : p == PREC_FP4 ? 0.56 : 0.0;
}
/** Are scores never kept? */
static inline bool workload_attention_is_flash (enum workload_attention a)
{
    return a == ATTENTION_FLASH || a == ATTENTION_FLASH1;
}
/** How all-reduces go: as NCCL would choose, or always by one of these where a group's
 *  machines offer it (else by ring). */
enum workload_all_reduce {
    ALL_REDUCE_AUTO,
    ALL_REDUCE_RING,
    ALL_REDUCE_TREE,         /* double binary tree of nodes */
    ALL_REDUCE_HIERARCHICAL, /* inside nodes, between nodes, inside nodes */
    ALL_REDUCE_NVLS,         /* reduced by the NVSwitches of one node */
    ALL_REDUCE_NVLS_TREE     /* so inside nodes, a tree between them */
};

/** A kernel or layout that the profile sets unless the job does. */
enum workload_choice { CHOICE_PROFILE, CHOICE_NO, CHOICE_YES };

enum workload_recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };

/** Parts of a layer that selective recomputation repeats one by one, by Megatron-Core's names
 *  (--recompute-modules; transformer_config.py). */
enum workload_module {
    MODULE_CORE_ATTN,
    MODULE_LAYERNORM, /* norms that are kernels of their own */
    MODULE_MLP,       /* of layers without experts */
    MODULE_MOE_ACT,   /* the activation inside experts */
    MODULE_MLA_UP_PROJ,
    MODULE_MOE, /* router, experts and shared experts */
    MODULE_SHARED_EXPERTS
};
#define WORKLOAD_MODULES 7

const char *workload_precision_name (enum workload_precision p);
const char *workload_attention_name (enum workload_attention a);
const char *workload_all_reduce_name (enum workload_all_reduce a);
bool workload_precision_parse (const char *s, enum workload_precision *p);
bool workload_attention_parse (const char *s, enum workload_attention *a);
bool workload_all_reduce_parse (const char *s, enum workload_all_reduce *a);
/** "on" or "off". */
bool workload_choice_parse (const char *s, enum workload_choice *c);

/** What is trained, whatever the split. */
struct workload_job {
    int seq;          /* tokens of one sequence */
    int global_batch; /* sequences of one optimiser step */
    enum workload_precision precision;
    enum workload_attention attention;
    enum workload_choice fused_norm, fused_mlp, gathered_logits;
    double wta_crs; /* budget of WTA-CRS, 0 to 1; 0: not used */
    bool lora;      /* only low-rank adapters are trained */
};

/** Degrees of parallelism; dp excludes cp; world = tp * cp * dp * pp. */
struct workload_degrees {
    int tp, pp, dp, cp, ep, etp, vpp;
};

/** How the job is split and run: everything but layers per stage and the placement. */
struct workload_config {
    struct workload_degrees deg;
    int micro_batch; /* sequences */
    int zero;        /* ZeRO stage; 1 is also Megatron's distributed optimizer */
    bool sequence_parallel;
    enum workload_recompute recompute;
    int recompute_layers; /* with RECOMPUTE_FULL: how many of a stage's layers; 0: all */
    /* With RECOMPUTE_SELECTIVE: bits 1 << enum workload_module; 0: what the framework's own
     * selective repeats. */
    unsigned recompute_modules;
    int optimizer_bytes; /* of optimizer state per parameter; 0: the profile's */
    enum workload_schedule schedule;
};

#define WORKLOAD_RECOMPUTE_TEXT 64
/** "none", "selective", "full", "full:K" or modules ("layernorm,moe_act"). */
const char *workload_recompute_text (const struct workload_config *c,
                                     char buf[WORKLOAD_RECOMPUTE_TEXT]);
/** Sets recompute, recompute_layers and recompute_modules; nothing where it gives false. */
bool workload_recompute_parse (const char *s, struct workload_config *c);
const char *workload_module_name (enum workload_module m);
/** Modules by name with commas or blanks between them.  @return false on an unknown one, or
 *  on none */
bool workload_modules_parse (const char *s, unsigned *modules);
/** Those that the model has. */
unsigned workload_modules_of (const struct workload_model *m);

/** Is the module repeated in backward, alone and not with its whole layer? */
static inline bool workload_recomputes (const struct workload_config *c,
                                        enum workload_module m)
{
    unsigned own = 1u << MODULE_CORE_ATTN; /* Megatron's default for selective */

    return c->recompute == RECOMPUTE_SELECTIVE &&
           (c->recompute_modules ? c->recompute_modules : own) >> m & 1;
}

/** Does backward repeat what experts exchange, too? */
static inline bool workload_repeats_exchange (const struct workload_config *c)
{
    return c->recompute == RECOMPUTE_FULL || workload_recomputes (c, MODULE_MOE);
}

/** Norms of width h in a layer that are kernels of their own, where the other ones are one
 *  with the product behind them: before latent attention and before experts, or all. */
static inline int workload_own_norms (const struct workload_model *m, bool fused,
                                      unsigned parts)
{
    return fused ? (m->kv_rank > 0) + ((parts & PART_EXPERTS) != 0)
                 : workload_sublayers (parts);
}

#define WORKLOAD_RANKS_MAX (1 << 24) /* of one job */
/** Micro-batches in flight on a stage at its worst moment, each with the activations of all
 *  its layers; a fraction under interleaving. */
static inline double workload_in_flight (const struct workload_config *c,
                                         int microbatches, int stage)
{
    return workload_schedule_rules (c->schedule)
        ->in_flight ((struct workload_pipeline_size){c->deg.pp, c->deg.vpp, microbatches},
                     stage);
}

/** Micro-batches times chunks of a stage, under schedules that are played out. */
#define WORKLOAD_CHUNK_RUNS_MAX (1 << 18)
#define WORKLOAD_RANK_ORDER "tp-cp-ep-dp-pp"

/** tp * cp * dp * pp of positive degrees; more than WORKLOAD_RANKS_MAX where a product on
 *  the way is. */
static inline long long workload_world (const struct workload_degrees *d)
{
    const int degree[] = {d->cp, d->dp, d->pp};
    long long world = d->tp;

    for (int i = 0; i < 3 && world <= WORKLOAD_RANKS_MAX; i++)
        world *= degree[i];
    return world;
}

/** Micro-batches of one step: global_batch / (dp * micro_batch). */
static inline int workload_microbatches (const struct workload_job *j,
                                         const struct workload_config *c)
{
    return j->global_batch / (c->deg.dp * c->micro_batch);
}

/** Layers without and with experts.  In a model with a pattern, also those of each of its
 *  kinds; where all of these are 0, which ones they are is not told, and each counts as the
 *  one that has least of what is asked for. */
struct workload_layers {
    int dense, expert;
    unsigned short of[WORKLOAD_KINDS];
};

/** What one pipeline stage holds. */
struct workload_stage {
    int dense, expert;                 /* layers without and with experts */
    unsigned short of[WORKLOAD_KINDS]; /* as in struct workload_layers */
    bool embedding, head;
    /* Of several chunks: the layers of the first and of the last one; those between are
     * alike.  Both empty: all chunks are alike. */
    struct workload_layers first, last;
};

/** Are the kinds of a stage's layers told apart? */
static inline bool workload_kinds_told (const struct workload_stage *s)
{
    return s->of[0] || s->of[1] || s->of[2] || s->of[3];
}

/** The parts of all layers without or with experts in a model without a pattern. */
#define WORKLOAD_DENSE_PARTS (PART_ATTENTION | PART_MLP)
#define WORKLOAD_EXPERT_PARTS (PART_ATTENTION | PART_EXPERTS)

/** What a layer of given parts has of something. */
typedef double workload_of_parts (const void *about, unsigned parts);

/** The layer without, or with, experts that has least of something; of any layer where the
 *  model has none such. */
double workload_least_layer (const struct workload_model *m, bool expert,
                             workload_of_parts *of, const void *about);

/** What all layers of a stage have of it together. */
double workload_held_sum (const struct workload_model *m, const struct workload_stage *s,
                          workload_of_parts *of, const void *about);

/** The same of those without, or with, experts alone, and what the fullest one has. */
double workload_class_sum (const struct workload_model *m, const struct workload_stage *s,
                           bool expert, workload_of_parts *of, const void *about,
                           double *most);

/** Kinds of layers by number, below WORKLOAD_KINDS: those of a pattern, or 0 without and 1 with
 *  experts.  The kind of layer `index`, and a stage with one layer of a kind. */
int workload_kind_of (const struct workload_model *m, int index);
struct workload_stage workload_one_layer (const struct workload_model *m, int kind);

/** All of a model's layers, without embedding and head. */
struct workload_stage workload_all_layers (const struct workload_model *m);

/** How many of a stage's layers chunk `chunk` of v holds: as even as can be, the first chunks
 *  having one more than the last ones. */
int workload_chunk_layers (int layers, int v, int chunk);

/** What stage `stage` holds, given the layers of every stage.
 *
 *  With vpp chunks a stage holds vpp runs of layers, chunk after chunk round the stages;
 *  in the V-shaped schedules the second chunk goes round in reverse.
 *
 *  @param[in] layers  [pp] */
struct workload_stage workload_stage_of (const struct workload_model *m,
                                         const struct workload_config *c,
                                         const int *layers, int stage);

/** The same where a plan gives the layers of every chunk.
 *
 *  @param[in] chunks  [pp * vpp] chunk `chunk` of stage `stage` at stage * vpp + chunk */
struct workload_stage workload_stage_of_chunks (const struct workload_model *m,
                                                const struct workload_config *c,
                                                const int *chunks, int stage);

/** How many layers the model lacks for all chunks to hold as many. */
static inline int workload_chunks_lack (const struct workload_model *m, int pp, int vpp)
{
    return pp * vpp - 1 - (m->layers - 1) % (pp * vpp);
}

/** The fewest layers of a stage: one a chunk, or, where the model has fewer layers than there
 *  are chunks, one in each but the last. */
static inline int workload_layers_least (const struct workload_model *m,
                                         const struct workload_config *c)
{
    return (long long) c->deg.pp * c->deg.vpp > m->layers ? c->deg.vpp - 1 : c->deg.vpp;
}

/** The same when only this stage's number of layers is known.  The stages before it count
 *  as one layer each: where the model's first layers have no experts, this gives the
 *  fewest experts that so many layers can have. */
struct workload_stage workload_stage_guess (const struct workload_model *m,
                                            const struct workload_config *c, int stage,
                                            int layers);

/** The fewest and the most layers with experts that a stage can have in each of its
 *  chunks, whatever the other stages hold (one layer or more a chunk; the last chunks may be
 *  empty where the model has fewer layers than there are chunks). */
void workload_stage_range (const struct workload_model *m,
                           const struct workload_config *c, int stage, int layers,
                           struct workload_stage *fewest, struct workload_stage *most);

/** Parameters on one rank of a stage before any sharding over data parallelism; routed
 *  experts apart, since they are sharded over other groups. */
struct workload_stage_params {
    double dense, expert;
};
struct workload_stage_params workload_stage_params (const struct workload_model *m,
                                                    const struct workload_config *c,
                                                    const struct workload_stage *s);

/** Groups of ranks that talk, as Megatron's rank generators in the order
 *  WORKLOAD_RANK_ORDER form them: one over tp, cp, dp and pp; another over the same ranks
 *  for experts, with etp, ep and what they leave of tp cp dp. */
enum workload_group_kind {
    GROUP_TP,
    GROUP_CP,
    GROUP_DP,
    GROUP_SYNC, /* dp and cp together: dense gradients, and what ZeRO shards over */
    GROUP_PP,
    GROUP_ETP,
    GROUP_EP,
    GROUP_EXPERT_SYNC, /* ranks with the same experts */
};

/** Such groups: `size` ranks, `stride` apart. */
struct workload_group {
    int size, stride;
};

static inline struct workload_group workload_group_of (const struct workload_degrees *d,
                                                       enum workload_group_kind kind)
{
    switch (kind) {
    case GROUP_TP:
        return (struct workload_group){d->tp, 1};
    case GROUP_CP:
        return (struct workload_group){d->cp, d->tp};
    case GROUP_DP:
        return (struct workload_group){d->dp, d->tp * d->cp};
    case GROUP_SYNC:
        return (struct workload_group){d->cp * d->dp, d->tp};
    case GROUP_ETP:
        return (struct workload_group){d->etp, 1};
    case GROUP_EP:
        return (struct workload_group){d->ep, d->etp};
    case GROUP_EXPERT_SYNC:
        return (struct workload_group){d->tp * d->cp * d->dp / (d->etp * d->ep),
                                       d->etp * d->ep};
    case GROUP_PP:
        break;
    }
    return (struct workload_group){d->pp, d->tp * d->cp * d->dp};
}

/** Ranks over which optimizer state (and gradients, weights) of dense parameters are
 *  sharded: dp cp; of experts: tp cp dp / (etp ep). */
static inline int workload_dense_shards (const struct workload_degrees *d)
{
    return workload_group_of (d, GROUP_SYNC).size;
}
static inline int workload_expert_shards (const struct workload_degrees *d)
{
    return workload_group_of (d, GROUP_EXPERT_SYNC).size;
}

/** Give a job without a sequence length or a global batch (0) those that the model is usually
 *  trained with (usual.c), with a note on each. */
void workload_job_usual (const struct workload_model *m, struct workload_job *j,
                         struct notes *notes);

/** Is the job well-formed for this model?  ST_INVALID says what is not. */
enum status workload_job_check (const struct workload_model *m,
                                const struct workload_job *j, struct error *err);

/** Does the configuration fit model and job?
 *
 *  @param err  NULL for a quick test without words
 *  @return ST_OK, or ST_INVALID saying which degree does not divide what, and which
 *          values would
 */
enum status workload_config_check (const struct workload_model *m,
                                   const struct workload_job *j,
                                   const struct workload_config *c, struct error *err);

struct workload_profile;

/** Does the framework, or a fork of it, offer this: its schedule, its ZeRO stage with a
 *  pipeline, the modules that it recomputes, the bytes of its optimizer's state?
 *  @param err  may be NULL */
enum status workload_config_offered (const struct workload_config *c,
                                     const struct workload_profile *p, struct error *err);

/** Rank's coordinates: rank = tp_i + tp (cp_i + cp (dp_i + dp pp_i)), Megatron's order
 *  tp-cp-ep-dp-pp; ep_i is its place in its expert-parallel group, (cp_i + cp dp_i) mod ep
 *  where etp is tp. */
struct workload_coords {
    int tp, cp, ep, dp, pp;
};
struct workload_coords workload_coords_of (const struct workload_degrees *d, int rank);

/** Layers spread evenly over pp stages; what remains goes to the middle ones, since the
 *  ends also hold embedding and head. @param[out] layers [pp] */
void workload_layers_even (int n_layers, int pp, int *layers);

/** How a framework spreads layers over stages unless told otherwise.
 *
 *  PARTITION_EVEN: workload_layers_even.
 *  PARTITION_PARAMETERS: the stage with most parameters has as few as can be, embedding
 *  and head counted with the stages that hold them, earlier stages filled first
 *  (DeepSpeed's partition_method="parameters").
 *  PARTITION_MODULES: embedding, layers, final norm and head are modules of one list that
 *  is cut into equal parts, the first ones a module longer where it does not divide
 *  (pipe_partition_uniform of Aleph Alpha's framework, github.com/Aleph-Alpha/scaling).
 *  PARTITION_COST: a stage closes after the layer that passes its share of the cost, 4 h^2 +
 *  3 h f of a layer and V h of the head (nanotron, models/base.py). */
enum workload_partition {
    PARTITION_EVEN,
    PARTITION_PARAMETERS,
    PARTITION_MODULES,
    PARTITION_COST
};
#define WORKLOAD_PARTITIONS 4

/** Layers of every stage; each gets at least one.
 *  @param[in]  pp      at most the model's layers
 *  @param[out] layers  [pp] */
void workload_layers_split (const struct workload_model *m, enum workload_partition by,
                            int pp, int *layers);

/* ---- the framework profile ---- */

#define WORKLOAD_SOURCES_MAX 16
#define WORKLOAD_RELEASES_MAX 4
#define WORKLOAD_SEARCHED_MAX 8
#define WORKLOAD_OPTIMIZER_BYTES_MAX 63

/** The stage that a source measures: the fullest, the last or the first. */
enum workload_measured { MEASURED_MAX, MEASURED_LAST, MEASURED_FIRST };

/** What selective recomputation repeats: attention (Megatron); every second product and what
 *  lies between (PyTorch's selective AC in TorchTitan); some whole layers, as many as the
 *  memory needs (fms-fsdp). */
enum workload_selective { SELECTIVE_ATTENTION, SELECTIVE_PRODUCTS, SELECTIVE_LAYERS };

/** Whose steps are captured whole in a CUDA graph, so that the host launches nothing but the graph:
 *  of nothing; of models without experts and without a pipeline; of those, and of models with
 *  experts where their exchange tells the host nothing (workload_is_captured); of everything. */
enum workload_graphs { GRAPHS_NONE, GRAPHS_DENSE, GRAPHS_BLOCKS, GRAPHS_ALL };

/** Constants in which training frameworks differ (a JSON file; docs/profile.md). */
struct workload_profile {
    char name[64];
    char from[256]; /* the argument it was read by: a shipped name, or a file */
    char origin
        [512]; /* the file's "source": where its values come from; cut where longer */
    char source[WORKLOAD_SOURCES_MAX][64]; /* of the runs that it was fitted on */
    int n_sources;
    char release[16]; /* the last one that these facts hold for; "": the current one */
    char until[WORKLOAD_RELEASES_MAX]
              [16]; /* of the current one: the earlier ones that its file
                                              has facts of, from the earliest */
    int n_until;
    char framework[WORKLOAD_SOURCES_MAX]
                  [64]; /* words of runs' frameworks that it serves */
    int n_frameworks;
    char gpu[64];            /* the GPU type whose runs it serves by default; "": none */
    bool measured_allocated; /* its runs' memory is the allocator's, without overheads */
    enum workload_measured measured_rank;        /* and of which pipeline stage */
    bool fused_norm, fused_mlp, gathered_logits; /* unless the job says otherwise */
    bool fused_rotary;                           /* rotary embeddings in one kernel */
    bool fused_accumulation; /* a micro-batch's gradients are added by the kernel that
                                makes them */
    bool separate_gate;   /* the two first projections of a gated MLP are layers apart */
    bool compute_of_type; /* matrix products, attention and launches go by the GPU type's
                             constants; `gemm` and launch times scale them */
    bool flash2;          /* flash attention is FlashAttention 2's kernel, not cuDNN's */
    enum workload_selective selective;
    enum workload_graphs graphs;
    bool
        fused_experts; /* in fp8 and fp4 of blocks with scales, an expert's activation and its
                           cast are part of the grouped products */
    bool
        drops_tokens; /* experts take no more than their share of tokens, so that the host need
                          not wait for their numbers */
    bool one_sequence; /* its recipes take micro-batches of one sequence */
    bool
        gradients_freed; /* gradients do not outlive a step (set_to_none), so that those of
                             the only micro-batch never meet its logits */
    bool
        sums_in_products; /* gradients are summed in the products' epilogues, in time that
                              memory has beside them */
    bool chunked_loss;    /* only a part of the 16-bit logits is cast to fp32 at a time */
    bool repeats_kv;      /* keys and values are copied to every query head */
    bool keeps_gathered;  /* inputs gathered under sequence parallelism, for backward */
    bool uneven_chunks;   /* the chunks of an interleaved stage may hold unlike numbers of
                             layers (Megatron-Core's pipeline layouts) */
    enum workload_precision precision; /* of its runs, where nothing is said */
    enum workload_attention attention; /* of its runs, where nothing is said */
    enum workload_recompute recompute; /* likewise */
    int zero;                          /* the same */
    enum workload_partition partition; /* of layers, unless told otherwise */
    int zero_with_pipeline; /* highest ZeRO stage that it offers with a pipeline */
    unsigned zero_stages;   /* bits 1 << stage: those that it offers; 0 always is */
    /* Bits 1 << enum workload_schedule: what the framework runs, which is what a search
     * takes, and what only forks or branches of it run. */
    unsigned schedules, schedules_on_request;
    unsigned recompute_modules; /* bits 1 << enum workload_module that it can repeat */
    unsigned searched[WORKLOAD_SEARCHED_MAX]; /* of these, what a search tries together */
    int n_searched;
    unsigned long long optimizer_choices; /* bits 1 << bytes: optimizer states that it can
                                             keep beside its usual one */
    struct {
        double gradient_bytes;   /* per parameter: 4 fp32 main gradients, 2 bf16 */
        double optimizer_bytes;  /* per parameter: master copy and moments */
        double fp8_weight_bytes; /* per parameter, of weights that fp8 training keeps;
                                    fp4 keeps two smaller copies (docs/formulas.md, A1) */
        double
            step_bytes; /* per parameter of a rank's shard: temporaries of the optimizer's
                              step, where that is a peak of its own; 0: it is none */
        double expert_token_bytes;   /* kept per token-expert pair and h */
        double unsharded_bytes;      /* per parameter, on top in bf16, never sharded */
        double norm_bytes;           /* kept per token and h: norms' inputs and outputs */
        double unfused_norm_bytes;   /* on top, when norms are not one kernel */
        double gated_mlp_bytes;      /* kept per token and f by a gated MLP, fused */
        double unfused_mlp_bytes;    /* on top, when its activation is not one kernel */
        double plain_mlp_bytes;      /* kept per token and f by a plain MLP */
        double attention_bytes;      /* kept per token and h on top (rotary, casts) */
        double dropout_bytes;        /* kept per token and h, when there is dropout */
        double fused_score_bytes;    /* kept per attention score, fused softmax */
        double score_bytes;          /* the same with PyTorch operations */
        double logit_bytes;          /* held per token and vocabulary entry of the rank */
        double gathered_logit_bytes; /* held per token and entry, when gathered */
        double gather_copy_bytes;    /* on top when tp > 1: the gather's copy */
        double recompute_workspace;  /* of one layer, beside it, under full recompute */
        double expert_imbalance;     /* tokens of the fullest expert rank over the mean */
        double wta_input_bytes;      /* per saved input element of a linear layer */
        double wta_dropped_bytes;    /* per token and h that WTA-CRS makes unneeded */
        double wta_lora_bytes;       /* per parameter, WTA-CRS with adapters */
        double bucket_bytes;         /* communication buckets under ZeRO 1 and 2 */
        double base_bytes;           /* driver context and libraries */
        double group_bytes;     /* per communicator group in use (TP, PP, DP, CP, EP) */
        double allocated_bytes; /* what the allocator holds beside tensors */
        double fragmentation;   /* of everything but the overheads */
        double residual;        /* standard deviation of log (measured / estimate) */
    } memory;
    struct {
        double gemm;      /* of the GPU type's gemm_efficiency */
        double attention; /* part of the peak that flash attention reaches, forward */
        double attention_back; /* backward */
        double attention1;     /* both, of FlashAttention 1 */
        double score_traffic;  /* bytes that unfused attention moves per score, forward
                                      and backward together */
        double fused_score_traffic; /* the same with a fused softmax */
        double memory_bandwidth;    /* part of the peak that elementwise kernels reach */
        double layer_launch_fwd_s;  /* least time of one layer: the host's launches */
        double layer_launch_back_s;
        double recompute_s;    /* per recomputed layer: host work */
        double link;           /* part of a link's bandwidth that collectives reach */
        double link_out;       /* the same between nodes, over link's */
        double job_size_power; /* of its runs' network, where they do not state it: a node
                                  has less of it in larger jobs, by this power */
        double collective_s;   /* start of one collective */
        double send_link;      /* part of a link's bandwidth that sends reach */
        double
            dp_bucket_bytes; /* data-parallel collectives carry at most so much each; 0:
                                   one collective carries all */
        double dp_overlap;   /* part of the last backward and the first forward under
                                which data-parallel traffic hides; all of them in ZeRO 3 */
        double tp_overlap;   /* part of sequence-parallel collectives that hides under
                              matrix products, where tp_comm_overlap */
        double moe_overlap;  /* part of experts' all-to-alls that hides under another
                             micro-batch's compute (workload_exchanges_overlap) */
        double overlap_slowdown; /* what a hidden second costs compute */
        double microbatch_s;     /* per micro-batch and stage: host work, no compute */
        double step_s;           /* per step: data, clipping, logging */
        double residual;         /* standard deviation of log (measured / estimate) */
        enum workload_all_reduce all_reduce;
        bool tp_comm_overlap; /* sequence-parallel collectives and products in pieces */
        bool deduplicated_dispatch; /* a token is sent once to every node and GPU where it
                                       has experts, else once to every expert */
        bool all_reduced_gradients; /* also under ZeRO 1, and in fp32 */
        bool dp_chunks; /* each chunk of an interleaved pipeline reduces its gradients
                           after its own last backward and gathers before its first
                           forward; else all at the ends of the step */
        bool blocking_sends; /* a stage waits until what it sends has arrived */
    } time;
};

/** The job's choice, or the profile's where the job makes none. */
static inline bool workload_choose (enum workload_choice job, bool profile)
{
    return job == CHOICE_PROFILE ? profile : job == CHOICE_YES;
}

/** Is a step captured whole in a CUDA graph?
 *
 *  Experts' tokens must be counted on the GPU alone for that, which Megatron-Core's fused grouped
 *  products do in fp8 and fp4 of blocks with scales (cuda_graph_impl full_iteration, moe_paged_stash
 *  and use_transformer_engine_op_fuser).
 *  @param blocks  the GPU multiplies such blocks, and the job is in fp8 or fp4 */
bool workload_is_captured (const struct workload_profile *p,
                           const struct workload_model *m,
                           const struct workload_config *c, bool blocks);

/** Bytes of optimizer state per parameter. */
static inline double workload_optimizer_bytes (const struct workload_config *c,
                                               const struct workload_profile *p)
{
    return c->optimizer_bytes > 0 ? c->optimizer_bytes : p->memory.optimizer_bytes;
}

/** Does the framework run a micro-batch's all-to-alls beside the compute of another one?
 *
 *  Megatron's --overlap-moe-expert-parallel-comm joins a forward with the backward that
 *  follows it, layer by layer: where one follows the other on a stage by the schedule alone,
 *  so without a pipeline or with an interleaved one, and without recomputing what exchanges
 *  (Megatron-LM, arguments.py and combined_1f1b.py).  Every stage then does one forward more
 *  before its first backward, and holds that chunk's activations too. */
bool workload_exchanges_overlap (const struct workload_profile *p,
                                 const struct workload_config *c);

/** A stage's layers come in multiples of this: the chunks that hold equally many of them, or 1
 *  where chunks may be uneven.
 *
 *  They may where the profile's framework runs that and all layers are recomputed or none; and
 *  they are where the layers do not divide into the chunks, or where it takes only one layer of
 *  the last chunks of some stages (the last stage, which has the head, among them). */
int workload_layers_unit (const struct workload_model *m, const struct workload_config *c,
                          const struct workload_profile *p);

/** A 90 % interval goes from estimate / factor to estimate x factor, where errors are
 *  log-normal: exp (1.645 residual).  @param residual  of the logarithm, as in a profile */
double workload_interval (double residual);

/** Standard deviation of log (measured / estimate) of a step time where the profile was not
 *  fitted on such runs: its residual, and more with experts and on GPUs of several types. */
double workload_step_spread (const struct workload_profile *p,
                             const struct workload_model *m, bool mixed);

/** One constant of a profile, for readers, writers and fits. */
struct workload_constant {
    const char *key;    /* in the file */
    size_t offset;      /* in struct workload_profile; a double */
    double unit;        /* the file's unit in SI units */
    double least, most; /* in the file's unit */
    double absent;      /* value in the file's unit when the key is absent; NAN: needed */
    double spread; /* how far (log standard deviation) fits may expect to move it from
                            what is known; 0: never fitted */
    bool memory;   /* of the memory part, else of the time part */
};

/** All constants. @param[out] n how many */
const struct workload_constant *workload_constants (int *n);

/** Where a profile holds a constant, in SI units. */
static inline double *workload_constant_of (struct workload_profile *p,
                                            const struct workload_constant *k)
{
    return (double *) (void *) ((char *) p + k->offset);
}

/** Shipped profile number i by name, or NULL beyond the last. */
const char *workload_profile_shipped (int i);

/** The profile as a document that workload_profile_read takes.  A new reference. */
json_t *workload_profile_to_json (const struct workload_profile *p, const char *source);

/** Read a profile by the name of a shipped one, or from a file; with the facts of an earlier
 *  release where "@26.04" stands behind either. */
enum status workload_profile_read (const char *name_or_file, struct workload_profile *p,
                                   struct notes *notes, struct error *err);

/** The same from a document; file is the profile's name, and that of messages.
 *  @param release  whose facts to take; NULL: the current one's */
enum status workload_profile_from_json (json_t *doc, const char *file,
                                        const char *release, struct workload_profile *out,
                                        struct notes *notes, struct error *err);

/** Is it numbers with points or dashes between them: "26.04.01", "v0.15", "2026-04"? */
bool workload_is_release (const char *s);

/** Which of a profile's earlier releases' facts hold for a release: the first entry of `until`
 *  that the release is not after; n_until, the current facts, for later ones and for what is no
 *  release.  A patch is of what it mends: 26.04.01 is not after 26.04. */
int workload_release_of (const struct workload_profile *p, const char *release);

#define WORKLOAD_PROFILE_DEFAULT "megatron-core"

/* ---- the plan ---- */

/** Where one rank runs. */
struct workload_place {
    const char *node; /* borrowed from the plan's document or the cluster */
    int gpu;          /* index on the node */
};

struct workload_plan {
    struct workload_model model;
    struct workload_job job;
    struct workload_config config;
    char profile[256];
    char memory_model[32]; /* its formulas: "linkwise", "fujii", "korthikanti" */
    double memory_limit_pct;
    double oom_risk;       /* above 0: the limit is a chance of running out instead */
    int *layers_per_stage; /* [pp] */
    int *layers_per_chunk; /* [pp * vpp] as workload_stage_of_chunks takes it; NULL: each
                              stage's dealt as workload_chunk_layers does */
    int n_ranks;
    struct workload_place *place; /* [n_ranks] */
    json_t *doc;                  /* when read from a file; owns the names */
};

/** Read a plan file ("-" is standard input) and check that it is whole: degrees fit the
 *  model and multiply to the ranks, every rank is there once, no GPU serves two ranks.
 *
 *  @param[out] p  release with workload_plan_release
 *  @return ST_OK, ST_IO, or ST_INVALID with file, place, expected and found
 */
enum status workload_plan_read (const char *path, struct workload_plan *p,
                                struct notes *notes, struct error *err);
/** The same from a parsed document.  @param[in] doc  a reference is kept */
enum status workload_plan_from_json (json_t *doc, const char *name,
                                     struct workload_plan *p, struct notes *notes,
                                     struct error *err);
void workload_plan_release (struct workload_plan *p);

/** SHA-256 (64 hexadecimal digits and a NUL) of what the plan's estimate depends on:
 *  model, job, configuration, layers and ranks.  It tells an estimate from a stale one. */
void workload_plan_digest (const struct workload_plan *p, char hex[65]);

/** Layers of a plan's chunk, and what a stage of it holds. */
int workload_plan_chunk (const struct workload_plan *p, int stage, int chunk);
struct workload_stage workload_plan_stage (const struct workload_plan *p, int stage);

/** The plan's part of a plan file: model, job, degrees, layers, ranks.  A new reference;
 *  NULL when out of memory. */
json_t *workload_plan_to_json (const struct workload_plan *p);

#endif
