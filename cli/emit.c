/* linkwise emit: a plan into launcher files. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* This program's own path, for scripts that call it; its name where that is not known. */
static const char *own_path (char path[PATH_MAX])
{
    ssize_t n = readlink ("/proc/self/exe", path, PATH_MAX - 1);

    if (n <= 0)
        return "linkwise";
    path[n] = '\0';
    return path;
}

static void print_refused (const struct notes *refused)
{
    for (int i = 0; i < refused->n; i++)
        fprintf (stderr, "linkwise emit: not written: %s\n", refused->line[i]);
}

static enum status run (const struct emit_input *in, struct notes *notes,
                        struct error *err)
{
    struct workload_plan plan = {0};
    struct topology_cluster *c = NULL;
    struct workload_profile profile;
    struct notes refused = {0};
    char path[PATH_MAX];
    json_t *doc = NULL;
    int *gpu = NULL;
    enum status st =
        cli_plan_read (in->plan, in->cluster, &plan, &c, &profile, notes, err);

    if (st != ST_OK)
        return st;
    if (!(gpu = calloc ((size_t) plan.n_ranks, sizeof *gpu)))
        st = err_nomem (err);
    if (st == ST_OK)
        st = costmodel_plan_gpus (&plan, c, gpu, err);
    if (st == ST_OK)
        st = cli_plan_document (&plan, in->cluster, c, &doc, err);
    if (st == ST_OK) {
        const struct launch_request request = {.plan = &plan,
                                               .cluster = c,
                                               .gpu = gpu,
                                               .doc = doc,
                                               .linkwise = own_path (path),
                                               .to = in->to};

        cli_note_drained (c, gpu, plan.n_ranks, notes);
        st = launch_emit (&request, in->dir, &refused, err);
    }
    if (st == ST_OK)
        printf ("%d ranks written to %s; %s/README has the commands\n", plan.n_ranks,
                in->dir, in->dir);
    print_refused (&refused);
    notes_free (&refused);
    json_decref (doc);
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
              "Write the files that put every rank on its planned GPU.  A launcher that "
              "cannot express the plan is refused with the reason; `--to all` writes the "
              "rest.\v"
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
