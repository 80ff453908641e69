/* The cluster in memory: look-ups, prices of links, and release. */
#include "topology/topology_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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

const char *topology_place_text (const char *node, int gpu, char buf[TOPOLOGY_PLACE_TEXT])
{
    snprintf (buf, TOPOLOGY_PLACE_TEXT, gpu < 0 ? "%s" : "%s:%d", node, gpu);
    return buf;
}

static int by_key (const void *key, const void *entry)
{
    return strcmp (key, (*(const struct topology_node *const *) entry)->name);
}

int topology_nodes_under (const struct topology_cluster *c, const int *gpu, int n)
{
    bool *seen = calloc ((size_t) c->n_nodes, sizeof *seen);
    int nodes = seen ? 0 : c->n_nodes;

    for (int k = 0; seen && k < n; k++) {
        nodes += !seen[c->node_of_gpu[gpu[k]]];
        seen[c->node_of_gpu[gpu[k]]] = true;
    }
    free (seen);
    return nodes;
}

int topology_node_find (const struct topology_cluster *c, const char *name)
{
    const struct topology_node **found =
        bsearch (name, c->by_name, (size_t) c->n_nodes, sizeof *c->by_name, by_key);

    return found ? (int) (*found - c->node) : -1;
}

size_t topology_host_length (const char *host)
{
    return host[strspn (host, "0123456789.")] ? strcspn (host, ".") : strlen (host);
}

int topology_node_of_host (const struct topology_cluster *c, const char *host)
{
    size_t len = topology_host_length (host);
    const struct topology_node *alike = NULL;
    int node = topology_node_find (c, host), low = 0, high = c->n_nodes, n = 0;

    if (node >= 0 || len == 0 || len > TOPOLOGY_NAME_MAX)
        return node;
    /* The names that begin with this label and a dot lie together, first of all the
     * entries from low on; the label alone lies before them. */
    while (low < high) {
        int middle = low + (high - low) / 2;
        const char *name = c->by_name[middle]->name;
        int order = strncmp (name, host, len);

        if (order < 0 || (order == 0 && (unsigned char) name[len] < '.'))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->n_nodes && strncmp (c->by_name[low]->name, host, len) == 0 &&
           c->by_name[low]->name[len] == '.';
         low++, n++)
        alike = c->by_name[low];
    if (host[len] == '\0')
        return n == 1 ? (int) (alike - c->node) : n > 1 ? -2 : -1;

    char label[TOPOLOGY_NAME_MAX + 1];

    memcpy (label, host, len);
    label[len] = '\0';
    node = topology_node_find (c, label);
    return node >= 0 && n > 0 ? -2 : node;
}

int topology_gpu_find (const struct topology_cluster *c, int node, int index)
{
    const struct topology_node *n = &c->node[node];

    if (!n->gpu_index)
        return index >= 0 && index < n->gpus ? n->first_gpu + index : -1;
    for (int k = 0; k < n->gpus; k++)
        if (n->gpu_index[k] == index)
            return n->first_gpu + k;
    return -1;
}

/* ---- links ---- */

int topology_rail_of (const struct topology_cluster *c, int gpu)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[gpu]];

    return n->gpu_rail ? n->gpu_rail[gpu - n->first_gpu]
                       : topology_gpu_index (c, gpu) % c->n_rails;
}

/* The links that two GPUs see, but for exceptions between single GPUs, and their places in
 * these; NULL: none. */
static const struct topology_links *links_of (const struct topology_cluster *c, int src,
                                              int dst, int *i, int *j)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[src]];

    if (c->has_gpu_matrix) {
        *i = c->gpu_row ? c->gpu_row[src] : src;
        *j = c->gpu_row ? c->gpu_row[dst] : dst;
        return &c->gpu_links;
    }
    *i = c->node_of_gpu[src];
    *j = c->node_of_gpu[dst];
    if (*i == *j) {
        *i = src - n->first_gpu;
        *j = dst - n->first_gpu;
        return n->intra;
    }
    if (c->n_rails > 0 && topology_rail_of (c, src) == topology_rail_of (c, dst))
        return &c->rail[topology_rail_of (c, src)];
    return &c->inter;
}

/* @param lowest  the price where nobody measured, bytes/s */
static struct topology_link link_of (const struct topology_cluster *c, int src, int dst,
                                     double lowest)
{
    int i, j;
    double bw, latency_s;
    const struct topology_links *links = links_of (c, src, dst, &i, &j);
    struct topology_link l = {0};

    if (links)
        l = topology_link_priced (topology_matrix_at (&links->bytes_per_s, i, j),
                                  topology_matrix_at (&links->latency_s, i, j), lowest);
    if (pairs_get (c->except_bytes_per_s, src, dst, &bw)) {
        l.measured = !isnan (bw);
        l.bytes_per_s = l.measured ? bw : lowest;
    }
    if (pairs_get (c->except_latency_s, src, dst, &latency_s) && !isnan (latency_s))
        l.latency_s = latency_s;
    return l;
}

struct topology_link topology_link_given (const struct topology_cluster *c, int src,
                                          int dst)
{
    return link_of (c, src, dst, 0.0);
}

struct topology_link topology_link (const struct topology_cluster *c, int src, int dst)
{
    return link_of (c, src, dst,
                    c->node_of_gpu[src] == c->node_of_gpu[dst]
                        ? c->lowest_intra_bytes_per_s
                        : c->lowest_inter_bytes_per_s);
}

double topology_link_estimate_error (const struct topology_cluster *c, int src, int dst)
{
    int i, j;
    double bw;
    const struct topology_links *l = links_of (c, src, dst, &i, &j);

    if (!l || !l->has_estimates || pairs_get (c->except_bytes_per_s, src, dst, &bw))
        return NAN;
    return topology_matrix_at (&l->estimate_error, i, j);
}

/* ---- release ---- */

static void node_release (struct topology_node *n)
{
    FREE_ALL (n->name, n->speed, n->gpu_numa, n->gpu_rail, n->gpu_index, n->rack);
    memory_free_texts (n->gpu_uuid, n->gpus);
    memory_free_texts (n->gpu_nic, n->gpus);
    memory_free_texts (n->gpu_cpus, n->gpus);
    memory_free_texts (n->gpu_pci, n->gpus);
    memory_free_texts (n->switches, n->levels);
    if (n->own_intra)
        topology_links_release (n->own_intra);
    FREE_ALL (n->switch_id, n->own_intra);
}

void topology_cluster_destroy (struct topology_cluster *c)
{
    if (!c)
        return;
    for (int i = 0; c->node && i < c->n_nodes; i++)
        node_release (&c->node[i]);
    for (int i = 0; c->intra && i < c->n_intra; i++)
        topology_links_release (&c->intra[i]);
    for (int i = 0; c->rail && i < c->n_rails; i++)
        topology_links_release (&c->rail[i]);
    topology_links_release (&c->inter);
    topology_links_release (&c->gpu_links);
    topology_matrix_release (&c->pair_bytes_per_s);
    pairs_free (c->except_bytes_per_s);
    pairs_free (c->except_latency_s);
    FREE_ALL (c->gpu_row, c->node, c->node_of_gpu, c->by_name, c->type, c->intra, c->rail,
              c->name, c->folder);
    json_decref (c->doc);
    free (c);
}

json_t *topology_nominal (const struct topology_cluster *c)
{
    json_t *list = json_array ();
    bool all = c->has_gpu_matrix && c->gpu_links.nominal, inside = all;

    for (int i = 0; i < c->n_nodes && !c->has_gpu_matrix && !inside; i++)
        inside = c->node[i].gpus > 1 && c->node[i].intra && c->node[i].intra->nominal;
    if (inside)
        json_array_append_new (list, json_string ("intra"));
    if (c->n_nodes > 1 && (all || (c->has_inter && c->inter.nominal)))
        json_array_append_new (list, json_string ("inter"));
    return list;
}
