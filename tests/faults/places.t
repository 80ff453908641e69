#!/bin/bash
# A disk that is full and one that is read-only, real ones: an error that says so, and what was
# there is there.  Standard output that takes nothing is an error too.
. tests/lib/tap.sh
[ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null || skip_all "needs root and mount namespaces"
cluster=$PWD/examples/clusters/h100-10.json
$LINKWISE plan "$cluster" llama-2-70b --seq 4096 --global-batch 80 --tp 8 --pp 5 --dp 1 --schedule 1f1b -o "$T/plan.json" >/dev/null
head -n 4 examples/runs/bloom.csv >"$T/runs.csv"
commands=(
    "plan $cluster llama-2-70b --seq 4096 --global-batch 80 --tp 8 --pp 5 --dp 1 --schedule 1f1b -o old"
    "bind $T/plan.json --only cnode3-[002-011] -o old"
    "emit $T/plan.json -d folder"
    "emit $T/plan.json -d new"
    "calibrate $T/runs.csv -o old"
    "validate $T/runs.csv --per-row old"
    "cluster merge $cluster -o old"
    "cluster synth busy --nodes 4 --npy -o old"
)
# In a namespace of its own: place OPTIONS WORDS COMMAND, on a small file system that is full, or
# mounted again with OPTIONS.
cat >"$T/place.sh" <<'P'
mkdir "$T/disk" && mount -t tmpfs -o size=64k linkwise "$T/disk" && cd "$T/disk" || exit 9
mkdir folder && echo old >old && echo old >folder/plan.json
if [ "$1" = full ]; then
    cat /dev/zero >filling 2>/dev/null
else
    mount -o remount,ro "$T/disk" || exit 9
fi
find . -type f ! -name filling | sort | xargs sha256sum >"$T/was"
$LINKWISE $3 >"$T/out" 2>"$T/err" </dev/null
rc=$?
find . -type f ! -name filling | sort | xargs sha256sum | diff "$T/was" - >>"$T/err"  && [ $rc = 1 ] && grep -q "$2" "$T/err"
P
export T
for place in "full:No space left" "ro:Read-only"; do
    for command in "${commands[@]}"; do
        unshare --mount bash "$T/place.sh" "${place%%:*}" "${place#*:}" "$command"
        result $? "${place#*:}: ${command%% *} ${command##* }" "$T/err"
        rmdir "$T/disk"
    done
done
for command in "mem llama-2-7b --gpu h100-sxm5-80g --seq 4096" "check $T/plan.json --json" "cluster show $cluster" "eval --help"; do
    spawn $LINKWISE $command >/dev/full 2>"$T/err"
    [ $? = 1 ] && grep -q . "$T/err"
    result $? "/dev/full: $command" "$T/err"
done
done_testing
