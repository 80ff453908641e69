/* GPT-2's kin and other families whose config.json does not have Llama's names for its fields.
 * Some of MosaicML's (MPT, DBRX) stand in objects of their own. */
#include "workload/workload_private.h"

#include <string.h>

static const struct workload_field gpt2[] = FIELDS (
    NEEDED ("n_embd", hidden), NEEDED ("n_layer", layers), NEEDED ("n_head", heads),
    NEEDED ("n_positions", positions), NEEDED ("vocab_size", vocab),
    SIZE ("n_inner", ffn), FLAG ("tie_word_embeddings", tied));

static const struct workload_field gpt_neo[] =
    FIELDS (NEEDED ("hidden_size", hidden), NEEDED ("num_layers", layers),
            NEEDED ("num_heads", heads), NEEDED ("max_position_embeddings", positions),
            NEEDED ("vocab_size", vocab), SIZE ("intermediate_size", ffn),
            FLAG ("tie_word_embeddings", tied));

static const struct workload_field gptj[] =
    FIELDS (NEEDED ("n_embd", hidden), NEEDED ("n_layer", layers),
            NEEDED ("n_head", heads), NEEDED ("vocab_size", vocab), SIZE ("n_inner", ffn),
            FLAG ("tie_word_embeddings", tied));

static const struct workload_field xglm[] =
    FIELDS (NEEDED ("d_model", hidden), NEEDED ("num_layers", layers),
            NEEDED ("attention_heads", heads), NEEDED ("ffn_dim", ffn),
            NEEDED ("vocab_size", vocab), FLAG ("tie_word_embeddings", tied));

static const struct workload_field opt[] = FIELDS (
    NEEDED ("hidden_size", hidden), NEEDED ("num_hidden_layers", layers),
    NEEDED ("num_attention_heads", heads), NEEDED ("max_position_embeddings", positions),
    NEEDED ("vocab_size", vocab), NEEDED ("ffn_dim", ffn), ALL_BIASES ("enable_bias"),
    FLAG ("tie_word_embeddings", tied));

static const struct workload_field bloom[] =
    FIELDS (OLDER ("n_embed", hidden), NEEDED ("hidden_size", hidden),
            OLDER ("num_hidden_layers", layers), NEEDED ("n_layer", layers),
            OLDER ("num_attention_heads", heads), NEEDED ("n_head", heads),
            NEEDED ("vocab_size", vocab), SIZE ("n_inner", ffn),
            FLAG ("tie_word_embeddings", tied));

static const struct workload_field falcon[] =
    FIELDS (NEEDED ("hidden_size", hidden), OLDER ("n_layer", layers),
            NEEDED ("num_hidden_layers", layers), OLDER ("n_head", heads),
            NEEDED ("num_attention_heads", heads), OLDER ("n_head_kv", kv_heads),
            COUNT ("num_kv_heads", kv_heads), SIZE ("num_ln_in_parallel_attn", norms),
            SIZE ("ffn_hidden_size", ffn), NEEDED ("vocab_size", vocab),
            ALL_BIASES ("bias"), FLAG ("tie_word_embeddings", tied));

static const struct workload_field t5[] =
    FIELDS (NEEDED ("d_model", hidden), NEEDED ("num_layers", layers),
            SIZE ("num_decoder_layers", decoder_layers), NEEDED ("num_heads", heads),
            NEEDED ("d_kv", head_dim), NEEDED ("d_ff", ffn), NEEDED ("vocab_size", vocab),
            FLAG ("tie_word_embeddings", tied));

#define MOSAIC_SHAPE                                                                    \
    NEEDED ("d_model", hidden), NEEDED ("n_layers", layers), NEEDED ("n_heads", heads), \
        COUNT_IN ("attn_config", "kv_n_heads", kv_heads), NEEDED ("vocab_size", vocab), \
        FLAG ("tie_word_embeddings", tied)

static const struct workload_field mpt[] =
    FIELDS (MOSAIC_SHAPE, COUNT_IN ("ffn_config", "ffn_hidden_size", ffn),
            FIELD ("attn_config", "qk_ln", FLAG, wide_qk_norm, 0),
            COUNT ("max_seq_len", positions), FLAG ("use_bias", mlp_bias));

static const struct workload_field dbrx[] =
    FIELDS (MOSAIC_SHAPE, COUNT_IN ("ffn_config", "ffn_hidden_size", ffn),
            COUNT_IN ("ffn_config", "ffn_hidden_size", expert_ffn),
            COUNT_IN ("ffn_config", "moe_num_experts", experts),
            COUNT_IN ("ffn_config", "moe_top_k", top_k));

/* ---- what the fields do not say ---- */

static enum status finish_opt (const struct workload_reading *r, struct workload_model *m)
{
    struct json_at width = json_key (r->at, "word_embed_proj_dim"),
                   affine = json_key (r->at, "layer_norm_elementwise_affine");

    REFUSE_AT (&width, r->err,
               json_is_integer (width.v) && json_integer_value (width.v) != m->hidden,
               "embeddings narrower than the layers are not supported");
    REFUSE_AT (&affine, r->err, json_is_false (affine.v),
               "norms without parameters are not supported here");
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
    strcpy (m->type, "falcon");
    return ST_OK;
}

static enum status finish_t5 (const struct workload_reading *r, struct workload_model *m)
{
    const char *s = "relu";

    TRY_MEMBER (json_get_string, r->at, "feed_forward_proj", &s, r->err);
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
    TRY_MEMBER (json_get_int, r->at, "expansion_ratio", 1, 64, &ratio, r->err);
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

    REFUSE_AT (
        r->at, r->err, m->experts == 0 || m->expert_ffn == 0 || m->top_k == 0,
        "dbrx needs ffn_config with ffn_hidden_size, moe_num_experts and moe_top_k");
    if (json_is_integer (seq.v))
        TRY (json_get_int (r->at, "max_seq_len", 1, VOCAB_MAX, &m->context, r->err));
    return ST_OK;
}

const struct workload_family workload_families_gpt[] = {
    FAMILY ("gpt2", gpt2, NULL, LAYER_NORM, BIASED, .tied = true, .dropout = true,
            .separate_gelu = true),
    FAMILY ("gpt_bigcode", gpt2, NULL, LAYER_NORM, BIASED, .tied = true, .dropout = true,
            .kv_heads = 1),
    FAMILY ("gpt_neo", gpt_neo, NULL, LAYER_NORM, .out_bias = true, .mlp_bias = true,
            .tied = true, .separate_gelu = true),
    FAMILY ("jais btlm", gptj, NULL, LAYER_NORM, BIASED, GATED, .tied = true,
            .dropout = true),
    FAMILY ("xglm", xglm, NULL, LAYER_NORM, BIASED, .tied = true, .dropout = true),
    FAMILY ("gptj codegen moss", gptj, NULL, LAYER_NORM, .mlp_bias = true, .norms = 1,
            .head_bias = true, .separate_gelu = true),
    FAMILY ("opt", opt, finish_opt, LAYER_NORM, BIASED, .tied = true, .dropout = true,
            .spare_positions = 2),
    FAMILY ("bloom", bloom, NULL, LAYER_NORM, BIASED, .tied = true,
            .embedding_norm = true),
    FAMILY ("falcon RefinedWeb RefinedWebModel", falcon, finish_falcon, LAYER_NORM,
            .tied = true),
    FAMILY ("t5", t5, finish_t5, .tied = true, .dropout = true),
    FAMILY ("mt5", t5, finish_t5, .dropout = true),
    FAMILY ("mpt", mpt, finish_mpt, .tied = true),
    FAMILY ("dbrx", dbrx, finish_dbrx, GATED, .norm = NORM_LAYER_WEIGHT),
    {.types = NULL}};
