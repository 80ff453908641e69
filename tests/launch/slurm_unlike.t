#!/bin/bash
# A real Slurm whose node names are short, with nodes of 4 and 2 GPUs, takes a plan for a cluster
# file with full names: every rank on its host, with the GPUs that the plan uses there; also where
# no placement is bound.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

# Four nodes, of 4, 2, 4 and 2 GPUs; the plan takes the first two.
python3 - >"$T/cluster.json" <<'P'
import json
print(json.dumps({"version": 1, "name": "lab", "nodes": [
    {"name": "h%d.lab.example" % (i + 1), "gpus": g, "gpu_type": "a100-sxm4-80g"} for i, g in enumerate((4, 2, 4, 2))],
    "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 8}, "inter": {"bandwidth_gb_per_s": 20, "latency_us": 12}}}))
P
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 24 --tp 2 --pp 1 --dp 3 --only 'h[1-2].lab.example' \
    -o "$T/plan.json" >/dev/null
expect 0 "emit" "6 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"

printf '#!/bin/sh\nread -r here </proc/sys/kernel/hostname\n%s\n' 'echo "$RANK $here $LINKWISE_GPU $SLURM_STEP_GPUS $CUDA_VISIBLE_DEVICES $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $SLURM_LOCALID"' >"$T/launch/program"
chmod +x "$T/launch/program"
printf 'h2\nh4,head\n' >"$T/taken"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4
slurm_up 4 h1 h2:2 h3 h4:2 || exit 1
cd "$1/launch"
for nodes in $2; do
    sbatch -Q -W -w $nodes -o ../$nodes.out -e ../$nodes.err slurm/job.sbatch ./program
    echo $? >../$nodes.rc
    cp "$(ls -d bound-* 2>/dev/null | tail -n 1 | grep . || echo .)/map.txt" ../$nodes.map
    rm -rf bound-*
done
LINKWISE=false sbatch -Q -W -w h2,h3 -o ../order.out -e ../order.err slurm/job.sbatch ./program
# As docs/faq.md has it, with one node drained and one reserved.
scontrol update nodename=h2 state=drain reason=test
scontrol create reservation starttime=now duration=5 user=root nodes=h4 >/dev/null
for i in $(seq 50); do
    [ "$(sinfo -h -N -t drain,resv -o %N | wc -l)" = 2 ] && break
    pause 0.3
done
sinfo -h -N -p all -o '%N %t' | awk '$2 ~ /^(idle|alloc|mix|comp)$/ { print $1 }' |
    $LINKWISE plan ../cluster.json llama-2-7b --seq 1024 --global-batch 24 --tp 2 --pp 1 --dp 3 --only @- -o ../free.json >../free.out 2>&1
$LINKWISE plan ../cluster.json llama-2-7b --seq 1024 --global-batch 24 --tp 2 --pp 1 --dp 3 --exclude "@$1/taken" -o ../free2.json >>../free.out 2>&1
scontrol show node >../nodes
S2
sets="h1,h2 h1,h4"
[ -z "$LINKWISE_LONG" ] || sets="$sets h3,h4"
in_sandbox "$T/inside.sh" "$T" "$sets" >"$T/sandbox.out" 2>&1

for nodes in $sets; do
    cat "$T/sandbox.out" "$T/$nodes.err" "$T/$nodes.out" "$T/$nodes.map" >"$T/why" 2>&1
    [ "$(cat "$T/$nodes.rc")" = 0 ] && grep -q "starting the job on the placement of" "$T/$nodes.err"
    result $? "$nodes: the job runs on a placement" "$T/why"
    sort -n "$T/$nodes.out" | awk '{ print $1, $2 ".lab.example", $3 }' | cmp -s - "$T/$nodes.map" &&
        [ "$(awk '{ print $2 }' "$T/$nodes.out" | sort -u | paste -sd,)" = $nodes ]
    result $? "$nodes: every rank is on its host, under Slurm's names" "$T/why"
    awk '{ n = split($4, gpu, ","); bad = bad || n != ($2 ~ /h[13]/ ? 4 : 2) } END { exit bad || NR != 6 }' "$T/$nodes.out"
    result $? "$nodes: with all GPUs of each node" "$T/why"
    sort -n "$T/$nodes.out" | awk '{ n = split($5, gpu, ","); bad = bad || gpu[$6 + 1] != $3 || n != $7 || $6 != $9 || !($2 in node) && (node[$2] = $8) != order++ || node[$2] != $8 || ($2 in list && list[$2] != $5); list[$2] = $5 }
        END { exit bad || NR != 6 }'
    result $? "$nodes: each rank sees its node's GPUs in rank order" "$T/why"
done
cat "$T/order.err" "$T/order.out" >"$T/why"
sort -n "$T/order.out" >"$T/order"
{ for r in 0 1; do echo "$r h2 $r 0,1 0,1 $r 2 0 $r"; done; for r in 0 1 2 3; do echo "$((r + 2)) h3 $r 0,1,2,3 0,1,2,3 $r 4 1 $r"; done; } | cmp -s - "$T/order" &&
    grep -q "in the scheduler's order" "$T/order.err"
result $? "the scheduler's order: no more ranks on a node than it has GPUs" "$T/why"
grep -q "placing as planned" "$T/h1,h2.err" && ! grep -q "placing as planned" "$T/h1,h4.err"
result $? "the plan's own nodes are known by their short names"
on_free() {
    python3 -c '
import json, sys
assert {r["node"][:2] for r in json.load(open(sys.argv[1]))["ranks"]} == {"h1", "h3"}' "$1" 2>>"$T/free.out"
}
on_free "$T/free.json"
result $? "a plan on the nodes that sinfo says are neither drained nor reserved" "$T/free.out"
on_free "$T/free2.json" && grep -q '/taken: 1 of 3 names are no nodes of the cluster lab, the first "head"' "$T/free.out"
result $? "a plan without those in a file; others there are noted" "$T/free.out"
$LINKWISE topo --from "$T/nodes" -o "$T/nodes.json" >"$T/why" 2>&1
python3 -c '
import json, sys
at = {n["name"]: (n["gpus"], n["state"], n.get("reason", "")) for n in json.load(open(sys.argv[1]))["nodes"]}
print(at)
assert [at[h][:2] for h in sorted(at)] == [(4, "ok"), (2, "drained"), (4, "ok"), (2, "drained")]
assert at["h2"][2].startswith("test") and "RESERVED" in at["h4"][2]' "$T/nodes.json" >>"$T/why" 2>&1
result $? "scontrol show node: drained and reserved nodes are not in use" "$T/why"
done_testing
