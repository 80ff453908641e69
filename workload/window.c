/* Attention to a part of the sequence: sliding windows and chunks, of all layers or of most, as
 * config.json says it or the family has it where it says nothing (transformers,
 * configuration_*.py). */
#include "workload/workload.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "workload/workload_private.h"

#define WINDOW_MAX (1 << 30)

/* Families that have windows unless their file says otherwise: their tokens, and which layers
 * have none: every so many-th. */
static const struct usual {
    const char *types; /* with a blank between them */
    int window, every;
    bool chunks;
} usual[] = {{"gemma2 vaultgemma", 4096, 2, false},
             {"gemma3_text", 4096, 6, false},
             {"gpt_oss", 128, 2, false},
             {"cohere2 olmo3 exaone4 exaone_moe cohere2_moe", 4096, 4, false},
             {"afmoe", 1024, 4, false},
             {"granite_swa granitemoe_swa", 128, 4, false},
             {"muse_glimmer_text", 2048, 4, false},
             {"llama4_text", 8192, 4, true},
             {NULL, 0, 1, false}};

static const struct usual *usual_of (const struct workload_model *m)
{
    const struct usual *u = usual;

    while (u->types && !text_has_word (u->types, m->type))
        u++;
    return u;
}

/* Families whose files name a window that use_sliding_window must turn on. */
static bool is_off (const struct workload_reading *r, const struct workload_model *m)
{
    struct json_at used = json_key (r->at, "use_sliding_window");

    return used.v ? json_is_false (used.v)
                  : strncmp (m->type, "qwen", 4) == 0 || strcmp (m->type, "smollm3") == 0;
}

/* Of a list with a word a layer.  @return -1 where there is none */
static int count_words (const struct workload_reading *r, int layers)
{
    struct json_at list = json_key (r->at, "layer_types");
    size_t n = json_array_size (list.v);
    int count = 0;

    if (n > 0 && n != (size_t) layers)
        notes_add (
            r->notes,
            "%s: layer_types: expected a word for each of %d layers, found %zu: the "
            "first %d are counted",
            r->at->key, layers, n, n < (size_t) layers ? (int) n : layers);
    for (size_t i = 0; i < n && i < (size_t) layers; i++) {
        const char *word = json_string_value (json_array_get (list.v, i));

        count += word &&
                 (strncmp (word, "sliding", 7) == 0 || strncmp (word, "chunked", 7) == 0);
    }
    return n > 0 ? count : -1;
}

/* Of a pattern that is repeated, "LLLG" with L for local attention. */
static int count_letters (const char *pattern, int layers)
{
    size_t n = strlen (pattern);
    int count = 0;

    for (int i = 0; i < layers && n > 0; i++)
        count += pattern[(size_t) i % n] == 'L';
    return count;
}

/* How many layers have the window. */
static enum status read_layers (const struct workload_reading *r, int every,
                                struct workload_model *m)
{
    struct json_at pattern = json_key (r->at, "sliding_window_pattern"),
                   first = json_key (r->at, "max_window_layers");
    long long n = count_words (r, m->layers);

    if (!json_has (r->at, "sliding_window_pattern"))
        pattern = json_key (r->at, "_sliding_window_pattern");
    if (json_has (r->at, "windowed_layers")) {
        TRY (json_get_int (r->at, "windowed_layers", 0, m->layers, &m->window_layers,
                           r->err));
        return ST_OK;
    }
    if (n >= 0) {
        m->window_layers = (int) n;
    } else if (json_is_string (pattern.v)) {
        m->window_layers = count_letters (json_string_value (pattern.v), m->layers);
    } else {
        n = every;
        if (pattern.v && !json_is_null (pattern.v))
            TRY (json_want_int (&pattern, 1, LAYERS_MAX, &n, r->err));
        /* Every n-th layer sees all; of one pattern alone all have the window. */
        m->window_layers = n > 1 ? m->layers - m->layers / (int) n : m->layers;
        if (n == 1 &&
            json_has (r->at, "max_window_layers")) { /* Qwen 2: the first ones see all */
            TRY (json_want_int (&first, 0, LAYERS_MAX, &n, r->err));
            m->window_layers = n < m->layers ? m->layers - (int) n : 0;
        }
    }
    return ST_OK;
}

enum status workload_window_read (const struct workload_reading *r,
                                  struct workload_model *m)
{
    const struct usual *u = usual_of (m);
    struct json_at window = json_key (r->at, "sliding_window"),
                   chunk = json_key (r->at, "attention_chunk_size");
    bool chunks = u->chunks || json_has (r->at, "attention_chunk_size");
    const struct json_at *said = chunks ? &chunk : &window;
    long long tokens = u->window;

    m->window = m->window_layers = 0;
    m->window_chunks = chunks;
    if (json_is_null (said->v) || json_is_false (said->v))
        tokens = 0;
    else if (said->v)
        TRY (json_want_int (said, 0, WINDOW_MAX, &tokens, r->err));
    if (tokens == 0 || (!chunks && is_off (r, m)) || m->pattern[0] || m->heads == 0) {
        m->window_chunks = false;
        return ST_OK;
    }
    m->window = (int) tokens;
    return read_layers (r, u->every, m);
}

void workload_window_write (const struct workload_model *m, json_t *doc)
{
    const struct usual *u = usual_of (m);
    const char *key =
        m->window_chunks || u->chunks ? "attention_chunk_size" : "sliding_window";

    if (m->window > 0) {
        json_object_set_new (doc, key, json_integer (m->window));
        json_object_set_new (doc, "use_sliding_window", json_true ());
        json_object_set_new (doc, "windowed_layers", json_integer (m->window_layers));
    } else if (u->window > 0) {
        json_object_set_new (doc, key, json_null ());
    }
}

double workload_window_pairs (const struct workload_model *m, double seq, double more)
{
    double reach = fmin (1.0, (m->window + (m->window_chunks ? 0.0 : more)) / seq);

    if (m->window <= 0)
        return 1.0;
    return m->window_chunks ? reach : reach * (2.0 - reach);
}
