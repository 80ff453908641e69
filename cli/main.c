/* linkwise COMMAND [ARGUMENT...] */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/version.h"

/* A choice of commands, or of subcommands. */
struct menu {
    const char *name;  /* "linkwise cluster" */
    const char *usage; /* and the title of the list */
    const char *more;  /* after the list */
    int width;         /* of its names */
    const struct {
        const char *name, *what;
        const struct cli_command *command; /* NULL: the menu of clusters */
    } line[18];                            /* the first without a name ends them */
};

static const struct menu cluster = {
    .name = "linkwise cluster",
    .usage = "Usage: linkwise cluster COMMAND [ARGUMENT...]\n"
             "  linkwise cluster show examples/clusters/h100-17.json\n\nCommands:\n",
    .more = "\n`linkwise cluster COMMAND --help` lists the options.\n",
    .width = 7,
    .line = {{"show", "show nodes, link tiers, the worst links and a heat map",
              &cli_cluster_show},
             {"check", "check that a cluster file can be used, and note oddities",
              &cli_cluster_check},
             {"merge", "merge node, links and cluster files into one cluster file",
              &cli_cluster_merge},
             {"import", "convert other tools' output to a links or node file",
              &cli_cluster_import},
             {"layers", "make constants of a GPU type from measured layer times",
              &cli_cluster_layers},
             {"drain", "take nodes, GPUs or links out of use, or put them back",
              &cli_cluster_drain},
             {"synth", "generate a synthetic cluster", &cli_cluster_synth},
             {"export",
              "write the links for Slurm, Prometheus, NumPy, GraphViz, a picture",
              &cli_cluster_export}}};

static const struct menu program = {
    .name = "linkwise",
    .usage = "Usage: linkwise COMMAND [ARGUMENT...]\n"
             "  linkwise plan examples/clusters/h100-17.json llama-2-70b --seq 4096 "
             "--global-batch 1024\n\n"
             "How should a training job be split over these machines, and which rank "
             "should run on\nwhich GPU?\n\nCommands:\n",
    .more = "\n`linkwise COMMAND --help` lists the options.  Exit codes: 0 done, 1 "
            "failed or bad\ncontent, 2 bad options, 3 nothing fits.\n",
    .width = 10,
    .line = {
        {"plan", "find parallel degrees and a placement for a model on a cluster",
         &cli_plan},
        {"mem", "estimate the memory of a GPU, by stage and by kind", &cli_mem},
        {"time", "estimate the step time of one configuration", &cli_time},
        {"eval", "estimate the step time of a plan, also one edited by hand", &cli_eval},
        {"explain", "rank links, nodes, GPUs and settings by their gain", &cli_explain},
        {"check", "check a plan independently of the search", &cli_check},
        {"emit", "write a plan's files for mpirun, srun, torchrun and others", &cli_emit},
        {"cluster", "show, check, merge, import, drain, generate or export clusters",
         NULL},
        {"compare", "compare two clusters, or one cluster at two times", &cli_compare},
        {"report", "write a plan, a cluster or a comparison as one HTML page",
         &cli_report},
        {"topo", "describe this machine, or convert another tool's description",
         &cli_topo},
        {"bind", "place a plan on the nodes that a scheduler allocated", &cli_bind},
        {"validate", "compare estimates with the measurements of a runs file",
         &cli_validate},
        {"calibrate", "fit a framework profile to measured runs", &cli_calibrate},
        {"import-job", "compare a running job's files and log with the estimate",
         &cli_import_job},
        {"gpus", "list the built-in GPU types", &cli_gpus},
        {"models", "list the model presets", &cli_models}}};

static int print_help (const struct menu *m, FILE *out, int code)
{
    fputs (m->usage, out);
    for (int i = 0; m->line[i].name; i++)
        fprintf (out, "  %-*s %s\n", m->width, m->line[i].name, m->line[i].what);
    fputs (m->more, out);
    return code;
}

static void on_reading (void *context, const char *file, double share)
{
    struct progress *p = context;

    if (share <= 0.0)
        cli_progress_start (p);
    if (share < 1.0)
        progress_part (p, share, "reading %.80s: %.0f %%", file, 100 * share);
    else
        progress_end (p);
}

/* Parse, do it, say what went wrong: warnings, then the error.  argv[0] begins messages. */
static int run (const struct cli_command *c, int argc, char **argv)
{
    void *input = calloc (1, c->input_size);
    struct progress reading = {0};
    struct notes notes = {.reading = on_reading, .context = &reading};
    struct error err = {""};
    enum status st = input ? ST_OK : err_nomem (&err);

    if (st == ST_OK) {
        cli_parse (c, argc, argv, input);
        st = c->run (input, &notes, &err);
    }
    /* What was printed is not whole, or a table has no room. */
    if ((st == ST_OK && memory_take_lost ()) || (st == ST_NOMEM && !err.text[0]))
        st = err_nomem (&err);
    progress_end (&reading);
    cli_warn (argv[0], &notes);
    if (st != ST_OK && err.text[0])
        fprintf (stderr, "%s: %s\n", argv[0], err.text);
    free (input);
    return status_exit_code (st);
}

static char help_option[] = "--help";

static int choose (const struct menu *m, int argc, char **argv)
{
    if (argc < 2)
        return print_help (m, stderr, 2);
    if (argc > 2 && strcmp (argv[1], "help") == 0) { /* help plan: plan --help */
        memmove (argv + 1, argv + 2, (size_t) (argc - 2) * sizeof *argv);
        argv[argc - 1] = help_option;
    }
    if (text_has_word ("--help -? -h help", argv[1]))
        return print_help (m, stdout, 0);
    for (int i = 0; m->line[i].name; i++)
        if (strcmp (argv[1], m->line[i].name) == 0) {
            char name[64];

            snprintf (name, sizeof name, "%s %s", m->name, argv[1]);
            argv[1] = name;
            return m->line[i].command ? run (m->line[i].command, argc - 1, argv + 1)
                                      : choose (&cluster, argc - 1, argv + 1);
        }

    struct text_near near = {.asked = argv[1]};
    char hint[TEXT_HINT];

    for (int i = 0; m->line[i].name; i++)
        text_near_try (&near, m->line[i].name, strlen (m->line[i].name));
    text_near_try (&near, "--help", strlen ("--help"));
    if (m == &program)
        text_near_try (&near, "--version", strlen ("--version"));
    text_clean_line (argv[1]);
    fprintf (stderr, "%s: unknown command \"%s\"%s (`%s --help` lists them)\n", m->name,
             argv[1], text_near_hint (&near, "", hint), m->name);
    return 2;
}

/* An answer that did not reach its reader is no answer; --help ends inside argp. */
static int code;

static void flush_answer (void)
{
    if (fflush (stdout) == 0 && !ferror (stdout))
        return;
    fputs ("linkwise: standard output: write error\n", stderr);
    _exit (code ? code : 1);
}

int main (int argc, char **argv)
{
    atexit (flush_answer);
    if (argc > 1 && (strcmp (argv[1], "--version") == 0 || strcmp (argv[1], "-V") == 0)) {
        puts ("linkwise " LINKWISE_VERSION);
        return 0;
    }
    return code = choose (&program, argc, argv);
}
