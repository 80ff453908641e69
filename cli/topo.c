/* linkwise topo: what a machine, or a network of them, is made of. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "topology/edit/edit.h"
#include "topology/machine/import.h"

struct topo_input {
    const char *from, *format, *name, *gpu_type, *out;
};

#define INPUT struct topo_input

static const struct cli_option options[] = {
    {"from", 0, "FILE", "read this file instead of this machine", CLI_TEXT (from)},
    {"format", 0, "NAME", "format of the --from file (default auto)", CLI_TEXT (format),
     .usual = "auto"},
    {"name", 0, "NODE",
     "name of the node (default: the host's name, or the name in the file)",
     CLI_TEXT (name)},
    {"gpu-type", 0, "TYPE", "type of the GPUs, for nodes without one",
     CLI_TEXT (gpu_type)},
    {"output", 'o', "FILE", "write the node file (default: standard output)",
     CLI_TEXT (out), .usual = "-"},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct topo_input *in = input;

    if (strcmp (in->format, "auto") != 0 && !in->from)
        usage_error (state, "--format goes with --from");
    if (in->name && !topology_name_ok (in->name))
        usage_error (state, "--name: expected a node's name, found \"%s\"", in->name);
}

static enum status describe (const struct topo_input *in, json_t **doc,
                             struct notes *notes, struct error *err)
{
    char *data = NULL;
    size_t len = 0;
    enum status st;

    if (!in->from)
        return topology_capture (doc, notes, err);
    st = file_read (in->from, &data, &len, err);
    THEN (st, topology_import (cli_input_name (in->from), data, len, in->format, doc,
                               notes, err));
    free (data);
    return st;
}

#define NODES_SHOWN 40

static void print_nodes (const json_t *doc)
{
    struct table *t = TABLE_OF ("<node", "packages", "NUMA", "GPUs", "<type", "NICs",
                                "<GPU: NUMA node, NIC");
    const json_t *nodes = json_object_get (doc, "nodes"), *n;
    size_t i;

    json_array_foreach (nodes, i, n)
    {
        if (i == NODES_SHOWN)
            break;

        const char *type = json_member_text (n, "gpu_type");
        const json_t *numa = json_object_get (n, "gpu_numa"),
                     *nic = json_object_get (n, "gpu_nic");
        struct text near = {0};

        for (size_t k = 0; k < json_array_size (numa); k++) {
            const char *name = json_string_value (json_array_get (nic, k));

            text_add (&near, "%s%zu: %lld%s%s", k ? "; " : "", k,
                      (long long) json_integer_value (json_array_get (numa, k)),
                      name ? ", " : "", name ? name : "");
        }
        table_cell (t, "%s", json_member_text (n, "name"));
        table_cell (t, "%lld", (long long) json_member_int (n, "packages"));
        table_cell (t, "%zu", json_array_size (json_object_get (n, "numa")));
        table_cell (t, "%lld", (long long) json_member_int (n, "gpus"));
        table_cell (t, "%s", type ? type : "-");
        table_cell (t, "%zu", json_array_size (json_object_get (n, "nics")));
        table_cell (t, "%s", text_str (&near));
        text_free (&near);
    }
    table_end (t, stdout);
    if (json_array_size (nodes) > NODES_SHOWN)
        cli_print ("and %zu more nodes\n", json_array_size (nodes) - NODES_SHOWN);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct topo_input *in = input;
    json_t *doc = NULL;
    enum status st = describe (in, &doc, notes, err);

    if (st == ST_OK && in->name)
        st = topology_rename_node (doc, in->name, err);
    if (st == ST_OK && in->gpu_type)
        st = topology_name_type (doc, in->gpu_type, notes, err);
    THEN (st, json_write (in->out, doc, err));
    if (st == ST_OK && !cli_is_dash (in->out)) {
        print_nodes (doc);
        cli_print (
            "written to %s; `linkwise cluster merge` joins it with other nodes and "
            "measured links\n",
            in->out);
    }
    json_decref (doc);
    return st;
}

static void add_help (struct text *out)
{
    text_add (out,
              "\nA node file is a cluster file that may lack unknown values.  `linkwise "
              "cluster merge` joins node files and measured links.");
}

const struct cli_command cli_topo = {
    .arguments = "",
    .help = "Describe this machine as a node file: packages, NUMA nodes, GPUs, NICs, "
            "NVLinks, and the nearest NIC and cores of each GPU.\v"
            "Example: linkwise topo -o $(hostname -s).json\n\n"
            "Formats that --from reads:\n",
    .choice = topology_format_at,
    .choice_width = 15,
    .add_help = add_help,
    .options = {.line = options, .check = check},
    .places = {.expected = " (--from FILE reads a file)"},
    CLI_RUN (run)};
