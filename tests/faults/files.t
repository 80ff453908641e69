#!/bin/bash
# Killed at any call that changes files, or on a disk that fills up: every file is the old or the
# new one, a folder of launcher files with its seal is of one plan, and the next run does it all.
. tests/lib/tap.sh
: "${FAULTS:=1}"
. tests/lib/faults.sh
mkdir "$T/before"
cp examples/clusters/h100-10.json examples/models/llama-2-70b.json "$T/before/"
head -n 30 examples/runs/bloom.csv >"$T/before/runs.csv"
job="--seq 4096 --global-batch 80 --tp 8 --threads 1"
(
    cd "$T/before" || exit
    $L plan h100-10.json llama-2-70b.json $job --pp 5 --dp 2 -o plan.json
    $L plan h100-10.json llama-2-70b.json $job --pp 2 --dp 5 -o other.json
    $L emit other.json --to openmpi,torchrun -d used
    $L cluster synth calm --nodes 4 --npy -o big.json
    echo old | tee new.json >mine.json
) >/dev/null

# Names that a killed process may leave.
left() { grep -vE '\.[A-Za-z0-9]{6}$|\.linkwise-new/'; }
files() { (cd "$1" && find . -type f ! -name out ! -name err | left); }
# of FOLDER: every file of the faulty run is one of the two, by name and bytes.
each_old_or_new() {
    local f
    for f in $(files "$T/faulty"); do
        cmp -s "$T/faulty/$f" "$T/before/$f" || cmp -s "$T/faulty/$f" "$T/after/$f" ||
            { [[ $name =~ plan|bind ]] && $L check "$T/faulty/$f" >/dev/null; } || echo "$f is neither old nor new"
    done
}
# A plan says how long its search took.
sums() {
    [ ! -e "$1/new.json" ] || sed -i '/"seconds":/d' "$1/new.json"
    (cd "$1" && files . | sort | xargs sha256sum)
}
# What the same command makes of what is left there.
again() {
    (cd "$T/faulty" && $L $command >out 2>err </dev/null) || echo "cannot be run again: $(cat "$T/faulty/err")"
    diff <(sums "$T/after") <(sums "$T/faulty")
    find "$T/faulty" -name .linkwise-new
}
one_plan() { # FOLDER: with a seal it is all old or all new
    local now
    [ -e "$T/faulty/$1/$SEAL" ] || return
    now=$(sums "$T/faulty/$1")
    [ "$now" = "$(sums "$T/before/$1" 2>&1)" ] || [ "$now" = "$(sums "$T/after/$1")" ] || echo "$1 is a mixture with a seal"
}
SEAL=$(sed -n 's/.*LAUNCH_SEAL "\(.*\)".*/\1/p' launch/*.h)

wrong() { ! grep .; }
holds() { # RC
    if [ "$fault" = full ] && [ "$1" != 0 ]; then
        # Nothing has changed, nothing is left, and it was said.
        { diff -r -x out -x err "$T/before" "$T/faulty"; [ -s "$T/faulty/err" ] || echo "no message"; [ "$1" = 1 ] || echo "a signal"; } | wrong
    else
        { each_old_or_new; one_plan used; one_plan launch; again; } | wrong
    fi
}
for fault in kill full; do
    faults $fault plan "plan h100-10.json llama-2-70b.json $job --pp 5 --dp 2 -o new.json"
    faults $fault bind "bind plan.json --only cnode3-[002-011] -o new.json"
    faults $fault calibrate "calibrate runs.csv -o mine.json"
    faults $fault "cluster drain" "cluster drain h100-10.json cnode3-003 -o new.json"
    faults $fault "cluster merge" "cluster merge h100-10.json -o new.json"
    faults $fault "matrix beside" "cluster synth busy --nodes 4 --npy -o big.json"
    faults $fault "emit, new folder" "emit plan.json -d launch"
    faults $fault "emit, used folder" "emit plan.json -d used"
done
done_testing
