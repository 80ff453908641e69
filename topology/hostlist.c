/* Slurm host lists: comma-separated names, each a product of fixed text and bracketed
 * ranges; a range's leading zeros are its width (slurm.conf(5), "NodeName"). */
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HOSTS_MAX 1000000

struct list {
    char **name;
    int n;
};

static enum status list_room (const struct list *l, long more, struct error *err)
{
    return more <= HOSTS_MAX - l->n
               ? ST_OK
               : err_set (err, ST_USAGE, "a host list has more than %d names", HOSTS_MAX);
}

static enum status list_add (struct list *l, const char *name, struct error *err)
{
    if (!topology_name_ok (name))
        return err_set (err, ST_USAGE, "host list: \"%s\" is no node name", name);
    TRY (list_room (l, 1, err));
    if (!array_grow (&l->name, l->n, sizeof *l->name) || !(l->name[l->n] = strdup (name)))
        return err_nomem (err);
    l->n++;
    return ST_OK;
}

static enum status expand (struct text *head, const char *rest, struct list *l,
                           struct error *err);

/* One range "lo" or "lo-hi" of a bracket: every number, then what follows the bracket. */
static enum status expand_range (struct text *head, const char *range, size_t len,
                                 const char *rest, struct list *l, struct error *err)
{
    const char *dash = memchr (range, '-', len), *high = dash ? dash + 1 : range;
    size_t lo_len = dash ? (size_t) (dash - range) : len, at = head->len;
    size_t hi_len = dash ? len - lo_len - 1 : len;
    long lo = strtol (range, NULL, 10), hi = strtol (high, NULL, 10);

    if (lo_len == 0 || hi_len == 0 || lo_len > 9 || hi_len > 9 ||
        strspn (range, "0123456789") != lo_len || strspn (high, "0123456789") != hi_len)
        return err_set (err, ST_USAGE, "host list: a bad range \"%.*s\"", (int) len,
                        range);
    if (lo > hi)
        return err_set (err, ST_USAGE, "host list: the range %.*s runs backwards",
                        (int) len, range);
    TRY (list_room (l, hi - lo + 1, err)); /* before the time that they would take */
    for (long k = lo; k <= hi; k++) {
        head->len = at;
        text_add (head, "%0*ld", (int) lo_len, k);
        TRY (expand (head, rest, l, err));
    }
    return ST_OK;
}

/* One name of the list: head is expanded already, rest is not. */
static enum status expand (struct text *head, const char *rest, struct list *l,
                           struct error *err)
{
    const char *open = strchr (rest, '['), *close = open ? strchr (open, ']') : NULL;
    size_t at, len;

    if (head->len + strlen (rest) > 4 * TOPOLOGY_NAME_MAX)
        return err_set (err, ST_USAGE, "host list: a name is too long");
    if (open && !close)
        return err_set (err, ST_USAGE, "host list: \"[\" without \"]\"");
    text_add_mem (head, rest, open ? (size_t) (open - rest) : strlen (rest));
    if (head->failed)
        return err_nomem (err);
    if (!open)
        return list_add (l, text_str (head), err);
    at = head->len;
    for (const char *p = open + 1; p <= close; p += len + 1) {
        head->len = at;
        len = strcspn (p, ",]");
        TRY (expand_range (head, p, len, close + 1, l, err));
    }
    return ST_OK;
}

/* End a name at its comma, which stands outside brackets.  @return the next; NULL: none */
static char *cut_name (char *name)
{
    int depth = 0;

    for (; *name && (depth > 0 || *name != ','); name++)
        depth += *name == '[' ? 1 : *name == ']' ? -1 : 0;
    if (*name == '\0')
        return NULL;
    *name = '\0';
    return name + 1;
}

/* @param copy  of the list; it is cut up */
static enum status expand_all (const char *list, char *copy, struct text *head,
                               struct list *l, struct error *err)
{
    for (char *name = copy, *next; name; name = next) {
        next = cut_name (name);
        if (*name == '\0')
            return err_set (err, ST_USAGE, "host list: an empty name in \"%.60s\"", list);
        if (strpbrk (name, " \t\n\v\f\r"))
            return err_set (err, ST_USAGE, "host list: a blank in \"%.60s\"", list);
        head->len = 0;
        TRY (expand (head, name, l, err));
    }
    return array_grow (&l->name, l->n, sizeof *l->name) ? ST_OK : err_nomem (err);
}

enum status topology_hostlist_expand (const char *list, char ***names, int *n,
                                      struct error *err)
{
    struct list l = {0};
    struct text head = {0};
    char *copy = strdup (list);
    enum status st = copy ? expand_all (list, copy, &head, &l, err) : err_nomem (err);

    text_free (&head);
    free (copy);
    if (st != ST_OK) {
        memory_free_texts (l.name, l.n);
        return st;
    }
    l.name[l.n] = NULL;
    *names = l.name;
    *n = l.n;
    return ST_OK;
}

void topology_hostlist_free (char **names)
{
    for (int i = 0; names && names[i]; i++)
        free (names[i]);
    free (names);
}

/* ---- nodes by what people call them: host lists, racks, switches, file order ---- */

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
