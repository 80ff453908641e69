#!/bin/bash
# A real Slurm takes the emitted host file, multi-prog file and batch script: 64 ranks
# interleaved over 8 hosts, every rank on the planned host and GPU.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs slurmctld slurmctld
needs slurmd slurmd
needs slurm-client srun sbatch

placed "$T" 8 8 || exit 1
expect 0 "emit" "64 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"

cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4 h5 h6 h7 h8
slurm_up 8 h1 h2 h3 h4 h5 h6 h7 h8 || exit 1
cd "$1/launch"
report='echo "$RANK $(hostname) $LINKWISE_GPU $CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR"'
printf '#!/bin/sh\n%s\n' "$report" >program
chmod +x program
cat >../allocated.sh <<'S3'
run="srun -n 64 -m arbitrary --gres=gpu:8 --cpu-bind=none"
since=$(date +%s%N)
SLURM_HOSTFILE=slurm/hostfile $run ./exec.sh ./program >../hostfile.out 2>../hostfile.err
echo $? >../hostfile.rc
echo $((($(date +%s%N) - since) / 1000000)) >../hostfile.ms
SLURM_HOSTFILE=slurm/hostfile $run --multi-prog slurm/multi-prog >../multi.out 2>../multi.err
echo $? >../multi.rc
# The scheduler's own order lands elsewhere: the wrapper must stop it.
srun -n 64 ./exec.sh ./program >../wrong.out 2>../wrong.err
echo $? >../wrong.rc
S3
salloc -Q -N 8 --exclusive --gres=gpu:8 sh ../allocated.sh
sbatch -Q -W -o ../batch.out -e ../batch.err slurm/job.sbatch ./program
echo $? >../batch.rc
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

for way in hostfile multi batch; do
    [ "$(cat "$T/$way.rc" 2>/dev/null)" = 0 ]
    result $? "$way: srun runs" "$T/$way.err"
    same_as_map "$T" "$T/$way.out"
    result $? "$way: every rank is on the planned host and GPU" "$T/$way.out"
    first=$(awk 'NR == 1 { print $2 }' "$T/launch/map.txt")
    awk -v m="$first" '$4 != "GPU-" $2 "-" $3 || $5 != 0 || $6 != 64 || $7 != m { bad = 1 } END { exit bad || NR != 64 }' "$T/$way.out"
    result $? "$way: it sees the GPU's UUID, local rank 0, the world and rank 0's host" "$T/$way.out"
done
grep -q "placing as planned" "$T/batch.err"
result $? "the batch script keeps the plan where the allocation has its nodes" "$T/batch.err"
[ "$(cat "$T/wrong.rc")" != 0 ] && grep -q "belongs on h[1-8], but runs on h[1-8]" "$T/wrong.err"
result $? "another order is refused by the wrapper" "$T/wrong.err"
echo "# srun with 64 ranks: $(cat "$T/hostfile.ms") ms"
done_testing
