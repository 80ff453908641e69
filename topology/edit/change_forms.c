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
    json_t *list = json_object_get (change_node_at (x, node), "speed");

    if (!list) {
        list = json_array ();
        for (int k = 0; k < x->c->node[node].gpus_listed; k++)
            json_array_append_new (list, json_real (1.0));
        json_object_set_new (change_node_at (x, node), "speed", list);
    }
    return list;
}

static enum status gpu_speed (struct change *x)
{
    char *colon = strchr (x->arg[0], ':');
    double speed;
    long gpu;
    int node;

    TRY (change_number_of (x, 1, &speed));
    if (!colon || !text_whole (colon + 1, LONG_MIN, LONG_MAX, &gpu))
        return err_set (x->err, ST_USAGE, "expected NODE:GPU, found \"%s\"", x->arg[0]);
    *colon = '\0';
    TRY (change_node_of (x, x->arg[0], &node));
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

    TRY (change_number_of (x, x->n - 1, &speed));
    for (size_t k = 0; k < json_array_size (list); k++)
        json_array_set_new (list, k, json_real (speed));
    return ST_OK;
}

static enum status node_speed (struct change *x)
{
    return change_for_nodes (x, 1, all_speeds);
}

static enum status set_type (struct change *x, int node)
{
    json_object_set_new (change_node_at (x, node), "gpu_type",
                         json_string (x->type.name));
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
    return x->n == 1 ? ST_OK : change_for_nodes (x, 1, set_type);
}

static enum status nodes (struct change *x)
{
    int in_use = 0;

    for (int i = 0; i < x->c->n_nodes; i++)
        in_use += !x->c->node[i].drained;
    TRY (change_count_of (x, x->arg[0], 1 << 30, &x->max_nodes));
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

    TRY (change_count_of (x, x->arg[0] + 1, 100000, &n));
    TRY (change_node_of (x, x->arg[1], &like));
    return change_more_nodes (x->doc, x->c, like, n, x->err);
}

/* ---- all of a kind ---- */

static enum status nics (struct change *x)
{
    json_t *list;
    double by;

    TRY (change_number_of (x, 0, &by));
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

    TRY (change_number_of (x, 0, &by));
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

/* ---- forms ---- */

const struct change_form change_forms[] = {{"drain NODES...", drain},
                                           {"mend NODES...", change_mend},
                                           {"link A->B = GB/S", change_link},
                                           {"pair A->B = GB/S", change_total},
                                           {"gpu NODE:GPU speed F", gpu_speed},
                                           {"node NODES speed F", node_speed},
                                           {"+N nodes like NODE", more},
                                           {"nodes N", nodes},
                                           {"type TYPE", type},
                                           {"type NODES = TYPE", type},
                                           {"nics x F", nics},
                                           {"pairs x F", change_totals},
                                           {"memory x F", memory},
                                           {NULL, NULL}};
