#!/bin/bash
# The emitted batch script on a real Slurm: a job (20 in the long form) on any 4 of 6 hosts runs on
# the plan bound to the hosts it got; where binding fails in any way the job starts all the same, in
# the scheduler's order, and says so.  A prolog, as docs/launch.md has it, binds a job's plan before
# its script starts; a job without a plan, and one that cannot be bound, start as ever.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

placed "$T" 6 2 || exit 1
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 24 --micro-batch 1 --schedule 1f1b --tp 2 --pp 2 --dp 2 --nodes 4 \
    -o "$T/plan.json" >/dev/null
expect 0 "emit" "8 ranks written" $LINKWISE emit "$T/plan.json" --to slurm -d "$T/launch"

mkdir "$T/plans"
cp "$T/plan.json" "$T/plans/train.json"
sed 's/"h\([1-6]\)"/"m\1"/g' "$T/plans/train.json" >"$T/plans/strange.json"
# page MARK FOLDER: the script on the page behind a line with MARK, with FOLDER's plans.
page() {
    awk -v mark="$1" '
        index($0, mark) { found = 1 }
        found && /^    / { on = 1; print substr($0, 5); next }
        on && NF { exit }' docs/launch.md | sed "s|/shared/plans|$2|"
}
{
    page 'In a prolog of Slurm' "$T/plans" | head -n 1
    echo "PATH=$(dirname "$(realpath "$LINKWISE")"):$PATH"
    page 'In a prolog of Slurm' "$T/plans" | tail -n +2
} >"$T/prolog"
{
    echo '#!/bin/sh'
    page 'and its script has' "$T/plans" | sed "s|PROGRAM|'$T/program'|"
} >"$T/job.sh"
chmod +x "$T/prolog" "$T/job.sh"
grep -q 'linkwise bind' "$T/prolog" && grep -q 'srun -n' "$T/job.sh"
result $? "the page has both scripts" "$T/prolog"
printf '#!/bin/sh\nsrun hostname\n' >"$T/plain.sh"

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
SLURM_MORE="PrologSlurmctld=$1/prolog
" slurm_up 2 h1 h2 h3 h4 h5 h6 || exit 1
cd "$1"
submit() { # NAME FOLDER HOSTS
    echo "$3" >"$1.hosts"
    LINKWISE_DIR=$1/folder sbatch -Q --parsable --export=ALL,SLURM_HOSTFILE="$PWD/strange",MASTER_ADDR=h9 -w "$3" -o "$1.out" -e "$1.err" "$2/slurm/job.sbatch" "$PWD/program" >"$1.id"
}
for name in train strange other ../train; do
    file=${name/..\//up-}
    job=job.sh nodes=h2,h3,h5,h6
    [ "$name" = train ] || job=$1/plain.sh
    # Where there is no plan one node shows that the job starts.
    case $name in other | ../train) nodes=h2 ;; esac
    sbatch --parsable -J "$name" --exclusive -w $nodes -o "$1/$file.out" -e "$1/$file.err" "$job" >"$file.id"
done
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
sinfo -h -N -o '%N %t' | sort -u >states
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

folder=$T/plans/$(cat "$T/train.id")
cat "$T/sandbox.out" "$T/train.err" "$folder.err" >"$T/why" 2>&1
sort -n "$T/train.out" | awk '{ print $1, $2, $3 }' | cmp -s - "$folder/map.txt" && [ "$(wc -l <"$folder/map.txt")" = 8 ]
result $? "a prolog: every rank is where the bound plan says" "$T/why"
[ "$(awk '{ print $2 }' "$folder/map.txt" | sort -u | paste -sd,)" = h2,h3,h5,h6 ]
result $? "a prolog: on the nodes that the job got" "$folder/map.txt"
sees "$folder" "$T/train.out"
result $? "a prolog: each sees what frameworks expect" "$T/train.out"
[ "$(sort "$T/strange.out" | paste -sd,)" = h2,h3,h5,h6 ] && grep -q 'linkwise bind:' "$T/plans/$(cat "$T/strange.id").err"
result $? "a prolog with a plan for other nodes: the job starts, and why is in its file" "$T/plans/$(cat "$T/strange.id").err"
for name in other up-train; do
    [ "$(cat "$T/$name.out")" = h2 ] && [ ! -e "$T/plans/$(cat "$T/$name.id").err" ]
    result $? "a prolog, a job without a plan: $name" "$T/sandbox.out"
done
[ "$(grep -c ' idle$' "$T/states")" = 6 ]
result $? "no node is drained" "$T/states"
done_testing
