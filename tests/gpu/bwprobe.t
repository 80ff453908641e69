#!/bin/bash
# On one GPU, shared by ranks that NCCL takes for hosts of their own: every pair is measured and
# its data arrive unchanged, a stalled pair is aborted, and --gemm measures the GPU.  The rates
# are those of the network transport over the loopback: no speed of any link.
. tests/lib/tap.sh
. tests/lib/ranks.sh
command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU ||
    skip_all "there is no GPU"
OPTIONS="--transport nccl --passes 1 --pause 0 --timeout 10 --max-size 16"

ranks 2 -o "$T/links.json"
ended 0 120
result $? "two ranks on one GPU" "$T/err.0"
says "both directions, with the GPU's name" '
assert m["status"] == "complete" and m["transport"] == "nccl" and len (m["pairs"]) == 2
assert "nccl" in m["versions"]["gpu_libraries"]
print (m["versions"], d["nodes"])'
cat "$T/out.0" | sed 's/^/# /'

ranks 4 --gemm -o "$T/links.json"
ended 0 300
result $? "four ranks, with --gemm" "$T/err.0"
says "every pair and every rank's GPU" '
assert m["status"] == "complete" and len (m["pairs"]) == 12
assert all (e["gemm_tflop_per_s"] > 1 and e["copy_gb_per_s"] > 10 for e in m["endpoints"])'
cat "$T/out.0" | sed 's/^/# /'

ranks 2 --compute -o "$T/links.json"
ended 0 300
result $? "two ranks, with --compute" "$T/err.0"
says "products in several precisions, copies, launches" '
assert all (len (e["products"]) >= 10 for e in m["endpoints"])
assert all (p["tflop_per_s"] > .1 for e in m["endpoints"] for p in e["products"])
assert all (.1 < e["launch_us"] < 1000 and .1 < e["kernel_us"] < 1000 for e in m["endpoints"])
try: import torch; there = torch.cuda.is_available () and torch.cuda.get_device_capability ()[0] >= 8
except ImportError: there = False
assert all (("attention" in e) >= there for e in m["endpoints"])
assert all (a["tflop_per_s"] > 1 for e in m["endpoints"] for a in e.get ("attention", []))
print ([e.get ("attention") for e in m["endpoints"]])
print (d.get ("gpu_types"))'
cat "$T/out.0" | sed 's/^/# /'

ranks 3 --passes 50 --timeout 3 -o "$T/links.json"
lines 6
stall 1
ended 1 60
result $? "a stalled pair is aborted, and the run ends" "$T/err.0"
says "the stalled rank is named, and what was measured is kept" '
assert m["status"] == "faults" and any ("rank 1" in f for f in m["faults"])
assert any ("isolated_gb_per_s" in p for p in m["pairs"])'
done_testing
