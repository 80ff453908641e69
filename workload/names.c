/* The words of the command line and the files for the enums of workload.h. */
#include "workload/workload.h"

#include <limits.h>
#include <string.h>

static const char *const precisions[] = {"bf16", "fp16", "fp8", "fp32", "tf32", "fp4"};
static const char *const attentions[] = {"flash", "fused", "unfused", "flash1"};
static const char *const all_reduces[] = {"auto",         "ring", "tree",
                                          "hierarchical", "nvls", "nvls-tree"};

static const char *const offloads[WORKLOAD_OFFLOADS] = {"none", "optimizer", "all",
                                                        "checkpoints"};
static const char *const recomputes[] = {"none", "selective", "full"};
static const char *const modules[WORKLOAD_MODULES] = {
    "core_attn", "layernorm", "mlp", "moe_act", "mla_up_proj", "moe", "shared_experts"};

/* Defines PARSE: the value of enum workload_X that a word names. */
#define PARSER(PARSE, X, names)                                   \
    bool PARSE (const char *s, enum workload_##X *out)            \
    {                                                             \
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) \
            if (strcmp (names[i], s) == 0) {                      \
                *out = (enum workload_##X) i;                     \
                return true;                                      \
            }                                                     \
        return false;                                             \
    }

static PARSER (format_parse, precision, precisions)
    PARSER (workload_attention_parse, attention, attentions)
        PARSER (workload_all_reduce_parse, all_reduce, all_reduces)
            PARSER (workload_offload_parse, offload, offloads)

                bool workload_precision_parse (const char *s, enum workload_precision *p)
{
    /* Recipes that frameworks name. */
    if (strcmp (s, "mxfp8") == 0)
        s = "fp8";
    if (strcmp (s, "nvfp4") == 0 || strcmp (s, "mxfp4") == 0)
        s = "fp4";
    return format_parse (s, p);
}

const char *workload_precision_name (enum workload_precision p)
{
    return precisions[p];
}

const char *workload_attention_name (enum workload_attention a)
{
    return attentions[a];
}

const char *workload_offload_name (enum workload_offload o)
{
    return offloads[o];
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

const char *workload_module_name (enum workload_module m)
{
    return modules[m];
}

bool workload_modules_parse (const char *s, unsigned *out)
{
    unsigned all = 0;

    for (s += strspn (s, ", "); *s; s += strspn (s, ", ")) {
        size_t n = strcspn (s, ", "), i = 0;

        while (i < WORKLOAD_MODULES &&
               (strlen (modules[i]) != n || strncmp (modules[i], s, n) != 0))
            i++;
        if (i == WORKLOAD_MODULES)
            return false;
        all |= 1u << i;
        s += n;
    }
    if (all)
        *out = all;
    return all != 0;
}

const char *workload_recompute_text (const struct workload_config *c,
                                     char buf[WORKLOAD_RECOMPUTE_TEXT])
{
    size_t used = 0;

    if (c->recompute == RECOMPUTE_FULL && c->recompute_layers > 0)
        snprintf (buf, WORKLOAD_RECOMPUTE_TEXT, "full:%d", c->recompute_layers);
    else
        snprintf (buf, WORKLOAD_RECOMPUTE_TEXT, "%s", recomputes[c->recompute]);
    for (int i = 0; i < WORKLOAD_MODULES && c->recompute == RECOMPUTE_SELECTIVE; i++)
        if (c->recompute_modules >> i & 1)
            used += (size_t) snprintf (buf + used, WORKLOAD_RECOMPUTE_TEXT - used, "%s%s",
                                       used ? "," : "", modules[i]);
    return buf;
}

bool workload_recompute_parse (const char *s, struct workload_config *c)
{
    size_t kind = 0;
    unsigned only = 0;
    long n = 0;

    if (strncmp (s, "full:", 5) == 0) {
        if (s[5] < '0' || s[5] > '9' || !text_whole (s + 5, 1, INT_MAX, &n))
            return false;
        kind = RECOMPUTE_FULL;
    } else if (workload_modules_parse (s, &only)) {
        kind = RECOMPUTE_SELECTIVE;
    } else {
        while (kind < sizeof recomputes / sizeof *recomputes &&
               strcmp (recomputes[kind], s) != 0)
            kind++;
        if (kind == sizeof recomputes / sizeof *recomputes)
            return false;
    }
    c->recompute = (enum workload_recompute) kind;
    c->recompute_layers = (int) n;
    c->recompute_modules = only;
    return true;
}
