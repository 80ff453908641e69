/* Expert groups that nodes share, though one could hold them.
 *
 * Where a whole group is on a node, its exchanges stay there, but each of its ranks synchronises
 * with those of the same experts on other nodes, in one lane: all of the node's rings leave it.
 * Where s nodes share their groups, an s-th of the rings leaves each, in s lanes each, and exchanges
 * cross nodes in turn.  With few micro-batches a step that is less.
 *
 *     node 0  a0 a1 a2 a3 a4 a5 a6 a7        a0 a1 a2 a3 b0 b1 b2 b3
 *     node 1  b0 b1 b2 b3 b4 b5 b6 b7        a4 a5 a6 a7 b4 b5 b6 b7      a, b: groups; s = 2
 */
#include "mapper/place/place_private.h"

#include <math.h>

#define EXPOSED 0.12 /* of the step */

int expert_group (const struct placer *x)
{
    struct workload_group ep = workload_group_of (&x->c->deg, GROUP_EP);

    return ep.size > 1 ? ep.size * ep.stride : 1;
}

/* Does synchronisation take enough of the candidate's step for more lanes to be worth exchanges
 * between nodes? */
static bool is_worth_it (struct placer *x, const struct candidate *k)
{
    price_order (x, k->gpu, NO_PRICE);
    return latest_end_s (x) < k->price.step_s * (1.0 - EXPOSED);
}

/* The ranks of a group that a node holds where it need not share. */
static int most_ranks (const struct placer *x)
{
    int group = expert_group (x), size = x->pool->max_node_gpus;

    return group < size ? group : size;
}

bool can_share (const struct placer *x, int sharers)
{
    const struct workload_config *c = x->c;
    int size = x->pool->max_node_gpus, ranks = most_ranks (x) / sharers;

    return ranks > 0 && ranks * sharers == most_ranks (x) && size % ranks == 0 &&
           expert_group (x) % ranks == 0 && ranks % (c->deg.tp * c->deg.cp) == 0 &&
           x->per_stage % (size * (expert_group (x) / ranks)) == 0 &&
           x->pool->all_gpus == x->pool->n_nodes * size && workload_expert_shards (c) > 1;
}

int shared_nodes (const struct placer *x)
{
    return expert_group (x) * x->layout.sharers / most_ranks (x);
}

int shared_rank (const struct placer *x, int r)
{
    int size = x->pool->max_node_gpus, ranks = most_ranks (x) / x->layout.sharers;
    int node = r / size % shared_nodes (x), at = r % size;

    return r - node * size - at + at / ranks * expert_group (x) + node * ranks +
           at % ranks;
}

/* As long as more sharers are better: exchanges grow with them as synchronisation falls. */
void try_shared (struct placer *x, const struct candidate *by_node, struct candidate *any)
{
    const struct layout *l = &by_node->layout;
    struct costmodel_price best = by_node->price;

    if (!isfinite (best.step_s) || l->depth != 1 || l->by_class || !can_share (x, 2) ||
        !is_worth_it (x, by_node))
        return;
    for (int sharers = 2; can_share (x, sharers); sharers *= 2) {
        struct costmodel_price price;
        bool straight;

        layout_copy (&x->layout, l, x->pool->n_nodes);
        x->layout.sharers = sharers;
        x->layout.shared_stage = -1;
        mend_layout (x);
        layout_fill (x, &straight);
        if (!straight)
            break;
        price = price_order (x, x->order, best);
        if (!mapper_price_less (&price, &best))
            break;
        best = price;
        if (!mapper_price_less (&price, &any->price))
            continue;
        any->price = price;
        layout_copy (&any->layout, &x->layout, x->pool->n_nodes);
        memcpy (any->gpu, x->order, (size_t) x->n * sizeof (int));
    }
    x->layout.sharers = 1;
}
