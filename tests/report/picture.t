#!/bin/bash
# report --svg: every GPU with its stage and replica, the measured rates on the lines, the links in
# use outlined; names stay text; nothing is asked for; docs/pictures are what `make pictures` draws.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE" C=examples/clusters/h100-17.json

cat >"$T/look.py" <<'P'
import json, re, sys
import xml.etree.ElementTree as xml
plan, text = json.load(open(sys.argv[1])), open(sys.argv[2], encoding="utf-8").read()
root, s = xml.fromstring(text), "{http://www.w3.org/2000/svg}"
deg, cluster = plan["degrees"], plan["cluster"]
names, inter = [n["name"] for n in cluster["nodes"]], cluster["links"]["inter"]
rates = inter.get("node_pair_gb_per_s", inter["bandwidth_gb_per_s"])
def letters(k): return (letters(k // 26 - 1) if k >= 26 else "") + chr(65 + k % 26)
where, replica = [(r["node"], r["gpu"]) for r in plan["ranks"]], deg["tp"] * deg["cp"]
texts = [t.text or "" for t in root.iter(s + "text")]
label = ["%d%s" % (r // (replica * deg["dp"]), letters(r // replica % deg["dp"])) for r in range(len(where))]
on = {place: text for place, text in zip(where, label)}
boxes = list(dict.fromkeys(n for n, _ in where))
cells = [t for t in texts if re.fullmatch(r"\d+[A-Z]+|-", t)]
expected = [on.get((n, g), "-") for n in boxes for g in range(cluster["nodes"][names.index(n)]["gpus"])]
assert cells == expected, (cells, expected)
# who sends to whom
used = set()
def use(a, b):
    if where[a][0] != where[b][0]: used.add((where[a][0], where[b][0]))
def ring(size, stride, pipeline):
    for r in range(len(where)):
        at = r // stride % size
        next = r + ((at + 1) % size - at) * stride
        if pipeline and at + 1 == size and deg["vpp"] == 1: continue
        use(r, next)
        if pipeline: use(next, r)
ring(deg["tp"], 1, False)
ring(deg["dp"], replica, False)
ring(deg["pp"], replica * deg["dp"], True)
order = [t for t in texts if t in names][len(boxes):][::2]
assert sorted(order) == sorted(names) and order[:len(boxes)] == boxes
grid = [g for g in root.iter(s + "g") if g.get("transform")]
left, top = map(int, re.findall(r"\d+", grid[0].get("transform")))
outlined = {(order[(int(r.get("y")) - top) // 18], order[(int(r.get("x")) - left) // 18]) for r in root.iter(s + "rect") if r.get("class") == "u"}
assert outlined == used, outlined ^ used
figures = {t.text for t in root.findall(s + "text") if re.fullmatch(r"\d+(\.\d+)?", t.text or "")}
assert figures and figures <= {"%.3g" % rates[names.index(a)][names.index(b)] for a, b in used}, figures
titles = {t.text for t in root.iter(s + "title")}
for i, a in enumerate(names):
    for j, b in enumerate(names):
        if i != j: assert "%s to %s: %s" % (a, b, "%.4g GB/s" % rates[i][j] if rates[i][j] else "unmeasured") in titles
e = plan["estimate"]
step = "Estimated step: %.2f s" % e["step_s"]
if e["default_order_step_s"] > 1.001 * e["step_s"]:
    step += "; %.2f s in Megatron's rank order: this placement saves %.1f %%" % (e["default_order_step_s"], 100 - 100 * e["step_s"] / e["default_order_step_s"])
assert step in texts, step
assert not [x for x in root.iter() if x.tag in (s + "script", s + "image", s + "foreignObject")]
assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg\")", text) and len(text) < 60000
assert "prefers-color-scheme:dark" in text and root.get("role") == "img" and root.find(s + "desc").text
P
draws() { # NAME PLAN-OPTIONS...
    local name=$1
    shift
    $L plan "$@" -o "$T/plan.json" >"$T/why" 2>&1 && $L report --svg "$T/plan.json" -o "$T/plan.svg" >>"$T/why" 2>&1 &&
        python3 "$T/look.py" "$T/plan.json" "$T/plan.svg" >>"$T/why" 2>&1
    result $? "$name" "$T/why"
}
draws "two stages of eight nodes" $C llama-2-13b --seq 4096 --global-batch 1024 --tp 8 --pp 2 --schedule 1f1b
draws "a grid of stages and replicas" $C llama-2-70b --seq 4096 --global-batch 256 --tp 8 --pp 4 --dp 4 --schedule 1f1b
draws "a chain of stages, links of single GPUs" examples/clusters/h100-10.json llama-2-70b --seq 4096 --global-batch 64 --tp 8 --pp 10 --dp 1

python3 - "$T" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/plan.json"))
d["model"]["name"] = "</svg><script>alert(1)</script>&\u0007\u009b\"x"
json.dump(d, open(sys.argv[1] + "/evil.json", "w"))
P
$L report --svg "$T/evil.json" -o "$T/evil.svg" 2>"$T/why"
python3 - "$T/evil.svg" >>"$T/why" 2>&1 <<'P'
import sys
import xml.etree.ElementTree as xml
root = xml.parse(sys.argv[1]).getroot()
assert root[0].text.startswith("</svg><script>alert(1)</script>&"), root[0].text
assert not [x for x in root.iter() if x.tag.endswith("script")]
P
result $? "names stay text" "$T/why"
$L plan "4x2 h100" gpt2-xl --seq 1024 --global-batch 16 --tp 1 --pp 1 --dp 8 -o "$T/even.json" >/dev/null 2>&1
expect 0 "nodes that are all alike have boxes" "stage 0" $L report --svg "$T/even.json" -o -
! grep -q "<use" "$T/out"
result $? "... and no map"
$L plan "65x1 h100 inter:20" gpt2-xl --seq 1024 --global-batch 65 --pp 1 -o "$T/many.json" >/dev/null 2>&1
expect 1 "more nodes than can be read" "expected at most 64 nodes for a picture, found 65" $L report --svg "$T/many.json" -o "$T/no.svg"
expect 1 "a cluster" "expected a plan, found a cluster .*cluster export --to svg" $L report --svg $C -o "$T/no.svg"
expect 2 "two clusters" "svg draws a PLAN" $L report --svg --compare $C $C -o "$T/no.svg"
[ ! -e "$T/no.svg" ]
result $? "and nothing is written"

env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory pictures SAN="${SAN:-}" PICTURES="$T/pictures" >"$T/why" 2>&1 &&
    diff -rq docs/pictures "$T/pictures" >>"$T/why" 2>&1
result $? "docs/pictures are what make pictures draws" "$T/why"
done_testing
