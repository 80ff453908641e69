/* The parts of explain: what is tried of the cluster and the settings, what is kept of it. */
#ifndef REPORT_EXPLAIN_PRIVATE_H
#define REPORT_EXPLAIN_PRIVATE_H

#include "report/explain.h"

#define REPORT_RIVALS_MOST 4  /* of the plan file's list */
#define REPORT_DEGREE_STEPS 6 /* of pairs of degrees */

/* At most: as it is, the best of each kind, a node drained, more memory, degrees, rivals. */
#define REPORT_SEARCHES \
    (1 + REPORT_KINDS + 1 + 1 + REPORT_DEGREE_STEPS + REPORT_RIVALS_MOST)

struct report_explaining {
    struct report_whatif_plan plan;
    struct mapper_settings settings;
    struct mapper_problem problem; /* its search keeps tp, pp, cp, ep and etp alone */
    const struct workload_plan *old;
    struct report_explained *x;
    struct mapper_result base; /* as it is, placed anew */
    void (*show) (void *context, double share, const char *what);
    void *context;
    int searched; /* of REPORT_SEARCHES; those that there is no need for count too */
    struct error *err;
};

/* ---- what is found: explain_found.c ---- */

/** Show what is tried next. */
void report_explain_tell (const struct report_explaining *e, const char *what);
/** A gain to fill, with neither step; NULL: out of memory, which is said. */
struct report_gain *report_explain_add (struct report_explaining *e,
                                        enum report_kind kind);
/** The shares that are gained, the largest first. */
void report_explain_rank (struct report_explained *x);

/* ---- what is tried; each ST_OK also where a change is not possible ---- */

/** Changes of the cluster: explain_cluster.c. */
enum status report_explain_cluster (struct report_explaining *e);
/** Settings and the next-best configurations: explain_settings.c. */
enum status report_explain_settings (struct report_explaining *e);

#endif
