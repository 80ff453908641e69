/* Searching, binding, replanning. */
#include "api/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mapper_problem api_plan_problem (const struct linkwise_plan *p,
                                        const struct topology_cluster *c)
{
    struct mapper_problem problem = {.model = &p->plan.model,
                                     .job = &p->plan.job,
                                     .profile = &p->profile,
                                     .cluster = c,
                                     .axes = mapper_axes_of (&p->plan.config),
                                     .memory_limit_pct = p->plan.memory_limit_pct,
                                     .oom_risk = p->plan.oom_risk};

    memest_model_parse (p->plan.memory_model, &problem.memory_model);
    return problem;
}

/* ---- settings ---- */

/* A search's inputs in the rooms' terms. */
struct request {
    struct mapper_problem p;
    struct mapper_settings s;
    struct workload_job job;
    struct workload_profile profile;
    bool *allowed, *pinned; /* [n_nodes] */
    bool stop;              /* progress() has said so */
    const struct linkwise_settings *from;
};

static enum status word_of (const char *what, const char *word, bool known,
                            struct error *err)
{
    return !word || known
               ? ST_OK
               : err_set (err, ST_USAGE, "%s: unknown word \"%s\"", what, word);
}

static enum status take_words (const struct linkwise_settings *in, struct request *r,
                               struct error *err)
{
    enum status st = api_cost_model (in->cost_model, &r->p.cost_model, err);

    if (st == ST_OK)
        st = word_of ("memory_model", in->memory_model,
                      in->memory_model &&
                          memest_model_parse (in->memory_model, &r->p.memory_model),
                      err);
    if (st == ST_OK)
        st = word_of ("granularity", in->granularity,
                      in->granularity &&
                          mapper_granularity_parse (in->granularity, &r->s.granularity),
                      err);
    if (st == ST_OK)
        st = word_of ("objective", in->objective,
                      in->objective &&
                          mapper_objective_parse (in->objective, &r->p.objective),
                      err);
    return st;
}

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
                  {"top", in->top, 10000},
                  {"nodes", in->nodes, 1 << 30},
                  {"spares", in->spares, 1 << 30}};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!(limits[i].value >= 0 && limits[i].value <= limits[i].hi))
            return err_set (err, ST_USAGE, "%s: expected 0 to %g, found %g",
                            limits[i].what, limits[i].hi, limits[i].value);
    if (in->memory_limit_pct > 0 && in->oom_risk > 0)
        return err_set (err, ST_USAGE,
                        "memory_limit_pct and oom_risk contradict each "
                        "other");
    if (in->oom_risk > 0 && r->p.memory_model != MEMEST_LINKWISE)
        return err_set (err, ST_USAGE,
                        "oom_risk needs the memory model linkwise");
    r->s.threads = in->threads;
    r->s.seed = in->seed;
    r->s.time_limit_s = in->time_limit_s;
    r->s.top = in->top;
    r->s.tie = in->tie;
    return ST_OK;
}

static bool on_progress (void *context, long done, long total, double best_step_s,
                         double lower_bound_s)
{
    struct request *r = context;

    if (r->from->progress (r->from->context, done, total, best_step_s, lower_bound_s))
        r->stop = true;
    return r->stop;
}

static bool is_stopped (void *context)
{
    const struct request *r = context;

    return r->stop;
}

static enum status take_settings (const struct linkwise_settings *in, struct request *r,
                                  struct error *err)
{
    const struct topology_cluster *c = r->p.cluster;
    const struct mapper_nodes nodes = {in->only, in->exclude, in->pin, in->nodes,
                                       in->spares};
    enum status st = take_words (in, r, err);

    if (st == ST_OK)
        st = take_numbers (in, r, err);
    if (st == ST_OK && !(r->allowed = calloc (2 * (size_t) c->n_nodes, sizeof (bool))))
        st = err_nomem (err);
    if (st != ST_OK)
        return st;
    r->pinned = r->allowed + c->n_nodes;
    r->p.node_allowed = r->allowed;
    r->p.node_pinned = in->pin ? r->pinned : NULL;
    if (in->progress) {
        r->from = in;
        r->s.progress = on_progress;
        r->s.stop = is_stopped;
        r->s.context = r;
    }
    return mapper_choose_nodes (&nodes, c, r->allowed, r->pinned, &r->p.max_nodes, err);
}

/* The memory limit asked for, or else: of an old plan, the usual one of the model. */
static void take_limit (const struct linkwise_settings *in,
                        const struct workload_plan *old, struct mapper_problem *p)
{
    p->memory_limit_pct = in->memory_limit_pct;
    p->oom_risk = in->oom_risk;
    if (in->memory_limit_pct > 0 || in->oom_risk > 0)
        return;
    p->memory_limit_pct =
        old ? old->memory_limit_pct : memest_usual_limit_pct (p->memory_model);
    p->oom_risk = old ? old->oom_risk : 0.0;
}

/* ---- results ---- */

/* A result as a plan.  @param[in] extra  put into the document; stolen; may be NULL */
static enum status plan_of (const struct mapper_problem *p, const struct mapper_result *r,
                            const struct mapper_info *info,
                            const struct linkwise_cluster *cluster, json_t *extra,
                            struct linkwise_plan **out, struct error *err)
{
    struct linkwise_plan *x = calloc (1, sizeof *x);
    char hex[65] = "", recompute[24];
    const char *file = NULL;
    json_t *doc = NULL;
    enum status st =
        x ? api_cluster_reference (cluster, &file, hex, err) : err_nomem (err);

    if (st == ST_OK && !(doc = mapper_plan_to_json (p, r, info, file, hex)))
        st = err_nomem (err);
    if (st == ST_OK && extra)
        json_object_update (doc, extra);
    if (st == ST_OK)
        st = workload_plan_from_json (doc, "plan", &x->plan, NULL, err);
    json_decref (doc);
    json_decref (extra);
    if (st != ST_OK) {
        free (x);
        return st;
    }
    x->profile = *p->profile;
    x->cluster = api_cluster_use (cluster);
    x->lower_bound_s = r->lower_bound_s;
    x->default_order_step_s = r->default_order_step_s;
    snprintf (x->recompute, sizeof x->recompute, "%s",
              workload_recompute_text (&r->config, recompute));
    *out = x;
    return ST_OK;
}

/* "nothing fits": what came closest, in one line more. */
static void say_miss (const struct mapper_problem *p, const struct mapper_info *info,
                      struct error *err)
{
    struct text words = {0};
    struct error why;

    if (!info->missed || !err)
        return;
    mapper_explain_miss (p, info, &words);
    why = *err;
    err_set (err, ST_NOFIT, "%.500s; %s", why.text, text_str (&words));
    text_free (&words);
}

enum linkwise_status linkwise_search (
    const struct linkwise_cluster *cluster, const struct linkwise_model *model,
    const struct linkwise_profile *profile, const struct linkwise_job *job,
    const struct linkwise_config *fixed, const struct linkwise_settings *settings,
    struct linkwise_plan **out, struct linkwise_notes *notes, struct linkwise_error *err)
{
    const struct linkwise_settings usual = linkwise_settings ();
    const struct linkwise_settings *in = settings ? settings : &usual;
    struct request r = {.s = mapper_settings_default ()};
    struct mapper_result result = {0};
    struct mapper_info info = {0};
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
        .model = &model->m, .job = &r.job, .profile = &r.profile, .cluster = cluster->c};
    st = api_profile (profile, &r.profile, api_error (err));
    if (st == ST_OK)
        st = api_job (job, &model->m, &r.job, api_error (err));
    if (st == ST_OK)
        st = api_axes (fixed, &r.p.axes, api_error (err));
    if (st == ST_OK)
        st = take_settings (in, &r, api_error (err));
    if (st == ST_OK) {
        take_limit (in, NULL, &r.p);
        costmodel_note_types (cluster->c, r.job.precision, api_notes (notes));
        st = mapper_search (&r.p, &r.s, &result, &info, api_error (err));
        say_miss (&r.p, &info, api_error (err));
    }
    if (st == ST_OK)
        st = plan_of (&r.p, &result, &info, cluster, NULL, out, api_error (err));
    mapper_result_release (&result);
    mapper_info_release (&info);
    free (r.allowed);
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
    struct mapper_result result = {0};
    struct mapper_info info = {0};
    struct mapper_problem p;
    bool *allowed;
    enum status st;

    API_NEED (plan);
    API_NEED (only);
    API_NEED (out);
    if (!cluster)
        cluster = plan->cluster;
    p = api_plan_problem (plan, cluster->c);
    allowed = calloc ((size_t) cluster->c->n_nodes, sizeof *allowed);
    st = allowed ? mapper_choose_nodes (&nodes, cluster->c, allowed, NULL, &p.max_nodes,
                                        api_error (err))
                 : err_nomem (api_error (err));
    p.node_allowed = allowed;
    costmodel_note_types (cluster->c, p.job->precision, api_notes (notes));
    if (st == ST_OK)
        st = mapper_bind (&p, &plan->plan, &result, &info, api_error (err));
    if (st == ST_OK)
        st = plan_of (&p, &result, &info, cluster, NULL, out, api_error (err));
    mapper_result_release (&result);
    mapper_info_release (&info);
    free (allowed);
    return (enum linkwise_status) st;
}

enum linkwise_status
linkwise_replan (const struct linkwise_plan *plan, const struct linkwise_cluster *cluster,
                 const struct linkwise_settings *settings,
                 struct linkwise_replanning *how, struct linkwise_plan **out,
                 struct linkwise_notes *notes, struct linkwise_error *err)
{
    const struct linkwise_settings usual = linkwise_settings ();
    const struct linkwise_settings *in = settings ? settings : &usual;
    struct mapper_replan_settings moves = mapper_replan_settings_default ();
    struct request r = {.s = mapper_settings_default ()};
    struct mapper_replanned done = {0};
    struct mapper_result result = {0};
    struct mapper_info info = {0};
    enum status st;

    API_NEED (plan);
    if (settings)
        API_SIZED (settings);
    if (how)
        API_SIZED (how);
    API_NEED (out);
    if (how && (!(how->move_cost_s >= 0) || !(how->remaining_steps >= 0)))
        return (enum linkwise_status) err_set (
            api_error (err), ST_USAGE, "%s: how: expected 0 or more seconds and steps",
            __func__);
    if (!cluster)
        cluster = plan->cluster;
    r.p = api_plan_problem (plan, cluster->c);
    r.p.axes = mapper_axes_free ();
    st = take_settings (in, &r, api_error (err));
    if (st == ST_OK) {
        take_limit (in, &plan->plan, &r.p);
        costmodel_note_types (cluster->c, r.p.job->precision, api_notes (notes));
        moves.tie = in->tie;
        if (how) {
            moves.move_cost_s = how->move_cost_s;
            moves.remaining_steps = how->remaining_steps;
            moves.any_degrees = how->any_degrees;
        }
        st = mapper_replan (&r.p, &plan->plan, &r.s, &moves, &result, &info, &done,
                            api_error (err));
    }
    if (st == ST_OK)
        st = plan_of (
            &r.p, &result, &info, cluster,
            json_pack ("{s:o}", "replan", mapper_replanned_to_json (&r.p, &done, "plan")),
            out, api_error (err));
    if (st == ST_OK && how) {
        how->ranks_moved = done.ranks_moved;
        how->stay_step_s = done.stay_step_s;
    }
    mapper_replanned_release (&done);
    mapper_result_release (&result);
    mapper_info_release (&info);
    free (r.allowed);
    return (enum linkwise_status) st;
}
