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

enum { OPT_ONLY = 512, OPT_CLUSTER };

static const struct argp_option options[] = {
    {"only", OPT_ONLY, "HOSTLIST", 0, "the nodes that were given, as in n[01-16,20]", 0},
    {"cluster", OPT_CLUSTER, "CLUSTER", 0, "instead of the plan's own cluster", 0},
    {"output", 'o', "PLAN", 0, "write the plan file; - is standard output", 0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct bind_input *in = state->input;

    switch (key) {
    case OPT_ONLY:
        in->only = arg;
        return 0;
    case OPT_CLUSTER:
        in->cluster = arg;
        return 0;
    case 'o':
        in->out = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (in->plan)
            argp_error (state, "PLAN expected, found \"%s\" too", arg);
        in->plan = arg;
        return 0;
    case ARGP_KEY_END:
        if (!in->plan || !in->only || !in->out)
            argp_error (state, "PLAN, --only HOSTLIST and -o PLAN are required");
        if (in->cluster && strcmp (in->plan, "-") == 0 && strcmp (in->cluster, "-") == 0)
            argp_error (state, "only one input can be standard input");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
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
    json_t *own = json_object_get (plan->doc, "cluster");
    const char *file = json_string_value (json_object_get (own, "file"));
    const char *sha256 = json_string_value (json_object_get (own, "sha256"));
    char hex[65] = "", step[32];
    json_t *doc;
    enum status st = ST_OK;

    if (in->cluster) {
        st = cli_cluster_reference (in->cluster, p->cluster, &file, hex, err);
        sha256 = hex;
    }
    if (st != ST_OK)
        return st;
    doc = mapper_plan_to_json (p, r, info, file, sha256 ? sha256 : "");
    st = doc ? json_write (in->out, doc, err) : err_nomem (err);
    json_decref (doc);
    if (st == ST_OK && strcmp (in->out, "-") != 0)
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

static enum status run (const struct bind_input *in, struct notes *notes,
                        struct error *err)
{
    struct workload_plan plan = {0};
    struct topology_cluster *c = NULL;
    struct workload_profile profile;
    struct mapper_result r = {0};
    struct mapper_info info = {0};
    bool *allowed = NULL;
    enum status st =
        cli_plan_read (in->plan, in->cluster, &plan, &c, &profile, notes, err);

    if (st != ST_OK)
        return st;
    if (!(allowed = calloc ((size_t) c->n_nodes, sizeof *allowed)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = cli_mark_nodes (c, in->only, "--only", true, allowed, err);
    if (st == ST_OK)
        st = enough_gpus (in, &plan, c, allowed, err);
    if (st == ST_OK) {
        struct mapper_problem p = {.model = &plan.model,
                                   .job = &plan.job,
                                   .profile = &profile,
                                   .cluster = c,
                                   .axes = mapper_axes_of (&plan.config),
                                   .node_allowed = allowed,
                                   .memory_limit_pct = plan.memory_limit_pct,
                                   .oom_risk = plan.oom_risk};

        memest_model_parse (plan.memory_model, &p.memory_model);
        cli_note_types (c, plan.job.precision, notes);
        st = place (&p, &plan, &r, &info, err);
        if (st == ST_OK)
            st = write_plan (in, &plan, &p, &r, &info, err);
    }
    mapper_result_release (&r);
    mapper_info_release (&info);
    free (allowed);
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
    return st;
}

int cli_bind (int argc, char **argv)
{
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "PLAN",
        .doc =
            "Place a plan anew on the nodes that a scheduler gave: the same degrees and "
            "layers, other GPUs.\v"
            "Example: linkwise bind plan.json --only \"$SLURM_JOB_NODELIST\" -o "
            "bound.json\n\nThe batch script that `emit --to slurm` writes calls it."};
    struct bind_input in = {0};
    struct notes notes = {0};
    struct error err = {""};

    cli_parse (&argp, argc, argv, &in);

    enum status st = run (&in, &notes, &err);

    cli_warn ("bind", &notes);
    return cli_end ("bind", st, &err);
}
