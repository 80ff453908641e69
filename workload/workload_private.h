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
        FIELD_AUTO,   /* as FIELD_COUNT, or the word "auto" */
        FIELD_FLAG    /* a bool */
    } kind;
    int max;
    const char *in; /* the member that it is in; NULL: of the document itself */
};

#define LAYERS_MAX 10000
#define WIDTH_MAX (1 << 20)
#define VOCAB_MAX (1 << 24)
#define SHARED_MAX 64 /* times VOCAB_MAX is a number */
#define EXPERTS_MAX 65536

#define FIELD_IN(IN, KEY, KIND, MEMBER, MAX)                                 \
    {                                                                        \
        KEY, offsetof (struct workload_model, MEMBER), FIELD_##KIND, MAX, IN \
    }
#define FIELD(KEY, KIND, MEMBER, MAX) FIELD_IN (NULL, KEY, KIND, MEMBER, MAX)

#define LLAMA_SHAPE                                                \
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),              \
        FIELD ("num_hidden_layers", NEEDED, layers, LAYERS_MAX),   \
        FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),   \
        FIELD ("num_key_value_heads", COUNT, kv_heads, WIDTH_MAX), \
        FIELD ("head_dim", COUNT, head_dim, WIDTH_MAX),            \
        FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),            \
        FIELD ("tie_word_embeddings", FLAG, tied, 0)
#define LLAMA_MLP FIELD ("intermediate_size", NEEDED, ffn, VOCAB_MAX)
/* Every layer has experts, as wide as the MLP that they stand for. */
#define MIXTRAL_EXPERTS                                            \
    FIELD ("intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),    \
        FIELD ("num_local_experts", NEEDED, experts, EXPERTS_MAX), \
        FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX)

/* Experts that have a width of their own, as most files name them. */
#define OWN_EXPERTS                                                \
    FIELD ("num_experts", NEEDED, experts, EXPERTS_MAX),           \
        FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX), \
        FIELD ("moe_intermediate_size", NEEDED, expert_ffn, VOCAB_MAX)
/* Granite's later ones: an MLP that is the shared expert, where there are others. */
#define GRANITE_MLP                                               \
    FIELD ("shared_intermediate_size", NEEDED, ffn, VOCAB_MAX),   \
        FIELD ("intermediate_size", SIZE, expert_ffn, VOCAB_MAX), \
        FIELD ("num_local_experts", SIZE, experts, EXPERTS_MAX),  \
        FIELD ("num_experts_per_tok", SIZE, top_k, EXPERTS_MAX),  \
        FIELD ("attention_bias", FLAG, out_bias, 0)

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

/** A model family. */
struct workload_family {
    const char *type; /* model_type */
    const struct workload_field *fields;
    struct workload_model base; /* what stands where the file has nothing */
    /** What the fields do not say; may be NULL. */
    enum status (*finish) (const struct workload_reading *r, struct workload_model *m);
};

/** The family of a model_type, or NULL. */
const struct workload_family *workload_family_find (const char *type);
/** The same of those whose fields have names of their own (family_gpt.c) and of the next ones. */
const struct workload_family *workload_family_find_gpt (const char *type);
/** The same of those whose layers are of several kinds (family_hybrid.c). */
const struct workload_family *workload_family_find_hybrid (const char *type);
/** The family of which an unknown model_type (NULL: there is none) has the fields, with a note.  Where none is so,
 *  or something in the file says that its layers are others, ST_INVALID. */
enum status workload_family_guess (const struct workload_reading *r, const char *type,
                                   const struct workload_family **family);
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
