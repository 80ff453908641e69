/* The machines of a measured run as a cluster: what the row says, and what such machines
 * usually have where it is silent. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define INTER_US 12.0
/* Boards of four have as much as nodes of eight, whose network is what is usual (in supercomputers
 * a card each), smaller nodes their share, but a card. */
#define GPUS_OF_BOARD 4.0
static double usual_node (const char *type, int gpus)
{
    double gb_per_s = topology_usual_links (type).node_gb_per_s,
           all = fmin (GPUS_OF_BOARD, topology_usual_node_gpus (type));

    return fmax (fmin (gb_per_s, TOPOLOGY_NIC_GB_PER_S),
                 gb_per_s * fmin (1.0, gpus / all));
}

/* Where the profile of a source says that larger jobs got less of its network, a node has the
 * usual rate at so many nodes (docs/formulas.md, T10). */
#define JOB_SIZE_USUAL 19.0

/* Boards without switches link GPUs to each other, so that a small group of tensor parallelism gets
 * a part of what all reach.  Where each has a link to every other, eight MI300X or four GPUs of a
 * board of Hopper, A100 or V100 (of whose six links two go to each), a group has those to its
 * members: on MI300X two reach 48 GB/s of bus bandwidth and eight 313 (stas00/ml-engineering,
 * network).  What is usual of GH200 is a pair's.  The two dies of an MI250X have four links to each
 * other, to others three.  Eight V100 are a hybrid cube mesh (NVIDIA DGX-1 whitepaper): all share
 * six rings, four have some of them, and a pair one link, 20 of 130 GB/s.  What is usual of MI100
 * is a pair's of a hive of four; eight have the 20 GB/s of PCIe 4 between two hives. */
static double mesh_share (const struct calibrate_run *run,
                          const struct topology_gpu_type *type)
{
    int tp = run->config.deg.tp, node = run->gpus_per_node;
    int members = tp > 1 ? tp : run->gpus;

    if (run->gpus == 1)
        return 1.0;
    if (node == 8 && strncmp (type->name, "v100-sxm", 8) == 0)
        return tp == 2 ? 0.15 : tp == 4 ? 0.7 : 1.0;
    if (strncmp (type->name, "mi250", 5) == 0)
        return tp == 2 ? 4.0 / 3.0 : 1.0;
    members = members < node ? members : node;
    if (strncmp (type->name, "mi100", 5) == 0 && members > 4)
        return 0.6;
    if (strncmp (type->name, "gh200-", 6) == 0 || strncmp (type->name, "mi100", 5) == 0)
        return members - 1.0;
    if (strncmp (type->name, "mi3", 3) == 0 ||
        (node == 4 && (strncmp (type->name, "h100-sxm", 8) == 0 ||
                       strncmp (type->name, "a100-sxm", 8) == 0 ||
                       strncmp (type->name, "v100-sxm", 8) == 0)))
        return (members - 1.0) / (node - 1.0);
    return 1.0;
}

int calibrate_domain (const struct calibrate_run *run)
{
    int rack = topology_usual_rack (run->part[0].type->name);

    return rack ? rack : run->gpus_per_node;
}

enum status calibrate_cluster (const struct calibrate_run *run,
                               const struct workload_profile *p,
                               struct topology_cluster **out, struct error *err)
{
    struct text line = {0};
    int job_nodes = 0;
    enum status st;

    for (int i = 0; i < run->n_parts; i++)
        job_nodes += run->part[i].nodes;
    for (int i = 0; i < run->n_parts; i++) {
        const struct topology_gpu_type *type = run->part[i].type;
        struct topology_usual usual = topology_usual_links (type->name);
        double intra = usual.intra_gb_per_s, node = usual.node_gb_per_s;
        int rack = topology_usual_rack (type->name);
        int domain = rack ? rack : run->gpus_per_node;
        int gpus = run->gpus < domain ? run->gpus : domain;
        int nodes =
            run->n_parts == 1 ? (run->gpus + gpus - 1) / gpus : run->part[i].nodes;

        intra *= mesh_share (run, type);
        if (rack)
            node *= gpus / 8.0;
        else if (run->part[i].inter_bytes_per_s > 0)
            node = run->part[i].inter_bytes_per_s / UNITS_GB;
        else if (job_nodes > 1)
            node = usual_node (type->name, gpus) *
                   pow (JOB_SIZE_USUAL / job_nodes, p->time.job_size_power);
        text_add (&line, "%s%dx%d %s intra:%g inter:%g node:%g intra-us:%g inter-us:%g",
                  i ? " + " : "", nodes, gpus, type->name, intra,
                  fmin (node, fmax (TOPOLOGY_NIC_GB_PER_S, node / gpus)), node,
                  usual.intra_us, INTER_US);
    }
    st = topology_cluster_read (text_str (&line), out, NULL, err);
    text_free (&line);
    return st;
}
