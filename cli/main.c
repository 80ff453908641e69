/* linkwise COMMAND [ARGUMENT...] */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"

static const struct cli_command commands[] = {
    {"plan", "find degrees and a placement for a model on a cluster", cli_plan},
    {"mem", "estimate memory by stage and by kind", cli_mem},
    {"time", "estimate the step time of one configuration", cli_time},
    {"eval", "price a plan's placement, also one edited by hand", cli_eval},
    {"check", "check a plan independently of the search", cli_check},
    {"emit", "write the files that launchers take", cli_emit},
    {"cluster", "show, check, merge, import, drain or draw clusters", cli_cluster},
    {"compare", "two clusters, or one at two times, side by side", cli_compare},
    {"topo", "describe this machine, or read its description", cli_topo},
    {"bind", "place a plan anew on the nodes that a scheduler gave", cli_bind},
    {"validate", "estimates beside the measurements of a runs file", cli_validate},
    {"calibrate", "fit a framework profile to measured runs", cli_calibrate},
    {"gpus", "list the built-in GPU types", cli_gpus},
    {"models", "list the model presets", cli_models},
};

static void print_help (FILE *out)
{
    fputs (
        "Usage: linkwise COMMAND [ARGUMENT...]\n"
        "  linkwise plan examples/clusters/h100-17.json llama-2-70b --seq 4096 "
        "--global-batch 1024\n\n"
        "How should a training job be split over these machines, and which rank should "
        "run on\nwhich GPU?\n\nCommands:\n",
        out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf (out, "  %-9s %s\n", commands[i].name, commands[i].what);
    fputs ("\n`linkwise COMMAND --help` tells more.  Exit codes: 0 done, 1 failed or bad "
           "content,\n2 bad options, 3 nothing fits.\n",
           out);
}

int main (int argc, char **argv)
{
    if (argc < 2) {
        print_help (stderr);
        return 2;
    }
    if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-?") == 0 ||
        strcmp (argv[1], "help") == 0) {
        print_help (stdout);
        return 0;
    }
    if (strcmp (argv[1], "--version") == 0 || strcmp (argv[1], "-V") == 0) {
        puts ("linkwise " LINKWISE_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp (argv[1], commands[i].name) == 0) {
            int code = commands[i].run (argc - 1, argv + 1);

            /* An answer that did not reach its reader is no answer. */
            if (fflush (stdout) != 0 || ferror (stdout)) {
                fputs ("linkwise: standard output: write error\n", stderr);
                return code ? code : 1;
            }
            return code;
        }
    fprintf (stderr, "linkwise: unknown command \"%s\" (`linkwise --help` lists them)\n",
             argv[1]);
    return 2;
}
