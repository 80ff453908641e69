#!/bin/bash
# explain names what holds a step up first, and each gain is what the same edit of the cluster file
# gives; what is printed is valid.
. tests/lib/tap.sh
needs_python jsonschema python3-jsonschema
L="spawn $LINKWISE"
cat >"$T/make.py" <<'P'
import json, sys
def write(name, slow):
    rate = [[None if i == j else 10 for j in range(4)] for i in range(4)]
    rate[1][2] = slow
    json.dump({"version": 1, "name": "chain", "nodes":
               [{"name": "n%d" % i, "gpus": 1, "gpu_type": "a100-sxm4-80g"} for i in range(4)],
               "links": {"inter": {"bandwidth_gb_per_s": rate, "latency_us": 12}}},
              open(sys.argv[1] + "/" + name, "w"))
write("slow.json", 0.2)
write("even.json", 10)
# GPT-2 XL, but for its layers: with few of them there are few ways to search.
json.dump({"model_type": "gpt2", "n_layer": 8, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257},
          open(sys.argv[1] + "/gpt2.json", "w"))
P
python3 "$T/make.py" "$T"
# A plan whose stages send over the slow link: made where there is none.
$L plan "$T/even.json" "$T/gpt2.json" --seq 1024 --global-batch 32 --tp 1 --pp 4 -o "$T/plan.json" >"$T/why" 2>&1
$L explain "$T/plan.json" "$T/slow.json" --json >"$T/x.json" 2>"$T/why"
valid explain "$T/x.json" "explain --json is valid"
$L eval "$T/plan.json" "$T/slow.json" --json >"$T/before.json"
$L eval "$T/plan.json" "$T/even.json" --json >"$T/after.json"
$PY - "$T" >"$T/why" 2>&1 <<'P'
import json, sys
x, before, after = (json.load(open(sys.argv[1] + "/" + f)) for f in ("x.json", "before.json", "after.json"))
assert abs(x["step_s"] - before["step_s"]) < 1e-12
links = [g for g in x["gains"] if g["kind"] == "link"]
assert [g["what"] for g in links] == ["link n1->n2 = 10"], links
gained = x["step_s"] - links[0]["in_place_step_s"]
assert gained > 0.01 and abs(gained - (before["step_s"] - after["step_s"])) < 1e-12, gained
assert abs(links[0]["gain"] - gained / before["step_s"]) < 1e-12
first = [g for g in x["gains"] if g["kind"] != "setting"][0]
assert first["what"] in ("link n1->n2 = 10", "mend n1", "mend n2"), first
assert all(a["gain"] is None or b["gain"] is None or a["gain"] >= b["gain"]
           for a, b in zip(x["gains"], x["gains"][1:]))
assert {g["what"] for g in x["gains"] if g["kind"] == "node"} >= {"mend n1", "mend n2"}
P
result $? "the slow link, and what it costs" "$T/why"
expect 0 "in words" "link n1->n2 = 10  +link" $L explain "$T/plan.json" "$T/slow.json"
prints "looked at the slowest in use: 1 links between nodes" "why the next-best configurations lose" " s (more|less) (pipeline|compute)"

# On one GPU ZeRO changes nothing.
$L plan "1x1 h200" gpt2-xl --seq 1024 --global-batch 32 -o "$T/one.json" >"$T/why" 2>&1
expect 0 "what changes nothing" "^zero 1 +0\.[0-9]+ +[+]0\.00$" $L explain "$T/one.json"
prints "^    0\.[0-9]+ s [(][+]0\.00 %[)]: no part of the step differs; the plan is simpler"

# An interleaved schedule takes pp more micro-batches; without a pipeline it is 1f1b.
$L plan "$T/even.json" gpt2-xl --seq 1024 --global-batch 32 --tp 1 --pp 2 --micro-batch 8 --schedule interleaved -o "$T/two.json" >"$T/why" 2>&1
expect 0 "what an interleaved schedule can have" "^2 more micro-batches [(]global batch 64[)] " $L explain "$T/two.json"
prints "^dp 4, pp 1 +[0-9.]+ "

# One that is shorter than the plan: the search gave it up, or never saw it.
$L plan "$T/even.json" "$T/gpt2.json" --seq 1024 --global-batch 32 --tp 1 --pp 4 --recompute full -o "$T/full.json" >"$T/why" 2>&1
$PY - "$T" <<'P'
import json, sys
p = json.load(open(sys.argv[1] + "/full.json"))
none = dict(p["search"]["top"][0], recompute="none")
for name, given_up in ("gave", 10), ("new", 0):
    p["search"].update(given_up=given_up, top=[none])
    json.dump(p, open(sys.argv[1] + "/" + name + ".json", "w"))
P
expect 0 "a shorter one that was given up" "s [(]-[0-9.]+ %[)].*; the plan is simpler" $L explain "$T/gave.json"
expect 0 "a shorter one" "s [(]-[0-9.]+ %[)].*; shorter than the plan: plan anew" $L explain "$T/new.json"

# Each change of the cluster is what --what-if says of it.
what=$($PY -c "import json; print('; '.join(g['what'] for g in json.load(open('$T/x.json'))['gains'] if g['what_if']))")
$L eval "$T/plan.json" "$T/slow.json" --what-if "$what" --json >"$T/what.json" 2>"$T/why"
valid estimate "$T/what.json" "eval --what-if --json is valid"
$PY - "$T" >"$T/why" 2>&1 <<'P'
import json, sys
x, w = (json.load(open(sys.argv[1] + "/" + f)) for f in ("x.json", "what.json"))
step = {c["change"]: c["in_place"]["step_s"] for c in w["what_if"]}
changes = [g for g in x["gains"] if g["what_if"]]
assert len(changes) >= 4
for g in changes:
    if g["in_place_step_s"] is not None:
        assert step[g["what_if"]] == g["in_place_step_s"], g
P
result $? "gains are those of --what-if" "$T/why"
$L plan "$T/slow.json" "$T/gpt2.json" --seq 1024 --global-batch 24 --tp 1 --micro-batch 1 --recompute none --schedule 1f1b --what-if "drain n1; nodes 2" --json >"$T/p.json" 2>"$T/why"
valid plan "$T/p.json" "plan --what-if --json is valid"

# Where nodes share a trunk it is tried as a whole.  Three nodes: searches over trunks take long.
$PY -c "
import json
d = json.load(open('$T/even.json'))
del d['nodes'][3]
d['links']['inter']['bandwidth_gb_per_s'], d['links']['inter']['node_pair_gb_per_s'] = (
    [[None if i == j else x for j in range(3)] for i in range(3)] for x in (10, 1))
json.dump(d, open('$T/trunk.json', 'w'))"
$L plan "$T/trunk.json" gpt2-xl --seq 1024 --global-batch 32 --tp 1 --pp 3 -o "$T/three.json" >"$T/why" 2>&1
$L explain "$T/three.json" "$T/trunk.json" --json >"$T/x.json" 2>"$T/why"
$L eval "$T/three.json" "$T/trunk.json" --what-if "pairs x 2" --json >"$T/what.json" 2>"$T/why"
$PY - "$T" >"$T/why" 2>&1 <<'P'
import json, sys
x, w = (json.load(open(sys.argv[1] + "/" + f)) for f in ("x.json", "what.json"))
pairs = [g for g in x["gains"] if g["what"] == "pairs x 2"]
assert len(pairs) == 1 and pairs[0]["in_place_step_s"] == w["what_if"][1]["in_place"]["step_s"] < x["step_s"], pairs
P
result $? "what pairs of nodes reach together" "$T/why"

# One link inside a node, one pair of nodes, one whole node: each is found, and mending it alone is
# what the cluster without the fault gives.
cat >"$T/faults.py" <<'P'
import json, sys
def write(name, gpus, intra, pair):
    d = {"version": 1, "name": "faults",
         "nodes": [{"name": "n%d" % i, "gpus": gpus, "gpu_type": "a100-sxm4-80g"} for i in range(len(intra))],
         "links": {"intra": [{"bandwidth_gb_per_s": b, "latency_us": 8} for b in intra],
                   "inter": {"bandwidth_gb_per_s": 20, "latency_us": 12, "node_pair_gb_per_s": pair}}}
    json.dump(d, open(sys.argv[1] + "/" + name + ".json", "w"))
def rows(n, x):
    return [[None if i == j else x for j in range(n)] for i in range(n)]
# Links across the halves of every node are slower by design: they are no faults.
halves = [[None if i == j else 200 if i // 2 == j // 2 else 100 for j in range(4)] for i in range(4)]
bad = [list(r) for r in halves]
bad[1][2] = 20
low = rows(3, 40)
low[0][1] = 2
write("node", 4, [halves], rows(1, 40))
write("inside", 4, [bad], rows(1, 40))
write("nodes", 2, [200] * 3, rows(3, 40))
write("pair", 2, [200] * 3, low)
write("whole", 2, [200, 20, 200], rows(3, 40))
# Every change is searched: with three layers there are few ways.
json.dump({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 3, "num_attention_heads": 4,
           "intermediate_size": 16384, "vocab_size": 8000}, open(sys.argv[1] + "/model.json", "w"))
P
$PY "$T/faults.py" "$T"
for sound in "node 4 1" "nodes 2 3"; do
    read -r name tp pp <<<"$sound"
    $L plan "$T/$name.json" "$T/model.json" --seq 2048 --global-batch 4 --tp $tp --pp $pp -o "$T/plan-$name.json" >"$T/why" 2>&1
done
# fault NAME SOUND KIND WHAT TRIED: the change of the cluster that gains most, all links and pairs
fault() {
    $L eval "$T/plan-$2.json" "$T/$2.json" --json >"$T/after.json" 2>"$T/why"
    $L explain "$T/plan-$2.json" "$T/$1.json" --json >"$T/x.json" 2>"$T/why"
    valid explain "$T/x.json" "$1: explain --json is valid"
    $PY - "$T" "$3" "$4" "$5" >"$T/why" 2>&1 <<'P'
import json, sys
x, after = (json.load(open(sys.argv[1] + "/" + f)) for f in ("x.json", "after.json"))
kind, what, tried = sys.argv[2:]
first = [g for g in x["gains"] if g["what_if"] and g["kind"] != "setting"][0]
assert (first["kind"], first["what"]) == (kind, what), x["gains"]
assert first["gain"] > 0.1 and abs(first["in_place_step_s"] - after["step_s"]) < 1e-9, (first, after)
assert [g["what"] for g in x["gains"] if g["kind"] in ("link inside", "pair")] == tried.split(";")[:-1]
P
    result $? "a fault: $1" "$T/why"
}
fault inside node "link inside" "link n0:1->n0:2 = 100" "link n0:1->n0:2 = 100;"
fault pair nodes pair "pair n0->n1 = 40" "pair n0->n1 = 40;"
fault whole nodes node "mend n1" ""

# A slow GPU is named, and settings that cannot be say why.
$PY -c "
import json
d = json.load(open('$T/even.json'))
d['nodes'][3]['speed'] = [0.5]
json.dump(d, open('$T/speed.json', 'w'))"
expect 0 "a slow GPU" "gpu n3:0 speed 1  +GPU" $L explain "$T/plan.json" "$T/speed.json"
prints "(zero|micro-batch|tp|dp|pp) .* - +- +[a-z]"
expect 1 "a node that is not there" 'has no node "n3"' $L explain "$T/plan.json" "3x1 a100-sxm4-80g inter:3"
done_testing
