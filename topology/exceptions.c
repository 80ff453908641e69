/* links.exceptions: single links that differ from what the matrices and rules say, or that
 * somebody drained.  They are applied to the cluster in memory, the later over the
 * earlier: between nodes in the matrices themselves, between GPUs of one node in a matrix
 * of its own, between single GPUs of different nodes in a map beside the matrices. */
#include "topology/topology_private.h"

#include <string.h>

#include "base/units.h"

#define LATENCY_US_MAX 1e9

/* What an exception says about its link. */
struct change {
    bool has_bandwidth, has_latency;
    double bytes_per_s; /* NaN: unmeasured */
    double latency_s;
};

/* One end: a node, or one GPU of it. */
struct end {
    int node;
    int first, n; /* cluster-wide GPUs */
    bool single;  /* names a GPU */
    bool drained; /* a GPU that is not in the cluster any more */
};

static enum status read_end (struct reader *r, const struct json_at *at, struct end *e)
{
    const struct topology_cluster *c = r->c;
    const char *s, *colon;
    char name[TOPOLOGY_NAME_MAX + 1];

    TRY (json_want_string (at, &s, r->err));
    colon = strchr (s, ':');

    size_t len = colon ? (size_t) (colon - s) : strlen (s);

    memcpy (name, s, len < sizeof name ? len : 0);
    name[len < sizeof name ? len : 0] = '\0';
    *e = (struct end){.node = topology_node_find (c, name), .single = colon != NULL};
    if (e->node < 0)
        return json_fail_text (at, r->err, "expected NODE or NODE:GPU of this file");

    const struct topology_node *n = &c->node[e->node];

    e->first = n->first_gpu;
    e->n = n->gpus;
    if (!colon)
        return ST_OK;

    long k;

    if (!text_whole (colon + 1, 0, n->gpus_listed - 1, &k))
        return json_fail_text (at, r->err, "node %s has GPUs 0 to %d", n->name,
                               n->gpus_listed - 1);
    e->first = topology_gpu_find (c, e->node, (int) k);
    e->n = 1;
    e->drained = e->first < 0;
    return ST_OK;
}

static enum status read_change (struct reader *r, const struct json_at *at,
                                struct change *x)
{
    struct json_at bw = json_key (at, "bandwidth_gb_per_s"),
                   latency = json_key (at, "latency_us");
    double gb_per_s = NAN, us = NAN;

    if (!bw.v && !latency.v)
        return json_fail_text (at, r->err,
                               "expected bandwidth_gb_per_s, latency_us or both");
    if (bw.v && !json_is_null (bw.v))
        TRY (json_want_number (&bw, GB_PER_S_LEAST, true, GB_PER_S_MAX, &gb_per_s,
                               r->err));
    if (latency.v && !json_is_null (latency.v))
        TRY (json_want_number (&latency, 0, true, LATENCY_US_MAX, &us, r->err));
    *x = (struct change){bw.v != NULL, latency.v != NULL, gb_per_s * UNITS_GB,
                         us * UNITS_US};
    return ST_OK;
}

/* Links of one node, which may share them with others: give it its own. */
static bool own_intra (struct topology_node *n)
{
    int all[TOPOLOGY_NODE_GPUS_MAX];

    for (int k = 0; k < n->gpus; k++)
        all[k] = k;
    return n->own_intra || topology_own_intra (n, all);
}

static bool set_links (struct topology_links *l, int n, int i, int j,
                       const struct change *x)
{
    return (!x->has_bandwidth || topology_links_set (l, n, i, j, x->bytes_per_s)) &&
           (!x->has_latency ||
            topology_matrix_set (&l->latency_s, n, i, j, x->latency_s));
}

/* Between single GPUs; `only_known` changes those that are in the map already. */
static bool set_gpu_pairs (struct topology_cluster *c, const struct end *from,
                           const struct end *to, const struct change *x, bool only_known)
{
    double old;

    for (int i = from->first; i < from->first + from->n; i++)
        for (int j = to->first; j < to->first + to->n; j++) {
            if (x->has_bandwidth &&
                (!only_known || pairs_get (c->except_bytes_per_s, i, j, &old)) &&
                !pairs_set (&c->except_bytes_per_s, i, j, x->bytes_per_s))
                return false;
            if (x->has_latency &&
                (!only_known || pairs_get (c->except_latency_s, i, j, &old)) &&
                !pairs_set (&c->except_latency_s, i, j, x->latency_s))
                return false;
        }
    return true;
}

static bool apply (struct topology_cluster *c, const struct end *from,
                   const struct end *to, const struct change *x)
{
    struct topology_node *n = &c->node[from->node];

    if (c->has_gpu_matrix)
        return set_gpu_pairs (c, from, to, x, false);
    if (from->node == to->node)
        return own_intra (n) &&
               set_links (n->own_intra, n->gpus, from->first - n->first_gpu,
                          to->first - n->first_gpu, x);
    if (from->single || to->single) {
        c->has_gpu_links = true;
        return set_gpu_pairs (c, from, to, x, false);
    }
    if (!set_links (&c->inter, c->n_nodes, from->node, to->node, x))
        return false;
    for (int k = 0; k < c->n_rails; k++)
        if (!set_links (&c->rail[k], c->n_nodes, from->node, to->node, x))
            return false;
    return set_gpu_pairs (c, from, to, x, true);
}

static enum status read_exception (struct reader *r, const struct json_at *at)
{
    struct topology_cluster *c = r->c;
    struct json_at from_at = json_key (at, "from"), to_at = json_key (at, "to");
    struct end from, to;
    struct change x;

    TRY (json_want_object (at, r->err));
    TRY (read_end (r, &from_at, &from));
    TRY (read_end (r, &to_at, &to));
    TRY (read_change (r, at, &x));
    json_note_unknown (at, "from to bandwidth_gb_per_s latency_us state source",
                       r->notes);
    if (from.drained || to.drained)
        return ST_OK;
    if (from.node == to.node && (!from.single || !to.single || from.first == to.first))
        return json_fail_text (at, r->err, "expected two GPUs or two nodes");
    if (from.node == to.node ? !c->has_gpu_matrix && !c->node[from.node].intra
                             : !c->has_gpu_matrix && !c->has_inter)
        return json_fail_text (at, r->err,
                               "an exception for links that the file does "
                               "not have");
    return apply (c, &from, &to, &x) ? ST_OK : err_nomem (r->err);
}

enum status topology_exceptions_read (struct reader *r, const struct json_at *links)
{
    struct json_at at = json_key (links, "exceptions");

    if (!json_has (links, "exceptions"))
        return ST_OK;
    TRY (json_want_array (&at, NULL, r->err));
    json_each (&at, one)
        TRY (read_exception (r, &one));
    return ST_OK;
}
