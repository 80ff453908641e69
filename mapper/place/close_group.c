/* Which ranks talk in every layer, and how nodes share groups of them that one could hold
 * (shared.c); mend.c keeps those that no node holds on nodes with good links between them:
 *
 *     node 0  a0 a1 a2 a3 a4 a5 a6 a7        a0 a1 a2 a3 b0 b1 b2 b3
 *     node 1  b0 b1 b2 b3 b4 b5 b6 b7        a4 a5 a6 a7 b4 b5 b6 b7      a, b: groups; 2 sharers
 */
#include "mapper/place/place_private.h"

int close_group (const struct placer *x)
{
    const struct workload_degrees *d = &x->c->deg;
    int experts = d->ep > 1 ? d->ep * d->etp : 1, slot = d->tp * d->cp;

    return slot % experts == 0 ? slot : experts % slot == 0 ? experts : 1;
}

/* The ranks of a group that a node holds where it need not share. */
static int most_ranks (const struct placer *x)
{
    int group = close_group (x), size = x->pool->max_node_gpus;

    return group < size ? group : size;
}

bool can_share (const struct placer *x, int sharers)
{
    const struct workload_config *c = x->c;
    int size = x->pool->max_node_gpus, ranks = most_ranks (x) / sharers;

    return ranks > 0 && ranks * sharers == most_ranks (x) && size % ranks == 0 &&
           close_group (x) % ranks == 0 &&
           (ranks % (c->deg.tp * c->deg.cp) == 0 || c->deg.tp * c->deg.cp % ranks == 0) &&
           x->per_stage % (size * (close_group (x) / ranks)) == 0 &&
           x->pool->all_gpus == x->pool->n_nodes * size &&
           (workload_expert_shards (c) > 1 || workload_dense_shards (c) > 1);
}

int shared_nodes (const struct placer *x)
{
    return close_group (x) * x->layout.sharers / most_ranks (x);
}

int shared_rank (const struct placer *x, int r)
{
    int size = x->pool->max_node_gpus, ranks = most_ranks (x) / x->layout.sharers;
    int node = r / size % shared_nodes (x), at = r % size;

    return r - node * size - at + at / ranks * close_group (x) + node * ranks +
           at % ranks;
}
