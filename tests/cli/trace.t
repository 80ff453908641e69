#!/bin/bash
# Traces are what the Trace Event Format says, read as Perfetto's importer reads them (its
# json_trace_tokenizer, slice_tracker and flow_tracker): nothing is dropped, each arrow binds to the
# slice that it is about, every track has a name.
. tests/lib/tap.sh
needs python3 python3
cat >"$T/read.py" <<'P'
import json, sys
doc = json.load(open(sys.argv[1]))
replicas, stages = int(sys.argv[2]), int(sys.argv[3])
assert set(doc) == {"displayTimeUnit", "traceEvents"} and doc["displayTimeUnit"] in ("ms", "ns")
events = doc["traceEvents"]
assert {e["ph"] for e in events} <= {"X", "M", "s", "t", "f"}
for e in events:
    assert type(e["pid"]) is int and type(e["tid"]) is int and 0 <= e["pid"] < replicas and e["tid"] >= 0
    assert e["name"] and e["name"].isprintable()
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and e["args"]["name"].isprintable() and "ts" not in e
    else:
        assert e["ts"] >= 0 and abs(1000 * e["ts"] - round(1000 * e["ts"])) < 1e-3, e
    if e["ph"] == "X":
        assert e["dur"] >= 0, e
names = {}
for e in events:
    if e["ph"] == "M":
        key = (e["pid"],) if e["name"] == "process_name" else (e["pid"], e["tid"])
        assert key not in names, "named twice: %s" % e
        names[key] = e["args"]["name"]
assert {k for k in names if len(k) == 1} == {(d,) for d in range(replicas)}
assert {(e["pid"], e["tid"]) for e in events} <= set(names)

# Events of one time are taken in the file's order. Slices of a track nest or follow; a flow event
# binds to the slice begun last that no later one has closed.
ns = lambda us: round(1000 * us)
stack, flows = {}, {}
for e in sorted((e for e in events if e["ph"] != "M"), key=lambda e: ns(e["ts"])):
    track = stack.setdefault((e["pid"], e["tid"]), [])
    at = ns(e["ts"])
    if e["ph"] == "X":
        end = at + ns(e["dur"])
        while track and track[-1]["end"] <= at and not (track[-1]["end"] == at == end == track[-1]["at"]):
            track.pop()
        assert not track or end <= track[-1]["end"], "dropped: %s in %s" % (e, track[-1])
        track.append({"at": at, "end": end, "name": e["name"], "pid": e["pid"], "tid": e["tid"]})
        continue
    assert type(e["id"]) is int and e["cat"] and track, e
    assert (e.get("bp") == "e") == (e["ph"] == "f"), e
    assert track[-1]["at"] <= at <= track[-1]["end"], "outside: %s, %s" % (e, track[-1])
    flows.setdefault((e["id"], e["cat"], e["name"]), []).append((e["ph"], track[-1], at))
for key, arrow in flows.items():
    assert [ph for ph, _, _ in arrow] == ["s", "t", "f"], (key, arrow)
    sent, link, needed = (slice for _, slice, _ in arrow)
    assert sent["tid"] < stages <= link["tid"] and needed["tid"] < stages
    assert sent["pid"] == link["pid"] == needed["pid"] and sent["tid"] != needed["tid"]
    ends = "stage %d to %d: " % (sent["tid"], needed["tid"])
    assert names[link["pid"], link["tid"]].startswith(ends), (names[link["pid"], link["tid"]], ends)
    assert sent["name"] == link["name"] and sent["name"][0] == needed["name"][0], key
    assert arrow[0][2] <= arrow[1][2] <= arrow[2][2] == needed["at"] and sent["end"] == link["at"]
    assert link["end"] <= needed["at"] + 1, (link, needed)
sends = [e for e in events if e["ph"] == "X" and e["tid"] >= stages]
assert len(flows) == len(sends) and (len(sends) > 0) == (stages > 1), (len(flows), len(sends))
P
# reads NAME REPLICAS STAGES OPTION...: time's trace
reads() {
    local name=$1 replicas=$2 stages=$3
    shift 3
    rm -f "$T/trace.json"
    "$LINKWISE" time "$T/c.json" gpt2-xl --seq 1024 "$@" --trace "$T/trace.json" >"$T/why" 2>&1 &&
        py "$T/read.py" "$T/trace.json" "$replicas" "$stages" >>"$T/why" 2>&1
    result $? "$name" "$T/why"
}
# Names as long as they may be, a name of the cluster that wants to be more than a name, one link at
# which sends queue up.
python3 - "$T" <<'P'
import json, sys
long = "n%d-" + "x" * 240
rate = [[None if i == j else 20 for j in range(8)] for i in range(8)]
rate[1][2] = 0.05
json.dump({"version": 1, "name": "\"}],</script>\u202e\n", "nodes":
           [{"name": long % i, "gpus": 2, "gpu_type": "a100-sxm4-80g"} for i in range(8)],
           "links": {"intra": {"bandwidth_gb_per_s": 200, "latency_us": 0},
                     "inter": {"bandwidth_gb_per_s": rate, "latency_us": 0}}},
          open(sys.argv[1] + "/c.json", "w"))
P
reads "1f1b, four replicas" 4 4 --global-batch 32 --pp 4
reads "gpipe, sends that overlap" 2 8 --global-batch 16 --pp 8 --schedule gpipe
reads "interleaved" 4 4 --global-batch 32 --pp 4 --schedule interleaved --vpp 3
for schedule in zb1p zb2p zbv v-half v-min dualpipev; do
    reads "$schedule" 8 2 --global-batch 32 --pp 2 --schedule $schedule --profile megatron-core
done
reads "no pipeline" 16 1 --global-batch 32
"$LINKWISE" plan "$T/c.json" gpt2-xl --seq 1024 --global-batch 32 --tp 1 --pp 4 --dp 4 --schedule 1f1b --granularity node -o "$T/plan.json" >"$T/why" 2>&1
"$LINKWISE" eval "$T/plan.json" --trace "$T/trace.json" >>"$T/why" 2>&1 &&
    py "$T/read.py" "$T/trace.json" 4 4 >>"$T/why" 2>&1
result $? "eval's, of a plan" "$T/why"
done_testing
