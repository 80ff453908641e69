#!/bin/bash
# The accuracy on record: make record says what validate says, and what the tree keeps is of the runs
# that bench/RESULTS.md is of; a command that prints it says what there is where there is no run.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE"

mkdir "$T/runs"
python3 - "$T/runs/lab.csv" <<'P'
import csv, sys
with open(sys.argv[1], "w", newline="") as f:
    w = csv.writer(f)
    w.writerow("source,framework,model,layers,hidden,heads,ffn,vocab,seq,gpu,gpus,tp,pp,micro_batch,global_batch,precision,recompute,iter_time_s,peak_mem_gb,notes".split(","))
    for i in range(6):
        w.writerow(["lab%d" % (i % 2), "nemo", "x", 32, 4096, 32, 11008, 32000, 4096, "H100-SXM5-80GB" if i < 4 else "A100-SXM4-80GB",
                    16, 2, 1, 1, 64, "bf16", "none", 4 + i, 40 + i if i < 2 else "", "SLOW" if i == 3 else ""])
P
build=$(dirname "$LINKWISE")
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory "${build#"$PWD"/}/bench/record" SAN="${SAN:-}" >"$T/log" 2>&1
"$build/bench/record" "$T/runs" >"$T/record.json" 2>>"$T/log"
sed -i '/SLOW/d' "$T/runs/lab.csv"
$L validate "$T/runs/lab.csv" --json >"$T/validate.json" 2>>"$T/log"
head -n 4 "$T/runs/lab.csv" >"$T/h100.csv"
$L validate "$T/h100.csv" --json >"$T/h100.json" 2>>"$T/log"
python3 - "$T" <<'P' >"$T/why" 2>&1
import json, sys
def load(name):
    return json.load(open("%s/%s.json" % (sys.argv[1], name)))
a100, h100 = load("record")["records"]
assert (a100["gpu"], a100["sources"], a100["steps"], a100["peaks"], a100["peak_mape"]) == ("a100-sxm4-80g", ["lab0", "lab1"], 2, 0, None), a100
assert (h100["profile"], h100["fitted"], h100["steps"], h100["peaks"]) == ("nemo", False, 3, 2), h100
v = load("h100")
for mine, theirs in ((h100["step_mape"], v["time"]["step"]["mape_pct"]), (h100["step_median"], v["time"]["step"]["median_pct"]),
                     (h100["peak_mape"], v["memory"]["peak"]["mape_pct"]), (h100["peak_in_interval"], v["memory"]["peak_in_90_pct_interval_pct"])):
    assert abs(100 * mine - theirs) <= 6e-3 * theirs, (mine, theirs) # three digits
P
result $? "make record says what validate says, without disturbed steps" "$T/why"

# What is kept.  Runs beside the checkout tell whether it is of today's estimates.
python3 - "$T" <<'P' >"$T/why" 2>&1
import json, os, re, sys
kept = json.load(open("calibrate/record.json"))["records"]
for r in kept:
    assert os.path.exists("workload/profiles/%s.json" % r["profile"]), r
    assert r["sources"] and r["steps"] + r["peaks"] > 0, r
    for n, shares in (r["steps"], ("step_mape", "step_median", "step_in_interval")), (r["peaks"], ("peak_mape", "peak_in_interval")):
        assert all((r[s] is None) if n == 0 else 0 <= r[s] for s in shares), r
table = open("bench/RESULTS.md").read()
def total(what):
    lines = table.splitlines()
    at, end = next((i, m.end()) for i, l in enumerate(lines) for m in [re.match("file .* %s\\b" % what, l)] if m)
    return int(next(l for l in lines[at:] if l.startswith("median of the sources"))[:end].split()[-1])
for what in ("steps", "peaks"):
    assert sum(r[what] for r in kept) == total(what), "RESULTS.md has other " + what
P
result $? "the record is of the runs of bench/RESULTS.md" "$T/why"
if [ -d ../shared/data/runs ]; then
    "$build/bench/record" ../shared/data/runs >"$T/now.json" 2>"$T/log"
    python3 - "$T/now.json" <<'P' >"$T/why" 2>&1
import json, sys
kept, now = (json.load(open(f))["records"] for f in ("calibrate/record.json", sys.argv[1]))
assert [(r["profile"], r["gpu"], r["fitted"], r["steps"], r["peaks"]) for r in kept] == \
       [(r["profile"], r["gpu"], r["fitted"], r["steps"], r["peaks"]) for r in now], "other runs"
for a, b in zip(kept, now):
    for key in "step_mape", "peak_mape":
        assert a[key] == b[key] or abs(a[key] - b[key]) < 0.005 + 0.05 * b[key], "make record again: %s, now %s" % (a, b)
P
    result $? "... and of today's estimates" "$T/why"
fi

# What commands print of it.
record() { # CLUSTER PROFILE: the lines, and the JSON's numbers
    $L plan "$1" gpt2-xl --seq 1024 --global-batch 64 --tp 1 --pp 1 --micro-batch 1 --profile "$2" -v >"$T/said" 2>"$T/err" || cat "$T/err" >>"$T/said"
    sed -n '/^record/,/^$/p' "$T/said"
}
kept() { # PROFILE GPU PYTHON
    python3 -c 'import json, sys
r = [r for r in json.load(open("calibrate/record.json"))["records"]]
here = [x for x in r if (x["profile"], x["gpu"]) == (sys.argv[1], sys.argv[2])]
print(eval(sys.argv[3]))' "$@"
}
record "1x8 h100-sxm5-80g intra:370" nemo >"$T/lines"
grep -qxF "$(kept nemo h100-sxm5-80g '"record   nemo on h100-sxm5-80g: %d steps, %.1f %% off in the mean; %d memory peaks, %.1f %%" % (here[0]["steps"], 100 * here[0]["step_mape"], here[0]["peaks"], 100 * here[0]["peak_mape"])')" "$T/lines" &&
    grep -qF "of $(kept nemo h100-sxm5-80g 'len(here[0]["sources"])') sources; nothing was fitted to them" "$T/lines"
result $? "plan -v: runs of the profile on the GPU type" "$T/said"
record "1x8 v100-sxm2-32g intra:100 + 1x8 t4 intra:10 inter:10" megatron-v100 >"$T/lines"
grep -c '^record   megatron-v100 on v100-sxm2-32g: ' "$T/lines" | grep -qx 1 && grep -q 'made from them' "$T/lines" &&
    grep -qxF "record   no run of megatron-v100 on t4" "$T/lines" && grep -qE "^         with 1 other profile: [0-9]+ steps" "$T/lines"
result $? "... each GPU type, runs that it was fitted to, other profiles where there are none" "$T/said"
sed 's/"name": *"nemo"/"name": "ne\\nmo"/' workload/profiles/nemo.json >"$T/mine.json"
record "1x8 h100-sxm5-80g intra:370" "$T/mine.json" >"$T/lines"
grep -qxF "record   no run of ne?mo on h100-sxm5-80g" "$T/lines" && ! grep -q "other GPU type" "$T/lines" && grep -q "other profiles: [0-9]" "$T/lines"
result $? "... nothing of a profile that is not shipped" "$T/said"
done_testing
