/* linkwise cluster merge, import, drain, synth: cluster files made of others. */
#include "cli/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "topology/edit/edit.h"
#include "topology/machine/import.h"
#include "topology/measured/links_import.h"
#include "topology/topology.h"

struct edit_input {
    const char **arg; /* [n] */
    int n;
    const char *out, *gpu_type, *format, *name, *reason;
    bool back;
    struct topology_synth synth;
};

enum {
    OPT_TYPE = 512,
    OPT_FORMAT,
    OPT_NAME,
    OPT_BACK,
    OPT_REASON,
    OPT_NODES,
    OPT_GPUS,
    OPT_SEED,
    OPT_EPOCH,
    OPT_LEAF,
    OPT_POD,
    OPT_INTRA,
    OPT_INTER,
    OPT_PLANT,
    OPT_NPY
};

#define OUTPUT_OPTION                                                       \
    {                                                                       \
        "output", 'o', "FILE", 0, "where to write; - is standard output", 1 \
    }

static error_t parse_synth (int key, char *arg, struct argp_state *state,
                            struct topology_synth *s)
{
    const int most = 1 << 30;

    switch (key) {
    case OPT_TYPE:
        s->gpu_type = arg;
        return 0;
    case OPT_NODES:
        s->nodes = cli_int (arg, "--nodes", 1, 1048576, state);
        return 0;
    case OPT_GPUS:
        s->gpus = cli_int (arg, "--gpus", 1, 1024, state);
        return 0;
    case OPT_SEED:
        s->seed = (unsigned long) cli_int (arg, "--seed", 0, most, state);
        return 0;
    case OPT_EPOCH:
        s->epoch = (unsigned long) cli_int (arg, "--epoch", 0, most, state);
        return 0;
    case OPT_LEAF:
        s->leaf = cli_int (arg, "--leaf", 1, 1048576, state);
        return 0;
    case OPT_POD:
        s->pod = cli_int (arg, "--pod", 1, 1048576, state);
        return 0;
    case OPT_INTRA:
        s->intra_gb_per_s = cli_number (arg, "--intra", 0, 1e6, state);
        return 0;
    case OPT_INTER:
        s->inter_gb_per_s = cli_number (arg, "--inter", 0, 1e6, state);
        return 0;
    case OPT_PLANT:
        s->plant = cli_int (arg, "--plant", 1, 1048576, state);
        return 0;
    case OPT_NPY:
        s->npy = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct edit_input *in = state->input;

    switch (key) {
    case 'o':
        in->out = arg;
        return 0;
    case OPT_TYPE:
        in->gpu_type = in->synth.gpu_type = arg;
        return 0;
    case OPT_FORMAT:
        in->format = arg;
        return 0;
    case OPT_NAME:
        if (!topology_name_ok (arg))
            argp_error (state, "--name: expected a node's name, found \"%s\"", arg);
        in->name = arg;
        return 0;
    case OPT_BACK:
        in->back = true;
        return 0;
    case OPT_REASON:
        in->reason = arg;
        return 0;
    case ARGP_KEY_ARG:
        in->arg[in->n++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!in->out)
            argp_error (state, "-o FILE is required");
        return 0;
    default:
        return parse_synth (key, arg, state, &in->synth);
    }
}

/* Parse; the arguments are at least lo and at most hi. */
static struct edit_input read_arguments (const struct argp *argp, int argc, char **argv,
                                         int lo, int hi, const char *expected)
{
    struct edit_input in = {.arg = calloc ((size_t) argc + 1, sizeof *in.arg),
                            .format = "auto",
                            .synth = topology_synth_default ()};

    if (!in.arg) {
        fputs ("linkwise: out of memory\n", stderr);
        exit (1);
    }
    cli_parse (argp, argc, argv, &in);
    if (in.n < lo || in.n > hi) {
        fprintf (stderr, "%s: expected %s, found %d argument%s\n", argv[0], expected,
                 in.n, in.n == 1 ? "" : "s");
        exit (2);
    }
    return in;
}

static int end (const char *command, struct edit_input *in, enum status st,
                struct notes *notes, const struct error *err)
{
    free (in->arg);
    cli_warn (command, notes);
    return cli_end (command, st, err);
}

/* Write, and say so unless the document went to standard output. */
static enum status write_out (struct topology_document *d, const char *out,
                              struct error *err)
{
    json_t *nodes = json_object_get (d->doc, "nodes"), *node;
    enum status st = topology_document_write (d, out, err);
    long long gpus = 0;
    size_t i;

    json_array_foreach (nodes, i, node) gpus +=
        json_integer_value (json_object_get (node, "gpus"));
    if (st == ST_OK && strcmp (out, "-") != 0)
        printf ("%zu node%s, %lld GPU%s written to %s%s\n", json_array_size (nodes),
                json_array_size (nodes) == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s", out,
                d->n_sides > 0 ? " and .npy files beside it" : "");
    return st;
}

/* ---- merge ---- */

int cli_cluster_merge (int argc, char **argv)
{
    const struct argp_option options[] = {
        {"gpu-type", OPT_TYPE, "TYPE", 0, "of GPUs whose type no file names", 0},
        OUTPUT_OPTION,
        {0}};
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "FILE...",
        .doc =
            "Put node files, links files and cluster files together to one cluster "
            "file.\v"
            "Example: linkwise cluster merge n0.json n1.json links.json -o "
            "cluster.json\n\nOf two values for one thing the newer file's holds: by the "
            "times in the files where all have one, else the file named later.  "
            "Conflicts are named.  What no file gives is filled from data sheets, and "
            "marked as nominal."};
    struct edit_input in = read_arguments (&argp, argc, argv, 1, argc, "FILE...");
    struct topology_document d = {0};
    struct notes notes = {0};
    struct error err = {""};
    enum status st = topology_merge (in.arg, in.n, in.gpu_type, &d, &notes, &err);

    if (st == ST_OK)
        st = write_out (&d, in.out, &err);
    topology_document_release (&d);
    return end ("cluster merge", &in, st, &notes, &err);
}

/* ---- import ---- */

static bool is_machine_format (const char *format)
{
    for (int i = 0; topology_format_at (i); i++)
        if (strcmp (topology_format_at (i)->name, format) == 0)
            return true;
    return false;
}

/* A description of machines, or links; standard input with `auto` is taken for links. */
static enum status import (const struct edit_input *in, json_t **doc, struct notes *notes,
                           struct error *err)
{
    const char *file = in->arg[0];
    bool automatic = strcmp (in->format, "auto") == 0,
         machine = is_machine_format (in->format);
    char *data = NULL;
    size_t len = 0;
    enum status st = ST_OK;

    if (machine || (automatic && strcmp (file, "-") != 0)) {
        st = file_read (file, &data, &len, err);
        machine = machine || (st == ST_OK && topology_format_detect (data, len));
    }
    if (st == ST_OK && data) {
        const char *why = file_not_text (data, len);

        if (why)
            st = err_set (err, ST_INVALID, "%s: %s", file, why);
    }
    if (st == ST_OK)
        st = machine ? topology_import (file, data, len, in->format, doc, notes, err)
                     : topology_links_import (file, in->format, doc, notes, err);
    free (data);
    return st;
}

int cli_cluster_import (int argc, char **argv)
{
    const struct argp_option options[] = {
        {"format", OPT_FORMAT, "NAME", 0, "how to read that file (default auto)", 0},
        {"name", OPT_NAME, "NODE", 0,
         "the name of its node, for a file that does not tell its host's", 0},
        {"gpu-type", OPT_TYPE, "TYPE", 0, "of GPUs whose type the file leaves open", 0},
        OUTPUT_OPTION,
        {0}};
    struct text doc = {0};
    struct argp argp = {.options = options, .parser = parse, .args_doc = "FILE"};
    struct edit_input in;
    struct topology_document d = {0};
    struct notes notes = {0};
    struct error err = {""};
    enum status st;

    text_add (&doc,
              "Turn what other tools printed into a links file, or a description of "
              "machines into a node file, for `linkwise cluster merge`.\v"
              "Example: linkwise cluster import sendrecv.log -o links.json\n\n"
              "Formats of links:");
    for (int i = 0; topology_links_import_format_at (i); i++)
        text_add (&doc, " %s", topology_links_import_format_at (i));
    text_add (&doc, "\nFormats of machines:");
    for (int i = 0; topology_format_at (i); i++)
        text_add (&doc, " %s", topology_format_at (i)->name);
    argp.doc = text_str (&doc);
    in = read_arguments (&argp, argc, argv, 1, 1, "FILE");
    text_free (&doc);
    st = import (&in, &d.doc, &notes, &err);
    if (st == ST_OK && in.name)
        st = topology_rename_node (d.doc, in.name, &err);
    if (st == ST_OK && in.gpu_type)
        st = topology_name_type (d.doc, in.gpu_type, &err);
    if (st == ST_OK)
        st = write_out (&d, in.out, &err);
    topology_document_release (&d);
    return end ("cluster import", &in, st, &notes, &err);
}

/* ---- drain ---- */

int cli_cluster_drain (int argc, char **argv)
{
    const struct argp_option options[] = {
        {"undrain", OPT_BACK, NULL, 0, "put back into use", 0},
        {"reason", OPT_REASON, "TEXT", 0, "kept beside a node's state", 0},
        OUTPUT_OPTION,
        {0}};
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "CLUSTER WHAT...",
        .doc = "Take nodes, GPUs or links out of use, or put them back.\v"
               "Example: linkwise cluster drain cluster.json n3 n5:2 'n0<->n1' -o "
               "cluster.json\n\nWHAT is a host list (n[1-3,7]), a GPU (NODE:GPU), or a "
               "link: FROM->TO one way, A<->B or A--B both ways, between nodes or GPUs.  "
               "What is known about drained things stays in the file."};
    struct edit_input in =
        read_arguments (&argp, argc, argv, 2, argc, "CLUSTER and WHAT...");
    struct topology_document d = {0};
    struct notes notes = {0};
    struct error err = {""};
    enum status st = topology_document_read (in.arg[0], in.out, &d, &notes, &err);

    for (int k = 1; k < in.n && st == ST_OK; k++)
        st = topology_drain (d.doc, in.arg[k], in.back, in.reason, &err);
    if (st == ST_OK)
        st = write_out (&d, in.out, &err);
    topology_document_release (&d);
    return end ("cluster drain", &in, st, &notes, &err);
}

/* ---- synth ---- */

static bool on_progress (void *context, double share)
{
    progress_show (context, "drawing: %.0f %%", 100 * share);
    return false;
}

int cli_cluster_synth (int argc, char **argv)
{
    const struct argp_option options[] = {
        {"nodes", OPT_NODES, "N", 0, "default 16", 0},
        {"gpus", OPT_GPUS, "N", 0, "of a node (default 8)", 0},
        {"gpu-type", OPT_TYPE, "TYPE", 0, "default h100-sxm5-80g", 0},
        {"seed", OPT_SEED, "N", 0, "the same seed draws the same cluster (default 1)", 0},
        {"epoch", OPT_EPOCH, "N", 0, "the same cluster measured another time (default 0)",
         0},
        {"leaf", OPT_LEAF, "N", 0, "nodes under a leaf switch (default 16)", 0},
        {"pod", OPT_POD, "N", 0, "leaf switches in a pod (default 8)", 0},
        {"intra", OPT_INTRA, "GB/s", 0, "inside nodes (default: the type's)", 0},
        {"inter", OPT_INTER, "GB/s", 0,
         "between nodes, of one GPU pair (default 48 since Hopper, 24 before)", 0},
        {"plant", OPT_PLANT, "STAGES", 0,
         "hide a placement of so many pipeline stages that no other can beat", 0},
        {"npy", OPT_NPY, NULL, 0, "the matrix beside the file, whatever its size", 0},
        OUTPUT_OPTION,
        {0}};
    struct text doc = {0};
    struct argp argp = {.options = options, .parser = parse, .args_doc = "PRESET"};
    struct topology_document d = {0};
    struct edit_input in;
    struct progress progress;
    struct notes notes = {0};
    struct error err = {""};
    enum status st;

    text_add (&doc, "Draw a cluster for trials.\v"
                    "Example: linkwise cluster synth busy --nodes 64 --seed 7 -o "
                    "busy-64.json\n\nPresets:\n");
    for (int i = 0; topology_preset_at (i); i++)
        text_add (&doc, "  %-8s %s\n", topology_preset_at (i)->name,
                  topology_preset_at (i)->what);
    argp.doc = text_str (&doc);
    in = read_arguments (&argp, argc, argv, 1, 1, "PRESET");
    text_free (&doc);
    in.synth.preset = in.arg[0];
    progress_start (&progress);
    in.synth.progress = on_progress;
    in.synth.context = &progress;
    st = topology_synthesize (&in.synth, &d, &err);
    progress_end (&progress);
    if (st == ST_OK)
        st = write_out (&d, in.out, &err);
    topology_document_release (&d);
    return end ("cluster synth", &in, st, &notes, &err);
}
