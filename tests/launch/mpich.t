#!/bin/bash
# A real MPICH takes the emitted machine file: ranks interleaved over 4 hosts (64 over 8 in the long
# form), every rank on the planned host and GPU, although MPI_LOCALRANKID is 0 for all.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs mpich mpiexec.hydra

hosts=4 gpus=2
[ -z "$LINKWISE_LONG" ] || hosts=8 gpus=8
ranks=$((hosts * gpus))
placed "$T" $hosts $gpus || exit 1
expect 0 "emit" "$ranks ranks written" $LINKWISE emit "$T/plan.json" --to mpich -d "$T/launch"

reporter "$T/program"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up $(seq -f h%.0f $3)
cd "$1/launch"
run="mpiexec.hydra -launcher rsh -launcher-exec $HOSTS_RSH -iface br0"
noted "$1/report" $run -n $2 -f mpich/machinefile ./exec.sh "$1/program"
noted "$1/wrong" $run -n $2 -f <(sort mpich/machinefile) ./exec.sh "$1/program"
S2
in_sandbox "$T/inside.sh" "$T" $ranks $hosts >"$T/sandbox.out" 2>&1

reported mpiexec "$T" "$T/report"
stopped wrong
echo "# mpiexec with $ranks ranks: $(cat "$T/report.ms") ms"
done_testing
