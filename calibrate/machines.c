/* The machines of a measured run as a cluster: what the row says, and what such machines
 * usually have where it is silent. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define INTER_US 12.0
/* Where the profile of a source says that larger jobs got less of its network, a node has the
 * usual rate at so many nodes (docs/formulas.md, T10). */
#define JOB_SIZE_USUAL 19.0

/* Eight V100 on NVLink are a hybrid cube mesh (NVIDIA DGX-1 whitepaper): all eight share six rings,
 * four have some of them, and a pair one link, so that small groups of tensor parallelism get a
 * part of the rate.  0.15 is one link of 20 GB/s in 130. */
static double mesh_share (const struct calibrate_run *run,
                          const struct topology_gpu_type *type)
{
    int tp = run->config.deg.tp;
    bool mesh =
        run->gpus_per_node == 8 && run->gpus > 1 && strncmp (type->name, "v100-", 5) == 0;

    return !mesh ? 1.0 : tp == 2 ? 0.15 : tp == 4 ? 0.7 : 1.0;
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
            node *= pow (JOB_SIZE_USUAL / job_nodes, p->time.job_size_power);
        text_add (&line, "%s%dx%d %s intra:%g inter:%g node:%g intra-us:%g inter-us:%g",
                  i ? " + " : "", nodes, gpus, type->name, intra,
                  fmin (node, fmax (TOPOLOGY_NIC_GB_PER_S, node / gpus)), node,
                  usual.intra_us, INTER_US);
    }
    st = topology_cluster_read (text_str (&line), out, NULL, err);
    text_free (&line);
    return st;
}
