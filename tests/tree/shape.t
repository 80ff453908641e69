#!/bin/bash
# The tree is the architecture: includes go one way, no files need each other in a circle,
# headers compile alone, no compiler warns, no machine path or unfinished word is left.
. tests/lib/tap.sh

# Folders from the ground up; a file may include its own folder and those of lower rank.
# The parts of a room that have one rank do not know each other.
rank() {
    case $1 in
    base) echo 0 ;;
    workload/schedule) echo 5 ;;
    workload | topology) echo 10 ;;
    topology/export) echo 12 ;;
    topology/*) echo 11 ;;
    memest | costmodel) echo 20 ;;
    calibrate | check | jobs | mapper) echo 30 ;;
    mapper/pool) echo 31 ;; mapper/bound) echo 32 ;; mapper/place) echo 33 ;;
    mapper/search) echo 34 ;; mapper/replan) echo 35 ;;
    launch | report) echo 40 ;;
    .) echo 44 ;; # linkwise.h
    api) echo 45 ;;
    cli | bwprobe) echo 50 ;;
    *) echo "$1 has no rank in $0" >>"$T/upward" ; echo 0 ;;
    esac
}
# mapper/mapper.h gathers what other rooms may use of the mapper.
folder() { [ "$1" = mapper/mapper.h ] && echo mapper/replan || dirname "$1"; }
git ls-files '*.c' '*.h' 2>/dev/null | grep . >"$T/files" ||
    find . -name '*.[ch]' | sed 's|^\./||' >"$T/files"
grep -vE '^(tests|bench|build)/' "$T/files" >"$T/product"
: >"$T/upward"
xargs grep -H '^#include "' <"$T/product" | sed 's/:#include "\([^"]*\)".*/ \1/' |
    while read -r f h; do
        own=$(dirname "$f") other=$(folder "$h")
        if [ ! -f "$h" ]; then
            echo "$f includes $h by no path from the root"
        elif [ "${h%_private.h}" != "$h" ] && [ "${own#"${h%/*}"}" = "$own" ]; then
            echo "$f includes $h, private to another folder"
        elif [ "${own%%/*}" = bwprobe ] &&
            ! printf '%s\n' bwprobe base topology | grep -qx "$other"; then
            echo "$f includes $h: bwprobe sees base and the core of topology alone"
        elif [ "$own" != "$other" ] && [ "$f" != mapper/mapper.h ] &&
            [ "$(rank "$other")" -ge "$(rank "$own")" ]; then
            echo "$f includes $h, which is not below it"
        fi
    done >>"$T/upward"
[ ! -s "$T/upward" ]
result $? "includes go one way" "$T/upward"

# By the symbols that the built objects need and define: files that need each other, through
# others or not, are one file in parts.
while read -r f; do
    [ "${f%.c}" != "$f" ] && echo "$(dirname "$LINKWISE")/obj/${f%.c}.o"
done <"$T/product" >"$T/objects"
xargs nm -A -P <"$T/objects" 2>"$T/circles" | awk '
    { sub(/.*\/obj\//, "", $1); sub(/\.o:$/, ".c", $1) }
    $3 == "U" { needs[$1 " " $2] }
    $3 ~ /^[TDBRC]$/ { at[$2] = $1 }
    END { for (n in needs) { split(n, x, " "); if (x[2] in at && at[x[2]] != x[1]) print x[1], at[x[2]] } }' |
    sort -u | tsort >/dev/null 2>>"$T/circles"
[ ! -s "$T/circles" ]
result $? "no circle of files that need each other" "$T/circles"

grep '\.h$' "$T/product" |
    xargs ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wno-unused-function -fsyntax-only -x c >"$T/alone" 2>&1
result $? "every header compiles alone" "$T/alone"

# The build has just been by one compiler, and kept what it said.
B=$(dirname "$LINKWISE")
find "$B/obj" "$B/tests" -name '*.said' -size +0 -exec cat {} + >"$T/warnings" 2>/dev/null
[ ! -s "$T/warnings" ]
result $? "the build has no warnings" "$T/warnings"
if command -v clang >/dev/null; then
    openmp=-fopenmp
    echo '#include <omp.h>' | clang $openmp -fsyntax-only -x c - 2>/dev/null ||
        openmp=-Wno-unknown-pragmas
    find . -path ./build -prune -o -name '*.c' -print | sed 's|^\./||' |
        xargs -n 8 -P 2 clang -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wshadow -Wmissing-prototypes \
            -fsyntax-only $openmp >"$T/warnings" 2>&1
    [ ! -s "$T/warnings" ]
    result $? "clang has no warnings" "$T/warnings"
else
    echo "ok $((tap_n += 1)) - clang has no warnings # SKIP package clang is not installed"
fi

grep -rnIE '/(home|root|work)/|/tmp/[b]ash' --include='*' . \
    --exclude-dir=.git --exclude-dir=build --exclude=shape.t >"$T/paths"
[ ! -s "$T/paths" ]
result $? "no machine path in the tree" "$T/paths"

grep -rniE '\b(TODO|FIXME|XXX)\b' --include='*.[ch]' --include='*.sh' --include=Makefile \
    --include='*.t' . --exclude-dir=build --exclude=shape.t >"$T/words"
[ ! -s "$T/words" ]
result $? "no unfinished words in the code" "$T/words"
find tests -name '*.t' ! -perm -u+x >"$T/stuck"
[ ! -s "$T/stuck" ]
result $? "every test can be run" "$T/stuck"
! grep -n 'skip ()' tests/*/*.c >"$T/skips" # "not ok # SKIP" in TAP: tests/lib/skip.h
result $? "no cmocka skip" "$T/skips"
done_testing
