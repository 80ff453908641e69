/* Moving ranks from an old placement.
 *
 * Steepest descent: every exchange of two nodes (or TP groups) is priced, the best one is
 * made, until none shortens the step.  Where pairs are very many, only those with an end of
 * the link that holds the step up are tried.  A chain of exchanges may have been, in part,
 * for nothing: ranks come home again exchange by exchange. */
#include "mapper/replan/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PAIRS_MAX 4096 /* exchanges that are priced before one is made */
#define ROUNDS_MAX 64  /* exchanges that are made */
#define WORTH 1e-6     /* of the step: less is rounding */
#define TRIES_MAX 64   /* exchanges that bring ranks home, before one is made */

const int *mover_gpus (const struct mover *x)
{
    return costmodel_state_gpus (x->state);
}

struct costmodel_price mover_price (const struct mover *x)
{
    return costmodel_state_price (x->state);
}

/* ---- what may stand where ---- */

static bool may_stand (const struct mover *x, int rank, int gpu)
{
    int q = x->pool->class_of_gpu[gpu];

    return rank >= x->world ||
           (q >= 0 && x->fits[rank / x->per_stage * x->pool->n_classes + q]);
}

bool mover_legal (const struct mover *x, const int *gpu)
{
    for (int r = 0; r < x->world; r++)
        if (!may_stand (x, r, gpu[r]))
            return false;
    return pool_nodes_fit (x->pool, gpu, x->world);
}

/* ---- making one ---- */

static void index_positions (struct mover *x)
{
    const int *gpu = x->state ? mover_gpus (x) : x->order;

    for (int k = 0; k < x->n; k++)
        x->position[gpu[k]] = k;
}

/* The idle GPU that a rank without one takes: with the memory, on a node that ranks without
 * a GPU have gone to before or else the one with the fewest idle GPUs that still has as many
 * as the old node's ranks need; then any.  -1: none */
static int take_idle (const struct mover *x, int rank, const bool *taken, int prefer,
                      int need)
{
    const struct topology_cluster *c = x->priced.cluster;
    int best = -1, best_idle = 0, any = -1;

    for (int i = 0; i < x->pool->n_nodes; i++) {
        int node = x->pool->node[i], idle = 0, first = -1;

        for (int k = 0; k < c->node[node].gpus; k++) {
            int g = c->node[node].first_gpu + k;

            if (taken[g] || !may_stand (x, rank, g))
                continue;
            first = first < 0 ? g : first;
            idle++;
        }
        if (first < 0)
            continue;
        if (node == prefer)
            return first;
        any = any < 0 ? first : any;
        if (idle >= need && (best < 0 || idle < best_idle)) {
            best = first;
            best_idle = idle;
        }
    }
    return best >= 0 ? best : any;
}

/* Ranks that follow each other and have no GPU: they were on one node, mostly. */
static int run_without_gpu (const struct mover *x, int rank)
{
    int n = 0;

    for (int r = rank; r < x->world && x->home[r] < 0; r++)
        n++;
    return n;
}

/* Old GPUs where they can be kept, idle ones for the rest, in x->order. */
static enum status complete (struct mover *x, struct error *err)
{
    const struct topology_cluster *c = x->priced.cluster;
    bool *taken = calloc ((size_t) c->n_gpus, sizeof *taken);
    int at = x->world, last = -1;

    if (!taken)
        return err_nomem (err);
    for (int r = 0; r < x->world; r++)
        if (x->home[r] >= 0 && !may_stand (x, r, x->home[r]))
            x->home[r] = -1;
    for (int r = 0; r < x->world; r++)
        if (x->home[r] >= 0)
            taken[x->home[r]] = true;
    for (int r = 0; r < x->world; r++) {
        int g = x->home[r];

        if (g < 0) {
            g = take_idle (x, r, taken, last, run_without_gpu (x, r));
            if (g < 0) {
                free (taken);
                return err_set (err, ST_NOFIT,
                                "no idle GPU is left that has the memory for rank %d", r);
            }
            last = c->node_of_gpu[g];
            taken[g] = true;
        }
        x->order[r] = g;
    }
    for (int i = 0; i < x->pool->n_nodes; i++)
        for (int k = 0; k < c->node[x->pool->node[i]].gpus; k++)
            if (!taken[c->node[x->pool->node[i]].first_gpu + k])
                x->order[at++] = c->node[x->pool->node[i]].first_gpu + k;
    free (taken);
    return ST_OK;
}

static enum status mover_allocate (struct mover *x, struct error *err)
{
    size_t gpus = (size_t) x->priced.cluster->n_gpus;

    for (int i = 0; i < x->pool->n_nodes; i++)
        x->n += x->priced.cluster->node[x->pool->node[i]].gpus;
    x->home = malloc ((size_t) x->world * sizeof (int));
    x->fits = calloc ((size_t) x->priced.config->deg.pp * (size_t) x->pool->n_classes,
                      sizeof (bool));
    x->position = malloc (gpus * sizeof (int));
    x->order = malloc (gpus * sizeof (int));
    if (!x->home || !x->fits || !x->position || !x->order)
        return err_nomem (err);
    for (size_t g = 0; g < gpus; g++)
        x->position[g] = -1;
    return ST_OK;
}

enum status mover_init (struct mover *x, const struct pool *pool,
                        const struct workload_config *c, const int *layers,
                        const int *home, struct error *err)
{
    *x = (struct mover){.pool = pool,
                        .priced = mapper_priced (pool->problem, c, layers),
                        .world = (int) workload_world (&c->deg)};
    x->per_stage = x->world / c->deg.pp;
    TRY (mover_allocate (x, err));
    if (x->world > x->n)
        return err_set (err, ST_NOFIT, "the old degrees need %d GPUs, %d can be used",
                        x->world, x->n);
    memcpy (x->home, home, (size_t) x->world * sizeof (int));
    pool_stage_classes (pool, c, layers, x->fits);
    TRY (complete (x, err));
    if (!mover_legal (x, x->order))
        return err_set (
            err, ST_NOFIT,
            "the old placement breaks the limit on nodes or leaves out pinned nodes");
    TRY (costmodel_state_create (&x->priced, x->order, x->n, &x->state, err));
    index_positions (x);
    return ST_OK;
}

void mover_release (struct mover *x)
{
    costmodel_state_destroy (x->state);
    FREE_ALL (x->home, x->fits, x->position, x->order);
    *x = (struct mover){0};
}

void mover_put (struct mover *x, const int *gpu)
{
    int at = x->world;

    for (int g = 0; g < x->priced.cluster->n_gpus; g++)
        if (x->position[g] >= 0)
            x->position[g] = x->n;
    for (int r = 0; r < x->world; r++) {
        x->order[r] = gpu[r];
        x->position[gpu[r]] = r;
    }
    for (int g = 0; g < x->priced.cluster->n_gpus; g++)
        if (x->position[g] == x->n)
            x->order[at++] = g;
    costmodel_state_reset (x->state, x->order);
    index_positions (x);
}

/* ---- exchanges ---- */

struct exchange {
    int a[TOPOLOGY_NODE_GPUS_MAX], b[TOPOLOGY_NODE_GPUS_MAX]; /* positions */
    int n;
};

/* GPU by GPU of two nodes of one size; nothing where neither holds ranks. */
static void exchange_nodes (const struct mover *x, int i, int k, struct exchange *e)
{
    const struct topology_node *a = &x->priced.cluster->node[x->pool->node[i]],
                               *b = &x->priced.cluster->node[x->pool->node[k]];

    e->n = 0;
    if (a->gpus != b->gpus || i == k)
        return;
    for (int g = 0; g < a->gpus; g++) {
        int from = x->position[a->first_gpu + g], to = x->position[b->first_gpu + g];

        if (from >= x->world && to >= x->world)
            continue;
        e->a[e->n] = from;
        e->b[e->n++] = to;
    }
}

/* TP group i with TP group k, or with idle GPUs that follow each other on one node. */
static void exchange_groups (const struct mover *x, int i, int k, struct exchange *e)
{
    const struct topology_cluster *c = x->priced.cluster;
    int tp = x->priced.config->deg.tp;

    e->n = 0;
    if (i == k || tp > TOPOLOGY_NODE_GPUS_MAX || (k + 1) * tp > x->n ||
        i * tp >= x->world)
        return;
    for (int y = 1; y < tp && k * tp >= x->world; y++)
        if (c->node_of_gpu[mover_gpus (x)[k * tp + y]] !=
            c->node_of_gpu[mover_gpus (x)[k * tp]])
            return;
    for (; e->n < tp; e->n++) {
        e->a[e->n] = i * tp + e->n;
        e->b[e->n] = k * tp + e->n;
    }
}

static bool exchange_legal (const struct mover *x, const struct exchange *e)
{
    const int *gpu = mover_gpus (x);

    for (int k = 0; k < e->n && x->pool->n_classes > 1; k++)
        if (!may_stand (x, e->a[k], gpu[e->b[k]]) ||
            !may_stand (x, e->b[k], gpu[e->a[k]]))
            return false;
    return e->n > 0;
}

typedef void exchange_fn (const struct mover *x, int i, int k, struct exchange *e);

struct best_exchange {
    int i, k;
    double height;
};

static void try_exchange (struct mover *x, exchange_fn *make, int i, int k,
                          struct best_exchange *best)
{
    struct costmodel_price price;
    struct exchange e;

    make (x, i, k, &e);
    if (!exchange_legal (x, &e))
        return;
    costmodel_state_exchange (x->state, e.a, e.b, e.n);
    price = mover_price (x);
    if (isfinite (price.step_s) && !(mapper_height (&price) >= best->height) &&
        pool_nodes_fit (x->pool, mover_gpus (x), x->world))
        *best = (struct best_exchange){i, k, mapper_height (&price)};
    costmodel_state_undo (x->state, e.a, e.b, e.n);
}

/* The TP group or the node of the pool that a GPU is of. */
static int unit_at (const struct mover *x, bool groups, int gpu)
{
    int node = x->priced.cluster->node_of_gpu[gpu], i = 0;

    if (groups)
        return x->position[gpu] / x->priced.config->deg.tp;
    while (i < x->pool->n_nodes - 1 && x->pool->node[i] != node)
        i++;
    return i;
}

/* Units at the ends of the link that holds the step up. */
static bool binding_units (const struct mover *x, bool groups, int unit[2])
{
    struct costmodel_price price = mover_price (x);
    struct costmodel_binding b;
    bool found = false;

    if (costmodel_find_binding (&x->priced, mover_gpus (x), price.step_s, &b, &found,
                                NULL) != ST_OK ||
        !found)
        return false;
    for (int end = 0; end < 2; end++)
        unit[end] = unit_at (x, groups, end ? b.dst_gpu : b.src_gpu);
    return true;
}

/* Price all exchanges, or those of the binding link's ends. */
static void look_around (struct mover *x, bool groups, struct best_exchange *best)
{
    exchange_fn *make = groups ? exchange_groups : exchange_nodes;
    int tp = x->priced.config->deg.tp;
    int units = groups ? x->n / tp : x->pool->n_nodes;
    int left = groups ? x->world / tp : units, ends[2];

    if ((long) left * units / 2 <= PAIRS_MAX) {
        for (int i = 0; i < left; i++)
            for (int k = i + 1; k < units; k++)
                try_exchange (x, make, i, k, best);
    } else if (binding_units (x, groups, ends)) {
        for (int end = 0; end < 2; end++)
            for (int k = 0; k < units; k++)
                try_exchange (x, make, ends[end], k, best);
    }
}

void mover_descend (struct mover *x, bool groups)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct costmodel_price price = mover_price (x);
        struct best_exchange best = {-1, -1, mapper_height (&price) * (1.0 - WORTH)};
        struct exchange e;
        bool by_group = false;

        if (!isfinite (price.step_s))
            best.height = INFINITY;
        look_around (x, false, &best);
        if (best.i < 0 && groups) {
            by_group = true;
            look_around (x, true, &best);
        }
        if (best.i < 0)
            return;
        (by_group ? exchange_groups : exchange_nodes) (x, best.i, best.k, &e);
        costmodel_state_exchange (x->state, e.a, e.b, e.n);
        index_positions (x);
    }
}

/* ---- one exchange at a time ---- */

/* How many more ranks are at home after an exchange? */
static int brought_home (const struct mover *x, const struct exchange *e)
{
    const int *gpu = mover_gpus (x);
    int more = 0;

    for (int k = 0; k < e->n; k++) {
        int a = e->a[k], b = e->b[k];

        if (a < x->world)
            more += (gpu[b] == x->home[a]) - (gpu[a] == x->home[a]);
        if (b < x->world)
            more += (gpu[a] == x->home[b]) - (gpu[b] == x->home[b]);
    }
    return more;
}

/* Make the exchange that brings ranks home at the shortest step, if it is within `most`;
 * where there are very many, the first such. */
static bool bring_home (struct mover *x, bool groups, const struct costmodel_price *most)
{
    exchange_fn *make = groups ? exchange_groups : exchange_nodes;
    struct best_exchange best = {-1, -1, 0};
    struct costmodel_price at_best = *most;
    struct exchange e;
    int tried = 0, last_from = -1, last_to = -1;

    for (int r = 0; r < x->world && (best.i < 0 || tried < TRIES_MAX); r++) {
        struct costmodel_price price;
        int at = mover_gpus (x)[r], from, to;

        if (x->home[r] < 0 || at == x->home[r])
            continue;
        from = unit_at (x, groups, at);
        to = unit_at (x, groups, x->home[r]);
        if (from == last_from && to == last_to)
            continue;
        make (x, last_from = from, last_to = to, &e);
        if (!exchange_legal (x, &e) || brought_home (x, &e) <= 0)
            continue;
        tried++;
        costmodel_state_exchange (x->state, e.a, e.b, e.n);
        price = mover_price (x);
        if (!mapper_price_less (&at_best, &price) &&
            pool_nodes_fit (x->pool, mover_gpus (x), x->world)) {
            at_best = price;
            best = (struct best_exchange){from, to, 0};
        }
        costmodel_state_undo (x->state, e.a, e.b, e.n);
    }
    if (best.i < 0)
        return false;
    make (x, best.i, best.k, &e);
    costmodel_state_exchange (x->state, e.a, e.b, e.n);
    index_positions (x);
    return true;
}

void mover_bring_home (struct mover *x, bool groups, const struct costmodel_price *most)
{
    while (bring_home (x, false, most) || (groups && bring_home (x, true, most))) {
    }
}
