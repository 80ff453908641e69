/* The cluster in memory: look-ups, prices of links, and release. */
#include "topology/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool topology_name_ok (const char *name)
{
    size_t n = strlen (name);

    if (n < 1 || n > TOPOLOGY_NAME_MAX || !isalnum ((unsigned char) name[0]))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char) name[i];

        if (ch >= 128 || !(isalnum (ch) || strchr ("._-", ch)))
            return false;
    }
    return true;
}

static int by_key (const void *key, const void *entry)
{
    return strcmp (key, (*(const struct topology_node *const *) entry)->name);
}

int topology_node_find (const struct topology_cluster *c, const char *name)
{
    const struct topology_node **found =
        bsearch (name, c->by_name, (size_t) c->n_nodes, sizeof *c->by_name, by_key);

    return found ? (int) (*found - c->node) : -1;
}

static struct topology_link link_of (const struct topology_links *l, int i, int j,
                                     double lowest)
{
    double bw = topology_matrix_at (&l->bytes_per_s, i, j);
    double latency_s = topology_matrix_at (&l->latency_s, i, j);

    if (isnan (latency_s))
        latency_s = 0.0;
    if (isnan (bw))
        return (struct topology_link){lowest, latency_s, false};
    return (struct topology_link){bw, latency_s, true};
}

struct topology_link topology_node_link (const struct topology_cluster *c, int a, int b)
{
    return link_of (&c->inter, a, b, c->lowest_inter_bytes_per_s);
}

struct topology_link topology_link (const struct topology_cluster *c, int src, int dst)
{
    int a = c->node_of_gpu[src], b = c->node_of_gpu[dst];
    double lowest = a == b ? c->lowest_intra_bytes_per_s : c->lowest_inter_bytes_per_s;

    if (c->has_gpu_links)
        return link_of (&c->gpu_links, src, dst, lowest);
    if (a != b)
        return topology_node_link (c, a, b);

    const struct topology_node *n = &c->node[a];

    return link_of (n->intra, src - n->first_gpu, dst - n->first_gpu, lowest);
}

static void links_release (struct topology_links *l)
{
    struct topology_matrix *m[] = {&l->bytes_per_s, &l->latency_s};

    for (int i = 0; i < 2; i++) {
        npy_close (&m[i]->npy);
        free (m[i]->own);
    }
}

static void node_release (struct topology_node *n)
{
    free (n->name);
    free (n->speed);
    free (n->gpu_numa);
    free (n->rack);
    for (int k = 0; n->gpu_uuid && k < n->gpus; k++)
        free (n->gpu_uuid[k]);
    for (int k = 0; n->gpu_nic && k < n->gpus; k++)
        free (n->gpu_nic[k]);
    free (n->gpu_uuid);
    free (n->gpu_nic);
}

void topology_cluster_destroy (struct topology_cluster *c)
{
    if (!c)
        return;
    for (int i = 0; c->node && i < c->n_nodes; i++)
        node_release (&c->node[i]);
    for (int i = 0; c->intra && i < c->n_intra; i++)
        links_release (&c->intra[i]);
    links_release (&c->inter);
    links_release (&c->gpu_links);
    free (c->node);
    free (c->node_of_gpu);
    free (c->by_name);
    free (c->type);
    free (c->intra);
    free (c->name);
    free (c->folder);
    json_decref (c->doc);
    free (c);
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

enum status topology_inter_stats (const struct topology_cluster *c,
                                  struct topology_link_stats *out, struct error *err)
{
    const struct topology_links *l = c->has_gpu_links ? &c->gpu_links : &c->inter;
    int n = c->has_gpu_links ? c->n_gpus : c->n_nodes;
    struct topology_link_stats s = {0};

    if (c->n_nodes == 1) {
        *out = s;
        return ST_OK;
    }
    if (l->bytes_per_s.n == 0) {
        double bw = l->bytes_per_s.number;

        s.pairs = (long) n * (n - 1);
        s.min_bytes_per_s = s.median_bytes_per_s = s.max_bytes_per_s =
            isnan (bw) ? 0 : bw;
        *out = s;
        return ST_OK;
    }

    double *v = malloc ((size_t) n * (size_t) n * sizeof *v);
    size_t k = 0;

    if (!v)
        return err_nomem (err);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            bool inside = c->has_gpu_links && c->node_of_gpu[i] == c->node_of_gpu[j];

            if (i == j || inside)
                continue;

            double bw = topology_matrix_at (&l->bytes_per_s, i, j);

            s.pairs++;
            if (isnan (bw))
                s.unmeasured++;
            else
                v[k++] = bw;
        }
    qsort (v, k, sizeof *v, by_value);
    if (k > 0) {
        s.min_bytes_per_s = v[0];
        s.median_bytes_per_s = k % 2 ? v[k / 2] : 0.5 * (v[k / 2 - 1] + v[k / 2]);
        s.max_bytes_per_s = v[k - 1];
    }
    free (v);
    *out = s;
    return ST_OK;
}
