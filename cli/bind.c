/* linkwise bind: the same configuration on the nodes that a scheduler gave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct bind_input {
    const char *plan, *cluster, *only, *out;
};

#define INPUT struct bind_input

static const struct cli_option options[] = {
    {"only", 0, "HOSTLIST", "the allocated nodes, as in n[01-16,20]",
     CLI_TEXT (only), .needed = true},
    {"cluster", 0, "CLUSTER", "use this cluster instead of the plan's own",
     CLI_TEXT (cluster)},
    {"output", 'o', "PLAN", "write the plan file; - is standard output", CLI_TEXT (out),
     .needed = true},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct bind_input *in = input;

    cli_one_stdin (cli_is_dash (in->plan) + cli_is_dash (in->cluster), state);
}

/* Did every node of the plan hold consecutive ranks, as node-aware libraries assume? */
static bool is_by_node (const struct workload_plan *plan)
{
    json_t *search = json_object_get (plan->doc, "search");
    const char *s = json_string_value (
        json_object_get (json_object_get (search, "granularity"), "chosen"));

    return s && strcmp (s, "node") == 0;
}

/* Everything that one call is about. */
struct binding {
    struct cli_work old;
    struct mapper_problem p;
    struct mapper_result r;
    struct mapper_info info;
};

/* The split of the layers is part of the job's arguments and of its checkpoints: it stays,
 * whatever the search chose for these nodes.  Then the better of the placement found and
 * the default order is kept. */
static enum status keep_layers (struct binding *b, struct error *err)
{
    const struct workload_config *config = &b->old.plan.config;
    const int *layers = b->old.plan.layers_per_stage;
    struct mapper_result *r = &b->r;
    int *gpu = NULL;
    enum status st;

    if (memcmp (layers, r->layers, (size_t) config->deg.pp * sizeof *layers) == 0)
        return ST_OK;
    st = mapper_result_put (&b->p, config, layers, r->gpu, r, err);
    if (st == ST_OK && mapper_default_is_better (r)) {
        gpu = malloc ((size_t) b->p.cluster->n_gpus * sizeof *gpu);
        st = gpu ? mapper_default_order (&b->p, gpu, err) : err_nomem (err);
        if (st == ST_OK)
            st = mapper_result_put (&b->p, config, layers, gpu, r, err);
    }
    r->n_top = 0;
    free (gpu);
    return st;
}

/* Search with every axis fixed; a plan by nodes stays one where that is possible. */
static enum status place (struct binding *b, struct error *err)
{
    struct mapper_settings settings = mapper_settings_default ();
    enum status st;

    settings.polish = 2; /* nodes are held while this runs */
    st = mapper_search (&b->p, &settings, &b->r, &b->info, err);
    if (st == ST_OK && is_by_node (&b->old.plan) && b->r.granularity == MAPPER_GPU) {
        struct mapper_result by_node;
        struct mapper_info info;

        settings.granularity = MAPPER_NODE;
        if (mapper_search (&b->p, &settings, &by_node, &info, NULL) == ST_OK) {
            mapper_result_release (&b->r);
            mapper_info_release (&b->info);
            b->r = by_node;
            b->info = info;
        } else {
            mapper_info_release (&info);
        }
    }
    return st == ST_OK ? keep_layers (b, err) : st;
}

static enum status write_plan (const struct bind_input *in, const struct binding *b,
                               struct error *err)
{
    const char *file;
    char hex[65], step[32];
    json_t *doc = NULL;
    enum status st =
        cli_cluster_reference (in->cluster, &b->old.plan, b->p.cluster, &file, hex, err);

    if (st == ST_OK && !(doc = mapper_plan_to_json (&b->p, &b->r, &b->info, file, hex)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = json_write (in->out, doc, err);
    json_decref (doc);
    if (st == ST_OK && !cli_is_dash (in->out))
        printf ("%d ranks placed anew: step %s, %.2f %% above its lower bound; written "
                "to %s\n",
                b->old.plan.n_ranks, cli_seconds (b->r.estimate.step_s, step),
                100.0 * (b->r.estimate.step_s / b->r.lower_bound_s - 1.0), in->out);
    return st;
}

/* The nodes that the scheduler gave; have they as many GPUs as the plan has ranks? */
static enum status allow (const struct bind_input *in, const struct cli_work *x,
                          bool *allowed, struct error *err)
{
    const struct topology_cluster *c = x->cluster;
    enum status st = cli_mark_nodes (c, in->only, "--only", true, allowed, err);
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        n += allowed[i] ? c->node[i].gpus : 0;
    if (st != ST_OK || n >= x->plan.n_ranks)
        return st;
    return err_set (err, ST_INVALID,
                    "the plan needs %d GPUs, --only %s has %d: ask the scheduler for "
                    "more nodes, or plan for these (linkwise plan --from %s --only '%s')",
                    x->plan.n_ranks, in->only, n, in->plan, in->only);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct bind_input *in = input;
    struct binding b = {0};
    bool *allowed = NULL;
    enum status st = cli_plan_read (in->plan, in->cluster, &b.old, notes, err);

    if (st == ST_OK) {
        allowed = calloc ((size_t) b.old.cluster->n_nodes, sizeof *allowed);
        st = allowed ? allow (in, &b.old, allowed, err) : err_nomem (err);
    }
    if (st == ST_OK) {
        b.p = cli_problem (&b.old);
        b.p.axes = mapper_axes_of (&b.old.plan.config);
        b.p.node_allowed = allowed;
        cli_note_types (b.old.cluster, b.old.plan.job.precision, notes);
        st = place (&b, err);
    }
    if (st == ST_OK)
        st = write_plan (in, &b, err);
    mapper_result_release (&b.r);
    mapper_info_release (&b.info);
    free (allowed);
    cli_work_release (&b.old);
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
    .places = {1, 1, "PLAN", "PLAN, --only HOSTLIST and -o PLAN are required"},
    .at = {CLI_PLACE (plan)},
    CLI_RUN (run)};
