/* linkwise emit: a plan into launcher files. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "launch/launch.h"

struct emit_input {
    const char *plan, *cluster, *to, *dir;
};

static const struct argp_option options[] = {
    {"to", 't', "NAME,...|all", 0, "launchers to write for (default all)", 0},
    {"directory", 'd', "DIR", 0, "where to write", 0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct emit_input *in = state->input;

    switch (key) {
    case 't':
        in->to = arg;
        return 0;
    case 'd':
        in->dir = arg;
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
        if (!in->plan || !in->dir)
            argp_error (state, "PLAN and -d DIR are required");
        if (in->dir[0] == '\0')
            argp_error (state, "-d: expected a folder, found \"\"");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static enum status run (const struct emit_input *in, struct notes *notes,
                        struct error *err)
{
    struct workload_plan plan = {0};
    struct topology_cluster *c = NULL;
    struct workload_profile profile;
    int *gpu = NULL;
    enum status st =
        cli_plan_read (in->plan, in->cluster, &plan, &c, &profile, notes, err);

    if (st != ST_OK)
        return st;
    if (!(gpu = calloc ((size_t) plan.n_ranks, sizeof *gpu)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = costmodel_plan_gpus (&plan, c, gpu, err);
    if (st == ST_OK) {
        cli_note_drained (c, gpu, plan.n_ranks, notes);
        st = launch_emit (&plan, c, gpu, in->to, in->dir, err);
    }
    if (st == ST_OK)
        printf ("%d ranks written to %s; %s/README has the commands\n", plan.n_ranks,
                in->dir, in->dir);
    free (gpu);
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
    return st;
}

int cli_emit (int argc, char **argv)
{
    struct text doc = {0};
    struct argp argp = {
        .options = options, .parser = parse, .args_doc = "PLAN [CLUSTER]"};
    struct emit_input in = {.to = "all"};
    struct notes notes = {0};
    struct error err = {""};

    text_add (&doc,
              "Write the files that put every rank on its planned GPU.\v"
              "Example: linkwise emit plan.json --to openmpi -d launch\n\nLaunchers:\n");
    for (int i = 0; launch_target_at (i); i++)
        text_add (&doc, "  %-12s %s\n", launch_target_at (i)->name,
                  launch_target_at (i)->what);
    argp.doc = text_str (&doc);
    cli_parse (&argp, argc, argv, &in);
    text_free (&doc);

    enum status st = run (&in, &notes, &err);

    cli_warn ("emit", &notes);
    return cli_end ("emit", st, &err);
}
