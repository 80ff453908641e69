#!/bin/bash
# A heterogeneous job on a real Slurm: nodes of 4 and of 2 GPUs of two types, in partitions of their
# own, ranks scattered over both; every rank is where the plan says, although Slurm numbers the
# tasks component by component.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm
no_driver

python3 - >"$T/cluster.json" <<'P'
import json
print(json.dumps({"version": 1, "name": "lab", "nodes": [
    {"name": "h%d" % (i + 1), "gpus": g, "gpu_type": t, "gpu_uuid": ["GPU-h%d-%d" % (i + 1, k) for k in range(g)]}
    for i, (g, t) in enumerate(((4, "h100-sxm5-80g"), (2, "a100-sxm4-80g")) * 2)],
    "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 8}, "inter": {"bandwidth_gb_per_s": 20, "latency_us": 12}}}))
P
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 24 --tp 2 --pp 1 --dp 6 -o "$T/plan.json" >/dev/null
# Rank 0 on a small node; tensor-parallel groups over both types.
python3 - "$T/plan.json" <<'P'
import json, random, sys
plan = json.load(open(sys.argv[1]))
place = [(n["name"], g) for n in plan["cluster"]["nodes"] for g in range(n["gpus"])]
random.seed(4)
while place[0][0] != "h4":
    random.shuffle(place)
for r in plan["ranks"]:
    r["node"], r["gpu"] = place[r["rank"]]
json.dump(plan, open(sys.argv[1], "w"))
P
expect 0 "emit" "12 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"
grep -Eq "tp groups of more than one: [1-6] of 6" "$T/launch/README"
result $? "the README counts the groups over both" "$T/launch/README"

reporter "$T/launch/program"
cat >"$T/launch/slurm_order" <<'R'
#!/bin/sh
echo "$SLURM_PROCID $RANK" >>"$LINKWISE_RUNNING.order"
exec ./program
R
chmod +x "$T/launch/slurm_order"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
SLURM_MORE='PartitionName=big Nodes=h1,h3 MaxTime=5 State=UP
PartitionName=small Nodes=h2,h4 MaxTime=5 State=UP'
hosts_up h1 h2 h3 h4
slurm_up 4 h1 h2:2 h3 h4:2 || exit 1
PATH=$1/no-driver/bin:$PATH
cd "$1/launch"
sed 's/^#SBATCH --gres=gpu:4/&\n#SBATCH --partition=big/; s/^#SBATCH --gres=gpu:2/&\n#SBATCH --partition=small/' slurm/het.sbatch >parts.sbatch
submit() { # NAME SCRIPT [ARGUMENT...]
    noted "../$1" sbatch -Q -W --export=ALL,SLURM_HOSTFILE=strange,MASTER_ADDR=h9 -o "../$1.log" -e "../$1.log" "${@:2}"
    mv "../$1.log" "../$1.out"
}
submit het parts.sbatch env LINKWISE_RUNNING="$PWD/running" ./where.sh ./slurm_order &
sed 's/--ntasks=8/--ntasks=6/; s/--ntasks-per-node=4/--ntasks-per-node=3/' slurm/het.sbatch >fewer.sbatch
submit fewer fewer.sbatch ./program &
sed 's/^components=.*/components=0/' slurm/het.sbatch >one.sbatch
submit one one.sbatch ./program &
wait $(jobs -p | tail -n 3)
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

cat "$T/sandbox.out" >>"$T/het.err"
# The job's log is one file: srun says there that it cannot bind to cores.
sed -i '/^srun:/d' "$T/het.out"
reported het "$T" "$T/het"
awk '$1 != $2 { other++ } END { exit !(NR == 12 && other > 0) }' "$T/launch/running.order"
result $? "Slurm's own order is another" "$T/launch/running.order"
cat "$T"/launch/running/* >"$T/running"
expect 0 "check --running: every rank on its host and GPU" "running ranks +ok +12" $LINKWISE check "$T/plan.json" --running "$T/running"
refused() { # NAME PATTERN WHAT
    [ "$(cat "$T/$1.rc")" != 0 ] && grep -Eq "$2" "$T/$1.out" && ! grep -q "^[0-9]* h[1-4] " "$T/$1.out"
    result $? "$3" "$T/$1.out"
}
refused fewer "the launcher started 3 ranks on h[13], where the plan has 4|started 10 ranks, the plan has 12" "other numbers of ranks on a node: refused"
refused one "the launcher started 4 ranks, the plan has 12" "a component alone: refused"

cd "$T/launch" || exit 1
expect 2 "no program" "no program given" slurm/het.sbatch
echo 0123456789abcdef >generation
expect 1 "a folder of another plan" "holds another plan" slurm/het.sbatch ./program
done_testing
