/* Shared by the files of the merge. */
#ifndef TOPOLOGY_MERGE_PRIVATE_H
#define TOPOLOGY_MERGE_PRIVATE_H

#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/topology.h"

/** One of the files. */
struct merge_source {
    const char *name;           /* for messages */
    json_t *doc;                /* as it was read */
    struct topology_cluster *c; /* the same with drained GPUs and links in use: what is
                                   known about them is not lost */
    double when;                /* seconds since 1970, NaN: the file does not say */
    int order;                  /* of the arguments */
    bool gpus_weak; /* its GPU counts are those that took part in a measurement */
};

struct merge {
    struct merge_source *source; /* [n] the newer the later */
    int n;
    json_t *doc;   /* the result */
    json_t *nodes; /* of it */
    json_t *index; /* node name -> place in nodes */
    int n_nodes;
    struct topology_document *out;
    struct notes *notes;
    struct error *err;
};

/** Merged node number i: its document, its name, its GPUs. */
static inline const json_t *merge_node_at (const struct merge *m, int i)
{
    return json_array_get (m->nodes, (size_t) i);
}
static inline const char *merge_name_of (const struct merge *m, int i)
{
    return json_member_text (merge_node_at (m, i), "name");
}
static inline int merge_gpus_of (const struct merge *m, int i)
{
    return (int) json_member_int (merge_node_at (m, i), "gpus");
}

/** `links` and `measured` of the merged document; the nodes are there. */
enum status merge_links (struct merge *m);
void merge_measured (struct merge *m);

/** Links that no file gives, from what is known about types and NICs. */
enum status merge_fill (struct merge *m);

#endif
