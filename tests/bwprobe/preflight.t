#!/bin/bash
# bwprobe --plan on hosts made of network namespaces: a plan's groups reach what it was priced with;
# a node that is slower than when the plan was made, a single link, and a host that is not there
# are named, with exit code 4; what is not the plan's job is refused.
. tests/lib/tap.sh
needs_hosts
needs_python jsonschema python3-jsonschema

python3 - >"$T/cluster.json" <<'P'
import json
names = ["h%d" % i for i in range(1, 6)]
rate = 100e6 / 8 * 1448 / 1514 / 1e9
print (json.dumps ({"version": 1, "name": "hosts", "nodes": [{"name": h, "gpus": 1, "gpu_type": "a100-sxm4-80g"} for h in names],
    "links": {"inter": {"bandwidth_gb_per_s": rate, "latency_us": 100}}}))
P
$LINKWISE plan "$T/cluster.json" gpt2-xl --seq 1024 --global-batch 8 --tp 1 --pp 2 --dp 2 --only h1,h2,h3,h4 \
    -o "$T/plan.json" >/dev/null
expect 0 "emit" "4 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"
cut -d' ' -f2 "$T/launch/map.txt" >"$T/hosts"
sed 's/"node": *"h4"/"node": "h5"/' "$T/plan.json" >"$T/other.json"
sed 's/"dp": *2/"dp": 4/' "$T/plan.json" >"$T/degrees.json"
sed 's/"pp": *2,/"pp": 1,/; s/"dp": *2,/"dp": 4,/; s/"ep": *1,/"ep": 4,/' "$T/plan.json" >"$T/experts.json"
python3 - "$T/plan.json" >"$T/fast.json" <<'P'
import json, sys
p = json.load (open (sys.argv[1]))
p["cluster"]["links"]["inter"]["bandwidth_gb_per_s"] *= 10
print (json.dumps (p))
P
head -c 3000 "$T/plan.json" >"$T/cut.json"
sed 's/"gpu": *0/"gpu": 3/' "$T/plan.json" >"$T/gpu.json"

cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4 h5
hosts_shape_all 100 h1 h2 h3 h4 h5
export ASAN_OPTIONS=detect_leaks=0 BWPROBE_TOKEN=test
rank() { # NUMBER HOST OPTION...
    RANK=$1 WORLD_SIZE=4 MASTER_ADDR=$master MASTER_PORT=$port on "$2" nice -n -18 \
        "$BWPROBE" --transport socket --measure 0.05 --pause 0 --timeout 2 "${@:3}"
}
port=29500
probe() { # NAME OPTION...: all ranks on the plan's hosts, but for one on host $NOT
    local r=0 host name=$OUT/$1
    shift
    port=$((port + 1)) master=$(head -n 1 "$OUT/hosts")
    while read -r host; do
        if [ $r = 0 ]; then
            (rank 0 "$host" -o "$name.json" "$@" >"$name.out" 2>"$name.err"; echo $? >"$name.rc") &
        elif [ "$host" != "${NOT:-}" ]; then
            (rank $r "$host" "$@" >"$name.out.$r" 2>&1; echo $? >>"$name.rcs") &
        fi
        r=$((r + 1))
    done <"$OUT/hosts"
    wait
}
slow() { # HOST MBIT [K]: all links that leave it, or its K-th
    for k in ${3:-1 2 3 4}; do
        tc -n $1 class change dev eth0 parent 1: classid 1:$k htb rate $2mbit ceil $2mbit burst 16kb cburst 16kb
    done
}
export OUT=$1
probe clean --plan "$1/plan.json"
probe dry --plan "$1/plan.json" --dry-run
probe experts --plan "$1/experts.json"
probe fast --plan "$1/fast.json" --passes 1
probe brief --plan "$1/plan.json" --budget 1
for bad in other degrees cut gpu; do
    probe $bad --plan "$1/$bad.json" --start-timeout 5
done
host=$(sed -n 3p "$1/hosts")
slow "$host" 40
probe slow --plan "$1/plan.json"
slow "$host" 100
NOT=$(sed -n 2p "$1/hosts") probe lost --plan "$1/plan.json" --start-timeout 3
S
SANDBOX_LIMIT=120 in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

# ended NAME CODE NAME PATTERN...: rank 0's exit code, and what it printed
ended() {
    local run=$1 code=$2 name=$3 bad=0 pattern
    shift 3
    cat "$T/$run.out" "$T/$run.err" "$T/$run.rc" >"$T/why" 2>&1
    [ "$(cat "$T/$run.rc" 2>/dev/null)" = "$code" ] || bad=1
    for pattern in "$@"; do
        grep -Eq -- "$pattern" "$T/why" || { echo "no /$pattern/" >>"$T/why"; bad=1; }
    done
    result $bad "$name" "$T/why"
}
ended clean 0 "as it was planned: every hop reaches its rate" '^all [0-9]+ hops reach 80 %' '^pp +2 +2 +4 +4 +0' '^dp +2 +2 +4 +4 +0'
! grep -q replace "$T/clean.out" && python3 - "$T/clean.json" >"$T/why" 2>&1 <<'P'
import json, sys
m = json.load (open (sys.argv[1]))["measured"]
p = m["preflight"]
assert m["status"] == "complete" and p["hops"] == p["measured"] == 8 and p["short"] == p["replace"] == [], m
assert all (abs (x["concurrent_gb_per_s"]["median"] / (100e6 / 8 * 1448 / 1514 / 1e9) - 1) < 0.3 for x in m["pairs"])
P
result $? "the links file has what was measured" "$T/why"
valid links "$T/clean.json" "it is valid"
valid links "$T/slow.json" "so is one with nodes to replace"
ended dry 0 "--dry-run has the rounds" '^pp +2 +2 +4 ' 'expected time [0-9]+ s of 90 s'
ended experts 0 "experts: everybody with everybody, in three rounds" '^dp +1 +4 +8 +8 +0' '^ep +1 +4 +12 +12 +0'
# It leaves no time to measure a hop again that a busy machine held up.
code=$(cat "$T/brief.rc")
ended brief "$([ "$code" = 4 ] && echo 4 || echo 0)" "a short budget is kept" 'hops' 'links written to .*[(]socket, [0-4][.][0-9] s[)]'
host=$(sed -n 3p "$T/hosts")
ended slow 4 "a node that became slow: exit code 4, and it is to be replaced" "^replace $host\$" \
    "^$host/0 -> .* [1-5][0-9] .*source is slow" 'hops are below 80 %'
[ "$(grep -c ^replace "$T/slow.out")" = 1 ]
result $? "it alone" "$T/slow.out"
[ "$(sort -u "$T/slow.rcs" | paste -sd,)" = 0 ]
result $? "the other ranks end with 0, so that no launcher ends rank 0 before its report" "$T/slow.rcs"
python3 - "$T/slow.json" "$host" >"$T/why" 2>&1 <<'P'
import json, sys
p = json.load (open (sys.argv[1]))["measured"]["preflight"]
assert p["replace"] == [sys.argv[2]] and p["short"], p
assert all (x["gb_per_s"] < 0.8 * x["expected_gb_per_s"] and x["groups"] in ("pp", "dp") for x in p["short"])
P
result $? "the links file says so too" "$T/why"
ended fast 4 "a cluster file of another network" '^8 of 8 hops are below' 'nearly all hops fall short: no node is at fault'
! grep -q ^replace "$T/fast.out"
result $? "no node has to go for it" "$T/fast.out"
ended lost 4 "a host that is not there" "^replace $(sed -n 2p "$T/hosts")\$" 'did not connect'
ended other 1 "another host's plan" 'other.json: ranks\[[0-9]\]: planned on h5, but rank [0-9] of this job runs on h4'
ended degrees 1 "degrees of other ranks" 'degrees.json: ranks: expected 8 ranks, as the degrees say, found 4'
ended cut 1 "half a file" 'cut.json: '
ended gpu 1 "a GPU that the cluster lacks" 'gpu.json: ranks\[0\].gpu: expected a GPU of h[1-4] that is not drained, found 3'
$BWPROBE --plan p.json --resume >"$T/why" 2>&1
[ $? = 2 ]
result $? "--resume is refused" "$T/why"
done_testing
