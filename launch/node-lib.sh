# linkwise: what env/node.sh and torchrun/node.sh share; sourced by them.
#   $host  this host's name in map.txt     $top  the folder of map.txt
#   start COMMAND...   in the background    finish   wait; the first failure ends the rest
generation=488a47ca129dc365
top=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
fail() {
    printf '%s\n' "$0: $*" >&2
    exit 1
}
[ $# -gt 0 ] || fail 'no program given'
found=
{ read -r found <"$top/generation"; } 2>/dev/null
[ "$found" = "$generation" ] ||
    fail "$top is half written, or holds another plan: run linkwise emit again"
host=$(sh "$top/exec.sh" --host) || exit 1
MASTER_ADDR=${MASTER_ADDR:-$(awk '$1 == 0 { print $2; exit }' "$top/map.txt")}
MASTER_PORT=${MASTER_PORT:-29500}
export MASTER_ADDR MASTER_PORT

tmp=$(mktemp -d) || exit 1
mkfifo "$tmp/ended" || exit 1
exec 9<>"$tmp/ended"
pids='' watch='' rc=0
end_all() { [ -z "$pids" ] || kill $pids 2>/dev/null; }
trap 'end_all; [ -z "$watch" ] || kill $watch 2>/dev/null; rm -rf "$tmp"' EXIT
# The processes get the signal, and LINKWISE_GRACE seconds (30) for what they do then.
trap '[ $rc != 0 ] || rc=143; end_all' HUP INT TERM
# Started by each-node.sh, standard input closes when that ends.
if [ "${LINKWISE_WATCH:-0}" = 1 ]; then
    exec 3<&0 </dev/null
    (
        trap - EXIT HUP INT TERM
        cat <&3 >/dev/null
        kill $$ 2>/dev/null
    ) 9<&- &
    watch=$!
    exec 3<&-
fi

started=0
# End a process that start() made, for good after a while.
end() {
    ended=1
    [ -n "$child" ] || return
    kill $child 2>/dev/null
    (
        trap - EXIT HUP INT TERM
        left=${LINKWISE_GRACE:-30}
        while [ "$left" -gt 0 ] && kill -0 $child 2>/dev/null; do
            sleep 1
            left=$((left - 1))
        done
        kill -KILL $child 2>/dev/null
    ) >/dev/null 2>&1 9<&- &
}
# A shell of its own waits for each process, hands signals on and reports the end.
start() {
    [ $rc = 0 ] || return 0
    (
        child='' ended=''
        trap - EXIT
        trap end HUP INT TERM
        "$@" 9<&- &
        child=$!
        [ -z "$ended" ] || end
        wait $child
        code=$?
        while kill -0 $child 2>/dev/null; do
            wait $child
            code=$?
        done
        echo $code >&9
    ) &
    pids="$pids $!"
    started=$((started + 1))
}
finish() {
    while [ $started -gt 0 ]; do
        read -r code <&9 || continue
        started=$((started - 1))
        if [ "$code" != 0 ] && [ $rc = 0 ]; then
            rc=$code
            end_all
        fi
    done
    pids=
    exit $rc
}
