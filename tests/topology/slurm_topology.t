#!/bin/bash
# A real Slurm reads the exported tree and keeps slow pairs apart: a job of two nodes lands on two
# that are well joined, though others come first.
. tests/lib/tap.sh
needs_hosts
needs_slurm
python3 - "$T" <<'P'
import json, sys
names = ["h1", "h2", "h3", "h4"]
rows = [[None if i == j else 48 if i % 2 == j % 2 else 12 for j in range(4)] for i in range(4)]
json.dump({"version": 1, "name": "pairs",
           "nodes": [{"name": n, "gpus": 1, "gpu_type": "h100-sxm5-80g"} for n in names],
           "links": {"inter": {"bandwidth_gb_per_s": rows, "latency_us": 12}}}, open(sys.argv[1] + "/pairs.json", "w"))
P
expect 0 "export" "written" $LINKWISE cluster export --to slurm-topology "$T/pairs.json" -o "$T/topology.conf"
cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4
mkdir -p "$hosts_dir/slurm"
cp "$1/topology.conf" "$hosts_dir/slurm/"
SLURM_MORE=$2 slurm_up 1 h1 h2 h3 h4 || exit 1
scontrol show topology >"$1/shown"
srun -n 2 -N 2 --exclusive hostname >"$1/hosts"
S
reads() { in_sandbox "$T/inside.sh" "$T" "$1" >"$T/why" 2>&1; }
reads TopologyPlugin=topology/tree
{ grep -Eq "SwitchName=s0 Level=0 .*Nodes=h\[1,3\]" "$T/shown" && grep -Eq "SwitchName=s1 Level=0 .*Nodes=h\[2,4\]" "$T/shown" &&
    grep -Eq "SwitchName=s2 Level=1 .*Nodes=h\[1-4\] Switches=s\[0-1\]" "$T/shown"; } 2>>"$T/why"
result $? "Slurm shows the tree" "$T/why"
hosts=$(sort "$T/hosts" | paste -sd' ')
[ "$hosts" = "h1 h3" ] || [ "$hosts" = "h2 h4" ]
result $? "a job of two nodes gets two that are well joined: $hosts" "$T/why"
done_testing
