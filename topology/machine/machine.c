#include "topology/machine/machine.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/units.h"
#include "topology/topology_private.h"

/* ---- building ---- */

const char *machine_path_word (enum machine_path p)
{
    static const char *const words[] = {"", "PIX", "PXB", "PHB", "NODE", "SYS"};

    return words[p];
}

struct machine_gpu *machine_add_gpu (struct machine *m)
{
    if (!array_grow (&m->gpu, m->n_gpus, sizeof *m->gpu))
        return NULL;
    m->gpu[m->n_gpus] = (struct machine_gpu){.numa = -1};
    return &m->gpu[m->n_gpus++];
}

struct machine_nic *machine_add_nic (struct machine *m)
{
    if (!array_grow (&m->nic, m->n_nics, sizeof *m->nic))
        return NULL;
    m->nic[m->n_nics] = (struct machine_nic){.numa = -1};
    return &m->nic[m->n_nics++];
}

struct machine_numa *machine_add_numa (struct machine *m)
{
    if (!array_grow (&m->numa, m->n_numa, sizeof *m->numa))
        return NULL;
    m->numa[m->n_numa] = (struct machine_numa){0};
    return &m->numa[m->n_numa++];
}

static int by_pci (const void *a, const void *b)
{
    const struct machine_gpu *x = a, *y = b;

    /* Normalised addresses of one length sort as texts; a longer domain is larger. */
    return strlen (x->pci) != strlen (y->pci)
               ? (int) strlen (x->pci) - (int) strlen (y->pci)
               : strcmp (x->pci, y->pci);
}

static enum status check_nics (const struct machine *m, const char *where,
                               struct error *err)
{
    const char **name = calloc ((size_t) m->n_nics + 1, sizeof *name);
    enum status st = name ? ST_OK : err_nomem (err);

    for (int i = 0; i < m->n_nics && st == ST_OK; i++)
        name[i] = m->nic[i].name;
    if (st == ST_OK)
        qsort (name, (size_t) m->n_nics, sizeof *name, order_texts);
    for (int i = 1; i < m->n_nics && st == ST_OK; i++)
        if (strcmp (name[i - 1], name[i]) == 0)
            st = err_set (err, ST_INVALID, "%s: the NIC %s is named twice", where,
                          name[i]);
    free (name);
    return st;
}

enum status machine_prepare (struct machine *m, const char *where, struct error *err)
{
    size_t g = (size_t) m->n_gpus, n = (size_t) m->n_nics;
    bool addressed = g > 0;

    if (m->n_gpus > TOPOLOGY_NODE_GPUS_MAX || m->n_nics > TOPOLOGY_NODE_GPUS_MAX)
        return err_set (err, ST_INVALID,
                        "%s: %d GPUs and %d NICs: a node has at most %d of either", where,
                        m->n_gpus, m->n_nics, TOPOLOGY_NODE_GPUS_MAX);
    for (int i = 0; i < m->n_gpus; i++)
        addressed = addressed && m->gpu[i].pci[0];
    if (addressed)
        qsort (m->gpu, g, sizeof *m->gpu, by_pci);
    for (int i = 1; i < m->n_gpus && addressed; i++)
        if (strcmp (m->gpu[i - 1].pci, m->gpu[i].pci) == 0)
            return err_set (err, ST_INVALID, "%s: two GPUs at the PCI address %s", where,
                            m->gpu[i].pci);
    TRY (check_nics (m, where, err));
    m->links = calloc (g * g + 1, sizeof *m->links);
    m->nvlink_gb_per_s = calloc (g * g + 1, sizeof *m->nvlink_gb_per_s);
    m->gpu_path = calloc (g * g + 1, sizeof *m->gpu_path);
    m->nic_path = calloc (g * n + 1, sizeof *m->nic_path);
    return m->links && m->nvlink_gb_per_s && m->gpu_path && m->nic_path ? ST_OK
                                                                        : err_nomem (err);
}

void machine_join_switches (const struct machine *m, const double *to, const double *from,
                            double *between)
{
    for (int i = 0; i < m->n_gpus; i++)
        for (int j = 0; j < m->n_gpus; j++)
            if (i != j)
                between[i * m->n_gpus + j] += to[i] < from[j] ? to[i] : from[j];
}

void machine_find_paths (struct machine *m,
                         enum machine_path (*between) (const struct xml *a,
                                                       const struct xml *b))
{
    for (int i = 0; i < m->n_gpus; i++) {
        for (int j = 0; j < m->n_gpus; j++)
            if (i != j)
                m->gpu_path[i * m->n_gpus + j] = between (m->gpu[i].at, m->gpu[j].at);
        for (int j = 0; j < m->n_nics; j++)
            m->nic_path[i * m->n_nics + j] = between (m->gpu[i].at, m->nic[j].at);
    }
}

void machine_release (struct machine *m)
{
    for (int i = 0; i < m->n_gpus; i++) {
        FREE_ALL (m->gpu[i].model, m->gpu[i].uuid, m->gpu[i].cpus);
    }
    for (int i = 0; i < m->n_nics; i++)
        free (m->nic[i].name);
    for (int i = 0; i < m->n_numa; i++)
        free (m->numa[i].cpus);
    FREE_ALL (m->name, m->source, m->cpu_model, m->gpu, m->nic, m->numa, m->links,
              m->nvlink_gb_per_s, m->gpu_path, m->nic_path);
    *m = (struct machine){0};
}

bool machine_pci (const char *s, char out[MACHINE_PCI_TEXT])
{
    unsigned part[3] = {0, 0, 0}, function = 0;
    int n = 0, used = 0;

    out[0] = '\0';
    while (n < 3 && isxdigit ((unsigned char) *s)) {
        if (sscanf (s, "%8x%n", &part[n], &used) != 1)
            return false;
        n++;
        s += used;
        if (*s != ':')
            break;
        s++;
    }
    if (n < 2)
        return false;
    if (*s == '.' && sscanf (++s, "%1x%n", &function, &used) == 1)
        s += used;
    if (*s != '\0')
        return false;
    if (n == 2) {
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    if (part[1] > 0xff || part[2] > 0x1f || function > 7)
        return false;
    snprintf (out, MACHINE_PCI_TEXT, "%04x:%02x:%02x.%x", part[0], part[1], part[2],
              function);
    return true;
}

int machine_find_gpu (const struct machine *m, const char *pci)
{
    for (int i = 0; i < m->n_gpus; i++)
        if (strcmp (m->gpu[i].pci, pci) == 0)
            return i;
    return -1;
}

char *machine_cpus (const char *s)
{
    hwloc_bitmap_t set;
    char *list = NULL;

    errno = 0;
    set = hwloc_bitmap_alloc ();
    /* hwloc asserts that no comma leads, an empty first word is 0; and behind an empty last word
     * it reads on. */
    s += strspn (s, ",");
    if (set && *s && s[strlen (s) - 1] != ',' && hwloc_bitmap_sscanf (set, s) == 0 &&
        hwloc_bitmap_weight (set) > 0 && hwloc_bitmap_list_asprintf (&list, set) < 0)
        list = NULL;
    if (!list && errno == ENOMEM)
        memory_lost ();
    hwloc_bitmap_free (set);
    return list;
}

/* ---- which NIC a GPU uses ---- */

static int rank_of (enum machine_path p)
{
    return p == PATH_UNKNOWN ? PATH_SYS + 1 : (int) p;
}

/* The NICs nearest to a GPU; those that can do RDMA where there are any.
 * @return their path; near[j] tells which */
static int nearest (const struct machine *m, int gpu, bool *near)
{
    const enum machine_path *path = m->nic_path + (size_t) gpu * (size_t) m->n_nics;
    bool rdma = false;
    int best = PATH_SYS + 1;

    for (int j = 0; j < m->n_nics; j++)
        rdma = rdma || m->nic[j].rdma;
    for (int j = 0; j < m->n_nics; j++)
        if ((m->nic[j].rdma || !rdma) && rank_of (path[j]) < best)
            best = rank_of (path[j]);
    for (int j = 0; j < m->n_nics; j++)
        near[j] = (m->nic[j].rdma || !rdma) && rank_of (path[j]) == best;
    return best;
}

/* The NIC of each GPU, or NULL where some GPU's cannot be told.  GPUs with the same NICs
 * nearest take them in turn. */
static json_t *gpu_nics (const struct machine *m)
{
    bool *near = memory_zeros ((size_t) m->n_nics * 2 + 1, sizeof *near);
    json_t *list = json_array ();
    bool known = near && m->n_nics > 0 && m->n_gpus > 0;

    for (int i = 0; i < m->n_gpus && known; i++) {
        bool *other = near + m->n_nics;
        int turn = 0, n = 0;

        known = nearest (m, i, near) <= PATH_SYS;
        for (int k = 0; k < i; k++) {
            nearest (m, k, other);
            turn += memcmp (near, other, (size_t) m->n_nics) == 0;
        }
        for (int j = 0; j < m->n_nics; j++)
            n += near[j];
        for (int j = 0, at = 0; j < m->n_nics; j++)
            if (near[j] && at++ == turn % n)
                json_array_append_new (list, json_string (m->nic[j].name));
    }
    free (near);
    if (known)
        return list;
    json_decref (list);
    return NULL;
}

/* ---- the document ---- */

static json_t *gpu_texts (const struct machine *m, size_t field)
{
    json_t *list = json_array ();

    for (int i = 0; i < m->n_gpus; i++) {
        const char *s = *(char *const *) ((const char *) &m->gpu[i] + field);

        if (!s) {
            json_decref (list);
            return NULL;
        }
        json_array_append_new (list, json_string (s));
    }
    return list;
}

/* Set a member, unless the value is NULL. */
static void set (json_t *object, const char *key, json_t *value)
{
    if (value)
        json_object_set_new (object, key, value);
}

static json_t *gpu_path_json (const struct machine *m)
{
    json_t *rows = json_array ();

    for (int i = 0; i < m->n_gpus; i++)
        for (int j = 0; j < m->n_gpus; j++) {
            size_t at = (size_t) i * (size_t) m->n_gpus + (size_t) j;
            char nv[32];

            snprintf (nv, sizeof nv, "NV%.0f", m->links[at]);
            json_array_append_new (json_row_in (rows, i),
                                   i == j             ? json_string ("X")
                                   : m->links[at] > 0 ? json_string (nv)
                                   : m->gpu_path[at] != 0
                                       ? json_string (machine_path_word (m->gpu_path[at]))
                                       : json_null ());
        }
    return rows;
}

static void add_gpus (const struct machine *m, json_t *node, struct notes *notes,
                      const char *where)
{
    const char *type = NULL, *model = m->gpu[0].model;
    bool numa = true, pci = true, one = true;
    json_t *numas = json_array (), *pcis = json_array ();

    for (int i = 0; i < m->n_gpus; i++) {
        const struct machine_gpu *g = &m->gpu[i];
        const char *t = known_gpu_type (g->model, g->vendor, g->device);

        one = one && (i == 0 || (t && type ? strcmp (t, type) == 0 : t == type));
        type = t;
        numa = numa && g->numa >= 0;
        pci = pci && g->pci[0];
        json_array_append_new (numas, json_integer (g->numa));
        json_array_append_new (pcis, json_string (g->pci));
    }
    if (!one) {
        notes_add (notes, "%s: the GPUs are of several types: a node can have only one",
                   where);
        type = NULL;
    } else if (!type)
        notes_add (notes, "%s: the GPU type is unknown%s%s%s, unless --gpu-type gives it",
                   where, model ? " (" : "", model ? model : "", model ? ")" : "");
    json_object_set_new (node, "gpu_type", type ? json_string (type) : json_null ());
    if (model)
        json_object_set_new (node, "gpu_model", json_string (model));
    if (numa)
        json_object_set (node, "gpu_numa", numas);
    else
        notes_add (notes, "%s: the NUMA nodes of some GPUs are unknown", where);
    if (pci)
        json_object_set (node, "gpu_pci", pcis);
    JSON_DECREF_ALL (numas, pcis);
    set (node, "gpu_uuid", gpu_texts (m, offsetof (struct machine_gpu, uuid)));
    set (node, "gpu_cpus", gpu_texts (m, offsetof (struct machine_gpu, cpus)));
    set (node, "gpu_nic", gpu_nics (m));
    if (m->n_gpus > 1)
        json_object_set_new (node, "gpu_path", gpu_path_json (m));
    if (m->n_gpus > 1 && !m->has_nvlinks)
        notes_add (notes, "%s: the description has no NVLinks", where);
}

static void add_rest (const struct machine *m, json_t *node)
{
    if (m->packages > 0)
        json_object_set_new (node, "packages", json_integer (m->packages));
    if (m->cpu_model)
        json_object_set_new (node, "cpu_model", json_string (m->cpu_model));
    if (m->memory_bytes >= UNITS_GIB && m->memory_bytes < 1e15)
        json_object_set_new (node, "host_memory_gib",
                             json_real (round (m->memory_bytes / UNITS_GIB * 10) / 10));
    if (m->n_numa > 0) {
        json_t *list = json_array ();

        for (int i = 0; i < m->n_numa; i++) {
            json_t *one = json_pack ("{s:i}", "id", m->numa[i].id);

            set (one, "cpus", m->numa[i].cpus ? json_string (m->numa[i].cpus) : NULL);
            json_array_append_new (list, one);
        }
        json_object_set_new (node, "numa", list);
    }
    if (m->n_nics > 0) {
        json_t *list = json_array ();

        for (int i = 0; i < m->n_nics; i++) {
            const struct machine_nic *n = &m->nic[i];
            json_t *one = json_pack ("{s:s}", "name", n->name);

            set (one, "pci", n->pci[0] ? json_string (n->pci) : NULL);
            set (one, "numa", n->numa >= 0 ? json_integer (n->numa) : NULL);
            set (one, "gb_per_s", n->gb_per_s > 0 ? json_real (n->gb_per_s) : NULL);
            json_array_append_new (list, one);
        }
        json_object_set_new (node, "nics", list);
    }
}

/* Rates that the source itself gives, or those of the type's data sheet; NULL: neither. */
static json_t *intra_json (const struct machine *m, const json_t *node)
{
    size_t n = (size_t) m->n_gpus;
    bool given = false;

    for (size_t k = 0; k < n * n; k++)
        given = given || m->nvlink_gb_per_s[k] > 0;
    if (n < 2)
        return NULL;
    return given ? known_intra_of (m->nvlink_gb_per_s, n,
                                   "NVLink rates as the machine's description gives them")
                 : known_intra (node, json_member_text (node, "gpu_type"),
                                known_sm_link_gb_per_s (m->gpu[0].sm));
}

/* A legal node name out of any text; noted when it had to change. */
static void node_name (const char *s, const char *where, char out[TOPOLOGY_NAME_MAX + 1],
                       struct notes *notes)
{
    size_t n = 0;

    for (; s && *s && n < TOPOLOGY_NAME_MAX; s++)
        if (isascii (*s) &&
            (isalnum ((unsigned char) *s) || (n > 0 && strchr ("._-", *s))))
            out[n++] = *s;
        else if (n > 0)
            out[n++] = '-';
    out[n] = '\0';
    if (n == 0)
        strcpy (out, "node");
    else if (strcmp (out, s - n) != 0)
        notes_add (notes, "%s: the node is named %s", where, out);
}

enum status machine_to_json (const struct machine *m, const char *where, json_t **doc,
                             struct notes *notes, struct error *err)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    json_t *node, *intra;

    node_name (m->name, where, name, notes);
    node = json_pack ("{s:s, s:i}", "name", name, "gpus", m->n_gpus);
    if (m->n_gpus > 0)
        add_gpus (m, node, notes, where);
    else {
        json_object_set_new (node, "gpu_type", json_null ());
        notes_add (notes, "%s: no GPUs found", where);
    }
    add_rest (m, node);
    intra = intra_json (m, node);
    *doc = json_pack ("{s:i, s:s, s:s?, s:[o], s:o}", "version", 1, "name", name,
                      "source", m->source, "nodes", node, "links",
                      intra ? json_pack ("{s:o}", "intra", intra) : json_null ());
    return *doc ? ST_OK : err_nomem (err);
}
