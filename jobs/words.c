/* What an option's name means to a dialect, and what a fact's option is called there. */
#include "jobs/jobs_private.h"

#include <assert.h>
#include <string.h>

/* The word at *w, of *n characters; false: the list is at its end. */
static bool next_word (const char **w, size_t *n)
{
    if (!*w)
        return false;
    *w += *n + strspn (*w + *n, " ");
    *n = strcspn (*w, " ");
    return *n > 0;
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
                   char fact[JOBS_FACT_MAX])
{
    char key[JOBS_KEY_MAX];

    normalised (d, said, key);
    for (; d; d = d->like) {
        const char *w = d->keys;

        for (size_t n = 0; next_word (&w, &n);) {
            size_t k = strcspn (w, ": ");

            if (strlen (key) != k || strncmp (key, w, k) != 0)
                continue;
            k = w[k] == ':' ? k + 1 : 0;
            snprintf (fact, JOBS_FACT_MAX, "%.*s", (int) (n - k), w + k);
            return true;
        }
    }
    return false;
}

void jobs_key_of (const struct jobs_dialect *d, const char *fact, char key[JOBS_KEY_MAX])
{
    size_t len = strlen (fact);

    for (; d; d = d->like) {
        const char *w = d->keys;

        for (size_t n = 0; next_word (&w, &n);) {
            size_t k = strcspn (w, ": "), own = w[k] == ':' ? k + 1 : 0;

            if (n - own == len && strncmp (w + own, fact, len) == 0) {
                snprintf (key, JOBS_KEY_MAX, "%.*s", (int) k, w);
                return;
            }
        }
    }
    assert (!"a fact that the dialect has no option for");
}

/* @param word  of n characters, as struct jobs_dialect has them */
static bool stands_for (const char *word, size_t n, const char *key)
{
    if (word[0] == '*')
        return memmem (key, strlen (key), word + 1, n - 1) != NULL;
    return word[n - 1] == '=' ? strlen (key) == n - 1 && strncmp (key, word, n - 1) == 0
                              : strncmp (key, word, n) == 0;
}

bool jobs_matters (const struct jobs_dialect *d, const char *said)
{
    char key[JOBS_KEY_MAX];

    normalised (d, said, key);
    for (; d; d = d->like) {
        const char *w = d->harmless;

        for (size_t n = 0; next_word (&w, &n);)
            if (stands_for (w, n, key))
                return false;
    }
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
