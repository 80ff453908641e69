/* GPT-2's kin and other families whose config.json does not have Llama's names for its fields.
 * Some of MosaicML's (MPT, DBRX) stand in objects of their own. */
#include "workload/workload_private.h"

#include <string.h>

static const struct workload_field gpt2[] = {
    FIELD ("n_embd", NEEDED, hidden, WIDTH_MAX),
    FIELD ("n_layer", NEEDED, layers, LAYERS_MAX),
    FIELD ("n_head", NEEDED, heads, WIDTH_MAX),
    FIELD ("n_positions", NEEDED, positions, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("n_inner", SIZE, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field gpt_neo[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("max_position_embeddings", NEEDED, positions, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("intermediate_size", SIZE, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field gptj[] = {
    FIELD ("n_embd", NEEDED, hidden, WIDTH_MAX),
    FIELD ("n_layer", NEEDED, layers, LAYERS_MAX),
    FIELD ("n_head", NEEDED, heads, WIDTH_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("n_inner", SIZE, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field opt[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_hidden_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("max_position_embeddings", NEEDED, positions, VOCAB_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("ffn_dim", NEEDED, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

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

#define MOSAIC_SHAPE                                                        \
    FIELD ("d_model", NEEDED, hidden, WIDTH_MAX),                           \
        FIELD ("n_layers", NEEDED, layers, LAYERS_MAX),                     \
        FIELD ("n_heads", NEEDED, heads, WIDTH_MAX),                        \
        FIELD_IN ("attn_config", "kv_n_heads", COUNT, kv_heads, WIDTH_MAX), \
        FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),                     \
        FIELD ("tie_word_embeddings", FLAG, tied, 0)

static const struct workload_field mpt[] = {
    MOSAIC_SHAPE,
    FIELD_IN ("ffn_config", "ffn_hidden_size", COUNT, ffn, VOCAB_MAX),
    FIELD ("max_seq_len", COUNT, positions, VOCAB_MAX),
    FIELD ("use_bias", FLAG, mlp_bias, 0),
    {0}};

static const struct workload_field dbrx[] = {
    MOSAIC_SHAPE,
    FIELD_IN ("ffn_config", "ffn_hidden_size", COUNT, expert_ffn, VOCAB_MAX),
    FIELD_IN ("ffn_config", "moe_num_experts", COUNT, experts, EXPERTS_MAX),
    FIELD_IN ("ffn_config", "moe_top_k", COUNT, top_k, EXPERTS_MAX),
    {0}};

/* ---- what the fields do not say ---- */

static enum status finish_opt (const struct workload_reading *r, struct workload_model *m)
{
    struct json_at width = json_key (r->at, "word_embed_proj_dim");

    if (json_is_integer (width.v) && json_integer_value (width.v) != m->hidden)
        return json_fail_text (&width, r->err,
                               "embeddings narrower than the layers are not supported");
    return ST_OK;
}

/* One key and value head, or the shape of GPT-2. */
static enum status finish_bigcode (const struct workload_reading *r,
                                   struct workload_model *m)
{
    struct json_at one = json_key (r->at, "multi_query");

    if (json_is_false (one.v))
        strcpy (m->type, "gpt2");
    else
        m->kv_heads = 1;
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
    strcpy (m->type, "t5");
    return ST_OK;
}

/* Positions are learned where ALiBi does not stand for them; biases are everywhere or nowhere. */
static enum status finish_mpt (const struct workload_reading *r, struct workload_model *m)
{
    struct json_at attention = json_key (r->at, "attn_config"),
                   alibi = json_key (&attention, "alibi"),
                   bare = json_key (r->at, "no_bias");
    int ratio = 4;

    m->context = m->positions;
    if (json_is_true (alibi.v))
        m->positions = 0;
    if (json_has (r->at, "expansion_ratio"))
        TRY (json_get_int (r->at, "expansion_ratio", 1, 64, &ratio, r->err));
    if (m->ffn == 0)
        m->ffn = ratio * m->hidden;
    m->mlp_bias |= json_is_false (bare.v);
    m->qkv_bias = m->out_bias = m->mlp_bias;
    m->norm = m->mlp_bias ? NORM_LAYER : NORM_LAYER_WEIGHT;
    return ST_OK;
}

/* Every layer has experts, and the file's sequence is no field of the shape. */
static enum status finish_dbrx (const struct workload_reading *r,
                                struct workload_model *m)
{
    struct json_at seq = json_key (r->at, "max_seq_len");

    if (m->experts == 0 || m->expert_ffn == 0 || m->top_k == 0)
        return json_fail_text (r->at, r->err,
                               "dbrx needs ffn_config with ffn_hidden_size, "
                               "moe_num_experts and moe_top_k");
    if (json_is_integer (seq.v))
        TRY (json_get_int (r->at, "max_seq_len", 1, VOCAB_MAX, &m->context, r->err));
    m->ffn = m->expert_ffn;
    return ST_OK;
}

static const struct workload_family families[] = {
    {"gpt2",
     gpt2,
     {LAYER_NORM, BIASED, .tied = true, .dropout = true, .separate_gelu = true},
     NULL},
    {"gpt_bigcode",
     gpt2,
     {LAYER_NORM, BIASED, .tied = true, .dropout = true},
     finish_bigcode},
    {"gpt_neo",
     gpt_neo,
     {LAYER_NORM, .out_bias = true, .mlp_bias = true, .tied = true,
      .separate_gelu = true},
     NULL},
    {"gptj",
     gptj,
     {LAYER_NORM, .mlp_bias = true, .norms = 1, .head_bias = true, .separate_gelu = true},
     NULL},
    {"opt",
     opt,
     {LAYER_NORM, BIASED, .tied = true, .dropout = true, .spare_positions = 2},
     finish_opt},
    {"bloom", bloom, {LAYER_NORM, BIASED, .tied = true, .embedding_norm = true}, NULL},
    {"falcon", falcon, {LAYER_NORM, .tied = true}, finish_falcon},
    {"RefinedWeb", falcon, {LAYER_NORM, .tied = true}, finish_falcon},
    {"RefinedWebModel", falcon, {LAYER_NORM, .tied = true}, finish_falcon},
    {"t5", t5, {.tied = true, .dropout = true}, finish_t5},
    {"mt5", t5, {.dropout = true}, finish_t5},
    {"mpt", mpt, {.tied = true}, finish_mpt},
    {"dbrx", dbrx, {GATED, .norm = NORM_LAYER_WEIGHT}, finish_dbrx},
};

const struct workload_family *workload_family_find_gpt (const char *type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp (families[i].type, type) == 0)
            return &families[i];
    return workload_family_find_hybrid (type);
}
