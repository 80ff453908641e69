/* A line of GPUs whose TP groups lie across nodes, one GPU of each: for pools in which links
 * between nodes are faster than those inside.  A ring over nodes is as slow as its slowest link, so
 * nodes are first put in an order in which those that follow each other are joined by fast ones. */
#include "mapper/place/sketch_private.h"

/* Of a pool whose nodes are put in order: of more, that takes long. */
#define ORDERED_NODES 32
#define SWEEPS 20   /* over all pairs of nodes, at most */
#define SHARPNESS 4 /* power of a link's time: the slowest link decides */
#define SLOWEST 1e3 /* times the best link's time, of a link that is not there */

/* What the link between two nodes of an order costs: 1 where it is as fast as the best. */
static double link_cost (const struct pool *pool, const int *order, int from, int to)
{
    const struct topology_cluster *c = pool->problem->cluster;
    const struct topology_node *a = &c->node[pool->node[order[from]]],
                               *b = &c->node[pool->node[order[to]]];
    double best = pool->inter_bytes_per_s, cost = 1.0,
           rate = topology_link (c, a->first_gpu, b->first_gpu).bytes_per_s;
    double slow =
        rate > best / SLOWEST ? best / rate : SLOWEST; /* also where it is unknown */

    for (int i = 0; i < SHARPNESS && from != to; i++)
        cost *= slow;
    return cost;
}

/* Of all links that an order uses: those of every TP group's ring, and those of the rings over GPUs
 * of the same rank, which go from group to group and from the last to the first one turned. */
static double order_cost (const struct pool *pool, const int *order, int n, int tp)
{
    double sum = 0.0;

    for (int i = 0; i < n; i++) {
        int first = i / tp * tp, turn = (i - first + 1) % tp;

        if (first + turn < n)
            sum += link_cost (pool, order, i, first + turn);
        sum += link_cost (pool, order, i, i + tp < n ? i + tp : turn);
    }
    return sum;
}

/* May the two take each other's place?  Those after the first n stay idle, as other slower ones. */
static bool may_exchange (const struct pool *pool, const int *order, int n, int i, int k)
{
    const struct topology_node *node = pool->problem->cluster->node;
    int a = pool->node[order[i]], b = pool->node[order[k]];

    return k < n || (pool_node_class (pool, a) == pool_node_class (pool, b) &&
                     node[a].gpus == node[b].gpus && !pool_is_pinned (pool, a));
}

/* Exchange nodes as long as that makes the links of the first n faster. */
static void order_rings (const struct pool *pool, int *order, int n, int tp)
{
    double least = order_cost (pool, order, n, tp);
    bool gained = true;

    for (int sweep = 0; gained && sweep < SWEEPS; sweep++) {
        gained = false;
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < pool->n_nodes; k++) {
                int had = order[i];
                double cost;

                if (!may_exchange (pool, order, n, i, k))
                    continue;
                order[i] = order[k];
                order[k] = had;
                cost = order_cost (pool, order, n, tp);
                if (cost < least) {
                    least = cost;
                    gained = true;
                    continue;
                }
                order[k] = order[i];
                order[i] = had;
            }
    }
}

bool across_pays (const struct pool *pool, const struct workload_config *c)
{
    return c->deg.tp > 1 && pool->max_node_gpus > 1 && pool->n_nodes > 1 &&
           pool->inter_bytes_per_s > pool->intra_bytes_per_s;
}

/* The node at place i of round k: every round turns the groups by one rank, so that GPUs of the
 * same rank, which synchronise, are on different nodes too.  The first `most` nodes stay the first.
 */
static int turned (const int *order, int tp, int most, int i, int k)
{
    int first = i / tp * tp;

    return order[first + tp <= most ? first + (i - first + k) % tp : i];
}

int across_nodes (const struct pool *pool, const struct workload_config *c,
                  const int *order)
{
    const struct topology_cluster *cluster = pool->problem->cluster;
    int world = (int) workload_world (&c->deg), n = 0;

    for (int have = 0; n < pool->n_nodes && have < world; n++)
        have += cluster->node[pool->node[order[n]]].gpus;
    n = (n + c->deg.tp - 1) / c->deg.tp * c->deg.tp;
    return n < pool->n_nodes ? n : pool->n_nodes;
}

int across_line (const struct pool *pool, const struct workload_config *c, int nodes,
                 int *order, int *line, int *late)
{
    const struct topology_cluster *cluster = pool->problem->cluster;
    int tp = c->deg.tp < nodes ? c->deg.tp : nodes, at = 0, idle = 0;

    if (pool->n_nodes <= ORDERED_NODES)
        order_rings (pool, order, nodes, tp);
    for (int k = 0; k < pool->max_node_gpus; k++)
        for (int i = 0; i < pool->n_nodes; i++) {
            const struct topology_node *node =
                &cluster->node[pool->node[turned (order, tp, nodes, i, k)]];

            if (k < node->gpus && i < nodes)
                line[at++] = node->first_gpu + k;
            else if (k < node->gpus)
                late[idle++] = node->first_gpu + k;
        }
    for (int k = 0; k < idle; k++)
        line[at + k] = late[k];
    return at;
}
