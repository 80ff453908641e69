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
        gpu[r] = topology_gpu_find (c, node, p->place[r].gpu);
        if (gpu[r] < 0)
            return err_set (err, ST_INVALID,
                            "rank %d: node %s has GPUs 0 to %d%s, the plan says %d", r,
                            n->name, n->gpus_listed - 1,
                            n->gpus < n->gpus_listed ? ", some of them drained" : "",
                            p->place[r].gpu);
    }
    return ST_OK;
}
