# Source me: TAP for shell tests, and a folder of their own in $T.
: "${LINKWISE:?run me through make check}"
T=$(mktemp -d "${TMPDIR:-/tmp}/linkwise-test.XXXXXX")
trap 'rm -rf "$T"' EXIT
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

# expect CODE NAME PATTERN COMMAND...: exit code, and a pattern in stdout or stderr; a bad
# exit must leave stdout empty.
expect() {
    code=$1 name=$2 pattern=$3
    shift 3
    "$@" >"$T/out" 2>"$T/err" </dev/null
    got=$?
    cat "$T/out" "$T/err" >"$T/both"
    { echo "exit $got, expected $code; expected /$pattern/ in:"; cat "$T/both"; } >"$T/why"
    [ $got = "$code" ] && grep -Eq -- "$pattern" "$T/both" &&
        { [ "$code" = 0 ] || [ ! -s "$T/out" ]; }
    result $? "$name" "$T/why"
}

skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

done_testing() {
    echo "1..$tap_n"
    exit $tap_failed
}
