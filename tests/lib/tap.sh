# Source me from the root: TAP for shell tests, a folder of their own in $T, and what a test
# needs.  What is tested is what `make check` says, or by hand what `make` built.
: "${LINKWISE:=$PWD/build/linkwise}" "${BWPROBE:=$PWD/build/bwprobe}" "${CC:=cc}"
: "${CUDA_HOME:=/usr/local/cuda}" "${OMP_WAIT_POLICY:=passive}"
: "${LSAN_OPTIONS:=suppressions=$PWD/tests/lib/lsan.supp:print_suppressions=0}"
export LINKWISE BWPROBE CC CUDA_HOME OMP_WAIT_POLICY LSAN_OPTIONS
for program in "$LINKWISE" "$BWPROBE"; do
    [ -x "$program" ] || { echo "Bail out!  There is no $program: run make first"; exit 1; }
done
# Every process of a test reads its locale's files, or none where that is C.
export LC_ALL=C
T=${TMPDIR:-/tmp}/linkwise-test.$$.$RANDOM
mkdir -m 700 "$T" "$T/.python" || exit
trap 'rm -rf "$T"' EXIT
. tests/lib/pause.sh
# Tests run the system's python3, for which `make check` installs modules: that of a version manager
# is a script, and takes ten times as long to start.
hash python3 2>/dev/null
PYTHON=${BASH_CMDS[python3]:-}
case $PYTHON in
"" | /usr/bin/*) ;;
*) [ ! -x /usr/bin/python3 ] || { ln -s /usr/bin/python3 "$T/.python" && PATH=$T/.python:$PATH; } ;;
esac
# spawn COMMAND...: run it, in half the time of a command that stands alone where `make check` has
# built the builtin of that name (spawn.c).  In a pipe, in $(...) or behind an & a command better
# stands alone: the shell has forked for it.
enable -f "${LINKWISE%/*}/tests/lib/spawn.so" spawn 2>/dev/null || spawn() { command "$@"; }
# These mostly stand alone.
for program in chmod cp diff grep ln mkdir mv rm touch; do
    eval "$program() { spawn $program \"\$@\"; }"
done
tap_n=0 tap_failed=0

# result STATUS NAME [DETAIL FILE]
result() {
    tap_n=$((tap_n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_n - $2"
    else
        tap_failed=1
        echo "not ok $tap_n - $2"
        [ -n "${3:-}" ] && [ -f "$3" ] && sed 's/^/#   /' "$3"
    fi
}

# matches PATTERN FILE: an extended regular expression in a line.  The shell looks itself where the
# file is short: to start a grep for each assertion takes longer than most of what is tested.
matches() {
    local lines line
    mapfile -t -n 200 lines <"$2"
    [ ${#lines[@]} -lt 200 ] || { grep -Eq -- "$1" "$2"; return; }
    for line in "${lines[@]}"; do
        [[ $line =~ $1 ]] && return
    done
    return 1
}

# expect CODE NAME PATTERN COMMAND...: exit code, and a pattern in stdout or stderr; a bad
# exit must leave stdout empty.  $T/both keeps what it printed.
expect() {
    local lines
    code=$1 name=$2 pattern=$3
    shift 3
    [ "$1" = spawn ] || declare -F "$1" >/dev/null || set -- spawn "$@"
    "$@" >"$T/out" 2>"$T/err" </dev/null
    got=$?
    mapfile lines <"$T/out"
    mapfile -O ${#lines[@]} lines <"$T/err"
    printf %s "${lines[@]}" >"$T/both"
    [ $got = "$code" ] && matches "$pattern" "$T/both" && { [ "$code" = 0 ] || [ ! -s "$T/out" ]; }
    set -- $?
    [ $1 = 0 ] || { echo "exit $got, expected $code; expected /$pattern/ in:"; cat "$T/both"; } >"$T/why"
    result $1 "$name" "$T/why"
}

# prints PATTERN...: each in what `expect` ran last printed.
prints() {
    local pattern
    for pattern in "$@"; do
        matches "$pattern" "$T/out"
        result $? "prints: $pattern" "$T/out"
    done
}

# skip NAME WHY: one test of several
skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

# needs PACKAGE COMMAND...: skip the whole test where a command is missing.
needs() {
    local package=$1 command
    shift
    for command in "$@"; do
        command -v "$command" >/dev/null || skip_all "package $package is not installed"
    done
}

# $PY: a python3 that has a module; where there is none, needs_python skips the whole test.
has_python() { # MODULE
    for PY in python3 "$PYTHON"; do
        command $PY -c "import importlib.util as i, sys; sys.exit(not i.find_spec('$1'))" 2>/dev/null && return
    done
    return 1
}
needs_python() { # MODULE PACKAGE
    has_python "$1" || skip_all "package $2 is not installed"
}

# valid SCHEMA FILE NAME: after has_python jsonschema; of docs/schema.
valid() {
    py valid "docs/schema/$1.schema.json" "$2" >"$T/why"
    [ ! -s "$T/why" ]
    result $? "$3" "$T/why"
}

# in_python NAME: is there a python3?  Else the test of that name is skipped.
in_python() {
    [ -n "$PYTHON" ] || { skip "$1" "package python3 is not installed" && false; }
}
# One Python for all scripts of a test, whose pipes subshells have too.  Where a script of the test is
# first run in one, python_up stands before.
#     py SCRIPT ARGUMENT...   what `python3 SCRIPT ARGUMENT...` prints, errors too, and its status;
#                             without standard input
#     json FILE EXPRESSION    of d, the file's document, in Python
python_up() {
    mkfifo "$T/.python-said"
    exec {py_out}<>"$T/.python-said" {py_in}> >(exec ${PY:-python3} "$PY_SCRIPTS" >"$T/.python-said")
    py_pid=$!
}
PY_SCRIPTS=$PWD/tests/lib/scripts.py
py() {
    local said= part
    [ -n "${py_in:-}" ] || python_up
    printf '%s\0' $# "$@" >&"$py_in"
    # Its pipe has no end, since this shell holds it open: is Python still there?
    until IFS= read -r -t 5 -d '' part <&"$py_out"; do
        said+=$part
        kill -0 "$py_pid" 2>/dev/null || { echo "python3 is gone" >&2 && return 125; }
    done
    said+=$part
    printf %s "${said#*$'\n'}"
    return "${said%%$'\n'*}"
}
json() { py json "$@"; }
# So are `python3 - ARGUMENT... <<SCRIPT` and `python3 -c SCRIPT ARGUMENT...` where the test itself asks:
# not in a subshell, nor in what it starts.
[ -z "$PYTHON" ] || python3() {
    local script
    case $BASHPID$1 in
    $$-) IFS= read -rd '' script ;;
    $$-c) script=$2 && shift ;;
    *)
        command python3 "$@"
        return
        ;;
    esac
    printf %s "$script" >"$T/.script.py"
    py "$T/.script.py" "${@:2}"
}

# Hosts are namespaces (tests/lib/hosts.sh): why there can be none, or nothing.
why_no_hosts() {
    if [ "$(id -u)" != 0 ]; then
        echo "not root: hosts are made of network namespaces"
    elif ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
        echo "package iproute2 is not installed"
    elif ! command -v hostname >/dev/null; then
        echo "package hostname is not installed"
    elif ! command -v python3 >/dev/null; then
        echo "package python3 is not installed"
    elif ! unshare --mount --net --uts --ipc --pid --fork true 2>/dev/null; then
        echo "this system does not allow namespaces"
    fi
}
needs_hosts() {
    local why
    why=$(why_no_hosts)
    [ -z "$why" ] || skip_all "$why"
}
needs_slurm() {
    needs slurmctld slurmctld
    needs slurmd slurmd
    needs slurm-client srun sbatch
}
# in_sandbox SCRIPT [ARGUMENT...]: as root in mount, network, host-name, IPC and process namespaces
# of its own; whatever it starts ends with it, and whatever is made in it lies in $T.
in_sandbox() {
    TMPDIR=$T timeout -k 5 "${SANDBOX_LIMIT:-300}" \
        unshare --mount --net --uts --ipc --pid --fork --kill-child=KILL --mount-proc bash "$@"
}

done_testing() {
    echo "1..$tap_n"
    exit $tap_failed
}
