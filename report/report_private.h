/* Shared by the files of report/ alone. */
#ifndef REPORT_REPORT_PRIVATE_H
#define REPORT_REPORT_PRIVATE_H

#include "base/json.h"
#include "report/report.h"

/** The parts of the page, by their files in report/page/. */
extern const struct text_shipped report_shipped_page[];

/** Append x in as few base-64 digits (A-Z a-z 0-9 + /) as it needs: five bits each, the lowest
 *  first, and 32 where another one follows. */
void report_add_varint (struct text *t, unsigned x);

/** Rates as an object: a list `gb_per_s`, or in `code` as many base-64 digits of each, on a
 *  logarithmic scale from `low_gb_per_s`, 1, to `high_gb_per_s`; 0 is unmeasured.
 *  @param[in] gb_per_s  [n] NaN: unmeasured
 *  @param[in] digits    1 or 2; 0: the list */
json_t *report_rates (const double *gb_per_s, size_t n, int digits);

/** A rate in GB/s with four digits; null where it is not above 0, which is unmeasured. */
json_t *report_rate (double bytes_per_s);

/** The schedule of the plan's binding replica, for the page's time line. */
enum status report_schedule (const struct costmodel_problem *p, const int *gpu,
                             const struct costmodel_estimate *e, json_t **out,
                             struct error *err);

/* ---- explain: what is tried of the cluster and the settings, what is kept of it ---- */

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
