/* Shared by the files of topology/ alone. */
#ifndef TOPOLOGY_TOPOLOGY_PRIVATE_H
#define TOPOLOGY_TOPOLOGY_PRIVATE_H

#include "base/json.h"
#include "topology/topology.h"

/** What every part of the cluster file's reader needs. */
struct reader {
    struct topology_cluster *c;
    struct notes *notes;
    struct error *err;
};

/** Read `links`; the nodes are known. */
enum status topology_links_read (struct reader *r, const struct json_at *root);

/** Fill the lowest measured bandwidth of each kind, the price of an unmeasured link. */
void topology_find_lowest (struct topology_cluster *c);

/** Read `gpu_types`, if there. */
enum status topology_types_read (struct reader *r, const struct json_at *root);

/** Find a node's `gpu_type` among the file's own and the built-in ones. */
enum status topology_type_find (struct reader *r, const struct json_at *at,
                                const struct topology_gpu_type **out);

/** Turn a cluster on one line into the document of a cluster file.
 *  @param[out] doc  a new reference */
enum status topology_line_to_json (const char *line, json_t **doc, struct error *err);

#endif
