/* The output of `scontrol show node`, over several lines or one (-o): nodes, their GPUs
 * (Gres), sockets and state.  Values may hold blanks (OS=, Reason=), so a new key begins
 * only at a word with '=' whose left side is a plain name. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "topology/machine/machine.h"
#include "topology/topology.h"

struct reading {
    const struct import *in;
    json_t *nodes, *seen;
    json_t *node; /* the one being read, borrowed, or NULL */
};

/* ---- values ---- */

/* A type of the cluster's own naming may be any memory's; what Slurm asked of the driver
 * (AutoDetect=nvml) is "nvidia_h100_80gb_hbm3". */
static const char *type_named (const char *model)
{
    const struct topology_gpu_type *type = topology_gpu_type_builtin (model);

    return type ? type->name
           : strncmp (model, "nvidia_", 7) == 0 || strncmp (model, "tesla_", 6) == 0
               ? topology_gpu_type_of_product (model, 0)
               : NULL;
}

/* Gres=gpu:a100:8(S:0-1),gpu:t4:1,nic:2 -> GPUs and the type's word. */
static enum status read_gres (struct reading *r, const char *gres)
{
    const char *node = json_member_text (r->node, "name");
    long total = 0;
    int kinds = 0;
    char model[64] = "";

    for (const char *p = gres; *p;) {
        size_t n = 0;
        char one[128], *count;
        int depth = 0;

        /* Commas inside parentheses belong to the entry: gpu:8(IDX:0,2). */
        for (; p[n] && (p[n] != ',' || depth > 0); n++)
            depth += p[n] == '(' ? 1 : p[n] == ')' ? -1 : 0;
        snprintf (one, sizeof one, "%.*s", (int) strcspn (p, ",("), p);
        p += p[n] ? n + 1 : n;
        if (strncmp (one, "gpu", 3) != 0 || (one[3] && one[3] != ':'))
            continue;
        count = strrchr (one, ':');

        long k = 1; /* gpu:a100: one of that type */

        if (count && text_whole (count + 1, 0, TOPOLOGY_NODE_GPUS_MAX, &k))
            *count = '\0';
        else if (count && isdigit ((unsigned char) count[1]))
            return import_fail (r->in,
                                "node %s: Gres: expected gpu:TYPE:COUNT, found \"%.60s\"",
                                node, one);
        if (topology_gpu_is_slice (one)) {
            import_note (r->in, "node %s: %.60s: slices of GPUs (MIG) are left out", node,
                         one);
            continue;
        }
        total += k;
        kinds++;
        if (strchr (one, ':'))
            snprintf (model, sizeof model, "%s", strchr (one, ':') + 1);
    }
    if (total > TOPOLOGY_NODE_GPUS_MAX)
        return import_fail (r->in, "node %s: %ld GPUs, at most %d", node, total,
                            TOPOLOGY_NODE_GPUS_MAX);
    json_object_set_new (r->node, "gpus", json_integer (total));
    if (kinds > 1)
        import_note (r->in, "node %s: GPUs of %d types: a node can have only one", node,
                     kinds);
    else if (model[0]) {
        const char *type = type_named (model);

        json_object_set_new (r->node, "gpu_model", json_string (model));
        if (type)
            json_object_set_new (r->node, "gpu_type", json_string (type));
    }
    return ST_OK;
}

/* Words and marks of a node that takes no jobs of everybody (sinfo(1), "NODE STATE CODES").
 * Others keep it in use: PLANNED is for a job that waits, REBOOT_REQUESTED for when it is idle,
 * DYNAMIC_FUTURE for one that has come. */
static bool is_out (const char *word, size_t n)
{
    static const char *const out[] = {
        "DRAIN",        "DRAINED",     "DRAINING",      "DOWN",     "ERROR",
        "FAIL",         "FAILING",     "FUTURE",        "INVAL",    "INVALID_REG",
        "MAINT",        "MAINTENANCE", "NO_RESPOND",    "RESERVED", "NOT_RESPONDING",
        "POWERED_DOWN", "POWER_DOWN",  "POWERING_DOWN", "UNKNOWN",  "REBOOT_ISSUED"};
    size_t letters = strcspn (word, "*~#!%$@^-+");

    if (strcspn (word, "*~!%$^") < n)
        return true;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (strlen (out[i]) == letters && strncasecmp (word, out[i], letters) == 0)
            return true;
    return false;
}

/* A node that takes no jobs is drained, whichever way Slurm says it (BASE+FLAG+FLAG); without a
 * reason of its own the state is one. */
static void read_state (struct reading *r, const char *state)
{
    bool drained = false;

    for (const char *p = state; *p && !drained;) {
        size_t n = strcspn (p, "+");

        drained = is_out (p, n);
        p += n + (p[n] == '+');
    }
    json_object_set_new (r->node, "state", json_string (drained ? "drained" : "ok"));
    if (drained && !json_object_get (r->node, "reason"))
        json_object_set_new (r->node, "reason", json_string (state));
}

static enum status begin_node (struct reading *r, const char *name)
{
    if (!topology_name_ok (name))
        return import_fail (r->in, "NodeName: expected a node's name, found \"%.60s\"",
                            name);
    if (json_object_get (r->seen, name))
        return import_fail (r->in, "node %s appears twice", name);
    json_object_set_new (r->seen, name, json_true ());
    r->node = json_pack ("{s:s, s:i, s:n}", "name", name, "gpus", 0, "gpu_type");
    json_array_append_new (r->nodes, r->node);
    return r->node ? ST_OK : err_nomem (r->in->err);
}

static enum status take (struct reading *r, const char *key, const char *value)
{
    if (strcmp (key, "NodeName") == 0)
        return begin_node (r, value);
    if (!r->node)
        return ST_OK;
    if (strcmp (key, "Gres") == 0)
        return strcmp (value, "(null)") == 0 ? ST_OK : read_gres (r, value);
    if (strcmp (key, "State") == 0)
        read_state (r, value);
    else if (strcmp (key, "Reason") == 0)
        json_object_set_new (r->node, "reason", json_string (value));
    else if (strcmp (key, "Sockets") == 0 && atoi (value) > 0)
        json_object_set_new (r->node, "packages", json_integer (atoi (value)));
    return ST_OK;
}

/* ---- keys ---- */

/* The length of a KEY= that begins here, without '='; 0: none does. */
static size_t key_length (const char *s)
{
    size_t n = 0;

    while (isalnum ((unsigned char) s[n]) || s[n] == '_')
        n++;
    return isupper ((unsigned char) s[0]) && s[n] == '=' ? n : 0;
}

static enum status read_line (void *context, char *line, int number)
{
    char *p = line + strspn (line, " \t");

    (void) number;
    while (*p) {
        size_t n = key_length (p);
        char *value = p + n + 1, *end = value;

        if (n == 0) {
            p += strcspn (p, " \t");
            p += strspn (p, " \t");
            continue;
        }
        /* Up to the blank before the next key. */
        while (*end && !((*end == ' ' || *end == '\t') &&
                         key_length (end + strspn (end, " \t")) > 0))
            end++;

        char *next = end + strspn (end, " \t");

        while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        p[n] = '\0';
        *end = '\0';
        TRY (take (context, p, value));
        p = next;
    }
    return ST_OK;
}

static enum status read_nodes (const struct import *in, json_t **doc)
{
    struct reading r = {.in = in, .nodes = json_array (), .seen = json_object ()};
    enum status st = import_lines (in, read_line, &r);

    if (st == ST_OK && json_array_size (r.nodes) == 0)
        st = import_fail (in, "the file has no NodeName=");
    if (st == ST_OK) {
        *doc = json_pack ("{s:i, s:s, s:O}", "version", 1, "source", "scontrol show node",
                          "nodes", r.nodes);
        st = *doc ? ST_OK : err_nomem (in->err);
    }
    JSON_DECREF_ALL (r.nodes, r.seen);
    return st;
}

static bool is_nodes (const char *data)
{
    data += strspn (data, " \t\r\n");
    return strncmp (data, "NodeName=", 9) == 0;
}

const struct importer import_slurm_nodes = {
    .format = {"slurm-nodes", "the output of `scontrol show node`"},
    .is = is_nodes,
    .read = read_nodes};
