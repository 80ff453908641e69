#!/bin/bash
# The tree is the architecture: includes go one way, headers compile alone, no compiler
# warns, no machine path or unfinished word is left.
. tests/lib/tap.sh

# Rooms from the ground up; a room may include itself and those of lower rank.
rank() {
    case $1 in
    base) echo 0 ;; workload | topology) echo 1 ;; memest | costmodel) echo 2 ;;
    calibrate | check | mapper) echo 3 ;; launch | report) echo 4 ;; cli) echo 5 ;;
    *) echo 9 ;;
    esac
}
for f in $(git ls-files '*.c' '*.h' 2>/dev/null || find . -name '*.[ch]' | sed 's|^\./||'); do
    room=${f%%/*}
    case $room in tests | bench | build) continue ;; esac
    sed -n 's/^#include "\([^"]*\)".*/\1/p' "$f" | while read -r h; do
        other=${h%%/*}
        if [ ! -f "$h" ]; then
            echo "$f includes $h by no path from the root"
        elif [ "$room" = bwprobe ] && [ "$other" != bwprobe ] && [ "$other" != base ] &&
            [ "$other" != topology ]; then
            echo "$f includes $h: bwprobe sees base and topology alone"
        elif [ "$other" != "$room" ] && [ "$(rank "$other")" -ge "$(rank "$room")" ]; then
            case "$room $other" in
            # The checker, the planner's searches and profiles stand side by side.
            "cli "*) ;;
            *) echo "$f includes $h, which is not below it" ;;
            esac
        elif [ "$other" != "$room" ] && [ "${h%_private.h}" != "$h" ]; then
            echo "$f includes $h, private to another room"
        fi
    done
done >"$T/upward"
[ ! -s "$T/upward" ]
result $? "includes go one way" "$T/upward"

for h in */*.h; do
    case $h in build/* | tests/*) continue ;; esac
    echo "#include \"$h\"" |
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -fsyntax-only -x c - 2>>"$T/alone" ||
        echo "$h" >>"$T/alone"
done
[ ! -s "$T/alone" ]
result $? "every header compiles alone" "$T/alone"

flags="-std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wshadow -Wmissing-prototypes -fsyntax-only"
for cc in gcc clang; do
    if ! command -v $cc >/dev/null; then
        echo "ok $((tap_n += 1)) - $cc has no warnings # SKIP package $cc is not installed"
        continue
    fi
    openmp=-fopenmp
    echo '#include <omp.h>' | $cc $openmp -fsyntax-only -x c - 2>/dev/null ||
        openmp=-Wno-unknown-pragmas
    find . -path ./build -prune -o -name '*.c' -print | sed 's|^\./||' |
        xargs -n 8 -P 2 $cc $flags $openmp >"$T/warnings" 2>&1
    [ ! -s "$T/warnings" ]
    result $? "$cc has no warnings" "$T/warnings"
done

grep -rnIE '/home/|/root/|/work/|/tmp/bash' --include='*' . \
    --exclude-dir=.git --exclude-dir=build --exclude=shape.t >"$T/paths"
[ ! -s "$T/paths" ]
result $? "no machine path in the tree" "$T/paths"

grep -rniE '\b(TODO|FIXME|XXX)\b' --include='*.[ch]' --include='*.sh' --include=Makefile \
    --include='*.t' . --exclude-dir=build --exclude=shape.t >"$T/words"
[ ! -s "$T/words" ]
result $? "no unfinished words in the code" "$T/words"
! grep -n 'skip ()' tests/*/*.c >"$T/skips" # "not ok # SKIP" in TAP: tests/lib/skip.h
result $? "no cmocka skip" "$T/skips"
done_testing
