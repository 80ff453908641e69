/* Models from Hugging Face config.json files.
 *
 * The families differ in names of fields and in what they leave unsaid; each has one
 * reader in the table at the end.  Limits keep every product of sizes far inside a
 * double's exact integers. */
#include "workload/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define LAYERS_MAX 10000
#define WIDTH_MAX (1 << 20)
#define VOCAB_MAX (1 << 24)

struct fields {
    struct json_at at;
    struct notes *notes;
    struct error *err;
};

/* A required size from 1 to max. */
static enum status need (const struct fields *f, const char *key, int max, int *out)
{
    struct json_at at = json_key (&f->at, key);
    long long n;
    enum status st = json_want_int (&at, 1, max, &n, f->err);

    if (st == ST_OK)
        *out = (int) n;
    return st;
}

/* The same, keeping *out when the field is absent or null. */
static enum status may (const struct fields *f, const char *key, int max, int *out)
{
    return json_has (&f->at, key) ? need (f, key, max, out) : ST_OK;
}

static enum status may_bool (const struct fields *f, const char *key, bool *out)
{
    struct json_at at = json_key (&f->at, key);

    return json_has (&f->at, key) ? json_want_bool (&at, out, f->err) : ST_OK;
}

/* Llama, and what shares its names: Mistral and Qwen 2. */
static enum status read_llama (const struct fields *f, struct workload_model *m)
{
    bool attention_bias = false, mlp_bias = false;
    enum status st = need (f, "hidden_size", WIDTH_MAX, &m->hidden);

    if (st == ST_OK)
        st = need (f, "num_hidden_layers", LAYERS_MAX, &m->layers);
    if (st == ST_OK)
        st = need (f, "num_attention_heads", WIDTH_MAX, &m->heads);
    m->kv_heads = m->heads;
    if (st == ST_OK)
        st = may (f, "num_key_value_heads", WIDTH_MAX, &m->kv_heads);
    if (st == ST_OK)
        st = may (f, "head_dim", WIDTH_MAX, &m->head_dim);
    if (st == ST_OK)
        st = need (f, "intermediate_size", VOCAB_MAX, &m->ffn);
    if (st == ST_OK)
        st = need (f, "vocab_size", VOCAB_MAX, &m->vocab);
    if (st == ST_OK)
        st = may_bool (f, "tie_word_embeddings", &m->tied);
    if (st == ST_OK)
        st = may_bool (f, "attention_bias", &attention_bias);
    if (st == ST_OK)
        st = may_bool (f, "mlp_bias", &mlp_bias);
    if (st == ST_OK && attention_bias != mlp_bias)
        return json_fail_text (
            &f->at, f->err, "attention_bias and mlp_bias differ: no such Llama is known");
    m->gated_mlp = true;
    m->norm = NORM_RMS;
    m->linear_bias = attention_bias;
    m->qkv_bias = attention_bias || strcmp (m->type, "qwen2") == 0;
    if (st == ST_OK && json_has (&f->at, "sliding_window") &&
        strcmp (m->type, "mistral") == 0)
        notes_add (f->notes,
                   "%s: sliding_window: attention is counted over the whole "
                   "sequence",
                   f->at.key);
    return st;
}

static enum status read_gpt2 (const struct fields *f, struct workload_model *m)
{
    enum status st = need (f, "n_embd", WIDTH_MAX, &m->hidden);

    if (st == ST_OK)
        st = need (f, "n_layer", LAYERS_MAX, &m->layers);
    if (st == ST_OK)
        st = need (f, "n_head", WIDTH_MAX, &m->heads);
    if (st == ST_OK)
        st = need (f, "vocab_size", VOCAB_MAX, &m->vocab);
    if (st == ST_OK)
        st = need (f, "n_positions", VOCAB_MAX, &m->positions);
    m->kv_heads = m->heads;
    m->ffn = 4 * m->hidden;
    if (st == ST_OK)
        st = may (f, "n_inner", VOCAB_MAX, &m->ffn);
    m->tied = true;
    if (st == ST_OK)
        st = may_bool (f, "tie_word_embeddings", &m->tied);
    m->qkv_bias = m->linear_bias = m->dropout = true;
    m->norm = NORM_LAYER;
    return st;
}

static const struct {
    const char *type;
    enum status (*read) (const struct fields *f, struct workload_model *m);
} families[] = {{"llama", read_llama},
                {"mistral", read_llama},
                {"qwen2", read_llama},
                {"gpt2", read_gpt2}};

#define N_FAMILIES (sizeof families / sizeof *families)

/* Heads, key/value heads and head dimension must agree. */
static enum status check_heads (const struct fields *f, struct workload_model *m)
{
    if (m->head_dim == 0 && m->hidden % m->heads != 0)
        return json_fail_text (&f->at, f->err,
                               "%d attention heads do not divide the hidden size %d, and "
                               "no head_dim is given",
                               m->heads, m->hidden);
    if (m->head_dim == 0)
        m->head_dim = m->hidden / m->heads;
    if (m->kv_heads > m->heads || m->heads % m->kv_heads != 0)
        return json_fail_text (&f->at, f->err,
                               "%d key/value heads do not divide %d attention heads",
                               m->kv_heads, m->heads);
    return ST_OK;
}

enum status workload_model_from_json (json_t *doc, const char *file, const char *name,
                                      struct workload_model *out, struct notes *notes,
                                      struct error *err)
{
    struct fields f = {.at = json_root (doc, file), .notes = notes, .err = err};
    struct json_at type = json_key (&f.at, "model_type"),
                   title = json_key (&f.at, "name");
    struct workload_model m = {0};
    const char *s;
    enum status st = json_want_object (&f.at, err);

    if (st == ST_OK)
        st = json_want_string (&type, &s, err);
    if (st != ST_OK)
        return st;
    snprintf (m.type, sizeof m.type, "%.31s", s);
    if (json_is_string (title.v))
        name = json_string_value (title.v);
    snprintf (m.name, sizeof m.name, "%.127s", name);
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp (families[i].type, s) == 0) {
            st = families[i].read (&f, &m);
            if (st == ST_OK)
                st = check_heads (&f, &m);
            if (st == ST_OK)
                *out = m;
            return st;
        }

    struct text list = {0};

    for (size_t i = 0; i < N_FAMILIES; i++)
        text_add (&list, "%s\"%s\"", i ? ", " : "one of ", families[i].type);
    st = json_fail (&type, err, text_str (&list));
    text_free (&list);
    return st;
}

/* "x/llama-2-70b.json" and "x/llama-2-70b/config.json" are both llama-2-70b. */
static void name_from_path (const char *path, char *name, size_t size)
{
    char copy[4096];

    snprintf (copy, sizeof copy, "%s", path);

    char *slash = strrchr (copy, '/'), *base = slash ? slash + 1 : copy;

    if (strcmp (base, "config.json") == 0 && slash && slash != copy) {
        *slash = '\0';
        slash = strrchr (copy, '/');
        base = slash ? slash + 1 : copy;
    }

    size_t n = strlen (base);

    if (n > 5 && strcmp (base + n - 5, ".json") == 0)
        n -= 5;
    snprintf (name, size, "%.*s", (int) n, base);
}

static const struct workload_model *find_preset (const char *name)
{
    int n;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++)
        if (strcmp (all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

enum status workload_model_read (const char *arg, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    const struct workload_model *preset = find_preset (arg);
    struct error why;
    json_t *doc;
    char name[128] = "model";
    enum status st = json_read (arg, &doc, &why);

    if (st == ST_IO && preset) {
        *m = *preset;
        return ST_OK;
    }
    if (st != ST_OK) {
        if (st == ST_IO && !strchr (arg, '/') && !strstr (arg, ".json"))
            return err_set (err, st,
                            "%s (and no preset has that name; `linkwise models` "
                            "lists them)",
                            why.text);
        return err_set (err, st, "%s", why.text);
    }
    if (strcmp (arg, "-") != 0)
        name_from_path (arg, name, sizeof name);
    st = workload_model_from_json (doc, strcmp (arg, "-") == 0 ? "standard input" : arg,
                                   name, m, notes, err);
    json_decref (doc);
    return st;
}

json_t *workload_model_to_json (const struct workload_model *m)
{
    if (strcmp (m->type, "gpt2") == 0)
        return json_pack ("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:f}", "name",
                          m->name, "model_type", m->type, "n_layer", m->layers, "n_embd",
                          m->hidden, "n_head", m->heads, "n_inner", m->ffn, "vocab_size",
                          m->vocab, "n_positions", m->positions, "tie_word_embeddings",
                          m->tied, "parameters", workload_model_params (m));
    return json_pack (
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:f}", "name",
        m->name, "model_type", m->type, "num_hidden_layers", m->layers, "hidden_size",
        m->hidden, "num_attention_heads", m->heads, "num_key_value_heads", m->kv_heads,
        "head_dim", m->head_dim, "intermediate_size", m->ffn, "vocab_size", m->vocab,
        "tie_word_embeddings", m->tied, "attention_bias", m->linear_bias, "mlp_bias",
        m->linear_bias, "parameters", workload_model_params (m));
}
