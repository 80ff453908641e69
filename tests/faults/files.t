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

# What is wrong with the files in `faulty`, by name and bytes, where `before` are the old and `after` the
# new ones: old-or-new, each is one of these, and a folder with a seal is all of one; or new, all are
# new.  A killed process may leave names of its own.  A plan says how long its search took.
cat >"$T/state.py" <<'P'
import os, re, sys
def files(top):
    found = {}
    for folder, _, names in os.walk(top):
        for f in names:
            path = os.path.join(folder, f)
            name = os.path.relpath(path, top)
            if name in ("out", "err") or re.search(r"\.[A-Za-z0-9]{6}$|\.linkwise-new/", name): continue
            text = open(path, "rb").read()
            found[name] = re.sub(rb'"seconds": [^\n]*', b"", text) if name == "new.json" else text
    return found
was, will, now = (files(sys.argv[1] + "/" + f) for f in ("before", "after", "faulty"))
if sys.argv[2] == "new":
    for name in sorted(n for n in {**will, **now} if will.get(n) != now.get(n)): print(name, "is not what it is without a fault")
    for folder, names, _ in os.walk(sys.argv[1] + "/faulty"):
        if ".linkwise-new" in names: print(folder + "/.linkwise-new is left")
else:
    for name in sorted(now):
        if now[name] not in (was.get(name), will.get(name)): print(name, "is neither old nor new")
    for folder in "used/", "launch/":
        of = lambda state: {n: state[n] for n in state if n.startswith(folder)}
        if folder + sys.argv[3] in now and of(now) not in (of(was), of(will)): print(folder, "is a mixture with a seal")
P
SEAL=$(sed -n 's/.*LAUNCH_SEAL "\(.*\)".*/\1/p' launch/*.h)

holds() { # RC: prints into $T/said what is wrong
    if [ "$fault" = full ] && [ "$1" != 0 ]; then
        # Nothing has changed, nothing is left, and it was said.
        diff -r -x out -x err "$T/before" "$T/faulty"
        [ -s "$T/faulty/err" ] || echo "no message"
        [ "$1" = 1 ] || echo "a signal"
    else
        py "$T/state.py" "$T" old-or-new "$SEAL"
        # What the same command makes of what is left there.
        (cd "$T/faulty" && $L $command >out 2>err </dev/null) || { echo "cannot be run again:" && cat "$T/faulty/err"; }
        py "$T/state.py" "$T" new
    fi
    [ ! -s "$T/said" ]
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
