/* The few calls that are needed are declared here, as nvml.h (CUDA 12) has them: the
 * library keeps them compatible, and building does not need CUDA. */
#include "topology/machine/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct nvml_pci {
    char old_bus_id[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

typedef int simple_fn (void);
typedef int count_fn (unsigned *);
typedef int handle_fn (unsigned, void **);
typedef int pci_fn (void *, struct nvml_pci *);
typedef int text_fn (void *, char *, unsigned);
typedef int link_state_fn (void *, unsigned, int *);
typedef int link_pci_fn (void *, unsigned, struct nvml_pci *);
typedef int link_type_fn (void *, unsigned, int *);

struct nvml {
    void *library;
    simple_fn *init, *shutdown;
    count_fn *count;
    handle_fn *handle;
    pci_fn *pci;
    text_fn *name, *uuid;
    link_state_fn *link_state;
    link_pci_fn *link_pci;
    link_type_fn *link_type; /* absent before CUDA 11 */
};

enum { NVML_LINK_TO_SWITCH = 2 };

/* dlsym gives an object pointer; POSIX lets it be a function's. */
static bool find (struct nvml *n, const char *name, void *function)
{
    *(void **) function = dlsym (n->library, name);
    return *(void **) function != NULL;
}

static bool load (struct nvml *n)
{
    n->library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return false;
    find (n, "nvmlDeviceGetNvLinkRemoteDeviceType", &n->link_type);
    return find (n, "nvmlInit_v2", &n->init) && find (n, "nvmlShutdown", &n->shutdown) &&
           find (n, "nvmlDeviceGetCount_v2", &n->count) &&
           find (n, "nvmlDeviceGetHandleByIndex_v2", &n->handle) &&
           find (n, "nvmlDeviceGetPciInfo_v3", &n->pci) &&
           find (n, "nvmlDeviceGetName", &n->name) &&
           find (n, "nvmlDeviceGetUUID", &n->uuid) &&
           find (n, "nvmlDeviceGetNvLinkState", &n->link_state) &&
           find (n, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &n->link_pci);
}

static void read_links (const struct nvml *n, void *device, struct nvml_gpu *g)
{
    for (unsigned k = 0; k < NVML_LINKS_MAX; k++) {
        struct nvml_pci pci = {.bus_id = ""};
        int up = 0, type = 0;

        if (n->link_state (device, k, &up) != 0 || !up)
            continue;
        if (n->link_type && n->link_type (device, k, &type) == 0)
            g->link[g->n_links].is_switch = type == NVML_LINK_TO_SWITCH;
        if (n->link_pci (device, k, &pci) == 0)
            machine_pci (pci.bus_id, g->link[g->n_links].pci);
        g->n_links++;
    }
}

static bool read_gpu (const struct nvml *n, unsigned index, struct nvml_gpu *g)
{
    struct nvml_pci pci = {.bus_id = ""};
    void *device;

    if (n->handle (index, &device) != 0 || n->pci (device, &pci) != 0 ||
        !machine_pci (pci.bus_id, g->pci) ||
        n->name (device, g->model, sizeof g->model) != 0 ||
        n->uuid (device, g->uuid, sizeof g->uuid) != 0)
        return false;
    read_links (n, device, g);
    return true;
}

int nvml_gpus (struct nvml_gpu **out, const char **why)
{
    struct nvml n = {0};
    unsigned count = 0;
    int found = 0;

    *out = NULL;
    *why = NULL;
    if (!load (&n)) {
        *why = "the NVIDIA driver's library libnvidia-ml.so.1 is missing";
        if (n.library)
            dlclose (n.library);
        return 0;
    }
    if (n.init () != 0)
        *why = "the NVIDIA driver does not answer";
    else {
        if (n.count (&count) != 0 || count > 1024)
            count = 0;
        *out = calloc (count + 1, sizeof **out);
        for (unsigned k = 0; *out && k < count; k++)
            found += read_gpu (&n, k, &(*out)[found]);
        n.shutdown ();
    }
    dlclose (n.library);
    return found;
}
