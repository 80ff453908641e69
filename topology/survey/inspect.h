/* What somebody should know about a cluster before planning on it. */
#ifndef TOPOLOGY_INSPECT_H
#define TOPOLOGY_INSPECT_H

#include "topology/survey/stats.h"

enum topology_verdict { TOPOLOGY_OK, TOPOLOGY_NOTE, TOPOLOGY_FAILED };

struct topology_finding {
    const char *what; /* a word or two, constant */
    enum topology_verdict verdict;
    char *text;
};

#define TOPOLOGY_FINDINGS_MAX 16
struct topology_inspection {
    struct topology_finding finding[TOPOLOGY_FINDINGS_MAX];
    int n, failed;
};

/** Look a cluster over: nodes and GPUs, links inside and between nodes (unmeasured,
 *  nominal, slow, asymmetric), nodes that nothing connects, devices that cannot be right
 *  (one UUID on two GPUs, one PCI address twice in a node, a NIC that the node does not
 *  list), cores near GPUs.
 *
 *  @param[in]  c    as topology_cluster_read or its partial form gives it
 *  @param[in]  watch  may be NULL
 *  @param[out] out  release with topology_inspection_release
 *  @return ST_OK or ST_NOMEM
 */
enum status topology_inspect (const struct topology_cluster *c,
                              const struct topology_watch *watch,
                              struct topology_inspection *out, struct error *err);
void topology_inspection_release (struct topology_inspection *i);

#endif
