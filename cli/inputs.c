/* What commands read alike: plans and their clusters, lists of nodes. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static enum status digest (const char *file, char hex[65], struct error *err)
{
    char *text;
    size_t len;
    enum status st = file_read (file, &text, &len, err);

    if (st != ST_OK)
        return st;
    file_sha256 (text, len, hex);
    free (text);
    return ST_OK;
}

/* The plan's own cluster: whole, or a reference to its file. */
static enum status cluster_of_plan (const struct workload_plan *plan, const char *name,
                                    struct topology_cluster **cluster,
                                    struct notes *notes, struct error *err)
{
    json_t *doc = json_object_get (plan->doc, "cluster");
    const char *file = json_string_value (json_object_get (doc, "file"));
    const char *sha256 = json_string_value (json_object_get (doc, "sha256"));
    char where[4200], hex[65];
    enum status st;

    snprintf (where, sizeof where, "%.4000s: cluster", name);
    if (!file)
        return topology_cluster_from_json (doc, where, NULL, cluster, notes, err);
    st = digest (file, hex, err);
    if (st != ST_OK)
        err_prefix (err, "%s (give CLUSTER as an argument)", where);
    else if (sha256 && strcmp (hex, sha256) != 0)
        st = err_set (
            err, ST_INVALID,
            "%s: %s has changed since the plan was made; give CLUSTER as an argument",
            where, file);
    return st == ST_OK ? topology_cluster_read (file, cluster, notes, err) : st;
}

enum status cli_plan_read (const char *plan, const char *cluster, struct cli_work *x,
                           struct notes *notes, struct error *err)
{
    enum status st = workload_plan_read (plan, &x->plan, notes, err);

    if (st == ST_OK)
        st = cluster ? topology_cluster_read (cluster, &x->cluster, notes, err)
                     : cluster_of_plan (&x->plan, plan, &x->cluster, notes, err);
    return st == ST_OK ? workload_profile_read (x->plan.profile, &x->profile, notes, err)
                       : st;
}

enum status cli_plan_gpus (struct cli_work *x, struct error *err)
{
    x->gpu = calloc ((size_t) x->plan.n_ranks, sizeof *x->gpu);
    return x->gpu ? costmodel_plan_gpus (&x->plan, x->cluster, x->gpu, err)
                  : err_nomem (err);
}

struct mapper_problem cli_problem (const struct cli_work *x)
{
    struct mapper_problem p = {.model = &x->plan.model,
                               .job = &x->plan.job,
                               .profile = &x->profile,
                               .cluster = x->cluster,
                               .memory_limit_pct = x->plan.memory_limit_pct,
                               .oom_risk = x->plan.oom_risk};

    memest_model_parse (x->plan.memory_model, &p.memory_model);
    return p;
}

void cli_work_release (struct cli_work *x)
{
    workload_plan_release (&x->plan);
    topology_cluster_destroy (x->cluster);
    free (x->gpu);
}

/* Nodes of a rack, or below a switch, of that name. */
static enum status mark_rack (const struct topology_cluster *c, const char *rack,
                              bool value, bool *allowed, struct error *err)
{
    int found = 0;

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];
        bool is_in = n->rack && strcmp (n->rack, rack) == 0;

        for (int k = 0; k < n->levels && !is_in; k++)
            is_in = strcmp (n->switches[k], rack) == 0;
        if (is_in)
            allowed[i] = value && !n->drained;
        found += is_in;
    }
    return found > 0 ? ST_OK
                     : err_set (err, ST_USAGE,
                                "the cluster %s has no rack and no switch \"%s\"",
                                c->name, rack);
}

static enum status mark_node (const struct topology_cluster *c, const char *name,
                              bool value, bool *allowed, struct error *err)
{
    int node = topology_node_of_host (c, name);

    if (node == -2)
        return err_set (err, ST_USAGE,
                        "\"%s\" is ambiguous: names of nodes of the cluster %s differ "
                        "only after the first dot",
                        name, c->name);
    if (node < 0)
        return err_set (err, ST_USAGE, "the cluster %s has no node \"%s\"", c->name,
                        name);
    allowed[node] = value && !c->node[node].drained;
    return ST_OK;
}

enum status cli_mark_nodes (const struct topology_cluster *c, const char *list,
                            const char *option, bool value, bool *allowed,
                            struct error *err)
{
    bool racks = strncmp (list, "rack:", 5) == 0;
    char **names = NULL;
    int n = 0;
    enum status st = topology_hostlist_expand (list + (racks ? 5 : 0), &names, &n, err);

    for (int i = 0; i < n && st == ST_OK; i++)
        st = (racks ? mark_rack : mark_node) (c, names[i], value, allowed, err);
    if (st != ST_OK)
        err_prefix (err, "%s", option);
    topology_hostlist_free (names);
    return st;
}

enum status cli_cluster_reference (const char *arg, const struct workload_plan *plan,
                                   const struct topology_cluster *c, const char **file,
                                   char hex[65], struct error *err)
{
    json_t *own = arg ? NULL : json_object_get (plan->doc, "cluster");
    const char *sha256 = json_string_value (json_object_get (own, "sha256"));

    *file = json_string_value (json_object_get (own, "file"));
    snprintf (hex, 65, "%s", sha256 ? sha256 : "");
    if (!arg || c->n_nodes <= CLI_WHOLE_NODES || cli_is_dash (arg) || strchr (arg, ' '))
        return ST_OK;
    *file = arg;
    return digest (arg, hex, err);
}
