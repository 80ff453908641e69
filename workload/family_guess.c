/* Files of no known family: what none here has is refused by its name; the others are read as the
 * family whose fields they have. */
#include "workload/workload_private.h"

#include <string.h>

/* Lists with an entry a layer: the kinds of layers that are attention over everything. */
static bool is_attention (const json_t *kind)
{
    const char *s = json_string_value (kind);

    return json_integer_value (kind) == 1 ||
           (s && strstr (s, "attention") && !strstr (s, "linear"));
}

enum status workload_family_layers (const struct workload_reading *r)
{
    static const char *const lists[] = {"layer_types", "layers_block_type",
                                        "attn_type_list", "mixer_types"};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct json_at list = json_key (r->at, lists[i]);

        for (size_t k = 0; k < json_array_size (list.v); k++) {
            struct json_at one = json_entry (&list, k);

            if (!is_attention (one.v))
                return json_fail (&one, r->err,
                                  "attention, other layers are not supported");
        }
    }
    return ST_OK;
}

/* What none of the families here has: how a field's name begins. */
static const struct feature {
    const char *key, *what;
} others[] = {{"linear_attn_config", "linear attention of an unknown family"},
              {"layer_group_size", "linear attention of an unknown family"},
              {"attention_hidden_size", "recurrent layers"},
              {"lru_width", "recurrent layers"},
              {"decay_low_rank_dim", "recurrent layers"},
              {"H_cycles", "layers that are run several times"},
              {"total_ut_steps", "layers that are run several times"},
              {"loop_num", "layers that are run several times"},
              {"index_n_heads", "an indexer of sparse attention"},
              {"sparse_attention_config", "an indexer of sparse attention"},
              {"hidden_size_per_layer_input", "embeddings of every layer"},
              {"global_head_dim", "heads of two widths"},
              {"swa_num_key_value_heads", "layers with other heads"},
              {"attention_other_setting", "layers with other heads"},
              {"num_attention_heads_per_layer", "layers with other heads"},
              {"num_key_value_heads_per_layer", "layers with other heads"},
              {"num_kv_shared_layers", "layers that share keys and values"},
              {"attention_k_eq_v", "keys that are the values"},
              {"share_q_dim", "queries that go through a narrower width"},
              {"o_lora_rank", "an output projection of low rank"},
              {"cca_time0", "convolutions in attention"},
              {"lambda_std_dev", "differential attention"},
              {"keep_window_size", "a mask that is learned"},
              {"global_attn_every_n_layers", "ModernBERT's layers"},
              {"blocksparse_block_size", "block-sparse attention"},
              {"zero_expert_num", "experts that do nothing"},
              {"block_configs", "layers of different shapes"},
              {"ffn_multipliers", "layers of different shapes"},
              {"cross_attention_layers", "attention to an image"},
              {"type_vocab_size", "an encoder alone"},
              {"parallel_attn_mlp_res", "an MLP beside the experts"},
              {"residual_moe", "an MLP beside the experts"},
              {"moe_config", "experts of an unknown family"},
              {NULL, NULL}};

/* What only families that are known by their type have. */
static const struct feature some[] = {
    {"mamba", "state-space layers of an unknown family"},
    {"ssm_state_size", "state-space layers of an unknown family"},
    {"state_size", "state-space layers of an unknown family"},
    {"hybrid_override_pattern", "state-space layers of an unknown family"},
    {"linear_num_value_heads", "linear attention of an unknown family"},
    {"conv_L_cache", "convolution layers of an unknown family"},
    {"is_encoder_decoder", "an encoder with a decoder"},
    {"attention_probs_dropout_prob", "BERT's layers"},
    {"use_position_ids", "an MLP whose width counts both halves (Molmo)"},
    {NULL, NULL}};

/* Files that lie beside a config.json, by what only they have. */
static const struct feature files[] = {
    {"peft_type", "an adapter's file: take the config.json of its base model"},
    {"weight_map", "a list of weights: take the config.json beside it"},
    {"tokenizer_class", "a tokenizer's file: take the config.json beside it"},
    {"do_sample", "settings of generation: take the config.json beside it"},
    {"_diffusers_version", "a diffusion model: not supported"},
    {"zero_optimization", "DeepSpeed's configuration, no model's"},
    {"n_kv_heads", "a params.json: take the config.json of the Hugging Face hub"},
    {NULL, NULL}};

/* What stands there says that there is none. */
static bool says_no (const json_t *v)
{
    return !v || json_is_null (v) || json_is_false (v) ||
           (json_is_integer (v) && json_integer_value (v) == 0) ||
           (json_is_array (v) && json_array_size (v) == 0) ||
           (json_is_object (v) && json_object_size (v) == 0);
}

static enum status refuse_features (const struct workload_reading *r,
                                    const struct feature *f)
{
    for (; f->key; f++) {
        const char *key;
        json_t *value;

        json_object_foreach (r->at->v, key, value)
        {
            struct json_at at = json_key (r->at, key);

            REFUSE_AT (&at, r->err,
                       strncmp (key, f->key, strlen (f->key)) == 0 && !says_no (value),
                       "%s: not supported", f->what);
        }
    }
    return ST_OK;
}

static enum status refuse_file (const struct workload_reading *r)
{
    for (const struct feature *f = files; f->key; f++) {
        struct json_at at = json_key (r->at, f->key);

        REFUSE_AT (&at, r->err, at.v, "%s", f->what);
    }
    return ST_OK;
}

static enum status read_class (const struct workload_reading *r, const char **name)
{
    struct json_at list = json_key (r->at, "architectures"),
                   first = json_entry (&list, 0);

    *name = json_string_value (first.v);
    /* whose output does not follow the tokens before it */
    REFUSE_AT (&first, r->err, *name && strstr (*name, "MaskedLM"),
               "an encoder alone: not supported");
    return ST_OK;
}

/* Families by the fields that only they have, the first that fits. */
static const char *const shapes[][5] = {
    {"mamba_ssm", "ssm_cfg", "d_model", "n_layer", "vocab_size"},
    {"deepseek_v3", "kv_lora_rank", "n_routed_experts", "moe_intermediate_size"},
    {"deepseek_v2", "kv_lora_rank", "qk_rope_head_dim", "intermediate_size"},
    {"glm4_moe", "n_routed_experts", "moe_intermediate_size", "num_hidden_layers"},
    {"bailing_moe", "num_experts", "moe_intermediate_size", "num_shared_experts"},
    {"qwen2_moe", "num_experts", "moe_intermediate_size",
     "shared_expert_intermediate_size"},
    {"qwen3_moe", "num_experts", "moe_intermediate_size", "num_experts_per_tok"},
    {"ernie4_5_moe", "moe_num_experts", "moe_intermediate_size", "moe_k"},
    {"granitemoeshared", "num_local_experts", "shared_intermediate_size"},
    {"mixtral", "num_local_experts", "num_experts_per_tok", "intermediate_size"},
    {"hunyuan_v1_dense", "num_hidden_layers", "intermediate_size", "use_qk_norm"},
    {"hunyuan_v1_dense", "num_hidden_layers", "intermediate_size", "qk_norm"},
    {"hunyuan_v1_dense", "num_hidden_layers", "intermediate_size", "qk_layernorm"},
    {"qwen2", "num_hidden_layers", "intermediate_size", "use_qkv_bias"},
    {"qwen2", "num_hidden_layers", "intermediate_size", "qkv_bias"},
    {"llama", "num_hidden_layers", "num_attention_heads", "intermediate_size",
     "vocab_size"},
    {"gpt2", "n_embd", "n_layer", "n_head", "n_positions"},
};

static bool has_all (const struct json_at *at, const char *const key[4])
{
    for (int i = 0; i < 4 && key[i]; i++) {
        const json_t *v = json_key (at, key[i]).v;

        if (!json_has (at, key[i]) || json_is_false (v) ||
            (json_is_integer (v) && json_integer_value (v) == 0))
            return false;
    }
    return true;
}

static bool has_needed (const struct json_at *at, const struct workload_field *f)
{
    for (; f->key; f++)
        if (f->kind == FIELD_NEEDED && !json_has (at, f->key))
            return false;
    return true;
}

static bool is_field (const struct workload_field *f, const char *key)
{
    for (; f->key; f++)
        if (strcmp (f->key, key) == 0)
            return true;
    return false;
}

/* A number of experts, more than `least`, that is no field of the family: its key, or NULL. */
static const char *other_experts (const struct json_at *at,
                                  const struct workload_family *f, int least)
{
    const char *key;
    json_t *value;

    json_object_foreach (at->v, key,
                         value) if (strstr (key, "expert") &&
                                    json_integer_value (value) > least &&
                                    !(f && is_field (f->fields, key))) return key;
    return NULL;
}

static enum status refuse_experts (const struct workload_reading *r, const char *key)
{
    struct json_at at = json_key (r->at, key);

    return json_fail_text (&at, r->err, "experts of an unknown family: not supported");
}

static bool has_experts (const struct workload_field *f)
{
    for (; f->key; f++)
        if (f->offset == offsetof (struct workload_model, experts))
            return true;
    return false;
}

enum status workload_family_fits (const struct workload_reading *r,
                                  const struct workload_family *family)
{
    /* A dense model's file may say that it has one. */
    const char *experts =
        has_experts (family->fields) ? NULL : other_experts (r->at, family, 1);

    TRY (refuse_features (r, others));
    return experts ? refuse_experts (r, experts) : ST_OK;
}

const char *workload_family_variant (const struct json_at *at, const char *type)
{
    static const struct {
        const char *type, *key;
        bool says;
        const char *as;
    } variants[] = {{"gpt_bigcode", "multi_query", false, "gpt2"},
                    {"hyperclovax", "use_post_norm", true, "hyperclovax_post_norm"},
                    {"deepseek_v2", "use_mla", false, "deepseek"},
                    {"deepseek_v3", "use_mla", false, "deepseek"}};

    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const json_t *v = json_key (at, variants[i].key).v;

        if (strcmp (type, variants[i].type) == 0 && v && json_is_boolean (v) &&
            json_is_true (v) == variants[i].says)
            return variants[i].as;
    }
    return type;
}

/* The defaults of transformers' configurations (configuration_*.py). */
static const struct {
    const char *types; /* with a blank between them */
    int layers, hidden, heads, kv_heads, ffn, vocab;
} usual[] = {{"llama", 32, 4096, 32, 0, 11008, 32000},
             {"mistral ministral", 32, 4096, 32, 8, 14336, 32000},
             {"ministral3", 34, 4096, 32, 8, 14336, 131072},
             {"mixtral", 32, 4096, 32, 8, 14336, 32000},
             {"phi3", 32, 3072, 32, 0, 8192, 32064},
             {"qwen2", 32, 4096, 32, 32, 22016, 151936},
             {"qwen2_vl_text qwen2_5_vl_text", 80, 8192, 64, 8, 29568, 152064},
             {"qwen3 qwen3_vl_text", 32, 4096, 32, 32, 22016, 151936},
             {"gemma", 28, 3072, 16, 16, 24576, 256000},
             {"gemma2", 26, 2304, 8, 4, 9216, 256000},
             {"gemma3_text", 26, 2304, 8, 4, 9216, 262208},
             {"cohere cohere2", 40, 8192, 64, 0, 22528, 256000},
             {"glm4v_text", 40, 4096, 32, 2, 13696, 151552},
             {"opt", 12, 768, 12, 0, 3072, 50272}};

static void note_left_out (const struct workload_reading *r,
                           const struct workload_family *family, const char *type,
                           const struct workload_model *m)
{
    struct text list = {0};

    for (const struct workload_field *f = family->fields; f->key; f++) {
        int value = 0;

        if (f->kind == FIELD_NEEDED && !json_has (r->at, f->key))
            memcpy (&value, (const char *) m + f->offset, sizeof value);
        if (value > 0)
            text_add (&list, "%s%s %d", list.len > 0 ? ", " : "", f->key, value);
    }
    if (list.len > 0)
        notes_add (r->notes, "%s: left out, so as transformers has them for \"%s\": %s",
                   r->at->key, type, text_str (&list));
    text_free (&list);
}

void workload_family_usual (const struct workload_reading *r,
                            const struct workload_family *family,
                            struct workload_model *m)
{
    const char *type = m->type;

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (text_has_word (usual[i].types, type)) {
            m->layers = usual[i].layers;
            m->hidden = usual[i].hidden;
            m->heads = usual[i].heads;
            m->kv_heads = usual[i].kv_heads;
            m->ffn = usual[i].ffn;
            m->vocab = usual[i].vocab;
            m->positions = strcmp (type, "opt") == 0 ? 2048 : 0;
            note_left_out (r, family, type, m);
        }
}

/* A gated MLP has three matrices, one with another activation than SiLU often two. */
static void doubt_gate (const struct workload_reading *r,
                        const struct workload_family *like)
{
    struct json_at act = json_key (r->at, "hidden_act");
    const char *s = json_string_value (act.v);

    if (s && like->base.gated_mlp && !strstr (s, "silu") && !strstr (s, "swi"))
        notes_add (r->notes,
                   "hidden_act: with \"%.60s\" an MLP may have two matrices; three are "
                   "counted",
                   s);
}

/* Says as what a file is read, and why. */
static void note_guess (const struct workload_reading *r, const char *type,
                        const char *as, const char *why)
{
    int n = (int) strcspn (as, " ");

    if (type)
        notes_add (r->notes,
                   "model_type: \"%.60s\" is not known: read as \"%.*s\", whose "
                   "%s it has",
                   type, n, as, why);
    else
        notes_add (r->notes, "no model_type: read as \"%.*s\", whose %s it has", n, as,
                   why);
}

enum status workload_family_guess (const struct workload_reading *r, const char **type,
                                   const struct workload_family **family)
{
    struct json_at at = json_key (r->at, "model_type");
    const char *experts =
        NULL; /* what keeps the first family that fits from being the one */
    const char *name, *as;

    TRY (read_class (r, &name));
    *family = name && !json_has (r->at, "auto_map") /* code of the model's own */
                  ? workload_family_of_class (name, &as)
                  : NULL;
    if (*family && has_needed (r->at, (*family)->fields)) {
        note_guess (r, *type, as, "class");
        *type = as;
        return workload_family_fits (r, *family);
    }
    TRY (refuse_features (r, some));
    TRY (refuse_features (r, others));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct workload_family *like = workload_family_find (as = shapes[i][0]);
        const char *odd;

        if (!has_all (r->at, shapes[i] + 1))
            continue;
        if ((odd = other_experts (r->at, like, 0))) {
            experts = experts ? experts : odd;
            continue;
        }
        *family = like;
        if (*type || strcmp (as, "mamba_ssm") != 0) /* which never has one */
            note_guess (r, *type, as, "fields");
        *type = as;
        doubt_gate (r, like);
        return ST_OK;
    }
    experts = experts ? experts : other_experts (r->at, NULL, 0);
    if (experts)
        return refuse_experts (r, experts);
    TRY (refuse_file (r));
    return json_fail (&at, r->err,
                      "a known family (docs/model.md), or the fields of one");
}
