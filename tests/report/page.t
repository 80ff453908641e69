#!/bin/bash
# linkwise report: one well-formed file without requests, whose numbers are those of the plan, of
# eval and of cluster show; hostile names stay data; a plan of another cluster is refused.
. tests/lib/tap.sh
needs python3 python3

C=examples/clusters/h100-17.json
"$LINKWISE" plan $C llama-2-70b --seq 4096 --global-batch 1024 --tp 2 --pp 16 --dp 4 -o "$T/plan.json" >"$T/log" 2>&1
result $? "a plan" "$T/log"

# What is wrong with a page, one line a fault: python3 "$T/look.py" PAGE CHECK...
cat >"$T/look.py" <<'PY'
import html.parser, json, sys

class Page(html.parser.HTMLParser):
    void = {"meta", "link", "img", "br", "hr", "input"}
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.scripts, self.tags = [], [], [], []
    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append("unbalanced </%s>" % tag)
    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text

text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
page.close()
say = page.faults + ["<%s> is not closed" % t for t in page.open]
if len(page.scripts) != 2:
    say.append("%d scripts" % len(page.scripts))
data = json.loads(page.scripts[0])
if any(c in page.scripts[0] for c in "<>&\u2028\u2029"):
    say.append("markup in the data")
for tag, attrs in page.tags:
    if "src" in attrs or attrs.get("href", "#")[:1] != "#" and attrs.get("href") != "data:,":
        say.append("a request: %s %s" % (tag, attrs))
rest = text.replace(page.scripts[0], "")
say += ["%r outside the data" % word for word in ("http:", "https:", "@import", "url(//") if word in rest]
if "default-src 'none'" not in str(page.tags):
    say.append("no policy")
if len(page.scripts[1]) >= 60 * 1024:
    say.append("%d bytes of script" % len(page.scripts[1]))
def equal(what, found, expected):
    if found != expected and not (isinstance(found, float) and abs(found - expected) <= 1e-11 * abs(expected)):
        say.append("%s: %r, expected %r" % (what, found, expected))
def load(i):
    return json.load(open(sys.argv[i]))
exec(sys.argv[2])
print("\n".join(say[:20]), end="")
PY

# looks NAME PAGE MOST-BYTES PYTHON [FILE...]
looks() {
    local name=$1 page=$2 most=$3
    shift 3
    py "$T/look.py" "$page" "$@" >"$T/faults" 2>&1
    [ "$(wc -c <"$page")" -le "$most" ] || wc -c "$page" >>"$T/faults"
    [ ! -s "$T/faults" ]
    result $? "$name" "$T/faults"
}

"$LINKWISE" report "$T/plan.json" -o "$T/plan.html" >"$T/log" 2>&1
result $? "report PLAN" "$T/log"
"$LINKWISE" eval "$T/plan.json" --json >"$T/eval.json"
looks "a plan of 128 GPUs: its numbers, in 400 KB" "$T/plan.html" 400000 '
plan, evaluated = load(3), load(4)
equal("kind", data["kind"], "plan")
for key in ("step_s", "mfu", "tokens_per_s", "binding_stage", "binding_replica"):
    equal(key, data["estimate"][key], evaluated[key])
for key, s in evaluated["breakdown_s"].items():
    equal(key, data["estimate"]["breakdown_s"][key], s)
equal("interval", data["estimate"]["step_s"] * data["step_factor"], evaluated["step_high_s"])
equal("stages", len(data["memory"]), 16)
for mine, own in zip(data["memory"], plan["memory"]["per_stage"]):
    for key, bytes in own.items():
        equal(key, mine[key], bytes)
equal("chance", data["memory"][plan["memory"]["binding_stage"]]["oom_probability"], plan["memory"]["oom_probability"])
for mine, own in zip(data["plan"]["search"]["top"], plan["search"]["top"]):
    equal("top step", mine["step_s"], own["step_s"])
    equal("tie", mine["tie"], own["tie"])
names = [n["name"] for n in data["cluster"]["nodes"]]
for r in plan["ranks"]:
    equal("node", names[data["ranks"]["node"][r["rank"]]], r["node"])
    equal("gpu", data["ranks"]["gpu"][r["rank"]], r["gpu"])
inter = plan["cluster"]["links"]["inter"]["bandwidth_gb_per_s"]
for r in range(128):
    a, b = data["ranks"]["node"][r], data["ranks"]["node"][(r + 8) % 128]
    equal("pp link of %d" % r, data["ranks"]["links"]["pp"]["gb_per_s"][r], float("%.4g" % inter[a][b]) if inter[a][b] else None)
for i in range(17):
    for j in range(17):
        x = inter[i][j] if i != j else None
        equal("heat", data["cluster"]["links"]["gb_per_s"][17 * i + j], float("%.4g" % x) if x else None)
equal("banner", data["banner"], None)
equal("inputs", [i["what"] for i in data["inputs"]], ["plan", "cluster"])
' "$T/plan.json" "$T/eval.json"
[ "$(sha256sum <"$T/plan.json" | cut -c1-64)" = "$(grep -o '"plan","file":"[^"]*","sha256":"[0-9a-f]*' "$T/plan.html" | tail -c 65 | head -c 64)" ]
result $? "the plan's digest"

# The packed schedule is the one that --trace writes.
"$LINKWISE" eval "$T/plan.json" --trace "$T/trace.json" >"$T/log" 2>&1
looks "the schedule is the trace's" "$T/plan.html" 400000 '
digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
s, chunks = data["schedule"], data["plan"]["degrees"]["vpp"]
trace = [e for e in load(3)["traceEvents"] if e["ph"] == "X" and e["pid"] == s["replica"]]
for k, stage in enumerate(s["stages"]):
    own = {e["name"]: e for e in trace if e["tid"] == k}
    at, end, last, seen = iter(stage["events"]), 0, {}, set()
    def number():
        x = shift = 0
        while True:
            d = digits.index(next(at))
            x |= (d & 31) << shift
            shift += 5
            if d < 32:
                return x
    while True:
        try:
            code = number()
        except StopIteration:
            break
        kind = code >> 1
        micro = last[kind] = number() if code & 1 else last.get(kind, -1) + 1
        start = end + number()
        end = start + stage["units"][kind]
        name = "FBW"[kind % 3] + str(micro) + (".%d" % (kind // 3) if chunks > 1 else "")
        seen.add(name)
        if name not in own or abs(own[name]["ts"] - start * s["unit_s"] * 1e6) > 3 * s["unit_s"] * 1e6:
            say.append("stage %d: %s at %g" % (k, name, start * s["unit_s"]))
    equal("events of stage %d" % k, len(seen), stage["n"])
    equal("and of the trace", len(seen), len([n for n in own if n[0] in "FBW"]))
' "$T/trace.json"

"$LINKWISE" report "$C" -o "$T/cluster.html" && "$LINKWISE" cluster show "$C" --worst 10 --json >"$T/show.json"
looks "a cluster: the numbers of cluster show" "$T/cluster.html" 200000 '
show = load(3)
for key in ("name", "n_nodes", "n_gpus", "slow_links"):
    equal(key, data["cluster"][key], show[key])
for kind in ("worst", "tiers"):
    equal(kind, len(data["cluster"][kind]), len(show[kind]))
    for mine, own in zip(data["cluster"][kind], show[kind]):
        for key, x in own.items():
            equal(key, mine[key], x)
' "$T/show.json"

# ---- two clusters ----

before=examples/clusters/a100-16-before.json after=examples/clusters/a100-16-after.json
"$LINKWISE" report --compare $before $after -o "$T/compare.html" && "$LINKWISE" compare $before $after --worst 100 --json >"$T/compare.json"
looks "two times of a cluster: the changes of compare" "$T/compare.html" 300000 '
equal("diff", json.dumps(data["diff"], sort_keys=True)[:60], json.dumps(load(3)["diff"], sort_keys=True)[:60])
for mine, own in zip(data["diff"]["changes"], load(3)["diff"]["changes"]):
    for key, x in own.items():
        equal(key, mine[key], x)
' "$T/compare.json"
"$LINKWISE" report --compare $C $C -o "$T/same.html"
looks "an empty diff" "$T/same.html" 300000 'equal("changes", data["diff"]["changes"], []); equal("slower", data["diff"]["slower"], 0)'

# ---- large clusters ----

"$LINKWISE" cluster synth busy --nodes 200 --npy -o "$T/large.json" >/dev/null && "$LINKWISE" report "$T/large.json" -o "$T/large.html"
looks "codes of a large cluster are its rates" "$T/large.html" 400000 '
import array
digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
m = data["cluster"]["links"]
known, own = [], load(3)["links"]["inter"]["bandwidth_gb_per_s"]
for k in range(len(m["code"]) // 2):
    c = 64 * digits.index(m["code"][2 * k]) + digits.index(m["code"][2 * k + 1])
    known.append(None if c == 0 else m["low_gb_per_s"] * (m["high_gb_per_s"] / m["low_gb_per_s"]) ** ((c - 1) / 4094))
equal("n", m["n"], 200)
raw = open(sys.argv[3].replace(sys.argv[3].split("/")[-1], own["npy"]), "rb").read()
size = {"<f4": ("f", 4), "<f8": ("d", 8)}[raw[:128].decode("latin-1").split("descr")[1][4:7]]
rates = array.array(size[0], raw[len(raw) - 200 * 200 * size[1]:])
for k, rate in enumerate(rates):
    if k // 200 != k % 200 and abs(known[k] / rate - 1) > 1e-3:
        say.append("%d: %r, expected %r" % (k, known[k], rate))
' "$T/large.json"

# As large as docs/report.md says; a quarter of a minute.
if [ -n "${LINKWISE_LONG:-}" ]; then
    "$LINKWISE" cluster synth busy --nodes 2048 --npy -o "$T/huge.json" >/dev/null
    "$LINKWISE" plan "$T/huge.json" llama-3-405b --seq 8192 --global-batch 4096 --tp 8 --pp 16 --dp 128 --micro-batch 1 --zero 1 \
        --recompute selective --schedule 1f1b --sequence-parallel on --time-limit 20 -o "$T/huge-plan.json" >"$T/log" 2>&1 &&
        "$LINKWISE" report "$T/huge-plan.json" -o "$T/huge.html" 2>>"$T/log"
    looks "a plan of 16,384 GPUs in 5 MB" "$T/huge.html" 5000000 'equal("ranks", len(data["ranks"]["node"]), 16384)'
fi

# ---- bad input ----

python3 - $C "$T" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
c["name"] = "</script><img src=x onerror=alert(1)><!--\u2028\u202e\u0007 & \"lab\""
c["source"] = "<script>alert(2)</script>"
json.dump(c, open(sys.argv[2] + "/hostile.json", "w"))
PY
"$LINKWISE" report "$T/hostile.json" -o "$T/hostile.html" 2>"$T/log"
looks "markup and control characters in names stay data" "$T/hostile.html" 200000 '
equal("name", data["cluster"]["name"], load(3)["name"])
equal("images", [t for t, a in page.tags if t == "img"], [])
' "$T/hostile.json"
expect 1 "a plan of another cluster is refused" 'expected the cluster of the plan \(sha256 [0-9a-f]{12}\.\.\.\), found another' \
    "$LINKWISE" report "$T/plan.json" "$T/hostile.json" -o "$T/no.html"
[ ! -e "$T/no.html" ]
result $? "and nothing is written"
"$LINKWISE" report --force "$T/plan.json" "$T/hostile.json" -o "$T/forced.html" 2>"$T/log"
looks "or shown under a banner, without the search's results" "$T/forced.html" 400000 '
equal("banner", "another cluster" in str(data["banner"]), True)
equal("search", "search" in data["plan"], False)
equal("digests differ", len(data["inputs"]), 2)'
"$LINKWISE" report "$T/plan.json" $C -o "$T/own.html" >"$T/log" 2>&1
result $? "its own cluster is taken" "$T/log"
grep -q '"banner":null' "$T/own.html"
result $? "without a banner"
python3 -c "
import json, sys
p = json.load(open(sys.argv[1]))
a, b = p['ranks'][0], p['ranks'][127]
a['node'], a['gpu'], b['node'], b['gpu'] = b['node'], b['gpu'], a['node'], a['gpu']
json.dump(p, open(sys.argv[2], 'w'))" "$T/plan.json" "$T/edited.json"
"$LINKWISE" report "$T/edited.json" -o "$T/edited.html" && "$LINKWISE" eval "$T/edited.json" --json >"$T/edited-eval.json"
looks "an edited plan: priced anew, the search's results left out" "$T/edited.html" 400000 '
equal("step", data["estimate"]["step_s"], load(3)["step_s"])
equal("search", "search" in data["plan"], False)' "$T/edited-eval.json"
# The digest of a large cluster is also that of the matrices beside it.
"$LINKWISE" cluster synth busy --nodes 260 --gpus 1 --npy -o "$T/beside.json" >/dev/null
"$LINKWISE" plan "$T/beside.json" gpt2-xl --seq 1024 --global-batch 260 --tp 1 --pp 1 --dp 260 --micro-batch 1 --zero 1 \
    --recompute none -o "$T/beside-plan.json" >"$T/log" 2>&1
expect 0 "a plan of a cluster with matrices beside it" '"banner":null' "$LINKWISE" report "$T/beside-plan.json" "$T/beside.json" -o -
matrix=$(python3 -c "import json; print(json.load(open('$T/beside.json'))['links']['inter']['bandwidth_gb_per_s']['npy'])")
python3 - "$T/$matrix" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-8 * 260:] = data[128:128 + 8 * 260]
open(sys.argv[1], "wb").write(data)
PY
expect 1 "another matrix is another cluster" 'expected the cluster of the plan \(sha256' \
    "$LINKWISE" report "$T/beside-plan.json" "$T/beside.json" -o "$T/no.html"
expect 1 "... also where the plan names it" 'has changed since the plan was made' "$LINKWISE" eval "$T/beside-plan.json"
rm "$T/$matrix"
expect 1 "... or none" "$matrix: No such file" "$LINKWISE" report "$T/beside-plan.json" -o "$T/no.html"
expect 1 "a cluster where a plan is due" 'expected a plan, found a cluster' "$LINKWISE" report $C $C -o "$T/no.html"
expect 1 "a plan where a cluster is due" 'expected a cluster, found a plan' \
    "$LINKWISE" report --compare $C "$T/plan.json" -o "$T/no.html"
expect 2 "--compare of one" 'takes two CLUSTERs' "$LINKWISE" report --compare $C -o "$T/no.html"
expect 2 "--force of a cluster" 'force goes with PLAN CLUSTER' "$LINKWISE" report --force $C -o "$T/no.html"
expect 2 "--force with --compare" 'force goes with PLAN CLUSTER' "$LINKWISE" report --force --compare $C $C -o "$T/no.html"
cp $C "$T/mine.json" && ln -s mine.json "$T/link.json"
sha256sum "$T/mine.json" "$T/plan.json" >"$T/sums"
expect 2 "a page in place of the plan" 'expected another file, found an input' \
    "$LINKWISE" report "$T/plan.json" -o "$T/plan.json"
expect 2 "in place of a cluster behind a link" 'found an input' "$LINKWISE" report --compare $C "$T/mine.json" -o "$T/link.json"
expect 2 "in place of the plan's cluster" 'found an input' "$LINKWISE" report "$T/plan.json" "$T/mine.json" -o "$T/mine.json"
python3 -c "
import hashlib, json, sys
p = json.load(open(sys.argv[1]))
p['cluster'] = {'file': sys.argv[2], 'sha256': hashlib.sha256(open(sys.argv[2], 'rb').read()).hexdigest()}
json.dump(p, open(sys.argv[3], 'w'))" "$T/plan.json" "$T/mine.json" "$T/names.json"
expect 2 "in place of the cluster that the plan names" 'found an input' "$LINKWISE" report "$T/names.json" -o "$T/mine.json"
sha256sum -c "$T/sums" >"$T/log" 2>&1
result $? "and all inputs are as they were" "$T/log"
cp $C "$T"/$'caf\xe9\xed\xa0\x80.json' && "$LINKWISE" report "$T"/$'caf\xe9\xed\xa0\x80.json' -o "$T/name.html" 2>"$T/log"
looks "a name that is not UTF-8 is escaped, its digest there" "$T/name.html" 200000 '
import hashlib
name = sys.argv[1].replace("name.html", r"caf\xe9\xed\xa0\x80.json")
equal("inputs", data["inputs"], [{"what": "cluster", "file": name, "sha256": hashlib.sha256(open(sys.argv[3], "rb").read()).hexdigest()}])
equal("the command has it", name in data["command"], True)' $C
expect 2 "no -o" 'are required' "$LINKWISE" report $C
expect 1 "a file that is not there" 'no.json' "$LINKWISE" report "$T/no.json" -o "$T/no.html"
expect 0 "standard input and output" '"kind":"cluster"' bash -c "'$LINKWISE' report - -o - <$C"
expect 0 "a cluster on one line" '"nominal_links":\[\]' "$LINKWISE" report '2x8 h100-sxm5-80g intra:370 inter:48' -o -
expect 0 "without its rates" '"nominal_links":\["intra","inter"\]' "$LINKWISE" report '2x8 h100' -o -
done_testing
