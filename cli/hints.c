/* What to type instead, where an argument is something else than its place takes. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum thing { NOTHING, FOLDER, CLUSTER, MODEL, PLAN, OTHER_FILE };

/* What the argument is, by a key that no other kind of file has. */
static enum thing thing_at (const char *arg)
{
    static const struct {
        const char *key;
        enum thing is;
    } marks[] = {{"model_type", MODEL}, {"nodes", CLUSTER}, {"ranks", PLAN}};
    enum thing is = OTHER_FILE;
    struct stat st;
    json_t *doc = NULL;
    struct error why;

    if (cli_is_dash (arg))
        return NOTHING;
    if (stat (arg, &st) != 0)
        return workload_preset_find (arg) ? MODEL : strchr (arg, ' ') ? CLUSTER : NOTHING;
    if (S_ISDIR (st.st_mode))
        return FOLDER;
    if (!S_ISREG (st.st_mode))
        return NOTHING;
    if (json_read_config (arg, &doc, &why) == ST_OK)
        for (size_t i = 0; i < sizeof marks / sizeof *marks && is == OTHER_FILE; i++)
            if (json_object_get (doc, marks[i].key))
                is = marks[i].is;
    json_decref (doc);
    return is;
}

#define PLAN_USE \
    ": `linkwise plan --from PLAN` replans it, `linkwise eval PLAN` prices it"
#define CLUSTER_IS                                                                    \
    "CLUSTER is a JSON file, as `linkwise cluster merge` writes it, or one line, as " \
    "\"4x8 h100\""
#define PLAN_MAKE "PLAN is a file that `linkwise plan CLUSTER MODEL -o PLAN` writes, "

static const struct {
    enum cli_place place;
    enum thing is;
    const char *hint;
} hints[] = {
    {CLI_CLUSTER, MODEL, "CLUSTER comes first, then MODEL, and this is a model"},
    {CLI_CLUSTER, PLAN, "CLUSTER is expected, and this is a plan" PLAN_USE},
    {CLI_CLUSTER, FOLDER, CLUSTER_IS},
    {CLI_CLUSTER, OTHER_FILE, CLUSTER_IS},
    {CLI_MODEL, CLUSTER, "CLUSTER comes first, then MODEL, and this is a cluster"},
    {CLI_MODEL, PLAN, "MODEL is expected, and this is a plan" PLAN_USE},
    {CLI_MODEL, FOLDER,
     "MODEL is a Hugging Face config.json, its folder, or a preset (`linkwise models` "
     "lists them)"},
    {CLI_MODEL, OTHER_FILE,
     "MODEL is a Hugging Face config.json; a gated model's comes with `hf auth login` "
     "and `hf download`, once its page grants access"},
    {CLI_PLAN, CLUSTER, PLAN_MAKE "and this is a cluster"},
    {CLI_PLAN, MODEL, PLAN_MAKE "and this is a model"},
    {CLI_PLAN, FOLDER, PLAN_MAKE "and this is a folder"},
};

static void add_hint (struct error *err, const char *hint, const char *word)
{
    struct error first = *err;

    err_set (err, ST_INVALID, "%s; %s%s", first.text, hint, word);
}

/* What a cluster on one line means without a blank before the GPU type, or with a number of GPUs
 * alone: "4x8h100", "8xH100", "8 h100". */
static bool line_meant (const char *arg, struct text *out)
{
    int nodes, gpus, used = 0;
    struct text type = {0};
    const char *fields;

    if (sscanf (arg, "%6d x %4d%n", &nodes, &gpus, &used) != 2 || !arg[used]) {
        nodes = 1;
        if (sscanf (arg, "%4d%*1[x ]%n", &gpus, &used) != 1 || used == 0)
            return false;
    }
    arg += used + (int) strspn (arg + used, "x- ");
    fields = strchr (arg, ':');
    while (fields && fields > arg && fields[-1] != ' ')
        fields--;
    text_add_mem (&type, arg, fields ? (size_t) (fields - arg) : strlen (arg));
    if (nodes == 1 &&
        (strstr (arg, "p4d") || strstr (arg, "48xlarge") || strcasestr (arg, "dgx "))) {
        nodes = gpus; /* machines of eight GPUs */
        gpus = 8;
    }
    if (nodes > 0 && nodes <= TOPOLOGY_LINE_NODES_MAX && gpus > 0 &&
        gpus <= TOPOLOGY_NODE_GPUS_MAX && topology_gpu_type_meant (text_str (&type)))
        text_add (out, "\"%dx%d %s\"", nodes, gpus, arg);
    text_free (&type);
    return out->len > 0;
}

/* A cluster on one line that is none, or the name of a file. */
static void hint_line (const char *arg, struct error *err)
{
    bool line = strchr (arg, ' ') != NULL;
    struct text meant = {0};

    if (line_meant (arg, &meant)) { /* which may be what it says already */
        if (strncmp (text_str (&meant) + 1, arg, strlen (arg)) != 0)
            add_hint (err, "a cluster on one line is NODESxGPUS TYPE, here ",
                      text_str (&meant));
    } else if (strpbrk (arg, "./") && !line)
        add_hint (err, CLUSTER_IS, "");
    else if (line ? !strchr (arg, 'x') || strstr (arg, " x ") : !cli_is_dash (arg))
        add_hint (err, "a cluster on one line is NODESxGPUS TYPE, as in ",
                  "\"4x8 h100\"");
    text_free (&meant);
}

/* A preset that is none. */
static void hint_preset (const char *arg, struct error *err)
{
    const struct workload_model *meant = workload_preset_meant (file_name (arg));

    if (strchr (arg, '/') && meant)
        add_hint (err, "did you mean the preset ", meant->name);
    else if (strstr (arg, ".json"))
        add_hint (err, "without a file, name a preset (`linkwise models` lists them)",
                  "");
}

enum status cli_hint (enum cli_place place, const char *arg, enum status st,
                      struct error *err)
{
    enum thing is = st == ST_OK ? NOTHING : thing_at (arg);
    struct stat sb;

    if (st == ST_OK)
        return st;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].place == place && hints[i].is == is) {
            add_hint (err, hints[i].hint, "");
            return st;
        }
    if (stat (arg, &sb) != 0 && place == CLI_CLUSTER)
        hint_line (arg, err);
    else if (stat (arg, &sb) != 0 && place == CLI_MODEL)
        hint_preset (arg, err);
    return st;
}

enum status cli_cluster_read (const char *arg, struct linkwise_cluster **out,
                              struct notes *notes, struct error *err)
{
    return cli_hint (CLI_CLUSTER, arg, api_cluster_read (arg, out, notes, err), err);
}

enum status cli_plan_read (const char *arg, const char *cluster, struct linkwise_plan *x,
                           struct notes *notes, struct error *err)
{
    return cli_hint (CLI_PLAN, arg, api_plan_read (arg, cluster, x, notes, err), err);
}
