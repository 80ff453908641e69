/* p2pBandwidthLatencyTest of the CUDA samples.
 *
 * "P2P Writes" and the tests without peer access copy from the row's GPU to the column's,
 * "P2P Reads" from the column's to the row's (performP2PCopy's arguments).  Peer-to-peer
 * writes are taken where the file has them, else reads, else copies through the host, else
 * half of what both directions reach together.  A matrix of a kind that was there already
 * begins another machine: people put several reports into one file.
 */
#include "topology/measured/links_import_private.h"

#include <string.h>

#include "base/units.h"

enum kind { WRITES, READS, HOST, BOTH, BOTH_HOST, LATENCY, LATENCY_HOST, KINDS };

/* One machine's matrices, and product names by device. */
struct machine {
    struct links_grid grid[KINDS];
    char product[128];
};

static const char *const kind_name[] = {
    "peer-to-peer writes", "peer-to-peer reads", "copies through the host",
    "half of both directions together", "half of both directions through the host"};

/* The kind that a title announces, or KINDS. */
static enum kind kind_of (const char *line)
{
    bool peer = strstr (line, "P2P=Enabled");

    if (!strstr (line, "Matrix") || !(peer || strstr (line, "P2P=Disabled")))
        return KINDS;
    if (strstr (line, "Latency"))
        return strstr (line, "Reads") ? KINDS : peer ? LATENCY : LATENCY_HOST;
    if (strstr (line, "Bidirectional"))
        return peer ? BOTH : BOTH_HOST;
    return !peer ? HOST : strstr (line, "Reads") ? READS : WRITES;
}

static enum status add_grid (struct links_table *t, int node, const struct links_grid *g,
                             enum links_quantity what, double unit, bool row_sends)
{
    int end[LINKS_GRID_MAX];

    for (int i = 0; i < g->n; i++)
        TRY (links_table_end (t, node, i, &end[i]));
    return links_grid_add (t, g, end, what, unit, row_sends);
}

/* Say it where copies through the host are faster than the peer-to-peer ones taken. */
static void compare_host (struct links_table *t, const struct machine *m, enum kind used,
                          const char *name)
{
    const struct links_grid *a = &m->grid[used], *b = &m->grid[HOST];
    int faster = 0, pairs = a->n * (a->n - 1);

    if (used > READS || !b->v || b->n != a->n)
        return;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < a->n; j++)
            faster += i != j && b->v[i * a->n + j] > 1.1 * a->v[i * a->n + j];
    if (faster > 0)
        notes_add (
            t->notes,
            "%s: node %s: copies through the host are faster than peer-to-peer copies on "
            "%d of %d links: try NCCL_P2P_DISABLE=1 there",
            t->file, name, faster, pairs);
}

static enum status finish_machine (struct links_table *t, struct machine *m, int number)
{
    char name[16];
    int k = 0, node;
    enum status st = ST_OK;

    while (k < LATENCY && !m->grid[k].v)
        k++;
    if (k < LATENCY) {
        snprintf (name, sizeof name, "n%d", number);
        TRY (links_table_node (t, name, &node));
        st = links_table_product (t, node, m->product);
        THEN (st, add_grid (t, node, &m->grid[k], LINKS_BANDWIDTH,
                            k >= BOTH ? 0.5 * UNITS_GB : UNITS_GB, k != READS));
        for (int l = LATENCY_HOST; l >= LATENCY && st == ST_OK; l--)
            if (m->grid[l].v && (l == LATENCY || !m->grid[LATENCY].v))
                st = add_grid (t, node, &m->grid[l], LINKS_LATENCY, UNITS_US, true);
        notes_add (t->notes,
                   "%s: the file does not name its host: the node is named %s; %s are "
                   "used",
                   t->file, name, kind_name[k]);
        compare_host (t, m, (enum kind) k, name);
    }
    for (int i = 0; i < KINDS; i++)
        links_grid_free (&m->grid[i]);
    m->product[0] = '\0';
    return st;
}

static bool matches (const char *text)
{
    return strstr (text, "P2P=Enabled") || strstr (text, "P2P=Disabled");
}

/* "Device: 0, NVIDIA A100-SXM4-80GB, pciBusID: 7, pciDeviceID: 0, pciDomainID:0" */
static void read_device (struct machine *m, const char *line)
{
    const char *name = strchr (line, ',');
    size_t n;

    if (!name)
        return;
    name += 1 + strspn (name + 1, " ");
    n = strcspn (name, ",");
    snprintf (m->product, sizeof m->product, "%.*s", (int) (n < 100 ? n : 100), name);
}

static enum status read (struct links_table *t)
{
    struct machine m = {.product = ""};
    enum kind kind = KINDS;
    int machines = 0;
    enum status st = ST_OK;

    t->gpus_known = true;
    for (char *line; st == ST_OK && (line = links_line (t));) {
        enum kind found = kind_of (line);
        char *s = line + strspn (line, " ");

        if (strncmp (line, "Device: ", 8) == 0) {
            read_device (&m, line);
        } else if (found < KINDS) {
            kind = found;
        } else if (kind < KINDS &&
                   (strncmp (s, "D\\D", 3) == 0 || strncmp (s, "GPU", 3) == 0)) {
            if (m.grid[kind].v)
                st = finish_machine (t, &m, machines++);
            THEN (st, links_grid_read (t, line, 1, &m.grid[kind]));
            kind = KINDS;
        }
    }
    THEN (st, finish_machine (t, &m, machines));
    for (int i = 0; i < KINDS; i++)
        links_grid_free (&m.grid[i]);
    return st;
}

const struct links_format links_format_p2p = {
    .name = "p2p", .matches = matches, .read = read};
