#!/bin/bash
# The makefile: T names tests, -j and JOBS say how many run at once; where a build package is
# missing it is named, and installed for `make check` only after a yes where there is a terminal.
. tests/lib/tap.sh
run() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u SAN -u STATIC PATH="$T/bin:$PATH" make --no-print-directory "$@"; }
proves() { # NAME WANT OPTION...: what prove is given
    run -n check CHECK_MISSING= "${@:3}" >"$T/out" 2>&1
    [ "$(sed -n "s/.*prove --timer --exec '' //p" "$T/out" | xargs)" = "$2" ]
    result $? "$1" "$T/out"
}
proves "one test, and all it prints" "--verbose build/tests/mapper/bounds" T=mapper/bounds
proves "files and folders, however they are written" \
    "--jobs 6 tests/tree/shape.t build/tests/base/text build/tests/check/plan tests/tree/make.t tests/tree/spawn.t" \
    -j3 T="tests/tree/ tests/base/text.c build/tests/check/plan"
proves "three more at once than JOBS says, the longest first" "--jobs 10 tests/tree/shape.t tests/tree/make.t tests/tree/spawn.t" JOBS=7 T=tree
expect 2 "a test that is not there" "T=mapper/none names no test" run check T=mapper/none
expect 2 "helpers are no tests" "T=lib names no test" run check T=lib

mkdir "$T/bin"
cat >"$T/bin/cc" <<'S'
#!/bin/sh
text=$(cat)
case $text in *nlopt.h* | *csv.h*) exit 1 ;; esac
S
printf '#!/bin/sh\ncase "$*" in *libcsv-dev) exit 1 ;; esac\necho install ok installed\n' >"$T/bin/dpkg-query"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$T/log" >"$T/bin/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$T/bin/sudo"
chmod +x "$T"/bin/*
expect 2 "missing packages are named" "missing build packages: libcsv-dev libnlopt-dev; .make deps. installs them" \
    run CC="$T/bin/cc" B="$T/build"
expect 2 "... all that the build needs, where no compiler can look" "packages: gcc pkg-config libc6-dev .*libyaml-dev libcmocka-dev;" \
    run CC="$T/none" B="$T/build"
[ ! -e "$T/build" ]
result $? "... and nothing is compiled"
run CC="$T/bin/cc" B="$T/build" check </dev/null >"$T/out" 2>&1
grep -Eq "^installing with (sudo )?apt-get: libcsv-dev$" "$T/out" && grep -q "install.* libcsv-dev$" "$T/log" &&
    grep -q "still missing after installing: libcsv-dev libnlopt-dev" "$T/out"
result $? "without a terminal make check says what it installs, and does" "$T/out"
# Tests' packages that cannot be installed do not keep the others from running.
printf '#!/bin/sh\ncase $(cat) in *cmocka.h*) exit 1 ;; esac\n' >"$T/bin/cc"
printf '#!/bin/sh\ncase "$*" in *iproute2) exit 1 ;; esac\necho install ok installed\n' >"$T/bin/dpkg-query"
printf '#!/bin/sh\nexit 100\n' >"$T/bin/apt-get"
printf '#!/bin/sh\necho "prove $*"\n' >"$T/bin/prove"
chmod +x "$T/bin/prove"
run CC="$T/bin/cc" -n DEPS_TRIED=1 check T="base/text tree/shape" >"$T/out" 2>&1
grep -q "prove --timer .*tests/tree/shape.t" "$T/out" && ! grep -q "build/tests/base/" "$T/out"
result $? "without cmocka the shell tests are run" "$T/out"
run CC="$T/bin/cc" -n check T=tree/shape >"$T/out" 2>&1
grep -q "install-packages.sh --ask .*libcmocka-dev.* python3 iproute2 hostname" "$T/out" &&
    grep -q "|| echo 'tests that need them are left out'" "$T/out" && grep -q "prove --timer .*tests/tree/shape.t" "$T/out"
result $? "... after an attempt to install what they need" "$T/out"
rm "$T/bin/prove" "$T/bin/cc"
if command -v script >/dev/null; then
    printf '#!/bin/sh\ncase "$*" in *libcsv-dev) exit 1 ;; esac\necho install ok installed\n' >"$T/bin/dpkg-query"
    printf '#!/bin/sh\necho "$*" >>"%s"\n' "$T/log" >"$T/bin/apt-get"
    for answer in n y; do
        : >"$T/log"
        echo $answer | PATH=$T/bin:$PATH script -qec "sh tests/lib/install-packages.sh --ask libcsv-dev perl" /dev/null >"$T/out" 2>&1
        grep -q "Go on" "$T/out" && [ "$(grep -c libcsv-dev "$T/log")" = $([ $answer = y ] && echo 1 || echo 0) ]
        result $? "on a terminal it asks: $answer" "$T/out"
    done
fi

# linkwise holds its libraries where all archives link beside what else is linked with.
mkdir "$T/linking"
cat >"$T/linking/cc" <<S
#!/bin/sh
case " \$* " in
*" -Wl,-Bstatic,--whole-archive "*) case " \$* " in *" -fopenmp "* | *" -Wno-unknown-pragmas "*) exit \${NO_ARCHIVES:-0} ;; *) exit 1 ;; esac ;;
esac
exec $CC "\$@"
S
chmod +x "$T/linking/cc"
linked() { run -n V=1 CC="$T/linking/cc" B="$T/linked" "$@" "$T/linked/linkwise" | sed -n 's/.*-o [^ ]*linked.linkwise //p'; }
linked >"$T/out" 2>&1
grep -q -- "-Wl,-Bstatic -lglpk .* -Wl,-Bdynamic,--as-needed .*-lhwloc" "$T/out"
result $? "archives are linked where they are there" "$T/out"
NO_ARCHIVES=1 linked >"$T/shared" 2>&1
grep -q -- "-lglpk .*-lhwloc" "$T/shared" && ! grep -q Bstatic "$T/shared"
result $? "... shared libraries where one is not" "$T/shared"
linked STATIC= | diff - "$T/shared" >"$T/out"
result $? "... and with STATIC=" "$T/out"
run -n config STATIC= >"$T/out" 2>&1 && grep -q "'STATIC := '" "$T/out"
result $? "make config remembers that" "$T/out"
done_testing
