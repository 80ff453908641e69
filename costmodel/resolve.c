/* A plan's places on a cluster. */
#include "costmodel/costmodel.h"

enum status costmodel_plan_gpus (const struct workload_plan *p,
                                 const struct topology_cluster *c, int *gpu,
                                 struct error *err)
{
    for (int r = 0; r < p->n_ranks; r++) {
        int node = topology_node_find (c, p->place[r].node);
        const struct topology_node *n = node >= 0 ? &c->node[node] : NULL;

        if (!n)
            return err_set (err, ST_INVALID, "rank %d: the cluster %s has no node \"%s\"",
                            r, c->name, p->place[r].node);
        if (p->place[r].gpu >= n->gpus)
            return err_set (err, ST_INVALID,
                            "rank %d: node %s has GPUs 0 to %d, the plan says %d", r,
                            n->name, n->gpus - 1, p->place[r].gpu);
        gpu[r] = n->first_gpu + p->place[r].gpu;
    }
    return ST_OK;
}
