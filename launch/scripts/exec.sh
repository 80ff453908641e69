#!/bin/sh
# linkwise: run a program as one rank of a placed job, on the GPU that the plan says.
#     LAUNCHER ... exec.sh PROGRAM [ARGUMENT...]
#     exec.sh --where          print `rank host` of this process as the launcher made it
#     exec.sh --host           print this host's name in map.txt
# It looks its rank up in map.txt (rank host gpu) beside this file, refuses to start on
# another host than the planned one (LINKWISE_ANY_HOST=1 lets it), and sets
# CUDA_VISIBLE_DEVICES, RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
# MASTER_PORT.  With gpu-numa.txt and numactl it binds to the GPU's NUMA node
# (LINKWISE_NUMA=0 leaves that out).  LINKWISE_PLACEMENT=launcher takes the launcher's own
# order instead of the map: the GPU is the local rank.
here=$(dirname -- "$0")
fail() {
    printf '%s\n' "exec.sh: $*" >&2
    exit 1
}
[ $# -gt 0 ] || fail 'no program given'

# The host's name: in a pod the node's, which the manifest passes.
me=${LINKWISE_NODE:-}
[ -n "$me" ] || { [ -n "${LINKWISE_NODE_FILE:-}" ] && me=$(cat "$LINKWISE_NODE_FILE"); }
me=${me:-$(uname -n)}

# The host's name in map.txt: itself, or, where one of the two is short, the only one that is
# the same up to the first dot.  Prints nothing where there is none; fails where a short name
# may be several hosts.
planned_name() {
    awk -v me="$me" '
        function short(name) { sub(/\..*/, "", name); return name }
        $2 == me { same = 1; exit }
        short($2) == short(me) && !($2 in alike) { alike[$2]; n++; name = $2 }
        END {
            either = me == short(me) || short(me) in alike
            if (same) print me
            else if (n == 1 && either) print name
            exit !same && n > 1 && either
        }' "$here/map.txt"
}
several="this host, $me, may be several of $here/map.txt, whose names differ after the first dot: LINKWISE_NODE, or a file on each host that LINKWISE_NODE_FILE names, says which"
if [ "$1" = --host ]; then
    name=$(planned_name) || fail "$several"
    [ -n "$name" ] || fail "this host, $me, is not in $here/map.txt"
    printf '%s\n' "$name"
    exit 0
fi

# An agent that starts ranks itself inherits the variables of the launcher around it.
if [ -n "${LINKWISE_RANK:-}" ]; then
    rank=$LINKWISE_RANK
elif [ -n "${TORCHELASTIC_RUN_ID:-}" ]; then
    rank=${RANK:-}
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

if [ "${LINKWISE_PLACEMENT:-plan}" = launcher ]; then
    host=$me
    gpu=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-}}}
    world=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-${SLURM_NTASKS:-}}}
    [ -n "$gpu" ] && [ -n "$world" ] || fail 'the launcher gives no local rank and no size'
    [ -n "${MASTER_ADDR:-}" ] || fail 'MASTER_ADDR is not set'
else
    line=$(awk -v r="$rank" '$1 == r { print $2, $3; exit }' "$here/map.txt")
    [ -n "$line" ] || fail "rank $rank is not in $here/map.txt"
    host=${line% *} gpu=${line#* }
    world=$(awk 'END { print NR }' "$here/map.txt")
    if [ "${LINKWISE_ANY_HOST:-0}" != 1 ]; then
        name=$(planned_name) || fail "rank $rank belongs on $host; $several"
        [ "$name" = "$host" ] ||
            fail "rank $rank belongs on $host, but runs on $me: the launcher did not keep the order"
    fi
    MASTER_ADDR=${MASTER_ADDR:-$(awk '$1 == 0 { print $2; exit }' "$here/map.txt")}
fi

# The entry of this GPU in a table `host gpu value`, or nothing.
lookup() {
    [ -f "$here/$1" ] &&
        awk -v h="$host" -v g="$gpu" '$1 == h && $2 == g { print $3; exit }' "$here/$1"
}
device=$(lookup gpu-uuid.txt)
numa=$(lookup gpu-numa.txt)

CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${device:-$gpu}
RANK=$rank WORLD_SIZE=$world LOCAL_RANK=0 LOCAL_WORLD_SIZE=1
MASTER_PORT=${MASTER_PORT:-29500}
LINKWISE_HOST=$host LINKWISE_GPU=$gpu
export CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
export MASTER_ADDR MASTER_PORT LINKWISE_HOST LINKWISE_GPU

# Binding is worth having and never worth failing for: it is tried before it is used.
if [ -n "$numa" ] && [ "${LINKWISE_NUMA:-1}" != 0 ] && command -v numactl >/dev/null 2>&1 &&
    numactl --cpunodebind="$numa" --preferred="$numa" true >/dev/null 2>&1; then
    exec numactl --cpunodebind="$numa" --preferred="$numa" -- "$@"
fi
exec "$@"
