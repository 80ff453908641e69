/* linkwise plan --from: an old plan on the cluster as it is now. */
#include "cli/plan.h"

#include <math.h>
#include <stdio.h>

#define INPUT struct plan_from

static const struct cli_option options[] = {
    {"from", 0, "PLAN",
     "replan the job of this plan: keep its degrees, and move ranks only where that "
     "pays; CLUSTER is the cluster as it is now (default: the plan's)",
     CLI_TEXT (file)},
    {"move-cost", 0, "S",
     "seconds to stop, move and restart the job (default 0); the job stays as it is "
     "unless the remaining steps save more than this",
     CLI_FROM_0 (move_cost_s, 1e12)},
    {"remaining-steps", 0, "N", "steps left to run (default: as many as fit in a day)",
     CLI_ABOVE (how.remaining_steps, 0, 1e12)},
    {"degrees", 0, "same|any",
     "same: keep the old degrees while they can run (default); any: search all degrees "
     "that no option fixes",
     CLI_WORD (degrees)},
    {0}};

static void init (void *input)
{
    *(struct plan_from *) input = (struct plan_from){
        .move_cost_s = -1, .degrees = -1, .how = mapper_replan_settings_default ()};
}

const struct cli_options plan_from_options = {.line = options, .init = init};

bool plan_from_asked (const struct plan_from *x)
{
    return x->move_cost_s >= 0 || x->how.remaining_steps > 0 || x->degrees >= 0;
}

/* ---- reading ---- */

/* A model that is given beside the plan must be the plan's. */
static enum status check_model (const struct plan_from *x,
                                const struct workload_plan *old, const char *arg,
                                struct notes *notes, struct error *err)
{
    struct workload_model m;
    enum status st = ST_OK;
    json_t *a, *b;

    TRY (cli_hint (CLI_MODEL, arg, workload_model_read (arg, &m, notes, err), err));
    a = workload_model_to_json (&m);
    b = workload_model_to_json (&old->model);
    if (!a || !b)
        st = err_nomem (err);
    else if (!json_equal (a, b))
        st = err_set (err, ST_USAGE,
                      "--from: %s is a plan of %s, not of %s: leave MODEL out to replan "
                      "that job, or --from out to plan another",
                      x->file, old->model.name, m.name);
    JSON_DECREF_ALL (a, b);
    return st;
}

#define LEAVE_IT "leave it out to replan that job, or --from out to plan another"

/* Options of the job must be the plan's too, where they were given: not 0. */
static enum status check_job (const struct plan_from *x, const struct workload_plan *old,
                              const struct cli_job *given, struct error *err)
{
    const struct workload_job *job = &given->job, *has = &old->job;
    enum memest_model model = MEMEST_LINKWISE;

    memest_model_parse (old->memory_model, &model);

    const struct {
        const char *option;
        double given, has;
    } member[] = {{"--seq", job->seq, has->seq},
                  {"--global-batch", job->global_batch, has->global_batch},
                  {"--precision", job->precision, has->precision},
                  {"--attention", job->attention, has->attention},
                  {"--fused-norm", job->fused_norm, has->fused_norm},
                  {"--fused-mlp", job->fused_mlp, has->fused_mlp},
                  {"--gathered-logits", job->gathered_logits, has->gathered_logits},
                  {"--tp-comm-overlap", job->tp_comm_overlap, has->tp_comm_overlap},
                  {"--wta-crs", job->wta_crs, has->wta_crs},
                  {"--lora", job->lora, has->lora},
                  {"--memory-model", given->memory_model, model}};

    for (size_t i = 0; i < sizeof member / sizeof *member; i++) {
        if (member[i].given == 0 || member[i].given == member[i].has)
            continue;
        if (i < 2) /* numbers */
            return err_set (err, ST_USAGE, "%s %.0f: %s has %.0f: " LEAVE_IT,
                            member[i].option, member[i].given, x->file, member[i].has);
        return err_set (err, ST_USAGE, "%s: %s was planned otherwise: " LEAVE_IT,
                        member[i].option, x->file);
    }
    return ST_OK;
}

enum status plan_from_read (struct plan_from *x, const struct cli_job *job,
                            const char *cluster, const char *model,
                            struct linkwise_plan *old, struct notes *notes,
                            struct error *err)
{
    struct workload_gpus on = {.n = 0};

    TRY (cli_plan_read (x->file, cluster, old, notes, err));
    if (model)
        TRY (check_model (x, &old->plan, model, notes, err));
    TRY (check_job (x, &old->plan, job, err));
    costmodel_gpus (old->cluster->c, &on);
    if (job->profile)
        TRY (workload_profile_for (job->profile, &old->plan.model, &on, &old->profile,
                                   notes, err));
    workload_profile_pace (&old->profile, &old->plan.model, old->plan.job.precision);
    if (!mapper_limit_free (job->memory_limit_pct, job->oom_risk))
        cli_job_limit (job, &old->plan);
    x->how.move_cost_s = fmax (x->move_cost_s, 0);
    x->how.any_degrees = x->degrees > 0;
    return ST_OK;
}

/* ---- saying ---- */

static void print_stay (const struct mapper_replanned *d)
{
    char stay[32], best[32];
    double gain_s = d->stay_step_s - d->best_step_s;

    if (gain_s <= 0 || d->best_step_s == d->stay_step_s) {
        cli_print ("replan   stay put: no placement found is better than the old one\n");
        return;
    }
    cli_print ("replan   stay put: the step takes %s now, %s at best: %.2f %% less",
               cli_seconds (d->stay_step_s, stay), cli_seconds (d->best_step_s, best),
               100 * gain_s / d->stay_step_s);
    if (gain_s * d->remaining_steps > d->move_cost_s)
        cli_print (", which is too little to count\n");
    else
        cli_print (": over %.0f steps that saves %.0f s, moving costs %.0f s\n",
                   d->remaining_steps, gain_s * d->remaining_steps, d->move_cost_s);
}

static void print_go (const struct mapper_replanned *d, const struct mapper_result *r)
{
    char stay[32], best[32];
    int world = (int) workload_world (&r->config.deg);

    if (d->verdict == MAPPER_RESTART)
        cli_print ("replan   restart: all %d ranks get other places", world);
    else
        cli_print ("replan   move %d of %d ranks", d->ranks_moved, world);
    if (!isfinite (d->stay_step_s)) {
        cli_print (": the old placement cannot run here");
        if (d->ranks_gone > 0)
            cli_print (" (%d ranks have lost their GPU)", d->ranks_gone);
    } else {
        cli_print (": the step takes %s instead of %s, %.2f %% %s",
                   cli_seconds (d->best_step_s, best), cli_seconds (d->stay_step_s, stay),
                   100 * fabs (1 - d->best_step_s / d->stay_step_s),
                   d->best_step_s > d->stay_step_s ? "more" : "less");
        if (d->move_cost_s > 0 && isfinite (d->pays_after_steps))
            cli_print ("; moving costs %.0f s and pays off after %.0f steps",
                       d->move_cost_s, ceil (d->pays_after_steps));
    }
    putchar ('\n');
    if (d->verdict == MAPPER_RESTART && d->old_degrees[0])
        cli_print ("         not with the old degrees: %s\n", d->old_degrees);
}

void plan_from_print_moves (const struct plan_from *x, const struct topology_cluster *c)
{
    const struct mapper_replanned *d = &x->done;
    struct table *t;

    if (d->n_moves == 0)
        return;
    t = TABLE_OF ("<move between nodes", "ranks", "gain s", "%", "<");
    for (int k = 0; k < d->n_moves; k++) {
        const struct mapper_move *m = &d->move[k];
        struct text names = {0};

        for (int i = 0; i < m->n_nodes && i < 4; i++)
            text_add (&names, "%s%s", i ? ", " : "", c->node[m->node[i]].name);
        if (m->n_nodes > 4)
            text_add (&names, " and %d more", m->n_nodes - 4);
        table_cell (t, "%s", text_str (&names));
        table_cell (t, "%d", m->n_ranks);
        cli_cell (t, "%.4f", m->gain_s);
        cli_cell (t, "%.2f", 100 * m->gain_s / d->best_step_s);
        table_cell (t, "%s", m->forced ? "forced" : "");
        text_free (&names);
    }
    putchar ('\n');
    table_end (t, stdout);
}

void plan_from_print (const struct plan_from *x, const struct mapper_result *r)
{
    if (x->done.verdict == MAPPER_STAY)
        print_stay (&x->done);
    else
        print_go (&x->done, r);
}
