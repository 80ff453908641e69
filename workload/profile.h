/* The framework profile: what training frameworks differ in. */
#ifndef WORKLOAD_PROFILE_H
#define WORKLOAD_PROFILE_H

#include "workload/config.h"

#define WORKLOAD_SOURCES_MAX 32
#define WORKLOAD_RELEASES_MAX 4
#define WORKLOAD_FITTED_MAX 8
#define WORKLOAD_SEARCHED_MAX 8
#define WORKLOAD_PACED_MAX 24
#define WORKLOAD_GPUS_MAX 16
#define WORKLOAD_PACE_LEAST 0.1
#define WORKLOAD_PACE_MOST 10.0
#define WORKLOAD_OPTIMIZER_BYTES_MAX 63

/** The stage that a source measures: the fullest, the last or the first. */
enum workload_measured { MEASURED_MAX, MEASURED_LAST, MEASURED_FIRST };

/** What a job may be split over beside data parallelism. */
enum workload_parallel {
    PARALLEL_TP,
    PARALLEL_SP, /* the sequence, over the tensor-parallel group */
    PARALLEL_PP,
    PARALLEL_CP,
    PARALLEL_EP,
    WORKLOAD_PARALLELS
};
extern const char *const workload_parallel_names[]; /* "tp" and so on; NULL ends */

/** What selective recomputation repeats: attention (Megatron); every second product and what
 *  lies between (PyTorch's selective AC in TorchTitan); some whole layers, as many as the
 *  memory needs (fms-fsdp); attention and what lies between products (JAX's policies that save
 *  dots). */
enum workload_selective {
    SELECTIVE_ATTENTION,
    SELECTIVE_PRODUCTS,
    SELECTIVE_LAYERS,
    SELECTIVE_BETWEEN
};

/** Whose steps are captured whole in a CUDA graph, so that the host launches nothing but the graph:
 *  of nothing; of models without experts and without a pipeline; of those, and of models with
 *  experts where their exchange tells the host nothing (workload_is_captured); of everything. */
enum workload_graphs { GRAPHS_NONE, GRAPHS_DENSE, GRAPHS_BLOCKS, GRAPHS_ALL };

/** Where graphs capture what surrounds the experts of a layer, attention and router, if not the
 *  step: nowhere; on GPUs in racks that share their NVLink (topology_usual_rack); everywhere. */
enum workload_captured { CAPTURED_NOWHERE, CAPTURED_IN_RACKS, CAPTURED_EVERYWHERE };

/** What all times of a model take in a precision, over what the constants say. */
struct workload_pace {
    char model[128]; /* as workload_pace_name has it */
    enum workload_precision precision;
    double factor;
};

/** Constants in which training frameworks differ (a JSON file; docs/profile.md). */
struct workload_profile {
    char name[64];
    char from[256]; /* the argument it was read by: a shipped name, or a file */
    char origin
        [512]; /* the file's "source": where its values come from; cut where longer */
    char source[WORKLOAD_SOURCES_MAX][64]; /* of the runs that it was fitted on */
    int n_sources;
    char release[16]; /* the last one that these facts hold for; "": the current one */
    /* Of the current one: the earlier ones that its file has facts of, from the earliest. */
    char until[WORKLOAD_RELEASES_MAX][16];
    int n_until;
    char framework[WORKLOAD_SOURCES_MAX]
                  [64]; /* words of runs' frameworks that it serves */
    int n_frameworks;
    char gpu[64]; /* the GPU type whose runs it serves by default; "": none */
    char fitted_on[WORKLOAD_FITTED_MAX]
                  [64];  /* GPU types whose runs its constants of time are from, or what
                           their names begin with */
    int n_fitted_on;     /* 0: nobody says */
    bool fitted_experts; /* models with experts were among them */
    /* presets whose recipes send experts their tokens by plain all-to-alls, unless the step is
     * captured, or outside racks alone: of measured runs */
    char all_to_all[WORKLOAD_FITTED_MAX][64],
        all_to_all_outside_racks[WORKLOAD_FITTED_MAX][64];
    int n_all_to_all, n_all_to_all_outside_racks;
    struct workload_pace pace[WORKLOAD_PACED_MAX]; /* of models that it was fitted to */
    int n_paces;
    char elsewhere[64]; /* the shipped profile that serves other jobs; "": itself */
    char why[192];      /* it serves, if nobody named it; never in a file */
    bool unknown;       /* it serves a framework that it does not know; never in a file */
    char meant[64];     /* the shipped one in whose place it serves; "": itself */
    bool measured_allocated; /* its runs' memory is the allocator's, without overheads */
    enum workload_measured measured_rank; /* and of which pipeline stage */
    bool splits_sequences;                /* over tp, too, unless a run says otherwise */
    bool fused_norm, fused_mlp, gathered_logits; /* unless the job says otherwise */
    bool fused_rotary;                           /* rotary embeddings in one kernel */
    bool fused_loss;                             /* the loss and its gradient in a few */
    bool fused_accumulation; /* a micro-batch's gradients are added by the kernel that
                                makes them */
    bool separate_gate;   /* the two first projections of a gated MLP are layers apart */
    bool compute_of_type; /* matrix products, attention and launches go by the GPU type's
                             constants; `gemm` and launch times scale them */
    bool flash2;          /* flash attention is FlashAttention 2's kernel, not cuDNN's */
    enum workload_selective selective;
    /* Recomputing a layer whole ends with what its backward pass needs: an MLP's last product,
     * whose result it does not, is not repeated. */
    bool recompute_ends_early;
    enum workload_graphs graphs;
    enum workload_captured captured_parts;
    /* In fp8 and fp4 of blocks with scales, an expert's activation and its cast are part of the
     * grouped products. */
    bool fused_experts;
    /* One kernel multiplies all of a rank's experts, in any precision. */
    bool grouped_experts;
    /* Experts take no more than their share of tokens: the host need not wait for their numbers. */
    bool drops_tokens;
    /* LoRA adapters are kept and computed in fp32, operation by operation */
    bool fp32_adapters;
    /* of a 16-bit job products alone are in 16 bits: weights, states and activations stay in
     * fp32 */
    bool autocast;
    /* Context parallelism gathers keys and values, copied to all heads, under attention's first
     * piece, and sums its pieces in fp32, operation by operation. */
    bool cp_by_pieces;
    /* It exchanges parts of the sequence for heads before attention, and back behind it (Ulysses):
     * by all-to-alls that nothing hides, beside data parallelism alone. */
    bool cp_all_to_all;
    bool one_split;    /* beside replicas it has one of tp, pp, cp and ep at a time */
    bool one_sequence; /* its recipes take micro-batches of one sequence */
    /* Gradients do not outlive a step (set_to_none), so that those of the only micro-batch never
     * meet its logits. */
    bool gradients_freed;
    /* Layers are one scan (JAX): from the start of its backward pass all their gradients are there,
     * beside a sum if there are several micro-batches; what it keeps of a layer is not fused. */
    bool scanned_layers;
    bool
        bucket_copies; /* without ZeRO, buckets hold replicas' gradients once more (DDP) */
    bool without_dropout; /* a runs file's row has dropout only where it says so */
    /* With states in fp32 its mixed precision is PyTorch's autocast, unless weights are sharded. */
    bool autocast_copies;
    bool unsharded_in_fp32; /* without ZeRO bf16 gradients are summed in fp32 */
    /* What its logits took is free when the first layer is recomputed. */
    bool logits_freed;
    /* Under ZeRO 2 and 3 gradients are summed whole, and reduced after the last micro-batch (FSDP's
     * no_sync; workload_reduces_once); there, weights that adapters leave frozen have gradients,
     * too, being of one flat parameter with them. */
    bool whole_gradients, frozen_gradients;
    /* Adapters are trained on whole weights, where a run names no stage and these fit. */
    bool whole_adapters;
    /* the optimizer's step copies the gradients of its shard into one buffer */
    bool flat_step;
    bool copies_inputs; /* each column-parallel layer keeps its input for itself */
    /* Gradients are summed in the products' epilogues, in time that memory has beside them. */
    bool sums_in_products;
    bool chunked_loss;   /* only a part of the 16-bit logits is cast to fp32 at a time */
    bool repeats_kv;     /* keys and values are copied to every query head */
    bool keeps_gathered; /* inputs gathered under sequence parallelism, for backward */
    bool
        gathers_fp8; /* in fp8, what is gathered so, and weights by layer, is cast first */
    bool uneven_chunks;                /* the chunks of a stage may hold unlike numbers of
                             layers (Megatron-Core's pipeline layouts) */
    enum workload_precision precision; /* of its runs, where nothing is said */
    enum workload_attention attention; /* of its runs, where nothing is said */
    enum workload_recompute recompute; /* likewise */
    enum workload_recompute recompute_sharded; /* and under ZeRO 3 */
    int zero;                                  /* the same */
    enum workload_partition partition;         /* of layers, unless told otherwise */
    int zero_with_pipeline; /* highest ZeRO stage that it offers with a pipeline */
    int zero_with_tensor;   /* the same with tensor parallelism */
    int zero_with_experts;  /* the same with expert parallelism */
    bool zero_always;       /* 0 is among the next only where it is listed */
    /* bits 1 << stage: those that it offers; those that can shard over groups of data-parallel
     * ranks, each with all states (hybrid sharding) */
    unsigned long long zero_stages, shard_stages;
    /* such groups reduce gradients with each other once a step, not after every micro-batch that
     * is reduced inside them */
    bool copies_once;
    /* under ZeRO 2 as under 3: in every forward pass, until gradients are reduced (FSDP) */
    bool gathers_by_layer;
    /* under ZeRO 1 and 2 weights are gathered when the step is done, before anything else runs */
    bool gathers_at_step;
    /* Gradients are reduced after the last backward pass where ZeRO is off or a pipeline is run. */
    bool reduces_late;
    bool reduces_bare;    /* nothing ever hides their reduction */
    unsigned parallelism; /* bits 1 << enum workload_parallel that it has */
    /* Bits 1 << enum workload_schedule: what the framework runs, which is what a search
     * takes, and what only forks or branches of it run. */
    unsigned schedules, schedules_on_request;
    unsigned offloads;       /* bits 1 << enum workload_offload that it has */
    bool offloads_gradients; /* under ZeRO 2 and 3 they go with the optimizer's state */
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
        /* per parameter of a rank's shard: temporaries of the optimizer's step, which may be a
         * peak of its own; fp16 has 4 at least */
        double step_bytes;
        double step_cached_bytes;    /* the same, of blocks that a flat step has freed */
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
        /* Under ZeRO 3, but for one matrix each: parameters gathered at once, and gradients not
         * yet reduced; 0: by layers. */
        double live_params, reduced_params;
        double base_bytes;      /* driver context and libraries */
        double group_bytes;     /* per communicator group in use (TP, PP, DP, CP, EP) */
        double allocated_bytes; /* what the allocator holds beside tensors */
        double fragmentation;   /* of everything but the overheads */
        double residual; /* standard deviation of log (measured / estimate), of what is
                                   no weight, gradient or optimizer state */
        double states_residual; /* the same of these, where it is less */
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
        double link;           /* part of a link's bandwidth that collectives reach */
        double link_out;       /* the same between nodes, over link's */
        double job_size_power; /* of its runs' network, where they do not state it: a node
                                  has less of it in larger jobs, by this power */
        double collective_s;   /* start of one collective */
        double send_link;      /* part of a link's bandwidth that sends reach */
        /* data-parallel collectives carry at most so much each; 0: one collective carries all */
        double dp_bucket_bytes;
        /* of a gradient on its way over data parallelism, where that is not as it is kept: in
         * 16-bit jobs alone; 0: as it is */
        double reduced_bytes;
        double dp_overlap;  /* part of the last backward and the first forward under which
                                data-parallel traffic hides; of all where each has its own */
        double tp_overlap;  /* part of sequence-parallel collectives that hides under
                              matrix products, where tp_comm_overlap */
        double moe_overlap; /* part of experts' all-to-alls that hides under another
                             micro-batch's compute (workload_exchanges_overlap) */
        /* at least, of measured runs with several chunks a stage whose exchanges leave the
         * NVLink domain */
        double moe_overlap_out;
        /* where experts drop tokens: rows that each computes, filled or not, over the mean
         * number of its tokens */
        double expert_capacity;
        double overlap_slowdown; /* what a hidden second costs compute */
        double wave_s;           /* start of a wave of a product's tiles; 0: as usual */
        double microbatch_s;     /* per micro-batch and stage: host work, no compute */
        double step_s;           /* per step: data, clipping, logging */
        double
            optimizer_passes; /* over tensors as wide as a gradient; 0: in one kernel */
        double residual;      /* standard deviation of log (measured / estimate) */
        enum workload_all_reduce all_reduce;
        bool tp_comm_overlap; /* sequence-parallel collectives and products in pieces */
        bool deduplicated_dispatch; /* a token is sent once to every node and GPU where it
                                       has experts, else once to every expert */
        bool all_reduced_gradients; /* also under ZeRO 1 and 2, and in fp32 */
        bool reduced_as_kept;       /* not in fp32, but as gradients are kept */
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

/** Is each norm one kernel?  PyTorch's own LayerNorm is; its RMS norms are not. */
static inline bool workload_norms_are_fused (const struct workload_model *m,
                                             const struct workload_job *j,
                                             const struct workload_profile *p)
{
    return workload_choose (j->fused_norm, p->fused_norm || m->norm != NORM_RMS);
}

/** Are gradients all-reduced whole where shards would do?  DeepSpeed's optimizer of bf16 with fp32
 *  gradients does so under ZeRO 1, that of 16-bit gradients under 2, too (runtime/engine.py,
 *  _do_optimizer_sanity_check; zero/stage_1_and_2.py). */
static inline bool workload_all_reduces (const struct workload_config *c,
                                         const struct workload_profile *p)
{
    return p->time.all_reduced_gradients &&
           (c->zero < 2 || (c->zero == 2 && p->time.reduced_as_kept));
}

/** Is an MLP's activation GELU in separate operations? */
static inline bool workload_gelu_is_separate (const struct workload_model *m,
                                              const struct workload_job *j,
                                              const struct workload_profile *p)
{
    return m->separate_gelu && !m->gated_mlp &&
           !workload_choose (j->fused_mlp, p->fused_mlp);
}

/** Is a step captured whole in a CUDA graph?
 *
 *  Experts' tokens must be counted on the GPU alone for that, which Megatron-Core's fused grouped
 *  products do in fp8 and fp4 of blocks with scales (cuda_graph_impl full_iteration,
 *  moe_paged_stash and use_transformer_engine_op_fuser), with experts that are gated: Megatron
 *  Bridge's recipes for Nemotron 3, whose experts are not, capture parts of layers.
 *  @param blocks  the GPU multiplies such blocks, and the job is in fp8 or fp4 */
bool workload_is_captured (const struct workload_profile *p,
                           const struct workload_model *m,
                           const struct workload_config *c, bool blocks);

/** Are experts' products and their activation one kernel?  @param blocks  as above */
bool workload_fuses_experts (const struct workload_profile *p,
                             const struct workload_model *m, bool blocks);

/** The precision in which a job's weights, states and activations are kept. */
static inline enum workload_precision
workload_kept_precision (const struct workload_job *j, const struct workload_profile *p)
{
    bool plain = j->precision == PREC_BF16 || j->precision == PREC_FP16;

    return p->autocast && plain ? PREC_FP32 : j->precision;
}

/** Heads of keys and values that context parallelism sends from a rank: at least one; gathered, as
 *  many as of queries; exchanged, at least one for every rank. */
static inline double workload_context_kv_heads (const struct workload_model *m,
                                                const struct workload_config *c,
                                                const struct workload_profile *p)
{
    int heads = p->cp_by_pieces ? m->heads : m->kv_heads,
        least = p->cp_all_to_all ? c->deg.cp : 1;
    double own = heads / (double) c->deg.tp;

    return own > least ? own : least;
}

/** Is everything that is kept in fp32, gradients too? */
static inline bool workload_keeps_fp32 (const struct workload_job *j,
                                        const struct workload_profile *p)
{
    return workload_element_bytes (workload_kept_precision (j, p)) > 2.0;
}

/** Are gradients summed and reduced in the 2 bytes that fp16 keeps them in?  Only bf16 asks for
 *  sums in fp32 (Megatron-LM, arguments.py: accumulate_allreduce_grads_in_fp32).  Constants of
 *  fitted profiles stand for what their runs took. */
static inline bool workload_sums_in_half (const struct workload_job *j,
                                          const struct workload_profile *p)
{
    return p->compute_of_type && workload_kept_precision (j, p) == PREC_FP16;
}

/** Bytes of a gradient as it is summed. */
static inline double workload_gradient_bytes (const struct workload_job *j,
                                              const struct workload_config *c,
                                              const struct workload_profile *p)
{
    bool in_fp32 = p->unsharded_in_fp32 && c->zero == 0 && j->precision == PREC_BF16;

    if (in_fp32 || workload_keeps_fp32 (j, p))
        return 4.0;
    return workload_sums_in_half (j, p) ? 2.0 : p->memory.gradient_bytes;
}

/** Bytes of a gradient on its way over data parallelism.  A 16-bit job's may be in another type
 *  than they are summed in (DeepSpeed's communication_data_type, FSDP's reduce_dtype).  Beside
 *  Ulysses it is fp32 unless the profile says otherwise (DeepSpeed, runtime/constants.py,
 *  SEQ_PARALLEL_COMMUNICATION_DATA_TYPE_DEFAULT). */
static inline double workload_reduced_bytes (const struct workload_job *j,
                                             const struct workload_config *c,
                                             const struct workload_profile *p)
{
    bool in_fp32 = workload_all_reduces (c, p) && !p->time.reduced_as_kept &&
                   !workload_sums_in_half (j, p);
    bool exchanges = p->cp_all_to_all && c->deg.cp > 1;

    if (workload_keeps_fp32 (j, p))
        return 4.0;
    if (p->time.reduced_bytes > 0.0)
        return p->time.reduced_bytes;
    if (in_fp32 || exchanges)
        return 4.0;
    return workload_sums_in_half (j, p) ? 2.0 : p->memory.gradient_bytes;
}

/** Bytes of optimizer state per parameter. */
static inline double workload_optimizer_bytes (const struct workload_config *c,
                                               const struct workload_profile *p)
{
    return c->optimizer_bytes > 0 ? c->optimizer_bytes : p->memory.optimizer_bytes;
}

/** Rows that an expert computes and is sent, over the mean number of its tokens: with a capacity it
 *  is padded to it (Megatron-Core, get_capacity: experts' share of tokens times the factor). */
double workload_expert_capacity (const struct workload_profile *p);

/** Does the framework run a micro-batch's all-to-alls beside the compute of another one?
 *
 *  Megatron's --overlap-moe-expert-parallel-comm joins a forward with the backward that
 *  follows it, layer by layer: where one follows the other on a stage by the schedule alone,
 *  so without a pipeline or with an interleaved one, and without recomputing what exchanges
 *  (Megatron-LM, arguments.py and combined_1f1b.py).  Every stage then does one forward more
 *  before its first backward, and holds that chunk's activations too.  A schedule may be made
 *  for it (workload_schedule_rules.joined). */
bool workload_exchanges_overlap (const struct workload_profile *p,
                                 const struct workload_config *c);

/** The highest ZeRO stage that the framework offers with such degrees. */
static inline int workload_zero_most (const struct workload_profile *p,
                                      const struct workload_degrees *d)
{
    int most = d->pp > 1 ? p->zero_with_pipeline : 3;

    if (d->tp > 1 && p->zero_with_tensor < most)
        most = p->zero_with_tensor;
    return d->ep > 1 && p->zero_with_experts < most ? p->zero_with_experts : most;
}

/** Do products read 16-bit copies that autocast makes of fp32 weights and inputs (A27, T29)? */
bool workload_autocasts (const struct workload_job *j, const struct workload_config *c,
                         const struct workload_profile *p);

/** Are weights gathered layer by layer? */
static inline bool workload_gathers_by_layer (const struct workload_config *c,
                                              const struct workload_profile *p)
{
    return c->zero == 3 || (c->zero == 2 && p->gathers_by_layer);
}

/** Are gradients under ZeRO 2 and 3 summed whole, and reduced after the last micro-batch?
 *
 *  Those of several by frameworks that run FSDP so (whole_gradients).  Beside a pipeline even those
 *  of the only one, since stages reduce when a whole backward pass is done, and also keep what ZeRO
 *  3 gathered from their first forward to their last backward (PyTorch, pipelining/stage.py,
 *  backward_maybe_with_nosync; torchtitan, distributed/fsdp.py). */
bool workload_reduces_once (const struct workload_profile *p,
                            const struct workload_config *c, int microbatches);

/** A stage's layers come in multiples of this: the chunks, which hold equally many of them, or 1
 *  where chunks may be uneven, as they may where the profile's framework runs that and all layers
 *  are recomputed or none. */
int workload_layers_unit (const struct workload_config *c,
                          const struct workload_profile *p);

/** Of a normal distribution 90 % are within so many standard deviations. */
#define WORKLOAD_INTERVAL 1.645

/** A 90 % interval goes from estimate / factor to estimate x factor, where errors are
 *  log-normal: exp (1.645 residual).  @param residual  of the logarithm, as in a profile */
double workload_interval (double residual);

/** The residual that has this interval. */
double workload_residual (double interval);

/** Are the profile's constants of time from runs of such a model on such a GPU type?  Of a fitted
 *  profile that does not say they are, of a composed one they are not. */
bool workload_is_fitted (const struct workload_profile *p, const struct workload_model *m,
                         const char *gpu);

/** Standard deviation of log (measured / estimate) of a step time: the profile's residual; where it
 *  was not fitted on such runs that of composed profiles at least, and more with experts and on
 *  GPUs of several types. */
double workload_step_spread (const struct workload_profile *p,
                             const struct workload_model *m, bool fitted, bool mixed);

/** One constant of a profile, for readers, writers and fits. */
struct workload_constant {
    const char *key;    /* in the file */
    size_t offset;      /* in struct workload_profile; a double */
    bool memory;        /* of the memory part, else of the time part */
    double unit;        /* the file's unit in SI units */
    double least, most; /* in the file's unit */
    double absent;      /* value in the file's unit when the key is absent; NAN: needed */
    double spread; /* how far (log standard deviation) fits may expect to move it from
                            what is known; 0: never fitted */
};

/** All constants. @param[out] n how many */
const struct workload_constant *workload_constants (int *n);

/** Where a profile holds a constant, in SI units. */
static inline double *workload_constant_of (struct workload_profile *p,
                                            const struct workload_constant *k)
{
    return (double *) (void *) ((char *) p + k->offset);
}

/** Multiply a constant, within its limits. */
void workload_constant_times (struct workload_profile *p,
                              const struct workload_constant *k, double factor);

/** Make a constant what it is where all times take `factor` times as long: rates and times alone
 *  change. */
void workload_constant_pace (struct workload_profile *p,
                             const struct workload_constant *k, double factor);

/** What a pace calls a model: by the preset that the name means in any spelling, else by itself. */
const char *workload_pace_name (const char *model);

/** The profile's pace of a model in a precision, by its name in any spelling.  @return NULL: it has
 *  none */
struct workload_pace *workload_pace_of (struct workload_profile *p, const char *model,
                                        enum workload_precision precision);

/** A job's model under the profile: what all its times take more or less than the constants say
 *  goes into them, and no pace is left. */
void workload_profile_pace (struct workload_profile *p, const struct workload_model *m,
                            enum workload_precision precision);

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

/** GPU types by name, of which a job may use all. */
struct workload_gpus {
    const char *name[WORKLOAD_GPUS_MAX]; /* further ones are left out */
    int n;
};
void workload_gpus_add (struct workload_gpus *all, const char *name); /* once each */

/** What none of the runs that p was fitted on had, so that a shipped profile that p has for such
 *  jobs serves in its place: the first of the GPU types, or "models with experts"; NULL: p serves,
 *  as a file, or a release, does everywhere. */
const char *workload_profile_strange (const struct workload_profile *p,
                                      const struct workload_model *m,
                                      const struct workload_gpus *on);
/** The name of the shipped profile that serves the model on all of the types where p is meant: its
 *  own where it was fitted on such runs, else what it has for others. */
const char *workload_profile_serving (const struct workload_profile *p,
                                      const struct workload_model *m,
                                      const struct workload_gpus *on);

/** A profile that was read, or what serves in the place of a shipped one for the job's model and
 *  GPU types; of one that serves so already, for others. */
enum status workload_profile_on (const struct workload_profile *named,
                                 const struct workload_model *m,
                                 const struct workload_gpus *on,
                                 struct workload_profile *out, struct notes *notes,
                                 struct error *err);

/** Let a job's profile, with its model's pace, be the one that serves on these types. */
enum status workload_profile_serve (struct workload_profile *p,
                                    const struct workload_gpus *on,
                                    const struct workload_model *m,
                                    enum workload_precision precision, struct error *err);

/** The same as workload_profile_on of the name or file that an option or a plan has. */
enum status workload_profile_for (const char *arg, const struct workload_model *m,
                                  const struct workload_gpus *on,
                                  struct workload_profile *out, struct notes *notes,
                                  struct error *err);

/** The same of a job for which none is named.  It says why. */
enum status workload_profile_default (const struct workload_model *m,
                                      const struct workload_gpus *on,
                                      struct workload_profile *out, struct error *err);

#endif
