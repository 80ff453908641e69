#!/bin/bash
# spawn of tests/lib/tap.sh, with its builtin or without, runs a command as bash itself does.
. tests/lib/tap.sh
[ ! -f "${LINKWISE%/*}/tests/lib/spawn.so" ] || [ "$(type -t spawn)" = builtin ]
result $? "where the builtin was built, bash loads it"
mkdir "$T/bin" && printf '#!/bin/sh\necho "mine $*"\n' >"$T/bin/mine" && chmod +x "$T/bin/mine"
: >"$T/bin/empty" && chmod +x "$T/bin/empty"
say='echo "$0 $X $Y"; echo aside >&2; exit 3'
inner() { spawn sh -c "$say" inner; }
runs() { # the same commands, by spawn where $by says so
    export X=1
    Y=2 $by sh -c "$say" prefix
    echo $?
    Y=4 inner
    unset X
    $by sh -c 'echo "${X-unset} $#"' sh 'a  b' ''
    (cd "$T/bin" && umask 027 && $by sh -c 'pwd; umask')
    PATH=$T/bin:$PATH
    $by mine 'two  words' | cat
    $by cat <"$T/bin/mine" >"$T/copy" 2>&1 && $by cat "$T/copy"
    echo "$($by mine inside)"
    $by sh -c 'kill -KILL $$'
    echo $?
    $by no-such-command
    echo $?
    $by "$T/bin/none"
    echo $?
    sh -c 'exit 5' &
    $by sh -c 'trap "" CHLD; sleep .05; kill -CHLD $PPID'
    wait $!
    echo $?
    trap 'echo caught' USR1
    $by sh -c "kill -USR1 \$PPID; kill -s USR1 \$\$"
    echo $?
}
(by=spawn && runs) >"$T/out" 2>"$T/err"
(by='' && runs) >"$T/expected" 2>/dev/null
diff "$T/expected" "$T/out" >"$T/why" && matches '^127$' "$T/out" && matches '^137$' "$T/out" && matches "^aside$" "$T/err"
result $? "statuses, environment, folder, redirections, signals and jobs are the shell's" "$T/why"
done_testing
