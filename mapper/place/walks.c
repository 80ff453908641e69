/* The orders in which sketches go through the nodes. */
#include "mapper/place/sketch_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/memory.h"
#include "base/stats.h"

#define PAIRED 0.9      /* of its node's best link: what one must reach to be as good */
#define GROWN_NODES 256 /* from neighbour to neighbour in pools of up to so many */

/* A node, and what it is sorted by: pinned ones first, then the smallest numbers. */
struct visit {
    double key[4];
    int at;
};

static int by_key (const void *a, const void *b)
{
    const struct visit *x = a, *y = b;

    for (int k = 0; k < 4; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] < y->key[k] ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static double mean_class (const struct pool *pool, const struct topology_node *n)
{
    double sum = 0.0;

    for (int k = 0; k < n->gpus; k++)
        sum += pool->class_of_gpu[n->first_gpu + k];
    return sum / n->gpus;
}

static struct visit visit_of (const struct pool *pool, int walk, int i)
{
    const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];
    bool other = !pool_is_pinned (pool, pool->node[i]);
    double badness = pool->badness[i];

    if (walk == WALK_MEAN)
        return (struct visit){{other, mean_class (pool, n), badness}, i};
    if (walk == WALK_GROWN)
        return (struct visit){{other, pool_node_class (pool, pool->node[i]), badness}, i};
    return (struct visit){{other, pool->class_of_gpu[n->first_gpu], -n->gpus, badness},
                          i};
}

/* From each node to the nearest of those that are left of its class, in place. */
static void grow (const struct pool *pool, struct visit *v)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i + 2 < pool->n_nodes; i++) {
        int nearest = i + 1;
        double least = INFINITY;

        for (int k = i + 1; k < pool->n_nodes && v[k].key[0] == v[i + 1].key[0] &&
                            v[k].key[1] <= v[i + 1].key[1];
             k++) {
            double way = pool_link_badness (c, pool->node[v[i].at], pool->node[v[k].at]) +
                         pool_link_badness (c, pool->node[v[k].at], pool->node[v[i].at]);

            if (way < least) {
                least = way;
                nearest = k;
            }
        }

        struct visit next = v[nearest];

        memmove (v + i + 2, v + i + 1, (size_t) (nearest - i - 1) * sizeof *v);
        v[i + 1] = next;
    }
}

/* GPUs of a node that its best links join, as pairs of NVLinks do, by the first one of them. */
static void find_pairs (const struct pool *pool, int *pair)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[pool->node[i]];
        double best = 0.0;

        for (int k = 1; k < n->gpus; k++)
            for (int to = 0; to < k; to++)
                best = fmax (
                    best,
                    topology_link (c, n->first_gpu + to, n->first_gpu + k).bytes_per_s);
        for (int k = n->gpus - 1; k >= 0; k--) {
            pair[n->first_gpu + k] = n->first_gpu + k;
            for (int to = k - 1; to >= 0; to--)
                if (topology_link (c, n->first_gpu + to, n->first_gpu + k).bytes_per_s >=
                    PAIRED * best)
                    pair[n->first_gpu + k] = n->first_gpu + to;
        }
    }
}

/* Was every link between nodes measured, with one latency? */
static bool all_measured (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;

    if (c->has_gpu_links || !c->has_inter || c->inter.latency_s.n > 0 ||
        isnan (c->inter.latency_s.number))
        return false;
    for (int i = 0; i < pool->n_nodes; i++)
        for (int k = 0; k < pool->n_nodes; k++)
            if (i != k && !topology_node_link (c, pool->node[i], pool->node[k]).measured)
                return false;
    return true;
}

enum status walks_init (struct walks *w, const struct pool *pool, struct error *err)
{
    size_t n = (size_t) pool->n_nodes;
    struct visit *v = malloc (n * sizeof *v);

    *w = (struct walks){
        .n_gpus = pool->all_gpus,
        .seq = malloc (WALKS * n * sizeof (int)),
        .pair = malloc ((size_t) pool->problem->cluster->n_gpus * sizeof (int))};
    if (!v || !w->seq || !w->pair) {
        free (v);
        return err_nomem (err);
    }
    for (int walk = 0; walk < WALKS; walk++) {
        for (int i = 0; i < pool->n_nodes; i++)
            v[i] = visit_of (pool, walk, i);
        qsort (v, n, sizeof *v, by_key);
        if (walk == WALK_GROWN && pool->n_nodes <= GROWN_NODES)
            grow (pool, v);
        for (int i = 0; i < pool->n_nodes; i++)
            w->seq[walk * pool->n_nodes + i] = v[i].at;
    }
    find_pairs (pool, w->pair);
    w->all_usual = all_measured (pool);
    free (v);
    return ST_OK;
}

void walks_release (struct walks *w)
{
    FREE_ALL (w->seq, w->pair);
}
