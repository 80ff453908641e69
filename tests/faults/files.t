#!/bin/bash
# Killed at any call that changes files, or on a disk that fills up: every file is the old or the
# new one, a folder of launcher files with its seal is of one plan, and the next run does it all.
. tests/lib/tap.sh
: "${FAULTS:=1}"
needs python3 python3
. tests/lib/faults.sh
python_up
mkdir "$T/before"
cp examples/clusters/h100-10.json examples/models/llama-2-70b.json "$T/before/"
head -n 4 examples/runs/bloom.csv >"$T/before/runs.csv"
job="--seq 4096 --global-batch 80 --tp 8 --micro-batch 1 --recompute full --schedule 1f1b --granularity node --threads 1"
(
    cd "$T/before" || exit
    $L plan h100-10.json llama-2-70b.json $job --pp 5 --dp 1 -o plan.json
    $L plan h100-10.json llama-2-70b.json $job --pp 2 --dp 1 -o other.json
    $L emit other.json --to openmpi,torchrun -d used
    $L cluster synth calm --nodes 4 --npy -o big.json
    echo old | tee new.json >mine.json
) >/dev/null

# The files of FOLDER below $T and their digests, without names that a killed process may leave.
# A plan says how long its search took.
cat >"$T/sums.py" <<'P'
import hashlib, os, re, sys
found = []
for folder, _, files in os.walk(sys.argv[1]):
    for f in files:
        path = os.path.join(folder, f)
        name = os.path.relpath(path, sys.argv[1])
        if name in ("out", "err") or re.search(r"\.[A-Za-z0-9]{6}$|\.linkwise-new/", name): continue
        text = open(path, "rb").read()
        if name == "new.json": text = re.sub(rb'"seconds": [^\n]*', b"", text)
        found.append((name, hashlib.sha256(text).hexdigest()))
for name, sum in sorted(found): print(sum, " ./" + name)
P
sums() { py "$T/sums.py" "$T/$1"; }
part() { grep -F "  ./$1/" <<<"$2"; } # FOLDER SUMS: those in it
# Every file is one of the two, by name and bytes; a FOLDER with a seal is all old or all new.
each_old_or_new() { # SUMS FOLDER...
    local folder now
    grep -vxF -e "$was" -e "$will" <<<"$1" | sed 's/$/ is neither old nor new/'
    for folder in "${@:2}"; do
        [ -e "$T/faulty/$folder/$SEAL" ] || continue
        now=$(part "$folder" "$1")
        [ "$now" = "$(part "$folder" "$was")" ] || [ "$now" = "$(part "$folder" "$will")" ] || echo "$folder is a mixture with a seal"
    done
}
# What the same command makes of what is left there.
again() {
    (cd "$T/faulty" && $L $command >out 2>err </dev/null) || echo "cannot be run again: $(cat "$T/faulty/err")"
    diff <(echo "$will") <(sums faulty)
    find "$T/faulty" -name .linkwise-new
}
SEAL=$(sed -n 's/.*LAUNCH_SEAL "\(.*\)".*/\1/p' launch/*.h)

wrong() { ! grep .; }
holds() { # RC
    if [ "$fault" = full ] && [ "$1" != 0 ]; then
        # Nothing has changed, nothing is left, and it was said.
        { diff -r -x out -x err "$T/before" "$T/faulty"; [ -s "$T/faulty/err" ] || echo "no message"; [ "$1" = 1 ] || echo "a signal"; } | wrong
    else
        was=$(sums before) will=$(sums after)
        { each_old_or_new "$(sums faulty)" used launch; again; } | wrong
    fi
}
both="kill full"
faults "$both" plan "plan h100-10.json llama-2-70b.json $job --pp 5 --dp 1 -o new.json"
faults "$both" bind "bind plan.json --only cnode3-[002-011] -o new.json"
faults "$both" calibrate "calibrate runs.csv -o mine.json"
faults "$both" "cluster drain" "cluster drain h100-10.json cnode3-003 -o new.json"
faults "$both" "cluster merge" "cluster merge h100-10.json -o new.json"
faults "$both" "matrix beside" "cluster synth busy --nodes 4 --npy -o big.json"
faults "$both" "emit, new folder" "emit plan.json -d launch"
faults "$both" "emit, used folder" "emit plan.json -d used"
done_testing
