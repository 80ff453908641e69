/* Shared by the files of topology/edit/change.h. */
#ifndef TOPOLOGY_CHANGE_PRIVATE_H
#define TOPOLOGY_CHANGE_PRIVATE_H

#include <jansson.h>

#include "topology/topology.h"

#define CHANGE_WORDS_MAX 64

/** One statement, while it is done. */
struct change {
    const struct topology_cluster *c; /* as it was */
    json_t *doc;                      /* as it becomes */
    char *arg[CHANGE_WORDS_MAX];      /* the words in capitals */
    int n;
    int max_nodes;
    struct topology_gpu_type type; /* that nodes get */
    struct error *err;
};

/** A form of statements. */
struct change_form {
    const char *words; /* those in capitals are arguments */
    enum status (*apply) (struct change *x);
};
/** All of them; the words of the last are NULL. */
extern const struct change_form change_forms[];

/** The document's links between nodes: links.gpu replaces links.inter. */
static inline json_t *change_net_of (const json_t *doc)
{
    json_t *links = json_object_get (doc, "links"), *gpu = json_object_get (links, "gpu");

    return gpu ? gpu : json_object_get (links, "inter");
}

/** Add n nodes to the document of the cluster c, each with the links of its node `like`.
 *  @return ST_OK or ST_NOMEM */
enum status change_more_nodes (json_t *doc, const struct topology_cluster *c, int like,
                               int n, struct error *err);

#endif
