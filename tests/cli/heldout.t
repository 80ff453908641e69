#!/bin/bash
# plan --links, --heldout-links and --robust: what is planned on one measurement is priced on
# another, and the default order stays where the gain may be chance; refuses what is no other
# measurement.
. tests/lib/tap.sh
needs python3 python3
python_up
L="spawn $LINKWISE"
A=examples/clusters/a100-16-before.json B=examples/clusters/a100-16-after.json
job="llama-2-70b --seq 4096 --global-batch 256 --tp 4 --pp 4 --dp 8 --schedule 1f1b"

expect 0 "planned on one, priced on another" "^held out gain [+-][0-9.]+ % over the default order .95 % interval: [+-][0-9.]+ to [+-][0-9.]+.$" \
    $L plan $B $job --heldout-links $A -o "$T/one.json"
grep -qx " *on 1 measurement not used for planning" "$T/out"
result $? "... says on what" "$T/out"
expect 0 "... checks" "step time +ok" $L check "$T/one.json"
[ "$(json "$T/one.json" "d['search']['heldout']['kept_default_order'] == (d['estimate']['gain_heldout_interval'][0] <= 0)")" = True ]
result $? "... the default order is kept where the interval has 0 in it"
$L plan $B $job -o "$T/plain.json" >/dev/null
$L eval "$T/plain.json" $A --json >"$T/placed.json"
python3 - "$T/plain.json" "$T/order.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
for r in d["ranks"]:
    r["node"], r["gpu"] = d["cluster"]["nodes"][r["rank"] // 8]["name"], r["rank"] % 8
json.dump(d, open(sys.argv[2], "w"))
P
$L eval "$T/order.json" $A --json >"$T/ordered.json"
[ "$(json "$T/one.json" "'%.5f' % d['estimate']['gain_heldout']")" = \
    "$(python3 -c "import json; print('%.5f' % (1 - json.load(open('$T/placed.json'))['step_s'] / json.load(open('$T/ordered.json'))['step_s']))")" ]
result $? "... the gain is what eval says of both orders"

expect 0 "each held out in turn" "on 2 measurements, each with a placement made from the others" $L plan $A $job --links $B -o "$T/both.json"
expect 0 "... checks, on the links planned on" "step time +ok" $L check "$T/both.json"
expect 0 "a low quantile" '"quantile": 0.1' $L plan $A $job --links $B --robust 0.1 --json

# One file with two passes: node 0's links to node 1 are slow in both.
python3 - $A "$T/passes.json" <<'P'
import json, sys, random
d = json.load(open(sys.argv[1]))
m = d["links"]["inter"]["bandwidth_gb_per_s"]
n = len(m)
random.seed(4)
pairs = []
for i in range(n):
    for j in range(n):
        if i != j:
            s = [m[i][j] * random.gauss(1, .01) * (.2 if {i, j} == {0, 1} else 1) for _ in range(2)]
            m[i][j] = sum(s) / 2
            pairs.append({"src": i, "dst": j, "isolated_samples_gb_per_s": s})
d["measured"] = {"tool": "bwprobe", "when": "2025-01-31T12:00:00Z", "status": "complete", "passes": 2,
                 "endpoints": [{"node": x["name"], "gpu": 0} for x in d["nodes"]], "pairs": pairs}
json.dump(d, open(sys.argv[2], "w"))
P
expect 0 "slow in both passes" "on 2 passes, each with a placement made from the others" $L plan "$T/passes.json" $job --dp 8 -o "$T/found.json"
[ "$(json "$T/found.json" "d['search']['heldout']['kept_default_order'], d['estimate']['gain_heldout_interval'][0] > 0.005")" = "(False, True)" ]
result $? "... is a gain" "$T/out"

# ---- what is refused ----
expect 1 "no such file" "none.json: No such file" $L plan $A $job --links "$T/none.json"
expect 1 "another cluster" "h100-10.json: expected another measurement of .*, found no link between its nodes" \
    $L plan $A $job --heldout-links examples/clusters/h100-10.json
expect 2 "two standard inputs" "only one input" $L plan - $job --links -
expect 2 "a quantile of one" "robust: .* has one measurement of its links to plan on: give others by --links" $L plan $A $job --robust 0.1
expect 2 "no quantile" "robust: expected a number above 0, at most 1" $L plan $A $job --robust 1.5
expect 2 "with --from" "leave out one" $L plan --from "$T/one.json" --links $B
$L cluster synth calm --nodes 300 --gpus 1 --gpu-type t4 --intra 10 -o "$T/large.json" >/dev/null 2>&1
expect 2 "a large cluster" "300 nodes, .*give --heldout-links" $L plan "$T/large.json" gpt2-xl --seq 512 --global-batch 300 --links "$T/large.json"
done_testing
