/* How a sketch is laid out.
 *
 * A walk through the nodes gives a sequence of slots (TP x CP groups).  `depth` stages in a row
 * take them replica by replica: depth 1 gives every stage its slots in a row, depth pp gives
 * every replica its own.  A walk may leave what is over on a node idle, so that blocks do not
 * shift over the edges of the nodes after it.  The sequence also goes the other way round.  Then
 * layers are poured: the next one goes to the stage that would end first with it.  Of the best walk
 * nodes are exchanged: a single bad link would hide a good configuration. */
#include "mapper/place/sketch_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define EXCHANGES 200 /* of nodes in a walk, tried for one configuration */
#define ALL_GPUS 64   /* of a pool that gets them all */
#define QUANTA 4      /* that GPUs of a node are counted in */

void sketch_release (struct sketch *k)
{
    FREE_ALL (k->layers, k->gpu);
    *k = (struct sketch){0};
}

void sketch_take_better (struct sketch *k, struct sketch *best)
{
    if (mapper_price_less (&k->price, &best->price)) {
        sketch_release (best);
        *best = *k;
    } else {
        sketch_release (k);
    }
}

static enum status room_for (int pp, int n, struct sketch *k, struct error *err)
{
    *k = (struct sketch){.layers = malloc ((size_t) pp * sizeof (int)),
                         .gpu = malloc ((size_t) n * sizeof (int)),
                         .price = NO_PRICE};
    if (k->layers && k->gpu)
        return ST_OK;
    sketch_release (k);
    return err_nomem (err);
}

enum status sketch_copy (const struct sketch *from, int pp, int n, struct sketch *to,
                         struct error *err)
{
    TRY (room_for (pp, n, to, err));
    memcpy (to->layers, from->layers, (size_t) pp * sizeof (int));
    memcpy (to->gpu, from->gpu, (size_t) n * sizeof (int));
    to->price = from->price;
    return ST_OK;
}

enum status sketch_of (const struct pool *pool, const struct walks *w,
                       const struct workload_config *c, const struct placed *from,
                       struct sketch *out, struct error *err)
{
    const struct workload_model *m = pool->problem->model;
    const struct topology_cluster *cluster = pool->problem->cluster;
    int world = (int) workload_world (&c->deg), at = world;
    int least = workload_layers_least (m, c),
        unit = workload_layers_unit (c, pool->problem->profile);
    bool *taken; /* [cluster's n_gpus] */

    for (int i = 0; i < c->deg.pp; i++)
        if (from->layers[i] < least || (from->layers[i] - least) % unit != 0)
            return err_set (err, ST_NOFIT, "its chunks hold layers otherwise");
    TRY (room_for (c->deg.pp, w->n_gpus, out, err));
    if (!(taken = calloc ((size_t) cluster->n_gpus, sizeof *taken))) {
        sketch_release (out);
        return err_nomem (err);
    }
    memcpy (out->layers, from->layers, (size_t) c->deg.pp * sizeof (int));
    memcpy (out->gpu, from->gpu, (size_t) world * sizeof (int));
    out->price = from->price;
    for (int r = 0; r < world; r++)
        taken[from->gpu[r]] = true;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &cluster->node[pool->node[i]];

        for (int k = n->first_gpu; k < n->first_gpu + n->gpus; k++)
            if (!taken[k])
                out->gpu[at++] = k;
    }
    free (taken);
    return ST_OK;
}

/* ---- a configuration in hand ---- */

static enum status allocate (struct drawn *x, struct error *err)
{
    size_t pp = (size_t) x->c->deg.pp, classes = (size_t) x->pool->n_classes;

    x->cap = malloc (pp * classes * sizeof *x->cap);
    x->layers = malloc (pp * sizeof *x->layers);
    x->gpu = malloc ((size_t) x->n * sizeof *x->gpu);
    x->vessel = malloc (pp * sizeof *x->vessel);
    return x->cap && x->layers && x->gpu && x->vessel ? ST_OK : err_nomem (err);
}

/* As even as can be.  @return false where the layers do not divide so */
static bool spread_layers (struct drawn *x)
{
    int pp = x->c->deg.pp, left = x->pool->problem->model->layers - pp * x->least;
    int units = left / x->unit;

    for (int i = 0; i < pp; i++)
        x->layers[i] = x->least + x->unit * (units / pp + (i < units % pp));
    return left >= 0 && left % x->unit == 0;
}

enum status drawn_init (struct drawn *x, const struct pool *pool, const struct walks *w,
                        const struct workload_config *c, bool usual, struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_problem priced;

    *x = (struct drawn){.pool = pool,
                        .c = c,
                        .world = (int) workload_world (&c->deg),
                        .n = w->n_gpus,
                        .slot = c->deg.tp * c->deg.cp,
                        .pair = w->pair,
                        .unit = workload_layers_unit (c, p->profile),
                        .least = workload_layers_least (p->model, c)};
    x->per_stage = x->world / c->deg.pp;
    TRY (allocate (x, err));
    if (!spread_layers (x) || !pool_memory_fits (pool, c, x->cap))
        return err_set (err, ST_NOFIT, "no split of the layers fits");
    pool_sure_caps (pool, c, x->cap);
    priced = mapper_priced (p, c, x->layers);
    priced.usual = usual ? pool->usual : NULL;
    priced.all_usual = usual && w->all_usual;
    return costmodel_state_create (&priced, NULL, x->n, &x->state, err);
}

void drawn_release (struct drawn *x)
{
    FREE_ALL (x->cap, x->layers, x->gpu, x->vessel);
    costmodel_state_destroy (x->state);
}

bool drawn_fits (const struct drawn *x, int stage)
{
    const int *gpu = x->gpu + stage * x->per_stage;

    for (int k = 0; k < x->per_stage; k++)
        if (x->cap[x->pool->class_of_gpu[gpu[k]] * x->c->deg.pp + stage] <
            x->layers[stage])
            return false;
    return true;
}

/* The most layers that the stage's GPUs hold. */
static int room_of (const struct drawn *x, int stage)
{
    const int *gpu = x->gpu + stage * x->per_stage;
    int room = x->pool->problem->model->layers;

    for (int k = 0; k < x->per_stage; k++) {
        int cap = x->cap[x->pool->class_of_gpu[gpu[k]] * x->c->deg.pp + stage];

        room = cap < room ? cap : room;
    }
    return room;
}

bool drawn_pour (const struct drawn *x, int first, int last, int by, int some,
                 int *layers)
{
    int left = 0;

    for (int i = first; i <= last; i += by) {
        struct vessel *v = &x->vessel[i];
        double all = costmodel_state_stage_s (x->state, i, &v->end_s);

        v->layer_s = (all - v->end_s) / x->layers[i];
        v->room = room_of (x, i);
        if (v->room < x->least || !isfinite (all))
            return false;
        left += layers[i] - x->least;
        layers[i] = x->least;
    }
    while (left > 0) {
        double least = INFINITY;
        int best = -1;

        some = left < some ? x->unit : some;
        for (int i = first; i <= last; i += by) {
            const struct vessel *v = &x->vessel[i];
            double s = v->end_s + (layers[i] + some) * v->layer_s;

            if (layers[i] + some <= v->room && s < least) {
                least = s;
                best = i;
            }
        }
        if (best < 0 && some == x->unit)
            return false;
        if (best < 0) {
            some = x->unit;
            continue;
        }
        layers[best] += some;
        left -= some;
    }
    return true;
}

void drawn_take_layers (struct drawn *x, const int *layers)
{
    memcpy (x->layers, layers, (size_t) x->c->deg.pp * sizeof (int));
    costmodel_state_layers (x->state, layers);
}

/* ---- laying out ---- */

/* How a line of nodes is laid out. */
struct way {
    int *order; /* [n_nodes] indices into the pool's nodes */
    int quantum, depth;
    bool backwards, turned; /* turned: the last stage is before the first one */
    struct costmodel_price price;
};

struct layouts {
    struct drawn *x;
    const struct groups *g;
    const struct walks *w;
    int *even;   /* [pp] layers as even as can be */
    int *poured; /* [pp] scratch */
    int *line;   /* [n] GPUs in the order of a walk, those that are left out last */
    int *late;   /* [n] scratch */
    int *across; /* [n_nodes] scratch */
    int over;    /* GPUs in whole groups that the line's quantum leaves over */
    struct sketch *best;
    struct way along; /* the best of those along nodes */
    double far_s;     /* as sketch_build's */
};

/* Keep the layout in hand where it is better.  @return its price; NO_PRICE: it is not legal */
static struct costmodel_price keep_better (struct layouts *l)
{
    struct drawn *x = l->x;
    struct costmodel_price price = costmodel_state_price (x->state);

    for (int i = 0; i < x->c->deg.pp; i++)
        if (!drawn_fits (x, i))
            return NO_PRICE;
    if (!pool_nodes_fit (x->pool, x->gpu, x->world))
        return NO_PRICE;
    if (mapper_price_less (&price, &l->best->price)) {
        l->best->price = price;
        memcpy (l->best->gpu, x->gpu, (size_t) x->n * sizeof (int));
        memcpy (l->best->layers, x->layers, (size_t) x->c->deg.pp * sizeof (int));
    }
    return price;
}

/* Is there a layout, and is even the best one no good?  Then others are not so much better. */
static bool is_far (const struct layouts *l)
{
    return isfinite (l->best->price.step_s) && l->best->price.step_s > l->far_s;
}

/* Price the GPUs in hand with layers poured by so many.  @return the better price of both */
static struct costmodel_price try_poured (struct layouts *l, int some,
                                          struct costmodel_price than)
{
    struct drawn *x = l->x;
    size_t bytes = (size_t) x->c->deg.pp * sizeof (int);
    struct costmodel_price poured;

    memcpy (l->poured, x->layers, bytes);
    if (!drawn_pour (x, 0, x->c->deg.pp - 1, 1, some, l->poured) ||
        memcmp (l->poured, x->layers, bytes) == 0)
        return than;
    drawn_take_layers (x, l->poured);
    costmodel_state_exchange (x->state, NULL, NULL, 0);
    poured = keep_better (l);
    return mapper_price_less (&poured, &than) ? poured : than;
}

/* Stages i and k exchange their GPUs. */
static void exchange_stages (struct drawn *x, int i, int k)
{
    int *a = x->gpu + i * x->per_stage, *b = x->gpu + k * x->per_stage;

    for (int at = 0; at < x->per_stage; at++) {
        int gpu = a[at];

        a[at] = b[at];
        b[at] = gpu;
    }
}

/* Stages whose GPUs hold no layer, as small ones do not beside the embedding or the head, get those
 * of a stage that may have theirs. */
static void make_room (struct drawn *x)
{
    int pp = x->c->deg.pp;

    for (int i = 0; i < pp; i++)
        for (int k = 0; k < pp && room_of (x, i) < x->least; k++) {
            exchange_stages (x, i, k);
            if (room_of (x, i) < x->least || room_of (x, k) < x->least)
                exchange_stages (x, i, k);
        }
}

/* Price the GPUs in hand with even layers and with poured ones: in rounds of all chunks, and
 * singly.  @return the best price, of which it is only certain that it is no less than that of the
 * best way where that is so */
static struct costmodel_price try_layout (struct layouts *l)
{
    struct drawn *x = l->x;
    struct costmodel_price price, most = l->along.price;

    most.smooth_s = INFINITY;
    if (isfinite (l->far_s) && !(most.step_s < l->far_s))
        most = (struct costmodel_price){0, l->far_s, INFINITY};
    costmodel_state_limit (x->state, most);
    make_room (x);
    drawn_take_layers (x, l->even);
    costmodel_state_reset (x->state, x->gpu);
    price = keep_better (l);
    if (x->c->deg.pp == 1)
        return price;
    price = try_poured (l, x->c->deg.vpp, price);
    return x->unit < x->c->deg.vpp ? try_poured (l, x->unit, price) : price;
}

/* GPUs that are laid out together: what a node can hold of a slot. */
static int group_of (const struct drawn *x)
{
    int most = x->pool->max_node_gpus, tp = x->c->deg.tp;

    return x->slot <= most ? x->slot : tp <= most ? tp : 1;
}

static const int *order_of (const struct layouts *l, int walk)
{
    return l->w->seq + walk * l->x->pool->n_nodes;
}

/* A line through the nodes in that order: multiples of `quantum` GPUs of each, then whole groups
 * that are left over, then the others.
 * @return how many are in whole groups */
static int walk_nodes (struct layouts *l, const int *order, int quantum)
{
    const struct pool *pool = l->x->pool;
    const struct topology_cluster *c = pool->problem->cluster;
    int group = group_of (l->x), at = 0, whole = 0;

    l->over = 0;
    for (int part = 0; part < 3; part++)
        for (int i = 0; i < pool->n_nodes; i++) {
            int node = pool->node[order[i]];
            bool may = !pool_nodes_limited (pool) || i < pool->problem->max_nodes;
            int grouped = may ? l->g->grouped[node] / group * group : 0;
            const int ends[] = {0, grouped / quantum * quantum, grouped,
                                c->node[node].gpus};
            int n = ends[part + 1] - ends[part];

            memcpy (l->line + at, l->g->gpu + c->node[node].first_gpu + ends[part],
                    (size_t) n * sizeof (int));
            at += n;
            whole += part < 2 ? n : 0;
            l->over += part == 1 ? n : 0;
        }
    return whole;
}

/* A line of single groups, the fastest first, whatever their nodes. */
static void walk_groups (struct layouts *l)
{
    int group = group_of (l->x), n, at = 0;

    n = walk_nodes (l, order_of (l, WALK_MEAN), group);

    memcpy (l->late, l->line, (size_t) n * sizeof (int));
    for (int q = 0; q < l->x->pool->n_classes; q++)
        for (int k = 0; k < n; k += group)
            if (pool_slowest_class (l->x->pool, l->late + k, group) == q) {
                memcpy (l->line + at, l->late + k, (size_t) group * sizeof (int));
                at += group;
            }
}

/* Lay the line out, `depth` stages in a row; backwards, its slots the other way round.
 * @return as try_layout */
static struct costmodel_price lay_out (struct layouts *l, const struct way *w)
{
    struct drawn *x = l->x;
    const struct workload_degrees *d = &x->c->deg;
    int slots = d->pp * d->dp, at = 0;
    size_t bytes = (size_t) x->slot * sizeof (int);

    for (int first = 0; first < d->pp; first += w->depth)
        for (int r = 0; r < d->dp; r++)
            for (int k = first; k < first + w->depth && k < d->pp; k++, at++) {
                int i = w->turned ? (k + d->pp - 1) % d->pp : k;
                int from = w->backwards ? slots - 1 - at : at;

                memcpy (x->gpu + (i * d->dp + r) * x->slot, l->line + from * x->slot,
                        bytes);
            }
    memcpy (x->gpu + x->world, l->line + x->world,
            (size_t) (x->n - x->world) * sizeof (int));
    return try_layout (l);
}

/* Both ways, in the depths that are wanted.  Where embeddings are tied, the last stage is also laid
 * before the first: they share a node then.
 *
 * @param[in] order  of the nodes, whose line it is; NULL: of single groups */
static void try_line (struct layouts *l, const int *order, int quantum, bool all)
{
    int pp = l->x->c->deg.pp, turns = pp > 1 && l->x->pool->problem->model->tied ? 2 : 1;
    size_t nodes = (size_t) l->x->pool->n_nodes;
    const int depths[] = {1, pp, 2, 4, 8};

    for (int k = 0; k < (all ? 5 : 1); k++) {
        if ((k == 1 && pp == 1) || (k > 1 && depths[k] >= pp))
            continue;
        for (int how = 0; how < 2 * turns; how++) {
            if (how > 0 && is_far (l))
                break;

            struct way w = {l->along.order, quantum, depths[k],
                            how & 1,        how & 2, NO_PRICE};

            w.price = lay_out (l, &w);
            if (!order || !mapper_price_less (&w.price, &l->along.price))
                continue;
            memcpy (w.order, order, nodes * sizeof (int));
            l->along = w;
        }
    }
}

/* What nodes' GPUs are counted in: single groups, and the largest even parts of a stage that a node
 * may hold, a whole one first: a node of seven GPUs then holds a stage of four, and what is left of
 * all nodes the last stages.
 * @return how many kinds */
static int find_quanta (const struct drawn *x, int *quantum)
{
    int n = 0, most = x->pool->max_node_gpus;

    quantum[n++] = group_of (x);
    for (int q = x->per_stage < most ? x->per_stage : most; q > quantum[0] && n < QUANTA;
         q--)
        if (x->per_stage % q == 0 && q % x->slot == 0)
            quantum[n++] = q;
    return n;
}

/* The one that tells most: fast nodes first, then well linked ones. */
static void try_walk (struct layouts *l)
{
    const int *order = order_of (l, WALK_MEAN);
    int quantum = group_of (l->x);

    walk_nodes (l, order, quantum);
    try_line (l, order, quantum, false);
}

static void try_lines (struct layouts *l, bool all)
{
    int quantum[QUANTA], n = find_quanta (l->x, quantum);

    walk_groups (l);
    try_line (l, NULL, 0, all);
    for (int k = 0; k < n && (k == 0 || !is_far (l)); k++)
        for (int walk = 0; walk < WALKS; walk++) {
            const int *order = order_of (l, walk);
            int have = walk_nodes (l, order, quantum[k]);

            if (k > 0 && l->over == 0)
                break; /* the line is that of single groups */
            if (k == 0 || have >= l->x->world)
                try_line (l, order, quantum[k], all);
        }
}

/* Exchange two nodes of the best order.  @return whether that is better; else it is undone */
static bool exchange_nodes (struct layouts *l, int i, int k)
{
    struct way *w = &l->along;
    struct costmodel_price price = NO_PRICE;
    int had = w->order[i];

    w->order[i] = w->order[k];
    w->order[k] = had;
    if (walk_nodes (l, w->order, w->quantum) >= l->x->world)
        price = lay_out (l, w);
    if (mapper_price_less (&price, &w->price)) {
        w->price = price;
        return true;
    }
    w->order[k] = w->order[i];
    w->order[i] = had;
    return false;
}

/* Exchange nodes as long as that helps: which links a walk uses, and who stays idle. */
static void better_order (struct layouts *l)
{
    int n = l->x->pool->n_nodes, left = EXCHANGES;
    bool gained = isfinite (l->along.price.step_s);

    if (l->x->n > ALL_GPUS)
        left = EXCHANGES * ALL_GPUS / l->x->n;
    while (gained) {
        gained = false;
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < n && left > 0; k++, left--)
                gained = exchange_nodes (l, i, k) || gained;
    }
}

/* TP groups across nodes, from neighbour to neighbour: through the fewest nodes that hold them, and
 * through all that there may be. */
static void try_across (struct layouts *l, bool all)
{
    const struct pool *pool = l->x->pool;
    int most = pool_nodes_limited (pool) ? pool->problem->max_nodes : pool->n_nodes,
        few = across_nodes (pool, l->x->c, order_of (l, WALK_GROWN));

    for (int n = few < most ? few : most;; n = most) {
        memcpy (l->across, order_of (l, WALK_GROWN),
                (size_t) pool->n_nodes * sizeof (int));
        if (across_line (pool, l->x->c, n, l->across, l->line, l->late) >= l->x->world)
            try_line (l, NULL, 0, all);
        if (n == most)
            break;
    }
}

/* What was found, or none. */
static enum status finish (enum status st, struct sketch *out, struct error *err)
{
    if (st == ST_OK && !isfinite (out->price.step_s))
        st = err_set (err, ST_NOFIT, "no layout fits in memory and is connected");
    if (st != ST_OK)
        sketch_release (out);
    return st;
}

enum status sketch_build (const struct pool *pool, const struct walks *w,
                          const struct groups *g, const struct workload_config *c,
                          enum sketch_ways ways, double far_s, struct sketch *out,
                          struct error *err)
{
    struct drawn x;
    struct layouts l = {.x = &x, .g = g, .w = w, .best = out, .far_s = far_s};
    enum status st = drawn_init (&x, pool, w, c, ways == SKETCH_USUAL, err);
    size_t pp = (size_t) c->deg.pp, n = (size_t) w->n_gpus;

    *out = (struct sketch){0};
    THEN (st, room_for (c->deg.pp, x.n, out, err));
    l.even = malloc (2 * (pp + n + (size_t) pool->n_nodes) * sizeof (int));
    if (!l.even)
        st = err_nomem (err);
    if (st == ST_OK) {
        l.poured = l.even + pp;
        l.line = l.poured + pp;
        l.late = l.line + n;
        l.along = (struct way){.order = l.late + n, .price = NO_PRICE};
        l.across = l.along.order + pool->n_nodes;
        memcpy (l.even, x.layers, pp * sizeof (int));
        if (ways == SKETCH_USUAL)
            try_walk (&l);
        else
            try_lines (&l, ways == SKETCH_ALL);
        if (across_pays (pool, c))
            try_across (&l, ways == SKETCH_ALL);
        if (ways == SKETCH_ALL)
            better_order (&l);
    }
    free (l.even);
    drawn_release (&x);
    return finish (st, out, err);
}

enum status sketch_adopt (const struct pool *pool, const struct walks *w,
                          const struct workload_config *c, const struct sketch *from,
                          struct sketch *out, struct error *err)
{
    struct drawn x;
    struct layouts l = {
        .x = &x, .w = w, .best = out, .along = {.price = NO_PRICE}, .far_s = INFINITY};
    enum status st = drawn_init (&x, pool, w, c, false, err);
    int pp = c->deg.pp;

    *out = (struct sketch){0};
    THEN (st, room_for (c->deg.pp, x.n, out, err));
    l.even = malloc (2 * (size_t) pp * sizeof (int));
    if (!l.even)
        st = err_nomem (err);
    if (st == ST_OK) {
        bool divide = true; /* into its chunks; else pouring begins with even ones */

        for (int i = 0; i < pp && divide; i++)
            divide =
                from->layers[i] >= x.least && (from->layers[i] - x.least) % x.unit == 0;
        l.poured = l.even + pp;
        memcpy (l.even, divide ? from->layers : x.layers, (size_t) pp * sizeof (int));
        memcpy (x.gpu, from->gpu, (size_t) x.n * sizeof (int));
        try_layout (&l);
    }
    free (l.even);
    drawn_release (&x);
    return finish (st, out, err);
}
