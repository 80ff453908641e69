/* A plan's places on a cluster. */
#include "costmodel/costmodel.h"

#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    int index;
};

static int by_name (const void *a, const void *b)
{
    return strcmp (((const struct named *) a)->name, ((const struct named *) b)->name);
}

enum status costmodel_plan_gpus (const struct workload_plan *p,
                                 const struct topology_cluster *c, int *gpu,
                                 struct error *err)
{
    struct named *nodes = malloc ((size_t) c->n_nodes * sizeof *nodes);
    enum status st = nodes ? ST_OK : err_nomem (err);

    for (int i = 0; i < c->n_nodes && nodes; i++)
        nodes[i] = (struct named){c->node[i].name, i};
    if (nodes)
        qsort (nodes, (size_t) c->n_nodes, sizeof *nodes, by_name);
    for (int r = 0; r < p->n_ranks && st == ST_OK; r++) {
        struct named key = {p->place[r].node, 0};
        const struct named *found =
            bsearch (&key, nodes, (size_t) c->n_nodes, sizeof *nodes, by_name);
        const struct topology_node *n = found ? &c->node[found->index] : NULL;

        if (!n)
            st = err_set (err, ST_INVALID, "rank %d: the cluster %s has no node \"%s\"",
                          r, c->name, p->place[r].node);
        else if (p->place[r].gpu >= n->gpus)
            st = err_set (err, ST_INVALID,
                          "rank %d: node %s has GPUs 0 to %d, the plan says %d", r,
                          n->name, n->gpus - 1, p->place[r].gpu);
        else
            gpu[r] = n->first_gpu + p->place[r].gpu;
    }
    free (nodes);
    return st;
}
