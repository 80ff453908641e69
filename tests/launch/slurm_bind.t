#!/bin/bash
# The emitted batch script on a real Slurm: a job (20 in the long form) on any 4 of 6 hosts runs on
# the plan bound to the hosts it got; where binding fails in any way the job starts all the same, in
# the scheduler's order, and says so.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

placed "$T" 6 2 || exit 1
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 24 --micro-batch 1 --schedule 1f1b --tp 2 --pp 2 --dp 2 --nodes 4 \
    -o "$T/plan.json" >/dev/null
expect 0 "emit" "8 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"

jobs=1
[ -z "$LINKWISE_LONG" ] || jobs=20

# Ways in which placing fails (tests/launch/batch.t has more): a name, and what the script says.
echo 'swapped cannot be started here' >"$T/ways"
[ -z "$LINKWISE_LONG" ] || printf '%s\n' 'readonly cannot be made' 'missing bind did not place' >>"$T/ways"
cat >"$T/swapped.sh" <<'S' # stands for linkwise
#!/bin/sh
"$REAL" "$@" || exit 1
[ "$1" = bind ] || { tac "$6/slurm/hostfile" >"$6/x" && mv "$6/x" "$6/slurm/hostfile"; }
S
chmod +x "$T/swapped.sh"

reporter "$T/program"
cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4 h5 h6
slurm_up 2 h1 h2 h3 h4 h5 h6 || exit 1
cd "$1"
submit() { # NAME FOLDER HOSTS
    echo "$3" >"$1.hosts"
    LINKWISE_DIR=$1/folder sbatch -Q --parsable --export=ALL,SLURM_HOSTFILE="$PWD/strange",MASTER_ADDR=h9 -w "$3" -o "$1.out" -e "$1.err" "$2/slurm/job.sbatch" "$PWD/program" >"$1.id"
}
export LINKWISE_NUMA=0 # tests/launch/slurm.t leaves it on
# What a user's environment may hold is not obeyed.
for i in $(seq 8); do echo h1; done >strange
# No two jobs in turn have the same hosts.
mapfile -t fours < <(for a in 1 2 3; do for b in 2 3 4; do for c in 3 4 5; do for d in 4 5 6; do
    [ $a -lt $b ] && [ $b -lt $c ] && [ $c -lt $d ] && echo "h$a,h$b,h$c,h$d"
done; done; done; done)
for i in $(seq "$2"); do
    mkdir "job$i"
    cp -r launch "job$i/folder"
    submit "$PWD/job$i" launch "${fours[i * 4 % ${#fours[@]}]}"
done
# Hosts that are never exactly the plan's.
hosts=$(printf 'h%d\n' 1 2 3 4 5 6 | grep -vx "$(sort -u launch/slurm/hostfile | head -n 1)" | head -n 4 | paste -sd,)
export REAL=$LINKWISE LINKWISE_TIMEOUT=60
while read -r name _; do
    mkdir "$name"
    cp -r launch "$name/folder"
    export LINKWISE=$PWD/$name.sh
    [ $name != readonly ] ||
        { unset LINKWISE && mount --bind readonly/folder readonly/folder && mount -o remount,ro,bind readonly/folder; }
    submit "$PWD/$name" launch "$hosts"
done <ways
slurm_idle
S2
in_sandbox "$T/inside.sh" "$T" $jobs >"$T/sandbox.out" 2>&1

bad=0 bound=0
: >"$T/why"
for i in $(seq $jobs); do
    folder=$T/job$i/folder
    if grep -q "placed anew" "$T/job$i.err"; then
        bound=$((bound + 1))
        folder=$(echo "$folder"/bound-*)
    fi
    sort -n "$T/job$i.out" | awk '{ print $1, $2, $3 }' | cmp -s - "$folder/map.txt" &&
        [ -z "$(comm -23 <(awk '{ print $2 }' "$folder/map.txt" | sort -u) <(tr , '\n' <"$T/job$i.hosts"))" ] &&
        sees "$folder" "$T/job$i.out" &&
        grep -q "starting the job on the placement of $folder/map.txt" "$T/job$i.err" &&
        python3 - "$T/plan.json" "$folder/plan.json" <<'P' || {
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
sys.exit(any(a[k] != b[k] for k in ("degrees", "layers_per_stage", "micro_batch", "zero", "recompute",
                                    "schedule", "sequence_parallel", "job", "model")))
P
        bad=$((bad + 1))
        { echo "job $i on $(cat "$T/job$i.hosts"):"; cat "$T/job$i.err" "$T/job$i.out" "$T/sandbox.out"; } >>"$T/why"
    }
done
[ $bad = 0 ]
result $? "$jobs allocations: every rank where the bound plan says, on the hosts given, the same job" "$T/why"
[ $bound -ge $(((jobs * 3 + 3) / 4)) ]
result $? "most of them had to be bound: $bound of $jobs"

while read -r name pattern; do
    cat "$T/$name.err" "$T/$name.out" >"$T/why" 2>&1
    awk -v hosts="$(cat "$T/$name.hosts")" '
        BEGIN { split(hosts, h, ",") }
        { node = int($1 / 2); bad = bad || $2 != h[node + 1] || $3 != $1 % 2 || $5 != $1 % 2 || $6 != 2 || $7 != node || $8 != node || $9 != 4 || $10 != 8 || $11 != h[1] }
        END { exit bad || NR != 8 }' <(sort -n "$T/$name.out" 2>/dev/null) &&
        grep -Eq "$pattern.*starting the job in the scheduler's order instead" "$T/$name.err"
    result $? "$name: the job starts in the scheduler's order, and says why" "$T/why"
done <"$T/ways"
done_testing
