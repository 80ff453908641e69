/* Expert groups that nodes share, though one could hold them.
 *
 * Where a whole group is on a node, its exchanges stay there, but each of its ranks synchronises
 * with those of the same experts on other nodes, in one lane: all of the node's rings leave it.
 * Where s nodes share their groups, an s-th of the rings leaves each, in s lanes each, and
 * exchanges cross nodes in turn.  With few micro-batches a step that is less. */
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
