#!/bin/bash
# linkwise compare: statistics side by side, what changed between two snapshots, plans.
. tests/lib/tap.sh
L="spawn $LINKWISE"
has() { # NAME FILE PATTERN
    matches "$3" "$2"
    result $? "$1" "$2"
}

# ---- the example; its figures are those of the measurements ----
LINKWISE=$LINKWISE examples/compare-clusters --tp 8 --pp 4 --schedule 1f1b >"$T/example" 2>"$T/err"
result $? "examples/compare-clusters runs" "$T/err"
has "how many of them a plan uses" "$T/example" '^best plan on +GPUs used '
has "sizes" "$T/example" '^GPUs [(]not drained[)] +136 +80$'
has "failed links" "$T/example" '^  failed or unmeasured +10 +0$'
has "medians" "$T/example" '^  median +13.54 +39.69$'
has "slow links" "$T/example" '^links under 80 % of their median +16 +0$'
has "the worst by name" "$T/example" 'cnode2-004 -> cnode2-009 +4.73 +35 %'
has "asymmetry of the A100 nodes" "$T/example" '^asymmetry % \(mean\) +4.0 +4.0$'
has "snapshots are told" "$T/example" 'one cluster at two times: of 1136 links measured in both, 5 got slower'
has "the change is named" "$T/example" 'agpu1502 +agpu1505 +20.01 +17.73 +-11.4'
has "a new plan is weighed" "$T/example" 'the old plan takes .* it does not pay'
[ "$(grep -c '^h100-10 .* tp ' "$T/example")" = 2 ]
result $? "a plan for each model"
! grep -q 'one cluster at two times' <(sed '/16 A100 nodes/,$d' "$T/example")
result $? "different clusters have no diff"

$L compare "1x1 t4" "1x1 t4" >"$T/none" 2>"$T/err"
has "no link in both" "$T/none" '^one cluster at two times: no link is measured in both$'
# ---- intervals decide where there are some ----
snapshot() { # FILE MEDIAN LOW HIGH: link a -> b
    cat >"$1" <<X
{"version":1,"nodes":[{"name":"a","gpus":1,"gpu_type":"t4"},{"name":"b","gpus":1,"gpu_type":"t4"}],
 "links":{"inter":{"bandwidth_gb_per_s":[[null,$2],[7,null]],"latency_us":9}},
 "measured":{"endpoints":[{"node":"a","gpu":0},{"node":"b","gpu":0}],"pairs":[
  {"src":0,"dst":1,"isolated_gb_per_s":{"samples":9,"median":$2,"mad":0.1,"low":$3,"high":$4}},
  {"src":1,"dst":0,"isolated_gb_per_s":{"samples":9,"median":7,"mad":0.1,"low":6.9,"high":7.1}}]}}
X
}
snapshot "$T/a.json" 10 9.9 10.1
snapshot "$T/near.json" 10.5 10.05 10.8
snapshot "$T/far.json" 10.5 10.2 10.8
expect 0 "intervals that meet: no change" "0 got slower and 0 faster.*$" $L compare "$T/a.json" "$T/near.json"
has "judged by them" "$T/out" "by more than their intervals"
expect 0 "intervals apart: a change, however small" "0 got slower and 1 faster" $L compare "$T/a.json" "$T/far.json"
has "named" "$T/out" 'a +b +10 +10.5 +\+5.0'
sed '/"measured"/,$d; s/"latency_us":9}},/"latency_us":9}}}/' "$T/far.json" >"$T/bare.json"
expect 0 "without intervals a share decides" "0 got slower and 0 faster" $L compare "$T/a.json" "$T/bare.json"
expect 0 "which can be chosen" "0 got slower and 1 faster" $L compare "$T/a.json" "$T/bare.json" --change 4

# ---- one link collapses: the old plan suffers, a new one pays ----
$L cluster synth calm --nodes 8 --seed 4 -o "$T/before.json" >/dev/null
$L plan "$T/before.json" llama-2-70b --seq 4096 --global-batch 256 --tp 8 --pp 8 --schedule 1f1b --json >"$T/plan.json" 2>/dev/null
# The nodes of stages 3 and 4 of that plan, joined by a pipeline's send.
node_of() { tr -d '\n' <"$T/plan.json" | grep -Eo '\{[^{}]*"rank": *'"$1"',[^{}]*\}' | grep -Eo '"node": *"[^"]*"' | cut -d'"' -f4; }
x=$(node_of 24) y=$(node_of 32)
[ -n "$x" ] && [ -n "$y" ] && [ "$x" != "$y" ]
result $? "a link that the plan uses: $x -> $y"
sed 's/"links": {/"links": {"exceptions": [{"from": "'$x'", "to": "'$y'", "bandwidth_gb_per_s": 0.2}, {"from": "'$y'", "to": "'$x'", "bandwidth_gb_per_s": 0.2}],/' \
    "$T/before.json" >"$T/after.json"
expect 0 "a collapsed link" "2 got slower and 0 faster" $L compare "$T/before.json" "$T/after.json" llama-2-70b --global-batch 256 --tp 8 --pp 8 --schedule 1f1b
has "the old plan is worse on it: a new one pays" "$T/out" "a new plan saves [1-9].*: it pays \([0-9]+ of 64 ranks move\)"
$L cluster drain "$T/before.json" "$x" -o "$T/drained.json" >/dev/null
expect 0 "a node is gone" "the old plan cannot run" $L compare "$T/before.json" "$T/drained.json" llama-2-70b --tp 8

# ---- other forms ----
expect 0 "clusters on one line; a model that does not fit" "gpt2-xl" $L compare "2x2 t4 intra:10 inter:3" "4x2 l4 intra:20 inter:5" gpt2-xl --seq 1024 --global-batch 64 --schedule 1f1b
expect 0 "nothing fits on one of them" "t4 .*-  .*" $L compare "1x2 t4 intra:10" "4x8 h100-sxm5-80g intra:370 inter:48" llama-2-7b
echo '{"version":1,"nodes":[{"name":"g","gpus":2,"gpu_type":null}],"links":{"intra":{"bandwidth_gb_per_s":9,"latency_us":1}}}' >"$T/open.json"
expect 0 "links alone need no types" "inside nodes +2 +-" $L compare "$T/open.json" "$T/a.json"
expect 0 "json" '"version": 1' $L compare "$T/before.json" "$T/after.json" llama-2-70b --global-batch 256 --tp 8 --pp 8 --schedule 1f1b --json
has "json: the old plan's step" "$T/out" '"moved_ranks": [1-9]'
has "json: changes" "$T/out" '"before_gb_per_s": [0-9.]+'
expect 1 "no such cluster" "No such file" $L compare "$T/none.json" "$T/a.json"
expect 1 "no such model" "no preset" $L compare "$T/before.json" "$T/before.json" nothing
expect 2 "one cluster" "two CLUSTERs are required" $L compare "$T/a.json"
expect 2 "standard input twice" "only one input" $L compare - -
done_testing
