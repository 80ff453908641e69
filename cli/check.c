/* linkwise check: is a plan what it says? */
#include "check/check.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"

struct check_input {
    const char *plan, *cluster;
    bool json;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "print one JSON document", 0}, {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct check_input *in = state->input;

    switch (key) {
    case 'j':
        in->json = true;
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

static json_t *report_json (const struct check_report *r)
{
    json_t *list = json_array ();

    for (int i = 0; i < r->n; i++)
        json_array_append_new (
            list, json_pack ("{s:s, s:s, s:s}", "check", r->item[i].what, "verdict",
                             verdicts[r->item[i].verdict], "found", r->item[i].text));
    return json_pack ("{s:i, s:b, s:o, s:o}", "version", 1, "ok", r->failed == 0,
                      "step_s", r->step_s > 0 ? json_real (r->step_s) : json_null (),
                      "checks", list);
}

static enum status run (const struct check_input *in, struct notes *notes,
                        struct error *err)
{
    struct workload_plan plan = {0};
    struct topology_cluster *c = NULL;
    struct workload_profile profile;
    struct check_report r;
    enum status st =
        cli_plan_read (in->plan, in->cluster, &plan, &c, &profile, notes, err);

    if (st != ST_OK)
        return st;
    st = check_plan (&plan, c, &profile, &r, err);
    if (st == ST_OK) {
        if (in->json)
            st = cli_print_json (report_json (&r), err);
        else
            print_report (&r);
    }
    if (st == ST_OK && r.failed > 0)
        st = err_set (err, ST_INVALID, "%s: %d of %d checks failed", in->plan, r.failed,
                      r.n);
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
            "Check a plan without the search: GPUs, degrees, memory, step time, bound.\v"
            "Example: linkwise check plan.json\n\nWithout CLUSTER the plan's own is "
            "used.  "
            "Exit code 1 when a check fails."};
    struct check_input in = {0};
    struct notes notes = {0};
    struct error err = {""};

    cli_parse (&argp, argc, argv, &in);

    enum status st = run (&in, &notes, &err);

    cli_warn ("check", &notes);
    return cli_end ("check", st, &err);
}
