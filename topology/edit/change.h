/* What-ifs: changes of a cluster in words, as in "drain n7; link n3->n9 = 25". */
#ifndef TOPOLOGY_CHANGE_H
#define TOPOLOGY_CHANGE_H

#include "topology/topology.h"

/** A cluster that was changed.  Zero-initialise. */
struct topology_changed {
    struct topology_cluster *c; /* owned */
    int max_nodes;              /* "nodes N": plans use at most so many; 0: not said */
};
void topology_changed_release (struct topology_changed *x);

/** The statements of a what-if, which ';' separates, without blanks around them and
 *  cleaned as names are (text_clean_line).
 *
 *  @param[out] list  [*n] texts; release with topology_changes_free
 *  @return ST_OK, ST_NOMEM; ST_USAGE where there is none, or an empty one between two */
enum status topology_changes_split (const char *text, char ***list, int *n,
                                    struct error *err);
void topology_changes_free (char **list, int n);

/** Change a cluster by one statement of docs/whatif.md.  The file that it came from stays as it
 *  is.
 *
 *  @param[in]     c  the cluster before
 *  @param[in,out] x  its cluster becomes the one after; may hold `c`
 *  @return ST_OK, ST_NOMEM; ST_USAGE for a statement of no known form; ST_INVALID for what
 *          the cluster does not have; x is untouched then */
enum status topology_change (const struct topology_cluster *c, const char *statement,
                             struct topology_changed *x, struct error *err);

#endif
