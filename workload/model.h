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

/** A layer's mixer beside or instead of attention, whose time grows with the sequence's length
 *  and not with its square. */
enum workload_linear {
    LINEAR_NONE,
    LINEAR_SSM,       /* state space: Mamba-2 (arXiv 2405.21060) */
    LINEAR_DELTA,     /* gated delta net (arXiv 2412.06464) */
    LINEAR_LIGHTNING, /* lightning attention (arXiv 2401.04658) */
    LINEAR_CONV       /* gated short convolution (LFM2) */
};

/** What a layer is made of. */
enum workload_part {
    PART_ATTENTION = 1,
    PART_LINEAR = 2,
    PART_MLP = 4,
    PART_EXPERTS = 8 /* instead of the MLP */
};

#define WORKLOAD_KINDS 4         /* of layers in one model */
#define WORKLOAD_PATTERN_MAX 256 /* layers of a model of several kinds */

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
    bool separate_gelu; /* GELU's tanh approximation, operation by operation (gelu_new) */
    bool dropout;       /* trained with dropout, whose masks are kept */
    bool head_bias;     /* on the output matrix (Phi) */
    bool sinks;         /* a number for each query head that its softmax adds (gpt-oss) */
    enum workload_norm norm;
    int norms;       /* of width h in a layer */
    int layer_extra; /* few parameters of a layer that are none of these, whole on every rank */
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
    /* Multi-token prediction: modules behind the last layer, each a layer like it, a projection
       of 2 h to h, three norms and another pass of the head (Megatron-Core,
       multi_token_prediction.py).  They are counted with the head. */
    int mtp_layers;
    /* Multi-head latent attention (DeepSeek) */
    int q_rank;                    /* 0: queries are not compressed */
    int kv_rank;                   /* 0: no latent attention */
    int rope_dim, nope_dim, v_dim; /* of a head */
    /* Attention to a part of the sequence */
    int window;         /* tokens that it reaches back, or of a chunk; 0: all */
    int window_layers;  /* how many layers have it; the others see all */
    bool window_chunks; /* a token sees those of its own chunk, not the last ones */
    /* Layers of other kinds (docs/model.md, "Layers of several kinds") */
    char pattern[WORKLOAD_PATTERN_MAX +
                 1];                /* a letter a layer; "": all have attention, and
                                               dense_layers, expert_every say the rest */
    char kinds[WORKLOAD_KINDS + 1]; /* its letters, as they come first */
    enum workload_linear linear;    /* of all layers that have such a mixer */
    int lin_heads, lin_width;       /* heads of values (x), and the width of one */
    int lin_groups, lin_state;      /* heads of keys (groups of B and C), their width */
    int lin_conv, lin_chunk;        /* taps of the convolution; tokens of a chunk */
    bool lin_conv_bias;             /* on the convolution */
    bool lin_bias;                  /* on the projections */
    bool lin_norm;                  /* Mamba-2: a gated norm before the output */
    bool attention_gate;            /* attention's output times a gate as wide */
};

/** The parts of a layer by its letter in a pattern, bits of enum workload_part: '*' attention
 *  alone, 'M' the linear mixer alone, '-' an MLP alone, 'E' experts alone (these as in
 *  Nemotron-H); 'a' attention and 'l' the mixer, each with an MLP; 'A' and 'L' the same with
 *  experts; 'p' both beside each other, and an MLP.  0: no such letter. */
static inline unsigned workload_letter_parts (char letter)
{
    static const unsigned char parts[256] = {['*'] = PART_ATTENTION,
                                             ['M'] = PART_LINEAR,
                                             ['-'] = PART_MLP,
                                             ['E'] = PART_EXPERTS,
                                             ['a'] = PART_ATTENTION | PART_MLP,
                                             ['l'] = PART_LINEAR | PART_MLP,
                                             ['A'] = PART_ATTENTION | PART_EXPERTS,
                                             ['L'] = PART_LINEAR | PART_EXPERTS,
                                             ['p'] =
                                                 PART_ATTENTION | PART_LINEAR | PART_MLP};

    return parts[(unsigned char) letter];
}

/** The parts of kind `kind` of a model with a pattern. */
static inline unsigned workload_kind_parts (const struct workload_model *m, int kind)
{
    return workload_letter_parts (m->kinds[kind]);
}

/** Products that make queries, keys and values in transformers' model of this type: one or three.
 */
int workload_qkv_products (const struct workload_model *m);

/** Has any layer one of these parts? */
bool workload_has_parts (const struct workload_model *m, unsigned parts);

/** The mixer and what follows it each have a norm and an addition of their own: 1 or 2. */
static inline int workload_sublayers (unsigned parts)
{
    return ((parts & (PART_ATTENTION | PART_LINEAR)) != 0) +
           ((parts & (PART_MLP | PART_EXPERTS)) != 0);
}

/** Norms of width h in a layer of these parts. */
static inline int workload_norms_of (const struct workload_model *m, unsigned parts)
{
    return workload_sublayers (parts) > 1 ? m->norms : (m->norms + 1) / 2;
}

/** Widths of the linear mixer on one of t tensor-parallel ranks, elements per token. */
struct workload_mixer {
    double heads;
    double inner;  /* values, and the output projection's input */
    double keys;   /* keys, and queries (B and C) */
    double in;     /* columns of the input projections together */
    double conv;   /* channels of the convolution */
    double states; /* of a head's state, over all heads: written once a chunk */
};
struct workload_mixer workload_mixer_of (const struct workload_model *m, double t);

/** FLOP per token of the chunkwise scan on one of t ranks, forward, and those of it that backward
 *  repeats since what they gave is not kept (docs/formulas.md, T22). */
void workload_scan_flop (const struct workload_model *m, double t, double *fwd,
                         double *again);

/** The same of the recurrent form, which model FLOPs count: no more than that is needed. */
double workload_recurrence_flop (const struct workload_model *m);

/** Of the pairs of causal attention over all of a sequence, those that a layer with the model's
 *  window has: 2 x - x^2 with x = (window + more) / seq, at most 1; of chunks x.
 *  @param more  tokens beyond the window that a kernel looks at, too */
double workload_window_pairs (const struct workload_model *m, double seq, double more);

/** The part of the layers that have a window. */
static inline double workload_windowed (const struct workload_model *m)
{
    return m->window > 0 ? m->window_layers / (double) m->layers : 0.0;
}

/** Does layer `index` (from 0) have experts? */
static inline bool workload_is_expert_layer (const struct workload_model *m, int index)
{
    if (m->pattern[0])
        return workload_letter_parts (m->pattern[index]) & PART_EXPERTS;
    return m->experts > 0 && index >= m->dense_layers &&
           (index - m->dense_layers) % m->expert_every == 0;
}

/** The parts of a multi-token prediction module's layer. */
static inline unsigned workload_mtp_parts (const struct workload_model *m)
{
    return PART_ATTENTION |
           (workload_is_expert_layer (m, m->layers - 1) ? PART_EXPERTS : PART_MLP);
}

/** How many such layers with experts the stage with the head has besides its own. */
static inline int workload_mtp_experts (const struct workload_model *m, bool head)
{
    return head && m->mtp_layers > 0 && workload_mtp_parts (m) & PART_EXPERTS
               ? m->mtp_layers
               : 0;
}

#define WORKLOAD_MTP_MOST 64

/** Add so many modules of multi-token prediction to a model, 0 to WORKLOAD_MTP_MOST.
 *  @return false: its layers are of several kinds, or those of a decoder */
bool workload_model_predict (struct workload_model *m, int mtp_layers);

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
/** The parameters that a name says ("my-7b"); 0: none, or of experts or more than a language model.
 */
double workload_name_params (const char *name);
/** Does the name say that the model has experts: "21b-a3b", "8x7b", "GPT-MoE", "16-expert"? */
bool workload_name_has_experts (const char *name);
/** Append the presets with the nearest names, or names that begin with it, three at most, with
 *  ", " between them. */
void workload_presets_near (const char *name, struct text *out);

/** Parameters of a layer of these parts on one of tp tensor-parallel ranks, but for routed
 *  experts. */
double workload_parts_params (const struct workload_model *m, unsigned parts, int tp);

/** Parameters of one layer without experts on one of tp tensor-parallel ranks; where layers
 *  are of several kinds, of the one with fewest.
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
