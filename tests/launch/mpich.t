#!/bin/bash
# A real MPICH takes the emitted machine file: 64 ranks interleaved over 8 hosts, every rank on
# the planned host and GPU, although MPI_LOCALRANKID is 0 for all.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs mpich mpiexec.hydra

placed "$T" 8 8 || exit 1
expect 0 "emit" "64 ranks written" $LINKWISE emit "$T/plan.json" --to mpich -d "$T/launch"

cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4 h5 h6 h7 h8
cd "$1/launch"
run="mpiexec.hydra -launcher rsh -launcher-exec $HOSTS_RSH -iface br0"
report='echo "$RANK $(hostname) $LINKWISE_GPU $CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MPI_LOCALRANKID"'
since=$(date +%s%N)
$run -n 64 -f mpich/machinefile ./exec.sh sh -c "$report" >"$1/report" 2>"$1/mpiexec.err"
echo $? >"$1/rc"
echo $((($(date +%s%N) - since) / 1000000)) >"$1/ms"
$run -n 64 -f <(sort mpich/machinefile) ./exec.sh sh -c "$report" >"$1/wrong" 2>"$1/wrong.err"
echo $? >"$1/wrong.rc"
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

[ "$(cat "$T/rc" 2>/dev/null)" = 0 ]
result $? "mpiexec runs" "$T/mpiexec.err"
same_as_map "$T" "$T/report"
result $? "every rank is on the planned host and GPU" "$T/report"
first=$(awk 'NR == 1 { print $2 }' "$T/launch/map.txt")
awk -v m="$first" '$4 != "GPU-" $2 "-" $3 || $5 != 0 || $6 != 64 || $7 != m { bad = 1 } END { exit bad || NR != 64 }' "$T/report"
result $? "it sees the GPU's UUID, local rank 0, the world and rank 0's host" "$T/report"
[ "$(cat "$T/wrong.rc")" != 0 ] && grep -q "belongs on h[1-8], but runs on h[1-8]" "$T/wrong.err"
result $? "another order is refused by the wrapper" "$T/wrong.err"
echo "# mpiexec with 64 ranks: $(cat "$T/ms") ms"
done_testing
