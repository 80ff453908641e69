#!/bin/bash
# What emit writes and when it refuses: every target's files are the plan; a target that cannot
# express the plan says no; no field of a plan or cluster reaches a script as a command; folders
# that exist, cannot be written or fill up hold nothing half written.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs python3 python3
python_up
L="spawn $LINKWISE"

placed "$T/a" 4 2 || exit 1
edit() { # FILE CODE: change a JSON file, `d`
    cat >"$T/edit.py" <<P
import json
d = json.load(open('$1'))
$2
json.dump(d, open('$1', 'w'))
P
    py "$T/edit.py"
}
map() { json "$1" "'\n'.join('%(rank)d %(node)s %(gpu)d' % r for r in d['ranks'])"; }

# ---- every target's files are the plan ----
expect 0 "all targets" "8 ranks written" $L emit "$T/a/plan.json" -d "$T/a/launch"
check_files() { # FOLDER: everything that orders ranks, against map.txt
    local d=$1 n
    n=$(wc -l <"$d/map.txt")
    awk '{ print "rank " $1 "=" $2 " slot=*" }' "$d/map.txt" | cmp - "$d/openmpi/rankfile" &&
        awk '{ print "rank " $1 "=" $2 " slot=0" }' "$d/map.txt" | cmp - "$d/openmpi5/rankfile" &&
        awk '{ n[$2]++ } END { for (h in n) print h, "slots=" n[h] }' "$d/map.txt" | sort | cmp - <(sort "$d/openmpi/hostfile") &&
        cmp "$d/openmpi/hostfile" "$d/openmpi5/hostfile" &&
        awk '{ print $2 ":1" }' "$d/map.txt" | cmp - "$d/mpich/machinefile" &&
        awk '{ print $2 }' "$d/map.txt" | cmp - "$d/slurm/hostfile" &&
        sed -E 's/^([0-9]+) env .* RANK=([0-9]+) WORLD_SIZE='"$n"' .* LINKWISE_HOST=(\S+) LINKWISE_GPU=([0-9]+) .*/\1 \3 \4 \2/' "$d/slurm/multi-prog" |
            awk '$1 == $4 { print $1, $2, $3 }' | cmp - "$d/map.txt" &&
        json "$d/kubernetes/configmap.json" "d['data']['map.txt'][:-1]" | cmp - "$d/map.txt"
}
map "$T/a/plan.json" | cmp - "$T/a/launch/map.txt" && check_files "$T/a/launch" >"$T/why" 2>&1
result $? "every file that orders ranks is the plan" "$T/why"
awk '{ print $2, 1 * substr($1, 2) }' "$T/a/launch/gpu-uuid.txt" >/dev/null
awk '{ print $1, $2, "GPU-" $1 "-" $2 }' "$T/a/launch/gpu-uuid.txt" | cmp - "$T/a/launch/gpu-uuid.txt" &&
    awk '{ print $1, $2, $2 % 2 }' "$T/a/launch/gpu-numa.txt" | cmp - "$T/a/launch/gpu-numa.txt"
result $? "UUIDs and NUMA nodes are the cluster's"
for d in "$T/a/launch" "$T"/a/launch/{openmpi,mpich,slurm,torchrun,env,deepspeed,kubernetes,megatron,nemo}; do [ -s "$d/README" ] || echo "$d"; done >"$T/why"
[ ! -s "$T/why" ]
result $? "every folder has a README" "$T/why"
grep -q 'launcher openmpi' "$T/a/launch/README" && [ -f "$T/a/launch/deepspeed/rankfile" ]
result $? "deepspeed: interleaved ranks go through its openmpi launcher"
edit "$T/a/plan.json" "
for r in d['ranks']: r['node'], r['gpu'] = 'h%d' % (4 - r['rank'] // 2), r['rank'] % 2"
$L emit "$T/a/plan.json" --to deepspeed,torchrun -d "$T/blocks" >/dev/null
[ "$(cat "$T/blocks/deepspeed/hostfile")" = "$(printf 'h%d slots=2\n' 4 3 2 1)" ] && [ ! -e "$T/blocks/deepspeed/include" ] &&
    [ "$(cat "$T/blocks/torchrun/agents.txt")" = "$(printf 'h4 0 2\nh3 1 2\nh2 2 2\nh1 3 2\n')" ]
result $? "deepspeed and torchrun: whole hosts in order"
python3 - "$T/a/plan.json" "$T/half.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
for n in d["cluster"]["nodes"]: n["gpus"] = 4; n["gpu_numa"] *= 2; n["gpu_uuid"] = [n["name"] + "-%d" % g for g in range(4)]
for r in d["ranks"]: r["gpu"] = 1 + 2 * r["gpu"]
json.dump(d, open(sys.argv[2], "w"))
P
$L emit "$T/half.json" --to deepspeed -d "$T/half" >/dev/null
[ "$(cat "$T/half/deepspeed/include")" = "h4:1,3@h3:1,3@h2:1,3@h1:1,3" ] && grep -q 'slots=4' "$T/half/deepspeed/hostfile"
result $? "deepspeed: --include where hosts are used in part" "$T/half/deepspeed/include"

# ---- Megatron's arguments ----
megatron() { # PLAN OPTIONS...: the arguments on one line; 1F1B unless they name a schedule
    case "$*" in *--schedule*) ;; *) set -- "$@" --schedule 1f1b ;; esac
    $L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 "$@" -o "$T/m.json" >/dev/null &&
        $L emit "$T/m.json" --to megatron -d "$T/m" >/dev/null && paste -sd' ' "$T/m/megatron/args"
}
arguments() { # NAME EXPECTED ACTUAL
    [ "$2" = "$3" ]
    { result $? "megatron: $1" /dev/fd/3; } 3<<<"$3"
}
common="--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --context-parallel-size 1 --micro-batch-size 1 --global-batch-size 64"
arguments "degrees, sequence parallelism, ZeRO 1" "$common --sequence-parallel --use-distributed-optimizer --bf16 --overlap-grad-reduce --overlap-param-gather" \
    "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 1 --sequence-parallel on --recompute none)"
arguments "full recomputation, fp16, ZeRO 0" "$common --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --fp16 --overlap-grad-reduce" \
    "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 0 --sequence-parallel off --recompute full --precision fp16)"
arguments "recomputation by modules, short optimizer states" "$common --recompute-granularity selective --recompute-modules core_attn mlp --use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --no-store-param-remainders --bf16 --overlap-grad-reduce --overlap-param-gather" \
    "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 1 --sequence-parallel off --recompute mlp,core_attn --optimizer-bytes 8)"
megatron --tp 4 --pp 4 --dp 2 --profile nemo --optimizer-bytes 8 | grep -q -- "--grad-reduce-in-bf16 --main-grads-dtype bf16" &&
    ! megatron --tp 4 --pp 4 --dp 2 --profile nemo --optimizer-bytes 12 | grep -- "--main-grads-dtype" # of short states alone
result $? "megatron: gradients of the precision-aware optimizer"
megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 1 --sequence-parallel off --recompute mlp,core_attn --optimizer-bytes 8 >/dev/null
$L check "$T/m.json" >"$T/out" && ! grep -q "NO" "$T/out" && $L eval "$T/m.json" >/dev/null
result $? "... check and eval take the plan" "$T/out"
arguments "fp8 moments, fp8" "$common --recompute-granularity selective --recompute-modules layernorm --use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8 --bf16 --fp8-format hybrid --fp8-recipe tensorwise --overlap-grad-reduce --overlap-param-gather" \
    "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 1 --sequence-parallel off --recompute layernorm --optimizer-bytes 4 --precision fp8)"
$L plan "1x8 b200-192g intra:800" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 2 --dp 1 --precision nvfp4 --schedule 1f1b -o "$T/m4.json" >/dev/null &&
    $L emit "$T/m4.json" --to megatron -d "$T/m" >/dev/null && [ "$(grep fp4 "$T/m/megatron/args" | paste -sd' ')" = "--fp4-format e2m1 --fp4-recipe nvfp4" ]
result $? "megatron: nvfp4 is fp4" "$T/m/megatron/args"
$L plan "4x8 h100-sxm5-80g intra:370 inter:48" mixtral-8x7b --seq 4096 --global-batch 64 --tp 1 --pp 4 --dp 8 --ep 8 --recompute moe_act -o "$T/moe.json" >/dev/null &&
    $L emit "$T/moe.json" --to megatron -d "$T/m" >/dev/null && grep -qx -- "--recompute-modules moe_act" "$T/m/megatron/args" && grep -qx -- "--moe-grouped-gemm" "$T/m/megatron/args" && grep -qx -- "--moe-token-dispatcher-type alltoall" "$T/m/megatron/args"
result $? "megatron: moe_act with grouped products" "$T/m/megatron/args"
arguments "tf32" "$common --overlap-grad-reduce" "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 0 --sequence-parallel off --recompute none --precision tf32)"
grep -q "set TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1" "$T/m/megatron/README"
result $? "megatron: TF32 is PyTorch's switch" "$T/m/megatron/README"
arguments "chunks, recomputation by layers of a chunk" "$common --num-layers-per-virtual-pipeline-stage 2 --recompute-granularity full --recompute-method block --recompute-num-layers 1 --use-distributed-optimizer --bf16 --overlap-grad-reduce --overlap-param-gather" \
    "$(megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 1 --sequence-parallel off --recompute full:4 --schedule interleaved --vpp 4)"
$L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --dp 2 --recompute full:3 -o "$T/free.json" >/dev/null
expect 0 "megatron: a free search takes chunks that it can run" "8 x|32 ranks" $L emit "$T/free.json" --to megatron -d "$T/m"
expect_chunks() { # NAME LAYERS EXPECTED: --schedule interleaved with two chunks, layers by hand
    megatron --tp 4 --pp 4 --dp 2 --micro-batch 1 --zero 0 --sequence-parallel off --recompute none --schedule interleaved --vpp 2 >/dev/null
    edit "$T/m.json" "d['layers_per_stage'] = [$2]"
    $L emit "$T/m.json" --to megatron -d "$T/m" >/dev/null
    arguments "$1" "$common $3 --bf16 --overlap-grad-reduce" "$(paste -sd' ' "$T/m/megatron/args")"
}
expect_chunks "uneven chunks, round after round" 10,8,8,6 "--pipeline-model-parallel-layout Ettttt|tttt|tttt|ttt|ttttt|tttt|tttt|tttL"

# ---- says no ----
$L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --dp 2 --schedule gpipe -o "$T/gpipe.json" >/dev/null
expect 3 "megatron: no gpipe" "megatron: Megatron-LM has no gpipe schedule; plan with --schedule 1f1b" \
    $LINKWISE emit "$T/gpipe.json" --to openmpi,megatron -d "$T/no"
[ ! -e "$T/no" ]
result $? "... and nothing is written when a target was named"
expect 0 "--to all writes the rest" "not written: megatron: .*gpipe" $L emit "$T/gpipe.json" -d "$T/rest"
[ -f "$T/rest/openmpi/rankfile" ] && [ -f "$T/rest/kubernetes/job.json" ] && [ ! -e "$T/rest/megatron" ] &&
    grep -q "^Not for megatron: .*gpipe" "$T/rest/README" && grep -q "^Not for deepspeed-config: .*pipeline" "$T/rest/README" &&
    ! grep -q "deepspeed-config" "$T/both"
result $? "... and the README says what is missing and why"
expect 3 "a target that is named must work beside all" "megatron: .*gpipe" $L emit "$T/gpipe.json" --to all,megatron -d "$T/no"
# DeepSpeed's pipeline takes the plan's stages from the module beside its file: here under a PipelineModule that does
# what DeepSpeed's does with the outcome of _partition_layers.
$L plan "1x4 a100-sxm4-80g intra:300" llama-2-7b --seq 4096 --global-batch 64 --tp 1 --pp 4 --dp 1 --profile deepspeed -o "$T/speed.json" >/dev/null
edit "$T/speed.json" "d['layers_per_stage'] = [10, 9, 8, 5]"
$L emit "$T/speed.json" --to deepspeed-config -d "$T/speed" >/dev/null
mkdir -p "$T/speed/fake/deepspeed" && : >"$T/speed/fake/deepspeed/__init__.py" && cat >"$T/speed/fake/deepspeed/pipe.py" <<'P'
class PipelineModule:
    def __init__(self, layers, num_stages):
        self._layer_specs, self.num_stages, self.global_rank, self._topo = layers, num_stages, 0, self
        self.bounds = []
        for self.pipe in range(num_stages):
            self._partition_layers(method="parameters")
    def get_dim(self, axis): return self.num_stages
    def get_coord(self, rank): return self
    def _find_layer_type(self, name): return [i for i, l in enumerate(self._layer_specs) if name in l]
    def _set_bounds(self, start, stop): self.bounds.append((start, stop))
P
in_python "deepspeed: the plan's stages" && {
    (cd "$T/speed/deepspeed-config" && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$T/speed/fake" python3 - <<'P'
from pipeline import PlannedPipeline
layers = ["Embedding"] + 32 * ["DecoderLayer"] + ["Norm", "Head"]
assert PlannedPipeline(layers, block="Decoder").bounds == [(0, 11), (11, 20), (20, 28), (28, 35)]
try:
    PlannedPipeline(layers[2:], block="Decoder")
    raise SystemExit("another model")
except ValueError as e:
    assert "32 layers in 4 stages" in str(e)
P
    ) >"$T/why" 2>&1
    result $? "deepspeed: the plan's stages" "$T/why"
}
edit "$T/speed.json" "d['layers_per_stage'] = [8, 8, 8, 8]"
$L emit "$T/speed.json" --to deepspeed-config -d "$T/speed" >/dev/null
[ ! -e "$T/speed/deepspeed-config/pipeline.py" ] && grep -q 'partition_method="parameters"' "$T/speed/deepspeed-config/README"
result $? "... and none where DeepSpeed makes them"
chunks() { # OPTIONS...: a plan in chunks
    $L plan "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --dp 2 --micro-batch 1 \
        --schedule interleaved "$@" -o "$T/chunks.json" >/dev/null
}
says_no() { # NAME WHY WORKS OPTIONS...: a refusal, and the plan that it recommends
    chunks "${@:4}"
    expect 3 "megatron: $1" "$2; plan with $3" $L emit "$T/chunks.json" --to megatron -d "$T/no"
    chunks "${@:4}" $3
    expect 0 "... what it recommends works" "32 ranks" $L emit "$T/chunks.json" --to megatron -d "$T/recommended"
}
says_no "recomputed layers that do not divide into chunks" "equally many layers in each of a stage's 4 chunks, not 5 in all" "--recompute full:8" --vpp 4 --recompute full:5
chunks --vpp 2
edit "$T/chunks.json" "d['degrees']['vpp'] = 3"
$L emit "$T/chunks.json" --to megatron -d "$T/uneven" >/dev/null
grep -qx -e "--pipeline-model-parallel-layout Ett|tt|tt|tt|ttt|ttt|ttt|ttt|ttt|ttt|ttt|tttL" "$T/uneven/megatron/args"
result $? "megatron: chunks that a file does not spell out hold more the later they are" "$T/uneven/megatron/args"
edit "$T/chunks.json" "d['layers_per_chunk'] = [[3, 3, 2]] * 3 + [[4, 4, 0]]"
$L emit "$T/chunks.json" --to megatron -d "$T/given" >/dev/null
grep -qx -e "--pipeline-model-parallel-layout Ettt|ttt|ttt|tttt|ttt|ttt|ttt|tttt|tt|tt|tt|L" "$T/given/megatron/args"
result $? "megatron: chunks as the file has them, the last one empty" "$T/given/megatron/args"
rename() { # NEW...: the plan on hosts of other names
    python3 - "$T/a/plan.json" "$T/names.json" "$@" <<'P'
import json, sys
d, new = json.load(open(sys.argv[1])), dict(zip(("h1", "h2", "h3", "h4"), sys.argv[3:]))
for n in d["cluster"]["nodes"]: n["name"] = new.get(n["name"], n["name"])
for r in d["ranks"]: r["node"] = new.get(r["node"], r["node"])
json.dump(d, open(sys.argv[2], "w"))
P
}
rename Node_1
expect 3 "kubernetes: names" '"Node_1" is not a valid Kubernetes node name' $L emit "$T/names.json" --to kubernetes -d "$T/no"
expect 0 "... the others take them" "not written: kubernetes" $L emit "$T/names.json" -d "$T/rest"
rename n1.rack-a n1.rack-b
expect 3 "openmpi: names that are one up to the dot" "the hosts n1.rack-[ab] and n1.rack-[ab] are one to it" \
    $L emit "$T/names.json" --to openmpi -d "$T/no"
for name in rank slots 007 1a.b; do
    rename $name
    expect 3 "openmpi: a host called $name" "cannot hold the host name \"$name\"; use mpich or env" $L emit "$T/names.json" --to openmpi -d "$T/no"
done
rename 10.0.0.1 10.0.0.2 node-7 7a
expect 0 "openmpi: addresses and digits first" "8 ranks" $L emit "$T/names.json" --to openmpi -d "$T/addresses"
$L plan "1x8 h100-sxm5-80g intra:370 + 1x4 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 4096 --global-batch 12 --tp 4 --pp 1 --dp 3 -o "$T/mixed.json" >/dev/null
expect 3 "kubernetes: nodes of two sizes" "n0 has 8 GPUs and n1 4; .*--only nodes of one size" $L emit "$T/mixed.json" --to kubernetes -d "$T/no"
expect 0 "slurm: nodes of two sizes" "12 ranks" $L emit "$T/mixed.json" --to slurm -d "$T/mixed"
! grep -rq --exclude=het.sbatch 'gres=' "$T/mixed/slurm" "$T/mixed/README" && grep -q '^#SBATCH --exclusive' "$T/mixed/slurm/job.sbatch" &&
    grep -q '^#SBATCH --gpus=12$' "$T/mixed/slurm/job.sbatch" && [ "$(grep -c -- 'srun -n 12 -m arbitrary --gpus=12 ' "$T/mixed/slurm/README")" = 2 ]
result $? "... ask for all their GPUs, not for as many of each" "$T/mixed/slurm/README"
grep -q '^#SBATCH --gres=gpu:2$' "$T/a/launch/slurm/job.sbatch" && grep -q -- '--gres=gpu:2 ' "$T/a/launch/slurm/README"
result $? "... nodes of one size for that of each"
[ "$(grep -c '^#SBATCH hetjob$' "$T/mixed/slurm/het.sbatch")" = 1 ] && [ "$(sed -n 's/^#SBATCH --\(nodelist\|ntasks\|ntasks-per-node\|gres\)=//p' "$T/mixed/slurm/het.sbatch" | paste -sd' ')" = "n0 8 8 gpu:8 n1 4 4 gpu:4" ] &&
    grep -q 'sbatch slurm/het.sbatch PROGRAM' "$T/mixed/README" && [ ! -e "$T/a/launch/slurm/het.sbatch" ] && ! grep -q 'several types' "$T/mixed/README"
result $? "... a heterogeneous job has a component for each, and nodes of one size need none" "$T/mixed/slurm/het.sbatch"
kinds() { # N: a plan on nodes of 1 to N GPUs
    $L plan "$(for i in $(seq "$1"); do printf '1x%d h100-sxm5-80g intra:370 %s' "$i" "$([ "$i" = "$1" ] || echo '+ ')"; done) inter:48" \
        llama-2-7b --seq 1024 --global-batch $(($1 * ($1 + 1) / 2)) --tp 1 --pp 1 --dp $(($1 * ($1 + 1) / 2)) -o "$T/kinds.json" >/dev/null
    rm -rf "$T/kinds" && $L emit "$T/kinds.json" --to slurm -d "$T/kinds"
}
expect 0 "slurm: eight kinds of nodes" "36 ranks" kinds 8
[ "$(grep -c '^#SBATCH hetjob$' "$T/kinds/slurm/het.sbatch")" = 7 ] && grep -qx 'components=0-7' "$T/kinds/slurm/het.sbatch"
result $? "... are eight components" "$T/kinds/slurm/het.sbatch"
expect 0 "slurm: nine kinds of nodes" "45 ranks" kinds 9
[ ! -e "$T/kinds/slurm/het.sbatch" ] && grep -q "of more than 8 kinds" "$T/kinds/slurm/README"
result $? "... are too many: the README says so" "$T/kinds/slurm/README"

# Groups are priced at their slowest GPU, so that the search keeps types apart where it may.
while read -r says job; do
    $L plan "2x8 h100 + 2x8 a100-sxm4-80g inter:25" $job -o "$T/types.json" >/dev/null 2>"$T/why"
    $L emit "$T/types.json" --to slurm -d "$T/types" >>"$T/why" 2>&1
    cat "$T/types/README" >>"$T/why"
    grep -q "GPUs are of several types.  ${says//_/ }" "$T/types/README"
    result $? "groups over two types of GPUs: $job" "$T/why"
done <<'W'
Each_tp,_cp_and_ep_group_is_of_one llama-2-13b --seq 32768 --global-batch 16 --cp 4 --schedule 1f1b
Each_tp,_cp_and_ep_group_is_of_one mixtral-8x7b --seq 4096 --global-batch 64 --tp 1 --pp 2 --ep 8 --micro-batch 1 --schedule 1f1b --granularity node
cp_groups_of_more_than_one:_4_of_4, llama-2-13b --seq 65536 --global-batch 16 --cp 8 --tp 4 --pp 1 --dp 1 --granularity node
W
[ ! -e "$T/no" ]
result $? "nothing was written by any of the refusals"

# ---- commands in fields ----
cp "$T/a/plan.json" "$T/clean.json"
edit "$T/clean.json" "
for n in d['cluster']['nodes']: n.update(rack='r1', state='ok', gpu_nic=['mlx5_0', 'mlx5_1'], speed=[1, 1])
d['cluster']['source'] = d['cluster']['links']['source'] = 'a test'
d['cluster']['gpu_types'] = {'mine': {'like': 'a100-sxm4-80g'}}"
$L emit "$T/clean.json" -d "$T/clean" >/dev/null
python3 - "$T/clean.json" "$T/inject" <<'P'
# One plan for every text of the plan and for some keys that readers do not know, each with
# commands in every form that sh, awk, YAML and JSON would run or break on; one for all of what the
# search and the estimate said, which emit does not read.
import copy, json, os, sys
clean, out = json.load(open(sys.argv[1])), sys.argv[2]
os.makedirs(out)
evil = "x$(touch pwned)`touch pwned`'; touch pwned; '\"; touch pwned; \"\n touch pwned\n#&|<>*?\\\\%s%n{}${IFS}\ttouch\tpwned"
ways = []
def walk(v, path):
    if isinstance(v, dict):
        for k in v: walk(v[k], path + [k])
        ways.append((path, "key"))
    elif isinstance(v, list):
        for i in range(min(len(v), 2 if "LINKWISE_LONG" in os.environ else 1)): walk(v[i], path + [i])
    elif isinstance(v, (str, int, float)):
        ways.append((path, "value"))
walk(clean, [])
said = copy.deepcopy(clean)
for n, (path, what) in enumerate(ways):
    own = not path or path[0] not in ("estimate", "memory", "search")
    at = d = copy.deepcopy(clean) if own else said
    for k in path[:-1] if what == "value" else path: at = at[k]
    at[path[-1] if what == "value" else evil] = evil
    if own: json.dump(d, open("%s/%04d.json" % (out, n), "w"))
json.dump(said, open(out + "/said.json", "w"))
P
mkdir "$T/evil"
(cd "$T" && for f in inject/*.json; do
    $L emit "$f" -d "evil/${f##*/}" >"$T/out" 2>&1
    echo "${f##*/} $?"
    [ ! -e pwned ] || echo "$f ran a command"
done) >"$T/ends"
python3 - "$T" >"$T/why" 2>&1 <<'P'
# Exit 1 and no folder; or the clean plan's files, but for the plan itself and the generation.
import os, sys
top = sys.argv[1]
def tree(folder):
    files = {os.path.relpath(os.path.join(d, f), folder): open(os.path.join(d, f), "rb").read() for d, _, fs in os.walk(folder) for f in fs}
    own = files["generation"].strip()
    return {f: text.replace(own, b"") for f, text in files.items() if f != "plan.json"}
clean, accepted, refused = tree(top + "/clean"), 0, 0
for line in open(top + "/ends"):
    name, end = line.split(None, 1)
    folder = top + "/evil/" + name
    if end == "0\n" and tree(folder) == clean:
        accepted += 1
    elif end == "1\n" and not os.path.exists(folder):
        refused += 1
    else:
        print(name, end)
print("%d accepted, %d refused" % (accepted, refused))
P
[ "$(wc -l <"$T/why")" = 1 ] && read -r accepted _ refused _ <"$T/why" && [ "$accepted" -gt 15 ] && [ "$refused" -gt 40 ] && grep -qx "said.json 0" "$T/ends"
result $? "commands in $((accepted + refused)) fields: refused, or in no emitted file but plan.json ($accepted)" "$T/why"

# UUIDs and the program's own path do reach scripts.
edit "$T/clean.json" "d['cluster']['nodes'][0]['gpu_uuid'][0] = 'GPU-1; touch pwned'"
expect 1 "a UUID that is none" 'gpu_uuid\[0\]: expected letters, digits and .-., found "GPU-1; touch pwned"' $L emit "$T/clean.json" -d "$T/evil2"
odd="$T/o'd \$(touch pwned) \"dir\""
mkdir -p "$odd" && cp "$LINKWISE" "$odd/linkwise"
(cd "$T" && "$odd/linkwise" emit "$T/a/plan.json" -d "$odd/launch" >/dev/null && cd "$odd/launch" &&
    for f in *.sh */*.sh slurm/job.sbatch; do sh -n "$f" || echo "$f"; done &&
    OMPI_COMM_WORLD_RANK=3 LINKWISE_ANY_HOST=1 ./exec.sh sh -c 'echo "$LINKWISE_HOST $LINKWISE_GPU"' &&
    SLURM_SUBMIT_DIR=. SLURM_JOB_ID=1 SLURM_JOB_NODELIST=x sh -c 'scontrol() { echo x; }; srun() { :; }; . slurm/job.sbatch' 2>&1 sh) >"$T/why" 2>&1
[ "$(head -n 1 "$T/why")" = "$(awk '$1 == 3 { print $2, $3 }' "$odd/launch/map.txt")" ] && [ ! -e "$T/pwned" ] && [ ! -e "$odd/launch/pwned" ] &&
    [ "$(sed -n 's/^emitted_by=/printf %s /p' "$odd/launch/slurm/job.sbatch" | sh)" = "$odd/linkwise" ]
result $? "folders and a program path with every shell character" "$T/why"

# ---- size ----
$L plan "128x8 h100-sxm5-80g intra:370 inter:48" llama-3-70b --seq 4096 --global-batch 1024 --tp 8 --pp 4 --dp 32 --micro-batch 1 \
    --granularity node -o "$T/large.json" >/dev/null
edit "$T/large.json" "
import random
random.seed(3)
places = [(r['node'], r['gpu']) for r in d['ranks']]
random.shuffle(places)
for r in d['ranks']: r['node'], r['gpu'] = places[r['rank']]"
expect 0 "1,024 ranks" "1024 ranks written" $L emit "$T/large.json" -d "$T/large"
map "$T/large.json" | cmp - "$T/large/map.txt" && check_files "$T/large" >"$T/why" 2>&1
result $? "... every file that orders them is the plan" "$T/why"
[ "$(RANK=1023 LINKWISE_ANY_HOST=1 "$T/large/exec.sh" sh -c 'echo "$RANK $LINKWISE_HOST $LINKWISE_GPU $WORLD_SIZE"' 2>&1)" = "$(tail -n 1 "$T/large/map.txt") 1024" ]
result $? "... and the wrapper finds the last"

# ---- folders ----
whole() { # DIR: nothing but whole files of one plan, no temporary ones
    ! find "$1" -name '*.??????' ! -name '*.sbatch' | grep -q . && [ -z "$(find "$1" -size 0 -type f)" ]
}
cp -r "$T/a/launch" "$T/kept"
expect 0 "the same plan again" "8 ranks" $L emit "$T/kept/plan.json" --to slurm -d "$T/kept"
[ -f "$T/kept/openmpi/rankfile" ] && diff -r -x README "$T/kept" "$T/a/launch" >"$T/why" && whole "$T/kept" &&
    grep -q "For openmpi, from an earlier run: openmpi/README" "$T/kept/README" && grep -q "sbatch slurm/job.sbatch" "$T/kept/README"
result $? "... leaves the other targets, and the README names them" "$T/why"
expect 0 "another plan" "12 ranks" $L emit "$T/mixed.json" --to slurm -d "$T/kept"
[ ! -e "$T/kept/openmpi" ] && [ ! -e "$T/kept/gpu-uuid.txt" ] && [ ! -e "$T/kept/torchrun" ] && whole "$T/kept"
result $? "... removes what belongs to the old one"
edit "$T/a/plan.json" "d['cluster']['nodes'][0]['gpu_uuid'][0] = 'GPU-replaced'"
cp -r "$T/a/launch" "$T/swapped"
$L emit "$T/a/plan.json" --to openmpi -d "$T/swapped" >/dev/null
[ ! -e "$T/swapped/slurm" ] && grep -q GPU-replaced "$T/swapped/gpu-uuid.txt"
result $? "the same plan on a cluster with another UUID removes the old files too"
$L cluster drain "$T/a/cluster.json" h2:0 -o "$T/drained.json" >/dev/null
$L plan "$T/drained.json" gpt2-xl --seq 1024 --global-batch 28 --tp 1 --pp 1 --dp 7 --micro-batch 1 -o "$T/drained-plan.json" >/dev/null
$L emit "$T/drained-plan.json" --to slurm -d "$T/drained" >/dev/null
grep -qx 'h2 1 GPU-h2-1' "$T/drained/gpu-uuid.txt" && grep -qx 'h2 1 1' "$T/drained/gpu-numa.txt" &&
    grep -q '^#SBATCH --gres=gpu:2$' "$T/drained/slurm/job.sbatch"
result $? "a drained GPU: the tables count as the machine does" "$T/drained/gpu-uuid.txt"
$L emit "$T/drained-plan.json" --to kubernetes -d "$T/drained" >/dev/null
[ "$(grep -c '"nvidia.com/gpu": "2"' "$T/drained/kubernetes/job.json")" = 1 ]
result $? "... pods ask for it, so that an index means the same inside" "$T/drained/kubernetes/job.json"
$L cluster synth calm --nodes 2 --gpus 3 -o "$T/three.json" >/dev/null
$L cluster drain "$T/three.json" n0:0 n1:0 -o "$T/three.json" >/dev/null
$LINKWISE plan "$T/three.json" llama-2-7b --seq 1024 --global-batch 8 --tp 2 --pp 2 --granularity node --json |
    $L emit - --to deepspeed -d "$T/three" >/dev/null
[ "$(sort "$T/three/deepspeed/hostfile" | paste -sd,)" = "n0 slots=3,n1 slots=3" ] &&
    tr '@' '\n' <"$T/three/deepspeed/include" | sort | cmp -s - <(printf 'n0:1,2\nn1:1,2\n')
result $? "... and DeepSpeed's slots count it" "$T/three/deepspeed/hostfile"
python3 - "$T/a/plan.json" "$T/plain.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
for n in d["cluster"]["nodes"]: del n["gpu_uuid"], n["gpu_numa"]
json.dump(d, open(sys.argv[2], "w"))
P
# Whatever else is left of the old set: a GPU's old UUID is not what the wrapper starts on.
for lost in none "map.txt plan.json"; do
    rm -rf "$T/plain" && cp -r "$T/a/launch" "$T/plain" && (cd "$T/plain" && rm -f $lost)
    $L emit "$T/plain.json" --to openmpi -d "$T/plain" >/dev/null
    [ ! -e "$T/plain/gpu-uuid.txt" ] && [ ! -e "$T/plain/gpu-numa.txt" ] &&
        [ "$(RANK=3 LINKWISE_ANY_HOST=1 "$T/plain/exec.sh" sh -c 'echo $CUDA_VISIBLE_DEVICES')" = "$(awk -v h="$(awk '$1 == 3 { print $2 }' "$T/plain/map.txt")" '$2 == h { print $3 }' "$T/plain/map.txt" | paste -sd,)" ]
    result $? "a cluster without UUIDs any more: the old ones are gone (lost before: $lost)"
done
mkdir -p "$T/stuck/gpu-uuid.txt"
expect 1 "an old table that cannot be removed" "gpu-uuid.txt: the old file cannot be removed: " $L emit "$T/plain.json" --to openmpi -d "$T/stuck"
$L emit "$T/a/plan.json" -d "$T/not-ended" >/dev/null
for i in 1 5; do
    rm -rf "$T/ended"
    $LINKWISE emit "$T/a/plan.json" -d "$T/ended" >/dev/null 2>&1 &
    for ((k = 0; k < 100000; k++)); do [ ! -d "$T/ended" ] || break; done
    for ((k = 0; k < i * 200; k++)); do :; done
    kill -TERM $! 2>/dev/null
    wait $! 2>/dev/null
    [ ! -d "$T/ended" ] || echo "$(find "$T/ended" -name '*.??????' ! -name job.sbatch | wc -l) $(find "$T/ended" -type f | wc -l)"
done >"$T/why" 2>&1
[ "$(sort -u "$T/why")" = "0 $(find "$T/not-ended" -type f | wc -l)" ]
result $? "ended by a signal: all files or none" "$T/why"
# Killed at any change of a name: the old files, the new ones, or a folder that starts nothing; the
# next emit leaves what it would have left in a new folder.
cat >"$T/kill.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
static void count (void)
{
    static int n;
    const char *at = getenv ("KILL_AT");
    if (at && ++n == atoi (at))
        raise (SIGKILL);
}
int rename (const char *a, const char *b)
{
    int (*real) (const char *, const char *) = (int (*) (const char *, const char *)) dlsym (RTLD_NEXT, "rename");
    count ();
    return real (a, b);
}
int unlink (const char *a)
{
    int (*real) (const char *) = (int (*) (const char *)) dlsym (RTLD_NEXT, "unlink");
    count ();
    return real (a);
}
C
if $CC -shared -fPIC -o "$T/kill.so" "$T/kill.c" -ldl 2>"$T/why"; then
    killed() { # AT FOLDER
        { LD_PRELOAD=$T/kill.so ASAN_OPTIONS=verify_asan_link_order=0 KILL_AT=$1 $L emit "$T/mixed.json" -d "$2" >/dev/null; } 2>/dev/null
        echo $?
    }
    $L emit "$T/mixed.json" -d "$T/after" >/dev/null 2>&1
    # Few of them.
    step=19
    [ -z "$LINKWISE_LONG" ] || step=1
    for ((at = 1, rc = 137; rc == 137; at += step)); do
        rm -rf "$T/killed"
        cp -r "$T/not-ended" "$T/killed"
        rc=$(killed $at "$T/killed")
        diff -r -x .linkwise-new "$T/not-ended" "$T/killed" >/dev/null || diff -r -x .linkwise-new "$T/after" "$T/killed" >/dev/null ||
            (cd "$T/killed" && for script in "exec.sh true" "exec.sh --where" "each-node.sh env/node.sh true" "env/node.sh true" "torchrun/node.sh true" "slurm/job.sbatch true" "slurm/het.sbatch true"; do
                LINKWISE_RSH=true LINKWISE_ANY_HOST=1 LINKWISE_NODE=h1 RANK=0 timeout 10 sh ./$script >"$T/out" 2>&1 ||
                    grep -Eq "half written|not a folder that linkwise emitted|[Nn]o such file|cannot open|not found" "$T/out" || echo "$at: $script: $(cat "$T/out")"
            done
                ! timeout 10 env LINKWISE_ANY_HOST=1 LINKWISE_NODE=h1 RANK=0 sh ./exec.sh true 2>/dev/null || echo "$at: a mixture starts")
        $L emit "$T/mixed.json" -d "$T/killed" >/dev/null 2>&1
        diff -r "$T/after" "$T/killed" || echo "$at: not mended"
    done >"$T/why" 2>&1
    echo "$at kills" >>"$T/why"
    [ "$(grep -vc kills "$T/why")" = 0 ] && [ $rc = 0 ] && [ $at -gt 20 ]
    result $? "killed at any change of a name: never a mixture that starts" "$T/why"
    for at in 1 3; do
        rm -rf "$T/killed"
        rc=$(killed $at "$T/killed")
        [ ! -e "$T/killed" ] || diff -r "$T/after" "$T/killed"
        $L emit "$T/mixed.json" -d "$T/killed" >/dev/null 2>&1
        diff -r "$T/after" "$T/killed" && [ ! -e "$T/killed.linkwise-new" ] || echo "$at: not mended"
    done >"$T/why" 2>&1
    [ ! -s "$T/why" ]
    result $? "... in a new folder: all files or none" "$T/why"
else
    skip "killed at any change of a name" "no compiler"
fi
mkdir "$T/blocked" && mkdir "$T/blocked/exec.sh"
expect 1 "a folder where a file should be" "exec.sh: expected a file, found a folder" $L emit "$T/a/plan.json" -d "$T/blocked"
[ "$(ls "$T/blocked")" = exec.sh ]
result $? "... and nothing else is there"
expect 1 "a file where the folder should be" "expected a folder, found a file" $L emit "$T/a/plan.json" -d "$T/a/plan.json"
expect 2 "unknown launcher" 'unknown launcher "pbs" \(openmpi, mpich, slurm, torchrun, env, deepspeed, kubernetes, megatron, nemo, torchtitan, deepspeed-config, all\)' \
    $L emit "$T/a/plan.json" --to pbs -d "$T/no"
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    cat >"$T/full.sh" <<'S2'
mkdir "$1/small" "$1/ro"
# From no room at all to enough: at every size the old files stay, or all new ones are there.
for kib in 16 64 1000; do
    mount -t tmpfs -o size=${kib}k tmpfs "$1/small"
    if "$LINKWISE" emit "$1/a/plan.json" -d "$1/small/launch" >"$1/out" 2>&1; then
        n=$(find "$1/small/launch" -type f | wc -l)
        echo "$kib written $n $(find "$1/small" -type f -size 0 | wc -l)"
    else
        echo "$kib $(grep -c 'No space left' "$1/out") $(find "$1/small" -mindepth 1 | wc -l)"
    fi
    umount "$1/small"
done
# Over an old set, with too little room for the new one.
mount -t tmpfs -o size=100k tmpfs "$1/small"
"$LINKWISE" emit "$1/a/plan.json" --to env -d "$1/small" >/dev/null
cp -r "$1/small" "$1/before"
head -c 40000 /dev/zero >"$1/small/ballast"
"$LINKWISE" emit "$1/mixed.json" -d "$1/small" >/dev/null 2>&1 && echo "100 fits"
rm "$1/small/ballast"
diff -r "$1/before" "$1/small" && echo "old kept"
umount "$1/small"
mount --bind "$1/ro" "$1/ro" && mount -o remount,ro,bind "$1/ro"
"$LINKWISE" emit "$1/a/plan.json" -d "$1/ro/launch" 2>&1
echo "ro $?"
S2
    unshare --mount bash "$T/full.sh" "$T" >"$T/full.out" 2>&1
    all=$(find "$T/clean" -type f | wc -l)
    awk -v all="$all" '/^[0-9]+ written/ { ok += $3 == all && $4 == 0; full++; next } /^[0-9]+ / { none += $2 >= 1 && $3 == 0; cut++ }
        END { exit !(full >= 1 && cut >= 2 && ok == full && none == cut) }' "$T/full.out"
    result $? "a disk that fills up: all files or none" "$T/full.out"
    grep -q "^old kept" "$T/full.out"
    result $? "... and the old ones as they were" "$T/full.out"
    grep -q "Read-only file system" "$T/full.out" && grep -q "^ro 1" "$T/full.out"
    result $? "a folder that cannot be written" "$T/full.out"
else
    skip "a disk that fills up" "not root, or no namespaces"
fi
done_testing
