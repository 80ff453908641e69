/* Whole nodes change places within their stages until no bad link is in use.
 *
 * The grid (grid.c) knows of rings from each node to the next one, and of the sends of a replica.
 * Expert groups that several nodes share exchange between all pairs of these, and what the grid
 * does not know is left to chance: among so many links some are bad.  So is a stage's whose nodes
 * share groups (shared.c), whose rings go to the next nodes that do.  A local search over all links
 * that such a stage has in use is enough, since few of a cluster's are bad. */
#include "mapper/place/place_private.h"

#include <math.h>

#include "base/extremes.h"

#define BAD 1.0  /* of all links that a node has in use: it may change places */
#define TRIES 50 /* nodes to change places with, drawn for each ... */
#define PASSES 8 /* ... in each pass: later ones find what those before left better */

/* A stage, node by node, and those that it sends to and receives from. */
struct row {
    const struct topology_cluster *cluster;
    int *node; /* [n] */
    const int *beside[2];
    int n, n_beside;
    int group;  /* nodes that exchange, one after the other */
    int next;   /* to which node a ring goes: the next one, or that of the next group */
    bool apart; /* do those beside have a node's ranks on all of its group? */
    double bytes_per_s; /* that a link in use should have */
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

/* The links that the node at place i has in use. */
static double in_use (const struct row *s, int i)
{
    int at = s->node[i], first = i - i % s->group;
    double sum = 0.0;

    if (s->next < s->n) /* else rings stay in nodes */
        sum = badness (s, at, s->node[(i + s->next) % s->n]) +
              badness (s, s->node[(i + s->n - s->next) % s->n], at);
    for (int k = first; k < first + s->group; k++)
        sum += k != i ? both_ways (s, at, s->node[k]) : 0.0;
    for (int k = 0; k < s->n_beside; k++) {
        sum += both_ways (s, at, s->beside[k][i]);
        for (int j = first; j < first + s->group && s->apart; j++)
            sum += j != i ? both_ways (s, at, s->beside[k][j]) : 0.0;
    }
    return sum;
}

static void swap (struct row *s, int i, int j)
{
    int node = s->node[i];

    s->node[i] = s->node[j];
    s->node[j] = node;
}

/* Nodes of one class change places.  @return have some bad links yet? */
static bool mend (struct placer *x, struct row *s)
{
    const struct pool *pool = x->pool;
    bool bad = false;

    for (int i = 0; i < s->n; i++) {
        double here = in_use (s, i);

        for (int k = 0; k < TRIES && here > BAD; k++) {
            int j = rng_below (&x->rng, s->n);
            double there, then;

            if (j == i ||
                pool_node_class (pool, s->node[j]) != pool_node_class (pool, s->node[i]))
                continue;
            there = in_use (s, j);
            swap (s, i, j);
            then = in_use (s, i);
            if (then < here + there && then + in_use (s, j) < here + there)
                here = then;
            else
                swap (s, i, j);
        }
        bad = bad || here > BAD;
    }
    return bad;
}

void mend_layout (struct placer *x)
{
    int size = x->pool->max_node_gpus, n = x->per_stage / size, pp = x->c->deg.pp;
    int group = close_group (x) / size, *seq = x->layout.seq;
    bool round = x->c->deg.vpp > 1; /* from the last stage to the first */

    if (x->layout.depth > 1 || x->layout.by_shard || x->per_stage % size != 0 ||
        (group > 1 && n % group != 0))
        return;
    for (int i = 0; i < pp; i++) {
        struct row s = {.cluster = x->pool->problem->cluster,
                        .node = seq + i * n,
                        .n = n,
                        .group = group > 1 ? group : 1,
                        .next = 1,
                        .bytes_per_s = INFINITY};

        if (is_shared (x, i)) {
            s.group = s.next = shared_nodes (x);
            s.apart = x->layout.shared_stage == i;
        }
        if (s.group == 1)
            continue;
        if (pp > 1 && (i > 0 || round))
            s.beside[s.n_beside++] = seq + (i + pp - 1) % pp * n;
        if (pp > 2 && (i + 1 < pp || round))
            s.beside[s.n_beside++] = seq + (i + 1) % pp * n;
        for (int k = 0; k < n; k++)
            s.bytes_per_s = smaller (s.bytes_per_s, x->pool->usual[s.node[k]]);
        for (int pass = 0; pass < PASSES && mend (x, &s); pass++)
            ;
    }
}
