#!/bin/bash
# Two racks of two hosts with two ranks each, made of network namespaces: a trunk between them
# that is thinner than a host.  The links file tells what all of a host reach together by where
# they send to, and merge keeps it for the planner.
. tests/lib/tap.sh
needs_hosts

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4
hosts_trunk 100 h3 h4
hosts_shape_all 300 h1 h2 h3 h4
export WORLD_SIZE=8 MASTER_ADDR=h1 MASTER_PORT=29500 BWPROBE_TOKEN=test ASAN_OPTIONS=detect_leaks=0
for r in 7 6 5 4 3 2 1 0; do
    RANK=$r on h$((r / 2 + 1)) "$BWPROBE" --transport socket --passes 2 --pause 0 \
        --measure 0.02 --max-size 1 --timeout 2 --budget 60 --seed 7 --interface 10.77.0.0/24 \
        -o "$1/links.json" &
done
wait $!
S
SANDBOX_LIMIT=150 in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1
result $? "the links are measured" "$T/sandbox.out"
check() { # FILE NAME
    python3 - "$1" >"$T/why" 2>&1 <<'P'
import json, sys
d = json.load (open (sys.argv[1]))["links"]["gpu"]
pair, node, alone = d["node_pair_gb_per_s"], d["node_gb_per_s"], d["bandwidth_gb_per_s"]
print (pair, node)
for i in range (4):
    mate = i ^ 1
    for j in (0, 1, 2, 3):
        if j not in (i, mate):
            assert pair[i][j] < 0.6 * pair[i][mate], (i, j)
            # Beyond the trunk a pair alone has more than two that are measured amid others.
            assert pair[i][j] < 1.1 * alone[2 * i][2 * j], (i, j)
    assert node[i] > 0.7 * pair[i][mate], i
P
    result $? "$2" "$T/why"
}
check "$T/links.json" "what hosts reach together differs by where they send to"
"$LINKWISE" cluster merge "$T/links.json" --gpu-type t4 -o "$T/cluster.json" >"$T/out" 2>&1
result $? "merge" "$T/out"
check "$T/cluster.json" "... keeps it"
done_testing
