/* What the links between the nodes of a grid cost: every pair is priced once, as a boundary
 * between two stages and as the slowest link of a row's ring. */
#include "mapper/place/grid_pairs.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/memory.h"

#define UNMEASURED_TIMES 10 /* what nobody measured counts so many times */
#define MOST_S 1e6          /* as bad as can still be added up */
#define BLOCK 32            /* rows and columns that a cache holds */

/* What a byte of a flow takes at a node's way out and its way in, which as many share as there are
 * of a kind. */
struct ways {
    double *out, *in; /* [n] seconds; 0: no total is known */
    int flows;
};

struct pricing {
    const struct grid_problem *p;
    struct ways send, ring, expert;
};

static void find_ways (const struct grid_problem *p, double flows, double *room,
                       struct ways *w)
{
    *w = (struct ways){room, room + p->n, flows > 1 ? (int) flows : 1};
    for (int i = 0; i < p->n; i++) {
        double all = p->cluster->node[p->node[i]].node_bytes_per_s;

        w->out[i] = w->in[i] = all > 0 ? w->flows / all : 0.0;
    }
}

/* What a byte takes from node i to node j of the problem: by a link, and by what the nodes share,
 * topology_share, whose divisions were made once for all pairs. */
static inline double byte_s (const struct grid_problem *p, const struct ways *w, int i,
                             int j, double link_s)
{
    return larger (link_s, p->cluster->has_pair_totals
                               ? 1.0 / topology_share (p->cluster, p->node[i], p->node[j],
                                                       w->flows, w->flows)
                               : larger (w->out[i], w->in[j]));
}

/* The slowest of the links between GPUs of one place on two nodes. */
static struct topology_link worst_link (const struct topology_cluster *c, int a, int b)
{
    const struct topology_node *x = &c->node[a], *y = &c->node[b];
    struct topology_link worst;

    if (!c->has_gpu_links)
        return topology_node_link (c, a, b);
    worst = topology_link (c, x->first_gpu, y->first_gpu);
    for (int k = 1; k < x->gpus && k < y->gpus; k++) {
        struct topology_link l = topology_link (c, x->first_gpu + k, y->first_gpu + k);

        if (l.bytes_per_s < worst.bytes_per_s)
            worst = l;
    }
    return worst;
}

/* Seconds of a ring whose slowest link is that from node i to node j. */
static inline double ring_s (const struct pricing *x, const struct grid_ring *r,
                             const struct ways *w, int i, int j, double link_s)
{
    return r->bytes > 0 ? r->bytes * byte_s (x->p, w, i, j, link_s / r->lanes) : 0.0;
}

/* Price i -> j; the boundary's other way is added by the caller. */
static inline void price_pair (const struct pricing *x, int i, int j, double *send_s,
                               double *rings_s)
{
    const struct grid_problem *p = x->p;
    struct topology_link l = worst_link (p->cluster, p->node[i], p->node[j]);
    double link_s = 1.0 / l.bytes_per_s, times = l.measured ? 1.0 : UNMEASURED_TIMES;

    if (l.bytes_per_s <= 0) { /* no price */
        *send_s = *rings_s = MOST_S;
        return;
    }
    *send_s =
        smaller (MOST_S, times * (p->send_latency * l.latency_s +
                                  p->send_bytes * byte_s (p, &x->send, i, j, link_s)));
    *rings_s =
        smaller (MOST_S, times * (ring_s (x, &p->ring, &x->ring, i, j, link_s) +
                                  ring_s (x, &p->expert, &x->expert, i, j, link_s)));
}

/* Both ways are as long, for a block of the upper and one of the lower half at a time: each row of
 * the other half is far from the one before, and in the same few places of a cache where n is a
 * power of two, so that a block is copied first. */
static void add_ways_back (struct grid_pairs *x)
{
    size_t n = (size_t) x->n;
    float above[BLOCK][BLOCK];

    for (size_t rows = 0; rows < n; rows += BLOCK)
        for (size_t columns = 0; columns <= rows; columns += BLOCK) {
            size_t height = n - rows < BLOCK ? n - rows : BLOCK,
                   width = n - columns < BLOCK ? n - columns : BLOCK;
            float *lower = x->sends + rows * n + columns,
                  *upper = x->sends + columns * n + rows;

            for (size_t j = 0; j < width; j++)
                memcpy (above[j], upper + j * n, height * sizeof **above);
            for (size_t i = 0; i < height; i++)
                for (size_t j = 0; j < width && columns + j < rows + i; j++) {
                    float both = above[j][i] + lower[i * n + j];

                    lower[i * n + j] = above[j][i] = both;
                    if (rows == columns) /* the two are one block */
                        above[i][j] = both;
                }
            for (size_t j = 0; j < width; j++)
                memcpy (upper + j * n, above[j], height * sizeof **above);
        }
}

/* @param[in] room  [6 * n] scratch */
static void price_pairs (const struct grid_problem *p, double *room, struct grid_pairs *x)
{
    size_t n = (size_t) x->n;
    double pairs = (double) n * (double) (n - 1), sends = 0.0, rings = 0.0;
    struct pricing by = {.p = p};

    find_ways (p, p->flows, room, &by.send);
    find_ways (p, p->ring.groups, room + 2 * n, &by.ring);
    find_ways (p, p->expert.groups, room + 4 * n, &by.expert);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double send_s = 0.0, rings_s = 0.0;

            if (i != j)
                price_pair (&by, (int) i, (int) j, &send_s, &rings_s);
            x->sends[i * n + j] = (float) send_s;
            x->ring[i * n + j] = (float) rings_s;
            x->slowest_ring = larger (x->slowest_ring, rings_s);
            sends += send_s;
            rings += rings_s;
        }
    if (p->both_ways)
        add_ways_back (x);
    x->mean_send = larger ((p->both_ways ? 2.0 : 1.0) * sends / pairs, DBL_MIN);
    x->mean_ring = larger (rings / pairs, DBL_MIN);
}

static bool is_guess (const struct topology_cluster *c, int a, int b)
{
    return !isnan (
        topology_link_estimate_error (c, c->node[a].first_gpu, c->node[b].first_gpu));
}

static void find_guesses (const struct grid_problem *p, struct grid_pairs *x)
{
    size_t n = (size_t) x->n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            x->guess[i * n + j] = x->guess[j * n + i] =
                is_guess (p->cluster, p->node[i], p->node[j]) ||
                is_guess (p->cluster, p->node[j], p->node[i]);
}

/* Every node's best-linked others. */
static void find_near (struct grid_pairs *x)
{
    for (int i = 0; i < x->n; i++) {
        int *near = x->near + (size_t) i * NEAR, found = 0;
        const float *cost = x->sends + (size_t) i * (size_t) x->n;

        for (int j = 0; j < x->n; j++) {
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

bool grid_pairs_init (const struct grid_problem *p, struct grid_pairs *x)
{
    size_t n = (size_t) p->n;
    bool guesses = p->cluster->has_estimates;
    double *room = malloc (6 * n * sizeof *room);

    *x = (struct grid_pairs){.n = p->n,
                             .sends = malloc (n * n * sizeof *x->sends),
                             .ring = malloc (n * n * sizeof *x->ring),
                             .guess = guesses ? calloc (n * n, sizeof *x->guess) : NULL,
                             .near = calloc (n * NEAR, sizeof *x->near)};
    if (!room || !x->sends || !x->ring || !x->near || (guesses && !x->guess)) {
        free (room);
        return false;
    }
    price_pairs (p, room, x);
    free (room);
    if (guesses)
        find_guesses (p, x);
    find_near (x);
    return true;
}

void grid_pairs_release (struct grid_pairs *x)
{
    FREE_ALL (x->sends, x->ring, x->guess, x->near);
}
