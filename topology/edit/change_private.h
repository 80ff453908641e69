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

static inline json_t *change_node_at (const struct change *x, int node)
{
    return json_array_get (json_object_get (x->doc, "nodes"), (size_t) node);
}

/** An argument as a number that products with a file's numbers stay numbers with.
 *  @return ST_OK or ST_USAGE */
enum status change_number_of (struct change *x, int arg, double *out);
/** A word as a whole number from 1 to `most`.  @return ST_OK or ST_USAGE */
enum status change_count_of (struct change *x, const char *word, int most, int *out);
/** A node by its name.  @return ST_OK or ST_INVALID */
enum status change_node_of (struct change *x, const char *name, int *out);
/** Do `each` for the nodes of the host lists in the first `n_lists` arguments. */
enum status change_for_nodes (struct change *x, int n_lists,
                              enum status (*each) (struct change *x, int node));
/** The first argument, A->B or A<->B, into its ends, which are nodes or NODE:GPU. */
enum status change_ends_of (struct change *x, char **from, char **to, bool *both);

/** The forms about links: link, pair, pairs, mend (docs/whatif.md). */
enum status change_link (struct change *x);
enum status change_total (struct change *x);
enum status change_totals (struct change *x);
enum status change_mend (struct change *x);

/** Add n nodes to the document of the cluster c, each with the links of its node `like`.
 *  @return ST_OK or ST_NOMEM */
enum status change_more_nodes (json_t *doc, const struct topology_cluster *c, int like,
                               int n, struct error *err);

#endif
