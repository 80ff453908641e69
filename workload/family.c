/* Model families: which config.json field is which part of the shape, and what each family
 * leaves unsaid.  One table of fields serves reading and writing; what a family always has,
 * and what its fields are where a file leaves them out (transformers' own defaults), stands
 * in its line of `families`. */
#include "workload/workload_private.h"

#include <string.h>

static const struct workload_field llama[] = {LLAMA_SHAPE,
                                              LLAMA_MLP,
                                              FIELD ("attention_bias", FLAG, out_bias, 0),
                                              FIELD ("mlp_bias", FLAG, mlp_bias, 0),
                                              {0}};

static const struct workload_field qwen2[] = {LLAMA_SHAPE, LLAMA_MLP, {0}};

/* Biases on queries, keys and values alone. */
static const struct workload_field glm[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("attention_bias", FLAG, qkv_bias, 0), {0}};

static const struct workload_field seed_oss[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("attention_bias", FLAG, qkv_bias, 0),
    FIELD ("attention_out_bias", FLAG, out_bias, 0),
    FIELD ("mlp_bias", FLAG, mlp_bias, 0),
    {0}};

static const struct workload_field internlm[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("bias", FLAG, out_bias, 0), {0}};

static const struct workload_field internlm3[] = {LLAMA_SHAPE,
                                                  LLAMA_MLP,
                                                  FIELD ("qkv_bias", FLAG, qkv_bias, 0),
                                                  FIELD ("bias", FLAG, mlp_bias, 0),
                                                  {0}};

/* One flag for all biases. */
static const struct workload_field use_bias[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("use_bias", FLAG, mlp_bias, 0), {0}};

static const struct workload_field cohere[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("attention_bias", FLAG, out_bias, 0),
    FIELD ("use_qk_norm", FLAG, wide_qk_norm, 0),
    {0}};

static const struct workload_field phi[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("qk_layernorm", FLAG, qk_norm, 0), {0}};

static const struct workload_field stablelm[] = {
    LLAMA_SHAPE, LLAMA_MLP, FIELD ("use_qkv_bias", FLAG, qkv_bias, 0), {0}};

static const struct workload_field exaone[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("num_key_value_heads", COUNT, kv_heads, WIDTH_MAX),
    FIELD ("head_dim", COUNT, head_dim, WIDTH_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    LLAMA_MLP,
    {0}};

static const struct workload_field telechat[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("n_layer", NEEDED, layers, LAYERS_MAX),
    FIELD ("n_head", NEEDED, heads, WIDTH_MAX),
    FIELD ("num_key_value_heads", COUNT, kv_heads, WIDTH_MAX),
    FIELD ("vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("ffn_hidden_size", NEEDED, ffn, VOCAB_MAX),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field chatglm[] = {
    FIELD ("hidden_size", NEEDED, hidden, WIDTH_MAX),
    FIELD ("num_layers", NEEDED, layers, LAYERS_MAX),
    FIELD ("num_attention_heads", NEEDED, heads, WIDTH_MAX),
    FIELD ("multi_query_group_num", COUNT, kv_heads, WIDTH_MAX),
    FIELD ("kv_channels", COUNT, head_dim, WIDTH_MAX),
    FIELD ("padded_vocab_size", NEEDED, vocab, VOCAB_MAX),
    FIELD ("ffn_hidden_size", NEEDED, ffn, VOCAB_MAX),
    FIELD ("add_qkv_bias", FLAG, qkv_bias, 0),
    FIELD ("tie_word_embeddings", FLAG, tied, 0),
    {0}};

static const struct workload_field mixtral[] = {
    LLAMA_SHAPE,
    MIXTRAL_EXPERTS,
    FIELD ("attention_bias", FLAG, out_bias, 0),
    FIELD ("lm_head_bias", FLAG, head_bias, 0),
    {0}};

static const struct workload_field gpt_oss[] = {LLAMA_SHAPE, MIXTRAL_EXPERTS, {0}};

static const struct workload_field olmoe[] = {
    LLAMA_SHAPE,
    FIELD ("intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),
    FIELD ("num_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX),
    FIELD ("attention_bias", FLAG, out_bias, 0),
    {0}};

static const struct workload_field granite_shared[] = {LLAMA_SHAPE, GRANITE_MLP, {0}};

static const struct workload_field llama4[] = {
    LLAMA_SHAPE,
    FIELD ("intermediate_size_mlp", NEEDED, ffn, VOCAB_MAX),
    FIELD ("intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),
    FIELD ("num_local_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX),
    FIELD ("interleave_moe_layer_step", COUNT, expert_every, LAYERS_MAX),
    FIELD ("attention_bias", FLAG, out_bias, 0),
    {0}};

static const struct workload_field ernie_moe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("use_bias", FLAG, mlp_bias, 0),
    FIELD ("moe_num_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("moe_k", NEEDED, top_k, EXPERTS_MAX),
    FIELD ("moe_intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),
    FIELD ("moe_num_shared_experts", SIZE, shared_experts, SHARED_MAX),
    FIELD ("moe_layer_start_index", SIZE, dense_layers, LAYERS_MAX),
    FIELD ("moe_layer_interval", COUNT, expert_every, LAYERS_MAX),
    {0}};

static const struct workload_field hunyuan_moe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("attention_bias", FLAG, out_bias, 0),
    FIELD ("num_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("moe_topk", NEEDED, top_k, EXPERTS_MAX),
    FIELD ("moe_intermediate_size", COUNT, expert_ffn, VOCAB_MAX),
    FIELD ("num_shared_expert", SIZE, shared_experts, SHARED_MAX),
    {0}};

#define QWEN_EXPERTS                                                             \
    OWN_EXPERTS, FIELD ("decoder_sparse_step", COUNT, expert_every, LAYERS_MAX), \
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

#define DEEPSEEK_EXPERTS                                                 \
    FIELD ("n_routed_experts", SIZE, experts, EXPERTS_MAX),              \
        FIELD ("n_shared_experts", SIZE, shared_experts, SHARED_MAX),    \
        FIELD ("num_experts_per_tok", SIZE, top_k, EXPERTS_MAX),         \
        FIELD ("n_group", SIZE, expert_groups, EXPERTS_MAX),             \
        FIELD ("topk_group", SIZE, top_groups, EXPERTS_MAX),             \
        FIELD ("moe_intermediate_size", SIZE, expert_ffn, VOCAB_MAX),    \
        FIELD ("first_k_dense_replace", SIZE, dense_layers, LAYERS_MAX), \
        FIELD ("moe_layer_freq", COUNT, expert_every, LAYERS_MAX)

static const struct workload_field deepseek[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("q_lora_rank", SIZE, q_rank, WIDTH_MAX),
    FIELD ("kv_lora_rank", NEEDED, kv_rank, WIDTH_MAX),
    FIELD ("qk_rope_head_dim", NEEDED, rope_dim, WIDTH_MAX),
    FIELD ("qk_nope_head_dim", NEEDED, nope_dim, WIDTH_MAX),
    FIELD ("v_head_dim", NEEDED, v_dim, WIDTH_MAX),
    DEEPSEEK_EXPERTS,
    {0}};

/* Ling and Ring. */
static const struct workload_field bailing[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("use_qkv_bias", FLAG, qkv_bias, 0),
    FIELD ("use_bias", FLAG, out_bias, 0),
    FIELD ("use_qk_norm", FLAG, qk_norm, 0),
    FIELD ("num_shared_experts", SIZE, shared_experts, SHARED_MAX),
    FIELD ("n_group", SIZE, expert_groups, EXPERTS_MAX),
    FIELD ("topk_group", SIZE, top_groups, EXPERTS_MAX),
    QWEN_EXPERTS,
    {0}};

/* Values' width is a head's share unless told. */
static const struct workload_field minicpm3[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("q_lora_rank", NEEDED, q_rank, WIDTH_MAX),
    FIELD ("kv_lora_rank", NEEDED, kv_rank, WIDTH_MAX),
    FIELD ("qk_rope_head_dim", NEEDED, rope_dim, WIDTH_MAX),
    FIELD ("qk_nope_head_dim", NEEDED, nope_dim, WIDTH_MAX),
    FIELD ("v_head_dim", COUNT, v_dim, WIDTH_MAX),
    {0}};

/* Trinity. */
static const struct workload_field afmoe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    OWN_EXPERTS,
    FIELD ("num_shared_experts", SIZE, shared_experts, SHARED_MAX),
    FIELD ("num_dense_layers", SIZE, dense_layers, LAYERS_MAX),
    {0}};

static const struct workload_field cohere2_moe[] = {
    LLAMA_SHAPE,
    FIELD ("prefix_dense_intermediate_size", COUNT, ffn, VOCAB_MAX),
    FIELD ("intermediate_size", NEEDED, expert_ffn, VOCAB_MAX),
    FIELD ("num_experts", NEEDED, experts, EXPERTS_MAX),
    FIELD ("num_experts_per_tok", NEEDED, top_k, EXPERTS_MAX),
    FIELD ("num_shared_experts", SIZE, shared_experts, SHARED_MAX),
    FIELD ("first_k_dense_replace", SIZE, dense_layers, LAYERS_MAX),
    FIELD ("attention_bias", FLAG, out_bias, 0),
    {0}};

/* The same experts with plain attention. */
static const struct workload_field glm4_moe[] = {
    LLAMA_SHAPE,
    LLAMA_MLP,
    FIELD ("attention_bias", FLAG, qkv_bias, 0),
    FIELD ("use_qk_norm", FLAG, qk_norm, 0),
    DEEPSEEK_EXPERTS,
    {0}};

/* ---- what the fields do not say ---- */

/* The output projection's flag is that of queries, keys and values. */
static enum status finish_llama (const struct workload_reading *r,
                                 struct workload_model *m)
{
    (void) r;
    m->qkv_bias = m->out_bias;
    return ST_OK;
}

/* The MLP's flag is the output projection's. */
static enum status finish_internlm3 (const struct workload_reading *r,
                                     struct workload_model *m)
{
    (void) r;
    m->out_bias = m->mlp_bias;
    return ST_OK;
}

static enum status finish_use_bias (const struct workload_reading *r,
                                    struct workload_model *m)
{
    (void) r;
    m->qkv_bias = m->out_bias = m->mlp_bias;
    return ST_OK;
}

/* A bias on the MLP's last matrix alone. */
static enum status finish_telechat (const struct workload_reading *r,
                                    struct workload_model *m)
{
    (void) r;
    m->layer_extra = m->hidden;
    return ST_OK;
}

/* xIELU learns two numbers. */
static enum status finish_apertus (const struct workload_reading *r,
                                   struct workload_model *m)
{
    m->layer_extra = 2;
    return finish_llama (r, m);
}

/* Norms before attention's and the MLP's last matrix. */
static enum status finish_bitnet (const struct workload_reading *r,
                                  struct workload_model *m)
{
    m->layer_extra = m->hidden + m->ffn;
    return finish_llama (r, m);
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
    m->qkv_bias |= m->out_bias;
    m->shared_gate = m->shared_ffn > 0;
    return read_mlp_only (r->at, m, r->err);
}

static enum status finish_mixtral (const struct workload_reading *r,
                                   struct workload_model *m)
{
    m->ffn = m->expert_ffn; /* there is no dense layer */
    return finish_llama (r, m);
}

/* The same with biases everywhere. */
static enum status finish_gpt_oss (const struct workload_reading *r,
                                   struct workload_model *m)
{
    (void) r;
    m->ffn = m->expert_ffn;
    return ST_OK;
}

static enum status finish_granite_shared (const struct workload_reading *r,
                                          struct workload_model *m)
{
    m->shared_ffn = m->experts > 0 ? m->ffn : 0;
    return finish_llama (r, m);
}

/* The last layer of every step has experts, and one that all tokens share. */
static enum status finish_llama4 (const struct workload_reading *r,
                                  struct workload_model *m)
{
    m->expert_every = m->expert_every > 0 ? m->expert_every : 1;
    m->dense_layers = m->expert_every - 1;
    m->shared_ffn = m->expert_ffn;
    return finish_llama (r, m);
}

static enum status finish_ernie_moe (const struct workload_reading *r,
                                     struct workload_model *m)
{
    struct json_at end = json_key (r->at, "moe_layer_end_index");
    long long last = json_integer_value (end.v);

    if (json_is_integer (end.v) && last != -1 && last < m->layers - 1)
        return json_fail_text (&end, r->err, "layers without experts must come first");
    if (m->expert_every > 1)
        return json_fail_text (r->at, r->err,
                               "moe_layer_interval above 1 is not supported");
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    return finish_use_bias (r, m);
}

static enum status finish_hunyuan_moe (const struct workload_reading *r,
                                       struct workload_model *m)
{
    struct json_at across = json_key (r->at, "use_cla");

    if (json_is_true (across.v))
        return json_fail_text (&across, r->err,
                               "layers that share keys and values are not supported");
    if (m->expert_ffn == 0)
        m->expert_ffn = m->ffn;
    m->shared_ffn = m->shared_experts * m->ffn;
    return finish_llama (r, m);
}

/* The same as a list of kinds, which newer files have in place of a number. */
static enum status read_mlp_types (const struct json_at *at, struct workload_model *m,
                                   struct error *err)
{
    struct json_at list = json_key (at, "mlp_layer_types");
    int n = (int) json_array_size (list.v), dense = 0;

    for (int i = 0; i < n; i++) {
        struct json_at one = json_entry (&list, i);
        const char *kind;

        TRY (json_want_string (&one, &kind, err));
        if (strcmp (kind, "dense") != 0)
            continue;
        if (dense++ != i)
            return json_fail_text (&one, err, "layers without experts must come first");
    }
    m->dense_layers = n > 0 ? dense : m->dense_layers;
    return ST_OK;
}

static enum status finish_deepseek (const struct workload_reading *r,
                                    struct workload_model *m)
{
    if (m->kv_rank > 0)
        m->head_dim = m->nope_dim + m->rope_dim;
    m->shared_ffn = m->shared_experts * m->expert_ffn;
    if (m->experts > 0 && (m->top_k == 0 || m->expert_ffn == 0))
        return json_fail_text (r->at, r->err,
                               "n_routed_experts needs num_experts_per_tok and "
                               "moe_intermediate_size");
    return read_mlp_types (r->at, m, r->err);
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
    m->qkv_bias = m->out_bias;
    return finish_deepseek (r, m);
}

static enum status finish_stablelm (const struct workload_reading *r,
                                    struct workload_model *m)
{
    struct json_at own = json_key (r->at, "qk_layernorm"),
                   beside = json_key (r->at, "use_parallel_residual");

    (void) m;
    if (json_is_true (own.v))
        return json_fail_text (&own, r->err, "a norm for every head is not supported");
    if (json_is_true (beside.v))
        return json_fail_text (&beside, r->err, "parallel residuals are not supported");
    return ST_OK;
}

#define GEMMA GATED, .tied = true, .head_dim = 256 /* whatever the width */

static const struct workload_family families[] = {
    {"llama", llama, {GATED}, finish_llama},
    {"mistral", llama, {GATED}, finish_llama},
    {"ministral", llama, {GATED}, finish_llama},
    {"ministral3", llama, {GATED}, finish_llama},
    {"phi3", llama, {GATED}, finish_llama},
    {"granite", llama, {GATED}, finish_llama},
    {"smollm3", llama, {GATED, .tied = true}, finish_llama},
    {"internlm", internlm, {GATED, .out_bias = true}, finish_llama},
    {"internlm2", internlm, {GATED}, finish_llama},
    {"internlm3", internlm3, {GATED}, finish_internlm3},
    {"baichuan", qwen2, {GATED}, NULL},
    {"exaone", exaone, {GATED}, NULL},
    {"exaone4", llama, {GATED, .qk_norm = true}, finish_llama},
    {"hunyuan_v1_dense", llama, {GATED, .qk_norm = true}, finish_llama},
    {"seed_oss", seed_oss, {GATED, .qkv_bias = true, .head_dim = 128}, NULL},
    {"ernie4_5", use_bias, {GATED, .tied = true}, finish_use_bias},
    {"olmo", llama, {GATED, .norm = NORM_LAYER_BARE}, finish_llama},
    {"olmo2", llama, {GATED, .wide_qk_norm = true}, finish_llama},
    {"olmo3", llama, {GATED, .wide_qk_norm = true}, finish_llama},
    {"cohere",
     cohere,
     {GATED, .tied = true, .norm = NORM_LAYER_WEIGHT, .norms = 1},
     finish_llama},
    {"cohere2",
     cohere,
     {GATED, .tied = true, .norm = NORM_LAYER_WEIGHT, .norms = 1},
     finish_llama},
    {"glm", glm, {GATED, .qkv_bias = true, .head_dim = 128}, NULL},
    {"glm4", glm, {GATED, .head_dim = 128, .norms = 4}, NULL},
    {"chatglm", chatglm, {GATED, .head_dim = 128}, NULL},
    {"qwen2", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"qwen", qwen2, {GATED, .qkv_bias = true}, finish_qwen},
    {"qwen2_vl", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"qwen2_5_vl", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"qwen2_vl_text", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"qwen2_5_vl_text", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"mimo", qwen2, {GATED, .qkv_bias = true}, NULL},
    {"qwen3", llama, {GATED, .qk_norm = true, .head_dim = 128}, finish_llama},
    {"qwen3_vl_text", llama, {GATED, .qk_norm = true, .head_dim = 128}, finish_llama},
    {"gemma", llama, {GEMMA}, finish_llama},
    {"gemma2", llama, {GEMMA, .norms = 4}, finish_llama},
    {"gemma3_text",
     llama,
     {GEMMA, .norms = 4, .qk_norm = true, .heads = 8, .kv_heads = 4, .vocab = 262208},
     finish_llama},
    {"starcoder2", use_bias, {LAYER_NORM, BIASED, .tied = true}, finish_use_bias},
    {"nemotron", llama, {LAYER_NORM}, finish_llama},
    {"arcee", llama, {.tied = false}, finish_llama},
    {"apertus", llama, {.qk_norm = true}, finish_apertus},
    {"bitnet", llama, {GATED, .tied = true}, finish_bitnet},
    {"telechat", telechat, {GATED, .out_bias = true}, finish_telechat},
    {"telechat2", glm, {GATED, .out_bias = true}, finish_telechat},
    {"persimmon", phi, {LAYER_NORM, BIASED, .qk_norm = true}, NULL},
    {"stablelm", stablelm, {GATED, LAYER_NORM}, finish_stablelm},
    {"phi",
     phi,
     {LAYER_NORM, BIASED, .norms = 1, .head_bias = true, .separate_gelu = true},
     NULL},
    {"mixtral", mixtral, {GATED}, finish_mixtral},
    {"granitemoe", mixtral, {GATED}, finish_mixtral},
    {"granitemoeshared", granite_shared, {GATED}, finish_granite_shared},
    {"phimoe", mixtral, {GATED, LAYER_NORM}, finish_mixtral},
    {"minimax_m2",
     mixtral,
     {GATED, .wide_qk_norm = true, .router_bias = true},
     finish_mixtral},
    {"gpt_oss",
     gpt_oss,
     {GATED, BIASED, .router_bias = true, .sinks = true, .head_dim = 64},
     finish_gpt_oss},
    {"olmoe", olmoe, {GATED, .wide_qk_norm = true}, finish_mixtral},
    {"flex_olmo", olmoe, {GATED, .wide_qk_norm = true}, finish_mixtral},
    {"cohere2_moe",
     cohere2_moe,
     {GATED, .tied = true, .norm = NORM_LAYER_WEIGHT, .norms = 1, .head_dim = 128},
     finish_cohere2_moe},
    {"afmoe",
     afmoe,
     {GATED, .norms = 4, .qk_norm = true, .attention_gate = true, .router_bias = true,
      .head_dim = 128, .dense_layers = 1},
     finish_deepseek},
    {"exaone_moe",
     bailing,
     {GATED, .qk_norm = true, .router_bias = true, .dense_layers = 1},
     finish_deepseek},
    {"llama4_text", llama4, {GATED, .head_dim = 128}, finish_llama4},
    {"qwen2_moe", qwen2_moe, {GATED, .qkv_bias = true}, finish_qwen_moe},
    {"qwen3_moe", qwen3_moe, {GATED, .qk_norm = true, .head_dim = 128}, finish_qwen_moe},
    {"qwen3_vl_moe_text",
     qwen3_moe,
     {GATED, .qk_norm = true, .head_dim = 128},
     finish_qwen_moe},
    {"ernie4_5_moe",
     ernie_moe,
     {GATED, .tied = true, .router_bias = true, .dense_layers = 1},
     finish_ernie_moe},
    {"hunyuan", hunyuan_moe, {GATED, .qk_norm = true}, finish_hunyuan_moe},
    {"hunyuan_v1_moe", hunyuan_moe, {GATED, .qk_norm = true}, finish_hunyuan_moe},
    {"bailing_moe", bailing, {GATED}, finish_deepseek},
    {"bailing_moe_v2",
     bailing,
     {GATED, .qk_norm = true, .router_bias = true},
     finish_deepseek},
    {"glm4_moe", glm4_moe, {GATED, .router_bias = true}, finish_deepseek},
    {"dots1", glm4_moe, {GATED, .qk_norm = true, .router_bias = true}, finish_deepseek},
    {"deepseek", glm4_moe, {GATED}, finish_deepseek},
    {"deepseek_v2", deepseek, {GATED}, finish_deepseek},
    {"deepseek_v3", deepseek, {GATED, .router_bias = true}, finish_deepseek},
    {"minicpm3", minicpm3, {GATED, .tied = true}, finish_minicpm3},
    {"kimi_k2", deepseek, {GATED, .router_bias = true}, finish_deepseek},
    {"glm4_moe_lite", deepseek, {GATED, .router_bias = true}, finish_deepseek},
    {"gpt_neox", qwen2, {LAYER_NORM, BIASED}, NULL},
};

#define N_FAMILIES (sizeof families / sizeof *families)

/* Models whose queries, keys and values are one matrix: transformers' (models/.../modeling_*.py:
 * c_attn, query_key_value, Wqkv, qkv_proj) and those with files of their own (modeling_*.py beside
 * their weights: query_key_value, c_attn, W_pack, wqkv).  TeleChat's has two. */
static const char *const joined_qkv[] = {
    "gpt2",       "gpt_bigcode", "gpt_neox", "bloom",           "falcon",
    "RefinedWeb", "mpt",         "dbrx",     "RefinedWebModel", "phi3",
    "persimmon",  "chatglm",     "qwen",     "baichuan",        "internlm2"};

int workload_qkv_products (const struct workload_model *m)
{
    for (size_t i = 0; i < sizeof joined_qkv / sizeof *joined_qkv; i++)
        if (strcmp (m->type, joined_qkv[i]) == 0)
            return 1;
    return 3;
}

const struct workload_family *workload_family_find (const char *type)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp (families[i].type, type) == 0)
            return &families[i];
    return workload_family_find_gpt (type);
}
