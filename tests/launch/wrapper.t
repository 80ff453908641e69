#!/bin/bash
# The wrapper under sh and bash: which variable is the rank, which host names are the same, what
# the program sees, and binding to a NUMA node that never fails.
. tests/lib/tap.sh
mkdir "$T/d" "$T/same"
install -m 755 launch/scripts/exec.sh "$T/d/"
install -m 755 launch/scripts/exec.sh "$T/same/"
printf '0 n1 0\n1 n2.example.org 3\n2 n3 1\n' >"$T/d/map.txt"
printf 'n1 0 0\nn2.example.org 3 4077\n' >"$T/d/gpu-numa.txt"
printf 'n1 0 GPU-aa\n' >"$T/d/gpu-uuid.txt"

mkdir "$T/uneven" "$T/mig"
cp "$T/d/exec.sh" "$T/uneven/" && cp "$T/d/exec.sh" "$T/mig/"
# Hosts of 3, 1 and 2 ranks, interleaved.
printf '0 b 7\n1 a 4\n2 a 0\n3 c 5\n4 a 2\n5 c 1\n' >"$T/uneven/map.txt"
printf 'a 0 GPU-a0\na 2 GPU-a2\na 4 GPU-a4\nc 5 GPU-c5\n' >"$T/uneven/gpu-uuid.txt"
printf '0 n1 0\n1 n1 1\n2 n2 0\n' >"$T/mig/map.txt"
printf 'n1 0 MIG-a\nn1 1 MIG-b\nn2 0 GPU-c\n' >"$T/mig/gpu-uuid.txt"
third='SLURM_NODEID=3 SLURM_STEP_NUM_NODES=6 SLURM_GTIDS=6,7'

# bash does what sh does: it takes every fifth.
runs=0
for shell in sh bash; do
    run() { # WANT VARIABLES... -- COMMAND...: standard output and error
        local want=$1 name=$2 vars=()
        shift 2
        while [ "$1" != -- ]; do
            vars+=("$1")
            shift
        done
        shift
        [ $shell = sh ] || [ -n "$LINKWISE_LONG" ] || ((runs++ % 5 == 0)) || return 0
        spawn env -i PATH="$PATH" "${vars[@]}" $shell "$T/${run_in:-d}/exec.sh" "$@" >"$T/out" 2>&1
        matches "^($want)\$" "$T/out"
        result $? "$shell: $name" "$T/out"
    }
    place='echo "$RANK $LINKWISE_HOST $LINKWISE_GPU"'
    run '1 n2' "Open MPI's rank before all" OMPI_COMM_WORLD_RANK=1 PMIX_RANK=2 PMI_RANK=0 SLURM_PROCID=0 RANK=0 LINKWISE_NODE=n2 -- --where
    run '1 n2' "then PMIx's" PMIX_RANK=1 PMI_RANK=0 SLURM_PROCID=0 RANK=0 LINKWISE_NODE=n2 -- --where
    run '1 n2' "then MPICH's" PMI_RANK=1 SLURM_PROCID=0 RANK=0 LINKWISE_NODE=n2 -- --where
    run '1 n2' "then Slurm's" SLURM_PROCID=1 RANK=0 LINKWISE_NODE=n2 -- --where
    run '1 n2' "then RANK" RANK=1 LINKWISE_NODE=n2 -- --where
    run '2 n3' "torchrun's inside a Slurm job" TORCHELASTIC_RUN_ID=none RANK=2 SLURM_PROCID=0 LINKWISE_NODE=n3 -- --where
    run '2 n3' "an agent's own" LINKWISE_RANK=2 OMPI_COMM_WORLD_RANK=0 LINKWISE_NODE=n3 -- --where
    run 'exec.sh: no rank: .*' "no rank" LINKWISE_NODE=n1 -- true
    run 'exec.sh: no rank: .*' "a rank that is no number" 'RANK=0;x' LINKWISE_NODE=n1 -- true
    run 'exec.sh: rank 3 is not in .*/map.txt' "a rank beyond the map" RANK=3 LINKWISE_NODE=n1 -- true
    run 'exec.sh: no program given' "no program" RANK=0 LINKWISE_NODE=n1 --
    run '1 n2.example.org 3' "a short name for a full one" RANK=1 LINKWISE_NODE=n2 -- sh -c "$place"
    run '0 n1 0' "a full name for a short one" RANK=0 LINKWISE_NODE=n1.example.org -- sh -c "$place"
    run 'exec.sh: rank 1 belongs on n2.example.org, but runs on n2.example.com: .*' "two full names that differ" RANK=1 LINKWISE_NODE=n2.example.com -- true
    run 'exec.sh: rank 0 belongs on n1, but runs on n11: .*' "another host" RANK=0 LINKWISE_NODE=n11 -- true
    run '0 n1 0' "another host, allowed" RANK=0 LINKWISE_NODE=n11 LINKWISE_ANY_HOST=1 -- sh -c "$place"
    run '0 0 3 1 n1 29500 GPU-aa PCI_BUS_ID' "what the program sees" RANK=0 LOCAL_RANK=5 LINKWISE_NODE=n1 -- \
        sh -c 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"'
    frameworks='echo "$CUDA_VISIBLE_DEVICES $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GROUP_WORLD_SIZE $LINKWISE_GPU"'
    uneven() { # WANT NAME HOST RANK VARIABLES...: in a job with unlike numbers of ranks
        run_in=uneven run "$1" "$2" LINKWISE_NODE="$3" RANK="$4" "${@:5}" -- sh -c "$frameworks"
    }
    uneven '7 0 1 0 0 3 7' "the node with rank 0 is the first" b 0
    uneven 'GPU-a4,GPU-a0,GPU-a2 0 3 1 1 3 4' "the node's GPUs in the order of their ranks" a 1
    uneven 'GPU-a4,GPU-a0,GPU-a2 1 3 1 1 3 0' "... the same list to the next" a 2
    uneven 'GPU-a4,GPU-a0,GPU-a2 2 3 1 1 3 2' "... and the last" a 4
    uneven '5,1 1 2 2 2 3 1' "indices where a GPU of the node has no UUID" c 5
    uneven 'GPU-a2 0 1 1 1 3 2' "LINKWISE_VISIBLE=one: its own GPU alone" a 4 LINKWISE_VISIBLE=one
    uneven 'exec.sh: LINKWISE_VISIBLE: expected node or one, found "all"' "... nothing else" a 4 LINKWISE_VISIBLE=all
    uneven 'GPU-a4,GPU-a0,GPU-a2 1 3 1 1 3 0' "an agent of its own for each rank has other numbers" a 2 TORCHELASTIC_RUN_ID=x LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 GROUP_RANK=2 \
        GROUP_WORLD_SIZE=6 CUDA_VISIBLE_DEVICES=0
    run_in=uneven run 'GPU-a4,GPU-a0,GPU-a2 none none none' "ROCm's masks, as Slurm sets them, hide nothing of the list" RANK=4 LINKWISE_NODE=a ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=1 -- \
        sh -c 'echo "$CUDA_VISIBLE_DEVICES ${ROCR_VISIBLE_DEVICES-none} ${HIP_VISIBLE_DEVICES-none} ${GPU_DEVICE_ORDINAL-none}"'
    run_in=uneven run '2 3' "MPICH's local rank is set right" MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 PMI_RANK=4 LINKWISE_NODE=a -- sh -c 'echo "$MPI_LOCALRANKID $MPI_LOCALNRANKS"'
    run_in=uneven run 'none' "... and not made up" RANK=4 LINKWISE_NODE=a -- sh -c 'echo "${MPI_LOCALRANKID:-none}"'
    run_in=mig run 'MIG-b 0 1 0 0 2 1' "a MIG instance alone" RANK=1 LINKWISE_NODE=n1 -- sh -c "$frameworks"
    # DeepSpeed's launcher says rank % (ranks of the host).
    for rank in 1 2 4; do
        uneven "GPU-a4,GPU-a0,GPU-a2 $((rank / 2)) 3 .*" "DeepSpeed's rotated local rank is set right: rank $rank" a $rank LOCAL_RANK=$((rank % 3)) LOCAL_SIZE=3 CUDA_VISIBLE_DEVICES=0,1,2
    done
    printf '0 n1.east 0\n1 n1.west 0\n2 n2 0\n3 n3 0\n4 n3.west 0\n' >"$T/same/map.txt"
    east() { # WANT NAME HOST RANK: in a job whose hosts' names are the same up to the first dot
        run_in=same run "$1" "$2" RANK="$4" LINKWISE_NODE="$3" -- sh -c "$place"
    }
    east '0 n1.east 0' "n1.east is not n1.west: the first's own" n1.east 0
    east '1 n1.west 0' "... the second's own" n1.west 1
    east 'exec.sh: rank 0 belongs on n1.east, but runs on n1.west: .*' "... another's rank" n1.west 0
    east 'exec.sh: rank 0 belongs on n1.east; this host, n1, may be several of .*LINKWISE_NODE.*' "... a short name that may be either" n1 0
    east 'exec.sh: rank 0 belongs on n1.east, but runs on n1.south: .*' "... a third" n1.south 0
    east 'exec.sh: rank 3 belongs on n3, but runs on n3.west: .*' "... a short name in the plan beside the host's own" n3.west 3
    east '2 n2 0' "... where one host alone has the short name it stands" n2.lab 2
    mkdir -p "$T/digits"
    cp "$T/d/exec.sh" "$T/digits/"
    printf '0 007 0\n1 7 1\n2 1e3 2\n' >"$T/digits/map.txt"
    printf '007 0 GPU-a\n7 1 GPU-b\n' >"$T/digits/gpu-uuid.txt"
    run_in=digits run '1 7 1 GPU-b' "host 7 is not 007" RANK=1 LINKWISE_NODE=7 -- sh -c 'echo "$RANK $LINKWISE_HOST $LINKWISE_GPU $CUDA_VISIBLE_DEVICES"'
    run_in=digits run 'exec.sh: rank 0 belongs on 007, but runs on 7: .*' "... another's rank" RANK=0 LINKWISE_NODE=7 -- true
    run_in=digits run 'exec.sh: this host, 1000, is not in .*' "1000 is not 1e3" LINKWISE_NODE=1000 -- --host
    run_in=same run n2 "this host's name in the map" LINKWISE_NODE=n2.lab -- --host
    run_in=same run 'exec.sh: this host, n1, may be several .*' "... not where several may be meant" LINKWISE_NODE=n1 -- --host
    run_in=same run 'exec.sh: this host, n9, is not in .*/map.txt' "... not where there is none" LINKWISE_NODE=n9 -- --host
    run 'm 1 1' "a master given; the index without a UUID" RANK=2 MASTER_ADDR=m MASTER_PORT=1 LINKWISE_NODE=n3 -- \
        sh -c 'echo "$MASTER_ADDR $MASTER_PORT $CUDA_VISIBLE_DEVICES"'
    run 'a  b\*\$x' "arguments" RANK=0 LINKWISE_NODE=n1 -- printf '%s\n' 'a  b*$x'
    run '7 n9 0,1 1 2 3 3 6 12 m' "the launcher's own order" SLURM_PROCID=7 SLURM_LOCALID=1 SLURM_NTASKS=12 $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- \
        sh -c 'echo "$RANK $LINKWISE_HOST $CUDA_VISIBLE_DEVICES $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GROUP_WORLD_SIZE $WORLD_SIZE $MASTER_ADDR"'
    run '7 n9 0,1,2 2 3 none' "... Open MPI's, which tells no node" OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3 OMPI_COMM_WORLD_SIZE=12 \
        SLURM_LOCALID=0 $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- sh -c 'echo "$RANK $LINKWISE_HOST $CUDA_VISIBLE_DEVICES $LOCAL_RANK $LOCAL_WORLD_SIZE ${NODE_RANK:-none}"'
    printf 'n9 1 3\n' >"$T/d/hosts.txt"
    run '1,3 1' "... the host's GPUs that are not drained" SLURM_PROCID=7 SLURM_LOCALID=1 SLURM_NTASKS=12 $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- \
        sh -c 'echo "$CUDA_VISIBLE_DEVICES $LOCAL_RANK"'
    run 'exec.sh: the launcher started local rank 0 of 3 on n9, whose GPUs in .*/hosts.txt are 1,3' "... more ranks than GPUs" \
        SLURM_PROCID=7 SLURM_LOCALID=0 SLURM_NTASKS=12 SLURM_NODEID=0 SLURM_GTIDS=7,8,9 MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
    run 'exec.sh: the launcher started local rank 2 of 2 on n9, .*' "... a local rank beyond their number" \
        SLURM_PROCID=7 SLURM_LOCALID=2 SLURM_NTASKS=12 $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
    rm "$T/d/hosts.txt"
    for number in '' x -1 '1;x' 1,2; do
        run "exec.sh: the launcher does not tell local rank, ranks on the node and ranks: found .*" "... a local rank that is no number: $number" SLURM_PROCID=7 SLURM_LOCALID="$number" SLURM_NTASKS=12 $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
        run "exec.sh: the launcher does not tell local rank, ranks on the node and ranks: found .*" "... a size that is no number: $number" SLURM_PROCID=7 SLURM_LOCALID=1 SLURM_NTASKS="$number" $third MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
    done
    for tasks in '' ,2 2, 2x '6;7' x; do
        run 'exec.sh: the launcher does not tell .*' "... a node's tasks that are no list: $tasks" SLURM_PROCID=7 SLURM_LOCALID=1 SLURM_NTASKS=12 SLURM_NODEID=3 SLURM_GTIDS="$tasks" \
            MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
    done
    run 'exec.sh: the launcher does not tell .*' "... without a local rank" RANK=7 MASTER_ADDR=m LINKWISE_PLACEMENT=launcher LINKWISE_NODE=n9 -- true
    in_turn() { # WANT NAME HOST TASKS VARIABLES...: by place on the host; its list of Slurm's tasks
        run_in=uneven run "$1" "$2" LINKWISE_PLACEMENT=host LINKWISE_NODE="$3" SLURM_NTASKS=6 SLURM_GTIDS="$4" "${@:5}" -- \
            sh -c 'echo "$RANK $LINKWISE_GPU $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $WORLD_SIZE $MASTER_ADDR $(LINKWISE_NODE='"$3 $T"'/uneven/exec.sh --where)"'
    }
    in_turn '1 4 0 3 1 6 b 1 a' "by place on the host: the first rank of its ranks" a 0,1,2 SLURM_PROCID=0 SLURM_LOCALID=0
    in_turn '4 2 2 3 1 6 b 4 a' "... the third, under Slurm's rank 2" a 0,1,2 SLURM_PROCID=2 SLURM_LOCALID=2
    in_turn '0 7 0 1 0 6 b 0 b' "... the plan's rank 0 under Slurm's rank 5" b 5 SLURM_PROCID=5 SLURM_LOCALID=0
    in_turn '5 1 1 2 2 6 b 5 c' "... Open MPI's local rank before Slurm's" c 3 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_SIZE=6 SLURM_LOCALID=0
    in_turn '3 5 0 2 2 6 b 3 c' "... an agent's own rank before all" c '' LINKWISE_RANK=3
    in_turn 'exec.sh: the launcher started 2 ranks on a, where the plan has 3' "... too few ranks on the host" a 0,1 SLURM_PROCID=0 SLURM_LOCALID=0
    in_turn 'exec.sh: the launcher started 2 ranks on b, where the plan has 1' "... too many" b 0,1 SLURM_PROCID=0 SLURM_LOCALID=0
    in_turn 'exec.sh: the launcher started 2 ranks on z, where the plan has 0' "... a host without any" z 0,1 SLURM_PROCID=0 SLURM_LOCALID=0
    in_turn 'exec.sh: the launcher started 4 ranks, the plan has 6' "... too few of all" b 0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4
    in_turn 'exec.sh: no rank: .*' "... a local rank beyond the host's" b 0 SLURM_PROCID=0 SLURM_LOCALID=1
    in_turn 'exec.sh: the launcher does not tell .*' "... no local rank" b 0 SLURM_PROCID=0
    run 'exec.sh: LINKWISE_PLACEMENT: expected plan, host or launcher, found "hosts"' "a placement that is none" RANK=0 LINKWISE_PLACEMENT=hosts LINKWISE_NODE=n1 -- true
    cp -r "$T/d" "$T/lr=1 a'b"
    for from in "lr=1 a'b/" "./lr=1 a'b/" "$T/lr=1 a'b/"; do
        (cd "$T" && env -i PATH="$PATH" RANK=1 LINKWISE_NODE=n2 $shell "${from}exec.sh" sh -c "$place" </dev/null) >"$T/out" 2>&1
        [ "$(cat "$T/out")" = '1 n2.example.org 3' ]
        result $? "$shell: from a folder $from" "$T/out"
    done
    rm -rf "$T/lr=1 a'b"
    echo n3 >"$T/node"
    run '2 n3' "the node's name from a file" RANK=2 LINKWISE_NODE_FILE="$T/node" -- --where
    env -i PATH="$PATH" RANK=0 LINKWISE_NODE=n1 $shell "$T/d/exec.sh" sh -c 'exit 42'
    [ $? = 42 ]
    result $? "$shell: the program's exit code"

    # NUMA
    mkdir -p "$T/bin"
    cat >"$T/bin/numactl" <<'N'
#!/bin/sh
[ "$1" = --cpunodebind=0 ] || exit 1
bound=$1,$2
shift 2
[ "$1" != -- ] || shift
BOUND=$bound exec "$@"
N
    chmod +x "$T/bin/numactl"
    run '--cpunodebind=0,--preferred=0' "binds to the GPU's NUMA node" PATH="$T/bin:$PATH" RANK=0 LINKWISE_NODE=n1 -- sh -c 'echo "$BOUND"'
    run 'none' "not to a node that numactl refuses" PATH="$T/bin:$PATH" RANK=1 LINKWISE_NODE=n2 -- sh -c 'echo "${BOUND:-none}"'
    run 'none' "not where it is not known" PATH="$T/bin:$PATH" RANK=2 LINKWISE_NODE=n3 -- sh -c 'echo "${BOUND:-none}"'
    run 'none' "not when it is not wanted" PATH="$T/bin:$PATH" LINKWISE_NUMA=0 RANK=0 LINKWISE_NODE=n1 -- sh -c 'echo "${BOUND:-none}"'
    mkdir -p "$T/few"
    for c in sh bash dirname awk cat env; do ln -sf "$(command -v $c)" "$T/few/$c"; done
    run 'none' "without numactl" PATH="$T/few" RANK=0 LINKWISE_NODE=n1 -- sh -c 'echo "${BOUND:-none}"'
done
if command -v numactl >/dev/null && numactl --cpunodebind=0 true 2>/dev/null; then
    env RANK=0 LINKWISE_NODE=n1 "$T/d/exec.sh" numactl --show >"$T/out" 2>&1
    grep -Eq '^(nodebind|cpubind): 0 *$' "$T/out" && grep -Eq '^preferred node: 0' "$T/out"
    result $? "the real numactl binds" "$T/out"
    env RANK=1 LINKWISE_NODE=n2 "$T/d/exec.sh" echo started >"$T/out" 2>&1
    [ "$(cat "$T/out")" = started ]
    result $? "... and a node that this machine does not have is left alone" "$T/out"
else
    skip "the real numactl binds" "package numactl is not installed, or no NUMA here"
fi
done_testing
