/* What an option's name means to a dialect, and what a fact's option is called there. */
#include "jobs/jobs_private.h"

#include <assert.h>
#include <string.h>

bool jobs_next_word (const char **list, char word[JOBS_WORD_MAX])
{
    size_t n;

    *list += strspn (*list, " ");
    n = strcspn (*list, " ");
    assert (n < JOBS_WORD_MAX);
    memcpy (word, *list, n);
    word[n] = '\0';
    *list += n;
    return n > 0;
}

/* The next option of a dialect's list, and the fact that it states. */
static bool next_key (const char **list, char key[JOBS_WORD_MAX], const char **fact)
{
    bool is = jobs_next_word (list, key);
    char *colon = strchr (key, ':');

    if (colon)
        *colon = '\0';
    *fact = colon ? colon + 1 : key;
    return is;
}

bool jobs_strip (char *key, const char *section)
{
    size_t n = strlen (section);
    bool has = strncmp (key, section, n) == 0;

    if (has)
        memmove (key, key + n, strlen (key + n) + 1);
    return has;
}

void jobs_dash (char *key)
{
    for (; *key; key++)
        if (*key == '_')
            *key = '-';
}

static void normalised (const struct jobs_dialect *d, const char *said,
                        char key[JOBS_KEY_MAX])
{
    snprintf (key, JOBS_KEY_MAX, "%s", said);
    for (; d; d = d->like)
        if (d->normalise)
            d->normalise (key);
}

bool jobs_fact_of (const struct jobs_dialect *d, const char *said,
                   char fact[JOBS_WORD_MAX])
{
    char key[JOBS_KEY_MAX], own[JOBS_WORD_MAX];
    const char *states;

    normalised (d, said, key);
    for (; d; d = d->like)
        for (const char *list = d->keys; next_key (&list, own, &states);)
            if (strcmp (own, key) == 0) {
                snprintf (fact, JOBS_WORD_MAX, "%s", states);
                return true;
            }
    return false;
}

void jobs_key_of (const struct jobs_dialect *d, const char *fact, char key[JOBS_KEY_MAX])
{
    const char *states;

    for (; d; d = d->like)
        for (const char *list = d->keys; next_key (&list, key, &states);)
            if (strcmp (states, fact) == 0)
                return;
    assert (!"a fact that the dialect has no option for");
}

/* @param word  as struct jobs_dialect has them */
static bool stands_for (const char *word, const char *key)
{
    size_t n = strlen (word);

    if (word[0] == '*')
        return strstr (key, word + 1) != NULL;
    return word[n - 1] == '=' ? strlen (key) == n - 1 && strncmp (key, word, n - 1) == 0
                              : strncmp (key, word, n) == 0;
}

bool jobs_matters (const struct jobs_dialect *d, const char *said)
{
    char key[JOBS_KEY_MAX], word[JOBS_WORD_MAX];

    normalised (d, said, key);
    for (; d; d = d->like)
        for (const char *list = d->harmless; list && jobs_next_word (&list, word);)
            if (stands_for (word, key))
                return false;
    return true;
}

const char *jobs_dtype_of (const char *word)
{
    static const struct {
        const char *word, *dtype;
    } known[] = {{"bf16", "bf16"}, {"bfloat16", "bf16"}, {"bfp16", "bf16"},
                 {"fp16", "fp16"}, {"float16", "fp16"},  {"half", "fp16"},
                 {"fp32", "fp32"}, {"float32", "fp32"},  {"float", "fp32"}};
    const char *name = word && strncasecmp (word, "torch.", 6) == 0 ? word + 6 : word;

    for (size_t i = 0; name && i < COUNT_OF (known); i++)
        if (strcasecmp (name, known[i].word) == 0)
            return known[i].dtype;
    return NULL;
}
