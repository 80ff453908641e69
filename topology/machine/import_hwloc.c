/* hwloc's XML (format 2 and 3, as `lstopo FILE.xml` writes it).
 *
 * It is read here and not by hwloc, whose reader trusts what it is given: of files with
 * a few changed bytes about one in two hundred makes hwloc 2.9 crash.  Live machines take
 * the same way: hwloc writes its view as XML, and this reads it.
 *
 * GPUs: PCI devices of NVIDIA with class 3D controller or VGA, and AMD's accelerators.  A
 * GPU's NUMA node and cores are those of the object that its PCI tree hangs from.
 * NVLinks: the distances called NVLinkBandwidth (AMD: XGMIBandwidth), in MB/s; the ports of
 * NVSwitches are taken together, and two GPUs behind them reach what both have to the switch
 * (hwloc's transformations "merge switch ports" and "transitive closure").
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/xml.h"
#include "topology/topology.h"
#include "topology/machine/machine.h"

struct reading {
    const struct import *in;
    struct machine *m;
    const struct xml *root;
};

/* ---- objects ---- */

static bool is_type (const struct xml *x, const char *type)
{
    const char *t = strcmp (x->name, "object") == 0 ? xml_attr (x, "type") : NULL;

    return t && strcmp (t, type) == 0;
}

/* An <info name=KEY value=...> directly inside, or NULL. */
static const char *info (const struct xml *x, const char *key)
{
    for (const struct xml *i = x->first; i; i = i->next) {
        const char *name = strcmp (i->name, "info") == 0 ? xml_attr (i, "name") : NULL;

        if (name && strcmp (name, key) == 0)
            return xml_attr (i, "value");
    }
    return NULL;
}

/* The same on any operating-system device of a PCI device. */
static const char *device_info (const struct xml *pci, const char *key)
{
    for (const struct xml *o = pci->first; o; o = o->next) {
        const char *value = is_type (o, "OSDev") ? info (o, key) : NULL;

        if (value)
            return value;
    }
    return NULL;
}

struct pci_numbers {
    unsigned class, vendor, device;
};

static struct pci_numbers pci_numbers (const struct xml *pci)
{
    const char *type = xml_attr (pci, "pci_type");
    struct pci_numbers n = {0};

    if (type && sscanf (type, "%x [%x:%x]", &n.class, &n.vendor, &n.device) != 3)
        n = (struct pci_numbers){0};
    return n;
}

static bool is_gpu (const struct xml *pci)
{
    struct pci_numbers n = pci_numbers (pci);

    return (n.vendor == 0x10de && (n.class == 0x0302 || n.class == 0x0300)) ||
           (n.vendor == 0x1002 && (n.class == 0x0380 || n.class == 0x1200));
}

/* Network devices: OSDev type 2 or named as such; OpenFabrics: type 3 (hwloc 3 has a set
 * of flags there, so the names decide first). */
static bool is_rdma_device (const struct xml *o)
{
    const char *type = xml_attr (o, "osdev_type");

    return info (o, "NodeGUID") || (type && strcmp (type, "3") == 0);
}

static bool is_net_device (const struct xml *o)
{
    const char *type = xml_attr (o, "osdev_type");

    return info (o, "Address") || (type && strcmp (type, "2") == 0);
}

/* The device that names a NIC, or NULL when the PCI device is none. */
static const struct xml *nic_device (const struct xml *pci, bool *rdma)
{
    const struct xml *net = NULL;

    *rdma = true;
    for (const struct xml *o = pci->first; o; o = o->next)
        if (is_type (o, "OSDev") && is_rdma_device (o) && xml_attr (o, "name"))
            return o;
        else if (is_type (o, "OSDev") && is_net_device (o) && xml_attr (o, "name"))
            net = net ? net : o;
    *rdma = false;
    return net;
}

/* The object that a PCI tree hangs from: the nearest one with a cpuset. */
static const struct xml *local_object (const struct xml *pci)
{
    const struct xml *x = pci->up;

    while (x && !xml_attr (x, "cpuset"))
        x = x->up;
    return x;
}

/* The only NUMA node in a nodeset, or -1. */
static int one_numa (const struct xml *object)
{
    const char *set = object ? xml_attr (object, "nodeset") : NULL;
    char *list = set ? machine_cpus (set) : NULL, *end;
    long id = list ? strtol (list, &end, 10) : -1;

    if (list && (*end || id > 65535))
        id = -1;
    free (list);
    return (int) id;
}

/* ---- the machine's parts ---- */

/* What cannot be held is missed where the document is written. */
static char *copy (const char *s)
{
    char *c = s ? strdup (s) : NULL;

    if (s && !c)
        memory_lost ();
    return c;
}

static enum status add_gpu (struct reading *r, const struct xml *pci)
{
    struct machine_gpu *g = machine_add_gpu (r->m);
    const struct xml *local = local_object (pci);
    const char *busid = xml_attr (pci, "pci_busid");
    const char *uuid = device_info (pci, "NVIDIAUUID");
    struct pci_numbers n = pci_numbers (pci);

    if (!g)
        return err_nomem (r->in->err);
    if (!busid || !machine_pci (busid, g->pci))
        return import_fail (r->in,
                            "line %d: pci_busid: expected a PCI address, found \"%.40s\"",
                            pci->line, busid ? busid : "");
    g->at = pci;
    g->vendor = n.vendor;
    g->device = n.device;
    g->model = copy (device_info (pci, "GPUModel"));
    g->uuid = copy (uuid ? uuid : device_info (pci, "AMDUUID"));
    g->numa = one_numa (local);
    g->cpus = local ? machine_cpus (xml_attr (local, "cpuset")) : NULL;
    return ST_OK;
}

static enum status add_nic (struct reading *r, const struct xml *pci)
{
    bool rdma;
    const struct xml *device = nic_device (pci, &rdma);
    const char *busid = xml_attr (pci, "pci_busid");
    struct machine_nic *n;

    if (!device)
        return ST_OK;
    if (!(n = machine_add_nic (r->m)))
        return err_nomem (r->in->err);
    n->at = pci;
    n->rdma = rdma;
    n->numa = one_numa (local_object (pci));
    if (busid)
        machine_pci (busid, n->pci);
    n->name = copy (xml_attr (device, "name"));
    return n->name ? ST_OK : err_nomem (r->in->err);
}

static enum status add_numa (struct reading *r, const struct xml *x)
{
    const char *index = xml_attr (x, "os_index"), *cpus = xml_attr (x, "cpuset"),
               *memory = xml_attr (x, "local_memory");
    struct machine_numa *n = machine_add_numa (r->m);

    if (!n)
        return err_nomem (r->in->err);
    n->id = index ? (int) strtol (index, NULL, 10) & 0xffff : 0;
    n->cpus = cpus ? machine_cpus (cpus) : NULL;
    /* Memory of GPUs that the host can address (Grace) has no cores beside it. */
    if (memory && n->cpus)
        r->m->memory_bytes += fmax (0.0, strtod (memory, NULL));
    return ST_OK;
}

static enum status read_objects (struct reading *r)
{
    struct machine *m = r->m;
    enum status st = ST_OK;
    const struct xml *machine = NULL;

    for (const struct xml *x = r->root; x && st == ST_OK; x = xml_next (x, r->root)) {
        machine = !machine && is_type (x, "Machine") ? x : machine;
        if (is_type (x, "Package")) {
            m->packages++;
            if (!m->cpu_model)
                m->cpu_model = copy (info (x, "CPUModel"));
        } else if (is_type (x, "NUMANode"))
            st = add_numa (r, x);
        else if (is_type (x, "PCIDev") && is_gpu (x))
            st = add_gpu (r, x);
        else if (is_type (x, "PCIDev"))
            st = add_nic (r, x);
    }
    if (st == ST_OK && !machine)
        st = import_fail (r->in, "hwloc XML without a Machine object");
    if (st == ST_OK) {
        const char *host = info (machine, "HostName");

        if (host) {
            free (m->name);
            if (!(m->name = strndup (host, topology_host_length (host))))
                memory_lost ();
        }
        st = machine_prepare (m, r->in->name, r->in->err);
    }
    return st;
}

/* ---- paths ---- */

/* Levels of the tree from x up to `top`. */
static int levels (const struct xml *x, const struct xml *top)
{
    int n = 0;

    for (; x && x != top; x = x->up)
        n++;
    return n;
}

/* How two PCI devices reach each other.  A PCIe switch is an upstream bridge with
 * downstream bridges under it: two levels up from a device behind it. */
static enum machine_path path_between (const struct xml *a, const struct xml *b)
{
    const struct xml *top = xml_common (a, b);

    if (!top)
        return PATH_UNKNOWN;
    if (is_type (top, "Bridge")) {
        const char *kind = xml_attr (top, "bridge_type");
        bool host = kind && strncmp (kind, "0-", 2) == 0;
        bool near = levels (a, top) <= 2 && levels (b, top) <= 2;

        return host ? PATH_PHB : near ? PATH_PIX : PATH_PXB;
    }
    return is_type (top, "Machine") && one_numa (top) < 0 ? PATH_SYS : PATH_NODE;
}

/* ---- NVLinks ---- */

enum { END_OTHER = -1, END_SWITCH = -2 };

/* What an object of the distances is: a GPU's number, a switch's port, or neither. */
static int end_of (const struct reading *r, const char *gp_index)
{
    for (const struct xml *x = r->root; x; x = xml_next (x, r->root)) {
        const char *index = xml_attr (x, "gp_index"), *subtype;

        if (!index || strcmp (index, gp_index) != 0)
            continue;
        subtype = xml_attr (x, "subtype");
        if (is_type (x, "PCIDev") && subtype && strcmp (subtype, "NVSwitch") == 0)
            return END_SWITCH;
        for (int i = 0; i < r->m->n_gpus; i++)
            if (r->m->gpu[i].at == x || r->m->gpu[i].at == x->up)
                return i;
        return END_OTHER;
    }
    return END_OTHER;
}

#define BLANKS " \t\r\n"
/* All numbers of the children called `name`; "PCIDev:34" is 34 as text.
 * @return words to be freed with *text, or NULL */
static char **numbers_of (const struct xml *d, const char *name, size_t *n, char **text)
{
    struct text all = {0};
    size_t count = 0;
    char **word, *save;

    for (const struct xml *x = d->first; x; x = x->next)
        if (strcmp (x->name, name) == 0)
            text_add (&all, "%s ", text_str (&x->text));
    for (const char *p = text_str (&all); *p; p++)
        count += strchr (BLANKS, *p) != NULL;
    *text = all.s;
    *n = 0;
    word = all.failed ? NULL : calloc (count + 1, sizeof *word);
    for (char *w = word && all.s ? strtok_r (all.s, BLANKS, &save) : NULL; w;
         w = strtok_r (NULL, BLANKS, &save)) {
        char *colon = strchr (w, ':');

        word[(*n)++] = colon ? colon + 1 : w;
    }
    return word;
}

/* Sum up links between GPUs, and of each GPU to and from the switches. */
static void add_links (struct machine *m, const int *end, size_t n, char **value,
                       double *to_switch, double *from_switch)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double mb = strtod (value[i * n + j], NULL);

            if (i == j || !(mb > 0) || mb > 1e9)
                continue;
            if (end[i] >= 0 && end[j] >= 0 && end[i] != end[j])
                m->nvlink_gb_per_s[end[i] * m->n_gpus + end[j]] += mb / 1e3;
            else if (end[i] >= 0 && end[j] == END_SWITCH)
                to_switch[end[i]] += mb / 1e3;
            else if (end[i] == END_SWITCH && end[j] >= 0)
                from_switch[end[j]] += mb / 1e3;
        }
}

static enum status read_nvlinks (struct reading *r, const struct xml *d)
{
    struct machine *m = r->m;
    char *text[2] = {NULL, NULL}, **index, **value;
    size_t n = 0, n_values = 0, g = (size_t) m->n_gpus;
    double *to_switch = calloc (2 * g + 1, sizeof *to_switch);
    int *end;
    enum status st = ST_OK;

    index = numbers_of (d, "indexes", &n, &text[0]);
    value = numbers_of (d, "u64values", &n_values, &text[1]);
    end = calloc (n + 1, sizeof *end);
    if (!to_switch || !index || !value || !end)
        st = err_nomem (r->in->err);
    else if (n > 512 || n_values != n * n)
        st = import_fail (r->in, "line %d: %s: expected %zu x %zu values, found %zu",
                          d->line, xml_attr (d, "name"), n, n, n_values);
    for (size_t k = 0; st == ST_OK && k < n; k++)
        end[k] = end_of (r, index[k]);
    if (st == ST_OK) {
        add_links (m, end, n, value, to_switch, to_switch + g);
        machine_join_switches (m, to_switch, to_switch + g, m->nvlink_gb_per_s);
        m->has_nvlinks = true;
    }
    FREE_ALL (to_switch, index, value, end, text[0], text[1]);
    return st;
}

/* ---- the document ---- */

static enum status read_root (const struct import *in, const struct xml *root,
                              struct machine *m)
{
    struct reading of = {in, m, root}, *r = &of;
    const char *version = xml_attr (r->root, "version");
    bool topology = strcmp (r->root->name, "topology") == 0;

    if (!topology || !version || (version[0] != '2' && version[0] != '3'))
        return import_fail (
            r->in,
            "expected hwloc XML of version 2 or 3, found %s %.20s; hwloc 1's "
            "files are converted by hwloc 2's lstopo",
            topology ? "version" : "the element",
            topology ? (version ? version : "1") : r->root->name);
    TRY (read_objects (r));
    machine_find_paths (r->m, path_between);
    for (const struct xml *x = r->root->first; x && !r->m->has_nvlinks; x = x->next) {
        const char *name =
            strncmp (x->name, "distances2", 10) == 0 ? xml_attr (x, "name") : NULL;

        if (name && (strcmp (name, "NVLinkBandwidth") == 0 ||
                     strcmp (name, "XGMIBandwidth") == 0))
            TRY (read_nvlinks (r, x));
    }
    return ST_OK;
}

const struct importer import_hwloc = {
    .format = {"hwloc", "hwloc XML, as `lstopo FILE.xml` writes it"},
    .root = {"topology"},
    .read_xml = read_root,
    .source = "hwloc XML"};
