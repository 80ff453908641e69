#!/bin/bash
# plan --objective goodput: all nodes while failures cost little, spares where they cost much, one
# number for both; what nobody gave has its usual value.
. tests/lib/tap.sh
plan() { $LINKWISE plan "9x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b --seq 2048 --global-batch 1152 --tp 1 --pp 1 --micro-batch 1 "$@"; }
value() { # KEY of the estimate's goodput
    sed -n '/^    "goodput": {/,/}/s/^      "'"$1"'": \([^,]*\),*$/\1/p' "$T/p.json"
}

expect 0 "GPUs that hardly fail: all nodes" "^GPUs     72 of 72" plan --objective goodput --repair 1 -o "$T/p.json"
grep -q "goodput  99\..*0 spare nodes" <(paste -sd' ' "$T/out")
result $? "... and how much of the time trains" "$T/out"
[ "$(value spare_nodes)" = 0 ] &&
    awk -v mtbf="$(value job_mtbf_s)" -v trained="$(value tokens_per_s)" -v share="$(value share)" \
        -v all="$(sed -n 's/^    "tokens_per_s": \(.*\),$/\1/p' "$T/p.json")" 'BEGIN {
            exit !((mtbf - 50700 * 3600 / 72) ^ 2 < 1 && trained > 0 && (trained / (share * all) - 1) ^ 2 < 1e-12) }'
result $? "the file has it, with the usual failures" "$T/p.json"
bad="--objective goodput --gpu-mtbf 3000 --repair 72 --restart 1200 --checkpoint 120"
expect 0 "GPUs that fail often and are long in repair: spares" "^GPUs     48 of 72" plan $bad -o "$T/p.json"
spare=$(value tokens_per_s)
[ "$(value spare_nodes)" = 3 ]
result $? "... is one number with the rest" "$T/p.json"
expect 0 "the step's plan says its goodput where asked" "^goodput" plan ${bad#--objective goodput} -o "$T/p.json"
all=$(value tokens_per_s)
[ "$(value spare_nodes)" = 0 ] && awk -v a="$spare" -v b="$all" 'BEGIN { exit !(a > b) }'
result $? "... and trains fewer tokens in the end" "$T/p.json"
expect 0 "without any of it there is no such line" "^step" plan -o "$T/p.json"
! grep -q goodput "$T/out" && ! grep -q '"goodput": {' "$T/p.json"
result $? "... nor key" "$T/out"
expect 0 "GPUs that never work long: a plan all the same" "^goodput  0.00 %" plan --objective goodput --gpu-mtbf 1e-300
expect 2 "no time at all between failures" "gpu-mtbf" plan --gpu-mtbf 0
expect 2 "a repair that takes less than nothing" "repair" plan --repair -1
done_testing
