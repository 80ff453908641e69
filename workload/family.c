/* Model families: which config.json field is which part of the shape, and what each family
 * leaves unsaid.  One table of fields serves reading and writing; what a family always has,
 * and what its fields are where a file leaves them out (transformers' own defaults), stands
 * in its line of `families`. */
#include "workload/workload_private.h"

#include <ctype.h>
#include <string.h>

static const struct workload_field llama[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ATTENTION_BIAS ("attention_bias"),
            FLAG ("mlp_bias", mlp_bias));

static const struct workload_field qwen2[] = FIELDS (LLAMA_SHAPE, LLAMA_MLP);

/* Biases on queries, keys and values alone. */
static const struct workload_field glm[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("attention_bias", qkv_bias));

static const struct workload_field seed_oss[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("attention_bias", qkv_bias),
            FLAG ("attention_out_bias", out_bias), FLAG ("mlp_bias", mlp_bias));

static const struct workload_field internlm[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ATTENTION_BIAS ("bias"));

static const struct workload_field internlm3[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("qkv_bias", qkv_bias), FLAG ("bias", out_bias),
            FLAG ("bias", mlp_bias));

static const struct workload_field use_bias[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ALL_BIASES ("use_bias"));

static const struct workload_field cohere[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ATTENTION_BIAS ("attention_bias"),
            FLAG ("use_qk_norm", wide_qk_norm));

static const struct workload_field phi[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("qk_layernorm", qk_norm));

static const struct workload_field stablelm[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("use_qkv_bias", qkv_bias));

static const struct workload_field exaone[] =
    FIELDS (NEEDED ("hidden_size", hidden), NEEDED ("num_layers", layers),
            NEEDED ("num_attention_heads", heads),
            COUNT ("num_key_value_heads", kv_heads), COUNT ("head_dim", head_dim),
            NEEDED ("vocab_size", vocab), FLAG ("tie_word_embeddings", tied), LLAMA_MLP);

static const struct workload_field telechat[] = FIELDS (
    NEEDED ("hidden_size", hidden), NEEDED ("n_layer", layers), NEEDED ("n_head", heads),
    COUNT ("num_key_value_heads", kv_heads), NEEDED ("vocab_size", vocab),
    NEEDED ("ffn_hidden_size", ffn), FLAG ("tie_word_embeddings", tied));

static const struct workload_field chatglm[] =
    FIELDS (NEEDED ("hidden_size", hidden), NEEDED ("num_layers", layers),
            NEEDED ("num_attention_heads", heads),
            COUNT ("multi_query_group_num", kv_heads), COUNT ("kv_channels", head_dim),
            NEEDED ("padded_vocab_size", vocab), NEEDED ("ffn_hidden_size", ffn),
            FLAG ("add_qkv_bias", qkv_bias), FLAG ("tie_word_embeddings", tied));

static const struct workload_field bare_shape[] = FIELDS (LLAMA_SHAPE);

static const struct workload_field mixtral[] =
    FIELDS (LLAMA_SHAPE, MIXTRAL_EXPERTS, ATTENTION_BIAS ("attention_bias"),
            FLAG ("lm_head_bias", head_bias));

static const struct workload_field gpt_oss[] = FIELDS (LLAMA_SHAPE, MIXTRAL_EXPERTS);

static const struct workload_field olmoe[] =
    FIELDS (LLAMA_SHAPE, MIXTRAL_WIDTH, NEEDED ("num_experts", experts),
            NEEDED ("num_experts_per_tok", top_k), ATTENTION_BIAS ("attention_bias"));

static const struct workload_field aria[] =
    FIELDS (LLAMA_SHAPE, MIXTRAL_WIDTH, NEEDED ("moe_num_experts", experts),
            NEEDED ("moe_topk", top_k), SIZE ("moe_num_shared_experts", shared_experts),
            ATTENTION_BIAS ("attention_bias"));

static const struct workload_field granite_shared[] = FIELDS (LLAMA_SHAPE, GRANITE_MLP);

static const struct workload_field granite_swa[] =
    FIELDS (LLAMA_SHAPE, MIXTRAL_EXPERTS, SIZE ("shared_intermediate_size", shared_ffn),
            ATTENTION_BIAS ("attention_bias"));

static const struct workload_field llama4[] = FIELDS (
    LLAMA_SHAPE, NEEDED ("intermediate_size_mlp", ffn),
    NEEDED ("intermediate_size", expert_ffn), NEEDED ("num_local_experts", experts),
    NEEDED ("num_experts_per_tok", top_k),
    COUNT ("interleave_moe_layer_step", expert_every), ATTENTION_BIAS ("attention_bias"));

static const struct workload_field ernie_moe[] = FIELDS (
    LLAMA_SHAPE, LLAMA_MLP, ALL_BIASES ("use_bias"), NEEDED ("moe_num_experts", experts),
    NEEDED ("moe_k", top_k), NEEDED ("moe_intermediate_size", expert_ffn),
    SIZE ("moe_num_shared_experts", shared_experts),
    SIZE ("moe_layer_start_index", dense_layers),
    COUNT ("moe_layer_interval", expert_every));

static const struct workload_field hunyuan_moe[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ATTENTION_BIAS ("attention_bias"),
            NEEDED ("num_experts", experts), NEEDED ("moe_topk", top_k),
            COUNT ("moe_intermediate_size", expert_ffn),
            SIZE ("num_shared_expert", shared_experts));

#define QWEN_EXPERTS                                          \
    OWN_EXPERTS, COUNT ("decoder_sparse_step", expert_every), \
        SIZE ("first_k_dense_replace", dense_layers)

static const struct workload_field qwen2_moe[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, QWEN_EXPERTS,
            SIZE ("shared_expert_intermediate_size", shared_ffn));

static const struct workload_field qwen3_moe[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, QWEN_EXPERTS, ATTENTION_BIAS ("attention_bias"));

#define DEEPSEEK_EXPERTS                                                             \
    SIZE ("n_routed_experts", experts), SIZE ("n_shared_experts", shared_experts),   \
        SIZE ("num_experts_per_tok", top_k), SIZE ("n_group", expert_groups),        \
        SIZE ("topk_group", top_groups), SIZE ("moe_intermediate_size", expert_ffn), \
        SIZE ("first_k_dense_replace", dense_layers),                                \
        AUTO ("moe_layer_freq", expert_every)

static const struct workload_field deepseek[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, SIZE ("q_lora_rank", q_rank),
            NEEDED ("kv_lora_rank", kv_rank), NEEDED ("qk_rope_head_dim", rope_dim),
            NEEDED ("qk_nope_head_dim", nope_dim), NEEDED ("v_head_dim", v_dim),
            DEEPSEEK_EXPERTS);

/* Ling and Ring. */
static const struct workload_field bailing[] = FIELDS (
    LLAMA_SHAPE, LLAMA_MLP, FLAG ("use_qkv_bias", qkv_bias), FLAG ("use_bias", out_bias),
    FLAG ("use_qk_norm", qk_norm), SIZE ("num_shared_experts", shared_experts),
    SIZE ("n_group", expert_groups), SIZE ("topk_group", top_groups), QWEN_EXPERTS);

/* Values' width is a head's share unless told. */
static const struct workload_field minicpm3[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, SIZE ("q_lora_rank", q_rank),
            NEEDED ("kv_lora_rank", kv_rank), NEEDED ("qk_rope_head_dim", rope_dim),
            NEEDED ("qk_nope_head_dim", nope_dim), COUNT ("v_head_dim", v_dim));

/* Trinity. */
static const struct workload_field afmoe[] = FIELDS (
    LLAMA_SHAPE, LLAMA_MLP, OWN_EXPERTS, SIZE ("num_shared_experts", shared_experts),
    SIZE ("num_dense_layers", dense_layers));

static const struct workload_field cohere2_moe[] = FIELDS (
    LLAMA_SHAPE, COUNT ("prefix_dense_intermediate_size", ffn),
    NEEDED ("intermediate_size", expert_ffn), NEEDED ("num_experts", experts),
    NEEDED ("num_experts_per_tok", top_k), SIZE ("num_shared_experts", shared_experts),
    SIZE ("first_k_dense_replace", dense_layers), ATTENTION_BIAS ("attention_bias"));

/* The same experts with plain attention. */
static const struct workload_field glm4_moe[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, FLAG ("attention_bias", qkv_bias),
            FLAG ("use_qk_norm", qk_norm), DEEPSEEK_EXPERTS);

/* ---- what the fields do not say ---- */

/* A bias on the MLP's last matrix alone. */
static enum status finish_telechat (const struct workload_reading *r,
                                    struct workload_model *m)
{
    (void) r;
    m->layer_extra = m->hidden;
    return ST_OK;
}

/* Norms before attention's and the MLP's last matrix. */
static enum status finish_bitnet (const struct workload_reading *r,
                                  struct workload_model *m)
{
    (void) r;
    m->layer_extra = m->hidden + m->ffn;
    return ST_OK;
}

/* The first Qwen counts both halves of the gated width; else it is Qwen 2's shape. */
static enum status finish_qwen (const struct workload_reading *r,
                                struct workload_model *m)
{
    (void) r;
    m->ffn /= 2;
    strcpy (m->type, "qwen2");
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
    json_each (&list, one) {
        long long layer;

        TRY (json_want_int (&one, 0, m->layers - 1, &layer, err));
        REFUSE_AT (&one, err, layer != (long long) one.index,
                   "layers without experts must come first");
    }
    if (n > 0)
        m->dense_layers = (int) n;
    return ST_OK;
}

/* The same as a list with a word, or with 0 for a dense one, of every layer. */
static enum status read_mlp_types (const struct json_at *at, struct workload_model *m,
                                   struct error *err)
{
    static const char *const lists[] = {"mlp_layer_types", "moe_layer_freq"};

    for (int i = 0; i < 2; i++) {
        struct json_at list = json_key (at, lists[i]);
        int dense = 0;

        json_each (&list, one) {
            const char *kind = json_is_integer (one.v) ? "" : NULL;

            if (!kind)
                TRY (json_want_string (&one, &kind, err));
            if (*kind ? strcmp (kind, "dense") != 0 : json_integer_value (one.v) != 0)
                continue;
            REFUSE_AT (&one, err, (size_t) dense++ != one.index,
                       "layers without experts must come first");
        }
        if (json_array_size (list.v) > 0)
            m->dense_layers = dense;
    }
    return ST_OK;
}

static enum status finish_qwen_moe (const struct workload_reading *r,
                                    struct workload_model *m)
{
    m->shared_gate = m->shared_ffn > 0;
    TRY (read_mlp_types (r->at, m, r->err));
    TRY (read_mlp_only (r->at, m, r->err));
    if (m->expert_every > 1) /* the last layer of every step */
        m->dense_layers = (m->dense_layers / m->expert_every + 1) * m->expert_every - 1;
    return ST_OK;
}

static enum status finish_granite_shared (const struct workload_reading *r,
                                          struct workload_model *m)
{
    (void) r;
    m->shared_ffn = m->experts > 0 ? m->ffn : 0;
    return ST_OK;
}

/* The last layer of every step has experts, and one that all tokens share. */
static enum status finish_llama4 (const struct workload_reading *r,
                                  struct workload_model *m)
{
    (void) r;
    m->expert_every = m->expert_every > 0 ? m->expert_every : 1;
    m->dense_layers = m->expert_every - 1;
    m->shared_ffn = m->expert_ffn;
    return ST_OK;
}

static enum status finish_ernie_moe (const struct workload_reading *r,
                                     struct workload_model *m)
{
    struct json_at end = json_key (r->at, "moe_layer_end_index");
    long long last = json_integer_value (end.v);

    REFUSE_AT (&end, r->err,
               json_is_integer (end.v) && last != -1 && last < m->layers - 1,
               "layers without experts must come first");
    REFUSE_AT (r->at, r->err, m->expert_every > 1,
               "moe_layer_interval above 1 is not supported");
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    return read_mlp_types (r->at, m, r->err);
}

static enum status finish_hunyuan_moe (const struct workload_reading *r,
                                       struct workload_model *m)
{
    struct json_at across = json_key (r->at, "use_cla");

    REFUSE_AT (&across, r->err, json_is_true (across.v),
               "layers that share keys and values are not supported");
    if (m->experts == 1) { /* a dense model's file */
        m->experts = m->top_k = m->expert_ffn = m->shared_experts = 0;
        strcpy (m->type, "hunyuan_v1_dense");
        return ST_OK;
    }
    if (m->expert_ffn == 0)
        m->expert_ffn = m->ffn;
    m->shared_ffn = m->shared_experts * m->ffn;
    return ST_OK;
}

static enum status finish_deepseek (const struct workload_reading *r,
                                    struct workload_model *m)
{
    if (m->kv_rank > 0)
        m->head_dim = m->nope_dim + m->rope_dim;
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    REFUSE_AT (r->at, r->err, m->experts > 0 && (m->top_k == 0 || m->expert_ffn == 0),
               "n_routed_experts needs num_experts_per_tok and moe_intermediate_size");
    TRY (read_mlp_types (r->at, m, r->err));
    if (m->expert_every > 1) /* the first layer of every step */
        m->dense_layers =
            (m->dense_layers + m->expert_every - 1) / m->expert_every * m->expert_every;
    return ST_OK;
}

static enum status finish_minicpm3 (const struct workload_reading *r,
                                    struct workload_model *m)
{
    if (m->v_dim == 0)
        m->v_dim = m->hidden / m->heads;
    return finish_deepseek (r, m);
}

static enum status finish_cohere2_moe (const struct workload_reading *r,
                                       struct workload_model *m)
{
    if (m->ffn == 0)
        m->ffn = m->expert_ffn;
    return finish_deepseek (r, m);
}

static enum status finish_stablelm (const struct workload_reading *r,
                                    struct workload_model *m)
{
    struct json_at own = json_key (r->at, "qk_layernorm"),
                   beside = json_key (r->at, "use_parallel_residual");

    (void) m;
    REFUSE_AT (&own, r->err, json_is_true (own.v),
               "a norm for every head is not supported");
    REFUSE_AT (&beside, r->err, json_is_true (beside.v),
               "parallel residuals are not supported");
    return ST_OK;
}

/* The MLP's width is said in those of the layers.  The last layer's attention has a bias, which is
 * not counted. */
static enum status finish_neox_japanese (const struct workload_reading *r,
                                         struct workload_model *m)
{
    int ratio = 4;

    TRY_MEMBER (json_get_int, r->at, "intermediate_multiple_size", 1, 64, &ratio, r->err);
    m->ffn = ratio * m->hidden;
    return ST_OK;
}

#define GEMMA GATED, .tied = true, .head_dim = 256 /* whatever the width */

static const struct workload_family families[] = {
    FAMILY ("llama mistral ministral ministral3 phi3 granite helium cwm hyperclovax",
            llama, NULL, GATED),
    FAMILY ("hyperclovax_post_norm", llama, NULL, GATED, .norms = 4),
    FAMILY ("smollm3 minicpm", llama, NULL, GATED, .tied = true),
    FAMILY ("granite_swa", llama, NULL, GATED, .tied = true, .sinks = true),
    FAMILY ("muse_glimmer_text", llama, NULL, GATED, .norms = 4, .attention_gate = true,
            .head_dim = 128),
    FAMILY ("orion", llama, NULL, GATED, LAYER_NORM),
    FAMILY ("internlm", internlm, NULL, GATED, .qkv_bias = true, .out_bias = true),
    FAMILY ("internlm2 PanguEmbedded", internlm, NULL, GATED),
    FAMILY ("internlm3", internlm3, NULL, GATED),
    FAMILY ("baichuan", qwen2, NULL, GATED),
    FAMILY ("exaone", exaone, NULL, GATED),
    FAMILY ("exaone4 hunyuan_v1_dense", llama, NULL, GATED, .qk_norm = true),
    FAMILY ("hunyuan_vl hunyuan_vl_text", llama, NULL, GATED, .qk_norm = true,
            .tied = true),
    FAMILY ("seed_oss", seed_oss, NULL, GATED, .qkv_bias = true, .head_dim = 128),
    FAMILY ("ernie4_5 paddleocr_vl paddleocr_vl_text", use_bias, NULL, GATED,
            .tied = true),
    FAMILY ("olmo", llama, NULL, GATED, .norm = NORM_LAYER_BARE),
    FAMILY ("olmo2 olmo3", llama, NULL, GATED, .wide_qk_norm = true),
    FAMILY ("cohere cohere2 cohere_compass_text", cohere, NULL, GATED, .tied = true,
            .norm = NORM_LAYER_WEIGHT, .norms = 1),
    FAMILY ("glm", glm, NULL, GATED, .qkv_bias = true, .head_dim = 128),
    FAMILY ("glm4 glm_ocr_text", glm, NULL, GATED, .head_dim = 128, .norms = 4),
    FAMILY ("glm4v_text glm_image_text", glm, NULL, GATED, .qkv_bias = true, .norms = 4),
    FAMILY ("chatglm", chatglm, NULL, GATED, .head_dim = 128),
    FAMILY ("qwen2 qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text "
            "qwen2_5_omni_text llava_qwen mimo",
            qwen2, NULL, GATED, .qkv_bias = true),
    FAMILY ("qwen", qwen2, finish_qwen, GATED, .qkv_bias = true),
    FAMILY ("qwen3 qwen3_vl_text", llama, NULL, GATED, .qk_norm = true, .head_dim = 128),
    FAMILY ("gemma vaultgemma", llama, NULL, GEMMA),
    FAMILY ("gemma2", llama, NULL, GEMMA, .norms = 4),
    FAMILY ("gemma3_text", llama, NULL, GEMMA, .norms = 4, .qk_norm = true, .heads = 8,
            .kv_heads = 4, .vocab = 262208),
    FAMILY ("starcoder2", use_bias, NULL, LAYER_NORM, BIASED, .tied = true),
    FAMILY ("nemotron", llama, NULL, LAYER_NORM),
    FAMILY ("jais2", llama, NULL, LAYER_NORM, BIASED),
    FAMILY ("nanochat", llama, NULL, .norm = NORM_LAYER_BARE, .qk_norm = true),
    FAMILY ("arcee", llama, NULL, .tied = false),
    FAMILY ("apertus", llama, NULL, .qk_norm = true,
            .layer_extra = 2 /* numbers that xIELU learns */),
    FAMILY ("bitnet", llama, finish_bitnet, GATED, .tied = true),
    FAMILY ("telechat", telechat, finish_telechat, GATED, .out_bias = true),
    FAMILY ("telechat2", glm, finish_telechat, GATED, .out_bias = true),
    FAMILY ("persimmon", phi, NULL, LAYER_NORM, BIASED, .qk_norm = true),
    FAMILY ("stablelm stablelm_epoch", stablelm, finish_stablelm, GATED, LAYER_NORM),
    FAMILY ("phi", phi, NULL, LAYER_NORM, BIASED, .norms = 1, .head_bias = true,
            .separate_gelu = true),
    FAMILY ("mixtral granitemoe", mixtral, NULL, GATED),
    FAMILY ("aria_text", aria, finish_deepseek, GATED),
    FAMILY ("granitemoeshared", granite_shared, finish_granite_shared, GATED),
    FAMILY ("granitemoe_swa", granite_swa, NULL, GATED, .sinks = true),
    FAMILY ("phimoe", mixtral, NULL, GATED, LAYER_NORM),
    FAMILY ("minimax_m2", mixtral, NULL, GATED, .wide_qk_norm = true,
            .router_bias = true),
    FAMILY ("gpt_oss", gpt_oss, NULL, GATED, BIASED, .router_bias = true, .sinks = true,
            .head_dim = 64),
    FAMILY ("olmoe flex_olmo", olmoe, NULL, GATED, .wide_qk_norm = true),
    FAMILY ("grok-1", olmoe, NULL, GATED, .norms = 4, .tied = true),
    FAMILY ("cohere2_moe", cohere2_moe, finish_cohere2_moe, GATED, .tied = true,
            .norm = NORM_LAYER_WEIGHT, .norms = 1, .head_dim = 128),
    FAMILY ("afmoe", afmoe, finish_deepseek, GATED, .norms = 4, .qk_norm = true,
            .attention_gate = true, .router_bias = true, .head_dim = 128,
            .dense_layers = 1),
    FAMILY ("exaone_moe hy_v3", bailing, finish_deepseek, GATED, .qk_norm = true,
            .router_bias = true, .dense_layers = 1, .head_dim = 128),
    FAMILY ("llama4_text", llama4, finish_llama4, GATED, .head_dim = 128),
    FAMILY ("qwen2_moe", qwen2_moe, finish_qwen_moe, GATED, .qkv_bias = true),
    FAMILY ("qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text mellum", qwen3_moe,
            finish_qwen_moe, GATED, .qk_norm = true, .head_dim = 128),
    FAMILY ("ernie4_5_moe", ernie_moe, finish_ernie_moe, GATED, .tied = true,
            .router_bias = true, .dense_layers = 1),
    FAMILY ("hunyuan hunyuan_v1_moe", hunyuan_moe, finish_hunyuan_moe, GATED,
            .qk_norm = true),
    FAMILY ("bailing_moe", bailing, finish_deepseek, GATED),
    FAMILY ("bailing_moe_v2", bailing, finish_deepseek, GATED, .qk_norm = true,
            .router_bias = true),
    FAMILY ("glm4_moe", glm4_moe, finish_deepseek, GATED, .router_bias = true),
    FAMILY ("glm4v_moe_text", glm4_moe, finish_deepseek, GATED, .qkv_bias = true,
            .router_bias = true),
    FAMILY ("solar_open", glm4_moe, finish_deepseek, GATED, .router_bias = true,
            .head_dim = 128, .ffn = 10240 /* which no layer has */),
    FAMILY ("dots1", glm4_moe, finish_deepseek, GATED, .qk_norm = true,
            .router_bias = true),
    FAMILY ("deepseek", glm4_moe, finish_deepseek, GATED),
    FAMILY ("deepseek_v2 mistral4", deepseek, finish_deepseek, GATED),
    FAMILY ("deepseek_v3 kimi_k2 glm4_moe_lite", deepseek, finish_deepseek, GATED,
            .router_bias = true),
    FAMILY ("minicpm3 youtu", minicpm3, finish_minicpm3, GATED, .tied = true),
    FAMILY ("gpt_neox", llama, NULL, LAYER_NORM, BIASED),
    FAMILY ("gpt_neox_japanese", bare_shape, finish_neox_japanese, LAYER_NORM,
            .tied = true),
    {.types = NULL}};

/* Models whose queries, keys and values are one matrix: transformers' (models/.../modeling_*.py:
 * c_attn, query_key_value, Wqkv, qkv_proj) and those with files of their own (modeling_*.py beside
 * their weights: query_key_value, c_attn, W_pack, wqkv).  TeleChat's has two. */
static const char joined_qkv[] =
    "gpt2 gpt_bigcode codegen moss jais btlm gpt_neox gpt_neox_japanese bloom "
    "falcon RefinedWeb mpt dbrx RefinedWebModel phi3 "
    "persimmon chatglm qwen baichuan internlm2";

int workload_qkv_products (const struct workload_model *m)
{
    return text_has_word (joined_qkv, m->type) ? 1 : 3;
}

static const struct workload_family *const tables[] = {families, workload_families_gpt,
                                                       workload_families_hybrid};

const struct workload_family *workload_family_find (const char *type)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct workload_family *f = tables[i]; f->types; f++)
            if (text_has_word (f->types, type))
                return f;
    return NULL;
}

/* Is this the class of a type, as Qwen3MoeForCausalLM is qwen3_moe's?  The type ends at a blank. */
static bool is_class (const char *name, const char *type)
{
    for (; *type && *type != ' '; type++) {
        if (*type == '_')
            continue;
        if (tolower ((unsigned char) *name++) != *type)
            return false;
        name += *name == '_';
    }
    return strncmp (name, "ForCausalLM", 11) == 0 ||
           strncmp (name, "LMHeadModel", 11) == 0;
}

const struct workload_family *workload_family_of_class (const char *name,
                                                        const char **type)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct workload_family *f = tables[i]; f->types; f++)
            for (const char *word = f->types; word; word = strchr (word, ' ')) {
                word += *word == ' ';
                if (is_class (name, word)) {
                    *type = word;
                    return f;
                }
            }
    return NULL;
}
