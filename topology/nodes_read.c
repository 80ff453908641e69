/* The cluster file's nodes.  A list with one entry per GPU has one for every GPU that the
 * file lists; in memory it is cut to those that are not drained. */
#include "topology/topology_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/units.h"

#define NODES_MAX 1048576

/* ---- lists with one entry per GPU ---- */

/* Find node.key, a list with one entry per GPU listed: some texts, say, or numbers.
 * @param[out] list  absent where the node has none */
static enum status find_list (struct reader *r, const struct json_at *node,
                              const char *key, int gpus, const char *entries,
                              struct json_at *list)
{
    *list = json_key (node, key);
    if (!json_has (node, key))
        list->v = NULL;
    else if (!json_is_array (list->v) || json_array_size (list->v) != (size_t) gpus)
        return json_fail (list, r->err, "a list of %d %s (one per GPU)", gpus, entries);
    return ST_OK;
}

/* The entry of the list that belongs to GPU k of those left. */
static struct json_at entry_of (const struct json_at *list, const struct topology_node *n,
                                int k)
{
    return json_entry (list, (size_t) (n->gpu_index ? n->gpu_index[k] : k));
}

static enum status read_texts (struct reader *r, const struct json_at *node,
                               const char *key, const struct topology_node *n,
                               bool (*good) (const char *), const char *expected,
                               char ***out)
{
    struct json_at list;

    TRY (find_list (r, node, key, n->gpus_listed, "texts", &list));
    if (list.v && !(*out = calloc ((size_t) n->gpus + 1, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; list.v && k < n->gpus; k++) {
        struct json_at one = entry_of (&list, n, k);
        const char *s;

        TRY (json_want_string (&one, &s, r->err));
        if (good && !good (s))
            return json_fail (&one, r->err, "%s", expected);
        if (!((*out)[k] = strdup (s)))
            return err_nomem (r->err);
    }
    return ST_OK;
}

static enum status read_ints (struct reader *r, const struct json_at *node,
                              const char *key, const struct topology_node *n, int lowest,
                              int **out)
{
    struct json_at list;

    TRY (find_list (r, node, key, n->gpus_listed, "numbers", &list));
    if (list.v && !(*out = calloc ((size_t) n->gpus + 1, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; list.v && k < n->gpus; k++) {
        struct json_at one = entry_of (&list, n, k);
        long long x;

        TRY (json_want_int (&one, lowest, 65535, &x, r->err));
        (*out)[k] = (int) x;
    }
    return ST_OK;
}

static enum status read_speed (struct reader *r, const struct json_at *node,
                               struct topology_node *n)
{
    struct json_at list;

    TRY (find_list (r, node, "speed", n->gpus_listed, "numbers", &list));
    if (list.v && !(n->speed = calloc ((size_t) n->gpus + 1, sizeof *n->speed)))
        return err_nomem (r->err);
    for (int k = 0; list.v && k < n->gpus; k++) {
        struct json_at one = entry_of (&list, n, k);

        TRY (json_want_number (&one, 0, false, 1e3, &n->speed[k], r->err));
    }
    return ST_OK;
}

bool topology_cpus_ok (const char *s)
{
    for (;;) {
        if (!isdigit ((unsigned char) *s))
            return false;
        while (isdigit ((unsigned char) *s))
            s++;
        if (*s == '\0')
            return true;
        if (*s != ',' && *s != '-')
            return false;
        s++;
    }
}

/* "ok" or "drained" -> drained. */
static enum status read_state (struct reader *r, const struct json_at *at, bool *drained)
{
    const char *s;

    TRY (json_want_string (at, &s, r->err));
    *drained = strcmp (s, "drained") == 0;
    return *drained || strcmp (s, "ok") == 0
               ? ST_OK
               : json_fail (at, r->err, "\"ok\" or \"drained\"");
}

/* Take drained GPUs out.  A node with all of them drained is drained as a whole. */
static enum status read_gpu_states (struct reader *r, const struct json_at *node,
                                    struct topology_node *n)
{
    struct json_at list;
    int left = 0;

    TRY (find_list (r, node, "gpu_state", n->gpus_listed, "states", &list));
    if (!list.v)
        return ST_OK;
    if (!(n->gpu_index = calloc ((size_t) n->gpus + 1, sizeof *n->gpu_index)))
        return err_nomem (r->err);
    json_each (&list, one) {
        bool drained;

        TRY (read_state (r, &one, &drained));
        if (!drained)
            n->gpu_index[left++] = (int) one.index;
    }
    n->drained = n->drained || left == 0;
    if (left == 0 || left == n->gpus) {
        free (n->gpu_index);
        n->gpu_index = NULL;
    } else
        n->gpus = left;
    return ST_OK;
}

/* ---- one node ---- */

static enum status read_switches (struct reader *r, const struct json_at *node,
                                  struct topology_node *n)
{
    struct json_at at = json_key (node, "switches");
    size_t k;

    if (!json_has (node, "switches"))
        return ST_OK;
    TRY (json_want_array (&at, &k, r->err));
    if (k > TOPOLOGY_SWITCHES_MAX)
        return json_fail (&at, r->err, "the switches above the node, at most 16");
    if (!(n->switches = calloc (k + 1, sizeof *n->switches)) ||
        !(n->switch_id = calloc (k + 1, sizeof *n->switch_id)))
        return err_nomem (r->err);
    json_each (&at, one) {
        const char *s;

        TRY (json_want_string (&one, &s, r->err));
        if (!(n->switches[n->levels] = strdup (s)))
            return err_nomem (r->err);
        n->levels++;
    }
    return ST_OK;
}

/* How many GPUs, and of which type. */
static enum status read_gpus (struct reader *r, const struct json_at *node,
                              struct topology_node *n)
{
    struct json_at gpus = json_key (node, "gpus"), type = json_key (node, "gpu_type");

    if (!r->partial && json_is_integer (gpus.v) && json_integer_value (gpus.v) == 0)
        return json_fail_text (
            &gpus, r->err,
            "expected a whole number from 1 to %d, found 0: node %s has "
            "no GPUs to plan on",
            TOPOLOGY_NODE_GPUS_MAX, n->name);
    if (!r->partial || json_has (node, "gpus"))
        TRY (json_get_int (node, "gpus", r->partial ? 0 : 1, TOPOLOGY_NODE_GPUS_MAX,
                           &n->gpus, r->err));
    n->gpus_listed = n->gpus;
    if (json_is_null (type.v) && !r->partial)
        return json_fail_text (&type, r->err,
                               "expected a text, found null: the GPU type of node %s is "
                               "unknown; `linkwise cluster merge FILE --gpu-type TYPE -o "
                               "OUT` sets it",
                               n->name);
    return !r->partial || json_has (node, "gpu_type")
               ? topology_type_find (r, &type, &n->type)
               : ST_OK;
}

#define HOST_MEMORY_GIB_MAX 1e6

/* What its host holds for all its GPUs, and the least that any GPU has of one. */
static enum status read_host_memory (struct reader *r, const struct json_at *node,
                                     struct topology_node *n)
{
    struct json_at at = json_key (node, "host_memory_gib");
    double gib, share;

    if (!json_has (node, "host_memory_gib"))
        return ST_OK;
    TRY (json_want_number (&at, 0, false, HOST_MEMORY_GIB_MAX, &gib, r->err));
    n->host_memory_bytes = gib * UNITS_GIB;
    share = n->gpus > 0 ? n->host_memory_bytes / n->gpus : 0;
    if (!n->drained && share > 0 &&
        (r->c->host_share_bytes <= 0 || share < r->c->host_share_bytes))
        r->c->host_share_bytes = share;
    return ST_OK;
}

static enum status read_node (struct reader *r, const struct json_at *at,
                              struct topology_node *n)
{
    struct json_at name = json_key (at, "name"), state = json_key (at, "state");
    const char *s;

    TRY (json_want_object (at, r->err));
    TRY (json_want_string (&name, &s, r->err));
    if (!topology_name_ok (s))
        return json_fail (&name, r->err,
                          "a name matching [A-Za-z0-9][A-Za-z0-9._-]{0,252}");
    if (!(n->name = strdup (s)))
        return err_nomem (r->err);
    TRY (read_gpus (r, at, n));
    if (json_has (at, "state"))
        TRY (read_state (r, &state, &n->drained));
    TRY (read_gpu_states (r, at, n));
    TRY (read_speed (r, at, n));
    TRY (read_ints (r, at, "gpu_numa", n, -1, &n->gpu_numa));
    TRY (read_ints (r, at, "gpu_rail", n, 0, &n->gpu_rail));
    TRY (read_texts (r, at, "gpu_uuid", n, NULL, NULL, &n->gpu_uuid));
    TRY (read_texts (r, at, "gpu_nic", n, NULL, NULL, &n->gpu_nic));
    TRY (read_texts (r, at, "gpu_pci", n, NULL, NULL, &n->gpu_pci));
    TRY (read_texts (r, at, "gpu_cpus", n, topology_cpus_ok,
                     "a list of cores as in \"0-15,64\"", &n->gpu_cpus));
    if (json_has (at, "rack")) {
        TRY (json_get_string (at, "rack", &s, r->err));
        if (!(n->rack = strdup (s)))
            return err_nomem (r->err);
    }
    TRY (read_switches (r, at, n));
    TRY (read_host_memory (r, at, n));
    json_note_unknown (at,
                       "name gpus gpu_type speed gpu_uuid gpu_numa gpu_nic gpu_cpus "
                       "gpu_pci gpu_rail gpu_path gpu_state rack switches state reason "
                       "numa nics packages cpu_model gpu_model host_memory_gib source",
                       r->notes);
    return ST_OK;
}

/* ---- all nodes ---- */

static int by_name (const void *a, const void *b)
{
    const struct topology_node *const *x = a, *const *y = b;

    return strcmp ((*x)->name, (*y)->name);
}

/* Sort the nodes by name for look-ups; two of one name are refused. */
static enum status sort_names (struct reader *r, const struct json_at *nodes)
{
    struct topology_cluster *c = r->c;

    if (!(c->by_name = calloc ((size_t) c->n_nodes, sizeof *c->by_name)))
        return err_nomem (r->err);
    for (int i = 0; i < c->n_nodes; i++)
        c->by_name[i] = &c->node[i];
    qsort (c->by_name, (size_t) c->n_nodes, sizeof *c->by_name, by_name);
    for (int i = 1; i < c->n_nodes; i++)
        if (strcmp (c->by_name[i - 1]->name, c->by_name[i]->name) == 0)
            return json_fail_text (nodes, r->err, "two nodes are named \"%s\"",
                                   c->by_name[i]->name);
    return ST_OK;
}

struct switch_use {
    const char *name;
    int *id;
};

/* Number the switches, so that comparing two is cheap. */
static enum status number_switches (struct reader *r)
{
    struct topology_cluster *c = r->c;
    size_t n = 0, k = 0;
    int id = 0;

    for (int i = 0; i < c->n_nodes; i++)
        n += (size_t) c->node[i].levels;

    struct switch_use *use = malloc ((n + 1) * sizeof *use);

    if (!use)
        return err_nomem (r->err);
    for (int i = 0; i < c->n_nodes; i++)
        for (int l = 0; l < c->node[i].levels; l++)
            use[k++] =
                (struct switch_use){c->node[i].switches[l], &c->node[i].switch_id[l]};
    qsort (use, n, sizeof *use, order_texts);
    for (k = 0; k < n; k++) {
        id += k > 0 && strcmp (use[k - 1].name, use[k].name) != 0;
        *use[k].id = id;
    }
    free (use);
    return ST_OK;
}

static bool has_counters (const struct json_at *root)
{
    struct json_at measured = json_key (root, "measured"),
                   counters = json_key (&measured, "counters");

    return json_array_size (counters.v) > 0;
}

enum status topology_nodes_read (struct reader *r, const struct json_at *root)
{
    struct topology_cluster *c = r->c;
    struct json_at nodes = json_key (root, "nodes");
    size_t n;

    TRY (json_want_array (&nodes, &n, r->err));
    /* A file may be about GPU types or counters alone. */
    if ((n == 0 && !(r->partial && (c->n_types > 0 || has_counters (root)))) ||
        n > NODES_MAX)
        return json_fail (&nodes, r->err, "1 to 1048576 nodes");
    if (!(c->node = calloc (n + 1, sizeof *c->node)))
        return err_nomem (r->err);
    c->n_nodes = (int) n;
    json_each (&nodes, one) {
        struct topology_node *node = &c->node[one.index];

        TRY (read_node (r, &one, node));
        node->first_gpu = c->n_gpus;
        c->n_gpus += node->gpus;
    }
    TRY (sort_names (r, &nodes));
    TRY (number_switches (r));
    if (!(c->node_of_gpu = calloc ((size_t) c->n_gpus + 1, sizeof *c->node_of_gpu)))
        return err_nomem (r->err);
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < c->node[i].gpus; k++)
            c->node_of_gpu[c->node[i].first_gpu + k] = i;
    return ST_OK;
}
