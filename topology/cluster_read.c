/* The cluster file's reader: every check of the contract, once, at the boundary. */
#include "topology/topology_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"

#define NODES_MAX 1048576

/* ---- nodes ---- */

/* An optional list with one text per GPU. */
static enum status read_texts (struct reader *r, const struct json_at *node,
                               const char *key, int gpus, char ***out)
{
    struct json_at at = json_key (node, key);
    char expected[64];

    if (!json_has (node, key))
        return ST_OK;
    snprintf (expected, sizeof expected, "a list of %d texts (one per GPU)", gpus);
    if (!json_is_array (at.v) || json_array_size (at.v) != (size_t) gpus)
        return json_fail (&at, r->err, expected);
    if (!(*out = calloc ((size_t) gpus, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; k < gpus; k++) {
        struct json_at one = json_entry (&at, (size_t) k);
        const char *s;
        enum status st = json_want_string (&one, &s, r->err);

        if (st != ST_OK)
            return st;
        if (!((*out)[k] = strdup (s)))
            return err_nomem (r->err);
    }
    return ST_OK;
}

static enum status read_numbers (struct reader *r, const struct json_at *node,
                                 struct topology_node *n)
{
    struct json_at speed = json_key (node, "speed"), numa = json_key (node, "gpu_numa");
    char expected[64];
    enum status st = ST_OK;

    snprintf (expected, sizeof expected, "a list of %d numbers (one per GPU)", n->gpus);
    if (json_has (node, "speed")) {
        if (!json_is_array (speed.v) || json_array_size (speed.v) != (size_t) n->gpus)
            return json_fail (&speed, r->err, expected);
        if (!(n->speed = calloc ((size_t) n->gpus, sizeof *n->speed)))
            return err_nomem (r->err);
        for (int k = 0; k < n->gpus && st == ST_OK; k++) {
            struct json_at one = json_entry (&speed, (size_t) k);

            st = json_want_number (&one, 0, false, 1e3, &n->speed[k], r->err);
        }
    }
    if (st == ST_OK && json_has (node, "gpu_numa")) {
        if (!json_is_array (numa.v) || json_array_size (numa.v) != (size_t) n->gpus)
            return json_fail (&numa, r->err, expected);
        if (!(n->gpu_numa = calloc ((size_t) n->gpus, sizeof *n->gpu_numa)))
            return err_nomem (r->err);
        for (int k = 0; k < n->gpus && st == ST_OK; k++) {
            struct json_at one = json_entry (&numa, (size_t) k);
            long long x = 0;

            st = json_want_int (&one, -1, 65535, &x, r->err);
            n->gpu_numa[k] = (int) x;
        }
    }
    return st;
}

static enum status read_node (struct reader *r, const struct json_at *at,
                              struct topology_node *n)
{
    static const char *const known[] = {"name",     "gpus",     "gpu_type", "speed",
                                        "gpu_uuid", "gpu_numa", "gpu_nic",  "rack",
                                        "state",    NULL};
    struct json_at name = json_key (at, "name"), gpus = json_key (at, "gpus"),
                   type = json_key (at, "gpu_type"), rack = json_key (at, "rack"),
                   state = json_key (at, "state");
    const char *s;
    long long k;
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
    st = json_want_int (&gpus, 1, TOPOLOGY_NODE_GPUS_MAX, &k, r->err);
    if (st == ST_OK) {
        n->gpus = (int) k;
        st = topology_type_find (r, &type, &n->type);
    }
    if (st == ST_OK)
        st = read_numbers (r, at, n);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_uuid", n->gpus, &n->gpu_uuid);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_nic", n->gpus, &n->gpu_nic);
    if (st == ST_OK && json_has (at, "rack")) {
        st = json_want_string (&rack, &s, r->err);
        if (st == ST_OK && !(n->rack = strdup (s)))
            st = err_nomem (r->err);
    }
    if (st == ST_OK && json_has (at, "state")) {
        st = json_want_string (&state, &s, r->err);
        if (st == ST_OK && strcmp (s, "ok") != 0 && strcmp (s, "drained") != 0)
            st = json_fail (&state, r->err, "\"ok\" or \"drained\"");
        n->drained = st == ST_OK && strcmp (s, "drained") == 0;
    }
    if (st == ST_OK)
        json_note_unknown (at, known, r->notes);
    return st;
}

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

static enum status read_nodes (struct reader *r, const struct json_at *root)
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
    if (st == ST_OK && !(c->node_of_gpu = calloc ((size_t) c->n_gpus, sizeof (int))))
        st = err_nomem (r->err);
    for (int i = 0; i < c->n_nodes && st == ST_OK; i++)
        for (int k = 0; k < c->node[i].gpus; k++)
            c->node_of_gpu[c->node[i].first_gpu + k] = i;
    return st;
}

/* ---- the document ---- */

static enum status read_document (struct reader *r, const struct json_at *root,
                                  const char *name)
{
    static const char *const known[] = {"version", "name",      "nodes",    "links",
                                        "source",  "gpu_types", "measured", NULL};
    struct json_at version = json_key (root, "version"), title = json_key (root, "name");
    const char *s = name;
    long long v;
    enum status st = json_want_object (root, r->err);

    if (st == ST_OK)
        st = json_want_int (&version, 1, 1, &v, r->err);
    if (st == ST_OK && json_has (root, "name"))
        st = json_want_string (&title, &s, r->err);
    if (st == ST_OK && !(r->c->name = strdup (s)))
        st = err_nomem (r->err);
    if (st == ST_OK)
        st = topology_types_read (r, root);
    if (st == ST_OK)
        st = read_nodes (r, root);
    if (st == ST_OK)
        st = topology_links_read (r, root);
    if (st == ST_OK)
        json_note_unknown (root, known, r->notes);
    return st;
}

enum status topology_cluster_from_json (json_t *doc, const char *name, const char *folder,
                                        struct topology_cluster **out,
                                        struct notes *notes, struct error *err)
{
    struct reader r = {.c = calloc (1, sizeof *r.c), .notes = notes, .err = err};
    struct json_at root = json_root (doc, name);

    if (!r.c || (folder && !(r.c->folder = strdup (folder)))) {
        topology_cluster_destroy (r.c);
        return err_nomem (err);
    }
    r.c->doc = json_incref (doc);

    enum status st = read_document (&r, &root, name);

    if (st != ST_OK) {
        topology_cluster_destroy (r.c);
        return st;
    }
    topology_find_lowest (r.c);
    *out = r.c;
    return ST_OK;
}

enum status topology_cluster_read (const char *arg, struct topology_cluster **out,
                                   struct notes *notes, struct error *err)
{
    struct stat sb;
    json_t *doc = NULL;
    bool line = strchr (arg, ' ') && stat (arg, &sb) != 0;
    const char *slash = strrchr (arg, '/');
    char *folder = slash && !line ? strndup (arg, (size_t) (slash - arg) + 1) : NULL;
    enum status st =
        line ? topology_line_to_json (arg, &doc, err) : json_read (arg, &doc, err);

    if (st == ST_OK)
        st = topology_cluster_from_json (doc,
                                         strcmp (arg, "-") == 0 ? "standard input" : arg,
                                         folder, out, notes, err);
    json_decref (doc);
    free (folder);
    return st;
}

/* ---- writing ---- */

static json_t *matrix_json (const struct topology_matrix *m, double unit)
{
    json_t *rows = json_array ();

    for (int i = 0; i < m->n; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < m->n; j++)
            json_array_append_new (
                row, i == j ? json_null ()
                            : json_number_or_null (topology_matrix_at (m, i, j) / unit));
        json_array_append_new (rows, row);
    }
    return rows;
}

/* Write a matrix that came from a .npy file into its place in the document. */
static void inline_npy (json_t *links, const struct topology_links *l)
{
    if (json_is_object (json_object_get (links, "bandwidth_gb_per_s")))
        json_object_set_new (links, "bandwidth_gb_per_s",
                             matrix_json (&l->bytes_per_s, UNITS_GB));
    if (json_is_object (json_object_get (links, "latency_us")))
        json_object_set_new (links, "latency_us", matrix_json (&l->latency_s, UNITS_US));
}

json_t *topology_cluster_to_json (const struct topology_cluster *c)
{
    json_t *doc = json_deep_copy (c->doc), *links = json_object_get (doc, "links"),
           *intra = json_object_get (links, "intra");

    if (!doc)
        return NULL;
    if (c->has_gpu_links)
        inline_npy (json_object_get (links, "gpu"), &c->gpu_links);
    if (c->has_inter)
        inline_npy (json_object_get (links, "inter"), &c->inter);
    for (int k = 0; k < c->n_intra; k++)
        inline_npy (json_is_array (intra) ? json_array_get (intra, (size_t) k) : intra,
                    &c->intra[k]);
    return doc;
}
