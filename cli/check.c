/* linkwise check: is a plan what it says? */
#include "check/check.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/check.h"

#define SHOWN 20 /* ranks that are printed one by one */

struct check_input {
    const char *plan, *cluster, *running;
    struct check_logs logs;
    bool json;
};

#define INPUT struct check_input

static const struct cli_option options[] = {
    {"running", 'r', "TABLE",
     "compare the plan with a running job: lines `rank host gpu-uuid`, as the emitted "
     "where.sh prints them; - is standard input",
     CLI_TEXT (running)},
    {CLI_JSON},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct check_input *in = input;

    cli_one_stdin (cli_is_dash (in->plan) + cli_is_dash (in->running) + in->logs.n_stdins,
                   state);
}

/* A running job beside its plan. */
struct running {
    struct check_place *place; /* [n_ranks]; NULL without --running */
    struct check_running found;
};

/* Ranks that are elsewhere: the first as rows of a table, all as entries of a list. */
static void add_differences (const struct workload_plan *p, const struct running *run,
                             struct table *t, json_t *list)
{
    for (int i = 0; i < run->found.n_differences; i++) {
        int r = run->found.difference[i].rank;
        const struct workload_place *plan = &p->place[r];
        const struct check_place *here = &run->place[r];
        bool reported = here->host[0] != '\0';
        struct table *shown = i < SHOWN ? t : NULL;

        table_cell (shown, "%d", r);
        table_cell (shown, "%s", plan->node);
        table_cell (shown, "%d", plan->gpu);
        table_cell (shown, "%s", reported ? here->host : "(no report)");
        table_cell (shown, "%s", here->gpu);
        json_array_append_new (
            list, json_pack ("{s:i, s:s, s:i, s:o, s:o}", "rank", r, "planned_node",
                             plan->node, "planned_gpu", plan->gpu, "host",
                             reported ? json_string (here->host) : json_null (), "gpu",
                             reported ? json_string (here->gpu) : json_null ()));
    }
}

static enum status answer (const struct check_input *in, const struct workload_plan *p,
                           const struct check_report *r, const struct running *run,
                           json_t *nccl, const struct check_nccl *logs, struct error *err)
{
    const struct check_running *found = &run->found;
    struct table *t = cli_table ("<check", "<", "<found"),
                 *moved = cli_table ("rank", "<planned host", "GPU", "<runs on", "<GPU");
    json_t *checks = json_array (), *list = json_array (), *doc;
    enum status st;

    for (int i = 0; i < r->n; i++)
        cli_finding (t, checks, r->item[i].what, r->item[i].verdict, r->item[i].text);
    add_differences (p, run, moved, list);
    doc = json_pack ("{s:i, s:b, s:o, s:o}", "version", 1, "ok", r->failed == 0, "step_s",
                     r->step_s > 0 ? json_real (r->step_s) : json_null (), "checks",
                     checks);
    if (run->place)
        json_object_set_new (
            doc, "running",
            json_pack ("{s:i, s:i, s:o, s:o, s:O}", "ranks", found->n_ranks, "reported",
                       found->reported, "planned_step_s",
                       json_number_or_null (found->planned_step_s), "step_s",
                       json_number_or_null (found->step_s), "differences", list));
    json_decref (list);
    if (nccl)
        json_object_set_new (doc, "nccl", nccl);
    st = cli_answer (in->json, t, doc, err);
    if (!in->json && found->n_differences > 0) {
        cli_print ("\n");
        table_print (moved, stdout);
        if (found->n_differences > SHOWN)
            cli_print ("and %d more\n", found->n_differences - SHOWN);
    }
    table_destroy (moved);
    if (!in->json && in->logs.n > 0)
        check_nccl_print (logs);
    if (st == ST_OK && r->failed > 0)
        st = err_set (err, ST_INVALID, "%s: %d of %d checks failed", in->plan, r->failed,
                      r->n);
    return st;
}

static enum status compare (const struct check_input *in, const struct linkwise_plan *x,
                            struct running *run, struct check_report *r,
                            struct error *err)
{
    char *text;
    size_t len;
    enum status st;

    TRY (file_read (in->running, &text, &len, err));
    run->place = calloc ((size_t) x->plan.n_ranks, sizeof *run->place);
    st = run->place ? check_running_parse (cli_input_name (in->running),
                                           text + file_mark (text, len), x->plan.n_ranks,
                                           run->place, err)
                    : err_nomem (err);
    free (text);
    TRY (st);
    return check_running (&x->plan, x->cluster->c, &x->profile, run->place, r,
                          &run->found, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct check_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    struct check_report r;
    struct running job = {0};
    struct check_nccl nccl = {.way = NULL};
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    if (st == ST_OK)
        st = check_plan (&x.plan, x.cluster->c, &x.profile, &r, err);
    if (st == ST_OK && in->running)
        st = compare (in, &x, &job, &r, err);
    if (st == ST_OK && in->logs.n > 0)
        st = check_nccl (&x.plan, x.cluster->c, &x.profile, in->logs.path, in->logs.n, &r,
                         &nccl, err);
    if (st == ST_OK)
        st = answer (in, &x.plan, &r, &job,
                     in->logs.n > 0 ? check_nccl_json (&nccl, x.cluster->c) : NULL, &nccl,
                     err);
    check_nccl_release (&nccl);
    free (in->logs.path);
    free (job.place);
    free (job.found.difference);
    api_plan_release (&x);
    return st;
}

const struct cli_command cli_check = {
    .arguments = "PLAN [CLUSTER]",
    .help = "Check a plan independently of the search: GPUs, degrees, memory, step time, "
            "bound.  With --running, also check that a job's ranks are where the plan "
            "says, and estimate what the difference costs; with --nccl-log, compare "
            "NCCL's rings and transports with those that the estimate assumes.\v"
            "Example: linkwise check plan.json\n  srun ... ./exec.sh ./where.sh | "
            "linkwise check plan.json --running -\n  linkwise check plan.json --nccl-log "
            "logs/\n\n"
            "CLUSTER defaults to the plan's own.  Exit code 1: a check failed.",
    .options = {.line = options, .check = check},
    .parts = {{&check_logs_options, offsetof (INPUT, logs), "What NCCL chose:", 1}},
    .places = {1, 2, "PLAN and CLUSTER", "PLAN is required"},
    .at = {CLI_PLACE (plan), CLI_PLACE (cluster)},
    CLI_RUN (run)};
