/* Model families: which config.json field is which part of the shape, and what each family
 * leaves unsaid.  One table of fields serves reading and writing. */
#include "workload/workload_private.h"

#include <stddef.h>
#include <string.h>

#define LAYERS_MAX 10000
#define WIDTH_MAX (1 << 20)
#define VOCAB_MAX (1 << 24)
#define EXPERTS_MAX 65536

#define FIELD(KEY, KIND, MEMBER, MAX)                                    \
    {                                                                    \
        KEY, offsetof (struct workload_model, MEMBER), FIELD_##KIND, MAX \
    }

#define LLAMA_SHAPE                                                \
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),              \
        FIELD ("num_hidden_layers", NEEDED, layers, LAYERS_MAX),   \
        FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),   \
        FIELD ("num_key_value_heads", COUNT, kv_heads, WIDTH_MAX), \
        FIELD ("head_dim", COUNT, head_dim, WIDTH_MAX),            \
        FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),            \
        FIELD ("tie_word_embeddings", FLAG, tied, 0)
#define LLAMA_MLP FIELD ("intermediate_size", NEEDED, ffn, VOCAB_MAX)

static const struct workload_field llama[] = {LLAMA_SHAPE,
                                              LLAMA_MLP,
                                              FIELD ("attention_bias", FLAG, out_bias, 0),
                                              FIELD ("mlp_bias", FLAG, mlp_bias, 0),
                                              {0}};

static const struct workload_field qwen2[] = {LLAMA_SHAPE, LLAMA_MLP, {0}};

static const struct workload_field qwen3[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("attention_bias", FLAG, out_bias, 0), {0}};

static const struct workload_field mixtral[] = {
    LLAMA_SHAPE,
    FIELD ("intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),
    FIELD ("num_local_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX),
    {0}};

#define QWEN_EXPERTS                                                    \
    FIELD ("num_experts", NEEDED, experts, EXPERTS_MAX),                \
        FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX),      \
        FIELD ("moe_intermediate_size", NEEDED, expert_ffn, VOCAB_MAX), \
        FIELD ("decoder_sparse_step", COUNT, expert_every, LAYERS_MAX), \
        FIELD ("first_k_dense_replace", SIZE, dense_layers, LAYERS_MAX)

static const struct workload_field qwen2_moe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    QWEN_EXPERTS,
    FIELD ("shared_expert_intermediate_size", SIZE, shared_ffn, VOCAB_MAX),
    {0}};

static const struct workload_field qwen3_moe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    QWEN_EXPERTS,
    FIELD ("attention_bias", FLAG, out_bias, 0),
    {0}};

static const struct workload_field deepseek[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("q_lora_rank", SIZE, q_rank, WIDTH_MAX),
    FIELD ("kv_lora_rank", NEEDED, kv_rank, WIDTH_MAX),
    FIELD ("qk_rope_head_dim", NEEDED, rope_dim, WIDTH_MAX),
    FIELD ("qk_nope_head_dim", NEEDED, nope_dim, WIDTH_MAX),
    FIELD ("v_head_dim", NEEDED, v_dim, WIDTH_MAX),
    FIELD ("n_routed_experts", SIZE, experts, EXPERTS_MAX),
    FIELD ("n_shared_experts", SIZE, shared_experts, EXPERTS_MAX),
    FIELD ("num_experts_per_tok", SIZE, top_k, EXPERTS_MAX),
    FIELD ("n_group", SIZE, expert_groups, EXPERTS_MAX),
    FIELD ("topk_group", SIZE, top_groups, EXPERTS_MAX),
    FIELD ("moe_intermediate_size", SIZE, expert_ffn, VOCAB_MAX),
    FIELD ("first_k_dense_replace", SIZE, dense_layers, LAYERS_MAX),
    FIELD ("moe_layer_freq", COUNT, expert_every, LAYERS_MAX),
    {0}};

static const struct workload_field gpt2[] = {
    FIELD ("n_embd", NEEDED, hidden, WIDTH_MAX),
    FIELD ("n_layer", NEEDED, layers, LAYERS_MAX),
    FIELD ("n_head", NEEDED, heads, WIDTH_MAX),
    FIELD ("n_positions", NEEDED, positions, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("n_inner", SIZE, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field gpt_neox[] = {LLAMA_SHAPE, LLAMA_MLP, {0}};

static const struct workload_field bloom[] = {
    FIELD ("n_embed", OLDER, hidden, WIDTH_MAX),
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_hidden_layers", OLDER, layers, LAYERS_MAX),
    FIELD ("n_layer", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_attention_heads", OLDER, heads, WIDTH_MAX),
    FIELD ("n_head", NEEDED, heads, WIDTH_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("n_inner", SIZE, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field falcon[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("n_layer", OLDER, layers, LAYERS_MAX),
    FIELD ("num_hidden_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("n_head", OLDER, heads, WIDTH_MAX),
    FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("n_head_kv", OLDER, kv_heads, WIDTH_MAX),
    FIELD ("num_kv_heads", COUNT, kv_heads, WIDTH_MAX),
    FIELD ("num_ln_in_parallel_attn", SIZE, norms, 2),
    FIELD ("ffn_hidden_size", SIZE, ffn, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("bias", FLAG, mlp_bias, 0),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field t5[] = {
    FIELD ("d_model", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_decoder_layers", SIZE, decoder_layers, LAYERS_MAX),
    FIELD ("num_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("d_kv", NEEDED, head_dim, WIDTH_MAX),
    FIELD ("d_ff", NEEDED, ffn, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

/* ---- what the fields do not say ---- */

static enum status finish_llama (const struct workload_reading *r,
                                 struct workload_model *m)
{
    m->gated_mlp = true;
    m->qkv_bias = m->out_bias;
    if (json_has (r->at, "sliding_window") && strcmp (m->type, "mistral") == 0)
        notes_add (r->notes,
                   "%s: sliding_window: attention is counted over the whole sequence",
                   r->at->key);
    return ST_OK;
}

static enum status finish_qwen2 (const struct workload_reading *r,
                                 struct workload_model *m)
{
    (void) r;
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
            return json_fail_text (&one, err, "layers without experts must come first");
    }
    if (n > 0)
        m->dense_layers = (int) n;
    return ST_OK;
}

static enum status finish_qwen_moe (const struct workload_reading *r,
                                    struct workload_model *m)
{
    bool second = strcmp (m->type, "qwen2_moe") == 0;

    m->gated_mlp = true;
    m->qkv_bias = second || m->out_bias;
    m->qk_norm = !second;
    m->shared_gate = m->shared_ffn > 0;
    return read_mlp_only (r->at, m, r->err);
}

static enum status finish_qwen3 (const struct workload_reading *r,
                                 struct workload_model *m)
{
    m->head_dim = m->head_dim > 0 ? m->head_dim : 128; /* transformers' own */
    m->qk_norm = true;
    return finish_llama (r, m);
}

static enum status finish_mixtral (const struct workload_reading *r,
                                   struct workload_model *m)
{
    m->ffn = m->expert_ffn; /* there is no dense layer */
    return finish_llama (r, m);
}

static enum status finish_deepseek (const struct workload_reading *r,
                                    struct workload_model *m)
{
    m->gated_mlp = true;
    m->head_dim = m->nope_dim + m->rope_dim;
    m->router_bias = strcmp (m->type, "deepseek_v3") == 0;
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    if (m->experts > 0 && (m->top_k == 0 || m->expert_ffn == 0))
        return json_fail_text (r->at, r->err,
                               "n_routed_experts needs num_experts_per_tok and "
                               "moe_intermediate_size");
    if (json_has (r->at, "num_nextn_predict_layers"))
        notes_add (r->notes,
                   "%s: num_nextn_predict_layers: multi-token prediction is not counted",
                   r->at->key);
    return ST_OK;
}

static enum status finish_gpt (const struct workload_reading *r, struct workload_model *m)
{
    (void) r;
    m->qkv_bias = m->out_bias = m->mlp_bias = true;
    m->norm = NORM_LAYER;
    m->embedding_norm = strcmp (m->type, "bloom") == 0;
    m->dropout = strcmp (m->type, "gpt2") == 0;
    return ST_OK;
}

static enum status finish_falcon (const struct workload_reading *r,
                                  struct workload_model *m)
{
    struct json_at new = json_key (r->at, "new_decoder_architecture"),
                   many = json_key (r->at, "multi_query"),
                   beside = json_key (r->at, "parallel_attn");
    /* The first configurations of Falcon-40B and Falcon-7B had types of their own. */
    bool grouped = json_is_true (new.v) || strcmp (m->type, "RefinedWeb") == 0;

    if (!grouped && (!many.v || json_is_true (many.v)))
        m->kv_heads = 1;
    if (!json_has (r->at, "num_ln_in_parallel_attn"))
        m->norms = grouped || json_is_false (beside.v) ? 2 : 1;
    m->qkv_bias = m->out_bias = m->mlp_bias;
    m->norm = NORM_LAYER;
    strcpy (m->type, "falcon");
    return ST_OK;
}

static enum status finish_t5 (const struct workload_reading *r, struct workload_model *m)
{
    const char *s = "relu";

    if (json_has (r->at, "feed_forward_proj"))
        TRY (json_get_string (r->at, "feed_forward_proj", &s, r->err));
    m->gated_mlp = strncmp (s, "gated", 5) == 0;
    if (m->decoder_layers == 0)
        m->decoder_layers = m->layers;
    m->dropout = true;
    return ST_OK;
}

static enum status finish_gemma (const struct workload_reading *r,
                                 struct workload_model *m)
{
    (void) r;
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
