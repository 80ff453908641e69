/* DeepSpeed.
 *
 * Its own launcher orders whole hosts (host file order), with unlike numbers of ranks too; it
 * sorts the GPUs of each and may rotate local ranks, which the wrapper sets right.  Everything
 * else goes through its openmpi launcher and a rankfile. */
#include "launch/launch_private.h"

/* The hosts in the order of their ranks; which of their GPUs are used, unless it is all. */
static void write_own (const struct launch_input *in, struct launch_files *f,
                       struct text *readme)
{
    struct text *hosts = launch_file (f, "deepspeed/hostfile", 0644), include = {0};
    int listed = 0;

    for (int r = 0; r < in->plan->n_ranks; r++) {
        const struct workload_place *place = &in->plan->place[r];
        const struct topology_node *n = launch_node_of (in, r);

        if (r > 0 && n == launch_node_of (in, r - 1)) {
            text_add (&include, ",%d", place->gpu);
            continue;
        }
        text_add (hosts, "%s slots=%d\n", place->node, n->gpus_listed);
        text_add (&include, "%s%s:%d", r ? "@" : "", place->node, place->gpu);
        listed += n->gpus_listed;
    }
    text_add (&include, "\n");
    text_add (readme,
              "DeepSpeed, with its own launcher:\n\n"
              "    deepspeed --hostfile deepspeed/hostfile%s \\\n"
              "        --no_python --no_local_rank ./exec.sh PROGRAM\n",
              listed == in->plan->n_ranks ? ""
                                          : " --include \"$(cat deepspeed/include)\"");
    if (listed == in->plan->n_ranks)
        text_free (&include);
    else
        *launch_file (f, "deepspeed/include", 0644) = include;
}

static enum status write_deepspeed (const struct launch_input *in, struct launch_files *f,
                                    struct text *readme, struct error *err)
{
    struct text ranks = {0}, hosts = {0};

    if (launch_by_node (in)) {
        write_own (in, f, readme);
        return ST_OK;
    }
    TRY (launch_rankfile (in, "*", &ranks, &hosts, err));
    *launch_file (f, "deepspeed/hostfile", 0644) = hosts;
    *launch_file (f, "deepspeed/rankfile", 0644) = ranks;
    text_add (
        readme,
        "DeepSpeed: its own launcher orders whole hosts alone, which this plan does "
        "not;\nthrough Open MPI 4 (that sets neither RANK nor LOCAL_RANK; the wrapper "
        "does):\n\n"
        "    deepspeed --hostfile deepspeed/hostfile --launcher openmpi \\\n"
        "        --launcher_args \"-rf deepspeed/rankfile\" --no_python ./exec.sh "
        "PROGRAM\n");
    return ST_OK;
}

const struct launcher launch_deepspeed = {
    .target = {"deepspeed",
               "DeepSpeed host file, or a rankfile for its openmpi launcher"},
    .readme = "deepspeed/README",
    .paths = {"deepspeed/hostfile", "deepspeed/include", "deepspeed/rankfile"},
    .write = write_deepspeed,
};
