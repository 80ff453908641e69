#!/bin/sh
# linkwise: run a script of this folder once on every host of map.txt, all at a time.
#     ./each-node.sh env/node.sh PROGRAM [ARGUMENT...]
# Hosts are reached by ssh; LINKWISE_RSH names another command that takes HOST COMMAND.  The
# folder must have the same path everywhere.  Variables of yours stay here: say
# `env NAME=VALUE PROGRAM` where the program needs them.  Where one host fails the others are ended; so
# they are when this script dies, since the scripts watch their standard input.
generation=488a47ca129dc365
case $0 in
*/*) here=${0%/*}/ ;;
*) here=. ;;
esac
here=$(CDPATH= cd -- "$here" && pwd) || exit 1
[ $# -gt 0 ] || { echo "usage: $0 SCRIPT [ARGUMENT...]" >&2; exit 2; }
found=
{ read -r found <"$here/generation"; } 2>/dev/null
[ "$found" = "$generation" ] ||
    { echo "each-node.sh: $here is half written, or holds another plan: run linkwise emit again" >&2; exit 1; }

# A word for the other shell, behind those of $command.
quote() {
    rest=$1 command="$command'"
    while :; do
        case $rest in *\'*) ;; *) break ;; esac
        command=$command${rest%%\'*}"'\\''" rest=${rest#*\'}
    done
    command="$command$rest' "
}
command="cd "
quote "$here"
command="$command&& "
for name in MASTER_ADDR MASTER_PORT LINKWISE_TORCHRUN LINKWISE_VISIBLE LINKWISE_NUMA LINKWISE_RUNNING LINKWISE_GRACE; do
    eval "value=\${$name:-}"
    [ -n "$value" ] || continue
    command="$command$name="
    quote "$value"
done
command="${command}LINKWISE_WATCH=1 sh "
quote "./$1"
shift
for word in "$@"; do
    quote "$word"
done

tmp=$(mktemp -d) || exit 1
mkfifo "$tmp/hold" "$tmp/ended" || exit 1
exec 8<>"$tmp/hold" 7<"$tmp/hold" 9<>"$tmp/ended"
trap 'rm -rf "$tmp"' EXIT
n=0 rc=0
# The first signal ends the hosts and waits for them, the second does not wait.
trap 'rc=143; exec 8<&-; trap "exit 143" HUP INT TERM' HUP INT TERM
for host in $(awk '{ print $2 }' "$here/map.txt" | sort -u); do
    [ $rc = 0 ] || break
    {
        ${LINKWISE_RSH:-ssh} "$host" "$command" <&7 7<&- 9<&-
        echo "$? $host" >&9
    } 8<&- &
    n=$((n + 1))
done
while [ $n -gt 0 ]; do
    read -r code host <&9 || continue
    n=$((n - 1))
    if [ "$code" != 0 ] && [ $rc = 0 ]; then
        rc=$code
        echo "each-node.sh: $host ended with $code; ending the others" >&2
        exec 8<&-
    fi
done
exit $rc
