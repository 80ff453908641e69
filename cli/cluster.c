/* linkwise cluster: the choice of its subcommand. */
#include "cli/cluster.h"

#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"show", "nodes, tiers, the worst links, a heat map", cli_cluster_show},
    {"check", "can it be planned on, and what is odd about it", cli_cluster_check},
    {"merge", "put node, links and cluster files together", cli_cluster_merge},
    {"import", "turn other tools' output into a links or node file", cli_cluster_import},
    {"drain", "take nodes, GPUs or links out of use, or back", cli_cluster_drain},
    {"synth", "draw a cluster for trials", cli_cluster_synth},
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

static void print_help (FILE *out)
{
    fputs ("Usage: linkwise cluster COMMAND [ARGUMENT...]\n"
           "  linkwise cluster show examples/clusters/h100-17.json\n\nCommands:\n",
           out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf (out, "  %-7s %s\n", commands[i].name, commands[i].what);
    fputs ("\n`linkwise cluster COMMAND --help` tells more.\n", out);
}

int cli_cluster (int argc, char **argv)
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
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp (argv[1], commands[i].name) == 0) {
            static char name[32];

            snprintf (name, sizeof name, "cluster %s", commands[i].name);
            argv[1] = name;
            return commands[i].run (argc - 1, argv + 1);
        }
    fprintf (stderr,
             "linkwise cluster: unknown command \"%s\" (`linkwise cluster --help` lists "
             "them)\n",
             argv[1]);
    return 2;
}
