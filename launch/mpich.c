/* MPICH (Hydra): a machine file with one line a rank, whose order is the rank order.
 *
 * With repeated hosts every rank has MPI_LOCALRANKID=0, so the wrapper must choose the GPU;
 * a file that is too short would wrap around silently, so -n is exact. */
#include "launch/launch_private.h"

static enum status write_mpich (const struct launch_input *in, struct launch_files *f,
                                struct text *readme, struct error *err)
{
    const struct workload_plan *p = in->plan;
    struct text *machines = launch_file (f, "mpich/machinefile", 0644);

    (void) err;
    for (int r = 0; r < p->n_ranks; r++)
        text_add (machines, "%s:1\n", p->place[r].node);
    text_add (readme,
              "MPICH (Hydra); do not leave the wrapper out, every rank would take GPU "
              "0:\n\n"
              "    mpiexec -n %d -f mpich/machinefile ./exec.sh PROGRAM\n",
              p->n_ranks);
    return ST_OK;
}

const struct launcher launch_mpich = {
    .target = {"mpich", "MPICH machine file"},
    .readme = "mpich/README",
    .paths = {"mpich/machinefile"},
    .write = write_mpich,
};
