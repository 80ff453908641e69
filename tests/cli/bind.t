#!/bin/bash
# bind: the plan's configuration and layers, placed on the nodes given alone; what it cannot do
# it says with the contract's exit codes.
. tests/lib/tap.sh
needs python3 python3
python_up
L="spawn $LINKWISE"
C=examples/clusters/h100-17.json
$L plan $C llama-2-70b --seq 4096 --global-batch 1024 --nodes 16 --tp 8 --pp 4 --dp 4 --micro-batch 1 --schedule 1f1b -o "$T/plan.json" >"$T/why" 2>&1
same() { # PLAN BOUND NODES...: the same configuration on these nodes, one GPU a rank
    python3 - "$@" <<'P'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for k in ("degrees", "layers_per_stage", "micro_batch", "microbatches", "zero", "sequence_parallel", "recompute",
          "schedule", "job", "model", "rank_order", "cluster"):
    assert a[k] == b[k], k
places = [(r["node"], r["gpu"]) for r in b["ranks"]]
assert len(set(places)) == len(places) == len(a["ranks"])
assert {p[0] for p in places} <= set(sys.argv[3:]), {p[0] for p in places} - set(sys.argv[3:])
P
}
nodes=$(seq -f 'cnode2-%03g' 2 17)
expect 0 "on other nodes" "128 ranks placed anew: step [0-9.]+ s, [0-9.]+ % above its lower bound; written to" \
    $L bind "$T/plan.json" --only 'cnode2-[002-017]' -o "$T/bound.json"
same "$T/plan.json" "$T/bound.json" $nodes >"$T/why" 2>&1
result $? "... the same configuration, there alone" "$T/why"
expect 0 "... which check accepts" "step time +ok" $L check "$T/bound.json"
expect 0 "through standard input and output" '"ranks"' bash -c "$LINKWISE bind - --only 'cnode2-[002-017]' -o - <'$T/plan.json'"
same "$T/plan.json" "$T/out" $nodes >"$T/why" 2>&1 && cmp -s <(grep -v seconds "$T/out") <(grep -v seconds "$T/bound.json")
result $? "... is the same plan" "$T/why"
sed 's/13\.[0-9]*/7.5/g' $C >"$T/slow.json"
expect 0 "on a cluster that was measured again" "placed anew" $L bind "$T/plan.json" --only 'cnode2-[002-017]' --cluster "$T/slow.json" -o "$T/again.json"
python3 -c "
import json, sys
a, b = json.load(open('$T/bound.json')), json.load(open('$T/again.json'))
sys.exit(b['cluster'] != json.load(open('$T/slow.json')) or a['estimate']['step_s'] == b['estimate']['step_s'])" 2>"$T/why"
result $? "... the bound plan is for that cluster" "$T/why"

# Layers belong to the job, also where these nodes would like others better.
python3 - "$T/plan.json" "$T/layers.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
n = d["layers_per_stage"]
d["layers_per_stage"] = [n[0] - 1] + n[1:-1] + [n[-1] + 1]
d.pop ("layers_per_chunk", None)
json.dump(d, open(sys.argv[2], "w"))
P
expect 0 "layers split by hand" "placed anew" $L bind "$T/layers.json" --only 'cnode2-[001-016]' -o "$T/kept.json"
same "$T/layers.json" "$T/kept.json" $(seq -f 'cnode2-%03g' 16) >"$T/why" 2>&1
result $? "... stay as they are" "$T/why"
expect 0 "... and are priced as they are" "step time +ok" $L check "$T/kept.json"
# So do the layers of chunks; a file that does not spell them out gives more to later ones.
$L plan "2x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --micro-batch 1 \
    --schedule interleaved --vpp 2 -o "$T/even.json" >/dev/null
python3 - "$T/even.json" "$T" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
d["layers_per_stage"] = [9, 8, 8, 7]
json.dump(d, open(sys.argv[2] + "/unsaid.json", "w"))
for name, chunks in ("said", [[4, 5], [4, 4], [4, 4], [3, 4]]), ("odd", [[2, 7], [4, 4], [4, 4], [3, 4]]):
    d["layers_per_chunk"] = chunks
    json.dump(d, open(sys.argv[2] + "/" + name + ".json", "w"))
P
step() { $L eval "$1" --json >"$T/eval.json"; json "$T/eval.json" "d['step_s']"; }
[ "$(step "$T/said.json")" = "$(step "$T/unsaid.json")" ] && [ "$(step "$T/said.json")" != "$(step "$T/odd.json")" ]
result $? "chunks that a file does not spell out"
expect 0 "chunks split by hand" "placed anew" $L bind "$T/odd.json" --only 'n[0-1]' -o "$T/odd-bound.json"
python3 -c "
import json, sys
sys.exit(json.load(open('$T/odd-bound.json'))['layers_per_chunk'] != [[2, 7], [4, 4], [4, 4], [3, 4]])"
result $? "... stay as they are"
expect 0 "... and are priced as they are" "step time +ok" $L check "$T/odd-bound.json"
python3 - "$T/plan.json" "$T/heavy.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
d["layers_per_stage"] = [d["model"]["num_hidden_layers"] - 3, 1, 1, 1]
d.pop ("layers_per_chunk", None)
json.dump(d, open(sys.argv[2], "w"))
P
expect 3 "layers that fit nowhere" "stage 0 with its 77 layers needs .* GiB, the limit is .* GiB on the GPUs it got" \
    $LINKWISE bind "$T/heavy.json" --only 'cnode2-[001-016]' -o "$T/no.json"
expect 1 "too few nodes" "the plan needs 128 GPUs, --only .* has 64: ask the scheduler for more nodes" $L bind "$T/plan.json" --only 'cnode2-[001-008]' -o "$T/no.json"
expect 2 "a node that is not in the cluster" 'only: the cluster h100-17 has no node "m1"' $L bind "$T/plan.json" --only m1 -o "$T/no.json"
# Slurm's names may be short where the cluster file's are full, and the other way round.
sed 's/"\(cnode2-[0-9]*\)"/"\1.lab.example"/g' "$T/plan.json" >"$T/full.json"
expect 0 "short names for full ones" "128 ranks placed anew" $L bind "$T/full.json" --only 'cnode2-[002-017]' -o "$T/full-bound.json"
expect 0 "full names for short ones" "128 ranks placed anew" $L bind "$T/plan.json" --only 'cnode2-[002-017].lab.example' -o "$T/short-bound.json"
cmp -s <(grep '"node"' "$T/full-bound.json" | sed 's/\.lab\.example//') <(grep '"node"' "$T/bound.json") &&
    cmp -s <(grep '"node"' "$T/short-bound.json") <(grep '"node"' "$T/bound.json")
result $? "... are the same nodes"
sed 's/"cnode2-002.lab.example"/"cnode2-001.west"/' "$T/full.json" >"$T/two.json"
expect 2 "a short name of two nodes" '"cnode2-001" is ambiguous: names of nodes of the cluster h100-17' $L bind "$T/two.json" --only 'cnode2-[001-017]' -o "$T/no.json"
printf 'cnode2-%03d\n' $(seq 2 17) >"$T/hosts"
expect 0 "nodes from a file" "128 ranks placed anew" $L bind "$T/plan.json" --only "@$T/hosts" -o "$T/from-file.json"
same_ranks() {
    python3 -c 'import json, sys; a, b = (json.load(open(f))["ranks"] for f in sys.argv[1:]); assert a == b' "$T/bound.json" "$1" 2>"$T/why"
    result $? "$2" "$T/why"
}
same_ranks "$T/from-file.json" "... are the same as in a list"
expect 0 "nodes from standard input, behind a byte-order mark and with others" "standard input: 1 of 17 names are no nodes of the cluster h100-17, the first \"login\"" \
    bash -c "{ printf '\\357\\273\\277'; echo login; cat '$T/hosts'; } | $LINKWISE bind '$T/plan.json' --only @- -o '$T/from-stdin.json'"
same_ranks "$T/from-stdin.json" "... are these"
printf 'cnode2-003\ncnode2-007\n' >"$T/pinned"
expect 0 "nodes that must hold ranks, from a file" "plan written" $L plan examples/clusters/h100-17.json llama-2-13b --nodes 2 --granularity node --pin "@$T/pinned" -o "$T/pinned.json"
[ "$(grep -o '"node": *"cnode2-[0-9]*"' "$T/pinned.json" | sort | uniq -c | awk '{ print $1, $3 }' | paste -sd' ')" = '8 "cnode2-003" 8 "cnode2-007"' ]
result $? "... hold them" "$T/pinned.json"
expect 2 "plan and nodes from standard input" "only one input" $L bind - --only @- -o "$T/no.json"
expect 1 "a file of nodes that is missing" "none: No such file" $L bind "$T/plan.json" --only "@$T/none" -o "$T/no.json"
echo login >"$T/others"
expect 1 "a file without a node of the cluster" "only: .*others names no node of the cluster h100-17" $L bind "$T/plan.json" --only "@$T/others" -o "$T/no.json"
echo 'rack:r1' >"$T/racks"
expect 1 "a file that is no host list" 'racks: host list: "rack:r1" is no node name' $L bind "$T/plan.json" --only "@$T/racks" -o "$T/no.json"
printf 'cnode2-001\n\0' >"$T/zero"
expect 1 "a file with a NUL byte" "zero: binary data: expected text" $L bind "$T/plan.json" --only "@$T/zero" -o "$T/no.json"
expect 2 "a host list that is none" "only: host list" $L bind "$T/plan.json" --only 'n[1-' -o "$T/no.json"
expect 2 "no nodes" "PLAN, --only HOSTLIST and -o PLAN are required" $L bind "$T/plan.json" -o "$T/no.json"
expect 1 "no plan" "none.json: No such file" $L bind "$T/none.json" --only cnode2-001 -o "$T/no.json"
[ ! -e "$T/no.json" ]
result $? "nothing is written then"

# A cluster of over 256 nodes is a file beside the plan; bind and emit find it from elsewhere.
python3 - >"$T/large.json" <<'P'
import json
print(json.dumps({"version": 1, "name": "large", "nodes": [{"name": "n%d" % i, "gpus": 8, "gpu_type": "h100-sxm5-80g"} for i in range(300)],
    "links": {"intra": {"bandwidth_gb_per_s": 370, "latency_us": 8}, "inter": {"bandwidth_gb_per_s": 48, "latency_us": 12}}}))
P
(cd "$T" && $L plan large.json llama-2-7b --seq 4096 --global-batch 64 --tp 8 --pp 1 --dp 4 --nodes 4 -o few.json >/dev/null &&
    $L emit few.json --to slurm -d few) >"$T/why" 2>&1
expect 0 "a large cluster, from another folder" "32 ranks placed anew" $L bind "$T/few/plan.json" --only 'n[100-103]' -o "$T/few-bound.json"
expect 0 "... and emitted from there" "32 ranks written" $L emit "$T/few-bound.json" --to slurm -d "$T/few-bound"
[ "$(sort -u "$T/few-bound/slurm/hostfile" | paste -sd' ')" = "n100 n101 n102 n103" ]
result $? "... on the nodes given" "$T/few-bound/slurm/hostfile"
expect 0 "... with the cluster as an argument" "32 ranks written" $L emit "$T/few-bound.json" "$T/large.json" --to slurm -d "$T/few-again"
diff -r -x plan.json "$T/few-bound" "$T/few-again" >"$T/why" && expect 0 "... is the same" "32 ranks" $L bind "$T/few-again/plan.json" --only 'n[100-103]' -o "$T/x.json"
# Written by hand, the reference may lack the digest: bind puts it there.
grep -v '"sha256"' "$T/few/plan.json" | sed 's|\("file": ".*"\),*$|\1|' >"$T/undigested.json"
expect 0 "a large cluster without its digest" "32 ranks placed anew" $L bind "$T/undigested.json" --only 'n[100-103]' -o "$T/digested.json"
cmp -s <(grep -A5 '"cluster"' "$T/few-bound.json") <(grep -A5 '"cluster"' "$T/digested.json")
result $? "... gets it" "$T/digested.json"
expect 0 "... and can be read again" "step time +ok" $L check "$T/digested.json"
mkdir "$T/of ours" && cp "$T/large.json" "$T/of ours/large one.json"
expect 0 "a large cluster's file with a blank in its name" "32 ranks placed anew" $L bind "$T/few/plan.json" --cluster "$T/of ours/large one.json" --only 'n[100-103]' -o "$T/blank.json"
grep -q '"file": ".*/of ours/large one.json"' "$T/blank.json" && ! grep -q '"n299"' "$T/blank.json"
result $? "... is referred to too" "$T/blank.json"
done_testing
