#!/bin/bash
# An allocation that fails gives a message and a bad exit code, or changes nothing: never another
# answer.
. tests/lib/tap.sh
. tests/lib/faults.sh
mkdir "$T/before"
cp examples/clusters/h100-10.json examples/clusters/a100-16-*.json examples/models/llama-2-70b.json "$T/before/"
head -n 4 examples/runs/bloom.csv >"$T/before/runs.csv"
cp tests/fuzz/seeds/import/nvbandwidth "$T/before/nvbandwidth.txt"
cp tests/fuzz/seeds/import/nccl-tests "$T/before/nccl-tests.txt"
cp tests/fuzz/seeds/machine/hwloc "$T/before/hwloc.xml"
cp tests/fuzz/seeds/machine/ibnetdiscover "$T/before/fabric.txt"
for day in 1 2 3; do # links inside, slow on the last day
    printf '{"version":1,"nodes":[{"name":"a","gpus":3,"gpu_type":"t4"}],"links":{"intra":{"bandwidth_gb_per_s":%s,"latency_us":9}},"measured":{"when":"2026-03-0%dT00:00:00Z"}}' \
        "$([ $day = 3 ] && echo '[[null,9,20],[20,null,20],[20,20,null]]' || echo 20)" $day >"$T/before/day$day.json"
done
cp tests/jobs/files/llama-8b.sh tests/jobs/files/timers.log "$T/before/"

# GLPK and hwloc abort where they get no memory.
holds() { # RC
    case $1 in
    0) same ;;
    134) ;;
    *) [ "$1" -lt 128 ] && [ -s "$T/faulty/err" ] || { echo "a signal, or no message" && false; } ;;
    esac
}
same() { diff -r -x err -I '"seconds": ' -I '"when": ' "$T/after" "$T/faulty"; } # but for times
job="--seq 4096 --global-batch 80"
split="$job --tp 8 --pp 5 --dp 1 --micro-batch 1"
[ "$FAULTS" != 2 ] || split="$split --schedule 1f1b" # others are searched where many are lost
(cd "$T/before" && $L plan h100-10.json llama-2-70b.json $split --threads 1 -o plan.json >/dev/null)
faults memory mem "mem llama-2-7b --gpu h100-sxm5-80g $job --tp 8 --micro-batch 1"
faults memory time "time h100-10.json llama-2-70b.json $split --json"
faults memory eval "eval plan.json"
faults memory check "check plan.json --json"
faults memory emit "emit plan.json -d launch"
faults memory bind "bind plan.json --only cnode3-[002-011] -o new.json"
faults memory validate "validate runs.csv --json"
faults memory calibrate "calibrate runs.csv -o mine.json"
faults memory compare "compare a100-16-before.json a100-16-after.json --json"
# The first ones, at which strings of the file grow.
for ((at = 1; at <= 30; at++)); do
    with_fault faulty memory $at "compare a100-16-before.json a100-16-after.json --json"
    holds $? >"$T/said" 2>&1 || { echo "allocation $at:" && head -n 9 "$T/said"; }
done >"$T/why"
[ ! -s "$T/why" ]
result $? "memory, the first 30 of compare" "$T/why"
faults memory report "report plan.json -o new.html"
faults memory "report --compare" "report --compare a100-16-before.json a100-16-after.json -o new.html"
faults memory topo "topo --from hwloc.xml -o new.json"
faults memory "topo, a fabric" "topo --from fabric.txt -o new.json"
faults memory "cluster show" "cluster show h100-10.json --json"
faults memory "cluster merge" "cluster merge h100-10.json -o new.json"
faults memory "cluster merge, days" "cluster merge day1.json day2.json day3.json -o new.json"
faults memory import-job "import-job llama-8b.sh timers.log --gpu h100 --no-plan --json"
faults memory "cluster import" "cluster import nvbandwidth.txt -o new.json"
faults memory "cluster import, lines" "cluster import nccl-tests.txt -o new.json"
faults memory "cluster synth" "cluster synth calm --nodes 8 --gpus 8 --gpu-type h100-sxm5-80g --seed 1 -o new.json"
faults memory "cluster drain" "cluster drain h100-10.json cnode3-003 -o new.json"
# A search that loses a candidate may end elsewhere: its plan must be whole.
same() { $L check "$T/faulty/new.json"; }
faults memory plan "plan h100-10.json llama-2-70b.json $split --threads 1 -o new.json"
done_testing
