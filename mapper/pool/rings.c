/* How fast can a ring of so many members be at best, where nodes differ?
 *
 * A member is `each` GPUs of a node, so node i holds k_i = GPUs / each of them at most.  Over
 * several nodes a ring enters and leaves each, in as many lanes as it has members there: at
 *
 *     r_i = min (k_i best link out and in, what the node reaches / each)
 *
 * at most.  So one of rate B is on nodes with r_i >= B alone, and these must hold all n members.
 * Inside nodes it is as fast as their links: where it has rate B, slower nodes have one member
 * each.  A table by `each` has the nodes sorted by either rate, with the members that the faster
 * ones hold; nodes alike that follow each other are one line of it. */
#include <math.h>
#include <stdlib.h>

#include "mapper/pool/pool.h"

/* So many members at a rate, with those that are faster. */
struct pool_ring {
    double bytes_per_s;
    long members;
};

static int fastest_first (const void *a, const void *b)
{
    const struct pool_ring *x = a, *y = b;

    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

static double best_inside (const struct pool *pool, const struct topology_node *n)
{
    const struct topology_cluster *c = pool->problem->cluster;
    double best = 0.0;

    if (!c->has_gpu_links && n->intra->bytes_per_s.n == 0)
        return topology_link (c, n->first_gpu, n->first_gpu + 1).bytes_per_s;
    for (int a = n->first_gpu; a < n->first_gpu + n->gpus; a++)
        for (int b = n->first_gpu; b < n->first_gpu + n->gpus; b++)
            if (a != b)
                best = fmax (best, topology_link (c, a, b).bytes_per_s);
    return best;
}

/* Nodes that follow each other in the pool and are alike. */
struct like_nodes {
    double inside, reach, total; /* bytes/s: best link, out or in, of all GPUs together */
    int gpus, n;
};

/* [n_rings] of the tables in rings, of which each has max_node_gpus */
static struct pool_ring *table_of (const struct pool *pool, bool inside, int each)
{
    size_t n = (size_t) pool->n_rings, most = (size_t) pool->max_node_gpus;

    return pool->rings + ((inside ? most : 0) + (size_t) each - 1) * n;
}

static void sum_up (struct pool_ring *r, int n)
{
    qsort (r, (size_t) n, sizeof *r, fastest_first);
    for (int i = 1; i < n; i++)
        r[i].members += r[i - 1].members;
}

static void fill (struct pool *pool, const struct like_nodes *like, int each)
{
    struct pool_ring *across = table_of (pool, false, each),
                     *within = table_of (pool, true, each);

    for (int i = 0; i < pool->n_rings; i++) {
        const struct like_nodes *l = &like[i];
        int members = l->gpus / each;
        bool several = members > 1;

        across[i] = (struct pool_ring){fmin (members * l->reach, l->total / each),
                                       (long) members * l->n};
        within[i] = (struct pool_ring){several ? l->inside : 0.0,
                                       several ? (long) (members - 1) * l->n : 0};
    }
    sum_up (across, pool->n_rings);
    sum_up (within, pool->n_rings);
}

static struct like_nodes like_node (const struct pool *pool, int i)
{
    const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];

    return (struct like_nodes){.inside = n->gpus > 1 ? best_inside (pool, n) : 0.0,
                               .reach = fmin (pool->reach[i], pool->inter_bytes_per_s),
                               .total = n->node_bytes_per_s > 0 ? n->node_bytes_per_s
                                                                : INFINITY,
                               .gpus = n->gpus,
                               .n = 1};
}

/* @param[out] like  [n_rings], which is found; room for n_nodes */
static void find_like (struct pool *pool, struct like_nodes *like)
{
    for (int i = 0; i < pool->n_nodes; i++) {
        struct like_nodes one = like_node (pool, i),
                          *last = pool->n_rings > 0 ? &like[pool->n_rings - 1] : NULL;

        if (last && one.inside == last->inside && one.reach == last->reach &&
            one.total == last->total && one.gpus == last->gpus)
            last->n++;
        else
            like[pool->n_rings++] = one;
    }
}

enum status pool_rings_init (struct pool *pool, struct error *err)
{
    size_t most = (size_t) pool->max_node_gpus;
    struct like_nodes *like = malloc ((size_t) pool->n_nodes * sizeof *like);

    if (!like)
        return err_nomem (err);
    find_like (pool, like);
    pool->rings = malloc (2 * most * (size_t) pool->n_rings * sizeof *pool->rings);
    pool->inside_from = calloc (most, sizeof *pool->inside_from);
    if (!pool->rings || !pool->inside_from) {
        free (like);
        return err_nomem (err);
    }
    for (int i = 0; i < pool->n_rings; i++)
        for (int g = 0; g < like[i].gpus; g++)
            pool->inside_from[g] = fmax (pool->inside_from[g], like[i].inside);
    for (int each = 1; each <= pool->max_node_gpus; each++)
        fill (pool, like, each);
    free (like);
    return ST_OK;
}

/* The best rate at which so many members are. */
static double rate_of (const struct pool *pool, const struct pool_ring *r, long members)
{
    int lo = 0, hi = pool->n_rings;

    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (r[mid].members < members)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < pool->n_rings ? r[lo].bytes_per_s : INFINITY;
}

double pool_ring_between (const struct pool *pool, int n, int each)
{
    return each > pool->max_node_gpus ? INFINITY
                                      : rate_of (pool, table_of (pool, false, each), n);
}

double pool_ring_inside (const struct pool *pool, int n, int each)
{
    return n <= pool->n_nodes || each > pool->max_node_gpus
               ? INFINITY
               : rate_of (pool, table_of (pool, true, each), n - pool->n_nodes);
}

double pool_ring_on_one (const struct pool *pool, int n, int each)
{
    long gpus = (long) n * each;

    return gpus <= pool->max_node_gpus ? pool->inside_from[gpus - 1] : INFINITY;
}
