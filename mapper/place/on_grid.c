/* A candidate whose nodes all hold the same block, improved as a grid (grid.c).
 *
 * What the grid's model takes of the cost model: bytes and rates as docs/time.md has them,
 * and what hides a stage's synchronisation, the profile's part of its compute and the
 * backward passes that end after its own.  The candidate changes only if its exact price
 * gets better, so that what the model leaves out costs nothing but chances. */
#include "mapper/place/grid.h"
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID_NODES_MAX 2048 /* two numbers for every pair are kept */

struct on_grid {
    struct placer *x;
    struct grid_problem p;
    int width;  /* replicas that share a node */
    int parts;  /* of a slot on a node: its cp TP groups, or as many as fit */
    int *kind;  /* [n_nodes] */
    int *order; /* [n_nodes] by place in the sequence: which of the pool's nodes */
    int *place; /* [cluster's n_nodes] which of the pool's nodes each is */
    double *ring_share, *hidden_s, *ahead_s; /* [rows] */
};

/* Where every stage takes nodes of its own, a layout of stages by class is one of stages in order
 * whose nodes come in another order.  Leaves the layout in hand. */
static void put_in_order (struct placer *x, struct candidate *k)
{
    int nodes = x->per_stage / x->pool->max_node_gpus, n = x->pool->n_nodes;
    size_t ranks = (size_t) x->world * sizeof (int);
    bool straight;

    layout_copy (&x->layout, &k->layout, n);
    if (!k->layout.by_class || k->layout.depth > 1 ||
        x->per_stage % x->pool->max_node_gpus != 0 || nodes * x->c->deg.pp > n)
        return;
    layout_fill (x, &straight); /* puts stage_at */
    for (int i = 0; i < x->c->deg.pp; i++)
        memcpy (x->layout.seq + x->stage_at[i] * nodes, k->layout.seq + i * nodes,
                (size_t) nodes * sizeof (int));
    x->layout.by_class = false;
    layout_fill (x, &straight);
    if (straight && memcmp (x->order, k->gpu, ranks) == 0)
        layout_copy (&k->layout, &x->layout, n);
    else
        layout_copy (&x->layout, &k->layout, n);
}

/* Do all nodes hold blocks of one size, whole rows and columns of them? */
static bool is_regular (struct on_grid *o)
{
    const struct placer *x = o->x;
    const struct workload_degrees *d = &x->c->deg;
    int slots = slots_per_node (x), depth = x->layout.depth;

    o->width = slots / depth;
    o->parts = x->pool->max_node_gpus / (o->width * depth * d->tp);
    o->parts = o->parts < d->cp ? o->parts : d->cp;
    if (x->layout.by_class || x->layout.by_shard || o->parts == 0 ||
        d->cp % o->parts != 0 || x->pool->n_nodes > GRID_NODES_MAX ||
        d->dp % o->width != 0 || d->pp % depth != 0)
        return false;
    o->p.rows = d->pp / depth;
    o->p.columns = d->dp / o->width * (d->cp / o->parts);
    if (o->p.rows * o->p.columns < 2 || o->p.rows * o->p.columns > x->pool->n_nodes)
        return false;
    /* Nodes are filled: where a block leaves GPUs free, the next one begins there. */
    for (int i = 0; i < x->pool->n_nodes; i++)
        if (x->groups->grouped[x->pool->node[i]] != slots * d->tp * o->parts)
            return false;
    return true;
}

static bool same_kind (const struct placer *x, int a, int b)
{
    const struct topology_node *m = &x->pool->problem->cluster->node[a],
                               *n = &x->pool->problem->cluster->node[b];
    const int *class = x->pool->class_of_gpu;

    if (m->gpus != n->gpus || m->intra != n->intra)
        return false;
    for (int k = 0; k < m->gpus; k++)
        if (class[x->groups->gpu[m->first_gpu + k]] !=
            class[x->groups->gpu[n->first_gpu + k]])
            return false;
    return true;
}

/* Nodes that may change places: alike but for their links to others. */
static void find_kinds (struct on_grid *o)
{
    const int *node = o->x->pool->node;

    for (int i = 0; i < o->p.n; i++) {
        o->kind[i] = i;
        for (int k = 0; k < i; k++)
            if (o->kind[k] == k && same_kind (o->x, node[k], node[i])) {
                o->kind[i] = k;
                break;
            }
    }
}

/* ---- what the grid takes of the cost models ---- */

/* How often a micro-batch's way down and up is exposed in a step. */
static double round_trips (const struct workload_config *c, int m)
{
    int p = c->deg.pp, left = (m - 1) % p;

    if (c->schedule == SCHEDULE_GPIPE || p == 1)
        return 1.0;
    return 1.0 + (m - 1) / p + (left > 1 ? (left - 1.0) / (p - 1) : 0.0);
}

/* What the rings of a node's block carry of each parameter.  Experts' run along the same nodes
 * where a node holds whole expert groups; others are left out. */
static void take_rings (struct on_grid *o, const struct costmodel_volume *v)
{
    const struct workload_config *c = o->x->c;
    const struct workload_profile *profile = o->x->pool->problem->profile;
    int lanes = o->width * o->parts, block = lanes * c->deg.tp,
        group = c->deg.ep * c->deg.etp, dense = workload_dense_shards (c),
        experts = workload_expert_shards (c);
    double bytes = v->dp_bytes / (profile->time.link * profile->time.link_out);

    o->p.ring = (struct grid_ring){(dense - 1.0) / dense * bytes,
                                   c->deg.tp * o->x->layout.depth, lanes};
    if (block % group == 0)
        o->p.expert =
            (struct grid_ring){(experts - 1.0) / experts * bytes,
                               group * o->x->layout.depth, (double) block / group};
}

/* How long before the last stage a stage of the layout in hand would end without synchronisation,
 * and what of it compute hides. */
static void find_ends (const struct on_grid *o, int stage, double latest_s, double *ahead,
                       double *hidden)
{
    const struct workload_profile *p = o->x->pool->problem->profile;
    double end_s, hides_s;

    costmodel_state_stage_end (o->x->state, stage, &end_s, &hides_s);
    *ahead = latest_s - end_s;
    *hidden = *ahead + (1.0 - p->time.overlap_slowdown) * p->time.dp_overlap * hides_s;
}

/* What a stage's rings take for nothing at all, through every node of its row. */
static double starts_s (const struct on_grid *o, const struct costmodel_volume *v, int n)
{
    const struct pool *pool = o->x->pool;
    int nodes = o->p.columns;
    struct costmodel_ring r = {.inside_bytes_per_s = INFINITY,
                               .between_bytes_per_s = INFINITY,
                               .nodes = nodes,
                               .latency_s = (nodes * pool->inter_latency_s +
                                             (n - nodes) * pool->intra_latency_s) *
                                            (n - 1.0) / n};

    return n > 1 && n >= nodes ? costmodel_sync_s (pool->problem->profile, &r, n, v, 0.0)
                               : 0.0;
}

double latest_end_s (const struct placer *x)
{
    double latest = 0.0, end_s, hides_s;

    for (int i = 0; i < x->c->deg.pp; i++) {
        costmodel_state_stage_end (x->state, i, &end_s, &hides_s);
        latest = fmax (latest, end_s);
    }
    return latest;
}

/* Every row's rings: those of its stage that has most, and what hides them. */
static void find_rings (struct on_grid *o, const struct costmodel_volume *v)
{
    const struct mapper_problem *p = o->x->pool->problem;
    const struct workload_config *c = o->x->c;
    int depth = o->x->layout.depth;
    double latest = latest_end_s (o->x), most = 0.0;
    double starts = starts_s (o, v, workload_dense_shards (c));
    struct grid_ring *ring = &o->p.ring, *expert = &o->p.expert;
    const struct grid_ring each = *ring, each_expert = *expert;

    for (int row = 0; row < o->p.rows; row++) {
        o->hidden_s[row] = o->ahead_s[row] = INFINITY;
        o->ring_share[row] = 0.0;
    }
    for (int i = 0; i < c->deg.pp; i++) {
        struct workload_stage held = workload_stage_of (p->model, c, o->x->layers, i);
        struct workload_stage_params params = workload_stage_params (p->model, c, &held);
        double dense = each.bytes * params.dense,
               experts = each_expert.bytes * params.expert,
               lanes =
                   each_expert.lanes * (is_shared (o->x, i) ? o->x->layout.sharers : 1),
               by_lanes = dense / each.lanes + (experts > 0 ? experts / lanes : 0.0);
        double ahead, hidden, fixed = starts;
        int row = i / depth;

        find_ends (o, i, latest, &ahead, &hidden);
        if (experts > 0)
            fixed += starts_s (o, v, workload_expert_shards (c));
        o->ahead_s[row] = fmin (o->ahead_s[row], ahead - o->p.bare * fixed);
        o->hidden_s[row] = fmin (o->hidden_s[row], hidden - fixed);
        o->ring_share[row] = fmax (o->ring_share[row], by_lanes);
        if (by_lanes > most) {
            most = by_lanes;
            ring->bytes = dense;
            expert->bytes = experts;
        }
    }
    for (int row = 0; row < o->p.rows && most > 0; row++)
        o->ring_share[row] /= most;
}

static void take_critical_path (struct on_grid *o)
{
    const struct mapper_problem *p = o->x->pool->problem;
    const struct workload_config *c = o->x->c;
    const struct workload_degrees *d = &c->deg;
    struct costmodel_volume v;

    /* Its stages' ends, of a price that is exact. */
    price_order (o->x, o->x->order, (struct costmodel_price){0, INFINITY, INFINITY});
    costmodel_volume (p->model, p->job, c, p->profile, &v);
    o->p.weight = d->vpp * round_trips (c, workload_microbatches (p->job, c));
    o->p.both_ways = true;
    o->p.send_bytes = v.p2p_bytes / p->profile->time.send_link;
    o->p.send_latency = 1.0;
    o->p.flows = o->width * o->parts * d->tp;
    take_rings (o, &v);
    o->p.bare = fmax (costmodel_sync_bare (p->profile, c, &v, p->model->layers),
                      p->profile->time.overlap_slowdown);
    find_rings (o, &v);
}

/* costmodel/published.c: links as they are alone. */
static void take_published (struct on_grid *o)
{
    const struct mapper_problem *p = o->x->pool->problem;
    const struct workload_model *m = p->model;
    const struct workload_config *c = o->x->c;
    const struct workload_degrees *d = &c->deg;
    double message = costmodel_published_message_bytes (m, p->job, c);
    int rounds = workload_microbatches (p->job, c) / d->pp, n = d->dp * d->cp;
    bool amp = p->cost_model == COSTMODEL_AMP;
    struct workload_stage first = workload_stage_of (m, c, o->x->layers, 0);
    struct workload_stage_params params = workload_stage_params (m, c, &first);

    o->p.weight = amp || rounds < 1 ? 1.0 : rounds;
    o->p.send_bytes = (amp ? 1.0 : 2.0) * message;
    o->p.ring.lanes = 1.0;
    o->p.ring.bytes = amp ? 2.0 * (n - 1) / n * 2.0 * (params.dense + params.expert)
                          : 2.0 * (o->p.columns - 1) / o->p.columns *
                                costmodel_pipette_gradient_bytes (m, c);
    for (int row = 0; row < o->p.rows; row++) {
        o->ring_share[row] = 1.0;
        o->hidden_s[row] = o->ahead_s[row] = amp || row == 0 ? 0.0 : INFINITY;
    }
}

/* ---- the candidate ---- */

/* Places in the pool of a sequence's nodes. */
static void number (const struct on_grid *o, const int *seq)
{
    for (int i = 0; i < o->p.n; i++)
        o->order[i] = o->place[seq[i]];
}

/* The slowest class that the layers of a cell's stages were split for; idle nodes may be of any. */
static int wanted_class (const struct on_grid *o, int cell)
{
    const struct placer *x = o->x;
    int depth = x->layout.depth, first = cell / o->p.columns * depth;
    int wanted = x->pool->n_classes - 1;

    for (int i = first; i < first + depth && cell < o->p.rows * o->p.columns; i++)
        wanted = x->class_of_stage[i] < wanted ? x->class_of_stage[i] : wanted;
    return wanted;
}

/* Exchange nodes that are slower than their layers were split for with faster ones of stages that
 * may have them: on the grid only nodes that are alike change places. */
static void settle_classes (struct on_grid *o)
{
    const struct pool *pool = o->x->pool;

    for (int a = 0; a < o->p.rows * o->p.columns; a++) {
        int held = pool_node_class (pool, pool->node[o->order[a]]);
        int wanted = wanted_class (o, a);

        for (int b = 0; b < o->p.n && held > wanted; b++) {
            int node = o->order[b];

            if (wanted_class (o, b) < held ||
                pool_node_class (pool, pool->node[node]) > wanted)
                continue;
            o->order[b] = o->order[a];
            o->order[a] = node;
            break;
        }
    }
}

/* Lay the order in hand out.  @return is it one that may be? */
static bool lay_out (struct on_grid *o)
{
    struct placer *x = o->x;
    bool straight;

    for (int i = 0; i < o->p.n; i++)
        x->layout.seq[i] = o->p.node[o->order[i]];
    mend_layout (x);
    layout_fill (x, &straight);
    return straight && pool_pins_hold (x->pool, x->order, x->world);
}

/* The candidate's order, with nodes where their classes belong: but not where pinned nodes or
 * memory forbid it. */
static void begin (struct on_grid *o, const struct candidate *k)
{
    number (o, k->layout.seq);
    settle_classes (o);
    if (!lay_out (o)) {
        number (o, k->layout.seq);
        lay_out (o);
    }
}

static bool prepare (struct on_grid *o, const struct candidate *k)
{
    const struct placer *x = o->x;
    int n = x->pool->n_nodes;

    o->p.cluster = x->pool->problem->cluster;
    o->p.n = n;
    o->p.node = x->pool->node;
    o->kind = malloc ((2 * (size_t) n + (size_t) o->p.cluster->n_nodes) * sizeof (int));
    o->hidden_s = malloc (3 * (size_t) o->p.rows * sizeof *o->hidden_s);
    if (!o->kind || !o->hidden_s)
        return false;
    o->ring_share = o->hidden_s + o->p.rows;
    o->ahead_s = o->ring_share + o->p.rows;
    o->p.ring_share = o->ring_share;
    o->p.ahead_s = o->ahead_s;
    o->order = o->kind + n;
    o->place = o->order + n;
    for (int i = 0; i < n; i++)
        o->place[o->p.node[i]] = i;
    o->p.kind = o->kind;
    o->p.hidden_s = o->hidden_s;
    find_kinds (o);
    begin (o, k);
    if (x->pool->problem->cost_model == COSTMODEL_CRITICAL_PATH)
        take_critical_path (o);
    else
        take_published (o);
    return true;
}

/* Price the order in hand and keep it if it is better. */
static void keep (struct on_grid *o, struct candidate *k)
{
    struct placer *x = o->x;
    struct costmodel_price price;

    if (!lay_out (o))
        return;
    price = price_order (x, x->order, k->price);
    if (!mapper_price_less (&price, &k->price))
        return;
    candidate_take (x, price, k);
}

bool improve_on_grid (struct placer *x, int runs, long moves, struct candidate *k)
{
    struct on_grid o = {.x = x};
    struct grid *g = NULL;

    if (x->pool->all_alike || x->pool->n_nodes == 1 || !isfinite (k->price.step_s))
        return false;
    put_in_order (x, k);
    if (!is_regular (&o))
        return false;
    if (prepare (&o, k) && (g = grid_create (&o.p, rng_next (&x->rng)))) {
        if (runs > 1 && grid_grow (g, o.order))
            keep (&o, k);
        for (int run = 0; run < runs && !deadline_passed (x->deadline); run++) {
            begin (&o, k);
            grid_improve (g, o.order, run % 2 == 1, moves);
            keep (&o, k);
        }
    }
    grid_destroy (g);
    free (o.kind);
    free (o.hidden_s);
    return true;
}
