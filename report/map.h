/* Which stage every GPU of a cluster serves, for who draws it in cells: one a GPU, one row a node
 * or, where there are many, one row for all nodes that look alike. */
#ifndef REPORT_MAP_H
#define REPORT_MAP_H

#include "topology/topology.h"
#include "workload/workload.h"

struct report_map_row {
    int node;  /* the first node of the row; its GPUs are the cells */
    int nodes; /* how many look like it, itself included */
};

struct report_map {
    int *stage;                 /* [n_gpus] -1: idle */
    int *replica;               /* [n_gpus] of data parallelism; -1: idle */
    struct report_map_row *row; /* [n_rows] in the order of their first nodes */
    int n_rows;
    int rest;      /* nodes that are on no row */
    bool replicas; /* are nodes of one row alike in replicas too, not in stages alone? */
    bool apart;    /* may nodes of one row stand apart from each other? */
};

/** Fold the nodes into rows: first neighbours that serve the same stages and replicas; where rows
 *  are too many then, neighbours that serve the same stages; then such nodes wherever they stand.
 *
 *  @param[in]  gpu   [workload_world (d)] cluster-wide GPU of each rank
 *  @param[in]  most  rows, 1 or more
 *  @param[out] out   release with report_map_release; untouched on failure
 *  @return ST_OK or ST_NOMEM */
enum status report_map_collect (const struct topology_cluster *c,
                                const struct workload_degrees *d, const int *gpu,
                                int most, struct report_map *out, struct error *err);
void report_map_release (struct report_map *m);

/** A GPU's label: "3B": stage 3, the second replica. */
#define REPORT_PLACE_TEXT 24
const char *report_place_text (int stage, int replica, char buf[REPORT_PLACE_TEXT]);
/** A replica's letters alone: "A", ..., "Z", "AA", ...  buf of 8 bytes. */
const char *report_replica_text (int replica, char *buf);

/** A stage's place on topology_heat_shade's scale from 0 to 1: stages after each other differ. */
double report_stage_share (int stage, int pp);

#endif
