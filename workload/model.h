/* The model: its shape, as config.json says it, and what follows from the shape alone.  The reader
 * checks everything once. */
#ifndef WORKLOAD_MODEL_H
#define WORKLOAD_MODEL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

enum workload_norm {
    NORM_RMS,
    NORM_LAYER,        /* with weight and bias */
    NORM_LAYER_WEIGHT, /* without a bias (Cohere) */
    NORM_LAYER_BARE    /* with neither (OLMo) */
};

/** A transformer's shape.  Sizes are numbers of elements; 0 where a model has no such
 *  part. */
struct workload_model {
    char name[128];
    char type[32]; /* Hugging Face model_type */
    int layers;
    int hidden;          /* h */
    int heads;           /* a, query heads */
    int kv_heads;        /* k */
    int head_dim;        /* d; h/a unless the family says otherwise */
    int ffn;             /* f, width of a dense layer's MLP inside */
    int vocab;           /* as published, before padding */
    int positions;       /* learned position embeddings; 0: rotary or none */
    int spare_positions; /* learned ones that no token has (OPT) */
    int context;         /* the longest sequence that its config.json names; 0: none */
    bool gated_mlp;      /* SwiGLU, GeGLU: three matrices instead of two */
    bool tied;           /* input and output embedding are one matrix */
    bool qkv_bias;       /* biases on the query, key and value projections */
    bool out_bias;       /* on the attention's output projection */
    bool mlp_bias;       /* on the MLP's matrices */
    bool dropout;        /* trained with dropout, whose masks are kept */
    bool head_bias;      /* on the output matrix (Phi) */
    bool sinks; /* a number for each query head that its softmax adds (gpt-oss) */
    enum workload_norm norm;
    int norms;         /* of width h in a layer */
    bool qk_norm;      /* norms of width d on queries and keys */
    bool wide_qk_norm; /* the same over all heads at once (OLMo 2) */
    bool embedding_norm;
    int decoder_layers; /* encoder-decoder models: `layers` are the encoder's, and each of
                           these has attention to it besides */
    /* Mixture of experts */
    int experts;        /* routed experts of a layer */
    int top_k;          /* that a token visits */
    int expert_groups;  /* equal groups of consecutive experts; 0: one */
    int top_groups;     /* at most this many hold a token's experts; 0: any */
    int expert_ffn;     /* width of one */
    int shared_experts; /* DeepSeek: each as wide as a routed one */
    int shared_ffn;     /* width of the shared experts together */
    bool shared_gate;   /* a gate in front of the shared expert */
    bool router_bias;
    int dense_layers; /* first layers without experts */
    int expert_every; /* of the others every expert_every-th has experts; 1: all */
    /* Multi-head latent attention (DeepSeek) */
    int q_rank;                    /* 0: queries are not compressed */
    int kv_rank;                   /* 0: no latent attention */
    int rope_dim, nope_dim, v_dim; /* of a head */
};

/** Does layer `index` (from 0) have experts? */
static inline bool workload_is_expert_layer (const struct workload_model *m, int index)
{
    return m->experts > 0 && index >= m->dense_layers &&
           (index - m->dense_layers) % m->expert_every == 0;
}

/** Read a Hugging Face config.json (docs/model.md lists the families), a preset's name, or
 *  "-" for standard input.
 *
 *  A preset's name is used where no file has it; so is the name on the Hugging Face hub of
 *  a preset ("meta-llama/Llama-3-8B"), with a note.  The name of a model from a file is the
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
/** One by name, or NULL. */
const struct workload_model *workload_preset_find (const char *name);
/** The preset that a name on the hub, or a looser spelling, means: its owner, case, dashes
 *  and words as "Instruct" say nothing of the shape.  NULL: none. */
const struct workload_model *workload_preset_meant (const char *name);
/** Append the presets with the nearest names, three at most, with ", " between them. */
void workload_presets_near (const char *name, struct text *out);

/** Parameters of one layer without experts on one of tp tensor-parallel ranks.
 *
 *  docs/formulas.md, P1 and P2: shapes use heads x head_dim, a rank holds max(1, k/tp)
 *  key/value heads; norms, the biases of row-parallel layers and latent attention's
 *  down-projections are whole on every rank. */
double workload_layer_params (const struct workload_model *m, int tp);

/** The same of a layer with experts, but for the routed experts: attention, norms, router,
 *  shared experts. */
double workload_expert_layer_params (const struct workload_model *m, int tp);

/** Parameters of one routed expert, whole. */
double workload_expert_params (const struct workload_model *m);

/** Vocabulary padded for tp: to a multiple of 128 tp (Megatron's
 *  make-vocab-size-divisible-by 128). */
double workload_padded_vocab (const struct workload_model *m, int tp);

/** Parameters of the input embedding, with learned positions and its norm, on one of tp
 *  ranks. */
double workload_embedding_params (const struct workload_model *m, int tp);

/** Parameters that the stage with the head holds besides its layers, on one of tp ranks:
 *  the final norm and the output matrix; with tied embeddings that is a second copy of
 *  the input embedding's, unless `same` says that this stage has the first one too. */
double workload_head_params (const struct workload_model *m, int tp, bool same);

/** All parameters, unpadded: the published number. */
double workload_model_params (const struct workload_model *m);

/** Those that a token meets: experts count top_k times. */
double workload_active_params (const struct workload_model *m);

#endif
