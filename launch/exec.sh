#!/bin/sh
# linkwise: run a program as one rank of a placed job, on the GPU that the plan says.
#     LAUNCHER ... exec.sh PROGRAM [ARGUMENT...]
#     exec.sh --where          print `rank host` of this process as the launcher made it
#     exec.sh --host           print this host's name in map.txt
# It looks its rank up in map.txt (rank host gpu) beside this file, refuses to start on
# another host than the planned one (LINKWISE_ANY_HOST=1 lets it), and sets what torchrun
# would: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK and NODE_RANK (the node's
# place in the order of each node's lowest rank), GROUP_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
# CUDA_VISIBLE_DEVICES is the node's planned GPUs in the order of their ranks, the same list
# for all of them: device LOCAL_RANK is the planned one.  LINKWISE_VISIBLE=one shows each rank
# its own GPU alone, with LOCAL_RANK=0 and LOCAL_WORLD_SIZE=1.  ROCm reads that list, too, and
# counts it inside its own masks: those are taken away.  With gpu-numa.txt and numactl it
# binds to the GPU's NUMA node (LINKWISE_NUMA=0 leaves that out).  LINKWISE_PLACEMENT=host is for
# launchers that cannot order ranks: whatever the launcher's rank, the process with local rank k is
# the host's k-th rank of the map.  LINKWISE_PLACEMENT=launcher takes the launcher's own order
# instead of the map: a host's GPUs, without the drained ones, by local rank.
generation=488a47ca129dc365
case $0 in # awk takes lr=1/map.txt for an assignment
/*) here=${0%/*} ;;
*/*) here=./${0%/*} ;;
*) here=. ;;
esac
fail() {
    printf '%s\n' "exec.sh: $*" >&2
    exit 1
}
[ $# -gt 0 ] || fail 'no program given'
found=
{ read -r found <"$here/generation"; } 2>/dev/null
[ "$found" = "$generation" ] ||
    fail "$here is half written, or holds another plan: run linkwise emit again"

# The host's name: in a pod the node's, which the manifest passes.
me=${LINKWISE_NODE:-}
[ -n "$me" ] || { [ -n "${LINKWISE_NODE_FILE:-}" ] && me=$(cat "$LINKWISE_NODE_FILE"); }
[ -n "$me" ] || { read -r me </proc/sys/kernel/hostname; } 2>/dev/null
me=${me:-$(uname -n)}

# The host's name in the cluster, all of whose hosts are in hosts.txt (host gpu gpu ...), also
# those that the plan does not use: itself, or, where one of the two is short, the only one that
# is the same up to the first dot.  Prints nothing where there is none; fails where a short name
# may be several hosts.
names=$here/hosts.txt column=1
[ -f "$names" ] || names=$here/map.txt column=2
own_name() { # texts are compared, also those that look like numbers: 7 is not 007
    awk -v me="$me" -v c="$column" '
        function short(name) { sub(/\..*/, "", name); return name "" }
        BEGIN { label = short(me) }
        $c "" == me { same = 1; exit }
        index($c, label) == 1 && short($c) == label && !($c in alike) { alike[$c]; n++; name = $c }
        END {
            either = me "" == label || label in alike
            if (same) print me
            else if (n == 1 && either) print name
            exit !same && n > 1 && either
        }' "$names"
}
several="this host, $me, may be several of $names, whose names differ after the first dot: LINKWISE_NODE, or a file on each host that LINKWISE_NODE_FILE names, says which"
if [ "$1" = --host ]; then
    name=$(own_name) || fail "$several"
    [ -n "$name" ] && awk -v h="$name" '$2 "" == h { found = 1; exit } END { exit !found }' "$here/map.txt" ||
        fail "this host, $me, is not in $here/map.txt"
    printf '%s\n' "$name"
    exit 0
fi

placement=${LINKWISE_PLACEMENT:-plan}
case $placement in
plan | host | launcher) ;;
*) fail "LINKWISE_PLACEMENT: expected plan, host or launcher, found \"$placement\"" ;;
esac

# What the launcher tells of local rank (turn), ranks on the node (size) and all ranks (world).
# Slurm's tasks per node stand in the order of the node list, which in a heterogeneous step is not
# that of SLURM_NODEID: the node's own list of tasks is counted.
told() {
    if [ -n "${OMPI_COMM_WORLD_LOCAL_RANK:-}" ]; then
        turn=$OMPI_COMM_WORLD_LOCAL_RANK size=${OMPI_COMM_WORLD_LOCAL_SIZE:-} world=${OMPI_COMM_WORLD_SIZE:-}
    elif [ -n "${MPI_LOCALRANKID:-}" ]; then
        turn=$MPI_LOCALRANKID size=${MPI_LOCALNRANKS:-} world=${PMI_SIZE:-}
    else
        turn=${SLURM_LOCALID:-} world=${SLURM_NTASKS:-} size=
        case ${SLURM_GTIDS:-} in
        '' | ,* | *, | *,,* | *[!0-9,]*) ;;
        *) size=$(IFS=, && set -- $SLURM_GTIDS && echo $#) ;;
        esac
    fi
    case $turn,$size,$world in
    ,* | *, | *,,* | *[!0-9,]* | *,*,*,*) fail "the launcher does not tell local rank, ranks on the node and ranks: found \"$turn\", \"$size\" and \"$world\"" ;;
    esac
}

# An agent that starts ranks itself inherits the variables of the launcher around it.
if [ -n "${LINKWISE_RANK:-}" ]; then
    rank=$LINKWISE_RANK
elif [ -n "${TORCHELASTIC_RUN_ID:-}" ]; then
    rank=${RANK:-}
elif [ "$placement" = host ]; then
    told
    host=$(own_name) || fail "$several"
    host=${host:-$me}
    read -r rank planned all <<E
$(awk -v h="$host" -v turn="$turn" '
        { all++ }
        $2 "" == h { if (n++ == turn + 0) rank = $1 }
        END { print rank == "" ? "-" : rank, n + 0, all + 0 }' "$here/map.txt")
E
    [ "$size" = "$planned" ] ||
        fail "the launcher started $size ranks on $host, where the plan has $planned"
    [ "$world" = "$all" ] || fail "the launcher started $world ranks, the plan has $all"
else
    rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-${RANK:-}}}}}
fi
case $rank in
'' | *[!0-9]*) fail "no rank: none of OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID and RANK is a number" ;;
esac

if [ "$1" = --where ]; then
    echo "$rank $me"
    exit 0
fi

# As CUDA takes GPUs: UUIDs where the cluster file has those of all, else indices in PCI bus
# order.  A process is given one MIG instance, however many are listed.
# Beside them, the GPU's NUMA node.
uuids=$here/gpu-uuid.txt numas=$here/gpu-numa.txt
[ -f "$uuids" ] || uuids=/dev/null
[ -f "$numas" ] || numas=/dev/null
devices='
    part == 3 && $1 "" == host { uuid[$2] = $3 }
    part == 4 && $1 "" == host { numa[$2] = $3 }
    function devices(gpus, turn,   n, k, known, gpu, device, list, sees) {
        n = split(gpus, gpu, ",")
        for (k = 1; k <= n; k++) known += gpu[k] in uuid
        for (k = 1; k <= n; k++) {
            device[k] = known == n ? uuid[gpu[k]] : gpu[k]
            list = list (k > 1 ? "," : "") device[k]
            if (device[k] ~ /^MIG-/) sees = "one"
        }
        return (sees ? sees : "node") " " gpu[turn + 1] " " device[turn + 1] " " list " " numa[gpu[turn + 1]]
    }'

# What follows finds, beside the rank: world, host; the host's GPUs in the order of its ranks, as
# above; this rank's place among them (turn) and how many they are (size); the node's place (node)
# among all (nodes), empty where the launcher does not tell.  One awk reads all tables: to start
# one takes longer than most of what it does.
if [ "$placement" = launcher ]; then
    host=$(own_name)
    host=${host:-$me}
    told
    node='' nodes=''
    if [ -z "${OMPI_COMM_WORLD_LOCAL_RANK:-}${MPI_LOCALRANKID:-}" ]; then
        node=${SLURM_NODEID:-} nodes=${SLURM_STEP_NUM_NODES:-}
    fi
    [ -n "${MASTER_ADDR:-}" ] || fail 'MASTER_ADDR is not set'
    # A host that hosts.txt does not have is taken to have as many GPUs as ranks.
    hosts=$here/hosts.txt
    [ -f "$hosts" ] || hosts=/dev/null
    line=$(awk -v host="$host" -v size="$size" -v turn="$turn" '
        part == 1 && !known && $1 "" == host { known = 1; n = NF - 1; for (k = 0; k < n; k++) own[k] = $(k + 2) }
        END {
            for (k = 0; k < size && (!known || k < n); k++)
                gpus = gpus (k ? "," : "") (known ? own[k] : k)
            if (turn >= size || known && n < size) {
                print gpus
                exit 1
            }
            print devices(gpus, turn)
        }'"$devices" part=1 "$hosts" part=3 "$uuids" part=4 "$numas") ||
        fail "the launcher started local rank $turn of $size on $host, whose GPUs in $hosts are ${line:-none}"
    read -r sees gpu device devices numa <<E
$line
E
else
    # The host first; then its ranks, and the hosts up to its first one.
    line=$(awk -v r="$rank" '
        part == 1 && $1 == 0 { master = $2 }
        part == 1 { if ($1 == r) host = $2 ""; world++; next }
        host == "" { exit }
        part == 2 && !($2 in seen) { seen[$2]; if ($2 "" == host) node = nodes; nodes++ }
        part == 2 && $2 "" == host { if ($1 == r) turn = size; gpus = gpus (size++ ? "," : "") $3 }
        END { if (host != "") print host, turn + 0, size, node + 0, nodes, world, master, devices(gpus, turn) }'"$devices" \
        part=1 "$here/map.txt" part=2 "$here/map.txt" part=3 "$uuids" part=4 "$numas")
    [ -n "$line" ] || fail "rank $rank is not in $here/map.txt"
    read -r host turn size node nodes world first sees gpu device devices numa <<E
$line
E
    if [ "${LINKWISE_ANY_HOST:-0}" != 1 ] && [ "$me" != "$host" ]; then
        name=$(own_name) || fail "rank $rank belongs on $host; $several"
        [ "$name" = "$host" ] ||
            fail "rank $rank belongs on $host, but runs on $me: the launcher did not keep the order"
    fi
    MASTER_ADDR=${MASTER_ADDR:-$first}
fi

[ "$sees" = node ] && sees=${LINKWISE_VISIBLE:-node}
case $sees in
node) ;;
one) turn=0 size=1 devices=$device ;;
*) fail "LINKWISE_VISIBLE: expected node or one, found \"$sees\"" ;;
esac

unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$devices
RANK=$rank WORLD_SIZE=$world LOCAL_RANK=$turn LOCAL_WORLD_SIZE=$size
MASTER_PORT=${MASTER_PORT:-29500}
LINKWISE_HOST=$host LINKWISE_GPU=$gpu
export CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
export MASTER_ADDR MASTER_PORT LINKWISE_HOST LINKWISE_GPU
if [ -n "$node" ] && [ -n "$nodes" ]; then
    NODE_RANK=$node GROUP_RANK=$node GROUP_WORLD_SIZE=$nodes
    export NODE_RANK GROUP_RANK GROUP_WORLD_SIZE
fi
# MPICH says 0 of 1 to every rank where hosts repeat in its machine file.
if [ -n "${MPI_LOCALRANKID:-}" ]; then
    MPI_LOCALRANKID=$turn MPI_LOCALNRANKS=$size
    export MPI_LOCALRANKID MPI_LOCALNRANKS
fi

# Binding is worth having and never worth failing for: it is tried before it is used.
if [ -n "$numa" ] && [ "${LINKWISE_NUMA:-1}" != 0 ] && command -v numactl >/dev/null 2>&1 &&
    numactl --cpunodebind="$numa" --preferred="$numa" true >/dev/null 2>&1; then
    exec numactl --cpunodebind="$numa" --preferred="$numa" -- "$@"
fi
exec "$@"
