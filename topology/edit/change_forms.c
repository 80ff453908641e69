/* What each form of a statement does to a copy of the cluster's document: its words, those in
 * capitals being arguments, and its function are one line of the table `forms`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "topology/edit/change_private.h"
#include "topology/edit/edit.h"
#include "topology/topology_private.h"

static json_t *links_of (const struct change *x)
{
    return json_object_get (x->doc, "links");
}

static json_t *node_at (const struct change *x, int i)
{
    return json_array_get (json_object_get (x->doc, "nodes"), (size_t) i);
}

/* ---- arguments ---- */

/* Products with what a file says stay numbers. */
#define NUMBER_MIN 1e-9
#define NUMBER_MAX 1e9

static enum status number_of (struct change *x, int arg, double *out)
{
    char *end;

    *out = strtod (x->arg[arg], &end);
    return end > x->arg[arg] && !*end && *out >= NUMBER_MIN && *out <= NUMBER_MAX
               ? ST_OK
               : err_set (x->err, ST_USAGE,
                          "expected a number from %g to %g, found \"%s\"", NUMBER_MIN,
                          NUMBER_MAX, x->arg[arg]);
}

static enum status count_of (struct change *x, const char *word, int most, int *out)
{
    char *end;
    long n = strtol (word, &end, 10);

    if (end == word || *end || n < 1 || n > most)
        return err_set (x->err, ST_USAGE,
                        "expected a whole number from 1 to %d, found \"%s\"", most, word);
    *out = (int) n;
    return ST_OK;
}

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

/* Do `each` for the nodes of the host lists from an argument on. */
static enum status for_nodes (struct change *x, int from, int to,
                              enum status (*each) (struct change *x, int node))
{
    enum status st = ST_OK;

    for (int a = from; a < to && st == ST_OK; a++) {
        char **names = NULL;
        int n;

        st = topology_hostlist_expand (x->arg[a], &names, &n, x->err);
        for (int k = 0; st == ST_OK && k < n; k++) {
            int node;

            st = node_of (x, names[k], &node);
            if (st == ST_OK)
                st = each (x, node);
        }
        topology_hostlist_free (names);
    }
    return st;
}

/* ---- links ---- */

static enum status except (struct change *x, const char *from, const char *to,
                           json_t *gb_per_s)
{
    json_t *list = json_object_get (links_of (x), "exceptions");

    if (!list) {
        list = json_array ();
        json_object_set_new (links_of (x), "exceptions", list);
    }
    return json_array_append_new (list, json_pack ("{s:s, s:s, s:o}", "from", from, "to",
                                                   to, "bandwidth_gb_per_s", gb_per_s))
               ? err_nomem (x->err)
               : ST_OK;
}

/* NODE or NODE:GPU. */
static enum status check_end (struct change *x, const char *end)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    int node;

    snprintf (name, sizeof name, "%.*s", (int) strcspn (end, ":"), end);
    return node_of (x, name, &node);
}

/* A->B or A<->B into its ends. */
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
    return check_end (x, *to);
}

static enum status set_link (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false, broken = strcmp (x->arg[1], "null") == 0;
    double gb_per_s = NAN;

    if (!broken && number_of (x, 1, &gb_per_s) != ST_OK)
        return err_set (x->err, ST_USAGE, "expected GB/s > 0 or null, found \"%s\"",
                        x->arg[1]);
    TRY (ends_of (x, &from, &to, &both));
    TRY (except (x, from, to, json_number_or_null (gb_per_s)));
    return both ? except (x, to, from, json_number_or_null (gb_per_s)) : ST_OK;
}

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

static enum status mend_node (struct change *x, int node)
{
    json_object_del (node_at (x, node), "speed");
    json_object_del (node_at (x, node), "state");
    return mend_links (x, node);
}

static enum status mend (struct change *x)
{
    return for_nodes (x, 0, x->n, mend_node);
}

/* ---- nodes and GPUs ---- */

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
    char *colon = strchr (x->arg[0], ':'), *end;
    double speed;
    long gpu;
    int node;

    TRY (number_of (x, 1, &speed));
    gpu = colon ? strtol (colon + 1, &end, 10) : 0;
    if (!colon || end == colon + 1 || *end)
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
    return for_nodes (x, 0, 1, all_speeds);
}

static enum status set_type (struct change *x, int node)
{
    json_object_set_new (node_at (x, node), "gpu_type", json_string (x->arg[x->n - 1]));
    return ST_OK;
}

/* TYPE for all nodes, or NODES = TYPE. */
static enum status type (struct change *x)
{
    const char *name = x->arg[x->n - 1];
    struct topology_gpu_type t;
    char hint[TEXT_HINT];

    if (topology_type_in (x->doc, name, &t, NULL) != ST_OK)
        return err_set (x->err, ST_USAGE,
                        "unknown GPU type \"%s\"%s (`linkwise gpus` lists them)", name,
                        topology_gpu_type_hint (name, hint));
    for (int i = 0; x->n == 1 && i < x->c->n_nodes; i++)
        TRY (set_type (x, i));
    return x->n == 1 ? ST_OK : for_nodes (x, 0, 1, set_type);
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
    int n, like;

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

static enum status pairs (struct change *x)
{
    const struct topology_cluster *c = x->c;
    json_t *rows;
    double by;

    TRY (number_of (x, 0, &by));
    if (!c->has_pair_totals)
        return err_set (x->err, ST_INVALID,
                        "the cluster %s does not say what the GPUs of two nodes reach "
                        "together (links.inter.node_pair_gb_per_s)",
                        c->name);
    rows = json_array ();
    for (int i = 0; i < c->n_nodes; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < c->n_nodes; j++) {
            double pair = topology_matrix_at (&c->pair_bytes_per_s, i, j);

            json_array_append_new (
                row, json_number_or_null (i == j ? NAN : by * pair / UNITS_GB));
        }
        json_array_append_new (rows, row);
    }
    json_object_set_new (change_net_of (x->doc), "node_pair_gb_per_s", rows);
    return ST_OK;
}

static enum status memory (struct change *x)
{
    json_t *types = json_object_get (x->doc, "gpu_types");
    double by;

    TRY (number_of (x, 0, &by));
    if (!types) {
        types = json_object ();
        json_object_set_new (x->doc, "gpu_types", types);
    }
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

/* ---- forms ---- */

static const struct change_form forms[] = {{"drain NODES...", drain},
                                           {"mend NODES...", mend},
                                           {"link A->B = GB/S", set_link},
                                           {"gpu NODE:GPU speed F", gpu_speed},
                                           {"node NODES speed F", node_speed},
                                           {"+N nodes like NODE", more},
                                           {"nodes N", nodes},
                                           {"type TYPE", type},
                                           {"type NODES = TYPE", type},
                                           {"nics x F", nics},
                                           {"pairs x F", pairs},
                                           {"memory x F", memory}};

const struct change_form *change_form_at (size_t k)
{
    return k < sizeof forms / sizeof *forms ? &forms[k] : NULL;
}
