/* Slurm: a host file, one host per line in rank order, which srun obeys under
 * SLURM_HOSTFILE with the arbitrary distribution (and before --ntasks-per-node or -w); a
 * multi-prog file, which needs no wrapper; a batch script that binds the plan to the
 * nodes that the scheduler gave; and for unlike nodes one for a heterogeneous job. */
#include "launch/launch_private.h"

#include <stdlib.h>
#include <string.h>

/* Ask for all GPUs of the nodes in use, the drained ones too, so that an index means the same
 * inside the job:
 * --gres is a number for every node alike; where they differ --gpus is their sum, which
 * Slurm can only meet with every GPU of these nodes.  Without either a step sees none. */
static void add_gpus (const struct launch_input *in, struct text *t)
{
    const struct topology_cluster *c = in->cluster;
    int gpus = launch_node_of (in, 0)->gpus_listed, sum = 0;
    bool alike = true;

    for (int i = 0; i < c->n_nodes; i++) {
        if (in->ranks_on_node[i] == 0)
            continue;
        sum += c->node[i].gpus_listed;
        alike = alike && c->node[i].gpus_listed == gpus;
    }
    if (alike)
        text_add (t, "--gres=gpu:%d", gpus);
    else
        text_add (t, "--gpus=%d", sum);
}

/* What the ranks of a node are shown, as by the wrapper. */
struct view {
    struct text devices; /* their GPUs in the order of the ranks, with commas */
    int order;           /* of the node, by its lowest rank */
    bool alone;          /* each its own GPU: a process is given one MIG instance */
    int ranks;           /* so far */
};

static void add_device (const struct launch_input *in, int rank, struct text *t)
{
    const char *uuid = launch_uuid_of (in, rank);

    if (uuid)
        text_add (t, "%s", uuid);
    else
        text_add (t, "%d", in->plan->place[rank].gpu);
}

/* view: [n_nodes], zero; the caller frees the texts. */
static void fill_views (const struct launch_input *in, struct view *view)
{
    int nodes = 0;

    for (int r = 0; r < in->plan->n_ranks; r++) {
        struct view *v = &view[in->cluster->node_of_gpu[in->gpu[r]]];
        const char *uuid = launch_uuid_of (in, r);

        if (v->devices.len == 0)
            v->order = nodes++;
        else
            text_add (&v->devices, ",");
        add_device (in, r, &v->devices);
        v->alone = v->alone || (uuid && strncmp (uuid, "MIG-", 4) == 0);
    }
}

/* srun splits these lines at blanks and knows no quotes; every word here is a number, a
 * node's name or a checked UUID. */
static enum status write_multi_prog (const struct launch_input *in, struct text *t,
                                     struct error *err)
{
    const struct workload_plan *p = in->plan;
    struct view *view = calloc ((size_t) in->cluster->n_nodes, sizeof *view);

    if (!view)
        return err_nomem (err);
    fill_views (in, view);
    for (int r = 0; r < p->n_ranks; r++) {
        int node = in->cluster->node_of_gpu[in->gpu[r]];
        struct view *v = &view[node];

        text_add (t,
                  "%d env -u ROCR_VISIBLE_DEVICES -u HIP_VISIBLE_DEVICES -u "
                  "GPU_DEVICE_ORDINAL CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=",
                  r);
        if (v->alone)
            add_device (in, r, t);
        else
            text_add (t, "%s", text_str (&v->devices));
        text_add (t,
                  " RANK=%d WORLD_SIZE=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d NODE_RANK=%d "
                  "GROUP_RANK=%d GROUP_WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT=29500 "
                  "LINKWISE_HOST=%s LINKWISE_GPU=%d ./program\n",
                  r, p->n_ranks, v->alone ? 0 : v->ranks++,
                  v->alone ? 1 : in->ranks_on_node[node], v->order, v->order, in->nodes,
                  p->place[0].node, p->place[r].node, p->place[r].gpu);
    }
    for (int i = 0; i < in->cluster->n_nodes; i++) {
        t->failed = t->failed || view[i].devices.failed;
        text_free (&view[i].devices);
    }
    free (view);
    return ST_OK;
}

static void write_batch (const struct launch_input *in, const char *gpus,
                         const struct launch_files *f, struct text *t)
{
    text_add (t,
              "#!/bin/sh\n"
              "#SBATCH --job-name=linkwise\n"
              "#SBATCH --nodes=%d\n"
              "#SBATCH --exclusive\n"
              "#SBATCH %s\n",
              in->nodes, gpus);
    text_add (t, "ranks=%d per_node=%d\nemitted_by=", in->plan->n_ranks, in->most_ranks);
    text_add_sh (t, in->linkwise);
    text_add (t, "\n");
    launch_script_add (f, "job.sbatch", t);
}

/* ---- a heterogeneous job ---- */

/* Slurm takes 128, but a job of many waits long: it starts when all can start. */
#define COMPONENTS_MAX 8

/* Nodes that one #SBATCH block can ask for. */
struct component {
    const struct topology_gpu_type *type;
    int ranks, gpus; /* on each node; with the drained ones */
    int nodes;
    struct text hosts; /* with commas */
};

/* The plan's nodes by kind, in the order of their lowest ranks; 0 where there are more
 * kinds than COMPONENTS_MAX.  The caller frees the texts. */
static int find_components (const struct launch_input *in, bool *seen,
                            struct component *component)
{
    int n = 0;

    for (int r = 0; r < in->plan->n_ranks; r++) {
        int i = in->cluster->node_of_gpu[in->gpu[r]], k = 0;
        const struct topology_node *node = &in->cluster->node[i];

        if (seen[i])
            continue;
        seen[i] = true;
        while (k < n && (component[k].type != node->type ||
                         component[k].ranks != in->ranks_on_node[i] ||
                         component[k].gpus != node->gpus_listed))
            k++;
        if (k == COMPONENTS_MAX)
            return 0;
        if (k == n)
            component[n++] = (struct component){.type = node->type,
                                                .ranks = in->ranks_on_node[i],
                                                .gpus = node->gpus_listed};
        text_add (&component[k].hosts, "%s%s", component[k].nodes++ ? "," : "",
                  node->name);
    }
    return n;
}

static void write_component (const struct component *c, struct text *t)
{
    text_add (t,
              "# %s, %d ranks a node\n"
              "#SBATCH --job-name=linkwise\n"
              "#SBATCH --nodes=%d\n"
              "#SBATCH --nodelist=%s\n"
              "#SBATCH --ntasks=%d\n"
              "#SBATCH --ntasks-per-node=%d\n"
              "#SBATCH --exclusive\n"
              "#SBATCH --gres=gpu:%d\n",
              c->type->name, c->ranks, c->nodes, text_str (&c->hosts),
              c->nodes * c->ranks, c->ranks, c->gpus);
    t->failed = t->failed || c->hosts.failed;
}

/* Nothing where all nodes are alike: the other batch script is enough. */
static enum status write_het (const struct launch_input *in, struct launch_files *f,
                              struct text *readme, struct error *err)
{
    struct component component[COMPONENTS_MAX] = {{.type = NULL}};
    bool *seen = calloc ((size_t) in->cluster->n_nodes, sizeof *seen);
    int n = seen ? find_components (in, seen, component) : 1;

    if (n == 0)
        text_add (
            readme,
            "\nThe plan's nodes are of more than %d kinds (type of GPU, number of "
            "ranks): too many for\na heterogeneous job.  Ask for all of them in one "
            "allocation, and use the host file.\n",
            COMPONENTS_MAX);
    if (n > 1) {
        struct text *t = launch_file (f, "slurm/het.sbatch", 0755);

        text_add (t, "#!/bin/sh\n");
        for (int k = 0; k < n; k++) {
            text_add (t, k ? "#SBATCH hetjob\n" : "");
            write_component (&component[k], t);
        }
        text_add (t, "components=0-%d\n", n - 1);
        launch_script_add (f, "het.sbatch", t);
        text_add (
            readme,
            "\nSlurm, as a heterogeneous job of %d components, one for each kind of the "
            "plan's nodes; for\nkinds that are in partitions of their own (add each "
            "component's --partition to its lines):\n\n"
            "    sbatch slurm/het.sbatch PROGRAM\n"
            "\nSuch a job's tasks are numbered component by component.  exec.sh sets "
            "RANK "
            "as planned, which is\nwhat PyTorch reads.  A program that asks MPI or "
            "SLURM_PROCID has Slurm's order instead: for\nit use one of the others.\n",
            n);
    }
    for (int k = 0; k < COMPONENTS_MAX; k++)
        text_free (&component[k].hosts);
    free (seen);
    return seen ? ST_OK : err_nomem (err);
}

static enum status write_slurm (const struct launch_input *in, struct launch_files *f,
                                struct text *readme, struct error *err)
{
    const struct workload_plan *p = in->plan;
    struct text *hosts, gpus = {0};

    TRY (write_multi_prog (in, launch_file (f, "slurm/multi-prog", 0644), err));
    hosts = launch_file (f, "slurm/hostfile", 0644);
    for (int r = 0; r < p->n_ranks; r++)
        text_add (hosts, "%s\n", p->place[r].node);
    add_gpus (in, &gpus);
    write_batch (in, text_str (&gpus), f, launch_file (f, "slurm/job.sbatch", 0755));
    text_add (
        readme,
        "Slurm, as a batch job: the script binds the plan to the %d node%s that the "
        "scheduler gives\n(-w \"$(sort -u slurm/hostfile | paste -sd, -)\" asks for the "
        "plan's own):\n\n"
        "    sbatch slurm/job.sbatch PROGRAM\n"
        "    sbatch slurm/job.sbatch --preflight PROGRAM     after bwprobe measured its "
        "groups\n"
        "\nSlurm, inside an allocation of these nodes:\n\n"
        "    SLURM_HOSTFILE=slurm/hostfile srun -n %d -m arbitrary %s \\\n"
        "        --cpu-bind=none ./exec.sh PROGRAM\n"
        "\nthe same without the wrapper; ./program is an executable of yours:\n\n"
        "    SLURM_HOSTFILE=slurm/hostfile srun -n %d -m arbitrary %s \\\n"
        "        --cpu-bind=none --multi-prog slurm/multi-prog\n",
        in->nodes, TEXT_S (in->nodes), p->n_ranks, text_str (&gpus), p->n_ranks,
        text_str (&gpus));
    if (gpus.failed)
        readme->failed = true;
    text_free (&gpus);
    return write_het (in, f, readme, err);
}

const struct launcher launch_slurm = {
    .target = {"slurm", "Slurm host file, multi-prog file and batch scripts"},
    .readme = "slurm/README",
    .paths = {"slurm/hostfile", "slurm/job.sbatch", "slurm/het.sbatch",
              "slurm/multi-prog"},
    .write = write_slurm,
};
