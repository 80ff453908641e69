/* PCI numbers: the PCI ID database (pci-ids.ucw.cz).
 * Rates of NVLinks, and of PCIe by generation: what NCCL counts on (src/graph/topo.h:
 * SM60 18, SM70 and SM80 20, SM86 12, SM90 20.6, SM100 40.1; PCIe 3, 4, 5 x16: 12, 24,
 * 48); of xGMI: what RCCL counts on (MI200 36, MI300 48). */
#include "topology/topology_private.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

struct known {
    const char *type;
    unsigned vendor, device;
    double link_gb_per_s;
    int links; /* of one GPU, when all of them lead to a switch or to every other GPU */
    double pci_gb_per_s; /* for types without links */
};

#define NV 0x10de
#define AMD 0x1002

static const struct known table[] = {
    {"v100-sxm2-16g", NV, 0x1db1, 20, 0, 0},
    {"v100-sxm2-32g", NV, 0x1db5, 20, 0, 0},
    {"t4", NV, 0x1eb8, 0, 0, 12},
    {"a10g", NV, 0x2237, 0, 0, 24},
    {"l4", NV, 0x27b8, 0, 0, 24},
    {"l40s", NV, 0x26b9, 0, 0, 24},
    {"rtx-4090", NV, 0x2684, 0, 0, 24},
    {"rtx-3090", NV, 0x2204, 12, 0, 24},
    {"a100-sxm4-40g", NV, 0x20b0, 20, 12, 0},
    {"a100-sxm4-80g", NV, 0x20b2, 20, 12, 0},
    {"a100-pcie-80g", NV, 0x20b5, 20, 0, 24},
    {"a800-sxm4-80g", NV, 0x20f3, 20, 8, 0},
    {"h100-sxm5-80g", NV, 0x2330, 20.6, 18, 0},
    {"h100-pcie-80g", NV, 0x2331, 20.6, 0, 48},
    {"h200-sxm-141g", NV, 0x2335, 20.6, 18, 0},
    {"v100-pcie-16g", NV, 0x1db4, 0, 0, 12},
    {"v100-pcie-32g", NV, 0x1db6, 0, 0, 12},
    {"a100-pcie-40g", NV, 0x20f1, 20, 0, 24},
    {"h100-nvl-94g", NV, 0x2321, 20.6, 0, 48},
    {"h200-nvl-141g", NV, 0x233b, 20.6, 0, 48},
    {"l20", NV, 0x26ba, 0, 0, 24},
    {"mi210", AMD, 0x740f, 36, 0, 24},
    {"b200-192g", NV, 0x2901, 40.1, 18, 0},
    {"b300-288g", NV, 0x3182, 40.1, 18, 0},
    {"gb200-192g", NV, 0x2941, 40.1, 18, 0},
    {"gb300-288g", NV, 0x31c2, 40.1, 18, 0},
    {"mi250x", AMD, 0x7408, 36, 0, 0},
    {"mi300x", AMD, 0x74a1, 48, 1, 0},
    {"mi355x", AMD, 0x75a3, 48, 1, 0},
};

static const struct known *find (const char *type)
{
    const struct topology_gpu_type *t = type ? topology_gpu_type_meant (type) : NULL;

    for (size_t i = 0; t && i < sizeof table / sizeof *table; i++)
        if (strcmp (table[i].type, t->name) == 0)
            return &table[i];
    return NULL;
}

const char *known_gpu_type (const char *model, unsigned vendor, unsigned device)
{
    if (model)
        return topology_gpu_type_of_product (model, 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].vendor == vendor && table[i].device == device)
            return table[i].type;
    return NULL;
}

double known_link_gb_per_s (const char *type)
{
    const struct known *k = find (type);

    return k ? k->link_gb_per_s : 0;
}

double known_sm_link_gb_per_s (int sm)
{
    return sm >= 100  ? 40.1
           : sm >= 90 ? 20.6
           : sm == 86 ? 12
           : sm >= 70 ? 20
           : sm >= 60 ? 18
                      : 0;
}

double known_pair_gb_per_s (const char *type)
{
    const struct known *k = find (type);

    return !k ? 0 : k->links > 0 ? k->links * k->link_gb_per_s : k->pci_gb_per_s;
}

/* An `intra` object of nominal figures.  @param bandwidth  stolen */
static json_t *nominal (json_t *bandwidth, const char *source)
{
    return json_pack ("{s:o, s:f, s:b, s:s}", "bandwidth_gb_per_s", bandwidth,
                      "latency_us", TOPOLOGY_INTRA_LATENCY_US, "nominal", 1, "source",
                      source);
}

json_t *known_intra_of (const double *gb_per_s, size_t n, const char *source)
{
    json_t *rows = json_array ();
    bool alike = gb_per_s[1] > 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double x = gb_per_s[i * n + j];

            alike = alike && (i == j || (x <= gb_per_s[1] && x >= gb_per_s[1]));
            json_array_append_new (json_row_in (rows, (int) i),
                                   json_number_or_null (i != j && x > 0 ? x : NAN));
        }
    if (!alike)
        return nominal (rows, source);
    json_decref (rows);
    return nominal (json_real (gb_per_s[1]), source);
}

/* NVLinks of a pair: "NV12" is 12. */
static double links_of (const json_t *path, size_t i, size_t j)
{
    const char *word = json_string_value (json_array_get (json_array_get (path, i), j));

    return word && strncmp (word, "NV", 2) == 0 ? atof (word + 2) : 0;
}

json_t *known_intra (const json_t *node, const char *type, double link_gb_per_s)
{
    const json_t *path = json_object_get (node, "gpu_path");
    size_t n = (size_t) json_member_int (node, "gpus");
    double rate = known_link_gb_per_s (type), pair = known_pair_gb_per_s (type);
    double *gb_per_s;
    bool any = false;
    json_t *intra;

    rate = rate > 0 ? rate : link_gb_per_s;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            any = any || links_of (path, i, j) > 0;
    if (n < 2 || (any ? rate <= 0 : pair <= 0))
        return NULL;
    if (!any)
        return nominal (json_real (pair), "rate of the GPU type's links");
    if (!(gb_per_s = malloc (n * n * sizeof *gb_per_s)))
        return NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            gb_per_s[i * n + j] = rate * links_of (path, i, j);
    intra = known_intra_of (gb_per_s, n, "NVLinks counted, times the rate of one");
    free (gb_per_s);
    return intra;
}
