/* Models from Hugging Face config.json files and presets; family.c says which field is
 * what.  Limits on sizes keep every product far inside a double's exact integers. */
#include "workload/workload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "workload/workload_private.h"

static void *member (struct workload_model *m, const struct workload_field *f)
{
    return (char *) m + f->offset;
}

/* A number, or a list with the same one for every layer (Hunyuan). */
static enum status read_int (const struct workload_reading *r, const struct json_at *in,
                             const struct workload_field *f, int *n)
{
    struct json_at at = json_key (in, f->key);
    json_t *first = json_array_get (at.v, 0), *one;
    int least = f->kind == FIELD_SIZE ? 0 : 1;
    long long value;
    size_t i;

    if (!first)
        return json_get_int (in, f->key, least, f->max, n, r->err);
    json_array_foreach (at.v, i, one)
    {
        struct json_at entry = json_entry (&at, i);

        REFUSE_AT (&entry, r->err, !json_equal (one, first),
                   "layers of different shapes are not supported");
        TRY (json_want_int (&entry, least, f->max, &value, r->err));
        *n = (int) value;
    }
    return ST_OK;
}

static bool is_auto (const struct json_at *in, const char *key)
{
    struct json_at at = json_key (in, key);

    return json_is_array (at.v) ||
           (json_is_string (at.v) && strcmp (json_string_value (at.v), "auto") == 0);
}

static enum status read_fields (const struct workload_reading *r,
                                const struct workload_field *f, struct workload_model *m)
{
    for (; f->key; f++) {
        bool needed = f->kind == FIELD_NEEDED;
        struct json_at in = f->in ? json_key (r->at, f->in) : *r->at;

        /* Its older name may have been there, or the family has its own. */
        if (!json_has (&in, f->key) && (!needed || *(int *) member (m, f) > 0))
            continue;
        if (f->kind == FIELD_AUTO && is_auto (&in, f->key))
            continue;
        if (f->kind == FIELD_FLAG)
            TRY (json_get_bool (&in, f->key, member (m, f), r->err));
        else
            TRY (read_int (r, &in, f, member (m, f)));
    }
    return ST_OK;
}

/* A model without attention has no heads of it. */
static enum status check_heads (const struct json_at *at, struct workload_model *m,
                                struct error *err)
{
    if (!workload_has_parts (m, PART_ATTENTION)) {
        m->heads = m->kv_heads = m->head_dim = 0;
        return ST_OK;
    }
    REFUSE_AT (at, err, m->heads == 0, "some layers have attention, but no heads of it");
    REFUSE_AT (at, err, m->head_dim == 0 && m->hidden % m->heads != 0,
               "%d attention heads do not divide the hidden size %d, and no head_dim is "
               "given",
               m->heads, m->hidden);
    if (m->head_dim == 0)
        m->head_dim = m->hidden / m->heads;
    if (m->kv_heads == 0)
        m->kv_heads = m->heads;
    REFUSE_AT (at, err, m->kv_heads > m->heads || m->heads % m->kv_heads != 0,
               "%d key/value heads do not divide %d attention heads", m->kv_heads,
               m->heads);
    return ST_OK;
}

/* Fill what a shape always has, and check that heads and experts agree. */
static enum status check_shape (const struct json_at *at, struct workload_model *m,
                                struct error *err)
{
    TRY (check_heads (at, m, err));
    if (m->ffn == 0 && workload_has_parts (m, PART_MLP))
        m->ffn = 4 * m->hidden;
    if (m->norms == 0)
        m->norms = 2;
    if (m->expert_every == 0)
        m->expert_every = 1;
    if (m->dense_layers > m->layers)
        m->dense_layers = m->layers;
    REFUSE_AT (at, err, m->top_k > m->experts && m->experts > 0,
               "a token cannot go to %d of %d experts", m->top_k, m->experts);
    REFUSE_AT (at, err, m->expert_groups > 0 && m->experts % m->expert_groups != 0,
               "%d groups do not divide %d experts", m->expert_groups, m->experts);
    REFUSE_AT (
        at, err,
        m->expert_groups > 0 && m->top_groups > 0 &&
            (m->top_groups > m->expert_groups ||
             (long long) m->top_groups * (m->experts / m->expert_groups) < m->top_k),
        "a token cannot go to %d experts in %d of %d groups", m->top_k, m->top_groups,
        m->expert_groups);
    REFUSE_AT (at, err, m->experts > 0 && m->top_k == 0,
               "the model has experts, but tokens go to none");
    return ST_OK;
}

bool workload_model_predict (struct workload_model *m, int mtp_layers)
{
    if (mtp_layers > 0 && (m->pattern[0] || m->decoder_layers > 0))
        return false;
    m->mtp_layers = mtp_layers;
    return true;
}

static enum status read_prediction (const struct json_at *at, struct workload_model *m,
                                    struct error *err)
{
    struct json_at key = json_key (at, "mtp_num_layers");
    int n = 0;

    TRY_MEMBER (json_get_int, at, "mtp_num_layers", 0, WORKLOAD_MTP_MOST, &n, err);
    REFUSE_AT (&key, err, !workload_model_predict (m, n),
               "multi-token prediction is not known of layers of several kinds");
    return ST_OK;
}

/* What is read and left out of the estimate. */
static void note_ignored (const struct json_at *root, const struct workload_reading *r,
                          const struct workload_model *m)
{
    static const char *const modules[] = {"num_nextn_predict_layers",
                                          "mtp_num_hidden_layers", "num_mtp_modules",
                                          "num_mtp_layers"};

    if (r->at->v != root->v || json_has (root, "vision_config"))
        notes_add (r->notes, "%s: only the language model is counted", root->key);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (json_member_int (r->at->v, modules[i]) > 0 && m->mtp_layers == 0)
            notes_add (r->notes, "%s: %s: multi-token prediction is not counted%s",
                       r->at->key, modules[i],
                       m->pattern[0] ? "" : " without --mtp-num-layers");
}

/* A multimodal model's language part, or what holds it, unless this is one itself. */
static struct json_at language_of (const struct json_at *root)
{
    static const char *const part[] = {"text_config", "llm_config", "language_config",
                                       "thinker_config"};
    struct json_at type = json_key (root, "model_type");

    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        struct json_at text = json_key (root, part[i]);

        if (json_is_object (text.v) &&
            (json_has (&text, "model_type") || !json_is_string (type.v) ||
             !workload_family_find (json_string_value (type.v))))
            return text;
    }
    return *root;
}

/* A multimodal model may say for its language part that the embeddings are tied. */
static void read_tied (const struct json_at *root, const struct json_at *outer,
                       const struct json_at *at, struct workload_model *m)
{
    static const char key[] = "tie_word_embeddings";

    if (at->v != root->v && !json_has (at, key) &&
        (json_is_true (json_key (root, key).v) || json_is_true (json_key (outer, key).v)))
        m->tied = true;
}

/* Where a config.json names the activation of a plain MLP. */
static const char *const activation_keys[] = {"activation_function", "hidden_act"};

/* transformers computes "gelu_new" operation by operation (activations.py, NewGELUActivation). */
static void read_activation (const struct json_at *at, struct workload_model *m)
{
    for (size_t i = 0; i < sizeof activation_keys / sizeof *activation_keys; i++) {
        struct json_at act = json_key (at, activation_keys[i]);

        if (json_is_string (act.v))
            m->separate_gelu = strcmp (json_string_value (act.v), "gelu_new") == 0;
    }
}

enum status workload_model_from_json (json_t *doc, const char *file, const char *name,
                                      struct workload_model *out, struct notes *notes,
                                      struct error *err)
{
    struct json_at root = json_root (doc, file), outer = language_of (&root),
                   at = language_of (&outer), type = json_key (&at, "model_type"),
                   layers = json_key (&at, "num_hidden_layers"),
                   title = json_key (&root, "name");
    const struct workload_reading r = {&at, notes, err};
    const struct workload_family *family;
    struct workload_model m;
    long long context = json_member_int (at.v, "max_position_embeddings");
    const char *s = NULL;

    TRY (json_want_object (&at, err));
    if (json_has (&at, "model_type"))
        TRY (json_want_string (&type, &s, err));
    s = s ? workload_family_variant (&at, s) : NULL;
    family = s ? workload_family_find (s) : NULL;
    TRY (family ? workload_family_fits (&r, family)
                : workload_family_guess (&r, &s, &family));
    if (family->base.linear == LINEAR_NONE) /* the others read these lists */
        TRY (workload_family_layers (&r));
    m = family->base;
    snprintf (m.type, sizeof m.type, "%.*s", (int) strcspn (s, " "), s);
    if (at.v != root.v)
        workload_family_usual (&r, family, &m);
    if (json_is_string (title.v))
        name = json_string_value (title.v);
    snprintf (m.name, sizeof m.name, "%.127s", name);
    text_clean_line (m.name); /* it is printed in lines of their own */
    TRY (read_fields (&r, family->fields, &m));
    REFUSE_AT (&layers, err,
               family->base.linear != LINEAR_NONE && m.layers > WORKLOAD_PATTERN_MAX,
               "%d layers of several kinds: at most %d are supported", m.layers,
               WORKLOAD_PATTERN_MAX); /* which are told one by one */
    if (family->finish)
        TRY (family->finish (&r, &m));
    read_tied (&root, &outer, &at, &m);
    read_activation (&at, &m);
    TRY (check_shape (&at, &m, err));
    TRY (workload_window_read (&r, &m));
    if (context > 0 && context < INT_MAX)
        m.context = (int) context;
    TRY (read_prediction (&at, &m, err));
    note_ignored (&root, &r, &m);
    *out = m;
    return ST_OK;
}

/* Also where it says no more than that all layers have attention, which is not what every family
 * does without it. */
static json_t *pattern_of (const struct workload_model *m)
{
    char letters[WORKLOAD_PATTERN_MAX + 1] = "";

    memset (
        letters, m->experts > 0 ? 'A' : 'a',
        (size_t) (m->layers < WORKLOAD_PATTERN_MAX ? m->layers : WORKLOAD_PATTERN_MAX));
    return json_string (m->pattern[0] ? m->pattern : letters);
}

/* The object that a field is in, made where it is not there; NULL without memory. */
static json_t *object_of (json_t *doc, const struct workload_field *f)
{
    if (!f->in)
        return doc;
    if (!json_object_get (doc, f->in))
        json_object_set_new (doc, f->in, json_object ());
    return json_object_get (doc, f->in);
}

json_t *workload_model_to_json (const struct workload_model *m)
{
    const struct workload_family *family = workload_family_find (m->type);
    struct workload_model copy = *m;
    json_t *doc = json_pack ("{s:s, s:s}", "name", m->name, "model_type", m->type);

    for (const struct workload_field *f = family->fields; f->key && doc; f++) {
        const void *value = member (&copy, f);

        if (f->kind == FIELD_OLDER)
            continue;
        if (f->kind == FIELD_FLAG)
            json_object_set_new (object_of (doc, f), f->key,
                                 json_boolean (*(const bool *) value));
        else if (f->kind == FIELD_NEEDED || *(const int *) value > 0)
            json_object_set_new (object_of (doc, f), f->key,
                                 json_integer (*(const int *) value));
    }
    /* Falcon's key/value heads are read in its newer form alone. */
    if (doc && strcmp (m->type, "falcon") == 0)
        json_object_set_new (doc, "new_decoder_architecture", json_true ());
    if (doc && strcmp (m->type, "t5") == 0)
        json_object_set_new (doc, "feed_forward_proj",
                             json_string (m->gated_mlp ? "gated-gelu" : "relu"));
    if (doc && m->separate_gelu != family->base.separate_gelu)
        json_object_set_new (doc, activation_keys[0],
                             json_string (m->separate_gelu ? "gelu_new" : "gelu"));
    if (doc && family->base.linear != LINEAR_NONE)
        json_object_set_new (doc, "layer_pattern", pattern_of (m));
    if (doc && m->mtp_layers > 0)
        json_object_set_new (doc, "mtp_num_layers", json_integer (m->mtp_layers));
    if (doc)
        workload_window_write (m, doc);
    if (doc)
        json_object_set_new (doc, "parameters", json_real (workload_model_params (m)));
    return doc;
}

/* How the Hugging Face cache names the folder of a model: models--OWNER--NAME, with a config.json
 * in snapshots/REVISION. */
#define CACHED "models--"

/* "x/llama-2-70b.json", "x/llama-2-70b/config.json" and "x/llama-2-70b/" are all
 * llama-2-70b, and so is all below "x/models--meta-llama--llama-2-70b". */
static void name_from_path (const char *path, char *name, size_t size)
{
    char copy[4096], *cached;
    const char *base;

    snprintf (copy, sizeof copy, "%s", path);
    if ((cached = strstr (copy, "/" CACHED)))
        cached++;
    else if (strncmp (copy, CACHED, strlen (CACHED)) == 0)
        cached = copy;
    if (cached) {
        cached[strcspn (cached, "/")] = '\0';
        for (char *s = cached; (s = strstr (s, "--")); cached = s)
            s += 2;
        snprintf (name, size, "%s", *cached ? cached : "model");
        return;
    }
    for (size_t n = strlen (copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    base = file_name (copy);
    if (strcmp (base, "config.json") == 0 && base > copy + 1) {
        copy[base - copy - 1] = '\0';
        base = file_name (copy);
    }
    snprintf (name, size, "%.*s", file_stem (base), base);
}

/* "owner/name", as the Hugging Face hub has it, and no path of files. */
static bool is_hub_name (const char *arg)
{
    const char *slash = strchr (arg, '/');

    return slash && slash > arg && slash[1] && arg[0] != '.' &&
           !strchr (slash + 1, '/') && !strstr (slash, ".json");
}

/* Neither a file nor a preset: how to come to a name that is one. */
static enum status no_such_model (const char *arg, const char *why, struct error *err)
{
    bool hub = is_hub_name (arg);
    const char *name = hub ? strchr (arg, '/') + 1 : arg;
    struct text near = {0}, say = {0};

    if (!hub && (strchr (arg, '/') || strstr (arg, ".json")))
        return err_set (err, ST_IO, "%s", why);
    workload_presets_near (name, &near);
    text_add (&say, "%s (and no preset has that name; ", why);
    if (near.len > 0)
        text_add (&say, "near it: %s; ", text_str (&near));
    text_add (&say, "`linkwise models` lists them)%s",
              hub ? "" : "; another model's config.json is a MODEL, too");
    if (hub)
        text_add (&say,
                  "; for a model of the Hugging Face hub: `hf download %s config.json "
                  "--local-dir %s` (a gated one after `hf auth login`), then %s as MODEL",
                  arg, name, name);
    err_set (err, ST_IO, "%s", text_str (&say));
    text_free (&near);
    text_free (&say);
    return ST_IO;
}

/* Append the config.json of a folder: its own, or that of the revision which the Hugging Face
 * cache has as main. */
static void add_config (const char *folder, struct text *path)
{
    struct text main = {0};
    char *revision;
    size_t len;

    text_add (&main, "%s/refs/main", folder);
    if (!main.failed &&
        file_read_small (text_str (&main), &revision, &len, NULL) == ST_OK) {
        text_add (path, "/snapshots/%.*s", (int) strcspn (revision, "/\r\n"), revision);
        free (revision);
    }
    text_add (path, "/config.json");
    text_free (&main);
}

/* A file, or the config.json of a folder. */
static enum status read_document (const char *arg, const char *name,
                                  struct workload_model *m, struct notes *notes,
                                  struct error *err)
{
    struct stat st;
    struct text path = {0};
    json_t *doc = NULL;
    enum status status;

    text_add (&path, "%s", arg);
    if (stat (arg, &st) == 0 && S_ISDIR (st.st_mode))
        add_config (arg, &path);
    status =
        path.failed ? err_nomem (err) : json_read_config (text_str (&path), &doc, err);
    if (status == ST_OK)
        status = workload_model_from_json (doc, file_title (text_str (&path)), name, m,
                                           notes, err);
    json_decref (doc);
    text_free (&path);
    return status;
}

/* Is there anything of that name, so that no preset is meant? */
static bool exists (const char *arg)
{
    struct stat st;

    return strcmp (arg, "-") == 0 || stat (arg, &st) == 0;
}

enum status workload_model_read (const char *arg, struct workload_model *m,
                                 struct notes *notes, struct error *err)
{
    const struct workload_model *preset = workload_preset_find (arg);
    char name[128] = "model";
    struct error why;
    enum status st;

    if (strcmp (arg, "-") != 0)
        name_from_path (arg, name, sizeof name);
    st = read_document (arg, name, m, notes, &why);
    if (st != ST_IO)
        return st == ST_OK ? st : err_set (err, st, "%s", why.text);
    if (!preset && !exists (arg) && (is_hub_name (arg) || !strchr (arg, '/')) &&
        (preset = workload_preset_meant (arg)))
        notes_add (notes, "%s: taken as the preset %s", arg, preset->name);
    if (!preset)
        return exists (arg) ? err_set (err, st, "%s", why.text)
                            : no_such_model (arg, why.text, err);
    *m = *preset;
    return ST_OK;
}
