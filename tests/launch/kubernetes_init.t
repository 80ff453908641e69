#!/bin/bash
# The init container of docs/launch.md: pods on nodes that the plan does not have write down where
# they are, one binds the plan to these nodes, and each starts its node's ranks.
. tests/lib/tap.sh
. tests/lib/placed.sh
hosts_cluster 6 2 >"$T/cluster.json"
$LINKWISE plan "$T/cluster.json" llama-2-7b --seq 1024 --global-batch 32 --tp 2 --pp 2 --dp 2 --micro-batch 1 --schedule 1f1b --only 'h[1-4]' -o "$T/plan.json" >/dev/null

sed -n '/^    set -e$/,/^$/p' docs/launch.md | sed 's/^    //' >"$T/init.sh"
mkdir "$T/bin"
ln -s "$(realpath "$LINKWISE")" "$T/bin/linkwise"
printf '#!/bin/sh\necho "$RANK $LINKWISE_NODE $LINKWISE_GPU"\n' >"$T/program"
chmod +x "$T/program"
job() { # NAME NODE...: a pod on each node; output in NAME.out and NAME.err
    local name=$1 pod=0 node pids=''
    shift
    mkdir "$T/$name"
    cp "$T/plan.json" "$T/$name/"
    for node in "$@"; do
        env PATH="$T/bin:$PATH" SHARED="$T/$name" PODS=$# JOB_COMPLETION_INDEX=$pod LINKWISE_NODE="$node" \
            timeout 60 sh -c 'sh "$0/../init.sh" >&2 && exec sh "$0/bound/env/node.sh" "$0/../program"' "$T/$name" >>"$T/$name.out" 2>>"$T/$name.err" &
        pids="$pids $!"
        pod=$((pod + 1))
    done
    code=0
    for pod in $pids; do
        # As a Job that may not fail once.
        wait "$pod" || { code=$? && kill $pids 2>/dev/null; }
    done
}
job other h6 h2 h5 h3
[ $code = 0 ] && sort -n "$T/other.out" | cmp -s - "$T/other/bound/map.txt" &&
    [ "$(awk '{ print $2 }' "$T/other.out" | sort -u | paste -sd,)" = h2,h3,h5,h6 ]
result $? "every rank is where the bound plan says, on the nodes that the pods got" "$T/other.err"
job strange h6 h2 h5 h9
[ $code != 0 ] && [ ! -s "$T/strange.out" ] && grep -q "1 of 4 names are no nodes of the cluster hosts, the first \"h9\"" "$T/strange.err" &&
    grep -q "the plan needs 8 GPUs, --only h6,h2,h5 has 6" "$T/strange.err"
result $? "a pod on a node that nobody measured: nothing starts" "$T/strange.err"
done_testing
