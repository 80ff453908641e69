/* The output of `ibnetdiscover`: which hosts hang from which InfiniBand switches.
 *
 * In a fat tree the number of switches between two hosts follows from where they hang: one
 * under the same leaf, three within a pod, five across the core.  So the leaves are put
 * together level by level: those that are two cables apart make a pod, pods that are four
 * apart make one more, and so on.  A network in which that does not give the distances
 * that the cables have (a torus, a dragonfly) is noted.  A host with several adapters is
 * placed by its first one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "topology/machine/machine.h"
#include "topology/topology.h"

#define IDS_MAX 200000

struct device {
    char id[40];                      /* "S-0002c90200..." or "H-..." */
    bool is_switch, shared;           /* shared: other switches have its name too */
    char name[TOPOLOGY_NAME_MAX + 1]; /* its description's first word */
    int *peer;                        /* devices at the other ends of its cables */
    int n_peers;
    int level; /* of a switch while the tree is made: its group */
};

struct reading {
    const struct import *in;
    struct device *device;
    int n;
    json_t *index; /* id -> place in device[] */
    int open;      /* device whose cables the lines tell; -1: none */
    int *leaf;     /* switches with hosts */
    int n_leaves;
};

/* ---- lines ---- */

static int device_of (struct reading *r, const char *id, size_t len)
{
    int d = json_number_of (r->index, "%.*s", (int) len, id);

    if (d < 0 || d >= IDS_MAX ||
        (d == r->n && !array_grow (&r->device, r->n, sizeof *r->device)))
        return -1;
    if (d == r->n) {
        r->device[r->n++] = (struct device){.is_switch = id[0] == 'S', .level = -1};
        snprintf (r->device[d].id, sizeof r->device[d].id, "%.*s", (int) len, id);
    }
    return d;
}

static bool add_peer (struct device *d, int peer)
{
    if (!array_grow (&d->peer, d->n_peers, sizeof *d->peer))
        return false;
    d->peer[d->n_peers++] = peer;
    return true;
}

/* The text between the first two quotes at or after p; NULL: none. */
static const char *quoted (const char *p, size_t *len)
{
    const char *open = strchr (p, '"'), *close = open ? strchr (open + 1, '"') : NULL;

    if (!close || close == open + 1 || close - open > 39 ||
        (open[1] != 'S' && open[1] != 'H' && open[1] != 'R') || open[2] != '-')
        return NULL;
    *len = (size_t) (close - open - 1);
    return open + 1;
}

/* The first word of the description after '#': the host's name, or the switch's. */
static void read_name (struct device *d, const char *line)
{
    const char *hash = strchr (line, '#'), *open = hash ? strchr (hash, '"') : NULL;
    size_t n = 0;

    if (!open || d->name[0])
        return;
    if (!d->is_switch && strstr (open, "Mellanox")) {
        /* Nobody set the adapter's description to the host's name, or it is a switch's
         * own aggregation engine. */
        strcpy (d->name, strstr (open, "Aggregation") ? "-aggregation" : "-unnamed");
        return;
    }
    for (open++; open[n] && !strchr ("\" ;\t", open[n]) && n < TOPOLOGY_NAME_MAX; n++)
        d->name[n] = open[n];
    d->name[n] = '\0';
    /* InfiniBand switches describe themselves as "MF0;name:model/unit". */
    if (d->is_switch && open[n] == ';') {
        size_t k = strcspn (open + n + 1, "\": ");

        snprintf (d->name, sizeof d->name, "%.*s", (int) k, open + n + 1);
    }
}

/* "Switch 24 "S-..." # "..."" and "Ca 2 "H-..." # "..."" begin a device; "[22] "H-..."[1]"
 * is a cable of it. */
static enum status read_line (void *context, char *line, int number)
{
    struct reading *r = context;
    const char *s = line + strspn (line, " \t"), *id;
    bool begins = strncmp (s, "Switch", 6) == 0 || strncmp (s, "Ca", 2) == 0 ||
                  strncmp (s, "Rt", 2) == 0;
    size_t len;
    int d;

    if (!begins && s[0] != '[') {
        r->open = s[0] == '\0' || strchr (s, '=') ? -1 : r->open;
        return ST_OK;
    }
    if (!(id = quoted (s, &len)))
        return import_fail (
            r->in, "line %d: expected a device as in \"S-0002c902004b0b78\"", number);
    if ((d = device_of (r, id, len)) < 0)
        return import_fail (r->in, "more than %d devices", IDS_MAX);
    if (begins) {
        r->open = d;
        read_name (&r->device[d], s);
        return ST_OK;
    }
    if (r->open < 0)
        return import_fail (r->in, "line %d: a cable before any Switch or Ca", number);
    return add_peer (&r->device[r->open], d) ? ST_OK : err_nomem (r->in->err);
}

/* ---- the tree ---- */

/* A name that several switches have tells none of them: their GUIDs do then. */
static void find_shared_names (struct reading *r)
{
    json_t *first = json_object ();

    for (int k = 0; k < r->n; k++) {
        struct device *d = &r->device[k];
        json_t *other = d->is_switch ? json_object_get (first, d->name) : NULL;

        if (!d->is_switch || !d->name[0])
            continue;
        if (!other)
            json_object_set_new (first, d->name, json_integer (k));
        else {
            r->device[json_integer_value (other)].shared = true;
            d->shared = true;
        }
    }
    json_decref (first);
}

/* Switches that hosts hang from. */
static enum status find_leaves (struct reading *r)
{
    if (!(r->leaf = calloc ((size_t) r->n + 1, sizeof *r->leaf)))
        return err_nomem (r->in->err);
    for (int k = 0; k < r->n; k++) {
        const struct device *d = &r->device[k];
        bool hosts = false;

        for (int i = 0; i < d->n_peers; i++)
            hosts = hosts || r->device[d->peer[i]].id[0] == 'H';
        if (d->is_switch && hosts)
            r->leaf[r->n_leaves++] = k;
    }
    return ST_OK;
}

/* Cables from one switch to all others, over switches alone; -1: not reached. */
static void distances (const struct reading *r, int from, int *cables, int *queue)
{
    int head = 0, tail = 0;

    for (int k = 0; k < r->n; k++)
        cables[k] = -1;
    cables[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const struct device *d = &r->device[queue[head++]];

        for (int i = 0; i < d->n_peers; i++)
            if (r->device[d->peer[i]].is_switch && cables[d->peer[i]] < 0) {
                cables[d->peer[i]] = cables[d - r->device] + 1;
                queue[tail++] = d->peer[i];
            }
    }
}

static int root_of (int *parent, int k)
{
    while (parent[k] != k)
        k = parent[k] = parent[parent[k]];
    return k;
}

/* group[level * n_leaves + l]: which group leaf l is in at a level; leaves within
 * 2 * level cables are in one.  far counts pairs whose group says otherwise. */
static enum status group_leaves (const struct reading *r, int levels, int *group,
                                 const int *between, double *far)
{
    int n = r->n_leaves;
    int *parent = calloc ((size_t) n + 1, sizeof *parent);

    if (!parent)
        return err_nomem (r->in->err);
    for (int level = 0; level < levels; level++) {
        for (int l = 0; l < n; l++)
            parent[l] = l;
        for (int l = 0; l < n; l++)
            for (int k = 0; k < l; k++)
                if (between[l * n + k] >= 0 && between[l * n + k] <= 2 * level)
                    parent[root_of (parent, l)] = root_of (parent, k);
        for (int l = 0; l < n; l++)
            group[level * n + l] = root_of (parent, l);
        for (int l = 0; l < n; l++)
            for (int k = 0; k < l; k++)
                *far += group[level * n + l] == group[level * n + k] &&
                        (between[l * n + k] < 0 || between[l * n + k] > 2 * level);
    }
    free (parent);
    return ST_OK;
}

/* ---- nodes ---- */

static const char *switch_name (const struct device *d)
{
    return d->name[0] && !d->shared ? d->name : d->id;
}

/* The hosts of leaf l, with the groups above it. */
static void add_hosts (const struct reading *r, int l, int levels, const int *group,
                       json_t *nodes, json_t *seen, int *unnamed)
{
    const struct device *leaf = &r->device[r->leaf[l]];
    json_t *switches = json_pack ("[s]", switch_name (leaf));

    for (int level = 1; level < levels; level++) {
        char name[TOPOLOGY_NAME_MAX + 32];

        snprintf (name, sizeof name, "level%d-%s", level,
                  switch_name (&r->device[r->leaf[group[level * r->n_leaves + l]]]));
        json_array_append_new (switches, json_string (name));
    }
    for (int i = 0; i < leaf->n_peers; i++) {
        const struct device *host = &r->device[leaf->peer[i]];

        if (host->id[0] != 'H' || strcmp (host->name, "-aggregation") == 0)
            continue;
        if (!topology_name_ok (host->name)) {
            ++*unnamed;
            continue;
        }
        if (json_object_get (seen, host->name))
            continue;
        json_object_set_new (seen, host->name, json_true ());
        json_array_append_new (nodes,
                               json_pack ("{s:s, s:i, s:n, s:O}", "name", host->name,
                                          "gpus", 0, "gpu_type", "switches", switches));
    }
    json_decref (switches);
}

static enum status build (struct reading *r, json_t **doc)
{
    size_t n = (size_t) r->n_leaves;
    int *between = calloc (n * n + 1, sizeof *between);
    int *cables = calloc (2 * (size_t) r->n + 2, sizeof *cables), *group = NULL;
    json_t *nodes = json_array (), *seen = json_object ();
    int farthest = 0, unnamed = 0, levels;
    double far = 0;
    enum status st = between && cables ? ST_OK : err_nomem (r->in->err);

    for (size_t l = 0; l < n && st == ST_OK; l++) {
        distances (r, r->leaf[l], cables, cables + r->n);
        for (size_t k = 0; k < n; k++) {
            between[l * n + k] = cables[r->leaf[k]];
            farthest = cables[r->leaf[k]] > farthest ? cables[r->leaf[k]] : farthest;
        }
    }
    levels = (farthest + 1) / 2 + 1;
    levels = levels > TOPOLOGY_SWITCHES_MAX ? TOPOLOGY_SWITCHES_MAX : levels;
    if (st == ST_OK && !(group = calloc ((size_t) levels * n + 1, sizeof *group)))
        st = err_nomem (r->in->err);
    THEN (st, group_leaves (r, levels, group, between, &far));
    for (int l = 0; l < r->n_leaves && st == ST_OK; l++)
        add_hosts (r, l, levels, group, nodes, seen, &unnamed);
    if (far > 0)
        import_note (r->in,
                     "not a tree: %.0f pairs of leaf switches are farther apart than the "
                     "switch levels show",
                     far);
    if (unnamed > 0)
        import_note (r->in, "%d hosts are left out: their description is not a host name",
                     unnamed);
    if (st == ST_OK && json_array_size (nodes) == 0)
        st = import_fail (r->in, "the file has no host at a switch");
    if (st == ST_OK) {
        *doc = json_pack ("{s:i, s:s, s:O}", "version", 1, "source", "ibnetdiscover",
                          "nodes", nodes);
        st = *doc ? ST_OK : err_nomem (r->in->err);
    }
    FREE_ALL (between, cables, group);
    JSON_DECREF_ALL (nodes, seen);
    return st;
}

static enum status read_ibnet (const struct import *in, json_t **doc)
{
    struct reading r = {.in = in, .index = json_object (), .open = -1};
    enum status st = import_lines (in, read_line, &r);

    if (st == ST_OK) {
        find_shared_names (&r);
        st = find_leaves (&r);
    }
    if (st == ST_OK && r.n_leaves > 8192)
        st = import_fail (in, "%d leaf switches, at most 8192", r.n_leaves);
    THEN (st, build (&r, doc));
    for (int k = 0; k < r.n; k++)
        free (r.device[k].peer);
    FREE_ALL (r.device, r.leaf);
    json_decref (r.index);
    return st;
}

static bool is_ibnet (const char *data)
{
    return strstr (data, "switchguid=") || strstr (data, "caguid=");
}

const struct importer import_ibnet = {
    .format = {"ibnetdiscover", "the output of `ibnetdiscover`"},
    .is = is_ibnet,
    .read = read_ibnet};
