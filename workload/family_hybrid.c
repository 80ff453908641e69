/* Families whose layers are of several kinds: attention, linear mixers, MLPs and experts in an
 * order that a list, a pattern of letters or an interval gives, as transformers' configurations
 * read them (configuration_*.py of each family). */
#include "workload/workload_private.h"

#include <string.h>

/* Mixers of lists of kinds. */
static const struct {
    const char *word;
    unsigned parts;
} words[] = {{"full_attention", PART_ATTENTION},
             {"attention", PART_ATTENTION},
             {"linear_attention", PART_LINEAR},
             {"mamba", PART_LINEAR},
             {"conv", PART_LINEAR},
             {"mlp", PART_MLP},
             {"moe", PART_EXPERTS}};

/* The parts of every layer while they are read. */
struct layers {
    unsigned char parts[WORKLOAD_PATTERN_MAX];
};

/* A list with a word, or with 1 for attention and 0 for the other mixer, for every layer. */
static enum status read_list (const struct workload_reading *r, const char *key,
                              const struct workload_model *m, struct layers *l)
{
    struct json_at list = json_key (r->at, key);
    size_t n;

    TRY (json_want_array (&list, &n, r->err));
    json_each (&list, one) {
        const char *s = json_string_value (one.v);
        unsigned parts =
            json_is_integer (one.v) && json_integer_value (one.v) == 1   ? PART_ATTENTION
            : json_is_integer (one.v) && json_integer_value (one.v) == 0 ? PART_LINEAR
                                                                         : 0;

        for (size_t k = 0; s && k < sizeof words / sizeof *words; k++)
            if (strcmp (s, words[k].word) == 0)
                parts = words[k].parts;
        if (parts == 0)
            return json_fail (&one, r->err,
                              "a kind of layer (full_attention, linear_attention, mamba, "
                              "conv, mlp, moe)");
        if (one.index < (size_t) m->layers)
            l->parts[one.index] = (unsigned char) parts;
    }
    /* A shorter list of attention alone says that all are. */
    for (size_t i = n; i < (size_t) m->layers; i++)
        l->parts[i] = PART_ATTENTION;
    for (size_t i = 0; i < n && n != (size_t) m->layers; i++)
        REFUSE_AT (&list, r->err, n > (size_t) m->layers || l->parts[i] != PART_ATTENTION,
                   "%zu kinds for %d layers", n, m->layers);
    return ST_OK;
}

/* The numbers of the layers with attention; the others have the linear mixer. */
static enum status read_indices (const struct workload_reading *r, const char *key,
                                 const struct workload_model *m, struct layers *l)
{
    struct json_at list = json_key (r->at, key);

    memset (l->parts, PART_LINEAR, sizeof l->parts);
    if (json_has (r->at, key))
        TRY (json_want_array (&list, NULL, r->err));
    json_each (&list, one) {
        long long layer;

        TRY (json_want_int (&one, 0, m->layers - 1, &layer, r->err));
        l->parts[layer] = PART_ATTENTION;
    }
    return ST_OK;
}

/* Letters of Nemotron-H, or linkwise's own. */
static enum status read_letters (const struct workload_reading *r, const char *key,
                                 struct workload_model *m, struct layers *l)
{
    struct json_at at = json_key (r->at, key);
    const char *s;
    size_t n;

    TRY (json_want_string (&at, &s, r->err));
    n = strlen (s);
    if (m->layers == 0 && n > 0 && n <= WORKLOAD_PATTERN_MAX)
        m->layers = (int) n;
    REFUSE_AT (&at, r->err, n != (size_t) m->layers, "%zu letters for %d layers", n,
               m->layers);
    for (size_t i = 0; i < n; i++) {
        l->parts[i] = (unsigned char) workload_letter_parts (s[i]);
        REFUSE_AT (&at, r->err, l->parts[i] == 0, "letter %zu is of no kind of layer",
                   i + 1);
    }
    return ST_OK;
}

static char letter_of (unsigned parts)
{
    const char *letters = "*M-EalALp";

    while (*letters && workload_letter_parts (*letters) != parts)
        letters++;
    return *letters;
}

/* Write the pattern, unless no layer differs from those of other families. */
static enum status put_pattern (const struct workload_reading *r, const struct layers *l,
                                struct workload_model *m)
{
    bool plain = true;

    for (int i = 0; i < m->layers; i++)
        plain = plain && l->parts[i] == (m->experts > 0 ? WORKLOAD_EXPERT_PARTS
                                                        : WORKLOAD_DENSE_PARTS);
    if (plain) {
        m->linear = LINEAR_NONE;
        m->lin_heads = m->lin_width = m->lin_groups = m->lin_state = 0;
        m->lin_conv = m->lin_chunk = 0;
        return ST_OK;
    }
    for (int i = 0; i < m->layers; i++) {
        char letter = letter_of (l->parts[i]);
        size_t kinds = strlen (m->kinds);

        m->pattern[i] = letter;
        if (strchr (m->kinds, letter))
            continue;
        REFUSE_AT (r->at, r->err, kinds == WORKLOAD_KINDS,
                   "layers of more than %d kinds are not supported", WORKLOAD_KINDS);
        m->kinds[kinds] = letter;
    }
    return ST_OK;
}

static bool has_own (const struct workload_reading *r)
{
    return json_has (r->at, "layer_pattern");
}

/* The first of these lists that is there, with what follows each mixer; or as `parts` says. */
static enum status take_lists (const struct workload_reading *r, struct workload_model *m,
                               const char *list, const char *or_list, struct layers *l)
{
    const char *const lists[] = {list, or_list};

    if (has_own (r)) {
        TRY (read_letters (r, "layer_pattern", m, l));
        return put_pattern (r, l, m);
    }
    for (int i = 0; i < 2; i++)
        if (lists[i] && json_is_array (json_key (r->at, lists[i]).v)) {
            TRY (read_list (r, lists[i], m, l));
            break;
        }
    /* Each mixer's layer has an MLP, or experts where the model has any. */
    for (int i = 0; i < m->layers; i++)
        l->parts[i] |= m->experts > 0 && i >= m->dense_layers ? PART_EXPERTS : PART_MLP;
    return put_pattern (r, l, m);
}

/* Widths of a mixer that has heads: what is there, and that heads share groups evenly. */
static enum status check_mixer (const struct workload_reading *r,
                                const struct workload_model *m)
{
    if (!workload_has_parts (m, PART_LINEAR))
        return ST_OK;
    REFUSE_AT (r->at, r->err,
               m->lin_heads < 1 || m->lin_width < 1 || m->lin_groups < 1 ||
                   m->lin_state < 1,
               "the linear mixer's heads, their width, its groups and the width of its "
               "state are needed");
    REFUSE_AT (r->at, r->err, m->lin_heads % m->lin_groups != 0,
               "%d groups do not divide %d heads of the linear mixer", m->lin_groups,
               m->lin_heads);
    return ST_OK;
}

/* A head's width is the inner one's share; that is hidden times `expand` unless told. */
static enum status share_inner (const struct workload_reading *r, const char *key,
                                long long inner, struct workload_model *m)
{
    struct json_at at = json_key (r->at, key);

    if (m->lin_width == 0 && m->lin_heads > 0 && inner % m->lin_heads == 0)
        m->lin_width = (int) (inner / m->lin_heads);
    if ((long long) m->lin_width * m->lin_heads == inner)
        return ST_OK;
    return json_fail_text (&at, r->err,
                           "%d heads of width %d are not the inner width of %lld",
                           m->lin_heads, m->lin_width, inner);
}

static long long expanded (const struct workload_reading *r, const char *key,
                           const struct workload_model *m)
{
    long long by = json_has (r->at, key) ? json_member_int (r->at->v, key) : 2;

    if (has_own (r)) /* written with what followed from it */
        return (long long) m->lin_heads * m->lin_width;
    return by > 0 && by <= WIDTH_MAX ? by * m->hidden : 0;
}

/* ---- the families ---- */

#define SSM_FIELDS                                                                \
    COUNT ("mamba_n_heads", lin_heads), AUTO ("mamba_d_head", lin_width),         \
        COUNT ("mamba_n_groups", lin_groups), COUNT ("mamba_d_state", lin_state), \
        COUNT ("mamba_d_conv", lin_conv), COUNT ("mamba_chunk_size", lin_chunk),  \
        FLAG ("mamba_conv_bias", lin_conv_bias), FLAG ("mamba_proj_bias", lin_bias)

static const struct workload_field mamba2[] =
    FIELDS (NEEDED ("hidden_size", hidden), NEEDED ("num_hidden_layers", layers),
            NEEDED ("vocab_size", vocab), FLAG ("tie_word_embeddings", tied),
            COUNT ("num_heads", lin_heads), COUNT ("head_dim", lin_width),
            COUNT ("n_groups", lin_groups), COUNT ("state_size", lin_state),
            COUNT ("conv_kernel", lin_conv), COUNT ("chunk_size", lin_chunk),
            FLAG ("use_conv_bias", lin_conv_bias), FLAG ("use_bias", lin_bias),
            FLAG ("rms_norm", lin_norm));

/* What its authors' own code writes: what it does not say is as that code has it. */
static const struct workload_field mamba_ssm[] = FIELDS (
    NEEDED ("d_model", hidden), NEEDED ("n_layer", layers), NEEDED ("vocab_size", vocab),
    FLAG ("tie_embeddings", tied), COUNT_IN ("ssm_cfg", "headdim", lin_width),
    COUNT_IN ("ssm_cfg", "ngroups", lin_groups),
    COUNT_IN ("ssm_cfg", "d_state", lin_state), COUNT_IN ("ssm_cfg", "d_conv", lin_conv),
    COUNT_IN ("ssm_cfg", "chunk_size", lin_chunk));

/* The number of layers is the pattern's where it is not told. */
static const struct workload_field nemotron_h[] =
    FIELDS (NEEDED ("hidden_size", hidden), COUNT ("num_hidden_layers", layers),
            COUNT ("num_attention_heads", heads), COUNT ("num_key_value_heads", kv_heads),
            COUNT ("head_dim", head_dim), NEEDED ("vocab_size", vocab),
            FLAG ("tie_word_embeddings", tied), COUNT ("intermediate_size", ffn),
            ATTENTION_BIAS ("attention_bias"), FLAG ("mlp_bias", mlp_bias),
            COUNT ("mamba_num_heads", lin_heads), COUNT ("mamba_head_dim", lin_width),
            OLDER ("mamba_n_groups", lin_groups), COUNT ("n_groups", lin_groups),
            COUNT ("ssm_state_size", lin_state), OLDER ("mamba_d_conv", lin_conv),
            COUNT ("conv_kernel", lin_conv), OLDER ("mamba_chunk_size", lin_chunk),
            COUNT ("chunk_size", lin_chunk), FLAG ("use_conv_bias", lin_conv_bias),
            FLAG ("use_bias", lin_bias), SIZE ("n_routed_experts", experts),
            SIZE ("n_shared_experts", shared_experts),
            SIZE ("num_experts_per_tok", top_k), SIZE ("n_group", expert_groups),
            SIZE ("topk_group", top_groups), SIZE ("moe_intermediate_size", expert_ffn),
            SIZE ("moe_shared_expert_intermediate_size", shared_ffn));

static const struct workload_field bamba[] = FIELDS (LLAMA_SHAPE, LLAMA_MLP, SSM_FIELDS);

static const struct workload_field granite_hybrid[] =
    FIELDS (LLAMA_SHAPE, GRANITE_MLP, SSM_FIELDS);

static const struct workload_field falcon_h1[] =
    FIELDS (LLAMA_SHAPE, LLAMA_MLP, ATTENTION_BIAS ("attention_bias"),
            FLAG ("mlp_bias", mlp_bias), FLAG ("mamba_rms_norm", lin_norm), SSM_FIELDS);

static const struct workload_field qwen3_next[] = FIELDS (
    LLAMA_SHAPE, SIZE ("intermediate_size", ffn), ATTENTION_BIAS ("attention_bias"),
    SIZE ("num_experts", experts), SIZE ("num_experts_per_tok", top_k),
    SIZE ("moe_intermediate_size", expert_ffn),
    SIZE ("shared_expert_intermediate_size", shared_ffn),
    COUNT ("linear_num_value_heads", lin_heads),
    COUNT ("linear_value_head_dim", lin_width),
    COUNT ("linear_num_key_heads", lin_groups), COUNT ("linear_key_head_dim", lin_state),
    COUNT ("linear_conv_kernel_dim", lin_conv));

static const struct workload_field minimax[] =
    FIELDS (LLAMA_SHAPE, MIXTRAL_EXPERTS, COUNT ("block_size", lin_chunk));

static const struct workload_field lfm2[] =
    FIELDS (LLAMA_SHAPE, OLDER ("block_ff_dim", ffn), LLAMA_MLP,
            COUNT ("conv_L_cache", lin_conv), FLAG ("conv_bias", lin_bias));

static const struct workload_field lfm2_moe[] = FIELDS (
    LLAMA_SHAPE, LLAMA_MLP, COUNT ("conv_L_cache", lin_conv),
    FLAG ("conv_bias", lin_bias), OWN_EXPERTS, SIZE ("num_dense_layers", dense_layers),
    FLAG ("use_expert_bias", router_bias));

static enum status finish_mamba2 (const struct workload_reading *r,
                                  struct workload_model *m)
{
    struct layers l;

    memset (l.parts, PART_LINEAR, sizeof l.parts);
    TRY (put_pattern (r, &l, m));
    TRY (share_inner (r, "num_heads", expanded (r, "expand", m), m));
    return check_mixer (r, m);
}

/* Mamba-2 alone, which is then the same as mamba2. */
static enum status finish_mamba_ssm (const struct workload_reading *r,
                                     struct workload_model *m)
{
    struct json_at cfg = json_key (r->at, "ssm_cfg"), layer = json_key (&cfg, "layer"),
                   attention = json_key (r->at, "attn_layer_idx"),
                   mlp = json_key (r->at, "d_intermediate");
    const char *kind = json_string_value (layer.v);
    int unit = 8, expand = 2;
    struct layers l;

    REFUSE_AT (&cfg, r->err, !kind || strcmp (kind, "Mamba2") != 0,
               "selective scans (Mamba 1) are not supported");
    REFUSE_AT (json_integer_value (mlp.v) > 0 ? &mlp : &attention, r->err,
               json_array_size (attention.v) > 0 || json_integer_value (mlp.v) > 0,
               "layers beside Mamba-2 are not supported in this format");
    TRY_MEMBER (json_get_int, r->at, "pad_vocab_size_multiple", 1, VOCAB_MAX, &unit,
                r->err);
    TRY_MEMBER (json_get_int, &cfg, "expand", 1, 64, &expand, r->err);
    m->vocab += (unit - m->vocab % unit) % unit;
    m->lin_heads = (int) ((long long) expand * m->hidden / m->lin_width);
    memset (l.parts, PART_LINEAR, sizeof l.parts);
    TRY (put_pattern (r, &l, m));
    TRY (share_inner (r, "ssm_cfg", (long long) expand * m->hidden, m));
    strcpy (m->type, "mamba2");
    return check_mixer (r, m);
}

static enum status finish_nemotron_h (const struct workload_reading *r,
                                      struct workload_model *m)
{
    static const char *const lists[] = {"layers_block_type", "layer_types"};
    const char *letters = has_own (r) ? "layer_pattern" : "hybrid_override_pattern";
    struct json_at latent = json_key (r->at, "moe_latent_size");
    struct layers l = {{0}};
    bool listed = false;

    REFUSE_AT (&latent, r->err, json_is_integer (latent.v),
               "experts of a narrower width than the layers are not supported");
    for (int i = 0; i < 2 && !json_has (r->at, letters) && !listed; i++) {
        size_t n = json_array_size (json_key (r->at, lists[i]).v);

        listed = n > 0;
        if (listed && m->layers == 0 && n <= WORKLOAD_PATTERN_MAX)
            m->layers = (int) n;
        if (listed)
            TRY (read_list (r, lists[i], m, &l));
    }
    if (!listed)
        TRY (read_letters (r, letters, m, &l));
    TRY (put_pattern (r, &l, m));
    if (!workload_has_parts (m, PART_MLP))
        m->ffn = 0;
    if (!workload_has_parts (m, PART_EXPERTS))
        m->experts = m->top_k = m->expert_ffn = m->shared_ffn = m->shared_experts =
            m->expert_groups = m->top_groups = 0;
    m->router_bias = m->experts > 0;
    return check_mixer (r, m);
}

static enum status finish_bamba (const struct workload_reading *r,
                                 struct workload_model *m)
{
    struct layers l;

    TRY (read_indices (r, "attn_layer_indices", m, &l));
    TRY (take_lists (r, m, NULL, NULL, &l));
    TRY (share_inner (r, "mamba_n_heads", expanded (r, "mamba_expand", m), m));
    return check_mixer (r, m);
}

static enum status finish_granite_hybrid (const struct workload_reading *r,
                                          struct workload_model *m)
{
    struct layers l;

    /* Without state-space layers a file need not speak of them at all. */
    memset (l.parts, json_has (r->at, "mamba_n_heads") ? PART_LINEAR : PART_ATTENTION,
            sizeof l.parts);
    TRY (take_lists (r, m, "layer_types", "layers_block_type", &l));
    m->shared_ffn = m->experts > 0 ? m->ffn : 0;
    if (workload_has_parts (m, PART_LINEAR))
        TRY (share_inner (r, "mamba_n_heads", expanded (r, "mamba_expand", m), m));
    return check_mixer (r, m);
}

static enum status finish_falcon_h1 (const struct workload_reading *r,
                                     struct workload_model *m)
{
    struct json_at told = json_key (r->at, "mamba_d_ssm"),
                   biased = json_key (r->at, "projectors_bias");
    long long inner = told.v ? json_integer_value (told.v) : 1024;
    struct layers l;

    REFUSE_AT (&biased, r->err, json_is_true (biased.v), "not supported");
    memset (l.parts, PART_ATTENTION | PART_LINEAR | PART_MLP, sizeof l.parts);
    TRY (put_pattern (r, &l, m));
    if (has_own (r) || inner == 0)
        inner = expanded (r, "mamba_expand", m);
    TRY (share_inner (r, "mamba_n_heads", inner, m));
    return check_mixer (r, m);
}

/* Every full_attention_interval-th layer has attention, unless a list says which. */
static enum status finish_qwen3_next (const struct workload_reading *r,
                                      struct workload_model *m)
{
    struct json_at step = json_key (r->at, "decoder_sparse_step"),
                   dense = json_key (r->at, "mlp_only_layers");
    int every = 4;
    struct layers l;

    TRY_MEMBER (json_get_int, r->at, "full_attention_interval", 1, LAYERS_MAX, &every,
                r->err);
    REFUSE_AT (&step, r->err, json_integer_value (step.v) > 1,
               "layers without experts in between are not supported");
    REFUSE_AT (&dense, r->err, json_array_size (dense.v) > 0,
               "layers without experts are not supported here");
    for (int i = 0; i < WORKLOAD_PATTERN_MAX; i++)
        l.parts[i] = (i + 1) % every == 0 ? PART_ATTENTION : PART_LINEAR;
    TRY (take_lists (r, m, "layer_types", "layers_block_type", &l));
    m->ffn = m->experts > 0 ? 0 : m->ffn;
    m->shared_gate = m->shared_ffn > 0;
    return check_mixer (r, m);
}

/* MiniMax-Text-01 and M1 have lightning attention; MiniMax-M2, which had the same type at first,
 * has attention alone, norms on queries and keys, and a router with a bias. */
static enum status finish_minimax (const struct workload_reading *r,
                                   struct workload_model *m)
{
    struct layers l;

    memset (l.parts, PART_ATTENTION, sizeof l.parts);
    TRY (take_lists (r, m, "layer_types", "attn_type_list", &l));
    if (!m->pattern[0]) {
        m->wide_qk_norm = m->router_bias = true;
        return ST_OK;
    }
    m->lin_heads = m->lin_groups = m->heads;
    m->lin_width = m->lin_state = m->head_dim > 0 ? m->head_dim
                                  : m->heads > 0  ? m->hidden / m->heads
                                                  : 0;
    return check_mixer (r, m);
}

/* The MLP's width is two thirds of what is told, rounded up, unless told otherwise. */
static void adjust_ffn (const struct workload_reading *r, struct workload_model *m)
{
    struct json_at adjusted = json_key (r->at, "block_auto_adjust_ff_dim"),
                   factor = json_key (r->at, "block_ffn_dim_multiplier");
    long long unit = json_has (r->at, "block_multiple_of")
                         ? json_member_int (r->at->v, "block_multiple_of")
                         : 256;
    double ffn = (double) (2LL * m->ffn / 3);

    if (json_is_false (adjusted.v) || has_own (r))
        return;
    if (json_is_number (factor.v) && json_number_value (factor.v) > 0.0 &&
        json_number_value (factor.v) < 64.0)
        ffn *= json_number_value (factor.v);
    if (unit > 0 && unit < VOCAB_MAX)
        m->ffn = (int) (((long long) ffn + unit - 1) / unit * unit);
}

static enum status finish_lfm2 (const struct workload_reading *r,
                                struct workload_model *m)
{
    struct layers l;

    memset (l.parts, PART_ATTENTION, sizeof l.parts);
    if (json_has (r->at, "full_attn_idxs"))
        TRY (read_indices (r, "full_attn_idxs", m, &l));
    m->lin_conv_bias = m->lin_bias;
    m->lin_heads = m->hidden;
    m->lin_width = 1;
    if (m->experts == 0)
        adjust_ffn (r, m);
    TRY (take_lists (r, m, "layer_types", NULL, &l));
    m->dense_layers = 0; /* the pattern says it */
    return ST_OK;
}

#define SSM(HEADS, WIDTH, GROUPS, STATE, CHUNK)                                         \
    .linear = LINEAR_SSM, .lin_heads = HEADS, .lin_width = WIDTH, .lin_groups = GROUPS, \
    .lin_state = STATE, .lin_conv = 4, .lin_chunk = CHUNK, .lin_conv_bias = true
/* Chunks of the published kernels (flash-linear-attention). */
#define DELTA                                                                    \
    .linear = LINEAR_DELTA, .lin_heads = 32, .lin_width = 128, .lin_groups = 16, \
    .lin_state = 128, .lin_conv = 4, .lin_chunk = 64
#define LIGHTNING .linear = LINEAR_LIGHTNING, .lin_chunk = 256, GATED

const struct workload_family workload_families_hybrid[] = {
    FAMILY ("mamba2", mamba2, finish_mamba2, SSM (128, 64, 8, 128, 256),
            .lin_norm = true),
    FAMILY ("mamba_ssm", mamba_ssm, finish_mamba_ssm, SSM (0, 64, 1, 128, 256),
            .lin_norm = true, .tied = true),
    FAMILY ("nemotron_h", nemotron_h, finish_nemotron_h, SSM (128, 64, 8, 128, 128),
            .lin_norm = true, .heads = 32, .kv_heads = 8, .head_dim = 128, .ffn = 21504),
    FAMILY ("bamba", bamba, finish_bamba, SSM (128, 0, 1, 256, 256), .lin_norm = true,
            GATED),
    FAMILY ("granitemoehybrid", granite_hybrid, finish_granite_hybrid,
            SSM (128, 0, 1, 256, 256), .lin_norm = true, GATED),
    FAMILY ("falcon_h1", falcon_h1, finish_falcon_h1, SSM (128, 0, 1, 256, 256), GATED),
    FAMILY ("qwen3_next qwen3_5_text qwen3_5_moe_text", qwen3_next, finish_qwen3_next,
            DELTA, GATED, .qk_norm = true, .attention_gate = true, .head_dim = 256),
    FAMILY ("olmo_hybrid", qwen3_next, finish_qwen3_next, DELTA, GATED,
            .wide_qk_norm = true),
    FAMILY ("minimax minimax_text_01 minimax_m1", minimax, finish_minimax, LIGHTNING),
    FAMILY ("lfm2", lfm2, finish_lfm2, .linear = LINEAR_CONV, .lin_conv = 3, GATED,
            .qk_norm = true, .tied = true),
    FAMILY ("lfm2_moe", lfm2_moe, finish_lfm2, .linear = LINEAR_CONV, .lin_conv = 3,
            GATED, .qk_norm = true, .tied = true, .router_bias = true, .dense_layers = 2),
    {.types = NULL}};
