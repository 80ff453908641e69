/* One configuration, placed: layers to stages, groups to nodes, then improved.
 *
 * Starts are Megatron's order, the nodes in file order with their own TP groups, the same
 * with the worst-linked nodes last (left idle when there are more than needed), and, where
 * classes of GPUs differ, nodes sorted to the stages that need them.  From the best start
 * whole nodes are exchanged, then single TP groups, then single GPUs, by simulated
 * annealing on a counted number of moves.  Pools of up to EXACT_GPUS_MAX GPUs are
 * enumerated instead. */
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct placer {
    const struct pool *pool;
    const struct groups *groups;
    const struct workload_config *c;
    int world, n, per_stage;
    int *layers, *class_of_stage; /* [pp] */
    bool *allowed;                /* [pp * n_classes] */
    struct costmodel_state *state;
    int *seq;      /* [n_nodes] nodes in the order in which they are filled */
    int *offset;   /* [n_nodes] where each of seq begins in the order */
    int *order;    /* [n] GPUs, ranks first */
    int *best_gpu; /* [n] best node-wise placement */
    struct costmodel_price best;
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

/* Every node's ranks are consecutive. */
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

/* ---- starts ---- */

/* The order of GPUs that a sequence of nodes makes: grouped GPUs node by node, those left
 * over last. */
static void lay_out (struct placer *x)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    int at = 0;

    for (int i = 0; i < x->pool->n_nodes; i++) {
        int node = x->seq[i];

        x->offset[i] = at;
        for (int k = 0; k < x->groups->grouped[node]; k++)
            x->order[at++] = x->groups->gpu[c->node[node].first_gpu + k];
    }
    for (int i = 0; i < x->pool->n_nodes; i++) {
        int node = x->seq[i];

        for (int k = x->groups->grouped[node]; k < c->node[node].gpus; k++)
            x->order[at++] = x->groups->gpu[c->node[node].first_gpu + k];
    }
}

/* Price a placement; keep it when it is legal and better. */
static void try_order (struct placer *x, const int *gpu, int *best_gpu,
                       struct costmodel_price *best)
{
    struct costmodel_price price;

    if (!order_ok (x, gpu))
        return;
    costmodel_state_reset (x->state, gpu);
    price = costmodel_state_price (x->state);
    if (price_less (&price, best)) {
        *best = price;
        memcpy (best_gpu, gpu, (size_t) x->n * sizeof (int));
    }
}

struct ranked_node {
    int node, class;
    double badness; /* lower first */
};

static int by_badness (const void *a, const void *b)
{
    const struct ranked_node *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness < y->badness ? -1 : 1;
    return x->node - y->node;
}

/* How slow a node's links are: the sum of the inverse bandwidths to and from the other
 * nodes, an unmeasured link counting ten times; before that its GPUs' class, and before
 * all its size when only so many nodes may be used. */
static double node_badness (const struct placer *x, int node)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    double sum = 0.0;
    int q = 0;

    for (int k = 0; k < c->node[node].gpus; k++)
        if (x->pool->class_of_gpu[c->node[node].first_gpu + k] > q)
            q = x->pool->class_of_gpu[c->node[node].first_gpu + k];
    for (int i = 0; i < x->pool->n_nodes; i++) {
        int other = x->pool->node[i];
        int a = c->node[node].first_gpu, b = c->node[other].first_gpu;

        if (other == node)
            continue;

        struct topology_link there = topology_link (c, a, b),
                             back = topology_link (c, b, a);

        sum +=
            there.bytes_per_s > 0 ? (there.measured ? 1 : 10) / there.bytes_per_s : 1.0;
        sum += back.bytes_per_s > 0 ? (back.measured ? 1 : 10) / back.bytes_per_s : 1.0;
    }
    if (x->pool->problem->max_nodes > 0)
        sum += 1e9 * CLASSES_MAX * (x->pool->max_node_gpus - c->node[node].gpus);
    return q * 1e9 + sum;
}

/* Best-linked nodes first. */
static void sequence_by_links (struct placer *x, struct ranked_node *ranked)
{
    for (int i = 0; i < x->pool->n_nodes; i++)
        ranked[i] = (struct ranked_node){.node = x->pool->node[i],
                                         .badness = node_badness (x, x->pool->node[i])};
    qsort (ranked, (size_t) x->pool->n_nodes, sizeof *ranked, by_badness);
    for (int i = 0; i < x->pool->n_nodes; i++)
        x->seq[i] = ranked[i].node;
}

/* The nodes that sequence_by_links would use, in file order. */
static void sequence_best_in_file_order (struct placer *x, struct ranked_node *ranked)
{
    int used = 0;

    for (int at = 0; used < x->pool->n_nodes && at < x->world; used++)
        at += x->groups->grouped[ranked[used].node];
    for (int i = 0; i < used; i++)
        ranked[i].badness = ranked[i].node;
    qsort (ranked, (size_t) used, sizeof *ranked, by_badness);
    for (int i = 0; i < x->pool->n_nodes; i++)
        x->seq[i] = ranked[i].node;
}

/* Nodes to the stages that need them: each stage in turn takes nodes of the slowest class
 * that it may use. */
static void sequence_by_class (struct placer *x)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    int nodes = x->pool->n_nodes, classes = x->pool->n_classes, used = 0, at = 0;
    bool *taken = calloc ((size_t) c->n_nodes, sizeof *taken);

    while (used < nodes && taken) {
        int stage = at < x->world ? at / x->per_stage : x->c->deg.pp - 1;
        int pick = -1, pick_class = -1;

        for (int i = 0; i < nodes; i++) {
            int node = x->pool->node[i], q = 0;
            bool may = !taken[node];

            for (int k = 0; k < c->node[node].gpus; k++) {
                int class = x->pool->class_of_gpu[c->node[node].first_gpu + k];

                q = class > q ? class : q;
                may = may && (at >= x->world || x->allowed[stage * classes + class]);
            }
            if (may && q > pick_class) {
                pick = node;
                pick_class = q;
            }
        }
        for (int i = 0; i < nodes && pick < 0; i++) /* none may: any keeps it whole */
            if (!taken[x->pool->node[i]])
                pick = x->pool->node[i];
        taken[pick] = true;
        x->seq[used++] = pick;
        at += x->groups->grouped[pick];
    }
    free (taken);
}

static enum status try_starts (struct placer *x, struct error *err)
{
    struct ranked_node *ranked = calloc ((size_t) x->pool->n_nodes, sizeof *ranked);

    if (!ranked)
        return err_nomem (err);
    /* Megatron's order counts among the node-wise ones: it fills node after node. */
    default_order (x->pool, x->order);
    try_order (x, x->order, x->best_gpu, &x->best);
    memcpy (x->seq, x->pool->node, (size_t) x->pool->n_nodes * sizeof (int));
    lay_out (x);
    try_order (x, x->order, x->best_gpu, &x->best);
    if (!x->pool->all_alike) {
        sequence_by_links (x, ranked);
        lay_out (x);
        try_order (x, x->order, x->best_gpu, &x->best);
        sequence_best_in_file_order (x, ranked);
        lay_out (x);
        try_order (x, x->order, x->best_gpu, &x->best);
    }
    if (x->pool->n_classes > 1) {
        sequence_by_class (x);
        lay_out (x);
        try_order (x, x->order, x->best_gpu, &x->best);
    }
    free (ranked);
    return ST_OK;
}

/* ---- annealing ---- */

static double energy (const struct costmodel_price *p)
{
    return p->smooth_s * (1.0 + 0.1 * p->unmeasured);
}

/* Exchange ranges if both stay legal.  @return false when not */
static bool swap_legal (const struct placer *x, const int *gpu, int a, int b, int count)
{
    if (x->pool->n_classes == 1)
        return true;
    for (int k = 0; k < count; k++)
        if (!stage_may_use (x, a + k, gpu[b + k]) ||
            !stage_may_use (x, b + k, gpu[a + k]))
            return false;
    return true;
}

/* What a move exchanges. */
enum unit { UNIT_NODE, UNIT_GROUP, UNIT_GPU };

/* Draw two ranges to exchange; *count is 0 when the draw is idle.  Only ranges that touch
 * a rank matter. */
static void draw (struct placer *x, enum unit unit, int reach, int *a, int *b, int *count)
{
    *count = 0;
    if (unit == UNIT_NODE) {
        int i = rng_below (&x->rng, x->pool->n_nodes),
            k = rng_below (&x->rng, x->pool->n_nodes);
        int size = x->groups->grouped[x->seq[i]];

        if (i == k || size != x->groups->grouped[x->seq[k]])
            return;
        *a = x->offset[i];
        *b = x->offset[k];
        *count = size;
    } else {
        int step = unit == UNIT_GROUP ? x->c->deg.tp : 1;

        *a = rng_below (&x->rng, x->world / step) * step;
        *b = rng_below (&x->rng, reach / step) * step;
        *count = *a == *b ? 0 : step;
    }
    if (*a >= x->world && *b >= x->world)
        *count = 0;
}

/* Anneal from best_gpu; best_gpu and best receive what is better.
 *
 * @param reach  positions below it may be drawn: ranks and the idle GPUs that may serve */
static void anneal (struct placer *x, enum unit unit, int moves, int reach, int *best_gpu,
                    struct costmodel_price *best)
{
    struct costmodel_price now;
    double hot, cold, here;

    costmodel_state_reset (x->state, best_gpu);
    now = costmodel_state_price (x->state);
    here = energy (&now);
    if (!isfinite (here))
        return;
    hot = 1e-3 * here;
    cold = 1e-7 * here;
    for (int i = 0; i < moves; i++) {
        double temperature = hot * pow (cold / hot, (double) i / moves);
        int a, b, count;

        draw (x, unit, reach, &a, &b, &count);
        if (count == 0 || !swap_legal (x, costmodel_state_gpus (x->state), a, b, count))
            continue;
        costmodel_state_swap (x->state, a, b, count);
        now = costmodel_state_price (x->state);

        double there = energy (&now);

        if (there <= here || rng_unit (&x->rng) < exp ((here - there) / temperature)) {
            here = there;
            if (price_less (&now, best)) {
                *best = now;
                memcpy (best_gpu, costmodel_state_gpus (x->state),
                        (size_t) x->n * sizeof (int));
            }
        } else {
            costmodel_state_swap (x->state, a, b, count);
        }
    }
}

/* The sequence of nodes in a node-wise order, idle nodes after them; false when the order
 * is not made of whole nodes' grouped GPUs in their own order. */
static bool sequence_of (struct placer *x, const int *gpu)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    bool *taken = calloc ((size_t) c->n_nodes, sizeof *taken);
    int n = 0;

    if (!taken)
        return false;
    for (int r = 0; r < x->world; r++) {
        int node = c->node_of_gpu[gpu[r]];

        if (!taken[node]) {
            taken[node] = true;
            x->seq[n++] = node;
        }
    }
    for (int i = 0; i < x->pool->n_nodes; i++)
        if (!taken[x->pool->node[i]])
            x->seq[n++] = x->pool->node[i];
    free (taken);
    lay_out (x);
    for (int r = 0; r < x->world; r++)
        if (x->order[r] != gpu[r])
            return false;
    return true;
}

static void improve_by_node (struct placer *x, int moves)
{
    if (x->pool->all_alike || x->pool->n_nodes == 1 || !sequence_of (x, x->best_gpu))
        return;
    /* The state keeps positions in x->order's layout, so that blocks can be exchanged. */
    memcpy (x->best_gpu, x->order, (size_t) x->n * sizeof (int));
    anneal (x, UNIT_NODE, moves, x->world, x->best_gpu, &x->best);
}

/* Are there placements beyond exchanging whole nodes that could differ in price? */
static bool gpu_level_matters (const struct placer *x)
{
    const struct topology_cluster *c = x->pool->problem->cluster;

    if (c->has_gpu_links || x->c->deg.tp < x->pool->max_node_gpus)
        return true;
    for (int i = 0; i < x->pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[x->pool->node[i]];

        if (n->speed || n->gpus != x->pool->max_node_gpus)
            return true;
    }
    return false;
}

/* Can two GPUs of one TP group differ? */
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

/* With a limit on nodes, idle GPUs elsewhere must stay idle. */
static int reach_of (const struct placer *x)
{
    if (x->pool->problem->max_nodes > 0 && x->pool->problem->max_nodes < x->pool->n_nodes)
        return x->world;
    return x->n / x->c->deg.tp * x->c->deg.tp;
}

static void improve_by_gpu (struct placer *x, int moves, int *gpu,
                            struct costmodel_price *price)
{
    if (!gpu_level_matters (x) || x->world == 1)
        return;
    if (!x->pool->all_alike || x->c->deg.tp < x->pool->max_node_gpus)
        anneal (x, UNIT_GROUP, moves, reach_of (x), gpu, price);
    if (single_gpus_matter (x))
        anneal (x, UNIT_GPU, moves, reach_of (x), gpu, price);
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

static enum status placer_init (struct placer *x, struct error *err)
{
    const struct mapper_problem *p = x->pool->problem;
    int pp = x->c->deg.pp, classes = x->pool->n_classes, slots[CLASSES_MAX];
    size_t nodes = (size_t) x->pool->n_nodes, all = 0;
    int *caps = malloc ((size_t) pp * (size_t) classes * sizeof (int));
    enum status st;

    for (int i = 0; i < x->pool->n_nodes; i++)
        all += (size_t) p->cluster->node[x->pool->node[i]].gpus;
    x->n = (int) all;
    x->world = (int) workload_world (&x->c->deg);
    x->per_stage = x->world / pp;
    x->layers = malloc ((size_t) pp * sizeof (int));
    x->class_of_stage = calloc ((size_t) pp, sizeof (int));
    x->allowed = calloc ((size_t) pp * (size_t) classes, sizeof (bool));
    x->seq = malloc (nodes * sizeof (int));
    x->offset = malloc (nodes * sizeof (int));
    x->order = malloc (all * sizeof (int));
    x->best_gpu = malloc (all * sizeof (int));
    st = caps && x->layers && x->class_of_stage && x->allowed && x->seq && x->offset &&
                 x->order && x->best_gpu
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

        struct costmodel_problem problem = {.model = p->model,
                                            .job = p->job,
                                            .config = x->c,
                                            .profile = p->profile,
                                            .cluster = p->cluster,
                                            .layers = x->layers};

        default_order (x->pool, x->order);
        st = costmodel_state_create (&problem, x->order, x->n, &x->state, err);
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
    free (x->offset);
    free (x->order);
    free (x->best_gpu);
    costmodel_state_destroy (x->state);
}

/* Moves per unit and configuration: enough for the price to settle on 16 to 128 groups. */
static int moves_for (const struct placer *x, int effort)
{
    int units = x->pool->n_nodes < 256 ? x->pool->n_nodes : 256;

    return effort * (20 + 4 * units);
}

/* The better of node-wise and free placement, as the granularity asks. */
static void choose (struct placer *x, const struct mapper_settings *s, const int *gpu,
                    const struct costmodel_price *gpu_price, struct placed *out)
{
    bool free_wins = price_less (gpu_price, &x->best);
    const int *pick = x->best_gpu;

    if (s->granularity == MAPPER_AUTO)
        free_wins = gpu_price->unmeasured < x->best.unmeasured ||
                    (gpu_price->unmeasured == x->best.unmeasured &&
                     gpu_price->step_s < x->best.step_s * (1.0 - 0.005));
    out->granularity = MAPPER_NODE;
    out->price = x->best;
    if (s->granularity == MAPPER_GPU || (s->granularity == MAPPER_AUTO && free_wins)) {
        pick = gpu;
        out->price = *gpu_price;
        out->granularity = is_by_node (x, gpu) ? MAPPER_NODE : MAPPER_GPU;
    }
    memcpy (out->gpu, pick, (size_t) x->world * sizeof (int));
    out->node_step_s = x->best.step_s;
    out->gpu_step_s = gpu_price->step_s;
}

enum status place_config (const struct pool *pool, const struct groups *g,
                          const struct workload_config *c,
                          const struct mapper_settings *s, int effort, unsigned long seed,
                          struct placed *out, struct error *err)
{
    struct placer x = {.pool = pool,
                       .groups = g,
                       .c = c,
                       .best = {.unmeasured = 1 << 30, .step_s = INFINITY},
                       .rng = {seed}};
    struct placed result = {0};
    struct costmodel_price gpu_price;
    int *gpu = NULL;
    enum status st = placer_init (&x, err);

    if (st == ST_OK)
        st = try_starts (&x, err);
    if (st == ST_OK && !(gpu = malloc ((size_t) x.n * sizeof (int))))
        st = err_nomem (err);
    if (st == ST_OK) {
        bool exact = x.n <= EXACT_GPUS_MAX;

        if (exact)
            exact_search (pool, x.state, c, x.allowed, x.n, true, x.best_gpu, &x.best);
        else if (isfinite (x.best.step_s))
            improve_by_node (&x, moves_for (&x, effort));
        gpu_price = x.best;
        memcpy (gpu, x.best_gpu, (size_t) x.n * sizeof (int));
        if (exact)
            exact_search (pool, x.state, c, x.allowed, x.n, false, gpu, &gpu_price);
        else if (isfinite (x.best.step_s) && s->granularity != MAPPER_NODE)
            improve_by_gpu (&x, moves_for (&x, effort), gpu, &gpu_price);
        if (!isfinite (gpu_price.step_s))
            st = err_set (err, ST_NOFIT, "the GPUs are not connected");
    }
    if (st == ST_OK) {
        result.layers = x.layers;
        result.gpu = malloc ((size_t) x.world * sizeof (int));
        x.layers = NULL;
        if (!result.gpu)
            st = err_nomem (err);
    }
    if (st == ST_OK) {
        choose (&x, s, gpu, &gpu_price, &result);
        *out = result;
    } else
        placed_release (&result);
    free (gpu);
    placer_release (&x);
    return st;
}

void placed_release (struct placed *x)
{
    free (x->layers);
    free (x->gpu);
    *x = (struct placed){0};
}
