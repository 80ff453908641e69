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
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

/* ---- the model ---- */

enum workload_norm { NORM_RMS, NORM_LAYER };

/** A transformer's shape.  Sizes are numbers of elements. */
struct workload_model {
    char name[128];
    char type[32]; /* Hugging Face model_type */
    int layers;
    int hidden;       /* h */
    int heads;        /* a, query heads */
    int kv_heads;     /* k */
    int head_dim;     /* d; h/a unless the family says otherwise */
    int ffn;          /* f, width of the MLP's inside */
    int vocab;        /* as published, before padding */
    int positions;    /* learned position embeddings; 0: none (rotary) */
    bool gated_mlp;   /* SwiGLU: three matrices instead of two */
    bool tied;        /* input and output embedding are one matrix */
    bool qkv_bias;    /* biases on the query, key and value projections */
    bool linear_bias; /* biases on the other linear layers */
    bool dropout;     /* trained with dropout, whose masks are kept */
    enum workload_norm norm;
};

/** Read a Hugging Face config.json (llama, mistral, qwen2, gpt2), a preset's name, or
 *  "-" for standard input.
 *
 *  A preset's name is used where no file has it.  The name of a model from a file is the
 *  file's name without ".json", or its folder's when the file is called config.json.
 *
 *  @param notes  what was assumed; may be NULL
 *  @return ST_OK, ST_IO, or ST_INVALID with file, place, expected and found
 */
enum status workload_model_read (const char *arg, struct workload_model *m,
                                 struct notes *notes, struct error *err);

/** The same from a parsed document. @param name  the model's, unless the document has
 *  its own "name"; @param file  for messages */
enum status workload_model_from_json (json_t *doc, const char *file, const char *name,
                                      struct workload_model *m, struct notes *notes,
                                      struct error *err);

/** The model as a config.json that workload_model_from_json reads back.  A new
 *  reference, NULL when out of memory. */
json_t *workload_model_to_json (const struct workload_model *m);

/** The built-in presets. @param[out] n how many */
const struct workload_model *workload_presets (int *n);

/** Parameters of one transformer layer on one of tp tensor-parallel ranks.
 *
 *  FORMULAS.md P1 with CORRECTIONS.md P1: shapes use heads x head_dim, a rank holds
 *  max(1, k/tp) key/value heads; norms and the biases of row-parallel layers are whole on
 *  every rank. */
double workload_layer_params (const struct workload_model *m, int tp);

/** Vocabulary padded for tp: to a multiple of 128 tp (Megatron's
 *  make-vocab-size-divisible-by 128). */
double workload_padded_vocab (const struct workload_model *m, int tp);

/** Parameters of the input embedding, with learned positions, on one of tp ranks. */
double workload_embedding_params (const struct workload_model *m, int tp);

/** Parameters that the last of pp stages holds besides its layers, on one of tp ranks:
 *  the final norm and the output matrix; with tied embeddings that is a second copy of
 *  the input embedding's, unless pp is 1. */
double workload_head_params (const struct workload_model *m, int tp, int pp);

/** All parameters, unpadded: the published number. */
double workload_model_params (const struct workload_model *m);

/* ---- the job and the configuration ---- */

enum workload_precision { PREC_BF16, PREC_FP16, PREC_FP8, PREC_FP32 };
enum workload_attention { ATTENTION_FLASH, ATTENTION_UNFUSED };
enum workload_recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };
enum workload_schedule { SCHEDULE_1F1B, SCHEDULE_GPIPE };

const char *workload_precision_name (enum workload_precision p);
const char *workload_attention_name (enum workload_attention a);
const char *workload_schedule_name (enum workload_schedule s);
bool workload_precision_parse (const char *s, enum workload_precision *p);
bool workload_attention_parse (const char *s, enum workload_attention *a);
bool workload_schedule_parse (const char *s, enum workload_schedule *out);

/** What is trained, whatever the split. */
struct workload_job {
    int seq;          /* tokens of one sequence */
    int global_batch; /* sequences of one optimiser step */
    enum workload_precision precision;
    enum workload_attention attention;
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
    enum workload_schedule schedule;
};

/** "none", "selective", "full" or "full:K"; buf of 24 bytes. */
const char *workload_recompute_text (const struct workload_config *c, char buf[24]);
bool workload_recompute_parse (const char *s, enum workload_recompute *r, int *layers);

/** tp * cp * dp * pp. */
static inline long long workload_world (const struct workload_degrees *d)
{
    return (long long) d->tp * d->cp * d->dp * d->pp;
}

/** Micro-batches of one step: global_batch / (dp * micro_batch). */
static inline int workload_microbatches (const struct workload_job *j,
                                         const struct workload_config *c)
{
    return j->global_batch / (c->deg.dp * c->micro_batch);
}

/** Parameters that one rank of a stage holds, before any sharding over data parallelism.
 *  @param layers  of this stage */
double workload_stage_params (const struct workload_model *m,
                              const struct workload_config *c, int stage, int layers);

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

/** Rank's coordinates: rank = tp_i + tp (cp_i + cp (dp_i + dp pp_i)), Megatron's order
 *  tp-cp-ep-dp-pp; ep_i = (cp_i + cp dp_i) mod ep. */
struct workload_coords {
    int tp, cp, ep, dp, pp;
};
struct workload_coords workload_coords_of (const struct workload_degrees *d, int rank);

/** Layers spread evenly over pp stages; what remains goes to the middle ones, since the
 *  ends also hold embedding and head. @param[out] layers [pp] */
void workload_layers_even (int n_layers, int pp, int *layers);

/* ---- the framework profile ---- */

/** Constants in which training frameworks differ (a JSON file; docs/profile.md). */
struct workload_profile {
    char name[64];
    char from[256]; /* the argument it was read by: a shipped name, or a file */
    struct {
        double gradient_bytes;  /* per parameter: 4 fp32 main gradients, 2 bf16 */
        double optimizer_bytes; /* per parameter: fp32 master copy and two moments */
        double norm_bytes;      /* kept per token and h: inputs and outputs of norms */
        double gated_mlp_bytes; /* kept per token and f by a gated MLP */
        double plain_mlp_bytes; /* kept per token and f by a plain one */
        double dropout_bytes;   /* kept per token and h, when there is dropout */
        double score_bytes;     /* kept per attention score without flash attention */
        double logit_bytes;     /* held per token and vocabulary entry of the rank */
        double recompute_workspace; /* of one layer, beside it, under full recompute */
        double base_bytes;          /* driver context and libraries */
        double group_bytes;         /* per communicator group in use (TP, PP, DP, CP) */
        double fragmentation;       /* of everything but overheads */
    } memory;
    struct {
        double gemm;      /* of the GPU type's gemm_efficiency */
        double attention; /* part of the peak that flash attention reaches, forward */
        double attention_back;     /* backward */
        double memory_bandwidth;   /* part of the peak that elementwise kernels reach */
        double layer_launch_fwd_s; /* least time of one layer: the host's launches */
        double layer_launch_back_s;
        double link;         /* part of a link's bandwidth that collectives reach */
        double collective_s; /* start of one collective */
        double microbatch_s; /* per micro-batch and stage: host work, no compute */
    } time;
};

/** Read a profile by the name of a shipped one, or from a file. */
enum status workload_profile_read (const char *name_or_file, struct workload_profile *p,
                                   struct notes *notes, struct error *err);

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
    double memory_limit_pct;
    int *layers_per_stage; /* [pp] */
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
void workload_plan_release (struct workload_plan *p);

/** SHA-256 (64 hexadecimal digits and a NUL) of what the plan's estimate depends on:
 *  model, job, configuration, layers and ranks.  It tells an estimate from a stale one. */
void workload_plan_digest (const struct workload_plan *p, char hex[65]);

/** The plan's part of a plan file: model, job, degrees, layers, ranks.  A new reference;
 *  NULL when out of memory. */
json_t *workload_plan_to_json (const struct workload_plan *p);

#endif
