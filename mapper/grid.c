/* Whole nodes to a grid of pipelines: annealing on a model of the step in which a move
 * costs tens of nanoseconds.
 *
 * Where every node holds the same block of the layout, the nodes form a grid: rows are
 * blocks of stages, columns blocks of replicas.  A column's sends add up, a row's ring is
 * as slow as its slowest link, and the rest of the step does not depend on who is where:
 *
 *     step ~ rest + weight max over columns of (sum of its sends, both ways)
 *                 + max over rows of (slowest ring link - what hides it)
 *
 * The weight is how often a micro-batch's way down and up is exposed, 1 + floor ((m-1)/p)
 * + a part of the last round (Pipette's hidden critical path; MAPPING of the 1F1B
 * recurrence).  Maxima are softened while annealing, so that every link tells; the best
 * is kept by the maxima themselves, and the caller prices it exactly. */
#include "mapper/grid.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"

#define NEAR 8    /* best-linked partners of a node that moves bring together */
#define FAST 1.02 /* links within so much of the best are grown along */
#define GROW_TRIES 40000
#define UNMEASURED_TIMES 10 /* what nobody measured counts so many times */
#define SHARP_COLUMNS 30.0  /* of the soft maximum, per mean boundary */
#define SHARP_RINGS 50.0    /* per mean ring link */
#define BLUNT 10.0          /* of large grids, the first run's soft maximum of rings */
#define HOT_RING 0.03       /* temperature at the start, in mean ring links */
#define HOT_ANEW 0.06       /* the same from a random order */

struct grid {
    const struct grid_problem *p;
    int n, rows, columns, cells;
    float *sends;      /* [n * n] seconds of a boundary between two nodes, both ways */
    float *ring;       /* [n * n] of a row's ring, were this its slowest link */
    int *near;         /* [n * NEAR] */
    int *node;         /* [n] by cell, row by row; beyond the cells, spares */
    int *best;         /* [n] */
    double *sum;       /* [columns] */
    double *soft;      /* [columns] exp (sharp * (sum - base)) */
    double *edge;      /* [cells] the same of (ring link to the next column - hidden) */
    double *ring_s;    /* [cells] ring link to the next column - hidden */
    double *row_edges; /* [rows] the row's sum of them */
    double *row_ring;  /* [rows] its slowest ring link - hidden, 0 at least */
    double soft_sum, edge_sum;
    double rings; /* soft_rings of edge_sum */
    double base, ring_base;
    double sharp, ring_sharp;
    double no_ring;      /* exp (-ring_sharp * ring_base): a ring that is hidden */
    double slowest_ring; /* of all pairs: what a row's ring may take */
    double best_cost;
    struct rng rng;
    /* A move under way. */
    int changed[2]; /* columns */
    double new_sum[2], new_soft[2];
    int *edge_at;     /* [4 * rows] ring links, as cells */
    double *new_edge; /* [4 * rows] */
    double *new_ring; /* [4 * rows] */
    int n_edges;
};

/* ---- links ---- */

/* The slowest of the links between GPUs of one place on two nodes. */
static struct topology_link worst_link (const struct topology_cluster *c, int a, int b)
{
    const struct topology_node *x = &c->node[a], *y = &c->node[b];
    struct topology_link worst = topology_link (c, x->first_gpu, y->first_gpu);

    for (int k = 1; c->has_gpu_links && k < x->gpus && k < y->gpus; k++) {
        struct topology_link l = topology_link (c, x->first_gpu + k, y->first_gpu + k);

        if (l.bytes_per_s < worst.bytes_per_s)
            worst = l;
    }
    return worst;
}

/* Price a -> b; the boundary's other way is added by the caller. */
static void price_pair (const struct grid_problem *p, int i, int j, double *send_s,
                        double *ring_s)
{
    const struct topology_cluster *c = p->cluster;
    int a = p->node[i], b = p->node[j];
    struct topology_link l = worst_link (c, a, b);
    int flows = (int) p->flows, groups = (int) p->ring_groups;
    double rate = smaller (l.bytes_per_s, topology_share (c, a, b, flows, flows));
    double ring =
        smaller (p->lanes * l.bytes_per_s, topology_share (c, a, b, groups, groups));
    double times = l.measured ? 1.0 : UNMEASURED_TIMES;

    if (l.bytes_per_s <= 0) { /* no price: as bad as can still be added up */
        *send_s = *ring_s = 1e6;
        return;
    }
    *send_s = times * (p->send_latency * l.latency_s + p->send_bytes / rate);
    *ring_s = times * p->ring_bytes / ring;
}

static void price_pairs (struct grid *g)
{
    size_t n = (size_t) g->n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double send_s = 0.0, ring_s = 0.0;

            if (i != j)
                price_pair (g->p, (int) i, (int) j, &send_s, &ring_s);
            g->sends[i * n + j] = (float) send_s;
            g->ring[i * n + j] = (float) ring_s;
            g->slowest_ring = larger (g->slowest_ring, ring_s);
        }
    for (size_t i = 0; i < n && g->p->both_ways; i++)
        for (size_t j = 0; j < i; j++)
            g->sends[i * n + j] = g->sends[j * n + i] =
                g->sends[i * n + j] + g->sends[j * n + i];
}

/* Every node's best-linked others. */
static void find_near (struct grid *g)
{
    for (int i = 0; i < g->n; i++) {
        int *near = g->near + (size_t) i * NEAR, found = 0;
        const float *cost = g->sends + (size_t) i * (size_t) g->n;

        for (int j = 0; j < g->n; j++) {
            int at = found;

            if (j == i || (found == NEAR && cost[j] >= cost[near[NEAR - 1]]))
                continue;
            if (found < NEAR)
                found++;
            else
                at = NEAR - 1;
            for (; at > 0 && cost[near[at - 1]] > cost[j]; at--)
                near[at] = near[at - 1];
            near[at] = j;
        }
        for (; found > 0 && found < NEAR; found++)
            near[found] = near[0];
    }
}

/* ---- what a grid costs ---- */

static double send_at (const struct grid *g, int cell)
{
    return (double) g->sends[(size_t) g->node[cell] * (size_t) g->n +
                             (size_t) g->node[cell + g->columns]];
}

static int next_in_ring (const struct grid *g, int cell)
{
    return (cell + 1) % g->columns == 0 ? cell + 1 - g->columns : cell + 1;
}

static double ring_at (const struct grid *g, int cell)
{
    int row = cell / g->columns;

    return g->p->ring_share[row] *
               (double) g->ring[(size_t) g->node[cell] * (size_t) g->n +
                                (size_t) g->node[next_in_ring (g, cell)]] -
           g->p->hidden_s[row];
}

static bool has_ring (const struct grid *g, int row)
{
    return g->columns > 1 &&
           g->p->hidden_s[row] < g->p->ring_share[row] * g->slowest_ring;
}

static bool has_rings (const struct grid *g)
{
    bool any = false;

    for (int row = 0; row < g->rows; row++)
        any = any || has_ring (g, row);
    return any;
}

static double column_sum (const struct grid *g, int column)
{
    double sum = 0.0;

    for (int row = 0; row + 1 < g->rows; row++)
        sum += send_at (g, row * g->columns + column);
    return sum;
}

/* By the maxima, of sums that are up to date. */
static double cost_of (const struct grid *g)
{
    double sum = 0.0, ring = 0.0;

    for (int c = 0; c < g->columns; c++)
        sum = larger (sum, g->sum[c]);
    for (int row = 0; row < g->rows; row++)
        ring = larger (ring, g->row_ring[row]);
    return g->p->weight * sum + ring;
}

static double softened_edge (const struct grid *g, double ring_s)
{
    return exp (g->ring_sharp * (ring_s - g->ring_base));
}

/* The softened cost: of columns, and of rings. */
static double soft_columns (const struct grid *g, double soft_sum)
{
    return g->rows > 1 ? g->p->weight / g->sharp * log (larger (soft_sum, DBL_MIN)) : 0.0;
}

static double soft_rings (const struct grid *g, double edge_sum)
{
    return log (larger (g->no_ring + edge_sum, DBL_MIN)) / g->ring_sharp;
}

/* A row's figures from its edges. */
static void add_up_row (struct grid *g, int row)
{
    double sum = 0.0, ring = 0.0;

    for (int cell = row * g->columns; cell < (row + 1) * g->columns; cell++) {
        sum += g->edge[cell];
        ring = g->ring_s[cell] > ring ? g->ring_s[cell] : ring;
    }
    g->row_edges[row] = sum;
    g->row_ring[row] = ring;
}

/* The sums over rows. */
static void add_up_rows (struct grid *g)
{
    g->edge_sum = 0.0;
    for (int row = 0; row < g->rows; row++)
        g->edge_sum += g->row_edges[row];
    g->rings = soft_rings (g, g->edge_sum);
}

/* Everything anew from the nodes in hand. */
static void evaluate (struct grid *g)
{
    g->base = 0.0;
    for (int c = 0; c < g->columns; c++) {
        g->sum[c] = column_sum (g, c);
        g->base = larger (g->base, g->sum[c]);
    }
    g->soft_sum = g->ring_base = 0.0;
    for (int c = 0; c < g->columns; c++)
        g->soft_sum += g->soft[c] = exp (g->sharp * (g->sum[c] - g->base));
    for (int cell = 0; cell < g->cells; cell++)
        if (has_ring (g, cell / g->columns)) {
            g->ring_s[cell] = ring_at (g, cell);
            g->ring_base = larger (g->ring_base, g->ring_s[cell]);
        }
    for (int row = 0; row < g->rows; row++) {
        g->row_edges[row] = g->row_ring[row] = 0.0;
        if (!has_ring (g, row))
            continue;
        for (int cell = row * g->columns; cell < (row + 1) * g->columns; cell++)
            g->edge[cell] = softened_edge (g, g->ring_s[cell]);
        add_up_row (g, row);
    }
    g->no_ring = exp (-g->ring_sharp * g->ring_base);
    add_up_rows (g);
}

/* ---- moves ---- */

static void swap_nodes (struct grid *g, int i, int j)
{
    int x = g->node[i];

    g->node[i] = g->node[j];
    g->node[j] = x;
}

/* Boundaries above and below a cell; not the one to `but` (-1: none). */
static double sends_around (const struct grid *g, int cell, int but)
{
    double sum = 0.0;

    if (cell >= g->cells)
        return 0.0;
    if (cell >= g->columns && cell - g->columns != but)
        sum += send_at (g, cell - g->columns);
    if (cell + g->columns < g->cells && cell + g->columns != but)
        sum += send_at (g, cell);
    return sum;
}

static void touch_edge (struct grid *g, int cell)
{
    for (int k = 0; k < g->n_edges; k++)
        if (g->edge_at[k] == cell)
            return;
    g->edge_at[g->n_edges++] = cell;
}

static void touch_edges (struct grid *g, int cell)
{
    if (cell >= g->cells || !has_ring (g, cell / g->columns))
        return;
    touch_edge (g, cell);
    touch_edge (g, cell % g->columns == 0 ? cell + g->columns - 1 : cell - 1);
}

/* The softened cost with the move's columns and ring links as they now are. */
static double changed_cost (struct grid *g)
{
    double soft_sum = g->soft_sum, edge_sum = g->edge_sum;

    for (int k = 0; k < 2; k++) {
        int c = g->changed[k];

        if (c < 0)
            continue;
        g->new_soft[k] = exp (g->sharp * (g->new_sum[k] - g->base));
        soft_sum += g->new_soft[k] - g->soft[c];
    }
    for (int k = 0; k < g->n_edges; k++) {
        g->new_ring[k] = ring_at (g, g->edge_at[k]);
        g->new_edge[k] = softened_edge (g, g->new_ring[k]);
        edge_sum += g->new_edge[k] - g->edge[g->edge_at[k]];
    }
    return soft_columns (g, soft_sum) +
           (g->n_edges > 0 ? soft_rings (g, edge_sum) : g->rings);
}

/* Keep the move. */
static void commit (struct grid *g)
{
    for (int k = 0; k < 2; k++)
        if (g->changed[k] >= 0) {
            g->sum[g->changed[k]] = g->new_sum[k];
            g->soft[g->changed[k]] = g->new_soft[k];
        }
    for (int k = 0; k < g->n_edges; k++) {
        g->edge[g->edge_at[k]] = g->new_edge[k];
        g->ring_s[g->edge_at[k]] = g->new_ring[k];
    }
    /* Added up anew: differences would cancel. */
    g->soft_sum = 0.0;
    for (int c = 0; c < g->columns; c++)
        g->soft_sum += g->soft[c];
    if (g->n_edges == 0)
        return;
    for (int k = 0, last = -1; k < g->n_edges; k++) {
        int row = g->edge_at[k] / g->columns;

        if (row != last)
            add_up_row (g, row);
        last = row;
    }
    add_up_rows (g);
}

/* Two cells change nodes.  @return the softened cost then */
static double try_swap (struct grid *g, int i, int j)
{
    int a = i < g->cells ? i % g->columns : -1, b = j < g->cells ? j % g->columns : -1;
    double out_a = sends_around (g, i, -1), out_b = sends_around (g, j, i);

    swap_nodes (g, i, j);

    double in_a = sends_around (g, i, -1) - out_a, in_b = sends_around (g, j, i) - out_b;

    g->n_edges = 0;
    touch_edges (g, i);
    touch_edges (g, j);
    g->changed[0] = a;
    g->changed[1] = a == b ? -1 : b;
    if (a >= 0)
        g->new_sum[0] = g->sum[a] + in_a + (a == b ? in_b : 0.0);
    if (b >= 0 && a != b)
        g->new_sum[1] = g->sum[b] + in_b;
    return changed_cost (g);
}

static void swap_tails (struct grid *g, int a, int b, int row)
{
    for (; row < g->rows; row++)
        swap_nodes (g, row * g->columns + a, row * g->columns + b);
}

/* Columns a and b exchange everything from a row on. */
static double try_tails (struct grid *g, int a, int b, int row)
{
    swap_tails (g, a, b, row);
    g->n_edges = 0;
    for (int r = row; r < g->rows; r++) {
        touch_edges (g, r * g->columns + a);
        touch_edges (g, r * g->columns + b);
    }
    g->changed[0] = a;
    g->changed[1] = b;
    g->new_sum[0] = column_sum (g, a);
    g->new_sum[1] = column_sum (g, b);
    return changed_cost (g);
}

static bool alike (const struct grid *g, int i, int j)
{
    return g->p->kind[g->node[i]] == g->p->kind[g->node[j]];
}

static bool tails_alike (const struct grid *g, int a, int b, int row)
{
    for (; row < g->rows; row++)
        if (!alike (g, row * g->columns + a, row * g->columns + b))
            return false;
    return true;
}

/* ---- annealing ---- */

enum move { MOVE_NONE, MOVE_SWAP, MOVE_TAILS };

struct drawn {
    enum move move;
    int a, b, row;
};

/* A cell's neighbour below or to the right, else above. */
static int neighbour (struct grid *g, int cell)
{
    int row = cell / g->columns;

    if (has_ring (g, row) && (g->rows == 1 || rng_below (&g->rng, 4) == 0))
        return next_in_ring (g, cell);
    if (g->rows == 1)
        return -1;
    return cell + g->columns < g->cells ? cell + g->columns : cell - g->columns;
}

static struct drawn draw (struct grid *g, const int *cell_of)
{
    int kind = rng_below (&g->rng, 16), i = rng_below (&g->rng, g->cells), j;

    if (kind == 0 && g->columns > 1) {
        int a = i % g->columns, b = rng_below (&g->rng, g->columns);
        int row = rng_below (&g->rng, g->rows);

        return (struct drawn){
            a != b && tails_alike (g, a, b, row) ? MOVE_TAILS : MOVE_NONE, a, b, row};
    }
    if (kind < 9) {
        int at = neighbour (g, i), near = rng_below (&g->rng, NEAR);

        if (at < 0)
            return (struct drawn){0};
        j = cell_of[g->near[(size_t) g->node[i] * NEAR + (size_t) near]];
        i = at;
    } else
        j = rng_below (&g->rng, g->n);
    return (struct drawn){i != j && alike (g, i, j) ? MOVE_SWAP : MOVE_NONE, i, j, 0};
}

static void note_cells (const struct grid *g, int *cell_of)
{
    for (int i = 0; i < g->n; i++)
        cell_of[g->node[i]] = i;
}

static void keep_best (struct grid *g)
{
    double cost = cost_of (g);

    if (cost < g->best_cost) {
        g->best_cost = cost;
        memcpy (g->best, g->node, (size_t) g->n * sizeof (int));
    }
}

/* From the nodes in hand; temperatures in seconds. */
static void anneal (struct grid *g, long moves, double hot, double cold, int *cell_of)
{
    double here, cooling = pow (cold / hot, 1.0 / (double) (moves > 64 ? moves / 64 : 1));
    double temperature = hot;

    evaluate (g);
    keep_best (g);
    note_cells (g, cell_of);
    here = soft_columns (g, g->soft_sum) + g->rings;
    for (long k = 0; k < moves; k++) {
        struct drawn d = draw (g, cell_of);
        double there;

        if (k % 64 == 63)
            temperature *= cooling;
        if (d.move == MOVE_NONE)
            continue;
        there =
            d.move == MOVE_SWAP ? try_swap (g, d.a, d.b) : try_tails (g, d.a, d.b, d.row);
        if (there <= here || rng_unit (&g->rng) < exp ((here - there) / temperature)) {
            commit (g);
            here = soft_columns (g, g->soft_sum) + g->rings;
            keep_best (g);
            if (d.move == MOVE_SWAP) {
                cell_of[g->node[d.a]] = d.a;
                cell_of[g->node[d.b]] = d.b;
            } else
                note_cells (g, cell_of);
        } else if (d.move == MOVE_SWAP) {
            swap_nodes (g, d.a, d.b);
        } else {
            swap_tails (g, d.a, d.b, d.row);
        }
    }
}

/* Nodes of each kind change places at random. */
static void shuffle (struct grid *g)
{
    for (int i = g->n - 1; i > 0; i--) {
        int j = rng_below (&g->rng, i + 1);

        if (alike (g, i, j))
            swap_nodes (g, i, j);
    }
}

/* ---- growing along the fastest links ---- */

/* Nodes that the fastest links lead to, at most NEAR of them. */
static int fast_from (const struct grid *g, int node, double limit, int *out)
{
    const int *near = g->near + (size_t) node * NEAR;
    int n = 0;

    for (int k = 0; k < NEAR && k < g->n - 1; k++)
        if ((double) g->sends[(size_t) node * (size_t) g->n + (size_t) near[k]] <= limit)
            out[n++] = near[k];
    return n;
}

static bool is_fast (const struct grid *g, int a, int b, double limit)
{
    return (double) g->sends[(size_t) a * (size_t) g->n + (size_t) b] <= limit;
}

/* A free node that fast links join to the one to the left and the one above (-1: none). */
static int grow_cell (struct grid *g, int left, int above, double limit,
                      const unsigned *taken, unsigned now)
{
    int list[NEAR], from = left >= 0 ? left : above;
    int n = fast_from (g, from, limit, list), first = n > 0 ? rng_below (&g->rng, n) : 0;

    for (int k = 0; k < n; k++) {
        int node = list[(first + k) % n];

        if (taken[node] != now &&
            (left < 0 || above < 0 || is_fast (g, above, node, limit)))
            return node;
    }
    return -1;
}

/* One attempt from a random node. */
static bool grow (struct grid *g, double limit, unsigned *taken, unsigned now)
{
    for (int c = 0; c < g->columns; c++)
        for (int r = 0; r < g->rows; r++) {
            int at = r * g->columns + c;
            int left = c > 0 ? g->node[at - 1] : -1;
            int above = r > 0 ? g->node[at - g->columns] : -1;
            int node = at == 0 ? rng_below (&g->rng, g->n)
                               : grow_cell (g, left, above, limit, taken, now);

            if (node < 0)
                return false;
            g->node[at] = node;
            taken[node] = now;
        }
    return !has_ring (g, 0) || is_fast (g, g->node[g->columns - 1], g->node[0], limit);
}

/* Do the fastest links make a grid, in which a node has about four, and not a plain? */
static bool stands_out (const struct grid *g, double limit)
{
    int list[NEAR], links = 0;

    for (int i = 0; i < g->n; i++)
        links += fast_from (g, i, limit, list);
    return links >= 2 * g->cells && links <= 6 * g->n;
}

bool grid_grow (struct grid *g, int *order)
{
    unsigned *taken = calloc ((size_t) g->n, sizeof *taken);
    double limit = INFINITY;
    bool found = false;
    int at = g->cells;

    for (int i = 0; i < g->n; i++)
        limit = smaller (limit, (double) g->sends[(size_t) i * (size_t) g->n +
                                                  (size_t) g->near[(size_t) i * NEAR]]);
    limit *= FAST;
    if (g->rows < 2 || !taken || !stands_out (g, limit)) {
        free (taken);
        return false;
    }
    for (unsigned now = 1; now <= GROW_TRIES && !found; now++)
        found = grow (g, limit, taken, now);
    for (int i = 0; i < g->n && found; i++) /* the others are spares */
        taken[i] = 0;
    for (int cell = 0; cell < g->cells && found; cell++)
        taken[g->node[cell]] = 1;
    for (int i = 0; i < g->n && found; i++)
        if (!taken[i])
            g->node[at++] = i;
    if (found)
        memcpy (order, g->node, (size_t) g->n * sizeof (int));
    free (taken);
    return found;
}

/* ---- set up ---- */

static double mean_of (const float *cost, int n)
{
    double sum = 0.0;

    for (size_t k = 0; k < (size_t) n * (size_t) n; k++)
        sum += (double) cost[k];
    return sum / ((double) n * (n - 1));
}

static bool allocate (struct grid *g)
{
    size_t n = (size_t) g->n, rows = (size_t) g->rows, columns = (size_t) g->columns;

    g->sends = malloc (2 * n * n * sizeof *g->sends);
    g->near = calloc (n * (NEAR + 3) + 4 * rows, sizeof (int));
    g->sum = calloc (2 * columns + 2 * rows * columns + 10 * rows, sizeof (double));
    if (!g->sends || !g->near || !g->sum)
        return false;
    g->ring = g->sends + n * n;
    g->node = g->near + n * NEAR;
    g->best = g->node + n;
    g->edge_at = g->best + 2 * n; /* cell_of lies between */
    g->soft = g->sum + columns;
    g->edge = g->soft + columns;
    g->new_edge = g->edge + rows * columns;
    g->new_ring = g->new_edge + 4 * rows;
    g->ring_s = g->new_ring + 4 * rows;
    g->row_edges = g->ring_s + rows * columns;
    g->row_ring = g->row_edges + rows;
    return true;
}

struct grid *grid_create (const struct grid_problem *p, uint64_t seed)
{
    struct grid *g = calloc (1, sizeof *g);

    if (!g)
        return NULL;
    *g = (struct grid){.p = p,
                       .n = p->n,
                       .rows = p->rows,
                       .columns = p->columns,
                       .cells = p->rows * p->columns,
                       .rng = {seed}};
    if (!allocate (g)) {
        grid_destroy (g);
        return NULL;
    }
    price_pairs (g);
    find_near (g);
    g->sharp = SHARP_COLUMNS / larger (mean_of (g->sends, g->n), DBL_MIN);
    g->ring_sharp = SHARP_RINGS / larger (mean_of (g->ring, g->n), DBL_MIN);
    return g;
}

void grid_destroy (struct grid *g)
{
    if (!g)
        return;
    free (g->sends);
    free (g->near);
    free (g->sum);
    free (g);
}

void grid_improve (struct grid *g, int *order, bool anew, long moves)
{
    /* The more columns, the less each tells in the soft maximum. */
    double columns = g->columns < 4 ? 4 : g->columns, few = 8.0 / columns;
    double column = g->p->weight * SHARP_COLUMNS / g->sharp;
    double ring = has_rings (g) ? SHARP_RINGS / g->ring_sharp : 0.0;
    double hot = (anew ? 0.3 : 0.1) * column * pow (few, 1.33);
    double cold = 1e-3 * column * pow (few, 1.2);

    if (g->rows == 1)
        cold = 1e-5 * ring;
    hot = larger (hot, (anew ? HOT_ANEW : HOT_RING) * ring);
    memcpy (g->node, order, (size_t) g->n * sizeof (int));
    if (anew)
        shuffle (g);
    g->best_cost = INFINITY;
    if (g->n > GRID_LARGE && has_rings (g)) {
        g->ring_sharp /= BLUNT;
        anneal (g, moves, hot, cold, g->best + g->n);
        g->ring_sharp *= BLUNT;
        memcpy (g->node, g->best, (size_t) g->n * sizeof (int));
        hot = cold;
    }
    anneal (g, moves, hot, cold, g->best + g->n);
    memcpy (order, g->best, (size_t) g->n * sizeof (int));
}
