/* linkwise check: is a plan what it says? */
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"

#define SHOWN 20 /* ranks that are printed one by one */

struct check_input {
    const char *plan, *cluster, *running;
    bool json;
};

static const struct argp_option options[] = {
    {"running", 'r', "TABLE", 0,
     "compare with where a job's ranks are: lines `rank host gpu-uuid`, as the emitted "
     "where.sh prints; - is standard input",
     0},
    {"json", 'j', NULL, 0, "print one JSON document", 0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct check_input *in = state->input;

    switch (key) {
    case 'j':
        in->json = true;
        return 0;
    case 'r':
        in->running = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0)
            in->plan = arg;
        else if (state->arg_num == 1)
            in->cluster = arg;
        else
            argp_error (state, "PLAN and CLUSTER expected, found \"%s\" too", arg);
        return 0;
    case ARGP_KEY_END:
        if (!in->plan)
            argp_error (state, "PLAN is required");
        if (in->running && strcmp (in->running, "-") == 0 && strcmp (in->plan, "-") == 0)
            argp_error (state, "only one input can be standard input");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *const verdicts[] = {"ok", "note", "FAILED"};

static void print_report (const struct check_report *r)
{
    static const char *const header[] = {"<check", "<", "<found", NULL};
    struct table *t = table_create (header);

    for (int i = 0; i < r->n; i++) {
        table_cell (t, "%s", r->item[i].what);
        table_cell (t, "%s", verdicts[r->item[i].verdict]);
        table_cell (t, "%s", r->item[i].text);
    }
    table_print (t, stdout);
    table_destroy (t);
}

/* A running job beside its plan. */
struct running {
    struct check_place *place; /* [n_ranks]; NULL without --running */
    struct check_running found;
};

static void print_differences (const struct workload_plan *p, const struct running *run)
{
    static const char *const header[] = {"rank",     "<planned host", "GPU",
                                         "<runs on", "<GPU",          NULL};
    struct table *t;
    int n = run->found.n_differences;

    if (n == 0)
        return;
    t = table_create (header);
    for (int i = 0; i < n && i < SHOWN; i++) {
        int r = run->found.difference[i].rank;
        const struct check_place *here = &run->place[r];

        table_cell (t, "%d", r);
        table_cell (t, "%s", p->place[r].node);
        table_cell (t, "%d", p->place[r].gpu);
        table_cell (t, "%s", here->host[0] ? here->host : "(no report)");
        table_cell (t, "%s", here->gpu);
    }
    printf ("\n");
    table_print (t, stdout);
    table_destroy (t);
    if (n > SHOWN)
        printf ("and %d more\n", n - SHOWN);
}

static json_t *running_json (const struct workload_plan *p, const struct running *run)
{
    json_t *list = json_array ();

    for (int i = 0; i < run->found.n_differences; i++) {
        int r = run->found.difference[i].rank;
        const struct check_place *here = &run->place[r];
        bool reported = here->host[0] != '\0';

        json_array_append_new (
            list, json_pack ("{s:i, s:s, s:i, s:o, s:o}", "rank", r, "planned_node",
                             p->place[r].node, "planned_gpu", p->place[r].gpu, "host",
                             reported ? json_string (here->host) : json_null (), "gpu",
                             reported ? json_string (here->gpu) : json_null ()));
    }
    return json_pack ("{s:i, s:i, s:o, s:o, s:o}", "ranks", run->found.n_ranks,
                      "reported", run->found.reported, "planned_step_s",
                      json_number_or_null (run->found.planned_step_s), "step_s",
                      json_number_or_null (run->found.step_s), "differences", list);
}

static json_t *report_json (const struct check_report *r, const struct workload_plan *p,
                            const struct running *run)
{
    json_t *list = json_array (), *doc;

    for (int i = 0; i < r->n; i++)
        json_array_append_new (
            list, json_pack ("{s:s, s:s, s:s}", "check", r->item[i].what, "verdict",
                             verdicts[r->item[i].verdict], "found", r->item[i].text));
    doc =
        json_pack ("{s:i, s:b, s:o, s:o}", "version", 1, "ok", r->failed == 0, "step_s",
                   r->step_s > 0 ? json_real (r->step_s) : json_null (), "checks", list);
    if (run->place)
        json_object_set_new (doc, "running", running_json (p, run));
    return doc;
}

static enum status compare (const struct check_input *in, const struct workload_plan *p,
                            const struct topology_cluster *c,
                            const struct workload_profile *profile, struct running *run,
                            struct check_report *r, struct error *err)
{
    char *text;
    size_t len;
    enum status st = file_read (in->running, &text, &len, err);

    if (st != ST_OK)
        return st;
    run->place = calloc ((size_t) p->n_ranks, sizeof *run->place);
    st = run->place ? check_running_parse (
                          strcmp (in->running, "-") == 0 ? "standard input" : in->running,
                          text, p->n_ranks, run->place, err)
                    : err_nomem (err);
    free (text);
    return st == ST_OK ? check_running (p, c, profile, run->place, r, &run->found, err)
                       : st;
}

static enum status run (const struct check_input *in, struct notes *notes,
                        struct error *err)
{
    struct workload_plan plan = {0};
    struct topology_cluster *c = NULL;
    struct workload_profile profile;
    struct check_report r;
    struct running job = {0};
    enum status st =
        cli_plan_read (in->plan, in->cluster, &plan, &c, &profile, notes, err);

    if (st != ST_OK)
        return st;
    st = check_plan (&plan, c, &profile, &r, err);
    if (st == ST_OK && in->running)
        st = compare (in, &plan, c, &profile, &job, &r, err);
    if (st == ST_OK) {
        if (in->json)
            st = cli_print_json (report_json (&r, &plan, &job), err);
        else {
            print_report (&r);
            print_differences (&plan, &job);
        }
    }
    if (st == ST_OK && r.failed > 0)
        st = err_set (err, ST_INVALID, "%s: %d of %d checks failed", in->plan, r.failed,
                      r.n);
    free (job.place);
    free (job.found.difference);
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
    return st;
}

int cli_check (int argc, char **argv)
{
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "PLAN [CLUSTER]",
        .doc =
            "Check a plan without the search: GPUs, degrees, memory, step time, bound; "
            "and "
            "with "
            "--running, whether a job really is where the plan says, and what it costs "
            "where it is not.\v"
            "Example: linkwise check plan.json\n"
            "  srun ... ./exec.sh ./where.sh | linkwise check plan.json --running -\n\n"
            "Without CLUSTER the plan's own is used.  Exit code 1 when a check fails."};
    struct check_input in = {0};
    struct notes notes = {0};
    struct error err = {""};

    cli_parse (&argp, argc, argv, &in);

    enum status st = run (&in, &notes, &err);

    cli_warn ("check", &notes);
    return cli_end ("check", st, &err);
}
