/* What every target stands on: the table `rank host gpu`, the wrapper that obeys it, the
 * cluster's hosts, by which it tells hosts with the same short name apart, and the
 * collector that reports where a job really runs. */
#include "launch/launch_private.h"

#include <string.h>

/* A UUID as drivers print it: GPU-8f1c..., MIG-..., or hexadecimal digits. */
static bool uuid_ok (const char *s)
{
    size_t n = strlen (s);

    return n > 0 && n < 128 &&
           strspn (
               s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == n;
}

/* Tables `host gpu uuid` and `host gpu numa`, for the GPUs that the plan uses. */
static enum status write_tables (const struct launch_input *in, struct launch_files *f,
                                 struct error *err)
{
    for (int r = 0; r < in->plan->n_ranks; r++) {
        const struct topology_node *n = launch_node_of (in, r);
        const char *uuid = launch_uuid_of (in, r);
        int k = in->gpu[r] - n->first_gpu, index = in->plan->place[r].gpu;

        if (uuid && !uuid_ok (uuid))
            return err_set (
                err, ST_INVALID,
                "node %s: gpu_uuid[%d]: expected letters, digits and '-', found "
                "\"%.60s\"",
                n->name, k, uuid);
        if (uuid)
            text_add (launch_file (f, "gpu-uuid.txt", 0644), "%s %d %s\n", n->name, index,
                      uuid);
        if (n->gpu_numa && n->gpu_numa[k] >= 0)
            text_add (launch_file (f, "gpu-numa.txt", 0644), "%s %d %d\n", n->name, index,
                      n->gpu_numa[k]);
    }
    return ST_OK;
}

/* Every host of the cluster, also those without ranks, and its GPUs that are not drained. */
static void write_hosts (const struct topology_cluster *c, struct text *t)
{
    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];

        text_add (t, "%s", n->name);
        for (int k = 0; k < n->gpus; k++)
            text_add (t, " %d", topology_gpu_index (c, n->first_gpu + k));
        text_add (t, "\n");
    }
}

/* Groups of one kind whose GPUs are of more than one type, and the first of them. */
static int groups_mixed (const struct launch_input *in, struct workload_group g,
                         int *groups, int *first)
{
    int mixed = 0;

    *groups = 0;
    for (int r = 0; r < in->plan->n_ranks; r++) {
        bool alike = true;

        if (r / g.stride % g.size != 0)
            continue;
        for (int k = 1; k < g.size; k++)
            alike = alike && launch_node_of (in, r + k * g.stride)->type ==
                                 launch_node_of (in, r)->type;
        *first = !alike && mixed == 0 ? r : *first;
        mixed += !alike;
        ++*groups;
    }
    return mixed;
}

/* The price of a group is its slowest GPU's and link's, so that groups of one type come
 * first; those that are not were worth it, or asked for. */
static void describe_types (const struct launch_input *in, struct text *t)
{
    static const struct {
        const char *name;
        enum workload_group_kind kind;
    } kinds[] = {{"tp", GROUP_TP}, {"cp", GROUP_CP}, {"ep", GROUP_EP}};
    bool said = false;
    int groups, first = 0;

    if (groups_mixed (in, (struct workload_group){in->plan->n_ranks, 1}, &groups,
                      &first) == 0)
        return;
    text_add (t, "\nThe plan's GPUs are of several types.  ");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct workload_group g =
            workload_group_of (&in->plan->config.deg, kinds[i].kind);
        int mixed = groups_mixed (in, g, &groups, &first);

        if (mixed == 0)
            continue;
        text_add (t, "%s%s groups of more than one: %d of %d,\nfirst that of rank %d.",
                  said ? "  " : "", kinds[i].name, mixed, groups, first);
        said = true;
    }
    text_add (t, "%s\n", said ? "" : "Each tp, cp and ep group is of one.");
}

enum status launch_generic (const struct launch_input *in, struct launch_files *f,
                            struct text *readme, struct error *err)
{
    struct text *map = launch_file (f, "map.txt", 0644);
    const struct workload_degrees *d = &in->plan->config.deg;

    for (int r = 0; r < in->plan->n_ranks; r++)
        text_add (map, "%d %s %d\n", r, in->plan->place[r].node, in->plan->place[r].gpu);
    write_hosts (in->cluster, launch_file (f, "hosts.txt", 0644));
    launch_script (f, "exec.sh", "exec.sh");
    launch_script (f, "where.sh", "where.sh");
    launch_script (f, "where.py", "where.py");

    text_add (
        readme,
        "A placed job: %d rank%s on %d node%s, tp %d x cp %d x dp %d x pp %d, in "
        "Megatron's\nrank order tp-cp-ep-dp-pp.  map.txt has lines `rank host gpu`.  "
        "exec.sh starts a program\nas one rank.  The program sees its node's planned "
        "GPUs "
        "in the order of their ranks; its\nown is device LOCAL_RANK.  "
        "LINKWISE_VISIBLE=one in exec.sh's environment shows that\none alone, as device "
        "0.  exec.sh refuses to run on another host than the planned one.\n\nRun the "
        "commands below in this folder.  Every node must see it under the same\n"
        "path.  PROGRAM is your program.\n",
        in->plan->n_ranks, TEXT_S (in->plan->n_ranks), in->nodes, TEXT_S (in->nodes),
        d->tp, d->cp, d->dp, d->pp);
    describe_types (in, readme);
    text_add (
        readme,
        "\nIs the job really where the plan says?  Start it with where.sh before "
        "PROGRAM, from\nthe launcher of your choice, and compare:\n\n"
        "    LAUNCHER ... ./exec.sh env LINKWISE_RUNNING=\"$PWD/running\" ./where.sh "
        "PROGRAM\n"
        "    cat running/* | linkwise check plan.json --running -\n"
        "\nAny launcher that sets a rank (OMPI_COMM_WORLD_RANK, PMIX_RANK, "
        "PMI_RANK,\nSLURM_PROCID or RANK) in the order of map.txt:\n\n"
        "    LAUNCHER ... ./exec.sh PROGRAM\n");
    return write_tables (in, f, err);
}
