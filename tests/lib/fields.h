/* Models by the fields of their config.json, written with ' for ". */
#ifndef TESTS_LIB_FIELDS_H
#define TESTS_LIB_FIELDS_H

#include "tests/lib/fixture.h"

#include "base/json.h"

/* Fields that most families have, and more of them as text that begins with a comma. */
#define SHAPE(TYPE, H, L, A, K, F, V, ...)                                               \
    "'model_type':'" TYPE "','hidden_size':" #H ",'num_hidden_layers':" #L               \
    ",'num_attention_heads':" #A ",'num_key_value_heads':" #K ",'intermediate_size':" #F \
    ",'vocab_size':" #V "" __VA_ARGS__

#define HEADS(WIDTH) ",'head_dim':" #WIDTH
#define TIED ",'tie_word_embeddings':true"

/* A config.json of these fields. */
static inline json_t *config (const char *fields)
{
    char text[2048];
    json_t *doc;

    snprintf (text, sizeof text, "{%s}", fields);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    doc = json_loads (text, 0, NULL);
    assert_non_null (doc);
    return doc;
}

static inline enum status read_fields (const char *fields, struct workload_model *m,
                                       struct notes *notes, struct error *err)
{
    json_t *doc = config (fields);
    enum status st = workload_model_from_json (doc, "config.json", "m", m, notes, err);

    json_decref (doc);
    return st;
}

/* Refused with these words, or (NULL) taken. */
static inline void expect (enum status st, const struct error *err, const char *says)
{
    assert_int_equal (st, says ? ST_INVALID : ST_OK);
    if (says && !strstr (err->text, says))
        fail_msg ("\"%s\" does not say \"%s\"", err->text, says);
}

#endif
