#!/bin/bash
# The tree is the architecture: includes go one way, no files need each other in a circle,
# headers compile alone, no compiler warns, no machine path or unfinished word is left.
. tests/lib/tap.sh

# Folders from the ground up; a file may include its own folder and those of lower rank.
# The parts of a room that have one rank do not know each other.
ranks="base 0 workload/schedule 5 workload 10 topology 10 topology/export 12 memest 20 costmodel 20
    calibrate 30 check 30 jobs 30 mapper 30 mapper/pool 31 mapper/bound 32 mapper/place 33
    mapper/search 34 mapper/replan 35 launch 40 report 40 . 44 api 45 cli 50 bwprobe 50" # .: linkwise.h
git ls-files '*.c' '*.h' 2>/dev/null | grep . >"$T/files" ||
    find . -name '*.[ch]' | sed 's|^\./||' >"$T/files"
grep -vE '^(tests|bench|build)/' "$T/files" >"$T/product"
xargs awk -v ranks="$ranks" '
    function folder(f) { return sub(/\/[^\/]*$/, "", f) ? f : "." }
    function rank(d) {
        if (d in ranked || d ~ /^topology\//)
            return d in ranked ? ranked[d] : 11
        print d " has no rank in tests/tree/shape.t"
    }
    BEGIN { n = split(ranks, r); for (i = 1; i < n; i += 2) ranked[r[i]] = r[i + 1] + 0 }
    /^#include "/ {
        split($0, word, "\""); h = word[2]; f = FILENAME
        own = folder(f)
        # mapper/mapper.h gathers what other rooms may use of the mapper.
        other = h == "mapper/mapper.h" ? "mapper/replan" : folder(h)
        if ((getline line <h) < 0)
            print f " includes " h " by no path from the root"
        else if (h ~ /_private\.h$/ && index(own, folder(h)) != 1)
            print f " includes " h ", private to another folder"
        else if (own ~ /^bwprobe/ && other !~ /^(bwprobe|base|topology)$/)
            print f " includes " h ": bwprobe sees base and the core of topology alone"
        else if (own != other && f != "mapper/mapper.h" && rank(other) >= rank(own))
            print f " includes " h ", which is not below it"
        close(h)
    }' <"$T/product" >"$T/upward" 2>&1
[ ! -s "$T/upward" ]
result $? "includes go one way" "$T/upward"

# By the symbols that the built objects need and define: files that need each other, through
# others or not, are one file in parts.
B=$(dirname "$LINKWISE")
sed -n "s|^\(.*\)\.c$|$B/obj/\1.o|p" "$T/product" >"$T/objects"
xargs readelf -sW <"$T/objects" 2>"$T/circles" | awk '
    $1 == "File:" { sub(/.*\/obj\//, "", $2); sub(/\.o$/, ".c", $2); file = $2 }
    $5 == "GLOBAL" && $7 == "UND" { needs[file " " $8] }
    $5 == "GLOBAL" && $7 != "UND" { at[$8] = file }
    END { for (n in needs) { split(n, x, " "); if (x[2] in at && at[x[2]] != x[1]) print x[1], at[x[2]] } }' |
    sort -u | tsort >/dev/null 2>>"$T/circles"
[ ! -s "$T/circles" ]
result $? "no circle of files that need each other" "$T/circles"

# A header that some file includes before all else has been compiled alone with it.
grep '\.c$' "$T/product" | xargs awk -F'"' '/^#include/ { print $2; nextfile }' >"$T/first"
grep '\.h$' "$T/product" | grep -vxFf "$T/first" >"$T/later"
if command -v clang >/dev/null; then
    openmp=-fopenmp
    echo '#include <omp.h>' | clang $openmp -fsyntax-only -x c - 2>/dev/null ||
        openmp=-Wno-unknown-pragmas
    # A compiler starts itself once for every file, which takes as long as the file: what clang
    # starts can read many, and what one file took of memory the next ones use again.
    eval "set -- $(clang -### -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wshadow -Wmissing-prototypes \
        -fsyntax-only $openmp base/text.c 2>&1 | tail -n 1 | sed 's| "base/text.c"$||; s| "-disable-free"||')"
else
    set -- ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -fsyntax-only -x c
fi
xargs -r "$@" -Wno-unused-function <"$T/later" >"$T/alone" 2>&1
result $? "every header compiles alone" "$T/alone"

# The build has just been by one compiler, and kept what it said.
find "$B/obj" "$B/tests" -name '*.said' -size +0 -exec cat {} + >"$T/warnings" 2>/dev/null
[ ! -s "$T/warnings" ]
result $? "the build has no warnings" "$T/warnings"
if command -v clang >/dev/null; then
    # The headers that most files want are read as they once were.
    printf '#include <%s.h>\n' ctype errno limits math stdarg stdbool stddef stdint stdio stdlib string time jansson >"$T/most.h"
    printf '#include "%s"\n' mapper/mapper.h memest/memest.h >>"$T/most.h"
    # The last word is the language: c, here c-header.
    "${@/-fsyntax-only/-emit-pch}-header" -o "$T/most.pch" "$T/most.h" >"$T/warnings" 2>&1
    # What is shipped; tests and benches, which are more, in the long form.
    grep '\.c$' "$([ -n "$LINKWISE_LONG" ] && echo "$T/files" || echo "$T/product")" |
        xargs -n 200 -P 2 "$@" -include-pch "$T/most.pch" >>"$T/warnings" 2>&1 ||
        echo "clang ended with an error" >>"$T/warnings"
    [ ! -s "$T/warnings" ]
    result $? "clang has no warnings" "$T/warnings"
else
    skip "clang has no warnings" "package clang is not installed"
fi

grep -rnIE '/(home|root|work)/|/tmp/[b]ash' --include='*' . \
    --exclude-dir=.git --exclude-dir=build --exclude=shape.t >"$T/paths"
[ ! -s "$T/paths" ]
result $? "no machine path in the tree" "$T/paths"

xargs grep -nE '^.{101,}' <"$T/files" >"$T/wide"
[ ! -s "$T/wide" ]
result $? "no line of C has more than 100 columns" "$T/wide"

grep -rniE '\b(TODO|FIXME|XXX)\b' --include='*.[ch]' --include='*.sh' --include=Makefile \
    --include='*.t' . --exclude-dir=build --exclude=shape.t >"$T/words"
[ ! -s "$T/words" ]
result $? "no unfinished words in the code" "$T/words"
find tests -name '*.t' ! -perm -u+x >"$T/stuck"
[ ! -s "$T/stuck" ]
result $? "every test can be run" "$T/stuck"
! grep -n 'skip ()' tests/*/*.c >"$T/skips" # "not ok # SKIP" in TAP: tests/lib/test.h
result $? "no cmocka skip" "$T/skips"
done_testing
