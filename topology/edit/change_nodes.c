/* More nodes like one that a cluster has: `+N nodes like NODE`.  They have its links to all others;
 * among themselves and to it, what it typically has. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/units.h"
#include "topology/edit/change_private.h"

#define ENDS_MOST 8192 /* of a matrix that is written anew */

/* The ends of a matrix of the larger cluster: nodes, or all GPUs that are listed. */
struct ends {
    int *home;  /* [n] the end of the smaller one that it is like */
    int *owner; /* [n] its node in the larger one */
    int n, old;
};

/* What the ends of one node typically have to others. */
static double typical (const struct topology_matrix *m, const struct ends *e, int node)
{
    double *v = calloc ((size_t) e->old * (size_t) e->old + 1, sizeof *v), median;
    int n = 0;

    for (int i = 0; v && i < e->old; i++)
        for (int j = 0; j < e->old && e->owner[i] == node; j++)
            if (e->owner[j] != node && !isnan (topology_matrix_at (m, i, j)))
                v[n++] = topology_matrix_at (m, i, j);
    median = v ? stats_median (v, n) : NAN;
    free (v);
    return median;
}

/* Rows of the larger matrix instead of a smaller one or a rule; a number holds for all. */
static void widen (json_t *object, const char *key, const struct topology_matrix *m,
                   const struct ends *e, int like, double unit)
{
    json_t *said = json_object_get (object, key), *rows;
    double among;

    if (!said || json_is_number (said))
        return;
    rows = json_array ();
    among = typical (m, e, like);
    for (int i = 0; i < e->n; i++)
        for (int j = 0; j < e->n; j++) {
            bool kin = e->owner[e->home[i]] == e->owner[e->home[j]] &&
                       e->owner[i] != e->owner[j];
            double v = i == j ? NAN
                       : kin  ? among
                              : topology_matrix_at (m, e->home[i], e->home[j]);

            json_array_append_new (json_row_in (rows, i), json_number_or_null (v / unit));
        }
    json_object_set_new (object, key, rows);
}

static void widen_links (json_t *object, const struct topology_links *l,
                         const struct ends *e, int like)
{
    widen (object, "bandwidth_gb_per_s", &l->bytes_per_s, e, like, UNITS_GB);
    widen (object, "latency_us", &l->latency_s, e, like, UNITS_US);
    widen (object, "estimate_error", &l->estimate_error, e, like, 1.0);
}

/* @param[in] gpus  all GPUs are ends, not nodes */
static bool ends_init (struct ends *e, const struct topology_cluster *c, int like,
                       int more, bool gpus)
{
    int n = c->n_nodes, start = 0;
    size_t most = 0;

    for (int i = 0; i < n + more; i++)
        most += (size_t) (gpus ? c->node[i < n ? i : like].gpus_listed : 1);
    *e = (struct ends){.home = calloc (2 * most, sizeof (int))};
    if (!e->home)
        return false;
    e->owner = e->home + most;
    for (int i = 0; i < n + more; i++) {
        if (i == like)
            start = e->n;
        for (int k = 0; k < (gpus ? c->node[i < n ? i : like].gpus_listed : 1); k++) {
            e->home[e->n] = i < n ? e->n : start + k;
            e->owner[e->n++] = i;
        }
        if (i < n)
            e->old = e->n;
    }
    return true;
}

/* Is a rate, a latency or a total of the network given for each two ends? */
static bool has_matrix (const struct topology_cluster *c)
{
    bool any = c->has_gpu_matrix || c->pair_bytes_per_s.n > 0 ||
               c->inter.bytes_per_s.n > 0 || c->inter.latency_s.n > 0;

    for (int k = 0; k < c->n_rails; k++)
        any = any || c->rail[k].bytes_per_s.n > 0 || c->rail[k].latency_s.n > 0;
    return any;
}

static enum status more_links (const struct topology_cluster *c, json_t *net, int like,
                               int more, struct error *err)
{
    json_t *rail;
    struct ends of_nodes, e;
    size_t k;

    if (!ends_init (&of_nodes, c, like, more, false))
        return err_nomem (err);
    if (!ends_init (&e, c, like, more, c->has_gpu_matrix)) {
        free (of_nodes.home);
        return err_nomem (err);
    }
    if (e.n > ENDS_MOST && has_matrix (c)) {
        int n = e.n;

        FREE_ALL (of_nodes.home, e.home);
        return err_set (
            err, ST_INVALID,
            "links between so many %s cannot be a matrix: expected %d or fewer, found "
            "%d; give the cluster one number for them",
            c->has_gpu_matrix ? "GPUs" : "nodes", ENDS_MOST, n);
    }
    widen_links (net, c->has_gpu_matrix ? &c->gpu_links : &c->inter, &e, like);
    widen (net, "node_pair_gb_per_s", &c->pair_bytes_per_s, &of_nodes, like, UNITS_GB);
    json_array_foreach (json_object_get (net, "rails"), k, rail)
        widen_links (rail, &c->rail[k], &of_nodes, like);
    FREE_ALL (of_nodes.home, e.home);
    return ST_OK;
}

/* A node's document again, without what is one machine's own. */
static json_t *twin_of (const struct topology_cluster *c, const json_t *node, int *number)
{
    static const char *const own[] = {"gpu_uuid", "state", "gpu_state", "reason"};
    json_t *twin = json_deep_copy (node);
    char name[32];

    do
        snprintf (name, sizeof name, "new%d", ++*number);
    while (topology_node_find (c, name) >= 0);
    json_object_set_new (twin, "name", json_string (name));
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        json_object_del (twin, own[k]);
    return twin;
}

enum status change_more_nodes (json_t *doc, const struct topology_cluster *c, int like,
                               int n, struct error *err)
{
    json_t *nodes = json_object_get (doc, "nodes"), *net = change_net_of (doc);
    json_t *list[] = {json_object_get (json_object_get (doc, "links"), "intra"),
                      json_object_get (net, "node_gb_per_s")};
    int number = 0;

    TRY (more_links (c, net, like, n, err));
    for (int k = 0; k < n; k++) {
        json_array_append_new (
            nodes, twin_of (c, json_array_get (nodes, (size_t) like), &number));
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)
            if (json_is_array (list[i]))
                json_array_append (list[i], json_array_get (list[i], (size_t) like));
    }
    return ST_OK;
}
