#!/bin/bash
# The page of linkwise report in headless Chromium: no error, no request, texts are the JSON's
# numbers, hostile names are texts, nothing wider than 320 px, maps answer to the keyboard.
. tests/lib/tap.sh
needs python3 python3
needs nodejs node
needs chromium chromium

C=examples/clusters/h100-17.json
"$LINKWISE" plan $C llama-2-70b --seq 4096 --global-batch 1024 --tp 2 --pp 16 --dp 4 -o "$T/plan.json" >"$T/plan-said" 2>"$T/log"
python3 - $C "$T/plan.json" "$T" <<'PY'
import json, sys
c, p = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
evil = "</script><img src=x onerror=alert(1)><b>\u202e\u0007lab"
c["name"] = p["cluster"]["name"] = p["model"]["name"] = evil
json.dump(c, open(sys.argv[3] + "/hostile.json", "w"))
json.dump(p, open(sys.argv[3] + "/hostile-plan.json", "w"))
PY
"$LINKWISE" cluster synth busy --nodes 80 -o "$T/eighty.json" >/dev/null
python3 - $C "$T" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
n = len(c["nodes"])
c["links"]["inter"]["node_pair_gb_per_s"] = [[None if i == j else 50 + (i + j) % 3 for j in range(n)] for i in range(n)]
json.dump(c, open(sys.argv[2] + "/pairs.json", "w"))
PY
"$LINKWISE" report '4x8 h100' -o "$T/nominal.html" 2>>"$T/log"
"$LINKWISE" report --compare '2x8 h100 intra:370' $C -o "$T/between.html" 2>>"$T/log"
"$LINKWISE" plan examples/clusters/h100-10.json llama-2-70b --seq 4096 --global-batch 80 --objective gpu-hours \
    -o "$T/hours.json" >"$T/hours-said" 2>>"$T/log"
for one in "1x1 h100-sxm5-80g" "2x8 h100-sxm5-80g intra:370 inter:48"; do
    "$LINKWISE" plan "$one" gpt2-xl --seq 1024 --global-batch 16 -o "$T/${one%% *}.json" >>"$T/log" 2>&1
done
"$LINKWISE" plan "64x8 h100 intra:370 inter:48" gpt2-xl --seq 1024 --global-batch 512 --tp 1 --pp 1 --dp 512 --micro-batch 1 \
    --zero 1 --recompute none -o "$T/sixty-four.json" >>"$T/log" 2>&1
"$LINKWISE" plan "1x8 h100 intra:370 inter:48 + 1x8 b300 intra:700 inter:48" gpt2-xl --seq 1024 --global-batch 64 --dp 16 --pp 1 --tp 1 \
    -o "$T/mixed.json" >>"$T/log" 2>&1
for page in 1x1 2x8 pairs mixed plan hours hostile hostile-plan eighty sixty-four; do
    "$LINKWISE" report "$T/$page.json" -o "$T/$page.html" 2>>"$T/log"
done
"$LINKWISE" report --compare $C $C -o "$T/same.html"
"$LINKWISE" report --compare examples/clusters/a100-16-before.json examples/clusters/a100-16-after.json -o "$T/compare.html"
node tests/report/browser.js "$(command -v chromium)" "$T/profile" "$T/plan.html 1280 light" "$T/plan.html 320 dark" \
    "$T/plan.html 3840 light" "$T/plan.html 1000 light" "$T/hours.html 320 light" "$T/nominal.html 320 light" "$T/between.html 1280 light" "$T/hostile.html 1280 light" "$T/hostile-plan.html 320 light" "$T/eighty.html 1280 dark" "$T/sixty-four.html 1280 light" \
    "$T/1x1.html 320 dark" "$T/2x8.html 1280 light" "$T/pairs.html 320 light" "$T/mixed.html 320 dark" "$T/same.html 320 light" "$T/compare.html 1280 light" >"$T/seen.json" 2>"$T/log"
result $? "Chromium opens the pages" "$T/log"

# sees NAME PYTHON: `seen` by page and width, `say` what is wrong.
sees() {
    python3 - "$T/seen.json" "$T" "$2" >"$T/faults" 2>&1 <<'PY'
import json, re, sys
visits, say = json.load(open(sys.argv[1])), []
seen = {v["page"].split("/")[-1][:-5] + " " + str(v["width"]): v["seen"] for v in visits}
def data(page):
    html = open(sys.argv[2] + "/" + page + ".html").read()
    return json.loads(re.search('id="data">(.*?)</script>', html, re.S).group(1))
exec(sys.argv[3])
print("\n".join(map(str, say[:20])), end="")
PY
    [ ! -s "$T/faults" ]
    result $? "$1" "$T/faults"
}

sees "no error and no request" 'say += [(v["page"], v["faults"], v["requests"]) for v in visits if v["faults"] or len(v["requests"]) != 1]'
sees "no page is wider than its window" 'say += [(k, s["width"], s["window"]) for k, s in seen.items() if s["width"] > s["window"]]'
sees "every map takes the focus and reads cells by arrow keys" '
for k, s in seen.items():
    lone = k.startswith("1x1") # one GPU is one cell
    alike = k.startswith("nominal") # there is nothing to draw
    if bool(s["read"]) == alike or not all(r["focused"] and r["label"] and (lone or r["before"] != r["after"]) for r in s["read"]):
        say.append((k, s["read"]))'
sees "sections of a plan" '
if seen["plan 1280"]["sections"] != ["step", "best", "placement", "schedule", "memory", "cluster", "accuracy", "origin"]:
    say.append(seen["plan 1280"]["sections"])'
sees "texts are the numbers of the JSON" '
d, texts = data("plan"), seen["plan 1280"]["texts"]
def want(text):
    if text not in texts:
        say.append("no %r" % text)
e = d["estimate"]
want("%.2f s" % e["step_s"])
want("{:,.0f}".format(e["tokens_per_s"]))
want("MFU %.1f %%" % (100 * e["mfu"]))
for part, s in e["breakdown_s"].items():
    if s > 0:
        want("%.4f" % s)
        want("%.1f %%" % (100 * s / e["step_s"]))
for t in d["plan"]["search"]["top"]:
    want("%.3f" % t["step_s"])
for m in d["memory"]:
    if not any(t.startswith("%.1f GiB, " % (m["peak_bytes"] / 2**30)) for t in texts):
        say.append(m["peak_bytes"])
for w in d["cluster"]["worst"]:
    want("%.3f" % w["gb_per_s"])
    want("%.0f %%" % (100 * w["share_of_median"]))
for i in d["inputs"]:
    want(i["sha256"])
want(d["command"])
first = d["ranks"]["node"]
rank = next(r for r in range(128) if first[r] == 0 and d["ranks"]["gpu"][r] == 0)
if not seen["plan 1280"]["read"][0]["before"].startswith("Rank %d: cnode2-001 GPU 0, stage %d," % (rank, rank // 8)):
    say.append(seen["plan 1280"]["read"][0])'
sees "the accuracy on record, and where there is none" '
def share(x, places=1):
    return "%.*f %%" % (places, 100 * x)
for page in "plan 1280", "2x8 1280":
    d, texts = data(page.split()[0]), seen[page]["texts"]
    kept = json.load(open("calibrate/record.json"))["records"]
    own = [r for r in kept if r["profile"] == d["parts"]["framework"]]
    here = d["parts"]["gpu_types"][0]["record"]["here"]
    if not here or here != [r for r in own if r["gpu"] == d["parts"]["gpu_types"][0]["name"]]:
        say.append(here)
    for r in here:
        sources = "%d: " % len(r["sources"]) + ", ".join(r["sources"])
        rows = [texts[i - 8:i] for i in range(len(texts)) if texts[i] == sources]
        if rows != [[str(r["steps"]), share(r["step_mape"]), share(r["step_median"]), share(r["step_in_interval"], 0),
                     str(r["peaks"]), share(r["peak_mape"]), share(r["peak_in_interval"], 0), "made from these runs"]]:
            say.append(rows)
said = [t for t in seen["mixed 320"]["texts"] if t.startswith("No run of megatron-core on b300-288g is on record. ")]
if not re.search("[0-9]+ steps of megatron-core on [0-9] other GPU types .a100-sxm4-80g, .*h100-sxm5-80g., [0-9]+ % to [0-9]+ % off "
                 "in the means. On record are 23 steps of 1 other profile on b300-288g .megatron-bridge., [0-9]+ % off", " ".join(said)):
    say.append(said or seen["mixed 320"]["texts"])'
sees "a riskier plan is beside the safe one" '
for page, width, digits in ("plan", 1280, 2), ("hours", 320, 3):
    said = re.search("^risky +([0-9.]+) s [(](.* less.*)[)], (chance of running out .*)", open(sys.argv[2] + "/" + page + "-said").read(), re.M)
    want = {"%.*f s" % (digits, float(said[1])), said[2] + "; " + said[3]}
    if not want <= set(seen["%s %d" % (page, width)]["texts"]):
        say.append((page, want))
for page, s in seen.items():
    if any("--oom-risk" in t for t in s["texts"]) != ("riskier" in data(page.split()[0]).get("plan", {}).get("search", {})):
        say.append(page)'
sees "links of data sheets are called so" '
want = {"nominal 320": ["inside and between"], "between 1280": ["between"], "compare 1280": ["inside", "inside"]}
for page, s in seen.items():
    said = [re.match("The links of .*? (inside and between|inside|between) nodes are nominal", t) for t in s["texts"]]
    said = [m[1] for m in said if m]
    if said != want.get(page, []):
        say.append((page, said))'
sees "digests and the names of sections are whole at 1000 px" 'say += seen["plan 1000"]["cut"]'
sees "a hostile name is a text" '
for page in ("hostile 1280", "hostile-plan 320"):
    s = seen[page]
    if "</script><img src=x onerror=alert(1)><b>\ufffd\ufffdlab" not in s["title"] or {"img"} & set(s["elements"]):
        say.append((s["title"], s["elements"]))'
sees "80 nodes are on a canvas, with names, and the pointer reads the cell that it is on" '
s = seen["eighty 1280"]
if not s["read"][0]["pointed"].startswith("n79 → n78: "):
    say.append(s["read"][0])
if "canvas" not in s["elements"] or not {"n%d" % k for k in range(20, 60)} <= set(s["drawn"]):
    say.append((s["elements"], s["drawn"]))'
sees "64 nodes: every GPU has its stage and replica" '
texts = seen["sixty-four 1280"]["inCells"]
if len(set(texts)) != 512 or "0A" not in texts:
    say.append(texts)'
sees "the plan is marked in the list" '
for page in "plan 1280", "2x8 1280":
    if seen[page]["texts"].count("this plan") != 1:
        say.append((page, seen[page]["texts"]))'
sees "what all GPUs of a pair reach together" '
if not any("From 50.00 to 52.00 GB/s; the median is 51.00." in t for t in seen["pairs 320"]["texts"]):
    say.append(seen["pairs 320"]["texts"])'
sees "an empty diff says so, another one its changes" '
if not any(re.match("No link of the [0-9,]+ measured in both files changed by more than 10 %; .* 100.0 % of its old", t) for t in seen["same 320"]["texts"]):
    say.append(seen["same 320"]["texts"][:5])
changes = data("compare")["diff"]["changes"]
for letter, c in zip("ABCDEFGHIJ", changes):
    if c["from"] not in seen["compare 1280"]["texts"] or seen["compare 1280"]["inCells"].count(letter) < 1:
        say.append(c)'
done_testing
