/* The words of the command line and the files for the enums of workload.h. */
#include "workload/workload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const precisions[] = {"bf16", "fp16", "fp8", "fp32", "tf32"};
static const char *const attentions[] = {"flash", "fused", "unfused", "flash1"};
static const char *const all_reduces[] = {"auto",         "ring", "tree",
                                          "hierarchical", "nvls", "nvls-tree"};

/* Defines workload_X_parse: the value of enum workload_X that a word names. */
#define PARSER(X, names)                                              \
    bool workload_##X##_parse (const char *s, enum workload_##X *out) \
    {                                                                 \
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)     \
            if (strcmp (names[i], s) == 0) {                          \
                *out = (enum workload_##X) i;                         \
                return true;                                          \
            }                                                         \
        return false;                                                 \
    }

PARSER (precision, precisions)
PARSER (attention, attentions)
PARSER (all_reduce, all_reduces)

const char *workload_precision_name (enum workload_precision p)
{
    return precisions[p];
}

const char *workload_attention_name (enum workload_attention a)
{
    return attentions[a];
}

const char *workload_all_reduce_name (enum workload_all_reduce a)
{
    return all_reduces[a];
}

bool workload_choice_parse (const char *s, enum workload_choice *c)
{
    if (strcmp (s, "on") != 0 && strcmp (s, "off") != 0)
        return false;
    *c = strcmp (s, "on") == 0 ? CHOICE_YES : CHOICE_NO;
    return true;
}

const char *workload_recompute_text (const struct workload_config *c, char buf[24])
{
    static const char *const words[] = {"none", "selective", "full"};

    if (c->recompute == RECOMPUTE_FULL && c->recompute_layers > 0)
        snprintf (buf, 24, "full:%d", c->recompute_layers);
    else
        snprintf (buf, 24, "%s", words[c->recompute]);
    return buf;
}

bool workload_recompute_parse (const char *s, enum workload_recompute *r, int *layers)
{
    char *end;
    long n = 0;

    if (strncmp (s, "full:", 5) == 0) {
        n = s[5] >= '0' && s[5] <= '9' ? strtol (s + 5, &end, 10) : 0;
        if (n < 1 || n > INT_MAX || *end)
            return false;
        *r = RECOMPUTE_FULL;
    } else if (strcmp (s, "none") == 0)
        *r = RECOMPUTE_NONE;
    else if (strcmp (s, "selective") == 0)
        *r = RECOMPUTE_SELECTIVE;
    else if (strcmp (s, "full") == 0)
        *r = RECOMPUTE_FULL;
    else
        return false;
    *layers = (int) n;
    return true;
}
