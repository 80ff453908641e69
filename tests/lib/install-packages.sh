#!/bin/sh
# install-packages.sh [--ask] PACKAGE...: install what is missing with apt, through sudo where not
# root; with --ask only after a yes where somebody sits at a terminal.  Says what it installs, and
# in one sentence what is missing where it cannot.
ask=
[ "$1" != --ask ] || { ask=yes; shift; }
missing=
for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $p"
done
[ -n "$missing" ] || exit 0
cannot() {
    echo "these packages are needed and $1:$missing" >&2
    exit 1
}
command -v apt-get >/dev/null || cannot "this system has no apt-get to install them with"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null; then
    sudo=sudo
else
    cannot "only root can install them (no sudo here)"
fi
echo "installing with ${sudo:+sudo }apt-get:$missing"
if [ -n "$ask" ] && [ -t 0 ]; then
    printf 'Go on? [Y/n] '
    read -r answer || answer=n
    case $answer in
    '' | [Yy]*) ;;
    *) cannot "you did not want them installed" ;;
    esac
fi
export DEBIAN_FRONTEND=noninteractive
get() { $sudo apt-get install -y --no-install-recommends "$@" >/dev/null; }
get $missing 2>/dev/null || { $sudo apt-get update >/dev/null && get $missing; } && exit
# One that this release does not have must not keep the others out.
failed=
for p in $missing; do get "$p" || failed="$failed $p"; done
missing=$failed
[ -z "$missing" ] || cannot "apt-get could not install them"
