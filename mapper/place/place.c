/* One configuration, placed: layers to stages, groups to nodes (starts.c), then improved:
 * from the best start of node-wise and of free layouts whole nodes are exchanged, then
 * single TP groups (anneal.c).  Pools of up to EXACT_GPUS_MAX GPUs are
 * enumerated instead, others where placements are few (exact.c). */
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GRID_SMALL 32  /* nodes */
#define GRID_LARGE 512 /* nodes beyond which one run is enough, and no more moves */
#define SINGLE_NODES \
    64 /* of a grid in which single GPUs may gain what lets them be taken */
#define REPRICED_GPUS 1000000 /* times the GPUs of a stage, in one annealing */
#define FEW_TRIES 60000       /* placements of all splits in a larger pool */
#define EXACT_NODES 256       /* of a grid after which exact moves find next to nothing */
#define AFTER_GRID 8          /* so many times fewer where a large grid was annealed */
#define LAYER_TRIES 600       /* single layers moved after the places */
#define PLAYED_OPERATIONS 30000000L /* of a pipeline's schedule, in the same */

/* Moves per unit and configuration: enough for the price to settle on 16 to 128 groups, but
 * no more than what a move reprices and plays out allows. */
static int moves_for (const struct placer *x, int effort)
{
    int units = x->pool->n_nodes < 256 ? x->pool->n_nodes : 256;
    int moves = effort * (20 + 4 * units), most = REPRICED_GPUS / x->per_stage;
    long played = 2L * workload_microbatches (x->pool->problem->job, x->c) *
                  x->c->deg.pp * x->c->deg.vpp;

    most = most < PLAYED_OPERATIONS / played ? most : (int) (PLAYED_OPERATIONS / played);
    return moves < most ? moves : most;
}

/* Moves of one annealing on the grid. */
static long grid_moves (const struct placer *x)
{
    int n = x->pool->n_nodes;

    return 16000 + 150L * (n < GRID_LARGE ? n : GRID_LARGE);
}

/* Moves on the grid cost less by far, on a large one more than on a small one.
 * @return was it one? */
static bool on_grid (struct placer *x, int effort, struct candidate *k)
{
    int nodes = x->pool->n_nodes, runs = nodes > GRID_SMALL ? 4 : 6;

    if (nodes > GRID_LARGE)
        effort = 1;
    return improve_on_grid (x, effort > 1 ? runs : 1, (effort + 1) / 2 * grid_moves (x),
                            k);
}

/* Are both so slow that moves, which gain that share at most, will make neither the best? */
static bool is_hopeless (const struct effort *e, const struct candidate *by_node,
                         const struct candidate *any, double gain)
{
    double most = e->rival_s * (1.0 + gain);

    return by_node->price.unmeasured == 0 && by_node->price.step_s > most &&
           any->price.unmeasured == 0 && any->price.step_s > most;
}

/* @param[out] out  exact, skipped_s and moved_s */
static enum status improve (struct placer *x, enum mapper_granularity granularity,
                            const struct effort *e, struct candidate *by_node,
                            struct candidate *any, struct placed *out, struct error *err)
{
    struct effort some = *e;
    int moves = moves_for (x, e->exact);
    bool grid;
    double grid_s;

    if (place_tries_all (x->pool))
        return exact_splits (x, granularity, e, by_node, any, out, err);
    if (exact_is_few (x->pool, x->world)) {
        some.tries = some.tries < FEW_TRIES ? some.tries : FEW_TRIES;
        return exact_splits (x, granularity, &some, by_node, any, out, err);
    }
    if (is_hopeless (e, by_node, any, HOPELESS_GRID))
        return ST_OK;
    grid = on_grid (x, e->grid, by_node);
    if (grid && granularity != MAPPER_NODE) {
        try_shared (x, by_node, any);
        if (any->layout.sharers > 1)
            on_grid (x, e->grid, any);
    }
    if (grid)
        TRY (improve_slow_stage (x, granularity == MAPPER_NODE, e->rival_s,
                                 grid_moves (x), by_node, any, err));
    if (is_hopeless (e, by_node, any, HOPELESS))
        return ST_OK;
    if (grid && x->pool->n_nodes > EXACT_NODES) /* that was all that large pools need */
        moves = moves / AFTER_GRID + 1;
    grid_s = by_node->price.step_s;
    improve_by_node (x, moves, by_node);
    /* Sketches of smaller pools move alike layers together with places. */
    if (x->pool->n_nodes > SINGLE_NODES || !pool_layers_alike (x->pool))
        improve_layers (x, LAYER_TRIES, by_node);
    if (granularity == MAPPER_NODE) {
        out->moved_s =
            grid_s > by_node->price.step_s ? grid_s - by_node->price.step_s : 0.0;
        return ST_OK;
    }
    grid_s = fmin (grid_s, any->price.step_s);
    if (mapper_price_less (&by_node->price, &any->price))
        candidate_copy (x, by_node, any);
    if (memcmp (x->layers, any->layers, (size_t) x->c->deg.pp * sizeof (int)) != 0)
        TRY (placer_new_layers (x, any->layers, err));
    if (!grid || granularity != MAPPER_AUTO || x->pool->n_nodes <= SINGLE_NODES)
        improve_by_gpu (x, moves, any);
    out->moved_s = grid_s > any->price.step_s ? grid_s - any->price.step_s : 0.0;
    return ST_OK;
}

/* The better of node-wise and free placement, as the granularity asks. */
static void choose (struct placer *x, enum mapper_granularity granularity,
                    const struct candidate *by_node, const struct candidate *any,
                    struct placed *out)
{
    bool single = granularity == MAPPER_GPU;
    const struct candidate *pick;

    /* Over 0.5 %, or a link fewer that nobody measured. */
    if (granularity == MAPPER_AUTO)
        single = any->price.unmeasured < by_node->price.unmeasured ||
                 any->price.step_s < by_node->price.step_s * (1.0 - 0.005);
    pick = single ? any : by_node;
    out->price = pick->price;
    out->granularity =
        pool_is_by_node (x->pool, pick->gpu, x->world) ? MAPPER_NODE : MAPPER_GPU;
    out->node_step_s = pool_is_by_node (x->pool, any->gpu, x->world)
                           ? any->price.step_s
                           : by_node->price.step_s;
    out->gpu_step_s = any->price.step_s;
    memcpy (out->gpu, pick->gpu, (size_t) x->world * sizeof (int));
    memcpy (out->layers, pick->layers, (size_t) x->c->deg.pp * sizeof (int));
}

/* Nothing was found: is that certain? */
static enum status refuse (const struct placer *x, enum mapper_granularity granularity,
                           struct placed *out, struct error *err)
{
    bool all = place_tries_all (x->pool) && !pool_uses_matter (x->pool) &&
               granularity != MAPPER_NODE;

    for (int i = 0; i < x->c->deg.pp * x->pool->n_classes; i++)
        all = all && x->allowed[i];
    out->refusal = all ? REFUSED_UNCONNECTED : REFUSED_UNKNOWN;
    return err_set (err, ST_NOFIT, "%s",
                    all ? "the GPUs are not connected: no link between them was measured"
                    : x->pool->n_pinned > 0
                        ? "no placement was found that is connected, fits in memory and "
                          "uses every pinned node"
                        : "no placement was found that is connected and fits in memory");
}

struct begun *begun_create (void)
{
    return calloc (1, sizeof (struct begun));
}

void begun_destroy (struct begun *b)
{
    if (!b)
        return;
    FREE_ALL (b->layers, b->class_of_stage);
    candidate_release (&b->by_node);
    candidate_release (&b->any);
    free (b);
}

/* Keep a split and its starts. */
static enum status keep_begun (const struct placer *x, const struct candidate *by_node,
                               const struct candidate *any, struct begun *out,
                               struct error *err)
{
    size_t stages = (size_t) x->c->deg.pp * sizeof (int);

    TRY (candidate_init (x, &out->by_node, err));
    TRY (candidate_init (x, &out->any, err));
    candidate_copy (x, by_node, &out->by_node);
    candidate_copy (x, any, &out->any);
    out->class_of_stage = malloc (stages);
    out->layers = malloc (stages);
    if (!out->class_of_stage || !out->layers)
        return err_nomem (err);
    memcpy (out->class_of_stage, x->class_of_stage, stages);
    memcpy (out->layers, x->layers, stages);
    return ST_OK;
}

/* The best starts: those that are kept, or found and kept. */
static enum status begin (struct placer *x, enum mapper_granularity granularity,
                          struct begun *known, struct candidate *by_node,
                          struct candidate *any, struct error *err)
{
    if (known && known->layers) {
        candidate_copy (x, &known->by_node, by_node);
        candidate_copy (x, &known->any, any);
        return ST_OK;
    }
    TRY (try_starts (x, granularity != MAPPER_NODE, by_node, any, err));
    if (x->pool->all_alike && granularity != MAPPER_NODE) /* others: on the grid */
        try_shared (x, by_node, any);
    return known ? keep_begun (x, by_node, any, known, err) : ST_OK;
}

/* Place with one split of the layers.
 * @param[in] by_speed  the layers follow the speed of the classes
 * @param     known     the split and its starts; NULL: not kept */
static enum status place_split (const struct placer *base, bool by_speed,
                                enum mapper_granularity granularity,
                                const struct effort *effort, struct begun *known,
                                struct placed *out, struct error *err)
{
    struct candidate by_node = {0}, any = {0};
    struct placed result = {0};
    struct placer own = *base, *x = &own;
    enum status st = placer_init (x, by_speed, known, err);

    if (st == ST_NOFIT) /* where layers differ, another split might fit */
        out->refusal = pool_layers_alike (x->pool) ? REFUSED_MEMORY : REFUSED_UNKNOWN;
    THEN (st, candidate_init (x, &by_node, err));
    THEN (st, candidate_init (x, &any, err));
    if (st == ST_OK) {
        result.gpu = malloc ((size_t) x->world * sizeof (int));
        result.layers = malloc ((size_t) x->c->deg.pp * sizeof (int));
        if (!result.gpu || !result.layers)
            st = err_nomem (err);
    }
    THEN (st, begin (x, granularity, known, &by_node, &any, err));
    THEN (st, improve (x, granularity, effort, &by_node, &any, &result, err));
    if (st == ST_OK) {
        choose (x, granularity, &by_node, &any, &result);
        if (!isfinite (result.price.step_s))
            st = refuse (x, granularity, out, err);
    }
    if (st == ST_OK)
        *out = result;
    else
        placed_release (&result);
    candidate_release (&by_node);
    candidate_release (&any);
    placer_release (x);
    return st;
}

enum status place_config (const struct pool *pool, const struct groups *g,
                          const struct workload_config *c,
                          enum mapper_granularity granularity, struct effort effort,
                          unsigned long seed, struct placed *out, struct error *err)
{
    struct placer base = {
        .pool = pool, .groups = g, .c = c, .deadline = effort.deadline, .rng = {seed}};
    enum status st;

    if (workload_world (&c->deg) > pool->max_node_gpus && pool->inter_bytes_per_s <= 0) {
        out->refusal = REFUSED_UNCONNECTED;
        return err_set (err, ST_NOFIT,
                        "the GPUs are not connected: no link between nodes was measured; "
                        "measure some, or ask for what one node holds");
    }
    st = place_split (&base, true, granularity, &effort, effort.begun, out, err);
    if (st != ST_NOFIT || out->refusal == REFUSED_MEMORY || pool->n_classes == 1 ||
        c->deg.pp == 1)
        return st;
    /* Layers that follow speed may ask for a memory that no order of the nodes gives them. */
    return place_split (&base, false, granularity, &effort, NULL, out, err);
}

void placed_release (struct placed *x)
{
    FREE_ALL (x->layers, x->gpu);
    *x = (struct placed){0};
}
