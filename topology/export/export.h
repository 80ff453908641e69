/* Clusters as other programs' files. */
#ifndef TOPOLOGY_EXPORT_H
#define TOPOLOGY_EXPORT_H

#include "topology/survey/survey.h"

/** The i-th format, or NULL after the last. */
const struct text_choice *topology_export_at (int i);

/** Write a cluster for another program, whole or not at all; the same cluster gives the same
 *  bytes.  Free text of the cluster is escaped as the format wants it.
 *
 *  @param[in] c       topology_cluster_read_partial's will do
 *  @param[in] format  one of the names
 *  @param[in] node    a node to draw alone, or NULL; graphviz only
 *  @param[in] path    "-" is standard output; ".yaml" makes slurm-topology a topology.yaml;
 *                     npy writes a second file, of latencies, beside it
 *  @param[in] watch   may be NULL
 *  @return ST_OK; ST_USAGE for a format or node that is none, and for npy on a stream;
 *          ST_INVALID for a cluster without what the format shows; ST_IO; ST_NOMEM
 */
enum status topology_export (const struct topology_cluster *c, const char *format,
                             const char *node, const char *path,
                             const struct topology_watch *watch, struct error *err);

#endif
