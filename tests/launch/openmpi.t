#!/bin/bash
# A real mpirun takes the emitted rankfile on four hosts made of network namespaces: every
# rank reports the planned host and GPU, with an interleaved placement.  The wrapper refuses
# the wrong host.
. tests/lib/tap.sh

[ "$(id -u)" = 0 ] || skip_all "not root: hosts are made of network namespaces"
command -v ip >/dev/null || skip_all "package iproute2 is not installed"
command -v mpirun.openmpi >/dev/null || skip_all "package openmpi-bin is not installed"
command -v python3 >/dev/null || skip_all "package python3 is not installed"
unshare --mount --net --uts --ipc --pid --fork true 2>/dev/null ||
    skip_all "this system does not allow namespaces"

# A plan for 8 ranks on 4 hosts of 2 GPUs, its ranks interleaved by hand, with UUIDs.
python3 - >"$T/cluster.json" <<'P'
import json
print(json.dumps({"version": 1, "name": "hosts", "nodes": [
    {"name": "h%d" % i, "gpus": 2, "gpu_type": "a100-sxm4-80g",
     "gpu_uuid": ["GPU-%d-a" % i, "GPU-%d-b" % i]} for i in (1, 2, 3, 4)],
    "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 8},
              "inter": {"bandwidth_gb_per_s": 20, "latency_us": 12}}}))
P
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 16 --tp 2 --pp 2 --dp 2 \
    -o "$T/plan.json" >/dev/null || exit 1
python3 - "$T/plan.json" <<'P'
import json, sys
plan = json.load(open(sys.argv[1]))
order = [("h3", 1), ("h1", 0), ("h4", 1), ("h3", 0), ("h2", 1), ("h1", 1), ("h2", 0), ("h4", 0)]
for r in plan["ranks"]:
    r["node"], r["gpu"] = order[r["rank"]]
json.dump(plan, open(sys.argv[1], "w"))
P
expect 0 "emit" "8 ranks written" $LINKWISE emit "$T/plan.json" --to openmpi -d "$T/launch"

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4
cd "$1/launch"
run="mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent $HOSTS_RSH --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24"
report='echo "$RANK $(hostname) $LINKWISE_GPU $CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR"'
$run -np 8 --hostfile openmpi/hostfile -rf openmpi/rankfile ./exec.sh sh -c "$report" \
    >"$1/report" 2>"$1/mpirun.err"
echo $? >"$1/rc"
# The same ranks without the rankfile land elsewhere: the wrapper must stop them.
$run -np 8 --hostfile openmpi/hostfile ./exec.sh sh -c "$report" >"$1/wrong" 2>"$1/wrong.err"
echo $? >"$1/wrong.rc"
S
tests/lib/sandbox.sh "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

[ "$(cat "$T/rc" 2>/dev/null)" = 0 ]
result $? "mpirun runs" "$T/mpirun.err"
sort -n "$T/report" | awk '{ print $1, $2, $3 }' | cmp -s - "$T/launch/map.txt"
result $? "every rank is on the planned host and GPU" "$T/report"
awk '{ split($2, h, "h"); want = "GPU-" h[2] "-" ($3 ? "b" : "a"); if ($4 != want || $5 != 0 || $6 != 8 || $7 != "h3") bad = 1 } END { exit bad }' "$T/report"
result $? "it sees the GPU's UUID, local rank 0, the world and rank 0's host" "$T/report"
[ "$(cat "$T/wrong.rc")" != 0 ] && grep -q "belongs on h[1-4], but runs on h[1-4]" "$T/wrong.err"
result $? "another order is refused by the wrapper" "$T/wrong.err"
done_testing
