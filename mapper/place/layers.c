/* Single layers go from stage to stage of what is placed, as long as its price falls.
 *
 * The split comes before the places (stages.c), takes layers as alike and links at their best.
 * Where some layers have experts and others none, or where GPUs differ, the price of what is
 * placed knows better. */
#include "mapper/place/place_private.h"

#include <math.h>

/* Do the stages' layers fit where they are? */
static bool fits (struct placer *x, const int *gpu)
{
    pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    for (int r = 0; r < x->world; r++)
        if (!stage_may_use (x, r, gpu[r]))
            return false;
    return true;
}

/* So many layers from one stage to another in x->layers.  @return is the price less, in memory? */
static bool try_move (struct placer *x, int from, int to, int n, struct candidate *k)
{
    struct costmodel_price price;

    x->layers[from] -= n;
    x->layers[to] += n;
    costmodel_state_limit (x->state, k->price);
    costmodel_state_layers (x->state, x->layers);
    costmodel_state_exchange (x->state, NULL, NULL, 0);
    price = costmodel_state_price (x->state);
    if (mapper_price_less (&price, &k->price) && fits (x, k->gpu)) {
        k->price = price;
        return true;
    }
    x->layers[from] += n;
    x->layers[to] -= n;
    costmodel_state_layers (x->state, x->layers);
    costmodel_state_undo (x->state, NULL, NULL, 0);
    return false;
}

void improve_layers (struct placer *x, int tries, struct candidate *k)
{
    int p = x->c->deg.pp, still = 0,
        unit = workload_layers_unit (x->c, x->pool->problem->profile),
        least = workload_layers_least (x->pool->problem->model, x->c);

    if (!isfinite (k->price.step_s) || p == 1 ||
        (pool_layers_alike (x->pool) && x->pool->n_classes == 1))
        return;
    costmodel_state_reset (x->state, k->gpu);
    for (int at = 0; still < p * p && tries > 0 && !deadline_passed (x->deadline);
         at = (at + 1) % (p * p)) {
        int from = at / p, to = at % p;
        bool better = false;

        if (from != to && x->layers[from] - unit >= least) {
            better = try_move (x, from, to, unit, k);
            tries--;
        }
        still = better ? 0 : still + 1;
    }
    pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    memcpy (k->layers, x->layers, (size_t) p * sizeof (int));
    costmodel_state_limit (x->state, (struct costmodel_price){0, INFINITY, INFINITY});
}
