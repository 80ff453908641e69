/* Layers and places of a sketch, annealed together.
 *
 * A move exchanges GPUs, TP or TP x CP groups, the GPUs of two nodes, what a stage has on one node
 * with what another has, or is idle, on another, whole stages, the tails of two replicas, or two
 * runs of stages that follow each other; or it turns a run round, lays some stages out anew, rids a
 * stage of all its slow GPUs, or takes layers from one stage to another.  An exchange between two
 * stages that does not serve, or that memory forbids, is sometimes tried once more with the two
 * stages' layers divided anew: neither half of such a move is any good alone. */
#include "mapper/place/sketch_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define COLD 2e-4        /* last temperature, as a share of the step */
#define BETWEEN_LOOKS 32 /* moves, at whether it is late */
#define LAID 4           /* stages in a row that are laid out anew, at most */
#define DIVIDED 3        /* one in so many refused exchanges is tried with other layers */

/* A move in hand. */
struct motion {
    struct drawn *x;
    struct rng rng;
    int *a, *b;      /* [n] positions that are exchanged */
    int n;           /* how many */
    int *layers;     /* [pp] with the move */
    int *before;     /* [pp] without it */
    bool other;      /* are the layers others? */
    bool all;        /* do the layers of all stages follow an exchange? */
    bool single;     /* do GPUs of one node differ? */
    int *node_at[2]; /* [n] scratch: positions on two nodes */
};

/* ---- what a move exchanges ---- */

static void add (struct motion *m, int a, int b)
{
    m->a[m->n] = a;
    m->b[m->n++] = b;
}

static int node_at (const struct drawn *x, int position)
{
    return x->pool->problem->cluster->node_of_gpu[x->gpu[position]];
}

/* Two aligned runs of `step` positions, the first one of ranks. */
static void draw_runs (struct motion *m, int step)
{
    const struct drawn *x = m->x;
    int a = rng_below (&m->rng, x->world / step) * step,
        b = rng_below (&m->rng, x->n / step) * step;

    if (a == b || (step == 1 && !m->single && node_at (x, a) == node_at (x, b)))
        return;
    for (int k = 0; k < step; k++)
        add (m, a + k, b + k);
}

static void draw_gpus (struct motion *m)
{
    draw_runs (m, 1);
}

/* TP groups, or with context parallelism whole slots, which share a node where they may. */
static void draw_groups (struct motion *m)
{
    const struct drawn *x = m->x;
    int tp = x->c->deg.tp;

    draw_runs (m, tp == 1 || rng_below (&m->rng, x->c->deg.cp) > 0 ? x->slot : tp);
}

/* The GPUs of two nodes, as far as both have them. */
static void draw_nodes (struct motion *m)
{
    const struct drawn *x = m->x;
    const int *node = x->pool->node;
    int pick[2] = {node[rng_below (&m->rng, x->pool->n_nodes)],
                   node[rng_below (&m->rng, x->pool->n_nodes)]};
    int have[2] = {0, 0};

    if (pick[0] == pick[1])
        return;
    for (int r = 0; r < x->n; r++)
        for (int k = 0; k < 2; k++)
            if (node_at (x, r) == pick[k])
                m->node_at[k][have[k]++] = r;
    for (int k = 0; k < have[0] && k < have[1]; k++)
        if (m->node_at[0][k] < x->world || m->node_at[1][k] < x->world)
            add (m, m->node_at[0][k], m->node_at[1][k]);
}

/* Whose position is it: a stage's, or of the idle ones (pp)? */
static int owner_of (const struct drawn *x, int position)
{
    return position < x->world ? position / x->per_stage : x->c->deg.pp;
}

/* All that a stage has on one node, or on a pair of one, with what another one has, or with idle
 * GPUs, on another. */
static void draw_blocks (struct motion *m)
{
    const struct drawn *x = m->x;
    const int at[] = {rng_below (&m->rng, x->world), rng_below (&m->rng, x->n)};
    const int *pair = x->pair;
    bool whole = rng_below (&m->rng, 2) == 0;
    int have[2] = {0, 0};

    if (owner_of (x, at[0]) == owner_of (x, at[1]) ||
        (whole ? node_at (x, at[0]) == node_at (x, at[1])
               : pair[x->gpu[at[0]]] == pair[x->gpu[at[1]]]))
        return;
    for (int k = 0; k < 2; k++) {
        int owner = owner_of (x, at[k]), node = node_at (x, at[k]),
            of = pair[x->gpu[at[k]]];
        int first = owner * x->per_stage,
            end = owner < x->c->deg.pp ? first + x->per_stage : x->n;

        for (int r = first; r < end; r++)
            if (whole ? node_at (x, r) == node : pair[x->gpu[r]] == of)
                m->node_at[k][have[k]++] = r;
    }
    for (int k = 0; k < have[0] && k < have[1]; k++)
        add (m, m->node_at[0][k], m->node_at[1][k]);
}

static void exchange_stages (struct motion *m, int i, int k, bool layers)
{
    int each = m->x->per_stage;

    for (int r = 0; r < each; r++)
        add (m, i * each + r, k * each + r);
    if (layers && m->layers[i] != m->layers[k]) {
        int was = m->layers[i];

        m->layers[i] = m->layers[k];
        m->layers[k] = was;
        m->other = true;
    }
}

static void draw_stages (struct motion *m)
{
    int pp = m->x->c->deg.pp, i = rng_below (&m->rng, pp), k = rng_below (&m->rng, pp);

    if (i != k)
        exchange_stages (m, i, k, rng_below (&m->rng, 2) == 0);
}

/* Those from i to k the other way round. */
static void reverse_stages (struct motion *m, int i, int k, bool layers)
{
    for (; i < k; i++, k--)
        exchange_stages (m, i, k, layers);
}

static void draw_reversal (struct motion *m)
{
    int pp = m->x->c->deg.pp, i = rng_below (&m->rng, pp), k = rng_below (&m->rng, pp);

    reverse_stages (m, i, k, rng_below (&m->rng, 2) == 0);
}

/* A stage, or the first one of those in a row before it that begin on its node. */
static int draw_edge (struct motion *m)
{
    const struct drawn *x = m->x;
    int i = rng_below (&m->rng, x->c->deg.pp + 1);

    while (i > 0 && i < x->c->deg.pp &&
           node_at (x, i * x->per_stage) == node_at (x, (i - 1) * x->per_stage))
        i--;
    return i;
}

/* A run of stages to another place, so that those between move up: all three begin where another
 * node does. */
static void draw_shift (struct motion *m)
{
    bool layers = rng_below (&m->rng, 2) == 0;
    int at[3], middle;

    for (int k = 0; k < 3; k++)
        at[k] = draw_edge (m);
    order_by_ints (at, 3, sizeof *at, 1);
    if (at[0] == at[1] || at[1] == at[2])
        return;
    middle = at[0] + at[2] - at[1];
    reverse_stages (m, at[0], at[2] - 1, layers);
    reverse_stages (m, at[0], middle - 1, layers);
    reverse_stages (m, middle, at[2] - 1, layers);
}

/* Of `size` GPUs in a row, the k-th so many. */
static int slowest_of (const struct drawn *x, int size, int k)
{
    return pool_slowest_class (x->pool, x->gpu + k * size, size);
}

/* From that unit on, round all units: the next one no slower than that, idle or of a stage other
 * than this which is slower as a whole.
 * @return how many come before it; all where there is none */
static int next_fast (const struct drawn *x, int size, int stage, int most, int from,
                      int at)
{
    int units = x->n / size;

    for (; at < units; at++) {
        int unit = (from + at) % units, owner = unit / (x->per_stage / size);

        if (owner != stage && slowest_of (x, size, unit) <= most &&
            (owner >= x->c->deg.pp || slowest_of (x, x->per_stage, owner) > most))
            break;
    }
    return at;
}

/* A stage without its slow units: all change places with faster ones that idle, or make no stage
 * faster where they are.  One by one they would bring nothing before the last. */
static void exchange_slow (struct motion *m, int size)
{
    const struct drawn *x = m->x;
    int each = x->per_stage / size, units = x->n / size,
        stage = rng_below (&m->rng, x->c->deg.pp);
    int from = rng_below (&m->rng, units);
    int most = slowest_of (x, size, stage * each + rng_below (&m->rng, each));

    m->all = true;
    for (int i = stage * each, at = 0; i < (stage + 1) * each; i++) {
        if (slowest_of (x, size, i) <= most)
            continue;
        at = next_fast (x, size, stage, most, from, at);
        if (at == units) {
            m->n = 0;
            return;
        }
        for (int r = 0; r < size; r++)
            add (m, i * size + r, (from + at) % units * size + r);
        at++;
    }
}

static void draw_faster (struct motion *m)
{
    exchange_slow (m, m->x->slot);
}

/* What is left over of many nodes is in slots with slower GPUs. */
static void draw_faster_gpus (struct motion *m)
{
    exchange_slow (m, 1);
}

/* Two replicas' slots from a stage on. */
static void draw_tails (struct motion *m)
{
    const struct drawn *x = m->x;
    int dp = x->c->deg.dp, slot = x->slot;
    int a = rng_below (&m->rng, dp), b = rng_below (&m->rng, dp);

    if (a == b)
        return;
    for (int i = rng_below (&m->rng, x->c->deg.pp); i < x->c->deg.pp; i++)
        for (int r = 0; r < slot; r++)
            add (m, (i * dp + a) * slot + r, (i * dp + b) * slot + r);
}

/* Slots are told by their nodes, in the order of their first slots from `first` on, and by their
 * places on these. */
static int place_of (const struct drawn *x, int first, int slot)
{
    const struct topology_cluster *c = x->pool->problem->cluster;
    int node = node_at (x, slot * x->slot), k = first;

    while (node_at (x, k * x->slot) != node)
        k++;
    return k * x->pool->max_node_gpus + x->gpu[slot * x->slot] - c->node[node].first_gpu;
}

/* Some stages in a row laid out anew: what each node has of them takes them stage by stage, or
 * replica by replica.  From one to the other single exchanges lead through worse ones. */
static void draw_layout (struct motion *m)
{
    const struct drawn *x = m->x;
    int dp = x->c->deg.dp, first = rng_below (&m->rng, x->c->deg.pp - 1);
    int most = x->c->deg.pp - first,
        stages = 2 + rng_below (&m->rng, (most < LAID ? most : LAID) - 1);
    int slots = stages * dp, *now = m->node_at[0], *line = m->node_at[1];
    bool by_replica = rng_below (&m->rng, 2), back = rng_below (&m->rng, 2);

    for (int i = 0; i < slots; i++)
        now[i] = line[i] = place_of (x, first * dp, first * dp + i);
    order_by_ints (line, (size_t) slots, sizeof *line, 1);
    for (int i = 0; i < slots; i++) {
        int to = by_replica ? i % stages * dp + i / stages : i, from = 0;
        int next = line[back ? slots - 1 - i : i];

        while (now[from] != next)
            from++;
        now[from] = now[to];
        now[to] = next;
        for (int r = 0; r < x->slot && from != to; r++)
            add (m, (first * dp + from) * x->slot + r, (first * dp + to) * x->slot + r);
    }
}

/* A layer of every chunk from one stage to another, or a single one where chunks may be uneven. */
static void draw_layers (struct motion *m)
{
    int pp = m->x->c->deg.pp;
    int n = rng_below (&m->rng, 2) ? m->x->unit : m->x->c->deg.vpp;
    int from = rng_below (&m->rng, pp), to = rng_below (&m->rng, pp);

    if (from == to || m->layers[from] - n < m->x->least)
        return;
    m->layers[from] -= n;
    m->layers[to] += n;
    m->other = true;
}

/* ---- which move ---- */

/* What a configuration and its pool may have, and a move asks for. */
enum {
    STAGES = 1 << 0,   /* two */
    STAGES_3 = 1 << 1, /* three */
    REPLICAS = 1 << 2,
    CLASSES = 1 << 3,
    NODES = 1 << 4,
    PARTS = 1 << 5, /* several slots of a stage */
    GROUPS = 1 << 6,
    NO_GROUPS = 1 << 7
};

static unsigned traits_of (const struct drawn *x)
{
    const struct workload_degrees *d = &x->c->deg;

    return (d->pp > 1 ? STAGES : 0u) | (d->pp > 2 ? STAGES_3 : 0u) |
           (d->dp > 1 ? REPLICAS : 0u) | (x->pool->n_classes > 1 ? CLASSES : 0u) |
           (x->pool->n_nodes > 1 ? NODES : 0u) | (x->per_stage > x->slot ? PARTS : 0u) |
           (x->slot > 1 ? GROUPS : NO_GROUPS);
}

static const struct kind {
    int weight;
    unsigned needs;
    void (*draw) (struct motion *m);
} kinds[] = {{6, NO_GROUPS, draw_gpus},
             {3, GROUPS, draw_gpus},
             {6, GROUPS, draw_groups},
             {4, STAGES, draw_layers},
             {2, NODES, draw_nodes},
             {2, STAGES, draw_stages},
             {1, STAGES_3, draw_reversal},
             {1, STAGES_3, draw_shift},
             {3, STAGES | CLASSES, draw_faster},
             {3, STAGES | CLASSES | GROUPS, draw_faster_gpus},
             {1, STAGES | REPLICAS, draw_tails},
             {2, NODES | PARTS, draw_blocks},
             {2, STAGES | REPLICAS | NODES, draw_layout}};
#define KINDS ((int) (sizeof kinds / sizeof *kinds))

static void draw (struct motion *m)
{
    unsigned lacks = ~traits_of (m->x);
    int sum = 0, pick;

    m->n = 0;
    m->other = m->all = false;
    memcpy (m->before, m->x->layers, (size_t) m->x->c->deg.pp * sizeof (int));
    memcpy (m->layers, m->before, (size_t) m->x->c->deg.pp * sizeof (int));
    for (int k = 0; k < KINDS; k++)
        sum += kinds[k].needs & lacks ? 0 : kinds[k].weight;
    pick = rng_below (&m->rng, sum);
    for (int k = 0; k < KINDS; k++) {
        pick -= kinds[k].needs & lacks ? 0 : kinds[k].weight;
        if (pick < 0) {
            kinds[k].draw (m);
            return;
        }
    }
}

/* ---- making it ---- */

static void exchange_gpus (const struct motion *m, bool back)
{
    int *gpu = m->x->gpu;

    for (int i = 0; i < m->n; i++) {
        int k = back ? m->n - 1 - i : i, was = gpu[m->a[k]];

        gpu[m->a[k]] = gpu[m->b[k]];
        gpu[m->b[k]] = was;
    }
}

static void make (struct motion *m)
{
    struct drawn *x = m->x;

    exchange_gpus (m, false);
    if (m->other)
        drawn_take_layers (x, m->layers);
    costmodel_state_exchange (x->state, m->a, m->b, m->n);
}

static void unmake (struct motion *m)
{
    struct drawn *x = m->x;

    exchange_gpus (m, true);
    if (m->other)
        drawn_take_layers (x, m->before);
    costmodel_state_undo (x->state, m->a, m->b, m->n);
}

/* Does memory allow what the move would leave?  The GPUs are put there and back. */
static bool is_legal (struct motion *m)
{
    struct drawn *x = m->x;
    int pp = x->c->deg.pp, *layers = x->layers;
    bool legal = true;

    if (x->pool->n_classes == 1 && !m->other && !pool_uses_matter (x->pool))
        return true;
    exchange_gpus (m, false);
    x->layers = m->layers;
    legal = pool_nodes_fit (x->pool, x->gpu, x->world);
    for (int i = 0; i < pp && legal; i++) {
        bool touched = m->layers[i] != m->before[i];

        for (int k = 0; k < m->n && !touched; k++)
            touched = m->a[k] / x->per_stage == i || m->b[k] / x->per_stage == i;
        legal = !touched || drawn_fits (x, i);
    }
    x->layers = layers;
    exchange_gpus (m, true);
    return legal;
}

static double height (const struct drawn *x)
{
    struct costmodel_price price = costmodel_state_price (x->state);

    return mapper_height (&price);
}

/* An exchange between two stages, which was made and does not serve, with their layers divided
 * anew, or with those of all stages.  It is taken back.  @return is there such a division? */
static bool divide (struct motion *m)
{
    const struct drawn *x = m->x;
    int i = m->a[0] / x->per_stage, k = m->b[0] / x->per_stage, pp = x->c->deg.pp;
    int first = i < k ? i : k, last = i < k ? k : i;
    bool can = first != last && last < pp && m->a[m->n - 1] / x->per_stage == i &&
               m->b[m->n - 1] / x->per_stage == k;

    if (m->all)
        can = drawn_pour (x, 0, pp - 1, 1, x->c->deg.vpp, m->layers);
    else if (can)
        can = drawn_pour (x, first, last, last - first, x->c->deg.vpp, m->layers);
    unmake (m);
    m->other = memcmp (m->layers, m->before, (size_t) pp * sizeof *m->layers) != 0;
    return can && m->other;
}

/* Make the move and see whether it serves. */
static bool make_if_good (struct motion *m, double temperature, double *here)
{
    struct costmodel_state *state = m->x->state;
    struct rng was = m->rng;
    double most = *here - temperature * log (rng_unit (&m->rng)), there;

    costmodel_state_limit (state, (struct costmodel_price){0, INFINITY, most});
    make (m);
    there = height (m->x);
    if (!(there <= most))
        return false;
    if (there <= *here)
        m->rng = was; /* luck was not needed */
    *here = there;
    return true;
}

/* Make the move and keep it, or not. */
static void try_move (struct motion *m, double temperature, double *here)
{
    struct drawn *x = m->x;
    bool legal = is_legal (m), exchange = m->n > 0 && !m->other;
    bool again =
        exchange && x->c->deg.pp > 1 && (m->all || rng_below (&m->rng, DIVIDED) == 0);

    if (!legal && !again)
        return;
    if (legal) {
        if (make_if_good (m, temperature, here))
            return;
    } else {
        costmodel_state_limit (x->state, (struct costmodel_price){0});
        make (m);
    }
    if (!again)
        unmake (m);
    else if (divide (m) && is_legal (m) && !make_if_good (m, temperature, here))
        unmake (m);
}

static void run (struct motion *m, int moves, double hot, const struct deadline *deadline,
                 struct sketch *best)
{
    struct drawn *x = m->x;
    double here = height (x), start = here;

    for (int i = 0; i < moves && isfinite (here) &&
                    (i % BETWEEN_LOOKS != 0 || !deadline_passed (deadline));
         i++) {
        double temperature = start * hot * pow (COLD / hot, (double) i / moves);
        struct costmodel_price now;

        draw (m);
        if (m->n == 0 && !m->other)
            continue;
        try_move (m, temperature, &here);
        now = costmodel_state_price (x->state);
        if (mapper_price_less (&now, &best->price)) {
            best->price = now;
            memcpy (best->gpu, x->gpu, (size_t) x->n * sizeof (int));
            memcpy (best->layers, x->layers, (size_t) x->c->deg.pp * sizeof (int));
        }
    }
}

enum status sketch_anneal (const struct pool *pool, const struct walks *w,
                           const struct workload_config *c, int moves, double hot,
                           unsigned long seed, const struct deadline *deadline,
                           struct sketch *k, struct error *err)
{
    struct drawn x;
    struct motion m = {.x = &x, .rng = {seed}, .single = pool_gpus_differ (pool)};
    enum status st = drawn_init (&x, pool, w, c, false, err);
    size_t n = (size_t) w->n_gpus, pp = (size_t) c->deg.pp;

    m.a = malloc ((4 * n + 2 * pp) * sizeof (int));
    if (!m.a)
        st = err_nomem (err);
    if (st == ST_OK) {
        m.b = m.a + n;
        m.node_at[0] = m.b + n;
        m.node_at[1] = m.node_at[0] + n;
        m.layers = m.node_at[1] + n;
        m.before = m.layers + pp;
        memcpy (x.gpu, k->gpu, n * sizeof (int));
        drawn_take_layers (&x, k->layers);
        costmodel_state_reset (x.state, x.gpu);
        run (&m, moves, hot, deadline, k);
    }
    free (m.a);
    drawn_release (&x);
    return st;
}
