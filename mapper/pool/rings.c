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
 * ones hold. */
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

/* [n_nodes] of the tables in rings, of which each has max_node_gpus */
static struct pool_ring *table_of (const struct pool *pool, bool inside, int each)
{
    size_t n = (size_t) pool->n_nodes, most = (size_t) pool->max_node_gpus;

    return pool->rings + ((inside ? most : 0) + (size_t) each - 1) * n;
}

static void sum_up (struct pool_ring *r, int n)
{
    qsort (r, (size_t) n, sizeof *r, fastest_first);
    for (int i = 1; i < n; i++)
        r[i].members += r[i - 1].members;
}

/* @param[in] inside  [n_nodes] bytes/s of the best link in each */
static void fill (struct pool *pool, const double *inside, int each)
{
    struct pool_ring *across = table_of (pool, false, each),
                     *within = table_of (pool, true, each);

    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];
        double total = n->node_bytes_per_s > 0 ? n->node_bytes_per_s : INFINITY;
        double reach = fmin (pool->reach[i], pool->inter_bytes_per_s);
        int members = n->gpus / each;
        bool several = members > 1;

        across[i] = (struct pool_ring){fmin (members * reach, total / each), members};
        within[i] =
            (struct pool_ring){several ? inside[i] : 0.0, several ? members - 1 : 0};
    }
    sum_up (across, pool->n_nodes);
    sum_up (within, pool->n_nodes);
}

enum status pool_rings_init (struct pool *pool, struct error *err)
{
    size_t most = (size_t) pool->max_node_gpus, nodes = (size_t) pool->n_nodes;
    double *inside = malloc (nodes * sizeof *inside);

    pool->rings = malloc (2 * most * nodes * sizeof *pool->rings);
    pool->inside_from = calloc (most, sizeof *pool->inside_from);
    if (!inside || !pool->rings || !pool->inside_from) {
        free (inside);
        return err_nomem (err);
    }
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];

        inside[i] = n->gpus > 1 ? best_inside (pool, n) : 0.0;
        for (int g = 0; g < n->gpus; g++)
            pool->inside_from[g] = fmax (pool->inside_from[g], inside[i]);
    }
    for (int each = 1; each <= pool->max_node_gpus; each++)
        fill (pool, inside, each);
    free (inside);
    return ST_OK;
}

/* The best rate at which so many members are. */
static double rate_of (const struct pool *pool, const struct pool_ring *r, long members)
{
    int lo = 0, hi = pool->n_nodes;

    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (r[mid].members < members)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < pool->n_nodes ? r[lo].bytes_per_s : INFINITY;
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
