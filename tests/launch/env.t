#!/bin/bash
# The scripts that start ranks without a launcher: the environment and arguments arrive as they
# are; where a rank fails, a signal comes, or the script that started them dies, all ranks end,
# with time to finish and not more than that.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts

placed "$T" 2 2 || exit 1
expect 0 "emit" "4 ranks written" $LINKWISE emit "$T/plan.json" --to env -d "$T/launch"
reporter "$T/program"

cat >"$T/inside.sh" <<'S2'
. tests/lib/hosts.sh
hosts_up h1 h2
export LINKWISE_RSH=$HOSTS_RSH LINKWISE_NUMA=0
cd "$1/launch"
running() { # N PATTERN: wait until N processes match
    local i n
    for i in {1..30}; do
        n=$(pgrep -c -f "$2")
        [ "$n" = "$1" ] && break
        pause 0.2
    done
    echo "$n"
}
up() { # N FILE: wait until N ranks say so
    local i lines
    for i in {1..60}; do
        mapfile -t lines <"$2"
        [ ${#lines[@]} = "$1" ] && break
        pause 0.1
    done
}
noted "$1/report" timeout 60 ./each-node.sh env/node.sh "$1/program"
# A rank that fails, with arguments that a shell would like to read.
word="it's \$(touch $1/pwned) \"a b\"; *"$'\n\n'
timeout 60 ./each-node.sh env/node.sh sh -c 'printf "%s<%s>" "$RANK" "$1" >"$2/word$RANK"; 
    [ "$RANK" = 1 ] || exec sleep 50; until [ -e "$2/word0" ] && [ -e "$2/word2" ] && [ -e "$2/word3" ]; do sleep 0.1; done; exit 7' \
    sh "$word" "$1" >"$1/fails.out" 2>&1
echo $? >"$1/fails.rc"
running 0 '^sleep 50' >"$1/fails.left"
for r in 0 3; do printf '%s<%s>' $r "$word" | cmp - "$1/word$r"; done >"$1/words" 2>&1
# The script that started them is killed outright.
./each-node.sh env/node.sh sleep 51 >"$1/killed.out" 2>&1 &
running 4 '^sleep 51' >"$1/killed.before"
kill -KILL $!
running 0 '^sleep 51' >"$1/killed.left"
# A signal: ranks that finish their work first are waited for.
./each-node.sh env/node.sh sh -c 'trap "sleep 1; echo saved; exit 0" TERM; echo up; sleep 60 & wait' >"$1/saved" 2>"$1/saved.err" &
up 4 "$1/saved"
kill -TERM $!
wait $!
echo "$? $(grep -c saved "$1/saved")" >"$1/saved.rc"
# One that does not end is ended.
export LINKWISE_GRACE=1
./each-node.sh env/node.sh sh -c 'trap "" TERM; [ "$RANK" != 1 ] || { sleep 1; exit 9; }; exec sleep 52' >"$1/stubborn.out" 2>&1
echo $? >"$1/stubborn.rc"
running 0 '^sleep 52' >"$1/stubborn.left"
# On one host alone, as in a pod, where the script is the first process; where shells look elsewhere.
CDPATH=$PWD LINKWISE_NODE=h1 unshare --pid --fork --kill-child=KILL env/node.sh sh -c 'trap "echo saved; exit 0" TERM; echo up; sleep 60 & wait' >"$1/pod" 2>&1 &
up 2 "$1/pod"
pkill -TERM -P $!
wait $!
echo "$? $(grep -c saved "$1/pod")" >"$1/pod.rc"
S2
in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1

reported env "$T" "$T/report"
is() { # NAME FILE TEXT LOG
    [ "$(cat "$T/$2" 2>/dev/null)" = "$3" ]
    { result $? "$1" /dev/fd/3; } 3< <(cat "$T/$2" "$T/$4" 2>&1)
}
is "a rank that fails gives its exit code" fails.rc 7 fails.out
is "... and ends the others" fails.left 0 fails.out
[ ! -e "$T/pwned" ] && [ ! -s "$T/words" ] && [ -s "$T/word3" ]
result $? "arguments reach the program as they are" "$T/words"
is "the starting script" killed.before 4 killed.out
is "... killed: the ranks on all hosts end" killed.left 0 killed.out
is "a signal: the ranks finish their work, and are waited for" saved.rc "143 4" saved.err
is "ranks that ignore the signal" stubborn.rc 9 stubborn.out
is "... are killed after LINKWISE_GRACE seconds" stubborn.left 0 stubborn.out
is "a signal to a pod's first process" pod.rc "143 2" pod
done_testing
