#!/bin/bash
# Links that the budget does not hold are estimated, and each carries the held-out error of its
# model from the links file to the plan.  Most of the measurements are an earlier run's, so that
# they are alike on any machine.
. tests/lib/tap.sh
. tests/lib/ranks.sh
OPTIONS="--transport socket --measure 0.02 --passes 1 --pause 0 --timeout 1 --max-size 1"
python3 - "$T/links.json.part" <<'P'
import json, random, socket, sys
n, rng = 12, random.Random (1)
pairs = [(i, j) for i in range (n) for j in range (i)]
with open (sys.argv[1], "w") as f:
    f.write (json.dumps ({"transport": "socket", "endpoints":
        ["%s/%d" % (socket.gethostname ().split (".")[0], i) for i in range (n)]}) + "\n")
    for i, j in rng.sample (pairs, 50):
        for src, dst in ((i, j), (j, i)):
            f.write (json.dumps ([src, dst, 1, 0, 0, rng.uniform (9.9, 10.1), 20, 0.001]) + "\n")
P
ranks 12 --budget 1 --resume -o "$T/links.json"
ended 0 30 && grep -q "100 values of the earlier run" "$T/err.0"
result $? "a budget that does not hold every pair" "$T/err.0"
says "what nobody measured is marked, with the held-out error of its model" '
g = d["links"]["gpu"]
e, bw, n = g["estimate_error"], g["bandwidth_gb_per_s"], 12
seen = {(p["src"], p["dst"]) for p in m["pairs"] if "isolated_gb_per_s" in p}
assert 100 <= len (seen) < 132, len (seen)
used = [x for x in m["estimates"][0]["models"] if x["used"]]
best = max (used, key = lambda x: x["low"])
for i in range (n):
    for j in range (n):
        if i == j or (i, j) in seen:
            assert e[i][j] is None, (i, j)
        else:
            assert abs (e[i][j] - best["error_p90"]) < 1e-6 and 0.8 * 10 < bw[i][j] < 10.2, (i, j, e[i][j], bw[i][j])
assert m["estimates"][0]["estimated"] == n * (n - 1) - len (seen)'
mkdir "$T/elsewhere"
"$LINKWISE" cluster merge "$T/links.json" --gpu-type a100-sxm4-80g -o "$T/elsewhere/c.json" >"$T/out" 2>&1
result $? "merge takes it" "$T/out"
expect 0 "and a placement says what it stands on" "^links +[0-9]+ of the 12 links of this placement are estimated" \
    "$LINKWISE" time "$T/elsewhere/c.json" gpt2-xl --seq 1024 --global-batch 48 --dp 12
done_testing
