#!/bin/sh
# linkwise: start this host's torchrun agents, with the static rendezvous, which alone keeps
# the order.
#     torchrun/node.sh PROGRAM [ARGUMENT...]   on every host, or ./each-node.sh torchrun/node.sh ...
# agents.txt has a line `host node_rank nproc` for every agent.  LINKWISE_TORCHRUN names the
# command (default torchrun), with options of its own where it needs them.
. "$(dirname -- "$0")/../node-lib.sh"
agents=$top/torchrun/agents.txt
nodes=$(awk 'END { print NR }' "$agents")
for agent in $(awk -v h="$host" '$1 "" == h { print $2 ":" $3 }' "$agents"); do
    start ${LINKWISE_TORCHRUN:-torchrun} --nnodes "$nodes" --node_rank "${agent%:*}" \
        --nproc_per_node "${agent#*:}" --master_addr "$MASTER_ADDR" \
        --master_port "$MASTER_PORT" --no_python "$top/exec.sh" "$@"
done
finish
