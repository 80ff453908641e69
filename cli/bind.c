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

/* Every axis as the plan has it. */
static struct mapper_axes axes_of (const struct workload_config *c)
{
    struct mapper_axes a = mapper_axes_free ();

    a.tp = c->deg.tp;
    a.pp = c->deg.pp;
    a.dp = c->deg.dp;
    a.cp = c->deg.cp;
    a.ep = c->deg.ep;
    a.etp = c->deg.etp;
    a.vpp = c->deg.vpp;
    a.micro_batch = c->micro_batch;
    a.zero = c->zero;
    a.sequence_parallel = c->sequence_parallel;
    a.recompute = (int) c->recompute;
    a.recompute_layers = c->recompute_layers;
    a.schedule = (int) c->schedule;
    return a;
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

/* Megatron's order over the nodes that were given. */
static void default_order (const struct mapper_problem *p, int world, int *gpu)
{
    const struct topology_cluster *c = p->cluster;
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; k < c->node[i].gpus && n < world && p->node_allowed[i]; k++)
            gpu[n++] = c->node[i].first_gpu + k;
}

/* Does every stage fit its smallest GPU? */
static enum status refit (const struct mapper_problem *p, struct mapper_result *r,
                          struct error *err)
{
    const struct workload_degrees *d = &r->config.deg;
    int per_stage = (int) workload_world (d) / d->pp;
    struct memest_problem memory = {p->model, p->job, &r->config, p->profile,
                                    p->memory_model};

    for (int i = 0; i < d->pp; i++) {
        struct workload_stage held =
            workload_stage_of (p->model, &r->config, r->layers, i);
        double limit;

        memest_stage (&memory, i, &held, &r->memory[i]);
        r->gpu_bytes[i] = INFINITY;
        for (int k = 0; k < per_stage; k++) {
            const struct topology_gpu_type *t =
                topology_gpu_type_of (p->cluster, r->gpu[i * per_stage + k]);

            r->gpu_bytes[i] = fmin (r->gpu_bytes[i], t->memory_bytes);
        }
        limit =
            memest_limit (p->profile, r->gpu_bytes[i], p->memory_limit_pct, p->oom_risk);
        if (r->memory[i].peak_bytes > limit)
            return err_set (
                err, ST_NOFIT,
                "stage %d with its %d layers needs %.1f GiB, the limit is %.1f "
                "GiB on the GPUs it got",
                i, r->layers[i], r->memory[i].peak_bytes / UNITS_GIB, limit / UNITS_GIB);
    }
    return ST_OK;
}

/* The split of the layers is part of the job's arguments and of its checkpoints: it stays,
 * whatever the search chose for these nodes.  Then the better of the placement found and
 * the default order is kept. */
static enum status keep_layers (const struct mapper_problem *p,
                                const struct workload_plan *plan, struct mapper_result *r,
                                struct error *err)
{
    struct costmodel_problem problem = {.model = p->model,
                                        .job = p->job,
                                        .config = &r->config,
                                        .profile = p->profile,
                                        .cluster = p->cluster,
                                        .layers = plan->layers_per_stage};
    int world = plan->n_ranks;
    int *ordered = calloc ((size_t) world, sizeof *ordered);
    struct costmodel_estimate found = {0}, other = {0};
    enum status st = ordered ? costmodel_estimate (&problem, r->gpu, true, &found, err)
                             : err_nomem (err);

    if (st == ST_OK) {
        default_order (p, world, ordered);
        r->default_order_step_s = INFINITY;
        if (costmodel_estimate (&problem, ordered, true, &other, NULL) == ST_OK) {
            r->default_order_step_s = other.step_s;
            r->default_order_unmeasured = other.n_unmeasured;
        }
        if (isfinite (r->default_order_step_s) &&
            (other.n_unmeasured < found.n_unmeasured ||
             (other.n_unmeasured == found.n_unmeasured && other.step_s < found.step_s))) {
            struct costmodel_estimate swap = found;

            memcpy (r->gpu, ordered, (size_t) world * sizeof *ordered);
            found = other;
            other = swap;
        }
        memcpy (r->layers, plan->layers_per_stage,
                (size_t) plan->config.deg.pp * sizeof (int));
        free (r->estimate.unmeasured);
        r->estimate = found;
        r->node_step_s = r->gpu_step_s = INFINITY;
        r->lower_bound_s = fmin (r->lower_bound_s, found.step_s);
        r->n_top = 0;
        st = refit (p, r, err);
    }
    free (other.unmeasured);
    free (ordered);
    return st;
}

/* Search with every axis fixed; a plan by nodes stays one where that is possible. */
static enum status place (const struct mapper_problem *p,
                          const struct workload_plan *plan, struct mapper_result *r,
                          struct mapper_info *info, struct error *err)
{
    struct mapper_settings settings = mapper_settings_default ();
    enum status st = mapper_search (p, &settings, r, info, err);

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
    if (st == ST_OK) {
        struct mapper_problem p = {.model = &plan.model,
                                   .job = &plan.job,
                                   .profile = &profile,
                                   .cluster = c,
                                   .axes = axes_of (&plan.config),
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
