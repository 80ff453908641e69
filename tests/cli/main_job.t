#!/bin/bash
# The main job, as `make run` runs it: plan, check, eval and emit agree with each other;
# standard input serves every argument.
. tests/lib/tap.sh
L="spawn $LINKWISE"
C=examples/clusters/h100-17.json M=examples/models/llama-2-13b.json
job="--seq 4096 --global-batch 1024"
needs python3 python3
python_up

expect 0 "plan" "^plan     tp [0-9]+, pp [0-9]+, dp [0-9]+" $L plan $C $M $job -o "$T/plan.json" -v
prints "^cluster  h100-17: 17 nodes, 136 GPUs" "^search   [0-9]+ configurations: [0-9]+ refused" \
    "^step     [0-9.]+ s \(90 % of runs: [0-9.]+ to [0-9.]+ s\), [0-9]+ tokens/s, MFU [0-9.]+ %" "^memory   [0-9.]+ GiB peak" \
    "^gap      [0-9.]+ %" "^default  [0-9.]+ s" "^plan written to" \
    "^profile  megatron-core-composed, composed: for megatron-core where it was not fitted, as with h100" \
    "^compute  h100-sxm5-80g: published GEMMs"
sed 's/^{/{"gpu_types":{"h100-sxm5-80g":{"gemm_efficiency":0.6,"fp8_gemm_efficiency":0.5,"measured":{"gemm_efficiency":{"by":"bwprobe"},"fp8_gemm_efficiency":{"by":"layer times"}}}},/' $C >"$T/measured.json"
expect 0 "measured compute" "^compute  h100-sxm5-80g: .*; measured by bwprobe: gemm_efficiency; measured by layer times: fp8_gemm_efficiency$" \
    $L time "$T/measured.json" $M $job --tp 8 --pp 2 --dp 8 --profile nemo -v
prints "^profile  nemo, composed: as named"
expect 0 "check" "step time    ok" $L check "$T/plan.json"
expect 0 "check on the cluster file" "lower bound  ok" $L check "$T/plan.json" $C
expect 0 "eval" "step_s" $L eval "$T/plan.json" $C --json
cp "$T/out" "$T/eval.json"
[ "$(json "$T/eval.json" "'%.9g' % d['step_s']")" = "$(json "$T/plan.json" "'%.9g' % d['estimate']['step_s']")" ]
result $? "eval says what plan says"
[ "$(json "$T/plan.json" "'%.9g' % sum(d['estimate']['breakdown_s'].values())")" = \
    "$(json "$T/plan.json" "'%.9g' % d['estimate']['step_s']")" ]
result $? "the breakdown adds up"
json "$T/plan.json" "d['estimate']['step_s'] <= d['estimate']['default_order_step_s'] and \
    d['estimate']['lower_bound_s'] <= d['estimate']['step_s'] and d['search']['proven'] and \
    d['memory']['peak_bytes'] <= d['memory']['limit_bytes'] and d['unmeasured_links_used'] == []" >"$T/claims"
grep -q True "$T/claims"
result $? "never worse than the default order, the bound below, memory within, no unmeasured link"
json "$T/plan.json" "d['estimate']['step_s'] < .93 * d['estimate']['default_order_step_s']" | grep -q True
result $? "and on these measurements the placement alone saves 7 % or more" "$T/out"

# Where another thing is the matter, few configurations are searched.
few="--tp 8 --pp 4 --micro-batch 1 --schedule 1f1b" whole="--granularity node"
expect 0 "a plan on one type" "^step " $L plan "4x8 h100" $M $job $few -o "$T/other.json"
expect 0 "what served there" "^profile  megatron-core-composed, composed: for megatron-core" $L eval -v "$T/other.json"
expect 0 "what was meant, on another" "^profile  megatron-core, fitted" $L eval -v "$T/other.json" "4x8 a100-sxm4-80g"
A="4x8 a100-sxm4-80g"
$L plan "$A" $M $job $few -o "$T/a100.json" >"$T/out" && $L plan "$A + 1x8 v100" $M $job $few -o "$T/idle.json" >>"$T/out"
same="d['estimate']['step_s'], round(d['estimate']['lower_bound_s'], 1)"
[ "$(json "$T/a100.json" "$same")" = "$(json "$T/idle.json" "$same")" ]
result $? "an idle node of another GPU type changes no estimate" "$T/out"
expect 0 "... nor has check another" "step time +ok" $L check "$T/a100.json" "$A + 1x8 v100"
[ "$($L time "$A + 1x8 v100" $M $job ${few%--s*} --json 2>/dev/null | grep step_s)" = "$($L time "$A" $M $job ${few%--s*} --json 2>/dev/null | grep step_s)" ]
result $? "... nor time"
$L plan --from "$T/a100.json" "5x8 a100-sxm4-80g + 1x8 v100" -o "$T/moved.json" >"$T/out" && $L check "$T/moved.json" >>"$T/out" &&
  [ "$(json "$T/moved.json" "$same, d['replan']['stay_step_s'] == d['estimate']['step_s']")" = "$(json "$T/a100.json" "$same, True")" ]
result $? "... nor have those that it is replanned beside"
$L plan "$A + 1x8 v100" $M $job --tp 1 --pp 5 --micro-batch 1 $whole -o "$T/mix.json" >"$T/out" &&
  $L plan --from "$T/mix.json" "$A + 1x8 v100" --spares 1 --degrees any -o "$T/spare.json" >>"$T/out" && $L check "$T/spare.json" >>"$T/out" &&
  $L plan "$A" $M $job -o "$T/anew.json" >>"$T/out" &&
  [ "$(json "$T/spare.json" "d['estimate']['step_s'], d['replan']['best_step_s']")" = "$(json "$T/anew.json" "d['estimate']['step_s'], d['estimate']['step_s']")" ]
result $? "a restart on fewer types is searched by their profile" "$T/out"
$L bind "$T/idle.json" --only "n[0-4]" -o "$T/bound.json" >"$T/out" && $L check "$T/bound.json" >>"$T/out" &&
  [ "$(json "$T/bound.json" "d['estimate']['step_s']")" = "$(json "$T/a100.json" "d['estimate']['step_s']")" ]
result $? "... or bound beside" "$T/out"
$L plan "$A + 1x8 v100" $M $job $few --what-if "+1 nodes like n0" --json >"$T/more.json" 2>"$T/out" &&
  [ "$(json "$T/more.json" "[abs(w['replanned']['step_s'] / d['estimate']['step_s'] - 1) < 1e-3 for w in d['what_if']]")" = "[True, True]" ]
result $? "one more node of the plan's type takes no other profile either" "$T/out"
expect 0 "nodes that may not be used neither" "^gap      none: proven" $L plan "$A + 1x8 v100" $M $job --exclude n4 -q
$LINKWISE plan - $M $job $few $whole --json <$C | $LINKWISE check - >"$T/out" && grep -Eq "step time +ok" "$T/out"
result $? "a cluster and a plan through standard input" "$T/out"
$L plan $C - $job $few $whole --json <$M >"$T/c.json"
[ "$(json "$T/c.json" "{**d['model'], 'name': 0}")" = "$(json "$T/plan.json" "{**d['model'], 'name': 0}")" ]
result $? "a model through standard input"

# time prices what plan chose, from the plan's ranks
degrees=$(json "$T/plan.json" "'--tp %(tp)d --pp %(pp)d --dp %(dp)d --vpp %(vpp)d' % d['degrees']")
others=$(json "$T/plan.json" "'--tp %d --pp %d --dp %d' % (d['degrees']['tp'] * 2, d['degrees']['pp'], d['degrees']['dp'] // 2)")
rest=$(json "$T/plan.json" "'--micro-batch %d --zero %d --recompute %s --schedule %s --layers-per-stage %s' % (d['micro_batch'], d['zero'], d['recompute'], d['schedule'], ','.join(map(str, d['layers_per_stage'])))")
$L time $C $M $job $degrees $rest --placement "$T/plan.json" --json >"$T/time.json"
[ "$(json "$T/time.json" "'%.9g' % d['step_s']")" = "$(json "$T/eval.json" "'%.9g' % d['step_s']")" ]
result $? "time says what plan says"
expect 0 "... and warns where the degrees given are not the plan's" "plan.json is a plan of tp .* priced with the degrees given here" \
    $L time $C $M $job $others --placement "$T/plan.json"
$L time $C $M $job $degrees $rest --json >"$T/time.json"
[ "$(json "$T/time.json" "'%.9g' % d['step_s']")" = "$(json "$T/plan.json" "'%.9g' % d['estimate']['default_order_step_s']")" ]
result $? "and its default order is the plan's"
$L mem $M --gpu h100-sxm5-80g $job $degrees $rest --json >"$T/mem.json"
[ "$(json "$T/mem.json" "'%.9g' % d['peak_bytes']")" = "$(json "$T/plan.json" "'%.9g' % d['memory']['peak_bytes']")" ]
result $? "mem says what plan says"

# the user's choices are kept
$L plan $C $M $job $few $whole --nodes 16 --exclude cnode2-001 --only 'cnode2-[001-017]' --json >"$T/fixed.json"
json "$T/fixed.json" "d['degrees']['tp'] == 8 and d['degrees']['pp'] == 4 and \
    len(set(r['node'] for r in d['ranks'])) <= 16 and 'cnode2-001' not in [r['node'] for r in d['ranks']]" | grep -q True
result $? "fixed degrees, --nodes, --only and --exclude hold"
$L plan "2x8 h100" $M $job --profile llm-foundry --top 50 --json >"$T/offered.json"
json "$T/offered.json" "len(d['search']['top']) > 5 and all(t['pp'] == 1 or t['zero'] == 0 for t in d['search']['top'])" | grep -q True
result $? "only what the profile's framework offers is searched" "$T/offered.json"
tight="$LINKWISE plan $C llama-2-70b $job --tp 4 --pp 8 --zero 1 --recompute none --granularity node --json"
$tight >"$T/safe.json" && $tight --tie 0 >"$T/bold.json"
json "$T/bold.json" "d['memory']['oom_probability'] > .01 and d['search']['given_up'] == 0" | grep -q True &&
    json "$T/safe.json" "d['memory']['oom_probability'] <= .01 and 0 < d['search']['given_up'] <= .01" | grep -q True
result $? "a plan that may run out of memory gives way to one that is nearly as fast" "$T/safe.json"
sed 's/"name": "cnode2-005",/"name": "cnode2-005", "state": "drained",/' $C >"$T/drained.json"
$LINKWISE plan "$T/drained.json" $M $job $few $whole --json | python3 -c "
import json,sys; d=json.load(sys.stdin); sys.exit('cnode2-005' in [r['node'] for r in d['ranks']])"
result $? "a drained node is not used"
for what in eval "emit -d $T/drain"; do
    $LINKWISE $what "$T/plan.json" "$T/drained.json" 2>&1 >/dev/null | grep -q "warning: rank [0-9]* is on node cnode2-005, which is drained"
    result $? "$what warns of a drained node"
done
$L plan $C $M $job $few $whole --nodes 12 --pin cnode2-004,cnode2-013 --json >"$T/pinned.json"
json "$T/pinned.json" "len(n := set(r['node'] for r in d['ranks'])) <= 12 and {'cnode2-004', 'cnode2-013'} <= n" | grep -q True
result $? "pinned nodes are used, also badly linked ones" "$T/pinned.json"
sed 's/"name": "cnode2-00\([1-8]\)",/"name": "cnode2-00\1", "rack": "r1",/' $C >"$T/racks.json"
$L plan "$T/racks.json" $M $job $few $whole --only rack:r1 --json >"$T/rack.json"
json "$T/rack.json" "max(r['node'] for r in d['ranks']) <= 'cnode2-008'" | grep -q True
result $? "a rack by its name" "$T/rack.json"
for limit in "--nodes 2" "--spares 2"; do
    $L plan "4x2 t4 intra:1 inter:40" gpt2-xl --seq 1024 --global-batch 8 $limit --tp 1 --pp 4 --dp 1 --json 2>/dev/null >"$T/small.json"
    json "$T/small.json" "len(set(r['node'] for r in d['ranks'])) <= 2" | grep -q True
    result $? "$limit holds on a small cluster"
done
$L plan $C $M $job --time-limit 0.001 --json >"$T/early.json"
json "$T/early.json" "not d['search']['proven'] and 0 < d['estimate']['lower_bound_s'] <= d['estimate']['step_s']" | grep -q True
result $? "a search that is stopped at once has a plan and a bound"
# Small pools are gone through in the order of the bounds, however far these are below the plan.
$L cluster synth failing --nodes 4 --gpus 2 --seed 3 -o "$T/failing.json" >/dev/null
$L plan "$T/failing.json" mixtral-8x7b --seq 2048 --global-batch 32 --json >"$T/small.json"
json "$T/small.json" "d['search']['proven'] and d['estimate']['lower_bound_s'] > .99 * d['estimate']['step_s']" | grep -q True
result $? "eight GPUs among failing links: a proof"
# Every other node of 12 is joined by measured links: half of them do nearly as well alone.
python3 - "$T" <<'P'
import json, sys
def write(name, n, joined):
    rate = [[[20, 20, 20, 4][(i * 7 + j * 3) % 4] if i != j and (i - j) % joined == 0 else None for j in range(n)] for i in range(n)]
    json.dump({"version": 1, "nodes": [{"name": f"n{i}", "gpus": 8, "gpu_type": "h100-sxm5-80g"} for i in range(n)],
               "links": {"intra": {"bandwidth_gb_per_s": 300, "latency_us": 3}, "inter": {"latency_us": 10, "bandwidth_gb_per_s": rate}}},
              open(f"{sys.argv[1]}/{name}.json", "w"))
write("both", 12, 2)
write("half", 6, 1)
P
for c in both half; do
    $L plan "$T/$c.json" mixtral-8x7b --seq 4096 --global-batch 96 --tp 1 --ep 8 --micro-batch 1 --recompute none --schedule 1f1b --granularity node -o "$T/$c-plan.json" >/dev/null 2>&1
    json "$T/$c-plan.json" "d['estimate']['step_s']"
done >"$T/steps"
awk '{ s[NR] = $1 } END { exit !(NR == 2 && s[1] > 0 && s[1] < 1.05 * s[2]) }' "$T/steps"
result $? "two islands of nodes" "$T/steps"
L1="1x1 h100-sxm5-80g inter:20 + 1x1 a100-sxm4-80g inter:20 + 1x1 l4 inter:20 + 1x1 t4 inter:20 + 1x1 l40s inter:20 + 1x1 a10g inter:20"
expect 0 "six GPU types" "^step  " $L plan "$L1" gpt2-xl --seq 512 --global-batch 8 --micro-batch 8
# The bound is a formula, the step a billion additions.
$L plan "1x2 h100-sxm5-80g intra:300" gpt2-xl --seq 128 --global-batch 1073741824 --micro-batch 1 --pp 2 --dp 1 --tp 1 -o "$T/big.json" >/dev/null
json "$T/big.json" "d['schedule'] == '1f1b' and d['estimate']['mfu'] < 1" | grep -q True
result $? "a very large batch takes years, not milliseconds" "$T/big.json"
expect 1 "a very large batch in chunks" "micro-batches x 2 chunks: the interleaved schedule can be priced up to" \
    $L plan "1x2 h100-sxm5-80g intra:300" gpt2-xl --seq 128 --global-batch 1073741824 --micro-batch 1 --pp 2 --schedule interleaved --vpp 2
expect 0 "a very large batch checks" "lower bound +ok" timeout 10 $LINKWISE check "$T/big.json"

# emit; tests/launch/emit.t has more
expect 0 "emit" "ranks written to" $L emit "$T/plan.json" --to all -d "$T/launch"
json "$T/plan.json" "'\n'.join('%(rank)d %(node)s %(gpu)d' % r for r in d['ranks'])" | cmp -s - "$T/launch/map.txt"
result $? "map.txt is the plan"
expect 0 "a V of 27 layers" "^plan .* pp 4, .*dualpipev, vpp 2" $L plan "2x8 h100" deepseek-v2-lite --seq 4096 \
    --global-batch 256 --pp 4 --schedule dualpipev -o "$T/v.json"
expect 0 "and its check" "step time    ok" $L check "$T/v.json"
# DeepSeek-V3 (arXiv 2412.19437): 2,048 H800, pp 16, ep 64, DualPipe, 15,360 sequences of 4,096 tokens;
# 180,000 GPU hours for 1e12 tokens are 19.9 s a step.  Its dispatch is what Megatron Bridge has from it.
$L time "256x8 h800" deepseek-v3 --seq 4096 --global-batch 15360 --pp 16 --ep 64 --precision fp8 \
    --schedule dualpipev --profile megatron-bridge --json >"$T/v3.json" 2>"$T/err" &&
    [ "$(json "$T/v3.json" "abs(d['step_s'] / (180e3 * 3600 / 2048 * 15360 * 4096 / 1e12) - 1) < .1")" = True ]
result $? "DeepSeek-V3's published layout" "$T/v3.json"
done_testing
