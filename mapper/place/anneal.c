/* Simulated annealing of a placement on a counted number of moves: whole nodes change
 * places in the layout they came from, then TP groups. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <string.h>

#define BETWEEN_LOOKS 32 /* moves, at whether it is late */

/* What a move exchanges: positions a[k] with b[k]. */
struct move {
    int a[TOPOLOGY_NODE_GPUS_MAX], b[TOPOLOGY_NODE_GPUS_MAX];
    int n; /* 0: an idle draw */
};

/* ---- a limit on nodes ---- */

static int node_at (const struct placer *x, int position)
{
    return x->pool->problem->cluster
        ->node_of_gpu[costmodel_state_gpus (x->state)[position]];
}

/* Count a move's ranks off the nodes they leave and onto those they reach, or back. */
static void count_move (struct placer *x, const struct move *m, int by)
{
    for (int k = 0; k < m->n; k++) {
        int a = node_at (x, m->a[k]), b = node_at (x, m->b[k]);

        if (m->a[k] < x->world) {
            x->uses[a] -= by;
            x->uses[b] += by;
        }
        if (m->b[k] < x->world) {
            x->uses[b] -= by;
            x->uses[a] += by;
        }
    }
}

/* Few enough nodes hold ranks, and every pinned one does. */
static bool uses_legal (const struct placer *x)
{
    int n = 0;

    for (int i = 0; i < x->pool->n_nodes; i++) {
        int node = x->pool->node[i];

        n += x->uses[node] > 0;
        if (x->uses[node] == 0 && pool_is_pinned (x->pool, node))
            return false;
    }
    return !pool_nodes_limited (x->pool) || n <= x->pool->problem->max_nodes;
}

/* ---- moves ---- */

/* A legal move is counted in x->uses; one that is not made is counted back. */
static bool move_legal (struct placer *x, const struct move *m)
{
    const int *gpu = costmodel_state_gpus (x->state);

    for (int k = 0; k < m->n && x->pool->n_classes > 1; k++)
        if (!stage_may_use (x, m->a[k], gpu[m->b[k]]) ||
            !stage_may_use (x, m->b[k], gpu[m->a[k]]))
            return false;
    if (!pool_uses_matter (x->pool))
        return true;
    count_move (x, m, 1);
    if (uses_legal (x))
        return true;
    count_move (x, m, -1);
    return false;
}

/* Two nodes with blocks of one size change places in the layout. */
static void draw_nodes (struct placer *x, struct move *m)
{
    int i = rng_below (&x->rng, x->pool->n_nodes),
        k = rng_below (&x->rng, x->pool->n_nodes);
    int size = x->block_n[i];

    m->n = 0;
    if (i == k || size != x->block_n[k] ||
        (x->block_first[i] >= x->world && x->block_first[k] >= x->world))
        return;
    for (; m->n < size; m->n++) {
        m->a[m->n] = x->position[x->block_first[i] + m->n];
        m->b[m->n] = x->position[x->block_first[k] + m->n];
    }
}

/* Two TP groups change places. */
static void draw_groups (struct placer *x, struct move *m)
{
    int step = x->c->deg.tp;
    int a = rng_below (&x->rng, x->world / step) * step;
    int b = rng_below (&x->rng, x->n / step) * step;

    for (m->n = 0; a != b && m->n < step; m->n++) {
        m->a[m->n] = a + m->n;
        m->b[m->n] = b + m->n;
    }
}

/* Anneal from the candidate; it receives what is better. */
static void anneal (struct placer *x, void (*draw) (struct placer *x, struct move *m),
                    int moves, struct candidate *best)
{
    struct costmodel_price now;
    struct move m;
    double hot, cold, here;

    costmodel_state_reset (x->state, best->gpu);
    now = costmodel_state_price (x->state);
    here = mapper_height (&now);
    if (!isfinite (here))
        return;
    memset (x->uses, 0, (size_t) x->pool->problem->cluster->n_nodes * sizeof *x->uses);
    for (int r = 0; r < x->world; r++) /* only kept while they matter */
        x->uses[node_at (x, r)]++;
    hot = 1e-3 * here;
    cold = 1e-7 * here;
    for (int i = 0;
         i < moves && (i % BETWEEN_LOOKS != 0 || !deadline_passed (x->deadline)); i++) {
        double temperature = hot * pow (cold / hot, (double) i / moves);

        draw (x, &m);
        if (m.n == 0 || m.n > TOPOLOGY_NODE_GPUS_MAX || !move_legal (x, &m))
            continue;

        struct rng was = x->rng;
        double most = here - temperature * log (rng_unit (&x->rng)), there;

        costmodel_state_limit (x->state, (struct costmodel_price){0, INFINITY, most});
        costmodel_state_exchange (x->state, m.a, m.b, m.n);
        now = costmodel_state_price (x->state);
        there = mapper_height (&now);
        if (there <= most) {
            if (there <= here)
                x->rng = was; /* luck was not needed */
            here = there;
            if (mapper_price_less (&now, &best->price)) {
                best->price = now;
                memcpy (best->gpu, costmodel_state_gpus (x->state),
                        (size_t) x->n * sizeof (int));
            }
        } else {
            costmodel_state_undo (x->state, m.a, m.b, m.n);
            if (pool_uses_matter (x->pool))
                count_move (x, &m, -1);
        }
    }
    costmodel_state_limit (x->state, (struct costmodel_price){0, INFINITY, INFINITY});
}

void improve_by_node (struct placer *x, int moves, struct candidate *k)
{
    bool straight;

    if (x->pool->all_alike || x->pool->n_nodes == 1 || !isfinite (k->price.step_s))
        return;
    layout_copy (&x->layout, &k->layout, x->pool->n_nodes);
    layout_fill (x, &straight);
    /* Only where every node still is the block that it was filled as. */
    if (!straight || memcmp (x->order, k->gpu, (size_t) x->world * sizeof (int)) != 0)
        return;
    /* Idle GPUs in the layout's own places, so that whole blocks can be exchanged. */
    memcpy (k->gpu, x->order, (size_t) x->n * sizeof (int));
    anneal (x, draw_nodes, moves, k);
}

void improve_by_gpu (struct placer *x, int moves, struct candidate *k)
{
    if (x->n > 1 && isfinite (k->price.step_s))
        anneal (x, draw_groups, moves, k);
}
