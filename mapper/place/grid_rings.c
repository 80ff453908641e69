/* The slowest link of a grid's slowest ring, mended by three links.
 *
 * A ring of directed links is cut at its slowest one and at two others, and the two parts behind
 * the first cut change places: three links go and three come, and no part turns round.  Whole
 * columns move, so that no send changes. */
#include "mapper/place/grid_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MENDS 4 /* per column, at most */

struct mending {
    const struct grid_problem *p;
    const struct grid_pairs *x;
    int *node;   /* [rows * columns] */
    int *column; /* [columns] places of columns, the one behind the slowest link first */
    int *moved;  /* [columns] */
};

/* What a ring's link from column a to column b takes beyond what hides it. */
static double link_s (const struct mending *m, int row, int a, int b)
{
    const int *node = m->node + row * m->p->columns;

    return grid_shown (m->p, row, grid_ring (m->x, node[a], node[b]));
}

/* The slowest link of all rings.  @param[out] column  it leaves */
static double slowest (const struct mending *m, int *row, int *column)
{
    int n = m->p->columns;
    double most = 0.0;

    *row = *column = -1;
    for (int r = 0; r < m->p->rows; r++)
        for (int c = 0; c < n; c++) {
            double s = link_s (m, r, c, (c + 1) % n);

            if (s > most) {
                most = s;
                *row = r;
                *column = c;
            }
        }
    return most;
}

/* Are all rows' links from column a to column b quicker? */
static bool quicker (const struct mending *m, int a, int b, double limit)
{
    for (int row = 0; row < m->p->rows; row++)
        if (!(link_s (m, row, a, b) < limit))
            return false;
    return true;
}

/* Columns 0 to i, i + 1 to j, and the rest, whose last link is the slowest: the last two parts
 * change places. */
static bool find_cuts (const struct mending *m, double limit, int *at_i, int *at_j)
{
    const int *at = m->column;
    int n = m->p->columns, last = at[n - 1];

    for (int i = 0; i < n - 2; i++) {
        if (!quicker (m, last, at[i + 1], limit))
            continue;
        for (int j = i + 1; j < n - 1; j++)
            if (quicker (m, at[j], at[0], limit) &&
                quicker (m, at[i], at[j + 1], limit)) {
                *at_i = i;
                *at_j = j;
                return true;
            }
    }
    return false;
}

static void exchange (struct mending *m, int i, int j)
{
    int n = m->p->columns, behind = n - 1 - j;

    memcpy (m->moved, m->column, (size_t) n * sizeof (int));
    memcpy (m->moved + i + 1, m->column + j + 1, (size_t) behind * sizeof (int));
    memcpy (m->moved + i + 1 + behind, m->column + i + 1,
            (size_t) (j - i) * sizeof (int));
    for (int row = 0; row < m->p->rows; row++) {
        int *node = m->node + row * n;

        for (int c = 0; c < n; c++)
            m->column[c] = node[m->moved[c]];
        memcpy (node, m->column, (size_t) n * sizeof (int));
    }
}

bool grid_mend_rings (const struct grid_problem *p, const struct grid_pairs *x, int *node)
{
    struct mending m = {p, x, node, malloc (2 * (size_t) p->columns * sizeof (int)),
                        NULL};
    int row, from, i, j, mends = 0;

    if (!m.column || p->columns < 4) {
        free (m.column);
        return false;
    }
    m.moved = m.column + p->columns;
    for (; mends < MENDS * p->columns; mends++) {
        double limit = slowest (&m, &row, &from);

        if (row < 0)
            break;
        for (int c = 0; c < p->columns; c++)
            m.column[c] = (from + 1 + c) % p->columns;
        if (!find_cuts (&m, limit, &i, &j))
            break;
        exchange (&m, i, j);
    }
    free (m.column);
    return mends > 0;
}
