/* Parts of linkwise plan that plan.c uses alone. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/cli.h"
#include "mapper/replan/heldout.h"
#include "mapper/replan/replan.h"

/* ---- --from: an old plan on the cluster as it is now ---- */

struct plan_from {
    const char *file;   /* NULL: a plan of its own */
    double move_cost_s; /* below 0: not given */
    int degrees;        /* a word of the option's; below 0: not given */
    struct mapper_replan_settings how;
    struct mapper_replanned done;
};

/** What fills it. */
extern const struct cli_options plan_from_options;

/** Was one of its options but --from given? */
bool plan_from_asked (const struct plan_from *x);

/** Read the old plan, and the cluster as it is now.
 *
 *  @param[in]  cluster, model  arguments; NULL where not given: the plan's own
 *  @param[in,out] old  zeros; the options' limits hold
 *  @return ST_OK; ST_USAGE for a job that is not the plan's; as api_plan_read */
enum status plan_from_read (struct plan_from *x, const struct cli_job *job,
                            const char *cluster, const char *model,
                            struct linkwise_plan *old, struct notes *notes,
                            struct error *err);

/** Say whether to stay or to go. */
void plan_from_print (const struct plan_from *x, const struct mapper_result *r);
/** Print what each move gains, where there are any. */
void plan_from_print_moves (const struct plan_from *x, const struct topology_cluster *c);

/* ---- --objective goodput: failures, checkpoints, restarts, repairs ---- */

struct plan_goodput {
    double mtbf_h, repair_h;         /* 0: not given */
    struct mapper_reliability given; /* checkpoint_s and restart_s alone; 0: not given */
};

extern const struct cli_options plan_goodput_options;

/** p has its objective: what was given, and the usual for the rest, where goodput is asked for. */
void plan_goodput_read (const struct plan_goodput *x, struct mapper_problem *p);
/** Lines for the summary; none where nobody asked. */
void plan_goodput_print (const struct mapper_problem *p, const struct mapper_result *r);

/* ---- --links, --heldout-links, --robust: plan on some measurements, price on others ---- */

struct plan_passes {
    const char **file; /* [n_links + n_heldout] those planned on first */
    int n_links, n_heldout, n_stdins;
    struct mapper_heldout_settings how;
    double robust;                     /* the quantile that was asked for; 0: none */
    struct topology_passes passes;     /* none: passes.passes < 2 */
    bool *held_out;                    /* [passes] or NULL: all in turn */
    struct topology_cluster *combined; /* what is planned on; NULL: the cluster itself */
    bool priced;                       /* done says what came out */
    struct mapper_heldout done;
};

/** What fills it. */
extern const struct cli_options plan_passes_options;

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

/* ---- all of it ---- */

struct plan_input {
    struct cli_job job;
    struct plan_from from;
    struct plan_passes passes;
    struct plan_goodput goodput;
    struct mapper_settings settings;
    struct mapper_nodes nodes;
    struct text only, exclude, pin; /* what stood in the files of nodes' lists */
    const char *cluster, *model, *out, *what_if;
    enum costmodel_kind kind;
    int seed;
    int granularity, objective; /* as mapper's enums have them */
    double tie_pct;
    bool json, verbose;
};

/* What was asked for, what it is about, and what was found. */
struct planning {
    struct plan_input *in;
    struct linkwise_plan work; /* the old plan, or what is known before there is one */
    struct mapper_problem p;
    struct mapper_result r;
    struct mapper_info info;
    struct report_whatif what_if;
};

/** cli_peak_interval of the stage whose memory is nearest to its GPUs'. */
double plan_peak_interval (const struct planning *x);
/** cli_step_interval of the plan's step. */
double plan_step_interval (const struct planning *x);

/** Print the answer in a few lines and where the ranks are; then what was asked for beside it, and
 *  the details where the input is verbose.  Quiet: those lines alone, and nothing where a file was
 *  written. */
enum status plan_answer_print (const struct planning *x, struct error *err);

#endif
