#!/bin/bash
# A real MPICH takes the emitted machine file: 64 ranks interleaved over 8 hosts, every rank on
# the planned host and GPU, although MPI_LOCALRANKID is 0 for all.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs mpich mpiexec.hydra

placed "$T" 8 8 || exit 1
expect 0 "emit" "64 ranks written" $LINKWISE emit "$T/plan.json" --to mpich -d "$T/launch"

reporter "$T/program"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4 h5 h6 h7 h8
cd "$1/launch"
run="mpiexec.hydra -launcher rsh -launcher-exec $HOSTS_RSH -iface br0"
since=$(date +%s%N)
$run -n 64 -f mpich/machinefile ./exec.sh "$1/program" >"$1/report" 2>"$1/mpiexec.err"
echo $? >"$1/report.rc"
echo $((($(date +%s%N) - since) / 1000000)) >"$1/ms"
$run -n 64 -f <(sort mpich/machinefile) ./exec.sh "$1/program" >"$1/wrong" 2>"$1/wrong.err"
echo $? >"$1/wrong.rc"
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

reported mpiexec "$T" "$T/report" "$T/mpiexec.err"
[ "$(cat "$T/wrong.rc")" != 0 ] && grep -q "belongs on h[1-8], but runs on h[1-8]" "$T/wrong.err"
result $? "another order is refused by the wrapper" "$T/wrong.err"
echo "# mpiexec with 64 ranks: $(cat "$T/ms") ms"
done_testing
