/* The job and the configuration: what a step is, and how it is split over ranks and stages.
 *
 * Plain data, which anyone may fill; workload_config_check says whether a configuration fits
 * model and job. */
#ifndef WORKLOAD_CONFIG_H
#define WORKLOAD_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/model.h"
#include "workload/schedule/schedule.h"

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

/** Words of files and options for these enums and the next, in their order, and a NULL. */
extern const char *const workload_precision_words[],
    *const workload_attention_words[], *const workload_all_reduce_words[],
                                           *const workload_offload_words[],
                                               *const workload_recompute_words[];

/** Which of the words is it?  @param[out] out  an enum or an int; untouched where it is none */
bool workload_word_parse (const char *const *words, const char *s, void *out);

static inline const char *workload_precision_name (enum workload_precision p)
{
    return workload_precision_words[p];
}
static inline const char *workload_attention_name (enum workload_attention a)
{
    return workload_attention_words[a];
}
static inline const char *workload_all_reduce_name (enum workload_all_reduce a)
{
    return workload_all_reduce_words[a];
}
static inline bool workload_precision_parse (const char *s, enum workload_precision *p)
{
    return workload_word_parse (workload_precision_words, s, p);
}
static inline bool workload_attention_parse (const char *s, enum workload_attention *a)
{
    return workload_word_parse (workload_attention_words, s, a);
}
/** "on" or "off". */
bool workload_choice_parse (const char *s, enum workload_choice *c);

/** What lies in the host's memory: the optimizer's state; weights and gradients besides; or the
 *  inputs of recomputed layers. */
enum workload_offload {
    OFFLOAD_NONE,
    OFFLOAD_OPTIMIZER,
    OFFLOAD_ALL,
    OFFLOAD_CHECKPOINTS,
    WORKLOAD_OFFLOADS
};
static inline const char *workload_offload_name (enum workload_offload o)
{
    return workload_offload_words[o];
}
static inline bool workload_offload_parse (const char *s, enum workload_offload *o)
{
    return workload_word_parse (workload_offload_words, s, o);
}

/** What is trained, whatever the split. */
struct workload_job {
    int seq;          /* tokens of one sequence */
    int global_batch; /* sequences of one optimiser step */
    enum workload_precision precision;
    enum workload_attention attention;
    enum workload_choice fused_norm, fused_mlp, gathered_logits, tp_comm_overlap;
    double wta_crs;    /* budget of WTA-CRS, 0 to 1; 0: not used */
    bool lora;         /* only low-rank adapters are trained */
    bool lora_dropout; /* what they multiply is dropped out before */
    /* with them, of a weight of the layers, which products cast back to 16 bits; 0: 16-bit, as
     * others */
    double frozen_bytes;
    /* Of a parameter's optimizer state, what pages of the host's memory hold, brought for a step
     * and taken back (bitsandbytes' paged optimizers); of runs files alone */
    double paged_bytes;
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
    /* Consecutive data-parallel ranks over which ZeRO shards; groups of so many hold the same
     * (hybrid sharding).  A divisor of dp; 0: all of them. */
    int shard;
    bool sequence_parallel;
    enum workload_recompute recompute;
    int recompute_layers; /* with RECOMPUTE_FULL: how many of a stage's layers; 0: all */
    /* With RECOMPUTE_SELECTIVE: bits 1 << enum workload_module; 0: what the framework's own
     * selective repeats. */
    unsigned recompute_modules;
    int optimizer_bytes; /* of optimizer state per parameter; 0: the profile's */
    enum workload_offload offload;
    enum workload_schedule schedule;
};

/** Is the optimizer's state in the host's memory, where its step is done? */
static inline bool workload_optimizer_is_away (const struct workload_config *c)
{
    return c->offload == OFFLOAD_OPTIMIZER || c->offload == OFFLOAD_ALL;
}

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
    return workload_schedule_in_flight (
        c->schedule, (struct workload_pipeline_size){c->deg.pp, c->deg.vpp, microbatches},
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

/** Is a stage's last chunk the last to get a layer more?  Where it has the head, and in a V, where
 *  the last micro-batch turns round in it. */
static inline bool workload_spares_last (enum workload_schedule schedule, int pp,
                                         int stage)
{
    return stage == pp - 1 || workload_schedule_is_v (schedule);
}

/** How many of a stage's layers chunk `chunk` of v holds: as even as can be, the last chunks having
 *  one more than the first ones, through which the first micro-batch comes down.  A last chunk that
 *  is spared gets one after all others.  Of fewer layers than chunks the last chunks have none. */
int workload_chunk_layers (int layers, int v, int chunk, bool spares_last);

/** The same of a stage that holds so many. */
static inline int workload_layers_of_chunk (const struct workload_config *c, int stage,
                                            int layers, int chunk)
{
    return workload_chunk_layers (layers, c->deg.vpp, chunk,
                                  workload_spares_last (c->schedule, c->deg.pp, stage));
}

/** So dealt, a first chunk has one part in so many of its stage's layers at least, which come in
 *  multiples of `unit` (workload_layers_unit): one of 2 v - 1 where chunks may be uneven, but in a
 *  V half or more. */
static inline int workload_first_share (enum workload_schedule schedule, int v, int unit)
{
    return unit < v && !workload_schedule_is_v (schedule) ? 2 * v - 1 : v;
}

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

/** The same from layer `first` on, its chunks one behind the other. */
struct workload_stage workload_stage_from (const struct workload_model *m,
                                           const struct workload_config *c, int stage,
                                           int first, int layers);

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

/** How many groups of ranks hold the same shards: dp / shard; 1 where all shard together, or
 *  nothing is sharded. */
static inline int workload_shard_copies (const struct workload_config *c)
{
    return c->zero > 0 && c->shard > 0 && c->shard < c->deg.dp ? c->deg.dp / c->shard : 1;
}

/** The groups of ranks that shard together, GROUP_SYNC or GROUP_EXPERT_SYNC cut into so many
 *  runs, one after the other. */
static inline struct workload_group workload_shard_group (const struct workload_config *c,
                                                          enum workload_group_kind kind)
{
    struct workload_group g = workload_group_of (&c->deg, kind);

    return (struct workload_group){g.size / workload_shard_copies (c), g.stride};
}

/** The ranks with the same shards, of dense parameters and of experts. */
static inline struct workload_group workload_copy_group (const struct workload_config *c)
{
    int copies = workload_shard_copies (c);

    return (struct workload_group){copies, c->deg.tp * c->deg.cp * c->deg.dp / copies};
}

/** Ranks over which optimizer state (and gradients, weights) of dense parameters are
 *  sharded, or that reduce gradients together: dp cp; of experts: tp cp dp / (etp ep); with
 *  hybrid sharding those of one group. */
static inline int workload_dense_shards (const struct workload_config *c)
{
    return workload_shard_group (c, GROUP_SYNC).size;
}
static inline int workload_expert_shards (const struct workload_config *c)
{
    return workload_shard_group (c, GROUP_EXPERT_SYNC).size;
}

/** Give a job without a sequence length or a global batch (0) those that the model is usually
 *  trained with (presets.c), with a note on each. */
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

/** Can context parallelism that exchanges heads give each rank as many, of queries, and of keys and
 *  values, which may be copied and are as wide (DeepSpeed, ulysses_sp.py)?  @param err  may be NULL
 */
enum status workload_heads_exchanged (const struct workload_model *m,
                                      const struct workload_degrees *d,
                                      struct error *err);

struct workload_profile;

/** Does the framework, or a fork of it, offer this to the model: its degrees, its schedule, its
 *  ZeRO stage with a pipeline and tensor parallelism, the modules that it recomputes, the bytes of
 *  its optimizer's state?  @param err  may be NULL */
enum status workload_config_offered (const struct workload_model *m,
                                     const struct workload_config *c,
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
 *  PARTITION_PARAMETERS: the list of embedding, layers and head is cut where the parameters of
 *  the fullest and the emptiest part differ least, by DeepSpeed's programme
 *  (partition_method="parameters": runtime/utils.py, partition_balanced).
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
 *  @param[out] layers  [pp]
 *  @return is it the framework's own cut?  It may leave a stage without a layer, which then has one
 *          of the fullest; and PARTITION_PARAMETERS of more than 512 layers is even */
bool workload_layers_split (const struct workload_model *m, enum workload_partition by,
                            int pp, int *layers);

/* ---- as JSON ---- */

struct json_at;

/** {"tp": ..., "pp": ...}.  A new reference. */
json_t *workload_degrees_to_json (const struct workload_degrees *d);
/** {"micro_batch": ..., "zero": ...}: what is no degree, but for the optimizer's bytes; "shard"
 *  where it is not all of dp.  A new reference. */
json_t *workload_settings_to_json (const struct workload_config *c);
/** The same members of an object; cp, ep, etp, vpp, "shard", "optimizer_bytes" and
 *  "offload" may be left out. */
enum status workload_degrees_from_json (const struct json_at *at,
                                        struct workload_degrees *d, struct error *err);
enum status workload_settings_from_json (const struct json_at *at,
                                         struct workload_config *c, struct error *err);

#endif
