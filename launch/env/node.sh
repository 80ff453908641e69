#!/bin/sh
# linkwise: start this host's ranks, one process each, with the variables of env://.
#     env/node.sh PROGRAM [ARGUMENT...]        on every host, or ./each-node.sh env/node.sh ...
. "$(dirname -- "$0")/../node-lib.sh"
for rank in $(awk -v h="$host" '$2 "" == h { print $1 }' "$top/map.txt"); do
    start env LINKWISE_RANK="$rank" "$top/exec.sh" "$@"
done
finish
