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

# Its attention is PyTorch's, of the first python3 in PATH.
with_torch() {
    if has_python torch; then PATH=$(dirname "$(command -v "$PY")"):$PATH "$@"; else "$@"; fi
}
attention=$(with_torch python3 -c 'import torch
print (torch.cuda.is_available () and torch.cuda.get_device_capability ()[0] >= 8)' 2>/dev/null) || attention=False
with_torch ranks 2 --compute -o "$T/links.json"
ended 0 300
result $? "two ranks, with --compute" "$T/err.0"
says "products in several precisions, copies, launches" '
assert all (len (e["products"]) >= 10 for e in m["endpoints"])
assert all (p["tflop_per_s"] > .1 for e in m["endpoints"] for p in e["products"])
assert all (.1 < e["launch_us"] < 1000 and .1 < e["kernel_us"] < 1000 for e in m["endpoints"])
assert all (("attention" in e) >= '"$attention"' for e in m["endpoints"])
assert all (a["tflop_per_s"] > 1 for e in m["endpoints"] for a in e.get ("attention", []))
print ([e.get ("attention") for e in m["endpoints"]])
print (d.get ("gpu_types"))'
sed 's/^/# /' "$T/out.0" "$T/why"

(cd "$T" && with_torch "$BWPROBE" --compute -o alone.json >out.0 2>err.0)
result $? "one GPU without a launcher" "$T/err.0"
cp "$T/alone.json" "$T/links.json"
says "its constants, and no link" '
assert m["status"] == "complete" and m["ranks"] == 1 and m["pairs"] == []
assert list (d["gpu_types"].values ())[0]["gemm_efficiency"] > 0
print (d["gpu_types"])'
sed 's/^/# /' "$T/out.0" "$T/why"

ranks 3 --passes 50 --timeout 3 -o "$T/links.json"
lines 6
stall 1
ended 1 60
result $? "a stalled pair is aborted, and the run ends" "$T/err.0"
says "the stalled rank is named, and what was measured is kept" '
assert m["status"] == "faults" and any ("rank 1" in f for f in m["faults"])
assert any ("isolated_gb_per_s" in p for p in m["pairs"])'
done_testing
