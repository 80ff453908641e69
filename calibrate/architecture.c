/* The architecture of a measured run.
 *
 * A row gives sizes, not the family.  The family comes from the model's name; notes under
 * Megatron's option names overrule it; where neither says, the parameter count does. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double stated_params (const struct row *r)
{
    double x = strtod (calibrate_cell (r, "params_b"), NULL);

    return x < 1e5 ? x * 1e9 : x; /* written in full */
}

/* The same, or by the size in its name, unless that is a preset's, which the row contradicts. */
static double counted_params (const struct row *r)
{
    const char *name = calibrate_cell (r, "model");
    double stated = stated_params (r);

    return stated > 0                     ? stated
           : workload_preset_meant (name) ? 0.0
                                          : workload_name_params (name);
}

/* What a name says about the parts that sizes leave open. */
struct family {
    const char *word;           /* in the model's name */
    int vocab;                  /* usual */
    struct workload_model base; /* positions: 1 where they are learned */
};

#define VOCAB_USUAL 32000 /* of other families */

#define GATED .gated_mlp = true
#define BIASED .qkv_bias = true, .out_bias = true, .mlp_bias = true
#define GPT2                                                                   \
    .type = "gpt2", BIASED, .norm = NORM_LAYER, .tied = true, .dropout = true, \
    .positions = 1

/* The first that fits. */
static const struct family families[] = {
    {"bert", 30522, {GPT2}},
    {"bloom",
     250880,
     {.type = "bloom", .tied = true, BIASED, .norm = NORM_LAYER, .embedding_norm = true}},
    {"mt-nlg", 50257, {GPT2}},
    {"mpt", 50432, {.type = "gpt2", .tied = true, .norm = NORM_LAYER, .positions = 1}},
    {"falcon", 65024, {.type = "falcon", .tied = true, .norm = NORM_LAYER}},
    {"neox", 50432, {.type = "gpt_neox", BIASED, .norm = NORM_LAYER}},
    {"stablelm", 50432, {.type = "gpt_neox", BIASED, .norm = NORM_LAYER}},
    {"phi", 51200, {.type = "gpt_neox", BIASED, .norm = NORM_LAYER}},
    {"t5", 32128, {.type = "t5", GATED, .dropout = true}},
    {"nemotron", 256000, {.type = "gpt2", .norm = NORM_LAYER}},
    {"gpt oss", 0, {.type = ""}},
    {"kimi", 163840, {.type = "deepseek_v3", GATED}},
    {"deepseek", 129280, {.type = "deepseek_v3", GATED}},
    {"gpt2", 50257, {GPT2, .separate_gelu = true}},
    {"gpt-2", 50257, {GPT2, .separate_gelu = true}},
    {"gpt", 50257, {GPT2}},
    {"moe/", 50257, {GPT2}},
    {"mixtral", 32000, {.type = "llama", GATED}},
    {"llama", 32000, {.type = "llama", GATED}},
    {"internlm", 103168, {.type = "llama", GATED}},
    {"mistral", 32000, {.type = "llama", GATED}},
    {"qwen3", 151936, {.type = "qwen3", GATED, .qk_norm = true}},
    {"qwen", 151936, {.type = "qwen2", GATED, .qkv_bias = true}},
    {"gemma", 256000, {.type = "gemma", GATED, .tied = true}},
};

/* What a model's name calls its sizes: "13B (40 layers, 5120 hidden)", "hidden size 5120". */
static const struct {
    const char *column, *words;
} size_words[] = {{"layers", "layer layers blocks"},
                  {"hidden", "hidden width wide"},
                  {"heads", "head heads"}};

/* Is it of some layers alone, "8 layers frozen", "20 layers per stage", or of a head's width?
 * @param[in] s  what follows the word */
static bool is_partial (const char *word, const char *s)
{
    char next[CALIBRATE_ITEM];
    size_t n = calibrate_next_word (s, next) ? strlen (next) : 0;

    return (n > 2 && strcmp (next + n - 2, "ed") == 0) ||
           (n > 0 && text_has_word ("per each frozen trainable only", next)) ||
           (n > 0 && strcmp (word, "head") == 0 &&
            text_has_word ("dim dims dimension size", next));
}

/* A size that stands in a part of the name, before what it is of or, where the part begins with
 * that, behind it, "hidden size 5120".  @return 0: none does, or more is said of it */
static int size_in (const char *part, const char *words)
{
    char word[CALIBRATE_ITEM];
    int before = 0, number = 0;
    bool named = false, first = true;

    for (const char *s = part; (s = calibrate_next_word (s, word)); first = false) {
        number = isdigit ((unsigned char) word[0]) ? atoi (word) : 0;
        if (named && number > 0)
            return number;
        if (text_has_word ("x kv gqa mqa", word)) /* "4 x 20 layers", "8 kv heads" */
            return 0;
        if (text_has_word (words, word) && !is_partial (word, s)) {
            if (before > 0)
                return before;
            named = named || first;
        }
        before = number;
    }
    return 0;
}

/* A size that the row states, in its column or in the model's name. */
static int size_stated (const struct row *r, const char *column, int absent)
{
    const char *name = calibrate_cell (r, "model"), *words = NULL;
    char part[CALIBRATE_ITEM];
    int said = 0;

    for (size_t i = 0; i < COUNT_OF (size_words); i++)
        words = strcmp (size_words[i].column, column) == 0 ? size_words[i].words : words;
    while (words && said == 0 && *name) {
        size_t n = strcspn (name, ",;()/|");

        snprintf (part, sizeof part, "%.*s", (int) n, name);
        said = size_in (part, words);
        name += n + (name[n] != '\0');
    }
    return calibrate_whole (r, column, said > 0 ? said : absent);
}

/* The preset that the name means, or the name with the row's count of parameters. */
static const struct workload_model *named (const struct row *r, const char *name)
{
    const struct workload_model *preset = workload_preset_meant (name);
    char with_size[256];

    if (preset || stated_params (r) <= 0 || workload_name_params (name) > 0)
        return preset;
    snprintf (with_size, sizeof with_size, "%.200s-%.4gb", name, stated_params (r) / 1e9);
    return workload_preset_meant (with_size);
}

/* The experts that the row states; one alone is an MLP.  @return -1: in an unknown form */
static int stated_experts (const struct row *r)
{
    int n = calibrate_note_int (r, "num-experts", 0);

    return n == 1 ? 0 : n;
}

/* The preset that the name means, where the row leaves a part of the model's shape open, or all,
 * and what it states is the preset's.  Of one with experts, whose form a row has no columns for,
 * that is the number of layers alone: a cut-down proxy is another model.  A vocabulary may be
 * padded. */
static bool is_preset (const struct row *r, const char *name, struct workload_model *m)
{
    const struct workload_model *preset = named (r, name);
    bool open = calibrate_cell (r, "vocab")[0] == '\0', same = true;

    if (!preset || (preset->experts == 0 && stated_experts (r) != 0))
        return false;

    const struct {
        const char *name;
        int is;
    } size[] = {{"layers", preset->layers},
                {"hidden", preset->hidden},
                {"heads", preset->heads},
                {"kv_heads", preset->kv_heads},
                {"ffn", preset->ffn}};

    for (size_t i = 0; i < (preset->experts > 0 ? 1 : COUNT_OF (size)); i++) {
        same = same && size_stated (r, size[i].name, size[i].is) == size[i].is;
        open = open || calibrate_cell (r, size[i].name)[0] == '\0';
    }
    if (!same || !(open || preset->experts > 0))
        return false;
    *m = *preset;
    if (m->positions > 0 && calibrate_whole (r, "seq", 0) > m->positions)
        m->positions = calibrate_whole (r, "seq", 0); /* it ran, so there are as many */
    m->vocab = calibrate_whole (r, "vocab", preset->vocab);
    return m->vocab > 0 && m->vocab <= 1 << 24;
}

/* A source's heads that do not divide hidden cannot have run (frameworks refuse them): the
 * nearest number that does, with heads of a multiple of 8, as kernels want them. */
static int nearest_heads (int hidden, int stated)
{
    int best = 0;

    for (int heads = 1; heads <= hidden / 8; heads++)
        if (hidden % heads == 0 && hidden / heads % 8 == 0 &&
            (best == 0 || abs (heads - stated) < abs (best - stated)))
            best = heads;
    return best > 0 ? best : stated;
}

/* An MLP's width: 4 h, or of a gated one, whose three matrices are as large as two of these, 8/3 h
 * in whole blocks of 256, as Llama has it. */
static int usual_ffn (const struct family *f, int hidden)
{
    return f && f->base.gated_mlp ? (8 * hidden / 3 + 255) / 256 * 256 : 4 * hidden;
}

/* Heads of 128, in small models of 64; as many as those of keys and values where they are more. */
static int usual_heads (const struct row *r, int hidden)
{
    int width = hidden % 128 == 0 && hidden > 1024 ? 128 : 64,
        heads = hidden % width == 0 ? hidden / width : 0,
        shared = calibrate_whole (r, "kv_heads", heads);

    return shared > heads ? shared : heads;
}

/* With a shape of the same count runs are missed by 11 instead of 8 % (docs/accuracy.md). */
#define SPREAD_COUNTED 0.1
/* A vocabulary that nobody states may be half or twice of what is usual. */
#define SPREAD_VOCAB 0.7

/* Layers and width of a model whose parameters alone are known, or of these the one that is not
 * stated.  Models are 128 times as wide as deep from 5e9 on, 80 times below (the sizes of GPT-3,
 * OPT and Llama); with the usual attention and MLP a layer has 12 h^2.
 * @param[in]     r  whose stages share the layers, and tensor-parallel ranks the heads
 * @param[in,out] layers, hidden  0: open */
static void usual_shape (const struct row *r, int vocab, int *layers, int *hidden)
{
    double params = counted_params (r), aspect = params < 5e9 ? 80.0 : 128.0,
           best = INFINITY;
    int tp = calibrate_degree (r, "tp", 1, NULL),
        pp = calibrate_degree (r, "pp", 1, NULL), vpp = calibrate_whole (r, "vpp", 1),
        said_layers = *layers, said_hidden = *hidden;
    long long chunks = pp > 0 && vpp > 0 ? (long long) pp * vpp : 1,
              heads = tp > 0 ? 128LL * tp * (1 + tp % 2) : 256, l, h;

    for (h = said_hidden ? said_hidden : heads; h <= 32768; h += heads)
        for (l = said_layers ? said_layers : chunks; l <= 256; l += chunks) {
            double has = 12.0 * (double) (l * h * h) + (double) (vocab * h);
            double off = fabs (log (has / params)) +
                         0.1 * fabs (log ((double) h / aspect / (double) l));

            if (off < best) {
                best = off;
                *layers = said_layers ? said_layers : (int) l;
                *hidden = said_hidden ? said_hidden : (int) h;
            }
        }
}

/* @param f  the family that the name tells; NULL: none */
static const char *read_sizes (const struct row *r, const struct family *f,
                               struct calibrate_run *run)
{
    struct workload_model *m = &run->model;
    int vocab = f && f->vocab > 0 ? f->vocab : VOCAB_USUAL,
        layers = size_stated (r, "layers", 0), hidden = size_stated (r, "hidden", 0);
    bool counted = counted_params (r) > 0 && layers >= 0 && hidden >= 0 &&
                   (layers == 0 || hidden == 0),
         sane;

    run->assumed = counted ? SPREAD_COUNTED : 0.0;
    if (counted)
        usual_shape (r, vocab, &layers, &hidden);
    sane = hidden > 0 && hidden <= 1 << 20;

    const struct {
        const char *name;
        int *value, absent;
        const char *unknown;
    } size[] = {
        {"layers", &m->layers, layers,
         "layers unknown: no preset has the model's name, nor is params_b stated"},
        {"hidden", &m->hidden, hidden,
         "hidden unknown: no preset has the model's name and what else is stated"},
        {"heads", &m->heads, sane ? usual_heads (r, hidden) : 0, "heads unknown"},
        {"ffn", &m->ffn, sane ? usual_ffn (f, hidden) : 0, "ffn unknown"},
        {"vocab", &m->vocab, vocab, "vocab unknown"}};

    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        *size[i].value = size_stated (r, size[i].name, size[i].absent);
        if (*size[i].value < 1)
            return size[i].unknown;
    }
    m->kv_heads = calibrate_whole (r, "kv_heads", m->heads);
    if (m->kv_heads < 1 || m->layers > 10000 || m->hidden > 1 << 20 ||
        m->heads > 1 << 20 || m->ffn > 1 << 24 || m->vocab > 1 << 24)
        return "a size is out of range";
    m->head_dim = calibrate_note_int (r, "kv-channels", 0);
    if (m->head_dim < 1 || m->head_dim > m->hidden) {
        if (m->hidden % m->heads != 0 && m->kv_heads == m->heads)
            m->heads = m->kv_heads = nearest_heads (m->hidden, m->heads);
        m->head_dim = (m->hidden + m->heads - 1) / m->heads;
    }
    if (m->heads % m->kv_heads != 0)
        return "kv_heads do not divide heads";
    return NULL;
}

/* Of two readings, is the first closer to the parameters that the row states? */
static bool closer (const struct row *r, const struct workload_model *a,
                    const struct workload_model *b)
{
    double stated = stated_params (r);

    return stated > 0 && fabs (workload_model_params (a) - stated) <
                             fabs (workload_model_params (b) - stated) * 0.999;
}

/* Megatron's options, which its own tests state. */
static void apply_notes (const struct row *r, struct workload_model *m)
{
    char value[64];

    if (calibrate_note (r, "untie-embeddings-and-output-weights", value, sizeof value) ||
        calibrate_note (r, "transformer-impl", value, sizeof value) ||
        calibrate_note (r, "no-gradient-accumulation-fusion", value, sizeof value))
        m->tied = !calibrate_note_true (r, "untie-embeddings-and-output-weights");
    if (calibrate_note_true (r, "swiglu"))
        m->gated_mlp = true;
    if (calibrate_note_true (r, "disable-bias-linear"))
        m->qkv_bias = m->out_bias = m->mlp_bias = false;
    if (calibrate_note (r, "normalization", value, sizeof value))
        m->norm = strcmp (value, "RMSNorm") == 0 ? NORM_RMS : NORM_LAYER;
    if (calibrate_note (r, "position-embedding-type", value, sizeof value) &&
        strcmp (value, "learned_absolute") != 0)
        m->positions = 0;
    if (calibrate_note (r, "hidden-dropout", value, sizeof value))
        m->dropout = strtod (value, NULL) > 0;
}

/* "([0]*3+[1]*12)": so many dense layers first; "([0]*1+[1]*1)*24": as often between those with
 * experts; "[0]*3+([1]*1+[0]*1)*4+[1]*1+[0]*0": both; a number: every so many-th. */
static bool apply_frequency (const struct row *r, const char *value,
                             struct workload_model *m)
{
    int dense = 0, rest = 0, times = 0, one = 0, last = 0, every,
        n = sscanf (value, "([0]*%5d+[1]*%5d)*%5d", &dense, &rest, &times);

    if (n >= 2) {
        m->dense_layers = dense;
        m->expert_every = n == 3 ? dense + 1 : 1;
        return dense >= 0 &&
               (n == 2 || (rest == 1 && (long long) (dense + 1) * times == m->layers));
    }
    n = sscanf (value, "[0]*%5d+([1]*1+[0]*%5d)*%5d+[1]*%1d+[0]*%5d", &dense, &rest,
                &times, &one, &last);
    if (n == 5) {
        m->dense_layers = dense;
        m->expert_every = rest + 1;
        return dense >= 0 && rest >= 0 && times >= 0 && last >= 0 && last <= rest &&
               (one == 1 || (one == 0 && last == 0)) &&
               dense + (long long) (rest + 1) * times + one + last == m->layers;
    }
    every = calibrate_note_int (r, "moe-layer-freq", 0);
    if (every > 0)
        m->expert_every = every;
    return every > 0;
}

static const char *apply_experts (const struct row *r, struct workload_model *m)
{
    char value[64];

    m->expert_every = 1;
    m->experts = stated_experts (r);
    if (m->experts < 0)
        return "its experts are in an unknown form";
    if (m->experts == 0)
        return calibrate_degree (r, "ep", 1, NULL) > 1 ||
                       workload_name_has_experts (calibrate_cell (r, "model"))
                   ? "its experts are not stated"
                   : NULL;
    m->top_k = calibrate_note_int (r, "moe-router-topk", 2);
    m->expert_ffn = calibrate_note_int (r, "moe-ffn-hidden-size", m->ffn);
    m->shared_ffn = calibrate_note_int (r, "moe-shared-expert-intermediate-size", 0);
    if (m->top_k < 1 || m->top_k > m->experts || m->expert_ffn < 1 ||
        m->expert_ffn > 1 << 24 || m->shared_ffn < 0 || m->experts > 65536)
        return "its experts are in an unknown form";
    if (calibrate_note (r, "moe-layer-freq", value, sizeof value) &&
        !apply_frequency (r, value, m))
        return "moe-layer-freq not understood";
    return NULL;
}

static const char *apply_latent (const struct row *r, struct workload_model *m)
{
    const struct {
        const char *key;
        int *value, absent;
    } size[] = {{"q-lora-rank", &m->q_rank, 0},
                {"kv-lora-rank", &m->kv_rank, 512},
                {"qk-pos-emb-head-dim", &m->rope_dim, 64},
                {"qk-head-dim", &m->nope_dim, 128},
                {"v-head-dim", &m->v_dim, 128}};

    if (!calibrate_note_true (r, "multi-latent-attention"))
        return NULL;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        *size[i].value = calibrate_note_int (r, size[i].key, size[i].absent);
        if (*size[i].value < (i == 0 || i == 2 ? 0 : 1) || *size[i].value > 1 << 20)
            return "its latent attention is in an unknown form";
    }
    m->head_dim = m->nope_dim + m->rope_dim;
    return NULL;
}

/* Do framework or tuning say one of these words, or the notes, if asked?  A model's name has its
 * history, "x-dpo". */
static bool says_any (const struct row *r, const char *const *words, size_t n, bool notes)
{
    static const char *const columns[] = {"framework", "tuning", "notes"};
    bool says = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT_OF (columns) - !notes; k++)
            says = says || calibrate_says_word (calibrate_cell (r, columns[k]), words[i]);
    return says;
}

/* Kinds of runs that are no plain pre-training of a transformer. */
static const char *refuse (const struct row *r)
{
    static const char *const words[] = {"multimodal", "grpo",    "mimo", "mamba",
                                        "hybrid",     "release", "retro"},
                             *const adapters[] = {"ia3",           "prefix tuning",
                                                  "prompt tuning", "ptuning",
                                                  "dora",          "qdora"},
                             *const preferences[] = {"dpo", "ppo", "grpo", "kto", "orpo"};
    const char *name = calibrate_cell (r, "model"), *notes = calibrate_cell (r, "notes");
    const struct workload_model *preset = workload_preset_meant (name);
    bool other =
        calibrate_contains (notes, "spec=") && calibrate_contains (notes, "mamba");

    /* A preset may be called so; what follows its name, "llama-3-8b-multimodal", is no part. */
    for (size_t i = 0; i < COUNT_OF (words); i++)
        other = other || (calibrate_contains (name, words[i]) &&
                          !(preset && calibrate_contains (preset->name, words[i])));
    if (other)
        return "architecture not supported (hybrid, multimodal, grpo, mimo, "
               "release)";
    other = calibrate_contains (notes, "with Adapter");
    if (says_any (r, preferences, COUNT_OF (preferences), false))
        return "training by preferences or rewards (DPO, PPO, GRPO) is not supported";
    other = other || says_any (r, adapters, COUNT_OF (adapters), true);
    return other ? "adapters other than LoRA are not supported" : NULL;
}

#define KV_USUAL 8 /* heads of keys and values where queries share them */

/* The count says whether embeddings are tied and, of families that the name does not tell, whether
 * the MLP is gated, where nothing else does; and whether queries share keys and values. */
static void settle (const struct row *r, bool family, struct workload_model *m)
{
    struct workload_model best = *m;
    int open = 1 | (family || calibrate_note_true (r, "swiglu") ? 0 : 2);

    if (m->experts > 0 || calibrate_note_true (r, "transformer-impl"))
        return;
    /* GPT's generation, with learned positions, did not share them. */
    if (calibrate_cell (r, "kv_heads")[0] == '\0' && m->heads % KV_USUAL == 0 &&
        m->positions == 0)
        open |= 4;
    for (int i = 1; i < 8; i++) {
        struct workload_model other = *m;

        other.tied ^= i & 1;
        other.gated_mlp ^= i >> 1 & 1;
        other.kv_heads = i & 4 ? KV_USUAL : m->kv_heads;
        if ((i & ~open) == 0 && closer (r, &other, &best))
            best = other;
    }
    *m = best;
}

/* An MLP whose width nobody states is as wide as the count makes it, where the usual one is off by
 * more than counts are rounded. */
static void widen (const struct row *r, struct workload_model *m)
{
    double more = stated_params (r) - workload_model_params (m),
           wider = more / ((m->gated_mlp ? 3.0 : 2.0) * m->hidden * m->layers);

    if (m->experts > 0 || calibrate_cell (r, "ffn")[0] != '\0' ||
        !(stated_params (r) > 0) || fabs (more) < 0.1 * stated_params (r))
        return;
    wider = m->ffn + round (wider / 256) * 256;
    if (wider >= 256 && wider <= 16.0 * m->hidden)
        m->ffn = (int) wider;
}

/* Modules of multi-token prediction are counted where the row says them, and the layers are of one
 * kind. */
static const char *predict (const struct row *r, struct workload_model *m)
{
    int n = calibrate_note_int (r, "mtp-num-layers", 0);

    if (n < 0 || n > WORKLOAD_MTP_MOST)
        return "mtp-num-layers is out of range";
    workload_model_predict (m, n);
    return NULL;
}

/* "sliding window 4096", "sliding-window=none" among the notes. */
static void read_window (const struct row *r, struct workload_model *m)
{
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM];

    while (calibrate_next_item (&notes, item)) {
        const char *at = item;
        size_t n = 0;

        while (*at && !(n = calibrate_spelled (at, "sliding window")))
            at++;
        if (n == 0)
            continue;
        if (calibrate_denied (item, at, n) || strcmp (at + n, "=-1") == 0)
            m->window = m->window_layers = 0;
        else if ((n += strspn (at + n, " =:_-("), isdigit ((unsigned char) at[n]))) {
            m->window = (int) fmin (strtod (at + n, NULL), 1 << 30);
            m->window_layers = m->window_layers > 0 ? m->window_layers : m->layers;
        }
    }
}

const char *calibrate_read_model (const struct row *r, struct calibrate_run *run)
{
    struct workload_model *m = &run->model;
    const char *name = calibrate_cell (r, "model");
    const struct family *f = NULL;

    memset (m, 0, sizeof *m);
    TRY_ROW (refuse (r));
    if (is_preset (r, name, m)) {
        snprintf (m->name, sizeof m->name, "%.127s", name);
        read_window (r, m);
        return predict (r, m);
    }
    for (size_t i = 0; i < sizeof families / sizeof *families && !f; i++)
        if (calibrate_contains (name, families[i].word))
            f = &families[i];
    if (f)
        *m = f->base;
    TRY_ROW (read_sizes (r, f, run));
    if (f && m->type[0] == '\0')
        return "architecture not supported";
    m->norms = 2;
    snprintf (m->name, sizeof m->name, "%.127s", name);
    if (!f)
        m->gated_mlp = m->ffn != 4 * m->hidden;
    if (m->positions > 0)
        m->positions = calibrate_whole (r, "seq", 0);
    if (strcmp (m->type, "t5") == 0)
        m->decoder_layers = m->layers;
    apply_notes (r, m);
    TRY_ROW (apply_experts (r, m));
    TRY_ROW (apply_latent (r, m));
    settle (r, f != NULL, m);
    widen (r, m);
    read_window (r, m);
    TRY_ROW (predict (r, m));
    if (!f && calibrate_cell (r, "vocab")[0] == '\0')
        run->assumed = hypot (run->assumed, SPREAD_VOCAB * m->hidden * m->vocab /
                                                workload_model_params (m));
    if (m->type[0] == '\0')
        snprintf (m->type, sizeof m->type, "%s", m->gated_mlp ? "llama" : "gpt2");
    return NULL;
}
