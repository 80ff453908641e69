/* Starting placements of one configuration.
 *
 * A layout says which slots (TP x CP groups) share a node: `depth` stages in a row of as
 * many replicas as fit beside them.  Depth 1 is Megatron's: every node gets consecutive
 * ranks.  Where layers were split for several classes of GPUs, the row may also be of the
 * stages by class, those for the slowest first, so that stages alike share nodes.  Replicas that
 * hold copies of one shard may come together, in the place of those that share one copy.
 *
 * A sequence of nodes fills the layout's blocks, GPUs of the slower classes last where the
 * faster suffice.  Starts are Megatron's order and, for every layout, the nodes in the
 * pool's order, the best-linked ones first, nodes grown from a seed by their links to those
 * already taken, and, where classes of GPUs differ, nodes sorted to the stages that need them,
 * these once more with TP groups exchanged between stages of unlike speed, and the nodes with
 * the most memory first.
 *
 * Memory is the only law.  Which stages may use which class is nested (more memory serves
 * every stage that less memory serves), so an order is put right by settling the neediest
 * stages first, each with any GPU that is large enough and not settled yet: that finds a
 * legal order whenever the nodes at hand have one. */
#include "mapper/place/place_private.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROWN_SEEDS 4   /* nodes from which sequences are grown */
#define GROWN_NODES 256 /* in pools of up to so many */

/* ---- legality ---- */

/* May this position hold the GPU: memory, and the nodes that may hold ranks? */
static bool fits_at (const struct placer *x, int position, int gpu)
{
    return position >= x->world ||
           (x->chosen[x->pool->problem->cluster->node_of_gpu[gpu]] &&
            stage_may_use (x, position, gpu));
}

static bool order_ok (const struct placer *x, const int *gpu)
{
    for (int r = 0; r < x->world; r++)
        if (!fits_at (x, r, gpu[r]))
            return false;
    return true;
}

/* How many classes a stage may use: fewer is needier, and the sets are nested. */
static int choices_of (const struct placer *x, int stage)
{
    int n = 0;

    for (int q = 0; q < x->pool->n_classes; q++)
        n += x->allowed[stage * x->pool->n_classes + q];
    return n;
}

/* Give the stage's illegal positions GPUs that are not settled: first by exchanges that
 * leave both ends legal, then by any. */
static void settle_stage (struct placer *x, int stage, int *gpu, bool *settled)
{
    int first = stage * x->per_stage, end = first + x->per_stage;

    for (int r = first; r < end; r++)
        settled[r] = fits_at (x, r, gpu[r]);
    for (int both = 1; both >= 0; both--) {
        int s = x->n - 1;

        for (int r = first; r < end; r++) {
            while (!settled[r] && s >= 0 &&
                   (settled[s] || !fits_at (x, r, gpu[s]) ||
                    (both && !fits_at (x, s, gpu[r]))))
                s--;
            if (settled[r] || s < 0)
                continue;

            int other = gpu[s];

            gpu[s] = gpu[r];
            gpu[r] = other;
            settled[r] = true;
        }
    }
}

/* Put an order right, the neediest stages first.  @return was anything moved? */
static bool repair (struct placer *x, int *gpu)
{
    bool *settled = x->mark;

    if (order_ok (x, gpu))
        return false;
    memset (settled, 0, (size_t) x->n * sizeof *settled);
    for (int choices = 0; choices <= x->pool->n_classes; choices++)
        for (int i = 0; i < x->c->deg.pp; i++)
            if (choices_of (x, i) == choices)
                settle_stage (x, i, gpu, settled);
    return true;
}

/* ---- layouts ---- */

int slots_per_node (const struct placer *x)
{
    int n = x->pool->max_node_gpus / (x->c->deg.tp * x->c->deg.cp);

    return n > 1 ? n : 1;
}

/* The stages as they are, or those for the slower classes first. */
static void order_stages (struct placer *x)
{
    int at = 0;

    if (!x->layout.by_class)
        for (int i = 0; i < x->c->deg.pp; i++)
            x->stage_at[i] = i;
    for (int q = x->pool->n_classes - 1; x->layout.by_class && q >= 0; q--)
        for (int i = 0; i < x->c->deg.pp; i++)
            if (x->class_of_stage[i] == q)
                x->stage_at[at++] = i;
}

/* The k-th replica of the layout in hand. */
static int replica_at (const struct placer *x, int k)
{
    int copies = workload_shard_copies (x->c);

    return x->layout.by_shard ? k % copies * (x->c->deg.dp / copies) + k / copies : k;
}

/* Positions in the order in which a sequence of nodes fills them: stages in blocks of
 * `depth`, replicas in blocks of what then fits a node. */
static void make_layout (struct placer *x, int depth)
{
    const struct workload_degrees *d = &x->c->deg;
    int width = slots_per_node (x) / depth, slot = d->tp * d->cp, at = 0;

    if (depth == 1)
        width = d->dp; /* ranks in their own order */
    order_stages (x);
    for (int i0 = 0; i0 < d->pp; i0 += depth)
        for (int d0 = 0; d0 < d->dp; d0 += width)
            for (int i = i0; i < i0 + depth && i < d->pp; i++)
                for (int k = d0; k < d0 + width && k < d->dp; k++)
                    for (int r = 0; r < slot; r++)
                        x->position[at++] =
                            (x->stage_at[i] * d->dp + replica_at (x, k)) * slot + r;
    for (; at < x->n; at++)
        x->position[at] = at;
    for (int i = 0; i < d->pp; i++)
        for (int r = 0; r < x->per_stage && is_shared (x, i); r++)
            x->position[i * x->per_stage + r] = i * x->per_stage + shared_rank (x, r);
}

/* GPUs that are placed together. */
static int unit_of (const struct placer *x)
{
    return x->c->deg.tp > x->pool->max_node_gpus ? 1 : x->c->deg.tp;
}

/* Place a node's groups at the next positions as far as they may go there; the others
 * are late.  @return the next position's index */
static int fill_node (struct placer *x, int i, int at, int *n_late, int *gpu)
{
    int node = x->layout.seq[i], unit = unit_of (x);
    const int *g = x->groups->gpu + x->pool->problem->cluster->node[node].first_gpu;
    int late = *n_late;

    x->block_first[i] = at;
    for (int k = 0; k + unit <= x->groups->grouped[node]; k += unit) {
        bool now = pool_slowest_class (x->pool, g + k, unit) <= x->layout.upto;

        for (int y = 0; y < unit && now; y++)
            now = at + y >= x->world || fits_at (x, x->position[at + y], g[k + y]);
        for (int y = 0; y < unit; y++) {
            if (now)
                gpu[x->position[at++]] = g[k + y];
            else
                x->late[late++] = g[k + y];
        }
    }
    x->block_n[i] = at - x->block_first[i];
    if (x->block_n[i] == 0) { /* counted from the end of what is placed now */
        x->block_first[i] = -1 - *n_late;
        x->block_n[i] = late - *n_late;
    }
    *n_late = late;
    return at;
}

void layout_fill (struct placer *x, bool *straight)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    const struct layout *l = &x->layout;
    int at = 0, n_late = 0, grouped;

    make_layout (x, l->depth);
    for (int i = 0; i < x->pool->n_nodes; i++)
        x->chosen[l->seq[i]] =
            !pool_nodes_limited (x->pool) || i < x->pool->problem->max_nodes;
    for (int i = 0; i < x->pool->n_nodes; i++)
        at = fill_node (x, i, at, &n_late, x->order);
    grouped = at;
    for (int k = 0; k < n_late; k++)
        x->order[x->position[at++]] = x->late[k];
    for (int i = 0; i < x->pool->n_nodes; i++) {
        if (x->block_first[i] < 0)
            x->block_first[i] = grouped - 1 - x->block_first[i];
        for (int k = x->groups->grouped[l->seq[i]]; k < c->node[l->seq[i]].gpus; k++)
            x->order[x->position[at++]] =
                x->groups->gpu[c->node[l->seq[i]].first_gpu + k];
    }
    *straight = !repair (x, x->order);
}

/* ---- starts ---- */

struct starts {
    struct candidate *by_node, *any;
};

struct costmodel_price price_order (struct placer *x, const int *gpu,
                                    struct costmodel_price than)
{
    than.smooth_s = INFINITY;
    costmodel_state_limit (x->state, than);
    costmodel_state_reset (x->state, gpu);
    than.step_s = INFINITY;
    costmodel_state_limit (x->state, than);
    return costmodel_state_price (x->state);
}

/* Price the order in hand; keep it where it is legal and better. */
static void try_order (struct placer *x, const struct starts *s)
{
    struct costmodel_price price;
    struct candidate *keep[] = {s->any, s->by_node};
    int n_keep = pool_is_by_node (x->pool, x->order, x->world) ? 2 : 1;

    if (!order_ok (x, x->order) || !pool_pins_hold (x->pool, x->order, x->world))
        return;
    price = price_order (x, x->order, keep[n_keep - 1]->price);
    for (int i = 0; i < n_keep; i++)
        if (mapper_price_less (&price, &keep[i]->price))
            candidate_take (x, price, keep[i]);
}

/* The slowest class that the layers at a position were split for; idle GPUs may be of
 * any. */
static int wanted_at (const struct placer *x, int position)
{
    return position < x->world ? x->class_of_stage[position / x->per_stage]
                               : x->pool->n_classes - 1;
}

/* Exchange the units at two positions. */
static void exchange_units (struct placer *x, int a, int b)
{
    for (int y = 0; y < unit_of (x); y++) {
        int gpu = x->order[a + y];

        x->order[a + y] = x->order[b + y];
        x->order[b + y] = gpu;
    }
}

/* Where a unit is slower than its layers were split for, exchange it with one that is faster
 * than its own need, the last ones first: no sequence of whole nodes does so when stages of
 * unlike speed share nodes. */
static void try_by_speed (struct placer *x, const struct starts *s)
{
    int unit = unit_of (x), end = x->n / unit * unit;
    int at[CLASSES_MAX][CLASSES_MAX]; /* by classes wanted and held: what is after it will
                                         not do */
    bool straight;

    for (int q = 0; q < CLASSES_MAX; q++)
        for (int k = 0; k < CLASSES_MAX; k++)
            at[q][k] = end - unit;
    layout_fill (x, &straight);
    for (int a = 0; a < x->world; a += unit) {
        int wanted = wanted_at (x, a),
            held = pool_slowest_class (x->pool, x->order + a, unit);
        int *b = &at[wanted][held];

        if (held <= wanted)
            continue;
        while (*b >= 0 && (wanted_at (x, *b) < held ||
                           pool_slowest_class (x->pool, x->order + *b, unit) > wanted))
            *b -= unit;
        if (*b >= 0)
            exchange_units (x, a, *b);
    }
    try_order (x, s);
}

/* Are there enough GPUs in groups of classes up to this one, on the nodes that the
 * sequence allows? */
static bool enough_upto (const struct placer *x, int upto)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    int unit = unit_of (x), most = x->pool->n_nodes, have = 0;

    if (pool_nodes_limited (x->pool))
        most = x->pool->problem->max_nodes;
    for (int i = 0; i < most; i++) {
        const int *g = x->groups->gpu + c->node[x->layout.seq[i]].first_gpu;

        for (int k = 0; k + unit <= x->groups->grouped[x->layout.seq[i]]; k += unit)
            if (pool_slowest_class (x->pool, g + k, unit) <= upto)
                have += unit;
    }
    return have >= x->world;
}

/* Pinned nodes before the others, both in their order. */
static void pinned_first (struct placer *x)
{
    int at = 0;

    for (int i = 0; i < x->pool->n_nodes && at < x->pool->n_pinned; i++) {
        int node = x->layout.seq[i], k = i;

        if (!pool_is_pinned (x->pool, node))
            continue;
        for (; k > at; k--)
            x->layout.seq[k] = x->layout.seq[k - 1];
        x->layout.seq[at++] = node;
    }
}

/* The sequence in the layout, with as many of the slower classes left idle as can be. */
static void try_sequence (struct placer *x, const struct starts *s)
{
    bool straight;

    if (isfinite (s->any->price.step_s) && deadline_passed (x->deadline))
        return;
    pinned_first (x);
    for (int q = 0; q < x->pool->n_classes; q++) {
        if (q + 1 < x->pool->n_classes && !enough_upto (x, q))
            continue;
        x->layout.upto = q;
        layout_fill (x, &straight);
        try_order (x, s);
    }
}

struct ranked_node {
    int node, at;   /* at: in the pool */
    double badness; /* lower first */
};

static int by_badness (const void *a, const void *b)
{
    const struct ranked_node *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness < y->badness ? -1 : 1;
    return x->at - y->at;
}

/* How slow the pool's i-th node's links are; before that its GPUs' class, and before all
 * its size when only so many nodes may be used. */
static double node_badness (const struct pool *pool, int i)
{
    int node = pool->node[i];
    double sum = pool->badness[i];

    if (pool_nodes_limited (pool))
        sum += 1e9 * CLASSES_MAX *
               (pool->max_node_gpus - pool->problem->cluster->node[node].gpus);
    return pool_node_class (pool, node) * 1e9 + sum;
}

/* From a seed on, always the node with the best links to those taken. */
static enum status sequence_grown (struct placer *x, int seed, struct error *err)
{
    const struct pool *pool = x->pool;
    const struct topology_cluster *c = pool->problem->cluster;
    double *sum = calloc ((size_t) pool->n_nodes, sizeof *sum); /* INFINITY: taken */
    int next = 0;

    if (!sum)
        return err_nomem (err);
    for (int i = 0; i < pool->n_nodes; i++)
        if (pool->node[i] == seed)
            next = i;
    for (int used = 0; used < pool->n_nodes; used++) {
        int node = pool->node[next];

        x->layout.seq[used] = node;
        sum[next] = INFINITY;
        next = -1;
        for (int i = 0; i < pool->n_nodes; i++) {
            if (!isfinite (sum[i]))
                continue;
            /* The slowest of links may be infinitely bad, and is yet to be taken. */
            sum[i] = fmin (DBL_MAX, sum[i] + pool_link_badness (c, node, pool->node[i]) +
                                        pool_link_badness (c, pool->node[i], node));
            if (next < 0 || sum[i] < sum[next])
                next = i;
        }
    }
    free (sum);
    return ST_OK;
}

/* The largest memory first, then the largest nodes. */
static void sequence_by_memory (struct placer *x)
{
    const struct pool *pool = x->pool;
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i < pool->n_nodes; i++) { /* by insertion: equals as they are */
        int node = pool->node[i], k = i;

        for (; k > 0; k--) {
            const struct topology_node *a = &c->node[x->layout.seq[k - 1]],
                                       *b = &c->node[node];

            if (a->type->memory_bytes > b->type->memory_bytes ||
                (!(a->type->memory_bytes < b->type->memory_bytes) && a->gpus >= b->gpus))
                break;
            x->layout.seq[k] = x->layout.seq[k - 1];
        }
        x->layout.seq[k] = node;
    }
}

/* Nodes in order, those that are badly linked as a whole last: the last stages have
 * the most compute to hide their synchronisation under. */
static void sequence_poor_last (struct placer *x)
{
    const struct pool *pool = x->pool;
    int at = 0;

    for (int poor = 0; poor < 2; poor++)
        for (int i = 0; i < pool->n_nodes; i++)
            if ((pool->poorness[i] > 1.0) == poor)
                x->layout.seq[at++] = pool->node[i];
}

/* Nodes to the stages that need them: each stage in turn takes nodes of the slowest class
 * that may serve it, else what is left, badly linked ones last. */
static void sequence_by_class (struct placer *x)
{
    const struct pool *pool = x->pool;
    int next[CLASSES_MAX] = {0}; /* in late[], where the next node of a class may be */
    bool *taken = x->mark;
    int *from = x->late;

    sequence_poor_last (x);
    memcpy (from, x->layout.seq, (size_t) pool->n_nodes * sizeof *from);
    memset (taken, 0, (size_t) pool->problem->cluster->n_nodes * sizeof *taken);
    for (int used = 0, at = 0, first = 0; used < pool->n_nodes; used++) {
        int stage = at < x->world ? x->position[at] / x->per_stage : x->c->deg.pp - 1;
        int pick = -1;

        for (int q = pool->n_classes - 1; q >= 0 && pick < 0; q--) {
            /* Can they serve it, and are they as fast as its layers were split for? */
            if (!x->allowed[stage * pool->n_classes + q] || q > x->class_of_stage[stage])
                continue;
            while (next[q] < pool->n_nodes &&
                   (taken[from[next[q]]] || pool_node_class (pool, from[next[q]]) != q))
                next[q]++;
            pick = next[q] < pool->n_nodes ? from[next[q]] : -1;
        }
        while (taken[from[first]])
            first++;
        if (pick < 0) /* none may: keep the sequence whole */
            pick = from[first];
        taken[pick] = true;
        x->layout.seq[used] = pick;
        at += x->groups->grouped[pick];
    }
}

/* Every sequence in one layout. */
static enum status try_layout (struct placer *x, int depth,
                               const struct ranked_node *ranked, const struct starts *s,
                               struct error *err)
{
    const struct pool *pool = x->pool;
    int seeds = pool->n_nodes <= GROWN_NODES ? GROWN_SEEDS : 0;
    enum status st = ST_OK;

    x->layout.depth = depth;
    make_layout (x, depth);
    pool_sequence (pool, false, x->layout.seq);
    try_sequence (x, s);
    if (pool->all_alike)
        return ST_OK;
    for (int i = 0; i < pool->n_nodes; i++) /* best-linked ones first */
        x->layout.seq[i] = ranked[i].node;
    try_sequence (x, s);
    for (int i = 0; i < seeds && i < pool->n_nodes && st == ST_OK; i++) {
        st = sequence_grown (x, ranked[i].node, err);
        if (st == ST_OK)
            try_sequence (x, s);
    }
    if (pool->n_classes > 1) {
        sequence_by_class (x);
        try_sequence (x, s);
        try_by_speed (x, s);
        sequence_by_memory (x);
        try_sequence (x, s);
    }
    return st;
}

/* Megatron's order itself, whose TP groups are in index order: a plan is never worse.
 * Filling its sequence says which nodes may hold ranks. */
static enum status try_default (struct placer *x, const struct starts *s,
                                struct error *err)
{
    bool straight;
    enum status st;

    x->layout.depth = 1;
    x->layout.upto = x->pool->n_classes - 1;
    pool_sequence (x->pool, true, x->layout.seq);
    layout_fill (x, &straight);
    st = pool_default_order (x->pool, x->order, err);
    if (st == ST_OK) {
        repair (x, x->order);
        try_order (x, s);
    }
    return st;
}

/* Were layers split for more than one class? */
static bool classes_differ (const struct placer *x)
{
    for (int i = 1; i < x->c->deg.pp; i++)
        if (x->class_of_stage[i] != x->class_of_stage[0])
            return true;
    return false;
}

/* Layouts of several stages to a node, and those that bring stages for one class
 * together. */
static enum status try_layouts (struct placer *x, const struct ranked_node *ranked,
                                const struct starts *s, struct error *err)
{
    enum status st = ST_OK;
    int slots = slots_per_node (x);

    for (int by_class = 0; by_class <= classes_differ (x); by_class++)
        for (int depth = by_class ? 1 : 2;
             st == ST_OK && depth <= slots && depth <= x->c->deg.pp; depth++) {
            x->layout.by_class = by_class;
            if (slots % depth == 0)
                st = try_layout (x, depth, ranked, s, err);
        }
    x->layout.by_class = false;
    if (st == ST_OK && workload_shard_copies (x->c) > 1) {
        x->layout.by_shard = true;
        st = try_layout (x, 1, ranked, s, err);
        x->layout.by_shard = false;
    }
    return st;
}

enum status try_starts (struct placer *x, bool free_layouts, struct candidate *by_node,
                        struct candidate *any, struct error *err)
{
    struct starts s = {by_node, any};
    struct ranked_node *ranked = calloc ((size_t) x->pool->n_nodes, sizeof *ranked);
    enum status st;

    if (!ranked)
        return err_nomem (err);
    for (int i = 0; i < x->pool->n_nodes; i++)
        ranked[i] = (struct ranked_node){x->pool->node[i], i, node_badness (x->pool, i)};
    qsort (ranked, (size_t) x->pool->n_nodes, sizeof *ranked, by_badness);
    st = try_layout (x, 1, ranked, &s, err);
    if (st == ST_OK && free_layouts)
        st = try_layouts (x, ranked, &s, err);
    THEN (st, try_default (x, &s, err));
    free (ranked);
    return st;
}
