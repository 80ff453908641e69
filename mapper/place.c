/* One configuration, placed: layers to stages, groups to nodes, then improved.
 *
 * A layout says which slots (TP x CP groups) share a node: `depth` consecutive stages of
 * as many replicas as fit beside them.  Depth 1 is Megatron's: every node gets consecutive
 * ranks.  A sequence of nodes fills the layout's blocks.  Starts are Megatron's order and,
 * for every layout, the nodes in file order, the best-linked ones first (the worst are left
 * idle when there are more than needed), and, where classes of GPUs differ, nodes sorted
 * to the stages that need them.  From the best start of node-wise and of free layouts
 * whole nodes are exchanged, then single TP groups, then single GPUs, by simulated
 * annealing on a counted number of moves.  Pools of up to EXACT_GPUS_MAX GPUs are
 * enumerated instead. */
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* A placement, how its GPUs are blocked into nodes, and its price. */
struct candidate {
    int *gpu; /* [n] ranks first, then idle GPUs */
    int depth;
    struct costmodel_price price;
};

struct placer {
    const struct pool *pool;
    const struct groups *groups;
    const struct workload_config *c;
    int world, n, per_stage;
    int *layers, *class_of_stage; /* [pp] */
    bool *allowed;                /* [pp * n_classes] */
    struct costmodel_state *state;
    int *seq;      /* [n_nodes] nodes in the order in which they are filled */
    int *position; /* [n] the layout: the k-th GPU of the sequence goes to position[k] */
    int *order;    /* [n] scratch */
    struct rng rng;
};

/* ---- legality ---- */

static bool stage_may_use (const struct placer *x, int position, int gpu)
{
    return position >= x->world ||
           x->allowed[position / x->per_stage * x->pool->n_classes +
                      x->pool->class_of_gpu[gpu]];
}

static bool order_ok (const struct placer *x, const int *gpu)
{
    const int *node_of = x->pool->problem->cluster->node_of_gpu;
    int most = x->pool->problem->max_nodes, nodes = 0;

    for (int r = 0; r < x->world; r++)
        if (!stage_may_use (x, r, gpu[r]))
            return false;
    if (most == 0)
        return true;

    bool *seen = calloc ((size_t) x->pool->problem->cluster->n_nodes, sizeof *seen);

    for (int r = 0; r < x->world && seen; r++)
        if (!seen[node_of[gpu[r]]]) {
            seen[node_of[gpu[r]]] = true;
            nodes++;
        }
    free (seen);
    return nodes <= most;
}

/* Has every node consecutive ranks? */
static bool is_by_node (const struct placer *x, const int *gpu)
{
    const int *node_of = x->pool->problem->cluster->node_of_gpu;
    bool *closed = calloc ((size_t) x->pool->problem->cluster->n_nodes, sizeof *closed);
    bool ok = closed != NULL;

    for (int r = 0; r < x->world && ok; r++) {
        if (r > 0 && node_of[gpu[r]] != node_of[gpu[r - 1]])
            closed[node_of[gpu[r - 1]]] = true;
        ok = !closed[node_of[gpu[r]]];
    }
    free (closed);
    return ok;
}

/* ---- layouts ---- */

/* Slots that share the pool's largest node. */
static int slots_per_node (const struct placer *x)
{
    int n = x->pool->max_node_gpus / (x->c->deg.tp * x->c->deg.cp);

    return n > 1 ? n : 1;
}

/* Positions in the order in which a sequence of nodes fills them: stages in blocks of
 * `depth`, replicas in blocks of what then fits a node. */
static void make_layout (struct placer *x, int depth)
{
    const struct workload_degrees *d = &x->c->deg;
    int width = slots_per_node (x) / depth, slot = d->tp * d->cp, at = 0;

    if (depth == 1)
        width = d->dp; /* ranks in their own order */
    for (int i0 = 0; i0 < d->pp; i0 += depth)
        for (int d0 = 0; d0 < d->dp; d0 += width)
            for (int i = i0; i < i0 + depth && i < d->pp; i++)
                for (int k = d0; k < d0 + width && k < d->dp; k++)
                    for (int r = 0; r < slot; r++)
                        x->position[at++] = (i * d->dp + k) * slot + r;
    for (; at < x->n; at++)
        x->position[at] = at;
}

/* Fill the layout with the sequence's grouped GPUs, node by node; those left over come
 * last. */
static void fill_layout (struct placer *x, int *gpu)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    int at = 0;

    for (int i = 0; i < x->pool->n_nodes; i++)
        for (int k = 0; k < x->groups->grouped[x->seq[i]]; k++)
            gpu[x->position[at++]] = x->groups->gpu[c->node[x->seq[i]].first_gpu + k];
    for (int i = 0; i < x->pool->n_nodes; i++)
        for (int k = x->groups->grouped[x->seq[i]]; k < c->node[x->seq[i]].gpus; k++)
            gpu[x->position[at++]] = x->groups->gpu[c->node[x->seq[i]].first_gpu + k];
}

/* ---- starts ---- */

/* Price a placement; keep it when it is legal and better. */
static void try_order (struct placer *x, const int *gpu, int depth,
                       struct candidate *best)
{
    struct costmodel_price price;

    if (!order_ok (x, gpu))
        return;
    costmodel_state_reset (x->state, gpu);
    price = costmodel_state_price (x->state);
    if (price_less (&price, &best->price)) {
        best->price = price;
        best->depth = depth;
        memcpy (best->gpu, gpu, (size_t) x->n * sizeof (int));
    }
}

static void try_sequence (struct placer *x, int depth, struct candidate *best)
{
    fill_layout (x, x->order);
    try_order (x, x->order, depth, best);
}

struct ranked_node {
    int node;
    double badness; /* lower first */
};

static int by_badness (const void *a, const void *b)
{
    const struct ranked_node *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness < y->badness ? -1 : 1;
    return x->node - y->node;
}

static int slowest_class (const struct pool *pool, int node)
{
    const struct topology_node *n = &pool->problem->cluster->node[node];
    int q = 0;

    for (int k = 0; k < n->gpus; k++)
        if (pool->class_of_gpu[n->first_gpu + k] > q)
            q = pool->class_of_gpu[n->first_gpu + k];
    return q;
}

/* How slow a node's links are: the sum of the inverse bandwidths to and from the other
 * nodes, an unmeasured link counting ten times; before that its GPUs' class, and before
 * all its size when only so many nodes may be used. */
static double node_badness (const struct pool *pool, int node)
{
    const struct topology_cluster *c = pool->problem->cluster;
    double sum = 0.0;

    for (int i = 0; i < pool->n_nodes; i++) {
        int other = pool->node[i];
        int a = c->node[node].first_gpu, b = c->node[other].first_gpu;

        if (other == node)
            continue;

        struct topology_link there = topology_link (c, a, b),
                             back = topology_link (c, b, a);

        sum +=
            there.bytes_per_s > 0 ? (there.measured ? 1 : 10) / there.bytes_per_s : 1.0;
        sum += back.bytes_per_s > 0 ? (back.measured ? 1 : 10) / back.bytes_per_s : 1.0;
    }
    if (pool->problem->max_nodes > 0)
        sum += 1e9 * CLASSES_MAX * (pool->max_node_gpus - c->node[node].gpus);
    return slowest_class (pool, node) * 1e9 + sum;
}

/* Best-linked nodes first. */
static void sequence_by_links (struct placer *x, const struct ranked_node *ranked)
{
    for (int i = 0; i < x->pool->n_nodes; i++)
        x->seq[i] = ranked[i].node;
}

/* The nodes that sequence_by_links would use, in file order. */
static void sequence_best_in_file_order (struct placer *x,
                                         const struct ranked_node *ranked)
{
    int used = 0;

    for (int at = 0; used < x->pool->n_nodes && at < x->world; used++)
        at += x->groups->grouped[ranked[used].node];
    sequence_by_links (x, ranked);
    for (int i = 1; i < used; i++) { /* by insertion: mostly in order already */
        int node = x->seq[i], k = i;

        for (; k > 0 && x->seq[k - 1] > node; k--)
            x->seq[k] = x->seq[k - 1];
        x->seq[k] = node;
    }
}

/* Nodes to the stages that need them: each stage in turn takes nodes of the slowest class
 * that it may use. */
static void sequence_by_class (struct placer *x)
{
    const struct pool *pool = x->pool;
    const struct topology_cluster *c = pool->problem->cluster;
    bool *taken = calloc ((size_t) c->n_nodes, sizeof *taken);

    for (int used = 0, at = 0; used < pool->n_nodes && taken; used++) {
        int stage = at < x->world ? x->position[at] / x->per_stage : x->c->deg.pp - 1;
        int pick = -1, pick_class = -1;

        for (int i = 0; i < pool->n_nodes; i++) {
            int node = pool->node[i], q = slowest_class (pool, node);
            bool may = !taken[node];

            for (int k = 0; k < c->node[node].gpus && at < x->world; k++)
                may = may && x->allowed[stage * pool->n_classes +
                                        pool->class_of_gpu[c->node[node].first_gpu + k]];
            if (may && q > pick_class) {
                pick = node;
                pick_class = q;
            }
        }
        for (int i = 0; i < pool->n_nodes && pick < 0; i++) /* none may: keep it whole */
            if (!taken[pool->node[i]])
                pick = pool->node[i];
        taken[pick] = true;
        x->seq[used] = pick;
        at += x->groups->grouped[pick];
    }
    free (taken);
}

/* Every sequence in one layout. */
static void try_layout (struct placer *x, int depth, const struct ranked_node *ranked,
                        struct candidate *best)
{
    make_layout (x, depth);
    memcpy (x->seq, x->pool->node, (size_t) x->pool->n_nodes * sizeof (int));
    try_sequence (x, depth, best);
    if (!x->pool->all_alike) {
        sequence_by_links (x, ranked);
        try_sequence (x, depth, best);
        sequence_best_in_file_order (x, ranked);
        try_sequence (x, depth, best);
    }
    if (x->pool->n_classes > 1) {
        sequence_by_class (x);
        try_sequence (x, depth, best);
    }
}

/* The best start with consecutive ranks on every node, and the best in any layout. */
static enum status try_starts (struct placer *x, bool free_layouts,
                               struct candidate *by_node, struct candidate *any,
                               struct error *err)
{
    struct ranked_node *ranked = calloc ((size_t) x->pool->n_nodes, sizeof *ranked);

    if (!ranked)
        return err_nomem (err);
    for (int i = 0; i < x->pool->n_nodes; i++)
        ranked[i] = (struct ranked_node){x->pool->node[i],
                                         node_badness (x->pool, x->pool->node[i])};
    qsort (ranked, (size_t) x->pool->n_nodes, sizeof *ranked, by_badness);
    /* Megatron's order counts among the node-wise ones: it fills node after node. */
    default_order (x->pool, x->order);
    try_order (x, x->order, 0, by_node);
    try_layout (x, 1, ranked, by_node);
    *any = (struct candidate){any->gpu, by_node->depth, by_node->price};
    memcpy (any->gpu, by_node->gpu, (size_t) x->n * sizeof (int));
    for (int depth = 2;
         free_layouts && depth <= slots_per_node (x) && depth <= x->c->deg.pp; depth++)
        if (slots_per_node (x) % depth == 0)
            try_layout (x, depth, ranked, any);
    free (ranked);
    return ST_OK;
}

/* ---- annealing ---- */

static double energy (const struct costmodel_price *p)
{
    return p->smooth_s * (1.0 + 0.1 * p->unmeasured);
}

/* What a move exchanges: positions a[k] with b[k]. */
struct move {
    int a[TOPOLOGY_NODE_GPUS_MAX], b[TOPOLOGY_NODE_GPUS_MAX];
    int n; /* 0: an idle draw */
};

static bool move_legal (const struct placer *x, const struct move *m)
{
    const int *gpu = costmodel_state_gpus (x->state);

    if (x->pool->n_classes == 1)
        return true;
    for (int k = 0; k < m->n; k++)
        if (!stage_may_use (x, m->a[k], gpu[m->b[k]]) ||
            !stage_may_use (x, m->b[k], gpu[m->a[k]]))
            return false;
    return true;
}

/* Two nodes of one size change places, whole blocks of the layout. */
static void draw_nodes (struct placer *x, struct move *m)
{
    int i = rng_below (&x->rng, x->pool->n_nodes),
        k = rng_below (&x->rng, x->pool->n_nodes);
    int first_i = 0, first_k = 0, size = x->groups->grouped[x->seq[i]];

    m->n = 0;
    if (i == k || size != x->groups->grouped[x->seq[k]])
        return;
    for (int j = 0; j < i; j++)
        first_i += x->groups->grouped[x->seq[j]];
    for (int j = 0; j < k; j++)
        first_k += x->groups->grouped[x->seq[j]];
    if (first_i >= x->world && first_k >= x->world)
        return;
    for (; m->n < size; m->n++) {
        m->a[m->n] = x->position[first_i + m->n];
        m->b[m->n] = x->position[first_k + m->n];
    }
}

/* Two aligned runs of `step` positions change places; only those below `reach` may. */
static void draw_runs (struct placer *x, int step, int reach, struct move *m)
{
    int a = rng_below (&x->rng, x->world / step) * step;
    int b = rng_below (&x->rng, reach / step) * step;

    for (m->n = 0; a != b && m->n < step; m->n++) {
        m->a[m->n] = a + m->n;
        m->b[m->n] = b + m->n;
    }
}

enum unit { UNIT_NODE, UNIT_GROUP, UNIT_GPU };

/* With a limit on nodes, idle GPUs elsewhere must stay idle. */
static int reach_of (const struct placer *x)
{
    if (x->pool->problem->max_nodes > 0 && x->pool->problem->max_nodes < x->pool->n_nodes)
        return x->world;
    return x->n / x->c->deg.tp * x->c->deg.tp;
}

/* Anneal from the candidate; it receives what is better. */
static void anneal (struct placer *x, enum unit unit, int moves, struct candidate *best)
{
    struct costmodel_price now;
    struct move m;
    int step = unit == UNIT_GROUP ? x->c->deg.tp : 1, reach = reach_of (x);
    double hot, cold, here;

    costmodel_state_reset (x->state, best->gpu);
    now = costmodel_state_price (x->state);
    here = energy (&now);
    if (!isfinite (here))
        return;
    hot = 1e-3 * here;
    cold = 1e-7 * here;
    for (int i = 0; i < moves; i++) {
        double temperature = hot * pow (cold / hot, (double) i / moves);

        if (unit == UNIT_NODE)
            draw_nodes (x, &m);
        else
            draw_runs (x, step, reach, &m);
        if (m.n == 0 || m.n > TOPOLOGY_NODE_GPUS_MAX || !move_legal (x, &m))
            continue;
        costmodel_state_exchange (x->state, m.a, m.b, m.n);
        now = costmodel_state_price (x->state);

        double there = energy (&now);

        if (there <= here || rng_unit (&x->rng) < exp ((here - there) / temperature)) {
            here = there;
            if (price_less (&now, &best->price)) {
                best->price = now;
                memcpy (best->gpu, costmodel_state_gpus (x->state),
                        (size_t) x->n * sizeof (int));
            }
        } else {
            costmodel_state_exchange (x->state, m.a, m.b, m.n);
        }
    }
}

/* Find the sequence of nodes of a candidate that came from a layout, idle nodes last;
 * false when the candidate is not that layout filled node by node. */
static bool sequence_of (struct placer *x, const struct candidate *k)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    bool *taken = calloc ((size_t) c->n_nodes, sizeof *taken);
    int n = 0;

    if (!taken)
        return false;
    make_layout (x, k->depth > 0 ? k->depth : 1);
    for (int r = 0; r < x->world; r++) {
        int node = c->node_of_gpu[k->gpu[x->position[r]]];

        if (!taken[node]) {
            taken[node] = true;
            x->seq[n++] = node;
        }
    }
    for (int i = 0; i < x->pool->n_nodes; i++)
        if (!taken[x->pool->node[i]])
            x->seq[n++] = x->pool->node[i];
    free (taken);
    fill_layout (x, x->order);
    for (int r = 0; r < x->world; r++)
        if (x->order[r] != k->gpu[r])
            return false;
    return true;
}

static void improve_by_node (struct placer *x, int moves, struct candidate *k)
{
    if (x->pool->all_alike || x->pool->n_nodes == 1 || !isfinite (k->price.step_s) ||
        !sequence_of (x, k))
        return;
    /* Idle GPUs in the layout's own places, so that whole blocks can be exchanged. */
    memcpy (k->gpu, x->order, (size_t) x->n * sizeof (int));
    anneal (x, UNIT_NODE, moves, k);
}

/* Can two GPUs of one node differ? */
static bool single_gpus_matter (const struct placer *x)
{
    const struct topology_cluster *c = x->pool->problem->cluster;

    if (c->has_gpu_links)
        return true;
    for (int i = 0; i < x->pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[x->pool->node[i]];

        if (n->speed || (n->gpus > 1 && n->intra->bytes_per_s.n > 0))
            return true;
    }
    return false;
}

static void improve_by_gpu (struct placer *x, int moves, struct candidate *k)
{
    if (x->world == 1 || !isfinite (k->price.step_s))
        return;
    anneal (x, UNIT_GROUP, moves, k);
    if (single_gpus_matter (x))
        anneal (x, UNIT_GPU, moves, k);
}

/* ---- all together ---- */

/* TP x CP groups of each class, a group counting as its slowest GPU. */
static void count_slots (const struct pool *pool, const struct groups *g,
                         const struct workload_config *c, int *slots)
{
    const struct topology_cluster *cl = pool->problem->cluster;

    memset (slots, 0, CLASSES_MAX * sizeof *slots);
    for (int i = 0; i < pool->n_nodes; i++) {
        int node = pool->node[i], first = cl->node[node].first_gpu;

        for (int k = 0; k + c->deg.tp <= g->grouped[node]; k += c->deg.tp) {
            int q = 0;

            for (int y = 0; y < c->deg.tp; y++) {
                int class = pool->class_of_gpu[g->gpu[first + k + y]];

                q = class > q ? class : q;
            }
            slots[q]++;
        }
    }
    for (int q = 0; q < pool->n_classes; q++)
        slots[q] /= c->deg.cp;
}

static enum status create_state (struct placer *x, struct error *err)
{
    const struct mapper_problem *p = x->pool->problem;
    struct costmodel_problem problem = {.model = p->model,
                                        .job = p->job,
                                        .config = x->c,
                                        .profile = p->profile,
                                        .cluster = p->cluster,
                                        .layers = x->layers};

    default_order (x->pool, x->order);
    return costmodel_state_create (&problem, x->order, x->n, &x->state, err);
}

static enum status placer_init (struct placer *x, struct error *err)
{
    int pp = x->c->deg.pp, classes = x->pool->n_classes, slots[CLASSES_MAX];
    size_t all = 0;
    int *caps = malloc ((size_t) pp * (size_t) classes * sizeof (int));
    enum status st;

    for (int i = 0; i < x->pool->n_nodes; i++)
        all += (size_t) x->pool->problem->cluster->node[x->pool->node[i]].gpus;
    x->n = (int) all;
    x->world = (int) workload_world (&x->c->deg);
    x->per_stage = x->world / pp;
    x->layers = malloc ((size_t) pp * sizeof (int));
    x->class_of_stage = calloc ((size_t) pp, sizeof (int));
    x->allowed = calloc ((size_t) pp * (size_t) classes, sizeof (bool));
    x->seq = malloc ((size_t) x->pool->n_nodes * sizeof (int));
    x->position = malloc (all * sizeof (int));
    x->order = malloc (all * sizeof (int));
    st = caps && x->layers && x->class_of_stage && x->allowed && x->seq && x->position &&
                 x->order
             ? ST_OK
             : err_nomem (err);
    if (st == ST_OK) {
        count_slots (x->pool, x->groups, x->c, slots);
        st = stages_split (x->pool, x->c, slots, x->layers, x->class_of_stage, err);
    }
    if (st == ST_OK) {
        memory_fits (x->pool, x->c, caps);
        for (int i = 0; i < pp; i++)
            for (int q = 0; q < classes; q++)
                x->allowed[i * classes + q] =
                    q <= x->class_of_stage[i] && caps[q * pp + i] >= x->layers[i];
        st = create_state (x, err);
    }
    free (caps);
    return st;
}

static void placer_release (struct placer *x)
{
    free (x->layers);
    free (x->class_of_stage);
    free (x->allowed);
    free (x->seq);
    free (x->position);
    free (x->order);
    costmodel_state_destroy (x->state);
}

/* Moves per unit and configuration: enough for the price to settle on 16 to 128 groups. */
static int moves_for (const struct placer *x, int effort)
{
    int units = x->pool->n_nodes < 256 ? x->pool->n_nodes : 256;

    return effort * (20 + 4 * units);
}

static void improve (struct placer *x, const struct mapper_settings *s, int effort,
                     struct candidate *by_node, struct candidate *any)
{
    int moves = moves_for (x, effort);

    if (x->n <= EXACT_GPUS_MAX) {
        exact_search (x->pool, x->state, x->c, x->allowed, x->n, true, by_node->gpu,
                      &by_node->price);
        exact_search (x->pool, x->state, x->c, x->allowed, x->n, false, any->gpu,
                      &any->price);
        return;
    }
    improve_by_node (x, moves, by_node);
    if (s->granularity == MAPPER_NODE)
        return;
    if (any->depth > 1)
        improve_by_node (x, moves, any);
    if (price_less (&by_node->price, &any->price)) {
        any->price = by_node->price;
        any->depth = by_node->depth;
        memcpy (any->gpu, by_node->gpu, (size_t) x->n * sizeof (int));
    }
    improve_by_gpu (x, moves, any);
}

/* The better of node-wise and free placement, as the granularity asks. */
static void choose (const struct placer *x, const struct mapper_settings *s,
                    const struct candidate *by_node, const struct candidate *any,
                    struct placed *out)
{
    bool single = s->granularity == MAPPER_GPU;
    const struct candidate *pick;

    /* Over 0.5 %, or a link fewer that nobody measured. */
    if (s->granularity == MAPPER_AUTO)
        single = any->price.unmeasured < by_node->price.unmeasured ||
                 any->price.step_s < by_node->price.step_s * (1.0 - 0.005);
    pick = single ? any : by_node;
    out->price = pick->price;
    out->granularity = is_by_node (x, pick->gpu) ? MAPPER_NODE : MAPPER_GPU;
    out->node_step_s = by_node->price.step_s;
    out->gpu_step_s = any->price.step_s;
    memcpy (out->gpu, pick->gpu, (size_t) x->world * sizeof (int));
}

enum status place_config (const struct pool *pool, const struct groups *g,
                          const struct workload_config *c,
                          const struct mapper_settings *s, int effort, unsigned long seed,
                          struct placed *out, struct error *err)
{
    const struct costmodel_price none = {.unmeasured = 1 << 30, .step_s = INFINITY};
    struct placer x = {.pool = pool, .groups = g, .c = c, .rng = {seed}};
    struct candidate by_node = {.price = none}, any = {.price = none};
    struct placed result = {0};
    enum status st = placer_init (&x, err);

    if (st == ST_OK) {
        by_node.gpu = malloc ((size_t) x.n * sizeof (int));
        any.gpu = malloc ((size_t) x.n * sizeof (int));
        result.gpu = malloc ((size_t) x.world * sizeof (int));
        if (!by_node.gpu || !any.gpu || !result.gpu)
            st = err_nomem (err);
    }
    if (st == ST_OK) {
        /* Something to copy even where no start is legal. */
        default_order (pool, by_node.gpu);
        st = try_starts (&x, s->granularity != MAPPER_NODE, &by_node, &any, err);
    }
    if (st == ST_OK) {
        improve (&x, s, effort, &by_node, &any);
        choose (&x, s, &by_node, &any, &result);
        if (!isfinite (result.price.step_s))
            st = err_set (err, ST_NOFIT, "the GPUs are not connected");
    }
    if (st == ST_OK) {
        result.layers = x.layers;
        x.layers = NULL;
        *out = result;
    } else
        placed_release (&result);
    free (by_node.gpu);
    free (any.gpu);
    placer_release (&x);
    return st;
}

void placed_release (struct placed *x)
{
    free (x->layers);
    free (x->gpu);
    *x = (struct placed){0};
}
