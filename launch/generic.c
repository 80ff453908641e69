/* The table that every target stands on, and the wrapper that obeys it. */
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

static const char *const wrapper[] = {
    "#!/bin/sh",
    "# linkwise: run a program as one rank of a placed job, on the GPU that the plan "
    "says.",
    "#     LAUNCHER ... exec.sh PROGRAM [ARGUMENT...]",
    "# It looks its rank up in map.txt (rank host gpu) beside this file, refuses to "
    "start on",
    "# another host than the planned one (LINKWISE_ANY_HOST=1 lets it), and sets",
    "# CUDA_VISIBLE_DEVICES, RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.",
    "here=$(dirname -- \"$0\")",
    "fail() { printf '%s\\n' \"exec.sh: $*\" >&2; exit 1; }",
    "rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-${RANK:-}}}}}",
    "[ -n \"$rank\" ] || fail 'no rank: OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, "
    "SLURM_PROCID and RANK are all unset'",
    "[ $# -gt 0 ] || fail 'no program given'",
    "line=$(awk -v r=\"$rank\" '$1 == r { print $2, $3; exit }' \"$here/map.txt\")",
    "[ -n \"$line\" ] || fail \"rank $rank is not in $here/map.txt\"",
    "host=${line% *} gpu=${line#* }",
    "me=$(hostname)",
    "if [ \"$me\" != \"$host\" ] && [ \"${me%%.*}\" != \"${host%%.*}\" ] &&",
    "   [ \"${LINKWISE_ANY_HOST:-0}\" != 1 ]; then",
    "    fail \"rank $rank belongs on $host, but runs on $me: the launcher did not keep "
    "the "
    "order\"",
    "fi",
    "device=$gpu",
    "if [ -f \"$here/gpu-uuid.txt\" ]; then",
    "    uuid=$(awk -v h=\"$host\" -v g=\"$gpu\" '$1 == h && $2 == g { print $3; exit }' "
    "\"$here/gpu-uuid.txt\")",
    "    device=${uuid:-$gpu}",
    "fi",
    "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$device",
    "RANK=$rank LOCAL_RANK=0",
    "WORLD_SIZE=$(awk 'END { print NR }' \"$here/map.txt\")",
    "MASTER_ADDR=${MASTER_ADDR:-$(awk '$1 == 0 { print $2; exit }' \"$here/map.txt\")}",
    "MASTER_PORT=${MASTER_PORT:-29500}",
    "LINKWISE_HOST=$host LINKWISE_GPU=$gpu",
    "export CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES RANK LOCAL_RANK WORLD_SIZE "
    "MASTER_ADDR",
    "export MASTER_PORT LINKWISE_HOST LINKWISE_GPU",
    "exec \"$@\"",
};

static enum status write_uuids (const struct launch_input *in, struct launch_files *f,
                                struct error *err)
{
    const struct topology_cluster *c = in->cluster;
    struct text *t = NULL;

    for (int r = 0; r < in->plan->n_ranks; r++) {
        const struct topology_node *n = &c->node[c->node_of_gpu[in->gpu[r]]];
        int k = in->gpu[r] - n->first_gpu;

        if (!n->gpu_uuid)
            continue;
        if (!uuid_ok (n->gpu_uuid[k]))
            return err_set (
                err, ST_INVALID,
                "node %s: gpu_uuid[%d]: expected letters, digits and '-', found "
                "\"%.60s\"",
                n->name, k, n->gpu_uuid[k]);
        if (!t)
            t = launch_file (f, "gpu-uuid.txt", 0644);
        text_add (t, "%s %d %s\n", n->name, k, n->gpu_uuid[k]);
    }
    return ST_OK;
}

enum status launch_generic (const struct launch_input *in, struct launch_files *f,
                            struct text *readme, struct error *err)
{
    struct text *map = launch_file (f, "map.txt", 0644);
    const struct workload_degrees *d = &in->plan->config.deg;

    for (int r = 0; r < in->plan->n_ranks; r++)
        text_add (map, "%d %s %d\n", r, in->plan->place[r].node, in->plan->place[r].gpu);

    struct text *sh = launch_file (f, "exec.sh", 0755);

    for (size_t i = 0; i < sizeof wrapper / sizeof *wrapper; i++)
        text_add (sh, "%s\n", wrapper[i]);

    text_add (
        readme,
        "A placed job: %d ranks, tp %d x cp %d x dp %d x pp %d, in Megatron's rank "
        "order\n"
        "tp-cp-ep-dp-pp.  map.txt says `rank host gpu`; exec.sh starts a program as one "
        "rank\n"
        "on its GPU and refuses to run on another host than the planned one.  Start the "
        "job\n"
        "from this folder, which every node must see under the same path; PROGRAM is "
        "yours.\n",
        in->plan->n_ranks, d->tp, d->cp, d->dp, d->pp);
    text_add (readme, "\nAny launcher that sets a rank (OMPI_COMM_WORLD_RANK, PMIX_RANK, "
                      "PMI_RANK,\nSLURM_PROCID or RANK) in the order of map.txt:\n\n"
                      "    LAUNCHER ... ./exec.sh PROGRAM\n");
    return write_uuids (in, f, err);
}
