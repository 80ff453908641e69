/* linkwise plan --links, --heldout-links, --robust. */
#include "cli/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define INPUT struct plan_passes

/* Files planned on stand before those held out. */
static void take_file (const struct cli_option *o, const char *given, void *value,
                       struct argp_state *state)
{
    struct plan_passes *x = value;
    bool held_out = strcmp (o->name, "heldout-links") == 0;
    int n = x->n_links + x->n_heldout, at = held_out ? n : x->n_links;

    if (!array_grow (&x->file, (size_t) n, sizeof *x->file))
        argp_failure (state, 1, 0, "out of memory");
    for (int k = n; k > at; k--)
        x->file[k] = x->file[k - 1];
    x->file[at] = given;
    *(held_out ? &x->n_heldout : &x->n_links) += 1;
    x->n_stdins += cli_is_dash (given);
}

static const struct cli_option options[] = {
    {"links", 0, "FILE",
     "another measurement of the links, a links or cluster file (repeatable).  The plan "
     "uses each link's median.  The gain over the default order is cross-validated: each "
     "measurement prices a placement made from the others",
     .kind = CLI_KIND_TAKEN, .take = take_file},
    {"heldout-links", 0, "FILE",
     "a measurement to price the plan on, but not to make it from (repeatable)",
     .kind = CLI_KIND_TAKEN, .take = take_file},
    {"robust", 0, "Q",
     "plan on this quantile of each link's measured rates, as in 0.1, instead of the "
     "median",
     CLI_ABOVE (robust, 0, 1)},
    {0}};

const struct cli_options plan_passes_options = {.line = options};

bool plan_passes_asked (const struct plan_passes *x)
{
    return x->n_links + x->n_heldout > 0 || x->robust > 0;
}

/* ---- reading ---- */

/* The cluster with each link's median or quantile over what is planned on. */
static enum status combine (struct plan_passes *x, struct mapper_problem *p,
                            struct error *err)
{
    size_t n = (size_t) x->passes.n, passes = (size_t) x->passes.passes;
    double *rate = malloc (n * n * sizeof *rate);
    bool *use = malloc (passes * sizeof *use);
    enum status st = rate && use ? ST_OK : err_nomem (err);

    for (size_t k = 0; k < passes && st == ST_OK; k++)
        use[k] = !x->held_out || !x->held_out[k];
    THEN (st, topology_passes_combine (&x->passes, use, x->how.quantile, rate, err));
    THEN (st, topology_passes_cluster (&x->passes, rate, &x->combined, err));
    if (st == ST_OK)
        p->cluster = x->combined;
    FREE_ALL (rate, use);
    return st;
}

enum status plan_passes_read (struct plan_passes *x, struct mapper_problem *p,
                              struct notes *notes, struct error *err)
{
    const struct topology_cluster *c = p->cluster;
    int files = x->n_links + x->n_heldout;

    TRY (files > 0 ? topology_passes_read (c, x->file, files, &x->passes, notes, err)
                   : topology_passes_own (c, &x->passes, err));
    x->how = mapper_heldout_settings_default ();
    if (x->robust > 0)
        x->how.quantile = x->robust;
    if (x->robust > 0 && x->passes.passes - x->n_heldout < 2)
        return err_set (
            err, ST_USAGE,
            "--robust: %s has one measurement of its links to plan on: give others by "
            "--links FILE, or a cluster that bwprobe measured in several passes",
            c->name);
    if (x->n_heldout > 0 &&
        !(x->held_out = calloc ((size_t) x->passes.passes, sizeof *x->held_out)))
        return err_nomem (err);
    for (int k = 0; k < x->n_heldout; k++)
        x->held_out[1 + x->n_links + k] = true;
    if (x->n_links == 0 && x->robust <= 0)
        return ST_OK;
    if (c->n_nodes > MAPPER_WHOLE_CLUSTER_NODES)
        return err_set (err, ST_USAGE,
                        "--links and --robust: %s has %d nodes, at most %d are possible: "
                        "give --heldout-links FILE, which plans on the cluster file as "
                        "it is",
                        c->name, c->n_nodes, MAPPER_WHOLE_CLUSTER_NODES);
    return combine (x, p, err);
}

enum status plan_passes_price (struct plan_passes *x, const struct mapper_problem *p,
                               const struct mapper_settings *s, struct mapper_result *r,
                               struct error *err)
{
    struct mapper_settings quiet = *s;

    if (x->passes.passes < 2)
        return ST_OK;
    quiet.progress = NULL;
    quiet.time_limit_s = 0;
    x->priced = true;
    return mapper_heldout (p, &quiet, &x->how, &x->passes, x->held_out, r, &x->done, err);
}

/* ---- saying ---- */

void plan_passes_print (const struct plan_passes *x)
{
    const struct mapper_heldout *h = &x->done;
    const char *what = h->by_file ? "measurement" : "pass";

    if (!x->priced)
        return;
    if (isnan (h->gain)) {
        cli_print (
            "held out unknown gain: the default order or the placement cannot run\n");
        return;
    }
    cli_print (
        "held out gain %+.2f %% over the default order (%.0f %% interval: %+.2f to "
        "%+.2f)\n         on ",
        100 * h->gain, 100 * h->confidence, 100 * h->low, 100 * h->high);
    if (x->held_out)
        cli_print ("%d %s%s not used for planning\n", h->measurements, what,
                   h->measurements > 1 ? "s" : "");
    else
        cli_print ("%d %s, each with a placement made from the others\n", h->measurements,
                   h->by_file ? "measurements" : "passes");
    cli_print (
        "spread   half of such measurements give %.3f s a step or less, 95 %% %.3f s\n",
        h->step_p50_s, h->step_p95_s);
    if (h->kept_default)
        cli_print ("         %s: the ranks stay in the default order\n",
                   h->high <= 0 ? "that is no gain" : "that may be no gain");
}

void plan_passes_release (struct plan_passes *x)
{
    FREE_ALL (x->file, x->held_out);
    topology_passes_release (&x->passes);
    topology_cluster_destroy (x->combined);
}
