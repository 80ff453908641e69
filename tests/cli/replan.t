#!/bin/bash
# plan --from: stays put where nothing changed or moving costs more, moves what a lost node or
# a bad link asks for, takes other degrees where the old ones cannot run; refuses another job.
. tests/lib/tap.sh
needs python3 python3
python_up
L="spawn $LINKWISE"
C=examples/clusters/h100-10.json M=examples/models/llama-2-70b.json
job="--seq 4096 --global-batch 1024"
places() { json "$1" "[(r['node'], r['gpu']) for r in d['ranks']]"; }

$L plan $C $M $job --tp 8 --pp 4 --dp 2 -o "$T/old.json" >/dev/null
expect 0 "nothing changed" "^replan   stay put: no placement found is better" $L plan --from "$T/old.json" -o "$T/same.json"
[ "$(places "$T/old.json")" = "$(places "$T/same.json")" ] && [ "$(json "$T/same.json" "d['replan']['verdict']")" = stay ]
result $? "... every rank stays"

# The link between the first node and the one after it in the pipeline falls to a hundredth.
python3 - "$T/old.json" "$T/now.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
c, r = d["cluster"], d["ranks"]
name = [n["name"] for n in c["nodes"]]
i, j = (name.index(r[k]["node"]) for k in (0, 8 * 2))
m = c["links"]["inter"]["bandwidth_gb_per_s"]
m[i][j] *= .01
m[j][i] *= .01
json.dump(c, open(sys.argv[2], "w"))
P
expect 0 "a bad link" "^replan   move (8|16) of 64 ranks: the step takes .* instead of .* % less" $L plan --from "$T/old.json" "$T/now.json" -o "$T/new.json"
grep -Eq "^cnode3-[0-9]+, cnode3-[0-9]+ +(8|16) +[0-9.]+ +[0-9.]+" "$T/out"
result $? "... what the move gains" "$T/out"
expect 0 "... checks" "step time +ok" $L check "$T/new.json"
python3 - "$T/old.json" "$T/new.json" <<'P' >"$T/why" 2>&1
import json, sys
old, new = (json.load(open(f)) for f in sys.argv[1:])
p = new["replan"]
moved = [a["rank"] for a, b in zip(old["ranks"], new["ranks"]) if (a["node"], a["gpu"]) != (b["node"], b["gpu"])]
assert moved == sorted(sum((m["ranks"] for m in p["moves"]), [])) and len(moved) == p["ranks_moved"], moved
assert abs(sum(m["gain_s"] for m in p["moves"]) - (p["stay_step_s"] - new["estimate"]["step_s"])) < 1e-9
assert old["layers_per_stage"] == new["layers_per_stage"] and old["degrees"] == new["degrees"]
P
result $? "... the file tells the moves" "$T/why"
expect 0 "moving costs more" "^replan   stay put: .* over 5 steps that saves [0-9]+ s, moving costs 300 s" \
    $L plan --from "$T/old.json" "$T/now.json" --move-cost 300 --remaining-steps 5 -o "$T/stay.json"
[ "$(places "$T/old.json")" = "$(places "$T/stay.json")" ] && expect 0 "... is priced as it is" "step time +ok" $L check "$T/stay.json"
expect 0 "moving pays after a while" "moving costs 300 s and pays off after [0-9]+ steps" $L plan --from "$T/old.json" "$T/now.json" --move-cost 300
expect 0 "the same arguments as without --from" "move (8|16) of 64" $L plan "$T/now.json" $M $job --from "$T/old.json"

# Links that differ a little, one node idle, one link down to a tenth: one end of it goes to the
# idle node; exchanges of others, for 0.03 % more, are taken back.
$L cluster synth calm --nodes 8 --gpus 8 --seed 5 -o "$T/calm.json" >/dev/null
$L plan "$T/calm.json" llama-2-70b --seq 4096 --global-batch 256 --nodes 7 --memory-limit 95 -o "$T/seven.json" >/dev/null
python3 - "$T/calm.json" <<'P'
import json, sys
c = json.load(open(sys.argv[1]))
c["links"]["inter"]["bandwidth_gb_per_s"][0][1] *= .1
json.dump(c, open(sys.argv[1], "w"))
P
expect 0 "a little gain is not worth moving many" "^replan   move 8 of 56 ranks: .* 2[.]0[0-9] % less" $L plan --from "$T/seven.json" "$T/calm.json"

first=$(json "$T/old.json" "d['ranks'][0]['node']")
expect 0 "a lost node" "\"verdict\": \"move\"" $L plan --from "$T/old.json" --exclude "$first" --move-cost 1e9 --json
json "$T/out" "d['replan']['ranks_gone'] == 8 and d['replan']['stay_step_s'] is None and '$first' not in [r['node'] for r in d['ranks']]" | grep -q True
result $? "... is left" "$T/out"
expect 0 "too few GPUs for the old degrees" "the old degrees: .*needs 64 GPUs, 56 can be used" $L plan --from "$T/old.json" --exclude 'cnode3-[002-004]'
expect 0 "other degrees are asked for" '"verdict": "(restart|stay|move)"' $L plan --from "$T/old.json" --degrees any --json
[ "$(json "$T/out" "d['search']['configurations'] > 1000")" = True ]
result $? "... and searched"

# A plan of before this option, and one without coordinates.
python3 - "$T/old.json" "$T/bare.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
for k in ("estimate", "memory", "search", "unmeasured_links_used"):
    del d[k]
d["ranks"] = [{k: r[k] for k in ("rank", "node", "gpu")} for r in d["ranks"]]
json.dump(d, open(sys.argv[2], "w"))
P
expect 0 "a plan with its ranks alone" "stay put" $L plan --from "$T/bare.json"

# ---- what is refused ----
expect 2 "another model" "is a plan of llama-2-70b, not of llama-2-7b: leave MODEL out" $L plan $C llama-2-7b --from "$T/old.json"
expect 2 "another batch" "global-batch 512: .* has 1024: leave it out" $L plan $C --global-batch 512 --from "$T/old.json"
expect 2 "another precision" "precision: .* was planned otherwise" $L plan --from "$T/old.json" --precision fp8
expect 2 "a cost that is none" "move-cost: expected a number" $L plan --from "$T/old.json" --move-cost -3
expect 2 "no steps left" "remaining-steps: expected a number above 0" $L plan --from "$T/old.json" --remaining-steps 0
expect 2 "moves without a plan" "move-cost, --remaining-steps and --degrees need --from" $L plan $C $M $job --move-cost 3
expect 2 "two standard inputs" "only one input" $L plan - --from -
expect 1 "no such plan" "none.json: No such file" $L plan --from "$T/none.json"
expect 1 "a cluster is no plan" "expected|missing" $L plan --from $C
echo '{"version": 1, "ranks": 3' >"$T/cut.json"
expect 1 "half a plan" "cut.json: line" $L plan --from "$T/cut.json"
expect 1 "an empty plan" "expected JSON, found an empty file" $L plan --from /dev/null
expect 3 "nothing is left" "h100-10 has no node left to use" $L plan --from "$T/old.json" --exclude 'cnode3-[002-011]'
done_testing
