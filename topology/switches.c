/* Where nodes hang in the tree of switches. */
#include "topology/topology.h"

int topology_hops (const struct topology_cluster *c, int a, int b)
{
    const struct topology_node *x = &c->node[a], *y = &c->node[b];

    for (int i = 0; i < x->levels; i++)
        for (int j = 0; j < y->levels; j++)
            if (x->switch_id[i] == y->switch_id[j])
                return i > j ? i : j;
    return -1;
}
