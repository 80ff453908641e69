#!/bin/bash
# Every what-if is what the same edit of the cluster file gives, in place and planned anew; bad
# statements name the place and what was expected.
. tests/lib/tap.sh
needs python3 python3
python_up
L="spawn $LINKWISE"
# Few configurations: searches on unlike nodes take long.  A file is the profile of all GPU types.
job="gpt2-xl --profile workload/profiles/megatron-core.json --seq 1024 --global-batch 24 --tp 1 --pp 1 --micro-batch 1 --zero 1 --recompute none --schedule 1f1b --granularity node"
cat >"$T/make.py" <<'P'
import json, sys
rate = [[None if i == j else 10 + (3 * i + j) % 4 for j in range(4)] for i in range(4)]
json.dump({"version": 1, "name": "four", "nodes":
           [{"name": "n%d" % i, "gpus": 2, "gpu_type": "a100-sxm4-40g"} for i in range(4)],
           "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 3},
                     "inter": {"bandwidth_gb_per_s": rate, "latency_us": 12,
                               "node_gb_per_s": [18, 19, 20, 21]}}},
          open(sys.argv[1] + "/c.json", "w"))
P
python3 "$T/make.py" "$T"
$L plan "$T/c.json" $job -o "$T/plan.json" >"$T/why" 2>&1
result $? "a plan" "$T/why"

cat >"$T/edit.py" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/c.json"))
node, links = d["nodes"], d["links"]
inter = links["inter"]
rate = inter["bandwidth_gb_per_s"]
exec(sys.argv[2])
json.dump(d, open(sys.argv[1] + "/edited.json", "w"))
P
cat >"$T/compare.py" <<'P'
import json, os, sys
of = lambda f: json.load(open(sys.argv[1] + "/" + f)) if os.path.getsize(sys.argv[1] + "/" + f) else None
near = lambda a, b: abs(a - b) < 1e-9 * b
what, anew, stay = of("what.json")["what_if"], of("anew.json"), of("stay.json")
assert len(what) == 2 and what[0]["change"] is None
w = what[1]
drained = not w["in_place"]["possible"]
assert drained == (stay is None or sys.argv[2] != "0" or "drain" in w["change"]), w
if not drained:
    assert near(w["in_place"]["step_s"], stay["step_s"]), (w, stay["step_s"])
# A plan that stays is taken where the search finds less.
best = anew["estimate"]["step_s"]
assert near(w["replanned"]["step_s"], best) or w["replanned"]["step_s"] == w["in_place"]["step_s"] < best, (w, best)
if near(w["replanned"]["step_s"], best):
    assert w["replanned"]["degrees"] == anew["degrees"]
    assert near(w["replanned"]["lower_bound_s"], anew["estimate"]["lower_bound_s"])
P
# same NAME STATEMENT EDIT [OPTION...]: the edit in Python of d, the cluster's document.
same() {
    local name=$1 statement=$2 edit=$3
    shift 3
    py "$T/edit.py" "$T" "$edit"
    $L plan "$T/c.json" $job --what-if "$statement" --json >"$T/what.json" 2>"$T/err"
    $L plan "$T/edited.json" $job "$@" --json >"$T/anew.json" 2>>"$T/err"
    $L eval "$T/plan.json" "$T/edited.json" --json >"$T/stay.json" 2>>"$T/err"
    py "$T/compare.py" "$T" "$#" >"$T/why" 2>&1
    result $? "$name" "$T/why"
}
same "a link" "link n0->n1=2.5" 'rate[0][1] = 2.5'
same "a link both ways" "link n2<->n3 = 2.5" 'rate[2][3] = rate[3][2] = 2.5'
same "a broken link" "link n0->n1 = null" 'rate[0][1] = None'
same "a slow GPU" "gpu n2:1 speed 0.5" 'node[2]["speed"] = [1, 0.5]'
same "a slow node" "node n2 speed 0.5" 'node[2]["speed"] = [0.5, 0.5]'
same "all of another type" "type h100-sxm5-80g" 'for n in node: n["gpu_type"] = "h100-sxm5-80g"'
same "one of another type" "type n[1-2] = h100-sxm5-80g" 'for n in node[1:3]: n["gpu_type"] = "h100-sxm5-80g"'
file=$job job=${job/workload\/profiles\/megatron-core.json/megatron-core}
$L plan "$T/c.json" $job -o "$T/plan.json" >/dev/null 2>&1
same "another type, which another profile serves" "type h100-sxm5-80g" 'for n in node: n["gpu_type"] = "h100-sxm5-80g"'
job=$file
$L plan "$T/c.json" $job -o "$T/plan.json" >/dev/null 2>&1
same "NICs" "nics x 2" 'inter["node_gb_per_s"] = [36, 38, 40, 42]'
same "memory" "memory x 2" 'd["gpu_types"] = {"a100-sxm4-40g": {"like": "a100-sxm4-40g", "memory_gb": 2 * 42.5}}'
same "a node less" "drain n3" 'node[3]["state"] = "drained"'
same "a GPU less" "drain n3:1" 'node[3]["gpu_state"] = ["ok", "drained"]'
same "one node" "nodes 1" '' --nodes 1
same "more nodes" "+2 nodes like n1" '
node += [dict(node[1], name="new%d" % k) for k in (1, 2)]
inter["node_gb_per_s"] += [19, 19]
row = sorted(r for r in rate[1] if r)
among = row[1]
old = [list(r) for r in rate]
home, n = [0, 1, 2, 3, 1, 1], 6
rate[:] = [[None if i == j else among if home[i] == home[j] else old[home[i]][home[j]] for j in range(n)] for i in range(n)]'

mkdir "$T/without" && cp "$T/c.json" "$T/plan.json" "$T/without"
python3 - "$T/c.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
d["links"]["inter"]["node_pair_gb_per_s"] = [[None if i == j else 8 + i + j for j in range(4)] for i in range(4)]
json.dump(d, open(sys.argv[1], "w"))
P
$L plan "$T/c.json" $job -o "$T/plan.json" >/dev/null
same "pairs of nodes" "pairs x 2" '
total = inter["node_pair_gb_per_s"]
total[:] = [[x and 2 * x for x in row] for row in total]'
same "a pair of nodes" "pair n0->n1 = 2.5" 'inter["node_pair_gb_per_s"][0][1] = 2.5'
same "a pair both ways" "pair n2<->n3 = 2.5" '
total = inter["node_pair_gb_per_s"]
total[2][3] = total[3][2] = 2.5'
same "a node mended" "mend n0" '
for m in (rate, inter["node_pair_gb_per_s"]):
    v = sorted(x for row in m for x in row if x)
    middle = (v[5] + v[6]) / 2
    for k in (1, 2, 3):
        m[0][k], m[k][0] = max(m[0][k], middle), max(m[k][0], middle)'
expect 1 "a pair of one node" "expected two nodes or two GPUs, found n0 twice" $L eval "$T/plan.json" --what-if "pair n0->n0 = 5"
expect 1 "a pair of nobody" 'has no node "n9"' $L eval "$T/plan.json" --what-if "pair n0->n9 = 5"
expect 2 "a pair without a rate" "expected a number from" $L eval "$T/plan.json" --what-if "pair n0->n1 = null"
mv "$T/without/"* "$T"
expect 1 "no totals" "node_pair_gb_per_s" $L eval "$T/plan.json" --what-if "pair n0->n1 = 5"

$L plan "$T/c.json" $job --what-if "drain n3; link n0->n1 = 5;" --json >"$T/all.json"
[ "$(json "$T/all.json" '[w["change"] for w in d["what_if"]]')" = "[None, 'drain n3', 'link n0->n1 = 5', 'all together']" ]
result $? "each alone and all together" "$T/all.json"
json "$T/all.json" 'd["what_if"][1]["in_place"]["why"]' | grep -qE "^n3 holds (ranks|2 ranks,)"
result $? "why it cannot stay" "$T/all.json"
expect 0 "a table" "all together" $L plan "$T/c.json" $job --what-if "drain n3; node n0 speed 0.9"
prints "drain n3: not possible in place: n3 holds "
expect 2 "control characters do not reach the terminal" "n9[?]" $L eval "$T/plan.json" --what-if $'drain n3; drain n9\e'
! grep -q $'\e' "$T/both"
result $? "no escape" "$T/both"

# bad CODE NAME PATTERN STATEMENT
bad() { expect "$1" "$2" "$3" $LINKWISE eval "$T/plan.json" --what-if "$4"; }
bad 2 "nothing" 'statement 1: expected one, as "drain NODES...", found nothing' ""
bad 2 "nothing between" 'statement 2: expected one, as "drain NODES...", found nothing' "drain n1;; drain n2"
bad 2 "an unknown word" 'statement 2: "burn n1": expected "drain NODES' "drain n1; burn n1"
bad 2 "no value" 'statement 1: "link n0->n1": expected "link A->B = GB/S"' "link n0->n1"
bad 2 "no arrow" 'expected A->B or A<->B, found "n0-n1"' "link n0-n1 = 5"
bad 2 "no number" 'expected GB/s from 1e-9 to 1e9, or null, found "fast"' "link n0->n1 = fast"
bad 2 "below 0" 'expected GB/s from 1e-9 to 1e9, or null, found "-1"' "link n0->n1 = -1"
bad 2 "no GPU" 'expected NODE:GPU, found "n2"' "gpu n2 speed 0.5"
bad 2 "no speed" 'expected a number from 1e-09 to 1e[+]09, found "0"' "gpu n2:1 speed 0"
bad 2 "a memory beyond numbers" 'found "1e308"' "memory x 1e308"
bad 2 "no number at all" 'found "nan"' "nics x nan"
bad 2 "no type" 'unknown GPU type "h1000"' "type h1000"
bad 2 "no count" 'expected a whole number from 1 to [0-9]*, found "0"' "+0 nodes like n1"
bad 2 "a bad host list" 'n\[1-' "drain n[1-"
bad 2 "words too many" 'expected "nodes N"' "nodes 2 3"
bad 1 "no such node" 'statement 1: "drain n9": n9: the cluster has no node "n9"' "drain n9"
bad 1 "no such end" 'has no node "m1"' "link n0->m1 = 5"
bad 1 "no such GPU" 'node n2 has GPUs 0 to 1, found 7' "gpu n2:7 speed 0.5"
bad 1 "no pairs" 'does not say what the GPUs of two nodes reach together' "pairs x 2"
bad 1 "no such model" 'has no node "m3"' "+1 nodes like m3"
bad 1 "a matrix of too many" 'cannot be a matrix: expected 8192 or fewer' "+100000 nodes like n1"
bad 1 "a link to itself" 'expected two nodes or two GPUs, found n1 twice' "link n1->n1 = 5"
bad 1 "more nodes than there are" 'has 4 nodes in use, found 9' "nodes 9"
bad 1 "a place in the second" 'statement 2: "drain n9"' "drain n1; drain n9"
expect 2 "not beside --from" 'leave out --from' $L plan --from "$T/plan.json" --what-if "drain n1"
done_testing
