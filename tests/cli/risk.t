#!/bin/bash
# Where nobody names a limit, the first answer hardly runs out of memory, and what more risk gains
# is said beside it; who names one gets what he asks.
. tests/lib/tap.sh
whole="$LINKWISE plan examples/clusters/h100-17.json llama-2-70b --seq 4096 --global-batch 1024"
# Whole spaces, and single GPUs, take longer and show no more.
plan="$whole --tp 2 --micro-batch 1 --granularity node"
risky="--pp 16 --dp 4 --vpp 5 --zero 1 --recompute none --sequence-parallel on"
risky="$risky --schedule interleaved"
step() { awk '/^step  .* s [(]/ { print $2 }' "$T/out"; }
chance() { sed -n 's/^memory .*chance of running out \(< \)*\([0-9.]*\) %$/\2/p' "$T/out"; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }'; }

expect 0 "the usual plan" "^risky " $plan -o "$T/plan.json"
at_most "$(chance)" 1
result $? "... has a chance of at most 1 %" "$T/out"
said=$(awk '/^risky/ { print $2 }' "$T/out") safe=$(step)
! at_most "$safe" "$said"
result $? "... and the riskier one is faster" "$T/out"
takes=$(sed -n 's/^risky.*: --oom-risk \([0-9.]*\) takes it$/\1/p' "$T/out")
bound=$(sed -n 's/^gap .* below \([0-9.]*\) s.*/\1/p' "$T/out")
at_most "$bound" "$safe"
result $? "... with a bound below it" "$T/out"
expect 0 "it checks" "memory said  ok" $LINKWISE check "$T/plan.json"
tr -d ' \n' <"$T/plan.json" >"$T/flat"
grep -q '"oom_risk":0.01[,}]' "$T/flat" && grep -q '"riskier":{.*"oom_probability":0.0[1-9]' "$T/flat"
result $? "the file says the limit, and what is riskier" "$T/flat"

# Another search: what it finds may be a hair longer than what the first one knew.
expect 0 "the risk that is named is taken" "^step " $plan --oom-risk "$takes" -o "$T/risky.json"
at_most "$(step)" "$(awk -v s="$said" 'BEGIN { print 1.001 * s }')" && ! grep -q '^risky' "$T/out"
result $? "... and gives the faster plan" "$T/out"
for given in "--memory-limit 95" "--tie 0"; do
    expect 0 "$given asks for the best" "limit 75.2 GiB" $plan $given
    at_most "$(step)" "$(awk -v s="$said" 'BEGIN { print 1.001 * s }')" && ! grep -q '^risky' "$T/out"
    result $? "... and gets it" "$T/out"
done
expect 0 "what may run out is better than nothing" "no plan that was found has a smaller chance" $plan $risky
! at_most "$(chance)" 1
result $? "... where all else is fixed" "$T/out"
expect 0 "a search that ends early says so" "the search stopped before it looked for a smaller chance" $whole --time-limit 0.001
expect 0 "a plan kept is not called the safest" "^memory " $LINKWISE plan --from "$T/risky.json"
! grep -qE "^risky|no plan that was found" "$T/out"
result $? "... since no other was looked for" "$T/out"
expect 0 "GPU hours" "^risky .* less GPU hours" $plan --objective gpu-hours
expect 0 "a plan that hardly runs out" "^memory " \
    $LINKWISE plan "1x8 a100-sxm4-80g intra:240" llama-2-13b --seq 4096 --global-batch 128
! grep -q "^risky" "$T/out"
result $? "... and has nothing beside it" "$T/out"
expect 0 "Megatron's order is held to the limit of the plan" "^default  .* s in Megatron's rank order" \
    $LINKWISE plan "4x4 rtx-4090 intra:24 inter:.1" qwen3-8b --seq 4096 --global-batch 512 \
    --granularity node --tp 2 --dp 2 --pp 4 --micro-batch 1
expect 0 "the tightest stage is not always the largest" "does not fit; chance of running out [3-7]" \
    $LINKWISE mem gemma-2-9b --gpu a100-sxm4-40g --pp 2 --tp 2 --dp 4 --seq 4096 --recompute full \
    --micro-batch 2 --global-batch 64 --layers-per-stage 29,13 --profile nanotron --oom-risk 0.01
done_testing
