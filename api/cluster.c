/* Clusters, and what belongs to no object. */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "topology/survey/survey.h"

const char *linkwise_version (void)
{
    return LINKWISE_VERSION;
}

void linkwise_free (char *text)
{
    free (text);
}

enum linkwise_status api_hand_out (enum status st, const void *object, size_t size,
                                   void *out, struct linkwise_error *err)
{
    void *own = st == ST_OK ? malloc (size) : NULL;

    if (st != ST_OK)
        return (enum linkwise_status) st;
    if (!own)
        return (enum linkwise_status) err_nomem (api_error (err));
    memcpy (own, object, size);
    memcpy (out, &own, sizeof own); /* a pointer of another type than void * */
    return LINKWISE_OK;
}

/* ---- warnings ---- */

struct linkwise_notes *linkwise_notes_create (void)
{
    return calloc (1, sizeof (struct linkwise_notes));
}

void linkwise_notes_destroy (struct linkwise_notes *n)
{
    if (n)
        notes_free (&n->list);
    free (n);
}

int linkwise_notes_count (const struct linkwise_notes *n)
{
    return n ? n->list.n : 0;
}

const char *linkwise_notes_at (const struct linkwise_notes *n, int i)
{
    return n && i >= 0 && i < n->list.n ? n->list.line[i] : NULL;
}

/* ---- clusters ---- */

enum status api_cluster_of (struct topology_cluster *c, const char *file,
                            struct linkwise_cluster **out, struct error *err)
{
    struct linkwise_cluster *x = calloc (1, sizeof *x);

    if (!x || (file && !(x->file = strdup (file)))) {
        topology_cluster_destroy (c);
        free (x);
        return err_nomem (err);
    }
    x->c = c;
    atomic_init (&x->users, 1);
    *out = x;
    return ST_OK;
}

struct linkwise_cluster *api_cluster_use (const struct linkwise_cluster *c)
{
    struct linkwise_cluster *x = (struct linkwise_cluster *) c; /* the count alone */

    atomic_fetch_add (&x->users, 1);
    return x;
}

enum status api_cluster_read (const char *arg, struct linkwise_cluster **out,
                              struct notes *notes, struct error *err)
{
    struct topology_cluster *c;
    bool is_file = strcmp (arg, "-") != 0 && access (arg, F_OK) == 0; /* not one line */

    TRY (topology_cluster_read (arg, &c, notes, err));
    return api_cluster_of (c, is_file ? arg : NULL, out, err);
}

enum linkwise_status linkwise_cluster_read (const char *arg,
                                            struct linkwise_cluster **out,
                                            struct linkwise_notes *notes,
                                            struct linkwise_error *err)
{
    API_NEED (arg);
    API_NEED (out);
    return (enum linkwise_status) api_cluster_read (arg, out, api_notes (notes),
                                                    api_error (err));
}

enum linkwise_status linkwise_cluster_parse (const char *json, const char *folder,
                                             struct linkwise_cluster **out,
                                             struct linkwise_notes *notes,
                                             struct linkwise_error *err)
{
    struct topology_cluster *c = NULL;
    json_t *doc = NULL;
    enum status st;

    API_NEED (json);
    API_NEED (out);
    st = json_parse ("cluster", json, strlen (json), &doc, api_error (err));
    THEN (st, topology_cluster_from_json (doc, "cluster", folder, &c, api_notes (notes),
                                          api_error (err)));
    json_decref (doc);
    THEN (st, api_cluster_of (c, NULL, out, api_error (err)));
    return (enum linkwise_status) st;
}

void linkwise_cluster_destroy (struct linkwise_cluster *c)
{
    if (!c || atomic_fetch_sub (&c->users, 1) > 1)
        return;
    topology_cluster_destroy (c->c);
    free (c->file);
    free (c);
}

enum linkwise_status api_text (json_t *doc, char **json, struct linkwise_error *err)
{
    char *text =
        doc ? json_dumped (doc, JSON_INDENT (1) | JSON_REAL_PRECISION (15)) : NULL;

    json_decref (doc);
    if (!text)
        return (enum linkwise_status) err_nomem (api_error (err));
    *json = text;
    return LINKWISE_OK;
}

enum linkwise_status linkwise_cluster_to_json (const struct linkwise_cluster *cluster,
                                               char **json, struct linkwise_error *err)
{
    API_NEED (cluster);
    API_NEED (json);
    return api_text (topology_cluster_to_json (cluster->c), json, err);
}

int linkwise_cluster_nodes (const struct linkwise_cluster *cluster)
{
    return cluster ? cluster->c->n_nodes : -1;
}

int linkwise_cluster_gpus (const struct linkwise_cluster *cluster)
{
    return cluster ? cluster->c->n_gpus : -1;
}

enum linkwise_status linkwise_cluster_node (const struct linkwise_cluster *cluster, int i,
                                            struct linkwise_node *out,
                                            struct linkwise_error *err)
{
    const struct topology_node *n;

    API_NEED (cluster);
    API_SIZED (out);
    if (i < 0 || i >= cluster->c->n_nodes)
        API_REFUSE ("expected a node from 0 to %d, found %d", cluster->c->n_nodes - 1, i);
    n = &cluster->c->node[i];
    *out = (struct linkwise_node){.size = sizeof *out,
                                  .name = n->name,
                                  .gpu_type = n->type ? n->type->name : NULL,
                                  .gpus = n->gpus,
                                  .first_gpu = n->first_gpu,
                                  .drained = n->drained};
    return LINKWISE_OK;
}

enum linkwise_status linkwise_cluster_link (const struct linkwise_cluster *cluster,
                                            int from, int to, struct linkwise_link *out,
                                            struct linkwise_error *err)
{
    struct topology_link l;
    int most;

    API_NEED (cluster);
    API_SIZED (out);
    most = cluster->c->n_gpus - 1;
    if (from < 0 || from > most || to < 0 || to > most || from == to)
        API_REFUSE ("expected two GPUs from 0 to %d, found %d and %d", most, from, to);
    l = topology_link (cluster->c, from, to);
    *out = (struct linkwise_link){sizeof *out, l.bytes_per_s, l.latency_s, l.measured};
    return LINKWISE_OK;
}

enum linkwise_status linkwise_cluster_links (const struct linkwise_cluster *cluster,
                                             const int *gpu, int n, double *bytes_per_s,
                                             double *latency_s,
                                             struct linkwise_error *err)
{
    API_NEED (cluster);
    API_NEED (gpu);
    for (int i = 0; i < n; i++)
        if (gpu[i] < 0 || gpu[i] >= cluster->c->n_gpus)
            API_REFUSE ("expected GPUs from 0 to %d, found %d", cluster->c->n_gpus - 1,
                        gpu[i]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            size_t at = (size_t) i * (size_t) n + (size_t) j;
            struct topology_link l = {.latency_s = NAN};

            if (gpu[i] != gpu[j])
                l = topology_link (cluster->c, gpu[i], gpu[j]);
            if (bytes_per_s)
                bytes_per_s[at] = l.measured ? l.bytes_per_s : NAN;
            if (latency_s)
                latency_s[at] = l.latency_s;
        }
    return LINKWISE_OK;
}

enum linkwise_status linkwise_cluster_compare (const struct linkwise_cluster *before,
                                               const struct linkwise_cluster *after,
                                               double share,
                                               struct linkwise_difference *out,
                                               struct linkwise_error *err)
{
    struct topology_diff d;
    enum status st;

    API_NEED (before);
    API_NEED (after);
    API_SIZED (out);
    if (!(share > 0))
        API_REFUSE ("share: expected above 0, found %g", share);
    if (!topology_same_cluster (before->c, after->c)) {
        *out = (struct linkwise_difference){.size = sizeof *out};
        return LINKWISE_OK;
    }
    st = topology_diff_collect (before->c, after->c, share, 0, &d, api_error (err));
    if (st != ST_OK)
        return (enum linkwise_status) st;
    *out = (struct linkwise_difference){.size = sizeof *out,
                                        .same_cluster = true,
                                        .compared = d.compared,
                                        .slower = d.slower,
                                        .faster = d.faster,
                                        .appeared = d.appeared,
                                        .vanished = d.vanished,
                                        .median_ratio = d.median_ratio};
    topology_diff_release (&d);
    return LINKWISE_OK;
}

const char *linkwise_gpu_type_at (int i)
{
    int n;
    const struct topology_gpu_type *t = topology_gpu_types_builtin (&n);

    return i >= 0 && i < n ? t[i].name : NULL;
}
