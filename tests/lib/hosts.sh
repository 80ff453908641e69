# Source me inside a sandbox (in_sandbox of tests/lib/tap.sh): hosts made of network namespaces.
#
#     hosts_up h1 h2 h3     one namespace per host on a bridge 10.77.0.0/24, each with its own
#                           host name; $HOSTS_RSH HOST COMMAND... runs a command there as ssh
#                           does, `on HOST PROGRAM ARGUMENT...` without a shell between
. tests/lib/pause.sh
declare -A hosts_at # their addresses
hosts_up() {
    hosts_dir=$(mktemp -d "${TMPDIR:-/tmp}/hosts.XXXXXX")
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    mount -t tmpfs tmpfs "$hosts_dir"
    # Session folders of launchers are named by host and process: keep them apart.
    export TMPDIR=$hosts_dir HOSTS_RSH=$hosts_dir/rsh
    # Each daemon of a launcher describes its machine, and loads hwloc's plugins for it: libraries of
    # graphics, and libxml's, which only a described machine needs.
    export HWLOC_PLUGINS_PATH=/nonexistent
    ip -batch - <<'I'
link set lo up
link add br0 type bridge
addr add 10.77.0.254/24 dev br0
link set br0 up
I
    hostname head
    printf '127.0.0.1 localhost\n10.77.0.254 head\n' >"$hosts_dir/hosts"
    local i=0 h ends=''
    for h in "$@"; do
        i=$((i + 1))
        hosts_at[$h]=10.77.0.$i
        echo "10.77.0.$i $h" >>"$hosts_dir/hosts"
        : >"$hosts_dir/uts.$h"
        unshare --uts="$hosts_dir/uts.$h" hostname "$h"
        ends+="netns add $h
link add v$i type veth peer name eth0 netns $h
link set v$i master br0 up
"
    done
    ip -batch - <<<"$ends"
    for h in "$@"; do
        ip -n "$h" -batch - <<I
addr add ${hosts_at[$h]}/24 dev eth0
link set eth0 up
link set lo up
I
    done
    mount --bind "$hosts_dir/hosts" /etc/hosts
    cat >"$HOSTS_RSH" <<'R'
#!/bin/sh
# rsh-like: skip options, then HOST COMMAND...
while [ "${1#-}" != "$1" ]; do
    case $1 in -l | -o | -p) shift ;; esac
    shift
done
host=$1
shift
[ "${1:-}" = -n ] && shift
nsenter --net=/run/netns/"$host" --uts="${0%/*}/uts.$host" sh -c "$*"
rc=$?
# A host that lost its power does not end an ssh to it.
[ $rc != 137 ] || sleep 1000
exit $rc
R
    chmod +x "$HOSTS_RSH"
}

on() {
    nsenter --net=/run/netns/"$1" --uts="$hosts_dir/uts.$1" "${@:2}"
}

# hosts_shape SRC DST MBIT [DST MBIT]...: limit directed links SRC -> DST.  Short packets (TCP's
# answers) pass by the limit, so that traffic the other way is not held up by them.  A one-way stream
# reaches 1448 / 1514 of the rate.  The first shape of a host must come before its others.
declare -A hosts_shaped
hosts_shape() {
    local src=$1 k words=''
    if [ -z "${hosts_shaped[$src]:-}" ]; then
        words='qdisc add dev eth0 root handle 1: htb default 999
class add dev eth0 parent 1: classid 1:999 htb rate 10gbit quantum 60000
filter add dev eth0 protocol ip parent 1: prio 2 u32 match ip protocol 6 0xff match u16 0x0000 0xff80 at 2 flowid 1:999
'
        hosts_shaped[$src]=0
    fi
    while shift && [ $# -gt 1 ]; do
        k=$((hosts_shaped[$src] += 1))
        words+="class add dev eth0 parent 1: classid 1:$k htb rate $2mbit ceil $2mbit burst 16kb cburst 16kb quantum 60000
qdisc add dev eth0 parent 1:$k handle $((100 + k)): bfifo limit 200000
filter add dev eth0 protocol ip parent 1: prio 3 u32 match ip dst ${hosts_at[$1]}/32 flowid 1:$k
"
        shift
    done
    tc -n "$src" -batch - <<<"$words"
}

# hosts_shape_all MBIT HOST...: the same of every link among hosts.
hosts_shape_all() {
    local mbit=$1 src dst links
    shift
    for src; do
        links=()
        for dst; do
            [ "$src" = "$dst" ] || links+=("$dst" "$mbit")
        done
        hosts_shape "$src" "${links[@]}"
    done
}

# hosts_trunk MBIT HOST...: put hosts behind a second bridge, to which one link of this rate
# leads in each direction.
hosts_trunk() {
    local mbit=$1 h end
    shift
    ip link add br1 type bridge
    ip link set br1 up
    ip link add trunk0 type veth peer name trunk1
    ip link set trunk0 master br0 up
    ip link set trunk1 master br1 up
    for end in trunk0 trunk1; do
        tc -batch - <<C
qdisc add dev $end root handle 1: htb default 999
class add dev $end parent 1: classid 1:999 htb rate 10gbit quantum 60000
class add dev $end parent 1: classid 1:1 htb rate ${mbit}mbit ceil ${mbit}mbit burst 16kb cburst 16kb quantum 60000
qdisc add dev $end parent 1:1 handle 11: bfifo limit 400000
filter add dev $end protocol ip parent 1: prio 2 u32 match ip protocol 6 0xff match u16 0x0000 0xff80 at 2 flowid 1:999
filter add dev $end protocol ip parent 1: prio 3 u32 match u32 0 0 flowid 1:1
C
    done
    for h in "$@"; do
        ip link set "v${hosts_at[$h]##*.}" master br1
    done
}

# hosts_cut SRC DST, after the shapes of SRC: nothing gets from SRC to DST any more.
hosts_cut() {
    tc -n "$1" -batch - <<C
class add dev eth0 parent 1: classid 1:998 htb rate 10gbit quantum 60000
qdisc add dev eth0 parent 1:998 handle 98: bfifo limit 1
filter add dev eth0 protocol ip parent 1: prio 1 u32 match ip dst ${hosts_at[$2]}/32 flowid 1:998
C
}

# hosts_kill HOST: pull its plug.
hosts_kill() {
    ip link set "v${hosts_at[$1]##*.}" down
    kill -9 $(ip netns pids "$1")
}

# noted FILE COMMAND...: run it, with its output in FILE.out and FILE.err, its exit code in FILE.rc
# and its milliseconds in FILE.ms.
noted() {
    local to=$1 since=${EPOCHREALTIME/[.,]/}
    shift
    "$@" >"$to.out" 2>"$to.err"
    echo $? >"$to.rc"
    echo $(((${EPOCHREALTIME/[.,]/} - since) / 1000)) >"$to.ms"
}
