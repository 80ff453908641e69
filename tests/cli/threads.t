#!/bin/bash
# One seed gives one plan on 1, 2 and 16 threads: batches of configurations, restarts of the
# best, whole nodes and single GPUs.
. tests/lib/tap.sh
L="spawn $LINKWISE"
$L cluster synth failing --nodes 6 --gpus 4 --gpu-type a100-sxm4-80g --seed 3 -o "$T/c.json" >/dev/null
plan() { # THREADS OPTIONS...
    local n=$1
    shift
    $LINKWISE plan "$T/c.json" llama-2-13b --seq 4096 --global-batch 48 --zero 1 --threads "$n" --json "$@" |
        sed 's/"seconds": [0-9.e+-]*//'
}
several=16
[ -z "$LINKWISE_LONG" ] || several="2 16"
for options in "--tp 2 --recompute none" "--granularity gpu --tp 4" "--cost-model pipette --tp 4"; do
    for n in 1 $several; do
        plan $n $options >"$T/$n.json"
    done
    [ -s "$T/1.json" ] && grep -q '"placed": [1-9][0-9]*' "$T/1.json"
    result $? "a plan ${options:-as it is}"
    for n in $several; do
        cmp "$T/1.json" "$T/$n.json" >"$T/why"
        result $? "the same on $n threads" "$T/why"
    done
done
done_testing
