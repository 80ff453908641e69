/* Settings one step away from the plan's, and the configurations that its search liked next. */
#include "report/report_private.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"

/* The plan's placement and layers of another configuration of the same degrees, or the best of
 * one that is to be placed anew: its step, its breakdown, or why there is none. */
static enum status price (struct report_explaining *e, const struct workload_config *c,
                          const struct workload_job *job, bool anew, double *step_s,
                          struct costmodel_breakdown *part, char why[256])
{
    struct mapper_problem p = *e->plan.p;
    struct workload_profile by = *p.profile;
    struct mapper_result r = {.lower_bound_s = 0};
    struct mapper_info info = {0};
    struct error wrong = {""};
    enum status st = ST_OK;

    p.job = job;
    if (anew) {
        st = mapper_profile_allowed (&p, &by, &wrong);
        p.profile = &by;
    }
    p.axes = mapper_axes_of (c);
    *step_s = INFINITY;
    THEN (st, workload_config_check (p.model, p.job, c, &wrong));
    THEN (st, workload_config_offered (p.model, c, p.profile, &wrong));
    THEN (st, !anew ? mapper_result_put (&p, c, e->plan.layers, e->plan.gpu, &r, &wrong)
                    : mapper_search (&p, e->plan.settings, &r, &info, &wrong));
    if (anew)
        THEN (st, mapper_result_use (&p, &by, &r, &wrong));
    if (st == ST_OK) {
        *step_s = r.estimate.step_s;
        if (part)
            *part = r.estimate.part;
    } else if (info.missed)
        snprintf (why, 256, "stage %d needs %.1f GiB, the limit is %.1f GiB",
                  info.miss.stage, info.miss.memory.peak_bytes / UNITS_GIB,
                  info.miss.limit_bytes / UNITS_GIB);
    else
        snprintf (why, 256, "%.255s", wrong.text);
    e->searched += anew;
    mapper_result_release (&r);
    mapper_info_release (&info);
    return st == ST_NOMEM ? err_nomem (e->err) : ST_OK;
}

static enum status try_config (struct report_explaining *e,
                               const struct workload_config *c, bool anew,
                               const char *what)
{
    struct report_gain *g = report_explain_add (e, REPORT_SETTING);

    if (!g)
        return ST_NOMEM;
    report_explain_tell (e, what);
    snprintf (g->what, sizeof g->what, "%s", what);
    return price (e, c, e->plan.p->job, anew, anew ? &g->replanned_s : &g->in_place_s,
                  NULL, g->why);
}

/* One micro-batch more in each batch, or as many as the schedule takes: the step for as many
 * sequences as before. */
static enum status try_microbatch (struct report_explaining *e)
{
    struct report_gain *g = report_explain_add (e, REPORT_SETTING);
    const struct workload_config *c = e->plan.config;
    struct workload_job job = *e->plan.p->job;
    int more = 0;

    if (!g)
        return ST_NOMEM;
    do {
        job.global_batch += c->micro_batch * c->deg.dp;
        more++;
    } while (more < c->deg.pp &&
             workload_config_check (e->plan.p->model, &job, c, NULL) != ST_OK);
    snprintf (g->what, sizeof g->what, "%d more micro-batch%s (global batch %d)", more,
              more > 1 ? "es" : "", job.global_batch);
    TRY (price (e, c, &job, false, &g->in_place_s, NULL, g->why));
    g->in_place_s *= (double) e->plan.p->job->global_batch / job.global_batch;
    return ST_OK;
}

static enum status try_recompute (struct report_explaining *e)
{
    static const struct {
        enum workload_recompute way;
        const char *what;
    } way[] = {{RECOMPUTE_NONE, "recompute none"},
               {RECOMPUTE_SELECTIVE, "recompute selective"},
               {RECOMPUTE_FULL, "recompute full"}};

    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        struct workload_config c = *e->plan.config;

        if (c.recompute == way[k].way && c.recompute_layers == 0 &&
            c.recompute_modules == 0)
            continue;
        c.recompute = way[k].way;
        c.recompute_layers = 0;
        c.recompute_modules = 0;
        TRY (try_config (e, &c, false, way[k].what));
    }
    return ST_OK;
}

/* Shards over all ranks where they are over groups; else over those of a node, by the stages for
 * which plan tries that. */
static enum status try_shard (struct report_explaining *e)
{
    struct workload_config c = *e->plan.config;
    const struct topology_cluster *cluster = e->plan.p->cluster;
    int gpus = 0;
    char what[64];

    for (int i = 0; i < cluster->n_nodes; i++)
        gpus = cluster->node[i].gpus > gpus ? cluster->node[i].gpus : gpus;
    if (workload_shard_copies (&c) > 1) {
        c.shard = 0;
        return try_config (e, &c, false, "shard over all of dp");
    }
    c.shard = gpus / (c.deg.tp * c.deg.cp);
    if (c.shard < 2 || c.zero < 2 || !(e->plan.p->profile->shard_stages >> c.zero & 1) ||
        c.deg.dp % c.shard != 0 || workload_shard_copies (&c) == 1)
        return ST_OK;
    snprintf (what, sizeof what, "shard %d", c.shard);
    return try_config (e, &c, false, what);
}

/* Twice and half the micro-batch; ZeRO one stage up and down; sequence parallelism. */
static enum status try_numbers (struct report_explaining *e)
{
    const struct workload_config *now = e->plan.config;
    struct workload_config c = *now;
    char what[64];

    for (int up = 1; up >= 0; up--) {
        c.micro_batch = up ? 2 * now->micro_batch : now->micro_batch / 2;
        snprintf (what, sizeof what, "micro-batch %d", c.micro_batch);
        if (c.micro_batch > 0)
            TRY (try_config (e, &c, false, what));
    }
    c = *now;
    for (int by = -1; by <= 1; by += 2) {
        c.zero = now->zero + by;
        c.shard = c.zero > 0 ? now->shard : 0;
        snprintf (what, sizeof what, "zero %d", c.zero);
        if (c.zero >= 0 && c.zero <= 3)
            TRY (try_config (e, &c, false, what));
    }
    c = *now;
    c.sequence_parallel = !c.sequence_parallel;
    return c.deg.tp > 1 ? try_config (e, &c, false,
                                      c.sequence_parallel ? "sequence parallelism on"
                                                          : "sequence parallelism off")
                        : ST_OK;
}

/* One degree doubled, another one halved. */
static enum status try_degrees (struct report_explaining *e)
{
#define DEGREE(d) offsetof (struct workload_degrees, d), #d
    static const struct {
        size_t up;
        const char *up_name;
        size_t down;
        const char *down_name;
    } step[REPORT_DEGREE_STEPS] = {
        {DEGREE (tp), DEGREE (dp)}, {DEGREE (dp), DEGREE (tp)},
        {DEGREE (pp), DEGREE (dp)}, {DEGREE (dp), DEGREE (pp)},
        {DEGREE (tp), DEGREE (pp)}, {DEGREE (pp), DEGREE (tp)}};

    for (size_t k = 0; k < REPORT_DEGREE_STEPS; k++) {
        struct workload_config c = *e->plan.config;
        int *up = (int *) (void *) ((char *) &c.deg + step[k].up),
            *down = (int *) (void *) ((char *) &c.deg + step[k].down);
        char what[64];

        if (*down % 2) { /* nothing to halve */
            e->searched++;
            continue;
        }
        *up *= 2;
        *down /= 2;
        if (c.deg.etp == e->plan.config->deg.tp)
            c.deg.etp = c.deg.tp;
        c.sequence_parallel = c.sequence_parallel && c.deg.tp > 1;
        if (c.deg.pp == 1) { /* no other schedule is without a pipeline */
            c.schedule = SCHEDULE_1F1B;
            c.deg.vpp = 1;
        }
        snprintf (what, sizeof what, "%s %d, %s %d", step[k].up_name, *up,
                  step[k].down_name, *down);
        TRY (try_config (e, &c, true, what));
    }
    return ST_OK;
}

/* ---- rivals ---- */

static enum status find_rivals (struct report_explaining *e)
{
    json_t *top = json_object_get (json_object_get (e->old->doc, "search"), "top"), *one;
    struct report_explained *x = e->x;
    size_t i;

    json_array_foreach (top, i, one)
    {
        struct report_rival rival = {.config = *e->plan.config};
        struct mapper_axes own = mapper_axes_of (e->plan.config);
        const struct json_at at = json_root (one, "top");

        if (workload_degrees_from_json (&at, &rival.config.deg, NULL) != ST_OK ||
            workload_settings_from_json (&at, &rival.config, NULL) != ST_OK ||
            x->n_rivals == REPORT_RIVALS_MOST || mapper_axes_hold (&own, &rival.config))
            continue;
        report_explain_tell (e, "the next-best configurations");
        TRY (price (e, &rival.config, e->plan.p->job, true, &rival.step_s, &rival.more_s,
                    rival.why));
        if (isfinite (rival.step_s))
            costmodel_breakdown_less (&rival.more_s, &x->estimate.part);
        if (!array_grow (&x->rival, (size_t) x->n_rivals, sizeof *x->rival))
            return err_nomem (e->err);
        x->rival[x->n_rivals++] = rival;
    }
    return ST_OK;
}

enum status report_explain_settings (struct report_explaining *e)
{
    TRY (try_microbatch (e));
    TRY (try_recompute (e));
    TRY (try_numbers (e));
    TRY (try_shard (e));
    TRY (try_degrees (e));
    return find_rivals (e);
}
