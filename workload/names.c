/* The words of the command line and the files for the enums of workload.h. */
#include "workload/workload.h"

#include <limits.h>
#include <string.h>

const char *const workload_precision_words[] = {"bf16", "fp16", "fp8", "fp32",
                                                "tf32", "fp4",  NULL};
const char *const workload_attention_words[] = {"flash", "fused", "unfused", "flash1",
                                                NULL};
const char *const workload_all_reduce_words[] = {
    "auto", "ring", "tree", "hierarchical", "nvls", "nvls-tree", NULL};
const char *const workload_offload_words[] = {"none", "optimizer", "all", "checkpoints",
                                              NULL};
const char *const workload_recompute_words[] = {"none", "selective", "full", NULL};
static const char *const modules[WORKLOAD_MODULES] = {
    "core_attn", "layernorm", "mlp", "moe_act", "mla_up_proj", "moe", "shared_experts"};

bool workload_word_parse (const char *const *words, const char *s, void *out)
{
    /* Recipes that frameworks name, of precisions. */
    if (strcmp (s, "mxfp8") == 0)
        s = "fp8";
    if (strcmp (s, "nvfp4") == 0 || strcmp (s, "mxfp4") == 0)
        s = "fp4";
    for (int i = 0; words[i]; i++)
        if (strcmp (words[i], s) == 0) {
            *(int *) out = i;
            return true;
        }
    return false;
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
        snprintf (buf, WORKLOAD_RECOMPUTE_TEXT, "%s",
                  workload_recompute_words[c->recompute]);
    for (int i = 0; i < WORKLOAD_MODULES && c->recompute == RECOMPUTE_SELECTIVE; i++)
        if (c->recompute_modules >> i & 1)
            used += (size_t) snprintf (buf + used, WORKLOAD_RECOMPUTE_TEXT - used, "%s%s",
                                       used ? "," : "", modules[i]);
    return buf;
}

bool workload_recompute_parse (const char *s, struct workload_config *c)
{
    int kind = RECOMPUTE_FULL;
    unsigned only = 0;
    long n = 0;

    if (strncmp (s, "full:", 5) == 0) {
        if (s[5] < '0' || s[5] > '9' || !text_whole (s + 5, 1, INT_MAX, &n))
            return false;
    } else if (workload_modules_parse (s, &only)) {
        kind = RECOMPUTE_SELECTIVE;
    } else if (!workload_word_parse (workload_recompute_words, s, &kind)) {
        return false;
    }
    c->recompute = (enum workload_recompute) kind;
    c->recompute_layers = (int) n;
    c->recompute_modules = only;
    return true;
}
