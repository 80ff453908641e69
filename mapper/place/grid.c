/* Whole nodes to a grid of pipelines: annealing on a model of the step in which a move
 * costs under a microsecond.
 *
 * Where every node holds the same block of the layout, the nodes form a grid: rows are
 * blocks of stages, columns blocks of replicas.  A column's sends add up, a row's ring is
 * as slow as its slowest link, and the rest of the step does not depend on who is where:
 *
 *     step ~ rest + weight max over columns of (sum of its sends, both ways)
 *                 + max over rows of what is not hidden of the slowest ring link
 *                 + a little for every estimated link
 *
 * The weight is how often a micro-batch's way down and up is exposed, 1 + floor ((m-1)/p)
 * + a part of the last round (docs/formulas.md, T18).  Maxima are softened while
 * annealing, so that every link tells; the best is kept by the maxima themselves, and the
 * caller prices it exactly. */
#include "mapper/place/grid_pairs.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/memory.h"

#define SHARP_COLUMNS 30.0 /* of the soft maximum, per mean boundary */
#define SHARP_RINGS 50.0   /* per mean ring link */
#define GUESS 0.02         /* what an estimated link counts, in mean boundaries */
#define HOT_RING 0.03      /* temperature at the start, in mean ring links */
#define HOT_ANEW 0.06      /* the same from a random order */

struct grid {
    const struct grid_problem *p;
    int n, rows, columns, cells;
    struct grid_pairs pairs;
    int *node;         /* [n] by cell, row by row; beyond the cells, spares */
    int *best;         /* [n] */
    int *cell_of;      /* [n] by node, while annealing */
    double *sum;       /* [columns] */
    double *soft;      /* [columns] exp (sharp * (sum - base)) */
    double *edge;      /* [cells] the same of (ring link to the next column - hidden) */
    double *ring_s;    /* [cells] ring link to the next column - hidden */
    double *row_edges; /* [rows] the row's sum of them */
    double *row_ring;  /* [rows] its slowest ring link - hidden, 0 at least */
    double most_sum;   /* the largest of sum */
    double soft_sum, edge_sum;
    double rings; /* soft_rings of edge_sum */
    double base, ring_base;
    double sharp, ring_sharp;
    double no_ring; /* exp (-ring_sharp * ring_base): a ring that is hidden */
    double best_cost;
    double guess_s; /* what an estimate counts beyond its price */
    long guesses;   /* estimates among the links in use */
    struct rng rng;
    /* A move under way. */
    int changed[2]; /* columns */
    double new_sum[2], new_soft[2];
    long new_guesses;
    int *edge_at;     /* [4 * rows] ring links, as cells */
    double *new_edge; /* [4 * rows] */
    double *new_ring; /* [4 * rows] */
    int n_edges;
};

/* ---- what a grid costs ---- */

static double send_at (const struct grid *g, int cell)
{
    return grid_send (&g->pairs, g->node[cell], g->node[cell + g->columns]);
}

static int next_in_ring (const struct grid *g, int cell)
{
    return (cell + 1) % g->columns == 0 ? cell + 1 - g->columns : cell + 1;
}

static double ring_at (const struct grid *g, int cell)
{
    int row = cell / g->columns;

    return grid_shown (
        g->p, row, grid_ring (&g->pairs, g->node[cell], g->node[next_in_ring (g, cell)]));
}

static int previous_in_ring (const struct grid *g, int cell)
{
    return cell % g->columns == 0 ? cell + g->columns - 1 : cell - 1;
}

/* An estimate may be far worse than it says, and then holds up even what is hidden now: so
 * each counts a little, wherever it is. */
static bool guess_at (const struct grid *g, int a, int b)
{
    return grid_guess (&g->pairs, g->node[a], g->node[b]);
}

static int guesses_in_ring (const struct grid *g, int cell)
{
    return g->columns > 1 ? guess_at (g, cell, next_in_ring (g, cell)) +
                                guess_at (g, cell, previous_in_ring (g, cell))
                          : 0;
}

static int guesses_around (const struct grid *g, int cell)
{
    int n = 0;

    if (!g->pairs.guess || cell >= g->cells)
        return 0;
    if (cell >= g->columns)
        n += guess_at (g, cell, cell - g->columns);
    if (cell + g->columns < g->cells)
        n += guess_at (g, cell, cell + g->columns);
    return n + guesses_in_ring (g, cell);
}

/* Of what an exchange of two columns from a row on touches. */
static int guesses_of_tails (const struct grid *g, int a, int b, int row)
{
    int above = (row - 1) * g->columns, n = 0;

    if (!g->pairs.guess)
        return 0;
    if (row > 0)
        n += guess_at (g, above + a, above + g->columns + a) +
             guess_at (g, above + b, above + g->columns + b);
    for (; row < g->rows; row++)
        n += guesses_in_ring (g, row * g->columns + a) +
             guesses_in_ring (g, row * g->columns + b);
    return n;
}

static bool has_ring (const struct grid *g, int row)
{
    return g->columns > 1 && grid_shown (g->p, row, g->pairs.slowest_ring) > 0.0;
}

static double column_sum (const struct grid *g, int column)
{
    double sum = 0.0;

    for (int row = 0; row + 1 < g->rows; row++)
        sum += send_at (g, row * g->columns + column);
    return sum;
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

/* The sum and the largest of n numbers, 0 at least, four at a time: one after the other each would
 * wait for the one before. */
static double add_up (const double *x, int n)
{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int k = 0;

    for (; k + 4 <= n; k += 4) {
        a += x[k];
        b += x[k + 1];
        c += x[k + 2];
        d += x[k + 3];
    }
    for (; k < n; k++)
        a += x[k];
    return (a + b) + (c + d);
}

static double largest (const double *x, int n)
{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int k = 0;

    for (; k + 4 <= n; k += 4) {
        a = larger (a, x[k]);
        b = larger (b, x[k + 1]);
        c = larger (c, x[k + 2]);
        d = larger (d, x[k + 3]);
    }
    for (; k < n; k++)
        a = larger (a, x[k]);
    return larger (larger (a, b), larger (c, d));
}

/* The largest of n numbers, where one of them is another now. */
static double still_largest (const double *x, int n, double most, double had, double has)
{
    return has >= most ? has : had < most ? most : largest (x, n);
}

static void add_up_row (struct grid *g, int row)
{
    g->row_edges[row] = add_up (g->edge + row * g->columns, g->columns);
}

/* By the maxima, of sums that are up to date. */
static double cost_of (const struct grid *g)
{
    return g->p->weight * g->most_sum + largest (g->row_ring, g->rows) +
           g->guess_s * (double) g->guesses;
}

/* The sums over rows. */
static void add_up_rows (struct grid *g)
{
    g->edge_sum = add_up (g->row_edges, g->rows);
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
    g->most_sum = largest (g->sum, g->columns);
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
        g->row_ring[row] = largest (g->ring_s + row * g->columns, g->columns);
        add_up_row (g, row);
    }
    g->no_ring = exp (-g->ring_sharp * g->ring_base);
    add_up_rows (g);
    g->guesses = 0;
    for (int cell = 0; cell < g->cells && g->pairs.guess; cell++) {
        g->guesses +=
            cell + g->columns < g->cells && guess_at (g, cell, cell + g->columns);
        g->guesses += g->columns > 1 && guess_at (g, cell, next_in_ring (g, cell));
    }
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
    touch_edge (g, previous_in_ring (g, cell));
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
           (g->n_edges > 0 ? soft_rings (g, edge_sum) : g->rings) +
           g->guess_s * (double) g->new_guesses;
}

static void put_column (struct grid *g, int column, double sum, double soft)
{
    double had = g->sum[column];

    g->sum[column] = sum;
    g->soft[column] = soft;
    g->most_sum = still_largest (g->sum, g->columns, g->most_sum, had, sum);
}

static void put_edge (struct grid *g, int cell, double ring_s, double edge)
{
    int row = cell / g->columns;
    double had = g->ring_s[cell];

    g->ring_s[cell] = ring_s;
    g->edge[cell] = edge;
    g->row_ring[row] = still_largest (g->ring_s + row * g->columns, g->columns,
                                      g->row_ring[row], had, ring_s);
}

/* Keep the move. */
static void commit (struct grid *g)
{
    for (int k = 0; k < 2; k++)
        if (g->changed[k] >= 0)
            put_column (g, g->changed[k], g->new_sum[k], g->new_soft[k]);
    for (int k = 0; k < g->n_edges; k++)
        put_edge (g, g->edge_at[k], g->new_ring[k], g->new_edge[k]);
    g->guesses = g->new_guesses;
    g->soft_sum = add_up (g->soft, g->columns); /* anew: differences would cancel */
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

    g->new_guesses = g->guesses - guesses_around (g, i) - guesses_around (g, j);
    swap_nodes (g, i, j);
    g->new_guesses += guesses_around (g, i) + guesses_around (g, j);

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
    g->new_guesses = g->guesses - guesses_of_tails (g, a, b, row);
    swap_tails (g, a, b, row);
    g->new_guesses += guesses_of_tails (g, a, b, row);
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

/* A cell at the slowest link of the slowest ring, or -1. */
static int slowest_cell (struct grid *g)
{
    const double *ring_s;
    int row = 0, at = 0;

    for (int r = 1; r < g->rows; r++)
        row = g->row_ring[r] > g->row_ring[row] ? r : row;
    if (!has_ring (g, row) || !(g->row_ring[row] > 0.0))
        return -1;
    ring_s = g->ring_s + row * g->columns;
    for (int k = 1; k < g->columns; k++)
        at = ring_s[k] > ring_s[at] ? k : at;
    at += row * g->columns;
    return rng_below (&g->rng, 2) ? at : next_in_ring (g, at);
}

static struct drawn draw (struct grid *g)
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
        j = g->cell_of[g->pairs.near[(size_t) g->node[i] * NEAR + (size_t) near]];
        i = at;
    } else {
        int worst = kind == 9 ? slowest_cell (g) : -1;

        i = worst >= 0 ? worst : i;
        j = rng_below (&g->rng, g->n);
    }
    return (struct drawn){i != j && alike (g, i, j) ? MOVE_SWAP : MOVE_NONE, i, j, 0};
}

static void note_cells (struct grid *g)
{
    for (int i = 0; i < g->n; i++)
        g->cell_of[g->node[i]] = i;
}

static void keep_best (struct grid *g)
{
    double cost = cost_of (g);

    if (cost < g->best_cost) {
        g->best_cost = cost;
        memcpy (g->best, g->node, (size_t) g->n * sizeof (int));
    }
}

static double soft_cost (const struct grid *g)
{
    return soft_columns (g, g->soft_sum) + g->rings + g->guess_s * (double) g->guesses;
}

/* From the nodes in hand; temperatures in seconds. */
static void anneal (struct grid *g, long moves, double hot, double cold)
{
    double here, cooling = pow (cold / hot, 1.0 / (double) (moves > 64 ? moves / 64 : 1));
    double temperature = hot;

    evaluate (g);
    keep_best (g);
    note_cells (g);
    here = soft_cost (g);
    for (long k = 0; k < moves; k++) {
        struct drawn d = draw (g);
        double there;

        if (k % 64 == 63)
            temperature *= cooling;
        if (d.move == MOVE_NONE)
            continue;
        there =
            d.move == MOVE_SWAP ? try_swap (g, d.a, d.b) : try_tails (g, d.a, d.b, d.row);
        if (there <= here || rng_unit (&g->rng) < exp ((here - there) / temperature)) {
            commit (g);
            here = soft_cost (g);
            keep_best (g);
            if (d.move == MOVE_SWAP) {
                g->cell_of[g->node[d.a]] = d.a;
                g->cell_of[g->node[d.b]] = d.b;
            } else
                note_cells (g);
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

/* ---- set up ---- */

static bool allocate (struct grid *g)
{
    size_t n = (size_t) g->n, rows = (size_t) g->rows, columns = (size_t) g->columns;

    g->node = malloc ((3 * n + 4 * rows) * sizeof (int));
    g->sum = calloc (2 * columns + 2 * rows * columns + 10 * rows, sizeof (double));
    if (!g->node || !g->sum)
        return false;
    g->best = g->node + n;
    g->cell_of = g->best + n;
    g->edge_at = g->cell_of + n;
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
    if (!grid_pairs_init (p, &g->pairs) || !allocate (g)) {
        grid_destroy (g);
        return NULL;
    }
    g->sharp = SHARP_COLUMNS / g->pairs.mean_send;
    g->ring_sharp = SHARP_RINGS / g->pairs.mean_ring;
    return g;
}

void grid_destroy (struct grid *g)
{
    if (!g)
        return;
    grid_pairs_release (&g->pairs);
    FREE_ALL (g->node, g->sum, g);
}

bool grid_grow (struct grid *g, int *order)
{
    bool found = grid_pairs_grow (&g->pairs, g->rows, g->columns, has_ring (g, 0),
                                  &g->rng, g->node);

    if (found)
        memcpy (order, g->node, (size_t) g->n * sizeof (int));
    return found;
}

void grid_improve (struct grid *g, int *order, bool anew, long moves)
{
    /* The more columns, the less each tells in the soft maximum. */
    double columns = g->columns < 4 ? 4 : g->columns, few = 8.0 / columns;
    double column = g->p->weight * g->pairs.mean_send;
    double ring = 0.0;
    double hot = (anew ? 0.3 : 0.1) * column * pow (few, 1.33);
    double cold = 1e-3 * column * pow (few, 1.2);

    for (int row = 0; row < g->rows; row++)
        ring = has_ring (g, row) ? g->pairs.mean_ring : ring;
    if (g->rows == 1)
        cold = 1e-5 * ring;
    hot = larger (hot, (anew ? HOT_ANEW : HOT_RING) * ring);
    g->guess_s = GUESS * (g->rows > 1 ? column : ring);
    memcpy (g->node, order, (size_t) g->n * sizeof (int));
    if (anew)
        shuffle (g);
    g->best_cost = INFINITY;
    anneal (g, moves, hot, cold);
    grid_mend_rings (g->p, &g->pairs, g->best);
    memcpy (order, g->best, (size_t) g->n * sizeof (int));
}
