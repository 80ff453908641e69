/* Searching, binding, replanning. */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* A search's inputs in the rooms' terms, and what came out. */
struct request {
    struct linkwise_settings in;
    struct mapper_problem p;
    struct mapper_settings s;
    bool *marks; /* what the problem's nodes point to */
    bool stop;   /* progress() has said so */
    struct mapper_result result;
    struct mapper_info info;
};

static enum status take_numbers (const struct linkwise_settings *in, struct request *r,
                                 struct error *err)
{
    const struct {
        const char *what;
        double value, hi;
    } limits[] = {{"memory_limit_pct", in->memory_limit_pct, 100},
                  {"oom_risk", in->oom_risk, 0.999999},
                  {"time_limit_s", in->time_limit_s, 1e9},
                  {"tie", in->tie, 1},
                  {"threads", in->threads, 4096},
                  {"effort", in->effort, 1000},
                  {"top", in->top, 10000},
                  {"nodes", in->nodes, 1 << 30},
                  {"spares", in->spares, 1 << 30}};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!(limits[i].value >= 0 && limits[i].value <= limits[i].hi))
            return err_set (err, ST_USAGE, "%s: expected 0 to %g, found %g",
                            limits[i].what, limits[i].hi, limits[i].value);
    if (in->memory_limit_pct > 0 && in->oom_risk > 0)
        return err_set (err, ST_USAGE,
                        "memory_limit_pct and oom_risk contradict each other");
    if (in->oom_risk > 0 && r->p.memory_model != MEMEST_LINKWISE)
        return err_set (err, ST_USAGE, "oom_risk needs the memory model linkwise");
    r->s.threads = in->threads;
    r->s.seed = in->seed;
    r->s.time_limit_s = in->time_limit_s;
    r->s.effort = in->effort > 0 ? in->effort : 1;
    r->s.top = in->top;
    r->s.tie = in->tie;
    return ST_OK;
}

static bool on_progress (void *context, long done, long total, double best_step_s,
                         double lower_bound_s)
{
    struct request *r = context;

    if (r->in.progress (r->in.context, done, total, best_step_s, lower_bound_s))
        r->stop = true;
    return r->stop;
}

static bool is_stopped (void *context)
{
    const struct request *r = context;

    return r->stop;
}

/* @param[in] given  NULL: the usual ones
 * @param[in] old    does the problem come from an old plan? */
static enum status take_settings (const struct linkwise_settings *given, bool old,
                                  struct request *r, struct error *err)
{
    const struct linkwise_settings *in = &r->in;
    struct mapper_problem *p = &r->p;
    struct mapper_nodes nodes;
    bool free;

    r->in = given ? *given : linkwise_settings ();
    r->s = mapper_settings_default ();
    nodes = (struct mapper_nodes){in->only, in->exclude, in->pin, in->nodes, in->spares};
    API_WORD (in, cost_model, costmodel_kind_parse, &p->cost_model, API_COST_MODELS);
    API_WORD (in, memory_model, memest_model_parse, &p->memory_model,
              "linkwise, fujii or korthikanti");
    API_WORD (in, granularity, mapper_granularity_parse, &r->s.granularity,
              "auto, node or gpu");
    API_WORD (in, objective, mapper_objective_parse, &p->objective, "step or gpu-hours");
    TRY (take_numbers (in, r, err));
    free = mapper_limit_free (in->memory_limit_pct, in->oom_risk);
    if (!old || !free) { /* an old plan keeps its own limit unless one is given */
        p->oom_risk = in->oom_risk;
        p->limit_free = free;
        p->memory_limit_pct = in->memory_limit_pct > 0
                                  ? in->memory_limit_pct
                                  : memest_usual_limit_pct (p->memory_model);
    }
    if (in->progress) {
        r->s.progress = on_progress;
        r->s.stop = is_stopped;
        r->s.context = r;
    }
    return mapper_choose_nodes (&nodes, &r->p, &r->marks, err);
}

/* ---- results ---- */

/* A result as a plan.  @param[in] extra  put into the document; stolen; may be NULL */
static enum status plan_of (const struct request *r,
                            const struct linkwise_cluster *cluster, json_t *extra,
                            struct linkwise_plan **out, struct error *err)
{
    struct linkwise_plan *x = calloc (1, sizeof *x);
    json_t *doc = NULL;
    enum status st =
        x ? api_result_document (&r->p, &r->result, &r->info, cluster, &doc, err)
          : err_nomem (err);

    if (st == ST_OK && extra)
        json_object_update (doc, extra);
    THEN (st, workload_plan_from_json (doc, "plan", &x->plan, NULL, err));
    JSON_DECREF_ALL (doc, extra);
    if (st != ST_OK) {
        free (x);
        return st;
    }
    x->profile = *r->p.profile;
    x->cluster = api_cluster_use (cluster);
    x->lower_bound_s = r->result.lower_bound_s;
    x->default_order_step_s = r->result.default_order_step_s;
    workload_recompute_text (&r->result.config, x->recompute);
    *out = x;
    return ST_OK;
}

static void request_release (struct request *r)
{
    mapper_result_release (&r->result);
    mapper_info_release (&r->info);
    free (r->marks);
}

/* "nothing fits": what came closest, in one line more. */
static void say_miss (const struct mapper_problem *p, const struct mapper_info *info,
                      struct error *err)
{
    struct text words = {0}, all = {0};
    char *rest, *line;

    if (!info->missed || !err)
        return;
    mapper_explain_miss (p, info, &words);
    text_add (&all, "%s", err->text);
    line = words.s ? strtok_r (words.s, "\n", &rest) : NULL;
    for (; line; line = strtok_r (NULL, "\n", &rest))
        text_add (&all, "%s%s", all.len && all.s[all.len - 1] == ':' ? " " : "; ",
                  line + strspn (line, " "));
    err_set (err, ST_NOFIT, "%s", text_str (&all));
    text_free (&words);
    text_free (&all);
}

enum linkwise_status linkwise_search (
    const struct linkwise_cluster *cluster, const struct linkwise_model *model,
    const struct linkwise_profile *profile, const struct linkwise_job *job,
    const struct linkwise_config *fixed, const struct linkwise_settings *settings,
    struct linkwise_plan **out, struct linkwise_notes *notes, struct linkwise_error *err)
{
    struct workload_profile by;
    struct workload_job trained;
    struct workload_gpus on = {.n = 0};
    struct request r = {.marks = NULL};
    enum status st;

    API_NEED (cluster);
    API_NEED (model);
    API_SIZED (job);
    if (fixed)
        API_SIZED (fixed);
    if (settings)
        API_SIZED (settings);
    API_NEED (out);
    r.p = (struct mapper_problem){
        .model = &model->m, .job = &trained, .profile = &by, .cluster = cluster->c};
    costmodel_gpus (cluster->c, &on);
    st = api_profile (profile, &model->m, &on, &by, api_error (err));
    THEN (st, api_job (job, &model->m, &trained, api_notes (notes), api_error (err)));
    THEN (st, !fixed || !fixed->layers
                  ? api_axes (fixed, &r.p.axes, api_error (err))
                  : err_set (api_error (err), ST_USAGE,
                             "layers: a search finds them; they cannot be given"));
    THEN (st, take_settings (settings, false, &r, api_error (err)));
    if (st == ST_OK)
        workload_profile_pace (&by, &model->m, trained.precision);
    THEN (st, mapper_profile_allowed (&r.p, &by, api_error (err)));
    if (st == ST_OK) {
        api_before_search (&r.p, r.in.nodes, api_notes (notes));
        st = mapper_search_used (&r.p, &by, &r.s, &r.result, &r.info, api_error (err));
        say_miss (&r.p, &r.info, api_error (err));
    }
    THEN (st, plan_of (&r, cluster, NULL, out, api_error (err)));
    request_release (&r);
    return (enum linkwise_status) st;
}

/* ---- an old plan ---- */

enum linkwise_status linkwise_bind (const struct linkwise_plan *plan,
                                    const struct linkwise_cluster *cluster,
                                    const char *only, struct linkwise_plan **out,
                                    struct linkwise_notes *notes,
                                    struct linkwise_error *err)
{
    const struct mapper_nodes nodes = {.only = only};
    struct request r = {.marks = NULL};
    struct workload_profile by;
    enum status st;

    API_NEED (plan);
    API_NEED (only);
    API_NEED (out);
    if (!cluster)
        cluster = plan->cluster;
    r.p = api_plan_problem (plan, cluster->c);
    r.p.profile = &by;
    by = plan->profile;
    costmodel_note_types (cluster->c, r.p.job->precision, api_notes (notes));
    st = mapper_choose_nodes (&nodes, &r.p, &r.marks, api_error (err));
    THEN (st, mapper_profile_allowed (&r.p, &by, api_error (err)));
    THEN (st, mapper_bind (&r.p, &plan->plan, &r.result, &r.info, api_error (err)));
    THEN (st, mapper_result_use (&r.p, &by, &r.result, api_error (err)));
    THEN (st, plan_of (&r, cluster, NULL, out, api_error (err)));
    request_release (&r);
    return (enum linkwise_status) st;
}

enum linkwise_status
linkwise_replan (const struct linkwise_plan *plan, const struct linkwise_cluster *cluster,
                 const struct linkwise_settings *settings,
                 struct linkwise_replanning *how, struct linkwise_plan **out,
                 struct linkwise_notes *notes, struct linkwise_error *err)
{
    struct mapper_replan_settings moves = mapper_replan_settings_default ();
    struct request r = {.marks = NULL};
    struct mapper_replanned done = {0};
    struct workload_profile by;
    enum status st;

    API_NEED (plan);
    if (settings)
        API_SIZED (settings);
    if (how)
        API_SIZED (how);
    API_NEED (out);
    if (how && (!(how->move_cost_s >= 0) || !(how->remaining_steps >= 0)))
        API_REFUSE ("%s: expected 0 or more seconds and steps", "how");
    if (!cluster)
        cluster = plan->cluster;
    r.p = api_plan_problem (plan, cluster->c);
    r.p.profile = &by;
    by = plan->profile;
    r.p.axes = mapper_axes_free ();
    st = take_settings (settings, true, &r, api_error (err));
    THEN (st, mapper_profile_allowed (&r.p, &by, api_error (err)));
    if (st == ST_OK) {
        api_before_search (&r.p, r.in.nodes, api_notes (notes));
        moves.tie = r.in.tie;
        if (how) {
            moves.move_cost_s = how->move_cost_s;
            moves.remaining_steps = how->remaining_steps;
            moves.any_degrees = how->any_degrees;
        }
        st = mapper_replan (&r.p, &plan->plan, &r.s, &moves, &r.result, &r.info, &done,
                            api_error (err));
    }
    THEN (st, mapper_replanned_use (&r.p, &by, &plan->plan, &r.s, &r.result, &r.info,
                                    &done, api_error (err)));
    THEN (st, plan_of (&r, cluster,
                       json_pack ("{s:o}", "replan",
                                  mapper_replanned_to_json (&r.p, &done, "plan")),
                       out, api_error (err)));
    if (st == ST_OK && how) {
        how->ranks_moved = done.ranks_moved;
        how->stay_step_s = done.stay_step_s;
    }
    mapper_replanned_release (&done);
    request_release (&r);
    return (enum linkwise_status) st;
}
