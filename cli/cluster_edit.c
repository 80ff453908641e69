/* linkwise cluster merge, import, drain, synth: cluster files made of others. */
#include "cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "topology/edit/edit.h"
#include "topology/links_doc.h"
#include "topology/machine/import.h"
#include "topology/measured/links_import.h"

struct edit_input {
    struct cli_list list; /* arguments */
    const char *out, *gpu_type, *format, *name, *reason;
    double half_life_days, when_s;
    bool back, busy;
    int seed, epoch;
    struct topology_synth synth;
};

#define INPUT struct edit_input
#define DAY_S 86400.0

/* How many arguments there are, as is said when all else was well. */
#define EDITING(least, most, what)                                                       \
    .places = {least, most, NULL, "-o FILE is required"}, .list = true, .counted = what, \
    .at = {CLI_LIST (list)}

/* "2 nodes, 16 GPUs", or what a document of counters alone has. */
static void tell_contents (const json_t *doc)
{
    const json_t *nodes = json_object_get (doc, "nodes"), *node,
                 *counters =
                     json_object_get (json_object_get (doc, "measured"), "counters");
    size_t n = json_array_size (nodes), places = json_array_size (counters), i;
    long long gpus = 0;

    json_array_foreach ((json_t *) nodes, i, node) gpus +=
        json_integer_value (json_object_get (node, "gpus"));
    if (n == 0 && places > 0)
        cli_print ("counters of %zu port%s or GPU%s", places, TEXT_S (places),
                   TEXT_S (places));
    else
        cli_print ("%zu node%s, %lld GPU%s", n, TEXT_S (n), gpus, TEXT_S (gpus));
}

/* Write what came out well, and say so unless it went to standard output. */
static enum status end (const struct edit_input *in, enum status st,
                        struct topology_document *d, struct error *err)
{
    THEN (st, topology_document_write (d, in->out, err));
    if (st == ST_OK && !cli_is_dash (in->out)) {
        tell_contents (d->doc);
        cli_print (" written to %s%s\n", in->out,
                   d->n_sides > 0 ? " and .npy files beside it" : "");
    }
    topology_document_release (d);
    return st;
}

/* ---- merge ---- */

static const struct cli_option merge_options[] = {
    {"gpu-type", 0, "TYPE", "type of the GPUs, for nodes without one in any file",
     CLI_TEXT (gpu_type)},
    {"half-life", 0, "DAYS",
     "measurements of one link count half as much after it (default 7); 0: the newest "
     "alone holds",
     CLI_FROM_0 (half_life_days, 36500), .usual = "7"},
    {CLI_OUTPUT, .group = 1}, /* the last in --help */
    {0}};

static enum status merge (void *input, struct notes *notes, struct error *err)
{
    const struct edit_input *in = input;
    struct topology_document d = {0};
    enum status st = topology_merge (in->list.arg, in->list.n, in->gpu_type,
                                     in->half_life_days * DAY_S, &d, notes, err);
    return end (in, st, &d, err);
}

const struct cli_command cli_cluster_merge = {
    .arguments = "FILE...",
    .help =
        "Merge node files, links files and cluster files into one cluster file.\v"
        "Example: linkwise cluster merge n0.json n1.json links.json -o cluster.json\n\n"
        "Where files disagree, the newer one wins: by the times in the files if all have "
        "one, else by their order here.  Disagreements are listed.  Missing values come "
        "from data sheets and are marked as nominal.",
    .options = {.line = merge_options},
    EDITING (1, INT_MAX, "FILE..."),
    CLI_RUN (merge)};

/* ---- import ---- */

/* A description of machines, or links; standard input with `auto` is taken for links. */
static enum status read_other (const struct edit_input *in, json_t **doc,
                               struct notes *notes, struct error *err)
{
    const char *file = in->list.arg[0];
    bool automatic = strcmp (in->format, "auto") == 0, machine = false;
    char *data = NULL;
    size_t len = 0;
    enum status st = ST_OK;

    for (int i = 0; topology_format_at (i); i++)
        machine |= strcmp (topology_format_at (i)->name, in->format) == 0;
    if (machine || (automatic && !cli_is_dash (file))) {
        st = file_read (file, &data, &len, err);
        machine = machine || (st == ST_OK && topology_format_detect (data, len));
    }
    THEN (st, machine ? topology_import (file, data, len, in->format, doc, notes, err)
                      : topology_links_import (file, in->format, doc, notes, err));
    free (data);
    return st;
}

static void take_name (const struct cli_option *o, const char *given, void *value,
                       struct argp_state *state)
{
    (void) o;
    if (!topology_name_ok (given))
        usage_error (state, "--name: expected a node's name, found \"%s\"", given);
    *(const char **) value = given;
}

static void take_when (const struct cli_option *o, const char *given, void *value,
                       struct argp_state *state)
{
    json_t *text = json_string (given);
    double seconds = topology_links_seconds (text);

    (void) o;
    json_decref (text);
    if (!(seconds > 0))
        usage_error (
            state, "--when: expected a time in UTC as 2025-01-31T12:00:00Z, found \"%s\"",
            given);
    *(double *) value = seconds;
}

static const struct cli_option import_options[] = {
    {"format", 0, "NAME", "format of FILE (default auto)", CLI_TEXT (format),
     .usual = "auto"},
    {"name", 0, "NODE", "name of the node, for a file without its host's name",
     CLI_TAKEN (take_name, const char *, name)},
    {"gpu-type", 0, "TYPE", "type of the GPUs, for nodes without one",
     CLI_TEXT (gpu_type)},
    {"when", 0, "TIME",
     "when it was measured, in UTC, as 2025-01-31T12:00:00Z (default: what FILE says, or "
     "now)",
     CLI_TAKEN (take_when, double, when_s)},
    {"under-load", 0, NULL,
     "it was measured beside other traffic: links reach at least this", CLI_FLAG (busy)},
    {CLI_OUTPUT, .group = 1}, /* the last in --help */
    {0}};

static enum status import (void *input, struct notes *notes, struct error *err)
{
    const struct edit_input *in = input;
    struct topology_document d = {0};
    enum status st = read_other (in, &d.doc, notes, err);
    if (st == ST_OK && in->name)
        st = topology_rename_node (d.doc, in->name, err);
    else if (st == ST_OK)
        st = topology_counters_named (d.doc, file_title (in->list.arg[0]), err);
    if (st == ST_OK)
        topology_set_measured (d.doc, in->when_s, in->busy);
    if (st == ST_OK && in->gpu_type)
        st = topology_name_type (d.doc, in->gpu_type, notes, err);
    return end (in, st, &d, err);
}

static void list_formats (struct text *out)
{
    text_add (out, "Formats of links:");
    for (int i = 0; topology_links_import_format_at (i); i++)
        text_add (out, " %s", topology_links_import_format_at (i));
    text_add (out, "\nFormats of machines:");
    for (int i = 0; topology_format_at (i); i++)
        text_add (out, " %s", topology_format_at (i)->name);
}

const struct cli_command cli_cluster_import = {
    .arguments = "FILE",
    .help = "Convert other tools' measurements to a links file, or a machine description "
            "to a node file, for `linkwise cluster merge`.\v"
            "Example: linkwise cluster import sendrecv.log -o links.json\n\n",
    .add_help = list_formats,
    .options = {.line = import_options},
    EDITING (1, 1, "FILE"),
    CLI_RUN (import)};

/* ---- drain ---- */

static const struct cli_option drain_options[] = {
    {"undrain", 0, NULL, "put them back into use", CLI_FLAG (back)},
    {"reason", 0, "TEXT", "a note to keep with the state of the nodes",
     CLI_TEXT (reason)},
    {CLI_OUTPUT, .group = 1}, /* the last in --help */
    {0}};

static enum status drain (void *input, struct notes *notes, struct error *err)
{
    const struct edit_input *in = input;
    struct topology_document d = {0};
    enum status st = topology_document_read (in->list.arg[0], in->out, &d, notes, err);

    for (int k = 1; k < in->list.n && st == ST_OK; k++)
        st = topology_drain (d.doc, in->list.arg[k], in->back, in->reason, err);
    return end (in, st, &d, err);
}

const struct cli_command cli_cluster_drain = {
    .arguments = "CLUSTER WHAT...",
    .help = "Take nodes, GPUs or links out of use, or put them back.\v"
            "Example: linkwise cluster drain cluster.json n3 n5:2 'n0<->n1' -o "
            "cluster.json\n\n"
            "WHAT is a host list (n[1-3,7]), a GPU (NODE:GPU), or a link: FROM->TO one "
            "way, A<->B or A--B both ways, between nodes or GPUs.  The file keeps all "
            "data about drained parts.",
    .options = {.line = drain_options},
    EDITING (2, INT_MAX, "CLUSTER and WHAT..."),
    CLI_RUN (drain)};

/* ---- synth ---- */

static const struct cli_option synth_options[] = {
    {"nodes", 0, "N", "number of nodes (default 16)", CLI_INT (synth.nodes, 1, 1048576)},
    {"gpus", 0, "N", "GPUs per node (default 8)", CLI_INT (synth.gpus, 1, 1024)},
    {"gpu-type", 0, "TYPE", "GPU type (default h100-sxm5-80g)",
     CLI_TEXT (synth.gpu_type)},
    {"seed", 0, "N", "the same seed gives the same cluster (default 1)",
     CLI_INT (seed, 0, 1 << 30), .usual = "1"},
    {"epoch", 0, "N", "draw the N-th measurement of the same cluster (default 0)",
     CLI_INT (epoch, 0, 1 << 30)},
    {"leaf", 0, "N", "nodes per leaf switch (default 16)",
     CLI_INT (synth.leaf, 1, 1048576)},
    {"pod", 0, "N", "leaf switches per pod (default 8)", CLI_INT (synth.pod, 1, 1048576)},
    {"intra", 0, "GB/s", "bandwidth inside nodes (default: the GPU type's)",
     CLI_ABOVE (synth.intra_gb_per_s, 0, 1e6)},
    {"inter", 0, "GB/s",
     "bandwidth of one GPU pair between nodes (default 48 since Hopper, 24 before)",
     CLI_ABOVE (synth.inter_gb_per_s, 0, 1e6)},
    {"plant", 0, "STAGES",
     "hide a best possible placement with this many pipeline stages",
     CLI_INT (synth.plant, 1, 1048576)},
    {"npy", 0, NULL, "write the matrix to a .npy file at any size", CLI_FLAG (synth.npy)},
    {CLI_OUTPUT, .group = 1}, /* the last in --help */
    {0}};

static void init_synth (void *input)
{
    ((struct edit_input *) input)->synth = topology_synth_default ();
}

static bool on_progress (void *context, double share)
{
    progress_part (context, share, "generating: %.0f %%", 100 * share);
    return false;
}

static enum status synth (void *input, struct notes *notes, struct error *err)
{
    struct edit_input *in = input;
    struct topology_document d = {0};
    struct progress progress;
    enum status st;

    cli_progress_start (&progress);
    in->synth.preset = in->list.arg[0];
    in->synth.seed = (unsigned long) in->seed;
    in->synth.epoch = (unsigned long) in->epoch;
    in->synth.progress = on_progress;
    in->synth.context = &progress;
    st = topology_synthesize (&in->synth, &d, notes, err);
    progress_end (&progress);
    return end (in, st, &d, err);
}

const struct cli_command cli_cluster_synth = {
    .arguments = "PRESET",
    .help = "Generate a synthetic cluster.\v"
            "Example: linkwise cluster synth busy --nodes 64 --seed 7 -o busy-64.json\n\n"
            "Presets:\n",
    .choice = topology_preset_at,
    .choice_width = 8,
    .options = {.line = synth_options, .init = init_synth},
    .places = {1, 1, NULL,
               "PRESET (calm, busy, failing or mixed) and -o FILE are required, as in: "
               "linkwise cluster synth busy -o busy.json"},
    .list = true,
    .at = {CLI_LIST (list)},
    CLI_RUN (synth)};
