/* One configuration, placed: layers to stages, groups to nodes (starts.c), then improved:
 * from the best start of node-wise and of free layouts whole nodes are exchanged, then
 * single TP groups, then single GPUs (anneal.c).  Pools of up to EXACT_GPUS_MAX GPUs are
 * enumerated instead (exact.c). */
#include "mapper/place/grid.h"
#include "mapper/place/placer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID_SMALL 32         /* nodes */
#define REPRICED_GPUS 1000000 /* times the GPUs of a stage, in one annealing */
#define AFTER_GRID 8          /* so many times fewer where a large grid was annealed */
#define PLAYED_OPERATIONS 30000000L /* of a pipeline's schedule, in the same */

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
    struct costmodel_problem problem = priced_problem (p, x->c, x->layers);
    enum status st = default_order (x->pool, x->order, err);

    return st == ST_OK ? costmodel_state_create (&problem, x->order, x->n, &x->state, err)
                       : st;
}

/* Which classes have the memory for a stage's layers? */
static void find_allowed (struct placer *x)
{
    const struct mapper_problem *p = x->pool->problem;
    struct memest_problem memory = {p->model, p->job, x->c, p->profile, p->memory_model};
    int classes = x->pool->n_classes;

    for (int i = 0; i < x->c->deg.pp; i++) {
        struct workload_stage held = workload_stage_of (p->model, x->c, x->layers, i);
        struct memest_stage s;

        memest_stage (&memory, i, &held, &s);
        for (int q = 0; q < classes; q++)
            x->allowed[i * classes + q] = s.peak_bytes <= x->pool->class[q].limit_bytes;
    }
}

enum status placer_new_layers (struct placer *x, const int *layers, struct error *err)
{
    memcpy (x->layers, layers, (size_t) x->c->deg.pp * sizeof (int));
    find_allowed (x);
    costmodel_state_destroy (x->state);
    x->state = NULL;
    return create_state (x, err);
}

static enum status placer_allocate (struct placer *x, struct error *err)
{
    size_t all = 0, nodes = (size_t) x->pool->n_nodes, pp = (size_t) x->c->deg.pp;
    size_t cluster_nodes = (size_t) x->pool->problem->cluster->n_nodes;

    for (int i = 0; i < x->pool->n_nodes; i++)
        all += (size_t) x->pool->problem->cluster->node[x->pool->node[i]].gpus;
    x->n = (int) all;
    x->world = (int) workload_world (&x->c->deg);
    x->per_stage = x->world / x->c->deg.pp;
    x->layers = malloc (pp * sizeof (int));
    x->class_of_stage = calloc (pp, sizeof (int));
    x->stage_at = malloc (pp * sizeof (int));
    x->allowed = calloc (pp * (size_t) x->pool->n_classes, sizeof (bool));
    x->layout.seq = malloc (nodes * sizeof (int));
    x->chosen = calloc (cluster_nodes, sizeof (bool));
    x->block_first = malloc (2 * nodes * sizeof (int));
    x->position = malloc (3 * all * sizeof (int));
    x->uses = calloc (cluster_nodes, sizeof (int));
    x->mark = malloc ((all > cluster_nodes ? all : cluster_nodes) * sizeof (bool));
    if (!x->layers || !x->class_of_stage || !x->stage_at || !x->allowed ||
        !x->layout.seq || !x->chosen || !x->block_first || !x->position || !x->uses ||
        !x->mark)
        return err_nomem (err);
    x->block_n = x->block_first + nodes;
    x->order = x->position + all;
    x->late = x->order + all;
    return ST_OK;
}

/* @param[in] by_speed  let the layers follow the speed of the classes */
static enum status placer_init (struct placer *x, bool by_speed, struct error *err)
{
    int slots[CLASSES_MAX];
    enum status st = placer_allocate (x, err);

    if (st == ST_OK) {
        count_slots (x->pool, x->groups, x->c, slots);
        st = stages_split (x->pool, x->c, by_speed ? slots : NULL, x->layers,
                           x->class_of_stage, err);
    }
    if (st == ST_OK)
        find_allowed (x);
    return st == ST_OK ? create_state (x, err) : st;
}

static void placer_release (struct placer *x)
{
    free (x->layers);
    free (x->class_of_stage);
    free (x->stage_at);
    free (x->allowed);
    free (x->layout.seq);
    free (x->chosen);
    free (x->block_first);
    free (x->position);
    free (x->uses);
    free (x->mark);
    costmodel_state_destroy (x->state);
}

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

static void copy_candidate (const struct placer *x, const struct candidate *from,
                            struct candidate *to)
{
    to->price = from->price;
    layout_copy (&to->layout, &from->layout, x->pool->n_nodes);
    memcpy (to->gpu, from->gpu, (size_t) x->n * sizeof (int));
}

/* Moves on the grid cost less by far, on a large one more than on a small one.
 * @return was that all that large pools need? */
static bool on_grid (struct placer *x, int effort, struct candidate *k)
{
    int nodes = x->pool->n_nodes, runs = nodes > GRID_SMALL ? 4 : 6;

    if (nodes > GRID_LARGE)
        effort = 1;
    return improve_on_grid (x, effort > 1 ? runs : 1,
                            (effort + 1) / 2 * (16000 + 150L * nodes), k) &&
           nodes > GRID_LARGE;
}

/* Is the start so slow that no moves will make it the best? */
static bool is_hopeless (const struct effort *e, const struct candidate *k)
{
    return k->price.unmeasured == 0 && k->price.step_s > e->rival_s * (1.0 + HOPELESS);
}

/* @param[out] out  exact, skipped_s and moved_s */
static enum status improve (struct placer *x, const struct mapper_settings *s,
                            const struct effort *e, struct candidate *by_node,
                            struct candidate *any, struct placed *out, struct error *err)
{
    int moves = moves_for (x, e->exact);
    double grid_s;

    if (pool_is_small (x->pool))
        return exact_splits (x, s->granularity, e, by_node, any, out, err);
    if (is_hopeless (e, by_node) && is_hopeless (e, any))
        return ST_OK;
    if (on_grid (x, e->grid, by_node))
        moves = moves / AFTER_GRID + 1;
    grid_s = by_node->price.step_s;
    improve_by_node (x, moves, by_node);
    if (s->granularity == MAPPER_NODE) {
        out->moved_s =
            grid_s > by_node->price.step_s ? grid_s - by_node->price.step_s : 0.0;
        return ST_OK;
    }
    if (any->layout.depth > 1) {
        on_grid (x, e->grid, any);
        grid_s = fmin (grid_s, any->price.step_s);
        improve_by_node (x, moves, any);
    }
    if (price_less (&by_node->price, &any->price))
        copy_candidate (x, by_node, any);
    improve_by_gpu (x, moves, any);
    out->moved_s = grid_s > any->price.step_s ? grid_s - any->price.step_s : 0.0;
    return ST_OK;
}

/* The better of node-wise and free placement, as the granularity asks. */
static void choose (struct placer *x, const struct mapper_settings *s,
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
    out->node_step_s =
        is_by_node (x, any->gpu) ? any->price.step_s : by_node->price.step_s;
    out->gpu_step_s = any->price.step_s;
    memcpy (out->gpu, pick->gpu, (size_t) x->world * sizeof (int));
    memcpy (out->layers, pick->layers, (size_t) x->c->deg.pp * sizeof (int));
}

static enum status candidate_init (const struct placer *x, struct candidate *k,
                                   struct error *err)
{
    k->price = (struct costmodel_price){.unmeasured = 1 << 30, .step_s = INFINITY};
    k->gpu = malloc ((size_t) x->n * sizeof (int));
    k->layers = malloc ((size_t) x->c->deg.pp * sizeof (int));
    k->layout.seq = malloc ((size_t) x->pool->n_nodes * sizeof (int));
    if (!k->gpu || !k->layers || !k->layout.seq)
        return err_nomem (err);
    memcpy (k->layers, x->layers, (size_t) x->c->deg.pp * sizeof (int));
    /* Something to copy even where no start is legal. */
    memcpy (k->layout.seq, x->pool->node, (size_t) x->pool->n_nodes * sizeof (int));
    return default_order (x->pool, k->gpu, err);
}

static void candidate_release (struct candidate *k)
{
    free (k->gpu);
    free (k->layers);
    free (k->layout.seq);
}

/* Nothing was found: is that certain? */
static enum status refuse (const struct placer *x, const struct mapper_settings *s,
                           struct placed *out, struct error *err)
{
    bool all = pool_is_small (x->pool) && !uses_matter (x->pool) &&
               s->granularity != MAPPER_NODE;

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

/* Place with one split of the layers. */
static enum status place_split (struct placer *x, bool by_speed,
                                const struct mapper_settings *s,
                                const struct effort *effort, struct placed *out,
                                struct error *err)
{
    struct candidate by_node = {0}, any = {0};
    struct placed result = {0};
    enum status st = placer_init (x, by_speed, err);

    if (st == ST_NOFIT) /* where layers differ, another split might fit */
        out->refusal = caps_alike (x->pool) ? REFUSED_MEMORY : REFUSED_UNKNOWN;
    if (st == ST_OK)
        st = candidate_init (x, &by_node, err);
    if (st == ST_OK)
        st = candidate_init (x, &any, err);
    if (st == ST_OK) {
        result.gpu = malloc ((size_t) x->world * sizeof (int));
        result.layers = malloc ((size_t) x->c->deg.pp * sizeof (int));
        if (!result.gpu || !result.layers)
            st = err_nomem (err);
    }
    if (st == ST_OK)
        st = try_starts (x, s->granularity != MAPPER_NODE, &by_node, &any, err);
    if (st == ST_OK)
        st = improve (x, s, effort, &by_node, &any, &result, err);
    if (st == ST_OK) {
        choose (x, s, &by_node, &any, &result);
        if (!isfinite (result.price.step_s))
            st = refuse (x, s, out, err);
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
                          const struct mapper_settings *s, struct effort effort,
                          unsigned long seed, struct placed *out, struct error *err)
{
    struct placer one = {.pool = pool, .groups = g, .c = c, .rng = {seed}}, two = one;
    struct effort little = {1, 1, effort.rival_s, effort.tries};
    struct placed other = {0};
    enum status st, second;

    if (workload_world (&c->deg) > pool->max_node_gpus && pool->inter_bytes_per_s <= 0) {
        out->refusal = REFUSED_UNCONNECTED;
        return err_set (err, ST_NOFIT,
                        "the GPUs are not connected: no link between nodes was measured; "
                        "measure some, or ask for what one node holds");
    }
    st = place_split (&one, true, s, &effort, out, err);
    if (st == ST_NOMEM || pool->n_classes == 1 || c->deg.pp == 1 ||
        (st == ST_NOFIT && out->refusal == REFUSED_MEMORY) ||
        (st == ST_OK && (out->exact || pool_is_late (pool))))
        return st;

    /* Where the fast GPUs are badly linked, layers that follow speed serve badly too. */
    if (st == ST_OK && out->price.unmeasured == 0)
        little.rival_s = fmin (little.rival_s, out->price.step_s);
    second = place_split (&two, false, s, &little, &other, NULL);
    if (second == ST_NOMEM) {
        placed_release (out);
        return err_nomem (err);
    }
    if (second == ST_OK && (st != ST_OK || price_less (&other.price, &out->price))) {
        placed_release (out);
        if (effort.grid > 1 || effort.exact > 1) { /* it deserves as much */
            struct placer three = {.pool = pool, .groups = g, .c = c, .rng = {seed}};

            placed_release (&other);
            return place_split (&three, false, s, &effort, out, err);
        }
        *out = other;
        return ST_OK;
    }
    placed_release (&other);
    return st;
}

void placed_release (struct placed *x)
{
    free (x->layers);
    free (x->gpu);
    *x = (struct placed){0};
}
