/* Nodes by what people call them: host lists, racks, switches, file order. */
#include <string.h>

#include "topology/topology.h"

/* Nodes of a rack, or below a switch, of that name. */
static enum status mark_rack (const struct topology_cluster *c, const char *rack,
                              const char *option, bool value, bool *marked,
                              struct error *err)
{
    int found = 0;

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];
        bool is_in = n->rack && strcmp (n->rack, rack) == 0;

        for (int k = 0; k < n->levels && !is_in; k++)
            is_in = strcmp (n->switches[k], rack) == 0;
        if (is_in)
            marked[i] = value && !n->drained;
        found += is_in;
    }
    return found > 0 ? ST_OK
                     : err_set (err, ST_USAGE,
                                "%s: the cluster %s has no rack and no switch \"%s\"",
                                option, c->name, rack);
}

static enum status mark_node (const struct topology_cluster *c, const char *name,
                              const char *option, bool value, bool *marked,
                              struct error *err)
{
    int node = topology_node_of_host (c, name);

    if (node == -2)
        return err_set (err, ST_USAGE,
                        "%s: \"%s\" is ambiguous: names of nodes of the cluster %s "
                        "differ only after the first dot",
                        option, name, c->name);
    if (node < 0)
        return err_set (err, ST_USAGE, "%s: the cluster %s has no node \"%s\"", option,
                        c->name, name);
    marked[node] = value && !c->node[node].drained;
    return ST_OK;
}

enum status topology_mark_nodes (const struct topology_cluster *c, const char *list,
                                 const char *option, bool value, bool *marked,
                                 struct error *err)
{
    bool racks = strncmp (list, "rack:", 5) == 0;
    char **names;
    int n;
    enum status st = topology_hostlist_expand (list + (racks ? 5 : 0), &names, &n, err);

    if (st != ST_OK) {
        err_prefix (err, "%s", option);
        return st;
    }
    for (int i = 0; i < n && st == ST_OK; i++)
        st = (racks ? mark_rack : mark_node) (c, names[i], option, value, marked, err);
    topology_hostlist_free (names);
    return st;
}

/* Separators become one comma each, in place; none is left at the ends.  Commas inside brackets
 * belong to a name: n[1,3]. */
static void join_lines (char *text)
{
    char *to = text;
    bool gap = false;
    int depth = 0;

    for (const char *p = text; *p; p++) {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (strchr (" \t\r\n", *p) || (*p == ',' && depth <= 0)) {
            gap = to > text;
            continue;
        }
        if (gap)
            *to++ = ',';
        gap = false;
        *to++ = *p;
    }
    *to = '\0';
}

enum status topology_hostlist_known (const struct topology_cluster *c, const char *file,
                                     char *text, struct text *list, struct notes *notes,
                                     struct error *err)
{
    const char *unknown = NULL;
    char **names;
    int n, others = 0;
    enum status st;

    join_lines (text);
    if (*text == '\0')
        return ST_OK;
    st = topology_hostlist_expand (text, &names, &n, err);
    if (st != ST_OK) {
        err_prefix (err, "%s", file);
        return st == ST_USAGE ? ST_INVALID : st;
    }
    for (int i = 0; i < n; i++) {
        if (topology_node_of_host (c, names[i]) == -1) {
            unknown = others++ ? unknown : names[i];
            continue;
        }
        text_add (list, "%s%s", list->len > 0 ? "," : "", names[i]);
    }
    if (unknown)
        notes_add (notes,
                   "%s: %d of %d names are no nodes of the cluster %s, the first \"%s\"",
                   file, others, n, c->name, unknown);
    topology_hostlist_free (names);
    return list->failed ? err_nomem (err) : ST_OK;
}

int topology_gpus_in_order (const struct topology_cluster *c, int most, int *gpu)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < c->node[i].gpus && n < most && !c->node[i].drained; k++)
            gpu[n++] = c->node[i].first_gpu + k;
    return n;
}
