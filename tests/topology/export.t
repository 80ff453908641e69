#!/bin/bash
# What `cluster export` writes says what the cluster file says, is what the other program reads,
# and stays text whatever a cluster is called.
. tests/lib/tap.sh
needs python3 python3
L="spawn $LINKWISE"
cat >"$T/make.py" <<'P'
import json, sys
t = sys.argv[1]
def cluster(name, rows, **more):
    n = len(rows)
    nodes = [{"name": "n%02d" % i, "gpus": 2, "gpu_type": "h100-sxm5-80g"} for i in range(n)]
    inter = {"bandwidth_gb_per_s": rows, "latency_us": 12, **more}
    doc = {"version": 1, "name": name, "nodes": nodes,
           "links": {"intra": {"bandwidth_gb_per_s": 300, "latency_us": 8}, "inter": inter}}
    return doc
def write(file, doc): json.dump(doc, open("%s/%s.json" % (t, file), "w"))
def rows(n, rate): return [[None if i == j else rate(i, j) for j in range(n)] for i in range(n)]
evil = 'a"b\\c <i>&amp;</i>\x1b[31m\u009b\n} SwitchName=x Nodes=n00'
write("evil", cluster(evil, rows(5, lambda i, j: 40 + i + j / 10 if (i, j) != (1, 3) else None)))
# Two groups, odd and even, that reach 100 inside and 50 between them, all a little uneven.
write("two", cluster("two", rows(12, lambda i, j: (100 if i % 2 == j % 2 else 50) + (i * 7 + j * 3) % 5)))
# All alike, but one pair is slow one way.
write("pair", cluster("pair", rows(8, lambda i, j: 12 if (i, j) == (5, 2) else 48)))
# Alike for single GPUs; together pairs of one half reach twice what others do.
write("totals", cluster("totals", rows(8, lambda i, j: 48), node_pair_gb_per_s=rows(8, lambda i, j: 96 if i // 4 == j // 4 else 48)))
many = cluster("hosts", rows(7, lambda i, j: 48))
for node, name in zip(many["nodes"], ["g9", "g10", "g08", "g11", "x1y", "r1-07", "r1-06"]): node["name"] = name
write("hosts", many)
three = cluster("three", rows(8, lambda i, j: 90 if i // 2 == j // 2 else 60 if i // 4 == j // 4 else 30))
three["nodes"][7]["state"] = "drained"
three["nodes"][0].update(gpu_numa=[0, 1], gpu_nic=["mlx\"0", "mlx1"], nics=[{"name": 'mlx"0', "gb_per_s": 50}, {"name": "mlx1"}])
write("three", three)
P
python3 "$T/make.py" "$T"
cat >"$T/read.py" <<'P'
import csv, json, math, re, struct, sys
import xml.etree.ElementTree as xml
what, source, file = sys.argv[1:4]
doc = json.load(open(source))
names = [n["name"] for n in doc["nodes"]]
matrix = doc["links"]["inter"]["bandwidth_gb_per_s"]
n = len(names)
def near(a, b): return abs(a - b) <= 1e-6 * abs(b)
def pairs(): return ((i, j) for i in range(n) for j in range(n) if i != j)
def expand(text):
    out = []
    for one in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        head, _, rest = one.partition("[")
        for part in rest.rstrip("]").split(",") if rest else [None]:
            lo, _, hi = (part or "").partition("-")
            out += [head] if part is None else [head + str(k).zfill(len(lo)) for k in range(int(lo), int(hi or lo) + 1)]
    return out
def tree(text):
    """leaves as lists of names, root, lowest rate of each switch"""
    nodes, children, low, rate = {}, {}, {}, None
    conf = re.sub(r"\n +(nodes|children): ", lambda m: " %s=" % m[1], re.sub(r" +- switch: ", "SwitchName=", text))
    for line in conf.split("\n"):
        m = re.match(r" *# \d+ \w+, each pair at ([\d.]+) GB/s or more$", line)
        if m: rate = float(m[1]); continue
        m = re.match(r"SwitchName=(\S+) (nodes|children|switches)=(\S+)$", line, re.I)
        if m:
            (nodes if m[2].lower() == "nodes" else children)[m[1]] = expand(m[3])
            low[m[1]], rate = rate, None
        elif not re.match(r"#|---$|- topology: linkwise$|  cluster_default: true$|  tree:$|    switches:$|$", line): raise SystemExit("what is " + line)
    below = [c for l in children.values() for c in l]
    roots = [s for s in low if s not in below]
    assert len(roots) == 1 and len(set(below)) == len(below) and set(below) <= set(low)
    assert sorted(x for l in nodes.values() for x in l) == sorted(names)
    def under(s): return nodes.get(s) or [x for c in children[s] for x in under(c)]
    for s in low:
        ids = [names.index(x) for x in under(s)]
        rates = [min(totals[i][j], totals[j][i]) for i in ids for j in ids if i != j]
        assert not rates or abs(min(rates) - low[s]) < 1e-3 * low[s], s
    return [nodes[s] for s in nodes], children
totals = doc["links"]["inter"].get("node_pair_gb_per_s") or matrix
if what == "csv":
    rows = list(csv.DictReader(open(file)))
    got = {(r["from"], r["to"]): r for r in rows}
    assert len(got) == len(rows) == n * n
    for i, j in pairs():
        r, x = got[names[i], names[j]], matrix[i][j]
        assert (r["known"], r["bandwidth_gb_per_s"]) == ("unmeasured", "") if x is None else near(float(r["bandwidth_gb_per_s"]), x) and r["known"] == "measured"
elif what == "npy":
    for name, unit in (file, matrix), (file.replace(".npy", ".latency.npy"), None):
        data = open(name, "rb").read()
        assert data[:8] == b"\x93NUMPY\x01\x00" and ("(%d, %d)" % (n, n)).encode() in data[:128] and b"'<f8'" in data[:128]
        v = struct.unpack("<%dd" % (n * n), data[128:])
        for i, j in pairs():
            x = matrix[i][j]
            assert math.isnan(v[i * n + j]) if x is None else near(v[i * n + j], x if unit else 12)
        assert all(math.isnan(v[i * n + i]) for i in range(n))
elif what == "prometheus":
    series, done, last = {}, set(), None
    label = r'[a-z]+="(?:[^"\\\n]|\\[\\"n])*"'
    for line in open(file, encoding="utf-8").read().split("\n")[:-1]:
        if line.startswith("# Between"): continue
        m = re.fullmatch(r"# (?:HELP (\w+) .+|TYPE (\w+) gauge)|(\w+)\{(%s(?:,%s)*)\} (\S+)" % (label, label), line)
        assert m, line
        name = m[1] or m[2] or m[3]
        if name != last: assert name not in done; done.add(name); last = name
        if m[3]:
            labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', m[4]))
            series[(name, labels.get("from", labels.get("node")), labels.get("to"))] = float(m[5])
    for i, j in pairs():
        x, key = matrix[i][j], (names[i], names[j])
        rate = series.get(("linkwise_link_bandwidth_bytes_per_second", *key))
        assert rate is None if x is None else near(rate, x * 1e9)
        assert series["linkwise_link_measured", key[0], key[1]] == (x is not None)
        if x is not None: assert near(series["linkwise_link_latency_seconds", key[0], key[1]], 12e-6)
    for node in doc["nodes"]:
        assert series["linkwise_node_drained", node["name"], None] == (node.get("state") == "drained")
elif what == "svg":
    root = xml.parse(file).getroot()
    s = "{http://www.w3.org/2000/svg}"
    known = sorted(x for i, j in pairs() for x in [matrix[i][j]] if x)
    median = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
    title = re.sub("[\x00-\x1f\x7f-\x9f]", "?", doc["name"])
    assert re.sub(r"\?+", "?", root.find(s + "title").text) == re.sub(r"\?+", "?", "Links between the nodes of " + title)
    shades = {g.get("id"): g.find(s + "text").text for g in root.find(s + "defs")}
    cells = {c.find(s + "title").text.split(":")[0]: (c.find(s + "title").text, shades[c.get("href")[1:]]) for c in root.iter(s + "use") if len(c)}
    assert len(cells) == n * (n - 1)
    for i, j in pairs():
        text, letter = cells["%s to %s" % (names[i], names[j])]
        share = (matrix[i][j] or 0) / median
        assert letter == ("?" if not matrix[i][j] else "#" if share >= .95 else str(int(10 * share))), (i, j, letter)
        assert text.endswith("unmeasured" if not matrix[i][j] else "%.4g GB/s" % matrix[i][j])
    legend = {shades[u.get("href")[1:]] for u in root.iter(s + "use") if not len(u)}
    assert legend == {letter for _, letter in cells.values()} and "prefers-color-scheme:dark" in root.find(s + "style").text
    outlined = [r for r in root.iter(s + "rect") if r.get("class") == "o"]
    listed = [t.text for t in root.iter(s + "text") if re.match(r"\d+: n", t.text or "")]
    lowest = min(pairs(), key=lambda p: matrix[p[0]][p[1]] or 1e9)
    assert len(outlined) == len(listed) > 0 and listed[0].startswith("1: %s to %s," % (names[lowest[0]], names[lowest[1]]))
elif what == "graphviz":
    text = open(file, encoding="utf-8").read()
    edges = re.findall(r'^    "(\S+)" -- "(\S+)" \[label="([^"]*)"', text, re.M)
    assert len(edges) == n * (n - 1) // 2
    for a, b, label in edges:
        there, back = matrix[names.index(a)][names.index(b)], matrix[names.index(b)][names.index(a)]
        assert label == ("unmeasured" if not there or not back else "%.4g" % there if there == back else "%.4g / %.4g" % (there, back)), label
    assert not re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.S).count('"')
else: # a tree for Slurm, of the given leaves
    leaves, children = tree(open(file, encoding="utf-8").read())
    assert sorted(map(sorted, leaves)) == sorted(map(sorted, eval(what))), leaves
P
reads() { # WHAT CLUSTER FILE NAME
    py "$T/read.py" "$1" "$T/$2.json" "$3" >"$T/why" 2>&1
    result $? "$4" "$T/why"
}
tree() { # CLUSTER LEAVES
    for ending in conf yaml; do
        $L cluster export --to slurm-topology "$T/$1.json" -o "$T/$1.$ending" >"$T/why" 2>&1
        reads "$2" "$1" "$T/$1.$ending" "topology.$ending of $1 has the right leaves below one root, and says their rates"
    done
}

for to in csv npy prometheus svg graphviz; do
    for cluster in evil two; do
        $L cluster export --to $to "$T/$cluster.json" -o "$T/$cluster.$to" >"$T/why" 2>&1 &&
            $L cluster export --to $to "$T/$cluster.json" -o "$T/again.$to" >>"$T/why" 2>&1 &&
            cmp "$T/$cluster.$to" "$T/again.$to" >>"$T/why" 2>&1
        result $? "$to of $cluster is the same twice" "$T/why"
        reads $to $cluster "$T/$cluster.$to" "$to of $cluster says what the cluster file says"
    done
done
$L cluster export --to svg examples/clusters/h100-17.json -o "$T/both.svg" >/dev/null
python3 - "$T/both.svg" >"$T/why" 2>&1 <<'P'
import json, sys
import xml.etree.ElementTree as xml
doc = json.load(open("examples/clusters/h100-17.json"))
names, inter = [n["name"] for n in doc["nodes"]], doc["links"]["inter"]
said = sorted(t.text for t in xml.parse(sys.argv[1]).getroot().iter("{http://www.w3.org/2000/svg}title"))
expected = ["Links between the nodes of h100-17"]
for matrix in inter["bandwidth_gb_per_s"], inter["node_pair_gb_per_s"]:
    expected += ["%s to %s: %s" % (a, b, "%.4g GB/s" % matrix[i][j] if matrix[i][j] else "unmeasured")
                 for i, a in enumerate(names) for j, b in enumerate(names) if i != j]
assert said == sorted(expected), set(said) ^ set(expected)
P
result $? "a second map has what all GPUs of a pair reach together" "$T/why"
python3 - "$T" <<'P'
import json, sys
doc = json.load(open("examples/clusters/h100-17.json"))
doc["links"]["inter"]["bandwidth_gb_per_s"] = 40
json.dump(doc, open(sys.argv[1] + "/totals-only.json", "w"))
P
$L cluster export --to svg "$T/totals-only.json" -o "$T/totals.svg" >/dev/null 2>"$T/why"
python3 - "$T/totals.svg" >>"$T/why" 2>&1 <<'P'
import json, sys
import xml.etree.ElementTree as xml
doc = json.load(open("examples/clusters/h100-17.json"))
names, total = [n["name"] for n in doc["nodes"]], doc["links"]["inter"]["node_pair_gb_per_s"]
said = sorted(t.text for t in xml.parse(sys.argv[1]).getroot().iter("{http://www.w3.org/2000/svg}title"))
assert said == sorted(["Links between the nodes of h100-17"] +
    ["%s to %s: %s" % (a, b, "%.4g GB/s" % total[i][j] if total[i][j] else "unmeasured")
     for i, a in enumerate(names) for j, b in enumerate(names) if i != j])
P
result $? "where only the totals differ they are the one map" "$T/why"
even='["n00", "n02", "n04", "n06", "n08", "n10"]' odd='["n01", "n03", "n05", "n07", "n09", "n11"]'
tree two "[$even, $odd]"
tree pair '[["n00", "n01", "n02", "n03", "n04", "n06", "n07"], ["n05"]]'
tree totals '[["n00", "n01", "n02", "n03"], ["n04", "n05", "n06", "n07"]]'
tree three '[["n00", "n01"], ["n02", "n03"], ["n04", "n05"], ["n06", "n07"]]'
grep -q "^SwitchName=s4 Switches=s\[0-1\]" "$T/three.conf" && grep -q "^SwitchName=s6 Switches=s\[4-5\]" "$T/three.conf"
result $? "three tiers are three levels" "$T/three.conf"
tree hosts '[["g9", "g10", "g08", "g11", "x1y", "r1-07", "r1-06"]]'
grep -q "Nodes=g\[08,9-11\],r1-\[06-07\],x1y$" "$T/hosts.conf"
result $? "hosts are ranges" "$T/hosts.conf"
$L cluster export --to slurm-topology "$T/evil.json" -o "$T/evil.conf" >/dev/null
[ "$(grep -vc '^#' "$T/evil.conf")" = "$(grep -c '^SwitchName=s[0-9]* ' "$T/evil.conf")" ]
result $? "a name stays in its comment" "$T/evil.conf"
$L cluster export --to graphviz --node n00 "$T/three.json" -o "$T/node.dot" >/dev/null
grep -q 'cluster_numa1 { label="NUMA 1"; "GPU 1"; }' "$T/node.dot" && grep -q '"GPU 0" -- "mlx\\"0"' "$T/node.dot" &&
    grep -q 'label="mlx\\"0\\n50 GB/s"' "$T/node.dot" && grep -q '"GPU 0" -- "GPU 1" \[label="300"' "$T/node.dot"
result $? "a node's GPUs, NUMA nodes and NICs" "$T/node.dot"
if command -v dot >/dev/null; then
    cat "$T/evil.graphviz" "$T/node.dot" | dot -Tplain >"$T/why" 2>&1
    result $? "GraphViz reads it" "$T/why"
fi
$LINKWISE cluster show --prometheus "$T/two.json" | cmp - "$T/two.prometheus" >"$T/why" 2>&1
result $? "cluster show --prometheus is the same" "$T/why"
$L cluster synth failing --nodes 300 --gpus 1 --seed 3 -o "$T/big.json" >/dev/null
$L cluster export --to prometheus "$T/big.json" -o "$T/big.prometheus" >/dev/null
n=$(grep -c '^linkwise_link_bandwidth' "$T/big.prometheus")
[ "$n" -gt 100 ] && [ "$n" -lt 9000 ]
result $? "of 300 nodes the slow links alone: $n"

python3 - "$T" <<'P'
import json, sys
doc = json.load(open(sys.argv[1] + "/totals-only.json"))
doc["links"]["inter"]["node_pair_gb_per_s"] = 80
json.dump(doc, open(sys.argv[1] + "/number.json", "w"))
P
expect 2 "an unknown format" 'expected slurm-topology, prometheus, csv, npy, svg, graphviz, found "dot"' $L cluster export --to dot "$T/two.json" -o -
expect 2 "one node's table" "csv shows all nodes" $L cluster export --to csv --node n00 "$T/two.json" -o -
expect 2 "no such node" 'no node "n99"' $L cluster export --to graphviz --node n99 "$T/two.json" -o -
expect 2 "two matrices on one stream" "standard output cannot take two matrices" $L cluster export --to npy "$T/two.json" -o -
expect 1 "a picture of links that are all alike" "found none to draw" $L cluster export --to svg "4x2 h100" -o -
expect 1 "nor of totals that are" "found none to draw" $L cluster export --to svg "$T/number.json" -o -
expect 2 "no output" "o FILE are required" $L cluster export --to csv "$T/two.json"
done_testing
