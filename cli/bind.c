/* linkwise bind: the same configuration on the nodes that a scheduler gave. */
#include <stdlib.h>

#include "cli/cli.h"

struct bind_input {
    const char *plan, *cluster, *only, *out;
};

#define INPUT struct bind_input

static const struct cli_option options[] = {
    {"only", 0, "HOSTLIST",
     "the allocated nodes, as in n[01-16,20]; @FILE, @- reads names from a file",
     CLI_TEXT (only), .needed = true},
    {"cluster", 0, "CLUSTER", "use this cluster instead of the plan's own",
     CLI_TEXT (cluster)},
    {"output", 'o', "PLAN", "write the plan file; - is standard output", CLI_TEXT (out),
     .needed = true},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct bind_input *in = input;

    cli_one_stdin (cli_is_dash (in->plan) + cli_is_dash (in->cluster) +
                       cli_hosts_stdin (in->only),
                   state);
}

/* Have the nodes that the scheduler gave as many GPUs as the plan has ranks? */
static enum status are_enough (const struct bind_input *in, const struct linkwise_plan *x,
                               struct error *err)
{
    const struct topology_cluster *c = x->cluster->c;
    bool *given = calloc ((size_t) c->n_nodes, sizeof *given);
    enum status st = given ? topology_mark_nodes (c, in->only, "--only", true, given, err)
                           : err_nomem (err);
    int n = 0;

    for (int i = 0; i < c->n_nodes && st == ST_OK; i++)
        n += given[i] ? c->node[i].gpus : 0;
    free (given);
    if (st != ST_OK || n >= x->plan.n_ranks)
        return st;
    return err_set (err, ST_INVALID,
                    "the plan needs %d GPUs, --only %s has %d: ask the scheduler for "
                    "more nodes, or plan for these (linkwise plan --from %s --only '%s')",
                    x->plan.n_ranks, in->only, n, in->plan, in->only);
}

static enum status bind_to (const struct bind_input *in, const struct linkwise_plan *old,
                            struct notes *notes, struct error *err)
{
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_plan *bound = NULL;
    char step[32];
    enum status st = (enum status) linkwise_bind (old, NULL, in->only, &bound,
                                                  API_NOTES (notes), API_ERROR (err));

    THEN (st, (enum status) linkwise_plan_write (bound, in->out, API_ERROR (err)));
    if (st == ST_OK)
        st =
            (enum status) linkwise_plan_estimate (bound, NULL, NULL, &e, API_ERROR (err));
    if (st == ST_OK && !cli_is_dash (in->out))
        cli_print (
            "%d ranks placed anew: step %s, %.2f %% above its lower bound; written "
            "to %s\n",
            bound->plan.n_ranks, cli_seconds (e.step_s, step),
            100.0 * (e.step_s / e.lower_bound_s - 1.0), in->out);
    linkwise_plan_destroy (bound);
    return st;
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    struct bind_input *in = input;
    struct linkwise_plan old = {.cluster = NULL};
    struct text only = {0};
    enum status st = cli_plan_read (in->plan, in->cluster, &old, notes, err);

    THEN (st,
          cli_hosts_read (old.cluster->c, "--only", false, &in->only, &only, notes, err));
    THEN (st, are_enough (in, &old, err));
    THEN (st, bind_to (in, &old, notes, err));
    text_free (&only);
    api_plan_release (&old);
    return st;
}

const struct cli_command cli_bind = {
    .arguments = "PLAN",
    .help = "Place a plan on the nodes that a scheduler allocated.  Degrees and layers "
            "stay the same, only the GPUs change.\v"
            "Example: linkwise bind plan.json --only \"$SLURM_JOB_NODELIST\" -o "
            "bound.json\n\n"
            "The batch script of `emit --to slurm` runs this command.",
    .options = {.line = options, .check = check},
    .places =
        {1, 1, "PLAN",
         "PLAN, --only HOSTLIST and -o PLAN are required, as in: linkwise bind plan.json "
         "--only n[1-4] -o here.json"},
    .at = {CLI_PLACE (plan)},
    CLI_RUN (run)};
