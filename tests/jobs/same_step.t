#!/bin/bash
# What `emit --to megatron` wrote of a plan whose stages or chunks hold unlike numbers of layers is
# estimated by import-job as the plan itself, and differs from even ones.
. tests/lib/tap.sh
. tests/lib/jobs.sh
edit() { # FILE PYTHON: a document d, changed
    echo "import json; d = json.load(open('$1')); $2; json.dump(d, open('$1', 'w'))" >"$T/edit.py"
    py "$T/edit.py"
}
C="2x8 h100-sxm5-80g intra:370 inter:48"

$L plan "$C" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --dp 1 --micro-batch 1 --zero 0 \
    --recompute none --schedule interleaved --vpp 2 -o "$T/chunks.json" >/dev/null
$L plan "$C" llama-2-7b --seq 4096 --global-batch 64 --tp 4 --pp 4 --dp 1 --micro-batch 1 --zero 0 \
    --recompute none --schedule 1f1b -o "$T/stages.json" >/dev/null
# same NAME PLAN LAYERS [CHUNKS]: the plan with these, written and read again.
same() {
    cp "$T/$2.json" "$T/p.json"
    edit "$T/p.json" "d.update(layers_per_stage=$3); d.pop('layers_per_chunk', 0); d.update(${4:+layers_per_chunk=$4})"
    $L eval "$T/p.json" --json >"$T/eval.json" 2>/dev/null
    rm -rf "$T/m" && $L emit "$T/p.json" --to megatron -d "$T/m" >/dev/null
    json "$T/p.json" "json.dumps(d['model'])" >"$T/config.json"
    row "$T/m/megatron/args" "$T/config.json" --seq 4096 --cluster "$C" --profile megatron-core-composed
    is "abs(d['estimate']['step_s'] / json.load(open('$T/eval.json'))['step_s'] - 1) < 1e-9" # $1
}
step() { json "$T/doc.json" "d['estimate']['step_s']"; }

same "even chunks" chunks "[8, 8, 8, 8]"
even=$(step)
same "uneven stages of two chunks" chunks "[10, 8, 8, 6]"
same "unlike chunks" chunks "[8, 8, 8, 8]" "[[6, 2], [3, 5], [4, 4], [2, 6]]"
[ "$(json "$T/doc.json" "d['estimate']['step_s'] > 1.05 * $even")" = True ]
result $? "... which take longer than even ones"
same "an embedding and a loss alone in their chunks" chunks "[8, 8, 8, 8]" "[[0, 8], [4, 4], [4, 4], [8, 0]]"
same "a smaller first and last stage" stages "[6, 10, 10, 6]"
same "unlike stages" stages "[7, 10, 9, 6]"

# The embedding and the loss counted as layers are the same as a layer less on both ends.
grep -v "decoder-\|-layout" "$T/m/megatron/args" >"$T/args"
counted() { row "$T/args" "$T/config.json" --seq 4096 --cluster "$C" --profile megatron-core-composed; }
edit "$T/config.json" "d.update(num_hidden_layers=30)"
printf -- '--decoder-first-pipeline-num-layers 7\n--decoder-last-pipeline-num-layers 7\n' >>"$T/args"
counted
ends=$(step)
grep -v "decoder-" "$T/args" >"$T/counted"
printf -- '--account-for-embedding-in-pipeline-split\n--account-for-loss-in-pipeline-split\n' >>"$T/counted"
mv "$T/counted" "$T/args"
counted
is "d['estimate']['step_s'] == $ends and d['unknown'] == []"
# Latent attention, experts and multi-token prediction: the module stands before the loss.
D="2x8 h100-sxm5-80g intra:370 inter:48"
$L plan "$D" deepseek-v2-lite --seq 4096 --global-batch 64 --tp 1 --pp 4 --dp 4 --ep 4 --micro-batch 1 --zero 1 \
    --recompute none --schedule interleaved --vpp 3 --mtp-num-layers 1 -o "$T/chunks.json" >/dev/null
same "multi-token prediction" chunks "[7, 7, 7, 6]" "[[3, 3, 1], [3, 3, 1], [3, 3, 1], [3, 3, 0]]"
is "d['model']['mtp_num_layers'] == 1"
grep -qx -e "--pipeline-model-parallel-layout .*|t|t|t|mL" "$T/m/megatron/args"
result $? "a layout with its module" "$T/m/megatron/args"
same "stages with multi-token prediction" chunks "[9, 6, 6, 6]"

done_testing
