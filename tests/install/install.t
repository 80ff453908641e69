#!/bin/bash
# An installed tree: programs in C and C++ build and run on it, static and shared; the shared
# library gives linkwise_* alone; uninstall leaves nothing; folders may have blanks.
. tests/lib/tap.sh
command -v pkg-config >/dev/null || skip_all "package pkg-config is not installed"

# Installing must not build again what is being tested: the build folder is the program's.
B=$(dirname "$LINKWISE")
B=${B#"$PWD"/}
[ "$B" = build ] || skip_all "the library of a sanitizer build is not installed"
install() { make --no-print-directory "$@" CC="${CC:-cc}" >"$T/out" 2>&1; }

P=$T/usr
install install prefix="$P"
result $? "make install" "$T/out"
for f in bin/linkwise bin/bwprobe include/linkwise.h lib/liblinkwise.a lib/liblinkwise.so \
    lib/liblinkwise.so.0 lib/pkgconfig/linkwise.pc share/doc/linkwise/README.md \
    share/doc/linkwise/LICENSE share/doc/linkwise/LICENSES/GPL-3.0-or-later.txt \
    share/doc/linkwise/docs/search.md share/man/man1/linkwise-plan.1 share/man/man5/linkwise-plan.5 \
    share/bash-completion/completions/bwprobe share/zsh/site-functions/_linkwise \
    share/fish/vendor_completions.d/linkwise.fish \
    share/linkwise/schema/plan.schema.json; do
    [ -e "$P/$f" ] || echo "$f is missing"
done >"$T/missing"
[ ! -s "$T/missing" ]
result $? "programs, library, header, pages, licence and schemas are there" "$T/missing"
(cd "$P/share/doc/linkwise" && find . -name '*.md' | xargs grep -o '](\([^)#:]*\)[)#]' | sed 's/:](/ /; s/[)#]$//' | sort -u |
    while read -r page to; do
        [ -e "${page%/*}/$to" ] || echo "$page names $to"
    done) >"$T/dangling"
[ ! -s "$T/dangling" ]
result $? "what pages link to is installed" "$T/dangling"
find "$P/include" -name '*.h' | grep -v '/linkwise.h$' >"$T/more"
[ ! -s "$T/more" ]
result $? "one header" "$T/more"

export PKG_CONFIG_PATH=$P/lib/pkgconfig
grep -q "^prefix=$P\$" "$P/lib/pkgconfig/linkwise.pc" && grep -q '^Requires.private:' "$P/lib/pkgconfig/linkwise.pc"
result $? "linkwise.pc has this prefix and what the library requires" "$P/lib/pkgconfig/linkwise.pc"

# try NAME COMPILER SOURCE MORE...: build it, run it.
try() {
    name=$1 compiler=$2 source=$3
    shift 3
    if ! command -v "$compiler" >/dev/null; then
        skip "$name" "$compiler is not installed"
        return
    fi
    # Words of pkg-config are meant to be split.
    # shellcheck disable=SC2086
    { $compiler -Wall -Wextra -Werror "$source" -o "$T/program" "$@" &&
        LD_LIBRARY_PATH=$P/lib "$T/program"; } >"$T/out" 2>&1
    [ $? = 0 ] && grep -Eq '^llama-2-13b: [0-9.]+ s a step$' "$T/out"
    result $? "$name" "$T/out"
}
cflags=$(pkg-config --cflags linkwise) libs=$(pkg-config --libs linkwise)
all=$(pkg-config --static --libs linkwise)
static="-Wl,-Bstatic -llinkwise -Wl,-Bdynamic ${all#*-llinkwise}"
# shellcheck disable=SC2086
{
    try "C, shared" "${CC:-cc}" tests/install/plan_job.c -std=c11 $cflags $libs
    try "C, static" "${CC:-cc}" tests/install/plan_job.c -std=c11 $cflags -L"$P/lib" $static
    try "C++, shared" g++ tests/install/plan_job.cc -std=c++17 $cflags $libs
}
[ "$(grep -c . tests/install/plan_job.c)" -le 45 ]
result $? "the example has about 40 lines"

nm -D --defined-only "$P/lib/liblinkwise.so" | awk '$3 !~ /^linkwise_/ && $2 != "A" { print $3 }' >"$T/more"
[ ! -s "$T/more" ]
result $? "the shared library gives linkwise_* alone" "$T/more"
nm -g --defined-only "$P/lib/liblinkwise.a" | awk 'NF == 3 && $3 !~ /^linkwise_/ { print $3 }' >"$T/more"
[ ! -s "$T/more" ]
result $? "... and so does the static one" "$T/more"
# Every function of the header is there, and no other.
grep -oE '\blinkwise_[a-z_]+ \(' linkwise.h | tr -d ' (' | sort -u >"$T/named"
sed -n 's/^static inline .*\(linkwise_[a-z_]*\) (.*/\1/p' linkwise.h | sort -u >"$T/inline"
nm -D --defined-only "$P/lib/liblinkwise.so" | awk '$2 == "T" { sub (/@.*/, "", $3); print $3 }' | sort -u >"$T/given"
comm -13 "$T/given" "$T/named" | comm -23 - "$T/inline" >"$T/more"
comm -23 "$T/given" "$T/named" >>"$T/more"
[ ! -s "$T/more" ]
result $? "what the header declares is what the library gives" "$T/more"
readelf -d "$P/lib/liblinkwise.so" | grep -q 'SONAME.*liblinkwise\.so\.0\]'
result $? "its name at run time is liblinkwise.so.0"

install uninstall prefix="$P" && [ -z "$(find "$P" ! -type d)" ]
result $? "uninstall leaves no file" "$T/out"

install install prefix=/usr DESTDIR="$T/a b" && [ -x "$T/a b/usr/bin/linkwise" ] &&
    grep -q '^prefix=/usr$' "$T/a b/usr/lib/pkgconfig/linkwise.pc"
result $? "DESTDIR with a blank; the prefix is the one given" "$T/out"
done_testing
