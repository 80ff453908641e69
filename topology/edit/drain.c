/* Taking nodes, GPUs and links out of use: a node and a GPU by their state, a link by an
 * exception that leaves its measured rate where it stands, so that all can come back. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/topology.h"

/* The node that the first len bytes name.
 * @param[out] index  its place in the list, or NULL */
static json_t *find_node (const json_t *doc, const char *name, size_t len, size_t *index)
{
    json_t *node;
    size_t i;

    json_array_foreach (json_object_get (doc, "nodes"), i, node)
    {
        const char *own = json_member_text (node, "name");

        if (strlen (own) != len || strncmp (own, name, len) != 0)
            continue;
        if (index)
            *index = i;
        return node;
    }
    return NULL;
}

/* ---- nodes and GPUs ---- */

static void set_state (json_t *node, bool back, const char *reason)
{
    if (back) {
        json_object_del (node, "state");
        json_object_del (node, "reason");
    } else {
        json_object_set_new (node, "state", json_string ("drained"));
        if (reason)
            json_object_set_new (node, "reason", json_string (reason));
    }
}

/* NODE:GPU -> the node and the GPU's number. */
static enum status find_gpu (const json_t *doc, const char *what, json_t **node,
                             size_t *gpu, struct error *err)
{
    const char *colon = strrchr (what, ':');
    int len = (int) (colon - what);
    long last, k;

    *node = find_node (doc, what, (size_t) len, NULL);
    if (!*node)
        return err_set (err, ST_USAGE, "%s: the cluster has no node \"%.*s\"", what, len,
                        what);
    last = (long) json_member_int (*node, "gpus") - 1;
    if (!text_whole (colon + 1, 0, last, &k))
        return err_set (err, ST_USAGE, "%s: node %.*s has GPUs 0 to %ld", what, len, what,
                        last);
    *gpu = (size_t) k;
    return ST_OK;
}

static enum status drain_gpu (json_t *doc, const char *what, bool back, struct error *err)
{
    json_t *node, *states;
    size_t gpu, gpus;
    bool all_ok = true;

    TRY (find_gpu (doc, what, &node, &gpu, err));
    gpus = (size_t) json_member_int (node, "gpus");
    states = json_object_get (node, "gpu_state");
    if (!states) {
        states = json_array ();
        for (size_t k = 0; k < gpus; k++)
            json_array_append_new (states, json_string ("ok"));
        json_object_set_new (node, "gpu_state", states);
    }
    json_array_set_new (states, gpu, json_string (back ? "ok" : "drained"));
    for (size_t k = 0; k < gpus; k++)
        all_ok =
            all_ok && strcmp (json_string_value (json_array_get (states, k)), "ok") == 0;
    if (all_ok)
        json_object_del (node, "gpu_state");
    return ST_OK;
}

static enum status drain_nodes (json_t *doc, const char *what, bool back,
                                const char *reason, struct error *err)
{
    json_t *index, *node;
    char **names;
    enum status st = ST_OK;
    size_t k;
    int n;

    TRY (topology_hostlist_expand (what, &names, &n, err));
    index = json_object ();
    json_array_foreach (json_object_get (doc, "nodes"), k, node)
        json_object_set (index, json_member_text (node, "name"), node);
    for (int i = 0; i < n && st == ST_OK; i++)
        if (!json_object_get (index, names[i]))
            st = err_set (err, ST_USAGE, "%s: the cluster has no node \"%s\"", what,
                          names[i]);
    for (int i = 0; i < n && st == ST_OK; i++)
        set_state (json_object_get (index, names[i]), back, reason);
    json_decref (index);
    topology_hostlist_free (names);
    return st;
}

/* ---- links ---- */

/* A NODE or NODE:GPU of the cluster. */
static enum status check_end (const json_t *doc, const char *end, struct error *err)
{
    json_t *node;
    size_t gpu;

    if (strchr (end, ':'))
        return find_gpu (doc, end, &node, &gpu, err);
    return find_node (doc, end, strlen (end), NULL)
               ? ST_OK
               : err_set (err, ST_USAGE, "the cluster has no node \"%s\"", end);
}

static bool is_drained (const json_t *one, const char *from, const char *to)
{
    const char *a = json_member_text (one, "from"), *b = json_member_text (one, "to");

    return a && b && json_object_get (one, "state") && strcmp (a, from) == 0 &&
           strcmp (b, to) == 0;
}

static enum status drain_one_way (json_t *doc, const char *from, const char *to,
                                  bool back, struct error *err)
{
    json_t *links = json_object_get (doc, "links"),
           *list = json_object_get (links, "exceptions");
    bool found = false;

    for (size_t k = json_array_size (list); k-- > 0;)
        if (is_drained (json_array_get (list, k), from, to)) {
            json_array_remove (list, k);
            found = true;
        }
    if (back) {
        if (json_is_array (list) && json_array_size (list) == 0)
            json_object_del (links, "exceptions");
        return found
                   ? ST_OK
                   : err_set (err, ST_USAGE, "the link %s->%s is not drained", from, to);
    }
    json_array_append_new (json_array_in (links, "exceptions"),
                           json_pack ("{s:s, s:s, s:n, s:s}", "from", from, "to", to,
                                      "bandwidth_gb_per_s", "state", "drained"));
    return ST_OK;
}

/* `intra` of the node that NODE:GPU names. */
static const json_t *intra_of (const json_t *doc, const char *end)
{
    const json_t *intra = json_object_get (json_object_get (doc, "links"), "intra");
    size_t i;

    return json_is_array (intra) && find_node (doc, end, strcspn (end, ":"), &i)
               ? json_array_get (intra, i)
               : intra;
}

/* The links that an exception can be from. */
static enum status check_links (const json_t *doc, const char *from, const char *to,
                                struct error *err)
{
    const json_t *links = json_object_get (doc, "links");
    size_t a = strcspn (from, ":"), b = strcspn (to, ":");
    bool inside = a == b && strncmp (from, to, a) == 0;

    if (inside && (!from[a] || !to[b] || strcmp (from, to) == 0))
        return err_set (err, ST_USAGE, "%s, %s: a link joins two nodes or two GPUs", from,
                        to);
    if (!json_is_object (json_object_get (links, "gpu")) &&
        !json_is_object (inside ? intra_of (doc, from)
                                : json_object_get (links, "inter")))
        return err_set (err, ST_USAGE, "%s, %s: the cluster has no links %s", from, to,
                        inside ? "inside this node" : "between nodes");
    return ST_OK;
}

static enum status drain_link (json_t *doc, const char *what, const char *arrow,
                               size_t len, bool both, bool back, struct error *err)
{
    char *from = strndup (what, (size_t) (arrow - what)), *to = strdup (arrow + len);
    enum status st = from && to ? check_end (doc, from, err) : err_nomem (err);

    THEN (st, check_end (doc, to, err));
    THEN (st, check_links (doc, from, to, err));
    THEN (st, drain_one_way (doc, from, to, back, err));
    if (st == ST_OK && both)
        st = drain_one_way (doc, to, from, back, err);
    free (from);
    free (to);
    return st;
}

enum status topology_drain (json_t *doc, const char *what, bool back, const char *reason,
                            struct error *err)
{
    static const struct {
        const char *arrow;
        bool both;
    } arrows[] = {{"<->", true}, {"->", false}, {"--", true}};

    if (find_node (doc, what, strlen (what), NULL))
        return drain_nodes (doc, what, back, reason, err);
    for (size_t k = 0; k < sizeof arrows / sizeof *arrows; k++) {
        const char *at = strstr (what, arrows[k].arrow);

        if (at && at > what)
            return drain_link (doc, what, at, strlen (arrows[k].arrow), arrows[k].both,
                               back, err);
    }
    return strchr (what, ':') ? drain_gpu (doc, what, back, err)
                              : drain_nodes (doc, what, back, reason, err);
}
