/* Model families: which config.json field is which part of the shape, and what each family
 * leaves unsaid.  One table of fields serves reading and writing. */
#include "workload/workload_private.h"

#include <stddef.h>
#include <string.h>

#define LAYERS_MAX 10000
#define WIDTH_MAX (1 << 20)
#define VOCAB_MAX (1 << 24)
#define EXPERTS_MAX 65536

#define SIZE(KEY, MEMBER, MAX, NEEDED)                                     \
    {                                                                      \
        KEY, offsetof (struct workload_model, MEMBER), MAX, NEEDED, false, \
            NEEDED ? 1 : 0, false                                          \
    }
/* May be left out, but not be 0. */
#define COUNT(KEY, MEMBER, MAX)                                                    \
    {                                                                              \
        KEY, offsetof (struct workload_model, MEMBER), MAX, false, false, 1, false \
    }
/* An older name of the field that follows. */
#define OTHER(KEY, MEMBER, MAX)                                                   \
    {                                                                             \
        KEY, offsetof (struct workload_model, MEMBER), MAX, false, false, 1, true \
    }
#define FLAG(KEY, MEMBER)                                                       \
    {                                                                           \
        KEY, offsetof (struct workload_model, MEMBER), 0, false, true, 0, false \
    }
#define END                                \
    {                                      \
        NULL, 0, 0, false, false, 0, false \
    }

#define LLAMA_SHAPE                                           \
    SIZE ("hidden_size", hidden, WIDTH_MAX, true),            \
        SIZE ("num_hidden_layers", layers, LAYERS_MAX, true), \
        SIZE ("num_attention_heads", heads, WIDTH_MAX, true), \
        COUNT ("num_key_value_heads", kv_heads, WIDTH_MAX),   \
        COUNT ("head_dim", head_dim, WIDTH_MAX),              \
        SIZE ("vocab_size", vocab, VOCAB_MAX, true), FLAG ("tie_word_embeddings", tied)
#define LLAMA_MLP SIZE ("intermediate_size", ffn, VOCAB_MAX, true)

static const struct workload_field llama[] = {LLAMA_SHAPE, LLAMA_MLP,
                                              FLAG ("attention_bias", out_bias),
                                              FLAG ("mlp_bias", mlp_bias), END};

static const struct workload_field qwen2[] = {LLAMA_SHAPE, LLAMA_MLP, END};

static const struct workload_field qwen3[] = {LLAMA_SHAPE, LLAMA_MLP,
                                              FLAG ("attention_bias", out_bias), END};

static const struct workload_field mixtral[] = {
    LLAMA_SHAPE, SIZE ("intermediate_size", expert_ffn, VOCAB_MAX, true),
    SIZE ("num_local_experts", experts, EXPERTS_MAX, true),
    SIZE ("num_experts_per_tok", top_k, EXPERTS_MAX, true), END};

#define QWEN_EXPERTS                                                 \
    SIZE ("num_experts", experts, EXPERTS_MAX, true),                \
        SIZE ("num_experts_per_tok", top_k, EXPERTS_MAX, true),      \
        SIZE ("moe_intermediate_size", expert_ffn, VOCAB_MAX, true), \
        COUNT ("decoder_sparse_step", expert_every, LAYERS_MAX),     \
        SIZE ("first_k_dense_replace", dense_layers, LAYERS_MAX, false)

static const struct workload_field qwen2_moe[] = {
    LLAMA_SHAPE, LLAMA_MLP, QWEN_EXPERTS,
    SIZE ("shared_expert_intermediate_size", shared_ffn, VOCAB_MAX, false), END};

static const struct workload_field qwen3_moe[] = {LLAMA_SHAPE, LLAMA_MLP, QWEN_EXPERTS,
                                                  FLAG ("attention_bias", out_bias), END};

static const struct workload_field deepseek[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    SIZE ("q_lora_rank", q_rank, WIDTH_MAX, false),
    SIZE ("kv_lora_rank", kv_rank, WIDTH_MAX, true),
    SIZE ("qk_rope_head_dim", rope_dim, WIDTH_MAX, true),
    SIZE ("qk_nope_head_dim", nope_dim, WIDTH_MAX, true),
    SIZE ("v_head_dim", v_dim, WIDTH_MAX, true),
    SIZE ("n_routed_experts", experts, EXPERTS_MAX, false),
    SIZE ("n_shared_experts", shared_experts, EXPERTS_MAX, false),
    SIZE ("num_experts_per_tok", top_k, EXPERTS_MAX, false),
    SIZE ("n_group", expert_groups, EXPERTS_MAX, false),
    SIZE ("topk_group", top_groups, EXPERTS_MAX, false),
    SIZE ("moe_intermediate_size", expert_ffn, VOCAB_MAX, false),
    SIZE ("first_k_dense_replace", dense_layers, LAYERS_MAX, false),
    COUNT ("moe_layer_freq", expert_every, LAYERS_MAX),
    END};

static const struct workload_field gpt2[] = {
    SIZE ("n_embd", hidden, WIDTH_MAX, true),
    SIZE ("n_layer", layers, LAYERS_MAX, true),
    SIZE ("n_head", heads, WIDTH_MAX, true),
    SIZE ("n_positions", positions, VOCAB_MAX, true),
    SIZE ("vocab_size", vocab, VOCAB_MAX, true),
    SIZE ("n_inner", ffn, VOCAB_MAX, false),
    FLAG ("tie_word_embeddings", tied),
    END};

static const struct workload_field gpt_neox[] = {LLAMA_SHAPE, LLAMA_MLP, END};

static const struct workload_field bloom[] = {
    OTHER ("n_embed", hidden, WIDTH_MAX),
    SIZE ("hidden_size", hidden, WIDTH_MAX, true),
    OTHER ("num_hidden_layers", layers, LAYERS_MAX),
    SIZE ("n_layer", layers, LAYERS_MAX, true),
    OTHER ("num_attention_heads", heads, WIDTH_MAX),
    SIZE ("n_head", heads, WIDTH_MAX, true),
    SIZE ("vocab_size", vocab, VOCAB_MAX, true),
    SIZE ("n_inner", ffn, VOCAB_MAX, false),
    FLAG ("tie_word_embeddings", tied),
    END};

static const struct workload_field falcon[] = {
    SIZE ("hidden_size", hidden, WIDTH_MAX, true),
    OTHER ("n_layer", layers, LAYERS_MAX),
    SIZE ("num_hidden_layers", layers, LAYERS_MAX, true),
    OTHER ("n_head", heads, WIDTH_MAX),
    SIZE ("num_attention_heads", heads, WIDTH_MAX, true),
    OTHER ("n_head_kv", kv_heads, WIDTH_MAX),
    COUNT ("num_kv_heads", kv_heads, WIDTH_MAX),
    SIZE ("num_ln_in_parallel_attn", norms, 2, false),
    SIZE ("ffn_hidden_size", ffn, VOCAB_MAX, false),
    SIZE ("vocab_size", vocab, VOCAB_MAX, true),
    FLAG ("bias", mlp_bias),
    FLAG ("tie_word_embeddings", tied),
    END};

static const struct workload_field t5[] = {
    SIZE ("d_model", hidden, WIDTH_MAX, true),
    SIZE ("num_layers", layers, LAYERS_MAX, true),
    SIZE ("num_decoder_layers", decoder_layers, LAYERS_MAX, false),
    SIZE ("num_heads", heads, WIDTH_MAX, true),
    SIZE ("d_kv", head_dim, WIDTH_MAX, true),
    SIZE ("d_ff", ffn, VOCAB_MAX, true),
    SIZE ("vocab_size", vocab, VOCAB_MAX, true),
    FLAG ("tie_word_embeddings", tied),
    END};

/* ---- what the fields do not say ---- */

static enum status finish_llama (const struct json_at *at, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    (void) err;
    m->gated_mlp = true;
    m->qkv_bias = m->out_bias;
    if (json_has (at, "sliding_window") && strcmp (m->type, "mistral") == 0)
        notes_add (notes,
                   "%s: sliding_window: attention is counted over the whole sequence",
                   at->key);
    return ST_OK;
}

static enum status finish_qwen2 (const struct json_at *at, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    (void) at;
    (void) notes;
    (void) err;
    m->gated_mlp = m->qkv_bias = true;
    return ST_OK;
}

/* Layers listed as dense must be the first ones, or none. */
static enum status read_mlp_only (const struct json_at *at, struct workload_model *m,
                                  struct error *err)
{
    struct json_at list = json_key (at, "mlp_only_layers");
    size_t n;

    if (!json_has (at, "mlp_only_layers"))
        return ST_OK;
    TRY (json_want_array (&list, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct json_at one = json_entry (&list, i);
        long long layer;

        TRY (json_want_int (&one, 0, m->layers - 1, &layer, err));
        if (layer != (long long) i)
            return json_fail_text (&one, err,
                                   "only the first layers can be without experts");
    }
    if (n > 0)
        m->dense_layers = (int) n;
    return ST_OK;
}

static enum status finish_qwen_moe (const struct json_at *at, struct workload_model *m,
                                    struct notes *notes, struct error *err)
{
    bool second = strcmp (m->type, "qwen2_moe") == 0;

    (void) notes;
    m->gated_mlp = true;
    m->qkv_bias = second || m->out_bias;
    m->qk_norm = !second;
    m->shared_gate = m->shared_ffn > 0;
    return read_mlp_only (at, m, err);
}

static enum status finish_qwen3 (const struct json_at *at, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    m->head_dim = m->head_dim > 0 ? m->head_dim : 128; /* transformers' own */
    m->qk_norm = true;
    return finish_llama (at, m, notes, err);
}

static enum status finish_mixtral (const struct json_at *at, struct workload_model *m,
                                   struct notes *notes, struct error *err)
{
    m->ffn = m->expert_ffn; /* there is no dense layer */
    return finish_llama (at, m, notes, err);
}

static enum status finish_deepseek (const struct json_at *at, struct workload_model *m,
                                    struct notes *notes, struct error *err)
{
    m->gated_mlp = true;
    m->head_dim = m->nope_dim + m->rope_dim;
    m->router_bias = strcmp (m->type, "deepseek_v3") == 0;
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    if (m->experts > 0 && (m->top_k == 0 || m->expert_ffn == 0))
        return json_fail_text (at, err,
                               "n_routed_experts needs num_experts_per_tok and "
                               "moe_intermediate_size");
    if (json_has (at, "num_nextn_predict_layers"))
        notes_add (notes,
                   "%s: num_nextn_predict_layers: multi-token prediction is not counted",
                   at->key);
    return ST_OK;
}

static enum status finish_gpt (const struct json_at *at, struct workload_model *m,
                               struct notes *notes, struct error *err)
{
    (void) at;
    (void) notes;
    (void) err;
    m->qkv_bias = m->out_bias = m->mlp_bias = true;
    m->norm = NORM_LAYER;
    m->embedding_norm = strcmp (m->type, "bloom") == 0;
    m->dropout = strcmp (m->type, "gpt2") == 0;
    return ST_OK;
}

static enum status finish_falcon (const struct json_at *at, struct workload_model *m,
                                  struct notes *notes, struct error *err)
{
    struct json_at new = json_key (at, "new_decoder_architecture"),
                   many = json_key (at, "multi_query"),
                   beside = json_key (at, "parallel_attn");
    /* The first configurations of Falcon-40B and Falcon-7B had types of their own. */
    bool grouped = json_is_true (new.v) || strcmp (m->type, "RefinedWeb") == 0;

    (void) notes;
    (void) err;
    if (!grouped && (!many.v || json_is_true (many.v)))
        m->kv_heads = 1;
    if (!json_has (at, "num_ln_in_parallel_attn"))
        m->norms = grouped || json_is_false (beside.v) ? 2 : 1;
    m->qkv_bias = m->out_bias = m->mlp_bias;
    m->norm = NORM_LAYER;
    strcpy (m->type, "falcon");
    return ST_OK;
}

static enum status finish_t5 (const struct json_at *at, struct workload_model *m,
                              struct notes *notes, struct error *err)
{
    const char *s = "relu";

    (void) notes;
    if (json_has (at, "feed_forward_proj"))
        TRY (json_get_string (at, "feed_forward_proj", &s, err));
    m->gated_mlp = strncmp (s, "gated", 5) == 0;
    if (m->decoder_layers == 0)
        m->decoder_layers = m->layers;
    m->dropout = true;
    return ST_OK;
}

static enum status finish_gemma (const struct json_at *at, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    (void) at;
    (void) notes;
    (void) err;
    /* transformers' own, whatever the width. */
    m->head_dim = m->head_dim > 0 ? m->head_dim : 256;
    m->gated_mlp = true;
    m->norms = strcmp (m->type, "gemma") == 0 ? 2 : 4;
    m->qk_norm = strcmp (m->type, "gemma3_text") == 0;
    return ST_OK;
}

static const struct workload_family families[] = {
    {"llama", llama, false, finish_llama},
    {"mistral", llama, false, finish_llama},
    {"mixtral", mixtral, false, finish_mixtral},
    {"qwen2", qwen2, false, finish_qwen2},
    {"qwen2_moe", qwen2_moe, false, finish_qwen_moe},
    {"qwen3", qwen3, false, finish_qwen3},
    {"qwen3_moe", qwen3_moe, false, finish_qwen_moe},
    {"deepseek_v2", deepseek, false, finish_deepseek},
    {"deepseek_v3", deepseek, false, finish_deepseek},
    {"gpt2", gpt2, true, finish_gpt},
    {"gpt_neox", gpt_neox, false, finish_gpt},
    {"bloom", bloom, true, finish_gpt},
    {"falcon", falcon, true, finish_falcon},
    {"RefinedWeb", falcon, true, finish_falcon},
    {"RefinedWebModel", falcon, true, finish_falcon},
    {"t5", t5, true, finish_t5},
    {"gemma", llama, true, finish_gemma},
    {"gemma2", llama, true, finish_gemma},
    {"gemma3_text", llama, true, finish_gemma},
    {"phi3", llama, false, finish_llama},
};

#define N_FAMILIES (sizeof families / sizeof *families)

const struct workload_family *workload_family_find (const char *type)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp (families[i].type, type) == 0)
            return &families[i];
    return NULL;
}

void workload_family_list (struct text *out)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        text_add (out, "%s\"%s\"", i ? ", " : "", families[i].type);
}
