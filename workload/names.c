/* The words of the command line and the files for the enums of workload.h. */
#include "workload/workload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const precisions[] = {"bf16", "fp16", "fp8", "fp32"};
static const char *const attentions[] = {"flash", "fused", "unfused", "flash1"};
static const char *const all_reduces[] = {"auto",         "ring", "tree",
                                          "hierarchical", "nvls", "nvls-tree"};

static int find (const char *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp (names[i], s) == 0)
            return (int) i;
    return -1;
}

#define FIND(s, names) find (s, names, sizeof names / sizeof *names)

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

bool workload_all_reduce_parse (const char *s, enum workload_all_reduce *a)
{
    int i = FIND (s, all_reduces);

    if (i >= 0)
        *a = (enum workload_all_reduce) i;
    return i >= 0;
}

bool workload_precision_parse (const char *s, enum workload_precision *p)
{
    int i = FIND (s, precisions);

    if (i >= 0)
        *p = (enum workload_precision) i;
    return i >= 0;
}

bool workload_attention_parse (const char *s, enum workload_attention *a)
{
    int i = FIND (s, attentions);

    if (i >= 0)
        *a = (enum workload_attention) i;
    return i >= 0;
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

    if (strcmp (s, "none") == 0)
        *r = RECOMPUTE_NONE;
    else if (strcmp (s, "selective") == 0)
        *r = RECOMPUTE_SELECTIVE;
    else if (strcmp (s, "full") == 0)
        *r = RECOMPUTE_FULL;
    else if (strncmp (s, "full:", 5) == 0 && s[5] >= '0' && s[5] <= '9') {
        long n = strtol (s + 5, &end, 10);

        if (*end || n < 1 || n > INT_MAX)
            return false;
        *r = RECOMPUTE_FULL;
        *layers = (int) n;
        return true;
    } else
        return false;
    *layers = 0;
    return true;
}
