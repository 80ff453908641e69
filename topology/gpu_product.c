#include "topology/gpu_product.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "topology/topology.h"

/* Words that must all occur in the product's name, and the type.  The first row that holds
 * wins, so that longer names stand before the shorter ones that they contain. */
static const struct product {
    const char *words[3];
    const char *type; /* NULL: it is no built-in one */
} products[] = {
    {{"GB300"}, "gb300-288g"},
    {{"GB200"}, "gb200-192g"},
    {{"GB10"}, "gb10"},
    {{"GH200", "144G"}, "gh200-144g"},
    {{"GH200"}, "gh200-96g"},
    {{"B300"}, "b300-288g"},
    {{"B200"}, "b200-192g"},
    {{"B100"}, "b100-192g"},
    {{"H200", "NVL"}, NULL},
    {{"H200"}, "h200-sxm-141g"},
    {{"H100", "PCIe"}, "h100-pcie-80g"},
    {{"H100", "NVL"}, NULL},
    {{"H100", "80GB", "HBM3"}, "h100-sxm5-80g"},
    {{"H800", "PCIe"}, NULL},
    {{"H800"}, "h800-sxm5-80g"},
    {{"H20-3e"}, NULL},
    {{"H20"}, "h20-96g"},
    {{"A800-SXM4-80GB"}, "a800-sxm4-80g"},
    {{"A100-SXM4-80GB"}, "a100-sxm4-80g"},
    {{"A100-SXM4-40GB"}, "a100-sxm4-40g"},
    {{"A100-SXM-80GB"}, "a100-sxm4-80g"},
    {{"A100", "PCI", "80GB"}, "a100-pcie-80g"},
    {{"A100 80GB"}, "a100-pcie-80g"},
    {{"L40S"}, "l40s"},
    {{"L40"}, "l40"},
    {{"RTX A6000"}, "rtx-a6000"},
    {{"RTX A5000"}, "rtx-a5000"},
    {{"RTX 6000 Ada"}, "rtx-6000-ada"},
    {{"RTX PRO 6000"}, "rtx-pro-6000"},
    {{"RTX 8000"}, "rtx-8000"},
    {{"A40"}, "a40"},
    {{"A30"}, "a30"},
    {{"A10"}, "a10"},
    {{"A10G"}, "a10g"},
    {{"V100-SXM2-32GB"}, "v100-sxm2-32g"},
    {{"V100-SXM2-16GB"}, "v100-sxm2-16g"},
    {{"TITAN RTX"}, "titan-rtx"},
    {{"RTX 2080 Ti"}, "rtx-2080-ti"},
    {{"RTX 5090", "D"}, NULL},
    {{"RTX 5090"}, "rtx-5090"},
    {{"RTX 5060 Ti"}, "rtx-5060-ti"},
    {{"RTX 4090", "D"}, NULL},
    {{"RTX 4090"}, "rtx-4090"},
    {{"RTX 3090", "Ti"}, NULL},
    {{"RTX 3090"}, "rtx-3090"},
    {{"Tesla T4"}, "t4"},
    {{"NVIDIA L4"}, "l4"},
    {{"MI355X"}, "mi355x"},
    {{"MI350X"}, "mi350x"},
    {{"MI325X"}, "mi325x"},
    {{"MI300X"}, "mi300x"},
    {{"MI250X"}, "mi250x"},
};

/* Whatever their case; Kubernetes' labels have dashes where the driver has blanks. */
static bool same (char a, char b)
{
    return tolower ((unsigned char) (a == '-' ? ' ' : a)) ==
           tolower ((unsigned char) (b == '-' ? ' ' : b));
}

/* True if word stands in s and no letter or digit follows it ("L4" is not in "L40"). */
static bool has_word (const char *s, const char *word)
{
    for (; *s; s++) {
        size_t n = 0;

        while (word[n] && s[n] && same (s[n], word[n]))
            n++;
        if (!word[n] && !isalnum ((unsigned char) s[n]))
            return true;
    }
    return false;
}

static const struct product *find (const char *product)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        bool all = true;

        for (int k = 0; k < 3 && products[i].words[k] && all; k++)
            all = has_word (product, products[i].words[k]);
        if (all)
            return &products[i];
    }
    return NULL;
}

const char *topology_gpu_type_of_product (const char *product, double memory_bytes)
{
    const struct product *p = find (product);
    const struct topology_gpu_type *t =
        p && p->type ? topology_gpu_type_builtin (p->type) : NULL;

    /* A card of that name with another memory is another type. */
    if (!t || (memory_bytes > 0 &&
               fabs (memory_bytes - t->memory_bytes) > 0.1 * t->memory_bytes))
        return NULL;
    return t->name;
}

bool topology_gpu_product_other (const char *product)
{
    const struct product *p = find (product);

    return p && !p->type;
}
