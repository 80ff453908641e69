/* DeepSpeed.
 *
 * Its own launcher orders whole hosts (host file order) and sorts the GPUs of each, so it
 * can express a plan in which every host holds one equal block of ranks on ascending GPUs;
 * hosts with unequal blocks would get rotated local ranks.  Everything else goes through
 * its openmpi launcher and a rankfile. */
#include "launch/launch_private.h"

/* Are a block's GPUs ascending on every node, and all of the node's? */
static bool ascending (const struct launch_input *in, int block, bool *all)
{
    *all = true;
    for (int r = 0; r < in->plan->n_ranks; r++) {
        if (r % block > 0 && in->gpu[r] <= in->gpu[r - 1])
            return false;
        *all = *all && launch_node_of (in, r)->gpus_listed == block;
    }
    return true;
}

static void write_include (const struct launch_input *in, int block, struct text *t)
{
    for (int r = 0; r < in->plan->n_ranks; r++) {
        const struct workload_place *place = &in->plan->place[r];

        if (r % block == 0)
            text_add (t, "%s%s:%d", r ? "@" : "", place->node, place->gpu);
        else
            text_add (t, ",%d", place->gpu);
    }
    text_add (t, "\n");
}

static void write_own (const struct launch_input *in, int block, bool all,
                       struct launch_files *f, struct text *readme)
{
    struct text *hosts = launch_file (f, "deepspeed/hostfile", 0644);

    for (int r = 0; r < in->plan->n_ranks; r += block)
        text_add (hosts, "%s slots=%d\n", in->plan->place[r].node,
                  launch_node_of (in, r)->gpus_listed);
    if (!all)
        write_include (in, block, launch_file (f, "deepspeed/include", 0644));
    text_add (readme,
              "DeepSpeed, with its own launcher:\n\n"
              "    deepspeed --hostfile deepspeed/hostfile%s \\\n"
              "        --no_python --no_local_rank ./exec.sh PROGRAM\n",
              all ? "" : " --include \"$(cat deepspeed/include)\"");
}

static enum status write_deepspeed (const struct launch_input *in, struct launch_files *f,
                                    struct text *readme, struct error *err)
{
    struct text ranks = {0}, hosts = {0};
    int block = launch_block (in);
    bool all;

    if (block && ascending (in, block, &all)) {
        write_own (in, block, all, f, readme);
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
