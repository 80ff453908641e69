/* Open MPI 4: a rankfile.
 *
 * A hostfile is no order there: repeated lines merge, and the launching node goes first.
 * A rankfile is one; the line of rank 0 comes first.  Its slots are CPU cores, not GPUs:
 * `slot=*` binds to all of the host's cores and leaves finer binding to the job. */
#include "launch/launch_private.h"

static void write_openmpi (const struct launch_input *in, struct launch_files *f,
                           struct text *readme)
{
    const struct topology_cluster *c = in->cluster;
    const struct workload_plan *p = in->plan;
    struct text *ranks = launch_file (f, "openmpi/rankfile", 0644);
    struct text *hosts = launch_file (f, "openmpi/hostfile", 0644);

    for (int r = 0; r < p->n_ranks; r++)
        text_add (ranks, "rank %d=%s slot=*\n", r, p->place[r].node);
    for (int i = 0; i < c->n_nodes; i++)
        if (in->ranks_on_node[i] > 0)
            text_add (hosts, "%s slots=%d\n", c->node[i].name, in->ranks_on_node[i]);
    text_add (readme,
              "\nOpen MPI 4:\n\n"
              "    mpirun -np %d --hostfile openmpi/hostfile -rf openmpi/rankfile \\\n"
              "        ./exec.sh PROGRAM\n",
              p->n_ranks);
}

static const char *const paths[] = {"openmpi/rankfile", "openmpi/hostfile", NULL};

const struct launcher launch_openmpi = {
    .target = {"openmpi", "Open MPI 4 rankfile and hostfile"},
    .paths = paths,
    .write = write_openmpi,
};
