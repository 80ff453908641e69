/* Expert groups and TP groups that nodes share, though one could hold them.
 *
 * Where a whole group is on a node, its exchanges stay there, but each of its ranks synchronises
 * with its like on other nodes, in one lane: all of the node's rings leave it.  Where s nodes share
 * their groups, an s-th of the rings leaves each, in s lanes each, and exchanges cross nodes in
 * turn; so do all-reduces where that parts TP groups.  With few micro-batches, or where weights are
 * gathered for each, a step that is less. */
#include "mapper/place/place_private.h"

#include <math.h>

#define EXPOSED 0.12 /* of the step */

/* Does synchronisation take enough of the candidate's step for more lanes to be worth exchanges
 * between nodes? */
static bool is_worth_it (struct placer *x, const struct candidate *k)
{
    price_order (x, k->gpu, NO_PRICE);
    return latest_end_s (x) < k->price.step_s * (1.0 - EXPOSED);
}

/* Few of a cluster's links are bad, but rings of two sharers may have one where four have none. */
void try_shared (struct placer *x, const struct candidate *by_node, struct candidate *any)
{
    const struct layout *l = &by_node->layout;
    int most = close_group (x);

    if (most == 1 || !isfinite (by_node->price.step_s) || l->depth != 1 || l->by_class ||
        l->by_shard || !is_worth_it (x, by_node))
        return;
    for (int sharers = 2; sharers <= most; sharers++) {
        struct costmodel_price price;
        bool straight;

        if (!can_share (x, sharers))
            continue;
        layout_copy (&x->layout, l, x->pool->n_nodes);
        x->layout.sharers = sharers;
        x->layout.shared_stage = -1;
        mend_layout (x);
        layout_fill (x, &straight);
        if (!straight)
            continue;
        price = price_order (x, x->order, any->price);
        if (mapper_price_less (&price, &any->price) &&
            mapper_price_less (&price, &by_node->price))
            candidate_take (x, price, any);
    }
    x->layout.sharers = 1;
}
