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
noted "$1/report" $run -n 64 -f mpich/machinefile ./exec.sh "$1/program"
noted "$1/wrong" $run -n 64 -f <(sort mpich/machinefile) ./exec.sh "$1/program"
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

reported mpiexec "$T" "$T/report"
stopped wrong
echo "# mpiexec with 64 ranks: $(cat "$T/report.ms") ms"
done_testing
