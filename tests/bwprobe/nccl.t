#!/bin/bash
# The NCCL transport, with libraries that stand in for NVIDIA's (tests/lib/fake_nvidia.c): pair
# communicators by split and anew, data compared, a lost rank and a stalled pair aborted, --gemm, --compute.
# What the real ones do is the matter of `make check-gpu`.
. tests/lib/tap.sh
. tests/lib/ranks.sh
${CC:-cc} -std=gnu11 -O1 -shared -fPIC -I. -o "$T/libcuda.so.1" \
    tests/lib/fake_nvidia.c -lpthread >"$T/why" 2>&1
result $? "the stand-in builds" "$T/why"
# The stand-in leaves its communicators to the end of the process.
export LD_LIBRARY_PATH=$T ASAN_OPTIONS=detect_leaks=0
OPTIONS="--transport nccl --pause 0 --timeout 1 --measure 0.002 --max-size 1"

# The machine's own libraries lie behind empty files of their names.
mkdir -p "$T/hidden" "$T/cuda/lib64" "$T/venv/bin" "$T/venv/lib/python3.12/site-packages/nvidia/nccl/lib"
for lib in libcudart.so.13 libcudart.so.12 libcudart.so libnccl.so.2 libnccl.so; do : >"$T/hidden/$lib"; done
hidden() {
    CUDA_HOME=$T/cuda HOME=$T PATH=$T/venv/bin:/usr/bin:/bin LD_LIBRARY_PATH=$T/hidden:$T \
        ranks 2 --passes 1 "$@" -o "$T/links.json"
}
# misses LIBRARY NAME: the run says that it misses this library, and where it looked.
misses() {
    hidden
    ended 1 30
    grep -q "NCCL cannot be used .*: $1 is missing: .*LD_LIBRARY_PATH.*$T/cuda/lib64 (CUDA_HOME).*Python in PATH" "$T/err.0"
    result $? "$2: the run says so, and where it looked" "$T/err.0"
}
misses libcudart.so.13 "without the runtime"
ln "$T/libcuda.so.1" "$T/cuda/lib64/libcudart.so.12"
misses libnccl.so.2 "with a runtime in CUDA_HOME, without NCCL"
echo "no library" >"$T/cuda/lib64/libnccl.so.2"
hidden
ended 1 30 && grep -q "libnccl.so.2 is missing: .*~/.local: $T/cuda/lib64/libnccl.so.2: " "$T/err.0"
result $? "a file that is no library is named" "$T/err.0"
ln "$T/libcuda.so.1" "$T/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
hidden --timeout 5
ended 0 60
result $? "with NCCL in a Python's wheel" "$T/err.0"
says "it is measured" 'assert m["status"] == "complete" and m["transport"] == "nccl"'
rm -f "$T"/links.json*
for lib in libcudart.so.13 libnccl.so.2 libcublas.so.13 libcublasLt.so.13; do ln "$T/libcuda.so.1" "$T/$lib"; done

FAKE_NCCL_LOG=$T/interfaces ranks 4 --passes 1 --gemm --interface 127.0.0.0/8 -o "$T/links.json"
ended 0 60
result $? "four ranks" "$T/err.0"
grep -qx "=lo" "$T/interfaces" && ! grep -qvx "=lo" "$T/interfaces"
result $? "NCCL is given the interface of --interface" "$T/interfaces"
says "every pair, every GPU, the versions" '
assert m["status"] == "complete" and m["transport"] == "nccl" and len (m["pairs"]) == 12
assert m["versions"]["gpu_libraries"].startswith ("nccl 2.28.9, cuda runtime 13.0")
assert all (e["gemm_tflop_per_s"] > 0 and e["gemm_precision"] == "bf16" for e in m["endpoints"])
assert not any ("products" in e for e in m["endpoints"]) and "gpu_types" not in d
assert all ("concurrent_gb_per_s" in p for p in m["pairs"])'
grep -q "ranks 0 and 1 are on one GPU, GPU-1111.*: what is measured between them is no link" "$T/err.0"
result $? "that they share a GPU is said" "$T/err.0"
! grep -q "communicators of their own" "$T/err.0"
result $? "their communicators were split from one parent" "$T/err.0"

(cd "$T" && FAKE_GPU="NVIDIA H100 80GB HBM3" "$BWPROBE" --gemm -o links.json >out.0 2>err.0)
result $? "one GPU needs no launcher to be measured" "$T/err.0"
says "its rate, and no link" '
assert m["status"] == "complete" and m["versions"]["started_by"] == "no launcher" and m["pairs"] == []
assert [e["gemm_precision"] for e in m["endpoints"]] == ["bf16"] and d["nodes"][0]["gpus"] == 1'
grep -q "^links" "$T/out.0" && ! grep -q "from row to column" "$T/out.0"
result $? "the report has no heat map" "$T/out.0"
"$LINKWISE" cluster merge "$T/links.json" -o "$T/alone.json" >"$T/why" 2>&1
result $? "a cluster file comes of it" "$T/why"
expect 2 "without --gemm or --compute it is no job" "not a rank of a job.*--compute measures one GPU" "$BWPROBE" -o "$T/none.json"

# A PyTorch whose events tell 5 ms for FlashAttention 2, and which has no other kernels.
mkdir -p "$T/python/torch/nn"
cat >"$T/python/torch/__init__.py" <<'P'
from types import SimpleNamespace as cuda_of
bfloat16 = "bf16"
def randn (*shape, dtype, device): assert (dtype, device) == (bfloat16, "cuda"); return shape
class Event:
    def __init__ (self, enable_timing): assert enable_timing
    def record (self): pass
    def synchronize (self): pass
    def elapsed_time (self, end): return 5.0
def choose (device): assert device == 0
cuda = cuda_of (Event=Event, set_device=choose, synchronize=lambda: None)
P
: >"$T/python/torch/nn/__init__.py"
cat >"$T/python/torch/nn/attention.py" <<'P'
from contextlib import contextmanager
class SDPBackend: FLASH_ATTENTION = 1
@contextmanager
def sdpa_kernel (kind): assert kind == 1; yield
P
cat >"$T/python/torch/nn/functional.py" <<'P'
def scaled_dot_product_attention (q, k, v, is_causal): assert q == k == v == (1, 16, 16384, 128) and is_causal
P

# Rank 1 has a cuBLASLt without fp8, and no PyTorch.
export FAKE_GPU="NVIDIA H100 80GB HBM3"
mkdir "$T/none"
echo 'raise ImportError ("not here")' >"$T/none/torch.py"
PYTHONPATH=$T/python WORLD=2 ranks 1 --passes 1 --compute -o "$T/links.json"
PYTHONPATH=$T/none FAKE_NO_FP8=1 WORLD=2 more 2 --passes 1 --compute -o "$T/links.json"
unset FAKE_GPU
ended 0 60
result $? "--compute, on two ranks, one of them without fp8" "$T/err.0"
grep -q "attention was not measured on 1 GPU: .*/1: no PyTorch, or it is too old: not here" "$T/err.0"
result $? "the rank without PyTorch is told" "$T/err.0"
says "every precision in five shapes, copies, launches; constants of the type" '
rates = {"bf16": 500, "fp8": 800, "tf32": 250, "fp32": 40} # those of tests/lib/fake_nvidia.c
close = lambda x, y: abs (x / y - 1) < 1e-3
for e, known in zip (m["endpoints"], (("bf16", "fp8", "tf32", "fp32"), ("bf16", "tf32", "fp32"))):
    assert [p["precision"] for p in e["products"]] == [x for x in known for i in range (5)]
    assert all (close (p["tflop_per_s"], rates[p["precision"]]) for p in e["products"])
    assert close (e["gemm_tflop_per_s"], 500) and close (e["copy_gb_per_s"], 2500)
    assert 0 < e["launch_us"] < 1e6 and close (e["kernel_us"], 2)
[a] = m["endpoints"][0]["attention"] # half of two products of 16,384 x 16,384 x 128, 16 times, in 5 ms
assert (a["kernels"], a["tokens"], a["head_dim"]) == ("flash2", 16384, 128) and close (a["tflop_per_s"], 219.9)
assert "attention" not in m["endpoints"][1]
t = d["gpu_types"]["h100-sxm5-80g"]
assert close (t["flash2_efficiency"], 219.9 / 989) and "flash_efficiency" not in t
assert close (t["gemm_efficiency"], .85 * 500 / 989), t
assert t["measured"]["gemm_efficiency"]["gpus"] == 2 and t["measured"]["fp8_gemm_efficiency"]["gpus"] == 1 and close (t["copy_gb_per_s"], 2500)
assert t["measured"]["copy_gb_per_s"]["by"] == "bwprobe"'
cp "$T/links.json" "$T/h100.json"

NCCL_SOCKET_IFNAME=lo ranks 4 --passes 4 -o "$T/links.json"
lines 13
slay 3
ended 1 60
result $? "a killed rank does not end the others" "$T/err.0"
says "and the others are measured on" '
assert m["status"] == "faults" and any ("rank 3" in f for f in m["faults"])
n = [p["isolated_gb_per_s"]["samples"] for p in m["pairs"] if 3 not in (p["src"], p["dst"])]
assert len (n) == 6 and min (n) >= 4, n'
rm -f "$T"/links.json*

ranks 3 --passes 6 -o "$T/links.json"
lines 7
stall 1
ended 1 30
result $? "a stalled pair is aborted, and the run ends" "$T/err.0"
says "the stalled rank is named" '
assert any ("rank 1" in f for f in m["faults"]), m["faults"]'
# A plan's groups inside a node: rings of tensor parallelism, and what falls short there.
planned() { # GB/S: a plan of four ranks on this host
    $LINKWISE plan "1x4 a100-sxm4-80g intra:$1" llama-2-7b --seq 1024 --global-batch 8 --tp 4 --pp 1 --dp 1 -o "$T/plan.json" >/dev/null
    sed -i "s/\"n0\"/\"$(hostname)\"/" "$T/plan.json"
}
export FAKE_APART=1
planned 0.001
ranks 4 --plan "$T/plan.json" -o "$T/links.json"
ended 0 60 && grep -Eq '^tp +1 +4 +8 +8 +0' "$T/out.0"
result $? "--plan measures rings inside a node" "$T/err.0"
WORLD=4 ranks 3 --plan "$T/plan.json" --start-timeout 2 -o "$T/links.json"
ended 4 60 && grep -qx "replace $(hostname) (GPU 3 alone falls short)" "$T/out.0"
result $? "a GPU whose hops alone fall short is named" "$T/out.0"
planned 100000
ranks 4 --plan "$T/plan.json" --passes 1 -o "$T/links.json"
ended 4 60 && grep -qx "replace $(hostname)" "$T/out.0" && grep -q '^8 of 8 hops are below 80 %' "$T/out.0"
result $? "what falls short there is its node's fault" "$T/out.0"
unset FAKE_APART
ranks 4 --plan "$T/plan.json" -o "$T/links.json"
ended 1 60 && grep -Eq "plan.json: ranks\[1\]: it measures the GPU of rank 0, GPU-1111.* of $(hostname)" "$T/err.0"
result $? "two ranks on one GPU are refused" "$T/err.0"
done_testing
