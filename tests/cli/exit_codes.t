#!/bin/bash
# Every kind of bad input: one clear message, the contract's exit code, nothing on standard
# output, no output file half written.
. tests/lib/tap.sh
L="spawn $LINKWISE"
C="2x8 h100-sxm5-80g intra:370 inter:48"
job="--seq 4096 --global-batch 64"
plan="$LINKWISE plan"

# ---- 1: no text, and without an end ----
endless() { expect 1 "endless: $*" "/dev/zero: binary data: expected text" $L "$@"; }
endless mem /dev/zero --gpu h100-sxm5-80g
endless plan /dev/zero llama-2-7b
endless plan "$C" llama-2-7b $job --only @/dev/zero
endless check /dev/zero
endless topo --from /dev/zero
endless cluster show /dev/zero
endless cluster import /dev/zero -o "$T/no.json"
endless import-job /dev/zero

# ---- 2: options ----
expect 2 "no command" "Usage: linkwise" $L
expect 2 "unknown command" 'unknown command "plna"' $L plna
expect 2 "unknown option" "unrecognized option" $plan "$C" llama-2-7b $job --frobnicate
expect 2 "no arguments" "CLUSTER and MODEL are required" $plan
expect 0 "no job" "no --seq: 4096 tokens" $plan "$C" llama-2-7b
expect 2 "malformed number" 'tp: expected a whole number.*found "two"' $plan "$C" llama-2-7b $job --tp two
expect 2 "number with a tail" 'found "2x"' $plan "$C" llama-2-7b $job --tp 2x
expect 2 "zero degree" "tp: expected a whole number from 1" $plan "$C" llama-2-7b $job --tp 0
expect 2 "huge number" "seq: expected" $plan "$C" llama-2-7b --seq 99999999999999999999 --global-batch 1
expect 2 "more nodes than there are" "nodes 3: the cluster .* has 2" $plan "$C" llama-2-7b $job --nodes 3
expect 2 "time limit 0" "time-limit: expected a number above 0" $plan "$C" llama-2-7b $job --time-limit 0
expect 2 "effort 0" "effort: expected a whole number from 1 to 1000" $plan "$C" llama-2-7b $job --effort 0
printf 'm1\n' >"$T/strange"
expect 0 "unknown nodes of a file" 'strange: 1 of 1 names are no nodes' $plan "$C" llama-2-7b $job --exclude "@$T/strange"
expect 2 "two lists from standard input" 'only one input' $plan "$C" llama-2-7b $job --only @- --exclude @-
expect 2 "unknown node" 'only: the cluster .* has no node "m1"' $plan "$C" llama-2-7b $job --only m1
expect 2 "malformed host list" 'only: host list' $plan "$C" llama-2-7b $job --only 'n[1-'
expect 2 "unknown recompute" "recompute: expected none" $plan "$C" llama-2-7b $job --recompute much
expect 2 "unknown module" "recompute: expected none" $plan "$C" llama-2-7b $job --recompute mlp,much
expect 1 "a module that the model has not" "recompute moe_act: llama-2-7b has no such part" $plan "$C" llama-2-7b $job --recompute moe_act
expect 1 "modules that the framework does not repeat" "recompute mlp: profile fsdp does not offer it" $plan "$C" llama-2-7b $job --recompute mlp --profile fsdp
for refused in "fsdp --pp 2|pp 2: profile fsdp has no pipeline" "fsdp --zero 0|zero 0: profile fsdp has no such stage" \
    "deepspeed --sequence-parallel on|sequence parallelism on: profile deepspeed does not have it" \
    "deepspeed --zero 3 --tp 2|zero 3 with tp 2: profile deepspeed supports at most zero 2"; do
    expect 1 "what the framework has not: ${refused%|*}" "${refused#*|}" $plan "$C" llama-2-7b --profile ${refused%|*}
done
expect 1 "... nor is it priced" "tp 2: profile litgpt has no tensor parallelism" $L time "$C" llama-2-7b --tp 2 --profile litgpt
expect 1 "optimizer states that the framework has not" "optimizer bytes 7: profile megatron-core-composed offers 4, 6, 8, 10, 12" $plan "$C" llama-2-7b $job --optimizer-bytes 7
expect 2 "optimizer states of nothing" "optimizer-bytes: expected a whole number from 1" $plan "$C" llama-2-7b $job --optimizer-bytes 0
expect 2 "published formulas know no modules" "recompute mlp needs --memory-model linkwise" $plan "$C" llama-2-7b $job --recompute mlp --memory-model korthikanti
expect 2 "... nor short optimizer states" "optimizer-bytes needs --memory-model linkwise" $plan "$C" llama-2-7b $job --optimizer-bytes 8 --memory-model fujii
expect 0 "the slowest links that there may be" "pruned by bounds" $plan -v "2x2 h100-sxm5-80g intra:370 inter:1e-9 + 2x2 h100-sxm5-80g intra:370 inter:2e-9" gpt2-xl --seq 1024 --global-batch 16
expect 3 "excluded nodes are no GPUs that are there" "would fit on 32 such GPUs" $plan "64x8 h100-sxm5-80g intra:370 inter:48" llama-3-70b --seq 8192 --global-batch 16 --only n0 --offload none
expect 2 "all spare" "spares 2: only 2 nodes" $plan "$C" llama-2-7b $job --spares 2
expect 2 "a pinned node that is not there" 'pin: the cluster .* has no node "m1"' $plan "$C" llama-2-7b $job --pin m1
expect 2 "a pinned node left out" "pin: --only or --exclude rules out node n0" $plan "$C" llama-2-7b $job --pin n0 --exclude n0
expect 2 "more pinned nodes than may be used" "pin: 2 nodes are pinned, but --nodes or --spares allow only 1" $plan "$C" llama-2-7b $job --pin 'n[0-1]' --spares 1
expect 2 "unknown rack" 'only: the cluster .* has no rack and no switch "r1"' $plan "$C" llama-2-7b $job --only rack:r1
expect 2 "unknown objective" "objective: expected step, gpu-hours or goodput" $plan "$C" llama-2-7b $job --objective money
expect 2 "a tie beyond all" "tie: expected a number from 0 to 100" $plan "$C" llama-2-7b $job --tie 101
expect 2 "sequence parallelism over one rank" "tp is 1: leave out one" $plan "$C" llama-2-7b $job --sequence-parallel on --tp 1
expect 2 "shards of nothing" "zero 0 shards nothing, and --shard is 8" $plan "$C" llama-2-7b $job --zero 0 --shard 8
expect 2 "an expert split further than the rest" "etp 4 is above --tp 2" $plan "$C" mixtral-8x7b $job --etp 4 --tp 2
expect 2 "chunks without a pipeline" "vpp above 1 needs a pipeline" $plan "$C" llama-2-7b $job --vpp 2 --pp 1
expect 2 "a schedule without a pipeline" "zbv needs a pipeline, and --pp is 1" $plan "$C" llama-2-7b $job --schedule zbv --pp 1
expect 2 "chunks that the schedule has not" "one chunk a stage: ask for --schedule interleaved" $plan "$C" llama-2-7b $job --vpp 2 --schedule 1f1b
expect 2 "too few chunks" "interleaved schedule needs 2 or more" $L time "$C" llama-2-7b $job --pp 2 --vpp 1 --schedule interleaved
expect 2 "chunks of a V" "v-half schedule has two chunks" $L mem llama-2-7b --gpu l4 --seq 128 --pp 2 --vpp 3 --schedule v-half
expect 2 "two standard inputs" "only one input" $plan - - $job
expect 1 "mem of the usual sequence, which cp does not divide" "seq 8192 cannot be split into 6" $L mem llama-3-8b --gpu h100 --cp 3
expect 2 "mem without a GPU" "MODEL and --gpu are required" $L mem llama-2-7b --seq 128
expect 2 "offloading to nowhere" "offload: expected none" $L mem llama-2-7b --gpu l4 --seq 128 --offload disk
expect 1 "offloading that the framework has not" "offload all: profile megatron-core-composed does not have it" $L mem llama-2-7b --gpu l4 --seq 128 --offload all
expect 0 "offloading" " 12.55 .* 0.00 .* 0.00 " $L mem llama-2-7b --gpu l4 --seq 128 --offload optimizer --profile deepspeed --zero 2
expect 2 "published formulas know no offloading" "offload needs --memory-model linkwise" $L mem llama-2-7b --gpu l4 --seq 128 --offload optimizer --memory-model fujii
expect 0 "... and what the host then holds" "the host holds 100.4. GiB for each GPU" $L mem llama-2-7b --gpu l4 --seq 128 --offload optimizer --profile deepspeed --zero 2
two="1x2 rtx-4090 intra:12" small="llama-2-7b --seq 2048 --global-batch 32 --profile deepspeed"
expect 0 "a plan offloads where nothing fits without" "^host .*offload optimizer, since nothing fits without" $L plan "$two" $small
expect 3 "... unless it may not" "it would fit with --offload optimizer" $L plan "$two" $small --offload none
expect 3 "... unless its states are short ones, which stay on the GPU" "it would fit with --offload optimizer, without --optimizer-bytes" $L plan "$two" $small --profile megatron-core --optimizer-bytes 10
expect 3 "... or the profile has nothing of it" "nothing fits in memory" $L plan "$two" $small --profile nanotron
expect 1 "... which is refused by name" "offload optimizer: profile nanotron does not have it" $L plan "$two" $small --profile nanotron --offload optimizer
expect 0 "with room nothing is offloaded" "^GPUs" $L plan "1x8 h100 intra:370" $small
printf '%s\n' '{"version": 1, "name": "c", "gpu_types": {"g": {"like": "rtx-4090", "host_link_gb_per_s": 20}}, "nodes": [{"name": "n0", "gpus": 2, "gpu_type": "g", "host_memory_gib": 128}], "links": {"intra": {"bandwidth_gb_per_s": 12, "latency_us": 10}}}' >"$T/host.json"
expect 0 "the host's memory is told" "n0, which has 128.0 GiB" $L plan "$T/host.json" $small -o "$T/host-out.json"
$L plan "$T/host.json" $small -o "$T/host-out.json" >/dev/null 2>&1
expect 0 "... checked" "host memory *ok *node n0 needs 100.4 of its 128.0 GiB" $L check "$T/host-out.json"
sed 's/: 128}/: 64}/' "$T/host.json" >"$T/host-64.json"
expect 3 "... and a limit" "hosts have not: 32.0 GiB of their memory a GPU" $L plan "$T/host-64.json" $small
sed 's/: 128}/: 0}/' "$T/host.json" >"$T/host-0.json"
expect 1 "a host without memory" "host_memory_gib: expected a number > 0" $L plan "$T/host-0.json" $small
sed 's/: 20}/: -20}/' "$T/host.json" >"$T/host-link.json"
expect 1 "a negative link to the host" "host_link_gb_per_s: expected a number" $L plan "$T/host-link.json" $small
expect 2 "unknown GPU type as option" 'gpu: unknown GPU type "nope"' $L mem llama-2-7b --gpu nope --seq 4096
expect 2 "layers that are no numbers" "layers-per-stage: expected 2 numbers" $L time "$C" llama-2-7b $job --pp 2 --layers-per-stage x,y
expect 2 "a trace and a document" "both want standard output" $L time "$C" llama-2-7b $job --trace - --json
expect 0 "a trace beside a model that plays nothing out" "AMP .*has no schedule to trace" $L time "$C" llama-2-7b $job --cost-model amp --trace -
expect 2 "an empty folder name" 'd: expected a folder, found ""' $L emit plan.json -d ""

# ---- 1: content ----
expect 1 "fp8 on a GPU without it" "GPU type a100-sxm4-80g cannot run fp8" $L mem llama-2-7b --gpu a100-sxm4-80g --seq 4096 --precision fp8
expect 1 "tf32 on a GPU without it" "GPU type t4 cannot run tf32" $L mem gpt2-xl --gpu t4 --seq 1024 --precision tf32
expect 0 "bf16 on a GPU without it" "v100-sxm2-32g has no bf16" $L mem gpt2-xl --gpu v100-sxm2-32g --seq 512
expect 0 "the change that takes the fewest GPUs" "fit with pp 4 .32 GPUs instead of 8" $L mem llama-2-70b --gpu h100-sxm5-80g --seq 4096 --tp 8
expect 1 "missing cluster" "none.json: No such file" $plan none.json llama-2-7b $job
expect 1 "a folder as cluster" "expected a file, found a folder" $plan tests llama-2-7b $job
echo '{"version":1,' >"$T/cut.json"
expect 1 "truncated cluster" "cut.json: line [0-9]+, column" $plan "$T/cut.json" llama-2-7b $job
: >"$T/empty.json"
expect 1 "empty cluster" "empty.json: expected JSON, found an empty file" $plan "$T/empty.json" llama-2-7b $job
sed 's/13.56/-13.56/' examples/clusters/h100-17.json >"$T/negative.json"
expect 1 "slower links" "by_node.0.: expected a number >= 1e-9 or null, found 9.99989e-321" \
    $plan "2x8 h100-sxm5-80g intra:370 inter:1e-320 + 2x8 h100-sxm5-80g intra:370 inter:2e-320" llama-2-7b $job
expect 1 "negative bandwidth" 'negative.json: links.inter.bandwidth_gb_per_s\[0\]\[1\]: expected a number > 0 or null, found -13.56' \
    $plan "$T/negative.json" llama-2-7b $job
sed 's/13.56/NaN/' examples/clusters/h100-17.json >"$T/nan.json"
expect 1 "NaN bandwidth" "nan.json: line" $plan "$T/nan.json" llama-2-7b $job
sed 's/cnode2-002/cnode2-001/' examples/clusters/h100-17.json >"$T/twice.json"
expect 1 "duplicate node" 'two nodes are named "cnode2-001"' $plan "$T/twice.json" llama-2-7b $job
sed '/cnode2-017/d; s/\(cnode2-016.*\),$/\1/' examples/clusters/h100-17.json >"$T/size.json"
expect 1 "matrix of the wrong size" "expected 16 rows of 16 entries, found an array of 17" $plan "$T/size.json" llama-2-7b $job
expect 1 "unknown GPU type" 'unknown GPU type "k80"' $plan "1x1 k80" llama-2-7b $job
expect 1 "unknown model" "no preset has that name; near it: llama-2-7b" $plan "$C" llama-7 $job
expect 0 "a model by its name on the hub" "Llama-3-8B: taken as the preset llama-3-8b" \
    $LINKWISE mem meta-llama/Llama-3-8B --gpu h100-sxm5-80g --seq 512
expect 1 "one that is no preset" "hf download Qwen/Qwen3-1B config.json --local-dir Qwen3-1B" \
    $LINKWISE mem Qwen/Qwen3-1B --gpu h100-sxm5-80g --seq 512
mkdir -p "$T/Llama-3.1-8B"
cp examples/models/llama-2-70b.json "$T/Llama-3.1-8B/config.json"
expect 0 "a folder with a config.json" "^Llama-3.1-8B, 68.98 billion" \
    $LINKWISE mem "$T/Llama-3.1-8B/" --gpu h100-sxm5-80g --seq 512 --tp 8
echo '{"model_type":"resnet"}' >"$T/resnet.json"
expect 1 "unknown model type" 'model_type: expected a known family .* found "resnet"' $plan "$C" "$T/resnet.json" $job
expect 1 "degree that does not divide" "tp 3 does not divide 32 attention heads" $plan "$C" llama-2-7b $job --tp 3
expect 1 "more expert parallelism than GPUs" "tp 1 x cp 2 x pp 1 x dp 4 needs 8 GPUs, 4 can be used" \
    $LINKWISE plan "1x4 h100-sxm5-80g intra:370" mixtral-8x7b $job --ep 8 --cp 2
expect 3 "a limit that no GPU can meet" "the limit is 0.[0-9] GiB" $plan "$C" llama-2-7b $job --memory-limit 1.1
! grep -q "inf" "$T/err"
result $? "... names no size" "$T/err"
expect 1 "batch that does not divide" "dp 3 does not divide 64" $plan "$C" llama-2-7b $job --dp 3
expect 1 "too many GPUs asked" "needs 32 GPUs, 16 can be used: lower a degree" $plan "$C" llama-2-7b $job --tp 8 --pp 4
expect 1 "sequence too long" "learned positions for 1024 tokens" $plan "$C" gpt2-xl --seq 2048 --global-batch 8
expect 1 "precision that no GPU has" "can run fp8" $plan "1x1 t4" gpt2-xl --seq 512 --global-batch 8 --precision fp8
expect 1 "missing profile" "shipped profiles: aleph-alpha" $plan "$C" llama-2-7b $job --profile none
expect 1 "a schedule that needs more micro-batches" "the dualpipev schedule needs 2 micro-batches for each of pp 4 stages, found 4" \
    $L time "4x8 h100" llama-2-7b --seq 4096 --global-batch 32 --pp 4 --schedule dualpipev
expect 1 "a schedule that the framework has not" "profile aleph-alpha does not support the zbv schedule" \
    $plan "$C" llama-2-7b $job --profile aleph-alpha --schedule zbv --pp 4
expect 1 "ZeRO that its pipeline refuses" "zero 3 with pp 2: profile megatron-deepspeed supports at most zero 1" \
    $plan "$C" llama-2-7b $job --profile megatron-deepspeed --zero 3 --pp 2
expect 1 "missing plan" "none.json: No such file" $L check none.json
expect 1 "a cluster as plan" "model: expected an object" $L eval examples/clusters/h100-17.json
expect 1 "time: more GPUs than there are" "needs 64 GPUs, the cluster has 16" $L time "$C" llama-2-7b $job --tp 8 --dp 8
expect 1 "layers that do not sum" "sums to 30, the model has 32" $L time "$C" llama-2-7b $job --pp 2 --layers-per-stage 10,20
expect 1 "full disk" "standard output|No space" bash -c "$LINKWISE gpus >/dev/full"

expect 1 "more ranks than can be counted" "expected at most 16777216 ranks" \
    $L time "$C" llama-2-70b --seq 1073741824 --global-batch 1073741824 --tp 8 --pp 80 --dp 16777216 --cp 8388608
expect 1 "time fails before it prints" "can run fp8|cannot run fp8" $L time "1x2 t4 intra:10" gpt2-xl --seq 128 --global-batch 2 --precision fp8
[ ! -s "$T/out" ]
result $? "... nothing" "$T/out"
expect 1 "a large prime batch" "does not divide 1073741789 sequences of the global batch \(1, 1073741789 would\)" \
    $plan "$C" gpt2-xl --seq 128 --global-batch 1073741789 --dp 2
esc=$(printf '\033')
printf '{"version":1,"name":"x\\u001b[2J","a\\u001b[2Jb":1,"nodes":[{"name":"a","gpus":1,"gpu_type":"l4","g\\u001b[2J":1}],"links":{}}' >"$T/esc.json"
$plan "$T/esc.json" gpt2-xl --seq 128 --global-batch 1 --offload none >"$T/out" 2>&1
! grep -q "$esc" "$T/out" && grep -q 'x?\[2J' "$T/out"
result $? "escapes in a file do not reach the terminal" "$T/out"
sed -i 's/"l4"/"l4\\u001b[2J"/' "$T/esc.json"
$plan "$T/esc.json" gpt2-xl --seq 128 --global-batch 1 --offload none >"$T/out" 2>&1
! grep -q "$esc" "$T/out" && grep -q 'unknown GPU type' "$T/out"
result $? "... nor those in a message" "$T/out"
bad="x$esc[2J"
for command in "" "plan 1x1 $bad" "plan 1x1 gpt2 --$bad" "plan 1x1 gpt2 --seq $bad" "plan 1x1 gpt2 -$esc"; do
    $L $command >"$T/out" 2>&1 "$bad"
    ! grep -q "$esc" "$T/out" && grep -q '?' "$T/out"
    result $? "... nor those of the command line: ${command%"$bad"}" "$T/out"
done

# ---- 3: nothing fits ----
expect 3 "fits nowhere" "stage 0 with .* layers needs .* GiB (.* of it .*), the limit is" $plan "1x2 t4 intra:10" llama-2-70b $job
grep -q "it would fit on [0-9]* such GPUs" "$T/err"
result $? "... and what would make it fit" "$T/err"
expect 3 "fits without fixing recompute" "it would fit without fixing --recompute" \
    $plan "1x8 a100-sxm4-80g intra:200" llama-2-13b --seq 98304 --global-batch 8 --recompute none --tp 8
grep -q "this one would fit with recompute full:[0-9]*" "$T/err"
result $? "... and the smallest change" "$T/err"
expect 3 "one GPU that is large enough is too few" "too few GPUs have that much memory" \
    $plan "1x1 h100-sxm5-80g inter:20 + 3x1 t4 inter:20" gpt2-xl --seq 1024 --global-batch 8 --tp 1 --pp 1 --dp 2 --zero 0
$L cluster drain "$C" 'n0<->n1' -o "$T/parted.json" >/dev/null
expect 3 "the one link drained" "not connected: no link between them" $plan "$T/parted.json" llama-2-7b $job --dp 16
expect 1 "chunks that do not divide" "vpp 3: 32 layers do not divide into 3 chunks of 2 stages" \
    $plan "1x8 h100-sxm5-80g intra:370" llama-2-7b --seq 4096 --global-batch 64 --pp 2 --schedule interleaved --vpp 3 \
    --profile megatron-lm
expect 2 "Fujii's model knows no adapters" "lora needs --memory-model linkwise" \
    $LINKWISE mem llama-2-7b --gpu h100-sxm5-80g --seq 4096 --memory-model fujii --lora
expect 3 "everything excluded" "has no node left to use: shorten --exclude" $plan "$C" llama-2-7b $job --exclude 'n[0-1]'
cat >"$T/apart.json" <<'J'
{"version":1,"nodes":[{"name":"a","gpus":1,"gpu_type":"l4"},{"name":"b","gpus":1,"gpu_type":"l4"}],
 "links":{"inter":{"latency_us":1,"bandwidth_gb_per_s":[[null,null],[null,null]]}}}
J
expect 3 "not connected" "not connected" $plan "$T/apart.json" gpt2-xl --seq 512 --global-batch 8 --pp 2

# ---- outputs whole or not at all ----
echo old >"$T/plan.json"
expect 3 "a plan that fails leaves the old file" "nothing fits" $plan "1x2 t4 intra:10" llama-2-70b $job -o "$T/plan.json"
[ "$(cat "$T/plan.json")" = old ] && [ "$(ls "$T" | grep -c plan.json)" = 1 ]
result $? "... as it was"
expect 1 "a folder that is not there" "No such file" $plan "$C" llama-2-7b $job -o "$T/no/such/plan.json"

# ---- 0: what should work ----
expect 0 "help" "Usage: linkwise COMMAND" $L --help
for c in plan mem time eval check emit bind gpus models; do
    expect 0 "$c --help" "Usage: linkwise $c" $L $c --help
    expect 0 "$c --version" "^linkwise [0-9]+\.[0-9]+" $L $c --version
done
expect 0 "version" "^linkwise [0-9]" $L --version
done_testing
