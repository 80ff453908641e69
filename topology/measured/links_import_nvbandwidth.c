/* nvbandwidth: its text, and its JSON, whose cells are texts.
 *
 * The arrow that it prints is the reverse of the flow: in the read tests the row's GPU pulls
 * from the column's ("row -> column" is printed, data goes column -> row), in the write
 * tests it pushes ("row <- column", data goes row -> column; testcases_ce.cpp).  Copy
 * engines (ce) are preferred to copy kernels (sm); both directions at once are left out.
 */
#include "topology/measured/links_import_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* What a test case gives. */
struct kind {
    const char *name; /* without "multinode_" */
    enum links_quantity what;
    bool row_sends;
    bool kernel; /* used only where no copy engine's case is */
    double unit;
};

static const struct kind kinds[] = {
    {"device_to_device_memcpy_read_ce", LINKS_BANDWIDTH, false, false, UNITS_GB},
    {"device_to_device_memcpy_write_ce", LINKS_BANDWIDTH, true, false, UNITS_GB},
    {"device_to_device_memcpy_read_sm", LINKS_BANDWIDTH, false, true, UNITS_GB},
    {"device_to_device_memcpy_write_sm", LINKS_BANDWIDTH, true, true, UNITS_GB},
    {"device_to_device_latency_sm", LINKS_LATENCY, false, false, 1e-9},
};

static const struct kind *kind_of (const char *name)
{
    if (strncmp (name, "multinode_", 10) == 0)
        name += 10;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp (kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

enum { KINDS = sizeof kinds / sizeof *kinds, GPUS_MAX = 1024 };

/* What was read: the GPUs in the order of the matrices, and a matrix of each kind. */
struct found {
    int end[GPUS_MAX]; /* endpoints */
    int devices;
    struct links_grid grid[KINDS];
};

/* The endpoints 0 .. n-1, on one unnamed node where the file names no host. */
static enum status complete_devices (struct links_table *t, struct found *f, int n)
{
    if (f->devices > 0 && f->devices < n)
        return err_set (t->err, ST_INVALID,
                        "%s: a matrix of %d GPUs, but %d devices are listed", t->file, n,
                        f->devices);
    while (f->devices < n) {
        TRY (links_table_place (t, "n0", f->devices, &f->end[f->devices]));
        f->devices++;
    }
    return ST_OK;
}

static enum status add_matrices (struct links_table *t, struct found *f)
{
    bool engines = false;

    for (int k = 0; k < KINDS; k++)
        engines |= f->grid[k].v && kinds[k].what == LINKS_BANDWIDTH && !kinds[k].kernel;
    for (int k = 0; k < KINDS; k++) {
        const struct links_grid *g = &f->grid[k];

        if (!g->v || (engines && kinds[k].kernel))
            continue;
        TRY (complete_devices (t, f, g->n));
        TRY (links_grid_add (t, g, f->end, kinds[k].what, kinds[k].unit,
                             kinds[k].row_sends));
    }
    return ST_OK;
}

/* ---- text ---- */

/* "Process 0 (HOST): device 0: NAME (BUS)" or "Device 0: NAME (BUS)" */
static enum status read_device (struct links_table *t, struct found *f, char *line)
{
    char *open = strchr (line, '('), *close = open ? strchr (open, ')') : NULL, *name;
    const char *host = "n0";
    long gpu;
    bool process = strncmp (line, "Process ", 8) == 0;
    char *device = process && close ? strstr (close, "device ") : line;

    if (!device || !close)
        return ST_OK;
    if (process) {
        *close = '\0';
        host = open + 1;
    }
    device += 7;
    if (!(name = strchr (device, ':')))
        return ST_OK;
    *name++ = '\0';
    if (!links_whole (device, 0, GPUS_MAX - 1, &gpu))
        return links_fail (t, "expected a device's number, found \"%.40s\"", device);
    name += strspn (name, " ");
    name[strcspn (name, "(")] = '\0';
    for (size_t n = strlen (name); n > 0 && name[n - 1] == ' '; n--)
        name[n - 1] = '\0';
    if (f->devices == GPUS_MAX)
        return links_fail (t, "more than %d GPUs", GPUS_MAX);
    TRY (links_table_place (t, host, (int) gpu, &f->end[f->devices]));
    return links_table_product (t, t->end[f->end[f->devices++]].node, name);
}

static enum status read_text (struct links_table *t, struct found *f)
{
    const struct kind *kind = NULL;
    bool matrix = false;
    enum status st = ST_OK;

    for (char *line; st == ST_OK && (line = links_line (t));) {
        if (strncmp (line, "Process ", 8) == 0 || strncmp (line, "Device ", 7) == 0) {
            /* "Device to Device ..." is the title of a matrix. */
            matrix |= kind && strstr (line, "GPU(row)");
            if (!matrix)
                st = read_device (t, f, line);
        } else if (strncmp (line, "Running ", 8) == 0) {
            line[strcspn (line + 8, ". ") + 8] = '\0';
            kind = kind_of (line + 8);
            matrix = false;
        } else if (kind && strstr (line, "GPU(row)")) {
            matrix = true;
        } else if (kind && matrix && line[strspn (line, " ")] == '0') {
            struct links_grid *g = &f->grid[kind - kinds];

            st = links_grid_read (t, line, 0, g);
            kind = NULL;
            matrix = false;
        }
    }
    return st;
}

/* ---- JSON ---- */

static enum status read_cells (struct links_table *t, const struct json_at *rows,
                               struct links_grid *g)
{
    size_t n;

    TRY (json_want_array (rows, &n, t->err));
    if (n == 0 || n > GPUS_MAX)
        return json_fail (rows, t->err, "a square matrix");
    links_grid_free (g);
    if (!(g->v = malloc (n * n * sizeof *g->v)))
        return err_nomem (t->err);
    json_each (rows, row) {
        size_t width;

        TRY (json_want_array (&row, &width, t->err));
        if (width != n)
            return json_fail (&row, t->err, "a row as long as the matrix is high");
        json_each (&row, cell) {
            double *v = &g->v[row.index * n + cell.index];
            const char *s;

            *v = NAN;
            TRY (json_want_string (&cell, &s, t->err));
            if (!links_absent (s) && !links_number (s, v))
                return json_fail (&cell, t->err, "a number as a text, or N/A");
        }
    }
    g->n = (int) n;
    return ST_OK;
}

static enum status read_cases (struct links_table *t, struct found *f,
                               const struct json_at *root)
{
    struct json_at top = json_key (root, "nvbandwidth"),
                   cases = json_key (&top, "testcases");

    TRY (json_want_array (&cases, NULL, t->err));
    json_each (&cases, one) {
        struct json_at rows = json_key (&one, "bandwidth_matrix");
        const struct kind *kind;
        const char *s;

        TRY (json_get_string (&one, "name", &s, t->err));
        kind = kind_of (s);
        if (kind && rows.v) /* without it: waived or failed */
            TRY (read_cells (t, &rows, &f->grid[kind - kinds]));
    }
    return ST_OK;
}

/* What was read, or why it was not, into the table. */
static enum status finish (struct links_table *t, struct found *f, enum status st)
{
    t->gpus_known = true;
    THEN (st, add_matrices (t, f));
    if (st == ST_OK && t->n_nodes == 1 && strcmp (t->node[0].name, "n0") == 0)
        notes_add (t->notes, "%s: the file does not name its host: the node is named n0",
                   t->file);
    for (int k = 0; k < KINDS; k++)
        links_grid_free (&f->grid[k]);
    return st;
}

static bool matches (const char *text)
{
    return strstr (text, "nvbandwidth Version") ||
           (strstr (text, "\nRunning ") && strstr (text, "GPU(row)"));
}

static enum status read (struct links_table *t)
{
    struct found f = {.devices = 0};

    return finish (t, &f, read_text (t, &f));
}

static enum status read_json (struct links_table *t, const struct json_at *root)
{
    struct found f = {.devices = 0};

    return finish (t, &f, read_cases (t, &f, root));
}

const struct links_format links_format_nvbandwidth = {
    .name = "nvbandwidth",
    .json_has = {"\"nvbandwidth\"", "\"testcases\""},
    .matches = matches,
    .read = read,
    .read_json = read_json};
