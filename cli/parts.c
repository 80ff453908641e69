/* What figures come from: the profile, the GPU types, the network, and the accuracy on record. */
#include "cli/cli.h"

static const char *kind_of (const struct workload_profile *p)
{
    return p->compute_of_type ? "composed" : "fitted";
}

json_t *cli_framework_json (const struct workload_profile *p)
{
    return json_pack ("{s:s, s:s, s:s, s:s}", "framework", p->name, "framework_kind",
                      kind_of (p), "framework_source", p->origin, "framework_why",
                      p->why[0] ? p->why : "named");
}

json_t *cli_gpu_type_json (const struct topology_gpu_type *t)
{
    bool built_in = topology_gpu_type_builtin (t->name) == t;

    return json_pack ("{s:s, s:s, s:s, s:O*}", "name", t->name, "from",
                      built_in ? "built-in" : "cluster file", "source",
                      topology_gpu_type_source (t), "measured", t->measured);
}

/* Is it the first of the nodes with its type?  Drained ones have no part in any figure. */
static bool is_first (const struct topology_node *node, int i)
{
    bool seen = !node[i].type || node[i].drained;

    for (int k = 0; k < i && !seen; k++)
        seen = node[k].type == node[i].type && !node[k].drained;
    return !seen;
}

json_t *cli_parts_json (const struct workload_profile *p,
                        const struct topology_node *node, int n)
{
    json_t *parts = cli_framework_json (p), *types = json_array ();

    for (int i = 0; i < n; i++) {
        json_t *type;

        if (!is_first (node, i))
            continue;
        type = cli_gpu_type_json (node[i].type);
        json_object_set_new (type, "record", calibrate_record (p, node[i].type->name));
        json_array_append_new (types, type);
    }
    json_object_set_new (parts, "gpu_types", types);
    return parts;
}

static const char *measured_by (const json_t *one)
{
    const char *by = json_member_text (one, "by");

    return by ? by : "?";
}

/* The keys that were measured, by what measured them. */
static void print_measured (const json_t *measured)
{
    json_t *by = json_object (), *one;
    const char *key, *who;

    json_object_foreach ((json_t *) measured, key, one)
    {
        const char *before = json_member_text (by, measured_by (one));
        struct text keys = {0};

        text_add (&keys, "%s%s%s", before ? before : "", before ? ", " : "", key);
        json_object_set_new (by, measured_by (one), json_string (text_str (&keys)));
        text_free (&keys);
    }
    json_object_foreach (by, who, one)
        cli_print_inline ("; measured by %s: %s", who, json_string_value (one));
    json_decref (by);
}

void cli_print_parts (const struct workload_profile *p, const struct topology_cluster *c)
{
    cli_print_inline ("profile  %s, %s: %s", p->name, kind_of (p),
                      p->why[0] ? p->why : "as named");
    cli_print ("\n");
    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_gpu_type *t = c->node[i].type;

        if (!is_first (c->node, i))
            continue;
        cli_print_inline ("compute  %s: %s", t->name, topology_gpu_type_source (t));
        print_measured (t->measured);
        cli_print ("\n");
    }
}

static double percent (const json_t *doc, const char *key)
{
    return 100 * json_member_number (doc, key);
}

/* One record of runs of the profile on the type. */
static void print_here (const json_t *record)
{
    size_t sources = json_array_size (json_object_get (record, "sources"));
    json_int_t steps = json_member_int (record, "steps"),
               peaks = json_member_int (record, "peaks");

    if (steps > 0)
        cli_print (" %lld steps, %.1f %% off in the mean", (long long) steps,
                   percent (record, "step_mape"));
    if (peaks > 0)
        cli_print ("%s %lld memory peaks, %.1f %%", steps > 0 ? ";" : "",
                   (long long) peaks, percent (record, "peak_mape"));
    cli_print ("\n         of %zu source%s; %s\n", sources, sources > 1 ? "s" : "",
               json_is_true (json_object_get (record, "fitted"))
                   ? "the profile was made from them"
                   : "nothing was fitted to them");
}

/* What there is in its place. */
static void print_others (const json_t *others, const char *before, const char *what)
{
    size_t names = json_array_size (json_object_get (others, "names"));

    if (names == 0)
        return;
    cli_print ("         %s %zu other %s%s:", before, names, what, names > 1 ? "s" : "");
    if (json_member_int (others, "steps") > 0)
        cli_print (" %lld steps, %.0f to %.0f %% off in the means\n",
                   (long long) json_member_int (others, "steps"),
                   percent (others, "step_mape_least"),
                   percent (others, "step_mape_most"));
    else
        cli_print (" %lld memory peaks\n", (long long) json_member_int (others, "peaks"));
}

void cli_print_record (const struct workload_profile *p, const struct topology_cluster *c)
{
    json_t *parts = cli_parts_json (p, c->node, c->n_nodes), *type, *one;
    size_t i, k;

    json_array_foreach (json_object_get (parts, "gpu_types"), i, type)
    {
        const char *name = json_member_text (type, "name");
        const json_t *record = json_object_get (type, "record"),
                     *here = json_object_get (record, "here");

        json_array_foreach (here, k, one)
        {
            cli_print_inline ("record   %s on %s:", p->name, name);
            print_here (one);
        }
        if (json_array_size (here) > 0)
            continue;
        cli_print_inline ("record   no run of %s on %s", p->name, name);
        cli_print ("\n");
        print_others (json_object_get (record, "other_gpus"), "on", "GPU type");
        print_others (json_object_get (record, "other_profiles"), "with", "profile");
    }
    json_decref (parts);
}
