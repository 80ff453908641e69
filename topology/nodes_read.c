/* The cluster file's nodes.  A list with one entry per GPU has one for every GPU that the
 * file lists; in memory it is cut to those that are not drained. */
#include "topology/topology_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define NODES_MAX 1048576

/* ---- lists with one entry per GPU ---- */

/* Check that node.key, which is there, is a list with one entry per GPU listed. */
static enum status want_list (struct reader *r, const struct json_at *at, int gpus,
                              const char *entries)
{
    char expected[64];

    snprintf (expected, sizeof expected, "a list of %d %s (one per GPU)", gpus, entries);
    return json_is_array (at->v) && json_array_size (at->v) == (size_t) gpus
               ? ST_OK
               : json_fail (at, r->err, expected);
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
    struct json_at at = json_key (node, key);
    enum status st;

    if (!json_has (node, key))
        return ST_OK;
    st = want_list (r, &at, n->gpus_listed, "texts");
    if (st != ST_OK)
        return st;
    if (!(*out = calloc ((size_t) n->gpus + 1, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; k < n->gpus; k++) {
        struct json_at one = entry_of (&at, n, k);
        const char *s;

        st = json_want_string (&one, &s, r->err);
        if (st == ST_OK && good && !good (s))
            st = json_fail (&one, r->err, expected);
        if (st != ST_OK)
            return st;
        if (!((*out)[k] = strdup (s)))
            return err_nomem (r->err);
    }
    return ST_OK;
}

static enum status read_ints (struct reader *r, const struct json_at *node,
                              const char *key, const struct topology_node *n, int lowest,
                              int **out)
{
    struct json_at at = json_key (node, key);
    enum status st;

    if (!json_has (node, key))
        return ST_OK;
    st = want_list (r, &at, n->gpus_listed, "numbers");
    if (st != ST_OK)
        return st;
    if (!(*out = calloc ((size_t) n->gpus + 1, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; k < n->gpus && st == ST_OK; k++) {
        struct json_at one = entry_of (&at, n, k);
        long long x = 0;

        st = json_want_int (&one, lowest, 65535, &x, r->err);
        (*out)[k] = (int) x;
    }
    return st;
}

static enum status read_speed (struct reader *r, const struct json_at *node,
                               struct topology_node *n)
{
    struct json_at at = json_key (node, "speed");
    enum status st;

    if (!json_has (node, "speed"))
        return ST_OK;
    st = want_list (r, &at, n->gpus_listed, "numbers");
    if (st != ST_OK)
        return st;
    if (!(n->speed = calloc ((size_t) n->gpus + 1, sizeof *n->speed)))
        return err_nomem (r->err);
    for (int k = 0; k < n->gpus && st == ST_OK; k++) {
        struct json_at one = entry_of (&at, n, k);

        st = json_want_number (&one, 0, false, 1e3, &n->speed[k], r->err);
    }
    return st;
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
    enum status st = json_want_string (at, &s, r->err);

    if (st == ST_OK && strcmp (s, "ok") != 0 && strcmp (s, "drained") != 0)
        st = json_fail (at, r->err, "\"ok\" or \"drained\"");
    *drained = st == ST_OK && strcmp (s, "drained") == 0;
    return st;
}

/* Take drained GPUs out.  A node with all of them drained is drained as a whole. */
static enum status read_gpu_states (struct reader *r, const struct json_at *node,
                                    struct topology_node *n)
{
    struct json_at at = json_key (node, "gpu_state");
    enum status st;
    int left = 0;

    if (!json_has (node, "gpu_state"))
        return ST_OK;
    st = want_list (r, &at, n->gpus_listed, "states");
    if (st != ST_OK)
        return st;

    int *index = calloc ((size_t) n->gpus + 1, sizeof *index);

    if (!index)
        return err_nomem (r->err);
    n->gpu_index = index;
    for (int k = 0; k < n->gpus; k++) {
        struct json_at one = json_entry (&at, (size_t) k);
        bool drained;

        st = read_state (r, &one, &drained);
        if (st != ST_OK)
            return st;
        if (!drained)
            index[left++] = k;
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
    enum status st;

    if (!json_has (node, "switches"))
        return ST_OK;
    st = json_want_array (&at, &k, r->err);
    if (st != ST_OK)
        return st;
    if (k > TOPOLOGY_SWITCHES_MAX)
        return json_fail (&at, r->err, "the switches above the node, at most 16");
    if (!(n->switches = calloc (k + 1, sizeof *n->switches)) ||
        !(n->switch_id = calloc (k + 1, sizeof *n->switch_id)))
        return err_nomem (r->err);
    for (size_t i = 0; i < k; i++) {
        struct json_at one = json_entry (&at, i);
        const char *s;

        st = json_want_string (&one, &s, r->err);
        if (st != ST_OK)
            return st;
        if (!(n->switches[i] = strdup (s)))
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
    long long k = 0;
    enum status st = ST_OK;

    if (!r->partial || json_has (node, "gpus"))
        st =
            json_want_int (&gpus, r->partial ? 0 : 1, TOPOLOGY_NODE_GPUS_MAX, &k, r->err);
    if (st != ST_OK && !r->partial && json_is_integer (gpus.v) &&
        json_integer_value (gpus.v) == 0)
        return json_fail_text (
            &gpus, r->err,
            "expected a whole number from 1 to %d, found 0: node %s has "
            "no GPUs to plan on",
            TOPOLOGY_NODE_GPUS_MAX, n->name);
    n->gpus = n->gpus_listed = (int) k;
    if (st == ST_OK && json_is_null (type.v) && !r->partial)
        return json_fail_text (&type, r->err,
                               "expected a text, found null: nobody named the type of "
                               "node %s's GPUs; `linkwise cluster merge FILE --gpu-type "
                               "TYPE -o OUT` does",
                               n->name);
    if (st == ST_OK && (!r->partial || json_has (node, "gpu_type")))
        st = topology_type_find (r, &type, &n->type);
    return st;
}

static enum status read_node (struct reader *r, const struct json_at *at,
                              struct topology_node *n)
{
    static const char *const known[] = {
        "name",     "gpus",      "gpu_type",  "speed",    "gpu_uuid", "gpu_numa",
        "gpu_nic",  "gpu_cpus",  "gpu_pci",   "gpu_rail", "gpu_path", "gpu_state",
        "rack",     "switches",  "state",     "reason",   "numa",     "nics",
        "packages", "cpu_model", "gpu_model", "source",   NULL};
    struct json_at name = json_key (at, "name"), rack = json_key (at, "rack"),
                   state = json_key (at, "state");
    const char *s;
    enum status st = json_want_object (at, r->err);

    if (st == ST_OK)
        st = json_want_string (&name, &s, r->err);
    if (st != ST_OK)
        return st;
    if (!topology_name_ok (s))
        return json_fail (&name, r->err,
                          "a name matching [A-Za-z0-9][A-Za-z0-9._-]{0,252}");
    if (!(n->name = strdup (s)))
        return err_nomem (r->err);
    st = read_gpus (r, at, n);
    if (st == ST_OK && json_has (at, "state"))
        st = read_state (r, &state, &n->drained);
    if (st == ST_OK)
        st = read_gpu_states (r, at, n);
    if (st == ST_OK)
        st = read_speed (r, at, n);
    if (st == ST_OK)
        st = read_ints (r, at, "gpu_numa", n, -1, &n->gpu_numa);
    if (st == ST_OK)
        st = read_ints (r, at, "gpu_rail", n, 0, &n->gpu_rail);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_uuid", n, NULL, NULL, &n->gpu_uuid);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_nic", n, NULL, NULL, &n->gpu_nic);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_pci", n, NULL, NULL, &n->gpu_pci);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_cpus", n, topology_cpus_ok,
                         "a list of cores as in \"0-15,64\"", &n->gpu_cpus);
    if (st == ST_OK && json_has (at, "rack")) {
        st = json_want_string (&rack, &s, r->err);
        if (st == ST_OK && !(n->rack = strdup (s)))
            st = err_nomem (r->err);
    }
    if (st == ST_OK)
        st = read_switches (r, at, n);
    if (st == ST_OK)
        json_note_unknown (at, known, r->notes);
    return st;
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

    c->by_name = calloc ((size_t) c->n_nodes, sizeof *c->by_name);
    if (!c->by_name)
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

enum status topology_nodes_read (struct reader *r, const struct json_at *root)
{
    struct topology_cluster *c = r->c;
    struct json_at nodes = json_key (root, "nodes");
    size_t n;
    enum status st = json_want_array (&nodes, &n, r->err);

    if (st != ST_OK)
        return st;
    if (n == 0 || n > NODES_MAX)
        return json_fail (&nodes, r->err, "1 to 1048576 nodes");
    if (!(c->node = calloc (n, sizeof *c->node)))
        return err_nomem (r->err);
    c->n_nodes = (int) n;
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        struct json_at one = json_entry (&nodes, i);

        st = read_node (r, &one, &c->node[i]);
        c->node[i].first_gpu = c->n_gpus;
        c->n_gpus += c->node[i].gpus;
    }
    if (st == ST_OK)
        st = sort_names (r, &nodes);
    if (st == ST_OK)
        st = number_switches (r);
    if (st == ST_OK &&
        !(c->node_of_gpu = calloc ((size_t) c->n_gpus + 1, sizeof *c->node_of_gpu)))
        st = err_nomem (r->err);
    for (int i = 0; i < c->n_nodes && st == ST_OK; i++)
        for (int k = 0; k < c->node[i].gpus; k++)
            c->node_of_gpu[c->node[i].first_gpu + k] = i;
    return st;
}
