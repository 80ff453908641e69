/* What would make a plan's step shorter, and why other configurations lose. */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "report/whatif.h"

enum report_kind {
    REPORT_LINK,   /* between nodes */
    REPORT_INSIDE, /* a link inside a node */
    REPORT_PAIR,   /* what all GPUs of two nodes reach together */
    REPORT_NODE,
    REPORT_GPU,
    REPORT_SETTING,
    REPORT_KINDS
};
const char *report_kind_name (enum report_kind k);

/** One thing that could be otherwise. */
struct report_gain {
    enum report_kind kind;
    char what[512];     /* as --what-if takes it, or a setting in words */
    bool is_change;     /* of the cluster: --what-if takes it */
    double in_place_s;  /* the same placement; INFINITY: not possible, NAN: not tried */
    double replanned_s; /* placed anew with its tp, pp, cp and ep; else the same */
    int certain;        /* of replanned_s, as report_certain */
    char why[256];      /* where neither is possible */
    double share;       /* of the step, that it saves */
};

/** Another configuration that the search placed, and what makes it longer. */
struct report_rival {
    struct workload_config config;
    double step_s;                     /* INFINITY: it has no plan here */
    struct costmodel_breakdown more_s; /* than the plan's, part by part */
    char why[256];
};

struct report_explained {
    struct costmodel_estimate estimate; /* as it is; `unmeasured` is not there */
    double replanned_s;                 /* as it is, placed anew as the changes are */
    struct report_gain *gain;           /* [n_gains] the largest gain first */
    int n_gains;
    struct report_rival *rival; /* [n_rivals] in the plan file's order */
    int n_rivals;
};

/** Explain a plan.
 *
 *  Links and pairs: those of the slowest in use (costmodel_slow_links) that are below what is
 *  usual.  Nodes: their ends, and those with slow GPUs, mended; the best also drained.  GPUs:
 *  those below speed 1.  Settings: one step away in each.  What gains most of each kind is also
 *  placed anew.
 *
 *  @param[in]  p     the plan's problem, whatever its axes
 *  @param[in]  plan  with its document: the rivals are those that its `search.top` lists
 *  @param[in]  gpu   [world]
 *  @param      show  called before each change with what it is and which share of the searches,
 *                    which take longest, is done
 *  @param[out] out   release with report_explained_release
 *  @return as costmodel_estimate */
enum status report_explain (const struct mapper_problem *p,
                            const struct workload_plan *plan, const int *gpu,
                            void (*show) (void *context, double share, const char *what),
                            void *context, struct report_explained *out,
                            struct error *err);
void report_explained_release (struct report_explained *x);

/** "in place" where that saves REPORT_WORTH or more, which is exact; "yes" where what is saved by
 *  placing anew is more than the searches may have missed; else "within the gap"; NULL where it
 *  is not possible. */
#define REPORT_WORTH 1e-4 /* of the step */
const char *report_gain_surely (const struct report_explained *x,
                                const struct report_gain *g);

/** "0.90 s more pipeline bubble, 0.20 s less tensor parallel": the three largest parts, but
 *  for those below 2 % of the largest. */
#define REPORT_MORE_TEXT 320
const char *report_more_text (const struct costmodel_breakdown *more_s,
                              char buf[REPORT_MORE_TEXT]);

/** explain --json.  A new reference. */
json_t *report_explained_to_json (const struct report_explained *x);

#endif
