/* Every placement, each priced, where there are few.
 *
 * Two symmetries are used.  GPUs that nothing tells apart (same node, same links, same speed) are
 * taken in order.  And where rings are plain cycles (one node, or one GPU a node), two turns of all
 * ranks change neither rings nor pipelines nor expert groups: every TP group round by one, where
 * its experts are in as many parts, and replicas round by as many as expert groups, and groups that
 * shard, fill.  So the lowest-numbered of stage 0's GPUs may be asked to be one of the ranks that
 * turns take to each other's places last: without experts, the first of a TP group of the first
 * replica.
 *
 * Where the first ranks alone take longer than the best that is known, what follows is left out. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <string.h>

#define FEW_GPUS_MAX 32
#define FEW_PLACEMENTS 10000 /* each takes microseconds */
#define MANY 24              /* placements of one beginning */
#define ROUNDING 1e-9        /* of sums in another order */

struct exact {
    const struct pool *pool;
    struct costmodel_state *state;
    const struct workload_config *c;
    const bool *allowed;
    int n, world, per_stage;
    /* Ranks of the replicas, and of a TP group, that no turn takes to each other; 0: nothing
     * may be turned. */
    int turn, turn_tp;
    int most_nodes;
    int gpu[FEW_GPUS_MAX];
    bool alike[FEW_GPUS_MAX][FEW_GPUS_MAX]; /* by index in sorted[] */
    int sorted[FEW_GPUS_MAX];
    bool used[FEW_GPUS_MAX];
    long placements;
    struct exact_best *by_node, *any;
};

/* Does exchanging two GPUs of one node change nothing? */
static bool interchangeable (const struct topology_cluster *c, int a, int b)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[a]];

    if (c->node_of_gpu[a] != c->node_of_gpu[b] || c->has_gpu_links ||
        topology_gpu_speed (c, a) != topology_gpu_speed (c, b))
        return false;
    return n->intra->bytes_per_s.n == 0 && n->intra->latency_s.n == 0;
}

/* Would rank `r` on this GPU break its node's run of consecutive ranks? */
static bool breaks_run (const struct exact *x, int r, int gpu)
{
    const int *node_of = x->pool->problem->cluster->node_of_gpu;

    if (r == 0 || node_of[x->gpu[r - 1]] == node_of[gpu])
        return false;
    for (int k = 0; k < r; k++)
        if (node_of[x->gpu[k]] == node_of[gpu])
            return true;
    return false;
}

/* Would rank `r` on this GPU need a node more than may be used? */
static bool needs_node (const struct exact *x, int r, int gpu)
{
    const int *node_of = x->pool->problem->cluster->node_of_gpu;
    int nodes = 0;

    for (int k = 0; k < r; k++) {
        bool seen = false;

        if (node_of[x->gpu[k]] == node_of[gpu])
            return false;
        for (int j = 0; j < k && !seen; j++)
            seen = node_of[x->gpu[j]] == node_of[x->gpu[k]];
        nodes += !seen;
    }
    return nodes >= x->most_nodes;
}

/* @param[in] runs  every node has consecutive ranks */
static void leaf (struct exact *x, bool runs)
{
    struct costmodel_price price;
    int all[FEW_GPUS_MAX], at = x->world;

    memcpy (all, x->gpu, (size_t) x->world * sizeof (int));
    for (int k = 0; k < x->n; k++)
        if (!x->used[k])
            all[at++] = x->sorted[k];
    costmodel_state_reset (x->state, all);
    price = costmodel_state_price (x->state);
    x->placements++;
    for (int free = 0; free <= 1; free++) {
        struct exact_best *best = free ? x->any : x->by_node;

        if ((free || runs) && mapper_price_less (&price, best->price) &&
            pool_pins_hold (x->pool, all, x->world)) {
            *best->price = price;
            memcpy (best->gpu, all, (size_t) x->n * sizeof (int));
            best->better = true;
        }
    }
}

/* With this GPU for rank `r` of stage 0, can the stage's lowest number still be where turns
 * take it?  Numbers are in sorted order. */
static bool keeps_lowest (const struct exact *x, int r, int gpu)
{
    int tp = x->c->deg.tp, lowest = gpu, first = -1;

    for (int k = 0; k <= r; k++) {
        int g = k == r ? gpu : x->gpu[k];

        if (k < x->turn && k % tp < x->turn_tp && (first < 0 || g < first))
            first = g;
        lowest = g < lowest ? g : lowest;
    }
    return r < x->turn - tp + x->turn_tp - 1 || first == lowest;
}

/* Which ranks do turns not take to each other? */
static void find_turns (struct exact *x)
{
    const struct workload_degrees *d = &x->c->deg;
    int slot = d->tp * d->cp, experts = d->ep * d->etp;
    int together = workload_shard_copies (x->c) > 1 ? slot * x->c->shard : slot;

    if (x->pool->n_nodes > 1 && x->pool->max_node_gpus > 1)
        return;
    x->turn = slot;
    while (x->turn % experts != 0 || x->turn % together != 0)
        x->turn += slot;
    x->turn_tp = d->etp == d->tp ? 1 : d->tp;
}

/* Are so many placements left with these first ranks that their beginning is worth a price? */
static bool are_many (const struct exact *x, int ranks)
{
    long ways = 1;

    for (int k = ranks; k < x->world && ways < MANY; k++)
        ways *= x->n - k;
    return ways >= MANY;
}

/* Is every placement with these first ranks slower than what is known?  Asked where a slot is
 * whole. */
static bool is_slower (struct exact *x, int ranks, bool runs)
{
    const struct workload_degrees *d = &x->c->deg;
    double known_s = 0.0;

    if (ranks == 0 || ranks % (d->tp * d->cp) != 0 || !are_many (x, ranks))
        return false;
    for (int free = !runs; free <= 1; free++) {
        const struct costmodel_price *best = (free ? x->any : x->by_node)->price;

        known_s = fmax (known_s, best->unmeasured > 0 ? INFINITY : best->step_s);
    }
    return isfinite (known_s) &&
           costmodel_state_begun_s (x->state, x->gpu, ranks) > known_s * (1.0 + ROUNDING);
}

static void place_rank (struct exact *x, int r, bool runs)
{
    if (is_slower (x, r, runs))
        return;
    if (r == x->world) {
        leaf (x, runs);
        return;
    }
    for (int k = 0; k < x->n; k++) {
        int g = x->sorted[k], q = x->pool->class_of_gpu[g];
        bool skip = x->used[k] || !x->allowed[r / x->per_stage * x->pool->n_classes + q];

        for (int j = 0; j < k && !skip; j++)
            skip = !x->used[j] && x->alike[j][k];
        if (skip || needs_node (x, r, g))
            continue;
        if (x->turn > 0 && r < x->per_stage && !keeps_lowest (x, r, g))
            continue;
        x->used[k] = true;
        x->gpu[r] = g;
        place_rank (x, r + 1, runs && !breaks_run (x, r, g));
        x->used[k] = false;
    }
}

bool place_tries_all (const struct pool *pool)
{
    return pool->all_gpus <= EXACT_GPUS_MAX;
}

/* GPUs of a node from its k-th on that are alike. */
static int alike_from (const struct topology_cluster *c, const struct topology_node *n,
                       int k)
{
    int alike = 1;

    while (k + alike < n->gpus &&
           interchangeable (c, n->first_gpu + k, n->first_gpu + k + alike))
        alike++;
    return alike;
}

/* ways[w] counts the sequences of w GPUs, alike ones taken once: those of each kind are a
 * factor 1 + x + x^2/2! + ... + x^s/s! of a polynomial, whose coefficients are ways[w] / w!. */
bool exact_is_few (const struct pool *pool, int world)
{
    const struct topology_cluster *c = pool->problem->cluster;
    double part[FEW_GPUS_MAX + 1] = {1}, ways = 1;

    if (pool->all_gpus > FEW_GPUS_MAX)
        return false;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *node = &c->node[pool->node[i]];

        for (int k = 0, alike; k < node->gpus; k += alike) {
            alike = alike_from (c, node, k);
            for (int w = world; w > 0; w--) {
                double term = 1;

                for (int j = 1; j <= alike && j <= w; j++)
                    part[w] += part[w - j] * (term /= j);
            }
        }
    }
    for (int w = 1; w <= world; w++)
        ways *= w;
    return ways * part[world] <= FEW_PLACEMENTS;
}

long exact_search (const struct pool *pool, struct costmodel_state *state,
                   const struct workload_config *c, const bool *allowed, const int *gpu,
                   int n, struct exact_best *by_node, struct exact_best *any)
{
    int most = pool->problem->max_nodes;
    struct exact x = {.pool = pool,
                      .state = state,
                      .c = c,
                      .allowed = allowed,
                      .n = n,
                      .world = (int) workload_world (&c->deg),
                      .most_nodes = most > 0 ? most : n,
                      .by_node = by_node,
                      .any = any};

    x.per_stage = x.world / c->deg.pp;
    find_turns (&x);
    memcpy (x.sorted, gpu, (size_t) n * sizeof (int));
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            x.alike[a][b] = a != b && interchangeable (pool->problem->cluster,
                                                       x.sorted[a], x.sorted[b]);
    place_rank (&x, 0, true);
    return x.placements;
}
