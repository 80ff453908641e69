/* linkwise plan --links, --heldout-links, --robust: plan on some measurements, price on
 * others.  Used by plan.c alone. */
#ifndef CLI_PLAN_PASSES_H
#define CLI_PLAN_PASSES_H

#include "cli/cli.h"
#include "mapper/replan/heldout.h"

struct plan_passes {
    const char **file; /* [n_links + n_heldout] those planned on first */
    int n_links, n_heldout;
    struct mapper_heldout_settings how;
    double robust;                 /* the quantile that was asked for; 0: none */
    struct topology_passes passes; /* none: passes.passes < 2 */
    bool *held_out;                /* [passes] or NULL: all in turn */
    struct topology_cluster
        *combined; /* what is planned on, or NULL: the cluster itself */
    bool priced;   /* done says what came out */
    struct mapper_heldout done;
};

/** What fills it. */
extern const struct cli_options plan_passes_options;

/** How many of its files are standard input. */
int plan_passes_stdins (const struct plan_passes *x);

/** Was one of its options given? */
bool plan_passes_asked (const struct plan_passes *x);

/** Read the measurements; p's cluster becomes what is to be planned on. */
enum status plan_passes_read (struct plan_passes *x, struct mapper_problem *p,
                              struct notes *notes, struct error *err);

/** After the search: price on what was held out, keep the default order if need be. */
enum status plan_passes_price (struct plan_passes *x, const struct mapper_problem *p,
                               const struct mapper_settings *s, struct mapper_result *r,
                               struct error *err);
/** Lines for the summary; none where nothing was priced. */
void plan_passes_print (const struct plan_passes *x);
void plan_passes_release (struct plan_passes *x);

#endif
