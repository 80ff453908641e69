/* linkwise bind: the same configuration on the nodes that a scheduler gave. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"

struct bind_input {
    const char *plan, *cluster, *only, *out;
};

#define INPUT struct bind_input

static const struct cli_option options[] = {
    {"only", 0, "HOSTLIST", "the nodes that were given, as in n[01-16,20]",
     CLI_TEXT (only), .needed = true},
    {"cluster", 0, "CLUSTER", "instead of the plan's own cluster", CLI_TEXT (cluster)},
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

static bool same_layers (const struct workload_plan *plan, const struct mapper_result *r)
{
    return memcmp (plan->layers_per_stage, r->layers,
                   (size_t) plan->config.deg.pp * sizeof (int)) == 0;
}

/* The split of the layers is part of the job's arguments and of its checkpoints: it stays,
 * whatever the search chose for these nodes.  Then the better of the placement found and
 * the default order is kept. */
static enum status keep_layers (const struct mapper_problem *p,
                                const struct workload_plan *plan, struct mapper_result *r,
                                struct error *err)
{
    enum status st =
        mapper_result_put (p, &plan->config, plan->layers_per_stage, r->gpu, r, err);
    int *gpu = NULL;

    if (st == ST_OK && mapper_default_is_better (r)) {
        gpu = malloc ((size_t) p->cluster->n_gpus * sizeof *gpu);
        st = gpu ? mapper_default_order (p, gpu, err) : err_nomem (err);
        if (st == ST_OK)
            st =
                mapper_result_put (p, &plan->config, plan->layers_per_stage, gpu, r, err);
    }
    r->n_top = 0;
    free (gpu);
    return st;
}

/* Search with every axis fixed; a plan by nodes stays one where that is possible. */
static enum status place (const struct mapper_problem *p,
                          const struct workload_plan *plan, struct mapper_result *r,
                          struct mapper_info *info, struct error *err)
{
    struct mapper_settings settings = mapper_settings_default ();
    enum status st;

    settings.polish = 2; /* nodes are held while this runs */
    st = mapper_search (p, &settings, r, info, err);

    if (st == ST_OK && is_by_node (plan) && r->granularity == MAPPER_GPU) {
        struct mapper_result by_node;
        struct mapper_info second;

        settings.granularity = MAPPER_NODE;
        if (mapper_search (p, &settings, &by_node, &second, NULL) == ST_OK) {
            mapper_result_release (r);
            mapper_info_release (info);
            *r = by_node;
            *info = second;
        } else {
            mapper_info_release (&second);
        }
    }
    if (st == ST_OK && !same_layers (plan, r))
        st = keep_layers (p, plan, r, err);
    return st;
}

static enum status write_plan (const struct bind_input *in,
                               const struct workload_plan *plan,
                               const struct mapper_problem *p,
                               const struct mapper_result *r,
                               const struct mapper_info *info, struct error *err)
{
    const char *file;
    char hex[65], step[32];
    json_t *doc = NULL;
    enum status st =
        cli_cluster_reference (in->cluster, plan, p->cluster, &file, hex, err);

    if (st == ST_OK && !(doc = mapper_plan_to_json (p, r, info, file, hex)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = json_write (in->out, doc, err);
    json_decref (doc);
    if (st == ST_OK && !cli_is_dash (in->out))
        printf ("%d ranks placed anew: step %s, %.2f %% above its bound; written to %s\n",
                plan->n_ranks, cli_seconds (r->estimate.step_s, step),
                100.0 * (r->estimate.step_s / r->lower_bound_s - 1.0), in->out);
    return st;
}

/* Has the scheduler given as many GPUs as the plan has ranks? */
static enum status enough_gpus (const struct bind_input *in,
                                const struct workload_plan *plan,
                                const struct topology_cluster *c, const bool *allowed,
                                struct error *err)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        n += allowed[i] ? c->node[i].gpus : 0;
    if (n >= plan->n_ranks)
        return ST_OK;
    return err_set (
        err, ST_INVALID,
        "the plan needs %d GPUs, --only %s has %d: ask the scheduler for more "
        "nodes, or plan for these (linkwise plan --from %s --only '%s')",
        plan->n_ranks, in->only, n, in->plan, in->only);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct bind_input *in = input;
    struct cli_planned x = {0};
    struct mapper_result r = {0};
    struct mapper_info info = {0};
    bool *allowed = NULL;
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    if (st == ST_OK && !(allowed = calloc ((size_t) x.cluster->n_nodes, sizeof *allowed)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = cli_mark_nodes (x.cluster, in->only, "--only", true, allowed, err);
    if (st == ST_OK)
        st = enough_gpus (in, &x.plan, x.cluster, allowed, err);
    if (st == ST_OK) {
        struct mapper_problem p = {.model = &x.plan.model,
                                   .job = &x.plan.job,
                                   .profile = &x.profile,
                                   .cluster = x.cluster,
                                   .axes = mapper_axes_of (&x.plan.config),
                                   .node_allowed = allowed,
                                   .memory_limit_pct = x.plan.memory_limit_pct,
                                   .oom_risk = x.plan.oom_risk};

        memest_model_parse (x.plan.memory_model, &p.memory_model);
        cli_note_types (x.cluster, x.plan.job.precision, notes);
        st = place (&p, &x.plan, &r, &info, err);
        if (st == ST_OK)
            st = write_plan (in, &x.plan, &p, &r, &info, err);
    }
    mapper_result_release (&r);
    mapper_info_release (&info);
    free (allowed);
    cli_plan_release (&x);
    return st;
}

const struct cli_command cli_bind = {
    .arguments = "PLAN",
    .help = "Place a plan anew on the nodes that a scheduler gave: the same degrees and "
            "layers, other GPUs.\v"
            "Example: linkwise bind plan.json --only \"$SLURM_JOB_NODELIST\" -o "
            "bound.json\n\nThe batch script that `emit --to slurm` writes calls it.",
    .options = {.line = options, .check = check},
    .places = {1, 1, "PLAN", "PLAN, --only HOSTLIST and -o PLAN are required"},
    .at = {CLI_PLACE (plan)},
    CLI_RUN (run)};
