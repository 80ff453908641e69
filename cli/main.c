/* linkwise COMMAND [ARGUMENT...] */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"

/* Its subcommands have a menu of their own. */
static const struct cli_command cluster = {
    .name = "cluster", .what = "show, check, merge, import, drain or draw clusters"};

struct menu {
    const char *name;  /* "linkwise cluster" */
    const char *usage; /* and the title of the list */
    const char *more;  /* after the list */
    int width;         /* of the list's names */
    const struct cli_command *const *command;
};

static const struct menu program = {
    .name = "linkwise",
    .usage =
        "Usage: linkwise COMMAND [ARGUMENT...]\n"
        "  linkwise plan examples/clusters/h100-17.json llama-2-70b --seq 4096 "
        "--global-batch 1024\n\n"
        "How should a training job be split over these machines, and which rank should "
        "run on\nwhich GPU?\n\nCommands:\n",
    .more =
        "\n`linkwise COMMAND --help` tells more.  Exit codes: 0 done, 1 failed or bad "
        "content,\n2 bad options, 3 nothing fits.\n",
    .width = 9,
    .command = (const struct cli_command *const[]){
        &cli_plan, &cli_mem, &cli_time, &cli_eval, &cli_check, &cli_emit, &cluster,
        &cli_compare, &cli_topo, &cli_bind, &cli_validate, &cli_calibrate, &cli_gpus,
        &cli_models, NULL}};

static const struct menu cluster_menu = {
    .name = "linkwise cluster",
    .usage = "Usage: linkwise cluster COMMAND [ARGUMENT...]\n"
             "  linkwise cluster show examples/clusters/h100-17.json\n\nCommands:\n",
    .more = "\n`linkwise cluster COMMAND --help` tells more.\n",
    .width = 7,
    .command = (const struct cli_command *const[]){
        &cli_cluster_show, &cli_cluster_check, &cli_cluster_merge, &cli_cluster_import,
        &cli_cluster_drain, &cli_cluster_synth, NULL}};

static const char *last_word (const char *name)
{
    const char *blank = strrchr (name, ' ');

    return blank ? blank + 1 : name;
}

static int print_help (const struct menu *m, FILE *out, int code)
{
    fputs (m->usage, out);
    for (int i = 0; m->command[i]; i++)
        fprintf (out, "  %-*s %s\n", m->width, last_word (m->command[i]->name),
                 m->command[i]->what);
    fputs (m->more, out);
    return code;
}

/* Parse, do it, say what went wrong: warnings, then the error. */
static int run (const struct cli_command *c, int argc, char **argv)
{
    void *input = calloc (1, c->input_size);
    struct notes notes = {0};
    struct error err = {""};
    enum status st = input ? ST_OK : err_nomem (&err);

    if (st == ST_OK) {
        cli_parse (c, argc, argv, input);
        st = c->run (input, &notes, &err);
    }
    cli_warn (c->name, &notes);
    if (st != ST_OK && err.text[0])
        fprintf (stderr, "linkwise %s: %s\n", c->name, err.text);
    free (input);
    return status_exit_code (st);
}

/* An answer that did not reach its reader is no answer. */
static int answered (int code)
{
    if (fflush (stdout) == 0 && !ferror (stdout))
        return code;
    fputs ("linkwise: standard output: write error\n", stderr);
    return code ? code : 1;
}

static int choose (const struct menu *m, int argc, char **argv)
{
    if (argc < 2)
        return print_help (m, stderr, 2);
    if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-?") == 0 ||
        strcmp (argv[1], "help") == 0)
        return print_help (m, stdout, 0);
    for (int i = 0; m->command[i]; i++) {
        const struct cli_command *c = m->command[i];

        if (strcmp (argv[1], last_word (c->name)) == 0) {
            int code = c == &cluster ? choose (&cluster_menu, argc - 1, argv + 1)
                                     : run (c, argc - 1, argv + 1);

            return m == &program ? answered (code) : code;
        }
    }
    fprintf (stderr, "%s: unknown command \"%s\" (`%s --help` lists them)\n", m->name,
             argv[1], m->name);
    return 2;
}

int main (int argc, char **argv)
{
    if (argc > 1 && (strcmp (argv[1], "--version") == 0 || strcmp (argv[1], "-V") == 0)) {
        puts ("linkwise " LINKWISE_VERSION);
        return 0;
    }
    return choose (&program, argc, argv);
}
