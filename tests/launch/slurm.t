#!/bin/bash
# A real Slurm takes the emitted host file, multi-prog file and batch script: ranks interleaved
# over 4 hosts (8 in the long form), every rank on the planned host and GPU.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

hosts=4 gpus=2
[ -z "$LINKWISE_LONG" ] || hosts=8 gpus=8
ranks=$((hosts * gpus))
placed "$T" $hosts $gpus || exit 1
expect 0 "emit" "$ranks ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"

reporter "$T/launch/program"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
all=$(seq -f h%.0f $3)
hosts_up $all
slurm_up $2 $all || exit 1
cd "$1/launch"
cat >../allocated.sh <<'S3'
run="srun -n $1 -m arbitrary --gres=gpu:$2 --cpu-bind=none"
export SLURM_HOSTFILE=slurm/hostfile
noted ../hostfile $run ./exec.sh ./program
noted ../multi $run --multi-prog slurm/multi-prog
# The scheduler's own order lands elsewhere: the wrapper must stop it.
unset SLURM_HOSTFILE
noted ../wrong srun -n $1 ./exec.sh ./program
S3
export -f noted
salloc -Q -N $3 --exclusive --gres=gpu:$2 bash ../allocated.sh $4 $2
noted ../submit sbatch -Q -W -o ../batch.out -e ../batch.err slurm/job.sbatch ./program
mv ../submit.rc ../batch.rc
S2
in_sandbox "$T/inside.sh" "$T" $gpus $hosts $ranks >"$T/sandbox.out" 2>&1

for way in hostfile multi batch; do
    reported $way "$T" "$T/$way"
done
grep -q "placing as planned" "$T/batch.err"
result $? "the batch script keeps the plan where the allocation has its nodes" "$T/batch.err"
stopped wrong
echo "# srun with $ranks ranks: $(cat "$T/hostfile.ms") ms"
done_testing
