#!/bin/bash
# A real mpirun takes the emitted rankfile: ranks interleaved over 4 hosts (8 in the long form),
# every rank on the planned host and GPU.  Without the rankfile the wrapper refuses to start.  What each rank
# reports about itself goes through `linkwise check --running`.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs openmpi-bin mpirun.openmpi

no_driver
hosts=4 gpus=2
[ -z "$LINKWISE_LONG" ] || hosts=8 gpus=8
ranks=$((hosts * gpus))
placed "$T" $hosts $gpus || exit 1
expect 0 "emit" "$ranks ranks written" $LINKWISE emit "$T/plan.json" --to openmpi,deepspeed -d "$T/launch"

reporter "$T/program"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up $(seq -f h%.0f $3)
PATH=$1/no-driver/bin:$PATH
cd "$1/launch"
run="mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent $HOSTS_RSH --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24"
noted "$1/report" $run -np $2 --hostfile openmpi/hostfile -rf openmpi/rankfile ./exec.sh "$1/program"
# The same ranks without the rankfile land elsewhere: the wrapper must stop them.
noted "$1/wrong" $run -np $2 --hostfile openmpi/hostfile ./exec.sh "$1/program"
# As DeepSpeed's openmpi launcher starts it, with the job's own report of where it is.
noted "$1/deepspeed" $run -n $2 -hostfile deepspeed/hostfile -rf deepspeed/rankfile -x LINKWISE_RUNNING="$1/running" \
    ./exec.sh ./where.sh sh -c 'exit 0'
S2
in_sandbox "$T/inside.sh" "$T" $ranks $hosts >"$T/sandbox.out" 2>&1

reported mpirun "$T" "$T/report"
stopped wrong
[ "$(cat "$T/deepspeed.rc")" = 0 ]
result $? "as DeepSpeed starts it" "$T/deepspeed.err"
cat "$T"/running/* >"$T/running.txt"
expect 0 "the running job is where the plan says" "running hosts +ok" \
    $LINKWISE check "$T/launch/plan.json" --running "$T/running.txt"
grep -Eq "running ranks +ok +$ranks of $ranks" "$T/out" && grep -Eq "running GPUs +ok" "$T/out" && grep -q "+0.00 %" "$T/out"
result $? "... all $ranks ranks, on the planned GPUs, at the planned step" "$T/out"
echo "# mpirun with $ranks ranks: $(cat "$T/report.ms") ms"
done_testing
