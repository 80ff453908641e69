/* The stage that has the nodes with slow links, and those with slower GPUs where these are few.
 *
 * Rings pass all nodes of a stage, so the grid brings the slow ones together in one.  More than
 * nodes' places can make up for them: fewer layers there, and
 *
 * - Another place of that stage in the pipeline.  The first stage ends last, the last one has the
 *   most time to hide synchronisation in.
 * - Expert groups on two nodes each (shared.c): rings have two lanes, and exchanges cross nodes,
 *   for which a stage with few layers has the time.
 *
 * Where no link in use is bad tells which of these is best; nodes are then placed for it. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/extremes.h"
#include "base/memory.h"
#include "base/stats.h"

#define SLOW 0.9    /* of the usual rate: a node whose links are slow */
#define WORTH 0.002 /* of the step: what another place or way must gain */
#define LOST 0.25   /* over the rival: no other place or way makes up for so much */
#define PLACED 0.04 /* over it where links are usual: nor do nodes' places for that */
#define LAYER_PRICES 6000 /* by nodes: prices that layers are moved by */

static void exchange_ints (int *a, int *b, int n)
{
    for (int i = 0; i < n; i++) {
        int held = a[i];

        a[i] = b[i];
        b[i] = held;
    }
}

/* Where the stage may be, and how: with shared groups; in turn with the stage of that place, or
 * with those between moved up or down. */
struct variant {
    int stage, place;
    bool shared, moved;
    bool gathered; /* slow nodes of other stages, too */
};

/* Stages' numbers, n of each, with one at another place in the variant's way. */
static void move_stage (int *a, int n, struct variant v, int from, int to)
{
    int by = to > from ? 1 : -1;

    if (!v.moved && from != to)
        exchange_ints (a + from * n, a + to * n, n);
    for (int i = from; v.moved && i != to; i += by)
        exchange_ints (a + i * n, a + (i + by) * n, n);
}

/* Places, ways and layers that are tried. */
struct trial {
    struct placer *x;
    const struct candidate *from;
    struct candidate *k; /* what is tried */
    int *layers; /* [pp] the best so far; after them those before a place was tried */
    struct variant best;
    double step_s;  /* its own, where no link in use is bad */
    double rival_s; /* the best plan's */
    bool *slow;     /* [cluster's n_nodes] */
    int *classes;   /* [pp] as the split has them */
    int stage;
    bool can_share;
    long left; /* prices that may be asked for yet */
};

/* Does the stage go there, layers and all?  Where that place has fewer layers now, it takes the
 * slow nodes alone. */
static bool is_moved (const struct trial *t, struct variant v)
{
    const int *layers = t->from->layers;

    return v.stage != v.place && layers[v.stage] <= layers[v.place];
}

/* Slow nodes of other stages for others of that place, as many as it has. */
static void gather_slow (const struct trial *t, int *seq, int first, int n)
{
    int all = n * t->x->c->deg.pp, k = first;

    for (int i = 0; i < all; i++) {
        if (!t->slow[seq[i]] || (i >= first && i < first + n))
            continue;
        while (k < first + n && t->slow[seq[k]])
            k++;
        if (k < first + n)
            exchange_ints (seq + i, seq + k, 1);
    }
}

/* A candidate's nodes in that variant. */
static void put_variant (const struct trial *t, struct variant v, struct candidate *k)
{
    int n = t->x->per_stage / t->x->pool->max_node_gpus, *seq = k->layout.seq;

    if (is_moved (t, v))
        move_stage (seq, n, v, v.stage, v.place);
    if (v.gathered)
        gather_slow (t, seq, v.place * n, n);
    k->layout.sharers = v.shared ? 2 : 1;
    k->layout.shared_stage = v.place;
}

/* Lay a candidate out with its layers.  @return does it fit, node by node? */
static bool lay_out (struct placer *x, const struct candidate *k)
{
    bool straight;

    memcpy (x->layers, k->layers, (size_t) x->c->deg.pp * sizeof (int));
    pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    layout_copy (&x->layout, &k->layout, x->pool->n_nodes);
    layout_fill (x, &straight);
    return straight;
}

/* The step of what is laid out where no link in use is bad. */
static enum status usual_step (struct placer *x, double *step_s, struct error *err)
{
    struct costmodel_problem priced = mapper_priced (x->pool->problem, x->c, x->layers);
    struct costmodel_state *state = NULL;
    enum status st;

    priced.usual = x->pool->usual;
    st = costmodel_state_create (&priced, x->order, x->n, &state, err);
    if (st == ST_OK)
        *step_s = costmodel_state_price (state).step_s;
    costmodel_state_destroy (state);
    return st;
}

/* @param[in] v  of it, with t->layers */
static enum status try_one (struct trial *t, struct variant v, bool *better,
                            struct error *err)
{
    struct placer *x = t->x;
    double step = INFINITY;

    candidate_copy (x, t->from, t->k);
    put_variant (t, v, t->k);
    memcpy (t->k->layers, t->layers, (size_t) x->c->deg.pp * sizeof (int));
    t->left--;
    if (lay_out (x, t->k))
        TRY (usual_step (x, &step, err));
    *better = step < t->step_s * (1.0 - WORTH);
    if (*better) {
        t->step_s = step;
        t->best = v;
    }
    return ST_OK;
}

/* Is what is best so far so much worse than the best plan, or is it late? */
static bool is_lost (const struct trial *t, double share)
{
    return t->step_s > t->rival_s * (1.0 + share) || deadline_passed (t->x->deadline);
}

/* Which stage has the fewest layers? */
static int least_layers (const int *layers, int pp)
{
    int least = 0;

    for (int i = 1; i < pp; i++)
        least = layers[i] < layers[least] ? i : least;
    return least;
}

/* Layers in a variant, of the stage at another place now. */
static void put_layers (int *layers, struct variant v, int had)
{
    if (layers[had] < layers[v.place])
        move_stage (layers, 1, v, had, v.place);
}

/* The stage at that place, other layers as they were: all ways. */
static enum status try_place (struct trial *t, int place, int had, const int *was,
                              struct error *err)
{
    struct variant v = {t->stage, place, .gathered = true};
    int turns = place != had && is_moved (t, v) && t->x->c->deg.pp > 2 && t->left > 0;

    for (int moved = 0; moved <= turns; moved++)
        for (int shared = 0; shared <= t->can_share && !is_lost (t, LOST); shared++) {
            bool better;

            v.moved = place == had ? t->best.moved : moved;
            v.shared = shared;
            memcpy (t->layers, was, (size_t) t->x->c->deg.pp * sizeof (int));
            put_layers (t->layers, v, had);
            TRY (try_one (t, v, &better, err));
        }
    return ST_OK;
}

/* The best place and way: where it is, at both ends, and where layers are few. */
static enum status best_variant (struct trial *t, struct error *err)
{
    int pp = t->x->c->deg.pp, had = t->best.place, *was = t->layers + pp;
    int place[] = {had, 0, pp - 1, least_layers (t->layers, pp)};
    bool better;

    memcpy (was, t->layers, (size_t) pp * sizeof (int));
    TRY (try_one (t, t->best, &better, err));
    for (int i = 0; i < 4; i++) {
        bool again = false;

        for (int k = 0; k < i; k++)
            again = again || place[k] == place[i];
        if (!again)
            TRY (try_place (t, place[i], had, was, err));
    }
    memcpy (t->layers, was, (size_t) pp * sizeof (int));
    put_layers (t->layers, t->best, had);
    return ST_OK;
}

/* Single layers from stage to stage, as long as that gains. */
static enum status move_layers (struct trial *t, bool *moved, struct error *err)
{
    struct placer *x = t->x;
    int p = x->c->deg.pp, still = 0,
        unit = workload_layers_unit (x->c, x->pool->problem->profile),
        least = workload_layers_least (x->pool->problem->model, x->c);

    *moved = false;
    for (int at = 0; still < p * p && t->left > 0 && !is_lost (t, LOST);
         at = (at + 1) % (p * p)) {
        int a = (t->best.place + at / p) % p, b = at % p;
        bool better = false;

        if (a != b && t->layers[a] - unit >= least) {
            t->layers[a] -= unit;
            t->layers[b] += unit;
            TRY (try_one (t, t->best, &better, err));
            if (!better) {
                t->layers[a] += unit;
                t->layers[b] -= unit;
            }
        }
        *moved = *moved || better;
        still = better ? 0 : still + 1;
    }
    return ST_OK;
}

/* The best place, way and layers. */
static enum status best_trial (struct trial *t, struct error *err)
{
    bool moved = true;

    while (moved) {
        TRY (best_variant (t, err));
        moved = false;
        if (t->left > t->x->c->deg.pp && !is_lost (t, LOST))
            TRY (move_layers (t, &moved, err));
    }
    return ST_OK;
}

/* Which nodes are slow: for their links; or for their GPUs, where a stage has room for all such.
 * @param some  [nodes in use] scratch */
static void find_slow (struct trial *t, double *some)
{
    const struct pool *pool = t->x->pool;
    const int *seq = t->from->layout.seq;
    int n = t->x->per_stage / pool->max_node_gpus, all = n * t->x->c->deg.pp, slower = 0;
    double usual;

    for (int i = 0; i < all; i++) {
        some[i] = pool->usual[seq[i]];
        slower += pool_node_class (pool, seq[i]) > 0;
    }
    usual = stats_median (some, all);
    for (int i = 0; i < all; i++)
        t->slow[seq[i]] = pool->usual[seq[i]] < SLOW * usual ||
                          (slower <= n && pool_node_class (pool, seq[i]) > 0);
}

/* The stage with most of them, or -1: there are none. */
static int slow_stage (const struct trial *t)
{
    int n = t->x->per_stage / t->x->pool->max_node_gpus, stage = -1, most = 0;

    for (int i = 0; i < t->x->c->deg.pp; i++) {
        int here = 0;

        for (int k = i * n; k < (i + 1) * n; k++)
            here += t->slow[t->from->layout.seq[k]];
        if (here > most) {
            most = here;
            stage = i;
        }
    }
    return stage;
}

/* Stages are of the classes of the nodes that they have. */
static void put_classes (struct placer *x, const int *seq)
{
    int n = x->per_stage / x->pool->max_node_gpus;

    for (int i = 0; i < x->c->deg.pp; i++) {
        x->class_of_stage[i] = 0;
        for (int k = i * n; k < (i + 1) * n; k++) {
            int class = pool_node_class (x->pool, seq[k]);

            x->class_of_stage[i] =
                class > x->class_of_stage[i] ? class : x->class_of_stage[i];
        }
    }
}

/* The candidate's nodes as the variant has them, but for bad links: the grid, which knows little of
 * experts' exchanges, need not find better places.  Nodes in use stay in use, pinned ones too. */
static void price_mended (struct placer *x, struct candidate *k)
{
    bool straight;

    k->price = NO_PRICE;
    if (!lay_out (x, k))
        return;
    mend_layout (x);
    layout_fill (x, &straight);
    if (!straight)
        return;
    candidate_take (x, price_order (x, x->order, NO_PRICE), k);
}

/* Place nodes for what is best.  The candidate that it serves receives it if it is better. */
static enum status place_trial (struct trial *t, long moves, struct candidate *by_node,
                                struct candidate *any, struct error *err)
{
    struct placer *x = t->x;
    struct candidate *k = t->k, *to = t->best.shared ? any : by_node;
    bool better;

    candidate_copy (x, t->from, k);
    put_variant (t, t->best, k);
    memcpy (k->layers, t->layers, (size_t) x->c->deg.pp * sizeof (int));
    put_classes (x, k->layout.seq);
    TRY (placer_new_layers (x, k->layers, err));
    price_mended (x, k);
    improve_on_grid (x, 1, moves, k);
    better = mapper_price_less (&k->price, &to->price);
    if (better)
        candidate_copy (x, k, to);
    if (better && !t->best.shared)
        return ST_OK;
    memcpy (x->class_of_stage, t->classes, (size_t) x->c->deg.pp * sizeof (int));
    return placer_new_layers (x, t->from->layers, err);
}

static enum status try_variants (struct trial *t, long moves, struct candidate *by_node,
                                 struct candidate *any, struct error *err)
{
    struct placer *x = t->x;
    const int *layers = t->from->layers;
    size_t size = (size_t) x->c->deg.pp * sizeof (int);
    enum status st = best_trial (t, err);

    memcpy (x->layers, layers, size);
    pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    if (st != ST_OK || is_lost (t, PLACED) ||
        (!t->best.gathered && memcmp (t->layers, layers, size) == 0))
        return st;
    return place_trial (t, moves, by_node, any, err);
}

/* The candidate with whole nodes of one size, stage by stage? */
static bool is_by_stage (const struct placer *x, const struct candidate *k)
{
    int size = x->pool->max_node_gpus;

    return isfinite (x->pool->reach[0]) && isfinite (k->price.step_s) &&
           k->layout.depth == 1 && !k->layout.by_class && !k->layout.by_shard &&
           x->per_stage % size == 0 && x->per_stage > size &&
           x->pool->all_gpus == x->pool->n_nodes * size;
}

enum status improve_slow_stage (struct placer *x, bool whole, double rival_s, long moves,
                                struct candidate *by_node, struct candidate *any,
                                struct error *err)
{
    size_t layers = (size_t) x->c->deg.pp * sizeof (int);
    struct candidate from = {0}, k = {0};
    struct trial t = {.x = x,
                      .from = &from,
                      .k = &k,
                      .step_s = INFINITY,
                      .rival_s = rival_s,
                      .can_share = !whole && x->c->deg.ep > 1 && can_share (x, 2),
                      .left = LAYER_PRICES / x->pool->n_nodes};
    double *some;
    enum status st;

    if (!is_by_stage (x, by_node))
        return ST_OK;
    some = malloc ((size_t) (x->world / x->pool->max_node_gpus) * sizeof *some);
    t.layers = malloc (3 * layers);
    t.slow = calloc ((size_t) x->pool->problem->cluster->n_nodes, sizeof *t.slow);
    st = some && t.layers && t.slow ? candidate_init (x, &from, err) : err_nomem (err);
    THEN (st, candidate_init (x, &k, err));
    if (st == ST_OK) {
        candidate_copy (x, by_node, &from);
        t.classes = t.layers + 2 * x->c->deg.pp;
        memcpy (t.layers, from.layers, layers);
        memcpy (t.classes, x->class_of_stage, layers);
        find_slow (&t, some);
        t.stage = slow_stage (&t);
        t.best = (struct variant){.stage = t.stage, .place = t.stage};
        st = t.stage >= 0 ? try_variants (&t, moves, by_node, any, err) : ST_OK;
    }
    candidate_release (&from);
    candidate_release (&k);
    FREE_ALL (some, t.layers, t.slow);
    return st;
}
