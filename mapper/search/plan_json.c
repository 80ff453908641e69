/* The search's result as a plan file. */
#include "mapper/search/search.h"

#include <stdlib.h>

#include "base/json.h"

enum status mapper_result_to_plan (const struct mapper_problem *p,
                                   const struct mapper_result *r,
                                   struct workload_plan *plan, struct error *err)
{
    const struct topology_cluster *c = p->cluster;
    int pp = r->config.deg.pp, v = r->config.deg.vpp;
    const int *chunks = mapper_chunks (p, &r->config, r->layers);
    struct workload_plan x = {.model = *p->model,
                              .job = *p->job,
                              .config = r->config,
                              .memory_limit_pct = p->memory_limit_pct,
                              .oom_risk = p->oom_risk,
                              .n_ranks = (int) workload_world (&r->config.deg)};

    /* On other GPUs another one may serve in the place of what is meant. */
    snprintf (x.profile, sizeof x.profile, "%s",
              p->profile->meant[0] ? p->profile->meant : p->profile->from);
    snprintf (x.memory_model, sizeof x.memory_model, "%s",
              memest_model_name (p->memory_model));
    x.layers_per_stage = malloc ((size_t) pp * sizeof (int));
    x.layers_per_chunk = chunks ? malloc ((size_t) pp * (size_t) v * sizeof (int)) : NULL;
    x.place = malloc ((size_t) x.n_ranks * sizeof *x.place);
    if (!x.layers_per_stage || !x.place || (chunks && !x.layers_per_chunk)) {
        workload_plan_release (&x);
        return err_nomem (err);
    }
    for (int i = 0; i < pp; i++)
        x.layers_per_stage[i] = r->layers[i];
    for (int i = 0; chunks && i < pp * v; i++)
        x.layers_per_chunk[i] = chunks[i];
    for (int k = 0; k < x.n_ranks; k++) {
        const struct topology_node *n = &c->node[c->node_of_gpu[r->gpu[k]]];

        x.place[k] = (struct workload_place){n->name, topology_gpu_index (c, r->gpu[k])};
    }
    *plan = x;
    return ST_OK;
}

static json_t *cluster_json (const struct topology_cluster *c, const char *file,
                             const char *sha256)
{
    if (c->n_nodes <= MAPPER_WHOLE_CLUSTER_NODES || !file)
        return topology_cluster_to_json (c);
    return json_pack ("{s:s, s:i, s:s, s:s}", "name", c->name, "nodes", c->n_nodes,
                      "file", file, "sha256", sha256);
}

enum status mapper_explain (const struct mapper_problem *p, const struct mapper_result *r,
                            struct costmodel_binding *out, bool *found,
                            double *unshared_step_s, struct error *err)
{
    struct costmodel_problem problem = mapper_priced (p, &r->config, r->layers);
    enum status st =
        costmodel_find_binding (&problem, r->gpu, r->estimate.step_s, out, found, err);

    return st == ST_OK ? costmodel_unshared_step (&problem, r->gpu, unshared_step_s, err)
                       : st;
}

/* Beside the time that the job trains, the tokens that it gets through in all of it. */
static json_t *goodput_json (const struct mapper_problem *p,
                             const struct mapper_result *r)
{
    struct mapper_goodput g = mapper_goodput_of (p, workload_world (&r->config.deg));
    double tokens = (double) p->job->seq * p->job->global_batch / r->estimate.step_s;

    return json_pack ("{s:f, s:f, s:f, s:f, s:f, s:i, s:f}", "share", g.share,
                      "tokens_per_s", tokens * g.share, "job_mtbf_s", g.mtbf_s,
                      "checkpoint_every_s", g.checkpoint_every_s, "saved", g.saved,
                      "spare_nodes", g.spares, "waiting", g.waiting);
}

static json_t *estimate_json (const struct mapper_problem *p,
                              const struct mapper_result *r,
                              const struct workload_plan *plan)
{
    json_t *e = costmodel_estimate_to_json (&r->estimate);
    struct costmodel_binding binding;
    double unshared_s;
    char digest[65];
    bool found;

    if (mapper_explain (p, r, &binding, &found, &unshared_s, NULL) == ST_OK) {
        json_object_set_new (e, "binding_link",
                             costmodel_binding_to_json (p->cluster, &binding, found));
        json_object_set_new (e, "unshared_step_s", json_real (unshared_s));
    }

    workload_plan_digest (plan, digest);
    json_object_set_new (e, "lower_bound_s", json_real (r->lower_bound_s));
    json_object_set_new (e, "gap",
                         json_real (r->estimate.step_s / r->lower_bound_s - 1.0));
    json_object_set_new (
        e, "gpu_hours_per_1e9_tokens",
        json_real (mapper_gpu_hours (p->job, &r->config, r->estimate.step_s)));
    if (p->reliability.gpu_mtbf_s > 0)
        json_object_set_new (e, "goodput", goodput_json (p, r));
    json_object_set_new (e, "default_order_step_s",
                         json_number_or_null (r->default_order_step_s));
    json_object_set_new (e, "default_order_unmeasured_links",
                         json_integer (r->default_order_unmeasured));
    json_object_set_new (e, "nominal_links", topology_nominal (p->cluster));
    json_object_set_new (e, "digest", json_string (digest));
    return e;
}

static json_t *memory_json (const struct mapper_problem *p, const struct mapper_result *r)
{
    json_t *stages = json_array ();
    int worst = mapper_tightest_stage (p, r);

    for (int i = 0; i < r->config.deg.pp; i++) {
        json_t *one = memest_stage_to_json (&r->memory[i]);

        json_object_set_new (one, "layers", json_integer (r->layers[i]));
        json_object_set_new (one, "gpu_bytes", json_real (r->gpu_bytes[i]));
        json_array_append_new (stages, one);
    }
    return json_pack ("{s:f, s:f, s:f, s:o, s:i, s:o}", "peak_bytes",
                      r->memory[worst].peak_bytes, "gpu_bytes", r->gpu_bytes[worst],
                      "limit_bytes",
                      mapper_stage_limit (p, &r->memory[worst], r->gpu_bytes[worst]),
                      "oom_probability", json_number_or_null (mapper_chance (p, r)),
                      "binding_stage", worst, "per_stage", stages);
}

static json_t *end_json (const struct topology_cluster *c, int gpu)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[gpu]];

    return json_pack ("{s:s, s:i}", "node", n->name, "gpu", topology_gpu_index (c, gpu));
}

static json_t *unmeasured_json (const struct topology_cluster *c,
                                const struct costmodel_estimate *e)
{
    json_t *list = json_array ();

    for (int i = 0; i < e->n_unmeasured; i++)
        json_array_append_new (list,
                               json_pack ("{s:o, s:o, s:s}", "from",
                                          end_json (c, e->unmeasured[i].src_gpu), "to",
                                          end_json (c, e->unmeasured[i].dst_gpu), "use",
                                          e->unmeasured[i].use));
    return list;
}

/* A configuration with its step.  A new reference. */
static json_t *config_json (const struct workload_config *c, double step_s)
{
    json_t *doc = workload_degrees_to_json (&c->deg);

    json_object_update_new (doc, workload_settings_to_json (c));
    json_object_set_new (doc, "step_s", json_real (step_s));
    return doc;
}

static json_t *search_json (const struct mapper_problem *p, const struct mapper_result *r,
                            const struct mapper_info *info)
{
    json_t *top = json_array (), *doc;
    json_t *granularity = json_pack ("{s:s, s:o, s:o}", "chosen",
                                     r->granularity == MAPPER_GPU ? "gpu" : "node",
                                     "node_step_s", json_number_or_null (r->node_step_s),
                                     "gpu_step_s", json_number_or_null (r->gpu_step_s));

    for (int i = 0; i < r->n_top; i++) {
        json_t *one = config_json (&r->top[i].config, r->top[i].step_s);

        json_object_set_new (one, "lower_bound_s", json_real (r->top[i].lower_bound_s));
        json_object_set_new (one, "tie", json_boolean (r->top[i].tie));
        json_array_append_new (top, one);
    }
    doc = json_pack (
        "{s:O, s:I, s:I, s:I, s:I, s:f, s:b, s:s, s:i, s:f, s:f, s:o, s:o}", "space",
        info->space, "configurations", (json_int_t) info->configurations,
        "refused_memory", (json_int_t) info->refused_memory, "placed",
        (json_int_t) info->placed, "sketched", (json_int_t) info->sketched, "seconds",
        info->seconds, "proven", info->proven, "objective",
        mapper_objective_name (p->objective), "ties", r->ties, "model_error",
        r->model_error, "given_up", r->given_up, "granularity", granularity, "top", top);
    if (r->riskier.step_s > 0) {
        json_t *one = config_json (&r->riskier.config, r->riskier.step_s);

        json_object_set_new (one, "oom_probability", json_real (r->riskier.chance));
        json_object_set_new (doc, "riskier", one);
    }
    return doc;
}

json_t *mapper_plan_to_json (const struct mapper_problem *p,
                             const struct mapper_result *r,
                             const struct mapper_info *info, const char *cluster_file,
                             const char *cluster_sha256)
{
    struct workload_plan plan;
    json_t *doc, *own;

    if (mapper_result_to_plan (p, r, &plan, NULL) != ST_OK)
        return NULL;
    doc = json_pack ("{s:i, s:o}", "version", 1, "cluster",
                     cluster_json (p->cluster, cluster_file, cluster_sha256));
    own = workload_plan_to_json (&plan);
    if (doc && own) {
        json_object_update (doc, own);
        json_object_set_new (doc, "estimate", estimate_json (p, r, &plan));
        json_object_set_new (doc, "memory", memory_json (p, r));
        json_object_set_new (doc, "unmeasured_links_used",
                             unmeasured_json (p->cluster, &r->estimate));
        json_object_set_new (doc, "search", search_json (p, r, info));
    }
    json_decref (own);
    workload_plan_release (&plan);
    return doc;
}
