#!/bin/bash
# sandbox.sh SCRIPT [ARGUMENT...]: run a script as root in mount, network, host-name, IPC and
# process namespaces of its own; whatever it starts ends with it.
exec timeout -k 5 "${SANDBOX_LIMIT:-300}" \
    unshare --mount --net --uts --ipc --pid --fork --kill-child=KILL --mount-proc bash "$@"
