/* Slurm: a host file, one host per line in rank order, which srun obeys under
 * SLURM_HOSTFILE with the arbitrary distribution. */
#include "launch/launch_private.h"

static void write_slurm (const struct launch_input *in, struct launch_files *f,
                         struct text *readme)
{
    const struct topology_cluster *c = in->cluster;
    const struct workload_plan *p = in->plan;
    struct text *hosts = launch_file (f, "slurm/hostfile", 0644);
    int most = 0;

    for (int r = 0; r < p->n_ranks; r++) {
        int gpus = c->node[c->node_of_gpu[in->gpu[r]]].gpus;

        text_add (hosts, "%s\n", p->place[r].node);
        most = gpus > most ? gpus : most;
    }
    text_add (
        readme,
        "\nSlurm, inside an allocation of exactly these nodes:\n\n"
        "    SLURM_HOSTFILE=slurm/hostfile srun -n %d -m arbitrary --gres=gpu:%d \\\n"
        "        ./exec.sh PROGRAM\n",
        p->n_ranks, most);
}

static const char *const paths[] = {"slurm/hostfile", NULL};

const struct launcher launch_slurm = {
    .target = {"slurm", "Slurm host file for srun -m arbitrary"},
    .paths = paths,
    .write = write_slurm,
};
