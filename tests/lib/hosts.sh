# Source me inside a sandbox (tests/lib/sandbox.sh): hosts made of network namespaces.
#
#     hosts_up h1 h2 h3     one namespace per host on a bridge 10.77.0.0/24, each with its own
#                           host name; $HOSTS_RSH HOST COMMAND... runs a command there
hosts_up() {
    hosts_dir=$(mktemp -d "${TMPDIR:-/tmp}/hosts.XXXXXX")
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    mount -t tmpfs tmpfs "$hosts_dir"
    # Session folders of launchers are named by host and process: keep them apart.
    export TMPDIR=$hosts_dir HOSTS_RSH=$hosts_dir/rsh
    ip link set lo up
    ip link add br0 type bridge
    ip addr add 10.77.0.254/24 dev br0
    ip link set br0 up
    hostname head
    printf '127.0.0.1 localhost\n10.77.0.254 head\n' >"$hosts_dir/hosts"
    local i=0 h
    for h in "$@"; do
        i=$((i + 1))
        echo "10.77.0.$i $h" >>"$hosts_dir/hosts"
        ip netns add "$h"
        ip link add "v$i" type veth peer name eth0 netns "$h"
        ip link set "v$i" master br0 up
        ip -n "$h" addr add "10.77.0.$i/24" dev eth0
        ip -n "$h" link set eth0 up
        ip -n "$h" link set lo up
    done
    mount --bind "$hosts_dir/hosts" /etc/hosts
    cat >"$HOSTS_RSH" <<'R'
#!/bin/bash
# rsh-like: skip options, then HOST COMMAND...
while [ "${1#-}" != "$1" ]; do
    case $1 in -l | -o | -p) shift ;; esac
    shift
done
host=$1
shift
[ "${1:-}" = -n ] && shift
exec nsenter --net=/run/netns/"$host" unshare --uts \
    sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
R
    chmod +x "$HOSTS_RSH"
}
