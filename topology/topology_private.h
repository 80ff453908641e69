/* Shared by the files of topology/ alone. */
#ifndef TOPOLOGY_TOPOLOGY_PRIVATE_H
#define TOPOLOGY_TOPOLOGY_PRIVATE_H

#include "topology/topology.h"

/** Turn a cluster on one line into the document of a cluster file.
 *  @param[out] doc  a new reference */
enum status topology_line_to_json (const char *line, json_t **doc, struct error *err);

#endif
