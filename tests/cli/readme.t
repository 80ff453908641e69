#!/bin/bash
# The README is true: what it shows of `make run` is what that prints, and every command that it
# says runs as printed does, as those of docs/faq.md do.
. tests/lib/tap.sh
# Seconds differ from run to run; a sanitized build has another path.
same() { sed -E "s/; [0-9.]+ s$/; S/; s#build/san/#build/#g" "$1"; }
sed -n '/^<!-- make run -->$/,/^<!-- end -->$/p' README.md | sed '1,2d;/^```$/d;/^<!-- end/d' >"$T/readme"
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory run-example SAN="${SAN:-}" >"$T/run" 2>&1
diff <(same "$T/readme") <(same "$T/run" | grep -v '^  [A-Z][A-Z]') >"$T/diff"
result $? "make run prints what the README shows" "$T/diff"
n=0
while read -r command; do
    n=$((n + 1))
    bash -c "${command/build\/linkwise/$LINKWISE}" >"$T/out" 2>&1
    result $? "$command" "$T/out"
done < <(awk '/^These run as printed/ { on = 1 } on && /^```/ { fence++ } on && fence == 1 && /^build/ { print } fence == 2 { exit }' README.md
    awk '/^```/ { on = !on } on && /^build/' docs/faq.md)
[ $n -ge 12 ]
result $? "the pages have commands"
# What a page shows below "$ linkwise COMMAND" are the last lines that it prints: searches that
# take a minute of a processor.
if [ -n "${LINKWISE_LONG:-}" ]; then
    (cd "$T" && $LINKWISE plan "$OLDPWD/examples/clusters/h100-17.json" llama-2-70b --seq 4096 --global-batch 1024 -o plan.json >/dev/null 2>&1)
    for what in eval explain; do
        awk -v start="\$ linkwise $what" -v shown="$T/shown" '
            /^```/ { on = more = 0 }
            on { print >shown }
            index($0, start) == 1 { more = 1 }
            more { print; more = /\\$/; on = !more }' docs/whatif.md >"$T/command"
        command=$(cat "$T/command")
        (cd "$T" && eval "$LINKWISE ${command#*linkwise }") >"$T/run" 2>&1
        [ -s "$T/shown" ] && tail -n "$(wc -l <"$T/shown")" "$T/run" | diff "$T/shown" - >"$T/diff"
        result $? "docs/whatif.md shows what $what prints" "$T/diff"
    done
fi
for f in $(grep -o '](\([a-zA-Z0-9_./-]*\))' README.md docs/*.md examples/README.md | sed 's/:](/ /; s/)$//' | awk '{ d = $1; sub("[^/]*$", "", d); print d $2 }'); do
    [ -e "$f" ] || echo "$f" >>"$T/missing"
done
[ ! -s "$T/missing" ]
result $? "no link of the documentation is dead" "$T/missing"
done_testing
