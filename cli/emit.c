/* linkwise emit: a plan into launcher files. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "launch/launch.h"

struct emit_input {
    const char *plan, *cluster, *to, *dir;
};

#define INPUT struct emit_input

static const struct cli_option options[] = {
    {"to", 't', "NAME,...|all",
     "launchers and frameworks to write files for (default all)", CLI_TEXT (to),
     .usual = "all"},
    {"directory", 'd', "DIR", "folder to write to (required)", CLI_TEXT (dir),
     .needed = true},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct emit_input *in = input;

    if (in->dir[0] == '\0')
        usage_error (state, "-d: expected a folder, found \"\"");
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct emit_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    struct notes refused = {0};
    char path[PATH_MAX] = ""; /* of this program, for scripts that call it */
    ssize_t n = readlink ("/proc/self/exe", path, PATH_MAX - 1);
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    THEN (st, api_emit (&x, in->to, in->dir, n > 0 ? path : "linkwise", notes, &refused,
                        err));
    if (st == ST_OK)
        cli_print ("%d ranks written to %s; %s/README has the commands\n", x.plan.n_ranks,
                   in->dir, in->dir);
    for (int i = 0; i < refused.n; i++)
        fprintf (stderr, "linkwise emit: not written: %s\n", refused.line[i]);
    notes_free (&refused);
    api_plan_release (&x);
    return st;
}

const struct cli_command cli_emit = {
    .arguments = "PLAN [CLUSTER]",
    .help =
        "Write the files that put every rank on its planned GPU.  A launcher that cannot "
        "express the plan is refused with the reason; `--to all` writes the rest.\v"
        "Example: linkwise emit plan.json --to openmpi -d job\n\n"
        "Launchers, and frameworks' files:\n",
    .choice = launch_target_at,
    .choice_width = 16,
    .options = {.line = options, .check = check},
    .places = {1, 2, "PLAN and CLUSTER",
               "PLAN and -d DIR are required, as in: linkwise emit plan.json -d job"},
    .at = {CLI_PLACE (plan), CLI_PLACE (cluster)},
    CLI_RUN (run)};
