/* Whole nodes change places within their stages until no bad link is in use.
 *
 * The grid (grid.c) knows of rings from each node to the next one, and of the sends of a replica.
 * Expert groups on several nodes (those of shared.c, too) exchange between all pairs of these, and
 * experts' rings go from each to its like in the next group.  What the grid does not know is left
 * to chance: among so many links some are bad.  A local search over all links that such a stage
 * has in use is enough, since few of a cluster's are bad. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/extremes.h"

#define BAD 1.0    /* of all links that a node has in use: it may change places */
#define TRIES 50   /* nodes to change places with, drawn for each ... */
#define PASSES 8   /* ... in each pass: later ones find what those before left better */
#define WORTH 0.03 /* that a pass makes less, else it was the last */

/* A stage, node by node, and those that it sends to and receives from. */
struct row {
    const struct topology_cluster *cluster;
    int *node; /* [n] */
    const int *beside[2];
    int n, n_beside;
    int group;          /* nodes that exchange, one after the other */
    bool apart;         /* do those beside have a node's ranks on all of its group? */
    double bytes_per_s; /* that a link in use should have */
    double *bad; /* [n] of the links that each place has in use; below 0: not known */
};

/* How bad a link is: 1 where it is as slow as it may be, 256 where it is twice as slow. */
static double badness (const struct row *s, int a, int b)
{
    double slow = s->bytes_per_s / topology_node_link (s->cluster, a, b).bytes_per_s;

    slow *= slow;
    slow *= slow;
    return smaller (slow * slow, 1e30);
}

static double both_ways (const struct row *s, int a, int b)
{
    return badness (s, a, b) + badness (s, b, a);
}

/* The links that the node at place i has in use: rings of experts go to its like in the next group,
 * those of other weights through all nodes of its own first. */
static double add_up (const struct row *s, int i)
{
    int at = s->node[i], n = s->n, first = i - i % s->group, last = first + s->group - 1;
    double sum = 0.0;

    if (s->group < n) { /* else rings stay in the group */
        sum = badness (s, at, s->node[(i + s->group) % n]) +
              badness (s, s->node[(i + n - s->group) % n], at);
        sum += i == last ? badness (s, at, s->node[(i + 1) % n]) : 0.0;
        sum += i == first ? badness (s, s->node[(i + n - 1) % n], at) : 0.0;
    }
    for (int k = first; k <= last; k++)
        sum += k != i ? both_ways (s, at, s->node[k]) : 0.0;
    for (int k = 0; k < s->n_beside; k++) {
        sum += both_ways (s, at, s->beside[k][i]);
        for (int j = first; j <= last && s->apart; j++)
            sum += j != i ? both_ways (s, at, s->beside[k][j]) : 0.0;
    }
    return sum;
}

static double in_use (struct row *s, int i)
{
    if (s->bad[i] < 0)
        s->bad[i] = add_up (s, i);
    return s->bad[i];
}

static void swap (struct row *s, int i, int j)
{
    int node = s->node[i];

    s->node[i] = s->node[j];
    s->node[j] = node;
}

/* The node at place i is another one: which places have other links in use by that? */
static void forget (struct row *s, int i)
{
    int n = s->n, first = i - i % s->group;

    for (int k = first; k < first + s->group; k++)
        s->bad[k] = -1.0;
    s->bad[(i + s->group) % n] = s->bad[(i + n - s->group) % n] = -1.0;
    s->bad[(i + 1) % n] = s->bad[(i + n - 1) % n] = -1.0;
}

/* The nodes at two places change these where that leaves less bad links in use. */
static void change_places (struct row *s, int i, int j)
{
    double had = in_use (s, i) + in_use (s, j), has;

    swap (s, i, j);
    has = add_up (s, i);
    if (has < had && has + add_up (s, j) < had) {
        forget (s, i);
        forget (s, j);
    } else {
        swap (s, i, j);
    }
}

/* Nodes of one class change places.  @return what is bad yet in all; 0: no node has bad links */
static double mend (struct placer *x, struct row *s)
{
    const struct pool *pool = x->pool;
    double sum = 0.0, most = 0.0;

    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < TRIES && in_use (s, i) > BAD; k++) {
            int j = rng_below (&x->rng, s->n);

            if (j != i &&
                pool_node_class (pool, s->node[j]) == pool_node_class (pool, s->node[i]))
                change_places (s, i, j);
        }
    for (int i = 0; i < s->n; i++) {
        sum += in_use (s, i);
        most = larger (most, s->bad[i]);
    }
    return most > BAD ? sum : 0.0;
}

static void mend_stage (struct placer *x, struct row *s)
{
    double was = INFINITY, now;

    s->bytes_per_s = INFINITY;
    for (int k = 0; k < s->n; k++) {
        s->bytes_per_s = smaller (s->bytes_per_s, x->pool->usual[s->node[k]]);
        s->bad[k] = -1.0;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        now = mend (x, s);
        if (now >= was * (1.0 - WORTH))
            return;
        was = now;
    }
}

void mend_layout (struct placer *x)
{
    int size = x->pool->max_node_gpus, n = x->per_stage / size, pp = x->c->deg.pp;
    int group = close_group (x) / size, *seq = x->layout.seq;
    bool round = x->c->deg.vpp > 1; /* from the last stage to the first */
    double *bad;

    if (x->layout.depth > 1 || x->layout.by_shard || x->per_stage % size != 0 ||
        (group > 1 && n % group != 0) || !(bad = malloc ((size_t) n * sizeof *bad)))
        return;
    for (int i = 0; i < pp; i++) {
        struct row s = {.cluster = x->pool->problem->cluster,
                        .node = seq + i * n,
                        .n = n,
                        .group = group > 1 ? group : 1,
                        .bad = bad};

        if (is_shared (x, i)) {
            s.group = shared_nodes (x);
            s.apart = x->layout.shared_stage == i;
        }
        if (s.group == 1)
            continue;
        if (pp > 1 && (i > 0 || round))
            s.beside[s.n_beside++] = seq + (i + pp - 1) % pp * n;
        if (pp > 2 && (i + 1 < pp || round))
            s.beside[s.n_beside++] = seq + (i + 1) % pp * n;
        mend_stage (x, &s);
    }
    free (bad);
}
