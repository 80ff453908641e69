#!/bin/bash
# The batch script with --preflight on a real Slurm: a node that became slow after the plan was made
# is replaced by the allocation's spare, and the job starts on the others; a clean cluster starts as
# planned; where there is no spare the job starts all the same and says so.  tests/launch/batch.t has
# a preflight that cannot measure.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

python3 - >"$T/cluster.json" <<'P'
import json
rate = 100e6 / 8 * 1448 / 1514 / 1e9
print(json.dumps({"version": 1, "name": "lab", "nodes": [
    {"name": "h%d" % i, "gpus": 1, "gpu_type": "a100-sxm4-80g"} for i in range(1, 6)],
    "links": {"inter": {"bandwidth_gb_per_s": rate, "latency_us": 100}}}))
P
$LINKWISE plan "$T/cluster.json" gpt2-xl --seq 1024 --global-batch 8 --tp 1 --pp 2 --dp 2 --only 'h[1-4]' \
    -o "$T/plan.json" >/dev/null
expect 0 "emit" "4 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"
slow=$(sed -n 3p "$T/launch/slurm/hostfile")
printf '#!/bin/sh\nread -r here </proc/sys/kernel/hostname\necho "$RANK $here"\n' >"$T/launch/program"
chmod +x "$T/launch/program"

cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4 h5
hosts_shape_all 100 h1 h2 h3 h4 h5
slurm_up 1 h1 h2 h3 h4 h5 || exit 1
export ASAN_OPTIONS=detect_leaks=0
submit() { # NAME NODES OPTION...
    sbatch -Q -W -N "$(echo "$2" | tr , '\n' | wc -l)" -w "$2" -o "../$1.out" -e "../$1.err" slurm/job.sbatch "${@:3}"
    echo $? >"../$1.rc"
}
cd "$1/launch"
[ -z "$LINKWISE_LONG" ] || submit clean h1,h2,h3,h4,h5 --preflight ./program
for k in 1 2 3 4; do
    tc -n $2 class change dev eth0 parent 1: classid 1:$k htb rate 30mbit ceil 30mbit burst 16kb cburst 16kb
done
submit spare h1,h2,h3,h4,h5 --preflight=60 ./program
[ -z "$LINKWISE_LONG" ] || submit none h1,h2,h3,h4 --preflight=60 ./program
S2
SANDBOX_LIMIT=200 in_sandbox "$T/inside.sh" "$T" "$slow" >"$T/sandbox.out" 2>&1

# ran JOB NAME PATTERN: it ended well, on four hosts, and its log says so
ran() {
    cat "$T/sandbox.out" "$T/$1.err" "$T/$1.out" "$T/$1.rc" >"$T/why" 2>&1
    [ "$(cat "$T/$1.rc")" = 0 ] && [ "$(awk '{ print $2 }' "$T/$1.out" | sort -u | wc -l)" = 4 ] &&
        grep -Eq -- "$3" "$T/$1.err"
    result $? "$2" "$T/why"
}
if [ -n "$LINKWISE_LONG" ]; then
    ran clean "a clean cluster passes" '^all [0-9]+ hops reach'
    sort -n "$T/clean.out" | awk '{ print $2 }' | cmp -s - "$T/launch/slurm/hostfile"
    result $? "and the job starts as planned" "$T/why"
    ran none "without a spare the job starts all the same" 'fall short, and no node can take the place of one at fault'
fi
ran spare "a node that became slow is left out" "placed anew without $slow"
! grep -qw "$slow" "$T/spare.out" && grep -qw h5 "$T/spare.out" && grep -q "^all [0-9]* hops reach" "$T/spare.err"
result $? "the spare takes its place, is measured too, and the job starts on the others" "$T/why"
cd "$T/launch" || exit 1
expect 2 "a budget that is no number" 'expected whole seconds, found "soon"' sh slurm/job.sbatch --preflight=soon ./program
done_testing
