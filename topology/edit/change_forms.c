/* What each form of a statement does to a copy of the cluster's document: its words, those in
 * capitals being arguments, and its function are one line of the table at the end. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "topology/edit/change_private.h"
#include "topology/edit/edit.h"
#include "topology/topology_private.h"
#include "topology/topology.h"

/* ---- arguments ----
 *
 * Products with what a file says stay numbers. */
#define NUMBER_MIN 1e-9
#define NUMBER_MAX 1e9

/* An argument as a number that products with a file's numbers stay numbers with. */
static enum status number_of (struct change *x, int arg, double *out)
{
    return text_number (x->arg[arg], out) && *out >= NUMBER_MIN && *out <= NUMBER_MAX
               ? ST_OK
               : err_set (x->err, ST_USAGE,
                          "expected a number from %g to %g, found \"%s\"", NUMBER_MIN,
                          NUMBER_MAX, x->arg[arg]);
}

/* A word as a whole number from 1 to `most`. */
static enum status count_of (struct change *x, const char *word, int most, int *out)
{
    long n;

    if (!text_whole (word, 1, most, &n))
        return err_set (x->err, ST_USAGE,
                        "expected a whole number from 1 to %d, found \"%s\"", most, word);
    *out = (int) n;
    return ST_OK;
}

/* A node by its name. */
static enum status node_of (struct change *x, const char *name, int *out)
{
    struct text_near near = {.asked = name};
    char hint[TEXT_HINT];

    *out = topology_node_find (x->c, name);
    if (*out >= 0)
        return ST_OK;
    for (int i = 0; i < x->c->n_nodes; i++)
        text_near_try (&near, x->c->node[i].name, strlen (x->c->node[i].name));
    return err_set (x->err, ST_INVALID, "the cluster %s has no node \"%s\"%s", x->c->name,
                    name, text_near_hint (&near, "", hint));
}

/* Do `each` for the nodes of the host lists in the first `n_lists` arguments. */
static enum status for_nodes (struct change *x, int n_lists,
                              enum status (*each) (struct change *x, int node))
{
    enum status st = ST_OK;

    for (int a = 0; a < n_lists && st == ST_OK; a++) {
        char **names = NULL;
        int n;

        st = topology_hostlist_expand (x->arg[a], &names, &n, x->err);
        for (int k = 0; st == ST_OK && k < n; k++) {
            int node;

            st = node_of (x, names[k], &node);
            THEN (st, each (x, node));
        }
        topology_hostlist_free (names);
    }
    return st;
}

/* NODE or NODE:GPU. */
static enum status check_end (struct change *x, const char *end)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    int node;

    snprintf (name, sizeof name, "%.*s", (int) strcspn (end, ":"), end);
    return node_of (x, name, &node);
}

/* The first argument, A->B or A<->B, into its ends, which are nodes or NODE:GPU. */
static enum status ends_of (struct change *x, char **from, char **to, bool *both)
{
    char *arrow = strstr (x->arg[0], "->");

    if (!arrow || arrow == x->arg[0] || !arrow[2])
        return err_set (x->err, ST_USAGE, "expected A->B or A<->B, found \"%s\"",
                        x->arg[0]);
    *both = arrow[-1] == '<';
    arrow[*both ? -1 : 0] = '\0';
    *from = x->arg[0];
    *to = arrow + 2;
    TRY (check_end (x, *from));
    TRY (check_end (x, *to));
    return strcmp (*from, *to) != 0
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "expected two nodes or two GPUs, found %s twice", *from);
}

/* ---- nodes and GPUs ---- */

static json_t *node_at (const struct change *x, int node)
{
    return json_array_get (json_object_get (x->doc, "nodes"), (size_t) node);
}

static enum status drain (struct change *x)
{
    for (int k = 0; k < x->n; k++) {
        char **names;
        enum status st;
        int n;

        if (!strpbrk (x->arg[k], ":>")) { /* no GPU, no link */
            TRY (topology_hostlist_expand (x->arg[k], &names, &n, x->err));
            topology_hostlist_free (names);
        }
        st = topology_drain (x->doc, x->arg[k], false, NULL, x->err);
        if (st != ST_OK)
            return st == ST_USAGE ? ST_INVALID
                                  : st; /* it is well-formed, but not there */
    }
    return ST_OK;
}

/* A node's factors, all 1 where it has none. */
static json_t *speeds_of (struct change *x, int node)
{
    json_t *list = json_object_get (node_at (x, node), "speed");

    if (!list) {
        list = json_array ();
        for (int k = 0; k < x->c->node[node].gpus_listed; k++)
            json_array_append_new (list, json_real (1.0));
        json_object_set_new (node_at (x, node), "speed", list);
    }
    return list;
}

static enum status gpu_speed (struct change *x)
{
    char *colon = strchr (x->arg[0], ':');
    double speed;
    long gpu;
    int node;

    TRY (number_of (x, 1, &speed));
    if (!colon || !text_whole (colon + 1, LONG_MIN, LONG_MAX, &gpu))
        return err_set (x->err, ST_USAGE, "expected NODE:GPU, found \"%s\"", x->arg[0]);
    *colon = '\0';
    TRY (node_of (x, x->arg[0], &node));
    if (gpu < 0 || gpu >= x->c->node[node].gpus_listed)
        return err_set (x->err, ST_INVALID, "node %s has GPUs 0 to %d, found %ld",
                        x->arg[0], x->c->node[node].gpus_listed - 1, gpu);
    json_array_set_new (speeds_of (x, node), (size_t) gpu, json_real (speed));
    return ST_OK;
}

static enum status all_speeds (struct change *x, int node)
{
    json_t *list = speeds_of (x, node);
    double speed;

    TRY (number_of (x, x->n - 1, &speed));
    for (size_t k = 0; k < json_array_size (list); k++)
        json_array_set_new (list, k, json_real (speed));
    return ST_OK;
}

static enum status node_speed (struct change *x)
{
    return for_nodes (x, 1, all_speeds);
}

static enum status set_type (struct change *x, int node)
{
    json_object_set_new (node_at (x, node), "gpu_type", json_string (x->type.name));
    return ST_OK;
}

/* TYPE for all nodes, or NODES = TYPE. */
static enum status type (struct change *x)
{
    const char *name = x->arg[x->n - 1];
    char hint[TEXT_HINT];

    if (topology_type_in (x->doc, name, &x->type, NULL) != ST_OK)
        return err_set (x->err, ST_USAGE,
                        "unknown GPU type \"%s\"%s (`linkwise gpus` lists them)", name,
                        topology_gpu_type_hint (name, hint));
    for (int i = 0; x->n == 1 && i < x->c->n_nodes; i++)
        TRY (set_type (x, i));
    return x->n == 1 ? ST_OK : for_nodes (x, 1, set_type);
}

static enum status nodes (struct change *x)
{
    int in_use = 0;

    for (int i = 0; i < x->c->n_nodes; i++)
        in_use += !x->c->node[i].drained;
    TRY (count_of (x, x->arg[0], 1 << 30, &x->max_nodes));
    return x->max_nodes <= in_use
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "the cluster %s has %d nodes in use, found %d (+N nodes like "
                          "NODE adds some)",
                          x->c->name, in_use, x->max_nodes);
}

static enum status more (struct change *x)
{
    int n = 0, like = 0;

    TRY (count_of (x, x->arg[0] + 1, 100000, &n));
    TRY (node_of (x, x->arg[1], &like));
    return change_more_nodes (x->doc, x->c, like, n, x->err);
}

/* ---- all of a kind ---- */

static enum status nics (struct change *x)
{
    json_t *list;
    double by;

    TRY (number_of (x, 0, &by));
    if (!json_object_get (change_net_of (x->doc), "node_gb_per_s"))
        return err_set (x->err, ST_INVALID,
                        "the cluster %s does not say what a node's GPUs reach together "
                        "(links.inter.node_gb_per_s)",
                        x->c->name);
    list = json_array ();
    for (int i = 0; i < x->c->n_nodes; i++) {
        double gb_per_s = by * x->c->node[i].node_bytes_per_s / UNITS_GB;

        json_array_append_new (list, json_number_or_null (gb_per_s > 0 ? gb_per_s : NAN));
    }
    json_object_set_new (change_net_of (x->doc), "node_gb_per_s", list);
    return ST_OK;
}

static enum status memory (struct change *x)
{
    json_t *types;
    double by;

    TRY (number_of (x, 0, &by));
    types = json_object_in (x->doc, "gpu_types");
    for (int i = 0; i < x->c->n_nodes; i++) {
        const struct topology_gpu_type *t = x->c->node[i].type;
        json_t *one = json_object_get (types, t->name);

        if (!one) {
            one = json_pack ("{s:s}", "like", t->name);
            json_object_set_new (types, t->name, one);
        }
        json_object_set_new (one, "memory_gb",
                             json_real (by * t->memory_bytes / UNITS_GB));
    }
    return ST_OK;
}

/* ---- links ---- */

static enum status except (struct change *x, const char *from, const char *to,
                           json_t *gb_per_s)
{
    json_t *list = json_array_in (json_object_get (x->doc, "links"), "exceptions");

    return json_array_append_new (list, json_pack ("{s:s, s:s, s:o}", "from", from, "to",
                                                   to, "bandwidth_gb_per_s", gb_per_s))
               ? err_nomem (x->err)
               : ST_OK;
}

static enum status link_rate (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false, broken = strcmp (x->arg[1], "null") == 0;
    double gb_per_s = NAN;

    if (!broken && number_of (x, 1, &gb_per_s) != ST_OK)
        return err_set (x->err, ST_USAGE,
                        "expected GB/s from 1e-9 to 1e9, or null, found \"%s\"",
                        x->arg[1]);
    TRY (ends_of (x, &from, &to, &both));
    TRY (except (x, from, to, json_number_or_null (gb_per_s)));
    return both ? except (x, to, from, json_number_or_null (gb_per_s)) : ST_OK;
}

/* ---- what all GPUs of two nodes reach together ---- */

/* The rows of node_pair_gb_per_s, made where the file has a number, a rule or another file. */
static json_t *total_rows (struct change *x)
{
    const struct topology_cluster *c = x->c;
    json_t *rows = json_object_get (change_net_of (x->doc), "node_pair_gb_per_s");

    if (json_is_array (rows))
        return rows;
    rows = topology_matrix_json (&c->pair_bytes_per_s, c->n_nodes, UNITS_GB);
    json_object_set_new (change_net_of (x->doc), "node_pair_gb_per_s", rows);
    return rows;
}

static void put_total (struct change *x, int from, int to, double bytes_per_s)
{
    json_array_set_new (json_array_get (total_rows (x), (size_t) from), (size_t) to,
                        json_number_or_null (bytes_per_s / UNITS_GB));
}

static enum status need_totals (const struct change *x)
{
    return x->c->has_pair_totals
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "the cluster %s does not say what the GPUs of two nodes reach "
                          "together (links.inter.node_pair_gb_per_s)",
                          x->c->name);
}

static enum status pair_total (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false;
    double gb_per_s;
    int a, b;

    TRY (number_of (x, 1, &gb_per_s));
    TRY (need_totals (x));
    TRY (ends_of (x, &from, &to, &both));
    TRY (node_of (x, from, &a));
    TRY (node_of (x, to, &b));
    put_total (x, a, b, gb_per_s * UNITS_GB);
    if (both)
        put_total (x, b, a, gb_per_s * UNITS_GB);
    return ST_OK;
}

static enum status pair_totals (struct change *x)
{
    json_t *row;
    double by;
    size_t i;

    TRY (number_of (x, 0, &by));
    TRY (need_totals (x));
    json_array_foreach (total_rows (x), i, row)
    {
        for (size_t j = 0; j < json_array_size (row); j++) {
            const json_t *pair = json_array_get (row, j);

            if (json_is_number (pair))
                json_array_set_new (row, j, json_real (by * json_number_value (pair)));
        }
    }
    return ST_OK;
}

/* ---- as good as others ---- */

/* Raise what is below the median of all links between nodes, to and from one. */
static enum status mend_links (struct change *x, int node)
{
    struct topology_link_stats stats = {0};
    const struct topology_cluster *c = x->c;

    if (c->n_nodes > 1)
        TRY (topology_inter_stats (c, &stats, x->err));
    for (int k = 0; k < 2 * c->n_nodes; k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;
        struct topology_link l;

        if (other == node || c->node[other].drained)
            continue;
        l = topology_link (c, c->node[a].first_gpu, c->node[b].first_gpu);
        if (!l.measured || l.bytes_per_s < stats.median_bytes_per_s)
            TRY (except (x, c->node[a].name, c->node[b].name,
                         json_real (stats.median_bytes_per_s / UNITS_GB)));
    }
    return ST_OK;
}

/* The same of what the GPUs of one and of each other node reach together. */
static enum status mend_totals (struct change *x, int node)
{
    const struct topology_matrix *m = &x->c->pair_bytes_per_s;
    double typical;

    TRY (topology_pair_typical (x->c, &typical, x->err));
    for (int k = 0; k < 2 * x->c->n_nodes && !isnan (typical); k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;

        if (other != node && !(topology_matrix_at (m, a, b) >= typical))
            put_total (x, a, b, typical);
    }
    return ST_OK;
}

/* A link inside a node that is below what is usual. */
static enum status mend_inside_link (struct change *x, struct topology_inside *usual,
                                     int src, int dst)
{
    struct topology_link l = topology_link_given (x->c, src, dst);
    double typical = topology_inside_typical (usual, src, dst);
    const char *name = x->c->node[x->c->node_of_gpu[src]].name;
    char from[TOPOLOGY_PLACE_TEXT], to[TOPOLOGY_PLACE_TEXT];

    if (isnan (typical) || (l.measured && l.bytes_per_s >= typical))
        return ST_OK;
    return except (x, topology_place_text (name, topology_gpu_index (x->c, src), from),
                   topology_place_text (name, topology_gpu_index (x->c, dst), to),
                   json_real (typical / UNITS_GB));
}

static enum status mend_inside (struct change *x, int node)
{
    int first = x->c->node[node].first_gpu, n = x->c->node[node].gpus;
    struct topology_inside *usual;
    enum status st = ST_OK;

    if (n < 2 || (!x->c->node[node].intra && !x->c->has_gpu_matrix))
        return ST_OK;
    TRY (topology_inside_create (x->c, &usual, x->err));
    for (int k = 0; k < n * n && st == ST_OK; k++)
        if (k / n != k % n)
            st = mend_inside_link (x, usual, first + k / n, first + k % n);
    topology_inside_destroy (usual);
    return st;
}

static enum status mend_node (struct change *x, int node)
{
    json_t *at = node_at (x, node);

    json_object_del (at, "speed");
    json_object_del (at, "state");
    TRY (mend_links (x, node));
    TRY (mend_totals (x, node));
    return mend_inside (x, node);
}

static enum status mend (struct change *x)
{
    return for_nodes (x, x->n, mend_node);
}

/* ---- forms ---- */

const struct change_form change_forms[] = {{"drain NODES...", drain},
                                           {"mend NODES...", mend},
                                           {"link A->B = GB/S", link_rate},
                                           {"pair A->B = GB/S", pair_total},
                                           {"gpu NODE:GPU speed F", gpu_speed},
                                           {"node NODES speed F", node_speed},
                                           {"+N nodes like NODE", more},
                                           {"nodes N", nodes},
                                           {"type TYPE", type},
                                           {"type NODES = TYPE", type},
                                           {"nics x F", nics},
                                           {"pairs x F", pair_totals},
                                           {"memory x F", memory},
                                           {NULL, NULL}};
