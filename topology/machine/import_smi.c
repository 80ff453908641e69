/* The table of `nvidia-smi topo -m`, in all its layouts: columns separated by tabs or by
 * blanks; NICs called mlx5_k, or NICk with a legend; sorted or not; CPU, NUMA and GPU NUMA
 * columns there or not; terminal escapes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/machine/machine.h"
#include "topology/topology_private.h"

#define COLUMNS_MAX (2 * TOPOLOGY_NODE_GPUS_MAX)

/* One device of the table: a column, and later its row. */
struct device {
    char name[64];
    int gpu;   /* its number, or -1: a NIC */
    bool seen; /* its row was there */
    struct cell {
        double links; /* NVLinks */
        enum machine_path path;
    } * cell; /* [columns] of its row */
    char cpus[256], numa[32];
};

struct reading {
    const struct import *in;
    struct machine *m;
    struct device *device;
    int n;
    bool tabs; /* cells are separated by tabs, so that they can be empty */
    int cpu_column, numa_column; /* cells after the devices', -1: not there */
};

static enum status fail (const struct reading *r, const char *row, const char *what)
{
    return import_fail (r->in, "row %.40s: %s", row, what);
}

/* "GPU12" -> 12, else -1. */
static int gpu_number (const char *s)
{
    long k = -1;

    if (strncmp (s, "GPU", 3) == 0 && isdigit ((unsigned char) s[3]))
        text_whole (s + 3, 0, TOPOLOGY_NODE_GPUS_MAX - 1, &k);
    return (int) k;
}

/* ---- cells ---- */

/* Split a line into cells, trimmed, in place: at tabs, or at blanks. */
static int split (char *line, bool tabs, char **cell, int max)
{
    return tabs ? text_cells (line, '\t', " ", cell, max) : text_words (line, cell, max);
}

/* ---- the header ---- */

static bool is_header (const char *line)
{
    line += strspn (line, " \t");
    return strncmp (line, "GPU0", 4) == 0 && (line[4] == ' ' || line[4] == '\t') &&
           (strstr (line, "Affinity") || strstr (line, "GPU1") || strstr (line, "NIC"));
}

static enum status add_device (struct reading *r, const char *name)
{
    struct device *d;

    for (int k = 0; k < r->n; k++)
        if (strcmp (r->device[k].name, name) == 0)
            return import_fail (r->in, "the header names %.40s twice", name);
    if (r->n == COLUMNS_MAX || strlen (name) >= sizeof d->name)
        return import_fail (r->in, "too many or too long columns");
    d = &r->device[r->n++];
    *d = (struct device){.gpu = gpu_number (name)};
    snprintf (d->name, sizeof d->name, "%s", name);
    return ST_OK;
}

/* Devices come first; what follows is told by its words. */
static enum status read_header (struct reading *r, char *line)
{
    char *cell[COLUMNS_MAX];
    enum status st = ST_OK;
    int n, after = 0;

    r->tabs = strchr (line, '\t') != NULL;
    n = split (line, r->tabs, cell, COLUMNS_MAX);
    r->cpu_column = r->numa_column = -1;
    for (int k = 0; k < n && st == ST_OK; k++) {
        bool affinity =
            strncmp (cell[k], "CPU", 3) == 0 || strncmp (cell[k], "NUMA", 4) == 0;

        if (cell[k][0] == '\0')
            continue;
        if (!affinity && after == 0 && strcmp (cell[k], "GPU") != 0 &&
            strncmp (cell[k], "GPU NUMA", 8) != 0) {
            st = add_device (r, cell[k]);
            continue;
        }
        /* Between blanks, "CPU Affinity" is two words. */
        if (strcmp (cell[k], "Affinity") == 0 || strcmp (cell[k], "ID") == 0)
            continue;
        if (strncmp (cell[k], "CPU", 3) == 0)
            r->cpu_column = after;
        else if (strncmp (cell[k], "NUMA", 4) == 0 && r->numa_column < 0)
            r->numa_column = after;
        after++;
    }
    return st;
}

/* ---- rows ---- */

/* What a cell says: X, NV#, or a path; SOC is the old word for SYS. */
static bool read_cell (const char *s, struct cell *cell)
{
    if (strcmp (s, "X") == 0 || strcmp (s, "N/A") == 0)
        return true;
    if (strncmp (s, "NV", 2) == 0 && isdigit ((unsigned char) s[2])) {
        long links;

        if (!text_whole (s + 2, 1, 1000, &links))
            return false;
        cell->links = (double) links;
        return true;
    }
    if (strcmp (s, "SOC") == 0)
        s = "SYS";
    for (enum machine_path p = PATH_PIX; p <= PATH_SYS; p++)
        if (strcmp (s, machine_path_word (p)) == 0) {
            cell->path = p;
            return true;
        }
    return false;
}

static enum status read_row (struct reading *r, struct device *d, char **cell, int n)
{
    if (d->seen)
        return fail (r, d->name, "appears twice");
    if (n < r->n)
        return import_fail (
            r->in, "row %s: expected %d cells (one per device of the header), found %d",
            d->name, r->n, n);
    d->seen = true;
    if (!(d->cell = calloc ((size_t) r->n, sizeof *d->cell)))
        return err_nomem (r->in->err);
    for (int k = 0; k < r->n; k++)
        if (!read_cell (cell[k], &d->cell[k]))
            return import_fail (
                r->in,
                "row %s, column %s: expected X, NV#, PIX, PXB, PHB, NODE or SYS, found "
                "\"%.20s\"",
                d->name, r->device[k].name, cell[k]);
    if (r->cpu_column >= 0 && r->n + r->cpu_column < n)
        snprintf (d->cpus, sizeof d->cpus, "%s", cell[r->n + r->cpu_column]);
    if (r->numa_column >= 0 && r->n + r->numa_column < n)
        snprintf (d->numa, sizeof d->numa, "%s", cell[r->n + r->numa_column]);
    return ST_OK;
}

/* "  NIC0: mlx5_0" of the legend. */
static void read_legend (struct reading *r, char *line)
{
    char *colon = strchr (line, ':'), *word[2];

    if (!colon || text_words (line, word, 2) < 2)
        return;
    word[0][strcspn (word[0], ":")] = '\0';
    for (int k = 0; k < r->n; k++)
        if (r->device[k].gpu < 0 && strcmp (r->device[k].name, word[0]) == 0 &&
            strlen (word[1]) < sizeof r->device[k].name)
            strcpy (r->device[k].name, word[1]);
}

static enum status read_line (void *context, char *line, int number)
{
    struct reading *r = context;
    struct device *d = NULL;
    char *cell[COLUMNS_MAX + 8], first[64];
    int n, skip;

    (void) number;
    if (r->n == 0)
        return is_header (line) ? read_header (r, line) : ST_OK;
    if (sscanf (line, "%63s", first) != 1)
        return ST_OK;
    for (int k = 0; k < r->n && !d; k++)
        if (strcmp (r->device[k].name, first) == 0)
            d = &r->device[k];
    if (!d) {
        read_legend (r, line);
        return ST_OK;
    }
    n = split (line, r->tabs, cell, COLUMNS_MAX + 8);
    skip = n > 0 && cell[0][0] == '\0' ? 2 : 1; /* a tab may stand before the name */
    return read_row (r, d, cell + skip, n - skip);
}

static enum status read_table (struct reading *r)
{
    TRY (import_lines (r->in, read_line, r));
    if (r->n == 0)
        return import_fail (r->in,
                            "no table of nvidia-smi topo -m: a line with GPU0 and the "
                            "other devices is expected");
    for (int k = 0; k < r->n; k++)
        if (!r->device[k].seen && r->device[k].gpu >= 0)
            return fail (r, r->device[k].name, "missing: the table is cut off");
    return ST_OK;
}

/* ---- the machine ---- */

/* Without a NUMA column, GPUs that share their cores share their NUMA node; the nodes are
 * numbered by their first core. */
static void guess_numa (struct reading *r, struct device **gpu, int n)
{
    for (int i = 0; i < n; i++) {
        int id = 0;

        if (!r->m->gpu[i].cpus)
            return;
        for (int k = 0; k < n; k++) {
            bool seen = false;

            for (int j = 0; j < k && !seen; j++)
                seen = strcmp (gpu[j]->cpus, gpu[k]->cpus) == 0;
            id += !seen && atoi (gpu[k]->cpus) < atoi (gpu[i]->cpus);
        }
        r->m->gpu[i].numa = id;
    }
    import_note (r->in,
                 "no NUMA column: nodes are numbered by the cores of the CPU column");
}

static enum status fill_gpus (struct reading *r, struct device **gpu, int n)
{
    bool numa = false;

    for (int i = 0; i < n; i++) {
        struct machine_gpu *g;

        if (!gpu[i])
            return import_fail (r->in, "GPU%d is missing among %d GPUs", i, n);
        if (!(g = machine_add_gpu (r->m)))
            return err_nomem (r->in->err);
        if (topology_cpus_ok (gpu[i]->cpus) && !(g->cpus = strdup (gpu[i]->cpus)))
            return err_nomem (r->in->err);
        if (isdigit ((unsigned char) gpu[i]->numa[0]))
            g->numa = atoi (gpu[i]->numa) & 0xffff;
        numa = numa || g->numa >= 0;
    }
    if (!numa)
        guess_numa (r, gpu, n);
    return ST_OK;
}

static enum status fill_nics (struct reading *r)
{
    for (int k = 0; k < r->n; k++) {
        struct machine_nic *n;

        if (r->device[k].gpu >= 0)
            continue;
        if (!(n = machine_add_nic (r->m)) || !(n->name = strdup (r->device[k].name)))
            return err_nomem (r->in->err);
        n->rdma = true;
    }
    return ST_OK;
}

static void fill_paths (struct reading *r, struct device **gpu, int n)
{
    struct machine *m = r->m;

    m->has_nvlinks = true;
    for (int i = 0; i < n; i++)
        for (int k = 0, nic = 0; k < r->n; k++) {
            int j = r->device[k].gpu;

            if (j < 0)
                m->nic_path[i * m->n_nics + nic++] = gpu[i]->cell[k].path;
            else if (j != i) {
                m->links[i * n + j] = gpu[i]->cell[k].links;
                m->gpu_path[i * n + j] = gpu[i]->cell[k].path;
            }
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (m->links[i * n + j] != m->links[j * n + i])
                import_note (r->in, "GPU%d to GPU%d and back differ in NVLinks", i, j);
}

static enum status fill_machine (struct reading *r)
{
    struct device *gpu[TOPOLOGY_NODE_GPUS_MAX] = {NULL};
    int n = 0;

    TRY (read_table (r));
    for (int k = 0; k < r->n; k++)
        if (r->device[k].gpu >= 0) {
            gpu[r->device[k].gpu] = &r->device[k];
            n++;
        }
    TRY (fill_gpus (r, gpu, n));
    TRY (fill_nics (r));
    TRY (machine_prepare (r->m, r->in->name, r->in->err));
    fill_paths (r, gpu, n);
    return ST_OK;
}

static enum status read_machine (const struct import *in, struct machine *m)
{
    struct reading r = {
        .in = in, .m = m, .device = calloc (COLUMNS_MAX, sizeof *r.device)};
    enum status st = r.device ? fill_machine (&r) : err_nomem (in->err);

    for (int k = 0; k < r.n; k++)
        free (r.device[k].cell);
    free (r.device);
    return st;
}

static bool is_smi (const char *data)
{
    struct text line = {0};
    bool found = false, amd = strstr (data, "ROCm System Management") != NULL;

    for (int k = 0; k < 200 && !found && import_line (&data, &line); k++)
        found = is_header (line.s);
    text_free (&line);
    return found && !amd; /* rocm-smi's tables have the same header */
}

const struct importer import_smi = {
    .format = {"nvidia-smi", "the table of `nvidia-smi topo -m`"},
    .is = is_smi,
    .read_machine = read_machine,
    .source = "nvidia-smi topo -m"};
