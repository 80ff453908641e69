/* What a link has where nothing is wrong: the figure that a mended one gets. */
#ifndef TOPOLOGY_TYPICAL_H
#define TOPOLOGY_TYPICAL_H

#include "topology/topology.h"

/** Links inside nodes.  Nodes are of one kind that list as many GPUs of one type.  A link's figure
 *  is the median of the links at its place (the GPUs' numbers) in the nodes of the kind: links
 *  that are slower by design are so in all of them.  With fewer than TOPOLOGY_TYPICAL_NODES of
 *  these it is the median of all links inside nodes of the kind. */
struct topology_inside;
#define TOPOLOGY_TYPICAL_NODES 3

/** @param[in]  c    borrowed until topology_inside_destroy
 *  @return ST_OK or ST_NOMEM */
enum status topology_inside_create (const struct topology_cluster *c,
                                    struct topology_inside **out, struct error *err);
void topology_inside_destroy (struct topology_inside *x);

/** The figure for the link between two GPUs of one node, bytes/s; NaN where no such link was
 *  measured.  The first question about a place works it out. */
double topology_inside_typical (struct topology_inside *x, int src_gpu, int dst_gpu);

/** Are the links inside a node all alike? */
bool topology_inside_alike (const struct topology_cluster *c, int node);

/** The median of what all GPUs of two nodes reach together, over all pairs of nodes that are in
 *  use; NaN where the cluster does not say it.
 *  @return ST_OK or ST_NOMEM */
enum status topology_pair_typical (const struct topology_cluster *c, double *bytes_per_s,
                                   struct error *err);

#endif
