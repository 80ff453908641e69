#!/bin/bash
# A prolog of a real Slurm, as docs/launch.md has it, binds a job's plan to the nodes that the job
# got before its script starts; a job without a plan, and one that cannot be bound, start as ever.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs_slurm

placed "$T" 6 2 || exit 1
mkdir "$T/plans"
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 24 --micro-batch 1 --schedule 1f1b --tp 2 --pp 2 --dp 2 --nodes 4 \
    -o "$T/plans/train.json" >/dev/null
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

reporter "$T/program"
cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
. tests/lib/slurm.sh
hosts_up h1 h2 h3 h4 h5 h6
SLURM_MORE="PrologSlurmctld=$1/prolog
" slurm_up 2 h1 h2 h3 h4 h5 h6 || exit 1
cd "$1"
for name in train strange other ../train; do
    file=${name/..\//up-}
    job=job.sh nodes=h2,h3,h5,h6
    [ "$name" = train ] || job=$1/plain.sh
    # Where there is no plan one node shows that the job starts.
    case $name in other | ../train) nodes=h2 ;; esac
    sbatch --parsable -J "$name" --exclusive -w $nodes -o "$1/$file.out" -e "$1/$file.err" "$job" >"$file.id"
done
slurm_idle
sinfo -h -N -o '%N %t' | sort -u >states
S
printf '#!/bin/sh\nsrun hostname\n' >"$T/plain.sh"
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1
folder=$T/plans/$(cat "$T/train.id")
cat "$T/sandbox.out" "$T/train.err" "$folder.err" >"$T/why" 2>&1
sort -n "$T/train.out" | awk '{ print $1, $2, $3 }' | cmp -s - "$folder/map.txt" && [ "$(wc -l <"$folder/map.txt")" = 8 ]
result $? "every rank is where the bound plan says" "$T/why"
[ "$(awk '{ print $2 }' "$folder/map.txt" | sort -u | paste -sd,)" = h2,h3,h5,h6 ]
result $? "... on the nodes that the job got" "$folder/map.txt"
sees "$folder" "$T/train.out"
result $? "... and sees what frameworks expect" "$T/train.out"
[ "$(sort "$T/strange.out" | paste -sd,)" = h2,h3,h5,h6 ] && grep -q 'linkwise bind:' "$T/plans/$(cat "$T/strange.id").err"
result $? "a plan for other nodes: the job starts, and why is in its file" "$T/plans/$(cat "$T/strange.id").err"
for name in other up-train; do
    [ "$(cat "$T/$name.out")" = h2 ] && [ ! -e "$T/plans/$(cat "$T/$name.id").err" ]
    result $? "a job without a plan: $name" "$T/sandbox.out"
done
[ "$(grep -c ' idle$' "$T/states")" = 6 ]
result $? "no node is drained" "$T/states"
done_testing
