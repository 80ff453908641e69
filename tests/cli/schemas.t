#!/bin/bash
# What the program writes is valid against docs/schema, and so are the shipped files.
. tests/lib/tap.sh
needs_python jsonschema python3-jsonschema
L="spawn $LINKWISE"
for f in examples/clusters/*.json; do valid cluster "$f" "$f"; done
for f in workload/profiles/*.json; do valid profile "$f" "$f"; done
$L plan examples/clusters/h100-17.json llama-2-70b --seq 4096 --global-batch 1024 --tp 8 --pp 4 --dp 2 --schedule 1f1b -o "$T/plan.json" >/dev/null
valid plan "$T/plan.json" "plan"
$L plan "3x1 t4 inter:3" gpt2-xl --seq 512 --global-batch 8 --json >"$T/small.json" 2>/dev/null
valid plan "$T/small.json" "plan of a small cluster"
$L plan "2x8 h100-sxm5-80g intra:370 inter:48" mixtral-8x7b --seq 4096 --global-batch 32 --recompute moe_act,layernorm --optimizer-bytes 6 --json >"$T/modules.json"
valid plan "$T/modules.json" "plan with modules and optimizer bytes"
$L plan "1x2 rtx-4090 intra:12" llama-2-7b --seq 2048 --global-batch 32 --profile deepspeed --json >"$T/offload.json"
valid plan "$T/offload.json" "plan with the optimizer on the host"
$PY -c "import json,sys; json.dump(json.load(open('$T/plan.json'))['cluster'], open('$T/cluster.json','w'))"
valid cluster "$T/cluster.json" "the plan's cluster"
$L plan --from "$T/plan.json" --exclude cnode2-003 --json >"$T/replan.json" 2>/dev/null
valid plan "$T/replan.json" "replan"
$L plan examples/clusters/a100-16-before.json llama-2-13b --seq 4096 --global-batch 64 --tp 8 --schedule 1f1b --nodes 4 --links examples/clusters/a100-16-after.json --json >"$T/heldout.json" 2>/dev/null
valid plan "$T/heldout.json" "plan on two measurements"
$L eval "$T/plan.json" --json >"$T/eval.json"
valid estimate "$T/eval.json" "eval"
$L time "2x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 2 --json >"$T/time.json"
valid estimate "$T/time.json" "time"
$PY -c "import json; d = json.load(open('workload/profiles/megatron-bridge.json')); d['time']['moe_overlap'] = 1; json.dump(d, open('$T/hides.json', 'w'))"
$L time "2x8 h100-sxm5-80g intra:370 inter:48" mixtral-8x7b --seq 4096 --global-batch 64 --ep 8 --profile "$T/hides.json" --json >"$T/hidden.json"
valid estimate "$T/hidden.json" "time with exchanges that hide"
$PY -c "import json; d = json.load(open('$T/hidden.json')); assert d['ep_hidden_s'] > 0 and d['breakdown_s']['ep'] > 0" 2>"$T/why"
result $? "what hides is told beside what does not" "$T/why"
# A built-in type's constants, put into a cluster file, are that type.
$L gpus --json >"$T/gpus.json"
$PY -c "import json
g = next(g for g in json.load(open('$T/gpus.json'))['gpus'] if g.pop('name') == 'b200-192g')
inter = {'bandwidth_gb_per_s': 48, 'latency_us': 12}
json.dump({'version': 1, 'gpu_types': {'own': g},
    'nodes': [{'name': n, 'gpus': 8, 'gpu_type': 'own'} for n in ('n0', 'n1')],
    'links': {'intra': {'bandwidth_gb_per_s': 700, 'latency_us': 8}, 'inter': inter}}, open('$T/own.json', 'w'))"
valid cluster "$T/own.json" "a GPU type of its own"
for c in "$T/own.json" "2x8 b200-192g intra:700 intra-us:8 inter:48 inter-us:12"; do
    $L time "$c" llama-2-7b --seq 4096 --global-batch 64 --tp 2 --precision fp8 --profile nemo | grep -o "^step  [^(]* ms"
done | uniq -c >"$T/why"
grep -q "^ *2 step" "$T/why" && [ "$(wc -l <"$T/why")" = 1 ]
result $? "... with all constants of a built-in one has its step" "$T/why"
printf 'micro_batch,tp,forward_ms\n1,1,5.2\n' >"$T/layers.csv"
$L cluster layers llama-2-7b "$T/layers.csv" --gpu h100-sxm5-80g --seq 4096 -o "$T/layers.json" >"$T/why"
valid cluster "$T/layers.json" "a GPU type by layer times"
$L cluster merge examples/clusters/h100-17.json "$T/layers.json" -o "$T/measured.json" >"$T/why" 2>&1
valid cluster "$T/measured.json" "a cluster with it"
for day in 1 2 3; do
    printf 'src,dst,gb_per_s\na,b,%s\nb,a,20\n' $((27 - day * 6)) >"$T/day.csv"
    $L cluster import "$T/day.csv" --under-load --when "2026-03-0${day}T00:00:00Z" -o "$T/day$day.json" --gpu-type t4 >"$T/why" 2>&1
    printf 'GPU 0: x (UUID: GPU-a)\nLink 0: Replay Errors: %s\n' $day >"$T/nv"
    $L cluster import "$T/nv" --name a --when "2026-03-0${day}T00:00:00Z" -o "$T/nv$day.json" >"$T/why" 2>&1
done
valid links "$T/day1.json" "links measured under load"
valid links "$T/nv1.json" "counters"
$L cluster merge "$T"/day?.json "$T"/nv?.json -o "$T/history.json" >"$T/why" 2>&1
valid cluster "$T/history.json" "a cluster with a history"
grep -q '"accused"' "$T/history.json" && grep -q '"why": "busy"' "$T/history.json"
result $? "which tells why, and what counters accuse" "$T/history.json"
$L cluster show "$T/history.json" --json >"$T/show.json"
valid cluster-show "$T/show.json" "cluster show with a history"
$L time "$T/measured.json" llama-2-7b --seq 4096 --global-batch 136 --json >"$T/on.json"
valid estimate "$T/on.json" "time on it"
$L check "$T/plan.json" --json >"$T/check.json"
valid check "$T/check.json" "check"
printf '0 cnode2-001 -\n' | $LINKWISE check "$T/plan.json" --running - --json >"$T/running.json" 2>/dev/null
valid check "$T/running.json" "check --running"
python3 tests/lib/nccl_logs.py "$T/plan.json" "$T/nccl" groups=world,tp,dp,pp
$L check "$T/plan.json" --nccl-log "$T/nccl" --json >"$T/nccl.json" 2>/dev/null
valid check "$T/nccl.json" "check --nccl-log"
for c in "--tp 8 --pp 4 --recompute full" "--pp 2 --zero 0 --precision fp16" "--dp 8 --zero 3 --cp 2"; do
    $L mem llama-2-70b --gpu h100-sxm5-80g --seq 4096 $c --json >"$T/mem.json"
    valid mem "$T/mem.json" "mem $c"
done
# What figures come from: the half of the nodes that is drained is of another type.
$PY - workload/profiles/torchtitan.json examples/clusters/a100-16-before.json "$T" <<'P'
import json, sys
d, c = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
d["name"], d["source"] = "mine", "x" + "\u00e9" * 400
json.dump(d, open(sys.argv[3] + "/mine.json", "w"))
c["gpu_types"] = {"mine": {"like": "a100-sxm4-80g"}}
for i, n in enumerate(c["nodes"]):
    n.update({"gpu_type": "mine"} if i % 2 else {"gpu_type": "t4", "state": "drained"})
json.dump(c, open(sys.argv[3] + "/types.json", "w"))
P
$L time "$T/types.json" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --profile "$T/mine.json" --json >"$T/parts.json"
valid estimate "$T/parts.json" "time with types of the cluster file"
$L plan "$T/types.json" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --json -o "$T/file.json" >"$T/printed.json"
$PY - "$T" >"$T/why" 2>&1 <<'P'
import json, math, sys
own, printed, file, time, mem = (json.load(open("%s/%s.json" % (sys.argv[1], f)))
                                 for f in ("parts", "printed", "file", "time", "mem"))
def types(doc):
    assert all(t["source"] for t in doc["parts"]["gpu_types"])
    return [(t["name"], t["from"], len(t["record"]["here"])) for t in doc["parts"]["gpu_types"]]
assert dict(own["parts"], gpu_types=types(own)) == {"framework": "mine", "framework_kind": "composed",
                        "framework_source": "x" + "\u00e9" * 255, "framework_why": "named",
                        "gpu_types": [("mine", "cluster file", 0)]}, own["parts"]
assert time["parts"]["framework"] == "megatron-core-composed", time["parts"]
assert time["parts"]["framework_kind"] == "composed", time["parts"]
assert "for megatron-core where it was not fitted" in time["parts"]["framework_why"], time["parts"]
assert types(time) == types(mem) == [("h100-sxm5-80g", "built-in", 1)]
assert types(printed) == types(own)
del printed["parts"]
factor = math.exp(1.645 * json.load(open("workload/profiles/torchtitan.json"))["time"]["residual"])
assert abs(own["step_high_s"] / own["step_s"] - factor) < 1e-9
assert abs(own["step_s"] / own["step_low_s"] - factor) < 1e-9
estimate = printed["estimate"]
low, high = estimate.pop("step_low_s"), estimate.pop("step_high_s")
assert low < estimate["step_s"] < high
assert abs(math.exp(1.645 * printed["search"]["model_error"]) - high / estimate["step_s"]) < 1e-9, "two errors"
stage = mem["per_stage"][mem["binding_stage"]]
states = sum(stage[k + "_bytes"] for k in ("weights", "gradients", "optimizer"))
factor = (states * math.exp(1.645 * 0.03) + (mem["peak_bytes"] - states) * math.exp(1.645 * 0.05)) / mem["peak_bytes"]
assert abs(mem["peak_high_bytes"] / mem["peak_bytes"] - factor) < 1e-9
assert abs(mem["peak_bytes"] / mem["peak_low_bytes"] - factor) < 1e-9
memory = printed["memory"]
assert memory.pop("peak_low_bytes") < memory["peak_bytes"] < memory.pop("peak_high_bytes")
assert printed == file, "the plan file has other keys"
P
result $? "parts and the interval of the step; neither in the plan file" "$T/why"
$L mem llama-2-70b --gpu t4 --seq 4096 --json >"$T/mem.json" 2>/dev/null
valid mem "$T/mem.json" "mem that does not fit"
$L mem llama-2-70b --gpu t4 --seq 4096 --memory-model fujii --json >"$T/mem.json" 2>/dev/null
valid mem "$T/mem.json" "mem by another model"
$L plan "2x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --memory-model fujii --json >"$T/fujii.json"
valid plan "$T/fujii.json" "plan by another model"
$L plan "2x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --oom-risk 0.01 --fused-norm off --lora --wta-crs 0.3 --json >"$T/options.json"
valid plan "$T/options.json" "plan with options of its memory"
$L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --cost-model pipette -o "$T/pipette.json" >/dev/null
valid plan "$T/pipette.json" "plan by another cost model"
$L check "$T/pipette.json" >"$T/why" 2>&1
result $? "check recomputes its step by that model" "$T/why"
$L eval "$T/pipette.json" --cost-model amp --json >"$T/eval.json"
valid estimate "$T/eval.json" "eval by another cost model"
grep -q '"step_high_s": null' "$T/eval.json" && ! $LINKWISE eval "$T/pipette.json" --cost-model amp | grep -q "of runs"
result $? "... whose error nobody knows" "$T/eval.json"
cat >"$T/runs.csv" <<'C'
source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,gpu_mem_gb,gpus,gpus_per_node,inter_node_gbps,tp,pp,vpp,dp,cp,ep,sp,zero,micro_batch,global_batch,precision,attention,recompute,iter_time_s,tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_mem_gb,oom,notes
lab,llama-a,,8,4096,32,,11008,32000,4096,A100-80GB,,8,8,,1,1,,,,,,1,1,64,,,none,,,,,24.0,0,
lab,llama-b,,32,4096,32,,11008,32000,4096,A100-80GB,,8,8,,4,1,,,,,,1,1,64,,,none,,,,,43.0,0,
lab,llama-b,,32,4096,32,,11008,32000,4096,A100-80GB,,8,8,,8,1,,,,,,1,4,64,,,none,,,,,,1,
lab,llama-b,,,4096,32,,11008,32000,4096,A100-80GB,,8,8,,8,1,,,,,,1,4,64,,,none,,,,,,1,
C
$L validate "$T/runs.csv" --json >"$T/validate.json"
valid validate "$T/validate.json" "validate"
$PY -c "import json; d = json.load(open('$T/validate.json')); assert {p['framework']: p['rows'] for p in d['parts']} == d['profiles'], d['parts']" 2>"$T/why"
result $? "parts: a row for each profile" "$T/why"
sed -n '1p;2p' "$T/runs.csv" | sed 's/,24.0,0,$/,,,/' | $LINKWISE validate - --json >"$T/validate.json"
valid validate "$T/validate.json" "validate without measurements"
$L calibrate "$T/runs.csv" --json -o "$T/profile.json" >"$T/calibrate.json"
valid calibrate "$T/calibrate.json" "calibrate"
valid profile "$T/profile.json" "a fitted profile"
sed -n '1p;2p' "$T/runs.csv" | $LINKWISE calibrate - --json >"$T/calibrate.json"
valid calibrate "$T/calibrate.json" "calibrate one run"
awk -F, -v OFS=, 'NR > 1 { $29 = 3 + NR } { print }' "$T/runs.csv" | sed '3s/,64,,,none/,64,fp8,,none/' >"$T/times.csv"
$L validate "$T/times.csv" --json >"$T/validate.json"
valid validate "$T/validate.json" "validate with times"
grep -q "cannot run fp8" "$T/validate.json"
result $? "... of which one cannot be estimated"
$L calibrate "$T/times.csv" --json -o "$T/profile.json" >"$T/calibrate.json"
valid calibrate "$T/calibrate.json" "calibrate with times"
valid profile "$T/profile.json" "a profile fitted to memory and times"
sed '1n;s/,[0-9.]*,[01]*,$/,,,/' "$T/times.csv" | $LINKWISE calibrate - --json >"$T/calibrate.json"
valid calibrate "$T/calibrate.json" "calibrate times alone"
F=tests/jobs/files
$L import-job $F/llama-8b.sh $F/llama-8b.log --json >"$T/job.json" 2>/dev/null
valid import-job "$T/job.json" "import-job"
sed 's/recompute_granularity: null/recompute_granularity: full/' $F/bridge.yaml >"$T/slow.yaml"
$L import-job "$T/slow.yaml" --gpus 8 --gpu h100 --json >"$T/job.json" 2>/dev/null
valid import-job "$T/job.json" "import-job with a better plan"
grep -q '"best_plan": {' "$T/job.json"
result $? "... which there is" "$T/job.json"
ASAN_OPTIONS=detect_leaks=0 $L topo >"$T/node.json" 2>/dev/null
valid cluster "$T/node.json" "topo"
cat >"$T/topo.txt" <<X
	GPU0	GPU1	mlx5_0	CPU Affinity	NUMA Affinity
GPU0	 X 	NV4	PIX	0-15,32	0
GPU1	NV4	 X 	SYS	16-31	1
mlx5_0	PIX	SYS	 X 		
X
$L topo --from "$T/topo.txt" --gpu-type v100-sxm2-32g -o "$T/node.json" >/dev/null 2>&1
valid cluster "$T/node.json" "topo --from"
printf 'src,dst,gb_per_s\ntopo,b,20\nb,topo,19\n' >"$T/pairs.csv"
$L cluster import "$T/pairs.csv" -o "$T/links.json" >/dev/null 2>&1
valid cluster "$T/links.json" "cluster import"
$L cluster merge "$T/node.json" "$T/links.json" --gpu-type v100-sxm2-32g -o "$T/merged.json" >/dev/null 2>&1
valid cluster "$T/merged.json" "cluster merge"
$L cluster synth failing --nodes 20 -o "$T/synth.json" >/dev/null
valid cluster "$T/synth.json" "cluster synth"
$L cluster drain "$T/synth.json" n1 n2:3 'n3<->n4' -o "$T/drained.json" >/dev/null
valid cluster "$T/drained.json" "cluster drain"
$L cluster show "$T/drained.json" --json >"$T/show.json"
valid cluster-show "$T/show.json" "cluster show"
$L cluster check "$T/drained.json" --json >"$T/check.json"
valid cluster-check "$T/check.json" "cluster check"
$L compare "$T/synth.json" "$T/drained.json" llama-2-13b --tp 8 --pp 2 --json >"$T/compare.json"
valid compare "$T/compare.json" "compare"
$L compare "1x2 t4 intra:9" "$T/node.json" llama-2-70b --json >"$T/compare.json"
valid compare "$T/compare.json" "compare of what does not fit"
$L cluster synth busy --nodes 200 --npy -o "$T/large.json" >/dev/null
page() { # NAME ARGUMENT...
    $L report "${@:2}" -o "$T/page.html" 2>"$T/why" &&
        sed -n '/ id="data">/{s/.* id="data">//;s/<\/script>.*//;p}' "$T/page.html" >"$T/page.json"
    valid report "$T/page.json" "the data of the page of $1"
}
page "a plan" "$T/plan.json"
page "a plan of an interleaved schedule" "$T/fujii.json"
page "a cluster whose pairs are numbers" examples/clusters/h100-17.json
page "a cluster whose pairs are packed" "$T/large.json"
page "nodes that are all alike" "4x8 h100"
page "two clusters" --compare examples/clusters/a100-16-before.json examples/clusters/a100-16-after.json
page "clusters of different nodes" --compare examples/clusters/h100-10.json "$T/synth.json"
done_testing
