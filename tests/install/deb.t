#!/bin/bash
# The Debian packages of the last commit: built from the tarball, without complaint of lintian,
# they install in a clean root, work there, and leave nothing when they are removed.
export TMPDIR=/var/tmp # a root holds devices, which a file system in memory may not
. tests/lib/tap.sh
[ -n "$LINKWISE_LONG" ] || skip_all "takes minutes: make check-long runs it"
[ "$(id -u)" = 0 ] || skip_all "not root: a clean root is made by debootstrap"
needs debootstrap debootstrap
needs debhelper dh
needs dh-python dh_python3
needs dpkg-dev dpkg-buildpackage
needs lintian lintian
git rev-parse HEAD >"$T/out" 2>&1 || skip_all "packages are made of a commit, and this is none of git's"
unshare --mount --pid --fork true 2>/dev/null || skip_all "this system does not allow namespaces"
# The system's own mirror and release.
read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    grep -vE -- '-(security|updates|backports)$')
[ -n "$release" ] || skip_all "apt knows no mirror"

run() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory "$@"; }
run dist >"$T/out" 2>&1
first=$(sha256sum build/linkwise-*.tar.xz)
run deb >"$T/out" 2>&1
result $? "make deb" "$T/out"
[ "$(sha256sum build/linkwise-*.tar.xz)" = "$first" ]
result $? "the same tarball from the same commit"
lintian --allow-root --fail-on error,warning build/deb/*.changes >"$T/out" 2>&1
result $? "lintian has nothing to say" "$T/out"

# What debootstrap mounts goes with the namespace.
apart() { timeout 600 unshare --mount --pid --fork --kill-child=KILL --mount-proc "$@"; }
apart debootstrap --variant=minbase "$release" "$T/clean" "$mirror" >"$T/out" 2>&1 ||
    skip_all "debootstrap of $release does not work here: $(tail -n 1 "$T/out")"
within() { apart chroot "$T/clean" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
# What has our names, but for apt's and dpkg's own books.
files() {
    (cd "$T/clean" && find . -path ./proc -prune -o -path ./tmp -prune -o -print) |
        grep -E 'linkwise|bwprobe' | grep -v '^\./var/l'
}
mkdir "$T/clean/debs"
cp build/deb/*.deb "$T/clean/debs/"
rm "$T"/clean/debs/*-dbgsym_*
within sh -c 'apt-get update && apt-get install -y --no-install-recommends /debs/*.deb' >"$T/out" 2>&1
result $? "all of them install" "$T/out"
rm -r "$T/clean/debs"
expect 0 "linkwise plans" "^step " within linkwise plan "2x8 h100-sxm5-80g intra:370 inter:48" \
    llama-3-8b --seq 8192 --global-batch 64
expect 0 "bwprobe is there" "^bwprobe [0-9]" within bwprobe --version
# shellcheck disable=SC2016
expect 0 "the library finds what it needs" "libglpk" within sh -c 'ldd /usr/lib/*/liblinkwise.so.0'
! grep -q "not found" "$T/out"
result $? "... all of it" "$T/out"
expect 0 "bwprobe too" "libjansson" within ldd /usr/bin/bwprobe
! grep -q "not found\|glpk" "$T/out"
result $? "... and it links no GLPK" "$T/out"
expect 0 "Python has the module" "^llama-3-8b" within python3 -c \
    'import linkwise; print(linkwise.Model("llama-3-8b").name)'
files >"$T/there"
grep -q '/man1/linkwise-plan.1.gz$' "$T/there" && grep -q '/pkgconfig/linkwise.pc$' "$T/there" &&
    grep -q '/lib/[a-z0-9_]*-linux-gnu/liblinkwise.so$' "$T/there"
result $? "pages and what developers need are where Debian has them" "$T/there"
within sh -c 'apt-get purge -y linkwise bwprobe liblinkwise0 python3-linkwise' >"$T/out" 2>&1
result $? "they are removed" "$T/out"
files >"$T/left"
[ ! -s "$T/left" ]
result $? "... and leave nothing" "$T/left"
done_testing
