/* Presets by name: exactly, as the Hugging Face hub spells them, and nearly. */
#include "workload/workload.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_MAX 64

/* Words of a name on the hub that say nothing of the shape. */
static const char idle_words[] =
    "meta instruct chat it hf base pt preview 0324 0528 2507 2512 0905 thinking";

/* Other models with a preset's shape. */
static const struct {
    const char *name, *preset;
} same[] = {{"llama-3.1-8b", "llama-3-8b"},
            {"llama-3.1-70b", "llama-3-70b"},
            {"llama-3.3-70b", "llama-3-70b"},
            {"llama-3.1-405b", "llama-3-405b"},
            {"mistral-7b-v0.1", "mistral-7b"},
            {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
            {"mixtral-8x22b-v0.1", "mixtral-8x22b"},
            {"deepseek-r1", "deepseek-v3"},
            {"deepseek-v3.1", "deepseek-v3"},
            {"bloom", "bloom-176b"},
            {"nvidia-nemotron-nano-9b-v2", "nemotron-nano-9b-v2"},
            {"nvidia-nemotron-3-nano-30b-a3b-bf16", "nemotron-3-nano-30b-a3b"}};

/* The name without its owner, idle words, case and marks: "llama38b". */
static void plain (const char *name, char out[PLAIN_MAX])
{
    const char *slash = strrchr (name, '/');
    size_t n = 0;

    for (const char *s = slash ? slash + 1 : name; *s && n < PLAIN_MAX - 1;) {
        size_t len = strcspn (s, "-_ ");
        char word[PLAIN_MAX];

        snprintf (word, sizeof word, "%.*s",
                  (int) (len < PLAIN_MAX ? len : PLAIN_MAX - 1), s);
        for (char *c = word; *c; c++)
            *c = (char) tolower ((unsigned char) *c);
        if (!text_has_word (idle_words, word))
            for (const char *c = word; *c && n < PLAIN_MAX - 1; c++)
                out[n++] = *c;
        s += len + (s[len] != '\0');
    }
    out[n] = '\0';
}

const struct workload_model *workload_preset_find (const char *name)
{
    int n;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++)
        if (strcmp (all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

const struct workload_model *workload_preset_meant (const char *name)
{
    char asked[PLAIN_MAX], own[PLAIN_MAX];
    int n;
    const struct workload_model *all = workload_presets (&n);

    plain (name, asked);
    for (int i = 0; i < n; i++) {
        plain (all[i].name, own);
        if (strcmp (asked, own) == 0)
            return &all[i];
    }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        plain (same[i].name, own);
        if (strcmp (asked, own) == 0)
            return workload_preset_find (same[i].preset);
    }
    return NULL;
}

void workload_presets_near (const char *name, struct text *out)
{
    char asked[PLAIN_MAX], own[PLAIN_MAX];
    int n, named = 0;
    const struct workload_model *all = workload_presets (&n);

    plain (name, asked);
    /* The nearest first; over a third of the name changed, it is another one.  What begins with
     * the name is as near as the last. */
    for (int d = 1, most = (int) strlen (asked) / 3; d <= most && named < 3; d++)
        for (int i = 0; i < n && named < 3; i++) {
            plain (all[i].name, own);

            int apart = text_distance (asked, own);

            if (apart > most && strncmp (asked, own, strlen (asked)) == 0)
                apart = most;
            if (apart == d)
                text_add (out, "%s%s", named++ > 0 ? ", " : "", all[i].name);
        }
}
