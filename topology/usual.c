/* The links that machines with a GPU type usually have. */
#include "topology/topology.h"

#include <string.h>

#include "base/units.h"

/* What a pair of GPUs and a node reach.  Inside: nccl-tests' bus bandwidth of two GPUs
 * (A100 and H100: docs/formulas.md, T8; others in proportion to their vendors' link
 * rates); off the node: the median of the networks that published runs of the generation
 * state (200 Gbit/s a node of V100, 800 of A100, 3,200 of H100 and B200), 50 to 200 Gbit/s
 * for PCIe types.  The first row that a name begins with holds.
 *
 * PCIe 5: nccl-tests' all-reduce of eight RTX PRO 6000 reaches 38 to 42 GB/s in four
 * machines, peer to peer (github.com/voipmonitor/rtx6kpro, hardware/pcie-bandwidth.md), that
 * of eight GeForce RTX 5090 28 GB/s (NVIDIA/nccl issue 1639): these have no peer-to-peer
 * transfers, so that all passes through the host's memory.  The RTX 4060 Ti and 5060 Ti have
 * half the lanes, Turing's GeForce cards half the rate of PCIe 4's.
 *
 * Of a die of an MI250X three links lead to other modules (AMD's CDNA 2 white paper: eight of a
 * module, two of these to the host), 36 GB/s each as RCCL counts.
 * MI100 stand in hives of four with such a link between each two, of 23 for its 25 GT/s
 * (rocm.docs.amd.com, MI100 hardware); two hives reach each other over PCIe 4. */
static const struct {
    const char *prefix; /* of the type's name */
    struct topology_usual has;
} usual[] = {
    {"v100-pcie", {10, 15, 12.5}}, {"v100s-", {10, 15, 12.5}},
    {"v100-", {130, 4, 25}},       {"titan-rtx", {10, 15, 6.25}},
    {"t4", {5, 15, 6.25}},         {"a100-pcie", {20, 12, 25}},
    {"a30", {20, 12, 12.5}},       {"a40", {20, 12, 12.5}},
    {"a100-", {230, 3, 100}},      {"a800-pcie", {20, 12, 25}},
    {"a800-", {155, 3, 100}},      {"a10", {10, 15, 12.5}},
    {"l40", {12, 15, 12.5}},       {"l20", {12, 15, 12.5}},
    {"l4", {10, 15, 12.5}},        {"rtx-pro-6000", {40, 12, 6.25}},
    {"rtx-4060", {6, 15, 6.25}},   {"rtx-5060", {14, 15, 6.25}},
    {"rtx-5000", {12, 15, 6.25}},  {"rtx-50", {28, 15, 6.25}},
    {"rtx-8000", {10, 15, 6.25}},  {"rtx-20", {6, 15, 6.25}},
    {"titan-v", {10, 15, 6.25}},   {"quadro-", {10, 15, 6.25}},
    {"rtx-", {12, 15, 6.25}},      {"h100-pcie", {40, 12, 100}},
    {"h100-nvl", {40, 12, 100}},   {"h200-nvl", {40, 12, 100}},
    {"h800-pcie", {40, 12, 100}},  {"h100-", {370, 3, 400}},
    {"h200-", {370, 3, 400}},      {"h800-", {160, 3, 400}},
    {"h20-", {370, 3, 400}},       {"gh200-", {130, 3, 100}},
    {"b100-", {700, 3, 400}},      {"b200-", {700, 3, 400}},
    {"b300-", {700, 3, 800}},      {"gb10", {20, 12, 25}},
    {"gb200-", {700, 3, 400}},     {"gb300-", {700, 3, 800}},
    {"mi100", {33, 12, 25}},       {"mi210", {25, 12, 25}},
    {"mi250", {100, 12, 100}},     {"mi35", {370, 10, 400}},
    {"mi3", {310, 10, 400}},       {"", {20, 12, 25}},
};

struct topology_usual topology_usual_links (const char *type)
{
    size_t i = 0;

    while (strncmp (type, usual[i].prefix, strlen (usual[i].prefix)) != 0)
        i++;
    return usual[i].has;
}

int topology_usual_node_gpus (const char *type)
{
    return strncmp (type, "gb10", 4) == 0 ? 1 : 8;
}

#define RACK_USED 64 /* GPUs of an NVL72 rack, so that degrees divide */
#define RACK_WHOLE 72

int topology_usual_rack (const char *type)
{
    return strncmp (type, "gb2", 3) == 0 || strncmp (type, "gb3", 3) == 0 ? RACK_USED : 0;
}

int topology_usual_domain (const char *type, int nodes, int gpus)
{
    bool trays = topology_usual_rack (type) > gpus && RACK_USED % gpus == 0 &&
                 RACK_WHOLE % gpus == 0;

    if (!trays)
        return 1;
    if (nodes <= RACK_WHOLE / gpus)
        return nodes;
    return nodes % (RACK_USED / gpus) == 0 ? RACK_USED / gpus : RACK_WHOLE / gpus;
}

/* Of the link to the host: what NCCL counts on (known.c): PCIe 3, 4 and 5 with 16 lanes 12, 24
 * and 48 GB/s, half of it with 8; NVLink-C2C 450 a direction and Grace (NVIDIA's GH200 data
 * sheet), which a GB200's two GPUs share.  Of the host's memory: its channels times their rate
 * over the GPUs of the maker's own machine (DGX-2: 2 x 6 DDR4-2666 for 16; DGX A100: 2 x 8
 * DDR4-3200, DGX H100: 2 x 8 DDR5-4800, DGX B200: 2 x 8 DDR5-5600 for 8; MI300X platforms: 2 x
 * 12 DDR5-4800 for 8; Frontier: 8 DDR4-3200 for 8 dies), of PCIe cards two such channels.  The
 * first row that a name begins with holds. */
static const struct {
    const char *prefix; /* of the type's name */
    double link_gb_per_s, memory_gb_per_s;
} hosts[] = {
    {"v100", 12, 16},     {"t4", 12, 45},       {"titan-rtx", 12, 45},
    {"rtx-2080", 12, 45}, {"rtx-8000", 12, 45}, {"rtx-4060", 12, 45},
    {"quadro-", 12, 45},  {"titan-v", 12, 45},  {"rtx-5000", 24, 45},
    {"rtx-5060", 24, 45}, {"rtx-50", 48, 45},   {"rtx-pro-6000", 48, 77},
    {"gh200-", 450, 384}, {"gb200-", 225, 256}, {"gb300-", 225, 256},
    {"h100-", 48, 77},    {"h200-", 48, 77},    {"h800-", 48, 77},
    {"h20-", 48, 77},     {"b100-", 48, 90},    {"b200-", 48, 90},
    {"b300-", 48, 90},    {"mi210", 24, 26},    {"mi250", 36, 26},
    {"mi3", 48, 115},     {"a100-", 24, 51},    {"a800-", 24, 51},
    {"", 24, 45},
};

struct topology_host topology_host_of (const struct topology_gpu_type *t)
{
    const char *name = t->like ? t->like->name : t->name;
    bool link = t->host_bytes_per_s > 0, memory = t->host_memory_bytes_per_s > 0;
    size_t i = 0;

    while (strncmp (name, hosts[i].prefix, strlen (hosts[i].prefix)) != 0)
        i++;
    return (struct topology_host){
        .link_bytes_per_s =
            link ? t->host_bytes_per_s : hosts[i].link_gb_per_s * UNITS_GB,
        .memory_bytes_per_s =
            memory ? t->host_memory_bytes_per_s : hosts[i].memory_gb_per_s * UNITS_GB,
        .nominal = !link || !memory};
}
