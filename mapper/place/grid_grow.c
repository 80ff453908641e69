/* A grid grown along the fastest links alone, column after column, which finds a grid that
 * stands out. */
#include "mapper/place/grid_pairs.h"

#include <math.h>
#include <stdlib.h>

#include "base/extremes.h"

#define FAST 1.02 /* links within so much of the best are grown along */
#define GROW_TRIES 40000

struct growth {
    const struct grid_pairs *x;
    int rows, columns;
    double limit; /* what a fast link costs at most */
    struct rng *rng;
    unsigned *taken, now; /* [n] the attempt that took a node; the one in hand */
};

/* Nodes that the fastest links lead to, at most NEAR of them. */
static int fast_from (const struct grid_pairs *x, int node, double limit, int *out)
{
    const int *near = x->near + (size_t) node * NEAR;
    int n = 0;

    for (int k = 0; k < NEAR && k < x->n - 1; k++)
        if (grid_send (x, node, near[k]) <= limit)
            out[n++] = near[k];
    return n;
}

/* A free node that fast links join to the one to the left and the one above (-1: none). */
static int grow_cell (const struct growth *g, int left, int above)
{
    int list[NEAR], from = left >= 0 ? left : above;
    int n = fast_from (g->x, from, g->limit, list),
        first = n > 0 ? rng_below (g->rng, n) : 0;

    for (int k = 0; k < n; k++) {
        int node = list[(first + k) % n];

        if (g->taken[node] != g->now &&
            (left < 0 || above < 0 || grid_send (g->x, above, node) <= g->limit))
            return node;
    }
    return -1;
}

/* One attempt from a random node. */
static bool grow (const struct growth *g, int *node)
{
    for (int c = 0; c < g->columns; c++)
        for (int r = 0; r < g->rows; r++) {
            int at = r * g->columns + c;
            int left = c > 0 ? node[at - 1] : -1;
            int above = r > 0 ? node[at - g->columns] : -1;
            int next = at == 0 ? rng_below (g->rng, g->x->n) : grow_cell (g, left, above);

            if (next < 0)
                return false;
            node[at] = next;
            g->taken[next] = g->now;
        }
    return true;
}

/* Do the fastest links make a grid, in which a node has about four, and not a plain? */
static bool stands_out (const struct growth *g)
{
    int list[NEAR], links = 0;

    for (int i = 0; i < g->x->n; i++)
        links += fast_from (g->x, i, g->limit, list);
    return links >= 2 * g->rows * g->columns && links <= 6 * g->x->n;
}

bool grid_pairs_grow (const struct grid_pairs *x, int rows, int columns, bool ring,
                      struct rng *rng, int *node)
{
    struct growth g = {x, rows, columns, INFINITY, rng, NULL, 0};
    int at = rows * columns;
    bool found = false;

    for (int i = 0; i < x->n; i++)
        g.limit = smaller (g.limit, FAST * grid_send (x, i, x->near[(size_t) i * NEAR]));
    if (rows < 2 || !stands_out (&g) ||
        !(g.taken = calloc ((size_t) x->n, sizeof *g.taken)))
        return false;
    while (!found && g.now++ < GROW_TRIES)
        found = grow (&g, node) &&
                (!ring || grid_send (x, node[columns - 1], node[0]) <= g.limit);
    for (int i = 0; i < x->n && found; i++) /* the others are spares */
        if (g.taken[i] != g.now)
            node[at++] = i;
    free (g.taken);
    return found;
}
