#!/bin/bash
# validate and calibrate: rows skipped and counted, estimates row by row, a profile that is
# fitted, written and taken up again; the options that say how much memory may be used.
. tests/lib/tap.sh
L="spawn $LINKWISE"
header="source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,gpu_mem_gb,gpus,gpus_per_node,inter_node_gbps,tp,pp,vpp,dp,cp,ep,sp,zero,micro_batch,global_batch,precision,attention,recompute,iter_time_s,tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_mem_gb,oom,notes"
row() { # MODEL LAYERS TP MICRO PEAK OOM
    echo "lab,$1,,$2,4096,32,,11008,32000,4096,A100-80GB,,8,8,,$3,1,,,,,,1,$4,64,bf16,flash,none,,,,,$5,$6,\"a, quoted note\""
}
{
    echo "$header"
    row llama-a 8 1 1 24.0 0
    row llama-a 8 1 2 30.5 0
    row llama-a 8 2 1 16.0 0
    row llama-a 8 2 4 31.0 0
    row llama-b 32 1 4 "" 1
    row llama-b 32 4 1 43.0 0
    row llama-b 32 8 1 28.5 0
    row llama-b 32 8 4 "" 1
    row llama-b "" 8 4 "" 1
    row llama-b 32 3 4 "" 1
} >"$T/runs.csv"

expect 0 "validate" "10 rows, 8 used, 2 skipped" $L validate "$T/runs.csv"
prints "1 +10 +layers unknown" "1 +11 +tp x pp x cp does not divide gpus" \
    "^lab +megatron-core +6 +[0-9.]+" "out of memory, 2 of 8 labelled runs" \
    "^linkwise, probability .5 +[01]\.[0-9]+" "^Fujii's estimate over 80 % +[01]\.[0-9]+"
expect 0 "validate -v" "^profile  megatron-core, fitted: .*; network: .*" $L validate "$T/runs.csv" -v
prints "^compute  a100-sxm4-80g \([0-9]+\): products fitted on A100"
expect 0 "validate from standard input" "standard input: 10 rows" bash -c "$LINKWISE validate - <'$T/runs.csv'"
expect 0 "validate --per-row" "10 rows" $L validate "$T/runs.csv" --per-row "$T/rows.csv"
[ "$(head -1 "$T/rows.csv")" = "$header,est_iter_time_s,est_iter_time_low_s,est_iter_time_high_s,est_peak_mem_gb,est_peak_mem_low_gb,est_peak_mem_high_gb,est_oom_probability,est_fits,est_read_as" ] &&
    [ "$(cut -d, -f1-34 "$T/rows.csv")" = "$(cut -d, -f1-34 "$T/runs.csv")" ] &&
    grep -q '"a, quoted note"' "$T/rows.csv"
result $? "the same rows in the same order, nine columns more" "$T/rows.csv"
sed -n '2p;6p;10p' "$T/rows.csv" | sed 's/.*note",//' >"$T/est"
awk -F, 'NR < 3 && !($2 < $1 && $1 < $3 && $5 < $4 && $4 < $6 && $7 < 1 && $8 == (NR == 1)) { exit 1 }' "$T/est" &&
    [ "$(sed -n 3p "$T/est")" = ',,,,,,,,"skipped: layers unknown: no preset has the model'"'s name, nor is params_b stated"'"' ] &&
    grep -q ',1,"profile megatron-core for an unknown framework, bf16, attention flash, tp 1, pp 1, dp 8, ' "$T/est"
result $? "one that fits, one that does not, one that was skipped" "$T/est"
$L validate "$T/rows.csv" --per-row - >"$T/again.csv" 2>"$T/said"
cmp -s "$T/rows.csv" "$T/again.csv" && ! grep -q est_ "$T/said"
result $? "a file with estimates is a runs file; they are replaced"

expect 0 "calibrate" "profile written to .*mine.json" $L calibrate "$T/runs.csv" --profile llm-foundry -o "$T/mine.json"
prints "the fit starts from profile llm-foundry" "^base_gb +0.8 +[0-9.]+ +fitted" \
    "^score_bytes +7 +7 +not determined by these runs" "^6 peaks and 8 out-of-memory labels" \
    "^before +[0-9.]+" "^fitted, on the same runs +[0-9.]+" "^fitted, each model held out +[0-9.]+"
mape() { $LINKWISE validate "$T/runs.csv" --profile "$1" --json | sed -n '/"peak"/,/}/s/.*"mape_pct": \([0-9.]*\).*/\1/p'; }
awk -v a="$(mape "$T/mine.json")" -v b="$(mape llm-foundry)" 'BEGIN { exit !(a > 0 && a < b) }'
result $? "the written profile meets its runs better than the one it started from"
expect 0 "the fitted profile serves mem" "fits" $L mem llama-2-7b --gpu a100-sxm4-80g --seq 4096 --tp 8 --profile "$T/mine.json"
$L calibrate "$T/runs.csv" --profile llm-foundry -o - >"$T/stdout.json"
cmp -s <(grep -v '"name"' "$T/stdout.json") <(grep -v '"name"' "$T/mine.json")
result $? "the same profile on standard output"
{ echo "$header"; row llama-a 8 1 1 24.0 0; } >"$T/one.csv"
expect 0 "one run" "all runs are of one model and shape: none is held out" $L calibrate "$T/one.csv"
prints "^base_gb +([0-9.]+) +\\1 +stays" "^no run can be left out to see whether others meet it: constants stay" \
    "^next run: none is named, since step times choose it and no run has one"
{ echo "$header"; row llama-a 8 1 1 "" 1; row llama-a 8 1 1 "" 0; row llama-a 8 1 2 "" 1; } >"$T/split.csv"
expect 0 "one configuration that ran and ran out" "^0 peaks and 3 out-of-memory labels" $L calibrate "$T/split.csv"
grep "contradict" "$T/err" | grep -q "warning: rows 3 and 2 contradict each other: the first ran, the second ran out of memory, and 2 rows of this configuration"
result $? "... is named" "$T/err"
printf '%s\n' model,gpu,gpus,framework,micro_batch,global_batch,seq,tp,recompute,zero,iter_time_s \
    llama-3-8b,H100,8,megatron-core,1,8,4096,4,full,0,1.4 llama-3-8b,H100,8,megatron-core,1,8,4096,4,full,1,1.4 >"$T/shape.csv"
expect 0 "two configurations of one shape" "all runs are of one model and shape: none is held out" $L calibrate "$T/shape.csv"
prints "^[0-9]+ % of what the runs tell is taken, by how well what the others tell meets runs left out"
{ echo "$header"; row llama-a 8 1 1 "" ""; } >"$T/unmeasured.csv"
expect 1 "nothing measured" "unmeasured.csv: no run has a measured peak, an out-of-memory label or a step time" $L calibrate "$T/unmeasured.csv"
expect 0 "validate without anything measured" "no run has a measured peak, an out-of-memory label or a step time" $L validate "$T/unmeasured.csv"

# ---- step times ----
# Runs that take a tenth longer than megatron-core says; of the same machines, so that only
# the factor is new.  Without TIMES: the peaks of above.
timed() { # CSV: est_iter_time_s x 1.1 becomes iter_time_s
    $LINKWISE validate "$1" --profile megatron-core --per-row - | awk -F, -v OFS=, -v times="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR > 1 { e = $(at["est_iter_time_s"]); if (e > 0) $(at["iter_time_s"]) = e * 1.1 }
        NR > 1 && times == "alone" { $(at["peak_mem_gb"]) = $(at["oom"]) = "" }
        { print }'
}
sed 's/a, quoted note/note/' "$T/runs.csv" >"$T/plain.csv"
timed "$T/plain.csv" alone >"$T/times.csv"
timed "$T/plain.csv" beside >"$T/both.csv"
expect 0 "validate step times" "^lab +megatron-core +8 +9\.1 +9\.1 +-9\.1 +9\.1 +1\.000 +1\.000 +0\.0 +2 of 2" $L validate "$T/times.csv" --profile megatron-core
! grep -q "memory peaks\|out of memory" "$T/out"
result $? "no tables of what is not there" "$T/out"
expect 0 "validate both" "memory peaks" $L validate "$T/both.csv" --profile megatron-core
grep -q "^step times" "$T/out" && grep -q "^out of memory, 2 of 8" "$T/out"
result $? "... with every table" "$T/out"
expect 0 "calibrate step times" "^8 step times:" $L calibrate "$T/times.csv" --profile megatron-core -o "$T/fast.json"
prints "^gemm +1 +0\.[0-9]+ +fitted" "^of [^ ]+ in bf16 all times are 1\.0[0-9]+ times what the constants say" "^score_traffic +74 +74 +not determined by these runs" \
    "^before +9\.1" "^fitted, on the same runs +[01]\.[0-9]" "^fitted, each model held out +[0-9.]+" \
    "^by the constants step times near these are known within [0-9.]+ %, with that run within [0-9.]+ %"
! grep -q "memory constants" "$T/out" && grep -q '"memory": null' "$T/fast.json" && grep -q '"not_estimated": \[\]' "$T/fast.json"
result $? "the record of a fit of times alone" "$T/fast.json"
{ head -1 "$T/times.csv"; sed -n 2p "$T/times.csv"; } >"$T/first.csv"
expect 0 "what to measure after one run" "^next run: row 2 with .*: the spread of all times together, 12 % before any run, goes from [0-9]+ to [0-9]+ %" $L calibrate "$T/first.csv" --profile megatron-core
expect 0 "the run to measure next" "^next run: row [0-9]+ with [a-z_]+ [0-9]+ instead of [0-9]+ .*: the spread of " $L calibrate examples/runs/bloom.csv
mape_of() { $LINKWISE validate "$1" --profile "$2" --json | sed -n '/"step"/,/}/s/.*"mape_pct": \([0-9.]*\).*/\1/p'; }
awk -v a="$(mape_of "$T/times.csv" "$T/fast.json")" 'BEGIN { exit !(a > 0 && a < 2) }'
result $? "the written profile meets its runs"
expect 0 "the fitted profile serves time" "[0-9]" $L time "1x8 a100-sxm4-80g intra:230" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --profile "$T/fast.json"
# What a model takes over the constants goes into those of its plans, once.
sed '2a "models": [{"model": "Llama2_7B", "precision": "bf16", "time_factor": 1.2}],' \
    workload/profiles/megatron-core-composed.json >"$T/paced.json"
paced_step() { # PROFILE: of its plan, priced anew
    $LINKWISE plan "1x8 a100-sxm4-80g intra:230" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --dp 1 \
        --pp 1 --micro-batch 1 --recompute none --profile "$1" -q -o "$T/paced.plan" >/dev/null &&
        $LINKWISE eval "$T/paced.plan" --json | sed -n "s/^  \"step_s\": \([0-9.]*\).*/\1/p"
}
awk -v a="$(paced_step megatron-core-composed)" -v b="$(paced_step "$T/paced.json")" 'BEGIN { exit !(b > 1.15 * a && b < 1.22 * a) }'
result $? "a model's own pace is in its plan" "$T/paced.plan"
# A plan whose profile still has it, by hand, is priced by it, too, and once.
sed 's/^  "profile": {/&"models": [{"model": "llama-2-7b", "precision": "bf16", "time_factor": 1.2}],/' "$T/paced.plan" >"$T/by-hand.plan"
step_of() { $LINKWISE eval "$1" --json | sed -n "s/^  \"step_s\": \([0-9.]*\).*/\1/p"; }
grep -q '"models"' "$T/by-hand.plan" && awk -v a="$(step_of "$T/paced.plan")" -v b="$(step_of "$T/by-hand.plan")" 'BEGIN { exit !(b > 1.15 * a && b < 1.22 * a) }'
result $? "a pace in a plan's own profile counts" "$T/by-hand.plan"
expect 0 "calibrate memory alone" "memory constants" $L calibrate "$T/runs.csv" --profile megatron-core
! grep -q "time constants" "$T/out"
result $? "... and nothing of times" "$T/out"
expect 0 "calibrate both" "^6 peaks and 8 out-of-memory labels" $L calibrate "$T/both.csv" --profile megatron-core
grep -q "^8 step times" "$T/out" && grep -q "^memory constants" "$T/out" && grep -q "^time constants" "$T/out"
result $? "... fits each to its own figures" "$T/out"

# Times that cannot be estimated: counted, empty in the file, and no NaN anywhere.
{
    cat "$T/times.csv"
    sed -n 2p "$T/times.csv" | sed 's/,bf16,/,fp8,/'
    sed -n 3p "$T/times.csv" | sed 's/,bf16,/,fp8,/'
    sed -n 2p "$T/times.csv" | sed 's/A100-80GB,,8,8/A100-80GB:1+t4:2,,16,4/'
} >"$T/some.csv"
for c in validate calibrate; do
    expect 0 "$c with times that cannot be estimated" "^ +2 +12 +node n0: GPU type a100-sxm4-80g cannot run fp8" $L $c "$T/some.csv" --profile megatron-core
    grep -Eq "^ +1 +14 +the nodes of its GPU mix do not make up gpus" "$T/out" && ! grep -Eiw "nan|inf" "$T/out"
    result $? "... with every reason, and no NaN" "$T/out"
done
$LINKWISE validate "$T/some.csv" --profile megatron-core --per-row - | tail -3 | grep -c ',,,,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.e-]*,[01],"profile megatron-core, .*"$' >"$T/empty"
[ "$(cat "$T/empty")" = 2 ]
result $? "no time, but a peak" "$T/empty"
{ echo "$header"; sed -n '12p;14p' "$T/some.csv"; } | cut -d, -f1-35 >"$T/none.csv"
expect 1 "no time can be estimated" "no run has a measured peak, an out-of-memory label or a step time that can be estimated" $L calibrate "$T/none.csv"
expect 0 "... which validate tells" "cannot run fp8" $L validate "$T/none.csv" --profile megatron-core
sed '2s/,\([0-9.]*\),,,,,,note,/,1e-300,,,,,,note,/;3s/,\([0-9.]*\),,,,,,note,/,soon,,,,,,note,/' "$T/times.csv" >"$T/odd.csv"
expect 0 "a time of 1e-300 s and one that is text" "^6 step times:" $L calibrate "$T/odd.csv" --profile megatron-core
! grep -Eiw "nan|inf" "$T/out" && [ "$(wc -L <"$T/out")" -lt 200 ]
result $? "... neither NaN nor a number of 300 digits" "$T/out"

# One configuration that was measured at 2.0, 1.2 and 20 s: named, and the profile can be read.
for s in 2.0 1.2 20; do sed -n 2p "$T/times.csv" | sed "s/,[0-9.]*,,,,,,note,/,$s,,,,,,note,/"; done >"$T/odd.rows"
{ head -1 "$T/times.csv"; cat "$T/odd.rows"; } >"$T/odd.csv"
expect 0 "rows that contradict each other" "^residual +0.12 +[01]\.?[0-9]* +fitted" $L calibrate "$T/odd.csv" --profile megatron-core -o "$T/odd.json"
grep -q "warning: rows 3 and 4 contradict each other: step times of 1.2 and 20 s, and 3 rows of this configuration" "$T/err"
result $? "... are named with their figures" "$T/err"
expect 0 "... and leave a profile that can be read" "step" $L time "1x8 a100-sxm4-80g intra:230" llama-2-7b --seq 4096 --global-batch 64 --tp 8 --profile "$T/odd.json"
# What cannot be is said with its row, and no fit takes it.
sed "2s/,\([0-9.]*\),,,,,,note,/,0.001,,,,,,note,/" "$T/times.csv" >"$T/doubt.csv"
for c in validate calibrate; do
    expect 0 "$c with a time that cannot be" "^ +1 +2 +iter_time_s is shorter than the GPUs' peak allows" $L $c "$T/doubt.csv" --profile megatron-core
    grep -q "warning: row 2: iter_time_s is shorter than the GPUs' peak allows; no fit takes it" "$T/err"
    result $? "... and a warning" "$T/err"
done
expect 0 "... which the fit leaves out" "^7 step times:" $L calibrate "$T/doubt.csv" --profile megatron-core

printf "a,b\n1,2\n" >"$T/other.csv"
for c in validate calibrate; do
    expect 2 "$c without a file" "RUNS.csv is required" $L $c
    expect 2 "$c with two files" 'found "b.csv" too' $L $c a.csv b.csv
    expect 2 "$c with an unknown option" "unrecognized option" $L $c a.csv --frobnicate
    expect 1 "$c: no such file" "none.csv: No such file" $L $c none.csv
    expect 1 "$c: no such profile" "shipped profiles: aleph-alpha" $L $c "$T/runs.csv" --profile none
    expect 1 "$c: not a runs file" "the header lacks layers, hidden, heads, ffn, vocab, seq, gpu, gpus: " $L $c "$T/other.csv"
    expect 0 "$c --help" "Usage: linkwise $c" $L $c --help
done
expect 2 "two answers on standard output" "both want standard output" $L validate "$T/runs.csv" --json --per-row -
expect 2 "two documents on standard output" "both want standard output" $L calibrate "$T/runs.csv" --json -o -
expect 1 "a folder that is not there" "No such file" $L calibrate "$T/runs.csv" -o "$T/no/such.json"
expect 1 "the same for rows" "No such file" $L validate "$T/runs.csv" --per-row "$T/no/such.csv"
sed 's/,16.0,0,/,16.0,/' "$T/runs.csv" >"$T/short.csv"
expect 0 "a row with a cell missing" "^ +1 +4 +more or fewer cells than the header" $L validate "$T/short.csv"
cut -d, -f1-33 "$T/runs.csv" >"$T/narrow.csv"
expect 0 "columns missing that no row needs" "10 rows, 8 used" $L validate "$T/narrow.csv"
grep -q "warning: the header lacks oom, notes: taken as empty" "$T/err"
result $? "... are named" "$T/err"

# ---- how much of a GPU ----
limit() { $LINKWISE mem llama-2-7b --gpu h100-sxm5-80g --seq 4096 --tp 8 "$@" --json | sed -n 's/.*"limit_bytes": \([0-9.e+]*\),.*/\1/p'; }
awk -v a="$(limit)" -v b="$(limit --memory-limit 80)" -v c="$(limit --memory-model fujii)" \
    -v d="$(limit --memory-model fujii --memory-limit 90)" -v e="$(limit --oom-risk 0.001)" -v f="$(limit --oom-risk 0.1)" \
    'BEGIN { exit !(a / b > 1.18749 && a / b < 1.18751 && c == b && d / c > 1.1249 && d / c < 1.1251 && e < f) }'
result $? "95 % by default, 80 under Fujii's model, what is given before both, and a risk"
expect 2 "a limit and a risk" "contradict each other" $L mem llama-2-7b --gpu t4 --seq 128 --memory-limit 80 --oom-risk 0.1
expect 2 "a risk of another model" "oom-risk needs --memory-model linkwise" $L mem llama-2-7b --gpu t4 --seq 128 --memory-model fujii --oom-risk 0.1
expect 0 "no chance under another model" "chance of running out unknown under this model" \
    $L mem llama-2-7b --gpu h100-sxm5-80g --seq 4096 --tp 8 --memory-model fujii
expect 2 "a risk above 1" "oom-risk: expected a number above 0" $L mem llama-2-7b --gpu t4 --seq 128 --oom-risk 2
expect 2 "a budget above 1" "wta-crs: expected a number above 0, at most 1" $L mem llama-2-7b --gpu t4 --seq 128 --wta-crs 1.5
expect 0 "the sampling's headline" "saving needs --lora too" $L mem --help
expect 0 "a tiny chance" "chance of running out < 0.001 %" $L mem gpt2-xl --gpu b300-288g --seq 128
expect 0 "a sure thing" "chance of running out > 99.999 %" $L mem llama-2-70b --gpu t4 --seq 128
grep -Eq "GiB too much on stage 0; its largest part is optimizer state, [0-9.]+ GiB" "$T/out" &&
    grep -Eq "^it would fit with |^no single change" "$T/out"
result $? "... which stage and kind, by how much, and what would help" "$T/out"
done_testing
