/* This machine: hwloc looks at it, its XML is read as any other, and then what hwloc as
 * packaged does not know is added: models, UUIDs and NVLinks from NVML, the rates of NICs
 * from the kernel. */
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology/machine/import_private.h"
#include "topology/links_doc.h"
#include "topology/machine/nvml.h"

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

        st = import_hwloc.read_machine (&in, m);
        hwloc_free_xmlbuffer (topology, xml);
    }
    hwloc_topology_destroy (topology);
    return st;
}

/* ---- NVML ---- */

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
            m.name = strndup (host, strcspn (host, "."));
        }
        st = machine_to_json (&m, "this machine", doc, notes, err);
    }
    if (st == ST_OK)
        json_object_set_new (*doc, "captured", topology_links_now ());
    machine_release (&m);
    return st;
}
