/* The order that `linkwise cluster synth --plant` hid in a cluster file. */
#ifndef TESTS_LIB_PLANTED_H
#define TESTS_LIB_PLANTED_H

#include "topology/topology.h"

/** Rank by rank, stage by stage.
 *  @param[in]  planted  the file's `planted`
 *  @param[out] gpu      [the cluster's n_gpus] */
static inline void planted_order (const struct topology_cluster *c, const json_t *planted,
                                  int *gpu)
{
    const json_t *stages = json_object_get (planted, "stages"), *stage, *name;
    size_t i, k;
    int at = 0;

    json_array_foreach (stages, i, stage) json_array_foreach (stage, k, name)
    {
        const struct topology_node *n =
            &c->node[topology_node_find (c, json_string_value (name))];

        for (int g = 0; g < n->gpus; g++)
            gpu[at++] = n->first_gpu + g;
    }
}

#endif
