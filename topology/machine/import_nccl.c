/* NCCL's topology XML: what NCCL_TOPO_DUMP_FILE writes and what cloud providers ship for
 * NCCL_TOPO_FILE.  The latter are skeletons: PCI devices without <gpu>, <nvlink>, <net>,
 * and some without classes; what they lack is noted. */
#include <stdlib.h>
#include <string.h>

#include "base/xml.h"
#include "topology/machine/machine.h"

struct reading {
    const struct import *in;
    struct machine *m;
    const struct xml *root;
    int unclassed; /* PCI devices that could be anything */
};

static bool named (const struct xml *x, const char *name)
{
    return strcmp (x->name, name) == 0;
}

static const struct xml *child (const struct xml *x, const char *name)
{
    for (x = x->first; x && !named (x, name);)
        x = x->next;
    return x;
}

/* An attribute's hexadecimal number, 0 when absent. */
static unsigned hex (const struct xml *x, const char *key)
{
    const char *s = xml_attr (x, key);

    return s ? (unsigned) strtoul (s, NULL, 16) : 0;
}

static double number (const struct xml *x, const char *key)
{
    const char *s = xml_attr (x, key);
    double v = s ? strtod (s, NULL) : 0;

    return v > 0 && v < 1e9 ? v : 0;
}

static const struct xml *cpu_of (const struct xml *x)
{
    while (x && !named (x, "cpu"))
        x = x->up;
    return x;
}

static int numa_of (const struct xml *x)
{
    const struct xml *cpu = cpu_of (x);
    const char *s = cpu ? xml_attr (cpu, "numaid") : NULL;
    long id = s ? strtol (s, NULL, 10) : -1;

    return id >= 0 && id <= 65535 ? (int) id : -1;
}

/* ---- devices ---- */

static bool is_gpu (const struct xml *pci)
{
    unsigned class = hex (pci, "class") >> 8;

    return child (pci, "gpu") || class == 0x0302 || class == 0x0300 || class == 0x0380 ||
           class == 0x1200;
}

/* A NIC of a skeleton: no <net> in it. */
static bool is_bare_nic (const struct xml *pci)
{
    return hex (pci, "class") >> 16 == 0x02 && !child (pci, "nic");
}

static enum status bad_address (const struct reading *r, const struct xml *x,
                                const char *busid)
{
    return import_fail (r->in, "line %d: busid: expected a PCI address, found \"%.40s\"",
                        x->line, busid ? busid : "");
}

static enum status add_gpu (struct reading *r, const struct xml *pci)
{
    struct machine_gpu *g = machine_add_gpu (r->m);
    const char *busid = xml_attr (pci, "busid");
    const struct xml *gpu = child (pci, "gpu"), *cpu = cpu_of (pci);
    const char *affinity = cpu ? xml_attr (cpu, "affinity") : NULL;

    if (!g)
        return err_nomem (r->in->err);
    if (!busid || !machine_pci (busid, g->pci))
        return bad_address (r, pci, busid);
    g->at = pci;
    g->vendor = hex (pci, "vendor");
    g->device = hex (pci, "device");
    g->sm = gpu ? (int) number (gpu, "sm") : 0;
    g->numa = numa_of (pci);
    g->cpus = affinity ? machine_cpus (affinity) : NULL;
    return ST_OK;
}

/* A <net>, or the <pci> of a NIC without one, which is called after its address. */
static enum status add_nic (struct reading *r, const struct xml *x)
{
    const struct xml *pci = x;
    const char *name = named (x, "net") ? xml_attr (x, "name") : NULL, *busid;
    int port = named (x, "net") ? (int) number (x, "port") : 0;
    struct text t = {0};
    struct machine_nic *n = machine_add_nic (r->m);

    if (!n)
        return err_nomem (r->in->err);
    /* <pci><nic><net/>; some files have <cpu><nic><net/>. */
    while (pci && !named (pci, "pci"))
        pci = pci->up;
    n->at = pci ? pci : x;
    busid = pci ? xml_attr (pci, "busid") : NULL;
    if (busid && !machine_pci (busid, n->pci))
        return bad_address (r, pci, busid);
    n->rdma = true;
    n->numa = numa_of (x);
    n->gb_per_s = named (x, "net") ? number (x, "speed") / 8e3 : 0;
    /* The ports of one adapter share its name. */
    text_add (&t, port > 1 ? "%s:%d" : "%s", name ? name : n->pci, port);
    n->name = t.s;
    return t.failed ? err_nomem (r->in->err) : ST_OK;
}

static enum status add_cpu (struct reading *r, const struct xml *cpu)
{
    const char *affinity = xml_attr (cpu, "affinity");
    struct machine_numa *n = machine_add_numa (r->m);

    if (!n)
        return err_nomem (r->in->err);
    n->id = numa_of (cpu) >= 0 ? numa_of (cpu) : 0;
    n->cpus = affinity ? machine_cpus (affinity) : NULL;
    return ST_OK;
}

static enum status read_devices (struct reading *r)
{
    enum status st = ST_OK;

    for (const struct xml *x = r->root; x && st == ST_OK; x = xml_next (x, r->root)) {
        if (named (x, "cpu"))
            st = add_cpu (r, x);
        else if (named (x, "pci") && is_gpu (x))
            st = add_gpu (r, x);
        else if ((named (x, "pci") && is_bare_nic (x)) || named (x, "net"))
            st = add_nic (r, x);
        else if (named (x, "pci") && !xml_attr (x, "class") && !child (x, "pci") &&
                 !child (x, "nic"))
            r->unclassed++;
    }
    return st == ST_OK ? machine_prepare (r->m, r->in->name, r->in->err) : st;
}

/* ---- paths ---- */

/* A <pci> around both is a PCIe switch; a <cpu> is a NUMA node. */
static enum machine_path path_between (const struct xml *a, const struct xml *b)
{
    const struct xml *top = xml_common (a, b);

    if (!top)
        return PATH_UNKNOWN;
    if (named (top, "pci"))
        return a->up == top && b->up == top ? PATH_PIX : PATH_PXB;
    return named (top, "cpu") ? PATH_NODE : PATH_SYS;
}

/* ---- NVLinks ---- */

static void read_nvlink (struct reading *r, int gpu, const struct xml *link,
                         double *to_switch)
{
    const char *target = xml_attr (link, "target");
    unsigned class = hex (link, "tclass") >> 8;
    double count = number (link, "count");
    char pci[MACHINE_PCI_TEXT];
    int other = target && machine_pci (target, pci) ? machine_find_gpu (r->m, pci) : -1;

    r->m->has_nvlinks = true;
    if (class == 0x0680) {
        /* An NVSwitch, or the bridge of a CPU with NVLinks, which has class 0x068001. */
        if (hex (link, "tclass") == 0x068000)
            to_switch[gpu] += count;
    } else if (other == gpu)
        import_note (r->in, "line %d: the NVLinks of GPU %s lead to itself: left out",
                     link->line, r->m->gpu[gpu].pci);
    else if (other < 0)
        import_note (
            r->in,
            "line %d: NVLinks of GPU %s lead to %.40s, which is not a GPU here: left out",
            link->line, r->m->gpu[gpu].pci, target ? target : "nothing");
    else
        r->m->links[gpu * r->m->n_gpus + other] += count;
}

static enum status read_nvlinks (struct reading *r)
{
    struct machine *m = r->m;
    double *to_switch = calloc ((size_t) m->n_gpus + 1, sizeof *to_switch);

    if (!to_switch)
        return err_nomem (r->in->err);
    for (int i = 0; i < m->n_gpus; i++) {
        const struct xml *gpu = child (m->gpu[i].at, "gpu");

        for (const struct xml *x = gpu ? gpu->first : NULL; x; x = x->next)
            if (named (x, "nvlink"))
                read_nvlink (r, i, x, to_switch);
    }
    machine_join_switches (m, to_switch, to_switch, m->links);
    free (to_switch);
    return ST_OK;
}

/* ---- the document ---- */

static enum status read_root (const struct import *in, const struct xml *root,
                              struct machine *m)
{
    struct reading of = {in, m, root, 0}, *r = &of;

    if (named (r->root, "graphs"))
        return import_fail (
            r->in, "an NCCL graph (rings and trees, NCCL_GRAPH_FILE), not a topology: "
                   "NCCL_TOPO_DUMP_FILE=FILE makes a job write its topology");
    if (!named (r->root, "system"))
        return import_fail (
            r->in, "expected NCCL topology XML with the element system, found %.40s",
            r->root->name);
    TRY (read_devices (r));
    TRY (read_nvlinks (r));
    machine_find_paths (r->m, path_between);
    if (r->unclassed > 0)
        import_note (
            r->in, "%d PCI devices have no class: GPUs and NICs among them are not found",
            r->unclassed);
    if (r->m->n_gpus > 0 && !r->m->n_nics)
        import_note (r->in, "no NIC is described");
    return ST_OK;
}

const struct importer import_nccl = {
    .format = {"nccl-topo", "NCCL topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE)"},
    .root = {"system", "graphs"},
    .read_xml = read_root,
    .source = "NCCL topology XML"};
