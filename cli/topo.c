/* linkwise topo: what a machine, or a network of them, is made of. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/machine/import.h"

struct topo_input {
    const char *from, *format, *name, *gpu_type, *out;
};

enum { OPT_FROM = 512, OPT_FORMAT, OPT_NAME, OPT_TYPE };

static const struct argp_option options[] = {
    {"from", OPT_FROM, "FILE", 0, "a description from elsewhere instead of this machine",
     0},
    {"format", OPT_FORMAT, "NAME", 0, "how to read that file (default auto)", 0},
    {"name", OPT_NAME, "NODE", 0,
     "the node's name (default: the host's, or what the file says)", 0},
    {"gpu-type", OPT_TYPE, "TYPE", 0, "of GPUs whose type the description leaves open",
     0},
    {"output", 'o', "FILE", 0, "where to write the node file (default standard output)",
     0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct topo_input *in = state->input;

    switch (key) {
    case OPT_FROM:
        in->from = arg;
        return 0;
    case OPT_FORMAT:
        in->format = arg;
        return 0;
    case OPT_NAME:
        in->name = arg;
        return 0;
    case OPT_TYPE:
        in->gpu_type = arg;
        return 0;
    case 'o':
        in->out = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error (state,
                    "no argument expected, found \"%s\" (--from FILE reads a file)", arg);
        return EINVAL;
    case ARGP_KEY_END:
        if (strcmp (in->format, "auto") != 0 && !in->from)
            argp_error (state, "--format goes with --from");
        if (in->name && !topology_name_ok (in->name))
            argp_error (state, "--name: expected a node's name, found \"%s\"", in->name);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static enum status describe (const struct topo_input *in, json_t **doc,
                             struct notes *notes, struct error *err)
{
    char *data;
    size_t len;
    enum status st;

    if (!in->from)
        return topology_capture (doc, notes, err);
    st = file_read (in->from, &data, &len, err);
    if (st == ST_OK) {
        st = topology_import (strcmp (in->from, "-") == 0 ? "standard input" : in->from,
                              data, len, in->format, doc, notes, err);
        free (data);
    }
    return st;
}

#define NODES_SHOWN 40

static void print_nodes (const json_t *doc)
{
    static const char *const header[] = {
        "<node", "packages", "NUMA", "GPUs", "<type", "NICs", "<GPU: NUMA node, NIC",
        NULL};
    struct table *t = table_create (header);
    const json_t *nodes = json_object_get (doc, "nodes"), *n;
    size_t i;

    json_array_foreach (nodes, i, n)
    {
        if (i == NODES_SHOWN)
            break;

        const char *type = json_string_value (json_object_get (n, "gpu_type"));
        const json_t *numa = json_object_get (n, "gpu_numa"),
                     *nic = json_object_get (n, "gpu_nic");
        struct text near = {0};

        for (size_t k = 0; k < json_array_size (numa); k++) {
            const char *name = json_string_value (json_array_get (nic, k));

            text_add (&near, "%s%zu: %lld%s%s", k ? "; " : "", k,
                      (long long) json_integer_value (json_array_get (numa, k)),
                      name ? ", " : "", name ? name : "");
        }
        table_cell (t, "%s", json_string_value (json_object_get (n, "name")));
        table_cell (t, "%lld",
                    (long long) json_integer_value (json_object_get (n, "packages")));
        table_cell (t, "%zu", json_array_size (json_object_get (n, "numa")));
        table_cell (t, "%lld",
                    (long long) json_integer_value (json_object_get (n, "gpus")));
        table_cell (t, "%s", type ? type : "-");
        table_cell (t, "%zu", json_array_size (json_object_get (n, "nics")));
        table_cell (t, "%s", text_str (&near));
        text_free (&near);
    }
    table_print (t, stdout);
    table_destroy (t);
    if (json_array_size (nodes) > NODES_SHOWN)
        printf ("and %zu more nodes\n", json_array_size (nodes) - NODES_SHOWN);
}

static enum status run (const struct topo_input *in, struct notes *notes,
                        struct error *err)
{
    json_t *doc = NULL;
    enum status st = describe (in, &doc, notes, err);

    if (st == ST_OK && in->name)
        st = topology_rename_node (doc, in->name, err);
    if (st == ST_OK && in->gpu_type)
        st = topology_name_type (doc, in->gpu_type, err);
    if (st == ST_OK)
        st = json_write (in->out, doc, err);
    if (st == ST_OK && strcmp (in->out, "-") != 0) {
        print_nodes (doc);
        printf ("written to %s; `linkwise cluster merge` joins it with others and with "
                "measured links\n",
                in->out);
    }
    json_decref (doc);
    return st;
}

int cli_topo (int argc, char **argv)
{
    struct text doc = {0};
    struct argp argp = {.options = options, .parser = parse, .args_doc = ""};
    struct topo_input in = {.format = "auto", .out = "-"};
    struct notes notes = {0};
    struct error err = {""};

    text_add (
        &doc,
        "Describe this machine as a node file: packages, NUMA nodes, GPUs, NICs, which "
        "NIC and which cores are near which GPU, NVLinks.\v"
        "Example: linkwise topo -o $(hostname -s).json\n\n"
        "With --from, from a file instead.  Formats:\n");
    for (int i = 0; topology_format_at (i); i++)
        text_add (&doc, "  %-14s  %s\n", topology_format_at (i)->name,
                  topology_format_at (i)->what);
    text_add (&doc,
              "\nA node file is a cluster file in which what is not known is left open; "
              "`linkwise cluster merge` puts such files and measured links together.");
    argp.doc = text_str (&doc);
    cli_parse (&argp, argc, argv, &in);
    text_free (&doc);

    enum status st = run (&in, &notes, &err);

    cli_warn ("topo", &notes);
    return cli_end ("topo", st, &err);
}
