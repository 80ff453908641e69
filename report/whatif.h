/* What changes of the cluster would do to a plan: kept in place, and planned anew. */
#ifndef REPORT_WHATIF_H
#define REPORT_WHATIF_H

#include "report/compare.h"
#include "topology/edit/edit.h"

/** One change, or all together. */
struct report_what {
    char *change; /* the statement; NULL: the cluster as it is; "all together" */
    struct topology_changed changed;
    double in_place_s;            /* the plan's placement there; INFINITY: not possible */
    char why[256];                /* where it is not */
    struct report_best replanned; /* never worse than in place */
};

struct report_whatif {
    struct report_what *what; /* [n] the cluster as it is, each change, all together */
    int n;
};

/** The plan that is asked about, and how one is searched. */
struct report_whatif_plan {
    /* On the cluster as it is; the nodes that may be used are chosen anew from `nodes`. */
    const struct mapper_problem *p;
    const struct mapper_nodes *nodes;
    /* NULL: in place alone, nothing is searched. */
    const struct mapper_settings *settings;
    const struct workload_config *config;
    const int *layers; /* [pp] */
    const int *gpu;    /* [world] of the cluster as it is */
    /* Of the search that found it; 0: it comes from elsewhere, and the cluster as it is is
     * searched too. */
    double lower_bound_s;
};

/** Read the changes of a what-if and make the clusters.
 *  @param[out] w  release with report_whatif_release
 *  @return ST_OK, ST_NOMEM; ST_USAGE for malformed text, ST_INVALID for what the cluster does not
 *          have, both with the statement's number */
enum status report_whatif_read (const struct topology_cluster *c, const char *text,
                                struct report_whatif *w, struct error *err);
void report_whatif_release (struct report_whatif *w);

/** One change, by itself.
 *  @param[in,out] one  zeros before; release it also after a failure
 *  @return as topology_change */
enum status report_what_read (const struct topology_cluster *from, const char *statement,
                              struct report_what *one, struct error *err);
enum status report_what_run (const struct report_whatif_plan *plan,
                             struct report_what *what, struct error *err);
void report_what_release (struct report_what *one);

/** Price and search.
 *  @param show   called before each search with what it is about
 *  @return ST_OK, also where some changes leave no plan; ST_NOMEM, ST_USAGE as
 *          mapper_choose_nodes */
enum status report_whatif_run (const struct report_whatif_plan *plan,
                               struct report_whatif *w,
                               void (*show) (void *context, const char *what),
                               void *context, struct error *err);

/** Is a plan of `after` surely better than any of `before` (1), surely worse (-1), or may the
 *  difference be what the search missed (0)?  By the steps and the lower bounds. */
int report_certain (const struct mapper_result *before,
                    const struct mapper_result *after);
/** The same as a word: "shorter", "longer", "within the gap". */
const char *report_surely (const struct mapper_result *before,
                           const struct mapper_result *after);

/** Degrees and settings as documents have them.  A new reference. */
json_t *report_config_json (const struct workload_config *c);

/** The documents' `what_if`: a list, the cluster as it is first.  A new reference. */
json_t *report_whatif_to_json (const struct report_whatif *w);

#endif
