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
                                        "attn_type_list"};

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

/* What an unknown model_type has that no family here has. */
static const struct {
    const char *key, *what;
} others[] = {
    {"mamba_d_state", "state-space layers of an unknown family"},
    {"ssm_state_size", "state-space layers of an unknown family"},
    {"state_size", "state-space layers of an unknown family"},
    {"hybrid_override_pattern", "state-space layers of an unknown family"},
    {"linear_num_value_heads", "linear attention of an unknown family"},
    {"linear_attn_config", "linear attention of an unknown family"},
    {"attention_hidden_size", "recurrent layers"},
    {"lru_width", "recurrent layers"},
    {"decay_low_rank_dim", "recurrent layers"},
    {"conv_L_cache", "convolution layers of an unknown family"},
    {"index_n_heads", "an indexer of sparse attention"},
    {"hidden_size_per_layer_input", "embeddings of every layer"},
    {"global_head_dim", "heads of two widths"},
    {"swa_num_key_value_heads", "layers with other heads"},
    {"attention_other_setting", "layers with other heads"},
    {"blocksparse_block_size", "block-sparse attention"},
    {"zero_expert_num", "experts that do nothing"},
    {"block_configs", "layers of different shapes"},
    {"ffn_multipliers", "layers of different shapes"},
    {"cross_attention_layers", "attention to an image"},
    {"type_vocab_size", "an encoder alone"},
    {"is_encoder_decoder", "an encoder with a decoder"},
    {"parallel_attn_mlp_res", "an MLP beside the experts"},
};

static enum status refuse_others (const struct workload_reading *r)
{
    struct json_at list = json_key (r->at, "architectures"),
                   first = json_entry (&list, 0);
    const char *s = json_string_value (first.v);

    /* whose output does not follow the tokens before it */
    REFUSE_AT (&first, r->err, s && strstr (s, "MaskedLM"),
               "an encoder alone: not supported");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct json_at at = json_key (r->at, others[i].key);

        REFUSE_AT (&at, r->err,
                   json_has (r->at, others[i].key) && !json_is_false (at.v) &&
                       !(json_is_integer (at.v) && json_integer_value (at.v) == 0),
                   "%s: not supported", others[i].what);
    }
    return ST_OK;
}

/* Families by the fields that only they have, the first that fits. */
static const char *const shapes[][5] = {
    {"mamba_ssm", "ssm_cfg", "d_model", "n_layer", "vocab_size"},
    {"deepseek_v3", "kv_lora_rank", "n_routed_experts", "moe_intermediate_size"},
    {"deepseek_v2", "kv_lora_rank", "qk_rope_head_dim", "intermediate_size"},
    {"glm4_moe", "n_routed_experts", "moe_intermediate_size", "num_hidden_layers"},
    {"qwen3_moe", "num_experts", "moe_intermediate_size", "num_experts_per_tok"},
    {"mixtral", "num_local_experts", "num_experts_per_tok", "intermediate_size"},
    {"llama", "num_hidden_layers", "num_attention_heads", "intermediate_size",
     "vocab_size"},
    {"gpt2", "n_embd", "n_layer", "n_head", "n_positions"},
};

static bool has_all (const struct json_at *at, const char *const key[4])
{
    for (int i = 0; i < 4; i++)
        if (key[i] && !json_has (at, key[i]))
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

/* A number of experts that is no field of the family. */
static bool has_other_experts (const struct json_at *at, const struct workload_family *f)
{
    const char *key;
    json_t *value;

    json_object_foreach (at->v, key, value) if (strstr (key, "expert") &&
                                                json_integer_value (value) > 0 &&
                                                !is_field (f->fields, key)) return true;
    return false;
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

enum status workload_family_guess (const struct workload_reading *r, const char **type,
                                   const struct workload_family **family)
{
    struct json_at at = json_key (r->at, "model_type");

    TRY (refuse_others (r));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *as = shapes[i][0];
        const struct workload_family *like = workload_family_find (as);

        if (!has_all (r->at, shapes[i] + 1) || has_other_experts (r->at, like))
            continue;
        *family = like;
        if (!*type && strcmp (as, "mamba_ssm") != 0) /* which never has one */
            notes_add (r->notes, "no %s: read as \"%s\", whose fields it has", at.key,
                       as);
        else if (*type)
            notes_add (r->notes,
                       "%s: \"%.60s\" is not known: read as \"%s\", whose fields it has",
                       at.key, *type, as);
        *type = as;
        doubt_gate (r, like);
        return ST_OK;
    }
    return json_fail (&at, r->err,
                      "a known family (docs/model.md), or the fields of one");
}
