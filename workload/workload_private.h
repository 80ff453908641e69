/* Shared by the files of workload/ alone. */
#ifndef WORKLOAD_WORKLOAD_PRIVATE_H
#define WORKLOAD_WORKLOAD_PRIVATE_H

#include <stddef.h>

#include "base/json.h"
#include "workload/workload.h"

/** A field of config.json and the part of struct workload_model that it is. */
struct workload_field {
    const char *key; /* NULL ends a table */
    size_t offset;
    enum {
        FIELD_NEEDED, /* an int from 1 that must be there */
        FIELD_SIZE,   /* an int from 0 that may be left out */
        FIELD_COUNT,  /* the same from 1 */
        FIELD_OLDER,  /* the same, an older name of the field of the same member that
                         follows in the table; read, but never written */
        FIELD_AUTO, /* as FIELD_COUNT, or the word "auto" or a list, which `finish` reads */
        FIELD_FLAG /* a bool */
    } kind;
    int max;
    const char *in; /* the member that it is in; NULL: of the document itself */
};

#define LAYERS_MAX 10000
#define WIDTH_MAX (1 << 20)
#define VOCAB_MAX (1 << 24)
#define SHARED_MAX 64 /* times VOCAB_MAX is a number */
#define EXPERTS_MAX 65536

/* The most that each member of a model may be; flags have none. */
enum {
    MOST_layers = LAYERS_MAX,
    MOST_decoder_layers = LAYERS_MAX,
    MOST_dense_layers = LAYERS_MAX,
    MOST_expert_every = LAYERS_MAX,
    MOST_hidden = WIDTH_MAX,
    MOST_heads = WIDTH_MAX,
    MOST_kv_heads = WIDTH_MAX,
    MOST_head_dim = WIDTH_MAX,
    MOST_q_rank = WIDTH_MAX,
    MOST_kv_rank = WIDTH_MAX,
    MOST_rope_dim = WIDTH_MAX,
    MOST_nope_dim = WIDTH_MAX,
    MOST_v_dim = WIDTH_MAX,
    MOST_lin_heads = WIDTH_MAX,
    MOST_lin_width = WIDTH_MAX,
    MOST_lin_groups = WIDTH_MAX,
    MOST_lin_state = WIDTH_MAX,
    MOST_lin_conv = WIDTH_MAX,
    MOST_lin_chunk = WIDTH_MAX,
    MOST_vocab = VOCAB_MAX,
    MOST_positions = VOCAB_MAX,
    MOST_ffn = VOCAB_MAX,
    MOST_expert_ffn = VOCAB_MAX,
    MOST_shared_ffn = VOCAB_MAX,
    MOST_shared_experts = SHARED_MAX,
    MOST_experts = EXPERTS_MAX,
    MOST_top_k = EXPERTS_MAX,
    MOST_expert_groups = EXPERTS_MAX,
    MOST_top_groups = EXPERTS_MAX,
    MOST_norms = 2
};

#define FIELD(IN, KEY, KIND, MEMBER, MOST)                                    \
    {                                                                         \
        KEY, offsetof (struct workload_model, MEMBER), FIELD_##KIND, MOST, IN \
    }
#define NEEDED(KEY, MEMBER) FIELD (NULL, KEY, NEEDED, MEMBER, MOST_##MEMBER)
#define SIZE(KEY, MEMBER) FIELD (NULL, KEY, SIZE, MEMBER, MOST_##MEMBER)
#define COUNT(KEY, MEMBER) FIELD (NULL, KEY, COUNT, MEMBER, MOST_##MEMBER)
#define COUNT_IN(IN, KEY, MEMBER) FIELD (IN, KEY, COUNT, MEMBER, MOST_##MEMBER)
#define OLDER(KEY, MEMBER) FIELD (NULL, KEY, OLDER, MEMBER, MOST_##MEMBER)
#define AUTO(KEY, MEMBER) FIELD (NULL, KEY, AUTO, MEMBER, MOST_##MEMBER)
#define FLAG(KEY, MEMBER) FIELD (NULL, KEY, FLAG, MEMBER, 0)
/* One flag for the biases of queries, keys, values and the output projection; of all products. */
#define ATTENTION_BIAS(KEY) FLAG (KEY, qkv_bias), FLAG (KEY, out_bias)
#define ALL_BIASES(KEY) ATTENTION_BIAS (KEY), FLAG (KEY, mlp_bias)
/* A table of them. */
#define FIELDS(...)                                    \
    {                                                  \
        __VA_ARGS__, FIELD (NULL, NULL, FLAG, tied, 0) \
    }

#define LLAMA_SHAPE                                                                     \
    NEEDED ("hidden_size", hidden), NEEDED ("num_hidden_layers", layers),               \
        NEEDED ("num_attention_heads", heads), COUNT ("num_key_value_heads", kv_heads), \
        COUNT ("head_dim", head_dim), NEEDED ("vocab_size", vocab),                     \
        FLAG ("tie_word_embeddings", tied)
#define LLAMA_MLP NEEDED ("intermediate_size", ffn)
/* Experts of every layer, as wide as the MLP that they stand for. */
#define MIXTRAL_WIDTH \
    NEEDED ("intermediate_size", ffn), NEEDED ("intermediate_size", expert_ffn)
#define MIXTRAL_EXPERTS                                   \
    MIXTRAL_WIDTH, NEEDED ("num_local_experts", experts), \
        NEEDED ("num_experts_per_tok", top_k)

/* Experts that have a width of their own, as most files name them. */
#define OWN_EXPERTS                                                         \
    NEEDED ("num_experts", experts), NEEDED ("num_experts_per_tok", top_k), \
        NEEDED ("moe_intermediate_size", expert_ffn)
/* Granite's later ones: an MLP that is the shared expert, where there are others. */
#define GRANITE_MLP                                                                   \
    NEEDED ("shared_intermediate_size", ffn), SIZE ("intermediate_size", expert_ffn), \
        SIZE ("num_local_experts", experts), SIZE ("num_experts_per_tok", top_k),     \
        ATTENTION_BIAS ("attention_bias")

/* Members of a family's base. */
#define GATED .gated_mlp = true
#define BIASED .qkv_bias = true, .out_bias = true, .mlp_bias = true
#define LAYER_NORM .norm = NORM_LAYER

/** A model while it is read. */
struct workload_reading {
    const struct json_at *at;
    struct notes *notes;
    struct error *err;
};

/** A reason with the place of a document where something is so; like TRY it may leave the
 * function. */
#define REFUSE_AT(PLACE, ERR, IF, ...)                       \
    do {                                                     \
        if (IF)                                              \
            return json_fail_text (PLACE, ERR, __VA_ARGS__); \
    } while (0)

/** A member that is a word of an enum, by its parser; like TRY it may leave the function. */
#define TRY_WORD(AT, KEY, PARSE, OUT, EXPECTED, ERR)      \
    do {                                                  \
        struct json_at at_ = json_key (AT, KEY);          \
        const char *word_;                                \
                                                          \
        TRY (json_want_string (&at_, &word_, ERR));       \
        if (!PARSE (word_, OUT))                          \
            return json_fail (&at_, ERR, "%s", EXPECTED); \
    } while (0)
#define WORDS_PRECISION "bf16, fp16, fp8, fp4, fp32 or tf32"

/** A model family. */
struct workload_family {
    const char *types; /* model_type; several with a blank between them */
    const struct workload_field *fields;
    struct workload_model base; /* what stands where the file has nothing */
    /** What the fields do not say; may be NULL. */
    enum status (*finish) (const struct workload_reading *r, struct workload_model *m);
};

#define FAMILY(TYPES, FIELDS, FINISH, ...)   \
    {                                        \
        TYPES, FIELDS, {__VA_ARGS__}, FINISH \
    }

/** The family of a model_type, or NULL. */
const struct workload_family *workload_family_find (const char *type);
/** The family that has a type of this class of transformers, as Qwen3MoeForCausalLM, or NULL.
 *  @param[out] type  which ends at a blank or at the end of the text */
const struct workload_family *workload_family_of_class (const char *name,
                                                        const char **type);
/** The tables beside that of family.c, which end with NULL: those whose fields have names of
 *  their own, and those whose layers are of several kinds. */
extern const struct workload_family workload_families_gpt[], workload_families_hybrid[];
/** The family of which an unknown model_type has the fields, with a note.  Where none is so, or
 *  something in the file says that its layers are others, ST_INVALID.
 *  @param[in,out] type  NULL: there is none; one that the family has, which may end at a blank */
enum status workload_family_guess (const struct workload_reading *r, const char **type,
                                   const struct workload_family **family);
/** The type as which one is read for what one field says of it, or `type` itself. */
const char *workload_family_variant (const struct json_at *at, const char *type);
/** ST_INVALID names what the file has and a known family has not, as experts. */
enum status workload_family_fits (const struct workload_reading *r,
                                  const struct workload_family *family);
/** What transformers has where the part of a multimodal model leaves sizes out, with a note; a
 *  type that is not known leaves the model as it is.
 *  @param[in,out] m  with its type */
void workload_family_usual (const struct workload_reading *r,
                            const struct workload_family *family,
                            struct workload_model *m);
/** Are all layers attention, by what the file lists?  ST_INVALID names the first other. */
enum status workload_family_layers (const struct workload_reading *r);

/** What config.json says of sliding windows and chunks, else what the family has; none in models
 *  of several kinds of layers.  @param[in,out] m  its family and sizes are read */
enum status workload_window_read (const struct workload_reading *r,
                                  struct workload_model *m);
/** Put it into a document from which the same is read. */
void workload_window_write (const struct workload_model *m, json_t *doc);

/** A profile's own facts, those of its current release. */
enum status workload_profile_from_current (json_t *doc, const char *file,
                                           struct workload_profile *out,
                                           struct notes *notes, struct error *err);

/** The shipped profiles as JSON, by their names in workload/profiles/. */
extern const struct text_shipped workload_shipped_profiles[];

#endif
