/* The order in which the search goes through nodes: by what they are, wherever they stand in the
 * file, so that a plan that is found from one file is found from every other order of its nodes.
 *
 * Nodes are alike that have the same GPUs and whose links lead, at the same rates, to nodes that
 * are alike.  That is told by numbers: a node's own begins with its GPUs, and twice takes in those
 * of its neighbours and the links to them.  Sums of these do not depend on an order.  The fastest
 * and largest nodes are first; among those of a speed and size each is followed by the one that it
 * has the best links with, as neighbours in a rack mostly follow each other in a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mapper/pool/pool.h"

#define ROUNDS 2
#define ORDERED_NODES \
    256 /* of more, that takes long: they stay as they are in the file */

struct known_node {
    int node, gpus;
    double rate; /* of a GPU */
    uint64_t number;
};

static uint64_t mixed (uint64_t a, uint64_t b)
{
    struct rng r = {a * 3 + b};

    return rng_next (&r);
}

static uint64_t mixed_number (uint64_t a, double x)
{
    uint64_t bits;

    memcpy (&bits, &x, sizeof bits);
    return mixed (a, bits);
}

static uint64_t mixed_link (const struct topology_cluster *c, uint64_t a, int from,
                            int to)
{
    struct topology_link l = topology_link (c, from, to);

    return mixed_number (mixed_number (mixed (a, l.measured), l.bytes_per_s),
                         l.latency_s);
}

/* A node as it is by itself. */
static struct known_node look_at (const struct pool *pool, int node)
{
    const struct mapper_problem *p = pool->problem;
    const struct topology_node *n = &p->cluster->node[node];
    uint64_t number = mixed_number ((uint64_t) n->gpus, n->node_bytes_per_s);

    for (const char *s = n->type->name; *s; s++)
        number = mixed (number, (unsigned char) *s);
    for (int a = n->first_gpu; a < n->first_gpu + n->gpus; a++) {
        number = mixed_number (number, topology_gpu_speed (p->cluster, a));
        for (int b = n->first_gpu; b < n->first_gpu + n->gpus; b++)
            number = a == b ? number : mixed_link (p->cluster, number, a, b);
    }
    number = mixed (number, p->node_pinned && p->node_pinned[node]);
    return (struct known_node){node, n->gpus,
                               costmodel_matrix_rate (n->type, p->job->precision) *
                                   n->type->gemm_efficiency,
                               number};
}

/* What each node's number tells of its neighbours' too. */
static void take_in_neighbours (const struct topology_cluster *c, struct known_node *k,
                                int n)
{
    uint64_t sum[ORDERED_NODES];

    for (int i = 0; i < n; i++) {
        sum[i] = 0;
        for (int j = 0; j < n; j++) {
            int a = c->node[k[i].node].first_gpu, b = c->node[k[j].node].first_gpu;

            if (i != j)
                sum[i] += mixed_link (c, mixed_link (c, k[j].number, a, b), b, a);
        }
    }
    for (int i = 0; i < n; i++)
        k[i].number = mixed (k[i].number, sum[i]);
}

/* The fastest and largest first; of those that are as fast and large in the order of their numbers,
 * and of those that are alike in that of the file. */
static int compare (const void *a, const void *b)
{
    const struct known_node *x = a, *y = b;

    return x->rate != y->rate       ? (x->rate < y->rate) - (x->rate > y->rate)
           : x->gpus != y->gpus     ? y->gpus - x->gpus
           : x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                    : x->node - y->node;
}

/* After each node the one of its speed and size that is left with the best links to it. */
static void follow_links (const struct topology_cluster *c, struct known_node *k, int n)
{
    for (int i = 0; i + 2 < n; i++) {
        struct known_node next;
        int best = i + 1;
        double least = INFINITY;

        for (int j = i + 1; j < n && k[j].rate >= k[i].rate && k[j].gpus == k[i].gpus;
             j++) {
            double way = pool_link_badness (c, k[i].node, k[j].node) +
                         pool_link_badness (c, k[j].node, k[i].node);

            if (way < least) {
                least = way;
                best = j;
            }
        }
        next = k[best];
        memmove (k + i + 2, k + i + 1, (size_t) (best - i - 1) * sizeof *k);
        k[i + 1] = next;
    }
}

void pool_order_nodes (struct pool *pool, bool links_alike)
{
    const struct topology_cluster *c = pool->problem->cluster;
    struct known_node k[ORDERED_NODES];
    int n = pool->n_nodes;

    if (n > ORDERED_NODES)
        return;
    for (int i = 0; i < n; i++)
        k[i] = look_at (pool, pool->node[i]);
    for (int round = 0; round < ROUNDS && !links_alike; round++)
        take_in_neighbours (c, k, n);
    qsort (k, (size_t) n, sizeof *k, compare);
    if (!links_alike)
        follow_links (c, k, n);
    for (int i = 0; i < n; i++)
        pool->node[i] = k[i].node;
}
