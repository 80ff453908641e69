/* linkwise cluster export: a cluster for other tools' eyes. */
#include "cli/cli.h"

#include "topology/export/export.h"

struct export_input {
    const char *cluster, *to, *node, *out;
};

#define INPUT struct export_input

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct export_input *in = input;
    struct topology_cluster *c = NULL;
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    enum status st = topology_cluster_read_partial (in->cluster, &c, notes, err);

    cli_hint (CLI_CLUSTER, in->cluster, st, err);
    if (st == ST_OK)
        st = topology_export (c, in->to, in->node, in->out, &watch, err);
    progress_end (&progress);
    if (st == ST_OK && !cli_is_dash (in->out))
        cli_print ("%s written to %s\n", in->to, in->out);
    topology_cluster_destroy (c);
    return st;
}

static void list_formats (struct text *out)
{
    for (int i = 0; topology_export_name (i); i++)
        text_add (out, "  %-14s %s\n", topology_export_name (i),
                  topology_export_what (i));
}

static const struct cli_option options[] = {
    {"to", 't', "NAME", "what to write", CLI_TEXT (to), .needed = true},
    {"node", 0, "NODE", "draw this node alone (graphviz)", CLI_TEXT (node)},
    {CLI_OUTPUT, .group = 1},
    {0}};

const struct cli_command cli_cluster_export = {
    .arguments = "CLUSTER",
    .help = "Write a cluster's links for other tools.\v"
            "Example: linkwise cluster export --to svg examples/clusters/h100-17.json -o "
            "h100-17.svg\n\n"
            "Formats:\n",
    .add_help = list_formats,
    .options = {.line = options},
    .places = {1, 1, "CLUSTER", "CLUSTER, --to FORMAT and -o FILE are required"},
    .at = {CLI_PLACE (cluster)},
    CLI_RUN (run)};
