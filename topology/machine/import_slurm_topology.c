/* Slurm's topology.conf: a tree (SwitchName=, Switches=, Nodes=) or blocks (BlockName=,
 * Nodes=, BlockSizes=).  Each node gets the switches above it, from the leaf up; blocks
 * are its first level, and every size of BlockSizes above the smallest puts neighbouring
 * blocks under one more. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/memory.h"
#include "topology/machine/machine.h"
#include "topology/topology.h"

/* A switch or block of the file. */
struct unit {
    char *name;
    char *nodes, *below; /* host lists, or NULL */
    int up;              /* index of the unit above, or -1 */
    int line;
};

struct reading {
    const struct import *in;
    struct unit *unit;
    int n;
    bool blocks;
    long size[TOPOLOGY_SWITCHES_MAX]; /* BlockSizes, ascending */
    int n_sizes;
    json_t *nodes;
    json_t *place; /* node name -> its index, to find one that comes twice */
};

/* ---- lines ---- */

static enum status fail (const struct reading *r, int line, const char *what,
                         const char *found)
{
    return import_fail (r->in, "line %d: %s%.60s", line, what, found);
}

static struct unit *add_unit (struct reading *r)
{
    if (!array_grow (&r->unit, r->n, sizeof *r->unit))
        return NULL;
    r->unit[r->n] = (struct unit){.up = -1};
    return &r->unit[r->n++];
}

static enum status read_sizes (struct reading *r, const char *s, int line)
{
    char *end;

    r->n_sizes = 0;
    for (;; s = end + 1) {
        long size = strtol (s, &end, 10);

        if (end == s || (*end && *end != ',') || size < 1 || size > 1000000 ||
            r->n_sizes == TOPOLOGY_SWITCHES_MAX ||
            (r->n_sizes > 0 && size <= r->size[r->n_sizes - 1]))
            return fail (r, line, "BlockSizes: expected ascending numbers, found ", s);
        r->size[r->n_sizes++] = size;
        if (!*end)
            return ST_OK;
    }
}

static enum status set_once (struct reading *r, char **field, const char *value, int line)
{
    if (*field)
        return fail (r, line, "a key appears twice: ", value);
    *field = strdup (value);
    return *field ? ST_OK : err_nomem (r->in->err);
}

/* One KEY=VALUE; keys are case-insensitive. */
static enum status read_pair (struct reading *r, char *word, struct unit **unit, int line)
{
    char *value = strchr (word, '=');
    bool block = strncasecmp (word, "BlockName=", 10) == 0;

    if (!value)
        return fail (r, line, "expected KEY=VALUE, found ", word);
    *value++ = '\0';
    if (block || strcasecmp (word, "SwitchName") == 0) {
        if (*unit || (r->n > 0 && block != r->blocks))
            return fail (r, line, "switches and blocks do not mix: ", value);
        r->blocks = block;
        if (!(*unit = add_unit (r)))
            return err_nomem (r->in->err);
        (*unit)->line = line;
        return set_once (r, &(*unit)->name, value, line);
    }
    if (strcasecmp (word, "BlockSizes") == 0)
        return read_sizes (r, value, line);
    if (strcasecmp (word, "Nodes") == 0 && *unit)
        return set_once (r, &(*unit)->nodes, value, line);
    if (strcasecmp (word, "Switches") == 0 && *unit)
        return set_once (r, &(*unit)->below, value, line);
    if (strcasecmp (word, "LinkSpeed") == 0)
        return ST_OK;
    import_note (r->in, "line %d: unknown key %.40s, ignored", line, word);
    return ST_OK;
}

static enum status read_line (void *context, char *line, int number)
{
    char *word[16];
    struct unit *unit = NULL;
    int n;

    line[strcspn (line, "#")] = '\0';
    n = text_words (line, word, 16);
    for (int k = 0; k < n; k++)
        TRY (read_pair (context, word[k], &unit, number));
    return ST_OK;
}

/* ---- the tree ---- */

static enum status expand (const struct reading *r, const char *list, int line,
                           char ***names, int *n)
{
    enum status st = topology_hostlist_expand (list, names, n, r->in->err);

    if (st == ST_USAGE)
        st = ST_INVALID;
    if (st != ST_OK)
        err_prefix (r->in->err, "%s: line %d", r->in->name, line);
    return st;
}

/* Set `up` of the units that k lists in Switches=.  @param[in] numbers  of units by their names */
static enum status link_below (struct reading *r, const json_t *numbers, int k)
{
    char **names;
    int n;
    enum status st = ST_OK;

    TRY (expand (r, r->unit[k].below, r->unit[k].line, &names, &n));
    for (int i = 0; i < n && st == ST_OK; i++) {
        const json_t *found = json_object_get (numbers, names[i]);
        int *up = found ? &r->unit[json_integer_value (found)].up : NULL;

        if (!up)
            st = fail (r, r->unit[k].line, "Switches: no switch is named ", names[i]);
        else if (*up >= 0 && *up != k)
            st = fail (r, r->unit[k].line, "a switch below two others: ", names[i]);
        else
            *up = k;
    }
    topology_hostlist_free (names);
    return st;
}

static enum status link_tree (struct reading *r)
{
    json_t *numbers = json_object ();
    enum status st = ST_OK;

    for (int k = 0; k < r->n && st == ST_OK; k++) {
        int number = json_number_of (numbers, "%s", r->unit[k].name);

        if (number != k)
            st = number < 0 ? err_nomem (r->in->err)
                            : fail (r, r->unit[k].line,
                                    "two switches or blocks are named ", r->unit[k].name);
    }
    for (int k = 0; k < r->n && st == ST_OK; k++)
        if (r->unit[k].below)
            st = link_below (r, numbers, k);
    json_decref (numbers);
    for (int k = 0; k < r->n && st == ST_OK; k++) {
        int levels = 0;

        for (int u = k; u >= 0 && levels <= TOPOLOGY_SWITCHES_MAX; u = r->unit[u].up)
            levels++;
        if (levels > TOPOLOGY_SWITCHES_MAX)
            st = fail (r, r->unit[k].line,
                       "more than 16 levels of switches, or a cycle, above ",
                       r->unit[k].name);
    }
    return st;
}

/* ---- nodes ---- */

/* The blocks that a block is together with at each size, as names "first+...+last". */
static void add_block_levels (const struct reading *r, int k, json_t *switches)
{
    for (int i = 1; i < r->n_sizes; i++) {
        int group = (int) (r->size[i] / r->size[0]), first = k / group * group;
        int last = first + group - 1 < r->n ? first + group - 1 : r->n - 1;
        struct text t = {0};

        text_add (&t, "%s..%s", r->unit[first].name, r->unit[last].name);
        json_array_append_new (switches, json_string (text_str (&t)));
        text_free (&t);
    }
}

static json_t *switches_of (const struct reading *r, int k)
{
    json_t *list = json_array ();

    for (int u = k; u >= 0; u = r->unit[u].up)
        json_array_append_new (list, json_string (r->unit[u].name));
    if (r->blocks)
        add_block_levels (r, k, list);
    return list;
}

static enum status add_nodes (struct reading *r, int k)
{
    json_t *switches;
    char **names;
    int n;
    enum status st = ST_OK;

    TRY (expand (r, r->unit[k].nodes, r->unit[k].line, &names, &n));
    switches = switches_of (r, k);
    for (int i = 0; i < n && st == ST_OK; i++) {
        json_t *known = json_object_get (r->place, names[i]);

        if (known && json_integer_value (known) != k)
            st = fail (r, r->unit[k].line, "under two switches: node ", names[i]);
        if (known)
            continue; /* overlapping ranges of one list */
        json_object_set_new (r->place, names[i], json_integer (k));
        json_array_append_new (r->nodes,
                               json_pack ("{s:s, s:i, s:n, s:O}", "name", names[i],
                                          "gpus", 0, "gpu_type", "switches", switches));
    }
    json_decref (switches);
    topology_hostlist_free (names);
    return st;
}

static enum status read_document (struct reading *r, json_t **doc)
{
    TRY (import_lines (r->in, read_line, r));
    if (r->n == 0)
        return import_fail (r->in, "the file has no SwitchName= or BlockName=");
    TRY (link_tree (r));
    for (int k = 0; k < r->n; k++)
        if (r->unit[k].nodes)
            TRY (add_nodes (r, k));
    if (json_array_size (r->nodes) == 0)
        return import_fail (r->in, "the file has no Nodes=");
    *doc = json_pack ("{s:i, s:s, s:O}", "version", 1, "source",
                      r->blocks ? "Slurm topology.conf (block)"
                                : "Slurm topology.conf (tree)",
                      "nodes", r->nodes);
    return *doc ? ST_OK : err_nomem (r->in->err);
}

static enum status read_topology (const struct import *in, json_t **doc)
{
    struct reading r = {.in = in, .nodes = json_array (), .place = json_object ()};
    enum status st = read_document (&r, doc);

    for (int k = 0; k < r.n; k++) {
        FREE_ALL (r.unit[k].name, r.unit[k].nodes, r.unit[k].below);
    }
    free (r.unit);
    JSON_DECREF_ALL (r.nodes, r.place);
    return st;
}

/* A line that begins with SwitchName= or BlockName=. */
static bool is_topology (const char *data)
{
    for (const char *p = data; p && *p;
         p = strchr (p, '\n') ? strchr (p, '\n') + 1 : NULL) {
        p += strspn (p, " \t\r");
        if (strncasecmp (p, "SwitchName=", 11) == 0 ||
            strncasecmp (p, "BlockName=", 10) == 0)
            return true;
    }
    return false;
}

const struct importer import_slurm_topology = {
    .format = {"slurm-topology", "Slurm's topology.conf, tree or block"},
    .is = is_topology,
    .read = read_topology};
