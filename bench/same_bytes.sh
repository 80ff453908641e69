#!/bin/bash
# Do two builds of linkwise give the same bytes?  Forty problems are drawn, planned, evaluated,
# checked, merged, bound and emitted by both; every file and every line is compared.
#
#     bench/same_bytes.sh OLD NEW      two linkwise programs; exit 0: all the same
#
# Only the search's clock and the program's own path are left out.  Folders of what differs stay.
[ $# = 2 ] && [ -x "$1" ] && [ -x "$2" ] || { echo "usage: bench/same_bytes.sh OLD NEW" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2")
T=$(mktemp -d "${TMPDIR:-/tmp}/linkwise-bytes.XXXXXX")

# PRESET NODES GPUS TYPE SEED | MODEL | options of plan
problems='calm 2 8 h100-sxm5-80g 1|llama-2-7b|--seq 4096 --global-batch 128
busy 4 8 h100-sxm5-80g 2|llama-2-13b|--seq 4096 --global-batch 256
failing 4 8 a100-sxm4-80g 3|llama-2-13b|--seq 4096 --global-batch 256 --granularity gpu
mixed 4 8 h100-sxm5-80g 4|llama-2-13b|--seq 4096 --global-batch 256
calm 8 8 h100-sxm5-80g 5|llama-2-70b|--seq 4096 --global-batch 512
busy 8 8 a100-sxm4-80g 6|llama-2-70b|--seq 4096 --global-batch 512 --tie 0
failing 8 8 h100-sxm5-80g 7|llama-2-70b|--seq 4096 --global-batch 512
mixed 8 8 a100-sxm4-80g 8|llama-2-70b|--seq 4096 --global-batch 512 --tie 0
failing 16 8 h100-sxm5-80g 9|llama-2-70b|--seq 4096 --global-batch 1024 --seed 3
mixed 16 8 h100-sxm5-80g 10|llama-2-70b|--seq 4096 --global-batch 1024 --schedule 1f1b
busy 64 8 h100-sxm5-80g 11|llama-2-70b|--seq 4096 --global-batch 1024
mixed 64 8 h100-sxm5-80g 12|llama-3-70b|--seq 8192 --global-batch 1024
failing 8 4 v100-sxm2-32g 13|gpt3-6.7b|--seq 2048 --global-batch 256
mixed 8 4 a100-sxm4-40g 14|gpt3-6.7b|--seq 2048 --global-batch 256 --zero 1
failing 3 2 rtx-4090 15|gpt2-xl|--seq 1024 --global-batch 64
mixed 5 1 a100-pcie-80g 16|gpt2-xl|--seq 1024 --global-batch 60
failing 7 1 l40s 17|mistral-7b|--seq 2048 --global-batch 32
calm 4 8 h100-sxm5-80g 18|mixtral-8x7b|--seq 4096 --global-batch 256
failing 8 8 h100-sxm5-80g 19|mixtral-8x7b|--seq 4096 --global-batch 512
mixed 8 8 h200-sxm-141g 20|mixtral-8x22b|--seq 4096 --global-batch 512
busy 16 8 h200-sxm-141g 21|qwen3-235b-a22b|--seq 4096 --global-batch 1024
calm 16 8 h200-sxm-141g 22|deepseek-v2|--seq 4096 --global-batch 1024 --pp 4
busy 8 8 h100-sxm5-80g 23|llama-3-8b|--seq 65536 --global-batch 64
calm 8 8 h100-sxm5-80g 24|llama-3-8b|--seq 32768 --global-batch 128 --cp 4
failing 8 8 h100-sxm5-80g 25|llama-2-70b|--seq 4096 --global-batch 512 --schedule zb1p
busy 8 8 h100-sxm5-80g 26|llama-2-70b|--seq 4096 --global-batch 512 --schedule zbv
mixed 8 8 h100-sxm5-80g 27|llama-2-70b|--seq 4096 --global-batch 512 --schedule v-half
failing 8 8 h100-sxm5-80g 28|llama-2-70b|--seq 4096 --global-batch 512 --schedule interleaved
busy 8 8 h100-sxm5-80g 29|llama-2-70b|--seq 4096 --global-batch 512 --schedule gpipe
failing 8 8 a100-sxm4-80g 30|llama-2-13b|--seq 4096 --global-batch 256 --cost-model pipette
busy 8 8 a100-sxm4-80g 31|llama-2-13b|--seq 4096 --global-batch 256 --cost-model amp
calm 8 8 h100-sxm5-80g 32|llama-2-70b|--seq 4096 --global-batch 512 --objective gpu-hours
failing 8 8 h100-sxm5-80g 33|llama-2-70b|--seq 4096 --global-batch 512 --spares 2
failing 8 8 h100-sxm5-80g 34|falcon-40b|--seq 2048 --global-batch 512 --exclude n[1-2] --pin n5
calm 8 8 h100-sxm5-80g 35|gpt-neox-20b|--seq 2048 --global-batch 512 --recompute full
busy 8 8 b200-192g 36|llama-3-70b|--seq 8192 --global-batch 256 --precision fp8
mixed 8 8 b200-192g 37|llama-3-70b|--seq 8192 --global-batch 256 --oom-risk 0.01
failing 16 8 a100-sxm4-80g 38|bloom-176b|--seq 2048 --global-batch 2048 --profile megatron-deepspeed
calm 4 8 mi300x 39|qwen2.5-7b|--seq 4096 --global-batch 128 --sequence-parallel off
mixed 128 8 h100-sxm5-80g 40|llama-3-70b|--seq 8192 --global-batch 2048 --tp 8'

# What one build says of problem $1, drawn and asked by the words after it.
one () {
    bin=$1 preset=$2 nodes=$3 gpus=$4 type=$5 seed=$6 model=$7
    shift 7
    job=$(printf '%s\n' "$*" | grep -oE -- '--(seq|global-batch|profile|precision) [^ ]+')
    synth="$bin cluster synth $preset --nodes $nodes --gpus $gpus --gpu-type $type --seed $seed"
    $synth -o c.json
    $synth --epoch 1 -o later.json
    $bin cluster show c.json >show.txt
    $bin cluster drain c.json n0 -o drained.json
    $bin cluster merge c.json later.json -o merged.json
    $bin plan c.json "$model" "$@" -o plan.json --threads 2 >plan.txt
    $bin plan merged.json "$model" "$@" --json --threads 1 >plan2.json
    $bin time merged.json "$model" $job --tp "$gpus" --json >time.json
    $bin mem "$model" --gpu "$type" $job --tp "$gpus" --json >mem.json
    [ -s plan.json ] || return
    $bin eval plan.json later.json --json >eval.json
    $bin eval plan.json c.json --cost-model pipette >eval.txt
    $bin check plan.json >check.txt
    $bin bind plan.json --only "n[0-$((nodes - 1))]" -o bound.json
    $bin plan --from plan.json later.json -o moved.json --threads 2 >moved.txt
    $bin emit plan.json --to all -d launch
    [ "$nodes" -le 8 ] && $bin compare c.json later.json "$model" $job --json >compare.json
}

differ=0 n=0 planned=0
while IFS='|' read -r cluster model options; do
    n=$((n + 1))
    for side in old new; do
        mkdir -p "$T/$n/$side/bin"
        ln -s "${!side}" "$T/$n/$side/bin/linkwise"
        # Words are meant to be split.
        # shellcheck disable=SC2086
        (cd "$T/$n/$side" && one bin/linkwise $cluster $model $options >out 2>err </dev/null) &
    done
    wait
    find "$T/$n" -type f -exec sed -i -E "s/(\"seconds\": )[0-9.e-]+/\1CLOCK/
        s/(by their bound|by bounds); [0-9.]+ s/\1; CLOCK s/; s/^emitted_by=.*/emitted_by=PROGRAM/" {} +
    [ -s "$T/$n/old/plan.json" ] && planned=$((planned + 1))
    rm -r "$T/$n"/*/bin
    if diff -r "$T/$n/old" "$T/$n/new" >"$T/$n/diff"; then
        rm -r "${T:?}/$n"
    else
        differ=$((differ + 1))
        echo "problem $n ($cluster, $model $options) differs: $T/$n/diff"
    fi
done <<<"$problems"
echo "$((n - differ)) of $n problems give the same bytes; $planned have a plan"
[ $differ = 0 ] && rm -r "$T"
[ $differ = 0 ]
