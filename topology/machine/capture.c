/* This machine: hwloc looks at it, its XML is read as any other, and then what hwloc as
 * packaged does not know is added: models, UUIDs and NVLinks from NVML, the rates of NICs
 * from the kernel. */
#include <dlfcn.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology/machine/machine.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

/* ---- hwloc ---- */

static enum status look (struct machine *m, struct notes *notes, struct error *err)
{
    hwloc_topology_t topology;
    char *xml = NULL;
    int len = 0;
    enum status st;

    if (hwloc_topology_init (&topology) != 0)
        return err_nomem (err);
    /* What asks X servers and OpenCL runtimes for their GPUs is slow where these hang, and
     * tells nothing that is needed here. */
    hwloc_topology_set_components (topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                   "gl");
    hwloc_topology_set_components (topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                   "opencl");
    /* PCI devices and what the kernel calls them are left out by default. */
    if (hwloc_topology_set_io_types_filter (topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) !=
            0 ||
        hwloc_topology_load (topology) != 0 ||
        hwloc_topology_export_xmlbuffer (topology, &xml, &len, 0) != 0)
        st = err_set (err, ST_IO, "hwloc cannot read this machine");
    else {
        /* len counts the NUL. */
        struct import in = {"this machine", xml, strlen (xml), notes, err};

        st = import_machine (&import_hwloc, &in, m);
        hwloc_free_xmlbuffer (topology, xml);
    }
    hwloc_topology_destroy (topology);
    return st;
}

/* ---- NVML ----
 *
 * The NVIDIA driver's management library is loaded at run time: a machine without it has none.  The
 * few calls that are needed are declared here, as nvml.h (CUDA 12) has them: the library keeps them
 * compatible, and building does not need CUDA. */

#define NVML_LINKS_MAX 36

struct nvml_gpu {
    char pci[MACHINE_PCI_TEXT];
    char model[96], uuid[96];
    int n_links; /* NVLinks that are up */
    struct {
        char pci[MACHINE_PCI_TEXT]; /* of the other end, "" when it has none */
        bool is_switch;
    } link[NVML_LINKS_MAX];
};

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

/* The GPUs that this process may use, by PCI address.
 * @param[out] out  [return value], to be freed; NULL when there are none
 * @param[out] why  what is missing, in words; NULL where library and driver are there */
static int nvml_gpus (struct nvml_gpu **out, const char **why)
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

static void add_nvlinks (struct machine *m, const struct nvml_gpu *gpu, int n)
{
    double *to_switch = calloc ((size_t) m->n_gpus + 1, sizeof *to_switch);

    for (int k = 0; to_switch && k < n; k++) {
        int i = machine_find_gpu (m, gpu[k].pci);

        for (int l = 0; i >= 0 && l < gpu[k].n_links; l++) {
            int j = machine_find_gpu (m, gpu[k].link[l].pci);

            if (gpu[k].link[l].is_switch)
                to_switch[i]++;
            else if (j >= 0 && j != i)
                m->links[i * m->n_gpus + j]++;
        }
    }
    if (to_switch)
        machine_join_switches (m, to_switch, to_switch, m->links);
    m->has_nvlinks = to_switch != NULL;
    free (to_switch);
}

static void add_nvml (struct machine *m, struct notes *notes)
{
    struct nvml_gpu *gpu;
    const char *why;
    int n = nvml_gpus (&gpu, &why), nvidia = 0;

    for (int i = 0; i < m->n_gpus; i++)
        nvidia += m->gpu[i].vendor == 0x10de;
    if (why && nvidia > 0)
        notes_add (notes, "%s: models, UUIDs and NVLinks come from hwloc alone", why);
    for (int k = 0; k < n; k++) {
        int i = machine_find_gpu (m, gpu[k].pci);

        if (i < 0) {
            notes_add (
                notes,
                "the driver's GPU at %s is not a PCI device that hwloc sees: left out",
                gpu[k].pci);
            continue;
        }
        free (m->gpu[i].model);
        free (m->gpu[i].uuid);
        m->gpu[i].model = strdup (gpu[k].model);
        m->gpu[i].uuid = strdup (gpu[k].uuid);
    }
    if (n > 0 && n < nvidia)
        notes_add (notes, "the driver offers %d of %d NVIDIA GPUs on the PCI bus", n,
                   nvidia);
    if (n > 0)
        add_nvlinks (m, gpu, n);
    free (gpu);
}

/* ---- NICs ---- */

/* The first number of a one-line file of the kernel; 0 when there is none. */
static double kernel_number (const char *format, const char *name)
{
    char path[512], line[64];
    double x = 0;
    FILE *f;

    snprintf (path, sizeof path, format, name);
    f = fopen (path, "re");
    if (f && fgets (line, sizeof line, f))
        x = strtod (line, NULL);
    if (f)
        fclose (f);
    return x > 0 && x < 1e9 ? x : 0;
}

static void add_rates (struct machine *m)
{
    for (int i = 0; i < m->n_nics; i++) {
        struct machine_nic *n = &m->nic[i];
        double gbit = kernel_number ("/sys/class/infiniband/%s/ports/1/rate", n->name);

        if (gbit <= 0)
            gbit = kernel_number ("/sys/class/net/%s/speed", n->name) / 1e3;
        n->gb_per_s = gbit / 8;
    }
}

/* ---- the node ---- */

/* Some virtual machines count little of their memory to a NUMA node: the whole is told, too. */
static void add_memory (struct machine *m)
{
    double pages = (double) sysconf (_SC_PHYS_PAGES),
           page = (double) sysconf (_SC_PAGESIZE);

    if (pages > 0 && page > 0)
        m->memory_bytes = fmax (m->memory_bytes, pages * page);
}

enum status topology_capture (json_t **doc, struct notes *notes, struct error *err)
{
    struct machine m = {.source = strdup ("linkwise topo"),
                        .name = strdup ("this machine")};
    char host[256] = "";
    enum status st = look (&m, notes, err);

    if (st == ST_OK) {
        add_nvml (&m, notes);
        add_rates (&m);
        add_memory (&m);
        if (gethostname (host, sizeof host - 1) == 0 && host[0]) {
            free (m.name);
            m.name = strndup (host, topology_host_length (host));
        }
        st = machine_to_json (&m, "this machine", doc, notes, err);
    }
    if (st == ST_OK)
        json_object_set_new (*doc, "captured", topology_links_now ());
    machine_release (&m);
    return st;
}
